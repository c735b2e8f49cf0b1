"""What metrics of labels are among all people: means over labels, MCC, kappa, and released summaries."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from cases import PRIVATE_N
from helpers import all_of_labels, all_of_scores, clopper_pearson, labels_of, loop_over, seeded
from hypothesis import given, settings, strategies as st

import dp_metrics as dp
from dp_metrics.metrics import row_of
from dp_metrics.metrics.labels.confusion import agreement_limits, combined, of_two_labels
from dp_metrics.metrics.labels.layouts import kappa, matthews
from dp_metrics.release.count_limits import NoisyRatio

HUGE = {"epsilon": 1e6}
SHARES = st.floats(0.0, 1.0)
MACRO_F1 = partial(dp.private_f1_score, average="macro")


def released(metric, matrix, labels=None, **options):
    known = {"labels": range(len(matrix)), **options}
    return dp.with_result(metric)(*labels_of(matrix), **known)


TWO = np.array([[620, 80], [30, 270]])
THREE = np.array([[300, 40, 20], [30, 310, 35], [25, 30, 210]])


@pytest.mark.gate
@settings(max_examples=60)
@given(st.tuples(*[st.tuples(SHARES, SHARES).map(sorted)] * 3), st.tuples(*[SHARES] * 3))
def test_the_limits_of_an_agreement_hold_everywhere_within_those_of_its_shares(box, place):
    inside = [low + (high - low) * part for (low, high), part in zip(box, place, strict=True)]
    for formula in (matthews, partial(kappa, weights=None)):
        of_rates = partial(of_two_labels, formula=formula)
        low, high = agreement_limits(of_rates, box)
        assert low - 1e-6 <= of_rates(inside) <= high + 1e-6


def test_a_mean_over_labels_is_surely_between_the_means_of_all_limits():
    """Without noise these are Clopper and Pearson's, with a part of the probability each."""
    right = np.diag(THREE)
    for metric, axis in ((dp.private_recall_score, 1), (dp.private_precision_score, 0)):
        interval = released(metric, THREE, average="macro", **HUGE).population_interval(sure=True)
        wrong = THREE.sum(axis=axis) - right
        ends = [clopper_pearson(a, b, 0.025 / 3) for a, b in zip(right, wrong, strict=True)]
        assert interval == pytest.approx(tuple(np.mean(ends, axis=0)), abs=0.002)
        assert interval.note == ""


@loop_over("matrix", [THREE, TWO[:, ::-1], np.roll(THREE, 1, axis=1), np.full((3, 3), 100)])
def test_a_balanced_accuracy_has_the_limits_of_a_mean_of_recalls_less_chance_or_not(matrix):
    """Less chance it is no more than a shifted and stretched mean, and its range goes below 0."""
    chance, metric = 1 / len(matrix), dp.private_balanced_accuracy_score
    recall = released(dp.private_recall_score, matrix, average="macro", **HUGE)
    plain, adjusted = (released(metric, matrix, adjusted=one, **HUGE) for one in (False, True))
    for sure in (True, False):
        of_mean = np.array(recall.population_interval(sure=sure))
        assert plain.population_interval(sure=sure) == pytest.approx(tuple(of_mean))
        shifted = (of_mean - chance) / (1 - chance)
        assert [*adjusted.population_interval(sure=sure)] == pytest.approx(shifted, abs=1e-6)


@loop_over("metric", [dp.private_matthews_corrcoef, dp.private_cohen_kappa_score, MACRO_F1])
@loop_over("is_right", [False, True])
def test_what_is_exactly_at_an_end_of_its_range_is_missed_no_oftener_than_else(metric, is_right):
    """Each of 20 samples is of people half of whom have either label: kappa is -1 for no other share."""
    rng, missed, least = np.random.default_rng(0), 0, 0.0 if metric is MACRO_F1 else -1.0
    true = 1.0 if is_right else least
    for seed in range(20):
        right = rng.binomial(1000, 0.5)
        matrix = np.diag([right, 1000 - right])
        told = released(
            metric, matrix if is_right else matrix[:, ::-1], epsilon=1.0, random_state=seeded(seed)
        )
        for sure in (False, True):
            lower, upper = told.population_interval(sure=sure)
            assert least <= lower < upper <= 1.0
            missed += not lower <= true <= upper
    assert missed <= 5  # of 40; without regard to the end nearly half of the approximate ones


