"""Print what private metrics cost: time beside the exact functions and peers, memory, throughput.

Run `python benchmarks/speed.py`. The peers are left out unless their interpreters are given, see
`benchmarks/peers.py`, and so is Dask unless `--dask-records` is.

- Times are medians; calls take turns and each is made once more before it is timed, so that all find their
  code and as much of their data in the caches as they can. Only times of one process are divided.
- Memory is the peak of what Python and NumPy allocate during a call, beyond the inputs.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from peers import NAMES, add_peers, heavy_tailed, medians, start_peers
from sklearn import metrics
from tables import print_row
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.losses import RecordLoss
from dp_metrics.quantities.mean import MeanOf

BOUNDS = (0.0, 50_000.0)
LARGEST_FOR_PEERS = 1_000_000  # their data travel as text
EPSILONS = (0.001, 0.01, 0.1, 1.0, 10.0)

Call = Callable[[], float]


def twins(n: int, epsilon: float) -> dict[str, tuple[str, Call, Call]]:
    """Return for each private metric its exact name, and a call of each on the same n records."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    prediction = y + rng.standard_t(3, size=n)
    labels = (rng.random(n) < 0.3).astype(int)
    proba = np.clip(0.3 * rng.random(n) + 0.4 * labels, 0.01, 0.99)
    return {
        "private_mse": (
            "mean_squared_error",
            lambda: dp.private_mse(y, prediction, epsilon=epsilon),
            lambda: metrics.mean_squared_error(y, prediction),
        ),
        "private_mae": (
            "mean_absolute_error",
            lambda: dp.private_mae(y, prediction, epsilon=epsilon),
            lambda: metrics.mean_absolute_error(y, prediction),
        ),
        "private_log_loss": (
            "log_loss",
            lambda: dp.private_log_loss(labels, proba, epsilon=epsilon),
            lambda: metrics.log_loss(labels, proba),
        ),
        "private_variance": (
            "numpy.var",
            lambda: dp.private_variance(y, epsilon=epsilon),
            lambda: np.var(y),
        ),
    }


def print_times(arguments: argparse.Namespace, stack: ExitStack) -> None:
    """Print the table of time ratios, and that of peak memory at the largest size."""
    sizes = arguments.sizes
    ratios: dict[str, list[str]] = {}
    memory: dict[str, float] = {}
    for n in sizes:
        repeats = max(5, arguments.repeats if n < 1e6 else arguments.repeats // 4)
        for name, (twin, private, plain) in tqdm(twins(n, 1.0).items(), desc=f"n = {n:,}", leave=False):
            ours, theirs = medians([private, plain], repeats)
            ratios.setdefault(f"`{name}` / `{twin}`", []).append(f"{ours / theirs:.3g}")
            if n == max(sizes):
                memory[name] = peak_memory(private)
    for worker in start_peers(stack, arguments):
        ratios[f"{NAMES[worker.library]['variance']} / `numpy.var`"] = [
            f"{worker.time_ratio('variance', heavy_tailed(n, 0), BOUNDS, arguments.repeats):.3g}"
            if n <= LARGEST_FOR_PEERS
            else ""
            for n in sizes
        ]
    print("\nTime of a release at epsilon 1, as a ratio:\n")
    print_row("", *(f"n = {n:,}" for n in sizes))
    print("|---" * (1 + len(sizes)) + "|")
    for name, row in ratios.items():
        print_row(name, *row)
    print(f"\nPeak memory beyond the inputs at n = {max(sizes):,}, MB:\n")
    print_row(*(f"`{name}`" for name in memory))
    print("|---" * len(memory) + "|")
    print_row(*(f"{peak:.2f}" for peak in memory.values()))


def peak_memory(call: Call) -> float:
    """Return the peak of the memory that a call allocates, in MB."""
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def print_epsilons(n: int, repeats: int) -> None:
    """Print the time of a release against epsilon."""
    hazard = dp.mechanisms.Hazard()
    print(f"\nTime of a release against epsilon at n = {n:,}, ms (ranks used):\n")
    print_row("epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS))
    print("|---" * (1 + len(EPSILONS)) + "|")
    for name, monotonic in (("private_mse", True), ("private_variance", False)):
        cells = []
        for epsilon in EPSILONS:
            (seconds,) = medians([twins(n, epsilon)[name][1]], repeats)
            ranks = hazard.count_ranks(epsilon, n=n, monotonic=monotonic, output_range=(0.0, 1e300))
            cells.append(f"{seconds * 1e3:.3g} ({ranks:,})")
        print_row(f"`{name}`", *cells)


def print_throughput(seconds: float) -> None:
    """Print how many releases one prepared summary gives in a second, and how many draws one law."""
    hazard, n, ranks = dp.mechanisms.Hazard(), 1_000_000, 100
    rng = np.random.default_rng(0)
    y, prediction = rng.normal(size=(2, n))
    epsilons = np.geomspace(10.0, 0.1, 2000).tolist()
    epsilon = next(
        e for e in epsilons if hazard.count_ranks(e, n=n, monotonic=True, output_range=(0.0, 1e300)) >= ranks
    )
    summary = dp.Summary(dp.private_mse).update(y, prediction)
    records, mean = Records((prediction - y,)), MeanOf(RecordLoss(np.square, reads=(np.asarray,)))
    bounds = mean.stats(records, mean.totals(records), ranks).bounds(ranks, private_n=False)
    law = hazard.output_distribution(bounds, epsilon)
    uniform = rng.random(100_000)
    print(f"\nFrom one prepared summary of {n:,} records, at {ranks} ranks (epsilon {epsilon:.2f}):\n")
    print_row("releases a second", "vectorised draws a second from its law")
    print("|---|---|")
    print_row(
        f"{rate(lambda: summary.release(epsilon), seconds):,.0f}",
        f"{uniform.size * rate(lambda: law.quantile(uniform), seconds):,.0f}",
    )


def rate(call: Callable[[], object], seconds: float) -> float:
    """Return how often a call is made in a second."""
    call()
    times = 0
    start = time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        call()
        times += 1
    return times / passed


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_peers(parser)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument("--repeats", type=int, default=51, help="calls of which the median time is taken")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each measurement of throughput")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        print_times(arguments, stack)
    print_epsilons(min(100_000, max(arguments.sizes)), max(3, arguments.repeats // 10))
    print_throughput(arguments.seconds)


if __name__ == "__main__":
    main()
