"""Tables of counts: the part of a plan, what is known of the records, and what noisy counts tell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms.geometric import COUNT_LIMIT, expected_error
from dp_metrics.release.noise import MOST_ERROR, CountsNoise, VectorDraw, as_floats, in_words
from dp_metrics.release.plan import KnownCounts, Part
from dp_metrics.sensitivity.aggregates import CountAggregate

_MOST_ZERO_SUM = 256  # more cells get noise without a sum, which costs 0.2 % of accuracy and much less time
_FEW = 4

MOST_CELLS = 10_000_000
"""Cells of one table: a gigabyte at 100 bytes each, four at an epsilon of 300 digits."""

Cells = tuple[tuple[int, Fraction], ...]
"""For how many cells in a row, which weight."""


@dataclass(frozen=True, eq=False)
class TableOf(Part):
    """Public: how many records lie in each public cell, as a part of a plan.

    Parameters
    ----------
    cells, is_partition
        As in `CountTable`.
    count : callable
        The counts of `Records` whose form is valid.
    """

    cells: Cells
    is_partition: bool
    count: Callable[[Records], NDArray[np.int64]]

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if a table of this number of records is mostly noise."""
        return noisy_table(self.cells, draw, records)

    def records_told(
        self, draw: Any, value: Any, drawn: Mapping[str, Any], count: int | None
    ) -> Fraction | None:
        """Return the noisy number of records, which the counts tell."""
        return Fraction(noisy_total(value, self.cells))

    def known(self, records: Records) -> "CountTable":
        """Return the counts."""
        return CountTable(self.count(records), len(records.arrays[0]), self.cells, self.is_partition)

    def restored(self, aggregate: CountAggregate) -> "CountTable":
        """Return what is known of an aggregate; raise if that is one of another table."""
        if aggregate.counts.size != sum(size for size, _ in self.cells):
            raise ValueError("The counts are those of another table.")
        return CountTable(aggregate.table, aggregate.n, self.cells, self.is_partition)


@dataclass(frozen=True, repr=False, eq=False)
class CountTable(KnownCounts):
    """Private: how many records lie in each public cell, released together with noise.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,), whole numbers
        Private.
    n : int
        Number of records.
    cells : tuple of (int, Fraction)
        Public weights of the cells, in runs. Over the counts that one record adds, the sum of weight times
        count is at most 1.
    is_partition : bool
        Whether each record lies in exactly one cell, of weight 1.

    Notes
    -----
    **Privacy.** If a record is replaced, the sum over all cells of weight times change is at most 2: noise
    of rate weight * epsilon / 2 in each cell is epsilon-differentially private (`VectorDraw`). If the cells
    are a partition, the total is n before and after, and the noise may have the sum 0. If a record is added
    or removed, the sum is at most 1, and the rate weight * epsilon.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity; C. Canonne, G. Kamath and T. Steinke, arXiv:2004.00010, for the
    draw.
    """

    counts: NDArray[np.int64]
    n: int
    cells: Cells
    is_partition: bool

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> VectorDraw:
        """Return a draw of noise, whatever the mechanism."""
        rate = epsilon if relation.private_n else epsilon / 2
        zero_sum = self.is_partition and not relation.private_n and 2 <= self.counts.size <= _MOST_ZERO_SUM
        rates = tuple((size, rate * weight) for size, weight in self.cells)
        return VectorDraw(tuple(self.counts.tolist()), rates, zero_sum, shown=True)

    @property
    def aggregate(self) -> CountAggregate:
        """The counts, as they are written."""
        return CountAggregate.of(self.counts)

    def merge(self, other: Self) -> Self:
        """Return what is known of the records of both, in the same cells."""
        return replace(self, counts=self.counts + other.counts, n=self.n + other.n)


