"""From records as a caller passed them to records whose form is valid, by kind.

A reader is made of public things, and is part of a plan. It looks at types, shapes and lengths; contents are
checked in blocks, as they are read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.columns import LabelColumns
from dp_metrics.inputs.labels import as_label_pairs, as_labels
from dp_metrics.inputs.options import check_groups, check_sample_weight, first_of_each
from dp_metrics.inputs.records import (
    as_numbers,
    as_probabilities,
    as_scores,
    as_vector,
    check_same_length,
    flattened,
)
from dp_metrics.inputs.shape import Records, Shape

__all__ = [
    "first_records",
    "label_pairs",
    "labels_and_numbers",
    "labels_and_probabilities",
    "labels_and_scores",
    "targets",
    "vector",
]


def first_records(
    data: Sequence[Any], *, private_n: bool, groups: ArrayLike | None, max_records: int | None
) -> tuple[Shape, Records, NDArray[np.intp] | None]:
    """Return the public form of the first records of each person, these records, and whose each is.

    Parameters
    ----------
    data : sequence
        What holds a value per record.
    private_n : bool
        Whether the number of records is private, so that there are no groups.
    groups : array-like or None
        Public label of the person of each record; None: each record is a person of its own.
    max_records : int or None
        How many records of each person are kept; None: all.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.
    """
    shape, records = Records.of(data, private_n=private_n)
    if groups is None:
        return shape, records, None
    rows, persons, most = first_of_each(groups, max_records, *records.arrays)
    if rows.size < len(records.arrays[0]):
        records = replace(records, arrays=tuple(array[rows] for array in records.arrays))
    return replace(shape, n=rows.size, most_records=most), records, persons


def vector(records: Records, *, name: str, private_n: bool) -> Records:
    """Return one number per record."""
    return _checked(records, as_vector(records.arrays[0], name, private_n=private_n), private_n=private_n)


def targets(records: Records, *, columns: int, private_n: bool) -> Records:
    """Return true and predicted targets in arrays of shape (n_samples,) or (n_samples, n_outputs).

    Empty lists, which do not tell the number of outputs, have so many columns.
    """
    true, pred = (
        flattened(as_numbers(records.array(at, columns), name, allow_2d=True, private_n=private_n))
        for at, name in enumerate(("y_true", "y_pred"))
    )
    check_same_length(true, pred, private_n=private_n)
    outputs = [1 if array.ndim == 1 else array.shape[1] for array in (true, pred)]
    if outputs[0] != outputs[1]:
        # someone may pass rows for columns: the numbers would then tell how many records there are
        numbers_of = "" if private_n else f" ({outputs[0]}!={outputs[1]})"
        raise ValueError(f"y_true and y_pred have different number of output{numbers_of}")
    return _checked(records, true, pred, private_n=private_n)


def label_pairs(records: Records, *, columns: int, private_n: bool) -> Records:
    """Return true and predicted labels of any type; empty lists have so many columns."""
    pair = as_label_pairs(records.array(0, columns), records.array(1, columns), private_n=private_n)
    return _checked(records, *pair, private_n=private_n)


def labels_and_probabilities(records: Records, *, columns: LabelColumns, private_n: bool) -> Records:
    """Return labels, and probabilities of shape (n_samples, n_columns)."""
    proba = as_probabilities(columns.array(records), private_n=private_n)
    return _labelled(records, columns.labels, proba, private_n)


def labels_and_numbers(records: Records, *, columns: LabelColumns, private_n: bool) -> Records:
    """Return labels, and scores of shape (n_samples, n_columns), whatever their number."""
    scores = as_numbers(columns.array(records), "y_score", allow_2d=True, private_n=private_n)
    return _labelled(records, columns.labels, scores, private_n)


def labels_and_scores(
    records: Records,
    *,
    columns: LabelColumns,
    private_n: bool,
    name: str = "y_score",
    positive: int = 1,
) -> Records:
    """Return labels, and scores of shape (n_samples,), those of the positive label of two; or all columns."""
    scores = as_scores(columns.array(records), name, private_n=private_n, positive=positive)
    return _labelled(records, columns.labels, scores, private_n)


def _labelled(records: Records, labels: NDArray[Any], scores: NDArray[Any], private_n: bool) -> Records:
    true = as_labels(records.arrays[0], labels, private_n=private_n)
    check_same_length(true, scores, private_n=private_n)
    return _checked(records, true, scores, private_n=private_n)


def _checked(records: Records, *arrays: NDArray[Any], private_n: bool) -> Records:
    """Return the records with these arrays, of valid shapes, and with valid weights and groups."""
    weights = check_sample_weight(records.sample_weight, *arrays, whole=not private_n)
    return replace(
        records, arrays=arrays, sample_weight=weights, groups=check_groups(records.groups, *arrays)
    )
