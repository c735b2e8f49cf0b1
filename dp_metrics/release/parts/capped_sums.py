"""Sums over records that are clipped to a cap, which is bought first: the part of a plan, and its draw."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dp_metrics._random import Entropy
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Hazard, Mechanism
from dp_metrics.mechanisms._base import BoundsDraw, Draw
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.mechanisms.hazard import hazard_law
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.parts.order_statistic import OrderOf
from dp_metrics.release.parts.part import KnownCounts, Part

OF_SUMS = Fraction(2, 3)
"""Part of epsilon that the sums cost; the rest buys the cap."""
_SELECTION = Hazard(resolution=0.4)  # as fine as that of the scale in `Adaptive`

_LARGEST = 1.79e308  # float of three digits


def cap_of(drawn: float) -> float:
    """Return the cap for what was drawn: three digits of it, so that what is said of it is all of it.

    It is positive and finite whatever was drawn, so that numbers can be given in units of it.
    """
    return min(max(float(f"{drawn:.3g}"), math.ulp(0.0)), _LARGEST)


@dataclass(frozen=True, eq=False)
class CappedSumsOf(Part):
    """Public: an order statistic that becomes a cap, and sums of what is clipped to it, as a part of a plan.

    Parameters
    ----------
    order : OrderOf
        The order statistic.
    sums : callable
        The whole numbers of (records, limit=cap).
    sensitivity : int
        As in `IntegerVector`, whatever the cap is.
    least_records : int
        The n * epsilon below which the cap is expected to be useless.
    """

    order: OrderOf
    sums: Callable[..., tuple[int, ...]]
    sensitivity: int
    least_records: int

    merges = False

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if so few records are expected to have no useful cap."""
        times_epsilon = records * draw.epsilon
        if times_epsilon >= self.least_records:
            return None
        return (
            f"n * epsilon is {float(times_epsilon):.3g}. Below {self.least_records} a private cap may come "
            "out far too low, and the mean with it: give a public cap, or take more records or a larger "
            "epsilon."
        )

    def known(self, records: Records) -> "CappedSums":
        """Return the records."""
        return CappedSums(self, records)


@dataclass(frozen=True, repr=False, eq=False)
class CappedSums(KnownCounts):
    """Private: the records."""

    part: CappedSumsOf
    records: Records

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of records."""
        return len(self.records.arrays[0])

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> "CappedDraw":
        """Return a draw of the cap and of noise, whatever the mechanism."""
        of_cap = epsilon - OF_SUMS * epsilon
        if float(of_cap) == 0.0:
            raise ValueError("epsilon is too small to be divided between the cap and the mean.")
        bounds = self.part.order.known(self.records).output_bounds(_SELECTION, of_cap, relation=relation)
        return CappedDraw(BoundsDraw(bounds, _SELECTION, of_cap, False), self.records, self.part, epsilon)


@dataclass(frozen=True, repr=False, eq=False)
class CappedDraw(Draw):
    """A cap by hazard selection, and then sums of the clipped records with two-sided geometric noise.

    Parameters
    ----------
    of_cap : BoundsDraw
        What draws the cap, at a third of epsilon.
    records : Records
        Private.
    part : CappedSumsOf
        What is released.
    epsilon : Fraction
        What both cost together.

    Notes
    -----
    **Privacy.** The cap is an order statistic, released by `Hazard`. It is public from there on. Whatever it
    is, the sums of neighbours differ by the stated sensitivity at most, so that they are released at the rest
    of epsilon. Both add up by basic composition; the shares are fractions whose sum is epsilon.
    """

    of_cap: BoundsDraw
    records: Records
    part: CappedSumsOf
    epsilon: Fraction

    @property
    def drawn_by(self) -> str:
        """What draws, for the accountant's history."""
        return f"{self.of_cap.drawn_by}, two-sided geometric noise"

    @property
    def mechanism(self) -> Mechanism:
        """What draws the cap."""
        return self.of_cap.mechanism

    def rehearse(self) -> None:
        """Make the law of a made-up cap."""
        self.of_cap.rehearse()

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Draw the cap and the sums, and the "cap" by its name."""
        drawn, _ = self.of_cap(entropy, None)
        sums, _ = self.given(drawn)(entropy, None)
        return (cap_of(drawn), *sums), {"cap": cap_of(drawn)}

    def noise(self, value: tuple[Any, ...], drawn: Mapping[str, Any], count: int | None) -> CountsNoise:
        """Return what is public about the noise of the sums."""
        return CountsNoise(value[1:], self._rates(len(value) - 1), False)

    @property
    def first(self) -> HazardLaw:
        """The law of what becomes the cap."""
        return hazard_law(_SELECTION, self.of_cap.output_bounds, self.of_cap.epsilon)

    def given(self, drawn: float) -> VectorDraw:
        """Return the draw of the sums, given what was drawn for the cap."""
        sums = self.part.sums(self.records, limit=cap_of(drawn))
        return VectorDraw(sums, self._rates(len(sums)))

    def _rates(self, numbers: int) -> tuple[tuple[int, Fraction], ...]:
        return ((numbers, OF_SUMS * self.epsilon / self.part.sensitivity),)
