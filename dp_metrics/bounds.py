"""Output bounds: the lowest and highest values that a metric can take when a few records change.

One function for each row of the table of metrics. L^l, f and U^l are each one exact rational number
of the (float) records and public constants, rounded once, so that the floats inherit every inequality
of Definition 3.4 of the paper: U^l(x) <= U^(l+1)(x') and L^l(x) >= L^(l+1)(x') between neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dp_metrics._exact import UNIT_BITS, rounded_quotient, to_units
from dp_metrics._validation import MAX_FLOAT
from dp_metrics.summaries import LossSummary, VarianceSummary

__all__ = ["OutputBounds", "mean_loss_bounds", "variance_bounds"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class OutputBounds:
    """All that a mechanism sees of the data: the metric and its bounds by rank.

    The arrays and the value are private data; the other fields are public.

    Parameters
    ----------
    value : float
        The metric f(x).
    lower, upper : ndarray of shape (ranks,)
        L^1, L^2, ... (not increasing, at most `value`) and U^1, U^2, ... (not decreasing, at least `value`).
        Beyond the last rank the bounds are those of `output_range`.
    output_range : tuple of float
        Public range of the metric: (0, largest finite float) for a non-negative, unbounded one.
    monotonic : bool
        True if between neighbours L, f and U all move in one direction.
    n : int or None
        Number of records (or groups); None if it is private.
    sensitivity : float or None, default=None
        Global sensitivity of the metric; None if it has none.
    paper_scale : float, default=1.0
        Size of the paper's unit in units of the metric: 1/n where the paper takes a sum and we a mean.

    Raises
    ------
    ValueError
        If the bounds are not ordered as described.
    """

    value: float
    lower: Floats
    upper: Floats
    output_range: tuple[float, float]
    monotonic: bool
    n: int | None
    sensitivity: float | None = None
    paper_scale: float = 1.0

    def __post_init__(self) -> None:
        lower, upper = np.asarray(self.lower, dtype=np.float64), np.asarray(self.upper, dtype=np.float64)
        if lower.ndim != 1 or lower.shape != upper.shape:
            raise ValueError("lower and upper must be 1d arrays of one length.")
        ladder = np.concatenate(
            [self.output_range[:1], lower[::-1], [self.value], upper, self.output_range[1:]]
        )
        if not (ladder[1:] >= ladder[:-1]).all():
            raise ValueError("Output bounds must be ordered: range, lower ranks, value, upper ranks, range.")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def ranks(self) -> int:
        """Number of ranks with bounds of their own."""
        return int(self.lower.size)

    def truncate(self, ranks: int) -> Self:
        """Return the same bounds with at most `ranks` ranks."""
        return replace(self, lower=self.lower[:ranks], upper=self.upper[:ranks])


def mean_loss_bounds(summary: LossSummary, *, paper_scale: float = 1.0) -> OutputBounds:
    """Return the output bounds of a mean of non-negative losses when records are replaced.

    L^l drops the l largest losses to 0, U^l raises the l smallest to the cap (to no limit without one).
    If a record's loss grows, every L^l, f and U^l grows or stays: the metric is monotonic.

    References
    ----------
    Lemmas D.1 to D.5 of the paper (linearly separable functions), for the mean.
    """
    n, cap = summary.n, summary.cap
    scale = n << UNIT_BITS
    ranks = min(summary.capacity, n)
    lower = [
        rounded_quotient(summary.total - dropped, scale) for dropped in accumulate(to_units(summary.largest))
    ]
    if cap is None:
        upper, limit, sensitivity = np.full(ranks, MAX_FLOAT), MAX_FLOAT, None
    else:
        (raised,) = to_units(np.array([cap]))
        gains = accumulate(raised - loss for loss in to_units(summary.smallest))
        upper = np.array([rounded_quotient(summary.total + gain, scale) for gain in gains])
        limit, sensitivity = cap, cap / n
    return OutputBounds(
        value=rounded_quotient(summary.total, scale),
        lower=np.array(lower),
        upper=upper,
        output_range=(0.0, limit),
        monotonic=True,
        n=n,
        sensitivity=sensitivity,
        paper_scale=paper_scale,
    )


def variance_bounds(summary: VarianceSummary) -> OutputBounds:
    """Return the output bounds of the population variance when records are replaced.

    L^l = (n-l)/n times the least variance of n-l consecutive sorted values. With bounds [a, b],
    U^l = min(Var + l (b-a)^2 (n-1)/n^2, (b-a)^2/4). L and U can move in opposite directions between
    neighbours, so variance is not monotonic, whatever section 4.1 of the paper says.

    References
    ----------
    Lemmas 5.1 to 5.3 of the paper; the upper bound here is tighter.
    """
    n = summary.n
    ranks = min(summary.capacity, n)
    spread = n * summary.squares - summary.total**2  # n^2 Var, in units of 2^-2148
    unit = 1 << (2 * UNIT_BITS)
    value = rounded_quotient(spread, n * n * unit)
    if summary.bounds is None:
        upper, limit, sensitivity = np.full(ranks, MAX_FLOAT), MAX_FLOAT, None
    else:
        low, high = to_units(np.array(summary.bounds))
        width = (high - low) ** 2
        limit = rounded_quotient(width, 4 * unit)
        rise = width * (n - 1)
        upper = np.array(
            [rounded_quotient(spread + rank * rise, n * n * unit) for rank in range(1, ranks + 1)]
        )
        upper = np.minimum(upper, limit)
        sensitivity = rounded_quotient(rise, n * n * unit)
    return OutputBounds(
        value=value,
        lower=_variance_lower(summary, ranks),
        upper=upper,
        output_range=(0.0, limit),
        monotonic=False,
        n=n,
        sensitivity=sensitivity,
    )


def _variance_lower(summary: VarianceSummary, ranks: int) -> Floats:
    """Return L^1..L^ranks of the variance, each correctly rounded.

    A window drops j smallest and l - j largest values. Its sums are those of the core, which no
    window near the centre drops, plus what it keeps of the two tails, all exact integers. Floats
    screen the windows of one rank; those that rounding errors leave in question are compared exactly.
    """
    windows = _Windows(summary, ranks)
    lower = np.zeros(ranks)
    for first in range(1, ranks + 1, 256):
        block = np.arange(first, min(first + 256, ranks + 1))
        candidates, zero = windows.screen(block)
        for row, rank in enumerate(block.tolist()):
            if zero[row] or rank >= summary.n - 1:
                return lower  # and so are all later ranks: their windows lie inside this one
            lower[rank - 1] = windows.least(rank, np.flatnonzero(candidates[row]).tolist())
    return lower


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

    def least(self, rank: int, drops: Sequence[int]) -> float:
        """Return the least variance over the windows that drop `rank` values, `drops` of them smallest."""
        size = self.n - rank
        spreads = []
        for j in drops:
            total = self.total - self.low_sums[j] - self.high_sums[rank - j]
            squares = self.squares - self.low_squares[j] - self.high_squares[rank - j]
            spreads.append(size * squares - total * total)
        return rounded_quotient(min(spreads), (size * self.n) << (2 * UNIT_BITS))

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
