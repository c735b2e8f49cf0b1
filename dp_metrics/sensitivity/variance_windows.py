"""Windows of a column: the least clipped and the least trimmed sums of squares, exactly."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import in_blocks
from dp_metrics.inputs.options import MAX_FLOAT, Floats
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
_BEYOND = 1 << 2200  # further in units from all floats than any distance that is looked at
_LOST = 1e-180  # more than what a screen loses by what underflows
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
    known = _known(aggregate, n)
    if _are_within(width, known):
        # from their mean all values are within reach
        return _least_cost(n, reach, [(n, aggregate.total, aggregate.squares)])
    if known.size < n:
        is_near = _are_within(width * (2 if depths else 1), _ends_of_core(known))
        sums = exact_moments(known)
        best = _by_window(aggregate, known, sums, reach) if is_near else None
        if best is not None and _core_decides(aggregate, known, sums, reach, best, depths):
            return best
        known = in_order()
    best = _by_window(aggregate, known, (aggregate.total, aggregate.squares), reach)
    return _by_value(known, reach) if best is None else best


def _known(aggregate: VarianceAggregate, most: int) -> Floats:
    """Return at most so many of the smallest and of the largest values, none of them twice, in order."""
    low, high = aggregate.smallest[:most], aggregate.largest[:most]
    half = aggregate.n // 2
    return np.concatenate([low[:half], high[: aggregate.n - half][::-1]])


def _ends_of_core(known: Floats) -> Floats:
    """Return the two innermost of the known values: between them are all others."""
    middle = known.size // 2
    return known[middle - 1 : middle + 1]


def _are_within(width: Fraction, values: Floats) -> bool:
    """Return whether there are values, in ascending order, that are no further apart than this."""
    return values.size > 0 and Fraction(float(values[-1])) - Fraction(float(values[0])) <= width


def _least_cost(n: int, width: float, windows: Iterable[tuple[int, int, int]]) -> Fraction:
    """Return the least cost of windows, each given by its size and the sums of its values and squares."""
    square = float_units(width) ** 2
    least, divisor = -1, 1
    for size, total, squares in windows:
        cost = size * (squares + (n - size) * square) - total * total
        if least < 0 or cost * divisor < least * size:
            least, divisor = cost, size
    return Fraction(least, divisor << _SQUARES)


def _by_window(aggregate: VarianceAggregate, known: Floats, sums: Moments, width: float) -> Fraction | None:
    """Return the least cost of windows of known values with these sums, and of the core if there is one.

    None where the width is too large for floats, or where these leave too many windows in question.
    """
    if width > _LARGEST_WIDTH:
        return None
    windows = _Windows(aggregate, known, sums)
    exponent = math.frexp(width)[1]
    square = math.ldexp(width, -exponent) ** 2
    screened, most = [], np.inf
    windows.count_in(exponent)
    for first in range(0, known.size, _BLOCK):
        starts, ends = windows.reached(first, width)
        spread, error = windows.spread(starts, ends)
        outside = (known.size - (ends - starts)) * square
        cost = spread + outside
        error += 2.0**-50 * cost
        most = np.fmin.reduce(cost + error, initial=most)
        # whatever is blurred costs at least what its values outside cost
        least = np.fmax(cost - error, outside * (1 - 2.0**-50))
        near = ~(least > most)
        screened.append((starts[near], ends[near], least[near]))
    starts, ends, costs = map(np.concatenate, zip(*screened, strict=True))
    near = ~(costs > most)
    pairs = sorted(set(zip(starts[near].tolist(), ends[near].tolist(), strict=True)))
    if len(pairs) > _MOST_EXACT:
        return None
    firsts, lasts = zip(*pairs, strict=True)
    before, after = _sums_at(known, firsts), _sums_at(known[::-1], (known.size - last for last in lasts))
    before |= {known.size - dropped: _without(sums, some) for dropped, some in after.items()}
    return _least_cost(aggregate.n, width, _exact_sums(windows, before, firsts, lasts))


def _without(whole: Moments, some: Moments) -> Moments:
    """Return the sums of the values that are left."""
    return whole[0] - some[0], whole[1] - some[1]


def _sums_at(values: Floats, places: Iterable[int]) -> dict[int, Moments]:
    """Return, for each place, the exact sums of the values before it and of their squares."""
    sums = {0: (0, 0)}
    for first, last in pairwise(sorted({0, *places})):
        total, squares = exact_moments(values[first:last])
        sums[last] = sums[first][0] + total, sums[first][1] + squares
    return sums


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
    aggregate: VarianceAggregate,
    known: Floats,
    sums: Moments,
    width: float,
    best: Fraction,
    depths: Depths,
) -> bool:
    """Return whether the core adds at least the best cost to each centre from which an end of it is too far.

    Here the innermost of the known values are part of the core. It is at most twice as wide as the width, and
    without `depths` no wider.

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
    most = known.size // 2 - 1  # so many of the values on each side are no part of the core
    low, high = to_units(_ends_of_core(known))
    size, total = aggregate.n - 2 * most, aggregate.total - sums[0] + low + high
    squares = aggregate.squares - sums[1] + low * low + high * high
    reach, cost, divisor = float_units(width), best.numerator << _SQUARES, best.denominator
    sides = (
        (low, high, total, [(rank, float_units(value)) for rank, value, _ in depths]),
        (-high, -low, -total, [(rank, -float_units(value)) for rank, _, value in depths]),
    )
    for first, last, of_core, at_depths in sides:
        centre = first + reach
        if cost > divisor * (size * centre * centre - 2 * centre * of_core + squares):
            return False
        if centre >= last:
            continue
        below = most
        few, above = at_depths[0][0] - below, size * centre - of_core
        if above < 0 or above**2 * (size - few) < (size * squares - of_core**2) * few:
            return False
        further, least = at_depths[0][1] + reach, 0
        for rank, value in at_depths:
            least += (rank - below) * max(further - value, 0) ** 2
            below = rank
        if cost > divisor * least:
            return False
    return True


