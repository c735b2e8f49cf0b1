"""AboveThreshold against a law that is computed candidate by candidate, with no runs and no shortcuts."""

import math
from unittest import mock

import numpy as np
import pytest
from helpers import EXAMPLES, MAX, Words, scores, slow_but

from dp_metrics.mechanisms import AboveThreshold

COARSE = {"beta": 1.15, "scale": 0.05}


def candidates(grid):
    """Return all candidates but the last, which stands for none of them, and the last."""
    points = grid.points(np.arange(grid.first, grid.last + 1))
    return points[:-1], points[-1]


def naive_masses(levels, eps1, eps2):
    """Return the probability to halt at each candidate and, last, at none.

    Given the threshold T ~ Expo(1/eps1) each candidate halts on its own with probability exp(-eps2 (T - s)),
    or 1 if s > T. The expectation over T is a Gauss-Legendre sum between the half-integers, where s can be.
    """
    top = 45 / min(eps1, eps2) + max(levels.max(), 0) + 1
    width = min(1.0, 0.5 / max(eps1, eps2))
    edges = np.unique(
        np.concatenate([np.arange(0, top, width), np.arange(0.5, min(top, levels.max() + 2)), [top]])
    )
    x, w = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, np.newaxis] / 2
    t = (edges[:-1, np.newaxis] + half + half * x).ravel()
    weights = (half * w).ravel() * eps1 * np.exp(-eps1 * t)
    survival, masses = np.ones_like(t), []
    for level in levels:
        halt = np.exp(-eps2 * np.maximum(t - level, 0.0))
        masses.append(np.sum(weights * survival * halt))
        survival = survival * -np.expm1(-eps2 * np.maximum(t - level, 0.0))
    return np.array([*masses, np.sum(weights * survival)])


def shares(bounds, epsilon, split):
    """Return the parts of epsilon of the threshold and of a candidate."""
    if split is None:
        split = 2 / 3 if bounds.monotonic else 1 / 2
    return epsilon * split, epsilon * (1 - split) / (1 if bounds.monotonic else 2)


KINDS = {
    "default splits": AboveThreshold(**COARSE),
    "even split": AboveThreshold(**COARSE, split=0.5),
    "little for the threshold": AboveThreshold(**COARSE, split=0.2, first=3),
    "few candidates": AboveThreshold(**COARSE, max_candidates=12),
    "even": AboveThreshold(spacing="even", max_candidates=60),
}


@pytest.mark.gate
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("epsilon", slow_but([1.0], [0.2, 1.0, 12.0]))
def test_the_law_is_that_of_a_walk_candidate_by_candidate(name, epsilon):
    bounds = EXAMPLES[name]
    for kind, mechanism in KINDS.items():
        limit = bounds.output_range[1]
        if kind == "even" and limit == MAX:
            continue
        law = mechanism.output_distribution(bounds, epsilon)
        points, last = candidates(law.grid)
        masses = naive_masses(scores(bounds, points), *shares(bounds, epsilon, mechanism.split))
        np.testing.assert_allclose(
            law.cdf(np.append(points, last)), np.cumsum(masses), atol=1e-9, err_msg=kind
        )
        assert law.cdf(last) == 1
        assert law.cdf(np.nextafter(points[0], -1)) == 0
        if kind == "even":
            np.testing.assert_allclose([*points, last], np.linspace(0, limit, 60), rtol=1e-14)


def test_the_paper_preset_is_that_of_the_paper():
    assert AboveThreshold.paper() == AboveThreshold.paper(unit=1.0)
    for name, unit, eps in (
        ("mean", 1.0, (0.5, 0.5)),
        ("variance", 1.0, (0.5, 0.25)),  # eps1 = 2 eps2 = eps / 2
        ("mean", 0.25, (0.5, 0.5)),
    ):
        bounds, paper = EXAMPLES[name], AboveThreshold.paper(unit)
        assert paper.ranks == 100
        law = paper.output_distribution(bounds, 1.0)
        points = unit * (1.005 ** np.arange(1, 1500) - 1)
        listed = law.grid.points(np.arange(1, 1500))
        np.testing.assert_allclose(listed, points, rtol=1e-11)
        expected = np.cumsum(naive_masses(scores(bounds, listed), *eps))[:-1]
        np.testing.assert_allclose(law.cdf(listed), expected, atol=1e-9)
        assert law.grid.first == 1
        assert law.grid.last == 50_000
        assert law.quantile(1.0) == pytest.approx(unit * math.expm1(50_000 * math.log(1.005)))


def test_the_cost_does_not_grow_with_the_number_of_candidates():
    for beta in (1.02, 1 + 1e-9):
        entropy = Words([], filling=2**63)
        entropy.words = mock.Mock(wraps=entropy.words)
        AboveThreshold(beta=beta).release(EXAMPLES["mean"], 1.0, entropy)
        asked = sum(call.args[0] for call in entropy.words.mock_calls)
        assert asked <= 2 * EXAMPLES["mean"].ranks + 3
