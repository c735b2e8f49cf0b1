"""Metrics of labels beside scikit-learn's at a huge epsilon, and what they refuse."""

import itertools
import math
import warnings

import numpy as np
import pytest
from helpers import seeded, slow_but
from sklearn import metrics as sk

import dp_metrics as dp

NO_NOISE = 1e6
RATIOS = ("precision", "recall", "f1", "jaccard")
# the last is in no order, so that rows and columns must follow it
LABEL_SETS = [["no", "yes"], [3, 1, 2], ["egg", "ham", "spam", "tea", "jam"], list(range(12))]


def made(labels, n=200, absent=False):
    rng = np.random.default_rng(len(labels))
    k = len(labels) - absent
    true = rng.integers(0, k, n)
    pred = np.where(rng.random(n) < 0.7, true, rng.integers(0, k, n))
    return np.array(labels)[true], np.array(labels)[pred]


@pytest.fixture(params=["replace_one", "add_or_remove_one"])
def ask(request):
    def without_noise(name, y, p, labels, **options):
        function = getattr(dp, f"private_{name}")
        settings = {"epsilon": NO_NOISE, "random_state": seeded(), "neighboring": request.param}
        return function(y, p, labels=labels, **settings, **options)

    return without_noise


def test_the_records_of_all_blocks_count(ask):
    y, p = (np.repeat(column, 200) for column in made([0, 1]))
    expected = sk.confusion_matrix(y, p)
    np.testing.assert_allclose(ask("confusion_matrix", y, p, [0, 1]), expected, atol=1e-6)


@pytest.mark.parametrize("labels", LABEL_SETS, ids=len)
@pytest.mark.parametrize("n", [6, 200])
def test_confusion_matrices(ask, labels, n):
    y, p = made(labels, n)
    for normalize in (None, "true", "pred", "all"):
        ours = ask("confusion_matrix", y, p, labels, normalize=normalize)
        np.testing.assert_allclose(ours, sk.confusion_matrix(y, p, labels=labels, normalize=normalize))


@pytest.mark.parametrize("labels", slow_but(LABEL_SETS[:2], LABEL_SETS), ids=len)
@pytest.mark.parametrize("ratio", RATIOS)
def test_ratios(ask, labels, ratio):
    twin = getattr(sk, f"{ratio}_score")
    for absent in (False, True):
        y, p = made(labels, absent=absent)
        for average in ("macro", "weighted", "micro", None):
            for zero in (0.0, 1.0, math.nan):
                if math.isnan(zero) and average in ("micro", None):
                    continue
                options = {"average": average, "zero_division": zero}
                if ratio == "jaccard" and math.isnan(zero):  # scikit-learn has no NaN there
                    continue
                ours = ask(f"{ratio}_score", y, p, labels, **options)
                np.testing.assert_allclose(ours, twin(y, p, labels=labels, **options), atol=1e-12)
    if len(labels) == 2:
        for positive in labels:
            ours = ask(f"{ratio}_score", y, p, labels, pos_label=positive)
            assert ours == pytest.approx(twin(y, p, labels=labels, pos_label=positive, zero_division=0))


def specificity(y, p, labels, average, zero):
    """Return the specificity that scikit-learn's matrices of one label against the others tell."""
    matrices = sk.multilabel_confusion_matrix(y, p, labels=labels)
    found, wrong = matrices[:, 0, 0], matrices[:, 0, 1]
    if average == "micro":
        return found.sum() / (found.sum() + wrong.sum())
    shares = [f / (f + w) if f + w else zero for f, w in zip(found, wrong, strict=True)]
    weights = [(y == label).sum() for label in labels] if average == "weighted" else np.ones(len(labels))
    defined = ~np.isnan(shares)
    return (
        shares
        if average is None
        else np.average(np.array(shares)[defined], weights=np.array(weights)[defined])
    )


@pytest.mark.parametrize("labels", LABEL_SETS, ids=len)
def test_specificity(ask, labels):
    only = np.array(labels[:1] * 50)  # a label without negatives
    for y, p in (made(labels), made(labels, absent=True), (only, np.array((labels[:1] + labels) * 50)[:50])):
        for average, zero in itertools.product(("macro", "weighted", "micro", None), (0.0, 1.0, math.nan)):
            if average == "weighted" and math.isnan(zero) and len(set(y)) == 1:
                continue  # a mean of nothing
            if not (math.isnan(zero) and average in ("micro", None)):
                ours = ask("specificity_score", y, p, labels, average=average, zero_division=zero)
                np.testing.assert_allclose(ours, specificity(y, p, labels, average, zero), atol=1e-12)
    if len(labels) == 2:
        y, p = made(labels)
        for positive, other in zip(labels, labels[::-1], strict=True):
            ours = ask("specificity_score", y, p, labels, pos_label=positive)
            assert ours == ask("recall_score", y, p, labels, pos_label=other)


