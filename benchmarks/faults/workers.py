"""Workers of Dask that are killed in the middle of a release."""

import logging
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
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
        Client(cluster) as client,
    ):
        yield client


class Killer:
    """Kills worker processes in a thread of its own, and counts."""

    def __init__(self, client: Any) -> None:
        self._client, self.deaths, self._stop = client, 0, threading.Event()

    def once(self, patience: float) -> threading.Thread:
        """Kill one of the workers after so many seconds."""
        return self._started(lambda: self._kill_one(patience))

    def for_ever(self) -> threading.Thread:
        """Kill every worker as soon as it works, until this is stopped."""
        return self._started(self._kill_all)

    def stop(self) -> None:
        """Kill no more."""
        self._stop.set()

    def _started(self, work: Any) -> threading.Thread:
        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def _kill_one(self, patience: float) -> None:
        pid = random.choice([*self._client.run(os.getpid).values()])
        time.sleep(patience)
        self._kill(pid)

    def _kill_all(self) -> None:
        cluster = self._client.cluster
        while not self._stop.wait(_PAUSE):
            for nanny in [*cluster.workers.values()]:
                worker = cluster.scheduler.workers.get(nanny.worker_address)
                if worker is not None and worker.processing:
                    self._kill(nanny.process.pid)

    def _kill(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
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
    with tempfile.TemporaryDirectory() as folder, _cluster() as client:
        budget = PrivacyAccountant(1000, Path(folder) / "budget.sqlite")

        def release() -> float:
            options = {"accountant": budget, "random_state": SeededEntropy(0)}
            return float(distributed_mse(*chunks, epsilon=_EPSILON, **options))

        for turn in tqdm(range(size.deaths), desc="dask"):
            client.wait_for_workers(2)
            killer = Killer(client)
            thread = killer.once(random.uniform(0.2, 0.8))
            right += release() == expected
            thread.join()
            charged += len(budget.history) == turn + 1
            deaths += killer.deaths
        client.wait_for_workers(2)
        before, error = budget.spent, "none"
        killer = Killer(client)
        thread = killer.for_ever()
        try:
            release()
        except Exception as raised:
            error = type(raised).__name__
        killer.stop()
        thread.join()
        spent = budget.spent - before
    return [
        Finding("data", f"{name}, {y.size:,} records in {_CHUNKS} chunks"),
        Finding("releases during which a worker was killed", f"{size.deaths}, {deaths} deaths"),
        Finding("of these with the bits of one call in memory", right, right == size.deaths),
        Finding("of these charged exactly once", charged, charged == size.deaths),
        Finding(f"error if all workers die again and again, {killer.deaths} times", error, error != "none"),
        Finding("epsilon that this cost", spent, spent == 0),
    ]
