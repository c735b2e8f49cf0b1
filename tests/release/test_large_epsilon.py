"""Whoever spends an epsilon above 10, or cross-validates, is told what it means before anything is spent."""

import warnings
from inspect import signature

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, learning_curve

import dp_metrics as dp
from dp_metrics import LargeEpsilonWarning, TrainingFoldsWarning

pytestmark = pytest.mark.usefixtures("large_epsilons_warn")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)


def frame(**settings):
    groups = {"sensitive_features": Y, "group_labels": [0, 1]}
    return dp.PrivateMetricFrame(metrics="accuracy", y_true=Y, y_pred=Y, **groups, **settings)


def search(**settings):
    found = dp.PrivateRandomizedSearch(LogisticRegression(), {"C": [1.0]}, metric="accuracy", **settings)
    return found.fit(X, Y, X_val=X, y_val=Y)


def summary(**settings):
    return dp.LossSummary("mse").update(Y, Y).release(**settings)


def scorer(**settings):
    return dp.get_private_scorer("accuracy", **settings)(LogisticRegression().fit(X, Y), X, Y)


CALLS = {
    "metric": lambda **settings: dp.private_accuracy_score(Y, Y, **settings),
    "comparison": lambda **settings: dp.private_compare(Y, Y, 1 - Y, **settings),
    "interval": lambda **settings: dp.private_mean_interval(Y, max_loss=1.0, **settings),
    "capped interval": lambda **settings: dp.private_mean_interval(Y, cap="private", **settings),
    **{call.__name__: call for call in (frame, search, summary, scorer)},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_epsilon_above_10_is_hardly_private_and_the_warning_comes_before_the_spend(call):
    budget = dp.PrivacyAccountant(100)
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
        assert len(large) == 1
        assert budget.spent == 20.5


def test_the_warning_says_no_more_of_other_records():
    with pytest.warns(LargeEpsilonWarning) as one:
        dp.private_mse(Y, Y, epsilon=1e300)
    with pytest.warns(LargeEpsilonWarning) as other:
        dp.private_mse(Y, Y + 1e9, epsilon=1e300)
    assert str(one[0].message) == str(other[0].message)
    assert one[0].filename == __file__


def cross_validate(scoring, **how):
    cross_val_score(LogisticRegression(), X, Y, cv=5, scoring=scoring, error_score="raise", **how)


def grid_search(scoring, **how):
    how = {"scoring": scoring, "cv": 3, "error_score": "raise", **how}
    GridSearchCV(LogisticRegression(), {"C": [1, 2]}, **how).fit(X, Y)


def curve(scoring):
    learning_curve(LogisticRegression(), X, Y, scoring=scoring, error_score="raise")


def elimination(scoring, **how):
    from sklearn.feature_selection import RFECV

    RFECV(LogisticRegression(), scoring=scoring, cv=3, **how).fit(X, Y)


def leave_one_out(scoring):
    RidgeCV(alphas=[0.1, 1.0], scoring=scoring.set_params(metric="mse")).fit(X, Y)


def boosting(scoring):
    from sklearn.ensemble import HistGradientBoostingClassifier

    HistGradientBoostingClassifier(early_stopping=True, max_iter=2, scoring=scoring).fit(X, Y)


class StopsEarly(LogisticRegression):
    """An estimator of somebody's own that scores in its fit."""

    def __init__(self, scoring=None):
        super().__init__()
        self.scoring = scoring

    def fit(self, X, y):
        super().fit(X, y)
        self.scoring(self, X, y)
        return self


def own(scoring):
    StopsEarly(scoring).fit(X, Y)


def path(scoring, **how):
    options = {"l1_ratios": (0,), "use_legacy_attributes": False}  # of scikit-learn 1.8 and newer
    options = options if options.keys() <= signature(LogisticRegressionCV).parameters.keys() else {}
    LogisticRegressionCV(Cs=2, scoring=scoring, cv=3, **options, **how).fit(X, Y)


@pytest.mark.parametrize(
    "tool", [cross_validate, grid_search, curve, elimination, path, leave_one_out, boosting, own]
)
def test_cross_validation_warns_once_of_the_people_in_training_folds(tool):
    budget = dp.PrivacyAccountant(100)
    scoring = dp.get_private_scorer("accuracy", epsilon=0.5, accountant=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingFoldsWarning)
        with pytest.raises(TrainingFoldsWarning, match="training records get no guarantee"):
            tool(scoring)
        assert budget.spent == 0
        warnings.simplefilter("always", TrainingFoldsWarning)
        with pytest.warns(TrainingFoldsWarning) as caught:
            tool(scoring)
        assert [one.category for one in caught].count(TrainingFoldsWarning) == 1
        assert budget.spent > 0


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
@pytest.mark.parametrize("tool", [cross_validate, grid_search, elimination, path])
def test_workers_warn_too_where_no_fit_is_on_the_stack(tool, backend, tmp_path):
    budget = dp.PrivacyAccountant(100, tmp_path / "budget.sqlite")
    scoring = dp.get_private_scorer("accuracy", epsilon=0.5, accountant=budget)
    with warnings.catch_warnings(), joblib.parallel_config(backend):
        warnings.simplefilter("error", TrainingFoldsWarning)
        with pytest.raises(TrainingFoldsWarning, match="training records get no guarantee"):
            tool(scoring, n_jobs=2)
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
