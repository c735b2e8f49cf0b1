"""The protocol of the experiments: draw records, release their metric, note the error; many times.

The releases here are seeded, so that a run can be repeated; they are therefore not private, which on
public data protects nobody and harms nobody.
"""

import hashlib
import math
import multiprocessing
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_metrics._random import SeededEntropy
from dp_metrics.evaluation.clipped_mean import clipped_mean, clipped_variance
from dp_metrics.evaluation.experiment import ERROR_CAP
from dp_metrics.evaluation.extras import import_extra
from dp_metrics.evaluation.population import SPLIT_SEED, Population, Task
from dp_metrics.evaluation.results import Key, ResultRow
from dp_metrics.evaluation.studies import STUDIES, Curve, Study

__all__ = ["EXACT_REPEATS", "SAMPLE_SIZE", "Chunk", "plan", "run_chunk", "run_chunks", "seed_of"]

SAMPLE_SIZE = 1000
"""Records drawn in each repeat."""

EXACT_REPEATS = 3
"""The exact expected error, slow to compute for AboveThreshold, is computed in the first repeats only."""

_CHUNK = 10


@dataclass(frozen=True)
class Chunk:
    """A piece of work: some repeats of a task at one epsilon, and the curves still to be computed in each.

    Attributes
    ----------
    study : str
        Name of the study.
    task : Task or None
        Panel; None: simulated output bounds.
    epsilon : float
        Privacy parameter; nan: drawn in each simulation.
    repeats : tuple of (int, tuple of int)
        Number of each repeat with the positions of its curves in the study.
    """

    study: str
    task: Task | None
    epsilon: float
    repeats: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def releases(self) -> int:
        """Number of releases."""
        return sum(len(curves) for _, curves in self.repeats)


def seed_of(*parts: object) -> int:
    """Return a seed that belongs to these names and numbers."""
    return int.from_bytes(hashlib.blake2b("|".join(map(str, parts)).encode(), digest_size=7).digest(), "big")


def plan(
    study: Study,
    populations: Mapping[Task, Population],
    epsilons: Sequence[float],
    repeats: int,
    done: set[Key],
) -> list[Chunk]:
    """Return what is left to do of a study."""
    whole = STUDIES[study.name]
    chunks = []
    for task in study.tasks:
        curves = [
            (whole.curves.index(curve), curve)
            for curve in study.curves
            if populations[task].bounds is not None or not curve.needs_bounds
        ]
        if populations[task].bounds is None:
            curves = [(i, curve) for i, curve in curves if curve.setting != "bounded"]
        for epsilon in epsilons:
            for first in range(0, repeats, _CHUNK):
                todo = []
                for repeat in range(first, min(first + _CHUNK, repeats)):
                    missing = tuple(
                        i for i, curve in curves if _key(study.name, task, curve, epsilon, repeat) not in done
                    )
                    if missing:
                        todo.append((repeat, missing))
                if todo:
                    chunks.append(Chunk(study.name, task, epsilon, tuple(todo)))
    return chunks


def _key(study: str, task: Task, curve: Curve, epsilon: float, repeat: int) -> Key:
    return (study, task.dataset, task.column, task.metric, curve.setting, curve.mechanism, epsilon, repeat)


