"""The inverse sensitivity mechanism, which the paper compares with."""

from dataclasses import dataclass

import numpy as np

from dp_metrics._random import RandomState
from dp_metrics.inputs.epsilon import Epsilon, check_epsilon
from dp_metrics.mechanisms._base import BoundsOnly, ceil_ranks, require_bounded
from dp_metrics.mechanisms._intervals import draw, intervals
from dp_metrics.mechanisms._laws import IntervalLaw
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["InverseSensitivity"]


@dataclass(frozen=True, repr=False)
class InverseSensitivity(BoundsOnly):
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

    needs_count = False

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return 2 ln(1e12) / epsilon, where the weight of a rank has fallen to 1e-12."""
        require_bounded(output_range, "inverse_sensitivity")
        with np.errstate(divide="ignore", over="ignore"):
            return ceil_ranks(float(2 * np.log(1e12) / np.float64(check_epsilon(epsilon))), n)

    def release(self, output_bounds: OutputBounds, epsilon: Epsilon, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release within the output range."""
        return draw(self.output_distribution(output_bounds, epsilon), rng)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> IntervalLaw:
        """Return the law of `release`: a constant density on each interval."""
        epsilon = check_epsilon(epsilon)
        require_bounded(output_bounds.output_range, "inverse_sensitivity")
        edges, log_weights, sides = intervals(output_bounds, epsilon)
        return IntervalLaw(edges, log_weights, np.zeros(sides.size))
