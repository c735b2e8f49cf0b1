"""Private classification metrics, drop-in replacements for those of `sklearn.metrics`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import differing_block
from dp_metrics.inputs.losses import RecordLoss, zero_one_loss
from dp_metrics.inputs.readers import label_pairs
from dp_metrics.inputs.shape import Shape, check_same_columns
from dp_metrics.metrics._metric import Settings, asks, private
from dp_metrics.metrics._probabilities import OF_PROBABILITIES, LabelledProbabilities, mean_or_sum
from dp_metrics.metrics._shares import share_of_records
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.plan import Plan


def _log_loss_plan(shape: Shape, *, max_loss: Any, normalize: Any, **options: Any) -> Plan:
    records = LabelledProbabilities.of(shape, **options)
    parts = (records.log_loss(max_loss),)
    return Plan(parts, records.reader, mean_or_sum(normalize), unstated=records.unstated)


@private(
    "sklearn.metrics.log_loss", greater_is_better=False, discloses_n={"normalize": True}, **OF_PROBABILITIES
)
def private_log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    max_loss: float | None = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Log loss (cross-entropy) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    max_loss : float or None, default=None
        Public cap of one record's loss, in nats. None: what scikit-learn's clipping of probabilities implies,
        -log(eps) for the float type of `y_proba` (36.04 for float64, 15.94 for float32). A smaller one,
        such as log(1 + exp(10)) for logits restricted to [-10, 10], gives a more accurate answer.

    Returns
    -------
    float
        The private log loss; finite, at least 0.

    See Also
    --------
    private_brier_score_loss : Squared error of the probabilities.

    Notes
    -----
    A certain miss, a true label with probability 0, has the loss of 90 usual records. If about 3 / epsilon to
    60 / epsilon of them make most of the result, the default may miss them. With ten in 1,000 records at
    epsilon 1 the loss is 0.75; the default errs by 0.28, "geometric" by 0.036. The remedy is `max_loss`, or,
    which is the same, to clip all probabilities at a public constant: with ``max_loss=math.log(1000)``, for
    probabilities from 0.001 on, the default errs by 0.013.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 5.1 and Appendix D.2.

    Examples
    --------
    >>> from dp_metrics import private_log_loss
    >>> y_true = ["ham", "spam", "spam", "ham"] * 250
    >>> y_proba = [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.65, 0.35]] * 250
    >>> loss = private_log_loss(y_true, y_proba, epsilon=1.0, labels=["ham", "spam"])
    >>> 0.1 < loss < 0.5  # exactly 0.216
    True
    """
    return asks(_log_loss_plan, labels=labels, max_loss=max_loss, normalize=normalize)


def _brier_plan(shape: Shape, *, pos_label: Any, scale_by_half: Any, **options: Any) -> Plan:
    records = LabelledProbabilities.of(shape, pos_label=pos_label, **options)
    return Plan((records.brier_loss(pos_label, scale_by_half),), records.reader, unstated=records.unstated)


@private(
    "sklearn.metrics.brier_score_loss", greater_is_better=False, mechanism="geometric", **OF_PROBABILITIES
)
def private_brier_score_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    epsilon: float,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    scale_by_half: bool | str = "auto",
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Brier score loss with epsilon-differential privacy for the test records.

    The mean squared distance between the probabilities and the true label. One record's distance is clipped
    to what probabilities with the sum 1 can reach.

    Parameters
    ----------
    pos_label : label or None, default=None
        The label whose probability a single column of `y_proba` holds; None: the second in sorted order.
    scale_by_half : bool or "auto", default="auto"
        Whether to halve the distance; "auto" does so for two labels, so that the range is [0, 1].

    Returns
    -------
    float
        The private Brier score loss, in [0, 1], or [0, 2] if it is not halved.

    See Also
    --------
    private_log_loss : Logarithmic loss of the probabilities.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_brier_score_loss
    >>> y_true, y_proba = [0, 1, 1, 0] * 250, [0.1, 0.9, 0.8, 0.3] * 250
    >>> loss = private_brier_score_loss(y_true, y_proba, epsilon=1.0)
    >>> 0.02 < loss < 0.07  # exactly 0.0375
    True
    """
    return asks(_brier_plan, labels=labels, pos_label=pos_label, scale_by_half=scale_by_half)


def _wrong(true: NDArray[Any], pred: NDArray[Any]) -> Floats:
    return zero_one_loss(differing_block(true, pred))


def _as_they_are(block: NDArray[Any]) -> NDArray[Any]:
    return block


def _zero_one_plan(shape: Shape, *, normalize: Any, is_score: bool = False) -> Plan:
    check_same_columns(*(one.names for one in shape.arguments))
    # labels are checked as they are compared
    record_loss = RecordLoss(_wrong, reads=(_as_they_are, _as_they_are), cap=1.0, is_count=True)
    reader = partial(label_pairs, columns=shape.columns())
    of_what = "right labels" if is_score else "wrong labels"
    result = share_of_records(normalize, of_what, is_score=is_score)
    return Plan((MeanOf(record_loss),), reader, result)


def _labels_from_unit(x: Floats) -> tuple[Any, ...]:
    return np.where(x > 0.5, "a", "b"), np.full(x.shape, "a")


_OF_LABELS: Mapping[str, Any] = {
    "mechanism": "geometric",
    "discloses_n": {"normalize": True},
    "from_unit": _labels_from_unit,
    "predicts_labels": True,
}


@private("sklearn.metrics.zero_one_loss", greater_is_better=False, **_OF_LABELS)
def private_zero_one_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Zero-one classification loss (share of wrong labels) with epsilon-differential privacy.

    Returns
    -------
    float
        The private share of wrong labels, in [0, 1], or their number (or total weight) if not normalized.

    See Also
    --------
    private_accuracy_score : The share of right labels.

    Notes
    -----
    There two counts have noise, those of the wrong and of the right
    records: one record changes one of them, by 1. The ``drawn`` of a `PrivateResult` has both
    noisy counts, as "sums".

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X.

    Examples
    --------
    >>> from dp_metrics import private_zero_one_loss
    >>> y_true, y_pred = ["a", "b", "c", "a"] * 250, ["a", "b", "b", "a"] * 250
    >>> loss = private_zero_one_loss(y_true, y_pred, epsilon=1.0)
    >>> 0.2 < loss < 0.3  # exactly 0.25
    True
    """
    return asks(_zero_one_plan, normalize=normalize)


@private("sklearn.metrics.accuracy_score", greater_is_better=True, **_OF_LABELS)
def private_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Accuracy (share of right labels) with epsilon-differential privacy for the test records.

    Returns
    -------
    float
        The private accuracy, in [0, 1], or the number (or total weight) of right labels if not normalized.

    See Also
    --------
    private_zero_one_loss : The share of wrong labels, of which this is the rest.
    PrivateMetricFrame : For each group of people: never keep rows by a private column.

    Notes
    -----
    There two counts have noise, those of the wrong and of the right
    records: one record changes one of them, by 1. The ``drawn`` of a `PrivateResult` has both
    noisy counts, as "sums".

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X.

    Examples
    --------
    >>> from dp_metrics import private_accuracy_score
    >>> y_true, y_pred = ["a", "b", "c", "a"] * 250, ["a", "b", "b", "a"] * 250
    >>> accuracy = private_accuracy_score(y_true, y_pred, epsilon=1.0)
    >>> 0.7 < accuracy < 0.8  # exactly 0.75
    True
    """
    return asks(_zero_one_plan, normalize=normalize, is_score=True)