def noisy_table(cells: Cells, draw: VectorDraw, records: Fraction) -> str | None:
    """Return a warning if a table of this number of records is mostly noise; see `MOST_ERROR`.

    Weights make counts of one unit: over all cells the weighted counts add up to about as many as there are
    records, and the weighted noise is about the same in all.
    """
    size = len(draw.values)
    of_runs = (
        float(weight) * CountsNoise((0,) * size, ((number, rate),), draw.zero_sum).expected
        for (number, weight), (_, rate) in zip(cells, draw.rates, strict=True)
    )
    noise, mean = max(of_runs), float(records / size)
    if expected_error(noise, 2 * mean) <= MOST_ERROR:
        return None
    return (
        f"each of the {size} counts is expected to be off by {in_words(noise)} records, and in a cell are "
        f"{in_words(mean)} on average. Above a fifth of them a release is mostly noise: take more records, "
        "fewer cells or a larger epsilon."
    )


def check_cells(cells: int, table: str, fewer: str) -> None:
    """Raise if a table has too many cells, before there is one: the work is bounded by public numbers.

    Parameters
    ----------
    cells : int
        Public number of cells that are counted, or released.
    table : str
        What has them.
    fewer : str
        What needs fewer.
    """
    if cells > MOST_CELLS:
        raise ValueError(f"{table} has {cells:,} cells; the limit is {MOST_CELLS:,}. {fewer}")


def noisy_total(noisy: Any, cells: Cells) -> int:
    """Return the number of records that noisy counts tell, at least 0."""
    weights = (weight for size, weight in cells for _ in range(size))
    total = round(sum((weight * count for weight, count in zip(weights, noisy, strict=True)), Fraction(0)))
    return min(max(total, 0), int(COUNT_LIMIT))


def plausible_counts(noisy: Any, cells: Cells, n: int | None) -> Floats:
    """Return the counts nearest to noisy ones that are at least 0 and, weighted, have the public sum n.

    Near is meant in the units of the noise: in the sum of squares of weight times distance. Where n is
    private the sum is the noisy one. That halves the error of a large matrix; of up to four cells, for which
    it is worse by a few percent, those below 0 become 0.

    Parameters
    ----------
    noisy : sequence of int
        Released counts.
    cells : tuple of (int, Fraction)
        As in `CountTable`.
    n : int or None
        The public number of records.
    """
    counts = as_floats(noisy)
    if n is None:
        if counts.size <= _FEW:
            return np.maximum(counts, 0.0)
        n = noisy_total(noisy, cells)
    weights = np.repeat([float(weight) for _, weight in cells], [size for size, _ in cells])
    nearest: Floats = nearest_with_sum(counts * weights, n) / weights
    return nearest


def nearest_with_sum(x: Floats, total: float) -> Floats:
    """Return the nearest point to x with coordinates of at least 0 and this sum: one number less for each.

    References
    ----------
    J. Duchi, S. Shalev-Shwartz, Y. Singer and T. Chandra, "Efficient Projections onto the l1-Ball for
    Learning in High Dimensions", 2008, doi:10.1145/1390156.1390191, Figure 1.
    """
    falling = np.sort(x)[::-1]
    less = (np.cumsum(falling) - total) / np.arange(1, x.size + 1)
    kept = int(np.flatnonzero(falling > less)[-1]) if total else 0
    nearest: Floats = np.maximum(x - less[kept], 0.0)
    reached = nearest.sum()  # rounding may have moved the sum from the total
    return nearest * (total / reached) if reached > 0 else nearest


FEWEST_COLUMNS, MOST_COLUMNS = 8, 128
_OF_UNKNOWN_SIZE = 32  # columns where n is private: right for n * epsilon of some thousands
_MANY = 10_000  # of n * epsilon


