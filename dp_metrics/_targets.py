"""What the regression metrics share: from targets and predictions to one number, or one per output."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._options import check_groups, check_multioutput, check_sample_weight
from dp_metrics._queries import MeanLoss, Variance
from dp_metrics._release import Release
from dp_metrics._validation import MAX_FLOAT, as_targets, check_bounds, check_max_loss, float_block
from dp_metrics.losses import (
    FINITE_FOR_FINITE_ONLY,
    Kernel,
    averaged,
    largest_error,
    squared_error,
    within,
)

__all__ = ["error_query", "mean_error", "r2_from_parts", "r2_score", "root_mean_error"]

Floats = NDArray[np.float64]
Rule = Literal["raw_values"] | Floats | None
Check = Callable[[Floats, Floats], None]


def error_query(
    kernel: Kernel,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    private_n: bool,
    bounds: Any = None,
    max_loss: Any = None,
    sample_weight: ArrayLike | None = None,
    multioutput: Any = "uniform_average",
    groups: ArrayLike | None = None,
    check: Check | None = None,
    several: bool = True,
) -> MeanLoss:
    """Return the mean of a loss of targets and predictions, averaged over the outputs, as a query.

    Parameters
    ----------
    kernel : callable
        Loss of blocks of targets and predictions, record by record and output by output.
    y_true, y_pred, bounds, max_loss, sample_weight, multioutput, groups
        As the caller got them.
    private_n : bool
        Whether the number of records is private.
    check : callable or None, default=None
        Raises for blocks of targets and predictions outside the loss's domain, one record at a time.
    several : bool, default=True
        Whether more than one output is allowed.
    """
    pairs = _Pairs(y_true, y_pred, private_n, bounds, multioutput, sample_weight, groups)
    if pairs.outputs > 1 and not several:
        raise ValueError("y_true and y_pred should be 1d arrays.")
    if isinstance(pairs.rule, str):
        raise ValueError("multioutput='raw_values' gives several numbers, and here is place for one.")
    kernel, cap = pairs.capped(kernel, max_loss, check)
    weights, codes = pairs.sample_weight, pairs.groups
    return MeanLoss(averaged(kernel, pairs.rule), (pairs.true, pairs.pred), cap, weights, codes)


def mean_error(
    release: Release,
    kernel: Kernel,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: Any = "uniform_average",
    max_loss: Any = None,
    check: Check | None = None,
    **options: Any,
) -> float | Floats:
    """Release the mean of a loss of targets and predictions, or with "raw_values" that of each output.

    Parameters
    ----------
    release : Release
        Public settings of the call.
    kernel, y_true, y_pred, multioutput, max_loss, check, **options
        As for `error_query`.
    """
    if isinstance(multioutput, str) and multioutput == "raw_values":
        pairs = _Pairs(y_true, y_pred, release.private_n, multioutput=multioutput, **options)
        return np.array(release.draw_all(pairs.each(*pairs.capped(kernel, max_loss, check))))
    options |= {"multioutput": multioutput, "max_loss": max_loss, "check": check}
    return release.draw(error_query(kernel, y_true, y_pred, private_n=release.private_n, **options))


def root_mean_error(
    release: Release, kernel: Kernel, y_true: ArrayLike, y_pred: ArrayLike, **options: Any
) -> float | Floats:
    """Release the root of the mean loss of each output, and average the roots."""
    pairs = _Pairs(y_true, y_pred, release.private_n, **options)
    values = release.draw_all(pairs.each(*pairs.capped(kernel)))
    return _combine([math.sqrt(value) for value in values], pairs.rule)


def r2_score(
    release: Release, y_true: ArrayLike, y_pred: ArrayLike, *, error_share: Fraction, **options: Any
) -> float | Floats:
    """Release R^2 of each output, from a mean squared error and a variance, and average them."""
    pairs = _Pairs(y_true, y_pred, release.private_n, **options)
    errors = pairs.each(*pairs.capped(squared_error))
    variances = [Variance(column, pairs.bounds, "y_true") for column in _columns(pairs.true)]
    k = pairs.outputs
    shares = [error_share / k] * k + [(1 - error_share) / k] * k
    values = release.draw_all([*errors, *variances], shares)
    return _combine([r2_from_parts(e, v) for e, v in zip(values[:k], values[k:], strict=True)], pairs.rule)


def r2_from_parts(error: float, variance: float) -> float:
    """Return 1 - error / variance, always finite."""
    if variance == 0:
        return 1.0 if error == 0 else 0.0
    # Python divides floats without a warning; what overflows is infinite
    return max(1.0 - error / variance, -MAX_FLOAT)


class _Pairs:
    """Targets and predictions, and the checked options about them."""

    def __init__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        private_n: bool,
        bounds: Any = None,
        multioutput: Any = "uniform_average",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        self.bounds = check_bounds(bounds)
        self.true, self.pred = as_targets(y_true, y_pred, private_n=private_n)
        self.outputs = 1 if self.true.ndim == 1 else self.true.shape[1]
        self.rule: Rule = check_multioutput(multioutput, self.outputs)
        self.sample_weight = check_sample_weight(sample_weight, self.true, self.pred, whole=not private_n)
        self.groups = check_groups(groups, self.true, self.pred)

    def capped(
        self, kernel: Kernel, max_loss: Any = None, check: Check | None = None
    ) -> tuple[Kernel, float | None]:
        """Return the loss of checked records within the bounds, and its public cap."""
        cap = check_max_loss(max_loss)
        if self.bounds is not None:
            cap = largest_error(kernel, self.bounds)
        return _target_loss(kernel, self.bounds, check), cap

    def each(self, kernel: Kernel, cap: float | None) -> list[MeanLoss]:
        """Return one query per output."""
        return [
            MeanLoss(kernel, columns, cap, self.sample_weight, self.groups)
            for columns in zip(_columns(self.true), _columns(self.pred), strict=True)
        ]


def _target_loss(kernel: Kernel, bounds: tuple[float, float] | None, check: Check | None) -> Kernel:
    """Return the loss of blocks of targets and predictions, which it checks and clips into the bounds."""
    inner = within(kernel, bounds)
    tells = bounds is None and kernel in FINITE_FOR_FINITE_ONLY

    def loss(true: NDArray[Any], pred: NDArray[Any]) -> Floats:
        if tells:
            losses = kernel(np.ascontiguousarray(true, np.float64), np.ascontiguousarray(pred, np.float64))
            if math.isfinite(losses.max(initial=0.0)):
                return losses
        true, pred = float_block(true, "y_true"), float_block(pred, "y_pred")
        if check is not None:
            check(true, pred)
        return inner(true, pred)

    return loss


def _columns(array: NDArray[Any]) -> list[NDArray[Any]]:
    return [array] if array.ndim == 1 else list(array.T)


def _combine(values: Sequence[float], rule: Rule) -> float | Floats:
    """Combine the released values of several outputs."""
    if isinstance(rule, str):
        return np.array(values)
    weights: list[float] = [1.0] * len(values) if rule is None else rule.tolist()
    total = sum(weights)
    mean: float = sum(value * (weight / total) for value, weight in zip(values, weights, strict=True))
    return min(max(mean, -MAX_FLOAT), MAX_FLOAT)
