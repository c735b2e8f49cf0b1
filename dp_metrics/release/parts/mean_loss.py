"""A mean of losses, or a sum over records: the part of a plan, and what is known of the records."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import Entropy
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.floats import MAX_FLOAT, Floats, limit_of
from dp_metrics.inputs.losses import RecordLoss, clamp
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Hazard, Mechanism
from dp_metrics.mechanisms._base import NEEDS_LIMIT, BoundsDraw, Draw, KnownNumber
from dp_metrics.mechanisms.hazard import HazardLaw, hazard_law
from dp_metrics.release.noise import CountsNoise, VectorDraw
from dp_metrics.release.parts.ranking_loss import OrderOf
from dp_metrics.release.plan import BoundsPart, KnownAggregate, KnownCounts, KnownRecords, Part
from dp_metrics.sensitivity.aggregates import LossAggregate, WeightedLossAggregate
from dp_metrics.sensitivity.exact import (
    BLOCK,
    UNIT_BITS,
    exact_sum,
    in_blocks,
    level_units,
    rounded_quotient,
)
from dp_metrics.sensitivity.extremes import Extremes, SumsBelow, loss_extremes, sums_below_level
from dp_metrics.sensitivity.noisy_sums import Sums, mean_spread, mean_sums
from dp_metrics.sensitivity.output_bounds import (
    BoundsFacts,
    OutputBounds,
    calibration_bounds,
    calibration_bounds_private_n,
    calibration_facts,
    calibration_sums,
    mean_loss_bounds,
    mean_loss_bounds_private_n,
    mean_loss_facts,
    weighted_loss_bounds,
)


@dataclass(frozen=True, eq=False)
class MeanOf(BoundsPart):
    """Public: the mean of a loss of each record, as a part of a plan.

    Parameters
    ----------
    record_loss : RecordLoss
        The loss of blocks of the records.
    column : int or None, default=None
        The output that it is the loss of; None: of all of them.
    """

    record_loss: RecordLoss
    column: int | None = None

    has_extremes = True
    has_sums = True

    @property
    def highest(self) -> float:
        """Public limit of the plain mean."""
        return limit_of(self.record_loss.cap)

    @property
    def may_be_heavy(self) -> bool:
        """Whether a few records may make up much of the mean."""
        return self.record_loss.may_be_heavy

    def is_monotonic(self, relation: Relation) -> bool:
        """Return whether all bounds move in one direction."""
        return not relation.private_n

    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds of the plain mean."""
        return mean_loss_facts(n, self.record_loss.cap, ranks, steps=n if self.record_loss.is_count else None)

    def known(self, records: Records) -> "MeanLoss":
        """Return the records, which are read in blocks."""
        place = ... if self.column is None else (slice(None), self.column)
        arrays = tuple([array[place] for array in records.arrays])
        return MeanLoss(self, arrays, PublicWeights.of(records))


@dataclass(frozen=True, eq=False)
class PublicWeights:
    """Public: the weights and the groups of n records.

    Parameters
    ----------
    n : int
        Number of records.
    sample_weight : ndarray or None, default=None
        The weight of each.
    groups : ndarray or None, default=None
        Number of each record's group; all records of a group change together.
    """

    n: int
    sample_weight: Floats | None = None
    groups: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, records: Records) -> Self:
        """Return those of records whose form is valid."""
        return cls(len(records.arrays[0]), records.sample_weight, records.groups)  # type: ignore[arg-type]

    @property
    def are_plain(self) -> bool:
        """Whether each record counts alike, and is a group of its own."""
        return self.sample_weight is None and self.groups is None

    @property
    def size(self) -> int:
        """Number of groups that change together."""
        return self.n if self.groups is None else int(self.groups.max()) + 1

    @cached_property
    def total(self) -> int:
        """The total weight, in units of 2**-1074."""
        return self.n << UNIT_BITS if self.sample_weight is None else exact_sum(self.sample_weight)

    def terms(self, losses: Floats) -> Floats:
        """Return what is summed: the weighted losses, or their sums over groups."""
        terms = losses if self.sample_weight is None else _product(self.sample_weight, losses)
        return terms if self.groups is None else _group_sums(terms, self.groups)

    def limits(self, cap: float | None) -> Floats | None:
        """Return the public limit of each term, if losses are capped."""
        return None if cap is None else self.terms(np.full(self.n, cap))


