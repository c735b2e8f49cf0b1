"""The count of a plan is the number of releases that it makes."""

import functools

import numpy as np
import pytest
import sklearn
from helpers import slow_but
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dp_metrics import (
    PrivacyAccountant,
    PrivateRandomizedSearch,
    count_releases,
    get_private_scorer,
    private_mse,
)

X, Y = make_regression(n_samples=60, n_features=3, random_state=0)
X_CLASS, Y_CLASS = make_classification(
    n_samples=90, n_features=4, n_classes=3, n_informative=3, n_redundant=0, random_state=0
)
UNIFORM = {"alpha": stats.uniform(0, 1)}
ALPHAS = {"alpha": [0.1, 1.0, 10.0]}
GROUPS = np.arange(60) // 6


@pytest.fixture
def accountant():
    return PrivacyAccountant(1e6)


@pytest.fixture
def scorer(accountant):
    return get_private_scorer("neg_private_mse", epsilon=0.1, accountant=accountant)


SEARCHES = {
    "grid": functools.partial(GridSearchCV, param_grid=ALPHAS),
    "grid, train scores": functools.partial(GridSearchCV, param_grid=ALPHAS, return_train_score=True, cv=3),
    "grid of two dicts": functools.partial(GridSearchCV, param_grid=[ALPHAS, {"solver": ["svd"]}], cv=2),
    "grid, splitter": functools.partial(GridSearchCV, param_grid=ALPHAS, cv=ShuffleSplit(4, random_state=0)),
    "grid, list of splits": functools.partial(
        GridSearchCV, param_grid=ALPHAS, cv=[(np.arange(30), np.arange(30, 60))]
    ),
    "grid, leave one out": functools.partial(GridSearchCV, param_grid=ALPHAS, cv=LeaveOneOut()),
    "random": functools.partial(RandomizedSearchCV, param_distributions=UNIFORM, n_iter=4, cv=3),
    "random, few": functools.partial(RandomizedSearchCV, param_distributions=ALPHAS, n_iter=2, cv=3),
    "halving": functools.partial(HalvingGridSearchCV, param_grid=ALPHAS, cv=3),
    "halving, slow": functools.partial(
        HalvingGridSearchCV, param_grid={"alpha": list(range(1, 10))}, factor=2, min_resources=12, cv=3,
        return_train_score=False,
    ),
    "halving, aggressive": functools.partial(
        HalvingGridSearchCV, param_grid={"alpha": list(range(1, 30))}, aggressive_elimination=True, cv=2
    ),
    "halving, iterations": functools.partial(
        HalvingGridSearchCV, param_grid=ALPHAS, resource="max_iter", max_resources=90, cv=2
    ),
    "halving, random": functools.partial(
        HalvingRandomSearchCV, param_distributions=UNIFORM, random_state=0, cv=2
    ),
}  # fmt: skip


@pytest.mark.parametrize("routing", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "routing"])
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_makes_as_many_releases_as_were_counted(kind, accountant, scorer, routing):
    search = SEARCHES[kind](Ridge(), scoring=scorer, error_score="raise")
    with sklearn.config_context(enable_metadata_routing=routing):
        expected = count_releases(search, X, Y)
        assert accountant.history == ()
        search.fit(X, Y)
        assert len(accountant.history) == expected > 0
        assert count_releases(search, X, Y) == expected  # fitted or not


def test_a_random_search_on_a_small_grid_tries_fewer(accountant, scorer):
    search = RandomizedSearchCV(Ridge(), ALPHAS, n_iter=10, cv=2, scoring=scorer)
    assert count_releases(search) == 3 * 2
    with pytest.warns(UserWarning, match="smaller than n_iter"):
        search.fit(X, Y)
    assert len(accountant.history) == 3 * 2


@pytest.mark.slow
def test_halving_of_a_classifier_counts_its_classes(accountant):
    scorer = get_private_scorer("neg_private_log_loss", epsilon=0.1, accountant=accountant)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": np.logspace(-2, 2, 8)}
    search = HalvingGridSearchCV(
        model,
        grid,
        scoring=scorer,
        cv=5,
        factor=2,
        min_resources="smallest",
        random_state=0,
        error_score="raise",
    )
    expected = count_releases(search, X_CLASS, Y_CLASS)
    search.fit(X_CLASS, Y_CLASS)
    assert len(accountant.history) == expected
    assert search.n_resources_[0] == 5 * 2 * 3


def test_only_private_scorers_count(accountant, scorer):
    scoring = {"a": scorer, "b": clone(scorer), "r2": "r2"}
    search = GridSearchCV(Ridge(), ALPHAS, cv=2, scoring=scoring, refit="a", return_train_score=True)
    assert count_releases(search) == 3 * 2 * 2 * 2
    search.fit(X, Y)
    assert len(accountant.history) == 3 * 2 * 2 * 2


