"""Print how much the time of a release depends on the records, at a fixed number of them.

Run `python benchmarks/timing.py`. Each line compares two data sets of n records: neighbours, which differ in
one record, or contents made up to take long. Both take turns in random order, each time with fresh noise; the
ratio is that of the median times, with limits from 2,000 bootstrap samples, 95 % for each line alone. The
first line compares data with themselves: what it shows is no effect of the data. A ratio near 1 is no
promise: whoever measures more often, or on another machine, may see less or more.

Then follow three tables with a line for each metric: the median time on contrasting data over that on usual
data. The column "same" is usual data once more: how far it is from 1 is the noise of the line.
`--page docs/timing_table.inc` writes the tables for the documentation.
"""

import argparse
import gc
import time
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dp_metrics as dp
from dp_metrics.metrics import METRICS, Metric

Floats = NDArray[np.float64]
Release = Callable[[], object]

HUGE = np.finfo(np.float64).max
TINY = 5e-324


def errors(values: Floats) -> Release:
    """Return a release of the mean absolute error."""
    zeros = np.zeros(values.size)
    return lambda: dp.private_mae(values, zeros, epsilon=1.0)


def variance(values: Floats) -> Release:
    """Return a release of the variance."""
    return lambda: dp.private_variance(values, epsilon=1.0)


def area(labels: NDArray[np.int64], scores: Floats) -> Release:
    """Return a release of the area under the ROC curve."""
    return lambda: dp.private_roc_auc_score(labels, scores, epsilon=1.0)


