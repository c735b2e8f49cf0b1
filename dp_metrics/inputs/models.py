"""The one door of models: what a fitted model says of records, which are private, while the model is public.

Exceptions and warnings of a model may quote records, so none of them gets out. What is public of a response,
its columns and the type of its numbers, follows from the model, its method and the form of the targets; with
a private number of records never from the response, because a model is not asked about no record.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_metrics.inputs.arrays import array_of, as_floats, exact, name_key, number_of_records, stated_shape
from dp_metrics.inputs.labels import LabelSet, as_listed, sorted_labels
from dp_metrics.inputs.options import Array, Function, Relation

FAR = float(np.finfo(np.float32).max)
"""A number that no score or target is near to; its square is finite."""
_FAILED = "The model could not predict; run it on records that are not private to see why."
_CALLED = {"predict_proba": "y_proba", "decision_function": "y_score"}
_EVERY_WARNING = ("ignore", None, Warning, None, 0)


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Drop warnings.

    `warnings.catch_warnings` puts a whole list of filters back. With models in several threads that could be
    the list in which another one is silent, for good. So one filter is put in, and the same taken out.
    """
    filters: Any = warnings.filters
    filters.insert(0, _EVERY_WARNING)
    try:
        yield
    finally:
        with suppress(ValueError):  # the model has emptied the list
            filters.remove(_EVERY_WARNING)


def _guarded(question: Function) -> Any:
    """Return what a model answers, or raise one error that holds nothing of the model's own."""
    with _no_warnings(), np.errstate(all="ignore"):
        try:
            return question()
        except KeyboardInterrupt:  # who interrupts sees where the model was
            raise
        except BaseException:
            pass
    # raising outside the handler does not chain the original, which may quote the data
    raise ValueError(_FAILED)


def ask(model: Any, method: str, records: Any) -> Any:
    """Return what a model says of records, as it says it: nothing else in the package calls a model.

    Raises
    ------
    ValueError
        If the model raises anything but KeyboardInterrupt.
    """
    return _guarded(lambda: getattr(model, method)(records))


def _attribute(model: Any, name: str) -> Any:
    """Return an attribute of a model, or None if there is none."""
    return _guarded(lambda: getattr(model, name, None))


def has_method(model: Any, name: str) -> bool:
    """Return whether a model has a method."""
    return _attribute(model, name) is not None


def estimator_type(model: Any) -> Any:
    """Return what a model says that it is, such as "regressor"; None if it says nothing."""
    from sklearn.utils import get_tags  # slow to import

    try:
        with _no_warnings():  # older versions warn of a model without tags
            return get_tags(model).estimator_type
    except AttributeError:  # it has no tags
        return _attribute(model, "_estimator_type")


def response_method(model: Any, methods: Sequence[str]) -> str:
    """Return the first of these methods that a model has."""
    for method in methods:
        if has_method(model, method):
            return method
    raise AttributeError(f"{type(model).__name__} has none of the attributes {', '.join(methods)}.")


def known_labels(*models: Any) -> Array | None:
    """Return the sorted labels that models were trained on; None of numbers, and of several outputs.

    The classes of a model are public where the model is; those among the targets are not.
    """
    known = [as_listed(classes, "classes_") for classes in map(_classes_of, models) if classes is not None]
    return sorted_labels(np.concatenate(known), "classes_") if known else None


def _classes_of(model: Any) -> Array | None:
    """Return the labels of a model in its own order."""
    held = _attribute(model, "classes_")
    return None if held is None or any(np.ndim(one) for one in held) else np.asarray(held)


def response_of(
    model: Any, method: str, records: Any, y: Any, *, labels: Any = None, relation: Relation
) -> Array:
    """Return what a model says of records, of which there may be none; it is asked only where there are.

    Parameters
    ----------
    model : object
        A fitted model.
    method : {"predict", "predict_proba", "decision_function"}
        How it is asked.
    records : array-like
        What it is asked about.
    y : array-like
        The true targets; their form tells how many outputs a model without classes has.
    labels : array-like or None, default=None
        The public labels; None for those of the model.
    relation : Relation
        Whether the number of records is private.

    Returns
    -------
    ndarray
        Predictions, or one column for each sorted label; with a private number of records floats are of
        double precision, because the limit of a log loss follows from their type.

    Raises
    ------
    ValueError
        If the model fails; or if what it says has another form than is public.
    """
    classes = _classes_of(model)
    known = classes if labels is None else LabelSet.of(labels).known
    if relation.private_n and known is None and method == "predict_proba":
        raise ValueError(
            f"{type(model).__name__} has no classes_, which tell the columns of predict_proba even of no "
            "record: pass labels=[...], all that there may be."
        )
    stated = no_response(method, known if classes is None else classes, y)
    if number_of_records(records) == 0:
        response = stated  # most models refuse to predict nothing, and a metric does too if n is public
    else:
        with _no_warnings():  # what a response is yet to compute is computed now
            response = array_of(ask(model, method, records))
    if relation.private_n:
        response = as_float64(response)
    if method == "predict_proba" and _columns(stated) == 2 and _columns(response) == 1:
        response = _of_both(_table(response, method), method)
    is_stated = relation.private_n or (method == "predict_proba" and known is not None)
    if is_stated and _columns(response) != _columns(stated):
        raise ValueError(
            f"{method} of the model should return a column for each of its classes_, or as many as y, of "
            "which a list does not tell: pass y as an array or a data frame."
        )
    if method == "predict" or classes is None or known is None:
        return response
    return columns_by_label(response, method, classes, known)