def _by_value(x: Floats, width: float) -> Fraction:
    """Return the result from all values in ascending order, of which a window at a time is kept in sums."""
    return _least_cost(len(x), width, _moving_window(x, width))


def _moving_window(x: Floats, width: float) -> Iterator[tuple[int, int, int]]:
    """Yield the size and the exact sums of each window that a centre makes as it moves up.

    In the end comes a value beyond the reach of all. The others leave; a window of it alone costs as much as
    that of any single value.
    """
    reach = float_units(width)
    size = total = squares = 0
    leaving = iter(_units(x))
    first = next(leaving)
    for value in chain(_units(x), [_BEYOND]):
        while size and value - first > 2 * reach:
            size, total, squares = size - 1, total - first, squares - first * first
            first = next(leaving, _BEYOND)
            if size:
                yield size, total, squares
        size, total, squares = size + 1, total + value, squares + value * value
        yield size, total, squares


def _units(x: Floats) -> Iterable[int]:
    """Yield exact values one by one, without keeping them."""
    for block in in_blocks(x):
        yield from to_units(block)


def _float(number: int, bits: int) -> float:
    """Return number / 2**bits, rounded once; what is too large is infinite."""
    try:
        return number / (1 << bits)
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
    known = _known(aggregate, ranks)
    before = _prefix_sums(known)
    windows = _Windows(aggregate, known, before[-1])
    spreads = _spreads(windows, before, [0], [known.size])
    last = min(ranks, aggregate.n - 2)  # one value has no variance
    for first in range(1, last + 1, 256):
        block = np.arange(first, min(first + 256, last + 1))
        rows, starts = np.nonzero(windows.screen(block))
        ends = known.size - block[rows] + starts
        values = _spreads(windows, before, starts.tolist(), ends.tolist())
        firsts = np.searchsorted(rows, np.arange(block.size + 1)).tolist()
        values = [min(values[start:end]) for start, end in pairwise(firsts)]
        if 0 in values:  # of equal values: all windows inside have none either
            return spreads + values[: values.index(0)]
        spreads += values
    return spreads


