"""A spend, and what a ledger of spends has to do.

A ledger can be divided into parts, ledgers of their own that one spend pays for: `PrivacyAccountant.parallel`
says when that is right.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Protocol, TypeAlias

__all__ = ["Check", "Ledger", "Spend", "are_made"]

Check: TypeAlias = Callable[[Fraction, Set[str]], None]
"""Takes what is spent so far, and under which neighbouring relations; raises unless one more spend fits."""


@dataclass(frozen=True, slots=True)
class Spend:
    """One entry of `PrivacyAccountant.history`; `time` is in UTC, `epsilon` rounded to a float."""

    time: datetime
    spend_name: str
    epsilon: float
    mechanism: str | None
    neighboring: str


class Ledger(Protocol):
    """A record of spends that only grows."""

    @property
    def path(self) -> str | None:
        """The file, if there is one."""
        ...

    @property
    def part(self) -> str | None:
        """The name of the part of a budget that this is, or None for a whole budget."""
        ...

    @property
    def total(self) -> Fraction:
        """What may be spent altogether."""
        ...

    def record(
        self, epsilon: Fraction, spend_name: str, mechanism: str | None, neighboring: str, check: Check
    ) -> None:
        """Record a spend for good, unless the check raises; to all who share the ledger this is one step."""
        ...

    def divide(
        self, names: Sequence[str], epsilon: Fraction, spend_name: str, neighboring: str, check: Check
    ) -> "Mapping[str, Ledger]":
        """Record one spend and make parts with a total of epsilon each, or return these parts if they exist.

        To all who share the ledger this is one step. Spends of a part are under the relation of that spend.
        """
        ...

    def spent(self) -> Fraction:
        """Return the exact sum of the recorded epsilons."""
        ...

    def history(self) -> tuple[Spend, ...]:
        """Return all entries, oldest first."""
        ...

    def refuse_if_forked(self) -> None:
        """Raise RuntimeError if this is a forked child that must not spend."""
        ...


def are_made(
    names: Sequence[str], epsilon: Fraction, neighboring: str, parts: Iterable[tuple[int, str, Fraction, str]]
) -> bool:
    """Return whether the parts exist; raise if some of them do, or go with other names, epsilon or relation.

    Parameters
    ----------
    names, epsilon, neighboring
        What is asked for.
    parts : iterable of (int, str, Fraction, str)
        All parts of the ledger: the spend that paid, name, total and relation.
    """
    known, asked = list(parts), {name: (name, epsilon, neighboring) for name in names}
    paid = {spend for spend, name, *_ in known if name in asked}
    there = {tuple(rest) for spend, *rest in known if spend in paid}
    if paid and (len(paid) > 1 or there != {*asked.values()}):
        raise ValueError(
            "This budget was divided before into a part of one of these names, with another epsilon, "
            "other names beside it or another neighboring. To go on with those parts, repeat that "
            "call. A new division costs epsilon again and needs other names."
        )
    return bool(paid)
