"""The private search: every condition of its claim, its budget, its errors, scikit-learn's conventions."""

import dataclasses
import functools
import inspect
import itertools
import logging
import math
import pickle
import random
import sys
import threading
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from helpers import kind_of, slow_but
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import dp_metrics as dp
from dp_metrics import (
    Adaptive,
    Hazard,
    Laplace,
    PrivacyAccountant,
    PrivacyBudgetError,
    PrivateRandomizedSearch,
    get_private_scorer,
    get_private_scorer_names,
    private_accuracy_score,
    private_log_loss,
    private_mae,
    private_mean_loss,
    private_mean_poisson_deviance,
    private_mse,
)
from dp_metrics._random import OSEntropy
from dp_metrics.metrics import NAMES, metric_of
from dp_metrics.model_selection import _trials
from dp_metrics.model_selection._responses import valid_response

NO_NOISE = 1e6
X, Y = make_regression(n_samples=80, n_features=3, noise=1.0, random_state=0)
X_CLASS, CODES = make_classification(n_samples=80, n_features=4, random_state=0)
LABELS = np.array(["ham", "spam"])[CODES]
ALPHAS = {"alpha": [0.1, 1.0, 10.0]}


def split(x=X, y=Y):
    return {"X": x[:40], "y": y[:40], "X_val": x[40:], "y_val": y[40:]}


def make_search(estimator=None, distributions=None, **options):
    options = {"metric": private_mse, "epsilon": 3.0, **options}
    return PrivateRandomizedSearch(
        Ridge() if estimator is None else estimator,
        ALPHAS if distributions is None else distributions,
        **options,
    )


@pytest.fixture
def trials(monkeypatch):
    """Fix the number of trials: ``trials(5)``."""

    def fix(count):
        monkeypatch.setattr(_trials, "geometric", lambda entropy, success: count)

    return fix


class Probe(RegressorMixin, BaseEstimator):
    """A model that predicts `value` everywhere and reports each fit to a list."""

    fits = []  # noqa: RUF012

    def __init__(self, value=0.0, trouble=None):
        self.value = value
        self.trouble = trouble

    def fit(self, X, y):
        self.fits.append((self.value, len(X), np.random.rand(), random.random()))  # noqa: NPY002
        if self.trouble == "fit":
            raise RuntimeError(f"trouble with {self.value}")
        if self.trouble == "exit in fit":
            raise SystemExit
        if self.trouble == "noise":
            warnings.warn("a warning", stacklevel=1)
            print("a print")
            print("an error", file=sys.stderr)
            logging.getLogger("probe").error("a log")
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        if self.trouble == "predict":
            raise RuntimeError("trouble")
        if self.trouble == "exit in predict":
            raise SystemExit
        if self.trouble == "in place":
            X += 1.0
            return X[:, 0]
        return np.full(len(X), self.value)


@pytest.fixture
def fits():
    Probe.fits.clear()
    return Probe.fits


# What it is for


def test_it_finds_the_best_candidate():
    search = make_search(distributions={"alpha": [1e-3, 1e6]}, epsilon=NO_NOISE, expected_iter=1e6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_trials, "geometric", lambda entropy, success: 60)  # misses one: 2 in 2^60
        search.fit(**split())
    best = Ridge(alpha=1e-3).fit(X[:40], Y[:40])
    assert search.best_params_ == {"alpha": 1e-3}
    assert search.best_score_ == pytest.approx(-np.square(best.predict(X[40:]) - Y[40:]).mean(), rel=0.01)
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    assert (search.n_features_in_, search.best_estimator_.alpha) == (3, 1e-3)
    assert is_regressor(search)


def test_the_number_of_trials_comes_from_the_operating_system(monkeypatch):
    given = []
    monkeypatch.setattr(_trials, "geometric", lambda entropy, success: given.append(type(entropy)) or 1)
    make_search(expected_iter=2).fit(**split())
    assert given == [OSEntropy]


def test_it_searches_a_classifier_in_a_pipeline():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": stats.loguniform(0.1, 10)}
    search = make_search(model, grid, metric=private_log_loss, expected_iter=3).fit(**split(X_CLASS, LABELS))
    assert is_classifier(search)
    assert search.classes_.tolist() == ["ham", "spam"]
    assert 0.1 <= search.best_params_["logisticregression__C"] <= 10
    assert search.best_score_ < 0
    assert set(search.predict(X_CLASS)) == {"ham", "spam"}
    for name in ("predict_proba", "predict_log_proba"):
        assert getattr(search, name)(X_CLASS).shape == (80, 2)
    assert search.decision_function(X_CLASS).shape == (80,)


def test_a_score_is_maximised_and_its_settings_reach_the_metric(trials):
    def metric(y_true, y_pred, *, epsilon, accountant=None, factor=1.0):
        return factor * float(y_pred[0])

    grid = {"value": list(range(5))}
    options = {"metric": metric, "metric_params": {"factor": 2.0}}
    trials(100)  # misses a value: 5 * 0.8^100
    search = make_search(Probe(), grid, greater_is_better=True, **options).fit(**split())
    assert (search.best_score_, search.best_params_) == (8.0, {"value": 4})
    search = make_search(Probe(), grid, greater_is_better=False, **options).fit(**split())
    assert (search.best_score_, search.best_params_) == (0.0, {"value": 0})


