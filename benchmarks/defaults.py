"""Print the measurements from which the default mechanism of each metric is chosen.

Run `python benchmarks/defaults.py`; it takes twenty minutes, nearly all of them for variances of 100,000
records, and two with `--sizes 100 1000 10000`. `--million` adds a million records.

The grid is public: 100 to 100,000 made-up records of six tails, epsilon 0.1 to 4, a mean of losses and a
variance, each with public bounds, both neighbouring relations. The candidates are "hazard", "adaptive" and
"geometric". Errors are expectations under exact output laws; nothing is sampled but the data.

1. Error of a mechanism / error of the best of the three: geometric mean, and in brackets the worst. A mean
   error counts as at most ten times the truth.
2. The median of (release - truth) / truth: which way the typical release errs.
3. Error / truth of each metric's default by n * epsilon: what `NoisyReleaseWarning` rests on.
"""

import argparse
import csv
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from dp_metrics import expected_error, private_mean_loss, private_variance

Floats = NDArray[np.float64]
Tail = Callable[[np.random.Generator, int], Floats]

METRICS = ("mean loss", "variance")
RECORDS = (100, 1_000, 10_000, 100_000)
MILLION = 1_000_000
EPSILONS = (0.1, 0.5, 1.0, 4.0)
RELATIONS = ("replace_one", "add_or_remove_one")
MECHANISMS = ("adaptive", "hazard", "geometric")
TAILS: dict[str, tuple[Tail, float]] = {
    "uniform": (lambda rng, n: rng.random(n), 1.0),
    "squares of normals": (lambda rng, n: rng.standard_normal(n) ** 2, 400.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 100.0),
    "lognormal, sigma 1": (lambda rng, n: rng.lognormal(0.0, 1.0, n), 50.0),
    "lognormal, sigma 2": (lambda rng, n: rng.lognormal(0.0, 2.0, n), 1e5),
    "Pareto, 1.5": (lambda rng, n: rng.pareto(1.5, n), 1e6),
}
"""What is drawn, and the public bound that it is clipped to."""

STEPS = (0.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e5, math.inf)
MOST = 10.0  # times the truth, for one error
LEVELS = (10.0, 25.0, 50.0, 100.0, 300.0)
"""Values of n * epsilon."""


@dataclass(frozen=True)
class Measured:
    """The expected error of one mechanism in one place of the grid, relative to the truth."""

    metric: str
    relation: str
    tail: str
    n: int
    epsilon: float
    mechanism: str
    error: float
    median: float

    @property
    def place(self) -> tuple[Any, ...]:
        """The place in the grid."""
        return self.metric, self.relation, self.tail, self.n, self.epsilon


def measure(
    metric: str, relation: str, tail: str, n: int, epsilon: float, mechanism: str | None, bounded: bool = True
) -> Measured:
    """Return the expected error of a mechanism, or of the metric's default."""
    draw, limit = TAILS[tail]
    records = np.minimum(draw(np.random.default_rng(n), n), limit)
    function, options, truth = (
        (private_variance, {"bounds": (0.0, limit)}, records.var())
        if metric == "variance"
        else (private_mean_loss, {"max_loss": limit}, records.mean())
    )
    how = {"epsilon": epsilon, "mechanism": mechanism, "neighboring": relation}
    expected = expected_error(function, records, **how, **(options if bounded else {}))
    # noisy sums of wide bounds are rounded before they are capped
    error, median = min(expected.mean_absolute / truth, MOST), expected.quantiles[0.5] / truth
    return Measured(metric, relation, tail, n, epsilon, mechanism or "default", float(error), float(median))


def grid(metrics: Sequence[str], sizes: Sequence[int]) -> Iterator[Measured]:
    """Yield every mechanism in every place of the grid."""
    places = [
        (metric, relation, tail, n, epsilon)
        for metric in metrics
        for relation in RELATIONS
        for n in sizes
        for tail in TAILS
        for epsilon in EPSILONS
    ]
    for place in tqdm(places, desc="places of the grid"):
        for mechanism in MECHANISMS:
            yield measure(*place, mechanism)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def print_header(title: str, *cells: object) -> None:
    """Print the title and the head of a table."""
    print(f"\n{title}\n")
    print_row(*cells)
    print("|---" * len(cells) + "|")


