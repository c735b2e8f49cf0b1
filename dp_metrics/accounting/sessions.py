"""Sessions: what a process has seen of a budget file since it first opened it.

A name is used once in a session: it buys, or is served what an earlier session stored. Otherwise two folds,
or two rounds of a loop, would have one number. A session is no matter of a clock or of the number of a
process: it begins after the last spend that the ledger then had, and goes with pickled copies and forks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple


class BudgetState(NamedTuple):
    """What was last seen of the budget, or of a part of it.

    Parameters
    ----------
    spent : Fraction
        The sum of the spends.
    number : int
        The number of the last spend; 0 if there was none.
    entry : tuple
        What the ledger records of it.
    """

    spent: Fraction = Fraction(0)
    number: int = 0
    entry: tuple[Any, ...] | None = None


@dataclass
class Session:
    """The time from when a process first opened a budget file.

    Parameters
    ----------
    start : tuple of int
        The numbers of the last spends when it began: of the budget, and of its parts, which count together.
    served : set of (int, str)
        The names of stored answers that were served since, each with the number of the part, or 0.
    seen : dict of int to BudgetState
        What was seen since, by the number of the part.
    """

    start: tuple[int, int]
    served: set[tuple[int, str]] = field(default_factory=set)
    seen: dict[int, BudgetState] = field(default_factory=dict)

    def is_earlier(self, part: int, number: int) -> bool:
        """Return whether a spend is of an earlier session."""
        return number <= self.start[part > 0]

    def join(self, other: "Session") -> None:
        """Take over what a copy knows: together they are one session, from the first beginning on."""
        self.start = (min(self.start[0], other.start[0]), min(self.start[1], other.start[1]))
        self.served |= other.served
        for part, one in other.seen.items():
            self.seen[part] = max(one, self.seen.get(part, BudgetState()), key=_latest)

    def __reduce__(self) -> tuple[Any, ...]:
        # a Fraction would be pickled as a decimal, and Python refuses to convert long ones
        seen = {part: (one.spent.as_integer_ratio(), *one[1:]) for part, one in dict(self.seen).items()}
        return _unpickled, (self.start, set(self.served), seen)


def _latest(one: BudgetState) -> tuple[int, Fraction]:
    return one.number, one.spent


def _unpickled(
    start: tuple[int, int], served: set[tuple[int, str]], seen: Mapping[int, tuple[Any, ...]]
) -> Session:
    known = {part: BudgetState(Fraction(*spent), *rest) for part, (spent, *rest) in seen.items()}
    return Session(start, served, known)


# Those of this process, by the identity of the file: its path may be spelled in several ways.
_SESSIONS: dict[str, Session] = {}


def session_of(identity: str) -> Session | None:
    """Return the session of a file in this process, if it has begun."""
    return _SESSIONS.get(identity)


def joined(identity: str, session: Session) -> Session:
    """Return the one session of a file in this process, which begins or knows what this one knows."""
    known = _SESSIONS.setdefault(identity, session)
    if known is not session:
        known.join(session)
    return known
