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
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    common_bits,
    exact_sum,
    rounded_quotient,
    rounded_quotients,
    to_units,
)
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds
from dp_metrics.sensitivity.variance_windows import Middle, clipped_squares


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
        values = np.take(x, places, mode="clip")
        values[places < 0], values[places >= n] = ends
        return values

    below, above = _moved_means(x, total, at, min(ranks, (n - 1) // 2), ranks)
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
    x: Floats, total: int, at: Callable[[Places], Floats], dropped: int, ranks: int
) -> tuple[Floats, Floats]:
    """Return the means of the middle values moved down, and up, by so many places; each is rounded once."""
    n = x.size
    kept = n - 2 * dropped
    first = total - exact_sum(x[:dropped]) - exact_sum(x[n - dropped :])
    found = []
    for side, edge in ((-1, n - 1 - dropped), (1, dropped)):
        # what leaves the middle with each move, and what comes in
        places = edge + side * np.arange(ranks)
        leaves, comes = at(places), at(places + side * kept)
        known = int(np.isfinite(comes).cumprod().sum())
        moved = np.concatenate([comes[:known], leaves[:known]])
        bits = common_bits(moved, first)  # in the unit that all have in common the whole numbers are short
        units = to_units(moved, bits)
        steps = map(operator.sub, units[:known], units[known:])
        means = np.full(ranks + 1, side * np.inf)
        sums = accumulate(steps, initial=first >> bits)
        means[: known + 1] = rounded_quotients(sums, kept << (UNIT_BITS - bits))
        found.append(means)
    return found[0], found[1]


class _Column:
    """All values of a column, as far in order as they were asked for."""

    def __init__(self, values: Callable[[], Floats]) -> None:
        self._values = values
        self.middle: Middle | None = None  # all but a tenth of the values at either end

    @cached_property
    def values(self) -> Floats:
        """All values."""
        return self._values()

    @cached_property
    def in_order(self) -> Floats:
        """All in ascending order."""
        return np.sort(self.values)

    def in_order_at(self, runs: list[tuple[int, int]]) -> Floats:
        """Return an array as long as the column, with what belongs at some runs of places; the rest is 0."""
        size = sum(last + 1 - first for first, last in runs)
        few = size * _SORTED_PART <= self.values.size and "in_order" not in vars(self)
        found = values_at(self.values, runs) if few else None
        return self.in_order if found is None else found


_BIN_BITS = 16
_SAMPLE = 1 << 10
_TAIL = 10  # values of the sample beyond either end of the bins
_SIZE_BITS = np.int64((1 << 63) - 1)


def values_at(values: Floats, runs: list[tuple[int, int]]) -> Floats | None:
    """Return an array as long as the values, with what belongs at some runs of places in ascending order.

    Returns
    -------
    ndarray or None
        Elsewhere 0. None if half of the values would have to be put in order.

    Notes
    -----
    The bits of floats, read as whole numbers, are in the order of the floats, if those of negative floats are
    flipped. The first bits number the bins in which the values are counted: so only values in bins that hold
    one of the places are put in order. The bins lie where those of a sample do, so that no single value makes
    them wide.
    """
    bits = values.view(np.int64)
    keys = bits ^ ((bits >> 63) & _SIZE_BITS)
    sample = np.sort(keys[:: max(values.size // _SAMPLE, 1)])
    tail = min(_TAIL, (sample.size - 1) // 2)
    first, last = int(sample[tail]), int(sample[-1 - tail])
    shift = max((last - first).bit_length() - _BIN_BITS, 0)
    keys >>= shift
    numbers = np.clip(keys, (first >> shift) - 1, (last >> shift) + 1, out=keys)
    numbers -= (first >> shift) - 1
    counts = np.bincount(numbers)
    ends = np.cumsum(counts)
    is_wanted = np.zeros(counts.size, dtype=np.bool_)
    bins = np.searchsorted(ends, runs, side="right")
    for one, other in bins:
        is_wanted[one : other + 1] = True
    kept = np.cumsum(counts * is_wanted)
    if 2 * int(kept[-1]) > values.size:
        return None
    chosen = np.sort(values[is_wanted[numbers].nonzero()])
    found = np.zeros(values.size)
    for (first, last), (one, _) in zip(runs, bins, strict=True):
        dropped = int(ends[one] - kept[one])  # values of bins before it that hold none of the places
        found[first : last + 1] = chosen[first - dropped : last + 1 - dropped]
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
    column = _Column(values)

    def at_ranks(k: int, ranks: int) -> Ranks:
        n = aggregate.n
        known = column.in_order_at(places_of_distances(n, k, ranks)) if n else np.empty(0)
        outside = _depths(n, k)[1]
        if outside < n - outside:
            column.middle = Middle(
                column.values, outside, float(known[outside]), float(known[n - 1 - outside])
            )
        return far_distances(known, aggregate.total, ends, limit, k, ranks)

    def clipped(width: float) -> ClippedSum:
        exact = Fraction(width)
        total, most = clipped_squares(aggregate, exact, lambda: column.in_order, column.middle), exact * exact
        unit = Fraction(1, total.denominator * most.denominator)
        return ClippedSum(total.numerator * most.denominator, most.numerator * total.denominator, unit)

    return Extremes(
        limit,
        are_distances=True,
        at_ranks=at_ranks,
        clipped=clipped,
        private_n=aggregate.n if private_n else None,
    )
