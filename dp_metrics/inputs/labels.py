"""Labels: the public label set, the labels of records, and which column of scores belongs to which label.

As in `arrays`, what concerns a whole array is checked at once, its contents in blocks, one record at a time.
"""

import reprlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import repeat
from numbers import Number
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs import arrays
from dp_metrics.inputs.arrays import ArgumentShape, Moment, Records, Shape
from dp_metrics.inputs.options import Array, Codes, as_whole

_EXACT_AS_FLOATS = 2**53
_ORDINARY = {str, int, bool}
_SORTS = {"text": (str,), "bytes": (bytes,), "numbers": (Number, np.bool_)}
_ZONES = "{} holds {}, and {} {}: nobody can tell which are the same. Give all a time zone, or none."
_OF_PROBABILITIES = "To compare probabilities use log_loss or brier_score."
_PASS_LABELS = f"Pass labels, such as predict gives, and not probabilities or scores. {_OF_PROBABILITIES}"


def as_listed(labels: Any, name: str) -> Array:
    """Return public labels in the order in which they were listed, each of them as it was."""
    array = arrays.array_of(labels)
    # elements as they are, one type for all of them where that is their own
    plain = np.asarray(array.tolist()) if array.dtype.kind == "O" else array
    if array.ndim != 1 or plain.ndim != 1 or plain.dtype.kind not in "biufUOmM":
        raise ValueError(
            f"{name} must be a list or a 1d array of the public labels; decode those that are bytes."
        )
    if array.dtype.kind in "mM":
        # pandas lists its own times
        return _as_objects(array if array is labels or not hasattr(labels, "tolist") else labels.tolist())
    if any(type(label) is Moment for label in array):
        raise ValueError(f"{name} holds times with a time zone: pass a list of them.")
    is_plain = plain.dtype.kind in "biuf" or all(isinstance(label, str) for label in array)
    return plain if is_plain else array


def _as_objects(labels: Sequence[Any] | Array) -> Array:
    return np.fromiter(labels, dtype=object, count=len(labels))


