"""The public form of records, and the records that have it: what is public, and what is private.

A `Shape` is all that anybody may know of records before one of them is read. Whatever is planned is planned
from a shape. `Records` hold the contents, which are looked at once a plan has read them, and never before.

Names of columns are public too. Those of labels say which column is which, see `columns`. Targets are
compared in the order in which they stand: nothing is read where names contradict that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.arrays import array_of, states_columns
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.times import moment_of


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
    resolution: float = float(np.finfo(np.float64).eps)
    names: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, container: Any, array: NDArray[Any]) -> Self:
        """Return the form of a container, given what it holds as an array."""
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
    """

    arguments: tuple[ArgumentShape, ...]
    n: int | None = None
    most_records: int = 1

    @property
    def relation(self) -> Relation:
        """The neighbouring relation under which no more than this is public."""
        return Relation.of(self.n)

    @property
    def states_columns(self) -> bool:
        """Whether some container says how many columns it has even where it holds no record."""
        return any(one.states_columns for one in self.arguments)

    def columns(self, otherwise: int = 1) -> int:
        """Return the largest number of columns of an argument, or another one if no argument tells."""
        return max((one.columns for one in self.arguments if one.columns is not None), default=otherwise)

    def of_any_records(self) -> Self:
        """Return what may be kept with a release: lists do not state columns where n is private.

        An empty list has none, so that its columns would tell whether there are records.
        """
        if self.n is not None:
            return self
        unstated = replace(ArgumentShape(), columns=None, states_columns=False)
        return replace(self, arguments=tuple(x if x.states_columns else unstated for x in self.arguments))

    @property
    def is_wide(self) -> bool:
        """Whether every argument has several columns."""
        return all((one.columns or 1) > 1 for one in self.arguments)


@dataclass(frozen=True, repr=False, eq=False)
class Records:
    """Private: what a caller passed, an array for each argument, whose contents nobody has looked at.

    Parameters
    ----------
    arrays : tuple of ndarray
        What the containers hold.
    states_columns : tuple of bool
        Whether each container says how many columns it has even where it holds no record.
    sample_weight : array-like or None, default=None
        Public weights of the records.
    groups : array-like or None, default=None
        Public label of the person of each record.
    relation : Relation, default=Relation.REPLACE_ONE
        The neighbouring relation: whether their number is private.
    """

    arrays: tuple[NDArray[Any], ...]
    states_columns: tuple[bool, ...] = ()
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None
    relation: Relation = Relation.REPLACE_ONE

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
        data = tuple(data)
        arrays = tuple(map(array_of, data))
        forms = tuple(map(ArgumentShape.of, data, arrays))
        n = None if relation.private_n or not arrays[0].ndim else len(arrays[0])
        stated = tuple(form.states_columns for form in forms)
        return Shape(forms, n), cls(arrays, stated, sample_weight, groups, relation)

    @classmethod
    def none(cls, arguments: int, sample_weight: ArrayLike | None = None) -> Self:
        """Return no records of so many arguments, of no type."""
        nothing = (np.empty(0, dtype=object),) * arguments
        return cls(nothing, (False,) * arguments, sample_weight, relation=Relation.ADD_OR_REMOVE_ONE)

    def of_arguments(self, *places: int) -> Self:
        """Return the records with some of the arguments only."""
        arrays = tuple(self.arrays[place] for place in places)
        return replace(self, arrays=arrays, states_columns=tuple(self.states_columns[at] for at in places))

    def array(self, place: int, columns: int = 1) -> NDArray[Any]:
        """Return the array of an argument; that of an empty list has so many columns."""
        array = self.arrays[place]
        is_untold = not self.states_columns[place] and array.shape == (0,)
        return array.reshape(0, columns) if is_untold and columns > 1 else array


def type_of_floats(container: Any, array: NDArray[Any]) -> Any:
    """Return the type of floats that a container states, whatever they are held in; else float64."""
    dtype = getattr(container, "dtype", None)
    if dtype is None and hasattr(type(container), "dtypes") and len(kinds := set(container.dtypes)) == 1:
        (dtype,) = kinds  # a data frame of one type
    dtype = getattr(dtype, "numpy_dtype", dtype)  # pandas has nullable types
    # polars, pyarrow and torch have types of their own
    if not isinstance(dtype, np.dtype) and hasattr(container, "__array__"):
        dtype = array.dtype
    known = isinstance(dtype, np.dtype) and dtype in (np.float16, np.float32, np.float64)
    return dtype if known else np.float64


def check_same_columns(names_true: Sequence[Any] | None, names_pred: Sequence[Any] | None) -> None:
    """Raise if the columns of true and of predicted targets have the same names in another order."""
    true, pred = ([name_key(one) for one in names or ()] for names in (names_true, names_pred))
    if true != pred and sorted(true) == sorted(pred):
        raise ValueError(
            "The columns of y_true and y_pred have the same names in another order, but are compared in the "
            "order in which they stand: pass y_pred[list(y_true.columns)]."
        )


def names_of(data: Any) -> Sequence[Any]:
    """Return the names of the columns of a data frame, or of one column; none if there are no names."""
    if isinstance(data, np.ndarray | list | tuple):
        return []
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
