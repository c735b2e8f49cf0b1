"""Private measures of calibration: are records with a probability of 0.8 positive 8 times out of 10."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.options import check_count
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import Limits, Noise
from dp_metrics.mechanisms.geometric import SumsNoise
from dp_metrics.metrics._catalogue import PERSONS, UNWEIGHTED, Metric
from dp_metrics.metrics.scores.curve_formulas import CalibrationCurve
from dp_metrics.metrics.scores.soft_bins import MOST_BINS, OUTSIDE, SoftBins, even_edges
from dp_metrics.metrics.scores.two_classes import TwoClasses, check_unit, two_classes_from_unit
from dp_metrics.release.noise import SHOWN, as_floats, far_apart, in_words
from dp_metrics.release.parts.calibration_error import CalibrationOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import Monotone, ReleasedNumbers, only
from dp_metrics.release.result import PrivateResult
from dp_metrics.sensitivity.calibration_bounds import calibration_excess


def _curve_plan(shape: Shape, *, pos_label: Any, n_bins: Any, strategy: Any, labels: Any) -> Plan:
    if not (isinstance(strategy, str) and strategy == "uniform"):
        raise ValueError("strategy must be 'uniform': quantiles of the scores are private.")
    bins = SoftBins(check_count(n_bins, "n_bins", MOST_BINS))
    return bins.plan(shape, TwoClasses.of(labels, pos_label))


CALIBRATION_CURVE = Metric(
    name="private_calibration_curve",
    exact_function="sklearn.calibration.calibration_curve",
    plan=_curve_plan,
    data=("y_true", "y_prob"),
    responses=("predict_proba",),
    options={"pos_label": None, "n_bins": 5, "strategy": "uniform", "labels": None, **PERSONS},
    refused=UNWEIGHTED,
    mechanism=None,
    from_unit=two_classes_from_unit,
)


def private_calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    epsilon: float,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    labels: ArrayLike | None = None,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> CalibrationCurve:
    """Calibration curve (share of positives by probability) with epsilon-differential privacy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_prob : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Probabilities of the positive class, in [0, 1]. Of two columns, such as those of `predict_proba`, the
        one of the positive class is used.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    pos_label : label or None, default=None
        The positive one of the labels; None: the second in sorted order.
    n_bins : int, default=5
        Public number of even bins of [0, 1], up to 1,000. The noise of each does not grow with their number,
        but the records in each become fewer.
    strategy : {"uniform"}, default="uniform"
        scikit-learn's "quantile" is refused: quantiles of the scores are private.
    labels : array-like of shape (2,) or None, default=None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.
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
    CalibrationCurve
        A named tuple (prob_true, prob_pred), as scikit-learn's: for each bin the share of positive records
        and the mean probability. Bins with no record, by the noisy counts, are left out: those with fewer
        than half a record.
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
    calibration_band : Limits of each bin, and what chance alone gives a calibration error.
    private_expected_calibration_error : One number, far more accurate than what the curve tells.
    ScoreSummary : One release from which all curves and areas follow, and from pieces.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[CalibrationCurve] = CALIBRATION_CURVE.release(
        y_true=y_true, y_prob=y_prob, epsilon=epsilon, pos_label=pos_label, n_bins=n_bins, strategy=strategy,
        labels=labels, sample_weight=sample_weight, groups=groups, max_records=max_records,
        neighboring=neighboring, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


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

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits of the error of these records, with what chance may give as a note."""
        limits, most = super().limits(parts, released, miss), self._by_chance(parts, released)
        told = "" if most is None else f"{self._told(most, parts, released)}."
        return limits._replace(note=" ".join(filter(None, (limits.note, told))))

    def note(self, parts: Sequence[Noise], released: ReleasedNumbers) -> str | None:
        """Return what to say if limits of the noise are too far apart, or chance may give much of it."""
        with contextlib.suppress(ValueError):
            lower, upper, missing = super().limits(parts, released, 1 - SHOWN)
            if not missing and (apart := far_apart(lower, upper)):
                return apart
        most, error = self._by_chance(parts, released), float(self(released))
        if most is None or most <= _MUCH * error:
            return None
        left = math.sqrt(max(error * error - most * most, 0.0))
        told = self._told(most, parts, released)
        return (
            f"Biased upwards: {told[0].lower()}{told[1:]}, without which this may be as low as {left:.2g}. "
            "calibration_band(...).error(this) tells how much chance gives."
        )

    def _told(self, most: float, parts: Sequence[Noise], released: ReleasedNumbers) -> str:
        n = in_words(self._records(parts, released) or 0.0)
        several = "" if released.most_records == 1 else f", up to {released.most_records} of one person"
        counted = f"{self.n_bins} bins, {n} records{several}"
        return f"Chance alone gives a calibrated model up to about {most:.2g} ({counted})"

    def _by_chance(self, parts: Sequence[Noise], released: ReleasedNumbers) -> float | None:
        """Return the most that chance alone gives on average; None where the number of records is unknown."""
        n = self._records(parts, released)
        if n is None:
            return None
        return min(math.sqrt(self.n_bins * released.most_records / (2 * math.pi * n)), 1.0)

    def _records(self, parts: Sequence[Noise], released: ReleasedNumbers) -> float | None:
        """Return the number of records, or of noisy ones; at least 1."""
        (part,) = parts
        if released.public_n is not None:
            return max(float(released.public_n), 1.0)
        if not isinstance(part, SumsNoise):
            return None
        return max(float(as_floats(part.noisy).sum()) / part.fineness, 1.0)


def _error_plan(shape: Shape, *, pos_label: Any, n_bins: Any, labels: Any) -> Plan:
    classes = TwoClasses.of(labels, pos_label)
    bins = check_count(n_bins, "n_bins", MOST_BINS)
    part = CalibrationOf(partial(_excess, n_bins=bins, classes=classes))
    reader = classes.reader(shape, "y_proba")
    return Plan((part,), reader, BinnedError(only, n_bins=bins))


def _excess(records: Records, *, n_bins: int, classes: TwoClasses) -> tuple[tuple[int, ...], int]:
    """Return the sums of labels minus scores by bin, and the number of records."""

    def checked() -> Any:
        for is_positive, scores in classes.blocks(records, "y_proba"):
            check_unit(scores, OUTSIDE.format("y_proba"))
            yield is_positive, scores

    return calibration_excess(checked(), even_edges(n_bins))


EXPECTED_CALIBRATION_ERROR = Metric(
    name="private_expected_calibration_error",
    exact_function="",
    plan=_error_plan,
    data=("y_true", "y_proba"),
    responses=("predict_proba",),
    options={"pos_label": None, "n_bins": 10, "labels": None, **PERSONS},
    refused=UNWEIGHTED,
    greater_is_better=False,
    mechanism="geometric",
    from_unit=two_classes_from_unit,
)


def private_expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    epsilon: float,
    pos_label: Any = None,
    n_bins: int = 10,
    labels: ArrayLike | None = None,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Calibration error (expected over bins) with epsilon-differential privacy for the test records.

    The distance between the share of positives and the mean probability in a bin, averaged over all bins with
    their numbers of records as weights.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Probabilities of the positive class, in [0, 1]. Of two columns, such as those of `predict_proba`, the
        one of the positive class is used.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    pos_label : label or None, default=None
        The positive one of the labels; None: the second in sorted order.
    n_bins : int, default=10
        Public number of even bins of [0, 1], up to 1,000. The noise does not depend on it.
    labels : array-like of shape (2,) or None, default=None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.
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
        The private error, in [0, 1].
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
    private_calibration_curve : Where the error lies.
    private_brier_score_loss : A proper loss: a model that knows nothing can have no calibration error.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

    One record moves n times the error by at most 2, whatever the number of bins: noise of size
    2 / (n epsilon), far less than that of a curve. The sums of all bins are exact.

    Chance alone gives a calibrated model an error, of up to about sqrt(n_bins / (2 pi n)): `noise_interval`
    of the result says so, and its `note` where that is much of it. How much depends on the records of each
    bin, which are not released: the `error` of a `calibration_band` tells it, and what is left.

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
    result: PrivateResult[float] = EXPECTED_CALIBRATION_ERROR.release(
        y_true=y_true, y_proba=y_proba, epsilon=epsilon, pos_label=pos_label, n_bins=n_bins, labels=labels,
        sample_weight=sample_weight, groups=groups, max_records=max_records, neighboring=neighboring,
        mechanism=mechanism, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
