import itertools
from fractions import Fraction

import numpy as np
import pytest
from helpers import HOSTILE, hostile_losses, hostile_values
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_metrics.sensitivity.aggregates import LossAggregate, OrderAggregate, VarianceAggregate
from dp_metrics.sensitivity.exact import BLOCK, UNIT_BITS
from dp_metrics.sensitivity.output_bounds import mean_loss_bounds, order_statistic_bounds, variance_bounds

UNIT = 1 << UNIT_BITS

# The same questions for both kinds: how to make one from data, and what its bounds are.
KINDS = {
    "loss": (lambda x, c: LossAggregate.from_data(abs(x), capacity=c), mean_loss_bounds),
    "capped loss": (
        lambda x, c: LossAggregate.from_data(np.minimum(abs(x), 3.0), capacity=c, cap=3.0),
        mean_loss_bounds,
    ),
    "variance": (lambda x, c: VarianceAggregate.from_data(x, capacity=c), variance_bounds),
    "bounded variance": (
        lambda x, c: VarianceAggregate.from_data(np.clip(x, -0.3, 3.3), capacity=c, bounds=(-0.3, 3.3)),
        variance_bounds,
    ),
}


def assert_same(a, b):
    assert type(a) is type(b)
    for field, value in vars(a).items():
        other = getattr(b, field)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other)
        else:
            assert value == other


def assert_same_bits(a, b):
    """Compare output bounds, signs of zeros included."""
    assert (a.value.hex(), a.output_range, a.n, a.sensitivity) == (
        b.value.hex(),
        b.output_range,
        b.n,
        b.sensitivity,
    )
    np.testing.assert_array_equal(a.lower.view(np.int64), b.lower.view(np.int64))
    np.testing.assert_array_equal(a.upper.view(np.int64), b.upper.view(np.int64))


@given(st.lists(hostile_losses, min_size=1, max_size=12), st.integers(0, 15), st.booleans())
def test_a_loss_summary_holds_count_sum_and_extremes(losses, capacity, capped):
    losses = np.minimum(losses, 3.0) if capped else np.array(losses)
    summary = LossAggregate.from_data(losses, capacity=capacity, cap=3.0 if capped else None)
    assert summary.n == losses.size
    assert Fraction(summary.total, UNIT) == sum(map(Fraction, losses.tolist()))
    np.testing.assert_array_equal(summary.largest, np.sort(losses)[::-1][:capacity])
    np.testing.assert_array_equal(summary.smallest, np.sort(losses)[: capacity if capped else 0])


@given(st.lists(hostile_values, min_size=1, max_size=12), st.integers(0, 15))
def test_a_variance_summary_holds_count_power_sums_and_extremes(values, capacity):
    summary = VarianceAggregate.from_data(np.array(values), capacity=capacity)
    assert summary.n == len(values)
    assert Fraction(summary.total, UNIT) == sum(map(Fraction, values))
    assert Fraction(summary.squares, UNIT**2) == sum(Fraction(v) ** 2 for v in values)
    np.testing.assert_array_equal(summary.largest, sorted(values, reverse=True)[:capacity])
    np.testing.assert_array_equal(summary.smallest, sorted(values)[:capacity])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    values=st.lists(hostile_values, min_size=2, max_size=12), capacity=st.integers(1, 15), random=st.randoms()
)
def test_order_and_pieces_change_no_bit(kind, values, capacity, random):
    make, bounds = KINDS[kind]
    whole = make(np.array(values), capacity)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert_same(make(np.array(shuffled), capacity), whole)
    cuts = [0, *sorted(random.randrange(len(values) + 1) for _ in range(3)), len(values)]
    pieces = [make(np.array(shuffled[a:b]), capacity) for a, b in itertools.pairwise(cuts)]
    random.shuffle(pieces)
    while len(pieces) > 1:  # merged as a random tree
        pieces.append(pieces.pop(random.randrange(len(pieces))).merge(pieces.pop(0)))
    assert_same(pieces[0], whole)
    assert_same_bits(bounds(pieces[0]), bounds(whole))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capacity", [1, 100, 4000])
