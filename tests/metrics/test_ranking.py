"""The private area under the ROC curve, beside scikit-learn's at a huge epsilon, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import seeded
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import dp_metrics as dp
from dp_metrics import private_roc_auc_score

NO_NOISE = 1e11
RNG = np.random.default_rng(0)
Y = (np.arange(300) % 4 == 0).astype(int)
SCORE = RNG.normal(Y).round(1)  # with ties
Y3 = np.arange(300) % 3
SCORE3 = RNG.normal(np.eye(3)[Y3]).round(1)


def without_noise(*data, **options):
    return private_roc_auc_score(*data, epsilon=NO_NOISE, random_state=seeded(), **options)


@pytest.mark.parametrize(
    "shaped",
    [
        lambda s: s,
        lambda s: s[:, np.newaxis],
        lambda s: np.stack([-s, s], axis=1),
        lambda s: np.stack([7.0 * np.arange(300), s], axis=1),  # only the second column counts
        lambda s: s.astype(np.float32),
        lambda s: (10 * s).round().astype(int),
        lambda s: np.exp(100 * (s - s.max())),  # any monotone change, far into the small numbers
    ],
)
def test_scores_in_every_shape_give_the_area_of_scikit_learn(shaped):
    assert without_noise(Y, shaped(SCORE)) == pytest.approx(roc_auc_score(Y, SCORE), abs=1e-6)


@pytest.mark.parametrize("labels", [["no", "yes"], ["yes", "no"], [False, True], [-1, 1], [2, 10]])
def test_the_second_of_two_labels_in_sorted_order_is_the_positive_one(labels):
    y, is_sorted = np.array(sorted(labels))[Y], labels == sorted(labels)
    score = SCORE if is_sorted else pd.DataFrame({"yes": SCORE, "no": -SCORE})
    assert without_noise(y, score, labels=labels) == pytest.approx(roc_auc_score(y, SCORE), abs=1e-6)


@pytest.mark.parametrize("labels", [None, [0, 1, 2], [2, 0, 1]])
def test_of_several_labels_each_is_judged_against_the_rest(labels):
    expected = [roc_auc_score(k == Y3, SCORE3[:, k]) for k in range(3)]
    score = SCORE3 if labels is None else pd.DataFrame(SCORE3, columns=["0", "1", "2"])
    areas = without_noise(Y3, score, multi_class="ovr", average=None, labels=labels)
    np.testing.assert_allclose(areas, expected, atol=1e-6)
    area = without_noise(Y3, score, multi_class="ovr", labels=labels)
    assert area == pytest.approx(np.mean(expected), abs=1e-6)
    proba = np.exp(SCORE3) / np.exp(SCORE3).sum(axis=1, keepdims=True)
    expected = roc_auc_score(Y3, proba, multi_class="ovr")
    assert without_noise(Y3, proba, multi_class="ovr") == pytest.approx(expected, abs=1e-6)


def test_the_areas_of_several_labels_share_epsilon_and_each_has_noisy_sizes():
    accountant = dp.PrivacyAccountant(1.0)
    result = dp.with_result(private_roc_auc_score)(
        Y3, SCORE3, epsilon=1.0, multi_class="ovr", average=None, accountant=accountant
    )
    assert accountant.remaining == 0
    assert result.value.shape == (3,)
    assert len(result.drawn["positives"]) == 3
    assert result.to_json()


@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_one_class_alone_gives_some_number_without_a_warning(neighboring):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (np.zeros(60), np.ones(60)):
            assert 0 <= private_roc_auc_score(y, SCORE[:60], epsilon=1.0, neighboring=neighboring) <= 1
            assert without_noise(y, SCORE[:60], neighboring=neighboring) == pytest.approx(0.5, abs=1e-6)


def test_no_record_at_all_is_legal_where_their_number_is_private():
    for data in (([], []), (np.empty(0), np.empty((0, 2)))):
        area = without_noise(*data, neighboring="add_or_remove_one")
        assert area == pytest.approx(0.5, abs=1e-6)
    areas = private_roc_auc_score(
        [], [], epsilon=1.0, labels=["a", "b", "c"], multi_class="ovr", average=None,
        neighboring="add_or_remove_one",
    )  # fmt: skip
    assert areas.shape == (3,)


@pytest.fixture(scope="module")
def records():
    X, y = make_classification(n_samples=400, n_classes=2, flip_y=0.1, random_state=0)
    return X[:200], np.array(["ham", "spam"])[y[:200]], X[200:], np.array(["ham", "spam"])[y[200:]]


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(), DecisionTreeClassifier(max_depth=3)])
def test_scorers_judge_decisions_or_else_probabilities(records, model):
    X, y, X_test, y_test = records
    model = model.fit(X, y)
    scorer = dp.get_private_scorer("private_roc_auc_score", epsilon=NO_NOISE)
    score = (
        model.decision_function
        if hasattr(model, "decision_function")
        else lambda X: model.predict_proba(X)[:, 1]
    )
    assert scorer(model, X_test, y_test) == pytest.approx(roc_auc_score(y_test, score(X_test)), abs=1e-6)


def test_a_scorer_of_several_labels():
    X, y = make_classification(n_samples=300, n_classes=3, n_informative=4, random_state=0)
    model = LogisticRegression().fit(X, y)
    proba = {"response_method": "predict_proba", "multi_class": "ovr", "labels": [0, 1, 2]}
    scorer = dp.get_private_scorer("private_roc_auc_score", epsilon=NO_NOISE, **proba)
    expected = roc_auc_score(y, model.predict_proba(X), multi_class="ovr")
    assert scorer(model, X, y) == pytest.approx(expected, abs=1e-6)


def test_searches_and_cross_validations_run_and_are_counted(records):
    X, y, X_val, y_val = records
    accountant = dp.PrivacyAccountant(100)
    scorer = dp.make_private_scorer(private_roc_auc_score, epsilon=2.0, accountant=accountant)
    assert cross_val_score(LogisticRegression(), X, y, cv=3, scoring=scorer, error_score="raise").min() >= 0
    assert accountant.spent == 2.0 * dp.count_releases(3, scoring=scorer)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=scorer, cv=2, error_score="raise")
    before = accountant.spent
    count = dp.count_releases(search, X, y)
    search.fit(X, y)
    assert accountant.spent - before == 2.0 * count == 8.0
    search = dp.PrivateRandomizedSearch(
        LogisticRegression(), {"C": [0.1, 1.0]}, metric=private_roc_auc_score, epsilon=30.0, expected_iter=3
    )
    search.fit(X, y, X_val=X_val, y_val=y_val)
    assert 0.5 < search.best_score_ <= 1
