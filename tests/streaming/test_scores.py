"""A summary of scores: the same bits however the records came, and one release for all curves."""

import itertools
import math
import pickle
from functools import reduce

import dask.array as da
import numpy as np
import pytest
from cases import scored
from helpers import NoEntropy, assert_refused, kind_of, seeded
from sklearn import metrics as sk
from sklearn.calibration import CalibrationDisplay, calibration_curve

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, ReleasedScores, ScoreSummary, distributed
from dp_metrics.metrics import METRICS

Y, SCORE = scored(np.random.default_rng(0), 3000)
NAMES = np.array(["no", "yes"])[Y.astype(int)]
MARGINS = 8 * SCORE - 4
SETTINGS = {
    "plain": ({}, Y, SCORE),
    "names": ({"labels": ["yes", "no"], "pos_label": "no"}, NAMES, SCORE),
    "edges": ({"edges": np.linspace(-3, 3, 21)}, Y, MARGINS),
}
each_setting = pytest.mark.parametrize("setting", SETTINGS)
METHODS = {
    "private_roc_curve": ReleasedScores.roc_curve,
    "private_precision_recall_curve": ReleasedScores.precision_recall_curve,
    "private_average_precision_score": ReleasedScores.average_precision_score,
}


def chunks(y, score, size=700):
    return [(y[i : i + size], score[i : i + size]) for i in range(0, len(y), size)]


@each_setting
@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_a_release_is_the_same_to_the_bit_as_one_call_and_by_dask(setting, neighboring):
    options, y, score = SETTINGS[setting]
    summary = ScoreSummary(**options)
    for chunk in chunks(y, score):
        summary.update(*chunk)
    for bins in (None, 16) if setting != "edges" else (None,):
        how = {"epsilon": 0.5, "neighboring": neighboring, "bins": bins}
        released = summary.release(**how, random_state=seeded())
        for name, method in METHODS.items():
            expected = getattr(dp, name)(y, score, **options, **how, random_state=seeded())
            np.testing.assert_equal(method(released), expected)
            by_dask = getattr(distributed, name)(
                *(da.from_array(a, chunks=700) for a in (y, score)), **options, **how, random_state=seeded()
            )
            np.testing.assert_equal(by_dask, expected)


@each_setting
def test_summaries_merge_in_any_order_and_come_back_from_bytes(setting):
    options, y, score = SETTINGS[setting]
    parts = [ScoreSummary.from_data(*chunk, **options) for chunk in chunks(y, score)]
    whole = ScoreSummary.from_data(y, score, **options).to_bytes()
    for order in itertools.islice(itertools.permutations(parts), 0, 120, 29):
        assert reduce(lambda a, b: a.merge(b), order).to_bytes() == whole
    back = ScoreSummary.from_bytes(whole)
    assert back.to_bytes() == whole
    first, second = (s.release(1.0, random_state=seeded()) for s in (back, parts[0].merge(parts[1])))
    assert isinstance(first, ReleasedScores)
    assert first.result.n == 3000 != second.result.n
    assert back.update([], []).to_bytes() == whole


def test_summaries_of_other_settings_do_not_merge():
    summaries = [ScoreSummary.from_data(*data[1:], **data[0]) for data in SETTINGS.values()]
    summaries.append(ScoreSummary.from_data(Y, SCORE, pos_label=0))
    summaries.append(dp.ConfusionSummary().update(Y, Y))
    for a, b in itertools.permutations(summaries, 2):
        with pytest.raises(ValueError, match="merge only"):
            a.merge(b)
    with pytest.raises(ValueError, match="itself"):
        summaries[0].merge(summaries[0])
    with pytest.raises(ValueError, match="not a ConfusionSummary"):
        dp.ConfusionSummary.from_bytes(summaries[0].to_bytes())


def test_one_release_tells_everything_at_one_price():
    accountant = PrivacyAccountant(1.0)
    summary = ScoreSummary.from_data(Y, SCORE)
    released = summary.release(0.75, accountant=accountant, spend_name="test set")
    for _ in range(2):
        released.roc_curve(), released.roc_auc_score(), released.precision_recall_curve()
        released.average_precision_score(), released.calibration_curve(), released.calibration_display()
    assert accountant.spent == 0.75
    assert [spend.spend_name for spend in accountant.history] == ["test set"]
    assert sum(released.result.value) == 3000
    assert all(isinstance(count, int) for count in released.result.value)
    assert released.counts.total.sum() == pytest.approx(3000)
    assert (released.result.epsilon, released.result.n) == (0.75, 3000)
    assert repr(released) == "ReleasedScores(16 bins, epsilon=0.75)"
    with pytest.raises(dp.PrivacyBudgetError):
        summary.release(0.5, accountant=accountant, random_state=NoEntropy())
    with pytest.raises(AttributeError):
        released.counts = None


