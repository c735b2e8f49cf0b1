"""What is asked and how it is drawn, which is public; what records tell is private.

A `Quantity` is asked. Its `Totals` follow from the number of records and from their public weights;
`noise_of` makes a `Noise` of a mechanism, a quantity and totals, before a record is looked at: the one place
where the next step is chosen by type. The quantity turns records into stats, which are private; the noise
prepares a draw from these; after the spend the draw gives an `Output`.

The stats of every quantity have `totals`, how much the records count. Those that merge have ``merge(other)``,
which gives the same bits in any order, and `capacity`, how many extreme records a summary keeps: public; None
for as many as were asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from dp_metrics._random import Entropy, is_chosen
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import ByName, Floats, Range, did_you_mean
from dp_metrics.mechanisms import MECHANISMS, Adaptive, Geometric, Mechanism
from dp_metrics.mechanisms._base import require_bounded
from dp_metrics.mechanisms._laws import Limits, OutputLaw, Staircase, expected_error
from dp_metrics.mechanisms.adaptive import AdaptiveLaw, Stages, stages_of
from dp_metrics.mechanisms.geometric import SumsLaw
from dp_metrics.sensitivity.exact import UNIT_BITS
from dp_metrics.sensitivity.output_bounds import FINENESS, BoundsFacts, Extremes, OutputBounds, Sums


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
    drawn: ByName
    noisy_n: int | None = None


Draw: TypeAlias = Callable[[Entropy, int | None], Output]
"""Private: what is left of a release after the spend, given a noisy number of records. It cannot fail."""


@dataclass(frozen=True, repr=False, eq=False)
class Stats:
    """Private: what a quantity found in records; of pieces that is added up, if the quantity merges.

    Parameters
    ----------
    quantity : Quantity
        What is released.
    totals : Totals
        How much the records count.
    found : ndarray, RankedScores or VarianceAggregate
        Counts of records, other whole numbers or sums that add up, or all values.
    capacity : int or None, default=None
        How many extreme records are among what was found, if the records will not be looked at again.
    values : callable or None, default=None
        All values again, where what was found does not hold them and the quantity may ask for them.
    """

    quantity: Any
    totals: Totals
    found: Any
    capacity: int | None = None
    values: Callable[[], Floats] | None = None

    def merge(self, other: Self) -> Self:
        """Return those of the records of both."""
        return replace(self, totals=self.totals.merge(other.totals), found=self.found + other.found)

    def bounds(self, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds of a number, at so many ranks, or at all that are known."""
        return self.quantity.output_bounds(self, ranks, private_n)

    def extremes(self, ranks: int, private_n: bool) -> Extremes:
        """Return the extremes of a number that has some."""
        return self.quantity.extremes(self, private_n)


