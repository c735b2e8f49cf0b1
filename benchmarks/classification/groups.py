"""Tables of metrics by group, of the model of adult: by sex, and by race with its small groups."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics._random import SeededEntropy

from .counts import labels_of
from .tasks import chosen_rows, compared, member_of, print_table, scored

__all__ = ["groups"]

_RELEASES = 20  # of each subsample
_SIZES = (300, 1000, 10_000)
_EPSILONS = (0.3, 1.0, 3.0)
_GAPS = ("selection rate", "TPR", "FPR")
_REFERENCE = {
    300: (".024", ".12", ".019"),
    1000: (".0080", ".041", ".0071"),
    10_000: (".0008", ".0040", ".0007"),
}
"""Errors of the gaps by sex at epsilon 1."""


def rates(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return selection rate, true and false positive rate of a confusion matrix; 0 for 0/0."""
    above = np.array([matrix[:, 1].sum(), matrix[1, 1], matrix[0, 1]])
    below = np.array([matrix.sum(), matrix[1].sum(), matrix[0].sum()])
    return np.divide(above, below, out=np.zeros(3), where=below > 0)


def gaps(matrices: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the largest differences of `rates` between groups, of a matrix for each."""
    of_groups = np.array([rates(np.asarray(matrix, dtype=np.float64)) for matrix in matrices])
    return np.asarray(of_groups.max(axis=0) - of_groups.min(axis=0))


def groups() -> None:
    """Print the errors of gaps between groups, and how far upwards they err."""
    for column in ("sex", "race"):
        rows = []
        for n in tqdm(_SIZES):
            for epsilon in _EPSILONS:
                exact, errors, smallest = _measured(column, n, epsilon)
                known = _REFERENCE[n] if column == "sex" and epsilon == 1 else None
                mean = np.abs(errors).mean(axis=0)
                cells = [f"{value:.2g}" for value in mean]
                if known:
                    cells = [compared(*pair) for pair in zip(mean, known, strict=True)]
                pairs = zip(exact, cells, errors.mean(axis=0), strict=True)
                cells = [f"{truth:.2g}: {cell}, {bias:+.2g}" for truth, cell, bias in pairs]
                rows.append([f"{n:,}", f"{smallest:.0f}", f"{epsilon:g}", *cells])
        title = f"Gaps by {column}; exact value: mean absolute error, bias"
        print_table(title, ["n", "smallest group", "epsilon", *_GAPS], rows)


def _measured(column: str, n: int, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the mean of the exact gaps, errors of releases, and the mean size of the smallest group."""
    y, proba = scored("adult")
    pred, group = labels_of(proba), member_of("adult", column)
    labels = sorted({*group})
    exact, errors, smallest, entropy = [], [], [], SeededEntropy(0)
    for rows in chosen_rows("adult", n):
        of_group = [rows[group[rows] == label] for label in labels]
        truth = gaps([np.bincount(2 * y[at] + pred[at], minlength=4).reshape(2, 2) for at in of_group])
        exact.append(truth)
        smallest.append(min(map(len, of_group)))
        for _ in range(_RELEASES):
            frame = dp.PrivateMetricFrame(
                metrics=dp.private_confusion_matrix,
                y_true=y[rows],
                y_pred=pred[rows],
                sensitive_features=group[rows],
                group_labels=labels,
                epsilon=epsilon,
                random_state=entropy,
            )
            errors.append(gaps(list(frame.by_group.values())) - truth)
    return np.mean(exact, axis=0), np.array(errors), float(np.mean(smallest))
