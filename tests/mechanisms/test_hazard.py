"""Hazard selection: its privacy loss in exact arithmetic, and a sampler that agrees with it bit for bit."""

import bisect
import itertools
import math
from decimal import Context, Decimal, FloatOperation, Inexact, localcontext
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from helpers import (
    EXAMPLES,
    MAX,
    Words,
    first_of,
    hostile_values,
    loss_bounds,
    loss_query,
    replaced,
    scores,
    slow_but,
    var_bounds,
    variance_query,
)
from hypothesis import given, settings, strategies as st

from dp_metrics._random import LazyUniform, SeededEntropy
from dp_metrics.inputs.options import exact_epsilon
from dp_metrics.mechanisms import Hazard
from dp_metrics.mechanisms.hazard import largest_ratio, share_of_rank

pytestmark = pytest.mark.usefixtures("own_error_state")

LAST_WORD = 2**64 - 1
PRECISE = Context(prec=100, Emin=-(10**9))


def exp_minus(share):
    """Return exp(-share) to 100 digits."""
    return PRECISE.exp(PRECISE.divide(Decimal(share.numerator), Decimal(share.denominator)).copy_negate())


def power_of(bounds):
    """Return how many times eps2 goes into epsilon, which is also the power of H at 0."""
    return 4 if bounds.monotonic else 5


class Exact:
    """H(Lambda_k) as fractions of integers, from the definitions in units of 1."""

    def __init__(self, bounds, grid, q):
        numbers = np.arange(grid.first, grid.last)
        levels = (scores(bounds, grid.points(numbers)) - 0.5).astype(int)
        ranks = bounds.ranks
        m, d = q.as_integer_ratio()
        # a weight is q**-level: with the common factor q**-ranks left out, a whole number over d**width
        width = 2 * ranks + 1
        weights = {v: m ** (ranks - v) * d ** (width - ranks + v) for v in range(-ranks - 1, ranks + 1)}
        self.peak = 256 * m**ranks * d ** (width - ranks)
        self.power = power_of(bounds)
        self.first, self.last = grid.first, grid.last
        cuts = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), levels.size]
        self.starts = cuts[:-1]
        self.weights = [weights[int(levels[start])] for start in self.starts]
        self.sums = [0]
        for start, stop, weight in zip(cuts, cuts[1:], self.weights, strict=False):
            self.sums.append(self.sums[-1] + (stop - start) * weight)

    def cdf(self, number):
        """Return numerator and denominator of P(number of the release <= number)."""
        if number < self.first:
            return 0, 1
        if number >= self.last:
            return 1, 1
        cell = number - self.first
        run = bisect.bisect_right(self.starts, cell) - 1
        hazard = self.sums[run] + (cell - self.starts[run] + 1) * self.weights[run]
        a, p = Fraction(3, 3 + self.power), self.power  # A = tail / (tail + kappa + 1), power = kappa + 1
        if hazard <= self.peak:
            return a.numerator * hazard**p, a.denominator * self.peak**p
        denominator = a.denominator * hazard**3
        return denominator - (a.denominator - a.numerator) * self.peak**3, denominator

    def mass(self, number):
        (n1, d1), (n0, d0) = self.cdf(number), self.cdf(number - 1)
        return n1 * d0 - n0 * d1, d1 * d0

    def first_above(self, u):
        """Return the first number with u < P(number of the release <= number)."""

        def is_above(number):
            n, d = self.cdf(number)
            return u * d < n

        return first_of(range(self.first, self.last), is_above)

    def interesting(self):
        """Return the outputs next to a change of score, and some others."""
        cells = {start + step for start in self.starts for step in (-1, 0, 1)}
        cells |= set(np.linspace(0, self.last - self.first, 40).astype(int).tolist())
        return sorted(self.first + cell for cell in cells if 0 <= cell <= self.last - self.first)


def largest_loss(a, b, mechanism, epsilon, *, everywhere=True):
    """Return the largest log-ratio of the laws of two neighbours; fail if one exceeds epsilon, exactly."""
    laws = [mechanism.output_distribution(bounds, epsilon) for bounds in (a, b)]
    grid, q, power = laws[0].grid, laws[0].q, power_of(a)
    assert laws[1].grid == grid
    assert laws[1].q == q
    # q >= exp(-epsilon / power), so a ratio of at most q**-power is at most exp(epsilon)
    assert Decimal(q) >= exp_minus(Fraction(repr(epsilon)) / power)
    m, d = q.as_integer_ratio()
    exact = [Exact(bounds, grid, q) for bounds in (a, b)]
    numbers = range(grid.first, grid.last + 1)
    if not everywhere:
        numbers = sorted({*exact[0].interesting(), *exact[1].interesting()})
    largest = 0.0
    for number in numbers:
        (n0, d0), (n1, d1) = exact[0].mass(number), exact[1].mass(number)
        assert min(n0, n1) > 0  # what is possible under one is possible under the other
        assert n0 * d1 * m**power <= n1 * d0 * d**power
        assert n1 * d0 * m**power <= n0 * d1 * d**power
        largest = max(largest, abs(math.log(n0) + math.log(d1) - math.log(n1) - math.log(d0)))
    return largest


