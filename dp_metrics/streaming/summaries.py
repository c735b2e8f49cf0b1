"""Summaries: what a release needs to know of the records, gathered in chunks or on several machines.

A summary holds sums and the most extreme records themselves. It is private data, as sensitive as the records:
keep it where they are kept, and publish only what `release` returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.arrays import Shape
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_bounds
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import METRICS, Metric, row_of
from dp_metrics.metrics._docstrings import shares_docstring
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.metrics.labels.layouts import (
    MOST_MATRIX_LABELS,
    check_matrix,
    matrix_layout,
    sizes_of_labels,
    whole,
)
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.metrics.scores.curve_formulas import TwoClasses
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.metrics.scores.table import ScoreBins, ScoreTable
from dp_metrics.release.query import Query
from dp_metrics.release.released import KeptCounts
from dp_metrics.release.result import Result, set_result
from dp_metrics.release.stored_answers import Answer, restores
from dp_metrics.release.stored_questions import Call
from dp_metrics.release.terms import Terms
from dp_metrics.streaming._summary import CAPACITY, Summary, plain, unchanged

_PER_CALL = (
    "epsilon",
    "neighboring",
    "mechanism",
    "accountant",
    "random_state",
    "spend_name",
    "sample_weight",
    "groups",
)


class LossSummary(Summary):
    """Private data: all that a private mean of losses needs to know of its records, in little memory.

    Records come in chunks, in any order, or are summarised on different machines and merged: a release is the
    same, to the bit, as from one call of the metric with all of them.

    Parameters
    ----------
    metric : callable or str
        The metric to release: `private_mse`, or its name such as "mse", or any other metric of this package
        that is a mean of one loss per record: not `private_r2_score`, `private_variance`, `private_std` and
        `private_quantile`.
    capacity : int, default=2048
        Public number of ranks to keep. The default serves epsilon from 0.09 on; below that a release warns,
        stays as private, and is less accurate, soon useless: see the notes.
    **options
        Public options of the metric, such as bounds, max_loss or labels, as numbers, strings, lists or None.
        Their values are checked with the first chunk. A release with neighboring="add_or_remove_one" needs
        `labels`, if the metric takes them.

    Raises
    ------
    TypeError, ValueError
        If the metric cannot be summarised, or does not take an option.

    See Also
    --------
    VarianceSummary : The same for `private_variance`.

    Notes
    -----
    A summary holds the largest losses themselves: never publish one. The guarantee is that of the metric, and
    what it costs is epsilon for each release.

    Below what the capacity serves there is a cliff: from a half or a third of that epsilon down, releases are
    near 0 whatever the data. Expected error of a release relative to the value, each counted as at most 10,
    for a million squares of normal errors and of errors with heavy tails (Student's t with 3 degrees of
    freedom), from exact laws (``benchmarks/capacity.py`` of 308a3eb):

    =======  =============  ==============  =============  ==============
    epsilon  normal, 2,048  normal, enough  heavy, 2,048   heavy, enough
    =======  =============  ==============  =============  ==============
    0.1      0.00032        0.00032         0.057          0.057
    0.05     0.00061        0.00060         0.072          0.070
    0.02     0.99           0.0014          0.99           0.091
    0.01     1.00           0.0024          1.00           0.11
    =======  =============  ==============  =============  ==============

    The warning says how many ranks are needed; 4,096 serve epsilon from 0.043 on, 8,192 from 0.022. If a
    summary with too few is all there is, ``mechanism=Hazard(resolution=0.3)`` is better than nothing: 0.47
    and 0.34 instead of 0.99 at epsilon 0.02.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import LossSummary, private_mae
    >>> summary = LossSummary(private_mae)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(10):  # batches of a data loader
    ...     y = rng.normal(size=1000)
    ...     summary = summary.update(y, y + 1)
    >>> 0.9 < summary.release(epsilon=1.0) < 1.1  # exactly 1
    True
    """

    def __init__(self, metric: Any, *, capacity: int = CAPACITY, **options: Any) -> None:
        row, options = _check_metric(metric, options)
        super().__init__(row, {name: plain(options[name], name) for name in sorted(options)}, capacity)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"LossSummary({self._name}, capacity={self._capacity}{options})"

    @classmethod
    def from_data(
        cls,
        metric: Any,
        *data: ArrayLike,
        sample_weight: ArrayLike | None = None,
        capacity: int = CAPACITY,
        **options: Any,
    ) -> Self:
        """Return the summary of one chunk of records.

        Parameters
        ----------
        metric, capacity, **options
            As for the class.
        *data, sample_weight : array-like
            As for `update`.
        """
        return cls(metric, capacity=capacity, **options).update(*data, sample_weight=sample_weight)

    def update(self, *data: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of records.

        Parameters
        ----------
        *data : array-like
            What the metric takes, such as y_true and y_pred; a chunk may be empty.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Public, non-negative weights; for all chunks or for none.

        Returns
        -------
        LossSummary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid, as in the metric; the summary is as it was before.
        """
        return super().update(*data, sample_weight=sample_weight)

    def _planned(self, shape: Shape) -> Query:
        query = super()._planned(shape)
        if len(query.quantities) > 1 or self._options.get("multioutput") == "raw_values":
            raise ValueError(
                "A summary releases one number. For multioutput='raw_values', and for a root of several "
                "outputs, make one summary for each output."
            )
        # targets of several outputs make one part as well, or none that a summary takes
        return replace(query, unstated=None) if "multioutput" in self._metric.options else query

    @shares_docstring()
    def release(
        self,
        epsilon: float,
        *,
        neighboring: str = "replace_one",
        mechanism: str | Mechanism | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        spend_name: str | None = None,
    ) -> float:
        """Release the metric of all records with epsilon-differential privacy.

        Parameters
        ----------
        mechanism : str, mechanism object or None, default=None
            None: what the metric takes by default.

        Returns
        -------
        float
            The metric, as from one call of it.

        Raises
        ------
        ValueError, TypeError
            If an option is invalid, or if the accountant counts releases under another neighbouring relation.
        PrivacyBudgetError
            If the accountant has less than epsilon left; nothing is drawn.

        Warns
        -----
        SeededReleaseWarning
            If `random_state` is given.
        UserWarning
            If the capacity is too small for the accuracy that is possible at this epsilon.
        """
        result: Result[float] = self._release(
            epsilon=epsilon,
            neighboring=neighboring,
            mechanism=mechanism,
            accountant=accountant,
            random_state=random_state,
            spend_name=spend_name,
        )
        return result.value


