"""Private precision, recall, what is made of them (F1 and Jaccard scores), and specificity."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_average, check_zero_division
from dp_metrics.inputs.shape import Shape
from dp_metrics.metrics.labels.count_formulas import (
    mean_above_chance,
    parts_of_ratio,
    quotients,
    ratio,
    ratio_layout,
    rests_on,
    weighted_mean,
)
from dp_metrics.metrics.labels.counts import Confusion, confusion_row
from dp_metrics.metrics.labels.layouts import Counts, matrix_layout, right_or_wrong
from dp_metrics.release.plan import Plan
from dp_metrics.release.result import PrivateResult


def _ratio_plan(
    kind: str,
    shape: Shape,
    *,
    labels: Any,
    pos_label: Any,
    average: Any,
    zero_division: Any,
) -> Plan:
    known = LabelSet.of(labels)
    check_average(average, known.size)
    place = known.place(pos_label, "pos_label") if average == "binary" else 0
    undefined = check_zero_division(zero_division, is_mean=average in ("macro", "weighted"))
    public = {"kind": kind, "average": average, "place": place}
    formula = partial(ratio, undefined=undefined, **public)
    # a mean need not rise with each ratio if its weights are noisy counts, or if labels are left out
    is_monotone = (average != "weighted" or kind == "recall") and not math.isnan(undefined)
    layout = ratio_layout(kind, average, known.size, place)
    shares = partial(rests_on, **public)
    has_ratios = average != "weighted" or kind == "recall"
    confusion = Confusion(
        layout, formula, known, shares, is_monotone=is_monotone,
        parts_of=partial(parts_of_ratio, **public) if has_ratios else None,
        of_ratios=mean_above_chance if average == "macro" else None,
        are_independent=kind in ("recall", "precision"),
    )  # fmt: skip
    return confusion.plan()


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
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
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
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
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
    float or ndarray of shape (n_classes,)
        True positives over all that are predicted to be positive; in [0, 1]. An array for ``average=None``
        only.
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
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = PRECISION.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, labels=labels, pos_label=pos_label, average=average,
        zero_division=zero_division, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


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
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
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
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
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
    float or ndarray of shape (n_classes,)
        True positives over all that are positive; in [0, 1]. An array for ``average=None`` only.
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
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = RECALL.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, labels=labels, pos_label=pos_label, average=average,
        zero_division=zero_division, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


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
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
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
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
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
    float or ndarray of shape (n_classes,)
        Twice the true positives over that and the errors of both kinds; in [0, 1]. An array for
        ``average=None`` only.
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
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = F1.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, labels=labels, pos_label=pos_label, average=average,
        zero_division=zero_division, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


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
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
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
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
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
    float or ndarray of shape (n_classes,)
        True positives over these and the errors of both kinds; in [0, 1]. An array for ``average=None``
        only.
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
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = JACCARD.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, labels=labels, pos_label=pos_label, average=average,
        zero_division=zero_division, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _negatives(counts: Counts, *, average: str | None, labels: int) -> Floats:
    """Return how many records have another label than each; for "micro" the sum over all labels."""
    return np.array([(labels - 1) * counts.n]) if average == "micro" else counts.n - counts.true


def _found_negatives(counts: Counts, *, average: str | None, labels: int) -> tuple[Floats, Floats]:
    """Return how many of these are found, and how many are not."""
    negatives, wrong = _negatives(counts, average=average, labels=labels), counts.false_positives
    if average == "micro":
        wrong = wrong.sum(keepdims=True)
    return negatives - wrong, wrong


def _specificity(counts: Counts, *, average: str | None, labels: int, undefined: float) -> Any:
    """Return the share of the negatives of each label that are found; one number unless `average` is None."""
    found, wrong = _found_negatives(counts, average=average, labels=labels)
    shares = quotients(found, found + wrong, undefined)
    if average is None:
        return shares
    return weighted_mean(shares, counts.true if average == "weighted" else np.ones_like(shares))


def _specificity_plan(
    shape: Shape,
    *,
    labels: Any,
    pos_label: Any,
    average: Any,
    zero_division: Any,
) -> Plan:
    known = LabelSet.of(labels)
    check_average(average, known.size)
    if average == "binary":  # the true negatives are those of the other label that are found
        pos_label = known.in_order[1 - known.place(pos_label, "pos_label")]
        options = {"pos_label": pos_label, "average": average, "zero_division": zero_division}
        return _ratio_plan("recall", shape, labels=labels, **options)
    undefined = check_zero_division(zero_division, is_mean=average in ("macro", "weighted"))
    public = {"average": average, "labels": known.size}
    layout = right_or_wrong() if average == "micro" else matrix_layout(known.size)
    formula = partial(_specificity, undefined=undefined, **public)
    # of three labels, an error between two of them is a true negative of the third
    rises = average == "micro" or (average != "weighted" and known.size == 2)
    is_monotone = rises and not math.isnan(undefined)
    confusion = Confusion(
        layout, formula, known, partial(_negatives, **public), is_monotone=is_monotone,
        parts_of=None if average == "weighted" else partial(_found_negatives, **public),
        of_ratios=mean_above_chance if average == "macro" else None,
    )  # fmt: skip
    return confusion.plan()


SPECIFICITY = confusion_row(
    "private_specificity_score", _specificity_plan, _RATIO_OPTIONS, exact_function="", greater_is_better=True
)


def private_specificity_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
    """Specificity (share of the negative ones that are found) with epsilon-differential privacy.

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
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
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
    float or ndarray of shape (n_classes,)
        True negatives over all that are negative; in [0, 1]. An array for ``average=None`` only.
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
    private_recall_score : The share of the positive ones that are found.
    private_roc_curve : Both at every threshold: 1 less the specificity, and the recall.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

    The negatives of a label are the records of all others, so of two labels this is the recall of the other
    one, from three counts: true negatives, false positives and the others. Of K labels the counts are those
    of a report of each, and for ``average="micro"`` the right and the wrong records. Noise is added to these
    counts, not to the answer, whose error is about 1 / (epsilon times the negatives). A label without
    negatives, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_specificity_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_specificity_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.96 < score <= 1  # exactly 0.989
    True
    """
    result: PrivateResult[float | Floats] = SPECIFICITY.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, labels=labels, pos_label=pos_label, average=average,
        zero_division=zero_division, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
