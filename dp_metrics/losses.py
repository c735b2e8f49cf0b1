"""Per-record losses and their public caps.

A loss is a function of its own record alone, made of elementwise ufuncs: a reduction or a matrix
product may give other bits to the same record in another batch, and then more than one rank would
change between neighbours. Every loss is clamped to [0, cap], so nothing overflows into an exception.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dp_metrics._validation import MAX_FLOAT

__all__ = [
    "absolute_error",
    "clamp",
    "largest_error",
    "log_loss",
    "log_loss_cap",
    "mean_over_outputs",
    "squared_error",
]

Floats = NDArray[np.float64]
Kernel = Callable[[Floats, Floats], Floats]


def squared_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return (y_pred - y_true)**2."""
    difference = y_pred - y_true
    return difference * difference


def absolute_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return |y_pred - y_true|."""
    return np.abs(y_pred - y_true)


def largest_error(kernel: Kernel, bounds: tuple[float, float]) -> float:
    """Return the public cap of a loss that grows with |y_pred - y_true|, both within the bounds."""
    with np.errstate(over="ignore"):
        return float(clamp(kernel(*(np.array([bound]) for bound in bounds)), None)[0])


def log_loss(codes: NDArray[np.intp], probabilities: Floats, resolution: float) -> Floats:
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


def mean_over_outputs(losses: Floats) -> Floats:
    """Average the losses of several outputs of one record; shape (n, n_outputs) becomes (n,)."""
    if losses.ndim == 1:
        return losses
    # column by column: the order of the additions must not depend on the size of the batch
    total: Floats = losses[:, 0].copy()
    for column in range(1, losses.shape[1]):
        total += losses[:, column]
    total /= losses.shape[1]
    return total


def clamp(losses: Floats, cap: float | None) -> Floats:
    """Clip losses to [0, cap], or to the largest finite float without a cap."""
    return np.clip(losses, 0.0, MAX_FLOAT if cap is None else cap)