class VarianceSummary(Summary):
    """Private data: all that a private variance needs to know of its records, in little memory.

    Values come in chunks, in any order, or are summarised on different machines and merged: a release is the
    same, to the bit, as from one call of `private_variance` with all of them. The root of a release is a
    private standard deviation.

    Parameters
    ----------
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of the values, in their units; values are clipped into it. None:
        unbounded. Never read it from the data.
    capacity : int, default=2048
        Public number of ranks to keep, at most 4,096 of which are used. The default serves epsilon from 0.06
        on; below that a release warns, stays as private, and is less accurate, soon useless: see the notes.
        A summary of no more values than this, if their number is public, has the adaptive mechanism in two
        stages, as `private_variance` has. Any other releases by `Hazard`, which is worse where a few values
        lie far from the rest (heavy tails), and better elsewhere.

    Raises
    ------
    ValueError
        If an argument is invalid.

    See Also
    --------
    LossSummary : The same for means of losses.

    Notes
    -----
    A summary holds the most extreme values themselves: never publish one. The guarantee is that of
    `private_variance`, and what it costs is epsilon for each release.

    Expected error of a release relative to the value, as in `LossSummary`, for a million normal values:
    0.00044, 0.00073 and 0.77 at epsilon 0.1, 0.05 and 0.02, where a capacity that is large enough gives
    0.0014. An error of 1 means that releases are near 0 whatever the data.

    Examples
    --------
    >>> from dp_metrics import VarianceSummary
    >>> first, second = VarianceSummary().update(range(500)), VarianceSummary().update(range(500, 1000))
    >>> 60_000 < first.merge(second).release(epsilon=2.0) < 120_000  # exactly 83,333.25
    True
    """

    def __init__(self, *, bounds: tuple[float, float] | None = None, capacity: int = CAPACITY) -> None:
        limits = check_bounds(bounds)
        # adding 0 leaves no negative zero, so that the bytes of merges agree
        known = None if limits is None else [limits[0] + 0.0, limits[1] + 0.0]
        super().__init__(METRICS["private_variance"], {"bounds": known}, capacity)

    def __repr__(self) -> str:
        bounds = self._options["bounds"]
        return f"VarianceSummary(bounds={bounds and tuple(bounds)}, capacity={self._capacity})"

    @classmethod
    def from_data(
        cls, x: ArrayLike, *, bounds: tuple[float, float] | None = None, capacity: int = CAPACITY
    ) -> Self:
        """Return the summary of one chunk of values.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            As for `update`.
        bounds, capacity
            As for the class.
        """
        return cls(bounds=bounds, capacity=capacity).update(x)

    def update(self, x: ArrayLike) -> Self:  # type: ignore[override]
        """Add a chunk of values.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            One finite number per record; a chunk may be empty.

        Returns
        -------
        VarianceSummary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid, as in `private_variance`; the summary is as it was before.
        """
        return super().update(x)

    @shares_docstring(limit="give the summary `bounds`")
    def release(
        self,
        epsilon: float,
        *,
        ddof: float = 0,
        neighboring: str = "replace_one",
        mechanism: str | Mechanism = "adaptive",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        spend_name: str | None = None,
    ) -> float:
        """Release the variance of all values with epsilon-differential privacy.

        Returns
        -------
        float
            The variance, as from one call of `private_variance`.

        Raises
        ------
        ValueError, TypeError
            If an option is invalid, or if the accountant counts releases under another neighbouring relation.
        PrivacyBudgetError
            If the accountant has less than epsilon left; nothing is drawn.

        Warns
        -----
        SeededReleaseWarning
            If `random_state` is given.
        UserWarning
            If the capacity is too small for the accuracy that is possible at this epsilon.
        """
        result: Result[float] = self._release(
            epsilon=epsilon,
            ddof=ddof,
            neighboring=neighboring,
            mechanism=mechanism,
            accountant=accountant,
            random_state=random_state,
            spend_name=spend_name,
        )
        return result.value

    def _of_metric(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Query, Sequence[Any]]:
        _, stats = self._records()
        return metric.planned(metric.form(), {**options, **self._options}), stats


