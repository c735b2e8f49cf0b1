"""AboveThreshold with exponential noise: the paper's asymmetric sensitivity mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from dp_metrics._random import Entropy, uniforms
from dp_metrics.inputs.floats import MAX_FLOAT, Floats, own_error_state
from dp_metrics.inputs.options import Epsilon, check_epsilon
from dp_metrics.mechanisms._base import Mechanism, ceil_ranks, positive_number, require_bounded, whole_number
from dp_metrics.mechanisms._grid import EvenGrid, GeometricGrid, Grid, Integers, Runs
from dp_metrics.mechanisms._laws import GridLaw, ReflectedLaw
from dp_metrics.sensitivity.output_bounds import OutputBounds


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
        for name in ("beta", "split", "scale"):
            self._set(name, positive_number)
        for name, least in (("first", 0), ("max_candidates", 2), ("ranks", 1)):
            self._set(name, partial(whole_number, least=least))
        if not self.beta > 1:
            raise ValueError("beta must be a finite number above 1.")
        if self.split is not None and not self.split < 1:
            raise ValueError("split must be None or lie strictly between 0 and 1.")
        if self.spacing not in ("geometric", "even"):
            raise ValueError("spacing must be 'geometric' or 'even'.")

    def _set(self, name: str, check: Callable[[Any, str], float]) -> None:
        value = getattr(self, name)
        if value is not None or name in ("beta", "scale", "first"):
            object.__setattr__(self, name, check(value, name))

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

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return `ranks`, or ceil(ln(1000 m) / eps2) with m candidates."""
        grid = self._grid(output_range)
        if self.ranks is not None:
            return ceil_ranks(self.ranks, n)
        share = check_epsilon(epsilon) / (2 if output_range[0] == -math.inf else 1)
        _, eps2 = self._shares(share, monotonic)
        with np.errstate(divide="ignore", over="ignore"):
            return ceil_ranks(float(np.log(1e3 * (grid.last - grid.first + 1)) / np.float64(eps2)), n)

    def output_distribution(
        self, output_bounds: OutputBounds, epsilon: Epsilon
    ) -> AboveThresholdLaw | ReflectedLaw:
        """Return the law of `release`, by quadrature over the threshold."""
        epsilon = check_epsilon(epsilon)
        if output_bounds.output_range[0] != -math.inf:
            return self._law(output_bounds, epsilon)
        upwards, downwards = _two_searches(output_bounds)
        return ReflectedLaw(self._law(upwards, epsilon / 2), self._law(downwards, epsilon / 2))

    def _law(self, output_bounds: OutputBounds, epsilon: float) -> AboveThresholdLaw:
        eps1, eps2 = self._shares(epsilon, output_bounds.monotonic)
        grid = self._grid(output_bounds.output_range)
        return AboveThresholdLaw(grid, Runs.from_bounds(grid, output_bounds), eps1, eps2)

    def _shares(self, epsilon: float, monotonic: bool) -> tuple[float, float]:
        split = self.split if self.split is not None else (2 / 3 if monotonic else 1 / 2)
        eps1, eps2 = epsilon * split, epsilon * (1 - split) / (1 if monotonic else 2)
        return max(eps1, 5e-324), max(eps2, 5e-324)  # the smallest epsilon must not give a share of 0

    def _grid(self, output_range: tuple[float, float]) -> Grid:
        low, high = output_range
        if self.spacing == "even":
            require_bounded(output_range, "above_threshold")
            return EvenGrid(low, high, self.max_candidates or 10_000)
        if low not in (0.0, -math.inf):
            raise ValueError(
                "spacing='geometric' needs a metric that is at least 0 or has no lower limit: shift it."
            )
        return GeometricGrid(self.scale, math.log(self.beta), high, self.first, self.max_candidates)


def _two_searches(output_bounds: OutputBounds) -> tuple[OutputBounds, OutputBounds]:
    """Return the bounds of the metric and of minus the metric, each for a search from zero up."""
    mirrored = replace(
        output_bounds,
        value=-output_bounds.value,
        lower=-output_bounds.upper,
        upper=-output_bounds.lower,
        output_range=(-math.inf, MAX_FLOAT),
    )
    return output_bounds, mirrored


class AboveThresholdLaw(GridLaw):
    """The law of one AboveThreshold search.

    Parameters
    ----------
    grid : Grid
        Candidates.
    runs : Runs
        Levels of the score along the grid.
    eps1, eps2 : float
        The threshold is Expo(1/eps1), each candidate's noise Expo(1/eps2).
    """

    def __init__(self, grid: Grid, runs: Runs, eps1: float, eps2: float) -> None:
        self.grid = grid
        keep = runs.counts > 0
        self.starts = runs.edges[:-1][keep]
        self.counts = runs.counts[keep]
        self.scores: Floats = runs.levels[keep].astype(np.float64) + 0.5
        self.eps1, self.eps2 = eps1, eps2

    def _miss(self, thresholds: float | Floats, scores: Floats) -> Floats:
        """Return the log probability that a candidate's noise stays below a threshold in units of 1/eps1."""
        with np.errstate(divide="ignore", over="ignore"):
            gap = np.maximum(self.eps2 / self.eps1 * thresholds - self.eps2 * scores, 0.0)
            # log(1 - exp(-gap)), accurate at both ends; never +0, so that dividing by it keeps the sign
            return np.where(gap < 0.7, np.log(-np.expm1(-gap)), np.log1p(-np.exp(-gap)))

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        return float(self.grid.points(np.array([self.draw(entropy)]))[0])

    def draw(self, entropy: Entropy) -> int:
        """Draw the number of the candidate at which the search halts."""
        u, _ = uniforms(entropy, 1 + self.counts.size)
        with np.errstate(divide="ignore", over="ignore"):
            log_u = np.log(u)
            # candidates passed before the halt, if the run went on for ever: a geometric variable
            passed = np.floor(log_u[1:] / self._miss(-log_u[0], self.scores))
        halts = np.flatnonzero(passed < self.counts)
        if halts.size == 0:
            return self.grid.last
        return int(self.starts[halts[0]]) + int(passed[halts[0]])

    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k).

        Notes
        -----
        Given the threshold the candidates are independent, and runs of one score contribute powers. The
        expectation over the threshold is taken with 16-point Gauss-Legendre panels, split at the scores
        above the metric, where the integrand has kinks, and no wider than 1/eps2 or 1/eps1.
        """
        indices = np.asarray(indices)
        if self.counts.size == 0:
            return np.where(indices >= self.grid.last, 1.0, 0.0)
        weights, miss, passed = self._quadrature
        survival = np.empty(indices.shape)
        run = np.clip(np.searchsorted(self.starts, indices, side="right") - 1, 0, None)
        inside = np.minimum(indices - self.starts[run] + 1, self.counts[run]).astype(np.float64)
        for start in range(0, indices.size, 1024):
            part = slice(start, start + 1024)
            with np.errstate(invalid="ignore"):
                log_survival = passed[run[part]] + inside[part, np.newaxis] * miss[run[part]]
            survival[part] = np.exp(log_survival) @ weights
        return np.where(
            indices < self.grid.first, 0.0, np.where(indices >= self.grid.last, 1.0, 1.0 - survival)
        )

    @cached_property
    def _quadrature(self) -> tuple[Floats, Floats, Floats]:
        """Weights over thresholds; log probability, given each, to pass one candidate or all earlier runs."""
        # thresholds in units of 1/eps1, so that no epsilon is too small or too large
        top, panels = 60.0, math.ceil(60.0 * max(self.eps2 / self.eps1, 1.0))
        with np.errstate(over="ignore"):
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
