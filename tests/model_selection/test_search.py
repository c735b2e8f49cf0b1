"""The private search: every condition of its claim, its budget, its errors, scikit-learn's conventions."""

import functools
import logging
import math
import pickle
import random
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import in_threads
from scipy import sparse, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import RandomizedSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import dp_metrics as dp
from dp_metrics.model_selection import _trials

NO_NOISE, ADD = 1e6, "add_or_remove_one"
X, Y = make_regression(n_samples=80, n_features=3, noise=1.0, random_state=0)
X_CLASS, CODES = make_classification(n_samples=80, n_features=4, random_state=0)
LABELS = np.array(["ham", "spam"])[CODES]
ALPHAS = {"alpha": [0.1, 1.0, 10.0]}


def split(x=X, y=Y, n=40):
    return {"X": x[:40], "y": y[:40], "X_val": x[40 : 40 + n], "y_val": y[40 : 40 + n]}


def make_search(estimator=None, grid=None, **options):
    options = {"metric": dp.private_mse, "epsilon": 3.0, **options}
    model = Ridge() if estimator is None else estimator
    return dp.PrivateRandomizedSearch(model, ALPHAS if grid is None else grid, **options)


def searched(estimator=None, grid=None, data=None, **options):
    return make_search(estimator, grid, **options).fit(**(split() if data is None else data))


@pytest.fixture
def trials(monkeypatch):
    """Fix the number of trials: ``trials(5)``."""

    def fix(count):
        monkeypatch.setattr(_trials, "geometric", lambda entropy, success: count)

    return fix


class Probe(RegressorMixin, BaseEstimator):
    """Predicts `value` everywhere, notes each fit, and makes the trouble that it is told to."""

    fits = []  # noqa: RUF012

    def __init__(self, value=0.0, trouble=None):
        self.value = value
        self.trouble = trouble

    def _fail(self, where):
        if self.trouble and self.trouble[0] == where:
            raise self.trouble[1](f"trouble with {self.value}")

    def fit(self, X, y):
        self.fits.append((self.value, len(X), np.random.rand(), random.random()))  # noqa: NPY002
        self._fail("fit")
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        self._fail("predict")
        if self.trouble == "in place":
            X += 1.0
            return X[:, 0]
        wrong = {"shape": np.ones((len(X), 3)), "text": np.full(len(X), "ham")}
        return wrong.get(self.trouble, np.full(len(X), self.value))


class Stop(BaseException):
    """What some frameworks stop a task with."""


FAILURES = [(where, error) for where in ("fit", "predict") for error in (RuntimeError, SystemExit, Stop)]


@pytest.fixture
def fits():
    Probe.fits.clear()
    return Probe.fits


def constant(y_true, y_pred, *, epsilon, accountant=None):
    return 1.0


# What it is for


def test_it_finds_the_best_candidate_and_scores_it(trials):
    trials(60)  # misses one: 2 in 2^60
    search = searched(grid={"alpha": [1e-3, 1e6]}, epsilon=NO_NOISE)
    best = Ridge(alpha=1e-3).fit(X[:40], Y[:40])
    assert search.best_params_ == {"alpha": 1e-3}
    assert search.best_score_ == pytest.approx(-np.square(best.predict(X[40:]) - Y[40:]).mean(), rel=0.01)
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    assert (search.n_features_in_, search.best_estimator_.alpha) == (3, 1e-3)
    assert is_regressor(search)


def test_settings_weights_and_the_direction_of_a_metric_reach_every_trial(trials):
    seen = []

    def metric(y_true, y_pred, *, epsilon, accountant=None, factor=1.0, sample_weight=None):
        seen.append(sample_weight)
        return factor * float(y_pred[0])

    trials(100)  # misses a value: 5 * 0.8^100
    data = {**split(), "sample_weight_val": np.arange(40.0)}
    options = {"metric": metric, "metric_params": {"factor": 2.0}, "refit": False}
    for greater_is_better, best in ((True, (8.0, {"value": 4})), (False, (0.0, {"value": 0}))):
        search = searched(
            Probe(), {"value": [*range(5)]}, data, greater_is_better=greater_is_better, **options
        )
        assert (search.best_score_, search.best_params_) == best
    assert {tuple(weights) for weights in seen} == {tuple(range(40))}


