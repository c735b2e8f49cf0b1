"""Queries: what to release about a set of records, and how it is prepared for the draw.

Most queries have output bounds, and a mechanism of the caller's choice releases one number. A query that is a
vector of whole numbers with a public sensitivity gets exact discrete noise instead.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.losses import RecordLoss, clamp
from dp_metrics.inputs.records import float_block
from dp_metrics.mechanisms import Geometric, Mechanism
from dp_metrics.mechanisms._base import NEEDS_LIMIT
from dp_metrics.mechanisms.geometric import SumsLaw, expected_noise
from dp_metrics.release.draws import BoundsDraw, Draw, SumsDraw, VectorDraw
from dp_metrics.release.noise import MOST_ERROR, expected_error
from dp_metrics.sensitivity.aggregates import (
    LossAggregate,
    OrderAggregate,
    VarianceAggregate,
    WeightedLossAggregate,
)
from dp_metrics.sensitivity.exact import (
    BLOCK,
    UNIT_BITS,
    exact_sum,
    in_blocks,
    level_units,
    rounded_quotient,
)
from dp_metrics.sensitivity.extremes import SumsBelow, loss_extremes, spread_extremes, sums_below_level
from dp_metrics.sensitivity.noisy_sums import FINENESS, Sums, mean_sums, variance_sums
from dp_metrics.sensitivity.output_bounds import (
    OutputBounds,
    mean_loss_bounds,
    mean_loss_bounds_private_n,
    order_statistic_bounds,
    variance_bounds,
    variance_bounds_private_n,
    weighted_loss_bounds,
)
from dp_metrics.sensitivity.trimmed_variance import least_spreads

__all__ = [
    "ADDED",
    "MOST_VARIANCE_RANKS",
    "AggregatedLoss",
    "AggregatedVariance",
    "BoundsQuery",
    "IntegerVector",
    "MeanLoss",
    "OrderStatistic",
    "Query",
    "Variance",
]

ADDED = (
    "the noise is expected to move it by {:.3g} of its public range. Above "
    f"{MOST_ERROR} a release is mostly noise: take more records, or a larger epsilon."
)
"""What to say of noise that is added, given its expected size."""

MOST_VARIANCE_RANKS = 4096
"""Ranks that a release of a variance uses at most: the windows of c ranks number c^2 / 2."""


class Query(Protocol):
    """What to release about a set of records."""

    @property
    def n(self) -> int:
        """Number of records."""
        ...

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        ...

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return what to say if a release about so many records, or groups, is mostly noise.

        Nothing but the public settings of the draw is read.
        """
        ...

    def records_told(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Fraction | None:
        """Return the number of records that a release tells, whose true number is private; None if none."""
        ...

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the release uses the number of records, or an estimate of it."""
        ...

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return what is left to do after the spend; raise for whatever cannot be released."""
        ...


class BoundsQuery(ABC):
    """A query that has output bounds: a mechanism releases one number."""

    noise_note: ClassVar[str] = "on heavy tails expect errors of half the value and more."
    """What it means that a release is mostly noise, for the warning."""

    @property
    def mostly_noise(self) -> int:
        """Below this n * epsilon a release is mostly noise: measured in ``benchmarks/defaults.py``."""
        return 50

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return what to say if a release about so many records, or groups, is mostly noise."""
        if isinstance(draw, SumsDraw):
            error: float | None = expected_error(expected_noise(draw.sums_law.rate) / FINENESS, records)
        else:
            error = draw.added_error if isinstance(draw, BoundsDraw) else None
        if error is not None:
            return ADDED.format(min(error, 1.0)) if error > MOST_ERROR else None
        times_epsilon = records * draw.epsilon
        if times_epsilon >= self.mostly_noise:
            return None
        return (
            f"n * epsilon is {float(times_epsilon):.3g} for one number. Below {self.mostly_noise} "
            f"a release is mostly noise: {self.noise_note}"
        )

    def records_told(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Fraction | None:
        """Return the number of records that a release tells: the noisy count, or the sum of all sums."""
        if "sums" in drawn:
            return Fraction(sum(drawn["sums"]), FINENESS)
        return None if count is None else Fraction(count)

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of records."""

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        return self.n

    @abstractmethod
    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return what the mechanism sees; raise for whatever it cannot serve."""

    @abstractmethod
    def sums(self) -> Sums:
        """Return the sums that serve the geometric mechanism where n is private; raise if there are none."""

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the mechanism reads the number of records."""
        return mechanism.needs_count

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw by the mechanism."""
        if private_n and isinstance(mechanism, Geometric):
            return SumsDraw(SumsLaw(self.sums(), epsilon), mechanism)
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

    @property
    def size(self) -> int:
        """Number of records."""
        return self.n

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return None: an interval or a comparison is made of these, and says how sure it is."""
        return None

    def records_told(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Fraction | None:
        """Return None: whole numbers do not say what they count."""
        return None

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return False: the noise depends on the public sensitivity only."""
        return False

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw of noise, whatever the mechanism."""
        return VectorDraw(self.values, ((len(self.values), epsilon / self.sensitivity),))


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
        cap = self.record_loss.cap
        if cap is None:
            return MAX_FLOAT
        if (self.sample_weight is None and self.groups is None) or self._limits is None:
            return cap
        return rounded_quotient(exact_sum(self._limits), self._weight)


class _Needs(NamedTuple):
    """How much a mechanism needs to know of the data: public numbers."""

    ranks: int
    extremes: int


@dataclass(frozen=True, repr=False, eq=False)
class _Aggregated(BoundsQuery):
    """A query of which only the aggregate is known; it remembers the output bounds that it was asked for."""

    aggregate: Any
    _made: dict[tuple[_Needs, bool], OutputBounds] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.aggregate.n)

    def merge(self, other: Self) -> Self:
        """Return the query about the records of both, of which only summaries are known."""
        return replace(self, aggregate=self.aggregate.merge(other.aggregate))

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds at as many ranks as the mechanism asks for and are known."""
        needs = self._needs(mechanism, epsilon, private_n)
        if max(needs) > self.aggregate.capacity:  # which depends on public numbers only
            warnings.warn(
                f"A release at this epsilon uses {max(needs)} ranks; the summary keeps "
                f"{self.aggregate.capacity}: it is as private, but less accurate, and useless if it keeps "
                "less than half of them. Make the summary with a larger capacity.",
                stacklevel=2,
            )
        return self.bounds(needs, private_n)

    def bounds(self, needs: _Needs, private_n: bool) -> OutputBounds:
        """Return the output bounds at so many ranks, or all that are known, with the extremes asked for."""
        if (made := self._made.get((needs, private_n))) is None:
            made = self._made[needs, private_n] = self._bounds(needs, private_n)
        return made

    @abstractmethod
    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> _Needs:
        """Return what the mechanism asks for."""

    @abstractmethod
    def _bounds(self, needs: _Needs, private_n: bool) -> OutputBounds:
        """Return the output bounds, with the extremes asked for."""


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedLoss(_Aggregated):
    """A mean loss of which only the aggregate is known.

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

    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> _Needs:
        return _needs_of_losses(mechanism, epsilon, self.n, self.aggregate.limit, private_n)

    def _bounds(self, needs: _Needs, private_n: bool) -> OutputBounds:
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


@dataclass(frozen=True, repr=False, eq=False)
class Variance(BoundsQuery):
    """The population variance of x, clipped into the public bounds."""

    x: NDArray[Any]
    bounds: tuple[float, float] | None
    name: str = "x"

    mostly_noise = 100

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.x)

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the variance."""
        needs = _needs_of_variance(mechanism, epsilon, self.n, self.bounds, private_n)
        return self.aggregate(max(needs)).bounds(needs, private_n)

    def aggregate(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""
        blocks = (float_block(block, self.name) for block in in_blocks(self.x))
        with np.errstate(all="ignore"):  # a warning would tell of the data
            return AggregatedVariance(
                VarianceAggregate.from_blocks(blocks, capacity=capacity, bounds=self.bounds), self._in_order
            )

    def sums(self) -> Sums:
        """Return the sums that tell a variance."""
        return self.aggregate(0).sums()

    def summary(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, which are not looked at again."""
        return AggregatedVariance(self.aggregate(capacity).aggregate)

    def _in_order(self) -> Floats:
        """Return all values, clipped, in ascending order."""
        values = float_block(self.x, self.name)
        return np.sort(values if self.bounds is None else np.clip(values, *self.bounds))


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedVariance(_Aggregated):
    """A population variance of which only the aggregate is known, and perhaps where to look for all values.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Sums and extremes of the values.
    in_order : callable or None, default=None
        Returns all values in ascending order; None: the aggregate may or may not hold them all.
    """

    aggregate: VarianceAggregate
    in_order: Callable[[], Floats] | None = None

    mostly_noise = 100

    def sums(self) -> Sums:
        """Return the sums that tell a variance."""
        if self.aggregate.bounds is None:
            raise ValueError(NEEDS_LIMIT.format("geometric"))
        return variance_sums(self.aggregate)

    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> _Needs:
        needs = _needs_of_variance(mechanism, epsilon, self.n, self.aggregate.bounds, private_n)
        # a clipped sum of squares may need every value; whether all are known must not depend on a private n
        all_known = self.in_order is not None or (not private_n and self.n <= self.aggregate.capacity)
        return needs if all_known else needs._replace(extremes=0)

    def _bounds(self, needs: _Needs, private_n: bool) -> OutputBounds:
        known = self.aggregate.truncate(needs.ranks)
        least = least_spreads(known, min(known.capacity, known.n))
        made = (variance_bounds_private_n if private_n else variance_bounds)(known, least)
        if not needs.extremes:
            return made
        in_order = self.in_order or self._all_in_order
        return replace(
            made,
            extremes=spread_extremes(self.aggregate, needs.extremes, least, in_order, private_n=private_n),
        )

    def _all_in_order(self) -> Floats:
        return self.aggregate.smallest  # which are all values


