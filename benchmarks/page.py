"""Print how far the numbers of a page are off, and how its epsilon is best divided.

Run `DP_METRICS_DATA=FOLDER python benchmarks/page.py [--draws 12] [--quick] [--page docs/measured/page.inc]`;
five minutes. `--page` writes a part of the first tables for the documentation.

1. Mean absolute errors of pages, and of six calls with a sixth of epsilon each; subsamples with replacement.
2. Divisions of epsilon. The error of a release depends on its own part of epsilon alone, so each release is
   measured over a grid of epsilons, and the errors of any division follow. *Regret* is the error / the least
   of all divisions in twentieths, for the same task, n and epsilon: geometric mean over these, and the worst.
   The error of a division is the mean over its releases of the mean over their numbers; or the geometric
   mean, where no error counts as less than .001.
3. What the areas by group cost the others, and one table of scores by group for all areas.
4. Measured errors / those that the plan expects, and what the rule of leaving out would leave out.

Classification: boosted trees on adult (24 % positive) and brfss (14 %), groups by sex; the cut of diamonds (5
labels), groups by size; digits (10 labels), no groups. Regression: the price of diamonds (ideal cut or not),
and bikes rented (working day or not). Baselines are linear. "Equal" tasks are made up: classes and groups of
equal size, normal errors of targets; errors of "heavy" have Student's law with 3 degrees of freedom.
"""

import argparse
import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from classification.tasks import print_table
from page_tasks import (
    Floats,
    Numbers,
    Task,
    by_six_calls,
    exact,
    made_up_tasks,
    numbers_of,
    page_of,
    real_tasks,
)
from tqdm import tqdm

from dp_metrics.metrics.scores.curve_formulas import ScoreCounts, area_under_roc
from dp_metrics.metrics.scores.table import ScoreBins
from dp_metrics.release.parts.count_table import plausible_counts

Samples = Sequence[tuple[Task, Numbers]]
Found = dict[tuple[str, int, float, str], Numbers]

SIZES, EPSILONS = (300, 3_000, 30_000), (0.3, 1.0, 3.0)
GRID = tuple(3.0 / 2**k for k in range(8, -1, -1))
"""The epsilons of one release."""
TWENTIETHS = 20
LEAST = 0.001
"""What an error counts as at least, in a geometric mean."""
AREAS, ONE_TABLE = "scores by group", "one table"


# What each release tells of a kind: the key numbers of a page.
TELLS: dict[str, dict[str, tuple[str, ...]]] = {
    "binary": {
        "labels by group": ("accuracy", "recall", "precision", "recall difference"),
        "scores": ("roc auc", "average precision"),
        AREAS: ("roc auc in False", "roc auc in True"),
        "loss": ("brier score",),
        "comparison": ("comparison",),
    },
    "multiclass": {
        "labels by group": ("accuracy", "balanced accuracy", "f1 (macro)", "accuracy difference"),
        "loss": ("brier score",),
        "comparison": ("comparison",),
    },
    "regression": {
        "errors": ("mse", "r2"),
        "absolute error by group": ("mae", "mae in False", "mae in True"),
        "median error": ("median absolute error",),
        "comparison": ("comparison",),
    },
}
SPLITS: dict[str, tuple[str, ...]] = {
    "binary": (
        "2 2 2 1 1",
        "1 1 1 1 1",
        "30 40 20 15 15",
        "45 30 15 5 5",
        "2 3 1 1 1",
        "3 2 1 1 1",
        "4 4 4 1 1",
    ),
    "multiclass": ("2 1 1", "1 1 1", "3 1 1", "8 1 1"),
    "regression": ("2 2 1 1", "1 1 1 1", "30 45 15 15", "40 30 15 15", "40 40 15 5", "3 3 1 1"),
}
"""Divisions by the order of `TELLS`, beside the rule of the package."""

TYPICAL = {
    "labels": "recall", "labels by group": "recall in True", "scores": "roc auc", AREAS: "roc auc in True",
    "loss": "brier score", "comparison": "comparison", "errors": "rmse", "absolute error": "mae",
    "absolute error by group": "mae in True", "median error": "median absolute error",
}  # fmt: skip
"""The share whose error the plan expects."""


