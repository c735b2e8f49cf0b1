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

from dp_metrics._html import rounded
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting.ledgers import FileLedger
from dp_metrics.cli.words import SEVERAL, CommandError, add_json, add_option, epsilon, refusals, share, tell
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inputs.options import Relation
from dp_metrics.page.page import PrivateEvaluation
from dp_metrics.release.released import Interval, biases_in_words
from dp_metrics.release.result import Result

_WIDEST, _DIGITS = 40, 6
_COLUMNS = ("time (UTC)", "epsilon", "spend name", "value", "mechanism", "neighbours")
_ONE: dict[str, Any] = {"nargs": None, "default": None}


# Budgets


def add_payer(parser: argparse.ArgumentParser, function: Callable[..., Any], **cost: Any) -> None:
    """Add the options that say what a release of a function costs, who pays, and how it is shown.

    Options
    -------
    budget
        budget file that pays for it
    total
        total of the budget, which creates the file if there is none; else it must be the same
    """
    own = partial(add_option, parser, add_payer)
    add_option(parser, function, "epsilon", **{**_ONE, "type": epsilon, "required": True, **cost})
    own("budget", type=Path, metavar="FILE")
    own("total", type=epsilon, metavar="T")
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


def _budget_fields(budget: PrivacyAccountant | None) -> dict[str, Any] | None:
    """Return what is spent and what is left; None for what cannot be read any more."""
    if budget is None:
        return None
    left: dict[str, Any] = {"spent": None, "remaining": None}
    with suppress(OSError, ValueError):  # the file may have gone since: the number is paid for all the same
        left = {"spent": budget.spent, "remaining": budget.remaining}
    return {"path": budget.path, "total": budget.total, **left}


