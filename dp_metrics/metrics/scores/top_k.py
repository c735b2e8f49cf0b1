"""Private top-k accuracy: is the true label among the k that a model thinks most likely."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import encoded_block
from dp_metrics.inputs.losses import RecordLoss, zero_one_loss
from dp_metrics.inputs.options import as_whole
from dp_metrics.inputs.readers import LabelColumns, labels_and_numbers, unstated_labels
from dp_metrics.inputs.shape import Shape
from dp_metrics.metrics._metric import Settings, asks, private
from dp_metrics.metrics._shares import share_of_records
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.plan import Plan


def _plan(shape: Shape, *, k: Any, normalize: Any, labels: Any) -> Plan:
    number, form = as_whole(k), shape.arguments[1]
    if number is None or number < 1:
        raise ValueError("k must be an integer of at least 1.")
    if form.columns == 1:
        raise ValueError(
            "y_score should be a 2d array with a column for each label. For one column of scores of two "
            "labels, compare them with a public threshold and use private_accuracy_score."
        )
    columns = LabelColumns.of(labels, form, "y_score", fewest=2)
    reads = (partial(encoded_block, labels=columns.labels), partial(float_block, name="y_score"))
    loss = RecordLoss(partial(_misses, k=number), reads=reads, cap=1.0, is_count=True)
    reader = partial(labels_and_numbers, columns=columns)
    of_what = "records with the true label among the k likeliest"
    result = share_of_records(normalize, of_what, is_score=True)
    return Plan((MeanOf(loss),), reader, result, unstated=unstated_labels(labels, form))


def _misses(codes: NDArray[np.intp], scores: Floats, *, k: int) -> Floats:
    """Return 1 where the true label is not among the k first; of equal scores the later label is first."""
    own = np.take_along_axis(scores, codes[:, np.newaxis], axis=1)
    later = np.arange(scores.shape[1]) > codes[:, np.newaxis]
    before = (scores > own) | ((scores == own) & later)
    return zero_one_loss(np.count_nonzero(before, axis=1) >= k)


@private(
    "sklearn.metrics.top_k_accuracy_score",
    greater_is_better=True,
    mechanism="geometric",
    responses=("predict_proba",),
    discloses_n={"normalize": True},
    from_unit=lambda x: (np.zeros_like(x), np.stack([x, 1 - x, np.full_like(x, 0.5)], axis=1)),
)
def private_top_k_accuracy_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    k: int = 2,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Top-k accuracy with epsilon-differential privacy for the test records.

    The share of records whose true label is among the k labels with the highest scores.

    Parameters
    ----------
    y_score : array-like of shape (n_samples, n_classes)
        Scores, finite: probabilities or others, one column per label in sorted order, or named by the labels
        in any order. Of equal scores the one of the later label counts as higher, as in scikit-learn.
    k : int, default=2
        How many labels count as predicted, at least 1.

    Returns
    -------
    float
        The private share, in [0, 1], or the number (or total weight) of such records if not normalized.

    See Also
    --------
    private_accuracy_score : For predicted labels.

    Notes
    -----
    There two counts have noise, those of the missed and of the found
    records: one record changes one of them, by 1. The ``drawn`` of a `PrivateResult` has both
    noisy counts, as "sums".

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X.

    Examples
    --------
    >>> from dp_metrics import private_top_k_accuracy_score
    >>> y_true, y_score = [0, 1, 2, 2] * 250, [[0.5, 0.2, 0.3]] * 1000
    >>> 0.7 < private_top_k_accuracy_score(y_true, y_score, epsilon=1.0, k=2) < 0.8  # exactly 0.75
    True
    """
    return asks(_plan, k=k, normalize=normalize, labels=labels)
