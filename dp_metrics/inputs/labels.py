"""Checkers of labels: the public label set, and the labels of records.

As in `records`, what concerns a whole array is checked at once, its contents in blocks, one record at a time.
"""

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.containers import MISSING, TOO_LARGE, array_of, is_missing, is_several, refuse_unread
from dp_metrics.inputs.records import (
    as_vector,
    check_not_empty,
    check_same_length,
    flattened,
    float_block,
    numbers_or,
    unstated_columns,
)
from dp_metrics.inputs.shape import ArgumentShape, Shape

__all__ = [
    "LabelSet",
    "NotLabelsError",
    "as_label_pairs",
    "as_labels",
    "check_labels",
    "differing_block",
    "encoded_block",
    "public_labels",
    "unstated_labels",
]

_EXACT_AS_FLOATS = 2**53
_ORDINARY = {str, int, bool}
_PASS_LABELS = "Pass labels, such as predict gives, and not probabilities or scores."


class NotLabelsError(ValueError):
    """What was given cannot be the labels of records."""

    def __init__(self, given: str) -> None:
        super().__init__(f"Classification metrics can't handle {given}")


def _not_whole(name: str) -> NotLabelsError:
    return NotLabelsError(f"continuous targets: {name} holds numbers that are not whole. {_PASS_LABELS}")


def public_labels(labels: Any, name: str = "labels") -> NDArray[Any] | None:
    """Return the sorted public label set, or None where it is to follow from the number of columns."""
    if labels is None:
        return None
    refuse_unread(labels)
    if isinstance(labels, str | bytes) or (
        not isinstance(labels, Sequence | np.ndarray) and not hasattr(labels, "__array__")
    ):
        raise ValueError(f"{name} must be None or a 1d array of the public labels.")
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "biufUO":
        raise ValueError(f"{name} must be None or a 1d array of the public labels.")
    if array.dtype.kind == "U" and not all(isinstance(label, str) for label in labels):
        array = np.asarray(labels, dtype=object)  # NumPy has made text of numbers
    try:
        array = np.unique(array)
    except (TypeError, ArithmeticError):  # a signaling NaN of Decimal cannot be compared
        raise ValueError(f"{name} must be of one type, so that they can be sorted.") from None
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name} must not hold NaN.")
    if array.size < 2:
        raise ValueError(f"The {name} array needs to contain at least two labels.")
    if array.dtype.kind in "iu" and max(abs(int(array[0])), abs(int(array[-1]))) >= _EXACT_AS_FLOATS:
        return array.astype(object)  # two of them could be one float
    return array


@dataclass(frozen=True, eq=False)
class LabelSet:
    """The public labels, in the order in which results list them.

    Parameters
    ----------
    in_order : ndarray of shape (n_classes,)
        The labels, as the caller listed them.
    known : ndarray of shape (n_classes,)
        The labels, sorted.
    places : ndarray of shape (n_classes,)
        The place in `in_order` of each sorted label.
    name : str, default="labels"
        What the option is called.
    """

    in_order: NDArray[Any]
    known: NDArray[Any]
    places: NDArray[np.intp]
    name: str = "labels"

    @classmethod
    def of(cls, labels: Any, name: str = "labels") -> Self:
        """Return the labels that a caller listed as an option of this name; None stands for 0 and 1."""
        known = public_labels([0, 1] if labels is None else labels, name)
        assert known is not None
        listed = known.tolist() if labels is None else np.asarray(labels).tolist()
        if len(listed) != known.size:
            raise ValueError(f"{name} must all be different.")
        places = {label: place for place, label in enumerate(listed)}
        order = np.array([places[label] for label in known.tolist()], dtype=np.intp)
        in_order = np.empty_like(known)
        in_order[order] = known
        return cls(in_order, known, order, name)

    @property
    def size(self) -> int:
        """Number of labels."""
        return int(self.known.size)

    @property
    def is_sorted(self) -> bool:
        """Whether the caller listed the labels in sorted order."""
        return bool((self.places == np.arange(self.size)).all())

    def place(self, label: Any, name: str) -> int:
        """Return the place of a label that an option names."""
        listed = self.in_order.tolist()
        if label not in listed:
            raise ValueError(
                f"{name}={label!r} is not one of the public labels {reprlib.repr(listed)}: pass all of them "
                f"as {self.name}=[...], or another {name}."
            )
        place: int = listed.index(label)
        return place

    def sorted_place(self, label: Any, name: str) -> int:
        """Return the place among the sorted labels of one that an option names."""
        place: int = self.places.tolist().index(self.place(label, name))
        return place

    def array(self, data: ArrayLike, name: str, *, private_n: bool) -> NDArray[Any]:
        """Return each record's label, not yet looked at."""
        return as_labels(data, self.known, name, private_n=private_n, option=self.name)

    def codes(self, block: NDArray[Any], name: str) -> NDArray[np.intp]:
        """Return the place of each label; all must be in the label set."""
        return self.places[encoded_block(block, self.known, name, self.name)]


