"""Tables of metrics of predicted labels, beside other designs of the same privacy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk
from tqdm import tqdm

from dp_metrics.inputs.epsilon import exact_epsilon
from dp_metrics.mechanisms import Hazard
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.labels.counts import Confusion, confusion_for
from dp_metrics.metrics.labels.layouts import whole

from .tasks import compared, noise_of, print_table, subsamples

__all__ = ["Design", "confusions", "counts", "labels_of", "mean_error"]

_EPSILONS = (0.1, 0.3, 1.0, 3.0)
_SIZES = (300, 1000, 3000, 10_000)
_RELEASES = 300  # of each subsample


@dataclass(frozen=True)
class Design:
    """How a metric of labels comes from noisy counts.

    Parameters
    ----------
    metric : str
        The private metric, of which this is the usual design.
    options : dict
        Its options.
    is_matrix : bool
        Whether to read the metric off a noisy confusion matrix instead.
    is_obvious : bool
        Whether the cells of the matrix have independent noise, and those below 0 become 0.
    private_n : bool
        Whether the number of records is private.
    """

    metric: str
    options: dict[str, Any]
    is_matrix: bool = False
    is_obvious: bool = False
    private_n: bool = False

    def confusion(self) -> Confusion:
        """Return what is counted, and what is made of it."""
        planned = confusion_for(METRICS[self.metric], self.options)
        is_matrix = self.is_matrix or self.is_obvious
        return replace(planned, layout=whole(planned.labels.size)) if is_matrix else planned

    def errors(self, matrix: NDArray[np.int64], epsilon: float, times: int, seed: int) -> NDArray[np.float64]:
        """Return errors of releases with simulated noise, from an exact confusion matrix."""
        confusion = self.confusion()
        table, layout = confusion.table(matrix), confusion.layout
        draw = table.prepare(Hazard(), exact_epsilon(epsilon), private_n=self.private_n)
        if self.is_obvious:
            draw = replace(draw, zero_sum=False)
        n = None if self.is_obvious or self.private_n else table.n  # of four cells, those below 0 become 0
        noisy = table.counts + noise_of(draw, times, seed)
        exact = confusion.formula(layout.read(table.counts.astype(np.float64)))
        values = [confusion.formula(layout.counts(x, n)) for x in noisy]
        return np.array(values) - exact


def mean_error(
    design: Design, matrices: Sequence[NDArray[np.int64]], epsilon: float, times: int = _RELEASES
) -> float:
    """Return the mean absolute error over subsamples."""
    found = [design.errors(matrix, epsilon, times, seed) for seed, matrix in enumerate(matrices)]
    return float(np.abs(found).mean())


_F1, _RECALL, _PRECISION, _MATTHEWS = (
    f"private_{name}" for name in ("f1_score", "recall_score", "precision_score", "matthews_corrcoef")
)
_BINARY = {
    "F1": Design(_F1, {}),
    "obvious F1": Design(_F1, {}, is_obvious=True),
    "recall": Design(_RECALL, {}),
    "precision": Design(_PRECISION, {}),
    "MCC": Design(_MATTHEWS, {}),
}
_REFERENCE = {
    "adult": ".037 .012 .0034 .00056 | .059 .020 .0059 .0017 | .052 .017 .0048 .00079"
    " | .063 .021 .0059 .00096 | .056 .018 .0055 .0010",
    "diabetes": ".12 .039 .011 .0018 | .17 .059 .019 .0056 | .15 .053 .015 .0025"
    " | .14 .059 .022 .0037 | .14 .046 .015 .0031",
    "brfss": ".11 .041 .012 .0018 | .14 .059 .017 .0045 | .085 .031 .0088 .0014"
    " | .24 .094 .027 .0044 | .14 .059 .017 .0033",
}
"""With 1,000 records, for each column of the table, the mean absolute error at each epsilon."""

_REFERENCE_AT_ONE = {
    "adult": {300: (".011", ".018"), 3000: (".0011", ".0018"), 10_000: (".00033", ".00053")},
    "diabetes": {300: (".035", ".044"), 3000: (".0029", ".0044"), 10_000: (".00091", ".0013")},
    "brfss": {300: (".038", ".054"), 3000: (".0039", ".0055"), 10_000: (".0011", ".0016")},
}
"""With other numbers of records, the errors of F1 and MCC at epsilon 1."""

_MANY = {
    "macro F1": Design(_F1, {"labels": range(10), "average": "macro"}),
    "macro recall": Design("private_balanced_accuracy_score", {"labels": range(10)}),
    "weighted precision": Design(_PRECISION, {"labels": range(10), "average": "weighted"}),
    "kappa": Design("private_cohen_kappa_score", {"labels": range(10)}),
    "accuracy": Design(_RECALL, {"labels": range(10), "average": "micro"}),
}
_MANY_REFERENCE = {
    "macro F1": (".024 .0064 .0022 .00070", ".073 .017 .0035 .00077"),
    "macro recall": (".016 .0046 .0018 .00052", ".069 .016 .0034 .00076"),
    "weighted precision": ("- - - -", "- - - -"),
    "kappa": (".022 .0077 .0025 .00073", ".084 .019 .0040 .00086"),
    "accuracy": (".0029 .00082 .00027 .00009", "- .017 - -"),
    "macro F1, 30 % random": (".019 .0053 .0018 .00054", ".033 .0068 .0021 .00067"),
}
"""Errors at epsilon 1 for each number of records: of the metric, and read off the matrix."""


def labels_of(proba: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the labels that a model predicts."""
    return np.asarray(proba.argmax(axis=1) if proba.ndim > 1 else proba > 0.5).astype(np.int64)


