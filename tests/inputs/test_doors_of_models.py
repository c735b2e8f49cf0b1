"""Every door that takes a model: what a model does with private records stays private."""

import threading
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dp_metrics import (
    PrivacyAccountant,
    TrainingFoldsWarning,
    make_private_scorer,
    private_best,
    private_evaluate,
)

SECRET = "isolation-B9"
FAILED = "The model could not predict; run it on records that are not private to see why."
PRIVATE_N = {"neighboring": "add_or_remove_one"}
X = np.random.default_rng(0).normal(size=(200, 2))
CLASS = (X[:, 0] > 0).astype(int)


class Says(ClassifierMixin, BaseEstimator):
    """Knows two classes by heart, and does what it is told with the records that it is asked about."""

    classes_ = np.array([0, 1])
    asked = 0

    def __init__(self, do=lambda response: response):
        self.do = do

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        self.asked += 1
        second = (np.asarray(X)[:, 0] > 0) * 0.8 + 0.1
        return self.do(np.stack([1 - second, second], axis=1))

    def predict(self, X):
        self.asked += 1
        return self.do((np.asarray(X)[:, 0] > 0).astype(int))


class SaysNumbers(RegressorMixin, BaseEstimator):
    """Predicts a number."""

    def __init__(self, do=lambda response: response):
        self.do = do

    def fit(self, X, y):
        return self

    def predict(self, X):
        self.asked += 1
        return self.do(np.asarray(X)[:, 0].astype(float))

    asked = 0


DOORS = {
    "page of labels": lambda model, X, y, **how: private_evaluate(
        model, X, y, split={"labels": 1}, epsilon=1.0, **how
    ),
    "page of scores": lambda model, X, y, **how: private_evaluate(
        model, X, y, split={"scores": 1}, epsilon=1.0, **how
    ),
    "scorer of labels": lambda model, X, y, **how: scored("accuracy", model, X, y, **how),
    "scorer of probabilities": lambda model, X, y, **how: scored("brier_score_loss", model, X, y, **how),
    "scorer of either": lambda model, X, y, **how: scored("roc_auc", model, X, y, **how),
    "best by labels": lambda model, X, y, **how: private_best(
        y, [model, Says()], X=X, metric="accuracy", epsilon=1.0, **how
    ),
    "best by probabilities": lambda model, X, y, **how: private_best(
        y, [model, Says()], X=X, metric="log_loss", epsilon=1.0, **how
    ),
    "baseline": lambda model, X, y, **how: private_evaluate(
        Says(), X, y, baseline=model, split={"labels": 1}, epsilon=1.0, **how
    ),
}
OF_NUMBERS = {
    "page of targets": lambda model, X, y, **how: private_evaluate(
        model, X, y, split={"errors": 1}, epsilon=1.0, bounds=(-4, 4), **how
    ),
    "scorer of targets": lambda model, X, y, **how: scored("rmse", model, X, y, bounds=(-4, 4), **how),
    "best by targets": lambda model, X, y, **how: private_best(
        y, [model, model], X=X, metric="mse", bounds=(-4, 4), epsilon=1.0, **how
    ),
}


def scored(metric, model, X, y, **how):
    budget = how.pop("accountant", None)
    return make_private_scorer(metric, epsilon=1.0, accountant=budget, **how)(model, X, y)


def refusal_of(ask, model, y=CLASS):
    budget = PrivacyAccountant(9.0)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        ask(model, X, y, accountant=budget)
    assert budget.history == ()
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    return raised.value


@pytest.mark.parametrize("door", [*DOORS, *OF_NUMBERS])
def test_no_record_is_like_one_where_their_number_is_private(door):
    ask = {**DOORS, **OF_NUMBERS}[door]
    if door in OF_NUMBERS:
        fitted, y, told = LinearRegression().fit(X, X[:, 0]), X[:, 0], SaysNumbers
    else:
        fitted, y, told = LogisticRegression().fit(X, CLASS), CLASS, Says
    shapes = [lambda r: r, lambda r: r.tolist(), lambda r: r.astype(np.float32), pd.DataFrame]
    for model in [fitted, *map(told, shapes)]:
        if door == "baseline" and model.__dict__.get("do") is shapes[3]:
            continue
        model.asked = 0
        ask(model, X[:0], y[:0], **PRIVATE_N)
        assert model.asked == 0
        ask(model, X[:1], y[:1], **PRIVATE_N)


class Unlucky(Exception):
    pass


class Goodbye(BaseException):
    pass


def raises(error):
    def do(response):
        try:
            raise Unlucky(SECRET)
        finally:
            raise error(SECRET)

    return do


