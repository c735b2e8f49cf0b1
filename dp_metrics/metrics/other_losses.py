"""Relative, logarithmic, quantile and count losses of a regression, and its median error."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
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
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import OUTPUTS, UNIT, WEIGHTS, Metric
from dp_metrics.metrics._multioutput import error_plan
from dp_metrics.release.parts.order_statistic import OrderOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.result import PrivateResult

MAPE = Metric(
    name="private_mean_absolute_percentage_error",
    exact_function="sklearn.metrics.mean_absolute_percentage_error",
    plan=partial(error_plan, absolute_percentage_error),
    options={"max_loss": None, **OUTPUTS},
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
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
    """Mean absolute percentage error (MAPE) with epsilon-differential privacy for the test records.

    As in scikit-learn, targets nearer to 0 than 2.2e-16 count as that far from it: one target of 0 gives an
    enormous result. A public `max_loss`, such as 2 for 200 %, prevents that.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, finite.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    max_loss : float or None, default=None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns. If a few
        losses reach it and make most of the result, see `mechanism`.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    multioutput : {"uniform_average", "raw_values"} or array-like, default="uniform_average"
        How several outputs make one number: their mean, or a mean with public, non-negative weights, one for
        each output. "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's
        "variance_weighted" is refused, because those weights are private. Where the number of records is
        private, empty lists are one output: an array of shape (0, n_outputs) tells more.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="adaptive"
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit (pass `max_loss`) also "geometric", "inverse_sensitivity", "piecewise_laplace",
        "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you know beforehand that
        about 3 / epsilon to 60 / epsilon records reach the limit and make most of the result: the default may
        miss them, and err up to 100 times as much.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private error as a share: 1 is 100 %; finite, at least 0. An array for "raw_values" only.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_mae : Mean absolute error.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = MAPE.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, max_loss=max_loss, sample_weight=sample_weight,
        multioutput=multioutput, groups=groups, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _check_above_minus_one(y_true: Floats, y_pred: Floats) -> None:
    if (y_true <= -1).any() or (y_pred <= -1).any():
        raise ValueError(
            "Mean Squared Logarithmic Error cannot be used when targets contain values less than or equal "
            "to -1."
        )


def _squared_log_plan(shape: Shape, *, bounds: Any, **options: Any) -> Plan:
    limits = check_bounds(bounds)
    if limits is not None and limits[0] <= -1:
        raise ValueError("The lower one of bounds must be above -1.")
    check = _check_above_minus_one
    return error_plan(squared_log_error, shape, bounds=limits, check=check, **options)


MSLE = Metric(
    name="private_mean_squared_log_error",
    exact_function="sklearn.metrics.mean_squared_log_error",
    plan=_squared_log_plan,
    options={"bounds": None, **OUTPUTS},
    greater_is_better=False,
    limit=UNIT,
    lowest_prediction=math.nextafter(-1.0, 0.0),
)


