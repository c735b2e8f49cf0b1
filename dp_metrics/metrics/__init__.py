"""The public metrics by their names, and what each name means."""

import functools
from importlib import import_module
from itertools import product
from types import MappingProxyType
from typing import Any

from dp_metrics.inputs.options import Function, did_you_mean
from dp_metrics.metrics._metric import METRICS as METRICS, Metric as Metric

for _name in (  # the order of the documentation: each adds its metrics to `METRICS`
    "regression",
    "classification",
    "labels.metrics",
    "scores.curves",
    "statistics",
):
    import_module(f"{__name__}.{_name}")


def unwrapped(function: Any) -> Any:
    """Return the function within `functools.partial`, however deep."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def metric_of(function: Function) -> Metric | None:
    """Return the row of a function of this package, also within `functools.partial`; None for any other."""
    plain = unwrapped(function)
    row = METRICS.get(getattr(plain, "__name__", ""))
    return row if row is not None and row.function is plain else None


def _names() -> dict[str, Function]:
    """Return every metric by all its names; where two would share one, the longer name has it."""
    plain = [(row, row.name.removeprefix("private_")) for row in METRICS.values()]
    names = plain + [(row, row.exact_function.rpartition(".")[2] or name) for row, name in plain]
    found: dict[str, Function] = {}
    for suffix in ("", "_loss", "_score"):
        names = [(row, name.removesuffix(suffix)) for row, name in names]
        for row, name in names:
            prefixes = ("", "private_", "neg_", "neg_private_")
            for prefix in prefixes[: 4 if row.greater_is_better is False else 2]:
                found.setdefault(prefix + name, row.function)
    for metric, average in product(("precision", "recall", "f1", "jaccard"), ("macro", "micro", "weighted")):
        found[f"{metric}_{average}"] = functools.partial(found[metric], average=average)
    found["roc_auc_ovr"] = functools.partial(found["roc_auc"], multi_class="ovr")
    return found


NAMES = MappingProxyType(_names())
"""Every metric by each of its names: that of its function and of the exact one, with or without "private_",
"_score" and "_loss", and as scikit-learn's scorers are called. A loss may have "neg_" before its name, which
negates the number where a score is asked for and says nothing elsewhere."""


def metric_named(metric: Any) -> Any:
    """Return the function of a metric, or a partial of it, by any of its names; what is no text as it is.

    Raises
    ------
    ValueError
        If no metric has this name.
    """
    if not isinstance(metric, str):
        return metric
    if metric not in NAMES:
        known = ", ".join(name.removeprefix("private_") for name in METRICS)
        meant = did_you_mean(metric, NAMES) or f" It is one of {known}."
        raise ValueError(f"There is no metric {metric!r}.{meant}")
    return NAMES[metric]


def row_of(metric: Any, what: str = "metric") -> tuple[Metric, dict[str, Any]]:
    """Return the row of a metric of this package and the keywords that it comes with.

    Parameters
    ----------
    metric : callable or str
        The function, a `functools.partial` of it, or one of its names.
    what : str, default="metric"
        What the caller calls it.

    Raises
    ------
    ValueError, TypeError
        If no metric has this name, or it is none.
    """
    function = metric_named(metric)
    row, keywords = metric_of(function), dict[str, Any]()
    while isinstance(function, functools.partial):
        row = None if function.args else row
        keywords, function = {**function.keywords, **keywords}, function.func
    if row is None:
        raise TypeError(
            f"{what} must be a private metric of this package, such as private_mse, its name, or a partial "
            "of it that fixes keywords only."
        )
    return row, keywords
