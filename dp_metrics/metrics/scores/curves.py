"""Private curves of scores, areas under them and calibration, drop-in replacements for `sklearn.metrics`."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.arrays import Records, Shape, float_block, probability_block
from dp_metrics.inputs.labels import LabelColumns, labels_and_scores
from dp_metrics.inputs.options import Array, Floats, check_choice, check_count
from dp_metrics.mechanisms._laws import COUNT_LIMIT, Limits
from dp_metrics.metrics._metric import asks, private
from dp_metrics.metrics._settings import LabelSettings, RankSettings, ScoreSettings
from dp_metrics.metrics.scores import curve_formulas as formulas
from dp_metrics.metrics.scores.bands import limits_around
from dp_metrics.metrics.scores.curve_formulas import CalibrationCurve, PrecisionRecallCurve, RocCurve
from dp_metrics.metrics.scores.table import MOST_BINS, SoftBins, even_edges, score_query
from dp_metrics.quantities.ranks import CalibrationOf, RankingOf
from dp_metrics.quantities.tables import SHOWN, far_apart, in_words
from dp_metrics.release.query import Query
from dp_metrics.release.released import APPROXIMATE, Interval, PopulationQuestion
from dp_metrics.release.result import AnyResult, Monotone, ReleasedNumbers, only
from dp_metrics.sensitivity.score_bounds import calibration_excess


@private("sklearn.metrics.roc_curve", **formulas.OF_SCORES)
def private_roc_curve(
    y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None, **settings: Unpack[ScoreSettings]
) -> RocCurve:
    """ROC curve (true against false positive rate) with epsilon-differential privacy for the test records.

    Returns
    -------
    RocCurve
        A named tuple (fpr, tpr, thresholds) of arrays of shape (n_bins + 1,), as scikit-learn's with
        ``drop_intermediate=False``: from (0, 0) at the threshold infinity to (1, 1) at the lowest edge, and
        never falling. Without a record in one class, by the noisy counts, the diagonal.

    See Also
    --------
    ReleasedScores.of : All curves and areas, of this one release.
    private_roc_auc_score : The area under the curve, more accurate than what the curve tells.

    Notes
    -----
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
    return asks(score_query, formulas.roc, pos_label=pos_label, **settings)


@private("sklearn.metrics.precision_recall_curve", **formulas.OF_SCORES)
def private_precision_recall_curve(
    y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None, **settings: Unpack[ScoreSettings]
) -> PrecisionRecallCurve:
    """Precision-recall curve with epsilon-differential privacy for the test records.

    Returns
    -------
    PrecisionRecallCurve
        A named tuple (precision, recall, thresholds) as scikit-learn's: arrays of shape (n_bins + 1,), which
        end with precision 1 and recall 0, and the lower edges of the bins, rising. Where no record is
        predicted positive, by the noisy counts, the precision is 1; without any positive record all
        precisions but the last are 0 and all recalls 1.

    See Also
    --------
    ReleasedScores.of : All curves and areas, of this one release.
    private_average_precision_score : One number.

    Notes
    -----
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
    return asks(score_query, formulas.precision_recall, pos_label=pos_label, **settings)


@private("sklearn.metrics.average_precision_score", greater_is_better=True, **formulas.OF_SCORES)
def private_average_precision_score(
    y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None, **settings: Unpack[ScoreSettings]
) -> float:
    """Average precision (area under precision and recall) with epsilon-differential privacy.

    Returns
    -------
    float
        The private average precision, in [0, 1]; 0 without a positive record, by the noisy counts.

    See Also
    --------
    ReleasedScores.of : All curves and areas, of this one release.
    private_roc_auc_score : Which does not depend on how many records are positive.

    Notes
    -----
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
    return asks(score_query, formulas.average_precision, pos_label=pos_label, **settings)


