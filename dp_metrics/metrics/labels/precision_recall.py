"""Private precision, recall and what is made of them: F1 and Jaccard scores."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_average, check_zero_division
from dp_metrics.metrics.labels.count_formulas import (
    ratio,
    ratio_layout,
    rests_on,
)
from dp_metrics.metrics.labels.counts import (
    Confusion,
    confusion_plan,
    confusion_row,
)
from dp_metrics.release.release import Plan

__all__ = ["private_f1_score", "private_jaccard_score", "private_precision_score", "private_recall_score"]


def _ratio_plan(
    kind: str,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    private_n: bool,
    labels: Any,
    pos_label: Any,
    average: Any,
    zero_division: Any,
) -> Plan:
    known = LabelSet.of(labels)
    check_average(average, known.size)
    place = known.place(pos_label, "pos_label") if average == "binary" else 0
    undefined = check_zero_division(zero_division, is_mean=average in ("macro", "weighted"))
    formula = partial(ratio, kind=kind, average=average, place=place, undefined=undefined)
    # a mean need not rise with each ratio if its weights are noisy counts, or if labels are left out
    is_monotone = (average != "weighted" or kind == "recall") and not math.isnan(undefined)
    layout = ratio_layout(kind, average, known.size, place)
    shares = partial(rests_on, kind=kind, average=average, place=place)
    confusion = Confusion(layout, formula, known, shares, is_monotone=is_monotone)
    return confusion_plan(y_true, y_pred, confusion, private_n=private_n)


_RATIO_OPTIONS = {"pos_label": 1, "average": "binary", "zero_division": 0.0}


PRECISION = confusion_row(
    "private_precision_score", partial(_ratio_plan, "precision"), _RATIO_OPTIONS, greater_is_better=True
)


def private_precision_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Precision (share of right ones among those predicted positive) with epsilon-differential privacy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_pred : array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.
    pos_label : label, default=1
        The label that counts as positive for ``average="binary"``.
    average : {"binary", "macro", "weighted", "micro"} or None, default="binary"
        "binary": of `pos_label`, for two labels. "macro": the mean over all of `labels`; "weighted": weighted
        by how often each is the true one; "micro": of all labels together. None: one for each label.
    zero_division : float or "warn", default=0.0
        The value of 0/0 among the noisy counts: 0 or 1; for a mean also NaN, which leaves such labels out.
        "warn" means 0 here, because a warning would tell of the data.
    sample_weight : None, default=None
        Must be None: a weighted record would count more than once, and need more noise to match.
    groups : None, default=None
        Must be None: a person with several records would count more than once, and need more noise to match.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two).
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    label : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric.
    return_result : bool, default=False
        Whether to return a `PrivateResult`, which also holds what may be published about the release.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over all that are predicted to be positive; in [0, 1]. An array for ``average=None``
        only.
        With ``return_result=True`` a `PrivateResult` with that value.

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
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_precision_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_precision_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.77 < score < 1  # exactly 0.889
    True
    """
    return PRECISION.release(locals())


RECALL = confusion_row(
    "private_recall_score", partial(_ratio_plan, "recall"), _RATIO_OPTIONS, greater_is_better=True
)


def private_recall_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Recall (share of the positive ones that are found) with epsilon-differential privacy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_pred : array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.
    pos_label : label, default=1
        The label that counts as positive for ``average="binary"``.
    average : {"binary", "macro", "weighted", "micro"} or None, default="binary"
        "binary": of `pos_label`, for two labels. "macro": the mean over all of `labels`; "weighted": weighted
        by how often each is the true one; "micro": of all labels together. None: one for each label.
    zero_division : float or "warn", default=0.0
        The value of 0/0 among the noisy counts: 0 or 1; for a mean also NaN, which leaves such labels out.
        "warn" means 0 here, because a warning would tell of the data.
    sample_weight : None, default=None
        Must be None: a weighted record would count more than once, and need more noise to match.
    groups : None, default=None
        Must be None: a person with several records would count more than once, and need more noise to match.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two).
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    label : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric.
    return_result : bool, default=False
        Whether to return a `PrivateResult`, which also holds what may be published about the release.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over all that are positive; in [0, 1]. An array for ``average=None`` only.
        With ``return_result=True`` a `PrivateResult` with that value.

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
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_recall_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_recall_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.68 < score < 0.92  # exactly 0.800
    True
    """
    return RECALL.release(locals())


F1 = confusion_row("private_f1_score", partial(_ratio_plan, "f1"), _RATIO_OPTIONS, greater_is_better=True)


def private_f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """F1 score (harmonic mean of precision and recall) with epsilon-differential privacy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_pred : array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.
    pos_label : label, default=1
        The label that counts as positive for ``average="binary"``.
    average : {"binary", "macro", "weighted", "micro"} or None, default="binary"
        "binary": of `pos_label`, for two labels. "macro": the mean over all of `labels`; "weighted": weighted
        by how often each is the true one; "micro": of all labels together. None: one for each label.
    zero_division : float or "warn", default=0.0
        The value of 0/0 among the noisy counts: 0 or 1; for a mean also NaN, which leaves such labels out.
        "warn" means 0 here, because a warning would tell of the data.
    sample_weight : None, default=None
        Must be None: a weighted record would count more than once, and need more noise to match.
    groups : None, default=None
        Must be None: a person with several records would count more than once, and need more noise to match.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two).
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    label : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric.
    return_result : bool, default=False
        Whether to return a `PrivateResult`, which also holds what may be published about the release.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        Twice the true positives over that and the errors of both kinds; in [0, 1]. An array for
        ``average=None`` only.
        With ``return_result=True`` a `PrivateResult` with that value.

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
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_f1_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_f1_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.72 < score < 0.96  # exactly 0.842
    True
    """
    return F1.release(locals())


JACCARD = confusion_row(
    "private_jaccard_score", partial(_ratio_plan, "jaccard"), _RATIO_OPTIONS, greater_is_better=True
)


def private_jaccard_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Jaccard score (share of right ones among those that are or were predicted positive), privately.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_pred : array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.
    pos_label : label, default=1
        The label that counts as positive for ``average="binary"``.
    average : {"binary", "macro", "weighted", "micro"} or None, default="binary"
        "binary": of `pos_label`, for two labels. "macro": the mean over all of `labels`; "weighted": weighted
        by how often each is the true one; "micro": of all labels together. None: one for each label.
    zero_division : float or "warn", default=0.0
        The value of 0/0 among the noisy counts: 0 or 1; for a mean also NaN, which leaves such labels out.
        "warn" means 0 here, because a warning would tell of the data.
    sample_weight : None, default=None
        Must be None: a weighted record would count more than once, and need more noise to match.
    groups : None, default=None
        Must be None: a person with several records would count more than once, and need more noise to match.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two).
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    label : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric.
    return_result : bool, default=False
        Whether to return a `PrivateResult`, which also holds what may be published about the release.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over these and the errors of both kinds; in [0, 1]. An array for ``average=None``
        only.
        With ``return_result=True`` a `PrivateResult` with that value.

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
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_jaccard_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_jaccard_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.61 < score < 0.85  # exactly 0.727
    True
    """
    return JACCARD.release(locals())
