"""Whoever spends an epsilon above 10, or cross-validates, is told what it means before anything is spent."""

import warnings
from inspect import signature

import joblib
import numpy as np
import pytest
from helpers import loop_over
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, learning_curve

import dp_metrics as dp
from dp_metrics import LargeEpsilonWarning, TrainingFoldsWarning

pytestmark = pytest.mark.usefixtures("large_epsilons_warn")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
FITTED = LogisticRegression().fit(X, Y)


CALLS = {
    "metric": lambda **settings: dp.private_accuracy_score(Y, Y, **settings),
    "comparison": lambda **settings: dp.private_compare(Y, Y, 1 - Y, **settings),
    "interval": lambda **settings: dp.private_mean_interval(Y, max_loss=1.0, **settings),
    "capped interval": lambda **settings: dp.private_mean_interval(Y, cap="private", **settings),
    "frame": lambda **settings: dp.PrivateMetricFrame(
        metrics="accuracy", y_true=Y, y_pred=Y, sensitive_features=Y, group_labels=[0, 1], **settings
    ),
    "search": lambda **settings: dp.PrivateRandomizedSearch(
        LogisticRegression(), {"C": [1.0]}, metric="accuracy", **settings
    ).fit(X, Y, X_val=X, y_val=Y),
    "summary": lambda **settings: dp.LossSummary("mse").update(Y, Y).release(**settings),
    "scorer": lambda **settings: dp.get_private_scorer("accuracy", **settings)(FITTED, X, Y),
}


@loop_over("door", CALLS)
def test_an_epsilon_above_10_is_hardly_private_and_the_warning_comes_before_the_spend(door):
    call, budget = CALLS[door], dp.PrivacyAccountant(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", LargeEpsilonWarning)
        call(epsilon=10.0, accountant=budget)  # the last that is not warned of
        assert budget.spent == 10
        with pytest.raises(LargeEpsilonWarning, match=r"epsilon=10.5 is hardly private: .* 99.99 % sure"):
            call(epsilon=10.5, accountant=budget)
        assert budget.spent == 10
        warnings.simplefilter("always", LargeEpsilonWarning)
        with pytest.warns(LargeEpsilonWarning) as caught:
            call(epsilon=10.5, accountant=budget)
        large = [one for one in caught if one.category is LargeEpsilonWarning]
        assert [one.filename for one in large] == [__file__]
        assert budget.spent == 20.5


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
    scoring = dp.get_private_scorer("accuracy", epsilon=0.5, accountant=budget)
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
def test_workers_warn_too_where_no_fit_is_on_the_stack(tool, backend, tmp_path):
    budget = dp.PrivacyAccountant(100, tmp_path / "budget.sqlite")
    scoring = dp.get_private_scorer("accuracy", epsilon=0.5, accountant=budget)
    with warnings.catch_warnings(), joblib.parallel_config(backend):
        warnings.simplefilter("error", TrainingFoldsWarning)
        with pytest.raises(TrainingFoldsWarning, match="training records get no guarantee"):
            IN_WORKERS[tool](scoring=scoring, n_jobs=2)
    assert budget.spent == 0


def test_a_fixed_model_on_held_out_records_is_not_warned_of():
    scoring = dp.get_private_scorer("accuracy", epsilon=0.5)
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