class Lazy:
    """A response that fails when it is read."""

    def __init__(self, response):
        self.shape = response.shape

    def __array__(self, dtype=None, copy=None):
        raise Unlucky(SECRET)


@pytest.mark.parametrize("error", [ValueError, AttributeError, Unlucky, SystemExit, Goodbye, UserWarning])
@pytest.mark.parametrize("door", [*DOORS, *OF_NUMBERS])
def test_an_exception_of_a_model_becomes_one_error_without_its_text_type_and_chain(door, error):
    kind = SaysNumbers if door in OF_NUMBERS else Says
    found = refusal_of({**DOORS, **OF_NUMBERS}[door], kind(raises(error)))
    assert (type(found), str(found)) == (ValueError, FAILED)


@pytest.mark.parametrize("door", DOORS)
def test_whatever_else_of_a_model_fails_says_nothing_either(door):
    class Hides(Says):
        @property
        def classes_(self):
            raise Unlucky(SECRET)

    class HidesMethods(Says):
        @property
        def predict_proba(self):
            raise Unlucky(SECRET)

    refusal_of(DOORS[door], Says(Lazy))
    assert str(refusal_of(DOORS[door], Hides())) == FAILED
    if door not in ("scorer of labels", "best by labels"):
        assert str(refusal_of(DOORS[door], HidesMethods())) == FAILED


@pytest.mark.parametrize("door", DOORS)
def test_who_interrupts_gets_through(door):
    with pytest.raises(KeyboardInterrupt):
        DOORS[door](Says(raises(KeyboardInterrupt)), X, CLASS)


def warn(response):
    warnings.warn(SECRET, stacklevel=1)
    with np.errstate(all="warn"):
        np.float64(1e308) * np.array([1e10])
    return response


@pytest.mark.parametrize("action", ["always", "error"])
@pytest.mark.parametrize("door", DOORS)
def test_warnings_of_a_model_are_dropped(door, action):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        DOORS[door](Says(warn), X, CLASS)
    assert told == []


def test_a_model_fitted_on_a_frame_is_scored_on_an_array():
    model = LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b"]), CLASS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in DOORS.values():
            ask(model, X, CLASS)


def test_models_in_several_threads_leave_the_filters_of_warnings_as_they_were():
    """The second to begin ends last: what it put back would be the list in which the first was silent."""
    before, second_is_in, first_is_out = list(warnings.filters), threading.Event(), threading.Event()
    scorer = make_private_scorer("accuracy", epsilon=1.0)

    def stay(response):
        second_is_in.set()
        assert first_is_out.wait(10)
        return response

    second = threading.Thread(target=scorer, args=(Says(stay), X, CLASS))

    def begin_the_second(response):
        second.start()
        assert second_is_in.wait(10)
        return response

    scorer(Says(begin_the_second), X, CLASS)
    first_is_out.set()
    second.join()
    assert warnings.filters == before


def test_settings_of_numpy_do_not_decide_whether_a_model_can_predict():
    with np.errstate(all="raise"):
        for ask in DOORS.values():
            ask(Says(lambda r: r + 0 * (1e308 * np.array([10.0]) > 0).astype(r.dtype)), X, CLASS)


def test_a_warning_of_cross_validation_quotes_no_record():
    wards = pd.DataFrame({"ward": np.where(np.arange(60) % 2, "east", "west"), "x": X[:60, 0]})
    wards.loc[3, "ward"] = SECRET
    encoded = make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough")
    model = make_pipeline(encoded, LogisticRegression())
    scorers = {
        "one": make_private_scorer("accuracy", epsilon=1.0),
        "two": make_private_scorer("log_loss", epsilon=1.0),
    }
    for scoring in (scorers["one"], scorers):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cross_validate(model, wards, CLASS[:60], cv=3, scoring=scoring)
        text = "".join(str(one.message) for one in told if one.category is not TrainingFoldsWarning)
        assert FAILED in text
        assert SECRET not in text


# Columns


class OfLabels(BaseEstimator):
    """Probabilities in the order of its classes, whatever that is."""

    def __init__(self, classes):
        self.classes_ = classes

    def predict_proba(self, X):
        return X[:, [NAMES.index(one) for one in self.classes_]]

    def predict(self, X):
        return np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]


NAMES = ["high", "low", "mid"]


