"""A release for people, or as JSON. All of it is public, and nothing here can fail because of what it is."""

import json
import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli.budget import state
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.release.interval import Interval
from dp_metrics.release.result import PrivateResult

__all__ = ["show_frame", "show_result"]

_DIGITS = 6
# the budget file may have gone since: the number is paid for all the same
_UNREADABLE = (OSError, ValueError)


def show_result(result: PrivateResult[Any], budget: PrivacyAccountant | None, *, as_json: bool) -> None:
    """Print a result, the free limits of its noise where there are any, and what is left."""
    limits = _limits(result)
    if as_json:
        fields = {name: _plain(value) for name, value in json.loads(result.to_json()).items()}
        fields["noise_interval"] = limits and {
            "lower": _plain(limits.lower),
            "upper": _plain(limits.upper),
            "confidence": limits.confidence,
        }
        _print_json(fields, budget)
        return
    records = "" if result.n is None else f"{result.n:,} {'record' if result.n == 1 else 'records'}, "
    cost = f"(epsilon {_exact(result.epsilon)}, {records}{_words(result.neighboring)}); {_left(budget)}"
    if isinstance(result.value, float):
        print(f"{result.metric} = {_number(result.value)} {cost}")
    else:
        print(f"{result.metric} {cost}\n{_text(result.value)}")
    if limits is not None and isinstance(limits.lower, float):
        lower, upper = _outwards(limits.lower, ROUND_FLOOR), _outwards(limits.upper, ROUND_CEILING)
        print(
            f"limits of its noise, with probability {limits.confidence * 100:g} %: {lower} to {upper} "
            "(of the exact value for these records, not of people at large)"
        )


def show_frame(
    frame: PrivateMetricFrame,
    metric: str,
    spend_name: str | None,
    budget: PrivacyAccountant | None,
    *,
    as_json: bool,
) -> None:
    """Print the values of a frame by group, and what is left."""
    if as_json:
        sizes = frame.group_sizes or {}
        by_group = [
            {"group": group, "value": _plain(value), "size": _plain(sizes.get(group))}
            for group, value in frame.by_group.items()
        ]
        fields = {
            "metric": metric,
            "epsilon": frame.epsilon,
            "neighboring": frame.neighboring,
            "membership": frame.membership,
            "spend_name": spend_name,
            "overall": _plain(frame.overall),
            "by_group": by_group,
        }
        _print_json(fields, budget)
        return
    print(
        f"{metric} by group (epsilon {_exact(frame.epsilon)}, {_words(frame.neighboring)}); {_left(budget)}"
    )
    width = max(map(len, map(str, ("overall", *frame.by_group))))
    for group, value in {"overall": frame.overall, **frame.by_group}.items():
        size = (frame.group_sizes or {}).get(group)
        records = "" if size is None else f"  (about {_number(size)} records)"
        print(f"  {str(group).ljust(width)}  {_text(value)}{records}")


def _print_json(fields: Mapping[str, Any], budget: PrivacyAccountant | None) -> None:
    left = None
    if budget is not None:
        try:
            left = state(budget)
        except _UNREADABLE:
            left = {"path": budget.path, "total": budget.total, "spent": None, "remaining": None}
    print(json.dumps({**fields, "budget": left}, indent=2))


def _limits(result: PrivateResult[Any]) -> Interval | None:
    try:
        return result.noise_interval()
    except (ValueError, ArithmeticError):  # the result may have no limits, or no float may hold them
        return None


def _left(budget: PrivacyAccountant | None) -> str:
    if budget is None:
        return "no budget was charged"
    try:
        return f"epsilon left {_exact(budget.remaining)}"
    except _UNREADABLE:
        return "its budget was charged, but can't be read any more"


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")


def _words(neighboring: str) -> str:
    return neighboring.replace("_", " ")


def _number(value: float) -> str:
    return f"{value:.{_DIGITS}g}"


def _outwards(limit: float, rounding: str) -> str:
    """Return a limit rounded away from the value, so that it still holds."""
    if not math.isfinite(limit):
        return _number(limit)
    return f"{Context(prec=_DIGITS, rounding=rounding).create_decimal_from_float(limit):g}"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):  # the result is a named tuple, or one without names
        parts = zip(getattr(value, "_fields", range(len(value))), value, strict=True)
        return "\n".join(f"{name}: {_text(part)}" for name, part in parts)
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=_DIGITS, suppress_small=True, separator=", ")
    return json.dumps(_plain(value), indent=2)


def _plain(value: Any) -> Any:
    """Return what JSON can hold; null for what is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
