import math
import os
from fractions import Fraction

import numpy as np
import pytest
from helpers import Words, slow_but
from scipy import stats

from dp_metrics import SeededReleaseWarning, _random
from dp_metrics._random import (
    LazyUniform,
    OSEntropy,
    SeededEntropy,
    check_entropy,
    discrete_laplaces,
    fresh_random_state,
    uniforms,
    zero_sum_laplaces,
)

LAST_WORD = 2**64 - 1


def test_none_means_the_operating_system_and_does_not_warn():
    assert isinstance(check_entropy(None), OSEntropy)


def test_operating_system_entropy_has_no_state_and_asks_for_every_draw(monkeypatch):
    asked = []

    def urandom(size):
        asked.append(size)
        return bytes(range(size))

    entropy = OSEntropy()
    monkeypatch.setattr(os, "urandom", urandom)
    words = [entropy.words(2), entropy.words(2)]
    assert asked == [16, 16]
    assert words[0].dtype == np.uint64
    assert words[0].shape == (2,)
    assert vars(entropy) == {}


def test_operating_system_words_differ_between_draws():
    draws = np.concatenate([OSEntropy().words(4), OSEntropy().words(4)])
    assert np.unique(draws).size == 8  # equal with probability 2e-18


@pytest.mark.parametrize(
    "make",
    [lambda: 7, lambda: np.int64(7), lambda: np.random.RandomState(7), lambda: np.random.default_rng(7)],
)
def test_a_seed_warns_and_reproduces(make):
    with pytest.warns(SeededReleaseWarning, match="not private"):
        first = check_entropy(make())
    with pytest.warns(SeededReleaseWarning):
        second = check_entropy(make())
    a, b = first.words(5), second.words(5)
    assert a.dtype == np.uint64
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.words(5), a)


def test_entropy_is_passed_through_without_a_second_warning():
    entropy = SeededEntropy(1)
    assert check_entropy(entropy) is entropy


@pytest.mark.parametrize(
    "bad", ["7", 7.0, [7], (1, 2), object(), np.random, True, False, np.True_], ids=lambda bad: repr(bad)[:10]
)
def test_anything_else_is_no_random_state(bad):
    with pytest.raises(TypeError, match="random_state"):
        check_entropy(bad)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="random_state"):
        check_entropy(-1)


def test_uniforms_are_never_0_or_1_and_keep_both_tails():
    u, rest = uniforms(Words([0, 1, 2**63, LAST_WORD - 1, LAST_WORD]), 5)
    assert (u > 0).all()
    assert (u < 1).all()
    np.testing.assert_array_equal(u[::-1][[0, 1, 3, 4]], rest[[0, 1, 3, 4]])
    assert u[0] == 2.0**-65
    assert u[1] == 1.5 * 2.0**-64
    assert rest[-1] == 2.0**-65
    np.testing.assert_allclose(u + rest, 1.0, rtol=1e-15)


@pytest.mark.parametrize("seed", [0, np.random.RandomState(1)])
def test_seeded_uniforms_are_uniform(seed):
    u, _ = uniforms(SeededEntropy(seed), 20_000)
    assert stats.kstest(u, "uniform").pvalue > 1e-6


def test_a_lazy_uniform_never_changes_its_mind():
    words = [0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x5555555555555555]
    uniform = LazyUniform(Words(words))
    whole = (words[0] << 128) | (words[1] << 64) | words[2]
    for bits in (1, 64, 63, 65, 128, 10, 192, 100, 64):
        assert uniform.prefix(bits) == whole >> (192 - bits)


def test_a_lazy_uniform_draws_only_what_is_asked_for():
    class Counting(Words):
        drawn = 0

        def words(self, size):
            self.drawn += size
            return super().words(size)

    entropy = Counting([], filling=LAST_WORD)
    uniform = LazyUniform(entropy)
    assert entropy.drawn == 0
    uniform.prefix(64)
    uniform.prefix(20)
    assert entropy.drawn == 1


def two_sided_law(rate, reach):
    """Return P(k) of two-sided geometric noise for k from -reach to reach."""
    q = math.exp(-rate)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


def zero_sum_law(rate, size, reach):
    """Return P(z_1 = k) of noise with the sum 0: the law of one times that of the sum of the others."""
    one = two_sided_law(rate, reach)
    others = np.ones(1)
    for _ in range(size - 1):
        others = np.convolve(others, one)
    middle = others.size // 2
    law = one * others[middle - reach : middle + reach + 1][::-1]
    return law / law.sum()


# classification.md, A: E|z_1| and sd, for epsilon 0.1, 1 and 3 at the rate epsilon / 2
MOMENTS = {
    2: [(9.983, 14.136), (0.8509, 1.3570), (0.0998, 0.3321)],
    3: [(13.322, 18.253), (1.2215, 1.7785), (0.1831, 0.4598)],
    4: [(14.990, 20.490), (1.4014, 2.0073), (0.2462, 0.5437)],
    16: [(18.741, 26.147), (1.7912, 2.5825), (0.4192, 0.7767)],
}


@pytest.mark.parametrize("size", MOMENTS)
def test_zero_sum_noise_has_its_exact_moments(size):
    for epsilon, (mean, deviation) in zip((0.1, 1, 3), MOMENTS[size], strict=True):
        reach = int(40 / epsilon)
        law, k = zero_sum_law(epsilon / 2, size, reach), np.arange(-reach, reach + 1)
        assert law @ np.abs(k) == pytest.approx(mean, rel=1e-3)
        assert math.sqrt(law @ k**2) == pytest.approx(deviation, rel=1e-3)
    if size == 2:  # that of a count
        np.testing.assert_allclose(zero_sum_law(0.5, 2, 30), two_sided_law(1.0, 30), atol=1e-12)


