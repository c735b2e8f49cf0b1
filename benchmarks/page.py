"""Print how far numbers of a page are off, by how its epsilon is divided, and those of six calls.

Run `DP_METRICS_DATA=FOLDER python benchmarks/page.py [--draws 30] [--quick]`. Mean absolute errors over
subsamples of n test records of real data, with new noise each; the last column is the mean, over the columns
before it, of the error / that of the row "rule". A dash: left out by the rule, or not among the calls.

Classification: boosted trees on adult (24 % positive) and brfss (14 %), groups by sex, a linear model as the
baseline. Regression: the price of diamonds (groups: ideal cut or not), bikes rented (working days or not).
"""

import argparse
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from classification.tasks import print_table
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

import dp_metrics as dp

Test = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # truth, model, baseline, group
Numbers = dict[str, float]

SIZES, EPSILONS = (300, 3_000, 30_000), (0.3, 1.0, 3.0)

CLASSES: dict[str, Mapping[str, float] | None] = {
    "rule": None,
    "30 40 20 15 15": {
        "labels by group": 30,
        "scores": 40,
        "scores by group": 20,
        "loss": 15,
        "comparison": 15,
    },
    "equal": dict.fromkeys(("labels by group", "scores", "scores by group", "loss", "comparison"), 1),
    "more for labels": {
        "labels by group": 50,
        "scores": 30,
        "scores by group": 20,
        "loss": 10,
        "comparison": 10,
    },
    "less for the rest": {
        "labels by group": 40,
        "scores": 40,
        "scores by group": 20,
        "loss": 5,
        "comparison": 10,
    },
    "no areas by group": {"labels by group": 30, "scores": 40, "loss": 15, "comparison": 15},
}
NUMBERS: dict[str, Mapping[str, float] | None] = {
    "rule": None,
    "40 30 15 15": {"errors": 40, "absolute error by group": 30, "median error": 15, "comparison": 15},
    "equal": dict.fromkeys(("errors", "absolute error by group", "median error", "comparison"), 1),
    "more by group": {"errors": 30, "absolute error by group": 45, "median error": 15, "comparison": 10},
}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["DP_METRICS_DATA"]) / name)


def classified(frame: pd.DataFrame, target: np.ndarray, group: np.ndarray) -> Test:
    """Return the test records of a classification."""
    X = pd.get_dummies(frame).to_numpy(dtype=float)
    train, test = train_test_split(np.arange(len(X)), train_size=10_000, random_state=0)
    model = HistGradientBoostingClassifier(random_state=0).fit(X[train], target[train])
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X[train], target[train])
    scores = [one.predict_proba(X[test])[:, 1] for one in (model, linear)]
    return target[test], scores[0], scores[1], group[test]


def regressed(frame: pd.DataFrame, target: np.ndarray, group: np.ndarray) -> Test:
    """Return the test records of a regression."""
    X = pd.get_dummies(frame).to_numpy(dtype=float)
    train, test = train_test_split(np.arange(len(X)), train_size=8_000, random_state=0)
    models = (HistGradientBoostingRegressor(random_state=0), LinearRegression())
    predicted = [model.fit(X[train], target[train]).predict(X[test]) for model in models]
    return target[test], predicted[0], predicted[1], group[test]


def tasks(*, is_regression: bool) -> dict[str, Test]:
    """Return the test records of each task."""
    if is_regression:
        diamonds, bike = read("diamonds.csv.gz"), read("bike_hour.csv.gz")
        of_bike = ["season", "hr", "temp", "hum", "windspeed", "workingday", "yr"]
        return {
            "diamonds": regressed(
                diamonds.drop(columns="price"),
                diamonds.price.to_numpy(float),
                diamonds.cut.to_numpy() == "Ideal",
            ),
            "bike": regressed(bike[of_bike], bike.cnt.to_numpy(float), bike.workingday.to_numpy() == 1),
        }
    adult, brfss = read("adult.csv.gz"), read("diabetes_brfss2015.csv.gz")
    of_adult = [
        "age",
        "education-num",
        "capital-gain",
        "hours-per-week",
        "marital-status",
        "occupation",
        "sex",
    ]
    rich = adult.income.str.strip().str.startswith(">").to_numpy()
    return {
        "adult": classified(adult[of_adult], rich, adult.sex.str.strip().to_numpy() == "Male"),
        "brfss": classified(
            brfss.drop(columns="Diabetes_binary"),
            brfss.Diabetes_binary.to_numpy() == 1,
            brfss.Sex.to_numpy() == 1,
        ),
    }


def exact_classes(test: Test) -> Numbers:
    """Return the exact numbers of labels and scores."""
    y, score, other, group = test
    said = score >= 0.5
    recalls = [said[y & (group == one)].mean() for one in (False, True)]
    return {
        "accuracy": (said == y).mean(), "recall": said[y].mean(), "precision": y[said].mean(),
        "recall gap": abs(recalls[0] - recalls[1]), "AUC": roc_auc_score(y, score),
        "AP": average_precision_score(y, score), "Brier": ((y - score) ** 2).mean(),
        "AUC by group": roc_auc_score(y[group], score[group]),
        "comparison": (said == y).mean() - ((other >= 0.5) == y).mean(),
    }  # fmt: skip


def exact_numbers(test: Test) -> Numbers:
    """Return the exact numbers of a regression; errors are shown as a part of them."""
    y, said, other, group = test
    error, of_other = np.abs(y - said), np.abs(y - other)
    return {
        "MSE": (error**2).mean(), "R2": 1 - (error**2).mean() / y.var(), "MAE": error.mean(),
        "median": np.median(error), "MAE by group": error[group].mean(),
        "comparison": (error < of_other).mean() - (error > of_other).mean(),
    }  # fmt: skip


