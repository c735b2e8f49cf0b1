"""Private classification metrics, drop-in replacements for those of `sklearn.metrics`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs import losses
from dp_metrics.inputs.arrays import Shape, float_block, probability_block
from dp_metrics.inputs.labels import (
    LabelColumns,
    LabelSet,
    differing_labels,
    labels_and_columns,
    labels_of_any_type,
)
from dp_metrics.inputs.losses import Loss, RecordLoss
from dp_metrics.inputs.options import MAX_FLOAT, Array, ByName, Codes, Floats, check_count, check_max_loss
from dp_metrics.mechanisms._laws import Limits
from dp_metrics.metrics._metric import asks, private
from dp_metrics.metrics._settings import MeanSettings
from dp_metrics.metrics.labels.confusion import Confusion
from dp_metrics.metrics.labels.layouts import Ratio, right_or_wrong
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.release.query import Query
from dp_metrics.release.released import Interval, PopulationQuestion
from dp_metrics.release.result import AnyResult, Monotone, ReleasedNumbers

OF_PROBABILITIES: ByName = {
    "responses": ("predict_proba",),
    "from_unit": lambda x: (np.ones_like(x), x),
}
"""Facts about every metric that judges the probabilities of all labels."""


def _mean_query(columns: LabelColumns, loss: Loss, cap: float, *, codes: Any = None, **more: Any) -> Query:
    """Return the query of the mean of a loss of the codes of labels, and of probabilities."""
    reads = (codes or columns.labels.sorted_codes, probability_block)
    part = MeanOf(RecordLoss(loss, reads=reads, cap=cap))
    reader = partial(labels_and_columns, columns=columns, name="y_proba")
    return Query((part,), reader, unstated=columns.unstated, **more)


def _is_positive(block: Array, *, columns: LabelColumns) -> Codes:
    return np.asarray(columns.labels.sorted_codes(block) == columns.positive, dtype=np.intp)


def _mean_or_sum(released: ReleasedNumbers, *, normalize: bool, is_score: bool = False) -> float:
    """Return a mean, or for a score 1 minus that, or n times either."""
    mean = 1.0 - released.values[0] if is_score else released.values[0]
    if normalize:
        return float(mean)
    assert released.total_weight is not None  # no option asks for the sum where n is private
    return float(min(mean * released.total_weight, MAX_FLOAT))


@dataclass(frozen=True, kw_only=True)
class ShareOfRecords(Monotone):
    """The share of the records that a loss of 0 or 1 counts, or of the others, or their number.

    Released are two counts, of those records and of the others; or, with weights, groups or another mechanism
    than the geometric one, the share itself.

    Parameters
    ----------
    counts : Confusion
        What two counts tell of the share.
    is_share : bool
        Whether the result is the share, not the number.
    """

    counts: Confusion
    is_share: bool

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the result."""
        if _is_mean(released):
            return super().__call__(released)
        counts = self.counts.layout.counts(released.values[0], released.public_n)
        return self._shown(self.counts.formula(counts), released)

    def _shown(self, share: Any, released: ReleasedNumbers) -> Any:
        """Return the share, or the number of records that it is of all, which is public then."""
        return share if self.is_share else float(np.rint(share * released.public_n))

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return limits of the result; a number has a public n."""
        if _is_mean(result.released):
            return super().limits(result, miss)
        lower, upper, note = self.counts.limits(result, miss)
        return Limits(self._shown(lower, result.released), self._shown(upper, result.released), note)

    def note(self, result: AnyResult) -> str | None:
        """Return what to say of a share by counts if limits of its noise are too far apart; see `WIDEST`."""
        return self.counts.note(result) if self.is_share and not _is_mean(result.released) else None

    def population(self, result: AnyResult, asked: PopulationQuestion) -> Interval:
        """Return the interval of the share among all people, even if the result is a number of records.

        Raises
        ------
        ValueError
            If the law of the released number is not known.
        """
        if not _is_mean(result.released):
            return self.counts.population(result, asked)
        if result.parts[0].even_range is not None:
            raise ValueError(
                f"{asked.metric} with weights or groups has no interval for all people: the records must be "
                "independent draws from one population, one person each, that count alike."
            )
        raise ValueError(
            f"{asked.metric} has an interval for all people by mechanism='geometric', its default: no other "
            "adds noise of a known size to the number of records."
        )


def _is_mean(released: ReleasedNumbers) -> bool:
    """Return whether a share was released, not two counts."""
    return isinstance(released.values[0], float)


def share_of_records(normalize: Any, of_what: str, *, is_score: bool = False) -> ShareOfRecords:
    """Return what makes a result of the share of the records that a loss counts: see `_mean_or_sum`."""
    # of the two cells, what counts and the others, this is the share of the first; of no record none is wrong
    ratio = Ratio("recall", "binary", undefined=float(is_score))
    counts = Confusion(
        right_or_wrong(int(is_score)),
        ratio,
        LabelSet.of(None),
        ratio.rests_on,
        parts_of=ratio.parts,
        of=f"The share of {of_what}",
    )
    result = partial(_mean_or_sum, normalize=bool(normalize), is_score=is_score)
    return ShareOfRecords(result=result, rises=not is_score, counts=counts, is_share=bool(normalize))


@private(
    "sklearn.metrics.log_loss", greater_is_better=False, discloses_n={"normalize": True}, **OF_PROBABILITIES
)
def private_log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    max_loss: float | None = None,
    normalize: bool = True,
    **settings: Unpack[MeanSettings],
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

    def query(shape: Shape) -> Query:
        form = shape.arguments[1]
        cap = losses.log_loss_cap(form.resolution, check_max_loss(max_loss))
        loss = partial(losses.log_loss, resolution=form.resolution)
        columns = LabelColumns.of(labels, form, "y_proba")
        reading = Monotone(partial(_mean_or_sum, normalize=bool(normalize)))
        return _mean_query(columns, loss, cap, reading=reading)

    return asks(query)


@private(
    "sklearn.metrics.brier_score_loss", greater_is_better=False, mechanism="geometric", **OF_PROBABILITIES
)
def private_brier_score_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    scale_by_half: bool | str = "auto",
    **settings: Unpack[MeanSettings],
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

    def query(shape: Shape) -> Query:
        columns = LabelColumns.of(labels, shape.arguments[1], "y_proba", positive=pos_label)
        if scale_by_half != "auto" and not isinstance(scale_by_half, bool):
            raise ValueError("scale_by_half must be True, False or 'auto'.")
        half = columns.columns <= 2 if scale_by_half == "auto" else bool(scale_by_half)
        codes = partial(_is_positive, columns=columns) if columns.columns == 1 else None
        loss, cap = partial(losses.brier_loss, half=half), 1.0 if half else 2.0  # probabilities sum to 1
        return _mean_query(columns, loss, cap, codes=codes)

    return asks(query)


def _zero_one_query(shape: Shape, *, normalize: Any, is_score: bool = False) -> Query:
    record_loss = RecordLoss(_differs, reads=(np.asarray, np.asarray), cap=1.0)
    reader = partial(labels_of_any_type, columns=shape.columns())
    result = share_of_records(normalize, "right labels" if is_score else "wrong labels", is_score=is_score)
    return Query((MeanOf(record_loss, is_share=True),), reader, result)


def _differs(true: Array, pred: Array) -> Floats:
    """Return 1 where a predicted label is not the true one."""
    return losses.zero_one_loss(differing_labels(true, pred))


_OF_LABELS: ByName = {
    "mechanism": "geometric",
    "discloses_n": {"normalize": True},
    "from_unit": lambda x: (np.where(x > 0.5, "a", "b"), np.full(x.shape, "a")),
    "predicts_labels": True,
}


@private("sklearn.metrics.zero_one_loss", greater_is_better=False, **_OF_LABELS)
def private_zero_one_loss(
    y_true: ArrayLike, y_pred: ArrayLike, *, normalize: bool = True, **settings: Unpack[MeanSettings]
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
    By the default mechanism two counts have noise, those of the wrong and of the right records: a record
    that is replaced moves one of them up and the other down, by 1, and so does the noise where the number of
    records is public. The ``drawn`` of a `Result` has both noisy counts.

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
    return asks(_zero_one_query, normalize=normalize)


@private("sklearn.metrics.accuracy_score", greater_is_better=True, **_OF_LABELS)
def private_accuracy_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, normalize: bool = True, **settings: Unpack[MeanSettings]
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
    By the default mechanism two counts have noise, those of the wrong and of the right records: a record
    that is replaced moves one of them up and the other down, by 1, and so does the noise where the number of
    records is public. The ``drawn`` of a `Result` has both noisy counts.

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
    return asks(_zero_one_query, normalize=normalize, is_score=True)


def _misses(codes: Codes, scores: Floats, *, k: int) -> Floats:
    """Return 1 where the true label is not among the k first; of equal scores the later label is first."""
    own = np.take_along_axis(scores, codes[:, np.newaxis], axis=1)
    later = np.arange(scores.shape[1]) > codes[:, np.newaxis]
    before = (scores > own) | ((scores == own) & later)
    return losses.zero_one_loss(np.count_nonzero(before, axis=1) >= k)


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
    k: int = 2,
    normalize: bool = True,
    labels: ArrayLike | None = None,
    **settings: Unpack[MeanSettings],
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
    By the default mechanism two counts have noise, those of the missed and of the found records: a record
    that is replaced moves one of them up and the other down, by 1, and so does the noise where the number of
    records is public. The ``drawn`` of a `Result` has both noisy counts.

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

    def query(shape: Shape) -> Query:
        number, form = check_count(k, "k"), shape.arguments[1]
        if form.columns == 1:
            raise ValueError(
                "y_score should be a 2d array with a column for each label. For one column of scores of two "
                "labels, compare them with a public threshold and use private_accuracy_score."
            )
        columns = LabelColumns.of(labels, form, "y_score", fewest=2)
        reads = (columns.labels.sorted_codes, partial(float_block, name="y_score"))
        loss = RecordLoss(partial(_misses, k=number), reads=reads, cap=1.0)
        reader = partial(labels_and_columns, columns=columns, name="y_score")
        of_what = "records with the true label among the k likeliest"
        result = share_of_records(normalize, of_what, is_score=True)
        return Query((MeanOf(loss, is_share=True),), reader, result, unstated=columns.unstated)

    return asks(query)