class Quantity:
    """Public: one number about records, or several whole numbers that are released as one.

    A number lies between 0 and a limit. It has output bounds and, as the class variables say, extremes. Whole
    numbers have noise of their own, and none of these.
    """

    merges: ClassVar[bool] = True
    """Whether stats of pieces of the records tell the stats of all."""
    is_share: bool = False
    """Whether it is the share of the records with the loss 1; the loss of all others is 0."""
    is_table: bool = False
    """Whether it is a table of counts of records."""
    find: Callable[[Records], Any]
    """Returns what `Stats` hold, of records whose form is valid; for stats of another type there is none."""
    units: int = 1
    """How many units the records of each person have together, where each person counts once."""
    has_extremes: ClassVar[bool] = False
    """Whether there are extremes, from which the scale of noise may be drawn."""
    are_distances: ClassVar[bool] = False
    """Whether the extremes, where there are some, are those of a variance: see `Extremes`."""
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
    no_limit: ClassVar[str | None] = None
    """Why a limit is missing that no mechanism can tell, and what tells it; None: each mechanism says why."""

    @property
    def may_be_heavy(self) -> bool:
        """Whether it is a mean, or a variance, of which a few records may make up much."""
        return False

    @property
    def upper_end(self) -> float | None:
        """The upper end of the range of a number of records that count alike; None of whole numbers."""
        return self.highest(self.plain(1))

    def plain(self, n: int) -> Totals:
        """Return the totals of n records that count alike."""
        return Totals.of(n)

    def totals(self, records: Records) -> Totals:
        """Return the totals of records, or of persons where each counts once; not of their contents."""
        if records.units is None:
            return self.plain(len(records.arrays[0]))
        return self.plain(int(records.units.sum()) // self.units)

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> "Noise | None":
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
        return Stats(self, totals, self.find(records))

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds; totals: None where the number of records is private."""
        raise NotImplementedError

    def highest(self, totals: Totals | None) -> float:
        """Return the public upper end of the range that mechanisms are told."""
        return self.facts(totals, 0).output_range[1]

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

    units: int = 1
    """As in `Quantity`."""

    mechanism: Mechanism | None
    """What draws, if it is a mechanism that a caller may choose."""

    quantity: Quantity
    epsilon: Fraction

    @property
    def name(self) -> str:
        """What draws, for the accountant's history: a mechanism with its parameters."""
        return repr(self.mechanism)

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
        return partial(self._draw, self.law(stats, None))

    def _draw(self, law: Any, entropy: Entropy, count: int | None) -> Output:
        """Return what a law gives: a value, and by its name what else was drawn."""
        value, drawn = law.release(entropy)
        return Output(value, drawn, count)

    def law(self, stats: Any, count: int | None) -> Any:
        """Return the exact law of the draw, for audits and expected errors."""
        raise NotImplementedError

    def number(self, output: Output) -> Any:
        """Return what was released, as results read it."""
        return output.value

    def told(self, output: Output) -> Any:
        """Return what was released with its noise: a `NoisyNumber`, or what has the same members."""
        return NoisyNumber(self, output)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of a number before the noise; see `NoisyNumber`."""
        raise NotImplementedError

    def clipped_share(self, output: Output) -> float:
        """Return about what share of a number with heavy tails clipping takes off; 0 if hardly any."""
        return 0.0

    @property
    def even_range(self) -> Range | None:
        """The range of a number whose limits tell whether it is mostly noise; None where they do not."""
        return None

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records, or groups, is mostly noise."""
        return self.quantity.too_noisy(self.epsilon, records)

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
    def even_range(self) -> Range | None:
        """The range of the number, if limits of its noise are as close whatever the records are."""
        return self.noise.even_range

    @property
    def spread(self) -> float | None:
        """The noisy spread of the numbers of which a mean was released with it; None of any other."""
        return self.output.drawn.get("spread")

    def limits(self, miss: float) -> Limits:
        """Return limits of the number before the noise; `miss`: probability that any is wrong.

        Raises
        ------
        ValueError
            If there are none, with the reason.
        """
        return self.noise.limits(self.output, miss)


def ranks_known(wanted: int, capacity: int | None) -> int:
    """Return how many ranks, of so many, are known to stats of this capacity, or used at most."""
    return wanted if capacity is None else min(wanted, capacity)


_WITH_DEFAULTS = {name: make() for name, make in MECHANISMS.items()}


def get_mechanism(mechanism: Any) -> Mechanism:
    """Return the mechanism with this name, or the mechanism object itself.

    Raises
    ------
    ValueError
        If there is no mechanism with this name.
    TypeError
        If it is neither a name nor a mechanism object.
    """
    if isinstance(mechanism, str):
        if mechanism not in MECHANISMS:
            raise ValueError(
                f"mechanism must be one of {sorted(MECHANISMS)} or a mechanism object, got {mechanism!r}."
                f"{did_you_mean(mechanism, MECHANISMS)}"
            )
        return _WITH_DEFAULTS[mechanism]
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism must be one of {sorted(MECHANISMS)} or a mechanism object such as Hazard()."
        )
    return mechanism


MOST_COUNT = 1 << 53
"""Largest noisy number of records that is used."""

MOST_ERROR = 0.1
"""Expected error of a share, above which a release is mostly noise: a tenth of the range from 0 to 1.

What is said of noise before the spend rests on this number; after it `WIDEST` tells. A share of n records is
mostly noise where noise of size z makes z / n larger than it. A table of c cells is where that holds for a
share of the records of two average cells, z / (2 n / c): where z exceeds a fifth of the mean number of
records in a cell.
"""


_ADDED = (
    "the noise is expected to move it by {:.3g} of its public range. Above "
    f"{MOST_ERROR} a release is mostly noise: take more records, or a larger epsilon."
)


