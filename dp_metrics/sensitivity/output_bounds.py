"""Output bounds: the lowest and highest values that a metric can take when a few records change.

One function for each row of the table of metrics. L^l, f and U^l are each one exact rational number
of the (float) records and public constants, rounded once, so that the floats inherit every inequality
of Definition 3.4 of the paper: U^l(x) <= U^(l+1)(x') and L^l(x) >= L^(l+1)(x') between neighbours.

A mechanism that draws the scale of its noise sees `Extremes` besides. There is a *statistic* of the extreme
records with output bounds: the k-th largest loss, or how far values lie from the mean of the middle ones. And
for each public C there is a *clipped sum* T, at most n times the metric, that grows by 0 to C when a record
is added.

Where the number of records is private, so is the divisor of a mean. A mechanism that adds noise sees `Sums`
then. A record that counts for a part p of the limit adds p to one sum and 1 - p to another: together it moves
them by 1, whatever it is, and their quotient is the mean.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.inputs.options import MAX_FLOAT, Floats, Range


@dataclass(frozen=True, kw_only=True)
class _Fields:
    """The public fields, which `BoundsFacts` and `OutputBounds` share without one being the other."""

    output_range: Range
    monotonic: bool
    n: int | None
    sensitivity: float | None = None
    record_limit: float | None = None
    mean_ranks: int = 0
    has_spread: bool = False


@dataclass(frozen=True, kw_only=True)
class BoundsFacts(_Fields):
    """All that is public of output bounds: the fields of `OutputBounds` of these names."""

    @property
    def relative_sensitivity(self) -> float | None:
        """The global sensitivity as a share of the range; None if there is none, or the range is a point."""
        low, high = self.output_range
        return None if self.sensitivity is None or low == high else self.sensitivity / (high - low)

    def bounds(self, value: float, lower: Any, upper: Any) -> "OutputBounds":
        """Return output bounds of which this is public."""
        return OutputBounds(value, lower, upper, **vars(self))

    def widest(self) -> "OutputBounds":
        """Return those of a made-up metric: it lies at the low end of the range, and may be anything."""
        low, high = self.output_range
        return self.bounds(low, [low], [high])


@dataclass(frozen=True, repr=False)
class OutputBounds(_Fields):
    """All that a mechanism sees of the data: the metric and its bounds by rank.

    The value and the arrays are private data; the other fields are public.

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
        Public number of records (or groups), or a private estimate of it; None if it is not to be known.
    sensitivity : float or None, default=None
        Global sensitivity of the metric; None if it has none.
    record_limit : float or None, default=None
        Public limit of n times what one record adds to the metric; None if there is none.
    mean_ranks : int, default=0
        If the metric f moves as a mean of n terms of at least 0 does, the public number of ranks with bounds
        of their own: a summary may keep fewer than a mechanism asks for. With s the sensitivity, B the upper
        end of the range, and n records then f - l s <= L^l <= f (1 - l/n) and, up to B,
        f + l (B - f)/n <= U^l <= f + l s: the l largest terms, or headrooms, are at least average. Without a
        sensitivity, U^l may be anything; without n, l/n is 0. Otherwise 0.
    has_spread : bool, default=False
        Whether the metric is a mean over n records that count alike, each anywhere from 0 to the upper end:
        then how far they spread may be released with it.

    Raises
    ------
    ValueError
        If the bounds are not ordered as described.
    """

    value: float
    lower: Floats
    upper: Floats

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape:
            raise ValueError("lower and upper must be 1d arrays of one length.")
        ladder = self.ladder
        if not (ladder[1:] >= ladder[:-1]).all():
            raise ValueError("Output bounds must be ordered: range, lower ranks, value, upper ranks, range.")

    @property
    def ladder(self) -> Floats:
        """All bounds and the value, from the lower end of the range to the upper one."""
        low, high = self.output_range
        return np.concatenate([[low], self.lower[::-1], [self.value], self.upper, [high]])

    @property
    def ranks(self) -> int:
        """Number of ranks with bounds of their own."""
        return int(self.lower.size)


ClippedSum: TypeAlias = tuple[Fraction, Fraction]
"""A clipped sum in units of C, T / C, which is private, and the C that a record adds to T at most."""

Ranks: TypeAlias = tuple[float, Floats, Floats]
"""A statistic, and its lower and upper output bounds at so many ranks."""


@dataclass(frozen=True, repr=False, eq=False)
class Extremes:
    """A statistic of the most extreme records of a data set, and its clipped sums.

    The statistic, the clipped sums and a private number of records are private data; the rest is public.

    Parameters
    ----------
    at_ranks : callable
        Given k and a number of ranks, the statistic of the k-th records from the ends and its bounds. Such a
        record adds it, or of distances its square, to n times the metric. A loss moves all output bounds in
        one direction between neighbours, a distance need not.
    clipped : callable
        The clipped sum for a positive statistic y: C is at least y, or the square of y if it is a distance,
        and no more than the public limit.
    private_n : int or None
        The number of records, where it is private.
    """

    at_ranks: Callable[[int, int], Ranks]
    clipped: Callable[[float], ClippedSum]
    private_n: int | None


def order_statistic(values: Floats, limit: float, k: int, ranks: int) -> Ranks:
    """Return y_k of descending values, 0 beyond the last: L^l = y_(k+l), U^l = y_(k-l), or the limit.

    A value that is added moves each y_i to y_i or y_(i-1), absent values being 0, and one that is replaced by
    at most one place either way: so bounds of rank l of one data set hold those of rank l - 1 of the other.
    """
    y = padded(values, k + ranks)
    return float(y[k - 1]), y[k:], padded(y[: k - 1][::-1], ranks, limit)


def order_statistic_facts(n: int, limit: float) -> BoundsFacts:
    """Return what is public of the output bounds of an order statistic of n records."""
    sensitivity = None if limit >= MAX_FLOAT else limit
    return BoundsFacts(output_range=(0.0, limit), monotonic=True, n=n, sensitivity=sensitivity)


def order_statistic_bounds(x: Floats, k: int, ranks: int, limit: float) -> OutputBounds:
    """Return the output bounds of the k-th smallest of values in [0, limit], when records are replaced.

    These are the bounds of `order_statistic`. If a record grows, every order statistic grows or stays: the
    metric is monotonic. k counts from 1.
    """
    ranks = min(ranks, x.size)
    first, last = max(k - 1 - ranks, 0), min(k - 1 + ranks, x.size - 1)
    window = np.sort(np.partition(x, (first, last))[first : last + 1])
    of_rank = order_statistic(window[::-1], limit, last - k + 2, ranks)
    return order_statistic_facts(x.size, limit).bounds(*of_rank)


def padded(values: Floats, ranks: int, end: float = 0.0) -> Floats:
    """Return bounds of so many ranks, of which those without one of their own have the end of the range."""
    array = np.full(ranks, end)
    array[: len(values)] = values[:ranks]
    return array


FINENESS = 1 << 20
"""Steps of the lattice in the most that one record adds, or in one global sensitivity."""


@dataclass(frozen=True, repr=False, eq=False)
class Sums:
    """Whole numbers with a public sensitivity, and what follows from them.

    Parameters
    ----------
    values : tuple of int
        Sums over the records in steps of the lattice: private.
    sensitivity : int
        By how much the values of neighbours differ at most, summed over their absolute differences: public.
    combine : callable
        The metric of as many arrays of noisy values, of any size and sign; public.
    rises : tuple of bool, default=()
        For each of the values whether the metric rises with it, or falls; empty if it does neither.
    fineness : int, default=FINENESS
        What each record adds to all values together, in steps: public.
    """

    values: tuple[int, ...]
    sensitivity: int
    combine: Callable[..., Floats]
    rises: tuple[bool, ...] = ()
    fineness: int = FINENESS


def ratio_sums(total: Fraction, n: int, scale: float, limit: float) -> Sums:
    """Return a sum to which each of n records adds at most 1, and what is left of it to n.

    Parameters
    ----------
    total : Fraction
        The sum, in units of what a record adds at most.
    n : int
        Number of records: private.
    scale : float
        This unit, as a number.
    limit : float
        Public limit of the metric.
    """
    # rounding to nearest commutes with shifts by whole steps: if a record comes or goes, the first changes by
    # 0 to `FINENESS`, and the second by the rest of it
    steps = math.floor(FINENESS * total + Fraction(1, 2))
    combine = partial(_ratio, scale=scale, limit=limit)
    return Sums((steps, n * FINENESS - steps), FINENESS, combine, (True, False))


def _ratio(part: Floats, rest: Floats, *, scale: float, limit: float) -> Floats:
    part = np.maximum(part, 0.0)
    # one record at least: the mean of none is 0
    share = part / np.maximum(part + np.maximum(rest, 0.0), FINENESS)
    return np.minimum(share * scale, limit)
