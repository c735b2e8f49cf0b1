"""How far the most extreme records lie out, and the metric with records clipped at any level.

Two facts let a mechanism draw the scale of its noise. There is a *statistic* of the extreme records with
output bounds: the k-th largest loss, or how far values lie from the mean of the middle ones. And for each
public C there is a *clipped sum* T, at most n times the metric, that grows by 0 to C when a record is added.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate, islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import (
    BLOCK,
    UNIT_BITS,
    common_bits,
    in_blocks,
    rounded_quotient,
    rounded_quotients,
    to_units,
)
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds
from dp_metrics.sensitivity.variance_windows import Middle, clipped_squares, middle_values


class ClippedSum(NamedTuple):
    """A clipped sum, and what a record adds to it at most: whole numbers of one unit."""

    total: int  # T: private
    most: int  # C: public, as the unit is
    unit: Fraction

    @property
    def scale(self) -> float:
        """C as a float."""
        most = self.most * self.unit
        return rounded_quotient(most.numerator, most.denominator)


Places: TypeAlias = NDArray[np.intp]
Ranks: TypeAlias = tuple[float, Floats, Floats]
"""A statistic, and its lower and upper output bounds at so many ranks."""


@dataclass(frozen=True, repr=False, eq=False)
class Extremes:
    """A statistic of the most extreme records of a data set, and its clipped sums.

    The statistic, the clipped sums and a private number of records are private data; the rest is public.

    Parameters
    ----------
    limit : float
        Public limit of the statistic.
    are_distances : bool
        Whether the square of the statistic, not the statistic, is what such a record adds to n times the
        metric. A loss moves all output bounds in one direction between neighbours, a distance need not.
    at_ranks : callable
        Given k and a number of ranks, the statistic of the k-th records from the ends and its bounds.
    clipped : callable
        The clipped sum for a positive statistic y: C is at least y, or the square of y if it is a distance.
    private_n : int or None
        The number of records, where it is private.
    known : int or None, default=None
        Public number of the largest losses that are known, if there are more; the next ones are taken for 0.
    """

    limit: float
    are_distances: bool
    at_ranks: Callable[[int, int], Ranks]
    clipped: Callable[[float], ClippedSum]
    private_n: int | None
    known: int | None = None

    @property
    def facts(self) -> BoundsFacts:
        """What is public of the statistic."""
        return BoundsFacts(output_range=(0.0, self.limit), monotonic=not self.are_distances, n=None)

    def bounds(self, k: int, ranks: int) -> OutputBounds:
        """Return the output bounds of the statistic."""
        return self.facts.bounds(*self.at_ranks(k, ranks))


def order_statistic(values: Floats, limit: float, k: int, ranks: int) -> Ranks:
    """Return y_k of descending values, 0 beyond the last: L^l = y_(k+l), U^l = y_(k-l), or the limit."""
    y = np.zeros(k + ranks)
    known = values[: k + ranks]
    y[: known.size] = known
    upper = np.full(ranks, limit)
    above = y[: k - 1][::-1][:ranks]
    upper[: above.size] = above
    return float(y[k - 1]), y[k:], upper


_SORTED_PART = 8  # where more than this part of the values has to be in order, all are sorted
_BINS = 1 << 14
_SAMPLE = 1 << 10  # so many values tell where the bins begin and end
_TENTHS = range(6)
_WEIGHTS = [1 / math.sqrt(1 - t / 10) for t in _TENTHS]


def far_distances(
    x: Floats, total: int, ends: tuple[float, float], limit: float, k: int, ranks: int
) -> Ranks:
    """Return how far the k-th value from the ends, and those further in, lie from the mean of the middle.

    Parameters
    ----------
    x : ndarray
        n values in ascending order, x_0 to x_(n-1), at least where `places_of_distances` says.
    total : int
        Their exact sum, in units of 2**-1074.
    ends : tuple of float
        Public limits of the values, which may be infinite: x_i stands for the first where i < 0, and for the
        second where i >= n.
    limit : float
        Public limit of the distance.
    k, ranks : int
        Public.

    Notes
    -----
    With h = min(ranks, (n - 1) // 2) let c_l be the mean of the middle values moved by l places, x_(h+l) to
    x_(n-1-h+l). For the shares t = 0, .1, ... .5 and i = max(k, n t) the statistic is the largest of

        max(x_(n-i) - c_0, c_0 - x_(i-1)) / sqrt(1 - t),

    and its bounds at rank l are the same with each value moved by l places: down in x_(n-i) and up in x_(i-1)
    and c for the lower bound, the other way for the upper one. Replacing a record moves each x_i by one place
    at most, so each mean too; adding a record as well, since i and h grow by at most 1, and a mean of more
    values in order lies below the mean without the smallest of them. Means are rounded once from
    exact ones, and differences and products of floats are monotone: so the bounds hold as executed.

    The weights make noise of this size harmless. If a share t of the values lies at distance d of the mean
    on one side, they are clipped unless the scale is at least d / sqrt(1 - t): the centre of the clipped
    sum of squares is free, and would leave them.
    """
    n = x.size
    if n == 0:
        return 0.0, np.zeros(ranks), np.where(np.arange(1, ranks + 1) < k, 0.0, limit)

    def at(places: Places) -> Floats:
        values = x.take(places, mode="clip")
        values[places < 0], values[places >= n] = ends
        return values

    below, above = _moved_means(total, at, n, min(ranks, (n - 1) // 2), ranks)
    moves, i = np.arange(ranks + 1), np.array(_depths(n, k))[:, np.newaxis]
    few = moves[:k]  # the upper bounds from k on are the limit
    with np.errstate(over="ignore", invalid="ignore"):  # a place beyond both infinite ends has no distance
        lower = _largest(at(n - i - moves) - above, below - at(i - 1 + moves), limit)
        upper = _largest(at(n - i + few) - below[:k], above[:k] - at(i - 1 - few), limit)
    return float(lower[0]), lower[1:], np.append(upper[1:], np.full(ranks + 1 - upper.size, limit))


def _largest(far_above: Floats, far_below: Floats, limit: float) -> Floats:
    """Return the largest weighted distance at each rank, at least 0."""
    far = np.fmax(far_above, far_below) * np.array(_WEIGHTS)[:, np.newaxis]
    largest: Floats = np.minimum(np.fmax.reduce(far, axis=0, initial=0.0), limit)
    return largest


def _depths(n: int, k: int) -> list[int]:
    return [max(k, n * t // 10) for t in _TENTHS]


def places_of_distances(n: int, k: int, ranks: int) -> list[tuple[int, int]]:
    """Return the first and the last place of each run of values that the distances look at."""
    runs = [(0, 2 * ranks), *((i - k, i + ranks) for i in _depths(n, k))]
    both = sorted(runs + [(n - 1 - last, n - 1 - first) for first, last in runs])
    merged = [both[0]]
    for first, last in both[1:]:
        if first > merged[-1][1]:
            merged.append((first, last))
        else:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
    return [(max(first, 0), min(last, n - 1)) for first, last in merged if first < n and last >= 0]


def _moved_means(
    total: int, at: Callable[[Places], Floats], n: int, dropped: int, ranks: int
) -> tuple[Floats, Floats]:
    """Return the means of the middle values moved down, and up, by so many places; each is rounded once."""
    # what is left out at either end, and as many values further in and further out as a move may reach
    around = np.arange(-ranks, ranks)
    values = np.concatenate([at(dropped - 1 - around), at(n - dropped + around)])
    known = np.where(np.isfinite(values), values, 0.0)
    bits = common_bits(known, total)  # in the unit that all have in common the whole numbers are short
    # from the innermost value outwards
    low, high = to_units(known[: 2 * ranks], bits), to_units(known[2 * ranks :], bits)
    first = (total >> bits) - sum(low[ranks : ranks + dropped]) - sum(high[ranks : ranks + dropped])
    weight = (n - 2 * dropped) << (UNIT_BITS - bits)
    found = []
    for side, come, end, leave in ((-1, low, values[2 * ranks - 1], high), (1, high, values[-1], low)):
        # what comes in with each move, and what leaves the middle
        steps = map(operator.sub, come[ranks:], reversed(leave[:ranks]))
        moves = ranks if math.isfinite(end) else dropped
        means = np.full(ranks + 1, side * np.inf)
        sums = islice(accumulate(steps, initial=first), moves + 1)
        means[: moves + 1] = rounded_quotients(sums, weight)
        found.append(means)
    return found[0], found[1]


class _Column:
    """All values of a column, clipped to bounds, as far in order as they are asked for."""

    def __init__(self, values: Callable[[], Floats], ends: tuple[float, float]) -> None:
        self._values, self.ends = values, ends

    @cached_property
    def values(self) -> Floats:
        """All values, not yet clipped."""
        return self._values()

    @cached_property
    def in_order(self) -> Floats:
        """All in ascending order."""
        return np.clip(np.sort(self.values), *self.ends)

    def in_order_at(self, runs: list[tuple[int, int]]) -> Floats:
        """Return an array with the values that belong at some runs of places in ascending order.

        Values are counted in bins, and only those of the bins that reach into a run are sorted. Differences
        and products of floats, and whole parts, never reverse an order: so a value of a bin never belongs
        behind one of the next bin, however the arithmetic is rounded. Where bins hold too many, all are
        sorted.
        """
        values, n = self.values, self.values.size
        if sum(last + 1 - first for first, last in runs) * _SORTED_PART > n:
            return self.in_order
        sample = np.sort(values[:: n // _SAMPLE + 1])
        with np.errstate(all="ignore"):
            low, high = sample[sample.size // 200], sample[-1 - sample.size // 200]
            scale = _BINS / (high - low)
            if not 0.0 < scale < math.inf:
                return self.in_order
            bins = np.empty(n, dtype=np.int16)
            for start, block in zip(range(0, n, BLOCK), in_blocks(values), strict=True):
                bins[start : start + BLOCK] = np.clip((block - low) * scale, 0, _BINS - 1)
        ends = np.cumsum(np.bincount(bins, minlength=_BINS))
        firsts, lasts = (np.searchsorted(ends, places, side="right") for places in zip(*runs, strict=True))
        is_wanted = np.zeros(_BINS, dtype=np.bool_)
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            is_wanted[first : last + 1] = True
        (wanted,) = is_wanted.take(bins).nonzero()
        if wanted.size * _SORTED_PART > n:
            return self.in_order
        found, some = np.zeros(n), np.clip(np.sort(values[wanted]), *self.ends)
        behind = np.cumsum(np.diff(ends, prepend=0) * is_wanted)
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            size = int(ends[last] - (ends[first - 1] if first else 0))
            found[ends[last] - size : ends[last]] = some[behind[last] - size : behind[last]]
        return found


def width_of(bounds: tuple[float, float] | None) -> float:
    """Return the width of public bounds, which no distance exceeds."""
    if bounds is None:
        return MAX_FLOAT
    with np.errstate(over="ignore"):
        return float(np.minimum(np.float64(bounds[1]) - bounds[0], MAX_FLOAT))


def variance_extremes(
    aggregate: VarianceAggregate, values: Callable[[], Floats], *, private_n: bool
) -> Extremes:
    """Return the distances of a variance, of which `values` returns all values."""
    ends, limit = aggregate.bounds or (-math.inf, math.inf), width_of(aggregate.bounds)
    column = _Column(values, ends)
    middle: Middle | None = None  # nothing is known of them before `at_ranks`

    def at_ranks(k: int, ranks: int) -> Ranks:
        nonlocal middle
        n = aggregate.n
        known = column.in_order_at(places_of_distances(n, k, ranks)) if n else np.empty(0)
        middle = partial(middle_values, column.values, known, _depths(n, k)[1], ends)
        return far_distances(known, aggregate.total, ends, limit, k, ranks)

    def clipped(width: float) -> ClippedSum:
        exact = Fraction(width)
        total, most = clipped_squares(aggregate, exact, lambda: column.in_order, middle), exact * exact
        unit = Fraction(1, total.denominator * most.denominator)
        return ClippedSum(total.numerator * most.denominator, most.numerator * total.denominator, unit)

    return Extremes(
        limit,
        are_distances=True,
        at_ranks=at_ranks,
        clipped=clipped,
        private_n=aggregate.n if private_n else None,
    )