def test_what_a_release_tells_is_near_scikit_learn_at_a_huge_epsilon():
    released = ScoreSummary.from_data(Y, SCORE).release(1e11)
    assert released.roc_auc_score() == pytest.approx(
        sk.roc_auc_score(Y, SCORE), abs=1e-9
    )  # 65 scores, 128 bins
    assert released.average_precision_score() == pytest.approx(sk.average_precision_score(Y, SCORE), abs=0.01)
    inside = np.minimum(SCORE + 0.001, 1)  # a score on an edge lies in the bin above it here
    for ours, theirs in zip(
        released.calibration_curve(2), calibration_curve(Y, inside, n_bins=2), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=0.02)
    display = released.calibration_display(4)
    assert isinstance(display, CalibrationDisplay)
    assert display.y_prob.size == 3000
    assert display.y_prob.mean() == pytest.approx(SCORE.mean(), abs=0.01)


def test_ties_count_half():
    released = ScoreSummary(edges=[0, 1, 2]).update([0, 0, 1, 1], [0.5, 1.5, 0.7, 1.2]).release(1e11)
    assert released.roc_auc_score() == pytest.approx(0.5)
    released = ScoreSummary(edges=[0, 1, 2]).update([0, 0, 1, 1], [0.5, 1.5, 1.7, 1.2]).release(1e11)
    assert released.roc_auc_score() == pytest.approx(0.75)


@pytest.mark.parametrize("y", [[], [0, 0], [1, 1]])
def test_without_a_class_or_any_record(y):
    summary = ScoreSummary().update(y, [0.25, 0.75][: len(y)])
    released = summary.release(1e11, neighboring="add_or_remove_one")
    assert released.roc_auc_score() == pytest.approx(0.5)
    assert released.average_precision_score() == pytest.approx(float(1 in y))
    assert released.result.n is None
    if not y:
        with pytest.raises(ValueError, match="0 sample"):
            summary.release(1.0, random_state=NoEntropy())


def test_bad_input_leaves_the_summary_as_it_was():
    summary = ScoreSummary.from_data(Y, SCORE)
    before = summary.to_bytes()
    for y, score in (([0, 2], [0.1, 0.2]), ([0, 1], [0.1, 1.5]), ([0, 1], [0.1, math.nan]), ([0, 1], [0.1])):
        with pytest.raises(ValueError, match=r"label|edges=|NaN|inconsistent"):
            summary.update(y, score)
        assert summary.to_bytes() == before
    for options in ({"labels": [0, 1, 2]}, {"pos_label": 3}, {"edges": [0, 1]}, {"edges": [0, 2, 1]}):
        with pytest.raises(ValueError, match=next(iter(options))):
            ScoreSummary(**options)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ScoreSummary().release(1.0)
    settings = {"epsilon": 1.0, "neighboring": "add_or_remove_one"}
    never, once = (
        one.release(random_state=seeded(), **settings).roc_auc_score()
        for one in (ScoreSummary(), ScoreSummary().update([], []))
    )
    assert never == once
    assert_refused(summary.release, (), ValueError, "bins", epsilon=1.0, bins=3)
    released = summary.release(1.0)
    with pytest.raises(ValueError, match="n_bins"):
        released.calibration_curve(0)
    with pytest.raises(ValueError, match="probabilities"):
        ScoreSummary.from_data(Y, MARGINS, edges=[-3, 0, 3]).release(1.0).calibration_curve()


def test_every_metric_of_the_table_is_a_method():
    assert METHODS.keys() == {name for name, row in METRICS.items() if kind_of(row) == "scores"}
    assert repr(ScoreSummary(pos_label=0)) == "ScoreSummary(labels=[0, 1], pos_label=0, bins=128)"


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_released_counts_of_scores_have_limits(relation):
    result = ScoreSummary.from_data(Y, SCORE).release(1e3, bins=8, neighboring=relation).result
    for end in pickle.loads(pickle.dumps(result)).noise_interval(0.99):
        np.testing.assert_equal(end, result.value)