def _roc_auc_query(shape: Shape, *, average: Any, multi_class: Any, labels: Any) -> Query:
    if isinstance(average, str) and average in ("micro", "weighted", "samples"):
        raise ValueError(f"average={average!r} cannot be used: pass 'macro' or None.")
    if isinstance(multi_class, str) and multi_class == "ovo":
        raise ValueError(
            "multi_class='ovo' cannot be used: each record is in several pairs of labels. Pass 'ovr'."
        )
    check_choice(average, "average", ("macro", None))
    check_choice(multi_class, "multi_class", ("raise", "ovr"))
    if shape.n is None and labels is None and multi_class == "ovr":
        raise ValueError("multi_class='ovr' needs labels where the number of records is private.")
    columns = LabelColumns.of(labels, shape.arguments[1], "y_score")
    if columns.labels.size > 2 and multi_class != "ovr":
        raise ValueError("multi_class must be 'ovr' for more than two labels.")
    reader = partial(_encoded, columns=columns)
    if columns.labels.size == 2:  # of two columns, as predict_proba gives them, that of the second label
        return Query((RankingOf(1),), reader, Monotone(_mean_area, False, _area_of_people))
    parts = tuple(RankingOf(k, k) for k in range(columns.columns))
    return Query(parts, reader, Monotone(_areas if average is None else _mean_area, rises=False))


def _encoded(records: Records, *, columns: LabelColumns) -> Records:
    """Return the place of each record's label, and its scores."""
    checked = labels_and_scores(records, columns=columns)
    true, scores = checked.arrays
    return replace(checked, arrays=(columns.labels.sorted_codes(true), float_block(scores, "y_score")))


def _area_of_people(result: AnyResult, asked: PopulationQuestion) -> Interval:
    """Return the interval of the area under the ROC curve of two classes among all people.

    Raises
    ------
    ValueError
        If limits have to be proved, or the mechanism does not tell the sizes of the classes.
    """
    (loss,), area, sizes, n = result.parts, result.value, result.drawn, result.n
    if asked.is_sure or "positives" not in sizes:
        raise ValueError(
            f"{asked.metric} has an interval for all people by its default mechanism, an approximate "
            "one: leave out sure; that of ReleasedScores has a sure one too."
        )
    limits, positive = loss.limits(2 * asked.miss), sizes["positives"]
    negative = sizes["negatives"] if n is None else n - positive
    ends = 1.0 - limits.upper, 1.0 - limits.lower
    limits = limits_around(area, ends, positive, negative, asked.miss)
    return asked.interval(*limits, area, APPROXIMATE)


def _areas(released: ReleasedNumbers) -> Floats:
    return 1.0 - np.array(released.values)


def _mean_area(released: ReleasedNumbers) -> float:
    return math.fsum(_areas(released)) / len(released.values)


@private(
    "sklearn.metrics.roc_auc_score",
    greater_is_better=True,
    mechanism="hazard",
    refused="a weighted record would count more than once in each of its pairs",
    responses=("decision_function", "predict_proba"),
    from_unit=formulas.two_classes_from_unit,
)
def private_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: str | None = "macro",
    multi_class: str = "raise",
    labels: ArrayLike | None = None,
    **settings: Unpack[RankSettings],
) -> float | Floats:
    """Area under the ROC curve with epsilon-differential privacy for the test records.

    The share of the pairs of a positive and a negative record in which the positive one has the higher score,
    ties counted half; 1/2 if there is no such pair.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,), (n_samples, 1), (n_samples, 2) or (n_samples, n_classes)
        Scores, any finite numbers: probabilities, or what `decision_function` gives. Of two columns the
        second counts, the scores of the second label; of more each holds those of one label, in sorted order.
        Columns that are named by the labels may stand in any order. Whole numbers above 2^53 are read as the
        nearest floats, and may tie there.
    average : {"macro"} or None, default="macro"
        Of more than two labels, "macro": the mean of the K areas; None: each of them. "weighted" would need
        the private sizes of the classes; "micro" and "samples" are for classes that do not exclude each
        other.
    multi_class : {"raise", "ovr"}, default="raise"
        For more than two labels "ovr" is needed: K areas, each of one label against the rest, at
        epsilon / K each. "ovo" has more areas: each record is in K - 1 of the pairs of labels.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set; of two, the second in sorted order is the positive one. None: 0 and 1 for up to
        two columns, 0 .. K-1 for K columns. Never inferred from `y_true`.
    mechanism : str or mechanism object, default="hazard"
        "hazard" spends a twentieth of epsilon on the sizes of the classes, which set the fineness of its
        grid. Any other spends all of it on the area: ``Hazard(resolution=0.01, scale=0.01)``,
        "above_threshold", "inverse_sensitivity" or "piecewise_laplace"; or "laplace" and "geometric", whose
        noise of size 1 / epsilon has to hide the record of a class of one.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        The private area, in [0, 1]. An array for more than two labels with ``average=None`` only.

    See Also
    --------
    plan_release : The error and the bias to expect, from public data.
    private_roc_curve : The curve; `ReleasedScores.of` gives a less accurate area of its release.

    Notes
    -----
    What counts is m, the number of records of the smaller class. **While m * epsilon is small, the answer is
    biased towards 1**: below 20 it hides more than half of 1 - AUC, at 70 about a fifth, from 200 on less
    than a tenth (areas from 0.8 to 0.98; closer to 1 it may err to either side). The mean absolute error is
    about 8 / (epsilon sqrt(m)) standard deviations of the area over samples of that size. The noisy sizes of
    the classes are in the field ``drawn`` of `Result`, at no further cost.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_roc_auc_score
    >>> y_true, y_score = [0, 0, 1, 1] * 250, [0.1, 0.4, 0.35, 0.8] * 250
    >>> 0.7 < private_roc_auc_score(y_true, y_score, epsilon=1.0) < 0.8  # exactly 0.75
    True
    """
    return asks(_roc_auc_query, average=average, multi_class=multi_class, labels=labels)


