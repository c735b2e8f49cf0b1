"""Scorers in every tool of scikit-learn that takes one, and the ways in which they must not fail there."""

import dataclasses
import functools
import inspect
import math
import multiprocessing
import os
import pickle
import sqlite3
import sys

import joblib
import numpy as np
import pytest
import sklearn
from helpers import kind_of
from sklearn import metrics
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_metrics
from dp_metrics import (
    Hazard,
    PrivacyAccountant,
    PrivacyBudgetError,
    PrivateRandomizedSearch,
    get_private_scorer,
    get_private_scorer_names,
    make_private_scorer,
    private_mae,
    private_mean_loss,
    private_mse,
)
from dp_metrics.accounting import ledgers as _ledgers
from dp_metrics.exceptions import SearchStopped
from dp_metrics.metrics import FUNCTIONS, METRICS, NAMES, metric_of

NO_NOISE = 1e6


@dataclasses.dataclass(frozen=True)
class Observed(Hazard):
    """The default mechanism, with a record of what it was asked to release."""

    seen = []  # noqa: RUF012

    def release(self, output_bounds, epsilon, rng=None):
        self.seen.append((output_bounds, epsilon))
        return super().release(output_bounds, epsilon, rng)


OF_COUNTS = [FUNCTIONS[name] for name, row in METRICS.items() if row.mechanism is None]
IN_MEMORY = "cannot be pickled, because every process would spend the whole budget again; pass path="


def weighted_error(y_true, y_pred, *, epsilon, accountant=None, sample_weight=None):
    weight = np.ones(len(y_true)) if sample_weight is None else np.asarray(sample_weight)
    return private_mean_loss(weight * np.abs(y_true - y_pred), epsilon=epsilon, accountant=accountant)


@pytest.fixture(scope="module")
def regression():
    X, y = make_regression(n_samples=60, n_features=3, noise=5.0, random_state=0)
    return Ridge(), X, y, "neg_private_mse"


