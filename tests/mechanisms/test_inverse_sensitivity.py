import math

import numpy as np
import pytest
from helpers import MAX, loss_bounds, scores, var_bounds

from dp_metrics import InverseSensitivity

EPSILON = 2.0


def distances(bounds, t):
    """Return the rank at which the output bounds reach t; 1 at the metric itself."""
    return np.abs(scores(bounds, t)) + 0.5


def density(bounds, epsilon, t):
    """Return exp(-epsilon distance / 2), normalised over the output range by its exact integral."""
    edges = np.unique(np.concatenate([bounds.lower, [bounds.value], bounds.upper, bounds.output_range]))
    middles = edges[:-1] / 2 + edges[1:] / 2
    total = np.sum(np.diff(edges) * np.exp(-epsilon / 2 * distances(bounds, middles)))
    return np.exp(-epsilon / 2 * distances(bounds, t)) / total


def between(*several):
    """Return points in the middle of every interval on which all densities are smooth."""
    edges = np.unique(
        np.concatenate([np.concatenate([b.lower, [b.value], b.upper, b.output_range]) for b in several])
    )
    return edges[:-1] + np.diff(edges) * np.array([[1e-6], [0.3], [1 - 1e-6]])


EXAMPLES = {
    "mean": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0),
    "mean, few ranks": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0, capacity=1),
    "zero": loss_bounds([0.0, 0.0, 0.0], cap=2.0),
    "at the cap": loss_bounds([2.0, 2.0, 2.0], cap=2.0),
    "variance": var_bounds([0.0, 0.3, 0.7, 1.1], bounds=(0.0, 2.0)),
    "variance of one record": var_bounds([0.3], bounds=(0.0, 2.0)),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 50.0])
def test_the_density_falls_by_half_epsilon_per_rank(name, epsilon):
    bounds = EXAMPLES[name]
    law = InverseSensitivity().output_distribution(bounds, epsilon)
    t = between(bounds)
    np.testing.assert_allclose(law.density(t), density(bounds, epsilon, t), rtol=1e-12)
    assert law.density(np.array([-1e-9, bounds.output_range[1] + 1e-9])).tolist() == [0, 0]
    np.testing.assert_allclose(law.cdf(t[2]) - law.cdf(t[1]), law.density(t[1]) * (t[2] - t[1]), atol=1e-14)


def test_the_number_of_ranks_leaves_out_a_weight_of_1e_12():
    mechanism, settings = InverseSensitivity(), {"monotonic": True, "output_range": (0.0, 1.0)}
    assert mechanism.count_ranks(0.5, n=10**6, **settings) == math.ceil(4 * math.log(1e12))
    assert mechanism.count_ranks(0.5, n=7, **settings) == 7
    assert mechanism.count_ranks(MAX, n=7, **settings) == 1


def test_an_unbounded_metric_is_refused_before_anything_is_drawn():
    for act in (InverseSensitivity().release, InverseSensitivity().output_distribution):
        with pytest.raises(ValueError, match=r"bounds=.*max_loss"):
            act(loss_bounds([1.0, 2.0]), EPSILON)
    with pytest.raises(ValueError, match=r"bounds=.*max_loss"):
        InverseSensitivity().count_ranks(EPSILON, n=2, monotonic=True, output_range=(0.0, MAX))
