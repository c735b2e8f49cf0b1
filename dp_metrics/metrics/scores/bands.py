"""How sure a table of scores is: bands for its ROC curve and its calibration curve."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.scores.curve_formulas import RocCurve
from dp_metrics.release.noise import CountsNoise, as_floats
from dp_metrics.release.ratio_limits import NoisyRatio, RatioCells, noisy_ratio
from dp_metrics.release.released import POPULATION_NOTE

__all__ = [
    "CALIBRATION",
    "CalibrationBand",
    "RocBand",
    "calibration_limits",
    "edges_of_limits",
    "roc_limits",
]

CALIBRATION = f"The share of positives in each bin of the score {POPULATION_NOTE}"
"""What a calibration band is about."""

_MOST_BINS = 64

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


def edges_of_limits(bins: int) -> range:
    """Return the places of the inner edges between so many bins at which the curve is limited.

    The limits share the probability to miss: more than some sixty edges say no more, and take their time.
    """
    step = -(-bins // _MOST_BINS)
    return range(step, bins, step)


def roc_limits(
    noise: CountsNoise, n: int | None, edges: Floats, limits_of: RatioLimits
) -> tuple[RocCurve, RocCurve]:
    """Return the lines between which the ROC curve lies, if all limits of shares hold.

    It is the curve of the scores in the bins between these edges, which are those of `thresholds`.

    Parameters
    ----------
    noise : CountsNoise
        Of the negative class by bin, then of the positive one.
    n : int or None
        Number of all records, if public.
    edges : ndarray of shape (n_bins + 1,)
        Of the bins.
    limits_of : callable
        Limits of a share, from its noisy counts: two at each of the `edges_of_limits` have to hold.

    Notes
    -----
    At each inner edge the share of a class above it is a ratio of two sums of counts. Shares fall from edge
    to edge, so that the least upper limit of those before holds as well. A point of the curve between two
    edges is a mixture of the points at both, and so are corners of the boxes around them: the curve of the
    binned scores, which is straight there, lies between the lines through the corners.
    """
    bins, sides = edges.size - 1, []
    inner = edges_of_limits(bins)
    for start in (0, bins):
        cells = [
            RatioCells([*range(start + edge, start + bins)], [*range(start, start + edge)], (1.0, 1.0))
            for edge in inner
        ]
        low, high = np.array([limits_of(noisy_ratio(noise, one, n)) for one in cells]).reshape(-1, 2).T
        sides.append((np.maximum.accumulate(low[::-1]), np.minimum.accumulate(high)[::-1]))
    (fpr_low, fpr_high), (tpr_low, tpr_high) = sides
    thresholds = np.concatenate([[np.inf], edges[inner[::-1]], edges[:1]])
    lower, upper = (
        RocCurve(np.r_[0.0, x, 1.0], np.r_[0.0, y, 1.0], thresholds)
        for x, y in ((fpr_high, tpr_low), (fpr_low, tpr_high))
    )
    return lower, upper


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
