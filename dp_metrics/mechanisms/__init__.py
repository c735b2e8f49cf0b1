"""Mechanisms: rules that turn output bounds into one private number."""

from collections.abc import Callable
from typing import Any

from dp_metrics.inputs.options import Epsilon, did_you_mean, exact_epsilon
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
    "get_mechanism",
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


_WITH_DEFAULTS = {name: make() for name, make in MECHANISMS.items()}


def get_mechanism(mechanism: Any) -> Mechanism:
    """Return the mechanism with this name, or the mechanism object itself.

    Raises
    ------
    ValueError
        If there is no mechanism with this name.
    TypeError
        If it is neither a name nor a mechanism object.
    """
    if isinstance(mechanism, str):
        if mechanism not in MECHANISMS:
            raise ValueError(
                f"mechanism must be one of {sorted(MECHANISMS)} or a mechanism object, got {mechanism!r}."
                f"{did_you_mean(mechanism, MECHANISMS)}"
            )
        return _WITH_DEFAULTS[mechanism]
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism must be one of {sorted(MECHANISMS)} or a mechanism object such as Hazard()."
        )
    return mechanism
