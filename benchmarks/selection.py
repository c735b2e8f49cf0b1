"""What privacy costs when a model is chosen: regret among 50 xgboost configurations on two data sets.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/selection.py --output DIR`. The first run fits the
models and keeps each one's loss on each validation record in DIR; later runs read these files.

The regret of a choice is its true validation metric above that of the best configuration, in percent. It is
exact, hence not private: the data are public. Ways to choose, at the same total epsilon:

- private search: `PrivateRandomizedSearch`, 20 candidates expected, each scored at epsilon / 3; and with 100
  expected, which costs time but no privacy;
- private grid: all 50 scored at epsilon / 50, which simple composition allows;
- plain random search: as many candidates as the private search draws, scored exactly, without privacy;
- plain grid: all 50 scored exactly, without privacy; its regret is 0.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.model_selection import ParameterSampler, train_test_split
from tqdm import tqdm
from xgboost import XGBClassifier, XGBRegressor

from dp_metrics import private_mean_loss
from dp_metrics._random import OSEntropy, fresh_random_state
from dp_metrics.evaluation.datasets import get_dataset, load_dataset
from dp_metrics.model_selection._trials import best_of_geometric, share_of_one_trial

CANDIDATES = 50
EXPECTED_ITER = 20
MORE_ITER = 100
EPSILONS = (1, 3)
RECORDS = (1_000, None)  # of the validation split; None: all of it
LOGIT_BOUND = 10.0  # margins are clipped: a public cap on the log loss
GRID = {
    "n_estimators": [10, 30, 100, 200],
    "max_depth": [1, 2, 3, 4, 6, 8, 10],
    "learning_rate": [0.01, 0.03, 0.1, 0.3, 0.6],
    "min_child_weight": [1, 5, 20],
    "subsample": [0.5, 1.0],
    "colsample_bytree": [0.5, 1.0],
    "reg_lambda": [0.1, 1.0, 10.0],
}
CONFIGURATIONS = list(ParameterSampler(GRID, CANDIDATES, random_state=0))  # the public list of candidates
METRICS = {"diamonds": "MSE", "adult": "log loss"}
COLOURS = {
    "private search": "#D55E00",
    f"private search, {MORE_ITER} expected": "#E69F00",
    "private grid": "#0072B2",
    "plain random search": "#999999",
}
Floats = NDArray[np.float64]


def fitted_losses(name: str) -> Floats:
    """Fit all configurations on 80 % of the records; return their losses on the others."""
    dataset = get_dataset(name)
    x_train, x_val, y_train, y_val = train_test_split(*load_dataset(name), test_size=0.2, random_state=0)
    rows = []
    for configuration in tqdm(CONFIGURATIONS, desc=f"fitting on {name}"):
        options = {**configuration, "n_jobs": 1, "random_state": 0}
        if dataset.task == "regression":
            prediction = XGBRegressor(**options).fit(x_train, y_train).predict(x_val).astype(np.float64)
            rows.append(np.square(np.clip(y_val, *dataset.bounds) - np.clip(prediction, *dataset.bounds)))
        else:
            margin = XGBClassifier(**options).fit(x_train, y_train).predict(x_val, output_margin=True)
            margin = np.clip(margin.astype(np.float64), -LOGIT_BOUND, LOGIT_BOUND)
            rows.append(np.logaddexp(0.0, np.where(y_val == 1, -margin, margin)))
    return np.array(rows)


def cached_losses(name: str, folder: Path) -> Floats:
    """Return losses of shape (candidates, records), from the folder if they are there."""
    path, wanted = folder / f"losses_{name}.npz", json.dumps(CONFIGURATIONS)
    if path.is_file():
        with np.load(path) as file:
            if str(file["configurations"]) == wanted:
                return file["losses"]
    losses = fitted_losses(name)
    np.savez_compressed(path, losses=losses, configurations=wanted)
    return losses


def largest_loss(name: str) -> float:
    """Return the public cap of one record's loss."""
    dataset = get_dataset(name)
    if dataset.task == "regression":
        return (dataset.bounds[1] - dataset.bounds[0]) ** 2
    return float(np.log1p(np.exp(LOGIT_BOUND)))