def chi_square(drawn, law, reach):
    """Return the p-value of integers under a law on -reach .. reach, rare ones taken together."""
    k = np.arange(-reach, reach + 1)
    common = law * len(drawn) >= 8
    observed = np.array([(drawn == value).sum() for value in k[common]])
    expected = law[common] * len(drawn)
    rest = [len(drawn) - observed.sum()], [len(drawn) - expected.sum()]
    return stats.chisquare(np.append(observed, rest[0]), np.append(expected, rest[1])).pvalue


@pytest.mark.parametrize(
    "rate", [Fraction(1, 20), Fraction(1, 2), Fraction(3, 2), Fraction(333333333333, 10**12)]
)
def test_many_integers_at_once_have_the_law_of_one(rate):
    """Fixed seeds; a p-value below 1e-4 by chance in one of 10,000 seeds."""
    drawn = np.array(discrete_laplaces(SeededEntropy(5), rate, 20_000))
    assert len(drawn) == 20_000
    reach = int(12 / rate)
    assert chi_square(drawn, two_sided_law(float(rate), reach), reach) > 1e-4
    # and not that of a rate 10 % off
    assert chi_square(drawn, two_sided_law(float(rate) * 1.1, reach), reach) < 1e-3


LONG = [
    Fraction(10**30 + 7, 2 * 10**30),  # heads of 2 bits take part of the last one
    Fraction((1 << 120) - 1, 1 << 122),
    Fraction(3 * 10**20 + 1, 10**20),
]


@pytest.mark.parametrize("rate", LONG)
@pytest.mark.parametrize("head_bits", slow_but([1, 62], [1, 2, 62]))
def test_integers_of_long_rates_have_the_law_of_one_however_often_tails_decide(rate, head_bits, monkeypatch):
    """Fixed seeds; a p-value below 1e-4 by chance in one of 10,000 seeds."""
    monkeypatch.setattr(_random, "_HEAD_BITS", head_bits)
    drawn = np.array(discrete_laplaces(SeededEntropy(9), rate, 20_000))
    reach = int(12 / rate)
    assert chi_square(drawn, two_sided_law(float(rate), reach), reach) > 1e-4
    assert chi_square(drawn, two_sided_law(float(rate) * 1.1, reach), reach) < 1e-3


@pytest.mark.parametrize("head_bits", [1, 2, 3])
@pytest.mark.parametrize("limit", [11, 16, 37])
def test_long_integers_are_uniform_and_compared_as_integers(limit, head_bits, monkeypatch):
    """Fixed seeds; a p-value below 1e-4 by chance in one of 10,000 seeds."""
    monkeypatch.setattr(_random, "_HEAD_BITS", head_bits)
    long = _random._LongIntegers(SeededEntropy(10), limit)
    heads, tails = long.draw(40_000)
    places = np.arange(40_000)
    values = np.array(long.whole(heads, tails, places))
    assert stats.chisquare(np.bincount(values, minlength=limit)).pvalue > 1e-4
    above = long.are_above(heads, tails, places)
    of_each = np.bincount(values, above, minlength=limit)
    expected = np.bincount(values) * np.arange(limit) / limit  # another is below v with probability v / limit
    assert of_each[0] == 0
    spread = np.sqrt(expected * (1 - np.arange(limit) / limit))[1:]
    assert (np.abs(of_each - expected)[1:] < 5 * spread).all()


@pytest.mark.parametrize("rate", [Fraction(1, 10**300), Fraction("0.03333333333333333") / 7])
def test_many_integers_of_a_long_rate_ask_for_words_seldom(rate):
    """All in arrays: drawn one after the other, 1,000 of them asked more than 10,000 times."""

    class Counting(SeededEntropy):
        asked = 0

        def words(self, size):
            self.asked += 1
            return super().words(size)

    entropy = Counting(1)
    assert len(discrete_laplaces(entropy, rate, 1000)) == 1000
    assert entropy.asked < 500


@pytest.mark.parametrize("size", slow_but([2, 3], [2, 3, 4, 12]))
def test_integers_with_the_sum_0_have_their_law(size):
    entropy, rate = SeededEntropy(6), Fraction(1, 2)
    drawn = np.array([zero_sum_laplaces(entropy, rate, size) for _ in range(3000)])
    assert not drawn.sum(axis=1).any()
    law = zero_sum_law(0.5, size, 24)
    for column in (0, size - 1):  # the last one is made of the others
        assert chi_square(drawn[:, column], law, 24) > 1e-4
    if size > 2:
        independent = two_sided_law(0.5, 24)
        assert size > 4 or chi_square(drawn[:, 0], independent, 24) < 1e-4


@pytest.mark.parametrize(
    "rate", [Fraction(1, 10**300), Fraction(10**300), Fraction(1, 1 << 55), Fraction(7, 1 << 54)]
)
def test_integers_of_any_rate(rate):
    drawn = discrete_laplaces(SeededEntropy(7), rate, 40)
    assert len(drawn) == 40
    sizes = float(np.median([abs(k) * rate for k in drawn]))
    assert sizes == 0 if rate > 1 else 0.2 < sizes < 2
    assert sum(zero_sum_laplaces(SeededEntropy(8), rate, 40)) == 0


def test_generators_for_scikit_learn_have_256_bits_of_the_operating_system(monkeypatch):
    seeds = []
    monkeypatch.setattr(np.random, "RandomState", seeds.append)
    for _ in range(2):
        fresh_random_state()
    assert [(seed.dtype, seed.size) for seed in seeds] == [(np.uint32, 8)] * 2
    assert (seeds[0] != seeds[1]).any()
