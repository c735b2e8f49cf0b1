"""The least variance of what remains of a column when its most extreme values are dropped, exactly."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    float_units,
    rounded_quotient,
    to_squared_units,
    to_units,
)

LeastSpreads: TypeAlias = tuple[int, list[int]]
"""What `least_spreads` returns."""

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
        self._core = [float(_floats([sums], scale)[0]), float(_floats([squares], 2 * scale)[0])]
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
                error = 2.0**-52 * 6.0 * (self.ranks + 8) * squares + _LOST
            else:
                rounding = 2.0 * squares_size + 4.0 * np.abs(total) * total_size / size
                error = 2.0**-52 * (self.ranks + 8) * rounding + _LOST
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
