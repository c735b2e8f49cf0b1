"""Print speed and error of private variance and mean beside the same statistics of diffprivlib and OpenDP.

Run `python benchmarks/peers.py --diffprivlib-python PATH --opendp-python PATH`, where each PATH is the
interpreter of an environment that holds that library; a library that can't be imported is left out.

Each library, this one included, runs in a worker process of its own: this file, run by the given interpreter,
which answers one line of JSON with another. So it needs nothing there but the library and numpy.

- Speed: median time of a release / median time of numpy.var or numpy.mean in the same process; the calls take
  turns, and each is made once more before it is timed, so that it finds data and code in the caches. Times of
  two processes are never divided by each other, but their numpy may differ, so its version is printed.
  OpenDP's measurement is built before the clock starts, as for many columns of one size.
- Error: mean of |release - true value| / true value over random data sets, one release of each at each
  epsilon. The data sets are the same for all libraries: clip(lognormal(0, 1) * 1000, 0, 50000).

Bounds are (0, 50000) for all libraries. In the peers n is public and neighbours differ in the value of one
record; this library is also shown with a private n, where a record may be added or removed. The last table
has its error / that of the best peer.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import print_row

BOUNDS = (0.0, 50_000.0)
EPSILONS = (0.1, 0.5, 1.0, 2.0)
NUMPY = {"variance": np.var, "mean": np.mean}

Floats = NDArray[np.float64]
Release = Callable[[], float]
Prepare = Callable[[str, Floats, tuple[float, float], float], Release]


def _by_functions(variance: Callable[..., float], mean: Callable[..., float], **options: Any) -> Prepare:
    functions = {"variance": variance, "mean": mean}
    return lambda statistic, x, bounds, epsilon: (
        lambda: functions[statistic](x, epsilon=epsilon, bounds=bounds, **options)
    )


def _prepare_dp_metrics(**options: Any) -> Prepare:
    import dp_metrics

    return _by_functions(dp_metrics.private_variance, dp_metrics.private_mean, **options)


def _prepare_diffprivlib() -> Prepare:
    from diffprivlib import tools

    return _by_functions(tools.var, tools.mean)


def _prepare_opendp() -> Prepare:
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def prepare(statistic: str, x: Floats, bounds: tuple[float, float], epsilon: float) -> Release:
        then = dp.t.then_variance(ddof=0) if statistic == "variance" else dp.t.then_mean()
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(x))
        query = (domain, dp.symmetric_distance()) >> dp.t.then_clamp(bounds) >> then
        sensitivity = query.map(2)  # to replace a record is to remove one and to add one
        measurement = query >> dp.m.then_laplace(scale=sensitivity / epsilon)
        return lambda: measurement(x)

    return prepare


PRIVATE_N = "dp_metrics, add or remove"
LIBRARIES = {
    "dp_metrics": _prepare_dp_metrics,
    PRIVATE_N: partial(_prepare_dp_metrics, neighboring="add_or_remove_one"),
    "diffprivlib": _prepare_diffprivlib,
    "opendp": _prepare_opendp,
}
NAMES = {
    "dp_metrics": {"variance": "`private_variance`", "mean": "`private_mean`"},
    PRIVATE_N: {
        "variance": "`private_variance`, add or remove",
        "mean": "`private_mean`, add or remove",
    },
    "diffprivlib": {"variance": "diffprivlib `tools.var`", "mean": "diffprivlib `tools.mean`"},
    "opendp": {"variance": "OpenDP variance + Laplace", "mean": "OpenDP mean + Laplace"},
}
HOW_TO_GET = {
    "diffprivlib": 'pip install diffprivlib==0.6.6 "scikit-learn<1.7" in an environment of its own '
    "(it cannot be imported with scikit-learn 1.9), then pass --diffprivlib-python",
    "opendp": "pip install opendp numpy in any environment, then pass --opendp-python",
}


def medians(calls: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Return the median time of each call in seconds; the calls take turns, so that noise hits all alike."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, spent in zip(calls, times, strict=True):
            call()  # else a call's time depends on how much of the caches the one before it takes
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return [median(spent) for spent in times]


def answer(prepare: Prepare, question: dict[str, Any]) -> Any:
    """Return one release for each epsilon, or how many times the time of numpy a release takes."""
    statistic, x, bounds = question["statistic"], np.array(question["x"]), tuple(question["bounds"])
    releases = [prepare(statistic, x, bounds, epsilon) for epsilon in question["epsilons"]]
    if question["repeats"] is None:
        return [float(release()) for release in releases]
    plain, *private = medians([lambda: NUMPY[statistic](x), *releases], question["repeats"])
    return [seconds / plain for seconds in private]


def work(library: str) -> None:
    """Answer questions on standard input; say first what can be imported here."""
    try:
        prepare = LIBRARIES[library]()
    except ImportError as error:
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"}), flush=True)
        return
    versions = {name: version(name) for name in (library.partition(",")[0], "numpy")}
    print(json.dumps({"versions": versions}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(prepare, json.loads(line))), flush=True)


class Worker:
    """A library in a process of its own.

    Parameters
    ----------
    library : str
        A name in `LIBRARIES`.
    python : str
        The interpreter that can import it.

    Raises
    ------
    ImportError
        If it can't, or is no interpreter with numpy.
    """

    def __init__(self, library: str, python: str) -> None:
        command = [python, __file__, "--worker", library]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise ImportError(f"{python} is no interpreter: {error.strerror}") from None
        hello = self._read() or {"missing": "the worker failed"}
        if "missing" in hello:
            self.__exit__()
            raise ImportError(hello["missing"])
        self.library, self.versions = library, hello["versions"]

    def _read(self) -> Any:
        return json.loads(self._process.stdout.readline() or "null")

    def _ask(self, statistic: str, x: Floats, bounds: Any, epsilons: Any, repeats: int | None) -> list[float]:
        question = {"statistic": statistic, "x": x.tolist(), "bounds": bounds, "epsilons": epsilons}
        self._process.stdin.write(json.dumps({**question, "repeats": repeats}) + "\n")
        self._process.stdin.flush()
        result = self._read()
        if result is None:
            raise RuntimeError(f"the worker of {self.library} failed")
        return result

    def releases(
        self, statistic: str, x: Floats, bounds: tuple[float, float], epsilons: Sequence[float]
    ) -> list[float]:
        """Return one release of a statistic for each epsilon."""
        return self._ask(statistic, x, bounds, epsilons, None)

    def time_ratio(self, statistic: str, x: Floats, bounds: tuple[float, float], repeats: int) -> float:
        """Return the time of a release at epsilon 1 / the time of numpy, both medians in the worker."""
        return self._ask(statistic, x, bounds, [1.0], repeats)[0]

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def start_peers(stack: ExitStack, arguments: argparse.Namespace) -> list[Worker]:
    """Start a worker for each peer that its interpreter can import; say which can't, and how to get it."""
    workers = []
    for library in HOW_TO_GET:
        try:
            workers.append(stack.enter_context(Worker(library, getattr(arguments, f"{library}_python"))))
        except ImportError as error:
            print(f"Left out: {library} ({error}). To get it, {HOW_TO_GET[library]}.")
    return workers


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the interpreters of the peers."""
    for library in HOW_TO_GET:
        parser.add_argument(
            f"--{library}-python", default=sys.executable, metavar="PATH", help="default: this interpreter"
        )


def heavy_tailed(n: int, seed: int) -> Floats:
    """Return data with a few large values, like incomes."""
    return np.clip(np.random.default_rng(seed).lognormal(0.0, 1.0, n) * 1000.0, *BOUNDS)


def mean_errors(workers: Sequence[Worker], statistic: str, n: int, repeats: int) -> Floats:
    """Return mean |release - true value| / true value, of shape (workers, epsilons)."""
    errors = np.zeros((repeats, len(workers), len(EPSILONS)))
    for seed in range(repeats):
        x = heavy_tailed(n, seed)
        true_value = NUMPY[statistic](x)
        releases = [worker.releases(statistic, x, BOUNDS, EPSILONS) for worker in workers]
        errors[seed] = np.abs(np.array(releases) / true_value - 1.0)
    return errors.mean(axis=0)


def print_speed(workers: Sequence[Worker], sizes: Sequence[int], repeats: int) -> None:
    """Print the table of time ratios."""
    print("\nTime of one release at epsilon 1 / time of `numpy.var` or `numpy.mean` in the same process:\n")
    print_row("release", *(f"n = {n:,}" for n in sizes))
    print("|---" * (1 + len(sizes)) + "|")
    for statistic in NUMPY:
        for worker in workers:
            ratios = [worker.time_ratio(statistic, heavy_tailed(n, 0), BOUNDS, repeats) for n in sizes]
            print_row(NAMES[worker.library][statistic], *(f"{ratio:.1f}" for ratio in ratios))


def print_accuracy(workers: Sequence[Worker], sizes: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    """Print the table of errors; return them one by one."""
    print(f"\nMean |error| / true value of one release, {repeats} random data sets of n values:\n")
    print_row("release", "n", *(f"eps {epsilon:g}" for epsilon in EPSILONS))
    print("|---" * (2 + len(EPSILONS)) + "|")
    rows = []
    for statistic in NUMPY:
        for n in sizes:
            for worker, errors in zip(workers, mean_errors(workers, statistic, n, repeats), strict=True):
                print_row(NAMES[worker.library][statistic], f"{n:,}", *(f"{error:.2g}" for error in errors))
                about = {"library": worker.library, "statistic": statistic, "n": n}
                rows += [
                    {**about, "epsilon": epsilon, "mean_relative_error": error}
                    for epsilon, error in zip(EPSILONS, errors.tolist(), strict=True)
                ]
    return rows


def print_ratios(rows: Sequence[dict[str, Any]]) -> None:
    """Print how this library's errors compare with the best peer's; nothing if there is no peer."""
    errors = {
        (row["statistic"], row["n"], row["library"], row["epsilon"]): row["mean_relative_error"]
        for row in rows
    }
    peers = [library for library in HOW_TO_GET if library in {row["library"] for row in rows}]
    if not peers:
        return
    print("\nError / error of the best peer:\n")
    print_row("release", "n", *(f"eps {epsilon:g}" for epsilon in EPSILONS))
    print("|---" * (2 + len(EPSILONS)) + "|")
    for statistic, n in dict.fromkeys((row["statistic"], row["n"]) for row in rows):
        for library in ("dp_metrics", PRIVATE_N):
            ratios = [
                errors[statistic, n, library, e] / min(errors[statistic, n, peer, e] for peer in peers)
                for e in EPSILONS
            ]
            print_row(NAMES[library][statistic], f"{n:,}", *(f"{ratio:.2g}" for ratio in ratios))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_peers(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--accuracy-sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--repeats", type=int, default=200, help="data sets of the table of errors")
    parser.add_argument(
        "--timings", type=int, default=51, help="calls of which the median time is taken; 0 for no times"
    )
    parser.add_argument("--output", type=Path, help="folder of a CSV file of the errors")
    parser.add_argument("--worker", choices=LIBRARIES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker)
    with ExitStack() as stack:
        own, private_n = (stack.enter_context(Worker(n, sys.executable)) for n in ("dp_metrics", PRIVATE_N))
        peers = start_peers(stack, arguments)
        for worker in (own, *peers):
            print(", ".join(f"{name} {number}" for name, number in worker.versions.items()))
        if arguments.timings:
            print_speed([own, *peers], arguments.sizes, arguments.timings)
        rows = print_accuracy([own, private_n, *peers], arguments.accuracy_sizes, arguments.repeats)
        print_ratios(rows)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        path = arguments.output / "peers.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        print(f"\nErrors: {path}")


if __name__ == "__main__":
    main()