# The budget


def private_n_mse(y_true, y_pred, *, epsilon, accountant=None):
    return dp.private_mse(y_true, y_pred, epsilon=epsilon, accountant=accountant, neighboring=ADD)


@pytest.mark.parametrize(
    "options",
    [
        {"metric_params": {"neighboring": ADD}},
        {"metric": functools.partial(dp.private_mse, neighboring=ADD)},
        {"metric": private_n_mse, "greater_is_better": False},
    ],
    ids=["in metric_params", "in a partial", "in the metric"],
)
def test_the_relation_of_its_metric_is_kept_and_there_may_be_no_record(options, trials, fits):
    trials(2)
    accountant, other = dp.PrivacyAccountant(3.0), dp.PrivacyAccountant(10.0)
    found = searched(Probe(), {}, split(n=0), accountant=accountant, **options)
    assert math.isfinite(found.best_score_)
    assert [spend.neighboring for spend in accountant.history] == [ADD]
    dp.private_mae(Y, Y, epsilon=1.0, accountant=other)
    fits.clear()
    with pytest.raises(ValueError, match="kept under neighboring='replace_one'"):
        searched(Probe(), {}, accountant=other, **options)
    assert (fits, other.spent) == ([], 1.0)


def test_the_mechanism_of_its_metric_is_recorded():
    for drawn_by, options in {
        f", {dp.mechanisms.Adaptive()!r}": {},
        f", {dp.mechanisms.Laplace()!r}": {"metric_params": {"mechanism": "laplace", "bounds": (-500, 500)}},
        "": {"metric": constant, "greater_is_better": True},
    }.items():
        accountant = dp.PrivacyAccountant(3.0)
        searched(accountant=accountant, **options)
        (spend,) = accountant.history
        assert (spend.mechanism, spend.neighboring) == (
            f"best of a geometric number{drawn_by}",
            "replace_one",
        )
        assert spend.spend_name.startswith("PrivateRandomizedSearch of ")


def test_it_is_charged_before_the_number_of_trials_is_drawn_and_nothing_is_fitted_without_budget(
    monkeypatch, fits
):
    class Drawn(Exception):
        pass

    def geometric(entropy, success):
        raise Drawn

    monkeypatch.setattr(_trials, "geometric", geometric)
    accountant = dp.PrivacyAccountant(4.0)
    with pytest.raises(Drawn):
        searched(Probe(), {}, accountant=accountant)
    assert accountant.spent == 3.0
    fits.clear()
    with pytest.raises(dp.PrivacyBudgetError, match=r"epsilon=3\.0 was asked for"):
        searched(Probe(), {}, accountant=accountant)
    assert (fits, accountant.spent) == ([], 3.0)


def test_a_trial_costs_a_third_at_most_and_is_not_recorded(trials):
    seen = []

    def metric(y_true, y_pred, *, epsilon, accountant):
        seen.append((epsilon, accountant))
        return 1.0

    trials(3)
    # the nearest float to a third of 0.7 is above it
    for epsilon in (1.0, 0.1, 0.7, 2, Fraction(1, 3), np.float64(0.3), 1e-5):
        seen.clear()
        accountant = dp.PrivacyAccountant(10)
        searched(metric=metric, greater_is_better=True, epsilon=epsilon, accountant=accountant)
        assert len(seen) == 3 + 1  # once on public predictions, to see whether the records are valid
        assert seen[0][1] is not accountant
        assert [payer for _, payer in seen[1:]] == [None] * 3
        assert len(accountant.history) == 1
        whole = Fraction(epsilon) if isinstance(epsilon, Fraction) else Fraction(str(epsilon))
        for share, _ in seen:
            assert whole * Fraction(999_999, 1_000_000) < 3 * Fraction(repr(share)) <= whole


# Candidates are independent and alike


def draws(distributions, size):
    _trials.check_candidates(Probe(), distributions, ("predict",))
    return [_trials.draw(distributions)["value"] for _ in range(size)]