def sorted_labels(labels: Array, name: str = "labels") -> Array:
    """Return the different ones of listed labels in their order."""
    if labels.dtype.kind != "O":
        return np.unique(labels)
    listed = labels.tolist()
    with suppress(TypeError, ArithmeticError):  # NaN of Decimal cannot be compared
        first = {arrays.moment_of(label): label for label in listed}
        if len({one.kind for one in first if type(one) is Moment}) < 2:
            return _as_objects([first[one] for one in sorted(first)])
    members = list(type(listed[0])) if isinstance(listed[0], Enum) else []
    if not all(label in members for label in listed):
        raise ValueError(f"{name} must be of one type, so that they can be sorted.")
    return _as_objects([member for member in members if member in listed])


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

    in_order: Array
    known: Array
    places: Codes
    name: str = "labels"

    @classmethod
    def of(cls, labels: Any, name: str = "labels") -> Self:
        """Return the labels that a caller listed as an option of this name; None stands for 0 and 1.

        Members of an `Enum` that cannot be compared are sorted as their class defines them.
        """
        listed = as_listed([0, 1] if labels is None else labels, name)
        known = sorted_labels(listed, name)
        if known.dtype.kind == "f" and np.isnan(known).any():
            raise ValueError(f"{name} must not hold NaN.")
        if known.size < 2:
            raise ValueError(f"The {name} array needs to contain at least two labels.")
        if listed.size != known.size:
            raise ValueError(f"{name} must all be different.")
        if known.dtype.kind in "iu" and max(abs(int(known[0])), abs(int(known[-1]))) >= _EXACT_AS_FLOATS:
            known = known.astype(object)  # two of them could be one float
        order = places_among(known, listed)
        return cls(known[np.argsort(order)], known, order, name)

    @property
    def size(self) -> int:
        """Number of labels."""
        return int(self.known.size)

    @property
    def is_sorted(self) -> bool:
        """Whether the caller listed the labels in sorted order."""
        return np.array_equal(self.places, np.arange(self.size))

    def place(self, label: Any, name: str) -> int:
        """Return the place of a label that an option names."""
        (place,) = places_among(_as_objects([label]), self.in_order).tolist()
        if place < 0:
            listed = reprlib.repr(self.in_order.tolist())
            raise ValueError(
                f"{name}={label!r} is not one of the public labels {listed}: pass all of them as "
                f"{self.name}=[...], or another {name}."
            )
        return int(place)

    def sorted_place(self, pos_label: Any) -> int:
        """Return the place among the sorted labels of the positive one."""
        return int(np.flatnonzero(self.places == self.place(pos_label, "pos_label"))[0])

    def array(self, data: ArrayLike, name: str = "y_true") -> Array:
        """Return each record's label, which should be one of these, as an array of shape (n_samples,).

        The records may be looked at again, even after the spend. So objects, which may answer otherwise then,
        are replaced by the public labels that they are equal to.
        """
        array = arrays.array_of(data)
        if self.known.dtype.kind in "biuf":
            no_numbers = (
                f"{name} holds labels that are no numbers, as those in {self.name} are: pass "
                f"{self.name}=[...] with all labels that there may be."
            )
            if array.dtype.kind in "mM":
                raise ValueError(no_numbers)
            return arrays.as_vector(array, name, no_numbers)
        sorts = np.ravel(_sorts_of(_with_moments(self.known)))
        if array.dtype.kind in "biufcUmM" and _sorts_of(array) not in sorts:
            # the type of an array is public, so that this one is refused without a record too
            listed = reprlib.repr(self.known.tolist())
            raise ValueError(f"{name} holds {_sorts_of(array)}, which are not in {self.name}={listed}.")
        y = arrays.one_column(_as_any_labels(array, name), name)
        return self.known[self.sorted_codes(y, name)] if y.dtype.kind == "O" else y

    def codes(self, block: Array, name: str) -> Codes:
        """Return the place of each label; all must be in the label set."""
        return self.places[self.sorted_codes(block, name)]

    def sorted_codes(self, block: Array, name: str = "y_true") -> Codes:
        """Return the place of each label among the sorted ones; all must be in the label set."""
        if self.known.dtype.kind in "biuf":
            y = arrays.float_block(block, name)
            known = self.known.astype(np.float64)
            codes = np.minimum(np.searchsorted(known, y), known.size - 1)
            found, read = known[codes] == y, y
        else:
            codes = places_among(block, self.known)
            found, read = codes >= 0, block
        if not found.all():
            raise _not_among(self.known, name, self.name, read[np.argmin(found)])
        return codes


def places_among(block: Array, labels: Array) -> Codes:
    """Return the position of each of one column among listed labels; -1 of what is none, whatever it is."""
    lookup = {label: position for position, label in enumerate(arrays.exact(labels))}
    objects = arrays.exact(block)
    with suppress(Exception):  # one is not hashable, or has an equality of its own
        return np.fromiter(map(lookup.get, objects, repeat(-1)), dtype=np.intp, count=len(objects))
    places = [arrays.quietly(lookup.get, one) for one in objects]
    return np.array([-1 if place is None else place for place in places], dtype=np.intp)


