"""Every door that takes a model: what a model does with private records stays private."""

import threading
import traceback
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from cases import PRIVATE_N
from helpers import loop_over
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dp_metrics as dp
from dp_metrics import make_private_scorer, private_best, private_evaluate
from dp_metrics.exceptions import TrainingFoldsWarning

SECRET = "isolation-B9"
FAILED = "The model could not predict; run it on records that are not private to see why."
X = np.random.default_rng(0).normal(size=(200, 2))
CLASS = (X[:, 0] > 0).astype(int)


def as_it_is(response):
    return response


class SaysNumbers(RegressorMixin, BaseEstimator):
    """Predicts a number, and does what it is told with the records that it is asked about."""

    asked = 0

    def __init__(self, do=as_it_is):
        self.do = do

    def fit(self, X, y):
        return self

    def predict(self, X):
        self.asked += 1
        return self.do(np.asarray(X)[:, 0].astype(float))


class Says(ClassifierMixin, SaysNumbers):
    """Knows two classes by heart."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        self.asked += 1
        second = (np.asarray(X)[:, 0] > 0) * 0.8 + 0.1
        return self.do(np.stack([1 - second, second], axis=1))

    def predict(self, X):
        self.asked += 1
        return self.do((np.asarray(X)[:, 0] > 0).astype(int))


def page(part, **fixed):
    return partial(private_evaluate, split={part: 1}, epsilon=1.0, **fixed)


def scorer(metric, **fixed):
    return lambda model, X, y, **how: make_private_scorer(metric, epsilon=1.0, **fixed, **how)(model, X, y)


def best(metric, other, **fixed):
    return lambda model, X, y, **how: private_best(
        y, [model, other], X=X, metric=metric, epsilon=1.0, **fixed, **how
    )


WITHIN_4 = {"bounds": (-4, 4)}
OF_NUMBERS = {
    "page of targets": page("errors", **WITHIN_4),
    "scorer of targets": scorer("rmse", **WITHIN_4),
    "best by targets": best("mse", SaysNumbers(), **WITHIN_4),
}
OF_CLASSES = {
    "page of labels": page("labels"),
    "page of scores": page("scores"),
    "scorer of labels": scorer("accuracy"),
    "scorer of probabilities": scorer("brier_score_loss"),
    "scorer of either": scorer("roc_auc"),
    "best by labels": best("accuracy", Says()),
    "best by probabilities": best("log_loss", Says()),
    "baseline": lambda model, X, y, **how: page("labels")(Says(), X, y, baseline=model, **how),
}
DOORS = {**OF_CLASSES, **OF_NUMBERS}
each_door = loop_over("door", DOORS)
each_of_classes = loop_over("ask", OF_CLASSES.values())


def refusal_of(ask, model):
    budget = dp.PrivacyAccountant(9.0)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        ask(model, X, CLASS, accountant=budget)
    assert budget.history == ()
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    return raised.value


@each_door
def test_no_record_is_like_one_where_their_number_is_private(door):
    ask, told, fitted, y = DOORS[door], Says, LogisticRegression().fit(X, CLASS), CLASS
    if door in OF_NUMBERS:
        told, fitted, y = SaysNumbers, LinearRegression().fit(X, X[:, 0]), X[:, 0]
    forms = [as_it_is, lambda r: r.tolist(), lambda r: r.astype(np.float32)]
    for model in [fitted, *map(told, forms if door == "baseline" else [*forms, pd.DataFrame])]:
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


@each_door
def test_an_exception_of_a_model_becomes_one_error_without_its_text_type_and_chain(door):
    told = SaysNumbers if door in OF_NUMBERS else Says
    for error in (ValueError, AttributeError, Unlucky, SystemExit, Goodbye, UserWarning):
        found = refusal_of(DOORS[door], told(raises(error)))
        assert (type(found), str(found)) == (ValueError, FAILED)
    with pytest.raises(KeyboardInterrupt):  # who interrupts gets through
        DOORS[door](told(raises(KeyboardInterrupt)), X, CLASS)


class Lazy:
    """A response that fails when it is read."""

    def __init__(self, response):
        self.shape = response.shape

    def __array__(self, dtype=None, copy=None):
        raise Unlucky(SECRET)


@loop_over("door", OF_CLASSES)
def test_whatever_else_of_a_model_fails_says_nothing_either(door):
    def hidden(name):
        def fail(self):
            raise Unlucky(SECRET)

        return type("Hides", (Says,), {name: property(fail)})()

    refusal_of(DOORS[door], Says(Lazy))
    assert str(refusal_of(DOORS[door], hidden("classes_"))) == FAILED
    if door not in ("scorer of labels", "best by labels"):
        assert str(refusal_of(DOORS[door], hidden("predict_proba"))) == FAILED


@each_of_classes
@loop_over("action", ["always", "error"])
def test_warnings_of_a_model_are_dropped_and_no_setting_of_numpy_stops_it(ask, action):
    def warn(response):
        np.float64(1e308) * np.array([1e10])
        warnings.warn(SECRET, stacklevel=1)
        with np.errstate(all="warn"):
            np.float64(1e308) * np.array([1e10])
        return response

    with warnings.catch_warnings(record=True) as told, np.errstate(all="raise"):
        warnings.simplefilter(action)
        ask(Says(warn), X, CLASS)
    assert told == []


def test_models_in_several_threads_leave_the_filters_of_warnings_as_they_were():
    """The second to begin ends last: what it put back would be the list in which the first was silent."""
    before, second_is_in, first_is_out = list(warnings.filters), threading.Event(), threading.Event()
    score = make_private_scorer("accuracy", epsilon=1.0)

    def stay(response):
        second_is_in.set()
        assert first_is_out.wait(10)
        return response

    second = threading.Thread(target=score, args=(Says(stay), X, CLASS))

    def begin_the_second(response):
        second.start()
        assert second_is_in.wait(10)
        return response

    score(Says(begin_the_second), X, CLASS)
    first_is_out.set()
    second.join()
    assert warnings.filters == before


def test_a_warning_of_cross_validation_quotes_no_record():
    wards = pd.DataFrame({"ward": np.where(np.arange(60) % 2, "east", "west"), "x": X[:60, 0]})
    wards.loc[3, "ward"] = SECRET
    encoded = make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough")
    model = make_pipeline(encoded, LogisticRegression())
    one, two = (make_private_scorer(metric, epsilon=1.0) for metric in ("accuracy", "log_loss"))
    for scoring in (one, {"one": one, "two": two}):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cross_validate(model, wards, CLASS[:60], cv=3, scoring=scoring)
        text = "".join(str(each.message) for each in told if each.category is not TrainingFoldsWarning)
        assert FAILED in text
        assert SECRET not in text


# ---- columns -----------------------------------------------------------------------------------------------


class OfLabels(ClassifierMixin, BaseEstimator):
    """A model of somebody's own, whose classes and columns stand in whatever order."""

    def __init__(self, classes=("yes", "no")):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        second = self.classes == ("no", "yes")
        return np.column_stack([1 - X, X] if second else [X, 1 - X])

    def decision_function(self, X):
        return self.predict_proba(X)[:, 1] - 0.5

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


