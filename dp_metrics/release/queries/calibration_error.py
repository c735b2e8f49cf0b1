"""The query of an expected calibration error."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.queries.query import BoundsQuery
from dp_metrics.sensitivity.calibration_bounds import (
    calibration_bounds,
    calibration_bounds_private_n,
    calibration_sums,
)
from dp_metrics.sensitivity.noisy_sums import Sums
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["CalibrationError"]

_MOST_RANKS = 4096  # a rank costs a quotient of long integers


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationError(BoundsQuery):
    """The expected calibration error of n records.

    Parameters
    ----------
    excess : tuple of int
        For each public bin the sum of labels minus scores, in units of 2**-1074.
    records : int
        Number of records.
    """

    excess: tuple[int, ...]
    records: int

    @property
    def total(self) -> int:
        """The error times n, in units of 2**-1074."""
        return sum(map(abs, self.excess))

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return what the mechanism sees."""
        n = None if private_n else self.n
        ranks = mechanism.count_ranks(epsilon, n=n, monotonic=not private_n, output_range=(0.0, 1.0))
        bounds = calibration_bounds_private_n if private_n else calibration_bounds
        return bounds(self.total, self.n, min(ranks, _MOST_RANKS))

    def sums(self) -> Sums:
        """Return the sums that tell the error."""
        return calibration_sums(self.total, self.n)

    def summary(self, capacity: int) -> Self:
        """Return what a release needs to know of the records, whatever the capacity."""
        return self

    def merge(self, other: Self) -> Self:
        """Return the query about the records of both."""
        excess = tuple(a + b for a, b in zip(self.excess, other.excess, strict=True))
        return type(self)(excess, self.records + other.records)