def print_row(*cells: object) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def step_of(found: Measured) -> str:
    """Return the class of n * epsilon."""
    records = found.n * found.epsilon
    low, high = next(pair for pair in pairwise(STEPS) if pair[0] <= records < pair[1])
    return f"from {low:,.0f}" if math.isinf(high) else f"{low:,.0f} to {high:,.0f}"


def print_ratios(measured: Sequence[Measured]) -> None:
    """Print the error of each mechanism over that of the best, by n * epsilon."""
    errors = {(*found.place, found.mechanism): found.error for found in measured}
    columns = ("metric", "relation", "n * epsilon", *MECHANISMS)
    print_header("Error / error of the best of the three: geometric mean (worst)", *columns)
    rows: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for found in measured:
        best = min(errors[(*found.place, mechanism)] for mechanism in MECHANISMS)
        row = rows.setdefault((found.metric, found.relation, step_of(found)), {m: [] for m in MECHANISMS})
        row[found.mechanism].append(found.error / best)
    for key in sorted(rows, key=lambda key: (key[0], RELATIONS.index(key[1]), lowest(key[2]))):
        ratios = rows[key].values()
        print_row(*key, *(f"{geometric_mean(part):.2f} ({max(part):.3g})" for part in ratios))


def lowest(step: str) -> float:
    """Return where a class of n * epsilon begins."""
    return float(step.removeprefix("from ").split()[0].replace(",", ""))


def print_medians(measured: Sequence[Measured]) -> None:
    """Print which way the typical release errs, where n is public."""
    columns = ("metric", "tail", "n", *(f"eps {epsilon:g}" for epsilon in EPSILONS))
    shown = [f for f in measured if f.relation == "replace_one" and f.mechanism in ("adaptive", "hazard")]
    medians = {(f.metric, f.tail, f.n, f.epsilon, f.mechanism): f.median for f in shown}
    print_header("Median of (release - truth) / truth, adaptive (hazard)", *columns)
    for metric, tail, n in dict.fromkeys((f.metric, f.tail, f.n) for f in shown):
        pairs = [[medians[metric, tail, n, e, m] for m in ("adaptive", "hazard")] for e in EPSILONS]
        print_row(metric, tail, f"{n:,}", *(f"{own:+.2g} ({other:+.2g})" for own, other in pairs))


def print_noise() -> None:
    """Print the error of the default by n * epsilon."""
    for bounded in (True, False):
        title = (
            f"Error / truth of the default, {'with' if bounded else 'without'} public bounds: median (all)"
        )
        print_header(title, "metric", "n", *(f"n * eps {level:g}" for level in LEVELS))
        for metric in METRICS:
            for n in (100, 1_000, 10_000):
                cells = []
                for level in LEVELS:
                    errors = sorted(
                        measure(metric, "replace_one", tail, n, level / n, None, bounded).error
                        for tail in TAILS
                    )
                    cells.append(f"{np.median(errors):.2g} ({' '.join(f'{e:.2g}' for e in errors)})")
                print_row(metric, f"{n:,}", *cells)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", action="store_true", help="also a million records")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(RECORDS))
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=METRICS)
    parser.add_argument("--only-noise", action="store_true", help="the last table only")
    parser.add_argument("--output", type=Path, help="a CSV file of every place of the grid")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not arguments.only_noise:
        sizes = [*arguments.sizes, *([MILLION] if arguments.million else [])]
        measured = list(grid(arguments.metrics, sizes))
        print_ratios(measured)
        print_medians(measured)
        if arguments.output:
            with arguments.output.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, asdict(measured[0]))
                writer.writeheader()
                writer.writerows(asdict(found) for found in measured)
    print_noise()


if __name__ == "__main__":
    sys.exit(main())
