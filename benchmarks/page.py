"""Print how far the numbers of a page are off, beside six calls with a sixth of its epsilon each.

Run `DP_METRICS_DATA=FOLDER python benchmarks/page.py [--draws 24] [--quick] [--page docs/measured/page.inc]`.
`--page` writes a part of the tables for the documentation. How epsilon is divided, and what the plan expects,
was chosen by `benchmarks/page.py` of 308a3eb.

Mean absolute errors, on subsamples with replacement. Classification: boosted trees on adult (24 % positive)
and brfss (14 %), groups by sex; the cut of diamonds (5 labels), groups by size; digits (10 labels), without.
Regression: the price of diamonds (ideal cut or not), and bikes rented (working day or not). Baselines are
linear.
"""

import argparse
import itertools
import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import csv_table, print_table
from tqdm import tqdm

import dp_metrics as dp

Floats = NDArray[np.float64]
Numbers = dict[str, float]
Found = dict[tuple[str, int, float, str], Numbers]

SIZES, EPSILONS = (300, 3_000, 30_000), (0.3, 1.0, 3.0)
NUMBERS: dict[str, tuple[str, ...]] = {
    "binary": (
        "accuracy", "recall", "precision", "recall difference", "roc auc", "average precision",
        "roc auc in False", "roc auc in True", "brier score", "comparison",
    ),
    "multiclass": (
        "accuracy", "balanced accuracy", "f1 (macro)", "accuracy difference", "brier score", "comparison",
    ),
    "regression": (
        "mse", "r2", "mae", "mae in False", "mae in True", "median absolute error", "comparison",
    ),
}  # fmt: skip
"""The key numbers of a page, by what its targets are."""
SHOWN = ("recall", "recall difference", "roc auc", "average precision", "brier score", "comparison")
"""What the documentation shows."""


@dataclass(frozen=True)
class Task:
    """Test records and predictions of them; the group is None where there is none.

    Parameters
    ----------
    name, kind : str
        What it is called; "binary", "multiclass" or "regression".
    truth, model, baseline : ndarray
        Labels or targets; what the model and the baseline say of them.
    group : ndarray of bool, or None
        Which of two groups a record is in.
    """

    name: str
    kind: str
    truth: NDArray[Any]
    model: Floats
    baseline: Floats
    group: NDArray[np.bool_] | None

    def sample(self, n: int, rng: np.random.Generator) -> "Task":
        """Return n of the records, drawn with replacement."""
        rows = rng.integers(0, len(self.truth), n)
        group = None if self.group is None else self.group[rows]
        return replace(self, truth=self.truth[rows], model=self.model[rows], baseline=self.baseline[rows],
                       group=group)  # fmt: skip

    @property
    def by_group(self) -> dict[str, Any]:
        """What a page is told of groups."""
        if self.group is None:
            return {}
        return {"sensitive_features": self.group, "group_labels": [False, True]}

    @property
    def labels(self) -> dict[str, Any]:
        """What a page is told of labels."""
        return {} if self.kind == "regression" else {"labels": np.unique(self.truth).tolist()}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["DP_METRICS_DATA"]) / name)


def held_out(name: str, kind: str, frame: Any, target: Any, group: Any, model: Any, linear: Any) -> Task:
    """Return the records that two models were not trained on, and what the models say of them."""
    x, target = pd.get_dummies(frame).to_numpy(dtype=float), np.asarray(target)
    target = target.astype(float) if kind == "regression" else target
    train, test = train_test_split(np.arange(len(x)), train_size=8_000, random_state=0)
    said = []
    for one in (model, make_pipeline(StandardScaler(), linear)):
        one.fit(x[train], target[train])
        found = one.predict(x[test]) if kind == "regression" else one.predict_proba(x[test])
        said.append(found[:, 1] if kind == "binary" else found)
    return Task(name, kind, target[test], *said, None if group is None else np.asarray(group)[test])


