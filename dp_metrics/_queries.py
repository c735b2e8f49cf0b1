"""Queries: the records of one metric, and how they become the output bounds that a mechanism sees."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dp_metrics._exact import BLOCK, UNIT_BITS, exact_sum, rounded_quotient
from dp_metrics._validation import MAX_FLOAT
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
from dp_metrics.summaries import LossSummary, OrderSummary, VarianceSummary, WeightedLossSummary

__all__ = ["MeanLoss", "OrderStatistic", "Query", "Variance"]

Floats = NDArray[np.float64]

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

    @property
    def _weight(self) -> int:
        return self.n << UNIT_BITS if self.sample_weight is None else exact_sum(self.sample_weight)

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the mean."""
        if self.sample_weight is not None or self.groups is not None:
            return self._weighted(mechanism, epsilon)
        capacity = mechanism.count_ranks(
            epsilon,
            n=None if private_n else self.n,
            monotonic=not private_n,
            output_range=(0.0, MAX_FLOAT if self.cap is None else self.cap),
        )
        summary = LossSummary.from_blocks(self._blocks(), capacity=capacity, cap=self.cap)
        if private_n:
            return mean_loss_bounds_private_n(summary)
        return mean_loss_bounds(
            summary,
            paper_scale=1.0 / self.n if self.paper_sum else 1.0,
            steps=self.n if self.counts else None,
        )

    def _weighted(self, mechanism: Mechanism, epsilon: Epsilon) -> OutputBounds:
        terms = np.concatenate(list(self._blocks()))
        limits = None if self.cap is None else np.full(self.n, self.cap)
        if self.sample_weight is not None:
            terms = _product(self.sample_weight, terms)
            limits = None if limits is None else _product(self.sample_weight, limits)
        if self.groups is not None:
            terms = _group_sums(terms, self.groups)
            limits = None if limits is None else _group_sums(limits, self.groups)
        weight = self._weight
        capacity = mechanism.count_ranks(
            epsilon,
            n=terms.size,
            monotonic=True,
            output_range=(0.0, MAX_FLOAT if limits is None else rounded_quotient(exact_sum(limits), weight)),
        )
        summary = WeightedLossSummary.from_data(terms, limits, weight=weight, capacity=capacity)
        paper_scale = rounded_quotient(1 << UNIT_BITS, weight) if self.paper_sum else 1.0
        return weighted_loss_bounds(summary, paper_scale=paper_scale)

    def _blocks(self) -> Iterable[Floats]:
        for start in range(0, self.n, BLOCK):
            with np.errstate(all="ignore"):  # an overflow is clamped; a warning would tell of it
                losses = self.kernel(*(a[start : start + BLOCK] for a in self.records))
                yield clamp(mean_over_outputs(losses), self.cap)


@dataclass(frozen=True, repr=False, eq=False)
class Variance:
    """The population variance of x, clipped into the public bounds."""

    x: Floats
    bounds: tuple[float, float] | None

    @property
    def n(self) -> int:
        """Number of records."""
        return self.x.size

    def output_bounds(self, mechanism: Mechanism, epsilon: Epsilon, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the variance."""
        x, limit = self.x, MAX_FLOAT
        if self.bounds is not None:
            x = np.clip(x, *self.bounds)
            with np.errstate(over="ignore"):
                limit = float(np.minimum(np.square(np.float64(self.bounds[1]) - self.bounds[0]), MAX_FLOAT))
        ranks = mechanism.count_ranks(
            epsilon, n=None if private_n else self.n, monotonic=False, output_range=(0.0, limit)
        )
        summary = VarianceSummary.from_data(x, capacity=min(ranks, _MOST_VARIANCE_RANKS), bounds=self.bounds)
        return variance_bounds_private_n(summary) if private_n else variance_bounds(summary)


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
        return order_statistic_bounds(OrderSummary.from_data(x, self.k, capacity=capacity, limit=self.limit))


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
