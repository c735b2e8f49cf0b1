"""The count of a plan is the number of releases that it makes; what cannot be counted is refused."""

from functools import partial

import numpy as np
import pytest
import sklearn
import xgboost
from helpers import loop_over
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    RandomizedSearchCV,
    ShuffleSplit,
    TunedThresholdClassifierCV,
    cross_validate,
)

import dp_metrics as dp

X, Y = make_regression(n_samples=60, n_features=7, random_state=0)
LABELS = (Y > 0).astype(int)
UNIFORM = {"alpha": stats.uniform(0, 1)}
ALPHAS = {"alpha": [0.1, 1.0, 10.0]}
GROUPS = np.arange(60) // 6
ONE_SPLIT = [(np.arange(30), np.arange(30, 60))]


@pytest.fixture
def accountant():
    return dp.PrivacyAccountant(1e6)


@pytest.fixture
def scorer(accountant):
    return dp.make_private_scorer("neg_private_mse", epsilon=0.1, accountant=accountant)


@pytest.fixture
def paid(accountant):
    """Return how many releases a call makes."""

    def paid(call, *data, **options):
        before = len(accountant.history)
        call(*data, **options)
        return len(accountant.history) - before

    return paid


grid = partial(GridSearchCV, Ridge(), ALPHAS)
PLANS = {
    "grid": grid,
    "grid, train scores": partial(grid, return_train_score=True, cv=3),
    "grid of two dicts": partial(GridSearchCV, Ridge(), [ALPHAS, {"solver": ["svd"]}], cv=2),
    "grid, splitter": partial(grid, cv=ShuffleSplit(4, random_state=0)),
    "grid, list of splits": partial(grid, cv=ONE_SPLIT),
    "grid, leave one out": partial(grid, cv=LeaveOneOut()),
    "random": partial(RandomizedSearchCV, Ridge(), UNIFORM, n_iter=4, cv=3),
    "random, few": partial(RandomizedSearchCV, Ridge(), ALPHAS, n_iter=2, cv=3),
    "random, fewer than asked for": partial(RandomizedSearchCV, Ridge(), ALPHAS, n_iter=10, cv=2),
    "grid, groups": partial(grid, cv=GroupKFold(5)),
    "random, groups": partial(RandomizedSearchCV, Ridge(), UNIFORM, n_iter=2, cv=GroupKFold(5)),
}


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore:The total space of parameters .* is smaller than n_iter:UserWarning")
@pytest.mark.parametrize("routing", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "routing"])
@loop_over("kind", PLANS)
def test_a_tool_makes_as_many_releases_as_were_counted(kind, routing, paid, scorer):
    groups = {"groups": GROUPS} if "groups" in kind else {}
    tool = PLANS[kind](scoring=scorer)
    with sklearn.config_context(enable_metadata_routing=routing):
        expected = dp.count_releases(tool, X, Y, **groups)
        assert paid(tool.fit, X, Y, **groups) == expected > 0
        assert dp.count_releases(tool, X, Y, **groups) == expected  # fitted or not


@pytest.mark.parametrize("cv", [None, 3, KFold(4), LeaveOneOut(), LeaveOneGroupOut(), ONE_SPLIT], ids=repr)
def test_cross_validation_makes_as_many_releases_as_were_counted(cv, paid, scorer):
    scoring = {"a": scorer, "b": clone(scorer)}
    options = {"groups": GROUPS} if isinstance(cv, LeaveOneGroupOut) else {}
    for train in (False, True):
        options["return_train_score"] = train
        expected = dp.count_releases(cv, X, Y, scoring={**scoring, "plain": "neg_max_error"}, **options)
        assert expected == dp.count_releases(cv, X, Y, scoring=2, **options)
        how = {"cv": cv, "scoring": scoring, "error_score": "raise", **options}
        assert paid(cross_validate, Ridge(), X, Y, **how) == expected


