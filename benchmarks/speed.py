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
from dp_metrics._random import LazyUniform
from dp_metrics.mechanisms._hazard_law import HazardLaw


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


def cost_of_exactness(n: int, epsilon: float, repeats: int) -> float:
    """Return the time of private_mse with exactly decided draws, relative to draws decided in floats."""
    call = twins(n, epsilon)["private_mse"][0]
    exact = HazardLaw.draw

    def in_floats(law: HazardLaw, uniform: LazyUniform) -> int:
        u = np.array([(uniform.prefix(64) + 0.5) * 2.0**-64])
        return int(law.crossing(law.level(u, 1.0 - u))[0])

    def timed(draw: Callable[..., int]) -> Callable[[], float]:
        def run() -> float:
            HazardLaw.draw = draw
            return call()

        return run

    try:
        times = medians((timed(exact), timed(in_floats)), repeats)
    finally:
        HazardLaw.draw = exact
    return times[0] / times[1]


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
    n = arguments.sizes[0]
    ratio = cost_of_exactness(n, arguments.epsilon, 10 * arguments.repeats)
    print(f"\nprivate_mse at n = {n:,} with exact draws / with draws decided in floats: {ratio:.2f}")


if __name__ == "__main__":
    main()
