"""Order statistics, and the ranking loss 1 - AUC: parts of plans, and what is known of the records."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import Entropy, discrete_laplace
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Hazard
from dp_metrics.mechanisms._base import Draw, KnownNumber, Limits, rehearse_law
from dp_metrics.mechanisms._laws import ApproximateLaw, cells, geometric_quantiles
from dp_metrics.mechanisms.geometric import largest_noise
from dp_metrics.mechanisms.hazard import hazard_limits
from dp_metrics.release.plan import BoundsPart
from dp_metrics.sensitivity.aggregates import OrderAggregate
from dp_metrics.sensitivity.output_bounds import (
    BoundsFacts,
    OutputBounds,
    RankedScores,
    order_statistic_bounds,
    order_statistic_facts,
    ranking_bounds,
    ranking_bounds_private_n,
    ranking_facts,
)

_RANK = "A median or another quantile needs a public number of records: its rank would tell a private one."


@dataclass(frozen=True, eq=False)
class OrderOf(BoundsPart):
    """Public: the k-th smallest of values that are at least 0, as a part of a plan; k counts from 1.

    Parameters
    ----------
    values : callable
        The values of checked arrays.
    rank : callable
        k of the public number of records.
    limit : float
        Public limit of the values, to which they are clipped.
    """

    values: Callable[..., Floats]
    rank: Callable[[int], int]
    limit: float

    merges = False

    @property
    def highest(self) -> float:
        """The public limit of the values."""
        return self.limit

    def is_monotonic(self, relation: Relation) -> bool:
        """Return True; raise where n is private."""
        if relation.private_n:
            raise ValueError(_RANK)
        return True

    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return order_statistic_facts(n, self.limit)

    def known(self, records: Records) -> "OrderStatistic":
        """Return the values."""
        return OrderStatistic(self, self.values(*records.arrays))


@dataclass(frozen=True, repr=False, eq=False)
class OrderStatistic(KnownNumber):
    """Private: the values, of which one is released."""

    part: OrderOf
    x: Floats

    @property
    def n(self) -> int:
        """Number of records."""
        return self.x.size

    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds of the order statistic."""
        limit = self.part.limit
        x = np.clip(self.x, 0.0, limit)
        return order_statistic_bounds(
            OrderAggregate.from_data(x, self.part.rank(self.n), capacity=ranks, limit=limit)
        )


CLASS_SHARE = Fraction(1, 20)  # this share of epsilon pays for the size of the classes

_MOST_RANKS = 4096  # the bounds of c ranks are the best of c^2 / 2 quotients
_SCALE = 0.01  # public: the size of 1 - AUC at which the grid turns from even to geometric
_FINEST = 2.0**-32  # resolution: no grid is finer
_NUMBER_CELLS, _SIZE_CELLS = (512, 36), (16, 8)  # even cells and octaves of a law
_SIZE_MISS = 0.2  # part of the miss of the limits with which the least size may be wrong
_MISS = 0.05  # the least size that a note tells is wrong with this probability
_HIDDEN = ((20, "more than half"), (70, "a fifth to a half"), (200, "up to a fifth"))
"""Of the smaller class, times epsilon: below which, how much of 1 - AUC is hidden; as measured."""

_MANY_RECORDS = 10**9  # a smaller class of more is not reckoned with: more ranks than needed cost time only


@dataclass(frozen=True)
class RankingOf(BoundsPart):
    """Public: 1 - AUC of one label against all others, as a part of a plan.

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
    has_classes = True
    highest = 1.0
    mostly_noise = 40
    noise_note = "an AUC comes out near 1, whatever the true one is."

    def is_monotonic(self, relation: Relation) -> bool:
        """Return False: the lower bounds may rise while the upper ones fall."""
        return False

    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return ranking_facts(n)

    def records_told(
        self, draw: Any, value: Any, drawn: Mapping[str, Any], count: int | None
    ) -> Fraction | None:
        """Return the noisy count: the sizes of the classes have a note of their own."""
        return None if count is None else Fraction(count)

    def known(self, records: Records) -> "RankingLoss":
        """Return the classes and the scores of records that are read as places of labels, and scores."""
        codes, scores = records.arrays
        column = scores if self.column is None else scores[:, self.column]
        return RankingLoss(self, codes == self.positive, column)


@dataclass(frozen=True, repr=False, eq=False)
class RankingLoss(KnownNumber):
    """Private: the records of two classes.

    Parameters
    ----------
    part : RankingOf
        What is released.
    is_positive : ndarray of bool
        Whether each record is of the positive class.
    scores : ndarray
        Finite scores, higher for records that are taken for positive ones.
    """

    part: RankingOf
    is_positive: NDArray[np.bool_]
    scores: Floats

    @property
    def n(self) -> int:
        """Number of records."""
        return self.scores.size

    @cached_property
    def _ranked(self) -> RankedScores:
        return RankedScores.of(self.scores, self.is_positive)

    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds of the ranking loss."""
        make = ranking_bounds_private_n if relation.private_n else ranking_bounds
        return make(self._ranked, min(ranks, _MOST_RANKS))

    def by_class(self, scale: float | None, epsilon: Fraction, *, relation: Relation) -> "RankingDraw":
        """Return a draw that starts with the sizes of the classes."""
        rule = HazardByClass(scale or _SCALE, epsilon, None if relation.private_n else self.n)
        bounds = self.output_bounds(rule.finest, rule.hazard_epsilon, relation=relation)
        positives, negatives = self._ranked.counts
        return RankingDraw(bounds, rule, (positives, negatives) if relation.private_n else (positives,))


