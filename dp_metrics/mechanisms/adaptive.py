"""The adaptive mechanism: a private scale first, then noise of that scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dp_metrics._random import Entropy, RandomState, check_entropy
from dp_metrics.inputs.epsilon import Epsilon, exact_epsilon
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.mechanisms._base import MOST_RANKS, Limits, NoisyRelease, Rule, positive_number
from dp_metrics.mechanisms._grid import Lattice
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.mechanisms._hazard_limits import PUBLIC_END, UNBOUNDED
from dp_metrics.mechanisms._laws import ApproximateLaw, cells
from dp_metrics.mechanisms.geometric import GeometricLaw, SumsLaw
from dp_metrics.mechanisms.hazard import Hazard
from dp_metrics.sensitivity.exact import rounded_quotient
from dp_metrics.sensitivity.extremes import Clipped, Extremes
from dp_metrics.sensitivity.noisy_sums import ratio_sums
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["Adaptive", "AdaptiveLaw"]

_SMALLEST_LOSS, _SMALLEST_WIDTH = 1e-270, 1e-130  # lattices of these are far above the subnormals
_LARGEST_OFFSET = 1 << 50
_BITS = 30  # C1 has 2^30 steps of the lattice, or fewer if a float could not count them
_BITS_OF_INDEX = 51


@dataclass(frozen=True)
class _Rule:
    """Public constants for one kind of extremes."""

    rank: int  # the order statistic is the one at rank / epsilon from the top
    resolution: float  # the resolution of its release
    threshold: int  # n * epsilon from which on there are two stages


_LOSSES = _Rule(rank=2, resolution=0.4, threshold=300)
_WIDTHS = _Rule(rank=6, resolution=0.2, threshold=3000)
_MANY = 1000  # n * epsilon from which on the first stage takes a smaller share
_SHARE, _SHARE_OF_FEW = Fraction(1, 4), Fraction(2, 5)


@own_error_state
@dataclass(frozen=True, repr=False)
class Adaptive(Rule):
    """Draw how much a large record adds, then release the metric with noise of that size.

    Where n * epsilon is below a public threshold, 300 for a mean of losses and 3,000 for a variance, and for
    metrics without `OutputBounds.extremes`, this is `Hazard`. Above it there are two stages. The first
    releases C1, an order statistic of the largest losses or of the widths of the data, by hazard selection.
    The second clips what each record adds at C1, and adds two-sided geometric noise of that size.

    Parameters
    ----------
    threshold : float or None, default=None
        Public n * epsilon from which on there are two stages; None: as above.
    share : float or None, default=None
        Part of epsilon for the first stage, between 0 and 1; None: 1/4, or 2/5 where n * epsilon is below
        1,000.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in
    one record, given public n and bounds, and so is (C1, release) together.

    **Proof.** y_(k-l) and y_(k+l) are output bounds of the order statistic y_k, so the first stage is
    (share * epsilon)-differentially private by the theorem of `Hazard`. C1 is public from here on. The
    clipped sum T is the sum of min(v, C1) over the losses v, or the least sum of min((x - m)^2, C1) over all
    centres m of the values x. It grows by 0 to C1 when a record is added, for each m and so for the least of
    them, and moves by at most C1 when a record is replaced. On a lattice of C1 / s that is at most s steps,
    and noise of k steps has probability proportional to exp(-rate abs(k)) with s * rate equal to the rest of
    epsilon. The release is T / n with n public. With a private n both T and n C1 - T get such noise: together
    they move by C1 when a record comes or goes. The two stages add up by basic composition.

    **Exactness.** This holds for the program as executed: C1 is a point of a public grid, T an exact rational
    number that is rounded once to the lattice, which commutes with shifts by lattice points, and the noise is
    drawn from fair bits without a float.

    **Error.** Records above C1 count as C1. So releases are usually too low where a few records add most of
    the sum (a heavy tail): 93 to 97 % of them are. Where no record adds much (a light tail) about half are.

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
        for name in ("threshold", "share"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_number(getattr(self, name), name))
        if self.share is not None and self.share >= 1:
            raise ValueError("share must be below 1.")

    needs_count = True

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return what `Hazard` asks for, which it is where there is one stage."""
        return Hazard().count_ranks(epsilon, n=n, monotonic=monotonic, output_range=output_range)

    def count_extremes(self, epsilon: Epsilon, *, n: int | None, are_widths: bool) -> int:
        """Return how many extremes the first stage can use, or 0 if it is certain that there is none."""
        # widths are monotonic where n is private, and need fewer ranks than this
        stages = _stages(self, n, exact_epsilon(epsilon), are_widths, not are_widths)
        if stages is None:
            return 0
        wanted = stages.rank + stages.ranks
        return wanted if n is None else min(wanted, n)

    def release(self, output_bounds: OutputBounds, epsilon: Epsilon, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release.

        Parameters
        ----------
        output_bounds : OutputBounds
            Of a metric that is at least 0.
        epsilon : float
            Privacy parameter of this release.
        rng : None, int, RandomState or Generator, default=None
            None draws from the operating system; a seed gives a reproducible release that is not private.

        Returns
        -------
        float
            A point of a public grid, given C1, within the output range.
        """
        return self.release_with_scale(output_bounds, epsilon, check_entropy(rng))[0]

    def release_with_scale(
        self, output_bounds: OutputBounds, epsilon: Epsilon, entropy: Entropy
    ) -> tuple[float, dict[str, Any]]:
        """Draw one release, and what `AdaptiveLaw.release` draws with it; together they cost epsilon."""
        law = self.output_distribution(output_bounds, epsilon)
        if isinstance(law, HazardLaw):
            return law.release(entropy), {}
        return law.release(entropy)

    def noise_limits(self, release: NoisyRelease, miss: float) -> Limits:
        """Return the limits of `Hazard` where there is one stage, and those given C1 where there are two.

        Given C1 the noise has a public law, and clipping only lowers a metric: whatever C1 is, what the noise
        leaves of the clipped metric is a lower limit of the metric. Where C1 is the public limit nothing was
        clipped, and there is an upper limit too.
        """
        law = self.output_distribution(release.public, release.epsilon)
        if isinstance(law, HazardLaw):
            return Hazard().noise_limits(release, miss)
        if "scale" not in release.drawn:
            raise ValueError(
                "The limits follow from the scale that the adaptive mechanism drew: call the metric with "
                "return_result=True, and pass its result."
            )
        return law.limits(release.value, release.drawn, miss)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> HazardLaw | AdaptiveLaw:
        """Return the law of `release`: a `HazardLaw`, or a mixture over C1."""
        n, extremes, exact = output_bounds.n, output_bounds.extremes, exact_epsilon(epsilon)
        stages = None
        if extremes is not None and n is not None:
            stages = _stages(self, n, exact, extremes.are_widths, extremes.monotonic)
        if extremes is None or n is None or stages is None:
            return Hazard().output_distribution(output_bounds, epsilon)
        order_statistic = _order_statistic(extremes, stages.rank, stages.ranks)
        return AdaptiveLaw(
            stages.selection.output_distribution(order_statistic, stages.epsilon),
            extremes,
            n,
            output_bounds.output_range[1],
            exact - stages.epsilon,
        )


