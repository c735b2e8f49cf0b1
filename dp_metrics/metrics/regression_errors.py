"""Squared and absolute errors of a regression, and R^2, as in `sklearn.metrics`."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import absolute_error, squared_error
from dp_metrics.inputs.options import MultiOutput
from dp_metrics.metrics._metric import UNIT, Bounds, Settings, asks, private
from dp_metrics.metrics._multioutput import error_plan, r2_plan, root_plan


@private("sklearn.metrics.mean_squared_error", greater_is_better=False, limit=UNIT)
def private_mse(
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
    """Mean squared error with epsilon-differential privacy for the test records.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private mean squared error; finite, at least 0. An array for "raw_values" only.

    See Also
    --------
    private_rmse : Its square root.
    private_mean_loss : Mean of any non-negative loss.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 5.2 and Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_mse
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mse = private_mse(y_true, y_pred, epsilon=1.0)
    >>> 0.2 < mse < 0.7  # exactly 0.375
    True
    """
    return asks(error_plan, squared_error, bounds=bounds, multioutput=multioutput)


private_mean_squared_error = private_mse


@private("sklearn.metrics.root_mean_squared_error", greater_is_better=False, limit=UNIT)
def private_rmse(
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
    """Root mean squared error with epsilon-differential privacy for the test records.

    The square root of a private mean squared error, which costs nothing more. scikit-learn averages the roots
    of several outputs, so each output is released, at an equal part of epsilon.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private root mean squared error; finite, at least 0. An array for "raw_values" only.

    See Also
    --------
    private_mse : The mean squared error itself.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 5.2 and Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_rmse
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> rmse = private_rmse(y_true, y_pred, epsilon=1.0)
    >>> 0.4 < rmse < 0.85  # exactly 0.612
    True
    """
    return asks(root_plan, squared_error, bounds=bounds, multioutput=multioutput)


private_root_mean_squared_error = private_rmse


@private("sklearn.metrics.mean_absolute_error", greater_is_better=False, limit=UNIT)
def private_mae(
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
    """Mean absolute error with epsilon-differential privacy for the test records.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private mean absolute error; finite, at least 0. An array for "raw_values" only.

    See Also
    --------
    private_mse : Mean squared error.
    private_mean_loss : Mean of any non-negative loss.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 5.2 and Appendix D.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mae = private_mae(y_true, y_pred, epsilon=1.0)
    >>> 0.3 < mae < 0.8  # exactly 0.5
    True
    """
    return asks(error_plan, absolute_error, bounds=bounds, multioutput=multioutput)


private_mean_absolute_error = private_mae


@private(
    "sklearn.metrics.r2_score",
    greater_is_better=True,
    limit=UNIT,
    refused="a weighted variance has no private release here",
    from_unit=lambda x: (x, 0 * x),
)
def private_r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: Bounds = None,
    sample_weight: None = None,
    multioutput: MultiOutput = "uniform_average",
    error_share: float = 0.5,
    **settings: Unpack[Settings],
) -> float | Floats:
    """R^2, the coefficient of determination, with epsilon-differential privacy for the test records.

    1 - MSE / Var from a private mean squared error and a private variance of the targets, which share
    epsilon. With several outputs, each has an equal part of it.

    Parameters
    ----------
    error_share : float, default=0.5
        Share of epsilon for the mean squared error; the variance has the rest.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private R^2: at most 1, finite. Where the private variance is 0, it is 1 if the private error is 0
        too and 0 otherwise (scikit-learn's `force_finite`). An array for "raw_values" only.

    See Also
    --------
    private_mse : Mean squared error.
    private_variance : Variance.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Sections 4 and 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_r2_score
    >>> y_true = np.linspace(0, 10, 1000)
    >>> r2 = private_r2_score(y_true, y_true + 1, epsilon=2.0, bounds=(0, 11))
    >>> 0.6 < r2 < 1  # exactly 0.88
    True
    """
    return asks(r2_plan, bounds=bounds, multioutput=multioutput, error_share=error_share)
