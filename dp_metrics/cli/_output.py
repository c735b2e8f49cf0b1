"""What commands show: a release for people, or as JSON; and a budget, which pays for it."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting.ledgers import FileLedger
from dp_metrics.cli._common import CommandError, add_json, add_option, exact_epsilon, refusals, tell
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.release.released import Interval
from dp_metrics.release.result import Result

_WIDEST = 40
_COLUMNS = ("time (UTC)", "epsilon", "spend name", "value", "mechanism", "neighbours")


@dataclass(frozen=True)
class Payer:
    """The budget that was typed, in a file that need not exist yet.

    Parameters
    ----------
    path : Path or None
        The file; None: nobody keeps count.
    total : float, Fraction or None
        The total of the budget; None: that of the file, which must exist.
    """

    path: Path | None
    total: "float | Fraction | None"

    @classmethod
    def typed(cls, options: argparse.Namespace) -> Self:
        """Return what the options of `add_payer` say."""
        if options.budget is None and options.total:
            raise CommandError("--total needs --budget, the file that keeps what is spent")
        return cls(options.budget, options.total)

    def known(self) -> PrivacyAccountant | None:
        """Return the budget in a file that exists, whatever is left of it; else None."""
        return None if self.path is None or not self.path.exists() else self._there(self.path)

    def opened(self, epsilon: "float | Fraction") -> PrivacyAccountant | None:
        """Return the budget, created only if a total says so, if it has this much left."""
        if self.path is None:
            return None
        if not self.path.exists():
            if self.total is None:
                raise CommandError(
                    f"there is no budget file {self.path}; to create it, pass --total T as well"
                )
            with refusals():
                PrivacyAccountant(self.total).require(epsilon)  # a budget that can't pay leaves no file
        budget = self._there(self.path)
        with refusals():
            budget.require(epsilon)
        return budget

    def _there(self, path: Path) -> PrivacyAccountant:
        with refusals():
            return PrivacyAccountant(FileLedger.total_of(path) if self.total is None else self.total, path)


def state(budget: PrivacyAccountant) -> dict[str, Any]:
    """Return what is spent and what is left."""
    return {
        "path": budget.path,
        "total": budget.total,
        "spent": budget.spent,
        "remaining": budget.remaining,
    }


def _budget(options: argparse.Namespace) -> None:
    path: Path = options.file
    if not path.is_file():
        raise CommandError(f"there is no budget file {path}")
    with refusals():
        budget = PrivacyAccountant(FileLedger.total_of(path), path)
        history = budget.results()
    if options.json:
        names = ("spend_name", "epsilon", "mechanism", "neighboring", "value")
        spends = [
            {"time": spend.time.isoformat(), **{name: getattr(spend, name) for name in names}}
            for spend in history
        ]
        print(json.dumps({**state(budget), "history": spends}, indent=2))
        return
    print(f"total {budget.total!r}, spent {budget.spent!r}, left {budget.remaining!r}")
    if not history:
        return
    rows = [_COLUMNS] + [
        (
            f"{spend.time:%Y-%m-%d %H:%M:%S}",
            repr(spend.epsilon),
            _one_line(spend.spend_name),
            _shown(spend.value),
            spend.mechanism or "",
            spend.neighboring.replace("_", " "),
        )
        for spend in history
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _shown(value: float | str | None) -> str:
    """Return a value as a list of them shows it."""
    if value is None:
        return "none stored"
    line = f"{value:.6g}" if isinstance(value, float) else _one_line(value)
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."


def _one_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name)


def add_budget(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Show the total of a budget file, what is spent and for what, the values that were bought, and what "
        "is left."
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="budget file, as --budget of `score` names it"
    )
    add_json(parser)
    parser.set_defaults(run=_budget)


def add_payer(parser: argparse.ArgumentParser, function: Callable[..., Any], **epsilon: Any) -> None:
    """Add the options that say what a release of a function costs, who pays, and how it is shown."""
    add_option(parser, function, "epsilon", **epsilon)
    parser.add_argument("--budget", type=Path, metavar="FILE", help="budget file that pays for it")
    total = "total of the budget, which creates the file if there is none; else it must be the same"
    parser.add_argument("--total", type=exact_epsilon, metavar="T", help=total)
    add_option(parser, function, "spend_name")
    add_json(parser)


INTERVALS = {
    "noise": "noise_interval",
    "people": "population_interval",
    "sure": "sure_population_interval",
}
"""What limits may be limits of, with their names in JSON."""

_DIGITS = 6
# the budget file may have gone since: the number is paid for all the same
_UNREADABLE = (OSError, ValueError)
_WORDS = {
    "noise": (
        "limits of its noise, with probability",
        "of the exact value for these records",
    ),
    "people": ("limits among all people like these, with confidence", ""),
    "sure": ("sure limits among all people like these, with confidence", ""),
}


@dataclass(frozen=True)
class Limits:
    """Which limits to show beside a release, at no cost.

    Parameters
    ----------
    kinds : sequence of str, default=()
        Of `INTERVALS`. Empty: those of the noise of one number, where there are any.
    confidence : float, default=0.95
        Of each of them.
    """

    kinds: Sequence[str] = ()
    confidence: float = 0.95

    def of(self, released: Result[Any] | PrivateMetricFrame, **more: Any) -> dict[str, Any]:
        """Return the limits by their kind, without those that there are none of; say why there are none."""
        found = {}
        for kind in dict.fromkeys(self.kinds or ["noise"]):
            try:
                found[kind] = _told(released, kind, confidence=self.confidence, **more)
            except Exception as error:  # the number is paid for all the same
                if self.kinds:
                    tell("warning", f"no limits of the kind {kind!r}: {error}")
        return found


def _told(released: Any, kind: str, **asked: Any) -> Any:
    if kind == "noise":
        return released.noise_interval(**asked)
    return released.population_interval(**asked, sure=kind == "sure")


@contextmanager
def printed() -> Iterator[None]:
    """Say so if what is paid for can't be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:  # a full disk, or a reader that went away
        with suppress(OSError):
            sys.stdout.close()  # the end of the process would complain again
        raise CommandError(f"epsilon was spent, but the result can't be written: {error.strerror}") from None


