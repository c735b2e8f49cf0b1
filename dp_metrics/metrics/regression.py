"""Errors and losses of a regression, and R^2, as in `sklearn.metrics`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs import arrays, losses, options
from dp_metrics.inputs.arrays import Shape
from dp_metrics.inputs.losses import Loss, RecordLoss
from dp_metrics.inputs.options import Floats, MultiOutput
from dp_metrics.mechanisms._base import NO_RATIO
from dp_metrics.mechanisms._laws import Limits
from dp_metrics.metrics._metric import UNIT, asks, private
from dp_metrics.metrics._settings import Bounds, ErrorSettings, MeanSettings, OrderSettings, RankSettings
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.quantities.ranks import OrderOf
from dp_metrics.quantities.variance import VarianceOf
from dp_metrics.release.query import Query
from dp_metrics.release.released import usual_bias
from dp_metrics.release.result import AnyResult, Monotone, ReleasedNumbers, nothing_known

OutputWeights: TypeAlias = Literal["raw_values"] | Floats | None
Check: TypeAlias = Callable[[Floats, Floats], None]


def error_query(
    loss: Loss,
    shape: Shape,
    *,
    bounds: Any = None,
    multioutput: Any = "uniform_average",
    max_loss: Any = None,
    check: Check | None = None,
    several: bool = True,
    function: Callable[[float], float] | None = None,
) -> Query:
    """Return the query of the mean of a loss, averaged over the outputs, or with "raw_values" of each output.

    Parameters
    ----------
    loss : callable
        Loss of blocks of targets and predictions, record by record and output by output.
    shape : Shape
        Of the targets and the predictions.
    bounds, multioutput, max_loss
        As the caller got them.
    check : callable or None, default=None
        Raises for blocks of targets and predictions outside the loss's domain, one record at a time.
    several : bool, default=True
        Whether more than one output is allowed.
    function : callable or None, default=None
        Made of the mean of each output, before these are averaged: each is released.
    """
    columns, weights, form = _outputs(shape, multioutput)
    if len(columns) > 1 and not several:
        raise ValueError("y_true and y_pred should be 1d arrays.")
    of_record = record_loss(loss, bounds, max_loss, check)
    if function is not None or isinstance(weights, str):
        of_each = partial(_of_each, output_weights=weights, function=function or float)
        parts = tuple(MeanOf(of_record, column) for column in columns)
        return Query(parts, reading=Monotone(of_each), **form)
    return Query((MeanOf(replace(of_record, output_weights=weights)),), form["reader"])


def r2_from_parts(error: float, variance: float) -> float:
    """Return 1 - error / variance, always finite."""
    if variance == 0:
        return 1.0 if error == 0 else 0.0
    # Python divides floats without a warning; what overflows is infinite
    return max(1.0 - error / variance, -options.MAX_FLOAT)


def _of_each(
    released: ReleasedNumbers, output_weights: OutputWeights, function: Callable[[float], float]
) -> Any:
    """Return a function of the number of each output, or the average."""
    return _combined([*map(function, released.values)], output_weights)


@dataclass(frozen=True)
class _Scores:
    """R^2 of each output from errors, which come first, and variances; averaged as the weights say."""

    output_weights: OutputWeights

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the scores, or their average."""
        k = len(released.values) // 2
        scores = map(r2_from_parts, released.values[:k], released.values[k:])
        return _combined([*scores], self.output_weights)

    note = staticmethod(nothing_known)  # of an error, or of a variance

    def bias(self, clipped: Sequence[float]) -> str | None:
        """Return which way the scores usually err: targets seldom have tails as heavy as errors."""
        return usual_bias(max(clipped[: len(clipped) // 2]), rises=False)

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return limits: with the largest errors and the smallest variances, and the other way round."""
        of_parts = [part.limits(miss / len(result.parts)) for part in result.parts]
        k = len(of_parts) // 2
        ends = [*map(_score_limits, of_parts[:k], of_parts[k:])]
        lower, upper = (_combined(of_each, self.output_weights) for of_each in zip(*ends, strict=True))
        is_missing = any(low <= -options.MAX_FLOAT for low, _ in ends)
        if is_missing and not isinstance(lower, np.ndarray):
            lower = -math.inf
        return Limits(lower, upper, NO_RATIO if is_missing else "")


def _score_limits(error: Limits, variance: Limits) -> tuple[float, float]:
    """Return limits of 1 - error / variance; where the variance is 0 that is 1 or 0 by definition."""
    may_vanish = variance.lower <= 0
    lower = -options.MAX_FLOAT if may_vanish else r2_from_parts(error.upper, variance.lower)
    upper = r2_from_parts(error.lower, variance.upper)
    return lower, max(upper, 0.0) if may_vanish else upper


def _outputs(shape: Shape, multioutput: Any) -> tuple[Sequence[int | None], OutputWeights, dict[str, Any]]:
    """Return the columns of the outputs, None for the only one, and their weights; and parts of a `Query`.

    These are its reader, and what it is to have as `unstated` if it has a part for each output.
    """
    outputs = shape.columns(1 if isinstance(multioutput, str) else max(np.size(multioutput), 1))
    weights, unstated = arrays.check_multioutput(multioutput, outputs), None
    if not isinstance(weights, np.ndarray):
        unstated = arrays.unstated_columns(shape, remedy="arrays, which have a shape")
    columns = range(outputs) if outputs > 1 else (None,)
    return columns, weights, {"reader": partial(arrays.targets, columns=outputs), "unstated": unstated}


def record_loss(loss: Loss, bounds: Any, max_loss: Any = None, check: Check | None = None) -> RecordLoss:
    """Return the loss of a record, within the public limits."""
    cap, limits = options.check_max_loss(max_loss), options.check_bounds(bounds)
    return RecordLoss(
        loss,
        reads=(partial(arrays.float_block, name="y_true"), partial(arrays.float_block, name="y_pred")),
        cap=cap if limits is None else losses.largest_error(loss, limits),
        bounds=limits,
        check=check,
    )


def _combined(values: Sequence[float], output_weights: OutputWeights) -> float | Floats:
    """Combine the released values of several outputs."""
    if isinstance(output_weights, str):
        return np.array(values)
    weights: list[float] = [1.0] * len(values) if output_weights is None else output_weights.tolist()
    total = options.sum_in_order(weights)
    mean = options.sum_in_order(
        value * (weight / total) for value, weight in zip(values, weights, strict=True)
    )
    return min(max(mean, -options.MAX_FLOAT), options.MAX_FLOAT)


@private("sklearn.metrics.mean_squared_error", greater_is_better=False, limit=UNIT)
def private_mse(y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[ErrorSettings]) -> float | Floats:
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
    return asks(error_query, losses.squared_error, **settings)


private_mean_squared_error = private_mse


@private("sklearn.metrics.root_mean_squared_error", greater_is_better=False, limit=UNIT)
def private_rmse(y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[ErrorSettings]) -> float | Floats:
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
    return asks(error_query, losses.squared_error, function=math.sqrt, **settings)


private_root_mean_squared_error = private_rmse


@private("sklearn.metrics.mean_absolute_error", greater_is_better=False, limit=UNIT)
def private_mae(y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[ErrorSettings]) -> float | Floats:
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
    return asks(error_query, losses.absolute_error, **settings)


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
    bounds: Bounds = None,
    multioutput: MultiOutput = "uniform_average",
    error_share: float = 0.5,
    **settings: Unpack[RankSettings],
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

    def query(shape: Shape) -> Query:
        share = options.check_share(error_share, "error_share")
        columns, weights, form = _outputs(shape, multioutput)
        of_record, k = record_loss(losses.squared_error, bounds), len(columns)
        errors = [MeanOf(of_record, column) for column in columns]
        variances = [VarianceOf(of_record.bounds, "y_true", column) for column in columns]
        return Query(
            (*errors, *variances),
            reading=_Scores(weights),
            shares=(share / k,) * k + ((1 - share) / k,) * k,
            **form,
        )

    return asks(query)


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
    max_loss: float | None = None,
    multioutput: MultiOutput = "uniform_average",
    **settings: Unpack[MeanSettings],
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
    return asks(error_query, losses.absolute_percentage_error, max_loss=max_loss, multioutput=multioutput)


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
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[ErrorSettings]
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
    limits = options.check_bounds(settings["bounds"])
    if limits is not None and limits[0] <= -1:
        raise ValueError("The lower one of bounds must be above -1.")
    return asks(error_query, losses.squared_log_error, check=_check_above_minus_one, **settings)


@private("sklearn.metrics.mean_pinball_loss", greater_is_better=False, limit=UNIT)
def private_mean_pinball_loss(
    y_true: ArrayLike, y_pred: ArrayLike, *, alpha: float = 0.5, **settings: Unpack[ErrorSettings]
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
    share = options.as_real(alpha)
    if not 0 <= share <= 1:
        raise ValueError("alpha must be a number in [0, 1].")
    loss = partial(losses.pinball_loss, alpha=share)
    return asks(error_query, loss, **settings)


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
    y_true: ArrayLike, y_pred: ArrayLike, *, max_loss: float | None = None, **settings: Unpack[MeanSettings]
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
    return asks(error_query, losses.poisson_deviance, max_loss=max_loss, check=_check_counts, several=False)


def quantile_rank(n: int, *, share: float = 0.5) -> int:
    """Return which of n values is a quantile, or the lower median, counted from 1; NumPy rounds alike."""
    return max(math.ceil(n * share - 1), 0) + 1


@private("sklearn.metrics.median_absolute_error", greater_is_better=False, mechanism="hazard", limit=UNIT)
def private_median_absolute_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, bounds: Bounds = None, **settings: Unpack[OrderSettings]
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

    def query(shape: Shape) -> Query:
        errors = record_loss(losses.absolute_error, bounds)
        if all((one.columns or 1) > 1 for one in shape.arguments):
            raise ValueError("y_true and y_pred should be 1d arrays: release one median for each output.")
        return Query((OrderOf(errors, quantile_rank, errors.limit),), partial(arrays.targets, columns=1))

    return asks(query)