NAMES = {
    "AUC": "roc auc", "AP": "average precision", "Brier": "brier score", "recall gap": "recall difference",
    "AUC by group": "roc auc in True", "MSE": "mse", "R2": "r2", "MAE": "mae", "MAE by group": "mae in True",
    "median": "median absolute error",
}  # fmt: skip


def of_page(test: Test, epsilon: float, split: Mapping[str, float] | None) -> Numbers:
    """Return the numbers of a page that are there."""
    y, said, other, group = test
    public: dict[str, Any] = {"epsilon": epsilon, "sensitive_features": group, "group_labels": [False, True]}
    if y.dtype == bool:
        public["labels"] = [False, True]
    page = dp.private_evaluate(y, said, **public, baseline=other, split=split)
    found = {name: page[NAMES.get(name, name)].value for name in exact(test) if NAMES.get(name, name) in page}
    if "comparison" in page.released:
        found["comparison"] = page.released["comparison"].estimate
    return found


def exact(test: Test) -> Numbers:
    return exact_classes(test) if test[0].dtype == bool else exact_numbers(test)


def by_six_calls(test: Test, epsilon: float) -> Numbers:
    """Return the numbers of six calls that share epsilon."""
    y, said, other, group = test
    each, by = epsilon / 6, {"sensitive_features": group, "group_labels": [False, True]}
    if y.dtype != bool:
        frame = dp.PrivateMetricFrame(metrics="mae", y_true=y, y_pred=said, epsilon=each, **by)
        return {
            "MSE": dp.private_mse(y, said, epsilon=each), "R2": dp.private_r2_score(y, said, epsilon=each),
            "MAE": dp.private_mae(y, said, epsilon=each),
            "median": dp.private_median_absolute_error(y, said, epsilon=each),
            "MAE by group": frame.by_group[True],
            "comparison": dp.private_compare(y, said, other, loss="mae", epsilon=each).estimate,
        }  # fmt: skip
    labels = {"labels": [False, True]}
    positive, above = {**labels, "pos_label": True}, said >= 0.5
    frame = dp.PrivateMetricFrame(
        metrics=partial(dp.private_recall_score, **positive), y_true=y, y_pred=above, epsilon=each, **by
    )
    return {
        "recall": dp.private_recall_score(y, above, epsilon=each, **positive),
        "precision": dp.private_precision_score(y, above, epsilon=each, **positive),
        "recall gap": frame.difference(), "AUC": dp.private_roc_auc_score(y, said, epsilon=each, **labels),
        "Brier": dp.private_brier_score_loss(y, said, epsilon=each, **labels),
        "comparison": dp.private_compare(y, above, other >= 0.5, epsilon=each).estimate,
    }  # fmt: skip


def errors(
    test: Test, n: int, epsilon: float, draws: int, ways: Mapping[str, Callable[[Test, float], Numbers]]
) -> dict[str, Numbers]:
    """Return the mean absolute error of each number, by way; of a regression as a part of the number."""
    rng = np.random.default_rng(n)
    found: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    for _ in range(draws):
        rows = rng.choice(len(test[0]), n, replace=False)
        sample: Test = tuple(one[rows] for one in test)  # type: ignore[assignment]
        truth = exact(sample)
        for way, release in ways.items():
            for name, value in release(sample, epsilon).items():
                unit = abs(truth[name]) if test[0].dtype != bool and name not in ("R2", "comparison") else 1.0
                found[way].setdefault(name, []).append(abs(value - truth[name]) / unit)
    return {way: {name: float(np.mean(each)) for name, each in by.items()} for way, by in found.items()}


def table(
    test: Test, draws: int, splits: Mapping[str, Mapping[str, float] | None], sizes: Any
) -> list[list[str]]:
    """Return the rows of a task."""
    ways: dict[str, Callable[[Test, float], Numbers]] = {
        way: partial(of_page, split=split) for way, split in splits.items()
    }
    ways["six calls"] = by_six_calls
    rows = []
    for n in sizes:
        for epsilon in tqdm(EPSILONS, desc=f"n={n}", disable=None):
            found = errors(test, min(n, len(test[0])), epsilon, draws, ways)
            names = [*exact(tuple(one[:50] for one in test))]  # type: ignore[arg-type]
            for way, by in found.items():
                both = [name for name in by if name in found["rule"] and found["rule"][name] > 0]
                ratio = (
                    np.exp(np.mean([np.log(by[name] / found["rule"][name]) for name in both]))
                    if both
                    else np.nan
                )
                cells = [f"{by[name]:.3f}" if name in by else "-" for name in names]
                rows.append([f"{n:,}", f"{epsilon:g}", way, *cells, f"{ratio:.2f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="two draws, and n = 3,000 only")
    typed = parser.parse_args()
    warnings.simplefilter("ignore")
    draws, sizes = (2, (3_000,)) if typed.quick else (typed.draws, SIZES)
    for is_regression, splits in ((False, CLASSES), (True, NUMBERS)):
        for name, test in tasks(is_regression=is_regression).items():
            names = [*exact(tuple(one[:50] for one in test))]  # type: ignore[arg-type]
            rows = table(test, draws, splits, sizes)
            print_table(name, ["n", "epsilon", "division", *names, "ratio"], rows)


if __name__ == "__main__":
    main()
