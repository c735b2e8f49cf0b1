import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers import assert_follows, loss_bounds, loss_query, slow_but
from scipy import stats

from dp_metrics import Geometric
from dp_metrics._random import SeededEntropy, discrete_laplace
from dp_metrics.analysis.simulation import loss_output_bounds
from dp_metrics.inputs import losses
from dp_metrics.mechanisms import get_mechanism
from dp_metrics.mechanisms._staircase import Staircase
from dp_metrics.mechanisms.geometric import SumsLaw, expected_noise, noise_cells
from dp_metrics.sensitivity.noisy_sums import ratio_sums


@pytest.mark.parametrize("rate", slow_but([Fraction(7, 5)], [Fraction(1, 3), Fraction(2), Fraction(7, 5)]))
def test_discrete_laplace_has_the_exact_law(rate):
    entropy, size = SeededEntropy(0), 8_000
    draws = np.array([discrete_laplace(entropy, rate) for _ in range(size)])
    p = math.exp(-rate)
    values = np.arange(-6, 7)
    expected = (1 - p) / (1 + p) * p ** np.abs(values)
    observed = np.array([(draws == v).sum() for v in values])
    rest = size - observed.sum()
    statistic = ((observed - size * expected) ** 2 / (size * expected)).sum()
    statistic += (rest - size * (1 - expected.sum())) ** 2 / (size * (1 - expected.sum()) + 1e-9)
    assert statistic < stats.chi2(13).isf(1e-6)


def test_discrete_laplace_of_extreme_rates():
    assert discrete_laplace(SeededEntropy(0), Fraction(10**400)) == 0
    assert abs(discrete_laplace(SeededEntropy(0), Fraction(1, 10**400))) > 10**390


def _law(metric_query, epsilon=1.0):
    mechanism = get_mechanism("geometric")
    return mechanism.output_distribution(
        metric_query.output_bounds(mechanism, epsilon, private_n=False), epsilon
    )


