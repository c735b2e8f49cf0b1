"""Print how errors that are planned from a guess compare with those of real data; exact laws, or simulations.

Run `DP_METRICS_DATA=path/to/data python benchmarks/planning.py`; it takes some minutes.

1. Losses: the mean error on three samples, in units of what `expected_error` plans for light and for heavy
   tails from the metric's value. The laws (normal, and Student's with 3 degrees of freedom) were chosen on
   none of these tasks.
2. The same for a log loss of rare labels, of calibrated and of overconfident probabilities. The factor of the
   log odds was chosen on the tasks that are marked: nearly all.
3. Precision and F1 of rare labels, where a record is called positive above 0.5, and where as many are as
   there are positives: planned / true error, with and without `predicted_positives`.
"""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import metrics as exact
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dp_metrics as dp

Pair = tuple[Any, Any]
SAMPLES, SIZES, EPSILON = 3, (1000, 5000), 1.0
ADULT = ["age", "education-num", "capital-gain", "hours-per-week", "occupation", "sex"]
VALUES = {
    "mae": exact.mean_absolute_error,
    "mse": exact.mean_squared_error,
    "r2": exact.r2_score,
    "log_loss": lambda y, p: exact.log_loss(y, p, labels=[0, 1]),
    "precision": lambda y, p: exact.precision_score(y, p, zero_division=0),
    "f1": lambda y, p: exact.f1_score(y, p, zero_division=0),
}
NOT_CHOSEN_ON = ("MNIST 3",)


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["DP_METRICS_DATA"]) / name)


