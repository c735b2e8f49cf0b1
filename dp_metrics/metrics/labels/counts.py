"""Confusion of labels: the fewest counts that determine a metric, and the metric of such counts.

All metrics here are functions of how many records have which true and which predicted label. A `Layout` says
which sums of these counts are released, `Counts` holds what they tell of each label, and a formula turns that
into a number. A formula reads any layout that tells it enough.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.records import check_same_length
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms._base import Limits
from dp_metrics.metrics._catalogue import UNWEIGHTED, Metric, same_name
from dp_metrics.release.interval import Interval
from dp_metrics.release.noise import CountsNoise, Noise, noisy_shares
from dp_metrics.release.parts.count_table import (
    Cells,
    CountTable,
    TableOf,
    check_cells,
    nearest_with_sum,
    plausible_counts,
)
from dp_metrics.release.plan import Plan
from dp_metrics.release.ratio_limits import NoisyRatio, ratio_limits
from dp_metrics.release.released import Asked, Released
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

__all__ = [
    "MOST_MATRIX_LABELS",
    "NO_RATIO",
    "Confusion",
    "Counts",
    "Layout",
    "PartsOf",
    "RatioCells",
    "check_matrix",
    "confusion_for",
    "confusion_of",
    "confusion_row",
    "label_codes",
    "matrix_layout",
    "noisy_ratio",
    "of_each_label",
    "of_one_label",
    "ratio_cells",
    "right_or_wrong",
    "whole",
]

MOST_MATRIX_LABELS = 3
"""Labels up to which the matrix has no more cells than what else tells everything about each label."""

_HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a table tells of each label: numbers of records; None for what it does not tell.

    Parameters
    ----------
    right : ndarray of shape (n_labels,)
        True positives; of all labels together where only they are known.
    missed, wrong : ndarray or None
        False negatives and false positives.
    either : ndarray or None
        Their sum, where only that is known.
    matrix : ndarray of shape (n_labels, n_labels) or None
        The confusion matrix.
    n : float
        All records.
    """

    right: Floats
    n: float
    missed: Floats | None = None
    wrong: Floats | None = None
    either: Floats | None = None
    matrix: Floats | None = None

    def errors_of(self, kind: str) -> Floats:
        """Return how often each label was "missed", was "wrong", or "either"."""
        if kind == "missed":
            return self.false_negatives
        if kind == "wrong":
            return self.false_positives
        return self.either if self.either is not None else self.false_negatives + self.false_positives

    @property
    def false_negatives(self) -> Floats:
        """Records with the label that were predicted to have another."""
        assert self.missed is not None
        return self.missed

    @property
    def false_positives(self) -> Floats:
        """Records predicted to have the label that have another."""
        assert self.wrong is not None
        return self.wrong

    @property
    def true(self) -> Floats:
        """Records with the label."""
        return self.right + self.false_negatives

    @property
    def predicted(self) -> Floats:
        """Records predicted to have the label."""
        return self.right + self.false_positives


PartsOf: TypeAlias = Callable[[Counts], tuple[Floats, Floats]]
"""Of counts, the A and the B of a metric A / (A + B), or of several."""


@dataclass(frozen=True)
class Layout:
    """Which counts are released.

    Parameters
    ----------
    cells : tuple of (int, Fraction)
        Weights of the counts, as in `CountTable`.
    is_partition : bool
        Whether each record is in exactly one count.
    of : callable
        The counts, from the confusion matrix.
    read : callable
        What noisy counts tell, from counts that are at least 0.
    good : ndarray of shape (n_cells,)
        1 for counts of right records, -1 for counts of errors, 0 for counts that tell nothing of a label.
    """

    cells: Cells
    is_partition: bool
    of: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    read: Callable[[Floats], Counts]
    good: NDArray[np.int64]

    def counts(self, noisy: Any, n: int | None) -> Counts:
        """Return what noisy counts tell, given the number of records if that is public."""
        return self.read(plausible_counts(noisy, self.cells, n))


def right_or_wrong() -> Layout:
    """Return the layout of the records predicted right, and the others."""
    return Layout(((2, Fraction(1)),), True, _right_and_others, _read_right, np.array([1, -1]))


