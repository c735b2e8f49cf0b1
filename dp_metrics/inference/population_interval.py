"""What a released metric or curve is among all people: limits and bands that cost nothing."""

from __future__ import annotations

from typing import Any

from dp_metrics.inputs.floats import own_error_state
from dp_metrics.metrics.scores.bands import CalibrationBand, RocBand
from dp_metrics.release.interval import Interval
from dp_metrics.release.released import PopulationQuestion
from dp_metrics.release.result import PrivateResult


@own_error_state
def population_interval(
    result: PrivateResult[Any], *, confidence: float = 0.95, method: str = "sure"
) -> Interval:
    """Limits of a metric among all people like the records, from a release of the metric.

    They allow for both the chance by which the records were drawn, independently from one population, and the
    noise of the release.

    Parameters
    ----------
    result : PrivateResult
        What `with_result` of a metric returned: accuracy, zero-one loss or top-k accuracy by the default
        mechanism "geometric", without weights and groups; or recall, precision, F1 and other ratios of
        counts, of one label, of each label (``average=None``) or "micro". With either neighbouring relation.
        With a public number of records also means with a public limit, such as a Brier score, by "geometric".
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which the limits are to hold: those of several labels all
        at once.
    method : {"sure", "approximate"}, default="sure"
        "sure": proved. "approximate": narrower where that is known, and for more metrics.

    Returns
    -------
    Interval
        The limits, within the public range; it unpacks as ``lower, upper``, which are arrays of shape
        (n_classes,) if the result is. Its `estimate` is the released value. The whole range where the noise
        leaves nothing to tell.

    Raises
    ------
    ValueError
        If the metric has no such limits, with the reason, or the confidence is invalid.
    TypeError
        If the result is no `PrivateResult`: the number alone does not tell the counts that it is made of.

    See Also
    --------
    noise_interval : For these records: how far the noise may have moved the result.
    private_mean_interval : For the mean of a loss: a release of its own.

    Notes
    -----
    Guarantee: nothing but released numbers and public arguments is read, so differential privacy is that of
    the release. Sure limits hold with at least the given confidence for every number of records, epsilon and
    population. They are those of the metric as people are: what is returned for 0/0 (`zero_division`) does
    not enter.

    A share of all records is a noisy binomial count; see `accuracy_interval`. The others are functions of the
    share a / (a + b) of two numbers of records, both of them noisy and their sum unknown. The outcomes are
    put in an order; the lower limit is the smallest share that makes what was released, or something higher
    in that order, likely enough, for any number of records that the noise leaves possible. Limits of ratios
    are never narrower than those of `noise_interval`.

    Sure limits of a mean allow for the largest spread that people can have around it. "geometric" releases
    the spread with a mean, and approximate limits use it, as `private_mean_interval` does: they are far
    narrower where the mean is far below its public limit.

    References
    ----------
    R. J. Buehler, "Confidence Intervals for the Product of Two Binomial Parameters", 1957,
    doi:10.1080/01621459.1957.10501404; R. L. Berger and D. D. Boos, "P Values Maximized Over a Confidence Set
    for the Nuisance Parameter", 1994, doi:10.1080/01621459.1994.10476836; W. Hoeffding, "Probability
    Inequalities for Sums of Bounded Random Variables", 1963, doi:10.1080/01621459.1963.10500830.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import population_interval, private_recall_score, with_result
    >>> y_true = np.repeat([0, 1], [700, 300])
    >>> y_pred = np.where(np.arange(1000) % 10 == 0, 1 - y_true, y_true)  # nine in ten are right
    >>> result = with_result(private_recall_score)(y_true, y_pred, epsilon=1.0)
    >>> lower, upper = population_interval(result)
    >>> 0.8 < lower < 0.9 < upper < 0.97
    True
    """
    if not isinstance(result, PrivateResult):
        raise TypeError(
            "population_interval takes a PrivateResult: call with_result(metric), and pass what that "
            "returns. accuracy_interval takes a bare accuracy."
        )
    return result.population_interval(confidence, method)


