"""The numbers that everything is computed in."""

import operator
import sys
from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

MAX_FLOAT = sys.float_info.max
"""The largest finite float64: where sums saturate, and the public limit of a metric that has no other."""


def limit_of(cap: float | None) -> float:
    """Return a public cap, or the largest finite float without one."""
    return MAX_FLOAT if cap is None else float(cap)


def sum_in_order(values: Iterable[float]) -> float:
    """Return the sum, added from the left: `sum` rounds otherwise from Python 3.12 on."""
    return reduce(operator.add, values, 0.0)
