"""What the spends of a budget have bought."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.accounting.spends import Spend

# Layers above know how each kind of release is made again; this one is loaded when somebody asks.
_READER = "dp_metrics.release.stored"


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
