"""From whatever holds records to arrays, in which each record is what it is by itself, and their form.

A `Moment` is a whole number of attoseconds, the smallest unit of NumPy. A day is its midnight, as in NumPy.
Times with a time zone are equal if they are the same instant, and never equal to times without a zone, of
which nobody knows where they are.

NumPy gives a list the one type that suits all its elements: a word among numbers makes words of all of
them, a single float rounds large integers. One record would then change how all others are read, and the
sensitivity of a metric would be n records. So a list is always read element by element, to float64 or as
labels. The type of the elements and the number of columns are public: they come from the container alone,
such as an array or a data frame. A list tells neither.

Privacy decides what may be checked: an invalid record is refused before anything is spent, and the
refusal reveals that one exists. So each check looks at one record at a time, and no message holds a
value, a count or a position from the data. What depends on several records at once
(`type_of_target`, a single-class check, a warning about row sums) is never called.

What concerns a whole array (its type, shape and length) is checked at once, by functions that return the
array uncopied where they can; what concerns its contents is checked in blocks, as they are read, by functions
that end in `_block`. The errors are those that users of scikit-learn expect.

A `Shape` is all that anybody may know of records before one of them is read. Whatever is planned is planned
from a shape. `Records` hold the contents, which are looked at once a plan has read them, and never before.

Names of columns are public too. Those of labels say which column is which, see `LabelColumns`. Targets are
compared in the order in which they stand: nothing is read where names contradict that.

A reader is made of public things, and is part of a query: records as a caller passed them become records
whose form is valid. Public beside the records are their weights, and whose they are: `groups` name the person
of each record, who is protected with all of them. (The groups that a frame compares are its
`sensitive_features`.)
"""

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import repeat
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from dp_metrics.inputs.options import (
    Array,
    ByName,
    Codes,
    Floats,
    Function,
    Relation,
    check_choice,
    check_count,
    check_flag,
)

TIMES = (np.datetime64, np.timedelta64)
_OBJECTS_OF_TIME = (date, timedelta, *TIMES)
NAIVE, ZONED = "times without a time zone", "times with a time zone"
_SECOND = 10**18
_DAY = 24 * 3600 * _SECOND
_UNITS = {
    "W": 7 * _DAY, "D": _DAY, "h": 3600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1, "generic": 1,
    "Y": 12, "M": 1,
}  # fmt: skip
_ODD_DURATIONS = {"generic": "durations without a unit", **dict.fromkeys("YM", "durations in months")}
# the calendar repeats itself
_CYCLE_MONTHS, _CYCLE_DAYS = 4800, 146_097


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
    return _ODD_DURATIONS.get(unit, "durations")


def moments(times: Array, kind: str | None = None) -> Array:
    """Return NumPy's times as an array of `Moment`, of the kind of their type or another; NaT remains."""
    distinct, which = np.unique(times, return_inverse=True)  # labels are few
    found = np.fromiter((moment_of(one, kind) for one in distinct), dtype=object, count=distinct.size)
    return found[which.reshape(times.shape)]


def moment_of(label: Any, kind: str | None = None) -> Any:
    """Return a date, a time or a duration as a `Moment`, and anything else, or what is none, as it is."""
    if not is_a(label, _OBJECTS_OF_TIME):
        return label
    try:
        return _moment(label, kind)
    except Exception:  # a time zone of somebody else may fail in any way
        return label


def exact(labels: Array) -> list[Any]:
    """Return the elements of an array, each as `moment_of` gives it."""
    objects = (moments(labels) if labels.dtype.kind in "mM" else labels).ravel().tolist()
    if any(issubclass(kind, _OBJECTS_OF_TIME) for kind in set(map(type, objects))):
        return [moment_of(one) for one in objects]
    return objects  # far faster where there is no time