def show_result(
    result: Result[Any], budget: PrivacyAccountant | None, limits: Limits, *, as_json: bool
) -> None:
    """Print a result, the free limits that were asked for, and what is left."""
    if as_json:
        found = limits.of(result)
        fields = {name: _plain(value) for name, value in json.loads(result.to_json()).items()}
        print_json(fields | _fields_of(found, ["noise", *limits.kinds]), budget)
        return
    cost = terms(result.epsilon, result.neighboring, budget, result.n)
    if isinstance(result.value, float):
        print(f"{result.metric} = {_number(result.value)} {cost}")
    else:
        print(f"{result.metric} {cost}\n{_text(result.value)}")
    # a report that is text has its own words for it
    for told in (result.note, None if isinstance(result.value, str) else result.bias):
        if told is not None:
            print(told)
    sys.stdout.flush()  # limits may take their time
    for kind, interval in limits.of(result).items():
        if limits.kinds or isinstance(interval.lower, float):
            begin, end = _WORDS[kind]
            more = " ".join(filter(None, [end, interval.note])) if kind != "noise" else end
            print(f"{begin} {limits.confidence * 100:g} %: {_ends(interval)}{f' ({more})' if more else ''}")


def show_frame(
    frame: PrivateMetricFrame,
    metric: str,
    spend_name: str | None,
    budget: PrivacyAccountant | None,
    limits: Limits,
    *,
    as_json: bool,
) -> None:
    """Print the values of a frame by group, the free limits that were asked for, and what is left."""
    sizes = frame.group_sizes or {}
    if as_json:
        of_groups, of_gap = _of_frame(frame, limits)
        by_group = [
            {"group": group, "value": _plain(value), "size": _plain(sizes.get(group))}
            | {"note": frame.note[group], "bias": frame.bias[group]}
            | _fields_of({kind: one.get(group) for kind, one in of_groups.items()}, limits.kinds)
            for group, value in frame.by_group.items()
        ]
        fields = {
            "metric": metric,
            "epsilon": frame.epsilon,
            "neighboring": frame.neighboring,
            "membership": frame.membership,
            "spend_name": spend_name,
            "overall": _plain(frame.overall),
            "overall_note": frame.overall_note,
            "overall_bias": frame.overall_bias,
            "by_group": by_group,
        }
        if limits.kinds:
            value = next((one.estimate for one in of_gap.values()), None)
            fields["difference"] = {"value": _plain(value), **_fields_of(of_gap, limits.kinds)}
        print_json(fields, budget)
        return
    print(f"{metric} by group {terms(frame.epsilon, frame.neighboring, budget)}")
    width = max(len(_group(group)) for group in ("overall", *frame.by_group))
    for group, value in {"overall": frame.overall, **frame.by_group}.items():
        size = sizes.get(group)
        records = "" if size is None else f"  (about {_number(size)} records)"
        print(f"  {_group(group).ljust(width)}  {_text(value)}{records}")
    for told in dict.fromkeys((*frame.bias.values(), frame.overall_bias)):
        if told is not None:
            print(told)
    sys.stdout.flush()  # limits may take their time
    of_groups, of_gap = _of_frame(frame, limits)
    for kind, intervals in of_groups.items():
        print(f"{_WORDS[kind][0]} {limits.confidence * 100:g} %:")
        for group, interval in intervals.items():
            print(f"  {_group(group).ljust(width)}  {_ends(interval)}")
        if kind in of_gap:
            gap = of_gap[kind]
            note = f" ({gap.note})" if gap.note else ""
            print(f"  largest gap {_number(gap.estimate)}: {_ends(gap)}{note}")


