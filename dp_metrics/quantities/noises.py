"""From a mechanism and a quantity to noise: the one place where the next step is chosen by type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from dp_metrics._random import Entropy, is_chosen
from dp_metrics.mechanisms import Adaptive, Geometric, Mechanism
from dp_metrics.mechanisms._base import Limits, rehearse_law
from dp_metrics.mechanisms._laws import OutputLaw
from dp_metrics.mechanisms.adaptive import (
    AdaptiveLaw,
    CoinLaw,
    FirstStage,
    SecondStage,
    first_stage,
    rounded,
    two_stage_limits,
)
from dp_metrics.mechanisms.geometric import (
    SpreadLaw,
    SumsLaw,
    expected_error,
    expected_noise,
)
from dp_metrics.mechanisms.hazard import hazard_law
from dp_metrics.quantities.base import Draw, Noise, Number, Output, Quantity, Totals, ranks_known
from dp_metrics.quantities.counts_noise import MOST_ERROR
from dp_metrics.sensitivity.extremes import Extremes
from dp_metrics.sensitivity.noisy_sums import FINENESS, Sums
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

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
    assert isinstance(quantity, Number)
    if isinstance(mechanism, Geometric):
        if totals is None and quantity.has_sums:
            return NoisySums(mechanism, epsilon, quantity, quantity.sums())
        if totals is not None and quantity.facts(totals, 1).has_spread:
            return MeanWithSpread(quantity, mechanism, totals, None, epsilon)
    one = OneStage(quantity, mechanism, totals, capacity, epsilon)
    if isinstance(mechanism, Adaptive) and quantity.has_extremes:
        n = None if totals is None else totals.size
        # whether a summary holds all values of a variance must not depend on a private n
        is_known = not quantity.are_distances or capacity is None or (n is not None and n <= capacity)
        if is_known and (stage := first_stage(mechanism, n, epsilon, quantity.are_distances)) is not None:
            wanted = stage.rank + stage.ranks
            return TwoStages(
                quantity, mechanism, totals, capacity, one, wanted if n is None else min(wanted, n)
            )
    return one


_AT_1000, _FALL = 0.19, 0.3
"""The share at n * epsilon of 1,000, and the power by which it falls: ``benchmarks/median_table.py``."""
_CLIPPED_RANK = 2  # hazard selection clips about so many records / epsilon
_NEGLIGIBLE = 0.01
_MOST_TIMES = 10**7  # n * epsilon from which on the share is negligible


def _missing_share(times: Fraction, clipped: float, most: float, released: float) -> float:
    """Return about what share of a mean of squares with heavy tails is missing.

    Squares are those of numbers with Student's law of 3 degrees of freedom. No more can be missing than the
    clipped records may add.

    Parameters
    ----------
    times : Fraction
        n * epsilon.
    clipped : float
        Of all records, the share that is clipped.
    most : float
        Public limit of what one adds.
    released : float
        The number.
    """
    if times > _MOST_TIMES:
        return 0.0
    share = min(_AT_1000 * (1000 / float(max(times, Fraction(1)))) ** _FALL, 1.0)
    if released > 0:
        share = min(share, clipped * (most / released))
    return share if share >= _NEGLIGIBLE else 0.0


def _too_large(error: float) -> str | None:
    """Return a warning if noise is expected to move a number by more than `MOST_ERROR` of its range."""
    return _ADDED.format(min(error, 1.0)) if error > MOST_ERROR else None


class NoiseOfMechanism(Noise):
    """Noise by a mechanism that callers may choose."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        """The mechanism with its parameters."""
        return repr(self.mechanism)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanism."""
        return (self.mechanism,)


