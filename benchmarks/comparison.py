"""Print what `private_compare` is worth: exact sizes, power, coverage, and how often wins and means disagree.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/comparison.py [--only NAME] [--quick]`:

- size: the probability of a p-value up to 0.05 where both models win equally often, exactly. This reads no
  data.
- power: the same for the winning probabilities of five pairs of models (x: xgboost, s: a smaller one, l: a
  linear model), from 4,000 draws each, and that of the sign test without privacy.
- pairs: models trained on one half of six data sets, compared on the other: who wins, the mean losses, and
  in how many pairs the signs are opposite.
- means: power of the test of a mean difference, and of a t-test without privacy.
- coverage: how often the interval for wins covers, and its width beside that of Wald's without privacy.

The noise is simulated with the law of the releases. Held-out halves are resampled with replacement, so that
their own means are the truth.
"""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from classification.tasks import _TASKS, print_table
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from dp_metrics.evaluation.datasets import get_dataset
from dp_metrics.inference.wins import wins_interval, wins_p_value
from dp_metrics.release.normal_limits import mean_half_width

Floats = NDArray[np.float64]
EPSILONS = (0.1, 0.3, 1.0, 3.0)
LEVEL = 0.05
MARGIN = 10.0  # to which those of classifiers are clipped: the cap of a log loss is hardly more
SIZES = (300, 1000, 3000, 10_000)

PAIRS = ("accuracy adult x-l", "accuracy diabetes x-l", "MAE diamonds x-s", "MAE abalone x-l", "MAE bike x-s")
"""Pairs of models for the table of power."""


def noise(rng: np.random.Generator, epsilon: float, size: Any) -> NDArray[np.int64]:
    """Return two-sided geometric noise of rate epsilon / 2."""
    found: NDArray[np.int64] = np.diff(
        rng.geometric(-np.expm1(-epsilon / 2), (2, *np.atleast_1d(size))), axis=0
    )
    return found[0]


@dataclass(frozen=True)
class Options:
    """How much is done."""

    runs: int
    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    datasets: tuple[str, ...]


def exact_size(n: int, epsilon: float, shares: tuple[float, ...]) -> list[float]:
    """Return P(p <= 0.05) where both win with probability share / 2 on a record, for each share."""
    rate, most = epsilon / 2, n + math.ceil(40 / epsilon)

    def critical(decided: int, low: int) -> int:
        """Return the least significant difference, which does not fall with `decided`."""
        high = most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if wins_p_value(middle, decided, n, rate) <= LEVEL else (middle, high)
        return high

    needed = [critical(0, 0)]
    for decided in range(1, n + 1):
        same = wins_p_value(needed[-1], decided, n, rate) <= LEVEL
        needed.append(needed[-1] if same else critical(decided, needed[-1]))
    thresholds, place = np.unique(needed, return_inverse=True)
    q, noisy = math.exp(-rate), np.arange(n + 1)
    rejected = np.empty(n + 1)
    for m in range(n + 1):
        away = thresholds[:, np.newaxis] - (2 * np.arange(m + 1) - m)
        tail = np.where(away > 0, q ** np.abs(away), 1 + q - q ** (1 + np.abs(away))) / (1 + q)
        of_threshold = 2 * tail @ binom.pmf(np.arange(m + 1), m, 0.5)
        of_noisy = (1 - q) / (1 + q) * q ** np.abs(noisy - m)
        of_noisy[0], of_noisy[n] = q**m / (1 + q), q ** (n - m) / (1 + q)  # beyond 0 and n it counts as these
        rejected[m] = of_noisy @ of_threshold[place]
    return [float(binom.pmf(noisy, n, share) @ rejected) for share in shares]


def size(options: Options) -> None:
    """Print exact sizes."""
    shares, rows = (0.02, 0.1, 0.3, 0.7, 1.0), []
    cells = [
        (n, epsilon) for n in (20, 100, 300, 1000) if n <= options.sizes[-1] for epsilon in options.epsilons
    ]
    for n, epsilon in tqdm(cells, desc="size"):
        sizes = exact_size(n, epsilon, shares)
        assert max(sizes) <= LEVEL
        rows.append([str(n), f"{epsilon:g}", *(f"{one:.4f}" for one in sizes)])
    header = ["n", "epsilon", *(f"{share:g} decided" for share in shares)]
    print_table("Exact size at 0.05", header, rows)


def power(n: int, epsilon: float, wins: float, defeats: float, runs: int) -> float:
    """Return the share of releases with a p-value up to 0.05."""
    rng = np.random.default_rng([n, int(100 * epsilon)])
    won, lost, _ = rng.multinomial(n, [wins, defeats, max(1 - wins - defeats, 0.0)], runs).T
    difference, decided = won - lost + noise(rng, epsilon, runs), won + lost + noise(rng, epsilon, runs)
    pairs = zip(difference.tolist(), decided.tolist(), strict=True)
    return sum(wins_p_value(d, m, n, epsilon / 2) <= LEVEL for d, m in pairs) / runs


