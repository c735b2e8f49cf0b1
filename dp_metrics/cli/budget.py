"""`dp-metrics budget`: what is spent of a budget and what is left; and budgets for `dp-metrics score`."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting.ledgers import FileLedger
from dp_metrics.cli._common import CommandError, Refused, add_json

__all__ = ["add_budget", "known_budget", "open_budget", "refusals", "state"]

_WIDEST = 40
_COLUMNS = ("time (UTC)", "epsilon", "spend name", "value", "mechanism", "neighbours")


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the package raises into one clear line; such an error comes before the spend."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        raise Refused(str(error)) from None


def known_budget(path: Path | None, total: float | None) -> PrivacyAccountant | None:
    """Return the budget in a file that exists, whatever is left of it; else None."""
    if path is None or not path.exists():
        return None
    with refusals():
        return PrivacyAccountant(FileLedger.total_of(path) if total is None else total, path)


def open_budget(path: Path | None, total: float | None, epsilon: float) -> PrivacyAccountant | None:
    """Return the budget in a file, created only if a total says so, if it has this much left."""
    if path is None:
        if total is not None:
            raise CommandError("--total needs --budget, the file that keeps what is spent")
        return None
    if total is None and not path.exists():
        raise CommandError(f"there is no budget file {path}; to create it, pass --total T as well")
    with refusals():
        if total is not None and not path.exists():
            PrivacyAccountant(total).require(epsilon)  # a budget that can't pay leaves no file
        budget = PrivacyAccountant(FileLedger.total_of(path) if total is None else total, path)
        budget.require(epsilon)
    return budget


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