def _not_among(labels: Array, name: str, option: str, label: Any) -> ValueError:
    """Return the refusal of a label that is not in the public set; what it says no other record changes."""
    if arrays.is_missing(label):
        return ValueError(arrays.MISSING.format(name))
    first = map(arrays.moment_of, (label, labels.tolist()[0]))
    of_label, of_labels = (one.kind if type(one) is Moment else "" for one in first)
    if {of_label, of_labels} == {arrays.NAIVE, arrays.ZONED}:
        return ValueError(_ZONES.format(name, of_label, option, of_labels))
    refusal = f"{name} contains a label that is not in {option}={reprlib.repr(labels.tolist())}"
    are_whole = labels.dtype.kind in "biuf" and (labels == np.floor(labels)).all()
    if option != "labels":
        hint = "."
    elif are_whole and not float(label).is_integer():
        hint = f": it is no whole number. {_PASS_LABELS}"
    elif not (are_whole and np.array_equal(labels, np.arange(labels.size))):
        hint = ": pass all labels that there may be."
    else:
        hint = (
            ", which is the default. Pass all labels that there may be, such as labels=[1, 2] or "
            "labels=[0, 1, 2]; and, where the metric has such an option, pos_label=2 for the first, "
            "average='macro' or multi_class='ovr' for the second."
        )
    return ValueError(refusal + hint)


def differing_labels(true: Array, pred: Array) -> NDArray[np.bool_]:
    """Return for each record whether its predicted label, or one of several, is not the true one."""
    _check_labels_of_block(true, "y_true")
    _check_labels_of_block(pred, "y_pred")
    kinds = {true.dtype.kind, pred.dtype.kind}
    if "O" in kinds or (true.dtype.kind in "mM" and true.dtype != pred.dtype):
        true, pred = _with_moments(true), _with_moments(pred)  # NumPy compares times of one unit exactly
    _check_same_sorts(true, pred)
    differs = None
    with suppress(Exception):  # labels may have an equality of their own
        found = np.zeros(true.shape, dtype=np.bool_) | np.asarray(true != pred, dtype=np.bool_)
        if kinds in ({"i", "f"}, {"u", "f"}):
            # NumPy compares large integers with floats after rounding them
            large = np.abs(true if true.dtype.kind == "f" else pred) >= _EXACT_AS_FLOATS
            found[large] = true[large].astype(object) != pred[large].astype(object)
        differs = found if found.ndim == 1 else np.logical_or.reduce(found, axis=1)
    if differs is None:
        raise ValueError("y_true and y_pred contain labels that cannot be compared: use strings or numbers.")
    return differs


def _with_moments(labels: Array) -> Array:
    """Return labels with dates, times and durations in their exact form."""
    return _as_objects(arrays.exact(labels)).reshape(labels.shape) if labels.dtype.kind in "mMO" else labels


def _check_same_sorts(true: Array, pred: Array) -> None:
    """Raise if the two labels of a record are of sorts of which none is ever equal to one of the other."""
    both = np.broadcast_arrays(_sorts_of(true), _sorts_of(pred))
    differs = np.asarray(both[0] != both[1])
    if not differs.any():
        return
    of_true, of_pred = (sorts[differs][0] for sorts in both)
    if {of_true, of_pred} == {arrays.NAIVE, arrays.ZONED}:
        raise ValueError(_ZONES.format("y_true", of_true, "y_pred", of_pred))
    if {of_true, of_pred} == {"numbers", "text"}:  # in the words of scikit-learn
        raise ValueError("Mix of label input types (string and number)")
    raise ValueError(f"Mix of label input types: y_true holds {of_true}, and y_pred {of_pred}.")


def _sorts_of(labels: Array) -> Any:
    """Return of which sort labels are: one word for all of them, or an array of words."""
    if labels.dtype.kind in "mM":
        return arrays.kind_of_times(labels.dtype)
    if labels.dtype.kind != "O":
        return "text" if labels.dtype.kind == "U" else "numbers"
    objects = labels.ravel().tolist()
    of_type = {
        kind: next((sort for sort, types in _SORTS.items() if issubclass(kind, types)), "other objects")
        for kind in set(map(type, objects))
    }
    if Moment not in of_type and len({*of_type.values()}) == 1:
        return of_type[type(objects[0])]
    sorts = [one.kind if type(one) is Moment else of_type[type(one)] for one in objects]
    return _as_objects(sorts).reshape(labels.shape)


