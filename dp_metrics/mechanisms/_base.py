"""What every mechanism offers, and what several of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dp_metrics._random import Entropy, RandomState, check_entropy
from dp_metrics.inputs.epsilon import Epsilon
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.inputs.floats import MAX_FLOAT
from dp_metrics.inputs.scalars import as_real, as_whole
from dp_metrics.mechanisms._laws import OutputLaw
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = [
    "MOST_RANKS",
    "NEEDS_LIMIT",
    "BoundsOnly",
    "Limits",
    "Mechanism",
    "NoisyRelease",
    "Rule",
    "ceil_ranks",
    "positive_number",
    "require_bounded",
    "require_public_n",
    "whole_number",
]

MOST_RANKS = 1 << 16
"""Limit of the number of ranks where n, which otherwise limits it, is private; it only saves time."""

_MOST = 1 << 31


@runtime_checkable
class Mechanism(Protocol):
    """A rule that turns output bounds into one private number.

    Mechanisms are immutable and hold no epsilon. Whatever they need to know before they see the data
    must be public, and every member must be there: a mechanism that lacks one is refused before anything is
    spent.

    Attributes
    ----------
    needs_count : bool
        Whether the mechanism reads `OutputBounds.n`. Where n is private, part of epsilon then pays for an
        estimate; otherwise n is None.
    """

    @property
    def needs_count(self) -> bool:
        """Whether the mechanism reads the number of records."""
        ...

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

    def count_extremes(self, epsilon: Epsilon, *, n: int | None, are_widths: bool) -> int:
        """Return how many of `OutputBounds.extremes` a release at this epsilon can use."""
        ...

    def release(self, output_bounds: OutputBounds, epsilon: Epsilon, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release."""
        ...

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> OutputLaw:
        """Return the law of `release` on these output bounds."""
        ...


NEEDS_LIMIT = (
    "mechanism={!r} needs a metric with a public upper limit: "
    "pass bounds=(lower, upper), or max_loss=... to a metric of losses."
)
"""What to say where a public limit is missing."""


NOTHING = "Nothing is known but the ends of the public range: the number may be all noise."
"""The note of limits that say nothing."""


class Limits(NamedTuple):
    """Limits of the metric itself, given what was released; they hold together with the asked probability."""

    lower: Any
    upper: Any
    note: str = ""  # why one of them is no better than the public range

    def within(self, low: float, high: float) -> Limits:
        """Return the limits with a note of it if they say no more than these ends of the public range."""
        if np.all(np.asarray(self.lower) <= low) and np.all(np.asarray(self.upper) >= min(high, MAX_FLOAT)):
            return self._replace(note=f"{NOTHING} {self.note}".strip())
        return self


class NoisyRelease(NamedTuple):
    """A release, and what is public about it."""

    value: float
    public: OutputBounds  # its public facts, with an estimate of a private number of records if one was used
    epsilon: Epsilon
    drawn: Mapping[str, Any]  # all else that was drawn, by name, as in `PrivateResult`


class DrawnLaw(OutputLaw, Protocol):
    """An output law that draws the release."""

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        ...


class Rule:
    """A mechanism that is a frozen dataclass; its repr, which histories show, has what is not the default."""

    def noise_limits(self, release: NoisyRelease, miss: float) -> Limits:
        """Return what the noise may have done to a release: limits of the metric of the same records.

        Parameters
        ----------
        release : NoisyRelease
            What was released.
        miss : float
            Probability, over the noise, with which a limit may be wrong; whatever the records are.

        Raises
        ------
        ValueError
            If the mechanism has no such limits, or something that was drawn is missing.
        """
        raise ValueError(
            f"{type(self).__name__} has no limits of its noise: its law depends on more than public facts. "
            "Use 'adaptive', 'hazard', 'geometric' or 'laplace'."
        )

    def __repr__(self) -> str:
        settings = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        default = type(self)()
        given = [f"{name}={value!r}" for name, value in settings.items() if value != getattr(default, name)]
        return f"{type(self).__name__}({', '.join(given)})"


class BoundsOnly(Rule, ABC):
    """A mechanism that reads output bounds and no extremes, and draws from its output law."""

    @property
    def needs_count(self) -> bool:
        """False: the mechanism does not read the number of records."""
        return False

    def count_extremes(self, epsilon: Epsilon, *, n: int | None, are_widths: bool) -> int:
        """Return 0: the mechanism reads output bounds only."""
        return 0

    @own_error_state
    def release(self, output_bounds: OutputBounds, epsilon: Epsilon, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release, an output of the law.

        Parameters
        ----------
        output_bounds : OutputBounds
            Of a metric that the mechanism can serve.
        epsilon : float
            Privacy parameter of this release.
        rng : None, int, RandomState or Generator, default=None
            None draws from the operating system; a seed gives a reproducible release that is not private.
        """
        return self.output_distribution(output_bounds, epsilon).release(check_entropy(rng))

    @abstractmethod
    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> DrawnLaw:
        """Return the law of `release`."""


def ceil_ranks(ranks: float, n: int | None) -> int:
    """Round a number of ranks up, to at most the public n."""
    most = MOST_RANKS if n is None else n
    if ranks >= most:
        return most
    return max(1, math.ceil(ranks))


def positive_number(value: Any, name: str) -> float:
    """Return a parameter of a mechanism as a positive, finite float."""
    number = as_real(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive, finite number, or None where that is the default.")
    return number


def whole_number(value: Any, name: str, least: int) -> int:
    """Return a parameter of a mechanism as an integer, at least `least` and small enough to count with."""
    number = as_whole(value)
    if number is None or not least <= number <= _MOST:
        raise ValueError(
            f"{name} must be an integer from {least} to 2**31, or None where that is the default."
        )
    return number


def require_bounded(output_range: tuple[float, float], mechanism: str) -> None:
    """Raise unless both ends of the output range are public and finite."""
    if output_range[0] == -math.inf or output_range[1] >= MAX_FLOAT:
        raise ValueError(NEEDS_LIMIT.format(mechanism))


def require_public_n(n: int | None, mechanism: str) -> None:
    """Raise if the number of records is private, because then there is no global sensitivity."""
    if n is None:
        raise ValueError(
            f"mechanism={mechanism!r} needs a public number of records: with "
            "neighboring='add_or_remove_one' a metric has no global sensitivity."
        )
