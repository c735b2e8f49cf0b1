"""The fast path: blocks with buffers, no copies, and the results of the slow way to the bit."""

import math
import tracemalloc
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import NoEntropy

import dp_metrics as dp
from dp_metrics import LossSummary, PrivacyAccountant, VarianceSummary, losses
from dp_metrics._aggregates import LossAggregate, VarianceAggregate
from dp_metrics._exact import BLOCK, UNIT_BITS, in_blocks
from dp_metrics._random import SeededEntropy
from dp_metrics._validation import float_block
from dp_metrics.summaries import LOSS_METRICS

UNIT = 1 << UNIT_BITS
MANY = 2_000_000
MEGABYTE = 1_000_000


# --- memory ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def integers():
    """Return whole numbers that every metric below takes: 0 and 1."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, MANY), rng.integers(0, 2, MANY)


METRICS = {
    "mse": dp.private_mse,
    "mae": dp.private_mae,
    "rmse": dp.private_rmse,
    "pinball": dp.private_mean_pinball_loss,
    "log loss": dp.private_log_loss,
    "brier": dp.private_brier_score_loss,
    "zero-one": dp.private_zero_one_loss,
    "mean loss": lambda y, p, **options: dp.private_mean_loss(p, **options),
    "log loss, 2 columns": dp.private_log_loss,
    "variance": lambda y, p, **options: dp.private_variance(p, **options),
}
FORMS = {
    "float64": lambda a: a.astype(np.float64),
    "float32": lambda a: a.astype(np.float32),
    "int64": lambda a: a,
    "Series": lambda a: pd.Series(a.astype(np.float64)),
}


def peak_of(call):
    """Return the most memory that was in use at once during a call beyond that before it, in bytes."""
    call()  # what is imported or cached by the first call is not of this one
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_the_measurement_sees_an_array_of_the_size_of_the_input():
    assert peak_of(lambda: np.ones(MANY)) >= 8 * MANY


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", METRICS)
def test_peak_memory_beyond_the_inputs_does_not_grow_with_them(name, form, integers):
    y, p = integers
    if name == "log loss, 2 columns":
        p = np.column_stack([1 - p[: MANY // 2], p[: MANY // 2]])
        y = y[: MANY // 2]
        if form == "Series":
            y, p = pd.Series(y), p.astype(np.float64)
    if not (name == "log loss, 2 columns" and form == "Series"):
        y, p = FORMS[form](y), FORMS[form](p)
    peak = peak_of(partial(METRICS[name], y, p, epsilon=1.0))
    assert peak <= (3 if name == "variance" else 2) * MEGABYTE


@pytest.mark.parametrize("kind", ["loss", "variance"])
def test_peak_memory_of_an_update_does_not_grow_with_the_chunk(kind, integers):
    y, p = (a.astype(np.float32) for a in integers)
    for capacity in (1, 1024):
        if kind == "loss":
            peak = peak_of(lambda c=capacity: LossSummary(dp.private_mse, capacity=c).update(y, p))
        else:
            peak = peak_of(lambda c=capacity: VarianceSummary(capacity=c).update(p))
        assert peak <= 2 * MEGABYTE


@pytest.mark.parametrize("order", ["ascending", "descending", "constant"])
def test_peak_memory_does_not_depend_on_the_order_of_the_records(order):
    x = np.linspace(0, 1, MANY) if order != "constant" else np.ones(MANY)
    x = x[::-1].copy() if order == "descending" else x
    assert peak_of(lambda: dp.private_mean_loss(x, epsilon=1.0, max_loss=2.0)) <= 2 * MEGABYTE
    assert peak_of(lambda: dp.private_variance(x, epsilon=1.0)) <= 3 * MEGABYTE


# --- inputs ----------------------------------------------------------------------------------

SMALL = 2 * BLOCK + 77
CALLS = {
    "mse": lambda y, p, **options: dp.private_mse(y, p, **options),
    "mse, bounds": lambda y, p, **options: dp.private_mse(y, p, bounds=(0.25, 0.75), **options),
    "mae": lambda y, p, **options: dp.private_mae(y, p, bounds=(0, 1), **options),
    "rmse": lambda y, p, **options: dp.private_rmse(y, p, **options),
    "pinball": lambda y, p, **options: dp.private_mean_pinball_loss(y, p, alpha=0.3, **options),
    "msle": lambda y, p, **options: dp.private_mean_squared_log_error(y, p, **options),
    "mape": lambda y, p, **options: dp.private_mean_absolute_percentage_error(y, p, max_loss=2, **options),
    "log loss": lambda y, p, **options: dp.private_log_loss(y, p, max_loss=5, **options),
    "brier": lambda y, p, **options: dp.private_brier_score_loss(y, p, **options),
    "zero-one": lambda y, p, **options: dp.private_zero_one_loss(y, p, **options),
    "mean loss": lambda y, p, **options: dp.private_mean_loss(p, max_loss=0.5, **options),
    "mean": lambda y, p, **options: dp.private_mean(p, bounds=(0.25, 0.75), **options),
    "variance": lambda y, p, **options: dp.private_variance(p, **options),
    "variance, bounds": lambda y, p, **options: dp.private_variance(p, bounds=(0.25, 0.75), **options),
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("form", [np.asarray, pd.Series])
def test_contiguous_input_is_read_where_it_is(dtype, form):
    whole = records("zero-one", whole=True)[0].astype(dtype)
    y, p = form(whole), form(whole.copy())
    options = {"private_n": True, "sample_weight": None, "groups": None}
    for name in ("private_mse", "private_log_loss", "private_zero_one_loss", "private_mean_pinball_loss"):
        query = LOSS_METRICS[name].query(y, p, **options)
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
    "Series": pd.Series,
    "nullable Series": lambda a: pd.Series(a, dtype="Float64"),
    "list": lambda a: a.tolist(),
}


@each_call
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_and_type_gives_the_bits_of_contiguous_float64(name, layout):
    y, p = records(name, whole=layout in ("bool", "uint64", "int8"))
    if layout == "broadcast":
        y, p = np.zeros(SMALL), np.ones(SMALL)
        other = [np.broadcast_to(array[0], SMALL) for array in (y, p)]
    else:
        other = [LAYOUTS[layout](array) for array in (y, p)]
    for seed in range(2):
        assert release(name, *other, seed) == release(name, y, p, seed)


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


# --- blocks ----------------------------------------------------------------------------------

SIZES = (1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7)


def assert_aggregate(aggregate, values, capacity, *, cap=None):
    """Compare with Python's own numbers, one record after the other."""
    values = [min(v, cap) for v in values] if cap is not None else values
    ordered = sorted(values)
    assert aggregate.n == len(values)
    assert Fraction(aggregate.total, UNIT) == sum(map(Fraction, values))
    assert aggregate.largest.tolist() == ordered[::-1][:capacity]
    if isinstance(aggregate, VarianceAggregate):
        assert Fraction(aggregate.squares, UNIT**2) == sum(Fraction(v) ** 2 for v in values)
        assert aggregate.smallest.tolist() == ordered[:capacity]
    else:
        assert aggregate.smallest.tolist() == ([] if cap is None else ordered[:capacity])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_at_the_edges_of_blocks_the_sums_and_extremes_are_those_of_brute_force(n, dtype):
    rng = np.random.default_rng(n)
    y, p = rng.normal(size=n).astype(dtype), rng.standard_t(2, size=n).astype(dtype)
    squares = [(b - a) * (b - a) for a, b in zip(y.tolist(), p.tolist(), strict=True)]
    for capacity in (1, 50):
        summary = LossSummary.from_data(dp.private_mse, y, p, capacity=capacity)
        assert_aggregate(summary._aggregate, squares, capacity)
        summary = LossSummary.from_data(dp.private_mean_loss, abs(p), max_loss=1.5, capacity=capacity)
        assert_aggregate(summary._aggregate, abs(p).tolist(), capacity, cap=1.5)
        assert_aggregate(VarianceSummary.from_data(p, capacity=capacity)._aggregate, p.tolist(), capacity)


