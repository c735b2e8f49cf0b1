"""Are validation records of the kind that training records are: a question to each record by itself.

The training records are public. A record that no model of them can predict, because it holds text where they
hold numbers, or because something is missing, is refused before anything is spent. The refusal reveals that
there is such a record, and no more.
"""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dp_metrics.inputs.arrays import is_missing

_MISSING, _TOO_LARGE = "missing", "too large"
_ODD = {_MISSING, _TOO_LARGE}
_LARGEST = float(np.finfo(np.float32).max)  # trees of scikit-learn refuse to predict for larger numbers
_KINDS = {
    "b": "number",
    "i": "number",
    "u": "number",
    "f": "number",
    "c": "complex number",
    "U": "text",
    "S": "bytes",
}


def check_records(X: Any, X_val: Any, *, allow_nan: bool) -> None:
    """Check that each validation record is of the kind of the training records.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Training records, at least one; public.
    X_val : array-like of shape (n_validation, ...)
        Validation records.
    allow_nan : bool
        Whether missing values are allowed even if X has none.

    Raises
    ------
    ValueError
        If the columns differ, or a record holds what X holds nowhere in that column: text, numbers, other
        objects; or something missing, or infinite or beyond 3.4e38, though nothing is in X.
    """
    known, new = _as_table(X), _as_table(X_val)
    if new.shape != (0,):  # a list of no records has no columns
        _check_shapes(known.shape[1:], new.shape[1:])
    if hasattr(X, "columns") and hasattr(X_val, "columns") and list(X.columns) != list(X_val.columns):
        raise ValueError("The feature names of X_val should match those of X, in the same order.")
    allowed, given = (list(map(_held, _columns(table))) for table in (known, new))
    odd = set().union(*given) - set().union(*allowed)
    width = max(len(allowed), len(given))
    pairs = zip(*(held * width if len(held) == 1 else held for held in (allowed, given)), strict=True)
    if any(there - _ODD and not here - _ODD <= there for there, here in pairs):
        raise ValueError("X_val should hold what X holds in the same column: numbers, text or other objects.")
    if _MISSING in odd and not allow_nan:
        raise ValueError(
            "Input X_val contains NaN or something else that is missing, and X does not: drop such records, "
            "or fill them in, before you split the data."
        )
    if _TOO_LARGE in odd:
        raise ValueError(
            "Input X_val contains infinity or a value too large for dtype('float32'), and X does not."
        )


def _check_shapes(known: tuple[int, ...], new: tuple[int, ...]) -> None:
    if len(known) == len(new) == 1 and known != new:
        raise ValueError(f"X_val has {new[0]} features, but X has {known[0]} features.")
    if known != new:
        raise ValueError("The records of X_val should have the shape of those of X.")


def _as_table(records: Any) -> Any:
    """Return records as a data frame, a sparse matrix or an array; of a list, each element as it is."""
    if issparse(records):
        return records.tocsr()
    if hasattr(records, "columns") or hasattr(records, "dtype"):
        return records if hasattr(records, "columns") else np.asarray(records)
    try:
        array = np.asarray(records)
        if array.dtype.kind in "biuf":
            return array
        array = np.asarray(records, dtype=object)  # one string would make all other elements strings
    except Exception:  # records of several shapes, or an object that raises what it likes
        array = np.empty(len(records), dtype=object)
        for i, record in enumerate(records):
            array[i] = record
    return array


def _columns(table: Any) -> list[NDArray[Any]]:
    """Return columns that may be of several kinds, or everything at once."""
    if issparse(table):
        return [table.data]
    if hasattr(table, "iloc"):
        return [table.iloc[:, column].to_numpy() for column in range(table.shape[1])]
    if hasattr(table, "columns"):
        return [table[column].to_numpy() for column in table.columns]
    return list(table.T) if table.ndim == 2 and table.dtype.kind == "O" else [table]


def _held(column: NDArray[Any]) -> set[str]:
    """Return the kinds of what a column holds, and whether something is missing or too large."""
    kind = column.dtype.kind
    if kind == "O":
        elements = column.ravel().tolist()
        large = {_TOO_LARGE for element in elements if _is_too_large(element)}
        return {*map(_kind, elements)} | large
    held = {_KINDS.get(kind, kind)}
    if kind in "fcmM":
        held |= {_MISSING} if np.isnan(column).any() else set()
        are_large = np.abs(column) > _LARGEST if kind == "f" else np.isinf(column)
        held |= {_TOO_LARGE} if are_large.any() else set()
    return held


def _kind(element: Any) -> str:
    if isinstance(element, str):
        return "text"
    if is_missing(element):
        return _MISSING
    if isinstance(element, complex | np.complexfloating):
        return "complex number"
    return "number" if isinstance(element, numbers.Number | np.number | np.bool_) else type(element).__name__


def _is_too_large(element: Any) -> bool:
    """Return whether a number is infinite, or too large for a float of single precision."""
    if _kind(element) != "number":
        return False
    try:
        return abs(float(element)) > _LARGEST
    except OverflowError:  # an integer or a fraction
        return True
    except Exception:  # a number of somebody's own
        return False
