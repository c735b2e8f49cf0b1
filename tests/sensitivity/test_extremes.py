"""Order statistics and clipped sums: against brute force, and what proofs need of neighbours."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from helpers import BOTH_RELATIONS, check_neighbours, distances_of, loop_over, loss_query, variance_query
from hypothesis import given, strategies as st

from dp_metrics.inputs.arrays import BLOCK
from dp_metrics.inputs.options import MAX_FLOAT, Relation
from dp_metrics.mechanisms import Adaptive
from dp_metrics.quantities.base import TwoStages
from dp_metrics.sensitivity import exact
from dp_metrics.sensitivity.exact import LEVELS, UNIT_BITS, LevelSums
from dp_metrics.sensitivity.output_bounds import BoundsFacts

pytestmark = pytest.mark.usefixtures("own_error_state")

ANY_SIZE = st.floats(0.0, allow_nan=False, allow_infinity=False)
ORDINARY = st.floats(-100, 100, allow_subnormal=False) | st.integers(-3, 3).map(float)


def exact_level(number):
    return Fraction(exact.level_units(number), 1 << UNIT_BITS)


def level_of(value):
    """Return the number of the highest level that is at most a float."""
    number = exact.level_from(value)
    return number if exact_level(number) <= value else number - 1


# Levels


@given(ANY_SIZE)
def test_a_value_lies_between_its_level_and_the_next(value):
    number = exact.level_from(value)
    assert 0 <= number <= LEVELS
    assert Fraction(value) <= exact_level(number) == next_level(Fraction(value))
    assert number == 0 or exact_level(number - 1) < Fraction(value)


@given(st.lists(ANY_SIZE, min_size=1, max_size=50), st.integers(1, 3))
def test_sums_by_level_are_those_of_brute_force(values, blocks):
    sums = LevelSums()
    for block in np.array_split(np.array(values), blocks):
        if block.size:
            sums.add(block)
    found = sums.found()
    assert list(found) == sorted(found)
    expected = {}
    for value in values:
        count, total = expected.get(level_of(value), (0, 0))
        expected[level_of(value)] = count + 1, total + exact.exact_sum(np.array([value]))
    assert {n: (count, exact.in_units(n, part)) for n, (count, part) in found.items()} == expected


def test_sums_by_level_of_a_whole_block_lose_no_bit():
    x = np.nextafter(np.full(BLOCK, 1.0625), 1.0)  # all mantissas nearly full, in one level
    sums = LevelSums()
    sums.add(x)
    ((number, (count, mantissas)),) = sums.found().items()
    assert (count, exact.in_units(number, mantissas)) == (x.size, x.size * exact.to_units(x[:1])[0])
    with pytest.raises(ValueError, match="broadcast"):  # it does not fit into the buffers
        sums.add(np.ones(BLOCK + 1))


def test_a_negative_zero_is_of_the_lowest_level():
    sums = LevelSums()
    sums.add(np.array([-0.0, 1.0, 0.0]))
    lowest, other = sums.found().items()
    assert lowest == (0, (2, 0))
    assert other == (exact.level_from(1.0), (1, 1 << 52))


# Clipped sums of losses


def next_level(value):
    """Return the first level that is at least a rational number, by hand: sixteen in an octave."""
    if value < Fraction(2) ** -1022:
        return Fraction(math.ceil(value * 2**1026), 2**1026)
    octave = Fraction(2) ** (math.frexp(float(value))[1] - 1)
    while octave > value:
        octave /= 2
    return octave * Fraction(math.ceil(value / octave * 16), 16)


def clipped_by_hand(values, level):
    return sum((min(Fraction(v), level) for v in values), Fraction(0))


@given(
    st.lists(ANY_SIZE, min_size=1, max_size=12),
    ANY_SIZE.filter(lambda x: x > 1e-300),
    st.integers(1, 12),
    st.none() | st.floats(1e-3, 1e3),
)
def test_clipped_sums_are_those_of_brute_force_however_little_is_kept(values, y, kept, cap):
    x = np.array(values)
    level = next_level(Fraction(y))
    if cap is not None:
        x, level = np.minimum(x, cap), min(level, Fraction(cap))
    expected = clipped_by_hand(x.tolist(), level)
    for forget, relation in itertools.product((False, True), BOTH_RELATIONS):
        extremes = loss_query(x, cap).stats(kept, forget=forget).extremes(kept, relation.private_n)
        assert extremes.clipped(y) == (expected / level, level)
        assert extremes.private_n == (len(values) if relation.private_n else None)
    assert y <= level <= Fraction(y) * Fraction(17, 16) or cap is not None


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.125, 8)), min_size=2, max_size=8), st.floats(0.01, 60)
)
def test_clipped_sums_of_weighted_losses(rows, y):
    losses, weights = map(np.array, zip(*rows, strict=True))
    query = loss_query(losses, weights=weights)
    terms, total = (losses * weights).tolist(), sum(map(Fraction, weights.tolist()))
    ratio = len(rows) / total
    level = next_level(Fraction(y) / ratio)
    expected = clipped_by_hand(terms, level) / level, ratio * level
    for kept, forget in itertools.product((1, 3, len(rows)), (False, True)):
        extremes = query.stats(kept, forget=forget).extremes(kept, False)
        assert extremes.clipped(y) == expected
        # which is a level once it is scaled, but for the rounding
        for drawn in (at := float(ratio * level), math.nextafter(at, 0), math.nextafter(at, math.inf)):
            clipped_at = extremes.clipped(drawn)[1]
            assert drawn <= clipped_at < Fraction(drawn) * Fraction(17, 16) * (1 + Fraction(1, 10**9))


def test_a_summary_that_does_not_hold_all_values_has_no_clipped_squares():
    x = np.arange(100.0)
    mechanism = Adaptive(threshold=1e-9)
    for capacity, relation, known in (
        (99, Relation.REPLACE_ONE, False),
        (100, Relation.REPLACE_ONE, True),
        (1000, Relation.ADD_OR_REMOVE_ONE, False),
    ):
        noise = variance_query(x).noise(mechanism, 3.0, relation=relation, capacity=capacity)
        assert isinstance(noise, TwoStages) is known


# The order statistic


@pytest.mark.gate
@loop_over(
    ("kind", "relation"),
    itertools.product(["loss", "capped loss", "variance", "bounded variance"], BOTH_RELATIONS),
)
def test_order_statistics_of_neighbours_satisfy_definition_3_4(kind, relation):
    domain, is_variance = [0.0, 0.5, 1.0, 3.0], kind.endswith("variance")

    @cache
    def bounds_of(values, k):
        if is_variance:
            query = variance_query(values, (0.0, 3.0) if kind.startswith("bounded") else None)
        else:
            query = loss_query(values, 3.0 if kind.startswith("capped") else None)
        limit = 3.0 if kind.startswith(("bounded", "capped")) else MAX_FLOAT
        facts = BoundsFacts(output_range=(0.0, limit), monotonic=not is_variance, n=None)
        return facts.bounds(*query.stats(50).extremes(50, relation.private_n).at_ranks(k, 7))

    for k, rest in itertools.product((1, 4), itertools.combinations_with_replacement(domain, 4)):
        others = [tuple(sorted((*rest, more))) for more in domain]
        pairs = ((rest, one) for one in others) if relation.private_n else itertools.combinations(others, 2)
        for pair in pairs:
            a, b = (bounds_of(x, k) for x in pair)
            check_neighbours(a, b)
            assert a.monotonic is not is_variance  # only distances are not


@given(
    st.lists(ANY_SIZE | ORDINARY, max_size=12), ANY_SIZE | ORDINARY, st.integers(0, 12), st.booleans(),
    st.integers(1, 9), st.integers(1, 9),
)  # fmt: skip
def test_distances_of_neighbours_satisfy_definition_3_4(values, one, place, bounded, k, ranks):
    """Whatever the floats are, whether a record is replaced or added."""
    low, high = (-5.0, 10.0) if bounded else (-math.inf, math.inf)
    limit = 15.0 if bounded else MAX_FLOAT
    more = [*values, one]
    pairs = [(values, more)] + ([(values, values[:place] + values[place + 1 :] + [one])] if values else [])
    for pair in pairs:
        found = [distances_of(np.sort(np.clip(x, low, high)), (low, high), limit, k, ranks) for x in pair]
        lower, upper = ([np.append(each[0], each[side]) for each in found] for side in (1, 2))
        for a, b in (0, 1), (1, 0):
            assert (lower[a][1:] <= lower[b][:-1]).all()
            assert (upper[a][:-1] <= upper[b][1:]).all()
        for each in lower + [-x for x in upper]:
            assert (np.diff(each) <= 0).all()
    assert found[0][2].max() <= limit


@loop_over("share", [0.05, 0.2, 0.45])
def test_noise_of_the_drawn_size_leaves_a_far_group_in(share):
    """Else the best centre leaves the group, and a variance without its largest part is released."""
    x = np.sort(np.where(np.arange(2000) < share * 2000, 10.0, 0.0))
    distance, _, _ = distances_of(x, (-math.inf, math.inf), MAX_FLOAT, 2, 50)
    clipped = variance_query(x).stats(50).extremes(50, False).clipped
    totals = [math.prod(clipped(part * distance)) for part in (1.0, 0.7)]
    assert totals[0] > 0.9 * 2000 * x.var()  # the shares between the tenths are off by that
    assert totals[1] < 0.8 * 2000 * x.var()
