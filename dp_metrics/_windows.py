"""The least variance of what remains of a column when its most extreme values are dropped, exactly."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dp_metrics._exact import to_units
from dp_metrics.summaries import VarianceSummary

__all__ = ["least_spreads"]

Floats = NDArray[np.float64]


def least_spreads(summary: VarianceSummary, ranks: int) -> Iterator[tuple[int, int]]:
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

    def __init__(self, summary: VarianceSummary, ranks: int) -> None:
        self.n, self.ranks = summary.n, ranks
        self.low, self.high = summary.smallest[:ranks], summary.largest[:ranks]
        self.total, self.squares = summary.total, summary.squares
        low, high = to_units(self.low), to_units(self.high)
        self.low_sums, self.low_squares = _prefix_sums(low)
        self.high_sums, self.high_squares = _prefix_sums(high)
        self._screening_terms(low, high)

    def least(self, rank: int, drops: Sequence[int]) -> int:
        """Return the least spread of the windows that drop `rank` values, `drops` of them smallest."""
        size = self.n - rank
        spreads = []
        for j in drops:
            total = self.total - self.low_sums[j] - self.high_sums[rank - j]
            squares = self.squares - self.low_squares[j] - self.high_squares[rank - j]
            spreads.append(size * squares - total * total)
        return min(spreads)

    def _screening_terms(self, low: list[int], high: list[int]) -> None:
        """Round what each tail keeps, centred and scaled to magnitudes near 1, to floats."""
        keep_low = min(self.ranks, self.n // 2)
        keep_high = min(self.ranks, self.n - self.n // 2)
        size = self.n - keep_low - keep_high
        core = self.total - self.low_sums[keep_low] - self.high_sums[keep_high]
        core_squares = self.squares - self.low_squares[keep_low] - self.high_squares[keep_high]
        # any centre is exact here; one near the middle of the data keeps the floats accurate
        centre = core // size if size else low[keep_low - 1]
        scale = max(abs(low[0] - centre), abs(high[0] - centre), 1).bit_length()

        def centred(count: int, sums: int, squares: int) -> tuple[float, float]:
            shifted = squares - 2 * centre * sums + count * centre * centre
            return (sums - count * centre) / (1 << scale), shifted / (1 << (2 * scale))

        def kept(sums: list[int], squares: list[int], keep: int) -> Floats:
            return np.array(
                [
                    centred(keep - j, sums[keep] - sums[j], squares[keep] - squares[j])
                    for j in range(self.ranks + 1)
                ]
            ).T

        self._core = centred(size, core, core_squares)
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
        doubles that, and adds more than what can be lost to underflow.
        """
        j = np.arange(int(block[-1]) + 1)
        valid = j <= block[:, np.newaxis]
        size = np.maximum(self.n - block, 1)[:, np.newaxis].astype(np.float64)

        def pair(which: int) -> tuple[Floats, Floats]:
            low = self._kept_low[which][j]
            high = _reversed_rows(self._kept_high[which], block)
            core = self._core[which]
            return low + high + core, np.abs(low) + np.abs(high) + abs(core)

        total, total_size = pair(0)
        squares, squares_size = pair(1)
        spread = squares - total * total / size
        error = 2.0**-52 * (8.0 * squares_size + 16.0 * np.abs(total) * total_size / size) + 1e-290
        best = np.min(np.where(valid, spread + error, np.inf), axis=1, keepdims=True)
        # a window from value number j+1 to value number n-k is constant if its two ends are equal
        first = np.append(self.low, np.nan)[j]
        last = _reversed_rows(np.append(self.high, np.nan), block)
        return valid & (spread - error <= best), (valid & (first == last)).any(axis=1)


def _prefix_sums(units: list[int]) -> tuple[list[int], list[int]]:
    return list(accumulate(units, initial=0)), list(accumulate((u * u for u in units), initial=0))


def _reversed_rows(values: Floats, block: NDArray[np.intp]) -> Floats:
    """Return the matrix values[rank - j], one row per rank of the block, 0 where rank < j."""
    width = int(block[-1]) + 1
    padded = np.concatenate([values[:width][::-1], np.zeros(width - 1)])
    rows: Floats = sliding_window_view(padded, width)[width - 1 - block]
    return rows