def run_chunk(
    chunk: Chunk, populations: Mapping[Task, Population], stamp: Mapping[str, str]
) -> list[ResultRow]:
    """Return the rows of a chunk.

    Parameters
    ----------
    chunk : Chunk
        What to do.
    populations : mapping
        Population of each task.
    stamp : mapping
        The fields `versions` and `revision` of the rows.
    """
    if chunk.task is None:
        from dp_metrics.evaluation.simulate import simulated_rows

        return [row for number, curves in chunk.repeats for row in simulated_rows(number, curves, stamp)]
    population = populations[chunk.task]
    rows = []
    for repeat, curves in chunk.repeats:
        names = (chunk.study, chunk.task.dataset, chunk.task.column, chunk.task.metric, chunk.epsilon, repeat)
        draw_seed = seed_of("draw", *names)
        sample = population.draw(SAMPLE_SIZE, np.random.default_rng(draw_seed))
        true_value, sampling_error = population.truth(sample)
        for position in curves:
            curve = STUDIES[chunk.study].curves[position]
            release_seed = seed_of("release", *names, curve.mechanism, curve.setting)
            bounded = curve.bounded and population.bounds is not None
            cap = math.inf if bounded else ERROR_CAP * true_value
            release, expected, overshoot = _release(
                curve, population, sample, chunk.epsilon, bounded, release_seed, true_value,
                cap if repeat < EXACT_REPEATS else None,
            )  # fmt: skip
            rows.append(
                ResultRow(
                    figure=chunk.study,
                    dataset=chunk.task.dataset,
                    column=chunk.task.column,
                    metric=chunk.task.metric,
                    setting=curve.setting,
                    mechanism=curve.mechanism,
                    epsilon=chunk.epsilon,
                    repeat=repeat,
                    n=len(sample),
                    bounded=int(bounded),
                    draw_seed=draw_seed,
                    release_seed=release_seed,
                    split_seed=-1 if chunk.task.metric == "variance" else SPLIT_SEED,
                    true_value=true_value,
                    release=release,
                    error=abs(release - true_value),
                    expected_error=expected,
                    overshoot=overshoot,
                    sampling_error=sampling_error,
                    versions=stamp["versions"],
                    revision=stamp["revision"],
                )
            )
    return rows


def _release(
    curve: Curve,
    population: Population,
    sample: Any,
    epsilon: float,
    bounded: bool,
    seed: int,
    true_value: float,
    cap: float | None,
) -> tuple[float, float | None, float | None]:
    """Return a release and, unless `cap` is None, two numbers from its exact law.

    They are the expectation of the error capped there, and the chance of an overshoot.
    """
    entropy = SeededEntropy(seed)
    if curve.make is None:
        limit = None if population.bounds is None or not bounded else population.bounds[1]
        clipped = clipped_variance if population.metric == "variance" else clipped_mean
        return clipped(sample, epsilon=epsilon, limit=limit, rng=entropy), None, None
    output_bounds = population.output_bounds(sample, curve.make, epsilon, bounded=bounded)
    release = curve.make.release(output_bounds, epsilon, entropy)
    if cap is None:
        return release, None, None
    law = curve.make.output_distribution(output_bounds, epsilon)
    overshoot = 1.0 - float(law.cdf(ERROR_CAP * true_value))
    return release, float(law.mean_absolute_error(true_value, cap=cap)), overshoot


_shared: dict[str, Any] = {}


def _start_worker(populations: Mapping[Task, Population], stamp: Mapping[str, str]) -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the main process stops the others, without their tracebacks
    # The processes share the processor; threads of theirs would only wait for it.
    import_extra("threadpoolctl").threadpool_limits(1)
    _shared.update(populations=populations, stamp=stamp)


def _work(chunk: Chunk) -> list[ResultRow]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run_chunk(chunk, _shared["populations"], _shared["stamp"])


def run_chunks(
    chunks: Sequence[Chunk], populations: Mapping[Task, Population], stamp: Mapping[str, str], jobs: int
) -> Iterator[list[ResultRow]]:
    """Yield the rows of each chunk as it is done, in this process or in several others."""
    if jobs == 1:
        for chunk in chunks:
            yield run_chunk(chunk, populations, stamp)
        return
    context = multiprocessing.get_context("spawn")  # a forked child would inherit locks of xgboost's threads
    with ProcessPoolExecutor(jobs, context, _start_worker, (populations, stamp)) as pool:
        waiting = iter(chunks)
        running = {pool.submit(_work, chunk) for _, chunk in zip(range(2 * jobs), waiting, strict=False)}
        try:
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
                for _, chunk in zip(finished, waiting, strict=False):  # this order: zip drops no chunk
                    running.add(pool.submit(_work, chunk))
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a process was killed, perhaps for want of memory; the same command goes on from here"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