def test_lists_are_drawn_uniformly_with_replacement_and_without_warnings():
    size, false_alarm = 3000, 1e-9
    counts = Counter(draws({"value": ["a", "b", "c"]}, size))
    assert set(counts) == {"a", "b", "c"}
    statistic = sum((count - size / 3) ** 2 / (size / 3) for count in counts.values())
    assert statistic < stats.chi2(2).isf(false_alarm)


def test_several_dicts_are_drawn_from_as_in_scikit_learn():
    lists = draws([{"value": ["a", "b", "c"]}, {"value": ["d"]}], 400)
    assert {*lists} == {*"abcd"}  # each setting alike: misses one with probability 4 * 0.75^400
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


def seed_all():
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)


def test_no_draw_knows_of_another_or_of_a_global_seed():
    assert set(draws({"value": Remembers()}, 5)) == {1}
    for distribution in (DrawsGlobally(), stats.uniform(0, 1)):
        found = []
        for _ in range(2):
            seed_all()
            found += draws({"value": distribution}, 3)
        assert len(set(found)) == 6


def test_a_global_seed_does_not_choose_what_candidates_draw_and_is_put_back(trials, fits):
    trials(4)
    seed_all()
    expected = np.random.rand(), random.random()  # noqa: NPY002
    for distributions in ({"value": [1.0]}, {"value": DrawsGlobally()}):
        seed_all()
        searched(Probe(), distributions, refit=False)
        # how much the trials drew would tell how many they were
        assert (np.random.rand(), random.random()) == expected  # noqa: NPY002
    for position in (2, 3):
        assert expected[position - 2] not in [fit[position] for fit in fits]


def test_an_estimator_among_the_parameters_is_not_fitted_in_place(trials):
    trials(3)
    ridge = Ridge(alpha=2.0)
    search = searched(make_pipeline(StandardScaler(), Ridge()), {"ridge": [ridge], "ridge__alpha": [3.0]})
    assert search.best_estimator_[-1].alpha == 3.0
    for one in (ridge, search.best_params_["ridge"]):
        assert not hasattr(one, "coef_")
        assert one.alpha == 2.0


def test_what_a_candidate_does_to_the_records_is_not_seen_by_the_next(trials):
    trials(5)
    scores = []

    def metric(y_true, y_pred, *, epsilon, accountant=None):
        scores.append(float(y_pred[0]))
        return 1.0

    data = split()
    before = data["X_val"].copy()
    searched(Probe(trouble="in place"), {}, data, metric=metric, greater_is_better=True, refit=False)
    np.testing.assert_array_equal(data["X_val"], before)
    assert scores[1:] == [before[0, 0] + 1.0] * 5


# Nothing else is exposed


