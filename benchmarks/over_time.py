"""Print how the time of ten calls changed between two commits, as ratios: above 1 is slower than before.

Run `python benchmarks/over_time.py COMMIT` to compare this folder with a commit, or add `--after COMMIT`.
Only the package is taken from a commit: versions of Python and of dependencies are those of this interpreter.
Processes of both take turns, in pairs whose order changes, so that what else the machine does hits both
alike. Each process makes each call once, then times it; its least time counts. The ratio is the median over
the pairs; beside it stand the least and the largest one. Compare a commit with itself to see how far ratios
are from 1 by chance. Only ratios are printed, or kept by `--keep FILE`: seconds differ between machines.
"""

import argparse
import csv
import importlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from peers import print_row

ROOT = Path(__file__).resolve().parents[1]
SIZES = (10_000, 1_000_000)
RELATIONS = ("replace_one", "add_or_remove_one")
HEADER = ("call", "records", "relation", "ratio", "least", "largest")
SECONDS = 0.2  # for the repeats of one call, of which there are 3 to 20
Times = dict[str, float | None]


def calls(dp: Any, n: int, neighboring: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the calls with their names, on n records that are always the same."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    near, far = y + rng.standard_t(3, size=n), y + rng.standard_t(3, size=n)
    ill = (rng.random(n) < 0.3).astype(int)
    score = np.clip(0.3 * rng.random(n) + 0.4 * ill, 0.01, 0.99)
    found = ((score > 0.35) ^ (rng.random(n) < 0.1)).astype(int)
    labels, names = [0, 1], ["a", "b", "c"]
    group = np.array(names)[rng.integers(0, 3, n)]
    public = {"epsilon": 1.0, "neighboring": neighboring}
    by_group = {"sensitive_features": group, "group_labels": names}

    def frame() -> object:
        recall = dp.private_recall_score
        return dp.PrivateMetricFrame(metrics=recall, y_true=ill, y_pred=found, **by_group, **public)

    def curve() -> object:
        return dp.ScoreSummary(labels=labels).update(ill, score).release(**public).roc_curve()

    def intervals() -> object:
        # of a new result each time: limits of one result are computed once
        result = dp.with_result(dp.private_recall_score)(ill, found, labels=labels, **public)
        return result.noise_interval(), result.population_interval()

    yield "private_mse", lambda: dp.private_mse(y, near, **public)
    yield "private_mae", lambda: dp.private_mae(y, near, **public)
    yield "private_log_loss", lambda: dp.private_log_loss(ill, score, labels=labels, **public)
    yield "private_recall_score", lambda: dp.private_recall_score(ill, found, labels=labels, **public)
    yield "private_roc_auc_score", lambda: dp.private_roc_auc_score(ill, score, labels=labels, **public)
    yield "ScoreSummary, curve", curve
    yield "PrivateMetricFrame", frame
    if neighboring == "replace_one":  # the other one is refused
        yield "private_compare", lambda: dp.private_compare(y, near, far, loss="mae", **public)
    yield "private_evaluate", lambda: dp.private_evaluate(ill, score, labels=labels, **by_group, **public)
    yield "a result and its intervals", intervals


def least_time(call: Callable[[], object]) -> float | None:
    """Return the least time of a call in seconds, or None where this version has no such call."""
    try:
        once = timeit.timeit(call, number=1)
    except (AttributeError, TypeError):
        return None
    repeats = min(20, max(3, int(SECONDS / once)))
    return min(timeit.repeat(call, number=1, repeat=repeats))


def work(sizes: list[int]) -> None:
    """Print the times of all calls of the package that is found on the path."""
    dp = importlib.import_module("dp_metrics")
    warnings.simplefilter("ignore")
    times = {
        f"{name}|{n}|{relation}": least_time(call)
        for n in sizes
        for relation in RELATIONS
        for name, call in calls(dp, n, relation)
    }
    print(json.dumps({"package": str(Path(dp.__file__).parent), "times": times}))


def times_of(folder: Path, sizes: list[int]) -> Times:
    """Return the times that a process finds for the package in a folder."""
    command = [sys.executable, str(Path(__file__).resolve()), "--work", "--sizes", *map(str, sizes)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    answer = json.loads(done.stdout)
    if not Path(answer["package"]).samefile(folder / "dp_metrics"):
        raise RuntimeError(f"{answer['package']} was timed, not {folder}")
    return answer["times"]


def unpack(commit: str, folder: Path) -> Path:
    """Write the package as of a commit into a folder, and return that."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "dp_metrics"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def rows(pairs: list[tuple[Times, Times]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each call: what it is, and the ratios of its times."""
    for what in pairs[0][1]:
        ratios = [
            after[what] / before[what] for before, after in pairs if after[what] and before[what]
        ]  # of calls that both have
        told = (statistics.median(ratios), min(ratios), max(ratios)) if ratios else ()
        yield *what.split("|"), *([f"{ratio:.2f}" for ratio in told] or ["not in both", "", ""])


def compare(before: Path, after: Path, pairs: int, sizes: list[int]) -> list[tuple[str, ...]]:
    """Return the rows of the table, from processes that take turns."""
    found = []
    for turn in range(pairs):
        if turn % 2:
            later = times_of(after, sizes)
            found.append((times_of(before, sizes), later))
        else:
            found.append((times_of(before, sizes), times_of(after, sizes)))
    return [*rows(found)]


def main() -> None:
    """Print the ratios, and keep them if there is a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", nargs="?", default="HEAD", help="a commit; by default the last one")
    parser.add_argument("--after", help="a commit; by default the files of this folder as they are")
    parser.add_argument("--pairs", type=int, default=5, help="processes of each (default 5)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--keep", type=Path, help="a CSV file to write the ratios to")
    parser.add_argument("--quick", action="store_true", help="one pair, with 1,000 records")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(arguments.sizes)
    sizes, pairs = ([1000], 1) if arguments.quick else ([*arguments.sizes], arguments.pairs)
    with ExitStack() as stack:
        old, new = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        unpack(arguments.before, old)
        new = unpack(arguments.after, new) if arguments.after else ROOT
        table = compare(old, new, pairs, sizes)
    print(f"\nTime of {arguments.after or 'this folder'} / time of {arguments.before}, of {pairs} pairs:\n")
    for row in (HEADER, ("---",) * len(HEADER), *table):
        print_row(*row)
    if arguments.keep:
        with arguments.keep.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([HEADER, *table])


if __name__ == "__main__":
    main()