@dataclass(frozen=True)
class HazardByClass:
    """Hazard selection with a resolution that follows from a noisy size of the smaller class: public facts.

    Parameters
    ----------
    scale : float
        Of the grid.
    epsilon : Fraction
        What the sizes and the release cost together.
    n : int or None
        Number of records, where it is public.

    Notes
    -----
    One record changes the number of positives by at most 1 where it is replaced, and either it or the number
    of negatives by 1 where it is added or removed: two-sided geometric noise of rate epsilon / 20 on one of
    them, or on both, costs epsilon / 20. What follows from noisy sizes is post-processing.
    """

    scale: float
    epsilon: Fraction
    n: int | None

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

    @property
    def finest(self) -> Hazard:
        """The rule with the finest resolution, which asks for the most ranks."""
        return self.given(self.most)

    def smaller(self, sizes: tuple[int, ...]) -> int:
        """Return a size of the smaller class, from noisy sizes of the first, or of both."""
        other = sizes[1] if self.n is None else self.n - sizes[0]
        return min(max(min(sizes[0], other), 1), self.most)

    def least(self, sizes: tuple[int, ...], miss: float) -> int:
        """Return a lower limit of the size of the smaller class, which is wrong with this probability.

        `smaller` exceeds the size of whichever class is the smaller one by the noise of that class at most.
        """
        return max(self.smaller(sizes) - largest_noise(self.rate, miss), 0)

    def given(self, smaller: int) -> Hazard:
        """Return the rule for a size of the smaller class."""
        resolution = 1.0 / (smaller * float(self.epsilon) / 30 + 2.5)
        return Hazard(resolution=max(resolution, _FINEST), scale=self.scale)


@dataclass(frozen=True, repr=False, eq=False)
class RankingDraw(Draw):
    """One number, by hazard selection with a resolution from noisy sizes of the classes.

    Parameters
    ----------
    output_bounds : OutputBounds
        What the mechanism sees of the data.
    rule : HazardByClass
        The rule.
    sizes : tuple of int
        Number of positives, and of negatives where n is private: private.
    """

    output_bounds: OutputBounds
    rule: HazardByClass
    sizes: tuple[int, ...]

    @property
    def drawn_by(self) -> str:
        """The mechanism with its parameters."""
        return f"two-sided geometric noise, {Hazard(scale=self.rule.scale)!r}"

    @property
    def epsilon(self) -> Fraction:
        """Privacy parameter."""
        return self.rule.epsilon

    def rehearse(self) -> None:
        """Make the laws of a made-up number at the coarsest and the finest resolution."""
        for smaller in (1, self.rule.most):
            rehearse_law(self.rule.given(smaller), self.rule.hazard_epsilon, self.output_bounds.facts)

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[float, Mapping[str, Any]]:
        """Draw the sizes of the classes, and one number."""
        sizes = tuple(size + discrete_laplace(entropy, self.rule.rate) for size in self.sizes)
        mechanism = self.rule.given(self.rule.smaller(sizes))
        value = mechanism.release(self.output_bounds, self.rule.hazard_epsilon, entropy)
        return value, dict(zip(("positives", "negatives"), sizes, strict=False))

    def noise(self, value: float, drawn: Mapping[str, Any], count: int | None) -> "RankingNoise":
        """Return what is public about the noise of the number, given the noisy sizes."""
        bounds = self.output_bounds
        return RankingNoise(value, self.rule, tuple(drawn.values()), bounds.facts, bounds.ranks)

    def note(self, drawn: Mapping[str, Any]) -> str | None:
        """Return what the noisy sizes tell of the bias of the area, if it may be large.

        The noise of a size times epsilon has a mean of 20 whatever epsilon is, so that the size itself does
        not tell whether it is below 20: what counts is the least one with confidence.
        """
        rule, sizes = self.rule, tuple(drawn.values())
        smaller, least = rule.smaller(sizes), rule.least(sizes, _MISS)
        share = next((share for most, share in _HIDDEN if least * rule.epsilon < most), None)
        if share is None:
            return None
        return (
            f"Biased towards 1: by the noisy count the smaller class has about {smaller} records, at least "
            f"{least} with confidence 95 %. With so few at epsilon {float(rule.epsilon):.3g} {share} of "
            "1 - AUC may be hidden. Do not conclude that the model is good, and do not compare this area "
            "with others."
        )

    def law_given(self, smaller: int) -> Any:
        """Return the exact law of the number, given a size of the smaller class."""
        return self.rule.given(smaller).output_distribution(self.output_bounds, self.rule.hazard_epsilon)


