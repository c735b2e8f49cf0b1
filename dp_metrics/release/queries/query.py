"""Queries: what to release about a set of records, and how it is prepared for the draw.

Most queries have output bounds, and a mechanism of the caller's choice releases one number. A query that is a
vector of whole numbers with a public sensitivity gets exact discrete noise instead.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from dp_metrics.mechanisms import Geometric, Mechanism
from dp_metrics.mechanisms.geometric import SumsLaw, expected_noise
from dp_metrics.release.draws import BoundsDraw, Draw, SumsDraw, VectorDraw
from dp_metrics.release.noise import MOST_ERROR, expected_error
from dp_metrics.sensitivity.noisy_sums import FINENESS, Sums
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["ADDED", "AggregatedQuery", "BoundsQuery", "CountsQuery", "IntegerVector", "Needs", "Query"]

ADDED = (
    "the noise is expected to move it by {:.3g} of its public range. Above "
    f"{MOST_ERROR} a release is mostly noise: take more records, or a larger epsilon."
)
"""What to say of noise that is added, given its expected size."""


class Query(Protocol):
    """What to release about a set of records."""

    @property
    def n(self) -> int:
        """Number of records."""
        ...

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        ...

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records, or groups, is mostly noise.

        Nothing but the public settings of the draw is read.
        """
        ...

    def records_told(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Fraction | None:
        """Return the number of records that a release tells, whose true number is private; None if none."""
        ...

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the release uses the number of records, or an estimate of it."""
        ...

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return what is left to do after the spend; raise for whatever cannot be released."""
        ...


class BoundsQuery(ABC):
    """A query that has output bounds: a mechanism releases one number."""

    noise_note: ClassVar[str] = (
        "if a few records make up most of it, expect errors of half its size and more."
    )
    """What it means that a release is mostly noise, for the warning."""

    @property
    def mostly_noise(self) -> int:
        """Below this n * epsilon a release is mostly noise: measured in ``benchmarks/defaults.py``."""
        return 50

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records, or groups, is mostly noise."""
        if isinstance(draw, SumsDraw):
            error: float | None = expected_error(expected_noise(draw.sums_law.rate) / FINENESS, records)
        else:
            error = draw.added_error if isinstance(draw, BoundsDraw) else None
        if error is not None:
            return ADDED.format(min(error, 1.0)) if error > MOST_ERROR else None
        times_epsilon = records * draw.epsilon
        if times_epsilon >= self.mostly_noise:
            return None
        return (
            f"n * epsilon is {float(times_epsilon):.3g} for one number. Below {self.mostly_noise} "
            f"a release is mostly noise: {self.noise_note}"
        )

    def records_told(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Fraction | None:
        """Return the number of records that a release tells: the noisy count, or the sum of all sums."""
        if "sums" in drawn:
            return Fraction(sum(drawn["sums"]), FINENESS)
        return None if count is None else Fraction(count)

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of records."""

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        return self.n

    @abstractmethod
    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return what the mechanism sees; raise for whatever it cannot serve."""

    @abstractmethod
    def sums(self) -> Sums:
        """Return the sums that serve the geometric mechanism where n is private; raise if there are none."""

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the mechanism reads the number of records."""
        return mechanism.needs_count

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw by the mechanism."""
        if private_n and isinstance(mechanism, Geometric):
            return SumsDraw(SumsLaw(self.sums(), epsilon), mechanism)
        output_bounds = self.output_bounds(mechanism, epsilon, private_n=private_n)
        return BoundsDraw(output_bounds, mechanism, epsilon, counted=private_n and mechanism.needs_count)


class Needs(NamedTuple):
    """How much a mechanism needs to know of the data: public numbers."""

    ranks: int
    extremes: int


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedQuery(BoundsQuery):
    """A query that is known by its aggregate only; it remembers the output bounds that it gave."""

    aggregate: Any
    _made: dict[tuple[Needs, bool], OutputBounds] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.aggregate.n)

    def merge(self, other: Self) -> Self:
        """Return the query about the records of both."""
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
        """Return the output bounds at this number of ranks, or at all known ones, with the extremes."""
        if (made := self._made.get((needs, private_n))) is None:
            made = self._made[needs, private_n] = self._bounds(needs, private_n)
        return made

    @abstractmethod
    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> Needs:
        """Return what the mechanism asks for."""

    @abstractmethod
    def _bounds(self, needs: Needs, private_n: bool) -> OutputBounds:
        """Return the output bounds, with the extremes asked for."""


class CountsQuery:
    """A query of whole numbers, which get noise of a public size whatever the mechanism."""

    @property
    def size(self: Query) -> int:
        """Number of records."""
        return self.n

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return None: an interval or a comparison is made of the numbers, and says how sure it is."""
        return None

    def records_told(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Fraction | None:
        """Return None: whole numbers do not say what they count."""
        return None

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return False: the noise depends on the public sensitivity only."""
        return False


@dataclass(frozen=True, repr=False, eq=False)
class IntegerVector(CountsQuery):
    """Whole numbers that are released together, each with exact two-sided geometric noise.

    Parameters
    ----------
    values : tuple of int
        Counts or sums over the records: private.
    sensitivity : int
        By how much the values of neighbours differ at most, summed over their absolute differences: public.
    n : int
        Number of records.
    """

    values: tuple[int, ...]
    sensitivity: int
    n: int

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw of noise, whatever the mechanism."""
        return VectorDraw(self.values, ((len(self.values), epsilon / self.sensitivity),))
