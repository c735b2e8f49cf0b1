"""What is publicly known of a metric that somebody wants to score with: is it private, and is more better."""

import functools
import inspect
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dp_metrics.metrics import metric_named, metric_of, unwrapped
from dp_metrics.metrics.scores.table import ScoreTable

PrivateMetric: TypeAlias = Callable[..., Any]
"""A private metric: of this package, a partial of one, or somebody's own function."""

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
    bound = metric.keywords if isinstance(metric, functools.partial) else {}
    fixed = {**bound, **params}
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


def takes(metric: PrivateMetric, parameter: str) -> bool:
    """Return whether a metric has this parameter."""
    row = metric_of(metric)
    if row is not None:
        return parameter in (*row.data, *row.options)
    return parameter in inspect.signature(metric).parameters


def usual_responses(metric: functools.partial[Any]) -> tuple[str, ...]:
    """Return the responses of an estimator that a metric judges, the best first."""
    row = metric_of(metric)
    if row is not None:
        # scikit-learn takes probabilities for areas of one class against the rest
        return row.responses[::-1] if metric.keywords.get("multi_class") == "ovr" else row.responses
    return ("predict_proba",) if takes(metric, "y_proba") else ("predict",)


def wants_probabilities(metric: functools.partial[Any]) -> bool:
    """Return whether a metric judges probabilities: scores with public edges of their own need not be."""
    row = metric_of(metric)
    if row is not None and isinstance(row.usual.postprocess, ScoreTable):
        return metric.keywords.get("edges") is None
    return takes(metric, "y_proba")


def name_of(metric: Any) -> str:
    """Return the name of a metric for people to read."""
    plain = unwrapped(metric_named(metric))
    return str(getattr(plain, "__name__", None) or reprlib.repr(plain))