def choosers(losses: Floats, cap: float, epsilon: int) -> dict[str, Callable[[], int]]:
    """Return for each way to choose a function that returns the number of a configuration."""
    exact, share = losses.mean(axis=1), share_of_one_trial(Fraction(epsilon))

    def search(score: Callable[[int], float], expected_iter: int = EXPECTED_ITER) -> int:
        def trial() -> tuple[float, int]:
            candidate = int(fresh_random_state().randint(CANDIDATES))
            return score(candidate), candidate

        return best_of_geometric(trial, Fraction(1, expected_iter), OSEntropy())[1]

    def private(candidate: int, cost: float = share) -> float:
        return -private_mean_loss(losses[candidate], epsilon=cost, max_loss=cap)

    return {
        "private search": lambda: search(private),
        f"private search, {MORE_ITER} expected": lambda: search(private, MORE_ITER),
        "private grid": lambda: max(range(CANDIDATES), key=lambda c: private(c, epsilon / CANDIDATES)),
        "plain random search": lambda: search(lambda candidate: -exact[candidate]),
    }


def plot(regrets: dict[tuple[str, int, int, str], Floats], path: Path) -> None:
    """Draw every choice of every repeat, one panel for each data set and number of records."""
    panels = list(dict.fromkeys((name, n) for name, n, _, _ in regrets))
    figure = Figure(figsize=(4.2 * len(panels), 4.8), dpi=150, layout="constrained")
    for axes, (name, n) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for group, epsilon in enumerate(EPSILONS):
            for position, (method, colour) in enumerate(COLOURS.items()):
                values = regrets[name, n, epsilon, method]
                x = group + 0.21 * (position - 1.5)
                # evenly spread in the order of the repeats, so that equal choices can be told apart
                axes.scatter(
                    x + np.linspace(-0.075, 0.075, values.size),
                    values,
                    s=12,
                    color=colour,
                    alpha=0.5,
                    linewidth=0,
                )
                axes.hlines(
                    np.median(values), x - 0.095, x + 0.095, color=colour, linewidth=2.5, label=method
                )
        axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
        axes.set_ylim(bottom=-0.15)
        axes.axhline(0.0, color="black", linewidth=0.8)
        ticks = [tick for tick in (0, 1, 10, 100, 1000, 10_000) if tick <= 3 * axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"{tick:,} %" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.set_xticks(range(len(EPSILONS)), [f"epsilon {epsilon}" for epsilon in EPSILONS])
        axes.grid(True, axis="y", color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.set_title(f"{name}, {METRICS[name]}\n{n:,} validation records", fontsize=11)
    figure.axes[0].set_ylabel("regret: true metric above the best")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend = dict(zip(labels, handles, strict=True))
    figure.legend(
        legend.values(), legend.keys(), loc="outside lower center", ncols=len(legend), frameon=False
    )
    repeats = next(iter(regrets.values())).size
    figure.suptitle(f"Choosing among {CANDIDATES} models: {repeats} repeats (dots) and their median (bars)")
    figure.savefig(path)


def main() -> None:
    """Fit or read the models, choose, print the table and write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder of the cached losses and the plot")
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    if "DP_METRICS_DATA" not in os.environ:
        sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
    arguments.output.mkdir(parents=True, exist_ok=True)
    regrets: dict[tuple[str, int, int, str], Floats] = {}
    columns = ("data set", "records", "epsilon", "way to choose", "median regret", "mean", "90 % quantile")
    print(f"| {' | '.join(columns)} | finds the best |")
    print("|---" * 8 + "|")
    for name in METRICS:
        everything = cached_losses(name, arguments.output)
        for size in RECORDS:
            losses = everything[:, :size]
            exact, n = losses.mean(axis=1), losses.shape[1]
            for epsilon in EPSILONS:
                for method, choose in choosers(losses, largest_loss(name), epsilon).items():
                    chosen = np.array([choose() for _ in range(arguments.repeats)])
                    regret = regrets[name, n, epsilon, method] = 100.0 * (exact[chosen] / exact.min() - 1.0)
                    cells = [f"{value:.3g} %" for value in (np.median(regret), regret.mean())]
                    cells += [f"{np.quantile(regret, 0.9):.3g} %", f"{np.mean(regret == 0.0):.0%}"]
                    print(f"| {name} | {n:,} | {epsilon} | {method} | {' | '.join(cells)} |", flush=True)
            spread = 100.0 * (np.quantile(exact, [0.5, 1.0]) / exact.min() - 1.0)
            print(
                f"| {name} | {n:,} | | median and worst of the {CANDIDATES} "
                f"| {spread[0]:.3g} % | | {spread[1]:.3g} % | |"
            )
    path = arguments.output / "selection.png"
    plot(regrets, path)
    print(f"\nPlot: {path}")


if __name__ == "__main__":
    main()
