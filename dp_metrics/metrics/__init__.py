"""The public metrics: thin functions, each beside its row of the catalogue."""

import functools
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from dp_metrics.inputs.names import did_you_mean
from dp_metrics.metrics import classification, other_losses, regression_errors, reports, statistics
from dp_metrics.metrics._catalogue import Metric
from dp_metrics.metrics.labels import confusion, precision_recall
from dp_metrics.metrics.scores import calibration, curves, roc_auc, top_k
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.stored.answers import Answer, read_result, restores
from dp_metrics.release.with_result import set_result

__all__ = [
    "FUNCTIONS",
    "METRICS",
    "Metric",
    "metric_named",
    "metric_names",
    "metric_of",
    "row_of",
    "unwrapped",
]

_MODULES = (
    regression_errors,
    other_losses,
    classification,
    precision_recall,
    confusion,
    roc_auc,
    curves,
    calibration,
    top_k,
    statistics,
    reports,
)

METRICS = MappingProxyType(
    {row.name: row for module in _MODULES for row in vars(module).values() if isinstance(row, Metric)}
)
"""Every public metric by the name of its function, in the order of the documentation."""

FUNCTIONS = MappingProxyType(
    {name: vars(module)[name] for module in _MODULES for name in METRICS if name in vars(module)}
)
"""The function of every metric."""

for _name, _function in FUNCTIONS.items():
    set_result(_function, METRICS[_name].release)


def unwrapped(function: Any) -> Any:
    """Return the function within `functools.partial`, however deep."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


@restores("metric")
def _restored(answer: Answer) -> PrivateResult[Any]:
    asked = answer.question
    if asked is None:  # an option of a type of somebody else, so that the plan cannot be made again
        return read_result(answer.results[0], None)
    return METRICS[asked["metric"]].restored(asked, answer)


def metric_of(function: Callable[..., Any]) -> Metric | None:
    """Return the row of a function of this package, also within `functools.partial`; None for any other."""
    plain = unwrapped(function)
    name = getattr(plain, "__name__", "")
    return METRICS[name] if name in METRICS and FUNCTIONS[name] is plain else None


def metric_named(name: str) -> Metric | None:
    """Return the row of a metric by its name or that of its exact function; None if there is none.

    Neither "private" before nor "score" or "loss" behind the name is needed: "mse", "accuracy", "brier".
    """
    for full in (name, f"private_{name}"):
        if full in METRICS:
            return METRICS[full]
    for row in METRICS.values():
        if _short(name) in (_short(row.name), _short(_exact_name(row) or row.name)):
            return row
    return None


def metric_names(rows: Iterable[Metric]) -> list[str]:
    """Return all names of these metrics, to suggest one of them: see `metric_named`."""
    full = [name for row in rows for name in (row.name, _exact_name(row) or row.name)]
    return list(dict.fromkeys([*full, *(name.removeprefix("private_") for name in full), *map(_short, full)]))


def _exact_name(row: Metric) -> str:
    """Return the name of the exact function; "" if there is none."""
    return row.exact_function.rpartition(".")[2]


def _short(name: str) -> str:
    return name.removeprefix("private_").removesuffix("_loss").removesuffix("_score")


def row_of(metric: Any) -> Metric:
    """Return the row of a metric, or of its name; raise TypeError for any other."""
    row = metric_named(metric) if isinstance(metric, str) else metric_of(metric) if callable(metric) else None
    if row is None:
        raise TypeError(
            "metric must be a private metric of this package, such as private_mse, or its name."
            f"{did_you_mean(metric, metric_names(METRICS.values()))}"
        )
    return row
