"""An interval for a share of all people, from a share of the records that has been released."""

from __future__ import annotations

from typing import Any

from dp_metrics.inputs.floats import own_error_state
from dp_metrics.inputs.options import as_real, check_confidence, check_count, exact_epsilon
from dp_metrics.release.interval import Interval
from dp_metrics.release.noisy_binomial import noisy_binomial_limits
from dp_metrics.release.released import POPULATION_NOTE
from dp_metrics.release.result import PrivateResult

_MOST_RECORDS = 10**9  # the law of a larger number cannot be computed
_ROUNDING = 1e-15  # a share computed in floats is off by at most this

SHARES = ("private_accuracy_score", "private_top_k_accuracy_score", "private_zero_one_loss")
"""The metrics that are shares of records."""


@own_error_state
def accuracy_interval(
    result_or_share: PrivateResult[Any] | float,
    *,
    n: int | None = None,
    epsilon: float | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Interval for the share of all people like the records, from a share that has been released.

    It allows for both the chance by which the records were drawn, independently from one population, and the
    noise of the release. It is computed from the released number, so it costs no privacy.

    Parameters
    ----------
    result_or_share : PrivateResult or float
        What `private_accuracy_score`, `private_zero_one_loss` or `private_top_k_accuracy_score` returned,
        with or without `with_result`, by the default mechanism "geometric" and without weights or groups; a
        bare share with a public number of records.
    n : int or None, default=None
        Number of records, for a bare share; a `PrivateResult` knows its own.
    epsilon : float or None, default=None
        What the release of a bare share cost; a `PrivateResult` knows its own.
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which the interval is to cover the share of all people.

    Returns
    -------
    Interval
        The limits, within [0, 1]; it unpacks as ``lower, upper``. They are limits of a share also if the
        result is a number of records (``normalize=False``). Its `estimate` is the released share.

    Raises
    ------
    ValueError, TypeError
        If the law of the released number is not known: it was drawn by another metric or mechanism, or with
        weights or groups, or a bare share is no whole number of records divided by n.

    See Also
    --------
    private_mean_interval : An interval for the mean of another loss, which costs a release.

    Notes
    -----
    Guarantee: nothing but a released number and public arguments is read, so differential privacy is that of
    the release. The limits hold together with at least the given confidence, for every share and every
    number of records.

    The released number of records is Z = X + N, clamped to 0..n, with X binomial of n and the share p of all
    people, and N with probability proportional to exp(-epsilon abs(k)). P(Z <= z) falls in p. The upper limit
    is the p at which it is half of 1 - confidence, and the lower limit that at which P(Z >= z) is; from z = n
    the upper limit is 1, and from z = 0 the lower one is 0.

    References
    ----------
    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), doi:10.1093/biomet/26.4.404, for the same without
    noise; J. Awan and A. Slavkovic, "Differentially Private Uniformly Most Powerful Tests for Binomial Data",
    2018, arXiv:1805.09236, for tests, which add a uniform random number.

    Examples
    --------
    >>> from dp_metrics import accuracy_interval, private_accuracy_score, with_result
    >>> y_true, y_pred = [0, 1, 1, 0] * 250, [0, 1, 0, 0] * 250
    >>> result = with_result(private_accuracy_score)(y_true, y_pred, epsilon=1.0)
    >>> lower, upper = accuracy_interval(result)
    >>> 0.6 < lower < 0.75 < upper < 0.9
    True
    >>> round(accuracy_interval(0.872, n=1000, epsilon=1.0).lower, 5)
    0.84952
    """
    if isinstance(result_or_share, PrivateResult):
        if n is not None or epsilon is not None:
            raise ValueError("A PrivateResult knows its own n and epsilon: pass neither.")
        if result_or_share.metric not in SHARES:
            raise ValueError(
                f"accuracy_interval is for {', '.join(SHARES)}, not for {result_or_share.metric}."
            )
        return result_or_share.population_interval(confidence)
    if n is None or epsilon is None:
        raise ValueError("A bare share needs the number of records, n, and the epsilon of its release.")
    records, rate = check_count(n, "n", _MOST_RECORDS), float(exact_epsilon(epsilon))
    sure, count = check_confidence(confidence), _count(as_real(result_or_share), records)
    miss = (1 - sure) / 2
    lower, upper = noisy_binomial_limits(count, records, rate, miss_low=miss, miss_high=miss)
    return Interval(lower, upper, sure, f"The share {POPULATION_NOTE}", estimate=count / records)


def _count(share: float, n: int) -> int:
    """Return the number of records that a share is of, or raise if there is none."""
    if not 0 <= share <= 1:
        raise ValueError("A share must be a number from 0 to 1, or a PrivateResult.")
    count = round(share * n)
    if abs(share - count / n) > _ROUNDING:
        raise ValueError(
            "The share times n is no whole number: it was released with weights or groups, by "
            "another mechanism or with another n, or it has been rounded."
        )
    return count
