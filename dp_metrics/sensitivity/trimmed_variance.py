"""The least variance of what remains of a column when its most extreme values are dropped, exactly."""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    in_blocks,
    rounded_quotient,
    to_units,
)

__all__ = ["LeastSpreads", "clipped_squares", "least_spreads"]

LeastSpreads: TypeAlias = tuple[int, list[int]]
"""What `least_spreads` returns."""

_MOST_RANKS = 1024  # these ranks are looked at before all values are
_UNIT = 1 << 2 * UNIT_BITS  # the unit of squares
_KEPT_BITS = 700
_LOST = 1e-180  # this exceeds what a screen loses by that


def least_spreads(aggregate: VarianceAggregate, ranks: int) -> LeastSpreads:
    """Return least variances of what remains when 0, 1, ... values are dropped.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Of any number of values.
    ranks : int
        How many values to drop at most.

    Returns
    -------
    unit : int
        What the spreads are divided by.
    spreads : list of int
        At place l the least m^2 Var of the m = n - l values that remain, over the choices of what is dropped,
        times the unit. Where it is 0 for ever, the list ends.

    Notes
    -----
    The best window consists of consecutive sorted values: it drops j smallest and l - j largest ones. Its
    sums are those of the core, which no window near the centre drops, plus what it keeps of the two tails,
    all exact integers. Floats screen the windows of one rank; those that rounding errors leave in question
    are compared exactly.
    """
    if aggregate.n == 0:
        return 1, [0]
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
            return _UNIT, spreads + values[: int(constant.argmax())]
        spreads += values
    return _UNIT, spreads


