"""The least variance of what remains of a column when its most extreme values are dropped, exactly."""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dp_metrics._aggregates import VarianceAggregate
from dp_metrics._exact import UNIT_BITS, rounded_quotient, to_units
from dp_metrics._validation import MAX_FLOAT

__all__ = ["least_spreads"]

Floats = NDArray[np.float64]


def least_spreads(summary: VarianceAggregate, ranks: int) -> Iterator[tuple[int, int]]:
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
    windows = _Windows(summary, ranks)
    for first in range(1, ranks + 1, 256):
        block = np.arange(first, min(first + 256, ranks + 1))
        candidates, zero = windows.screen(block)
        for row, rank in enumerate(block.tolist()):
            if zero[row] or rank >= summary.n - 1:
                return  # all later windows lie inside this one
            yield summary.n - rank, windows.least(rank, np.flatnonzero(candidates[row]).tolist())


class _Windows:
    """Sums over the sorted values without their j smallest and k largest."""

    def __init__(self, summary: VarianceAggregate, ranks: int) -> None:
        self.n, self.ranks = summary.n, ranks
        self.low, self.high = summary.smallest[:ranks], summary.largest[:ranks]
        self.total, self.squares = summary.total, summary.squares
        low, high = to_units(self.low), to_units(self.high)
        self.low_sums, self.low_squares = _prefix_sums(low)
        self.high_sums, self.high_squares = _prefix_sums(high)
        self._keep = min(ranks, self.n // 2), min(ranks, self.n - self.n // 2)
        size = self.n - sum(self._keep)
        core = self.total - self.low_sums[self._keep[0]] - self.high_sums[self._keep[1]]
        # any centre is exact here; one near the middle of the data keeps the floats accurate
        self._centre = core // size if size else low[self._keep[0] - 1]
        self._scale: int | None = None

    def least(self, rank: int, drops: Sequence[int]) -> int:
        """Return the least spread of the windows that drop `rank` values, `drops` of them smallest."""
        size = self.n - rank
        spreads = []
        for j in drops:
            total = self.total - self.low_sums[j] - self.high_sums[rank - j]
            squares = self.squares - self.low_squares[j] - self.high_squares[rank - j]
            spreads.append(size * squares - total * total)
        return min(spreads)

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
            self._round(scale)

    def _round(self, scale: int) -> None:
        """Round what each tail keeps, centred and divided by 2^scale units, to floats, which may overflow."""
        centre, (keep_low, keep_high) = self._centre, self._keep

        def centred(count: int, sums: int, squares: int) -> tuple[float, float]:
            shifted = squares - 2 * centre * sums + count * centre * centre
            return _quotient(sums - count * centre, scale), _quotient(shifted, 2 * scale)

        def kept(sums: list[int], squares: list[int], keep: int) -> Floats:
            return np.array(
                [
                    centred(keep - j, sums[keep] - sums[j], squares[keep] - squares[j])
                    for j in range(self.ranks + 1)
                ]
            ).T

        self._core = centred(
            self.n - keep_low - keep_high,
            self.total - self.low_sums[keep_low] - self.high_sums[keep_high],
            self.squares - self.low_squares[keep_low] - self.high_squares[keep_high],
        )
        self._kept_low = kept(self.low_sums, self.low_squares, keep_low)
        self._kept_high = kept(self.high_sums, self.high_squares, keep_high)

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

        def pair(which: int) -> tuple[Floats, Floats]:
            low = self._kept_low[which][j]
            high = _reversed_rows(self._kept_high[which], block)
            core = self._core[which]
            return low + high + core, np.abs(low) + np.abs(high) + abs(core)

        with np.errstate(over="ignore", invalid="ignore"):
            total, total_size = pair(0)
            squares, squares_size = pair(1)
            spread = squares - total * total / size
            rounding = 8.0 * squares_size + 16.0 * np.abs(total) * total_size / size
            error = 2.0**-52 * rounding + 1e-290
            best = np.fmin.reduce(np.where(valid, spread + error, np.inf), axis=1, keepdims=True)
            hopeless = spread - error > best
        # a window from value number j+1 to value number n-k is constant if its two ends are equal
        first = np.append(self.low, np.nan)[j]
        last = _reversed_rows(np.append(self.high, np.nan), block)
        return valid & ~hopeless, (valid & (first == last)).any(axis=1)


def _quotient(numerator: int, bits: int) -> float:
    try:
        return numerator / (1 << bits)
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _prefix_sums(units: list[int]) -> tuple[list[int], list[int]]:
    return list(accumulate(units, initial=0)), list(accumulate((u * u for u in units), initial=0))


def _reversed_rows(values: Floats, block: NDArray[np.intp]) -> Floats:
    """Return the matrix values[rank - j], one row per rank of the block, 0 where rank < j."""
    width = int(block[-1]) + 1
    padded = np.concatenate([values[:width][::-1], np.zeros(width - 1)])
    rows: Floats = sliding_window_view(padded, width)[width - 1 - block]
    return rows
