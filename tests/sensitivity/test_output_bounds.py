"""Output bounds against brute force, in exact arithmetic, and what privacy needs of them."""

import itertools
import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from helpers import (
    MAX,
    check_neighbours,
    distance,
    hostile_losses,
    hostile_values,
    loop_over,
    loss_bounds,
    mean,
    multisets,
    nearest,
    neighbour_pairs,
    replaced,
    var_bounds,
    variance,
)
from hypothesis import example, given, strategies as st

from dp_metrics.sensitivity.exact import UNIT_BITS, rounded_quotient, to_units
from dp_metrics.sensitivity.output_bounds import OutputBounds, order_statistic_bounds

pytestmark = pytest.mark.usefixtures("own_error_state")

CAPS = [None, 0.1, 3.0, 1e308, MAX]
BOUNDS = [
    None, (-0.3, 3.3), (0.0, 1.0), (-0.1, 0.2), (-5e-324, 5e-324), (-1e308, 1e308), (-MAX, MAX), (3.0, 1e16),
]  # fmt: skip


def least_variance(x, rank, *, private_n=False):
    """Put the mean of the others for so many records, or drop some of these and add others; exactly."""
    least = []
    for dropped in range(min(rank, len(x)) + 1) if private_n else [rank]:
        added = rank - dropped if private_n else rank
        several = itertools.combinations(x, len(x) - dropped)
        least += [variance([*kept, *[mean(kept)] * added]) for kept in several]
    return min(least)


def order_bounds(x, k, limit=MAX, capacity=10):
    return order_statistic_bounds(np.array(x, dtype=float), k, capacity, limit)


def ranked(k):
    """Return how the k-th smallest of values is tried: without and with a limit."""
    return partial(order_bounds, k=k), {"limit": 3.3}, lambda x: Fraction(sorted(x)[k - 1])


def within(some):
    return {"bounds": (float(some[0]), some[-1])}


# Small domains, every data set of which is tried; 0.1, 0.3 and 3.3 are not dyadic, so sums round.
TRIED = {
    "mean of whole numbers": (loss_bounds, {"cap": 3}, mean, (0, 1, 3), 4),
    "mean": (loss_bounds, {"cap": 0.7}, mean, (0.0, 0.1, 0.3, 0.7), 4),
    "mean of five": (loss_bounds, {"cap": 3.0}, mean, (0.0, 0.1, 3.0), 5),
    **{f"rank {k}": (*ranked(k), (0.0, 0.1, 0.7, 3.3), 4) for k in range(1, 5)},
    "variance of whole numbers": (var_bounds, within((0, 7)), variance, (0, 1, 3, 7), 4),
    "variance": (var_bounds, within((-0.3, 3.3)), variance, (-0.3, 0.1, 0.3, 3.3), 4),
    "variance of five": (var_bounds, within((0, 1e8)), variance, (0.0, 0.1, 1e8), 5),
}


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("private_n", [False, True], ids=["replaced", "added"])
def test_bounds_are_the_extremes_over_all_data_sets_within_reach(name, private_n):
    """Of a variance they contain these."""
    make, limit, exact, domain, n = TRIED[name]
    if private_n and name.startswith("rank"):
        return  # it would tell how many records there are
    ranks = 3 if private_n else n
    sizes, reached = (range(n + 1), range(n + ranks + 1)) if private_n else ([n], [n])
    reachable = {y: exact(y) for size in reached for y in multisets(domain, size)}
    for x in itertools.chain.from_iterable(multisets(domain, size) for size in sizes):
        # how many records are replaced, or come and go
        far = {y: distance(x, y) + private_n * distance(y, x) for y in reachable}
        options = {"capacity": ranks, "private_n": True} if private_n else {}
        bounded, unbounded = make(x, **limit, **options), make(x, **options)
        assert bounded.value == unbounded.value == nearest(exact(x))
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        for rank in range(1, ranks + 1):
            reach = [nearest(value) for y, value in reachable.items() if far[y] <= rank]
            lower, upper = bounded.lower[rank - 1], bounded.upper[rank - 1]
            if exact is not variance:
                assert (lower, upper) == (min(reach), max(reach))
                continue
            assert lower == nearest(least_variance(x, rank, private_n=private_n)) <= min(reach)
            assert max(reach) <= upper <= bounded.output_range[1]
        k = int(name[-1]) if name.startswith("rank") else len(x)  # of a mean one unlimited record is enough
        assert unbounded.upper.tolist() == sorted(x)[k:] + [MAX] * (ranks - len(x[k:]))
        assert bounded.n == (None if private_n else n)
        assert bounded.monotonic == (exact is not variance and not private_n)


