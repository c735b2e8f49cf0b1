"""Summaries of scores: one release of one table, from which every curve and the areas under them follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.metrics import METRICS
from dp_metrics.metrics._docstrings import shares_docstring
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.metrics.scores.table import ScoreBins, ScoreTable
from dp_metrics.metrics.scores.two_classes import TwoClasses
from dp_metrics.release.plan import KnownParts, Plan
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.stored.answers import Answer, read_result, restores
from dp_metrics.release.stored.questions import Call
from dp_metrics.release.terms import Terms
from dp_metrics.streaming._summary import KeptCounts, Summary, plain, unchanged


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
        table = self._table(bins)

        def read() -> tuple[Plan, KnownParts, Any]:
            plan, known = self._records()
            (finest,) = known.parts
            counts = KnownParts((table.query(finest.table),))  # type: ignore[union-attr]
            return replace(plan, postprocess=KeptCounts(table)), counts, None

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

    def _table(self, bins: int | None) -> ScoreTable:
        return ScoreTable(self._bins, self._bins.columns(bins), unchanged, self._classes)

    @classmethod
    def _made(cls, settings: Mapping[str, Any]) -> Self:
        return cls(**settings["options"])


def _released(result: PrivateResult[Any]) -> ReleasedScores:
    noisy, counts = result.value
    return ReleasedScores(replace(result, value=noisy), counts)


@restores("scores")
def _restored(answer: Answer) -> ReleasedScores:
    asked, (written,) = answer.asked, answer.results
    table = ScoreSummary(**asked["options"])._table(asked["bins"])
    return _released(read_result(written, KeptCounts(table)))
