"""Order statistics and clipped sums: against brute force, and what proofs need of neighbours."""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import loss_query
from hypothesis import given
from hypothesis import strategies as st

from dp_metrics.mechanisms import Adaptive
from dp_metrics.mechanisms.adaptive import _order_statistic
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.release.queries.query import Needs
from dp_metrics.release.queries.variance import AggregatedVariance, Variance
from dp_metrics.sensitivity.aggregates import LossAggregate, VarianceAggregate, WeightedLossAggregate
from dp_metrics.sensitivity.exact import (
    LEVELS,
    UNIT_BITS,
    LevelSums,
    exact_sum,
    in_units,
    level_from,
    level_units,
    to_units,
)
from dp_metrics.sensitivity.extremes import loss_extremes, sums_below_level
from dp_metrics.sensitivity.trimmed_variance import clipped_squares, least_spreads

ANY_SIZE = st.floats(0.0, allow_nan=False, allow_infinity=False)
ORDINARY = st.floats(-100, 100, allow_subnormal=False) | st.integers(-3, 3).map(float)


def exact_level(number):
    return Fraction(level_units(number), 1 << UNIT_BITS)


def level_of(value):
    """Return the number of the highest level that is at most a float."""
    number = level_from(value)
    return number if exact_level(number) <= value else number - 1


# Levels


@given(ANY_SIZE)
def test_a_value_lies_between_its_level_and_the_next(value):
    number = level_from(value)
    assert 0 <= number <= LEVELS
    assert Fraction(value) <= exact_level(number) == next_level(Fraction(value))
    assert number == 0 or exact_level(number - 1) < Fraction(value)


def test_weighted_terms_are_clipped_at_a_level_that_is_at_least_what_was_drawn():
    rng = np.random.default_rng(0)
    for weight in rng.random(200):
        aggregate = WeightedLossAggregate.from_blocks(
            [(np.array([1e-300, 9.0]), None)],
            weight=to_units(np.array([weight]))[0],
            bounded=False,
            capacity=2,
        )
        extremes = loss_extremes(aggregate, 2, partial(sums_below_level, aggregate), private_n=False)
        drawn = 2.0 / weight  # which is a level once it is scaled, but for the rounding
        for y in (math.nextafter(drawn, 0), drawn, math.nextafter(drawn, 9 * drawn)):
            _, most, unit = extremes.clipped(y)
            assert y <= most * unit < Fraction(y) * Fraction(17, 16) * (1 + Fraction(1, 10**9))


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
        expected[level_of(value)] = count + 1, total + exact_sum(np.array([value]))
    assert {n: (count, in_units(n, part)) for n, (count, part) in found.items()} == expected


def test_sums_by_level_of_a_whole_block_lose_no_bit():
    x = np.nextafter(np.full(1 << 14, 1.0625), 1.0)  # all mantissas nearly full, in one level
    sums = LevelSums()
    sums.add(x)
    ((number, (count, mantissas)),) = sums.found().items()
    assert (count, in_units(number, mantissas)) == (x.size, x.size * to_units(x[:1])[0])
    with pytest.raises(ValueError, match="blocks"):
        sums.add(np.ones((1 << 14) + 1))


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


def as_fractions(clipped):
    return clipped.total * clipped.unit, clipped.most * clipped.unit


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
    for forget in (False, True):
        query = loss_query(x, cap).aggregate(kept, forget=forget)
        for private_n in (False, True):
            extremes = query.bounds(Needs(1, kept), private_n).extremes
            assert as_fractions(extremes.clipped(y)) == (expected, level)
            assert extremes.private_n == (len(values) if private_n else None)
    assert y <= level <= Fraction(y) * Fraction(17, 16) or cap is not None


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.125, 8)), min_size=2, max_size=8), st.floats(0.01, 60)
)
def test_clipped_sums_of_weighted_losses(rows, y):
    losses, weights = map(np.array, zip(*rows, strict=True))
    query = MeanLoss(loss_query(losses).record_loss, (losses,), weights)
    terms, total = (losses * weights).tolist(), sum(map(Fraction, weights.tolist()))
    ratio = len(rows) / total
    level = next_level(Fraction(y) / ratio)
    expected = ratio * clipped_by_hand(terms, level), ratio * level
    for kept in (1, 3, len(rows)):
        for forget in (False, True):
            extremes = query.aggregate(kept, forget=forget).bounds(Needs(1, kept), False).extremes
            assert as_fractions(extremes.clipped(y)) == expected


def test_merged_summaries_have_the_clipped_sums_of_all():
    x = np.random.default_rng(0).pareto(1.0, 5000)
    parts = [LossAggregate.from_blocks([p], capacity=10, by_level=True) for p in np.array_split(x, 7)]
    merged = parts[0]
    for part in parts[1:]:
        merged = part.merge(merged)
    assert merged.by_level == LossAggregate.from_blocks([x], capacity=10, by_level=True).by_level
    assert list(merged.by_level) == sorted(merged.by_level)


# Clipped sums of squares


def clipped_squares_by_hand(values, width):
    """Return the least cost over all windows of sorted values, each value outside costing the square."""
    exact = sorted(map(Fraction, values))
    costs = []
    for start, end in itertools.combinations(range(len(exact) + 1), 2):
        window = exact[start:end]
        mean = sum(window) / len(window)
        costs.append(sum((v - mean) ** 2 for v in window) + (len(exact) - len(window)) * width**2)
    return min(costs)