@dataclass(frozen=True, eq=False)
class OneStage(NoiseOfMechanism):
    """One number, by any mechanism, from output bounds."""

    quantity: Number
    mechanism: Mechanism
    totals: Totals | None
    capacity: int | None
    epsilon: Fraction

    @property
    def needs_count(self) -> bool:
        """Whether the mechanism reads a number of records that is private."""
        return self.totals is None and self.mechanism.needs_count

    @cached_property
    def ranks(self) -> int:
        """How many ranks of output bounds the mechanism can use."""
        quantity, totals = self.quantity, self.totals
        ranks = self.mechanism.count_ranks(
            self.epsilon,
            n=None if totals is None else totals.size,
            monotonic=quantity.is_monotonic(totals is None),
            output_range=(0.0, quantity.highest(totals)),
        )
        return ranks if quantity.most_ranks is None else min(ranks, quantity.most_ranks)

    def facts(self, count: int | None) -> BoundsFacts:
        """Return what is public of the output bounds, given a noisy number of records."""
        facts = self.quantity.facts(self.totals, ranks_known(self.ranks, self.capacity))
        return replace(facts, n=count) if self.needs_count else facts

    def bounds(self, stats: Any) -> OutputBounds:
        """Return the output bounds: private."""
        bounds: OutputBounds = stats.bounds(self.ranks, self.totals is None)
        return bounds

    def prepare(self, stats: Any) -> Draw:
        """Return the draw, after the law of a made-up number has shown that it can be drawn."""
        bounds = self.bounds(stats)
        rehearse_law(self.mechanism, self.epsilon, self.facts(1))
        return partial(self._draw, bounds)

    def _draw(self, bounds: OutputBounds, entropy: Entropy, count: int | None) -> Output:
        value = self.mechanism.release(self._counted(bounds, count), self.epsilon, entropy)
        return Output(value, {}, count)

    def _counted(self, bounds: OutputBounds, count: int | None) -> OutputBounds:
        return replace(bounds, n=count) if self.needs_count else bounds

    def law(self, stats: Any, count: int | None) -> OutputLaw:
        """Return the law of the number."""
        bounds = self._counted(self.bounds(stats), count)
        return self.mechanism.output_distribution(bounds, self.epsilon)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the number before the noise."""
        facts = self.facts(output.noisy_n)
        limits = self.mechanism.noise_limits(output.value, facts, self.epsilon, miss)
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
    def even_range(self) -> tuple[float, float] | None:
        """The range of the number, if limits of its noise are as close whatever the records are."""
        return self.facts(None).output_range if self.mechanism.has_even_limits else None

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records is mostly noise."""
        error = self.mechanism.added_error(self.quantity.facts(self.totals, 1), self.epsilon)
        return self.quantity.too_noisy(self.epsilon, records) if error is None else _too_large(error)


@dataclass(frozen=True, eq=False)
class MeanWithSpread(OneStage):
    """A mean of numbers from 0 to a public limit, by the geometric mechanism, and its spread.

    The law of the mean tells the lattice and the noise of both: see `spread_noise`. In units of the limit a
    record moves the mean and the spread together by at most 1 / n (`MeanStats.spread`). That is at most so
    many steps as the law allows for the mean alone, which has room for its rounding to a float. Rounding each
    to the lattice adds less than a step to its change, so the whole numbers move by at most one step more
    together.
    """

    mechanism: Geometric

    forgets = True  # the spread follows from sums by level

    def law(self, stats: Any, count: int | None) -> SpreadLaw:
        """Return the law of both."""
        law = self.mechanism.output_distribution(self.bounds(stats), self.epsilon)
        return SpreadLaw(law, stats.spread(), self.epsilon)

    def prepare(self, stats: Any) -> Draw:
        """Return the draw."""
        rehearse_law(self.mechanism, self.epsilon, self.facts(1))
        return partial(self._draw_both, self.law(stats, None))

    def _draw_both(self, law: SpreadLaw, entropy: Entropy, count: int | None) -> Output:
        value, spread = law.release_both(entropy)
        return Output(value, {"spread": spread}, count)


@dataclass(frozen=True, eq=False)
class NoisySums(NoiseOfMechanism):
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
    quantity: Number
    public: Sums

    def law(self, stats: Any, count: int | None) -> SumsLaw:
        """Return the law of the noisy sums."""
        return SumsLaw(self.quantity.sums(stats), self.epsilon)

    def prepare(self, stats: Any) -> Draw:
        """Return the draw."""
        return partial(self._draw, self.law(stats, None))

    def _draw(self, law: SumsLaw, entropy: Entropy, count: int | None) -> Output:
        value, noisy = law.release(entropy)
        return Output(value, {"sums": noisy}, count)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the number before the noise."""
        limits = SumsLaw(self.public, self.epsilon).limits(output.drawn["sums"], miss / 2)
        return limits.within(0.0, self.public.limit)

    @property
    def even_range(self) -> tuple[float, float] | None:
        """The range of the number, if it rises or falls with each sum."""
        return (0.0, self.public.limit) if self.public.rises else None

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records is mostly noise."""
        noise = expected_noise(self.epsilon / self.public.sensitivity) / self.public.fineness
        return _too_large(expected_error(noise, records))

    def records(self, output: Output) -> Fraction | None:
        """Return the number of records that the noisy sums tell."""
        return Fraction(sum(output.drawn["sums"]), self.public.fineness)