@pytest.fixture(scope="module")
def classification():
    X, y = make_classification(n_samples=60, n_features=4, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return model, X, np.array(["ham", "spam"])[y], "neg_private_log_loss"


@pytest.fixture(params=["regression", pytest.param("classification", marks=pytest.mark.slow)])
def problem(request):
    """Return a model, its data and the name of a scorer: numbers, or a pipeline and string labels."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def accountant(tmp_path):
    return PrivacyAccountant(1000.0, tmp_path / "budget.sqlite")


# What a scorer is


@pytest.mark.parametrize(
    ("name", "private", "exact"),
    [
        ("neg_private_mse", private_mse, metrics.mean_squared_error),
        ("neg_private_mae", private_mae, metrics.mean_absolute_error),
    ],
)
def test_a_loss_is_negated(regression, name, private, exact):
    model, X, y, _ = regression
    model = clone(model).fit(X, y)
    value = exact(y, model.predict(X))
    for scorer in (
        get_private_scorer(name, epsilon=NO_NOISE),
        make_private_scorer(private, epsilon=NO_NOISE),
    ):
        score = scorer(model, X, y)
        assert type(score) is float
        assert score == pytest.approx(-value, rel=0.01)


@pytest.mark.parametrize("given", [None, ["ham", "spam"]])
def test_log_loss_knows_the_classes_of_the_model(classification, given):
    model, X, y, name = classification
    model = clone(model).fit(X, y)
    value = metrics.log_loss(y, model.predict_proba(X))
    options = {} if given is None else {"labels": given}
    scorer = get_private_scorer(name, epsilon=NO_NOISE, **options)
    assert scorer(model, X, y) == pytest.approx(-value, rel=0.01)
    # a test set without one of them changes nothing
    few = y == "ham"
    value = metrics.log_loss(y[few], model.predict_proba(X[few]), labels=["ham", "spam"])
    assert scorer(model, X[few], y[few]) == pytest.approx(-value, rel=0.01)


class Single(LogisticRegression):
    """A model whose probabilities are of single precision."""

    def predict_proba(self, X):
        return super().predict_proba(X).astype(np.float32)


LABELS_OF_THREE = {"labels": ["eggs", "ham", "spam"]}
OVER_LABELS = {
    "private_balanced_accuracy_score",
    "private_cohen_kappa_score",
    "private_matthews_corrcoef",
}


def ready_made(name, labels, **options):
    """Return a scorer by name, with labels where it needs them."""
    return get_private_scorer(name, **({"labels": labels} if name in OVER_LABELS else {}), **options)


def problems_of(name):
    """Return a fitted model and its data for a scorer by name."""
    X, y = make_classification(n_samples=60, n_features=4, random_state=0)
    classes = not NAMES[name].__module__.endswith(("regression_errors", "other_losses"))
    model = Single() if classes else LinearRegression()
    return model.fit(X, y), X, y


@pytest.mark.parametrize(
    "name",
    [n for n in get_private_scorer_names() if "neighboring" in inspect.signature(NAMES[n]).parameters],
)
def test_no_record_is_scored_like_any_other_set_where_their_number_is_private(name):
    model, X, y = problems_of(name)
    if isinstance(model, LinearRegression):
        model.coef_, model.intercept_ = 0 * model.coef_, 1.0  # positive, for those that need it
    if NAMES[name] in OF_COUNTS:  # whose laws tests/release/test_tables.py compares
        scorer = ready_made(name, [0, 1], epsilon=1.0, neighboring="add_or_remove_one")
        assert all(math.isfinite(scorer(model, X[:n], y[:n])) for n in (0, 1))
        return
    # hazard's grid is that of the cap, and takes nothing from the records if its resolution is given
    scorer = ready_made(
        name, [0, 1], epsilon=1.0, neighboring="add_or_remove_one", mechanism=Observed(resolution=0.5)
    )
    laws, grids = [], []
    for n in (0, 1):
        assert np.isfinite(scorer(model, X[:n], y[:n]))
        output_bounds, epsilon = Observed.seen[-1]
        law = Hazard(resolution=0.5).output_distribution(output_bounds, epsilon)
        grids.append(law.grid)
        laws.append(np.diff(law.index_cdf(np.arange(law.grid.first, law.grid.last + 1)), prepend=0.0))
    assert grids[0] == grids[1]
    seen = (laws[0] > 0) | (laws[1] > 0)  # far from the value a probability underflows
    with np.errstate(divide="ignore"):
        assert np.abs(np.log(laws[0][seen]) - np.log(laws[1][seen])).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("name", get_private_scorer_names())
def test_no_record_is_refused_where_their_number_is_public(name, accountant):
    model, X, y = problems_of(name)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ready_made(name, [0, 1], epsilon=1.0, accountant=accountant)(model, X[:0], y[:0])
    assert accountant.history == ()


def test_a_model_of_several_outputs_or_of_decisions_scores_no_record():
    X, y = make_regression(n_samples=30, n_features=3, n_targets=2, random_state=0)
    options = {"epsilon": 1.0, "neighboring": "add_or_remove_one"}
    assert np.isfinite(get_private_scorer("neg_private_mae", **options)(Ridge().fit(X, y), X[:0], y[:0]))
    shapes = []

    def metric(y_true, y_pred, *, epsilon, accountant=None):
        shapes.append(y_pred.shape)
        return 0.0

    for classes in (2, 3):
        model = LinearSVC().fit(X, np.arange(30) % classes)
        for n in (0, 1):
            make_private_scorer(
                metric, epsilon=1.0, greater_is_better=True, response_method="decision_function"
            )(model, X[:n], y[:n])
    assert shapes == [(0,), (1,), (0, 3), (1, 3)]


def test_settings_of_the_metric_reach_it(regression):
    model, X, y, _ = regression
    model = clone(model).fit(X, y)
    scorer = get_private_scorer("neg_private_mae", epsilon=NO_NOISE, bounds=(0.0, 1.0), mechanism="laplace")
    exact = np.abs(np.clip(y, 0, 1) - np.clip(model.predict(X), 0, 1)).mean()
    assert scorer(model, X, y) == pytest.approx(-exact, abs=1e-3)
    partial = make_private_scorer(functools.partial(private_mae, bounds=(0.0, 1.0)), epsilon=NO_NOISE)
    assert partial(model, X, y) == pytest.approx(-exact, rel=0.01, abs=1e-3)


def test_of_a_metric_of_your_own_you_say_whether_greater_is_better(regression):
    model, X, y, _ = regression
    model = clone(model).fit(X, y)
    scorer = make_private_scorer(weighted_error, epsilon=NO_NOISE, greater_is_better=True)
    assert scorer(model, X, y) == pytest.approx(np.abs(y - model.predict(X)).mean(), rel=0.01)


def test_the_response_is_what_was_asked_for(classification):
    model, X, y, _ = classification
    codes = (y == "spam").astype(float)

    def squared(y_true, y_pred, *, epsilon, accountant=None):
        assert y_pred.ndim == 1
        return private_mean_loss((y_true - y_pred) ** 2, epsilon=epsilon, accountant=accountant)

    methods = ["decision_function", "predict_proba"]
    options = {"epsilon": NO_NOISE, "greater_is_better": False}
    scorer = make_private_scorer(squared, response_method=methods, **options)
    model = clone(model).fit(X, y)
    assert scorer(model, X, codes) == pytest.approx(
        -np.square(codes - model.decision_function(X)).mean(), rel=0.01
    )


def test_only_metrics_that_judge_a_model_have_scorers():
    names = get_private_scorer_names()
    assert names == sorted(names)
    assert set(names) >= {"neg_private_mse", "neg_private_mae", "neg_private_log_loss", "private_r2_score"}


@pytest.mark.parametrize("name", get_private_scorer_names())
def test_every_ready_made_scorer_prefers_the_better_model(name):
    assert name.removeprefix("neg_") in dp_metrics.__all__
    scorer = ready_made(name, ["ham", "spam"], epsilon=NO_NOISE)
    row = metric_of(scorer.metric)
    if kind_of(row) == "confusion" and "pos_label" in row.options:
        # the constant model finds all that are not spam
        pos_label = "ham" if name == "private_specificity_score" else "spam"
        scorer = get_private_scorer(name, epsilon=NO_NOISE, pos_label=pos_label)
    if "k" in row.options:  # of two labels
        scorer = get_private_scorer(name, epsilon=NO_NOISE, k=1)
    if row.predicts_labels or not {"y_proba", "y_score"}.isdisjoint(row.data):
        X, y = make_classification(n_samples=200, random_state=0)
        y = np.array(["ham", "spam"])[y]
        good, bad = (
            LogisticRegression().fit(X, y),
            DummyClassifier(strategy="constant", constant="ham").fit(X, y),
        )
    else:
        X, y = make_regression(n_samples=200, n_features=3, random_state=0)
        y = np.exp(y / 100)
        good, bad = KNeighborsRegressor(2).fit(X, y), DummyRegressor().fit(X, y)
    assert scorer(good, X, y) > scorer(bad, X, y)


def test_repr_says_that_epsilon_is_paid_per_call():
    assert repr(get_private_scorer("neg_private_mse", epsilon=0.5)) == (
        "PrivateScorer(private_mse, epsilon per call=0.5)"
    )
    accountant = PrivacyAccountant(2.0)
    text = repr(get_private_scorer("neg_private_mae", epsilon=1, accountant=accountant, bounds=(0, 1)))
    assert text == f"PrivateScorer(private_mae, epsilon per call=1, bounds=(0, 1), accountant={accountant!r})"


def test_clone_and_pickle_keep_everything_and_share_the_budget(regression, accountant):
    model, X, y, name = regression
    model = clone(model).fit(X, y)
    scorer = get_private_scorer(name, epsilon=0.5, accountant=accountant, bounds=(-500, 500))
    copies = [
        clone(scorer),
        pickle.loads(pickle.dumps(scorer)),
        clone(GridSearchCV(model, {}, scoring=scorer)).scoring,
    ]
    for number, copy in enumerate(copies, start=1):
        assert repr(copy) == repr(scorer)
        copy(model, X, y)
        assert accountant.spent == 0.5 * number
    assert copies[0].accountant is accountant


# Bad input


def test_an_epsilon_per_call_is_refused(regression):
    model, X, y, name = regression
    accountant = PrivacyAccountant(1.0)
    scorer = get_private_scorer(name, epsilon=0.5, accountant=accountant)
    with pytest.raises(TypeError, match="epsilon"):
        scorer(clone(model).fit(X, y), X, y, epsilon=5.0)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(TypeError, match="epsilon"):
            scorer.set_score_request(epsilon=True)
        with pytest.raises(TypeError, match="epsilon"):
            cross_validate(model, X, y, scoring=scorer, params={"epsilon": 5.0})
        assert scorer.get_metadata_routing().score.requests == {"sample_weight": None}
    assert accountant.history == ()


# Weights


def test_weights_reach_a_metric_that_takes_them(regression):
    model, X, y, _ = regression
    model = clone(model).fit(X, y)
    weight = np.linspace(0.0, 2.0, len(y))
    scorer = make_private_scorer(weighted_error, epsilon=NO_NOISE, greater_is_better=False)
    expected = -(weight * np.abs(y - model.predict(X))).mean()
    assert scorer(model, X, y, sample_weight=weight) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("several", [False, True])
def test_weights_are_routed_when_they_are_requested(regression, several):
    _, X, y, _ = regression
    seen = []

    def metric(y_true, y_pred, *, epsilon, accountant=None, sample_weight=None):
        seen.append(sample_weight)
        return 1.0

    with sklearn.config_context(enable_metadata_routing=True):
        model = Ridge().set_fit_request(sample_weight=False)
        scorer = make_private_scorer(metric, epsilon=1.0, greater_is_better=True)
        scorer = scorer.set_score_request(sample_weight=True)
        scoring = {"a": scorer, "b": clone(scorer)} if several else scorer
        cross_validate(model, X, y, scoring=scoring, params={"sample_weight": np.arange(60.0)}, cv=3)
        search = GridSearchCV(model, {"alpha": [1.0]}, scoring=scoring, refit=False, cv=3)
        search.fit(X, y, sample_weight=np.arange(60.0))
    calls = 2 if several else 1
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.repeat(np.arange(60.0), 2 * calls))


# The tools of scikit-learn


def _cross_val_score(model, X, y, scorer, n_jobs):
    return cross_val_score(model, X, y, cv=3, scoring=scorer, n_jobs=n_jobs, error_score="raise"), 3


def _cross_validate(model, X, y, scorer, n_jobs):
    scoring = {
        "one": scorer,
        "two": clone(scorer),
        "plain": "r2" if y.dtype.kind == "f" else "accuracy",
    }
    found = cross_validate(
        model, X, y, cv=3, scoring=scoring, n_jobs=n_jobs, return_train_score=True, error_score="raise"
    )
    return [found[f"{part}_{name}"] for part in ("test", "train") for name in scoring], 3 * 2 * 2


def _grid(model):
    name = next(name for name in model.get_params() if name.split("__")[-1] in ("alpha", "C"))
    return {name: [0.01, 0.1, 1.0, 10.0]}


def _search(kind, count, **options):
    def run(model, X, y, scorer, n_jobs):
        search = kind(
            model, _grid(model), scoring=scorer, cv=3, n_jobs=n_jobs, error_score="raise", **options
        )
        search.fit(X, y)
        assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]
        assert search.score(X, y) < 0  # one more release
        return search.cv_results_["mean_test_score"], count + 1

    return run


def _learning_curve(model, X, y, scorer, n_jobs):
    _, train, test = learning_curve(
        model, X, y, train_sizes=[20, 40], cv=3, scoring=scorer, n_jobs=n_jobs, error_score="raise"
    )
    return [train, test], 2 * 3 * 2


def _nested(model, X, y, scorer, n_jobs):
    search = GridSearchCV(model, _grid(model), scoring=scorer, cv=2, error_score="raise")
    scores = cross_val_score(search, X, y, cv=3, scoring=clone(scorer), n_jobs=n_jobs, error_score="raise")
    return scores, 3 * (4 * 2 + 1)


TOOLS = {
    "cross_val_score": _cross_val_score,
    "cross_validate": _cross_validate,
    "GridSearchCV": _search(GridSearchCV, 4 * 3),
    "RandomizedSearchCV": _search(RandomizedSearchCV, 2 * 3, n_iter=2, random_state=0),
    "HalvingGridSearchCV": _search(
        HalvingGridSearchCV, (4 + 2) * 3 * 2, min_resources=20, factor=2, random_state=0
    ),
    "learning_curve": _learning_curve,
    "nested": _nested,
}


@pytest.mark.parametrize(
    ("n_jobs", "routing"),
    [
        pytest.param(1, False, id="1"),
        pytest.param(1, True, id="1-routing", marks=pytest.mark.slow),
        pytest.param(2, False, id="2", marks=pytest.mark.slow),
        pytest.param(2, True, id="2-routing", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_of_scikit_learn_pays_for_each_call(problem, tool, n_jobs, routing, accountant):
    model, X, y, name = problem
    scorer = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    with sklearn.config_context(enable_metadata_routing=routing):
        scores, releases = TOOLS[tool](model, X, y, scorer, n_jobs)
    assert np.isfinite(scores).all()
    assert len(accountant.history) == releases
    assert accountant.spent == pytest.approx(0.1 * releases, rel=1e-15)


def test_threads_share_an_accountant_in_memory(regression):
    model, X, y, name = regression
    accountant = PrivacyAccountant(1.0)
    scorer = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    with joblib.parallel_backend("threading", n_jobs=2):
        cross_val_score(model, X, y, cv=10, scoring=scorer, error_score="raise")
    assert accountant.remaining == 0.0


# Mistakes of others


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_spend_is_lost_in_a_copy(regression, accountant, n_jobs):
    # a peer records 0 after five folds, because clone copied its accountant
    model, X, y, name = regression
    search = GridSearchCV(
        model, {"alpha": [1.0]}, cv=5, n_jobs=n_jobs,
        scoring=get_private_scorer(name, epsilon=0.1, accountant=accountant),
    )  # fmt: skip
    clone(search).fit(X, y)
    assert accountant.spent == 0.5


def test_an_exhausted_budget_is_known_before_the_first_fit(regression):
    model, X, y, name = regression
    accountant = PrivacyAccountant(0.4)
    scorer = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    with pytest.raises(
        PrivacyBudgetError, match=r"epsilon=0\.5 was asked for, but 0\.0 of the total of 0\.4"
    ):
        accountant.require(dp_metrics.count_releases(5, scoring=scorer) * 0.1)
    for error_score in ("raise", np.nan):
        with pytest.raises(SearchStopped):
            cross_val_score(model, X, y, cv=5, scoring=scorer, error_score=error_score)
        assert accountant.spent == 0.4


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", ["private scorer", "metric in a scorer of scikit-learn's", "private search"])
def test_a_budget_that_ends_stops_every_tool(regression, tmp_path, kind, several, n_jobs):
    """scikit-learn makes NaN of any other exception, and goes on to the best of what is left."""
    _, X, y, _ = regression
    budget, model = PrivacyAccountant(0.4, tmp_path / "budget.sqlite"), Ridge()
    scorer = get_private_scorer("neg_private_mae", epsilon=0.1, accountant=budget)
    if kind == "metric in a scorer of scikit-learn's":
        scorer = metrics.make_scorer(private_mae, epsilon=0.1, accountant=budget, greater_is_better=False)
    if kind == "private search":
        model = Holdout(budget)
        scorer = "r2"
    scoring = {"a": scorer, "b": scorer} if several else scorer
    grid = {"alpha": [0.1, 0.2, 0.3]}
    for spend in (
        lambda: GridSearchCV(model, grid, cv=3, scoring=scoring, n_jobs=n_jobs, refit=False).fit(X, y),
        lambda: cross_validate(model, X, y, cv=6, scoring=scoring, n_jobs=n_jobs),
    ):
        with pytest.raises(
            SearchStopped, match=r"^epsilon=0\.1 was asked for, but 0\.4 of the total"
        ) as stopped:
            spend()
        assert not isinstance(stopped.value, Exception)
        assert budget.spent == 0.4


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


def test_a_direct_call_that_is_too_dear_is_an_ordinary_error(regression):
    model, X, y, name = regression
    budget = PrivacyAccountant(0.1)
    scorer = get_private_scorer(name, epsilon=0.2, accountant=budget)
    search = GridSearchCV(model, {"alpha": [1.0]}, scoring=get_private_scorer(name, epsilon=1.0)).fit(X, y)
    search.scorer_.accountant = budget
    own = PrivateRandomizedSearch(Ridge(), {}, metric="mse", epsilon=0.2, accountant=budget)
    for call in (
        lambda: scorer(search, X, y),
        lambda: search.score(X, y),  # of a model that is fitted
        lambda: own.fit(X, y, X_val=X, y_val=y),
        lambda: private_mse(y, y, epsilon=0.2, accountant=budget),
    ):
        with pytest.raises(PrivacyBudgetError, match=r"but 0\.0 of the total of 0\.1 is spent"):
            call()
    assert budget.history == ()


def test_scorers_of_two_relations_cannot_share_a_budget(regression, accountant):
    model, X, y, name = regression
    model = clone(model).fit(X, y)
    options = {"epsilon": 0.1, "accountant": accountant}
    get_private_scorer(name, **options)(model, X, y)
    other = get_private_scorer(name, neighboring="add_or_remove_one", **options)
    with pytest.raises(ValueError, match="different neighbouring relations don't add up"):
        other(model, X, y)
    assert [spend.neighboring for spend in accountant.history] == ["replace_one"]


def test_no_noise_is_repeated_between_folds():
    # with one seed for all folds, the same records would get the same noise
    X, y = np.ones((40, 1)), np.tile([0.0, 1.0], 20)
    scorer = get_private_scorer("neg_private_mse", epsilon=0.5)
    scores = cross_val_score(LinearRegression(), X, y, cv=KFold(4), scoring=scorer)
    assert len(set(scores)) > 1  # four times the same grid point: about once in 1e8 runs


def _one_score(scorer, problem, queue):
    queue.put(scorer(*problem))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(sys.platform == "darwin", reason="forks of a process with threads may wait for ever")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_workers_have_noise_of_their_own(regression):
    model, X, y, name = regression
    problem = clone(model).fit(X, y), X, y
    scorer = get_private_scorer(name, epsilon=0.5)
    scorer(*problem)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_one_score, args=(scorer, problem, queue)) for _ in range(4)]
    for worker in workers:
        worker.start()
    scores = {queue.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(scores) > 1  # four times the same grid point: about once in 1e8 runs


def _chain(error):
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("tool", ["cross_validate", "search"])
def test_an_accountant_in_memory_is_loud_under_two_processes(regression, tool, several):
    model, X, y, name = regression
    accountant = PrivacyAccountant(10.0)
    scoring = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    if several:
        scoring = {"a": scoring, "b": clone(scoring)}
    with pytest.raises((pickle.PicklingError, TypeError)) as raised:  # noqa: PT012
        if tool == "cross_validate":
            cross_validate(model, X, y, scoring=scoring, n_jobs=2)
        else:
            GridSearchCV(model, {"alpha": [1.0]}, scoring=scoring, n_jobs=2, refit=False).fit(X, y)
    assert any(IN_MEMORY in text for text in _chain(raised.value))
    assert accountant.history == ()


def test_a_locked_budget_is_one_clear_sentence_and_nothing_is_spent(regression, accountant, monkeypatch):
    model, X, y, name = regression
    monkeypatch.setattr(_ledgers, "_BUSY_SECONDS", 0.1)
    scorer = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    other = sqlite3.connect(accountant.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(TimeoutError, match="stays locked by another process; nothing was released"):
            cross_val_score(model, X, y, scoring=scorer, error_score="raise")
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert accountant.history == ()


# What the total means


def test_the_total_protects_evaluation_records_and_not_training_records():
    """Given the fitted models a record is in one score; as a training record it is in all the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=50)
    X_other, y_other = X.copy(), y.copy()
    X_other[0], y_other[0] = 30.0, -900.0
    cv, model = KFold(5), LinearRegression()

    def true_scores(data, models):
        X, y = data
        return [
            metrics.mean_squared_error(y[test], model.predict(X[test]))
            for (_, test), model in zip(cv.split(X), models, strict=True)
        ]

    def fitted(data):
        X, y = data
        return [clone(model).fit(X[train], y[train]) for train, _ in cv.split(X)]

    models = fitted((X, y))
    before = true_scores((X, y), models)
    given_models = true_scores((X_other, y_other), models)
    assert given_models[0] != before[0]
    assert given_models[1:] == before[1:]  # disjoint folds: parallel composition
    refitted = true_scores((X_other, y_other), fitted((X_other, y_other)))
    assert max(before) < 3
    assert min(refitted[1:]) > 15  # every other fold's score tells of the record: no epsilon bounds that


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tool", [permutation_importance, permutation_test_score])
def test_shuffled_records_are_not_scored(regression, tool, n_jobs, accountant):
    model, X, y, name = regression
    scorer = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    for scoring in [scorer] if tool is permutation_test_score else [scorer, {"a": scorer}]:
        with pytest.raises(ValueError, match="would cost twice what is charged"):
            tool(clone(model).fit(X, y), X, y, scoring=scoring, n_jobs=n_jobs)
    assert accountant.history == ()


