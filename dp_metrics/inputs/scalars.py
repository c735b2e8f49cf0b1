"""Numbers among the options: what counts as a real one and as a whole one, for all checkers alike."""

import math
import numbers
from typing import Any

import numpy as np


def as_real(value: Any) -> float:
    """Return a real number as a float; NaN for anything else, booleans and too large numbers included."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_whole(value: Any) -> int | None:
    """Return a whole number as an int; None for anything else, booleans included."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if is_whole else None
