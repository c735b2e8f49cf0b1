"""Formulas of the metrics of predicted labels, and the fewest counts that determine each."""

import math
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.labels.layouts import (
    MOST_MATRIX_LABELS,
    Counts,
    Layout,
    matrix_layout,
    of_each_label,
    of_one_label,
    right_or_wrong,
    whole,
)

Average: TypeAlias = str | None


def normalized(counts: Counts, *, normalize: str | None, others: Floats | None = None) -> Floats:
    """Return the matrix, or shares of its rows, its columns or all of it.

    With `others`, a matrix too, each cell is compared with the cells of that, not of its own matrix: for
    limits of the shares.
    """
    matrix = counts.matrix
    assert matrix is not None
    if normalize is None:
        return matrix
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    total = (matrix if others is None else others).sum(axis=axis, keepdims=True)
    if others is not None:
        total = matrix + (total - others)
    shares: Floats = np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)
    return shares


_RATIOS = {"precision": (1, "wrong"), "recall": (1, "missed"), "f1": (2, "either"), "jaccard": (1, "either")}
"""How often what is right counts, and the errors that it is compared with."""


def ratio_layout(kind: str, average: Average, labels: int, place: int) -> Layout:
    """Return the fewest counts that determine a ratio; see tables of counts in the documentation's theory."""
    errors = _RATIOS[kind][1]
    if average == "binary":
        return of_one_label(place, errors)
    if average == "micro" or (average == "weighted" and kind == "recall"):  # accuracy, or a function of it
        return right_or_wrong()
    if average == "weighted":
        return matrix_layout(labels)
    if errors == "either" and labels <= MOST_MATRIX_LABELS:
        return whole(labels)
    return of_each_label(labels, errors)


def parts_of_ratio(
    counts: Counts, *, kind: str, average: Average = "macro", place: int = 0
) -> tuple[Floats, Floats]:
    """Return the A and the B of each ratio A / (A + B)."""
    factor, errors = _RATIOS[kind]
    right, others = factor * counts.right, counts.errors_of(errors)
    if average == "binary" and right.size > 1:
        return right[place : place + 1], others[place : place + 1]
    if average == "micro":
        return right.sum(keepdims=True), others.sum(keepdims=True)
    if average == "weighted" and kind == "recall":
        return right.sum(keepdims=True), counts.n - right.sum(keepdims=True)
    return right, others


def ratio(
    counts: Counts, *, kind: str, average: Average = "macro", place: int = 0, undefined: float = 0.0
) -> Any:
    """Return a ratio of the labels, one number unless `average` is None."""
    right, others = parts_of_ratio(counts, kind=kind, average=average, place=place)
    ratios = quotients(right, right + others, undefined)
    if average is None:
        return ratios
    weights = counts.true if average == "weighted" and kind != "recall" else np.ones_like(ratios)
    return weighted_mean(ratios, weights)


def rests_on(counts: Counts, *, kind: str, average: Average = "macro", place: int = 0) -> Floats:
    """Return the number of records that each quotient of `ratio` is a share of."""
    if average == "micro" or (average == "weighted" and kind == "recall"):
        return np.array([counts.n])
    right, others = parts_of_ratio(counts, kind=kind, average=average, place=place)
    records: Floats = right / _RATIOS[kind][0] + others
    return records


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
    total = weights[defined].sum()
    if not total > 0:
        return 0.0
    return _dot(weights[defined], values[defined]) / float(total)


def mean_above_chance(ratios: Floats, *, chance: float = 0.0) -> float:
    """Return the mean, with this one shifted to 0."""
    return float((ratios.mean() - chance) / (1 - chance))


def balanced(counts: Counts, *, chance: float, undefined: float) -> float:
    """Return the mean recall, with this recall shifted to 0."""
    score = ratio(counts, kind="recall", average="macro", place=0, undefined=undefined)
    return float((score - chance) / (1 - chance))


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
