"""Which group each record belongs to."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np

from dp_metrics.inputs.arrays import Records, checked_records, columns_of
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import Codes, Relation
from dp_metrics.quantities.tables import check_cells

_NAME = "sensitive_features"
_SHORT = 1 << 16


@dataclass(frozen=True)
class Groups:
    """The public groups: each combination of the labels of some features.

    Parameters
    ----------
    sets : tuple of LabelSet
        The labels of each feature.
    sizes : tuple of int or None, default=None
        How many records each group has, where membership is public.
    """

    sets: tuple[LabelSet, ...]
    sizes: tuple[int, ...] | None = None

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
        sets = [LabelSet.of(labels, "group_labels") for labels in _of_each(group_labels, features)]
        groups = cls(tuple(sets))
        check_cells(
            groups.size,
            "The table of all combinations of group_labels",
            "Pass fewer features, or fewer labels of each.",
        )
        return groups

    @classmethod
    def apart(cls, group_labels: Any, features: int, sizes: Sequence[int] | None = None) -> list[Self]:
        """Return the groups by each of so many features alone, of the sizes of groups by all of them."""
        apart = [cls.of(labels, 1) for labels in _of_each(group_labels, features)]
        if sizes is None:
            return apart
        table, axes = np.reshape(sizes, [one.size for one in apart]), range(features)
        return [
            replace(one, sizes=tuple(table.sum(tuple(other for other in axes if other != at)).tolist()))
            for at, one in enumerate(apart)
        ]

    @property
    def size(self) -> int:
        """Number of groups."""
        return math.prod(labels.size for labels in self.sets)

    @property
    def labels(self) -> list[Hashable]:
        """The groups, in the order of `group_labels`; tuples where there are several features."""
        names = product(*(labels.in_order.tolist() for labels in self.sets))
        return [name[0] if len(name) == 1 else name for name in names]

    @property
    def relation(self) -> Relation:
        """The relation under which the records of one group are released."""
        return Relation.ADD_OR_REMOVE_ONE if self.sizes is None else Relation.REPLACE_ONE

    @property
    def each(self) -> dict[Hashable, int | None]:
        """The public size of each group; None where it is private."""
        return dict(zip(self.labels, self.sizes or (None,) * self.size, strict=True))

    @property
    def here(self) -> dict[Hashable, int | None]:
        """The same of the groups that are not publicly empty: of these something is released."""
        return {group: size for group, size in self.each.items() if size != 0}

    def coded(self, records: Records) -> Records:
        """Return y_true, y_pred and the place of each record's group, of records with features behind these.

        Raises
        ------
        ValueError
            If a feature is invalid.
        """
        codes = np.zeros(1, dtype=np.intp)
        for at, labels in enumerate(self.sets, start=2):
            places = labels.codes(labels.array(records.array(at), _NAME), _NAME)
            codes = codes * labels.size + places
        true, pred, *_ = records.arrays
        return checked_records(records, {"y_true": true, "y_pred": pred, _NAME: codes})

    def with_sizes(self, records: Records) -> Self:
        """Return the groups with how many records each has, where membership is public; see `coded`."""
        codes = self.coded(records).arrays[2]
        return replace(self, sizes=tuple(np.bincount(codes, minlength=self.size).tolist()))


def by_group(coded: Records, groups: Groups) -> list[Records]:
    """Return the `coded` records of each group that is not publicly empty, without the place of the group.

    Their number is private where membership is, even if that of all records is public.
    """
    pairs, codes = replace(coded.of_arguments(0, 1), relation=groups.relation), coded.arrays[2]
    short = codes.astype(np.uint16) if groups.size <= _SHORT else codes  # faster to sort, by their digits
    order, ends = np.argsort(short, kind="stable"), np.cumsum(np.bincount(codes, minlength=groups.size))
    return [
        replace(
            pairs,
            arrays=tuple(array[rows] for array in pairs.arrays),
            units=None if pairs.units is None else pairs.units[rows],
        )
        for rows, size in zip(np.split(order, ends[:-1]), groups.each.values(), strict=True)
        if size != 0
    ]


def public_groups(sensitive_features: Any, group_labels: Any) -> Codes:
    """Return the place of each record's group, where membership is public; no other column is looked at."""
    features = columns_of(sensitive_features)
    groups = Groups.of(group_labels, len(features))
    _, records = Records.of((features[0], features[0], *features), relation=Relation.REPLACE_ONE)
    codes: Codes = groups.coded(records).arrays[2]
    return codes


def _of_each(group_labels: Any, features: int) -> list[Any]:
    """Return the public labels of each of so many features; raise unless there are some of each."""
    if group_labels is None:
        raise ValueError("group_labels must be the public labels of the groups: they are never inferred.")
    first = group_labels[0] if isinstance(group_labels, list | tuple) and group_labels else None
    is_nested = isinstance(first, list | tuple | np.ndarray)
    listed = [group_labels] if features == 1 and not is_nested else list(group_labels)
    if isinstance(group_labels, Mapping) or not len(listed) == features > 0:
        raise ValueError(
            "group_labels must hold the labels of each of the sensitive_features: a list of lists, in the "
            "order of the columns, such as [['f', 'm'], ['young', 'old']]."
        )
    return listed