def test_many_records_with_ties_are_selected_like_a_full_sort(kind, capacity):
    rng = np.random.default_rng(capacity)
    n = 3 * BLOCK + 11
    values = np.concatenate([rng.choice(HOSTILE[3:15], n // 2), rng.normal(size=n - n // 2).round(2)])
    rng.shuffle(values)
    make, bounds = KINDS[kind]
    whole = make(values, capacity)
    seen = {"loss": abs(values), "capped loss": np.minimum(abs(values), 3.0), "variance": values}
    ordered = np.sort(seen.get(kind, np.clip(values, -0.3, 3.3)))
    np.testing.assert_array_equal(whole.largest, ordered[::-1][:capacity])
    np.testing.assert_array_equal(whole.smallest, [] if kind == "loss" else ordered[:capacity])
    pieces = [make(piece, capacity) for piece in np.array_split(rng.permutation(values), 4)]
    merged = pieces[2].merge(pieces[0]).merge(pieces[3].merge(pieces[1]))
    assert_same(merged, whole)
    assert_same_bits(bounds(merged), bounds(whole))


def test_pieces_of_a_stream_do_not_affect_the_result():
    losses = np.random.default_rng(0).exponential(size=2 * BLOCK + 5)
    whole = LossAggregate.from_data(losses, capacity=50, cap=2.0)
    streamed = LossAggregate.from_blocks(np.array_split(losses, 37), capacity=50, cap=2.0)
    assert_same(streamed, whole)


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 50, 93, 94, 100])
def test_fewer_ranks_of_an_order_statistic_are_the_first_of_many(k):
    x = np.random.default_rng(k).random(100)
    ordered = np.sort(x)
    few, many = (OrderAggregate.from_data(x, k, capacity=c, limit=1.0) for c in (7, 100))
    assert few.value == many.value == ordered[k - 1]
    np.testing.assert_array_equal(many.below, ordered[: k - 1][::-1])
    np.testing.assert_array_equal(many.above, ordered[k:])
    np.testing.assert_array_equal(few.below, many.below[:7])
    np.testing.assert_array_equal(few.above, many.above[:7])
    bounds, all_bounds = order_statistic_bounds(few), order_statistic_bounds(many)
    np.testing.assert_array_equal(bounds.lower, all_bounds.lower[:7])
    np.testing.assert_array_equal(bounds.upper, all_bounds.upper[:7])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (LossAggregate.from_data(np.ones(3), capacity=2), LossAggregate.from_data(np.ones(3), capacity=3)),
        (
            LossAggregate.from_data(np.ones(3), capacity=2),
            LossAggregate.from_data(np.ones(3), capacity=2, cap=1.0),
        ),
        (
            VarianceAggregate.from_data(np.ones(3), capacity=2),
            VarianceAggregate.from_data(np.ones(3), capacity=3),
        ),
        (
            VarianceAggregate.from_data(np.ones(3), capacity=2, bounds=(0, 1)),
            VarianceAggregate.from_data(np.ones(3), capacity=2, bounds=(0, 2)),
        ),
        (
            LossAggregate.from_data(np.ones(3), capacity=2),
            VarianceAggregate.from_data(np.ones(3), capacity=2),
        ),
    ],
)
def test_only_summaries_with_the_same_public_settings_merge(a, b):
    with pytest.raises(ValueError, match="merge only"):
        a.merge(b)


@pytest.mark.parametrize("kind", KINDS)
def test_printing_a_summary_or_its_bounds_shows_no_data(kind):
    make, bounds = KINDS[kind]
    summary = make(np.array([0.4321, 0.4321]), 1)
    for private in (summary, bounds(summary)):
        assert "432" not in repr(private)
