"""From whatever holds records to an array, in which each record is what it is by itself.

NumPy gives a list the one type that suits all its elements: a word among numbers makes words of all of
them, a single float rounds large integers. One record would then change how all others are read, and the
sensitivity of a metric would be n records. So a list is always read element by element, to float64 or as
labels. The type of the elements and the number of columns are public: they come from the container alone,
such as an array or a data frame. A list tells neither.

Dates, times and durations have one exact form, whatever holds them and in whatever unit: a `Moment`, a whole
number of attoseconds, the smallest unit of NumPy. A day is its midnight, as in NumPy. Times with a time zone
are equal if they are the same instant, and never equal to times without one, of which nobody knows where they
are.
"""

import math
import numbers
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dp_metrics.inputs.floats import Floats

_NOT_NUMERIC = (
    "dtype='numeric' is not compatible with {}. Convert your data to numeric values explicitly instead."
)
MISSING = "Input {} contains NaN: drop such records, or fill them in, before you split the data."
TOO_LARGE = "Input {} contains infinity or a value too large for dtype('float64')."
_RAGGED = "Expected a rectangular array of numbers, got elements of different shapes instead."


_ARRAY_LIKE = ("__array__", "__array_interface__", "__array_struct__")
_PLAIN = (bool, int, float, Fraction, Decimal)
_TEXT = (str, bytes, bytearray, memoryview)
_TIMES = (np.datetime64, np.timedelta64)
_OBJECTS_OF_TIME = (date, timedelta, *_TIMES)

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


class NotNumbersError(ValueError):
    """What was given is text, or other objects that are never read as numbers."""

    def __init__(self, given: str) -> None:
        super().__init__(_NOT_NUMERIC.format(given))


def states_columns(data: Any) -> bool:
    """Return whether a container says how many columns it has even where it holds no record: no list does."""
    with suppress(Exception):  # a container may raise what it likes, and quote what it holds
        return hasattr(data, "shape") or any(hasattr(data, protocol) for protocol in _ARRAY_LIKE)
    return False


def number_of_records(container: Any) -> int:
    """Return how many records a container has, without a look at what they hold.

    Raises
    ------
    TypeError
        If it does not tell: what it raises then may quote its records.
    """
    n = None
    with suppress(Exception):
        shape = getattr(container, "shape", None)
        stated = len(container) if shape is None and hasattr(container, "__len__") else shape and shape[0]
        n = int(stated) if isinstance(stated, numbers.Integral) else len(np.asarray(container))
    if n is None:
        raise TypeError("Expected sequences or array-likes of one entry per record.")
    return n


def refuse_unread(data: Any) -> None:
    """Raise for a masked array, and for a table whose numbers are yet to be computed."""
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError(
            "Masked arrays are not supported: what the mask hides would be read. Drop such records."
        )
    if hasattr(type(data), "collect_schema") and hasattr(type(data), "collect"):
        raise TypeError("A LazyFrame holds no numbers yet: pass what its method collect() returns.")


def array_of(data: Any) -> NDArray[Any]:
    """Return what a container holds as an array: of its own type, or for a list one of objects.

    Raises
    ------
    TypeError, ValueError
        For masked arrays, sparse matrices and tables whose numbers are yet to be computed; and if the
        container cannot be made an array.
    """
    if type(data) is np.ndarray:
        return data
    refuse_unread(data)
    if issparse(data):
        raise TypeError("Sparse data was passed, but dense data is required.")
    failure: Exception
    try:
        return _stated(data) if states_columns(data) else np.asarray(data, dtype=object)
    except ValueError:
        failure = ValueError(_RAGGED)
    except Exception:  # containers raise errors of their own, which may quote what they hold
        failure = TypeError("What was given cannot be made a NumPy array: convert it first.")
    # raising outside the handler does not chain the original, which may quote the data
    raise failure


def _stated(data: Any) -> NDArray[Any]:
    """Return what a container that states its form holds; times in a time zone as objects that tell so."""
    array = np.asarray(data)
    if array.dtype.kind != "M":
        return array
    if hasattr(type(data), "column_names"):
        types = data.schema.types
    elif hasattr(type(data), "columns"):
        types = list(data.dtypes)
    else:
        types = [getattr(data, "dtype", getattr(data, "type", None))]
    zones = {_has_zone(getattr(one, "value_type", one)) for one in types}
    if len(zones) > 1:
        raise TypeError("Times with and without a time zone make no array.")
    return moments(array, ZONED) if zones == {True} else array