@pytest.mark.parametrize("classes", [np.array(["low", "mid", "high"]), ["low", "mid", "high"]])
def test_columns_are_those_of_the_classes_of_the_model_in_whatever_order(classes):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet([1, 1, 1], 400)
    y = np.array(NAMES)[[rng.choice(3, p=one) for one in proba]]
    model, exact = OfLabels(classes), log_loss(y, proba, labels=NAMES)
    for labels in (None, NAMES):
        score = make_private_scorer("log_loss", epsilon=1e6, labels=labels)(model, proba, y)
        assert score == pytest.approx(-exact, rel=0.01)
    other = type("Even", (OfLabels,), {"predict_proba": lambda self, X: np.full((len(X), 3), 1 / 3)})(NAMES)
    assert private_best(y, [other, model], X=proba, metric="log_loss", epsilon=1e3) == 1
    page = private_evaluate(model, proba, y, epsilon=1e3, split={"labels": 1})
    assert page["accuracy"].value == pytest.approx((model.predict(proba) == y).mean(), abs=0.02)


def test_a_class_that_a_model_lacks_has_the_probability_0():
    y = np.arange(200) % 3
    model = LogisticRegression().fit(X[y < 2], y[y < 2])
    proba = np.hstack([model.predict_proba(X), np.zeros((200, 1))])
    score = make_private_scorer("log_loss", epsilon=1e6, labels=[0, 1, 2])(model, X, y)
    assert score == pytest.approx(-log_loss(y, proba), rel=0.01)
    whole = LogisticRegression().fit(X, y)
    for labels in ({}, {"labels": [0, 1, 2]}):
        assert private_best(y, [model, whole], X=X, metric="log_loss", epsilon=1e3, **labels) == 1
    private_evaluate(whole, X, y, baseline=model, epsilon=1e3, split={"comparison": 1})


class SaysNoClasses(Says):
    classes_ = None


@pytest.mark.parametrize("door", ["page of labels", "page of scores", "scorer of probabilities"])
@pytest.mark.parametrize("n", [0, 1])
def test_a_model_without_classes_needs_labels_for_its_columns(door, n):
    ask, model = DOORS[door], SaysNoClasses()
    ask(model, X[:n], CLASS[:n], labels=[0, 1], **PRIVATE_N)
    with pytest.raises(ValueError, match=r"has no classes_.* pass labels="):
        ask(model, X[:n], CLASS[:n], **PRIVATE_N)


class Duck:
    """Predicts, and says nothing of itself."""

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def test_a_model_that_is_no_estimator_of_scikit_learn_has_a_page_of_labels():
    page = private_evaluate(Duck(), X, CLASS, labels=[0, 1], epsilon=50.0, split={"labels": 1})
    assert page["accuracy"].value == pytest.approx(1, abs=0.01)
    number = type("Number", (Duck,), {"_estimator_type": "regressor"})()
    assert "mse" in private_evaluate(number, X, CLASS, epsilon=50.0, bounds=(0, 1))


@pytest.mark.parametrize("door", OF_NUMBERS)
def test_a_response_of_another_form_than_is_public_is_refused_where_the_number_is_private(door):
    wide = SaysNumbers(lambda r: np.stack([r, r], axis=1))
    with pytest.raises(ValueError, match="should return a column for each"):
        OF_NUMBERS[door](wide, X, X[:, 0], **PRIVATE_N)


@pytest.mark.parametrize("door", DOORS)
def test_what_a_model_says_of_itself_after_it_saw_records_is_not_read(door):
    def learns(response):
        model.classes_ = np.array(["a", "b", "c"])
        return response

    model = Says(learns)
    DOORS[door](model, X, CLASS)
    assert model.classes_.size == 3  # it was asked


DAYS = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")


@pytest.mark.parametrize("classes", [DAYS, DAYS.astype("M8[ns]"), DAYS.astype(object)])
@pytest.mark.parametrize("known", [None, DAYS.tolist(), DAYS.tolist()[::-1], DAYS.astype("M8[ns]")])
@pytest.mark.parametrize("positive", [None, DAYS[1].item(), DAYS[1].astype("M8[s]")])
def test_the_classes_of_a_model_may_be_dates_in_any_form(classes, known, positive):
    model, y = Says(), classes[CLASS]
    model.classes_ = classes
    model.predict = lambda X: classes[CLASS]
    page = private_evaluate(
        model, X, y, labels=known, pos_label=positive, epsilon=1e6, split={"labels": 1, "scores": 1}
    )
    assert page.numbers["recall"].value > 0.99
    assert page.numbers["roc auc"].value > 0.99
    other = Says(lambda response: response[:, ::-1])
    other.classes_ = classes
    assert private_best(y, [other, model], X=X, metric="log_loss", labels=known, epsilon=1e6) == 1
