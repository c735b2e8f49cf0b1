"""Order statistics, such as a median, and sums of records that are clipped at one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from dp_metrics._random import Entropy
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Floats
from dp_metrics.mechanisms import Hazard, Mechanism
from dp_metrics.mechanisms.hazard import HazardLaw, hazard_law
from dp_metrics.quantities.base import Draw, Noise, Number, OneStage, Output, Quantity, Totals
from dp_metrics.quantities.tables import CountsNoise, Rates, TableLaw
from dp_metrics.sensitivity.output_bounds import (
    BoundsFacts,
    OutputBounds,
    order_statistic_bounds,
    order_statistic_facts,
)

_RANK = "A median or another quantile needs a public number of records: its rank would tell a private one."


@dataclass(frozen=True, eq=False)
class OrderOf(Number):
    """Public: the k-th smallest of values that are at least 0; k counts from 1.

    Parameters
    ----------
    values : callable
        The values of checked arrays.
    rank : callable
        k of the public number of records.
    limit : float
        Public limit of the values, to which they are clipped.
    """

    values: Callable[..., Floats]
    rank: Callable[[int], int]
    limit: float

    merges = False

    def is_monotonic(self, private_n: bool) -> bool:
        """Return True."""
        return True

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds; raise where the number of records is private."""
        if totals is None:
            raise ValueError(_RANK)
        return order_statistic_facts(totals.n, self.limit)

    def stats(self, records: Records, totals: Totals, ranks: int, *, forget: bool = False) -> OrderStats:
        """Return the values, clipped."""
        return OrderStats(self, totals, np.clip(self.values(*records.arrays), 0.0, self.limit))


@dataclass(frozen=True, repr=False, eq=False)
class OrderStats:
    """Private: the values; where the k-th of all lies, those of pieces do not tell, so they do not merge."""

    quantity: OrderOf
    totals: Totals
    x: Floats

    def bounds(self, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds of the order statistic."""
        rank, limit = self.quantity.rank(self.x.size), self.quantity.limit
        return order_statistic_bounds(self.x, rank, ranks, limit)


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
class CappedSumsOf(Quantity):
    """Public: an order statistic that becomes a cap, and sums of what is clipped to it.

    Parameters
    ----------
    order : OrderOf
        The order statistic.
    sums : callable
        The whole numbers of (records, limit=cap).
    size, sensitivity : int
        As in `IntegersOf`, whatever the cap is.
    least_records : int
        The n * epsilon below which the cap is expected to be useless.
    """

    order: OrderOf
    sums: Callable[..., tuple[int, ...]]
    size: int
    sensitivity: int
    least_records: int

    merges = False

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> NoisyCap:
        """Return noise of the cap and of the sums, whatever the mechanism."""
        of_cap = epsilon - OF_SUMS * epsilon
        if float(of_cap) == 0.0:
            raise ValueError("epsilon is too small to be divided between the cap and the mean.")
        rates = ((self.size, OF_SUMS * epsilon / self.sensitivity),)
        return NoisyCap(
            OneStage(self.order, _SELECTION, totals, None, of_cap), rates, epsilon, self.least_records
        )

    def stats(self, records: Records, totals: Totals, ranks: int, *, forget: bool = False) -> CappedSumsStats:
        """Return the records."""
        return CappedSumsStats(self, totals, records)


@dataclass(frozen=True, repr=False, eq=False)
class CappedSumsStats:
    """Private: the records, whose sums wait for the cap."""

    quantity: CappedSumsOf
    totals: Totals
    records: Records


@dataclass(frozen=True, eq=False)
class NoisyCap(Noise):
    """A cap by hazard selection, and then sums of the clipped records with two-sided geometric noise.

    Parameters
    ----------
    of_cap : OneStage
        How the cap is drawn, at a third of epsilon.
    rates : tuple of (int, Fraction)
        Of the noise of the sums.
    epsilon : Fraction
        What both cost together.
    least_records : int
        As in `CappedSumsOf`.

    Notes
    -----
    **Privacy.** The cap is an order statistic, released by `Hazard`. It is public from there on. Whatever it
    is, the sums of neighbours differ by the stated sensitivity at most, so that they are released at the rest
    of epsilon. Both add up by basic composition; the shares are fractions whose sum is epsilon.
    """

    of_cap: OneStage
    rates: Rates
    epsilon: Fraction
    least_records: int

    @property
    def name(self) -> str:
        """What draws, for the accountant's history."""
        return f"{self.of_cap.name}, two-sided geometric noise"

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What draws the cap."""
        return self.of_cap.mechanisms

    def law(self, stats: CappedSumsStats, count: int | None = None) -> CappedSumsLaw:
        """Return the law of the cap and the sums."""
        order = self.of_cap.quantity
        bounds = self.of_cap.bounds(order.stats(stats.records, stats.totals, self.of_cap.ranks))
        first = hazard_law(_SELECTION, bounds, self.of_cap.epsilon)
        sums = partial(stats.quantity.sums, stats.records)
        return CappedSumsLaw(first, sums, self.rates, stats.records.arrays[0])

    def prepare(self, stats: CappedSumsStats) -> Draw:
        """Return the draw."""
        return partial(self._draw, self.law(stats))

    def _draw(self, law: CappedSumsLaw, entropy: Entropy, count: int | None) -> Output:
        cap, sums = law.release(entropy)
        return Output((cap, *sums), {"cap": cap}, count)

    def told(self, output: Output) -> CountsNoise:
        """Return the noisy sums with their noise."""
        return CountsNoise(output.value[1:], self.rates, False)

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if so few records are expected to have no useful cap."""
        times_epsilon = records * self.epsilon
        if times_epsilon >= self.least_records:
            return None
        return (
            f"n * epsilon is {float(times_epsilon):.3g}. Below {self.least_records} a private cap may come "
            "out far too low, and the mean with it: give a public cap, or take more records or a larger "
            "epsilon."
        )


@dataclass(frozen=True, repr=False, eq=False)
class CappedSumsLaw:
    """The law of a cap, and of noisy sums of what is clipped to it: private.

    Parameters
    ----------
    first : HazardLaw
        The law of what becomes the cap.
    sums : callable
        The whole numbers, of limit=cap.
    rates : tuple of (int, Fraction)
        Of their noise.
    values : ndarray
        What is clipped.
    """

    first: HazardLaw
    sums: Callable[..., tuple[int, ...]]
    rates: Rates
    values: Floats

    def given(self, drawn: float) -> TableLaw:
        """Return the law of the sums, given what was drawn for the cap."""
        return TableLaw(self.sums(limit=cap_of(drawn)), self.rates)

    def release(self, entropy: Entropy) -> tuple[float, list[int]]:
        """Draw the cap and the sums."""
        drawn = self.first.release(entropy)
        return cap_of(drawn), self.given(drawn).release(entropy)