class Loud(Probe):
    """A model that evades what silences it."""

    streams = ()

    def fit(self, X, y):
        warnings.simplefilter("always")
        warnings.warn("a warning", stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("another", stacklevel=1)
        print("a print")
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
    monkeypatch.setattr(Loud, "streams", (sys.stdout, sys.stderr))
    trials(4)
    shown = []
    search = make_search(Loud(), {"value": [1.0, 2.0]}, refit=False)
    parameters = set(vars(search))
    with warnings.catch_warnings(record=recorded) as record:
        if not recorded:
            monkeypatch.setattr(
                warnings, "showwarning", lambda *arguments, **options: shown.append(arguments)
            )
        assert search.fit(**split()) is search
        assert shown == []
        assert not record
        warnings.simplefilter("always")
        warnings.warn("afterwards", stacklevel=1)
        assert len(record if recorded else shown) == 1
    assert len(fits) == 4
    assert set(vars(search)) - parameters == {"best_params_", "best_score_"}
    assert not hasattr(search, "score")
    assert tuple(capfd.readouterr()) == ("", "")
    assert caplog.records == []
    assert logging.root.manager.disable == logging.NOTSET
    logging.getLogger("loud").error("afterwards")
    print("afterwards")
    assert len(caplog.records) == 1
    assert capfd.readouterr().out == "afterwards\n"


def test_the_refit_is_not_silenced(trials, capsys):
    trials(2)
    with pytest.warns(UserWarning, match="private_mse|warning|another") as caught:
        searched(Loud(), {})
    # the search is told once, before its spend, that trials are noisy; then the refit warns
    assert [str(warning.message)[:11] for warning in caught] == ["private_mse", "a warning", "another"]
    assert "a print" in capsys.readouterr().out


def test_searches_in_threads_leave_the_world_as_it_was(fits):
    def run(_):
        for _ in range(5):
            searched(Probe(), {"value": [1.0, 2.0]}, expected_iter=5)

    before = _world()
    assert in_threads(run, range(4)) == []
    assert _world() == before
    assert len(fits) >= 4 * 5 * 2


def test_a_search_inside_another_does_not_end_its_silence(trials, capfd, fits):
    class Nested(Loud):
        def fit(self, X, y):
            searched(Probe(), {}, refit=False)
            return super().fit(X, y)

    trials(2)
    assert math.isfinite(searched(Nested(), {}, refit=False).best_score_)
    assert len(fits) == 2 + 2 * 2
    assert tuple(capfd.readouterr()) == ("", "")


# Failures


def test_a_score_that_is_no_number_ranks_last(trials):
    scores = iter([0.0, math.nan, -1e300, math.nan])  # the first judges the records, with a public response
    trials(3)
    search = searched(metric=lambda y, p, *, epsilon, accountant=None: next(scores), greater_is_better=True)
    assert search.best_score_ == -1e300


def test_if_all_fail_the_first_is_chosen_and_its_refit_says_why(trials, fits):
    trials(5)
    accountant = dp.PrivacyAccountant(6.0)
    search = make_search(Probe(trouble=("fit", RuntimeError)), {"value": [1, 2, 3, 4]}, accountant=accountant)
    with pytest.raises(RuntimeError, match="trouble with"):
        search.fit(**split())
    assert search.best_score_ == -math.inf
    assert search.best_params_ == {"value": fits[0][0]}
    assert accountant.spent == 3.0
    with pytest.raises(AttributeError):
        _ = search.best_estimator_
    assert search.set_params(refit=False).fit(**split()).best_score_ == -math.inf


class Unspeakable(float):
    """Cannot be written down."""

    def __repr__(self):
        raise RuntimeError("no words")


def test_a_parameter_that_cannot_be_written_down_does_not_lose_what_is_paid_for():
    accountant = dp.PrivacyAccountant(3.0)
    with pytest.warns(UserWarning, match="could not be stored"):
        search = searched(Probe(), {"value": [Unspeakable(1.0)]}, accountant=accountant)
    assert accountant.spent == 3.0
    assert search.best_params_["value"] == search.best_estimator_.value == 1.0


class Interrupted(Probe):
    def fit(self, X, y):
        np.seterr(all="raise")
        warnings.simplefilter("error")
        raise KeyboardInterrupt


def test_an_interruption_by_the_user_gets_through_and_leaves_the_world_as_it_was():
    world = _world()
    with pytest.raises(KeyboardInterrupt):
        searched(Interrupted(), {})
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


def test_settings_of_numpy_and_of_warnings_decide_no_candidate_and_do_not_reach_the_next(trials):
    seen = []

    class Settings(Probe):
        def fit(self, X, y):
            seen.append((np.geterr(), list(warnings.filters), warnings.showwarning))
            np.seterr(all="raise")
            warnings.simplefilter("error")
            warnings.showwarning = sys.stdout.write
            return super().fit(X, y)

    class Overflows(Probe):
        def predict(self, X):
            return X[:, 0] * 1e308

    trials(3)
    with np.errstate(all="raise"):
        before = np.geterr()
        searched(Settings(), {}, refit=False)
        assert np.geterr() == before
        assert math.isfinite(searched(Overflows(), {}, refit=False).best_score_)
    assert seen[0] == seen[1] == seen[2]


# No validation record at all, where their number is private


@dataclass(frozen=True)
class Observed(dp.mechanisms.Hazard):
    """The default mechanism, with a record of what it was asked to release."""

    seen = []  # noqa: RUF012

    def release(self, output_bounds, epsilon, rng=None):
        self.seen.append((output_bounds, epsilon))
        return super().release(output_bounds, epsilon, rng)


def law_of(door, model, metric, data, **options):
    """Return the score of a model, and the law that it was drawn from, its grid and epsilon."""
    options = {"neighboring": ADD, "mechanism": Observed(resolution=0.5), **options}
    if door == "scorer":
        made = dp.make_private_scorer(metric, epsilon=1.0, greater_is_better=False, **options)
        score = made(model.fit(data["X"], data["y"]), data["X_val"], data["y_val"])
    else:
        of_metric = {"metric": metric, "metric_params": options, "greater_is_better": False}
        score = searched(model, {}, data, refit=False, **of_metric).best_score_
    output_bounds, epsilon = Observed.seen[-1]
    law = dp.mechanisms.Hazard(resolution=0.5).output_distribution(output_bounds, epsilon)
    probabilities = np.diff(law.index_cdf(np.arange(law.grid.first, law.grid.last + 1)), prepend=0.0)
    return score, probabilities, law.grid, float(epsilon)


class Single(LogisticRegression):
    """A model whose probabilities are of single precision."""

    def predict_proba(self, X):
        return super().predict_proba(X).astype(np.float32)


def private_n_log_loss(y_true, y_proba, *, epsilon, accountant=None, labels=None, **options):
    options["neighboring"] = ADD
    return dp.private_log_loss(
        y_true, y_proba, epsilon=epsilon, accountant=accountant, labels=labels, **options
    )


WIDE = {"bounds": (-200, 200)}
NONE_OR_ONE = {
    "numbers": (Ridge(), dp.private_mse, X, Y, WIDE),
    "several outputs": (LinearRegression(), dp.private_mae, X, np.column_stack([Y, Y]), WIDE),
    "float32": (Single(), dp.private_log_loss, X_CLASS, LABELS, {}),
    "float32 in the metric": (Single(), private_n_log_loss, X_CLASS, LABELS, {"neighboring": "replace_one"}),
    "labels": (LogisticRegression(), dp.private_accuracy_score, X_CLASS, LABELS, {}),
}


@pytest.mark.parametrize("name", NONE_OR_ONE)
@pytest.mark.parametrize("door", ["search", "scorer"])
def test_no_record_is_judged_like_one_record(door, name, trials):
    trials(1)
    model, metric, x, y, options = NONE_OR_ONE[name]
    if door == "scorer" and metric is private_n_log_loss:
        return  # a metric of one's own has to see to that within itself
    for hold in (np.asarray, np.ndarray.tolist) if door == "search" else (np.asarray,):
        (_, none, *public), (_, one, *public_of_one) = (
            law_of(door, model, metric, {key: hold(part) for key, part in split(x, y, n).items()}, **options)
            for n in (0, 1)
        )
        assert public == public_of_one
        assert public[1] <= 1.0
        seen = (none > 0) | (one > 0)  # far from the value a probability underflows
        with np.errstate(divide="ignore"):
            assert np.abs(np.log(none[seen]) - np.log(one[seen])).max() <= public[1] * (1 + 1e-9)


def test_without_validation_records_no_candidate_is_favoured(trials):
    trials(1)
    found = [law_of("search", Probe(value), dp.private_mse, split(n=0)) for value in (0.0, 5.0, 1e9)]
    assert all(math.isfinite(score) for score, *_ in found)
    for _, law, *_ in found:
        np.testing.assert_array_equal(law, found[0][1])


def of_positive(y_true, y_pred, *, epsilon, accountant=None):
    if (y_pred <= 0).any():
        raise ValueError("not positive")
    return private_n_mse(y_true, y_pred, epsilon=epsilon, accountant=accountant)


def test_what_fails_for_every_record_fails_for_none(trials):
    trials(2)
    for n in (0, 1):
        for trouble in (*FAILURES, "shape", "text"):
            options = {"metric_params": {"neighboring": ADD}, "refit": False}
            found = searched(Probe(trouble=trouble), {}, split(n=n), **options)
            assert found.best_score_ == -math.inf, (n, trouble)
        for value, fails in ((1.0, False), (-1.0, True)):
            options = {"metric": of_positive, "greater_is_better": False, "refit": False}
            found = searched(Probe(value), {}, split(n=n), **options)
            assert (found.best_score_ == -math.inf) == fails, (n, value)


# What records and candidates may be

MISSING = X.copy()
MISSING[50, 0] = np.nan
MISSING_IN_BOTH = MISSING.copy()
MISSING_IN_BOTH[3, 1] = np.nan
MIXED = pd.DataFrame({"a": X[:, 0], "word": np.tile(["x", "y"], 40)}, index=range(80))
COUNT = make_pipeline(CountVectorizer(token_pattern="."), Ridge())
TEXTS = np.array(["a b", "b c c"] * 40, dtype=object)
FIRST = FunctionTransformer(lambda rows: np.array(rows, dtype=object)[:, :1].astype(float))
TAKEN = {
    "a frame of numbers and words": (Probe(), MIXED),
    "words in lists": (make_pipeline(FIRST, Ridge()), [[value, "x"] for value in Y.tolist()]),
    "missing values that the model takes": (HistGradientBoostingRegressor(max_iter=2), MISSING),
    "missing values in training too": (make_pipeline(SimpleImputer(), Ridge()), MISSING_IN_BOTH),
    "texts in a list": (COUNT, TEXTS.tolist()),
    "sparse": (Ridge(), sparse.csr_array(X)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_records_of_every_kind_are_searched(name, trials):
    trials(2)
    model, x = TAKEN[name]
    assert math.isfinite(searched(model, {}, split(x), refit=False).best_score_)


def test_names_of_features_and_several_outputs_are_kept():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    search = searched(LinearRegression(), {}, split(frame, np.column_stack([Y, -Y])))
    assert search.feature_names_in_.tolist() == ["a", "b", "c"]
    assert search.predict(frame).shape == (80, 2)


def test_candidates_of_a_pipeline_without_the_response_rank_last(trials):
    trials(60)
    grid = {"model": [LinearSVC(), LogisticRegression(C=3.0)]}
    search = searched(Pipeline([("model", LinearSVC())]), grid, split(X_CLASS, LABELS), metric="log_loss")
    assert search.best_params_["model"].C == 3.0
    assert is_classifier(search)
    assert search.classes_.tolist() == ["ham", "spam"]
    for name in ("predict_proba", "predict_log_proba"):
        assert getattr(search, name)(X_CLASS).shape == (80, 2)
    assert {*search.predict(X_CLASS)} == {"ham", "spam"}


class DropsRareClasses(LogisticRegression):
    """A model that learns fewer classes than there are in y, as some of scikit-learn's do."""

    def fit(self, X, y):
        return super().fit(X[np.isin(y, [0, 1])], y[np.isin(y, [0, 1])])


def test_a_validation_record_of_a_class_that_a_candidate_lacks_fails_no_trial(trials):
    trials(1)
    y, rare = np.where(np.arange(80) < 5, -1, CODES), CODES.copy()
    rare[40] = -1
    for metric in (
        "matthews_corrcoef",
        "f1_macro",
        "log_loss",
        "brier_score",
        "roc_auc_ovr",
        "top_k_accuracy",
    ):
        k = {"k": 1} if metric == "top_k_accuracy" else {}
        # its own labels say what the classes are
        for y_val, options in ((CODES, {}), (rare, {}), (rare, {"labels": [0, 1, -1]})):
            data = {**split(X_CLASS, y), "y_val": y_val[40:]}
            found = searched(DropsRareClasses(), {}, data, metric=metric, metric_params={**k, **options})
            assert math.isfinite(found.best_score_), (metric, options)


# Conventions of scikit-learn


class Holdout(dp.PrivateRandomizedSearch):
    """The search with fit(X, y), as the checks call it: for them only, the training records judge."""

    def fit(self, X, y):
        return super().fit(X, y, X_val=X, y_val=y)


@pytest.mark.slow
@pytest.mark.sample  # each of both kinds has checks of its own
@pytest.mark.parametrize(
    ("model", "grid", "metric", "expected"),
    [
        (Ridge(), {"alpha": [1.0]}, "mse", {"check_regressors_train": "asks for `score`"}),
        (
            LogisticRegression(),
            {"C": [1.0]},
            "log_loss",
            {"check_complex_data": "the metric refuses y first"},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_estimator_checks(model, grid, metric, expected):
    search = Holdout(model, grid, metric=metric, epsilon=1.0, expected_iter=2)
    check_estimator(search, expected_failed_checks=expected, on_skip=None)


def test_without_a_fit_or_a_refit_there_is_no_result():
    search = make_search()
    for name in ("best_params_", "classes_", "n_features_in_", "best_estimator_", "predict_proba"):
        assert not hasattr(search, name)
    assert hasattr(search, "predict")
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.fit(**split()).set_params(refit=False).fit(**split())
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")


def test_it_predicts_and_has_nothing_else_of_the_search_that_it_is_a_kind_of():
    search = searched(PCAOfTargets(), {"n_components": [2]})
    assert isinstance(search, RandomizedSearchCV)
    own = {name for name in dir(search) if not (name.startswith("_") or name in vars(search))}
    own = {name for name in own if hasattr(search, name)} - {*dir(BaseEstimator)}
    assert own == {"fit", "set_fit_request", "predict", "score_samples", "n_features_in_"}
    np.testing.assert_array_equal(search.score_samples(X), search.best_estimator_.score_samples(X))
    for name in ("score", "transform", "inverse_transform", "cv_results_", "best_index_", "scorer_"):
        assert not hasattr(search, name)
    with pytest.raises(AttributeError, match="call a private metric"):
        search.score(X, Y)


class PCAOfTargets(PCA):
    """A model with all methods that a search of scikit-learn passes on."""

    def predict(self, X):
        return self.transform(X)[:, 0]


def test_clones_and_pickles_share_the_budget(tmp_path):
    accountant = dp.PrivacyAccountant(100.0, tmp_path / "budget.sqlite")
    fitted = clone(make_search(accountant=accountant)).fit(**split())
    assert fitted.accountant is accountant
    pickle.loads(pickle.dumps(fitted)).fit(**split())
    assert accountant.spent == 6.0


def test_what_a_search_found_is_pickled_without_a_budget_in_memory():
    fitted = make_search(accountant=dp.PrivacyAccountant(3.0)).fit(**split())
    with pytest.raises(TypeError, match=r"pass path= to .*best_estimator_ .* can be pickled"):
        pickle.dumps(fitted)
    assert repr(pickle.loads(pickle.dumps(fitted.best_estimator_))) == repr(fitted.best_estimator_)


def test_inside_cross_validation_each_search_and_each_score_is_paid():
    accountant = dp.PrivacyAccountant(100.0)
    with sklearn.config_context(enable_metadata_routing=True):
        search = make_search(accountant=accountant).set_fit_request(X_val=True, y_val=True)
        scorer = dp.make_private_scorer("neg_private_mae", epsilon=1.0, accountant=accountant)
        assert dp.count_releases(search) == 1
        params = {"X_val": X[40:], "y_val": Y[40:]}
        scores = cross_val_score(
            search, X[:39], Y[:39], cv=3, scoring=scorer, params=params, error_score="raise"
        )
    assert np.isfinite(scores).all()
    assert accountant.spent == 3 * 3.0 + 3 * 1.0


def test_a_budget_keeps_the_best_score_and_its_parameters_but_never_answers_a_search(tmp_path):
    budget = dp.PrivacyAccountant(6.0, tmp_path / "budget.sqlite")
    grid = {"alpha": [1.0], "solver": ["cholesky"], "tol": [0.5, 0.25]}
    made = [searched(Ridge(), grid, accountant=budget, metric_params={"spend_name": "x"}) for _ in range(2)]
    assert budget.spent == 6.0
    for stored, search in zip(budget.results(), made, strict=True):
        assert stored.result == {"best_score_": search.best_score_, "best_params_": search.best_params_}
        assert stored.value.startswith(f"{search.best_score_:.6g} by ")
        assert not stored.is_named