@private("sklearn.calibration.calibration_curve", **formulas.OF_SCORES)
def private_calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    **settings: Unpack[LabelSettings],
) -> CalibrationCurve:
    """Calibration curve (share of positives by probability) with epsilon-differential privacy.

    Parameters
    ----------
    n_bins : int, default=5
        Public number of even bins of [0, 1], up to 1,000. The noise of each does not grow with their number,
        but the records in each become fewer.
    strategy : {"uniform"}, default="uniform"
        scikit-learn's "quantile" is refused: quantiles of the scores are private.

    Returns
    -------
    CalibrationCurve
        A named tuple (prob_true, prob_pred), as scikit-learn's: for each bin the share of positive records
        and the mean probability. Bins with no record, by the noisy counts, are left out: those with fewer
        than half a record.

    See Also
    --------
    Result.band : Limits of each bin, and what chance alone gives a calibration error.
    private_expected_calibration_error : One number, far more accurate than what the curve tells.
    ReleasedScores.of : All curves and areas, of this one release.

    Notes
    -----
    In its bin, each record counts for one part at the lower end and for the rest at the upper end, by where
    its probability lies: four noisy counts for each bin tell both of its coordinates.
    ``CalibrationDisplay(prob_true, prob_pred, None).plot()`` draws the curve.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_calibration_curve
    >>> y_true, y_prob = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.1] * 500 + [0.8] * 500
    >>> prob_true, prob_pred = private_calibration_curve(y_true, y_prob, epsilon=1.0, n_bins=2)
    >>> bool((abs(prob_true - prob_pred) < 0.2).all())
    True
    """
    if not (isinstance(strategy, str) and strategy == "uniform"):  # type: ignore[redundant-expr]
        raise ValueError("strategy must be 'uniform': quantiles of the scores are private.")
    bins = SoftBins(check_count(n_bins, "n_bins", MOST_BINS))
    return asks(bins.query, pos_label=pos_label, **settings)


_MUCH = 0.6  # of the error: without so much, in squares, four fifths of it are left