def _prefix_sums(values: Floats) -> list[Moments]:
    """Return the sums of the first values, and of their squares, from none of the values on."""
    units, squares = to_units(values), to_squared_units(values)
    return [*zip(accumulate(units, initial=0), accumulate(squares, initial=0), strict=True)]


def _spreads(
    windows: "_Windows", before: list[Moments], starts: Sequence[int], ends: Sequence[int]
) -> list[int]:
    """Return m^2 Var of windows of m values."""
    sums = _exact_sums(windows, before, starts, ends)
    return [size * squares - total * total for size, total, squares in sums]


# ---- the windows -------------------------------------------------------------------------------------------


class _Windows:
    """Windows of sorted values, of which the floats here screen many at a time.

    A window is told by the places, among the known values, of its first one and of that behind its last one.
    All values that are not known are the core, which lies in the middle and belongs to every window.

    Values are counted from a centre, which changes no variance: near the middle of the data it keeps floats
    accurate.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Of all values.
    known : ndarray
        All of them, or as many of the smallest as of the largest, in ascending order.
    sums : (int, int)
        The exact sums of the known values, and of their squares.
    """

    def __init__(self, aggregate: VarianceAggregate, known: Floats, sums: Moments) -> None:
        self.known, self._middle = known, known.size // 2
        self.core = aggregate.n - known.size, aggregate.total - sums[0], aggregate.squares - sums[1]
        size, total, _ = self.core
        self._centre = rounded_quotient(total, size << UNIT_BITS) if size else float(known[self._middle - 1])
        self._exponent = 1 << 20  # far from all: nothing is counted yet

    def count_in(self, exponent: int) -> None:
        """Add up values and squares in units of 2^exponent: floats, which may be infinite."""
        self._exponent = exponent
        (size, total, squares), centre = self.core, float_units(self._centre)
        bits = UNIT_BITS + exponent
        of_core = total - size * centre, squares - centre * (2 * total - size * centre)
        self._of_core = _float(of_core[0], bits), _float(of_core[1], 2 * bits)
        y = self.known - self._centre
        np.ldexp(y, -exponent, out=y)
        self._kept = _kept(y, self._middle), _kept(np.square(y, out=y), self._middle)

    def reached(self, first: int, width: float) -> tuple[Places, Places]:
        """Return windows that a centre makes as it moves: all that begin or end with a value of a block.

        The block begins at the first place. A value at the distance of the width counts as inside.
        """
        x, block = self.known, self.known[first : first + _BLOCK]
        places = np.arange(first, first + block.size)
        left = np.searchsorted(x, _threshold(block, -2 * width))
        right = np.searchsorted(x, _threshold(block, 2 * width), side="right")
        starts, ends = np.concatenate([left, places + 1]), np.concatenate([places + 1, right])
        inside = (starts <= self._middle) & (self._middle <= ends) if self.core[0] else starts < ends
        return starts[inside], ends[inside]

    def spread(self, starts: Places, ends: Places) -> tuple[Floats, Floats]:
        """Return m Var of windows of m values, and what that may be off by.

        Notes
        -----
        With values centred and scaled, a window of m values has sum T, sum of squares Q and m Var = Q -
        T^2/m. T and Q are sums of three floats: of the core, and of what each side of the middle keeps, which
        is negative where a window lies on the other side. Let T+ and Q+ be the sums of the sizes of all that
        is added. A side of r values is added in r roundings, and each value is rounded once, its square three
        times. So with u = 2^-53 and s = r + 8, T and Q have errors of at most s u T+ and s u Q+, and that of
        Q - T^2/m is below s u (1.5 Q+ + 3.25 |T| T+/m) + s^2 u^2 T+^2/m. The margin is more than twice that,
        and adds more than what can be lost by underflow. If there is a core, then Q+ = Q and T+ <= sqrt(m Q):
        the margin is 12 s u Q.
        """
        size = self.core[0] + ends - starts
        lost = 2.0**-52 * (self._middle + 9)
        (total, total_size), (squares, squares_size) = (
            self._add_parts(part, starts, ends) for part in (0, 1)
        )
        spread = squares - total * total / size
        if self.core[0]:
            return spread, lost * 6.0 * squares + _LOST
        rounding = 2.0 * squares_size + (4.0 * np.abs(total) + lost * total_size) * total_size / size
        return spread, lost * rounding + _LOST

    def _add_parts(self, power: int, starts: Places, ends: Places) -> tuple[Floats, Floats]:
        """Return the sum of the three parts of each window, and that of their sizes."""
        of_core, kept = self._of_core[power], self._kept[power]
        of_low, of_high = _at(kept, starts), _at(kept, ends)
        total = of_low + of_core - of_high
        if self.core[0]:
            return total, total  # nobody reads the second
        return total, np.abs(of_high) + np.abs(of_low)

    def screen(self, block: Places) -> NDArray[np.bool_]:
        """Return which windows of each rank may have the least variance, by their first places.

        The unit follows the narrowest window of the first rank, so that far outliers, once dropped, do not
        blur the rest. A window whose sums overflow is told by two of its values: m Var is at least half the
        square of their distance.
        """
        self._count_near(int(block[0]))
        starts = np.arange(int(block[-1]) + 1)
        ends = self.known.size - block[:, np.newaxis] + starts
        valid = ends <= self.known.size
        spread, error = self.spread(starts, ends)
        best = np.fmin.reduce(spread + error, axis=1, keepdims=True, where=valid, initial=np.inf)
        # where a window drops a whole side, its end is unknown, and the value that is taken lies within it
        known = np.ldexp(self.known, -self._exponent)
        distance = _at(known, ends - 1) - known[starts]
        hopeless = (spread - error > best) | (distance * distance * 0.499 > best)
        return valid & ~hopeless

    def _count_near(self, rank: int) -> None:
        """Make the values of the narrowest window of this rank at most 1, if they are far from that."""
        sizes = np.abs(self.known - self._centre)
        widest = np.maximum(sizes[: rank + 1], sizes[-1 - rank :])
        exponent = math.frexp(widest.min(initial=MAX_FLOAT))[1]
        # 2^400 times smaller squares are still far above what underflows
        if abs(exponent - self._exponent) > 200:
            self.count_in(exponent)


def _exact_sums(
    windows: _Windows, before: Any, starts: Iterable[int], ends: Iterable[int]
) -> list[tuple[int, int, int]]:
    """Return the size of each window, and the exact sums of its values and of their squares.

    Parameters
    ----------
    windows : _Windows
        Of which they are.
    before : mapping or sequence
        The sums of the known values before each place.
    starts, ends : iterable of int
        The places of the windows.
    """
    size, total, squares = windows.core
    return [
        (
            size + end - start,
            total + before[end][0] - before[start][0],
            squares + before[end][1] - before[start][1],
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def _kept(values: Floats, keep: int) -> Floats:
    """Return for each j the sum of the first `keep` values less that of the first j, added outwards."""
    sums = np.zeros(values.size + 1)  # filled in place: all values may be here
    np.cumsum(values[:keep][::-1], out=sums[:keep][::-1])
    np.cumsum(values[keep:], out=sums[keep + 1 :])
    np.negative(sums[keep + 1 :], out=sums[keep + 1 :])
    return sums


def _at(values: Floats, number: Places) -> Floats:
    """Return the values with these numbers, and anything where there is no such number."""
    return np.take(values, number, mode="clip")
