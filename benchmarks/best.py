"""Print how often `private_best` picks the best of several fitted models, beside other ways at one epsilon.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/best.py [--only simulated|adult] [--quick]`. The
simulated table reads no data. The models of the other are fitted on 4,000 records of Adult, and chosen from
by samples of the rest. Everything is under replace_one, at the same total epsilon:

- permute: `private_best`, permute-and-flip;
- exponential: the exponential mechanism at the same rate;
- means: each of m models scored at epsilon / m, the best score taken;
- compare: `private_compare` of the champion so far with each other model, in random order, at
  epsilon / (m - 1), by the sign of its estimate whatever the p-value; there is none for an area;
- search: the best of a geometric number of trials, 20 or 100 expected, each scored at epsilon / 3: what
  `PrivateRandomizedSearch` would do if its candidates were these;
- chance: a model drawn at random.

A cell has two probabilities in percent: to pick the model that is best on the records, and to pick it or one
that is worse by at most a sampling error, that of their paired difference. Noise is simulated with the law
of the releases; that of areas is drawn by the releases themselves.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from classification.tasks import print_table
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tqdm import tqdm

from dp_metrics._random import SeededEntropy
from dp_metrics.evaluation.datasets import load_dataset
from dp_metrics.inputs.shape import Records
from dp_metrics.metrics import row_of
from dp_metrics.release.release import Release

Floats = NDArray[np.float64]
Generator = np.random.Generator
EPSILONS = (0.1, 0.3, 1.0)
MARGIN = 10.0  # the limit of a log loss


class MeanLosses:
    """Models judged by the mean of losses of shape (models, records), with a public limit."""

    def __init__(self, losses: Floats, cap: float) -> None:
        self.losses, self.cap = losses, cap
        self.models, self.n = losses.shape
        self.totals = losses.sum(axis=1)
        self.step = cap

    def distance(self, best: int) -> Floats:
        """Return by how many sampling errors each model is worse than the best."""
        difference = self.losses - self.losses[best]
        error = difference.std(axis=1) / np.sqrt(self.n)
        return np.divide(difference.mean(axis=1), error, out=np.zeros(self.models), where=error > 0)

    def scored(self, rng: Generator, models: NDArray[np.intp], epsilon: float) -> Floats:
        """Return a private total for each of these models, epsilon each."""
        return self.totals[models] + rng.laplace(scale=self.cap / epsilon, size=models.shape)

    def is_worse(self, rng: Generator, champions: NDArray[np.intp], other: int, epsilon: float) -> Any:
        """Return whether comparisons say that champions lose against another model."""
        if set(np.unique(self.losses)) <= {0.0, 1.0}:  # wins, noise of rate epsilon / 2
            q = -np.expm1(-epsilon / 2)
            noise = rng.geometric(q, champions.size) - rng.geometric(q, champions.size)
        else:  # clipped differences, from -cap to cap
            noise = rng.laplace(scale=2 * self.cap / epsilon, size=champions.size)
        return self.totals[champions] - self.totals[other] + noise > 0


class Areas:
    """Models judged by the area under the ROC curve of scores of shape (models, records)."""

    def __init__(self, y: NDArray[np.int64], scores: Floats) -> None:
        self.y, self.scores = y, scores
        self.models, self.n = scores.shape
        above = y == 1
        ranks, of_positives, of_negatives = (
            rankdata(some, axis=1) for some in (scores, scores[:, above], scores[:, ~above])
        )
        # placements: the share of the other class that a record is on the right side of
        self._of_positives = (ranks[:, above] - of_positives) / (~above).sum()
        self._of_negatives = 1 - (ranks[:, ~above] - of_negatives) / above.sum()
        self.totals = (1 - self._of_positives.mean(axis=1)) * above.sum() * (~above).sum()
        self.step = self.n - 1

    def distance(self, best: int) -> Floats:
        """Return by how many sampling errors, DeLong's, each model is worse than the best."""
        sides = [one - one[best] for one in (self._of_positives, self._of_negatives)]
        error = np.sqrt(sum(side.var(axis=1) / side.shape[1] for side in sides))
        worse = -sides[0].mean(axis=1)
        return np.divide(worse, error, out=np.zeros(self.models), where=error > 0)

    def scored(self, rng: Generator, models: NDArray[np.intp], epsilon: float) -> Floats:
        """Return 1 less a private area for each of these models, epsilon each."""
        areas = [self._draw(model, epsilon)(SeededEntropy(rng), None)[0] for model in models.ravel().tolist()]
        return np.array(areas, dtype=float).reshape(models.shape)

    @cache  # noqa: B019
    def _draw(self, model: int, epsilon: float) -> Any:
        """Return what is left to draw of `private_roc_auc_score`, which takes longer to prepare."""
        row, _ = row_of("roc_auc")
        shape, records = Records.of((self.y, self.scores[model]), private_n=False)
        plan = row.planned(shape, {}, private_n=False)
        release = Release(row.name, default=row.mechanism, epsilon=epsilon)
        return release.prepare(plan, plan.read(records))[0][0]