def noise_of(
    mechanism: Mechanism, quantity: Quantity, totals: Totals | None, capacity: int | None, epsilon: Fraction
) -> Noise:
    """Return how a quantity is drawn.

    Parameters
    ----------
    mechanism : Mechanism
        The rule, for a number.
    quantity : Quantity
        What is released.
    totals : Totals or None
        None where the number of records is private.
    capacity : int or None
        How many extreme records a summary keeps; None for records in memory.
    epsilon : Fraction
        Privacy parameter.

    Raises
    ------
    ValueError
        If the mechanism cannot serve such a quantity.
    """
    if (own := quantity.noise(mechanism, totals, epsilon)) is not None:
        return own
    if isinstance(mechanism, Geometric) and totals is None and quantity.has_sums:
        require_bounded((0.0, quantity.highest(None)), "geometric")
        return SumsNoise(mechanism, epsilon, quantity, quantity.sums())
    if isinstance(mechanism, Adaptive) and quantity.has_extremes:
        n = None if totals is None else totals.size
        # whether a summary holds all values of a variance must not depend on a private n
        is_known = not quantity.are_distances or capacity is None or (n is not None and n <= capacity)
        in_two = TwoStages(quantity, mechanism, totals, capacity, epsilon)
        if is_known and in_two.known.probability > 0:
            return in_two
    return OneStage(quantity, mechanism, totals, capacity, epsilon)


_AT_1000, _FALL = 0.19, 0.3
"""The share at n * epsilon of 1,000, and the power by which it falls: ``benchmarks/median_table.py``."""


_CLIPPED_RANK = 2  # hazard selection clips about so many records / epsilon


_NEGLIGIBLE = 0.01


_MOST_TIMES = 10**7  # n * epsilon from which on the share is negligible


def _missing_share(n_epsilon: Fraction, clipped: float, most: float, released: float) -> float:
    """Return about what share of a mean of squares with heavy tails is missing.

    Squares are those of numbers with Student's law of 3 degrees of freedom. No more can be missing than the
    clipped records may add.

    Parameters
    ----------
    n_epsilon : Fraction
        The number of records, times epsilon.
    clipped : float
        Of all records, the share that is clipped.
    most : float
        Public limit of what one adds.
    released : float
        The number.
    """
    if n_epsilon > _MOST_TIMES:
        return 0.0
    share = min(_AT_1000 * (1000 / float(max(n_epsilon, Fraction(1)))) ** _FALL, 1.0)
    if released > 0:
        share = min(share, clipped * (most / released))
    return share if share >= _NEGLIGIBLE else 0.0


def _too_large(error: float) -> str | None:
    """Return a warning if noise is expected to move a number by more than `MOST_ERROR` of its range."""
    return _ADDED.format(min(error, 1.0)) if error > MOST_ERROR else None


def rehearse_law(mechanism: Mechanism, epsilon: Fraction, facts: BoundsFacts) -> None:
    """Make the law of a made-up number with these public facts, or raise."""
    try:
        hash(mechanism)
    except TypeError:
        _rehearsal.__wrapped__(mechanism, epsilon, facts)
    else:
        _rehearsal(mechanism, epsilon, facts)


@lru_cache(maxsize=256)
def _rehearsal(mechanism: Mechanism, epsilon: Fraction, facts: BoundsFacts) -> None:
    mechanism.output_distribution(facts.widest(), epsilon)


