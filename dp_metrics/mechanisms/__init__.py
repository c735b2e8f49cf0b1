"""Mechanisms: rules that turn output bounds into one private number."""

from collections.abc import Callable

from dp_metrics.inputs.options import Epsilon, exact_epsilon
from dp_metrics.mechanisms._base import Mechanism
from dp_metrics.mechanisms._laws import OutputLaw
from dp_metrics.mechanisms.adaptive import Adaptive
from dp_metrics.mechanisms.comparators import AboveThreshold, InverseSensitivity, Laplace, PiecewiseLaplace
from dp_metrics.mechanisms.geometric import Geometric
from dp_metrics.mechanisms.hazard import Hazard

__all__ = [
    "MECHANISMS",
    "AboveThreshold",
    "Adaptive",
    "Epsilon",
    "Geometric",
    "Hazard",
    "InverseSensitivity",
    "Laplace",
    "Mechanism",
    "OutputLaw",
    "PiecewiseLaplace",
    "exact_epsilon",
]

MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "adaptive": Adaptive,
    "hazard": Hazard,
    "above_threshold": AboveThreshold,
    "inverse_sensitivity": InverseSensitivity,
    "piecewise_laplace": PiecewiseLaplace,
    "laplace": Laplace,
    "geometric": Geometric,
}
"""The mechanisms by the names that the metrics accept."""