@loop_over(
    ("metric", "options", "matrix"),
    [
        (dp.private_balanced_accuracy_score, {}, THREE),
        (dp.private_matthews_corrcoef, {}, TWO),
        (dp.private_matthews_corrcoef, {}, THREE),
        (dp.private_cohen_kappa_score, {}, TWO),
        (dp.private_cohen_kappa_score, {"weights": "quadratic"}, THREE),
        (dp.private_f1_score, {"average": "macro"}, TWO),
        (dp.private_jaccard_score, {"average": "weighted"}, THREE),
        (dp.private_precision_score, {"average": "weighted"}, TWO),
    ],
)
def test_without_noise_approximate_limits_have_the_spread_of_samples(metric, options, matrix):
    """Against 400 samples of the same size, whose spread is known to 4 %: 15 % is beyond 3 deviations."""
    result = released(metric, matrix, **options, **HUGE)
    interval = result.population_interval()
    layout, rng = result.reading.layout, np.random.default_rng(0)
    samples = rng.multinomial(matrix.sum(), matrix.ravel() / matrix.sum(), 400).reshape(400, *matrix.shape)
    values = [result.reading.formula(layout.read(layout.of(one).astype(float))) for one in samples]
    assert interval.upper - interval.lower == pytest.approx(2 * 1.96 * np.std(values), rel=0.15)
    assert interval.lower < result.value < interval.upper
    assert "Approximate" in interval.note
    assert interval.about.endswith("These limits are approximate.")


def test_where_noise_is_nearly_all_there_is_only_sure_limits_are_given():
    few, options = np.array([[40, 1, 1], [1, 30, 0], [0, 1, 26]]), {"epsilon": 0.5}
    for metric, matrix in ((dp.private_f1_score, few), (dp.private_recall_score, np.diag([3] * 10))):
        result = released(metric, matrix, average="macro", random_state=seeded(1), **options)
        found = result.population_interval()
        assert tuple(found) == tuple(result.population_interval(sure=True))
        assert found.note == ""
        assert found.about.endswith("These limits are sure.")
    f1 = released(dp.private_f1_score, THREE, average="macro", **HUGE)  # of labels that share records
    assert tuple(f1.population_interval()) == tuple(f1.population_interval(sure=True))
    for size, is_given in ((10, False), (90, True)):
        ratio = NoisyRatio(size, 2, (1, 1), (Fraction(1, 4),) * 2, None, None)
        limits = combined(np.mean, [ratio] * 3, 0.025, is_mean=True)
        assert (limits is not None) == is_given
    matthews = released(dp.private_matthews_corrcoef, few, random_state=seeded(1), **options)
    for sure, match in ((True, "leave out sure"), (False, "far above their noise")):
        with pytest.raises(ValueError, match=match):
            matthews.population_interval(sure=sure)


@loop_over(
    ("metric", "options"),
    [
        (dp.private_f1_score, {"average": "macro", "labels": [0, 1]}),
        (dp.private_precision_score, {"average": None, "labels": [0, 1]}),
        (dp.private_cohen_kappa_score, {}),
        (dp.private_accuracy_score, {"neighboring": "add_or_remove_one"}),
    ],
)
def test_limits_among_people_contain_those_of_the_noise_and_neither_is_a_point(metric, options):
    """A nearly perfect model: counts of errors are lost in noise, and a box of counts ends in points."""
    rng = np.random.default_rng(1)
    y = (rng.random(400) < 0.3).astype(int)
    p = np.where(rng.random(400) < 0.995, y, 1 - y)
    for confidence in (0.95, 0.5) * 3:
        result = dp.with_result(metric)(y, p, epsilon=1.0, **options)
        low, high = result.noise_interval(confidence)
        least, most = result.population_interval(confidence)
        assert np.all(least <= low + 1e-9)
        assert np.all(high <= most + 1e-9)
        if confidence == 0.95:
            assert np.all(low < high)


