"""Tools that score while they are fitted: counted by what they really call, or refused with the reason."""

import functools
import importlib.util

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneOut,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)

from dp_metrics import PrivacyAccountant, count_releases, get_private_scorer, private_mae, private_mse
from dp_metrics.exceptions import PrivacyBudgetError, TrainingFoldsWarning

X, Y = make_regression(n_samples=60, n_features=7, random_state=0)
LABELS = (Y > 0).astype(int)
GROUPS = np.arange(60) // 6


@pytest.fixture
def accountant():
    return PrivacyAccountant(1e6)


@pytest.fixture
def scorer(accountant):
    return get_private_scorer("neg_private_mse", epsilon=0.1, accountant=accountant)


SELECTORS = {
    "elimination": functools.partial(RFECV, cv=3),
    "elimination by 2": functools.partial(RFECV, step=2, cv=3),
    "elimination by 3, at least 2": functools.partial(RFECV, step=3, min_features_to_select=2, cv=2),
    "elimination by more than all": functools.partial(RFECV, step=20, cv=2),
    "elimination of a third": functools.partial(RFECV, step=0.34, min_features_to_select=2, cv=2),
    "elimination of very few": functools.partial(RFECV, step=0.01, cv=2),
    "elimination of none": functools.partial(RFECV, min_features_to_select=7, cv=2),
    "elimination, leave one out": functools.partial(RFECV, step=6, cv=LeaveOneOut()),
    "elimination, default folds": functools.partial(RFECV, step=4),
    "forward 2": functools.partial(SequentialFeatureSelector, n_features_to_select=2, cv=3),
    "backward 2": functools.partial(
        SequentialFeatureSelector, n_features_to_select=2, direction="backward", cv=2
    ),
    "forward half": functools.partial(SequentialFeatureSelector, n_features_to_select=0.5, cv=2),
    "backward half": functools.partial(
        SequentialFeatureSelector, n_features_to_select=0.5, direction="backward", cv=2
    ),
    "forward auto": functools.partial(SequentialFeatureSelector, cv=2),
    "backward auto": functools.partial(SequentialFeatureSelector, direction="backward", cv=2),
}


@pytest.mark.parametrize("kind", SELECTORS)
def test_a_selection_of_features_makes_as_many_releases_as_were_counted(kind, accountant, scorer):
    selector = SELECTORS[kind](Ridge(), scoring=scorer)
    expected = count_releases(selector, X, Y)
    assert accountant.history == ()
    selector.fit(X, Y)
    assert len(accountant.history) == expected > 0
    assert count_releases(selector, X, Y) == expected  # fitted or not


def test_an_elimination_that_keeps_more_features_than_there_are_scores_them_once(accountant, scorer):
    selector = RFECV(Ridge(), min_features_to_select=9, scoring=scorer, cv=2)
    assert count_releases(selector, X, Y) == 2
    with pytest.warns(UserWarning, match="min_features_to_select=9"):
        selector.fit(X, Y)
    assert len(accountant.history) == 2


def test_groups_split_an_elimination(accountant, scorer):
    selector = RFECV(Ridge(), step=3, cv=GroupKFold(5), scoring=scorer)
    expected = count_releases(selector, X, Y, groups=GROUPS)
    selector.fit(X, Y, groups=GROUPS)
    assert len(accountant.history) == expected == 5 * 3


def test_a_selection_with_a_tolerance_makes_at_most_as_many(accountant, scorer):
    selector = SequentialFeatureSelector(Ridge(), tol=1e9, scoring=scorer, cv=2)
    most = count_releases(selector, X, Y)
    assert most == 2 * sum(range(2, 8))
    selector.fit(X, Y)
    assert 0 < len(accountant.history) < most


