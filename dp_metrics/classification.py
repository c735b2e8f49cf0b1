"""Private classification metrics, drop-in replacements for those of `sklearn.metrics`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics import losses as _losses
from dp_metrics._docs import documented
from dp_metrics._options import check_groups, check_sample_weight, symmetric_mechanism
from dp_metrics._queries import LossMetric, MeanLoss
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._validation import (
    MAX_FLOAT,
    as_label_pairs,
    as_labels,
    as_probabilities,
    check_labels,
    check_max_loss,
    check_same_length,
    differing_block,
    encoded_block,
    probability_block,
)
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = [
    "LOSS_METRICS",
    "private_accuracy_score",
    "private_brier_score_loss",
    "private_log_loss",
    "private_zero_one_loss",
]

Floats = NDArray[np.float64]


@documented
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
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Log loss (cross-entropy) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    {labels_true}
    {y_proba}
    {epsilon}
    {labels}
    max_loss : float or None, default=None
        Public cap of one record's loss, in nats. None: what scikit-learn's clipping of probabilities implies,
        -log(eps) for the float type of `y_proba` (36.04 for float64, 15.94 for float32). A smaller one,
        such as log(1 + exp(10)) for logits restricted to [-10, 10], gives a more accurate answer.
    {normalize}
    {sample_weight}
    {groups}
    {neighboring}
    {mechanism: log loss always has one}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private log loss; finite, at least 0.

    {raises}

    See Also
    --------
    private_brier_score_loss : Squared error of the probabilities.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Section 5.1 and Appendix D.2}

    Examples
    --------
    >>> from dp_metrics import private_log_loss
    >>> y_true = ["ham", "spam", "spam", "ham"] * 250
    >>> y_proba = [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.65, 0.35]] * 250
    >>> loss = private_log_loss(y_true, y_proba, epsilon=1.0, labels=["ham", "spam"])
    >>> 0.1 < loss < 0.5  # exactly 0.216
    True
    """
    release = Release(
        "private_log_loss",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
        **_sums(normalize),
    )
    query = _log_loss_query(
        y_true,
        y_proba,
        private_n=release.private_n,
        labels=labels,
        max_loss=max_loss,
        sample_weight=sample_weight,
        groups=groups,
    )
    return _mean_or_sum(release.draw(query), query.total_weight, normalize)


