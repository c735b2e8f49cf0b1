"""What every mechanism offers, and what several of them share."""

import math
import numbers
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, runtime_checkable

from dp_metrics._random import RandomState
from dp_metrics._validation import MAX_FLOAT, check_epsilon
from dp_metrics.bounds import OutputBounds
from dp_metrics.mechanisms._laws import OutputDistribution

__all__ = [
    "MOST_RANKS",
    "Epsilon",
    "Mechanism",
    "ceil_ranks",
    "exact_epsilon",
    "needs_count",
    "require_bounded",
    "require_public_n",
]

Epsilon: TypeAlias = "float | Fraction"
"""A float stands for the decimal that people type; a share of it is an exact fraction."""

MOST_RANKS = 1 << 16
"""Limit of the number of ranks where n, which otherwise limits it, is private; it only saves time."""


@runtime_checkable
class Mechanism(Protocol):
    """A rule that turns output bounds into one private number.

    Mechanisms are immutable and hold no epsilon. Whatever they need to know before they see the data
    must be public. One that reads `OutputBounds.n` says so with a true attribute `needs_count`: where n is
    private, part of epsilon then pays for an estimate.
    """

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return how many ranks of output bounds a release at this epsilon can use.

        Raises
        ------
        ValueError
            If the mechanism cannot serve such a metric.
        """
        ...

    def release(self, output_bounds: OutputBounds, epsilon: Epsilon, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release."""
        ...

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> OutputDistribution:
        """Return the law of `release` on these output bounds."""
        ...


def exact_epsilon(epsilon: Epsilon) -> Fraction:
    """Return epsilon as the decimal number that people typed; a fraction stands for itself."""
    value = check_epsilon(epsilon)
    if isinstance(epsilon, numbers.Rational):
        return Fraction(int(epsilon.numerator), int(epsilon.denominator))
    return Fraction(repr(value))


def needs_count(mechanism: Mechanism) -> bool:
    """Return whether the mechanism reads the number of records, or an estimate of it."""
    reads: Any = getattr(mechanism, "needs_count", False)
    return bool(reads)


def ceil_ranks(ranks: float, n: int | None) -> int:
    """Round a number of ranks up, to at most the public n."""
    most = MOST_RANKS if n is None else n
    if ranks >= most:
        return most
    return max(1, math.ceil(ranks))


def require_bounded(output_range: tuple[float, float], mechanism: str) -> None:
    """Raise unless both ends of the output range are public and finite."""
    if output_range[0] == -math.inf or output_range[1] >= MAX_FLOAT:
        raise ValueError(
            f"mechanism={mechanism!r} needs a metric with a public upper limit: "
            "pass bounds=(lower, upper), or max_loss=... to a metric of losses."
        )


def require_public_n(n: int | None, mechanism: str) -> None:
    """Raise if the number of records is private, because then there is no global sensitivity."""
    if n is None:
        raise ValueError(
            f"mechanism={mechanism!r} needs a public number of records: with "
            "neighboring='add_or_remove_one' a metric has no global sensitivity."
        )
