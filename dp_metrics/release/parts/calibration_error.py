"""An expected calibration error: the part of a plan, and what is known of the records."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms._base import KnownNumber
from dp_metrics.release.parts.part import BoundsPart
from dp_metrics.sensitivity.calibration_bounds import (
    calibration_bounds,
    calibration_bounds_private_n,
    calibration_facts,
    calibration_sums,
)
from dp_metrics.sensitivity.noisy_sums import Sums
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

_MOST_RANKS = 4096  # a rank costs a quotient of long integers


@dataclass(frozen=True, eq=False)
class CalibrationOf(BoundsPart):
    """Public: the expected calibration error, as a part of a plan.

    Parameters
    ----------
    excess : callable
        The sums of labels minus scores by bin, and the number of records, of `Records` whose form is valid.
    """

    excess: Callable[[Records], tuple[tuple[int, ...], int]]

    has_sums = True
    highest = 1.0

    def is_monotonic(self, relation: Relation) -> bool:
        """Return whether all bounds move in one direction."""
        return not relation.private_n

    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return calibration_facts(n)

    def known(self, records: Records) -> "CalibrationError":
        """Return the sums."""
        return CalibrationError(self, *self.excess(records))


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationError(KnownNumber):
    """Private: the sums that tell the calibration error.

    Parameters
    ----------
    part : CalibrationOf
        What is released.
    excess : tuple of int
        For each public bin the sum of labels minus scores, in units of 2**-1074.
    records : int
        Number of records.
    """

    part: CalibrationOf
    excess: tuple[int, ...]
    records: int

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records

    @property
    def total(self) -> int:
        """The error times n, in units of 2**-1074."""
        return sum(map(abs, self.excess))

    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds of the error."""
        bounds = calibration_bounds_private_n if relation.private_n else calibration_bounds
        return bounds(self.total, self.n, min(ranks, _MOST_RANKS))

    def sums(self) -> Sums:
        """Return the sums that tell the error."""
        return calibration_sums(self.total, self.n)

    def summary(self, capacity: int) -> Self:
        """Return what a release needs to know of the records, whatever the capacity."""
        return self

    def merge(self, other: Self) -> Self:
        """Return what is known of the records of both."""
        excess = tuple(a + b for a, b in zip(self.excess, other.excess, strict=True))
        return replace(self, excess=excess, records=self.n + other.n)
