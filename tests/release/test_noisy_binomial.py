"""Limits of a probability and of a bounded mean: their numbers, their coverage and their extremes."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from helpers import first_of, loop_over, loss_query
from scipy.stats import binom

from dp_metrics.quantities.base import get_mechanism
from dp_metrics.release.count_limits import (
    at_most,
    binomial_law,
    noisy_binomial_cdf,
    noisy_binomial_limits,
    noisy_mean_limits,
)

EACH = 0.025


def limits(count, n, rate):
    return noisy_binomial_limits(count, n, rate, EACH)


@loop_over(
    ("n", "count", "rate", "lower", "upper"),
    [
        (1000, 872, 1.0, "0.84952", "0.89225"),
        (1000, 872, 0.1, "0.83484", "0.90678"),
        (100, 90, 1.0, "0.81777", "0.95619"),
        (100, 90, 0.1, "0.58347", "1.00000"),
        (1000, 1000, 1.0, "0.99467", "1.00000"),
        (10000, 8720, 0.1, "0.86472", "0.87906"),
    ],
)
def test_reference_intervals(n, count, rate, lower, upper):
    assert tuple(f"{end:.5f}" for end in limits(count, n, rate)) == (lower, upper)


def exact_cdf(count, n, p, q):
    """Return P(X + N <= count) as a fraction, for a noise with weights q^|k|."""
    total = Fraction(0)
    for x in range(n + 1):
        k = count - x
        tail = q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)
        total += math.comb(n, x) * p**x * (1 - p) ** (n - x) * tail
    return total


def test_the_law_is_that_of_the_sum_of_both_and_hardly_anything_of_it_is_left_out():
    q = Fraction(math.exp(-0.4))
    for p, count in product((Fraction(1, 1000), Fraction(1, 3), Fraction(97, 100)), (-3, 0, 11, 40, 43)):
        exact = float(exact_cdf(count, 40, p, q))
        assert noisy_binomial_cdf(count, 40, float(p), 0.4) == pytest.approx(exact, rel=1e-12, abs=1e-17)
    for n, p in ((1, 0.5), (30, 1e-9), (1000, 0.2), (10**6, 0.37), (10**6, 1e-6)):
        x, probabilities = binomial_law(n, p)
        assert binom.cdf(x[0] - 1, n, p) + binom.sf(x[-1], n, p) <= 2 * math.exp(-40)
        np.testing.assert_allclose(probabilities, binom.pmf(x, n, p), rtol=1e-7, atol=1e-25)
    assert at_most(0.3) >= 0.3 * (1 + 1e-9)


def coverage(n, rate, shares, interval=limits):
    """Return the exact probability with which the interval of a clamped noisy count covers each share."""
    ends = np.array([interval(count, n, rate) for count in range(n + 1)])
    q, found = math.exp(-rate), []
    for p in shares:
        x = np.arange(n + 1)
        pmf = binom.pmf(x, n, p)
        away = x[:, np.newaxis] - x
        law = pmf @ (np.tanh(rate / 2) * np.exp(-rate * np.abs(away)))
        law[0], law[-1] = pmf @ q**x / (1 + q), pmf @ q ** (n - x) / (1 + q)
        found.append(law[(ends[:, 0] <= p) & (p <= ends[:, 1])].sum())
    return np.array(found)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("n", "rate"),
    [
        *((100, rate) for rate in (0.1, 0.3, 1.0, 3.0)),
        *(pytest.param(1000, rate, marks=pytest.mark.slow) for rate in (0.1, 3.0)),
    ],
)
def test_coverage_is_exact(n, rate):
    found = coverage(n, rate, np.linspace(0.2 / n, 1 - 0.2 / n, 200))
    assert 0.95 <= found.min() < 0.957


@loop_over(("n", "rate"), product([1, 7, 1000], [1e-300, 0.1, 40.0, 1e6]))
def test_limits_are_ordered_symmetric_and_reach_the_ends(n, rate):
    middle = range(0, n + 1, max(n // 20, 1))
    ends = [limits(count, n, rate) for count in (-2, -1, *middle, n + 1, n + 2)]
    lower, upper = np.array(ends).T
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert lower[:3].tolist() == [0.0] * 3
    assert upper[-3:].tolist() == [1.0] * 3
    np.testing.assert_allclose(lower, 1 - upper[::-1], atol=1e-15)
    assert (lower <= upper).all()


@loop_over("count", [0, 1, 372_000, 999_999])
def test_a_million_records_without_noise_are_clopper_and_pearson(count):
    n = 10**6
    lower, upper = limits(count, n, 60.0)
    assert binom.cdf(count, n, upper) == pytest.approx(EACH, rel=1e-6)
    assert lower == 0 or binom.sf(count - 1, n, lower) == pytest.approx(EACH, rel=1e-6)


LAWS = {
    "0 or 1": ((0, 1), (0.9, 0.1)),
    "hardly any": ((0, 1), (0.98, 0.02)),
    "one value": ((0.3,), (1.0,)),
    "three values": ((0, 0.5, 1), (0.5, 0.3, 0.2)),
    "near the end": ((0.5, 1), (0.1, 0.9)),
}


def noisy_law(n, epsilon):
    mean = loss_query(np.zeros(n), 1.0)
    facts = mean.quantity.facts(mean.totals, 1)
    return get_mechanism("geometric").output_distribution(facts.widest(), epsilon)


def first_place(law, n, mean, side):
    """Return the first place, counted from one end, whose limit on that side misses the mean."""

    def misses(place):
        number = place if side == 0 else law.grid.last - place
        end = noisy_mean_limits(law, law.grid.point(number), n, EACH)[side]
        return end > mean if side == 0 else end < mean

    return first_of(range(law.grid.last + 1), misses)


@pytest.mark.gate
@loop_over("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("0 or 1", 20),
        ("three values", 8),
        *(pytest.param(name, 30, marks=pytest.mark.slow) for name in LAWS if name != "0 or 1"),
    ],
)
def test_limits_of_a_bounded_mean_miss_no_more_than_stated(name, n, epsilon):
    """By the exact law of the sum and of the noise."""
    values, shares = LAWS[name]
    mean, law = float(np.dot(values, shares)), noisy_law(n, epsilon)
    sums = np.array([1.0])
    of_one = np.zeros(11)
    of_one[np.rint(np.array(values) * 10).astype(int)] = shares
    for _ in range(n):
        sums = np.convolve(sums, of_one)
    places = np.rint(np.arange(sums.size) / (10 * n) * law.grid.last)
    for side in (0, 1):
        first = first_place(law, n, mean, side)
        # noise is at least so much, counted from either end
        needed = first - (places if side == 0 else law.grid.last - places)
        miss = float(sums @ law.added.cdf(-needed)) if first <= law.grid.last else 0.0
        assert miss <= EACH


@loop_over(
    ("n", "epsilon", "m", "lower", "upper"),
    [
        (1000, 1.0, 0.1, "0.0791", "0.1240"),
        (1000, 0.1, 0.1, "0.0559", "0.1473"),
        (10_000, 4.0, 0.5, "0.4883", "0.5117"),
        (100, 100.0, 0.5, "0.3847", "0.6153"),
        (10, 0.1, 0.5, "0.0000", "1.0000"),
    ],
)
def test_limits_of_a_bounded_mean(n, epsilon, m, lower, upper):
    law = noisy_law(n, epsilon)
    found = noisy_mean_limits(law, law.grid.point(round(m * law.grid.last)), n, EACH)
    assert tuple(f"{end:.4f}" for end in found) == (lower, upper)
    mirrored = noisy_mean_limits(law, law.grid.point(round((1 - m) * law.grid.last)), n, EACH)
    assert mirrored == pytest.approx((1 - found[1], 1 - found[0]), abs=1e-9)
    wide, narrow = found[1] - found[0], np.subtract(*limits(round(m * n), n, epsilon)[::-1])
    assert narrow <= wide <= 1.36 * narrow  # a share, whose law is known, has the narrower ones


def test_limits_at_the_ends_of_the_range():
    law = noisy_law(50, 1.0)
    assert noisy_mean_limits(law, 0.0, 50, EACH)[0] == 0.0
    assert noisy_mean_limits(law, 1.0, 50, EACH)[1] == 1.0
    assert noisy_mean_limits(noisy_law(1, 1e-300), 0.5, 1, EACH) == (0.0, 1.0)
