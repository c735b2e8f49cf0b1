"""Print accuracy and speed of private classification metrics on real data, from exact output laws.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/classifiers.py [--only auc]`.

Models are xgboost with 100 rounds, trained on 60 % of each data set; their scores of the other 40 % are kept
in a folder, so that another run trains none. Errors are those of subsamples of that part, against the metric
of the same records. Beside a number stands the reference of the specification, which used other subsamples; a
"*" marks those more than 25 % apart.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics.evaluation.datasets import get_dataset
from dp_metrics.evaluation.sources import Dataset, read_table_data

EPSILONS = (0.1, 0.3, 1.0, 3.0)
SUBSAMPLES = 20
KEPT = Path(tempfile.gettempdir()) / "dp_metrics_classifiers"
TASKS = {
    "adult": get_dataset("adult"),
    "diabetes": get_dataset("diabetes"),
    "brfss": Dataset(
        "brfss", "binary", "Diabetes_binary", 253_680, "UCI no. 891, doi 10.24432/C53919",
        "CC0", read_table_data, file_name="diabetes_brfss2015.csv.gz", classes=("0.0", "1.0"),
    ),
    "MNIST 8": get_dataset("mnist"),
}  # fmt: skip
Scored = tuple[NDArray[np.int64], NDArray[np.float64]]


@cache
def scored(task: str) -> Scored:
    """Return the labels, 0 and 1, of the held-out records of a task, and a model's probabilities of 1."""
    path = KEPT / f"{task.replace(' ', '_')}.npz"
    if not path.exists():
        from xgboost import XGBClassifier

        features, target = TASKS[task].loader(TASKS[task], None)
        features = np.reshape(features, (len(features), -1))
        target = (target == 8 if task == "MNIST 8" else target).astype(np.int64)
        parts = train_test_split(features, target, test_size=0.4, random_state=0)
        x_train, x_test, y_train, y_test = parts
        model = XGBClassifier(n_estimators=100, n_jobs=1).fit(x_train, y_train)
        proba = model.predict_proba(x_test)[:, 1].astype(np.float64)
        KEPT.mkdir(exist_ok=True)
        np.savez_compressed(path, y=y_test, proba=proba)
    with np.load(path) as kept:
        return kept["y"], kept["proba"]


def subsamples(task: str, n: int) -> list[Scored]:
    """Return so many records of a task, drawn without replacement, a few times: always the same ones."""
    y, proba = scored(task)
    draws = (np.random.default_rng(seed).permutation(len(y))[:n] for seed in range(SUBSAMPLES))
    return [(y[rows], proba[rows]) for rows in draws]


def compared(value: float, reference: str) -> str:
    """Return a number beside its reference."""
    apart = abs(value / float(reference) - 1) > 0.25
    return f"{value:.2g} ({reference}){'*' if apart else ''}"


AUC_REFERENCE = {
    "adult 300": ".075 .057 .016 .0046",
    "adult 1000": ".044 .016 .0046 .0017",
    "adult 3000": ".016 .0050 .0016 .00060",
    "adult 10000": ".0046 .0018 .00068 .00024",
    "diabetes 300": ".022 .020 .013 .0055",
    "diabetes 1000": ".021 .017 .0070 .0023",
    "diabetes 3000": ".015 .0087 .0029 .00082",
    "diabetes 10000": ".0076 .0027 .00091 .00027",
    "brfss 300": ".17 .14 .035 .015",
    "brfss 1000": ".12 .040 .0096 .0057",
    "brfss 3000": ".038 .0092 .0045 .0022",
    "brfss 10000": ".0087 .0036 .0013 .00060",
    "MNIST 8 1000": ".0047 .0039 .0017 .00066",
}
"""Mean absolute error of the area under the ROC curve for each epsilon."""


def auc() -> None:
    """Print the error of the area under the ROC curve, its bias, and the time that a release takes."""
    header = [
        "task, n",
        "m",
        "AUC",
        *(f"{epsilon:g}" for epsilon in EPSILONS),
        "bias at 0.1",
        "add/remove at 1",
    ]
    print("| " + " | ".join(header) + " |", "|---" * len(header) + "|", sep="\n")
    for title, reference in tqdm(AUC_REFERENCE.items()):
        task, _, n = title.rpartition(" ")
        draws = subsamples(task, int(n))

        def errors(epsilon: float, draws: list[Scored] = draws, **options: object) -> NDArray[np.float64]:
            found = [
                dp.expected_error(dp.private_roc_auc_score, *d, epsilon=epsilon, **options) for d in draws
            ]
            return np.mean([(error.mean_absolute, error.bias) for error in found], axis=0)

        found = [errors(epsilon) for epsilon in EPSILONS]
        cells = [title, f"{np.mean([min(y.sum(), (1 - y).sum()) for y, _ in draws]):.0f}"]
        cells.append(f"{np.mean([roc_auc_score(*d) for d in draws]):.4f}")
        cells += [compared(mae, known) for (mae, _), known in zip(found, reference.split(), strict=True)]
        cells += [f"{found[0][1]:+.2g}", f"{errors(1.0, neighboring='add_or_remove_one')[0]:.2g}"]
        tqdm.write("| " + " | ".join(cells) + " |")
    rng = np.random.default_rng(0)
    y = (rng.random(100_000) < 0.25).astype(np.int64)
    score = rng.normal(y)
    plain = seconds(lambda: roc_auc_score(y, score))
    print(f"\nroc_auc_score, n = 100,000: {1000 * plain:.1f} ms")
    for epsilon in EPSILONS:
        for relation in ("replace_one", "add_or_remove_one"):
            options = {"epsilon": epsilon, "neighboring": relation}
            taken = seconds(lambda options=options: dp.private_roc_auc_score(y, score, **options))
            print(
                f"private, epsilon {epsilon:g}, {relation}: {1000 * taken:.1f} ms, {taken / plain:.2f} times"
            )


def seconds(call: Callable[[], object], repeats: int = 7) -> float:
    """Return the least time that a call takes, so that other processes do not count."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


FAMILIES = {"auc": auc}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=sorted(FAMILIES), help="print one family of metrics")
    only = parser.parse_args().only
    warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
    for name, family in FAMILIES.items():
        if only in (None, name):
            family()


if __name__ == "__main__":
    main()
