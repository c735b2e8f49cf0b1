"""What is public about the noise of counts, and what to say of a result that is mostly noise.

Nothing here knows a record: noise is described by what was released and drawn, and by public settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from dp_metrics._random import Generator
from dp_metrics.inputs.options import Floats
from dp_metrics.mechanisms._base import Limits
from dp_metrics.mechanisms.geometric import (
    COUNT_LIMIT,
    expected_noise,
    largest_noise,
)


@dataclass(frozen=True)
class CountsNoise:
    """The noise of whole numbers, each with two-sided geometric noise.

    Parameters
    ----------
    noisy : tuple of int
        The noisy numbers.
    rates, zero_sum
        As in `TableLaw`.
    others : int, default=0
        How many more numbers there are, if the noise of these and those together has the sum 0.
    units : int, default=1
        How many units of what is noisy make one of what is told: those of a person, where each counts once.
    """

    noisy: tuple[int, ...]
    rates: tuple[tuple[int, Fraction], ...]
    zero_sum: bool
    others: int = 0
    units: int = 1

    even_range: ClassVar[None] = None

    @property
    def together(self) -> int:
        """How many numbers there are, with the others."""
        return len(self.noisy) + self.others

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The noisy numbers that are told."""
        return self.noisy if self.units == 1 else tuple([number / self.units for number in self.noisy])

    @property
    def expected(self) -> float:
        """Expected absolute noise of the noisiest number; at most this where the noise has the sum 0."""
        rate = min(rate for _, rate in self.rates)
        # two numbers share one noise, with both signs
        return expected_noise(2 * rate if self.zero_sum and self.together == 2 else rate) / self.units

    def split(self, tables: int) -> list[Self]:
        """Return the noise of each of so many tables of one form: of their numbers, and rates, in turn."""
        size, rates = len(self.noisy) // tables, self.rates[: len(self.rates) // tables]
        if len(self.rates) == 1:  # all numbers are one run
            rates = ((size, self.rates[0][1]),)
        others = self.together - size if self.zero_sum else 0
        starts = range(0, len(self.noisy), size)
        return [replace(self, noisy=self.noisy[at : at + size], rates=rates, others=others) for at in starts]

    def joined(self, more: Sequence[Self]) -> Self:
        """Return the noise of these tables and of more of their form together.

        Where all noise has one sum with that of others, so it has together; tables that were drawn apart have
        it each for themselves, which makes large noise less likely.
        """
        tables = (self, *more)
        noisy = tuple([number for one in tables for number in one.noisy])
        if self.zero_sum and self.others:
            rate = self.rates[0][1]
            together = self.together - len(noisy)
            return replace(self, noisy=noisy, rates=((len(noisy), rate),), others=together)
        rates = tuple([run for one in tables for run in one.rates])
        return replace(self, noisy=noisy, rates=rates, zero_sum=self.zero_sum and not more)

    def covariance(self, x: Floats, y: Floats) -> float:
        """Return the covariance of the noise of two weighted sums of the numbers.

        Where all noise has the sum 0 that is taken from independent noise less its mean, whose variances are
        a little larger.
        """
        variances = np.repeat(
            [0.5 / math.sinh(min(max(float(rate), 1e-150), 600.0) / 2) ** 2 for _, rate in self.rates],
            [size for size, _ in self.rates],
        )
        both = float((variances * x) @ y)
        if self.zero_sum:
            both -= float(variances[0] * x.sum() * y.sum()) / self.together
        return both / self.units**2

    def limits(self, miss: float) -> Limits:
        """Return limits of the numbers before the noise: two arrays."""
        return self.limits_of(np.ones(len(self.noisy), dtype=bool), miss)

    def limits_of(self, used: Any, miss: float) -> Limits:
        """Return limits of all numbers; only those of used numbers hold."""
        each = miss / (2 * int(np.count_nonzero(used)))
        if self.zero_sum:
            away = [largest_zero_sum_noise(self.rates[0][1], self.together, each)] * len(self.noisy)
        else:
            away = [largest_noise(rate, each) for size, rate in self.rates for _ in range(size)]
        centre = as_floats(self.noisy)
        return self._around(centre, away)

    def limits_of_sums(self, sums: Sequence[Sequence[int]], miss: float) -> Limits:
        """Return limits of sums of numbers of one rate; each is listed by the places of its numbers."""
        each, rate = miss / (2 * len(sums)), self.rates[0][1]
        if self.zero_sum:
            away = [largest_zero_sum_noise(rate, self.together, each, len(one)) for one in sums]
        else:
            away = [
                largest_noise(rate, each) if len(one) == 1 else largest_noise_of_sum(rate, len(one), each)
                for one in sums
            ]
        return self._around(as_floats([sum(self.noisy[place] for place in one) for one in sums]), away)

    def _around(self, centre: Floats, away: Sequence[int]) -> Limits:
        """Return the limits that are so far away from noisy numbers, but not below 0."""
        # a reach of twice the limit takes in every count
        reach = np.minimum(np.array(away, dtype=object), 2 * COUNT_LIMIT).astype(np.float64)
        return Limits(*(np.maximum(end, 0.0) / self.units for end in (centre - reach, centre + reach)))

    def simulated(self, generator: Generator, times: int) -> Floats:
        """Return draws of the noise, a row each: of the law of a release, but in floats: not private.

        Raises
        ------
        ValueError
            If the noise has the sum 0 with others: simulate all of it.
        """
        if self.others:
            raise ValueError("The noise has the sum 0 with that of other numbers.")
        rates = np.repeat([float(rate) for _, rate in self.rates], [size for size, _ in self.rates])
        kept: list[Floats] = []
        while sum(map(len, kept)) < times:
            # the difference of two geometric numbers has the two-sided law
            sizes = np.floor(generator.exponential(size=(2, times, rates.size)) / rates)
            noise = np.minimum(sizes[0], COUNT_LIMIT) - np.minimum(sizes[1], COUNT_LIMIT)
            if self.zero_sum:  # the last number is what the others lack to 0, as in a release
                noise[:, -1] = -noise[:, :-1].sum(axis=1)
                noise = noise[generator.exponential(size=times) > rates[-1] * np.abs(noise[:, -1])]
            kept.append(noise)
        return np.concatenate(kept)[:times] / self.units


