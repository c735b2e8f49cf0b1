"""The whole result of a release, from a function that returns its value only."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar, cast

from dp_metrics.release.result import PrivateResult

P = ParamSpec("P")
T = TypeVar("T")

_RELEASES: dict[FunctionType, Callable[..., PrivateResult[Any]]] = {}
"""What makes the result of each function, from all its arguments by name."""


def set_result(function: Callable[..., Any], release: Callable[..., PrivateResult[Any]]) -> None:
    """Let `with_result` serve a function that returns the value of what this release returns.

    Parameters
    ----------
    function : function
        A function, or a method of a class, which comes first among its arguments.
    release : callable
        Takes all arguments of the function by name.
    """
    _RELEASES[cast(FunctionType, function)] = release


def with_result(metric: Callable[P, T]) -> Callable[P, PrivateResult[T]]:
    """Return a metric that returns its `PrivateResult`: the value with all that may be published about it.

    Parameters
    ----------
    metric : callable
        A metric of this package or of `dp_metrics.distributed`, the method `release` of a `LossSummary` or a
        `VarianceSummary`, or a `functools.partial` of one of these.

    Returns
    -------
    callable
        Takes the same arguments, spends the same epsilon and draws the same value. It can be pickled if the
        metric can.

    Raises
    ------
    TypeError
        If metric is none of these.

    Notes
    -----
    Guarantee: that of the metric. All that a `PrivateResult` holds costs epsilon together.

    Examples
    --------
    >>> from dp_metrics import private_mae, with_result
    >>> result = with_result(private_mae)([3.0, 1.0] * 500, [2.0, 1.0] * 500, epsilon=1.0)
    >>> result.value >= 0, result.epsilon, result.n
    (True, 1.0, 1000)
    >>> lower, upper = result.noise_interval()
    """
    if isinstance(metric, functools.partial):
        served = functools.partial(with_result(metric.func), *metric.args, **metric.keywords)
        return cast(Callable[P, PrivateResult[T]], served)
    function, own = (metric.__func__, [metric.__self__]) if isinstance(metric, MethodType) else (metric, [])
    if not isinstance(function, FunctionType) or function not in _RELEASES:
        raise TypeError(
            "with_result takes a metric of dp_metrics or dp_metrics.distributed, the release of a "
            "LossSummary or a VarianceSummary, or a functools.partial of one of these."
        )
    return cast(Callable[P, PrivateResult[T]], functools.partial(_result, function, *own))


def _result(function: FunctionType, /, *args: Any, **kwargs: Any) -> PrivateResult[Any]:
    return _RELEASES[function](**arguments_of(function, args, kwargs))


def arguments_of(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of a call by name, with the defaults; raise TypeError as the call would."""
    try:
        call = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        problem = str(error).replace("too many", "takes options by their names only: too many")
    else:
        call.apply_defaults()
        return call.arguments
    raise TypeError(f"{function.__name__}() {problem}")