def test_noise_beyond_all_floats_leaves_limits_of_every_ratio():
    for seed in range(20):
        tiny = {"epsilon": 5e-324, "random_state": seeded(seed)}
        labels = all_of_labels(range(3)).update(*labels_of(THREE)).release(**tiny, **PRIVATE_N)
        scores = all_of_scores().update(*labels_of(TWO)).release(**tiny)
        asked = [
            *(labels.population_interval(name, average="macro") for name in ("recall", "specificity")),
            *(scores.net_benefit(0.5, of=of) for of in ("records", "people")),
        ]
        assert all(limits.lower <= limits.upper for limits in asked), seed


@pytest.mark.gate
@loop_over("labels", [2, 3, 5])
@loop_over("matrix", [False, True])
def test_a_released_summary_has_the_limits_of_single_metrics(labels, matrix):
    """Without noise they agree; those of the noise hold the exact metric but once in a billion."""
    table = np.random.default_rng(labels).integers(20, 60, (labels, labels)) + 300 * np.eye(labels, dtype=int)
    true, pred = labels_of(table)
    metric = "confusion_matrix" if matrix else "classification_report"
    summary = all_of_labels(range(labels), metric).update(true, pred)
    clear, noisy = summary.release(**HUGE), summary.release(1.0)
    for name, options in (
        ("accuracy", {}),
        ("recall", {"average": None}),
        ("jaccard", {"average": "macro"}),
        ("balanced_accuracy", {}),
    ):
        chosen = {} if name == "accuracy" else {"labels": range(labels)}
        alone = dp.with_result(row_of(name)[0].function)(true, pred, **chosen, **options, **HUGE)
        for sure in (True, False):
            found = clear.population_interval(name, sure=sure, **options)
            np.testing.assert_allclose([*found], [*alone.population_interval(sure=sure)], atol=0.003)
        lower, upper = noisy.noise_interval(name, confidence=1 - 1e-9, **options)
        assert np.all(lower <= alone.value + 1e-9)
        assert np.all(alone.value <= upper + 1e-9)
        assert np.all(upper - lower < 0.7)


@pytest.mark.gate
def test_each_labels_number_of_a_page_has_limits_of_its_own():
    """No number on a page shares its confidence: limits of one label are closer than `average=None` has."""
    summary = all_of_labels(range(3), "classification_report").update(*labels_of(THREE))
    told = summary.release(1.0)
    recalls = [told.numbers()[f"recall of {label!r}"] for label in range(3)]
    for at, recall in enumerate(recalls):
        assert recall.value == told.recall_score(average=None)[at]
        for ask in ("noise_interval", "population_interval"):
            low, high = getattr(recall, ask)()
            lows, highs = getattr(told, ask)("recall", average=None)
            assert lows[at] < low < recall.value < high < highs[at]


@pytest.mark.gate
def test_a_mean_of_shares_near_one_is_covered():
    """Ten shares of .97 of 60 records each, in noise of deviation 4.7.

    If each of 60 intervals covers with probability .95, fewer than 51 do with probability 8e-4.
    """
    rng, covered = np.random.default_rng(0), 0
    for _ in range(60):
        exact = rng.binomial(60, 0.97, 10)
        noise = rng.geometric(1 - np.exp(-0.3), (2, 2, 10)) - 1
        counts = np.array([exact, 60 - exact]) + noise[0] - noise[1]
        rates = (Fraction(3, 10),) * 2
        ratios = [NoisyRatio(a, b, (1, 1), rates, None, None) for a, b in counts.T.tolist()]
        limits = combined(np.mean, ratios, 0.025, is_mean=True)
        covered += limits is None or limits[0] <= 0.97 <= limits[1]
    assert covered >= 51
