"""A spend, and what a ledger of spends has to do."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Protocol, TypeAlias

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


@dataclass
class Claim:
    """What a release says of itself when it is paid for.

    Parameters
    ----------
    question : str or None
        What was asked for, as JSON of public things; None: it cannot be written down.
    is_named : bool
        Whether the name was given, so that no other spend may have it.
    is_numbered : bool, default=False
        Whether the name gets the next number behind it, so that it can be given again and again.
    number : int or None, default=None
        The number of the spend in its ledger, as soon as it is paid.
    """

    question: str | None
    is_named: bool
    is_numbered: bool = False
    number: int | None = None


@dataclass(frozen=True)
class LedgerEntry:
    """A spend, and what a ledger keeps of the release that it paid for.

    Parameters
    ----------
    spend : Spend
        The entry of the history.
    is_named : bool or None
        Whether the name was given; None where the ledger cannot tell: `spend` was called by hand, or by a
        version that did not store this.
    question, answer, summary : str or None
        JSON: what was asked for, all of the release, and a short form of its value.
    stored : datetime or None
        When the answer was stored, in UTC; None: it never was.
    is_earlier : bool, default=False
        Whether the spend is of an earlier session than the one of this process: its answer may be served.
    """

    spend: Spend
    is_named: bool | None = None
    question: str | None = None
    answer: str | None = None
    summary: str | None = None
    stored: datetime | None = None
    is_earlier: bool = False


class Ledger(Protocol):
    """A record of spends that only grows."""

    @property
    def path(self) -> str | None:
        """The file, if there is one."""
        ...

    @property
    def total(self) -> Fraction:
        """What may be spent altogether."""
        ...

    def record(
        self,
        epsilon: Fraction,
        spend_name: str,
        mechanism: str | None,
        neighboring: str,
        check: Check,
        claim: Claim | None = None,
    ) -> int:
        """Record a spend for good, unless the check raises; to all who share the ledger this is one step.

        Return its number. Raise ValueError, before the check, if the claim's name is taken.
        """
        ...

    def keep(self, number: int, answer: str | None, summary: str) -> None:
        """Add to a spend with a claim what was released, once and for all, if the ledger stores answers."""
        ...

    def serve(self, spend_name: str) -> bool:
        """Return whether the stored answer of a name may be served now, which uses the name."""
        ...

    def kept(self, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        """Return all entries, or those of a name, oldest first, with what is kept of each."""
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


def name_used(spend_name: str, ledger: Ledger) -> ValueError:
    """Return the refusal of a name that this session has used, to be raised before anything is spent."""
    stored = "This budget has no path, so that nothing is stored."
    if ledger.path is not None:
        stored = f"budget[{spend_name!r}] returns what it bought."
    return ValueError(
        f"spend_name={spend_name!r} was used since this session began, and a name is used once in a session: "
        f"nothing is spent. {stored} For a new release choose another spend_name; scorers made by "
        "make_private_scorer number their names."
    )
