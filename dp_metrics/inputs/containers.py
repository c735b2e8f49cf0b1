"""From whatever holds records to an array, in which each record is what it is by itself.

NumPy gives a list the one type that suits all its elements: a word among numbers makes words of all of
them, a single float rounds large integers. One record would then change how all others are read, and the
sensitivity of a metric would be n records. So a list is always read element by element, to float64 or as
labels. The type of the elements and the number of columns are public: they come from the container alone,
such as an array or a data frame. A list tells neither.
"""

import math
import numbers
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.moments import ZONED, moments

__all__ = [
    "MISSING",
    "TOO_LARGE",
    "NotNumbersError",
    "array_of",
    "as_floats",
    "is_missing",
    "is_several",
    "refuse_unread",
    "states_columns",
]

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


class NotNumbersError(ValueError):
    """What was given is text, or other objects that are never read as numbers."""

    def __init__(self, given: str) -> None:
        super().__init__(_NOT_NUMERIC.format(given))


def states_columns(data: Any) -> bool:
    """Return whether a container says how many columns it has even where it holds no record: no list does."""
    return hasattr(data, "shape") or any(hasattr(data, protocol) for protocol in _ARRAY_LIKE)


def refuse_unread(data: Any) -> None:
    """Raise for a masked array, and for a table whose numbers are yet to be computed."""
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("Masked arrays are not supported: what the mask hides would be read.")
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
        raise ValueError("Complex data not supported")
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
        failure = NotNumbersError("what was given")
    # raising outside the handler does not chain the original, which may quote the data
    raise failure


def _reader(kind: type, name: str) -> Callable[[Any], float]:
    """Return what makes a float of objects of a type, or raise if they are never read as real numbers."""
    if issubclass(kind, _TEXT):  # text is refused, though Python reads numbers in digits
        raise NotNumbersError("arrays of bytes/strings")
    if issubclass(kind, complex | np.complexfloating):
        raise ValueError("Complex data not supported")
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
    elif isinstance(number := _quietly(float, element), float):
        return number
    elif isinstance(element, numbers.Real):  # no float is as large
        failure = ValueError(TOO_LARGE.format(name))
    raise failure


def is_several(element: Any) -> bool:
    """Return whether an object is a container of its own, which NumPy may take for a row of records."""
    if isinstance(element, str | bytes | np.generic | Enum):
        return False
    return hasattr(type(element), "__len__") or states_columns(element)


def is_missing(element: Any) -> bool:
    """Return whether an object is None, or not equal to itself, as NaT is, or pandas' NA."""
    if element is None:
        return True
    try:
        return bool(element != element)
    except TypeError:  # NA, of which nobody knows whether it is equal to itself
        return True
    except Exception:  # an array, a signaling NaN, or an object with an equality of its own
        return False


def _quietly(function: Callable[[Any], Any], element: Any) -> Any:
    """Return a function of an object, or None if that fails, for whatever reason the object has."""
    try:
        return function(element)
    except Exception:
        return None
