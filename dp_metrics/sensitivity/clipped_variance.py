"""The least sum of squared distances from a centre, each clipped at a public width, exactly."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    exact_moments,
    float_units,
    in_blocks,
    rounded_quotient,
    to_units,
)

Places: TypeAlias = NDArray[np.intp]
Parted: TypeAlias = tuple[Floats, int]

_SQUARES = 2 * UNIT_BITS  # squares are in units of 2^-2148
_LARGEST_WIDTH = 2.0**1000
_FAR = 4.0  # in widths: no window reaches so far from its centre
_LOST = 1e-200  # more than what underflows
_FEW = 48  # adding so few values one by one is as fast as over arrays
_KEPT_BITS = 700
_BLOCK = 1 << 16  # so many values at a time: the windows of all of them would take many times their memory
_MOST_EXACT = 1 << 10  # so many windows are compared exactly, or else the centre moves on value by value


def clipped_squares(
    aggregate: VarianceAggregate,
    width: Fraction,
    in_order: Callable[[], Floats],
    parted: Parted | None = None,
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
    parted : tuple or None, default=None
        All values, the `outside` smallest first and as many of the largest last, those next to them in their
        places in ascending order, and that number.

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
    it adds there, because it lies on one side of the centre; or else `parted` may tell that it does.
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
        by_tails = _by_tails(aggregate, reach, parted) if kept and reach <= _LARGEST_WIDTH else None
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


def _by_tails(aggregate: VarianceAggregate, width: float, parted: Parted | None) -> Fraction | None:
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
    if not on_one_side and (parted is None or not _core_only_rises(*parted, aggregate, width)):
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


def _core_only_rises(values: Floats, outside: int, aggregate: VarianceAggregate, width: float) -> bool:
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
    if not most <= outside < n - outside:
        return False
    middle = values[outside : n - outside]
    low, high = float(middle[0]), float(middle[-1])
    ends = float(aggregate.smallest[most]), float(aggregate.largest[most])
    in_middle = float(middle.sum())
    mean = in_middle / middle.size
    above = in_middle + float(values[n - outside :].sum()) - float(aggregate.largest[:most].sum())
    below = in_middle + float(values[:outside].sum()) - float(aggregate.smallest[:most].sum())
    size = n - outside - most
    rounding = 2.0**-30 * (width + max(abs(float(aggregate.smallest[0])), abs(float(aggregate.largest[0]))))
    centre = rounded_quotient(aggregate.total, n << UNIT_BITS)
    spread = _float(n * aggregate.squares - aggregate.total**2, _SQUARES) / n
    whole = spread + n * (abs(centre - mean) + rounding) ** 2
    needed = math.sqrt(whole * (1 + 2.0**-20) / middle.size) + rounding
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


def _prefix_sums(values: Floats) -> tuple[list[int], list[int]]:
    units = to_units(values)
    return list(accumulate(units, initial=0)), list(accumulate([u * u for u in units], initial=0))


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
        total, squares = _moments(x[start:end])
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


def _moments(values: Floats) -> tuple[int, int]:
    if values.size > _FEW:
        return exact_moments(values)
    units = to_units(values)
    return sum(units), sum([unit * unit for unit in units])


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
        return math.copysign(math.inf, number)
