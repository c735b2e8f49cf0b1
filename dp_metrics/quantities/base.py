"""The types of every release: what is asked and how it is drawn are public, what records tell is private.

A `Quantity` is asked. Its `Totals` follow from the number of records and from their public weights;
`noise_of` makes a `Noise` of a mechanism, a quantity and totals, before a record is looked at. The quantity
turns records into `Stats`, which are private and merge; the noise prepares a draw from these; after the spend
the draw gives an `Output`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

from dp_metrics._random import Entropy
from dp_metrics.inputs.arrays import Records
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import Limits
from dp_metrics.sensitivity.exact import UNIT_BITS
from dp_metrics.sensitivity.noisy_sums import Sums
from dp_metrics.sensitivity.output_bounds import BoundsFacts


@dataclass(frozen=True)
class Totals:
    """How many records there are, and how much they count: public where their number is, else private.

    Parameters
    ----------
    n : int
        Number of records.
    size : int
        Number of records, or of groups that change together.
    weight : int
        Total weight of the records, in units of 2**-1074.
    limits : int or None, default=None
        The sum of the limits of what each record, or group, adds, in these units; None if there are none.
    largest : float, default=0.0
        The largest of these limits.
    is_plain : bool, default=True
        Whether each record counts alike, and is a group of its own.
    """

    n: int
    size: int
    weight: int
    limits: int | None = None
    largest: float = 0.0
    is_plain: bool = True

    @classmethod
    def of(cls, n: int) -> Self:
        """Return those of n records that count alike."""
        return cls(n, n, n << UNIT_BITS)

    def merge(self, other: Self) -> Self:
        """Return those of the records of both."""
        limits = None if self.limits is None or other.limits is None else self.limits + other.limits
        return type(self)(
            self.n + other.n,
            self.size + other.size,
            self.weight + other.weight,
            limits,
            max(self.largest, other.largest),
            self.is_plain and other.is_plain,
        )


class Output(NamedTuple):
    """Public: one released number, or several whole numbers, and what else was drawn under the same epsilon.

    Parameters
    ----------
    value : float or tuple of int
        What was released.
    drawn : mapping
        What else was drawn, by its name.
    noisy_n : int or None, default=None
        The noisy number of records, where it was used.
    """

    value: Any
    drawn: Mapping[str, Any]
    noisy_n: int | None = None


class NoisyValue(Protocol):
    """Public: what was released, with all that is known of its noise."""

    @property
    def even_range(self) -> tuple[float, float] | None:
        """The range of one number, if limits of its noise are as close whatever the records are."""

    def limits(self, miss: float) -> Limits:
        """Return limits of what was released before the noise; `miss`: probability that any is wrong.

        Raises
        ------
        ValueError
            If there are none, with the reason.
        """


Draw: TypeAlias = Callable[[Entropy, int | None], Output]
"""Private: what is left of a release after the spend, given a noisy number of records. It cannot fail."""


class Stats(Protocol):
    """Private: what a release has to know of records."""

    @property
    def totals(self) -> Totals:
        """How much the records count."""

    @property
    def capacity(self) -> int | None:
        """How many extreme records a summary keeps: public; None: as many as were asked for."""

    def merge(self, other: Self) -> Self:
        """Return the stats of the records of both, with the same bits in any order."""


class Quantity:
    """Public: one number about records, or several whole numbers that are released as one."""

    merges: ClassVar[bool] = True
    """Whether stats of pieces of the records tell the stats of all."""
    is_mean: ClassVar[bool] = False
    """Whether it is the mean of one loss of each record."""
    is_share: ClassVar[bool] = False
    """Whether it is the share of the records that have a loss."""
    is_table: ClassVar[bool] = False
    """Whether it is a table of counts of records."""
    units: int = 1
    """How many units the records of each person have together, where each person counts once."""
    are_distances: ClassVar[bool] = False
    """Whether the extremes, where there are some, are those of a variance: see `Extremes`."""

    @property
    def may_be_heavy(self) -> bool:
        """Whether it is a mean, or a variance, of which a few records may make up much."""
        return False

    @property
    def upper_end(self) -> float | None:
        """The upper end of the range of a number of records that count alike; None of whole numbers."""
        return None

    def plain(self, n: int) -> Totals:
        """Return the totals of n records that count alike."""
        return Totals.of(n)

    def totals(self, records: Records) -> Totals:
        """Return the totals of records: of their number and public weights, not of their contents."""
        return self.plain(len(records.arrays[0]))

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> Noise | None:
        """Return the noise that the quantity has of its own; None where the mechanism chooses.

        Parameters
        ----------
        mechanism : Mechanism
            The one that was chosen.
        totals : Totals or None
            None where the number of records is private.
        epsilon : Fraction
            Privacy parameter.
        """
        return None

    def stats(self, records: Records, totals: Totals, ranks: int, *, forget: bool = False) -> Any:
        """Look at records whose form is valid, as far as a noise asks.

        Parameters
        ----------
        records : Records
            Private.
        totals : Totals
            Theirs.
        ranks : int
            How many extreme records have to be known.
        forget : bool, default=False
            Whether the records cannot be looked at again.
        """
        raise NotImplementedError


class Number(Quantity):
    """Public: a number from 0 to a limit that has output bounds.

    Its stats have ``bounds(ranks, private_n)`` and, as the class variables say, ``extremes`` and ``spread``.
    """

    has_extremes: ClassVar[bool] = False
    """Whether there are extremes, from which the scale of noise may be drawn."""
    has_sums: ClassVar[bool] = False
    """Whether sums over the records tell the number, if it has a public limit."""
    most_ranks: ClassVar[int | None] = None
    """Ranks that a release uses at most, if that is limited."""
    mostly_noise: ClassVar[int] = 50
    """Below this n * epsilon a release is mostly noise: measured in ``benchmarks/defaults.py`` of 308a3eb."""
    noise_note: ClassVar[str] = (
        "if a few records make up most of it, expect errors of half its size and more."
    )
    """What it means that a release is mostly noise, for the warning."""

    @property
    def upper_end(self) -> float:
        """The upper end of the range of a number of records that count alike."""
        return self.highest(self.plain(1))

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds; totals: None where the number of records is private."""
        raise NotImplementedError

    def highest(self, totals: Totals | None) -> float:
        """Return the public upper end of the range that mechanisms are told."""
        return self.facts(totals, 0).output_range[1]

    def is_monotonic(self, private_n: bool) -> bool:
        """Return whether between neighbours all output bounds move in one direction."""
        return not private_n

    def sums(self, stats: Any = None) -> Sums:
        """Return the sums that tell the number; without stats those of no record, which are public."""
        raise NotImplementedError

    def extremes_limit(self, totals: Totals | None) -> float:
        """Return the public limit of the statistic of the extreme records."""
        raise NotImplementedError

    def too_noisy(self, epsilon: Fraction, records: Fraction) -> str | None:
        """Return a warning if so few records, or groups, tell little of the number at this epsilon."""
        times_epsilon = records * epsilon
        if times_epsilon >= self.mostly_noise:
            return None
        return (
            f"n * epsilon is {float(times_epsilon):.3g} for one number. Below {self.mostly_noise} "
            f"a release is mostly noise: {self.noise_note}"
        )