Task = MeanLosses | Areas
Way = Callable[[Task, float, Generator, int], NDArray[np.intp]]


def by_noise(task: Task, epsilon: float, rng: Generator, runs: int, law: str) -> NDArray[np.intp]:
    """Return choices by noise of a law on totals, of rate epsilon / (2 step)."""
    noise = getattr(rng, law)(size=(runs, task.models)) * 2 * task.step / epsilon
    return np.argmax(noise - task.totals, axis=1)


def by_means(task: Task, epsilon: float, rng: Generator, runs: int) -> NDArray[np.intp]:
    """Return choices by m scores."""
    models = np.tile(np.arange(task.models), (runs, 1))
    return np.argmin(task.scored(rng, models, epsilon / task.models), axis=1)


def by_comparisons(task: Task, epsilon: float, rng: Generator, runs: int) -> NDArray[np.intp]:
    """Return the last champions."""
    assert isinstance(task, MeanLosses)
    champions = np.zeros(runs, dtype=np.intp)
    for other in range(1, task.models):
        champions[task.is_worse(rng, champions, other, epsilon / (task.models - 1))] = other
    return champions


def by_search(task: Task, epsilon: float, rng: Generator, runs: int, trials: int) -> NDArray[np.intp]:
    """Return the best of secret numbers of trials."""
    chosen = []
    for number in rng.geometric(1 / trials, runs):
        models = rng.integers(task.models, size=number)
        chosen.append(models[np.argmin(task.scored(rng, models, epsilon / 3))])
    return np.array(chosen)


WAYS: dict[str, Way] = {
    "permute": partial(by_noise, law="standard_exponential"),
    "exponential": partial(by_noise, law="gumbel"),
    "means": by_means,
    "compare": by_comparisons,
    "search 20": partial(by_search, trials=20),
    "search 100": partial(by_search, trials=100),
    "chance": lambda task, epsilon, rng, runs: rng.integers(task.models, size=runs),
}


@dataclass
class Shares:
    """How often each way picked the best, and one within a sampling error of it."""

    runs: int = 0
    found: dict[str, Floats] = field(default_factory=dict)

    def add(self, task: Task, epsilon: float, rng: Generator, runs: int) -> None:
        """Let each way choose so many times."""
        best = int(np.argmin(task.totals))
        is_near, self.runs = task.distance(best) <= 1, self.runs + runs
        for name, way in WAYS.items():
            if name == "compare" and isinstance(task, Areas):
                continue
            chosen = way(task, epsilon, rng, runs)
            picks = np.array([np.sum(chosen == best), np.sum(is_near[chosen])], float)
            self.found[name] = self.found.get(name, 0) + picks

    def cells(self) -> list[str]:
        """Return a cell for each way."""
        shares = {name: 100 * picks / self.runs for name, picks in self.found.items()}
        return [f"{shares[name][0]:.0f}, {shares[name][1]:.0f}" if name in shares else "" for name in WAYS]