@given(
    st.lists(ORDINARY, min_size=1, max_size=9),
    st.floats(1e-3, 300) | st.integers(1, 6).map(float),
    st.integers(1, 9),
)
def test_clipped_squares_are_those_of_brute_force_however_little_is_kept(values, width, kept):
    x, width = np.array(values), Fraction(width)
    expected = clipped_squares_by_hand(values, width)
    aggregate = VarianceAggregate.from_data(x, capacity=kept)
    least = least_spreads(aggregate, min(kept, x.size))
    assert clipped_squares(aggregate, least, width, lambda: np.sort(x)) == expected
    one = Variance(x, None).aggregate(kept).bounds(Needs(kept, kept), True).extremes
    assert as_fractions(one.clipped(float(width))) == (expected, width**2)


def test_the_core_decides_where_it_can(monkeypatch):
    x = np.random.default_rng(0).normal(size=3000)
    aggregate = VarianceAggregate.from_data(x, capacity=40)
    least = least_spreads(aggregate, 40)

    def not_asked():
        raise AssertionError("the records were looked at again")

    width = Fraction(float(x.max() - x.min()))
    near = clipped_squares(aggregate, least, width, not_asked)
    assert math.isclose(near, 3000 * x.var(), rel_tol=1e-9)
    assert clipped_squares(aggregate, least, width, lambda: np.sort(x)) == near
    with pytest.raises(AssertionError, match="again"):
        clipped_squares(aggregate, least, Fraction(1), not_asked)  # most of the core is farther than that
    # what the aggregate knows beyond the ranks is asked first
    more, narrow = VarianceAggregate.from_data(x, capacity=400), Fraction(9, 2)
    assert clipped_squares(more, least, narrow, not_asked) == clipped_squares(
        aggregate, least, narrow, lambda: np.sort(x)
    )
    with pytest.raises(AssertionError, match="again"):
        clipped_squares(aggregate, least, narrow, not_asked)


@pytest.mark.parametrize("sign", [1, -1])
def test_more_values_than_the_ranks_may_be_too_far_on_one_side(sign):
    """Ten values at -8 pull the best centre so far below 0 that the 13 at 10 are out of reach."""
    x = sign * np.repeat([-8.0, 0.0, 10.0, 1000.0], [10, 400, 13, 10])
    aggregate = VarianceAggregate.from_data(x, capacity=20)
    found = clipped_squares(aggregate, least_spreads(aggregate, 20), Fraction(10), lambda: np.sort(x))
    spread = 10 * 64 - Fraction(80**2, 410)
    assert found == spread + 23 * 100


@given(st.lists(ORDINARY, max_size=7), ORDINARY, st.floats(1e-3, 300))
def test_one_more_value_adds_at_most_the_square_of_the_width(values, more, width):
    width = Fraction(width)
    less = clipped_squares_by_hand(values, width) if values else Fraction(0)
    assert less <= clipped_squares_by_hand([*values, more], width) <= less + width**2


def test_a_summary_that_does_not_hold_all_values_has_no_clipped_squares():
    x = np.arange(100.0)
    mechanism = Adaptive(threshold=1e-9)
    for capacity, private_n, known in ((99, False, False), (100, False, True), (1000, True, False)):
        query = AggregatedVariance(VarianceAggregate.from_data(x, capacity=capacity))
        assert (query._needs(mechanism, Fraction(3), private_n).extremes > 0) is known


# The order statistic


def ladders(query, private_n, k, ranks):
    extremes = query.aggregate(50).bounds(Needs(1, 50), private_n).extremes
    bounds = _order_statistic(extremes, k, ranks)
    return (
        np.concatenate([[bounds.value], bounds.lower]),
        np.concatenate([[bounds.value], bounds.upper]),
        bounds.monotonic,
    )


@pytest.mark.parametrize("private_n", [False, True])
@pytest.mark.parametrize("kind", ["loss", "capped loss", "variance", "bounded variance"])
def test_order_statistics_of_neighbours_satisfy_definition_3_4(kind, private_n):
    domain = [0.0, 0.5, 1.0, 3.0]

    def query(values):
        x = np.array(values)
        if kind.endswith("variance"):
            return Variance(x, (0.0, 3.0) if kind.startswith("bounded") else None)
        return loss_query(x, 3.0 if kind.startswith("capped") else None)

    pairs = []
    for rest in itertools.combinations_with_replacement(domain, 4):
        if private_n:
            pairs += [(rest, (*rest, more)) for more in domain]
        else:
            pairs += [((*rest, a), (*rest, b)) for a, b in itertools.combinations(domain, 2)]
    directions = set()
    for k, (a, b) in itertools.product((1, 4), pairs):
        (low, up, monotonic), (other_low, other_up, _) = (ladders(query(x), private_n, k, 7) for x in (a, b))
        for first, second in ((low, other_low), (other_low, low)):
            assert (first[:-1] >= second[1:]).all()
        for first, second in ((up, other_up), (other_up, up)):
            assert (first[:-1] <= second[1:]).all()
        rises = [bool((x <= y).all()) for x, y in ((low, other_low), (up, other_up))]
        falls = [bool((x >= y).all()) for x, y in ((low, other_low), (up, other_up))]
        one_way = all(rises) or all(falls)
        assert one_way or not monotonic
        directions.add(one_way)
    # widths of a replaced record are the case that is not monotonic
    assert (False in directions) == (kind.endswith("variance") and not private_n)
