"""Records of two classes with a score, and the curves and areas that follow from counts of them.

A precision divides counts from the top, where bins are often empty. Noise below 0 is lost there and noise
above 0 stays, if each count is made plausible by itself: then the top of a curve is a share of noise.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import ArgumentShape, Records
from dp_metrics.inputs.labels import LabelColumns, LabelSet
from dp_metrics.inputs.options import Array, ByName, Codes, Floats
from dp_metrics.quantities.tables import nearest_with_sum, quotients


def two_classes(labels: Any, pos_label: Any, form: ArgumentShape, name: str) -> LabelColumns:
    """Return the two classes that a caller named, by default 0 and 1, and which column of scores is read.

    Parameters
    ----------
    labels, pos_label
        As the caller got them; without `pos_label` the second of the sorted labels is positive.
    form : ArgumentShape
        The form of the scores.
    name : str
        What they are called.
    """
    known = LabelSet.of(labels)
    if known.size != 2:
        raise ValueError("labels must be two: scores tell one class from the other.")
    columns = LabelColumns.of(known, form, name, positive=pos_label)
    return replace(columns, columns=1)  # of two that of the positive label is read: both forms merge


def blocks_of_scores(
    records: Records, classes: LabelColumns, read: Callable[[Array], Floats]
) -> Iterator[tuple[NDArray[np.bool_], Floats, Any]]:
    """Yield blocks of whether records of valid form are positive, of their scores, and of their units.

    Parameters
    ----------
    records : Records
        Of valid form.
    classes : LabelColumns
        Of `two_classes`.
    read : callable
        The scores of a block, which are checked.

    Raises
    ------
    ValueError
        If a record is invalid.
    """
    for codes, block, units in records.blocks():
        yield classes.labels.sorted_codes(codes) == classes.positive, read(block), units


def two_classes_from_unit(x: Floats) -> tuple[Any, ...]:
    """Return negatives with scores from 0 up to 1, and positives with scores from 1 down to 0."""
    return np.where(x > 0.5, 1, 0), np.where(x > 0.5, 2.0 - 2.0 * x, 2.0 * x)


OF_SCORES: ByName = {"responses": ("predict_proba",), "from_unit": two_classes_from_unit}
"""Facts about every metric that judges probabilities of two classes by counts of records, or sums."""


_PARTS = 16  # a bin is spread into these: its records as ties would make an average precision low
FAR = 2.0  # standard deviations of its noise, by which the size of a class is to exceed it
_LEAST = 0.5  # records: fewer are none, once rounded


class RocCurve(NamedTuple):
    """What `sklearn.metrics.roc_curve` returns."""

    fpr: Floats
    tpr: Floats
    thresholds: Floats


class PrecisionRecallCurve(NamedTuple):
    """What `sklearn.metrics.precision_recall_curve` returns."""

    precision: Floats
    recall: Floats
    thresholds: Floats


class CalibrationCurve(NamedTuple):
    """What `sklearn.calibration.calibration_curve` returns."""

    prob_true: Floats
    prob_pred: Floats


class NetBenefitCurve(NamedTuple):
    """The net benefit of a model by threshold, and that of treating all."""

    thresholds: Floats
    net_benefit: Floats
    treat_all: Floats


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Plausible numbers of records by class and bin of the score: at least 0, and fractions.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Public edges of the bins.
    negative, positive : ndarray of shape (n_bins,)
        Records of either class.
    noisy : ndarray of shape (2, n_bins)
        Of either class, the noisy counts that they come from.
    noise : float
        Expected size of the noise of a noisy count.
    """

    edges: Floats
    negative: Floats
    positive: Floats
    noisy: Floats
    noise: float

    @property
    def total(self) -> Floats:
        """Records of both classes."""
        return self.negative + self.positive

    @property
    def n(self) -> float:
        """All records."""
        return float(self.total.sum())

    @property
    def ends(self) -> Floats:
        """The edges of the bins of probabilities, from 0 to 1: those beyond are counted in the end bins."""
        return np.r_[0.0, self.edges[1:-1], 1.0]

    @property
    def middles(self) -> Floats:
        """The middle of each bin of probabilities."""
        return self.ends[:-1] / 2 + self.ends[1:] / 2


def _from_above(counts: Floats) -> Floats:
    """Return 0 and the sums over the last bin, the last two, and so on."""
    return np.r_[0.0, np.cumsum(counts[::-1])]


def _shares(above: Floats, others: Floats) -> Floats:
    """Return the shares of a class above each threshold; those of the other class if there is none.

    If no class has any record, they grow evenly.
    """
    for sums in (above, others):
        if sums[-1] > 0:
            return sums / sums[-1]
    return np.linspace(0.0, 1.0, above.size)


def roc(counts: ScoreCounts) -> RocCurve:
    """Return the ROC curve from (0, 0) to (1, 1); without one class it is the diagonal."""
    false, true = _from_above(counts.negative), _from_above(counts.positive)
    thresholds = np.r_[np.inf, counts.edges[-2::-1]]
    return RocCurve(_shares(false, true), _shares(true, false), thresholds)


