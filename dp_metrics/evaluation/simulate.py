"""Simulated output bounds, for the scatter of section 4.3 of the paper and the pictures of 4.1 and 4.2."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dp_metrics._random import SeededEntropy
from dp_metrics.bounds import OutputBounds
from dp_metrics.evaluation.experiment import ERROR_CAP
from dp_metrics.evaluation.protocol import Chunk, seed_of
from dp_metrics.evaluation.results import Key, ResultRow
from dp_metrics.evaluation.studies import STUDIES, Study
from dp_metrics.mechanisms import InverseSensitivity

__all__ = ["SIMULATIONS", "asymmetry_of", "plan_simulations", "simulate_bounds", "simulated_rows"]

SIMULATIONS = 300
"""Number of points in the scatter."""

_VALUE = 1000.0
_RANKS = 100
_RECORDS = 1000
_KINDS = ("uniform", "heavy-tailed")


def simulate_bounds(number: int) -> tuple[str, float, OutputBounds]:
    """Return the kind, the epsilon and the output bounds of one simulation.

    The lower bounds are spread uniformly over [0, 1000], with 1000 the true value. The upper ones are
    spread uniformly over a range up to 300 times as wide, or have steps from a Pareto law, so that their
    last ranks reach far out and a smaller epsilon means more asymmetry.
    """
    rng = np.random.default_rng(seed_of("simulated bounds", number))
    kind = _KINDS[number % 2]
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
    return (
        kind,
        epsilon,
        OutputBounds(_VALUE, lower, upper, (0.0, _VALUE + width), monotonic=True, n=_RECORDS),
    )


def asymmetry_of(output_bounds: OutputBounds, epsilon: float) -> float:
    """Return |P(inverse sensitivity > f) - 1/2|, the paper's measure (section 4.3)."""
    law = InverseSensitivity().output_distribution(output_bounds, epsilon)
    return abs(0.5 - float(law.cdf(output_bounds.value)))


def plan_simulations(study: Study, count: int, done: set[Key]) -> list[Chunk]:
    """Return the simulations that are left to do."""
    whole = STUDIES[study.name].curves
    known = {(key[5], key[7]) for key in done if key[0] == study.name}
    todo = []
    for number in range(count):
        missing = tuple(whole.index(c) for c in study.curves if (c.mechanism, number) not in known)
        if missing:
            todo.append((number, missing))
    return [
        Chunk(study.name, None, math.nan, tuple(todo[first : first + 20]))
        for first in range(0, len(todo), 20)
    ]


def simulated_rows(number: int, curves: Sequence[int], stamp: Mapping[str, str]) -> list[ResultRow]:
    """Return one row per mechanism for one simulation; its setting holds the asymmetry."""
    kind, epsilon, output_bounds = simulate_bounds(number)
    asymmetry = asymmetry_of(output_bounds, epsilon)
    rows = []
    for position in curves:
        curve = STUDIES["asymmetry"].curves[position]
        assert curve.make is not None
        seed = seed_of("simulated release", number, curve.mechanism)
        release = curve.make.release(output_bounds, epsilon, SeededEntropy(seed))
        law = curve.make.output_distribution(output_bounds, epsilon)
        rows.append(
            ResultRow(
                figure="asymmetry",
                dataset="simulated",
                column="",
                metric=kind,
                setting=f"asymmetry={asymmetry:.6f}",
                mechanism=curve.mechanism,
                epsilon=epsilon,
                repeat=number,
                n=_RECORDS,
                bounded=1,
                draw_seed=seed_of("simulated bounds", number),
                release_seed=seed,
                split_seed=-1,
                true_value=output_bounds.value,
                release=release,
                error=abs(release - output_bounds.value),
                expected_error=float(law.mean_absolute_error(output_bounds.value)),
                overshoot=1.0 - float(law.cdf(ERROR_CAP * output_bounds.value)),
                sampling_error=0.0,
                versions=stamp["versions"],
                revision=stamp["revision"],
            )
        )
    return rows
