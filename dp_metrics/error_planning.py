"""What error to expect of a release, from public or synthetic data: nothing here keeps the data private."""

import math
import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics import losses as _losses
from dp_metrics._options import check_neighboring
from dp_metrics._queries import MeanLoss, Query, Variance
from dp_metrics._release import COUNT_SHARE
from dp_metrics._validation import (
    MAX_FLOAT,
    as_vector,
    check_bounds,
    check_max_loss,
    check_vector,
    loss_block,
)
from dp_metrics.mechanisms import Mechanism, exact_epsilon, get_mechanism, needs_count

__all__ = ["epsilon_for_error", "expected_error"]

_STATISTICS = ("mean_loss", "variance", "zero_one_loss")
_SMALLEST, _LARGEST = 1e-4, 1e4


def expected_error(
    data: ArrayLike,
    epsilon: float,
    *,
    statistic: str = "mean_loss",
    max_loss: float | None = None,
    bounds: tuple[float, float] | None = None,
    n: int | None = None,
    error_cap: float = 10.0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
) -> float:
    """Return, from public data only, the mean absolute error to expect of a release at an epsilon.

    Never use this on private data: the result is computed from the exact law of the release, and is not
    private. Give it public data, older data that may be shown, or synthetic data like the private ones.

    Parameters
    ----------
    data : array-like of shape (n_samples,)
        Losses, one for each record, if the statistic is their mean: squared errors for `private_mse`,
        absolute errors for `private_mae`, and so on. Values, if it is their variance. Zeros and ones (right
        and wrong), if it is the zero-one loss, which is 1 - accuracy.
    epsilon : float
        Privacy parameter of the release.
    statistic : {"mean_loss", "variance", "zero_one_loss"}, default="mean_loss"
        What would be released.
    max_loss : float or None, default=None
        Public cap of one loss, for the mean loss.
    bounds : tuple of float or None, default=None
        Public range of the values, for the variance.
    n : int or None, default=None
        Number of records to plan for; the data are repeated, or cut off, to so many. None: as they are.
    error_cap : float, default=10.0
        Single errors count as at most this multiple of the true value: without a public limit, rare and huge
        overshoots would otherwise rule the mean, which then says nothing.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        The neighbouring relation of the release.
    mechanism : str or mechanism object, default="hazard"
        As in the metric. The default of `private_zero_one_loss` is "geometric" if the number of records is
        public.

    Returns
    -------
    float
        Expected absolute error, in the units of the statistic.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    See Also
    --------
    epsilon_for_error : The other way round.

    Notes
    -----
    This gives no privacy guarantee at all. With neighboring="add_or_remove_one" the number of records, which
    the release itself estimates, is taken to be estimated without error.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import expected_error
    >>> public_errors = np.random.default_rng(0).exponential(size=2000)
    >>> expected_error(public_errors, epsilon=2.0) < expected_error(public_errors, epsilon=0.1) < 1
    True
    """
    plan = _Plan(data, statistic, max_loss, bounds, n, error_cap, neighboring, mechanism)
    return plan.error(epsilon)


