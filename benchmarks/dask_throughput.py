"""Print how fast records go through Dask, and how much memory a worker needs for them.

python benchmarks/dask_throughput.py [--records 100000000] [--workers 2] [--memory-limit 1GiB]

The records are generated where they are summarised, chunk by chunk, so their number has no limit. What is
timed beside it is the exact metric, on the same chunks and workers.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable

import dask.array as da
from dask.distributed import Client, LocalCluster

import dp_metrics as dp

METRICS: dict[str, tuple[Callable[..., float], Callable[..., da.Array]]] = {
    "private_mse": (dp.private_mse, lambda y, p: ((y - p) ** 2).mean()),
    "private_mae": (dp.private_mae, lambda y, p: abs(y - p).mean()),
    "private_variance": (
        lambda y, p, **options: dp.private_variance(y, **options),
        lambda y, p: y.var(),
    ),
    "private_r2_score": (
        dp.private_r2_score,
        lambda y, p: 1 - ((y - p) ** 2).mean() / y.var(),
    ),
}


def peak_memory() -> int:
    """Return the largest resident memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=float, default=1e8)
    parser.add_argument("--chunk", type=float, default=1e6, help="records of one chunk")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--memory-limit", default="1GiB", help="of one worker")
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    n, chunk = int(arguments.records), int(arguments.chunk)
    print(f"{n:,} records in chunks of {chunk:,}, {arguments.workers} workers of {arguments.memory_limit}")
    print("| metric | seconds | records / s / core | exact metric, seconds | peak of a worker |")
    print("|---|---|---|---|---|")
    for name, (private, exact) in METRICS.items():
        # new processes for each, because a peak is that of a process
        with (
            LocalCluster(
                n_workers=arguments.workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=arguments.memory_limit,
                dashboard_address=None,
            ) as cluster,
            Client(cluster) as client,
        ):
            rng = da.random.default_rng(0)
            y = rng.normal(size=n, chunks=chunk)
            prediction = y + rng.standard_t(3, size=n, chunks=chunk)
            start = time.perf_counter()
            private(y, prediction, epsilon=arguments.epsilon)
            middle = time.perf_counter()
            peak = max(client.run(peak_memory).values())
            exact(y, prediction).compute()
            seconds, plain = middle - start, time.perf_counter() - middle
            rate = n / seconds / arguments.workers
            print(f"| {name} | {seconds:.1f} | {rate:,.0f} | {plain:.1f} | {peak / 2**20:.0f} MiB |")


if __name__ == "__main__":
    main()
