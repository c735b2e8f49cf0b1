"""What models respond: one record's response changes that of no other, whatever it is."""

import functools
import math
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import telling
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier

import dp_metrics as dp
from dp_metrics import PrivateRandomizedSearch, private_accuracy_score, private_f1_score, private_log_loss
from dp_metrics.inputs.labels import as_listed, places_among
from dp_metrics.metrics import METRICS, NAMES, metric_of
from dp_metrics.model_selection import _trials
from dp_metrics.model_selection._trials import check_records, public_classes, read_response, valid_response

RAISES = telling("array", "bool", "eq", "float", "hash", "iter", "len", "ne")
NOT_AS_OTHERS = [
    "x", None, math.nan, 10**400, 0.5, 1 + 2j, b"x", Decimal("sNaN"), [0.5], [0.5, 0.25, 0.25],
    np.float64(0.3), np.array([]), pd.NA, RAISES,
]  # fmt: skip
USUAL = {  # what a model responds to each of the others, and the training targets
    "predict": [(0.5, [1.0, 2.0]), (1, [0, 1]), (2**60 + 1, [0, 1]), ("ham", ["ham", "spam"])],
    "predict_proba": [(np.array([0.25, 0.75], np.float32), [0, 1]), ([0.25, 0.75], ["ham", "spam"])],
    "decision_function": [(np.float32(0.1), [0, 1])],
}

JUDGING = [name for name, row in METRICS.items() if row.greater_is_better is not None]


def own_metric(y_true, y_pred, *, epsilon, accountant=None):
    return dp.private_mean_loss(np.abs(y_true - y_pred), epsilon=epsilon, accountant=accountant)


@pytest.mark.parametrize("method", USUAL)
def test_one_record_changes_no_other_of_a_response_that_is_a_list(method):
    for name in [*JUDGING, "own"]:
        metric = NAMES.get(name, own_metric)
        row = metric_of(metric)
        for usual, y in USUAL[method] if method in (["predict"] if row is None else row.responses) else ():
            expected = judged(metric, method, [usual] * 6, y)
            for odd in NOT_AS_OTHERS:
                for record in (odd, [odd, 0.5]):
                    found = judged(metric, method, [usual] * 2 + [record] + [usual] * 3, y)
                    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
                    others = np.delete(found, 2, axis=0).tolist()
                    assert others == np.delete(expected, 2, axis=0).tolist(), name


def judged(metric, method, response, y):
    classes = public_classes(DummyClassifier(), y, (method,))
    response = read_response(response, method, classes, y)
    return valid_response(functools.partial(metric), response, np.array(y), classes)


@pytest.mark.parametrize("kind", ["Float32", "float32[pyarrow]"])
def test_a_missing_probability_does_not_change_the_type_of_the_others(kind):
    # the cap of a log loss depends on the type
    columns = pd.DataFrame({"ham": [0.25] * 6, "spam": [0.75] * 6}, dtype=kind)
    columns.iloc[2, 0] = pd.NA
    found = judged(private_log_loss, "predict_proba", columns, ["ham", "spam"])
    assert found.dtype == np.float32
    assert found[2].tolist() == [0.0, 0.75]


FAR = 3.4e38
SCORES = functools.partial(dp.private_average_precision_score, edges=[-9.0, 0.0, 9.0])
VALID = [  # metric, response, what of it is judged; all that is valid is left as it is
    (dp.private_mse, [1.5, math.nan, -math.inf, -5.0], [1.5, FAR, -FAR, -5.0]),
    (dp.private_mean_poisson_deviance, [1.5, -100.0, 0.0], [1.5, 2.2e-16, 2.2e-16]),
    (dp.private_accuracy_score, [1.0, 0.5, -2.5], [1.0, FAR, FAR]),
    (private_log_loss, [[0.25, 0.75], [math.nan, 7.0]], [[0.25, 0.75], [0.0, 1.0]]),
    (SCORES, [1.5, -4.0, math.inf], [1.5, -4.0, FAR]),  # scores with edges of their own are no probabilities
    (private_f1_score, [1, 7], [1, 0]),
]


@pytest.mark.parametrize(("metric", "response", "expected"), VALID)
def test_what_the_metric_refuses_is_moved_to_the_nearest_that_it_takes(metric, response, expected):
    for dtype in (np.float32, np.float64, object):
        found = valid_response(functools.partial(metric), np.array(response, dtype), np.array([0, 1, 2]))
        np.testing.assert_allclose(found.astype(float), expected, rtol=0.02)
        if metric is private_log_loss:  # of which the type is a limit
            assert found.dtype == (dtype if dtype is not object else float)


