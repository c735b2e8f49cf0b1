"""The geometric mechanism: Laplace noise on a public lattice, exact as executed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_metrics._random import Entropy, discrete_laplace
from dp_metrics.inputs.epsilon import Epsilon, exact_epsilon
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._base import BoundsOnly, Limits, NoisyRelease, require_bounded, require_public_n
from dp_metrics.mechanisms._grid import EvenGrid, Integers, Lattice, nearest_index
from dp_metrics.mechanisms._laws import ApproximateLaw, GridLaw, cells, geometric_quantiles, laplace_quantiles
from dp_metrics.sensitivity.exact import rounded_quotient
from dp_metrics.sensitivity.noisy_sums import FINENESS, Sums
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = [
    "ENORMOUS",
    "Geometric",
    "GeometricLaw",
    "SumsLaw",
    "expected_noise",
    "largest_noise",
    "noise_cdf",
]

_CELLS = {1: (256, 36), 2: (32, 12), 3: (12, 6)}  # even cells and octaves, by the number of noisy numbers
_LEAST_RATE = 1e-260
ENORMOUS = 1 << 900
"""Stands for the largest noise where its rate is so low that it may be beyond all floats."""


@own_error_state
@dataclass(frozen=True, repr=False)
class Geometric(BoundsOnly):
    """Round to a public lattice, add two-sided geometric noise, and clamp to the output range.

    For a metric that is as likely near one end of its range as near the other, such as accuracy. A share of n
    records is a count, and its lattice 0, 1/n, ..., 1. Any other metric gets a lattice of a million steps to
    its global sensitivity, on which this is the Laplace mechanism without its floats.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in
    one record, given public n and bounds. On the lattice they differ by at most s steps, and a noise of k
    steps has probability proportional to ``exp(-epsilon |k| / s)``. The position on the lattice is exact
    rational arithmetic and the noise is drawn from fair bits without a float, so this holds for the program
    as executed. The metric must have a public upper limit.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X; C. Canonne, G. Kamath and T. Steinke, arXiv:2004.00010, for the exact draw.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> 0 <= private_mae([3.0, 1.0], [2.0, 1.0], epsilon=1.0, bounds=(0, 5), mechanism=Geometric()) <= 5
    True
    """

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return 1: the mechanism reads no rank, only the metric and its global sensitivity."""
        require_bounded(output_range, "geometric")
        require_public_n(n, "geometric")
        return 1

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> GeometricLaw:
        """Return the law of `release`."""
        require_bounded(output_bounds.output_range, "geometric")
        if output_bounds.sensitivity is None:
            raise ValueError("mechanism='geometric' needs a metric with a public global sensitivity.")
        low, high = (Fraction(end) for end in output_bounds.output_range)
        width, position = high - low, Fraction(output_bounds.value) - low
        if width == 0:  # the bounds are so close that the metric underflows: there is but one output
            steps, change, centre = 1, 1, 0
        elif output_bounds.steps is not None:
            # the metric is a whole number of steps, but for its rounding to a float
            steps, change = output_bounds.steps, 1
            centre = round(position * steps / width)
        else:
            sensitivity = Fraction(output_bounds.sensitivity) + _rounding(low, high)
            steps = min(max(math.ceil(FINENESS * width / sensitivity), 1), 1 << 52)
            change = math.ceil(sensitivity * steps / width)
            centre = math.floor(position * steps / width + Fraction(1, 2))
        return GeometricLaw(
            EvenGrid(*output_bounds.output_range, steps + 1), centre, exact_epsilon(epsilon) / change
        )

    def noise_limits(self, release: NoisyRelease, miss: float) -> Limits:
        """Return limits on either side, each missed with probability `miss` / 2 at most."""
        public = release.public
        if public.output_range[0] == public.output_range[1]:
            return Limits(*public.output_range)
        rounding = 0.0 if public.steps is not None else 0.5
        return self.output_distribution(public, release.epsilon).limits(
            release.value, miss / 2, rounding=rounding
        )


def noise_cdf(k: Floats, rate: float) -> Floats:
    """Return P(noise <= k) for two-sided geometric noise of this rate, and so P(noise >= -k)."""
    with np.errstate(under="ignore", over="ignore"):
        tail = np.exp(-rate * np.where(k < 0, -k, k + 1)) / (1.0 + math.exp(-rate))
    reached: Floats = np.where(k < 0, tail, 1.0 - tail)
    return reached


def expected_noise(rate: Fraction | float) -> float:
    """Return the mean absolute value of two-sided geometric noise of this rate, 1 / sinh(rate)."""
    rate = float(rate)
    return 2 * math.exp(-rate) / -math.expm1(-2 * rate) if rate > 0 else math.inf