def test_weights_of_validation_records_reach_the_metric_in_every_trial():
    seen = []

    def metric(y_true, y_pred, *, epsilon, accountant=None, sample_weight=None):
        seen.append(sample_weight)
        return 1.0

    search = make_search(metric=metric, greater_is_better=True)
    search.fit(**split(), sample_weight_val=np.arange(40.0))
    assert len(seen) >= 2
    for weights in seen:
        np.testing.assert_array_equal(weights, np.arange(40.0))


# The budget


@pytest.mark.parametrize("count", [1, 7])
def test_the_whole_search_costs_epsilon_however_many_are_tried(count, trials, fits):
    trials(count)
    accountant = PrivacyAccountant(1.0)
    make_search(Probe(), {"value": [1.0, 2.0]}, epsilon=0.3, accountant=accountant).fit(**split())
    assert len(fits) == count + 1
    (spend,) = accountant.history
    assert (spend.epsilon, spend.spend_name) == (0.3, "PrivateRandomizedSearch of private_mse")
    assert spend.neighboring == "replace_one"


def private_n_mse(y_true, y_pred, *, epsilon, accountant=None):
    return private_mse(
        y_true, y_pred, epsilon=epsilon, accountant=accountant, neighboring="add_or_remove_one"
    )


PRIVATE_N = {
    "in metric_params": {"metric_params": {"neighboring": "add_or_remove_one"}},
    "in a partial": {"metric": functools.partial(private_mse, neighboring="add_or_remove_one")},
    "in the metric": {"metric": private_n_mse, "greater_is_better": False},
}


@pytest.mark.parametrize("options", PRIVATE_N.values(), ids=PRIVATE_N)
def test_it_is_recorded_under_the_relation_of_its_metric(options):
    accountant = PrivacyAccountant(3.0)
    make_search(accountant=accountant, **options).fit(**split())
    assert [spend.neighboring for spend in accountant.history] == ["add_or_remove_one"]


@pytest.mark.parametrize("options", PRIVATE_N.values(), ids=PRIVATE_N)
def test_in_a_budget_of_another_relation_nothing_is_fitted(options, fits):
    accountant = PrivacyAccountant(10.0)
    private_mae(Y, Y, epsilon=1.0, accountant=accountant)
    with pytest.raises(ValueError, match="kept under neighboring='replace_one'"):
        make_search(Probe(), {"value": [1.0]}, accountant=accountant, **options).fit(**split())
    assert fits == []
    assert accountant.spent == 1.0


def test_a_metric_of_two_relations_costs_nothing(fits):
    def metric(y_true, y_pred, *, epsilon, accountant=None):
        given = {"epsilon": epsilon / 2, "accountant": accountant}
        return private_mse(y_true, y_pred, **given) + private_n_mse(y_true, y_pred, **given)

    accountant = PrivacyAccountant(10.0)
    search = make_search(metric=metric, greater_is_better=False, accountant=accountant)
    with pytest.raises(ValueError, match="different neighbouring relations"):
        search.fit(**split())
    assert accountant.history == ()


@pytest.mark.parametrize(
    ("options", "drawn_by"),
    [
        ({}, repr(Adaptive())),
        ({"metric_params": {"mechanism": "laplace", "bounds": (-500, 500)}}, repr(Laplace())),
        ({"metric": lambda y, p, *, epsilon, accountant=None: 1.0, "greater_is_better": True}, None),
    ],
    ids=["default", "given", "unknown"],
)
def test_the_mechanism_of_its_metric_is_recorded(options, drawn_by):
    accountant = PrivacyAccountant(3.0)
    make_search(accountant=accountant, **options).fit(**split())
    (spend,) = accountant.history
    assert spend.mechanism == "best of a geometric number" + (f", {drawn_by}" if drawn_by else "")


def test_it_is_charged_before_the_number_of_trials_is_drawn(monkeypatch, fits):
    class Drawn(Exception):
        pass

    def geometric(entropy, success):
        raise Drawn

    monkeypatch.setattr(_trials, "geometric", geometric)
    accountant = PrivacyAccountant(3.0)
    with pytest.raises(Drawn):
        make_search(Probe(), {"value": [1.0]}, accountant=accountant).fit(**split())
    assert accountant.spent == 3.0


def test_without_budget_nothing_is_fitted(fits):
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(PrivacyBudgetError, match=r"epsilon=3\.0 was asked for"):
        make_search(Probe(), {"value": [1.0]}, accountant=accountant).fit(**split())
    assert fits == []
    assert accountant.spent == 0.0


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.7, 2, Fraction(1, 3), np.float64(0.3), 1e-5])
def test_a_trial_costs_a_third_at_most_and_is_not_recorded(epsilon, trials):
    seen = []

    def metric(y_true, y_pred, *, epsilon, accountant):
        seen.append((epsilon, accountant))
        return 1.0

    trials(3)
    accountant = PrivacyAccountant(10)
    make_search(metric=metric, greater_is_better=True, epsilon=epsilon, accountant=accountant).fit(**split())
    assert len(seen) == 3 + 1  # once on public predictions, to see whether the records are valid
    assert seen[0][1] is not accountant
    assert [payer for _, payer in seen[1:]] == [None] * 3
    assert len(accountant.history) == 1
    whole = Fraction(epsilon) if isinstance(epsilon, Fraction) else Fraction(str(epsilon))
    for share, _ in seen:
        assert whole * Fraction(999_999, 1_000_000) < 3 * Fraction(repr(share)) <= whole


# Candidates are independent and alike


def draws(distributions, size):
    candidates = _trials.Candidates(Probe(), distributions, ("predict",))
    return [candidates.draw()["value"] for _ in range(size)]


