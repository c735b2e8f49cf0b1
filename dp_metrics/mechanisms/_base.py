"""What every mechanism offers, and what several of them share."""

import math
from fractions import Fraction
from typing import Protocol, runtime_checkable

from dp_metrics._random import RandomState
from dp_metrics._validation import MAX_FLOAT
from dp_metrics.bounds import OutputBounds
from dp_metrics.mechanisms._laws import OutputDistribution

__all__ = ["Mechanism", "ceil_ranks", "exact_epsilon", "require_bounded"]


@runtime_checkable
class Mechanism(Protocol):
    """A rule that turns output bounds into one private number.

    Mechanisms are immutable and hold no epsilon. Whatever they need to know before they see the data
    must be public.
    """

    def count_ranks(
        self, epsilon: float, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return how many ranks of output bounds a release at this epsilon can use.

        Raises
        ------
        ValueError
            If the mechanism cannot serve such a metric.
        """
        ...

    def release(self, output_bounds: OutputBounds, epsilon: float, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release."""
        ...

    def output_distribution(self, output_bounds: OutputBounds, epsilon: float) -> OutputDistribution:
        """Return the law of `release` on these output bounds."""
        ...


def exact_epsilon(epsilon: float) -> Fraction:
    """Return epsilon as the decimal number that people typed."""
    return Fraction(repr(float(epsilon)))


def ceil_ranks(ranks: float, n: int | None) -> int:
    """Round a number of ranks up, to at most the public n."""
    if n is not None and ranks >= n:
        return n
    return max(1, math.ceil(ranks))


def require_bounded(output_range: tuple[float, float], mechanism: str) -> None:
    """Raise unless both ends of the output range are public and finite."""
    if output_range[0] == -math.inf or output_range[1] >= MAX_FLOAT:
        raise ValueError(
            f"mechanism={mechanism!r} needs a metric with a public upper limit: "
            "pass bounds=(lower, upper), or max_loss=... to a metric of losses."
        )