def largest_noise(rate: Fraction | float, miss: float) -> int:
    """Return the smallest j >= 0 with P(noise > j) <= miss, for two-sided geometric noise of this rate.

    With q = exp(-rate) that probability is q^(j + 1) / (1 + q), on either side.
    """
    rate = float(rate)
    if rate < _LEAST_RATE:
        return ENORMOUS

    def log_tail(j: int) -> float:
        return -rate * (j + 1) - math.log1p(math.exp(-rate))

    j = max(math.ceil(-(math.log(miss) + math.log1p(math.exp(-rate))) / rate) - 2, 0)
    # the loop makes a few steps at most: the quotient above is off by its rounding
    while log_tail(j) > math.log(miss):
        j += 1 + int(j * 2.0**-50)
    return j


def _rounding(low: Fraction, high: Fraction) -> Fraction:
    """Return how much more than the stated sensitivity a metric may move between neighbours.

    The metric of either data set and the sensitivity were each rounded once to a float: by at most 2^-53 of
    their size, or by half the smallest float, which is the larger part where the whole range is subnormal.
    """
    return (abs(low) + abs(high)) / 2**50 + 2 * Fraction(math.ulp(0.0))


class GeometricLaw(GridLaw):
    """The law of two-sided geometric noise, clamped to a grid.

    Parameters
    ----------
    grid : EvenGrid or Lattice
        Public outputs.
    centre : int
        Number of the metric's own place on the grid.
    rate : Fraction
        A noise of k places has probability proportional to exp(-rate * abs(k)).
    """

    grid: EvenGrid | Lattice

    def __init__(self, grid: EvenGrid | Lattice, centre: int, rate: Fraction) -> None:
        self.grid, self.centre, self.rate = grid, centre, rate

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        number = self.centre + discrete_laplace(entropy, self.rate)
        return float(self.grid.points(np.array([min(max(number, self.grid.first), self.grid.last)]))[0])

    def limits(self, released: float, miss: float, *, rounding: float) -> Limits:
        """Return limits of what is a place on the grid plus `centre`, each missed with this probability.

        Parameters
        ----------
        released : float
            An output.
        miss : float
            Of one limit.
        rounding : float
            By how many places the centre may differ from the metric.
        """
        away = largest_noise(self.rate, miss) + rounding
        place = int(nearest_index(self.grid, released)) - self.centre
        # an output at the upper end stands for all noisy places from there on
        above = away if place + self.centre < self.grid.last else math.inf
        ends = np.clip([place - away, place + above], self.grid.first, self.grid.last)
        # multiples of the spacing would be rounded twice: a count k must be k / n, to the last bit
        lower, upper = self.grid.points(ends).tolist()
        return Limits(lower, upper)

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outputs that stand for cells of probability, and the probability of each."""
        middle, mass = cells(256, 36)
        away = geometric_quantiles(middle, float(self.rate))
        numbers = np.clip(self.centre + away.astype(np.int64), self.grid.first, self.grid.last)
        return self.grid.points(numbers), mass

    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        indices = np.asarray(indices)
        middle = noise_cdf((indices - self.centre).astype(np.float64), float(self.rate))
        return np.where(indices < self.grid.first, 0.0, np.where(indices >= self.grid.last, 1.0, middle))


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
    `release` is exact. For the law, quantiles of the noise of each coordinate stand for cells of probability.
    """

    def __init__(self, sums: Sums, epsilon: Fraction) -> None:
        self.sums, self.rate = sums, epsilon / sums.sensitivity

    def release(self, entropy: Entropy) -> tuple[float, list[int]]:
        """Draw an outcome, and the noisy whole numbers with it, which tell it."""
        noisy = [value + discrete_laplace(entropy, self.rate) for value in self.sums.values]
        # sums saturate: noise may be larger than any float at the smallest epsilon
        return float(self.sums.combine(*(np.float64(rounded_quotient(value, 1)) for value in noisy))), noisy

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
                "With a private number of records a variance has no limits here: it is computed from "
                "three noisy sums, and need not rise, or fall, with each. Use mechanism='hazard'."
            )
        # the sums were rounded by half a step on the way to the lattice
        away = largest_noise(self.rate, miss / len(rises)) + 0.5
        signs = np.where(rises, 1.0, -1.0)
        most = ENORMOUS // 4  # the largest noise exceeds this where it is beyond all floats
        centre = np.array([rounded_quotient(max(min(x, most), -most), 1) for x in noisy])
        lower, upper = (float(self.sums.combine(*(centre + side * signs * away))) for side in (-1.0, 1.0))
        return Limits(lower, upper)

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outcomes that stand for the law, and the probability of each."""
        middle, mass = cells(*_CELLS[len(self.sums.values)])
        away = laplace_quantiles(middle) / float(self.rate)  # the quantiles are right to within a step
        noisy = np.meshgrid(*(float(value) + away for value in self.sums.values), indexing="ij")
        shares = np.meshgrid(*(mass for _ in self.sums.values), indexing="ij")
        return self.sums.combine(*noisy).ravel(), np.prod(shares, axis=0).ravel()
