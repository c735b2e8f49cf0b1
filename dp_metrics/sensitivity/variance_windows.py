"""Windows of a column: the least clipped and the least trimmed sums of squares, exactly."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import MAX_FLOAT, Floats
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    VarianceAggregate,
    exact_moments,
    float_units,
    in_blocks,
    rounded_quotient,
    to_squared_units,
    to_units,
)

Places: TypeAlias = NDArray[np.intp]
Middle: TypeAlias = Callable[[], "MiddleValues"]

_SQUARES = 2 * UNIT_BITS  # squares are in units of 2^-2148
_LARGEST_WIDTH = 2.0**1000
_FAR = 4.0  # in widths: no window reaches so far from its centre
_LOST = 1e-200  # more than what underflows
_KEPT_BITS = 700
_BLOCK = 1 << 16  # so many values at a time: the windows of all of them would take many times their memory
_MOST_EXACT = 1 << 10  # so many windows are compared exactly, or else the centre moves on value by value


def clipped_squares(
    aggregate: VarianceAggregate,
    width: Fraction,
    in_order: Callable[[], Floats],
    middle: Middle | None = None,
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
    middle : callable or None, default=None
        What is known of the middle values: asked for only if the aggregate does not tell the result.

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
    it adds there, because it lies on one side of the centre; or else `middle` may tell that it does.
    """
    n, reach = aggregate.n, float(width)
    if n == 0 or reach == 0.0:
        return Fraction(0)
    kept = aggregate.smallest.size
    if kept and float(aggregate.largest[0]) - float(aggregate.smallest[0]) <= reach * (1 - 2.0**-50):
        best = _Least(n, reach)  # from their mean all values are within reach
        best.look(n, aggregate.total, aggregate.squares)
        return best.found()
    if kept + aggregate.largest.size >= n:
        values = np.concatenate([aggregate.smallest, aggregate.largest[: n - kept][::-1]])
    else:
        by_tails = _by_tails(aggregate, reach, middle) if kept and reach <= _LARGEST_WIDTH else None
        if by_tails is not None:
            return by_tails
        values = in_order()
    return (_by_value if reach > _LARGEST_WIDTH else _by_window)(values, reach)


class _Least:
    """The least of exact costs."""

    def __init__(self, n: int, width: float) -> None:
        self._n, self._square = n, float_units(width) ** 2
        self._cost, self._size = -1, 1

    def look(self, size: int, total: int, squares: int) -> None:
        """Look at a window of this size, given the sums of its values and of their squares in units."""
        cost = size * (squares + (self._n - size) * self._square) - total * total
        if self._cost < 0 or cost * self._size < self._cost * size:
            self._cost, self._size = cost, size

    def exceeds(self, squares: int) -> bool:
        """Return whether the least cost is larger than so many squared units."""
        return self._cost > squares * self._size

    def found(self) -> Fraction:
        """Return the least cost."""
        return Fraction(self._cost, self._size << _SQUARES)


# ---- where only the most extreme values are known ----------------------------------------------------------