@dataclass(frozen=True)
class RankingNoise:
    """The noise of a ranking loss that was released after the sizes of the classes.

    Parameters
    ----------
    released : float
        What was released.
    rule : HazardByClass
        The rule.
    sizes : tuple of int
        Noisy number of positives, and of negatives where n is private.
    facts : BoundsFacts
        What is public of the output bounds.
    ranks : int
        How many ranks the release used.

    Notes
    -----
    **Claim.** With m records in the smaller class and M in the other, the loss f moves as a mean of m terms
    of at most 1: L^l lies from f - l/m to f (1 - l/m), or to f where n is private. So do 1 - U^l and 1 - f.

    **Proof.** *From above.* The l lowest positives, or the l highest negatives if these are the fewer, have
    l/m of the loss or more; replace them by records without. *From below.* Drop a records of the smaller
    class and b = l - a of the other: at most m M - (m - a)(M - b) wrong pairs go. What comes adds right pairs
    at best; if it all joins the smaller class the loss is 1 - l/(m + b) - (1 - f) m M / ((m + b)(M - b)),
    which rises with b, from f - l/m at 0, up to m + b = n/2. From there on n^2/4 pairs are the most: then it
    is concave in b, and at b = l at least f - l/m as well, because f is at most 1. If k records are removed
    and l - k added, at least (f - k/m) m M of at most m M (m - k)/(m - l) pairs are wrong.

    So a least size, wrong with a part of the miss, makes limits like those of such a mean. The least
    favourable data are a few positives below all negatives.
    """

    released: float
    rule: HazardByClass
    sizes: tuple[int, ...]
    facts: BoundsFacts
    ranks: int

    def limits(self, miss: float) -> Limits:
        """Return limits of the loss before the noise."""
        rule = self.rule
        of_size = _SIZE_MISS * miss
        # a class of none has the bounds of a class of one: any area, as soon as one record changes
        least = max(rule.least(self.sizes, of_size), 1)
        facts = replace(self.facts, sensitivity=1.0 / least)
        law = partial(rule.given(rule.smaller(self.sizes)).output_distribution, epsilon=rule.hazard_epsilon)
        return hazard_limits(law, self.released, facts, self.ranks, miss - of_size).within(0.0, 1.0)


class RankingLaw(ApproximateLaw):
    """The law of a ranking loss over the noise of the sizes of the classes.

    Parameters
    ----------
    draw : RankingDraw
        The release.

    Notes
    -----
    Quantiles of the noise of each size stand for cells of probability, as do those of the number given these.
    """

    def __init__(self, draw: RankingDraw) -> None:
        self._draw = draw

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outcomes that stand for the law, and the probability of each."""
        middle, mass = cells(*_NUMBER_CELLS)
        values, shares = [], []
        for smaller, share in self._smaller().items():
            values.append(self._draw.law_given(smaller).quantile(middle))
            shares.append(share * mass)
        return np.concatenate(values), np.concatenate(shares)

    def _smaller(self) -> dict[int, float]:
        """Return sizes of the smaller class, as drawn, and the probability of each."""
        rule, found = self._draw.rule, defaultdict[int, float](float)
        middle, mass = cells(*_SIZE_CELLS)
        noise = geometric_quantiles(middle, float(rule.rate))
        noisy = [(int(away), share) for away, share in zip(noise.tolist(), mass.tolist(), strict=True)]
        for parts in product(noisy, repeat=len(self._draw.sizes)):
            sizes = tuple(size + away for size, (away, _) in zip(self._draw.sizes, parts, strict=True))
            found[rule.smaller(sizes)] += math.prod(share for _, share in parts)
        return found
