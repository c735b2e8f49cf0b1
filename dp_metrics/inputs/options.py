"""Checkers of the public options of a call: weights, groups, outputs and neighbouring relation."""

import contextlib
import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.containers import MISSING, array_of, exact, is_a, is_missing
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.names import did_you_mean
from dp_metrics.inputs.records import as_numbers, check_vector, flattened, float_block
from dp_metrics.inputs.scalars import as_real, as_whole

MultiOutput: TypeAlias = Literal["raw_values", "uniform_average"] | Sequence[float] | Floats
"""How several outputs make one number, or "raw_values" for a number each."""

NO_WEIGHT = "Sample weights must contain at least one non-zero number."
WITHIN_GROUPS = "replace_one_within_groups"
"""The relation that budgets record where each record stays in its public group."""

_MOST_DIGITS = 17
_MOST_RECORDS = 1 << 53
_RELATIONS = ("replace_one", "add_or_remove_one")
_AVERAGES = ("raw_values", "uniform_average")
_COMPARABLE = "biufcSUmM"  # kinds of arrays whose elements NumPy compares as Python does


def check_neighboring(neighboring: Any, disclosing: Sequence[str] = ()) -> bool:
    """Return whether the number of records is private.

    Parameters
    ----------
    neighboring : {"replace_one", "add_or_remove_one"}
        The neighbouring relation.
    disclosing : sequence of str
        Options of the call that would give a private number of records away.
    """
    if not (isinstance(neighboring, str) and neighboring in _RELATIONS):
        raise ValueError(f"neighboring must be one of {_RELATIONS}.{did_you_mean(neighboring, _RELATIONS)}")
    if neighboring == "replace_one":
        return False
    if disclosing:
        raise ValueError(
            f"{' and '.join(disclosing)} cannot be used with neighboring='add_or_remove_one': the "
            "number of records, which is private then, would be given away."
        )
    return True


def check_spend_name(spend_name: Any) -> str | None:
    """Return the name of a spend, or None for the name of the metric."""
    if spend_name is None or isinstance(spend_name, str):
        return spend_name
    raise TypeError("spend_name must be None or a string.")


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


def check_sample_weight(sample_weight: ArrayLike | None, *, whole: bool = True) -> Floats | None:
    """Return public weights, finite, non-negative numbers.

    If these are of all records, the whole data, one weight at least must be positive.
    """
    if sample_weight is None:
        return None
    given = as_numbers(sample_weight, "sample_weight", allow_2d=True, private_n=not whole)
    weights = flattened(float_block(given, "sample_weight"))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if whole and not weights.any():
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


def check_choice(value: Any, name: str, choices: Sequence[str | None]) -> None:
    """Raise unless the value is one of these strings, or None where that is among them."""
    if not ((value is None or isinstance(value, str)) and value in choices):
        known = [choice for choice in choices if choice is not None]
        raise ValueError(f"{name} must be one of {tuple(choices)}.{did_you_mean(value, known)}")


def check_average(average: Any, labels: int) -> None:
    """Raise unless this is a way to average over so many labels."""
    if isinstance(average, str) and average == "samples":
        raise ValueError("average='samples' is for several labels a record, which are not supported.")
    check_choice(average, "average", ("binary", "micro", "macro", "weighted", None))
    if average == "binary" and labels != 2:
        raise ValueError(
            "Target is multiclass but average='binary'. Please choose another average setting, one of "
            f"[None, 'micro', 'macro', 'weighted']: labels has {labels} of them."
        )


def check_zero_division(zero_division: Any, *, is_mean: bool) -> float:
    """Return what 0/0 becomes; NaN, to be left out, only if the result is a mean."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return 0.0  # scikit-learn does the same and warns, which would tell of the data
    value = as_real(zero_division)
    if isinstance(zero_division, float) and math.isnan(zero_division):
        if is_mean:
            return math.nan
        raise ValueError(
            "zero_division can be NaN only for average='macro' or 'weighted': a result is finite."
        )
    if value not in (0.0, 1.0):
        raise ValueError("zero_division must be 0, 1, 'warn' or NaN.")
    return value


def check_ddof(ddof: Any) -> float:
    """Return the delta degrees of freedom."""
    value = as_real(ddof)
    if not math.isfinite(value):
        raise ValueError("ddof must be a finite number.")
    return value


def check_digits(digits: Any) -> int:
    """Return the number of significant digits to print; a float64 has 17."""
    return check_count(digits, "digits", _MOST_DIGITS)


def check_edges(edges: Any) -> Floats | None:
    """Return the public edges of at least two bins, or None."""
    if edges is None:
        return None
    wrong = ValueError("edges must be None or at least three finite numbers in strictly increasing order.")
    if isinstance(edges, str | bytes):
        raise wrong
    try:
        found = np.asarray(edges, dtype=np.float64) + 0.0  # adding 0 leaves no negative zero
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    if found.ndim != 1 or found.size < 3 or not np.isfinite(found).all() or not (np.diff(found) > 0).all():
        raise wrong
    return found


def check_confidence(confidence: Any) -> float:
    """Return the confidence of an interval, strictly between 0 and 1."""
    number = as_real(confidence)
    if not 0 < number < 1:
        raise ValueError("confidence must lie strictly between 0 and 1.")
    return number


def check_count(number: Any, name: str, most: int) -> int:
    """Return a public number of things from 1 up to a limit."""
    count = as_whole(number)
    if count is None or not 1 <= count <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most}.")
    return count


def check_share(share: Any, name: str) -> Fraction:
    """Return a share strictly between 0 and 1 as the decimal that people typed."""
    value = as_real(share)
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1.")
    return share if isinstance(share, Fraction) else Fraction(repr(value))
