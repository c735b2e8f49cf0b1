"""Limits by the normal approximation: of what has normal error by the sample and other error by the noise.

`mean_limits` are by the normal approximation, or proved.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr, ndtri  # scikit-learn depends on scipy

from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms import Geometric
from dp_metrics.mechanisms._base import Limits, Noise
from dp_metrics.mechanisms.geometric import SpreadNoise, spread_noise
from dp_metrics.release.noisy_binomial import noisy_mean_limits

_INFLATION = 3.2718  # the sum of two standard Laplace variables exceeds this with probability 5 %
_LEAST_NOISE = 1e-100
_LEAST = 1e-300
_HALVINGS = 60
_STEPS = 17
_NORMAL = (
    "The normal approximation makes the confidence approximate: it is lower where the mean rests on a few "
    "records with large values."
)
_ENOUGH = 100  # records; with fewer, coverages far below the confidence are common
_FEW = f"With fewer than {_ENOUGH} records, as here, it can be far lower."


def normal_laplace_tail(h: ArrayLike, s: ArrayLike, b: ArrayLike) -> Floats:
    """Return P(abs(s N + b L) > h), for N standard normal and L standard Laplace; all of them at least 0."""
    size, s, b = (np.maximum(np.asarray(x, dtype=np.float64), _LEAST) for x in (h, s, b))
    with np.errstate(all="ignore"):
        # exp(ratio^2 / 2 -+ h / b) times a normal tail, without the overflow of the one or the other
        ratio, far_out = s / b, size / s
        density = 0.5 * np.exp(-far_out * far_out / 2)
        far = density * erfcx((ratio + far_out) / np.sqrt(2.0))
        near = density * erfcx((ratio - far_out) / np.sqrt(2.0))
        close = np.exp(np.minimum(ratio * ratio / 2 - size / b, 0.0)) * ndtr(far_out - ratio)
        tail: Floats = 2 * ndtr(-far_out) + np.where(ratio >= far_out, near, close) - far
    return tail


def mean_half_width(m: float, d: float, n: int, noise: tuple[float, float], miss: float) -> float:
    """Return half the width of the interval for the mean of numbers from 0 to 1.

    Parameters
    ----------
    m, d : float
        Their noisy mean, clipped to [0, 1], and the noisy mean of v (1 - v).
    n : int
        Number of records.
    noise : (float, float)
        Scale of the Laplace noise of the mean, and of that of the mean of v (1 - v).
    miss : float
        Probability with which the interval may miss.

    Notes
    -----
    The variance of the numbers is at most m (1 - m) minus the mean of v (1 - v). With both noisy, the sum of
    their noise is at most 3.2718 times its scale with probability 95 %, where both have the same, which is
    added; of different scales their root mean square is taken.
    """
    # the limits keep the quotients finite
    of_mean, of_spread = (min(max(scale, _LEAST_NOISE), 1 / _LEAST_NOISE) for scale in noise)
    largest = m * (1 - m)
    variance = largest - min(max(d, 0.0), 0.25) + _INFLATION * math.hypot(of_mean, of_spread) / math.sqrt(2)
    s = np.sqrt(min(max(variance, 0.0), largest + of_mean) / n)
    # either part exceeds its summand of the upper end with probability miss / 2
    low, high = 0.0, float(of_mean * np.log(2 / miss) - s * ndtri(miss / 4))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_laplace_tail(middle, s, of_mean) > miss else (low, middle)
    return high


def normal_note(n: int) -> str:
    """Return what has to be known of limits of the mean of n numbers by the normal approximation."""
    return _NORMAL if n >= _ENOUGH else f"{_NORMAL} {_FEW}"


def mean_limits(noise: Noise, miss: float, *, is_sure: bool) -> Limits | None:
    """Return limits of a mean among all people; None if the mean of these records was not so released.

    Parameters
    ----------
    noise : Noise
        Of the released mean: by "geometric", with a public limit, and without weights and groups.
    miss : float
        Probability with which either limit may miss.
    is_sure : bool
        Whether they have to be proved; otherwise they are narrower, from 100 records on.
    """
    # what has a spread was released so
    if not (isinstance(noise, SpreadNoise) and isinstance(noise.mechanism, Geometric)):
        return None
    n, high = noise.facts.n, noise.facts.output_range[1]
    if n is None:
        return None
    law = noise.mechanism.output_distribution(noise.facts.widest(), noise.epsilon)
    if is_sure or n < _ENOUGH:
        lower, upper = noisy_mean_limits(law, noise.released, n, miss)
        note = ""
    else:
        both = law.added, spread_noise(law.added, noise.epsilon)
        scales = [each.deviation / math.sqrt(2) / law.grid.last for each in both]
        m, note = noise.released / high, normal_note(n)
        half = mean_half_width(m, noise.spread, n, (scales[0], scales[1]), 2 * miss)
        lower, upper = max(m - half, 0.0), min(m + half, 1.0)
    return Limits(high * lower, high * upper, note)


def quick_ratio_limits(
    a: Floats, b: Floats, moments: tuple[float, float, float], miss: float
) -> tuple[Floats, Floats]:
    """Return approximate limits of p, the share of a in a and b among all people, from noisy counts: arrays.

    Parameters
    ----------
    a, b : ndarray
        Noisy numbers of records, as drawn: they may be negative, and fractions.
    moments : tuple of float
        The variances of the noise of a and of b, and their covariance.
    miss : float
        Probability with which each of the two limits may miss.

    Notes
    -----
    (1 - p) a - p b has the mean 0 whatever the number of records is. Its error is taken to be normal, by the
    sample, plus Laplace noise of the variance that the noise has.
    """

    def lower(a: Floats, b: Floats, of_a: float, of_b: float, both: float) -> Floats:
        total, low, high = a + b, np.zeros_like(a, dtype=np.float64), np.ones_like(a, dtype=np.float64)
        for _ in range(_HALVINGS):
            p = (low + high) / 2
            noise = np.maximum((1 - p) ** 2 * of_a + p * p * of_b - 2 * p * (1 - p) * both, 0.0)
            away = a - p * total
            tail = normal_laplace_tail(
                np.abs(away), np.sqrt(np.maximum(total, 0) * p * (1 - p)), np.sqrt(noise / 2)
            )
            is_likely = np.where(away < 0, 1 - tail / 2, tail / 2) > miss
            low, high = np.where(is_likely, low, p), np.where(is_likely, p, high)
        return np.where(total > 0, low, 0.0)

    of_a, of_b, both = moments
    a, b = np.maximum(a, 0.0), np.maximum(b, 0.0)  # a count below 0 would make no share likely
    return lower(a, b, of_a, of_b, both), 1.0 - lower(b, a, of_b, of_a, both)


def quick_gap_limit(
    excess: Floats, total: Floats, score: Floats, moments: tuple[Floats, Floats, Floats], miss: float
) -> Floats:
    """Return an approximate lower limit of a share of positives less a mean score, among all people: arrays.

    Parameters
    ----------
    excess, total : ndarray
        Noisy sums of labels minus scores, and numbers of records, as drawn.
    score : ndarray
        The mean score, from 0 to 1.
    moments : tuple of ndarray
        The variance of the noise of `excess`, its covariance with that of `total`, and the variance of that.
    miss : float
        Probability with which the limit may miss.

    Notes
    -----
    With the gap x, excess - x total has the mean 0 whatever the number of records is. Its error is taken to
    be normal, with the variance of labels that are positive with the probability score + x and a quarter for
    that they are whole, plus Laplace noise of the variance that the noise has.
    """
    of_excess, both, of_total = moments
    low, high = -np.ones_like(score), np.ones_like(score)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        noise = np.maximum(of_excess - 2 * x * both + x * x * of_total, 0.0)
        share = np.clip(score + x, 0.0, 1.0)
        spread = np.sqrt(np.maximum(total, 0.0) * share * (1 - share) + 0.25)
        away = excess - x * total
        tail = normal_laplace_tail(np.abs(away), spread, np.sqrt(noise / 2))
        is_likely = np.where(away < 0, 1 - tail / 2, tail / 2) > miss
        low, high = np.where(is_likely, low, x), np.where(is_likely, x, high)
    return low


def combined_limits(
    function: Callable[..., Floats],
    estimates: Sequence[float],
    limits: Sequence[tuple[float, float]],
) -> tuple[float, float]:
    """Return approximate limits of a function of independent estimates, from limits of each of these.

    Parameters
    ----------
    function : callable
        Of numbers or arrays.
    estimates : sequence of float
        The estimates, each moved into its limits.
    limits : sequence of (float, float)
        Limits of each, with the confidence that the function is to have.

    Notes
    -----
    How far the function moves down while one argument goes through its interval is added up in squares over
    the arguments, and so is how far it moves up: G. Y. Zou and A. Donner's MOVER (2008,
    doi:10.1002/sim.3095), which of two normal means is exact.
    """
    inside = [min(max(x, low), high) for x, (low, high) in zip(estimates, limits, strict=True)]
    middle, down, up = float(function(*inside)), 0.0, 0.0
    for place, (low, high) in enumerate(limits):
        moved = [*inside[:place], np.linspace(low, high, _STEPS), *inside[place + 1 :]]
        values = function(*moved)
        down += max(middle - float(np.min(values)), 0.0) ** 2
        up += max(float(np.max(values)) - middle, 0.0) ** 2
    return middle - down**0.5, middle + up**0.5
