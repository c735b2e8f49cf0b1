"""Limits of the noise of whole metrics: they hold, need nothing private, and cost nothing."""

import functools
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from unittest.mock import Mock, call

import numpy as np
import pytest
from cases import RELATIONS
from helpers import labels_of, loop_over, seeded, specificity_score
from hypothesis import given, settings, strategies as st
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms._laws import NOTHING, Limits, Staircase
from dp_metrics.mechanisms.geometric import SumsLaw
from dp_metrics.metrics.labels.confusion import ratio_cells
from dp_metrics.metrics.regression import _score_limits, _Scores, r2_from_parts
from dp_metrics.quantities.tables import NoisyCounts
from dp_metrics.release.count_limits import noisy_ratio
from dp_metrics.release.released import Interval
from dp_metrics.release.result import Monotone, ReleasedNumbers
from dp_metrics.sensitivity.output_bounds import Sums

pytestmark = pytest.mark.usefixtures("own_error_state")


def rarity(ratio, a, b):
    """Return how likely noise that raises the exact ratio a / (a + b) as much as this, or more, is."""
    table, t = ratio.table().law, a / (a + b) if a + b else 0.0
    z = np.arange(-ratio.reach, ratio.reach + 1)
    raised = (1 - t) * z[:, np.newaxis] - t * z
    return float(table[raised >= (1 - t) * (ratio.a - a) - t * (ratio.b - b) - 1e-9].sum())


@pytest.mark.gate
@settings(max_examples=60)
@given(st.integers(2, 3), st.data())
def test_metrics_of_labels_lie_between_their_limits_unless_the_noise_is_rare(size, data):
    """The limits contain scikit-learn's metric of any table that noise which is not rare leads here from."""
    cells = data.draw(st.lists(st.integers(0, 12), min_size=size**2, max_size=size**2).filter(any))
    matrix = np.array(cells).reshape(size, size)
    true, pred = labels_of(matrix)
    undefined = data.draw(st.sampled_from([0.0, 1.0]))
    average = data.draw(st.sampled_from(["macro", "micro", None, "binary"][: 3 + (size == 2)]))
    function = data.draw(st.sampled_from(["precision", "recall", "f1", "jaccard", "specificity"])) + "_score"
    options = {"labels": range(size), "average": average, "zero_division": undefined}
    result = dp.with_result(getattr(dp, f"private_{function}"))(true, pred, epsilon=1.0, **options)
    (part,), metric, n = result.parts, result.reading, result.released.public_n
    signs, own = metric.layout.good, np.array(metric.layout.of(matrix))
    away = part.limits(0.2, signs != 0).upper - np.maximum(part.noisy, 0)
    reach = int(np.max(away))
    shift = data.draw(st.lists(st.integers(-reach, reach), min_size=own.size, max_size=own.size))
    if part.in_sum:  # the noise of a public number of records moves as many in as out
        shift[-1] = -sum(shift[:-1])
    moved = NoisyCounts(tuple((own + shift).tolist()), part.rates, part.in_sum)
    if (cells := ratio_cells(metric.layout, metric.parts_of)) is None:
        allowed = moved.limits(0.2, signs != 0)
        inside = ((allowed.lower <= own) & (own <= allowed.upper))[signs != 0].all()
    else:  # of one ratio or several
        ratios = [noisy_ratio(moved, a, b, n, weights) for a, b, weights in cells]
        exact = [[own[side].sum() for side in (a, b)] for a, b, _ in cells]
        inside = all(
            min(rarity(ratio, *two), rarity(ratio.swapped, *two[::-1])) > 0.1 / len(cells)
            for ratio, two in zip(ratios, exact, strict=True)
        )
    lower, upper, _ = metric.limits(SimpleNamespace(parts=(moved,), released=result.released), 0.2)
    exact = getattr(sk, function, specificity_score)(true, pred, **options)
    if inside:
        assert np.all(lower <= np.asarray(exact) + 1e-12)
        assert np.all(exact <= np.asarray(upper) + 1e-12)


@settings(max_examples=30)
@given(st.data())
def test_shares_of_a_matrix_lie_between_their_limits(data):
    cells = np.array(data.draw(st.lists(st.integers(0, 9), min_size=9, max_size=9).filter(any)))
    true, pred = labels_of(cells.reshape(3, 3))
    for normalize in (None, "true", "pred", "all"):
        options = {"labels": [0, 1, 2], "normalize": normalize}
        result = dp.with_result(dp.private_confusion_matrix)(true, pred, epsilon=1.0, **options)
        low, high, _ = result.parts[0].limits(0.2)
        if ((low <= cells) & (cells <= high)).all():
            lower, upper = result.noise_interval(0.8)
            exact = sk.confusion_matrix(true, pred, **options)
            assert (lower <= exact + 1e-12).all()
            assert (exact <= upper + 1e-12).all()


def test_r2_has_limits_where_both_parts_have_them():
    y = np.linspace(0, 10, 3000)
    options = {"epsilon": 2.0, "random_state": seeded(0)}
    r2_score = dp.with_result(dp.private_r2_score)
    unbounded = r2_score(y, y + 1, **options).noise_interval()
    assert unbounded.lower == -math.inf
    assert unbounded.upper == 1.0
    assert "cannot limit R^2 from below" in unbounded.note
    options |= {"bounds": (0, 11), "mechanism": "geometric"}
    both = r2_score(y, y + 1, **options).noise_interval()
    assert 0.6 < both.lower < 0.88 < both.upper < 1
    two = np.c_[y, y], np.c_[y + 1, y]
    several = r2_score(*two, multioutput="raw_values", **options).noise_interval()
    assert several.lower.shape == (2,)
    assert (several.lower < [0.88, 1]).all()
    assert (several.upper >= [0.88, 1]).all()


