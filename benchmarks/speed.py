"""Print what a private metric costs beside its scikit-learn or NumPy twin: ratios of medians in one run.

python benchmarks/speed.py [--sizes 1000 1000000] [--epsilon 1]
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from sklearn import metrics
from tqdm import tqdm

import dp_metrics as dp


def twins(n: int, epsilon: float) -> dict[str, tuple[Callable[[], float], Callable[[], float]]]:
    """Return for each private metric a call of it and a call of its twin on the same n records."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    prediction = y + rng.standard_t(3, size=n)
    labels = (rng.random(n) < 0.3).astype(int)
    proba = np.clip(0.3 * rng.random(n) + 0.4 * labels, 0.01, 0.99)
    return {
        "private_mse": (
            lambda: dp.private_mse(y, prediction, epsilon=epsilon),
            lambda: metrics.mean_squared_error(y, prediction),
        ),
        "private_mae": (
            lambda: dp.private_mae(y, prediction, epsilon=epsilon),
            lambda: metrics.mean_absolute_error(y, prediction),
        ),
        "private_log_loss": (
            lambda: dp.private_log_loss(labels, proba, epsilon=epsilon),
            lambda: metrics.log_loss(labels, proba),
        ),
        "private_variance": (
            lambda: dp.private_variance(y, epsilon=epsilon),
            lambda: np.var(y),
        ),
    }


def medians(calls: tuple[Callable[[], float], ...], repeats: int) -> list[float]:
    """Return the median time of each call in seconds; the calls take turns, so that noise hits all alike."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return [median(spent) for spent in times]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=51)
    arguments = parser.parse_args()
    rows = []
    for n in arguments.sizes:
        for name, calls in tqdm(twins(n, arguments.epsilon).items(), desc=f"n = {n:,}"):
            private, plain = medians(calls, max(5, arguments.repeats if n < 1e6 else arguments.repeats // 4))
            rows.append(
                f"| {name} | {n:,} | {private * 1e3:.3g} ms | {plain * 1e3:.3g} ms | {private / plain:.2f} |"
            )
    print("| metric | n | private | scikit-learn / NumPy | ratio |\n|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
