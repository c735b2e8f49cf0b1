"""The default mechanism decides its draw exactly, whatever the bits."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import slow_but
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_metrics._random import LazyUniform
from dp_metrics.analysis.simulation import loss_output_bounds, variance_output_bounds
from dp_metrics.mechanisms import Hazard


class Words:
    """A stream that starts with given words and goes on with seeded ones, or zeros."""

    def __init__(self, first=(), seed=0):
        self._first, self._generator = list(first), None if seed is None else np.random.default_rng(seed)

    def words(self, size):
        if self._generator is None:
            rest = [0] * size
        else:
            rest = self._generator.integers(0, 2**64, size=size, dtype=np.uint64).tolist()
        return np.array([self._first.pop(0) if self._first else rest[i] for i in range(size)], np.uint64)


def some_law(seed):
    rng = np.random.default_rng(seed)
    x = np.minimum(rng.lognormal(0, rng.uniform(0.1, 4), size=int(rng.integers(1, 300))), 50.0)
    epsilon = float(rng.choice([0.1, 0.5, 1, 3, 10, 100, 1e4]))
    mechanism = Hazard(resolution=None if rng.random() < 0.5 else float(rng.choice([0.01, 1.0, 40.0])))
    bounded = rng.random() < 0.5
    if rng.random() < 0.5:
        bounds = loss_output_bounds(
            x, max_loss=50.0 if bounded else None, mechanism=mechanism, epsilon=epsilon
        )
    else:
        bounds = variance_output_bounds(
            x, bounds=(0.0, 50.0) if bounded else None, mechanism=mechanism, epsilon=epsilon
        )
    return mechanism.output_distribution(bounds, epsilon)


def exact_hazard(law, number):
    """Return Lambda_number as a rational number, from its definition."""
    q, total = Fraction(law.q), Fraction(0)
    for start, count, level in zip(
        law.runs.edges.tolist(), law.runs.counts.tolist(), law.runs.levels.tolist(), strict=False
    ):
        total += min(count, max(0, number - start + 1)) * q**-level
    return total


def exact_cdf(law, number):
    if number >= law.grid.last:
        return Fraction(1)
    x = exact_hazard(law, number) / 256
    return law.below * x**law.power if x <= 1 else 1 - (1 - law.below) / x**3


EDGE_WORDS = [0, 1, 2, 2**63, 2**64 - 2, 2**64 - 1]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 200),
    first=st.lists(st.one_of(st.sampled_from(EDGE_WORDS), st.integers(0, 2**64 - 1)), max_size=3),
    rest=st.integers(0, 1000),
)
def test_float_and_integer_paths_give_the_same_output_for_the_same_bits(seed, first, rest):
    law = some_law(seed)
    draws = [law.draw(LazyUniform(Words(first, rest)), exact=exact) for exact in (False, True)]
    assert draws[0] == draws[1]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 200), first=st.lists(st.sampled_from(EDGE_WORDS), max_size=2), rest=st.integers(0, 99)
)
def test_draw_inverts_the_rational_law(seed, first, rest):
    law = some_law(seed)
    if law.runs.counts.size > 200:
        return
    number = law.draw(LazyUniform(Words(first, rest)))
    u = Fraction(LazyUniform(Words(first, rest)).prefix(4096), 2**4096)
    assert exact_cdf(law, number - 1) <= u < exact_cdf(law, number)


def test_draw_is_exact_where_the_bits_tie_with_a_cell_boundary():
    """The first 64 bits of U are those of H(Lambda_k): only later bits can decide."""
    for seed in range(20):
        law = some_law(seed)
        if law.runs.counts.size > 200 or law.grid.last < 3:
            continue
        number = int(law.crossing(np.array([200.0]))[0])
        boundary = exact_cdf(law, number)
        if boundary >= 1:
            continue
        bits = int(boundary * 2**192)
        if bits == boundary * 2**192:
            continue
        words = [(bits >> shift) & (2**64 - 1) for shift in (128, 64, 0)]
        assert not law._certain(number, words[0])
        # U is below the boundary by less than 2^-192
        assert law.draw(LazyUniform(Words(words, None))) == number
        up = bits + 1
        words = [(up >> shift) & (2**64 - 1) for shift in (128, 64, 0)]
        assert law.draw(LazyUniform(Words(words, None))) > number


@pytest.mark.parametrize("seed", slow_but(range(12), range(30)))
def test_error_of_the_floats_is_within_the_proven_margin(seed):
    law = some_law(seed)
    if law.runs.counts.size > 200 or law.q < 1e-10:
        return
    numbers = np.unique(np.clip(law.runs.edges[:-1][law.runs.counts > 0], 0, law.grid.last - 1))
    for number, found in zip(numbers.tolist(), law._hazard(numbers).tolist(), strict=True):
        exact = exact_hazard(law, number)
        if exact < 10**300:
            assert abs(Fraction(found) - exact) <= Fraction(law._margin) / 8 * exact


def test_a_margin_that_is_too_small_is_noticed():
    """Deciding by a guess without the margin is wrong for some bits: the margin is needed."""
    law, wrong = some_law(3), 0
    for number in range(law.grid.first + 1, min(law.grid.last - 1, 3000), 7):
        boundary = exact_cdf(law, number)
        word = int(boundary * 2**64)
        u = np.array([(word + 0.5) * 2.0**-64])
        guess = int(law.crossing(law.level(u, 1 - u))[0])
        exact = law.draw(LazyUniform(Words([word], number)), exact=True)
        wrong += guess != exact
    assert wrong > 0


def test_bits_are_drawn_only_as_they_are_needed():
    class Counting(Words):
        drawn = 0

        def words(self, size):
            Counting.drawn += size
            return super().words(size)

    law = some_law(1)
    for seed in range(200):
        law.draw(LazyUniform(Counting(seed=seed)))
    assert Counting.drawn == 200


def test_lazy_uniform_repeats_its_bits():
    uniform = LazyUniform(Words(seed=7))
    long = uniform.prefix(300)
    assert [uniform.prefix(bits) for bits in (1, 64, 65, 300)] == [
        long >> 300 - bits for bits in (1, 64, 65, 300)
    ]
