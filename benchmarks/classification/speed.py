"""Tables of time: of private metrics of classifiers, beside scikit-learn's functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
from peers import medians
from sklearn import metrics as sk
from tqdm import tqdm

import dp_metrics as dp

from .tasks import print_table

__all__ = ["speed"]

_REPEATS = 9
_EPSILONS = (0.1, 1.0, 3.0)
Call = Callable[[], Any]


def speed() -> None:
    """Print times of labels, of the area under the ROC curve, of curves, and of many labels."""
    _print("Metrics of labels, n = 100,000, two classes", _of_labels())
    _print("Area under the ROC curve, n = 100,000", _of_areas())
    for n in (1000, 100_000, 1_000_000):
        _print(f"Curves, n = {n:,}", _of_curves(n))
    _print("1,000 labels, n = 100,000, epsilon 1", _of_many_labels())


def _print(title: str, calls: dict[str, tuple[Call, Call]]) -> None:
    rows = []
    for name, (private, plain) in tqdm(calls.items(), leave=False):
        ours, theirs = medians([private, plain], _REPEATS)
        rows.append([name, f"{1000 * ours:.3g}", f"{1000 * theirs:.3g}", f"{ours / theirs:.2g}"])
    print_table(title, ["release", "ms", "scikit-learn, ms", "times"], rows)


def _of_labels() -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    y = (rng.random(100_000) < 0.3).astype(np.int64)
    pred = np.where(rng.random(y.size) < 0.1, 1 - y, y)
    names = np.array(["ham", "spam"])
    texts, said, labels = names[y], names[pred], ["ham", "spam"]
    twins = {
        "confusion_matrix": (dp.private_confusion_matrix, sk.confusion_matrix),
        "recall_score": (dp.private_recall_score, sk.recall_score),
        "f1_score": (dp.private_f1_score, sk.f1_score),
        "matthews_corrcoef": (dp.private_matthews_corrcoef, sk.matthews_corrcoef),
        "balanced_accuracy_score": (dp.private_balanced_accuracy_score, sk.balanced_accuracy_score),
        "classification_report": (dp.private_classification_report, sk.classification_report),
    }
    calls: dict[str, tuple[Call, Call]] = {
        name: (lambda own=own: own(y, pred, epsilon=1.0), lambda twin=twin: twin(y, pred))
        for name, (own, twin) in twins.items()
    }
    calls["confusion_matrix, strings"] = (
        lambda: dp.private_confusion_matrix(texts, said, epsilon=1.0, labels=labels),
        lambda: sk.confusion_matrix(texts, said, labels=labels),
    )
    return calls


def _of_areas() -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    y = (rng.random(100_000) < 0.25).astype(np.int64)
    score = rng.normal(y)
    return {
        f"epsilon {epsilon:g}, {relation}": (
            lambda e=epsilon, r=relation: dp.private_roc_auc_score(y, score, epsilon=e, neighboring=r),
            lambda: sk.roc_auc_score(y, score),
        )
        for epsilon in _EPSILONS
        for relation in ("replace_one", "add_or_remove_one")
    }


def _of_curves(n: int) -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 2, n)
    y = (rng.random(n) < score).astype(np.int64)
    twins = {
        "roc_curve": (dp.private_roc_curve, sk.roc_curve),
        "precision_recall_curve": (dp.private_precision_recall_curve, sk.precision_recall_curve),
        "average_precision_score": (dp.private_average_precision_score, sk.average_precision_score),
    }
    return {
        f"{name}, epsilon {epsilon:g}": (
            lambda own=own, e=epsilon: own(y, score, epsilon=e),
            lambda twin=twin: twin(y, score),
        )
        for name, (own, twin) in twins.items()
        for epsilon in _EPSILONS[:2]
    }


def _of_many_labels() -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    labels = np.arange(1000)
    y = rng.integers(0, 1000, 100_000)
    pred = np.where(rng.random(y.size) < 0.1, rng.integers(0, 1000, y.size), y)
    macro = {"labels": labels, "average": "macro"}
    return {
        "confusion_matrix": (
            lambda: dp.private_confusion_matrix(y, pred, epsilon=1.0, labels=labels),
            lambda: sk.confusion_matrix(y, pred, labels=labels),
        ),
        "f1_score, macro": (
            lambda: dp.private_f1_score(y, pred, epsilon=1.0, **macro),
            lambda: sk.f1_score(y, pred, zero_division=0, **macro),
        ),
    }
