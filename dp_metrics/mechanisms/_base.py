"""What every mechanism offers, and what several of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dp_metrics._random import RandomState, check_entropy
from dp_metrics.inputs.options import MAX_FLOAT, Epsilon, Range, own_error_state
from dp_metrics.mechanisms._laws import Limits, OutputLaw
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

MOST_RANKS = 1 << 16
"""Limit of the number of ranks where n, which otherwise limits it, is private; it only saves time."""

NEEDS_LIMIT = (
    "mechanism={!r} needs a metric with a public upper limit: "
    "pass bounds=(lower, upper), or max_loss=... to a metric of losses."
)
"""What to say where a public limit is missing."""


TOO_FEW = "We cannot limit this metric on the other side: take more records or a larger epsilon."
PUBLIC_END = "We cannot limit this metric on the other side: use its default mechanism, or 'geometric'."
UNBOUNDED = (
    "We cannot limit this metric from above, because one record may be arbitrarily large: give bounds or "
    "max_loss, or release a median."
)
NO_LAW = (
    "We cannot limit what {} releases, because its law depends on more than public facts: use 'adaptive', "
    "'hazard', 'geometric' or 'laplace'."
)
NOT_MONOTONE = "We cannot limit {}, because it need not rise, or fall, with each released number: use {}."
NO_RATIO = (
    "We cannot limit R^2 from below, because the error has no upper limit or the variance may be 0: give "
    "bounds, take more records or a larger epsilon, or use a mean absolute error."
)
"""Why limits of the noise are missing, and what to use instead: one sentence for each reason."""


class Mechanism(ABC):
    """A rule that turns what it asks of the records into one private number.

    A mechanism of your own has `count_ranks` and `output_distribution`. Mechanisms are immutable and hold no
    epsilon. Whatever they need to know before they see the data must be public. Those of this package are
    frozen dataclasses; their repr, which histories show, has what is not the default.
    """

    is_exact: ClassVar[bool] = False
    """Whether the guarantee holds as executed, not only over the real numbers."""
    clips: ClassVar[bool] = False
    """Whether what the records furthest off add is clipped, so that heavy tails come out too low."""
    has_even_limits: ClassVar[bool] = False
    """Whether limits of the noise are as close whatever the records are, and so tell what is mostly noise."""

    @property
    def needs_count(self) -> bool:
        """Whether the mechanism reads `OutputBounds.n`.

        Where n is private, part of epsilon then pays for an estimate; otherwise n is None.
        """
        return False

    @abstractmethod
    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return how many ranks of output bounds a release at this epsilon can use.

        Raises
        ------
        ValueError
            If the mechanism cannot serve such a metric.
        """

    @abstractmethod
    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> OutputLaw:
        """Return the law of `release`."""

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

    def added_error(self, public: BoundsFacts, epsilon: Fraction) -> float | None:
        """Return the expected absolute noise as a share of the range, if noise of a public size is added."""
        return None

    def noise_limits(self, released: float, public: BoundsFacts, epsilon: Fraction, miss: float) -> Limits:
        """Return what the noise may have done to a release: limits of the metric of the same records.

        Parameters
        ----------
        released : float
            What was released.
        public : BoundsFacts
            What is public of the output bounds, with an estimate of a private number of records if one was
            used.
        epsilon : Fraction
            Privacy parameter.
        miss : float
            Probability, over the noise, with which a limit may be wrong; whatever the records are.

        Raises
        ------
        ValueError
            If the mechanism has no such limits.
        """
        raise ValueError(NO_LAW.format(type(self).__name__))

    def _check(self, check: Callable[[Any, str], float], *names: str) -> None:
        """Set these parameters to what a check makes of them; None stays where that is the default."""
        for name in names:
            value = getattr(self, name)
            if value is not None or getattr(type(self), name) is not None:
                object.__setattr__(self, name, check(value, name))

    def __repr__(self) -> str:
        kind: type = type(self)
        settings: tuple[Field[Any], ...] = fields(kind) if is_dataclass(kind) else ()
        held = [(one.name, getattr(self, one.name), one.default) for one in settings]
        given = [f"{name}={value!r}" for name, value, default in held if value != default]
        return f"{kind.__name__}({', '.join(given)})"


def ceil_ranks(ranks: float, n: int | None) -> int:
    """Round a number of ranks up, to at most the public n."""
    most = MOST_RANKS if n is None else n
    if ranks >= most:
        return most
    return max(1, math.ceil(ranks))


def require_bounded(output_range: Range, mechanism: str) -> None:
    """Raise unless both ends of the output range are public and finite."""
    if output_range[0] == -math.inf or output_range[1] >= MAX_FLOAT:
        raise ValueError(NEEDS_LIMIT.format(mechanism))


def no_ranks(output_range: Range, n: int | None, mechanism: str) -> int:
    """Return 0: noise of the size of the global sensitivity reads no rank; raise where that is unknown."""
    require_bounded(output_range, mechanism)
    if n is None:
        raise ValueError(
            f"mechanism={mechanism!r} needs a public number of records: a metric has no global sensitivity "
            "where that is private, as with neighboring='add_or_remove_one', and for the groups of a frame "
            "unless membership='public'."
        )
    return 0


def global_sensitivity(output_bounds: OutputBounds, mechanism: str) -> float:
    """Return the global sensitivity of a metric with a public limit, or raise."""
    require_bounded(output_bounds.output_range, mechanism)
    if output_bounds.sensitivity is None:
        raise ValueError(f"mechanism={mechanism!r} needs a metric with a public global sensitivity.")
    return output_bounds.sensitivity
