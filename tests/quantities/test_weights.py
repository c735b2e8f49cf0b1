"""Public weights and persons: exact output bounds, of each set of terms that neighbours may change."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import MAX, check_neighbours, hostile_losses, loop_over, loss_query, nearest, weighted_bounds
from hypothesis import given, strategies as st

from dp_metrics.inputs.arrays import BLOCK
from dp_metrics.sensitivity.exact import exact_difference, largest_pairs

pytestmark = pytest.mark.usefixtures("own_error_state")


def assert_extremes(bounds, terms, limits, total):
    """Check bounds against the extremes over all sets of terms that are changed, rounded once."""
    assert bounds.value == nearest(sum(terms) / total)
    assert bounds.output_range == (0.0, nearest(sum(limits) / total))
    for rank in range(1, len(terms) + 1):
        changed = [set(c) for c in itertools.combinations(range(len(terms)), rank)]
        low = min(sum(t for i, t in enumerate(terms) if i not in c) for c in changed)
        high = max(sum(limits[i] if i in c else t for i, t in enumerate(terms)) for c in changed)
        assert bounds.lower[rank - 1] == nearest(low / total)
        assert bounds.upper[rank - 1] == nearest(high / total)


def products(weights, values):
    with np.errstate(over="ignore"):
        return [Fraction(float(p)) for p in np.minimum(np.multiply(weights, values), MAX)]


@pytest.mark.gate
@loop_over("weights", [(0.1, 0.2, 0.3, 3.3), (0, 1, 0, 1e16), (5e-324, 1, 1e308, MAX)])
@loop_over("cap", [0.7, 1e308])
def test_bounds_of_weighted_losses_are_exact(weights, cap):
    for losses in itertools.product((0.0, 0.1, cap), repeat=4):
        bounds = weighted_bounds(losses, weights, cap)
        terms, limits = products(weights, np.clip(losses, 0, cap)), products(weights, [cap] * 4)
        assert_extremes(bounds, terms, limits, sum(map(Fraction, weights)))
        unlimited = weighted_bounds(np.clip(losses, 0, cap), weights)
        assert unlimited.value == bounds.value
        np.testing.assert_array_equal(unlimited.lower, bounds.lower)


def sums_of(values, persons):
    return [
        Fraction(math.fsum(v for v, g in zip(values, persons, strict=True) if g == person))
        for person in sorted(set(persons))
    ]


@loop_over("persons", [(0, 1, 0, 1), (0, 0, 0, 0), (0, 1, 2, 3), (0, 0, 1, 2)])
def test_bounds_of_persons_are_exact(persons):
    for losses in itertools.product((0.0, 0.1, 0.7), repeat=4):
        terms, limits = sums_of(losses, persons), sums_of([0.7] * 4, persons)
        bounds = weighted_bounds(losses, None, 0.7, persons)
        assert bounds.n == bounds.ranks == len(terms)
        assert_extremes(bounds, terms, limits, 4)


@given(
    losses=st.lists(hostile_losses, min_size=2, max_size=9),
    others=st.lists(hostile_losses, min_size=9, max_size=9),
    weights=st.none() | st.lists(hostile_losses, min_size=9, max_size=9).filter(lambda w: w[0] > 0),
    cap=st.sampled_from([None, 0.1, 3.0, 1e308, MAX]),
    persons=st.integers(1, 9),
    capacity=st.sampled_from([2, 100]),
)
def test_neighbours_that_differ_in_all_records_of_one_person(losses, others, weights, cap, persons, capacity):
    n = len(losses)
    groups = (np.arange(n) * 7 % persons).tolist()
    changed = [other if g == 0 else loss for loss, other, g in zip(losses, others, groups, strict=False)]
    public = (None if weights is None else weights[:n]), cap, groups, capacity
    check_neighbours(weighted_bounds(losses, *public), weighted_bounds(changed, *public))


@loop_over("capacity", [1, 2, 5])
@loop_over("size", [1, 2, 7])
def test_ties_of_the_rounded_room_survive_blocks_and_merges(size, capacity):
    # the first three differences round to 1 and are not equal
    pairs = [(1 + 2**-52, 2**-53), (1.0, 0.0), (1.0, 2**-55), (0.5, 0.25), (3.0, 2.0)]
    for seed in range(10):
        limits, terms = np.array(pairs * 3)[np.random.default_rng(seed).permutation(15)].T
        blocks = [exact_difference(limits[i : i + size], terms[i : i + size]) for i in range(0, 15, size)]
        kept = (np.empty(0), np.empty(0))
        for block in blocks:
            kept = largest_pairs(kept, block, capacity)
        headrooms = [Fraction(float(m)) - Fraction(float(p)) for m, p in zip(limits, terms, strict=True)]
        sums = [
            Fraction(float(headroom)) + Fraction(float(rest)) for headroom, rest in zip(*kept, strict=True)
        ]
        assert sums == sorted(headrooms, reverse=True)[:capacity]


def test_the_sensitivity_is_that_of_the_heaviest_record_wherever_it_stands():
    n = 2 * BLOCK + 10  # a block begins at each multiple of BLOCK
    for heavy in (0, BLOCK - 1, BLOCK, 2 * BLOCK + 9):
        weights = np.ones(n)
        weights[heavy] = 1e4
        expected = 1e4 * 0.5 / (n - 1 + 1e4)
        whole = weighted_bounds(np.zeros(n), weights, 0.5, capacity=3)
        first, *others = (
            loss_query(np.zeros(part.size), 0.5, part).stats(3, forget=True)
            for part in np.array_split(weights, 3)
        )
        for other in others:
            first = first.merge(other)
        for bounds in (whole, first.bounds(3, False)):
            assert abs(bounds.sensitivity / expected - 1) < 1e-9
    for cap in (5e-324, 1e-323):  # one too small for a float is not rounded to none
        sensitivity = weighted_bounds(np.zeros(1000), np.ones(1000), cap).sensitivity
        assert Fraction(sensitivity) >= Fraction(cap) / 1000


def test_the_order_of_records_changes_no_bit_of_what_persons_add_up_to():
    rng = np.random.default_rng(0)
    losses, weights, groups = rng.lognormal(0, 5, 3000), rng.lognormal(0, 3, 3000), rng.integers(0, 400, 3000)
    order = rng.permutation(3000)
    for persons in (None, groups):
        one = weighted_bounds(losses, weights, 50.0, persons, capacity=500)
        shuffled = None if persons is None else persons[order]
        other = weighted_bounds(losses[order], weights[order], 50.0, shuffled, capacity=500)
        assert (other.value, other.output_range) == (one.value, one.output_range)
        np.testing.assert_array_equal([other.lower, other.upper], [one.lower, one.upper])
