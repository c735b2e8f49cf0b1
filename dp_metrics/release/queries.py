"""Queries: what to release about a set of records, and how it is prepared for the draw.

Most queries have output bounds, and a mechanism of the caller's choice releases one number. A query that is a
vector of whole numbers with a public sensitivity gets exact discrete noise instead.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.losses import RecordLoss, clamp
from dp_metrics.inputs.records import float_block
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.draws import BoundsDraw, Draw, VectorDraw
from dp_metrics.sensitivity.aggregates import (
    LossAggregate,
    OrderAggregate,
    VarianceAggregate,
    WeightedLossAggregate,
)
from dp_metrics.sensitivity.exact import BLOCK, UNIT_BITS, exact_sum, in_blocks, rounded_quotient
from dp_metrics.sensitivity.output_bounds import (
    OutputBounds,
    mean_loss_bounds,
    mean_loss_bounds_private_n,
    order_statistic_bounds,
    variance_bounds,
    variance_bounds_private_n,
    weighted_loss_bounds,
)

__all__ = [
    "AggregatedLoss",
    "AggregatedVariance",
    "IntegerVector",
    "MeanLoss",
    "OrderStatistic",
    "Query",
    "Variance",
]

Aggregate = TypeVar("Aggregate", LossAggregate | WeightedLossAggregate, VarianceAggregate)

_MOST_VARIANCE_RANKS = 4096  # the windows of c ranks number c^2 / 2


class Query(Protocol):
    """What to release about a set of records."""

    @property
    def n(self) -> int:
        """Number of records."""
        ...

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the release uses the number of records, or an estimate of it."""
        ...

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return what is left to do after the spend; raise for whatever cannot be released."""
        ...


class BoundsQuery(ABC):
    """A query that has output bounds: a mechanism releases one number."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of records."""

    @abstractmethod
    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return what the mechanism sees; raise for whatever it cannot serve."""

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the mechanism reads the number of records."""
        return mechanism.needs_count

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw by the mechanism."""
        output_bounds = self.output_bounds(mechanism, epsilon, private_n=private_n)
        return BoundsDraw(output_bounds, mechanism, epsilon, counted=private_n and mechanism.needs_count)


@dataclass(frozen=True, repr=False, eq=False)
class IntegerVector:
    """Whole numbers that are released together, each with exact two-sided geometric noise.

    Parameters
    ----------
    values : tuple of int
        Counts or sums over the records: private.
    sensitivity : int
        By how much the values of neighbours differ at most, summed over their absolute differences: public.
    n : int
        Number of records.
    """

    values: tuple[int, ...]
    sensitivity: int
    n: int

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return False: the noise depends on the public sensitivity only."""
        return False

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw of noise, whatever the mechanism."""
        return VectorDraw(self.values, epsilon / self.sensitivity)


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
    def total_weight(self) -> float:
        """What turns the mean into the sum: the public total weight, or the public n."""
        return rounded_quotient(self._weight, 1 << UNIT_BITS)

    @cached_property
    def _weight(self) -> int:
        return self.n << UNIT_BITS if self.sample_weight is None else exact_sum(self.sample_weight)

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the mean."""
        n = self.n if self.groups is None else int(self.groups.max()) + 1
        ranks = _count_ranks(mechanism, epsilon, n, self._limit, private_n)
        aggregated = self.aggregate(ranks)
        return aggregated.bounds(aggregated.aggregate, private_n)

    def aggregate(self, capacity: int) -> "AggregatedLoss":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""
        aggregate: LossAggregate | WeightedLossAggregate
        with np.errstate(all="ignore"):  # a loss that overflows is clipped; a warning would tell of it
            if self.sample_weight is None and self.groups is None:
                cap = self.record_loss.cap
                aggregate = LossAggregate.from_blocks(self._losses(), capacity=capacity, cap=cap)
            else:
                bounded = self.record_loss.cap is not None
                aggregate = WeightedLossAggregate.from_blocks(
                    self._terms(), weight=self._weight, bounded=bounded, capacity=capacity
                )
        return AggregatedLoss(aggregate, self.record_loss.is_count)

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
        cap = self.record_loss.cap
        if cap is None:
            return MAX_FLOAT
        if (self.sample_weight is None and self.groups is None) or self._limits is None:
            return cap
        return rounded_quotient(exact_sum(self._limits), self._weight)


