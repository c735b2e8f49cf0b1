"""What commands show: a release for people, or as JSON, with its limits; and a budget, which pays for it."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting.ledgers import Ledger
from dp_metrics.cli import CommandError, Parser, Refusal, tell
from dp_metrics.cli.words import SEVERAL, add_option, epsilon, given
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inputs.options import ByName, Function, Relation
from dp_metrics.page.page import PrivateEvaluation
from dp_metrics.page.page_numbers import TOO_NOISY, is_told
from dp_metrics.page.page_plan import EACH_ONCE, RequirementError
from dp_metrics.release.released import APPROXIMATE, CONFIDENCE, Interval, Number
from dp_metrics.release.result import Result, counts_persons
from dp_metrics.release.stored import as_plain

_WIDEST, _DIGITS = 60, 6
_ONE = {"nargs": None, "default": None}


@contextmanager
def refusals() -> Iterator[None]:
    """Tell what the package says of data or a budget as a refusal: such an error comes before the spend."""
    try:
        yield
    except RequirementError as error:  # what a page has follows from no record
        raise CommandError(str(error)) from None
    except (ValueError, TypeError, RuntimeError) as error:
        raise Refusal(str(error)) from None


# Budgets


def add_payer(parser: Parser, function: Function, **cost: Any) -> None:
    """Add the options that say what a release of a function costs, who pays, and how it is shown.

    Options
    -------
    budget
        budget file that pays for it
    total
        total of the budget, which creates the file if there is none; else it must be the same
    """
    own = partial(add_option, parser, add_payer)
    add_option(parser, function, "epsilon", **{**_ONE, "type": epsilon, **cost})
    own("budget", type=Path, metavar="FILE")
    own("total", type=epsilon, metavar="T")
    add_option(parser, function, "spend_name", **_ONE)
    add_json(parser)


def opened_budget(typed: Namespace) -> PrivacyAccountant | None:
    """Return the budget that was typed, created only if a total says so; it has what is asked of it left."""
    path = typed.budget
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
        budget = PrivacyAccountant(Ledger.total_of(path) if typed.total is None else typed.total, path)
        if typed.spend_name not in budget:  # what is stored under a name costs nothing
            budget.require(typed.epsilon)
    return budget


def _budget_fields(budget: PrivacyAccountant) -> dict[str, Any]:
    """Return what is spent and what is left; None for what cannot be read any more."""
    left: dict[str, Any] = {"spent": None, "remaining": None}
    with suppress(OSError, ValueError):  # the file may have gone since: the number is paid for all the same
        left = {"spent": budget.spent, "remaining": budget.remaining}
    return {"path": budget.path, "total": budget.total, **left}


def add_budget(parser: Parser) -> None:
    """Show the total of a budget file, what is spent and for what, what was bought, and what is left.

    Options
    -------
    file
        budget file, as --budget of 'score' names it
    """
    add_option(parser, add_budget, "file", "file", type=Path, metavar="FILE")
    add_json(parser)


def run_budget(typed: Namespace) -> None:
    """Print a budget and its history."""
    if not typed.file.is_file():
        raise CommandError(f"there is no budget file {typed.file}")
    with refusals():
        budget = PrivacyAccountant(Ledger.total_of(typed.file), typed.file)
        history = budget.results()
    names = ("time", "epsilon", "spend_name", "value", "mechanism", "neighboring")
    spends = [{name: getattr(one, name) for name in names} for one in history]
    for spend in spends:
        spend["time"] = spend["time"].isoformat()
    rows = [[*map(_short, (spend["time"][:19], *[*spend.values()][1:]))] for spend in spends]
    lines = [f"total {budget.total!r}, spent {budget.spent!r}, left {budget.remaining!r}"]
    if spends:
        lines += ["", table([("time (UTC)", *names[1:]), *rows])]
    say(typed, lambda: _budget_fields(budget) | {"history": spends}, lines)


def _cost(released: Any, typed: Namespace, budget: PrivacyAccountant | None) -> str:
    """Return what a release cost, what it promises, and what is left."""
    n, relation = getattr(released, "n", None), _relation(released).replace("_", " ")
    counted = getattr(released, "unit", "persons" if counts_persons(released) else "records")
    records = "" if n is None else f"{n:,} {counted.removesuffix('s') if n == 1 else counted}, "
    told = f"(epsilon {_exact(float(typed.epsilon))}, {records}{relation})"
    if budget is None:
        return f"{told}; no budget was charged"
    left = _budget_fields(budget)["remaining"]
    if left is None:
        return f"{told}; its budget was charged, but can't be read any more"
    return f"{told}; epsilon left {_exact(left)}"


def _relation(released: Any) -> str:
    return getattr(released, "neighboring", getattr(released, "relation", Relation.REPLACE_ONE))


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")


# Limits

KINDS = {
    "noise": ("noise_interval", "limits of the exact value for these records, with probability {:g} %"),
    "people": ("population_interval", "limits among all people like these, with confidence {:g} %"),
    "sure": ("sure_population_interval", "sure limits among all people like these, with confidence {:g} %"),
}
"""What limits may be limits of: their name in JSON, and what they are in words."""


def add_limits(parser: Parser) -> None:
    """Add the options that say which limits stand beside a number.

    Options
    -------
    interval
        limits to show, which cost nothing: of the noise (default); of what the metric is among all people
        like these; the same, proved, which may be wider or missing
    """
    add_option(parser, add_limits, "interval", **SEVERAL, default=[], choices=[*KINDS])
    add_option(parser, Result.noise_interval, "confidence")


def _limits(each: ByName, typed: Namespace) -> dict[str, dict[str, Interval]]:
    """Return by their kind the limits that were asked for, of each that has some; say why if none has."""
    asked, found = getattr(typed, "interval", []), dict[str, dict[str, Interval]]()
    for kind in asked or ["noise"]:
        found[kind], why = {}, list[Exception]()
        for name, one in each.items():
            limits, how = one.noise_interval, given(typed, Result.noise_interval)
            if kind != "noise":
                limits, how = one.population_interval, how | ({"sure": True} if kind == "sure" else {})
            try:
                found[kind][name] = limits(**how)
            except Exception as error:  # the number is paid for all the same
                why.append(error)
        if asked and not found[kind]:
            reason = why[0] if why else "the metric is several numbers"
            tell("warning", f"no limits of the kind {kind!r}: {reason}")
    return found


_OUTSIDE = "The release lies outside: it usually errs to that side, for which these limits allow."


# Releases


def add_json(parser: Parser) -> None:
    """Add the option that asks for output for programs."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def say(typed: Namespace, document: Callable[[], Any], lines: Iterable[str]) -> None:
    """Print a document as JSON, in which null is what is not finite, or lines: the one printer."""
    if typed.json:
        told = json.dumps(as_plain(document()), default=lambda one: as_plain(vars(one)))
        finite = json.loads(told, parse_constant=lambda constant: None)
        lines = [json.dumps(finite, indent=2)]
    for line in lines:
        print(line, flush=True)  # the next one may take its time


