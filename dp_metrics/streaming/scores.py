"""Summaries of scores: one release of one table, from which every curve and the areas under them follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.inputs.options import check_count
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.scores.bands import CalibrationBand, RocBand
from dp_metrics.metrics.scores.curve_formulas import (
    CalibrationCurve,
    PrecisionRecallCurve,
    RocCurve,
    ScoreCounts,
    area_under_roc,
    average_precision,
    calibration,
    precision_recall,
    roc,
)
from dp_metrics.metrics.scores.soft_bins import MOST_BINS
from dp_metrics.metrics.scores.table import ScoreBins, ScoreTable
from dp_metrics.metrics.scores.two_classes import TwoClasses
from dp_metrics.release.interval import Interval
from dp_metrics.release.plan import KnownParts
from dp_metrics.release.released import Asked, ResultNoise
from dp_metrics.release.result import PrivateResult
from dp_metrics.streaming._summary import KeptCounts, Summary, noise_of, plain, reading_of, unchanged

__all__ = ["ReleasedScores", "ScoreSummary"]

_MOST_SHOWN = 100_000  # records of a histogram
_UNIT_ONLY = "A calibration curve needs probabilities: the edges of the bins should lie in [0, 1]."


@own_error_state
@dataclass(frozen=True, repr=False, eq=False)
class ReleasedScores:
    """Curves and areas that follow from one release: they are public, and cost no more epsilon.

    Parameters
    ----------
    result : PrivateResult
        All that may be published: its value is the list of noisy counts, whole numbers without bias; of the
        negative class by rising score, then of the positive one. Its ``noise_interval()`` has limits of each.
    counts : ScoreCounts
        The plausible counts that all else is computed from, with the public edges of the bins.

    Notes
    -----
    Guarantee: that of the release. All methods are post-processing: they cost nothing.

    Examples
    --------
    >>> from dp_metrics import ScoreSummary
    >>> summary = ScoreSummary()
    >>> for _ in range(10):  # batches
    ...     summary = summary.update([0] * 50 + [1] * 50, [0.2] * 40 + [0.6] * 20 + [0.9] * 40)
    >>> released = summary.release(epsilon=1.0)
    >>> 0.8 < released.roc_auc_score() < 1  # exactly 0.98
    True
    >>> fpr, tpr, thresholds = released.roc_curve()
    >>> precision, recall, _ = released.precision_recall_curve()
    """

    result: PrivateResult[list[int]]
    counts: ScoreCounts

    def __repr__(self) -> str:
        return f"ReleasedScores({self.counts.negative.size} bins, epsilon={self.result.epsilon:g})"

    def roc_curve(self) -> RocCurve:
        """Return what `private_roc_curve` makes of the counts."""
        return roc(self.counts)

    def roc_auc_score(self) -> float:
        """Return the area under the ROC curve, in which a pair of records in one bin counts half."""
        return area_under_roc(self.counts)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the area under the ROC curve of these records' scores in their public bins.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise, with which both limits hold.

        Returns
        -------
        Interval
            The limits.
        """
        return self._area().interval("roc_auc_score", confidence)

    def population_interval(self, confidence: float = 0.95, method: str = "sure") -> Interval:
        """Return limits of the area under the ROC curve among all people, for scores in their public bins.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise and over which people became records, with which both limits hold.
        method : {"sure", "approximate"}, default="sure"
            "sure": proved, the areas under both sides of `roc_band`. "approximate": 2 to 5 times narrower.

        Returns
        -------
        Interval
            With `roc_auc_score` as its `estimate`.
        """
        return self._area().population_interval(Asked.of("roc_auc_score", confidence, method))

    def roc_band(self, confidence: float = 0.95) -> RocBand:
        """Return the band in which the ROC curve of all people lies, as `dp_metrics.roc_band` does."""
        band: RocBand = self._area().band(Asked.of("roc_curve", confidence, "sure"))
        return band

    def calibration_band(self, confidence: float = 0.95) -> CalibrationBand:
        """Return limits of the share of positives in each released bin, for all bins at once.

        Parameters
        ----------
        confidence : float, default=0.95
            Of all limits together; it is approximate.

        Returns
        -------
        CalibrationBand
            A bin for each that was released.

        Raises
        ------
        ValueError
            If the edges of the released bins are not those of probabilities.
        """
        self._check_unit()
        table, kept = self._table, self.result.noise
        assert kept is not None
        return table.calibration_band(
            kept.parts, kept.released, Asked.of("calibration_curve", confidence, "approximate")
        )

    @property
    def _table(self) -> ScoreTable:
        table: ScoreTable = reading_of(self.result)
        return table

    def _area(self) -> ResultNoise:
        return noise_of(self.result, replace(self._table, formula=area_under_roc))

    def precision_recall_curve(self) -> PrecisionRecallCurve:
        """Return what `private_precision_recall_curve` makes of the counts."""
        return precision_recall(self.counts)

    def average_precision_score(self) -> float:
        """Return what `private_average_precision_score` makes of the counts."""
        return average_precision(self.counts)

    def calibration_curve(self, n_bins: int = 5) -> CalibrationCurve:
        """Return the calibration curve, as if all scores lay in the middle of the released bins.

        Parameters
        ----------
        n_bins : int, default=5
            Number of even bins of [0, 1].

        Raises
        ------
        ValueError
            If the edges of the released bins are not those of probabilities.

        Notes
        -----
        `private_calibration_curve` is more accurate: it releases the mean score of each bin.
        """
        self._check_unit()
        return calibration(self.counts, check_count(n_bins, "n_bins", MOST_BINS))

    def calibration_display(self, n_bins: int = 5) -> Any:
        """Return a `sklearn.calibration.CalibrationDisplay`, to be plotted.

        Its `y_prob`, which scikit-learn takes from the data, are the middles of the released bins, each as
        often as there are records in it by the noisy counts.
        """
        from sklearn.calibration import CalibrationDisplay

        curve = self.calibration_curve(n_bins)
        total = self.counts.total
        many = np.rint(total * min(1.0, _MOST_SHOWN / max(total.sum(), 1.0))).astype(np.int64)
        return CalibrationDisplay(*curve, np.repeat(self.counts.middles, many))

    def _check_unit(self) -> None:
        if self.counts.edges[0] < 0 or self.counts.edges[-1] > 1:
            raise ValueError(_UNIT_ONLY)


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
        classes, self._bins = TwoClasses.of(labels, pos_label), ScoreBins.of(edges)
        listed = plain(classes.known, "labels")
        given = None if self._bins.is_unit else plain(self._bins.edges, "edges")
        options = {"labels": listed, "pos_label": listed[classes.positive], "edges": given}
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

        Parameters
        ----------
        epsilon : float
            Privacy parameter, > 0: smaller is more private and less accurate.
        bins : {2, 4, 8, 16, 32, 64, 128} or None, default=None
            Public number of bins of [0, 1]. None: the power of two next to 1.5 (n epsilon)^(1/3), from 8 to
            128; 32 where n is private.
        neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
            What one person can change: the contents of a record ("replace_one": their number is public), or
            whether it is there ("add_or_remove_one": less noise, as it changes one count, not two).
        accountant : PrivacyAccountant or None, default=None
            Budget that pays epsilon for this release, before it is drawn.
        random_state : None, int, RandomState or Generator, default=None
            None draws fresh randomness from the operating system. Anything else makes the release
            reproducible and therefore NOT private.
        spend_name : str or None, default=None
            The name of this release in the accountant's history; None: the name of the metric.

        Returns
        -------
        ReleasedScores
            All curves and areas.

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
        NoisyReleaseWarning
            If public numbers alone tell that a release will be mostly noise.

        Notes
        -----
        Guarantee: replacing any one record changes the probability of any result by at most a factor
        exp(epsilon), given the model, the number of records and the arguments, which are public. With
        neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number
        of records is not public.
        """
        table = ScoreTable(self._bins, self._bins.columns(bins), unchanged)
        plan, known = self._records()
        (finest,) = known.parts
        result = self._run(
            self._metric,
            replace(plan, postprocess=KeptCounts(table)),
            KnownParts((table.query(finest.table),)),  # type: ignore[union-attr]
            {},
            epsilon=epsilon,
            neighboring=neighboring,
            accountant=accountant,
            random_state=random_state,
            spend_name=spend_name,
        )
        noisy, counts = result.value
        return ReleasedScores(replace(result, value=noisy), counts)

    @classmethod
    def _made(cls, settings: Mapping[str, Any]) -> Self:
        return cls(**settings["options"])
