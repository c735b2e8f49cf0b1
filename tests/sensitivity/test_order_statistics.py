"""Output bounds of order statistics against brute force, and what privacy needs of them."""

import numpy as np
import pytest
from helpers import MAX, critical_points, distance, multisets, neighbour_pairs, scores

from dp_metrics.sensitivity.aggregates import OrderAggregate
from dp_metrics.sensitivity.output_bounds import order_statistic_bounds


def order_bounds(x, k, limit=MAX, capacity=10):
    return order_statistic_bounds(
        OrderAggregate.from_data(np.array(x, dtype=float), k, capacity=capacity, limit=limit)
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_order_statistic_bounds_are_the_extremes_over_all_data_sets_within_reach(k):
    domain, limit = (0.0, 0.1, 0.7, 3.3), 3.3
    everything = multisets(domain, 4)
    for x in everything:
        bounded, unbounded = order_bounds(x, k, limit), order_bounds(x, k)
        assert bounded.value == sorted(x)[k - 1]
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        for rank in range(1, 5):
            reach = [sorted(y)[k - 1] for y in everything if distance(x, y) <= rank]
            assert bounded.lower[rank - 1] == min(reach)
            assert bounded.upper[rank - 1] == max(reach)
            assert unbounded.upper[rank - 1] == (sorted(x)[k + rank - 1] if k + rank <= 4 else MAX)


@pytest.mark.parametrize("capacity", [1, 2, 10])
def test_order_statistics_of_neighbours(capacity):
    for x, y in neighbour_pairs((0.0, 0.1, 0.7, 3.3), 4):
        for k in (1, 2, 4):
            a, b = (order_bounds(data, k, 3.3, capacity) for data in (x, y))
            change = scores(b, t := critical_points(a, b)) - scores(a, t)
            assert np.abs(change).max() <= 1
            assert (change >= 0).all() or (change <= 0).all()


def test_the_sensitivity_of_an_order_statistic_is_its_limit():
    x = (0.0, 0.1, 3.3)
    assert order_bounds(x, 2, 3.3).sensitivity == 3.3
    assert order_bounds(x, 2).sensitivity is None