def test_lists_are_drawn_uniformly_with_replacement_and_without_warnings():
    size, false_alarm = 3000, 1e-9
    counts = Counter(draws({"value": ["a", "b", "c"]}, size))
    assert set(counts) == {"a", "b", "c"}
    statistic = sum((count - size / 3) ** 2 / (size / 3) for count in counts.values())
    assert statistic < stats.chi2(2).isf(false_alarm)


def test_several_dicts_are_drawn_from_as_in_scikit_learn():
    lists = draws([{"value": ["a", "b", "c"]}, {"value": ["d"]}], 400)
    assert Counter(lists).keys() == set(
        "abcd"
    )  # each setting alike: misses one with probability 4 * 0.75^400
    mixed = draws([{"value": stats.uniform(0, 1)}, {"value": [5]}], 400)
    assert {0.0 <= value <= 1.0 for value in mixed} == {True, False}  # each dict alike


class Remembers:
    """A distribution whose draws depend on those before."""

    def __init__(self):
        self.count = 0

    def rvs(self, random_state=None):
        self.count += 1
        return self.count


class DrawsGlobally:
    """A distribution that ignores the generator it is given."""

    def rvs(self, random_state=None):
        return np.random.rand(), random.random()  # noqa: NPY002


def test_no_draw_knows_of_another():
    assert set(draws({"value": Remembers()}, 5)) == {1}


@pytest.mark.parametrize("distribution", [DrawsGlobally(), stats.uniform(0, 1)])
def test_a_global_seed_does_not_choose_the_candidates(distribution):
    found = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        found += draws({"value": distribution}, 3)
    assert len(set(found)) == 6


def test_a_global_seed_does_not_choose_what_candidates_draw_and_is_put_back(trials, fits):
    trials(4)
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    make_search(Probe(), {"value": [1.0]}, refit=False).fit(**split())
    numpys, pythons = ({fit[position] for fit in fits} for position in (2, 3))
    assert len(numpys) == len(pythons) == 4
    # how much the trials drew would tell how many they were
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.rand(), random.Random(0).random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    make_search(Probe(), {"value": DrawsGlobally()}, refit=False).fit(**split())
    assert (np.random.rand(), random.random()) == expected  # noqa: NPY002
    assert expected[0] not in numpys
    assert expected[1] not in pythons


def test_there_is_no_random_state():
    for function in (PrivateRandomizedSearch, PrivateRandomizedSearch.fit):
        assert "random_state" not in inspect.signature(function).parameters


def test_an_estimator_among_the_parameters_is_not_fitted_in_place(trials):
    trials(3)
    model = make_pipeline(StandardScaler(), Ridge())
    ridge = Ridge(alpha=2.0)
    search = make_search(model, {"ridge": [ridge], "ridge__alpha": [3.0]}).fit(**split())
    assert not hasattr(ridge, "coef_")
    assert ridge.alpha == 2.0
    assert search.best_estimator_[-1].alpha == 3.0
    chosen = search.best_params_["ridge"]
    assert not hasattr(chosen, "coef_")
    assert chosen.alpha == 2.0


def test_what_a_candidate_does_to_the_records_is_not_seen_by_the_next(trials, fits):
    trials(5)
    scores = []

    def metric(y_true, y_pred, *, epsilon, accountant=None):
        scores.append(float(y_pred[0]))
        return 1.0

    data = split()
    before = data["X_val"].copy()
    search = make_search(Probe(trouble="in place"), {"value": [1.0]}, metric=metric, greater_is_better=True)
    search.fit(**data)
    np.testing.assert_array_equal(data["X_val"], before)
    assert scores[1:] == [before[0, 0] + 1.0] * 5


# Nothing else is exposed


def test_nothing_else_is_exposed(trials, capfd, caplog, fits):
    trials(6)
    accountant = PrivacyAccountant(3.0)
    search = make_search(Probe(trouble="noise"), {"value": [1.0, 2.0]}, accountant=accountant, refit=False)
    parameters = set(vars(search))
    assert search.fit(**split()) is search
    assert set(vars(search)) - parameters == {"best_params_", "best_score_"}
    assert len(fits) == 6
    assert tuple(capfd.readouterr()) == ("", "")
    assert caplog.records == []
    assert len(accountant.history) == 1
    assert not hasattr(search, "score")
    assert logging.root.manager.disable == logging.NOTSET


class Loud(Probe):
    """A model that evades what silences it."""

    def fit(self, X, y):
        warnings.simplefilter("always")
        warnings.warn("a warning", stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("another", stacklevel=1)
        for stream in (sys.__stdout__, sys.__stderr__, *self.streams):
            print("a print", file=stream, flush=True)
            stream.writelines(["a line"])
        logger = logging.getLogger("loud")
        logging.disable(logging.NOTSET)
        logger.log(10**30, "a log")
        logger.handle(logger.makeRecord("loud", 10, "", 1, "a record", (), None))
        return super().fit(X, y)


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "hook"])
def test_nothing_is_seen_of_a_candidate_that_evades_filters(
    recorded, trials, capfd, caplog, fits, monkeypatch
):
    monkeypatch.setattr(Loud, "streams", (sys.stdout, sys.stderr), raising=False)
    trials(4)
    shown = []
    with warnings.catch_warnings(record=recorded) as record:
        if not recorded:
            monkeypatch.setattr(
                warnings, "showwarning", lambda *arguments, **options: shown.append(arguments)
            )
        make_search(Loud(), {"value": [1.0]}, refit=False).fit(**split())
        assert shown == []
        assert not record
        warnings.simplefilter("always")
        warnings.warn("afterwards", stacklevel=1)
        assert len(record if recorded else shown) == 1
    assert len(fits) == 4
    assert tuple(capfd.readouterr()) == ("", "")
    assert caplog.records == []
    assert logging.root.manager.disable == logging.NOTSET
    logging.getLogger("loud").error("afterwards")
    print("afterwards")
    assert len(caplog.records) == 1
    assert capfd.readouterr().out == "afterwards\n"


