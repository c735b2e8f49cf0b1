"""Workers of Dask that are killed in the middle of a release."""

import logging
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from dp_metrics import PrivacyAccountant, private_mse
from dp_metrics._random import SeededEntropy
from dp_metrics.evaluation.datasets import load_dataset
from faults.findings import Finding, Size

__all__ = ["workers"]

_CHUNKS = 20
_PAUSE = 0.1  # seconds for each chunk, so that there is a middle
_EPSILON = 0.5


def _data() -> tuple[str, np.ndarray, np.ndarray]:
    """Return targets of a real data set, if there is one, and their median for a prediction."""
    name = "diamonds" if "DP_METRICS_DATA" in os.environ else "synthetic"
    target = np.asarray(load_dataset(name)[1], dtype=np.float64)
    return name, target, np.full(target.size, np.median(target))


def _slow(block: np.ndarray) -> np.ndarray:
    time.sleep(_PAUSE)
    return block


def _chunked(y: np.ndarray, p: np.ndarray) -> tuple[Any, Any]:
    import dask.array as da

    rows = -(-y.size // _CHUNKS)
    return da.from_array(y, chunks=rows).map_blocks(_slow, dtype=float), da.from_array(p, chunks=rows)


@contextmanager
def _cluster() -> Iterator[Any]:
    from dask.distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **options) as cluster,
        Client(cluster),
    ):
        yield cluster


class Killer:
    """Kills worker processes of a cluster in a thread of its own, and counts."""

    def __init__(self, cluster: Any) -> None:
        self._cluster, self.deaths, self._stop = cluster, 0, threading.Event()

    @contextmanager
    def killing(self, work: Callable[[], None]) -> Iterator[None]:
        """Kill during a block, and no longer."""
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def one(self) -> None:
        """Kill one worker, after a part of the chunks."""
        time.sleep(random.uniform(2 * _PAUSE, _CHUNKS * _PAUSE / 3))
        self._kill(random.choice([*self._cluster.workers.values()]))

    def all_again_and_again(self) -> None:
        """Kill every worker as soon as it works, until this is stopped."""
        while not self._stop.wait(_PAUSE):
            for nanny in [*self._cluster.workers.values()]:
                worker = self._cluster.scheduler.workers.get(nanny.worker_address)
                if worker is not None and worker.processing:
                    self._kill(nanny)

    def _kill(self, nanny: Any) -> None:
        try:
            os.kill(nanny.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.deaths += 1


def workers(size: Size) -> list[Finding]:
    """Kill workers in the middle of releases, one or all of them."""
    from dp_metrics.distributed import private_mse as distributed_mse

    name, y, p = _data()
    chunks = _chunked(y, p)
    expected = private_mse(y, p, epsilon=_EPSILON, random_state=SeededEntropy(0))
    right = charged = deaths = 0
    with tempfile.TemporaryDirectory() as folder:
        budget = PrivacyAccountant(1000, Path(folder) / "budget.sqlite")

        def release() -> float:
            options = {"accountant": budget, "random_state": SeededEntropy(0)}
            return float(distributed_mse(*chunks, epsilon=_EPSILON, **options))

        for turn in tqdm(range(size.deaths), desc="dask"):
            with _cluster() as cluster:  # a new one: a nanny does not always replace a worker that was killed
                killer = Killer(cluster)
                with killer.killing(killer.one):
                    right += release() == expected
            charged += len(budget.history) == turn + 1
            deaths += killer.deaths
        before, error = budget.spent, "none"
        with _cluster() as cluster:
            killer = Killer(cluster)
            try:
                with killer.killing(killer.all_again_and_again):
                    release()
            except Exception as raised:
                error = type(raised).__name__
        spent = budget.spent - before
    return [
        Finding("data", f"{name}, {y.size:,} records in {_CHUNKS} chunks"),
        Finding("releases during which a worker was killed", size.deaths, deaths == size.deaths),
        Finding("of these with the bits of one call in memory", right, right == size.deaths),
        Finding("of these charged exactly once", charged, charged == size.deaths),
        Finding(f"error if all workers die again and again, {killer.deaths} times", error, error != "none"),
        Finding("epsilon that this cost", spent, spent == 0),
    ]