TRUE, YES = np.tile(["no", "yes", "yes", "no", "yes"], 40), np.tile([[0.1, 0.8, 0.7, 0.3, 0.9]], 40).T
EVEN = type("Even", (OfLabels,), {"predict_proba": lambda self, X: np.full((len(X), 2), 0.5)})()
BY_DECISION = {"response_method": "decision_function", "edges": [-0.5, -0.1, 0.1, 0.5]}


def answers(classes, positive, labels):
    """Yield what each door says of a model of these classes."""
    model, of = OfLabels(classes).fit(YES, TRUE), {"labels": labels, "epsilon": 1e6}
    named = {**of, "pos_label": positive}
    for metric, options in (
        ("log_loss", of),
        ("brier_score_loss", named),
        ("roc_auc", of),
        ("roc_auc", {**of, "response_method": "decision_function"}),
        ("average_precision", named),
        ("average_precision", {**named, **BY_DECISION}),
        ("expected_calibration_error", named),
    ):
        yield make_private_scorer(metric, **options)(model, YES, TRUE)
    for metric in ("log_loss", "brier_score_loss", "roc_auc"):
        yield private_best(TRUE, [EVEN.fit(YES, TRUE), model], X=YES, metric=metric, **of).index
    made = private_evaluate(model, YES, TRUE, **named, baseline=model)
    yield from (made[name].value for name in ("accuracy", "roc auc", "brier score"))
    search = dp.PrivateRandomizedSearch(
        OfLabels(), {"classes": [classes]}, metric="log_loss", metric_params={"labels": ["no", "yes"]},
        expected_iter=1, epsilon=1e6,
    )  # fmt: skip
    yield search.fit(YES, TRUE, X_val=YES, y_val=TRUE).best_score_


