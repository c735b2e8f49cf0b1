"""The samplers as they are, by statistics with fixed seeds: `tests/model` has the exact law of each step."""

import os
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from helpers import Words, two_sided
from scipy import stats

from dp_metrics import _random
from dp_metrics._random import Entropy, LazyUniform, SeededEntropy

LAST_WORD = 2**64 - 1


@pytest.mark.usefixtures("operating_system_words")
def test_operating_system_entropy_has_no_state_and_asks_for_every_draw(monkeypatch):
    asked = []

    def urandom(size):
        asked.append(size)
        return bytes(range(size))

    entropy = Entropy()
    monkeypatch.setattr(os, "urandom", urandom)
    words = [entropy.words(2), entropy.words(2)]
    assert asked == [16, 16]
    assert words[0].dtype == np.uint64
    assert words[0].shape == (2,)
    assert vars(entropy) == {}


def test_uniforms_are_never_0_or_1():
    u = _random.uniforms(Words([0, 1, 2**63, LAST_WORD - 1, LAST_WORD]), 5)
    assert u.tolist() == [2.0**-65, 1.5 * 2.0**-64, 0.5, 1 - 2.0**-53, 1 - 2.0**-53]


def test_a_lazy_uniform_never_changes_its_mind_and_draws_only_what_is_asked_for():
    words = [0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x5555555555555555]
    entropy = mock.Mock(wraps=Words(words))
    uniform, whole = LazyUniform(entropy), (words[0] << 128) | (words[1] << 64) | words[2]
    for bits, drawn in ((1, 1), (64, 1), (63, 1), (65, 2), (128, 2), (10, 2), (192, 3), (100, 3), (64, 3)):
        assert uniform.prefix(bits) == whole >> (192 - bits)
        assert entropy.words.mock_calls == [mock.call(1)] * drawn


def chi_square(drawn, rate, reach):
    """Return the p-value of integers under the law of their noise, rare ones taken together."""
    k, law = two_sided(rate, reach)
    common = law * len(drawn) >= 8
    observed = np.array([(drawn == value).sum() for value in k[common]])
    expected = law[common] * len(drawn)
    rest = [len(drawn) - observed.sum()], [len(drawn) - expected.sum()]
    return stats.chisquare(np.append(observed, rest[0]), np.append(expected, rest[1])).pvalue


RATES = [
    Fraction(1, 2),
    Fraction(333333333333, 10**12),
    # of long terms
    Fraction(10**30 + 7, 2 * 10**30),
    Fraction((1 << 120) - 1, 1 << 122),
    Fraction(3 * 10**20 + 1, 10**20),
]


@pytest.mark.gate
def test_integers_drawn_at_once_or_one_by_one_have_their_law():
    """Fixed seeds; a p-value below 1e-4 by chance in one of 10,000 seeds."""
    for seed, rate in enumerate(RATES):
        drawn, reach = np.array(_random.discrete_laplaces(SeededEntropy(seed), rate, 20_000)), int(12 / rate)
        assert drawn.shape == (20_000,)
        assert chi_square(drawn, float(rate), reach) > 1e-4, rate
        # and not that of a rate 10 % off
        assert chi_square(drawn, float(rate) * 1.1, reach) < 1e-3, rate
    entropy = SeededEntropy(0)
    one_by_one = np.array([_random.discrete_laplace(entropy, Fraction(7, 5)) for _ in range(4000)])
    assert chi_square(one_by_one, 1.4, 9) > 1e-4


def test_many_integers_of_a_long_rate_ask_for_words_seldom():
    """All in arrays: drawn one after the other, 1,000 of them asked more than 10,000 times."""
    for rate in (Fraction(1, 10**300), Fraction("0.03333333333333333") / 7):
        entropy = mock.Mock(wraps=SeededEntropy(1))
        assert len(_random.discrete_laplaces(entropy, rate, 1000)) == 1000
        assert entropy.words.call_count < 500


def test_integers_of_any_rate():
    for rate in (Fraction(1, 10**300), Fraction(10**300), Fraction(1, 1 << 55), Fraction(7, 1 << 54)):
        drawn = _random.discrete_laplaces(SeededEntropy(7), rate, 40)
        assert len(drawn) == 40
        sizes = float(np.median([abs(k) * rate for k in drawn]))
        assert sizes == 0 if rate > 1 else 0.2 < sizes < 2
        together = _random.zero_sum_laplaces(SeededEntropy(8), rate, 40)
        assert (len(together), sum(together)) == (40, 0)
    assert _random.discrete_laplace(SeededEntropy(0), Fraction(10**400)) == 0
    assert abs(_random.discrete_laplace(SeededEntropy(0), Fraction(1, 10**400))) > 10**390


def test_generators_for_scikit_learn_have_256_bits_of_the_operating_system(monkeypatch):
    seeds = []
    monkeypatch.setattr(np.random, "RandomState", seeds.append)
    for _ in range(2):
        _random.fresh_random_state()
    assert [(seed.dtype, seed.size) for seed in seeds] == [(np.uint32, 8)] * 2
    assert (seeds[0] != seeds[1]).any()