def clipped_squares(
    aggregate: VarianceAggregate, least: LeastSpreads, width: Fraction, in_order: Callable[[], Floats]
) -> Fraction:
    """Return the least sum of min((x_i - m)^2, width^2) over all centres m, exactly.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Of any number of values.
    least : tuple
        Least spreads of the values, at some ranks.
    width : Fraction
        From where on a distance counts as the width.
    in_order : callable
        All values in ascending order: asked for only if the aggregate does not tell the result.

    Notes
    -----
    For each centre the sum grows by at most width^2 when a value is added, and so does the least of them.
    Dropping what is farther than the width from the best centre shows that the result is the minimum of
    SS_l + l width^2 over l, with SS_l the least sum of squares about the mean of n - l values. Ranks beyond
    those of `least` cannot matter if no centre that is farther than the width from some value of the core,
    the values without the ranks / 2 largest and smallest ones, does better: from such a centre even the core,
    which lies on one side of it, adds at least what it adds from where the first value gets so far.
    """
    n = aggregate.n
    if n == 0:
        return Fraction(0)
    for unit, spreads in _more_and_more(aggregate, least):
        best = _least_cost(spreads, range(n, n - len(spreads), -1), unit, n, width)
        if best == 0 or _core_decides(aggregate, (len(spreads) - 1) // 2, width, best):
            return best
    return _clipped_squares_in_order(in_order(), width)


def _more_and_more(aggregate: VarianceAggregate, least: LeastSpreads) -> Iterator[LeastSpreads]:
    """Yield the least spreads that are there, and those at all ranks that the aggregate knows."""
    yield least
    ranks = min(aggregate.capacity, aggregate.n, _MOST_RANKS)
    if ranks >= len(least[1]):
        yield least_spreads(aggregate, ranks)


def _least_cost(spreads: list[int], sizes: Sequence[int], unit: int, n: int, width: Fraction) -> Fraction:
    """Return the least sum of squares of windows, given size^2 Var, and width^2 for each value outside."""
    square = width * width
    kept = np.array(sizes)
    outside = n - kept
    # Each cost but the first is at least that of one value outside, which is from 1/2 to 1 in these floats.
    of_one = int(square * unit)
    bits = of_one.bit_length()
    with np.errstate(over="ignore", under="ignore"):
        costs = _floats(spreads, bits) / kept + outside * _floats([of_one], bits)
        near = np.flatnonzero(costs <= costs.min() * (1 + 2.0**-49)).tolist()
    return min(Fraction(spreads[i], sizes[i] * unit) + int(outside[i]) * square for i in near)


def _core_decides(aggregate: VarianceAggregate, dropped: int, width: Fraction, best: Fraction) -> bool:
    """Return whether from the best centre no value of the core is farther than the width."""
    size = aggregate.n - 2 * dropped
    ends = to_units(np.concatenate([aggregate.smallest[: dropped + 1], aggregate.largest[: dropped + 1]]))
    low, high = ends[dropped], ends[-1]
    tails = ends[:dropped] + ends[dropped + 1 : -1]
    total = aggregate.total - sum(tails)
    squares = aggregate.squares - sum(map(_square, tails))
    reach = width * (1 << UNIT_BITS)
    if reach < high - low:
        return False
    # the nearest centres to the core, of those from which a value of the core is too far, decide
    return all(
        size * centre * centre - 2 * centre * total + squares >= best * (1 << 2 * UNIT_BITS)
        for centre in (low + reach, high - reach)
    )


def _clipped_squares_in_order(x: Floats, width: Fraction) -> Fraction:
    """Return the result of `clipped_squares` from all values in ascending order.

    As the centre moves up, values come within reach and leave it again: each time what is within reach is one
    more window to try. Nothing but the sums of the window is kept.
    """
    n, reach = len(x), int(width * (1 << UNIT_BITS))
    size = total = squares = 0
    best, best_size = -1, 1  # the least cost is best / best_size
    leaving = _in_units(x)
    first = next(leaving)

    def look() -> None:
        nonlocal best, best_size
        cost = size * squares - total * total + size * (n - size) * reach * reach
        if best < 0 or cost * best_size < best * size:
            best, best_size = cost, size

    for value in _in_units(x):
        while size and value - first > 2 * reach:
            size, total, squares = size - 1, total - first, squares - first * first
            first = next(leaving)
            if size:
                look()
        size, total, squares = size + 1, total + value, squares + value * value
        look()
    while size > 1:
        size, total, squares = size - 1, total - first, squares - first * first
        first = next(leaving)
        look()
    return Fraction(best, best_size << 2 * UNIT_BITS)


def _in_units(x: Floats) -> Iterator[int]:
    """Yield exact values one by one, without keeping them."""
    for block in in_blocks(x):
        yield from to_units(block)


class _Windows:
    """Sums over the sorted values without their j smallest and k largest.

    Values are integers here, in units of 2^-1074 and counted from a centre, which changes no variance. One
    near the middle of the data keeps the floats that screen windows accurate. The unit is the same whatever
    the values: a larger one that divides all of them would make shorter integers, and the time would tell
    whether one record has bits that are smaller.
    """

    def __init__(self, aggregate: VarianceAggregate, ranks: int) -> None:
        self.n, self.ranks = aggregate.n, ranks
        self.low, self.high = aggregate.smallest[:ranks], aggregate.largest[:ranks]
        total, squares = aggregate.total, aggregate.squares
        both = to_units(np.concatenate([self.low, self.high]))
        low, high = both[: self.low.size], both[self.low.size :]
        keep_low, keep_high = min(ranks, self.n // 2), min(ranks, self.n - self.n // 2)
        core_size = self.n - keep_low - keep_high
        core = total - sum(low[:keep_low]) - sum(high[:keep_high])
        centre = rounded_quotient(core, core_size << UNIT_BITS) if core_size else self.low[keep_low - 1]
        (self._centre,) = to_units(np.array([centre]))
        self.total = total - self.n * self._centre
        self.squares = squares - self._centre * (2 * total - self.n * self._centre)
        self.low_sums, self.low_squares = _prefix_sums(low, self._centre)
        self.high_sums, self.high_squares = _prefix_sums(high, self._centre)
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
            centre = rounded_quotient(self._centre, 1 << UNIT_BITS)
            with np.errstate(over="ignore"):
                ends = np.maximum(np.abs(self.low[j] - centre), np.abs(self.high[rank - j] - centre))
            reach = min(float(ends.min()), MAX_FLOAT)
            scale = max(math.frexp(reach)[1] + UNIT_BITS, 0)
        # 2^400 times smaller squares are still far above what underflows
        if self._scale is None or abs(scale - self._scale) > 200:
            self._scale = scale
            self._round(scale)

    def _round(self, scale: int) -> None:
        """Round what each tail keeps, and the core, divided by 2^scale, to floats, which may be infinite."""
        keep_low, keep_high = self._keep
        sums = self.total - self.low_sums[keep_low] - self.high_sums[keep_high]
        squares = self.squares - self.low_squares[keep_low] - self.high_squares[keep_high]
        self._core = [float(_floats([sums], scale)[0]), float(_floats([squares], 2 * scale)[0])]
        self._kept_low = [
            _floats([self.low_sums[keep_low] - value for value in self.low_sums], scale),
            _floats([self.low_squares[keep_low] - value for value in self.low_squares], 2 * scale),
        ]
        self._kept_high = [
            _floats([self.high_sums[keep_high] - value for value in self.high_sums], scale),
            _floats([self.high_squares[keep_high] - value for value in self.high_squares], 2 * scale),
        ]
        with np.errstate(over="ignore", under="ignore"):
            # the end after the last known one is unknown
            self._ends = [
                np.ldexp(np.append(end, np.nan), UNIT_BITS - scale) for end in (self.low, self.high)
            ]

    def screen(self, block: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which windows of each rank may have the least variance, and which ranks have a constant one.

        Notes
        -----
        With values centred and scaled, a window of m values has sum T, sum of squares Q and m Var =
        Q - T^2/m. T and Q are sums of three floats: of the core, and of what each tail keeps, which is
        negative where a window drops some of the core as well. Let T+ and Q+ be the sums of their absolute
        values; T+ <= sqrt(2 n Q+). With u = 2^-53, T and Q have errors of at most 4 u T+ and 4 u Q+, so that
        of Q - T^2/m is below u (6 Q+ + 8 |T| T+/m + 5 T^2/m) + 16 u^2 T+^2/m, and for n < 2^47 below
        u (8 Q+ + 16 |T| T+/m). The margin doubles that, and adds more than what can be lost below 2^-700.
        If no window drops any of the core, then Q+ = Q and T+ <= sqrt(m Q): the margin is 48 u Q. The scale
        follows the narrowest window of the first rank, so that far outliers, once dropped, do not blur the
        rest. A window whose sums overflow is told by its two ends: Q - T^2/m is at least half the square of
        their distance.
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
                error = 2.0**-52 * 24.0 * squares + _LOST
            else:
                rounding = 8.0 * squares_size + 16.0 * np.abs(total) * total_size / size
                error = 2.0**-52 * rounding + _LOST
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


def _floats(numbers: list[int], bits: int) -> Floats:
    """Return numbers / 2**bits to a relative 2^-53 or within 2^-700; what is too large is infinite."""
    lost = max(bits - _KEPT_BITS, 0)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(_saturated([number >> lost for number in numbers]), lost - bits)


def _saturated(numbers: list[int]) -> Floats:
    try:
        return np.array(list(map(float, numbers)))
    except OverflowError:
        return np.array([_float(number) for number in numbers])


def _float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _square(number: int) -> int:
    """Return the square; the zeros that a float far above the unit ends in are not multiplied."""
    zeros = (number & -number).bit_length() - 1 if number else 0
    short = number >> zeros
    return short * short << 2 * zeros


def _prefix_sums(values: list[int], centre: int) -> tuple[list[int], list[int]]:
    centred = [value - centre for value in values]
    return list(accumulate(centred, initial=0)), list(accumulate(map(_square, centred), initial=0))


def _at(values: Floats, number: NDArray[np.intp]) -> Floats:
    """Return the values with these numbers, and anything where the number is negative."""
    taken: Floats = np.take(values, number, mode="clip")
    return taken
