"""Relative, logarithmic, quantile and count losses of a regression, and its median error."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.losses import (
    absolute_error,
    absolute_percentage_error,
    pinball_loss,
    poisson_deviance,
    squared_log_error,
)
from dp_metrics.inputs.options import MultiOutput, as_real, check_bounds
from dp_metrics.inputs.readers import targets
from dp_metrics.inputs.shape import Shape, check_same_columns
from dp_metrics.metrics._metric import UNIT, Bounds, OrderSettings, Settings, asks, private
from dp_metrics.metrics._multioutput import error_plan
from dp_metrics.release.parts.order_statistic import OrderOf
from dp_metrics.release.plan import Plan


@private(
    "sklearn.metrics.mean_absolute_percentage_error",
    greater_is_better=False,
    limit={"max_loss": 1.0},
    from_unit=lambda x: (np.ones_like(x), x),
)
def private_mean_absolute_percentage_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: MultiOutput = "uniform_average",
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float | Floats:
    """Mean absolute percentage error (MAPE) with epsilon-differential privacy for the test records.

    As in scikit-learn, targets nearer to 0 than 2.2e-16 count as that far from it: one target of 0 gives an
    enormous result. A public `max_loss`, such as 2 for 200 %, prevents that.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private error as a share: 1 is 100 %; finite, at least 0. An array for "raw_values" only.

    See Also
    --------
    private_mae : Mean absolute error.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_mean_absolute_percentage_error
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mape = private_mean_absolute_percentage_error(y_true, y_pred, epsilon=1.0, max_loss=2)
    >>> 0.1 < mape < 0.6  # exactly 0.327
    True
    """
    return asks(error_plan, absolute_percentage_error, max_loss=max_loss, multioutput=multioutput)


def _check_above_minus_one(y_true: Floats, y_pred: Floats) -> None:
    if (y_true <= -1).any() or (y_pred <= -1).any():
        raise ValueError(
            "Mean Squared Logarithmic Error cannot be used when targets contain values less than or equal "
            "to -1."
        )


@private(
    "sklearn.metrics.mean_squared_log_error",
    greater_is_better=False,
    limit=UNIT,
    lowest_prediction=math.nextafter(-1.0, 0.0),
)
def private_mean_squared_log_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: Bounds = None,
    sample_weight: ArrayLike | None = None,
    multioutput: MultiOutput = "uniform_average",
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float | Floats:
    """Mean squared logarithmic error with epsilon-differential privacy for the test records.

    Parameters
    ----------
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from
        the data.
        The lower one must be above -1.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private mean squared logarithmic error; finite, at least 0. An array for "raw_values" only.

    See Also
    --------
    private_mse : Mean squared error.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_mean_squared_log_error
    >>> y_true, y_pred = [3, 5, 2.5, 7] * 250, [2.5, 5, 4, 8] * 250
    >>> msle = private_mean_squared_log_error(y_true, y_pred, epsilon=1.0)
    >>> 0.02 < msle < 0.08  # exactly 0.04
    True
    """
    limits = check_bounds(bounds)
    if limits is not None and limits[0] <= -1:
        raise ValueError("The lower one of bounds must be above -1.")
    check = _check_above_minus_one
    return asks(error_plan, squared_log_error, bounds=limits, multioutput=multioutput, check=check)


@private("sklearn.metrics.mean_pinball_loss", greater_is_better=False, limit=UNIT)
def private_mean_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: Bounds = None,
    alpha: float = 0.5,
    sample_weight: ArrayLike | None = None,
    multioutput: MultiOutput = "uniform_average",
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float | Floats:
    """Pinball (quantile) loss with epsilon-differential privacy for the test records.

    Parameters
    ----------
    alpha : float, default=0.5
        The quantile that the predictions are meant for, in [0, 1]; 0.5 gives half the mean absolute error.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private pinball loss; finite, at least 0. An array for "raw_values" only.

    See Also
    --------
    private_mae : Mean absolute error.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_mean_pinball_loss
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> loss = private_mean_pinball_loss(y_true, y_pred, epsilon=1.0, alpha=0.1)
    >>> 0.2 < loss < 0.6  # exactly 0.35
    True
    """
    share = as_real(alpha)
    if not 0 <= share <= 1:
        raise ValueError("alpha must be a number in [0, 1].")
    loss = partial(pinball_loss, alpha=share)
    return asks(error_plan, loss, bounds=bounds, multioutput=multioutput)


def _check_counts(y_true: Floats, y_pred: Floats) -> None:
    if (y_true < 0).any() or (y_pred <= 0).any():
        raise ValueError(
            "Mean Tweedie deviance error with power=1 can only be used on non-negative y and strictly "
            "positive y_pred."
        )


# the least probability of scikit-learn's log loss is the same: the deviance of one record stays finite
_LEAST = float(np.finfo(np.float64).eps)


@private(
    "sklearn.metrics.mean_poisson_deviance",
    greater_is_better=False,
    limit={"max_loss": 1.0},
    from_unit=lambda x: (np.zeros_like(x), x + 1e-9),
    lowest_prediction=_LEAST,
)
def private_mean_poisson_deviance(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Mean Poisson deviance with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True targets, at least 0.
    y_pred : array-like of shape (n_samples,)
        Predictions, above 0, of a model that was not trained on these records.

    Returns
    -------
    float
        The private mean Poisson deviance; finite, at least 0.

    See Also
    --------
    private_mse : Mean squared error.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_mean_poisson_deviance
    >>> y_true, y_pred = [2, 0, 1, 4] * 250, [0.5, 0.5, 2., 2.] * 250
    >>> deviance = private_mean_poisson_deviance(y_true, y_pred, epsilon=1.0)
    >>> 0.8 < deviance < 2.2  # exactly 1.4260
    True
    """
    return asks(error_plan, poisson_deviance, max_loss=max_loss, check=_check_counts, several=False)