@dataclass(frozen=True)
class BinnedError(Monotone):
    """The calibration error over bins, and what chance alone may give it.

    Parameters
    ----------
    n_bins : int
        Public number of bins.

    Notes
    -----
    The sum of a bin of m records of a calibrated model has a variance of at most m / 4. If it is normal, its
    mean size is sqrt(2 / pi) times the deviation; and sums of square roots are largest for bins of one size.
    So n times the error is at most sqrt(n_bins n / (2 pi)) on average. If up to k records are those of one
    person, the variance is at most k times as large.
    """

    n_bins: int = 1

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return limits of the error of these records, with what chance may give as a note."""
        limits, chance = super().limits(result, miss), self._by_chance(result)
        told = "" if chance is None else f"C{chance[1][1:]}."
        return limits._replace(note=" ".join(filter(None, (limits.note, told))))

    def note(self, result: AnyResult) -> str | None:
        """Return what to say if limits of the noise are too far apart, or chance may give much of it."""
        with contextlib.suppress(ValueError):
            lower, upper, missing = super().limits(result, 1 - SHOWN)
            if not missing and (apart := far_apart(lower, upper)):
                return apart
        chance, error = self._by_chance(result), float(self(result.released))
        if chance is None or chance[0] <= _MUCH * error:
            return None
        most, told = chance
        left = math.sqrt(max(error * error - most * most, 0.0))
        return (
            f"Biased upwards: {told}, without which this may be as low as {left:.2g}. "
            "band().error(this) of the result of a calibration curve tells how much chance gives."
        )

    def _by_chance(self, result: AnyResult) -> tuple[float, str] | None:
        """Return the most that chance alone gives on average, and in words; None where nothing tells n."""
        (part,), n, each = result.parts, result.n, result.released.most_records
        if n is None:
            if "sums" not in part.output.drawn:
                return None
            n = min(part.noise.records(part.output), COUNT_LIMIT)
        records = float(max(n, 1))
        most = min(math.sqrt(self.n_bins * each / (2 * math.pi * records)), 1.0)
        several = "" if each == 1 else f", up to {each} of one person"
        counted = f"{self.n_bins} bins, {in_words(records)} records{several}"
        return most, f"chance alone gives a calibrated model up to about {most:.2g} ({counted})"


def _error_query(shape: Shape, *, n_bins: Any, labels: Any, pos_label: Any) -> Query:
    classes = formulas.two_classes(labels, pos_label, shape.arguments[1], "y_proba")
    bins = check_count(n_bins, "n_bins", MOST_BINS)
    part = CalibrationOf(partial(_excess, n_bins=bins, classes=classes))
    reader = partial(labels_and_scores, columns=classes, name="y_proba")
    return Query((part,), reader, BinnedError(only, n_bins=bins))


def _excess(records: Records, *, n_bins: int, classes: LabelColumns) -> Array:
    """Return the sums of labels minus scores by bin."""
    blocks = formulas.blocks_of_scores(records, classes, probability_block)
    return calibration_excess(blocks, even_edges(n_bins))


@private(greater_is_better=False, mechanism="geometric", **formulas.OF_SCORES)
def private_expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    pos_label: Any = None,
    n_bins: int = 10,
    labels: ArrayLike | None = None,
    **settings: Unpack[RankSettings],
) -> float:
    """Calibration error (expected over bins) with epsilon-differential privacy for the test records.

    The distance between the share of positives and the mean probability in a bin, averaged over all bins with
    their numbers of records as weights.

    Parameters
    ----------
    n_bins : int, default=10
        Public number of even bins of [0, 1], up to 1,000. The noise does not depend on it.

    Returns
    -------
    float
        The private error, in [0, 1].

    See Also
    --------
    private_calibration_curve : Where the error lies.
    private_brier_score_loss : A proper loss: a model that knows nothing can have no calibration error.

    Notes
    -----
    One record moves n times the error by at most 2, whatever the number of bins: noise of size
    2 / (n epsilon), far less than that of a curve. The sums of all bins are exact.

    Chance alone gives a calibrated model an error, of up to about sqrt(n_bins / (2 pi n)): `noise_interval`
    of the result says so, and its `note` where that is much of it. How much depends on the records of each
    bin, which are not released: the ``band().error()`` of a curve's result tells it, and what is left.

    References
    ----------
    M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
    Binning", 2015, doi:10.1609/aaai.v29i1.9602.

    Examples
    --------
    >>> from dp_metrics import private_expected_calibration_error
    >>> y_true, y_proba = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.15] * 500 + [0.75] * 500
    >>> 0 <= private_expected_calibration_error(y_true, y_proba, epsilon=1.0) < 0.1  # exactly 0.05
    True
    """
    return asks(_error_query, n_bins=n_bins, labels=labels, pos_label=pos_label)