@pytest.mark.parametrize("labels", LABEL_SETS, ids=len)
def test_scores_of_the_whole_matrix(ask, labels):
    y, p = made(labels)
    assert ask("matthews_corrcoef", y, p, labels) == pytest.approx(sk.matthews_corrcoef(y, p))
    for weights in (None, "linear", "quadratic"):
        ours = ask("cohen_kappa_score", y, p, labels, weights=weights)
        assert ours == pytest.approx(sk.cohen_kappa_score(y, p, labels=labels, weights=weights))
    for adjusted in (False, True):
        ours = ask("balanced_accuracy_score", y, p, labels, adjusted=adjusted)
        assert ours == pytest.approx(sk.balanced_accuracy_score(y, p, adjusted=adjusted))
    # an absent label counts 0 unless it is left out
    more = [*labels, type(labels[0])(99)]
    share = len(labels) / len(more)
    score = sk.balanced_accuracy_score(y, p)
    assert ask("balanced_accuracy_score", y, p, more) == pytest.approx(share * score)
    assert ask("balanced_accuracy_score", y, p, more, zero_division=math.nan) == pytest.approx(score)


@pytest.mark.parametrize("labels", LABEL_SETS, ids=len)
@pytest.mark.parametrize("digits", [2, 4])
def test_the_report_is_laid_out_as_scikit_learns(ask, labels, digits):
    y, p = made(labels)
    text = ask("classification_report", y, p, labels, digits=digits)
    assert text == sk.classification_report(y, p, labels=labels, digits=digits)
    table = ask("classification_report", y, p, labels, output_dict=True)
    twin = sk.classification_report(y, p, labels=labels, output_dict=True)
    assert list(table) == list(twin)
    for name, row in twin.items():
        assert table[name] == pytest.approx(row)


def test_names_in_a_report():
    y, p = [0, 1, 1, 0], [0, 1, 0, 0]
    names = ["healthy people", "sick"]
    text = dp.private_classification_report(y, p, epsilon=NO_NOISE, target_names=names)
    assert text == sk.classification_report(y, p, target_names=names)


NOTHING = [([0] * 50, [0] * 50), ([1] * 50, [0] * 50), ([0], [1])]


@pytest.mark.parametrize("data", NOTHING)
@pytest.mark.parametrize("epsilon", [1e-300, 1e-3, 1.0, 1e300])
def test_one_class_only_is_no_reason_to_warn_or_fail(data, epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dp.NoisyReleaseWarning)  # which reads public numbers only
        for ratio in RATIOS:
            for options in ({}, {"average": "macro"}, {"average": "weighted"}, {"zero_division": 1}):
                value = getattr(dp, f"private_{ratio}_score")(*data, epsilon=epsilon, **options)
                assert 0 <= value <= 1
        for name in ("matthews_corrcoef", "cohen_kappa_score"):
            assert -1 <= getattr(dp, f"private_{name}")(*data, epsilon=epsilon) <= 1
        assert 0 <= dp.private_balanced_accuracy_score(*data, epsilon=epsilon) <= 1
        assert np.isfinite(dp.private_confusion_matrix(*data, epsilon=epsilon, normalize="true")).all()
        assert dp.private_classification_report(*data, epsilon=epsilon).count("\n") == 8


def test_zero_division_warn_is_zero_without_a_warning():
    y = [0] * 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dp.private_recall_score(y, y, epsilon=NO_NOISE, zero_division="warn") == 0
    assert dp.private_recall_score(y, y, epsilon=NO_NOISE, zero_division=1) == 1
    assert dp.private_recall_score(y, y, epsilon=NO_NOISE, zero_division=math.nan, average="macro") == 1


def test_averages_of_one_kind_are_accuracy():
    y, p = made(LABEL_SETS[2])
    for ratio, average in [
        ("recall", "weighted"),
        ("recall", "micro"),
        ("precision", "micro"),
        ("f1", "micro"),
    ]:
        metric = getattr(dp, f"private_{ratio}_score")
        result = dp.with_result(metric)(y, p, epsilon=1.0, labels=LABEL_SETS[2], average=average)
        right, wrong = result.drawn["counts"]  # two cells suffice
        assert right + wrong == 200
        assert result.value == pytest.approx(min(max(right, 0), 200) / 200)


def test_a_thousand_labels():
    labels = np.arange(1000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 1000, 100_000)
    p = np.where(rng.random(100_000) < 0.8, y, rng.integers(0, 1000, 100_000))
    settings = {"labels": labels, "epsilon": 1.0, "random_state": seeded()}
    f1 = dp.private_f1_score(y, p, average="macro", **settings)
    assert f1 == pytest.approx(sk.f1_score(y, p, average="macro"), abs=0.01)
    recalls = dp.private_recall_score(y, p, average=None, **settings)
    assert np.abs(recalls - sk.recall_score(y, p, average=None)).mean() < 0.03  # 2 / (epsilon n_k) is 0.02
    matrix = dp.private_confusion_matrix(y, p, **settings)
    assert matrix.shape == (1000, 1000)
    assert matrix.sum() == pytest.approx(100_000)