@pytest.mark.parametrize(
    "kind", ["elimination by 2", pytest.param("elimination, leave one out", marks=pytest.mark.slow)]
)
def test_a_nested_selection_makes_as_many_releases_as_were_counted(kind, accountant, scorer):
    selector = SELECTORS[kind](Ridge(), scoring=scorer)
    options = {"scoring": clone(scorer), "return_train_score": True}
    expected = count_releases(4, X, Y, estimator=selector, **options)
    cross_validate(selector, X, Y, cv=4, error_score="raise", **options)
    assert len(accountant.history) == expected


LIKE_ALWAYS = ("never", "without validation", "few records")
BOOSTING = {
    "never": {"early_stopping": False},
    "always": {"early_stopping": True},
    "without validation": {"early_stopping": True, "validation_fraction": None},
    "few records": {"early_stopping": "auto"},
}


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize(
    "kind", ["always", *(pytest.param(kind, marks=pytest.mark.slow) for kind in LIKE_ALWAYS)]
)
def test_boosting_makes_as_many_releases_as_were_counted(kind, classes, accountant, scorer):
    options = {"max_iter": 6, "n_iter_no_change": 10, "scoring": scorer, **BOOSTING[kind]}
    model = HistGradientBoostingRegressor(**options)
    if classes:
        scoring = get_private_scorer("private_accuracy_score", epsilon=0.1, accountant=accountant)
        model = HistGradientBoostingClassifier(**{**options, "scoring": scoring})
    y = LABELS if classes else Y
    expected = count_releases(model, X, y)
    model.fit(X, y)
    assert len(accountant.history) == expected == {"always": 14, "without validation": 7}.get(kind, 0)


@pytest.mark.slow
def test_boosting_of_many_records_stops_early_by_default(accountant, scorer):
    many = np.arange(20_002.0).reshape(-1, 2) % 17
    model = HistGradientBoostingRegressor(max_iter=2, scoring=scorer)
    expected = count_releases(model, many)
    assert expected == 6
    assert count_releases(model, many[:10_000]) == 0
    model.fit(many, many[:, 0])
    assert len(accountant.history) == expected
    with pytest.raises(ValueError, match="X is needed"):
        count_releases(model)


def test_boosting_that_stops_makes_fewer_releases(accountant, scorer):
    model = HistGradientBoostingRegressor(
        max_iter=50, n_iter_no_change=1, tol=1e9, early_stopping=True, scoring=scorer
    )
    model.fit(X, Y)
    assert 0 < len(accountant.history) < count_releases(model, X, Y) == 102


@pytest.mark.slow
def test_nested_boosting_makes_as_many_releases_as_were_counted(accountant, scorer):
    model = HistGradientBoostingRegressor(
        max_iter=4, n_iter_no_change=10, early_stopping=True, scoring=scorer
    )
    expected = count_releases(3, X, Y, estimator=model, scoring=scorer)
    cross_val_score(model, X, Y, cv=3, scoring=scorer, error_score="raise")
    assert len(accountant.history) == expected == 3 * (10 + 1)


def test_a_threshold_is_not_tuned_at_a_price_for_each(accountant):
    scorer = get_private_scorer("private_accuracy_score", epsilon=0.1, accountant=accountant)
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=2)
    with pytest.raises(AttributeError, match="Release one ScoreSummary"):
        tuned.fit(X, LABELS)
    assert accountant.history == ()
    with pytest.raises(ValueError, match="Release one ScoreSummary"):
        count_releases(tuned, X, LABELS)
    with pytest.raises(ValueError, match="Release one ScoreSummary"):
        count_releases(3, X, LABELS, estimator=tuned, scoring=scorer)
    assert count_releases(3, estimator=TunedThresholdClassifierCV(LogisticRegression()), scoring=scorer) == 3
    # scikit-learn may ask, and takes another way then
    assert not hasattr(scorer, "_score_func")


