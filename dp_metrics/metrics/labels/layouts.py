"""The fewest counts of labels that determine a metric, and the formulas of metrics of predicted labels.

All metrics of labels are functions of how many records have which true and which predicted label. A `Layout`
says which sums of these counts are released, and `Counts` holds what they tell of each label.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.options import Codes, Floats
from dp_metrics.quantities.tables import (
    Cells,
    check_cells,
    nearest_with_sum,
    plausible_counts,
    quotients,
    saturated_counts,
)

MOST_MATRIX_LABELS = 3
"""Labels up to which the matrix has no more cells than what else tells everything about each label."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a table tells of each label: numbers of records; 0 for what it does not tell.

    Parameters
    ----------
    right : ndarray of shape (n_labels,)
        True positives; of all labels together where only they are known. All that have the label, or are
        predicted to have it, where nothing tells which of them are right.
    missed, wrong : ndarray of shape (n_labels,)
        False negatives and false positives; all are missed where only the sum of both is known.
    matrix : ndarray of shape (n_labels, n_labels) or None
        The confusion matrix.
    n : float
        All records.
    """

    right: Floats
    missed: Floats
    wrong: Floats
    n: float
    matrix: Floats | None = None

    def agreeing(self) -> "Counts":
        """Return counts of which as many are missed as are wrong, whatever label they have."""
        each = float(self.missed.sum() + self.wrong.sum()) / 2
        missed, wrong = (nearest_with_sum(kind, each) for kind in (self.missed, self.wrong))
        return replace(self, missed=missed, wrong=wrong)

    @property
    def correct(self) -> Floats:
        """Records that are right, whatever label they have."""
        return self.right.sum(keepdims=True)

    @property
    def true(self) -> Floats:
        """Records with the label."""
        return self.right + self.missed

    @property
    def predicted(self) -> Floats:
        """Records predicted to have the label."""
        return self.right + self.wrong

    @property
    def errors(self) -> Floats:
        """Records with the label, or predicted to have it, but not both."""
        return self.missed + self.wrong


PartsOf: TypeAlias = Callable[[Counts], tuple[Floats, Floats]]
"""Of counts, the A and the B of a metric A / (A + B), or of several."""

_RIGHT = ("right", "correct", "true", "predicted")


@dataclass(frozen=True)
class Layout:
    """Which counts are released.

    Parameters
    ----------
    kinds : tuple of str
        What is counted, one kind after the other: "matrix", each pair of labels, alone; or of each label the
        records that are "right", "missed", "wrong", or one of both "errors", or have it as the "true" or the
        "predicted" one; or all that are "correct", beside the "others". Behind counts of one label stands the
        "rest", which tells nothing of it.
    labels : int, default=1
        Number of labels of which each is counted.
    place : int or None, default=None
        The place of the one label that is counted; None: all are.
    groups : int, default=1
        For how many groups of records these counts stand one after the other.
    places : ndarray of shape (n_cells,) or None, default=None
        In which place each is added up before they are read; None: each has a place of its own.

    Notes
    -----
    A record that is right is in one count, of weight 1. One that is wrong is missed with one label and wrong
    with another: of both together each has the weight 1/2, of one alone the weight 1. For the same reason
    both have one sum, which noisy counts are given too: of 10 labels that takes a third to a half off the
    error of mean recalls and precisions.
    """

    kinds: tuple[str, ...]
    labels: int = 1
    place: int | None = None
    groups: int = 1
    places: Codes | None = None

    @property
    def has_matrix(self) -> bool:
        """Whether the counts are those of the matrix."""
        return self.kinds == ("matrix",)

    @property
    def is_partition(self) -> bool:
        """Whether each record is in exactly one count."""
        return self.place is not None or not (self.has_both or "errors" in self.kinds)

    @property
    def has_both(self) -> bool:
        """Whether errors of both kinds are counted, each for itself."""
        return {"missed", "wrong"} <= {*self.kinds}

    @property
    def good(self) -> NDArray[np.int64]:
        """1 for counts of right records, -1 for those of errors, 0 for those that tell nothing of a label."""
        of_kinds = [1 if kind in _RIGHT else -(kind != "rest") for kind in self.kinds]
        good = np.repeat(of_kinds, self.labels)
        if self.has_matrix:
            good = 2 * np.eye(self.labels, dtype=np.int64).ravel() - 1
        return good if self.places is None else good[self.places]

    @property
    def cells(self) -> Cells:
        """Weights of the counts of one group, as in `TableOf`."""
        size = self.good.size // self.groups
        if self.is_partition:
            return ((size, Fraction(1)),)
        return ((self.labels, Fraction(1)), (size - self.labels, Fraction(1, 2)))

    def of(self, matrix: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts, from the confusion matrix: whole numbers, of which all tell others exactly."""
        known = whole(len(matrix)).read(matrix.ravel())
        own = slice(None) if self.place is None else [self.place]
        told = {kind: np.ravel(getattr(known, kind)[own]) for kind in self.kinds if hasattr(known, kind)}
        others = matrix.sum() - sum(map(np.sum, told.values()))
        return np.concatenate([told.get(kind, [others]) for kind in self.kinds])

    def read(self, x: Any) -> Counts:
        """Return what counts tell that are at least 0: of whole numbers whole numbers."""
        if self.places is not None:
            x = np.bincount(self.places, x).astype(np.float64)
        if self.has_matrix:
            matrix = x.reshape(self.labels, -1)
            right = np.diag(matrix)
            missed, wrong = (np.maximum(matrix.sum(axis=axis) - right, 0) for axis in (1, 0))
            return Counts(right=right, missed=missed, wrong=wrong, matrix=matrix, n=float(x.sum()))
        x = x.reshape(len(self.kinds), -1)
        told = dict(zip(self.kinds, x, strict=True))
        (right,) = (told[kind] for kind in self.kinds if kind in _RIGHT)
        others = told.get("others", np.zeros_like(right))
        missed = told.get("missed", told.get("errors", others))
        n = float(x[0].sum() + float(self.cells[-1][1]) * x[1:].sum())
        return Counts(right=right, missed=missed, wrong=told.get("wrong", others), n=n)

    def agreed(self, x: Floats) -> Counts:
        """Return what plausible counts tell, where both kinds of errors add up to the same."""
        counts = self.read(x)
        return counts.agreeing() if self.has_both else counts

    def counts(self, noisy: Any, n: int | None) -> Counts:
        """Return what noisy counts tell, given the number of records if that is public."""
        return self.agreed(self.plausible(noisy, n))

    def plausible(self, noisy: Any, n: int | None) -> Floats:
        """Return the plausible counts nearest to noisy ones.

        Those of several groups are added up as they were drawn, and each sum is shown in equal parts: nothing
        but sums is read. If each small count were made 0 or more first, every sum would be too large.
        """
        sums = saturated_counts(noisy).reshape(self.groups, -1).sum(axis=0)
        return np.tile(plausible_counts(sums, self.cells, n) / self.groups, self.groups)

    def in_groups(self, groups: int) -> "Layout":
        """Return the layout of the counts of so many groups, which tells of all records together."""
        return replace(self, groups=groups, places=np.tile(np.arange(self.good.size), groups))


