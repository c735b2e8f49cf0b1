"""Labels with predicted probabilities, and the parts of plans about them that several metrics share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import probability_block
from dp_metrics.inputs.floats import MAX_FLOAT
from dp_metrics.inputs.labels import LabelSet, encoded_block
from dp_metrics.inputs.losses import RecordLoss, brier_loss, brier_loss_cap, log_loss, log_loss_cap
from dp_metrics.inputs.options import check_max_loss
from dp_metrics.inputs.readers import LabelColumns, labels_and_probabilities, unstated_labels
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.released import Monotone, ReleasedNumbers

OF_PROBABILITIES: Mapping[str, Any] = {
    "responses": ("predict_proba",),
    "from_unit": lambda x: (np.ones_like(x), x),
}
"""Facts about every metric that judges the probabilities of all labels."""


@dataclass(frozen=True, eq=False)
class LabelledProbabilities:
    """The public label set, and the public form of labels and predicted probabilities.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)
        The labels, sorted.
    columns : int
        Number of columns of the probabilities.
    resolution : float
        scikit-learn clips probabilities to [resolution, 1 - resolution].
    reader, unstated
        Those of a `Plan` about such records.
    """

    labels: NDArray[Any]
    columns: int
    resolution: float
    reader: Callable[[Records], Records]
    unstated: str | None

    @classmethod
    def of(cls, shape: Shape, *, labels: Any, pos_label: Any = None) -> Self:
        """Return what is public of labels and probabilities of this form, or raise."""
        form = shape.arguments[1]
        columns = LabelColumns.of(labels, form, "y_proba", positive=pos_label)
        reader = partial(labels_and_probabilities, columns=columns)
        return cls(columns.labels, columns.columns, form.resolution, reader, unstated_labels(labels, form))

    def mean(self, loss: Any, cap: float, *, codes: Any = None, is_count: bool = False) -> MeanOf:
        """Return the mean of a loss of codes and probabilities."""
        reads = (codes or partial(encoded_block, labels=self.labels), probability_block)
        return MeanOf(RecordLoss(loss, reads=reads, cap=cap, is_count=is_count))

    def log_loss(self, max_loss: Any) -> MeanOf:
        """Return the log loss."""
        cap = log_loss_cap(self.resolution, check_max_loss(max_loss))
        return self.mean(partial(log_loss, resolution=self.resolution), cap)

    def brier_loss(self, pos_label: Any = None, scale_by_half: Any = "auto") -> MeanOf:
        """Return the Brier score loss."""
        positive = 1 if pos_label is None else LabelSet.of(self.labels).place(pos_label, "pos_label")
        if scale_by_half != "auto" and not isinstance(scale_by_half, bool):
            raise ValueError("scale_by_half must be True, False or 'auto'.")
        half = self.columns <= 2 if scale_by_half == "auto" else bool(scale_by_half)
        codes = partial(_is_positive, labels=self.labels, positive=positive)
        return self.mean(
            partial(brier_loss, half=half), brier_loss_cap(half), codes=codes if self.columns == 1 else None
        )


def _is_positive(block: NDArray[Any], *, labels: NDArray[Any], positive: int) -> NDArray[np.intp]:
    matches: NDArray[np.bool_] = encoded_block(block, labels) == positive
    return matches.astype(np.intp)


def mean_or_sum(normalize: Any, *, is_score: bool = False) -> Monotone:
    """Return what makes a result of a mean: the mean, or for a score 1 minus that, or n times either."""
    result = partial(_mean_or_sum, normalize=bool(normalize), is_score=is_score)
    return Monotone(result, rises=not is_score)


def _mean_or_sum(released: ReleasedNumbers, normalize: bool, is_score: bool) -> float:
    mean = 1.0 - released.values[0] if is_score else released.values[0]
    if normalize:
        return float(mean)
    assert released.total_weight is not None  # no option asks for the sum where n is private
    return float(min(mean * released.total_weight, MAX_FLOAT))
