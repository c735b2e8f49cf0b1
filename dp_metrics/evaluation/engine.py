"""The engine of every study: draw records, release their metric with each rival, note the error; many times.

The releases are seeded, so that a run can be repeated; they are therefore not private, which on public data
protects nobody and harms nobody. Only `dp-metrics evaluate` takes all records, once, and draws its releases
from the operating system.
"""

import hashlib
import math
import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics._random import OSEntropy, SeededEntropy
from dp_metrics.evaluation.compared import Rival, clipped_mean
from dp_metrics.evaluation.population import Population, Task
from dp_metrics.evaluation.results_file import ERROR_CAP, Key, ResultRow
from dp_metrics.evaluation.studies import Study
from dp_metrics.evaluation.trained_models import SPLIT_SEED
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import exact_epsilon
from dp_metrics.mechanisms import InverseSensitivity, Mechanism
from dp_metrics.mechanisms._base import BoundsDraw
from dp_metrics.release.draws import NumberDraw
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

SAMPLE_SIZE = 1000  # records drawn in each repeat
EXACT_REPEATS = 3  # exact expected errors, slow to compute, are computed in the first repeats only
# simulations are single points: so many are made for a repeat of another study
SIMULATIONS_PER_REPEAT = 3
_CHUNK, _SIMULATED_CHUNK = 10, 20
_VALUE, _RANKS = 1000.0, 100  # the simulated output bounds have this value and number of ranks


@dataclass(frozen=True)
class Chunk:
    """A piece of work: some repeats of a task at one epsilon, and the rivals still to be computed in each."""

    study: Study
    task: Task | None  # None: output bounds are simulated
    epsilon: float  # nan: output bounds are simulated
    repeats: tuple[tuple[int, tuple[Rival, ...]], ...]

    @property
    def releases(self) -> int:
        """Number of releases."""
        return sum(len(rivals) for _, rivals in self.repeats)


@dataclass(frozen=True, eq=False)
class _Draw:
    """What the rivals of one repeat have in common: a row to be completed, and what mechanisms make of it."""

    row: ResultRow
    seen: Callable[[Mechanism, bool], NumberDraw]
    seed_parts: Callable[[Rival], tuple[object, ...]] | None  # the parts of a release's seed; None: no seed
    exact: bool
    unit: float = 1.0
    records: Floats | None = None
    limit: float | None = None


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
    if study.kind == "simulated":
        known = {(key[5], key[7]) for key in done if key[0] == study.name}
        count = SIMULATIONS_PER_REPEAT * repeats
        todo = [(i, tuple(c for c in study.rivals if (c.mechanism, i) not in known)) for i in range(count)]
        return _chunks(study, None, math.nan, todo, _SIMULATED_CHUNK)
    chunks = []
    for task, epsilon in product(study.tasks, epsilons):
        free = populations[task].bounds is None
        keys = {
            rival: (
                study.name,
                task.dataset,
                task.column,
                task.metric,
                rival.setting,
                rival.mechanism,
                epsilon,
            )
            for rival in study.rivals
            if not free or not (rival.needs_bounds or rival.setting == "bounded")
        }
        todo = [(i, tuple(c for c, key in keys.items() if (*key, i) not in done)) for i in range(repeats)]
        chunks += _chunks(study, task, epsilon, todo, _CHUNK)
    return chunks


def _chunks(
    study: Study, task: Task | None, epsilon: float, todo: list[tuple[int, tuple[Rival, ...]]], size: int
) -> list[Chunk]:
    parts = (todo[first : first + size] for first in range(0, len(todo), size))
    left = (tuple((repeat, rivals) for repeat, rivals in part if rivals) for part in parts)
    return [Chunk(study, task, epsilon, part) for part in left if part]


def run_chunk(
    chunk: Chunk, populations: Mapping[Task, Population], stamp: Mapping[str, Any]
) -> list[ResultRow]:
    """Return the rows of a chunk; `stamp` has the fields `versions` and `revision` of the rows."""
    rows = []
    for repeat, rivals in chunk.repeats:
        if chunk.task is None:
            draw = _simulated(chunk.study, repeat, stamp)
        else:
            draw = _drawn(chunk, chunk.task, repeat, populations[chunk.task], stamp)
        rows += [_released(draw, rival) for rival in rivals]
    return rows


def _drawn(chunk: Chunk, task: Task, repeat: int, population: Population, stamp: Mapping[str, Any]) -> _Draw:
    names = (chunk.study.name, task.dataset, task.column, task.metric, chunk.epsilon, repeat)
    whole = chunk.study.kind == "whole"
    draw_seed = -1 if whole else seed_of("draw", *names)
    records = population.values
    if not whole:
        records = population.draw(SAMPLE_SIZE, np.random.default_rng(draw_seed))
    true_value, sampling_error = population.truth(records)
    row = ResultRow(
        figure=chunk.study.name, dataset=task.dataset, column=task.column, metric=task.metric,
        epsilon=chunk.epsilon, repeat=repeat, n=len(records), bounded=int(population.bounds is not None),
        draw_seed=draw_seed, split_seed=-1 if task.metric == "variance" else SPLIT_SEED,
        true_value=true_value, sampling_error=sampling_error, **stamp,
    )  # fmt: skip

    def seen(mechanism: Mechanism, bounded: bool) -> NumberDraw:
        return population.prepared(records, mechanism, chunk.epsilon, bounded=bounded)

    return _Draw(
        row, seen, None if whole else lambda rival: ("release", *names, rival.mechanism, rival.setting),
        exact=whole or repeat < EXACT_REPEATS, unit=population.paper_unit(len(records)), records=records,
        limit=None if population.bounds is None else population.bounds[1],
    )  # fmt: skip


