"""Which column of probabilities or scores belongs to which label: decided here, for every door.

Columns are read in the order of the sorted labels, as in scikit-learn. Columns that are named like the labels
are matched by name, wherever they stand. Names and labels are public; no record is looked at.
"""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.labels import LabelSet, check_labels
from dp_metrics.inputs.shape import ArgumentShape, Records, name_key

__all__ = ["LabelColumns", "NamedColumns", "named_by_classes"]

_SOME = (
    "The names of the columns of {name} must be those of all labels={labels}, each once, or of none: pass "
    "all labels as labels=[...], or {name} without names, its columns in the order of the sorted labels."
)
_UNSORTED = (
    "labels={labels} is not sorted, and the columns of {name} are not named like labels, so that nobody can "
    "tell which is which: pass labels=sorted(labels) if they stand in that order, as predict_proba gives "
    "them, or name them: pd.DataFrame({name}, columns=labels)."
)
_ONE_UNSORTED = (
    "labels={labels} is not sorted, so that nobody can tell to which label the one column of {name} belongs: "
    "pass pos_label=..., or labels=sorted(labels) if it is that of {last!r}, or a column for each label, "
    "with their names."
)
_ONE_OTHER = (
    "The one column of {name} is named like the negative label. Pass that of the positive label (the second "
    "of the sorted labels, or pos_label), or one column for each label."
)


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Public: the labels, and the columns of probabilities or scores that belong to them.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)
        The labels, sorted.
    columns : int
        Number of columns: one for each label, or one of two labels.
    order : tuple of int or None
        Where the column of each sorted label stands; None: in this order. Records in several orders merge.
    """

    labels: NDArray[Any]
    columns: int
    order: tuple[int, ...] | None = field(compare=False)

    @classmethod
    def of(
        cls, labels: Any, form: ArgumentShape, name: str, *, positive: Any = None, fewest: int = 1
    ) -> Self:
        """Return which column of records of this form belongs to which label.

        Parameters
        ----------
        labels : LabelSet, array-like or None
            The labels as a caller listed them. None: 0 and 1 for one column, 0..K-1 for K columns.
        form : ArgumentShape
            The form of the columns.
        name : str
            What the argument is called.
        positive : object, default=None
            The label that one column belongs to, if the caller said so; else the second of the sorted labels.
        fewest : int, default=1
            How many columns a list has that does not tell.

        Raises
        ------
        ValueError
            If the numbers of labels and of columns differ, or what is public leaves open which is which.
        """
        given = LabelSet.of(labels) if labels is not None and not isinstance(labels, LabelSet) else labels
        columns = form.columns or (fewest if given is None or given.size == 2 else given.size)
        known = check_labels(None if given is None else given.known, columns, name)
        listed = LabelSet.of(known) if given is None else given
        order = None if form.names is None else _order(form.names, listed, columns, name, positive)
        return cls(known, columns, order)

    def array(self, records: Records) -> NDArray[Any]:
        """Return the second argument of records, not yet looked at, its columns as the sorted labels."""
        array = records.array(1, self.columns)
        return array if self.order is None or array.ndim != 2 else array[:, self.order]


def _order(
    names: Sequence[Any], labels: LabelSet, columns: int, name: str, positive: Any
) -> tuple[int, ...] | None:
    """Return where the column of each sorted label stands, or raise if that is not told."""
    known = labels.known.tolist()
    shown = {"name": name, "labels": reprlib.repr(labels.in_order.tolist())}
    if columns == 1:
        if positive is None and not labels.is_sorted:
            raise ValueError(_ONE_UNSORTED.format(**shown, last=known[-1]))
        other = known[1] if positive == known[0] else known[0]
        # a column named by the number 0 may just as well be the first one of a table
        if len(names) == 1 and isinstance(names[0], str) and names[0] == name_key(other):
            raise ValueError(_ONE_OTHER.format(**shown))
        return None
    found, wanted = ([name_key(one) for one in several] for several in (names, known))
    if {*found} & {*wanted} and not _are_places(names):
        if {*found} != {*wanted}:
            raise ValueError(_SOME.format(**shown))
        order = tuple(found.index(label) for label in wanted)
        return None if order == tuple(range(columns)) else order
    if not labels.is_sorted:
        raise ValueError(_UNSORTED.format(**shown))
    return None


def _are_places(names: Sequence[Any]) -> bool:
    """Return whether the names are 0, 1, 2 and so on, which a table has that nobody gave names."""
    are_numbers = all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in names)
    return are_numbers and [*names] == [*range(len(names))]


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """Private: an array whose columns have names, such as a file or the classes of a model tell.

    Parameters
    ----------
    data : ndarray of shape (n_samples,) or (n_samples, n_columns)
        What it holds.
    names : tuple of str
        The names.
    """

    data: NDArray[Any]
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, as a data frame has them."""
        return self.names

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the array."""
        return self.data.dtype

    def __len__(self) -> int:
        return len(self.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.data, dtype=dtype) if copy else np.asarray(self.data, dtype=dtype)


def named_by_classes(response: Any, method: str, classes: Any) -> Any:
    """Return what a model responds with its columns named by its classes, in whatever order it has these.

    One column of a decision, which is that of the second of two classes, becomes two, as in scikit-learn.

    Parameters
    ----------
    response : object
        What the model responded; what is no array is returned as it is.
    method : str
        By which of its methods.
    classes : object
        Its `classes_`, if it has some.
    """
    if method == "predict" or not isinstance(response, np.ndarray) or classes is None:
        return response
    if any(np.ndim(one) for one in classes):  # those of each of several outputs
        return response
    names = tuple(map(name_key, np.asarray(classes).tolist()))
    if response.ndim == 1 and len(names) == 2 and response.dtype.kind == "f":
        response = np.stack([-response if method == "decision_function" else 1 - response, response], axis=1)
    has_all = response.ndim == 2 and response.shape[1] == len(names)
    return NamedColumns(response, names) if has_all else response