@documented
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
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Brier score loss with epsilon-differential privacy for the test records.

    The mean squared distance between the probabilities and the true label. One record's distance is clipped
    to what probabilities with the sum 1 can reach.

    Parameters
    ----------
    {labels_true}
    {y_proba}
    {epsilon}
    {sample_weight}
    pos_label : label or None, default=None
        The label whose probability a single column holds; None for the second of `labels`.
    {labels}
    scale_by_half : bool or "auto", default="auto"
        Whether to halve the distance; "auto" does so for two labels, so that the range is [0, 1].
    {groups}
    {neighboring}
    {mechanism: this metric always has one}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private Brier score loss, in [0, 1], or [0, 2] if it is not halved.

    {raises}

    See Also
    --------
    private_log_loss : Logarithmic loss of the probabilities.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_brier_score_loss
    >>> y_true, y_proba = [0, 1, 1, 0] * 250, [0.1, 0.9, 0.8, 0.3] * 250
    >>> loss = private_brier_score_loss(y_true, y_proba, epsilon=1.0)
    >>> 0.02 < loss < 0.07  # exactly 0.0375
    True
    """
    release = Release(
        "private_brier_score_loss",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    query = _brier_query(
        y_true,
        y_proba,
        private_n=release.private_n,
        pos_label=pos_label,
        labels=labels,
        scale_by_half=scale_by_half,
        sample_weight=sample_weight,
        groups=groups,
    )
    return release.draw(query)


@documented
def private_zero_one_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Zero-one classification loss (share of wrong labels) with epsilon-differential privacy.

    Parameters
    ----------
    {class_true}
    {class_pred}
    {epsilon}
    {normalize}
    {sample_weight}
    {groups}
    {neighboring}
    {count_mechanism}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private share of wrong labels, in [0, 1], or their number (or total weight) if not normalized.

    {raises}

    See Also
    --------
    private_accuracy_score : The share of right labels.

    Notes
    -----
    {guarantee_groups}

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
    release = Release(
        "private_zero_one_loss",
        epsilon,
        symmetric_mechanism(mechanism, neighboring),
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
        **_sums(normalize),
    )
    query = _zero_one_query(
        y_true, y_pred, private_n=release.private_n, sample_weight=sample_weight, groups=groups
    )
    return _mean_or_sum(release.draw(query), query.total_weight, normalize)


@documented
def private_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Accuracy (share of right labels) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    {class_true}
    {class_pred}
    {epsilon}
    {normalize}
    {sample_weight}
    {groups}
    {neighboring}
    {count_mechanism}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private accuracy, in [0, 1], or the number (or total weight) of right labels if not normalized.

    {raises}

    See Also
    --------
    private_zero_one_loss : The share of wrong labels, of which this is the rest.

    Notes
    -----
    {guarantee_groups}

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
    release = Release(
        "private_accuracy_score",
        epsilon,
        symmetric_mechanism(mechanism, neighboring),
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
        **_sums(normalize),
    )
    query = _zero_one_query(
        y_true, y_pred, private_n=release.private_n, sample_weight=sample_weight, groups=groups
    )
    return _mean_or_sum(1.0 - release.draw(query), query.total_weight, normalize)


def _sums(normalize: Any) -> dict[str, Any]:
    return {"normalize=False": None if normalize else True}


def _mean_or_sum(mean: float, total_weight: float, normalize: Any) -> float:
    """Return the mean, or the mean times the public total weight."""
    return mean if normalize else min(mean * total_weight, MAX_FLOAT)


def _log_loss_query(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    private_n: bool,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    labels: ArrayLike | None = None,
    max_loss: Any = None,
    normalize: Any = True,
) -> MeanLoss:
    cap = check_max_loss(max_loss)
    records, public_labels, resolution = _probability_records(y_true, y_proba, labels, private_n)
    kernel = partial(_losses.log_loss, resolution=resolution)
    return MeanLoss(
        _losses.checked(kernel, partial(encoded_block, labels=public_labels), probability_block),
        records,
        _losses.log_loss_cap(resolution, cap),
        check_sample_weight(sample_weight, *records, whole=not private_n),
        check_groups(groups, *records),
        paper_sum=True,
    )


def _brier_query(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    private_n: bool,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    scale_by_half: Any = "auto",
) -> MeanLoss:
    records, public_labels, _ = _probability_records(y_true, y_proba, labels, private_n)
    columns = records[1].shape[1]
    in_order = public_labels.tolist()
    positive = in_order[1] if pos_label is None else pos_label
    if positive not in in_order:
        raise ValueError("pos_label is not one of the public labels.")
    if scale_by_half != "auto" and not isinstance(scale_by_half, bool):
        raise ValueError("scale_by_half must be True, False or 'auto'.")
    half = columns <= 2 if scale_by_half == "auto" else bool(scale_by_half)

    def codes(block: NDArray[Any]) -> NDArray[np.intp]:
        of_labels = encoded_block(block, public_labels)
        return of_labels if columns > 1 else (of_labels == in_order.index(positive)).astype(np.intp)

    return MeanLoss(
        _losses.checked(partial(_losses.brier_loss, half=half), codes, probability_block),
        records,
        _losses.brier_loss_cap(half),
        check_sample_weight(sample_weight, *records, whole=not private_n),
        check_groups(groups, *records),
    )


def _probability_records(
    y_true: ArrayLike, y_proba: ArrayLike, labels: ArrayLike | None, private_n: bool
) -> tuple[tuple[NDArray[Any], NDArray[Any]], NDArray[Any], float]:
    """Return labels and probabilities, the public labels, and the resolution of the probabilities."""
    probabilities, resolution = as_probabilities(y_proba, private_n=private_n)
    public_labels = check_labels(labels, probabilities.shape[1])
    true = as_labels(y_true, public_labels, private_n=private_n)
    check_same_length(true, probabilities, private_n=private_n)
    return (true, probabilities), public_labels, resolution


def _zero_one_query(
    y_true: Any,
    y_pred: Any,
    *,
    private_n: bool,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    normalize: Any = True,
) -> MeanLoss:
    records = as_label_pairs(y_true, y_pred, private_n=private_n)
    return MeanLoss(
        _wrong,
        records,
        1.0,
        check_sample_weight(sample_weight, *records, whole=not private_n),
        check_groups(groups, *records),
        counts=True,
    )


def _wrong(true: NDArray[Any], pred: NDArray[Any]) -> Floats:
    return _losses.zero_one_loss(differing_block(true, pred))


def _loss(mean: float, total_weight: float, options: Mapping[str, Any]) -> float:
    return _mean_or_sum(mean, total_weight, options.get("normalize", True))


def _score(mean: float, total_weight: float, options: Mapping[str, Any]) -> float:
    return _loss(1.0 - mean, total_weight, options)


LOSS_METRICS = {
    "private_log_loss": LossMetric(_log_loss_query, _loss),
    "private_brier_score_loss": LossMetric(_brier_query),
    "private_zero_one_loss": LossMetric(_zero_one_query, _loss),
    "private_accuracy_score": LossMetric(_zero_one_query, _score),
}
"""How each metric follows from a mean loss, for summaries."""
