"""The fewest counts of labels that determine a metric, and the formulas of metrics of predicted labels.

All metrics of labels are functions of how many records have which true and which predicted label. A `Layout`
says which sums of these counts are released, and `Counts` holds what they tell of each label.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import Floats
from dp_metrics.quantities.tables import (
    Cells,
    check_cells,
    nearest_with_sum,
    plausible_counts,
    saturated_counts,
)

MOST_MATRIX_LABELS = 3
"""Labels up to which the matrix has no more cells than what else tells everything about each label."""


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
    missed: Any = None
    wrong: Any = None
    either: Any = None
    matrix: Floats | None = None

    def agreeing(self) -> "Counts":
        """Return counts of which as many are missed as are wrong, whatever label they have."""
        if self.matrix is not None or self.missed is None or self.wrong is None:
            return self
        each = float(self.missed.sum() + self.wrong.sum()) / 2
        missed, wrong = (nearest_with_sum(kind, each) for kind in (self.missed, self.wrong))
        return replace(self, missed=missed, wrong=wrong)

    @property
    def true(self) -> Floats:
        """Records with the label."""
        return self.right + self.missed

    @property
    def predicted(self) -> Floats:
        """Records predicted to have the label."""
        return self.right + self.wrong


PartsOf: TypeAlias = Callable[[Counts], tuple[Floats, Floats]]
"""Of counts, the A and the B of a metric A / (A + B), or of several."""


@dataclass(frozen=True)
class Layout:
    """Which counts are released.

    Parameters
    ----------
    cells : tuple of (int, Fraction)
        Weights of the counts, as in `TableOf`.
    is_partition : bool
        Whether each record is in exactly one count.
    of : callable
        The counts, from the confusion matrix.
    reader : callable
        What noisy counts tell, from counts that are at least 0.
    good : ndarray of shape (n_cells,)
        1 for counts of right records, -1 for counts of errors, 0 for counts that tell nothing of a label.
    groups : int, default=1
        For how many groups of records these counts stand one after the other.
    places : ndarray of shape (n_cells,) or None, default=None
        In which place each is added up before they are read; None: each has a place of its own.
    """

    cells: Cells
    is_partition: bool
    of: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    reader: Callable[[Floats], Counts]
    good: NDArray[np.int64]
    groups: int = 1
    places: NDArray[np.intp] | None = None

    def read(self, x: Floats) -> Counts:
        """Return what counts tell that are at least 0."""
        return self.reader(x if self.places is None else np.bincount(self.places, x).astype(np.float64))

    def counts(self, noisy: Any, n: int | None) -> Counts:
        """Return what noisy counts tell, given the number of records if that is public."""
        return self.read(self.plausible(noisy, n)).agreeing()

    def plausible(self, noisy: Any, n: int | None) -> Floats:
        """Return the plausible counts nearest to noisy ones.

        Those of several groups are added up as they were drawn, and each sum is shown in equal parts: nothing
        but sums is read. If each small count were made 0 or more first, every sum would be too large.
        """
        sums = saturated_counts(noisy).reshape(self.groups, -1).sum(axis=0)
        cells = self.cells[: len(self.cells) // self.groups]
        return np.tile(plausible_counts(sums, cells, n) / self.groups, self.groups)

    def in_groups(self, groups: int) -> "Layout":
        """Return the layout of the counts of so many groups, which tells of all records together."""
        return replace(
            self,
            cells=self.cells * groups,
            good=np.tile(self.good, groups),
            groups=groups,
            places=np.tile(np.arange(self.good.size), groups),
        )


def right_or_wrong(place: int = 0) -> Layout:
    """Return the layout of the records predicted right, which are counted in this place, and the others.

    A quantity that has both counts without a confusion matrix may have the others first.
    """
    of, read = partial(_with_others, of=np.trace), partial(_read_right, place=place)
    return Layout(((2, Fraction(1)),), True, of, read, np.where(np.arange(2) == place, 1, -1))


def _with_others(matrix: NDArray[np.int64], of: Callable[[NDArray[np.int64]], Any]) -> NDArray[np.int64]:
    """Return counts of which no two have a record in common, and that of all other records."""
    counts = np.atleast_1d(of(matrix))
    return np.append(counts, matrix.sum() - counts.sum())


def _read_right(x: Floats, place: int) -> Counts:
    right, others = x[[place]], x[[1 - place]]
    return Counts(right=right, missed=others, wrong=others, n=float(x.sum()))


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
    weight = Fraction(1, 1 if alone else 2)
    cells = ((labels, Fraction(1)), (labels * len(errors), weight))
    return Layout(
        ((2 * labels, Fraction(1)),) if alone else cells,
        alone,
        partial(_of_labels, kinds=("right", *errors)),
        partial(_read_kinds, kinds=("right", *errors), weight=float(weight)),
        np.repeat([1, *(-1 for _ in errors)], labels),
    )


def _of_labels(
    matrix: NDArray[np.int64], kinds: Sequence[str], place: int | None = None
) -> NDArray[np.int64]:
    """Return the counts of these kinds, of each label or of the one in this place."""
    right, true, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    missed, wrong = true - right, predicted - right
    counts = {"right": right, "missed": missed, "wrong": wrong, "either": missed + wrong}
    counts |= {"true": true, "predicted": predicted}
    return np.concatenate([counts[kind] if place is None else counts[kind][[place]] for kind in kinds])


def _read_kinds(x: Floats, kinds: Sequence[str], weight: float = 1.0) -> Counts:
    """Return counts that stand one kind after the other, right ones first; of errors each has this weight."""
    x = x.reshape(len(kinds), -1)
    named: dict[str, Any] = dict(zip(kinds, x, strict=True))
    named.pop("others", None)
    return Counts(n=float(x[0].sum() + weight * x[1:].sum()), **named)


def of_one_label(place: int, errors: str) -> Layout:
    """Return the layout of the right records of one label, of its errors of this kind, and of the others."""
    of = partial(_with_others, of=partial(_of_labels, kinds=("right", errors), place=place))
    read = partial(_read_kinds, kinds=("right", errors, "others"))
    return Layout(((3, Fraction(1)),), True, of, read, np.array([1, -1, 0]))


def with_label(place: int, kind: str) -> Layout:
    """Return the layout of the records of which one label is the "true" one, or "predicted", and others."""
    of = partial(_with_others, of=partial(_of_labels, kinds=(kind,), place=place))
    return Layout(((2, Fraction(1)),), True, of, _read_all_right, np.array([1, -1]))


def _read_all_right(x: Floats) -> Counts:
    """Return counts of one label, as if all records with it were right: nothing tells which are."""
    return Counts(right=x[:1], missed=np.zeros(1), wrong=np.zeros(1), n=float(x.sum()))


_OF_WHAT = {"true": 1, "pred": 0, "all": None}
"""Over which axes of a matrix the records are added up that its shares are of."""


def cells_and_others(counts: Counts, *, normalize: str) -> tuple[Floats, Floats]:
    """Return each cell of the matrix, one row after the other, and the others of what its share is of."""
    assert counts.matrix is not None
    total = counts.matrix.sum(axis=_OF_WHAT[normalize], keepdims=True)
    return counts.matrix.ravel(), (total - counts.matrix).ravel()


def normalized(counts: Counts, *, normalize: str | None, others: Floats | None = None) -> Floats:
    """Return the matrix, or shares of its rows, its columns or all of it.

    With `others`, a matrix too, each cell is compared with the cells of that, not of its own matrix: for
    limits of the shares.
    """
    matrix = counts.matrix
    assert matrix is not None
    if normalize is None:
        return matrix
    axis = _OF_WHAT[normalize]
    total = (matrix if others is None else others).sum(axis=axis, keepdims=True)
    if others is not None:
        total = matrix + (total - others)
    return np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)


_RATIOS = {
    "precision": (1, "wrong"),
    "recall": (1, "missed"),
    "f1": (2, "either"),
    "jaccard": (1, "either"),
    "specificity": (1, "wrong"),
}
"""How often A counts a right record, and which errors are in B; specificity tells its A itself."""

SHARES = {"selection_rate": "predicted", "prevalence": "true"}
"""Of each share of all records: which of a record's two labels is the one that is asked for."""


