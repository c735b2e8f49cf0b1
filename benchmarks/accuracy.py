"""Print the 13-task accuracy table: mean absolute error relative to the true value, from exact output laws.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/accuracy.py`.

For each task, epsilon and mechanism: 6 subsamples of 1,000 records (all 836 of abalone's test split),
the exact expected error on each, averaged. Beside each number stands the reference of the specification,
which used other subsamples; a "*" marks those more than 25 % apart.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from dp_metrics.evaluation.compared import MECHANISM_CURVES
from dp_metrics.evaluation.population import Population, load_population
from dp_metrics.evaluation.studies import STUDIES

EPSILONS = (0.1, 0.5, 1.0, 2.0)
MECHANISMS = [curve.mechanism for curve in MECHANISM_CURVES]
WITH_REFERENCE = MECHANISMS[:4]
REFERENCE = {
    "diamonds price, variance": ".37/.70/1.0/3.1 .063/.18/.28/.61 .027/.075/.13/.31 .012/.033/.052/.16",
    "abalone age, variance": ".26/.54/.99/4.7 .071/.17/.24/.92 .045/.089/.14/.46 .028/.048/.073/.24",
    "bike rentals, variance": ".26/.59/1.0/16 .056/.16/.24/3.1 .029/.076/.12/1.6 .014/.037/.056/.83",
    "adult age, variance": ".11/.39/1.0/1.5 .032/.086/.14/.30 .018/.043/.068/.15 .010/.024/.032/.078",
    "adult hours, variance": ".32/.66/1.0/3.6 .074/.18/.26/.70 .046/.093/.15/.35 .027/.047/.078/.18",
    "diamonds, MSE": ".63/.81/1.4/180 .34/.42/.51/36 .24/.26/.31/18 .16/.15/.18/9.6",
    "abalone, MSE": ".30/.53/.70/11 .10/.18/.19/2.2 .072/.10/.12/1.1 .054/.065/.074/.57",
    "bike, MSE": ".40/.65/1.7/300 .18/.26/.43/61 .13/.16/.25/31 .084/.087/.14/16",
    "diamonds, MAE": ".14/.38/.88/3.5 .037/.095/.10/.68 .022/.048/.054/.34 .013/.027/.030/.18",
    "abalone, MAE": ".090/.19/.39/.65 .041/.042/.044/.13 .024/.027/.025/.063 .013/.023/.014/.033",
    "bike, MAE": ".087/.26/.74/3.8 .030/.056/.065/.75 .016/.031/.036/.38 .009/.021/.021/.20",
    "adult, log loss": ".19/.47/.87/.61 .039/.10/.10/.12 .021/.047/.048/.061 .010/.022/.022/.033",
    "diabetes, log loss": ".78/.89/.93/2.0 .39/.46/.41/.38 .22/.24/.21/.19 .11/.10/.097/.10",
}


def tasks() -> Iterator[tuple[str, Population]]:
    """Yield the title and the values or losses of each task: those of the studies that have a reference."""
    with tempfile.TemporaryDirectory() as cache:
        for name in ("variance", "mse", "mae", "cross-entropy"):
            for task in STUDIES[name].tasks:
                if task.title in REFERENCE:
                    yield task.title, load_population(task, None, Path(cache), progress=False)


def expected_errors(population: Population, epsilon: float, subsamples: int) -> list[float]:
    """Return each mechanism's exact expected relative error, averaged over the subsamples."""
    errors = np.zeros((subsamples, len(MECHANISM_CURVES)))
    for seed in range(subsamples):
        sample = population.draw(1000, np.random.default_rng(seed))
        for column, curve in enumerate(MECHANISM_CURVES):
            mechanism = curve.make(population.paper_unit(sample.size))
            bounds = population.output_bounds(sample, mechanism, epsilon)
            law = mechanism.output_distribution(bounds, epsilon)
            errors[seed, column] = law.mean_absolute_error(bounds.value) / bounds.value
    return errors.mean(axis=0).tolist()


def print_summary(errors: NDArray[np.float64]) -> None:
    """Print the geometric means over the tasks; errors has the shape (tasks, epsilons, mechanisms)."""
    ratios = np.exp(np.mean(np.log(errors / errors[:, :, :1]), axis=0))
    best = np.argmin(errors, axis=2)
    print(
        "\nGeometric mean over the tasks of error / error of hazard, and in how many tasks it is the best:\n"
    )
    print("| mechanism | " + " | ".join(f"eps {epsilon}" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    for column, name in enumerate(MECHANISMS):
        cells = [
            f"{ratio:.1f} ({np.sum(wins == column)})"
            for ratio, wins in zip(ratios[:, column], best.T, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subsamples", type=int, default=6)
    arguments = parser.parse_args()
    if "DP_METRICS_DATA" not in os.environ:
        sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
    print(f"{' / '.join(WITH_REFERENCE)}, each with its reference in brackets; * more than 25 % apart\n")
    print("| task | " + " | ".join(f"eps {epsilon}" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|", flush=True)
    apart, table = 0, []
    for name, population in tqdm(tasks(), total=len(REFERENCE), desc="tasks"):
        table.append([expected_errors(population, epsilon, arguments.subsamples) for epsilon in EPSILONS])
        cells = []
        for errors, reference in zip(table[-1], REFERENCE[name].split(), strict=True):
            cell = []
            for error, expected in zip(errors, map(float, reference.split("/")), strict=False):
                far = abs(error / expected - 1) > 0.25
                apart += far
                cell.append(f"{error:.2g} ({expected:g}){'*' if far else ''}")
            cells.append(" / ".join(cell))
        tqdm.write(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\n{apart} of {13 * len(EPSILONS) * len(WITH_REFERENCE)} entries are more than 25 % apart.")
    print_summary(np.array(table))


if __name__ == "__main__":
    main()
