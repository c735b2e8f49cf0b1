"""Private precision, recall, what is made of them (F1 and Jaccard scores), and specificity."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_average, check_zero_division
from dp_metrics.metrics._metric import CountSettings, asks, private
from dp_metrics.metrics.labels.count_formulas import (
    mean_above_chance,
    parts_of_ratio,
    quotients,
    ratio,
    ratio_layout,
    rests_on,
    weighted_mean,
)
from dp_metrics.metrics.labels.counts import OF_COUNTS, Confusion
from dp_metrics.metrics.labels.layouts import Counts, matrix_layout, right_or_wrong


def _ratio(kind: str, labels: Any, pos_label: Any, average: Any, zero_division: Any) -> Confusion:
    """Return what is released of a ratio of counts, of which `count_formulas` knows the kinds."""
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
    return Confusion(
        layout, formula, known, shares, is_monotone=is_monotone,
        parts_of=partial(parts_of_ratio, **public) if has_ratios else None,
        of_ratios=mean_above_chance if average == "macro" else None,
        are_independent=kind in ("recall", "precision"),
    )  # fmt: skip


@private("sklearn.metrics.precision_score", greater_is_better=True, **OF_COUNTS)
def private_precision_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    **settings: Unpack[CountSettings],
) -> float | Floats:
    """Precision (share of right ones among those predicted positive) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over all that are predicted to be positive; in [0, 1]. An array for ``average=None``
        only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
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
    return asks(_ratio("precision", labels, pos_label, average, zero_division).plan)


@private("sklearn.metrics.recall_score", greater_is_better=True, **OF_COUNTS)
def private_recall_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    **settings: Unpack[CountSettings],
) -> float | Floats:
    """Recall (share of the positive ones that are found) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over all that are positive; in [0, 1]. An array for ``average=None`` only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
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
    return asks(_ratio("recall", labels, pos_label, average, zero_division).plan)


@private("sklearn.metrics.f1_score", greater_is_better=True, **OF_COUNTS)
def private_f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    **settings: Unpack[CountSettings],
) -> float | Floats:
    """F1 score (harmonic mean of precision and recall) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        Twice the true positives over that and the errors of both kinds; in [0, 1]. An array for
        ``average=None`` only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
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
    return asks(_ratio("f1", labels, pos_label, average, zero_division).plan)


@private("sklearn.metrics.jaccard_score", greater_is_better=True, **OF_COUNTS)
def private_jaccard_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    **settings: Unpack[CountSettings],
) -> float | Floats:
    """Jaccard score (share of right ones among those that are or were predicted positive), privately.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over these and the errors of both kinds; in [0, 1]. An array for ``average=None``
        only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
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
    return asks(_ratio("jaccard", labels, pos_label, average, zero_division).plan)


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


@private(greater_is_better=True, **OF_COUNTS)
def private_specificity_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    **settings: Unpack[CountSettings],
) -> float | Floats:
    """Specificity (share of the negative ones that are found) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True negatives over all that are negative; in [0, 1]. An array for ``average=None`` only.

    See Also
    --------
    private_recall_score : The share of the positive ones that are found.
    private_roc_curve : Both at every threshold: 1 less the specificity, and the recall.

    Notes
    -----
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
    known = LabelSet.of(labels)
    check_average(average, known.size)
    if average == "binary":  # the true negatives are those of the other label that are found
        pos_label = known.in_order[1 - known.place(pos_label, "pos_label")]
        return asks(_ratio("recall", labels, pos_label, average, zero_division).plan)
    undefined = check_zero_division(zero_division, is_mean=average in ("macro", "weighted"))
    public: dict[str, Any] = {"average": average, "labels": known.size}
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
    return asks(confusion.plan)
