"""Print measurements behind two pieces of advice in the documentation; exact output laws, nothing sampled.

Run `python benchmarks/advice.py`; with `DP_METRICS_DATA=path/to/data` it prints the second table too.

1. Intervals built from `private_std`: how often release +- 1.96 * private_std(losses) / sqrt(n), half of
   epsilon for each of the two numbers, covers the mean of the population; 95 % is meant. In brackets the
   median of the private standard deviation / the exact one.
2. The share of releases of the default below the truth, in the 13 tasks of `accuracy.py`.
"""

import math
import os
import sys
from pathlib import Path

import numpy as np

from dp_metrics.analysis.simulation import loss_draw, variance_draw
from dp_metrics.evaluation.population import Population
from dp_metrics.mechanisms import Adaptive

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from error_table import EPSILONS, LOSSES, RECORDS

DEFAULT = Adaptive()
MEANS = {
    "absolute error, normal": math.sqrt(2 / math.pi),
    "squared error, normal": 1.0,
    "absolute error, heavy-tailed": 2 * math.sqrt(3) / math.pi,
    "squared error, heavy-tailed": 3.0,
}
"""Means of the populations."""


def sample(kind: str, n: int, seed: int) -> np.ndarray:
    return LOSSES[kind](np.random.default_rng([seed, n]), n)


def coverage(kind: str, n: int, epsilon: float, sets: int = 30) -> tuple[float, float]:
    """Return (coverage of the mean by the interval, median of the private / exact standard deviation)."""
    covered, spread = [], []
    for seed in range(sets):
        losses, share = sample(kind, n, seed), epsilon / 2
        variance = variance_draw(losses, mechanism=DEFAULT, epsilon=share)
        released = loss_draw(losses, mechanism=DEFAULT, epsilon=share).law(None)
        deviation = np.sqrt(variance.law(None).quantile(np.arange(0.005, 1, 0.01)))
        width = 1.96 * deviation / math.sqrt(n)
        inside = released.cdf(MEANS[kind] + width) - released.cdf(MEANS[kind] - width)
        covered.append(float(inside.mean()))
        spread.append(float(np.median(deviation)) / math.sqrt(variance.output_bounds.value))
    return float(np.mean(covered)), float(np.mean(spread))


def share_below(population: Population, epsilon: float, sets: int = 6) -> float:
    """Return the mean over subsamples of P(release < truth)."""
    shares = []
    for seed in range(sets):
        values = population.draw(1000, np.random.default_rng(seed))
        draw = population.prepared(values, DEFAULT, epsilon)
        shares.append(float(draw.law(None).cdf(np.nextafter(draw.output_bounds.value, 0.0))))
    return float(np.mean(shares))


def print_row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def print_header(title: str, *cells: object) -> None:
    print(f"\n{title}\n")
    print_row(*cells)
    print("|---" * len(cells) + "|")


def print_real_tasks() -> None:
    from accuracy import tasks

    print_header("Share of releases of the default below the truth", "task", *EPSILONS)
    table = []
    for name, population in tasks():
        table.append([share_below(population, epsilon) for epsilon in EPSILONS])
        print_row(name, *(f"{share:.2f}" for share in table[-1]))
    shares = np.array(table)
    print_row("mean", *(f"{share:.2f}" for share in shares.mean(axis=0)))
    print_row("tasks above one half", *(shares > 0.5).sum(axis=0))


def main() -> None:
    columns = ("errors of the model", "n", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS))
    print_header("Coverage of the population's mean (private / exact standard deviation)", *columns)
    for kind in LOSSES:
        for n in RECORDS[:3]:
            pairs = [coverage(kind, n, e) for e in EPSILONS]
            print_row(kind, n, *(f"{100 * p[0]:.0f} % ({p[1]:.2f})" for p in pairs))
    if "DP_METRICS_DATA" in os.environ:
        print_real_tasks()


if __name__ == "__main__":
    main()
