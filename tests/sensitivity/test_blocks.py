"""Sums and extremes of records that are read in blocks."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import aggregate_of

import dp_metrics as dp
from dp_metrics import LossSummary, VarianceSummary
from dp_metrics.sensitivity.aggregates import CountAggregate, LossAggregate, VarianceAggregate
from dp_metrics.sensitivity.exact import BLOCK, UNIT_BITS

UNIT = 1 << UNIT_BITS
SIZES = (1, BLOCK - 1, BLOCK, BLOCK + 1, pytest.param(3 * BLOCK + 7, marks=pytest.mark.slow))


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
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_at_the_edges_of_blocks_the_sums_and_extremes_are_those_of_brute_force(n, dtype):
    rng = np.random.default_rng(n)
    y, p = rng.normal(size=n).astype(dtype), rng.standard_t(2, size=n).astype(dtype)
    squares = [(b - a) * (b - a) for a, b in zip(y.tolist(), p.tolist(), strict=True)]
    for capacity in (1, 50):
        summary = LossSummary.from_data(dp.private_mse, y, p, capacity=capacity)
        assert_aggregate(aggregate_of(summary), squares, capacity)
        summary = LossSummary.from_data(dp.private_mean_loss, abs(p), max_loss=1.5, capacity=capacity)
        assert_aggregate(aggregate_of(summary), abs(p).tolist(), capacity, cap=1.5)
        assert_aggregate(aggregate_of(VarianceSummary.from_data(p, capacity=capacity)), p.tolist(), capacity)


@pytest.mark.parametrize("n", SIZES)
def test_at_the_edges_of_blocks_several_outputs_are_those_of_brute_force(n):
    rng = np.random.default_rng(n)
    y, p = rng.integers(-99, 99, (2, n, 3)) / 8
    means = [
        (abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2])) / 3.0
        for a, b in zip(y.tolist(), p.tolist(), strict=True)
    ]
    assert_aggregate(aggregate_of(LossSummary.from_data(dp.private_mae, y, p, capacity=9)), means, 9)


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
def test_the_right_extremes_are_selected_whatever_the_order(order):
    x = ORDERS[order]
    ordered, sizes = np.sort(x) + 0.0, np.sort(abs(x))
    for capacity in (1, 2, 1023, 1024, 1025, BLOCK + 1, N, N + 5):
        for values, largest, smallest in (
            (x, ordered[::-1][:capacity], ordered[:capacity]),
            (-x, 0.0 - ordered[:capacity], 0.0 - ordered[::-1][:capacity]),  # 0.0 - x has no negative zero
        ):
            aggregate = VarianceAggregate.from_data(values, capacity=capacity)
            assert aggregate.largest.tobytes() == largest.tobytes()
            assert aggregate.smallest.tobytes() == smallest.tobytes()
            assert aggregate.n == x.size
        for cap in (None, 5.0):
            aggregate = LossAggregate.from_data(abs(x), capacity=capacity, cap=cap)
            clipped = np.minimum(sizes, math.inf if cap is None else cap)
            assert aggregate.largest.tobytes() == clipped[::-1][:capacity].tobytes()
            assert aggregate.smallest.tobytes() == clipped[: 0 if cap is None else capacity].tobytes()


def test_every_block_is_clipped_into_the_bounds():
    x = np.zeros(2 * BLOCK + 5)
    x[BLOCK], x[-1] = -100.0, 100.0
    aggregate = VarianceAggregate.from_data(x, capacity=3, bounds=(0.0, 1.0))
    assert (aggregate.total, aggregate.squares) == (UNIT, UNIT**2)
    assert (aggregate.largest.tolist(), aggregate.smallest.tolist()) == ([1.0, 0.0, 0.0], [0.0] * 3)


def test_merged_counts_have_the_records_of_both():
    merged = CountAggregate(n=3, counts=np.array([1.0, 2.0])).merge(
        CountAggregate(n=2, counts=np.array([0.0, 2.0]))
    )
    assert (merged.n, merged.counts.tolist()) == (5, [1.0, 4.0])