def real_tasks() -> list[Task]:
    """Return the tasks of real data."""
    adult, brfss = read("adult.csv.gz"), read("diabetes_brfss2015.csv.gz")
    diamonds, bike = read("diamonds.csv.gz"), read("bike_hour.csv.gz")
    with np.load(Path(os.environ["DP_METRICS_DATA"]) / "mnist.npz") as kept:
        images, digits = kept["x_train"].reshape(60_000, 28, 28)[:, ::2, ::2], kept["y_train"]
    of_adult = [
        "age",
        "education-num",
        "capital-gain",
        "hours-per-week",
        "marital-status",
        "occupation",
        "sex",
    ]
    of_bike = ["season", "hr", "temp", "hum", "windspeed", "workingday", "yr"]
    trees = partial(HistGradientBoostingClassifier, random_state=0)
    forest, logistic = RandomForestClassifier(50, random_state=0), LogisticRegression(max_iter=200)
    regressors = HistGradientBoostingRegressor(random_state=0), LinearRegression()
    cut = pd.factorize(diamonds.cut, sort=True)[0]
    sex, ideal, rich = adult.sex == "Male", diamonds.cut == "Ideal", adult.income == ">50K"
    at_work, large = bike.workingday == 1, diamonds.carat > 0.7
    binary, classes, numbers = "binary", "multiclass", "regression"
    ill, flat = brfss.pop("Diabetes_binary") == 1, pd.DataFrame(images.reshape(60_000, -1))
    return [
        held_out("adult", binary, adult[of_adult], rich, sex, trees(), logistic),
        held_out("brfss", binary, brfss, ill, brfss.Sex == 1, trees(), logistic),
        held_out("cut", classes, diamonds.drop(columns="cut"), cut, large, trees(max_iter=30), logistic),
        held_out("digits", classes, flat, digits.astype(int), None, forest, LogisticRegression(max_iter=20)),
        held_out("diamonds", numbers, diamonds.drop(columns="price"), diamonds.price, ideal, *regressors),
        held_out("bike", numbers, bike[of_bike], bike.cnt, at_work, *regressors),
    ]


def exact(task: Task) -> Numbers:
    """Return the exact numbers."""
    y, said, other, group = task.truth, task.model, task.baseline, task.group
    halves = [] if group is None else [(str(one), group == one) for one in (False, True)]
    if task.kind == "regression":
        error, of_other = np.abs(y - said), np.abs(y - other)
        better = (error < of_other).mean() - (error > of_other).mean()
        mse = (error**2).mean()
        numbers = {
            "mse": mse, "r2": 1 - mse / y.var(), "mae": error.mean(),
            "median absolute error": np.median(error), "comparison": better,
        }  # fmt: skip
        return numbers | {f"mae in {name}": error[half].mean() for name, half in halves}
    chosen, by_other = ((s >= 0.5 if s.ndim == 1 else s.argmax(axis=1)) for s in (said, other))
    right = chosen == y
    numbers = {"accuracy": right.mean(), "comparison": right.mean() - (by_other == y).mean()}
    if task.kind == "binary":
        numbers |= {
            "recall": chosen[y].mean(), "precision": y[chosen].mean(), "roc auc": roc_auc_score(y, said),
            "average precision": average_precision_score(y, said), "brier score": ((y - said) ** 2).mean(),
        }  # fmt: skip
        numbers |= {f"recall in {name}": chosen[half & y].mean() for name, half in halves}
        numbers |= {f"roc auc in {name}": roc_auc_score(y[half], said[half]) for name, half in halves}
    else:
        ones = np.eye(said.shape[1])[y]
        numbers |= {
            "balanced accuracy": balanced_accuracy_score(y, chosen),
            "f1 (macro)": f1_score(y, chosen, average="macro"),
            "brier score": ((ones - said) ** 2).sum(axis=1).mean(),
        }  # fmt: skip
        numbers |= {f"accuracy in {name}": right[half].mean() for name, half in halves}
    of = "recall" if task.kind == "binary" else "accuracy"
    if halves:
        numbers[f"{of} difference"] = abs(numbers[f"{of} in False"] - numbers[f"{of} in True"])
    return numbers


def by_page(task: Task, *, epsilon: float) -> Numbers:
    """Return the numbers of a page."""
    way = "y_pred" if task.kind == "regression" else "y_score" if task.kind == "binary" else "y_proba"
    page: Any = dp.private_evaluate(
        task.truth, **{way: task.model}, **task.labels, **task.by_group, baseline=task.baseline,
        task=None if task.labels else "regression", epsilon=epsilon,
    )  # fmt: skip
    numbers = {name: one.value for name, one in page.numbers.items()}
    if "comparison" in page.released:
        numbers["comparison"] = page.released["comparison"].estimate
    return numbers


