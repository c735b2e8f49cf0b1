"""Queries: the records of one metric, and how they become the output bounds that a mechanism sees."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_metrics._aggregates import LossAggregate, OrderAggregate, VarianceAggregate, WeightedLossAggregate
from dp_metrics._exact import BLOCK, UNIT_BITS, exact_sum, in_blocks, rounded_quotient
from dp_metrics._validation import MAX_FLOAT, float_block
from dp_metrics.bounds import (
    OutputBounds,
    mean_loss_bounds,
    mean_loss_bounds_private_n,
    order_statistic_bounds,
    variance_bounds,
    variance_bounds_private_n,
    weighted_loss_bounds,
)
from dp_metrics.losses import clamp, mean_over_outputs
from dp_metrics.mechanisms import Epsilon, Mechanism

__all__ = [
    "AggregatedLoss",
    "AggregatedVariance",
    "LossMetric",
    "MeanLoss",
    "OrderStatistic",
    "Query",
    "Variance",
]

Floats = NDArray[np.float64]
Aggregate = TypeVar("Aggregate", LossAggregate | WeightedLossAggregate, VarianceAggregate)

_MOST_VARIANCE_RANKS = 4096  # the windows of c ranks number c^2 / 2


class Query(Protocol):
    """What to release about a set of records."""

    @property
    def n(self) -> int:
        """Number of records."""
        ...

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
        """Return what the mechanism sees; raise for whatever it cannot serve."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class MeanLoss:
    """The mean of kernel(*records), a loss per record clamped to [0, cap].

    Parameters
    ----------
    kernel : callable
        Per-record loss of blocks of the records.
    records : tuple of ndarray
        Arrays of one length.
    cap : float or None
        Public cap of one loss.
    sample_weight : ndarray or None
        Public weights.
    groups : ndarray or None
        Number of each record's public group; all records of a group change together.
    paper_sum : bool
        Whether the paper takes the sum of these losses, which is its unit.
    counts : bool
        Whether each loss is 0 or the cap.
    """

    kernel: Callable[..., Floats]
    records: tuple[NDArray[Any], ...]
    cap: float | None
    sample_weight: Floats | None = None
    groups: NDArray[np.intp] | None = None
    paper_sum: bool = False
    counts: bool = False

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

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the mean."""
        n = self.n if self.groups is None else int(self.groups.max()) + 1
        ranks = _count_ranks(mechanism, epsilon, n, self._limit, private_n)
        return self.aggregate(ranks).output_bounds(mechanism, epsilon, private_n=private_n)

    def aggregate(self, capacity: int) -> "AggregatedLoss":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""
        aggregate: LossAggregate | WeightedLossAggregate
        with np.errstate(all="ignore"):  # a loss that overflows is clipped; a warning would tell of it
            if self.sample_weight is None and self.groups is None:
                aggregate = LossAggregate.from_blocks(self._losses(), capacity=capacity, cap=self.cap)
            else:
                aggregate = WeightedLossAggregate.from_blocks(
                    self._terms(), weight=self._weight, bounded=self.cap is not None, capacity=capacity
                )
        return AggregatedLoss(aggregate, paper_sum=self.paper_sum, counts=self.counts)

    def _losses(self) -> Iterator[Floats]:
        """Yield blocks of losses, not yet clipped."""
        rows = max(BLOCK // max(math.prod(a.shape[1:]) for a in self.records), 1)
        for blocks in zip(*(in_blocks(a, rows) for a in self.records), strict=True):
            yield mean_over_outputs(self.kernel(*blocks))

    def _terms(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Yield blocks of the weighted losses, or of their sums over groups, and of the limits of these."""
        limits = self._limits
        losses = np.concatenate([np.empty(0), *(clamp(block, self.cap) for block in self._losses())])
        terms = losses if self.sample_weight is None else _product(self.sample_weight, losses)
        if self.groups is not None:
            terms = _group_sums(terms, self.groups)
        for start in range(0, terms.size, BLOCK):
            end = start + BLOCK
            yield terms[start:end], None if limits is None else limits[start:end]

    @cached_property
    def _limits(self) -> Floats | None:
        """Return the public limit of each term, if losses are capped."""
        if self.cap is None:
            return None
        limits = np.full(self.n, self.cap)
        if self.sample_weight is not None:
            limits = _product(self.sample_weight, limits)
        return limits if self.groups is None else _group_sums(limits, self.groups)

    @property
    def _limit(self) -> float:
        """Public limit of the mean."""
        if self.cap is None:
            return MAX_FLOAT
        if (self.sample_weight is None and self.groups is None) or self._limits is None:
            return self.cap
        return rounded_quotient(exact_sum(self._limits), self._weight)


