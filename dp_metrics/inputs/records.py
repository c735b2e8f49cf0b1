"""One checker for each kind of input, with the errors that scikit-learn users expect.

Privacy decides what may be checked: an invalid record is refused before anything is spent, and the
refusal reveals that one exists. So each check looks at one record at a time, and no message holds a
value, a count or a position from the data. What depends on several records at once
(`type_of_target`, a single-class check, a warning about row sums) is never called.

What concerns a whole array (its type, shape and length) is checked at once, by functions that return the
array uncopied where they can; what concerns its contents is checked in blocks, as they are read, by functions
that end in `_block`.
"""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.containers import MISSING, TOO_LARGE, NotNumbersError, array_of, as_floats
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.shape import Shape

SEVERAL_COLUMNS = (
    "{} should be a 1d array, got an array of several columns instead: pass one value per record. Where each "
    "column is a question of its own, call the metric once for each, at a part of epsilon."
)
_NO_LABELS = "as predict_proba gives them, not labels"


def as_numbers(data: Any, name: str, *, allow_2d: bool, private_n: bool) -> NDArray[Any]:
    """Return real numbers as an array: the container's own, uncopied, if it has one; float64 otherwise."""
    array = array_of(data)
    if array.ndim == 0 or array.ndim > (2 if allow_2d else 1):
        shapes = "a 1d or 2d array" if allow_2d else "a 1d array"
        raise ValueError(f"{name} should be {shapes}, got a {array.ndim}d array instead.")
    if array.dtype.kind not in "biuf" or array.itemsize > 8:
        array = as_floats(array, name)
    check_not_empty(array, private_n=private_n)
    return array


def flattened(array: NDArray[Any]) -> NDArray[Any]:
    """Return a column vector as an array of one dimension, anything else as it is."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def check_not_empty(array: NDArray[Any], *, private_n: bool) -> None:
    """Raise for an array without columns or, where the number of records is public, without rows."""
    if array.shape[0] == 0 and not private_n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")


def float_block(block: NDArray[Any], name: str) -> Floats:
    """Return numbers as contiguous float64, uncopied if they are; they must be finite."""
    # NumPy may compute a logarithm of strided data by other code, with another last bit
    values: Floats = np.ascontiguousarray(block, dtype=np.float64)
    if block.dtype.kind == "f" and not np.isfinite(values).all():
        if np.isnan(values).any():
            raise ValueError(MISSING.format(name))
        raise ValueError(TOO_LARGE.format(name))
    return values


def rows_of(data: Any, rows: NDArray[np.intp]) -> Any:
    """Return some of the records, in the form in which they came: lists may hold labels of several types."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows]


def as_vector(data: ArrayLike, name: str, *, private_n: bool = False) -> NDArray[Any]:
    """Return one number per record as an array of shape (n_samples,).

    A column vector of shape (n_samples, 1) is flattened. With a private n, no record at all is legal.
    """
    array = flattened(as_numbers(data, name, allow_2d=True, private_n=private_n))
    if array.ndim == 2:
        raise ValueError(SEVERAL_COLUMNS.format(name))
    return array


def check_vector(data: ArrayLike, name: str) -> Floats:
    """Return one number per record as a finite float64 array of shape (n_samples,)."""
    return float_block(as_vector(data, name), name)


def loss_block(losses: NDArray[Any]) -> Floats:
    """Return per-record losses, which must be finite and non-negative, as float64."""
    values = float_block(losses, "losses")
    if (values < 0).any():
        raise ValueError("Negative values in data passed to `losses`: every loss must be non-negative.")
    return values


def check_same_length(arguments: Mapping[str, Any], *, private_n: bool = False) -> None:
    """Raise unless all arguments have one number of records, naming two that have not.

    Parameters
    ----------
    arguments : mapping
        Arrays by what they are called; None is none.
    private_n : bool, default=False
        Whether the number of records is private, so that the message does not say it.
    """
    lengths = {name: np.shape(array)[:1] for name, array in arguments.items() if array is not None}
    first = next(iter(lengths), "")
    other = next((name for name, length in lengths.items() if length != lengths[first]), None)
    if other is None:
        return
    told = f"{first} and {other}"
    if not private_n:
        numbers = {name: sum(length) for name, length in lengths.items()}
        told = f"{[*numbers.values()]}: {first} has {numbers[first]}, {other} has {numbers[other]}"
    raise ValueError(f"Found input variables with inconsistent numbers of samples: {told}.")


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


def as_probabilities(array: NDArray[Any], *, private_n: bool = False) -> NDArray[Any]:
    """Return probabilities in columns; a single one holds the probability of the second label."""
    read = numbers_or(
        f"y_proba should hold probabilities, {_NO_LABELS}.",
        partial(as_numbers, array, "y_proba", allow_2d=True, private_n=private_n),
    )
    return read[:, np.newaxis] if read.ndim == 1 else read


def probability_block(block: NDArray[Any]) -> Floats:
    """Return probabilities as float64; they must lie in [0, 1]."""
    values = float_block(block, "y_proba")
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"y_proba should contain values in [0, 1] only: probabilities, {_NO_LABELS}.")
    return values


def as_scores(
    array: NDArray[Any], name: str = "y_score", *, private_n: bool = False, positive: int = 1
) -> NDArray[Any]:
    """Return scores, any numbers that grow with how likely a label is.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_columns)
        For one column, or two as `predict_proba` gives them, the scores of the label of this position.
    """
    read = numbers_or(
        f"{name} should hold scores, as decision_function or predict_proba gives them, not labels.",
        partial(as_numbers, array, name, allow_2d=True, private_n=private_n),
    )
    if read.ndim == 2 and read.shape[1] <= 2:
        return read[:, positive if read.shape[1] == 2 else 0]
    return read


def numbers_or(message: str, read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return what is read, or raise with this message if there are no numbers to be read."""
    with contextlib.suppress(NotNumbersError):
        return read()
    raise ValueError(message)
