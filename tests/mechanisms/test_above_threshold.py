"""AboveThreshold against a law that is computed candidate by candidate, with no runs and no shortcuts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import (
    MAX,
    Words,
    assert_follows,
    draw_many,
    loss_bounds,
    scores,
    slow_but,
    var_bounds,
)
from scipy import special, stats

from dp_metrics import AboveThreshold
from dp_metrics._random import SeededEntropy
from dp_metrics.sensitivity.output_bounds import OutputBounds

LAST_WORD = 2**64 - 1
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


def naive_draw(levels, eps1, eps2, rng):
    """Walk up the candidates one by one."""
    threshold = rng.exponential(1 / eps1)
    for number, level in enumerate(levels):
        if level + rng.exponential(1 / eps2) >= threshold:
            return number
    return len(levels)


def shares(bounds, epsilon, split=None):
    if split is None:
        split = 2 / 3 if bounds.monotonic else 1 / 2
    return epsilon * split, epsilon * (1 - split) / (1 if bounds.monotonic else 2)


def naive_law(mechanism, bounds, epsilon):
    points, _ = candidates(mechanism.output_distribution(bounds, epsilon).grid)
    return naive_masses(scores(bounds, points), *shares(bounds, epsilon, mechanism.split))


EXAMPLES = {
    "mean": loss_bounds([0.0, 0.3, 0.7, 1.1]),
    "capped mean": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0),
    "few ranks": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0, capacity=1),
    "zero": loss_bounds([0.0, 0.0, 0.0], cap=2.0),
    "at the cap": loss_bounds([2.0, 2.0, 2.0], cap=2.0),
    "saturated": loss_bounds([MAX, MAX]),
    "variance": var_bounds([0.0, 0.3, 0.7, 1.1]),
    "bounded variance": var_bounds([0.0, 0.3, 0.7, 1.1], bounds=(0.0, 2.0)),
}
MECHANISMS = {
    "default splits": AboveThreshold(**COARSE),
    "even split": AboveThreshold(**COARSE, split=0.5),
    "little for the threshold": AboveThreshold(**COARSE, split=0.2, first=3),
    "few candidates": AboveThreshold(**COARSE, max_candidates=12),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("kind", slow_but(MECHANISMS.keys() - {"little for the threshold"}, MECHANISMS))
@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(e, marks=pytest.mark.slow) for e in (0.2, 12.0))])
def test_the_law_is_that_of_a_walk_candidate_by_candidate(name, kind, epsilon):
    bounds, mechanism = EXAMPLES[name], MECHANISMS[kind]
    law = mechanism.output_distribution(bounds, epsilon)
    points, last = candidates(law.grid)
    expected = np.cumsum(naive_law(mechanism, bounds, epsilon))
    np.testing.assert_allclose(law.cdf(np.append(points, last)), expected, atol=1e-9)
    assert law.cdf(last) == 1
    assert law.cdf(np.nextafter(points[0], -1)) == 0


@pytest.mark.parametrize("name", ["capped mean", "bounded variance", "at the cap"])
def test_evenly_spaced_candidates_follow_the_same_law(name):
    bounds, mechanism = EXAMPLES[name], AboveThreshold(spacing="even", max_candidates=60)
    law = mechanism.output_distribution(bounds, 2.0)
    points, last = candidates(law.grid)
    np.testing.assert_allclose(points, np.linspace(0, bounds.output_range[1], 60)[:-1], rtol=1e-14)
    assert last == bounds.output_range[1]
    np.testing.assert_allclose(law.cdf(points), np.cumsum(naive_law(mechanism, bounds, 2.0))[:-1], atol=1e-9)


@pytest.mark.parametrize(("name", "epsilon"), [("capped mean", 1.0), ("variance", 4.0), ("zero", 0.3)])
def test_the_run_length_sampler_and_a_naive_loop_draw_from_one_law(name, epsilon):
    bounds, mechanism = EXAMPLES[name], AboveThreshold(**COARSE)
    law = mechanism.output_distribution(bounds, epsilon)
    points, _ = candidates(law.grid)
    levels = scores(bounds, points)
    rng = np.random.default_rng(5)
    naive = [naive_draw(levels, *shares(bounds, epsilon), rng) for _ in range(1500)]
    fast = law.grid.index_at_least(draw_many(mechanism, bounds, epsilon, 3000, seed=6))
    # two-sample Kolmogorov-Smirnov: a right sampler fails with probability below 1e-6, ties make it less
    assert stats.ks_2samp(naive, fast, method="asymp").pvalue > 1e-6


@pytest.mark.parametrize("name", EXAMPLES)
def test_releases_follow_the_law_and_are_candidates(name):
    bounds = EXAMPLES[name]
    for mechanism, epsilon in (
        (AboveThreshold(), 1.0),
        (AboveThreshold.paper(), 4.0),
        (MECHANISMS["even split"], 0.1),
    ):
        law = mechanism.output_distribution(bounds, epsilon)
        samples = draw_many(mechanism, bounds, epsilon, 300, seed=7)
        assert_follows(samples, law)
        np.testing.assert_array_equal(law.grid.points(law.grid.index_at_least(samples)), samples)


SIGNED = OutputBounds(
    value=0.4,
    lower=np.array([0.1, -0.5, -2.0]),
    upper=np.array([0.9, 1.0, 30.0]),
    output_range=(-math.inf, MAX),
    monotonic=True,
    n=3,
)


def mirrored(bounds):
    return replace(bounds, value=-bounds.value, lower=-bounds.upper, upper=-bounds.lower)


@pytest.mark.parametrize(
    ("bounds", "first"),
    [
        (SIGNED, 0),
        (mirrored(SIGNED), 2),
        (replace(SIGNED, monotonic=False), 2),
        pytest.param(SIGNED, 2, marks=pytest.mark.slow),
        pytest.param(mirrored(SIGNED), 0, marks=pytest.mark.slow),
        pytest.param(replace(SIGNED, monotonic=False), 0, marks=pytest.mark.slow),
    ],
)
def test_a_metric_without_any_limit_is_searched_upwards_then_downwards_at_half_epsilon_each(bounds, first):
    mechanism, epsilon = AboveThreshold(beta=1.3, scale=0.2, first=first, max_candidates=25), 3.0
    law = mechanism.output_distribution(bounds, epsilon)
    points = 0.2 * np.expm1(np.arange(first, first + 25) * math.log(1.3))
    eps = shares(bounds, epsilon / 2)
    up = naive_masses(scores(bounds, points[:-1]), *eps)
    down = naive_masses(scores(mirrored(bounds), points[:-1]), *eps)
    outputs = np.concatenate([-points[::-1], points[1:]])
    masses = np.concatenate([up[0] * down[::-1], up[1:]])
    inside = np.sort(np.concatenate([outputs + 1e-9, [-1e300, 1e300]]))
    expected = [masses[outputs <= t].sum() for t in inside]
    np.testing.assert_allclose(law.cdf(inside), expected, atol=1e-9)
    assert_follows(draw_many(mechanism, bounds, epsilon, 800, seed=8), law)
    for p in (0.02, 0.3, 0.5, 0.8, 0.999):
        reached = outputs[np.cumsum(masses) >= p][0]
        assert law.quantile(p) == pytest.approx(reached, rel=1e-12, abs=1e-12)
    for value, cap in ((0.4, 1.0), (-3.0, math.inf), (0.0, 0.3)):
        error = np.minimum(np.abs(outputs - value), cap) @ masses
        assert law.mean_absolute_error(value, cap) == pytest.approx(error, rel=1e-3)


def test_the_two_searches_are_private_for_neighbours_on_both_sides_of_zero():
    mechanism, epsilon = AboveThreshold(beta=1.3, scale=0.2, max_candidates=25), 2.0
    one = replace(SIGNED, lower=np.array([-0.5, -1.0, -2.0]))
    other = replace(one, value=-0.3, lower=np.array([-1.0, -2.0, -4.0]), upper=np.array([0.4, 0.9, 1.0]))
    t = np.sort(np.concatenate([s * 0.2 * np.expm1(np.arange(25) * math.log(1.3)) for s in (-1, 1)])) + 1e-9
    assert set(scores(other, t) - scores(one, t)) == {0, 1}
    masses = [np.diff(mechanism.output_distribution(b, epsilon).cdf(t), prepend=0) for b in (one, other)]
    seen = (masses[0] > 1e-6) & (masses[1] > 1e-6)
    assert seen.sum() > 20
    assert np.abs(np.log(masses[0][seen] / masses[1][seen])).max() <= epsilon + 1e-6


@pytest.mark.parametrize(("name", "cost"), [("mean", (2 / 3, 1 / 3)), ("variance", (1 / 2, 1 / 4))])
def test_default_shares_are_those_of_the_specification(name, cost):
    bounds, mechanism = EXAMPLES[name], AboveThreshold(**COARSE, max_candidates=40)
    law = mechanism.output_distribution(bounds, 1.0)
    points, _ = candidates(law.grid)
    expected = np.cumsum(naive_masses(scores(bounds, points), *cost))
    np.testing.assert_allclose(law.cdf(points), expected[:-1], atol=1e-9)


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


def test_the_default_candidates_start_at_zero_and_grow_by_two_percent():
    grid = AboveThreshold().output_distribution(EXAMPLES["mean"], 1.0).grid
    np.testing.assert_allclose(grid.points(np.arange(5)), 1e-3 * (1.02 ** np.arange(5) - 1), rtol=1e-12)
    assert grid.points(np.array([grid.last])) == MAX


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "candidates"),
    [
        (AboveThreshold(), 0.3, 1 + math.ceil(math.log(1e6 + 1) / math.log(1.02))),
        (AboveThreshold(spacing="even"), 0.3, 10_000),
    ],
)
def test_the_number_of_ranks_is_that_of_the_specification(mechanism, epsilon, candidates):
    for monotonic, eps2 in ((True, epsilon / 3), (False, epsilon / 4)):
        settings = {"monotonic": monotonic, "output_range": (0.0, 1000.0)}
        ranks = mechanism.count_ranks(epsilon, n=10**6, **settings)
        assert ranks == math.ceil(math.log(1e3 * candidates) / eps2)
        assert mechanism.count_ranks(epsilon, n=5, **settings) == 5
        assert AboveThreshold.paper().count_ranks(epsilon, n=10**6, **settings) == 100


@pytest.mark.parametrize("scale", [1e4, 1e7, 1e12])
def test_a_hundred_ranks_halt_falsely_near_zero_at_a_small_epsilon(scale):
    """What makes the paper's 100 ranks useless at epsilon 0.1 (section 2.6 of the theory)."""
    data = scale * np.exp(np.random.default_rng(0).normal(size=1000))
    hundred = loss_bounds(data, capacity=100)
    law = AboveThreshold.paper().output_distribution(hundred, 0.1)
    early = law.cdf(np.nextafter(hundred.lower[-1], 0.0))
    # each of the m candidates there has score -100.5; its chance to pass the threshold is a constant times V,
    # uniform on (0, 1), so the chance that any does is 1 - E[(1 - constant V)^m]
    m, constant = math.ceil(math.log1p(hundred.lower[-1]) / math.log(1.005)) - 1, math.exp(-0.05 * 100.5)
    expected = 1 - (1 - (1 - constant) ** (m + 1)) / (constant * (m + 1))
    assert early == pytest.approx(expected, rel=1e-9)
    assert 0.90 <= early <= 0.98

    ranks = AboveThreshold().count_ranks(0.1, n=data.size, monotonic=True, output_range=(0.0, MAX))
    enough = loss_bounds(data, capacity=ranks)
    assert AboveThreshold().output_distribution(enough, 0.1).cdf(np.nextafter(enough.lower[-1], 0.0)) < 0.01