class LossMetric(NamedTuple):
    r"""How a metric follows from a mean loss.

    Parameters
    ----------
    query : callable
        Query of (\*data, private_n, sample_weight, groups, \*\*options of the metric).
    finish : callable
        Metric from the released mean loss, the public total weight and the options. It may read nothing else.
    """

    query: Callable[..., MeanLoss]
    finish: Callable[[float, float, Mapping[str, Any]], float] = lambda mean, total_weight, options: mean


class _Aggregated(ABC):
    """A query of which only the aggregate is known; it remembers the output bounds that it was asked for."""

    aggregate: Any
    _made: dict[tuple[int, bool], OutputBounds]

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.aggregate.n)

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
        """Return the output bounds at as many ranks as the mechanism asks for and are known."""
        known = _first_ranks(self.aggregate, self._count_ranks(mechanism, epsilon, private_n))
        if (made := self._made.get((known.capacity, private_n))) is None:
            made = self._made[known.capacity, private_n] = self._bounds(known, private_n)
        return made

    @abstractmethod
    def _count_ranks(self, mechanism: Mechanism, epsilon: Epsilon, private_n: bool) -> int:
        """Return how many ranks the mechanism asks for."""

    @abstractmethod
    def _bounds(self, known: Any, private_n: bool) -> OutputBounds:
        """Return the output bounds at the ranks of an aggregate."""


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedLoss(_Aggregated):
    """A mean loss of which only the aggregate is known.

    Parameters
    ----------
    aggregate : LossAggregate or WeightedLossAggregate
        Sums and extremes of the records.
    paper_sum, counts : bool
        As in `MeanLoss`.
    """

    aggregate: LossAggregate | WeightedLossAggregate
    paper_sum: bool
    counts: bool
    _made: dict[tuple[int, bool], OutputBounds] = field(default_factory=dict, init=False)

    @property
    def total_weight(self) -> float:
        """What turns the mean into the sum."""
        return rounded_quotient(self.aggregate.weight, 1 << UNIT_BITS)

    def _count_ranks(self, mechanism: Mechanism, epsilon: Epsilon, private_n: bool) -> int:
        return _count_ranks(mechanism, epsilon, self.n, self.aggregate.limit, private_n)

    def _bounds(self, known: LossAggregate | WeightedLossAggregate, private_n: bool) -> OutputBounds:
        paper_scale = rounded_quotient(1 << UNIT_BITS, known.weight) if self.paper_sum and self.n else 1.0
        if isinstance(known, WeightedLossAggregate):
            return weighted_loss_bounds(known, paper_scale=paper_scale)
        if private_n:
            return mean_loss_bounds_private_n(known)
        return mean_loss_bounds(known, paper_scale=paper_scale, steps=self.n if self.counts else None)


@dataclass(frozen=True, repr=False, eq=False)
class Variance:
    """The population variance of x, clipped into the public bounds."""

    x: NDArray[Any]
    bounds: tuple[float, float] | None
    name: str = "x"

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.x)

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the variance."""
        ranks = _count_variance_ranks(mechanism, epsilon, self.n, self.bounds, private_n)
        return self.aggregate(ranks).output_bounds(mechanism, epsilon, private_n=private_n)

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

    def _count_ranks(self, mechanism: Mechanism, epsilon: Epsilon, private_n: bool) -> int:
        return _count_variance_ranks(mechanism, epsilon, self.n, self.aggregate.bounds, private_n)

    def _bounds(self, known: VarianceAggregate, private_n: bool) -> OutputBounds:
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


def _count_ranks(mechanism: Mechanism, epsilon: Epsilon, n: int, limit: float, private_n: bool) -> int:
    return mechanism.count_ranks(
        epsilon, n=None if private_n else n, monotonic=not private_n, output_range=(0.0, limit)
    )


def _count_variance_ranks(
    mechanism: Mechanism,
    epsilon: Epsilon,
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
class OrderStatistic:
    """The k-th smallest of values that are at least 0, clipped to the public limit; k counts from 1."""

    x: Floats
    k: int
    limit: float

    @property
    def n(self) -> int:
        """Number of records."""
        return self.x.size

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
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