@dataclass(frozen=True, eq=False)
class OneStage(Noise):
    """One number, by any mechanism, from output bounds."""

    quantity: Quantity
    mechanism: Mechanism
    totals: Totals | None
    capacity: int | None
    epsilon: Fraction

    @property
    def needs_count(self) -> bool:
        """Whether the mechanism reads a number of records that is private."""
        return self.totals is None and self.mechanism.needs_count

    @property
    def ranks(self) -> int:
        """How many extreme records it has to know."""
        return self.bounds_ranks

    @cached_property
    def bounds_ranks(self) -> int:
        """How many ranks of output bounds the mechanism can use."""
        quantity, totals = self.quantity, self.totals
        ranks = self.mechanism.count_ranks(
            self.epsilon,
            n=None if totals is None else totals.size,
            monotonic=quantity.facts(totals, 0).monotonic,
            output_range=(0.0, quantity.highest(totals)),
        )
        return ranks_known(ranks, quantity.most_ranks)

    def facts(self, count: int | None) -> BoundsFacts:
        """Return what is public of the output bounds, given a noisy number of records."""
        facts = self.quantity.facts(self.totals, ranks_known(self.bounds_ranks, self.capacity))
        return self._counted(facts, count)

    def bounds(self, stats: Any) -> OutputBounds:
        """Return the output bounds: private."""
        return stats.bounds(self.bounds_ranks, self.totals is None)

    def prepare(self, stats: Any) -> Draw:
        """Return the draw, after the law of a made-up number has shown that it can be drawn."""
        bounds = self.bounds(stats)
        for count in self._ends_of_count:
            rehearse_law(self.mechanism, self.epsilon, self.facts(count))
        return partial(self._draw, bounds)

    @property
    def _ends_of_count(self) -> tuple[int | None, ...]:
        """The least and the largest noisy number of records that may be drawn; None where there is none."""
        return (1, MOST_COUNT) if self.totals is None else (None,)

    def _draw(self, bounds: OutputBounds, entropy: Entropy, count: int | None) -> Output:
        value = self.mechanism.release(self._counted(bounds, count), self.epsilon, entropy)
        return Output(value, {}, count)

    def _counted(self, bounds: Any, count: int | None) -> Any:
        """Return output bounds, or what is public of them, with a number of records that was drawn."""
        return replace(bounds, n=count) if self.needs_count else bounds

    def law(self, stats: Any, count: int | None) -> OutputLaw:
        """Return the law of the number."""
        bounds = self._counted(self.bounds(stats), count)
        return self.mechanism.output_distribution(bounds, self.epsilon)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the number before the noise."""
        facts = self.facts(output.noisy_n)
        limits = self.mechanism.noise_limits(output.value, facts, self.epsilon, miss)
        if limits.note and self.quantity.no_limit is not None:
            limits = limits._replace(note=self.quantity.no_limit)
        return limits.within(*facts.output_range)

    def clipped_share(self, output: Output) -> float:
        """Return about what share of a heavy mean clipping takes off: of about 2 / epsilon records."""
        facts = self.facts(output.noisy_n)
        if not (self.quantity.may_be_heavy and self.mechanism.clips) or facts.n is None:
            return 0.0
        times = facts.n * self.epsilon
        clipped = float(_CLIPPED_RANK / max(times, Fraction(1)))
        return _missing_share(times, clipped, facts.output_range[1], output.value)

    @property
    def even_range(self) -> Range | None:
        """The range of the number, if limits of its noise are as close whatever the records are."""
        return self.facts(None).output_range if self.mechanism.has_even_limits else None

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records is mostly noise."""
        error = self.mechanism.added_error(self.quantity.facts(self.totals, 1), self.epsilon)
        return super().too_noisy(records) if error is None else _too_large(error)


@dataclass(frozen=True, eq=False)
class SumsNoise(Noise):
    """A number of a private number of records, by the geometric mechanism, from noisy sums that tell it.

    Parameters
    ----------
    mechanism, epsilon, quantity
        As in `noise_of`.
    public : Sums
        The sums of no record.
    """

    mechanism: Geometric
    epsilon: Fraction
    quantity: Quantity
    public: Sums

    def law(self, stats: Any, count: int | None) -> SumsLaw:
        """Return the law of the noisy sums."""
        return SumsLaw(self.quantity.sums(stats), self.epsilon)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the number before the noise."""
        limits = SumsLaw(self.public, self.epsilon).limits(output.drawn["sums"], miss / 2)
        return limits.within(*self.quantity.facts(None, 0).output_range)

    @property
    def even_range(self) -> Range | None:
        """The range of the number, if it rises or falls with each sum."""
        return self.quantity.facts(None, 0).output_range if self.public.rises else None

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records is mostly noise."""
        noise = Staircase(self.epsilon / self.public.sensitivity).expected / self.public.fineness
        return _too_large(expected_error(noise, records))

    def records(self, output: Output) -> Fraction | None:
        """Return the number of records that the noisy sums tell."""
        return Fraction(sum(output.drawn["sums"]), self.public.fineness)


