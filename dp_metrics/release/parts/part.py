"""Parts of plans, and what is known of the records for each: the public half and the private half.

Most parts are one number that has output bounds: a mechanism of the caller's choice releases it. A part that
is a vector of whole numbers with a public sensitivity gets exact discrete noise instead.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import Draw, KnownNumber, NumberPart
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.noise import MOST_ERROR
from dp_metrics.sensitivity.noisy_sums import Sums
from dp_metrics.sensitivity.output_bounds import OutputBounds

_Made = TypeVar("_Made")

ADDED = (
    "the noise is expected to move it by {:.3g} of its public range. Above "
    f"{MOST_ERROR} a release is mostly noise: take more records, or a larger epsilon."
)
"""What to say of noise that is added, given its expected size."""


class Part(ABC):
    """Public: one number, or several whole numbers that are released as one, of a plan.

    Whole numbers get noise of a public size, whatever the mechanism: they need no count.
    """

    merges: ClassVar[bool] = True
    """Whether what is known of pieces of the records tells what has to be known of all."""

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the release uses the number of records, or an estimate of it."""
        return False

    @property
    def may_be_heavy(self) -> bool:
        """Whether it is a mean, or a variance, of which a few records may make up much."""
        return False

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records, or groups, is mostly noise.

        Nothing but the public settings of the draw is read. Nothing is said where an interval or a comparison
        is made of the numbers: that says how sure it is.
        """
        return None

    def records_told(
        self, draw: Any, value: Any, drawn: Mapping[str, Any], count: int | None
    ) -> Fraction | None:
        """Return the number of records that a release tells, whose true number is private; None if none."""
        return None

    @abstractmethod
    def known(self, records: Records) -> "Known":
        """Return what a release has to know of records whose form is valid: private."""


class BoundsPart(NumberPart, Part):
    """Public: a number that has output bounds."""

    mostly_noise: ClassVar[int] = 50
    """Below this n * epsilon a release is mostly noise: measured in ``benchmarks/defaults.py`` of 308a3eb."""
    noise_note: ClassVar[str] = (
        "if a few records make up most of it, expect errors of half its size and more."
    )
    """What it means that a release is mostly noise, for the warning."""

    def needs_count(self, mechanism: Mechanism) -> bool:
        """Return whether the mechanism reads the number of records."""
        return mechanism.asks_count(self)

    def too_noisy(self, draw: Any, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records, or groups, is mostly noise."""
        error = draw.added_error(records)
        if error is not None:
            return ADDED.format(min(error, 1.0)) if error > MOST_ERROR else None
        times_epsilon = records * draw.epsilon
        if times_epsilon >= self.mostly_noise:
            return None
        return (
            f"n * epsilon is {float(times_epsilon):.3g} for one number. Below {self.mostly_noise} "
            f"a release is mostly noise: {self.noise_note}"
        )

    def records_told(
        self, draw: Any, value: Any, drawn: Mapping[str, Any], count: int | None
    ) -> Fraction | None:
        """Return the number of records that a release tells: the noisy count, or the sum of all sums."""
        if "sums" in drawn:
            return Fraction(sum(drawn["sums"]), draw.fineness)
        return None if count is None else Fraction(count)


class KnownRecords(KnownNumber):
    """Private: the records themselves, which are looked at as often as a release needs it."""

    @abstractmethod
    def aggregate(self, capacity: int) -> "KnownAggregate":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""

    def known(self, capacity: int) -> "KnownAggregate":
        """Return an aggregate that knows so much."""
        return self.aggregate(capacity)

    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds."""
        return self.aggregate(ranks).bounds_at(ranks, relation)

    def has_extremes(self, relation: Relation) -> bool:
        """Return True."""
        return True

    def sums(self) -> Sums | None:
        """Return the sums that tell the number."""
        return self.aggregate(0).sums()


@dataclass(frozen=True, repr=False, eq=False)
class KnownAggregate(KnownNumber):
    """Private: an aggregate of the records only; it remembers the output bounds that it gave."""

    part: Any
    aggregate: Any
    _made: dict[Any, Any] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.aggregate.n)

    def summary(self, capacity: int) -> Self:
        """Return the same: an aggregate keeps what it was made with."""
        return self

    def merge(self, other: Self) -> Self:
        """Return what is known of the records of both."""
        return replace(self, aggregate=self.aggregate.merge(other.aggregate))

    def known(self, capacity: int) -> Self:
        """Return the same, which knows no more than its aggregate."""
        if capacity > self.aggregate.capacity:  # the condition depends on public numbers only
            warnings.warn(
                f"A release at this epsilon uses {capacity} ranks, but the summary keeps "
                f"{self.aggregate.capacity}. The release is as private, but less accurate, and useless if "
                "fewer than half of the ranks are kept. Make the summary with a larger capacity.",
                stacklevel=2,
            )
        return self

    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds at this number of ranks, or at all known ones."""
        return self._once(self._bounds, ranks, relation)

    def _once(self, make: Callable[..., _Made], *arguments: Any) -> _Made:
        key = make.__name__, arguments
        if key not in self._made:
            self._made[key] = make(*arguments)
        made: _Made = self._made[key]
        return made

    @abstractmethod
    def _bounds(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds."""


class KnownCounts(ABC):
    """Private: the whole numbers of n records."""

    n: int
    total_weight: float | None = None

    @property
    def size(self) -> int:
        """Number of records."""
        return self.n

    @abstractmethod
    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> Draw:
        """Return what is left to do after the spend; raise for whatever cannot be released."""

    def summary(self, capacity: int) -> Self:
        """Return what a release needs to know of the records, whatever the capacity."""
        return self


Known: TypeAlias = KnownNumber | KnownCounts
"""Private: what the release of a part has to know of the records."""


@dataclass(frozen=True, eq=False)
class IntegersOf(Part):
    """Public: whole numbers that are released together, as a part of a plan.

    Parameters
    ----------
    numbers : callable
        The whole numbers, of `Records` whose form is valid.
    sensitivity : int
        As in `IntegerVector`.
    """

    numbers: Callable[[Records], tuple[int, ...]]
    sensitivity: int

    merges = False

    def known(self, records: Records) -> "IntegerVector":
        """Return the whole numbers."""
        return IntegerVector(self.numbers(records), self.sensitivity, len(records.arrays[0]))


@dataclass(frozen=True, repr=False, eq=False)
class IntegerVector(KnownCounts):
    """Private: whole numbers that are released together, each with exact two-sided geometric noise.

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

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> Draw:
        """Return a draw of noise, whatever the mechanism."""
        return VectorDraw(self.values, ((len(self.values), epsilon / self.sensitivity),))
