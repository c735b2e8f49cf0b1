"""ConfusionSummary: a table of labels in pieces, and all metrics from one release."""

import json
import math
import pickle

import numpy as np
import pytest
from helpers import NoEntropy, seeded
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics import ConfusionSummary, VarianceSummary

LABELS = ["egg", "ham", "spam", "tea"]
RNG = np.random.default_rng(0)
Y = np.array(LABELS)[RNG.integers(0, 4, 300)]
P = np.where(RNG.random(300) < 0.8, Y, "tea")


def summary():
    return ConfusionSummary(LABELS).update(Y, P)


def test_pieces_in_any_order_give_the_same_bytes_and_the_same_release():
    first, second, third = (ConfusionSummary(LABELS).update(Y[i::3], P[i::3]) for i in range(3))
    nothing = ConfusionSummary(LABELS).update([], [])
    whole = summary().to_bytes()
    assert first.merge(second).merge(third).to_bytes() == whole
    assert third.merge(nothing.merge(first)).merge(second).to_bytes() == whole
    restored = ConfusionSummary.from_bytes(whole)
    assert restored.to_bytes() == whole
    releases = [s.release(1.0, random_state=seeded()).result.value for s in (summary(), restored)]
    assert releases[0] == releases[1]
    one_call = dp.with_result(dp.private_classification_report)(
        Y, P, epsilon=1.0, labels=LABELS, random_state=seeded()
    )
    assert releases[0] == one_call.drawn["counts"]


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_one_release_tells_all_metrics(relation):
    released = summary().release(1e7, matrix=True, neighboring=relation)
    assert released.accuracy_score() == pytest.approx(sk.accuracy_score(Y, P))
    assert released.balanced_accuracy_score() == pytest.approx(sk.balanced_accuracy_score(Y, P))
    assert released.matthews_corrcoef() == pytest.approx(sk.matthews_corrcoef(Y, P))
    kappa = sk.cohen_kappa_score(Y, P, labels=LABELS, weights="linear")
    assert released.cohen_kappa_score(weights="linear") == pytest.approx(kappa)
    np.testing.assert_allclose(released.confusion_matrix(), sk.confusion_matrix(Y, P, labels=LABELS))
    for average in ("macro", "weighted", "micro", None):
        for name in ("precision_score", "recall_score", "f1_score", "jaccard_score"):
            ours = getattr(released, name)(average=average)
            np.testing.assert_allclose(ours, getattr(sk, name)(Y, P, labels=LABELS, average=average))
        for made in (released, summary().release(1e7, neighboring=relation)):
            specificity = dp.private_specificity_score(Y, P, epsilon=1e7, labels=LABELS, average=average)
            np.testing.assert_allclose(made.specificity_score(average=average), specificity)
    assert released.classification_report() == sk.classification_report(Y, P, labels=LABELS)
    few = summary().release(1e7, neighboring=relation)
    assert few.f1_score(average="macro") == pytest.approx(sk.f1_score(Y, P, average="macro"))
    assert len(few.result.value) == 12
    for call in (few.confusion_matrix, lambda: few.cohen_kappa_score(weights="linear")):
        with pytest.raises(ValueError, match="matrix=True"):
            call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'labels'"):
        few.f1_score(average="macro", labels=LABELS)


def test_asking_again_spends_nothing_and_the_result_may_be_published():
    budget = dp.PrivacyAccountant(1.0)
    released = summary().release(0.5, accountant=budget, spend_name="spam filter")
    first = [released.f1_score(average="macro"), released.accuracy_score()]
    assert [released.f1_score(average="macro"), released.accuracy_score()] == first
    assert [(s.epsilon, s.spend_name) for s in budget.history] == [(0.5, "spam filter")]
    told = json.loads(released.result.to_json())
    assert told["epsilon"] == 0.5
    assert told["value"] == told["drawn"]["counts"]
    assert repr(released) == "ReleasedConfusion(labels=['egg', 'ham', 'spam', 'tea'], epsilon=0.5)"
    with pytest.raises(dp.PrivacyBudgetError):
        summary().release(0.6, accountant=budget, random_state=NoEntropy())


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="merge only"):
        summary().merge(ConfusionSummary(LABELS[::-1]))  # another order is another table
    with pytest.raises(ValueError, match="with itself"):
        (one := summary()).merge(one)
    before = (kept := summary()).to_bytes()
    for bad in ((["egg", "98765"], ["egg", "egg"]), (["egg"], ["egg", "ham"]), ([math.nan], ["egg"])):
        with pytest.raises(ValueError, match=r"not in labels|inconsistent|contains NaN"):
            kept.update(*bad)
    assert kept.to_bytes() == before
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ConfusionSummary(LABELS).release(1.0)
    settings = {"epsilon": 1.0, "neighboring": "add_or_remove_one"}
    never, once = (
        one.release(random_state=seeded(), **settings).accuracy_score()
        for one in (ConfusionSummary(LABELS), ConfusionSummary(LABELS).update([], []))
    )
    assert never == once
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ConfusionSummary(LABELS).update([], []).release(1.0)
    nobody = ConfusionSummary(LABELS).update([], []).release(1.0, neighboring="add_or_remove_one")
    assert 0 <= nobody.accuracy_score() <= 1
    for wrong in (VarianceSummary().update([1.0, 2.0]).to_bytes(), before[:-1], before[:40]):
        with pytest.raises(ValueError, match=r"not a ConfusionSummary|damaged|not a summary"):
            ConfusionSummary.from_bytes(wrong)


def test_labels_of_any_type_survive_the_bytes():
    for labels in ([0, 1], [2.0, 1.0], [True, False], ["b", "a"], np.array([3, 5]), [1.5, 2.5]):
        made = ConfusionSummary(labels)
        if all(float(label).is_integer() for label in labels if not isinstance(label, str)):
            made.update(list(labels), list(labels))
            assert ConfusionSummary.from_bytes(made.to_bytes()).to_bytes() == made.to_bytes()
            assert made.release(1e6).accuracy_score() == 1


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_the_limits_of_a_released_matrix_are_those_of_one_call(relation):
    options = {"epsilon": 1.0, "neighboring": relation}
    matrix = dp.with_result(dp.private_confusion_matrix)(
        Y, P, labels=LABELS, random_state=seeded(), **options
    )
    result = summary().release(matrix=True, random_state=seeded(), **options).result
    ours, theirs = pickle.loads(pickle.dumps(result)).noise_interval(0.9), matrix.noise_interval(0.9)
    np.testing.assert_equal([*ours], [*theirs])
    assert str(ours) == str(theirs)


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_released_counts_have_limits_in_their_order(relation):
    exact = sk.confusion_matrix(Y, P, labels=LABELS)
    right = np.diag(exact)
    counts = [*right, *(exact.sum(axis=1) - right), *(exact.sum(axis=0) - right)]
    result = summary().release(1e3, neighboring=relation).result
    interval = result.noise_interval(0.99)
    assert len(result.value) == len(counts)
    for end in interval:
        np.testing.assert_equal(end, counts)
    assert "exact counts" in interval.about
    few = summary().release(0.1, neighboring=relation).result
    lower, upper = few.noise_interval()
    assert (lower >= 0).all()
    assert (lower <= upper).all()
    assert (upper <= len(Y)).all() or relation == "add_or_remove_one"
