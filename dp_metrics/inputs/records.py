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
import math
import numbers
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.scalars import as_real

__all__ = [
    "as_label_pairs",
    "as_labels",
    "as_numbers",
    "as_probabilities",
    "as_targets",
    "as_vector",
    "check_bounds",
    "check_labels",
    "check_max_loss",
    "check_numbers",
    "check_same_length",
    "check_vector",
    "differing_block",
    "encoded_block",
    "float_block",
    "loss_block",
    "probability_block",
    "public_labels",
    "refuse_masked",
]

_NOT_NUMERIC = (
    "dtype='numeric' is not compatible with {}. Convert your data to numeric values explicitly instead."
)

_TOO_LARGE = "Input {} contains infinity or a value too large for dtype('float64')."
_NO_LABELS = "as predict_proba gives them, not labels"
_EXACT_AS_FLOATS = 2**53
_CONTINUOUS = "Classification metrics can't handle continuous targets: {} holds numbers that are not whole."


def check_bounds(bounds: Any) -> tuple[float, float] | None:
    """Return public bounds as two floats, or None for unbounded data."""
    if bounds is None:
        return None
    lower = upper = math.nan
    ordered = isinstance(bounds, tuple | list) or hasattr(bounds, "__array__")
    if ordered and len(bounds) == 2 and all(isinstance(bound, numbers.Real) for bound in bounds):
        with contextlib.suppress(OverflowError):
            lower, upper = (float(bound) for bound in bounds)
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ValueError("bounds must be None or a pair (lower, upper) of finite numbers with lower < upper.")
    return lower, upper


def check_max_loss(max_loss: Any) -> float | None:
    """Return the public cap of one record's loss as a float, or None for unbounded losses."""
    if max_loss is None:
        return None
    cap = as_real(max_loss)
    if not (math.isfinite(cap) and cap > 0):
        raise ValueError("max_loss must be None or a positive, finite number.")
    return cap


def refuse_masked(data: Any) -> None:
    """Raise for a masked array."""
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("Masked arrays are not supported: what the mask hides would be read.")


def as_numbers(data: Any, name: str, *, allow_2d: bool, private_n: bool) -> NDArray[Any]:
    """Return real numbers as an array: their own, uncopied, if they have one; float64 otherwise.

    It runs scikit-learn's `check_array`, and replaces messages that would show a value or a number of
    records.
    """
    refuse_masked(data)
    array = _own_array(data)
    if array is None:
        array = _checked_array(data, name, private_n)
    if array.ndim == 0 or array.ndim > (2 if allow_2d else 1):
        shapes = "a 1d or 2d array" if allow_2d else "a 1d array"
        raise ValueError(f"{name} should be {shapes}, got a {array.ndim}d array instead.")
    return array


def _own_array(data: Any) -> NDArray[Any] | None:
    """Return what an ndarray, or a column of a data frame, holds, if that is surely real numbers."""
    is_column = hasattr(data, "to_numpy") and isinstance(getattr(data, "dtype", None), np.dtype)
    if type(data) is not np.ndarray and not is_column:
        return None
    array = np.asarray(data)
    return array if array.dtype.kind in "biuf" and array.itemsize <= 8 and array.size else None


def _checked_array(data: Any, name: str, private_n: bool) -> Floats:
    failure: Exception
    try:
        dtype = data.dtype if hasattr(data, "dtype") else np.asarray(data).dtype
        kind = getattr(dtype, "kind", "")
        if kind in ("U", "S"):
            raise ValueError(_NOT_NUMERIC.format("arrays of bytes/strings"))
        if kind == "c":
            raise ValueError("Complex data not supported")
        if kind in ("M", "m", "V"):
            raise TypeError(_NOT_NUMERIC.format("dates, time spans or records"))
        array: Floats = check_array(
            data,
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0 if private_n else 1,
            input_name=name,
        )
    except OverflowError:
        failure = ValueError(_TOO_LARGE.format(name))
    except (ValueError, TypeError) as error:
        failure = _without_values(error)
    else:
        return array
    # raised here, not in the handler: the original, which may quote the data, is not chained to it
    raise failure


def _without_values(error: Exception) -> Exception:
    text = str(error)
    harmless = ("Found array with", "Complex data not supported", "Sparse data was passed", "dtype='numeric'")
    if text.startswith(harmless):
        # the second line of some messages shows the array, a shape the number of records
        return type(error)(re.sub(r" \(shape=\(.*?\)\)", "", text.split("\n")[0]))
    if "inhomogeneous" in text or "sequence" in text:
        return ValueError(
            "Expected a rectangular array of numbers, got elements of different shapes instead."
        )
    return ValueError(_NOT_NUMERIC.format("what was given"))


