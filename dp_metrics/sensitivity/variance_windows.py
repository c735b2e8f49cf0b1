"""Windows of a column: the least clipped and the least trimmed sums of squares, exactly."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import in_blocks
from dp_metrics.inputs.options import MAX_FLOAT, Floats, Range
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    VarianceAggregate,
    exact_moments,
    float_units,
    rounded_quotient,
    to_squared_units,
    to_units,
)

Places: TypeAlias = NDArray[np.intp]
Moments: TypeAlias = tuple[int, int]
"""Exact sums of values and of their squares."""
Depths: TypeAlias = Sequence[tuple[int, float, float]]
"""Ascending numbers of values, each with what so many smallest ones are at most, and largest at least."""

_SQUARES = 2 * UNIT_BITS  # squares are in units of 2^-2148
_LARGEST_WIDTH = 2.0**1000
_KEPT_BITS = 700
_LOST = 1e-180  # more than what a screen loses by that, and by what underflows
_BLOCK = 1 << 15  # so many values at a time: the windows of all of them would take many times their memory
_MOST_EXACT = 1 << 11  # so many windows are compared exactly, or else the centre moves on value by value


def clipped_squares(
    aggregate: VarianceAggregate,
    width: Fraction,
    in_order: Callable[[], Floats],
    depths: Depths = (),
) -> Fraction:
    """Return the least sum of min((x_i - m)^2, width^2) over all centres m, exactly.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Of any number of values.
    width : Fraction
        A float, at least 0: from there on a distance counts as the width.
    in_order : callable
        All values in ascending order: asked for only if the aggregate does not tell the result.
    depths : sequence of (int, float, float), default=()
        What is known of the values between the extreme ones.

    Notes
    -----
    A window is a set of consecutive sorted values. Its cost is the sum of the squared distances of its m
    values from their mean, and width^2 for each of the n - m others. The result is the least cost of all
    windows: from the mean of a window no value adds more than it costs, and from the best centre the values
    within the width are a window that costs no more than what they all add. So it is enough to look at the
    windows that the values within reach of a centre make as it moves from one end to the other, and no window
    too many does harm. Which values are within reach is decided exactly. Floats screen the windows, with a
    limit of their rounding errors, and those that remain in question are compared exactly.

    Where only the most extreme values are known, the centre moves from where it first reaches the lowest and
    the highest of the others, the core, to where it last does. Further away even the core adds at least what
    it adds there, because it lies on one side of the centre; or else `depths` may tell that it does.
    """
    n, reach = aggregate.n, float(width)
    if n == 0 or reach == 0.0:
        return Fraction(0)
    kept = aggregate.smallest.size
    if kept and float(aggregate.largest[0]) - float(aggregate.smallest[0]) <= reach * (1 - 2.0**-50):
        # from their mean all values are within reach
        return _least_cost(n, reach, [(n, aggregate.total, aggregate.squares)])
    if kept + aggregate.largest.size >= n:
        values = np.concatenate([aggregate.smallest, aggregate.largest[: n - kept][::-1]])
    else:
        by_tails = _by_tails(aggregate, reach, depths) if kept and reach <= _LARGEST_WIDTH else None
        if by_tails is not None:
            return by_tails
        values = in_order()
    return (_by_value if reach > _LARGEST_WIDTH else _by_window)(values, reach)


def _least_cost(n: int, width: float, windows: Iterable[tuple[int, int, int]]) -> Fraction:
    """Return the least cost of windows, each given by its size and the sums of its values and squares."""
    square = float_units(width) ** 2
    least, divisor = -1, 1
    for size, total, squares in windows:
        cost = size * (squares + (n - size) * square) - total * total
        if least < 0 or cost * divisor < least * size:
            least, divisor = cost, size
    return Fraction(least, divisor << _SQUARES)


def _least_clipped(
    windows: "_Windows", found: Iterable[tuple[Places, Places]], width: float, whole: Moments
) -> Fraction | None:
    """Return the least cost of windows, or None where floats leave too many in question.

    Parameters
    ----------
    windows : _Windows
        What floats tell of them.
    found : iterable of (ndarray, ndarray)
        How many of the smallest, and of the largest values each window drops.
    width : float
        Each value that a window drops costs its square.
    whole : (int, int)
        The sums of all values and of their squares.
    """
    exponent = math.frexp(width)[1]
    square = math.ldexp(width, -exponent) ** 2
    screened, most = [], np.inf
    windows.count_in(exponent)
    for low, high in found:
        spread, error = windows.spread(low, high)
        outside = (low + high) * square
        cost = spread + outside
        error += 2.0**-50 * cost
        most = np.fmin.reduce(cost + error, initial=most)
        # whatever is blurred costs at least what its values outside cost
        least = np.fmax(cost - error, outside * (1 - 2.0**-50))
        near = ~(least > most)
        screened.append((low[near], high[near], least[near]))
    lows, highs, costs = map(np.concatenate, zip(*screened, strict=True))
    near = ~(costs > most)
    pairs = sorted(set(zip(lows[near].tolist(), highs[near].tolist(), strict=True)))
    if len(pairs) > _MOST_EXACT:
        return None
    of_low, of_high = map(_sums_at, (windows.low, windows.high), zip(*pairs, strict=True))
    sums = ((windows.n - low - high, *_without(whole, of_low[low], of_high[high])) for low, high in pairs)
    return _least_cost(windows.n, width, sums)


def _without(whole: Moments, low: Moments, high: Moments) -> Moments:
    """Return the sums of what a window keeps of a whole, from those of both tails that it drops."""
    return whole[0] - low[0] - high[0], whole[1] - low[1] - high[1]


def _sums_at(values: Floats, places: Iterable[int]) -> dict[int, Moments]:
    """Return, for each place, the exact sums of the values before it and of their squares."""
    sums = {0: (0, 0)}
    for first, last in pairwise(sorted({0, *places})):
        total, squares = exact_moments(values[first:last])
        sums[last] = sums[first][0] + total, sums[first][1] + squares
    return sums


# ---- where only the most extreme values are known ----------------------------------------------------------


def _by_tails(aggregate: VarianceAggregate, width: float, depths: Depths) -> Fraction | None:
    """Return the result from sums and extremes, or None if they do not tell it.

    Notes
    -----
    All values but `most` on each side are the core; with its two ends these are the known ones. Windows are
    told from that of a centre in the middle of the core: only values in which they differ make a difference.
    """
    low, high = aggregate.smallest, aggregate.largest
    most = low.size - 1
    core = lowest, highest = float(low[most]), float(high[most])
    if Fraction(highest) - Fraction(lowest) > Fraction(width) * (2 if depths else 1):
        return None
    found = _dropped(low, high, width)
    inside = lowest + (highest - lowest) / 2
    base = (
        int(np.searchsorted(low[:most], inside - width)),
        int(np.searchsorted(-high[:most], -(inside + width))),
    )
    whole = aggregate.total, aggregate.squares
    kept = _without(whole, exact_moments(low[: base[0]]), exact_moments(high[: base[1]]))
    windows = _Windows(aggregate.n, low[:most], high[:most], base, kept)
    best = _least_clipped(windows, [found], width, whole)
    return best if best is not None and _core_decides(aggregate, core, width, best, depths) else None


def _dropped(low: Floats, high: Floats, width: float) -> tuple[Places, Places]:
    """Return how many smallest and largest values are beyond the width, for each centre where that changes.

    The centres are those of which the core is within the width. A value at that distance counts as inside.
    """
    most = low.size - 1
    places = np.arange(most + 1)
    # a centre at which a large value comes within reach, and one from which on a small value is beyond it
    left = np.searchsorted(low, _threshold(high, -2 * width))
    right = np.searchsorted(-high, -_threshold(low[:most], 2 * width))
    drops_low, drops_high = np.concatenate([left, places[1:]]), np.concatenate([places, right])
    inside = (drops_low <= most) & (drops_high <= most)
    return drops_low[inside], drops_high[inside]


def _threshold(values: Floats, step: float) -> Floats:
    """Return floats t such that a float is below the exact sum of a value and a step if it is below t.

    Of a positive step above the sum if it is above t.
    """
    sign = math.copysign(1.0, step)
    near = values + step
    back = near - values
    rest = (values - (near - back)) + (step - back)
    # Of an infinite sum the rest is NaN, and every float is on one side.
    return np.where(rest * sign < 0, np.nextafter(near, -sign * np.inf), near)


def _core_decides(
    aggregate: VarianceAggregate, core: Range, width: float, best: Fraction, depths: Depths
) -> bool:
    """Return whether the core adds at least the best cost to each centre from which an end of it is too far.

    Notes
    -----
    Let c be the nearest centre from which the lowest value of the core is no more than the width away, and
    let none of the core be further above c than that. There the core's sums tell what it adds. From further
    up it adds no less if all of it lies below c.

    Or else let d be the lowest of the `depths`. Up to the centre c_d = d + width only values below d are too
    far: at most k of the N of the core. These add a constant, and the others add more as the centre moves
    up, if it is above their mean. With the mean m and the variance v of the core, that of all but its k
    lowest is at most m + sqrt(v k / (N - k)) (Cauchy and Schwarz). From c_d on each value that is at most
    some depth adds at least what the depth adds to c_d, or the squared width, which is no less. The other
    side is alike.
    """
    tails = np.concatenate([aggregate.smallest[:-1], aggregate.largest[:-1]])
    in_tails, of_tails = exact_moments(tails)
    size, total, squares = aggregate.n - tails.size, aggregate.total - in_tails, aggregate.squares - of_tails
    reach, cost, divisor = float_units(width), best.numerator << _SQUARES, best.denominator
    low, high = map(float_units, core)
    sides = (
        (low, high, total, [(rank, float_units(value)) for rank, value, _ in depths]),
        (-high, -low, -total, [(rank, -float_units(value)) for rank, _, value in depths]),
    )
    for first, last, of_core, known in sides:
        centre = first + reach
        if cost > divisor * (size * centre * centre - 2 * centre * of_core + squares):
            return False
        if centre >= last:
            continue
        below = aggregate.smallest.size - 1  # so many of the values are no part of the core
        few, above = known[0][0] - below, size * centre - of_core
        if above < 0 or above**2 * (size - few) < (size * squares - of_core**2) * few:
            return False
        further, least = known[0][1] + reach, 0
        for rank, value in known:
            least += (rank - below) * max(further - value, 0) ** 2
            below = rank
        if cost > divisor * least:
            return False
    return True


# ---- where all values are known ----------------------------------------------------------------------------


def _by_window(x: Floats, width: float) -> Fraction:
    """Return the result from all values in ascending order.

    Windows are told from the place in the middle, so that far values blur only those that hold them.
    """
    n = x.size
    windows = _Windows(n, x, None, (n // 2, n - n // 2), (0, 0))
    found = (_windows(x, first, width) for first in range(0, n, _BLOCK))
    best = _least_clipped(windows, found, width, exact_moments(x))
    return _by_value(x, width) if best is None else best


def _windows(x: Floats, first: int, width: float) -> tuple[Places, Places]:
    """Return how many values each window drops, of which one of a block is the last or the first."""
    block = x[first : first + _BLOCK]
    places = np.arange(first, first + block.size)
    left = np.searchsorted(x, _threshold(block, -2 * width))
    right = np.searchsorted(x, _threshold(block, 2 * width), side="right")
    starts, ends = np.concatenate([left, places + 1]), np.concatenate([places + 1, right])
    inside = starts < ends
    return starts[inside], x.size - ends[inside]


def _by_value(x: Floats, width: float) -> Fraction:
    """Return the result from all values in ascending order, of which a window at a time is kept in sums."""
    return _least_cost(len(x), width, _moving_window(x, width))


def _moving_window(x: Floats, width: float) -> Iterator[tuple[int, int, int]]:
    """Yield the size and the exact sums of each window that a centre makes as it moves up."""
    reach = float_units(width)
    size = total = squares = 0
    leaving = iter(_units(x))
    first = next(leaving)
    for value in _units(x):
        while size and value - first > 2 * reach:
            size, total, squares = size - 1, total - first, squares - first * first
            first = next(leaving)
            if size:
                yield size, total, squares
        size, total, squares = size + 1, total + value, squares + value * value
        yield size, total, squares
    while size > 1:
        size, total, squares = size - 1, total - first, squares - first * first
        first = next(leaving)
        yield size, total, squares


def _units(x: Floats) -> Iterable[int]:
    """Yield exact values one by one, without keeping them."""
    for block in in_blocks(x):
        yield from to_units(block)


def _float(number: int, bits: int) -> float:
    """Return number / 2**bits to a relative 2^-53 or within 2^-700; what is too large is infinite."""
    lost = max(bits - _KEPT_BITS, 0)
    try:
        return math.ldexp(float(number >> lost), lost - bits)
    except OverflowError:
        return math.inf if number > 0 else -math.inf  # `copysign` would convert the number


# ---- windows of each size ----------------------------------------------------------------------------------


def least_spreads(aggregate: VarianceAggregate, ranks: int) -> list[int]:
    """Return least variances of what remains when 0, 1, ... values are dropped.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Of one value or more.
    ranks : int
        How many values to drop at most.

    Returns
    -------
    list of int
        At place l the least m^2 Var of the m = n - l values that remain, over the choices of what is dropped,
        in units of 2**-2148. Where it is 0 for ever, the list ends.

    Notes
    -----
    The best window consists of consecutive sorted values: it drops j smallest and l - j largest ones. Its
    sums are those of the core, which no window near the centre drops, plus what it keeps of the two tails,
    all exact integers, in units of 2^-1074. The unit is the same whatever the values: a larger one that
    divides all of them would make shorter integers, and the time would tell whether one record has bits that
    are smaller. Floats screen the windows of one rank; those that rounding errors leave in question are
    compared exactly.
    """
    n = aggregate.n
    low, high = aggregate.smallest[:ranks], aggregate.largest[:ranks]
    sums = _prefix_sums(low), _prefix_sums(high)
    base = min(ranks, n // 2), min(ranks, n - n // 2)
    dropped = ((totals[drops], squares[drops]) for (totals, squares), drops in zip(sums, base, strict=True))
    windows = _Windows(n, low, high, base, _without((aggregate.total, aggregate.squares), *dropped))
    spreads = _spreads(aggregate, sums, [0], [0])
    last = min(ranks, n - 2)  # one value has no variance
    for first in range(1, last + 1, 256):
        block = np.arange(first, min(first + 256, last + 1))
        rows, drops = np.nonzero(windows.screen(block))
        values = _spreads(aggregate, sums, block[rows].tolist(), drops.tolist())
        starts = np.searchsorted(rows, np.arange(block.size + 1)).tolist()
        values = [min(values[start:end]) for start, end in pairwise(starts)]
        if 0 in values:  # of equal values: all windows inside have none either
            return spreads + values[: values.index(0)]
        spreads += values
    return spreads


_PrefixSums: TypeAlias = tuple[list[int], list[int]]
"""Sums of the first values, and of their squares, from none of the values on."""


def _spreads(
    aggregate: VarianceAggregate,
    sums: tuple[_PrefixSums, _PrefixSums],
    ranks: Sequence[int],
    drops: Sequence[int],
) -> list[int]:
    """Return m^2 Var of the windows that drop `ranks` values, `drops` of them smallest."""
    n, total, squares = aggregate.n, aggregate.total, aggregate.squares
    (low, low_squares), (high, high_squares) = sums
    return [
        (n - rank) * (squares - low_squares[j] - high_squares[rank - j])
        - (kept := total - low[j] - high[rank - j]) * kept
        for rank, j in zip(ranks, drops, strict=True)
    ]


# ---- the screen --------------------------------------------------------------------------------------------


class _Windows:
    """Floats that screen windows of sorted values: those without their j smallest and k largest.

    They are counted from a centre, which changes no variance: near the middle of the data it keeps them
    accurate.

    Parameters
    ----------
    n : int
        Number of all values.
    low, high : ndarray
        The smallest values in ascending order, and the largest in descending order, as far as they are known.
        No `high`: all are known, and what the upper tail keeps is what the lower one does, less the base.
    base : (int, int)
        The j and k of the window from which all others are told.
    sums : (int, int)
        The exact sums of its values, and of their squares.
    """

    def __init__(
        self, n: int, low: Floats, high: Floats | None, base: tuple[int, int], sums: Moments
    ) -> None:
        self.n, self.low, self._base = n, low, base
        self.high, self._all_known = (low[::-1] if high is None else high), high is None
        (total, squares), size = sums, n - sum(base)
        self._centre = rounded_quotient(total, size << UNIT_BITS) if size else float(low[base[0] - 1])
        centre = float_units(self._centre)
        self._sums = total - size * centre, squares - centre * (2 * total - size * centre)
        self._all_hold_base = base[0] >= low.size and base[1] >= self.high.size
        self._exponent = 1 << 20  # far from all: nothing is counted yet

    def count_in(self, exponent: int) -> None:
        """Add what each tail keeps, and the base, in units of 2^exponent: floats, which may be infinite."""
        self._exponent = exponent
        total, squares = self._sums
        bits = UNIT_BITS + exponent
        self._of_base = _float(total, bits), _float(squares, 2 * bits)
        self._kept_low = self._kept_of(self.low, self._base[0])
        if not self._all_known:
            self._kept_high = self._kept_of(self.high, self._base[1])

    def _kept_of(self, values: Floats, keep: int) -> list[Floats]:
        """Return what a tail keeps: sums of its values and of their squares, from the base outwards."""
        y = values - self._centre
        np.ldexp(y, -self._exponent, out=y)
        return [_kept(y, keep), _kept(np.square(y, out=y), keep)]

    def spread(self, low: Places, high: Places) -> tuple[Floats, Floats]:
        """Return m Var of windows that drop so many values, and what that may be off by.

        Notes
        -----
        With values centred and scaled, a window of m values has sum T, sum of squares Q and m Var = Q -
        T^2/m. T and Q are sums of three floats: of the base, and of what each tail keeps, which is negative
        where a window drops some of the base as well. Let T+ and Q+ be the sums of the sizes of all that is
        added. A tail of r values is added in r roundings, and each value is rounded once, its square three
        times. So with u = 2^-53 and s = r + 8, T and Q have errors of at most s u T+ and s u Q+, and that of
        Q - T^2/m is below s u (1.5 Q+ + 3.25 |T| T+/m) + s^2 u^2 T+^2/m. The margin is more than twice that,
        and adds more than what can be lost below 2^-700. If no window drops any of the base, then Q+ = Q and
        T+ <= sqrt(m Q): the margin is 12 s u Q.
        """
        size = np.maximum(self.n - low - high, 1)
        lost = 2.0**-52 * (max(self.low.size, self.high.size) + 8)
        (total, total_size), (squares, squares_size) = (self._add_parts(power, low, high) for power in (0, 1))
        spread = squares - total * total / size
        if self._all_hold_base:
            return spread, lost * 6.0 * squares + _LOST
        rounding = 2.0 * squares_size + (4.0 * np.abs(total) + lost * total_size) * total_size / size
        return spread, lost * rounding + _LOST

    def _add_parts(self, power: int, low: Places, high: Places) -> tuple[Floats, Floats]:
        """Return the sum of the three parts of each window, and that of their sizes."""
        base, of_low = self._of_base[power], _at(self._kept_low[power], low)
        if self._all_known:  # sums of their own would take twice the memory
            of_high = -_at(self._kept_low[power], self.n - high)
        else:
            of_high = _at(self._kept_high[power], high)
        total = of_high + (of_low + base)
        if self._all_hold_base:
            return total, total  # nobody reads the second
        return total, np.abs(of_high) + (np.abs(of_low) + abs(base))

    def screen(self, block: Places) -> NDArray[np.bool_]:
        """Return which windows of each rank may have the least variance.

        The unit follows the narrowest window of the first rank, so that far outliers, once dropped, do not
        blur the rest. A window whose sums overflow is told by its two ends: m Var is at least half the square
        of their distance.
        """
        self._count_near(int(block[0]))
        j = np.arange(int(block[-1]) + 1)
        dropped_high = block[:, np.newaxis] - j
        valid = dropped_high >= 0
        spread, error = self.spread(j, dropped_high)
        best = np.fmin.reduce(spread + error, axis=1, keepdims=True, where=valid, initial=np.inf)
        # the end after the last known one is unknown: NaN
        low, high = (np.ldexp(np.append(end, np.nan), -self._exponent) for end in (self.low, self.high))
        distance = _at(high, dropped_high) - low[j]
        hopeless = (spread - error > best) | (distance * distance * 0.499 > best)
        return valid & ~hopeless

    def _count_near(self, rank: int) -> None:
        """Make the values of the narrowest window of this rank at most 1, if they are far from that."""
        last = self.low.size - 1
        j = np.arange(max(rank - last, 0), min(rank, last) + 1)
        exponent = -UNIT_BITS
        if j.size:
            ends = np.maximum(np.abs(self.low[j] - self._centre), np.abs(self.high[rank - j] - self._centre))
            exponent = max(math.frexp(ends.min(initial=MAX_FLOAT))[1], exponent)
        # 2^400 times smaller squares are still far above what underflows
        if abs(exponent - self._exponent) > 200:
            self.count_in(exponent)


def _prefix_sums(values: Floats) -> _PrefixSums:
    units, squares = to_units(values), to_squared_units(values)
    return list(accumulate(units, initial=0)), list(accumulate(squares, initial=0))


def _kept(values: Floats, keep: int) -> Floats:
    """Return for each j the sum of the first `keep` values less that of the first j, added outwards."""
    sums = np.zeros(values.size + 1)  # filled in place: all values may be here
    np.cumsum(values[:keep][::-1], out=sums[:keep][::-1])
    np.cumsum(values[keep:], out=sums[keep + 1 :])
    np.negative(sums[keep + 1 :], out=sums[keep + 1 :])
    return sums


def _at(values: Floats, number: Places) -> Floats:
    """Return the values with these numbers, and anything where the number is negative."""
    return np.take(values, number, mode="clip")