def as_floats(noisy: Any) -> Floats:
    """Return noisy counts as floats, saturated where they say no more, so that they are safe to add up."""
    numbers = noisy if isinstance(noisy, np.ndarray) else np.array(noisy, dtype=object)
    counts: Floats = np.clip(numbers, -COUNT_LIMIT, COUNT_LIMIT).astype(np.float64)
    return counts


MOST_ERROR = 0.1
"""Expected error of a share, above which a release is mostly noise: a tenth of the range from 0 to 1.

What is said of noise before the spend rests on this number; after it `WIDEST` tells. A share of n records is
mostly noise where noise of size z makes z / n larger than it. A table of c cells is where that holds for a
share of the records of two average cells, z / (2 n / c): where z exceeds a fifth of the mean number of
records in a cell.
"""


def in_words(records: float) -> str:
    """Return a number of records as people write it."""
    return f"{records:,.0f}" if 100 <= records < 1e9 else f"{records:.3g}"


WIDEST = 0.2
"""How far 95 % limits of the noise of a result may lie apart, as a share of its public range.

Beyond, the noise may have moved it by a tenth of the range or more, and it is called mostly noise.
"""
SHOWN = 0.95
"""Confidence of limits that are shown where none is asked for."""

_AWAY = 3.0  # so many times its expected size noise exceeds with a probability of about 5 %


def far_apart(lower: float, upper: float, size: float = 1.0) -> str | None:
    """Return what to say of a result with these limits of its noise, if they are too far apart; see `WIDEST`.

    Parameters
    ----------
    lower, upper : float
        The limits with the confidence `SHOWN`.
    size : float, default=1.0
        How large the public range of the result is.
    """
    if upper - lower <= WIDEST * size:
        return None
    return f"Mostly noise: limits of its noise are {upper - lower:.2g} apart. Conclude nothing from it."