def float_block(block: NDArray[Any], name: str) -> Floats:
    """Return numbers as contiguous float64, uncopied if they are; they must be finite."""
    # contiguous: of strided data NumPy may compute a logarithm by other code, with another last bit
    values: Floats = np.ascontiguousarray(block, dtype=np.float64)
    if block.dtype.kind == "f" and not np.isfinite(values).all():
        if np.isnan(values).any():
            raise ValueError(f"Input {name} contains NaN.")
        raise ValueError(_TOO_LARGE.format(name))
    return values


def check_numbers(data: Any, name: str, *, allow_2d: bool, private_n: bool) -> Floats:
    """Return real, finite numbers as a float64 array."""
    return float_block(as_numbers(data, name, allow_2d=allow_2d, private_n=private_n), name)


def as_vector(data: ArrayLike, name: str, *, private_n: bool = False) -> NDArray[Any]:
    """Return one number per record as an array of shape (n_samples,).

    A column vector of shape (n_samples, 1) is flattened. With a private n, no record at all is legal.
    """
    array = as_numbers(data, name, allow_2d=True, private_n=private_n)
    if array.ndim == 2:
        if array.shape[1] != 1:
            raise ValueError(f"{name} should be a 1d array, got an array of several columns instead.")
        array = array[:, 0]
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

    Where neither of two empty arrays tells the number of outputs, it is `columns`.
    """
    true = as_numbers(y_true, "y_true", allow_2d=True, private_n=private_n)
    pred = as_numbers(y_pred, "y_pred", allow_2d=True, private_n=private_n)
    check_same_length(true, pred, private_n=private_n)
    true, pred = _in_columns(true, pred, columns)
    true, pred = (a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in (true, pred))
    outputs = [1 if a.ndim == 1 else a.shape[1] for a in (true, pred)]
    if outputs[0] != outputs[1]:
        # with rows for columns by mistake, the numbers would tell how many records there are
        numbers_of = "" if private_n else f" ({outputs[0]}!={outputs[1]})"
        raise ValueError(f"y_true and y_pred have different number of output{numbers_of}")
    return true, pred


def _in_columns(
    true: NDArray[Any], pred: NDArray[Any], columns: int = 1
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the arrays; empty ones, such as lists, in as many columns as the other or the caller tells."""
    if len(true) or len(pred):
        return true, pred
    told = [array.shape[1] for array in (true, pred) if array.ndim == 2]
    columns = max([columns, *told])
    shape = (0, columns) if columns > 1 or told else (0,)
    return tuple(array.reshape(shape) if array.ndim == 1 else array for array in (true, pred))  # type: ignore[return-value]


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
    dtype = getattr(y_proba, "dtype", None)
    if dtype is None and len(kinds := set(getattr(y_proba, "dtypes", ()))) == 1:
        (dtype,) = kinds  # of a data frame
    known = isinstance(dtype, np.dtype) and dtype in (np.float16, np.float32, np.float64)
    resolution = float(np.finfo(dtype if known else np.float64).eps)
    array = _numbers_or(
        f"y_proba should hold probabilities, {_NO_LABELS}.",
        partial(as_numbers, y_proba, "y_proba", allow_2d=True, private_n=private_n),
    )
    if array.ndim == 1:
        told = array.size or hasattr(y_proba, "shape")
        array = array[:, np.newaxis] if told else array.reshape(0, columns)
    return array, resolution


def probability_block(block: NDArray[Any]) -> Floats:
    """Return probabilities as float64; they must lie in [0, 1]."""
    values = float_block(block, "y_proba")
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"y_proba should contain values in [0, 1] only: probabilities, {_NO_LABELS}.")
    return values


def public_labels(labels: Any) -> NDArray[Any] | None:
    """Return the sorted public label set, or None where it is to follow from the number of columns."""
    if labels is None:
        return None
    refuse_masked(labels)
    if isinstance(labels, str | bytes) or (
        not isinstance(labels, Sequence | np.ndarray) and not hasattr(labels, "__array__")
    ):
        raise ValueError("labels must be None or a 1d array of the public labels.")
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "biufUO":
        raise ValueError("labels must be None or a 1d array of the public labels.")
    try:
        array = np.unique(array)
    except (TypeError, ArithmeticError):  # a signaling NaN of Decimal cannot be compared
        raise ValueError("labels must be of one type, so that they can be sorted.") from None
    if array.size < 2:
        raise ValueError("The labels array needs to contain at least two labels for log_loss.")
    if array.dtype.kind in "iu" and max(abs(int(array[0])), abs(int(array[-1]))) >= _EXACT_AS_FLOATS:
        return array.astype(object)  # as floats, two of them could be one
    return array


def check_labels(labels: NDArray[Any] | None, n_columns: int) -> NDArray[Any]:
    """Return the label set of `public_labels`, which must fit the number of probability columns.

    None stands for {0, 1} with one column and for 0..K-1 with K columns: never for what y_true holds.
    """
    expected = max(n_columns, 2)
    if labels is None:
        return np.arange(expected)
    if labels.size != expected:
        raise ValueError(
            "The number of classes in labels is different from that in y_proba. "
            f"Classes found in labels: {labels.size}, columns of y_proba: {n_columns}."
        )
    return labels