for _kind in (LossSummary, VarianceSummary):
    set_result(_kind.release, _kind._release)


def _check_metric(metric: Any, options: Mapping[str, Any]) -> tuple[Metric, dict[str, Any]]:
    """Return the row of a metric that is a mean of losses and takes these options, and all of them."""
    row, fixed = row_of(metric)
    if not _is_mean(row):
        names = ", ".join(row.name for row in METRICS.values() if _is_mean(row))
        raise TypeError(f"metric must be one of {names}: a mean of one loss per record.")
    every = {**fixed, **options}
    for option in every:
        if option in _PER_CALL:
            raise TypeError(
                f"{option} is no option of a summary: pass it to `update` or `release`, if they take it."
            )
        if option not in row.options:
            raise TypeError(f"{row.name}() got an unexpected keyword argument {option!r}.")
    return row, every


def _is_mean(row: Metric) -> bool:
    """Return whether a metric is made of the mean of one loss per record."""
    return row.usual.is_mean


class ConfusionSummary(Summary):
    """Private data: how many records have which true and which predicted label.

    Records come in chunks, in any order, or are summarised on different machines and merged. One release
    tells all metrics of labels; they are the same, to the bit, however the records came.

    Parameters
    ----------
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set, of numbers or strings, in the order of the results. None: 0 and 1. Every true
        and predicted label must be one of them; they are never inferred from the data.

    Raises
    ------
    ValueError, TypeError
        If the labels are invalid.

    See Also
    --------
    ScoreSummary : The same for scores: curves, and areas under them.
    private_f1_score : One metric, from fewer counts and so more accurate.

    Notes
    -----
    A summary is as sensitive as the records: publish only what `release` returns. Each release costs its
    epsilon; what is computed from a release costs nothing.

    Examples
    --------
    >>> from dp_metrics import ConfusionSummary
    >>> monday = ConfusionSummary().update([0] * 90 + [1] * 10, [0] * 85 + [1] * 15)
    >>> tuesday = ConfusionSummary().update([0] * 80 + [1] * 20, [0] * 85 + [1] * 15)
    >>> released = monday.merge(tuesday).release(epsilon=2.0)
    >>> 0.7 < released.accuracy_score() <= 1  # exactly 0.95
    True
    """

    def __init__(self, labels: ArrayLike | None = None) -> None:
        self._labels = LabelSet.of(labels)
        check_matrix(self._labels.size)
        listed = plain(self._labels.in_order, "labels")
        super().__init__(METRICS["private_confusion_matrix"], {"labels": listed})

    def __repr__(self) -> str:
        return f"ConfusionSummary(labels={self._options['labels']})"

    @classmethod
    def from_data(cls, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None) -> Self:
        """Return the summary of one chunk of records.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            As for `update`.
        labels : array-like
            As for the class.
        """
        return cls(labels).update(y_true, y_pred)

    def update(self, y_true: ArrayLike, y_pred: ArrayLike) -> Self:  # type: ignore[override]
        """Add a chunk of records.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels; a chunk may be empty.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.

        Returns
        -------
        ConfusionSummary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid; the summary is as it was before.
        """
        return super().update(y_true, y_pred)

    @shares_docstring(returns="")
    def release(
        self,
        epsilon: float,
        *,
        matrix: bool | None = None,
        neighboring: str = "replace_one",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        spend_name: str | None = None,
    ) -> ReleasedConfusion:
        """Release a table of counts with epsilon-differential privacy.

        Parameters
        ----------
        matrix : bool or None, default=None
            Whether to release all n_classes^2 cells of the confusion matrix, rather than three counts for
            each label: how often it was right, missed and wrong. These tell every metric but the matrix and
            weighted kappas, and much better with many labels. None: the matrix for up to three labels.

        Returns
        -------
        ReleasedConfusion
            All metrics of labels.
        """
        known = self._labels
        if matrix is None:
            matrix = known.size <= MOST_MATRIX_LABELS
        metric = METRICS["private_confusion_matrix" if matrix else "private_classification_report"]
        wanted, kept = kept_labels(known, matrix=matrix)

        def read() -> tuple[Query, Sequence[Any], Any]:
            _, (cells,) = self._records()
            counts = wanted.layout.of(cells.counts.reshape(known.size, known.size))
            return replace(wanted.query(), reading=kept), [replace(cells, counts=counts)], None

        terms = Terms.of(
            epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
            spend_name=spend_name,
        )  # fmt: skip
        return self._run(
            terms,
            metric,
            read,
            partial(released_confusion, labels=known),
            {},
            call=Call("labels", {"labels": known.in_order, "matrix": matrix}),
        )