def _by_tails(aggregate: VarianceAggregate, width: float, middle: Middle | None) -> Fraction | None:
    """Return the result from sums and extremes, or None if they do not tell it.

    Notes
    -----
    All values but `most` on each side are the core; with its two ends these are the known ones. Windows are
    compared with one of them, that of a centre in the middle of the core: only values in which they differ
    make a difference. In units of 2^e, which is from 1 to 2 widths, and about the mean of that window, values
    of all windows are below 3, since their centres, and those of that window, are within the width of the
    core.
    """
    n, low, high = aggregate.n, aggregate.smallest, aggregate.largest
    most = low.size - 1
    ends = [float(low[most]), float(high[most])]
    gap = ends[1] - ends[0]
    on_one_side = gap <= width and float_units(ends[1]) - float_units(ends[0]) <= float_units(width)
    if not on_one_side and (middle is None or not _core_only_rises(middle(), aggregate, width)):
        return None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        drops_low, drops_high = _dropped(low, high, width)
        inside = ends[0] + gap / 2
        j0 = int(np.searchsorted(low[:most], inside - width))
        k0 = int(np.searchsorted(-high[:most], -(inside + width)))
        dropped = to_units(np.concatenate([low[:j0], high[:k0]]))
        size = n - j0 - k0
        total = aggregate.total - sum(dropped)
        squares = aggregate.squares - sum([unit * unit for unit in dropped])
        centre = rounded_quotient(total, size << UNIT_BITS)
        exponent = math.frexp(width)[1]
        reach = math.ldexp(width, -exponent)
        square = reach * reach
        y = np.ldexp(np.stack([low, high]) - centre, -exponent)
        np.clip(y, -_FAR, _FAR, out=y)
        units = float_units(centre)
        rest = _float(total - size * units, UNIT_BITS + exponent)  # the centre is rounded
        spread = _float(squares - units * (2 * total - size * units), 2 * (UNIT_BITS + exponent))
        # sums over the values of each tail up to its 0th, 1st, ...
        sums = np.zeros((2, 2, most + 1))
        np.cumsum(y[:, :most], axis=1, out=sums[0, :, 1:])
        np.cumsum(np.square(y[:, :most]) - square, axis=1, out=sums[1, :, 1:])
        more, cost = ((one[0, j0] + one[1, k0]) - (one[0, drops_low] + one[1, drops_high]) for one in sums)
        more = more + rest
        mean = more / (n - drops_low - drops_high)
        cost -= more * mean
        sizes = float(np.abs(y).sum()) + abs(rest)
        steepest = float(np.abs(mean).max())
        margin = (
            2.0**-47 * (most + 16) * (float(np.square(y).sum()) + 2 * (most + 1) + steepest * sizes) + _LOST
        )
        near = cost <= cost.min() + 2 * margin
    pairs = sorted(set(zip(drops_low[near].tolist(), drops_high[near].tolist(), strict=True)))
    last_low, last_high = (max(drops) for drops in zip(*pairs, strict=True))
    low_sums, high_sums = _prefix_sums(low[:last_low]), _prefix_sums(high[:last_high])
    best = _Least(n, width)
    for j, k in pairs:
        best.look(
            n - j - k,
            aggregate.total - low_sums[0][j] - high_sums[0][k],
            aggregate.squares - low_sums[1][j] - high_sums[1][k],
        )
    # what the core adds from the first centre and from the last one
    outside = (n - size) * square
    tails = y[0, j0:most], y[1, k0:most]
    of_least = (spread, outside, float(cost.min()), margin)
    least = sum(of_least) + 2.0**-40 * sum(map(abs, of_least))
    for end in (float(y[1, most]) - reach, float(y[0, most]) + reach):
        parts = (
            spread,
            -2 * end * rest,
            size * end * end,
            *(-float(np.square(t - end).sum()) for t in tails),
        )
        if not sum(parts) - 2.0**-40 * sum(map(abs, parts)) > least:
            break
    else:
        return best.found()
    return best.found() if on_one_side and _core_decides(aggregate, most, width, best) else None


class MiddleValues(NamedTuple):
    """All values but the `outside` smallest and as many of the largest.

    The sums are those of the values outside; each is off by less than 2^-40 n times the largest size.
    """

    outside: int
    low: float
    high: float
    sum_below: float
    sum_above: float


def middle_values(x: Floats, in_order: Floats, outside: int, ends: tuple[float, float]) -> MiddleValues:
    """Return the middle of all values, which are clipped, in any order, and in their places next to it."""
    inside = x.size - outside
    low, high = float(in_order[outside]), float(in_order[inside - 1])
    with np.errstate(over="ignore", invalid="ignore"):
        # a value that is not outside counts as the one next to them
        sum_below = float(np.clip(x, ends[0], low).sum() - inside * low)
        sum_above = float(np.clip(x, high, ends[1]).sum() - inside * high)
    return MiddleValues(outside, low, high, sum_below, sum_above)


