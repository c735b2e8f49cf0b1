"""Squared and absolute errors of a regression, and R^2, as in `sklearn.metrics`."""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import absolute_error, squared_error
from dp_metrics.inputs.options import MultiOutput
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import OUTPUTS, UNIT, Metric
from dp_metrics.metrics._multioutput import error_plan, r2_plan, root_plan
from dp_metrics.release.result import PrivateResult

MSE = Metric(
    name="private_mse",
    exact_function="sklearn.metrics.mean_squared_error",
    plan=partial(error_plan, squared_error),
    options={"bounds": None, **OUTPUTS},
    greater_is_better=False,
    limit=UNIT,
)


def private_mse(
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
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from the
        data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors are
        as large as it allows, and make most of the result, see `mechanism`.
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
        The private mean squared error; finite, at least 0. An array for "raw_values" only.
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
    private_rmse : Its square root.
    private_mean_loss : Mean of any non-negative loss.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = MSE.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, sample_weight=sample_weight,
        multioutput=multioutput, groups=groups, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


private_mean_squared_error = private_mse


RMSE = Metric(
    name="private_rmse",
    exact_function="sklearn.metrics.root_mean_squared_error",
    plan=partial(root_plan, squared_error),
    options={"bounds": None, **OUTPUTS},
    greater_is_better=False,
    limit=UNIT,
)


def private_rmse(
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
    """Root mean squared error with epsilon-differential privacy for the test records.

    The square root of a private mean squared error, which costs nothing more. scikit-learn averages the roots
    of several outputs, so each output is released, at an equal part of epsilon.

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
        The private root mean squared error; finite, at least 0. An array for "raw_values" only.
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
    private_mse : The mean squared error itself.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = RMSE.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, sample_weight=sample_weight,
        multioutput=multioutput, groups=groups, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


private_root_mean_squared_error = private_rmse


MAE = Metric(
    name="private_mae",
    exact_function="sklearn.metrics.mean_absolute_error",
    plan=partial(error_plan, absolute_error),
    options={"bounds": None, **OUTPUTS},
    greater_is_better=False,
    limit=UNIT,
)


def private_mae(
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
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from the
        data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors are
        as large as it allows, and make most of the result, see `mechanism`.
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
        The private mean absolute error; finite, at least 0. An array for "raw_values" only.
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
    private_mean_loss : Mean of any non-negative loss.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[float | Floats] = MAE.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, sample_weight=sample_weight,
        multioutput=multioutput, groups=groups, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


private_mean_absolute_error = private_mae


R2 = Metric(
    name="private_r2_score",
    exact_function="sklearn.metrics.r2_score",
    plan=r2_plan,
    options={
        "bounds": None,
        "multioutput": "uniform_average",
        "error_share": 0.5,
    },
    greater_is_better=True,
    refused={"sample_weight": "a weighted variance has no private release here"},
    limit=UNIT,
    from_unit=lambda x: (x, 0 * x),
)


def private_r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: None = None,
    multioutput: MultiOutput = "uniform_average",
    error_share: float = 0.5,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float | Floats:
    """R^2, the coefficient of determination, with epsilon-differential privacy for the test records.

    1 - MSE / Var from a private mean squared error and a private variance of the targets, which share
    epsilon. With several outputs, each has an equal part of it.

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
    sample_weight : None, default=None
        Refused: the variance of weighted targets has no output bounds here.
    multioutput : {"uniform_average", "raw_values"} or array-like, default="uniform_average"
        How several outputs make one number: their mean, or a mean with public, non-negative weights, one for
        each output. "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's
        "variance_weighted" is refused, because those weights are private. Where the number of records is
        private, empty lists are one output: an array of shape (0, n_outputs) tells more.
    error_share : float, default=0.5
        Share of epsilon for the mean squared error; the variance has the rest.
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
        The private R^2: at most 1, finite. Where the private variance is 0, it is 1 if the private error is 0
        too and 0 otherwise (scikit-learn's `force_finite`). An array for "raw_values" only.
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
    private_variance : Variance.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

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
    result: PrivateResult[float | Floats] = R2.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, sample_weight=sample_weight,
        multioutput=multioutput, error_share=error_share, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
