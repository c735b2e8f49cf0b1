"""Print the table of the first page: how far the typical release of the default lies from the truth.

Run `python docs/median_table.py > docs/median_table.inc`. A cell is the median of (release - truth) / truth
under the exact output law, nothing sampled. Losses are simulated with fixed seeds, and a cell is the mean
over the simulated data sets. Below 0 the typical release is too low: the model looks better than it is.
"""

import numpy as np
from error_table import EPSILONS, LOSSES, RECORDS, print_table

from dp_metrics import expected_error, private_mean_loss

KINDS = {
    "absolute error, normal": "light-tailed: absolute error, normal",
    "squared error, heavy-tailed": "heavy-tailed: squared error, Student's law",
}
"""Names of the rows, by the kind of loss."""


def signed_median(kind: str, n: int, epsilon: float, sets: int = 5) -> float:
    """Return the median of (release - truth) / truth, averaged over simulated data sets."""
    medians = []
    for seed in range(sets):
        losses = LOSSES[kind](np.random.default_rng([seed, n]), n)
        expected = expected_error(private_mean_loss, losses, epsilon=epsilon)
        medians.append(expected.quantiles[0.5] / losses.mean())
    return float(np.mean(medians))


def main() -> None:
    """Print the table in reStructuredText."""
    rows = [["errors of the model", "n", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]]
    for kind, name in KINDS.items():
        for n in RECORDS:
            rows.append([name, f"{n:,}", *(f"{signed_median(kind, n, e):+.2g}" for e in EPSILONS)])
    print_table(rows)


if __name__ == "__main__":
    main()
