"""Per-record losses and their public caps.

A loss is a function of its own record alone, made of elementwise ufuncs: a reduction or a matrix
product may give other bits to the same record in another batch, and then more than one rank would
change between neighbours. Finite records have a loss of at least 0, never NaN; one that overflows is
infinite, and whoever sums the losses clips them to the cap.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import MAX_FLOAT, Array, Codes, Floats, Range, limit_of, sum_in_order

Loss: TypeAlias = Callable[..., Floats]
"""Losses of blocks of checked records, record by record (and output by output)."""

Read: TypeAlias = Callable[[Array], Array]
"""Checks the contents of a block of records, and returns them in the type that the loss takes."""

_T = TypeVar("_T")

_TINY = sys.float_info.epsilon


@dataclass(frozen=True, eq=False)
class RecordLoss:
    """The loss of each record: a number from 0 to a public cap, from that record alone.

    Parameters
    ----------
    loss : callable
        Elementwise loss of blocks of records.
    reads : tuple of callable
        One for each array of the records.
    cap : float or None
        Public cap of the loss of one record, to which whoever sums the losses clips them.
    bounds : tuple of float or None
        Public bounds, to which all numbers of a record are clipped first.
    check : callable or None
        Raises for blocks with a record outside the domain of the loss.
    output_weights : ndarray or None
        Public weights of several outputs; None for their plain mean.
    """

    loss: Loss
    reads: tuple[Read, ...]
    cap: float | None = None
    bounds: Range | None = None
    check: Callable[..., None] | None = None
    output_weights: Floats | None = None

    def __call__(self, *blocks: Array) -> Floats:
        """Return the losses of blocks of records, one number each, not yet clipped to the cap."""
        return self.with_largest(*blocks)[0]

    def with_largest(self, *blocks: Array) -> tuple[Floats, float]:
        """Return the losses of blocks of records, not yet clipped to the cap, and the largest of them."""
        tell_all = self.bounds is None and self.loss in FINITE_FOR_FINITE_ONLY
        records = (
            [np.ascontiguousarray(block, np.float64) for block in blocks] if tell_all else self.read(*blocks)
        )
        losses, largest = with_largest(self.loss(*records))
        if tell_all and not math.isfinite(largest):
            self.read(*blocks)  # raises if a record is not finite; else a loss overflows
        if losses.ndim == 1:
            return losses, largest
        return with_largest(mean_over_outputs(losses, self.output_weights))

    @property
    def limit(self) -> float:
        """The cap, or the largest finite float without one."""
        return limit_of(self.cap)

    @property
    def may_be_heavy(self) -> bool:
        """Whether a few records may make up much of the mean even where errors have no extreme tail.

        Not where losses grow only as errors do: of these little is lost by clipping, whatever the tail is
        (``benchmarks/error_table.py``).
        """
        return getattr(self.loss, "func", self.loss) not in (absolute_error, pinball_loss)

    def read(self, *blocks: Array) -> list[Array]:
        """Return blocks of records, clipped to the bounds; raise for invalid ones."""
        records = [read(block) for read, block in zip(self.reads, blocks, strict=True)]
        if self.check is not None:
            self.check(*records)
        if self.bounds is not None:
            records = [np.clip(numbers, *self.bounds) for numbers in records]
        return records


def with_largest(losses: Floats) -> tuple[Floats, float]:
    """Return losses, which are at least 0 or NaN, and the largest of them: NaN if one is."""
    return losses, float(losses.max(initial=0.0))


def squared_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return (y_pred - y_true)**2."""
    difference = y_pred - y_true
    difference *= difference
    return difference


def absolute_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return |y_pred - y_true|."""
    return np.abs(y_pred - y_true)


FINITE_FOR_FINITE_ONLY = (squared_error, absolute_error)
"""Losses that are infinite or NaN wherever an argument is: if they are finite, so were the records."""


def pinball_loss(y_true: Floats, y_pred: Floats, *, alpha: float) -> Floats:
    """Return alpha (y_true - y_pred) where that is positive, (1 - alpha) (y_pred - y_true) elsewhere."""
    difference = np.clip(y_true - y_pred, -MAX_FLOAT, MAX_FLOAT)  # 0 times infinity would be NaN
    return np.where(difference >= 0, alpha * difference, (alpha - 1.0) * difference)


def absolute_percentage_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return |y_pred - y_true| / max(|y_true|, machine epsilon)."""
    return np.abs(y_pred - y_true) / np.maximum(np.abs(y_true), _TINY)


