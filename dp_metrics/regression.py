"""Private regression metrics, drop-in replacements for those of `sklearn.metrics`."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics import losses as _losses
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._validation import check_bounds, check_losses, check_max_loss, check_targets
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = ["private_mae", "private_mean_loss", "private_mse"]


def private_mse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Mean squared error with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, finite.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from
        the data.
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
        The private mean squared error, averaged uniformly over outputs; finite, at least 0.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as scikit-learn does, or epsilon, bounds or mechanism is.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_mae : Mean absolute error.
    private_mean_loss : Mean of any non-negative loss.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, n and the arguments, which are public.

    References
    ----------
    Section 5.2 and Appendix D of D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential
    Privacy", arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_mse
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mse = private_mse(y_true, y_pred, epsilon=1.0)
    >>> 0.2 < mse < 0.7  # exactly 0.375
    True
    """
    return _mean_error(
        _losses.squared_error,
        y_true,
        y_pred,
        bounds,
        Release("private_mse", epsilon, mechanism, accountant, random_state),
    )


def private_mae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Mean absolute error with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, finite.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from
        the data.
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
        The private mean absolute error, averaged uniformly over outputs; finite, at least 0.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as scikit-learn does, or epsilon, bounds or mechanism is.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_mse : Mean squared error.
    private_mean_loss : Mean of any non-negative loss.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, n and the arguments, which are public.

    References
    ----------
    Section 5.2 and Appendix D of D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential
    Privacy", arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mae = private_mae(y_true, y_pred, epsilon=1.0)
    >>> 0.3 < mae < 0.8  # exactly 0.5
    True
    """
    return _mean_error(
        _losses.absolute_error,
        y_true,
        y_pred,
        bounds,
        Release("private_mae", epsilon, mechanism, accountant, random_state),
    )


def private_mean_loss(
    losses: ArrayLike,
    *,
    epsilon: float,
    max_loss: float | None = None,
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Mean of any non-negative per-record loss with epsilon-differential privacy.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per record, each computed from its own record and public numbers only.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    max_loss : float or None, default=None
        Public cap of one loss, in the units of the loss; larger losses are clipped to it. None: unbounded.
        Never read it from the data.
    mechanism : str or mechanism object, default="hazard"
        "hazard", "above_threshold", "inverse_sensitivity", "piecewise_laplace" or "laplace" (the last
        three need `max_loss`), or an object such as `AboveThreshold.paper()`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release
        reproducible and therefore NOT private.

    Returns
    -------
    float
        The private mean loss; finite, at least 0.

    Raises
    ------
    ValueError, TypeError
        If a loss is negative or not finite, or epsilon, max_loss or mechanism is invalid.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given n and the arguments, which are public, if each loss depends on its own record only.

    References
    ----------
    Appendix D.1 (linearly separable functions) of D. Durfee, "Instance-Specific Asymmetric Sensitivity in
    Differential Privacy", arXiv:2311.14681.

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
    release = Release("private_mean_loss", epsilon, mechanism, accountant, random_state)
    cap = check_max_loss(max_loss)
    return release.of_mean_loss(lambda block: block, (check_losses(losses),), cap=cap)


def _mean_error(
    kernel: _losses.Kernel, y_true: ArrayLike, y_pred: ArrayLike, bounds: Any, release: Release
) -> float:
    limits = check_bounds(bounds)
    true, pred = check_targets(y_true, y_pred)
    if limits is None:
        return release.of_mean_loss(kernel, (true, pred), cap=None)
    low, high = limits

    def clipped(y: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
        return kernel(np.clip(y, low, high), np.clip(p, low, high))

    return release.of_mean_loss(clipped, (true, pred), cap=_losses.largest_error(kernel, limits))
