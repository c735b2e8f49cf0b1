"""Bands of ROC and calibration curves, and limits of the area under a ROC curve of a table."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cases import RELATIONS
from helpers import (
    all_of_scores,
    clopper_pearson,
    counts_without_noise,
    labels_of,
    loop_over,
    normal_scores,
    seeded,
)
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

import dp_metrics as dp
from dp_metrics.metrics.scores.bands import area_between, area_limits, half_of_tied, hanley_mcneil, roc_limits
from dp_metrics.metrics.scores.curve_formulas import area_under_roc
from dp_metrics.quantities.tables import NoisyCounts

pytestmark = pytest.mark.usefixtures("own_error_state")

HUGE = {"epsilon": 1e6}


def is_between(curve, lower, upper):
    """Return whether a curve of lines lies on or above one, and on or below another."""
    x = np.unique(np.r_[curve.fpr, lower.fpr, upper.fpr])

    def ends(line):
        """Return the lowest and the highest point of a line at each x: lines may go straight up."""
        steps = 1e-12 * np.arange(line.fpr.size)
        return np.interp(x, line.fpr + steps, line.tpr), np.interp(x, line.fpr - steps[::-1], line.tpr)

    own, low, high = (np.sort(ends(line), axis=0) for line in (curve, lower, upper))
    return (low[0] <= own[1] + 1e-6).all() and (own[0] <= high[1] + 1e-6).all()


def test_without_noise_limits_at_edges_are_clopper_and_pearsons():
    y, scores = normal_scores(2000)
    result = dp.with_result(dp.private_roc_curve)(y, scores, bins=8, **HUGE)
    band, edge = result.band(), result.value.thresholds[4]
    each = 0.025 / (2 * 7)
    for line, is_of, of_low in ((band.lower.fpr, 0, False), (band.lower.tpr, 1, True)):
        above, below = ((scores[y == is_of] >= edge).sum(), (scores[y == is_of] < edge).sum())
        low, high = clopper_pearson(above, below, each)
        assert line[4] == pytest.approx(low if of_low else high, abs=0.003)
    assert is_between(result.value, band.lower, band.upper)
    low, high = area_between(band.lower, band.upper)
    assert low < area_under_roc(result.reading.counts(result.released)) < high


def test_a_band_has_some_sixty_edges_at_most_however_many_bins_there_are():
    """Each limit takes a part of the probability to miss, and of the time."""
    y, scores = normal_scores(500)
    told = all_of_scores(bins=128).update(y, scores).release(8.0, random_state=seeded())
    band = told.roc_band()
    assert told.counts.edges.size == 129
    assert band.lower.thresholds.tolist() == [np.inf, *told.counts.edges[-3::-2]]
    assert band.lower.fpr.size == 65
    tpr = told.roc_curve().tpr[::2]
    assert ((band.lower.tpr <= tpr) & (tpr <= band.upper.tpr)).all()


@settings(max_examples=60)
@given(st.lists(st.integers(-9, 40), min_size=16, max_size=16), st.booleans(), st.integers(0, 2**31))
def test_a_band_never_falls_and_holds_every_curve_whose_shares_hold(noisy, zero_sum, seed):
    noise = NoisyCounts(tuple(noisy), ((16, Fraction(1, 2)),), 16 if zero_sum else None)
    rng = np.random.default_rng(seed)
    shares = [np.sort(rng.random(7))[::-1] for _ in range(2)]  # by rising edge
    at = iter(np.stack(shares, axis=1).ravel())  # of either class, edge by edge

    def limits_of(ratio):
        exact, away = next(at), rng.random(2) * 0.3
        return max(exact - away[0], 0.0), min(exact + away[1], 1.0)

    lower, upper = roc_limits(noise, None, np.linspace(0, 1, 9), limits_of)
    assert min(np.diff(line[:2]).min() for line in (lower, upper)) >= 0
    fpr, tpr = (np.r_[0.0, side[::-1], 1.0] for side in shares)
    for less, more in ((lower.tpr, tpr), (tpr, upper.tpr), (upper.fpr, fpr), (fpr, lower.fpr)):
        assert (less <= more + 1e-12).all()
    low, high = area_between(lower, upper)
    within = lower._replace(fpr=fpr, tpr=tpr)
    low_within, high_within = area_between(within, within)  # of curves that rise late, and early
    assert low - 1e-12 <= low_within <= high_within <= high + 1e-12


@settings(max_examples=20)
@given(st.lists(st.integers(0, 30), min_size=16, max_size=16).filter(any), st.integers(0, 2**31))
def test_noise_leaves_the_area_within_its_limits(cells, seed):
    """At a confidence of 1 - 1e-9; a class without a record has the area of the diagonal."""
    edges, table = np.linspace(0, 1, 9), np.array(cells).reshape(2, 8)
    y, places = labels_of(table)
    summary = all_of_scores(edges=edges).update(y, edges[places] + 0.01)
    lower, upper = summary.release(1.0, random_state=seeded(seed)).noise_interval(1 - 1e-9)
    exact = area_under_roc(counts_without_noise(edges, *table.astype(float)))
    assert lower - 1e-9 <= exact <= upper + 1e-9


def of_delong(y, scores):
    """Return the area and its variance by the share of the other class that each record wins."""
    above = (scores[y == 1][:, None] > scores[y == 0]) + 0.5 * (scores[y == 1][:, None] == scores[y == 0])
    of_each = [np.var(above.mean(axis=axis), ddof=1) / above.shape[1 - axis] for axis in (0, 1)]
    return above.mean(), sum(of_each)


def test_without_noise_the_approximate_limits_are_delongs():
    """The variance at a limit is that at the area, times how theta (1 - theta) differs."""
    y, scores = normal_scores(3000)
    released = all_of_scores().update(y, scores).release(**HUGE)
    area, half = released.roc_auc_score(), half_of_tied(released.counts)
    lower, upper = released.population_interval()
    for end, told in ((lower, area - half), (upper, area + half)):
        exact, variance = of_delong(y, scores)
        deviation = np.sqrt(variance * end * (1 - end) / (exact * (1 - exact)))
        assert abs(end - told) == pytest.approx(1.96 * deviation, abs=3e-4)
    sure = released.population_interval(sure=True)
    assert sure.lower < lower < area < upper < sure.upper
    assert sure.note == ""
    assert "Approximate" in released.population_interval().note
    assert "unbinned scores" in sure.about


@loop_over("neighboring", RELATIONS)
def test_an_area_by_hazard_has_limits_from_those_of_its_noise(neighboring):
    y, scores = normal_scores(3000)
    for epsilon, added in ((1e4, 0.0), (0.5, 0.01)):
        result = dp.with_result(dp.private_roc_auc_score)(
            y, scores, epsilon=epsilon, random_state=seeded(0), neighboring=neighboring
        )
        lower, upper = result.population_interval()
        for end, limit in zip((lower, upper), result.noise_interval(), strict=True):
            sizes = y.sum(), (1 - y).sum()  # which class plays which role is not known
            deviation = np.sqrt(max(hanley_mcneil(end, *sizes), hanley_mcneil(end, *sizes[::-1])))
            expected = np.hypot(1.96 * deviation, result.value - limit)
            assert abs(end - result.value) == pytest.approx(expected, rel=0.05)
            assert abs(result.value - limit) >= added
    wide = all_of_scores(edges=[-1.0, 0.0, 1.0]).update(y, scores).release(1.0)
    assert 0 <= wide.population_interval().lower <= 1


def test_noise_makes_the_approximate_limits_wider_and_there_are_none_without_a_class():
    plain, widths = np.array([30, 20, 10, 5, 4, 3, 2, 1]), []
    for rate in (Fraction(100), Fraction(1), Fraction(1, 2)):
        noise = NoisyCounts((*plain.tolist(), *plain[::-1].tolist()), ((16, rate),), 16)
        lower, upper = area_limits(noise, 0.025)
        widths.append(upper - lower)
    assert widths == sorted(widths)
    assert widths[2] > 1.1 * widths[0]
    for rate, size, is_given in ((1, 0, False), (100, 0, False), (1, 7, False), (1, 9, True)):
        few = NoisyCounts((*plain.tolist(), size, *[0] * 7), ((16, Fraction(rate)),))
        assert (area_limits(few, 0.025) is not None) == is_given  # noise of deviation 3.84, or 0


def test_where_a_class_is_noise_the_limits_that_are_not_proved_are_the_sure_ones():
    y, prob = normal_scores(300)
    result = dp.with_result(dp.private_roc_curve)(y, prob, epsilon=0.01, random_state=seeded())
    area = replace(result, reading=replace(result.reading, formula=area_under_roc))
    proved, found = (area.population_interval(sure=sure) for sure in (True, False))
    assert tuple(proved) == tuple(found)
    assert "Approximate" not in found.note


def test_calibration_bands():
    y, prob = normal_scores(4000)
    result = dp.with_result(dp.private_calibration_curve)(y, prob, n_bins=4, **HUGE)
    band, share = result.band(), result.value.prob_true
    inside = [prob[(prob > place / 4) & (prob <= (place + 1) / 4)] for place in range(4)]
    means, sizes = np.array([[one.mean(), one.size] for one in inside]).T
    np.testing.assert_allclose(band.prob_pred, means, atol=1e-6)
    np.testing.assert_allclose(band.gap, share - means, atol=1e-6)
    spread = (means - np.arange(4) / 4) * (np.arange(1, 5) / 4 - means)  # of scores, at most
    half = -norm.ppf(0.025 / 4) * np.sqrt((share * (1 - share) + spread) / sizes)
    assert ((band.lower < share) & (share < band.upper)).all()
    np.testing.assert_allclose(band.upper - band.lower, 2 * half, rtol=0.05)
    noisy = dp.with_result(dp.private_calibration_curve)(y, prob, n_bins=4, epsilon=0.1)
    wider = noisy.band()
    assert (wider.upper - wider.lower > band.upper - band.lower).all()
