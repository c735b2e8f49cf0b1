"""Output bounds of a variance, how far the extreme values lie out, and sums that tell it.

A record at t between 0 and 1 adds (1 - t)^2, 2 t (1 - t) and t^2 to three sums, which are 1 together, and the
sums tell the variance (the Bezier mechanism, arXiv:2509.04919).
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, repeat

import numpy as np

from dp_metrics.inputs.arrays import in_blocks
from dp_metrics.inputs.options import MAX_FLOAT, Floats, Range
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    VarianceAggregate,
    float_units,
    rounded_quotient,
    rounded_quotients,
    to_units,
)
from dp_metrics.sensitivity.output_bounds import (
    FINENESS,
    BoundsFacts,
    ClippedSum,
    Extremes,
    OutputBounds,
    Ranks,
    Sums,
    padded,
)
from dp_metrics.sensitivity.variance_windows import Depths, Places, clipped_squares, least_spreads

_TINY = math.ulp(0.0)  # a sensitivity must not be rounded down to none


_SQUARES = 1 << 2 * UNIT_BITS  # so many units of squares are 1


def variance_facts(n: int | None, bounds: Range | None, ranks: int) -> BoundsFacts:
    """Return what is public of the output bounds of the variance of n values; None: of a private number.

    A variance moves as a mean of n terms: the l values furthest from the mean make at least l/n of it, and
    whoever puts l others on the mean leaves at most f (1 - l/n); U^l rises by its sensitivity with each rank.
    """
    limit, sensitivity, record_limit = MAX_FLOAT, None, None
    if bounds is not None:
        width = _squared_width(bounds)
        limit, record_limit = rounded_quotient(width, 4 * _SQUARES), rounded_quotient(width, _SQUARES)
        if n is not None:  # the variance of one record is 0 whatever it is
            sensitivity = max(rounded_quotient(width * (n - 1), n * n * _SQUARES), _TINY) if n > 1 else 0.0
    return BoundsFacts(
        output_range=(0.0, limit),
        monotonic=False,
        n=n,
        sensitivity=sensitivity,
        record_limit=record_limit,
        mean_ranks=0 if n is None else min(ranks, n),
    )


def _squared_width(bounds: Range) -> int:
    """Return the square of the public width, in units of 2**-2148."""
    low, high = map(float_units, bounds)
    return (high - low) ** 2


def variance_bounds(aggregate: VarianceAggregate, ranks: int, private_n: bool) -> OutputBounds:
    """Return the output bounds of the population variance at so many ranks, or at all that are known.

    When records are replaced L^l = (n-l)/n times the least variance of n-l consecutive sorted values. With
    bounds [a, b], U^l = min(Var + l (b-a)^2 (n-1)/n^2, (b-a)^2/4). L and U can move in opposite directions
    between neighbours, so variance is not monotonic, whatever section 4.1 of the paper says.

    When records are added or removed L^l = min over a of SS_a / (n + l - 2a), where SS_a is the least sum of
    squares about the mean of n - a consecutive sorted values, to which l - a copies of their mean are added.
    With bounds [a, b], W = b - a and SS the sum of squares about the mean, U^l = min(W^2/4, max((SS + l W^2)
    /(n + l), SS/(n - l))), and W^2/4 from l = n on.

    References
    ----------
    Lemmas 5.1 to 5.3 of the paper; the upper bound here is tighter.
    """
    n, ranks = aggregate.n, min(ranks, aggregate.capacity)
    ranks = ranks if private_n else min(ranks, n)
    facts = variance_facts(None if private_n else n, aggregate.bounds, ranks)
    limit = facts.output_range[1]
    value, lower, highest = 0.0, np.zeros(ranks), np.empty(0)
    if n > 0:
        spreads, scale = least_spreads(aggregate, min(ranks, n)), n * _SQUARES
        value = rounded_quotient(spreads[0], n * scale)
        if private_n:
            lower = _least_diluted(spreads, n, ranks)
        else:
            lower = padded(rounded_quotients(spreads[1:], range((n - 1) * scale, 0, -scale)), ranks)
    if aggregate.bounds is not None:
        width = _squared_width(aggregate.bounds)
        spread = n * aggregate.squares - aggregate.total**2  # n SS
        within = range(1, min(ranks + 1, n) if private_n else ranks + 1)
        if private_n:
            sizes = [n * (n + rank) * _SQUARES for rank in within]
            added = rounded_quotients((spread + n * rank * width for rank in within), sizes)
            removed = rounded_quotients(repeat(spread), (n * (n - rank) * _SQUARES for rank in within))
            highest = np.maximum(added, removed)
        else:
            rise = width * (n - 1)
            highest = rounded_quotients((spread + rank * rise for rank in within), n * n * _SQUARES)
    return facts.bounds(value, lower, padded(np.minimum(highest, limit), ranks, limit))


def _least_diluted(spreads: list[int], n: int, ranks: int) -> Floats:
    """Return min over a <= l of spread_a / ((n - a) (n + l - 2a)) for each rank l, correctly rounded.

    The inverse of a quotient is a straight line over l, and the more values are dropped the steeper, because
    less is left of the sum of squares: once dropping more values pays, it does so at all later ranks, and the
    best a never falls. So that of the middle rank divides the choice for those before it from that for those
    behind it. A rank that can drop as many values as leave no spread is 0.
    """
    lower = np.zeros(ranks)

    def of_size(a: int, rank: int) -> int:
        return (n - a) * (n + rank - 2 * a)

    def find(first: int, last: int, fewest: int, most: int) -> None:
        """Set the bounds of the ranks from one to another, for which so many values are to be dropped."""
        if first > last:
            return
        rank = (first + last) // 2
        best, least, size = fewest, spreads[fewest], of_size(fewest, rank)
        for a in range(fewest + 1, min(most, rank) + 1):
            if spreads[a] * size < least * of_size(a, rank):
                best, least, size = a, spreads[a], of_size(a, rank)
        lower[rank - 1] = rounded_quotient(least, size * _SQUARES)
        find(first, rank - 1, fewest, best)
        find(rank + 1, last, best, most)

    # the spreads end where one more value that is dropped leaves none
    find(1, min(ranks, len(spreads) - 1), 0, len(spreads) - 1)
    return lower


_LARGEST_SUM = 1e300


def variance_sums(aggregate: VarianceAggregate) -> Sums:
    """Return the three sums of a variance of values with public bounds.

    Rounding two of them down, and giving the rest to the third, moves each by less than a step: together a
    record moves them by at most two steps more.
    """
    assert aggregate.bounds is not None
    low, high = to_units(np.array(aggregate.bounds))
    n, width = aggregate.n, high - low
    total = aggregate.total - n * low
    squares = aggregate.squares - low * (2 * aggregate.total - n * low)
    last = squares * FINENESS // width**2
    first = (squares - 2 * width * total + n * width**2) * FINENESS // width**2
    span = rounded_quotient(width, 1 << UNIT_BITS)
    return Sums(
        (first, n * FINENESS - first - last, last),
        FINENESS + 2,
        partial(_bezier_variance, width=span),
    )


def _bezier_variance(first: Floats, middle: Floats, last: Floats, *, width: float) -> Floats:
    # noise may be beyond all floats at the smallest epsilon: sums and quotients of these are finite
    first, middle, last = np.clip([first, middle, last], -_LARGEST_SUM, _LARGEST_SUM)
    whole = np.maximum(first + middle + last, FINENESS)
    mean, square = np.clip((middle / 2 + last) / whole, 0.0, 1.0), last / whole
    # a distribution on [0, 1] has the most variance, given its mean, if it lives on the ends
    share = np.clip(square - mean**2, 0.0, mean * (1.0 - mean))
    return share * width**2  # which is finite: a mechanism that adds noise refuses wider bounds


_SORTED_PART = 8  # where more than this part of the values has to be in order, all are sorted


_BINS = 1 << 14


_SAMPLE = 1 << 10  # so many values tell where the bins begin and end


_TENTHS = range(6)


_WEIGHTS = [1 / math.sqrt(1 - t / 10) for t in _TENTHS]


def far_distances(x: Floats, total: int, ends: Range, limit: float, k: int, ranks: int) -> Ranks:
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
    # a place beyond both infinite ends has no distance
    lower = _largest(at(n - i - moves) - above, below - at(i - 1 + moves), limit)
    upper = _largest(at(n - i + few) - below[:k], above[:k] - at(i - 1 - few), limit)
    return float(lower[0]), lower[1:], padded(upper[1:], ranks, limit)


def _largest(far_above: Floats, far_below: Floats, limit: float) -> Floats:
    """Return the largest weighted distance at each rank, at least 0."""
    far = np.fmax(far_above, far_below) * np.array(_WEIGHTS)[:, np.newaxis]
    return np.minimum(np.fmax.reduce(far, axis=0, initial=0.0), limit)


def _depths(n: int, k: int) -> list[int]:
    return [max(k, n * t // 10) for t in _TENTHS]


def places_of_distances(n: int, k: int, ranks: int) -> list[tuple[int, int]]:
    """Return the first and the last place of each run of values that the distances look at."""
    k, *further = _depths(n, k)
    runs = [(0, ranks + max(ranks, k)), *((i - k, i + ranks) for i in further)]
    runs += [(n - 1 - last, n - 1 - first) for first, last in runs]
    return [(max(first, 0), min(last, n - 1)) for first, last in runs if first < n and last >= 0]


def _moved_means(
    total: int, at: Callable[[Places], Floats], n: int, dropped: int, ranks: int
) -> tuple[Floats, Floats]:
    """Return the means of the middle values moved down, and up, by so many places; each is rounded once."""
    # what is left out at either end, and as many values further in and further out as a move may reach
    around = np.arange(-ranks, ranks)
    values = np.concatenate([at(dropped - 1 - around), at(n - dropped + around)])
    known = np.where(np.isfinite(values), values, 0.0)
    # from the innermost value outwards
    low, high = to_units(known[: 2 * ranks]), to_units(known[2 * ranks :])
    first = total - sum(low[ranks : ranks + dropped]) - sum(high[ranks : ranks + dropped])
    weight = (n - 2 * dropped) << UNIT_BITS

    def moved(come: list[int], end: float, leave: list[int]) -> Floats:
        moves = ranks if math.isfinite(end) else dropped
        # what comes in with each move, and what leaves the middle
        steps = map(operator.sub, come[ranks : ranks + moves], reversed(leave[:ranks]))
        means = np.full(ranks + 1, end)
        means[: moves + 1] = rounded_quotients(accumulate(steps, initial=first), weight)
        return means

    return moved(low, values[2 * ranks - 1], high), moved(high, values[-1], low)


def in_order_at(values: Floats, runs: list[tuple[int, int]], limits: Range) -> Floats | None:
    """Return an array with the clipped values that belong at some runs of places in ascending order.

    Values are counted in bins, and only those of the bins that reach into a run are sorted. Differences and
    products of floats, and whole parts, never reverse an order: so a value of a bin never belongs behind one
    of the next bin, however the arithmetic is rounded. None where bins hold too many: then all are to be
    sorted.
    """
    n = values.size
    if sum(last + 1 - first for first, last in runs) * _SORTED_PART >= n:
        return None
    sample = np.sort(values[:: n // _SAMPLE + 1])
    low, high = sample[sample.size // 200], sample[-1 - sample.size // 200]
    scale = _BINS / (high - low)
    if not 0.0 < scale < math.inf:
        return None
    bins = [np.clip((block - low) * scale, 0, _BINS - 1).astype(np.int16) for block in in_blocks(values)]
    ends = np.cumsum(sum(np.bincount(block, minlength=_BINS) for block in bins))
    is_wanted = np.zeros(_BINS, dtype=np.bool_)
    for first, last in np.searchsorted(ends, runs, side="right").tolist():
        is_wanted[first : last + 1] = True
    wanted = [
        block[is_wanted.take(of_block).nonzero()]
        for block, of_block in zip(in_blocks(values), bins, strict=True)
    ]
    if sum(map(len, wanted)) * _SORTED_PART > n:
        return None
    found, some = np.zeros(n), np.clip(np.sort(np.concatenate(wanted)), *limits)
    sizes = np.diff(ends, prepend=0) * is_wanted
    # further behind by the values of other bins
    found[np.arange(some.size) + np.repeat(ends - np.cumsum(sizes), sizes)] = some
    return found


def width_of(bounds: Range | None) -> float:
    """Return the width of public bounds, which no distance exceeds."""
    return MAX_FLOAT if bounds is None else min(bounds[1] - bounds[0], MAX_FLOAT)


def variance_extremes(
    aggregate: VarianceAggregate, values: Callable[[], Floats], *, private_n: bool
) -> Extremes:
    """Return the distances of a variance, of which `values` returns all values."""
    ends, limit = aggregate.bounds or (-math.inf, math.inf), width_of(aggregate.bounds)
    all_values = cache(values)  # not yet clipped
    in_order = cache(lambda: np.clip(np.sort(all_values()), *ends))
    depths: Depths = ()  # nothing is known of them before `at_ranks`

    def at_ranks(k: int, ranks: int) -> Ranks:
        nonlocal depths
        n = aggregate.n
        known = in_order_at(all_values(), places_of_distances(n, k, ranks), ends)
        known = in_order() if known is None else known
        depths = [(i, float(known[i - 1]), float(known[n - i])) for i in _depths(n, k)[1:] if i <= n]
        return far_distances(known, aggregate.total, ends, limit, k, ranks)

    def clipped(width: float) -> ClippedSum:
        exact = Fraction(width)
        most = exact * exact
        return clipped_squares(aggregate, exact, in_order, depths) / most, most

    return Extremes(at_ranks, clipped, aggregate.n if private_n else None)
