"""The query of an expected calibration error."""

from dataclasses import dataclass
from fractions import Fraction

from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.queries import BoundsQuery
from dp_metrics.sensitivity.calibration import (
    calibration_bounds,
    calibration_bounds_private_n,
    calibration_sums,
)
from dp_metrics.sensitivity.noisy_sums import Sums
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["CalibrationError"]

_MOST_RANKS = 4096  # each is a quotient of long integers


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationError(BoundsQuery):
    """The expected calibration error of n records.

    Parameters
    ----------
    total : int
        n times the error, in units of 2**-1074.
    records : int
        Number of records.
    """

    total: int
    records: int

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
