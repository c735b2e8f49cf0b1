"""Intervals for quantiles: the searches for their limits, their ranks, and how often they miss, exactly."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from helpers import Words, assert_follows, draw_many, loop_over, order_query

import dp_metrics as dp
from dp_metrics.inference.loss_intervals import (
    _CELLS,
    OrderSearch,
    _misses,
    hazard_miss,
    quantile_query,
    rank_searches,
)
from dp_metrics.inputs.arrays import ArgumentShape, Shape
from dp_metrics.inputs.options import MAX_FLOAT, Relation
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._laws import mean_absolute_error
from dp_metrics.mechanisms.hazard import largest_ratio
from dp_metrics.release.count_limits import binomial_law
from dp_metrics.release.result import ReleasedNumbers
from dp_metrics.sensitivity.output_bounds import OutputBounds

USUAL = OrderSearch()


def bounds_of(x, k, limit=MAX_FLOAT, *, search=USUAL, epsilon=Fraction(1, 100)):
    query = order_query(x, k, limit)
    return query.output_bounds(search, epsilon, relation=Relation.REPLACE_ONE)


# ---- searches for an order statistic from either end -------------------------------------------------------


def test_the_probability_of_a_miss_is_one_less_the_law_of_the_level():
    """Against a search in which every cell has hazard 1: all records at 0, and none to come."""
    bounds = bounds_of([0.0] * 400, 1)
    law = OrderSearch(resolution=1.0).output_distribution(bounds, 1e-10)
    cells = np.array([1, 100, 255, 256, 257, 2000])
    np.testing.assert_allclose(hazard_miss(cells.astype(float)), 1 - law.index_cdf(cells - 1), rtol=1e-6)
    np.testing.assert_array_equal(hazard_miss(np.array([0.0, np.inf])), [1.0, 0.0])


def test_a_search_from_above_draws_what_its_law_says():
    x = [0.5, 1.0, 2.0, 2.0, 3.0, 7.0, 8.0, 30.0]
    search = OrderSearch(0.4, downward=True)
    bounds = bounds_of(x, 6, limit=50.0)
    assert_follows(draw_many(search, bounds, 3.0, 2000, seed=3), search.output_distribution(bounds, 3.0))
    assert isinstance(search, Mechanism)


def test_the_runs_from_above_are_those_of_minus_the_outputs_and_the_bounds():
    """Ties of bounds with outputs, with each other and with both ends of the grid count as from below."""
    grid = OrderSearch(1.0).grid(9.0)
    points = grid.points(np.arange(grid.last + 1))
    for x in ([0.0, 0.0, 1.0, 9.0, 9.0], [points[70], points[70], points[300], 5.0, points[-2]], [9.0] * 5):
        for k in range(1, 6):
            bounds = bounds_of(x, k, limit=9.0)
            found = OrderSearch(1.0, downward=True).output_distribution(bounds, 2.0).edges
            first = np.append(-bounds.upper[::-1], -bounds.value)
            above = np.searchsorted(-points[::-1], first, side="left")
            below = np.searchsorted(-points[::-1], -bounds.lower, side="right")
            wanted = np.minimum(np.concatenate([[0], above, below, [grid.last]]), grid.last)
            np.testing.assert_array_equal(found, wanted)


def test_the_law_from_above_is_a_law_of_the_outputs():
    law = OrderSearch(0.4, downward=True).output_distribution(bounds_of([1.0, 2.0, 4.0], 2, limit=9.0), 2.0)
    grid = OrderSearch(0.4).grid(9.0)
    points = grid.points(np.arange(grid.last + 1))
    cdf = law.cdf(points)
    assert (np.diff(cdf) >= 0).all()
    assert cdf[-1] == 1.0
    p = np.linspace(0.001, 0.999, 77)
    quantiles = law.quantile(p)
    assert (law.cdf(quantiles) >= p).all()
    assert (law.cdf(np.nextafter(quantiles, -1)) < p).all()
    mass = np.diff(np.append(0.0, cdf))
    assert mean_absolute_error(law, 2.0) == pytest.approx(mass @ np.abs(points - 2.0), rel=1e-3)


@loop_over("downward", [False, True])
def test_the_first_and_the_last_output_can_be_drawn(downward):
    """The least U halts at the first cell with any hazard; the largest at none, which is the other end."""
    search = OrderSearch(0.4, downward=downward)
    law = search.output_distribution(bounds_of([3.0] * 4, 2, limit=9.0), 400.0)
    ends = [law.release(Words([word] * 8, word)) for word in (0, (1 << 64) - 1)]
    assert sorted(ends) == [0.0, 9.0]
    assert ends == ([9.0, 0.0] if downward else [0.0, 9.0])


def test_only_order_statistics_of_numbers_from_0_on():
    search = OrderSearch()
    for change in ({"monotonic": False}, {"output_range": (-1.0, 9.0)}):
        public = {"monotonic": True, "output_range": (0.0, 9.0), "n": 1, **change}
        with pytest.raises(ValueError, match="for order statistics"):
            search.output_distribution(OutputBounds(1.0, np.array([0.0]), np.array([2.0]), **public), 1.0)


# ---- their limits of a quantile ----------------------------------------------------------------------------


def limit_misses(losses, below, rank, search, epsilon, cells=_CELLS):
    """Return the exact probability that a limit misses a quantile, for data of two values.

    As the quantile count all numbers from the first value up to the second: the worst is the first for the
    lower limit, the second for the upper one.
    """
    bounds = bounds_of(np.sort(losses), rank, search=search, epsilon=epsilon)
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


def total_miss(n, epsilon, downward, low, high, q=0.5, cells=_CELLS, rank=None):
    """Return the exact miss of one limit, summed over how many records have either value, and its bound.

    And the bound of the limit that is a rank nearer. With a rank the limit is that of the value of these
    records, of which the worst are tried: those beyond that value are all far off.
    """
    part, search = rank_searches(n, q, Fraction(epsilon), miss=0.05, limit=MAX_FLOAT, rank=rank)[downward]
    half, own, worst = Fraction(epsilon) / 2, part.rank(n), high if downward else low
    x, probabilities = binomial_law(n, q)
    if rank is not None:
        x, probabilities = np.array([rank - 1.0 if downward else rank]), np.ones(1)
    found = 0.0
    for below, probability in zip(x.astype(int), probabilities, strict=True):
        if probability > 1e-9:
            losses = [low] * below + [high] * (n - below)
            found += probability * limit_misses(losses, worst, own, search, half, cells)
    # the number of records that are not below the quantile is what counts for the upper limit
    chosen, beyond = (n + 1 - own, n - x) if downward else (own, x)
    bounds = (bounds_of_misses(search, half, n, one, beyond) for one in (chosen, chosen + 1))
    return found, *(float(probabilities @ of_rank) for of_rank in bounds)


@loop_over("downward", [0, 1])
@loop_over(
    ("n", "epsilon", "q", "high", "rank"),
    [
        *itertools.product((300,), (1, 3), (0.5,), (1.0, 1e12), (None,)),
        *itertools.product((1000,), ("0.3",), (0.5,), (1.0, 1e12), (None, 500)),
        *itertools.product((300,), (1,), (0.5,), (1.0, 1e12), (150,)),
        *itertools.product((301,), (6,), (0.5,), (1.0, 1e12), (151,)),
        (3000, 3, 0.9, 1e12, None),
    ],
)
def test_exact_miss_on_two_values_is_the_bound(n, epsilon, q, high, rank, downward):
    found, bound, one_more = total_miss(n, epsilon, downward, 1e-5, high, q=q, rank=rank)
    assert 0.95 * bound <= found <= bound + 1e-8
    assert 0.015 * (q == 0.9) <= bound <= 0.025 < one_more  # no rank is nearer


def test_one_cell_less_would_miss_more_than_the_bound():
    misses = [total_miss(300, 3, downward, 1e-5, 1e12, cells=_CELLS - 1) for downward in (0, 1)]
    assert any(found > bound + 1e-6 for found, bound, _ in misses)


def test_where_few_records_lie_beyond_the_rank_empty_cells_halt_the_search_and_less_is_missed():
    found, bound, _ = total_miss(1000, 1, 1, 1e-5, 1e12, q=0.9)
    assert found < 0.2 * bound


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
