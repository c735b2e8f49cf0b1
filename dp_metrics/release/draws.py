"""Draws: what is left of a release after the spend, and cannot fail."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from dp_metrics._random import Entropy, discrete_laplaces, zero_sum_laplaces
from dp_metrics.mechanisms import Adaptive, Geometric, Laplace, Mechanism
from dp_metrics.mechanisms.geometric import SumsLaw, expected_noise
from dp_metrics.release.noise import BoundsNoise, CountsNoise, Noise, SumsNoise
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["BoundsDraw", "Draw", "SumsDraw", "VectorDraw", "rehearse_law"]


class Draw(Protocol):
    """A release that has been prepared and is not yet drawn."""

    @property
    def drawn_by(self) -> str:
        """What draws, for the accountant's history."""
        ...

    def rehearse(self) -> None:
        """Raise for whatever a public setting makes impossible: called before the spend."""
        ...

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[Any, Mapping[str, Any]]:
        """Draw, given an estimate of a private number of records if the query needs one.

        Returns what is released, and by name what else was drawn for it and may be published.
        """
        ...

    def noise(self, value: Any, drawn: Mapping[str, Any], count: int | None) -> Noise:
        """Return what is public about the noise of a release: what was drawn, and settings; nothing else."""
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
        facts = self.output_bounds.facts()
        if self.counted:
            facts["n"] = 1
        rehearse_law(self.mechanism, self.epsilon, facts)

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[float, Mapping[str, Any]]:
        """Draw one number."""
        output_bounds = self.with_count(count)
        if isinstance(self.mechanism, Adaptive):
            return self.mechanism.release_with_scale(output_bounds, self.epsilon, entropy)
        return self.mechanism.release(output_bounds, self.epsilon, entropy), {}

    def noise(self, value: float, drawn: Mapping[str, Any], count: int | None) -> BoundsNoise:
        """Return what is public about the noise."""
        return BoundsNoise(value, self.with_count(count).facts(), self.mechanism, self.epsilon, dict(drawn))

    @property
    def added_error(self) -> float | None:
        """Expected absolute noise as a share of the public range, where noise of a public size is added."""
        public = self.output_bounds
        low, high = public.output_range
        if not isinstance(self.mechanism, Geometric | Laplace) or public.sensitivity is None or low == high:
            return None
        if public.steps is not None and isinstance(self.mechanism, Geometric):
            return expected_noise(self.epsilon) / public.steps
        return public.sensitivity / (high - low) / float(self.epsilon)

    def with_count(self, count: int | None) -> OutputBounds:
        """Return the output bounds, with an estimate of a private number of records if one is used."""
        return replace(self.output_bounds, n=count) if self.counted else self.output_bounds


def rehearse_law(mechanism: Mechanism, epsilon: Fraction, facts: Mapping[str, Any]) -> None:
    """Make the law of a made-up number with these public facts, or raise."""
    try:
        hash(mechanism)
    except TypeError:
        _rehearsal.__wrapped__(mechanism, epsilon, **facts)
    else:
        _rehearsal(mechanism, epsilon, **facts)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _rehearsal(mechanism: Any, epsilon: Fraction, **facts: Any) -> None:
    mechanism.output_distribution(OutputBounds.of_nothing(**facts), epsilon)


@dataclass(frozen=True, repr=False, eq=False)
class SumsDraw:
    """One number, by the geometric mechanism, from noisy sums over a private number of records."""

    sums_law: SumsLaw
    mechanism: Mechanism

    @property
    def drawn_by(self) -> str:
        """The mechanism with its parameters."""
        return repr(self.mechanism)

    def rehearse(self) -> None:
        """Do nothing: no public setting can fail."""

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[float, Mapping[str, Any]]:
        """Draw one number, and the noisy sums that tell it."""
        value, noisy = self.sums_law.release(entropy)
        return value, {"sums": noisy}

    def noise(self, value: float, drawn: Mapping[str, Any], count: int | None) -> SumsNoise:
        """Return what is public about the noise."""
        sums = self.sums_law.sums
        return SumsNoise(drawn["sums"], sums.combine, sums.rises, self.sums_law.rate, sums.limit)


@dataclass(frozen=True, repr=False, eq=False)
class VectorDraw:
    """Whole numbers, each with two-sided geometric noise.

    Noise z_1, z_2, ... has probability proportional to exp(-(rate_1 abs(z_1) + rate_2 abs(z_2) + ...)).
    Between neighbours the same sum over the differences of the numbers is at most epsilon: the release is
    epsilon-differentially private, and exactly so as executed. The same holds if the noise is drawn under
    the condition that its sum is 0, if neighbours have the same sum: their difference is then among the
    values of the noise, which has one law for both.

    Parameters
    ----------
    values : tuple of int
        The numbers: private.
    rates : tuple of (int, Fraction)
        For how many numbers in a row, which rate: public.
    zero_sum : bool, default=False
        Whether the noise has the sum 0; all rates are one then.
    shown : bool, default=False
        Whether a result shows the noisy numbers too, as "counts" among what was drawn.
    """

    values: tuple[int, ...]
    rates: tuple[tuple[int, Fraction], ...]
    zero_sum: bool = False
    shown: bool = False

    @property
    def drawn_by(self) -> str:
        """What draws, for the accountant's history."""
        return "two-sided geometric noise" + " with sum 0" * self.zero_sum

    def rehearse(self) -> None:
        """Do nothing: no public setting can fail."""

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[tuple[int, ...], Mapping[str, Any]]:
        """Draw the numbers."""
        # one zero sum serves all numbers: a part whose noise had the sum 0 would show its exact total
        if self.zero_sum:
            (rate,) = {rate for _, rate in self.rates}
            noise = zero_sum_laplaces(entropy, rate, len(self.values))
        else:
            noise = [z for size, rate in self.rates for z in discrete_laplaces(entropy, rate, size)]
        noisy = [value + z for value, z in zip(self.values, noise, strict=True)]
        return tuple(noisy), {"counts": noisy} if self.shown else {}

    def noise(self, value: tuple[int, ...], drawn: Mapping[str, Any], count: int | None) -> CountsNoise:
        """Return what is public about the noise."""
        return CountsNoise(value, self.rates, self.zero_sum)