def epsilon_for_error(
    data: ArrayLike,
    error: float,
    *,
    statistic: str = "mean_loss",
    max_loss: float | None = None,
    bounds: tuple[float, float] | None = None,
    n: int | None = None,
    error_cap: float = 10.0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "hazard",
) -> float:
    """Return, from public data only, the epsilon at which a release has a wanted mean absolute error.

    Never use this on private data: the result is computed from the exact law of the release, and is not
    private. Give it public data, older data that may be shown, or synthetic data like the private ones.

    Parameters
    ----------
    data : array-like of shape (n_samples,)
        As for `expected_error`.
    error : float
        Wanted expected absolute error, > 0, in the units of the statistic.
    statistic, max_loss, bounds, n, error_cap, neighboring, mechanism
        As for `expected_error`.

    Returns
    -------
    float
        An epsilon of three digits between 0.0001 and 10,000 whose expected error is at most the wanted one.
        It is the smallest, up to its last digit, if the error falls as epsilon grows.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, or no epsilon up to 10,000 is enough.

    See Also
    --------
    expected_error : The other way round.

    Notes
    -----
    This gives no privacy guarantee at all.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import epsilon_for_error, expected_error
    >>> public_errors = np.random.default_rng(0).exponential(size=2000)
    >>> epsilon = epsilon_for_error(public_errors, error=0.05)
    >>> expected_error(public_errors, epsilon) <= 0.05
    True
    """
    if isinstance(error, bool) or not isinstance(error, numbers.Real) or not 0 < float(error) < math.inf:
        raise ValueError("error must be a positive, finite number.")
    plan = _Plan(data, statistic, max_loss, bounds, n, error_cap, neighboring, mechanism)
    if plan.error(_SMALLEST) <= error:
        return _SMALLEST
    if plan.error(_LARGEST) > error:
        raise ValueError("No epsilon up to 10,000 has so small an expected error on these data.")
    low, high = math.log10(_SMALLEST), math.log10(_LARGEST)
    while high - low > 1e-3:
        middle = (low + high) / 2
        if plan.error(10.0**middle) <= error:
            high = middle
        else:
            low = middle
    epsilon = _three_digits_up(10.0**high)
    while plan.error(epsilon) > error:  # where the error does not fall everywhere
        epsilon = _three_digits_up(epsilon * 1.004)
    return epsilon


class _Plan:
    """The checked arguments of a plan."""

    def __init__(
        self,
        data: ArrayLike,
        statistic: str,
        max_loss: Any,
        bounds: Any,
        n: Any,
        error_cap: Any,
        neighboring: str,
        mechanism: str | Mechanism,
    ) -> None:
        if statistic not in _STATISTICS:
            raise ValueError(f"statistic must be one of {_STATISTICS}.")
        if n is not None and (isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1):
            raise ValueError("n must be None or a positive integer.")
        if isinstance(error_cap, bool) or not isinstance(error_cap, numbers.Real) or not float(error_cap) > 0:
            raise ValueError("error_cap must be a positive number.")
        self._private_n = check_neighboring(neighboring)
        self._mechanism = get_mechanism(mechanism)
        self._error_cap = float(error_cap)
        self._query = self._make_query(data, statistic, max_loss, bounds, n)

    def _make_query(self, data: ArrayLike, statistic: str, max_loss: Any, bounds: Any, n: Any) -> Query:
        cap, limits = check_max_loss(max_loss), check_bounds(bounds)
        if limits is not None and statistic != "variance":
            raise ValueError("bounds are for the variance; pass max_loss.")
        if cap is not None and statistic != "mean_loss":
            raise ValueError("max_loss is for the mean loss.")
        if statistic == "variance":
            values = check_vector(data, "data")
            return Variance(values if n is None else np.resize(values, n), limits)
        losses = loss_block(as_vector(data, "losses"))
        losses = losses if n is None else np.resize(losses, n)
        if statistic == "mean_loss":
            return MeanLoss(_losses.identity, (losses,), cap)
        if not np.isin(losses, (0.0, 1.0)).all():
            raise ValueError("The zero-one loss of a record is 0 or 1.")
        return MeanLoss(_losses.identity, (losses,), 1.0, counts=True)

    def error(self, epsilon: float) -> float:
        """Return the expected error at this epsilon."""
        exact = exact_epsilon(epsilon)
        if self._private_n and needs_count(self._mechanism):
            exact *= 1 - COUNT_SHARE
        output_bounds = self._query.output_bounds(self._mechanism, exact, private_n=self._private_n)
        if self._private_n:
            output_bounds = replace(output_bounds, n=max(self._query.n, 1))
        law = self._mechanism.output_distribution(output_bounds, exact)
        value, limit = output_bounds.value, output_bounds.output_range[1]
        if value == 0 and limit >= MAX_FLOAT:
            raise ValueError("The statistic of these data is 0, and so is error_cap times it: pass a limit.")
        return law.mean_absolute_error(value, min(self._error_cap * value, MAX_FLOAT) or limit)


def _three_digits_up(epsilon: float) -> float:
    digits = 2 - math.floor(math.log10(epsilon))
    return float(f"{math.ceil(epsilon * 10.0**digits - 1e-9)}e{-digits}")
