"""The public metrics: thin functions, each beside its row of the catalogue."""

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from dp_metrics.metrics import (
    calibration,
    classification,
    confusion,
    curves,
    precision_recall,
    ranking,
    regression,
    regression_losses,
    reports,
    statistics,
    top_k,
)
from dp_metrics.metrics._catalogue import Metric

__all__ = ["FUNCTIONS", "METRICS", "Metric", "metric_of", "unwrapped"]

_MODULES = (
    regression,
    regression_losses,
    classification,
    top_k,
    confusion,
    precision_recall,
    ranking,
    curves,
    calibration,
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


def unwrapped(function: Any) -> Any:
    """Return the function within `functools.partial`, however deep."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def metric_of(function: Callable[..., Any]) -> Metric | None:
    """Return the row of a function of this package, also within `functools.partial`; None for any other."""
    plain = unwrapped(function)
    name = getattr(plain, "__name__", "")
    return METRICS[name] if name in METRICS and FUNCTIONS[name] is plain else None
