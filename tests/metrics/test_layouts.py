"""Records are read where they are, a block at a time, and to the last one before anything is spent."""

import math

import numpy as np
import pandas as pd
import pytest
from helpers import NoEntropy, loop_over

import dp_metrics as dp
from dp_metrics.inputs.records import float_block
from dp_metrics.metrics import METRICS
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

CALLS = {
    "mse": lambda y, p, **options: dp.private_mse(y, p, bounds=(0.25, 0.75), **options),
    "log loss": lambda y, p, **options: dp.private_log_loss(y, p, max_loss=5, **options),
    "zero-one": lambda y, p, **options: dp.private_zero_one_loss(y, np.round(10 * p), **options),
    "mean loss": lambda y, p, **options: dp.private_mean_loss(p, max_loss=0.5, **options),
    "variance": lambda y, p, **options: dp.private_variance(p, **options),
    "summary": lambda y, p, **options: dp.LossSummary.from_data(dp.private_mse, y, p).release(**options),
}


@loop_over("dtype", [np.float64, np.float32, np.int64, np.bool_])
@loop_over("form", [np.asarray, pd.Series])
def test_contiguous_input_is_read_where_it_is_and_never_written_to(dtype, form):
    whole = np.random.default_rng(1).integers(0, 2, 2 * BLOCK + 77).astype(dtype)
    whole.flags.writeable = False
    y, p = form(whole), form(whole.copy())
    for name in ("private_mse", "private_log_loss", "private_zero_one_loss", "private_mean_pinball_loss"):
        _, known = METRICS[name].read((y, p), {}, private_n=True)
        (query,) = known.parts
        for record, data in zip(query.records, (y, p), strict=True):
            assert np.shares_memory(record, np.asarray(data))
    for block in in_blocks(whole):
        assert np.shares_memory(block, whole)
        values = float_block(block, "y_true")
        # other types are converted, one block at a time
        assert np.shares_memory(values, whole) == (dtype is np.float64)
        assert values.dtype == np.float64
        assert values.size <= BLOCK


@loop_over("n", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
@loop_over("name", CALLS)
def test_an_invalid_last_record_is_found_before_the_spend(name, n):
    y, p = np.random.default_rng(1).random((2, n)).round(1)
    y, budget = y.round(), dp.PrivacyAccountant(1)
    wrong = [(p, math.nan, "contains NaN")]
    if name == "log loss":
        wrong += [(y, 2.0, "not in labels")]
    if name in ("log loss", "mean loss"):
        wrong += [(p, -0.5, r"values in \[0, 1\]|Negative values")]
    for column, value, words in wrong:
        valid, column[-1] = column[-1], value
        with pytest.raises(ValueError, match=words):
            CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
        column[-1] = valid
    assert budget.spent == 0
    CALLS[name](y, p, epsilon=1.0, accountant=budget)
    assert budget.spent == 1