def check_labels(labels: NDArray[Any] | None, n_columns: int, name: str = "y_proba") -> NDArray[Any]:
    """Return the label set of `public_labels`, which must fit the number of columns, one for each label.

    None stands for {0, 1} with one column and for 0..K-1 with K columns: never for what y_true holds.
    """
    expected = max(n_columns, 2)
    if labels is None:
        return np.arange(expected)
    if labels.size != expected:
        raise ValueError(
            f"The number of classes in labels is different from that in {name}. "
            f"Classes found in labels: {labels.size}, columns of {name}: {n_columns}."
        )
    return labels


def unstated_labels(labels: NDArray[Any] | None, y_score: ArgumentShape) -> str | None:
    """Return why probabilities or scores without labels cannot hold a private number of records, or None."""
    if labels is not None:
        return None
    return unstated_columns(Shape((y_score,)), remedy="labels=[...], or an array, which has a shape")


def as_labels(
    data: ArrayLike,
    labels: NDArray[Any],
    name: str = "y_true",
    *,
    private_n: bool = False,
    option: str = "labels",
) -> NDArray[Any]:
    """Return each record's label, which should be one of the label set, as an array of shape (n_samples,).

    The records may be looked at again, even after the spend. So objects, which may answer otherwise then, are
    replaced by the public labels that they are equal to.
    """
    if labels.dtype.kind in "biuf":
        return numbers_or(
            f"{name} holds labels that are no numbers: pass {option}=[...], the public label set.",
            partial(as_vector, data, name, private_n=private_n),
        )
    y = flattened(_as_any_labels(data, name, private_n))
    if y.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of several columns instead.")
    return labels[encoded_block(y, labels, name, option)] if y.dtype.kind == "O" else y


def encoded_block(
    block: NDArray[Any], labels: NDArray[Any], name: str = "y_true", option: str = "labels"
) -> NDArray[np.intp]:
    """Return each record's position in the sorted label set."""
    if labels.dtype.kind in "biuf":
        y = float_block(block, name)
        known = labels.astype(np.float64)
        codes = np.minimum(np.searchsorted(known, y), known.size - 1)
        found, read = known[codes] == y, y
    else:
        lookup = {label: position for position, label in enumerate(labels.tolist())}

        def position(value: Any) -> int:
            try:
                return lookup.get(value, -1)
            except Exception:  # the value is not hashable, or has an equality of its own
                return -1

        codes = np.fromiter(map(position, block.astype(object)), dtype=np.intp, count=block.size)
        found, read = codes >= 0, block
    if not found.all():
        raise _not_among(labels, name, option, read[np.argmin(found)])
    return codes


def _not_among(labels: NDArray[Any], name: str, option: str, label: Any) -> ValueError:
    """Return the refusal of a label that is not in the public set; what it says no other record changes."""
    if is_missing(label):
        return ValueError(MISSING.format(name))
    refusal = f"{name} contains a label that is not in {option}={reprlib.repr(labels.tolist())}"
    are_whole = labels.dtype.kind in "biuf" and (labels == np.floor(labels)).all()
    if option != "labels":
        hint = "."
    elif are_whole and not float(label).is_integer():
        hint = f": it is no whole number. {_PASS_LABELS}"
    elif not (are_whole and np.array_equal(labels, np.arange(labels.size))):
        hint = ": pass all labels that there may be."
    elif labels.size > 2:
        hint = ", which is the default. Pass labels=[...], one for each column."
    else:
        hint = (
            ", which is the default. Pass labels=[1, 2] (and pos_label=2) if they are 1 and 2, "
            "labels=[0, 1, 2] (and average='macro') if they are 0 to 2."
        )
    return ValueError(refusal + hint)