def test_the_refit_is_not_silenced(fits, trials, capsys):
    trials(2)
    with pytest.warns(UserWarning, match="a warning") as caught:
        make_search(Probe(trouble="noise"), {"value": [1.0]}).fit(**split())
    # the search is told once, before its spend, that trials are noisy; then the refit warns
    assert [str(warning.message)[:11] for warning in caught] == ["private_mse", "a warning"]
    assert capsys.readouterr().out == "a print\n"


def test_searches_in_threads_leave_the_world_as_it_was(fits):
    filters, stdout, stderr = list(warnings.filters), sys.stdout, sys.stderr

    def run():
        for _ in range(5):
            make_search(Probe(), {"value": [1.0, 2.0]}, expected_iter=5).fit(**split())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (list(warnings.filters), sys.stdout, sys.stderr) == (filters, stdout, stderr)
    assert logging.root.manager.disable == logging.NOTSET
    assert len(fits) >= 4 * 5 * 2


def test_a_search_inside_another_does_not_end_its_silence(trials, capfd, fits):
    class Nested(Probe):
        def fit(self, X, y):
            make_search(Probe(), {"value": [1.0]}, refit=False).fit(**split())
            return super().fit(X, y)

    trials(2)
    search = make_search(Nested(trouble="noise"), {"value": [1.0]}, refit=False).fit(**split())
    assert math.isfinite(search.best_score_)
    assert len(fits) == 2 + 2 * 2
    assert tuple(capfd.readouterr()) == ("", "")


def test_the_refit_uses_the_training_records_only(fits, trials):
    trials(1)
    data = split()
    make_search(Probe(), {"value": [1.0]}).fit(
        data["X"][:10], data["y"][:10], X_val=data["X_val"], y_val=data["y_val"]
    )
    assert [fit[1] for fit in fits] == [10, 10]


# Failures


@pytest.mark.parametrize("trouble", ["fit", "predict", "exit in fit", "exit in predict"])
def test_a_candidate_that_fails_ranks_last(trouble, trials):
    trials(60)  # misses one of two: 2^-59
    grid = [{"value": [1.0], "trouble": [trouble]}, {"value": [1e9]}]
    search = make_search(Probe(), grid).fit(**split())
    assert search.best_params_ == {"value": 1e9}
    assert math.isfinite(search.best_score_)


def test_a_score_that_is_no_number_ranks_last(trials):
    scores = iter([0.0, math.nan, -1e300, math.nan])  # the first judges the records, with a public model

    def metric(y_true, y_pred, *, epsilon, accountant=None):
        return next(scores)

    trials(3)
    search = make_search(metric=metric, greater_is_better=True).fit(**split())
    assert search.best_score_ == -1e300


def test_if_all_fail_the_first_is_chosen_and_its_refit_says_why(trials, fits):
    trials(5)
    accountant = PrivacyAccountant(6.0)
    search = make_search(Probe(trouble="fit"), {"value": [1, 2, 3, 4]}, accountant=accountant)
    with pytest.raises(RuntimeError, match="trouble with"):
        search.fit(**split())
    assert search.best_score_ == -math.inf
    assert search.best_params_ == {"value": fits[0][0]}
    assert accountant.spent == 3.0
    with pytest.raises(AttributeError):
        _ = search.best_estimator_
    search.set_params(refit=False).fit(**split())
    assert search.best_score_ == -math.inf


def test_after_the_spend_no_record_makes_it_fail(trials, fits):
    # a model that cannot predict one of the records: it ranks last, and no message quotes the record
    class Fragile(Probe):
        def predict(self, X):
            if (X == 7).any():
                raise ValueError(f"{X} contains 7")
            return super().predict(X)

    trials(3)
    data = split()
    data["X_val"] = data["X_val"].copy()
    data["X_val"][3] = 7
    search = make_search(Fragile(), {"value": [1.0]}).fit(**data)
    assert search.best_score_ == -math.inf


def test_an_interruption_by_the_user_gets_through_and_leaves_the_world_as_it_was():
    class Interrupted(Probe):
        def fit(self, X, y):
            np.seterr(all="raise")
            warnings.simplefilter("error")
            raise KeyboardInterrupt

    world = _world()
    with pytest.raises(KeyboardInterrupt):
        make_search(Interrupted(), {"value": [1.0]}).fit(**split())
    assert _world() == world
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "handle", logging.Logger.handle)
        patch.setattr(warnings, "simplefilter", lambda action: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt), _trials.unobserved():
            pass
    assert _world() == world


def _world():
    streams = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
    return (
        *((id(stream), "write" in vars(stream)) for stream in streams),
        list(warnings.filters),
        warnings.showwarning,
        logging.Logger.handle,
        logging.root.manager.disable,
        np.geterr(),
    )


def test_settings_of_numpy_and_filters_of_one_candidate_do_not_reach_the_next(trials, fits):
    seen = []

    class Settings(Probe):
        def fit(self, X, y):
            seen.append((np.geterr(), list(warnings.filters), warnings.showwarning))
            np.seterr(all="raise")
            warnings.simplefilter("error")
            warnings.showwarning = sys.stdout.write
            return super().fit(X, y)

    trials(3)
    before = np.geterr()
    make_search(Settings(), {"value": [1.0]}, refit=False).fit(**split())
    assert np.geterr() == before
    assert seen[0] == seen[1] == seen[2]