def private_mean_squared_log_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: MultiOutput = "uniform_average",
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
    """Mean squared logarithmic error with epsilon-differential privacy for the test records.

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
        The lower one must be above -1.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    multioutput : {"uniform_average", "raw_values"} or array-like, default="uniform_average"
        How several outputs make one number: their mean, or a mean with public, non-negative weights, one for
        each output. "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's
        "variance_weighted" is refused, because those weights are private. Where the number of records is
        private, empty lists are one output: an array of shape (0, n_outputs) tells more.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="adaptive"
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit (pass `bounds`) also "geometric", "inverse_sensitivity", "piecewise_laplace",
        "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you know beforehand that
        about 3 / epsilon to 60 / epsilon records reach the limit and make most of the result: the default may
        miss them, and err up to 100 times as much.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private mean squared logarithmic error; finite, at least 0. An array for "raw_values" only.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_mse : Mean squared error.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = MSLE.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, sample_weight=sample_weight,
        multioutput=multioutput, groups=groups, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _pinball_plan(shape: Shape, *, alpha: Any, **options: Any) -> Plan:
    share = as_real(alpha)
    if not 0 <= share <= 1:
        raise ValueError("alpha must be a number in [0, 1].")
    return error_plan(partial(pinball_loss, alpha=share), shape, **options)


PINBALL = Metric(
    name="private_mean_pinball_loss",
    exact_function="sklearn.metrics.mean_pinball_loss",
    plan=_pinball_plan,
    options={"bounds": None, "alpha": 0.5, **OUTPUTS},
    greater_is_better=False,
    limit=UNIT,
)


def private_mean_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    alpha: float = 0.5,
    sample_weight: ArrayLike | None = None,
    multioutput: MultiOutput = "uniform_average",
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
    """Pinball (quantile) loss with epsilon-differential privacy for the test records.

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
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from the
        data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors are
        as large as it allows, and make most of the result, see `mechanism`.
    alpha : float, default=0.5
        The quantile that the predictions are meant for, in [0, 1]; 0.5 gives half the mean absolute error.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    multioutput : {"uniform_average", "raw_values"} or array-like, default="uniform_average"
        How several outputs make one number: their mean, or a mean with public, non-negative weights, one for
        each output. "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's
        "variance_weighted" is refused, because those weights are private. Where the number of records is
        private, empty lists are one output: an array of shape (0, n_outputs) tells more.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="adaptive"
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit (pass `bounds`) also "geometric", "inverse_sensitivity", "piecewise_laplace",
        "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you know beforehand that
        about 3 / epsilon to 60 / epsilon records reach the limit and make most of the result: the default may
        miss them, and err up to 100 times as much.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float or ndarray of shape (n_outputs,)
        The private pinball loss; finite, at least 0. An array for "raw_values" only.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_mae : Mean absolute error.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = PINBALL.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, alpha=alpha,
        sample_weight=sample_weight, multioutput=multioutput, groups=groups, neighboring=neighboring,
        mechanism=mechanism, accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _check_counts(y_true: Floats, y_pred: Floats) -> None:
    if (y_true < 0).any() or (y_pred <= 0).any():
        raise ValueError(
            "Mean Tweedie deviance error with power=1 can only be used on non-negative y and strictly "
            "positive y_pred."
        )


POISSON = Metric(
    name="private_mean_poisson_deviance",
    exact_function="sklearn.metrics.mean_poisson_deviance",
    plan=partial(error_plan, poisson_deviance, check=_check_counts, several=False),
    options={"max_loss": None, **WEIGHTS},
    greater_is_better=False,
    limit={"max_loss": 1.0},
    from_unit=lambda x: (np.zeros_like(x), x + 1e-9),
    # the least probability of scikit-learn's log loss is the same: the deviance of one record stays finite
    lowest_prediction=float(np.finfo(np.float64).eps),
)


def private_mean_poisson_deviance(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Mean Poisson deviance with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True targets, at least 0.
    y_pred : array-like of shape (n_samples,)
        Predictions, above 0, of a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    max_loss : float or None, default=None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns. If a few
        losses reach it and make most of the result, see `mechanism`.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="adaptive"
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit (pass `max_loss`) also "geometric", "inverse_sensitivity", "piecewise_laplace",
        "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you know beforehand that
        about 3 / epsilon to 60 / epsilon records reach the limit and make most of the result: the default may
        miss them, and err up to 100 times as much.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float
        The private mean Poisson deviance; finite, at least 0.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_mse : Mean squared error.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float] = POISSON.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, max_loss=max_loss, sample_weight=sample_weight,
        groups=groups, neighboring=neighboring, mechanism=mechanism, accountant=accountant,
        random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


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


MEDIAN_ABSOLUTE_ERROR = Metric(
    name="private_median_absolute_error",
    exact_function="sklearn.metrics.median_absolute_error",
    plan=_median_plan,
    options={"bounds": None},
    greater_is_better=False,
    mechanism="hazard",
    limit=UNIT,
)


def private_median_absolute_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
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
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from the
        data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors are
        as large as it allows, and make most of the result, see `mechanism`.
    mechanism : str or mechanism object, default="hazard"
        "hazard" or "above_threshold"; with a public limit (pass `bounds`) also "geometric",
        "inverse_sensitivity", "piecewise_laplace" or "laplace"; or an object such as
        `AboveThreshold.paper()`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    float
        The private median absolute error; finite, at least 0, in the units of the targets.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_quantile : Other quantiles, of any numbers.
    private_mae : Their mean.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public.

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
    result: PrivateResult[float] = MEDIAN_ABSOLUTE_ERROR.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
