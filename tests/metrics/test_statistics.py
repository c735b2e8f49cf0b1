import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers import MAX, variance_query

import dp_metrics as dp
from dp_metrics import LossSummary, private_mean, private_quantile, private_variance
from dp_metrics._random import SeededEntropy
from dp_metrics.auditing import metric_loss
from dp_metrics.release.parts import ranking_loss, variance

EXACT = {"epsilon": 1e11}
X = np.random.default_rng(0).gamma(2.0, size=400)


def release(x, **settings):
    return private_variance(x, **{"random_state": SeededEntropy(0), **settings})


@pytest.mark.parametrize("offset", [0.0, -3.0, 1e6])
def test_it_is_the_population_variance_also_far_from_zero(offset):
    assert release(X + offset, **EXACT) == pytest.approx(np.var(X + offset), rel=1e-6)


@pytest.mark.parametrize("offset", [1e12, -1e15])
def test_it_does_not_cancel(offset):
    x = np.arange(100) % 7 + offset
    assert release(x, **EXACT) == pytest.approx(np.var(np.arange(100) % 7), rel=1e-6)


@pytest.mark.parametrize("ddof", [0, 1, 1.5, -2, np.float64(1.0), np.int64(1), Fraction(1, 2)])
def test_degrees_of_freedom_rescale_the_release(ddof):
    factor = X.size / (X.size - float(ddof))
    assert release(X, ddof=ddof, epsilon=1.0) == pytest.approx(factor * release(X, epsilon=1.0), rel=1e-12)
    assert release(X, ddof=ddof, **EXACT) == pytest.approx(np.var(X) * factor, rel=1e-6)
    assert type(release(X, ddof=ddof, epsilon=1.0)) is float


def test_values_are_clipped_into_the_bounds_and_the_release_stays_within_their_variance():
    low, high = 0.5, 2.5
    assert release(X, bounds=(low, high), **EXACT) == pytest.approx(np.var(np.clip(X, low, high)), rel=1e-6)
    assert (
        max(release(X, bounds=(low, high), epsilon=1e-6, random_state=SeededEntropy(i)) for i in range(30))
        <= 1.0
    )


def test_shifting_the_data_and_their_bounds_shifts_nothing_in_the_release():
    x = np.round(X * 64) / 64
    a = release(x, bounds=(0.0, 8.0), epsilon=1.0)
    assert release(x + 1024, bounds=(1024.0, 1032.0), epsilon=1.0) == a
    assert release(1024 - x, bounds=(1016.0, 1024.0), epsilon=1.0) == a


@pytest.mark.parametrize(
    "mechanism", ["hazard", "above_threshold", "inverse_sensitivity", "piecewise_laplace", "laplace"]
)
def test_one_record_has_no_variance_and_constants_have_little(mechanism):
    for x in ([3.0], [3.0] * 500):
        released = release(x, bounds=(0.0, 10.0), epsilon=5.0, mechanism=mechanism)
        assert 0 <= released <= 25
        if mechanism in ("hazard", "above_threshold"):
            assert release(x, epsilon=5.0, mechanism=mechanism) < 1e-2


def test_values_whose_squares_overflow_saturate():
    assert release([MAX, -MAX] * 10, epsilon=1e6) == MAX
    assert release([MAX, -MAX] * 10, epsilon=1e6, ddof=1) == MAX


def test_many_ranks_are_limited_to_those_that_can_be_computed():
    x = np.random.default_rng(1).normal(size=9000)
    released = [release(x, epsilon=0.01, random_state=SeededEntropy(i)) for i in range(3)]
    assert all(0 <= r <= MAX for r in released)


RELEASES = {
    "quantile": lambda x, **options: private_quantile(x, 0.5, **options),
    "mean": private_mean,
    "mean, hazard": lambda x, **options: private_mean(x, mechanism="hazard", **options),
    "mean, summary": lambda x, bounds, **options: LossSummary.from_data(
        private_mean, x, bounds=bounds
    ).release(**options),
}


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("bounds", [(-1, 0.1), (0.3, 0.9), (-6, 0.2)])
def test_no_rounding_puts_a_release_above_its_upper_bound(name, bounds):
    low, high = bounds
    assert low + (high - low) > high  # the release and its lower bound may add up to more
    for epsilon in (1e-3, 1.0, 1e9):
        for seed in range(5):
            entropy = SeededEntropy(seed)
            released = RELEASES[name]([high] * 20, bounds=bounds, epsilon=epsilon, random_state=entropy)
            assert low <= released <= high


@pytest.mark.parametrize("method_n", [1, 2, 3, 10, 101])
def test_quantiles_are_those_of_numpy(method_n):
    x = np.random.default_rng(0).normal(size=method_n) * 10
    for q in (0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.99, 1):
        expected = np.quantile(x, q, method="inverted_cdf")
        for bounds in ((-100, None), (-100, math.inf), (-100, 100)):
            assert dp.private_quantile(x, q, epsilon=1e12, bounds=bounds) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("mechanism", [dp.Hazard(), dp.AboveThreshold(beta=3.0)])
def test_privacy_of_quantiles(mechanism):
    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (1, 3, 20):
        for q in (0.0, 0.5, 0.9):
            x = rng.lognormal(0, 2, n)
            y = x.copy()
            y[rng.integers(n)] = rng.choice([0.0, 1e6])
            options = {"q": q, "bounds": (0, None), "mechanism": mechanism, "epsilon": 1.0}
            worst = max(worst, metric_loss(dp.private_quantile, [x], [y], **options))
    assert 0.5 < worst <= 1 + 1e-9


def test_the_bounds_of_a_quantile_may_be_all_floats():
    assert dp.private_quantile([1.0], 0.5, epsilon=1e9, bounds=(-MAX, MAX)) <= MAX


def test_mean_and_its_bounds():
    x = np.random.default_rng(0).normal(5, 2, 500)
    assert dp.private_mean(x, epsilon=1e6, bounds=(-100, 100)) == pytest.approx(x.mean(), abs=1e-5)
    assert dp.private_mean(x, epsilon=1e6, bounds=(6, 8)) == pytest.approx(np.clip(x, 6, 8).mean(), abs=1e-5)
    for bounds in ((-MAX / 4, MAX / 4), (-1e-300, 1e-300)):
        for mechanism in (None, "hazard"):
            assert (
                bounds[0] <= dp.private_mean(x, epsilon=1e-9, bounds=bounds, mechanism=mechanism) <= bounds[1]
            )


@pytest.mark.parametrize("private_n", [False, True])
def test_a_variance_has_bounds_at_no_more_ranks_than_there_is_time_for(monkeypatch, private_n):
    monkeypatch.setattr(variance, "MOST_VARIANCE_RANKS", 20)
    query = variance_query(np.arange(200.0) ** 2)
    seen = query.output_bounds(dp.Hazard(resolution=0.1), 0.1, private_n=private_n)
    assert seen.lower.size == seen.upper.size == 20


def test_the_theory_tells_the_most_ranks_of_a_variance_and_of_an_auc():
    theory = Path(__file__).parents[2] / "docs" / "theory.rst"
    assert f"{variance.MOST_VARIANCE_RANKS:,} for a variance or an AUC" in theory.read_text(encoding="utf-8")
    assert ranking_loss._MOST_RANKS == variance.MOST_VARIANCE_RANKS
