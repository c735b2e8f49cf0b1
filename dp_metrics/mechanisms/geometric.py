"""The geometric mechanism: discrete noise on a public lattice, exact as executed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_metrics._random import Entropy, discrete_laplace
from dp_metrics.inputs.options import Epsilon, Range, exact_epsilon, own_error_state
from dp_metrics.mechanisms._base import NOT_MONOTONE, Mechanism, global_sensitivity, no_ranks
from dp_metrics.mechanisms._laws import (
    ENORMOUS,
    LEAST_EPSILON,
    ApproximateLaw,
    EvenGrid,
    GeometricLaw,
    Limits,
    Outcomes,
    Staircase,
    cell_edges,
)
from dp_metrics.sensitivity.exact import rounded_quotient
from dp_metrics.sensitivity.output_bounds import FINENESS, BoundsFacts, OutputBounds, Sums

_CELLS = {1: (256, 36), 2: (32, 12), 3: (12, 6)}  # even cells and octaves, by the number of noisy numbers
_MOST_TOGETHER = 2
"""Up to this epsilon a mean and its spread are drawn with the same noise, two-sided geometric.

It is larger than staircase noise for the mean alone, by 0.4 % at an epsilon of 0.3, 1 % at 0.5, 4 % at 1 and
18 % at 2, but would be by 81 % at 4.
"""
_OF_SPREAD = Fraction(1, 8)
"""Part of a larger epsilon that is for the spread; the mean has staircase noise at the rest.

So the mean's error has no jump at an epsilon of 2; an interval is up to an eighth wider just above than at 2.
"""


@own_error_state
@dataclass(frozen=True, repr=False)
class Geometric(Mechanism):
    """Round to a public lattice, add discrete noise, and clamp to the output range.

    For a metric that is as likely near one end of its range as near the other, such as a Brier score. The
    lattice has a million steps to the global sensitivity, and the noise is staircase noise, which is at least
    as accurate as Laplace noise: the mean absolute noise is .96 of that at epsilon 1, .85 at 2 and .55 at 4.
    Of a share of the records, such as accuracy, two counts get noise of whole records instead.

    With a mean of losses with a cap, without weights and groups, the mean of v (1 - v) over the records is
    released too, v = loss / cap: the "spread" from which `population_interval` follows. Up to an epsilon of 2
    both get the same two-sided geometric noise; above, the spread has an eighth of epsilon.

    Where the number of records is private, and the metric a mean, noise is added to the sum of the losses and
    to what is left of it to the limit, in steps of a millionth of that.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in one
    record, given public n and bounds. On the lattice they differ by at most s steps, and a noise of k steps
    has probability proportional to ``exp(-epsilon floor((|k| + s - r) / s))``, with a public r from 1 to s:
    between neighbours the exponent changes by epsilon at most. The position on the lattice is exact rational
    arithmetic and the noise is drawn from fair bits without a float, so this holds for the program as
    executed. With a spread one record moves both numbers together by s + 1 steps at most
    (``MeanWithSpread``), and each has noise k with probability proportional to ``exp(-epsilon |k| / (s +
    1))``; or, above an epsilon of 2, the mean has staircase noise at 7/8 of epsilon, and the spread, which
    moves by s / 4 steps at most, rounded up, at 1/8. The metric must have a public upper limit. With a
    private number of records a record more or less moves both sums together by the limit. The two counts of a
    share are a table: see `private_confusion_matrix`.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X; Q. Geng and P. Viswanath, "The Optimal Noise-Adding Mechanism in Differential
    Privacy", 2016, doi:10.1109/TIT.2015.2504967; C. Canonne, G. Kamath and T. Steinke, arXiv:2004.00010, for
    the exact draw.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> 0 <= private_mae([3.0, 1.0], [2.0, 1.0], epsilon=1.0, bounds=(0, 5), mechanism=Geometric()) <= 5
    True
    """

    is_exact = True
    has_even_limits = True

    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return 0: the mechanism reads no rank, only the metric and its global sensitivity."""
        return no_ranks(output_range, n, "geometric")

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> GeometricLaw:
        """Return the law of `release`."""
        stated = global_sensitivity(output_bounds, "geometric")
        low, high = map(Fraction, output_bounds.output_range)
        width, position = high - low, Fraction(output_bounds.value) - low
        if width == 0:  # the bounds are so close that the metric underflows: there is but one output
            steps, change, centre = 1, 1, 0
        else:
            sensitivity = Fraction(stated) + _rounding(low, high)
            steps = min(max(math.ceil(FINENESS * width / sensitivity), 1), 1 << 52)
            change = math.ceil(sensitivity * steps / width)
            centre = math.floor(position * steps / width + Fraction(1, 2))
        grid = EvenGrid(*output_bounds.output_range, steps + 1)
        return GeometricLaw(grid, centre, _noise(output_bounds, exact_epsilon(epsilon), change))

    def added_error(self, public: BoundsFacts, epsilon: Fraction) -> float | None:
        """Return the expected noise as a share of the range."""
        share = public.relative_sensitivity
        return None if share is None else share * _noise(public, epsilon, FINENESS).expected / FINENESS

    def noise_limits(self, released: float, public: BoundsFacts, epsilon: Fraction, miss: float) -> Limits:
        """Return limits on either side, each missed with probability `miss` / 2 at most."""
        if public.output_range[0] == public.output_range[1]:
            return Limits(*public.output_range)
        law = self.output_distribution(public.widest(), epsilon)
        return law.limits(released, miss / 2, rounding=0.5)  # to the lattice


