"""Intervals for quantiles: their ranks, how often they miss, exactly, and what they refuse."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from helpers import loop_over, order_query

import dp_metrics as dp
from dp_metrics.inference.loss_intervals import _CELLS, _misses, quantile_query, rank_searches
from dp_metrics.inputs.arrays import ArgumentShape, Shape
from dp_metrics.inputs.options import MAX_FLOAT, Relation
from dp_metrics.mechanisms.hazard import largest_ratio
from dp_metrics.release.count_limits import binomial_law
from dp_metrics.release.result import ReleasedNumbers


def limit_misses(losses, below, rank, search, epsilon, cells=_CELLS):
    """Return the exact probability that a limit misses a quantile, for data of two values.

    As the quantile count all numbers from the first value up to the second: the worst is the first for the
    lower limit, the second for the upper one.
    """
    x = np.sort(np.asarray(losses))
    query = order_query(x, rank, MAX_FLOAT)
    bounds = query.output_bounds(search, epsilon, relation=Relation.REPLACE_ONE)
    law, grid = search.output_distribution(bounds, epsilon), search.grid(MAX_FLOAT)
    if search.downward:
        # the upper limit is below it if the output is `cells` or more below the last point that is
        last = int(grid.index_at_least(np.array([below]))[0]) - 1
        return float(law.cdf(grid.points(np.array([last - cells])))[0])
    first = int(grid.index_above(np.array([below]))[0])
    return 1.0 - float(law.index_cdf(np.array([first + cells - 1]))[0])


def bounds_of_misses(search, epsilon, n, rank, beyond):
    """Return bounds of the misses of a limit of this rank where so many records lie beyond the quantile."""
    ranks = search.count_ranks(epsilon, n=n, monotonic=True, output_range=(0.0, MAX_FLOAT))
    return _misses(rank, beyond, largest_ratio(epsilon / 4), ranks)


def total_miss(n, epsilon, downward, low, high, q=0.5, cells=_CELLS):
    """Return the exact miss of one limit, summed over how many records have either value, and its bound."""
    part, search = rank_searches(n, q, Fraction(epsilon), miss=0.05, limit=MAX_FLOAT)[downward]
    half, rank, worst = Fraction(epsilon) / 2, part.rank(n), high if downward else low
    x, probabilities = binomial_law(n, q)
    found = 0.0
    for below, probability in zip(x.astype(int), probabilities, strict=True):
        if probability > 1e-9:
            losses = [low] * below + [high] * (n - below)
            found += probability * limit_misses(losses, worst, rank, search, half, cells)
    # the number of records that are not below the quantile is what counts for the upper limit
    chosen, beyond = (n + 1 - rank, n - x) if downward else (rank, x)
    return found, float(probabilities @ bounds_of_misses(search, half, n, chosen, beyond))


@loop_over("downward", [0, 1])
@loop_over(("n", "epsilon"), [(300, 1), (1000, "0.3"), (301, 6)])
@loop_over("high", [1.0, 1e12])
def test_exact_miss_of_the_median_of_these_records_is_the_bound(n, epsilon, high, downward):
    rank = (n + 1) // 2
    part, search = rank_searches(n, 0.5, Fraction(epsilon), miss=0.05, limit=MAX_FLOAT, rank=rank)[downward]
    half, of_part = Fraction(epsilon) / 2, part.rank(n)
    # the worst records for either limit: those beyond the median are all far off
    below = rank - 1 if downward else rank
    losses = [1e-5] * below + [high] * (n - below)
    found = limit_misses(losses, high if downward else 1e-5, of_part, search, half, _CELLS)
    chosen, beyond = (n + 1 - of_part, n - below) if downward else (of_part, below)
    (bound,), (one_more,) = (
        bounds_of_misses(search, half, n, rank, np.array([float(beyond)])) for rank in (chosen, chosen + 1)
    )
    assert 0.95 * bound <= found <= bound + 1e-8
    assert bound <= 0.025 < one_more  # no rank is nearer


@loop_over("downward", [0, 1])
@loop_over(
    ("n", "epsilon", "q", "high"),
    [
        *itertools.product((300,), (1, 3), (0.5,), (1.0, 1e12)),
        *itertools.product((1000,), ("0.3",), (0.5,), (1.0, 1e12)),
        (3000, 3, 0.9, 1e12),
    ],
)
def test_exact_miss_on_two_values_is_the_bound(n, epsilon, q, high, downward):
    found, bound = total_miss(n, epsilon, downward, 1e-5, high, q=q)
    assert 0.95 * bound <= found <= bound + 1e-8
    assert 0.015 * (q == 0.9) <= bound <= 0.025


def test_one_cell_less_would_miss_more_than_the_bound():
    misses = [total_miss(300, 3, downward, 1e-5, 1e12, cells=_CELLS - 1) for downward in (0, 1)]
    assert any(found > bound + 1e-6 for found, bound in misses)


def test_where_few_records_lie_beyond_the_rank_empty_cells_halt_the_search_and_less_is_missed():
    found, bound = total_miss(1000, 1, 1, 1e-5, 1e12, q=0.9)
    assert found < 0.2 * bound


@loop_over(
    ("n", "q", "epsilon"),
    [(1000, 0.9, "1"), *((n, 0.5, epsilon) for n in (300, 10_000) for epsilon in ("0.1", "0.3", "1", "3"))],
)
def test_ranks_are_the_best_that_the_bound_allows(n, q, epsilon):
    (lower, search), (upper, _) = rank_searches(n, q, Fraction(epsilon), miss=0.05, limit=MAX_FLOAT)
    x, probabilities = binomial_law(n, q)
    chosen, next_one = (
        probabilities @ bounds_of_misses(search, Fraction(epsilon) / 2, n, lower.rank(n) + more, x)
        for more in (0, 1)
    )
    assert chosen <= 0.025 < next_one
    assert q != 0.5 or upper.rank(n) == n + 1 - lower.rank(n)


def released(values, n, q=0.5, **options):
    query = quantile_query(Shape((ArgumentShape(),), n), q=q, epsilon=Fraction(1), **options)
    return query, query.reading(ReleasedNumbers(values, n, float(n), Fraction(1), Relation.REPLACE_ONE))


def test_limits_lie_320_points_beyond_the_outputs_of_the_searches():
    query, _ = released((1.0, 1.0), 1000)
    grid = query.mechanisms[0].grid(MAX_FLOAT)
    points = grid.points(np.array([5000, 5320, 9000, 9320]))
    _, interval = released((points[1], points[2]), 1000)
    assert (interval.lower, interval.upper) == (points[0], points[3])
    assert interval.about.startswith("The 0.5 quantile of the loss among all people like these")
    near_zero, near_top = grid.points(np.array([319, grid.last - 320]))
    _, interval = released((near_zero, near_top), 1000)
    assert (interval.lower, interval.upper) == (0.0, math.inf)
    just_below = grid.points(np.array([grid.last - 321]))[0]
    assert released((near_zero, just_below), 1000)[1].upper < math.inf


def test_with_a_cap_it_is_the_last_limit_and_limits_that_cross_are_put_in_order():
    _, interval = released((3.0, 3.0), 1000, max_loss=3.0)
    assert 2.0 < interval.lower < interval.upper == 3.0
    assert "clipped to max_loss" in interval.about
    _, interval = released((1e6, 1e-3), 1000)
    assert interval.lower < interval.upper


def test_few_records_allow_one_limit_or_none():
    lower_only = rank_searches(40, 0.99, Fraction(3), miss=0.05, limit=MAX_FLOAT)
    assert [search.downward for _, search in lower_only] == [False]
    upper_only = rank_searches(40, 0.01, Fraction(3), miss=0.05, limit=MAX_FLOAT)
    assert [search.downward for _, search in upper_only] == [True]
    x, probabilities = binomial_law(40, 0.99)
    misses = probabilities @ _misses(lower_only[0][0].rank(40), x, largest_ratio(Fraction(3, 4)), 40)
    assert 0.02 < misses <= 0.05  # all of epsilon, and all of what may be missed
    _, interval = released((1.0,), 60, q=0.99)
    assert interval.upper == math.inf
    assert interval.note == "There are too few records for an upper limit."
    _, interval = released((1.0,), 60, q=0.01, max_loss=2.0)
    assert interval.lower == 0.0
    assert interval.note == "There are too few records for a lower limit."


@loop_over(
    ("n", "q", "max_loss", "least"),
    [
        (299, 0.5, None, 150), (159, 0.5, 9.0, 80),
        (1499, 0.9, None, 750), (799, 0.9, 9.0, 400), (14_999, 0.99, None, 7500),
        (799, 0.1, None, 400), (799, 0.1, 9.0, 400),
    ],
)  # fmt: skip
def test_a_useless_limit_is_said_beforehand_from_public_numbers(n, q, max_loss, least):
    """What counts is how many records lie beyond the quantile: at q = 0.99 it was silent once."""
    with pytest.warns(dp.exceptions.NoisyReleaseWarning, match=f"Below {least} a"):
        dp.private_quantile_interval(np.ones(n), q, epsilon=1.0, max_loss=max_loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.private_quantile_interval(np.ones(n + 1), q, epsilon=1.0, max_loss=max_loss)