def add_budget(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """Show the total of a budget file, what is spent and for what, what was bought, and what is left.

    Options
    -------
    file
        budget file, as --budget of 'score' names it
    """
    add_option(parser, add_budget, "file", "file", type=Path, metavar="FILE")
    add_json(parser)


def run_budget(typed: argparse.Namespace) -> None:
    """Print a budget and its history."""
    if not typed.file.is_file():
        raise CommandError(f"there is no budget file {typed.file}")
    with refusals():
        budget = PrivacyAccountant(FileLedger.total_of(typed.file), typed.file)
        history = budget.results()
    if typed.json:
        names = ("spend_name", "epsilon", "mechanism", "neighboring", "value")
        spends = [
            {"time": spend.time.isoformat(), **{name: getattr(spend, name) for name in names}}
            for spend in history
        ]
        print(json.dumps({**(_budget_fields(budget) or {}), "history": spends}, indent=2))
        return
    print(f"total {budget.total!r}, spent {budget.spent!r}, left {budget.remaining!r}")
    rows = [
        (f"{spend.time:%Y-%m-%d %H:%M:%S}", repr(spend.epsilon), _one_line(spend.spend_name),
         _short(spend.value), spend.mechanism or "", spend.neighboring.replace("_", " "))
        for spend in history
    ]  # fmt: skip
    if rows:
        print(f"\n{table([_COLUMNS, *rows])}")


def _cost(released: Any, typed: argparse.Namespace, budget: PrivacyAccountant | None) -> str:
    """Return what a release cost, what it promises, and what is left."""
    n, relation = getattr(released, "n", None), _relation(released).replace("_", " ")
    records = "" if n is None else f"{n:,} {'record' if n == 1 else 'records'}, "
    told = f"(epsilon {_exact(float(typed.epsilon))}, {records}{relation})"
    fields = _budget_fields(budget)
    if fields is None:
        return f"{told}; no budget was charged"
    if fields["remaining"] is None:
        return f"{told}; its budget was charged, but can't be read any more"
    return f"{told}; epsilon left {_exact(fields['remaining'])}"


def _relation(released: Any) -> str:
    if isinstance(released, PrivateEvaluation):
        return released.evaluated.public.relation
    return str(getattr(released, "neighboring", Relation.REPLACE_ONE.value))


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")


# Limits

KINDS = {
    "noise": ("noise_interval", "limits of the exact value for these records, with probability {} %"),
    "people": ("population_interval", "limits among all people like these, with confidence {} %"),
    "sure": ("sure_population_interval", "sure limits among all people like these, with confidence {} %"),
}
"""What limits may be limits of: their name in JSON, and what they are in words."""


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which limits stand beside a number.

    Options
    -------
    interval
        limits to show, which cost nothing: of the noise (default); of what the metric is among all people
        like these; the same, proved, which may be wider or missing
    """
    add_option(parser, add_limits, "interval", **SEVERAL, default=[], choices=[*KINDS])
    add_option(parser, Result.noise_interval, "confidence", **{**_ONE, "default": 0.95}, type=share)


@dataclass(frozen=True)
class Limits:
    """Which limits to show beside a release, at no cost.

    Parameters
    ----------
    kinds : sequence of str, default=()
        Of `KINDS`. Empty: those of the noise, where there are any.
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
        return {KINDS[kind][0]: _interval_fields(found.get(kind)) for kind in ("noise", *self.kinds)}

    def words(self, kind: str) -> str:
        """Return what limits of a kind are limits of."""
        return KINDS[kind][1].format(f"{self.confidence * 100:g}")


def _told(released: Any, kind: str, **asked: Any) -> Any:
    if kind == "noise":
        return released.noise_interval(**asked)
    return released.population_interval(**asked, sure=kind == "sure")


def _interval_fields(interval: Interval | None) -> dict[str, Any] | None:
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
        Columns of which it tells, by what they are.
    """
    limits, more = limits or Limits(), more or {}
    with printed():
        if not typed.json:
            for line in _lines(released, name, _cost(released, typed, budget), limits, more):
                print(line, flush=True)  # limits may take their time
        elif isinstance(released, PrivateEvaluation):
            print(released.to_json())
        else:
            paid = {"epsilon": float(typed.epsilon), "spend_name": typed.spend_name}
            told = {"metric": name, **paid, "neighboring": _relation(released), **more}
            fields = {**told, **_fields(released, limits), "budget": _budget_fields(budget)}
            print(json.dumps(fields, indent=2))


def _fields(released: Any, limits: Limits) -> dict[str, Any]:
    """Return what JSON tells of a release."""
    if isinstance(released, Result):
        return {**json.loads(released.to_json()), **limits.fields(limits.of(released))}
    if isinstance(released, Interval):
        known = {"about": released.about, "estimate": released.estimate}
        return {**(_interval_fields(released) or {}), **known}
    if not isinstance(released, PrivateMetricFrame):
        return {**released.to_dict(), "better": released.better}
    of_groups, of_all, gaps = _group_limits(released, limits)
    sizes = released.group_sizes or {}
    by_group = [
        {"group": group, "value": _plain(value), "size": _plain(sizes.get(group))}
        | {"note": released.note[group], "bias": released.bias[group]}
        | limits.fields({kind: one.get(group) for kind, one in of_groups.items()})
        for group, value in released.by_group.items()
    ]
    gap = next((one.estimate for one in gaps.values()), None)
    return {
        "membership": released.membership,
        "overall": _plain(released.overall),
        "overall_note": released.overall_note,
        "overall_bias": released.overall_bias,
        "overall_limits": limits.fields(of_all),
        "by_group": by_group,
        "difference": {"value": _plain(gap), **limits.fields(gaps)},
    }


def _lines(released: Any, name: str, cost: str, limits: Limits, more: Mapping[str, Any]) -> Iterator[str]:
    """Yield what people read of a release."""
    if isinstance(released, PrivateEvaluation):
        yield f"{name} {cost}"
        yield from _page_lines(released)
    elif isinstance(released, PrivateMetricFrame):
        yield f"{name} by group {cost}"
        yield from _frame_lines(released, limits)
    elif isinstance(released, Result):
        value = released.value
        yield (
            f"{name} = {rounded(value)} {cost}"
            if isinstance(value, float)
            else f"{name} {cost}\n{_text(value)}"
        )
        # a report that is text has its own words for its bias
        yield from filter(None, (released.note, None if isinstance(value, str) else released.bias))
        for kind, interval in limits.of(released).items():
            if limits.kinds or isinstance(interval.lower, float):
                note = f" ({interval.note})" if interval.note and kind != "noise" else ""
                yield f"{limits.words(kind)}: {_ends(interval)}{note}"
    else:
        yield f"{name} {cost}"
        if more:
            yield "; ".join(f"{key[-1].upper()} is {', '.join(columns)}" for key, columns in more.items())
        yield str(released)


def _page_lines(page: PrivateEvaluation) -> Iterator[str]:
    rows = []
    for number in page.numbers.values():
        ends = "".join(map(_ends, Limits().of(number).values()))
        rows.append((number.name, f"{number.value:.4g}", ends, "(mostly noise)" if number.note else ""))
    yield table(rows, indent="  ")
    yield "Beside each number are limits of its noise, with probability 95 %."
    yield from biases_in_words({number.name: number.bias for number in page.numbers.values()})
    for one in page.plan.left_out:
        yield f"left out: {one.about}. {one.why}"


def _frame_lines(frame: PrivateMetricFrame, limits: Limits) -> Iterator[str]:
    sizes, (of_groups, of_all, gaps) = frame.group_sizes or {}, _group_limits(frame, limits)
    kinds = [kind for kind in of_groups if limits.kinds or _are_numbers(of_groups[kind])]
    rows = [("", "value", *kinds, "")]
    rows.append(("overall", _text(frame.overall), *_ends_of(of_all, kinds), ""))
    for group, value in frame.by_group.items():
        found = {kind: of_groups[kind][group] for kind in kinds if group in of_groups[kind]}
        size = sizes.get(group)
        records = "" if size is None else f"about {rounded(size)} records"
        named = ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)
        rows.append((named, _text(value), *_ends_of(found, kinds), records))
    if kinds and gaps:
        gap = rounded(next(iter(gaps.values())).estimate)
        rows.append(("largest gap", gap, *_ends_of(gaps, kinds), ""))
    yield table(rows, indent="  ")
    for kind in kinds:
        yield f"{kind}: {limits.words(kind)}"
    yield from dict.fromkeys(filter(None, (*frame.bias.values(), frame.overall_bias)))


def _group_limits(frame: PrivateMetricFrame, limits: Limits) -> list[dict[str, Any]]:
    """Return limits of groups, of all records and of the gap: where groups have any, these are numbers."""
    of_groups = limits.of(frame)
    if not of_groups:
        return [{}, {}, {}]
    known = Limits([*of_groups], limits.confidence)
    return [of_groups, limits.of(frame, of="overall"), known.of(frame, of="difference")]


def _ends_of(found: Mapping[str, Interval], kinds: Sequence[str]) -> list[str]:
    return [_ends(found[kind]) if kind in found else "" for kind in kinds]


def _are_numbers(limits: Mapping[Any, Interval]) -> bool:
    return all(isinstance(interval.lower, float) for interval in limits.values())


# Cells and values


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Return rows of cells, aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def _one_line(text: str) -> str:
    """Return text without what a terminal would not print in its line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _short(value: float | str | None) -> str:
    """Return a value as a list of them shows it."""
    line = _one_line("none stored" if value is None else rounded(value))
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."


def _ends(interval: Interval) -> str:
    """Return limits, of which those of one number are rounded so that they still hold."""
    if isinstance(interval.lower, float):
        down, up = partial(_outwards, rounding=ROUND_FLOOR), partial(_outwards, rounding=ROUND_CEILING)
        return interval.in_words(down, up)
    return interval.in_words(_text)


def _outwards(limit: float, rounding: str) -> str:
    """Return a limit rounded away from the value, so that it still holds."""
    if not math.isfinite(limit):
        return rounded(limit)
    return f"{Context(prec=_DIGITS, rounding=rounding).create_decimal_from_float(limit):g}"


def _text(value: Any) -> str:
    if isinstance(value, float | str):
        return rounded(value)
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
