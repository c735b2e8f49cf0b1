"""Curves and areas that follow from counts of scores, in the order and shape of scikit-learn."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.scores.ranked_counts import records_above
from dp_metrics.release.stored.codec import storable

_PARTS = 16  # a bin is spread into these: its records as ties would make an average precision low
FAR = 2.0  # standard deviations of its noise, by which the size of a class is to exceed it
_LEAST = 0.5  # records: fewer are none, once rounded


@storable("RocCurve")
class RocCurve(NamedTuple):
    """What `sklearn.metrics.roc_curve` returns."""

    fpr: Floats
    tpr: Floats
    thresholds: Floats


@storable("PrecisionRecallCurve")
class PrecisionRecallCurve(NamedTuple):
    """What `sklearn.metrics.precision_recall_curve` returns."""

    precision: Floats
    recall: Floats
    thresholds: Floats


@storable("CalibrationCurve")
class CalibrationCurve(NamedTuple):
    """What `sklearn.calibration.calibration_curve` returns."""

    prob_true: Floats
    prob_pred: Floats


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Plausible numbers of records by class and bin of the score: at least 0, and fractions.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Public edges of the bins.
    negative, positive : ndarray of shape (n_bins,)
        Records of either class.
    noisy : ndarray of shape (2, n_bins) or None, default=None
        Of either class, the noisy counts that they come from; None: they have no noise.
    noise : float, default=0.0
        Expected size of the noise of a noisy count.
    """

    edges: Floats
    negative: Floats
    positive: Floats
    noisy: Floats | None = None
    noise: float = 0.0

    @property
    def total(self) -> Floats:
        """Records of both classes."""
        return self.negative + self.positive

    @property
    def n(self) -> float:
        """All records."""
        return float(self.total.sum())

    @property
    def middles(self) -> Floats:
        """The middle of each bin."""
        middles: Floats = self.edges[:-1] / 2 + self.edges[1:] / 2
        return middles


def _from_above(counts: Floats) -> Floats:
    """Return 0 and the sums over the last bin, the last two, and so on."""
    return np.concatenate([[0.0], np.cumsum(counts[::-1])])


def _shares(above: Floats, others: Floats) -> Floats:
    """Return the shares of a class above each threshold; those of the other class if there is none.

    If no class has any record, they grow evenly.
    """
    for sums in (above, others):
        if sums[-1] > 0:
            shares: Floats = sums / sums[-1]
            return shares
    return np.linspace(0.0, 1.0, above.size)


def roc(counts: ScoreCounts) -> RocCurve:
    """Return the ROC curve from (0, 0) to (1, 1); without one class it is the diagonal."""
    false, true = _from_above(counts.negative), _from_above(counts.positive)
    thresholds = np.concatenate([[np.inf], counts.edges[-2::-1]])
    return RocCurve(_shares(false, true), _shares(true, false), thresholds)


def area_under_roc(counts: ScoreCounts) -> float:
    """Return the area under the ROC curve, in which a pair in one bin counts half.

    The pairs are those of the noisy counts, in which noise of both signs cancels; plausible counts, which are
    nowhere below 0, are nearer to chance. They tell the area only where a class is as small as its noise.
    """
    deviation = math.sqrt(2 * counts.negative.size) * counts.noise  # of the size of a class
    classes = np.stack([counts.negative, counts.positive])
    if counts.noisy is not None and (counts.noisy.sum(axis=1) > FAR * deviation).all():
        classes = counts.noisy
    false, true = map(_from_above, classes)
    fpr, tpr = _shares(false, true), _shares(true, false)
    return float(np.clip((np.diff(fpr) * (tpr[1:] + tpr[:-1])).sum() / 2.0, 0.0, 1.0))


def precision_recall(counts: ScoreCounts) -> PrecisionRecallCurve:
    """Return precision and recall by rising threshold; at last (1, 0), as where no record is found.

    Without a positive record all precisions before are 0 and all recalls 1. The counts are as smooth as their
    noise demands: see `records_above`.
    """
    precision, recall = (each[::_PARTS].copy() for each in _precision_and_recall(counts))
    return PrecisionRecallCurve(precision[::-1], recall[::-1], counts.edges[:-1])


def average_precision(counts: ScoreCounts) -> float:
    """Return the average precision, with the scores of a bin spread as its neighbours tell; 0 without any."""
    precision, recall = _precision_and_recall(counts)
    return float(np.clip((np.diff(recall) * precision[1:]).sum(), 0.0, 1.0))


def _precision_and_recall(counts: ScoreCounts) -> tuple[Floats, Floats]:
    """Return both above each part of a bin, from the top, where the precision is 1 and the recall 0."""
    noisy = np.stack([counts.negative, counts.positive]) if counts.noisy is None else counts.noisy
    false, true = records_above(noisy, counts.noise, counts.n, _PARTS)
    any_positive = true[-1] > 0
    recall = true / true[-1] if any_positive else np.r_[0.0, np.ones(true.size - 1)]
    found = false + true
    precision = np.divide(true, found, out=np.full_like(true, float(any_positive)), where=found > 0)
    precision[0] = 1.0
    return precision, recall


def even_bins(counts: ScoreCounts, n_bins: int) -> NDArray[np.intp]:
    """Return in which even bin of [0, 1] each bin has its middle."""
    return np.minimum((counts.middles * n_bins).astype(np.intp), n_bins - 1)


def calibration(counts: ScoreCounts, n_bins: int) -> CalibrationCurve:
    """Return the share of positives and the mean score in even bins, as if scores lay mid-bin."""
    middles, places = counts.middles, even_bins(counts, n_bins)
    records, positives, scores = (
        np.bincount(places, weights, minlength=n_bins).astype(np.float64)
        for weights in (counts.total, counts.positive, counts.total * middles)
    )
    return shown(records, positives, scores)


def are_shown(records: Floats) -> NDArray[np.bool_]:
    """Return which bins are not empty, by their plausible numbers of records."""
    here: NDArray[np.bool_] = records > _LEAST
    return here


def shown(records: Floats, positives: Floats, scores: Floats) -> CalibrationCurve:
    """Return the curve of bins that are not empty, given sums over each bin."""
    here = are_shown(records)
    # rounded, a mean of scores of 1 could be larger
    return CalibrationCurve(positives[here] / records[here], np.minimum(scores[here] / records[here], 1.0))
