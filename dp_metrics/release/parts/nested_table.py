"""Tables whose columns nest: as many of them are released as the public size and epsilon deserve."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.parts.count_table import CountTable, noisy_table, noisy_total
from dp_metrics.release.parts.part import KnownCounts, Part
from dp_metrics.sensitivity.aggregates import CountAggregate

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
