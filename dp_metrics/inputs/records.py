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
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from dp_metrics.inputs.columns import check_same_columns
from dp_metrics.inputs.containers import TOO_LARGE, NotNumbersError, array_of, as_floats, states_columns
from dp_metrics.inputs.floats import Floats

__all__ = [
    "as_numbers",
    "as_probabilities",
    "as_scores",
    "as_targets",
    "as_vector",
    "check_not_empty",
    "check_numbers",
    "check_same_length",
    "check_vector",
    "flattened",
    "float_block",
    "in_columns",
    "loss_block",
    "numbers_or",
    "probability_block",
    "rows_of",
    "unstated_columns",
]

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
            raise ValueError(f"Input {name} contains NaN.")
        raise ValueError(TOO_LARGE.format(name))
    return values


def rows_of(data: Any, rows: NDArray[np.intp]) -> Any:
    """Return some of the records, in the form in which they came: lists may hold labels of several types."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows]


def check_numbers(data: Any, name: str, *, allow_2d: bool, private_n: bool) -> Floats:
    """Return real, finite numbers as a float64 array."""
    return float_block(as_numbers(data, name, allow_2d=allow_2d, private_n=private_n), name)


def as_vector(data: ArrayLike, name: str, *, private_n: bool = False) -> NDArray[Any]:
    """Return one number per record as an array of shape (n_samples,).

    A column vector of shape (n_samples, 1) is flattened. With a private n, no record at all is legal.
    """
    array = flattened(as_numbers(data, name, allow_2d=True, private_n=private_n))
    if array.ndim == 2:
        raise ValueError(f"{name} should be a 1d array, got an array of several columns instead.")
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


def check_same_length(*arrays: Any, private_n: bool = False) -> None:
    """Raise unless all have one number of records, without saying which where n is private."""
    if not private_n:
        check_consistent_length(*arrays)
    elif len({len(array) for array in arrays}) > 1:
        raise ValueError("Found input variables with inconsistent numbers of samples.")


def as_targets(
    y_true: ArrayLike, y_pred: ArrayLike, *, private_n: bool = False, columns: int = 1
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return true and predicted targets as arrays of shape (n_samples,) or (n_samples, n_outputs).

    Where neither of two empty lists tells the number of outputs, it is `columns`.
    """
    true = as_numbers(y_true, "y_true", allow_2d=True, private_n=private_n)
    pred = as_numbers(y_pred, "y_pred", allow_2d=True, private_n=private_n)
    check_same_columns(y_true, y_pred)
    check_same_length(true, pred, private_n=private_n)
    true, pred = in_columns((y_true, y_pred), (true, pred), columns)
    true, pred = flattened(true), flattened(pred)
    outputs = [1 if a.ndim == 1 else a.shape[1] for a in (true, pred)]
    if outputs[0] != outputs[1]:
        # someone may pass rows for columns: the numbers would then tell how many records there are
        numbers_of = "" if private_n else f" ({outputs[0]}!={outputs[1]})"
        raise ValueError(f"y_true and y_pred have different number of output{numbers_of}")
    return true, pred


def in_columns(
    data: tuple[Any, Any], arrays: tuple[NDArray[Any], NDArray[Any]], columns: int = 1
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the arrays; those of empty lists in as many columns as the other one or the caller tells."""
    columns = max([columns, *(array.shape[1] for array in arrays if array.ndim == 2)])
    true, pred = (
        array if len(array) or states_columns(held) or columns == 1 else array.reshape(0, columns)
        for held, array in zip(data, arrays, strict=True)
    )
    return true, pred


def unstated_columns(*data: Any, remedy: str) -> str | None:
    """Return why lists alone cannot hold a private number of records, or None where a container has a shape.

    The number of columns would follow from the records: no record at all would be released by another law
    than one record of several columns.
    """
    if any(map(states_columns, data)):
        return None
    return (
        "A list does not state how many columns it has, and with neighboring='add_or_remove_one' that must "
        f"not follow from whether there are records: pass {remedy}."
    )


def as_probabilities(
    y_proba: ArrayLike, *, private_n: bool = False, columns: int = 1
) -> tuple[NDArray[Any], float]:
    """Return probabilities and the machine epsilon of the type they came in.

    An empty list of probabilities has so many columns.

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_columns)
        One column holds the probability of the second label.
    resolution : float
        scikit-learn clips probabilities to [resolution, 1 - resolution].
    """
    array = numbers_or(
        f"y_proba should hold probabilities, {_NO_LABELS}.",
        partial(as_numbers, y_proba, "y_proba", allow_2d=True, private_n=private_n),
    )
    if array.ndim == 1:
        told = array.size or states_columns(y_proba)
        array = array[:, np.newaxis] if told else array.reshape(0, columns)
    return array, _resolution(y_proba)


def _resolution(y_proba: Any) -> float:
    """Return the machine epsilon of the type of floats, whatever holds them; else that of float64."""
    dtype = getattr(y_proba, "dtype", None)
    if dtype is None and len(kinds := set(getattr(y_proba, "dtypes", ()))) == 1:
        (dtype,) = kinds  # a data frame of one type
    dtype = getattr(dtype, "numpy_dtype", dtype)  # pandas has nullable types
    # polars, pyarrow and torch have types of their own
    if not isinstance(dtype, np.dtype) and hasattr(y_proba, "__array__"):
        dtype = np.asarray(y_proba).dtype
    known = isinstance(dtype, np.dtype) and dtype in (np.float16, np.float32, np.float64)
    return float(np.finfo(dtype if known else np.float64).eps)


def probability_block(block: NDArray[Any]) -> Floats:
    """Return probabilities as float64; they must lie in [0, 1]."""
    values = float_block(block, "y_proba")
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"y_proba should contain values in [0, 1] only: probabilities, {_NO_LABELS}.")
    return values


def as_scores(
    y_score: ArrayLike,
    name: str = "y_score",
    *,
    private_n: bool = False,
    columns: int = 1,
    positive: int = 1,
) -> NDArray[Any]:
    """Return scores, any numbers that grow with how likely a label is.

    An empty list of scores has so many columns.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_columns)
        For one column, or two as `predict_proba` gives them, the scores of the label of this position.
    """
    array = numbers_or(
        f"{name} should hold scores, as decision_function or predict_proba gives them, not labels.",
        partial(as_numbers, y_score, name, allow_2d=True, private_n=private_n),
    )
    if array.ndim == 1 and columns > 2 and not (array.size or states_columns(y_score)):
        array = array.reshape(0, columns)
    if array.ndim == 2 and array.shape[1] <= 2:
        return array[:, positive if array.shape[1] == 2 else 0]
    return array


def numbers_or(message: str, read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return what is read, or raise with this message if there are no numbers to be read."""
    with contextlib.suppress(NotNumbersError):
        return read()
    raise ValueError(message)
