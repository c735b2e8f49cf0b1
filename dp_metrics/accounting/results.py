"""What the spends of a budget have bought, and under which name it is found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.accounting.ledgers import Ledger, name_used
from dp_metrics.accounting.spends import LedgerEntry
from dp_metrics.inputs.options import did_you_mean

# Layers above know how each kind of release is made again; this one is loaded when somebody asks.
_READER = "dp_metrics.release.stored_answers"


@dataclass(frozen=True)
class StoredResult:
    """A spend of a budget, with what it has bought.

    Parameters
    ----------
    spend_name : str
        The name of the spend.
    time : datetime
        When it was recorded, in UTC.
    epsilon : float
        What it cost.
    value : float, str or None
        The released number, or a short form of what is no number. None: nothing was stored. The spend counts
        all the same.
    mechanism, neighboring
        As in the history.
    is_named : bool
        Whether the name was given to the release, so that ``budget[spend_name]`` returns it.
    """

    spend_name: str
    time: datetime
    epsilon: float
    value: float | str | None
    mechanism: str | None
    neighboring: str
    is_named: bool
    _kept: LedgerEntry = field(repr=False, compare=False)

    @property
    def result(self) -> Any:
        """All of the release, of the type that it had; raises ValueError if it was not stored."""
        return restored(self._kept)


class StoredResults(tuple[StoredResult, ...]):
    """All that a budget has bought, oldest first: a tuple, with ``to_frame()``."""

    __slots__ = ()

    def to_frame(self) -> Any:
        """Return a data frame with a row for each spend; this imports pandas.

        Returns
        -------
        pandas.DataFrame
            The columns "spend_name", "time", "epsilon", "value", "mechanism" and "neighboring".
        """
        pandas = import_extra("pandas", "report")
        columns = ["spend_name", "time", "epsilon", "value", "mechanism", "neighboring"]
        rows = [[getattr(one, name) for name in columns] for one in self]
        return pandas.DataFrame(rows, columns=columns)


def results_of(ledger: Ledger) -> StoredResults:
    """Return what a ledger keeps."""
    return StoredResults(_stored(kept) for kept in ledger.kept())


def _stored(kept: LedgerEntry) -> StoredResult:
    spend = kept.spend
    value = None if kept.summary is None else json.loads(kept.summary)
    if not isinstance(value, float | str | None):
        raise ValueError(f"What is stored of the spend named {spend.spend_name!r} is damaged.")
    is_named = kept.is_named is True
    return StoredResult(
        spend.spend_name, spend.time, spend.epsilon, value, spend.mechanism, spend.neighboring, is_named, kept
    )


def restored(kept: LedgerEntry) -> Any:
    """Return the release that a ledger keeps, of the type that it had."""
    if kept.answer is None:
        raise ValueError(_no_value(kept))
    return import_module(_READER).restored(kept.question, kept.answer)


def found(ledger: Ledger, spend_name: str) -> LedgerEntry | None:
    """Return what a ledger keeps of the only release that was given a name; None if there is none.

    Raises
    ------
    ValueError
        If there are several.
    """
    known = [kept for kept in ledger.kept(spend_name) if kept.is_named is not False]
    if len(known) > 1:
        raise ValueError(
            f"The budget has {len(known)} spends named {spend_name!r}, made by hand or by an earlier "
            "version: none of them is the answer. Look for them in results(), and choose another "
            "spend_name for a new release."
        )
    return known[0] if known else None


def servable(ledger: Ledger, spend_name: str) -> LedgerEntry | None:
    """Return what an earlier session stored under a name; None if the name is free.

    Raises
    ------
    ValueError
        If the name was used in this session, or no value was stored.
    """
    kept = found(ledger, spend_name)
    if kept is not None and not kept.is_earlier:
        raise name_used(spend_name, ledger)
    if kept is not None and kept.answer is None:
        raise ValueError(_no_value(kept))
    return kept


def the_one_named(ledger: Ledger, spend_name: str) -> Any:
    """Return the release of a name.

    Raises
    ------
    KeyError
        If no release was given the name.
    ValueError
        As `found`, or if what is stored is damaged.
    """
    kept = found(ledger, spend_name)
    if kept is None:
        names = [one.spend.spend_name for one in ledger.kept() if one.is_named]
        raise KeyError(
            f"No release was given the name {spend_name!r}; results() lists all."
            f"{did_you_mean(spend_name, names)}"
        )
    return restored(kept)


def _no_value(kept: LedgerEntry) -> str:
    name, when = kept.spend.spend_name, f"{kept.spend.time:%Y-%m-%d %H:%M} UTC"
    if kept.stored is not None:
        return f"Of the release named {name!r} of {when} only a short form is stored: see results()."
    return (
        f"The spend named {name!r} of {when} has no stored value: the budget has no path, or it was recorded "
        "by hand or by an earlier version, or its process ended, or the file was full, before the value was "
        "stored. What it cost is not given back. For a new release choose another spend_name."
    )
