"""Very many releases in one process: what is kept of them, and what a spend takes."""

import gc
import importlib
import pkgutil
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics import LossSummary, PrivacyAccountant
from faults.findings import Finding, Size, Skipped

__all__ = ["caches", "leak", "resident"]

_TENTHS = 10
_RARE = 20  # one release of so many has another epsilon than 1
_MOST_EPSILONS = 300  # more than a cache holds
_LEAST = 8  # bytes: one pointer for each release would be a leak
_SLACK = 4 << 20  # bytes by which the memory of a process moves in any case

Call = Callable[[float], object]


def resident() -> int:
    """Return the memory of this process in bytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        raise Skipped("it needs /proc, to see the memory of a process")
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) << 10


def _calls() -> list[Call]:
    """Return releases of all kinds, on few records so that there can be many of them."""
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=200), rng.normal(size=200)
    truth, guess, proba = y > 0, p > 0, 1 / (1 + np.exp(-p))
    summary = LossSummary.from_data(dp.private_mse, y, p)
    bounded = {"bounds": (-4.0, 4.0)}

    def call(function: Any, *data: Any, **options: Any) -> Call:
        return lambda epsilon: function(*data, epsilon=epsilon, **options)

    return [
        call(dp.private_mae, y, p),
        call(dp.private_mae, y, p, **bounded),
        call(dp.private_mse, y, p, mechanism="above_threshold"),
        call(dp.private_mse, y, p, neighboring="add_or_remove_one", mechanism="hazard"),
        call(dp.private_accuracy_score, truth, guess, return_result=True),
        call(dp.private_f1_score, truth, guess),
        call(dp.private_log_loss, truth, proba),
        call(dp.private_roc_auc_score, truth[:50], proba[:50]),
        call(dp.private_variance, y[:50], **bounded),
        call(dp.private_mean, y, **bounded),
        call(dp.private_quantile, y, 0.5, **bounded),
        call(summary.release),
    ]


def _released(calls: list[Call], count: int) -> Iterator[None]:
    """Make releases, some of which turn the caches over."""
    others = _epsilons(count)
    for number in range(count):
        turn = number // len(calls)
        epsilon = 1.0 if turn % _RARE else others[turn // _RARE % len(others)]
        calls[number % len(calls)](epsilon)
        yield


def _epsilons(count: int) -> list[float]:
    return [0.5 + number / 1000 for number in range(min(_MOST_EPSILONS, max(count // 1000, 1)))]


def caches() -> dict[str, tuple[int, int | None]]:
    """Return the size and the limit of every cache of the package by name."""
    found = {}
    for module in pkgutil.walk_packages(dp.__path__, "dp_metrics."):
        if ".cli" in module.name or ".evaluation" in module.name:  # whose caches no release fills
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if hasattr(value, "cache_info") and value.__module__ == module.name:
                found[f"{module.name}.{name}"] = (value.cache_info().currsize, value.cache_info().maxsize)
    return found


def leak(size: Size) -> list[Finding]:
    """Make releases, keep none, and see what the process keeps."""
    calls = _calls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise, on so few records
        for epsilon in tqdm([1.0, *_epsilons(size.releases)], desc="leak: caches"):
            for call in calls:
                call(epsilon)
        start = time.monotonic()
        bar = tqdm(total=size.releases, desc="leak")
        memory, objects = [], []
        for number, _ in enumerate(_released(calls, size.releases)):
            bar.update()
            if (number + 1) % (size.releases // _TENTHS) == 0:
                gc.collect()
                memory.append(resident())
                objects.append(len(gc.get_objects()))
        bar.close()
        rate = size.releases / (time.monotonic() - start)
        found, filled = _grown(calls, size.releases // 100), caches()
        in_memory, in_file = _of_spends(size.spends)
    grown, more = memory[-1] - memory[0], objects[-1] - objects[0]
    later = size.releases - size.releases // _TENTHS
    is_bounded = all(limit is not None for _, limit in filled.values())
    return [
        Finding("releases, and how many in a second", f"{size.releases:,}, {rate:.0f}"),
        Finding("resident memory after each tenth", " ".join(f"{m / 2**20:.1f}" for m in memory) + " MiB"),
        Finding(
            f"bytes that each of the last {later:,} releases added",
            f"{grown / later:.2f}",
            grown < _LEAST * later + _SLACK,
        ),
        # one object for each round through the calls would be a leak of one of them
        Finding("objects more after them than before", more, more < later / len(calls)),
        Finding("where the package's memory grew most, by tracemalloc", found),
        Finding(
            "caches, all bounded; entries of all together",
            f"{len(filled)}, {sum(entries for entries, _ in filled.values())}",
            is_bounded,
        ),
        Finding("bytes of a spend in memory, which its history keeps", f"{in_memory:.0f}"),
        Finding("bytes of a spend in a file", f"{in_file:.0f}"),
    ]


def _grown(calls: list[Call], count: int) -> str:
    """Return the line whose memory grows most over so many releases, after as many."""
    ours = [tracemalloc.Filter(True, f"{Path(dp.__path__[0])}/*")]
    tracemalloc.start()
    for _ in _released(calls, count):
        pass
    before = tracemalloc.take_snapshot().filter_traces(ours)
    for _ in _released(calls, count):
        pass
    grown = tracemalloc.take_snapshot().filter_traces(ours).compare_to(before, "lineno")
    tracemalloc.stop()
    top = max(grown, key=lambda line: line.size_diff)
    frame = top.traceback[0]
    return f"{top.size_diff} bytes in {count:,} releases, {Path(frame.filename).name}:{frame.lineno}"


def _of_spends(count: int) -> tuple[float, float]:
    """Return the bytes of a spend in memory and in a file."""
    tracemalloc.start()
    budget = PrivacyAccountant(count)
    for number in range(count):
        budget.spend(Fraction(1, 1000), f"release {number}", mechanism="adaptive")
    in_memory = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    few = min(count, 10_000)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "budget.sqlite"
        shared = PrivacyAccountant(count, path)
        for number in range(few):
            shared.spend(Fraction(1, 1000), f"release {number}", mechanism="adaptive")
        return in_memory, path.stat().st_size / few