def _of_frame(frame: PrivateMetricFrame, limits: Limits) -> tuple[dict[str, Any], dict[str, Interval]]:
    """Return limits of the groups, and of the largest gap between them, by their kind."""
    of_groups = limits.of(frame) if limits.kinds else {}
    # where there are limits of groups, these are numbers, which have a gap
    return of_groups, replace(limits, kinds=[*of_groups]).of(frame, of="difference") if of_groups else {}


def terms(epsilon: float, neighboring: str, budget: PrivacyAccountant | None, n: int | None = None) -> str:
    """Return what a release cost, what it promises, and what is left."""
    records = "" if n is None else f"{n:,} {'record' if n == 1 else 'records'}, "
    return f"(epsilon {_exact(epsilon)}, {records}{_words(neighboring)}); {_left(budget)}"


def interval_fields(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval as JSON can hold it."""
    if interval is None:
        return None
    fields = {name: _plain(getattr(interval, name)) for name in ("lower", "upper", "confidence")}
    return fields | ({"note": interval.note} if interval.note else {})


def _fields_of(found: Mapping[str, Interval | None], kinds: Sequence[str]) -> dict[str, Any]:
    """Return limits of these kinds as JSON can hold them; null where there are none."""
    return {INTERVALS[kind]: interval_fields(found.get(kind)) for kind in kinds}


def print_json(fields: Mapping[str, Any], budget: PrivacyAccountant | None) -> None:
    """Print a release as JSON, with the state of its budget."""
    left = None
    if budget is not None:
        try:
            left = state(budget)
        except _UNREADABLE:
            left = {"path": budget.path, "total": budget.total, "spent": None, "remaining": None}
    print(json.dumps({**fields, "budget": left}, indent=2))


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


def _group(group: Any) -> str:
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def _ends(interval: Interval) -> str:
    """Return limits, of which those of one number are rounded so that they still hold."""
    if isinstance(interval.lower, float):
        down, up = partial(_outwards, rounding=ROUND_FLOOR), partial(_outwards, rounding=ROUND_CEILING)
        return interval.in_words(down, up)
    return interval.in_words(_text)


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