def as_label_pairs(
    y_true: NDArray[Any], y_pred: NDArray[Any], *, private_n: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return true and predicted labels of any type as arrays of one shape, with one or two dimensions.

    The records may be looked at again, even after the spend. So objects, which may answer otherwise then, are
    replaced by 0 where both labels of a record are equal, and by 0 and 1 where they are not.
    """
    true, pred = (_as_any_labels(y, name, private_n) for y, name in ((y_true, "y_true"), (y_pred, "y_pred")))
    check_same_length(true, pred, private_n=private_n)
    true, pred = flattened(true), flattened(pred)
    if true.shape[1:] != pred.shape[1:]:
        raise NotLabelsError("a mix of targets with one and several outputs.")
    if "O" not in (true.dtype.kind, pred.dtype.kind):
        return true, pred
    differs = np.zeros(true.shape, dtype=np.bool_)
    differs[(slice(None), 0)[: differs.ndim]] = differing_block(true, pred)
    return np.zeros_like(differs), differs


def differing_block(true: NDArray[Any], pred: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each record whether its predicted label, or one of several, is not the true one."""
    _check_labels_of_block(true, "y_true")
    _check_labels_of_block(pred, "y_pred")
    if (_is_text(true) != _is_text(pred)).any():
        raise ValueError("Mix of label input types (string and number)")
    comparable = True
    differs: NDArray[np.bool_] = np.zeros(true.shape, dtype=np.bool_)
    try:
        differs |= np.asarray(true != pred, dtype=np.bool_)
        if {true.dtype.kind, pred.dtype.kind} in ({"i", "f"}, {"u", "f"}):
            # NumPy compares large integers with floats after rounding them
            large = np.abs(true if true.dtype.kind == "f" else pred) >= _EXACT_AS_FLOATS
            differs[large] = true[large].astype(object) != pred[large].astype(object)
    except Exception:  # labels may have an equality of their own
        comparable = False
    if not comparable:
        raise ValueError("y_true and y_pred contain labels that cannot be compared.")
    for column in range(1, 1 if differs.ndim == 1 else differs.shape[1]):
        differs[:, 0] |= differs[:, column]
    return differs if differs.ndim == 1 else differs[:, 0]


def _is_text(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are strings."""
    if array.dtype.kind == "O":
        labels = array.ravel().tolist()
        is_text = {issubclass(kind, str) for kind in set(map(type, labels))}
        if len(is_text) > 1:
            return np.array([isinstance(label, str) for label in labels]).reshape(array.shape)
        return np.full(array.shape, True in is_text)
    return np.full(array.shape, array.dtype.kind == "U")


def _as_any_labels(data: Any, name: str, private_n: bool) -> NDArray[Any]:
    """Return labels of any type as an array of one or two dimensions, uncopied if they are in one.

    What is not in one goes into an array of objects, so that one record's type cannot change how another is
    read.
    """
    array = array_of(data)
    if array.dtype.kind not in "biufU":
        array = array.astype(object)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} should be a 1d array, got a {array.ndim}d array instead.")
    check_not_empty(array, private_n=private_n)
    return array


def _check_labels_of_block(block: NDArray[Any], name: str) -> None:
    if block.dtype.kind == "f":
        values = float_block(block, name)
        if (values != np.floor(values)).any():
            raise _not_whole(name)
    elif block.dtype.kind == "O":
        _check_label_objects(block, name)


def _check_label_objects(array: NDArray[Any], name: str) -> None:
    odd = [label for label in array.ravel().tolist() if type(label) not in _ORDINARY]
    for label in odd:
        if isinstance(label, float | np.floating):
            if math.isnan(label):
                raise ValueError(MISSING.format(name))
            if math.isinf(label):
                raise ValueError(TOO_LARGE.format(name))
            if not label.is_integer():
                raise _not_whole(name)
        elif isinstance(label, Decimal) and label.is_nan():  # a signaling one cannot even be compared
            raise ValueError(MISSING.format(name))
        elif isinstance(label, complex | np.complexfloating):
            raise ValueError("Complex data not supported")
        elif is_several(label):
            raise ValueError(
                f"{name} should hold one label per record, or an array of one column per output."
            )
        elif is_missing(label):
            raise ValueError(MISSING.format(name))