class _Stages(NamedTuple):
    """Public numbers of the first stage, where there are two."""

    epsilon: Fraction
    selection: Hazard
    rank: int  # k: the order statistic is the k-th from the top
    ranks: int  # the number of its output bounds


@lru_cache(maxsize=256)
def _stages(
    mechanism: Adaptive, n: int | None, epsilon: Fraction, are_widths: bool, monotonic: bool
) -> _Stages | None:
    """Return the numbers of the first stage, or None if there is one stage only.

    Parameters
    ----------
    mechanism : Adaptive
        The settings.
    n : int or None
        Number of records, a noisy count, or None where that is not drawn yet: there may be two stages.
    epsilon : Fraction
        What both stages cost together.
    are_widths, monotonic : bool
        As in `Extremes`.
    """
    rule = _WIDTHS if are_widths else _LOSSES
    threshold = rule.threshold if mechanism.threshold is None else mechanism.threshold
    if n is not None and n * epsilon < threshold:
        return None
    if mechanism.share is not None:
        share = exact_epsilon(mechanism.share)
    else:
        share = _SHARE if n is None or n * epsilon >= _MANY else _SHARE_OF_FEW
    selection, first = Hazard(resolution=rule.resolution), share * epsilon
    ranks = selection.count_ranks(first, n=None, monotonic=monotonic, output_range=(0.0, MAX_FLOAT))
    # a noisy count may be enormous, and what is made of it must fit into memory
    most = MOST_RANKS if n is None else min(max(n // 2 if are_widths else n, 1), MOST_RANKS)
    return _Stages(first, selection, min(math.ceil(rule.rank / epsilon), most), ranks)


def _order_statistic(extremes: Extremes, k: int, ranks: int) -> OutputBounds:
    """Return the output bounds of y_k: L^l = y_(k+l), U^l = y_(k-l) and the public limit from l = k on."""
    y = np.zeros(k + ranks)
    known = extremes.values[: k + ranks]
    y[: known.size] = known
    upper = np.full(ranks, extremes.limit)
    above = y[: k - 1][::-1][:ranks]
    upper[: above.size] = above
    return OutputBounds(
        value=float(y[k - 1]),
        lower=y[k:],
        upper=upper,
        output_range=(0.0, extremes.limit),
        monotonic=extremes.monotonic,
        n=None,
    )


class AdaptiveLaw(ApproximateLaw):
    """A mixture, over a drawn scale, of the laws of noise of that scale.

    Parameters
    ----------
    first : HazardLaw
        Law of the order statistic that is drawn first.
    extremes : Extremes
        The clipped sums.
    n : int
        Number of records, or an estimate of it.
    limit : float
        Public limit of the metric.
    epsilon : Fraction
        What the second stage costs.

    Notes
    -----
    `given` is exact. For the mixture, 200 drawn scales and several hundred values of the noise stand for
    cells of probability, at most 1/128 and 1/256, and ever smaller ones towards both ends.
    """

    def __init__(self, first: HazardLaw, extremes: Extremes, n: int, limit: float, epsilon: Fraction) -> None:
        self.first, self.epsilon = first, epsilon
        self._extremes, self._n, self._limit = extremes, n, limit

    def given(self, drawn: float) -> GeometricLaw | SumsLaw:
        """Return the exact law of the second stage, given what the first has drawn."""
        return self._given(self._clipped(drawn))

    def release(self, entropy: Entropy) -> tuple[float, dict[str, Any]]:
        """Draw a release; with it C1, the "scale", and with a private n both noisy "sums"."""
        clipped = self._clipped(self.first.release(entropy))
        law, drawn = self._given(clipped), {"scale": _scale(clipped)}
        if isinstance(law, GeometricLaw):
            return law.release(entropy), drawn
        value, noisy = law.release(entropy)
        return value, {**drawn, "sums": noisy}

    def limits(self, released: float, drawn: Mapping[str, Any], miss: float) -> Limits:
        """Return limits of the metric given what was drawn; of the law only public facts are read."""
        scale, limit = drawn["scale"], self._extremes.limit
        largest = _rounded(Fraction(limit) ** 2) if self._extremes.are_widths else limit
        is_clipped = scale < largest
        each, law = (miss if is_clipped else miss / 2), self.given(scale)
        if isinstance(law, SumsLaw):
            lower, upper, _ = law.limits(drawn["sums"], each)
        else:
            # the clipped sum was rounded by half a step, and C1 by one more
            lower, upper, _ = law.limits(released, each, rounding=1.5)
        if not is_clipped:
            return Limits(lower, upper)
        end = math.inf if self._limit >= MAX_FLOAT else self._limit
        return Limits(lower, end, UNBOUNDED if end == math.inf else PUBLIC_END)

    def scale(self, drawn: float) -> float:
        """Return C1 for what the first stage has drawn."""
        return _scale(self._clipped(drawn))

    def _clipped(self, drawn: float) -> Clipped:
        smallest = _SMALLEST_WIDTH if self._extremes.are_widths else _SMALLEST_LOSS
        return self._extremes.clipped(max(drawn, smallest))

    def _given(self, clipped: Clipped) -> GeometricLaw | SumsLaw:
        total, most, unit = clipped
        if (n := self._extremes.private_n) is not None:
            sums = ratio_sums(total, most, n, _scale(clipped), self._limit)
            return SumsLaw(sums, self.epsilon)
        # the steps are of size C1 / fineness: one record moves the sum by at most `fineness` of them
        fineness = 1 << max(min(_BITS_OF_INDEX - self._n.bit_length(), _BITS), 0)
        steps = (2 * fineness * total + most) // (2 * most)
        # clipping lowers the metric: a quarter of the mean error upwards makes up for part of that
        steps += min(math.floor(fineness / (4 * self.epsilon)), _LARGEST_OFFSET)
        lattice = Lattice(max(_rounded(most * unit / (self._n * fineness)), math.ulp(0.0)), self._limit)
        return GeometricLaw(lattice, steps, self.epsilon / fineness)

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outcomes that stand for the law, and the probability of each."""
        middle, mass = cells(128, 36)
        drawn = self.first.grid.points(self.first.index_quantile(middle)).tolist()
        laws = [self.given(size).outcomes() for size in drawn]
        values = [values for values, _ in laws]
        shares = [share * part for share, (_, part) in zip(mass.tolist(), laws, strict=True)]
        return np.concatenate(values), np.concatenate(shares)


def _rounded(number: Fraction) -> float:
    return rounded_quotient(number.numerator, number.denominator)


def _scale(clipped: Clipped) -> float:
    return _rounded(clipped.most * clipped.unit)