def share(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> Release:
    """Return a release of F1, which is made of counts."""
    return lambda: dp.private_f1_score(truth, predicted, epsilon=1.0)


def with_one(values: NDArray[np.generic], value: float) -> NDArray[np.generic]:
    """Return the neighbour whose last record has another value."""
    other = values.copy()
    other[-1] = value
    return other


def pairs(n: int) -> dict[str, tuple[Release, Release]]:
    """Return two releases to compare by what differs."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=n)
    labels, scores = (rng.random(n) < 0.3).astype(np.int64), rng.random(n)
    few = np.zeros(n, dtype=np.int64)
    few[:1] = 1
    exponents = np.ldexp(1.0, rng.integers(-1000, 1000, size=n))
    ascending = np.sort(np.abs(normal))
    rounded = np.round(normal * 2.0**20) / 2.0**20
    return {
        "MAE, the same data": (errors(normal), errors(normal.copy())),
        "neighbours: MAE, one error the largest float": (errors(normal), errors(with_one(normal, HUGE))),
        "neighbours: MAE, one error the least float": (errors(normal), errors(with_one(normal, TINY))),
        "neighbours: variance, one value the largest float": (
            variance(normal),
            variance(with_one(normal, HUGE)),
        ),
        "neighbours: variance, one value the least float": (
            variance(normal),
            variance(with_one(normal, TINY)),
        ),
        "neighbours: variance of multiples of 2^-20, one 2^30": (
            variance(rounded),
            variance(with_one(rounded, 2.0**30)),
        ),
        "neighbours: AUC, one label": (area(labels, scores), area(with_one(labels, 1 - labels[-1]), scores)),
        "neighbours: AUC, one positive / none": (area(few, scores), area(np.zeros_like(few), scores)),
        "neighbours: F1, one label": (share(labels, labels), share(with_one(labels, 1 - labels[-1]), labels)),
        "contents: MAE, errors falling / rising": (errors(ascending[::-1].copy()), errors(ascending)),
        "contents: MAE, normal / of all sizes": (errors(normal), errors(exponents)),
        "contents: variance, normal / of all sizes": (variance(normal), variance(exponents)),
        "contents: variance, normal / all equal": (variance(normal), variance(np.full(n, 0.1))),
        "contents: AUC, 30 % positive / one positive": (area(labels, scores), area(few, scores)),
    }


def value_data(n: int) -> dict[str, tuple[Any, Any]]:
    """Return usual and contrasting values, each with the container of its baseline."""
    rng = np.random.default_rng(2)
    usual = 1.0 + rng.exponential(size=n)
    listed = usual.tolist()
    return {
        "usual": (usual, "usual"),
        "same": (usual.copy(), "usual"),
        "one least": (with_one(usual, TINY), "usual"),
        "one largest": (with_one(usual, HUGE), "usual"),
        "all equal": (np.full(n, 1.1), "usual"),
        "ten values": (1.0 + rng.integers(0, 10, size=n) / 8, "usual"),
        "all subnormal": (np.ldexp(rng.integers(1, 1 << 50, size=n).astype(float), -1074), "usual"),
        "all sizes": (np.ldexp(1.0, rng.integers(-1000, 1000, size=n)), "usual"),
        "list": (listed, "list"),
        "one Fraction": ([*listed[:-1], Fraction(1, 3)], "list"),
    }


def label_data(n: int) -> dict[str, tuple[Any, Any]]:
    """Return usual and contrasting true and predicted labels."""
    rng = np.random.default_rng(3)
    true = (rng.random(n) < 0.3).astype(np.int64)
    pred = np.where(rng.random(n) < 0.9, true, 1 - true)
    listed = true.tolist()
    return {
        "usual": ((true, pred), "usual"),
        "same": ((true.copy(), pred.copy()), "usual"),
        "one label": ((with_one(true, 1 - true[-1]), pred), "usual"),
        "all right": ((true, true.copy()), "usual"),
        "one class": ((np.zeros_like(true), pred), "usual"),
        "list": ((listed, pred), "list"),
        "one float": (([*listed[:-1], float(listed[-1])], pred), "list"),
    }


def score_data(n: int) -> dict[str, tuple[Any, Any]]:
    """Return usual and contrasting labels and probabilities."""
    rng = np.random.default_rng(4)
    true = (rng.random(n) < 0.3).astype(np.int64)
    scores = np.clip(0.3 + 0.3 * true + rng.normal(scale=0.1, size=n), 0.0, 1.0)
    one = np.zeros_like(true)
    one[0] = 1
    return {
        "usual": ((true, scores), "usual"),
        "same": ((true.copy(), scores.copy()), "usual"),
        "one label": ((with_one(true, 1 - true[-1]), scores), "usual"),
        "one least": ((true, with_one(scores, TINY)), "usual"),
        "all equal": ((true, np.full(n, 0.3)), "usual"),
        "ten values": ((true, np.round(scores, 1)), "usual"),
        "sorted": ((true[np.argsort(scores)], np.sort(scores)), "usual"),
        "all sizes": ((true, np.ldexp(1.0, rng.integers(-1000, 0, size=n))), "usual"),
        "one positive": ((one, scores), "usual"),
    }


DATA: dict[str, Callable[[int], dict[str, Any]]] = {
    "values": value_data,
    "labels": label_data,
    "scores": score_data,
}


def kind_of(row: Metric) -> str:
    """Return of which data a metric is tried."""
    if row.predicts_labels:
        return "labels"
    return "values" if row.responses[0] == "predict" else "scores"


def release_of(row: Metric) -> Callable[[Any], object]:
    """Return a release of data of the metric's kind, with public limits where it needs some."""
    metric, options = METRICS[row.name].function, {**row.required}
    if "bounds" in options:
        options["bounds"] = (0.0, 10.0)

    def release(data: Any) -> object:
        if kind_of(row) == "values":  # which are errors, if there is something to predict
            pred = np.full(len(data), 1.0 if row.lowest_prediction > 0 else 0.0)
            return metric(*(data, pred)[: len(row.data)], epsilon=1.0, **options)
        true, pred = data
        if row.name == "private_top_k_accuracy_score":
            return metric(true, np.stack([1.0 - pred, pred], axis=1), epsilon=1.0, k=1)
        return metric(true, pred, epsilon=1.0, **options)

    return release


def releases_of(kind: str) -> dict[str, Callable[[Any], object]]:
    """Return a release for each metric of this kind of data, by its name."""
    rows = (row for row in METRICS.values() if kind_of(row) == kind)
    return {row.name.removeprefix("private_"): release_of(row) for row in rows}


def by_metric(kind: str, n: int, repeats: int, rng: np.random.Generator) -> list[list[str]]:
    """Return the lines of a table, the heads first: a metric, its time in ms, a ratio for each contrast."""
    data, metrics = DATA[kind](n), releases_of(kind)
    contrasts = [name for name, (_, baseline) in data.items() if baseline != name]
    lines = [[f"metric of {kind}", "ms", *contrasts]]
    for metric, release in metrics.items():
        medians = medians_of({name: (release, value) for name, (value, _) in data.items()}, repeats, rng)
        ratios = [medians[name] / medians[data[name][1]] for name in contrasts]
        lines.append([metric, f"{1000 * medians['usual']:.2f}", *(f"{ratio:.2f}" for ratio in ratios)])
    return lines


def medians_of(
    releases: Mapping[str, tuple[Callable[[Any], object], Any]], repeats: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the median time of each; all take turns, in an order by chance."""
    times: dict[str, list[float]] = {name: [] for name in releases}
    names = list(releases)
    gc.disable()
    try:
        for number in range(repeats + 1):
            for name in rng.permutation(names).tolist():
                release, value = releases[name]
                start = time.perf_counter()
                release(value)
                if number:  # the first round warms up
                    times[name].append(time.perf_counter() - start)
    finally:
        gc.enable()
    return {name: float(np.median(taken)) for name, taken in times.items()}


def as_page(tables: list[list[list[str]]]) -> str:
    """Return the tables as the documentation shows them."""
    parts = []
    for heads, *rows in tables:
        lines = [".. csv-table::", "   :header: " + ", ".join(heads), "   :class: wide", ""]
        lines += ["   " + ", ".join(row) for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def as_text(table: list[list[str]]) -> str:
    """Return a table in columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for name, *numbers in table:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]))
    return "\n".join(lines)