@pytest.mark.parametrize("routing", [False, True], ids=["", "routing"])
@pytest.mark.parametrize("kind", [GridSearchCV, HalvingGridSearchCV])
def test_a_grouped_search_makes_as_many_releases_as_were_counted(kind, accountant, scorer, routing):
    search = kind(Ridge(), ALPHAS, cv=GroupKFold(3), scoring=scorer, error_score="raise")
    with sklearn.config_context(enable_metadata_routing=routing):
        expected = count_releases(search, X, Y, groups=GROUPS)
        search.fit(X, Y, groups=GROUPS)
    assert len(accountant.history) == expected


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "cv",
    [None, 3, KFold(4), LeaveOneOut(), LeaveOneGroupOut(), [(np.arange(30), np.arange(30, 60))]],
    ids=repr,
)
def test_cross_validation_makes_as_many_releases_as_were_counted(cv, train, accountant, scorer):
    scoring = {"a": scorer, "b": clone(scorer)}
    options = {"groups": GROUPS} if isinstance(cv, LeaveOneGroupOut) else {}
    options["return_train_score"] = train
    expected = count_releases(cv, X, Y, scoring={**scoring, "plain": "neg_max_error"}, **options)
    assert expected == count_releases(cv, X, Y, scoring=2, **options)
    cross_validate(Ridge(), X, Y, cv=cv, scoring=scoring, error_score="raise", **options)
    assert len(accountant.history) == expected


def test_cross_validation_is_counted_without_data_where_these_do_not_matter():
    assert count_releases(7) == 7
    assert count_releases(KFold(4), scoring=3) == 12


@pytest.mark.parametrize(
    "sizes", [[10, 20, 30], [0.1, 0.5, 1.0], np.linspace(0.1, 1.0, 5), [0.5, 0.501, 1.0]]
)
@pytest.mark.filterwarnings("ignore:Removed duplicate entries:RuntimeWarning")
def test_a_learning_curve_makes_as_many_releases_as_were_counted(sizes, accountant, scorer):
    expected = count_releases(3, X, Y, estimator=Ridge(), scoring=scorer, train_sizes=sizes)
    learning_curve(Ridge(), X, Y, cv=3, scoring=scorer, train_sizes=sizes, error_score="raise")
    assert len(accountant.history) == expected


@pytest.mark.parametrize(
    "inner", slow_but(("grid", "halving"), ["grid", "grid, leave one out", "halving", "halving, slow"])
)
def test_nested_cross_validation_makes_as_many_releases_as_were_counted(inner, accountant, scorer):
    search = SEARCHES[inner](Ridge(), scoring=scorer, error_score="raise")
    cv = KFold(4)  # 60 = 4 * 15
    expected = count_releases(cv, X, Y, estimator=search, scoring=clone(scorer))
    cross_validate(search, X, Y, cv=cv, scoring=clone(scorer), error_score="raise")
    assert len(accountant.history) == expected


def test_nested_cross_validation_counts_private_scores_in_any_kind_of_data(accountant, scorer):
    plain = GridSearchCV(Ridge(), ALPHAS, scoring="r2", cv=2)
    assert count_releases(5, estimator=plain, scoring=scorer) == 5
    private = GridSearchCV(Ridge(), ALPHAS, scoring=scorer, cv=2)
    assert count_releases(5, estimator=private, scoring=scorer) == 5 * 3 * 2 + 5
    pandas = pytest.importorskip("pandas")
    halving = SEARCHES["halving"](Ridge(), scoring=scorer)
    as_frame = pandas.DataFrame(X), pandas.Series(Y)
    assert count_releases(3, *as_frame, estimator=halving) == count_releases(3, X, Y, estimator=halving)
    as_lists = X.tolist(), Y.tolist()
    assert count_releases(3, *as_lists, estimator=halving) == count_releases(3, X, Y, estimator=halving)


def test_a_private_search_is_one_release(accountant, scorer):
    search = PrivateRandomizedSearch(
        Ridge(), ALPHAS, metric=private_mse, epsilon=3.0, expected_iter=5, accountant=accountant
    )
    assert count_releases(search) == 1
    search.fit(X[:30], Y[:30], X_val=X[30:], y_val=Y[30:])
    assert len(accountant.history) == 1
    assert count_releases(3, X, Y, estimator=search, scoring=scorer) == 3 + 3


def test_nothing_is_fitted_or_drawn_from_a_global_generator(scorer):
    class Refuses(Ridge):
        def fit(self, X, y):
            raise AssertionError

    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for search in (
        HalvingRandomSearchCV(Refuses(), UNIFORM, scoring=scorer, verbose=3),
        GridSearchCV(Refuses(), ALPHAS, scoring=scorer, cv=ShuffleSplit(3)),
    ):
        assert count_releases(search, X, Y) > 0
    count_releases(ShuffleSplit(3), X, Y, estimator=GridSearchCV(Refuses(), ALPHAS, scoring=scorer, cv=2))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_random_state_object_is_not_used_up(scorer):
    random_state = np.random.RandomState(0)
    search = HalvingRandomSearchCV(Ridge(), UNIFORM, scoring=scorer, random_state=random_state)
    count_releases(search, X, Y)
    np.testing.assert_array_equal(random_state.get_state()[1], np.random.RandomState(0).get_state()[1])


def test_halving_over_trees_makes_as_many_releases_as_were_counted(accountant):
    scorer = get_private_scorer("neg_private_log_loss", epsilon=0.1, accountant=accountant)
    search = HalvingGridSearchCV(
        RandomForestClassifier(random_state=0), {"max_depth": [1, 2, 3, None]}, scoring=scorer, cv=2,
        resource="n_estimators", max_resources=8, factor=2, error_score="raise",
    )  # fmt: skip
    expected = count_releases(search, X_CLASS, Y_CLASS)
    search.fit(X_CLASS, Y_CLASS)
    assert len(accountant.history) == expected
