"""Inverse sensitivity, which the paper compares with, and piecewise Laplace, which interpolates it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dp_metrics.inputs.floats import Floats, own_error_state
from dp_metrics.inputs.options import Epsilon, check_epsilon
from dp_metrics.mechanisms._base import Mechanism, ceil_ranks, require_bounded
from dp_metrics.mechanisms._laws import IntervalLaw
from dp_metrics.sensitivity.output_bounds import OutputBounds


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

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return 2 ln(1e12) / epsilon, where the weight of a rank has fallen to 1e-12."""
        require_bounded(output_range, "inverse_sensitivity")
        with np.errstate(divide="ignore", over="ignore"):
            return ceil_ranks(float(2 * np.log(1e12) / np.float64(check_epsilon(epsilon))), n)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> IntervalLaw:
        """Return the law of `release`: a constant density on each interval."""
        epsilon = check_epsilon(epsilon)
        require_bounded(output_bounds.output_range, "inverse_sensitivity")
        edges, log_weights, sides = intervals(output_bounds, epsilon)
        return IntervalLaw(edges, log_weights, np.zeros(sides.size))


def intervals(output_bounds: OutputBounds, epsilon: float) -> tuple[Floats, Floats, Floats]:
    """Return the edges of the intervals, their log weights, and on which side of the metric they lie.

    The interval between U^(l-1) and U^l, or between L^l and L^(l-1), weighs its width times
    exp(-epsilon l / 2), up to a common factor. Sides are -1 below the metric and 1 above.
    """
    low, high = output_bounds.output_range
    edges = np.concatenate(
        [[low], output_bounds.lower[::-1], [output_bounds.value], output_bounds.upper, [high]]
    )
    ranks = np.arange(1.0, output_bounds.ranks + 2)
    widths, distances = np.diff(edges), np.concatenate([ranks[::-1], ranks])
    # Distances are relative to the nearest interval that has a width, so that a large epsilon leaves a weight
    # above zero. Without any width there is one output only, and the weights do not matter.
    nearest = np.min(distances, where=widths > 0, initial=distances[0])
    with np.errstate(divide="ignore", over="ignore"):
        weights = np.log(widths) - (distances - nearest) * (epsilon / 2)
    sides = np.repeat([-1.0, 1.0], ranks.size)
    return edges, weights if widths.any() else np.zeros(widths.size), sides


@own_error_state
@dataclass(frozen=True, repr=False)
class PiecewiseLaplace(Mechanism):
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