@dataclass(frozen=True)
class Pair:
    """Two models on the held-out half of a data set, by one loss."""

    name: str
    loss: str
    a: Floats
    b: Floats

    @property
    def wins(self) -> tuple[float, float]:
        """The shares of the records on which the first, and the second, is better."""
        return float(np.mean(self.a < self.b)), float(np.mean(self.a > self.b))


@cache
def predictions(dataset: str) -> tuple[Any, dict[str, Floats]]:
    """Return the targets of one half of a data set, and what three models trained on the other say."""
    from xgboost import XGBClassifier, XGBRegressor

    source = _TASKS[dataset].dataset if dataset == "brfss" else get_dataset(dataset)
    x, y = source.loader(source, None)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.5, random_state=0)
    of_classes = source.task == "binary"
    boosted, linear = (
        (XGBClassifier, LogisticRegression(max_iter=1000))
        if of_classes
        else (XGBRegressor, LinearRegression())
    )
    models = {
        "x": boosted(n_estimators=100, n_jobs=1),
        "l": make_pipeline(StandardScaler(), linear),
        "s": boosted(n_estimators=50, max_depth=4, n_jobs=1),
    }
    said = {}
    for name, model in models.items():
        model.fit(x_train, y_train)
        found = np.asarray(model.predict_proba(x_test)[:, 1] if of_classes else model.predict(x_test), float)
        # as in the experiments of the package: very sure models say the same, and tie
        said[name] = np.clip(found, expit(-MARGIN), expit(MARGIN)) if of_classes else found
    return y_test, said


def losses_of(y: Any, said: Floats, loss: str) -> Floats:
    """Return the loss of each record."""
    if loss == "log loss":
        return -np.log(np.where(y == 1, said, 1 - said))
    if loss == "accuracy":
        return ((said > 0.5) != y).astype(float)
    return {"Brier": (said - y) ** 2, "MAE": np.abs(said - y), "MSE": (said - y) ** 2}[loss]


def pairs_of(options: Options) -> Iterator[Pair]:
    """Yield all pairs of models by all losses."""
    for dataset in tqdm(options.datasets, desc="models"):
        y, said = predictions(dataset)
        of_classes = dataset in ("adult", "diabetes", "brfss")
        for loss in ("accuracy", "log loss", "Brier") if of_classes else ("MAE", "MSE"):
            for one, other in ("xl", "xs", "sl"):
                losses = (losses_of(y, said[model], loss) for model in (one, other))
                yield Pair(f"{loss} {dataset} {one}-{other}", loss, *losses)


def pairs(options: Options) -> None:
    """Print who wins, and whose mean loss is lower."""
    rows, opposite, clearly, number = [], 0, 0, 0
    for pair in pairs_of(options):
        wins, defeats = pair.wins
        means = pair.a.mean(), pair.b.mean()
        t = (means[1] - means[0]) / ((pair.a - pair.b).std() / math.sqrt(pair.a.size))
        is_opposite = (wins - defeats) * t < 0
        if pair.loss != "accuracy":  # of which the mean difference is that of the wins
            number += 1
            opposite += is_opposite
            clearly += is_opposite and abs(t) > 2
        shares, of_means = (f"{wins:.3f}", f"{defeats:.3f}"), (f"{mean:.4g}" for mean in means)
        rows.append([pair.name, *shares, *of_means, f"{t:.1f}", "opposite" if is_opposite else ""])
    header = ["pair", "wins", "defeats", "mean of first", "of second", "t", "signs"]
    print_table("Wins and mean losses on held-out halves", header, rows)
    print(f"{opposite} of {number} pairs have opposite signs, {clearly} of them with |t| above 2.")


def sign_test_power(n: int, wins: float, defeats: float, runs: int) -> float:
    """Return the share of samples with a p-value of the exact sign test up to 0.05."""
    rng = np.random.default_rng([n, 3])
    won, lost, _ = rng.multinomial(n, [wins, defeats, max(1 - wins - defeats, 0.0)], runs).T
    p = np.minimum(2 * binom.cdf(np.minimum(won, lost), won + lost, 0.5), 1.0)
    return float(np.mean(p <= LEVEL))


def powers(options: Options) -> None:
    """Print power for the winning probabilities of pairs of models."""
    rows = []
    for pair in tqdm([pair for pair in pairs_of(options) if pair.name in PAIRS], desc="power"):
        for n in options.sizes:
            cells = [power(n, epsilon, *pair.wins, options.runs) for epsilon in options.epsilons]
            cells.append(sign_test_power(n, *pair.wins, options.runs))
            rows.append(
                [pair.name, *(f"{share:.3f}" for share in pair.wins), str(n), *(f"{x:.2f}" for x in cells)]
            )
    columns = (f"epsilon {epsilon:g}" for epsilon in options.epsilons)
    print_table("Power at 0.05", ["pair", "wins", "defeats", "n", *columns, "sign test"], rows)