def by_six_calls(task: Task, *, epsilon: float) -> Numbers:
    """Return the numbers of six calls that share epsilon; where a kind has fewer, of as many."""
    y, said, other = task.truth, task.model, task.baseline
    how: dict[str, Any] = {"epsilon": epsilon / 6}
    frame = partial(dp.PrivateMetricFrame, y_true=y, **task.by_group, **how)
    if task.kind == "regression":
        by_group = frame(metrics="mae", y_pred=said).by_group
        return {
            "mse": dp.private_mse(y, said, **how), "r2": dp.private_r2_score(y, said, **how),
            "mae": dp.private_mae(y, said, **how),
            "median absolute error": dp.private_median_absolute_error(y, said, **how),
            "mae in False": by_group[False], "mae in True": by_group[True],
            "comparison": dp.private_compare(y, said, other, loss="mae", **how).estimate,
        }  # fmt: skip
    labels = task.labels
    if task.kind == "multiclass":
        how = {"epsilon": epsilon / (6 if task.by_group else 5)}
        chosen = said.argmax(axis=1)
        numbers = {
            "accuracy": dp.private_accuracy_score(y, chosen, **how),
            "balanced accuracy": dp.private_balanced_accuracy_score(y, chosen, **labels, **how),
            "f1 (macro)": dp.private_f1_score(y, chosen, **labels, average="macro", **how),
            "brier score": dp.private_brier_score_loss(y, said, **labels, **how),
            "comparison": dp.private_compare(y, chosen, other.argmax(axis=1), **how).estimate,
        }
        if task.by_group:
            numbers["accuracy difference"] = frame(metrics="accuracy", y_pred=chosen).difference()
        return numbers
    positive, above = {**labels, "pos_label": True}, said >= 0.5
    recall = partial(dp.private_recall_score, **positive)
    return {
        "recall": recall(y, above, **how),
        "precision": dp.private_precision_score(y, above, **positive, **how),
        "recall difference": frame(metrics=recall, y_pred=above).difference(),
        "roc auc": dp.private_roc_auc_score(y, said, **labels, **how),
        "brier score": dp.private_brier_score_loss(y, said, **labels, **how),
        "comparison": dp.private_compare(y, above, other >= 0.5, **how).estimate,
    }  # fmt: skip


def mean_errors(samples: Sequence[tuple[Task, Numbers]], release: Callable[[Task], Numbers]) -> Numbers:
    """Return the mean absolute errors, of losses of a regression as a part of them; at most 1."""
    found: dict[str, list[float]] = {}
    for sample, truth in samples:
        for name, value in release(sample).items():
            if not math.isnan(truth.get(name, math.nan)):
                is_loss = sample.kind == "regression" and name not in ("r2", "comparison")
                error = abs(value - truth[name]) / (truth[name] if is_loss else 1.0)
                found.setdefault(name, []).append(1.0 if math.isnan(error) else min(error, 1.0))
    return {name: float(np.mean(errors)) for name, errors in found.items()}


WAYS: dict[str, Callable[..., Numbers]] = {"one page": by_page, "six calls": by_six_calls}


def print_errors(task: Task, sizes: Sequence[int], draws: int) -> Found:
    """Print the errors of pages and of six calls; return them by task, n, epsilon and way."""
    found: Found = {}
    names = [
        name
        for name in NUMBERS[task.kind]
        if task.group is not None or not (" in " in name or "difference" in name)
    ]
    rows = []
    for n in sizes:
        rng = np.random.default_rng(n)
        samples = [(sample, exact(sample)) for sample in (task.sample(n, rng) for _ in range(draws))]
        for epsilon in EPSILONS:
            page, calls = both = [
                mean_errors(samples, partial(made, epsilon=epsilon)) for made in WAYS.values()
            ]
            shared = [
                math.log(calls[name] / page[name]) for name in names if all(by.get(name) for by in both)
            ]
            last = ["", f"{math.exp(np.mean(shared)):.2f}"]
            for way, by, ratio in zip(WAYS, both, last, strict=True):
                found[task.name, n, epsilon, way] = by
                cells = [f"{by[name]:.2g}" if name in by else "-" for name in names]
                rows.append([f"{n:,}", f"{epsilon:g}", way, *cells, ratio])
    title = (
        f"{task.name}: errors; the last column: six calls / one page, geometric mean of the numbers of both"
    )
    print_table(title, ["n", "epsilon", "", *names, "ratio"], rows)
    return found


