"""Print what private metrics of classifiers cost: time beside scikit-learn's functions.

Run `python benchmarks/speed_of_classifiers.py [--quick]`. Times are medians, and calls take turns.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from peers import medians
from sklearn import metrics as sk
from tables import print_table
from tqdm import tqdm

import dp_metrics as dp

EPSILONS = (0.1, 1.0, 3.0)
Call = Callable[[], Any]


def print_times(title: str, calls: dict[str, tuple[Call, Call]], repeats: int) -> None:
    """Print the times of pairs of calls."""
    rows = []
    for name, (private, plain) in tqdm(calls.items(), leave=False, disable=None):
        ours, theirs = medians([private, plain], repeats)
        rows.append([name, f"{1000 * ours:.3g}", f"{1000 * theirs:.3g}", f"{ours / theirs:.2g}"])
    print_table(title, ["release", "ms", "scikit-learn, ms", "times"], rows)


def of_labels(n: int) -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.3).astype(np.int64)
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


def of_areas(n: int) -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.25).astype(np.int64)
    score = rng.normal(y)
    return {
        f"epsilon {epsilon:g}, {relation}": (
            lambda e=epsilon, r=relation: dp.private_roc_auc_score(y, score, epsilon=e, neighboring=r),
            lambda: sk.roc_auc_score(y, score),
        )
        for epsilon in EPSILONS
        for relation in ("replace_one", "add_or_remove_one")
    }


def of_curves(n: int) -> dict[str, tuple[Call, Call]]:
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
        for epsilon in EPSILONS[:2]
    }


def of_many_labels(n: int) -> dict[str, tuple[Call, Call]]:
    rng = np.random.default_rng(0)
    labels = np.arange(1000)
    y = rng.integers(0, 1000, n)
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


def main() -> None:
    """Print times of labels, of the area under the ROC curve, of curves, and of many labels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 records, and one call of each")
    is_quick = parser.parse_args().quick
    sizes, repeats = ((1_000,), 1) if is_quick else ((1_000, 100_000, 1_000_000), 9)
    n = min(100_000, max(sizes))
    print_times(f"Metrics of labels, n = {n:,}, two classes", of_labels(n), repeats)
    print_times(f"Area under the ROC curve, n = {n:,}", of_areas(n), repeats)
    for size in sizes:
        print_times(f"Curves, n = {size:,}", of_curves(size), repeats)
    print_times(f"1,000 labels, n = {n:,}, epsilon 1", of_many_labels(n), repeats)


if __name__ == "__main__":
    main()
