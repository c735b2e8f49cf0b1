"""What the spends of a budget have bought, and under which name it is found."""

from __future__ import annotations

from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.accounting.ledgers import Ledger, name_used
from dp_metrics.accounting.spends import StoredResult
from dp_metrics.inputs.options import did_you_mean


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


def found(ledger: Ledger, spend_name: str) -> StoredResult | None:
    """Return what a ledger keeps of the only release that was given a name; None if there is none.

    Raises
    ------
    ValueError
        If there are several.
    """
    known = [kept for kept in ledger.kept(spend_name) if kept.may_be_named]
    if len(known) > 1:
        raise ValueError(
            f"The budget has {len(known)} spends named {spend_name!r}, made by hand or by an earlier "
            "version: none of them is the answer. Look for them in results(), and choose another "
            "spend_name for a new release."
        )
    return known[0] if known else None


def servable(ledger: Ledger, spend_name: str) -> StoredResult | None:
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
        raise ValueError(kept.no_value)
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
        names = [one.spend_name for one in ledger.kept() if one.is_named]
        raise KeyError(
            f"No release was given the name {spend_name!r}; results() lists all."
            f"{did_you_mean(spend_name, names)}"
        )
    return kept.result