def simulated(quick: bool) -> None:
    """Print the table of simulated models: the worst errs half as much again as the best."""
    rows, sets, runs = [], *((2, 20) if quick else (20, 100))
    cells = list(product(("accuracy", "MAE"), (1000,) if quick else (300, 3000), (2, 5, 20), EPSILONS))
    for name, n, models, epsilon in tqdm(cells, desc="simulated"):
        rng, shares = np.random.default_rng([n, models, int(100 * epsilon)]), Shares()
        for _ in range(sets):
            # in any order, for the first champion of the comparisons must not be the best
            worse = rng.permutation(np.linspace(0.0, 1.0, models))[:, np.newaxis]
            if name == "accuracy":  # a tenth of the records are hard for all
                own = rng.random((models, n)) < 0.1 + 0.1 * worse
                task = MeanLosses((own | (rng.random(n) < 0.1)).astype(float), 1.0)
            else:  # errors that are partly the same, clipped at 4
                errors = (1.0 + 0.5 * worse) * (rng.normal(size=n) + rng.normal(size=(models, n))) / 2**0.5
                task = MeanLosses(np.minimum(np.abs(errors), 4.0), 4.0)
            shares.add(task, epsilon, rng, runs)
        rows.append([name, str(n), str(models), f"{epsilon:g}", *shares.cells()])
    header = ["metric", "n", "models", "epsilon", *WAYS]
    print_table(f"Simulated models, {sets} data sets of {runs} choices each", header, rows)


def fitted() -> tuple[NDArray[np.int64], Floats]:
    """Return labels of Adult, and the probabilities of five models fitted on 4,000 other records."""
    x, y = load_dataset("adult")
    x_train, x_test, y_train, y_test = train_test_split(x, y, train_size=4000, random_state=0)
    models = [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=6, random_state=0),
        RandomForestClassifier(60, min_samples_leaf=5, random_state=0),
        HistGradientBoostingClassifier(random_state=0),
    ]
    said = [model.fit(x_train, y_train).predict_proba(x_test)[:, 1] for model in tqdm(models, desc="fitting")]
    return np.asarray(y_test).astype(int), np.array(said)


def adult_task(name: str, y: NDArray[np.int64], said: Floats) -> Task:
    """Return what the models are judged by."""
    if name == "AUC":
        return Areas(y, said)
    if name == "accuracy":
        return MeanLosses(((said > 0.5) != y).astype(float), 1.0)
    if name == "Brier":
        return MeanLosses((said - y) ** 2, 1.0)
    with np.errstate(divide="ignore"):
        return MeanLosses(np.minimum(-np.log(np.where(y == 1, said, 1 - said)), MARGIN), MARGIN)


def adult(quick: bool) -> None:
    """Print the table of five models on Adult."""
    y, said = fitted()
    rows, sets, runs = [], *((1, 10) if quick else (20, 100))
    cells = list(product(("accuracy", "Brier", "log loss", "AUC"), (300, 3000), EPSILONS))
    for name, n, epsilon in tqdm(cells, desc="adult"):
        rng, shares = np.random.default_rng([n, int(100 * epsilon)]), Shares()
        for _ in range(sets):
            some, order = rng.choice(y.size, n, replace=False), rng.permutation(len(said))
            task = adult_task(name, y[some], said[order][:, some])
            shares.add(task, epsilon, rng, runs // 10 if name == "AUC" else runs)  # areas take their time
        rows.append([name, str(n), f"{epsilon:g}", *shares.cells()])
    title = f"Five models on Adult, {sets} samples of {runs} choices each (areas: {runs // 10})"
    print_table(title, ["metric", "n", "epsilon", *WAYS], rows)


TABLES = {"simulated": simulated, "adult": adult}


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES, help="print one table")
    parser.add_argument("--quick", action="store_true", help="few runs: a smoke test")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name in [chosen.only] if chosen.only else TABLES:
        if name == "adult" and "DP_METRICS_DATA" not in os.environ:
            sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
        TABLES[name](chosen.quick)


if __name__ == "__main__":
    main()