class _Aggregated(BoundsQuery):
    """A query of which only the aggregate is known; it remembers the output bounds that it was asked for."""

    aggregate: Any
    _made: dict[tuple[int, bool], OutputBounds]

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.aggregate.n)

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds at as many ranks as the mechanism asks for and are known."""
        known = _first_ranks(self.aggregate, self._count_ranks(mechanism, epsilon, private_n))
        if (made := self._made.get((known.capacity, private_n))) is None:
            made = self._made[known.capacity, private_n] = self.bounds(known, private_n)
        return made

    @abstractmethod
    def _count_ranks(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> int:
        """Return how many ranks the mechanism asks for."""

    @abstractmethod
    def bounds(self, known: Any, private_n: bool) -> OutputBounds:
        """Return the output bounds at the ranks of an aggregate."""


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedLoss(_Aggregated):
    """A mean loss of which only the aggregate is known.

    Parameters
    ----------
    aggregate : LossAggregate or WeightedLossAggregate
        Sums and extremes of the records.
    is_count : bool
        As in `RecordLoss`.
    """

    aggregate: LossAggregate | WeightedLossAggregate
    is_count: bool
    _made: dict[tuple[int, bool], OutputBounds] = field(default_factory=dict, init=False)

    @property
    def total_weight(self) -> float:
        """What turns the mean into the sum."""
        return rounded_quotient(self.aggregate.weight, 1 << UNIT_BITS)

    def _count_ranks(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> int:
        return _count_ranks(mechanism, epsilon, self.n, self.aggregate.limit, private_n)

    def bounds(self, known: LossAggregate | WeightedLossAggregate, private_n: bool) -> OutputBounds:
        """Return the output bounds at the ranks of an aggregate."""
        if isinstance(known, WeightedLossAggregate):
            return weighted_loss_bounds(known)
        if private_n:
            return mean_loss_bounds_private_n(known)
        return mean_loss_bounds(known, steps=self.n if self.is_count else None)


@dataclass(frozen=True, repr=False, eq=False)
class Variance(BoundsQuery):
    """The population variance of x, clipped into the public bounds."""

    x: NDArray[Any]
    bounds: tuple[float, float] | None
    name: str = "x"

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.x)

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the variance."""
        ranks = _count_variance_ranks(mechanism, epsilon, self.n, self.bounds, private_n)
        aggregated = self.aggregate(ranks)
        return aggregated.bounds(aggregated.aggregate, private_n)

    def aggregate(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""
        blocks = (float_block(block, self.name) for block in in_blocks(self.x))
        with np.errstate(all="ignore"):  # a warning would tell of the data
            return AggregatedVariance(
                VarianceAggregate.from_blocks(blocks, capacity=capacity, bounds=self.bounds)
            )


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedVariance(_Aggregated):
    """A population variance of which only the aggregate is known."""

    aggregate: VarianceAggregate
    _made: dict[tuple[int, bool], OutputBounds] = field(default_factory=dict, init=False)

    def _count_ranks(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> int:
        return _count_variance_ranks(mechanism, epsilon, self.n, self.aggregate.bounds, private_n)

    def bounds(self, known: VarianceAggregate, private_n: bool) -> OutputBounds:
        """Return the output bounds at the ranks of an aggregate."""
        return variance_bounds_private_n(known) if private_n else variance_bounds(known)


def _first_ranks(aggregate: Aggregate, ranks: int) -> Aggregate:
    """Return an aggregate of so many ranks, or of all that it has."""
    if ranks > aggregate.capacity:  # which depends on public numbers only
        warnings.warn(
            f"A release at this epsilon uses {ranks} ranks; the summary keeps {aggregate.capacity}: it is "
            "as private, but less accurate, and useless if it keeps less than half of them. Make the summary "
            "with a larger capacity.",
            stacklevel=2,
        )
    return aggregate.truncate(ranks)


def _count_ranks(mechanism: Mechanism, epsilon: Fraction, n: int, limit: float, private_n: bool) -> int:
    return mechanism.count_ranks(
        epsilon, n=None if private_n else n, monotonic=not private_n, output_range=(0.0, limit)
    )


def _count_variance_ranks(
    mechanism: Mechanism,
    epsilon: Fraction,
    n: int,
    bounds: tuple[float, float] | None,
    private_n: bool,
) -> int:
    limit = MAX_FLOAT
    if bounds is not None:
        with np.errstate(over="ignore"):
            limit = float(np.minimum(np.square(np.float64(bounds[1]) - bounds[0]), MAX_FLOAT))
    ranks = mechanism.count_ranks(
        epsilon, n=None if private_n else n, monotonic=False, output_range=(0.0, limit)
    )
    return min(ranks, _MOST_VARIANCE_RANKS)


@dataclass(frozen=True, repr=False, eq=False)
class OrderStatistic(BoundsQuery):
    """The k-th smallest of values that are at least 0, clipped to the public limit; k counts from 1."""

    x: Floats
    k: int
    limit: float

    @property
    def n(self) -> int:
        """Number of records."""
        return self.x.size

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the order statistic."""
        if private_n:
            raise ValueError("The rank k would give a private number of records away.")
        output_range = (0.0, self.limit)
        capacity = mechanism.count_ranks(epsilon, n=self.n, monotonic=True, output_range=output_range)
        x = np.clip(self.x, 0.0, self.limit)
        return order_statistic_bounds(
            OrderAggregate.from_data(x, self.k, capacity=capacity, limit=self.limit)
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
