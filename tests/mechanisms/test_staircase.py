"""Staircase noise: its law against brute force, and its sampler bit by bit."""

import math
from fractions import Fraction
from itertools import pairwise, product
from unittest import mock

import numpy as np
import pytest
from helpers import Words, loop_over
from hypothesis import given, strategies as st

from dp_metrics import _random
from dp_metrics._random import SeededEntropy, is_chosen, staircase
from dp_metrics.mechanisms._laws import Staircase

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(7, 2), Fraction(12)]
STEPS = [1, 2, 3, 10, 101]
MISSES = np.array([0.3, 0.05, 1e-3, 1e-6])


def brute_force(law, reach=None):
    """Return all whole numbers that are at all likely, and their probabilities, from the stated formula."""
    reach = reach or law.steps * math.ceil(40 / float(law.epsilon) + 3)
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-float(law.epsilon) * ((np.abs(k) + law.steps - law.half) // law.steps))
    return k, weight / weight.sum()


@loop_over(("epsilon", "steps"), product(EPSILONS, STEPS))
def test_the_law_is_that_of_the_formula(epsilon, steps):
    law = Staircase(epsilon, steps)
    k, mass = brute_force(law)
    np.testing.assert_allclose(law.cdf(k.astype(float)), np.cumsum(mass), rtol=1e-9, atol=1e-14)
    assert law.expected == pytest.approx(mass @ np.abs(k), rel=1e-9)
    assert law.deviation == pytest.approx(math.sqrt(mass @ np.square(k)), rel=1e-9)
    tail = 1 - np.cumsum(mass)
    for miss in MISSES.tolist():
        j = law.largest(miss)
        assert tail[k == j] <= miss * (1 + 1e-9)
        assert j == 0 or tail[k == j - 1] > miss * (1 - 1e-9)
    p = np.concatenate([MISSES, 1 - MISSES])
    np.testing.assert_allclose(law.quantiles(p), k[np.searchsorted(np.cumsum(mass), p)], atol=1)


@loop_over(("epsilon", "steps"), product(EPSILONS, STEPS))
def test_the_middle_stair_has_the_best_width(epsilon, steps):
    """No other law of this kind has a smaller mean absolute noise."""

    def expected(half):
        law = Staircase(epsilon, steps)
        vars(law)["half"] = half
        return law.expected

    assert Staircase(epsilon, steps).expected <= (1 + 1e-12) * min(map(expected, range(1, steps + 1)))


def test_the_mean_noise_is_the_stated_share_of_laplace_noise():
    steps, stated = 1 << 20, {0.5: 0.99, 1: 0.96, 2: 0.85, 4: 0.55}
    shares = {e: Staircase(Fraction(e), steps).expected * e / steps for e in stated}
    assert shares == pytest.approx(stated, abs=0.005)


@given(st.fractions(Fraction(1, 10**9), Fraction(1000), max_denominator=10**9), st.integers(31, 95))
def test_bounds_of_the_exponential_enclose_it(exponent, digits):
    lower, upper = _random.exp_bounds(exponent, digits)
    inner_lower, inner_upper = _random.exp_bounds(exponent, 4 * digits)
    assert lower < inner_lower < inner_upper < upper
    assert (upper - lower) * 10**digits < 40 * (1 + exponent) * upper
    if exponent < 600:
        assert float(lower) == pytest.approx(math.exp(exponent), rel=1e-12)


@loop_over("epsilon", [Fraction(1, 3), Fraction(2), Fraction(9)])
def test_the_stair_is_chosen_with_its_probability_to_the_last_bit(epsilon):
    """The first 64 bits of the uniform number decide, but for those of the probability itself."""
    lower, upper = _random.exp_bounds(epsilon, 180)
    for middle, stair in ((1, 2), (5, 8), (2**20 - 1, 2**22)):
        ends = [stair / (stair + middle * (end - 1)) for end in (upper, lower)]
        first, again = (math.floor(end * 2**64) for end in ends)
        assert first == again
        for words, is_later in (([first - 1], True), ([first + 1], False)):
            uniform = mock.Mock(wraps=Words(words))
            assert _random._is_later(uniform, epsilon, middle, stair) == is_later
            assert uniform.words.call_count == 1
        assert _random._is_later(Words([first, 0]), epsilon, middle, stair)
        assert not _random._is_later(Words([first, 2**64 - 1]), epsilon, middle, stair)


def test_a_power_larger_than_can_be_told_is_never_taken_for_a_smaller_one():
    # with 64 bits no more than e^64 is known, of which the stair would be the likelier choice
    assert not _random._is_later(Words([0, 1]), Fraction(10**6), 1, 2**30)


@loop_over("half", [1, 2, 3])
def test_each_place_of_a_stair_means_one_size(monkeypatch, half):
    """The middle stair and the first two later ones, place by place."""
    steps, found = 3, []
    for is_later, stair in ((False, 0), (True, 0), (True, 1)):
        monkeypatch.setattr(_random, "_is_later", lambda *_, is_later=is_later: is_later)
        monkeypatch.setattr(_random, "_geometric_size", lambda *_, stair=stair: stair)
        for place in range(2 * steps if is_later else 2 * half - 1):
            monkeypatch.setattr(_random, "_below", lambda _, limit, place=place: place % limit)
            found.append(staircase(None, Fraction(1), steps, half))
    assert sorted(found) == list(range(-(half - 1) - 2 * steps, half + 2 * steps))


def test_extreme_epsilons():
    for epsilon in (Fraction(1, 10**300), Fraction(10) ** 300):
        law = Staircase(epsilon, 1 << 30)
        cdf = law.cdf(np.array([-1e9, 0.0, 1e9]))
        assert all(a <= b for a, b in pairwise(cdf.tolist()))
        assert law.largest(1e-9) >= 0
        drawn = [law.draw(SeededEntropy(seed)) for seed in range(20)]
        assert (max(map(abs, drawn)) > 1e290) if epsilon < 1 else (drawn == [0] * 20)


@loop_over("probability", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_a_coin_has_its_probability(probability):
    entropy = SeededEntropy(3)
    heads = sum(is_chosen(entropy, probability) for _ in range(3000))
    assert abs(heads - 3000 * probability) <= 6 * math.sqrt(3000 * probability * (1 - probability))
