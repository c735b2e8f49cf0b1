"""Metrics of labels beside scikit-learn's at a huge epsilon: averages, options and labels without records."""

import itertools
import math

import numpy as np
import pytest
from helpers import loop_over, seeded, slow_but, specificity_score
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics.metrics.labels.layouts import Ratio, whole

NO_NOISE = 1e6
RATIOS = ("precision", "recall", "f1", "jaccard", "specificity")
# one is in no order, so that rows and columns must follow it
LABEL_SETS = [["no", "yes"], [3, 1, 2], ["egg", "ham", "spam", "tea", "jam"], list(range(12))]
each_set = pytest.mark.parametrize("labels", slow_but(LABEL_SETS[:2], LABEL_SETS), ids=len)


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


@pytest.mark.gate
@each_set
@loop_over("ratio", RATIOS)
def test_ratios_and_their_averages(ask, labels, ratio):
    twin = getattr(sk, f"{ratio}_score", specificity_score)
    only = np.array(labels[:1] * 50)  # a label without negatives
    several = [made(labels), made(labels, absent=True), (only, np.array((labels[:1] + labels) * 50)[:50])]
    for (y, p), average, zero in itertools.product(
        several, ("macro", "weighted", "micro", None), (0.0, 1.0, math.nan)
    ):
        # scikit-learn has no NaN of these, nor a mean of nothing
        if math.isnan(zero) and (average in ("micro", None) or ratio == "jaccard" or len({*y}) == 1):
            continue
        options = {"average": average, "zero_division": zero}
        ours = ask(f"{ratio}_score", y, p, labels, **options)
        np.testing.assert_allclose(ours, twin(y, p, labels=labels, **options), atol=1e-12)
    if len(labels) == 2:
        y, p = made(labels)
        for positive, other in (labels, labels[::-1]):
            ours = ask(f"{ratio}_score", y, p, labels, pos_label=positive)
            of_other = ratio == "specificity"
            twin = sk.recall_score if of_other else getattr(sk, f"{ratio}_score")
            assert ours == pytest.approx(twin(y, p, pos_label=other if of_other else positive))


@pytest.mark.parametrize(
    ("kind", "average", "records"),
    [
        ("f1", None, [70, 50]),  # with the label, or predicted to have it
        ("jaccard", None, [70, 50]),
        ("precision", None, [60, 40]),
        ("f1", "micro", [100]),
        ("jaccard", "micro", [100]),
        ("recall", "weighted", [100]),
        ("selection_rate", "binary", [100]),
    ],
)
def test_what_a_ratio_is_a_share_of(kind, average, records):
    counts = whole(2).read(np.array([50.0, 10.0, 10.0, 30.0]))
    np.testing.assert_allclose(Ratio(kind, average, 2).rests_on(counts), records)


@each_set
def test_scores_of_the_whole_matrix(ask, labels):
    y, p = made(labels)
    assert ask("matthews_corrcoef", y, p, labels) == pytest.approx(sk.matthews_corrcoef(y, p))
    ours = ask("cohen_kappa_score", y, p, labels, weights="quadratic")
    assert ours == pytest.approx(sk.cohen_kappa_score(y, p, labels=labels, weights="quadratic"))
    # an absent label counts 0 unless it is left out
    more = [*labels, type(labels[0])(99)]
    score = sk.balanced_accuracy_score(y, p)
    assert ask("balanced_accuracy_score", y, p, more) == pytest.approx(len(labels) / len(more) * score)
    assert ask("balanced_accuracy_score", y, p, more, zero_division=math.nan) == pytest.approx(score)


@each_set
def test_the_report_is_laid_out_as_scikit_learns(ask, labels):
    y, p = made(labels)
    named = {"target_names": [f"people of {label}" for label in labels]}
    for options in ({"digits": 2}, {"digits": 4}, named):
        text = ask("classification_report", y, p, labels, **options)
        assert text == sk.classification_report(y, p, labels=labels, **options)
    table = ask("classification_report", y, p, labels, output_dict=True)
    twin = sk.classification_report(y, p, labels=labels, output_dict=True)
    assert list(table) == list(twin)
    for name, row in twin.items():
        assert table[name] == pytest.approx(row)


@pytest.mark.gate
def test_a_thousand_labels():
    rng, size = np.random.default_rng(0), 100_000
    y = rng.integers(0, 1000, size)
    p = np.where(rng.random(size) < 0.8, y, rng.integers(0, 1000, size))
    settings = {"labels": np.arange(1000), "epsilon": 1.0, "random_state": seeded()}
    f1 = dp.private_f1_score(y, p, average="macro", **settings)
    assert f1 == pytest.approx(sk.f1_score(y, p, average="macro"), abs=0.01)
    matrix = dp.private_confusion_matrix(y, p, **settings)
    assert matrix.shape == (1000, 1000)
    assert matrix.sum() == pytest.approx(size)
