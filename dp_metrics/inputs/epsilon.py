"""Epsilon: what may be one, and the exact number that it stands for."""

import math
import numbers
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from dp_metrics.inputs.scalars import as_real

Epsilon: TypeAlias = "float | Fraction"
"""A float stands for the decimal that people type; a share of it is an exact fraction."""


def check_epsilon(epsilon: Any) -> float:
    """Return epsilon as a float; it must be a finite, positive real number."""
    value = as_real(epsilon)
    if not (math.isfinite(value) and value > 0):
        raise ValueError("epsilon must be a positive, finite number.")
    return value


def exact_epsilon(epsilon: Epsilon) -> Fraction:
    """Return epsilon as the decimal number that people typed; a fraction stands for itself."""
    value = check_epsilon(epsilon)
    if isinstance(epsilon, numbers.Rational):
        return Fraction(int(epsilon.numerator), int(epsilon.denominator))
    return _decimal(value)


@lru_cache(maxsize=256)
def _decimal(value: float) -> Fraction:
    return Fraction(repr(value))
