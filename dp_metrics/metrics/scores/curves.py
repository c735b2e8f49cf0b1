"""Private curves of scores and areas under them, drop-in replacements for those of `sklearn.metrics`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.metrics._catalogue import PERSONS, UNWEIGHTED, Metric, same_name
from dp_metrics.metrics.scores.curve_formulas import (
    PrecisionRecallCurve,
    RocCurve,
    average_precision,
    precision_recall,
    roc,
)
from dp_metrics.metrics.scores.table import score_plan
from dp_metrics.metrics.scores.two_classes import two_classes_from_unit
from dp_metrics.release.result import PrivateResult


def _row(
    name: str, formula: Callable[..., Any], *, exact_function: str | None = None, **facts: Any
) -> Metric:
    """Return the row of a metric that follows from a table of scores: see `confusion_row`."""
    return Metric(
        name=name,
        exact_function=same_name(name) if exact_function is None else exact_function,
        plan=partial(score_plan, formula),
        data=("y_true", "y_score"),
        responses=("predict_proba",),
        options={"labels": None, "pos_label": None, "edges": None, "bins": None, **PERSONS},
        refused=UNWEIGHTED,
        mechanism=None,
        from_unit=two_classes_from_unit,
        **facts,
    )


ROC_CURVE = _row("private_roc_curve", roc)


def private_roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> RocCurve:
    """ROC curve (true against false positive rate) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_score : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Scores of the positive class, probabilities in [0, 1] unless `edges` are given. Of two columns, as
        from `predict_proba`, the one of the positive class is used.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (2,) or None, default=None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.
    pos_label : label or None, default=None
        The positive one of the labels; None: the second in sorted order.
    edges : array-like of shape (n_bins + 1,) or None, default=None
        Public edges of the bins of scores, strictly increasing; scores outside are counted in the first or
        last bin. None: bins of [0, 1], narrower at both ends, and scores outside are refused. Never read them
        from the data.
    bins : {2, 4, 8, 16, 32, 64, 128} or None, default=None
        Public number of bins of [0, 1]. None: the power of two next to 1.5 (n epsilon)^(1/3), from 8 on; from
        n epsilon = 10,000 on next to 0.9 (n epsilon)^(1/2), up to 128; 32 where n is private.
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
    RocCurve
        A named tuple (fpr, tpr, thresholds) of arrays of shape (n_bins + 1,), as scikit-learn's with
        ``drop_intermediate=False``: from (0, 0) at the threshold infinity to (1, 1) at the lowest edge, and
        never falling. Without a record in one class, by the noisy counts, the diagonal.
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
    ScoreSummary : One release from which all curves and areas follow, and from pieces.
    private_roc_auc_score : The area under the curve, more accurate than what the curve tells.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[RocCurve] = ROC_CURVE.release(
        y_true=y_true, y_score=y_score, epsilon=epsilon, labels=labels, pos_label=pos_label, edges=edges,
        bins=bins, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


PRECISION_RECALL_CURVE = _row("private_precision_recall_curve", precision_recall)


def private_precision_recall_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> PrecisionRecallCurve:
    """Precision-recall curve with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_score : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Scores of the positive class, probabilities in [0, 1] unless `edges` are given. Of two columns, as
        from `predict_proba`, the one of the positive class is used.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (2,) or None, default=None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.
    pos_label : label or None, default=None
        The positive one of the labels; None: the second in sorted order.
    edges : array-like of shape (n_bins + 1,) or None, default=None
        Public edges of the bins of scores, strictly increasing; scores outside are counted in the first or
        last bin. None: bins of [0, 1], narrower at both ends, and scores outside are refused. Never read them
        from the data.
    bins : {2, 4, 8, 16, 32, 64, 128} or None, default=None
        Public number of bins of [0, 1]. None: the power of two next to 1.5 (n epsilon)^(1/3), from 8 on; from
        n epsilon = 10,000 on next to 0.9 (n epsilon)^(1/2), up to 128; 32 where n is private.
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
    PrecisionRecallCurve
        A named tuple (precision, recall, thresholds) as scikit-learn's: arrays of shape (n_bins + 1,), which
        end with precision 1 and recall 0, and the lower edges of the bins, rising. Where no record is
        predicted positive, by the noisy counts, the precision is 1; without any positive record all
        precisions but the last are 0 and all recalls 1.
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
    ScoreSummary : One release from which all curves and areas follow, and from pieces.
    private_average_precision_score : One number.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[PrecisionRecallCurve] = PRECISION_RECALL_CURVE.release(
        y_true=y_true, y_score=y_score, epsilon=epsilon, labels=labels, pos_label=pos_label, edges=edges,
        bins=bins, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


AVERAGE_PRECISION = _row("private_average_precision_score", average_precision, greater_is_better=True)


def private_average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Average precision (area under precision and recall) with epsilon-differential privacy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_score : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Scores of the positive class, probabilities in [0, 1] unless `edges` are given. Of two columns, as
        from `predict_proba`, the one of the positive class is used.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (2,) or None, default=None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.
    pos_label : label or None, default=None
        The positive one of the labels; None: the second in sorted order.
    edges : array-like of shape (n_bins + 1,) or None, default=None
        Public edges of the bins of scores, strictly increasing; scores outside are counted in the first or
        last bin. None: bins of [0, 1], narrower at both ends, and scores outside are refused. Never read them
        from the data.
    bins : {2, 4, 8, 16, 32, 64, 128} or None, default=None
        Public number of bins of [0, 1]. None: the power of two next to 1.5 (n epsilon)^(1/3), from 8 on; from
        n epsilon = 10,000 on next to 0.9 (n epsilon)^(1/2), up to 128; 32 where n is private.
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
    float
        The private average precision, in [0, 1]; 0 without a positive record, by the noisy counts.
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
    ScoreSummary : One release from which all curves and areas follow, and from pieces.
    private_roc_auc_score : Which does not depend on how many records are positive.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = AVERAGE_PRECISION.release(
        y_true=y_true, y_score=y_score, epsilon=epsilon, labels=labels, pos_label=pos_label, edges=edges,
        bins=bins, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