def _right_and_others(matrix: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array([np.trace(matrix), matrix.sum() - np.trace(matrix)])


def _read_right(x: Floats) -> Counts:
    return Counts(right=x[:1], missed=x[1:], wrong=x[1:], n=float(x.sum()))


def check_matrix(labels: int) -> None:
    """Raise if the matrix of these labels, from which all counts follow, has too many cells."""
    check_cells(
        labels**2,
        f"The confusion matrix of {labels:,} labels, which metrics of labels are counted from,",
        "private_accuracy_score needs 2 cells whatever the number of labels; of one label, "
        "private_recall_score(y_true == label, y_pred == label) needs 3, and a matrix of 4.",
    )


def whole(labels: int) -> Layout:
    """Return the layout of the confusion matrix."""
    check_matrix(labels)
    good = 2 * np.eye(labels, dtype=np.int64).ravel() - 1
    return Layout(((labels**2, Fraction(1)),), True, np.ravel, partial(_read_matrix, labels=labels), good)


def _read_matrix(x: Floats, labels: int) -> Counts:
    matrix = x.reshape(labels, labels)
    right = np.diag(matrix)
    return Counts(
        right=right,
        missed=np.maximum(matrix.sum(axis=1) - right, 0.0),
        wrong=np.maximum(matrix.sum(axis=0) - right, 0.0),
        matrix=matrix,
        n=float(x.sum()),
    )


def matrix_layout(labels: int) -> Layout:
    """Return the cheapest layout that tells everything about each label."""
    return whole(labels) if labels <= MOST_MATRIX_LABELS else of_each_label(labels, "missed", "wrong")


def of_each_label(labels: int, *errors: str) -> Layout:
    """Return the layout of the right records of each label, and of its errors.

    Parameters
    ----------
    labels : int
        Number of labels.
    *errors : {"missed", "wrong", "either"}
        One of them; or "missed" and "wrong".

    Notes
    -----
    A record that is right is in one count, of weight 1. One that is wrong is missed with one label and wrong
    with another: of both together each has the weight 1/2, of one alone the weight 1. For the same reason
    both have one sum, which noisy counts are given too: of 10 labels that takes a third to a half off the
    error of mean recalls and precisions.
    """
    alone = len(errors) == 1 and errors[0] != "either"
    weight = Fraction(1) if alone else _HALF
    cells = ((labels, Fraction(1)), (labels * len(errors), weight))
    return Layout(
        ((2 * labels, Fraction(1)),) if alone else cells,
        alone,
        partial(_of_labels, errors=errors),
        partial(_read_labels, labels=labels, errors=errors, weight=float(weight)),
        np.repeat([1, *(-1 for _ in errors)], labels),
    )


def _of_labels(matrix: NDArray[np.int64], errors: Sequence[str]) -> NDArray[np.int64]:
    return np.concatenate([np.diag(matrix), *(_errors(matrix, kind) for kind in errors)])


def _read_labels(x: Floats, labels: int, errors: Sequence[str], weight: float) -> Counts:
    x = x.reshape(1 + len(errors), labels)
    of_kinds = x[1:]
    if len(errors) > 1:
        each = float(of_kinds.sum() / len(errors))
        of_kinds = np.stack([nearest_with_sum(counts, each) for counts in of_kinds])
    named: dict[str, Any] = dict(zip(errors, of_kinds, strict=True))
    return Counts(right=x[0], n=float(x[0].sum() + weight * of_kinds.sum()), **named)


def of_one_label(place: int, errors: str) -> Layout:
    """Return the layout of the right records of one label, of its errors of this kind, and of the others."""
    of, read = partial(_of_place, place=place, errors=errors), partial(_read_place, errors=errors)
    return Layout(((3, Fraction(1)),), True, of, read, np.array([1, -1, 0]))


def _of_place(matrix: NDArray[np.int64], place: int, errors: str) -> NDArray[np.int64]:
    two = np.array([matrix[place, place], _errors(matrix, errors)[place]])
    return np.append(two, matrix.sum() - two.sum())


def _read_place(x: Floats, errors: str) -> Counts:
    named: dict[str, Any] = {errors: x[1:2]}
    return Counts(right=x[:1], n=float(x.sum()), **named)


def _errors(matrix: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """Return how often each label was missed, was wrong, or either."""
    missed, wrong = matrix.sum(axis=1) - np.diag(matrix), matrix.sum(axis=0) - np.diag(matrix)
    of_kind: NDArray[np.int64] = {"missed": missed, "wrong": wrong, "either": missed + wrong}[kind]
    return of_kind


@dataclass(frozen=True, eq=False)
class Confusion:
    """What a plan releases of a confusion matrix, and what it makes of that.

    A `Plan` calls it to make the result; tables of groups read the parts.

    Parameters
    ----------
    layout : Layout
        Which counts.
    formula : callable
        The metric of `Counts`.
    labels : LabelSet
        The public labels.
    rests_on : callable
        Of `Counts`, the numbers of records that the metric divides by.
    needs_matrix : bool
        Whether no layout but the whole matrix tells enough.
    is_monotone : bool
        Whether the metric rises with each count of right records, and falls with each count of errors.
    parts_of : callable or None
        Of `Counts`, the A and the B of a metric A / (A + B), or of several; None if it is no such ratio.
    """

    layout: Layout
    formula: Callable[[Counts], Any]
    labels: LabelSet
    rests_on: Callable[[Counts], Floats]
    needs_matrix: bool = False
    is_monotone: bool = True
    parts_of: PartsOf | None = None

    def table(self, matrix: NDArray[np.int64]) -> CountTable:
        """Return what is known of the counts, from a confusion matrix."""
        layout = self.layout
        return CountTable(layout.of(matrix), int(matrix.sum()), layout.cells, layout.is_partition)

    def plan(self, *, private_n: bool) -> Plan:
        """Return the plan of the metric."""
        check_matrix(self.labels.size)
        count = partial(_counts, of=self.layout.of, labels=self.labels)
        part = TableOf(self.layout.cells, self.layout.is_partition, count)
        return Plan((part,), partial(label_codes, labels=self.labels, private_n=private_n), self)

    def __call__(self, released: Released) -> Any:
        """Return the metric of what is released."""
        return self.formula(self.layout.counts(released.values[0], released.public_n))

    def note(self, parts: Sequence[Noise], released: Released) -> str | None:
        """Return what to say if the metric rests on counts that are small against their noise."""
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        counts = self.layout.counts(released.values[0], released.public_n)
        return noisy_shares(noise.expected, self.rests_on(counts))

    def limits(self, parts: Sequence[Noise], released: Released, miss: float) -> Limits:
        """Return the metric at two corners of the box in which the exact counts lie.

        Raises
        ------
        ValueError
            If the metric may be lower or higher within the box than at these corners.
        """
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        if not self.is_monotone:
            raise ValueError(
                "This metric has no limits of its noise here: more right records, or fewer errors, need "
                "not make it larger. Release a confusion matrix, or recalls."
            )
        good = self.layout.good
        low, high, _ = noise.limits_of(good != 0, miss)
        if released.public_n is not None:
            low, high = (np.minimum(end, released.public_n) for end in (low, high))
        worst, best = np.where(good > 0, low, high), np.where(good > 0, high, low)
        with np.errstate(all="ignore"):
            ends = (np.asarray(self.formula(self.layout.read(cells))) for cells in (worst, best))
        lower, upper = ((end if end.ndim else float(end)) for end in ends)
        if np.isnan(lower).any() or np.isnan(upper).any():
            raise ValueError("A metric that may be NaN has no limits: pass zero_division=0.0 or 1.0.")
        return Limits(lower, upper).within(0.0, 1.0)

    def population(self, parts: Sequence[Noise], released: Released, asked: Asked) -> Interval:
        """Return the interval of the metric among all people, from the noisy counts as they were drawn.

        Of several ratios each has its part of the miss: all limits hold at once.

        Raises
        ------
        ValueError
            If the metric is not a ratio of counts, or several of them.
        """
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        cells = ratio_cells(self.layout, self.parts_of)
        if cells is None:
            raise ValueError(NO_RATIO.format(asked.metric))
        each, estimate = asked.miss / len(cells), self(released)
        ratios = (noisy_ratio(noise, one, released.public_n) for one in cells)
        ends = zip(*(ratio_limits(ratio, each, each) for ratio in ratios), strict=True)
        lower, upper = (np.array(end) if np.ndim(estimate) else end[0] for end in ends)
        return asked.interval(lower, upper, estimate)


NO_RATIO = (
    "{} has no interval for all people here, as it is made of several ratios: ask for each label "
    "(average=None), or for the recall or precision of one, alone."
)


class RatioCells(NamedTuple):
    """Which counts make a metric A / (A + B): those that add to A, and to B, and how much each adds."""

    a: list[int]
    b: list[int]
    weights: tuple[float, float]


def ratio_cells(layout: Layout, parts_of: PartsOf | None) -> list[RatioCells] | None:
    """Return the counts of each ratio that a metric is; None if it is made otherwise."""
    if parts_of is None:
        return None
    cells: list[dict[int, dict[int, float]]] = [{}, {}]  # to A and to B, by ratio: what each count adds
    unit = np.zeros(layout.good.size)
    for cell in range(unit.size):
        unit[cell] = 1.0
        for side, part in zip(cells, parts_of(layout.read(unit)), strict=True):
            for place in np.flatnonzero(part).tolist():
                side.setdefault(place, {})[cell] = float(part[place])
        unit[cell] = 0.0
    found = []
    for place in sorted(cells[0]):
        of_a, of_b = cells[0][place], cells[1].get(place, {})
        weights = [{*of.values()} for of in (of_a, of_b)]
        # where a record may be in several counts, those of one label have it once, and sums may not
        is_once = layout.is_partition or len(of_a) + len(of_b) <= 2
        if not is_once or any(len(one) != 1 for one in weights) or of_a.keys() & of_b.keys():
            return None
        found.append(RatioCells([*of_a], [*of_b], (weights[0].pop(), weights[1].pop())))
    return found


def noisy_ratio(noise: CountsNoise, cells: RatioCells, n: int | None, first: int = 0) -> NoisyRatio:
    """Return the noisy counts of a ratio.

    Parameters
    ----------
    noise : CountsNoise
        Of one table, or of one for each group, one after the other.
    cells : RatioCells
        Places in a table.
    n : int or None
        Number of records in all tables, where it is public.
    first : int, default=0
        Where the table begins.
    """
    ends = list(accumulate(size for size, _ in noise.rates))
    a, b = ([first + cell for cell in side] for side in (cells.a, cells.b))
    return NoisyRatio(
        sum(noise.noisy[cell] for cell in a),
        sum(noise.noisy[cell] for cell in b),
        (len(a), len(b)),
        (noise.rates[bisect_right(ends, a[0])][1], noise.rates[bisect_right(ends, b[0])][1]),
        len(noise.noisy) - len(a) - len(b) if noise.zero_sum else None,
        n,
        cells.weights,
    )


def label_codes(records: Records, *, labels: LabelSet, private_n: bool) -> Records:
    """Return true and predicted labels, not yet looked at.

    Raises
    ------
    ValueError
        If the shapes differ or are invalid.
    """
    true, pred = (
        labels.array(array, name, private_n=private_n)
        for array, name in zip(records.arrays, ("y_true", "y_pred"), strict=True)
    )
    check_same_length(true, pred, private_n=private_n)
    return replace(records, arrays=(true, pred))


def confusion_of(records: Records, labels: LabelSet) -> NDArray[np.int64]:
    """Return the confusion matrix of `label_codes`, a row for each true label.

    Raises
    ------
    ValueError
        If a record is invalid.
    """
    size = labels.size
    matrix = np.zeros(size**2, dtype=np.int64)
    rows = max(BLOCK, size**2)  # adding up the cells should not take longer than finding them
    for block, other in zip(*(in_blocks(array, rows) for array in records.arrays), strict=True):
        codes = labels.codes(block, "y_true") * size + labels.codes(other, "y_pred")
        matrix += np.bincount(codes, minlength=size**2)
    return matrix.reshape(size, size)


def _counts(
    records: Records, *, of: Callable[[NDArray[np.int64]], NDArray[np.int64]], labels: LabelSet
) -> NDArray[np.int64]:
    return of(confusion_of(records, labels))


def confusion_for(metric: Metric, options: Mapping[str, Any]) -> Confusion:
    """Return which counts a metric of labels releases, and how it follows from them."""
    confusion = metric.planned(metric.form(), options, private_n=True).postprocess
    assert isinstance(confusion, Confusion)
    return confusion


def _from_unit(x: Floats) -> tuple[Any, ...]:
    """Return labels 0 and 1, all four pairs of them as x grows."""
    quarter = np.minimum(np.floor(x * 4), 3).astype(np.int64)
    return quarter // 2, quarter % 2


def confusion_row(
    name: str,
    plan: Callable[..., Plan],
    options: dict[str, Any],
    *,
    exact_function: str | None = None,
    **facts: Any,
) -> Metric:
    """Return the row of a metric that judges predicted labels by counts of them.

    Its exact function is scikit-learn's of the same name unless another one is given, or "" for none.
    """
    return Metric(
        name=name,
        exact_function=same_name(name) if exact_function is None else exact_function,
        plan=plan,
        options={"labels": None, **options},
        refused=UNWEIGHTED,
        mechanism=None,
        from_unit=_from_unit,
        predicts_labels=True,
        **facts,
    )
