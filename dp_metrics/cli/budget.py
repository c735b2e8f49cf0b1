"""`dp-metrics budget`: what is spent of a budget and what is left; and budgets for `dp-metrics score`."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting.ledgers import FileLedger
from dp_metrics.cli._common import CommandError, Refusal, add_json, exact_epsilon

_WIDEST = 40
_COLUMNS = ("time (UTC)", "epsilon", "spend name", "value", "mechanism", "neighbours")


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the package raises into one clear line; such an error comes before the spend."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        raise Refusal(str(error)) from None


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
        path = self.path
        if path is None:
            return None
        if not path.exists():
            if self.total is None:
                raise CommandError(f"there is no budget file {path}; to create it, pass --total T as well")
            with refusals():
                PrivacyAccountant(self.total).require(epsilon)  # a budget that can't pay leaves no file
                return PrivacyAccountant(self.total, path)
        budget = self._there(path)
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
    budget = Payer(path, None).known()
    if budget is None:
        raise CommandError(f"there is no budget file {path}")
    with refusals():
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


def add_payer(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a release costs and who pays."""
    cost = "privacy parameter: what it costs; 0.5, or 1/3 exactly"
    parser.add_argument("--epsilon", type=exact_epsilon, required=True, metavar="E", help=cost)
    add_budget_file(parser)


def add_budget_file(parser: argparse.ArgumentParser) -> None:
    """Add the options that say who pays."""
    parser.add_argument("--budget", type=Path, metavar="FILE", help="budget file that pays for it")
    total = "total of the budget, which creates the file if there is none; else it must be the same"
    parser.add_argument("--total", type=exact_epsilon, metavar="T", help=total)
    parser.add_argument("--spend-name", metavar="TEXT", help="name in the history of the budget; public")
