"""Summaries of labels: one release of one table, from which every metric of labels follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.metrics import METRICS
from dp_metrics.metrics._docstrings import shares_docstring
from dp_metrics.metrics.labels.count_formulas import sizes_of_labels
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.metrics.labels.layouts import MOST_MATRIX_LABELS, check_matrix, matrix_layout, whole
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.release.plan import KnownParts, Plan
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.stored.answers import Answer, read_result, restores
from dp_metrics.release.stored.questions import Call
from dp_metrics.release.terms import Terms
from dp_metrics.streaming._summary import KeptCounts, Summary, plain, reading_of, unchanged


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

        def read() -> tuple[Plan, KnownParts, Any]:
            table = KnownParts((wanted.table(self._matrix()),))
            return replace(wanted.plan(), postprocess=kept), table, None

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
    layout = reading_of(result).layout
    return ReleasedConfusion(replace(result, value=noisy), labels.in_order, counts, layout)


@restores("labels")
def _restored(answer: Answer) -> ReleasedConfusion:
    asked, (written,) = answer.asked, answer.results
    labels = LabelSet.of(asked["labels"])
    kept = kept_labels(labels, matrix=asked["matrix"])[1]
    return released_confusion(read_result(written, kept), labels=labels)
