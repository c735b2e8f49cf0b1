"""Curves of scores: as scikit-learn's where noise is negligible, else well formed, and always private."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import RELATIONS
from helpers import counts_without_noise, loop_over, seeded
from scipy.stats import norm
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

import dp_metrics as dp
from dp_metrics.inputs.arrays import BLOCK, ArgumentShape
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics.scores.curve_formulas import (
    area_under_roc,
    average_precision,
    calibration,
    precision_recall,
    records_above,
    two_classes,
)
from dp_metrics.metrics.scores.table import ScoreTable, finest_edges
from dp_metrics.quantities.tables import NoisyCounts
from dp_metrics.release.result import ReleasedNumbers

CURVES = (dp.private_roc_curve, dp.private_precision_recall_curve)
NUMBERS = (dp.private_average_precision_score, dp.private_expected_calibration_error)
HUGE = 1e11
EDGES = finest_edges(None)


def exact(function, *data, **options):
    return function(*data, epsilon=HUGE, random_state=seeded(), **options)


def records(n=600, seed=0, bins=128):
    """Return labels, and scores at the middles of the bins."""
    rng = np.random.default_rng(seed)
    edges = EDGES[:: 128 // bins]
    y = rng.integers(0, 2, n)
    place = np.clip(rng.normal(bins * (0.4 + 0.25 * y), bins / 6), 0, bins - 1).astype(int)
    return y, ((edges[1:] + edges[:-1]) / 2)[place]


def test_the_edges_are_public_numbers_that_do_not_depend_on_the_library():
    np.testing.assert_allclose(EDGES, np.sin(np.linspace(0, np.pi / 2, 129)) ** 2, atol=2**-30)
    assert EDGES[[0, 64, 128]].tolist() == [0.0, 0.5, 1.0]
    assert ((EDGES * 2**30) % 1 == 0).all()
    np.testing.assert_array_equal(EDGES, 1 - EDGES[::-1])


@loop_over("bins", [None, 8, 32])
@loop_over("neighboring", RELATIONS)
def test_the_roc_curve_is_scikit_learns_if_scores_are_at_the_middles_of_bins(bins, neighboring):
    columns = bins or (32 if neighboring == "add_or_remove_one" else 128)
    y, score = records(bins=columns)
    found = exact(dp.private_roc_curve, y, score, bins=bins, neighboring=neighboring)
    fpr, tpr, thresholds = sk.roc_curve(y, score, drop_intermediate=False)
    np.testing.assert_array_equal(found.thresholds, [math.inf, *EDGES[:: 128 // columns][-2::-1]])
    assert [found.fpr[[0, -1]].tolist(), found.tpr[[0, -1]].tolist()] == [[0, 1]] * 2
    # at the lower edge of the bin of each score
    places = np.searchsorted(-found.thresholds, -thresholds[1:])
    np.testing.assert_allclose([found.fpr[places], found.tpr[places]], [fpr[1:], tpr[1:]])
    assert sk.auc(found.fpr, found.tpr) == pytest.approx(sk.roc_auc_score(y, score))


@loop_over("is_reversed", [False, True])
def test_the_precision_recall_curve_is_scikit_learns(is_reversed):
    """Also of scores that fall with the risk: nothing is made monotone."""
    y, score = records()
    y = 1 - y if is_reversed else y
    found = exact(dp.private_precision_recall_curve, y, score)
    precision, recall, thresholds = sk.precision_recall_curve(y, score)
    assert (found.precision[-1], found.recall[-1]) == (1, 0)
    np.testing.assert_array_equal(found.thresholds, EDGES[:-1])
    assert found.precision.size == found.recall.size == 129
    places = np.searchsorted(found.thresholds, thresholds) - 1
    np.testing.assert_allclose(found.precision[places], precision[:-1])
    np.testing.assert_allclose(found.recall[places], recall[:-1])


def test_average_precision_spreads_the_scores_of_a_bin():
    y, score = records(2000)
    area = sk.average_precision_score(y, np.searchsorted(EDGES, score))
    found = exact(dp.private_average_precision_score, y, score)
    assert area < found < area + 0.005  # ties count as the worst order
    one_bin = counts_without_noise(np.array([0.0, 0.5, 1.0]), np.array([0.0, 3.0]), np.array([0.0, 1.0]))
    assert average_precision(one_bin) == pytest.approx(0.25)


@loop_over("levels", [1, 2, 4, 8])
@loop_over("epsilon", [4.0, 1000.0])
def test_tied_scores_have_the_average_precision_of_ties(levels, epsilon):
    """Of a tree with few leaves: the noise moves it by less than 0.001, spreading them by 0.012 to 0.1."""
    rng = np.random.default_rng(levels)
    y = rng.integers(0, 2, 20_000)
    score = np.round(levels * np.clip(rng.normal(0.2 + 0.6 * y, 0.3), 0, 1)) / levels
    found = dp.private_average_precision_score(y, score, epsilon=epsilon)
    assert found == pytest.approx(sk.average_precision_score(y, score), abs=0.002)


def test_a_calibration_curve_is_of_the_records_of_all_blocks():
    y, score = np.repeat([1, 0], [BLOCK, 1000]), np.repeat([0.1, 0.9], [BLOCK, 1000])
    curve = dp.private_calibration_curve(y, score, n_bins=5, epsilon=1e3)
    np.testing.assert_allclose(curve, [[1.0, 0.0], [0.1, 0.9]], atol=1e-3)


def test_bins_are_pooled_only_where_the_share_falls_by_what_may_be_noise():
    table = np.array([[90.0, 10.0, 60.0, 1.0], [10.0, 90.0, 40.0, 9.0]])  # it falls from bin 1 to bin 2
    whole = np.pad(np.cumsum(table[:, ::-1], axis=1), ((0, 0), (1, 0)))
    # a fall of 5,000, to 4 * 115.8 * noise
    for noise, is_pooled in ((0.0, False), (10.0, False), (15.0, True)):
        above = records_above(table, noise, table.sum(), 1)
        np.testing.assert_allclose(above[:, [0, 1, 3, 4]], whole[:, [0, 1, 3, 4]])
        assert (np.abs(above[:, 2] - whole[:, 2]) > 0.1).all() == is_pooled
        assert np.allclose(above[:, 2], whole[:, 2]) != is_pooled


@loop_over("largest", [1, 30, 10**6, 2**50])
def test_records_above_a_score_never_fall_and_add_up(largest):
    rng = np.random.default_rng(largest % 97)
    for n_bins, total in itertools.product((1, 2, 3, 16), (0, 1, 3000)):
        noisy = rng.integers(-largest, largest, (2, n_bins), endpoint=True).astype(float)
        above = records_above(noisy, 10.0, total, 4)
        assert above.shape == (2, 4 * n_bins + 1)
        assert (above[:, 0] == 0).all()
        assert (np.diff(above, axis=1) >= 0).all()
        assert above[:, -1].sum() == pytest.approx(total)


def test_the_average_precision_is_off_by_less_than_that_of_counts_plausible_one_by_one():
    """The top bins hold few negatives: their noise adds up to more than 0 if what is below 0 is cut off.

    Very good scores of 3,000 records, 3 % of them positive, at epsilon 0.4: of 10,000 releases the bias is
    -0.074, beside -0.175 of counts one by one (standard deviations 0.12, of the difference 0.068), and the
    area under the curve is 0.0018 larger (0.0068). Limits are 5 standard errors of 400 releases away: false
    alarms 1e-6 in all.
    """
    edges, rate = EDGES[::8], Fraction(1, 5)
    cumulative = [norm.cdf(norm.ppf(edges) / 0.7 + shift) for shift in (1.452, -1.452)]  # an area of 0.98
    table = np.round(np.diff(cumulative, axis=1) * [[2910], [90]])
    n, exact = int(table.sum()), average_precision(counts_without_noise(edges, *table))
    noise = NoisyCounts((0,) * table.size, ((table.size, rate),), table.size)
    classes = two_classes(None, None, ArgumentShape(), "y_score")
    read, found = ScoreTable(EDGES, average_precision, classes), []
    for drawn in noise.simulated(np.random.default_rng(0), 400):
        numbers = [table.ravel() + drawn]
        counts = read.counts(ReleasedNumbers(numbers, n, None, 2 * rate, Relation.REPLACE_ONE))
        precision, recall, _ = precision_recall(counts)
        area = -np.diff(recall) @ (precision[:-1] + precision[1:]) / 2
        one_by_one = average_precision(counts_without_noise(edges, counts.negative, counts.positive))
        found.append([average_precision(counts) - exact, one_by_one - exact, area - exact])
    bias, of_one_by_one, of_area = np.mean(found, axis=0)
    assert -0.104 < bias < -0.044
    assert bias - of_one_by_one > 0.085
    assert abs(of_area - bias) < 0.0036


@loop_over("n_bins", [1, 5, 10, 64])
def test_the_calibration_curve_is_scikit_learns_for_any_scores(n_bins):
    rng = np.random.default_rng(1)
    score = np.concatenate([rng.beta(0.3, 0.6, 500), np.linspace(0, 1, 21)])  # some on the edges
    y = (rng.random(521) < score**1.3).astype(int)
    curve = exact(dp.private_calibration_curve, y, score, n_bins=n_bins)
    np.testing.assert_allclose(curve, calibration_curve(y, score, n_bins=n_bins), atol=1e-5)
    curve = exact(dp.private_calibration_curve, [0, 1, 1, 1], [0.1, 0.15, 0.9, 0.9])  # three bins are empty
    np.testing.assert_allclose(curve, [[0.5, 1.0], [0.125, 0.9]], atol=1e-5)


def test_a_record_at_an_edge_is_at_or_above_its_threshold_whatever_the_edges():
    curve = exact(dp.private_roc_curve, [0, 0, 1, 1], [0.25, 0.5, 0.5, 1.0], edges=[0, 0.5, 1])
    np.testing.assert_allclose(curve.fpr, [0, 0.5, 1], atol=1e-9)
    np.testing.assert_allclose(curve.tpr, [0, 1, 1], atol=1e-9)
    assert curve.thresholds.tolist() == [math.inf, 0.5, 0.0]
    margins = [-3.0, 0.5, 0.2, 700.0]
    curve = exact(dp.private_roc_curve, [0, 0, 1, 1], margins, edges=[-1, 0, 1, 2])
    assert curve.thresholds.tolist() == [math.inf, 1, 0, -1]
    np.testing.assert_allclose([curve.fpr, curve.tpr], [[0, 0, 0.5, 1], [0, 0.5, 1, 1]], atol=1e-9)


@loop_over("function", [*CURVES, dp.private_calibration_curve, *NUMBERS])
def test_of_two_columns_that_of_the_positive_label_is_read(function):
    y, score = records(60)
    columns = np.column_stack([score, 1 - score])
    of_score = exact(function, y, score)
    np.testing.assert_equal(exact(function, 1 - y, columns, pos_label=0), of_score)
    np.testing.assert_equal(exact(function, y, columns[:, ::-1]), of_score)


@pytest.mark.gate
@loop_over("epsilon", [1e-300, 0.01, 1.0, 1e300])
def test_curves_are_well_formed_whatever_the_data_without_a_warning(epsilon):
    """Of single numbers `test_matrix.py` says so."""
    score = np.linspace(0, 1, 30)
    several = [*itertools.product(([], np.zeros(30), np.ones(30), score > 0.4), RELATIONS)][1:]
    for (y, relation), seed in itertools.product(several, range(3)):
        (fpr, tpr, thresholds), (precision, recall, _), calibrated = (
            curve(y, score[: len(y)], epsilon=epsilon, neighboring=relation, random_state=seeded(seed))
            for curve in (*CURVES, dp.private_calibration_curve)
        )
        assert (fpr[0], tpr[0], fpr[-1], tpr[-1], thresholds[0]) == (0, 0, 1, 1, math.inf)
        assert min(np.diff(fpr).min(), np.diff(tpr).min(), -np.diff(thresholds).max()) >= 0
        assert (precision[-1], recall[-1], recall[0]) == (1, 0, 1)
        assert (np.diff(recall) <= 0).all()
        for shares in (precision, *calibrated):
            assert ((shares >= 0) & (shares <= 1)).all()


def test_the_values_without_a_class():
    score = np.linspace(0, 1, 8)
    for y in (np.zeros(8), np.ones(8)):
        fpr, tpr, _ = exact(dp.private_roc_curve, y, score)
        np.testing.assert_allclose(fpr, tpr)
    precision, recall, _ = exact(dp.private_precision_recall_curve, np.zeros(8), score)
    assert {*precision[:-1], *(1 - recall[:-1])} == {0.0}
    nobody, some = np.zeros(4), np.arange(4.0)
    for negative, positive, share in ((nobody, nobody, 0), (some, nobody, 0), (nobody, some, 1)):
        counts = counts_without_noise(np.linspace(0, 1, 5), negative, positive)
        assert (area_under_roc(counts), average_precision(counts)) == pytest.approx((0.5, share))
    nobody = counts_without_noise(np.linspace(0, 1, 5), nobody, nobody)
    assert [array.size for array in calibration(nobody, 5)] == [0, 0]
