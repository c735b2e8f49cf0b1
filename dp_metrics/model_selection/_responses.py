"""What a model responds to private records, read and made valid one record at a time.

A list is never made an array at once: one record's text would make text of every number, one float a rounded
number of every large integer, and one row of another length would make the whole unreadable. An array has a
type of its own, which says nothing of a record.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import as_listed, places_among
from dp_metrics.inputs.models import FAR
from dp_metrics.inputs.shape import type_of_floats
from dp_metrics.metrics import metric_of
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.model_selection._metric_facts import wants_probabilities

_NO_NUMBERS = (str, bytes, complex, np.complexfloating)


def read_response(response: Any, method: str, model: Any, public_model: Any, y: Any) -> Any:
    """Return a model's response to records as an array, with what cannot be read made None or NaN.

    Parameters
    ----------
    response : array-like
        What the model responded. A sparse matrix is returned as it is.
    method : str
        By which of its methods.
    model, public_model : object
        The classes of the first, or else of the second, tell how many columns a list of rows should have.
    y : array-like
        Public targets, which tell the columns of predictions.
    """
    if issparse(response):
        return response
    records = response
    if not isinstance(response, list | tuple):
        records = np.asarray(response)
        if records.dtype.kind != "O" or records.ndim == 0:
            return records
    shape = _shape_of_record(method, model, public_model, y)
    columns = math.prod(shape)
    array = np.empty((len(records), columns), dtype=object)
    for row, record in zip(array, records, strict=True):
        for column, element in enumerate(_elements(record, columns)):
            row[column] = element  # NumPy would look into a list of them
    array = array.reshape(len(records), *shape)
    return array if method == "predict" else _numbers(array).astype(type_of_floats(response, array))


def _shape_of_record(method: str, model: Any, public_model: Any, y: Any) -> tuple[int, ...]:
    if method == "predict":
        shape = np.asarray(y).shape[1:]
        return () if math.prod(shape) == 1 else shape
    own = getattr(model, "classes_", None)
    classes = len(own if isinstance(own, np.ndarray) else public_model.classes_)
    return () if method == "decision_function" and classes == 2 else (classes,)


def _elements(record: Any, columns: int) -> list[Any]:
    """Return what a record consists of; one probability is that of the second of two classes."""
    found = [record]
    if isinstance(record, list | tuple | np.ndarray):
        found = record.ravel().tolist() if isinstance(record, np.ndarray) else list(record)
    if len(found) == 1 and columns == 2:
        second = _number(found[0])
        return [1.0 - second, second]
    return found if len(found) == columns else [None] * columns


def _numbers(array: NDArray[Any]) -> Floats:
    """Return objects as float64, each by itself; NaN for what is no number."""
    numbers = np.fromiter(map(_number, array.ravel().tolist()), dtype=np.float64, count=array.size)
    return numbers.reshape(array.shape)


def _number(element: Any) -> float:
    if isinstance(element, _NO_NUMBERS):
        return math.nan
    try:
        try:
            return float(element)
        except OverflowError:
            return math.inf if element > 0 else -math.inf
    except Exception:  # an object may raise what it likes, and its message may hold what it likes
        return math.nan


def valid_response(metric: partial[Any], response: Any, y: Any, labels: Any = None) -> Any:
    """Return a model's response to records with each that the metric would refuse made valid.

    Each element is judged by itself. Numbers are moved to the nearest that the metric takes. NaN, and what is
    no number, which are near to none, become a number that no target is near to, or the probability 0.

    Parameters
    ----------
    metric : functools.partial
        A metric with its keywords. Of a metric that is not of this package nothing is known but whether it
        takes `y_proba`; any other gets finite numbers of any size, and what is not a float as it is.
    response : ndarray of shape (n_samples,) or (n_samples, n_columns)
        What `read_response` returned.
    y : array-like
        Public targets, which tell whether labels are text.
    labels : array-like or None, default=None
        The public label set, for a metric that takes no other labels: those become its first. None: 0 and 1.
    """
    if issparse(response):
        return response  # every metric of this package refuses a sparse response, whatever it holds
    row = metric_of(metric)
    array = np.asarray(response)
    if wants_probabilities(metric):
        array = _numbers(array) if array.dtype.kind == "O" else array
        return np.clip(np.nan_to_num(array, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    if row is not None and isinstance(row.usual.postprocess, Confusion):
        known = as_listed([0, 1] if labels is None else labels, "labels")
        # any other becomes the first
        return known[np.maximum(places_among(array.ravel(), known), 0)].reshape(array.shape)
    if row is not None and row.predicts_labels:
        return _valid_labels(array, np.asarray(y))
    if array.dtype.kind == "O" and (row is not None or np.asarray(y).dtype.kind in "biuf"):
        array = _numbers(array)
    if row is not None and array.dtype.kind in "biuf":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        return array
    array = array.astype(np.promote_types(array.dtype, np.float32))  # float32 holds FAR
    array = np.nan_to_num(array, nan=FAR, posinf=FAR, neginf=-FAR)
    return array if row is None else np.maximum(array, row.lowest_prediction)


def _valid_labels(labels: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    is_text = y.dtype.kind == "U" or (y.dtype.kind == "O" and isinstance(y.ravel()[0], str))
    if labels.dtype.kind in ("U" if is_text else "biu"):
        return labels
    if labels.dtype.kind == "f" and not is_text:
        return np.where(labels == np.floor(np.nan_to_num(labels, nan=0.5, posinf=0.5)), labels, FAR)
    valid = np.empty(labels.shape, dtype=object)
    valid.ravel()[:] = [_valid_label(label, is_text) for label in labels.ravel().tolist()]
    return valid


def _valid_label(label: Any, is_text: bool) -> Any:
    if is_text:
        return label if isinstance(label, str) else ""
    if isinstance(label, int | np.integer | np.bool_):
        return int(label)
    number = _number(label)
    return number if number.is_integer() else FAR
