"""Private classification metrics, drop-in replacements for those of `sklearn.metrics`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import differing_block
from dp_metrics.inputs.losses import RecordLoss, zero_one_loss
from dp_metrics.inputs.readers import label_pairs
from dp_metrics.inputs.shape import Shape, check_same_columns
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import WEIGHTS, Metric
from dp_metrics.metrics._probabilities import LabelledProbabilities, mean_or_sum
from dp_metrics.metrics._shares import share_of_records
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.result import PrivateResult


def _log_loss_plan(shape: Shape, *, max_loss: Any, normalize: Any, **options: Any) -> Plan:
    records = LabelledProbabilities.of(shape, **options)
    parts = (records.log_loss(max_loss),)
    return Plan(parts, records.reader, mean_or_sum(normalize), unstated=records.unstated)


LOG_LOSS = Metric(
    name="private_log_loss",
    exact_function="sklearn.metrics.log_loss",
    plan=_log_loss_plan,
    data=("y_true", "y_proba"),
    responses=("predict_proba",),
    options={"labels": None, "max_loss": None, "normalize": True, **WEIGHTS},
    greater_is_better=False,
    discloses_n={"normalize": True},
    from_unit=lambda x: (np.ones_like(x), x),
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
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Log loss (cross-entropy) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them, or named
        by the labels in any order; a single column holds the probability of the second label. They are used
        as they are: rows need not sum to 1, and no warning tells whether they do.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`. Members of an `enum.Enum` without an order of their own are sorted as it defines them.
    max_loss : float or None, default=None
        Public cap of one record's loss, in nats. None: what scikit-learn's clipping of probabilities implies,
        -log(eps) for the float type of `y_proba` (36.04 for float64, 15.94 for float32). A smaller one,
        such as log(1 + exp(10)) for logits restricted to [-10, 10], gives a more accurate answer.
    normalize : bool, default=True
        If false, return the sum over the records: the private mean times the public total weight.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="adaptive"
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit (this metric always has one) also "geometric", "inverse_sensitivity",
        "piecewise_laplace", "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you
        know beforehand that about 3 / epsilon to 60 / epsilon records reach the limit and make most of the
        result: the default may miss them, and err up to 100 times as much.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float
        The private log loss; finite, at least 0.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_brier_score_loss : Squared error of the probabilities.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = LOG_LOSS.release(
        y_true=y_true, y_proba=y_proba, epsilon=epsilon, labels=labels, max_loss=max_loss,
        normalize=normalize, sample_weight=sample_weight, groups=groups, neighboring=neighboring,
        mechanism=mechanism, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _brier_plan(shape: Shape, *, pos_label: Any, scale_by_half: Any, **options: Any) -> Plan:
    records = LabelledProbabilities.of(shape, pos_label=pos_label, **options)
    return Plan((records.brier_loss(pos_label, scale_by_half),), records.reader, unstated=records.unstated)


BRIER = Metric(
    name="private_brier_score_loss",
    exact_function="sklearn.metrics.brier_score_loss",
    plan=_brier_plan,
    data=("y_true", "y_proba"),
    responses=("predict_proba",),
    options={"pos_label": None, "labels": None, "scale_by_half": "auto", **WEIGHTS},
    greater_is_better=False,
    mechanism="geometric",
    from_unit=lambda x: (np.ones_like(x), x),
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
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Brier score loss with epsilon-differential privacy for the test records.

    The mean squared distance between the probabilities and the true label. One record's distance is clipped
    to what probabilities with the sum 1 can reach.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them, or named
        by the labels in any order; a single column holds the probability of the second label. They are used
        as they are: rows need not sum to 1, and no warning tells whether they do.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    pos_label : label, default=None
        The label that counts as positive for ``average="binary"``.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`. Members of an `enum.Enum` without an order of their own are sorted as it defines them.
    scale_by_half : bool or "auto", default="auto"
        Whether to halve the distance; "auto" does so for two labels, so that the range is [0, 1].
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="geometric"
        "geometric" is the most accurate for a result that is as likely near one end of its range as near the
        other. The others are those of `private_mae`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float
        The private Brier score loss, in [0, 1], or [0, 2] if it is not halved.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_log_loss : Logarithmic loss of the probabilities.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = BRIER.release(
        y_true=y_true, y_proba=y_proba, epsilon=epsilon, sample_weight=sample_weight, pos_label=pos_label,
        labels=labels, scale_by_half=scale_by_half, groups=groups, neighboring=neighboring,
        mechanism=mechanism, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


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


ZERO_ONE = Metric(
    name="private_zero_one_loss",
    exact_function="sklearn.metrics.zero_one_loss",
    plan=_zero_one_plan,
    options={"normalize": True, **WEIGHTS},
    greater_is_better=False,
    mechanism="geometric",
    discloses_n={"normalize": True},
    from_unit=_labels_from_unit,
    predicts_labels=True,
)


def private_zero_one_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Zero-one classification loss (share of wrong labels) with epsilon-differential privacy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True labels: whole numbers, strings, dates, members of an `enum.Enum` or anything else that can be
        compared. Dates, times and durations are equal in any unit and container, a date and its midnight too;
        times with a time zone are refused beside times without. With several outputs a record is right if all
        of them are.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels predicted by a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    normalize : bool, default=True
        If false, return the sum over the records: the private mean times the public total weight.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="geometric"
        "geometric" is the most accurate for a result that is as likely near one end of its range as near the
        other. The others are those of `private_mae`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float
        The private share of wrong labels, in [0, 1], or their number (or total weight) if not normalized.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_accuracy_score : The share of right labels.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = ZERO_ONE.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, normalize=normalize, sample_weight=sample_weight,
        groups=groups, neighboring=neighboring, mechanism=mechanism, accountant=accountant,
        random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


ACCURACY = Metric(
    name="private_accuracy_score",
    exact_function="sklearn.metrics.accuracy_score",
    plan=partial(_zero_one_plan, is_score=True),
    options={"normalize": True, **WEIGHTS},
    greater_is_better=True,
    mechanism="geometric",
    discloses_n={"normalize": True},
    from_unit=_labels_from_unit,
    predicts_labels=True,
)


def private_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Accuracy (share of right labels) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True labels: whole numbers, strings, dates, members of an `enum.Enum` or anything else that can be
        compared. Dates, times and durations are equal in any unit and container, a date and its midnight too;
        times with a time zone are refused beside times without. With several outputs a record is right if all
        of them are.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels predicted by a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    normalize : bool, default=True
        If false, return the sum over the records: the private mean times the public total weight.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="geometric"
        "geometric" is the most accurate for a result that is as likely near one end of its range as near the
        other. The others are those of `private_mae`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float
        The private accuracy, in [0, 1], or the number (or total weight) of right labels if not normalized.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_zero_one_loss : The share of wrong labels, of which this is the rest.
    PrivateMetricFrame : For each group of people: never keep rows by a private column.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = ACCURACY.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, normalize=normalize, sample_weight=sample_weight,
        groups=groups, neighboring=neighboring, mechanism=mechanism, accountant=accountant,
        random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