def _noise(public: BoundsFacts | OutputBounds, epsilon: Fraction, change: int) -> Staircase:
    """Return what is added to a number that moves by at most `change` steps; only public fields are read."""
    if not public.has_spread:
        return Staircase(epsilon, change)
    if epsilon > _MOST_TOGETHER:
        return Staircase((1 - _OF_SPREAD) * epsilon, change)
    # rounding two numbers, not one, may add a step to what they move by together
    return Staircase(epsilon / (change + 1))


def spread_noise(of_mean: Staircase, epsilon: Fraction) -> Staircase:
    """Return the noise of the spread that is released with a mean, from that of the mean.

    Notes
    -----
    Up to `_MOST_TOGETHER` it is the same, of which one record changes the two exponents by epsilon together.
    Above, each has a part of epsilon. The spread of one record lies between 0 and 1/4, so that it moves by a
    quarter of what the mean may move by; rounding to the lattice rounds that up at most to whole steps.
    """
    if epsilon <= _MOST_TOGETHER:
        return of_mean
    return Staircase(_OF_SPREAD * epsilon, -(-of_mean.steps // 4))


def noise_cells(rate: Fraction | float, even: int, octaves: int) -> Outcomes:
    """Return numbers that stand for two-sided geometric noise of this rate, and the probability of each.

    Whole numbers are put together until they are as likely as a cell of `cell_edges`, and have their mean.
    With q = exp(-rate) noise beyond k >= 0 has the mean k + 1 + q / (1 - q).
    """
    rate = max(float(rate), LEAST_EPSILON)
    edges = cell_edges(even, octaves)
    log_tails = np.log(edges[(edges > 0.0) & (edges < 0.5)])
    ends = np.ceil(-(log_tails + math.log1p(math.exp(-rate))) / rate) - 1.0  # P(noise > end) is that, or less
    ends = np.unique(np.append(np.maximum(ends, 0.0), 0.0))
    beyond = Staircase(rate).cdf(-(ends + 1.0))
    mass = -np.diff(beyond, append=0.0)
    total = beyond * (ends + 1.0 + math.exp(-rate) / -math.expm1(-rate))
    with np.errstate(invalid="ignore"):
        mean = -np.diff(total, append=0.0) / mass
    # a sum of one number may be rounded, and one without probability has no mean
    mean = np.where((np.diff(ends, append=np.inf) == 1.0) | (mass == 0.0), ends + 1.0, mean)
    numbers = np.concatenate([-mean[::-1], [0.0], mean])
    return numbers, np.concatenate([mass[::-1], [1.0 - 2.0 * beyond[0]], mass])


def _rounding(low: Fraction, high: Fraction) -> Fraction:
    """Return how much more than the stated sensitivity a metric may move between neighbours.

    The metric of either data set and the sensitivity were each rounded once to a float: by at most 2^-53 of
    their size, or by half the smallest float, which is the larger part where the whole range is subnormal.
    """
    return (abs(low) + abs(high)) / 2**50 + 2 * Fraction(math.ulp(0.0))


class SpreadLaw(GeometricLaw):
    """The law of a mean, which is drawn with its spread.

    Parameters
    ----------
    mean : GeometricLaw
        The law of the mean.
    spread : Fraction
        The mean of v (1 - v), for v in units of the limit: private.
    epsilon : Fraction
        What both cost together.
    """

    def __init__(self, mean: GeometricLaw, spread: Fraction, epsilon: Fraction) -> None:
        super().__init__(mean.grid, mean.centre, mean.added)
        self.place = math.floor(spread * self.grid.last + Fraction(1, 2))
        self.of_spread = spread_noise(self.added, epsilon)

    def release(self, entropy: Entropy) -> tuple[float, dict[str, float]]:
        """Draw the mean; with it the "spread"."""
        value = super().release(entropy)
        noisy = self.place + self.of_spread.draw(entropy)
        return value, {"spread": rounded_quotient(noisy, self.grid.last)}


class SumsLaw(ApproximateLaw):
    """The law of a number computed from whole numbers with two-sided geometric noise.

    One record moves the whole numbers by at most `sums.sensitivity`, summed over the absolute differences,
    and noise k_1, k_2, ... has probability proportional to exp(-rate (abs(k_1) + abs(k_2) + ...)) with
    rate = epsilon / sensitivity: the noisy numbers are epsilon-differentially private, and exactly so as
    executed. What is computed from them is post-processing.

    Parameters
    ----------
    sums : Sums
        The whole numbers: private.
    epsilon : Fraction
        What the release costs.

    Notes
    -----
    `release` is exact. For the law, means of the noise of each coordinate stand for cells of probability.
    Where each whole number is as likely as a cell, as in two counts at an epsilon of 0.7 or more, the law is
    exact but for the far tails.
    """

    def __init__(self, sums: Sums, epsilon: Fraction) -> None:
        self.sums, self.rate = sums, epsilon / sums.sensitivity

    def release(self, entropy: Entropy) -> tuple[float, dict[str, list[int]]]:
        """Draw an outcome; with it the noisy whole numbers, the "sums", which tell it."""
        noisy = [value + discrete_laplace(entropy, self.rate) for value in self.sums.values]
        # sums saturate: noise may be larger than any float at the smallest epsilon
        value = float(self.sums.combine(*(np.float64(rounded_quotient(value, 1)) for value in noisy)))
        return value, {"sums": noisy}

    def limits(self, noisy: Sequence[int], miss: float) -> Limits:
        """Return limits of what is computed from noisy whole numbers, each missed with this probability.

        Raises
        ------
        ValueError
            If the result does not rise or fall with each of the whole numbers.
        """
        rises = self.sums.rises
        if not rises:
            raise ValueError(
                NOT_MONOTONE.format("a variance of a private number of records", "mechanism='hazard'")
            )
        away = self._away(miss)
        signs = np.where(rises, 1.0, -1.0)
        most = ENORMOUS // 4  # the largest noise exceeds this where it is beyond all floats
        centre = np.array([rounded_quotient(max(min(x, most), -most), 1) for x in noisy])
        lower, upper = (float(self.sums.combine(*(centre + side * signs * away))) for side in (-1.0, 1.0))
        return Limits(lower, upper)

    def fewest(self, noisy: Sequence[int], miss: float) -> float:
        """Return a lower limit of the number of records, which holds wherever both `limits` do."""
        whole = rounded_quotient(sum(noisy), self.sums.fineness)
        return max(whole - len(noisy) * self._away(miss) / self.sums.fineness, 1.0)

    def _away(self, miss: float) -> float:
        """Return how far each noisy sum may lie from the sum before its rounding."""
        return Staircase(self.rate).largest(miss / len(self.sums.rises)) + 0.5

    def outcomes(self) -> Outcomes:
        """Return outcomes that stand for the law, and the probability of each."""
        away, mass = noise_cells(self.rate, *_CELLS[len(self.sums.values)])
        noisy = np.meshgrid(*(float(value) + away for value in self.sums.values), indexing="ij")
        shares = np.meshgrid(*(mass for _ in self.sums.values), indexing="ij")
        return self.sums.combine(*noisy).ravel(), np.prod(shares, axis=0).ravel()
