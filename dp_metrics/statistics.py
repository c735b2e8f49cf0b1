"""Private statistics of one column, drop-in replacements for those of NumPy."""

import numbers

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._validation import MAX_FLOAT, check_bounds, check_vector
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = ["private_variance"]


def private_variance(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Variance with epsilon-differential privacy.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        One finite number per record.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of the values, in their units; values are clipped into it. None:
        unbounded. Never read it from the data.
    ddof : float, default=0
        Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
        Must be below the public n.
    mechanism : str or mechanism object, default="hazard"
        "hazard", "above_threshold", "inverse_sensitivity", "piecewise_laplace" or "laplace" (the last
        three need `bounds`), or an object such as `AboveThreshold.paper()`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release
        reproducible and therefore NOT private.

    Returns
    -------
    float
        The private variance; finite, at least 0.

    Raises
    ------
    ValueError, TypeError
        If the data, epsilon, bounds, ddof or mechanism is invalid.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given n and the arguments, which are public.

    References
    ----------
    Section 4 and Appendix C of D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy",
    arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_variance
    >>> variance = private_variance(range(1000), epsilon=2.0)
    >>> 60_000 < variance < 120_000  # exactly 83,333.25
    True
    """
    release = Release("private_variance", epsilon, mechanism, accountant, random_state)
    limits = check_bounds(bounds)
    if isinstance(ddof, bool) or not isinstance(ddof, numbers.Real) or not ddof == ddof:
        raise ValueError("ddof must be a number.")
    values = check_vector(x, "x")
    n = values.size
    if not ddof < n:
        raise ValueError("ddof must be smaller than the number of samples.")
    variance = release.of_variance(values, limits)
    return variance if ddof == 0 else min(variance * (n / (n - float(ddof))), MAX_FLOAT)
