"""The losses of two models on the same records: which losses can be compared, and how they are computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import RecordLoss, clamp
from dp_metrics.inputs.names import did_you_mean
from dp_metrics.inputs.records import as_numbers, check_same_length
from dp_metrics.metrics import FUNCTIONS, METRICS, Metric, metric_named, metric_names
from dp_metrics.metrics._catalogue import WEIGHTS
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

__all__ = ["COMPARABLE", "PairedLosses", "paired_losses"]

_REFUSED = {
    "private_rmse": "a record has no root mean squared error of its own; pass loss='mse', or 'mae'",
    "private_accuracy_score": "it is a score, not a loss of a record; pass loss='zero_one'",
    "private_top_k_accuracy_score": "it is a score, not a loss of a record",
    **dict.fromkeys(
        ("private_mean", "private_mean_loss"),
        "pass the losses as predictions, zeros as y_true and loss='mae'",
    ),
}

COMPARABLE: Mapping[str, Metric] = {
    row.name.removeprefix("private_"): row
    for row in METRICS.values()
    if row.is_mean_loss and row.data[:1] == ("y_true",) and row.name not in _REFUSED
}
"""The metrics that are the plain mean of one loss per record, of a truth and a prediction."""

_NOT_OPTIONS = {
    **dict.fromkeys(WEIGHTS),
    "normalize": "a comparison speaks of shares and means, not of sums",
    "mechanism": "the noise of a comparison is its own",
    "return_result": "a Comparison holds all that may be published",
}
"""Options of metrics that a comparison has no use for, with the reason, or has of its own."""


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """Two losses for each record.

    Parameters
    ----------
    name : str
        What the loss is called.
    a, b : MeanLoss
        The losses of either model, by their records and the loss of a record.
    """

    name: str
    a: MeanLoss
    b: MeanLoss

    @property
    def n(self) -> int:
        """Number of records."""
        return self.a.n

    @property
    def cap(self) -> float | None:
        """Public limit of both losses, if there is one; the type of probabilities may make two of it."""
        a, b = self.a.record_loss.cap, self.b.record_loss.cap
        return None if a is None or b is None else max(a, b)

    def blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield both losses of blocks of the records, clipped to their caps; raise for invalid records."""
        arrays = (*self.a.records, *self.b.records)
        rows = max(BLOCK // max(prod(array.shape[1:]) for array in arrays), 1)
        for true, pred_a, same, pred_b in zip(*(in_blocks(array, rows) for array in arrays), strict=True):
            yield _losses(self.a.record_loss, true, pred_a), _losses(self.b.record_loss, same, pred_b)


def _losses(record_loss: RecordLoss, true: Any, pred: Any) -> Floats:
    losses = clamp(record_loss(true, pred), record_loss.cap)
    if losses.shape != true.shape[:1]:
        raise ValueError("loss must give one number per record.")
    if np.isnan(losses).any():
        raise ValueError("loss must not give NaN.")
    return losses


def paired_losses(
    loss: Any, y_true: ArrayLike, pred_a: ArrayLike, pred_b: ArrayLike, options: Mapping[str, Any]
) -> PairedLosses:
    """Return the losses of two predictions, neither computed yet.

    Parameters
    ----------
    loss : str, callable or RecordLoss
        As in `private_compare`.
    y_true, pred_a, pred_b : array-like
        As the caller got them.
    options : mapping
        Options of the metric.
    """
    if isinstance(loss, RecordLoss):
        if options:
            raise TypeError(f"A RecordLoss takes no options, such as {min(options)}.")
        name = getattr(loss.loss, "__name__", "loss")
        return PairedLosses(name, _given(loss, y_true, pred_a), _given(loss, y_true, pred_b))
    row = _row(loss)
    known = {name: value for name, value in row.options.items() if name not in _NOT_OPTIONS}
    for name in options:
        if reason := _NOT_OPTIONS.get(name):
            raise ValueError(f"private_compare takes no {name}: {reason}.")
        if name not in known:
            raise TypeError(f"private_compare() with this loss got an unexpected keyword argument {name!r}.")
    if isinstance(each := options.get("multioutput"), str) and each == "raw_values":
        raise ValueError(
            "multioutput='raw_values' cannot be compared: a record needs one loss. Compare each output apart."
        )
    plans = [row.planned((y_true, pred), options, private_n=False) for pred in (pred_a, pred_b)]
    a, b = (plan.queries[0] for plan in plans)
    assert isinstance(a, MeanLoss)
    assert isinstance(b, MeanLoss)
    return PairedLosses(row.name.removeprefix("private_"), a, b)


def _given(record_loss: RecordLoss, y_true: ArrayLike, y_pred: ArrayLike) -> MeanLoss:
    true = as_numbers(y_true, "y_true", allow_2d=True, private_n=False)
    pred = as_numbers(y_pred, "y_pred", allow_2d=True, private_n=False)
    check_same_length(true, pred)
    return MeanLoss(record_loss, (true, pred))


def _row(loss: Any) -> Metric:
    """Return the row of a loss that was named, or given as the function of its metric."""
    row: Metric | None
    if isinstance(loss, str):
        row = metric_named(loss)
    else:
        # a functools.partial is refused, because its keywords would be lost
        row = next((METRICS[name] for name, function in FUNCTIONS.items() if function is loss), None)
    if row is None:
        raise ValueError(
            f"loss must be one of {', '.join(COMPARABLE)}, the function of one, or a RecordLoss."
            f"{did_you_mean(loss, metric_names(COMPARABLE.values()))}"
        )
    if row not in COMPARABLE.values():
        reason = _REFUSED.get(row.name, "it is not the mean of one loss per record")
        raise ValueError(f"{row.name} cannot be compared record by record: {reason}.")
    return row