def _simulated(study: Study, number: int, stamp: Mapping[str, Any]) -> _Draw:
    kind, epsilon, output_bounds = simulate_bounds(number)
    row = ResultRow(
        figure=study.name, dataset="simulated", metric=kind, epsilon=epsilon, repeat=number,
        setting=f"asymmetry={asymmetry_of(output_bounds, epsilon):.6f}", n=SAMPLE_SIZE, bounded=1,
        draw_seed=seed_of("simulated bounds", number), true_value=output_bounds.value, **stamp,
    )  # fmt: skip

    return _Draw(
        row, lambda mechanism, bounded: BoundsDraw(output_bounds, mechanism, exact_epsilon(epsilon), False),
        lambda rival: ("simulated release", number, rival.mechanism), exact=True,
    )  # fmt: skip


def _released(draw: _Draw, rival: Rival) -> ResultRow:
    """Return the row of one release and, where asked for, of two numbers from its exact law."""
    epsilon, true_value = draw.row.epsilon, draw.row.true_value
    bounded = bool(draw.row.bounded) and rival.bounded
    seed = -1 if draw.seed_parts is None else seed_of(*draw.seed_parts(rival))
    entropy = OSEntropy() if draw.seed_parts is None else SeededEntropy(seed)
    expected = overshoot = None
    if rival.make is None:
        assert draw.records is not None
        limit, variance = draw.limit if bounded else None, draw.row.metric == "variance"
        release = clipped_mean(draw.records, epsilon=epsilon, limit=limit, variance=variance, rng=entropy)
    else:
        mechanism = rival.make(draw.unit)
        prepared = draw.seen(mechanism, bounded)
        release, _ = prepared(entropy, None)
        if draw.exact:
            law = prepared.law(None)
            cap = math.inf if bounded else ERROR_CAP * true_value
            expected = float(law.mean_absolute_error(true_value, cap=cap))
            overshoot = 1.0 - float(law.cdf(ERROR_CAP * true_value))
    return replace(
        draw.row, setting=draw.row.setting or rival.setting, mechanism=rival.mechanism, bounded=int(bounded),
        release_seed=seed, release=release, error=abs(release - true_value), expected_error=expected,
        overshoot=overshoot,
    )  # fmt: skip


def simulate_bounds(number: int) -> tuple[str, float, OutputBounds]:
    """Return the kind, the epsilon and the output bounds of one simulation (section 4.3 of the paper).

    The lower bounds are uniform over [0, 1000], with 1000 the true value. The upper ones are uniform over a
    range up to 300 times as wide, or have steps from a Pareto law, so that their last ranks reach far
    out and a smaller epsilon means more asymmetry.
    """
    rng = np.random.default_rng(seed_of("simulated bounds", number))
    kind = ("uniform", "heavy-tailed")[number % 2]
    epsilon = float(np.exp(rng.uniform(np.log(0.1), np.log(4.0))))
    width = _VALUE * float(np.exp(rng.uniform(0.0, np.log(300.0))))
    lower = np.sort(rng.uniform(0.0, _VALUE, _RANKS))[::-1]
    if kind == "uniform":
        upper = _VALUE + np.sort(rng.uniform(0.0, width, _RANKS))
    else:
        # the nearest step is like one of the lower bounds; the l-th grows by a random power of l
        steps = (1.0 + rng.pareto(2.0, _RANKS)) * np.arange(1, _RANKS + 1.0) ** rng.uniform(0.0, 3.0)
        upper = _VALUE + np.cumsum(steps) * (_VALUE / _RANKS) / 2
        width = float(upper[-1]) * 1.01 - _VALUE
    public = BoundsFacts(output_range=(0.0, _VALUE + width), monotonic=True, n=SAMPLE_SIZE)
    return kind, epsilon, public.bounds(_VALUE, lower, upper)


def asymmetry_of(output_bounds: OutputBounds, epsilon: float) -> float:
    """Return |P(inverse sensitivity > f) - 1/2|, the paper's measure (section 4.3)."""
    law = InverseSensitivity().output_distribution(output_bounds, epsilon)
    return abs(0.5 - float(law.cdf(output_bounds.value)))


_shared: dict[str, Any] = {}


def _start_worker(populations: Mapping[Task, Population], stamp: Mapping[str, Any]) -> None:
    # the main process stops the others, without their tracebacks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The processes share the processor; threads of theirs would only wait for it.
    import_extra("threadpoolctl").threadpool_limits(1)
    _shared.update(populations=populations, stamp=stamp)


def _work(chunk: Chunk) -> list[ResultRow]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run_chunk(chunk, _shared["populations"], _shared["stamp"])


def run_chunks(
    chunks: Sequence[Chunk], populations: Mapping[Task, Population], stamp: Mapping[str, Any], jobs: int
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
                for _, chunk in zip(finished, waiting, strict=False):  # zip drops no chunk in this order
                    running.add(pool.submit(_work, chunk))
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a process was killed, perhaps for want of memory; the same command goes on from here"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
