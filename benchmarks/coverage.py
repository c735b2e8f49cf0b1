"""Print how often each interval of the package covers what it is about; 95 % is meant.

Run `python benchmarks/coverage.py [--only NAME] [--quick] [--table docs/measured/coverage.inc]`. It reads no
file: the people are those of `coverage_tasks.py`, on whom no rule was chosen.

A cell is a task, a number of records and an epsilon. In each, records are drawn with replacement from people
of whom all is known, and released anew; an interval is of these records, or of all people. Limits that are to
hold at once count once. No interval, or no upper limit, counts as covering: the share of these is "none".

- mean, least: coverage over the cells. The least of many is low by chance: so that cell is drawn again, five
  times as often, and told with the standard error of 95 %. A "*" is more than three of these below 95 %: of
  intervals that cover 95 % every 700th has it.
- width: of all people the geometric mean over cells of the mean width / that without privacy, which is the
  same interval at epsilon 10^6, of a mean that of Student's t. Of these records in units of the public range.
"""

import argparse
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import coverage_tasks as tasks
import numpy as np
from coverage_tasks import GROUPS, PERSON_UNITS, Losses, People, Persons
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn import metrics as sk
from tables import csv_table, print_table
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics._random import made_up
from dp_metrics.metrics.scores.bands import benefit_limits, benefit_noise_limits
from dp_metrics.quantities.tables import NoisyCounts
from dp_metrics.release.count_limits import NoisyRatio, person_limits

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[Floats, Floats]

LEVEL, MISS = 0.95, 0.025
EPSILONS, HUGE = (0.3, 3.0), 1e6
AGAIN = 5
MAX_WIDTH = 100.0  # in units of the public range: what is wider is no limit

WAYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "records": ("these records, sure", "noise_interval", {}),
    "records~": ("these records, approximate", "noise_interval", {}),
    "people": ("all people, sure", "population_interval", {"sure": True}),
    "people~": ("all people, approximate", "population_interval", {}),
}
"""What an interval is of, and how it is asked for."""


class Size(NamedTuple):
    """How much is computed; None: all tasks and epsilons."""

    draws: Mapping[str, int]
    records: tuple[int, ...]
    most: int | None


FULL = Size({"fast": 100, "usual": 24, "slow": 4}, (300, 3_000), None)
QUICK = Size({"fast": 2, "usual": 2, "slow": 2}, (300,), 1)


@dataclass(frozen=True)
class Kind:
    """An interval: what is released, how its limits are asked for, and what they are limits of.

    `exact` is asked for the records or for all people; in its place `at`, if that depends on the release.
    """

    name: str
    way: str
    tasks: Mapping[str, Any]
    release: Callable[[Any, float], Any]
    exact: Callable[[Any], Any] = lambda x: None
    ask: Callable[[Any], Any] = lambda interval: interval
    speed: str = "usual"
    epsilons: tuple[float, ...] = EPSILONS
    at: Callable[[Any, Any], Any] | None = None
    without: Callable[[Any], float] | None = None


def kinds(
    name: str, ways: str, *of: Any, options: Mapping[str, Any] | None = None, **more: Any
) -> list[Kind]:
    """Return the intervals of one release in several ways."""
    return [Kind(name, way, *of, ask=partial(asked, way, options or {}), **more) for way in ways.split()]


def asked(way: str, options: Mapping[str, Any], result: Any) -> Any:
    _, method, fixed = WAYS[way]
    return getattr(result, method)(**{**fixed, **options})


LABELS, SCORES, LOSS = ("true", "said"), ("true", "score"), ("loss",)


def private(metric: Callable[..., Any], fields: Sequence[str] = LABELS, **options: Any) -> Callable[..., Any]:
    """Return what releases a metric."""
    result = dp.with_result(metric)
    return lambda x, epsilon: result(*(getattr(x, name) for name in fields), epsilon=epsilon, **options)


def exact(metric: Callable[..., Any], fields: Sequence[str] = LABELS, **options: Any) -> Callable[..., Any]:
    """Return the same without privacy."""
    return lambda x: metric(*(getattr(x, name) for name in fields), **options)


