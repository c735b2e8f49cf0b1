"""A noisy count of records that are rounded at random to 0 or 1: the part of a plan, and its draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dp_metrics._random import Entropy, are_below, discrete_laplace
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.draws import Draw
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.parts.part import KnownCounts, Part

__all__ = ["RoundedCount", "RoundedDraw", "RoundedOf"]


@dataclass(frozen=True)
class RoundedOf(Part):
    """Public: how many records come out as 1 if each is rounded at random, as a part of a plan.

    Parameters
    ----------
    limit : float
        Public and positive.
    """

    limit: float

    merges = False

    def known(self, records: Records) -> "RoundedCount":
        """Return the values, the only argument."""
        return RoundedCount(records.arrays[0], self.limit)


@dataclass(frozen=True, repr=False, eq=False)
class RoundedCount(KnownCounts):
    """Private: how many records come out as 1, each rounded to 1 with probability value / limit, else to 0.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers from 0 to the limit: private.
    limit : float
        Public and positive.
    """

    values: Floats
    limit: float

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of records."""
        return self.values.size

    def prepare(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> Draw:
        """Return a draw of the rounding and of noise, whatever the mechanism."""
        return RoundedDraw(self.values, self.limit, epsilon)


@dataclass(frozen=True, repr=False, eq=False)
class RoundedDraw(Draw):
    """A count of rounded records with two-sided geometric noise.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers from 0 to the limit: private.
    limit : float
        Public and positive.
    rate : Fraction
        Of the noise.

    Notes
    -----
    Each record is rounded with bits of its own. Between neighbours all records but one can be rounded
    alike, and the counts then differ by at most 1: whatever the others are rounded to, and so on the whole,
    the probability of a noisy count changes by at most a factor exp(rate). The rounding compares a uniform
    number of as many bits as it takes with the exact quotient, so this and the mean of the count hold as
    executed.
    """

    values: Floats
    limit: float
    rate: Fraction

    @property
    def drawn_by(self) -> str:
        """What draws, for the accountant's history."""
        return "randomised rounding, two-sided geometric noise"

    def __call__(self, entropy: Entropy, count: int | None) -> tuple[int, Mapping[str, Any]]:
        """Draw the noisy count."""
        ones = int(np.count_nonzero(are_below(entropy, self.values, self.limit)))
        return ones + discrete_laplace(entropy, self.rate), {}

    def noise(self, value: int, drawn: Mapping[str, Any], count: int | None) -> CountsNoise:
        """Return what is public about the noise of the count; the rounding is not part of it."""
        return CountsNoise((value,), ((1, self.rate),), False)
