"""Plans: what a call releases, made of options and of the public form of the records, part by part.

Most parts are one number that has output bounds: a mechanism of the caller's choice releases it. A part that
is a vector of whole numbers with a public sensitivity gets exact discrete noise instead.

A `Plan` holds public things only, so that it may be kept with a result, compared, sent to a worker and shown.
Reading is a second step: `Plan.read` is the one door to the records. What it returns, a `KnownParts`, is
private; of a mean or a variance in memory it holds the records, whose contents are looked at in blocks when
the release is prepared, before the spend, and again for sums that are clipped at a scale drawn after it.
Several plans with one spend are a `Together` of `Share`s.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from types import MethodType
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import Draw, KnownNumber, NumberPart
from dp_metrics.release.noise import MOST_ERROR, VectorDraw
from dp_metrics.release.released import Monotone, ReleasedNumbers, only
from dp_metrics.release.result import PrivateResult
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


class Comparable:
    """Public: equal, and of one hash, where all that it holds is equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparable) and _content(self) == _content(other)

    def __hash__(self) -> int:
        return hash(_content(self))


_ONE_NUMBER = Monotone(only)


@dataclass(frozen=True, repr=False, eq=False)
class KnownParts:
    """Private: what the parts of a plan have to know of the same records.

    Parameters
    ----------
    parts : tuple of Known
        One for each part of the plan.
    """

    parts: tuple[Known, ...]

    @property
    def n(self) -> int:
        """Number of records."""
        return self.parts[0].n

    @property
    def total_weight(self) -> float | None:
        """What turns a mean into the sum."""
        return self.parts[0].total_weight

    @property
    def weight(self) -> int | None:
        """Public total weight of the records, where only an aggregate with a weight is known of them."""
        return getattr(getattr(self.parts[0], "aggregate", None), "weight", None)

    def summary(self, capacity: int) -> Self:
        """Return what is known where the records are not looked at again, at most so many ranks of each."""
        return type(self)(tuple(part.summary(capacity) for part in self.parts))

    def merge(self, other: Self) -> Self:
        """Return what is known of the records of both."""
        pairs: Any = zip(self.parts, other.parts, strict=True)
        return type(self)(tuple(a.merge(b) for a, b in pairs))


@dataclass(frozen=True, eq=False)
class Plan(Comparable):
    """Public: what one call releases, and how its result follows.

    Parameters
    ----------
    parts : tuple of Part
        What to release about the same records, at epsilon together.
    reader : callable
        Checks the form of `Records`, and returns those that the parts read.
    postprocess : callable, default=the one number that is released
        The result of a `ReleasedNumbers`; a `WithLimits` one has limits of its noise too.
    shares : tuple of Fraction or None, default=None
        Positive parts of epsilon, with sum 1; None for equal ones.
    mechanisms : tuple of (str, Mechanism or None), default=()
        Mechanisms of those parts that have one of their own, unless the caller chooses.
    unstated : str or None, default=None
        Why the plan cannot be carried out with a private number of records: the form of the call leaves open
        what would then follow from whether there are records. None: it can.
    most_records : int, default=1
        How many records one person has at most: of epsilon a release spends that part on one record.

    Notes
    -----
    **Privacy of persons.** Let k be `most_records`, and two data sets differ in all records of one person,
    whose number is public. Replacing these one by one leads from one to the other over at most k - 1 data
    sets, each valid as each record is. What is epsilon / k-differentially private where one record is
    replaced changes its probabilities by at most a factor exp(epsilon / k) at each step, so by exp(epsilon)
    over all. For a table that is noise of rate epsilon / (2 k), which k records that move to other cells use
    up; of a number that has output bounds each rank costs a k-th part, so that k ranks cost what one does.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 2.2 (group
    privacy), doi:10.1561/0400000042.
    """

    parts: tuple[Part, ...]
    reader: Callable[[Records], Records]
    postprocess: Callable[[ReleasedNumbers], Any] = _ONE_NUMBER
    shares: tuple[Fraction, ...] | None = None
    mechanisms: tuple[str | Mechanism | None, ...] = ()
    unstated: str | None = None
    most_records: int = 1

    @property
    def kinds(self) -> tuple[type, ...]:
        """The kind of each part."""
        return tuple(type(part) for part in self.parts)

    @property
    def merges(self) -> bool:
        """Whether what is known of pieces of the records tells what has to be known of all."""
        return all(part.merges for part in self.parts)

    @property
    def ranges(self) -> tuple[Any, ...]:
        """The kind of each part, with the upper end of its range if it has one."""
        return tuple((type(part), getattr(part, "highest", None)) for part in self.parts)

    def merges_with(self, other: "Plan") -> bool:
        """Return whether what is known for both merges: records of one form, and numbers of one range."""
        return bool(self.ranges == other.ranges and _content(self.reader) == _content(other.reader))

    def epsilons(self, epsilon: Fraction) -> list[Fraction]:
        """Return the part of epsilon of each part."""
        shares = self.shares or (Fraction(1, len(self.parts)),) * len(self.parts)
        return [epsilon * share for share in shares]

    def read(self, records: Records) -> KnownParts:
        """Return what has to be known of records: the one door to them.

        Raises
        ------
        TypeError, ValueError
            If their form is invalid, or a record that has to be looked at here.
        """
        # whoever made NumPy raise or warn of overflows would learn of the data
        with np.errstate(all="ignore"):
            checked = self.reader(records)
            return KnownParts(tuple([part.known(checked) for part in self.parts]))


@dataclass(frozen=True)
class Share:
    """Public: one of several plans, and on which terms it is carried out.

    Parameters
    ----------
    plan : Plan
        What is released.
    epsilon : Fraction
        Its part of epsilon: how the parts add up is for whoever makes them to prove.
    relation : Relation
        The neighbouring relation under which it is released.
    metric : str
        Name of what is released.
    mean_size : Fraction or None, default=None
        The public mean number of records, where the number of its own is private.
    """

    plan: Plan
    epsilon: Fraction
    relation: Relation
    metric: str
    mean_size: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Together(Comparable):
    """Public: several plans that one spend pays for.

    Parameters
    ----------
    shares : tuple of Share
        The plans, in the order in which they are drawn.
    reader : callable
        The `Records` of each share, of all `Records`.
    combine : callable
        The result, of the `PrivateResult` of each share.
    relation : Relation or None, default=None
        The neighbouring relation that the accountant counts; None: that of the release.
    """

    shares: tuple[Share, ...]
    reader: Callable[[Records], Sequence[Records]]
    combine: Callable[[Sequence[PrivateResult[Any]]], Any]
    relation: Relation | None = None

    def read(self, records: Records) -> tuple[KnownParts, ...]:
        """Return what each share has to know of its records; see `Plan.read`."""
        with np.errstate(all="ignore"):
            pieces = self.reader(records)
            return tuple(share.plan.read(piece) for share, piece in zip(self.shares, pieces, strict=True))


def _content(value: Any) -> Any:
    """Return a public value in a form that is equal, and hashes alike, where what it is made of is equal."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), *(_content(getattr(value, one.name)) for one in fields(value) if one.compare)
    if isinstance(value, partial):
        return partial, value.func, _content(value.args), _content(value.keywords)
    if isinstance(value, MethodType):
        return MethodType, value.__func__, _content(value.__self__)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, _content(value.ravel().tolist())
    if isinstance(value, Mapping):
        return dict, *sorted((name, _content(held)) for name, held in value.items())
    if isinstance(value, tuple | list):
        return list, *map(_content, value)
    if isinstance(value, float) and math.isnan(value):
        return float, "nan"
    return type(value), value
