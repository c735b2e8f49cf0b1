"""What the regression metrics share: from targets and predictions of one or several outputs to a plan."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.floats import MAX_FLOAT, Floats, sum_in_order
from dp_metrics.inputs.losses import Loss, RecordLoss, largest_error, squared_error
from dp_metrics.inputs.options import check_bounds, check_max_loss, check_share
from dp_metrics.inputs.readers import check_multioutput, targets
from dp_metrics.inputs.shape import Records, Shape, check_same_columns, unstated_columns
from dp_metrics.mechanisms._base import NO_RATIO, Limits, Noise
from dp_metrics.release.bias import usual_bias
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.parts.variance import VarianceOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import Monotone, ReleasedNumbers

OutputWeights: TypeAlias = Literal["raw_values"] | Floats | None
Check: TypeAlias = Callable[[Floats, Floats], None]


def error_plan(
    loss: Loss,
    shape: Shape,
    *,
    max_loss: Any = None,
    check: Check | None = None,
    several: bool = True,
    **options: Any,
) -> Plan:
    """Return the plan of the mean of a loss, averaged over the outputs, or with "raw_values" of each output.

    Parameters
    ----------
    loss : callable
        Loss of blocks of targets and predictions, record by record and output by output.
    shape : Shape
        Of the targets and the predictions.
    max_loss
        As the caller got it.
    check : callable or None, default=None
        Raises for blocks of targets and predictions outside the loss's domain, one record at a time.
    several : bool, default=True
        Whether more than one output is allowed.
    **options
        As for `_Pairs`.
    """
    pairs = _Pairs.of(shape, **options)
    if pairs.outputs > 1 and not several:
        raise ValueError("y_true and y_pred should be 1d arrays.")
    record_loss = pairs.record_loss(loss, max_loss, check)
    if isinstance(pairs.output_weights, str):
        return Plan(pairs.each(record_loss), pairs.reader, Monotone(_each), unstated=pairs.unstated)
    return Plan((MeanOf(record_loss),), pairs.reader)


def root_plan(loss: Loss, shape: Shape, **options: Any) -> Plan:
    """Return the plan of the root of the mean loss of each output, and of the average of the roots."""
    pairs = _Pairs.of(shape, **options)
    roots = partial(_roots, output_weights=pairs.output_weights)
    return Plan(pairs.each(pairs.record_loss(loss)), pairs.reader, Monotone(roots), unstated=pairs.unstated)


def r2_plan(shape: Shape, *, error_share: Any, **options: Any) -> Plan:
    """Return the plan of R^2 of each output, from a mean squared error and a variance, averaged."""
    share = check_share(error_share, "error_share")
    pairs = _Pairs.of(shape, **options)
    k = pairs.outputs
    variances = [VarianceOf(pairs.bounds, "y_true", column) for column in pairs.columns]
    return Plan(
        (*pairs.each(pairs.record_loss(squared_error)), *variances),
        pairs.reader,
        _Scores(pairs.output_weights),
        shares=(share / k,) * k + ((1 - share) / k,) * k,
        unstated=pairs.unstated,
    )


def r2_from_parts(error: float, variance: float) -> float:
    """Return 1 - error / variance, always finite."""
    if variance == 0:
        return 1.0 if error == 0 else 0.0
    # Python divides floats without a warning; what overflows is infinite
    return max(1.0 - error / variance, -MAX_FLOAT)


def _each(released: ReleasedNumbers) -> Floats:
    return np.array(released.values)


def _roots(released: ReleasedNumbers, output_weights: OutputWeights) -> Any:
    return _combined([math.sqrt(value) for value in released.values], output_weights)


@dataclass(frozen=True)
class _Scores:
    """R^2 of each output from errors, which come first, and variances; averaged as the weights say."""

    output_weights: OutputWeights

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the scores, or their average."""
        k = len(released.values) // 2
        parts = zip(released.values[:k], released.values[k:], strict=True)
        return _combined([r2_from_parts(error, variance) for error, variance in parts], self.output_weights)

    def bias(self, released: ReleasedNumbers) -> str | None:
        """Return which way the scores usually err: targets seldom have tails as heavy as errors."""
        return usual_bias(max(released.clipped[: len(released.values) // 2]), rises=False)

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits: with the largest errors and the smallest variances, and the other way round."""
        of_parts = [part.limits(miss / len(parts)) for part in parts]
        k = len(parts) // 2
        ends = [_score_limits(*pair) for pair in zip(of_parts[:k], of_parts[k:], strict=True)]
        lower, upper = (_combined([end[side] for end in ends], self.output_weights) for side in (0, 1))
        missing = np.array([end[0] <= -MAX_FLOAT for end in ends])
        if not missing.any():
            return Limits(lower, upper)
        if isinstance(lower, np.ndarray):
            return Limits(np.where(missing, -np.inf, lower), upper, NO_RATIO)
        return Limits(-math.inf, upper, NO_RATIO)


def _score_limits(error: Limits, variance: Limits) -> tuple[float, float]:
    """Return limits of 1 - error / variance; where the variance is 0 that is 1 or 0 by definition."""
    may_vanish = variance.lower <= 0
    lower = -MAX_FLOAT if may_vanish else max(1 - error.upper / variance.lower, -MAX_FLOAT)
    if error.lower <= 0:
        return lower, 1.0
    upper = max(1 - error.lower / variance.upper if variance.upper > 0 else 0.0, -MAX_FLOAT)
    return lower, max(upper, 0.0) if may_vanish else upper


@dataclass(frozen=True)
class _Pairs:
    """The public form of targets and predictions, and the checked options about them.

    `unstated` is that of a `Plan` with a part for each output.
    """

    bounds: tuple[float, float] | None
    outputs: int
    output_weights: OutputWeights
    unstated: str | None
    reader: Callable[[Records], Records]

    @classmethod
    def of(cls, shape: Shape, *, bounds: Any = None, multioutput: Any = "uniform_average") -> Self:
        """Return the form and the options, or raise if one of them is invalid."""
        check_same_columns(*(one.names for one in shape.arguments))
        outputs = shape.columns(1 if isinstance(multioutput, str) else max(np.size(multioutput), 1))
        weights = check_multioutput(multioutput, outputs)
        unstated = None
        if not isinstance(weights, np.ndarray):
            unstated = unstated_columns(shape, remedy="arrays, which have a shape")
        reader = partial(targets, columns=outputs)
        return cls(check_bounds(bounds), outputs, weights, unstated, reader)

    def record_loss(self, loss: Loss, max_loss: Any = None, check: Check | None = None) -> RecordLoss:
        """Return the loss of a record, within the public limits."""
        cap = check_max_loss(max_loss)
        return RecordLoss(
            loss,
            reads=(partial(float_block, name="y_true"), partial(float_block, name="y_pred")),
            cap=cap if self.bounds is None else largest_error(loss, self.bounds),
            bounds=self.bounds,
            check=check,
            output_weights=None if isinstance(self.output_weights, str) else self.output_weights,
        )

    @property
    def columns(self) -> Sequence[int | None]:
        """The columns of the outputs; None for the only one, which has no columns."""
        return range(self.outputs) if self.outputs > 1 else (None,)

    def each(self, record_loss: RecordLoss) -> tuple[MeanOf, ...]:
        """Return one part per output."""
        return tuple(MeanOf(record_loss, column) for column in self.columns)


def _combined(values: Sequence[float], output_weights: OutputWeights) -> float | Floats:
    """Combine the released values of several outputs."""
    if isinstance(output_weights, str):
        return np.array(values)
    weights: list[float] = [1.0] * len(values) if output_weights is None else output_weights.tolist()
    total = sum_in_order(weights)
    mean = sum_in_order(value * (weight / total) for value, weight in zip(values, weights, strict=True))
    return min(max(mean, -MAX_FLOAT), MAX_FLOAT)
