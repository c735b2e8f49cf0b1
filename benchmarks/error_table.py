"""Print the table of the questions page: the error to expect by number of records and epsilon.

Run `python benchmarks/error_table.py > docs/error_table.inc`.
Losses are simulated with a fixed seed; errors are
expectations under the exact output laws, capped at 10 times the true value, averaged over data sets.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dp_metrics import plan_release, private_mean_loss

Floats = NDArray[np.float64]

RECORDS = (100, 1_000, 10_000, 100_000)
EPSILONS = (0.1, 0.5, 1.0, 2.0)
LOSSES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "absolute error, normal": lambda rng, n: np.abs(rng.standard_normal(n)),
    "squared error, normal": lambda rng, n: rng.standard_normal(n) ** 2,
    "absolute error, heavy-tailed": lambda rng, n: np.abs(rng.standard_t(3, n)),
    "squared error, heavy-tailed": lambda rng, n: rng.standard_t(3, n) ** 2,
}


def relative_errors(kind: str, n: int, epsilons: tuple[float, ...] = EPSILONS, sets: int = 5) -> list[float]:
    """Return the error to expect at each epsilon, and last the sampling error, relative to the true value."""
    errors = []
    for seed in range(sets):
        losses = LOSSES[kind](np.random.default_rng([seed, n]), n)
        mean = float(losses.mean())
        privacy = [plan_release(private_mean_loss, guess=(losses,), epsilon=e).error for e in epsilons]
        sampling = float(losses.std()) / np.sqrt(n)
        errors.append([error / mean for error in (*privacy, sampling)])
    return np.mean(errors, axis=0).tolist()


def print_table(rows: list[list[str]]) -> None:
    """Print rows, the first of them the header, in reStructuredText."""
    print(".. list-table::\n   :header-rows: 1\n")
    for row in rows:
        print("\n".join(f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)))


def main() -> None:
    """Print the table in reStructuredText."""
    rows = [["errors of the model", "n", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "sampling"]]
    for kind in LOSSES:
        rows += [[kind, f"{n:,}", *(f"{e:.2g}" for e in relative_errors(kind, n))] for n in RECORDS]
    print_table(rows)


if __name__ == "__main__":
    main()
