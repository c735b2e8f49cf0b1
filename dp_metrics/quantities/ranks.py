"""Numbers by rank: a median, sums clipped at one, 1 - AUC by the ranking loss; and the calibration error."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from dp_metrics._random import Entropy, discrete_laplace
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Array, Floats
from dp_metrics.mechanisms import Hazard, Mechanism
from dp_metrics.mechanisms._laws import ApproximateLaw, Limits, Outcomes, Staircase, cells
from dp_metrics.mechanisms.hazard import HazardLaw, hazard_law, hazard_limits
from dp_metrics.quantities.base import (
    Draw,
    Noise,
    OneStage,
    Output,
    Quantity,
    Stats,
    Totals,
    rehearse_law,
)
from dp_metrics.quantities.tables import Rates, TableLaw
from dp_metrics.sensitivity.output_bounds import (
    BoundsFacts,
    OutputBounds,
    Sums,
    order_statistic_bounds,
    order_statistic_facts,
)
from dp_metrics.sensitivity.score_bounds import (
    RankedScores,
    calibration_bounds,
    calibration_facts,
    calibration_sums,
    ranking_bounds,
    ranking_facts,
)

_RANK = "A median or another quantile needs a public number of records: its rank would tell a private one."


@dataclass(frozen=True, eq=False)
class OrderOf(Quantity):
    """Public: the k-th smallest of values that are at least 0; k counts from 1.

    Parameters
    ----------
    values : callable
        The values of checked arrays.
    rank : callable
        k of the public number of records.
    limit : float
        Public limit of the values, to which they are clipped.
    mostly_noise, noise_note
        As in `Quantity`: of what is made of the order statistic.
    """

    values: Callable[..., Floats]
    rank: Callable[[int], int]
    limit: float
    mostly_noise: int = field(default=Quantity.mostly_noise, kw_only=True)  # type: ignore[misc]
    noise_note: str = field(default=Quantity.noise_note, kw_only=True)  # type: ignore[misc]

    merges = False
    no_limit = (
        "The noise of a median, or of another quantile, does not limit it from above: "
        "private_quantile_interval has two limits."
    )

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds; raise where the number of records is private."""
        if totals is None:
            raise ValueError(_RANK)
        return order_statistic_facts(totals.n, self.limit)

    def find(self, records: Records) -> Floats:
        """Return the values, clipped; where the k-th of all lies, those of pieces do not tell."""
        return np.clip(self.values(*records.arrays), 0.0, self.limit)

    def output_bounds(self, stats: Stats, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds of the order statistic."""
        return order_statistic_bounds(stats.found, self.rank(stats.found.size), ranks, self.limit)


OF_SUMS = Fraction(2, 3)
"""Part of epsilon that the sums cost; the rest buys the cap."""
_SELECTION = Hazard(resolution=0.4)  # as fine as that of the scale in `Adaptive`

_LARGEST = 1.79e308  # float of three digits


def cap_of(drawn: float) -> float:
    """Return the cap for what was drawn: three digits of it, so that what is said of it is all of it.

    It is positive and finite whatever was drawn, so that numbers can be given in units of it.
    """
    return min(max(float(f"{drawn:.3g}"), math.ulp(0.0)), _LARGEST)


@dataclass(frozen=True, eq=False)
class CappedSumsOf(OrderOf):
    """Public: an order statistic that becomes a cap, and sums of what is clipped to it.

    Parameters
    ----------
    sums_at : callable
        The whole numbers of (values, limit=cap).
    size, sensitivity : int
        How many numbers there are, and by how much those of neighbours differ at most, summed over their
        absolute differences, whatever the cap is.
    """

    sums_at: Callable[..., tuple[int, ...]]
    size: int
    sensitivity: int

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> "CapNoise":
        """Return noise of the cap and of the sums, whatever the mechanism."""
        of_cap = epsilon - OF_SUMS * epsilon
        if float(of_cap) == 0.0:
            raise ValueError("epsilon is too small to be divided between the cap and the mean.")
        rates = ((self.size, OF_SUMS * epsilon / self.sensitivity),)
        return CapNoise(self, OneStage(self, _SELECTION, totals, None, of_cap), rates, epsilon)


@dataclass(frozen=True, eq=False)
class CapNoise(Noise):
    """A cap by hazard selection, and then sums of the clipped records with two-sided geometric noise.

    Parameters
    ----------
    quantity : CappedSumsOf
        What is released.
    of_cap : OneStage
        How the cap is drawn, at a third of epsilon.
    rates : tuple of (int, Fraction)
        Of the noise of the sums.
    epsilon : Fraction
        What both cost together.

    Notes
    -----
    **Privacy.** The cap is an order statistic, released by `Hazard`. It is public from there on. Whatever it
    is, the sums of neighbours differ by the stated sensitivity at most, so that they are released at the rest
    of epsilon. Both add up by basic composition; the shares are fractions whose sum is epsilon.
    """

    quantity: CappedSumsOf
    of_cap: OneStage
    rates: Rates
    epsilon: Fraction

    mechanism = None

    @property
    def name(self) -> str:
        """What draws, for the accountant's history."""
        return f"{self.of_cap.name}, two-sided geometric noise"

    def law(self, stats: Stats, count: int | None = None) -> "CappedSumsLaw":
        """Return the law of the cap and the sums."""
        return CappedSumsLaw(self.of_cap.law(stats, count), self.quantity.sums_at, self.rates, stats.found)


@dataclass(frozen=True, repr=False, eq=False)
class CappedSumsLaw:
    """The law of a cap, and of noisy sums of what is clipped to it: private.

    Parameters
    ----------
    first : HazardLaw
        The law of what becomes the cap.
    sums_at : callable
        As in `CappedSumsOf`.
    rates : tuple of (int, Fraction)
        Of their noise.
    values : ndarray
        What is clipped.
    """

    first: Any
    sums_at: Callable[..., tuple[int, ...]]
    rates: Rates
    values: Floats

    def given(self, drawn: float) -> TableLaw:
        """Return the law of the sums, given what was drawn for the cap."""
        return TableLaw(self.sums_at(self.values, limit=cap_of(drawn)), self.rates)

    def release(self, entropy: Entropy) -> tuple[tuple[float, ...], dict[str, Any]]:
        """Draw the cap and the sums; the cap by its name as well."""
        drawn = self.first.release(entropy)
        cap = cap_of(drawn)
        return (cap, *self.given(drawn).release(entropy)), {"cap": cap}


CLASS_SHARE = Fraction(1, 20)  # this share of epsilon pays for the size of the classes

_SCALE = 0.01  # public: the size of 1 - AUC at which the grid turns from even to geometric
_FINEST = 2.0**-32  # resolution: no grid is finer
_NUMBER_CELLS, _SIZE_CELLS = (512, 36), (16, 8)  # even cells and octaves of a law
_SIZE_MISS = 0.2  # part of the miss of the limits with which the least size may be wrong
_MISS = 0.05  # the least size that a note tells is wrong with this probability
_HIDDEN = ((20, "more than half"), (70, "a fifth to a half"), (200, "up to a fifth"))
"""Of the smaller class, times epsilon: below which, how much of 1 - AUC is hidden; as measured."""

_MANY_RECORDS = 10**9  # a smaller class of more is not reckoned with: more ranks than needed cost time only


@dataclass(frozen=True)
class RankingOf(Quantity):
    """Public: 1 - AUC of one label against all others.

    Parameters
    ----------
    positive : int
        The place of the label.
    column : int or None, default=None
        The column of its scores, where there are several.
    """

    positive: int
    column: int | None = None

    merges = False
    most_ranks = 4096  # the bounds of c ranks are the best of c^2 / 2 quotients
    mostly_noise = 40
    noise_note = "an AUC comes out near 1, whatever the true one is."

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return ranking_facts(None if totals is None else totals.n)

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> "RankingNoise | None":
        """Return noise that follows the sizes of the classes, for hazard selection without a resolution."""
        if not (isinstance(mechanism, Hazard) and mechanism.needs_count):
            return None
        return RankingNoise(self, mechanism.scale or _SCALE, totals, epsilon)

    def find(self, records: Records) -> RankedScores:
        """Return the scores in order, by class, of places of labels and scores.

        All records are compared with each other, so that those of pieces do not tell.
        """
        codes, scores = records.arrays
        column = scores if self.column is None else scores[:, self.column]
        return RankedScores.of(column, codes == self.positive)

    def output_bounds(self, stats: Stats, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds of the ranking loss."""
        return ranking_bounds(stats.found, ranks, private_n)


@dataclass(frozen=True)
class RankingNoise(Noise):
    """A ranking loss, by hazard selection with a resolution from noisy sizes of the classes.

    Parameters
    ----------
    quantity : RankingOf
        What is released.
    scale : float
        Of the grid.
    totals : Totals or None
        As in `noise_of`.
    epsilon : Fraction
        What the sizes and the release cost together.

    Notes
    -----
    One record changes the number of positives by at most 1 where it is replaced, and either it or the number
    of negatives by 1 where it is added or removed: two-sided geometric noise of rate epsilon / 20 on one of
    them, or on both, costs epsilon / 20. What follows from noisy sizes is post-processing.
    """

    quantity: RankingOf
    scale: float
    totals: Totals | None
    epsilon: Fraction

    mechanism = None

    @property
    def name(self) -> str:
        """The mechanism with its parameters."""
        return f"two-sided geometric noise, {Hazard(scale=self.scale)!r}"

    @property
    def n(self) -> int | None:
        """Number of records, where it is public."""
        return None if self.totals is None else self.totals.n

    @property
    def rate(self) -> Fraction:
        """Rate of the noise of each size, and what the sizes cost."""
        return self.epsilon * CLASS_SHARE

    @property
    def hazard_epsilon(self) -> Fraction:
        """What is left for the release."""
        return self.epsilon - self.rate

    @property
    def most(self) -> int:
        """Largest size of the smaller class that is reckoned with."""
        return _MANY_RECORDS if self.n is None else max(self.n // 2, 1)

    def smaller(self, sizes: tuple[int, ...]) -> int:
        """Return a size of the smaller class, from noisy sizes of the first, or of both."""
        other = sizes[1] if self.n is None else self.n - sizes[0]
        return min(max(min(sizes[0], other), 1), self.most)

    def least(self, sizes: tuple[int, ...], miss: float) -> int:
        """Return a lower limit of the size of the smaller class, which is wrong with this probability.

        `smaller` exceeds the size of whichever class is the smaller one by the noise of that class at most.
        """
        return max(self.smaller(sizes) - Staircase(self.rate).largest(miss), 0)

    def given(self, smaller: int) -> Hazard:
        """Return the rule for a size of the smaller class."""
        resolution = 1.0 / (smaller * float(self.epsilon) / 30 + 2.5)
        return Hazard(resolution=max(resolution, _FINEST), scale=self.scale)

    @cached_property
    def ranks(self) -> int:
        """How many ranks the finest resolution uses."""
        return OneStage(self.quantity, self.given(self.most), self.totals, None, self.hazard_epsilon).ranks

    def law(self, stats: Stats, count: int | None = None) -> "RankingLaw":
        """Return the law of the sizes and the loss."""
        private_n, sizes = self.totals is None, stats.found.counts
        return RankingLaw(self, stats.bounds(self.ranks, private_n), sizes if private_n else sizes[:1])

    def prepare(self, stats: Stats) -> Draw:
        """Return the draw, after laws of a made-up number at the coarsest and the finest resolution."""
        for smaller in (1, self.most):
            facts = self.quantity.facts(self.totals, self.ranks)
            rehearse_law(self.given(smaller), self.hazard_epsilon, facts)
        return super().prepare(stats)

    def limits(self, output: Output, miss: float) -> Limits:
        """Return limits of the loss before the noise, by the noisy sizes.

        Notes
        -----
        **Claim.** With m records in the smaller class and M in the other, the loss f moves as a mean of m
        terms of at most 1: L^l lies from f - l/m to f (1 - l/m), or to f where n is private. So do 1 - U^l
        and 1 - f.

        **Proof.** *From above.* The l lowest positives, or the l highest negatives if these are the fewer,
        have l/m of the loss or more; replace them by records without. *From below.* Drop a records of the
        smaller class and b = l - a of the other: at most m M - (m - a)(M - b) wrong pairs go. What comes adds
        right pairs at best; if it all joins the smaller class the loss is 1 - l/(m + b) - (1 - f) m M / ((m +
        b)(M - b)), which rises with b, from f - l/m at 0, up to m + b = n/2. From there on n^2/4 pairs are
        the most: then it is concave in b, and at b = l at least f - l/m as well, because f is at most 1. If k
        records are removed and l - k added, at least (f - k/m) m M of at most m M (m - k)/(m - l) pairs are
        wrong.

        So a least size, wrong with a part of the miss, makes limits like those of such a mean. The least
        favourable data are a few positives below all negatives.
        """
        sizes, of_size = tuple(output.drawn.values()), _SIZE_MISS * miss
        # a class of none has the bounds of a class of one: any area, as soon as one record changes
        least = max(self.least(sizes, of_size), 1)
        facts = replace(self.quantity.facts(self.totals, self.ranks), sensitivity=1.0 / least)
        law = partial(self.given(self.smaller(sizes)).output_distribution, epsilon=self.hazard_epsilon)
        return hazard_limits(law, output.value, facts, self.ranks, miss - of_size).within(0.0, 1.0)

    def note(self, output: Output) -> str | None:
        """Return what the noisy sizes tell of the bias of the area, if it may be large.

        The noise of a size times epsilon has a mean of 20 whatever epsilon is, so that the size itself does
        not tell whether it is below 20: what counts is the least one with confidence.
        """
        sizes = tuple(output.drawn.values())  # of positives, and of negatives where their sum is private
        smaller, least = self.smaller(sizes), self.least(sizes, _MISS)
        share = next((share for most, share in _HIDDEN if least * self.epsilon < most), None)
        if share is None:
            return None
        return (
            f"Biased towards 1: by the noisy count the smaller class has about {smaller} records, at least "
            f"{least} with confidence 95 %. With so few at epsilon {float(self.epsilon):.3g} {share} of "
            "1 - AUC may be hidden. Do not conclude that the model is good, and do not compare this area "
            "with others."
        )


class RankingLaw(ApproximateLaw):
    """The law of a ranking loss, and of the noisy sizes of the classes from which its resolution follows.

    Parameters
    ----------
    rule : RankingNoise
        What is public.
    bounds : OutputBounds
        What the mechanism sees of the data.
    sizes : tuple of int
        Number of positives, and of negatives where the number of records is private: private.

    Notes
    -----
    `release` is exact. For the law of the loss, quantiles of the noise of each size stand for cells of
    probability, as do those of the number given these.
    """

    def __init__(self, rule: RankingNoise, bounds: OutputBounds, sizes: tuple[int, ...]) -> None:
        self.rule, self.sizes, self._bounds = rule, sizes, bounds

    def release(self, entropy: Entropy) -> tuple[float, dict[str, int]]:
        """Draw the loss; with it the sizes of the classes, or of the positives."""
        sizes = tuple(size + discrete_laplace(entropy, self.rule.rate) for size in self.sizes)
        value = self.given(self.rule.smaller(sizes)).release(entropy)
        return value, dict(zip(("positives", "negatives"), sizes, strict=False))

    def given(self, smaller: int) -> HazardLaw:
        """Return the exact law of the loss, given a size of the smaller class."""
        return hazard_law(self.rule.given(smaller), self._bounds, self.rule.hazard_epsilon)

    def outcomes(self) -> Outcomes:
        """Return outcomes that stand for the law, and the probability of each."""
        middle, mass = cells(*_NUMBER_CELLS)
        values, shares = [], []
        for smaller, share in self._smaller().items():
            values.append(self.given(smaller).quantile(middle))
            shares.append(share * mass)
        return np.concatenate(values), np.concatenate(shares)

    def _smaller(self) -> dict[int, float]:
        """Return sizes of the smaller class, as drawn, and the probability of each."""
        found = defaultdict[int, float](float)
        middle, mass = cells(*_SIZE_CELLS)
        noise = Staircase(self.rule.rate).quantiles(middle)
        noisy = [(int(away), share) for away, share in zip(noise.tolist(), mass.tolist(), strict=True)]
        for parts in product(noisy, repeat=len(self.sizes)):
            sizes = tuple(size + away for size, (away, _) in zip(self.sizes, parts, strict=True))
            found[self.rule.smaller(sizes)] += math.prod(share for _, share in parts)
        return found


@dataclass(frozen=True, eq=False)
class CalibrationOf(Quantity):
    """Public: the expected calibration error.

    Parameters
    ----------
    find : callable
        The sums of labels minus scores by public bin, in units of 2**-1074, of `Records` whose form is valid.
    """

    find: Callable[[Records], Array]

    has_sums = True
    most_ranks = 4096  # their bounds are long integers

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return calibration_facts(None if totals is None else totals.n)

    def sums(self, stats: Stats | None = None) -> Sums:
        """Return the sums that tell the error."""
        return calibration_sums(*(0, 0) if stats is None else (total_gap(stats.found), stats.totals.n))

    def output_bounds(self, stats: Stats, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds of the error."""
        return calibration_bounds(total_gap(stats.found), stats.totals.n, ranks, private_n)


def total_gap(excess: Iterable[int]) -> int:
    """Return the calibration error times n, of the sums of labels minus scores by bin, in their units."""
    return sum(map(abs, excess))
