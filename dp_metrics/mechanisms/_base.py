"""What every mechanism offers, and what several of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dp_metrics._random import Entropy, RandomState, check_entropy
from dp_metrics.inputs.floats import MAX_FLOAT, own_error_state
from dp_metrics.inputs.options import Epsilon, Relation, as_whole, check_positive
from dp_metrics.mechanisms._laws import OutputLaw
from dp_metrics.sensitivity.extremes import Extremes
from dp_metrics.sensitivity.noisy_sums import FINENESS, Sums
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

MOST_RANKS = 1 << 16
"""Limit of the number of ranks where n, which otherwise limits it, is private; it only saves time."""

_MOST = 1 << 31


NEEDS_LIMIT = (
    "mechanism={!r} needs a metric with a public upper limit: "
    "pass bounds=(lower, upper), or max_loss=... to a metric of losses."
)
"""What to say where a public limit is missing."""


NOTHING = "We cannot limit this number: it may be all noise; take more records or a larger epsilon."
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


class Limits(NamedTuple):
    """Limits of the metric itself, given what was released; they hold together with the asked probability."""

    lower: Any
    upper: Any
    note: str = ""  # why one of them is no better than the public range

    def within(self, low: float, high: float) -> Limits:
        """Return the limits with a note of it if they say no more than these ends of the public range."""
        if np.all(np.asarray(self.lower) <= low) and np.all(np.asarray(self.upper) >= min(high, MAX_FLOAT)):
            return self._replace(note=NOTHING)
        return self


class Noise(Protocol):
    """What is public about the noise of one number, or of several that were released as one."""

    def limits(self, miss: float) -> Limits:
        """Return limits of what was released before the noise; `miss`: probability that any is wrong.

        Raises
        ------
        ValueError
            If there are none, with the reason.
        """


class Draw(ABC):
    """A release that has been prepared and is not yet drawn."""

    @property
    @abstractmethod
    def drawn_by(self) -> str:
        """What draws, for the accountant's history."""

    def rehearse(self) -> None:  # noqa: B027
        """Raise for whatever a public setting makes impossible: called before the spend."""

    @abstractmethod
    def __call__(self, entropy: Entropy, count: int | None) -> tuple[Any, Mapping[str, Any]]:
        """Draw, given an estimate of a private number of records if the release needs one.

        Returns what is released, and by name what else was drawn for it and may be published.
        """

    @abstractmethod
    def noise(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Noise:
        """Return what is public about the noise of a release: what was drawn, and settings; nothing else."""

    def note(self, drawn: Mapping[str, Any]) -> str | None:
        """Return what the drawn numbers tell of the bias of a release, if it may be large."""
        return None

    @property
    def fineness(self) -> int:
        """What each record adds to all "sums" together, if some are drawn; see `Sums`."""
        return FINENESS

    def added_error(self, records: Fraction) -> float | None:
        """Return the expected absolute noise as a share of the range, if noise of a public size is added."""
        return None


class NumberPart(ABC):
    """Public: one number about records, before any of them is read, and what a mechanism may ask of it."""

    are_distances: ClassVar[bool] = False
    """Whether the extremes, where there are some, are those of a variance: see `Extremes`."""
    has_extremes: ClassVar[bool] = False
    """Whether there are extremes, from which the scale of noise may be drawn."""
    has_classes: ClassVar[bool] = False
    """Whether there is a draw that follows the sizes of two classes."""
    has_sums: ClassVar[bool] = False
    """Whether sums over the records tell the number, if it has a public limit."""

    @property
    @abstractmethod
    def highest(self) -> float:
        """Public upper end of the range of the number, which starts at 0; weights may make another of it."""

    @abstractmethod
    def is_monotonic(self, relation: Relation) -> bool:
        """Return whether between neighbours all output bounds move in one direction."""

    @abstractmethod
    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds of a public number of records."""

    def count_ranks(
        self, mechanism: Mechanism, epsilon: Fraction, n: int | None, highest: float | None = None
    ) -> int:
        """Return how many ranks a release uses.

        Parameters
        ----------
        mechanism, epsilon
            Of the release.
        n : int or None
            Number of records or groups; None where it is private.
        highest : float or None, default=None
            Upper end of the range; None: `highest`.
        """
        output_range = (0.0, self.highest if highest is None else highest)
        return mechanism.count_ranks(
            epsilon, n=n, monotonic=self.is_monotonic(Relation.of(n)), output_range=output_range
        )


class KnownNumber(ABC):
    """Private: what has to be known of the records for one number, and what a mechanism may ask of it.

    There are output bounds. Of what else a mechanism can use most numbers have nothing: no extremes, no sums,
    no classes.
    """

    part: NumberPart
    total_weight: float | None = None
    """What turns a mean into the sum."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of records."""

    @property
    def size(self) -> int:
        """Number of records, or of groups that change together."""
        return self.n

    @property
    def highest(self) -> float:
        """Public upper end of the range."""
        return self.part.highest

    @abstractmethod
    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds at this number of ranks, or at all that are known."""

    def known(self, capacity: int) -> KnownNumber:
        """Return what knows this many of the largest and smallest values, if it has to know them."""
        return self

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> Draw:
        """Return a draw by the mechanism."""
        return mechanism.prepare(self, epsilon, relation=relation)

    def summary(self, capacity: int) -> Any:
        """Raise: there is none."""
        raise NotImplementedError("Pieces of the records do not tell this number.")

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, relation: Relation) -> OutputBounds:
        """Return the output bounds that the mechanism asks for; raise for whatever it cannot serve."""
        n = None if relation.private_n else self.size
        ranks = self.part.count_ranks(mechanism, epsilon, n, self.highest)
        return self.known(ranks).bounds_at(ranks, relation)

    def has_extremes(self, relation: Relation) -> bool:
        """Return whether extremes are known."""
        return False

    def extremes(self, count: int, ranks: int, relation: Relation) -> Extremes:
        """Return so many extremes of what is `known`; ranks: of how many there are output bounds too."""
        raise NotImplementedError

    def sums(self) -> Sums | None:
        """Return sums that tell the number where n is private; None if it is not told by sums."""
        return None

    has_spread: bool = False
    """Whether it is a mean whose output bounds say so; see `OutputBounds`."""

    def spread(self) -> Fraction:
        """Return the mean of v (1 - v) over the records, each v in units of the upper end, of a `summary`."""
        raise NotImplementedError

    def by_class(self, scale: float | None, epsilon: Fraction, *, relation: Relation) -> Draw:
        """Return a draw by hazard selection whose resolution follows the sizes of the classes."""
        raise NotImplementedError


class DrawnLaw(OutputLaw, Protocol):
    """An output law that draws the release."""

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""


class Mechanism(ABC):
    """A rule that turns what it asks of the records into one private number.

    A mechanism of your own has `count_ranks` and `output_distribution`. Mechanisms are immutable and hold no
    epsilon. Whatever they need to know before they see the data must be public. Those of this package are
    frozen dataclasses; their repr, which histories show, has what is not the default.
    """

    is_exact: ClassVar[bool] = False
    """Whether the guarantee holds as executed, not only over the real numbers."""

    @property
    def needs_count(self) -> bool:
        """Whether the mechanism reads `OutputBounds.n`.

        Where n is private, part of epsilon then pays for an estimate; otherwise n is None.
        """
        return False

    @abstractmethod
    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return how many ranks of output bounds a release at this epsilon can use.

        Raises
        ------
        ValueError
            If the mechanism cannot serve such a metric.
        """

    @abstractmethod
    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> DrawnLaw:
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

    def asks_count(self, part: NumberPart) -> bool:
        """Return whether a release of the part uses the number of records, or an estimate of it."""
        return self.needs_count

    def prepare(self, known: KnownNumber, epsilon: Fraction, *, relation: Relation) -> Draw:
        """Return what is left to do after the spend; raise for whatever cannot be released."""
        bounds = known.output_bounds(self, epsilon, relation=relation)
        return BoundsDraw(bounds, self, epsilon, relation.private_n and self.needs_count)

    def capacity(self, part: NumberPart, epsilon: Fraction, n: int | None) -> int:
        """Return how many ranks a summary of this number of records keeps for a release."""
        return part.count_ranks(self, epsilon, n)

    def added_error(self, public: BoundsFacts, epsilon: Fraction) -> float | None:
        """Return the expected absolute noise as a share of the range, if noise of a public size is added."""
        return None

    def noise_limits(self, noise: BoundsNoise, miss: float) -> Limits:
        """Return what the noise may have done to a release: limits of the metric of the same records.

        Parameters
        ----------
        noise : BoundsNoise
            What was released, and what is public about it.
        miss : float
            Probability, over the noise, with which a limit may be wrong; whatever the records are.

        Raises
        ------
        ValueError
            If the mechanism has no such limits.
        """
        raise ValueError(NO_LAW.format(type(self).__name__))

    def __repr__(self) -> str:
        kind: type = type(self)
        settings: tuple[Field[Any], ...] = fields(kind) if is_dataclass(kind) else ()
        held = [(one.name, getattr(self, one.name), one.default) for one in settings]
        given = [f"{name}={value!r}" for name, value, default in held if value != default]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False, eq=False)
