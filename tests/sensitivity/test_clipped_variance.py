"""Clipped sums of squares: against brute force over all windows, and without one value too many looked at."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from helpers import MAX, aggregate_of, distances_of, loop_over, variance
from hypothesis import given, strategies as st

from dp_metrics.sensitivity import variance_windows
from dp_metrics.sensitivity.exact import exact_moments
from dp_metrics.sensitivity.variance_bounds import in_order_at, places_of_distances
from dp_metrics.sensitivity.variance_windows import clipped_squares

pytestmark = pytest.mark.usefixtures("own_error_state")

ORDINARY = st.floats(-100, 100, allow_subnormal=False) | st.integers(-3, 3).map(float)
ANY = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 5e-324, -1e300, 1e300, MAX])
TIES = st.sampled_from([-8.0, -0.1, 0.0, 0.1, 0.3, 0.1 + 0.2, 1e10, 1e10 + 1e-5])
WIDTHS = (
    st.floats(1e-130, 1e300)
    | st.floats(1e-3, 300)
    | st.sampled_from([5e-324, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.05, 1e10, 2.0**1000, MAX])
)


def by_hand(values, width):
    """Return the least cost over all windows of sorted values, each value outside costing the square."""
    ordered, n = sorted(values), len(values)
    windows = [ordered[i:j] for i, j in itertools.combinations(range(n + 1), 2)]
    return min(len(w) * variance(w) + (n - len(w)) * Fraction(width) ** 2 for w in windows)


def aggregated(x, capacity):
    return aggregate_of(np.array(x, dtype=np.float64), capacity=capacity)


def not_asked():
    raise AssertionError("the records were looked at again")


@pytest.mark.gate
@pytest.mark.parametrize("kind", [ORDINARY, ANY, TIES], ids=["ordinary", "any", "ties"])
def test_they_are_those_of_brute_force_however_little_is_known(kind):
    @given(st.lists(kind, min_size=1, max_size=12), WIDTHS, st.integers(1, 6))
    def compare(values, width, kept):
        # a distance of two values is no hard case
        for size in (width, min(abs(values[0] - values[-1]), MAX) or width):
            found = clipped_squares(aggregated(values, kept), Fraction(size), lambda: np.sort(values))
            assert found == by_hand(values, size)
            assert variance_windows._by_value(np.sort(values), size) == found

    compare()


@loop_over(("value", "n"), itertools.product([0.0, -1.5, 5e-324, 1e300, MAX], [1, 2, 5, 1000]))
def test_equal_values_have_none(value, n):
    for width in (5e-324, 1e-130, 1.0, MAX):
        assert clipped_squares(aggregated([value] * n, 3), Fraction(width), not_asked) == 0


@loop_over("seed", range(4))
def test_many_values_are_told_by_the_known_ones_as_by_all(seed):
    rng = np.random.default_rng(seed)
    for x in (rng.normal(size=3000), rng.standard_cauchy(3000), np.round(rng.normal(size=3000), 1) + 1e9):
        x[:3] = 1e300, -1e200, 1e18
        aggregate, in_order = aggregated(x, 40), np.sort(x)
        for j in (2, 5, 20, 38):
            width = float(in_order[-1 - j] - in_order[j])
            told = clipped_squares(aggregate, Fraction(width), not_asked)
            assert told == variance_windows._by_window(aggregate, in_order, exact_moments(x), width)
            assert told == variance_windows._by_value(in_order, width)


@loop_over(("clusters", "block"), [(1, 1 << 16), (2, 300), (5, 1999)])
def test_all_values_are_looked_at_if_the_core_does_not_decide(clusters, block, monkeypatch):
    monkeypatch.setattr(variance_windows, "_BLOCK", block)
    rng = np.random.default_rng(clusters)
    x = rng.normal(size=2000) + 50.0 * rng.integers(0, clusters, 2000)
    in_order = np.sort(x)
    for width in (0.01, 1.0, 3.0, 60.0):
        exact = variance_windows._by_value(in_order, width)
        assert clipped_squares(aggregated(x, 20), Fraction(width), lambda: in_order) == exact
    with pytest.raises(AssertionError, match="again"):
        clipped_squares(aggregated(x, 20), Fraction(1), not_asked)


@loop_over("sign", [1, -1])
def test_more_values_than_are_known_may_be_too_far_on_one_side(sign):
    """Ten values at -8 pull the best centre so far below 0 that the 13 at 10 are out of reach."""
    x = sign * np.repeat([-8.0, 0.0, 10.0, 1000.0], [10, 400, 13, 10])
    for capacity in (11, 20, 24, 40):
        found = clipped_squares(aggregated(x, capacity), Fraction(10), lambda: np.sort(x))
        assert found == 10 * 64 - Fraction(80**2, 410) + 23 * 100


def test_windows_that_floats_cannot_tell_apart_are_compared_one_by_one(monkeypatch):
    called = []
    by_value = variance_windows._by_value
    monkeypatch.setattr(variance_windows, "_by_value", lambda *args: called.append(1) or by_value(*args))
    monkeypatch.setattr(variance_windows, "_MOST_EXACT", 3)
    x = np.repeat(np.arange(4.0) * 1e9, 5)
    assert clipped_squares(aggregated(x, 1), Fraction(0.5), lambda: x) == by_hand(x, 0.5) == Fraction(15, 4)
    assert called


def test_no_values_have_none_and_no_width_clips_all():
    assert clipped_squares(aggregated([], 3), Fraction(1), not_asked) == 0
    assert clipped_squares(aggregated([1.0, 2.0, 9.0], 1), Fraction(0), not_asked) == 0


@loop_over("seed", range(60))
def test_depths_decide_rightly_where_they_decide(seed):
    """Clusters on either side may draw the centre so far that a core within reach of another one is not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 400))
    sides = rng.choice([-1.0, 0.0, 1.0], n, p=rng.dirichlet([1, 2, 1])) * rng.choice([2, 5, 20])
    x = np.sort(sides + rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=n))
    depths = [(i, x[i - 1], x[n - i]) for i in (n // 10, n // 3, n // 2)]
    told = 0
    for capacity in (2, n // 20 + 1, n // 10 + 1):
        for width in np.geomspace(0.2, 1.2, 9) * (x[-1] - x[0]):
            exact = clipped_squares(aggregated(x, capacity), Fraction(width), lambda: x)
            try:
                found = clipped_squares(aggregated(x, capacity), Fraction(width), not_asked, depths)
            except AssertionError:
                continue
            told += 1
            assert found == exact
    assert told


@loop_over(("sign", "beyond"), itertools.product([1, -1], np.linspace(0.1, 1.0, 10).tolist()))
def test_the_core_may_add_less_where_its_lowest_values_are_too_far(sign, beyond):
    """The bound on the mean of the others is reached: 400 values at -9 and 3,600 at 1 have the mean 0."""
    x, width = np.sort(sign * np.repeat([-9.0, 1.0], [400, 3600])), 9.0 + beyond
    depths = [(i, x[i - 1], x[-i]) for i in (401, 2000)]
    found = clipped_squares(aggregated(x, 2), Fraction(width), lambda: x, depths)
    assert found == min(400 * Fraction(width) ** 2, 36_000)


@loop_over(("n", "k", "ranks"), [(2000, 2, 9), (500, 1, 3), (1001, 7, 20)])
def test_distances_need_no_more_order_than_is_stated(n, k, ranks):
    x = np.random.default_rng(n).standard_t(3, n)
    runs = places_of_distances(n, k, ranks)
    assert sum(last + 1 - first for first, last in runs) < n / 2
    partly = np.partition(x, sorted({place for run in runs for place in run}))
    for first, last in runs:
        partly[first : last + 1].sort()
    found, expected = (distances_of(y, (-np.inf, np.inf), MAX, k, ranks) for y in (partly, np.sort(x)))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


COLUMNS = {
    "normal": lambda rng: rng.normal(size=40_000),
    "whole": lambda rng: np.round(100 * rng.normal(size=40_000)),
    "few": lambda rng: rng.integers(0, 3, 40_000).astype(float),
    "one": lambda rng: np.full(40_000, -7.0),
    "heavy": lambda rng: rng.standard_cauchy(40_000),
    "heavier": lambda rng: rng.standard_cauchy(40_000) ** 3,
    "widest": lambda rng: rng.uniform(-1, 1, 40_000) * MAX,
    "least": lambda rng: rng.integers(0, 30, 40_000) * 5e-324,
    "far": lambda rng: 1e15 + np.where(rng.random(40_000) < 0.5, rng.normal(size=40_000), 1e9),
    "ordered": lambda rng: np.sort(rng.lognormal(size=40_000)),
    "periodic": lambda rng: np.where(np.arange(40_000) % 30, rng.normal(size=40_000), 1e9),
}


@loop_over(("name", "ends"), itertools.product(COLUMNS, [(-np.inf, np.inf), (-1.0, 2.0)]))
def test_bins_put_in_order_what_is_asked_for(name, ends):
    x = COLUMNS[name](np.random.default_rng(0))
    in_order, runs = np.clip(np.sort(x), *ends), places_of_distances(x.size, 12, 40)
    found = in_order_at(x, runs, ends)
    if found is None:  # many have to be sorted
        assert name not in {"normal", "whole", "heavy", "ordered"}
        return
    for first, last in runs:
        np.testing.assert_array_equal(found[first : last + 1], in_order[first : last + 1])
