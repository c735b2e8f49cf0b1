"""Draws: what is left of a release after the spend, and cannot fail."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from dp_metrics._random import Entropy, discrete_laplace
from dp_metrics.mechanisms import Mechanism
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["BoundsDraw", "Draw", "VectorDraw"]


class Draw(Protocol):
    """A release that has been prepared and is not yet drawn."""

    @property
    def drawn_by(self) -> str:
        """What draws, for the accountant's history."""
        ...

    def rehearse(self) -> None:
        """Raise for whatever a public setting makes impossible: called before the spend."""
        ...

    def __call__(self, entropy: Entropy, count: int | None) -> Any:
        """Draw, given an estimate of a private number of records if the query needs one."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class BoundsDraw:
    """One number, by a mechanism, from output bounds.

    Parameters
    ----------
    output_bounds : OutputBounds
        What the mechanism sees of the data.
    mechanism : Mechanism
        The rule.
    epsilon : Fraction
        Privacy parameter.
    counted : bool
        Whether the mechanism is told an estimate of the private number of records.
    """

    output_bounds: OutputBounds
    mechanism: Mechanism
    epsilon: Fraction
    counted: bool

    @property
    def drawn_by(self) -> str:
        """The mechanism with its parameters."""
        return repr(self.mechanism)

    def rehearse(self) -> None:
        """Make the law of a made-up number under the public settings of the release to come.

        Whatever a mechanism finds wrong with its settings, or misses, fails here, before the spend.
        """
        output_bounds = replace(self.output_bounds, n=1) if self.counted else self.output_bounds
        public = {
            field.name: getattr(output_bounds, field.name)
            for field in fields(output_bounds)
            if field.name not in ("value", "lower", "upper")
        }
        try:
            hash(self.mechanism)
        except TypeError:
            _rehearsal.__wrapped__(self.mechanism, self.epsilon, **public)
        else:
            _rehearsal(self.mechanism, self.epsilon, **public)  # type: ignore[arg-type]

    def __call__(self, entropy: Entropy, count: int | None) -> float:
        """Draw one number."""
        output_bounds = replace(self.output_bounds, n=count) if self.counted else self.output_bounds
        return self.mechanism.release(output_bounds, self.epsilon, entropy)


@lru_cache(maxsize=256)
def _rehearsal(mechanism: Any, epsilon: Fraction, **public: Any) -> None:
    low, high = public["output_range"]
    made_up = OutputBounds(value=low, lower=np.array([low]), upper=np.array([high]), **public)
    mechanism.output_distribution(made_up, epsilon)


@dataclass(frozen=True, repr=False, eq=False)
class VectorDraw:
    """Whole numbers, each with two-sided geometric noise of this rate.

    Neighbours differ by at most sensitivity = epsilon / rate, summed over the absolute differences, and noise
    k_1, k_2, ... has probability proportional to exp(-rate (abs(k_1) + abs(k_2) + ...)): the release is
    epsilon-differentially private, and exactly so as executed.
    """

    values: tuple[int, ...]
    rate: Fraction

    drawn_by = "two-sided geometric noise"

    def rehearse(self) -> None:
        """Do nothing: no public setting can fail."""

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[int, ...]:
        """Draw the numbers."""
        return tuple(value + discrete_laplace(entropy, self.rate) for value in self.values)