def _as_any_labels(data: Any, name: str) -> Array:
    """Return labels of any type as an array of one or two dimensions, uncopied if they are in one.

    What is not in one goes into an array of objects, so that one record's type cannot change how another is
    read.
    """
    array = arrays.array_of(data)
    if array.dtype.kind not in "biufUmM":
        array = array.astype(object)
    arrays.check_columns(array, name)
    return array


def _check_labels_of_block(block: Array, name: str) -> None:
    if block.dtype.kind == "f":
        values = arrays.float_block(block, name)
        if (values != np.floor(values)).any():
            raise ValueError(
                f"Classification metrics can't handle continuous targets: {name} holds numbers that are not "
                f"whole. {_PASS_LABELS}"
            )
    elif block.dtype.kind in "mM" and np.isnat(block).any():
        raise ValueError(arrays.MISSING.format(name))
    elif block.dtype.kind == "O":
        _check_label_objects(block, name)


def _check_label_objects(array: Array, name: str) -> None:
    objects = array.ravel().tolist()
    if set(map(type, objects)) <= _ORDINARY:  # far faster than to look at each
        return
    odd = [label for label in objects if type(label) not in _ORDINARY]
    _check_labels_of_block(
        np.array([x for x in odd if arrays.is_a(x, (float, np.floating))], np.float64), name
    )
    for label in odd:
        if arrays.is_a(label, (complex, np.complexfloating)):
            raise ValueError(arrays.COMPLEX)
        if arrays.is_several(label):
            raise ValueError(
                f"{name} should hold one label per record, or an array of one column per output."
            )
        if arrays.is_missing(label):
            raise ValueError(arrays.MISSING.format(name))


# Readers: of labels, and of the columns of probabilities or scores that belong to them

