"""Sessions: what a process has seen of a budget file since it first opened it.

A name is used once in a session: it buys, or is served what an earlier session stored. Otherwise two folds,
or two rounds of a loop, would have one number. A session is no matter of a clock or of the number of a
process: it begins after the last spend that the ledger then had, and goes with pickled copies and forks.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple


class BudgetState(NamedTuple):
    """What was last seen of the budget.

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
    start : int
        The number of the last spend when it began.
    served : set of str
        The names of stored answers that were served since.
    seen : BudgetState, default=nothing
        What was seen since.
    """

    start: int
    served: set[str] = field(default_factory=set)
    seen: BudgetState = field(default_factory=BudgetState)

    def join(self, other: "Session") -> None:
        """Take over what a copy knows: together they are one session, from the first beginning on."""
        self.start = min(self.start, other.start)
        self.served |= other.served
        self.seen = max(other.seen, self.seen, key=_latest)

    def __reduce__(self) -> tuple[Any, ...]:
        # a Fraction would be pickled as a decimal, and Python refuses to convert long ones
        spent, *rest = self.seen
        return _unpickled, (self.start, set(self.served), (spent.as_integer_ratio(), *rest))


def _latest(one: BudgetState) -> tuple[int, Fraction]:
    return one.number, one.spent


def _unpickled(start: int, served: set[str], seen: tuple[Any, ...]) -> Session:
    spent, *rest = seen
    return Session(start, served, BudgetState(Fraction(*spent), *rest))


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
