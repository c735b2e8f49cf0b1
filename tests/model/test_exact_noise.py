"""The exact law of each sampler of integers: every way that its decisions can go, and how likely it is.

Each sampler stands on the next simpler one, whose law has a test of its own here. Samplers try again until a
try is kept; the tries are alike, so the law of what is kept is that of the first try, given that it is kept.
Nothing is sampled, and what is left out, long runs of successes, has a probability below 1e-11.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dp_metrics import _random


class Again(Exception):
    """A second try begins."""


class Undecided(Exception):
    """A decision that has not been taken yet."""


class Decisions:
    """Takes the decisions of one way, and stops at the first that is not among them."""

    def __init__(self) -> None:
        self.way, self.taken = (), 0

    def choose(self, shares: Sequence[float]) -> int:
        if self.taken == len(self.way):
            raise Undecided(shares)
        self.taken += 1
        return self.way[self.taken - 1]

    def is_exp(self, numerator: int, denominator: int) -> bool:
        p = math.exp(-numerator / denominator)
        return self.choose([p, 1 - p]) == 0

    def below(self, limit: int) -> int:
        return self.choose([1 / limit] * limit) if limit > 1 else 0

    def law(self, draw: Callable[[], object]) -> dict[object, float]:
        """Return the probability of each outcome of the first try, given that it is kept."""
        found, left, ways = defaultdict(float), 0.0, [((), 1.0)]
        while ways:
            (self.way, p), self.taken = ways.pop(), 0
            try:
                found[draw()] += p
            except Again:
                continue
            except Undecided as undecided:
                if p < 1e-14:
                    left += p
                else:
                    (shares,) = undecided.args
                    ways += [((*self.way, i), p * share) for i, share in enumerate(shares) if share]
        assert left < 1e-11
        kept = sum(found.values())
        return {outcome: p / kept for outcome, p in found.items()}


class Threshold:
    """A uniform integer of which nothing is asked but whether it is below another."""

    def __init__(self, decisions: Decisions, limit: int) -> None:
        self.decisions, self.limit = decisions, limit

    def __lt__(self, other: int) -> bool:
        p = int(other) / self.limit
        return self.decisions.choose([p, 1 - p]) == 0 if 0 < p < 1 else p >= 1


class Thresholds(Threshold):
    """The same for arrays of one."""

    def __eq__(self, other: object) -> np.ndarray:
        assert other == 0
        return np.array([super().__lt__(1)])

    def __lt__(self, other: np.ndarray) -> np.ndarray:
        return np.array([super().__lt__(other[0])] if other.size else [], dtype=bool)


class OneWord:
    """A word of which the first bits are decided, and the others are ones."""

    def __init__(self, decisions: Decisions, bits: int) -> None:
        self.decisions, self.bits = decisions, bits

    def words(self, size: int) -> np.ndarray:
        if self.decisions.taken:
            raise Again
        rest = 64 - self.bits
        return np.array([self.decisions.below(2**self.bits) << rest | 2**rest - 1], dtype=np.uint64)


def geometric_pmf(rate: Fraction) -> Callable[[int], float]:
    r = math.exp(-rate)
    return lambda z: (1 - r) / (1 + r) * r ** abs(z)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 11])
def test_integers_below_a_limit_are_equally_likely(limit):
    decisions, bits = Decisions(), (limit - 1).bit_length()
    for draw in (
        lambda: _random._below(OneWord(decisions, bits), limit),
        lambda: int(_random._belows(OneWord(decisions, bits), limit, 1)[0]),
    ):
        assert decisions.law(draw) == pytest.approx(dict.fromkeys(range(limit), 1 / limit))


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 3), (1, 3), (2, 3), (1, 1), (7, 10)])
def test_a_trial_succeeds_with_probability_exp(monkeypatch, numerator, denominator):
    decisions, p = Decisions(), math.exp(-numerator / denominator)
    monkeypatch.setattr(_random, "_below", lambda entropy, limit: Threshold(decisions, limit))
    monkeypatch.setattr(_random, "_belows", lambda entropy, limit, size: Thresholds(decisions, limit))
    numerators = np.array([numerator], dtype=np.uint64)
    for draw in (
        lambda: _random._bernoulli_exp(None, numerator, denominator),
        lambda: bool(_random._are_exp(None, numerators, denominator)[0]),
    ):
        law = decisions.law(draw)
        assert law[True] == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("many", [False, True])
def test_a_discrete_laplace_integer_has_its_law(monkeypatch, rate, many):
    decisions, pmf, first = Decisions(), geometric_pmf(rate), {}

    def is_exp(numerator, denominator):
        kept = decisions.is_exp(numerator, denominator)
        first.setdefault("kept", kept)
        return kept

    def below(limit):
        first["drawn"] = first.get("drawn", 0) + 1
        if first["drawn"] > (2 if first.get("kept") else 1):  # the remainder, and a sign if that is kept
            raise Again
        return decisions.below(limit)

    def draw():
        first.clear()
        return _random.discrete_laplaces(None, rate, 1)[0]

    monkeypatch.setattr(_random, "_FEW", 0 if many else 2)
    monkeypatch.setattr(_random, "_below", lambda entropy, limit: below(limit))
    monkeypatch.setattr(_random, "_bernoulli_exp", lambda entropy, a, b: is_exp(a, b))
    monkeypatch.setattr(
        _random,
        "_belows",
        lambda entropy, limit, size: np.array([below(limit) for _ in range(size)], np.uint64),
    )
    monkeypatch.setattr(
        _random, "_are_exp", lambda entropy, a, b: np.array([is_exp(int(x), b) for x in a], dtype=bool)
    )
    law = decisions.law(draw)
    for z in range(-8, 9):
        assert law[z] == pytest.approx(pmf(z), rel=1e-7)


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(5, 2)])
def test_noise_with_the_sum_0_has_its_law(monkeypatch, rate):
    """The free part takes all small values in turn; how often each is kept makes the law."""
    decisions, r, reach, tried = Decisions(), math.exp(-rate), 4, []

    def laplaces(entropy, rate, count):
        if tried:
            raise Again
        tried.extend(decisions.choose([1.0] * (2 * reach + 1)) - reach for _ in range(count))
        return list(tried)

    def draw():
        tried.clear()
        return tuple(_random.zero_sum_laplaces(None, rate, 3))

    monkeypatch.setattr(_random, "discrete_laplaces", laplaces)
    monkeypatch.setattr(_random, "_bernoulli_exp", lambda entropy, a, b: decisions.is_exp(a, b))
    law = decisions.law(draw)
    for x, y in product(range(-reach, reach + 1), repeat=2):
        # what is drawn as often as |x| + |y| tells, and kept as often as this, has the law of the three
        assert law[x, y, -x - y] / law[0, 0, 0] == pytest.approx(r ** abs(x + y), rel=1e-12)


def test_permute_and_flip_has_the_law_of_its_docstring(monkeypatch):
    """The integral of p_i prod_(j != i) (1 - t p_j) over t from 0 to 1, p_i = exp(-x_i)."""
    decisions, exponents = Decisions(), [Fraction(1, 3), Fraction(0), Fraction(5, 2), Fraction(0)]
    monkeypatch.setattr(_random, "_below", lambda entropy, limit: decisions.below(limit))
    monkeypatch.setattr(_random, "_bernoulli_exp", lambda entropy, a, b: decisions.is_exp(a, b))
    law = decisions.law(lambda: _random.permute_and_flip(None, exponents))
    heads = [math.exp(-x) for x in exponents]
    for place, own in enumerate(heads):
        inner = np.polynomial.Polynomial([own])
        for other in heads[:place] + heads[place + 1 :]:
            inner *= np.polynomial.Polynomial([1, -other])
        assert law[place] == pytest.approx(inner.integ()(1.0), rel=1e-12)
