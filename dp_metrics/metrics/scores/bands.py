"""How sure a table of scores is: bands for its ROC curve and calibration curve, and limits of its area."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.scores.curve_formulas import RocCurve, ScoreCounts
from dp_metrics.release.noise import CountsNoise, as_floats
from dp_metrics.release.ratio_limits import NoisyRatio, RatioCells, noisy_ratio
from dp_metrics.release.released import POPULATION_NOTE

__all__ = [
    "CALIBRATION",
    "CalibrationBand",
    "RocBand",
    "area_between",
    "area_limits",
    "calibration_limits",
    "hanley_mcneil",
    "limits_around",
    "roc_limits",
]

CALIBRATION = f"The share of positives in each bin of the score {POPULATION_NOTE}"
"""What a calibration band is about."""

_GRID = np.linspace(0.0, 1.0, 2001)
_FAR = 2.0  # standard deviations of its noise, by which the size of a class is to exceed it

RatioLimits: TypeAlias = Callable[[NoisyRatio], tuple[float, float]]
"""Of noisy counts a and b, limits of a / (a + b)."""


@dataclass(frozen=True, eq=False)
class RocBand:
    """A band in which a whole ROC curve lies: between two lines from (0, 0) to (1, 1).

    Parameters
    ----------
    lower, upper : RocCurve
        The lines, each a tuple (fpr, tpr, thresholds).
    confidence : float
        Least probability with which all of the curve lies between them.
    about : str
        What curve that is.

    Examples
    --------
    >>> from dp_metrics import private_roc_curve, roc_band, with_result
    >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 400 + [0.6] * 200 + [0.9] * 400
    >>> band = roc_band(with_result(private_roc_curve)(y_true, y_score, epsilon=1.0))
    >>> bool((band.lower.tpr <= band.upper.tpr).all())
    True
    """

    lower: RocCurve
    upper: RocCurve
    confidence: float
    about: str

    def shade(self, ax: Any, **style: Any) -> Any:
        """Shade the band in axes of matplotlib, such as ``RocCurveDisplay(...).plot().ax_``.

        Parameters
        ----------
        ax : matplotlib Axes
            Where the curve is drawn.
        **style
            As for `matplotlib.axes.Axes.fill`.

        Returns
        -------
        list of matplotlib.patches.Polygon
            What was drawn.
        """
        x, y = (np.r_[low, high[::-1]] for low, high in zip(self.lower[:2], self.upper[:2], strict=True))
        return ax.fill(x, y, **{"alpha": 0.25, "linewidth": 0, **style})


@dataclass(frozen=True, eq=False)
class CalibrationBand:
    """Limits of the share of positives in each bin of the score, which hold for all bins at once.

    Parameters
    ----------
    prob_pred : ndarray of shape (n_bins,)
        The middle of each bin.
    lower, upper : ndarray of shape (n_bins,)
        The limits; 0 and 1 where a bin tells nothing.
    confidence : float
        Probability with which all limits hold.
    about, note : str
        What they are limits of, and how sure they are.
    """

    prob_pred: Floats
    lower: Floats
    upper: Floats
    confidence: float
    about: str
    note: str

    def shade(self, ax: Any, **style: Any) -> Any:
        """Shade the band in axes of matplotlib, such as ``CalibrationDisplay(...).plot().ax_``.

        Parameters
        ----------
        ax : matplotlib Axes
            Where the curve is drawn.
        **style
            As for `matplotlib.axes.Axes.fill_between`.

        Returns
        -------
        matplotlib.collections.PolyCollection
            What was drawn.
        """
        return ax.fill_between(
            self.prob_pred, self.lower, self.upper, **{"alpha": 0.25, "linewidth": 0, **style}
        )


def roc_limits(
    noise: CountsNoise, n: int | None, edges: Floats, limits_of: RatioLimits, first: int = 0
) -> tuple[RocCurve, RocCurve]:
    """Return the lines between which the ROC curve lies, if all limits of shares hold.

    Parameters
    ----------
    noise : CountsNoise
        Of the negative class by bin, then of the positive one; or of tables one after the other.
    n : int or None
        Number of all records, if public.
    edges : ndarray of shape (n_bins + 1,)
        Of the bins.
    limits_of : callable
        Limits of a share, from its noisy counts; 2 (n_bins - 1) of them have to hold.
    first : int, default=0
        Where the table begins.

    Notes
    -----
    At each inner edge the share of a class above it is a ratio of two sums of counts. Shares fall from edge
    to edge, so that the least upper limit of those before holds as well. A point of the curve between two
    edges is a mixture of the points at both, and so are corners of the boxes around them: the curve of the
    binned scores, which is straight there, lies between the lines through the corners.
    """
    bins, sides = edges.size - 1, []
    for start in (first, first + bins):
        cells = [
            RatioCells([*range(start + edge, start + bins)], [*range(start, start + edge)], (1.0, 1.0))
            for edge in range(1, bins)
        ]
        low, high = np.array([limits_of(noisy_ratio(noise, one, n)) for one in cells]).reshape(-1, 2).T
        sides.append((np.maximum.accumulate(low[::-1]), np.minimum.accumulate(high)[::-1]))
    (fpr_low, fpr_high), (tpr_low, tpr_high) = sides
    thresholds = np.concatenate([[np.inf], edges[-2::-1]])
    lower, upper = (
        RocCurve(np.r_[0.0, x, 1.0], np.r_[0.0, y, 1.0], thresholds)
        for x, y in ((fpr_high, tpr_low), (fpr_low, tpr_high))
    )
    return lower, upper


def area_between(lower: RocCurve, upper: RocCurve) -> tuple[float, float]:
    """Return the areas under both lines."""
    low, high = (
        float((np.diff(line.fpr) * (line.tpr[1:] + line.tpr[:-1])).sum() / 2) for line in (lower, upper)
    )
    return low, high


def area_limits(
    noise: CountsNoise, counts: ScoreCounts, miss: float, first: int = 0
) -> tuple[float, float] | None:
    """Return approximate limits of the area under the ROC curve of the binned scores among all people.

    Parameters
    ----------
    noise : CountsNoise
        As in `roc_limits`.
    counts : ScoreCounts
        The plausible counts of the same table.
    miss : float
        Probability with which either limit may miss.
    first : int, default=0
        Where the table begins.

    Returns
    -------
    (float, float) or None
        None where a class does not exceed its noise: there limits made so covered 84 to 93 %, not 95 %.

    Notes
    -----
    For each area theta the sum of (W - theta) times the noisy pairs of records, W = 1, 1/2 or 0, has the mean
    0 up to the covariance of the noise, which is taken off. Its error is taken to be normal with the variance
    of J. A. Hanley and B. J. McNeil (1982, doi:10.1148/radiology.143.1.7063747), plus Laplace noise of the
    variance that the noise of the counts makes.
    """
    from dp_metrics.release.normal_limits import normal_laplace_tail  # slow to import

    bins = counts.negative.size
    raw = as_floats(noise.noisy[first : first + 2 * bins])
    negative, positive = raw.reshape(2, bins)
    places = np.arange(bins)
    wins = (places > places[:, np.newaxis]) + 0.5 * (places == places[:, np.newaxis])
    cells = np.eye(len(noise.noisy))[first : first + 2 * bins]
    variance, covariance = (noise.covariance(cells[0], cell) for cell in cells[:2])
    size = variance * bins + covariance * bins * (bins - 1)  # variance of the noise of a class
    if min(negative.sum(), positive.sum()) <= _FAR * np.sqrt(size):
        return None
    pairs = negative.sum() * positive.sum() - covariance * bins**2
    area = (negative @ wins @ positive - covariance * wins.sum()) / pairs
    of_negative, of_positive = (max(float(each.sum()), 1.0) for each in (counts.negative, counts.positive))
    slopes = np.concatenate([wins @ counts.positive, counts.negative @ wins])
    both = np.repeat([of_positive, of_negative], bins)

    slopes, both = slopes @ cells, both @ cells  # in all tables
    linear = noise.covariance(slopes, slopes) - 2 * _GRID * noise.covariance(slopes, both)
    linear += _GRID**2 * noise.covariance(both, both)
    square = (wins**2).sum() - 2 * _GRID * wins.sum() + _GRID**2 * bins**2
    sampling = np.sqrt(np.maximum(hanley_mcneil(_GRID, of_positive, of_negative), 0.0))
    added = np.sqrt(np.maximum(linear + variance**2 * square, 0.0) / 2) / (of_negative * of_positive)
    inside = np.flatnonzero(normal_laplace_tail(np.abs(_GRID - area), sampling, added) > 2 * miss)
    if not inside.size:
        return (1.0, 1.0) if area > 1 else (0.0, 0.0)
    low, high = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, _GRID.size - 1)
    return float(_GRID[low]), float(_GRID[high])


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
    As in MOVER, what the noise may have done and what the sample may have done, with the variance of Hanley
    and McNeil at the limit, are added up in squares.
    """
    from scipy.special import ndtri  # scikit-learn depends on scipy; slow to import

    sampling = float(ndtri(miss)) ** 2 * hanley_mcneil(_GRID, max(positive, 1.0), max(negative, 1.0))
    reach = np.where(area >= _GRID, area - noise[0], noise[1] - area)
    inside = np.flatnonzero(np.abs(_GRID - area) <= np.sqrt(np.maximum(sampling, 0.0) + reach**2))
    low, high = (inside[0], inside[-1]) if inside.size else (0, _GRID.size - 1)
    return float(_GRID[low]), float(_GRID[high])


def calibration_limits(noise: CountsNoise, n_bins: int, miss: float, unit: int = 1) -> tuple[Floats, Floats]:
    """Return approximate limits of the share of positives in each bin among all people.

    Parameters
    ----------
    noise : CountsNoise
        Of numbers of records by class and bin; or by end of the bin, class and bin.
    n_bins : int
        Number of bins.
    miss : float
        Probability with which each limit may miss.
    unit : int, default=1
        What a record counts.
    """
    from dp_metrics.release.normal_limits import quick_ratio_limits  # slow to import

    negative, positive = as_floats(noise.noisy).reshape(-1, 2, n_bins).sum(axis=0) / unit
    of_bin = np.zeros((2, len(noise.noisy) // (2 * n_bins), 2, n_bins))
    of_bin[0, :, 0, 0] = of_bin[1, :, 1, 0] = 1.0 / unit  # the first bin: one class, then the other
    one, other = of_bin.reshape(2, -1)
    moments = noise.covariance(other, other), noise.covariance(one, one), noise.covariance(one, other)
    return quick_ratio_limits(positive, negative, moments, miss)
