"""Print the table of the first page: how far the typical release of the default lies from the truth.

Run `python benchmarks/median_table.py > docs/median_table.inc`.
A cell is the median of (release - truth) / truth
under the exact output law, nothing sampled. Losses are simulated with fixed seeds, and a cell is the mean
over the simulated data sets. Below 0 the typical release is too low: the model looks better than it is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from error_table import EPSILONS, LOSSES, RECORDS, Floats, print_table

from dp_metrics import plan_release, private_mean_loss, private_variance

KINDS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator, int], Floats]]] = {
    "light-tailed: absolute error, normal": (private_mean_loss, LOSSES["absolute error, normal"]),
    "heavy-tailed: squared error, Student's law": (private_mean_loss, LOSSES["squared error, heavy-tailed"]),
    "light-tailed: variance, normal": (private_variance, lambda rng, n: rng.standard_normal(n)),
    "heavy-tailed: variance, Student's law": (private_variance, lambda rng, n: rng.standard_t(3, n)),
}
"""The metric and its data, by the name of the rows."""
MANY = 100_000  # records of which the exact law of a variance takes too long


def signed_median(name: str, n: int, epsilon: float, sets: int = 5) -> float:
    """Return the median of (release - truth) / truth, averaged over simulated data sets."""
    metric, draw = KINDS[name]
    medians = []
    for seed in range(sets):
        data = draw(np.random.default_rng([seed, n]), n)
        truth = data.var() if metric is private_variance else data.mean()
        medians.append(plan_release(metric, guess=(data,), epsilon=epsilon).quantiles[0.5] / truth)
    return float(np.mean(medians))


def main() -> None:
    """Print the table in reStructuredText."""
    rows = [["metric of the records", "n", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]]
    for name, (metric, _) in KINDS.items():
        for n in RECORDS:
            if metric is private_mean_loss or n < MANY:
                rows.append([name, f"{n:,}", *(f"{signed_median(name, n, e):+.2g}" for e in EPSILONS)])
    print_table(rows)


if __name__ == "__main__":
    main()
