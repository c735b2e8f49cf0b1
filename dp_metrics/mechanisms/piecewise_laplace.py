"""The piecewise Laplace mechanism: inverse sensitivity with an interpolated distance."""

from __future__ import annotations

from dataclasses import dataclass

from dp_metrics.inputs.epsilon import Epsilon, check_epsilon
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.mechanisms._base import BoundsOnly, require_bounded
from dp_metrics.mechanisms._laws import IntervalLaw
from dp_metrics.mechanisms.inverse_sensitivity import InverseSensitivity, intervals
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["PiecewiseLaplace"]


@own_error_state
@dataclass(frozen=True, repr=False)
class PiecewiseLaplace(BoundsOnly):
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

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return as many ranks as the inverse sensitivity mechanism uses."""
        require_bounded(output_range, "piecewise_laplace")
        return InverseSensitivity().count_ranks(epsilon, n=n, monotonic=monotonic, output_range=output_range)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> IntervalLaw:
        """Return the law of `release`: a truncated exponential on each interval."""
        epsilon = check_epsilon(epsilon)
        require_bounded(output_bounds.output_range, "piecewise_laplace")
        # the factor that integrates exp(-epsilon x / 2) over an interval is common to all, so it drops out
        edges, log_weights, sides = intervals(output_bounds, epsilon)
        return IntervalLaw(edges, log_weights, sides * (epsilon / 2))