@dataclass(frozen=True, eq=False)
class TwoStages(OneStage):
    """A drawn scale, then noise of that size; or one stage, if a public coin or a noisy count says so."""

    mechanism: Adaptive

    too_noisy = Noise.too_noisy  # the size of the noise is drawn

    @property
    def scale_ranks(self) -> int:
        """How many extreme records the first of two stages, which draws the scale, can use."""
        wanted = self.known.rank + self.known.ranks
        return wanted if self.totals is None else min(wanted, self.totals.size)

    @property
    def ranks(self) -> int:
        """How many extreme records either way can use."""
        return max(self.bounds_ranks, self.scale_ranks)

    def stages(self, count: int | None) -> Stages:
        """Return the public numbers of both stages, given a noisy number of records."""
        return self.known if count is None or self.totals is not None else self._stages_of(count)

    @cached_property
    def known(self) -> Stages:
        """Those that are known before a noisy number of records is drawn: of a public number all."""
        return self._stages_of(None if self.totals is None else self.totals.size)

    def _stages_of(self, n: int | None) -> Stages:
        end = self.quantity.extremes_limit(self.totals)
        statistic = BoundsFacts(output_range=(0.0, end), monotonic=not self.quantity.are_distances, n=None)
        limit = self.quantity.facts(self.totals, 0).output_range[1]
        return stages_of(self.mechanism, n, self.epsilon, statistic, limit)

    def prepare(self, stats: Any) -> Draw:
        """Return the draw; output bounds, which take long for a variance, only if one stage is possible."""
        extremes, known = stats.extremes(self.scale_ranks, self.totals is None), self.known
        is_certain = self.totals is not None and known.probability == 1
        alone = None if is_certain else super().prepare(stats)
        for count in {None, *self._ends_of_count}:
            stages = self.stages(count)
            rehearse_law(stages.selection, stages.first, stages.statistic)
        law = None if self.totals is None else AdaptiveLaw(known, extremes)
        return partial(self._draw_either, extremes, law, alone)

    def _draw_either(
        self,
        extremes: Extremes,
        law: AdaptiveLaw | None,
        alone: Draw | None,
        entropy: Entropy,
        count: int | None,
    ) -> Output:
        """Draw after the spend; the law in two stages waits for a noisy number of records if there is one.

        Nothing fails any more, whatever the records are, but for lack of memory: a variance sorts its values
        again. Records were checked, and their terms are finite, when the stats looked at all of them. The
        statistic's bounds are in order and in their public range, for its values are sorted and clipped. So
        many extremes as any count asks for are kept: k and the ranks of the first stage are most where
        nothing is known of a count. And laws were made before with the least count, with the largest one and
        without one, for a number with the widest bounds (`rehearse_law`): which public facts a law can be
        made of does not depend on bounds.
        """
        stages = self.stages(count)
        if not is_chosen(entropy, stages.probability):
            assert alone is not None
            return alone(entropy, count)
        value, drawn = (law or AdaptiveLaw(stages, extremes)).release(entropy)
        return Output(value, drawn, count)

    def law(self, stats: Any, count: int | None) -> OutputLaw:
        """Return the law of the number, in one stage or in two, or perhaps in either."""
        stages = self.stages(count)
        if stages.probability == 0:
            return super().law(stats, count)
        one = None if stages.probability == 1 else super().law(stats, count)
        return AdaptiveLaw(stages, stats.extremes(self.scale_ranks, self.totals is None), one)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the number before the noise, by the stages that were drawn."""
        if "scale" not in output.drawn:
            return super().limits(output, miss)
        stages = self.stages(output.noisy_n)
        known = None if self.quantity.are_distances else ranks_known(self.scale_ranks, self.capacity)
        return stages.limits(known, output.value, output.drawn, miss).within(0.0, stages.limit)

    def clipped_share(self, output: Output) -> float:
        """Return about what share of a heavy mean clipping takes off, of the records the scale is for."""
        if "scale" not in output.drawn:
            return super().clipped_share(output)
        stages = self.stages(output.noisy_n)
        if not self.quantity.may_be_heavy or output.drawn["scale"] >= stages.largest:
            return 0.0
        clipped = stages.rank / max(stages.n, 1)
        return _missing_share(stages.n * self.epsilon, clipped, stages.largest, output.value)

    def records(self, output: Output) -> Fraction | None:
        """Return the number of records that both noisy sums tell, or the noisy one."""
        if "sums" in output.drawn:
            return Fraction(sum(output.drawn["sums"]), FINENESS)
        return super().records(output)