def test_nothing_is_fitted_paid_or_drawn_from_a_generator(accountant, scorer):
    class Refuses(Ridge):
        def fit(self, X, y):
            raise AssertionError

    of_search, state = np.random.RandomState(0), np.random.RandomState(0).get_state()[1]
    np.random.seed(0)  # noqa: NPY002
    for search in (
        RandomizedSearchCV(Refuses(), UNIFORM, scoring=scorer, verbose=3),
        RandomizedSearchCV(Refuses(), UNIFORM, scoring=scorer, random_state=of_search),
        GridSearchCV(Refuses(), ALPHAS, scoring=scorer, cv=ShuffleSplit(3)),
    ):
        assert dp.count_releases(search, X, Y) > 0
    dp.count_releases(ShuffleSplit(3), X, Y, estimator=Refuses(), scoring=scorer)
    assert accountant.history == ()
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.testing.assert_array_equal(of_search.get_state()[1], state)


# What is refused, because its price would not be known


def test_a_threshold_is_not_tuned_at_a_price_for_each(accountant):
    scorer = dp.make_private_scorer("private_accuracy_score", epsilon=0.1, accountant=accountant)
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=2)
    for error, call in (
        (AttributeError, lambda: tuned.fit(X, LABELS)),
        (ValueError, lambda: dp.count_releases(tuned, X, LABELS)),
        (ValueError, lambda: dp.count_releases(3, X, LABELS, estimator=tuned, scoring=scorer)),
    ):
        with pytest.raises(error, match=r"Release one private_pre|cannot be counted"):
            call()
    assert accountant.history == ()
    assert (
        dp.count_releases(3, estimator=TunedThresholdClassifierCV(LogisticRegression()), scoring=scorer) == 3
    )
    # scikit-learn may ask, and takes another way then
    assert not hasattr(scorer, "_score_func")


def xgboost_model(accountant, **options):
    metric = partial(dp.private_mae, epsilon=0.1, accountant=accountant)
    metric.__name__ = "private_mae"
    return xgboost.XGBRegressor(eval_metric=metric, disable_default_eval_metric=True, n_jobs=1, **options)


def test_xgboost_makes_a_release_in_each_round_for_each_set(accountant, paid):
    for sets in (1, 2):
        model = xgboost_model(accountant, n_estimators=5)
        assert paid(model.fit, X, Y, eval_set=[(X, Y)] * sets, verbose=False) == 5 * sets
        # nothing but the private numbers is kept
        assert [[*found] for found in model.evals_result().values()] == [["private_mae"]] * sets
    small = dp.PrivacyAccountant(0.3)
    with pytest.raises(dp.exceptions.PrivacyBudgetError, match=r"epsilon=0\.1 was asked for"):
        xgboost_model(small, n_estimators=5).fit(X, Y, eval_set=[(X, Y)], verbose=False)
    assert small.spent == 0.3


def test_an_eval_metric_is_refused_because_its_sets_are_not_known(accountant, scorer):
    model = xgboost_model(accountant)
    for call in (
        lambda: dp.count_releases(model),
        lambda: dp.count_releases(3, estimator=model, scoring=scorer),
        lambda: dp.count_releases(model.set_params(eval_metric=dp.private_mse)),
    ):
        with pytest.raises(ValueError, match="cannot be counted"):
            call()
    assert dp.count_releases(3, estimator=model.set_params(eval_metric="mae"), scoring=scorer) == 3


@pytest.mark.parametrize(
    "model", [RidgeCV(alphas=[0.1, 1.0, 2.0, 3.0]), HistGradientBoostingRegressor(early_stopping=True)]
)
def test_what_passes_errors_on_has_an_ordinary_one(model):
    accountant = dp.PrivacyAccountant(0.3)
    model = clone(model).set_params(scoring=dp.make_private_scorer("mae", epsilon=0.1, accountant=accountant))
    with pytest.warns(dp.exceptions.TrainingFoldsWarning), pytest.raises(dp.exceptions.PrivacyBudgetError):
        model.fit(X, Y)
    assert accountant.spent == 0.3
