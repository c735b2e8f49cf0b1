"""What is publicly known of a metric that somebody wants to score with: is it private, and is more better."""

import functools
import inspect
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dp_metrics import classification, regression, regression_losses

__all__ = ["READY_MADE", "Metric", "check_metric", "is_better_if_greater", "name_of", "takes"]

Metric: TypeAlias = Callable[..., Any]

# Endings of the names of metrics, as in scikit-learn: of those with a greater and with a lower is better.
_SCORES = ("_score",)
_LOSSES = ("_loss", "_error", "_deviance", "_mse", "_mae", "_rmse")
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
    for name, reason in _NOT_FIXED.items():
        if name in params or name in bound:
            raise ValueError(f"{name} can't be fixed in a scorer: {reason}.")
    if {**bound, **params}.get("multioutput") == "raw_values":
        raise ValueError("multioutput='raw_values' gives several numbers, but a score is one number.")
    needed = {"epsilon": 1.0, "accountant": None}
    try:
        signature = inspect.signature(metric)
        signature.bind(None, None, **needed)
        is_private = needed.keys() <= signature.parameters.keys()
    except (TypeError, ValueError):
        is_private = False
    is_no_metric = _is_ours(metric) and is_better_if_greater(metric) is None  # a report, a quantile
    if is_no_metric or not is_private:
        raise TypeError(
            "metric must be a private metric, a function of (y_true, y_pred) with the keywords epsilon "
            f"and accountant such as private_mse; got {name_of(metric)}."
        )
    try:
        signature.bind(None, None, **needed, **params)
    except TypeError as error:
        raise TypeError(f"{name_of(metric)}: {error}.") from None


def takes(metric: Metric, parameter: str) -> bool:
    """Return whether a metric has this parameter."""
    return parameter in inspect.signature(metric).parameters


def is_better_if_greater(metric: Any) -> bool | None:
    """Return whether more of a metric of this package is better, which its name says; None if unknown."""
    if not _is_ours(metric):
        return None
    name = name_of(metric)
    return True if name.endswith(_SCORES) else False if name.endswith(_LOSSES) else None


def name_of(metric: Any) -> str:
    """Return the name of a metric for people to read."""
    plain = _plain(metric)
    return str(getattr(plain, "__name__", None) or reprlib.repr(plain))


def _plain(metric: Any) -> Any:
    while isinstance(metric, functools.partial):
        metric = metric.func
    return metric


def _is_ours(metric: Any) -> bool:
    return str(getattr(_plain(metric), "__module__", "")).partition(".")[0] == __name__.partition(".")[0]


def _ready_made() -> dict[str, Metric]:
    found = {}
    for module in (classification, regression, regression_losses):
        for metric in (getattr(module, name) for name in module.__all__ if name.startswith("private_")):
            if takes(metric, "y_true"):
                found[metric.__name__ if is_better_if_greater(metric) else f"neg_{metric.__name__}"] = metric
    return found


READY_MADE = _ready_made()
"""Every metric of (y_true, y_pred), by the name of its scorer."""
