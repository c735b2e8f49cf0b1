"""The clipped mean: close with much epsilon, private by the exact laws of its two parts."""

import itertools

import numpy as np
import pytest

from dp_metrics import SeededReleaseWarning
from dp_metrics._random import SeededEntropy
from dp_metrics.auditing import privacy_loss
from dp_metrics.evaluation.compared import clipped_mean, private_threshold
from dp_metrics.mechanisms import AboveThreshold
from dp_metrics.sensitivity import output_bounds
from dp_metrics.sensitivity.aggregates import OrderAggregate

VALUES = np.random.default_rng(0).gamma(2.0, 3.0, size=1000)


def order_statistic_bounds(values, position, ranks, limit):
    aggregate = OrderAggregate.from_data(values, position + 1, capacity=ranks, limit=limit)
    return output_bounds.order_statistic_bounds(aggregate)


def test_it_is_right_with_much_epsilon_and_its_threshold_lies_near_the_top_of_the_records():
    for variance, truth in ((False, VALUES.mean()), (True, VALUES.var())):
        release = clipped_mean(VALUES, epsilon=1e3, limit=100.0, variance=variance)
        assert release == pytest.approx(truth, rel=1e-2)
    tops = [private_threshold(VALUES, epsilon=1.0, limit=1e3, rng=SeededEntropy(i)) for i in range(50)]
    assert 0.9 < np.mean([(top >= VALUES).mean() for top in tops]) <= 1.0
    with pytest.warns(SeededReleaseWarning):
        first = clipped_mean(VALUES, epsilon=1.0, rng=3)
    assert first == clipped_mean(VALUES, epsilon=1.0, rng=SeededEntropy(3))
    assert clipped_mean(VALUES, epsilon=1.0) != clipped_mean(VALUES, epsilon=1.0)


def test_order_statistic_bounds_by_brute_force():
    domain, limit = (0.0, 1.0, 3.0), 3.0
    for x in itertools.combinations_with_replacement(domain, 4):
        for position in range(4):
            bounds = order_statistic_bounds(np.array(x), position, 4, limit)
            for rank in range(1, 5):
                reached = [
                    sorted([*kept, *new])[position]
                    for kept in itertools.combinations(x, 4 - rank)
                    for new in itertools.product(domain, repeat=rank)
                ]
                assert bounds.lower[rank - 1] == min(reached)
                assert bounds.upper[rank - 1] == max(reached)


@pytest.mark.parametrize("epsilon", [pytest.param(0.5, marks=pytest.mark.slow), 2.0])
def test_privacy_of_the_threshold(epsilon):
    mechanism = AboveThreshold()
    domain, limit, n = (0.0, 0.4, 1.0, 5.0), 5.0, 4
    bounds = {
        x: order_statistic_bounds(np.array(x), 2, n, limit)
        for x in itertools.combinations_with_replacement(domain, n)
    }
    worst = max(
        privacy_loss(mechanism, bounds[x], bounds[y], epsilon=epsilon)
        for x in bounds
        for y in bounds
        if sum(np.abs([x.count(v) - y.count(v) for v in domain])) == 2  # one record replaced
    )
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-9)