def _needs_of_losses(
    mechanism: Mechanism, epsilon: Fraction, n: int, limit: float, private_n: bool
) -> _Needs:
    public_n = None if private_n else n
    return _Needs(
        mechanism.count_ranks(epsilon, n=public_n, monotonic=not private_n, output_range=(0.0, limit)),
        mechanism.count_extremes(epsilon, n=public_n, are_widths=False),
    )


def _needs_of_variance(
    mechanism: Mechanism,
    epsilon: Fraction,
    n: int,
    bounds: tuple[float, float] | None,
    private_n: bool,
) -> _Needs:
    limit = MAX_FLOAT
    if bounds is not None:
        with np.errstate(over="ignore"):
            limit = float(np.minimum(np.square(np.float64(bounds[1]) - bounds[0]), MAX_FLOAT))
    public_n = None if private_n else n
    ranks = mechanism.count_ranks(epsilon, n=public_n, monotonic=False, output_range=(0.0, limit))
    return _Needs(
        min(ranks, MOST_VARIANCE_RANKS), mechanism.count_extremes(epsilon, n=public_n, are_widths=True)
    )


_RANK = (
    "A median or another quantile needs a public number of records: its rank among them would tell a private "
    "one."
)


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
            raise ValueError(_RANK)
        output_range = (0.0, self.limit)
        capacity = mechanism.count_ranks(epsilon, n=self.n, monotonic=True, output_range=output_range)
        x = np.clip(self.x, 0.0, self.limit)
        return order_statistic_bounds(
            OrderAggregate.from_data(x, self.k, capacity=capacity, limit=self.limit)
        )

    def sums(self) -> Sums:
        """Raise: an order statistic is no sum."""
        raise ValueError(_RANK)


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
