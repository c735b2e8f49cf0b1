"""Private statistics of one column, drop-in replacements for those of NumPy."""

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._docs import documented
from dp_metrics._options import check_ddof, check_groups, check_sample_weight, symmetric_mechanism
from dp_metrics._queries import LossMetric, MeanLoss, OrderStatistic, Variance
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._validation import MAX_FLOAT, as_vector, check_bounds, check_vector, float_block
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = [
    "LOSS_METRICS",
    "private_mean",
    "private_quantile",
    "private_std",
    "private_variance",
    "revealing_freedom",
    "with_freedom",
]


@documented
def private_variance(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Variance with epsilon-differential privacy.

    Parameters
    ----------
    {x}
    {epsilon}
    {x_bounds}
    {ddof}
    {neighboring}
    {mechanism: pass `bounds`}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private variance; finite, at least 0.

    {raises}

    See Also
    --------
    private_std : Its square root.

    Notes
    -----
    {guarantee_no_groups}

    References
    ----------
    {paper: Section 4 and Appendix C}

    Examples
    --------
    >>> from dp_metrics import private_variance
    >>> variance = private_variance(range(1000), epsilon=2.0)
    >>> 60_000 < variance < 120_000  # exactly 83,333.25
    True
    """
    freedom = check_ddof(ddof)
    revealing = revealing_freedom(freedom)
    release = Release(
        "private_variance", epsilon, mechanism, accountant, random_state, neighboring, **revealing
    )
    return _variance(release, x, bounds, freedom)


@documented
def private_std(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Return the standard deviation with epsilon-differential privacy: the root of a private variance.

    Parameters
    ----------
    {x}
    {epsilon}
    {x_bounds}
    {ddof}
    {neighboring}
    {mechanism: pass `bounds`}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private standard deviation; finite, at least 0.

    {raises}

    See Also
    --------
    private_variance : Its square.

    Notes
    -----
    {guarantee_no_groups}

    References
    ----------
    {paper: Section 4 and Appendix C}

    Examples
    --------
    >>> from dp_metrics import private_std
    >>> 240 < private_std(range(1000), epsilon=2.0) < 350  # exactly 288.7
    True
    """
    freedom = check_ddof(ddof)
    release = Release(
        "private_std", epsilon, mechanism, accountant, random_state, neighboring, **revealing_freedom(freedom)
    )
    return math.sqrt(_variance(release, x, bounds, freedom))


@documented
def private_mean(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Mean of numbers with public bounds, with epsilon-differential privacy.

    Parameters
    ----------
    {x}
    {epsilon}
    bounds : tuple of float
        Public range (lower, upper) of the values, in their units; values are clipped into it. Required: a
        mean of numbers of both signs has no output bounds without it. Never read it from the data.
    {sample_weight}
    {groups}
    {neighboring}
    {count_mechanism}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private mean, within the bounds. With neighboring="add_or_remove_one" the mean of no records at
        all is the lower bound.

    {raises}

    See Also
    --------
    private_mean_loss : Mean of non-negative numbers without a limit.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Appendix D.1 (linearly separable functions)}

    Examples
    --------
    >>> from dp_metrics import private_mean
    >>> 39 < private_mean([38, 41, 43] * 200, epsilon=1.0, bounds=(0, 120)) < 42.5  # exactly 40.7
    True
    """
    release = Release(
        "private_mean",
        epsilon,
        symmetric_mechanism(mechanism, neighboring),
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    query = _mean_query(
        x, private_n=release.private_n, bounds=bounds, sample_weight=sample_weight, groups=groups
    )
    return _from_lower(release.draw(query), bounds)


@documented
def private_quantile(
    x: ArrayLike,
    q: float,
    *,
    epsilon: float,
    bounds: tuple[float, float | None],
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Quantile of numbers with a public lower bound, with epsilon-differential privacy.

    The k-th smallest of n values, k = ceil(q n): `numpy.quantile` with ``method="inverted_cdf"``.

    Parameters
    ----------
    {x}
    q : float
        Which quantile, in [0, 1].
    {epsilon}
    bounds : tuple of float
        Public range (lower, upper) of the values, in their units; values are clipped into it. The upper one
        may be None or infinite: unbounded above. Never read it from the data.
    {mechanism: pass an upper bound}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private quantile; finite, within the bounds.

    {raises}

    Notes
    -----
    {guarantee}

    The result is more precise near the lower bound than far above it. With q = 0 or 1 a single record
    decides, so the result is hardly ever close.

    References
    ----------
    {paper: Section 3}

    Examples
    --------
    >>> from dp_metrics import private_quantile
    >>> median = private_quantile(range(1001), 0.5, epsilon=2.0, bounds=(0, None))
    >>> 440 < median < 560  # exactly 500
    True
    """
    release = Release("private_quantile", epsilon, mechanism, accountant, random_state)
    low, high = _half_open_bounds(bounds)
    if isinstance(q, bool) or not isinstance(q, numbers.Real) or not 0 <= q <= 1:
        raise ValueError("Quantiles must be in the range [0, 1].")
    values = check_vector(x, "x")
    k = max(math.ceil(values.size * float(q) - 1), 0) + 1  # as numpy rounds it
    result = low + release.draw(OrderStatistic(_above(values, low, high), k, _width(low, high)))
    return min(result, high)


def revealing_freedom(ddof: float) -> dict[str, Any]:
    """Return what would give a private number of records away."""
    return {f"ddof={ddof:g}": None if ddof == 0 else True}


def _variance(release: Release, x: ArrayLike, bounds: Any, ddof: float) -> float:
    limits = check_bounds(bounds)
    values = as_vector(x, "x", private_n=release.private_n)
    if not release.private_n and not ddof < values.size:
        raise ValueError("ddof must be smaller than the number of samples.")
    return with_freedom(release.draw(Variance(values, limits)), values.size, ddof)


def with_freedom(variance: float, n: int, ddof: float) -> float:
    """Return the variance with these delta degrees of freedom; with any, n is public."""
    return variance if ddof == 0 else min(variance * (n / (n - ddof)), MAX_FLOAT)


def _mean_query(
    x: ArrayLike,
    *,
    private_n: bool,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    bounds: Any = None,
) -> MeanLoss:
    limits = check_bounds(bounds)
    if limits is None:
        raise ValueError("bounds must be given: a mean has no output bounds without them.")
    values = as_vector(x, "x", private_n=private_n)

    def above(block: NDArray[Any]) -> NDArray[np.float64]:
        return _above(float_block(block, "x"), *limits)

    weights = check_sample_weight(sample_weight, values, whole=not private_n)
    codes = check_groups(groups, values)
    return MeanLoss(above, (values,), _width(*limits), weights, codes)


def _from_lower(mean: float, bounds: tuple[float, float]) -> float:
    low, high = (float(bound) for bound in bounds)
    return min(low + mean, high)


def _above(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return how far each value lies above the lower bound, rounded."""
    with np.errstate(over="ignore"):
        return np.minimum(np.clip(values, low, high) - low, MAX_FLOAT)


def _width(low: float, high: float) -> float:
    """Return the largest number that `_above` gives."""
    with np.errstate(over="ignore"):
        return float(min(np.float64(high) - low, MAX_FLOAT))


def _half_open_bounds(bounds: Any) -> tuple[float, float]:
    """Return public bounds of which the upper one may be None or infinite."""
    if isinstance(bounds, tuple | list) and len(bounds) == 2 and bounds[1] in (None, math.inf):
        bounds = (bounds[0], MAX_FLOAT)
    limits = check_bounds(bounds)
    if limits is None:
        raise ValueError("bounds must be given: a quantile needs a public lower bound.")
    return limits


LOSS_METRICS = {
    "private_mean": LossMetric(
        _mean_query, lambda mean, total_weight, options: _from_lower(mean, options["bounds"])
    )
}
"""How the mean follows from a mean loss, for summaries."""
