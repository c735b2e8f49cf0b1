"""Private regression metrics, drop-in replacements for those of `sklearn.metrics`."""

import math
from functools import partial
from typing import Any, Literal, Unpack, overload

from numpy.typing import ArrayLike

from dp_metrics import losses as _losses
from dp_metrics._docs import documented
from dp_metrics._options import check_groups, check_sample_weight, check_share
from dp_metrics._queries import LossMetric, MeanLoss
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._targets import error_query, mean_error, r2_score, root_mean_error
from dp_metrics._typing import Average, BoundedOptions, Floats, R2Options
from dp_metrics._validation import as_vector, check_max_loss, loss_block
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = [
    "LOSS_METRICS",
    "private_mae",
    "private_mean_loss",
    "private_mse",
    "private_r2_score",
    "private_rmse",
]


@overload
def private_mse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Literal["raw_values"],
    **options: Unpack[BoundedOptions],
) -> Floats: ...
@overload
def private_mse(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[BoundedOptions]
) -> float: ...
@documented
def private_mse(
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
    """Mean squared error with epsilon-differential privacy for the test records.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {bounds}
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
        The private mean squared error; finite, at least 0. An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_rmse : Its square root.
    private_mean_loss : Mean of any non-negative loss.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Section 5.2 and Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_mse
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mse = private_mse(y_true, y_pred, epsilon=1.0)
    >>> 0.2 < mse < 0.7  # exactly 0.375
    True
    """
    release = Release(
        "private_mse",
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
        _losses.squared_error,
        y_true,
        y_pred,
        bounds=bounds,
        sample_weight=sample_weight,
        multioutput=multioutput,
        groups=groups,
    )


@overload
def private_rmse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Literal["raw_values"],
    **options: Unpack[BoundedOptions],
) -> Floats: ...
@overload
def private_rmse(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[BoundedOptions]
) -> float: ...
@documented
def private_rmse(
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
    """Root mean squared error with epsilon-differential privacy for the test records.

    The square root of a private mean squared error, which costs nothing more. scikit-learn averages the roots
    of several outputs, so each output is released, at an equal part of epsilon.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {bounds}
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
        The private root mean squared error; finite, at least 0. An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_mse : The mean squared error itself.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Section 5.2 and Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_rmse
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> rmse = private_rmse(y_true, y_pred, epsilon=1.0)
    >>> 0.4 < rmse < 0.85  # exactly 0.612
    True
    """
    release = Release(
        "private_rmse",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    return root_mean_error(
        release,
        _losses.squared_error,
        y_true,
        y_pred,
        bounds=bounds,
        sample_weight=sample_weight,
        multioutput=multioutput,
        groups=groups,
    )


@overload
def private_mae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Literal["raw_values"],
    **options: Unpack[BoundedOptions],
) -> Floats: ...
@overload
def private_mae(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[BoundedOptions]
) -> float: ...
@documented
def private_mae(
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
    """Mean absolute error with epsilon-differential privacy for the test records.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {bounds}
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
        The private mean absolute error; finite, at least 0. An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_mse : Mean squared error.
    private_mean_loss : Mean of any non-negative loss.

    Notes
    -----
    {guarantee_groups}

    References
    ----------
    {paper: Section 5.2 and Appendix D}

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> y_true, y_pred = [3, -0.5, 2, 7] * 250, [2.5, 0.0, 2, 8] * 250
    >>> mae = private_mae(y_true, y_pred, epsilon=1.0)
    >>> 0.3 < mae < 0.8  # exactly 0.5
    True
    """
    release = Release(
        "private_mae",
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
        _losses.absolute_error,
        y_true,
        y_pred,
        bounds=bounds,
        sample_weight=sample_weight,
        multioutput=multioutput,
        groups=groups,
    )


@overload
def private_r2_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Literal["raw_values"], **options: Unpack[R2Options]
) -> Floats: ...
@overload
def private_r2_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, multioutput: Average = ..., **options: Unpack[R2Options]
) -> float: ...
@documented
def private_r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: None = None,
    multioutput: Literal["raw_values"] | Average = "uniform_average",
    error_share: float = 0.5,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float | Floats:
    """R^2, the coefficient of determination, with epsilon-differential privacy for the test records.

    1 - MSE / Var from a private mean squared error and a private variance of the targets, which share
    epsilon. With several outputs, each has an equal part of it.

    Parameters
    ----------
    {y_true}
    {y_pred}
    {epsilon}
    {bounds}
    sample_weight : None
        Refused: the variance of weighted targets has no output bounds here.
    {multioutput}
    error_share : float, default=0.5
        Share of epsilon for the mean squared error; the variance has the rest.
    {neighboring}
    {mechanism: pass `bounds`}
    {accountant}
    {random_state}

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private R^2: at most 1, finite. Where the private variance is 0, it is 1 if the private error is 0
        too and 0 otherwise (scikit-learn's `force_finite`). An array for "raw_values" only.

    {raises}

    See Also
    --------
    private_mse : Mean squared error.
    private_variance : Variance.

    Notes
    -----
    {guarantee_no_groups}

    References
    ----------
    {paper: Sections 4 and 5.2}

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_r2_score
    >>> y_true = np.linspace(0, 10, 1000)
    >>> r2 = private_r2_score(y_true, y_true + 1, epsilon=2.0, bounds=(0, 11))
    >>> 0.6 < r2 < 1  # exactly 0.88
    True
    """
    release = Release("private_r2_score", epsilon, mechanism, accountant, random_state, neighboring)
    if sample_weight is not None:
        raise ValueError("sample_weight cannot be used: a weighted variance has no private release here.")
    share = check_share(error_share, "error_share")
    return r2_score(release, y_true, y_pred, bounds=bounds, multioutput=multioutput, error_share=share)


@documented
def private_mean_loss(
    losses: ArrayLike,
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
    """Mean of any non-negative per-record loss with epsilon-differential privacy.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per record, each computed from its own record and public numbers only.
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
        The private mean loss; finite, at least 0.

    {raises}

    Notes
    -----
    {guarantee_groups}
    It holds if each loss depends on its own record only.

    References
    ----------
    {paper: Appendix D.1 (linearly separable functions)}

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
    release = Release(
        "private_mean_loss",
        epsilon,
        mechanism,
        accountant,
        random_state,
        neighboring,
        sample_weight=sample_weight,
        groups=groups,
    )
    query = _mean_loss_query(
        losses,
        private_n=release.private_n,
        max_loss=max_loss,
        sample_weight=sample_weight,
        groups=groups,
    )
    return release.draw(query)


def _mean_loss_query(
    losses: ArrayLike,
    *,
    private_n: bool,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    max_loss: Any = None,
) -> MeanLoss:
    cap = check_max_loss(max_loss)
    values = as_vector(losses, "losses", private_n=private_n)
    weights = check_sample_weight(sample_weight, values, whole=not private_n)
    codes = check_groups(groups, values)
    return MeanLoss(loss_block, (values,), cap, weights, codes)


def _root_query(y_true: ArrayLike, y_pred: ArrayLike, **options: Any) -> MeanLoss:
    # the mean of several roots is not the root of a mean
    return error_query(_losses.squared_error, y_true, y_pred, several=False, **options)


LOSS_METRICS = {
    "private_mse": LossMetric(partial(error_query, _losses.squared_error)),
    "private_mae": LossMetric(partial(error_query, _losses.absolute_error)),
    "private_rmse": LossMetric(_root_query, lambda mean, total_weight, options: math.sqrt(mean)),
    "private_mean_loss": LossMetric(_mean_loss_query),
}
"""How each metric follows from a mean loss, for summaries."""