class BoundsDraw(Draw):
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

    @cached_property
    def drawn_by(self) -> str:
        """The mechanism with its parameters."""
        return repr(self.mechanism)

    def rehearse(self) -> None:
        """Make the law of a made-up number under the public settings of the release to come.

        Whatever a mechanism finds wrong with its settings, or misses, fails here, before the spend.
        """
        rehearse_law(self.mechanism, self.epsilon, self.with_count(1).facts)

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[float, Mapping[str, Any]]:
        """Draw one number."""
        return self.mechanism.release(self.with_count(count), self.epsilon, entropy), {}

    def law(self, count: int | None) -> OutputLaw:
        """Return the law of the number."""
        return self.mechanism.output_distribution(self.with_count(count), self.epsilon)

    def noise(self, value: float, drawn: Mapping[str, Any], count: int | None) -> Noise:
        """Return what is public about the noise."""
        return BoundsNoise(value, self.with_count(count).facts, self.mechanism, self.epsilon)

    def added_error(self, records: Fraction) -> float | None:
        """Return the expected absolute noise as a share of the range, if noise of a public size is added."""
        return self.mechanism.added_error(self.output_bounds.facts, self.epsilon)

    def with_count(self, count: int | None) -> OutputBounds:
        """Return the output bounds, with an estimate of a private number of records if one is used."""
        return replace(self.output_bounds, n=count) if self.counted else self.output_bounds