_SCORES = "scores, as decision_function or predict_proba gives them, not labels"


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Public: the labels, and the columns of probabilities or scores that belong to them.

    Parameters
    ----------
    labels : LabelSet
        The labels.
    columns : int
        Number of columns: one for each label, or one of two labels.
    order : tuple of int or None
        Where the column of each sorted label stands; None: in this order. Records in several orders merge.
    unstated : str or None
        Why neither labels nor a container tell the columns of a private number of records; None: one does.
    positive : int, default=1
        The place among the sorted labels of the one that one column belongs to.
    """

    labels: LabelSet
    columns: int
    order: tuple[int, ...] | None = field(compare=False)
    unstated: str | None = field(default=None, compare=False)
    positive: int = 1

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
        given = labels if isinstance(labels, LabelSet | None) else LabelSet.of(labels)
        columns = form.columns or (fewest if given is None or given.size == 2 else given.size)
        listed = (
            LabelSet.of(np.arange(max(columns, 2))) if given is None else given
        )  # never what y_true holds
        if listed.size != max(columns, 2):
            raise ValueError(
                f"The number of classes in labels is different from that in {name}. "
                f"Classes found in labels: {listed.size}; {name} must have a column for each."
            )
        of_one = None if positive is None else listed.sorted_place(positive)
        order = None if form.names is None else _order(form.names, listed, columns, name, of_one)
        unstated = None
        if labels is None:
            unstated = arrays.unstated_columns(
                Shape((form,)), remedy="labels=[...], or an array, which has a shape"
            )
        return cls(listed, columns, order, unstated, 1 if of_one is None else of_one)


def _order(
    names: Sequence[Any], labels: LabelSet, columns: int, name: str, positive: int | None
) -> tuple[int, ...] | None:
    """Return where the column of each sorted label stands, or raise if that is not told."""
    known = labels.known.tolist()
    shown = reprlib.repr(labels.in_order.tolist())
    if columns == 1:
        if positive is None and not labels.is_sorted:
            raise ValueError(
                f"labels={shown} is not sorted, so that nobody can tell to which label the one column of "
                f"{name} belongs: pass pos_label=..., or labels=sorted(labels) if it is that of the last, "
                "or a column for each label, with their names."
            )
        other = known[1] if positive == 0 else known[0]
        # a column named by the number 0 may just as well be the first one of a table
        if len(names) == 1 and isinstance(names[0], str) and names[0] == arrays.name_key(other):
            raise ValueError(
                f"The one column of {name} is named like the negative label. Pass that of the positive label "
                "(the second of the sorted labels, or pos_label), or one column for each label."
            )
        return None
    found, wanted = ([*map(arrays.name_key, several)] for several in (names, known))
    # a table that nobody gave names has the numbers 0, 1, 2 and so on
    are_names = [*map(as_whole, names)] != [*range(len(names))]
    if are_names and {*found} & {*wanted}:
        if {*found} != {*wanted}:
            raise ValueError(
                f"The names of the columns of {name} must be those of all labels={shown}, each once, or of "
                f"none: pass all labels as labels=[...], or {name} without names, its columns in the order "
                "of the sorted labels."
            )
        order = tuple(found.index(label) for label in wanted)
        return None if order == tuple(range(columns)) else order
    if not labels.is_sorted:
        raise ValueError(
            f"labels={shown} is not sorted, and the columns of {name} are not named like labels, so that "
            "nobody can tell which is which: pass labels=sorted(labels) if they stand in that order, as "
            f"predict_proba gives them, or name them: pd.DataFrame({name}, columns=labels)."
        )
    return None


def labels_of_any_type(records: Records, *, columns: int) -> Records:
    """Return true and predicted labels in arrays of one form; empty lists have so many columns.

    The records may be looked at again, even after the spend, when objects may answer otherwise. So these are
    replaced by 0, and where a predicted label is not the true one, by 0 and 1.
    """
    both = {"y_true": records.array(0, columns), "y_pred": records.array(1, columns)}
    true, pred = (arrays.flattened(_as_any_labels(y, name)) for name, y in both.items())
    checked = arrays.checked_records(records, {"y_true": true, "y_pred": pred})
    if true.shape[1:] != pred.shape[1:]:
        raise ValueError(
            "Classification metrics can't handle a mix of targets with one and several outputs. "
            f"{_OF_PROBABILITIES}"
        )
    if "O" not in (true.dtype.kind, pred.dtype.kind):
        _check_same_sorts(true, pred)  # the types of arrays are public, and refused without a record too
        return checked
    parts = map(differing_labels, arrays.in_blocks(true), arrays.in_blocks(pred))
    differs = np.concatenate([np.zeros(0, np.bool_), *parts])
    return replace(checked, arrays=(np.zeros_like(differs), differs))


def labels_and_columns(records: Records, *, columns: LabelColumns, name: str) -> Records:
    """Return labels, and probabilities or scores in the columns of the sorted labels, or in one of two."""
    held = f"probabilities, {arrays.NO_LABELS}" if name == "y_proba" else _SCORES
    numbers = arrays.as_numbers(records.array(1, columns.columns), name, f"{name} should hold {held}.")
    if numbers.ndim == 1:
        numbers = numbers[:, np.newaxis]
    elif columns.order is not None:
        numbers = numbers[:, columns.order]
    return arrays.checked_records(records, {"y_true": columns.labels.array(records.array(0)), name: numbers})


def labels_and_scores(records: Records, *, columns: LabelColumns, name: str = "y_score") -> Records:
    """Return labels, and scores: any numbers that grow with how likely a label is.

    Of one column, or two as `predict_proba` gives them, they have the shape (n_samples,) and are those of the
    positive label; else a column for each label.
    """
    checked = labels_and_columns(records, columns=columns, name=name)
    true, scores = checked.arrays
    if scores.shape[1] <= 2:
        scores = scores[:, columns.positive if scores.shape[1] == 2 else 0]
    return replace(checked, arrays=(true, scores))