def _has_zone(of_column: Any) -> bool:
    """Return whether a type of polars or pyarrow has a time zone, for which NumPy has no place."""
    return any(getattr(of_column, name, None) is not None for name in ("time_zone", "tz"))


def as_floats(array: NDArray[Any], name: str) -> Floats:
    """Return numbers of any type as float64, each converted by itself; NaN and infinity remain.

    Raises
    ------
    TypeError, ValueError
        If the type is not one of real numbers; for an array of objects, if an object is no real number.
    """
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError("Complex data not supported: pass real numbers.")
    if kind in "UST":
        raise NotNumbersError("arrays of bytes/strings")
    if kind == "O":
        return _numbers(array, name)
    if kind not in "biuf":
        raise TypeError(_NOT_NUMERIC.format("dates, time spans or records"))
    floats: Floats = array.astype(np.float64)
    return floats


def _numbers(objects: NDArray[Any], name: str) -> Floats:
    """Return an array of objects as float64."""
    elements = objects.ravel().tolist()
    reads = {kind: _reader(kind, name) for kind in set(map(type, elements))}
    plain = objects.flatten()
    if not set(reads.values()) <= {float}:  # NumPy makes floats of all others
        odd = [place for place, element in enumerate(elements) if reads[type(element)] is not float]
        plain[odd] = [reads[type(elements[place])](elements[place]) for place in odd]
    failure: Exception
    try:
        return plain.astype(np.float64).reshape(objects.shape)
    except OverflowError:
        failure = ValueError(TOO_LARGE.format(name))
    except ValueError:  # a signaling NaN of Decimal
        failure = ValueError(MISSING.format(name))
    # raising outside the handler does not chain the original, which may quote the data
    raise failure


def _reader(kind: type, name: str) -> Callable[[Any], float]:
    """Return what makes a float of objects of a type, or raise if they are never read as real numbers."""
    if issubclass(kind, _TEXT):  # text is refused, though Python reads numbers in digits
        raise NotNumbersError("arrays of bytes/strings")
    if issubclass(kind, complex | np.complexfloating):
        raise ValueError("Complex data not supported: pass real numbers.")
    if issubclass(kind, _TIMES):
        raise TypeError(_NOT_NUMERIC.format("dates, time spans or records"))
    plain = kind in _PLAIN or issubclass(kind, np.number | np.bool_)
    return float if plain else partial(_number, name=name)


def _number(element: Any, name: str) -> float:
    """Return one object as a float, or raise because of what that object is."""
    if is_missing(element):
        return math.nan
    failure: Exception = NotNumbersError("what was given")
    if _quietly(np.ndim, element) != 0:
        failure = ValueError(_RAGGED)
    elif (number := _quietly(float, element)) is not None:
        return float(number)
    elif is_a(element, numbers.Real):  # no float is as large
        failure = ValueError(TOO_LARGE.format(name))
    raise failure


def is_a(element: Any, kinds: type | tuple[type, ...]) -> bool:
    """Return whether an object is of a type, without asking the object, which may raise what it likes."""
    return issubclass(type(element), kinds)


def is_several(element: Any) -> bool:
    """Return whether an object is a container of its own, which NumPy may take for a row of records."""
    if is_a(element, (str, bytes, np.generic, Enum)):
        return False
    return hasattr(type(element), "__len__") or bool(_quietly(states_columns, element))


def is_missing(element: Any) -> bool:
    """Return whether an object is None, or not equal to itself, as NaT is, or pandas' NA."""
    if element is None:
        return True
    if is_a(element, Decimal):  # a signaling NaN cannot even be compared
        return bool(element.is_nan())
    try:
        return bool(element != element)
    except TypeError:  # NA, of which nobody knows whether it is equal to itself
        return True
    except Exception:  # an array, or an object with an equality of its own
        return False


def _quietly(function: Callable[[Any], Any], element: Any) -> Any:
    """Return a function of an object, or None if that fails, for whatever reason the object has."""
    try:
        return function(element)
    except Exception:
        return None


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
    if not is_a(label, _OBJECTS_OF_TIME):
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
    if isinstance(label, _TIMES):
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
