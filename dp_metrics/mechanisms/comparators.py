"""Mechanisms to compare with: those of the paper, and the textbook's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy, uniforms
from dp_metrics.inputs.options import (
    MAX_FLOAT,
    Epsilon,
    Floats,
    Range,
    check_count,
    check_epsilon,
    check_positive,
    own_error_state,
)
from dp_metrics.mechanisms._base import Mechanism, ceil_ranks, global_sensitivity, no_ranks, require_bounded
from dp_metrics.mechanisms._laws import (
    EvenGrid,
    GeometricGrid,
    Grid,
    GridLaw,
    Integers,
    Limits,
    OutputLaw,
    check_probability,
    run_edges,
)
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds


@own_error_state
@dataclass(frozen=True, repr=False)
class AboveThreshold(Mechanism):
    """Walk up a list of candidates and halt at the first whose noisy score passes a noisy threshold.

    The score of candidate t is the reflective inverse sensitivity s(x; t), the threshold noise is
    Expo(1/eps1), each candidate's noise Expo(1/eps2).

    Parameters
    ----------
    beta : float, default=1.02
        Candidates are scale * (beta**i - 1): their ratio, and so a floor on the relative error.
    split : float or None, default=None
        Share of epsilon for the threshold, eps1 / epsilon. None means eps1 = 2 eps2: 2/3 for a monotonic
        metric, 1/2 otherwise.
    scale : float, default=1e-3
        Size of the candidates' unit, in units of the metric.
    spacing : {"geometric", "even"}, default="geometric"
        "even" spreads the candidates evenly over the output range, which must then be bounded: for metrics
        that are as likely near one end as near the other.
    first : int, default=0
        Number i of the first candidate.
    max_candidates : int or None, default=None
        At most so many candidates; None for as many as reach the public upper limit (10,000 if evenly
        spaced).
    ranks : int or None, default=None
        Number of ranks of output bounds; None for ceil(ln(1000 m) / eps2) with m candidates.

    Notes
    -----
    **Guarantee.** Over the real numbers, a release is epsilon-differentially private for neighbouring data
    sets that differ in one record, because s(x; t) and s(x'; t) differ by at most 1: with exponential noise
    AboveThreshold costs eps1 + eps2 if the metric is monotonic and eps1 + 2 eps2 otherwise, and eps2 is
    chosen accordingly. Halting nowhere releases the last candidate. The noise is a float64 transform of
    uniform bits, so unlike the default mechanism this one is a comparator, not meant to be exact to the
    last bit.

    A metric with no public limit on either side is searched twice, at epsilon/2 each: over the positive
    candidates and, if that halts at once, over the negative ones.

    Candidates with one score are drawn together, as one geometric variable, so the cost does not depend on
    how many there are.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Theorems 1 and 2, Algorithms 1 and 2, Appendix A.2.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> private_mae([3.0, 1.0], [2.0, 1.0], epsilon=1.0, mechanism=AboveThreshold(beta=1.01, split=0.5)) >= 0
    True
    """

    beta: float = 1.02
    split: float | None = None
    scale: float = 1e-3
    spacing: str = "geometric"
    first: int = 0
    max_candidates: int | None = None
    ranks: int | None = None

    def __post_init__(self) -> None:
        self._check(check_positive, "beta", "split", "scale")
        for name, least in (("first", 0), ("max_candidates", 2), ("ranks", 1)):
            self._check(partial(check_count, least=least, most=1 << 31), name)
        if not self.beta > 1:
            raise ValueError("beta must be a finite number above 1.")
        if self.split is not None and not self.split < 1:
            raise ValueError("split must be None or lie strictly between 0 and 1.")
        if self.spacing not in ("geometric", "even"):
            raise ValueError("spacing must be 'geometric' or 'even'.")

    @classmethod
    def paper(cls, unit: float = 1.0) -> Self:
        """Return the paper's settings: beta 1.005, half of epsilon for the threshold, 100 ranks, unit scale.

        Parameters
        ----------
        unit : float, default=1.0
            Size of the paper's unit in units of the metric: 1/n for cross-entropy, of which the paper takes
            the sum and this package the mean.
        """
        return cls(beta=1.005, split=0.5, scale=unit, first=1, max_candidates=50_000, ranks=100)

    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return `ranks`, or ceil(ln(1000 m) / eps2) with m candidates."""
        grid = self._grid(output_range)
        if self.ranks is not None:
            return ceil_ranks(self.ranks, n)
        _, eps2 = self._shares(check_epsilon(epsilon), monotonic)
        return ceil_ranks(np.log(1e3 * (grid.last - grid.first + 1)) / eps2, n)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> AboveThresholdLaw:
        """Return the law of `release`, by quadrature over the threshold."""
        eps1, eps2 = self._shares(check_epsilon(epsilon), output_bounds.monotonic)
        grid = self._grid(output_bounds.output_range)
        return AboveThresholdLaw(grid, output_bounds, eps1, eps2)

    def _shares(self, epsilon: float, monotonic: bool) -> Range:
        split = self.split if self.split is not None else (2 / 3 if monotonic else 1 / 2)
        eps1, eps2 = epsilon * split, epsilon * (1 - split) / (1 if monotonic else 2)
        return max(eps1, 5e-324), max(eps2, 5e-324)  # the smallest epsilon must not give a share of 0

    def _grid(self, output_range: Range) -> Grid:
        low, high = output_range
        if self.spacing == "even":
            require_bounded(output_range, "above_threshold")
            return EvenGrid(low, high, self.max_candidates or 10_000)
        if low != 0.0:
            raise ValueError("spacing='geometric' needs a metric that is at least 0: shift it.")
        return GeometricGrid(self.scale, math.log(self.beta), high, self.first, self.max_candidates)


@own_error_state
class AboveThresholdLaw(GridLaw):
    """The law of one AboveThreshold search.

    Parameters
    ----------
    grid : Grid
        Candidates.
    output_bounds : OutputBounds
        What tells the score along the grid.
    eps1, eps2 : float
        The threshold is Expo(1/eps1), each candidate's noise Expo(1/eps2).
    """

    def __init__(self, grid: Grid, output_bounds: OutputBounds, eps1: float, eps2: float) -> None:
        self.grid, edges = grid, run_edges(grid, output_bounds)
        counts = np.diff(edges)
        keep = np.flatnonzero(counts)
        self.starts, self.counts = edges[keep], counts[keep]
        self.scores = (keep - counts.size // 2).astype(np.float64) + 0.5
        self.eps1, self.eps2 = eps1, eps2

    def _miss(self, thresholds: float | Floats, scores: Floats) -> Floats:
        """Return the log probability that a candidate's noise stays below a threshold in units of 1/eps1."""
        gap = np.maximum(self.eps2 / self.eps1 * thresholds - self.eps2 * scores, 0.0)
        # log(1 - exp(-gap)), accurate at both ends; never +0, so that dividing by it keeps the sign
        return np.where(gap < 0.7, np.log(-np.expm1(-gap)), np.log1p(-np.exp(-gap)))

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        u = uniforms(entropy, 1 + self.counts.size)
        log_u = np.log(u)
        # candidates passed before the halt, if the run went on for ever: a geometric variable
        passed = np.floor(log_u[1:] / self._miss(-log_u[0], self.scores))
        halts = np.flatnonzero(passed < self.counts)
        if halts.size == 0:
            return self.grid.point(self.grid.last)
        return self.grid.point(int(self.starts[halts[0]]) + int(passed[halts[0]]))

    def _cdf_inside(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k).

        Notes
        -----
        Given the threshold the candidates are independent, and runs of one score contribute powers. The
        expectation over the threshold is taken with 16-point Gauss-Legendre panels, split at the scores
        above the metric, where the integrand has kinks, and no wider than 1/eps2 or 1/eps1.
        """
        survival = np.ones(indices.shape)
        weights, miss, passed = self._quadrature
        run = np.clip(np.searchsorted(self.starts, indices, side="right") - 1, 0, None)
        inside = np.minimum(indices - self.starts[run] + 1, self.counts[run])
        for start in range(0, indices.size, 1024):
            part = slice(start, start + 1024)
            log_survival = passed[run[part]] + inside[part, np.newaxis] * miss[run[part]]
            survival[part] = np.exp(log_survival) @ weights
        return 1.0 - survival

    @cached_property
    def _quadrature(self) -> tuple[Floats, Floats, Floats]:
        """Weights over thresholds; log probability, given each, to pass one candidate or all earlier runs."""
        # thresholds in units of 1/eps1, so that no epsilon is too small or too large
        top, panels = 60.0, math.ceil(60.0 * max(self.eps2 / self.eps1, 1.0))
        kinks = self.eps1 * self.scores
        kinks = kinks[(kinks > 0) & (kinks < top)][:64]
        edges = np.unique(np.concatenate([np.linspace(0.0, top, panels + 1), kinks]))
        x, w = np.polynomial.legendre.leggauss(16)
        half = np.diff(edges)[:, np.newaxis] / 2
        nodes = ((edges[:-1] + edges[1:])[:, np.newaxis] / 2 + half * x).ravel()
        weights = (half * w).ravel() * np.exp(-nodes)
        miss = self._miss(nodes, self.scores[:, np.newaxis])
        passed = np.zeros_like(miss)
        np.cumsum(self.counts[:-1, np.newaxis] * miss[:-1], axis=0, out=passed[1:])
        return weights, miss, passed


@own_error_state
class IntervalLaw(OutputLaw):
    """A law with an exponential or constant density on each of finitely many intervals.

    Parameters
    ----------
    edges : ndarray of shape (m + 1,)
        Ends of the intervals, not decreasing.
    log_weights : ndarray of shape (m,)
        Logarithm of the unnormalised probability of each interval; -inf for an empty one.
    rates : ndarray of shape (m,)
        On an interval [a, b] the density is proportional to exp(-rate * (t - a) / (b - a)).
    """

    def __init__(self, edges: Floats, log_weights: Floats, rates: Floats) -> None:
        self.edges, self.rates = edges, rates
        log_weights = log_weights - log_weights.max()
        self.log_weights = log_weights - np.log(np.exp(log_weights).sum())
        self.weights = np.exp(self.log_weights)
        self._cumulative = np.append(0.0, np.cumsum(self.weights))
        self._cumulative /= self._cumulative[-1]

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        i = np.clip(np.searchsorted(self.edges, t, side="right") - 1, 0, self.rates.size - 1)
        width = self.edges[i + 1] - self.edges[i]
        x = np.where(width > 0, (t - self.edges[i]) / width, 1.0)
        inside = self._cumulative[i] + self.weights[i] * _share(np.clip(x, 0.0, 1.0), self.rates[i])
        return np.where(t < self.edges[0], 0.0, np.where(t >= self.edges[-1], 1.0, np.minimum(inside, 1.0)))

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        p = check_probability(p)
        i = np.clip(np.searchsorted(self._cumulative, p, side="left") - 1, 0, self.rates.size - 1)
        inside = np.where(self.weights[i] > 0, (p - self._cumulative[i]) / self.weights[i], 0.0)
        x = _inverse_share(np.clip(inside, 0.0, 1.0), self.rates[i])
        low, high = self.edges[i], self.edges[i + 1]
        return np.clip(low + (high - low) * x, low, high)


def _share(x: Floats, rate: Floats) -> Floats:
    """Return the probability of [0, x] under the density proportional to exp(-rate x) on [0, 1]."""
    # expm1 would overflow for a negative rate: count from the other end
    falling = np.expm1(-np.abs(rate) * np.where(rate < 0, 1.0 - x, x)) / np.expm1(-np.abs(rate))
    return np.where(np.abs(rate) < 1e-9, x, np.where(rate < 0, 1.0 - falling, falling))


def _inverse_share(p: Floats, rate: Floats) -> Floats:
    falling = np.where(rate < 0, 1.0 - p, p)
    x = -np.log1p(falling * np.expm1(-np.abs(rate))) / np.abs(rate)
    x = np.clip(x, 0.0, 1.0)
    return np.where(np.abs(rate) < 1e-9, p, np.where(rate < 0, 1.0 - x, x))


@own_error_state
@dataclass(frozen=True, repr=False)
class InverseSensitivity(Mechanism):
    """Exponential mechanism on the number of records that must change to reach an output.

    An output between U^(l-1) and U^l, or between L^l and L^(l-1), has density proportional to exp(-epsilon
    l / 2).

    Notes
    -----
    **Guarantee.** Over the real numbers, a release is epsilon-differentially private for neighbouring data
    sets that differ in one record: the distance of each output changes by at most 1 between them, so its
    weight and the normalising constant change by at most a factor exp(epsilon/2) each. The metric must have
    a public lower and upper limit. The draw is a float64, so this is a comparator without the exactness of
    the default mechanism.

    References
    ----------
    H. Asi and J. Duchi, "Near Instance-Optimality in Differential Privacy", arXiv:2005.10630; mechanism M.1
    of D. Durfee, arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> y, p = [3.0, 1.0], [2.0, 1.0]
    >>> 0 <= private_mae(y, p, epsilon=1.0, bounds=(0, 5), mechanism=InverseSensitivity()) <= 5
    True
    """

    _name = "inverse_sensitivity"
    _slope = 0.0  # of the logarithm of the density, over epsilon, along one rank

    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return 2 ln(1e12) / epsilon, where the weight of a rank has fallen to 1e-12."""
        require_bounded(output_range, self._name)
        return ceil_ranks(2 * np.log(1e12) / check_epsilon(epsilon), n)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> IntervalLaw:
        """Return the law of `release`: on each interval a constant density, or a truncated exponential."""
        epsilon = check_epsilon(epsilon)
        require_bounded(output_bounds.output_range, self._name)
        ranks = np.arange(1.0, output_bounds.ranks + 2)
        widths, distances = np.diff(output_bounds.ladder), np.concatenate([ranks[::-1], ranks])
        # Distances are relative to the nearest interval that has a width, so that a large epsilon leaves a
        # weight above zero. Without any width there is one output only, and the weights do not matter.
        nearest = np.min(distances, where=widths > 0, initial=distances[0])
        # the factor that integrates exp(-epsilon x / 2) over an interval is common to all, so it drops out
        log_weights = np.log(widths) - (distances - nearest) * (epsilon / 2)
        sides = np.repeat([-1.0, 1.0], ranks.size)  # below and above the metric
        return IntervalLaw(
            output_bounds.ladder,
            log_weights if widths.any() else np.zeros(widths.size),
            sides * (self._slope * epsilon),
        )


@own_error_state
@dataclass(frozen=True, repr=False)
class PiecewiseLaplace(InverseSensitivity):
    """Exponential mechanism on a distance that grows linearly between consecutive output bounds.

    Between U^(l-1) and U^l the distance grows from l - 1 to l, and likewise below; the density is
    proportional to exp(-epsilon * distance / 2).

    Notes
    -----
    **Guarantee.** Over the real numbers, a release is epsilon-differentially private for neighbouring data
    sets that differ in one record: U^l(x) <= U^(l+1)(x') holds for interpolated ranks too, so the distance
    of each output changes by at most 1 between them. The metric must have a public lower and upper limit.
    The draw is a float64, so this is a comparator without the exactness of the default mechanism.

    References
    ----------
    D. Durfee, "Piecewise Laplace", arXiv:2505.02798.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> y, p = [3.0, 1.0], [2.0, 1.0]
    >>> 0 <= private_mae(y, p, epsilon=1.0, bounds=(0, 5), mechanism=PiecewiseLaplace()) <= 5
    True
    """

    _name = "piecewise_laplace"
    _slope = 0.5


@own_error_state
@dataclass(frozen=True, repr=False)
class Laplace(Mechanism):
    """Add Laplace noise of scale sensitivity / epsilon, and clamp to the output range.

    Notes
    -----
    **Guarantee.** Over the real numbers, a release is epsilon-differentially private for neighbouring data
    sets that differ in one record: the metric differs by at most its global sensitivity between them. The
    metric must have a public upper limit. The noise is a float64, whose low bits can give a record away
    (Mironov 2012): a comparator without the exactness of the default mechanism.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating Noise to Sensitivity in Private Data
    Analysis", TCC 2006, doi:10.1007/11681878_14.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> 0 <= private_mae([3.0, 1.0], [2.0, 1.0], epsilon=1.0, bounds=(0, 5), mechanism=Laplace()) <= 5
    True
    """

    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return 0: the mechanism reads no rank, only the metric and its global sensitivity."""
        return no_ranks(output_range, n, "laplace")

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> LaplaceLaw:
        """Return the law of `release`: Laplace, with what lies outside the output range moved to its ends."""
        epsilon = check_epsilon(epsilon)
        sensitivity, scale, tiny = global_sensitivity(output_bounds, "laplace"), 0.0, math.ulp(0.0)
        if sensitivity:
            # subnormal metrics of both data sets, sensitivity and scale are rounded by half of it at most
            scale = min((sensitivity + 2 * tiny) / epsilon + tiny, MAX_FLOAT)
        return LaplaceLaw(output_bounds.value, scale, output_bounds.output_range)

    def added_error(self, public: BoundsFacts, epsilon: Fraction) -> float | None:
        """Return the sensitivity over epsilon, as a share of the range."""
        share = public.relative_sensitivity
        return None if share is None else share / float(epsilon)

    def noise_limits(self, released: float, public: BoundsFacts, epsilon: Fraction, miss: float) -> Limits:
        """Return limits on either side, each missed with probability `miss` / 2 at most."""
        low, high = public.output_range
        # clamping to the range only moves a release towards the metric
        away = self.output_distribution(public.widest(), epsilon).scale * math.log(1 / miss)
        return Limits(max(released - away, low), min(released + away, high))


@own_error_state
class LaplaceLaw(OutputLaw):
    """A Laplace law clamped to an interval.

    Parameters
    ----------
    centre, scale : float
        Location and mean absolute deviation of the Laplace law.
    output_range : tuple of float
        Interval to which it is clamped.
    """

    def __init__(self, centre: float, scale: float, output_range: Range) -> None:
        self.centre, self.scale, self.output_range = centre, scale, output_range

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        low, high = self.output_range
        if self.scale == 0:  # the metric never changes, as the variance of one record
            return np.where(t < self.centre, 0.0, 1.0)
        x = (t - self.centre) / self.scale
        tail = 0.5 * np.exp(-np.abs(x))
        inside = np.where(x < 0, tail, 1.0 - tail)
        return np.where(t < low, 0.0, np.where(t >= high, 1.0, inside))

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        p = check_probability(p)
        noise = np.where(p < 0.5, np.log(2.0 * p), -np.log(2.0 * (1.0 - p)))
        # a scale of 0 times infinity would be nan
        noise = np.clip(noise, -MAX_FLOAT, MAX_FLOAT)
        return np.clip(self.centre + self.scale * noise, *self.output_range)
