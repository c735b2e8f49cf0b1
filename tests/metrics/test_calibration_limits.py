"""Calibration at the released mean score of each bin: limits, gaps, bars, and what chance alone gives."""

from functools import cache

import numpy as np
import pytest
from cases import RELATIONS
from helpers import all_of_scores, loop_over, seeded
from matplotlib.figure import Figure
from scipy.special import expit

import dp_metrics as dp
from dp_metrics.metrics.scores.bands import error_by_chance
from dp_metrics.release.count_limits import noisy_ratio, ratio_limits

TASKS = {  # scores, and the probability of a positive of such a score; none was used to choose a rule
    "rare and calibrated": (lambda rng, n: rng.beta(1, 60, n), lambda s: s),
    "two kinds of people, odds too low": (
        lambda rng, n: expit(rng.normal(np.where(rng.random(n) < 0.7, -2.5, 1.0), 0.6)),
        lambda s: expit(np.log(s / (1 - s)) + 0.5),
    ),
    "overconfident, few at one end": (lambda rng, n: rng.beta(6, 1.2, n), lambda s: 0.2 + 0.6 * s),
}
POSSIBLE = pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
pytestmark = [POSSIBLE, pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.NoisyReleaseWarning")]


def drawn(task, n, seed):
    scores, chance = TASKS[task]
    rng = np.random.default_rng(seed)
    score = scores(rng, n)
    return (rng.random(n) < chance(score)).astype(int), score


def curve_of(y, score, seed, *, metric=dp.private_calibration_curve, **options):
    return dp.with_result(metric)(y, score, **{"epsilon": 1.0, "random_state": seed, **options})


def error_of(y, score, **options):
    return curve_of(y, score, seeded(), metric=dp.private_expected_calibration_error, **options)


def places_of(score, bins):
    """Return in which of so many even bins scores lie, of which each has its upper end."""
    return np.clip(np.ceil(score * bins) - 1, 0, bins - 1).astype(int)


@cache
def of_people(task, bins):
    """Return the share of positives and the gap in each even bin among people; NaN where there is none."""
    score = TASKS[task][0](np.random.default_rng(0), 400_000)
    places = places_of(score, bins)
    with np.errstate(invalid="ignore"):
        shares, means = (
            np.bincount(places, one, bins) / np.bincount(places, minlength=bins)
            for one in (TASKS[task][1](score), score)
        )
    return shares, shares - means


def are_within(lower, exact, upper):
    return bool((np.isnan(exact) | ((lower <= exact) & (exact <= upper))).all())


def table_of(y, score, edges=(0, 0.2, 0.4, 0.6, 0.8, 1)):
    return all_of_scores(edges=edges).update(y, score).release(1.0, random_state=0)


@pytest.mark.gate
@loop_over("task", TASKS)
def test_shares_and_gaps_cover(task):
    """Each kind in 60 releases: more than 8 misses of 5 % have a probability of .003."""
    missed = np.zeros(2)
    for seed in range(60):
        bins, relation = (4, 9)[seed % 2], RELATIONS[seed // 2 % 2]
        shares, gaps = of_people(task, bins)
        curve = curve_of(*drawn(task, 2000, seed), seed, n_bins=bins, neighboring=relation)
        band = curve.band()
        missed += [
            not are_within(band.lower, shares, band.upper),
            not are_within(band.gap_lower, gaps, band.gap_upper),
        ]
        assert ((band.gap_lower <= band.gap) & (band.gap <= band.gap_upper)).all()
        assert (band.prob_pred <= 1.0).all()
    assert (missed <= 8).all()


def test_gaps_cover_where_the_scores_of_a_bin_vary_more_than_its_labels():
    """One in 200 is positive, whatever the score. Of 60 releases more than 10 miss with 2e-4 at 5 %."""
    missed, gaps = 0, 0.005 - (np.arange(5) + 0.5) / 5
    for seed in range(60):
        rng = np.random.default_rng(seed)
        band = curve_of(1 * (rng.random(2000) < 0.005), rng.random(2000), seed, epsilon=10.0).band()
        missed += not are_within(band.gap_lower, gaps, band.gap_upper)
    assert missed <= 10


def test_limits_of_even_bins_of_a_table_hold_for_all_people_at_once():
    """Sure: with a probability of 95 % no bin misses, so that 4 of 6 releases do with one of 9e-5 at most."""
    missed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        score = rng.random(3000)
        summary = all_of_scores(bins=8).update(rng.random(3000) < score, score)
        scores = summary.release(1.0, random_state=seed)
        band = scores.calibration_band(n_bins=4)
        ends = scores.counts.edges[np.searchsorted(scores.counts.middles, [0, 0.25, 0.5, 0.75, 1])]
        exact = (ends[1:] + ends[:-1]) / 2  # of scores that are spread evenly
        missed += not are_within(band.lower, exact, band.upper)
        assert (band.upper - band.lower < 0.3).all()
        np.testing.assert_array_equal(band.prob_pred, scores.calibration_curve(4).prob_pred)
        inside = np.flatnonzero(scores.counts.middles < 0.25)
        share = noisy_ratio(scores.result.parts[0], (8 + inside).tolist(), inside.tolist(), 3000)
        low, high = ratio_limits(share, 0.025 / 4)
        assert band.lower[0] <= low < high <= band.upper[0]
    assert missed <= 3


def test_where_the_mean_score_is_not_known_only_bars_off_the_diagonal_are_wrong():
    band = table_of(*drawn("rare and calibrated", 20_000, 0)).calibration_band()
    assert band.upper[0] < band.prob_pred[0]  # the middle of a bin, which most scores are far from
    assert (band.gap_lower <= 0).all()
    assert (band.gap_upper >= 0).all()
    np.testing.assert_allclose(band.prob_pred_range, [np.linspace(0, 0.8, 5), np.linspace(0.2, 1, 5)])
    rng = np.random.default_rng(0)
    for share, is_off in ((0.25, True), (0.17, False)):  # of scores below 0.2
        band = table_of(rng.random(20_000) < share, 0.1 * rng.random(20_000)).calibration_band()
        assert (band.gap_lower[0] > 0) == is_off
        assert (band.lower[0] > band.prob_pred_range[1, 0]) == is_off


def test_edges_within_the_unit_interval_leave_scores_outside_where_they_are():
    band = table_of(*drawn("rare and calibrated", 20_000, 0), edges=[0.3, 0.5, 0.7]).calibration_band()
    np.testing.assert_allclose(band.prob_pred_range, [[0, 0.5], [0.5, 1]])
    assert band.gap_upper[0] > 0  # scores around 0.016, not from 0.3 on


def test_bars_are_as_wide_as_mean_scores_are_unknown():
    released = table_of(*drawn("overconfident, few at one end", 20_000, 0))
    soft = curve_of(*drawn("overconfident, few at one end", 5000, 0), 0).band()
    for band in (released.calibration_band(), released.calibration_band(n_bins=3), soft):
        bars = band.shade(Figure().subplots(), color="C1")
        left, right = band.prob_pred_range
        boxes = [bar.get_bbox().extents for bar in bars]
        np.testing.assert_allclose(boxes, np.c_[left, band.lower, right, band.upper], atol=1e-12)
        assert all((bar.get_linewidth() > 0) == (bar.get_width() == 0) for bar in bars)
    np.testing.assert_array_equal(soft.prob_pred_range, [soft.prob_pred, soft.prob_pred])


def exact_error(y, score, bins):
    return np.abs(np.bincount(places_of(score, bins), y - score, bins)).sum() / y.size


@loop_over("task", ["even", "rare"])
def test_chance_is_what_a_calibrated_model_has_on_average(task):
    """Over 300 draws of 1,000 records; the mean of 300 errors is off by some 3 % of itself."""
    rng, found = np.random.default_rng(3), []
    for _ in range(300):
        score = rng.random(1000) if task == "even" else rng.beta(1, 20, 1000)
        y = (rng.random(1000) < score).astype(int)
        records, positives = (np.bincount(places_of(score, 10), one, 10) for one in (np.ones(1000), y))
        told = error_by_chance(records, positives, np.zeros(10), 1000.0)
        assert told <= np.sqrt(10 / (2 * np.pi * 1000)) * (1 + 1e-12)
        found.append([exact_error(y, score, 10), told])
    mean, told = np.mean(found, axis=0)
    assert told == pytest.approx(mean, rel=0.1)


@pytest.mark.gate
def test_the_noise_is_part_of_what_chance_gives_the_error_of_a_curve():
    """Over 80 releases of a calibrated model; the mean of the errors is off by some 4 % of itself."""
    rng, found = np.random.default_rng(5), []
    for seed in range(80):
        score, relation = rng.random(600), RELATIONS[seed % 2]
        y = (rng.random(600) < score).astype(int)
        band = curve_of(y, score, seed, neighboring=relation).band()
        of_number = error_of(y, score, n_bins=5, random_state=seed, neighboring=relation)
        found.append([*band.error()[:2], *band.error(of_number)[:2], exact_error(y, score, 5)])
    of_curve, by_chance, of_number, by_people, exact = np.mean(found, axis=0)
    assert of_curve == pytest.approx(by_chance, rel=0.12)
    assert of_number == pytest.approx(exact, abs=0.002)
    assert by_people == pytest.approx(exact, rel=0.12)
    assert by_people < by_chance


def test_the_error_without_chance_is_that_of_people():
    y, score = drawn("overconfident, few at one end", 20_000, 0)
    curve, number = curve_of(y, score, 0, n_bins=10), error_of(y, score)
    _, gap = of_people("overconfident, few at one end", 10)
    exact = np.nansum(np.abs(gap) * np.bincount(places_of(score, 10), minlength=10)) / y.size
    for told in (curve.band().error(), curve.band().error(number)):
        assert told.without_chance == pytest.approx(np.sqrt(told.error**2 - told.by_chance**2))
        assert told.without_chance == pytest.approx(exact, abs=0.01)
    assert told.error == number.value
    of_table = table_of(y, score).calibration_band(n_bins=10)
    assert of_table.error(number).by_chance > 0


@loop_over("relation", RELATIONS)
def test_an_error_says_how_much_of_it_may_be_chance(relation):
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    y = (rng.random(2000) < score).astype(int)
    calibrated = error_of(y, score, neighboring=relation)
    assert "chance alone gives a calibrated model up to about 0.02" in calibrated.note
    assert error_of(1 - y, score, neighboring=relation).note is None
    few = error_of(y[:40], score[:40], epsilon=0.5, neighboring=relation)
    lower, upper = few.noise_interval()
    assert upper - lower > 0.2
    assert few.note.startswith("Mostly noise: limits of its noise are ")
    if relation == "replace_one":
        unlimited = error_of(y, score, mechanism="adaptive")  # a missing limit is no wide one
        assert "Mostly noise" not in str(unlimited.note)
        persons = error_of(y, score, groups=np.arange(2000) // 2)
        assert "about 0.04 (10 bins, 2,000 records, up to 2 of one person)" in persons.note
