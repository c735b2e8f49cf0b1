import os

import numpy as np
import pytest
from helpers import Words
from scipy import stats

from dp_metrics import SeededReleaseWarning
from dp_metrics._random import LazyUniform, OSEntropy, SeededEntropy, check_entropy, uniforms

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
