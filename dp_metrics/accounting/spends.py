"""Spends, what they claim, and what a ledger keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from importlib import import_module
from typing import Any, TypeAlias

# Layers above know how each kind of release is made again; this one is loaded when somebody asks.
_READER = "dp_metrics.release.stored_answers"

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
class StoredResult(Spend):
    """A spend of a budget, with what it has bought.

    Parameters
    ----------
    time, spend_name, epsilon, mechanism, neighboring
        As in the history.
    is_named : bool
        Whether the name was given to the release, so that ``budget[spend_name]`` returns it.
    value : float, str or None
        The released number, or a short form of what is no number. None: nothing was stored. The spend counts
        all the same.
    may_be_named : bool
        Whether the name may have been given: nobody tells where `spend` was called by hand, or by a version
        that did not store this.
    question, answer : str or None
        JSON: what was asked for, and all of the release.
    stored : datetime or None
        When the answer was stored, in UTC; None: it never was.
    is_earlier : bool
        Whether the spend is of an earlier session than the one of this process: its answer may be served.
    """

    is_named: bool
    value: float | str | None
    may_be_named: bool = field(repr=False)
    question: str | None = field(repr=False)
    answer: str | None = field(repr=False)
    stored: datetime | None = field(repr=False)
    is_earlier: bool = field(repr=False)

    @property
    def result(self) -> Any:
        """All of the release, of the type that it had; raises ValueError if it was not stored."""
        if self.answer is None:
            raise ValueError(self.no_value)
        return import_module(_READER).restored(self.question, self.answer)

    @property
    def no_value(self) -> str:
        """Why there is no release."""
        name, when = self.spend_name, f"{self.time:%Y-%m-%d %H:%M} UTC"
        if self.stored is not None:
            return f"Of the release named {name!r} of {when} only a short form is stored: see results()."
        return (
            f"The spend named {name!r} of {when} has no stored value: the budget has no path, or it was "
            "recorded by hand or by an earlier version, or its process ended, or the file was full, before "
            "the value was stored. What it cost is not given back. For a new release choose another "
            "spend_name."
        )