class Noise:
    """Public: how a quantity is drawn, made before a record is looked at.

    What is said of noise is about its public size. Nothing is said where an interval or a comparison is made
    of the numbers: that says how sure it is.
    """

    forgets: ClassVar[bool] = False
    """Whether it needs stats that do not look at the records again."""

    @property
    def name(self) -> str:
        """What draws, for the accountant's history."""
        raise NotImplementedError

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms that draw, if it is one that a caller may choose."""
        return ()

    @property
    def ranks(self) -> int:
        """How many extreme records it has to know."""
        return 0

    @property
    def needs_count(self) -> bool:
        """Whether it uses a noisy number of records."""
        return False

    def prepare(self, stats: Any) -> Draw:
        """Return what is left to do after the spend; raise now for whatever could fail."""
        raise NotImplementedError

    def law(self, stats: Any, count: int | None) -> Any:
        """Return the exact law of the draw, for audits and expected errors."""
        raise NotImplementedError

    def number(self, output: Output) -> Any:
        """Return what was released, as results read it."""
        return output.value

    def told(self, output: Output) -> NoisyValue:
        """Return what was released with its noise."""
        return NoisyNumber(self, output)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of a number before the noise; see `NoisyValue`."""
        raise NotImplementedError

    def clipped_share(self, output: Output) -> float:
        """Return about what share of a number with heavy tails clipping takes off; 0 if hardly any."""
        return 0.0

    @property
    def even_range(self) -> tuple[float, float] | None:
        """The range of a number whose limits tell whether it is mostly noise; None where they do not."""
        return None

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records, or groups, is mostly noise."""
        return None

    def records(self, output: Output) -> Fraction | None:
        """Return the number of records that a release tells, whose true number is private; None if none."""
        return None if output.noisy_n is None else Fraction(output.noisy_n)

    def note(self, output: Output) -> str | None:
        """Return what the drawn numbers tell of the bias of a release, if it may be large."""
        return None


class NoisyNumber(NamedTuple):
    """Public: one number that was released, and its noise."""

    noise: Noise
    output: Output

    @property
    def even_range(self) -> tuple[float, float] | None:
        """The range of the number, if limits of its noise are as close whatever the records are."""
        return self.noise.even_range

    def limits(self, miss: float) -> Limits:
        """Return limits of the number before the noise."""
        return self.noise.limits(self.output, miss)


def ranks_known(wanted: int, capacity: int | None) -> int:
    """Return how many ranks, of so many, are known to stats of this capacity."""
    return wanted if capacity is None else min(wanted, capacity)
