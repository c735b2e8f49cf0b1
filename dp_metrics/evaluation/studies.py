"""The studies behind the figures: which tasks each of them has, and which rivals it compares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dp_metrics.evaluation.compared import BETAS, RIVALS, Rival
from dp_metrics.evaluation.datasets import DATASETS, get_dataset
from dp_metrics.evaluation.population import Task

FULL = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0), 100  # epsilons and repeats
QUICK = (0.1, 1.0, 4.0), 10


class StudyError(ValueError):
    """A figure or mechanism is unknown, or nothing is left to do."""


@dataclass(frozen=True)
class Study:
    """What one figure shows: a panel for each task, and in each panel a curve for each rival.

    A study of kind "drawn" draws records, "whole" takes all of them once, "simulated" makes up output bounds,
    and "illustration" only computes laws.
    """

    name: str  # users type this after --figure
    title: str
    tasks: tuple[Task, ...] = ()
    rivals: tuple[Rival, ...] = ()
    kind: Literal["drawn", "whole", "simulated", "illustration"] = "drawn"


_VARIANCE = (
    *(Task(name, "variance", column) for name, dataset in DATASETS.items() for column, _ in dataset.columns),
    Task("synthetic", "variance", "y"),
)
_CLASSIFIED = tuple(Task(name, "log_loss") for name in ("adult", "diabetes", "mnist", "cifar10", "digits"))
_REGRESSED = ("diamonds", "abalone", "bike", "synthetic")
_MSE, _MAE = (tuple(Task(name, metric) for name in _REGRESSED) for metric in ("mse", "mae"))
_ALL = tuple(RIVALS.values())
_WITH_AND_WITHOUT = tuple(
    RIVALS[name].told(bounded=bounded)
    for name in ("adaptive", "hazard", "above_threshold", "paper")
    for bounded in (True, False)
)
_ASYMMETRIC = tuple(RIVALS[name] for name in ("inverse_sensitivity", "paper", "hazard"))

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study("variance", "Variance", _VARIANCE, _ALL),
        Study("cross-entropy", "Cross-entropy (log loss) of classifiers", _CLASSIFIED, _ALL),
        Study("mse", "Mean squared error of regressors", _MSE, _ALL),
        Study("mae", "Mean absolute error of regressors", _MAE, _ALL),
        Study("unbounded", "Variance with and without public bounds", _VARIANCE, _WITH_AND_WITHOUT),
        Study(
            "unbounded-losses", "MSE and MAE with and without public bounds", _MSE + _MAE, _WITH_AND_WITHOUT
        ),
        Study(
            "beta", "AboveThreshold with different ratios beta of consecutive candidates (variance)",
            _VARIANCE, BETAS,
        ),
        Study(
            "asymmetry", "Simulated output bounds: error against the asymmetry of the sensitivities",
            rivals=_ASYMMETRIC, kind="simulated",
        ),
        Study("illustrations", "How the mechanisms choose an output", kind="illustration"),
    )
}  # fmt: skip
"""Every study by name, in the order of the paper's figures."""


def select_studies(figures: Sequence[str], datasets: Sequence[str], mechanisms: Sequence[str]) -> list[Study]:
    """Return the studies that were asked for, reduced to some data sets and mechanisms.

    No figures or no mechanisms: all. A `StudyError` or `DatasetError` says that a name is unknown (and lists
    those that exist) or that nothing is left.
    """
    for what, asked, known in (("figure", figures, STUDIES), ("mechanism", mechanisms, RIVALS)):
        unknown = [name for name in asked if name not in known]
        if unknown:
            raise StudyError(f"unknown {what} {unknown[0]!r}; there are: {', '.join(known)}")
    for name in datasets:
        get_dataset(name)
    chosen = []
    for study in STUDIES.values():
        if figures and study.name not in figures:
            continue
        reduced = replace(
            study,
            tasks=tuple(task for task in study.tasks if task.dataset in datasets),
            rivals=tuple(c for c in study.rivals if not mechanisms or c.mechanism in mechanisms),
        )
        if study.kind == "illustration" or (reduced.rivals and (reduced.tasks or study.kind == "simulated")):
            chosen.append(reduced)
    if not chosen:
        raise StudyError("none of these figures shows any of these data sets with any of these mechanisms")
    return chosen
