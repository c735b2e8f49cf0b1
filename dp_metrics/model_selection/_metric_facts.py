"""What is publicly known of a metric that somebody wants to score with: is it private, and is more better."""

import functools
import inspect
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dp_metrics.metrics import FUNCTIONS, METRICS, metric_of, unwrapped

__all__ = [
    "READY_MADE",
    "Scored",
    "as_float64",
    "check_metric",
    "fixed_keywords",
    "is_better_if_greater",
    "is_n_private",
    "name_of",
    "takes",
    "usual_responses",
    "valid_response",
    "wants_probabilities",
    "with_all_classes",
]

Scored: TypeAlias = Callable[..., Any]
"""A private metric: of this package, a partial of one, or somebody's own function."""

_FAR = float(np.finfo(np.float32).max)  # whose square is finite, for metrics that are not of this package
_NOT_FIXED = {
    "random_state": "a seed would give every fold the same noise, and no privacy",
    "accountant": "pass it as accountant",
    "epsilon": "pass it as epsilon, for each call",
    "sample_weight": "pass it with the records, in the call",
}


def check_metric(metric: Any, params: Mapping[str, Any]) -> None:
    """Check that a metric is private, and that it takes these keywords.

    Raises
    ------
    TypeError
        If it is not a function of (y_true, y_pred, *, epsilon, accountant), or does not take a keyword.
    ValueError
        If a keyword cannot be the same in every call.
    """
    fixed = fixed_keywords(metric, params)
    for name, reason in _NOT_FIXED.items():
        if name in fixed:
            raise ValueError(f"{name} can't be fixed in a scorer: {reason}.")
    multioutput = fixed.get("multioutput")
    if isinstance(multioutput, str) and multioutput == "raw_values":
        raise ValueError("multioutput='raw_values' gives several numbers, but a score is one number.")
    if fixed.get("average", "") is None:
        raise ValueError("average=None gives several numbers, but a score is one number.")
    needed = {"epsilon": 1.0, "accountant": None}
    try:
        signature = inspect.signature(metric)  # somebody's own function has no row to ask
        signature.bind(None, None, **needed)
        is_private = needed.keys() <= signature.parameters.keys()
    except (TypeError, ValueError):
        is_private = False
    row = metric_of(metric)
    is_no_score = row is not None and row.greater_is_better is None  # a report, a quantile
    if is_no_score or not is_private:
        raise TypeError(
            "metric must be a private metric, a function of (y_true, y_pred) with the keywords epsilon "
            f"and accountant such as private_mse; got {name_of(metric)}."
        )
    try:
        signature.bind(None, None, **needed, **params)
    except TypeError as error:
        raise TypeError(f"{name_of(metric)}: {error}.") from None


def takes(metric: Scored, parameter: str) -> bool:
    """Return whether a metric has this parameter."""
    row = metric_of(metric)
    if row is not None:
        return parameter in (*row.data, *row.options)
    return parameter in inspect.signature(metric).parameters


def usual_responses(metric: Scored) -> tuple[str, ...]:
    """Return the responses of an estimator that a metric judges, the best first."""
    row = metric_of(metric)
    if row is not None:
        return row.responses
    return ("predict_proba",) if takes(metric, "y_proba") else ("predict",)


def wants_probabilities(metric: Scored) -> bool:
    """Return whether a metric judges probabilities: scores with public edges of their own need not be."""
    row = metric_of(metric)
    bound = metric.keywords if isinstance(metric, functools.partial) else {}
    if row is not None and row.is_score_table:
        return bound.get("edges") is None
    return takes(metric, "y_proba")


def with_all_classes(response: Any, method: str, model: Any, public_model: Any) -> Any:
    """Return a model's response with a column for each public class: those that the model lacks come last.

    Parameters
    ----------
    response : array-like
        What the model responded.
    method : str
        By which of its methods.
    model, public_model : object
        Their `classes_` are compared, if both have some.
    """
    own, known = (getattr(one, "classes_", None) for one in (model, public_model))
    if method == "predict" or not isinstance(own, np.ndarray) or not isinstance(known, np.ndarray):
        return response
    array, present = np.asarray(response), np.isin(known, own)
    if present.all() or present.sum() < len(own):  # nothing is missing, or the metric will refuse the others
        return response
    if array.ndim == 1 and len(own) == 2:
        array = np.stack([-array, array], axis=1)
    kind = array.dtype if array.dtype.kind == "f" else np.float64
    least = 0.0 if method == "predict_proba" else -_FAR
    several = np.full((len(array), len(known)), least, dtype=kind)
    several[:, present] = array.reshape(len(array), -1)
    return several


