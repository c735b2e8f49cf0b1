"""What queries share of which only an aggregate of the records is known."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, Self

from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.queries.query import BoundsQuery
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["AggregatedQuery", "Needs"]


class Needs(NamedTuple):
    """How much a mechanism needs to know of the data: public numbers."""

    ranks: int
    extremes: int


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedQuery(BoundsQuery):
    """A query of which only the aggregate is known; it remembers the output bounds that it was asked for."""

    aggregate: Any
    _made: dict[tuple[Needs, bool], OutputBounds] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.aggregate.n)

    def merge(self, other: Self) -> Self:
        """Return the query about the records of both, of which only summaries are known."""
        return replace(self, aggregate=self.aggregate.merge(other.aggregate))

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds at as many ranks as the mechanism asks for and are known."""
        needs = self._needs(mechanism, epsilon, private_n)
        if max(needs) > self.aggregate.capacity:  # the condition depends on public numbers only
            warnings.warn(
                f"A release at this epsilon uses {max(needs)} ranks, but the summary keeps "
                f"{self.aggregate.capacity}. The release is as private, but less accurate, and useless if "
                "fewer than half of the ranks are kept. Make the summary with a larger capacity.",
                stacklevel=2,
            )
        return self.bounds(needs, private_n)

    def bounds(self, needs: Needs, private_n: bool) -> OutputBounds:
        """Return the output bounds at so many ranks, or all that are known, with the extremes asked for."""
        if (made := self._made.get((needs, private_n))) is None:
            made = self._made[needs, private_n] = self._bounds(needs, private_n)
        return made

    @abstractmethod
    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> Needs:
        """Return what the mechanism asks for."""

    @abstractmethod
    def _bounds(self, needs: Needs, private_n: bool) -> OutputBounds:
        """Return the output bounds, with the extremes asked for."""
