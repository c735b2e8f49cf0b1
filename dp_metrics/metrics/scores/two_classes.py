"""Records of two classes with a score: how they are read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet, encoded_block
from dp_metrics.inputs.readers import LabelColumns, labels_and_scores
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.release.parts.part import Part
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import ReleasedNumbers
from dp_metrics.sensitivity.exact import in_blocks


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """The public labels of two classes, and which of them is the positive one.

    Parameters
    ----------
    labels : LabelSet
        The labels.
    pos_label : object
        The positive one; None: nobody said, and it is the second of the sorted ones.
    """

    labels: LabelSet
    pos_label: Any

    @classmethod
    def of(cls, labels: Any, pos_label: Any) -> Self:
        """Return the classes that a caller named: by default 0 and 1, and the second is positive."""
        known = LabelSet.of(labels)
        if known.size != 2:
            raise ValueError("labels must be two: scores tell one class from the other.")
        if pos_label is not None:
            known.place(pos_label, "pos_label")
        return cls(known, pos_label)

    @property
    def known(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self.labels.known

    @property
    def positive(self) -> int:
        """The place of the positive label among the sorted ones."""
        return 1 if self.pos_label is None else self.labels.sorted_place(self.pos_label, "pos_label")

    def reader(self, shape: Shape, name: str) -> Callable[[Records], Records]:
        """Return what checks the form of records, whose public form this is; raise if that is invalid."""
        columns = LabelColumns.of(self.labels, shape.arguments[1], name, positive=self.pos_label)
        one = replace(columns, columns=1)  # of two that of the positive label is read: both forms merge
        return partial(labels_and_scores, columns=one, name=name, positive=self.positive)

    def plan(self, shape: Shape, *, name: str, part: Part, result: Callable[[ReleasedNumbers], Any]) -> Plan:
        """Return the plan of one part of such records, whose scores have this name."""
        return Plan((part,), self.reader(shape, name), result)

    def blocks(self, records: Records, name: str) -> Iterator[tuple[NDArray[np.bool_], Floats]]:
        """Return blocks of whether records of valid form are positive, and of their scores.

        Raises
        ------
        ValueError
            While the blocks are read, if a record is invalid.
        """
        true, scores = records.arrays
        return (
            (encoded_block(codes, self.known) == self.positive, float_block(block, name))
            for codes, block in zip(in_blocks(true), in_blocks(scores), strict=True)
        )


def check_unit(block: Floats, message: str) -> None:
    """Raise unless all scores of a block lie in [0, 1]."""
    if block.size and not (block.min() >= 0 and block.max() <= 1):
        raise ValueError(message)


def two_classes_from_unit(x: Floats) -> tuple[Any, ...]:
    """Return negatives with scores from 0 up to 1, and positives with scores from 1 down to 0."""
    return np.where(x > 0.5, 1, 0), np.where(x > 0.5, 2.0 - 2.0 * x, 2.0 * x)


OF_SCORES: Mapping[str, Any] = {"responses": ("predict_proba",), "from_unit": two_classes_from_unit}
"""Facts about every metric that judges probabilities of two classes by counts of records, or sums."""
