"""Whatever the type and layout of an array in memory, a release has the bits of contiguous float64."""

import math

import numpy as np
import pandas as pd
import pytest
from helpers import NoEntropy, loop_over

import dp_metrics as dp
from dp_metrics import LossSummary, PrivacyAccountant
from dp_metrics._random import SeededEntropy
from dp_metrics.inputs.records import float_block
from dp_metrics.metrics import METRICS
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

SMALL = 2 * BLOCK + 77
CALLS = {
    "mse": lambda y, p, **options: dp.private_mse(y, p, **options),
    "mse, bounds": lambda y, p, **options: dp.private_mse(y, p, bounds=(0.25, 0.75), **options),
    "pinball": lambda y, p, **options: dp.private_mean_pinball_loss(y, p, alpha=0.3, **options),
    "msle": lambda y, p, **options: dp.private_mean_squared_log_error(y, p, **options),
    "log loss": lambda y, p, **options: dp.private_log_loss(y, p, max_loss=5, **options),
    "zero-one": lambda y, p, **options: dp.private_zero_one_loss(y, p, **options),
    "mean loss": lambda y, p, **options: dp.private_mean_loss(p, max_loss=0.5, **options),
    "mean": lambda y, p, **options: dp.private_mean(p, bounds=(0.25, 0.75), **options),
    "variance": lambda y, p, **options: dp.private_variance(p, **options),
    "mse, summary": lambda y, p, **options: LossSummary.from_data(dp.private_mse, y, p).release(**options),
}
each_call = pytest.mark.parametrize("name", CALLS)


def records(name, n=SMALL, whole=False):
    """Return labels, and numbers in (0, 1) that are exact in float16, or whole ones if asked for."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n).astype(np.float64)
    whole = whole or name == "zero-one"
    # scikit-learn clips probabilities of 0 and 1 by the float type; these are too far from both
    return y, rng.integers(0, 2, n).astype(np.float64) if whole else rng.integers(1, 128, n) / 128


def release(name, y, p, seed=3):
    return CALLS[name](y, p, epsilon=1.0, random_state=SeededEntropy(seed))


@each_call
def test_inputs_are_never_written_to(name):
    data = records(name)
    copies = [array.copy() for array in data]
    expected = release(name, *data)
    for array, copy in zip(data, copies, strict=True):
        assert array.tobytes() == copy.tobytes()
        array.flags.writeable = False
    assert release(name, *data) == expected
    series = [pd.Series(array) for array in data]
    assert release(name, *series) == expected


@loop_over("dtype", [np.float64, np.float32, np.int64, np.bool_])
@loop_over("form", [np.asarray, pd.Series])
def test_contiguous_input_is_read_where_it_is(dtype, form):
    whole = records("zero-one", whole=True)[0].astype(dtype)
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
    "backwards": lambda a: a[::-1].copy()[::-1],
    "a column of a C array": lambda a: np.column_stack([a, a])[:, :1],
    "a column of a Fortran array": lambda a: np.asfortranarray(np.column_stack([a, a]))[:, 0],
    "broadcast": None,
    "big endian": lambda a: a.astype(">f8"),
    "big endian, float32": lambda a: a.astype(">f4"),
    "not aligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), dtype=np.uint8)[1:].view(np.float64),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "strided float32": lambda a: np.repeat(a.astype(np.float32), 2)[::2],
    "bool": lambda a: a.astype(bool),
    "uint64": lambda a: a.astype(np.uint64),
    "int8": lambda a: a.astype(np.int8),
    "objects": lambda a: a.astype(object),
    "long double": lambda a: a.astype(np.longdouble),
    "column vector": lambda a: a[:, np.newaxis],
    "data frame of one column": lambda a: pd.DataFrame({"a": a}),
    "Series": pd.Series,
    "Series with another index": lambda a: pd.Series(a, index=range(len(a), 0, -1)),
    "nullable Series": lambda a: pd.Series(a, dtype="Float64"),
    "list": lambda a: a.tolist(),
    "tuple": tuple,
    "list of NumPy numbers": lambda a: [*a],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_and_type_gives_the_bits_of_contiguous_float64(layout):
    for name in CALLS:
        y, p = records(name, whole=layout in ("bool", "uint64", "int8"))
        if layout == "broadcast":
            y, p = np.zeros(SMALL), np.ones(SMALL)
            other = [np.broadcast_to(array[0], SMALL) for array in (y, p)]
        else:
            other = [LAYOUTS[layout](array) for array in (y, p)]
        assert release(name, *other) == release(name, y, p), name


@pytest.mark.parametrize("layout", ["C", "F", "strided", "float32", "big endian"])
def test_every_layout_of_several_outputs_gives_the_bits_of_a_contiguous_array(layout):
    rng = np.random.default_rng(0)
    y, p = rng.integers(-9, 9, (2, BLOCK + 5, 3)) / 4
    convert = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        "float32": lambda a: a.astype(np.float32),
        "big endian": lambda a: a.astype(">f8"),
    }[layout]
    for metric in (dp.private_mse, dp.private_mae):
        for options in ({}, {"multioutput": [0.1, 0.2, 0.7]}, {"bounds": (-1, 1)}):
            expected, got = (
                metric(*data, epsilon=1.0, random_state=SeededEntropy(1), **options)
                for data in ((y, p), (convert(y), convert(p)))
            )
            assert got == expected


@pytest.mark.parametrize("layout", ["F", "strided", "big endian", "reversed columns"])
def test_every_layout_of_probabilities_gives_the_bits_of_a_contiguous_array(layout):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, BLOCK + 5), rng.dirichlet([1, 1, 1], BLOCK + 5)
    other = {
        "F": np.asfortranarray,
        "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        "big endian": lambda a: a.astype(">f8"),
        "reversed columns": lambda a: a[:, ::-1].copy()[:, ::-1],
    }[layout](p)
    for metric in (dp.private_log_loss, dp.private_brier_score_loss):
        expected, got = (metric(y, a, epsilon=1.0, random_state=SeededEntropy(1)) for a in (p, other))
        assert got == expected


@loop_over("n", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
@pytest.mark.parametrize("name", CALLS)
def test_an_invalid_last_record_is_found_before_the_spend(name, n):
    y, p = records(name, n)
    budget = PrivacyAccountant(1)
    p[-1] = math.nan
    with pytest.raises(ValueError, match=r"contains NaN"):
        CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
    p[-1] = 1.0
    if name == "log loss":
        y[-1] = 2.0
        with pytest.raises(ValueError, match=r"not in labels"):
            CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
        y[-1] = 0.0
    if name in ("log loss", "mean loss"):
        p[-1] = -0.5
        with pytest.raises(ValueError, match=r"values in \[0, 1\]|Negative values"):
            CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
        p[-1] = 1.0
    assert budget.spent == 0
    CALLS[name](y, p, epsilon=1.0, accountant=budget)
    assert budget.spent == 1