def mean_rejections(pair: Pair, n: int, epsilon: float, limit: float, runs: int) -> tuple[float, float]:
    """Return the shares of samples whose private interval, and whose t-test, excludes 0."""
    rng = np.random.default_rng([n, int(100 * epsilon), 1])
    v = np.clip(pair.a - pair.b, -limit, limit) / limit / 2 + 0.5
    private = plain = 0
    z = NormalDist().inv_cdf(1 - LEVEL / 2)
    for _ in range(runs):
        sample = rng.choice(v, n)
        m, d = (
            float(np.mean(x) + rng.laplace(scale=1 / (n * epsilon))) for x in (sample, sample * (1 - sample))
        )
        m = min(max(m, 0.0), 1.0)
        private += abs(m - 0.5) > mean_half_width(m, d, n, (1 / (n * epsilon),) * 2, LEVEL)
        plain += abs(sample.mean() - 0.5) > z * sample.std(ddof=1) / math.sqrt(n)
    return private / runs, plain / runs


def means(options: Options) -> None:
    """Print power of the test of a mean difference."""
    rows = []
    found = [pair for pair in pairs_of(options) if pair.loss in ("log loss", "MAE") and pair.name[-1] == "l"]
    for pair in tqdm(found, desc="means"):
        limit = MARGIN if pair.loss == "log loss" else float(np.quantile(np.abs(pair.a - pair.b), 0.999))
        for n in options.sizes:
            cells = [
                mean_rejections(pair, n, epsilon, limit, options.runs // 10) for epsilon in options.epsilons
            ]
            rows.append(
                [pair.name, f"{limit:.3g}", str(n), *(f"{one:.2f}" for one, _ in cells), f"{cells[0][1]:.2f}"]
            )
    header = ["pair", "limit", "n", *(f"epsilon {epsilon:g}" for epsilon in options.epsilons), "t-test"]
    print_table("Power at 0.05 of the mean difference (limits of MAE: a quantile of the truth)", header, rows)


def coverage_of(pair: Pair, n: int, epsilon: float, runs: int) -> tuple[float, float]:
    """Return how often the interval covers, and its median width beside Wald's of the same sample."""
    rng = np.random.default_rng([n, int(100 * epsilon), 2])
    wins, defeats = pair.wins
    theta, covered, widths = wins - defeats, 0, []
    won, lost, _ = rng.multinomial(n, [wins, defeats, max(1 - wins - defeats, 0.0)], runs).T
    drawn = won - lost + noise(rng, epsilon, runs), won + lost + noise(rng, epsilon, runs)
    for d, m, up, down in zip(*(x.tolist() for x in (*drawn, won, lost)), strict=True):
        lower, upper = wins_interval(d, m, n, epsilon / 2, 1 - LEVEL)
        covered += lower <= theta <= upper
        spread = (up + down) / n - ((up - down) / n) ** 2
        widths.append((upper - lower) / (2 * 1.96 * math.sqrt(max(spread, 1 / n) / n)))
    return covered / runs, float(np.median(widths))


def coverage(options: Options) -> None:
    """Print coverage of the interval for wins."""
    rows, all_cells = [], []
    chosen = ("accuracy adult x-l", "accuracy diabetes x-l", "log loss adult x-l", "MAE diamonds x-s")
    chosen += ("MAE abalone x-l", "MAE bike x-s")
    runs = max(options.runs // 10, 10)
    for pair in tqdm([pair for pair in pairs_of(options) if pair.name in chosen], desc="coverage"):
        for n in options.sizes:
            cells = [coverage_of(pair, n, epsilon, runs) for epsilon in options.epsilons]
            all_cells += [cell[0] for cell in cells]
            rows.append([pair.name, str(n), *(f"{share:.3f}, {width:.2f}" for share, width in cells)])
    header = ["pair", "n", *(f"epsilon {epsilon:g}" for epsilon in options.epsilons)]
    print_table(f"Coverage of 95 %, from {runs} runs a cell, and width / Wald's", header, rows)
    print(f"Least {min(all_cells):.3f}, mean {np.mean(all_cells):.3f}, of {len(all_cells)} cells.")


TABLES = {"size": size, "power": powers, "pairs": pairs, "means": means, "coverage": coverage}
FULL = Options(4000, SIZES, EPSILONS, ("adult", "diabetes", "brfss", "diamonds", "abalone", "bike"))
QUICK = Options(100, (300,), (1.0,), ("abalone",))


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES, help="print one table")
    parser.add_argument("--quick", action="store_true", help="few runs on one data set: a smoke test")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name in [chosen.only] if chosen.only else TABLES:
        if name != "size" and "DP_METRICS_DATA" not in os.environ:
            sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
        TABLES[name](QUICK if chosen.quick else FULL)


if __name__ == "__main__":
    main()
