"""From records as a caller passed them to records whose form is valid, by kind; their weights and persons.

A reader is made of public things, and is part of a plan. It looks at types, shapes and lengths; contents are
checked in blocks, as they are read. Columns of probabilities or scores are read by `LabelColumns` only, which
say to which labels they belong.

Public beside the records are their weights, and whose they are: `groups` name the person of each record, who
is protected with all of them. (The groups that a frame compares are its `sensitive_features`.)
"""

import contextlib
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.arrays import (
    MISSING,
    ArgumentShape,
    Records,
    Shape,
    array_of,
    as_numbers,
    as_probabilities,
    as_scores,
    as_vector,
    check_same_length,
    check_vector,
    exact,
    flattened,
    float_block,
    is_a,
    is_missing,
    name_key,
    unstated_columns,
)
from dp_metrics.inputs.labels import LabelSet, as_label_pairs, as_labels
from dp_metrics.inputs.options import Floats, Relation, check_count

NO_WEIGHT = "Sample weights must contain at least one non-zero number."
_MOST_RECORDS = 1 << 53
_AVERAGES = ("raw_values", "uniform_average")
_COMPARABLE = "biufcSUmM"  # kinds of arrays whose elements NumPy compares as Python does
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


def check_sample_weight(
    sample_weight: ArrayLike | None, relation: Relation = Relation.REPLACE_ONE
) -> Floats | None:
    """Return public weights, finite, non-negative numbers.

    Where the number of records is public these are all of them, and one weight at least must be positive.
    """
    if sample_weight is None:
        return None
    given = as_numbers(sample_weight, "sample_weight", allow_2d=True, relation=relation)
    weights = flattened(float_block(given, "sample_weight"))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not relation.private_n and not weights.any():
        raise ValueError(NO_WEIGHT)
    return weights


def check_groups(groups: ArrayLike | None) -> NDArray[np.intp] | None:
    """Return the number of each record's public group, counted from 0 in order of first appearance.

    Two ids are one group where they are equal in Python: 1 and 1.0 are, 1 and "1" are not. Several persons in
    one group are protected together, at the cost of accuracy; one person in several would not be protected.
    """
    if groups is None:
        return None
    labels = flattened(array_of(groups))
    if labels.ndim != 1:
        raise ValueError("groups should be a 1d array, one label per record.")
    if labels.dtype.kind in _COMPARABLE:
        if labels.dtype.kind != "U" and (labels != labels).any():
            raise ValueError(MISSING.format("groups"))
        _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        in_order = np.empty_like(first)
        in_order[np.argsort(first)] = np.arange(first.size)
        return in_order[codes.reshape(-1)]
    numbers_of: dict[Any, int] = {}
    codes_of = None
    with contextlib.suppress(Exception):  # ids may have a hash and an equality of their own
        # a time is the same person in any unit and type
        codes_of = [numbers_of.setdefault(label, len(numbers_of)) for label in exact(labels.tolist())]
    if any(map(_is_missing_id, labels.tolist() if codes_of is None else numbers_of)):
        raise ValueError(MISSING.format("groups"))
    if codes_of is None:
        raise ValueError("groups must be hashable labels.")
    return np.array(codes_of, dtype=np.intp)


def _is_missing_id(label: Any) -> bool:
    """Return whether an id, or a part of one, is missing."""
    return any(map(_is_missing_id, label)) if is_a(label, tuple) else is_missing(label)


def asked_of_persons(groups: Any, max_records: Any) -> dict[str, Any]:
    """Return what is public of persons before a record is read: that there are some, and how many they keep.

    Raises
    ------
    ValueError, TypeError
        If nothing tells whose the records are that are kept, or their number is no positive whole one.
    """
    if groups is None:
        if max_records is not None:
            raise ValueError("max_records needs groups, which say whose records they are.")
        return {}
    most = None if max_records is None else check_count(max_records, "max_records", _MOST_RECORDS)
    return {"persons": {"max_records": most}}