def shown(found: Found) -> str:
    """Return the table of the documentation."""
    rows = []
    for way, epsilon in itertools.product(WAYS, EPSILONS):
        cells = []
        for name in SHOWN:
            both = [found[task, 3_000, epsilon, way].get(name) for task in ("adult", "brfss")]
            cells.append("no" if None in both else " / ".join(f"{x:.2g}".lstrip("0") for x in both))
        rows.append([way, f"{epsilon:g}", *cells])
    return csv_table(["adult / brfss, n = 3,000", "epsilon", *SHOWN], rows)


def print_division(n: int = 5_000, epsilon: float = 1.0, draws: int = 5) -> None:
    """Print how many times as wide groups make ranges of all records, of made-up scores (medians)."""
    rows, names = [], ("accuracy", "recall", "precision", "roc auc", "brier score")
    for baseline in (False, True):
        alone = np.ones(len(names))
        for groups in (1, 2, 5, 13):
            widths = []
            for seed in range(draws):
                page = made_up(n, groups, epsilon, seed, baseline=baseline)
                limits = [page[name].population_interval() for name in names]
                widths.append([one.upper - one.lower for one in limits])
            found = np.median(widths, axis=0)
            alone = found if groups == 1 else alone
            rows.append([str(groups), "yes" if baseline else "no", *(f"{w:.2f}" for w in found / alone)])
    print_table(["groups", "baseline", *names], rows)


def made_up(n: int, groups: int, epsilon: float, seed: int, *, baseline: bool = False) -> Any:
    """Return a page about made-up scores."""
    rng = np.random.default_rng(seed)
    score, group = rng.beta(2, 5, n), rng.integers(0, groups, n)
    other = np.clip(score + rng.normal(0, 0.1, n), 0, 1) if baseline else None
    by = {"sensitive_features": group, "group_labels": [*range(groups)]} if groups > 1 else {}
    return dp.private_evaluate(
        (rng.random(n) < score).astype(int),
        y_score=score,
        threshold=0.3,
        baseline=other,
        epsilon=epsilon,
        **by,
    )


def print_html(groups: int = 10, draws: int = 5) -> None:
    """Print how long a page takes to be released, and to be HTML, which makes all its limits (medians)."""
    rows = []
    for n, epsilon in itertools.product((1_000, 5_000, 20_000), (1.0, 3.0)):
        taken = []
        for seed in range(draws):
            start = time.process_time()
            page = made_up(n, groups, epsilon, seed)
            released = time.process_time()
            page.to_html()
            taken.append((released - start, time.process_time() - released))
        rows.append([f"{n:,}", f"{epsilon:g}", *(f"{1e3 * one:.0f}" for one in np.median(taken, axis=0))])
    print_table(f"{groups} groups, ms of processor time", ["n", "epsilon", "release", "HTML"], rows)


ONLY = {"division": print_division, "html": print_html}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=24, help="pages of each task, n and epsilon")
    parser.add_argument("--quick", action="store_true", help="two draws, and n = 3,000 only")
    parser.add_argument("--page", type=Path, help="write the table of the documentation here")
    parser.add_argument(
        "--only", choices=ONLY, help="how much groups widen other ranges, or how long HTML takes"
    )
    typed = parser.parse_args()
    warnings.simplefilter("ignore")
    if typed.only:
        return ONLY[typed.only]()
    draws, sizes = (2, (3_000,)) if typed.quick else (typed.draws, SIZES)
    found: Found = {}
    for task in tqdm(real_tasks(), desc="tasks", disable=None):
        found |= print_errors(task, sizes, draws)
    if typed.page:
        typed.page.write_text(shown(found), encoding="utf-8")


if __name__ == "__main__":
    main()