# Labels


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        *[(name, LABELS_OF_THREE) for name in [*sorted(OVER_LABELS), "f1_macro", "jaccard_weighted"]],
        *[("f1", {"average": one, **LABELS_OF_THREE}) for one in ("macro", "micro", "weighted")],
        ("roc_auc_ovr", LABELS_OF_THREE),
        ("roc_auc", {"multi_class": "ovo", **LABELS_OF_THREE}),
        (functools.partial(dp_metrics.private_recall_score, average="macro"), LABELS_OF_THREE),
        *[(name, {}) for name in ("f1", "accuracy", "log_loss", "roc_auc", "mse")],
        ("specificity", {"pos_label": "spam"}),
    ],
)
def test_a_scorer_is_made_of_a_metric_over_labels_that_knows_them(metric, options):
    make_private_scorer(metric, epsilon=1.0, **options)


@pytest.mark.parametrize(
    ("name", "exact"),
    [("f1_macro", "f1_macro"), ("balanced_accuracy", "balanced_accuracy"), ("neg_log_loss", None)],
)
def test_a_fold_that_lacks_a_class_is_scored_like_any_other(name, exact):
    X, y = make_classification(1500, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    folds = [(np.flatnonzero(y != 2)[:600], np.arange(800, 1500))]
    scorer = get_private_scorer(name, epsilon=NO_NOISE, labels=[0, 1, 2])
    (score,) = cross_val_score(LogisticRegression(), X, y, cv=folds, scoring=scorer, error_score="raise")
    if exact is None:
        fitted = LogisticRegression().fit(X[folds[0][0]], y[folds[0][0]])
        proba = np.hstack([fitted.predict_proba(X[800:]), np.zeros((700, 1))])
        assert score == pytest.approx(-metrics.log_loss(y[800:], proba), rel=0.01)
    else:
        (wanted,) = cross_val_score(LogisticRegression(), X, y, cv=folds, scoring=exact)
        assert score == pytest.approx(wanted, abs=0.01)


def test_average_precision_of_decisions_says_what_to_pass():
    X, y = make_classification(2000, random_state=0)
    model = LinearSVC().fit(X, y)
    edges = np.linspace(-2, 2, 41)
    scorer = make_private_scorer(
        "average_precision", epsilon=NO_NOISE, response_method="decision_function", edges=edges
    )
    wanted = metrics.average_precision_score(y, model.decision_function(X))
    assert scorer(model, X, y) == pytest.approx(wanted, abs=0.05)


def test_grouped_splits_pay_for_each_fold_and_candidate(accountant, regression):
    model, X, y, name = regression
    scorer = get_private_scorer(name, epsilon=0.1, accountant=accountant)
    groups = np.arange(60) // 6
    search = GridSearchCV(model, {"alpha": [1.0, 2.0]}, cv=GroupKFold(5), scoring=scorer, error_score="raise")
    search.fit(X, y, groups=groups)
    assert len(accountant.history) == 10


def test_a_forest_in_a_search_of_two_metrics(regression, accountant):
    _, X, y, name = regression
    scoring = {
        "mse": get_private_scorer(name, epsilon=0.1, accountant=accountant),
        "mae": get_private_scorer("neg_private_mae", epsilon=0.2, accountant=accountant),
    }
    search = RandomizedSearchCV(
        RandomForestRegressor(n_estimators=3),
        {"max_depth": [1, 2, 3]},
        n_iter=2,
        cv=2,
        refit="mae",
        scoring=scoring,
    ).fit(X, y)
    assert np.isfinite(search.best_score_)
    assert sorted(spend.epsilon for spend in accountant.history) == [0.1] * 4 + [0.2] * 4


class Trainer(BaseEstimator):
    """Judges itself while it is fitted, as early stopping does."""

    def __init__(self, accountant):
        self.accountant = accountant

    def fit(self, X, y):
        dp_metrics.private_accuracy_score(y, y, epsilon=1.0, accountant=self.accountant)
        return self


def test_a_budget_that_ends_in_a_fit_of_ones_own_stops_the_search_around_it():
    budget, X, y = PrivacyAccountant(0.5), np.zeros((20, 1)), np.arange(20) % 2
    with pytest.raises(SearchStopped, match=r"epsilon=1\.0 was asked for"):
        GridSearchCV(Trainer(budget), {}, cv=2, scoring=lambda *_: 0.0).fit(X, y)
    with pytest.raises(PrivacyBudgetError, match=r"epsilon=1\.0 was asked for"):
        Trainer(budget).fit(X, y)
    assert budget.history == ()
