"""Numbers of records above each score, as smooth as the noise of their counts demands.

A precision divides counts from the top, where bins are often empty. Noise below 0 is lost there and noise
above 0 stays, if each count is made plausible by itself: then the top of a curve is a share of noise.
"""

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.release.parts.count_table import nearest_with_sum

_WITHIN_NOISE = 4.0  # times its expected size, or 2.8 standard deviations: more is no noise
_SPARSE = 1 / 16  # of the records of a bin: with fewer in both its neighbours, its own have one score


class _Pool(NamedTuple):
    """Neighbouring bins: the noisy records of either class in them, and how many bins there are."""

    negative: float
    positive: float
    width: int

    def may_be_richer_than(self, upper: Self, noise: float) -> bool:
        """Return whether the share of positives falls from here to the next pool, but within the noise."""
        negative, positive, above, positive_above = (max(count, 0.0) for count in (*self[:2], *upper[:2]))
        fall = positive * above - positive_above * negative
        own, other = math.hypot(negative, positive), math.hypot(above, positive_above)
        spread = math.hypot(math.sqrt(upper.width) * own, math.sqrt(self.width) * other)
        return 0.0 < fall <= _WITHIN_NOISE * noise * spread

    def joined(self, upper: Self) -> Self:
        """Return both as one."""
        return type(self)(
            self.negative + upper.negative, self.positive + upper.positive, self.width + upper.width
        )


def records_above(noisy: Floats, noise: float, total: float, parts: int) -> Floats:
    """Return 0 and how many records lie in the last part of a bin, in the last two, and so on.

    Neighbouring bins are pooled where the share of positives falls with the score by what may be noise. Their
    noisy counts are added up before any is made plausible, so that noise of both signs cancels. Without noise
    nothing is pooled. Between the pools the numbers follow a monotone cubic curve: the records of a bin have
    scores that are as dense at its ends as its neighbours tell. The records of a bin between bins that are
    nearly empty, by more than their noise, are ties, as a tree with few leaves makes them.

    Parameters
    ----------
    noisy : ndarray of shape (2, n_bins)
        Released counts of the negative and the positive class, by rising score.
    noise : float
        Expected size of the noise of a count.
    total : float
        The plausible number of all records.
    parts : int
        Of each bin.

    Returns
    -------
    ndarray of shape (2, n_bins * parts + 1)

    References
    ----------
    M. Ayer, H. Brunk, G. Ewing, W. Reid and E. Silverman, "An Empirical Distribution Function for Sampling
    with Incomplete Information", 1955, doi:10.1214/aoms/1177728423, for pooling whatever falls.
    F. Fritsch and J. Butland, "A Method for Constructing Local Monotone Piecewise Cubic Interpolants", 1984,
    doi:10.1137/0905021, for the curve.
    """
    from scipy.interpolate import PchipInterpolator  # which takes its time to import

    pools = np.array(_pooled(noisy, noise)[::-1]).T
    widths = pools[2].astype(np.intp)
    means = np.repeat(pools[:2] / widths, widths, axis=1)
    counts = nearest_with_sum(means.ravel(), total).reshape(means.shape)
    above = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
    ends = np.pad(np.cumsum(widths), (1, 0))
    places = np.arange(noisy.shape[1] * parts + 1) / parts
    curve: Floats = PchipInterpolator(ends, above[:, ends], axis=1)(places)
    curve = np.maximum.accumulate(curve, axis=1)  # rounding may have moved one below the last
    have_ties = np.logical_or.reduceat(_are_ties(noisy.sum(axis=0)[::-1], noise), ends[:-1])
    for start, end in zip(ends[:-1][have_ties] * parts, ends[1:][have_ties] * parts, strict=True):
        curve[:, start:end] = curve[:, [start]]
    return curve


def _are_ties(records: Floats, noise: float) -> NDArray[np.bool_]:
    """Return which bins stand alone: both neighbours have far fewer records, whatever the noise."""
    most = np.maximum(records, 0.0) + _WITHIN_NOISE * noise
    neighbours = np.maximum(np.r_[0.0, most[:-1]], np.r_[most[1:], 0.0])
    alone: NDArray[np.bool_] = neighbours < _SPARSE * records
    return alone


def _pooled(noisy: Floats, noise: float) -> list[_Pool]:
    """Return pools of neighbours by rising score, so that the share falls nowhere by what may be noise."""
    pools: list[_Pool] = []
    for negative, positive in noisy.T.tolist():
        last = _Pool(negative, positive, 1)
        while pools and pools[-1].may_be_richer_than(last, noise):
            last = pools.pop().joined(last)
        pools.append(last)
    return pools
