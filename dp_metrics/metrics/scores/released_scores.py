"""Curves, areas and their limits that follow from one released table of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from dp_metrics.inputs.options import (
    as_real,
    check_choice,
    check_confidence,
    check_count,
    check_flag,
    own_error_state,
)
from dp_metrics.metrics._pictures import draw_calibration, draw_net_benefit, draw_precision_recall, draw_roc
from dp_metrics.metrics.labels.layouts import whole
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion, counts_of_labels
from dp_metrics.metrics.scores import bands, curve_formulas as formulas
from dp_metrics.metrics.scores.bands import CalibrationBand, PrecisionRecallBand, RocBand
from dp_metrics.metrics.scores.curve_formulas import (
    CalibrationCurve,
    NetBenefitCurve,
    PrecisionRecallCurve,
    RocCurve,
    ScoreCounts,
)
from dp_metrics.metrics.scores.table import MOST_BINS, ScoreTable, binned_calibration_band, check_records
from dp_metrics.quantities.tables import too_few
from dp_metrics.release import released
from dp_metrics.release.count_limits import noisy_ratio
from dp_metrics.release.released import Interval, Number, PopulationQuestion, named
from dp_metrics.release.result import AnyResult, KeptCounts, Result, check_persons

_METRICS = {"roc_auc": formulas.area_under_roc, "average_precision": formulas.average_precision}
OVER_EXPECTED = "observed over expected"
"""The number that is no share: how many are positive over how many scores expect."""
_TIES = {"any": bands.ANY_ORDER, "ordered": bands.ORDERED}
_WHOM = {
    "people": f"{released.POPULATION_NOTE} {released.how_sure(released.APPROXIMATE)}",
    "records": "of these records.",
}
_MOST_SHOWN = 100_000  # records of a histogram
_UNIT_ONLY = "Calibration and net benefits need probabilities: the edges of the bins should lie in [0, 1]."


@own_error_state
@dataclass(frozen=True, repr=False, eq=False)
class ReleasedScores:
    """Curves and areas that follow from one release: they are public, and cost no more epsilon.

    Parameters
    ----------
    result : Result
        All that may be published: its value is the list of noisy counts, whole numbers without bias; of the
        negative class by rising score, then of the positive one. Its ``noise_interval()`` has limits of each.
    counts : ScoreCounts
        The plausible counts that all else is computed from, with the noisy ones and the public edges.

    Notes
    -----
    Guarantee: that of the release. All methods are post-processing: they cost nothing.

    Examples
    --------
    >>> from dp_metrics import private_roc_curve, with_result
    >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 400 + [0.6] * 200 + [0.9] * 400
    >>> released = ReleasedScores.of(with_result(private_roc_curve)(y_true, y_score, epsilon=1.0))
    >>> 0.8 < released.roc_auc_score() < 1  # exactly 0.98
    True
    >>> fpr, tpr, thresholds = released.roc_curve()
    >>> precision, recall, _ = released.precision_recall_curve()
    >>> released.at_threshold(0.51).threshold  # the nearest edge of the bins
    0.5
    """

    result: Result[list[int]]
    counts: ScoreCounts

    @classmethod
    def of(cls, result: AnyResult) -> Self:
        """Return all curves and areas that follow from a released table of scores, at no cost.

        Parameters
        ----------
        result : Result
            Of `private_roc_curve`, `private_precision_recall_curve` or `private_average_precision_score`.

        Returns
        -------
        ReleasedScores
            The curves and areas.

        Raises
        ------
        TypeError
            If the result is not made of such a table.
        """
        table = getattr(result, "reading", None)
        if not isinstance(table, ScoreTable):
            raise TypeError(
                f"{getattr(result, 'metric', type(result).__name__)} is not read from a table of scores: "
                "release a ROC curve by `with_result`, and pass what that returns."
            )
        return cls(replace(result, reading=KeptCounts(table)), table.counts(result.released))

    def __repr__(self) -> str:
        result = self.result
        shown = {"epsilon": result.epsilon, "neighboring": result.neighboring, "note": result.note}
        return f"ReleasedScores({self.counts.negative.size} bins, {named(shown)})"

    def roc_curve(self) -> RocCurve:
        """Return what `private_roc_curve` makes of the counts."""
        return formulas.roc(self.counts)

    def roc_auc_score(self) -> float:
        """Return the area under the ROC curve, in which a pair of records in one bin counts half.

        It is that of the noisy counts. The area below `roc_curve`, of plausible ones, errs towards 1/2.
        """
        return formulas.area_under_roc(self.counts)

    def noise_interval(
        self, confidence: float = 0.95, sure: bool = False, *, metric: str = "roc_auc", ties: str = "any"
    ) -> Interval:
        """Return limits of the area under the ROC curve of these records' scores, which are not in bins.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise, with which both limits hold.
        sure : bool, default=False
            As in `population_interval`.
        metric : {"roc_auc", "average_precision"}, default="roc_auc"
            As in `population_interval`.
        ties : {"any", "ordered"}, default="any"
            As in `population_interval`, but "ordered" assumes that of these records. Chance alone may rank
            the few positives of a bin below its negatives. With little noise the area is then just below
            the lower limit: by up to 0.003 for 20 % of samples of 5,000 records, 2 % of them positive, at
            epsilon 20.

        Returns
        -------
        Interval
            The limits.
        """
        return self._limited(metric, ties, is_sure=check_flag(sure, "sure")).noise_interval(confidence)

    def population_interval(
        self, confidence: float = 0.95, sure: bool = False, *, metric: str = "roc_auc", ties: str = "any"
    ) -> Interval:
        """Return limits of the area under the ROC curve among all people, of scores that are not in bins.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise and over which people became records, with which both limits hold.
        sure : bool, default=False
            True: proved, by limits of the curve at each edge. False: approximate; of an area 2 to 5 times
            narrower, of an average precision at most 2.5 times.
        metric : {"roc_auc", "average_precision"}, default="roc_auc"
            The area, or the average precision in its place.
        ties : {"any", "ordered"}, default="any"
            Of the area. "any": however the scores lie within their bins. "ordered" assumes that there
            positives do not rank below negatives on average, and has a higher lower limit: not for scores
            that may rank records the wrong way round.

        Returns
        -------
        Interval
            With `roc_auc_score` as its `estimate`, in which a pair in one bin counts half, or with
            `average_precision_score`. Its `note` says where the bins are too coarse.
        """
        return self._limited(metric, ties).population_interval(confidence, sure)

    def roc_band(self, confidence: float = 0.95) -> RocBand:
        """Return the band in which the ROC curve of all people lies, as `Result.band` does."""
        return replace(self._limited(), metric="roc_curve").band(confidence)

    def precision_recall_band(self, confidence: float = 0.95) -> PrecisionRecallBand:
        """Return the band in which the precision-recall curve of all people lies.

        It is sure, of scores that are not in bins, and errs to the wide side.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, strictly between 0 and 1, with which the whole curve lies in the band.

        Returns
        -------
        PrecisionRecallBand
            The arrays `recall`, `lower` and `upper`; and ``shade(ax)``.

        Raises
        ------
        ValueError
            If the confidence is invalid, or some person may have several records.
        """
        told = replace(self._limited("average_precision"), metric="precision_recall_curve")
        check_persons(told.released, told.metric)
        table: ScoreTable = told.reading  # type: ignore[assignment]
        return table.precision_band(told, PopulationQuestion.of(told.metric, confidence, sure=False))

    def at_threshold(self, threshold: float) -> ReleasedConfusion:
        """Return all metrics of the labels that ``score >= threshold`` predicts, with limits.

        Parameters
        ----------
        threshold : float
            The nearest inner edge of the released bins is taken: the `threshold` of what is returned.

        Returns
        -------
        ReleasedConfusion
            Of two labels; its labels are in sorted order.

        Raises
        ------
        ValueError
            If the threshold is no finite number.

        Examples
        --------
        >>> from dp_metrics import private_roc_curve, with_result
        >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 500 + [0.8] * 500
        >>> released = ReleasedScores.of(with_result(private_roc_curve)(y_true, y_score, epsilon=1.0))
        >>> at = released.at_threshold(0.5)
        >>> at.threshold, bool(0.9 < at.accuracy_score() <= 1)
        (0.5, True)
        >>> lower, upper = at.population_interval("precision")
        """
        edge, classes, bins = self._edge_of(threshold), self._table.classes, self.counts.positive.size
        # cells of a matrix of two labels, by class and prediction; the first label may be the positive one
        cells = np.repeat([0, 2], bins) + np.tile(np.arange(bins) >= edge, 2)
        layout = replace(whole(2), places=cells if classes.positive else 3 - cells)
        counts = layout.counts(self.result.value, self.result.n)
        result = replace(self.result, reading=KeptCounts(counts_of_labels(layout, classes.labels)))
        at, known = float(self.counts.edges[edge]), classes.labels.known
        return ReleasedConfusion(result, known, counts, layout, at, known.tolist()[classes.positive])

    def _edge_of(self, threshold: float) -> int:
        """Return the place of the inner edge of the released bins that is nearest to a threshold."""
        wanted = as_real(threshold)
        if not math.isfinite(wanted):
            raise ValueError("threshold must be a finite number.")
        inner = self.counts.edges[1:-1]
        return int(np.abs(inner - np.clip(wanted, inner[0], inner[-1])).argmin()) + 1

    def recall_score(self, threshold: float, *, zero_division: float | str = 0.0) -> float:
        """Return the recall of ``score >= threshold``: see `at_threshold`, which has limits of it."""
        return float(self.at_threshold(threshold).recall_score(zero_division=zero_division))

    def precision_score(self, threshold: float, *, zero_division: float | str = 0.0) -> float:
        """Return the precision of ``score >= threshold``: see `at_threshold`, which has limits of it."""
        return float(self.at_threshold(threshold).precision_score(zero_division=zero_division))

    def f1_score(self, threshold: float, *, zero_division: float | str = 0.0) -> float:
        """Return the F1 score of ``score >= threshold``: see `at_threshold`, which has limits of it."""
        return float(self.at_threshold(threshold).f1_score(zero_division=zero_division))

    def specificity_score(self, threshold: float, *, zero_division: float | str = 0.0) -> float:
        """Return the specificity of ``score >= threshold``: see `at_threshold`, which has limits of it."""
        return float(self.at_threshold(threshold).specificity_score(zero_division=zero_division))

    def threshold_for(self, *, precision: float | None = None, recall: float | None = None) -> float:
        """Return the threshold that reaches a precision or a recall, by the released counts.

        Parameters
        ----------
        precision : float or None, default=None
            To be reached with the largest recall.
        recall : float or None, default=None
            To be reached with the highest threshold. Exactly one of both is to be given.

        Returns
        -------
        float
            An inner edge of the released bins. The best of many noisy numbers flatters: ask `at_threshold`
            for the limits of what it reaches.

        Raises
        ------
        ValueError
            If not exactly one of both is given, between 0 and 1, or no edge reaches it.
        """
        name, given = ("recall", recall) if precision is None else ("precision", precision)
        goal = as_real(given)
        if (precision is None) == (recall is None) or not 0 <= goal <= 1:
            raise ValueError("Pass either precision or recall, a number from 0 to 1.")
        metric = getattr(self, f"{name}_score")
        reached = [edge for edge in self.counts.edges[1:-1].tolist() if metric(edge) >= goal]
        if not reached:
            raise ValueError(
                f"No edge of the released bins has a {name} of {goal:g} by the noisy counts: ask for less."
            )
        return float(min(reached) if name == "precision" else max(reached))

    def net_benefit(self, threshold: float, confidence: float = 0.95, *, of: str = "people") -> Interval:
        """Return the net benefit of treating whose score is at least a threshold, with limits.

        Parameters
        ----------
        threshold : float
            The least probability at which a treatment is worth its harm, in [0, 1]; the nearest inner edge of
            the released bins is taken, and `about` names it.
        confidence : float, default=0.95
            Probability with which both limits hold.
        of : {"people", "records"}, default="people"
            Limits among all people like the records, approximate; or of these records: how far the noise may
            have moved the number.

        Returns
        -------
        Interval
            Its `estimate` is (true positives - w * false positives) / n with w = t / (1 - t) at the threshold
            t, by the noisy counts: at most the share of positives, and below 0 where treatment harms more.

        Raises
        ------
        ValueError
            If the number of records is private, the edges are not those of probabilities, or an argument is
            invalid.

        Notes
        -----
        Treating nobody has the net benefit 0; `net_benefit_curve` has that of treating all.

        References
        ----------
        A. J. Vickers and E. B. Elkin, "Decision Curve Analysis", 2006, doi:10.1177/0272989X06295361.

        Examples
        --------
        >>> from dp_metrics import private_roc_curve, with_result
        >>> y_true, y_score = [0] * 700 + [1] * 300, [0.1] * 600 + [0.4] * 100 + [0.8] * 300
        >>> released = ReleasedScores.of(with_result(private_roc_curve)(y_true, y_score, epsilon=1.0))
        >>> lower, upper = released.net_benefit(0.2)  # exactly 0.3 - 0.25 * 0.1
        >>> 0.2 < lower < 0.275 < upper < 0.35
        True
        """
        miss, n = self._miss_of("net_benefit", confidence, of), self._public_n()
        check_records(self.result, "net_benefit")
        if not 0 <= as_real(threshold) <= 1:
            raise ValueError("threshold must be a probability, a number in [0, 1].")
        edge, bins = self._edge_of(threshold), self.counts.positive.size
        at = float(self.counts.edges[edge])
        weight, (noise,) = at / (1 - at), self.result.parts
        ratio = noisy_ratio(noise, range(bins + edge, 2 * bins), range(edge, bins), n)
        limits = bands.benefit_limits if of == "people" else bands.benefit_noise_limits
        lower, upper = limits(ratio, n, weight, miss)
        estimate = float(self.net_benefit_curve().net_benefit[edge - 1])
        about = f"The net benefit at the threshold {at:g} {_WHOM[of]}"
        return Interval(lower, upper, confidence, about, "", estimate)

    def net_benefit_curve(self) -> NetBenefitCurve:
        """Return the net benefit at each edge of the released bins, beside that of treating all.

        Returns
        -------
        NetBenefitCurve
            Three arrays: `thresholds`, `net_benefit` and `treat_all`. Treating nobody has the net benefit 0.

        Raises
        ------
        ValueError
            As `net_benefit`.
        """
        n, edges = self._public_n(), self.counts.edges[1:-1]
        of_negative, of_positive = np.cumsum(self.counts.noisy[:, ::-1], axis=1)[:, ::-1]
        weight = edges / (1 - edges)
        model = (of_positive[1:] - weight * of_negative[1:]) / n
        treat_all = (of_positive[0] - weight * of_negative[0]) / n
        return NetBenefitCurve(edges, *(np.clip(one, -weight, 1.0) for one in (model, treat_all)))

    def observed_over_expected(self, confidence: float = 0.95, *, of: str = "people") -> Interval:
        """Return the number of positives over the sum of the probabilities: calibration in the large.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which both limits hold.
        of : {"people", "records"}, default="people"
            Limits among all people like the records, or of these records; approximate.

        Returns
        -------
        Interval
            Its `estimate` is 1 where as many are positive as the probabilities say, above 1 where the model
            tells too little risk; by the noisy counts, and the middles of their bins. NaN without records.

        Raises
        ------
        ValueError
            If the edges are not those of probabilities, or an argument is invalid.

        References
        ----------
        E. W. Steyerberg, "Clinical Prediction Models", 2019, chapter 15, doi:10.1007/978-3-030-16399-0.

        Examples
        --------
        >>> import numpy as np
        >>> from dp_metrics import private_roc_curve, with_result
        >>> rng = np.random.default_rng(0)
        >>> y_score = rng.beta(2, 6, 20_000)
        >>> y_true = (rng.random(20_000) < 0.8 * y_score).astype(int)  # too much risk is told
        >>> released = ReleasedScores.of(with_result(private_roc_curve)(y_true, y_score, epsilon=1.0))
        >>> lower, upper = released.observed_over_expected()
        >>> 0.75 < lower < 0.8 < upper < 0.88
        True
        """
        miss = self._miss_of("observed_over_expected", confidence, of)
        (noise,) = self.result.parts
        counts = self.counts
        lower, upper = bands.over_expected_limits(noise, counts.ends, miss, of_people=of == "people")
        expected = float(counts.middles @ counts.total)
        estimate = float(counts.positive.sum()) / expected if expected > 0 else math.nan
        about = f"The observed over the expected positives {_WHOM[of]}"
        # the counts that are divided are plausible ones, which those that are limited may leave out
        lower, upper = np.fmin(lower, estimate), np.fmax(upper, estimate)
        return Interval(float(lower), float(upper), confidence, about, released.APPROXIMATE, estimate)

    def numbers(self) -> dict[str, Number]:
        """Return the areas, and of probabilities observed over expected, with their limits, by name."""
        found = [
            Number(
                metric.replace("_", " "), getattr(self, f"{metric}_score")(), metric.replace("_", " "),
                self._limited(metric).note,
                _noise=partial(self.noise_interval, metric=metric),
                _people=partial(self.population_interval, metric=metric),
            )
            for metric in _METRICS
        ]  # fmt: skip
        return {one.name: one for one in (*found, *over_expected_numbers(self))}

    def frame(self) -> Any:
        """Return these numbers as a table; this imports pandas. See `PrivateMetricFrame.frame`."""
        return released.table_of(one.row() for one in self.numbers().values())

    def _miss_of(self, metric: str, confidence: float, of: str) -> float:
        """Return with which probability either limit of a metric of probabilities may miss."""
        check_choice(of, "of", tuple(_WHOM))
        self._check_unit()
        if of == "people":
            check_persons(self.result.released, metric)
        return (1.0 - check_confidence(confidence)) / 2

    def _public_n(self) -> int:
        """Return the number of records, of which the net benefit at probabilities is a share."""
        self._check_unit()
        if (n := self.result.n) is None:
            raise ValueError(
                "The net benefit is a share of all records, whose number is private here: release the curve "
                "with neighboring='replace_one'."
            )
        return n

    def calibration_band(self, confidence: float = 0.95, n_bins: int | None = None) -> CalibrationBand:
        """Return limits of the share of positives in each bin among all people, for all bins at once.

        Parameters
        ----------
        confidence : float, default=0.95
            Of all limits together: approximate, but sure for the shares of positives in even bins.
        n_bins : int or None, default=None
            None: the released bins. Else that many even bins of [0, 1], those that `calibration_curve` shows.

        Returns
        -------
        CalibrationBand
            Where scores lie in a released bin is not known: see its `prob_pred_range`.

        Raises
        ------
        ValueError
            If the edges of the released bins are not those of probabilities, or persons have several records.
        """
        self._check_unit()
        check_persons(self.result.released, "calibration_curve")
        asked = PopulationQuestion.of("calibration_curve", confidence, sure=False)
        bins = None if n_bins is None else check_count(n_bins, "n_bins", MOST_BINS)
        check_records(self.result, asked.metric)
        return binned_calibration_band(self.result, self.counts, asked, bins)

    @property
    def _table(self) -> ScoreTable:
        kept: Any = self.result.reading  # all counts, which keep how they are read
        table: ScoreTable = kept.told
        return table

    def _limited(self, metric: str = "roc_auc", ties: str = "any", *, is_sure: bool = True) -> AnyResult:
        check_choice(metric, "metric", tuple(_METRICS))
        check_choice(ties, "ties", tuple(_TIES))
        table = replace(self._table, formula=_METRICS[metric], ties=_TIES[ties], is_sure=is_sure)
        return replace(self.result, metric=f"{metric}_score", reading=table)

    def precision_recall_curve(self) -> PrecisionRecallCurve:
        """Return what `private_precision_recall_curve` makes of the counts."""
        return formulas.precision_recall(self.counts)

    def average_precision_score(self) -> float:
        """Return what `private_average_precision_score` makes of the counts."""
        return formulas.average_precision(self.counts)

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
        return formulas.calibration(self.counts, check_count(n_bins, "n_bins", MOST_BINS))

    def plot(
        self, kind: str = "roc", ax: Any = None, *, confidence: float | None = 0.95, n_bins: int = 5
    ) -> Any:
        """Draw a curve, with what is known of how sure it is; this imports matplotlib.

        Parameters
        ----------
        kind : {"roc", "precision_recall", "calibration", "net_benefit"}, default="roc"
            Of a ROC curve the band of `roc_band`; of a precision-recall curve that of
            `precision_recall_band`, and grey where hardly any record is above the threshold; of a calibration
            curve sure limits among all people, which hold for all its bins at once, and nearly empty bins in
            grey; the net benefit beside treating all, and none.
        ax : matplotlib Axes or None, default=None
            Where to draw; None: a new figure of pyplot.
        confidence : float or None, default=0.95
            Of the band or the limits; None draws none.
        n_bins : int, default=5
            Number of even bins of a calibration curve.

        Returns
        -------
        RocCurveDisplay, PrecisionRecallDisplay, CalibrationDisplay or Axes
            Of scikit-learn, drawn, made of released numbers only; the Axes of a net benefit. The `y_prob` of
            a calibration curve are the middles of the released bins, as often as there are records in them.

        Raises
        ------
        ValueError
            If an argument is invalid, or the edges of a calibration curve's bins are not in [0, 1].
        ImportError
            If matplotlib is missing.
        """
        check_choice(kind, "kind", ("roc", "precision_recall", "calibration", "net_benefit"))
        if kind == "net_benefit":
            return draw_net_benefit(self.net_benefit_curve(), ax)
        if kind == "roc":
            roc_band = None if confidence is None else self.roc_band(confidence)
            return draw_roc(self.roc_curve(), self.roc_auc_score(), roc_band, ax)
        if kind == "precision_recall":
            above = np.cumsum(self.counts.total[::-1])[::-1]
            is_noise = too_few(self.counts.noise, above / np.sqrt(np.arange(above.size, 0, -1)))
            share = float(self.counts.positive.sum()) / self.counts.n if self.counts.n > 0 else 0.0
            curve, average = self.precision_recall_curve(), self.average_precision_score()
            of_precision = None if confidence is None else self.precision_recall_band(confidence)
            return draw_precision_recall(curve, average, share, is_noise, of_precision, ax)
        from sklearn.calibration import CalibrationDisplay  # slow to import

        shown = self.counts.total * min(1.0, _MOST_SHOWN / max(self.counts.n, 1.0))
        y_prob = np.repeat(self.counts.middles, np.rint(shown).astype(np.int64))
        display = CalibrationDisplay(*self.calibration_curve(n_bins), y_prob)
        places, records = formulas.even_bins(self.counts, n_bins)
        root = np.sqrt(np.bincount(places, minlength=n_bins))  # the noise of a bin is so many times larger
        is_noise = too_few(self.counts.noise, records / np.maximum(root, 1.0))[formulas.are_shown(records)]
        band = None if confidence is None else self.calibration_band(confidence, n_bins)
        return draw_calibration(display, band, is_noise, ax)

    @property
    def _is_unit(self) -> bool:
        """Whether the scores may be probabilities, by their public edges."""
        return bool(self.counts.edges[0] >= 0 and self.counts.edges[-1] <= 1)

    def _check_unit(self) -> None:
        if not self._is_unit:
            raise ValueError(_UNIT_ONLY)


def over_expected_numbers(scores: ReleasedScores) -> list[Number]:
    """Return the observed over the expected with its limits, if the scores may be probabilities."""
    if not scores._is_unit:
        return []
    noise, people = (partial(scores.observed_over_expected, of=of) for of in ("records", "people"))
    return [Number(OVER_EXPECTED, noise().estimate, OVER_EXPECTED, _noise=noise, _people=people)]