def test_settings_of_numpy_do_not_decide_a_candidate(trials, fits):
    class Overflows(Probe):
        def predict(self, X):
            return X[:, 0] * 1e308

    trials(2)
    with np.errstate(all="raise"):
        search = make_search(Overflows(), {"value": [1.0]}, refit=False).fit(**split())
    assert math.isfinite(search.best_score_)


# No record decides a candidate by being invalid for the metric


class Says(RegressorMixin, BaseEstimator):
    """A model that says 1 of every record, and something else of the first."""

    def __init__(self, first=1.0, kind="predict"):
        self.first = first
        self.kind = kind

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        if self.kind != "predict":
            self.classes_ = np.unique(y)
        return self

    def _say(self, response):
        response[:1] = self.first
        return response

    def predict(self, X):
        labels = getattr(self, "classes_", None)
        return self._say(np.full(len(X), 1.0) if labels is None else np.full(len(X), labels[0], object))

    def predict_proba(self, X):
        return self._say(np.full((len(X), 2), 0.5, np.float32 if self.kind == "float32" else np.float64))


class SaysClass(ClassifierMixin, Says):
    """The same of classes."""


HOSTILE = [math.nan, math.inf, -math.inf, -1e300, -5.0, -1.0, 0.0, 0.5, 2.0, 1e300]
OF_CLASSES = [
    name
    for name in get_private_scorer_names()
    if not NAMES[name].__module__.endswith(("regression_errors", "other_losses"))
]
RESPONSES = {
    "neg_private_mse",
    "neg_private_mean_poisson_deviance",
    "neg_private_mean_squared_log_error",
    "neg_private_log_loss",
    "private_accuracy_score",
    "private_f1_score",
    "private_roc_auc_score",
    "private_average_precision_score",
}


@pytest.mark.parametrize("name", slow_but(RESPONSES, get_private_scorer_names()))
def test_a_response_outside_the_domain_of_the_metric_does_not_fail_the_candidate(name, trials):
    trials(1)
    kinds = ("float32", "float64", "labels") if name in OF_CLASSES else ("predict",)
    for first, kind in itertools.product(HOSTILE, kinds):
        y = np.tile([1, 0], 40) if kind != "labels" else np.tile(["ham", "spam"], 40)
        model = SaysClass(first, kind) if name in OF_CLASSES else Says(first, kind)
        metric, row = NAMES[name], metric_of(NAMES[name])
        if kind_of(row) == "confusion" and "pos_label" in row.options and kind == "labels":
            metric = functools.partial(metric, pos_label="ham")
        search = make_search(model, {}, metric=metric, refit=False).fit(**split(y=y))
        assert math.isfinite(search.best_score_)


def test_a_linear_model_in_a_poisson_search_does_not_fail_for_one_record(trials):
    trials(1)
    x = np.linspace(1.0, 2.0, 80)[:, np.newaxis]
    data = split(x, np.round(2 * x[:, 0]))
    finite = make_search(metric=private_mean_poisson_deviance, epsilon=NO_NOISE).fit(**data).best_score_
    data["X_val"] = data["X_val"].copy()
    data["X_val"][0] = -100.0
    assert (Ridge().fit(data["X"], data["y"]).predict(data["X_val"]) <= 0).sum() == 1
    search = make_search(metric=private_mean_poisson_deviance, epsilon=NO_NOISE).fit(**data)
    # 2 (y log(y / 2.2e-16) - y) of one record in 40, not 1e300
    assert -12 < search.best_score_ < finite


@pytest.mark.parametrize("dtype", [np.float64, object])
def test_a_fractional_label_of_a_response_is_a_wrong_label_and_no_error(dtype):
    response = np.array([0.5, 1.0, -2.5], dtype=dtype)
    valid = valid_response(functools.partial(private_accuracy_score), response, np.array([0, 1, 2]))
    assert valid[1] == 1.0
    assert all(float(label).is_integer() and label not in (0, 1, 2) for label in (valid[0], valid[2]))
    private_accuracy_score([0, 1, 2], valid, epsilon=1.0)


def test_valid_responses_are_judged_as_they_are(trials):
    trials(1)
    data = split()
    search = make_search(epsilon=NO_NOISE, distributions={"alpha": [1.0]}).fit(**data)
    exact = np.square(Ridge().fit(data["X"], data["y"]).predict(data["X_val"]) - data["y_val"]).mean()
    assert search.best_score_ == pytest.approx(-exact, rel=1e-3)
    float32 = np.array([[0.0, 1.0], [0.3, 0.7]], dtype=np.float32)
    valid = valid_response(functools.partial(private_log_loss), float32, np.array([0, 1]))
    np.testing.assert_array_equal(valid, float32)
    assert valid.dtype == np.float32  # which sets the cap of a log loss


def test_a_metric_of_your_own_gets_finite_numbers(trials):
    def metric(y_true, y_pred, *, epsilon, accountant=None):
        return private_mean_loss(np.square(y_true - y_pred), epsilon=epsilon, accountant=accountant)

    trials(1)
    for first in (math.nan, math.inf, -math.inf):
        search = make_search(Says(first), {}, metric=metric, greater_is_better=False, refit=False)
        assert math.isfinite(search.fit(**split()).best_score_)


# No validation record at all, where their number is private


