"""The Laplace mechanism with global sensitivity: the textbook baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.floats import MAX_FLOAT, Floats, own_error_state
from dp_metrics.inputs.options import Epsilon, check_epsilon
from dp_metrics.mechanisms._base import BoundsNoise, Limits, Mechanism, require_bounded, require_public_n
from dp_metrics.mechanisms._laws import FloatLaw, check_probability
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds


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

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return 1: the mechanism reads no rank, only the metric and its global sensitivity."""
        require_bounded(output_range, "laplace")
        require_public_n(n, "laplace")
        return 1

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> LaplaceLaw:
        """Return the law of `release`: Laplace, with what lies outside the output range moved to its ends."""
        epsilon = check_epsilon(epsilon)
        require_bounded(output_bounds.output_range, "laplace")
        if output_bounds.sensitivity is None:
            raise ValueError("mechanism='laplace' needs a metric with a public global sensitivity.")
        with np.errstate(over="ignore", under="ignore"):
            scale = float(np.minimum(np.float64(output_bounds.sensitivity) / epsilon, MAX_FLOAT))
        if output_bounds.sensitivity > 0:
            scale = max(scale, math.ulp(0.0))
        return LaplaceLaw(output_bounds.value, scale, output_bounds.output_range)

    def added_error(self, public: BoundsFacts, epsilon: Fraction) -> float | None:
        """Return the sensitivity over epsilon, as a share of the range."""
        share = public.relative_sensitivity
        return None if share is None else share / float(epsilon)

    def noise_limits(self, noise: BoundsNoise, miss: float) -> Limits:
        """Return limits on either side, each missed with probability `miss` / 2 at most."""
        low, high = noise.facts.output_range
        # clamping to the range only moves a release towards the metric
        away = self.output_distribution(noise.facts.widest(), noise.epsilon).scale * math.log(1 / miss)
        return Limits(max(noise.released - away, low), min(noise.released + away, high))


class LaplaceLaw(FloatLaw):
    """A Laplace law clamped to an interval.

    Parameters
    ----------
    centre, scale : float
        Location and mean absolute deviation of the Laplace law.
    output_range : tuple of float
        Interval to which it is clamped.
    """

    def __init__(self, centre: float, scale: float, output_range: tuple[float, float]) -> None:
        self.centre, self.scale, self.output_range = centre, scale, output_range

    def _cdf(self, t: Floats) -> Floats:
        if self.scale == 0:  # the metric never changes, as the variance of one record
            return np.where(t < self.centre, 0.0, 1.0)
        with np.errstate(over="ignore"):
            x = (t - self.centre) / self.scale
        tail = 0.5 * np.exp(-np.abs(x))
        return np.where(x < 0, tail, 1.0 - tail)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        low, high = self.output_range
        return np.where(t < low, 0.0, np.where(t >= high, 1.0, self._cdf(t)))

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        p = check_probability(p)
        with np.errstate(divide="ignore", over="ignore"):
            noise = np.where(p < 0.5, np.log(2.0 * p), -np.log(2.0 * (1.0 - p)))
            noise = np.clip(noise, -MAX_FLOAT, MAX_FLOAT)  # a scale of 0 times infinity would be nan
            return np.clip(self.centre + self.scale * noise, *self.output_range)

    def mean_absolute_error(self, value: float, cap: float = math.inf) -> float:
        """Return the expectation of min(abs(release - value), cap), in closed form."""
        low, high = self.output_range
        # integrate P(release <= t) up to the value and P(release > t) from there on
        left, middle = max(low, value - cap), min(value, high)
        below = self._integral(middle) - self._integral(left) if middle > left else 0.0
        middle, right = max(value, low), min(high, value + cap)
        above = (right - middle) - (self._integral(right) - self._integral(middle)) if right > middle else 0.0
        # the value itself may lie outside the output range, where the law has no mass
        outside = max(0.0, min(low - value, cap)) + max(0.0, min(value - high, cap))
        return float(below + above + outside)

    def _integral(self, t: float) -> float:
        """Return an antiderivative of the unclamped distribution function."""
        if self.scale == 0:
            return max(t - self.centre, 0.0)
        x = (t - self.centre) / self.scale
        tail = 0.5 * self.scale * math.exp(-abs(x))
        return tail if x < 0 else (t - self.centre) + tail