def held_out(x: pd.DataFrame, y: Any, model: Any) -> Pair:
    """Return the targets of two thirds of the records, or more, and what a model of the others says."""
    columns, target = pd.get_dummies(x).to_numpy(float), np.asarray(y)
    order = np.random.default_rng(0).permutation(len(target))
    train, test = np.split(order, [min(4000, len(order) // 3)])
    model.fit(columns[train], target[train])
    if hasattr(model, "predict_proba"):
        return target[test].astype(int), model.predict_proba(columns[test])[:, 1]
    return target[test].astype(float), model.predict(columns[test])


def regressions() -> Iterator[tuple[str, Pair]]:
    diamonds, bike, abalone = read("diamonds.csv.gz"), read("bike_hour.csv.gz"), read("abalone.csv.gz")
    adult, brfss = read("adult.csv.gz"), read("diabetes_brfss2015.csv.gz")
    by_hour = bike[["season", "hr", "temp", "hum", "windspeed", "workingday", "yr"]]
    trees = HistGradientBoostingRegressor(random_state=0)
    yield "diamonds", held_out(diamonds.drop(columns="price"), diamonds.price, trees)
    yield "diamonds, linear", held_out(diamonds.drop(columns="price"), diamonds.price, LinearRegression())
    yield "bike", held_out(by_hour, bike.cnt, trees)
    yield "abalone", held_out(abalone.drop(columns="Rings"), abalone.Rings, trees)
    hours = adult[ADULT].drop(columns="hours-per-week")
    yield "adult hours", held_out(hours, adult["hours-per-week"], trees)
    yield "brfss BMI", held_out(brfss.drop(columns="BMI"), brfss.BMI, trees)


def rare_labels() -> Iterator[tuple[str, Pair]]:
    brfss, diamonds, adult = read("diabetes_brfss2015.csv.gz"), read("diamonds.csv.gz"), read("adult.csv.gz")
    trees = HistGradientBoostingClassifier(random_state=0, max_iter=40)
    for name in ("Stroke", "NoDocbcCost", "HeartDiseaseorAttack", "HvyAlcoholConsump"):
        yield f"brfss {name}", held_out(brfss.drop(columns=name), brfss[name], trees)
    yield "diamonds Fair", held_out(diamonds.drop(columns="cut"), diamonds.cut == "Fair", trees)
    yield (
        "adult doctorate",
        held_out(adult[["age", "occupation", "sex"]], adult["education-num"] == 16, trees),
    )
    with np.load(Path(os.environ["DP_METRICS_DATA"]) / "mnist.npz") as kept:
        images, digits = kept["x_train"].reshape(60_000, 28, 28)[:, ::2, ::2], kept["y_train"]
    pixels = pd.DataFrame(images.reshape(60_000, -1))
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=40))
    for digit in (3, 5):
        yield f"MNIST {digit}", held_out(pixels, digits == digit, linear)


def cells(metric: str, data: Pair, n: int) -> tuple[float, float, float, float]:
    """Return the mean error on some samples, the metric, and the shares of positives and positive calls."""
    found = []
    for seed in range(SAMPLES):
        rows = np.random.default_rng(seed).integers(0, len(data[0]), n)
        y, p = (one[rows] for one in data)
        error = dp.expected_error(metric, y, p, epsilon=EPSILON).mean_absolute
        found.append((error, VALUES[metric](y, p), y.mean(), p.mean()))
    error, value, positives, called = np.mean(found, axis=0).tolist()
    return error, value, positives, called


def print_ranges(metrics: tuple[str, ...], tasks: list[tuple[str, Pair]]) -> None:
    print("\n| metric | task | n | true / light | true / heavy |\n|---|---|---|---|---|")
    ratios = []
    for metric in metrics:
        for name, data in tasks:
            for n in SIZES:
                error, value, positives, _ = cells(metric, data, n)
                hints = {"positives": positives} if metric == "log_loss" else {}
                planned = dp.expected_error(metric, guess=value, n=n, epsilon=EPSILON, **hints)
                ratios.append([error / end for end in planned.mean_absolute_range or ()])
                mark = "" if metric != "log_loss" or name in NOT_CHOSEN_ON else " (chosen on)"
                print(
                    f"| {metric} | {name}{mark} | {n:,} | {ratios[-1][0]:.2f} | {ratios[-1][1]:.2f} |",
                    flush=True,
                )
    light, heavy = np.array(ratios).T
    within, twice = (light >= 1) & (heavy <= 1), (light >= 0.5) & (heavy <= 2)
    print(
        f"\nThe range holds in {within.sum()} of {len(light)} cells, to a factor of two in {twice.sum()}; "
        f"true / light is {light.min():.2f} or more, true / heavy {heavy.max():.2f} or less."
    )


def print_labels(tasks: list[tuple[str, Pair]]) -> None:
    print("\n| metric | task | n | called positive | planned / true | with predicted_positives |")
    print("|---|---|---|---|---|---|")
    ratios = []
    for metric in ("precision", "f1"):
        for name, (y, proba) in tasks:
            for level in (0.5, float(np.quantile(proba, 1 - y.mean()))):
                called = (proba > level).astype(int)
                for n in SIZES:
                    error, value, positives, share = cells(metric, (y, called), n)
                    if value == 0 or share * n < 20:
                        continue  # nothing can be read of a release either
                    guess = {"guess": value, "n": n, "positives": positives, "epsilon": EPSILON}
                    planned = [
                        dp.expected_error(metric, **guess, **hint).mean_absolute / error
                        for hint in ({}, {"predicted_positives": share})
                    ]
                    ratios.append(planned)
                    told = " | ".join(f"{one:.2f}" for one in planned)
                    print(f"| {metric} | {name} | {n:,} | {100 * share:.2g} % | {told} |", flush=True)
    for title, column in zip(("without", "with"), np.array(ratios).T, strict=True):
        near = (column > 0.5) & (column < 2)
        print(
            f"\n{title}: to a factor of two in {near.sum()} of {near.size} cells, least {column.min():.2f}."
        )


def main() -> None:
    warnings.simplefilter("ignore")
    print_ranges(("mae", "mse", "r2"), list(regressions()))
    rare = list(rare_labels())
    print_ranges(("log_loss",), rare)
    print_labels(rare)


if __name__ == "__main__":
    main()
