"""Searches for an order statistic from either end: their grid, their laws and what they cost."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import Words, assert_follows, draw_many, loop_over, order_query
from numpy.testing import assert_array_equal

from dp_metrics.inference.loss_intervals import OrderSearch, hazard_miss
from dp_metrics.inputs.options import MAX_FLOAT, Relation
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._laws import mean_absolute_error
from dp_metrics.sensitivity.output_bounds import OutputBounds


def bounds_of(x, k, limit=MAX_FLOAT):
    query = order_query(x, k, limit)
    return query.output_bounds(OrderSearch(), Fraction(1, 100), relation=Relation.REPLACE_ONE)


def test_the_probability_of_a_miss_is_one_less_the_law_of_the_level():
    """Against a search in which every cell has hazard 1: all records at 0, and none to come."""
    bounds = bounds_of([0.0] * 400, 1)
    law = OrderSearch(resolution=1.0).output_distribution(bounds, 1e-10)
    cells = np.array([1, 100, 255, 256, 257, 2000])
    np.testing.assert_allclose(hazard_miss(cells.astype(float)), 1 - law.index_cdf(cells - 1), rtol=1e-6)
    assert_array_equal(hazard_miss(np.array([0.0, np.inf])), [1.0, 0.0])


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
            assert_array_equal(found, wanted)


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