def columns_for(n: int | None, epsilon: Fraction, *, by_group: bool = False) -> int:
    """Return how many columns suit a table of n records: a power of two from 8 to 128; 32 if n is private.

    More columns hold more noise, fewer hide more of the curve. Below n epsilon = 10,000 the power next to 1.5
    (n epsilon)^(1/3) has the least errors: on three tasks, n epsilon from 90 on, they are 0 to 2 % above
    those with the number of columns that is not rounded (``benchmarks/classifiers.py`` of 308a3eb). From
    there on noise is small either way, and the power next to 0.9 (n epsilon)^(1/2) has the narrowest limits
    of an area, which allow for whatever the scores do within a bin. By group, where such limits tell whether
    a gap is one, it is taken always, with n the mean size of a group.
    """
    if n is None:
        return _OF_UNKNOWN_SIZE
    size, columns = n * epsilon, FEWEST_COLUMNS
    factor, power = (0.9, 2) if by_group or size >= _MANY else (1.5, 3)
    # the next power of two is nearer, in ratio, from half a step on; the comparison is exact
    while columns < MOST_COLUMNS and size >= Fraction((columns * 2**0.5 / factor) ** power):
        columns *= 2
    return columns


def merged_columns(table: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
    """Return the table with this number of columns, each the sum of equally many neighbours."""
    merged: NDArray[np.int64] = table.reshape(len(table), columns, -1).sum(axis=2)
    return merged


@dataclass(frozen=True, eq=False)
class NestedOf(Part):
    """Public: how many records lie in each public cell, as a part of a plan that merges columns.

    Parameters
    ----------
    count : callable
        The finest table of `Records` whose form is valid.
    rows, finest : int
        Its shape.
    columns, groups : default=None
        As in `NestedTable`.
    """

    count: Callable[[Records], NDArray[np.int64]]
    rows: int
    finest: int
    columns: int | None = None
    groups: int | None = None

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if a table of this number of records is mostly noise."""
        return noisy_table(((len(draw.values), Fraction(1)),), draw, records)

    def records_told(
        self, draw: Any, value: Any, drawn: Mapping[str, Any], count: int | None
    ) -> Fraction | None:
        """Return the noisy number of records, which the counts tell."""
        return Fraction(noisy_total(value, ((len(value), Fraction(1)),)))

    def known(self, records: Records) -> "NestedTable":
        """Return the finest table."""
        return NestedTable(self.count(records), self.columns, self.groups)

    def restored(self, aggregate: CountAggregate) -> "NestedTable":
        """Return what is known of an aggregate; raise if that is one of another table."""
        return NestedTable(aggregate.table.reshape(self.rows, self.finest), self.columns, self.groups)


@dataclass(frozen=True, repr=False, eq=False)
class NestedTable(KnownCounts):
    """Private: how many records lie in each public cell, in columns that are merged before the release.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns), whole numbers
        Private; each record lies in exactly one cell.
    columns : int or None, default=None
        Public number of columns to release, which divides that of the table; None: what `columns_for` says.
    groups : int or None, default=None
        Of how many groups of a frame there are rows; None: of all records.

    Notes
    -----
    **Privacy.** The number of columns depends on public numbers only; the merged table is a `CountTable`.
    """

    table: NDArray[np.int64]
    columns: int | None = None
    groups: int | None = None

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of records."""
        return int(self.table.sum())

    @property
    def aggregate(self) -> CountAggregate:
        """The finest counts, as they are written."""
        return CountAggregate.of(self.table.ravel())

    def merge(self, other: Self) -> Self:
        """Return what is known of the records of both, in the same cells."""
        return replace(self, table=self.table + other.table)

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> VectorDraw:
        """Return a draw of noise, whatever the mechanism."""
        mean = None if relation.private_n else self.n // (self.groups or 1)
        columns = self.columns or columns_for(mean, epsilon, by_group=self.groups is not None)
        counts = merged_columns(self.table, columns).ravel()
        table = CountTable(counts, self.n, ((counts.size, Fraction(1)),), is_partition=True)
        return table.prepare(mechanism, epsilon, relation=relation)