def _one_column(array: NDArray[Any], private_n: bool) -> NDArray[Any]:
    """Flatten a column vector, and refuse an array without columns or, where n is public, without rows."""
    if array.shape[0] == 0 and not private_n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def as_labels(y_true: ArrayLike, labels: NDArray[Any], *, private_n: bool = False) -> NDArray[Any]:
    """Return each record's label, which should be one of the label set, as an array of shape (n_samples,)."""
    if labels.dtype.kind in "biuf":
        return _numbers_or(
            "y_true holds labels that are no numbers: pass labels=[...], the public label set.",
            partial(as_vector, y_true, "y_true", private_n=private_n),
        )
    y = _as_any_labels(y_true, "y_true", private_n)
    if y.ndim != 1:
        raise ValueError("y_true should be a 1d array, got an array of several columns instead.")
    return y


def _numbers_or(message: str, read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return what is read, or raise with this message if there are no numbers to be read."""
    try:
        return read()
    except ValueError as error:
        failure = error
    if str(failure).startswith(_NOT_NUMERIC[:15]):
        failure = ValueError(message)
    raise failure


def encoded_block(block: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return each record's position in the sorted label set."""
    if labels.dtype.kind in "biuf":
        y = float_block(block, "y_true")
        known = labels.astype(np.float64)
        codes = np.minimum(np.searchsorted(known, y), known.size - 1)
        found = known[codes] == y
    else:
        lookup = {label: position for position, label in enumerate(labels.tolist())}

        def position(value: Any) -> int:
            try:
                return lookup.get(value, -1)
            except TypeError:  # not hashable, so no label
                return -1

        codes = np.fromiter(map(position, block.astype(object)), dtype=np.intp, count=block.size)
        found = codes >= 0
    if not found.all():
        raise ValueError("y_true contains a label that is not in labels.")
    return codes


def as_label_pairs(y_true: Any, y_pred: Any, *, private_n: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return true and predicted labels of any type as arrays of one shape, with one or two dimensions."""
    for data in (y_true, y_pred):
        if issparse(data):
            raise TypeError("Sparse data was passed, but dense data is required.")
    true, pred = _as_any_labels(y_true, "y_true", private_n), _as_any_labels(y_pred, "y_pred", private_n)
    check_same_length(true, pred, private_n=private_n)
    true, pred = _in_columns(true, pred)
    if true.shape[1:] != pred.shape[1:]:
        raise ValueError("Classification metrics can't handle a mix of targets with one and several outputs.")
    return true, pred


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
    except (TypeError, ValueError, ArithmeticError):
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
        if len(kinds := set(map(type, labels))) > 1:
            return np.array([isinstance(label, str) for label in labels]).reshape(array.shape)
        return np.full(array.shape, any(issubclass(kind, str) for kind in kinds))
    return np.full(array.shape, array.dtype.kind == "U")


def _as_any_labels(data: Any, name: str, private_n: bool) -> NDArray[Any]:
    """Return labels of any type as an array of one or two dimensions, uncopied if they are in one.

    What is not in one goes into an array of objects, so that one record's type cannot change how another is
    read.
    """
    refuse_masked(data)
    array: NDArray[Any] | None = None
    if hasattr(data, "dtype"):
        array = np.asarray(data)
    if array is None or array.dtype.kind not in "biufU" or array.ndim not in (1, 2):
        array = np.asarray(data, dtype=object)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} should be a 1d array, got a {array.ndim}d array instead.")
    return _one_column(array, private_n)


def _check_labels_of_block(block: NDArray[Any], name: str) -> None:
    if block.dtype.kind == "f":
        values = float_block(block, name)
        if (values != np.floor(values)).any():
            raise ValueError(_CONTINUOUS.format(name))
    elif block.dtype.kind == "O":
        _check_label_objects(block, name)


def _check_label_objects(array: NDArray[Any], name: str) -> None:
    labels = array.ravel().tolist()
    if set(map(type, labels)) <= {str, int, bool}:  # the usual case, at once
        return
    for label in labels:
        if isinstance(label, float | np.floating):
            if math.isnan(label):
                raise ValueError(f"Input {name} contains NaN.")
            if math.isinf(label):
                raise ValueError(_TOO_LARGE.format(name))
            if not label.is_integer():
                raise ValueError(_CONTINUOUS.format(name))
        elif isinstance(label, Decimal) and label.is_nan():  # a signaling one cannot even be compared
            raise ValueError(f"Input {name} contains NaN.")
        elif isinstance(label, complex | np.complexfloating):
            raise ValueError("Complex data not supported")
        elif isinstance(label, list | tuple | set | dict | np.ndarray):
            raise ValueError(
                f"{name} should hold one label per record, or an array of one column per output."
            )
