"""Print the 13-task accuracy table: mean absolute error relative to the true value, from exact output laws.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/accuracy.py`.

For each task, epsilon and mechanism: 6 subsamples of 1,000 records (all 836 of abalone's test split),
the exact expected error on each, averaged. Beside each number stands the reference of the specification,
which used other subsamples; a "*" marks those more than 25 % apart.
"""

import argparse
import os
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from dp_metrics import losses
from dp_metrics._release import loss_output_bounds, variance_output_bounds
from dp_metrics.evaluation.datasets import get_dataset, load_dataset, read_table
from dp_metrics.evaluation.models import evaluate_model
from dp_metrics.mechanisms import (
    AboveThreshold,
    Hazard,
    InverseSensitivity,
    Laplace,
    Mechanism,
    PiecewiseLaplace,
)

EPSILONS = (0.1, 0.5, 1.0, 2.0)
MECHANISMS: dict[str, Mechanism] = {
    "hazard": Hazard(),
    "above_threshold": AboveThreshold(),
    "paper": AboveThreshold.paper(),
    "inverse_sensitivity": InverseSensitivity(),
    "piecewise_laplace": PiecewiseLaplace(),
    "laplace": Laplace(),
}
WITH_REFERENCE = tuple(MECHANISMS)[:4]
REFERENCE = {
    "variance, diamond price": ".37/.70/1.0/3.1 .063/.18/.28/.61 .027/.075/.13/.31 .012/.033/.052/.16",
    "variance, abalone age": ".26/.54/.99/4.7 .071/.17/.24/.92 .045/.089/.14/.46 .028/.048/.073/.24",
    "variance, bike rentals": ".26/.59/1.0/16 .056/.16/.24/3.1 .029/.076/.12/1.6 .014/.037/.056/.83",
    "variance, adult age": ".11/.39/1.0/1.5 .032/.086/.14/.30 .018/.043/.068/.15 .010/.024/.032/.078",
    "variance, adult hours": ".32/.66/1.0/3.6 .074/.18/.26/.70 .046/.093/.15/.35 .027/.047/.078/.18",
    "MSE, diamonds": ".63/.81/1.4/180 .34/.42/.51/36 .24/.26/.31/18 .16/.15/.18/9.6",
    "MSE, abalone": ".30/.53/.70/11 .10/.18/.19/2.2 .072/.10/.12/1.1 .054/.065/.074/.57",
    "MSE, bike": ".40/.65/1.7/300 .18/.26/.43/61 .13/.16/.25/31 .084/.087/.14/16",
    "MAE, diamonds": ".14/.38/.88/3.5 .037/.095/.10/.68 .022/.048/.054/.34 .013/.027/.030/.18",
    "MAE, abalone": ".090/.19/.39/.65 .041/.042/.044/.13 .024/.027/.025/.063 .013/.023/.014/.033",
    "MAE, bike": ".087/.26/.74/3.8 .030/.056/.065/.75 .016/.031/.036/.38 .009/.021/.021/.20",
    "log loss, adult": ".19/.47/.87/.61 .039/.10/.10/.12 .021/.047/.048/.061 .010/.022/.022/.033",
    "log loss, diabetes": ".78/.89/.93/2.0 .39/.46/.41/.38 .22/.24/.21/.19 .11/.10/.097/.10",
}
Task = tuple[str, NDArray[np.float64], str, object, float]


def tasks() -> Iterator[Task]:
    """Yield (name, values or losses, kind, public bounds or cap, paper scale) of each task."""
    for name, data, column, bounds in (
        ("diamond price", "diamonds", "price", (0.0, 50_000.0)),
        ("abalone age", "abalone", "Rings", (0.0, 50.0)),
        ("bike rentals", "bike", "cnt", (0.0, 5_000.0)),
        ("adult age", "adult", "age", (0.0, 125.0)),
        ("adult hours", "adult", "hours-per-week", (0.0, 168.0)),
    ):
        x = read_table(data)[column].to_numpy(dtype=np.float64)
        yield f"variance, {name}", x + 1.5 if data == "abalone" else x, "variance", bounds, 1.0
    evaluations = {
        name: evaluate_model(get_dataset(name), *load_dataset(name), progress=False)
        for name in ("diamonds", "abalone", "bike", "adult", "diabetes")
    }
    for metric, kernel in (("MSE", losses.squared_error), ("MAE", losses.absolute_error)):
        for name in ("diamonds", "abalone", "bike"):
            e = evaluations[name]
            yield (
                f"{metric}, {name}",
                kernel(np.clip(e.y_test, *e.dataset.bounds), e.prediction),
                "loss",
                losses.largest_error(kernel, e.dataset.bounds),
                1.0,
            )
    for name in ("adult", "diabetes"):
        e = evaluations[name]
        resolution = float(np.finfo(np.float64).eps)
        values = losses.log_loss(e.y_test, e.prediction[:, np.newaxis], resolution)
        yield f"log loss, {name}", np.minimum(values, e.max_loss), "loss", e.max_loss, 1e-3


def expected_errors(task: Task, epsilon: float, subsamples: int) -> list[float]:
    """Return each mechanism's exact expected relative error, averaged over the subsamples."""
    _, values, kind, limit, paper_scale = task
    errors = np.zeros((subsamples, len(MECHANISMS)))
    for seed in range(subsamples):
        rng = np.random.default_rng(seed)
        sample = rng.choice(values, min(1000, values.size), replace=False)
        for column, mechanism in enumerate(MECHANISMS.values()):
            if kind == "variance":
                bounds = variance_output_bounds(sample, bounds=limit, mechanism=mechanism, epsilon=epsilon)
            else:
                bounds = loss_output_bounds(
                    sample, max_loss=limit, mechanism=mechanism, epsilon=epsilon, paper_scale=paper_scale
                )
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
    for task in tqdm(tasks(), total=len(REFERENCE), desc="tasks"):
        table.append([expected_errors(task, epsilon, arguments.subsamples) for epsilon in EPSILONS])
        cells = []
        for errors, reference in zip(table[-1], REFERENCE[task[0]].split(), strict=True):
            cell = []
            for error, expected in zip(errors, map(float, reference.split("/")), strict=False):
                far = abs(error / expected - 1) > 0.25
                apart += far
                cell.append(f"{error:.2g} ({expected:g}){'*' if far else ''}")
            cells.append(" / ".join(cell))
        tqdm.write(f"| {task[0]} | " + " | ".join(cells) + " |")
    print(f"\n{apart} of {13 * len(EPSILONS) * len(WITH_REFERENCE)} entries are more than 25 % apart.")
    print_summary(np.array(table))


if __name__ == "__main__":
    main()