@pytest.mark.parametrize("n", SIZES)
def test_at_the_edges_of_blocks_several_outputs_are_those_of_brute_force(n):
    rng = np.random.default_rng(n)
    y, p = rng.integers(-99, 99, (2, n, 3)) / 8
    means = [
        (abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2])) / 3.0
        for a, b in zip(y.tolist(), p.tolist(), strict=True)
    ]
    assert_aggregate(LossSummary.from_data(dp.private_mae, y, p, capacity=9)._aggregate, means, 9)


@pytest.mark.parametrize("n", [n for n in SIZES if n > 1])
@pytest.mark.parametrize("name", CALLS)
def test_an_invalid_last_record_is_found_before_the_spend(name, n):
    y, p = records(name, n)
    budget = PrivacyAccountant(1)
    p[-1] = math.nan
    with pytest.raises(ValueError, match=r"contains NaN"):
        CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
    p[-1] = 1.0
    if name in ("log loss", "brier"):
        y[-1] = 2.0
        with pytest.raises(ValueError, match=r"not in labels"):
            CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
        y[-1] = 0.0
    if name in ("log loss", "brier", "mean loss"):
        p[-1] = -0.5
        with pytest.raises(ValueError, match=r"values in \[0, 1\]|Negative values"):
            CALLS[name](y, p, epsilon=1.0, accountant=budget, random_state=NoEntropy())
        p[-1] = 1.0
    assert budget.spent == 0
    CALLS[name](y, p, epsilon=1.0, accountant=budget)
    assert budget.spent == 1


N = 2 * BLOCK + 3000
RAMP = np.arange(N) / 8


def spikes(value):
    x = np.ones(N)
    x[[5, BLOCK - 1, BLOCK, 2 * BLOCK, N - 1]] = value
    return x