def _core_only_rises(middle: MiddleValues, aggregate: VarianceAggregate, width: float) -> bool:
    """Return whether the core adds no less the further away a centre is from which one end of it is too far.

    Notes
    -----
    Let c be a centre from which the lowest value of the core is too far, and none of its highest ones. While
    c is within the width of the lowest of the middle and upper values, only values below these are too far.
    They add a constant, and the others below c more as c grows: so the core adds more, if c is above the mean
    of the middle and upper values. From there on the core adds at least what the middle values do, which
    lie on one side: at the nearest such centre that must be as much as all values add about their mean. The
    other side is alike.
    """
    n, most = aggregate.n, aggregate.smallest.size - 1
    outside, low, high, sum_below, sum_above = middle
    inside = n - 2 * outside
    if not (most <= outside and inside > 0):
        return False
    ends = float(aggregate.smallest[most]), float(aggregate.largest[most])
    whole_sum = _float(aggregate.total, UNIT_BITS)
    mean = (whole_sum - sum_below - sum_above) / inside
    above = whole_sum - sum_below - float(aggregate.largest[:most].sum())
    below = whole_sum - sum_above - float(aggregate.smallest[:most].sum())
    size = n - outside - most
    rounding = 2.0**-30 * (width + max(abs(float(aggregate.smallest[0])), abs(float(aggregate.largest[0]))))
    centre = rounded_quotient(aggregate.total, n << UNIT_BITS)
    spread = _float(n * aggregate.squares - aggregate.total**2, _SQUARES) / n
    away = abs(centre - mean) + rounding
    # this is infinite where a sum overflowed, since the margin is then far above the root of a float
    whole = spread + n * (away * away)
    needed = math.sqrt(whole * (1 + 2.0**-20) / inside) + rounding
    return (
        ends[1] - ends[0] <= 2 * width - rounding
        and high - low <= width - rounding
        and ends[0] + width >= max(above / size, low) + rounding
        and ends[1] - width <= min(below / size, high) - rounding
        and low + width - mean >= needed
        and mean - (high - width) >= needed
    )


def _dropped(low: Floats, high: Floats, width: float) -> tuple[Places, Places]:
    """Return how many smallest and largest values are beyond the width, for each centre where that changes.

    The centres are those of which the core is within the width. A value at that distance counts as inside.
    """
    most = low.size - 1
    # a centre at which a large value comes within reach, and one from which on a small value is beyond it
    coming, leaving = np.arange(most + 1), np.arange(most)
    left = np.searchsorted(low, _threshold(high, -2 * width, -1.0))
    right = np.searchsorted(-high, -_threshold(low[:most], 2 * width, 1.0))
    drops_low, drops_high = np.concatenate([left, leaving + 1]), np.concatenate([coming, right])
    inside = (drops_low <= most) & (drops_high <= most)
    return drops_low[inside], drops_high[inside]


def _threshold(values: Floats, step: float, sign: float) -> Floats:
    """Return floats t such that a float is below the exact sum of a value and a step if it is below t.

    With the sign 1 above the sum if it is above t.
    """
    near = values + step
    back = near - values
    rest = (values - (near - back)) + (step - back)
    # Of an infinite sum the rest is NaN, and every float is on one side.
    return np.where(rest * sign < 0, np.nextafter(near, -sign * np.inf), near)


def _core_decides(aggregate: VarianceAggregate, dropped: int, width: float, best: _Least) -> bool:
    """Return whether from the best centre no value of the core is farther than the width."""
    tails = np.concatenate([aggregate.smallest[:dropped], aggregate.largest[:dropped]])
    low, high = (
        float_units(float(aggregate.smallest[dropped])),
        float_units(float(aggregate.largest[dropped])),
    )
    in_tails, of_tails = exact_moments(tails)
    size, total, squares = aggregate.n - tails.size, aggregate.total - in_tails, aggregate.squares - of_tails
    reach = float_units(width)
    return not any(
        best.exceeds(size * centre * centre - 2 * centre * total + squares)
        for centre in (high - reach, low + reach)
    )


# ---- where all values are known ----------------------------------------------------------------------------


