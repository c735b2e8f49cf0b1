"""The adaptive mechanism: a private scale first, then noise of that scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dp_metrics._random import Entropy
from dp_metrics.inputs.options import (
    MAX_FLOAT,
    ByName,
    check_positive,
    exact_epsilon,
    own_error_state,
)
from dp_metrics.mechanisms._base import MOST_RANKS, TOO_FEW, UNBOUNDED, Mechanism
from dp_metrics.mechanisms._laws import (
    ApproximateLaw,
    GeometricLaw,
    Lattice,
    Limits,
    Outcomes,
    OutputLaw,
    Staircase,
    cells,
)
from dp_metrics.mechanisms.geometric import SumsLaw
from dp_metrics.mechanisms.hazard import Hazard, hazard_law, records_above
from dp_metrics.sensitivity.exact import rounded
from dp_metrics.sensitivity.output_bounds import BoundsFacts, ClippedSum, Extremes, ratio_sums

_SMALLEST_LOSS, _SMALLEST_DISTANCE = 1e-270, 1e-130  # lattices of these are far above the subnormals
_LARGEST_OFFSET = 1 << 50
_BITS = 30  # C1 has 2^30 steps of the lattice, or fewer if a float could not count them
_BITS_OF_INDEX = 51

_COUNT_MISS = 0.05  # part of the miss of limits with which more records may be clipped than is said


# The statistic is that of the k-th records from the ends: `_rank`. A larger k on larger data clips a few
# records more, and makes a C1 far above the others rare.
_LEAST_RANK, _MOST_RANK = 2, 12  # k * epsilon
_GROWN_FROM, _POWER = 1000, 0.35  # above this n * epsilon it grows with this power
_WIDENED = math.sqrt(1.1)  # a little wider, so that of values at both ends of their range few are clipped
_LEAST_SHARE, _LARGEST_SHARE = Fraction(1, 4), Fraction(3, 5)


_LOSSES, _DISTANCES = (0.4, 300), (0.2, 900)
"""Of each kind of extremes: the resolution of the statistic, and the n * epsilon from which on there are two
stages."""

_ONE_STAGE = Hazard()


@own_error_state
@dataclass(frozen=True, repr=False)
class Adaptive(Mechanism):
    """Draw how much a large record adds, then release the metric with noise of that size.

    Where n * epsilon is at least a public threshold, 300 for a mean of losses and 900 for a variance, there
    are two stages. The first releases C1 by hazard selection: the k-th largest loss, or 1.1 times the square
    of how far values lie from the mean of the middle ones; k follows from n and epsilon. The second clips
    what each record adds at C1, and adds staircase noise of that size. Below a third of the threshold, and
    for metrics without extremes, this is `Hazard`. In between a public coin decides between the two, so that
    the expected error has no jump.

    Parameters
    ----------
    threshold : float or None, default=None
        Public n * epsilon T from which on there are always two stages; None: as above. From T / 3 on there
        are two with probability (3 n epsilon - T) / (2 T).
    share : float or None, default=None
        Part of epsilon for the first stage, between 0 and 1; None: 1/4 + T / (6 n epsilon), at most 3/5.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in
    one record, given public n and bounds, and so is (C1, release) together.

    **Proof.** The order statistic and the distances have output bounds (`Extremes`) for each public k, so the
    first stage is (share * epsilon)-differentially private by the theorem of `Hazard`. With a private n, k is
    a function of its noisy count. C1 is public from here on. The clipped sum T is the sum of min(v, C1) over
    the losses v, or the least sum of min((x - m)^2, C1) over all centres m of the values x. It grows by 0 to
    C1 when a record is added, for each m and so for the least of them, and moves by at most C1 when a record
    is replaced. On a lattice of C1 / s that is at most s steps, which `Staircase` noise hides at the rest of
    epsilon. The release is T / n with n public. With a private n both T and n C1 - T get two-sided geometric
    noise: together they move by C1 when a record comes or goes. The two stages, and a noisy count, add up by
    basic composition.
    The coin, and whether it was used, depend on n (or its noisy count) and epsilon only, and a mixture of two
    private releases with public weights is as private.

    **Exactness.** This holds for the program as executed: C1 follows from a point of a public grid, T is an
    exact rational number that is rounded once to the lattice, which commutes with shifts by lattice points,
    and the noise is drawn from fair bits without a float.

    **Error.** Records above C1 count as C1. So releases are usually too low where a few records add most of
    the sum (a heavy tail). Where no record adds much (a light tail) about half are.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681, defines
    the output bounds; the rule in two stages is this package's own. T / n is a Lipschitz extension of the
    metric, as in S. Chen and S. Zhou, "Recursive Mechanism", 2013, doi:10.1145/2463676.2465304.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_mse
    >>> errors = np.random.default_rng(0).normal(size=5000)
    >>> 0.9 < private_mse(0 * errors, errors, epsilon=1.0, mechanism=Adaptive()) < 1.1  # exactly 1.02
    True
    """

    threshold: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        self._check(check_positive, "threshold", "share")
        if self.share is not None and self.share >= 1:
            raise ValueError("share must be below 1.")

    is_exact = True
    clips = True
    needs_count = True

    # output bounds alone do not tell of extremes: of what they tell there is one stage
    count_ranks = _ONE_STAGE.count_ranks
    output_distribution = _ONE_STAGE.output_distribution
    noise_limits = _ONE_STAGE.noise_limits


def _rank(n: int | None, epsilon: Fraction) -> int:
    """Return k for n records, a noisy count, or the largest k of any count: a public number."""
    growth, most = Fraction(_MOST_RANK, _LEAST_RANK), MOST_RANKS
    if n is not None:  # a noisy count may be enormous, and what is made of it must fit into memory
        times = min(max(n * epsilon / _GROWN_FROM, Fraction(1)), Fraction(1 << 30))
        growth, most = min(Fraction(float(times) ** _POWER), growth), min(max(n // 2, 1), MOST_RANKS)
    return min(math.ceil(_LEAST_RANK * growth / epsilon), most)


@lru_cache(maxsize=256)
def stages_of(
    mechanism: Adaptive, n: int | None, epsilon: Fraction, statistic: BoundsFacts, limit: float
) -> Stages:
    """Return the numbers of both stages.

    Parameters
    ----------
    mechanism : Adaptive
        The settings.
    n : int or None
        Number of records, a noisy count, or None where that is not drawn yet: there may be two stages.
    epsilon : Fraction
        What both stages cost together.
    statistic : BoundsFacts
        What is public of the statistic that the first one draws: a loss is monotonic, a distance is not.
    limit : float
        Public limit of the metric.
    """
    resolution, usual = _LOSSES if statistic.monotonic else _DISTANCES
    threshold = Fraction(usual if mechanism.threshold is None else mechanism.threshold)
    # where n is not known yet there may be so many that all constants have their last value
    excess = math.inf if n is None else max(n * epsilon / threshold, Fraction(1, 3))
    probability = Fraction(1) if excess >= 1 else Fraction(3 * excess - 1) / 2
    if mechanism.share is not None:
        share = exact_epsilon(mechanism.share)
    else:
        share = min(_LEAST_SHARE + Fraction(1 / (6 * excess)), _LARGEST_SHARE)
    selection, first, end = Hazard(resolution=resolution), share * epsilon, statistic.output_range[1]
    largest = end if statistic.monotonic else rounded(Fraction(end) ** 2)
    return Stages(
        probability, selection, first, _rank(n, epsilon), statistic, n or 0, limit, largest, epsilon - first
    )


@dataclass(frozen=True)
class Stages:
    """The public numbers of two stages.

    Parameters
    ----------
    probability : Fraction
        That there are two; if it is 0 there is one.
    selection : Hazard
        The mechanism of the first.
    first : Fraction
        What the first one costs.
    rank : int
        k: the statistic is that of the k-th records from the ends.
    statistic : BoundsFacts
        What is public of the statistic that the first one draws.
    n : int
        Number of records, or an estimate of it; 0 where that is not drawn yet.
    limit : float
        Public limit of the metric.
    largest : float
        The C1 from which on nothing is clipped.
    epsilon : Fraction
        What the second one costs.
    """

    probability: Fraction
    selection: Hazard
    first: Fraction
    rank: int
    statistic: BoundsFacts
    n: int
    limit: float
    largest: float
    epsilon: Fraction

    @cached_property
    def ranks(self) -> int:
        """The number of output bounds of the statistic."""
        monotonic, any_range = self.statistic.monotonic, (0.0, MAX_FLOAT)
        return self.selection.count_ranks(self.first, n=None, monotonic=monotonic, output_range=any_range)

    def second_law(self, clipped: ClippedSum, private_n: int | None) -> GeometricLaw | SumsLaw:
        """Return the exact law of the second stage, given the clipped sum."""
        share, most = clipped
        if private_n is not None:
            return SumsLaw(ratio_sums(share, private_n, rounded(most), self.limit), self.epsilon)
        # the steps are of size C1 / fineness: one record moves the sum by at most `fineness` of them
        fineness = 1 << max(min(_BITS_OF_INDEX - self.n.bit_length(), _BITS), 0)
        total, unit = share.as_integer_ratio()
        steps = (2 * fineness * total + unit) // (2 * unit)
        # clipping lowers the metric: a quarter of C1 / epsilon upwards makes up for part of that
        steps += min(math.floor(fineness / (4 * self.epsilon)), _LARGEST_OFFSET)
        lattice = Lattice(max(rounded(most / (self.n * fineness)), math.ulp(0.0)), self.limit)
        return GeometricLaw(lattice, steps, Staircase(self.epsilon, fineness))

    def limits(self, known: int | None, released: float, drawn: ByName, miss: float) -> Limits:
        """Return limits of a number that was released in two stages.

        Parameters
        ----------
        known : int or None
            Public number of the largest losses that were known; None of distances.
        released : float
            What was released.
        drawn : mapping
            What else was drawn.
        miss : float
            Probability, over the noise, with which a limit may be wrong.

        Notes
        -----
        Given C1 the noise has a public law, and clipping only lowers a metric: whatever C1 is, what the noise
        leaves of the clipped metric g is a lower limit of the metric f.

        **Upper limit.** Let B be the most that one record can add. Each of the K clipped records adds C1 to
        n g and B at most to n f, with the centre of a clipped variance for the mean, which only adds to it: f
        is at most g + (B - C1) K / n, and K is at most n g / C1. Of losses it is at most what `records_above`
        tells.
        """
        scale = drawn["scale"]
        if scale < _SMALLEST_LOSS:  # the public limit is: steps of the lattice may be subnormal, and rounded
            return Limits(0.0, self.limit)
        law = self.second_law((Fraction(0), Fraction(scale)), 0 if "sums" in drawn else None)

        def clipped(each: float) -> tuple[float, float, float]:
            """Return limits of the clipped metric, and of the number of records from below."""
            if isinstance(law, SumsLaw):
                sums = drawn["sums"]
                return (*law.limits(sums, each)[:2], law.fewest(sums, each))
            # the clipped sum was rounded by half a step, and C1 by one more
            return (*law.limits(released, each, rounding=1.5)[:2], self.n)

        if self.limit >= MAX_FLOAT and scale < self.largest:
            return Limits(clipped(miss)[0], math.inf, UNBOUNDED)
        of_count = 0.0 if known is None else _COUNT_MISS * miss
        lower, upper, n = clipped((miss - of_count) / 2)
        if scale < self.largest:
            share = upper / scale
            if known is not None:  # so many of the largest losses were known
                of_first = hazard_law(self.selection, self.statistic.widest(), self.first)
                ranks = min(self.ranks, known - self.rank)
                share = min(share, records_above(of_first, self.rank, ranks, scale, of_count) / n)
            upper = min(upper + share * (self.largest - scale), self.limit)
        return Limits(lower, upper, TOO_FEW if upper >= self.limit else "")


class AdaptiveLaw(ApproximateLaw):
    """A mixture, over a drawn scale, of the laws of noise of that scale; perhaps with the law in one stage.

    Parameters
    ----------
    stages : Stages
        What is public.
    extremes : Extremes
        The statistic that is drawn first, and the clipped sums.
    one : OutputLaw or None, default=None
        The law in one stage, if there may be one.

    Notes
    -----
    `given` is exact, and so is `release`, which is one in two stages. For the mixture, 200 drawn scales and
    several hundred values of the noise stand for cells of probability, at most 1/128 and 1/256, and ever
    smaller ones towards both ends.
    """

    def __init__(self, stages: Stages, extremes: Extremes, one: OutputLaw | None = None) -> None:
        bounds = stages.statistic.bounds(*extremes.at_ranks(stages.rank, stages.ranks))
        self.first = hazard_law(stages.selection, bounds, stages.first)
        self.stages, self._extremes, self.one = stages, extremes, one

    def given(self, drawn: float) -> GeometricLaw | SumsLaw:
        """Return the exact law of the second stage, given what the first has drawn."""
        return self.stages.second_law(self.clipped(drawn), self._extremes.private_n)

    def release(self, entropy: Entropy) -> tuple[float, dict[str, Any]]:
        """Draw a release; with it C1, the "scale", and with a private n both noisy "sums"."""
        clipped = self.clipped(self.first.release(entropy))
        law, drawn = self.stages.second_law(clipped, self._extremes.private_n), {"scale": rounded(clipped[1])}
        if isinstance(law, GeometricLaw):
            return law.release(entropy), drawn
        value, sums = law.release(entropy)
        return value, {**drawn, **sums}

    def clipped(self, drawn: float) -> ClippedSum:
        """Return the sum that is clipped at C1, for what the first stage has drawn."""
        if not self.stages.statistic.monotonic:  # it is of distances
            width = min(_WIDENED * drawn, self.stages.statistic.output_range[1])
            return self._extremes.clipped(max(width, _SMALLEST_DISTANCE))
        return self._extremes.clipped(max(drawn, _SMALLEST_LOSS))

    def outcomes(self) -> Outcomes:
        """Return outcomes that stand for the law, and the probability of each."""
        middle, mass = cells(128, 36)
        drawn = self.first.quantile(middle).tolist()
        laws = [self.given(size).outcomes() for size in drawn]
        values = [values for values, _ in laws]
        of_two = float(self.stages.probability)
        shares = [of_two * share * part for share, (_, part) in zip(mass.tolist(), laws, strict=True)]
        if self.one is not None:
            middle, mass = cells(256, 36)
            values.append(self.one.quantile(middle))
            shares.append((1 - of_two) * mass)
        return np.concatenate(values), np.concatenate(shares)