@dataclass(frozen=True)
class Ratio:
    """A ratio A / (A + B) of counts of labels, or a mean of such ratios.

    Parameters
    ----------
    kind : str
        One of `_RATIOS` or `SHARES`.
    average : str or None, default="macro"
        As in `private_f1_score`; "binary" of `SHARES`.
    labels : int, default=0
        Number of labels.
    place : int, default=0
        Which of them the ratio is of, if it is "binary".
    undefined : float, default=0.0
        What 0 / 0 is.
    chance : float, default=0.0
        The mean that becomes 0, while 1 stays 1.
    """

    kind: str
    average: str | None = "macro"
    labels: int = 0
    place: int = 0
    undefined: float = 0.0
    chance: float = 0.0

    @property
    def _is_accuracy(self) -> bool:
        return self.average == "micro" or (self.average == "weighted" and self.kind == "recall")

    @property
    def is_share(self) -> bool:
        """Whether it is a share of all records."""
        return self.kind in SHARES

    @property
    def are_all(self) -> bool:
        """Whether the ratios tell the result: they do not where it is a mean by noisy weights."""
        return self.average != "weighted" or self.kind == "recall"

    @property
    def is_monotone(self) -> bool:
        """Whether it rises with each count of right records, and falls with each count of errors.

        A mean need not rise with each ratio if its weights are noisy counts, or if labels are left out. And
        of three labels, an error between two of them is a true negative of the third.
        """
        rises = self.kind != "specificity" or self.average == "micro" or self.labels == 2
        return self.are_all and rises and not math.isnan(self.undefined)

    def layout(self) -> Layout:
        """Return the fewest counts that determine it; see tables of counts in the documentation's theory."""
        if self.is_share:
            return with_label(self.place, SHARES[self.kind])
        errors = _RATIOS[self.kind][1]
        if self.average == "binary":
            return of_one_label(self.place, errors)
        if self._is_accuracy:  # or a function of it
            return right_or_wrong()
        if self.average == "weighted" or self.kind == "specificity":
            return matrix_layout(self.labels)
        if errors == "either" and self.labels <= MOST_MATRIX_LABELS:
            return whole(self.labels)
        return of_each_label(self.labels, errors)

    def parts(self, counts: Counts) -> tuple[Floats, Floats]:
        """Return the A and the B of each ratio."""
        if self.is_share:
            have = self._own(getattr(counts, SHARES[self.kind]))
            return have, counts.n - have
        factor, errors = _RATIOS[self.kind]
        right, others = factor * counts.right, getattr(counts, errors)
        if others is None:  # how often either happened is the sum
            others = counts.missed + counts.wrong
        if self.kind == "specificity":  # each record is a negative of all labels but its own
            is_micro = self.average == "micro"
            others = others.sum(keepdims=True) if is_micro else others
            negatives = np.array([(self.labels - 1) * counts.n]) if is_micro else counts.n - counts.true
            return negatives - others, others
        if self.average == "binary":
            return self._own(right), self._own(others)
        if self.average == "micro":
            return right.sum(keepdims=True), others.sum(keepdims=True)
        if self._is_accuracy:
            return right.sum(keepdims=True), counts.n - right.sum(keepdims=True)
        return right, others

    def _own(self, of_labels: Floats) -> Floats:
        """Return the number of the label, where those of others are known too."""
        return of_labels[self.place : self.place + 1] if of_labels.size > 1 else of_labels

    def __call__(self, counts: Counts) -> Any:
        """Return the result, one number unless there is no average."""
        right, others = self.parts(counts)
        ratios = quotients(right, right + others, self.undefined)
        if self.average is None:
            return ratios
        weights = np.ones_like(ratios) if self.are_all else counts.true
        return (weighted_mean(ratios, weights) - self.chance) / (1 - self.chance)

    def mean(self, ratios: Floats) -> float:
        """Return the result of these ratios, none of which is NaN, if it is their mean."""
        return float((ratios.mean() - self.chance) / (1 - self.chance))

    def rests_on(self, counts: Counts) -> Floats:
        """Return the number of records that each ratio is a share of."""
        if self.is_share or (self._is_accuracy and self.kind != "specificity"):
            return np.array([counts.n])
        right, others = self.parts(counts)
        return right / _RATIOS[self.kind][0] + others