@given(*2 * [st.tuples(*3 * [st.floats(0, 1)]).map(sorted)])
def test_limits_of_r2_contain_it_for_all_errors_and_variances_between_theirs(errors, variances):
    (e_low, e, e_high), (v_low, v, v_high) = errors, variances
    lower, upper = _score_limits(Limits(e_low, e_high), Limits(v_low, v_high))
    assert lower <= r2_from_parts(e, v) * (1 + 1e-12) + 1e-12 or lower <= r2_from_parts(e, v)
    assert r2_from_parts(e, v) <= upper + 1e-12 * abs(upper)


def test_several_outputs_hold_together():
    rng = np.random.default_rng(0)
    y = rng.random((500, 3))
    result = dp.with_result(dp.private_mse)(y, 0 * y, epsilon=3.0, multioutput="raw_values")
    each = dp.with_result(dp.private_mse)(y[:, 0], 0 * y[:, 0], epsilon=1.0)
    assert result.noise_interval().lower.shape == (3,)
    part = result.parts[0]
    assert result.noise_interval(0.94).lower[0] == pytest.approx(part.limits(0.06 / 3).lower)
    assert each.noise_interval().upper == math.inf


def test_what_saturates_has_no_upper_limit_and_keeps_its_lower_one():
    largest = np.finfo(float).max

    def of(released, sign):
        return sign * min(released.values[0] * largest, largest)

    part = SimpleNamespace(even_range=None, limits=lambda miss: Limits(2.0, 3.0))
    released = ReleasedNumbers([2.5], 10, None, Fraction(1), Relation.REPLACE_ONE)
    kept = SimpleNamespace(parts=(part,), released=released)
    for sign, expected in ((1, (largest, math.inf)), (-1, (-math.inf, -largest))):
        limits = Monotone(functools.partial(of, sign=sign), rises=sign > 0).limits(kept, 0.05)
        assert tuple(Interval(limits.lower, limits.upper, 0.95, "", "")) == expected


def test_counts_have_limits_however_large_the_noise_or_far_below_0_the_count_is():
    for rate, noisy in itertools.product((Fraction(1, 10**25), Fraction(1, 10**100)), (0, 10**26, -(10**26))):
        lower, upper, _ = NoisyCounts((noisy, 5), ((2, rate),)).limits(0.05)
        assert lower.dtype == upper.dtype == np.float64
        assert (lower == 0).all()
        assert (upper >= 2.0**50).all()
    lower, upper, _ = NoisyCounts((-5000, 10), ((2, Fraction(1, 5)),)).limits(0.05)
    assert lower[0] == upper[0] == 0


def test_the_probability_of_a_miss_is_divided_among_counts_and_sides():
    rates = ((2, Fraction(1, 5)), (1, Fraction(1, 20)))
    lower, upper, _ = NoisyCounts((5000, 6000, 7000), rates).limits(0.06)
    away = [Staircase(rate).largest(0.01) for rate in (0.2, 0.2, 0.05)]
    assert lower.tolist() == [5000 - away[0], 6000 - away[1], 7000 - away[2]]
    assert upper.tolist() == [5000 + away[0], 6000 + away[1], 7000 + away[2]]
    used = np.array([True, False, False])
    assert NoisyCounts((5000, 6000, 7000), rates).limits(0.02, used).lower[0] == 5000 - away[0]


def test_the_probability_of_a_miss_is_divided_between_the_limits_of_sums():
    sums = Sums((70, 30), 1, lambda x, y: x - y, (True, False))
    away = Staircase(1 / 3).largest(0.01) + 0.5
    assert SumsLaw(sums, Fraction(1, 3)).limits([70, 30], 0.02)[:2] == (40 - 2 * away, 40 + 2 * away)


def test_parts_of_r2_share_the_probability_of_a_miss():
    part = Mock(**{"limits.return_value": Limits(1.0, 2.0)})
    released = ReleasedNumbers([1.0] * 4, 10, None, Fraction(1), Relation.REPLACE_ONE)
    _Scores(None).limits(SimpleNamespace(parts=[part] * 4, released=released), 0.04)
    assert part.limits.mock_calls == [call(0.01)] * 4
    assert _score_limits(Limits(2.0, 3.0), Limits(0.0, 1.0))[1] == 0.0  # of a variance of 0, by definition


@loop_over("relation", RELATIONS)
@loop_over(
    "metric",
    [
        dp.private_accuracy_score,
        dp.private_recall_score,
        functools.partial(dp.private_recall_score, average=None),
        functools.partial(dp.private_confusion_matrix, normalize="true"),
    ],
)
def test_limits_that_are_the_whole_range_say_so(metric, relation):
    """At 95 % limits that exclude an end are right once in 40 or so; at this confidence never."""
    y, metric = np.array([0, 1] * 200), dp.with_result(metric)
    for epsilon in (5e-324, 1e-200, 1e-5):
        interval = metric(y, y, epsilon=epsilon, neighboring=relation).noise_interval(1 - 1e-9)
        assert np.all(np.asarray(interval.lower) == 0)
        assert np.all(np.asarray(interval.upper) == 1)
        assert interval.note == NOTHING
    assert metric(y, y, epsilon=1.0, neighboring=relation).noise_interval().note == ""


@loop_over("limit", [1e-308, 1e-310])
def test_nothing_is_known_where_steps_of_the_adaptive_mechanism_are_subnormal(limit):
    errors = limit * np.random.default_rng(0).random(300)
    result = dp.with_result(dp.private_mae)(0 * errors, errors, epsilon=100.0, bounds=(0, limit))
    assert "scale" in result.drawn
    interval = result.noise_interval()
    assert (interval.lower, interval.upper, interval.note) == (0.0, limit, NOTHING)
