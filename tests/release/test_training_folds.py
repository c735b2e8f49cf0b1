"""Whoever cross-validates is told of the people in training folds before anything is spent."""

import warnings
from inspect import signature

import joblib
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, learning_curve

import dp_metrics as dp
from dp_metrics.exceptions import TrainingFoldsWarning
from dp_metrics.model_selection import scorers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)


class StopsEarly(LogisticRegression):
    """An estimator of somebody's own that scores in its fit."""

    def __init__(self, scoring=None):
        super().__init__()
        self.scoring = scoring

    def fit(self, X, y):
        super().fit(X, y)
        self.scoring(self, X, y)
        return self


OF_18 = {"l1_ratios": (0,), "use_legacy_attributes": False}  # of scikit-learn 1.8 and newer
PATH = OF_18 if OF_18.keys() <= signature(LogisticRegressionCV).parameters.keys() else {}
SURE = {"error_score": "raise"}
IN_WORKERS = {
    "cross_val_score": lambda **how: cross_val_score(LogisticRegression(), X, Y, cv=5, **SURE, **how),
    "grid": lambda **how: GridSearchCV(LogisticRegression(), {"C": [1, 2]}, cv=3, **SURE, **how).fit(X, Y),
    "elimination": lambda **how: RFECV(LogisticRegression(), cv=3, **how).fit(X, Y),
    "path": lambda **how: LogisticRegressionCV(Cs=2, cv=3, **PATH, **how).fit(X, Y),
}
TOOLS = {
    **IN_WORKERS,
    "learning curve": lambda scoring: learning_curve(LogisticRegression(), X, Y, scoring=scoring, **SURE),
    "leave one out": lambda scoring: RidgeCV([0.1, 1.0], scoring=scoring.set_params(metric="mse")).fit(X, Y),
    "boosting": lambda scoring: HistGradientBoostingClassifier(
        early_stopping=True, max_iter=2, scoring=scoring
    ).fit(X, Y),
    "one's own": lambda scoring: StopsEarly(scoring).fit(X, Y),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_cross_validation_warns_once_of_the_people_in_training_folds(tool):
    budget = dp.PrivacyAccountant(100)
    scoring = dp.make_private_scorer("accuracy", epsilon=0.5, accountant=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingFoldsWarning)
        with pytest.raises(TrainingFoldsWarning, match="training records get no guarantee"):
            TOOLS[tool](scoring=scoring)
        assert budget.spent == 0
        warnings.simplefilter("always", TrainingFoldsWarning)
        with pytest.warns(TrainingFoldsWarning) as caught:
            TOOLS[tool](scoring=scoring)
        assert [one.category for one in caught].count(TrainingFoldsWarning) == 1
        assert budget.spent > 0


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
@pytest.mark.parametrize("tool", IN_WORKERS)
def test_workers_warn_too_where_no_fit_is_on_the_stack(tool, backend, tmp_path, monkeypatch):
    def warn(message, category):
        raise category(message)

    if backend == "threading":  # threads share the filters of warnings: one hides the error of another
        monkeypatch.setattr(scorers, "warn_caller", warn)
    budget = dp.PrivacyAccountant(100, tmp_path / "budget.sqlite")
    scoring = dp.make_private_scorer("accuracy", epsilon=0.5, accountant=budget)
    with warnings.catch_warnings(), joblib.parallel_config(backend):
        warnings.simplefilter("error", TrainingFoldsWarning)
        with pytest.raises(TrainingFoldsWarning, match="training records get no guarantee"):
            IN_WORKERS[tool](scoring=scoring, n_jobs=2)
    assert budget.spent == 0


def test_a_fixed_model_on_held_out_records_is_not_warned_of():
    scoring = dp.make_private_scorer("accuracy", epsilon=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingFoldsWarning)
        for train, test in KFold(2).split(X):
            scoring(LogisticRegression().fit(X[train], Y[train]), X[test], Y[test])
        dp.PrivateRandomizedSearch(LogisticRegression(), {"C": [1.0]}, metric="accuracy", epsilon=1.0).fit(
            X[:60], Y[:60], X_val=X[60:], y_val=Y[60:]
        )
        fitted = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring="accuracy").fit(X, Y)
        fitted.scorer_ = scoring
        fitted.score(X, Y)  # fits nothing
