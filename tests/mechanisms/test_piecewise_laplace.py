import numpy as np
import pytest
from helpers import MAX, loss_bounds, var_bounds

from dp_metrics import PiecewiseLaplace


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


def between(*several):
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
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 2.0, 50.0])
def test_the_density_falls_by_half_epsilon_per_interpolated_rank(name, epsilon):
    bounds = EXAMPLES[name]
    law = PiecewiseLaplace().output_distribution(bounds, epsilon)
    t = between(bounds)
    edges = np.unique(np.concatenate([bounds.lower, [bounds.value], bounds.upper, bounds.output_range]))
    x, w = np.polynomial.legendre.leggauss(40)
    nodes = edges[:-1, np.newaxis] + np.diff(edges)[:, np.newaxis] * (x + 1) / 2
    weights = np.diff(edges)[:, np.newaxis] * w / 2
    total = np.sum(weights * np.exp(-epsilon / 2 * interpolated(bounds, nodes)))
    expected = np.exp(-epsilon / 2 * interpolated(bounds, t)) / total
    np.testing.assert_allclose(law.density(t), expected, rtol=1e-8)
    for start, stop in ((t[0], t[1]), (t[1], t[2])):  # the distribution function is its integral
        inner = start + (stop - start) * (x[:, np.newaxis] + 1) / 2
        mass = np.sum(w[:, np.newaxis] * law.density(inner), axis=0) * (stop - start) / 2
        np.testing.assert_allclose(law.cdf(stop) - law.cdf(start), mass, atol=1e-13)


def test_an_unbounded_metric_is_refused_before_anything_is_drawn():
    for act in (PiecewiseLaplace().release, PiecewiseLaplace().output_distribution):
        with pytest.raises(ValueError, match=r"bounds=.*max_loss"):
            act(loss_bounds([1.0, 2.0]), 1.0)
    with pytest.raises(ValueError, match=r"bounds=.*max_loss"):
        PiecewiseLaplace().count_ranks(1.0, n=2, monotonic=True, output_range=(0.0, MAX))