def area_under_roc(counts: ScoreCounts) -> float:
    """Return the area under the ROC curve, in which a pair in one bin counts half.

    The pairs are those of the noisy counts, in which noise of both signs cancels; plausible counts, which are
    nowhere below 0, are nearer to chance. They tell the area only where a class is as small as its noise.
    """
    deviation = math.sqrt(2 * counts.negative.size) * counts.noise  # of the size of a class
    if (counts.noisy.sum(axis=1) > FAR * deviation).all():
        counts = replace(counts, negative=counts.noisy[0], positive=counts.noisy[1])
    fpr, tpr, _ = roc(counts)
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
    false, true = records_above(counts.noisy, counts.noise, counts.n, _PARTS)
    any_positive = true[-1] > 0
    recall = true / true[-1] if any_positive else np.r_[0.0, np.ones(true.size - 1)]
    precision = quotients(true, false + true, float(any_positive))
    precision[0] = 1.0
    return precision, recall


def even_bins(counts: ScoreCounts, n_bins: int) -> tuple[Codes, Floats]:
    """Return in which even bin of [0, 1] each bin has its middle, and the records of each even bin."""
    places = np.minimum((counts.middles * n_bins).astype(np.intp), n_bins - 1)
    return places, np.bincount(places, counts.total, n_bins).astype(np.float64)


def calibration(counts: ScoreCounts, n_bins: int) -> CalibrationCurve:
    """Return the share of positives and the mean score in even bins, as if scores lay mid-bin."""
    places, records = even_bins(counts, n_bins)
    positives, scores = (
        np.bincount(places, weights, minlength=n_bins).astype(np.float64)
        for weights in (counts.positive, counts.total * counts.middles)
    )
    return shown(records, positives, scores)


def are_shown(records: Floats) -> NDArray[np.bool_]:
    """Return which bins are not empty, by their plausible numbers of records."""
    return records > _LEAST


def shown(records: Floats, positives: Floats, scores: Floats) -> CalibrationCurve:
    """Return the curve of bins that are not empty, given sums over each bin."""
    here = are_shown(records)
    # rounded, a mean of scores of 1 could be larger
    return CalibrationCurve(positives[here] / records[here], np.minimum(scores[here] / records[here], 1.0))


_WITHIN_NOISE = 4.0  # times its expected size, or 2.8 standard deviations: more is no noise
_SPARSE = 1 / 16  # of the records of a bin: with fewer in both its neighbours, its own have one score


def _may_be_richer(lower: Floats, upper: Floats, noise: float) -> bool:
    """Return whether the share of positives falls from one pool to the next, but within the noise.

    A pool holds the noisy negative and positive records of neighbouring bins, and how many bins these are.
    """
    (negative, positive), (above, positive_above) = np.maximum(lower[:2], 0.0), np.maximum(upper[:2], 0.0)
    fall = positive * above - positive_above * negative
    own, other = math.hypot(negative, positive), math.hypot(above, positive_above)
    spread = math.hypot(math.sqrt(upper[2]) * own, math.sqrt(lower[2]) * other)
    return bool(0.0 < fall <= _WITHIN_NOISE * noise * spread)


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

    means, widths = pooled_means(noisy, noise)
    means, widths = means[:, ::-1], widths[::-1]
    counts = nearest_with_sum(means.ravel(), total).reshape(means.shape)
    above = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
    ends = np.pad(np.cumsum(widths), (1, 0))
    places = np.arange(noisy.shape[1] * parts + 1) / parts
    curve: Floats = PchipInterpolator(ends, above[:, ends], axis=1)(places)
    curve = np.maximum.accumulate(curve, axis=1)  # rounding may have moved one below the last
    records = noisy.sum(axis=0)[::-1]
    most = np.maximum(records, 0.0) + _WITHIN_NOISE * noise
    neighbours = np.maximum(np.r_[0.0, most[:-1]], np.r_[most[1:], 0.0])
    have_ties = np.logical_or.reduceat(neighbours < _SPARSE * records, ends[:-1])
    for start, end in zip(ends[:-1][have_ties] * parts, ends[1:][have_ties] * parts, strict=True):
        curve[:, start:end] = curve[:, [start]]
    return curve


def pooled_means(noisy: Floats, noise: float) -> tuple[Floats, Codes]:
    """Return, for each class and bin, the mean count of its pool, and how many bins each pool has.

    Neighbours are pooled so that with a rising score the share falls nowhere by what may be noise.
    """
    pools: list[Floats] = []
    for last in np.append(noisy, np.ones((1, noisy.shape[1])), axis=0).T:
        while pools and _may_be_richer(pools[-1], last, noise):
            last = pools.pop() + last
        pools.append(last)
    of_pools = np.array(pools).T
    widths = of_pools[2].astype(np.intp)
    return np.repeat(of_pools[:2] / widths, widths, axis=1), widths