def rehearse_law(mechanism: Mechanism, epsilon: Fraction, facts: BoundsFacts) -> None:
    """Make the law of a made-up number with these public facts, or raise."""
    try:
        hash(mechanism)
    except TypeError:
        _rehearsal.__wrapped__(mechanism, epsilon, facts)
    else:
        _rehearsal(mechanism, epsilon, facts)


@lru_cache(maxsize=256)
def _rehearsal(mechanism: Mechanism, epsilon: Fraction, facts: BoundsFacts) -> None:
    mechanism.output_distribution(facts.widest(), epsilon)


@dataclass(frozen=True)
class BoundsNoise:
    """The noise of a mechanism.

    Parameters
    ----------
    released : float
        What was released.
    facts : BoundsFacts
        What is public of the output bounds, with an estimate of a private number of records if one was used.
    mechanism : Mechanism
        The rule.
    epsilon : Fraction
        Privacy parameter.
    """

    released: float
    facts: BoundsFacts
    mechanism: Mechanism
    epsilon: Fraction

    def limits(self, miss: float) -> Limits:
        """Return limits of the number before the noise."""
        return self.mechanism.noise_limits(self, miss).within(*self.facts.output_range)


def ceil_ranks(ranks: float, n: int | None) -> int:
    """Round a number of ranks up, to at most the public n."""
    most = MOST_RANKS if n is None else n
    if ranks >= most:
        return most
    return max(1, math.ceil(ranks))


def positive_number(value: Any, name: str) -> float:
    """Return a parameter of a mechanism as a positive, finite float."""
    message = "{} must be a positive, finite number, or None where that is the default."
    return check_positive(value, name, message)


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
            f"mechanism={mechanism!r} needs a public number of records: a metric has no global sensitivity "
            "where that is private, as with neighboring='add_or_remove_one', and for the groups of a frame "
            "unless membership='public'."
        )
