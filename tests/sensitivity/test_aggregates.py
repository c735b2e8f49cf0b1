"""What is kept of records: their number, exact sums and the most extreme, whatever the order."""

import math

import numpy as np
import pytest
from helpers import aggregate_of, loop_over, loss_query

from dp_metrics.inputs.arrays import BLOCK
from dp_metrics.sensitivity.exact import exact_moments, exact_sum, to_units
from dp_metrics.sensitivity.output_bounds import FINENESS, order_statistic_bounds
from dp_metrics.sensitivity.score_bounds import calibration_sums
from dp_metrics.sensitivity.variance_bounds import variance_sums

N = 2 * BLOCK + 3000
RAMP, AT, NORMAL = np.arange(N) / 8, np.arange(N), np.random.default_rng(0).normal(size=N)
ORDERS = {
    "ascending": RAMP,
    "descending": RAMP[::-1].copy(),
    "constant": np.full(N, 0.1),
    "zeros of both signs": np.where(AT % 2, 0.0, -0.0),
    "two values": np.where(AT % 3, 0.3, 7.1),
    "a few large": np.where(np.isin(AT, [5, BLOCK - 1, BLOCK, 2 * BLOCK, N - 1]), 9.7, 1.0),
    "saw": AT % 1000 / 8,
    "large ones first": np.where(AT < 1100, 5.3, 1.0),
    "large ones last": np.where(AT >= N - 1100, 5.3, 1.0),
    "normal": NORMAL,
    "nearly equal": 1.0 + np.random.default_rng(0).permutation(N) * 2.0**-50,
    "ever larger blocks": RAMP[: BLOCK * 2].reshape(2, BLOCK)[:, ::-1].ravel(),
    "from huge to tiny": 2.0 ** np.linspace(600, -900, 4000).round(),  # summed one by one
    # the last ones have to be clipped
    **{
        f"the end of a block of {size}": np.append(NORMAL[: size - 2], [9.7, -9.8])
        for size in (BLOCK - 1, BLOCK, BLOCK + 1)
    },
}


def loss_stats(x, capacity, cap=None, *, forget=True):
    """Return the stats of a mean that keep so many of the extreme losses, and of all others sums by level."""
    return loss_query(abs(x), cap).stats(capacity, forget=forget)


@loop_over("order", ORDERS)
def test_sums_are_exact_and_the_right_extremes_are_selected_whatever_the_order(order):
    x = ORDERS[order]
    sizes, (total, squares) = np.sort(abs(x)), exact_moments(x)
    for capacity in (1, 2, 1023, 1024, 1025, BLOCK + 1, N, N + 5):
        for values, sign in ((x, 1), (-x, -1)):
            aggregate, ordered = aggregate_of(values, capacity=capacity), np.sort(values) + 0.0
            assert (aggregate.n, aggregate.total, aggregate.squares) == (x.size, sign * total, squares)
            assert aggregate.largest.tobytes() == ordered[::-1][:capacity].tobytes()
            assert aggregate.smallest.tobytes() == ordered[:capacity].tobytes()
        for cap in (None, 5.0):
            stats = loss_stats(x, capacity, cap)
            clipped = np.minimum(sizes, math.inf if cap is None else cap)
            assert (stats.totals.n, stats.total) == (x.size, exact_sum(clipped))
            assert stats.largest.tobytes() == clipped[::-1][:capacity].tobytes()
            left = (cap or 0.0) - clipped[: 0 if cap is None else capacity]
            assert stats.headroom[0].tobytes() == left.tobytes()
    assert loss_stats(x, 50, 5.0, forget=False).total == loss_stats(x, 50, 5.0).total


@loop_over(
    "bounds",
    [(0.0, 1.0), (12.0, 13.0), (1e9 / 3, 1e9), (-1e9, -1e9 / 3), (-1e9, 1e9), (10.0, 20.0), (15.0, 99.0)],
)
def test_values_are_clipped_on_whichever_side_of_the_bounds_they_lie(bounds):
    x = np.linspace(10, 20, 3000)
    found = aggregate_of(x, capacity=5, bounds=bounds)
    clipped = np.clip(x, *bounds)
    assert found.total == exact_sum(clipped)
    assert found.squares == sum(unit**2 for unit in to_units(clipped))
    np.testing.assert_array_equal(found.largest, np.sort(clipped)[::-1][:5])
    np.testing.assert_array_equal(found.smallest, np.sort(clipped)[:5])


@loop_over("k", [1, 2, 7, 8, 9, 50, 93, 94, 100])
def test_fewer_ranks_of_an_order_statistic_are_the_first_of_many(k):
    x = np.random.default_rng(k).random(100)
    ordered = np.sort(x)
    bounds, all_bounds = (order_statistic_bounds(x, k, ranks, 1.0) for ranks in (7, 1000))
    assert bounds.value == all_bounds.value == ordered[k - 1]
    np.testing.assert_array_equal(all_bounds.lower, [*ordered[: k - 1][::-1], *[0.0] * (101 - k)])
    np.testing.assert_array_equal(all_bounds.upper, [*ordered[k:], *[1.0] * k])
    np.testing.assert_array_equal(bounds.lower, all_bounds.lower[:7])
    np.testing.assert_array_equal(bounds.upper, all_bounds.upper[:7])


# ---- sums that tell a metric of a private number of records, and how far a record moves them --------------


def sums_of(x, width=1.0):
    return variance_sums(aggregate_of(np.array(x), capacity=1, bounds=(0.0, width)))


def test_a_record_moves_the_three_sums_by_their_sensitivity_at_most_and_attains_it():
    rng, moved = np.random.default_rng(0), []
    for _ in range(500):
        # the last sum is just below a whole step, and a record near the other end takes it there: two of the
        # sums are rounded so that the third pays for both
        x = [rng.random() * 2e-7, np.sqrt((rng.integers(1, 10**6) - rng.random() * 1e-9) / FINENESS)]
        more, less = sums_of(x), sums_of(x[1:])
        moved.append(sum(abs(a - b) for a, b in zip(more.values, less.values, strict=True)))
    assert max(moved) == more.sensitivity == FINENESS + 2


def test_all_sums_together_tell_the_number_of_records():
    for n in range(4):
        mean = loss_query(np.ones(n), 1.0)
        made = [mean.quantity.sums(mean.stats()), sums_of([0.3] * n), calibration_sums(n << 1073, n)]
        assert [sum(one.values) for one in made] == [n * one.fineness for one in made]


@loop_over("width", [1.0, 3.0, 1e150])
def test_noisy_sums_tell_no_more_variance_than_their_mean_allows(width):
    # one record at 0, minus one in the middle, three at the upper end: the mean is 5/6
    sums = (np.array([part * float(FINENESS)]) for part in (1, -1, 3))
    found = sums_of([0.0, width], width).combine(*sums)
    assert found[0] == pytest.approx(5 / 36 * width**2)
