"""What a released metric is among all people: limits that cost nothing."""

from __future__ import annotations

from typing import Any

from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.release.interval import Interval
from dp_metrics.release.result import PrivateResult

__all__ = ["population_interval"]


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
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which the limits are to hold: those of several labels all
        at once.
    method : {"sure", "approximate"}, default="sure"
        "sure": proved. "approximate": narrower where that is known, and for more metrics.

    Returns
    -------
    Interval
        The limits, within [0, 1]; it unpacks as ``lower, upper``, which are arrays of shape (n_classes,) if
        the result is. Its `estimate` is the released value. [0, 1] where the noise leaves nothing to tell.

    Raises
    ------
    ValueError
        If the metric has no such limits, with the reason, or the confidence is invalid.
    TypeError
        If the result is no `PrivateResult`: the number alone does not tell the counts that it is made of.

    See Also
    --------
    noise_interval : For these records: how far the noise may have moved the result.
    private_mean_interval : For the mean of another loss, which costs a release.

    Notes
    -----
    Guarantee: nothing but released numbers and public arguments is read, so differential privacy is that of
    the release. The limits are sure: they hold with at least the given confidence for every number of
    records, epsilon and population. They are those of the metric as people are: what is returned for 0/0
    (`zero_division`) does not enter.

    A share of all records is a noisy binomial count; see `accuracy_interval`. The others are functions of the
    share a / (a + b) of two numbers of records, both of them noisy and their sum unknown. The outcomes are
    put in an order; the lower limit is the smallest share that makes what was released, or something higher
    in that order, likely enough, for any number of records that the noise leaves possible.

    References
    ----------
    R. J. Buehler, "Confidence Intervals for the Product of Two Binomial Parameters", 1957,
    doi:10.1080/01621459.1957.10501404; R. L. Berger and D. D. Boos, "P Values Maximized Over a Confidence Set
    for the Nuisance Parameter", 1994, doi:10.1080/01621459.1994.10476836.

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