def no_response(method: str, classes: Array | None, y: Any) -> Array:
    """Return the response to no record, with the columns that it has for any number of records."""
    if classes is None or method == "predict":
        kind = np.float64 if classes is None else classes.dtype
        return np.empty((0, *(stated_shape(y) or ())[1:]), dtype=kind)
    columns = () if method == "decision_function" and classes.size == 2 else (classes.size,)
    return np.empty((0, *columns))


def _columns(array: Array) -> int:
    return math.prod(array.shape[1:]) if array.ndim else 0


def as_float64(array: Array) -> Array:
    """Return floats of any size as float64; anything else stays unchanged."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def columns_by_label(response: Array, method: str, classes: Array, known: Array) -> Array:
    """Return a response with a column for each known label in sorted order, whatever the model has.

    Labels that the model lacks have the probability 0, or a score that is far below any other.

    Parameters
    ----------
    response : ndarray of shape (n_samples,) or (n_samples, n_columns)
        What the model said.
    method : {"predict_proba", "decision_function"}
        How it was asked.
    classes : ndarray of shape (n_columns,)
        The labels of the model, in its order; a single column is that of the second of two.
    known : ndarray of shape (n_classes,)
        The public labels.

    Raises
    ------
    ValueError
        If the model has labels that are not known; or if an object is no number.
    """
    own, wanted = exact(as_listed(classes, "classes_")), exact(sorted_labels(as_listed(known, "labels")))
    if not {*own} <= {*wanted}:
        raise ValueError("labels lacks some of the classes_ of the model: pass all labels that there may be.")
    if own == wanted:
        return response
    columns = _table(response, method)
    if columns.shape[1] == 1 and len(own) == 2:
        columns = _of_both(columns, method)
    if columns.shape[1] != len(own):
        return response
    least = 0.0 if method == "predict_proba" else -FAR
    several = np.full((len(columns), len(wanted)), least, dtype=columns.dtype)
    several[:, [wanted.index(label) for label in own]] = columns
    return several


def _table(response: Array, method: str) -> Array:
    """Return numbers of one or more columns as floats with two dimensions."""
    columns = response.reshape(len(response), _columns(response))
    return columns if columns.dtype.kind == "f" else as_floats(columns, _CALLED[method])


def _of_both(second: Array, method: str) -> Array:
    """Return the columns of both of two labels, given that of the second."""
    return np.hstack([1 - second if method == "predict_proba" else -second, second])


@dataclass(frozen=True, repr=False, eq=False)
class NamedColumns:
    """Private: an array whose columns have names, such as a file or the classes of a model tell.

    Parameters
    ----------
    data : ndarray of shape (n_samples,) or (n_samples, n_columns)
        What it holds.
    columns : tuple of str
        The names.
    """

    data: Array
    columns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.data, dtype=dtype) if copy else np.asarray(self.data, dtype=dtype)


def named_by_labels(response: Any, method: str, labels: Any) -> Any:
    """Return what a model responds with its columns, those of the sorted labels, named by these.

    One column of a decision, which is that of the second of two classes, becomes two, as in scikit-learn.

    Parameters
    ----------
    response : object
        What the model responded; what is no array is returned as it is.
    method : str
        By which of its methods.
    labels : array-like or None
        The public labels, if there are some.
    """
    if method == "predict" or not isinstance(response, np.ndarray) or labels is None:
        return response
    names = tuple(map(name_key, LabelSet.of(labels).known.tolist()))
    if response.ndim == 1 and len(names) == 2 and response.dtype.kind == "f":
        response = _of_both(response[:, np.newaxis], method)
    has_all = response.ndim == 2 and response.shape[1] == len(names)
    return NamedColumns(response, names) if has_all else response
