"""Released numbers, each with how sure it is, and the one table of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.release.released import Interval

CONFIDENCE = 0.95
"""Of the limits that tables show."""


@dataclass(frozen=True)
class Number:
    """A number that was released, or follows from what was.

    Parameters
    ----------
    name : str
        What it is called: "recall", "recall of 'spam'", "recall in 'female'", "recall difference".
    value : float
        The released number; NaN where there is none.
    metric : str
        The metric: "recall".
    note : str or None, default=None
        What must not be concluded from it.
    bias : str or None, default=None
        Which way it usually errs.
    label, group : object, default=None
        Of which label, and in which group.
    rests_on : float or None, default=None
        About how many records it rests on, where that is known; noisy, unless sizes of groups are public.
    section, release : str, default=""
        Where a page shows it, and of which of its releases it was made, as its plan calls it.
    feature : int or None, default=None
        The place, from 0, of the one feature of several by which the groups are; None: they are by all.
    confidence : float, default=0.95
        Of the range that a page shows; largest differences share what may miss.
    """

    name: str
    value: float
    metric: str
    note: str | None = None
    bias: str | None = None
    label: Any = None
    group: Any = None
    rests_on: float | None = None
    section: str = ""
    release: str = ""
    feature: int | None = None
    confidence: float = CONFIDENCE
    _noise: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)
    _people: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)
    _known: dict[Any, Interval] = field(default_factory=dict, init=False, repr=False, compare=False)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the exact number of these records; ValueError if there are none."""
        return self._asked(self._noise, confidence)

    def population_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits among all people like these; ValueError if there are none."""
        return self._asked(self._people, confidence)

    def _asked(self, limits: Callable[[float], Interval] | None, confidence: float) -> Interval:
        if limits is None:
            raise ValueError("There are no such limits of this number.")
        asked = limits is self._people, confidence
        if asked not in self._known:  # a page shows them in several places
            self._known[asked] = limits(confidence)
        return self._known[asked]

    def row(self) -> dict[str, Any]:
        """Return all that there is to say of the number, as JSON has it: NaN and infinity are None."""
        row: dict[str, Any] = {
            "name": self.name, "metric": self.metric, "label": _text(self.label), "group": _text(self.group),
            "value": finite(self.value), "rests_on": finite(self.rests_on), "note": self.note,
            "bias": self.bias,
        }  # fmt: skip
        for kind, limits in (("people", self.population_interval), ("noise", self.noise_interval)):
            try:
                found = limits(CONFIDENCE)
            except (TypeError, ValueError) as error:
                row |= {kind: None, f"{kind}_note": str(error)}
            else:
                row |= {kind: [finite(found.lower), finite(found.upper)], f"{kind}_note": found.note or None}
        return row


@dataclass(frozen=True)
class SharedLimits:
    """Limits of all labels or groups, which are found together: once with each confidence."""

    limits: Callable[..., Any]
    known: dict[float, Any] = field(default_factory=dict)

    def __call__(self, confidence: float) -> Any:
        """Return the limits."""
        if confidence not in self.known:
            self.known[confidence] = self.limits(confidence=confidence)
        return self.known[confidence]


_COLUMNS = (
    *("metric", "label", "group", "value", "people_lower", "people_upper", "noise_lower", "noise_upper"),
    *("rests_on", "note", "bias", "people_note", "noise_note"),
)


def table_of(rows: Iterable[Mapping[str, Any]], more: tuple[str, ...] = ()) -> Any:
    """Return the table of numbers, a row each by name, with these columns as well; this imports pandas.

    Parameters
    ----------
    rows : iterable of mapping
        The rows of the numbers.
    more : tuple of str, default=()
        What else they have.

    Returns
    -------
    pandas.DataFrame
        The columns of `PrivateMetricFrame.frame`; what is not known is missing.
    """
    pd = import_extra("pandas", "report")

    ends = [(kind, at, end) for kind in ("people", "noise") for at, end in enumerate(("lower", "upper"))]
    flat = [
        {**row, **{f"{kind}_{end}": None if row[kind] is None else row[kind][at] for kind, at, end in ends}}
        for row in rows
    ]
    return pd.DataFrame(flat, columns=["name", *_COLUMNS, *more]).set_index("name")


def finite(number: Any) -> float | None:
    """Return a number, or None for what is none, or not finite."""
    return None if number is None or not math.isfinite(number) else float(number)


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
