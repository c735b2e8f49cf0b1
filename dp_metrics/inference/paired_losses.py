"""The losses of two models on the same records: which losses can be compared, and how they are computed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from dp_metrics.inputs.arrays import as_numbers, check_same_length
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import RecordLoss, clamp
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.metrics import METRICS, Metric, row_of
from dp_metrics.release.parts.mean_loss import MeanOf, PublicWeights
from dp_metrics.release.stored.questions import PER_RECORD
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

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
    if row.usual.kinds == (MeanOf,) and row.data[:1] == ("y_true",) and row.name not in _REFUSED
}
"""The metrics that are the plain mean of one loss per record, of a truth and a prediction."""

_NOT_OPTIONS = {
    **dict.fromkeys(PER_RECORD),
    "normalize": "a comparison speaks of shares and means, not of sums",
    "mechanism": "the noise of a comparison is its own",
}
"""Options of metrics that a comparison has no use for, with the reason, or has of its own."""


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """Public: two losses for each record.

    Parameters
    ----------
    name : str
        What the loss is called.
    losses : tuple of RecordLoss
        The loss of a record, of A and of B.
    readers : tuple of callable
        What checks the form of the truth and the predictions of A, and of B.
    """

    name: str
    losses: tuple[RecordLoss, RecordLoss]
    readers: tuple[Callable[[Records], Records], Callable[[Records], Records]]

    @property
    def cap(self) -> float | None:
        """Public limit of both losses, if there is one; the type of probabilities may make two of it."""
        a, b = (loss.cap for loss in self.losses)
        return None if a is None or b is None else max(a, b)

    def read(self, records: Records) -> Records:
        """Return truth and predictions of A, then of B, of records of truth, A and B; none looked at yet."""
        true, *predictions = range(3)
        pairs = (
            reader(records.of_arguments(true, pred))
            for reader, pred in zip(self.readers, predictions, strict=True)
        )
        return replace(records, arrays=tuple(array for pair in pairs for array in pair.arrays))

    def blocks(self, records: Records) -> Iterator[tuple[Floats, Floats]]:
        """Yield both losses of blocks of what `read` returned, clipped; raise for invalid records.

        Of persons all at once: the loss of a person is the mean of those of his or her records.
        """
        if records.groups is None:
            yield from self._of_records(records)
            return
        weights, several = PublicWeights.of(records), zip(*self._of_records(records), strict=True)
        sizes = weights.terms(np.ones(weights.n))
        a, b = (weights.terms(np.concatenate(blocks)) / sizes for blocks in several)
        yield a, b

    def _of_records(self, records: Records) -> Iterator[tuple[Floats, Floats]]:
        arrays, (a, b) = records.arrays, self.losses
        rows = max(BLOCK // max(prod(array.shape[1:]) for array in arrays), 1)
        for true, pred_a, same, pred_b in zip(*(in_blocks(array, rows) for array in arrays), strict=True):
            yield _losses(a, true, pred_a), _losses(b, same, pred_b)


def _losses(record_loss: RecordLoss, true: Any, pred: Any) -> Floats:
    losses = clamp(record_loss(true, pred), record_loss.cap)
    if losses.shape != true.shape[:1]:
        raise ValueError("loss must give one number per record.")
    if np.isnan(losses).any():
        raise ValueError("loss must not give NaN.")
    return losses


def paired_losses(loss: Any, shape: Shape, options: Mapping[str, Any]) -> PairedLosses:
    """Return the losses of two predictions, none of which is known yet.

    Parameters
    ----------
    loss : str, callable or RecordLoss
        As in `private_compare`.
    shape : Shape
        Of y_true, pred_a and pred_b.
    options : mapping
        Options of the metric.
    """
    if isinstance(loss, RecordLoss):
        if options:
            raise TypeError(f"A RecordLoss takes no options, such as {min(options)}.")
        name = getattr(loss.loss, "__name__", "loss")
        return PairedLosses(name, (loss, loss), (_numbers, _numbers))
    row, fixed = row_of(loss, "loss")
    if row not in COMPARABLE.values():
        reason = _REFUSED.get(row.name, "it is not the mean of one loss per record")
        raise ValueError(f"{row.name} cannot be compared record by record: {reason}; pass another loss.")
    options = {**fixed, **options}
    known = {name: value for name, value in row.options.items() if name not in _NOT_OPTIONS}
    for name in options:
        if because := _NOT_OPTIONS.get(name):
            raise ValueError(f"private_compare takes no {name}: {because}.")
        if name not in known:
            raise TypeError(f"private_compare() with this loss got an unexpected keyword argument {name!r}.")
    if isinstance(each := options.get("multioutput"), str) and each == "raw_values":
        raise ValueError(
            "multioutput='raw_values' cannot be compared: a record needs one loss. Compare each output apart."
        )
    true, *predictions = shape.arguments
    a, b = (row.planned(Shape((true, pred), shape.n), options) for pred in predictions)
    losses = [part.record_loss for plan in (a, b) for part in plan.parts if isinstance(part, MeanOf)]
    return PairedLosses(row.name.removeprefix("private_"), (losses[0], losses[1]), (a.reader, b.reader))


def _numbers(records: Records) -> Records:
    """Return numbers of one or two dimensions, for a loss that the caller gave."""
    true, pred = (
        as_numbers(array, name, allow_2d=True, relation=Relation.REPLACE_ONE)
        for array, name in zip(records.arrays, ("y_true", "y_pred"), strict=True)
    )
    check_same_length({"y_true": true, "y_pred": pred})
    return replace(records, arrays=(true, pred))