def sizes_of_labels(counts: Counts) -> Floats:
    """Return how many records have each label, and how many are predicted to have it."""
    return np.concatenate([counts.true, counts.predicted])


def sums_of_shares(counts: Counts, *, normalize: str | None) -> Floats:
    """Return what the cells of a matrix are divided by; nothing if they are counts."""
    by = {"true": counts.true, "pred": counts.predicted, "all": np.array([counts.n])}
    return np.empty(0) if normalize is None else by[normalize]


def quotients(above: Floats, below: Floats, undefined: float) -> Floats:
    """Return quotients between 0 and 1, and this number for 0 / 0."""
    quotients: Floats = np.divide(above, below, out=np.full_like(above, undefined), where=below > 0)
    return np.clip(quotients, 0.0, 1.0)  # rounding may have left the range; NaN stays


def _dot(a: Floats, b: Floats) -> float:
    """Return the sum of the products: some machines round `a @ b` once, and others at every step."""
    return float((a * b).sum())


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Return the weighted mean of the values that are not NaN; 0 if there is none."""
    defined = ~np.isnan(values)
    if not weights[defined].sum() > 0:
        return 0.0
    return float(np.average(values[defined], weights=weights[defined]))


def matthews(counts: Counts) -> float:
    """Return the correlation of true and predicted labels, 0 where it is 0/0."""
    n, true, predicted = counts.n, counts.true, counts.predicted
    above = counts.right.sum() * n - _dot(true, predicted)
    below = max(n**2 - _dot(true, true), 0.0) * max(n**2 - _dot(predicted, predicted), 0.0)
    return float(np.clip(above / math.sqrt(below), -1.0, 1.0)) if below > 0 else 0.0


def kappa(counts: Counts, *, weights: str | None) -> float:
    """Return the agreement beyond chance, with linear or quadratic costs of errors or equal ones."""
    n, true, predicted = counts.n, counts.true, counts.predicted
    if weights is None:
        observed, expected = (n - counts.right.sum()) * n, n**2 - _dot(true, predicted)
    else:
        assert counts.matrix is not None
        places = np.arange(true.size, dtype=np.float64)
        costs = np.abs(places[:, np.newaxis] - places)
        if weights == "quadratic":
            costs = costs**2
        observed = (costs * counts.matrix).sum() * n
        expected = _dot((true[:, np.newaxis] * costs).sum(axis=0), predicted)
    return float(np.clip(1.0 - observed / expected, -1.0, 1.0)) if expected > 0 else 0.0