@own_error_state
def roc_band(result: PrivateResult[Any], *, confidence: float = 0.95) -> RocBand:
    """Band in which the whole ROC curve of all people like the records lies, from a released curve.

    Parameters
    ----------
    result : PrivateResult
        What `with_result` of `private_roc_curve` returned, or of `private_precision_recall_curve` or
        `private_average_precision_score`, which release the same counts.
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which all of the curve is to lie in the band.

    Returns
    -------
    RocBand
        Two curves, `lower` and `upper`, and ``shade(ax)``.

    Raises
    ------
    ValueError, TypeError
        If the result is no such curve, or the confidence is invalid.

    See Also
    --------
    population_interval : Of one number.
    ScoreSummary : One release that tells the curve, its band, and the area with limits.

    Notes
    -----
    Guarantee: nothing but released numbers and public arguments is read, so differential privacy is that of
    the release. The band is sure: it holds with at least the given confidence for every number of records,
    epsilon and population. It is about the scores rounded to public bins, of which neighbours count as one
    where there are more than 64; between their edges the curve is straight. At each edge either coordinate is
    a share of a class, with limits as of a recall, which share the probability to miss.

    References
    ----------
    R. J. Buehler, "Confidence Intervals for the Product of Two Binomial Parameters", 1957,
    doi:10.1080/01621459.1957.10501404.

    Examples
    --------
    >>> from dp_metrics import private_roc_curve, roc_band, with_result
    >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 400 + [0.6] * 200 + [0.9] * 400
    >>> band = roc_band(with_result(private_roc_curve)(y_true, y_score, epsilon=1.0))
    >>> band.lower.fpr.shape == band.upper.fpr.shape
    True
    """
    band = _band(result, PopulationQuestion.of(getattr(result, "metric", ""), confidence, "sure"))
    if not isinstance(band, RocBand):
        raise ValueError(f"{result.metric} is no ROC curve: use calibration_band.")
    return band


@own_error_state
def calibration_band(result: PrivateResult[Any], *, confidence: float = 0.95) -> CalibrationBand:
    """Limits of the share of positives in each bin among all people, from a released calibration curve.

    Parameters
    ----------
    result : PrivateResult
        What `with_result` of `private_calibration_curve` returned.
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which the limits of all bins are to hold at once.

    Returns
    -------
    CalibrationBand
        Arrays `prob_pred`, `lower` and `upper`; `gap`, `gap_lower` and `gap_upper`, the share of positives
        less the mean score; ``error()``, the calibration error with and without chance; ``shade(ax)``.

    Raises
    ------
    ValueError, TypeError
        If the result is no such curve, or the confidence is invalid.

    See Also
    --------
    roc_band : The same for a ROC curve.

    Notes
    -----
    Guarantee: nothing but released numbers and public arguments is read, so differential privacy is that of
    the release. The confidence is approximate. What is limited is the share of positives among people whose
    score is in the bin; `prob_pred` is its released mean score. A model is not calibrated where 0 lies
    outside the limits of a gap, and only there may `lower` and `upper` leave out `prob_pred`. A calibrated
    model was called wrong in 0 to 10 % of 100 releases of each of 16 tasks, in 5 to 6 % of 800 of two.

    References
    ----------
    E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927,
    doi:10.1080/01621459.1927.10502953, for the same without noise.

    Examples
    --------
    >>> from dp_metrics import calibration_band, private_calibration_curve, with_result
    >>> y_true, y_prob = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.1] * 500 + [0.8] * 500
    >>> band = calibration_band(with_result(private_calibration_curve)(y_true, y_prob, epsilon=1.0, n_bins=2))
    >>> bool(band.upper[0] < band.lower[1])
    True
    """
    band = _band(result, PopulationQuestion.of(getattr(result, "metric", ""), confidence, "approximate"))
    if not isinstance(band, CalibrationBand):
        raise ValueError(f"{result.metric} is no calibration curve: use roc_band.")
    return band


def _band(result: Any, asked: PopulationQuestion) -> Any:
    if not isinstance(result, PrivateResult):
        raise TypeError("A band needs a PrivateResult: call with_result(metric), and pass what that returns.")
    if result.noise is None:
        raise ValueError("This result does not tell what is public about its noise: use one of with_result.")
    return result.noise.band(asked)
