"""The mean of a loss of each record, or of the weighted sums of groups of them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise, starmap
from operator import add, sub
from typing import Any, Self, TypeAlias

import numpy as np

from dp_metrics.inputs.arrays import BLOCK, Records, in_blocks, number_of_persons
from dp_metrics.inputs.losses import RecordLoss, clamp, with_largest
from dp_metrics.inputs.options import MAX_FLOAT, Array, Codes, Floats, limit_of
from dp_metrics.mechanisms import Geometric, Mechanism
from dp_metrics.mechanisms._laws import Integers
from dp_metrics.mechanisms.geometric import SpreadLaw
from dp_metrics.quantities.base import Noise, OneStage, Quantity, Totals, ranks_known
from dp_metrics.quantities.tables import noise_of_cells
from dp_metrics.sensitivity import exact, output_bounds
from dp_metrics.sensitivity.exact import BlockSums, ByLevel, Largest, LevelSums, Pairs
from dp_metrics.sensitivity.output_bounds import BoundsFacts, ClippedSum, Extremes, OutputBounds, Sums

_TINY = math.ulp(0.0)  # a sensitivity must not be rounded down to none

TermBlocks: TypeAlias = Callable[[], Iterator[tuple[Floats, float]]]
"""Returns what is added, in blocks with the largest of each, as often as it is called."""


@dataclass(frozen=True, eq=False)
class MeanOf(Quantity):
    """Public: the mean of a loss of each record; with weights or groups the sum of their terms by the weight.

    A term is a weighted loss, or the sum of these over one group.

    Parameters
    ----------
    record_loss : RecordLoss
        The loss of blocks of the records.
    column : int or None, default=None
        The output that it is the loss of; None: of all of them.
    is_share : bool, default=False
        Whether each loss is 0 or 1, so that it is the share of the records with the loss 1. By the geometric
        mechanism two counts are released then, of these and of the others: see `TableOf`. With weights or
        groups, or by another mechanism, it is a mean as any other.
    """

    record_loss: RecordLoss
    column: int | None = None
    is_share: bool = False

    has_extremes = has_sums = True

    @property
    def may_be_heavy(self) -> bool:
        """Whether a few records may make up much of the mean."""
        return not self.is_share and self.record_loss.may_be_heavy

    def plain(self, n: int) -> Totals:
        """Return the totals of n records that count alike."""
        cap = self.record_loss.cap
        return Totals(
            n, n, n << exact.UNIT_BITS, None if cap is None else n * exact.float_units(cap), cap or 0.0
        )

    def totals(self, records: Records) -> Totals:
        """Return the totals of records: of their number, weights and groups."""
        weights = PublicWeights.of(records)
        if weights.are_plain:
            return self.plain(weights.n)
        totals = Totals(weights.n, weights.size, weights.total, is_plain=False)
        limits = weights.limits(self.record_loss.cap)
        if limits is None:
            return totals
        return replace(totals, limits=exact.exact_sum(limits), largest=float(limits.max(initial=0.0)))

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        cap = self.record_loss.cap
        limit, sensitivity, record_limit = limit_of(cap), None, None
        if totals is None:
            return BoundsFacts(output_range=(0.0, limit), monotonic=False, n=None, record_limit=cap)
        n, weight = totals.size, max(totals.weight, 1)
        if totals.limits is not None:
            largest = exact.float_units(totals.largest)
            limit = exact.rounded_quotient(totals.limits, weight) if totals.weight else limit
            sensitivity = max(exact.rounded_quotient(largest, weight), _TINY)
            record_limit = exact.rounded_quotient(n * largest, weight)
        return BoundsFacts(
            output_range=(0.0, limit),
            monotonic=True,
            n=n,
            sensitivity=sensitivity,
            record_limit=record_limit,
            mean_ranks=min(ranks, n),
            has_spread=self._has_spread(totals),
        )

    def _has_spread(self, totals: Totals) -> bool:
        return totals.is_plain and self.record_loss.cap is not None

    def extremes_limit(self, totals: Totals | None) -> float:
        """Return the public limit of a term, counted n / W times where the total weight W is not n."""
        if self.record_loss.cap is None:
            return MAX_FLOAT
        if totals is None or not totals.size:
            totals = self.plain(1)
        # bounds may be so close that the cap is 0
        return exact.rounded_quotient(totals.size * max(exact.float_units(totals.largest), 1), totals.weight)

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> Noise | None:
        """Return the noise of two counts, or of a mean with its spread, if the mechanism is geometric."""
        if not isinstance(mechanism, Geometric):
            return None
        if self.is_share and (totals is None or totals.is_plain):
            cells = ((2, Fraction(1)),)
            return noise_of_cells(cells, epsilon, private_n=totals is None, is_partition=True)
        if totals is None or not self._has_spread(totals):
            return None
        return MeanWithSpread(self, mechanism, totals, None, epsilon)

    def sums(self, stats: "MeanStats | None" = None) -> Sums:
        """Return the sum of the losses, and what is left of it to the cap."""
        cap = self.record_loss.limit
        total, n = (0, 0) if stats is None else (stats.total, stats.totals.n)
        return output_bounds.ratio_sums(Fraction(total, max(exact.float_units(cap), 1)), n, cap, cap)

    def stats(self, records: Records, totals: Totals, ranks: int, *, forget: bool = False) -> "MeanStats":
        """Look at the records in blocks; the blocks do not affect the result."""
        weights, cap = PublicWeights.of(records), self.record_loss.cap
        terms = partial(self._terms, records, weights)
        # two counts are all that is released
        is_counted = self.is_share and not ranks and weights.are_plain
        limits, limit, done = weights.limits(cap), limit_of(cap if weights.are_plain else None), 0
        largest, smallest = Largest(ranks), Largest(ranks, sign=-1)
        headroom = np.empty(0), np.empty(0)
        sums, levels, total = BlockSums(), LevelSums() if forget and not is_counted else None, 0
        # noise with a spread asks for no ranks
        has_spread, spread = self._has_spread(totals) and (forget or not ranks) and not is_counted, 0
        # a loss that overflows is clipped, in silence: NumPy's warning would tell of a record
        for block, high in terms():
            if high > limit:
                block, high = np.minimum(block, limit), limit
            largest.add(block, high)
            if levels is not None:
                levels.add(block)
            elif is_counted:
                total += int(block.sum()) << exact.UNIT_BITS
            else:
                total += sums.total(block, high, signed=False)
            if has_spread:
                spread += _spread_units(block, self.record_loss.limit)
            if limits is not None:
                of_block = exact.exact_difference(limits[done : done + block.size], block)
                headroom = exact.largest_pairs(headroom, of_block, ranks)
            elif ranks and cap is not None:
                smallest.add(block, float(block.min()))
            done += block.size
            del block  # its memory, which is in the cache, serves the next one
        if limits is None and cap is not None:
            headroom = exact.exact_difference(np.asarray(cap), smallest.in_order())
        by_level = None
        if levels is not None:
            by_level = levels.found()
            total = sum([exact.in_units(number, part) for number, (_, part) in by_level.items()])
        return MeanStats(
            quantity=self,
            totals=totals,
            capacity=ranks if forget else None,
            total=total,
            largest=largest.in_order(),
            headroom=headroom,
            spread=spread,
            by_level=by_level,
            terms=None if forget else terms,
        )

    def _terms(self, records: Records, weights: "PublicWeights") -> Iterator[tuple[Floats, float]]:
        """Yield blocks of terms; losses that count alike are not yet clipped."""
        place = ... if self.column is None else (slice(None), self.column)
        arrays = [array[place] for array in records.arrays]
        if weights.are_plain:
            yield from starmap(self.record_loss.with_largest, _blocks_of(arrays))
        else:
            yield from map(with_largest, in_blocks(weights.terms(clipped_losses(self.record_loss, arrays))))


def _blocks_of(arrays: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    """Yield the rows of all arrays, so many at a time that no array has more numbers than a block."""
    rows = max(BLOCK // max([math.prod(array.shape[1:]) for array in arrays]), 1)
    return zip(*[in_blocks(array, rows) for array in arrays], strict=True)


def clipped_losses(record_loss: RecordLoss, arrays: Sequence[Array]) -> Floats:
    """Return the loss of each record, clipped to the cap, in blocks, which do not affect the result."""
    clipped = (clamp(record_loss(*block), record_loss.cap) for block in _blocks_of(arrays))
    return np.concatenate([np.empty(0), *clipped])


@dataclass(frozen=True, eq=False)
class MeanWithSpread(OneStage):
    """A mean of numbers from 0 to a public limit, by the geometric mechanism, and its spread.

    The law of the mean tells the lattice and the noise of both: see `spread_noise`. In units of the limit a
    record moves the mean and the spread together by at most 1 / n (`_spread_units`). That is at most so
    many steps as the law allows for the mean alone, which has room for its rounding to a float. Rounding each
    to the lattice adds less than a step to its change, so the whole numbers move by at most one step more
    together. Above epsilon 2 each has a part of epsilon instead: see `spread_noise`.
    """

    mechanism: Geometric

    # of a law, which public facts alone allow or refuse, not of output bounds
    prepare, _draw = Noise.prepare, Noise._draw  # type: ignore[assignment]

    def law(self, stats: Any, count: int | None) -> SpreadLaw:
        """Return the law of both."""
        law = self.mechanism.output_distribution(self.bounds(stats), self.epsilon)
        return SpreadLaw(law, Fraction(stats.spread, stats.totals.n << _SPREAD_BITS), self.epsilon)


@dataclass(frozen=True, eq=False)
class PublicWeights:
    """Public: the weights and the groups of n records.

    Parameters
    ----------
    n : int
        Number of records.
    sample_weight : ndarray or None, default=None
        The weight of each.
    groups : ndarray or None, default=None
        Number of each record's group; all records of a group change together.
    """

    n: int
    sample_weight: Floats | None = None
    groups: Codes | None = None

    @classmethod
    def of(cls, records: Records) -> Self:
        """Return those of records whose form is valid; weights of 1 and groups of one record say nothing."""
        n, weights, groups = len(records.arrays[0]), records.sample_weight, records.groups
        counts_alike = weights is None or bool((np.asarray(weights) == 1.0).all())
        is_alone = groups is None or number_of_persons(np.asarray(groups)) == n
        return cls(n, None if counts_alike else weights, None if is_alone else groups)  # type: ignore[arg-type]

    @property
    def are_plain(self) -> bool:
        """Whether each record counts alike, and is a group of its own."""
        return self.sample_weight is None and self.groups is None

    @property
    def size(self) -> int:
        """Number of groups that change together."""
        return self.n if self.groups is None else number_of_persons(self.groups)

    @property
    def total(self) -> int:
        """The total weight, in units of 2**-1074."""
        return (
            self.n << exact.UNIT_BITS if self.sample_weight is None else exact.exact_sum(self.sample_weight)
        )

    def terms(self, losses: Floats) -> Floats:
        """Return what is summed: the weighted losses, each at most the largest float, or sums over groups."""
        terms = losses if self.sample_weight is None else np.minimum(self.sample_weight * losses, MAX_FLOAT)
        return terms if self.groups is None else _group_sums(terms, self.groups)

    def limits(self, cap: float | None) -> Floats | None:
        """Return the public limit of each term that has one of its own, if losses are capped."""
        return None if cap is None or self.are_plain else self.terms(np.full(self.n, cap))


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MeanStats:
    """Private: the exact sum of the terms of a mean, and the extreme ones.

    Parameters
    ----------
    quantity : MeanOf
        What is released.
    totals, capacity
        As in `Stats`.
    total : int
        Sum of all terms, in units of 2**-1074.
    largest : ndarray
        The largest terms, in descending order.
    headroom : tuple of ndarray
        The largest differences of a limit and its term, in descending order, each as the exact sum of two
        floats; empty if losses are unbounded.
    spread : int, default=0
        What `_spread_units` tells of all records, if the mean may be released with its spread.
    by_level : mapping or None, default=None
        Counts and sums of all terms by their size, where the records will not be looked at again.
    terms : callable or None, default=None
        Else all terms again.
    """

    quantity: MeanOf
    totals: Totals
    capacity: int | None
    total: int
    largest: Floats
    headroom: Pairs
    spread: int = 0
    by_level: ByLevel | None = None
    terms: TermBlocks | None = None

    @property
    def found(self) -> Integers:
        """Of a share, what the records with the loss 1 weigh in whole numbers, and what the others do."""
        ones, of_all = self.total >> exact.UNIT_BITS, self.totals.weight >> exact.UNIT_BITS
        return np.array([ones, of_all - ones])

    def merge(self, other: Self) -> Self:
        """Return the stats of the records of both."""
        assert self.capacity is not None
        return replace(
            self,
            totals=self.totals.merge(other.totals),
            total=self.total + other.total,
            largest=exact.largest_of_both(self.largest, other.largest, self.capacity),
            headroom=exact.largest_pairs(self.headroom, other.headroom, self.capacity),
            spread=self.spread + other.spread,
            by_level=exact.levels_of_both(self.by_level, other.by_level),
        )

    def bounds(self, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds at so many ranks, or at all that are known.

        Where records, or groups, are replaced, L^l drops the l largest terms to 0, and U^l raises those l
        terms to their limits that have most headroom, or to no limit. If a loss grows, every L^l, f and U^l
        grows or stays: the metric is monotonic. Terms may have limits of their own: one that changes leaves
        the others and their limits as they are, so that the l largest of the rest are among the l + 1 largest
        before.

        References
        ----------
        Lemmas D.1 to D.5 of the paper (linearly separable functions), for the mean; the weights are public.
        """
        ranks = ranks_known(ranks, self.capacity)
        facts = self.quantity.facts(None if private_n else self.totals, ranks)
        falls = exact.to_units(self.largest[:ranks])
        gains = list(map(add, *(exact.to_units(part[:ranks]) for part in self.headroom)))
        if private_n:
            return self._private_n_bounds(facts, falls, gains, ranks)
        weight = self.totals.weight
        left = exact.rounded_quotients(accumulate(falls, sub, initial=self.total), weight)
        upper = np.full(facts.mean_ranks, MAX_FLOAT)
        if self.totals.limits is not None:
            upper = exact.rounded_quotients(accumulate(gains, initial=self.total), weight)[1:]
        return facts.bounds(float(left[0]), left[1:], upper)

    def _private_n_bounds(
        self, facts: BoundsFacts, falls: list[int], gains: list[int], ranks: int
    ) -> OutputBounds:
        """Return the output bounds where records are added or removed.

        With a records removed and l - a added: L^l = min over a of (S - top_a) / (n + l - 2a) and U^l = max
        over a of (S - bot_a + (l - a) cap) / (n + l - 2a); the empty set has the value 0. One more record can
        raise some of these and lower others: not monotonic.

        Notes
        -----
        Taking one step in a removes v and leaves out an added 0: it lowers the quotient r if and only if v >
        2 r. The next v is smaller and, once a step has raised r, so does every later one: the first a where a
        step does not pay is the best. One more rank lowers every r, so the best a never falls as l grows, and
        all ranks together take O(ranks) steps, in exact integers. The same holds, mirrored, for U.
        """
        n, total, cap = self.totals.n, self.total, self.quantity.record_loss.cap
        lower = [
            exact.rounded_quotient(rest, size << exact.UNIT_BITS)
            for rest, size in _least_left(n, total, falls, min(ranks, n - 1))
        ]
        upper: list[float] | Floats = np.full(ranks, facts.output_range[1])
        if cap is not None:  # the a-th smallest loss is the cap less the a-th largest headroom
            raised = exact.float_units(cap)
            upper = [
                exact.rounded_quotient(raised * size - rest, size << exact.UNIT_BITS)
                for rest, size in _least_left(n, n * raised - total, gains, ranks)
            ]
        value = exact.rounded_quotient(total, n << exact.UNIT_BITS) if n else 0.0
        return facts.bounds(value, output_bounds.padded(np.array(lower), ranks), upper)

    def extremes(self, ranks: int, private_n: bool) -> Extremes:
        """Return the largest terms, and the sums of terms that are clipped.

        A term of a weighted mean is counted n / W times, W the total weight: so it moves the mean by its
        value over n, as a loss moves the plain mean. Values are clipped at the next public level, or at the
        limit, so that a summary can know the clipped sum from a count and a sum for each level.
        """
        n, weight = self.totals.size, self.totals.weight
        values = self.largest[:ranks]
        if weight != n << exact.UNIT_BITS:
            values = exact.rounded_quotients((n * term for term in exact.to_units(values)), weight)
        limit = self.quantity.extremes_limit(self.totals)
        at_ranks = partial(output_bounds.order_statistic, values, limit)
        return Extremes(at_ranks, self._clipped, n if private_n else None)

    def _clipped(self, y: float) -> ClippedSum:
        """Return the sum of the terms clipped at the next level from y on, as a part of that level.

        The level itself is returned with it, as a term of the mean.
        """
        n, weight = self.totals.size, self.totals.weight
        if not n:  # the scale is never used without records
            n, weight = 1, 1 << exact.UNIT_BITS
        wanted = Fraction(y) * Fraction(weight, n << exact.UNIT_BITS)
        at_least = exact.rounded(wanted)
        if at_least < wanted:
            at_least = math.nextafter(at_least, math.inf)
        number = min(exact.level_from(at_least), exact.LEVELS)
        level, highest = exact.level_units(number), exact.level_units(exact.LEVELS)
        if self.quantity.record_loss.cap is not None:
            highest = max(exact.float_units(self.totals.largest), 1)
        if level >= highest:
            total, level = self.total, highest
        else:
            total = self._sum_clipped_at(number, level)
        return Fraction(total, level), Fraction(level * n, weight)

    def _sum_clipped_at(self, number: int, units: int) -> int:
        """Return the sum of min(term, level) in units of 2**-1074, from the largest terms if they tell it."""
        level, largest = exact.rounded_quotient(units, 1 << exact.UNIT_BITS), self.largest
        above = largest[largest > level]
        if above.size < largest.size or above.size == self.totals.size:
            return self.total - exact.exact_sum(above) + above.size * units
        if self.by_level is not None:
            return sum(
                exact.in_units(at, part) if at < number else count * units
                for at, (count, part) in self.by_level.items()
            )
        assert self.terms is not None
        clipped = ((np.minimum(block, level), min(high, level)) for block, high in self.terms())
        return sum(starmap(partial(BlockSums().total, signed=False), clipped))


