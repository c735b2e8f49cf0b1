"""What commands show: a release for people, or as JSON, with its limits; and a budget, which pays for it."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting.ledgers import FileLedger
from dp_metrics.cli.words import CommandError, add_json, add_option, epsilon, refusals, several, tell
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inputs.options import Relation
from dp_metrics.page.page import PrivateEvaluation
from dp_metrics.release.released import Interval, biases_in_words
from dp_metrics.release.result import Result

_WIDEST, _DIGITS = 40, 6
_RELATION = Relation.REPLACE_ONE.value
_COLUMNS = ("time (UTC)", "epsilon", "spend name", "value", "mechanism", "neighbours")

_ONE: dict[str, Any] = {"nargs": None, "default": None}


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number strictly between 0 and 1")


def add_payer(parser: argparse.ArgumentParser, function: Callable[..., Any], **cost: Any) -> None:
    """Add the options that say what a release of a function costs, who pays, and how it is shown."""
    add_option(parser, function, "epsilon", **{**_ONE, "type": epsilon, "required": True, **cost})
    parser.add_argument("--budget", type=Path, metavar="FILE", help="budget file that pays for it")
    total = "total of the budget, which creates the file if there is none; else it must be the same"
    parser.add_argument("--total", type=epsilon, metavar="T", help=total)
    add_option(parser, function, "spend_name", **_ONE)
    add_json(parser)


def opened_budget(typed: argparse.Namespace) -> PrivacyAccountant | None:
    """Return the budget that was typed, created only if a total says so; it has what is asked of it left."""
    path: Path | None = typed.budget
    if typed.spend_name is not None and not typed.spend_name.isprintable():
        raise CommandError("--spend-name takes one line of printable text")
    if path is None:
        if typed.total:
            raise CommandError("--total needs --budget, the file that keeps what is spent")
        return None
    with refusals():
        if not path.exists():
            if typed.total is None:
                raise CommandError(f"there is no budget file {path}; to create it, pass --total T as well")
            PrivacyAccountant(typed.total).require(typed.epsilon)  # a budget that can't pay leaves no file
        budget = PrivacyAccountant(FileLedger.total_of(path) if typed.total is None else typed.total, path)
        if typed.spend_name not in budget:  # what is stored under a name costs nothing
            budget.require(typed.epsilon)
    return budget


def budget_fields(budget: PrivacyAccountant | None) -> dict[str, Any] | None:
    """Return what is spent and what is left; None for what cannot be read any more."""
    if budget is None:
        return None
    left: dict[str, Any] = {"spent": None, "remaining": None}
    with suppress(OSError, ValueError):  # the file may have gone since: the number is paid for all the same
        left = {"spent": budget.spent, "remaining": budget.remaining}
    return {"path": budget.path, "total": budget.total, **left}


def show_budget(path: Path, *, as_json: bool) -> None:
    """Print what is spent of a budget and for what, the values that were bought, and what is left."""
    if not path.is_file():
        raise CommandError(f"there is no budget file {path}")
    with refusals():
        budget = PrivacyAccountant(FileLedger.total_of(path), path)
        history = budget.results()
    if as_json:
        names = ("spend_name", "epsilon", "mechanism", "neighboring", "value")
        spends = [
            {"time": spend.time.isoformat(), **{name: getattr(spend, name) for name in names}}
            for spend in history
        ]
        print(json.dumps({**(budget_fields(budget) or {}), "history": spends}, indent=2))
        return
    print(f"total {budget.total!r}, spent {budget.spent!r}, left {budget.remaining!r}")
    rows = [
        (
            f"{spend.time:%Y-%m-%d %H:%M:%S}",
            repr(spend.epsilon),
            _one_line(spend.spend_name),
            _short(spend.value),
            spend.mechanism or "",
            spend.neighboring.replace("_", " "),
        )
        for spend in history
    ]
    if rows:
        print()
        print_table([_COLUMNS, *rows])


def print_table(rows: Sequence[Sequence[str]], indent: str = "") -> None:
    """Print rows of cells, aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"{indent}{'  '.join(cells)}".rstrip())


def _short(value: float | str | None) -> str:
    """Return a value as a list of them shows it."""
    if value is None:
        return "none stored"
    line = f"{value:.6g}" if isinstance(value, float) else _one_line(value)
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."


def _one_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name)


# Limits

INTERVALS = {
    "noise": "noise_interval",
    "people": "population_interval",
    "sure": "sure_population_interval",
}
"""What limits may be limits of, with their names in JSON."""