def first_of_each(
    codes: NDArray[np.intp], max_records: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Return which records are kept of each public group, their groups, and how many one group has at most.

    Kept are the first `max_records` of each, in the order of the records, which is public; None: all.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The groups, of `check_groups`.
    max_records : int or None
        How many are kept of each.
    """
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    rank = np.empty_like(order)
    rank[order] = np.arange(codes.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    largest = int(sizes.max(initial=1))
    most = (
        largest
        if max_records is None
        else min(check_count(max_records, "max_records", _MOST_RECORDS), largest)
    )
    rows = np.flatnonzero(rank < most)
    return rows, codes[rows], most


def check_multioutput(multioutput: Any, n_outputs: int) -> Literal["raw_values"] | Floats | None:
    """Return "raw_values", public weights of the outputs, or None for their plain mean."""
    if isinstance(multioutput, str):
        if multioutput == "variance_weighted":
            raise ValueError(
                "multioutput='variance_weighted' weights the outputs by their variances, which are private: "
                "pass weights that do not depend on the data."
            )
        if multioutput not in _AVERAGES:
            raise ValueError(
                f"Allowed 'multioutput' string values are {_AVERAGES}. You provided {multioutput=!r}"
            )
        return "raw_values" if multioutput == "raw_values" else None
    if multioutput is None:
        return None
    weights = check_vector(multioutput, "multioutput")
    if n_outputs == 1:
        raise ValueError("Custom weights are useful only in multi-output cases.")
    if weights.size != n_outputs:
        raise ValueError(
            f"There must be equally many custom weights ({weights.size}) as outputs ({n_outputs})."
        )
    if (weights < 0).any() or not weights.any():
        raise ValueError("Custom weights must be non-negative, and at least one of them positive.")
    scaled: Floats = weights / weights.max()  # their sum must not overflow
    return scaled


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
        known = np.arange(max(columns, 2)) if given is None else given.known  # never what y_true holds
        if known.size != max(columns, 2):
            raise ValueError(
                f"The number of classes in labels is different from that in {name}. "
                f"Classes found in labels: {known.size}, columns of {name}: {columns}."
            )
        listed = LabelSet.of(known) if given is None else given
        of_one = None if positive is None else listed.sorted_place(positive, "pos_label")
        order = None if form.names is None else _order(form.names, listed, columns, name, of_one)
        return cls(known, columns, order)

    def array(self, records: Records) -> NDArray[Any]:
        """Return the second argument of records, not yet looked at, its columns as the sorted labels."""
        array = records.array(1, self.columns)
        return array if self.order is None or array.ndim != 2 else array[:, self.order]


def _order(
    names: Sequence[Any], labels: LabelSet, columns: int, name: str, positive: int | None
) -> tuple[int, ...] | None:
    """Return where the column of each sorted label stands, or raise if that is not told."""
    known = labels.known.tolist()
    shown = {"name": name, "labels": reprlib.repr(labels.in_order.tolist())}
    if columns == 1:
        if positive is None and not labels.is_sorted:
            raise ValueError(_ONE_UNSORTED.format(**shown, last=known[-1]))
        other = known[1] if positive == 0 else known[0]
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


def first_records(
    data: Sequence[Any],
    *,
    names: Sequence[str],
    relation: Relation,
    groups: ArrayLike | None,
    max_records: int | None,
) -> tuple[Shape, Records, NDArray[np.intp] | None]:
    """Return the public form of the first records of each person, these records, and whose each is.

    Parameters
    ----------
    data : sequence
        What holds a value per record.
    names : sequence of str
        What these are called.
    relation : Relation
        The neighbouring relation; where it makes the number of records private, there are no groups.
    groups : array-like or None
        Public label of the person of each record; None: each record is a person of its own.
    max_records : int or None
        How many records of each person are kept; None: all.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.
    """
    codes = check_groups(groups)
    shape, records = named_records(data, names=names, relation=relation, groups=codes)
    if codes is None:
        return shape, records, None
    rows, persons, most = first_of_each(codes, max_records)
    if rows.size < len(records.arrays[0]):
        records = replace(records, arrays=tuple(array[rows] for array in records.arrays))
    return replace(shape, n=rows.size, most_records=most), records, persons


def named_records(
    data: Sequence[Any],
    *,
    names: Sequence[str],
    relation: Relation,
    groups: NDArray[np.intp] | None = None,
) -> tuple[Shape, Records]:
    """Return the public form of records, and these: as many in each argument, and as many groups.

    Where the reader of an argument knows it by another name, the names say what the caller calls it.
    """
    shape, records = Records.of(data, relation=relation)
    # what has no dimension its reader refuses
    arrays = {name: array for name, array in zip(names, records.arrays, strict=True) if array.ndim}
    check_same_length({**arrays, "groups": groups}, relation=relation)
    return shape, records


def vector(records: Records, *, name: str) -> Records:
    """Return one number per record."""
    array = as_vector(records.arrays[0], name, relation=records.relation)
    return _checked(records, {name: array})


def targets(records: Records, *, columns: int) -> Records:
    """Return true and predicted targets in arrays of shape (n_samples,) or (n_samples, n_outputs).

    Empty lists, which do not tell the number of outputs, have so many columns.
    """
    true, pred = (
        flattened(as_numbers(records.array(at, columns), name, allow_2d=True, relation=records.relation))
        for at, name in enumerate(("y_true", "y_pred"))
    )
    arrays = {"y_true": true, "y_pred": pred}
    check_same_length(arrays, relation=records.relation)
    outputs = [1 if array.ndim == 1 else array.shape[1] for array in (true, pred)]
    if outputs[0] != outputs[1]:
        # someone may pass rows for columns: the numbers would then tell how many records there are
        numbers_of = "" if records.relation.private_n else f" ({outputs[0]}!={outputs[1]})"
        raise ValueError(f"y_true and y_pred have different number of output{numbers_of}")
    return _checked(records, arrays)


def label_pairs(records: Records, *, columns: int) -> Records:
    """Return true and predicted labels of any type; empty lists have so many columns."""
    pair = as_label_pairs(records.array(0, columns), records.array(1, columns), relation=records.relation)
    return _checked(records, dict(zip(("y_true", "y_pred"), pair, strict=True)))


def labels_and_probabilities(records: Records, *, columns: LabelColumns) -> Records:
    """Return labels, and probabilities of shape (n_samples, n_columns)."""
    proba = as_probabilities(columns.array(records), relation=records.relation)
    return _labelled(records, columns.labels, {"y_proba": proba})


def labels_and_numbers(records: Records, *, columns: LabelColumns) -> Records:
    """Return labels, and scores of shape (n_samples, n_columns), whatever their number."""
    scores = as_numbers(columns.array(records), "y_score", allow_2d=True, relation=records.relation)
    return _labelled(records, columns.labels, {"y_score": scores})


def labels_and_scores(
    records: Records,
    *,
    columns: LabelColumns,
    name: str = "y_score",
    positive: int = 1,
) -> Records:
    """Return labels, and scores of shape (n_samples,), those of the positive label of two; or all columns."""
    scores = as_scores(columns.array(records), name, relation=records.relation, positive=positive)
    return _labelled(records, columns.labels, {name: scores})


def _labelled(records: Records, labels: NDArray[Any], scores: Mapping[str, NDArray[Any]]) -> Records:
    true = as_labels(records.arrays[0], labels, relation=records.relation)
    return _checked(records, {"y_true": true, **scores})


def _checked(records: Records, arrays: Mapping[str, NDArray[Any]]) -> Records:
    """Return the records with these arrays, of valid shapes, and with valid weights and groups."""
    weights = check_sample_weight(records.sample_weight, records.relation)
    groups = check_groups(records.groups)
    check_same_length({**arrays, "sample_weight": weights, "groups": groups}, relation=records.relation)
    return replace(records, arrays=tuple(arrays.values()), sample_weight=weights, groups=groups)


def unstated_labels(labels: NDArray[Any] | None, y_score: ArgumentShape) -> str | None:
    """Return why probabilities or scores without labels cannot hold a private number of records, or None."""
    if labels is not None:
        return None
    return unstated_columns(Shape((y_score,)), remedy="labels=[...], or an array, which has a shape")
