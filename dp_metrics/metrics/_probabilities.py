"""Labels with predicted probabilities, and the queries about them that several metrics share."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics.inputs.columns import check_columns_of_labels
from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.labels import as_labels, check_labels, encoded_block, public_labels, unstated_labels
from dp_metrics.inputs.losses import (
    RecordLoss,
    brier_loss,
    brier_loss_cap,
    log_loss,
    log_loss_cap,
    zero_one_loss,
)
from dp_metrics.inputs.options import check_groups, check_max_loss, check_sample_weight
from dp_metrics.inputs.records import as_probabilities, check_same_length, probability_block
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.release.release import Plan
from dp_metrics.release.released import Monotone, Released

__all__ = ["LabelledProbabilities", "mean_or_sum_plan"]


class LabelledProbabilities:
    """Labels and predicted probabilities, with the public label set.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight, groups, pos_label
        As the caller got them.
    private_n : bool
        Whether the number of records is private.

    Attributes
    ----------
    unstated : str or None
        That of a `Plan` about these records.
    """

    def __init__(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        labels: ArrayLike | None,
        private_n: bool,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> None:
        given = public_labels(labels)
        self.unstated = unstated_labels(given, y_proba)
        columns = 1 if given is None or given.size == 2 else given.size
        self.proba, self.resolution = as_probabilities(y_proba, private_n=private_n, columns=columns)
        self.columns = self.proba.shape[1]
        self.labels = check_labels(given, self.columns)
        check_columns_of_labels(y_proba, self.labels, "y_proba", pos_label)
        self.true = as_labels(y_true, self.labels, private_n=private_n)
        check_same_length(self.true, self.proba, private_n=private_n)
        records = (self.true, self.proba)
        self.sample_weight = check_sample_weight(sample_weight, *records, whole=not private_n)
        self.groups = check_groups(groups, *records)

    def codes(self, block: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of each label in the label set."""
        return encoded_block(block, self.labels)

    def query(self, loss: Any, cap: float, *, codes: Any = None, is_count: bool = False) -> MeanLoss:
        """Return the query of the mean of a loss of codes and probabilities."""
        reads = (codes or self.codes, probability_block)
        record_loss = RecordLoss(loss, reads=reads, cap=cap, is_count=is_count)
        return MeanLoss(record_loss, (self.true, self.proba), self.sample_weight, self.groups)

    def log_loss(self, max_loss: Any) -> MeanLoss:
        """Return the query of the log loss."""
        cap = log_loss_cap(self.resolution, check_max_loss(max_loss))
        return self.query(partial(log_loss, resolution=self.resolution), cap)

    def brier_loss(self, pos_label: Any = None, scale_by_half: Any = "auto") -> MeanLoss:
        """Return the query of the Brier score loss."""
        in_order = self.labels.tolist()
        positive = in_order[1] if pos_label is None else pos_label
        if positive not in in_order:
            raise ValueError("pos_label is not one of the public labels.")
        if scale_by_half != "auto" and not isinstance(scale_by_half, bool):
            raise ValueError("scale_by_half must be True, False or 'auto'.")
        half = self.columns <= 2 if scale_by_half == "auto" else bool(scale_by_half)

        def is_positive(block: NDArray[Any]) -> NDArray[np.intp]:
            matches: NDArray[np.bool_] = self.codes(block) == in_order.index(positive)
            return matches.astype(np.intp)

        codes = is_positive if self.columns == 1 else self.codes
        return self.query(partial(brier_loss, half=half), brier_loss_cap(half), codes=codes)

    def wrong(self) -> MeanLoss:
        """Return the query of the share of records whose most probable label is not the true one."""
        return self.query(_is_not_most_probable, 1.0, is_count=True)


def _is_not_most_probable(codes: NDArray[np.intp], proba: Floats) -> Floats:
    predicted = proba[:, 0] > 0.5 if proba.shape[1] == 1 else np.argmax(proba, axis=1)
    return zero_one_loss(predicted != codes)


def mean_or_sum_plan(
    query: MeanLoss, normalize: Any, *, is_score: bool = False, unstated: str | None = None
) -> Plan:
    """Return the plan of a mean, or for a score of 1 minus the mean, or of n times that."""
    result = partial(_mean_or_sum, normalize=bool(normalize), is_score=is_score)
    return Plan((query,), Monotone(result, rises=not is_score), unstated=unstated)


def _mean_or_sum(released: Released, normalize: bool, is_score: bool) -> float:
    mean = 1.0 - released.values[0] if is_score else released.values[0]
    if normalize:
        return float(mean)
    assert released.total_weight is not None  # no option asks for the sum where n is private
    return float(min(mean * released.total_weight, MAX_FLOAT))
