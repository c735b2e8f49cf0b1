"""The intervals between consecutive output bounds, for mechanisms with a continuous output."""

import numpy as np

from dp_metrics._random import RandomState, check_entropy, uniforms
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._laws import IntervalLaw
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["draw", "intervals"]


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
    # relative to the nearest interval that has a width, so that a large epsilon leaves a weight above zero;
    # without any width there is one output only, and the weights do not matter
    nearest = np.min(distances, where=widths > 0, initial=distances[0])
    with np.errstate(divide="ignore", over="ignore"):
        weights = np.log(widths) - (distances - nearest) * (epsilon / 2)
    sides = np.repeat([-1.0, 1.0], ranks.size)
    return edges, weights if widths.any() else np.zeros(widths.size), sides


def draw(law: IntervalLaw, rng: RandomState) -> float:
    """Draw from a law on intervals."""
    u, _ = uniforms(check_entropy(rng), 1)
    return float(law.quantile(u)[0])
