"""What every mechanism and its output law have in common."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers import (
    MAX,
    NoEntropy,
    Words,
    assert_follows,
    draw_many,
    loss_bounds,
    scores,
    slow_but,
    var_bounds,
)
from scipy import stats

from dp_metrics._random import SeededEntropy
from dp_metrics.mechanisms import (
    MECHANISMS,
    AboveThreshold,
    Hazard,
    InverseSensitivity,
    Laplace,
    Mechanism,
    PiecewiseLaplace,
)
from dp_metrics.mechanisms._laws import mean_absolute_error

CASES = {
    **{name: make() for name, make in MECHANISMS.items() if name != "adaptive"},
    "hazard, coarse": Hazard(resolution=1.0),
    "above_threshold, even": AboveThreshold(spacing="even", max_candidates=300),
    "paper": AboveThreshold.paper(),
}
NEEDS_LIMIT = {"above_threshold, even", "inverse_sensitivity", "piecewise_laplace", "laplace", "geometric"}

DATA = np.random.default_rng(0).exponential(size=30).round(2)
BOUNDED = {
    "mean": loss_bounds(np.minimum(DATA, 2.0), cap=2.0),
    "mean, few ranks": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0, capacity=1),
    "zero": loss_bounds(np.zeros(3), cap=2.0),
    "at the cap": loss_bounds(np.full(3, 2.0), cap=2.0),
    "variance": var_bounds(np.minimum(DATA, 2.0), bounds=(0.0, 2.0)),
    "one record": var_bounds([0.3], bounds=(0.0, 2.0)),
}
UNBOUNDED = {"unbounded mean": loss_bounds(DATA), "unbounded variance": var_bounds(DATA)}
EPSILONS = [0.2, 3.0, 1e4]
each_kind = pytest.mark.parametrize("kind", CASES)


def bounds_for(kind):
    return BOUNDED if kind in NEEDS_LIMIT else BOUNDED | UNBOUNDED


@pytest.mark.gate
@pytest.mark.parametrize("kind", slow_but(CASES.keys() - {"paper", "hazard, coarse"}, CASES))
def test_releases_follow_the_law(kind):
    for name in bounds_for(kind).keys() - {"zero", "at the cap"}:
        bounds = bounds_for(kind)[name]
        law = CASES[kind].output_distribution(bounds, 1.0)
        samples = draw_many(CASES[kind], bounds, 1.0, 800, seed=21)
        assert_follows(samples, law)
        assert (samples >= bounds.output_range[0]).all()
        assert (samples <= bounds.output_range[1]).all()
        # six standard errors: a right law fails with probability below 1e-8
        error = np.minimum(np.abs(samples - bounds.value), 1.0)
        exact = mean_absolute_error(law, bounds.value, 1.0)
        assert abs(error.mean() - exact) <= 6 * math.sqrt(exact * 1.0 / samples.size) + 1e-4 * exact, name


@each_kind
def test_distribution_functions_rise_from_0_to_1_and_quantiles_invert_them(kind):
    for bounds, epsilon in product(bounds_for(kind).values(), EPSILONS):
        law, (low, high) = CASES[kind].output_distribution(bounds, epsilon), bounds.output_range
        around = bounds.value * np.linspace(0.5, 1.5, 41)
        t = np.sort(np.concatenate([around, bounds.lower, bounds.upper, np.linspace(0, 2, 21), [low, high]]))
        cdf = law.cdf(t)
        assert cdf.shape == t.shape
        assert (np.diff(cdf) >= -1e-12).all()
        assert ((cdf >= -1e-12) & (cdf <= 1)).all()
        assert law.cdf(high) == law.cdf(math.inf) == 1
        assert law.cdf(np.nextafter(low, -math.inf)) == law.cdf(-math.inf) == 0
        assert law.cdf(t.reshape(-1, 1)).shape == (t.size, 1)
        assert law.cdf([0.5, 0.7]).shape == (2,)
        p = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-6])
        t = law.quantile(p)
        assert (np.diff(t) >= 0).all()
        slack = 1e-9  # rounding of p itself, and of the quadrature
        assert (law.cdf(np.nextafter(t, math.inf)) >= p - slack).all()
        assert (law.cdf(t * (1 - 1e-12) - 1e-300) <= p + slack).all() or kind == "laplace"
        ends = law.quantile([0.0, 0.5, 1.0])
        assert low <= ends[0] <= ends[1] <= ends[2] <= high
        for wrong in (-0.1, 1.1, math.nan):
            with pytest.raises(ValueError, match="p must"):
                law.quantile(wrong)


@pytest.mark.parametrize(
    "kind", ["hazard", "hazard, coarse", "inverse_sensitivity", "piecewise_laplace", "laplace"]
)
def test_mean_absolute_errors_equal_an_integral_over_the_law(kind):
    for bounds, epsilon in product(bounds_for(kind).values(), EPSILONS):
        law, (low, high) = CASES[kind].output_distribution(bounds, epsilon), bounds.output_range
        all_of_it = math.inf if high < MAX else 5.0
        # E min(|T - v|, cap) = integral over a in (0, cap) of P(|T - v| > a)
        for value, cap in (
            (bounds.value, all_of_it), (bounds.value, 0.01), (0.7, 0.3), (-0.5, all_of_it), (-0.5, 0.6),
            (2.5, all_of_it), (2.5, 1.0), (low, 5.0),
        ):  # fmt: skip
            top = min(cap, max(abs(value - low), abs(value - high)))
            fine = top * np.unique(np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-9, 1, 2001)]))
            a = (fine[1:] + fine[:-1]) / 2
            beyond = 1 - law.cdf(value + a) + law.cdf(np.nextafter(value - a, -math.inf))
            expected = np.sum(np.diff(fine) * beyond)
            # a law that is nearly a point mass is as coarse as these steps
            assert mean_absolute_error(law, value, cap) == pytest.approx(expected, rel=2e-3, abs=1e-3 * top)
            assert isinstance(mean_absolute_error(law, value, cap), float)


def entropies(kind):
    """Return sources that start with extreme words; rejection sampling would not end on constant ones."""
    if kind == "geometric":
        return [SeededEntropy(seed) for seed in range(4)]
    constant = [Words([], filling=word) for word in (0, 2**63, 2**64 - 1)]
    return [*constant, *(Words([word], filling=word ^ 2**63) for word in (0, 1, 2**63, 2**64 - 1))]


EXTREME = {"finest": Hazard(resolution=1e-300), "coarsest": Hazard(resolution=1e300)}


@pytest.mark.parametrize("kind", CASES | EXTREME)
def test_no_epsilon_no_random_bits_and_no_public_limit_raise(kind):
    mechanism = (CASES | EXTREME)[kind]
    for epsilon, bounds in product((5e-324, 1e-300, 1e-12, 1.0, 1e4, MAX), bounds_for(kind).values()):
        high, law = bounds.output_range[1], mechanism.output_distribution(bounds, epsilon)
        for entropy in entropies(kind):
            released = law.release(entropy)
            assert isinstance(released, float)
            assert 0 <= released <= high
        cdf = law.cdf([0.0, bounds.value, 2.0])
        assert 0 <= cdf[0] <= cdf[1] <= cdf[2] <= 1
        assert 0 <= law.quantile(0.5) <= high
        public = {"monotonic": bounds.monotonic, "output_range": bounds.output_range}
        ranks = mechanism.count_ranks(epsilon, n=10**9, **public)
        # who adds noise of a public size looks at the metric alone
        assert ranks == 0 if kind in ("geometric", "laplace") else 1 <= ranks <= 10**9
    for cap in (5e-324, 1e-300, 1e-12, 1e12, 1e300):
        bounds = loss_bounds([0.0, cap / 4, cap / 2, cap], cap=cap)
        law = mechanism.output_distribution(bounds, 1.0)
        for entropy in entropies(kind):
            assert 0 <= law.release(entropy) <= cap
        assert law.cdf(cap) == 1


@each_kind
def test_what_a_mechanism_cannot_serve_is_refused_before_anything_is_drawn(kind):
    mechanism, no_sensitivity = CASES[kind], replace(BOUNDED["mean"], sensitivity=None)
    signed = replace(BOUNDED["mean"], output_range=(-1.0, 2.0))
    refused = [(BOUNDED["mean"], bad, "epsilon") for bad in (0.0, -1.0, math.nan, math.inf, "1", None, True)]
    unserved, words = (signed, "at least 0")
    if kind in NEEDS_LIMIT:
        unserved, words = UNBOUNDED["unbounded mean"], r"bounds=.*max_loss"
    refused.append((unserved, 1.0, words))
    with pytest.raises(ValueError, match=words):
        mechanism.count_ranks(1.0, n=10, monotonic=True, output_range=unserved.output_range)
    if kind in ("laplace", "geometric"):
        refused.append((no_sensitivity, 1.0, "needs a metric with a public global sensitivity"))
    for bounds, epsilon, words in refused:
        with pytest.raises(ValueError, match=words):
            mechanism.release(bounds, epsilon, NoEntropy())
        with pytest.raises(ValueError, match=words):
            mechanism.output_distribution(bounds, epsilon)


@each_kind
def test_mechanisms_are_frozen_and_equal_by_their_settings(kind):
    mechanism = CASES[kind]
    assert isinstance(mechanism, Mechanism)
    assert mechanism == type(mechanism)(**vars(mechanism))
    assert hash(mechanism) == hash(type(mechanism)(**vars(mechanism)))
    assert "epsilon" not in vars(mechanism)
    with pytest.raises(AttributeError):
        mechanism.beta = 2.0


# ---- the densities of the three that are drawn as floats, from their definitions -------------------------


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


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize(
    ("mechanism", "distance"), [(InverseSensitivity(), rank), (PiecewiseLaplace(), interpolated)]
)
def test_the_density_falls_by_half_epsilon_per_rank(mechanism, distance, name):
    bounds = BOUNDED[name]
    x, w = np.polynomial.legendre.leggauss(40)
    for epsilon in (1e-9, 0.1, 2.0, 50.0):
        law = mechanism.output_distribution(bounds, epsilon)

        def mass(start, stop, epsilon=epsilon):
            inner = start + (stop - start) * (x[:, np.newaxis] + 1) / 2
            return w @ np.exp(-epsilon / 2 * distance(bounds, inner)) * (stop - start) / 2

        of_each = mass(law.edges[:-1], law.edges[1:])
        np.testing.assert_allclose(law.weights, of_each / of_each.sum(), rtol=1e-8)
        for share in (1e-6, 0.3, 1 - 1e-6):  # the distribution function within each interval
            t = law.edges[:-1] + share * np.diff(law.edges)
            reached = np.cumsum(of_each) - of_each + mass(law.edges[:-1], t)
            wide = t > law.edges[:-1]
            np.testing.assert_allclose(law.cdf(t[wide]), (reached / of_each.sum())[wide], atol=1e-12)
        assert law.cdf(np.array([-1e-9, bounds.output_range[1]])).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["mean", "zero", "variance"])
def test_the_law_is_laplace_with_scale_sensitivity_over_epsilon_clamped_to_the_range(name):
    bounds = BOUNDED[name]
    limit = bounds.output_range[1]
    sensitivity = limit / bounds.n if bounds.monotonic else 4 * limit * (bounds.n - 1) / bounds.n**2
    for epsilon in (0.1, 3.0):
        law = Laplace().output_distribution(bounds, epsilon)
        whole = stats.laplace(bounds.value, sensitivity / epsilon)
        t = np.linspace(0, limit, 50)[:-1]
        np.testing.assert_allclose(law.cdf(t), whole.cdf(t), rtol=1e-12)
        assert law.cdf(limit) == 1
        assert law.cdf(-1e-300) == 0
        p = np.linspace(0.001, 0.999, 50)
        np.testing.assert_allclose(law.quantile(p), np.clip(whole.ppf(p), 0, limit), rtol=1e-9, atol=1e-15)
        assert law.quantile([0.0, 1.0]).tolist() == [0, limit]


def test_a_sensitivity_that_underflows_is_not_taken_for_none():
    a, b = (loss_bounds([cap, *[0.0] * 9], cap=5e-324) for cap in (0.0, 5e-324))
    assert a.sensitivity > 0
    assert b.sensitivity > 0
    assert Laplace().output_distribution(b, 10.0).scale > 0
    bounds = var_bounds([0.0, 5e-162, *[0.0] * 9], bounds=(0.0, 5e-162))
    assert bounds.sensitivity > 0
    assert var_bounds([0.3], bounds=(0.0, 2.0)).sensitivity == 0  # but one record never has a variance
