"""The private area under the ROC curve: scores and labels beside scikit-learn's, and its scorers."""

import numpy as np
import pandas as pd
import pytest
from helpers import loop_over, seeded
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import dp_metrics as dp

NO_NOISE = {"epsilon": 1e11}
RNG = np.random.default_rng(0)
Y = (np.arange(300) % 4 == 0).astype(int)
SCORE = RNG.normal(Y).round(1)  # with ties
Y3 = np.arange(300) % 3
SCORE3 = RNG.normal(np.eye(3)[Y3]).round(1)


def without_noise(*data, **options):
    return dp.private_roc_auc_score(*data, random_state=seeded(), **NO_NOISE, **options)


def near(value):
    return pytest.approx(value, abs=1e-6)


def test_scores_in_every_shape_give_the_area_of_scikit_learn():
    for shaped in (
        SCORE[:, np.newaxis],
        np.stack([-SCORE, SCORE], axis=1),
        np.stack([7.0 * np.arange(300), SCORE], axis=1),  # only the second column counts
        (10 * SCORE).round().astype(int),
        np.exp(100 * (SCORE - SCORE.max())),  # any monotone change, far into the small numbers
    ):
        assert without_noise(Y, shaped) == near(roc_auc_score(Y, SCORE))


@loop_over("labels", [["no", "yes"], ["yes", "no"], [False, True], [-1, 1], [2, 10]])
def test_the_second_of_two_labels_in_sorted_order_is_the_positive_one(labels):
    y, is_sorted = np.array(sorted(labels))[Y], labels == sorted(labels)
    score = SCORE if is_sorted else pd.DataFrame({"yes": SCORE, "no": -SCORE})
    assert without_noise(y, score, labels=labels) == near(roc_auc_score(y, SCORE))


@loop_over("labels", [None, [0, 1, 2], [2, 0, 1]])
def test_of_several_labels_each_is_judged_against_the_rest(labels):
    expected = [roc_auc_score(k == Y3, SCORE3[:, k]) for k in range(3)]
    score = SCORE3 if labels is None else pd.DataFrame(SCORE3, columns=["0", "1", "2"])
    areas = without_noise(Y3, score, multi_class="ovr", average=None, labels=labels)
    np.testing.assert_allclose(areas, expected, atol=1e-6)
    assert without_noise(Y3, score, multi_class="ovr", labels=labels) == near(np.mean(expected))
    drawn = dp.with_result(dp.private_roc_auc_score)(Y3, SCORE3, epsilon=1.0, multi_class="ovr").drawn
    assert len(drawn["positives"]) == 3


@loop_over("neighboring", ["replace_one", "add_or_remove_one"])
def test_one_class_alone_has_an_area_of_a_half_and_so_has_no_record(neighboring):
    for y in (np.zeros(60), np.ones(60)):
        assert without_noise(y, SCORE[:60], neighboring=neighboring) == near(0.5)
    if neighboring != "replace_one":
        for empty in ([], np.empty((0, 2))):
            assert without_noise([], empty, neighboring=neighboring) == near(0.5)
        several = {"labels": ["a", "b", "c"], "multi_class": "ovr", "average": None}
        assert without_noise([], [], neighboring=neighboring, **several).shape == (3,)


@loop_over("model", [LogisticRegression(), LinearSVC(), DecisionTreeClassifier(max_depth=3)])
def test_scorers_judge_decisions_or_else_probabilities(model):
    X, y = make_classification(n_samples=200, n_classes=2, flip_y=0.1, random_state=0)
    y = np.array(["ham", "spam"])[y]
    model = model.fit(X, y)
    scorer = dp.get_private_scorer("private_roc_auc_score", **NO_NOISE)
    has_decision = hasattr(model, "decision_function")
    score = model.decision_function(X) if has_decision else model.predict_proba(X)[:, 1]
    assert scorer(model, X, y) == near(roc_auc_score(y, score))


def test_a_scorer_of_several_labels():
    X, y = make_classification(n_samples=300, n_classes=3, n_informative=4, random_state=0)
    model = LogisticRegression().fit(X, y)
    proba = {"response_method": "predict_proba", "multi_class": "ovr", "labels": [0, 1, 2]}
    scorer = dp.get_private_scorer("private_roc_auc_score", **NO_NOISE, **proba)
    expected = roc_auc_score(y, model.predict_proba(X), multi_class="ovr")
    assert scorer(model, X, y) == near(expected)
