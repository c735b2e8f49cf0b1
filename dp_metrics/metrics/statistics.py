"""Private statistics of one column of numbers, as in NumPy, and the mean of any loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

from numpy.typing import ArrayLike

from dp_metrics.inputs.arrays import Shape, float_block, loss_block, vector
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.inputs.options import MAX_FLOAT, Floats, as_real, check_bounds, check_ddof, check_max_loss
from dp_metrics.metrics._metric import UNIT, asks, private
from dp_metrics.metrics._settings import Bounds, MeanSettings, OrderSettings, Settings
from dp_metrics.metrics.regression import quantile_rank
from dp_metrics.quantities.base import Quantity
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.quantities.ranks import OrderOf
from dp_metrics.quantities.variance import VarianceOf
from dp_metrics.release.query import Query
from dp_metrics.release.result import Monotone, ReleasedNumbers


def _one_column(_: Shape, *, part: Quantity, name: str = "x", **of_query: Any) -> Query:
    """Return the query of one part of a column of numbers."""
    return Query((part,), partial(vector, name=name), **of_query)


def _variance_query(
    shape: Shape, *, bounds: Any, ddof: Any, of_variance: Callable[[float], float] = float
) -> Query:
    freedom, limits = check_ddof(ddof), check_bounds(bounds)
    if shape.n is not None and shape.n and not freedom < shape.n:
        raise ValueError("ddof must be smaller than the number of samples.")
    result = Monotone(partial(_with_freedom, ddof=freedom, of_variance=of_variance))
    return _one_column(shape, part=VarianceOf(limits, "x"), reading=result)


def _with_freedom(released: ReleasedNumbers, ddof: float, of_variance: Callable[[float], float]) -> float:
    """Return the metric of the variance with these delta degrees of freedom; with any, n is public."""
    variance, n = released.values[0], released.public_n
    if ddof:
        assert n is not None
        variance = min(variance * (n / (n - ddof)), MAX_FLOAT)
    return of_variance(variance)


@private("numpy.var", discloses_n={"ddof": False}, limit=UNIT)
def private_variance(
    x: ArrayLike, *, bounds: Bounds = None, ddof: float = 0, **settings: Unpack[Settings]
) -> float:
    """Variance with epsilon-differential privacy.

    Returns
    -------
    float
        The private variance; finite, at least 0.

    See Also
    --------
    private_std : Its square root.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 4 and Appendix C.

    Examples
    --------
    >>> from dp_metrics import private_variance
    >>> variance = private_variance(range(1000), epsilon=2.0)
    >>> 60_000 < variance < 120_000  # exactly 83,333.25
    True
    """
    return asks(_variance_query, bounds=bounds, ddof=ddof)


@private("numpy.std", discloses_n={"ddof": False}, limit=UNIT)
def private_std(
    x: ArrayLike, *, bounds: Bounds = None, ddof: float = 0, **settings: Unpack[Settings]
) -> float:
    """Return the standard deviation with epsilon-differential privacy: the root of a private variance.

    Returns
    -------
    float
        The private standard deviation; finite, at least 0.

    See Also
    --------
    private_variance : Its square.

    Notes
    -----
    This is the spread of the values, not the standard error of their mean, which is that divided by the
    square root of n. It is often too low, and far too low if a few values lie far from the rest: do not build
    intervals from it.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 4 and Appendix C.

    Examples
    --------
    >>> from dp_metrics import private_std
    >>> 240 < private_std(range(1000), epsilon=2.0) < 350  # exactly 288.7
    True
    """
    return asks(_variance_query, bounds=bounds, ddof=ddof, of_variance=math.sqrt)


@private("numpy.average", required=UNIT, mechanism="geometric")
def private_mean(x: ArrayLike, *, bounds: tuple[float, float], **settings: Unpack[MeanSettings]) -> float:
    """Mean of numbers with public bounds, with epsilon-differential privacy.

    Parameters
    ----------
    bounds : tuple of float
        Public range (lower, upper) of the values, in their units; values are clipped into it. Required: a
        mean of numbers of both signs has no output bounds without it. Never read it from the data.

    Returns
    -------
    float
        The private mean, within the bounds. With neighboring="add_or_remove_one" the mean of no records at
        all is the lower bound.

    See Also
    --------
    private_mean_loss : Mean of non-negative numbers without a limit.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.1 (linearly separable functions).

    Examples
    --------
    >>> from dp_metrics import private_mean
    >>> 39 < private_mean([38, 41, 43] * 200, epsilon=1.0, bounds=(0, 120)) < 42.5  # exactly 40.7
    True
    """
    above, reading = _above_lower(check_bounds(bounds), "a mean has no output bounds without them")
    return asks(_one_column, part=MeanOf(above), reading=reading)


@private("numpy.mean", limit={"max_loss": 1.0})
def private_mean_loss(
    losses: ArrayLike, *, max_loss: float | None = None, **settings: Unpack[MeanSettings]
) -> float:
    """Mean of any non-negative per-record loss with epsilon-differential privacy.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per record, each computed from its own record and public numbers only.

    Returns
    -------
    float
        The private mean loss; finite, at least 0.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.1 (linearly separable functions).

    Examples
    --------
    A Huber loss, private:

    >>> import numpy as np
    >>> from dp_metrics import private_mean_loss
    >>> error = np.abs(np.linspace(-3, 3, 1000))
    >>> huber = np.where(error <= 1, error**2 / 2, error - 0.5)
    >>> 0.8 < private_mean_loss(huber, epsilon=2.0) < 1.4  # exactly 1.06
    True
    """
    record_loss = RecordLoss(identity, reads=(loss_block,), cap=check_max_loss(max_loss))
    return asks(_one_column, part=MeanOf(record_loss), name="losses")


@private(
    "numpy.quantile",
    required={"q": 0.5, "bounds": (0, None)},
    mechanism="hazard",
    limit=UNIT,
)
def private_quantile(
    x: ArrayLike, q: float, *, bounds: tuple[float, float | None], **settings: Unpack[OrderSettings]
) -> float:
    """Quantile of numbers with a public lower bound, with epsilon-differential privacy.

    The k-th smallest of n values, k = ceil(q n): `numpy.quantile` with ``method="inverted_cdf"``.

    Parameters
    ----------
    q : float
        Which quantile, in [0, 1].
    bounds : tuple of float
        Public range (lower, upper) of the values, in their units; values are clipped into it. The upper one
        may be None or infinite: unbounded above. Never read it from the data.
    mechanism : str or mechanism object, default="hazard"
        "hazard" or "above_threshold"; with a public limit (pass an upper bound) also "geometric",
        "inverse_sensitivity", "piecewise_laplace" or "laplace"; or an object such as
        `AboveThreshold.paper()`.

    Returns
    -------
    float
        The private quantile; finite, within the bounds.

    Notes
    -----
    The result is more precise near the lower bound than far above it. With q = 0 or 1 a single record
    decides, so the result is hardly ever close.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 3.

    Examples
    --------
    >>> from dp_metrics import private_quantile
    >>> median = private_quantile(range(1001), 0.5, epsilon=2.0, bounds=(0, None))
    >>> 440 < median < 560  # exactly 500
    True
    """
    limits = check_bounds(bounds, may_be_open=True)
    above, reading = _above_lower(limits, "a quantile needs a public lower bound")
    share = as_real(q)
    if not 0 <= share <= 1:
        raise ValueError("Quantiles must be in the range [0, 1].")
    part = OrderOf(above, partial(quantile_rank, share=share), above.limit)
    return asks(_one_column, part=part, reading=reading)


def _shifted(released: ReleasedNumbers, low: float, high: float) -> float:
    """Return what was released above the public lower bound."""
    return float(min(low + released.values[0], high))


def _above(values: Floats, low: float) -> Floats:
    return values - low


def _above_lower(bounds: Bounds, reason: str) -> tuple[RecordLoss, Monotone]:
    """Return how far each value lies above its lower bound, and what makes a result of one such number."""
    if bounds is None:
        raise ValueError(f"bounds must be given: {reason}.")
    low, high = bounds
    above = RecordLoss(
        partial(_above, low=low),
        reads=(partial(float_block, name="x"),),
        cap=min(high - low, MAX_FLOAT),
        bounds=bounds,
    )
    return above, Monotone(partial(_shifted, low=low, high=high))
