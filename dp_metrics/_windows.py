"""The least variance of what remains of a column when its most extreme values are dropped, exactly."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dp_metrics._aggregates import VarianceAggregate
from dp_metrics._exact import UNIT_BITS, rounded_quotient, to_units
from dp_metrics._validation import MAX_FLOAT

__all__ = ["least_spreads"]

Floats = NDArray[np.float64]


def least_spreads(aggregate: VarianceAggregate, ranks: int) -> Iterator[tuple[int, int]]:
    """Yield, for 1, 2, ... dropped values, the size m of what remains and the least m^2 Var over the choices.

    The spread m^2 Var is in units of 2^-2148. After `ranks` pairs, or where it is 0 for ever, the iteration
    ends.

    Notes
    -----
    The best window consists of consecutive sorted values: it drops j smallest and l - j largest ones. Its
    sums are those of the core, which no window near the centre drops, plus what it keeps of the two tails,
    all exact integers. Floats screen the windows of one rank; those that rounding errors leave in question
    are compared exactly.
    """
    windows = _Windows(aggregate, ranks)
    for first in range(1, ranks + 1, 256):
        block = np.arange(first, min(first + 256, ranks + 1))
        candidates, zero = windows.screen(block)
        rows, drops = np.nonzero(candidates)
        starts = np.searchsorted(rows, np.arange(block.size + 1)).tolist()
        in_order: list[int] = drops.tolist()
        for row, rank in enumerate(block.tolist()):
            if zero[row] or rank >= aggregate.n - 1:
                return  # all later windows lie inside this one
            yield aggregate.n - rank, windows.least(rank, in_order[starts[row] : starts[row + 1]])


class _Windows:
    """Sums over the sorted values without their j smallest and k largest.

    Values are integers here: multiples of 2^bits units, counted from a centre, which changes no variance. One
    near the middle of the data keeps the floats that screen windows accurate.
    """

    def __init__(self, aggregate: VarianceAggregate, ranks: int) -> None:
        self.n, self.ranks = aggregate.n, ranks
        self.low, self.high = aggregate.smallest[:ranks], aggregate.largest[:ranks]
        low, high = to_units(self.low), to_units(self.high)
        total, squares = aggregate.total, aggregate.squares
        self._bits = min(_trailing_zeros(reduce(or_, low + high, total)), _trailing_zeros(squares) // 2)
        low, high = ([value >> self._bits for value in side] for side in (low, high))
        total, squares = total >> self._bits, squares >> 2 * self._bits
        keep_low, keep_high = min(ranks, self.n // 2), min(ranks, self.n - self.n // 2)
        self._core_size = self.n - keep_low - keep_high
        core = total - sum(low[:keep_low]) - sum(high[:keep_high])
        centre = core // self._core_size if self._core_size else low[keep_low - 1]
        self._centre = centre << self._bits
        self.total = total - self.n * centre
        self.squares = squares - centre * (2 * total - self.n * centre)
        self.low_sums, self.low_squares = _prefix_sums(value - centre for value in low)
        self.high_sums, self.high_squares = _prefix_sums(value - centre for value in high)
        self._keep = keep_low, keep_high
        self._scale: int | None = None

    def least(self, rank: int, drops: Sequence[int]) -> int:
        """Return the least spread of the windows that drop `rank` values, `drops` of them smallest."""
        size = self.n - rank
        spreads = []
        for j in drops:
            total = self.total - self.low_sums[j] - self.high_sums[rank - j]
            squares = self.squares - self.low_squares[j] - self.high_squares[rank - j]
            spreads.append(size * squares - total * total)
        return min(spreads) << 2 * self._bits

    def _set_scale(self, rank: int) -> None:
        """Make the values of the narrowest window of this rank at most 1, if they are far from that."""
        last = self.ranks - 1
        j = np.arange(max(rank - last, 0), min(rank, last) + 1)
        scale = 0
        if j.size:
            centre = rounded_quotient(self._centre, 1 << UNIT_BITS)
            with np.errstate(over="ignore"):
                ends = np.abs(np.stack([self.low[j], self.high[rank - j]]) - centre)
            reach = min(float(ends.max(axis=0).min()), MAX_FLOAT)
            scale = max(math.frexp(reach)[1] + UNIT_BITS, 0)
        # 2^400 times smaller squares are still far above what underflows
        if self._scale is None or abs(scale - self._scale) > 200:
            self._scale = scale
            self._round(scale - self._bits)

    def _round(self, scale: int) -> None:
        """Round what each tail keeps, and the core, divided by 2^scale, to floats, which may be infinite."""
        keep_low, keep_high = self._keep
        core = [
            self.total - self.low_sums[keep_low] - self.high_sums[keep_high],
            self.squares - self.low_squares[keep_low] - self.high_squares[keep_high],
        ]
        tails = [
            [prefix[keep] - value for value in prefix]
            for prefix, keep in (
                (self.low_sums, keep_low),
                (self.low_squares, keep_low),
                (self.high_sums, keep_high),
                (self.high_squares, keep_high),
            )
        ]
        self._core = [float(_floats([core[i]], (i + 1) * scale)[0]) for i in (0, 1)]
        low, low_squares, high, high_squares = (
            _floats(tail, power * scale) for tail, power in zip(tails, (1, 2, 1, 2), strict=True)
        )
        self._kept_low, self._kept_high = (low, low_squares), np.stack([high, high_squares])

    def screen(self, block: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which windows of each rank may have the least variance, and which ranks have a constant one.

        Notes
        -----
        With values centred and scaled, a window of m values has sum T, sum of squares Q and m Var =
        Q - T^2/m. Let Q+ be the sum of the absolute values of the three terms of Q, T+ likewise.
        T and Q carry at most 4 roundings (2^-53 each) relative to T+ and Q+, and T+ <= sqrt(m' Q+)
        with m' <= n terms, so the error of Q - T^2/m is below 2^-53 (8 Q+ + 16 |T| T+/m). The margin
        doubles that, and adds more than what can be lost to underflow. The scale follows the narrowest
        window of the first rank, so that far outliers, once dropped, do not blur the rest; a window whose
        sums overflow stays in question.
        """
        self._set_scale(int(block[0]))
        j = np.arange(int(block[-1]) + 1)
        valid = j <= block[:, np.newaxis]
        size = np.maximum(self.n - block, 1)[:, np.newaxis].astype(np.float64)
        kept_high = _reversed_rows(self._kept_high, block)

        def pair(which: int) -> tuple[Floats, Floats]:
            low, high, core = self._kept_low[which][j], kept_high[which], self._core[which]
            return low + high + core, np.abs(low) + np.abs(high) + abs(core)

        with np.errstate(over="ignore", invalid="ignore"):
            total, total_size = pair(0)
            squares, squares_size = pair(1)
            spread = squares - total * total / size
            rounding = 8.0 * squares_size + 16.0 * np.abs(total) * total_size / size
            error = 2.0**-52 * rounding + 1e-290
            best = np.fmin.reduce(np.where(valid, spread + error, np.inf), axis=1, keepdims=True)
            hopeless = spread - error > best
        return valid & ~hopeless, self._constant(j, valid, block)

    def _constant(
        self, j: NDArray[np.intp], valid: NDArray[np.bool_], block: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Return for which ranks a window has equal values at its two ends, numbers j+1 and n-k."""
        if self.low[-1] < self.high[-1]:
            return np.zeros(block.size, dtype=np.bool_)
        first = np.append(self.low, np.nan)[j]
        last = _reversed_rows(np.append(self.high, np.nan)[np.newaxis], block)[0]
        constant: NDArray[np.bool_] = (valid & (first == last)).any(axis=1)
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


def _prefix_sums(values: Iterable[int]) -> tuple[list[int], list[int]]:
    kept = list(values)
    return list(accumulate(kept, initial=0)), list(accumulate((v * v for v in kept), initial=0))


def _reversed_rows(values: Floats, block: NDArray[np.intp]) -> Floats:
    """Return for each row of values the matrix row[rank - j], one row per rank, 0 where rank < j."""
    width = int(block[-1]) + 1
    padded = np.concatenate([values[:, :width][:, ::-1], np.zeros((len(values), width - 1))], axis=1)
    rows: Floats = sliding_window_view(padded, width, axis=1)[:, width - 1 - block]
    return rows
