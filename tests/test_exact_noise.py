"""The exact law of each sampler of integers: every way that its decisions can go, with the probability of each.

Each sampler stands on the next simpler one, whose law has a test of its own here. What remains undecided when the
probability of a way has become tiny bounds the error; nothing is sampled.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from model import exp_minus

from dp_metrics import _random

RATES = [Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(5, 2)]


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

    def law(self, draw: Callable[[], object], floor: float) -> tuple[dict, float]:
        """Return the probability of each outcome, and of the ways that are less likely than the floor."""
        found, left, ways = defaultdict(float), 0.0, [((), 1.0)]
        while ways:
            (self.way, p), self.taken = ways.pop(), 0
            try:
                found[draw()] += p
            except Undecided as undecided:
                if p < floor:
                    left += p
                else:
                    (shares,) = undecided.args
                    ways += [((*self.way, i), p * share) for i, share in enumerate(shares) if share]
        return found, left


class Threshold:
    """A uniform integer of which nothing is asked but whether it is below another."""

    def __init__(self, decisions: Decisions, limit: int) -> None:
        self.decisions, self.limit = decisions, limit

    def __lt__(self, other: int) -> bool:
        p = int(other) / self.limit
        return self.decisions.choose([p, 1 - p]) == 0 if 0 < p < 1 else p >= 1


class TopBits:
    """Words of which the first bits are decided, and the others are ones."""

    def __init__(self, decisions: Decisions, bits: int) -> None:
        self.decisions, self.bits = decisions, bits

    def words(self, size: int) -> np.ndarray:
        rest = 64 - self.bits
        tops = [self.decisions.below(2**self.bits) for _ in range(size)]
        return np.array([top << rest | 2**rest - 1 for top in tops], dtype=np.uint64)


def check(found: dict, left: float, expected: Callable[[object], float], outcomes: Sequence[object], most: float) -> None:
    assert left <= most
    for outcome in outcomes:
        assert found[outcome] - 1e-12 <= expected(outcome) <= found[outcome] + left + 1e-12


def geometric_pmf(rate: Fraction) -> Callable[[int], float]:
    r = float(exp_minus(rate))
    return lambda z: (1 - r) / (1 + r) * r ** abs(z)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 11])
def test_integers_below_a_limit_are_equally_likely(limit):
    decisions, bits = Decisions(), (limit - 1).bit_length()
    for draw in (
        lambda: _random._below(TopBits(decisions, bits), limit),
        lambda: int(_random._belows(TopBits(decisions, bits), limit, 1)[0]),
    ):
        check(*decisions.law(draw, 1e-6), lambda value: 1 / limit, range(limit), 2e-5)


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 3), (1, 3), (2, 3), (1, 1), (7, 10)])
def test_a_trial_succeeds_with_probability_exp(monkeypatch, numerator, denominator):
    decisions = Decisions()
    monkeypatch.setattr(_random, "_below", lambda entropy, limit: Threshold(decisions, limit))
    monkeypatch.setattr(_random, "_belows", lambda entropy, limit, size: np.array([decisions.below(limit)]))
    p = math.exp(-numerator / denominator)
    one = decisions.law(lambda: _random._bernoulli_exp(None, numerator, denominator), 1e-15)
    check(*one, lambda success: p if success else 1 - p, [True, False], 1e-14)
    numerators = np.array([numerator], dtype=np.uint64)
    many = decisions.law(lambda: bool(_random._are_exp(None, numerators, denominator)[0]), 1e-9)
    check(*many, lambda success: p if success else 1 - p, [True, False], 1e-5)


@pytest.mark.parametrize("rate", RATES)
def test_a_discrete_laplace_integer_has_its_law(monkeypatch, rate):
    decisions = Decisions()
    monkeypatch.setattr(_random, "_FEW", 0)
    monkeypatch.setattr(_random, "_below", lambda entropy, limit: decisions.below(limit))
    monkeypatch.setattr(_random, "_bernoulli_exp", lambda entropy, a, b: decisions.is_exp(a, b))
    monkeypatch.setattr(
        _random, "_belows", lambda entropy, limit, size: np.array([decisions.below(limit) for _ in range(size)], np.uint64)
    )
    monkeypatch.setattr(
        _random, "_are_exp", lambda entropy, a, b: np.array([decisions.is_exp(int(x), b) for x in a], dtype=bool)
    )
    for draw in (
        lambda: _random.discrete_laplace(None, rate),
        lambda: _random.discrete_laplaces(None, rate, 1)[0],
    ):
        check(*decisions.law(draw, 1e-7), geometric_pmf(rate), range(-8, 9), 1e-3)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("rate", RATES[1:])
def test_noise_with_the_sum_0_has_its_law(monkeypatch, rate, size):
    decisions, pmf, reach = Decisions(), geometric_pmf(rate), 14
    shares = [pmf(z) for z in range(-reach, reach + 1)]

    def laplaces(entropy, rate, count):
        return [decisions.choose(shares) - reach for _ in range(count)]

    monkeypatch.setattr(_random, "discrete_laplaces", laplaces)
    monkeypatch.setattr(_random, "_bernoulli_exp", lambda entropy, a, b: decisions.is_exp(a, b))
    found, _ = decisions.law(lambda: tuple(_random.zero_sum_laplaces(None, rate, size)), 1e-7)
    r = math.exp(-rate)
    near = [z for z in product(range(-2, 3), repeat=size) if sum(z) == 0]
    for z in near:  # in proportion: whoever is not kept starts again
        expected = r ** sum(map(abs, z))
        assert found[z] / found[near[len(near) // 2]] == pytest.approx(expected / r ** sum(map(abs, near[len(near) // 2])), rel=1e-3)
