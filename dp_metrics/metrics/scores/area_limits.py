"""Limits of the area under a ROC curve, and of average precision, of scores that were counted in public bins.

How the scores of a bin lie is not released. A pair of a positive and a negative record in different bins is
surely won or surely lost; one within a bin may be either, so that an area is known up to the tied pairs even
without noise. So is an average precision.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.scores.curve_formulas import FAR, RocCurve, ScoreCounts, roc
from dp_metrics.release.noise import CountsNoise, as_floats
from dp_metrics.release.parts.count_table import nearest_with_sum

Ties: TypeAlias = tuple[float, float]
"""Which part of the pairs within bins is taken as won, by the lower limit of an area and by the upper one."""

ANY_ORDER: Ties = (0.0, 1.0)
"""Whatever the order within bins is."""

BINNED: Ties = (0.5, 0.5)
"""Where a pair within a bin counts half, as in the area that is released."""

ORDERED: Ties = (0.5, 1.0)
"""Where positives do not rank below negatives within bins on average."""

_LENT = 0.5  # records of each class that are taken to lie as the other class does
_GRID = np.linspace(0.0, 1.0, 2001)
_STEPS = 100  # of a step of the grid, between which the end of a limit is looked for


def half_of_tied(counts: ScoreCounts) -> float:
    """Return half of the share of pairs within bins: so far the order there may move the area of bins."""
    negative, positive = (each / max(float(each.sum()), 1.0) for each in (counts.negative, counts.positive))
    return float(negative @ positive) / 2


def area_between(lower: RocCurve, upper: RocCurve, ties: Ties = ANY_ORDER) -> tuple[float, float]:
    """Return limits of the area under a curve that rises, from those of its points at the edges of bins.

    Parameters
    ----------
    lower, upper : RocCurve
        Through the lower right corners of the boxes in which the points lie, and the upper left ones.
    ties : (float, float), default=ANY_ORDER
        What is assumed of the order within bins.

    Notes
    -----
    Between two edges the curve may do anything that rises: below it is a staircase, and above it another one.
    The area of the binned scores is that of straight lines.
    """
    low, high = (
        float((np.diff(line.fpr) * ((1 - tie) * line.tpr[:-1] + tie * line.tpr[1:])).sum())
        for line, tie in zip((lower, upper), ties, strict=True)
    )
    return low, high


def area_limits(
    noise: CountsNoise, miss: float, *, ties: Ties = ANY_ORDER, among_people: bool = True
) -> tuple[float, float] | None:
    """Return approximate limits of the area under the ROC curve of the scores as they are.

    Parameters
    ----------
    noise : CountsNoise
        Of the negative class by bin, then of the positive one.
    miss : float
        Probability with which either limit may miss.
    ties : (float, float), default=ANY_ORDER
        What is assumed of the order within bins.
    among_people : bool, default=True
        Whether the area is that among all people; otherwise that of these records.

    Returns
    -------
    (float, float) or None
        None where a class does not exceed its noise: there limits made so covered 84 to 93 %, not 95 %.

    Notes
    -----
    The exact area lies between the share of pairs that are surely won and the share of those that are not
    surely lost: the lower limit is one of the first, and the upper limit one of the second.

    For each area theta the sum of (W - theta) times the noisy pairs of records has the mean 0 up to the
    covariance of the noise, which is taken off; W is 1 of a pair that is won, 0 of one that is lost, and 0 or
    1 of one within a bin. Its error is taken to be normal, with the variance that `effective_size` tells,
    plus Laplace noise of the variance that the noise of the counts makes. Each class is made plausible by
    itself, with its own noisy size, by which the sum is divided as well: made plausible together, the larger
    class would lend records to the smaller one.
    """
    bins = len(noise.noisy) // 2
    negative, positive = as_floats(noise.noisy).reshape(2, bins)
    sizes = negative.sum(), positive.sum()
    if min(sizes) <= FAR * _deviation_of_class(noise, bins):
        return None
    plausible = nearest_with_sum(negative, sizes[0]), nearest_with_sum(positive, sizes[1])
    lower, upper = (
        _limit(noise, miss, plausible, tie, is_upper=is_upper, among_people=among_people)
        for tie, is_upper in zip(ties, (False, True), strict=True)
    )
    return lower, max(lower, upper)


def _deviation_of_class(noise: CountsNoise, bins: int) -> float:
    """Return the standard deviation of the noise of the size of a class."""
    of_class = np.repeat([1.0, 0.0], bins)
    return float(np.sqrt(max(noise.covariance(of_class, of_class), 0.0)))


def _limit(
    noise: CountsNoise,
    miss: float,
    plausible: tuple[Floats, Floats],
    tie: float,
    *,
    is_upper: bool,
    among_people: bool,
) -> float:
    """Return a limit of the area in which `tie` of each pair within a bin is won."""
    from dp_metrics.release.normal_limits import normal_laplace_tail  # slow to import

    (negatives, positives), bins = plausible, plausible[0].size
    raw_negatives, raw_positives = as_floats(noise.noisy).reshape(2, bins)
    size, other = float(positives.sum()), float(negatives.sum())
    won = _won(bins, tie)
    one, two, *_ = np.eye(2 * bins)
    variance, covariance = noise.covariance(one, one), noise.covariance(one, two)
    pairs = other * size - covariance * bins**2
    area = float(raw_negatives @ won @ raw_positives - covariance * won.sum()) / pairs
    slopes = np.concatenate([won @ positives, negatives @ won])
    both = np.repeat([size, other], bins)
    records = effective_size(negatives, positives, won) if among_people else np.inf
    linear = [noise.covariance(*each) for each in ((slopes, slopes), (slopes, both), (both, both))]

    def is_likely(theta: Floats) -> NDArray[np.bool_]:
        """Return whether such an area, or a likelier one for this side, makes the noisy pairs likely."""
        of_noise = linear[0] - 2 * theta * linear[1] + theta**2 * linear[2]
        of_noise += variance**2 * ((won**2).sum() - 2 * theta * won.sum() + theta**2 * bins**2)
        added = np.sqrt(np.maximum(of_noise, 0.0) / 2) / (size * other)
        sampling = np.maximum(theta * (1 - theta), 0.0) / records
        beyond = (theta - area if is_upper else area - theta) * pairs / (size * other)
        tail = normal_laplace_tail(np.abs(beyond), np.sqrt(sampling), added) / 2
        return np.where(beyond > 0, tail, 1.0) > miss

    grid = _GRID
    for _ in range(2):
        inside = np.flatnonzero(is_likely(grid))
        if not inside.size:  # noise has moved the area out of [0, 1]
            return 1.0 if area > 1 else 0.0
        end = int(inside[-1 if is_upper else 0])
        steps = (end, end + 1) if is_upper else (end - 1, end)
        low, high = (float(grid[min(max(step, 0), grid.size - 1)]) for step in steps)
        grid = np.linspace(low, high, _STEPS + 1)
    return high if is_upper else low


def _won(bins: int, tie: float) -> Floats:
    """Return what a pair of a negative record in one bin and a positive one in another adds to those won."""
    places = np.arange(bins)
    won: Floats = (places > places[:, np.newaxis]) + tie * (places == places[:, np.newaxis])
    return won


def effective_size(negatives: Floats, positives: Floats, won: Floats) -> float:
    """Return the m for which the variance of an area theta is theta (1 - theta) / m.

    Parameters
    ----------
    negatives, positives : ndarray of shape (n_bins,)
        Plausible counts.
    won : ndarray of shape (n_bins, n_bins)
        What a pair adds to those won.

    Notes
    -----
    That of E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988, doi:10.2307/2531595) at the area of the
    counts, and at least the size of the smaller class, with which the variance is an upper limit of the true
    one (Z. W. Birnbaum, 1956). Half a record of each class is taken to lie as the other class does: where few
    records are all won, the variance by the counts alone would be 0.
    """
    (q, f), (p, g) = ((float(each.sum()), each / each.sum()) for each in (negatives, positives))
    least = max(min(p, q), 1.0)
    f, g = (f * q + _LENT * g) / (q + _LENT), (g * p + _LENT * f) / (p + _LENT)
    of_positives, of_negatives = f @ won, won @ g
    area = float(of_positives @ g)
    variance = float(g @ (of_positives - area) ** 2) / max(p - 1, 1.0)
    variance += float(f @ (of_negatives - area) ** 2) / max(q - 1, 1.0)
    return max(area * (1 - area) / variance, least) if variance > 0 else least


def hanley_mcneil(theta: Floats, positive: float, negative: float) -> Floats:
    """Return the variance of an area theta from so many records of either class."""
    one, two = theta / (2 - theta) - theta**2, 2 * theta**2 / (1 + theta) - theta**2
    variance: Floats = (theta * (1 - theta) + (positive - 1) * one + (negative - 1) * two) / (
        positive * negative
    )
    return variance


def limits_around(
    area: float, noise: tuple[float, float], positive: float, negative: float, miss: float
) -> tuple[float, float]:
    """Return approximate limits of an area among all people, from limits of the exact area of the records.

    Parameters
    ----------
    area : float
        The released area.
    noise : (float, float)
        Limits of the exact area, which miss as often as these may.
    positive, negative : float
        Noisy numbers of records of both classes.
    miss : float
        Probability with which either limit may miss.

    Notes
    -----
    As in MOVER, what the noise may have done and what the sample may have done are added up in squares. The
    variance is that of J. A. Hanley and B. J. McNeil (1982, doi:10.1148/radiology.143.1.7063747) at the
    limit. It takes the scores of both classes to be exponential: where those of the negatives spread wider
    than those of the positives it is that of the other roles, and one number does not tell which is so. So
    the larger one is taken.
    """
    from scipy.special import ndtri  # scikit-learn depends on scipy; slow to import

    sizes = max(positive, 1.0), max(negative, 1.0)
    variance = np.maximum(hanley_mcneil(_GRID, *sizes), hanley_mcneil(_GRID, *sizes[::-1]))
    sampling = float(ndtri(miss)) ** 2 * variance
    reach = np.where(area >= _GRID, area - noise[0], noise[1] - area)
    inside = np.flatnonzero(np.abs(_GRID - area) <= np.sqrt(np.maximum(sampling, 0.0) + reach**2))
    low, high = (inside[0], inside[-1]) if inside.size else (0, _GRID.size - 1)
    return float(_GRID[low]), float(_GRID[high])


def precision_within_bins(counts: ScoreCounts) -> tuple[float, float]:
    """Return the least and the largest average precision that counts allow, however scores lie in bins."""
    curve, share = roc(counts), float(counts.positive.sum()) / max(counts.n, 1.0)
    return precision_between(curve, curve, (share, share))


def precision_between(lower: RocCurve, upper: RocCurve, share: tuple[float, float]) -> tuple[float, float]:
    """Return limits of an average precision, from those of a ROC curve at the edges of bins.

    Parameters
    ----------
    lower, upper : RocCurve
        As for `area_between`.
    share : (float, float)
        Limits of the share of positives.

    Notes
    -----
    Average precision is the mean over t from 0 to 1 of the precision R / (R + c F) at the threshold that
    first reaches the recall t: the recall R there is at least t, F is its false positive rate, and c
    negatives come upon a positive.

    *Lower.* Where the least recall at an edge is t or more, the threshold lies at this edge or above, so that
    F is at most the largest rate at the edge. For R = t the precision is least, and its integral is known.

    *Upper.* In the bin between two edges of which the upper one may have a recall below t, and the lower one
    a recall of t or more, R is at most the largest recall at its lower edge, and F at least the least rate at
    its upper one. The largest of these precisions is taken, over all bins that may be meant. In either case
    all scores of a bin may lie anywhere in it, also at one place.
    """
    low, high = share
    return (
        _lower(lower.tpr, (1.0 - low) / low * lower.fpr) if low > 0 else 0.0,
        _upper(lower.tpr, upper.tpr, (1.0 - high) / high * upper.fpr) if high > 0 else 0.0,
    )


def _lower(recall: Floats, negatives: Floats) -> float:
    """Return the integral of t / (t + negatives) over the recall that each edge adds."""
    start, end, against = recall[:-1], recall[1:], negatives[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(against > 0, against * np.log((end + against) / (start + against)), 0.0)
    return float((end - start - lost).sum())


def _upper(least: Floats, most: Floats, negatives: Floats) -> float:
    """Return the integral of the largest precision that may be had at each recall."""
    with np.errstate(invalid="ignore"):
        best = np.where(negatives[:-1] > 0, most[1:] / (most[1:] + negatives[:-1]), 1.0)
    ends = np.unique(np.concatenate([least, most]))
    middles = (ends[:-1] / 2 + ends[1:] / 2)[:, np.newaxis]
    is_meant = (least[:-1] < middles) & (middles <= most[1:])
    return float((np.diff(ends) * np.where(is_meant, best, 0.0).max(axis=1)).sum())
