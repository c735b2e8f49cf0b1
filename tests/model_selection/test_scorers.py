"""Scorers in every tool of scikit-learn that takes one, and the ways in which they must not fail there."""

import pickle
from itertools import product

import numpy as np
import pytest
import sklearn
from cases import cases_where, valid
from helpers import seeded
from sklearn import metrics
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification, make_regression
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    LearningCurveDisplay,
    cross_validate,
    permutation_test_score,
)
from sklearn.svm import LinearSVC

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, PrivacyBudgetError, PrivateRandomizedSearch, make_private_scorer
from dp_metrics.exceptions import SearchInterrupt

NO_NOISE = 1e6
MSE = "neg_private_mse"
X, Y = make_regression(n_samples=60, n_features=3, noise=5.0, random_state=0)
X_CLASS, CODES = make_classification(n_samples=60, n_features=4, random_state=0)
LABELS = np.array(["ham", "spam"])[CODES]
RIDGE = Ridge().fit(X, Y)


@pytest.fixture
def accountant(tmp_path):
    return PrivacyAccountant(1000.0, tmp_path / "budget.sqlite")


# What a scorer is


@cases_where(lambda case: case.row.greater_is_better is not None and len(case.row.data) == 2)
def test_a_better_model_has_a_greater_score_or_a_smaller_loss(case):
    y, p = valid(case, 200)
    right = y if p.ndim == y.ndim else np.eye(p.shape[1])[y.astype(int)]
    of_others, of_right = (
        case(y, one, epsilon=NO_NOISE, random_state=seeded(), **case.bounded)
        for one in (np.roll(p, 1, axis=0), right)
    )
    assert of_others != of_right
    assert (of_right > of_others) == case.row.greater_is_better


def test_the_classes_are_those_of_the_model_whichever_a_test_set_has():
    model = LogisticRegression().fit(X_CLASS, LABELS)
    for options, rows in product(({}, {"labels": ["ham", "spam"]}), (np.full(60, True), LABELS == "ham")):
        scorer = make_private_scorer("log_loss", epsilon=NO_NOISE, **options)
        value = metrics.log_loss(LABELS[rows], model.predict_proba(X_CLASS[rows]), labels=["ham", "spam"])
        assert scorer(model, X_CLASS[rows], LABELS[rows]) == pytest.approx(-value, rel=0.01)


def test_no_decision_has_the_form_of_one():
    shapes = []

    def metric(y_true, y_pred, *, epsilon, accountant=None):
        shapes.append(y_pred.shape)
        return 0.0

    how = {"epsilon": 1.0, "greater_is_better": True, "response_method": "decision_function"}
    for classes, n in product((2, 3), (0, 1)):
        model = LinearSVC().fit(X, np.arange(60) % classes)
        dp.make_private_scorer(metric, **how)(model, X[:n], Y[:n])
    assert shapes == [(0,), (1,), (0, 3), (1, 3)]


def weighted_error(y_true, y_pred, *, epsilon, accountant=None, sample_weight=None):
    weight = np.ones(len(y_true)) if sample_weight is None else np.asarray(sample_weight)
    return dp.private_mean_loss(weight * np.abs(y_true - y_pred), epsilon=epsilon, accountant=accountant)


def test_a_metric_of_your_own_gets_weights_and_has_the_sign_and_the_response_that_you_say():
    weight, errors = np.linspace(0.0, 2.0, 60), np.abs(Y - RIDGE.predict(X))
    for greater_is_better, sign in ((True, 1), (False, -1)):
        scorer = dp.make_private_scorer(weighted_error, epsilon=NO_NOISE, greater_is_better=greater_is_better)
        assert scorer(RIDGE, X, Y) == pytest.approx(sign * errors.mean(), rel=0.01)
        expected = sign * (weight * errors).mean()
        assert scorer(RIDGE, X, Y, sample_weight=weight) == pytest.approx(expected, rel=0.01)
    model, methods = LogisticRegression().fit(X_CLASS, CODES), ["decision_function", "predict_proba"]
    scorer = dp.make_private_scorer(
        weighted_error, response_method=methods, epsilon=NO_NOISE, greater_is_better=True
    )
    expected = np.abs(CODES - model.decision_function(X_CLASS)).mean()
    assert scorer(model, X_CLASS, CODES) == pytest.approx(expected, rel=0.01)


def test_clone_and_pickle_keep_everything_and_share_the_budget(accountant):
    scorer = make_private_scorer(MSE, epsilon=0.5, accountant=accountant, bounds=(-500, 500))
    of_search = clone(GridSearchCV(RIDGE, {}, scoring=scorer)).scoring
    copies = [clone(scorer), pickle.loads(pickle.dumps(scorer)), of_search]
    for number, copy in enumerate(copies, start=1):
        assert repr(copy) == repr(scorer)
        copy(RIDGE, X, Y)
        assert accountant.spent == 0.5 * number
    assert copies[0].accountant is accountant


def test_a_learning_curve_is_drawn_for_what_it_costs(accountant):
    scorer = make_private_scorer(MSE, epsilon=1.0, accountant=accountant)
    display = LearningCurveDisplay.from_estimator(Ridge(), X, Y, scoring=scorer, train_sizes=[0.5, 1.0], cv=2)
    assert (display.score_name, accountant.spent) == ("Negative private mse", 8.0)
    assert make_private_scorer("accuracy", epsilon=1.0).__name__ == "private_accuracy_score"