def right_or_wrong(place: int = 0) -> Layout:
    """Return the layout of the records predicted right, which are counted in this place, and the others.

    A quantity that has both counts without a confusion matrix may have the others first.
    """
    return Layout(("others", "correct") if place else ("correct", "others"))


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
    return Layout(("matrix",), labels)


def matrix_layout(labels: int, kinds: tuple[str, ...] = ("right", "missed", "wrong")) -> Layout:
    """Return the cheapest layout that tells these kinds of counts of each label; by default everything."""
    found = Layout(kinds, labels)
    return found if found.is_partition or labels > MOST_MATRIX_LABELS else whole(labels)


_OF_WHAT: Mapping[str | None, int | None] = {"true": 1, "pred": 0, "all": None}
"""Over which axes of a matrix the records are added up that its shares are of."""


def _sums_of_matrix(matrix: Any, normalize: str) -> Any:
    return matrix.sum(axis=_OF_WHAT[normalize], keepdims=True)


def matrix_shares(counts: Counts, others: Floats | None = None, *, normalize: str | None) -> Any:
    """Return the confusion matrix, or shares of its rows, its columns or all of it.

    With `others`, a matrix too, each cell is compared with the cells of that, not of its own matrix: for
    limits of the shares.
    """
    matrix: Any = counts.matrix
    if normalize is None:
        return matrix
    sums = _sums_of_matrix(matrix if others is None else others, normalize)
    total = sums if others is None else matrix + (sums - others)
    return quotients(matrix, total)


def parts_of_shares(counts: Counts, *, normalize: str) -> tuple[Floats, Floats]:
    """Return each cell, one row after the other, and the others of what its share is of."""
    matrix: Any = counts.matrix
    return matrix.ravel(), (_sums_of_matrix(matrix, normalize) - matrix).ravel()