def squared_log_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return (log(1 + y_pred) - log(1 + y_true))**2."""
    return squared_error(np.log1p(y_true), np.log1p(y_pred))


def poisson_deviance(y_true: Floats, y_pred: Floats) -> Floats:
    """Return 2 (y_true log(y_true / y_pred) - y_true + y_pred), where 0 log 0 = 0."""
    # a quotient that underflows stays positive, or its logarithm would drown y_pred
    quotient = np.where(y_true > 0, np.maximum(y_true / y_pred, 5e-324), 1.0)
    logarithm = np.log(quotient)
    return np.maximum(2.0 * (y_true * logarithm - y_true + y_pred), 0.0)  # rounding may give a little less


def identity(given: _T) -> _T:
    """Return what is given: losses, or records that are read elsewhere, as they are."""
    return given


def zero_one_loss(differs: NDArray[np.bool_]) -> Floats:
    """Return 1 where a prediction differs from the truth in any of its outputs."""
    return differs.astype(np.float64)


def largest_error(loss: Loss, bounds: Range) -> float:
    """Return the public cap of a loss that grows with the distance of two numbers within the bounds."""
    low, high = (np.array([bound]) for bound in bounds)
    return float(clamp(np.maximum(loss(low, high), loss(high, low)), None)[0])


def log_loss(codes: Codes, probabilities: Floats, resolution: float) -> Floats:
    """Return the negative logarithm of the probability given to the true label.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Position of the true label.
    probabilities : ndarray of shape (n, n_columns)
        One column holds the probability of position 1.
    resolution : float
        Probabilities are clipped to [resolution, 1 - resolution], as in scikit-learn.
    """
    if probabilities.shape[1] == 1:
        column = probabilities[:, 0]
        of_true = np.where(codes == 1, column, 1.0 - column)
    else:
        of_true = np.take_along_axis(probabilities, codes[:, np.newaxis], axis=1)[:, 0]
    losses: Floats = -np.log(np.clip(of_true, resolution, 1.0 - resolution))
    return losses


def log_loss_cap(resolution: float, max_loss: float | None) -> float:
    """Return the public cap of one record's log loss: what the clipping implies, or max_loss if lower."""
    implied = float(-np.log(np.float64(resolution)))
    return implied if max_loss is None else min(implied, max_loss)


def brier_loss(codes: Codes, probabilities: Floats, half: bool) -> Floats:
    """Return the squared distance between the probabilities and the true label, or half of it.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Position of the true label.
    probabilities : ndarray of shape (n, n_columns)
        One column holds the probability of position 1, and the other has the rest.
    half : bool
        Whether to halve the distance.
    """
    if probabilities.shape[1] == 1:
        difference = probabilities[:, 0] - codes
        squares = difference * difference
        return squares if half else 2.0 * squares
    total = np.zeros(len(codes))
    for column in range(probabilities.shape[1]):
        difference = probabilities[:, column] - (codes == column)
        total += difference * difference
    return total / 2.0 if half else total


def mean_over_outputs(losses: Floats, weights: Floats | None = None) -> Floats:
    """Average the losses of several outputs of one record; shape (n, n_outputs) becomes (n,)."""
    # column by column: the order of the additions must not depend on the size of the batch
    if weights is None:
        mean: Floats = reduce(np.add, losses.T) / losses.shape[1]
        return mean
    share = weights / sum_in_order(weights.tolist())
    losses = np.minimum(losses, MAX_FLOAT)  # an infinite loss times a weight of 0 is 0
    return reduce(np.add, (column * part for column, part in zip(losses.T, share, strict=True)))


def clamp(losses: Floats, cap: float | None) -> Floats:
    """Clip losses to [0, cap], or to the largest finite float without a cap."""
    return np.clip(losses, 0.0, limit_of(cap))
