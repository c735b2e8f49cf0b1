"""Summaries of labels: one release of one table, from which every metric of labels follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._html import HtmlRepr, card
from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.metrics import METRICS, reports, row_of
from dp_metrics.metrics.labels import confusion, precision_recall
from dp_metrics.metrics.labels.count_formulas import sizes_of_labels
from dp_metrics.metrics.labels.counts import Confusion, confusion_for
from dp_metrics.metrics.labels.layouts import MOST_MATRIX_LABELS, Counts, check_matrix, matrix_layout, whole
from dp_metrics.metrics.reports import LabelTable
from dp_metrics.release.interval import Interval
from dp_metrics.release.plan import KnownParts, Plan
from dp_metrics.release.released import Asked
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.stored.answers import Answer, Call, read_result, restores
from dp_metrics.streaming._summary import KeptCounts, Summary, noise_of, plain, reading_of, unchanged

__all__ = ["ConfusionSummary", "ReleasedConfusion", "kept_labels", "released_confusion"]

R = TypeVar("R")


@own_error_state
@dataclass(frozen=True, repr=False, eq=False)
class ReleasedConfusion(HtmlRepr):
    """Metrics of labels that follow from one release: they are public, and cost no more epsilon.

    Parameters
    ----------
    result : PrivateResult
        All that may be published: its value is the list of noisy counts, whole numbers without bias. Its
        ``noise_interval()`` has limits of each: of a matrix, those that a call of `private_confusion_matrix`
        has.
    labels : ndarray of shape (n_classes,)
        The public labels, in the order of the results.
    counts : Counts
        The plausible counts that the metrics are computed from.

    Notes
    -----
    Guarantee: that of the release. All methods are post-processing: they cost nothing.

    Examples
    --------
    >>> from dp_metrics import ConfusionSummary
    >>> summary = ConfusionSummary(labels=["ham", "spam"])
    >>> for _ in range(10):  # batches
    ...     summary = summary.update(["ham"] * 90 + ["spam"] * 10, ["ham"] * 91 + ["spam"] * 9)
    >>> released = summary.release(epsilon=1.0)
    >>> released.confusion_matrix().shape, released.result.epsilon
    ((2, 2), 1.0)
    >>> 0.7 < released.recall_score(pos_label="spam") <= 1  # exactly 0.9
    True
    """

    result: PrivateResult[list[int]]
    labels: NDArray[Any]
    counts: Counts

    def __repr__(self) -> str:
        return f"ReleasedConfusion(labels={self.labels.tolist()}, epsilon={self.result.epsilon:g})"

    def _repr_html_(self) -> str:
        names = [str(label) for label in self.labels.tolist()]
        rows = [
            [name, *(f"{count:.1f}" for count in counts)]
            for name, counts in zip(names, self.confusion_matrix(), strict=True)
        ]
        facts = {"epsilon": self.result.epsilon, "note": self.result.note}
        return card("ReleasedConfusion", facts, ["true \\ predicted", *names], rows)

    def accuracy_score(self) -> float:
        """Return the accuracy that the release tells."""
        return float(self.counts.right.sum() / self.counts.n) if self.counts.n > 0 else 0.0

    def noise_interval(
        self, metric: Callable[..., Any] | str, *, confidence: float = 0.95, **options: Any
    ) -> Interval:
        """Return limits of the exact metric of the records: how far the noise may have moved it.

        Parameters
        ----------
        metric : callable or str
            A metric of labels, or its name, such as "recall" or "accuracy".
        confidence : float, default=0.95
            Probability, over the noise, with which all limits hold.
        **options
            Of the metric, such as `pos_label` or `average`.

        Returns
        -------
        Interval
            As of the result of the metric: see `dp_metrics.noise_interval`.

        Raises
        ------
        ValueError, TypeError
            If the metric has no such limits, or an argument is invalid.
        """
        name, wanted = self._wanted(metric, options)
        return noise_of(self.result, wanted).interval(name, confidence)

    def population_interval(
        self,
        metric: Callable[..., Any] | str,
        *,
        confidence: float = 0.95,
        method: str = "sure",
        **options: Any,
    ) -> Interval:
        """Return limits of the metric among all people like the records.

        Parameters
        ----------
        metric, **options
            As of `noise_interval`.
        confidence : float, default=0.95
            Probability, over the noise and over which people became records, with which all limits hold.
        method : {"sure", "approximate"}, default="sure"
            As of `dp_metrics.population_interval`.

        Returns
        -------
        Interval
            With the metric of the counts as its `estimate`.

        Raises
        ------
        ValueError, TypeError
            If the metric has no such limits, or an argument is invalid.
        """
        name, wanted = self._wanted(metric, options)
        return noise_of(self.result, wanted).population_interval(Asked.of(name, confidence, method))

    def _wanted(self, metric: Callable[..., Any] | str, options: Mapping[str, Any]) -> tuple[str, Confusion]:
        """Return the name of a metric, and the metric of the counts that were released."""
        row, fixed = row_of(metric)
        known = {**fixed, **options, "labels": self.labels}
        if row.name == "private_accuracy_score":  # the micro average of recalls
            known, row = {**known, "average": "micro"}, METRICS["private_recall_score"]
        if not isinstance(row.usual.postprocess, Confusion):
            raise TypeError(f"{row.name} is no metric of labels: the release holds counts of labels only.")
        wanted = confusion_for(row, known)
        return row.name, replace(wanted, layout=reading_of(self.result).layout)

    def _score(self, metric: Callable[..., R], **options: Any) -> R:
        name = metric.__name__
        wanted = confusion_for(METRICS[name], {**options, "labels": self.labels})
        if wanted.needs_matrix and self.counts.matrix is None:
            raise ValueError(f"{name} needs the whole matrix: release the summary with matrix=True.")
        with np.errstate(all="ignore"):
            value: R = wanted.formula(self.counts)
        return value

    # `docs/sources.py --write` writes the methods below, one for each metric.

    def balanced_accuracy_score(self, *, adjusted: bool = False, zero_division: float | str = 0.0) -> float:
        """Return what `private_balanced_accuracy_score` makes of the counts, with its options."""
        return self._score(
            confusion.private_balanced_accuracy_score, adjusted=adjusted, zero_division=zero_division
        )

    def classification_report(
        self,
        *,
        target_names: Sequence[str] | None = None,
        digits: int = 2,
        output_dict: bool = False,
        zero_division: float | str = 0.0,
    ) -> str | LabelTable:
        """Return what `private_classification_report` makes of the counts, with its options."""
        return self._score(
            reports.private_classification_report,
            target_names=target_names,
            digits=digits,
            output_dict=output_dict,
            zero_division=zero_division,
        )

    def cohen_kappa_score(self, *, weights: str | None = None) -> float:
        """Return what `private_cohen_kappa_score` makes of the counts, with its options."""
        return self._score(confusion.private_cohen_kappa_score, weights=weights)

    def confusion_matrix(self, *, normalize: str | None = None) -> Floats:
        """Return what `private_confusion_matrix` makes of the counts, with its options."""
        return self._score(confusion.private_confusion_matrix, normalize=normalize)

    def f1_score(
        self, *, pos_label: Any = 1, average: str | None = "binary", zero_division: float | str = 0.0
    ) -> float | Floats:
        """Return what `private_f1_score` makes of the counts, with its options."""
        return self._score(
            precision_recall.private_f1_score,
            pos_label=pos_label,
            average=average,
            zero_division=zero_division,
        )

    def jaccard_score(
        self, *, pos_label: Any = 1, average: str | None = "binary", zero_division: float | str = 0.0
    ) -> float | Floats:
        """Return what `private_jaccard_score` makes of the counts, with its options."""
        return self._score(
            precision_recall.private_jaccard_score,
            pos_label=pos_label,
            average=average,
            zero_division=zero_division,
        )

    def matthews_corrcoef(self) -> float:
        """Return what `private_matthews_corrcoef` makes of the counts."""
        return self._score(confusion.private_matthews_corrcoef)

    def precision_score(
        self, *, pos_label: Any = 1, average: str | None = "binary", zero_division: float | str = 0.0
    ) -> float | Floats:
        """Return what `private_precision_score` makes of the counts, with its options."""
        return self._score(
            precision_recall.private_precision_score,
            pos_label=pos_label,
            average=average,
            zero_division=zero_division,
        )

    def recall_score(
        self, *, pos_label: Any = 1, average: str | None = "binary", zero_division: float | str = 0.0
    ) -> float | Floats:
        """Return what `private_recall_score` makes of the counts, with its options."""
        return self._score(
            precision_recall.private_recall_score,
            pos_label=pos_label,
            average=average,
            zero_division=zero_division,
        )

    def specificity_score(
        self, *, pos_label: Any = 1, average: str | None = "binary", zero_division: float | str = 0.0
    ) -> float | Floats:
        """Return what `private_specificity_score` makes of the counts, with its options."""
        return self._score(
            precision_recall.private_specificity_score,
            pos_label=pos_label,
            average=average,
            zero_division=zero_division,
        )


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
        epsilon : float
            Privacy parameter, > 0: smaller is more private and less accurate.
        matrix : bool or None, default=None
            Whether to release all n_classes^2 cells of the confusion matrix, rather than three counts for
            each label: how often it was right, missed and wrong. These tell every metric but the matrix and
            weighted kappas, and much better with many labels. None: the matrix for up to three labels.
        neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
            What one person can change: the contents of a record ("replace_one": their number is public), or
            whether it is there ("add_or_remove_one": less noise, as it changes one count, not two).
        accountant : PrivacyAccountant or None, default=None
            Budget that pays epsilon for this release, before it is drawn.
        random_state : None, int, RandomState or Generator, default=None
            None draws fresh randomness from the operating system. Anything else makes the release
            reproducible and therefore NOT private.
        spend_name : str or None, default=None
            The name of this release in the accountant's history; None: the name of the metric. A name that
            was given before returns what was released then, at no cost.

        Returns
        -------
        ReleasedConfusion
            All metrics of labels.

        Raises
        ------
        ValueError, TypeError
            If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases
            under another neighbouring relation.
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

        Notes
        -----
        Guarantee: replacing any one record changes the probability of any result by at most a factor
        exp(epsilon), given the model, the number of records and the arguments, which are public. With
        neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number
        of records is not public.
        """
        known = self._labels
        if matrix is None:
            matrix = known.size <= MOST_MATRIX_LABELS
        metric = METRICS["private_confusion_matrix" if matrix else "private_classification_report"]
        wanted, kept = kept_labels(known, matrix=matrix)

        def read() -> tuple[Plan, KnownParts, Any]:
            table = KnownParts((wanted.table(self._matrix()),))
            return replace(wanted.plan(private_n=True), postprocess=kept), table, None

        return self._run(
            metric,
            read,
            partial(released_confusion, labels=known),
            {},
            epsilon=epsilon,
            neighboring=neighboring,
            accountant=accountant,
            random_state=random_state,
            spend_name=spend_name,
            call=Call("labels", {"labels": known.in_order, "matrix": matrix}),
        )

    def _matrix(self) -> NDArray[np.int64]:
        _, known = self._records()
        table: NDArray[np.int64] = known.parts[0].counts  # type: ignore[union-attr]
        return table.reshape(self._labels.size, self._labels.size)

    @classmethod
    def _made(cls, settings: Mapping[str, Any]) -> Self:
        return cls(**settings["options"])


def kept_labels(labels: LabelSet, *, matrix: bool) -> tuple[Confusion, KeptCounts]:
    """Return the counts to release of records with these labels, and how a result keeps them."""
    layout = whole(labels.size) if matrix else matrix_layout(labels.size)
    wanted = Confusion(layout, unchanged, labels, sizes_of_labels)
    return wanted, KeptCounts(wanted, (labels.size, labels.size) if matrix else None)


def released_confusion(result: PrivateResult[Any], *, labels: LabelSet) -> ReleasedConfusion:
    """Return what a result that keeps its counts tells."""
    noisy, counts = result.value
    return ReleasedConfusion(replace(result, value=noisy), labels.in_order, counts)


@restores("labels")
def _restored(answer: Answer) -> ReleasedConfusion:
    asked, (written,) = answer.asked, answer.results
    labels = LabelSet.of(asked["labels"])
    kept = kept_labels(labels, matrix=asked["matrix"])[1]
    return released_confusion(read_result(written, kept), labels=labels)
