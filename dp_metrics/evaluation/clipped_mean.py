"""The clipped mean: what a practitioner would otherwise write, and the experiments' plainest yardstick.

It is a function and not a mechanism, because it needs the records and not only their output bounds.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import RandomState, check_entropy
from dp_metrics._validation import MAX_FLOAT, check_epsilon
from dp_metrics.bounds import OutputBounds
from dp_metrics.exceptions import SeededReleaseWarning
from dp_metrics.mechanisms import AboveThreshold, Laplace

__all__ = ["clipped_mean", "clipped_variance", "order_statistic_bounds", "private_threshold"]

Floats = NDArray[np.float64]


def private_threshold(values: Floats, *, epsilon: float, limit: float, rng: RandomState = None) -> float:
    """Release a high quantile of non-negative values, above which a later release clips them.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Non-negative numbers, one per record; n is public.
    epsilon : float
        Privacy parameter of the quantile alone.
    limit : float
        Public largest value.
    rng : None, int, RandomState or Generator, default=None
        None draws from the operating system.

    Returns
    -------
    float
        epsilon-differentially private when one record is replaced: AboveThreshold on an order statistic,
        whose output bounds are its neighbours in the sorted records.

    Notes
    -----
    About 1/(3 epsilon) records lie above it. At three times this epsilon for the mean, clipping one more
    record then costs as much bias as it saves noise.
    """
    epsilon = check_epsilon(epsilon)
    mechanism = AboveThreshold()
    n = len(values)
    ranks = mechanism.count_ranks(epsilon, n=n, monotonic=True, output_range=(0.0, limit))
    position = max(n - 1 - math.ceil(1 / (3 * epsilon)), n // 2)
    return mechanism.release(order_statistic_bounds(values, position, ranks, limit), epsilon, rng)


def order_statistic_bounds(values: Floats, position: int, ranks: int, limit: float) -> OutputBounds:
    """Return the output bounds of the sorted value at a position, counted from 0.

    With l records replaced it can be as low as the value l places below it (0 beyond the first), and as high
    as that l places above it (the limit beyond the last); it is monotonic.
    """
    ordered = np.sort(np.clip(values, 0.0, limit))
    n, steps = ordered.size, np.arange(1, ranks + 1)
    return OutputBounds(
        value=float(ordered[position]),
        lower=np.where(steps <= position, ordered[np.maximum(position - steps, 0)], 0.0),
        upper=np.where(position + steps < n, ordered[np.minimum(position + steps, n - 1)], limit),
        output_range=(0.0, limit),
        monotonic=True,
        n=n,
    )


def _clipped(
    values: Floats, epsilon: float, limit: float | None, rng: RandomState, *, variance: bool
) -> float:
    epsilon, n = check_epsilon(epsilon), len(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededReleaseWarning)  # said once, by the public function
        public = MAX_FLOAT if limit is None else limit
        top = private_threshold(values, epsilon=epsilon / 4, limit=public, rng=rng)
        kept = np.clip(values, 0.0, top)
        if variance:
            value, largest, sensitivity = float(np.var(kept)), top * top / 4, top * top * (n - 1) / n**2
        else:
            value, largest, sensitivity = float(np.mean(kept)), top, top / n
        law = OutputBounds(
            value=min(value, largest),
            lower=np.zeros(1),
            upper=np.full(1, largest),
            output_range=(0.0, largest),
            monotonic=not variance,
            n=n,
            sensitivity=sensitivity,
        )
        return Laplace().release(law, 3 * epsilon / 4, rng)


def clipped_mean(
    losses: Floats, *, epsilon: float, limit: float | None = None, rng: RandomState = None
) -> float:
    """Release a mean of non-negative numbers: clip at a private quantile, then add Laplace noise.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Non-negative numbers, one per record; n is public.
    epsilon : float
        Privacy parameter: a quarter pays for the quantile, the rest for the mean.
    limit : float or None, default=None
        Public largest value.
    rng : None, int, RandomState or Generator, default=None
        None draws from the operating system.

    Returns
    -------
    float
        epsilon-differentially private when one record is replaced; a comparator in floats.

    Examples
    --------
    >>> import numpy as np
    >>> clipped_mean(np.ones(1000), epsilon=1.0) >= 0
    True
    """
    return _clipped(losses, epsilon, limit, check_entropy(rng), variance=False)


def clipped_variance(
    x: Floats, *, epsilon: float, limit: float | None = None, rng: RandomState = None
) -> float:
    """Release a population variance of non-negative numbers in the same way.

    The values are clipped to [0, T] with T a private quantile, and Laplace noise of scale
    T^2 (n-1) / (n^2 epsilon) is added, epsilon being the three quarters that are left.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Non-negative numbers, one per record; n is public.
    epsilon, limit, rng
        As for `clipped_mean`.

    Returns
    -------
    float
        epsilon-differentially private when one record is replaced; a comparator in floats.
    """
    return _clipped(x, epsilon, limit, check_entropy(rng), variance=True)