@contextmanager
def printed() -> Iterator[None]:
    """Say so if what is paid for can't be written."""
    try:
        yield
        sys.stdout.flush()
    except (OSError, ValueError) as error:  # a full disk, a reader that went away, or a closed stream
        with suppress(OSError):
            sys.stdout.close()  # the end of the process would complain again
        why = getattr(error, "strerror", error)
        raise CommandError(f"epsilon was spent, but the result can't be written: {why}") from None


def show(released: Any, name: str, typed: Namespace, budget: PrivacyAccountant | None) -> None:
    """Print a release: as JSON, or its cost, its numbers with their limits, and what must not be concluded.

    Whoever calls it says so where it cannot be `printed`.

    Parameters
    ----------
    released : Result, PrivateMetricFrame, PrivateEvaluation, Comparison or Interval
        What was released.
    name : str
        What the function is called.
    typed : Namespace
        What was asked for: which limits, and JSON perhaps.
    budget : PrivacyAccountant or None
        What paid for it.
    """
    models = {name: getattr(typed, name) for name in ("pred_a", "pred_b") if name in typed}

    def document() -> Any:
        if isinstance(released, PrivateEvaluation):
            return json.loads(released.to_json())
        paid = {"epsilon": float(typed.epsilon), "spend_name": typed.spend_name}
        told = {"metric": name, **paid, "neighboring": _relation(released), **models}
        paid_by = None if budget is None else _budget_fields(budget)
        return {**told, **_fields(released, typed), "budget": paid_by}

    say(typed, document, _lines(released, name, _cost(released, typed, budget), typed, models))


def _fields(released: Any, typed: Namespace) -> ByName:
    """Return what JSON tells of a release."""
    if isinstance(released, Interval):
        return vars(released)
    if isinstance(released, Result):
        found = {"noise": {}, **_limits({"": released}, typed)}
        return {**released.to_dict(), **{KINDS[kind][0]: of.get("") for kind, of in found.items()}}
    if not isinstance(released, PrivateMetricFrame):
        return {**released.to_dict(), "better": released.better}
    confidence = given(typed, Result.noise_interval).get("confidence", CONFIDENCE)
    rows = [one.row(confidence) for one in released.numbers().values()]
    told = {"membership": released.membership, "confidence": confidence, "numbers": rows}
    if _is_one_number(released):
        return told
    by_group = [{"group": group, "value": value} for group, value in released.by_group.items()]
    return {**told, "overall": released.overall, "by_group": by_group}