@dataclass(frozen=True, repr=False, eq=False)
class MeanLoss(KnownRecords):
    """Private: the records whose mean loss is released.

    Parameters
    ----------
    part : MeanOf
        What is released.
    records : tuple of ndarray
        Arrays of one length.
    weights : PublicWeights
        Their weights and groups.
    """

    part: MeanOf
    records: tuple[NDArray[Any], ...]
    weights: PublicWeights

    @property
    def n(self) -> int:
        """Number of records."""
        return self.weights.n

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        return self.weights.size

    @property
    def has_spread(self) -> bool:  # type: ignore[override]
        """Whether it is a plain mean of capped losses, and no count."""
        return self.weights.are_plain and self.part.facts(1, 0).has_spread

    @property
    def total_weight(self) -> float:  # type: ignore[override]
        """What turns the mean into the sum: the public total weight, or the public n."""
        return rounded_quotient(self.weights.total, 1 << UNIT_BITS)

    @property
    def highest(self) -> float:
        """Public limit of the mean."""
        if self.weights.are_plain or self._limits is None:
            return self.part.highest
        return rounded_quotient(exact_sum(self._limits), self.weights.total)

    def aggregate(self, capacity: int, *, forget: bool = False) -> "AggregatedLoss":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks.

        With `forget` the records are not looked at again.
        """
        aggregate: LossAggregate | WeightedLossAggregate
        with np.errstate(all="ignore"):  # a loss that overflows is clipped; a warning would tell of it
            cap = self.part.record_loss.cap
            if self.weights.are_plain:
                aggregate = LossAggregate.from_blocks(
                    self._losses(), capacity=capacity, cap=cap, by_level=forget
                )
            else:
                aggregate = WeightedLossAggregate.from_blocks(
                    self._terms(),
                    weight=self.weights.total,
                    bounded=cap is not None,
                    capacity=capacity,
                    by_level=forget,
                )
        return AggregatedLoss(self.part, aggregate, None if forget else self._sums_below)

    def summary(self, capacity: int) -> "AggregatedLoss":
        """Return what a release needs to know of the records, which are not looked at again."""
        return self.aggregate(capacity, forget=True)

    def _sums_below(self, number: int) -> tuple[int, int]:
        """Return the sum of the losses, or terms, below a public level, and how many are not."""
        level = rounded_quotient(level_units(number), 1 << UNIT_BITS)
        total = others = 0
        for block in self._all_terms():
            below = block[block < level]
            total += exact_sum(below)
            others += block.size - below.size
        return total, others

    def _losses(self) -> Iterator[Floats]:
        """Yield blocks of losses, not yet clipped."""
        rows = max(BLOCK // max([math.prod(a.shape[1:]) for a in self.records]), 1)
        for blocks in zip(*[in_blocks(a, rows) for a in self.records], strict=True):
            yield self.part.record_loss(*blocks)

    def _terms(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Yield blocks of the weighted losses, or of their sums over groups, and of the limits of these."""
        limits, cap = self._limits, self.part.record_loss.cap
        losses = np.concatenate([np.empty(0), *(clamp(block, cap) for block in self._losses())])
        terms = self.weights.terms(losses)
        for start in range(0, terms.size, BLOCK):
            end = start + BLOCK
            yield terms[start:end], None if limits is None else limits[start:end]

    def _all_terms(self) -> Iterator[Floats]:
        """Yield blocks of what is summed, clipped."""
        if self.weights.are_plain:
            return (clamp(block, self.part.record_loss.cap) for block in self._losses())
        return (terms for terms, _ in self._terms())

    @cached_property
    def _limits(self) -> Floats | None:
        return self.weights.limits(self.part.record_loss.cap)


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedLoss(KnownAggregate):
    """Private: an aggregate of the losses.

    Parameters
    ----------
    part : MeanOf
        What is released.
    aggregate : LossAggregate or WeightedLossAggregate
        Sums and extremes of the records.
    sums_below : callable or None, default=None
        What else is known of all records; None: what the aggregate knows by level.
    """

    part: MeanOf
    aggregate: LossAggregate | WeightedLossAggregate
    sums_below: SumsBelow | None = None

    @property
    def has_spread(self) -> bool:  # type: ignore[override]
        """Whether it is a plain mean of capped losses, and no count."""
        return isinstance(self.aggregate, LossAggregate) and self.part.facts(1, 0).has_spread

    def spread(self) -> Fraction:
        """Return the mean of v (1 - v) over the records, for v = loss / cap."""
        assert isinstance(self.aggregate, LossAggregate)
        return mean_spread(self.aggregate)

    @property
    def total_weight(self) -> float:  # type: ignore[override]
        """What turns the mean into the sum."""
        return rounded_quotient(self.aggregate.weight, 1 << UNIT_BITS)

    @property
    def highest(self) -> float:
        """Public limit of the mean."""
        return self.aggregate.limit

    def sums(self) -> Sums:
        """Return the sums of the losses and of what is left to the cap."""
        if isinstance(self.aggregate, WeightedLossAggregate) or self.aggregate.cap is None:
            raise ValueError(NEEDS_LIMIT.format("geometric"))
        return mean_sums(self.aggregate, is_count=self.part.record_loss.is_count)

    def has_extremes(self, relation: Relation) -> bool:
        """Return True: they are the largest losses."""
        return True

    def extremes(self, count: int, ranks: int, relation: Relation) -> Extremes:
        """Return the largest losses, or terms."""
        assert self.sums_below is not None or self.aggregate.by_level is not None
        sums_below = self.sums_below or partial(sums_below_level, self.aggregate)
        return loss_extremes(self.aggregate, count, sums_below, relation=relation)

    def _bounds(self, ranks: int, relation: Relation) -> OutputBounds:
        known = self.aggregate.truncate(ranks)
        if isinstance(known, WeightedLossAggregate):
            return weighted_loss_bounds(known)
        if relation.private_n:
            return mean_loss_bounds_private_n(known)
        return mean_loss_bounds(known, steps=self.n if self.part.record_loss.is_count else None)


def _product(weights: Floats, values: Floats) -> Floats:
    """Return the rounded products, one record each, at most the largest float."""
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(weights * values, MAX_FLOAT)


def _group_sums(terms: Floats, groups: NDArray[np.intp]) -> Floats:
    """Return the correctly rounded sum of each group's non-negative terms.

    `math.fsum` rounds once whatever the order, so a group's sum is a function of its own records alone, and
    never exceeds the sum of their limits.
    """
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups)).tolist()
    in_order = terms[order].tolist()

    def sums() -> Iterator[float]:
        start = 0
        for end in ends:
            yield _saturated_sum(in_order[start:end])
            start = end

    return np.fromiter(sums(), dtype=np.float64, count=len(ends))


def _saturated_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return MAX_FLOAT


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