def _by_window(x: Floats, width: float) -> Fraction:
    """Return the result from all values in ascending order.

    Sums of the values from the middle one to each other one tell those of windows, so that far values blur
    only the windows that hold them. Whatever is blurred costs at least what its values outside cost.
    """
    n = x.size
    with np.errstate(all="ignore"):
        exponent = math.frexp(width)[1]
        square = math.ldexp(width, -exponent) ** 2
        y = x - x[n // 2]
        np.ldexp(y, -exponent, out=y)
        of_values = _from_middle(y)
        of_squares = _from_middle(np.square(y, out=y))
        del y
        lost = 2.0**-51 * (n + 16)
        screened, most = [], np.inf
        for first in range(0, n, _BLOCK):
            starts, ends = _windows(x, first, width)
            size = (ends - starts).astype(np.float64)
            shift = of_values[ends] - of_values[starts]
            spread = of_squares[ends] - of_squares[starts] - shift * shift / size
            outside = (n - size) * square
            # |y| sums to at most the root of the number of values times the sum of squares
            blur = np.abs(of_squares[ends]) + np.abs(of_squares[starts])
            error = lost * (blur + outside + 2 * np.abs(shift) / size * np.sqrt(n * blur)) + _LOST
            error += lost * lost * n * blur / size
            most = np.fmin.reduce(spread + outside + error, initial=most)
            least = np.fmax(spread + outside - error, outside * (1 - 2.0**-50))
            near = ~(least > most)
            screened.append((starts[near], ends[near], least[near]))
        starts, ends, least = (np.concatenate(each) for each in zip(*screened, strict=True))
        near = np.flatnonzero(~(least > most))
    if near.size > _MOST_EXACT:
        return _by_value(x, width)
    pairs = sorted(set(zip(starts[near].tolist(), ends[near].tolist(), strict=True)))
    at = sorted({place for pair in pairs for place in pair})
    sums = {at[0]: (0, 0)}
    for start, end in pairwise(at):
        total, squares = exact_moments(x[start:end])
        sums[end] = sums[start][0] + total, sums[start][1] + squares
    best = _Least(n, width)
    for start, end in pairs:
        (total_0, squares_0), (total_1, squares_1) = sums[start], sums[end]
        best.look(end - start, total_1 - total_0, squares_1 - squares_0)
    return best.found()


def _windows(x: Floats, first: int, width: float) -> tuple[Places, Places]:
    """Return the places before and behind the windows that values of a block are the last or the first of."""
    block = x[first : first + _BLOCK]
    places = np.arange(first, first + block.size)
    left = np.searchsorted(x, _threshold(block, -2 * width, -1.0))
    right = np.searchsorted(x, _threshold(block, 2 * width, 1.0), side="right")
    starts, ends = np.concatenate([left, places + 1]), np.concatenate([places + 1, right])
    inside = starts < ends
    return starts[inside], ends[inside]


def _from_middle(y: Floats) -> Floats:
    """Return sums of the values from the middle one up to each, with a negative sign below it."""
    middle = y.size // 2
    sums = np.zeros(y.size + 1)
    np.cumsum(y[middle:], out=sums[middle + 1 :])
    np.cumsum(y[:middle][::-1], out=sums[:middle][::-1])
    np.negative(sums[:middle], out=sums[:middle])
    return sums


def _by_value(x: Floats, width: float) -> Fraction:
    """Return the result from all values in ascending order, of which a window at a time is kept in sums."""
    best, reach = _Least(len(x), width), float_units(width)
    size = total = squares = 0
    leaving = iter(_units(x))
    first = next(leaving)
    for value in _units(x):
        while size and value - first > 2 * reach:
            size, total, squares = size - 1, total - first, squares - first * first
            first = next(leaving)
            if size:
                best.look(size, total, squares)
        size, total, squares = size + 1, total + value, squares + value * value
        best.look(size, total, squares)
    while size > 1:
        size, total, squares = size - 1, total - first, squares - first * first
        first = next(leaving)
        best.look(size, total, squares)
    return best.found()


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


_LOST_BY_SCREEN = 1e-180  # this exceeds what a screen loses by that


def least_spreads(aggregate: VarianceAggregate, ranks: int) -> list[int]:
    """Return least variances of what remains when 0, 1, ... values are dropped.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Of any number of values.
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
    all exact integers. Floats screen the windows of one rank; those that rounding errors leave in question
    are compared exactly.
    """
    if aggregate.n == 0:
        return [0]
    windows = _Windows(aggregate, ranks)
    spreads = windows.spreads([0], [0])
    last = min(ranks, aggregate.n - 2)  # one value has no variance
    for first in range(1, last + 1, 256):
        block = np.arange(first, min(first + 256, last + 1))
        candidates, constant = windows.screen(block)
        rows, drops = np.nonzero(candidates)
        values = windows.spreads(block[rows].tolist(), drops.tolist())
        if len(values) > block.size:
            starts = np.searchsorted(rows, np.arange(block.size + 1)).tolist()
            values = [min(values[start:end]) for start, end in pairwise(starts)]
        if constant.any():  # all later windows lie inside this one, and are constant as well
            return spreads + values[: int(constant.argmax())]
        spreads += values
    return spreads


class _Windows:
    """Sums over the sorted values without their j smallest and k largest.

    Exact sums are of integers, in units of 2^-1074. The unit is the same whatever the values: a larger one
    that divides all of them would make shorter integers, and the time would tell whether one record has bits
    that are smaller. Floats that screen windows are counted from a centre, which changes no variance: one
    near the middle of the data keeps them accurate.
    """

    def __init__(self, aggregate: VarianceAggregate, ranks: int) -> None:
        self.n, self.ranks = aggregate.n, ranks
        self.low, self.high = aggregate.smallest[:ranks], aggregate.largest[:ranks]
        self.total, self.squares = aggregate.total, aggregate.squares
        self.low_sums, self.low_squares = _prefix_sums(self.low)
        self.high_sums, self.high_squares = _prefix_sums(self.high)
        keep_low, keep_high = min(ranks, self.n // 2), min(ranks, self.n - self.n // 2)
        core_size = self.n - keep_low - keep_high
        core = self.total - self.low_sums[keep_low] - self.high_sums[keep_high]
        squares = self.squares - self.low_squares[keep_low] - self.high_squares[keep_high]
        self._centre = rounded_quotient(core, core_size << UNIT_BITS) if core_size else self.low[keep_low - 1]
        centre = float_units(self._centre)
        self._exact_core = core - core_size * centre, squares - centre * (2 * core - core_size * centre)
        self._keep = keep_low, keep_high
        self._core_is_kept = min(self._keep) == ranks
        self._scale: int | None = None

    def spreads(self, ranks: Sequence[int], drops: Sequence[int]) -> list[int]:
        """Return m^2 Var of the windows that drop `ranks` values, `drops` of them smallest."""
        n, total, squares = self.n, self.total, self.squares
        low, low_squares, high, high_squares = (
            self.low_sums,
            self.low_squares,
            self.high_sums,
            self.high_squares,
        )
        return [
            (n - rank) * (squares - low_squares[j] - high_squares[rank - j])
            - (kept := total - low[j] - high[rank - j]) * kept
            for rank, j in zip(ranks, drops, strict=True)
        ]

    def _set_scale(self, rank: int) -> None:
        """Make the values of the narrowest window of this rank at most 1, if they are far from that."""
        last = self.ranks - 1
        j = np.arange(max(rank - last, 0), min(rank, last) + 1)
        scale = 0
        if j.size:
            with np.errstate(over="ignore"):
                ends = np.maximum(
                    np.abs(self.low[j] - self._centre), np.abs(self.high[rank - j] - self._centre)
                )
            reach = min(float(ends.min()), MAX_FLOAT)
            scale = max(math.frexp(reach)[1] + UNIT_BITS, 0)
        # 2^400 times smaller squares are still far above what underflows
        if self._scale is None or abs(scale - self._scale) > 200:
            self._scale = scale
            self._round(scale)

    def _round(self, scale: int) -> None:
        """Add what each tail keeps, and the core, divided by 2^scale, in floats, which may be infinite."""
        keep_low, keep_high = self._keep
        sums, squares = self._exact_core
        self._core = [_float(sums, scale), _float(squares, 2 * scale)]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            low, high = (np.ldexp(end - self._centre, UNIT_BITS - scale) for end in (self.low, self.high))
            self._kept_low = [_kept(low, keep_low), _kept(low * low, keep_low)]
            self._kept_high = [_kept(high, keep_high), _kept(high * high, keep_high)]
        with np.errstate(over="ignore", under="ignore"):
            # the end after the last known one is unknown
            self._ends = [
                np.ldexp(np.append(end, np.nan), UNIT_BITS - scale) for end in (self.low, self.high)
            ]

    def screen(self, block: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which windows of each rank may have the least variance, and which ranks have a constant one.

        Notes
        -----
        With values centred and scaled, a window of m values has sum T, sum of squares Q and m Var = Q -
        T^2/m. T and Q are sums of three floats: of the core, and of what each tail keeps, which is negative
        where a window drops some of the core as well. Let T+ and Q+ be the sums of the sizes of all that is
        added; T+ <= sqrt(2 n Q+). A tail of r values is added in r roundings, and each value is rounded once,
        its square three times. So with u = 2^-53 and s = r + 8, T and Q have errors of at most s u T+ and s u
        Q+, and that of Q - T^2/m is below s u (1.5 Q+ + 2 |T| T+/m + 1.25 T^2/m) + s^2 u^2 T+^2/m, and for s
        n < 2^49 below s u (2 Q+ + 4 |T| T+/m). The margin doubles that, and adds more than what can be lost
        below 2^-700. If no window drops any of the core, then Q+ = Q and T+ <= sqrt(m Q): the margin is 12 s
        u Q. The scale follows the narrowest window of the first rank, so that far outliers, once dropped, do
        not blur the rest. A window whose sums overflow is told by its two ends: Q - T^2/m is at least half
        the square of their distance.
        """
        self._set_scale(int(block[0]))
        j = np.arange(int(block[-1]) + 1)
        dropped_high = block[:, np.newaxis] - j
        valid = dropped_high >= 0
        size = np.maximum(self.n - block, 1)[:, np.newaxis].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            total, total_size = self._add_parts(0, j, dropped_high)
            squares, squares_size = self._add_parts(1, j, dropped_high)
            spread = squares - total * total / size
            if self._core_is_kept:
                error = 2.0**-52 * 6.0 * (self.ranks + 8) * squares + _LOST_BY_SCREEN
            else:
                rounding = 2.0 * squares_size + 4.0 * np.abs(total) * total_size / size
                error = 2.0**-52 * (self.ranks + 8) * rounding + _LOST_BY_SCREEN
            best = np.fmin.reduce(spread + error, axis=1, keepdims=True, where=valid, initial=np.inf)
            hopeless = (spread - error > best) | (self._least_spread(j, dropped_high) > best)
        return valid & ~hopeless, self._constant(j, dropped_high)

    def _add_parts(
        self, power: int, j: NDArray[np.intp], dropped_high: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Return the sum of the three parts of each window, and that of their sizes."""
        low, high = self._kept_low[power][j], _at(self._kept_high[power], dropped_high)
        core = self._core[power]
        total = high + (low + core)
        if self._core_is_kept:
            return total, total  # nobody reads the second
        return total, np.abs(high) + (np.abs(low) + abs(core))

    def _least_spread(self, j: NDArray[np.intp], dropped_high: NDArray[np.intp]) -> Floats:
        """Return a lower limit of m Var of each window, as the screen has it; NaN where none is known."""
        low, high = self._ends
        distance = _at(high, dropped_high) - low[j]
        least: Floats = distance * distance * 0.499
        return least

    def _constant(self, j: NDArray[np.intp], dropped_high: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for which ranks a window has equal values at its two ends, numbers j+1 and n-k."""
        if self.low[-1] < self.high[-1]:
            return np.zeros(len(dropped_high), dtype=np.bool_)
        first = np.append(self.low, np.nan)[j]
        last = _at(np.append(self.high, np.nan), dropped_high)
        constant: NDArray[np.bool_] = ((dropped_high >= 0) & (first == last)).any(axis=1)
        return constant


def _prefix_sums(values: Floats) -> tuple[list[int], list[int]]:
    units, squares = to_units(values), to_squared_units(values)
    return list(accumulate(units, initial=0)), list(accumulate(squares, initial=0))


def _kept(values: Floats, keep: int) -> Floats:
    """Return for each j the sum of the first `keep` values less that of the first j, added outwards."""
    sums = np.zeros(values.size + 1)
    sums[:keep] = np.cumsum(values[:keep][::-1])[::-1]
    np.cumsum(-values[keep:], out=sums[keep + 1 :])
    return sums


def _at(values: Floats, number: NDArray[np.intp]) -> Floats:
    """Return the values with these numbers, and anything where the number is negative."""
    taken: Floats = np.take(values, number, mode="clip")
    return taken