def test_an_epsilon_per_call_is_refused():
    accountant = PrivacyAccountant(1.0)
    scorer = make_private_scorer(MSE, epsilon=0.5, accountant=accountant)
    with sklearn.config_context(enable_metadata_routing=True):
        for call in (
            lambda: scorer(RIDGE, X, Y, epsilon=5.0),
            lambda: scorer.set_score_request(epsilon=True),
            lambda: cross_validate(Ridge(), X, Y, scoring=scorer, params={"epsilon": 5.0}),
        ):
            with pytest.raises(TypeError, match="epsilon"):
                call()
        assert scorer.get_metadata_routing().score.requests == {"sample_weight": None}
    assert accountant.history == ()


# The tools of scikit-learn


def test_weights_are_routed_when_they_are_requested():
    seen = []

    def metric(y_true, y_pred, *, epsilon, accountant=None, sample_weight=None):
        seen.append(sample_weight)
        return 1.0

    with sklearn.config_context(enable_metadata_routing=True):
        model = Ridge().set_fit_request(sample_weight=False)
        scorer = dp.make_private_scorer(metric, epsilon=1.0, greater_is_better=True)
        scorer = scorer.set_score_request(sample_weight=True)
        for scoring in (scorer, {"a": scorer, "b": clone(scorer)}):
            cross_validate(model, X, Y, scoring=scoring, params={"sample_weight": np.arange(60.0)}, cv=3)
            search = GridSearchCV(model, {"alpha": [1.0]}, scoring=scoring, refit=False, cv=3)
            search.fit(X, Y, sample_weight=np.arange(60.0))
    calls = 2 * (1 + 2)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.repeat(np.arange(60.0), calls))


# Mistakes of others


class Holdout(Ridge):
    """Chooses nothing, but pays for a private search in each fit."""

    def __init__(self, budget=None, alpha=1.0):
        super().__init__(alpha)
        self.budget = budget

    def fit(self, X, y):
        PrivateRandomizedSearch(
            Ridge(), {}, metric="mae", epsilon=0.1, expected_iter=1, accountant=self.budget
        ).fit(X, y, X_val=X, y_val=y)
        return super().fit(X, y)


class Trainer(BaseEstimator):
    """Judges itself while it is fitted, as early stopping does."""

    def __init__(self, budget=None, alpha=1.0):
        self.budget, self.alpha = budget, alpha

    def fit(self, X, y):
        dp.private_mae(y, y, epsilon=0.1, accountant=self.budget)
        return self


@pytest.mark.parametrize(
    ("kind", "n_jobs"),
    [
        *((kind, 1) for kind in ("scorer", "several", "scorer of scikit-learn's", "search", "fit")),
        pytest.param("several", 2, marks=(pytest.mark.slow, pytest.mark.sample)),
        pytest.param("search", 2, marks=pytest.mark.slow),
    ],
)
def test_a_budget_that_ends_stops_every_tool(accountant, tmp_path, kind, n_jobs):
    """scikit-learn makes NaN of any other exception, and goes on to the best of what is left."""
    budget = PrivacyAccountant(0.4, tmp_path / "small.sqlite")
    model, scoring = Ridge(), make_private_scorer("neg_private_mae", epsilon=0.1, accountant=budget)
    if kind == "several":
        scoring = {"a": scoring, "b": scoring}
    if kind == "scorer of scikit-learn's":
        scoring = metrics.make_scorer(dp.private_mae, epsilon=0.1, accountant=budget, greater_is_better=False)
    if kind in ("search", "fit"):
        model, scoring = (Holdout(budget), "r2") if kind == "search" else (Trainer(budget), lambda *_: 0.0)
    grid = {"alpha": [0.1, 0.2, 0.3]}
    for spend in (
        lambda: GridSearchCV(model, grid, cv=3, scoring=scoring, n_jobs=n_jobs, refit=False).fit(X, Y),
        lambda: cross_validate(model, X, Y, cv=6, scoring=scoring, n_jobs=n_jobs),
    ):
        with pytest.raises(SearchInterrupt, match=r"^epsilon=0\.1 was asked for, but 0\.4 of the") as stopped:
            spend()
        assert not isinstance(stopped.value, Exception)
        assert budget.spent == 0.4


def test_a_direct_call_that_is_too_dear_is_an_ordinary_error():
    budget = PrivacyAccountant(0.05)
    scorer = make_private_scorer(MSE, epsilon=0.2, accountant=budget)
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=make_private_scorer(MSE, epsilon=1.0)).fit(X, Y)
    search.scorer_.accountant = budget
    for call in (
        lambda: scorer(search, X, Y),
        lambda: search.score(X, Y),  # of a model that is fitted
        lambda: Holdout(budget).fit(X, Y),
        lambda: Trainer(budget).fit(X, Y),
    ):
        with pytest.raises(PrivacyBudgetError, match=r"but 0\.0 of the total of 0\.05 is spent"):
            call()
    assert budget.history == ()


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_shuffled_records_are_not_scored(n_jobs, accountant):
    scorer = make_private_scorer(MSE, epsilon=0.1, accountant=accountant)
    for tool, scoring in (
        (permutation_test_score, scorer),
        (permutation_importance, scorer),
        (permutation_importance, {"a": scorer}),
    ):
        with pytest.raises(ValueError, match="would cost twice what is charged"):
            tool(RIDGE, X, Y, scoring=scoring, n_jobs=n_jobs)
    assert accountant.history == ()
