"""Spends, and what they claim."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