def too_few(noise: float, records: Floats) -> Any:
    """Return of which numbers of records shares have limits too far apart, where limits are not computed."""
    return 2 * _AWAY * noise > WIDEST * np.maximum(records, 0.0)


def few_records(noise: float, records: Floats, few: Any) -> str:
    """Return what to say of shares of which `few` are mostly noise.

    Parameters
    ----------
    noise : float
        Expected size of the noise of what is divided.
    records : ndarray
        Noisy numbers of records by which it is divided.
    few : ndarray of bool, or bool
        Which of these are too few: see `too_few`.
    """
    least = in_words(max(float(records.min()), 0.0))
    least = f"about {least} records by the noisy counts, off by {in_words(noise)}"
    if records.size == 1:
        return f"Mostly noise: this rests on {least} on average. Conclude nothing from it."
    return (
        f"Mostly noise in part: of {records.size} shares {int(few.sum())} rest on too few records, the worst "
        f"on {least} on average. Conclude nothing from these."
    )


_LONGEST = 1 << 20
_SLACK = 1e-12  # this exceeds the error of a Fourier transform of numbers up to 1


@lru_cache(maxsize=256)
def largest_zero_sum_noise(rate: Fraction, size: int, miss: float, cells: int = 1) -> int:
    """Return the smallest j >= 0 with P(noise > j) <= miss, for one of several noises whose sum is 0.

    Of so many `cells` the noise is their sum. The others of `size` have a sum with a known characteristic
    function; that this sum is minus the noise is the condition. It makes large noise less likely, so that
    without it the limit is right, if too wide: that serves where the noise is too wide for a Fourier
    transform.
    """
    alone = largest_noise(rate, miss) if cells == 1 else largest_noise_of_sum(rate, cells, miss)
    if alone > _LONGEST or miss < 100 * _SLACK:
        return alone
    width = (50 + 20 * math.sqrt(size)) / float(rate)
    length = 1 << (8 * (alone + 8) + math.ceil(width)).bit_length()
    if length > _LONGEST:
        return alone
    q = math.exp(-float(rate))
    # (1 - q)^2 / (1 - 2 q cos(angle) + q^2), without the difference of numbers near 1
    half = np.sin(np.pi * np.fft.rfftfreq(length)) / math.expm1(-float(rate))
    of_one = 1 + 4 * q * half**2
    of_others = np.fft.irfft(of_one ** (float(cells) - size), length)
    k = np.arange(length // 2)
    of_these = q**k if cells == 1 else np.maximum(np.fft.irfft(of_one ** -float(cells), length)[k], 0.0)
    weights = of_these * np.maximum(of_others[: length // 2], 0.0)
    tails = np.cumsum(weights[::-1])[::-1] / (2 * weights.sum() - weights[0])  # P(noise >= k)
    found = np.flatnonzero(tails[1:] + _SLACK <= miss)
    return min(int(found[0]), alone) if found.size else alone


@lru_cache(maxsize=256)
def largest_noise_of_sum(rate: Fraction, cells: int, miss: float) -> int:
    """Return j with P(sum of so many independent noises > j) <= miss, by Chernoff's bound.

    Noise with the sum 0 is that noise under a condition which makes large values less likely, because the
    laws of all sums are symmetric and fall on either side.
    """
    if cells == 0:
        return 0
    near = min(max(float(rate), 1e-150), 600.0)  # below, the quotients of the next lines stay as they are
    t = np.linspace(0.02, 0.98, 200)
    # E exp(t rate noise) is sinh(rate / 2)^2 / (sinh(rate / 2)^2 - sinh(t rate / 2)^2)
    growth = -cells * np.log1p(-((np.sinh(t * near / 2) / math.sinh(near / 2)) ** 2))
    return math.ceil(Fraction(float(np.min((growth - math.log(miss)) / t))) / rate)
