"""Private top-k accuracy: is the true label among the k that a model thinks most likely."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import encoded_block
from dp_metrics.inputs.losses import RecordLoss, zero_one_loss
from dp_metrics.inputs.options import as_whole
from dp_metrics.inputs.readers import LabelColumns, labels_and_numbers, unstated_labels
from dp_metrics.inputs.shape import Shape
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import WEIGHTS, Metric
from dp_metrics.metrics._shares import share_of_records
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.result import PrivateResult


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


TOP_K = Metric(
    name="private_top_k_accuracy_score",
    exact_function="sklearn.metrics.top_k_accuracy_score",
    plan=_plan,
    data=("y_true", "y_score"),
    responses=("predict_proba",),
    options={"k": 2, "normalize": True, "labels": None, **WEIGHTS},
    greater_is_better=True,
    mechanism="geometric",
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
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Top-k accuracy with epsilon-differential privacy for the test records.

    The share of records whose true label is among the k labels with the highest scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_score : array-like of shape (n_samples, n_classes)
        Scores, finite: probabilities or others, one column per label in sorted order, or named by the labels
        in any order. Of equal scores the one of the later label counts as higher, as in scikit-learn.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    k : int, default=2
        How many labels count as predicted, at least 1.
    normalize : bool, default=True
        If false, return the sum over the records: the private mean times the public total weight.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`. Members of an `enum.Enum` without an order of their own are sorted as it defines them.
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
        The private share, in [0, 1], or the number (or total weight) of such records if not normalized.
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
    private_accuracy_score : For predicted labels.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = TOP_K.release(
        y_true=y_true, y_score=y_score, epsilon=epsilon, k=k, normalize=normalize,
        sample_weight=sample_weight, labels=labels, groups=groups, neighboring=neighboring,
        mechanism=mechanism, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
