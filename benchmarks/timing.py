"""Print how much the time of a release depends on the records, at a fixed number of them.

Run `python benchmarks/timing.py`. Each line compares two data sets of n records: neighbours, which differ in
one record, or contents made up to take long. Both take turns in random order, each time with fresh noise; the
ratio is that of the median times, with limits from 2,000 bootstrap samples, 95 % for each line alone. The
first line compares data with themselves: what it shows is no effect of the data. A ratio near 1 is no
promise: whoever measures more often, or on another machine, may see less or more.
"""

import argparse
import gc
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import dp_metrics as dp

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
    """Print a line for each pair."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000, help="records")
    parser.add_argument("--repeats", type=int, default=400)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{'n = ' + format(arguments.n, ','):<53} {'ms':>7} {'ratio':>6}  95 % limits")
    for name, releases in pairs(arguments.n).items():
        times = seconds(releases, arguments.repeats, rng)
        middle, lower, upper = ratio(times, rng)
        print(f"{name:<53} {1000 * np.median(times[0]):7.2f} {middle:6.3f}  {lower:.3f} to {upper:.3f}")


if __name__ == "__main__":
    main()