@pytest.mark.gate
@settings(max_examples=40)
@given(
    data=st.lists(hostile_values, min_size=1, max_size=5),
    record=hostile_values,
    position=st.integers(0, 4),
    epsilon=st.sampled_from([1e-12, 0.1, 1.0, 7.3, 60.0]),
    bounded=st.booleans(),
)
def test_privacy_loss_on_hostile_floats_is_at_most_epsilon(data, record, position, epsilon, bounded):
    pair = [np.array(data), np.array(replaced(data, position, record))]
    if bounded:
        pair = [np.clip(x, -0.3, 3.3) for x in pair]
    mean = [loss_bounds(np.abs(x), cap=3.3 if bounded else None) for x in pair]
    variance = [var_bounds(x, bounds=(-0.3, 3.3) if bounded else None) for x in pair]
    with np.errstate(all="raise", under="ignore"):
        for a, b in (mean, variance):
            largest_loss(a, b, Hazard(resolution=0.5), epsilon, everywhere=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_law_is_the_exact_one(name):
    bounds, mechanism = EXAMPLES[name], Hazard(resolution=3.0)
    for epsilon in (1e-12, 0.5, 6.0, 60.0, 150.0, 300.0, 1e5):
        law = mechanism.output_distribution(bounds, epsilon)
        exact = Exact(bounds, law.grid, law.q)
        numbers = exact.interesting()
        points, reached = law.grid.points(np.array(numbers)), [Fraction(*exact.cdf(k)) for k in numbers]
        np.testing.assert_allclose(law.cdf(points), [float(p) for p in reached], rtol=1e-12, atol=1e-300)
        are_next = np.diff(numbers) == 1
        middle = (points[1:] / 2 + points[:-1] / 2)[are_next]
        # nothing lies between grid points
        np.testing.assert_array_equal(law.cdf(middle), law.cdf(points[:-1])[are_next])
        if 0.1 < epsilon < 200:  # also where one cell holds nearly all of the hazard
            masses = [float(p - Fraction(*exact.cdf(k - 1))) for k, p in zip(numbers, reached, strict=True)]
            found = np.exp(law.log_probabilities(np.array(numbers)))
            np.testing.assert_allclose(found, masses, rtol=1e-12, atol=1e-280)


@pytest.mark.gate
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("epsilon", slow_but([6.0], [0.5, 6.0, 300.0]))
def test_a_release_is_decided_exactly_by_the_bits_of_its_uniform(name, epsilon):
    """Feed uniforms that differ from a value of H by one unit in the 64th, 128th or 192nd bit."""
    bounds, mechanism = EXAMPLES[name], Hazard(resolution=3.0)
    law = mechanism.output_distribution(bounds, epsilon)
    exact = Exact(bounds, law.grid, law.q)
    for number in exact.interesting()[:-1]:
        n, d = exact.cdf(number)
        for bits in (64, 128, 192):
            at = (n << bits) // d
            for u in {max(at - 1, 0), at, min(at + 1, 2**bits - 1)}:
                words = [(u >> shift) & LAST_WORD for shift in range(bits - 64, -1, -64)]
                released = mechanism.release(bounds, epsilon, Words(words))
                expected = exact.first_above(Fraction(u, 2**bits))
                assert released == law.grid.points(np.array([expected]))[0]


def some_law(seed):
    rng = np.random.default_rng(seed)
    x = np.minimum(rng.lognormal(0, rng.uniform(0.1, 4), size=int(rng.integers(1, 300))), 50.0)
    epsilon = float(rng.choice([0.1, 0.5, 1, 3, 10, 100, 1e4]))
    mechanism = Hazard(resolution=None if rng.random() < 0.5 else float(rng.choice([0.01, 1.0, 40.0])))
    is_bounded = rng.random() < 0.5
    if rng.random() < 0.5:
        query = loss_query(x, 50.0 if is_bounded else None)
    else:
        query = variance_query(x, (0.0, 50.0) if is_bounded else None)
    bounds = query.output_bounds(mechanism, epsilon)
    return mechanism.output_distribution(bounds, epsilon)


EDGE_WORDS = st.sampled_from([0, 1, 2, 2**63, LAST_WORD - 1, LAST_WORD])


@given(
    seed=st.integers(0, 200),
    words=st.lists(EDGE_WORDS | st.integers(0, LAST_WORD), max_size=3),
    filling=st.integers(0, LAST_WORD),
)
def test_floats_and_integers_give_the_same_output_for_the_same_bits(seed, words, filling):
    law, uniform = some_law(seed), LazyUniform(Words(words, filling))
    assert law.draw(uniform) == law._search(law._guess(uniform.prefix(64)), uniform)


def exact_hazard(law, number):
    """Return Lambda_number as a rational number, from its definition."""
    levels = range(-(law.counts.size // 2), law.counts.size // 2)
    runs = zip(law.edges[:-1].tolist(), law.counts.tolist(), levels, strict=True)
    cells = ((min(count, max(0, number - start + 1)), level) for start, count, level in runs)
    return sum((count * Fraction(law.q) ** -level for count, level in cells), Fraction(0))


@pytest.mark.gate
def test_the_error_of_the_floats_is_within_the_proven_margin():
    tried = 0
    for law in map(some_law, range(20)):
        if law.counts.size > 200 or law.q < 1e-10:
            continue
        numbers = np.unique(np.clip(law.edges[:-1][law.counts > 0], 0, law.grid.last - 1))
        for number, found in zip(numbers.tolist(), law._hazard(numbers).tolist(), strict=True):
            exact = exact_hazard(law, number)
            if exact < 10**300:
                assert abs(Fraction(found) - exact) <= Fraction(law._margin) / 8 * exact
                tried += 1
    assert tried > 100


def test_bits_are_drawn_only_as_they_are_needed():
    law, entropy = some_law(1), mock.Mock(wraps=SeededEntropy(0))
    for _ in range(200):
        law.draw(LazyUniform(entropy))
    assert entropy.words.mock_calls == [mock.call(1)] * 200


def test_the_hazard_ratio_is_at_least_what_it_must_be_just_below_every_float():
    for m in range(1, 200):
        limit = Decimal(0.5 + m * 2.0**-12 + m * 2.0**-53)
        # so that exp(-share) is above the float by 1e-32 only: less than 28 digits tell
        share = Fraction(PRECISE.subtract(PRECISE.ln(limit).copy_negate(), Decimal(10) ** -32))
        assert Decimal(largest_ratio(share)) >= exp_minus(share)


def test_the_hazard_ratio_does_not_depend_on_the_precision_of_decimals():
    for digits, epsilon in itertools.product((2, 3, 6, 28), (0.62, 0.9995, 0.9999984)):
        share = share_of_rank(exact_epsilon(epsilon), monotonic=True)
        with localcontext(Context(prec=digits, traps=[Inexact, FloatOperation])):
            ratio = largest_ratio.__wrapped__(share)
        assert Decimal(ratio) >= exp_minus(share) > Decimal(math.nextafter(ratio, 0))


EPSILONS = [
    5e-324, 1e-300, 1e-17, 1e-16, 4e-16, 0.3, 0.7, 1.1, 2.675, 8.0, 100.0, 2900.0, 2976.0, 3000.0, 3300.0,
    4000.0, 100000.0, 1e300, MAX,
]  # fmt: skip


@given(st.sampled_from(EPSILONS) | st.floats(0, exclude_min=True, allow_infinity=False))
def test_the_hazard_ratio_is_the_smallest_float_that_costs_no_more_than_the_epsilon_that_was_typed(epsilon):
    for name in ("mean", "variance"):
        bounds = EXAMPLES[name]
        q = Hazard(resolution=1.0).output_distribution(bounds, epsilon).q
        share = Fraction(repr(epsilon)) / power_of(bounds)
        true = exp_minus(share) if share < 10**6 else Decimal("1e-400000")
        assert true <= Decimal(q) <= 1
        assert Decimal(math.nextafter(q, 0.0)) < true


def test_what_is_possible_under_one_data_set_is_possible_under_its_neighbour_though_the_hazard_overflows():
    # the hazards above the metric grow by exp(250) per rank: their sum overflows a float at rank 3
    x, y = [0.0] * 5, [0.0] * 4 + [1.0]
    a, b = (loss_bounds(data, cap=1.0) for data in (x, y))
    mechanism, epsilon = Hazard(resolution=26), 1000.0
    assert largest_loss(a, b, mechanism, epsilon) >= 0.99 * epsilon
    for bounds in (a, b):
        law = mechanism.output_distribution(bounds, epsilon)
        assert law.cdf(bounds.output_range[1]) == 1
        assert law.quantile(1.0) <= bounds.output_range[1]
