"""Private curves of scores and areas under them, drop-in replacements for those of `sklearn.metrics`."""

from __future__ import annotations

from typing import Any, Unpack

from numpy.typing import ArrayLike

from dp_metrics.metrics._metric import CountSettings, asks, private
from dp_metrics.metrics.scores.curve_formulas import (
    PrecisionRecallCurve,
    RocCurve,
    average_precision,
    precision_recall,
    roc,
)
from dp_metrics.metrics.scores.table import score_plan
from dp_metrics.metrics.scores.two_classes import OF_SCORES


@private("sklearn.metrics.roc_curve", **OF_SCORES)
def private_roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    **settings: Unpack[CountSettings],
) -> RocCurve:
    """ROC curve (true against false positive rate) with epsilon-differential privacy for the test records.

    Returns
    -------
    RocCurve
        A named tuple (fpr, tpr, thresholds) of arrays of shape (n_bins + 1,), as scikit-learn's with
        ``drop_intermediate=False``: from (0, 0) at the threshold infinity to (1, 1) at the lowest edge, and
        never falling. Without a record in one class, by the noisy counts, the diagonal.

    See Also
    --------
    ScoreSummary : One release from which all curves and areas follow, and from pieces.
    private_roc_auc_score : The area under the curve, more accurate than what the curve tells.

    Notes
    -----
    The thresholds are public edges, and the points in between are joined by lines, as records with one score
    are in scikit-learn. ``RocCurveDisplay(fpr=fpr, tpr=tpr).plot()`` draws the curve.

    On models of three tasks (``benchmarks/classifiers.py`` of 308a3eb) the mean distance from the curve
    without privacy is 0.02 to 0.04 at n * epsilon = 300, 0.01 to 0.02 at 1,000, 0.004 to 0.01 at 3,000 and
    0.002 to 0.004 at 10,000.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_roc_curve
    >>> y_true, y_score = [0, 0, 1, 1] * 250, [0.1, 0.4, 0.35, 0.8] * 250
    >>> fpr, tpr, thresholds = private_roc_curve(y_true, y_score, epsilon=1.0)
    >>> bool(0.3 < tpr[thresholds >= 0.5][-1] < 0.7)  # exactly 0.5
    True
    """
    return asks(score_plan, roc, labels=labels, pos_label=pos_label, edges=edges, bins=bins)


@private("sklearn.metrics.precision_recall_curve", **OF_SCORES)
def private_precision_recall_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    **settings: Unpack[CountSettings],
) -> PrecisionRecallCurve:
    """Precision-recall curve with epsilon-differential privacy for the test records.

    Returns
    -------
    PrecisionRecallCurve
        A named tuple (precision, recall, thresholds) as scikit-learn's: arrays of shape (n_bins + 1,), which
        end with precision 1 and recall 0, and the lower edges of the bins, rising. Where no record is
        predicted positive, by the noisy counts, the precision is 1; without any positive record all
        precisions but the last are 0 and all recalls 1.

    See Also
    --------
    ScoreSummary : One release from which all curves and areas follow, and from pieces.
    private_average_precision_score : One number.

    Notes
    -----
    ``PrecisionRecallDisplay(precision=precision, recall=recall).plot()`` draws the curve. Bins are pooled
    where the share of positives falls with the score by what may be noise.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_precision_recall_curve
    >>> y_true, y_score = [0, 0, 1, 1] * 250, [0.1, 0.4, 0.35, 0.8] * 250
    >>> precision, recall, thresholds = private_precision_recall_curve(y_true, y_score, epsilon=1.0)
    >>> float(precision[-1]), float(recall[-1]), float(recall[0])
    (1.0, 0.0, 1.0)
    """
    return asks(score_plan, precision_recall, labels=labels, pos_label=pos_label, edges=edges, bins=bins)


@private("sklearn.metrics.average_precision_score", greater_is_better=True, **OF_SCORES)
def private_average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    **settings: Unpack[CountSettings],
) -> float:
    """Average precision (area under precision and recall) with epsilon-differential privacy.

    Returns
    -------
    float
        The private average precision, in [0, 1]; 0 without a positive record, by the noisy counts.

    See Also
    --------
    ScoreSummary : One release from which all curves and areas follow, and from pieces.
    private_roc_auc_score : Which does not depend on how many records are positive.

    Notes
    -----
    Computed as if the scores within a bin were as dense as in its neighbours, and as ties where the bins
    beside it are nearly empty. Bins are pooled where the share of positives falls with the score by what may
    be noise.

    On models of three tasks (``benchmarks/classifiers.py`` of 308a3eb) the mean absolute error is 0.04 to
    0.09 at n * epsilon = 300, 0.02 to 0.05 at 1,000, 0.006 to 0.02 at 3,000 and 0.003 to 0.011 at 10,000: the
    fewer positives, the larger. Very good scores of rare positives come out too low, useless ones too high.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_average_precision_score
    >>> y_true, y_score = [0, 0, 1, 1] * 250, [0.1, 0.4, 0.35, 0.8] * 250
    >>> 0.6 < private_average_precision_score(y_true, y_score, epsilon=1.0) <= 1  # exactly 0.83
    True
    """
    return asks(score_plan, average_precision, labels=labels, pos_label=pos_label, edges=edges, bins=bins)