@pytest.mark.parametrize(("ratio", "epsilon", "about"), [(1, 1.0, 7.8e-4), (2, 1.0, 1.4e-6)])
@pytest.mark.parametrize("m", [100, 1000])
def test_overshoots_of_unbounded_data_follow_their_power_law(ratio, epsilon, about, m):
    """P(no halt within m candidates above the metric) = e^(-eps1/2) Gamma(1+r) m^-r, nearly (section 2.7)."""
    bounds = loss_bounds([0.0, 0.0, 0.0])
    law = AboveThreshold(split=ratio / (1 + ratio)).output_distribution(bounds, epsilon)
    missed = 1.0 - law.cdf(law.grid.points(np.array([law.grid.first + m - 1])))[0]
    eps1 = epsilon * ratio / (1 + ratio)
    exact = math.exp(
        -eps1 / 2 + special.gammaln(1 + ratio) + special.gammaln(m + 1) - special.gammaln(m + 1 + ratio)
    )
    assert missed == pytest.approx(exact, rel=1e-6)
    assert missed == pytest.approx(math.exp(-eps1 / 2) * math.gamma(1 + ratio) * m**-ratio, rel=0.04)
    if m == 1000:
        assert missed == pytest.approx(about, rel=0.03)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1.0, 1e300, MAX])