@dataclass(frozen=True, eq=False)
class TwoStages(NoiseOfMechanism):
    """A drawn scale, then noise of that size; or one stage, if a public coin or a noisy count says so.

    Parameters
    ----------
    quantity, mechanism, totals, capacity
        As in `noise_of`.
    one : OneStage
        How the number is drawn in one stage.
    count : int
        How many extreme records the first of two stages can use.
    """

    quantity: Number
    mechanism: Adaptive
    totals: Totals | None
    capacity: int | None
    one: OneStage
    count: int

    @property
    def needs_count(self) -> bool:
        """Whether the number of records is private."""
        return self.totals is None

    @property
    def ranks(self) -> int:
        """How many extreme records either way can use."""
        return max(self.one.ranks, self.count)

    def stages(self, count: int | None) -> tuple[FirstStage, SecondStage] | None:
        """Return the public numbers of both stages, given a noisy number of records; None if there is one."""
        n, epsilon = count if self.totals is None else self.totals.size, self.one.epsilon
        first = first_stage(self.mechanism, n, epsilon, self.quantity.are_distances)
        if first is None:
            return None
        assert n is not None
        largest = self.quantity.extremes_limit(self.totals)
        if self.quantity.are_distances:
            largest = rounded(Fraction(largest) ** 2)
        limit = self.quantity.facts(self.totals, 0).output_range[1]
        return first, SecondStage(n, limit, largest, epsilon - first.epsilon)

    @property
    def statistic(self) -> BoundsFacts:
        """What is public of the statistic of the extreme records."""
        limit = self.quantity.extremes_limit(self.totals)
        return BoundsFacts(output_range=(0.0, limit), monotonic=not self.quantity.are_distances, n=None)

    def prepare(self, stats: Any) -> Draw:
        """Return the draw; output bounds, which take long for a variance, only if one stage is possible."""
        extremes, stages = self._extremes(stats), self.stages(1)
        is_certain = self.totals is not None and stages is not None and stages[0].probability == 1
        alone = None if is_certain else self.one.prepare(stats)
        if stages is not None:
            rehearse_law(stages[0].selection, stages[0].epsilon, self.statistic)
        return partial(self._draw, extremes, alone, stages)

    def _extremes(self, stats: Any) -> Extremes:
        extremes: Extremes = stats.extremes(self.count, self.totals is None)
        return extremes

    def _draw(
        self,
        extremes: Extremes,
        alone: Draw | None,
        known: tuple[FirstStage, SecondStage] | None,
        entropy: Entropy,
        count: int | None,
    ) -> Output:
        stages = known if count is None else self.stages(count)  # those of a public number are known before
        if stages is None or not is_chosen(entropy, stages[0].probability):
            assert alone is not None
            return alone(entropy, count)
        value, drawn = self._two(extremes, *stages).release(entropy)
        return Output(value, drawn, count)

    def _two(self, extremes: Extremes, first: FirstStage, second: SecondStage) -> AdaptiveLaw:
        bounds = extremes.bounds(first.rank, first.ranks)
        return AdaptiveLaw(hazard_law(first.selection, bounds, first.epsilon), extremes, second)

    def law(self, stats: Any, count: int | None) -> OutputLaw:
        """Return the law of the number: in one stage, in two, or a `CoinLaw` of both."""
        if (stages := self.stages(count)) is None:
            return self.one.law(stats, count)
        two, probability = self._two(self._extremes(stats), *stages), stages[0].probability
        return two if probability == 1 else CoinLaw(probability, two, self.one.law(stats, count))

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the number before the noise, by the stages that were drawn."""
        if (stages := self._drawn_by(output)) is None:
            return self.one.limits(output, miss)
        known = None if self.quantity.are_distances else ranks_known(self.count, self.capacity)
        limits = two_stage_limits(*stages, self.statistic, known, output.value, output.drawn, miss)
        return limits.within(0.0, stages[1].limit)

    def clipped_share(self, output: Output) -> float:
        """Return about what share of a heavy mean clipping takes off, of the records the scale is for."""
        if (stages := self._drawn_by(output)) is None:
            return self.one.clipped_share(output)
        first, second = stages
        if not self.quantity.may_be_heavy or output.drawn["scale"] >= second.largest:
            return 0.0
        clipped = first.rank / max(second.n, 1)
        return _missing_share(second.n * self.one.epsilon, clipped, second.largest, output.value)

    def _drawn_by(self, output: Output) -> tuple[FirstStage, SecondStage] | None:
        """Return the numbers of the two stages by which an output was drawn; None if it was one."""
        stages = self.stages(output.noisy_n)
        is_one = stages is None or (stages[0].probability < 1 and "scale" not in output.drawn)
        return None if is_one else stages

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a release about this number of records is mostly noise."""
        return self.quantity.too_noisy(self.one.epsilon, records)

    def records(self, output: Output) -> Fraction | None:
        """Return the number of records that both noisy sums tell, or the noisy one."""
        if "sums" in output.drawn:
            return Fraction(sum(output.drawn["sums"]), FINENESS)
        return super().records(output)