def is_better_if_greater(metric: Any) -> bool | None:
    """Return whether more of a metric of this package is better; None if unknown."""
    row = metric_of(metric)
    return None if row is None else row.greater_is_better


def is_n_private(metric: Scored, params: Mapping[str, Any]) -> bool:
    """Return whether the keywords of a metric say that the number of records is private."""
    return bool(fixed_keywords(metric, params).get("neighboring") == "add_or_remove_one")


def fixed_keywords(metric: Scored, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of every call: of a partial, and those given besides."""
    bound = metric.keywords if isinstance(metric, functools.partial) else {}
    return {**bound, **params}


def as_float64(response: Any) -> Any:
    """Return a response of floats of any size as float64, another one as it is."""
    array = response if isinstance(response, np.ndarray) else None
    if array is None and hasattr(response, "to_numpy"):
        array = response.to_numpy()
    return response if array is None or array.dtype.kind != "f" else array.astype(np.float64)


def valid_response(metric: Scored, response: Any, y: Any, labels: Any = None) -> Any:
    """Return a model's response to records with each that the metric would refuse made valid.

    Each element is judged by itself. Numbers are moved to the nearest that the metric takes. NaN, which is
    near to none, becomes a number that no target is near to, or the probability 0.

    Parameters
    ----------
    metric : callable
        A metric. Of a metric that is not of this package nothing is known but whether it takes `y_proba`; any
        other gets finite numbers of any size, and what is not a float as it is.
    response : array-like of shape (n_samples,) or (n_samples, n_columns)
        What the model responded.
    y : array-like
        Public targets, which tell whether labels are text.
    labels : array-like or None, default=None
        The public label set, for a metric that takes no other labels: those become its first. None: 0 and 1.
    """
    if issparse(response):
        return response  # which every metric of this package refuses, whatever it holds
    row = metric_of(metric)
    array = np.asarray(response)
    if wants_probabilities(metric):
        return np.clip(np.nan_to_num(array, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    if row is not None and row.is_confusion:
        return _known_labels(array, [0, 1] if labels is None else np.asarray(labels).tolist())
    if row is not None and row.predicts_labels:
        return _valid_labels(array, np.asarray(y))
    if row is not None:
        array = array.astype(np.float64) if array.dtype.kind in "biufO" else array
    elif array.dtype.kind != "f":
        return response
    if array.dtype.kind != "f":
        return array
    array = array.astype(np.promote_types(array.dtype, np.float32))  # of which _FAR is one
    array = np.nan_to_num(array, nan=_FAR, posinf=_FAR, neginf=-_FAR)
    return array if row is None else np.maximum(array, row.lowest_prediction)


def _valid_labels(labels: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    is_text = y.dtype.kind == "U" or (y.dtype.kind == "O" and isinstance(y.ravel()[0], str))
    if labels.dtype.kind in ("U" if is_text else "biu"):
        return labels
    if labels.dtype.kind == "f" and not is_text:
        return np.where(labels == np.floor(np.nan_to_num(labels, nan=0.5, posinf=0.5)), labels, _FAR)
    valid = np.empty(labels.shape, dtype=object)
    valid.ravel()[:] = [_valid_label(label, is_text) for label in labels.ravel().tolist()]
    return valid


def _known_labels(labels: NDArray[Any], known: list[Any]) -> NDArray[Any]:
    """Return labels of one column of the type of the known ones, with the first of those for any other."""
    found = set(known)
    valid = [label if _is_among(label, found) else known[0] for label in labels.ravel().tolist()]
    one_type = np.array(known)
    if one_type.dtype.kind in "biufU":
        return np.array(valid, dtype=one_type.dtype).reshape(labels.shape)
    several = np.empty(labels.shape, dtype=object)
    several.ravel()[:] = valid
    return several


def _is_among(label: Any, known: set[Any]) -> bool:
    try:
        return label in known
    except TypeError:  # not hashable, so no label
        return False


def _valid_label(label: Any, is_text: bool) -> Any:
    if is_text:
        return label if isinstance(label, str) else ""
    whole = isinstance(label, int) or (isinstance(label, float) and label.is_integer())
    return label if whole else _FAR


def name_of(metric: Any) -> str:
    """Return the name of a metric for people to read."""
    plain = unwrapped(metric)
    return str(getattr(plain, "__name__", None) or reprlib.repr(plain))


READY_MADE: dict[str, Scored] = {
    name if row.greater_is_better else f"neg_{name}": FUNCTIONS[name]
    for name, row in METRICS.items()
    if row.greater_is_better is not None
}
"""Every metric that judges a model, by the name of its scorer."""