def test_no_epsilon_and_no_random_bits_raise_without_any_limit(epsilon):
    for bounds in (SIGNED, mirrored(SIGNED), replace(SIGNED, monotonic=False)):
        for word in (0, 2**63, LAST_WORD):
            released = AboveThreshold().release(bounds, epsilon, Words([word], filling=word))
            assert isinstance(released, float)
            assert -MAX <= released <= MAX


def test_the_cost_does_not_grow_with_the_number_of_candidates():
    bounds = EXAMPLES["mean"]
    for beta in (1.02, 1 + 1e-9):
        entropy = Words([], filling=2**63)
        asked = []
        entropy.words = lambda size, asked=asked: asked.append(size) or np.full(size, 2**63, dtype=np.uint64)
        AboveThreshold(beta=beta).release(bounds, 1.0, entropy)
        assert sum(asked) <= 2 * bounds.ranks + 3


def test_evenly_spaced_candidates_need_a_bounded_metric():
    mechanism = AboveThreshold(spacing="even")
    for act in (mechanism.release, mechanism.output_distribution):
        with pytest.raises(ValueError, match="bounds"):
            act(EXAMPLES["mean"], 1.0)
    with pytest.raises(ValueError, match="bounds"):
        mechanism.count_ranks(1.0, n=3, monotonic=True, output_range=(0.0, MAX))


def test_a_seed_reproduces_releases():
    a, b = (draw_many(AboveThreshold(), EXAMPLES["mean"], 1.0, 5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert AboveThreshold().release(EXAMPLES["mean"], 1.0, SeededEntropy(4)) >= 0
