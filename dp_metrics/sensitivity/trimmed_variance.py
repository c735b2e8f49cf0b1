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
    rounded_quotients,
    to_units,
)

__all__ = ["LeastSpreads", "clipped_squares", "least_spreads"]

LeastSpreads: TypeAlias = tuple[int, list[int]]
"""What `least_spreads` returns."""

_MOST_RANKS = 1024  # to look at before all values are


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
        if constant.any():  # and so are all later windows, which lie inside that one
            return windows.unit, spreads + values[: int(constant.argmax())]
        spreads += values
    return windows.unit, spreads


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
    outside = n - np.array(sizes)
    with np.errstate(over="ignore", under="ignore"):
        costs = rounded_quotients(spreads, (size * unit for size in sizes))
        costs = costs + outside * rounded_quotient(square.numerator, square.denominator)
        near = np.flatnonzero(costs <= costs.min() * (1 + 2.0**-49)).tolist()
    return min(Fraction(spreads[i], sizes[i] * unit) + int(outside[i]) * square for i in near)


def _core_decides(aggregate: VarianceAggregate, dropped: int, width: Fraction, best: Fraction) -> bool:
    """Return whether from the best centre no value of the core is farther than the width."""
    size = aggregate.n - 2 * dropped
    if size < 1:
        return False
    ends = to_units(np.concatenate([aggregate.smallest[: dropped + 1], aggregate.largest[: dropped + 1]]))
    low, high = ends[dropped], ends[-1]
    tails = ends[:dropped] + ends[dropped + 1 : -1]
    total = aggregate.total - sum(tails)
    squares = aggregate.squares - sum(value * value for value in tails)
    reach = width * (1 << UNIT_BITS)
    if reach < high - low:
        return False
    # of the centres from which a value of the core is too far, those nearest to the core
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

    Values are integers here: multiples of 2^bits units of 2^-1074, counted from a centre, which changes no
    variance. One near the middle of the data keeps the floats that screen windows accurate.
    """

    def __init__(self, aggregate: VarianceAggregate, ranks: int) -> None:
        self.n, self.ranks = aggregate.n, ranks
        self.low, self.high = aggregate.smallest[:ranks], aggregate.largest[:ranks]
        total, squares = aggregate.total, aggregate.squares
        # Whatever divides the extremes, the sum and the sum of squares may be divided out.
        ends = np.concatenate([self.low, self.high])
        lowest_bit = int(np.frexp(ends)[1].min()) - 53 + UNIT_BITS if ranks else 0
        self.bits = max(min(lowest_bit, _trailing_zeros(total), _trailing_zeros(squares) // 2, UNIT_BITS), 0)
        both = to_units(ends, self.bits)
        low, high = both[: self.low.size], both[self.low.size :]
        total, squares = total >> self.bits, squares >> 2 * self.bits
        keep_low, keep_high = min(ranks, self.n // 2), min(ranks, self.n - self.n // 2)
        core_size = self.n - keep_low - keep_high
        core = total - sum(low[:keep_low]) - sum(high[:keep_high])
        self._centre = core // core_size if core_size else low[keep_low - 1]
        self.total = total - self.n * self._centre
        self.squares = squares - self._centre * (2 * total - self.n * self._centre)
        self.low_sums, self.low_squares = _prefix_sums(low, self._centre)
        self.high_sums, self.high_squares = _prefix_sums(high, self._centre)
        self._keep = keep_low, keep_high
        self._core_is_kept = min(self._keep) == ranks
        self._scale: int | None = None

    @property
    def unit(self) -> int:
        """How many times a spread is larger here than it is."""
        return 1 << 2 * (UNIT_BITS - self.bits)

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
            - (total - low[j] - high[rank - j]) ** 2
            for rank, j in zip(ranks, drops, strict=True)
        ]

    def _set_scale(self, rank: int) -> None:
        """Make the values of the narrowest window of this rank at most 1, if they are far from that."""
        last = self.ranks - 1
        j = np.arange(max(rank - last, 0), min(rank, last) + 1)
        scale = self.bits
        if j.size:
            centre = rounded_quotient(self._centre, 1 << (UNIT_BITS - self.bits))
            with np.errstate(over="ignore"):
                ends = np.maximum(np.abs(self.low[j] - centre), np.abs(self.high[rank - j] - centre))
            reach = min(float(ends.min()), MAX_FLOAT)
            scale = max(math.frexp(reach)[1] + UNIT_BITS, 0)
        # 2^400 times smaller squares are still far above what underflows
        if self._scale is None or abs(scale - self._scale) > 200:
            self._scale = scale
            self._round(scale - self.bits)

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

    def screen(self, block: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which windows of each rank may have the least variance, and which ranks have a constant one.

        Notes
        -----
        With values centred and scaled, a window of m values has sum T, sum of squares Q and m Var =
        Q - T^2/m. T and Q are sums of three floats: of the core, and of what each tail keeps, which is
        negative where a window drops some of the core as well. Let T+ and Q+ be the sums of their absolute
        values; T+ <= sqrt(2 n Q+). With u = 2^-53, T and Q have errors of at most 4 u T+ and 4 u Q+, so that
        of Q - T^2/m is below u (6 Q+ + 8 |T| T+/m + 5 T^2/m) + 16 u^2 T+^2/m, and for n < 2^47 below
        u (8 Q+ + 16 |T| T+/m). The margin doubles that, and adds more than what can be lost to underflow.
        If no window drops any of the core, then Q+ = Q and T+ <= sqrt(m Q): the margin is 48 u Q. The scale
        follows the narrowest window of the first rank, so that far outliers, once dropped, do not blur the
        rest; a window whose sums overflow stays in question.
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
                error = 2.0**-52 * 24.0 * squares + 1e-290
            else:
                rounding = 8.0 * squares_size + 16.0 * np.abs(total) * total_size / size
                error = 2.0**-52 * rounding + 1e-290
            best = np.fmin.reduce(spread + error, axis=1, keepdims=True, where=valid, initial=np.inf)
            hopeless = spread - error > best
        return valid & ~hopeless, self._constant(j, dropped_high)

    def _add_parts(
        self, power: int, j: NDArray[np.intp], dropped_high: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Return the sum of the three parts of each window, and that of their sizes."""
        low, high = self._kept_low[power][j], _at(self._kept_high[power], dropped_high)
        core = self._core[power]
        total = high + (low + core)
        if self._core_is_kept:
            return total, total  # the second is not asked for
        return total, np.abs(high) + (np.abs(low) + abs(core))

    def _constant(self, j: NDArray[np.intp], dropped_high: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for which ranks a window has equal values at its two ends, numbers j+1 and n-k."""
        if self.low[-1] < self.high[-1]:
            return np.zeros(len(dropped_high), dtype=np.bool_)
        first = np.append(self.low, np.nan)[j]
        last = _at(np.append(self.high, np.nan), dropped_high)
        constant: NDArray[np.bool_] = ((dropped_high >= 0) & (first == last)).any(axis=1)
        return constant


def _trailing_zeros(number: int) -> int:
    """Return how often a whole number can be halved; for 0, more often than any unit here."""
    return (number & -number).bit_length() - 1 if number else 4 * UNIT_BITS


def _floats(numbers: list[int], bits: int) -> Floats:
    """Return numbers / 2**bits, rounded; what is too large is infinite."""
    try:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(np.array(numbers, dtype=np.float64), -bits)
    except OverflowError:
        return np.array([_quotient(number, bits) for number in numbers])


def _quotient(number: int, bits: int) -> float:
    try:
        return number / (1 << bits) if bits >= 0 else float(number << -bits)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _prefix_sums(values: list[int], centre: int) -> tuple[list[int], list[int]]:
    centred = [value - centre for value in values]
    return list(accumulate(centred, initial=0)), list(accumulate([v * v for v in centred], initial=0))


def _at(values: Floats, number: NDArray[np.intp]) -> Floats:
    """Return the values with these numbers, and anything where the number is negative."""
    taken: Floats = np.take(values, number, mode="clip")
    return taken
