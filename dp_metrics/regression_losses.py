"""More private regression losses, drop-in replacements for those of `sklearn.metrics`."""

import numbers
from functools import partial
from typing import Any, Literal, Unpack, overload

from numpy.typing import ArrayLike

from dp_metrics import losses as _losses
from dp_metrics._docs import documented
from dp_metrics._queries import LossMetric, MeanLoss
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._targets import error_query, mean_error
from dp_metrics._typing import Average, BoundedOptions, CappedOptions, Floats, PinballOptions
from dp_metrics._validation import check_bounds
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = [
    "LOSS_METRICS",
    "private_mean_absolute_percentage_error",
    "private_mean_pinball_loss",
    "private_mean_poisson_deviance",
    "private_mean_squared_log_error",
]


@overload
def private_mean_absolute_percentage_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Literal["raw_values"],
    **options: Unpack[CappedOptions],
) -> Floats: ...
@overload
def private_mean_absolute_percentage_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[CappedOptions]
) -> float: ...
@documented
def private_mean_absolute_percentage_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: Literal["raw_values"] | Average = "uniform_average",
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float | Floats:
    """Mean absolute percentage error (MAPE) with epsilon-differential privacy for the test records.

    As in scikit-learn, targets nearer to 0 than 2.2e-16 count as that far from it: one target of 0 gives an
    enormous result. A public `max_loss`, such as 2 for 200 %, prevents that.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {max_loss}
    {sample_weight}
    {multioutput}
    {groups}
    {neighboring}
    {mechanism: pass `max_loss`}
    {accountant}
    {random_state}

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private error as a share: 1 is 100 %; finite, at least 0. An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_mae : Mean absolute error.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_mean_absolute_percentage_error
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mape = private_mean_absolute_percentage_error(y_true, y_pred, epsilon=1.0, max_loss=2)
    >>> 0.1 < mape < 0.6  # exactly 0.327
    True
    """
    release = Release(
        "private_mean_absolute_percentage_error",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    return mean_error(
        release,
        _losses.absolute_percentage_error,
        y_true,
        y_pred,
        max_loss=max_loss,
        sample_weight=sample_weight,
        multioutput=multioutput,
        groups=groups,
    )


@overload
def private_mean_squared_log_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Literal["raw_values"],
    **options: Unpack[BoundedOptions],
) -> Floats: ...
@overload
def private_mean_squared_log_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[BoundedOptions]
) -> float: ...
@documented
def private_mean_squared_log_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: Literal["raw_values"] | Average = "uniform_average",
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float | Floats:
    """Mean squared logarithmic error with epsilon-differential privacy for the test records.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {bounds}
        The lower one must be above -1.
    {sample_weight}
    {multioutput}
    {groups}
    {neighboring}
    {mechanism: pass `bounds`}
    {accountant}
    {random_state}

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private mean squared logarithmic error; finite, at least 0. An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_mse : Mean squared error.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_mean_squared_log_error
    >>> y_true, y_pred = [3, 5, 2.5, 7] * 250, [2.5, 5, 4, 8] * 250
    >>> msle = private_mean_squared_log_error(y_true, y_pred, epsilon=1.0)
    >>> 0.02 < msle < 0.08  # exactly 0.04
    True
    """
    release = Release(
        "private_mean_squared_log_error",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    return mean_error(
        release,
        _losses.squared_log_error,
        y_true,
        y_pred,
        bounds=_check_log_bounds(bounds),
        check=_check_above_minus_one,
        sample_weight=sample_weight,
        multioutput=multioutput,
        groups=groups,
    )


@overload
def private_mean_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Literal["raw_values"],
    **options: Unpack[PinballOptions],
) -> Floats: ...
@overload
def private_mean_pinball_loss(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[PinballOptions]
) -> float: ...
@documented
def private_mean_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    alpha: float = 0.5,
    sample_weight: ArrayLike | None = None,
    multioutput: Literal["raw_values"] | Average = "uniform_average",
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float | Floats:
    """Pinball (quantile) loss with epsilon-differential privacy for the test records.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {bounds}
    alpha : float, default=0.5
        The quantile that the predictions are meant for, in [0, 1]; 0.5 gives half the mean absolute error.
    {sample_weight}
    {multioutput}
    {groups}
    {neighboring}
    {mechanism: pass `bounds`}
    {accountant}
    {random_state}

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private pinball loss; finite, at least 0. An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_mae : Mean absolute error.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_mean_pinball_loss
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> loss = private_mean_pinball_loss(y_true, y_pred, epsilon=1.0, alpha=0.1)
    >>> 0.2 < loss < 0.6  # exactly 0.35
    True
    """
    release = Release(
        "private_mean_pinball_loss",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    return mean_error(
        release,
        partial(_losses.pinball_loss, alpha=_check_alpha(alpha)),
        y_true,
        y_pred,
        bounds=bounds,
        sample_weight=sample_weight,
        multioutput=multioutput,
        groups=groups,
    )


@documented
def private_mean_poisson_deviance(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Mean Poisson deviance with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True targets, at least 0.
    y_pred : array-like of shape (n_samples,)
        Predictions, above 0, of a model that was not trained on these records.
    {epsilon}
    {max_loss}
    {sample_weight}
    {groups}
    {neighboring}
    {mechanism: pass `max_loss`}
    {accountant}
    {random_state}

    Returns
    -------
    float
        The private mean Poisson deviance; finite, at least 0.

    {raises}

    See Also
    --------
    private_mse : Mean squared error.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_mean_poisson_deviance
    >>> y_true, y_pred = [2, 0, 1, 4] * 250, [0.5, 0.5, 2., 2.] * 250
    >>> deviance = private_mean_poisson_deviance(y_true, y_pred, epsilon=1.0)
    >>> 0.8 < deviance < 2.2  # exactly 1.4260
    True
    """
    release = Release(
        "private_mean_poisson_deviance",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    deviance = mean_error(
        release,
        _losses.poisson_deviance,
        y_true,
        y_pred,
        max_loss=max_loss,
        check=_check_counts,
        sample_weight=sample_weight,
        groups=groups,
        several=False,
    )
    return float(deviance)


def _check_above_minus_one(y_true: Floats, y_pred: Floats) -> None:
    if (y_true <= -1).any() or (y_pred <= -1).any():
        raise ValueError(
            "Mean Squared Logarithmic Error cannot be used when targets contain values less than or equal "
            "to -1."
        )


def _check_log_bounds(bounds: Any) -> tuple[float, float] | None:
    limits = check_bounds(bounds)
    if limits is not None and limits[0] <= -1:
        raise ValueError("The lower one of bounds must be above -1.")
    return limits


def _check_counts(y_true: Floats, y_pred: Floats) -> None:
    if (y_true < 0).any() or (y_pred <= 0).any():
        raise ValueError(
            "Mean Tweedie deviance error with power=1 can only be used on non-negative y and strictly "
            "positive y_pred."
        )


def _check_alpha(alpha: Any) -> float:
    value = float(alpha) if isinstance(alpha, numbers.Real) and not isinstance(alpha, bool) else -1.0
    if not 0 <= value <= 1:
        raise ValueError("alpha must be a number in [0, 1].")
    return value


def _squared_log_query(
    y_true: ArrayLike, y_pred: ArrayLike, *, bounds: Any = None, **options: Any
) -> MeanLoss:
    options |= {"bounds": _check_log_bounds(bounds), "check": _check_above_minus_one}
    return error_query(_losses.squared_log_error, y_true, y_pred, **options)


def _pinball_query(y_true: ArrayLike, y_pred: ArrayLike, *, alpha: Any = 0.5, **options: Any) -> MeanLoss:
    kernel = partial(_losses.pinball_loss, alpha=_check_alpha(alpha))
    return error_query(kernel, y_true, y_pred, **options)


LOSS_METRICS = {
    "private_mean_absolute_percentage_error": LossMetric(
        partial(error_query, _losses.absolute_percentage_error)
    ),
    "private_mean_squared_log_error": LossMetric(_squared_log_query),
    "private_mean_pinball_loss": LossMetric(_pinball_query),
    "private_mean_poisson_deviance": LossMetric(
        partial(error_query, _losses.poisson_deviance, check=_check_counts, several=False)
    ),
}
"""How each metric follows from a mean loss, for summaries."""
