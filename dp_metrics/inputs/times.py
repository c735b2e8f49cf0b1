"""Dates, times and durations in their one exact form, whatever holds them and in whatever unit: a `Moment`.

That is a whole number of attoseconds, the smallest unit of NumPy. A day is its midnight, as in NumPy. Times
with a time zone are equal if they are the same instant, and never equal to times without one, of which nobody
knows where they are.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

TIMES = (np.datetime64, np.timedelta64)
_OBJECTS_OF_TIME = (date, timedelta, *TIMES)
NAIVE, ZONED = "times without a time zone", "times with a time zone"
_SECOND = 10**18
_DAY = 24 * 3600 * _SECOND
_UNITS = {
    "W": 7 * _DAY, "D": _DAY, "h": 3600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}  # fmt: skip
_MONTHS = {"Y": 12, "M": 1}
# the calendar repeats itself
_CYCLE_MONTHS, _CYCLE_DAYS = 4800, 146_097
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, order=True, slots=True)
class Moment:
    """A date, a time or a duration; those of two kinds are never equal.

    Parameters
    ----------
    kind : str
        `NAIVE`, `ZONED`, or that of a duration.
    count : int
        Attoseconds since the beginning of 1970, or of a duration: of one in months, these.
    """

    kind: str
    count: int


def kind_of_times(dtype: np.dtype[Any]) -> str:
    """Return the kind of NumPy's times of a type."""
    if dtype.kind == "M":
        return NAIVE
    unit, _ = np.datetime_data(dtype)
    if unit == "generic":
        return "durations without a unit"
    return "durations in months" if unit in _MONTHS else "durations"


def counts_of(times: NDArray[Any]) -> NDArray[Any]:
    """Return the count of each of NumPy's times, none of which is NaT, as exact integers of Python."""
    unit, step = np.datetime_data(times.dtype)
    counts: NDArray[Any] = times.astype(np.int64).astype(object) * step
    if unit not in _MONTHS:
        return counts * _UNITS.get(unit, 1)
    counts = counts * _MONTHS[unit]
    if times.dtype.kind == "m":
        return counts
    months = (counts % _CYCLE_MONTHS).astype(np.int64).astype("M8[M]")
    days = months.astype("M8[D]").astype(np.int64).astype(object)
    in_days: NDArray[Any] = counts // _CYCLE_MONTHS * _CYCLE_DAYS + days
    return in_days * _DAY


def moments(times: NDArray[Any], kind: str | None = None) -> NDArray[Any]:
    """Return NumPy's times as an array of `Moment`, of the kind of their type or another; NaT remains."""
    of_kind = kind or kind_of_times(times.dtype)
    found = np.full(times.shape, np.datetime64("NaT"), dtype=object)
    there = ~np.isnat(times)
    found[there] = np.frompyfunc(lambda count: Moment(of_kind, count), 1, 1)(counts_of(times[there]))
    return found


def moment_of(label: Any) -> Any:
    """Return a date, a time or a duration as a `Moment`, and anything else, or what is none, as it is."""
    if not issubclass(type(label), _OBJECTS_OF_TIME):
        return label
    try:
        return _moment(label)
    except Exception:  # a time zone of somebody else may fail in any way
        return label


def exact(objects: list[Any]) -> list[Any]:
    """Return objects, each as `moment_of` gives it."""
    if any(issubclass(kind, _OBJECTS_OF_TIME) for kind in set(map(type, objects))):
        return [moment_of(one) for one in objects]
    return objects  # far faster where there is no time


def _moment(label: Any) -> Any:
    offset = label.utcoffset() if isinstance(label, datetime) and label.tzinfo is not None else None
    kind = None if offset is None else ZONED
    for name in ("to_datetime64", "to_timedelta64"):  # pandas has finer times than Python, and makes them UTC
        if hasattr(type(label), name):
            label = getattr(label, name)()
    if isinstance(label, TIMES):
        if np.isnat(label):
            return label
        unit, step = np.datetime_data(label.dtype)
        if unit in _UNITS:  # as `moments`, and faster
            return Moment(
                kind or kind_of_times(label.dtype), int(label.astype(np.int64)) * step * _UNITS[unit]
            )
        return moments(np.array([label]))[0]
    if isinstance(label, timedelta):
        return Moment(kind_of_times(np.dtype("m8[us]")), _attoseconds(label))
    if not isinstance(label, datetime):
        return Moment(NAIVE, (label.toordinal() - _EPOCH.toordinal()) * _DAY)
    since = label.replace(tzinfo=None) - _EPOCH
    return Moment(kind or NAIVE, _attoseconds(since if offset is None else since - offset))


def _attoseconds(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * _SECOND + span.microseconds * 10**12