def kept_labels(labels: LabelSet, *, matrix: bool) -> tuple[Confusion, KeptCounts]:
    """Return the counts to release of records with these labels, and how a result keeps them."""
    layout = whole(labels.size) if matrix else matrix_layout(labels.size)
    wanted = Confusion(layout, unchanged, labels, sizes_of_labels)
    return wanted, KeptCounts(wanted, (labels.size, labels.size) if matrix else None)


def released_confusion(result: Result[Any], *, labels: LabelSet) -> ReleasedConfusion:
    """Return what a result that keeps its counts tells."""
    told: Any = result.reading
    return ReleasedConfusion(result, labels.in_order, told.told(result.released), told.told.layout)


@restores("labels")
def _restored_confusion(answer: Answer) -> ReleasedConfusion:
    labels = LabelSet.of(answer.asked["labels"])
    wanted, kept = kept_labels(labels, matrix=answer.asked["matrix"])
    (result,) = answer.results(replace(wanted.query(), reading=kept))
    return released_confusion(result, labels=labels)


class ScoreSummary(Summary):
    """Private data: how many records of either class have a score in each public bin.

    Records come in chunks, in any order, or are summarised on different machines and merged. One release
    tells all curves and the areas under them; they are the same, to the bit, however the records came.

    Parameters
    ----------
    labels : array-like of shape (2,) or None, default=None
        The two public labels, numbers or strings. None: 0 and 1. Never inferred from the data.
    pos_label : label or None, default=None
        The positive one of the labels; None: the second in sorted order.
    edges : array-like of shape (n_bins + 1,) or None, default=None
        Public edges of the bins of scores, strictly increasing; scores outside are counted in the first or
        last bin. None: 128 bins of [0, 1], narrower at both ends, of which neighbours are merged before a
        release, and scores outside are refused. Never read them from the data.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    See Also
    --------
    ConfusionSummary : The same for predicted labels.
    private_roc_auc_score : The area under the ROC curve, usually much more accurate than what a table tells.

    Notes
    -----
    A summary is as sensitive as the records: publish only what `release` returns. Each release costs its
    epsilon; what is computed from a release costs nothing.

    Examples
    --------
    >>> from dp_metrics import ScoreSummary
    >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 400 + [0.6] * 200 + [0.9] * 400
    >>> monday, tuesday = ScoreSummary().update(y_true, y_score), ScoreSummary().update(y_true, y_score)
    >>> released = monday.merge(tuesday).release(epsilon=1.0)
    >>> 0.8 < released.average_precision_score() <= 1
    True
    """

    def __init__(
        self, *, labels: ArrayLike | None = None, pos_label: Any = None, edges: ArrayLike | None = None
    ) -> None:
        self._classes, self._bins = TwoClasses.of(labels, pos_label), ScoreBins.of(edges)
        known_labels = self._classes.labels
        listed, known = (plain(one, "labels") for one in (known_labels.in_order, known_labels.known))
        given = None if self._bins.is_unit else plain(self._bins.edges, "edges")
        # of sorted labels it is known which is the positive one, whether or not somebody said so
        is_told = pos_label is not None or known_labels.is_sorted
        positive = known[self._classes.positive] if is_told else None
        options = {"labels": listed, "pos_label": positive, "edges": given}
        super().__init__(METRICS["private_roc_curve"], options)

    def __repr__(self) -> str:
        labels, positive = self._options["labels"], self._options["pos_label"]
        return f"ScoreSummary(labels={labels}, pos_label={positive!r}, bins={self._bins.size})"

    @classmethod
    def from_data(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        edges: ArrayLike | None = None,
    ) -> Self:
        """Return the summary of one chunk of records.

        Parameters
        ----------
        y_true, y_score : array-like
            As for `update`.
        labels, pos_label, edges
            As for the class.
        """
        return cls(labels=labels, pos_label=pos_label, edges=edges).update(y_true, y_score)

    def update(self, y_true: ArrayLike, y_score: ArrayLike) -> Self:  # type: ignore[override]
        """Add a chunk of records.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels; a chunk may be empty.
        y_score : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
            Scores of the positive class; of two columns, as `predict_proba` gives them, that of the positive
            class counts.

        Returns
        -------
        ScoreSummary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid; the summary is as it was before.
        """
        return super().update(y_true, y_score)

    @shares_docstring(returns="")
    def release(
        self,
        epsilon: float,
        *,
        bins: int | None = None,
        neighboring: str = "replace_one",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        spend_name: str | None = None,
    ) -> ReleasedScores:
        """Release a table of counts with epsilon-differential privacy.

        Returns
        -------
        ReleasedScores
            All curves and areas.
        """
        self._bins.columns(bins)  # which raises

        def read() -> tuple[Query, Sequence[Any], Any]:
            query, stats = self._records()
            return self._binned(query, bins), stats, None

        terms = Terms.of(
            epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
            spend_name=spend_name,
        )  # fmt: skip
        return self._run(
            terms,
            self._metric,
            read,
            _released,
            {},
            call=Call("scores", {"options": self._options, "bins": bins}),
        )

    def _binned(self, query: Query, bins: int | None) -> Query:
        """Return the query of so many bins."""
        table = ScoreTable(self._bins, self._bins.columns(bins), unchanged, self._classes)
        part: Any = query.quantities[0]
        parts = (replace(part, columns=table.columns),)
        return replace(query, quantities=parts, reading=KeptCounts(table))


def _released(result: Result[Any]) -> ReleasedScores:
    told: Any = result.reading
    return ReleasedScores(result, told.told(result.released))


@restores("scores")
def _restored_scores(answer: Answer) -> ReleasedScores:
    summary = ScoreSummary(**answer.asked["options"])
    query, _ = summary._records()
    (result,) = answer.results(summary._binned(query, answer.asked["bins"]))
    return _released(result)