_WORDS = {
    "noise": "limits of the exact value for these records, with probability {} %",
    "people": "limits among all people like these, with confidence {} %",
    "sure": "sure limits among all people like these, with confidence {} %",
}


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which limits stand beside a number."""
    interval = (
        "limits to show, which cost nothing: of the noise (default); of what the metric is among all people "
        "like these; the same, proved, which may be wider or missing"
    )
    parser.add_argument("--interval", **several(default=[]), choices=[*INTERVALS], help=interval)
    add_option(parser, Result.noise_interval, "confidence", **{**_ONE, "default": 0.95}, type=_share)


@dataclass(frozen=True)
class Limits:
    """Which limits to show beside a release, at no cost.

    Parameters
    ----------
    kinds : sequence of str, default=()
        Of `INTERVALS`. Empty: those of the noise, where there are any.
    confidence : float, default=0.95
        Of each of them.
    """

    kinds: Sequence[str] = ()
    confidence: float = 0.95

    def of(self, released: Any, **more: Any) -> dict[str, Any]:
        """Return the limits by their kind, without those that there are none of; say why there are none."""
        found = {}
        for kind in dict.fromkeys(self.kinds or ["noise"]):
            try:
                found[kind] = _told(released, kind, confidence=self.confidence, **more)
            except Exception as error:  # the number is paid for all the same
                if self.kinds:
                    tell("warning", f"no limits of the kind {kind!r}: {error}")
        return found

    def fields(self, found: Mapping[str, Interval | None]) -> dict[str, Any]:
        """Return limits as JSON can hold them; null where there are none."""
        kinds = dict.fromkeys(["noise", *self.kinds])
        return {INTERVALS[kind]: interval_fields(found.get(kind)) for kind in kinds}

    def words(self, kind: str) -> str:
        """Return what limits of a kind are limits of."""
        return _WORDS[kind].format(f"{self.confidence * 100:g}")


def _told(released: Any, kind: str, **asked: Any) -> Any:
    if kind == "noise":
        return released.noise_interval(**asked)
    return released.population_interval(**asked, sure=kind == "sure")


def interval_fields(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval as JSON can hold it."""
    if interval is None:
        return None
    fields = {name: _plain(getattr(interval, name)) for name in ("lower", "upper", "confidence")}
    return fields | ({"note": interval.note} if interval.note else {})


# Releases


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


def print_json(fields: Mapping[str, Any], budget: PrivacyAccountant | None) -> None:
    """Print a release as JSON, with the state of its budget."""
    print(json.dumps({**fields, "budget": budget_fields(budget)}, indent=2))


def cost(epsilon: float, neighboring: str, budget: PrivacyAccountant | None, n: int | None = None) -> str:
    """Return what a release cost, what it promises, and what is left."""
    records = "" if n is None else f"{n:,} {'record' if n == 1 else 'records'}, "
    left = "no budget was charged"
    if budget is not None:
        remaining = (budget_fields(budget) or {})["remaining"]
        left = (
            "its budget was charged, but can't be read any more"
            if remaining is None
            else f"epsilon left {_exact(remaining)}"
        )
    return f"(epsilon {_exact(epsilon)}, {records}{neighboring.replace('_', ' ')}); {left}"


