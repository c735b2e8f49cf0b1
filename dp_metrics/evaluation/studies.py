"""The studies behind the figures: which tasks, and which curves, each of them has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dp_metrics.evaluation.datasets import DATASETS, get_dataset
from dp_metrics.evaluation.population import Task
from dp_metrics.mechanisms import (
    AboveThreshold,
    Hazard,
    InverseSensitivity,
    Laplace,
    Mechanism,
    PiecewiseLaplace,
)

__all__ = [
    "BETAS",
    "CURVES",
    "EPSILONS",
    "QUICK_EPSILONS",
    "QUICK_REPEATS",
    "REPEATS",
    "STUDIES",
    "Curve",
    "Study",
    "StudyError",
    "select_studies",
    "tasks_of",
]

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
REPEATS = 100
QUICK_EPSILONS = (0.1, 1.0, 4.0)
QUICK_REPEATS = 10
BETAS = (1.001, 1.0025, 1.005, 1.01, 1.02, 1.05)


class StudyError(ValueError):
    """A figure or mechanism is unknown, or nothing is left to do."""


@dataclass(frozen=True)
class Curve:
    """One curve of a study: a mechanism in one setting.

    Attributes
    ----------
    mechanism : str
        Name in tables and plots.
    setting : str
        Tells apart curves of one mechanism; empty where there is one.
    make : Mechanism or None
        The mechanism; None: the clipped mean, which is a function of the records.
    needs_bounds : bool
        Whether it can only serve a metric with a public range.
    bounded : bool
        Whether it is told the public range if there is one.
    """

    mechanism: str
    setting: str
    make: Mechanism | None
    needs_bounds: bool = False
    bounded: bool = True


CURVES: dict[str, Curve] = {
    curve.mechanism: curve
    for curve in (
        Curve("hazard", "", Hazard()),
        Curve("above_threshold", "", AboveThreshold()),
        Curve("paper", "", AboveThreshold.paper()),
        Curve("inverse_sensitivity", "", InverseSensitivity(), needs_bounds=True),
        Curve("piecewise_laplace", "", PiecewiseLaplace(), needs_bounds=True),
        Curve("laplace", "", Laplace(), needs_bounds=True),
        Curve("clipped_mean", "", None, needs_bounds=True),
    )
}
"""What is compared, in the order of tables and plots."""


@dataclass(frozen=True)
class Study:
    """What one figure shows.

    Attributes
    ----------
    name : str
        As typed after ``--figure``.
    title : str
        Heading.
    claim : str
        What the paper says about it.
    tasks : tuple of Task
        One panel each.
    curves : tuple of Curve
        What is compared in every panel.
    kind : {"protocol", "simulated", "illustration"}
        Whether it draws records, simulates output bounds, or only computes laws.
    """

    name: str
    title: str
    claim: str
    tasks: tuple[Task, ...] = ()
    curves: tuple[Curve, ...] = ()
    kind: Literal["protocol", "simulated", "illustration"] = "protocol"


_VARIANCE = (
    *(Task(name, "variance", column) for name, dataset in DATASETS.items() for column, _ in dataset.columns),
    Task("synthetic", "variance", "y"),
)
_REGRESSION = ("diamonds", "abalone", "bike", "synthetic")
_ALL = tuple(CURVES.values())
_WITH_AND_WITHOUT = tuple(
    replace(CURVES[name], setting=setting, bounded=setting == "bounded")
    for name in ("hazard", "above_threshold", "paper")
    for setting in ("bounded", "unbounded")
)

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "variance", "Variance",
            "the asymmetric mechanism has substantially less error than inverse sensitivity, at every "
            "epsilon and on every data set",
            _VARIANCE, _ALL,
        ),
        Study(
            "cross-entropy", "Cross-entropy (log loss) of classifiers",
            "the asymmetric mechanism has less error than inverse sensitivity",
            tuple(Task(name, "log_loss") for name in ("adult", "diabetes", "mnist", "cifar10", "digits")),
            _ALL,
        ),
        Study(
            "mse", "Mean squared error of regressors",
            "the asymmetric mechanism has less error than inverse sensitivity",
            tuple(Task(name, "mse") for name in _REGRESSION), _ALL,
        ),
        Study(
            "mae", "Mean absolute error of regressors",
            "the asymmetric mechanism has less error than inverse sensitivity",
            tuple(Task(name, "mae") for name in _REGRESSION), _ALL,
        ),
        Study(
            "unbounded", "Variance with and without public bounds",
            "going without bounds costs the asymmetric mechanism hardly any accuracy",
            _VARIANCE, _WITH_AND_WITHOUT,
        ),
        Study(
            "unbounded-losses", "MSE and MAE with and without public bounds",
            "(for variance only) going without bounds costs the asymmetric mechanism hardly any accuracy",
            tuple(Task(name, metric) for metric in ("mse", "mae") for name in _REGRESSION), _WITH_AND_WITHOUT,
        ),
        Study(
            "beta", "AboveThreshold with different ratios beta of consecutive candidates (variance)",
            "accuracy hardly depends on beta, and 1.01 would have been a little better than 1.005",
            _VARIANCE,
            tuple(
                Curve("paper", f"beta={beta:g}", replace(AboveThreshold.paper(), beta=beta)) for beta in BETAS
            ),
        ),
        Study(
            "asymmetry", "Simulated output bounds: what asymmetry is worth",
            "the more asymmetric the sensitivities, the larger the error of inverse sensitivity against that "
            "of the asymmetric mechanism",
            kind="simulated",
            curves=tuple(CURVES[name] for name in ("inverse_sensitivity", "paper", "hazard")),
        ),
        Study(
            "illustrations", "How the mechanisms choose an output",
            "with symmetric sensitivities the two are close; with asymmetric ones the asymmetric mechanism "
            "concentrates just below the true value",
            kind="illustration",
        ),
    )
}  # fmt: skip
"""Every study by name, in the order of the paper's figures."""


def select_studies(figures: Sequence[str], datasets: Sequence[str], mechanisms: Sequence[str]) -> list[Study]:
    """Return the studies that were asked for, reduced to some data sets and mechanisms.

    Parameters
    ----------
    figures : sequence of str
        Names in `STUDIES`; empty: all.
    datasets : sequence of str
        Names of data sets.
    mechanisms : sequence of str
        Names in `CURVES`; empty: all.

    Raises
    ------
    StudyError, DatasetError
        If a name is unknown (the message lists those that exist) or nothing is left.
    """
    for what, asked, known in (("figure", figures, STUDIES), ("mechanism", mechanisms, CURVES)):
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
            curves=tuple(c for c in study.curves if not mechanisms or c.mechanism in mechanisms),
        )
        if study.kind == "illustration" or (reduced.curves and (reduced.tasks or study.kind == "simulated")):
            chosen.append(reduced)
    if not chosen:
        raise StudyError("none of these figures shows any of these data sets with any of these mechanisms")
    return chosen


def tasks_of(studies: Iterable[Study]) -> list[Task]:
    """Return the tasks of all studies, each once."""
    return list(dict.fromkeys(task for study in studies for task in study.tasks))
