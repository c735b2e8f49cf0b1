"""Real tasks, models of them, and the records that the tables of `classifiers.py` are about."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from dp_metrics._random import made_up
from dp_metrics.evaluation.datasets import get_dataset
from dp_metrics.evaluation.sources import Dataset, read_table_data, table_of
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.noise import CountsNoise

__all__ = [
    "FRESH",
    "SUBSAMPLES",
    "LabelsAndScores",
    "chosen_rows",
    "compared",
    "member_of",
    "noise_of",
    "print_table",
    "scored",
    "subsamples",
]

SUBSAMPLES = 20
FRESH = ("bike", "MNIST 3 or 5", "diamonds")
"""Tasks on which no public rule was chosen."""

LabelsAndScores: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]

_KEPT = Path(tempfile.gettempdir()) / "dp_metrics_classifiers"
_SPLIT = {"test_size": 0.4, "random_state": 0}
_CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")


@dataclass(frozen=True)
class Task:
    """A data set and what is asked about it.

    Parameters
    ----------
    dataset : Dataset
        What is read.
    is_positive : callable or None
        Whether a record is positive, from all targets; None: the target is the class.
    only : tuple
        The targets whose records are used; empty for all.
    """

    dataset: Dataset
    is_positive: Callable[[Any], Any] | None = None
    only: tuple[int, ...] = ()


_TASKS = {
    "adult": Task(get_dataset("adult")),
    "diabetes": Task(get_dataset("diabetes")),
    "brfss": Task(
        Dataset(
            "brfss", "binary", "Diabetes_binary", 253_680, "UCI no. 891, doi 10.24432/C53919",
            "CC0", read_table_data, file_name="diabetes_brfss2015.csv.gz", classes=("0.0", "1.0"),
        )
    ),
    "MNIST 8": Task(get_dataset("mnist"), lambda digit: digit == 8),
    "MNIST": Task(get_dataset("mnist")),
    "bike": Task(get_dataset("bike"), lambda count: count > np.median(count)),
    "MNIST 3 or 5": Task(get_dataset("mnist"), lambda digit: digit == 5, only=(3, 5)),
    "diamonds": Task(
        replace(get_dataset("diamonds"), target="cut", classes=_CUTS), lambda cut: cut == len(_CUTS) - 1
    ),
}  # fmt: skip


@cache
def scored(task: str) -> LabelsAndScores:
    """Return the labels of the held-out records of a task, and a model's probabilities.

    Of two classes the labels are 0 and 1, and the probabilities those of 1. Models are xgboost with 100
    rounds, trained on 60 %; what they say is kept in a folder, so that another run trains none.
    """
    path = _KEPT / f"{task.replace(' ', '_')}.npz"
    if not path.exists():
        y, proba = _trained(_TASKS[task])
        _KEPT.mkdir(exist_ok=True)
        np.savez_compressed(path, y=y, proba=proba)
    with np.load(path) as kept:
        return kept["y"], kept["proba"]


def _trained(task: Task) -> LabelsAndScores:
    from xgboost import XGBClassifier

    features, target = task.dataset.loader(task.dataset, None)
    if task.dataset.shape:
        features = np.reshape(features, (len(features), -1))
    if task.only:
        used = np.isin(target, task.only)
        features, target = features[used], target[used]
    y = np.asarray(task.is_positive(target) if task.is_positive else target).astype(np.int64)
    x_train, x_test, y_train, y_test = train_test_split(features, y, **_SPLIT)
    proba = XGBClassifier(n_estimators=100, n_jobs=1).fit(x_train, y_train).predict_proba(x_test)
    return y_test, (proba[:, 1] if proba.shape[1] == 2 else proba).astype(np.float64)


def noise_of(draw: VectorDraw, times: int, seed: int) -> NDArray[np.float64]:
    """Return draws of the noise of a table, a row each: of the law of a release, but in floats."""
    return CountsNoise((0,) * len(draw.values), draw.rates, draw.zero_sum).simulated(made_up(seed), times)


@cache
def member_of(task: str, column: str) -> NDArray[Any]:
    """Return the group, by a column of the table, of each held-out record of a task."""
    groups = table_of(_TASKS[task].dataset, None)[column].to_numpy()
    return np.asarray(train_test_split(groups, **_SPLIT)[1])


def chosen_rows(task: str, n: int, times: int = SUBSAMPLES) -> list[NDArray[np.intp]]:
    """Return the places of so many records, drawn without replacement a few times: always the same ones."""
    records = len(scored(task)[0])
    return [np.random.default_rng(seed).permutation(records)[:n] for seed in range(times)]


def subsamples(task: str, n: int, times: int = SUBSAMPLES) -> list[LabelsAndScores]:
    """Return the labels and probabilities of `chosen_rows`."""
    y, proba = scored(task)
    return [(y[rows], proba[rows]) for rows in chosen_rows(task, n, times)]


def compared(value: float, reference: str) -> str:
    """Return a number beside its reference."""
    apart = abs(value / float(reference) - 1) > 0.25
    return f"{value:.2g} ({reference}){'*' if apart else ''}"


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    lines = [header, ["---"] * len(header), *rows]
    print(f"\n{title}\n", *("| " + " | ".join(line) + " |" for line in lines), sep="\n", flush=True)
