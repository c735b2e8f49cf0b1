"""Which group each record belongs to: public groups, private or public membership."""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.containers import array_of, states_columns
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.records import check_same_length, rows_of
from dp_metrics.release.queries.count_table import check_cells

__all__ = ["Groups"]

_NAME = "sensitive_features"


@dataclass(frozen=True, eq=False)
class Groups:
    """The public groups, and the number of each record's group.

    Parameters
    ----------
    labels : list
        The groups, in the order of `group_labels`; tuples where there are several features.
    codes : ndarray of shape (n_samples,)
        The place of each record's group among them.
    """

    labels: list[Hashable]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, sensitive_features: Any, group_labels: Any, *, private_n: bool) -> "Groups":
        """Return the groups of valid features.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
            As the caller got them.
        group_labels : array-like or sequence of array-like
            The public labels of the one feature, or of each.
        private_n : bool
            Whether the number of records is private.
        """
        columns = _columns(sensitive_features)
        if group_labels is None:
            raise ValueError("group_labels must be the public labels of the groups: they are never inferred.")
        listed = [group_labels] if len(columns) == 1 and not _is_nested(group_labels) else list(group_labels)
        if len(listed) != len(columns):
            raise ValueError("group_labels must hold the labels of each of the sensitive_features.")
        sets = [LabelSet.of(labels, "group_labels") for labels in listed]
        check_cells(
            math.prod(labels.size for labels in sets),
            "The table of all combinations of group_labels",
            "Pass fewer features, or fewer labels of each.",
        )
        codes = np.zeros(len(columns[0]), dtype=np.intp)
        names: list[tuple[Any, ...]] = [()]
        for labels, column in zip(sets, columns, strict=True):
            places = labels.codes(labels.array(column, _NAME, private_n=private_n), _NAME)
            codes = codes * labels.size + places
            names = [(*name, label) for name in names for label in labels.in_order.tolist()]
        return cls([name[0] if len(name) == 1 else name for name in names], codes)

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    def parts(self, *data: Any, private_n: bool) -> Iterator[list[Any]]:
        """Yield the data of each group."""
        if not private_n:  # a group without records must look like any other, and no list has columns then
            data = tuple(held if states_columns(held) else array_of(held) for held in data)
        check_same_length(*data, self.codes, private_n=private_n)
        for group in range(self.size):
            rows = np.flatnonzero(self.codes == group)
            yield [rows_of(array, rows) for array in data]


def _columns(features: Any) -> Sequence[Any]:
    """Return the columns of one feature or several."""
    if hasattr(features, "iloc") and getattr(features, "ndim", 1) == 2:
        return [features.iloc[:, i] for i in range(features.shape[1])]
    if isinstance(features, np.ndarray) and features.ndim == 2:
        return list(features.T)
    return [features]


def _is_nested(labels: Any) -> bool:
    one = labels[0] if isinstance(labels, list | tuple) and labels else None
    return isinstance(one, list | tuple | np.ndarray)