@dataclasses.dataclass(frozen=True)
class Observed(Hazard):
    """The default mechanism, with a record of what it was asked to release."""

    seen = []  # noqa: RUF012

    def release(self, output_bounds, epsilon, rng=None):
        self.seen.append((output_bounds, epsilon))
        return super().release(output_bounds, epsilon, rng)


def law_of_trial(estimator, metric, data, **options):
    """Return the score of a search of one trial, and the law that it was drawn from."""
    options = {"neighboring": "add_or_remove_one", "mechanism": Observed(resolution=0.5), **options}
    search = make_search(
        estimator, {}, metric=metric, metric_params=options, refit=False, greater_is_better=False
    )
    search.fit(**data)
    output_bounds, epsilon = Observed.seen[-1]
    law = Hazard(resolution=0.5).output_distribution(output_bounds, epsilon)
    probabilities = np.diff(law.index_cdf(np.arange(law.grid.first, law.grid.last + 1)), prepend=0.0)
    return search.best_score_, (probabilities, law.grid, float(epsilon))


class Single(LogisticRegression):
    """A model whose probabilities are of single precision."""

    def predict_proba(self, X):
        return super().predict_proba(X).astype(np.float32)


def private_n_log_loss(y_true, y_proba, *, epsilon, accountant=None, labels=None, **options):
    options["neighboring"] = "add_or_remove_one"
    return private_log_loss(y_true, y_proba, epsilon=epsilon, accountant=accountant, labels=labels, **options)


EMPTY_CASES = {
    "numbers": (Ridge(), private_mse, X, Y, {"bounds": (-200, 200)}),
    "several outputs": (LinearRegression(), private_mae, X, np.column_stack([Y, Y]), {"bounds": (-200, 200)}),
    "float32": (Single(), private_log_loss, X_CLASS, LABELS, {}),
    "float32 in the metric": (Single(), private_n_log_loss, X_CLASS, LABELS, {"neighboring": "replace_one"}),
    "labels": (LogisticRegression(), private_accuracy_score, X_CLASS, LABELS, {}),
}


@pytest.mark.parametrize("as_list", [False, True], ids=["arrays", "lists"])
@pytest.mark.parametrize("case", EMPTY_CASES.values(), ids=EMPTY_CASES)
def test_a_validation_set_of_no_record_is_like_one_of_one_record(case, as_list, trials):
    trials(1)
    estimator, metric, x, y, options = case
    laws, grids = [], []
    for n in (0, 1):
        data = split(x, y) | {"X_val": x[40 : 40 + n], "y_val": y[40 : 40 + n]}
        if as_list:
            data |= {name: data[name].tolist() for name in ("X_val", "y_val")}
        score, (law, grid, epsilon) = law_of_trial(estimator, metric, data, **options)
        assert math.isfinite(score)
        laws.append(law)
        grids.append(grid)
    assert grids[0] == grids[1]
    assert epsilon <= 1.0
    assert np.abs(np.log(laws[0]) - np.log(laws[1])).max() <= epsilon * (1 + 1e-9)


def test_without_validation_records_no_candidate_is_favoured(trials):
    trials(1)
    data = split() | {"X_val": X[:0], "y_val": Y[:0]}
    trials_of = [law_of_trial(Probe(value), private_mse, data) for value in (0.0, 5.0, 1e9)]
    assert all(math.isfinite(score) for score, _ in trials_of)
    for _, (law, *_) in trials_of:
        np.testing.assert_array_equal(law, trials_of[0][1][0])


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("trouble", ["fit", "predict", "shape", "text"])
def test_what_fails_for_every_record_fails_for_none(n, trouble, trials):
    class Wrong(Probe):
        def predict(self, X):
            columns = {"shape": np.ones((len(X), 3)), "text": np.full(len(X), "ham")}
            return columns[self.trouble] if self.trouble in columns else super().predict(X)

    trials(2)
    data = split() | {"X_val": X[:n], "y_val": Y[:n]}
    options = {"metric_params": {"neighboring": "add_or_remove_one"}, "refit": False}
    assert make_search(Wrong(trouble=trouble), {}, **options).fit(**data).best_score_ == -math.inf


@pytest.mark.parametrize("n", [0, 1])
def test_what_the_metric_refuses_of_every_record_it_refuses_of_none(n, trials):
    def of_positive(y_true, y_pred, *, epsilon, accountant=None):
        if (y_pred <= 0).any():
            raise ValueError("not positive")
        return private_n_mse(y_true, y_pred, epsilon=epsilon, accountant=accountant)

    trials(2)
    data = split() | {"X_val": X[:n], "y_val": Y[:n]}
    for value, fails in ((1.0, False), (-1.0, True)):
        search = make_search(Probe(value), {}, metric=of_positive, greater_is_better=False, refit=False)
        assert (search.fit(**data).best_score_ == -math.inf) == fails


@pytest.mark.parametrize("options", PRIVATE_N.values(), ids=PRIVATE_N)
def test_every_way_to_a_private_number_takes_no_record(options, trials):
    trials(2)
    data = split() | {"X_val": X[:0], "y_val": Y[:0]}
    assert math.isfinite(make_search(**options).fit(**data).best_score_)


# Bad input: one clear sentence, and nothing spent