HOSTILE = [math.nan, math.inf, -math.inf, -1e300, -5.0, -1.0, 0.0, 0.5, 2.0, 1e300]


def test_whatever_a_model_responds_the_metric_takes_what_is_made_of_it():
    for name in [*JUDGING, "own"]:
        metric = NAMES.get(name, own_metric)
        row = metric_of(metric)
        of_numbers = row is None or metric.__module__.endswith("regression")
        for method in ("predict",) if row is None else row.responses:
            for usual, y in USUAL[method][:1] if of_numbers else USUAL[method][method == "predict" :]:
                is_text = isinstance(usual, str)
                response = np.full((10, *np.shape(usual)), usual, dtype=object if is_text else float)
                response[:] = np.reshape(HOSTILE, (-1, *[1] * np.ndim(usual)))
                own = {} if row is None else row.options
                options = {"labels": np.unique(y)} if "labels" in own else {}
                options |= {"pos_label": y[0]} if "pos_label" in own else {}
                found = judged(metric, method, response, y)
                released = metric(np.resize(y, 10), found, epsilon=1e6, **options)
                assert np.isfinite(released).all(), (name, usual)


class Says(ClassifierMixin, BaseEstimator):
    """A model that responds a list of labels."""

    def __init__(self, first):
        self.first = first

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return [self.first, *[1] * (len(X) - 1)]


@pytest.mark.parametrize("metric", [private_accuracy_score, private_f1_score])
def test_one_prediction_of_a_list_does_not_decide_a_search(metric, monkeypatch):
    monkeypatch.setattr(_trials, "geometric", lambda entropy, success: 2)
    y = np.array([0, *[1] * 49])
    for first in (1, "1", None, 10**400, RAISES):
        search = PrivateRandomizedSearch(Says(first), {}, metric=metric, epsilon=1e6, refit=False)
        search.fit(y[:, np.newaxis], y, X_val=np.ones((50, 1)), y_val=np.ones(50, int))
        assert search.best_score_ > 0.95


def test_labels_that_are_times_are_known_whatever_holds_them():
    days = [date(2020, 1, 1), date(2021, 1, 1)]
    said = [days[1], days[0], date(2022, 1, 1), "no date"]
    metric = functools.partial(dp.private_recall_score)
    arrays = [np.array(days, dtype=dtype) for dtype in (object, "M8[D]", "M8[ns]")]
    for labels in (days, *arrays, pd.Series(pd.to_datetime(days))):
        for response in (np.array(said, dtype=object), np.array(said[:3], dtype="M8[ns]")):
            found = valid_response(metric, response, None, labels)
            assert places_among(found, as_listed(labels, "labels")).tolist() == [1, 0, 0, 0][: len(response)]


TOO_MUCH = [1e39, -1e39, math.inf, np.float32(math.inf), Decimal("Infinity"), 10**400, -(2**200)]


@pytest.mark.parametrize("as_list", [True, False], ids=["list", "objects"])
def test_a_validation_record_that_models_refuse_is_refused_before_the_spend(as_list):
    for element in (*TOO_MUCH, 1 + 2j, np.complex64(1), RAISES):
        rows = [[1.0, 2.0]] * 3 + [[1.0, element]]
        if not as_list:
            rows = np.empty((4, 2), dtype=object)
            rows[:] = 1.0
            rows[3, 1] = element
        with pytest.raises(ValueError, match="X_val") as caught:
            check_records([[1.0, 2.0]], rows, allow_nan=True)
        assert "987654" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        if any(element is one for one in TOO_MUCH[:3]):  # which the training records may hold as well
            check_records([[1.0, element]], rows, allow_nan=True)


def test_what_is_missing_elsewhere_is_missing_among_validation_records():
    for element in (None, math.nan, pd.NA, Decimal("NaN"), Decimal("sNaN")):
        with pytest.raises(ValueError, match="something else that is missing"):
            check_records([[1.0]], [[element]], allow_nan=False)
        check_records([[1.0]], [[element]], allow_nan=True)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_are_compared_by_the_names_of_their_columns(table):
    first, other = table({"a": [1.0, 2.0], "b": [3.0, 4.0]}), table({"a": [5.0], "b": [6.0]})
    check_records(first, other, allow_nan=False)
    with pytest.raises(ValueError, match="feature names of X_val"):
        check_records(first, table({"b": [5.0], "a": [6.0]}), allow_nan=False)