def from_one_table(task: Task, *, epsilon: float) -> Numbers:
    """Return the areas of all records and of groups, from the one table of scores by group."""
    page = page_of(task, epsilon, {AREAS: 1})
    (result,) = page.evaluated.results
    noisy = np.array(result.value).reshape(2, -1).sum(axis=0)
    plausible = plausible_counts(noisy.tolist(), ((noisy.size, 1),), len(task.truth)).reshape(2, -1)  # type: ignore[arg-type]
    counts = ScoreCounts(ScoreBins.of(None).merged(noisy.size // 2), *plausible)
    return {"roc auc": area_under_roc(counts)} | {name: one.value for name, one in page.numbers.items()}


def samples_of(task: Task, n: int, draws: int) -> list[tuple[Task, Numbers]]:
    """Return samples of n records with their exact numbers: always the same ones."""
    rng = np.random.default_rng(n)
    drawn = (task.sample(n, rng) for _ in range(draws))
    return [(sample, exact(sample)) for sample in drawn]


def mean_errors(samples: Samples, release: Callable[[Task], Numbers]) -> Numbers:
    """Return the mean absolute errors, of losses of a regression as a part of them; at most 1."""
    found: dict[str, list[float]] = {}
    for sample, truth in samples:
        for name, value in release(sample).items():
            if not math.isnan(truth.get(name, math.nan)):
                is_loss = sample.kind == "regression" and name not in ("r2", "comparison")
                error = abs(value - truth[name]) / (truth[name] if is_loss else 1.0)
                found.setdefault(name, []).append(1.0 if math.isnan(error) else min(error, 1.0))
    return {name: float(np.mean(errors)) for name, errors in found.items()}


def told(task: Task) -> dict[str, tuple[str, ...]]:
    """Return the releases of a task, and their key numbers."""
    if task.group is not None:
        return TELLS[task.kind]
    plain = {one: numbers for one, numbers in TELLS[task.kind].items() if one != AREAS}
    return {
        one.removesuffix(" by group"): tuple(
            name for name in numbers if " in " not in name and "diff" not in name
        )
        for one, numbers in plain.items()
    }


@dataclass(frozen=True)
class Measured:
    """Errors of the releases of a task, one by one.

    Parameters
    ----------
    task : Task
        The task.
    n : int
        Number of records.
    errors : mapping
        By release, its errors by number, at each epsilon of `GRID`.
    expected : mapping
        By release, the error that the plan expects at each epsilon.
    """

    task: Task
    n: int
    errors: Mapping[str, Sequence[Numbers]]
    expected: Mapping[str, Sequence[float]]

    def at(self, release: str, number: str, epsilon: Any) -> Floats:
        """Return the error of a number at any epsilon: a cubic fit of logarithms to the measured ones."""
        known = np.log([max(errors[number], 0.01 / self.n) for errors in self.errors[release]])
        fit = np.polynomial.Polynomial.fit(np.log(GRID), known, 3)
        return np.minimum(np.exp(fit(np.log(np.clip(epsilon, GRID[0], GRID[-1])))), 1.0)

    def error(self, shares: Floats, epsilon: float, *, is_geometric: bool, releases: Sequence[str]) -> Floats:
        """Return the error of divisions: rows of parts of epsilon, in the order of the releases."""
        total = np.zeros(len(shares))
        for share, release in zip(shares.T, releases, strict=True):
            each = np.array([self.at(release, name, share * epsilon) for name in told(self.task)[release]])
            total += (np.log(np.maximum(each, LEAST)) if is_geometric else each).mean(axis=0)
        return np.exp(total / len(releases)) if is_geometric else total / len(releases)


def measure(task: Task, samples: Samples) -> Measured:
    """Return the errors of the releases of a task."""
    errors: dict[str, list[Numbers]] = {}
    expected: dict[str, list[float]] = {}
    sample = samples[0][0]
    for release, epsilon in itertools.product(told(task), GRID):
        alone = {release: 1}
        errors.setdefault(release, []).append(
            mean_errors(samples, partial(numbers_of, epsilon=epsilon, split=alone))
        )
        plan = page_of(sample, epsilon, alone, dry_run=True)
        expected.setdefault(release, []).append(plan[release].expected_error)
    if AREAS in errors:
        errors[ONE_TABLE] = [
            mean_errors(samples, partial(from_one_table, epsilon=epsilon)) for epsilon in GRID
        ]
    return Measured(task, len(sample.truth), errors, expected)


def rule_of(task: Task) -> tuple[float, ...]:
    """Return the parts of epsilon of the rule, where nothing is left out."""
    plan = page_of(task, 100.0, None, dry_run=True)
    return tuple(float(plan[name].epsilon) / 100 for name in told(task))


def simplex(parts: int) -> Floats:
    """Return all divisions in twentieths, none of them 0."""
    cuts = itertools.combinations(range(1, TWENTIETHS), parts - 1)
    return np.array([np.diff([0, *cut, TWENTIETHS]) for cut in cuts]) / TWENTIETHS


def print_pages(task: Task, samples: Mapping[int, Samples]) -> Found:
    """Print the errors of pages and of six calls; return them by task, n, epsilon and way."""
    found: Found = {}
    ways: dict[str, Callable[..., Numbers]] = {"one page": numbers_of, "six calls": by_six_calls}
    names = [name for numbers in told(task).values() for name in numbers]
    rows = []
    for n, epsilon in itertools.product(samples, EPSILONS):
        page, calls = both = [
            mean_errors(samples[n], partial(made, epsilon=epsilon)) for made in ways.values()
        ]
        shared = [math.log(calls[name] / page[name]) for name in names if all(by.get(name) for by in both)]
        last = ["", f"{math.exp(np.mean(shared)):.2f}"]
        for way, by, ratio in zip(ways, both, last, strict=True):
            found[task.name, n, epsilon, way] = by
            cells = [f"{by[name]:.2g}" if name in by else "-" for name in names]
            rows.append([f"{n:,}", f"{epsilon:g}", way, *cells, ratio])
    title = (
        f"{task.name}: errors; the last column: six calls / one page, geometric mean of the numbers of both"
    )
    print_table(title, ["n", "epsilon", "", *names, "ratio"], rows)
    return found


def print_divisions(kind: str, measured: Sequence[Measured]) -> None:
    """Print the regret of divisions of epsilon, and the best ones."""
    used = [one for one in measured if one.task.kind == kind and one.task.is_real]
    parts = len(TELLS[kind])
    named = {"rule": rule_of(used[0].task)} | {text: [*map(float, text.split())] for text in SPLITS[kind]}
    grid = simplex(parts)
    rows = np.array([np.array(split) / sum(split) for split in named.values()])
    regrets = {}
    for is_geometric in (False, True):
        of_rows, of_grid, best = [], [], {}
        for one, epsilon in itertools.product(used, EPSILONS):
            error = partial(one.error, epsilon=epsilon, is_geometric=is_geometric, releases=[*told(one.task)])
            all_errors = error(grid)
            of_rows.append(error(rows) / all_errors.min())
            of_grid.append(all_errors / all_errors.min())
            best[one.n, epsilon] = [*best.get((one.n, epsilon), []), grid[all_errors.argmin()]]
        regrets[is_geometric] = np.array(of_rows)
        means = np.exp(np.log(np.array(of_grid)).mean(axis=0))
        print(f"\n{kind}, {'geometric mean' if is_geometric else 'mean'} of errors: the best one rule is",
              *np.round(100 * grid[means.argmin()]).astype(int), f"with regret {means.min():.3f};",
              "best by n and epsilon:")  # fmt: skip
        for (n, epsilon), each in best.items():
            print(f"  {n:,} {epsilon:g}:", *np.round(100 * np.mean(each, axis=0)).astype(int))
    table = []
    for at, name in enumerate(named):
        cells = [f"{np.exp(np.log(r[:, at]).mean()):.2f} ({r[:, at].max():.2f})" for r in regrets.values()]
        table.append([name, " ".join(f"{100 * part:.0f}" for part in rows[at]), *cells])
    title = f"{kind}: regret of divisions among {', '.join(TELLS[kind])}"
    print_table(title, ["division", "%", "mean (worst)", "geometric mean (worst)"], table)


def print_areas(measured: Sequence[Measured]) -> None:
    """Print what the areas by group cost the other numbers, and areas from one table instead of two."""
    rows = []
    for one in measured:
        if one.task.kind != "binary" or AREAS not in one.errors or not one.task.is_real:
            continue
        rule = np.array([rule_of(one.task)])
        releases = [*told(one.task)]
        at = dict(zip(releases, rule[0], strict=True))
        others = [name for name in releases if name != AREAS]
        without = np.array([[at[name] / (1 - at[AREAS]) for name in others]])
        for epsilon in EPSILONS:
            pair = [
                float(one.error(split, epsilon, is_geometric=True, releases=others)[0])
                for split in (np.array([[at[name] for name in others]]), without)
            ]
            both = (at["scores"] + at[AREAS]) * epsilon
            two = [
                one.at("scores", "roc auc", at["scores"] * epsilon),
                one.at(AREAS, "roc auc in True", at[AREAS] * epsilon),
            ]
            single = [one.at(ONE_TABLE, name, both) for name in ("roc auc", "roc auc in True")]
            pairs = [" / ".join(f"{float(x):.2g}" for x in areas) for areas in (two, single)]
            rows.append([one.task.name, f"{one.n:,}", f"{epsilon:g}", f"{pair[0] / pair[1]:.2f}", *pairs])
    title = (
        "Other errors with / without areas by group; area of all / of a group, from two tables and from one"
    )
    print_table(title, ["task", "n", "epsilon", "others", "two tables", "one table"], rows)


def print_expected(measured: Sequence[Measured]) -> None:
    """Print measured / expected errors, and what the rule of leaving out does."""
    ratios: dict[tuple[str, str], list[float]] = {}
    left: dict[str, list[tuple[bool, float]]] = {}
    for one in measured:
        for release, expected in one.expected.items():
            if TYPICAL[release] not in one.errors[release][0]:
                continue
            known = [by[TYPICAL[release]] for by in one.errors[release]]
            for error, guess in zip(known, expected, strict=True):
                left.setdefault(release, []).append((guess > 0.1, error))
                if 0.001 < guess <= 0.1:
                    name = one.task.name if not one.task.is_real else f"real {one.task.kind}"
                    ratios.setdefault((release, name), []).append(error / guess)
    rows = []
    for (release, name), each in sorted(ratios.items()):
        low, middle, high = np.quantile(each, (0.1, 0.5, 0.9))
        rows.append([release, name, f"{middle:.2f}", f"{low:.2f} to {high:.2f}"])
    title = "Measured / expected error, where .001 to .1 is expected"
    print_table(title, ["release", "task", "median", "80 % between"], rows)
    rows = []
    for release, pairs in left.items():
        out = np.array([error for is_out, error in pairs if is_out])
        kept = np.array([error for is_out, error in pairs if not is_out])
        cells = [
            f"{len(x)}: {(x > 0.05).mean():.0%}, {(x > 0.1).mean():.0%}" if len(x) else "-"
            for x in (out, kept)
        ]
        rows.append([release, *cells])
    title = "Left out, for more than .1 is expected, and not: how many; measured error above .05, above .1"
    print_table(title, ["release", "left out", "kept"], rows)


def inc(found: Found) -> str:
    """Return the table of the documentation."""
    names = ("recall", "recall difference", "roc auc", "average precision", "brier score", "comparison")
    lines = [
        ".. csv-table::",
        "   :header-rows: 1",
        "",
        f'   "adult / brfss, n = 3,000", epsilon, {", ".join(names)}',
    ]
    for way, epsilon in itertools.product(("one page", "six calls"), EPSILONS):
        cells = []
        for name in names:
            both = [found[task, 3_000, epsilon, way].get(name) for task in ("adult", "brfss")]
            cells.append("no" if None in both else " / ".join(f"{x:.2g}".lstrip("0") for x in both))
        lines.append(f"   {way}, {epsilon:g}, {', '.join(cells)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=12, help="of each release; twice as many pages")
    parser.add_argument("--quick", action="store_true", help="two draws, and n = 3,000 only")
    parser.add_argument("--page", type=Path, help="write the table of the documentation here")
    typed = parser.parse_args()
    warnings.simplefilter("ignore")
    draws, sizes = (2, (3_000,)) if typed.quick else (typed.draws, SIZES)
    found: Found = {}
    measured = []
    for task in tqdm([*real_tasks(), *made_up_tasks()], desc="tasks", disable=None):
        samples = {n: samples_of(task, n, 2 * draws) for n in sizes}
        if task.is_real:
            found |= print_pages(task, samples)
        measured += [measure(task, samples[n][:draws]) for n in sizes]
    if typed.page:
        typed.page.write_text(inc(found), encoding="utf-8")
    for kind in TELLS:
        print_divisions(kind, measured)
    print_areas(measured)
    print_expected(measured)


if __name__ == "__main__":
    main()
