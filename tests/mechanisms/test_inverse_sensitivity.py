"""Inverse sensitivity and piecewise Laplace: their densities, from the definitions."""

import math

import numpy as np
import pytest
from helpers import MAX, loss_bounds, scores, var_bounds

from dp_metrics import InverseSensitivity, PiecewiseLaplace

EXAMPLES = {
    "mean": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0),
    "mean, few ranks": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0, capacity=1),
    "zero": loss_bounds([0.0, 0.0, 0.0], cap=2.0),
    "at the cap": loss_bounds([2.0, 2.0, 2.0], cap=2.0),
    "variance": var_bounds([0.0, 0.3, 0.7, 1.1], bounds=(0.0, 2.0)),
    "variance of one record": var_bounds([0.3], bounds=(0.0, 2.0)),
}


def rank(bounds, t):
    """Return the rank at which the output bounds reach t; 1 at the metric itself."""
    return np.abs(scores(bounds, t)) + 0.5


def interpolated(bounds, t):
    """Return the distance that grows linearly from 0 at the metric to l at L^l and U^l."""
    ranks = np.arange(bounds.ranks + 2.0)
    up = np.concatenate([[bounds.value], bounds.upper, bounds.output_range[1:]])
    down = -np.concatenate([[bounds.value], bounds.lower, bounds.output_range[:1]])
    # where bounds coincide, everything just beyond is at the last of their ranks
    distances = []
    for x, ladder in ((t, up), (-t, down)):
        i = np.clip(np.searchsorted(ladder, x, side="right") - 1, 0, ladder.size - 2)
        width = np.maximum(ladder[i + 1] - ladder[i], 1e-300)
        distances.append(np.where(x < ladder[0], 0.0, ranks[i] + np.clip((x - ladder[i]) / width, 0, 1)))
    return np.maximum(*distances)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(
    ("mechanism", "distance"), [(InverseSensitivity(), rank), (PiecewiseLaplace(), interpolated)]
)
def test_the_density_falls_by_half_epsilon_per_rank(mechanism, distance, name):
    bounds = EXAMPLES[name]
    edges = np.unique(np.concatenate([bounds.lower, [bounds.value], bounds.upper, bounds.output_range]))
    widths = np.diff(edges)
    t = edges[:-1] + widths * np.array([[1e-6], [0.3], [1 - 1e-6]])  # in every interval
    x, w = np.polynomial.legendre.leggauss(40)
    nodes = edges[:-1, np.newaxis] + widths[:, np.newaxis] * (x + 1) / 2
    for epsilon in (1e-9, 0.1, 2.0, 50.0):
        law = mechanism.output_distribution(bounds, epsilon)
        total = np.sum(widths[:, np.newaxis] * w / 2 * np.exp(-epsilon / 2 * distance(bounds, nodes)))
        expected = np.exp(-epsilon / 2 * distance(bounds, t)) / total
        np.testing.assert_allclose(law.density(t), expected, rtol=1e-8)
        assert law.density(np.array([-1e-9, bounds.output_range[1] + 1e-9])).tolist() == [0, 0]
        for start, stop in ((t[0], t[1]), (t[1], t[2])):  # the distribution function is its integral
            inner = start + (stop - start) * (x[:, np.newaxis] + 1) / 2
            mass = np.sum(w[:, np.newaxis] * law.density(inner), axis=0) * (stop - start) / 2
            np.testing.assert_allclose(law.cdf(stop) - law.cdf(start), mass, atol=1e-13)


@pytest.mark.parametrize("mechanism", [InverseSensitivity(), PiecewiseLaplace()])
def test_the_number_of_ranks_leaves_out_a_weight_of_1e_12(mechanism):
    public = {"monotonic": True, "output_range": (0.0, 1.0)}
    assert mechanism.count_ranks(0.5, n=10**6, **public) == math.ceil(4 * math.log(1e12))
    assert mechanism.count_ranks(0.5, n=7, **public) == 7
    assert mechanism.count_ranks(MAX, n=7, **public) == 1