@pytest.mark.gate
@pytest.mark.parametrize("name", TRIED)
def test_scores_of_all_neighbours_differ_by_at_most_one_and_where_that_is_said_in_one_direction(name):
    make, limit, _, domain, n = TRIED[name]
    for options, capacity in itertools.product(({}, limit), (1, 2, 5)):
        bounds_of = cache(partial(make, capacity=capacity, **options))
        for pair in neighbour_pairs(domain, n):
            check_neighbours(*map(bounds_of, pair))


@given(
    losses=st.lists(hostile_losses, min_size=1, max_size=6),
    record=hostile_losses,
    position=st.integers(0, 5),
    cap=st.sampled_from(CAPS),
    capacity=st.integers(1, 7),
)
@example([3.0, 3.0, 0.1, 0.1, 0.3], 3.0, 2, 3.0, 7)
@example([0.1, 0.2, 0.3, 0.7], 0.0, 3, 3.0, 7)
@example([0.1, 0.1, 0.1], 0.1, 0, 0.1, 7)  # whose mean in floats exceeds the cap
def test_mean_bounds_of_hostile_floats_are_exact_and_neighbours_agree(
    losses, record, position, cap, capacity
):
    losses, record = [min(v, cap or MAX) for v in losses], min(record, cap or MAX)
    a = loss_bounds(losses, cap=cap, capacity=capacity)
    b = loss_bounds(replaced(losses, position, record), cap=cap, capacity=capacity)
    assert a.value == nearest(mean(losses))
    n, ordered = len(losses), sorted(losses)
    assert a.ranks == min(capacity, n)
    for rank in range(1, a.ranks + 1):
        assert a.lower[rank - 1] == nearest(mean([0.0] * rank + ordered[: n - rank]))
        assert a.upper[rank - 1] == (MAX if cap is None else nearest(mean(ordered[rank:] + [cap] * rank)))
    assert a.output_range == (0.0, MAX if cap is None else cap)
    check_neighbours(a, b)
    both = losses, [*losses, record]
    check_neighbours(*(loss_bounds(x, cap=cap, capacity=capacity, private_n=True) for x in both))


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
    check_neighbours(*(var_bounds(one, capacity=capacity, private_n=True) for one in (x, [*x, record])))


WINDOWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.choice([0.1, 0.2, 0.3, 1e3], n),
    "almost constant": lambda rng, n: (
        1e8 + rng.choice([0, 1, 2, 999], n, p=[0.5, 0.3, 0.19, 0.01]) * 2.0**-26
    ),
    "far outliers": lambda rng, n: np.append(rng.normal(size=n - 5), [1e300, -1e300, 1e150, 1e30, MAX]),
    "two clusters": lambda rng, n: np.repeat([-1.0, 1.0], n // 2) + 1e-9 * rng.normal(size=n),
    "subnormal": lambda rng, n: rng.integers(0, 1000, n) * 5e-324,
    # of these the floats are what the tails keep less what the other tail drops: they cancel
    "log-normal": lambda rng, n: np.exp(rng.normal(0, 10, n)),
    "Pareto": lambda rng, n: np.minimum(rng.pareto(0.05, n), 1e150),
    "one below": lambda rng, n: np.append(1e9 + rng.normal(size=n - 1) * 1e-3, 0.0),
    "few far": lambda rng, n: np.append(7 + 1e-6 * rng.normal(size=n - 10), np.exp(rng.normal(0, 20, 10))),
}