ORDERS = {
    "ascending": RAMP,
    "descending": RAMP[::-1].copy(),
    "constant": np.full(N, 0.1),
    "zeros": np.zeros(N),
    "zeros of both signs": np.where(np.arange(N) % 2, 0.0, -0.0),
    "two values": np.where(np.arange(N) % 3, 0.3, 7.1),
    "a few large": spikes(9.7),
    "a few small": spikes(0.2),
    "saw": np.arange(N) % 1000 / 8,
    "large ones first": np.where(np.arange(N) < 1100, 5.3, 1.0),
    "large ones last": np.where(np.arange(N) >= N - 1100, 5.3, 1.0),
    "normal": np.random.default_rng(0).normal(size=N),
    "nearly equal": 1.0 + np.random.default_rng(0).permutation(N) * 2.0**-50,
    "ever larger blocks": RAMP[: BLOCK * 2].reshape(2, BLOCK)[:, ::-1].ravel(),
    "from huge to tiny": 2.0 ** np.linspace(600, -900, N).round(),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("capacity", [1, 2, 1023, 1024, 1025, BLOCK + 1, N, N + 5])
def test_the_right_extremes_are_selected_whatever_the_order(order, capacity):
    x = ORDERS[order]
    ordered = np.sort(x) + 0.0
    for values, largest, smallest in (
        (x, ordered[::-1][:capacity], ordered[:capacity]),
        (-x, 0.0 - ordered[:capacity], 0.0 - ordered[::-1][:capacity]),  # 0.0 - x: without a negative zero
    ):
        aggregate = VarianceAggregate.from_data(values, capacity=capacity)
        assert aggregate.largest.tobytes() == largest.tobytes()
        assert aggregate.smallest.tobytes() == smallest.tobytes()
        assert aggregate.n == x.size
    for cap in (None, 5.0):
        aggregate = LossAggregate.from_data(abs(x), capacity=capacity, cap=cap)
        clipped = np.minimum(np.sort(abs(x)), math.inf if cap is None else cap)
        assert aggregate.largest.tobytes() == clipped[::-1][:capacity].tobytes()
        assert aggregate.smallest.tobytes() == clipped[: 0 if cap is None else capacity].tobytes()


# --- kernels ---------------------------------------------------------------------------------

PAIRS = {
    "squared_error": losses.squared_error,
    "absolute_error": losses.absolute_error,
    "pinball_loss": partial(losses.pinball_loss, alpha=0.3),
    "absolute_percentage_error": losses.absolute_percentage_error,
    "squared_log_error": losses.squared_log_error,
    "poisson_deviance": losses.poisson_deviance,
    "within": losses.within(losses.squared_error, (0.1, 2.5)),
    "averaged": losses.averaged(losses.squared_error, None),
}
WIDE = {  # with their arguments' rows of several columns
    "averaged": losses.averaged(losses.absolute_error, np.array([0.1, 0.2, 0.7])),
    "mean_over_outputs": lambda y, p: losses.mean_over_outputs(losses.squared_error(y, p)),
}
CODED = {
    "log_loss": partial(losses.log_loss, resolution=2.0**-52),
    "brier_loss": partial(losses.brier_loss, half=False),
    "brier_loss, half": partial(losses.brier_loss, half=True),
}
OTHERS = {
    "identity": lambda y, p: losses.identity(p),
    "zero_one_loss": lambda y, p: losses.zero_one_loss(y > p),
    "clamp": lambda y, p: losses.clamp(p, 1.5),
}
NOT_KERNELS = {"brier_loss_cap", "checked", "largest_error", "log_loss_cap"}


def test_every_kernel_is_tried():
    tried = {name.split(",")[0] for table in (PAIRS, WIDE, CODED, OTHERS) for name in table}
    assert tried == {name for name in losses.__all__ if name.islower()} - NOT_KERNELS


def assert_no_place_matters(kernel, *arrays):
    """Compare the losses of all blocks of 1 to 70 records, from any offset, with those of records alone."""
    alone = np.concatenate([kernel(*(a[i : i + 1].copy() for a in arrays)) for i in range(len(arrays[0]))])
    for length in range(1, 71):
        for offset in range(9):
            part = slice(offset, offset + length)
            for block in ([a[part] for a in arrays], [a[part].copy() for a in arrays]):
                assert kernel(*block).tobytes() == alone[part].tobytes()


def numbers(shape):
    rng = np.random.default_rng(7)
    wild = 2.0 ** rng.uniform(-60, 60, shape)
    return np.where(rng.random(shape) < 0.2, wild, rng.gamma(1.0, 1.0, shape))


@pytest.mark.parametrize("name", [*PAIRS, *OTHERS])
def test_a_loss_does_not_depend_on_the_place_of_its_record_in_a_block(name):
    both = numbers((2, 80))
    assert_no_place_matters((PAIRS | OTHERS)[name], *both)


@pytest.mark.parametrize("name", WIDE)
def test_a_loss_of_several_outputs_does_not_depend_on_the_place_of_its_record(name):
    assert_no_place_matters(WIDE[name], *numbers((2, 80, 3)))


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("name", CODED)
def test_a_loss_of_probabilities_does_not_depend_on_the_place_of_its_record(name, columns):
    rng = np.random.default_rng(0)
    p = rng.random((80, columns)) ** rng.integers(1, 40, (80, 1))
    assert_no_place_matters(CODED[name], rng.integers(0, max(columns, 2), 80), p)
