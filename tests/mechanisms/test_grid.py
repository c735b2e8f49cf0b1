"""Grids of outputs: exact on floats, and the same outputs one by one and together."""

import math
from itertools import product

import numpy as np
import pytest
from helpers import MAX, loop_over, loss_bounds, scores, var_bounds

from dp_metrics.mechanisms._laws import EvenGrid, GeometricGrid, run_edges
from dp_metrics.sensitivity.output_bounds import OutputBounds

pytestmark = pytest.mark.usefixtures("own_error_state")

SMALL = {
    "geometric": GeometricGrid(scale=1e-3, step=0.05, limit=2.5),
    "geometric from 1": GeometricGrid(scale=1.0, step=math.log(1.005), limit=100.0, first=1),
    "geometric of some size": GeometricGrid(scale=1.0, step=0.5, limit=MAX, first=2, size=30),
    "geometric to the largest float": GeometricGrid(scale=1e-6, step=1.7, limit=MAX),
    "geometric of 2 points": GeometricGrid(scale=1.0, step=0.5, limit=0.1),
    "geometric, limit a grid point": GeometricGrid(scale=1.0, step=math.log(2), limit=15.0),
    "even": EvenGrid(-0.1, 0.7, 200),
    "even, of 2 points": EvenGrid(0.0, 3.3, 2),
    "even, huge": EvenGrid(-1e308, 1e308, 57),
}
# Too large to list: their ends and random points are looked at.
LARGE = {
    "finest step": GeometricGrid(scale=1e-6, step=0.0, limit=MAX),
    "finest step, small scale": GeometricGrid(scale=0.0, step=2.0**-60, limit=1.0),
    "hazard default": GeometricGrid(scale=1e-6, step=1.3e-5, limit=MAX),
    "hazard bounded": GeometricGrid(scale=1e-9, step=1e-9, limit=1.0),
}


def all_points(grid):
    return grid.points(np.arange(grid.first, grid.last + 1))


def some_numbers(grid):
    rng = np.random.default_rng(0)
    size = grid.last - grid.first + 1
    near_ends = np.concatenate([np.arange(min(size, 50)), size - 1 - np.arange(min(size, 50))])
    small = np.exp(rng.uniform(0, math.log(size), 500)).astype(np.int64) - 1
    return grid.first + np.unique(np.concatenate([near_ends, small, rng.integers(0, size, 500)]))


@pytest.mark.parametrize("name", SMALL)
def test_small_grids_follow_their_formula_and_end_at_the_limit(name):
    grid = SMALL[name]
    points = all_points(grid)
    assert (np.diff(points) > 0).all()
    if isinstance(grid, EvenGrid):
        assert (points[0], points[-1]) == (grid.lower, grid.upper)
        np.testing.assert_allclose(np.diff(points / points[-1]), np.diff(points / points[-1])[0], rtol=1e-9)
        return
    assert points[-1] == grid.limit if grid.size is None else points.size == grid.size
    numbers = np.arange(grid.first, grid.last)
    expected = [min(grid.scale * math.expm1(k * grid.step), grid.limit) for k in numbers.tolist()]
    np.testing.assert_allclose(grid.points(numbers), expected, rtol=1e-13)


@loop_over("grid", [*SMALL.values(), *LARGE.values()])
def test_a_point_has_the_same_bits_alone_and_in_an_array(grid):
    numbers = some_numbers(grid)
    together = grid.points(numbers)
    alone = np.array([grid.points(np.array([number]))[0] for number in numbers])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(grid.points(numbers[3:])[::-1], together[3:][::-1])
    np.testing.assert_array_equal(grid.points(numbers[::-2]), together[::-2])


@pytest.mark.parametrize("name", SMALL)
def test_index_functions_equal_a_search_of_the_list(name):
    grid = SMALL[name]
    points = all_points(grid)
    with np.errstate(over="ignore"):
        beside = [
            np.nextafter(points, -np.inf),
            np.nextafter(points, np.inf),
            points[1:] / 2 + points[:-1] / 2,
        ]
        values = np.concatenate([points, *beside, [-np.inf, -1.0, -0.0, 5e-324, MAX, np.inf]])
    at_least, above = grid.index_at_least(values), grid.index_above(values)
    np.testing.assert_array_equal(at_least, grid.first + np.searchsorted(points, values, side="left"))
    np.testing.assert_array_equal(above, grid.first + np.searchsorted(points, values, side="right"))


@pytest.mark.parametrize("name", LARGE)
def test_index_functions_of_large_grids_are_right_next_to_grid_points(name):
    grid = LARGE[name]
    assert grid.points(np.array([grid.first, grid.last])).tolist() == [0.0, grid.limit]
    numbers = some_numbers(grid)
    points = grid.points(numbers)
    assert (np.diff(points) > 0).all()
    with np.errstate(over="ignore"):
        low, high = np.nextafter(points, -np.inf), np.nextafter(points, np.inf)
    np.testing.assert_array_equal(grid.index_at_least(points), numbers)
    np.testing.assert_array_equal(grid.index_above(points), numbers + 1)
    np.testing.assert_array_equal(grid.index_at_least(high), numbers + 1)
    np.testing.assert_array_equal(grid.index_above(low), numbers)
    np.testing.assert_array_equal(grid.index_at_least(low)[1:], numbers[1:])


@loop_over(("name", "capacity"), product(["geometric", "geometric from 1", "even"], [1, 4, 6]))
def test_runs_hold_the_outputs_with_each_score(name, capacity):
    grid = SMALL[name]
    numbers = np.arange(grid.first, grid.last)
    points = grid.points(numbers)
    on_grid = OutputBounds(  # bounds that are outputs, and that coincide
        value=points[40],
        lower=points[[30, 20, 20, 3, 3, 2]][:capacity],
        upper=points[[40, 60, 61, 61, 90, 91]][:capacity],
        output_range=(min(0.0, points[0]), grid.points(np.array([grid.last]))[0]),
        monotonic=True,
        n=6,
    )
    for bounds in (
        loss_bounds([0.1, 0.2, 0.2, 0.65, 0.0], cap=0.7, capacity=capacity),
        loss_bounds([0.1, 0.2, 0.2, 0.65, 0.0], capacity=capacity),
        loss_bounds([0.0] * 5, cap=0.7, capacity=capacity),
        on_grid,
        var_bounds([0.1, 0.2, 0.2, 0.65, 0.0], bounds=(0, 1), capacity=capacity),
    ):
        edges = run_edges(grid, bounds)
        counts = np.diff(edges)
        assert (counts >= 0).all()
        assert (edges[0], edges[-1]) == (grid.first, grid.last)
        levels = np.repeat(np.arange(counts.size) - counts.size // 2, counts)
        np.testing.assert_array_equal(levels + 0.5, scores(bounds, points))