def frames():
    """Return the arguments of a search on a frame of numbers and words."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "word": np.tile(["x", "y"], 40)}, index=range(80))
    data = split(frame, Y)
    data["X"], data["X_val"] = frame.iloc[:40], frame.iloc[40:]
    return data


def test_a_frame_of_numbers_and_words_is_searched():
    assert math.isfinite(make_search(Probe(), {"value": [1.0]}, refit=False).fit(**frames()).best_score_)


def test_a_word_among_the_numbers_of_a_list_costs_nothing(trials):
    trials(1)
    rows = [[value, "x"] for value in Y.tolist()]
    numbers = FunctionTransformer(lambda rows: np.array(rows, dtype=object)[:, :1].astype(float))
    model = make_pipeline(numbers, Ridge())
    data = split(rows)
    assert math.isfinite(make_search(model, {}).fit(**data).best_score_)
    data["X_val"] = [*rows[40:-1], ["y", "x"]]
    accountant = PrivacyAccountant(10.0)
    with pytest.raises(ValueError, match="X_val should hold what X holds"):
        make_search(model, {}, accountant=accountant).fit(**data)
    assert accountant.history == ()


def test_missing_values_are_taken_where_models_take_them():
    x = X.copy()
    x[50, 0] = np.nan
    search = make_search(HistGradientBoostingRegressor(max_iter=2), {}, expected_iter=2).fit(**split(x))
    assert math.isfinite(search.best_score_)  # its tags say so
    x[3, 1] = np.nan
    model = make_pipeline(SimpleImputer(), Ridge())
    search = make_search(model, {}, expected_iter=2).fit(**split(x))
    assert math.isfinite(search.best_score_)  # X has some too


def test_texts_and_objects_are_taken(trials):
    trials(1)
    texts = np.array(["a b", "b c c"] * 40, dtype=object)
    model = make_pipeline(CountVectorizer(token_pattern="."), Ridge())
    for kind in (np.asarray, list):
        search = make_search(model, {}).fit(
            **{k: kind(v) if "X" in k else v for k, v in split(texts).items()}
        )
        assert math.isfinite(search.best_score_)
    records = [{"a": value} for value in Y]
    search = make_search(make_pipeline(DictVectorizer(), Ridge()), {}).fit(**split(records))
    assert math.isfinite(search.best_score_)


def test_a_metric_of_several_numbers_costs_nothing():
    accountant = PrivacyAccountant(10.0)
    several = {"metric": lambda y, p, *, epsilon, accountant=None: np.ones(2), "greater_is_better": True}
    with pytest.raises(TypeError):
        make_search(accountant=accountant, **several).fit(**split())
    assert accountant.history == ()


def test_names_of_features_must_match():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    data = split(frame, Y)
    search = make_search().fit(**data)
    assert search.feature_names_in_.tolist() == ["a", "b", "c"]
    data["X_val"] = data["X_val"][["b", "a", "c"]]


def test_candidates_without_the_response_rank_last(trials):
    trials(60)
    model = Pipeline([("model", LinearSVC())])
    grid = {"model": [LinearSVC(), LogisticRegression(C=3.0)]}
    search = make_search(model, grid, metric=private_log_loss).fit(**split(X_CLASS, LABELS))
    assert search.best_params_["model"].C == 3.0


# Conventions of scikit-learn


class Holdout(PrivateRandomizedSearch):
    """The search with fit(X, y), as the checks call it: for them only, the training records judge."""

    def fit(self, X, y):
        return super().fit(X, y, X_val=X, y_val=y)


CHECKS = [
    *estimator_checks_generator(
        Holdout(Ridge(), {"alpha": [1.0]}, metric=private_mse, epsilon=1.0, expected_iter=2),
        expected_failed_checks={"check_regressors_train": "asks for `score`, which would not be private"},
        mark="xfail",
    ),
    *estimator_checks_generator(
        Holdout(LogisticRegression(), {"C": [1.0]}, metric=private_log_loss, epsilon=1.0, expected_iter=2),
        expected_failed_checks={"check_complex_data": "y is complex too, which the metric refuses first"},
        mark="xfail",
    ),
]


@pytest.mark.slow
@pytest.mark.sample  # each check is another promise
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda value: getattr(getattr(value, "func", None), "__name__", "")
)
@pytest.mark.filterwarnings("ignore")
def test_estimator_checks(estimator, check):
    check(estimator)


def test_before_fit_there_is_no_result():
    search = make_search()
    for name in ("best_params_", "classes_", "n_features_in_", "best_estimator_"):
        assert not hasattr(search, name)
    assert hasattr(search, "predict")
    assert not hasattr(search, "predict_proba")
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_without_refit_there_is_no_best_estimator():
    search = make_search().fit(**split())
    search.set_params(refit=False).fit(**split())
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")


def test_clone_and_pickle_keep_everything_and_share_the_budget(tmp_path):
    accountant = PrivacyAccountant(100.0, tmp_path / "budget.sqlite")
    search = make_search(accountant=accountant, metric_params={"bounds": (-500, 500)})
    other = clone(search).fit(**split())
    assert other.accountant is accountant
    copy = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(copy.predict(X), other.predict(X))
    copy.fit(**split())
    assert accountant.spent == 6.0
    assert (
        make_search(KNeighborsRegressor(), {"n_neighbors": [1, 2]}).get_params()["estimator__n_neighbors"]
        == 5
    )


def test_inside_cross_validation_each_search_and_each_score_is_paid():
    accountant = PrivacyAccountant(100.0)
    with sklearn.config_context(enable_metadata_routing=True):
        search = make_search(accountant=accountant).set_fit_request(X_val=True, y_val=True)
        scorer = get_private_scorer("neg_private_mae", epsilon=1.0, accountant=accountant)
        params = {"X_val": X[40:], "y_val": Y[40:]}
        scores = cross_val_score(
            search, X[:39], Y[:39], cv=3, scoring=scorer, params=params, error_score="raise"
        )
    assert np.isfinite(scores).all()
    assert accountant.spent == 3 * 3.0 + 3 * 1.0


def test_sparse_records_lists_and_several_outputs_are_taken(trials):
    trials(2)
    for kind in (sparse.csr_array, np.ndarray.tolist):
        data = split()
        data = {name: kind(value) if "X" in name else value.tolist() for name, value in data.items()}
        search = make_search(metric=private_mae).fit(**data)
        np.testing.assert_allclose(search.predict(data["X"]).shape, (40,))
    two = np.column_stack([Y, -Y])
    assert make_search(LinearRegression(), {}).fit(**split(y=two)).predict(X).shape == (80, 2)


# What the total means


def test_the_total_protects_validation_records_and_not_training_records():
    """A validation record moves each score by a bounded amount; a training record moves the models."""
    bounds = (-100.0, 100.0)
    y_val = np.clip(Y[40:], *bounds)

    def true_scores(y_train, y_val):
        models = [Ridge(alpha=alpha).fit(X[:40], y_train) for alpha in ALPHAS["alpha"]]
        return np.array(
            [np.square(np.clip(model.predict(X[40:]), *bounds) - y_val).mean() for model in models]
        )

    before = true_scores(Y[:40], y_val)
    other = y_val.copy()
    other[0] = bounds[0]
    one_record = (bounds[1] - bounds[0]) ** 2 / 40  # the sensitivity that epsilon is calibrated to
    assert (np.abs(true_scores(Y[:40], other) - before) <= one_record).all()
    poisoned = Y[:40].copy()
    poisoned[0] = 1e6
    assert (np.abs(true_scores(poisoned, y_val) - before) > 3 * one_record).all()


def test_a_splitter_of_scikit_learn_makes_the_hold_out():
    train, validation = next(ShuffleSplit(1, test_size=0.5, random_state=0).split(X))
    search = make_search().fit(X[train], Y[train], X_val=X[validation], y_val=Y[validation])
    assert search.best_params_["alpha"] in ALPHAS["alpha"]


class DropsRareClasses(ClassifierMixin, BaseEstimator):
    """A model that learns fewer classes than there are in y, as some of scikit-learn's do."""

    def __init__(self, method="predict_proba"):
        self.method = method

    def fit(self, X, y):
        common = np.isin(y, [0, 1])
        self.model_ = LogisticRegression().fit(X[common], y[common])
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(dp.private_matthews_corrcoef, marks=pytest.mark.slow),
        functools.partial(dp.private_f1_score, average="macro"),
        dp.private_log_loss,
        pytest.param(dp.private_brier_score_loss, marks=pytest.mark.slow),
        functools.partial(dp.private_roc_auc_score, multi_class="ovr"),
        pytest.param(functools.partial(dp.private_top_k_accuracy_score, k=1), marks=pytest.mark.slow),
    ],
)
def test_a_validation_record_of_a_class_that_a_candidate_lacks_fails_no_trial(metric, trials):
    trials(1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    y[:20] = -1
    scores = []
    for rare in (0, 1):
        y_val = (X[200:, 0] > 0).astype(int)
        y_val[:rare] = -1
        search = PrivateRandomizedSearch(
            DropsRareClasses(), {}, metric=metric, epsilon=NO_NOISE, expected_iter=1
        )
        scores.append(search.fit(X[:200], y[:200], X_val=X[200:], y_val=y_val).best_score_)
    assert all(map(math.isfinite, scores))
    # its own labels say what the classes are
    labels = {"labels": [0, 1, -1]}
    search = make_search(DropsRareClasses(), {}, metric=metric, epsilon=NO_NOISE, metric_params=labels)
    assert math.isfinite(search.fit(X[:200], y[:200], X_val=X[200:], y_val=y_val).best_score_)


def test_edges_of_scores_count_wherever_they_are_given(trials):
    trials(2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    edges = np.linspace(-4, 4, 33).tolist()
    found = []
    for metric, params in (
        (functools.partial(dp.private_average_precision_score, edges=edges), {}),
        (dp.private_average_precision_score, {"edges": edges}),
    ):
        search = PrivateRandomizedSearch(
            LogisticRegression(),
            {},
            metric=metric,
            metric_params=params,
            response_method="decision_function",
            epsilon=NO_NOISE,
            expected_iter=1,
            refit=False,
        )
        found.append(search.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:]).best_score_)
    assert found[0] == pytest.approx(found[1], abs=1e-6)


@pytest.mark.parametrize("params", [ALPHAS, {"alpha": [1.0], "solver": ["cholesky"], "tol": [0.5, 0.25]}])
def test_a_budget_keeps_the_best_score_and_its_parameters(params, tmp_path):
    budget = PrivacyAccountant(3.0, tmp_path / "budget.sqlite")
    made = make_search(Ridge(), params, accountant=budget, epsilon=3.0).fit(**split())
    (stored,) = budget.results()
    assert stored.result == {"best_score_": made.best_score_, "best_params_": made.best_params_}
    assert stored.value.startswith(f"{made.best_score_:.6g} by ")
    assert not stored.is_named


def test_a_search_never_asks_for_a_stored_answer():
    budget = PrivacyAccountant(6.0)
    params = {"spend_name": "search"}
    for _ in range(2):
        make_search(accountant=budget, epsilon=3.0, metric_params=params).fit(**split())
    assert budget.spent == 6.0
