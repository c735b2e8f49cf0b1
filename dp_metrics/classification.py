"""Private classification metrics, drop-in replacements for those of `sklearn.metrics`."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics import losses as _losses
from dp_metrics._docs import documented
from dp_metrics._options import check_groups, check_sample_weight, symmetric_mechanism
from dp_metrics._queries import MeanLoss
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._validation import (
    MAX_FLOAT,
    check_labels,
    check_max_loss,
    check_probabilities,
    check_same_length,
    encode_labels,
    labels_differ,
)
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = ["private_accuracy_score", "private_brier_score_loss", "private_log_loss", "private_zero_one_loss"]


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
    cap = check_max_loss(max_loss)
    probabilities, resolution = check_probabilities(y_proba, private_n=release.private_n)
    public_labels = check_labels(labels, probabilities.shape[1])
    codes = encode_labels(y_true, public_labels, private_n=release.private_n)
    check_same_length(codes, probabilities, private_n=release.private_n)
    query = MeanLoss(
        partial(_losses.log_loss, resolution=resolution),
        (codes, probabilities),
        _losses.log_loss_cap(resolution, cap),
        check_sample_weight(sample_weight, codes, probabilities),
        check_groups(groups, codes, probabilities),
        paper_sum=True,
    )
    return _mean_or_sum(release.draw(query), query, normalize)


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
    probabilities, _ = check_probabilities(y_proba, private_n=release.private_n)
    columns = probabilities.shape[1]
    public_labels = check_labels(labels, columns)
    positive = public_labels.tolist()[1] if pos_label is None else pos_label
    if positive not in public_labels.tolist():
        raise ValueError("pos_label is not one of the public labels.")
    codes = encode_labels(y_true, public_labels, private_n=release.private_n)
    check_same_length(codes, probabilities, private_n=release.private_n)
    if columns == 1:
        codes = (codes == public_labels.tolist().index(positive)).astype(np.intp)
    if scale_by_half != "auto" and not isinstance(scale_by_half, bool):
        raise ValueError("scale_by_half must be True, False or 'auto'.")
    half = columns <= 2 if scale_by_half == "auto" else bool(scale_by_half)
    return release.draw(
        MeanLoss(
            partial(_losses.brier_loss, half=half),
            (codes, probabilities),
            _losses.brier_loss_cap(half),
            check_sample_weight(sample_weight, codes, probabilities),
            check_groups(groups, codes, probabilities),
        )
    )


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
    query = _wrong_labels(release, y_true, y_pred, sample_weight, groups)
    return _mean_or_sum(release.draw(query), query, normalize)


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
    query = _wrong_labels(release, y_true, y_pred, sample_weight, groups)
    return _mean_or_sum(1.0 - release.draw(query), query, normalize)


def _sums(normalize: Any) -> dict[str, Any]:
    return {"normalize=False": None if normalize else True}


def _mean_or_sum(mean: float, query: MeanLoss, normalize: Any) -> float:
    """Return the mean, or the mean times the public total weight."""
    return mean if normalize else min(mean * query.total_weight, MAX_FLOAT)


def _wrong_labels(
    release: Release, y_true: Any, y_pred: Any, sample_weight: ArrayLike | None, groups: ArrayLike | None
) -> MeanLoss:
    differs = labels_differ(y_true, y_pred, private_n=release.private_n)
    return MeanLoss(
        _losses.zero_one_loss,
        (differs,),
        1.0,
        check_sample_weight(sample_weight, differs, differs),
        check_groups(groups, differs, differs),
        counts=True,
    )
