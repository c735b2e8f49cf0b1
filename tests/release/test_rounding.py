"""Randomised rounding: each record comes out as 1 with exactly the probability it should."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import NoEntropy, Words, seeded

from dp_metrics._random import are_below, discrete_laplace
from dp_metrics.inputs.shape import Records
from dp_metrics.release.parts.rounded_count import RoundedCount, RoundedOf

WORD = 1 << 64


def is_below(value, limit, *words):
    (found,) = are_below(Words([*words]), np.array([value]), limit).tolist()
    return found


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (1.0, 3.0),
        (0.1, 0.7),
        (2.5, 2.6),
        (1e-300, 1e-290),
        (5e-324, 1.5e-323),
        (1e-25, 1.0),
        (1e308, 1.7e308),
        (784.0, 1035.0),  # between the first 64 bits and this, floats are rounded to different sides
    ],
)
def test_the_first_64_bits_decide_exactly_where_they_can_and_more_bits_where_not(value, limit):
    quotient = Fraction(value) / Fraction(limit)
    edge, rest = divmod(quotient * WORD, 1)
    near = int(edge) >> 40  # so near that floats still decide
    for word in {max(int(edge) - 1, 0), int(edge) + 1, 0, WORD - 1, edge - near, edge + near} - {int(edge)}:
        assert is_below(value, limit, word) == (Fraction(word, WORD) < quotient)
    assert rest > 0
    second = int(rest * WORD)
    assert is_below(value, limit, int(edge), max(second - 1, 0)) is (second > 0)
    assert not is_below(value, limit, int(edge), second + 1)


def test_quotients_with_few_bits_need_no_more():
    for value, limit in ((0.5, 1.0), (0.75, 1.0), (1.0, 4.0), (3e-5, 3e-5), (0.0, 7.0)):
        edge = int(Fraction(value) / Fraction(limit) * WORD)
        if edge:
            assert is_below(value, limit, edge - 1)
        if edge < WORD:
            assert not is_below(value, limit, edge)


def test_the_ends_are_certain():
    for word in (0, 1, WORD // 2, WORD - 1):
        entropy = Words([], word)
        found = are_below(entropy, np.array([0.0, 5e-324, 1e300]), 1e300)
        assert found[[0, 2]].tolist() == [False, True]


def test_shares_are_right_in_many_draws():
    """Each of six shares is farther than 5.5 standard errors off with probability 4e-8; the seed is fixed."""
    shares = np.array([0.001, 0.1, 0.37, 0.5, 0.9, 0.999])
    values = np.repeat(shares, 40_000) * 7.0
    found = are_below(seeded(), values, 7.0).reshape(6, -1).mean(axis=1)
    assert (np.abs(found - shares) < 5.5 * np.sqrt(shares * (1 - shares) / 40_000)).all()


def test_a_draw_counts_ones_and_adds_noise():
    part = RoundedOf(2.0)
    query = part.known(Records((np.array([0.0, 2.0, 2.0, 0.0, 2.0]),)))
    draw = query.prepare(None, Fraction(800), private_n=False)
    assert (query.n, query.size, part.needs_count(None)) == (5, 5, False)
    assert draw(seeded(), None) == (3, {})  # noise is anything but 0 with probability 2 exp(-800)
    lower, upper, _ = draw.noise(3, {}, None).limits(0.05)
    assert (lower, upper) == ([3], [3])
    draw.rehearse()


def test_the_noise_has_the_rate_that_is_audited():
    """With the same bits it is the noise of that rate."""
    draw = RoundedCount(np.zeros(7), 1.0).prepare(None, Fraction(1, 50), private_n=False)
    ours, theirs = seeded(1), seeded(1)
    for _ in range(20):
        theirs.words(7)
        assert draw(ours, None) == (discrete_laplace(theirs, Fraction(1, 50)), {})


def test_preparing_draws_nothing_and_drawing_does():
    draw = RoundedCount(np.array([0.5]), 1.0).prepare(None, Fraction(1), private_n=False)
    with pytest.raises(NoEntropy.Drawn):
        draw(NoEntropy(), None)


def test_a_million_records_take_no_loop():
    values = np.full(10**6, 1 / 3)
    taken = are_below(seeded(), values, 1.0)
    assert math.isclose(taken.mean(), 1 / 3, abs_tol=0.003)