def windows_of(name, n):
    """Return values in order, and what tells the least variance of so many next to each other, times n^2."""
    x = np.sort(WINDOWS[name](np.random.default_rng(8), n))
    units = to_units(x)
    sums, squares = (list(itertools.accumulate(each, initial=0)) for each in (units, [u**2 for u in units]))

    def least(size):
        ends = zip(range(n - size + 1), range(size, n + 1), strict=True)
        return min(size * (squares[j] - squares[i]) - (sums[j] - sums[i]) ** 2 for i, j in ends)

    return x, least


@pytest.mark.parametrize("name", WINDOWS)
def test_screening_in_floats_never_loses_the_best_window(name):
    n, capacity = 400, 398  # more than the 256 ranks that are screened together
    x, least = windows_of(name, n)
    bounds = var_bounds(x, capacity=capacity)
    for rank in (*range(1, 20), *range(20, 250, 23), 255, 256, 257, 299, 300, 350, 397):
        size = n - rank
        assert bounds.lower[rank - 1] == rounded_quotient(least(size), size * n << 2 * UNIT_BITS), rank
    assert (np.diff(bounds.lower) <= 0).all()


@loop_over("name", WINDOWS)
def test_as_many_values_are_dropped_at_each_rank_as_leave_the_least_variance(name):
    n, capacity = 100, 90
    x, least = windows_of(name, n)
    spreads = [least(n - dropped) for dropped in range(capacity + 1)]
    bounds = var_bounds(x, capacity=capacity, private_n=True)
    for rank in range(1, capacity + 1):
        sizes = [((n - a) * (n + rank - 2 * a)) << 2 * UNIT_BITS for a in range(rank + 1)]
        assert bounds.lower[rank - 1] == min(map(rounded_quotient, spreads, sizes)), rank


@loop_over(("n", "tails_meet"), itertools.product([4, 8, 12], [False, True]))
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


def test_the_global_sensitivities_are_those_of_the_definitions():
    for cap in (3.0, 0.1, 1e308):
        assert loss_bounds([0.0, 0.05, 0.1], cap=cap).sensitivity == pytest.approx(cap / 3, rel=1e-15)
    n, (low, high) = 5, (-1.0, 3.0)
    bounds = var_bounds([low] * n, bounds=(low, high))
    assert bounds.upper[0] == bounds.sensitivity == nearest(variance([low] * (n - 1) + [high]))
    assert order_bounds((0.0, 0.1, 3.3), 2, 3.3).sensitivity == 3.3
    for unlimited in (loss_bounds([0.0, 1.0]), var_bounds([low] * n), order_bounds((0.0, 0.1, 3.3), 2)):
        assert unlimited.sensitivity is None


def test_bounds_out_of_order_are_refused():
    public = {"output_range": (0.0, 5.0), "monotonic": True, "n": 10}
    OutputBounds(1.5, [1.0, 0.5], [2.0, 3.0], **public)
    for wrong in (
        (1.5, [2.0, 1.0], [2.0, 3.0]), (1.5, [1.0, 0.5], [3.0, 2.5]), (1.5, [0.5, 1.0], [2.0, 3.0]),
        (1.5, [1.0], [3.0, 4.0]), (1.5, [1.0, 0.5], [3.0, 6.0]), (1.5, [1.0, -1.0], [2.0, 3.0]),
        (math.nan, [1.0, 0.5], [2.0, 3.0]), (1.5, [[1.0, 0.5]], [[2.0, 3.0]]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"lower and upper|ordered"):
            OutputBounds(*wrong, **public)


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