def _moment(label: Any, kind: str | None) -> Any:
    offset = label.utcoffset() if isinstance(label, datetime) else None
    kind = kind if offset is None else ZONED
    for name in ("to_datetime64", "to_timedelta64"):  # pandas has finer times than Python, and makes them UTC
        if hasattr(type(label), name):
            label, offset = getattr(label, name)(), None
    if isinstance(label, timedelta):  # NumPy's microseconds do not hold the longest
        return Moment(kind_of_times(np.dtype("m8[us]")), label // timedelta(microseconds=1) * _UNITS["us"])
    if isinstance(label, date):
        naive = label.replace(tzinfo=None) if isinstance(label, datetime) else label
        label = np.datetime64(naive) - np.timedelta64(offset or timedelta(0))
    return label if np.isnat(label) else Moment(kind or kind_of_times(label.dtype), _count_of(label))


def _count_of(time: Any) -> int:
    """Return the count of one of NumPy's times, which is not NaT."""
    unit, step = np.datetime_data(time.dtype)
    count = int(time.astype(np.int64)) * step * _UNITS[unit]
    if unit not in ("Y", "M") or time.dtype.kind == "m":
        return count
    cycles, months = divmod(count, _CYCLE_MONTHS)
    days = int(np.datetime64(months, "M").astype("M8[D]").astype(np.int64))
    return (cycles * _CYCLE_DAYS + days) * _DAY


_NOT_NUMERIC = (
    "dtype='numeric' is not compatible with {}. Convert your data to numeric values explicitly instead."
)
MISSING = "Input {} contains NaN: drop such records, or fill them in, before you split the data."
TOO_LARGE = "Input {} contains infinity or a value too large for dtype('float64')."
_RAGGED = "Expected a rectangular array of numbers, got elements of different shapes instead."
_STATED = ("shape", "__array__", "__array_interface__", "__array_struct__")
_PLAIN = (bool, int, float, Fraction, Decimal)
_NUMPYS_NUMBERS = (np.integer, np.floating, np.bool_)
_COMPLEX = (complex, np.complexfloating)
_TEXT = (str, bytes, bytearray, memoryview)
COMPLEX = "Complex data not supported: pass real numbers."
NO_LABELS = "as predict_proba gives them, not labels"


def states_columns(data: Any) -> bool:
    """Return whether a container says how many columns it has even where it holds no record: no list does."""
    with suppress(Exception):  # a container may raise what it likes, and quote what it holds
        return any(hasattr(data, stated) for stated in _STATED)
    return False


def is_collection(data: Any) -> bool:
    """Return whether data are a lazy collection of Dask, as their type says."""
    return hasattr(type(data), "__dask_graph__")


def stated_shape(data: Any) -> tuple[int, ...] | None:
    """Return the shape that a container states, even without a record; None of a list, which tells none."""
    if not states_columns(data):
        return None
    return tuple(data.shape) if hasattr(data, "shape") else array_of(data).shape


def columns_of(data: Any) -> Sequence[Any]:
    """Return the columns of one feature or several, each of the type that its container gives it."""
    if isinstance(data, Mapping):
        raise TypeError("sensitive_features is a dict: pass a data frame of it, by pandas.DataFrame(...).")
    if len(stated_shape(data) or ()) != 2:
        return [data]
    if hasattr(data, "iloc"):  # pandas
        return [data.iloc[:, i] for i in range(data.shape[1])]
    for columns in ("get_columns", "itercolumns"):  # polars and pyarrow
        if hasattr(type(data), columns):
            return list(getattr(data, columns)())
    return list(array_of(data).T)


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


def array_of(data: Any) -> Array:
    """Return what a container holds as an array: of its own type, or for a list one of objects.

    Raises
    ------
    TypeError, ValueError
        For masked arrays, sparse matrices and tables whose numbers are yet to be computed; and if the
        container cannot be made an array.
    """
    if type(data) is np.ndarray:
        return data
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError(
            "Masked arrays are not supported: what the mask hides would be read. Drop such records."
        )
    if hasattr(type(data), "collect_schema") and hasattr(type(data), "collect"):
        raise TypeError("A LazyFrame holds no numbers yet: pass what its method collect() returns.")
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


def _stated(data: Any) -> Array:
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
    types = [getattr(one, "value_type", one) for one in types]
    # polars and pyarrow have types with a time zone, for which NumPy has no place
    zones = {any(getattr(one, name, None) is not None for name in ("time_zone", "tz")) for one in types}
    if len(zones) > 1:
        raise TypeError("Times with and without a time zone make no array.")
    return moments(array, ZONED) if zones == {True} else array


def as_floats(array: Array, name: str, no_numbers: str = _NOT_NUMERIC) -> Floats:
    """Return numbers of any type as float64, each converted by itself; NaN and infinity remain.

    Text, and other objects that are never read as numbers, are refused with the message `no_numbers`.

    Raises
    ------
    TypeError, ValueError
        If the type is not one of real numbers; for an array of objects, if an object is no real number.
    """
    _refuse_type(array.dtype.type, no_numbers)
    if array.dtype.kind != "O":
        return array.astype(np.float64)
    elements = array.ravel().tolist()
    kinds = set(map(type, elements))
    for kind in kinds:
        _refuse_type(kind, no_numbers)
    if all(kind in _PLAIN or issubclass(kind, _NUMPYS_NUMBERS) for kind in kinds):
        with suppress(OverflowError, ValueError):  # a Decimal may be a signaling NaN
            return array.astype(np.float64)
    each = [one if type(one) is float else _number(one, name, no_numbers) for one in elements]
    return np.array(each, dtype=np.float64).reshape(array.shape)


def _refuse_type(kind: type, no_numbers: str) -> None:
    """Raise if what is of a type is never read as a real number, though NumPy or Python would."""
    if issubclass(kind, _TEXT):
        raise ValueError(no_numbers.format("arrays of bytes/strings"))
    if issubclass(kind, _COMPLEX):
        raise ValueError(COMPLEX)
    if issubclass(kind, (*TIMES, np.void)):
        raise TypeError(_NOT_NUMERIC.format("dates, time spans or records"))


def _number(element: Any, name: str, no_numbers: str) -> float:
    """Return one object as a float, or raise because of what that object is."""
    if is_missing(element):
        return math.nan
    failure = ValueError(no_numbers.format("what was given"))
    if quietly(np.ndim, element) != 0:
        failure = ValueError(_RAGGED)
    elif (number := quietly(float, element)) is not None:
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
    return hasattr(type(element), "__len__") or bool(quietly(states_columns, element))


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


def quietly(function: Function, element: Any) -> Any:
    """Return a function of an object, or None if that fails, for whatever reason the object has."""
    try:
        return function(element)
    except Exception:
        return None


def as_numbers(data: Any, name: str, no_numbers: str = _NOT_NUMERIC) -> Array:
    """Return real numbers as an array of one or two dimensions; `no_numbers`: as of `as_floats`.

    It is the container's own, uncopied, if it has one, and of float64 otherwise.
    """
    array = array_of(data)
    check_columns(array, name)
    if array.dtype.kind not in "biuf" or array.itemsize > 8:
        array = as_floats(array, name, no_numbers)
    return array


def flattened(array: Array) -> Array:
    """Return a column vector as an array of one dimension, anything else as it is."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def one_column(array: Array, name: str) -> Array:
    """Return one value per record as an array of shape (n_samples,); raise for several."""
    array = flattened(array)  # which has one or two dimensions
    if array.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of several columns instead: pass one value per "
            "record. Where each column is a question of its own, call the metric once for each, at a part "
            "of epsilon."
        )
    return array


def check_columns(array: Array, name: str) -> None:
    """Raise unless an array has one or two dimensions."""
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} should be a 1d or 2d array, got a {array.ndim}d array instead.")


BLOCK_BITS = 16
BLOCK = 1 << BLOCK_BITS
"""Records handled at once: small enough for the cache, large enough to hide the cost of a call."""


def in_blocks(values: Array, rows: int = BLOCK) -> Iterator[Array]:
    """Yield views of so many records at a time."""
    return (values[start : start + rows] for start in range(0, len(values), rows))


def float_block(block: Array, name: str) -> Floats:
    """Return numbers as contiguous float64, uncopied if they are; they must be finite."""
    # NumPy may compute a logarithm of strided data by other code, with another last bit
    values = np.ascontiguousarray(block, dtype=np.float64)
    if block.dtype.kind == "f" and not np.isfinite(values).all():
        if np.isnan(values).any():
            raise ValueError(MISSING.format(name))
        raise ValueError(TOO_LARGE.format(name))
    return values


def as_vector(data: ArrayLike, name: str, no_numbers: str = _NOT_NUMERIC) -> Array:
    """Return one number per record as an array of shape (n_samples,), of which one column is flattened."""
    return one_column(as_numbers(data, name, no_numbers), name)


def loss_block(losses: Array) -> Floats:
    """Return per-record losses, which must be finite and non-negative, as float64."""
    values = float_block(losses, "losses")
    if (values < 0).any():
        raise ValueError("Negative values in data passed to `losses`: every loss must be non-negative.")
    return values


def check_same_length(arguments: ByName, *, relation: Relation = Relation.REPLACE_ONE) -> None:
    """Raise unless all arguments have one number of records, naming two that have not.

    Parameters
    ----------
    arguments : mapping
        What holds records by what it is called; None holds none.
    relation : Relation, default=Relation.REPLACE_ONE
        A private number of records is not in the message.
    """
    lengths = {name: number_of_records(held) for name, held in arguments.items() if held is not None}
    first = next(iter(lengths), "")
    other = next((name for name, length in lengths.items() if length != lengths[first]), None)
    if other is None:
        return
    told = f"{first} and {other}"
    if not relation.private_n:
        told = f"{[*lengths.values()]}: {first} has {lengths[first]}, {other} has {lengths[other]}"
    raise ValueError(f"Found input variables with inconsistent numbers of samples: {told}.")


def probability_block(block: Array, name: str = "y_proba", outside: str = "") -> Floats:
    """Return probabilities as float64; they must lie in [0, 1], or else this is said of those outside."""
    values = float_block(block, name)
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        usual = f"{name} should contain values in [0, 1] only: probabilities, {NO_LABELS}."
        raise ValueError(outside or usual)
    return values


@dataclass(frozen=True)
class ArgumentShape:
    """The public form of one argument that holds a value per record.

    Parameters
    ----------
    columns : int or None, default=1
        Number of columns; None for an empty list, which does not tell.
    states_columns : bool, default=True
        Whether the container says how many columns it has even where it holds no record: no list does.
    resolution : float
        Machine epsilon of the type of floats, whatever holds them; else that of float64.
    names : tuple or None, default=None
        Names of the columns, as a data frame has them; none without names. None: no container tells, because
        the form was written down, or is the usual one.
    """

    columns: int | None = 1
    states_columns: bool = True
    resolution: float = sys.float_info.epsilon
    names: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, container: Any, array: Array) -> Self:
        """Return the form of a container, given what it holds as an array; raise if that has no column."""
        if array.ndim == 2 and array.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
        if type(container) is np.ndarray and container.dtype == np.float64:
            return cls(container.shape[1] if container.ndim == 2 else 1, names=())
        stated = states_columns(container)
        told = stated or array.shape[:1] != (0,)
        columns = (array.shape[1] if array.ndim == 2 else 1) if told else None
        resolution = float(np.finfo(type_of_floats(container, array)).eps)
        return cls(columns, stated, resolution, tuple(names_of(container)))


@dataclass(frozen=True)
class Shape:
    """All that is public of records before one of them is read.

    Parameters
    ----------
    arguments : tuple of ArgumentShape
        The form of each argument that holds a value per record.
    n : int or None, default=None
        Number of records, where it is public.
    most_records : int, default=1
        How many records one person has at most, of those that are read.
    units : int, default=1
        How many whole units the records of each person have together, if each person counts once; 1: each
        record counts alike, and costs what `most_records` says.
    """

    arguments: tuple[ArgumentShape, ...]
    n: int | None = None
    most_records: int = 1
    units: int = 1

    @property
    def relation(self) -> Relation:
        """The neighbouring relation under which no more than this is public."""
        return Relation.ADD_OR_REMOVE_ONE if self.n is None else Relation.REPLACE_ONE

    @property
    def states_columns(self) -> bool:
        """Whether some container says how many columns it has even where it holds no record."""
        return any(one.states_columns for one in self.arguments)

    def columns(self, otherwise: int = 1) -> int:
        """Return the largest number of columns of an argument, or another one if no argument tells."""
        return max((one.columns for one in self.arguments if one.columns is not None), default=otherwise)

    def of_any_records(self) -> Self:
        """Return what may be kept with a release: lists do not state columns where n is private.

        An empty list has none, so that its columns would tell whether there are records. Nothing that is
        released depends on them, nor on the type of its numbers, and so does nothing that is stored.
        """
        if self.n is not None:
            return self
        unstated = ArgumentShape(None, states_columns=False)
        return replace(self, arguments=tuple(x if x.states_columns else unstated for x in self.arguments))


_UNTOLD = np.empty((0, 0), dtype=object)


@dataclass(frozen=True, repr=False, eq=False)
class Records:
    """Private: what a caller passed, an array for each argument, whose contents nobody has looked at.

    Parameters
    ----------
    arrays : tuple of ndarray
        What the containers hold; of an empty list, which does not tell its columns, an array without any.
    sample_weight : array-like or None, default=None
        Public weights of the records.
    groups : array-like or None, default=None
        Public label of the person of each record.
    relation : Relation, default=Relation.REPLACE_ONE
        The neighbouring relation: whether their number is private.
    units : ndarray of shape (n_samples,) or None, default=None
        Public number of units of each record, where each person counts once; see `units_of_persons`.
    """

    arrays: tuple[Array, ...]
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None
    relation: Relation = Relation.REPLACE_ONE
    units: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        data: Sequence[Any],
        *,
        relation: Relation,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> tuple[Shape, Self]:
        """Return the public form of what a caller passed, and the records.

        Raises
        ------
        TypeError, ValueError
            If a container cannot be made an array.
        """
        arrays = tuple(map(array_of, data))
        forms = tuple(map(ArgumentShape.of, data, arrays))
        n = None if relation.private_n or not arrays[0].ndim else len(arrays[0])
        held = zip(arrays, forms, strict=True)
        arrays = tuple(_UNTOLD if form.columns is None else array for array, form in held)
        return Shape(forms, n), cls(arrays, sample_weight, groups, relation)

    def of_arguments(self, *places: int) -> Self:
        """Return the records with some of the arguments only."""
        return replace(self, arrays=tuple(self.arrays[place] for place in places))

    def split(self, parts: int) -> list[Self]:
        """Return the records in so many parts, each with as many of the arguments."""
        size = len(self.arrays) // parts
        return [self.of_arguments(*range(part * size, (part + 1) * size)) for part in range(parts)]

    def blocks(self, rows: int = BLOCK) -> Iterator[tuple[Any, ...]]:
        """Yield so many records at a time: an array of each argument, and one of their units, or None."""
        units = repeat(None) if self.units is None else in_blocks(self.units, rows)
        return zip(*(in_blocks(array, rows) for array in self.arrays), units, strict=False)

    def array(self, place: int, columns: int = 1) -> Array:
        """Return the array of an argument; that of an empty list has so many columns."""
        array = self.arrays[place]
        return array.reshape(0, columns) if array.shape == _UNTOLD.shape else array


@contextmanager
def of_prediction(place: int, many: int) -> Iterator[None]:
    """Say in a refusal that names a prediction which of several of one truth it is, counted from 1."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error)
        if "y_true" not in text and any(name in text for name in ("y_pred", "y_prob", "y_score")):
            error.args = (f"Prediction {place} of {many}: {text}",)
        raise


def read_each(records: Records, *, readers: Sequence[Callable[[Records], Records]]) -> Records:
    """Return what each reader returns of the first argument, the truth, and of one more: see `Records.split`.

    Objects are not compared: they may raise what they like.
    """
    arrays: list[Array] = []
    for place, reader in enumerate(readers, start=1):
        with of_prediction(place, len(readers)):
            pair = reader(records.of_arguments(0, place)).arrays
        # the truth is most often read as it was at first: it is kept once for all
        is_alike = arrays and pair[0].dtype == arrays[0].dtype != object
        arrays += (arrays[0], *pair[1:]) if is_alike and np.array_equal(pair[0], arrays[0]) else pair
    return replace(records, arrays=tuple(arrays))


def type_of_floats(container: Any, array: Array) -> Any:
    """Return the type of floats that a container states, whatever they are held in; else float64."""
    dtype = getattr(container, "dtype", None)
    if dtype is None and hasattr(type(container), "dtypes") and len(kinds := set(container.dtypes)) == 1:
        (dtype,) = kinds  # a data frame of one type
    dtype = getattr(dtype, "numpy_dtype", dtype)  # pandas has nullable types
    if not isinstance(dtype, np.dtype):  # polars, pyarrow and torch have types of their own, a list none
        dtype = array.dtype
    return dtype if dtype in (np.float16, np.float32, np.float64) else np.float64


def check_same_columns(shape: Shape) -> None:
    """Raise if the columns of true and of predicted targets have the same names in another order."""
    true, *of_others = ([name_key(one) for one in argument.names or ()] for argument in shape.arguments)
    if any(true != pred and sorted(true) == sorted(pred) for pred in of_others):
        raise ValueError(
            "The columns of y_true and y_pred have the same names in another order, but are compared in the "
            "order in which they stand: pass y_pred[list(y_true.columns)]."
        )


def names_of(data: Any) -> Sequence[Any]:
    """Return the names of the columns of a data frame, or of one column; none if there are no names."""
    # The type is asked, because an attribute of a pandas object may be one of its columns. In pyarrow, where
    # the columns are the data themselves, the names are column_names; pandas and polars have columns only.
    for attribute in ("column_names", "columns"):
        if hasattr(type(data), attribute):
            return list(getattr(data, attribute))
    name = getattr(data, "name", None) if hasattr(type(data), "name") else None
    return [] if name is None else [name]


def name_key(name: Any) -> str:
    """Return what a label and the name of a column have in common: files know names of text only."""
    if isinstance(name, float | np.floating) and name.is_integer():
        return str(int(name))
    return str(moment_of(name))


def unstated_columns(shape: Shape, *, remedy: str) -> str | None:
    """Return why lists alone cannot hold a private number of records, or None where a container has a shape.

    The number of columns would follow from the records: no record at all would be released by another law
    than one record of several columns.
    """
    if shape.states_columns:
        return None
    return (
        "A list does not state how many columns it has, and with neighboring='add_or_remove_one' that must "
        f"not follow from whether there are records: pass {remedy}."
    )


# Readers: of records whose form is valid, by kind; their weights and persons

NO_WEIGHT = "Sample weights must contain at least one non-zero number."
_MOST_RECORDS = 1 << 53
_COMPARABLE = "biufcSUmM"  # kinds of arrays whose elements NumPy compares as Python does


def check_sample_weight(
    sample_weight: ArrayLike | None, relation: Relation = Relation.REPLACE_ONE
) -> Floats | None:
    """Return public weights, finite, non-negative numbers.

    Where the number of records is public these are all of them, and one weight at least must be positive.
    """
    if sample_weight is None:
        return None
    weights = flattened(float_block(as_numbers(sample_weight, "sample_weight"), "sample_weight"))
    if weights.ndim != 1:  # in the words of scikit-learn
        raise ValueError("Sample weights must be 1D array or scalar")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if weights.size and not relation.private_n and not weights.any():
        raise ValueError(NO_WEIGHT)
    return weights


def check_groups(groups: ArrayLike | None) -> Codes | None:
    """Return the number of each record's public group, counted from 0 in order of first appearance.

    Two ids are one group where they are equal in Python: 1 and 1.0 are. Several persons in one group are
    protected together, at the cost of accuracy; one person in several would not be protected.
    """
    if groups is None:
        return None
    labels = flattened(array_of(groups))
    if labels.ndim != 1:
        raise ValueError("groups should be a 1d array, one label per record.")
    if labels.dtype.kind in _COMPARABLE:
        if (labels != labels).any():
            raise ValueError(MISSING.format("groups"))
        _, first, codes_of = np.unique(labels, return_index=True, return_inverse=True)
        in_order = np.empty_like(first)
        in_order[np.argsort(first)] = np.arange(first.size)
        return in_order[codes_of.reshape(-1)]
    numbers_of: dict[Any, int] = {}
    ids, codes = exact(labels), None  # a time is the same person in any unit and type
    with suppress(Exception):  # ids may have a hash and an equality of their own
        codes = [numbers_of.setdefault(one, len(numbers_of)) for one in ids]
    if any(map(_is_missing_id, ids if codes is None else numbers_of)):
        raise ValueError(MISSING.format("groups"))
    if codes is None:
        raise ValueError("groups must be hashable labels.")
    check_sort_of_ids(numbers_of)
    return np.array(codes, dtype=np.intp)


def check_sort_of_ids(ids: Iterable[Any]) -> None:
    """Raise if some ids of persons, which are public, are text and some are numbers: 7 may be the person "7".

    Readers of files guess types for a part of the rows, so that one odd id makes text of the others near it.
    """
    if len({is_a(one, str) for one in ids if is_a(one, (str, numbers.Number, *_NUMPYS_NUMBERS))}) > 1:
        raise ValueError(
            "groups holds text and numbers, so that nobody can tell whether 7 and '7' are one person: read "
            "all ids as text, such as by dtype=str in pandas."
        )


def number_of_persons(codes: Codes) -> int:
    """Return how many persons have these numbers, which `check_groups` counts from 0."""
    return int(codes.max(initial=-1)) + 1


def persons_of(groups: ArrayLike) -> frozenset[Any]:
    """Return the persons whose records have these public labels, which `check_groups` finds valid."""
    return frozenset(exact(flattened(array_of(groups))))


def _is_missing_id(label: Any) -> bool:
    """Return whether an id, or a part of one, is missing."""
    return any(map(_is_missing_id, label)) if is_a(label, tuple) else is_missing(label)


def asked_of_persons(arguments: ByName) -> ByName:
    """Return what is public of persons before a record is read: how they count; empty if there are none.

    Parameters
    ----------
    arguments : mapping
        Those of a call; `groups`, `max_records` and `equal_groups` are looked at, if they are among them.

    Raises
    ------
    ValueError, TypeError
        If nothing tells whose the records are that are kept, or an option is invalid.
    """
    max_records = arguments.get("max_records")
    is_equal = check_flag(arguments.get("equal_groups", False), "equal_groups")
    if arguments.get("groups") is None:
        for name, is_given in (("max_records", max_records is not None), ("equal_groups", is_equal)):
            if is_given:
                raise ValueError(f"{name} needs groups, which say whose records they are.")
        return {}
    most = None if max_records is None else check_count(max_records, "max_records", _MOST_RECORDS)
    return {"max_records": most} | ({"equal_groups": True} if is_equal else {})


def _places(codes: Codes) -> tuple[Codes, Codes]:
    """Return which record of its group each record is, counted from 0, and the size of each group."""
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    rank = np.empty_like(order)
    rank[order] = np.arange(codes.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank, sizes


_MOST_UNITS = 1 << 20


def units_of_persons(codes: Codes, most: int) -> tuple[int, NDArray[np.int64]]:
    """Return how many units each person has, and how many of them each record.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The public person of each record, counted from 0.
    most : int
        How many records a person has at most.

    Notes
    -----
    The number is the least common multiple of 1, ..., `most`, so that the records of a person weigh the same;
    from 2^20 on it is 2^20, and the first records of a person weigh one unit more than the others.
    """
    total = min(math.lcm(*range(1, min(most, 17) + 1)), _MOST_UNITS)  # that of 1, ..., 17 is above the limit
    place, sizes = _places(codes)
    own = sizes[codes]
    return total, (total // own + (place < total % own)).astype(np.int64)


def check_edges(edges: ArrayLike | None) -> Floats | None:
    """Return the public edges of at least two bins, or None."""
    if edges is None:
        return None
    found = float_block(as_vector(edges, "edges"), "edges") + 0.0  # adding 0 leaves no negative zero
    if found.size < 3 or not (np.diff(found) > 0).all():
        raise ValueError("edges must be None or at least three finite numbers in strictly increasing order.")
    return found


def check_multioutput(multioutput: Any, n_outputs: int) -> Literal["raw_values"] | Floats | None:
    """Return "raw_values", public weights of the outputs, or None for their plain mean."""
    if isinstance(multioutput, str):
        if multioutput == "variance_weighted":
            raise ValueError(
                "multioutput='variance_weighted' weights the outputs by their variances, which are private: "
                "pass weights that do not depend on the data."
            )
        check_choice(multioutput, "multioutput", ("raw_values", "uniform_average"))
        return "raw_values" if multioutput == "raw_values" else None
    if multioutput is None:
        return None
    weights = float_block(as_vector(multioutput, "multioutput"), "multioutput")
    if n_outputs == 1:
        raise ValueError("Custom weights are useful only in multi-output cases.")
    if weights.size != n_outputs:
        raise ValueError(f"There must be equally many custom weights ({weights.size}) as outputs.")
    if (weights < 0).any() or not weights.any():
        raise ValueError("Custom weights must be non-negative, and at least one of them positive.")
    scaled: Floats = weights / weights.max()  # their sum must not overflow
    return scaled


def first_records(
    data: Sequence[Any],
    *,
    names: Sequence[str],
    relation: Relation,
    groups: ArrayLike | None,
    max_records: int | None,
    equal_groups: bool = False,
    is_all: bool = True,
) -> tuple[Shape, Records, Codes | None]:
    """Return the public form of the first records of each person, these records, and whose each is.

    Parameters
    ----------
    data : sequence
        What holds a value per record.
    names : sequence of str
        What these are called: what the caller calls it, where the reader of an argument has another name.
    relation : Relation
        The neighbouring relation; where it makes the number of records private, there are no groups.
    groups : array-like or None
        Public label of the person of each record; None: each record is a person of its own.
    max_records : int or None
        How many records of each person are kept, the first ones in their order, which is public; None: all.
    equal_groups : bool, default=False
        Whether each person counts once.
    is_all : bool, default=True
        Whether there are no other records, of which there are groups though there are none of these.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.
    """
    if is_all:  # a chunk without groups is refused by whoever knows of the others
        asked_of_persons({"groups": groups, "max_records": max_records, "equal_groups": equal_groups})
    codes = check_groups(groups)
    shape, records = Records.of(data, relation=relation)
    # what has no dimension its reader refuses
    arrays = {name: array for name, array in zip(names, records.arrays, strict=True) if array.ndim}
    check_same_length({**arrays, "groups": codes}, relation=relation)
    if codes is None or not all(array.ndim for array in records.arrays):
        return shape, records, None
    limit = _MOST_RECORDS if max_records is None else max_records
    rank, sizes = _places(codes)
    rows, most = np.flatnonzero(rank < limit), min(limit, int(sizes.max(initial=1)))
    persons = codes[rows]
    if rows.size < len(records.arrays[0]):
        records = replace(records, arrays=tuple(array[rows] for array in records.arrays))
    shape = replace(shape, n=rows.size, most_records=most)
    if not equal_groups:
        return shape, records, persons
    shape, records = with_units(shape, records, persons, max_records)
    return replace(shape, most_records=1), records, persons


def with_units(
    shape: Shape, records: Records, persons: Codes, max_records: int | None
) -> tuple[Shape, Records]:
    """Return the form and the records of these persons with the public units by which each counts once."""
    most = shape.most_records if max_records is None else max_records
    if most == 1:  # each counts once anyway
        return shape, records
    units, of_each = units_of_persons(persons, most)
    return replace(shape, units=units), replace(records, units=of_each)


def vector(records: Records, *, name: str) -> Records:
    """Return one number per record."""
    return checked_records(records, {name: as_vector(records.array(0), name)})


def targets(records: Records, *, columns: int) -> Records:
    """Return true and predicted targets in arrays of shape (n_samples,) or (n_samples, n_outputs).

    Empty lists, which do not tell the number of outputs, have so many columns.
    """
    true, pred = (
        flattened(as_numbers(records.array(at, columns), name))
        for at, name in enumerate(("y_true", "y_pred"))
    )
    checked = checked_records(records, {"y_true": true, "y_pred": pred})
    outputs = [1 if array.ndim == 1 else array.shape[1] for array in (true, pred)]
    if outputs[0] != outputs[1]:
        # someone may pass rows for columns: the numbers would then tell how many records there are
        numbers_of = "" if records.relation.private_n else f" ({outputs[0]}!={outputs[1]})"
        raise ValueError(f"y_true and y_pred have different number of output{numbers_of}")
    return checked


def checked_records(records: Records, arrays: Mapping[str, Array]) -> Records:
    """Return the records with these arrays, of valid shapes, and with valid weights and groups.

    Where their number is public, there is one at least.
    """
    weights = check_sample_weight(records.sample_weight, records.relation)
    groups = check_groups(records.groups)
    check_same_length({**arrays, "sample_weight": weights, "groups": groups}, relation=records.relation)
    if not records.relation.private_n and 0 in map(len, arrays.values()):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return replace(records, arrays=tuple(arrays.values()), sample_weight=weights, groups=groups)