def confusions(task: str, n: int, guessed: float = 0.0) -> list[NDArray[np.int64]]:
    """Return the confusion matrices of subsamples, with a share of the predictions made random."""
    found = []
    for seed, (y, proba) in enumerate(subsamples(task, n)):
        rng, pred = np.random.default_rng(seed), labels_of(proba)
        size = proba.shape[1] if proba.ndim > 1 else 2
        pred = np.where(rng.random(n) < guessed, rng.integers(0, size, n), pred)
        found.append(sk.confusion_matrix(y, pred, labels=range(size)))
    return found


def counts() -> None:
    """Print errors of metrics of labels: of two classes, and of the ten digits."""
    _two_classes()
    _ten_classes()
    _private_n()


def _two_classes() -> None:
    rows, gains = [], []
    for task in tqdm(_REFERENCE):
        for n in _SIZES:
            matrices = confusions(task, n)
            found = [[mean_error(d, matrices, e) for e in _EPSILONS] for d in _BINARY.values()]
            rows.append([f"{task} {n}", *map(_cell, found, _binary_references(task, n))])
            if n == 1000:
                gains.append(np.array(found[1]) / found[0])
    header = ["task, n", *_BINARY]
    print_table(f"Errors at epsilon {', '.join(map(str, _EPSILONS))}", header, rows)
    means = [f"{mean:.2f}" for mean in np.exp(np.log(gains).mean(axis=0))]
    wide = "error of the obvious F1 / error of F1, n = 1000, geometric mean of the tasks"
    print(f"\n{wide}, at each epsilon: {', '.join(means)}")


def _binary_references(task: str, n: int) -> list[list[str]]:
    """Return a reference, or "-", for each epsilon of each column."""
    if n == 1000:
        return [cell.split() for cell in _REFERENCE[task].split("|")]
    known = dict(zip(("F1", "MCC"), _REFERENCE_AT_ONE[task][n], strict=True))
    return [["-", "-", known.get(name, "-"), "-"] for name in _BINARY]


def _cell(values: Sequence[float], references: Sequence[str]) -> str:
    pairs = zip(values, references, strict=True)
    return " / ".join(f"{value:.2g}" if known == "-" else compared(value, known) for value, known in pairs)


def _ten_classes() -> None:
    rows = []
    for name, (known, known_matrix) in tqdm(_MANY_REFERENCE.items()):
        usual = _MANY[name.partition(",")[0]]
        several = [confusions("MNIST", n, 0.3 if "random" in name else 0.0) for n in _SIZES]
        cells = [
            _cell([mean_error(design, matrices, 1.0, 60) for matrices in several], references.split())
            for design, references in ((usual, known), (replace(usual, is_matrix=True), known_matrix))
        ]
        rows.append([name, *cells])
    title = f"MNIST, 10 digits, epsilon 1: errors with n = {', '.join(map(str, _SIZES))}"
    print_table(title, ["metric", "the metric itself", "read off the noisy matrix"], rows)


def _private_n() -> None:
    """Print errors where the number of records is private: of clamped counts, and with a noisy total."""
    rows = []
    designs = {
        "adult, F1": _BINARY["F1"],
        "adult, MCC": _BINARY["MCC"],
        **{f"MNIST, {name}": _MANY[name] for name in ("macro F1", "macro recall", "kappa")},
        "MNIST, kappa off the matrix": replace(_MANY["kappa"], is_matrix=True),
    }
    for name, design in tqdm(designs.items()):
        several = [confusions(name.partition(",")[0], n) for n in _SIZES]
        own = replace(design, private_n=True)
        found = [mean_error(own, matrices, 1.0, 60) for matrices in several]
        rows.append([name, " / ".join(f"{value:.2g}" for value in found)])
    title = f"A private number of records, epsilon 1: errors with n = {', '.join(map(str, _SIZES))}"
    print_table(title, ["metric", "error"], rows)