_SPREAD_BITS = 36  # the sum of a block is below 2^53


def _spread_units(losses: Floats, cap: float) -> int:
    """Return the sum of v (1 - v), for v = loss / cap, in units of 2**-36.

    Notes
    -----
    Of each record g is counted: v (1 - v), rounded down. As 0 <= g <= v and g <= 1 - v, both v + g and v - g
    lie between 0 and 1, and abs(u - w) + abs(g(u) - g(w)) is the difference of two of either, at most 1. So a
    record that is replaced moves the sums of v and of g together by at most 1, as it may move the first.

    Floats keep that. Where g is not 0, both factors are at most 1 - 2^-36, which outweighs all roundings, of
    2^-53 each, but that of v near 1 for the factor 1 - v. There this factor is a whole number of 2^-53, as g
    is, and off by half of that at most: if 1 - v is below a g, the factor is not above, and the product is.
    """
    v = losses / max(cap, _TINY)  # a cap may underflow to 0
    v *= 1.0 - v
    v *= 2.0**_SPREAD_BITS
    return int(np.floor(v, out=v).sum())


def _least_left(n: int, total: int, largest: list[int], ranks: int) -> Iterator[tuple[int, int]]:
    """Yield for each rank l what is left of n terms, and of how many, where the mean of these is least.

    A part of l changes drops the largest terms, and the others add terms of 0.
    """
    a = 0
    for rank in range(1, ranks + 1):
        while a < min(rank, n) and largest[a] * (n + rank - 2 * a) > 2 * total:
            total -= largest[a]
            a += 1
        yield total, n + rank - 2 * a


def _group_sums(terms: Floats, groups: Codes) -> Floats:
    """Return the correctly rounded sum of each group's non-negative terms.

    `math.fsum` rounds once whatever the order, so a group's sum is a function of its own records alone, and
    never exceeds the sum of their limits.
    """
    order = np.argsort(groups, kind="stable")
    edges, in_order = [0, *np.cumsum(np.bincount(groups)).tolist()], terms[order].tolist()
    return np.array([_saturated_sum(in_order[start:end]) for start, end in pairwise(edges)])


def _saturated_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return MAX_FLOAT
