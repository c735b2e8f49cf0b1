"""Checkers of the public options of a call: weights, groups, outputs and neighbouring relation."""

import contextlib
import math
import numbers
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from dp_metrics._validation import check_numbers, check_vector

__all__ = [
    "NO_WEIGHT",
    "check_ddof",
    "check_groups",
    "check_multioutput",
    "check_neighboring",
    "check_sample_weight",
    "check_share",
    "symmetric_mechanism",
]

Floats = NDArray[np.float64]

NO_WEIGHT = "Sample weights must contain at least one non-zero number."
_RELATIONS = ("replace_one", "add_or_remove_one")
_AVERAGES = ("raw_values", "uniform_average")


def check_neighboring(neighboring: Any, **revealing: Any) -> bool:
    """Return whether the number of records is private.

    Parameters
    ----------
    neighboring : {"replace_one", "add_or_remove_one"}
        The neighbouring relation.
    **revealing : object
        Options that would give a private number of records away, by name; None where not used.
    """
    if not (isinstance(neighboring, str) and neighboring in _RELATIONS):
        raise ValueError(f"neighboring must be one of {_RELATIONS}.")
    if neighboring == "replace_one":
        return False
    used = [name for name, value in revealing.items() if value is not None]
    if used:
        raise ValueError(
            f"{' and '.join(used)} cannot be used with neighboring='add_or_remove_one', which keeps the "
            "number of records private: it would be given away."
        )
    return True


def check_sample_weight(
    sample_weight: ArrayLike | None, *data: NDArray[Any], whole: bool = True
) -> Floats | None:
    """Return public weights, one finite, non-negative number per record of the data.

    If these are all records, the whole data, one weight at least must be positive.
    """
    if sample_weight is None:
        return None
    weights = check_numbers(sample_weight, "sample_weight", allow_2d=True, private_n=not whole)
    if weights.ndim == 2 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    check_consistent_length(*data, weights)
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if whole and not weights.any():
        raise ValueError(NO_WEIGHT)
    return weights


def check_groups(groups: ArrayLike | None, *data: NDArray[Any]) -> NDArray[np.intp] | None:
    """Return the number of each record's public group, counted from 0."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError("groups should be a 1d array, one label per record.")
    check_consistent_length(*data, labels)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("Input groups contains NaN.")
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    numbers_of: dict[Any, int] = {}
    try:
        codes = [numbers_of.setdefault(label, len(numbers_of)) for label in labels]
    except TypeError:
        raise ValueError("groups must be hashable labels.") from None
    return np.array(codes, dtype=np.intp)


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
    scaled: Floats = weights / weights.max()  # so that their sum cannot overflow
    return scaled


def check_ddof(ddof: Any) -> float:
    """Return the delta degrees of freedom."""
    value = math.nan
    if isinstance(ddof, numbers.Real) and not isinstance(ddof, bool | np.bool_):
        with contextlib.suppress(OverflowError):
            value = float(ddof)
    if not math.isfinite(value):
        raise ValueError("ddof must be a finite number.")
    return value


def check_share(share: Any, name: str) -> Fraction:
    """Return a share strictly between 0 and 1 as the decimal that people typed."""
    value = float(share) if isinstance(share, numbers.Real) else math.nan
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1.")
    return share if isinstance(share, Fraction) else Fraction(repr(value))


def symmetric_mechanism(mechanism: Any, neighboring: Any) -> Any:
    """Return the mechanism, or for None the best where both ends of the output range are alike.

    On a share of n records the geometric mechanism is 1.2 to 20 times as accurate as hazard, which is made
    for metrics that matter relative to their size; but it needs a public number of records.
    """
    if mechanism is not None:
        return mechanism
    return "hazard" if neighboring == "add_or_remove_one" else "geometric"