def sizes_of_shares(counts: Counts, *, normalize: str | None) -> Floats:
    """Return what the cells are divided by; nothing if they are counts."""
    return np.empty(0) if normalize is None else np.ravel(_sums_of_matrix(counts.matrix, normalize))


_TOLD = {
    "precision": ("right", "wrong"),
    "recall": ("right", "missed"),
    "f1": ("right", "errors"),
    "jaccard": ("right", "errors"),
    "specificity": ("right", "missed", "wrong"),
    "selection_rate": ("predicted",),
    "prevalence": ("true",),
}
"""Of each ratio the fewest kinds of counts of a label that tell it."""

_PARTS: Mapping[str, PartsOf] = {
    "precision": lambda counts: (counts.right, counts.wrong),
    "recall": lambda counts: (counts.right, counts.missed),
    "f1": lambda counts: (2 * counts.right, counts.errors),
    "jaccard": lambda counts: (counts.right, counts.errors),
    # each record is a negative of all labels but its own
    "specificity": lambda counts: (counts.n - counts.true - counts.wrong, counts.wrong),
    "selection_rate": lambda counts: (counts.predicted, counts.n - counts.predicted),
    "prevalence": lambda counts: (counts.true, counts.n - counts.true),
}
"""Of each ratio its A and its B for each label."""

SHARES = ("selection_rate", "prevalence")
"""Of all records those that have, or are predicted to have, the label that is asked for."""


@dataclass(frozen=True)
class Ratio:
    """A ratio A / (A + B) of counts of labels, or a mean of such ratios.

    Parameters
    ----------
    kind : str
        One of `_PARTS`.
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
        told = _TOLD[self.kind]
        if self.average == "binary":
            return Layout((*told, "rest"), place=self.place)
        if self._is_accuracy:  # or a function of it
            return right_or_wrong()
        return matrix_layout(self.labels, _TOLD["specificity"] if self.average == "weighted" else told)

    def parts(self, counts: Counts) -> tuple[Floats, Floats]:
        """Return the A and the B of each ratio."""
        a, b = _PARTS[self.kind](counts)
        if self.average == "binary":  # the numbers of the label, where those of others are known too
            own = slice(self.place, self.place + 1) if a.size > 1 else slice(None)
            return a[own], b[own]
        if not self._is_accuracy:
            return a, b
        a, b = a.sum(keepdims=True), b.sum(keepdims=True)
        if self.average == "weighted":
            b = counts.n - a
        elif self.kind == "specificity":
            a = (self.labels - 1) * counts.n - b
        return a, b

    def __call__(self, counts: Counts) -> Any:
        """Return the result, one number unless there is no average."""
        right, others = self.parts(counts)
        # rounding may have left the range; NaN stays
        ratios = np.clip(quotients(right, right + others, self.undefined), 0.0, 1.0)
        if self.average is None:
            return ratios
        return self.mean(ratios, None if self.are_all else counts.true)

    def mean(self, ratios: Floats, weights: Floats | None = None) -> float:
        """Return the result of these ratios, if it is their mean; those that are NaN are left out."""
        defined = ~np.isnan(ratios)
        each = (np.ones_like(ratios) if weights is None else weights)[defined]
        mean = float(np.average(ratios[defined], weights=each)) if each.sum() > 0 else 0.0
        return (mean - self.chance) / (1 - self.chance)

    def rests_on(self, counts: Counts) -> Floats:
        """Return the number of records that each ratio is a share of."""
        if self._is_accuracy and self.kind != "specificity":
            return np.array([counts.n])
        a, b = self.parts(counts)
        return a / (2 if self.kind == "f1" else 1) + b


def sizes_of_labels(counts: Counts) -> Floats:
    """Return how many records have each label, and how many are predicted to have it."""
    return np.r_[counts.true, counts.predicted]


def _dot(a: Floats, b: Floats) -> float:
    """Return the sum of the products: some machines round `a @ b` once, and others at every step."""
    return float((a * b).sum())


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
        costs = np.abs(places[:, np.newaxis] - places) ** (2 if weights == "quadratic" else 1)
        observed = (costs * counts.matrix).sum() * n
        expected = _dot((true[:, np.newaxis] * costs).sum(axis=0), predicted)
    return float(np.clip(1.0 - observed / expected, -1.0, 1.0)) if expected > 0 else 0.0
