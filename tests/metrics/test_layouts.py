"""Whatever the type and layout of an array in memory, a release has the bits of contiguous float64."""

import math

import numpy as np
import pandas as pd
import pytest
from helpers import NoEntropy, loop_over, seeded

import dp_metrics as dp
from dp_metrics.inputs.records import float_block
from dp_metrics.metrics import METRICS
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

SIZE = 2 * BLOCK + 77
CALLS = {
    "mse": lambda y, p, **options: dp.private_mse(y, p, bounds=(0.25, 0.75), **options),
    "log loss": lambda y, p, **options: dp.private_log_loss(y, p, max_loss=5, **options),
    "zero-one": lambda y, p, **options: dp.private_zero_one_loss(y, p, **options),
    "mean loss": lambda y, p, **options: dp.private_mean_loss(p, max_loss=0.5, **options),
    "variance": lambda y, p, **options: dp.private_variance(p, **options),
    "summary": lambda y, p, **options: dp.LossSummary.from_data(dp.private_mse, y, p).release(**options),
}


def records(name, n=SIZE, whole=False):
    """Return labels, and numbers in (0, 1) that are exact in float16, or whole ones if asked for."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n).astype(np.float64)
    whole = whole or name == "zero-one"
    # scikit-learn clips probabilities of 0 and 1 by the float type; these are too far from both
    return y, rng.integers(0, 2, n).astype(np.float64) if whole else rng.integers(1, 128, n) / 128


def release(name, y, p):
    return CALLS[name](y, p, epsilon=1.0, random_state=seeded())


@loop_over("dtype", [np.float64, np.float32, np.int64, np.bool_])
@loop_over("form", [np.asarray, pd.Series])
def test_contiguous_input_is_read_where_it_is_and_never_written_to(dtype, form):
    whole = records("zero-one")[0].astype(dtype)
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


def spaced(a):
    wide = np.full((a.size, 3), 99.0)
    wide[:, 1] = a
    return wide[:, 1]


LAYOUTS = {
    "strided": spaced,
    "a column of a C array": lambda a: np.column_stack([a, a])[:, :1],
    "a column of a Fortran array": lambda a: np.asfortranarray(np.column_stack([a, a]))[:, 0],
    "big endian": lambda a: a.astype(">f8"),
    "big endian, float32": lambda a: a.astype(">f4"),
    "not aligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), dtype=np.uint8)[1:].view(np.float64),
    "float16": lambda a: a.astype(np.float16),
    "strided float32": lambda a: np.repeat(a.astype(np.float32), 2)[::2],
    "bool": lambda a: a.astype(bool),
    "uint64": lambda a: a.astype(np.uint64),
    "int8": lambda a: a.astype(np.int8),
    "objects": lambda a: a.astype(object),
    "long double": lambda a: a.astype(np.longdouble),
    "column vector": lambda a: a[:, np.newaxis],
    "data frame of one column": lambda a: pd.DataFrame({"a": a}),
    "nullable Series": lambda a: pd.Series(a, dtype="Float64"),
    "tuple": tuple,
    "list of NumPy numbers": lambda a: [*a],
}


@loop_over("layout", LAYOUTS)
@loop_over("name", CALLS)
def test_every_layout_and_type_gives_the_bits_of_contiguous_float64(layout, name):
    y, p = records(name, whole=layout in ("bool", "uint64", "int8"))
    other = [LAYOUTS[layout](array) for array in (y, p)]
    assert release(name, *other) == release(name, y, p)


def test_one_number_that_is_broadcast_is_as_good_as_many():
    for name in CALLS:
        one = [np.broadcast_to(np.float64(value), SIZE) for value in (0.0, 1.0)]
        assert release(name, *one) == release(name, np.zeros(SIZE), np.ones(SIZE)), name


COLUMNS = {
    "F": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "big endian": lambda a: a.astype(">f8"),
    "reversed columns": lambda a: a[:, ::-1].copy()[:, ::-1],
}


@loop_over("layout", COLUMNS)
@loop_over("options", [{}, {"multioutput": [0.1, 0.2, 0.7]}, {"bounds": (-1, 1)}])
def test_every_layout_of_several_columns_gives_the_bits_of_a_contiguous_array(layout, options):
    rng, convert = np.random.default_rng(0), COLUMNS[layout]
    y, p = rng.integers(-9, 9, (2, BLOCK + 5, 3)) / 4
    settings = {"epsilon": 1.0, **options}
    for metric in (dp.private_mse, dp.private_mae):
        expected = metric(y, p, random_state=seeded(), **settings)
        assert metric(convert(y), convert(p), random_state=seeded(), **settings) == expected
    labels, proba = rng.integers(0, 3, BLOCK + 5), rng.dirichlet([1, 1, 1], BLOCK + 5)
    for metric in (dp.private_log_loss, dp.private_brier_score_loss):
        expected = metric(labels, proba, epsilon=1.0, random_state=seeded())
        assert metric(labels, convert(proba), epsilon=1.0, random_state=seeded()) == expected


@loop_over("n", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
@loop_over("name", CALLS)
def test_an_invalid_last_record_is_found_before_the_spend(name, n):
    (y, p), budget = records(name, n), dp.PrivacyAccountant(1)
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