def show(
    released: Any,
    name: str,
    typed: argparse.Namespace,
    budget: PrivacyAccountant | None,
    limits: Limits | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print a release: as JSON, or its cost, its numbers with their limits, and what must not be concluded.

    Parameters
    ----------
    released : Result, PrivateMetricFrame, PrivateEvaluation, Comparison or Interval
        What was released.
    name : str
        What the function is called.
    typed : Namespace
        What was asked for, as JSON perhaps.
    budget : PrivacyAccountant or None
        What paid for it.
    limits : Limits or None, default=None
        Which to print; None: it has its own.
    more : mapping or None, default=None
        What else JSON tells.
    """
    limits = limits or Limits()
    with printed():
        if isinstance(released, PrivateEvaluation):
            _show_page(released, budget, as_json=typed.json)
        elif isinstance(released, PrivateMetricFrame):
            _show_frame(released, name, typed.spend_name, budget, limits, as_json=typed.json)
        elif isinstance(released, Result):
            _show_result(released, budget, limits, as_json=typed.json)
        elif typed.json:
            paid = {"epsilon": float(typed.epsilon), "spend_name": typed.spend_name, "neighboring": _RELATION}
            of_interval = isinstance(released, Interval)
            told = interval_fields(released) if of_interval else released.to_dict()
            known = ("about", "estimate") if of_interval else ("better",)
            free = {key: getattr(released, key) for key in known}
            print_json({"metric": name, **paid, **(more or {}), **(told or {}), **free}, budget)
        else:
            print(f"{name} {cost(float(typed.epsilon), _RELATION, budget, getattr(released, 'n', None))}")
            if more:
                print(
                    "; ".join(f"{key[-1].upper()} is {', '.join(columns)}" for key, columns in more.items())
                )
            print(released)


def _show_page(page: PrivateEvaluation, budget: PrivacyAccountant | None, *, as_json: bool) -> None:
    if as_json:
        print(page.to_json())
        return
    print(f"private_evaluate {cost(page.epsilon, page.evaluated.relation, budget, page.n)}")
    rows = []
    for number in page.numbers.values():
        found = Limits().of(number)
        ends = _ends(found["noise"]) if "noise" in found else ""
        rows.append((number.name, f"{number.value:.4g}", ends, "(mostly noise)" if number.note else ""))
    print_table(rows, indent="  ")
    print("Beside each number are limits of its noise, with probability 95 %.")
    for told in biases_in_words({number.name: number.bias for number in page.numbers.values()}):
        print(told)
    for one in page.plan.left_out:
        print(f"left out: {one.about}. {one.why}")


def _show_result(
    result: Result[Any], budget: PrivacyAccountant | None, limits: Limits, *, as_json: bool
) -> None:
    """Print a result, its limits, and what is left."""
    if as_json:
        fields = {name: _plain(value) for name, value in json.loads(result.to_json()).items()}
        print_json(fields | limits.fields(limits.of(result)), budget)
        return
    paid = cost(result.epsilon, result.neighboring, budget, result.n)
    if isinstance(result.value, float):
        print(f"{result.metric} = {_number(result.value)} {paid}")
    else:
        print(f"{result.metric} {paid}\n{_text(result.value)}")
    # a report that is text has its own words for it
    for told in (result.note, None if isinstance(result.value, str) else result.bias):
        if told is not None:
            print(told)
    sys.stdout.flush()  # limits may take their time
    for kind, interval in limits.of(result).items():
        if limits.kinds or isinstance(interval.lower, float):
            note = f" ({interval.note})" if interval.note and kind != "noise" else ""
            print(f"{limits.words(kind)}: {_ends(interval)}{note}")


def _show_frame(
    frame: PrivateMetricFrame,
    metric: str,
    spend_name: str | None,
    budget: PrivacyAccountant | None,
    limits: Limits,
    *,
    as_json: bool,
) -> None:
    """Print the values of a frame by group, with their limits, and what is left."""
    sizes = frame.group_sizes or {}
    of_groups = limits.of(frame)
    # where there are limits of groups, these are numbers, which have a gap
    gaps = Limits([*of_groups], limits.confidence).of(frame, of="difference") if of_groups else {}
    if as_json:
        by_group = [
            {"group": group, "value": _plain(value), "size": _plain(sizes.get(group))}
            | {"note": frame.note[group], "bias": frame.bias[group]}
            | limits.fields({kind: one.get(group) for kind, one in of_groups.items()})
            for group, value in frame.by_group.items()
        ]
        gap = next((one.estimate for one in gaps.values()), None)
        fields = {
            "metric": metric,
            **{name: getattr(frame, name) for name in ("epsilon", "neighboring", "membership")},
            "spend_name": spend_name,
            "overall": _plain(frame.overall),
            "overall_note": frame.overall_note,
            "overall_bias": frame.overall_bias,
            "by_group": by_group,
            "difference": {"value": _plain(gap), **limits.fields(gaps)},
        }
        print_json(fields, budget)
        return
    print(f"{metric} by group {cost(frame.epsilon, frame.neighboring, budget)}")
    kinds = [kind for kind in of_groups if limits.kinds or _are_numbers(of_groups[kind])]
    rows = [("", "value", *kinds, "")]
    for group, value in {"overall": frame.overall, **frame.by_group}.items():
        size = sizes.get(group)
        ends = [_ends(of_groups[kind][group]) if group in of_groups[kind] else "" for kind in kinds]
        records = "" if size is None else f"about {_number(size)} records"
        rows.append((_group(group), _text(value), *ends, records))
    if kinds and gaps:
        rows.append(("largest gap", _number(next(iter(gaps.values())).estimate),
                     *(_ends(gaps[kind]) if kind in gaps else "" for kind in kinds), ""))  # fmt: skip
    print_table(rows, indent="  ")
    for kind in kinds:
        print(f"{kind}: {limits.words(kind)}")
    for told in dict.fromkeys((*frame.bias.values(), frame.overall_bias)):
        if told is not None:
            print(told)


def _are_numbers(limits: Mapping[Any, Interval]) -> bool:
    return all(isinstance(interval.lower, float) for interval in limits.values())


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")


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
