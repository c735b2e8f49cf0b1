"""The body of a metric says what to release from options alone: it is called with None for the data."""

from dataclasses import replace

import numpy as np
from helpers import loop_over

from dp_metrics.metrics import METRICS
from dp_metrics.release.stored import PER_RECORD


@loop_over("name", METRICS)
def test_a_call_hands_no_data_to_the_body(name):
    seen = []

    def body(*data, **options):
        seen.append((data, options))
        return METRICS[name].function.__wrapped__(*data, **options)

    body.__name__ = name
    row = replace(METRICS[name], function=body)
    data = row.from_unit(np.linspace(0.0, 1.0, 50))
    row.release(
        **dict(zip(row.data, data, strict=True)),
        **{**dict.fromkeys(row.refused), **row.options, **row.required},
        epsilon=1.0,
    )
    assert seen
    for positional, options in seen:
        assert {*positional} == {None}
        assert options.keys() == row.options.keys() - PER_RECORD
