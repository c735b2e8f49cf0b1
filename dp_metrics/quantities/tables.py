"""Tables of counts: how many records lie in each public cell, the noise, and what noisy counts tell.

How sure noisy counts are is told by what was released and drawn, and by public settings.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul
from typing import Any, ClassVar, Self

import numpy as np

from dp_metrics._random import Entropy, Generator, discrete_laplaces, zero_sum_laplaces
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Array, Floats
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._laws import COUNT_LIMIT, Integers, Limits, Staircase, expected_error
from dp_metrics.quantities.base import MOST_ERROR, Noise, Output, Quantity, Stats, Totals
from dp_metrics.sensitivity.exact import rounded_quotient

_MOST_ZERO_SUM = 256  # more cells get noise without a sum, which costs 0.2 % of accuracy and much less time
_FEW = 4

MOST_CELLS = 10_000_000
"""Cells of one table: a gigabyte at 100 bytes each, four at an epsilon of 300 digits."""

Cells = tuple[tuple[int, Fraction], ...]
"""For how many cells in a row, which weight."""

Rates = Cells
"""For how many numbers in a row, which rate of the noise."""


@dataclass(frozen=True, eq=False)
class TableOf(Quantity):
    """Public: how many records lie in each public cell, or other whole numbers, released together.

    Parameters
    ----------
    cells : tuple of (int, Fraction)
        Weights of the cells, in runs. Over the counts that one record adds, the sum of weight times count is
        at most 1.
    is_partition : bool
        Whether each record lies in exactly one cell, of weight 1.
    find : callable
        The counts of `Records` whose form is valid.
    units : int, default=1
        How many units the records of each person have together, where each person counts once: each cell is
        told as its units over these.
    is_table : bool, default=True
        Whether the numbers are counts of records. Others are made by `integers_of`, whose weights hold where
        a record is replaced.
    finest : int or None, default=None
        Number of columns that are counted, neighbours of which are merged before the release, so that the
        cells are a partition in rows of so many; None: nothing is merged.
    columns : int or None, default=None
        Number of columns that are left, which divides the finest; None: what `columns_for` says, of public
        numbers only.
    groups : int or None, default=None
        Of how many groups of a frame there are rows; None: of all records.

    Notes
    -----
    **Privacy.** If a record is replaced, the sum over all cells of weight times change is at most 2: noise
    of rate weight * epsilon / 2 in each cell is epsilon-differentially private (`TableLaw`). If the cells
    are a partition, the total is n before and after, and the noise may have the sum 0. If a record is added
    or removed, the sum is at most 1, and the rate weight * epsilon.

    Where each person counts once, counted are units, which are public whole numbers for each record with the
    public sum s over those of a person. Replacing all records of a person moves its s units, each of which
    adds to the counts what a record does: the sum is at most 2 s, the total is public as before, and noise of
    rate weight * epsilon / (2 s) is epsilon-differentially private. Dividing by s is post-processing.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity; C. Canonne, G. Kamath and T. Steinke, arXiv:2004.00010, for the
    draw.
    """

    cells: Cells
    is_partition: bool
    find: Callable[[Records], Array]
    units: int = 1
    is_table: bool = True
    finest: int | None = None
    columns: int | None = None
    groups: int | None = None

    upper_end = None

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> "TableNoise":
        """Return noise in each cell that is left, whatever the mechanism."""
        if totals is None and not self.is_table:  # their weights are for a record that is replaced
            raise ValueError("Whole numbers that are no counts need a public number of records.")
        cells, columns = self.cells, None
        if self.finest is not None:
            mean = None if totals is None else totals.n // (self.groups or 1)
            columns = self.columns or columns_for(mean, epsilon, by_group=self.groups is not None)
            ((size, weight),) = cells
            cells = ((size // self.finest * columns, weight),)
        noise = noise_of_cells(
            cells, epsilon, self.units, private_n=totals is None, is_partition=self.is_partition
        )
        return replace(noise, is_shown=self.is_table, columns=columns)


def integers_of(find: Callable[[Records], Array], size: int, sensitivity: int) -> TableOf:
    """Return whole numbers of a public number of records, such as the wins of two models.

    Parameters
    ----------
    find : callable
        The whole numbers of `Records` whose form is valid.
    size : int
        How many there are.
    sensitivity : int
        By how much the numbers differ at most if a record is replaced, summed over absolute differences.
        Times their weight that is 2, which `TableOf` pays for.
    """
    return TableOf(((size, Fraction(2, sensitivity)),), False, find, is_table=False)


@dataclass(frozen=True)
class TableNoise(Noise):
    """Whole numbers, each with two-sided geometric noise; see `TableLaw`.

    Parameters
    ----------
    cells : tuple of (int, Fraction)
        As in `TableOf`.
    rate : Fraction
        Of the noise in a cell of weight 1.
    in_sum
        As in `NoisyCounts`.
    is_shown : bool, default=True
        Whether the numbers are counts, which a result shows as "counts" among what was drawn.
    columns : int or None, default=None
        How many columns are left of a finer table; None: as many as there are.
    units
        As in `NoisyCounts`.
    """

    cells: Cells
    rate: Fraction
    in_sum: int | None = None
    is_shown: bool = True
    columns: int | None = None
    units: int = 1

    mechanism = None

    @property
    def name(self) -> str:
        """What draws, for the accountant's history."""
        return "two-sided geometric noise" + " with sum 0" * bool(self.in_sum)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return sum(size for size, _ in self.cells)

    @cached_property
    def rates(self) -> Rates:
        """The rates of the noise; see `TableLaw`."""
        return tuple([(size, self.rate * weight) for size, weight in self.cells])

    def part(self, tables: int) -> Self:
        """Return the noise of each of so many tables of one form that were released as one."""
        cells = self.cells[: len(self.cells) // tables]
        if len(self.cells) == 1:  # all tables are one run
            cells = ((self.size // tables, self.cells[0][1]),)
        return replace(self, cells=cells)

    def joined(self, tables: int) -> Self:
        """Return the noise of so many tables of this form together.

        Where all noise has one sum with that of others, so it has together; tables that were drawn apart have
        it each for themselves, which makes large noise less likely.
        """
        are_apart = self.in_sum == self.size and tables > 1
        return replace(self, cells=self.cells * tables, in_sum=None if are_apart else self.in_sum)

    def law(self, stats: Stats, count: int | None = None) -> "TableLaw":
        """Return the law of the noisy numbers."""
        counts = stats.found
        if self.columns is not None:  # each is the sum of equally many neighbours
            counts = counts.reshape(len(counts), self.columns, -1).sum(axis=2)
        return TableLaw(tuple(counts.ravel().tolist()), self.rates, self.in_sum is not None)

    def _draw(self, law: "TableLaw", entropy: Entropy, count: int | None) -> Output:
        noisy = law.release(entropy)
        output = Output(tuple(noisy), {}, count)
        return output._replace(drawn={"counts": [*self.number(output)]}) if self.is_shown else output

    def number(self, output: Output) -> Any:
        """Return the noisy numbers, of persons where each counts once."""
        return self.told(output).numbers

    def told(self, output: Output) -> "NoisyCounts":
        """Return the noisy numbers with their noise."""
        return NoisyCounts(output.value, self.rates, self.in_sum, self.units)

    def too_noisy(self, records: Fraction) -> str | None:
        """Return a warning if a table of this number of records is mostly noise; see `MOST_ERROR`.

        Weights make counts of one unit: over all cells the weighted counts add up to about as many as there
        are records, and the weighted noise is about the same in all.
        """
        if not self.is_shown:
            return None
        size = self.size
        of_runs = (
            float(weight) * NoisyCounts((0,) * size, ((number, rate),), self.in_sum, self.units).expected
            for (number, weight), (_, rate) in zip(self.cells, self.rates, strict=True)
        )
        noise, mean = max(of_runs), float(records / size)
        if expected_error(noise, 2 * mean) <= MOST_ERROR:
            return None
        counted = _counted(self.units)
        return (
            f"each of the {size} counts is expected to be off by {in_words(noise)} {counted}, and in a cell "
            f"are {in_words(mean)} on average. Above a fifth of them a release is mostly noise: take more "
            f"{counted}, fewer cells or a larger epsilon."
        )

    def records(self, output: Output) -> Fraction | None:
        """Return the noisy number of records, which counts tell."""
        return Fraction(noisy_total(output.value, self.cells)) if self.is_shown else None


def counts_of_cells(blocks: Iterable[tuple[Array, Array | None]], size: int) -> Integers:
    """Return how many records lie in each cell, or how many units of theirs where each person counts once.

    Parameters
    ----------
    blocks : iterable of (ndarray, ndarray or None)
        The place of each record's cell, and its units, for so many records at a time.
    size : int
        How many cells there are.
    """
    counts = np.zeros(size, dtype=np.int64)
    for cells, of_each in blocks:
        # sums of a block's units are below 2^53, so that floats hold them exactly
        counts += np.bincount(cells, of_each, minlength=size).astype(np.int64)
    return counts


def noise_of_cells(
    cells: Cells, epsilon: Fraction, units: int = 1, *, private_n: bool, is_partition: bool
) -> TableNoise:
    """Return the noise of a table; see `TableOf` for the proof."""
    rate = (epsilon if private_n else epsilon / 2) / units
    size = sum(size for size, _ in cells)
    has_sum = is_partition and not private_n and 2 <= size <= _MOST_ZERO_SUM
    return TableNoise(cells, rate, size if has_sum else None, units=units)


@dataclass(frozen=True, repr=False, eq=False)
class TableLaw:
    """The law of whole numbers with two-sided geometric noise.

    Noise z_1, z_2, ... has probability proportional to exp(-(rate_1 abs(z_1) + rate_2 abs(z_2) + ...)).
    Between neighbours the same sum over the differences of the numbers is at most epsilon: the release is
    epsilon-differentially private, and exactly so as executed. The same holds if the noise is drawn under
    the condition that its sum is 0, if neighbours have the same sum: their difference is then among the
    values of the noise, which has one law for both.

    Parameters
    ----------
    values : tuple of int
        The numbers: private.
    rates : tuple of (int, Fraction)
        For how many numbers in a row, which rate: public.
    zero_sum : bool, default=False
        Whether the noise has the sum 0; all rates are one then.
    """

    values: tuple[int, ...]
    rates: Rates
    zero_sum: bool = False

    def release(self, entropy: Entropy) -> list[int]:
        """Draw the noisy numbers."""
        # one zero sum serves all numbers: a part whose noise had the sum 0 would show its exact total
        if self.zero_sum:
            (rate,) = {rate for _, rate in self.rates}
            noise = zero_sum_laplaces(entropy, rate, len(self.values))
        else:
            noise = [z for size, rate in self.rates for z in discrete_laplaces(entropy, rate, size)]
        return [value + z for value, z in zip(self.values, noise, strict=True)]


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
    total = round(sum(map(mul, weights, noisy), Fraction(0)))
    return min(max(total, 0), int(COUNT_LIMIT))


def each_cell(runs: Cells) -> Floats:
    """Return a number for each cell of all runs, such as its weight."""
    return np.repeat([float(number) for _, number in runs], [size for size, _ in runs])


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
        As in `TableOf`.
    n : int or None
        The public number of records.
    """
    counts = saturated_counts(noisy)
    if n is None:
        if counts.size <= _FEW:
            return np.maximum(counts, 0.0)
        n = noisy_total(noisy, cells)
    weights = each_cell(cells)
    return nearest_with_sum(counts * weights, n) / weights


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
    nearest = np.maximum(x - less[kept], 0.0)
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


@dataclass(frozen=True)
class NoisyCounts:
    """Public: whole numbers that were released, each with two-sided geometric noise, and the law of that.

    Parameters
    ----------
    noisy : tuple of int
        The noisy numbers.
    rates
        As in `TableLaw`.
    in_sum : int or None, default=None
        How many numbers, these and perhaps others, have noise with the sum 0; None: it is independent.
    units : int, default=1
        How many units of what is noisy make one of what is told: those of a person, where each counts once.
    """

    noisy: tuple[int, ...]
    rates: Rates
    in_sum: int | None = None
    units: int = 1

    even_range: ClassVar[None] = None
    spread: ClassVar[None] = None

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The noisy numbers that are told."""
        if self.units == 1:
            return self.noisy
        # noise may be larger than any float at the smallest epsilon
        return tuple([rounded_quotient(number, self.units) for number in self.noisy])

    @property
    def expected(self) -> float:
        """Expected absolute noise of the noisiest number; at most this where the noise has the sum 0."""
        rate = min(rate for _, rate in self.rates)
        # two numbers share one noise, with both signs
        noise = Staircase(2 * rate if self.in_sum == 2 else rate)
        return noise.expected / self.units

    def covariance(self, x: Floats, y: Floats, add: Callable[[Floats], Any] = np.sum) -> Any:
        """Return the covariance of the noise of two weighted sums of the numbers, or of several such pairs.

        Where all noise has the sum 0 that is taken from independent noise less its mean, whose variances are
        a little larger. What adds up the numbers may make several sums of them, each number in one of these.
        """
        sizes, rates = zip(*self.rates, strict=True)
        variances = np.repeat([*map(noise_variance, rates)], sizes)
        both = add(variances * x * y)
        if self.in_sum:
            both = both - variances[0] * add(x) * add(y) / self.in_sum
        return both / self.units**2

    def limits(self, miss: float, used: Any = None) -> Limits:
        """Return limits of the numbers before the noise: two arrays; only those of used numbers hold."""
        each = miss / (2 * (len(self.noisy) if used is None else int(np.count_nonzero(used))))
        away = [one for size, rate in self.rates for one in [largest_noise(rate, self.in_sum, each)] * size]
        return self._around(saturated_counts(self.noisy), away)

    def limits_of_sums(self, sums: Sequence[Sequence[int]], miss: float) -> Limits:
        """Return limits of sums of numbers of one rate; each is listed by the places of its numbers."""
        each, rate = miss / (2 * len(sums)), self.rates[0][1]
        away = [largest_noise(rate, self.in_sum, each, len(one)) for one in sums]
        return self._around(saturated_counts([sum(self.noisy[place] for place in one) for one in sums]), away)

    def _around(self, centre: Floats, away: Sequence[int]) -> Limits:
        """Return the limits that are so far away from noisy numbers, but not below 0."""
        # a reach of twice the limit takes in every count
        reach = np.minimum(np.array(away, dtype=object), 2 * COUNT_LIMIT).astype(np.float64)
        return Limits(*(np.maximum(end, 0.0) / self.units for end in (centre - reach, centre + reach)))

    def simulated(self, generator: Generator, times: int) -> Floats:
        """Return draws of the noise, a row each, that of the others included, if all has the sum 0.

        They are of the law of a release, but in floats: not private.
        """
        rates = each_cell(self.rates)
        if self.in_sum:
            rates = np.full(self.in_sum, rates[0])
        kept: list[Floats] = []
        while sum(map(len, kept)) < times:
            # the difference of two geometric numbers has the two-sided law
            sizes = np.floor(generator.exponential(size=(2, times, rates.size)) / rates)
            noise = np.minimum(sizes[0], COUNT_LIMIT) - np.minimum(sizes[1], COUNT_LIMIT)
            if self.in_sum:  # the last number is what the others lack to 0, as in a release
                noise[:, -1] = -noise[:, :-1].sum(axis=1)
                noise = noise[generator.exponential(size=times) > rates[-1] * np.abs(noise[:, -1])]
            kept.append(noise)
        return np.concatenate(kept)[:times] / self.units


def noise_variance(rate: Fraction) -> float:
    """Return the variance of the noise of a count, with a rate at which it is a positive float."""
    return 0.5 / math.sinh(min(max(float(rate), 1e-150), 600.0) / 2) ** 2


def saturated_counts(noisy: Any) -> Floats:
    """Return noisy counts as floats, saturated where they say no more, so that they are safe to add up."""
    numbers = noisy if isinstance(noisy, np.ndarray) else np.array(noisy, dtype=object)
    return np.clip(numbers, -COUNT_LIMIT, COUNT_LIMIT).astype(np.float64)


def quotients(x: Floats, y: Floats, undefined: Any = 0.0) -> Floats:
    """Return x / y, and another number where y is not above 0."""
    found: Floats = np.divide(x, y, out=np.full_like(x, undefined), where=y > 0)
    return found


def in_words(records: float) -> str:
    """Return a number of records as people write it."""
    return f"{records:,.0f}" if 100 <= records < 1e9 else f"{records:.3g}"


WIDEST = 0.2
"""How far 95 % limits of the noise of a result may lie apart, as a share of its public range.

Beyond, the noise may have moved it by a tenth of the range or more, and it is called mostly noise.
"""


SHOWN = 0.95
"""Confidence of limits that are shown where none is asked for."""


_AWAY = 3.0  # so many times its expected size noise exceeds with a probability of about 5 %


def far_apart(lower: float, upper: float, size: float = 1.0) -> str | None:
    """Return what to say of a result with these limits of its noise, if they are too far apart; see `WIDEST`.

    Parameters
    ----------
    lower, upper : float
        The limits with the confidence `SHOWN`.
    size : float, default=1.0
        How large the public range of the result is.
    """
    if upper - lower <= WIDEST * size:
        return None
    return f"Mostly noise: limits of its noise are {upper - lower:.2g} apart. Conclude nothing from it."


def too_few(noise: float, records: Floats) -> Any:
    """Return of which numbers of records shares have limits too far apart, where limits are not computed."""
    return 2 * _AWAY * noise > WIDEST * np.maximum(records, 0.0)


def _counted(units: int) -> str:
    return "records" if units == 1 else "persons"


def few_records(noise: float, records: Floats, few: Any, units: int = 1) -> str:
    """Return what to say of shares of which `few` are mostly noise.

    Parameters
    ----------
    noise : float
        Expected size of the noise of what is divided.
    records : ndarray
        Noisy numbers of records by which it is divided.
    few : ndarray of bool, or bool
        Which of these are too few: see `too_few`.
    units : int, default=1
        As in `TableOf`.
    """
    least, counted = in_words(max(float(records.min()), 0.0)), _counted(units)
    least = f"about {least} {counted} by the noisy counts, off by {in_words(noise)}"
    if records.size == 1:
        return f"Mostly noise: this rests on {least} on average. Conclude nothing from it."
    return (
        f"Mostly noise in part: of {records.size} shares {int(few.sum())} rest on too few {counted}, the "
        f"worst on {least} on average. Conclude nothing from these."
    )


_LONGEST = 1 << 20


_SLACK = 1e-12  # this exceeds the error of a Fourier transform of numbers up to 1


@lru_cache(maxsize=256)
def largest_noise(rate: Fraction, joined: int | None, miss: float, cells: int = 1) -> int:
    """Return j >= 0 with P(noise > j) <= miss: the smallest, but for sums of independent noises.

    Of so many `cells` the noise is their sum. If `joined` noises have the sum 0, the others of them have a
    sum with a known characteristic function; that this sum is minus the noise is the condition. It makes
    large noise less likely, so that without it the limit is right, if too wide: that serves where the noise
    is too wide for a Fourier transform.
    """
    alone = Staircase(rate).largest(miss) if cells == 1 else largest_noise_of_sum(rate, cells, miss)
    if joined is None or alone > _LONGEST or miss < 100 * _SLACK:
        return alone
    width = (50 + 20 * math.sqrt(joined)) / float(rate)
    length = 1 << (8 * (alone + 8) + math.ceil(width)).bit_length()
    if length > _LONGEST:
        return alone
    q = math.exp(-float(rate))
    # (1 - q)^2 / (1 - 2 q cos(angle) + q^2), without the difference of numbers near 1
    half = np.sin(np.pi * np.fft.rfftfreq(length)) / math.expm1(-float(rate))
    of_one = 1 + 4 * q * half**2
    of_others = np.fft.irfft(of_one ** (float(cells) - joined), length)
    k = np.arange(length // 2)
    of_these = q**k if cells == 1 else np.maximum(np.fft.irfft(of_one ** -float(cells), length)[k], 0.0)
    weights = of_these * np.maximum(of_others[: length // 2], 0.0)
    tails = np.cumsum(weights[::-1])[::-1] / (2 * weights.sum() - weights[0])  # P(noise >= k)
    found = np.flatnonzero(tails[1:] + _SLACK <= miss)
    return min(int(found[0]), alone) if found.size else alone


@lru_cache(maxsize=256)
def largest_noise_of_sum(rate: Fraction, cells: int, miss: float) -> int:
    """Return j with P(sum of so many independent noises > j) <= miss, by Chernoff's bound.

    Noise with the sum 0 is that noise under a condition which makes large values less likely, because the
    laws of all sums are symmetric and fall on either side.
    """
    if cells == 0:
        return 0
    near = min(max(float(rate), 1e-150), 600.0)  # below, the quotients of the next lines stay as they are
    t = np.linspace(0.02, 0.98, 200)
    # E exp(t rate noise) is sinh(rate / 2)^2 / (sinh(rate / 2)^2 - sinh(t rate / 2)^2)
    growth = -cells * np.log1p(-((np.sinh(t * near / 2) / math.sinh(near / 2)) ** 2))
    return math.ceil(Fraction(float(np.min((growth - math.log(miss)) / t))) / rate)
