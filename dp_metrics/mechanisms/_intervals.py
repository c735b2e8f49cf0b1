"""The intervals between consecutive output bounds, for mechanisms with a continuous output."""

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import RandomState, check_entropy, uniforms
from dp_metrics.bounds import OutputBounds
from dp_metrics.mechanisms._laws import IntervalLaw

__all__ = ["draw", "intervals"]

Floats = NDArray[np.float64]


def intervals(output_bounds: OutputBounds) -> tuple[Floats, Floats, Floats]:
    """Return the edges of the intervals, their log widths, and their ranks.

    Ranks are negative below the metric: -(ranks+1), ..., -1, 1, ..., ranks+1.
    """
    low, high = output_bounds.output_range
    edges = np.concatenate(
        [[low], output_bounds.lower[::-1], [output_bounds.value], output_bounds.upper, [high]]
    )
    ranks = np.arange(1.0, output_bounds.ranks + 2)
    with np.errstate(divide="ignore"):
        return edges, np.log(np.diff(edges)), np.concatenate([-ranks[::-1], ranks])


def draw(law: IntervalLaw, rng: RandomState) -> float:
    """Draw from a law on intervals."""
    u, _ = uniforms(check_entropy(rng), 1)
    return float(law.quantile(u)[0])