def of_counts(wrong):
    return loss_query(wrong, 1.0, loss=losses.zero_one_loss, is_count=True)


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 12345])
def test_a_count_is_released_on_its_own_lattice_at_full_epsilon(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        wrong = rng.random(n) < rng.random()
        other = wrong.copy()
        other[0] = not other[0]
        a, b = (_law(of_counts(w), Fraction(3, 10)) for w in (wrong, other))
        assert a.centre == wrong.sum()
        assert a.added == Staircase(Fraction(3, 10), 1)
        assert abs(a.centre - b.centre) == 1  # so the exact loss is epsilon
        np.testing.assert_array_equal(a.grid.points(np.arange(n + 1)), np.arange(n + 1) / n)


def test_rounding_to_the_lattice_costs_one_step_more_and_no_epsilon():
    # a lattice of 1.1 million steps has no whole number of them in the sensitivity, 10/11 of the range
    weights, worst = np.array([1.0, 0.1]), Fraction(0)
    for other in np.linspace(0, 1, 40):
        a, b = (_law(loss_query(np.array([x, other]), 1.0, weights)) for x in (0.0, 1.0))
        worst = max(worst, Fraction(abs(a.centre - b.centre), a.added.steps))
    assert worst == 1


def test_geometric_draws_follow_the_law():
    mechanism = get_mechanism("geometric")
    for query in (
        of_counts(np.arange(30) < 3),
        loss_query(np.linspace(0, 1, 30), 1.0),
    ):
        output_bounds = query.output_bounds(mechanism, 0.5, private_n=False)
        entropy = SeededEntropy(0)
        draws = np.array([mechanism.release(output_bounds, 0.5, entropy) for _ in range(4000)])
        assert_follows(draws, mechanism.output_distribution(output_bounds, 0.5))


def test_the_geometric_mechanism_is_the_best_for_accuracy():
    # mean absolute error in units of one record over epsilon: hazard aims at relative accuracy, for other
    # metrics; Laplace and piecewise Laplace come close, but not where epsilon exceeds 1, and not exactly
    table = {}
    for n in (200, 1000, 5000):
        for accuracy in (0.55, 0.9, 0.99):
            wrong = np.arange(n) >= round(accuracy * n)
            value = wrong.mean()
            for epsilon in (0.1, 1.0, 4.0):
                query = of_counts(wrong)
                row = {}
                for name in ("geometric", "laplace", "piecewise_laplace", "inverse_sensitivity", "hazard"):
                    mechanism = get_mechanism(name)
                    output_bounds = query.output_bounds(mechanism, epsilon, private_n=False)
                    law = mechanism.output_distribution(output_bounds, epsilon)
                    row[name] = law.mean_absolute_error(value) * n * epsilon
                table[n, accuracy, epsilon] = row
    best = [min(row.values()) / row["geometric"] for row in table.values()]
    assert np.exp(np.mean(np.log(best))) > 0.85  # hazard wins where a guess of "none wrong" does
    assert table[1000, 0.9, 1.0]["geometric"] == pytest.approx(0.851, abs=0.002)
    assert table[1000, 0.9, 4.0]["geometric"] < 0.16
    for rival in ("laplace", "piecewise_laplace", "inverse_sensitivity", "hazard"):
        gain = [row[rival] / row["geometric"] for key, row in table.items() if key[1] < 0.99]
        assert np.exp(np.mean(np.log(gain))) > 1.5


def test_what_an_output_law_says_of_a_mean_loss():
    for epsilon in (1.0, 2.0, 4.0):
        mechanism = get_mechanism("geometric")
        law = mechanism.output_distribution(
            loss_output_bounds(np.ones(100), max_loss=2.0, mechanism=mechanism, epsilon=epsilon), epsilon
        )
        # Laplace noise has a mean of 2 / (100 epsilon); a staircase epsilon / (2 sinh(epsilon / 2)) of that
        size = 0.02 / epsilon if epsilon <= 2 else 0.01 / math.sinh(7 / 8 * epsilon / 2)
        assert law.mean_absolute_error(1.0) == pytest.approx(size, rel=1e-3)
        assert law.median() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("rate", [1e-300, 1e-7, 0.02, 0.3, 1.0, 3.0, 10.0, 1e4])
def test_cells_of_noise_have_its_size_and_whole_numbers_where_these_are_likely(rate):
    numbers, mass = noise_cells(rate, 32, 12)
    assert np.isfinite(numbers).all()
    assert mass.sum() == pytest.approx(1, rel=1e-12)
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_array_equal(numbers, -numbers[::-1])
    assert np.sum(mass * np.abs(numbers)) == pytest.approx(expected_noise(max(rate, 1e-260)), rel=1e-9)
    if rate >= math.log(2):
        p = math.tanh(rate / 2) * np.exp(-rate * np.abs(numbers))
        inner = slice(1, -1)  # the last ones stand for all beyond
        np.testing.assert_array_equal(numbers[inner], np.rint(numbers[inner]))
        np.testing.assert_allclose(mass[inner], p[inner], rtol=1e-9)
        assert mass[0] < 2.0**-11 / 32


def test_each_noisy_sum_has_noise_of_its_own():
    law = SumsLaw(ratio_sums(5, 10, 3, 1.0, 1.0), Fraction(1))
    drawn = [law.release(SeededEntropy(seed))[1] for seed in range(20)]
    assert len({a - b for a, b in drawn}) > 10
    assert len({a + b for a, b in drawn}) > 10


def test_the_place_on_the_lattice_is_exact_where_the_range_does_not_begin_at_0():
    low, high, none = -0.3, 3.3, np.empty(0)
    public = replace(loss_bounds([0.0, 1.0], cap=1.0), lower=none, upper=none, sensitivity=1e-9)
    generator, moved = random.Random(0), 0
    for _ in range(2000):
        value = generator.uniform(low, high)
        law = Geometric().output_distribution(replace(public, output_range=(low, high), value=value), 1.0)
        scale = law.grid.last / (Fraction(high) - Fraction(low))
        exact, floats = (
            math.floor(place * scale + Fraction(1, 2))
            for place in (Fraction(value) - Fraction(low), Fraction(value - low))
        )
        assert law.centre == exact
        moved += exact != floats
    assert moved  # a place made of floats is another one now and then