def _is_one_number(frame: PrivateMetricFrame) -> bool:
    """Return whether the metric of a frame is one number, which `numbers` has."""
    return all(isinstance(value, float) for value in frame.by_group.values())


def _lines(released: Any, name: str, cost: str, typed: Namespace, models: ByName) -> Iterator[str]:
    """Yield what people read of a release."""
    if isinstance(released, PrivateEvaluation):
        yield f"{name} {cost}"
        yield from _table(released.numbers, typed, "records")
        for left in released.plan.left_out:
            yield f"left out: {left.about}. {left.why}"
    elif isinstance(released, PrivateMetricFrame):
        yield f"{name} by group {cost}"
        yield from _table(released.numbers(), typed, "persons" if released.counts_persons else "records")
        if not _is_one_number(released):
            yield repr(released)
    elif isinstance(released, Result):
        value = released.value
        is_one = isinstance(value, float)
        yield f"{name} = {_text(value)} {cost}" if is_one else f"{name} {cost}\n{_text(value)}"
        # a report that is text has its own words for its bias
        yield from filter(None, (released.note, None if isinstance(value, str) else released.bias))
        for kind, found in ((kind, of[""]) for kind, of in _limits({"": released}, typed).items() if of):
            of_what = KINDS[kind][1].format(found.confidence * 100)
            at_once = ", all at once" if np.ndim(found.lower) else ""
            note = found.note if kind != "noise" else ""
            # limits of a share are also those of a number of records
            inside = value if found.estimate is None else found.estimate
            if is_one and not found.lower <= inside <= found.upper:
                note = f"{_OUTSIDE} {note}".rstrip()
            of_rows = "\n" if np.ndim(found.lower) > 1 else " "
            yield f"{of_what}{at_once}:{of_rows}{found.in_words()}{f' ({note})' if note else ''}"
    else:
        yield f"{name} {cost}"
        if models:
            yield "; ".join(f"{key[-1].upper()} is {', '.join(columns)}" for key, columns in models.items())
        yield str(released)


# Cells and values


def _behind_names(said: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Yield each sentence once, behind the names of the numbers that it is about."""
    behind: dict[str, list[str]] = {}
    for name, sentence in said:
        if sentence is not None:
            behind.setdefault(sentence, []).append(name)
    for sentence, names in behind.items():
        yield f"{', '.join(names)}: {sentence[0].lower()}{sentence[1:]}"


def _table(numbers: Mapping[str, Number], typed: Namespace, counted: str) -> Iterator[str]:
    """Yield a table of numbers with their limits, what these are, and what must not be concluded of which."""
    found = {kind: of for kind, of in _limits(numbers, typed).items() if of}
    if not numbers:
        return
    cells = [
        (name, _text(one.value), *(of[name].in_words() if name in of else "" for of in found.values()),
         _beside(one, counted))
        for name, one in numbers.items()
    ]  # fmt: skip
    yield table([("", "value", *found, ""), *cells], indent="  ")
    for kind, of in found.items():
        yield f"{kind}: {KINDS[kind][1].format(next(iter(of.values())).confidence * 100)}"
        yield from _behind_names((name, APPROXIMATE) for name, one in of.items() if APPROXIMATE in one.note)
    yield from _behind_names((name, said) for name, one in numbers.items() for said in (one.note, one.bias))


def _beside(number: Number, counted: str) -> str:
    """Return about how many records a number rests on, or that it is too noisy to tell."""
    if is_told(number):
        counted = "persons" if EACH_ONCE in number.name else counted
        return "" if number.rests_on is None else f"rests on about {number.rests_on:,.0f} {counted}"
    return f"({(number.note if np.isnan(number.value) else None) or TOO_NOISY})"


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Return rows of cells, aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def _short(value: Any) -> str:
    """Return a value as a list shows it, without what a terminal would not print in its line."""
    text = "none" if value is None else repr(value) if isinstance(value, float) else str(value)
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):  # the result is a named tuple, or one without names
        parts = zip(getattr(value, "_fields", range(len(value))), value, strict=True)
        return "\n".join(f"{name}: {_text(part)}" for name, part in parts)
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=_DIGITS, suppress_small=True, separator=", ")
    return json.dumps(as_plain(value), indent=2)
