"""Tables of `coverage.py` about intervals that cost nothing: ratios, means over labels, areas, gaps, bands.

Everything is released by the public functions, on records drawn with replacement from a population whose
metric is known: a law, or the held-out part of a real data set with the predictions of xgboost.
"""

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from classification.tasks import UNSEEN, member_of, print_table, scored
from scipy.stats import norm
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics.exceptions import NoisyReleaseWarning
from dp_metrics.metrics.scores.curve_formulas import ScoreCounts, roc

__all__ = ["areas", "bands", "gaps", "labels", "ratios"]

Records: TypeAlias = tuple[np.ndarray, np.ndarray]

_BANDS = (10, 30, 100, 300, 1000, 3000)  # of records that count, times epsilon


@dataclass
class Cells:
    """What happened in cells of a table, by kind of interval and by how many records count, times epsilon."""

    found: dict[tuple[str, int], list[tuple[int, int, int, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(
        self, kind: str, counting: float, draws: Sequence[tuple[bool, float] | None], without: float
    ) -> None:
        """Add a cell: whether each interval covered and its width, None where none was given."""
        given = [draw for draw in draws if draw is not None]
        width = float(np.mean([wide for _, wide in given])) if given else float("nan")
        hits = sum(covered for covered, _ in given)
        band = int(np.searchsorted(_BANDS, counting, side="right"))
        self.found[kind, band].append((len(draws), len(given), hits, width, without))

    def print(self, title: str) -> None:
        """Print a row for each kind and band."""
        names = [
            "below 10",
            *(f"{a}-{b}" for a, b in pairwise(_BANDS)),
            f"{_BANDS[-1]}-",
        ]
        rows = []
        for (kind, band), cells in sorted(self.found.items()):
            draws, given, hits = (sum(cell[place] for cell in cells) for place in range(3))
            shares = [cell[2] / cell[1] for cell in cells if cell[1] >= 20]
            # how many standard errors a cell lies below 95 %
            short = [
                (0.95 - cell[2] / cell[1]) / (0.95 * 0.05 / cell[1]) ** 0.5 for cell in cells if cell[1] >= 20
            ]
            ratios = [cell[3] / cell[4] for cell in cells if cell[1] and cell[4] > 0]
            rows.append([
                kind, names[band], str(len(cells)), f"{hits / given:.3f}" if given else "",
                f"{min(shares):.3f}" if shares else "", f"{max(short):.1f}" if short else "",
                f"{1 - given / draws:.2f}", f"{np.mean(ratios):.2f}" if ratios else "",
            ])  # fmt: skip
        print_table(
            title,
            [
                "interval",
                "records x epsilon",
                "cells",
                "coverage",
                "least",
                "s.e. below .95",
                "refused",
                "width",
            ],
            rows,
        )


def asked(release: Callable[[], Any], truth: float, way: str) -> tuple[bool, float] | None:
    """Return whether an interval covers and its width; None if there is none."""
    try:
        lower, upper = release().population_interval(method=way)
    except ValueError:
        return None
    return bool(lower <= truth <= upper), float(upper - lower)


def released(metric: Callable[..., Any], data: Sequence[np.ndarray], epsilon: float, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyReleaseWarning)
        return dp.with_result(metric)(*data, epsilon=epsilon, **options)


def samples(population: Sequence[np.ndarray], n: int, draws: int) -> Iterator[list[np.ndarray]]:
    """Yield records that are drawn with replacement."""
    rng = np.random.default_rng(n)
    for _ in range(draws):
        rows = rng.integers(population[0].size, size=n)
        yield [array[rows] for array in population]


def without_noise(metric: Callable[..., Any], population: Sequence[np.ndarray], n: int, way: str) -> float:
    """Return the mean width of the interval where epsilon is huge."""
    widths = []
    for data in samples(population, n, 5):
        found = asked(partial(released, metric, data, 1e6), 0.0, way)
        widths.append(np.nan if found is None else found[1])
    return float(np.nanmean(widths)) if not np.isnan(widths).all() else np.nan


def two_classes(share: float, recall: float, specificity: float) -> Records:
    """Return a population of a million with these shares."""
    sizes = np.rint(
        1e6
        * np.array(
            [(1 - share) * specificity, (1 - share) * (1 - specificity), share * (1 - recall), share * recall]
        )
    ).astype(int)
    return np.repeat([0, 0, 1, 1], sizes), np.repeat([0, 1, 0, 1], sizes)


def ratios(size: Any) -> None:
    """Print the coverage of the sure interval of a recall, whose records that count are a share of all."""
    cells = Cells()
    for share in tqdm((0.05, 0.5), desc="ratios"):
        for recall in (0.5, 0.9, 0.98):
            population = two_classes(share, recall, 0.9)
            for n in size.spread:
                width = without_noise(dp.private_recall_score, population, n, "sure")
                for epsilon in size.epsilons:
                    draws = [
                        asked(partial(released, dp.private_recall_score, data, epsilon), recall, "sure")
                        for data in samples(population, n, size.sure)
                    ]
                    cells.add(f"recall {recall}, sure", n * share * epsilon, draws, width)
    cells.print(f"Recall among all people, laws, {size.sure} draws a cell")


TASKS = ("adult", "brfss", "diabetes", "MNIST 8", "diamonds")

_OF_LABELS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "recall": (dp.private_recall_score, ("sure",)),
    "precision": (dp.private_precision_score, ("sure",)),
    "F1": (dp.private_f1_score, ("sure",)),
    "accuracy": (dp.private_accuracy_score, ("sure",)),
    "balanced accuracy": (dp.private_balanced_accuracy_score, ("sure", "approximate")),
    "MCC": (dp.private_matthews_corrcoef, ("sure", "approximate")),
    "kappa": (dp.private_cohen_kappa_score, ("approximate",)),
    "macro F1": (partial(dp.private_f1_score, average="macro"), ("sure", "approximate")),
}


@cache
def predicted(task: str) -> Records:
    """Return the labels of a real task, and predictions of more probable labels."""
    y, proba = scored(task)
    return y, (proba > 0.5).astype(np.int64) if proba.ndim == 1 else proba.argmax(axis=1)


def labels(size: Any) -> None:
    """Print the coverage for metrics of labels on real tasks: of two labels, and of the ten digits."""
    if "DP_METRICS_DATA" not in os.environ:
        return
    cells = Cells()
    for task in tqdm(TASKS, desc="labels"):
        population = predicted(task)
        share = float(population[0].mean())
        for name, (metric, ways) in _OF_LABELS.items():
            _of_task(cells, size, name, metric, ways, population, min(share, 1 - share))
    cells.print(f"Metrics of two labels, {len(TASKS)} real tasks, {size.draws} draws a cell")
    cells, digits = Cells(), {"labels": range(10)}
    for name, (metric, ways) in _OF_LABELS.items():
        if name in ("balanced accuracy", "MCC", "kappa", "macro F1"):
            _of_task(cells, size, name, partial(metric, **digits), ways, predicted("MNIST"), 0.1)
    cells.print(f"Metrics of ten labels, MNIST, {size.draws} draws a cell")


def _of_task(
    cells: Cells,
    size: Any,
    name: str,
    metric: Callable[..., Any],
    ways: Sequence[str],
    population: Records,
    share: float,
) -> None:
    truth = float(released(metric, population, 1e9).value)  # of the whole population
    for n in size.sizes:
        widths = {way: without_noise(metric, population, n, way) for way in ways}
        for epsilon in size.epsilons:
            draws: dict[str, list[Any]] = {way: [] for way in ways}
            for data in samples(population, n, size.draws):
                result = released(metric, data, epsilon)
                for way in ways:
                    draws[way].append(asked(lambda result=result: result, truth, way))  # type: ignore[misc]
            for way in ways:
                cells.add(f"{name}, {way}", n * share * epsilon, draws[way], widths[way])


def binormal(area: float, share: float) -> Records:
    rng, apart = np.random.default_rng(0), 2**0.5 * norm.ppf(area)
    y = (rng.random(400_000) < share).astype(int)
    return y, norm.cdf(0.7 * (rng.normal(size=y.size) + apart * (y - 0.5)))


def exponential(share: float) -> Records:
    rng = np.random.default_rng(1)
    y = (rng.random(400_000) < share).astype(int)
    return y, 1 - np.exp(-rng.exponential(np.where(y == 1, 2.0, 0.4)))


def in_few(population: Records) -> Records:
    """Return scores with heavy ties: five values."""
    y, scores = population
    return y, np.clip(np.rint(4 * scores) / 4, 0.0, 1.0)


def populations() -> dict[str, Records]:
    found = {
        "binormal .75": binormal(0.75, 0.3),
        "binormal .98, rare": binormal(0.98, 0.03),
        "exponential": exponential(0.2),
    }
    if "DP_METRICS_DATA" in os.environ:
        found |= {task: scored(task) for task in (*TASKS, *UNSEEN)}
        found["brfss, five values"] = in_few(scored("brfss"))
    return found


def binned(population: Records, edges: np.ndarray) -> ScoreCounts:
    y, scores = population
    table = [np.histogram(scores[y == kind], edges)[0].astype(float) for kind in (0, 1)]
    return ScoreCounts(edges, *table)


def _scores(data: Sequence[np.ndarray], epsilon: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyReleaseWarning)
        return dp.ScoreSummary().update(*data).release(epsilon)


def areas(size: Any) -> None:
    """Print the coverage for areas under ROC curves: from a table, and by hazard selection.

    They are those of the scores, not of their bins: of the population, and of the records that were drawn.
    """
    cells = Cells()
    for name, population in tqdm(populations().items(), desc="areas"):
        seen = ", unseen task" if name in UNSEEN else ""
        share = min(population[0].mean(), 1 - population[0].mean())
        exact = area_of(population)
        for n in size.sizes:
            wide = [
                _scores(data, 1e6).population_interval(method="approximate")
                for data in samples(population, n, 3)
            ]
            width = float(np.mean([upper - lower for lower, upper in wide]))
            for epsilon in size.epsilons:
                draws: dict[str, list[Any]] = defaultdict(list)
                for place, data in enumerate(samples(population, n, size.draws)):
                    kept, of_these = _scores(data, epsilon), area_of(data)
                    for way in ("approximate", "sure"):
                        lower, upper = kept.noise_interval(method=way)
                        draws[f"{way}, records"].append((lower <= of_these <= upper, upper - lower))
                    draws["approximate"].append(asked(lambda kept=kept: kept, exact, "approximate"))  # type: ignore[misc]
                    if place < size.slow:
                        draws["sure"].append(asked(lambda kept=kept: kept, exact, "sure"))  # type: ignore[misc]
                        hazard = partial(released, dp.private_roc_auc_score, data, epsilon)
                        draws["hazard"].append(asked(hazard, exact, "approximate"))
                for kind, found in draws.items():
                    cells.add(f"AUC, {kind}{seen}", n * share * epsilon, found, width)
    draws_told = f"{size.draws} draws a cell; sure and hazard {size.slow}"
    cells.print(f"Areas under ROC curves, {len(populations())} populations, {draws_told}")


def area_of(data: Sequence[np.ndarray]) -> float:
    """Return the area under the ROC curve; 1/2 without a pair, as a private one has it."""
    from sklearn.metrics import roc_auc_score

    y, scores = data
    return float(roc_auc_score(y, scores)) if 0 < y.mean() < 1 else 0.5


def bands(size: Any) -> None:
    """Print how often whole bands hold."""
    cells = Cells()
    for population in tqdm(populations().values(), desc="bands"):
        share = min(population[0].mean(), 1 - population[0].mean())
        for n in size.sizes:
            for epsilon in size.epsilons:
                roc_draws: list[Any] = []
                calibrated: list[Any] = []
                of_gaps: list[Any] = []
                for place, data in enumerate(samples(population, n, size.draws)):
                    if place < size.slow:
                        of_roc = _scores(data, epsilon).roc_band()
                        edges = np.append(of_roc.lower.thresholds[:0:-1], 1.0)
                        roc_draws.append(_holds(of_roc, binned(population, edges)))
                    curve = released(dp.private_calibration_curve, data, epsilon, n_bins=10)
                    band = dp.calibration_band(curve)
                    counts = binned(population, np.linspace(0, 1, 11))
                    some = counts.total > 0
                    shares = counts.positive[some] / counts.total[some]
                    inside = (band.lower[some] <= shares) & (shares <= band.upper[some])
                    calibrated.append((bool(inside.all()), float((band.upper - band.lower).mean())))
                    sums, _ = np.histogram(population[1], np.linspace(0, 1, 11), weights=population[1])
                    gap = shares - sums[some] / counts.total[some]
                    inside = (band.gap_lower[some] <= gap) & (gap <= band.gap_upper[some])
                    of_gaps.append((bool(inside.all()), float((band.gap_upper - band.gap_lower).mean())))
                cells.add("ROC band, sure", n * share * epsilon, roc_draws, 0.0)
                cells.add("calibration band", n * epsilon / 10, calibrated, 0.0)
                cells.add("calibration gaps", n * epsilon / 10, of_gaps, 0.0)
    cells.print(f"Bands, {size.draws} draws a cell; of ROC curves {size.slow}")


def _holds(band: Any, counts: ScoreCounts) -> tuple[bool, float]:
    """Return whether the corners of a band hold at all edges, and its mean height there."""
    fpr, tpr, _ = roc(counts)
    holds = (
        (band.lower.tpr <= tpr) & (tpr <= band.upper.tpr) & (band.upper.fpr <= fpr) & (fpr <= band.lower.fpr)
    )
    return bool(holds.all()), float((band.upper.tpr - band.lower.tpr).mean())


def gaps(size: Any) -> None:
    """Print the coverage for gaps between groups: of recalls in adult, by sex and by race."""
    if "DP_METRICS_DATA" not in os.environ:
        return
    cells, (y, pred) = Cells(), predicted("adult")
    for column in tqdm(("sex", "race"), desc="gaps"):
        groups, members = np.unique(member_of("adult", column).astype(str), return_inverse=True)
        recalls = [float(pred[(members == g) & (y == 1)].mean()) for g in range(groups.size)]
        largest = max(recalls) - min(recalls)
        fewest = min(float(((members == g) & (y == 1)).mean()) for g in range(groups.size))
        for n in size.sizes:
            for epsilon in size.epsilons:
                found: dict[str, list[Any]] = defaultdict(list)
                for true, said, member in samples((y, pred, members), n, size.slow * 2):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", NoisyReleaseWarning)
                        frame = dp.PrivateMetricFrame(
                            metrics=dp.private_recall_score, y_true=true, y_pred=said,
                            sensitive_features=member, group_labels=range(groups.size), epsilon=epsilon,
                        )  # fmt: skip
                    for way in ("sure", "approximate"):
                        low, high = frame.population_interval(of=(0, 1), method=way)
                        gap = recalls[0] - recalls[1]
                        found[f"of two groups, {way}"].append((low <= gap <= high, high - low))
                    low, high = frame.population_interval(of="difference")
                    found["max - min, sure"].append((low <= largest <= high, high - low))
                for kind, draws in found.items():
                    cells.add(f"{kind}, {column}", n * fewest * epsilon, draws, 0.0)
    cells.print("Gaps between recalls of groups, adult")
