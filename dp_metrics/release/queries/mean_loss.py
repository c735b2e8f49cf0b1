"""The query of a mean loss."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats, limit_of
from dp_metrics.inputs.losses import RecordLoss, clamp
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import NEEDS_LIMIT
from dp_metrics.release.queries.query import AggregatedQuery, BoundsQuery, Needs
from dp_metrics.sensitivity.aggregates import LossAggregate, WeightedLossAggregate
from dp_metrics.sensitivity.exact import (
    BLOCK,
    UNIT_BITS,
    exact_sum,
    in_blocks,
    level_units,
    rounded_quotient,
)
from dp_metrics.sensitivity.extremes import SumsBelow, loss_extremes, sums_below_level
from dp_metrics.sensitivity.noisy_sums import Sums, mean_sums
from dp_metrics.sensitivity.output_bounds import (
    OutputBounds,
    mean_loss_bounds,
    mean_loss_bounds_private_n,
    weighted_loss_bounds,
)

__all__ = ["AggregatedLoss", "MeanLoss"]


@dataclass(frozen=True, repr=False, eq=False)
class MeanLoss(BoundsQuery):
    """The mean of a loss of each record.

    Parameters
    ----------
    record_loss : RecordLoss
        The loss of blocks of the records.
    records : tuple of ndarray
        Arrays of one length.
    sample_weight : ndarray or None
        Public weights.
    groups : ndarray or None
        Number of each record's public group; all records of a group change together.
    """

    record_loss: RecordLoss
    records: tuple[NDArray[Any], ...]
    sample_weight: Floats | None = None
    groups: NDArray[np.intp] | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.records[0])

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        return self.n if self.groups is None else int(self.groups.max()) + 1

    @property
    def total_weight(self) -> float:
        """What turns the mean into the sum: the public total weight, or the public n."""
        return rounded_quotient(self._weight, 1 << UNIT_BITS)

    @cached_property
    def _weight(self) -> int:
        return self.n << UNIT_BITS if self.sample_weight is None else exact_sum(self.sample_weight)

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the mean."""
        needs = _needs_of_losses(mechanism, epsilon, self.size, self._limit, private_n)
        return self.aggregate(max(needs)).bounds(needs, private_n)

    def sums(self) -> Sums:
        """Return the sums of the losses and of what is left to the cap."""
        return self.aggregate(0).sums()

    def aggregate(self, capacity: int, *, forget: bool = False) -> "AggregatedLoss":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks.

        With `forget` the records are not looked at again.
        """
        aggregate: LossAggregate | WeightedLossAggregate
        with np.errstate(all="ignore"):  # a loss that overflows is clipped; a warning would tell of it
            if self.sample_weight is None and self.groups is None:
                cap = self.record_loss.cap
                aggregate = LossAggregate.from_blocks(
                    self._losses(), capacity=capacity, cap=cap, by_level=forget
                )
            else:
                bounded = self.record_loss.cap is not None
                aggregate = WeightedLossAggregate.from_blocks(
                    self._terms(), weight=self._weight, bounded=bounded, capacity=capacity, by_level=forget
                )
        return AggregatedLoss(aggregate, self.record_loss.is_count, None if forget else self._sums_below)

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
        rows = max(BLOCK // max(math.prod(a.shape[1:]) for a in self.records), 1)
        for blocks in zip(*(in_blocks(a, rows) for a in self.records), strict=True):
            yield self.record_loss(*blocks)

    def _terms(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Yield blocks of the weighted losses, or of their sums over groups, and of the limits of these."""
        limits, cap = self._limits, self.record_loss.cap
        losses = np.concatenate([np.empty(0), *(clamp(block, cap) for block in self._losses())])
        terms = losses if self.sample_weight is None else _product(self.sample_weight, losses)
        if self.groups is not None:
            terms = _group_sums(terms, self.groups)
        for start in range(0, terms.size, BLOCK):
            end = start + BLOCK
            yield terms[start:end], None if limits is None else limits[start:end]

    def _all_terms(self) -> Iterator[Floats]:
        """Yield blocks of what is summed, clipped."""
        if self.sample_weight is None and self.groups is None:
            return (clamp(block, self.record_loss.cap) for block in self._losses())
        return (terms for terms, _ in self._terms())

    @cached_property
    def _limits(self) -> Floats | None:
        """Return the public limit of each term, if losses are capped."""
        if self.record_loss.cap is None:
            return None
        limits = np.full(self.n, self.record_loss.cap)
        if self.sample_weight is not None:
            limits = _product(self.sample_weight, limits)
        return limits if self.groups is None else _group_sums(limits, self.groups)

    @property
    def _limit(self) -> float:
        """Public limit of the mean."""
        if (self.sample_weight is None and self.groups is None) or self._limits is None:
            return limit_of(self.record_loss.cap)
        return rounded_quotient(exact_sum(self._limits), self._weight)


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedLoss(AggregatedQuery):
    """A mean loss, known by its aggregate only.

    Parameters
    ----------
    aggregate : LossAggregate or WeightedLossAggregate
        Sums and extremes of the records.
    is_count : bool
        As in `RecordLoss`.
    sums_below : callable or None, default=None
        What else is known of all records; None: what the aggregate knows by level.
    """

    aggregate: LossAggregate | WeightedLossAggregate
    is_count: bool
    sums_below: SumsBelow | None = None

    @property
    def total_weight(self) -> float:
        """What turns the mean into the sum."""
        return rounded_quotient(self.aggregate.weight, 1 << UNIT_BITS)

    def sums(self) -> Sums:
        """Return the sums of the losses and of what is left to the cap."""
        if isinstance(self.aggregate, WeightedLossAggregate) or self.aggregate.cap is None:
            raise ValueError(NEEDS_LIMIT.format("geometric"))
        return mean_sums(self.aggregate)

    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> Needs:
        return _needs_of_losses(mechanism, epsilon, self.n, self.aggregate.limit, private_n)

    def _bounds(self, needs: Needs, private_n: bool) -> OutputBounds:
        known = self.aggregate.truncate(needs.ranks)
        if isinstance(known, WeightedLossAggregate):
            made = weighted_loss_bounds(known)
        elif private_n:
            made = mean_loss_bounds_private_n(known)
        else:
            made = mean_loss_bounds(known, steps=self.n if self.is_count else None)
        if not needs.extremes:
            return made
        assert self.sums_below is not None or self.aggregate.by_level is not None
        sums_below = self.sums_below or partial(sums_below_level, self.aggregate)
        extremes = loss_extremes(self.aggregate, needs.extremes, sums_below, private_n=private_n)
        return replace(made, extremes=extremes)


def _needs_of_losses(mechanism: Mechanism, epsilon: Fraction, n: int, limit: float, private_n: bool) -> Needs:
    public_n = None if private_n else n
    return Needs(
        mechanism.count_ranks(epsilon, n=public_n, monotonic=not private_n, output_range=(0.0, limit)),
        mechanism.count_extremes(epsilon, n=public_n, are_widths=False),
    )


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
