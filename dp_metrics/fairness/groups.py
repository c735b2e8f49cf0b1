"""Which group each record belongs to: public groups, private or public membership."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import check_same_length
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.release.parts.count_table import check_cells

_NAME = "sensitive_features"
_SHORT = 1 << 16


@dataclass(frozen=True)
class Groups:
    """The public groups: each combination of the labels of some features.

    Parameters
    ----------
    sets : tuple of LabelSet
        The labels of each feature.
    """

    sets: tuple[LabelSet, ...]

    @classmethod
    def of(cls, group_labels: Any, features: int) -> Self:
        """Return the groups of so many features.

        Parameters
        ----------
        group_labels : array-like or sequence of array-like
            The public labels of the one feature, or of each.
        features : int
            Number of features.
        """
        if group_labels is None:
            raise ValueError("group_labels must be the public labels of the groups: they are never inferred.")
        listed = [group_labels] if features == 1 and not _is_nested(group_labels) else list(group_labels)
        if not len(listed) == features > 0:
            raise ValueError("group_labels must hold the labels of each of the sensitive_features.")
        groups = cls(tuple(LabelSet.of(labels, "group_labels") for labels in listed))
        check_cells(
            groups.size,
            "The table of all combinations of group_labels",
            "Pass fewer features, or fewer labels of each.",
        )
        return groups

    @property
    def size(self) -> int:
        """Number of groups."""
        return math.prod(labels.size for labels in self.sets)

    @property
    def labels(self) -> list[Hashable]:
        """The groups, in the order of `group_labels`; tuples where there are several features."""
        names: list[tuple[Any, ...]] = [()]
        for labels in self.sets:
            names = [(*name, label) for name in names for label in labels.in_order.tolist()]
        return [name[0] if len(name) == 1 else name for name in names]

    def coded(self, records: Records) -> Records:
        """Return y_true, y_pred and the place of each record's group, of records with features behind these.

        Raises
        ------
        ValueError
            If a feature is invalid.
        """
        codes = np.zeros(1, dtype=np.intp)
        for labels, column in zip(self.sets, records.arrays[2:], strict=True):
            places = labels.codes(labels.array(column, _NAME, relation=records.relation), _NAME)
            codes = codes * labels.size + places
        arrays = (*records.arrays[:2], codes)
        check_same_length(
            dict(zip(("y_true", "y_pred", _NAME), arrays, strict=True)), relation=records.relation
        )
        return replace(records, arrays=arrays, states_columns=(*records.states_columns[:2], True))

    def public_sizes(self, records: Records) -> tuple[int, ...]:
        """Return how many records each group has, where membership is public; see `coded`."""
        codes = self.coded(records).arrays[2]
        return tuple(np.bincount(codes, minlength=self.size).tolist())


def by_group(coded: Records, groups: int, relation: Relation) -> list[Records]:
    """Return the `coded` records of each group, in their order, without the place of the group.

    Their number is private where membership is, even if that of all records is public.
    """
    pairs, codes = replace(coded.of_arguments(0, 1), relation=relation), coded.arrays[2]
    short = codes.astype(np.uint16) if groups <= _SHORT else codes  # faster to sort, by their digits
    order, ends = np.argsort(short, kind="stable"), np.cumsum(np.bincount(codes, minlength=groups))
    return [
        replace(pairs, arrays=tuple(array[rows] for array in pairs.arrays))
        for rows in np.split(order, ends[:-1])
    ]


def public_groups(features: Sequence[Any], group_labels: Any) -> NDArray[np.intp]:
    """Return the place of each record's group, where membership is public; no other column is looked at."""
    groups = Groups.of(group_labels, len(features))
    _, records = Records.of((features[0], features[0], *features), relation=Relation.REPLACE_ONE)
    codes: NDArray[np.intp] = groups.coded(records).arrays[2]
    return codes


def _is_nested(labels: Any) -> bool:
    one = labels[0] if isinstance(labels, list | tuple) and labels else None
    return isinstance(one, list | tuple | np.ndarray)