def seconds(releases: tuple[Release, Release], repeats: int, rng: np.random.Generator) -> Floats:
    """Return the times of both, a row each; they take turns, either first by chance."""
    times = np.empty((2, repeats))
    for release in releases:
        release()
    gc.disable()
    try:
        for number in range(repeats):
            for which in rng.permutation(2):
                start = time.perf_counter()
                releases[which]()
                times[which, number] = time.perf_counter() - start
    finally:
        gc.enable()
    return times


def ratio(times: Floats, rng: np.random.Generator, samples: int = 2000) -> tuple[float, float, float]:
    """Return the second median over the first, with 95 % limits by the bootstrap."""
    drawn = rng.integers(0, times.shape[1], size=(2, samples, times.shape[1]))
    medians = [np.median(row[indices], axis=1) for row, indices in zip(times, drawn, strict=True)]
    lower, upper = np.quantile(medians[1] / medians[0], [0.025, 0.975])
    first, second = np.median(times, axis=1)
    return float(second / first), float(lower), float(upper)


def main() -> None:
    """Print a line for each pair, and one for each metric."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000, help="records")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--page", type=Path, help="where to write the tables of metrics")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)
    rng = np.random.default_rng(1)
    print(f"{'n = ' + format(arguments.n, ','):<53} {'ms':>7} {'ratio':>6}  95 % limits")
    for name, releases in pairs(arguments.n).items():
        times = seconds(releases, arguments.repeats, rng)
        middle, lower, upper = ratio(times, rng)
        print(f"{name:<53} {1000 * np.median(times[0]):7.2f} {middle:6.3f}  {lower:.3f} to {upper:.3f}")
    tables = []
    for kind in DATA:
        tables.append(by_metric(kind, arguments.n, max(arguments.repeats // 4, 1), rng))
        print(f"\n{as_text(tables[-1])}")
    if arguments.page:
        arguments.page.write_text(as_page(tables))


if __name__ == "__main__":
    main()
