"""Private statistics of one column of numbers, as in NumPy, and the mean of any loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.arrays import float_block, loss_block
from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.inputs.options import as_real, check_bounds, check_ddof, check_max_loss
from dp_metrics.inputs.readers import vector
from dp_metrics.inputs.shape import Shape
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import UNIT, WEIGHTS, Metric
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.parts.order_statistic import OrderOf
from dp_metrics.release.parts.variance import VarianceOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import Monotone, ReleasedNumbers
from dp_metrics.release.result import PrivateResult


def _column(x: Floats) -> tuple[Any, ...]:
    return (x,)


def _variance_plan(
    shape: Shape,
    *,
    bounds: Any,
    ddof: Any,
    of_variance: Callable[[float], float] = float,
) -> Plan:
    freedom, limits = check_ddof(ddof), check_bounds(bounds)
    if shape.n is not None and shape.n and not freedom < shape.n:
        raise ValueError("ddof must be smaller than the number of samples.")
    result = Monotone(partial(_with_freedom, ddof=freedom, of_variance=of_variance))
    return Plan((VarianceOf(limits, "x"),), partial(vector, name="x"), result)


def _with_freedom(released: ReleasedNumbers, ddof: float, of_variance: Callable[[float], float]) -> float:
    """Return the metric of the variance with these delta degrees of freedom; with any, n is public."""
    variance, n = released.values[0], released.public_n
    if ddof:
        assert n is not None
        variance = min(variance * (n / (n - ddof)), MAX_FLOAT)
    return of_variance(variance)


VARIANCE = Metric(
    name="private_variance",
    exact_function="numpy.var",
    plan=_variance_plan,
    data=("x",),
    options={"bounds": None, "ddof": 0},
    discloses_n={"ddof": False},
    limit=UNIT,
    from_unit=_column,
)


def private_variance(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
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
        unbounded. Never read it from the data; how much it clips is private, so nothing warns of a range that
        is too narrow. If a few values reach it and make most of the result, see `mechanism`.
    ddof : float, default=0
        Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
        Must be below the public n.
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
    float
        The private variance; finite, at least 0.
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
    private_std : Its square root.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 4 and Appendix C.

    Examples
    --------
    >>> from dp_metrics import private_variance
    >>> variance = private_variance(range(1000), epsilon=2.0)
    >>> 60_000 < variance < 120_000  # exactly 83,333.25
    True
    """
    result: PrivateResult[float] = VARIANCE.release(
        x=x, epsilon=epsilon, bounds=bounds, ddof=ddof, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


STD = Metric(
    name="private_std",
    exact_function="numpy.std",
    plan=partial(_variance_plan, of_variance=math.sqrt),
    data=("x",),
    options={"bounds": None, "ddof": 0},
    discloses_n={"ddof": False},
    limit=UNIT,
    from_unit=_column,
)


def private_std(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Return the standard deviation with epsilon-differential privacy: the root of a private variance.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        One finite number per record.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of the values, in their units; values are clipped into it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns of a range that
        is too narrow. If a few values reach it and make most of the result, see `mechanism`.
    ddof : float, default=0
        Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
        Must be below the public n.
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
    float
        The private standard deviation; finite, at least 0.
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
    private_variance : Its square.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    This is the spread of the values, not the standard error of their mean, which is that divided by the
    square root of n. It is often too low, and far too low if a few values lie far from the rest: do not build
    intervals from it.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 4 and Appendix C.

    Examples
    --------
    >>> from dp_metrics import private_std
    >>> 240 < private_std(range(1000), epsilon=2.0) < 350  # exactly 288.7
    True
    """
    result: PrivateResult[float] = STD.release(
        x=x, epsilon=epsilon, bounds=bounds, ddof=ddof, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _mean_plan(shape: Shape, *, bounds: Any) -> Plan:
    limits = check_bounds(bounds)
    if limits is None:
        raise ValueError("bounds must be given: a mean has no output bounds without them.")
    low, high = limits
    above = partial(_above, low=low, high=high)
    record_loss = RecordLoss(above, reads=(partial(float_block, name="x"),), cap=_width(low, high))
    reader = partial(vector, name="x")
    return Plan((MeanOf(record_loss),), reader, Monotone(partial(_shifted, low=low, high=high)))


MEAN = Metric(
    name="private_mean",
    exact_function="numpy.average",
    plan=_mean_plan,
    data=("x",),
    options={"bounds": None, **WEIGHTS},
    required=UNIT,
    mechanism="geometric",
    from_unit=_column,
)


def private_mean(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Mean of numbers with public bounds, with epsilon-differential privacy.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        One finite number per record.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float
        Public range (lower, upper) of the values, in their units; values are clipped into it. Required: a
        mean of numbers of both signs has no output bounds without it. Never read it from the data.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="geometric"
        "geometric" is the most accurate for a result that is as likely near one end of its range as near the
        other. The others are those of `private_mae`.
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
        The private mean, within the bounds. With neighboring="add_or_remove_one" the mean of no records at
        all is the lower bound.
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
    private_mean_loss : Mean of non-negative numbers without a limit.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.1 (linearly separable functions).

    Examples
    --------
    >>> from dp_metrics import private_mean
    >>> 39 < private_mean([38, 41, 43] * 200, epsilon=1.0, bounds=(0, 120)) < 42.5  # exactly 40.7
    True
    """
    result: PrivateResult[float] = MEAN.release(
        x=x, epsilon=epsilon, bounds=bounds, sample_weight=sample_weight, groups=groups,
        neighboring=neighboring, mechanism=mechanism, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _mean_loss_plan(shape: Shape, *, max_loss: Any) -> Plan:
    record_loss = RecordLoss(identity, reads=(loss_block,), cap=check_max_loss(max_loss))
    return Plan((MeanOf(record_loss),), partial(vector, name="losses"))


MEAN_LOSS = Metric(
    name="private_mean_loss",
    exact_function="numpy.mean",
    plan=_mean_loss_plan,
    data=("losses",),
    options={"max_loss": None, **WEIGHTS},
    limit={"max_loss": 1.0},
    from_unit=lambda x: (x,),
)


def private_mean_loss(
    losses: ArrayLike,
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
    """Mean of any non-negative per-record loss with epsilon-differential privacy.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per record, each computed from its own record and public numbers only.
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
        The private mean loss; finite, at least 0.
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

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Appendix D.1 (linearly separable functions).

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
    result: PrivateResult[float] = MEAN_LOSS.release(
        losses=losses, epsilon=epsilon, max_loss=max_loss, sample_weight=sample_weight, groups=groups,
        neighboring=neighboring, mechanism=mechanism, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _quantile_plan(shape: Shape, *, q: Any, bounds: Any) -> Plan:
    low, high = _half_open_bounds(bounds)
    share = as_real(q)
    if not 0 <= share <= 1:
        raise ValueError("Quantiles must be in the range [0, 1].")
    values = partial(_read_above, low=low, high=high)
    part = OrderOf(values, partial(_rank, share=share), _width(low, high))
    reader = partial(vector, name="x")
    return Plan((part,), reader, Monotone(partial(_shifted, low=low, high=high)))


def _rank(n: int, *, share: float) -> int:
    """Return which of n values is a quantile, counted from 1; NumPy rounds the same way."""
    return max(math.ceil(n * share - 1), 0) + 1


def _read_above(x: NDArray[Any], *, low: float, high: float) -> Floats:
    return _above(float_block(x, "x"), low, high)


QUANTILE = Metric(
    name="private_quantile",
    exact_function="numpy.quantile",
    plan=_quantile_plan,
    data=("x",),
    options={"q": None, "bounds": None},
    required={"q": 0.5, "bounds": (0, None)},
    mechanism="hazard",
    limit=UNIT,
    from_unit=_column,
)


def private_quantile(
    x: ArrayLike,
    q: float,
    *,
    epsilon: float,
    bounds: tuple[float, float | None],
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> float:
    """Quantile of numbers with a public lower bound, with epsilon-differential privacy.

    The k-th smallest of n values, k = ceil(q n): `numpy.quantile` with ``method="inverted_cdf"``.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        One finite number per record.
    q : float
        Which quantile, in [0, 1].
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float
        Public range (lower, upper) of the values, in their units; values are clipped into it. The upper one
        may be None or infinite: unbounded above. Never read it from the data.
    mechanism : str or mechanism object, default="hazard"
        "hazard" or "above_threshold"; with a public limit (pass an upper bound) also "geometric",
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
        The private quantile; finite, within the bounds.
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

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public.

    The result is more precise near the lower bound than far above it. With q = 0 or 1 a single record
    decides, so the result is hardly ever close.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 3.

    Examples
    --------
    >>> from dp_metrics import private_quantile
    >>> median = private_quantile(range(1001), 0.5, epsilon=2.0, bounds=(0, None))
    >>> 440 < median < 560  # exactly 500
    True
    """
    result: PrivateResult[float] = QUANTILE.release(
        x=x, q=q, epsilon=epsilon, bounds=bounds, mechanism=mechanism, accountant=accountant,
        random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _shifted(released: ReleasedNumbers, low: float, high: float) -> float:
    """Return what was released above the public lower bound."""
    return float(min(low + released.values[0], high))


def _above(values: NDArray[np.float64], low: float, high: float) -> Floats:
    """Return how far each value lies above the lower bound, rounded."""
    return np.minimum(np.clip(values, low, high) - low, MAX_FLOAT)


def _width(low: float, high: float) -> float:
    """Return the largest number that `_above` gives."""
    return min(high - low, MAX_FLOAT)


def _half_open_bounds(bounds: Any) -> tuple[float, float]:
    """Return public bounds; the upper one may be None or infinite."""
    if isinstance(bounds, tuple | list) and len(bounds) == 2 and bounds[1] in (None, math.inf):
        bounds = (bounds[0], MAX_FLOAT)
    limits = check_bounds(bounds)
    if limits is None:
        raise ValueError("bounds must be given: a quantile needs a public lower bound.")
    return limits
