"""Draws: what is left of a release after the spend, and cannot fail."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from dp_metrics._random import Entropy, discrete_laplaces, zero_sum_laplaces
from dp_metrics.mechanisms._base import BoundsDraw, Draw
from dp_metrics.mechanisms.adaptive import AdaptiveDraw
from dp_metrics.release.noise import CountsNoise

NumberDraw: TypeAlias = BoundsDraw | AdaptiveDraw
"""Draws of one number that has output bounds."""


@dataclass(frozen=True, repr=False, eq=False)
class VectorDraw(Draw):
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