@pytest.mark.skipif(
    importlib.util.find_spec("sklearn.callback") is None, reason="this scikit-learn has no callbacks"
)
@pytest.mark.parametrize("nested", [False, True])
def test_callbacks_that_score_are_refused(nested, accountant):
    from sklearn.callback import ScoringMonitor

    scorer = get_private_scorer("private_accuracy_score", epsilon=0.1, accountant=accountant)
    records, labels = make_classification(n_samples=60, n_features=4, random_state=0)
    model = LogisticRegression().set_callbacks(ScoringMonitor(scoring={"accuracy": scorer}))
    plain = LogisticRegression().set_callbacks(ScoringMonitor(scoring={"accuracy": "accuracy"}))
    if nested:
        search = GridSearchCV(model, {"C": [1.0]}, scoring=scorer)
        with pytest.raises(ValueError, match="of its own in every fit"):
            count_releases(search)
        assert count_releases(GridSearchCV(plain, {"C": [1.0]}, scoring=scorer, cv=3)) == 3
        return
    for call in (lambda: count_releases(model), lambda: count_releases(3, estimator=model, scoring=scorer)):
        with pytest.raises(ValueError, match="A callback scores after every iteration"):
            call()
    assert count_releases(3, estimator=plain, scoring=scorer) == 3
    model.fit(records, labels)
    assert len(accountant.history) > 1  # what they would have cost


def xgboost_model(accountant, **options):
    xgboost = pytest.importorskip("xgboost")
    metric = functools.partial(private_mae, epsilon=0.1, accountant=accountant)
    metric.__name__ = "private_mae"
    return xgboost.XGBRegressor(eval_metric=metric, disable_default_eval_metric=True, n_jobs=1, **options)


@pytest.mark.parametrize("sets", [1, 2])
def test_xgboost_makes_a_release_in_each_round_for_each_set(accountant, sets):
    model = xgboost_model(accountant, n_estimators=5)
    model.fit(X, Y, eval_set=[(X, Y)] * sets, verbose=False)
    assert len(accountant.history) == 5 * sets
    # nothing but the private numbers is kept
    assert [list(found) for found in model.evals_result().values()] == [["private_mae"]] * sets


def test_xgboost_that_stops_early_makes_fewer_releases(accountant):
    model = xgboost_model(accountant, n_estimators=500, early_stopping_rounds=1)
    model.fit(X, Y, eval_set=[(X, Y)], verbose=False)
    assert 1 < len(accountant.history) < 500


def test_a_budget_that_is_exhausted_ends_the_fit_of_xgboost():
    accountant = PrivacyAccountant(0.3)
    with pytest.raises(PrivacyBudgetError, match=r"epsilon=0\.1 was asked for"):
        xgboost_model(accountant, n_estimators=5).fit(X, Y, eval_set=[(X, Y)], verbose=False)
    assert accountant.spent == 0.3


@pytest.mark.parametrize(
    "model",
    [RidgeCV(alphas=[0.1, 1.0, 2.0, 3.0]), HistGradientBoostingRegressor(early_stopping=True)],
)
def test_what_passes_errors_on_has_an_ordinary_one(model):
    accountant = PrivacyAccountant(0.3)
    model = clone(model).set_params(scoring=get_private_scorer("mae", epsilon=0.1, accountant=accountant))
    with pytest.warns(TrainingFoldsWarning), pytest.raises(PrivacyBudgetError):
        model.fit(X, Y)
    assert accountant.spent == 0.3


def test_an_eval_metric_is_refused_because_its_sets_are_not_known(accountant, scorer):
    model = xgboost_model(accountant)
    for call in (lambda: count_releases(model), lambda: count_releases(3, estimator=model, scoring=scorer)):
        with pytest.raises(ValueError, match="eval_metric makes a release in each round for each set"):
            call()
    model.set_params(eval_metric=private_mse)
    with pytest.raises(ValueError, match="eval_metric"):
        count_releases(model)
    assert count_releases(3, estimator=model.set_params(eval_metric="mae"), scoring=scorer) == 3
