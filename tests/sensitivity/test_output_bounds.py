"""Output bounds against brute force, in exact arithmetic, and what privacy needs of them."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from helpers import (
    HOSTILE,
    MAX,
    critical_points,
    distance,
    hostile_losses,
    hostile_values,
    loss_bounds,
    multisets,
    nearest,
    neighbour_pairs,
    order_statistic_bounds,
    replaced,
    scores,
    var_bounds,
)
from hypothesis import example, given
from hypothesis import strategies as st

from dp_metrics.sensitivity.exact import UNIT_BITS, rounded_quotient, to_units
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds
from dp_metrics.sensitivity.trimmed_variance import _Windows

CAPS = [None, 0.1, 3.0, 1e308, MAX]
BOUNDS = [
    None,
    (-0.3, 3.3),
    (0.0, 1.0),
    (-0.1, 0.2),
    (-5e-324, 5e-324),
    (-1e308, 1e308),
    (-MAX, MAX),
    (3.0, 1e16),
]


def mean(values):
    return sum(map(Fraction, values)) / len(values)


def variance(values):
    centre = mean(values)
    return sum((Fraction(v) - centre) ** 2 for v in values) / len(values)


def subsets(n, size):
    return itertools.combinations(range(n), size)


def without(values, drop):
    return [v for i, v in enumerate(values) if i not in drop]


def least_mean(losses, rank):
    """Replace the records of every subset of this size by 0, in exact arithmetic."""
    n = len(losses)
    return min(sum(map(Fraction, without(losses, drop))) / n for drop in subsets(n, rank))


def largest_mean(losses, rank, cap):
    n = len(losses)
    return max(
        (sum(map(Fraction, without(losses, drop))) + rank * Fraction(cap)) / n for drop in subsets(n, rank)
    )


def least_variance(x, rank):
    """Replace the records of every subset of this size by the mean of the others, in exact arithmetic."""
    candidates = []
    for drop in subsets(len(x), rank):
        kept = without(x, drop)
        centre = mean(kept) if kept else Fraction(0)
        candidates.append(variance([*kept, *[centre] * rank]))
    return min(candidates)


def check_neighbours(a, b):
    """Check Definition 3.4 and its consequences for the scores, between the bounds of two neighbours."""
    for one, other in ((a, b), (b, a)):
        assert one.value <= other.upper[0]
        assert one.value >= other.lower[0]
        assert (one.upper[:-1] <= other.upper[1:]).all()
        assert (one.lower[:-1] >= other.lower[1:]).all()
    t = critical_points(a, b)
    change = scores(b, t) - scores(a, t)
    assert np.abs(change).max() <= 1
    if a.monotonic:
        assert (change >= 0).all() or (change <= 0).all()
        assert (b.lower >= a.lower).all() or (b.lower <= a.lower).all()


# Small domains, every data set of which is tried; 0.1, 0.3 and 3.3 are not dyadic, so sums round.
LOSS_DOMAINS = [((0, 1, 3), 4, 3), ((0.0, 0.1, 0.3, 0.7), 4, 0.7), ((0.0, 0.1, 3.0), 5, 3.0)]
VALUE_DOMAINS = [((0, 1, 3, 7), 4), ((-0.3, 0.1, 0.3, 3.3), 4), ((0.0, 0.1, 1e8), 5)]


@pytest.mark.parametrize(("domain", "n", "cap"), LOSS_DOMAINS)
def test_mean_bounds_are_the_extremes_over_all_data_sets_within_reach(domain, n, cap):
    for x in multisets(domain, n):
        bounded, unbounded = loss_bounds(x, cap=cap), loss_bounds(x)
        assert bounded.value == unbounded.value == nearest(mean(x))
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        assert (unbounded.upper == MAX).all()
        for rank in range(1, n + 1):
            reach = [nearest(mean(y)) for y in multisets(domain, n) if distance(x, y) <= rank]
            assert bounded.lower[rank - 1] == min(reach)
            assert bounded.upper[rank - 1] == max(reach)
        assert bounded.output_range == (0, cap)
        assert bounded.lower[-1] == 0
        assert bounded.upper[-1] == cap


@pytest.mark.parametrize(("domain", "n"), VALUE_DOMAINS)
def test_variance_bounds_contain_all_data_sets_within_reach(domain, n):
    limits = (float(min(domain)), float(max(domain)))
    for x in multisets(domain, n):
        bounded, unbounded = var_bounds(x, bounds=limits), var_bounds(x)
        assert bounded.value == unbounded.value == nearest(variance(x))
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        assert (unbounded.upper == MAX).all()
        for rank in range(1, n + 1):
            assert bounded.lower[rank - 1] == nearest(least_variance(x, rank))
            reach = [nearest(variance(y)) for y in multisets(domain, n) if distance(x, y) <= rank]
            assert bounded.lower[rank - 1] <= min(reach)
            assert bounded.upper[rank - 1] >= max(reach)
        assert (bounded.lower[n - 2 :] == 0).all()
        assert (bounded.upper <= bounded.output_range[1]).all()


@pytest.mark.parametrize(("domain", "n", "cap"), LOSS_DOMAINS)
@pytest.mark.parametrize("capacity", [2, 5])
def test_scores_of_mean_losses_of_all_neighbours_differ_by_at_most_one_in_one_direction(
    domain, n, cap, capacity
):
    for x, y in neighbour_pairs(domain, n):
        for limit in (None, cap):
            pair = [loss_bounds(data, cap=limit, capacity=capacity) for data in (x, y)]
            assert all(bounds.monotonic for bounds in pair)
            assert pair[0].ranks == min(capacity, n)
            check_neighbours(*pair)


@pytest.mark.parametrize(("domain", "n"), VALUE_DOMAINS)
@pytest.mark.parametrize("capacity", [2, 5])
def test_scores_of_variances_of_all_neighbours_differ_by_at_most_one(domain, n, capacity):
    limits = (float(min(domain)), float(max(domain)))
    for x, y in neighbour_pairs(domain, n):
        for bounds in (None, limits):
            pair = [var_bounds(data, bounds=bounds, capacity=capacity) for data in (x, y)]
            assert not any(bounds.monotonic for bounds in pair)
            check_neighbours(*pair)


def test_scores_of_an_order_statistic_differ_by_at_most_one_in_one_direction():
    for x, y in neighbour_pairs((0.0, 1e-3, 0.5, 1.0), 4):
        check_neighbours(order_statistic_bounds(x, 2), order_statistic_bounds(y, 2))


@given(
    losses=st.lists(hostile_losses, min_size=1, max_size=6),
    record=hostile_losses,
    position=st.integers(0, 5),
    cap=st.sampled_from(CAPS),
    capacity=st.integers(1, 7),
)
@example([3.0, 3.0, 0.1, 0.1, 0.3], 3.0, 2, 3.0, 7)
@example([0.1, 0.2, 0.3, 0.7], 0.0, 3, 3.0, 7)
def test_mean_bounds_of_hostile_floats_are_exact_and_neighbours_agree(
    losses, record, position, cap, capacity
):
    losses, record = [min(v, cap or MAX) for v in losses], min(record, cap or MAX)
    a = loss_bounds(losses, cap=cap, capacity=capacity)
    b = loss_bounds(replaced(losses, position, record), cap=cap, capacity=capacity)
    assert a.value == nearest(mean(losses))
    assert a.ranks == min(capacity, len(losses))
    for rank in range(1, a.ranks + 1):
        assert a.lower[rank - 1] == nearest(least_mean(losses, rank))
        assert a.upper[rank - 1] == (MAX if cap is None else nearest(largest_mean(losses, rank, cap)))
    assert a.output_range == (0.0, MAX if cap is None else cap)
    check_neighbours(a, b)


@given(
    x=st.lists(hostile_values, min_size=1, max_size=6),
    record=hostile_values,
    position=st.integers(0, 5),
    bounds=st.sampled_from(BOUNDS),
    capacity=st.integers(1, 7),
)
@example([3.3, -0.3, -0.3, 3.3], 0.1, 0, (-0.3, 3.3), 7)
@example([0.1, 0.1, 0.1], math.nextafter(0.1, 1), 0, None, 7)
def test_variance_bounds_of_hostile_floats_are_exact_and_neighbours_agree(
    x, record, position, bounds, capacity
):
    if bounds is not None:
        x, record = np.clip(x, *bounds).tolist(), float(np.clip(record, *bounds))
    n = len(x)
    a = var_bounds(x, bounds=bounds, capacity=capacity)
    b = var_bounds(replaced(x, position, record), bounds=bounds, capacity=capacity)
    exact = variance(x)
    assert a.value == nearest(exact)
    limit = nearest(Fraction(MAX))
    if bounds is not None:
        width = (Fraction(bounds[1]) - Fraction(bounds[0])) ** 2
        limit = nearest(width / 4)
    assert a.output_range == (0.0, limit)
    for rank in range(1, a.ranks + 1):
        assert a.lower[rank - 1] == nearest(least_variance(x, rank))
        rise = None if bounds is None else exact + rank * width * (n - 1) / n**2
        assert a.upper[rank - 1] == (MAX if rise is None else nearest(min(rise, width / 4)))
    check_neighbours(a, b)


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("normal", lambda rng: rng.normal(size=400)),
        ("ties", lambda rng: rng.choice([0.1, 0.2, 0.3, 1e3], 400)),
        (
            "almost constant",
            lambda rng: 1e8 + rng.choice([0, 1, 2, 1000], 400, p=[0.5, 0.3, 0.19, 0.01]) * 2.0**-26,
        ),
        ("far outliers", lambda rng: np.append(rng.normal(size=395), [1e300, -1e300, 1e150, 1e30, MAX])),
        ("log-normal", lambda rng: np.exp(10 * rng.normal(size=400))),
        ("two clusters", lambda rng: np.repeat([-1.0, 1.0], 200) + 1e-9 * rng.normal(size=400)),
        ("subnormal", lambda rng: rng.integers(0, 1000, 400) * 5e-324),
    ],
)
def test_screening_in_floats_never_loses_the_best_window(name, x):
    x = np.sort(x(np.random.default_rng(8)))
    n, capacity = x.size, 300  # more than the 256 ranks that are screened together
    sums = list(itertools.accumulate(map(Fraction, x.tolist()), initial=Fraction(0)))
    squares = list(itertools.accumulate((Fraction(v) ** 2 for v in x.tolist()), initial=Fraction(0)))
    bounds = var_bounds(x, capacity=capacity)
    for rank in (1, 2, 7, 100, 255, 256, 257, 299, 300):
        size = n - rank
        least = min(
            squares[j + size] - squares[j] - (sums[j + size] - sums[j]) ** 2 / size for j in range(rank + 1)
        )
        assert bounds.lower[rank - 1] == nearest(least / n)
    assert (np.diff(bounds.lower) <= 0).all()


@pytest.mark.parametrize("n", [4, 8, 12])
@pytest.mark.parametrize("tails_meet", [False, True])
def test_windows_that_rounding_cannot_tell_apart_are_compared_exactly(n, tails_meet):
    """Windows of mirrored values tie; after moves by one float, floats no longer see their order."""
    capacity = n if tails_meet else n // 2  # two ways to tell what the rounding errors are
    for seed in range(60):
        rng = np.random.default_rng(seed)
        half = rng.integers(1, 1000, n // 2) / rng.choice([7, 10, 64])
        x = np.concatenate([-half, half])
        moved = rng.random(n) < 0.3
        x[moved] = np.nextafter(x[moved], rng.choice([-np.inf, np.inf], moved.sum()))
        bounds = var_bounds(x, capacity=capacity)
        x = sorted(x.tolist())
        for rank in range(1, min(capacity, n - 2) + 1):
            size = n - rank
            least = min(size * variance(x[j : j + size]) for j in range(rank + 1))
            assert bounds.lower[rank - 1] == nearest(least / n)


@pytest.mark.parametrize(
    "x",
    [
        lambda rng: np.exp(rng.normal(0, 10, 300)),
        lambda rng: np.exp(rng.normal(0, 20, 300)),
        lambda rng: rng.pareto(0.05, 300),
        lambda rng: np.append(1e9 + rng.normal(size=299) * 1e-3, 0.0),
        lambda rng: np.append(rng.normal(size=290) * 1e-6 + 7.0, np.exp(rng.normal(0, 20, 10))),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_windows_of_few_values_far_from_the_middle_are_found(x, seed):
    # the floats of these are what the tails keep less what the other tail drops: they cancel
    x = np.sort(np.minimum(x(np.random.default_rng(seed)), 1e150))
    n = x.size
    sums = list(itertools.accumulate(to_units(x), initial=0))
    squares = list(itertools.accumulate((unit**2 for unit in to_units(x)), initial=0))
    bounds = var_bounds(x, capacity=n)
    for rank in range(1, n - 1):
        size = n - rank
        least = min(
            size * (squares[j + size] - squares[j]) - (sums[j + size] - sums[j]) ** 2 for j in range(rank + 1)
        )
        assert bounds.lower[rank - 1] == rounded_quotient(least, size * n << 2 * UNIT_BITS)


@pytest.mark.parametrize("n", [150, 300])
def test_neighbours_of_wide_data_agree_at_all_ranks(n):
    rng = np.random.default_rng(1)
    for _ in range(6):
        x = np.sort(np.exp(rng.normal(0, 20, n))) * 1e60
        bounds = var_bounds(x, capacity=n - 1)
        for i, value in ((0, x[-1]), (3, x[0]), (n - 1, x[n // 2]), (5, x[7])):
            check_neighbours(bounds, var_bounds(replaced(x.tolist(), i, value), capacity=n - 1))


@pytest.mark.parametrize("outliers", [[], [1e300], [1e300, -1e200, 1e30]])
def test_far_outliers_do_not_leave_every_window_in_question(outliers, monkeypatch):
    compared = []
    spreads = _Windows.spreads
    monkeypatch.setattr(
        _Windows, "spreads", lambda self, r, drops: compared.append(len(drops)) or spreads(self, r, drops)
    )
    var_bounds([*np.random.default_rng(0).normal(size=3000), *outliers], capacity=1500)
    assert sum(compared) < 60_000  # of more than a million


class TestSeenElsewhere:
    """Mistakes of earlier code, each of which broke an inequality that privacy needs."""

    def test_a_variance_in_floats_may_exceed_its_own_upper_bound(self):
        bounds = var_bounds([3.3, -0.3, -0.3, 3.3], bounds=(-0.3, 3.3))
        assert bounds.lower[0] <= bounds.value <= bounds.upper[0] <= bounds.output_range[1]

    def test_a_mean_in_floats_may_exceed_the_cap(self):
        bounds = loss_bounds([0.1, 0.1, 0.1], cap=0.1)
        assert (0.1 + 0.1 + 0.1) / 3 > 0.1
        assert bounds.value == 0.1
        assert (bounds.upper == 0.1).all()

    def test_sums_in_floats_may_put_neighbours_two_ranks_apart_with_losses_at_the_cap(self):
        # with losses at the cap many ranks share a bound, and one rounding moves t across two of them
        for low, high, n in itertools.product((0.1, 0.3, 0.7), (0, 1, 5), (3, 7, 12)):
            x = [3.0] * (n - 1) + [low] * (high + 1)
            for record in (0.0, 0.1, 2.9, 3.0):
                check_neighbours(loss_bounds(x, cap=3.0), loss_bounds(replaced(x, -1, record), cap=3.0))
                check_neighbours(loss_bounds(x, cap=3.0), loss_bounds(replaced(x, 0, record), cap=3.0))

    def test_variance_is_not_monotonic_whatever_the_paper_says(self):
        x, y = [0, 0, 0, 1, 10, 10, 10, 11, 11, 11], [0, 0, 0, 1, 10, 10, 10, 11, 11, 1]
        a, b = var_bounds(x), var_bounds(y)
        assert b.value < a.value
        assert (b.lower[:4] > a.lower[:4]).all()
        change = scores(b, critical_points(a, b)) - scores(a, critical_points(a, b))
        assert change.min() == -1
        assert change.max() == 1
        assert not a.monotonic


@pytest.mark.parametrize("cap", [3.0, 0.1, 1e308])
def test_the_global_sensitivity_of_a_mean_is_cap_over_n(cap):
    bounds = loss_bounds([0.0, 0.05, 0.1], cap=cap)
    assert bounds.sensitivity == pytest.approx(cap / 3, rel=1e-15)
    assert loss_bounds([0.0, 1.0]).sensitivity is None


def test_the_global_sensitivity_of_a_variance_is_attained():
    n, (low, high) = 5, (-1.0, 3.0)
    bounds = var_bounds([low] * n, bounds=(low, high))
    assert bounds.sensitivity == nearest(variance([low] * (n - 1) + [high]))
    assert bounds.upper[0] == bounds.sensitivity
    assert var_bounds([low] * n).sensitivity is None


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_records_have_bounds_too(n):
    for bounds in (var_bounds([0.5] * n), var_bounds([0.5] * n, bounds=(0.0, 1.0))):
        assert bounds.value == 0
        assert bounds.ranks == n
        assert (bounds.lower == 0).all()
    assert var_bounds([0.5], bounds=(0.0, 1.0)).upper.tolist() == [0.0]  # one record always has variance 0
    assert loss_bounds([0.5] * n, cap=1.0).upper[-1] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": [2.0, 1.0]},
        {"lower": [1.0, 0.5], "upper": [3.0, 2.5]},
        {"lower": [0.5, 1.0]},
        {"lower": [1.0], "upper": [3.0, 4.0]},
        {"upper": [3.0, 6.0]},
        {"lower": [1.0, -1.0]},
        {"value": math.nan},
        {"lower": [[1.0, 0.5]], "upper": [[2.0, 3.0]]},
    ],
)
def test_bounds_out_of_order_are_refused(wrong):
    right = {"value": 1.5, "lower": [1.0, 0.5], "upper": [2.0, 3.0], "output_range": (0.0, 5.0)}
    settings = {"monotonic": True, "n": 10}
    OutputBounds(**right, **settings)
    with pytest.raises(ValueError, match=r"lower and upper|ordered"):
        OutputBounds(**{**right, **wrong}, **settings)


@given(st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=8), st.randoms())
def test_the_order_of_the_records_changes_no_bit(losses, random):
    shuffled = list(losses)
    random.shuffle(shuffled)
    for make in (loss_bounds, var_bounds):
        a, b = make(losses), make(shuffled)
        assert (a.value, a.lower.tolist(), a.upper.tolist()) == (b.value, b.lower.tolist(), b.upper.tolist())


def test_public_facts_have_a_type_of_their_own():
    bounds, other = (loss_bounds(x, cap=1.0) for x in ([0.1, 0.2], [0.3, 1.0]))
    assert bounds.facts == other.facts == pickle.loads(pickle.dumps(bounds.facts))
    assert hash(bounds.facts) == hash(other.facts)
    assert bounds.facts != loss_bounds([0.1, 0.2]).facts
    assert not isinstance(bounds, BoundsFacts)
    assert not isinstance(bounds.facts, OutputBounds)
    assert "0.1" not in repr(bounds.facts)
    widest = bounds.facts.widest()
    assert (widest.value, widest.lower.tolist(), widest.upper.tolist()) == (0.0, [0.0], [1.0])
    assert widest.facts == bounds.facts


@given(st.lists(st.floats(-1, 1) | st.sampled_from([-1.0, 1.0]), min_size=1, max_size=12))
def test_a_mean_and_a_variance_move_no_more_and_no_less_than_limits_of_the_noise_assume(x):
    """As `OutputBounds.mean_ranks` says."""
    n = len(x)
    for made in (var_bounds(x, bounds=(-1.0, 1.0)), loss_bounds(np.abs(x), cap=1.0), var_bounds(x)):
        f, end, rank = made.value, made.output_range[1], np.arange(1, made.mean_ranks + 1)
        assert made.mean_ranks == made.ranks == n
        assert (made.lower <= f * (1 - rank / n) * (1 + 1e-12) + 1e-300).all()
        if made.sensitivity is not None:
            assert (made.lower >= f - rank * made.sensitivity - 1e-12).all()
            assert (made.upper <= f + rank * made.sensitivity + 1e-12).all()
            assert n == 1 or (made.upper >= f + rank * (end - f) / n - 1e-12).all()