def ratio(metric: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a metric that is NaN where it is 0/0."""
    return exact(metric, zero_division=np.nan, **options)


@dataclass
class Cell:
    """What came of the draws in one cell."""

    kind: Kind
    people: Any
    n: int
    epsilon: float
    draws: int = 0
    hits: int = 0
    widths: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.hits / self.draws

    @property
    def is_of_records(self) -> bool:
        return self.kind.way.startswith("records")

    def samples(self, draws: int, seed: int) -> Iterator[Any]:
        rng = np.random.default_rng([self.n, round(100 * self.epsilon), seed])
        for _ in range(draws):
            rows = rng.integers(len(self.people[0]), size=self.n)
            yield self.people._make(array[rows] for array in self.people)

    def measured(self, draws: int, seed: int = 0) -> "Cell":
        """Return this cell with so many more draws."""
        kind = self.kind
        of_all = None if self.is_of_records else kind.exact(self.people)
        for sample in self.samples(draws, seed):
            self.draws += 1
            try:
                released = kind.release(sample, self.epsilon)
                lower, upper = ends(kind.ask(released))
            except ValueError:  # there is none
                self.hits += 1
                continue
            truth = (
                kind.at(self.people, released)
                if kind.at
                else kind.exact(sample)
                if of_all is None
                else of_all
            )
            slack = 1e-9 * np.maximum(np.abs(truth), 1)  # exact values are rounded, too
            self.hits += bool((np.isnan(truth) | ((lower - slack <= truth) & (truth <= upper + slack))).all())
            width = float(np.mean(upper - lower))
            if width < MAX_WIDTH:
                self.widths.append(width)
        return self

    def width(self) -> float:
        """Return the mean width, of people as a multiple of that without privacy."""
        if not self.widths or self.is_of_records:
            return float(np.mean(self.widths)) if self.widths else math.nan
        few = 1 if self.kind.speed == "slow" else min(self.draws, 5)
        if self.kind.without:
            without = [self.kind.without(sample) for sample in self.samples(few, 1)]
        else:
            without = Cell(self.kind, self.people, self.n, HUGE).measured(few, 1).widths
        mean = float(np.mean(without)) if without else 0.0
        return float(np.mean(self.widths)) / mean if mean > 0 else math.nan


def ends(found: Any) -> Ends:
    """Return the lower and the upper limits: of an interval, or of a dictionary of them."""
    if isinstance(found, dict):
        found = zip(*(ends(one) for one in found.values()), strict=True)
    lower, upper = (np.asarray(one, dtype=np.float64) for one in found)
    return lower, upper


def labels() -> list[Kind]:
    """Return intervals of metrics of labels."""
    two, accuracy = tasks.classes(), private(dp.private_accuracy_score)
    confusion, cells = private(dp.private_confusion_matrix), exact(sk.confusion_matrix)
    by_true = {"normalize": "true"}
    shares = private(dp.private_confusion_matrix, **by_true), exact(sk.confusion_matrix, **by_true)
    found = [
        *kinds("accuracy", "records people", two, accuracy, exact(sk.accuracy_score), speed="fast"),
        *kinds("confusion matrix, in records", "records", two, confusion, cells, speed="fast"),
        *kinds("confusion matrix, in shares", "records people", two, *shares),
    ]  # fmt: skip
    ratios = "recall, precision, specificity, F1, Jaccard"
    for metric, without in (
        (dp.private_recall_score, ratio(sk.recall_score)),
        (dp.private_precision_score, ratio(sk.precision_score)),
        (dp.private_specificity_score, ratio(sk.recall_score, pos_label=0)),
        (dp.private_f1_score, ratio(sk.f1_score)),
        (
            dp.private_jaccard_score,
            lambda x: sk.jaccard_score(x.true, x.said) if (x.true | x.said).any() else np.nan,
        ),
    ):
        found += kinds(ratios, "records people", two, private(metric), without)
    mcc, kappa = sk.matthews_corrcoef, sk.cohen_kappa_score
    for people, more, told in ((two, {}, ""), (tasks.ten_labels(), {"labels": range(10)}, " of ten labels")):
        sure, macro = "" if told else "people ", {"average": "macro", **more}
        f1, recall = ratio(sk.f1_score, average="macro"), ratio(sk.recall_score, average="macro")
        balanced = private(dp.private_balanced_accuracy_score, **more)
        found += kinds(f"balanced accuracy{told}", "records people people~", people, balanced, recall)
        release = private(dp.private_f1_score, **macro)
        found += kinds(f"macro F1{told}", "people" if told else "people people~", people, release, f1)
        for metric, without in ((dp.private_matthews_corrcoef, mcc), (dp.private_cohen_kappa_score, kappa)):
            found += kinds(
                f"MCC, kappa{told}", sure + "people~", people, private(metric, **more), exact(without)
            )
    each = {"average": None, "labels": range(10)}
    f1 = private(dp.private_f1_score, **each), ratio(sk.f1_score, **each)
    return [*found, *kinds("F1 of ten labels at once", "records people", tasks.ten_labels(), *f1)]


def table(x: People, epsilon: float) -> Any:
    """Return the release of a table of scores."""
    return dp.ReleasedScores.of(dp.with_result(dp.private_roc_curve)(x.true, x.score, epsilon=epsilon))


def area(true: NDArray[Any], scores: Floats) -> float:
    return float(sk.roc_auc_score(true, scores)) if 0 < true.mean() < 1 else math.nan


def average_precision(true: NDArray[Any], scores: Floats) -> float:
    return float(sk.average_precision_score(true, scores)) if true.any() else math.nan


def over_expected(x: People) -> float:
    return float(x.true.sum() / x.score.sum())


def precision_at_half(true: NDArray[Any], scores: Floats) -> float:
    return float(true[scores >= 0.5].mean()) if (scores >= 0.5).any() else math.nan


def scores() -> list[Kind]:
    """Return intervals of areas, average precisions and curves."""
    two, found, auc, precise = tasks.classes(), [], exact(area, SCORES), exact(average_precision, SCORES)
    for ties, told in (("any", "AUC of a table"), ("ordered", 'AUC of a table, ties="ordered"')):
        of = told, two, table, auc
        found += [
            *kinds(of[0], "records", *of[1:], options={"ties": ties, "sure": True}, speed="slow"),
            *kinds(of[0], "people", *of[1:], options={"ties": ties}, speed="slow"),
            *kinds(of[0], "records~ people~", *of[1:], options={"ties": ties}),
        ]
    of_table: Any = {"options": {"metric": "average_precision"}}
    of_sure: Any = {"options": {"metric": "average_precision", "sure": True}, "speed": "slow"}
    of_precision = private(dp.private_average_precision_score, SCORES)
    curve = private(dp.private_calibration_curve, SCORES, n_bins=BINS)
    error = private(dp.private_expected_calibration_error, SCORES, n_bins=BINS)
    return [
        *found,
        *kinds("AUC by hazard", "records people~", two, private(dp.private_roc_auc_score, SCORES), auc),
        *kinds("average precision of a table", "records people", two, table, precise, **of_sure),
        *kinds("average precision of a table", "records~ people~", two, table, precise, **of_table),
        *kinds("average precision", "records people", two, of_precision, precise, speed="slow"),
        *kinds("average precision", "people~", two, of_precision, precise),
        Kind(
            "observed over expected", "records~", two, table, over_expected,
            ask=lambda result: result.observed_over_expected(of="records"), speed="fast",
        ),
        Kind(
            "observed over expected", "people~", two, table, over_expected,
            ask=lambda result: result.observed_over_expected(), speed="fast",
        ),
        Kind(
            "precision at a threshold", "people", two, table, exact(precision_at_half, SCORES),
            ask=lambda result: result.at_threshold(0.5).population_interval("precision"),
        ),
        Kind(
            "ROC band", "people", two, private(dp.private_roc_curve, SCORES),
            ask=roc_ends, at=roc_at, speed="slow",
        ),
        Kind(
            "calibration band", "people~", two, curve, lambda x: by_bin(x)[1],
            ask=lambda result: (result.band().lower, result.band().upper),
        ),
        Kind(
            "calibration gaps", "people~", two, curve, lambda x: by_bin(x)[1] - by_bin(x)[2],
            ask=lambda result: (result.band().gap_lower, result.band().gap_upper),
        ),
        *kinds("calibration error", "records", two, error, calibration_error, speed="fast"),
    ]  # fmt: skip


def roc_ends(result: Any) -> Ends:
    band = result.band()
    lower, upper = band.lower, band.upper
    return np.append(lower.tpr, upper.fpr), np.append(upper.tpr, lower.fpr)


def roc_at(x: People, result: Any) -> Floats:
    """Return the recall, then the share of false positives, at each edge of a band."""
    edges = result.band().lower.thresholds
    return np.array([(x.score[x.true == kind] >= edge).mean() for kind in (1, 0) for edge in edges])


BINS = 10


def by_bin(x: People) -> tuple[Floats, Floats, Floats]:
    """Return the number of people by bin, their share of positives and their mean score; NaN without any."""
    place = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], x.score)
    number, positive, total = (np.bincount(place, w, BINS) for w in (None, x.true, x.score))
    some = np.where(number > 0, number, np.nan)
    return number, positive / some, total / some


def calibration_error(x: People) -> float:
    number, share, mean = by_bin(x)
    return float(np.nansum(number * np.abs(share - mean)) / number.sum())


def quantile(q: float) -> Callable[[Floats], float]:
    return lambda loss: float(np.quantile(loss, q, method="inverted_cdf"))


def t_width(x: Losses) -> float:
    """Return the width of Student's t interval."""
    return float(2 * student.ppf(1 - MISS, x.loss.size - 1) * x.loss.std(ddof=1) / math.sqrt(x.loss.size))


def clipped_mean(x: Losses, interval: Any) -> float:
    """Return the mean of losses, clipped to the cap that an interval names."""
    cap = re.search(r"errors above (\S+) counted", interval.about)
    assert cap is not None, interval.about
    return float(np.minimum(x.loss, float(cap[1])).mean())


def means() -> list[Kind]:
    """Return intervals of means, quantiles and what else is made of losses."""
    of_losses, of_targets, mean = tasks.losses(), tasks.targets(), exact(np.mean, LOSS)
    told = "mean loss by geometric"
    capped, bounds, geometric = {"max_loss": 1.0}, {"bounds": (0.0, 1.0)}, {"mechanism": "geometric"}
    free: Any = (of_losses, private(dp.private_mean_loss, LOSS, **capped, **geometric), mean)
    epsilons = (0.5, 1.0, 1.01, 2.0, 4.0)
    found = [
        *kinds(told, "records", *free, epsilons=epsilons, speed="fast"),
        *kinds(told, "people", *free, epsilons=epsilons, without=t_width),
    ]
    for e in epsilons:
        found += kinds(
            f"{told}, epsilon {e:g}", "people~", *free, epsilons=(e,), without=t_width, speed="fast"
        )
    rare: Any = (tasks.few_losses(), *free[1:])
    found += kinds(f"{told}, one in 150 at the cap", "people~", *rare, without=t_width, speed="fast")
    interval = lambda x, epsilon: dp.private_mean_interval(x.loss, max_loss=1.0, epsilon=epsilon)  # noqa: E731
    found.append(
        Kind("private_mean_interval", "people~", of_losses, interval, mean, without=t_width, speed="fast")
    )
    bought = lambda x, epsilon: dp.private_mean_interval(x.loss, cap="private", epsilon=epsilon)  # noqa: E731
    of_cap: Any = {"at": clipped_mean, "without": t_width, "speed": "fast"}
    found.append(Kind("private_mean_interval, private cap", "people~", of_losses, bought, **of_cap))
    of_few = "private_mean_interval, one loss in 150 at the cap"
    found.append(Kind(of_few, "people~", tasks.few_losses(), interval, mean, without=t_width, speed="fast"))
    for q in (0.5, 0.9):
        interval = lambda x, epsilon, q=q: dp.private_quantile_interval(x.loss, q, epsilon=epsilon)  # noqa: E731
        told = f"private_quantile_interval, q = {q:g}"
        found.append(Kind(told, "people", of_losses, interval, exact(quantile(q), LOSS)))
    for told, metric, without, options in (
        ("mean by default, with a cap", dp.private_mean_loss, np.mean, capped),
        ("mean by default, without a cap", dp.private_mean_loss, np.mean, {}),
        ("variance with bounds", dp.private_variance, np.var, bounds),
        ("variance without bounds", dp.private_variance, np.var, {}),
        ("quantile with bounds", dp.private_quantile, quantile(0.9), bounds | {"q": 0.9}),
    ):
        release = private(metric, LOSS, **options)
        found += kinds(told, "records", of_losses, release, exact(without, LOSS))
    for told, metric, without, options in (
        ("MAE, MSE with bounds", dp.private_mae, sk.mean_absolute_error, bounds),
        ("MAE, MSE with bounds", dp.private_mse, sk.mean_squared_error, bounds),
        ("MAE, MSE without bounds", dp.private_mse, sk.mean_squared_error, {}),
        ("median without bounds", dp.private_median_absolute_error, sk.median_absolute_error, {}),
        ("R^2 by geometric with bounds", dp.private_r2_score, sk.r2_score, bounds | geometric),
        ("R^2 with bounds", dp.private_r2_score, sk.r2_score, bounds),
        ("R^2 without bounds", dp.private_r2_score, sk.r2_score, {}),
    ):
        found += kinds(told, "records", of_targets, private(metric, **options), exact(without))
    return found


WHAT: dict[Any, str] = {
    "groups": "of three groups at once",
    (0, 1): "gap of two groups",
    "difference": "largest gap",
    "ratio": "ratio",
}


def groups() -> list[Kind]:
    """Return intervals of groups, and of the gaps between them."""
    two, found = tasks.classes(), []
    for told, metric, without, fields in (
        ("recall, accuracy", dp.private_recall_score, partial(sk.recall_score, zero_division=np.nan), LABELS),
        ("recall, accuracy", dp.private_accuracy_score, sk.accuracy_score, LABELS),
        ("AUC", dp.private_roc_auc_score, area, SCORES),
    ):
        for of, shown in WHAT.items():
            ways = "records people people~" if of in ((0, 1), "difference") else "records people"
            ways = "people~" if told == "AUC" else ways
            truth = exact(partial(by_group, without, of), (*fields, "group"))
            options, speed = {"of": of, "simultaneous": of == "groups"}, "slow" if told == "AUC" else "usual"
            of_groups: Any = two, partial(frame, metric, fields), truth
            found += kinds(f"{told}: {shown}", ways, *of_groups, options=options, speed=speed)
    return found


def frame(metric: Callable[..., Any], fields: Sequence[str], x: People, epsilon: float) -> Any:
    true, said = (getattr(x, name) for name in fields)
    return dp.PrivateMetricFrame(
        metrics=metric, y_true=true, y_pred=said, sensitive_features=x.group,
        group_labels=range(GROUPS), epsilon=epsilon,
    )  # fmt: skip


def by_group(metric: Callable[..., Any], of: Any, true: Any, said: Any, group: Any) -> Any:
    """Return a metric of each group, or the gap between them."""
    each = np.array([metric(true[group == one], said[group == one]) for one in range(GROUPS)])
    if of == "groups":
        return each
    if of == "ratio":
        return each.min() / each.max() if each.max() > 0 else math.nan
    return each.max() - each.min() if of == "difference" else each[0] - each[1]


def comparisons() -> list[Kind]:
    """Return intervals of comparisons of two models."""
    found = []
    for people, loss, apart in (
        (tasks.classes(), "zero_one", lambda x: 1.0 * ((x.rival > 0.5) != x.true) - (x.said != x.true)),
        (tasks.targets(), "mae", lambda x: np.abs(x.rival - x.true) - np.abs(x.said - x.true)),
    ):
        wins = lambda x, apart=apart: float(np.sign(apart(x)).mean())  # noqa: E731
        of_wins: Any = ("wins of a model", people, partial(compared, loss, None), wins)
        difference = partial(compared, loss, 1.0), lambda x, apart=apart: float(apart(x).mean())
        found += [
            *kinds(of_wins[0], "records", *of_wins[1:]),
            Kind(of_wins[0], "people", *of_wins[1:], ask=lambda c: c.interval),
            Kind(
                "mean difference of two models", "people~", people, *difference, lambda c: c.interval, "fast"
            ),
        ]
    return found


def compared(loss: str, most: float | None, x: People, epsilon: float) -> Any:
    rival = 1 * (x.rival > 0.5) if loss == "zero_one" else x.rival
    return dp.private_compare(x.true, x.said, rival, loss=loss, epsilon=epsilon, max_difference=most)


THRESHOLD = 0.2
WEIGHT = THRESHOLD / (1 - THRESHOLD)


def functions() -> list[Kind]:
    """Return intervals of a net benefit, and of people who count once."""
    two, share = tasks.classes(), lambda x: float(x.units[:, 0].sum() / x.units[:, :2].sum())
    benefit = lambda x: float(positives(x) @ (1, -WEIGHT, 0)) / len(x.true)  # noqa: E731
    of_benefit = two, lambda x, e: (ratio_of(positives(x), e / 2), len(x.true), WEIGHT, MISS), benefit
    return [
        Kind("net benefit", "records", *of_benefit, ask=lambda found: benefit_noise_limits(*found)),
        Kind("net benefit", "people~", *of_benefit, ask=lambda found: benefit_limits(*found)),
        Kind("ratio of persons", "people~", tasks.persons(), of_persons, share),
    ]


def positives(x: People) -> NDArray[Any]:
    """Return the numbers of true and of false positives, and of other people."""
    above = x.score >= THRESHOLD
    return np.array([(above & (x.true == 1)).sum(), (above & (x.true == 0)).sum(), (~above).sum()])


def ratio_of(numbers: NDArray[Any], rate: float) -> NoisyRatio:
    """Return the first two of three numbers with noise."""
    a, b, _ = (numbers + noise(rate)).tolist()
    return NoisyRatio(a, b, (1, 1), (Fraction(rate),) * 2, 1, None)


def noise(rate: float) -> NDArray[np.int64]:
    """Return the noise of three numbers, simulated with the law of a release."""
    law = NoisyCounts((0,) * 3, ((3, Fraction(rate)),), 3)
    return law.simulated(made_up(int(np.random.default_rng().integers(2**31))), 8)[0].astype(np.int64)


def of_persons(x: Persons, epsilon: float) -> Any:
    """Return the limits of a ratio among people of whom each counts once."""
    return person_limits(PERSON_UNITS, ratio_of(x.units.sum(axis=0), epsilon / (2 * PERSON_UNITS)), MISS)


FAMILIES: dict[str, Callable[[], list[Kind]]] = {
    "labels": labels,
    "scores": scores,
    "means": means,
    "groups": groups,
    "comparisons": comparisons,
    "functions": functions,
}

HEADER = ("interval", "it is of", "cells", "draws", "mean", "least", "again", "none", "width")


def measured(kinds: Sequence[Kind], size: Size, desc: str) -> dict[tuple[str, str], list[Cell]]:
    """Return the cells of all intervals of one name that are of the same."""
    rows: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    cells = [
        Cell(kind, people, n, epsilon)
        for kind in kinds
        for people in list(kind.tasks.values())[: size.most]
        for n in size.records
        for epsilon in kind.epsilons[: size.most]
    ]
    for cell in tqdm(cells, desc=desc, disable=None):
        kind = cell.kind
        rows[kind.name, WAYS[kind.way][0]].append(cell.measured(size.draws[kind.speed]))
    return rows


def row(cells: Sequence[Cell]) -> list[str]:
    """Return what a row tells of its cells."""
    least, draws = min(cells, key=lambda cell: cell.share), sum(cell.draws for cell in cells)
    again, width = "", ""
    if least.share < 1:
        times = AGAIN * least.draws
        share = Cell(least.kind, least.people, least.n, least.epsilon).measured(times, 2).share
        error = math.sqrt(LEVEL * (1 - LEVEL) / times)
        again = f"{share:.3f} ± {error:.3f}{'*' if share < LEVEL - 3 * error else ''}"
    widths = np.array([cell.width() for cell in cells])
    widths, none = widths[widths > 0], 1 - sum(len(cell.widths) for cell in cells) / draws
    if widths.size:
        width = f"{widths.mean():.2g}" if least.is_of_records else f"{np.exp(np.log(widths).mean()):.2f} x"
    return [
        str(len(cells)), str(least.draws), f"{np.mean([cell.share for cell in cells]):.3f}",
        f"{least.share:.3f}", again, f"{none:.2f}" if none else "", width,
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=FAMILIES, help="the intervals of one family")
    parser.add_argument("--quick", action="store_true", help="few draws in few cells")
    parser.add_argument("--table", type=Path, help="write the table of the documentation here")
    typed = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    for name in [typed.only] if typed.only else FAMILIES:
        cells = measured(FAMILIES[name](), QUICK if typed.quick else FULL, name)
        found = [[*names, *row(of_name)] for names, of_name in cells.items()]
        print_table(f"Coverage of 95 %: {name}", HEADER, found)
        rows += found
    if typed.table:
        typed.table.write_text(csv_table(HEADER, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
