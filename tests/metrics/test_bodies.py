"""The body of a metric says what to release from options alone: whatever data are, it does not touch them."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.stored_questions import PER_RECORD, RECORDS


class Untouchable:
    """Raises whatever is done with it."""

    def __getattribute__(self, name):
        raise AssertionError(f"{name} of the data was asked for")

    def __refuse(self, *args):
        raise AssertionError("the data were touched")

    __bool__ = __len__ = __iter__ = __eq__ = __lt__ = __getitem__ = __add__ = __array__ = __refuse


def asked(name, data):
    """Return what a metric asks for, given this in the place of each argument with data."""
    row = METRICS[name]
    given = {**row.options, **row.required, **(row.limit or {})}
    options = {option: value for option, value in given.items() if option not in PER_RECORD}
    return FUNCTIONS[name].__wrapped__(*(data for _ in row.data), **options)


@loop_over("name", METRICS)
@pytest.mark.parametrize("kind", [type(None), Untouchable])
def test_a_body_does_not_touch_data(name, kind):
    query = asked(name, kind())(METRICS[name].form(n=1))
    assert [*map(type, query.quantities)] == [*map(type, METRICS[name].usual.quantities)]


@loop_over("name", METRICS)
def test_the_signature_tells_the_same_data_as_the_table_of_questions(name):
    """By the first the body gets None in their place, by the second they are not written to a budget."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    assert METRICS[name].data == tuple(one for one in parameters if one in RECORDS)


@loop_over("name", METRICS)
def test_a_call_hands_no_data_to_the_body(name):
    seen = []

    def body(*data, **options):
        seen.append((data, options))
        return asked(name, None)

    row = replace(METRICS[name], body=body)
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