def _median_plan(shape: Shape, *, bounds: Any) -> Plan:
    limits = check_bounds(bounds)
    check_same_columns(*(one.names for one in shape.arguments))
    if shape.is_wide:
        raise ValueError("y_true and y_pred should be 1d arrays: release one median for each output.")
    limit = MAX_FLOAT if limits is None else float(np.minimum(np.float64(limits[1]) - limits[0], MAX_FLOAT))
    part = OrderOf(partial(_errors, bounds=limits, limit=limit), _middle, limit)
    return Plan((part,), partial(targets, columns=1))


def _middle(n: int) -> int:
    """Return which of n values is the lower median, counted from 1."""
    return max((n + 1) // 2, 1)


def _errors(
    y_true: NDArray[Any], y_pred: NDArray[Any], *, bounds: tuple[float, float] | None, limit: float
) -> Floats:
    read = [float_block(array, name) for array, name in ((y_true, "y_true"), (y_pred, "y_pred"))]
    if bounds is not None:
        read = [np.clip(values, *bounds) for values in read]
    return np.minimum(absolute_error(*read), limit)


@private("sklearn.metrics.median_absolute_error", greater_is_better=False, mechanism="hazard", limit=UNIT)
def private_median_absolute_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: Bounds = None,
    **settings: Unpack[OrderSettings],
) -> float:
    """Median absolute error with epsilon-differential privacy for the test records.

    A few large errors (a heavy tail) do not move it. If the number of errors is even, it is the smaller one
    of the two in the middle, where scikit-learn takes their mean.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True targets, finite.
    y_pred : array-like of shape (n_samples,)
        Predictions of a model that was not trained on these records.

    Returns
    -------
    float
        The private median absolute error; finite, at least 0, in the units of the targets.

    See Also
    --------
    private_quantile : Other quantiles, of any numbers.
    private_mae : Their mean.

    References
    ----------
    A. Smith, "Privacy-Preserving Statistical Estimation with Optimal Convergence Rates", 2011,
    doi:10.1145/1993636.1993743, for private medians.

    Examples
    --------
    >>> from dp_metrics import private_median_absolute_error
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> 0.4 < private_median_absolute_error(y_true, y_pred, epsilon=1.0) < 0.6  # exactly 0.5
    True
    """
    return asks(_median_plan, bounds=bounds)
