"""Whether public rules also hold on tasks that played no part when they were chosen.

The rules: the area under the ROC curve comes from hazard selection with scale 0.01 and the resolution
1 / (m epsilon / 30 + 2.5), m being the noisy size of the smaller class; tables of scores have edges even in
the angle (sin^2), and 1.5 (n epsilon)^(1/3) bins. They were chosen on adult, diabetes, brfss and MNIST 8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from dp_metrics.inputs.epsilon import exact_epsilon
from dp_metrics.mechanisms import Hazard
from dp_metrics.release.parts.nested_table import columns_for
from dp_metrics.release.parts.ranking_loss import (
    HazardByClass,
    RankingDraw,
    RankingLaw,
    RankingLoss,
    RankingOf,
)

from .curves import curve_errors
from .tasks import FRESH, LabelsAndScores, print_table, subsamples

__all__ = ["rules"]

_CHOSEN_ON = ("adult", "diabetes", "brfss", "MNIST 8")
_SIZES = (300, 1000, 3000)
_EPSILONS = (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class HazardRule(HazardByClass):
    """The rule with another constant in place of 30."""

    constant: float = 30.0

    def given(self, smaller: int) -> Hazard:
        """Return the rule for a size of the smaller class."""
        return Hazard(resolution=1 / (smaller * float(self.epsilon) / self.constant + 2.5), scale=self.scale)


def area_error(draw: LabelsAndScores, epsilon: float, scale: float = 0.01, constant: float = 30.0) -> float:
    """Return the mean absolute error of the area under the ROC curve by a rule, from its law."""
    y, score = draw
    query, exact = RankingLoss(RankingOf(1), y == 1, score), exact_epsilon(epsilon)
    rule = HazardRule(scale, exact, query.n, constant)
    bounds = query.output_bounds(rule.finest, rule.hazard_epsilon, private_n=False)
    law = RankingLaw(RankingDraw(bounds, rule, (int(y.sum()),)))
    return float(law.mean_absolute_error(bounds.value))


_SCALES_AND_CONSTANTS = {
    "scale .003": (0.003, 30),
    "scale .03": (0.03, 30),
    "constant 15": (0.01, 15),
    "constant 60": (0.01, 60),
    "scale .03, constant 60": (0.03, 60),
}


def _edges(name: str, columns: int) -> NDArray[np.float64]:
    """Return other edges of so many bins of [0, 1]."""
    steps = np.linspace(0.0, 1.0, columns + 1)
    if name == "probability":
        return steps
    logit = 1.0 / (1.0 + np.exp(-(12.0 * steps[1:-1] - 6.0)))
    return np.r_[0.0, logit, 1.0]


def _bins(columns: int) -> int:
    return int(np.clip(columns, 8, 128))


_TABLES: dict[str, Callable[[int], dict[str, object]]] = {
    "half the bins": lambda columns: {"bins": _bins(columns // 2)},
    "twice the bins": lambda columns: {"bins": _bins(columns * 2)},
    "even in probability": lambda columns: {"edges": _edges("probability", columns)},
    "even in logit": lambda columns: {"edges": _edges("logit", columns)},
}


def rules() -> None:
    """Print errors of other rules relative to those of the rules, on old tasks and on fresh ones."""
    settings = [(n, epsilon) for n in _SIZES for epsilon in _EPSILONS]
    areas: dict[str, list[list[float]]] = {}
    tables: dict[str, list[list[NDArray[np.float64]]]] = {}
    absolute = []
    for task in tqdm((*_CHOSEN_ON, *FRESH)):
        areas[task], tables[task] = [], []
        for n, epsilon in settings:
            draws, columns = subsamples(task, n), columns_for(n, exact_epsilon(epsilon))
            usual = np.mean([area_error(draw, epsilon) for draw in draws])
            table = curve_errors(draws, epsilon)
            others = [
                np.mean([area_error(draw, epsilon, *other) for draw in draws])
                for other in _SCALES_AND_CONSTANTS.values()
            ]
            areas[task].append(list(np.array([table[2], *others]) / usual))
            tables[task].append(
                [curve_errors(draws, epsilon, **options(columns)) / table for options in _TABLES.values()]
            )
            if n == 1000:
                absolute.append([f"{task} {n}", f"{epsilon:g}", f"{usual:.2g}", *_digits(table[[2, 0, 1]])])
    print_table(
        "Errors of the rules", ["task, n", "epsilon", "AUC", "AUC of the table", "AP", "ROC"], absolute
    )
    means = {task: np.exp(np.log(ratios).mean(axis=0)) for task, ratios in areas.items()}
    names = ["table", *_SCALES_AND_CONSTANTS]
    print_table("AUC: error / that of the rule", ["task", *names], _rows(means))
    for place, what in enumerate(("average precision", "ROC curve")):
        means = {
            task: np.exp(np.log(np.array(ratios)[:, :, place]).mean(axis=0))
            for task, ratios in tables.items()
        }
        print_table(f"Table, {what}: error / that of the rule", ["task", *_TABLES], _rows(means))


def _digits(values: Sequence[float]) -> list[str]:
    return [f"{value:.2g}" for value in values]


def _rows(means: dict[str, NDArray[np.float64]]) -> list[list[str]]:
    """Return a row for each task, and the geometric means of the old and the fresh ones."""
    rows = [[task, *_digits(values)] for task, values in means.items()]
    for name, tasks in (("all four old ones", _CHOSEN_ON), ("all three fresh ones", FRESH)):
        together = np.exp(np.mean([np.log(means[task]) for task in tasks], axis=0))
        rows.append([name, *_digits(together)])
    return rows