@pytest.mark.gate
@loop_over("positive", [None, "no", "yes"])
@loop_over("labels", [None, ["no", "yes"], ["yes", "no"]])
def test_columns_are_those_of_the_classes_of_the_model_in_whatever_order(positive, labels):
    usual = [*answers(("no", "yes"), positive, labels)]
    assert [*answers(("yes", "no"), positive, labels)] == pytest.approx(usual, abs=1e-3)
    assert usual[0] == pytest.approx(-log_loss(TRUE, YES, labels=["no", "yes"]), abs=1e-3)
    assert min(usual[2:6]) > 0.9  # areas and average precisions
    assert usual[7:11] == pytest.approx([1, 1, 1, 1], abs=1e-3)  # the better one of two, and the accuracy


def test_a_class_that_a_model_lacks_has_the_probability_0():
    y = np.arange(200) % 3
    model, whole = LogisticRegression().fit(X[y < 2], y[y < 2]), LogisticRegression().fit(X, y)
    proba = np.hstack([model.predict_proba(X), np.zeros((200, 1))])
    score = make_private_scorer("log_loss", epsilon=1e6, labels=[0, 1, 2])(model, X, y)
    assert score == pytest.approx(-log_loss(y, proba), rel=0.01)
    assert private_best(y, [model, whole], X=X, metric="log_loss", epsilon=1e3) == 1
    private_evaluate(whole, X, y, baseline=model, epsilon=1e3, split={"comparison": 1})


@loop_over("door", ["page of labels", "page of scores", "scorer of probabilities"])
@loop_over("n", [0, 1])
def test_a_model_without_classes_needs_labels_for_its_columns(door, n):
    model = type("SaysNoClasses", (Says,), {"classes_": None})()
    DOORS[door](model, X[:n], CLASS[:n], labels=[0, 1], **PRIVATE_N)
    with pytest.raises(ValueError, match=r"has no classes_.* pass labels="):
        DOORS[door](model, X[:n], CLASS[:n], **PRIVATE_N)


@loop_over("ask", OF_NUMBERS.values())
def test_a_response_of_another_form_than_is_public_is_refused_where_the_number_is_private(ask):
    wide = SaysNumbers(lambda r: np.stack([r, r], axis=1))
    with pytest.raises(ValueError, match="should return a column for each"):
        ask(wide, X, X[:, 0], **PRIVATE_N)


@each_of_classes
def test_what_a_model_says_of_itself_after_it_saw_records_is_not_read(ask):
    def learns(response):
        model.classes_ = np.array(["a", "b", "c"])
        return response

    model = Says(learns)
    ask(model, X, CLASS)
    assert model.classes_.size == 3  # it was asked


DAYS = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")


CLASSES = [DAYS, DAYS.astype("M8[ns]"), DAYS.astype(object)]
KNOWN = [None, DAYS.tolist(), DAYS.tolist()[::-1], DAYS.astype("M8[ns]")]
POSITIVE = [None, DAYS[1].item(), DAYS[1].astype("M8[s]")]
# any two forms meet
FORMS = [(CLASSES[i], KNOWN[j], POSITIVE[(i + j) % 3]) for i in range(3) for j in range(4)]


@loop_over(("classes", "known", "positive"), FORMS)
def test_the_classes_of_a_model_may_be_dates_in_any_form(classes, known, positive):
    model, other = Says(), Says(lambda response: response[:, ::-1])
    model.classes_ = other.classes_ = classes
    model.predict = lambda X: classes[CLASS]
    options = {"pos_label": positive, "epsilon": 1e6, "split": {"labels": 1, "scores": 1}}
    made = private_evaluate(model, X, classes[CLASS], labels=known, **options)
    assert min(made[name].value for name in ("recall", "roc auc")) > 0.99
    best = private_best(classes[CLASS], [other, model], X=X, metric="log_loss", labels=known, epsilon=1e6)
    assert best == 1
