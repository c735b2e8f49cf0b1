"""Print accuracy on real data: mean absolute error relative to the true value, from exact output laws.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/accuracy.py`.

- The table of 13 tasks: for each task, epsilon and mechanism, 6 subsamples of 1,000 records (all 836 of
  abalone's test split), the exact expected error on each, averaged. Beside a number stands the reference of
  the specification, if it has one, which used other subsamples; a "*" marks those more than 25 % apart. The
  last row is the default without the public bounds, whose error counts as at most 10 times the true value.
- With `--all-records`: all test records, one stage (`Hazard`), two stages at every n * epsilon
  (`Adaptive(threshold=1e-9, share=0.25)`) and Laplace noise, beside the reference; and the default, which has
  two stages only from a public n * epsilon on.
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

from dp_metrics.evaluation.engine import ERROR_CAP, MECHANISM_RIVALS, RIVALS, STUDIES
from dp_metrics.evaluation.population import Population, load_population, title_of
from dp_metrics.inputs.options import own_error_state
from dp_metrics.mechanisms import Adaptive, Hazard, Laplace, Mechanism
from dp_metrics.mechanisms._laws import mean_absolute_error

EPSILONS = (0.1, 0.5, 1.0, 2.0)
MECHANISMS = [rival.mechanism for rival in MECHANISM_RIVALS]
WITHOUT_BOUNDS = "adaptive, without the bounds"
WITH_REFERENCE = ("hazard", "above_threshold", "paper", "inverse_sensitivity")
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


COLUMNS = ("one stage", "two stages", "Laplace", "default")
ALL_RECORDS = {
    "diamonds, MSE": ".24/.16/4.3 .10/.038/1.1 .074/.032/.66 .056/.028/.37",
    "diamonds, MAE": ".022/.019/.17 .0071/.0053/.033 .0047/.0032/.017 .0031/.0020/.0083",
    "bike, MSE": ".23/.25/22 .12/.069/4.7 .082/.036/2.6 .055/.019/1.5",
    "diabetes, log loss": ".16/.042/.060 .046/.011/.012 .027/.0063/.0060 .015/.0036/.0030",
    "bike rentals, variance": ".020/-/.41 .0049/-/.087 .0025/-/.044 .0011/-/.022",
    "adult age, variance": ".0047/-/.017 .0010/-/.0034 .00049/-/.0017 .00022/-/.00085",
    "lognormal incomes, variance, 1,000": ".66/-/4.2 .38/-/1.1 .29/-/.65 .21/-/.36",
    "lognormal incomes, variance, 100,000": ".20/-/.053 .10/-/.011 .068/-/.0053 .041/-/.0027",
}
"""One stage / two stages / Laplace, for each epsilon; the variance had two other stages then."""


def tasks() -> Iterator[tuple[str, Population]]:
    """Yield the title and the values or losses of each task: those of the studies that have a reference."""
    with tempfile.TemporaryDirectory() as cache:
        for name in ("variance", "mse", "mae", "cross-entropy"):
            for task in STUDIES[name].tasks:
                if title_of(task) in REFERENCE:
                    yield title_of(task), load_population(task, None, Path(cache))


def lognormal_incomes(n: int) -> Population:
    """Return made-up incomes with public bounds."""
    values = np.clip(np.random.default_rng(0).lognormal(0.0, 1.0, n) * 1000.0, 0.0, 50_000.0)
    return Population("variance", values, (0.0, 50_000.0))


@own_error_state
def relative_error(
    population: Population,
    records: NDArray[np.float64],
    mechanism: Mechanism,
    epsilon: float,
    *,
    bounded: bool = True,
) -> float:
    """Return a mechanism's exact expected relative error on these records."""
    prepared = population.prepared(records, mechanism, epsilon, bounded=bounded)
    value = prepared.stats[0].bounds(0, False).value
    cap = np.inf if bounded else ERROR_CAP * value
    return float(mean_absolute_error(prepared.laws(len(records))[0], value, cap) / value)


def expected_errors(population: Population, epsilon: float, subsamples: int) -> list[float]:
    """Return each mechanism's exact expected relative error, averaged over the subsamples."""
    errors = []
    for seed in range(subsamples):
        sample = population.draw(1000, np.random.default_rng(seed))
        mechanisms = [RIVALS[name].make(population.paper_unit(sample.size)) for name in MECHANISMS]
        errors.append([relative_error(population, sample, m, epsilon) for m in mechanisms])
        errors[-1].append(relative_error(population, sample, Adaptive(), epsilon, bounded=False))
    return np.mean(errors, axis=0).tolist()


def print_header(*cells: str) -> None:
    """Print the head of a table."""
    print("| " + " | ".join(cells) + " |")
    print("|---" * len(cells) + "|", flush=True)


def beside(error: float, reference: str) -> tuple[str, bool]:
    """Return the text of an error beside its reference, and whether they are more than 25 % apart."""
    if reference == "-":
        return f"{error:.2g}", False
    far = abs(error / float(reference) - 1) > 0.25
    return f"{error:.2g} ({float(reference):g}){'*' if far else ''}", far


def print_summary(errors: NDArray[np.float64]) -> None:
    """Print the geometric means over the tasks; errors has the shape (tasks, epsilons, mechanisms)."""
    ratios = np.exp(np.mean(np.log(errors / errors[:, :, :1]), axis=0))
    best = np.argmin(errors[:, :, :-1], axis=2)  # all but the last column, which has no bounds
    print("\nGeometric mean over the tasks of error / error of adaptive, and in how many tasks it is best:\n")
    print_header("mechanism", *(f"eps {epsilon}" for epsilon in EPSILONS))
    for column, name in enumerate([*MECHANISMS, WITHOUT_BOUNDS]):
        cells = [
            f"{ratio:.2f} ({np.sum(wins == column)})"
            for ratio, wins in zip(ratios[:, column], best.T, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


def print_thirteen_tasks(subsamples: int) -> None:
    """Print the table of subsamples."""
    shown = ["adaptive", *WITH_REFERENCE]
    print(f"{' / '.join(shown)}, with references in brackets; * more than 25 % apart\n")
    print_header("task", *(f"eps {epsilon}" for epsilon in EPSILONS))
    apart, table = 0, []
    for name, population in tqdm(tasks(), total=len(REFERENCE), desc="tasks"):
        table.append([expected_errors(population, epsilon, subsamples) for epsilon in EPSILONS])
        cells = []
        for errors, references in zip(table[-1], REFERENCE[name].split(), strict=True):
            known = dict(zip(WITH_REFERENCE, references.split("/"), strict=True))
            entries = [beside(errors[MECHANISMS.index(one)], known.get(one, "-")) for one in shown]
            apart += sum(far for _, far in entries)
            cells.append(" / ".join(text for text, _ in entries))
        tqdm.write(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\n{apart} of {13 * len(EPSILONS) * len(WITH_REFERENCE)} entries are more than 25 % apart.")
    print_summary(np.array(table))


def print_all_records() -> None:
    """Print the table of all test records."""
    found = {name: population for name, population in tasks() if name in ALL_RECORDS}
    found |= {f"lognormal incomes, variance, {n:,}": lognormal_incomes(n) for n in (1_000, 100_000)}
    mechanisms = (Hazard(), Adaptive(threshold=1e-9, share=0.25), Laplace(), Adaptive())
    print(f"{' / '.join(COLUMNS)}, with references in brackets; * more than 25 % apart\n")
    print_header("task", "n", *(f"eps {epsilon}" for epsilon in EPSILONS))
    apart = 0
    for name, references in ALL_RECORDS.items():
        records, cells = found[name].values, []
        for epsilon, cell in zip(EPSILONS, references.split(), strict=True):
            entries = [
                beside(relative_error(found[name], records, mechanism, epsilon), reference)
                for mechanism, reference in zip(mechanisms, [*cell.split("/"), "-"], strict=True)
            ]
            apart += sum(far for _, far in entries)
            cells.append(" / ".join(text for text, _ in entries))
        print(f"| {name} | {records.size:,} | " + " | ".join(cells) + " |", flush=True)
    known = sum(cell.count(".") for cell in ALL_RECORDS.values())
    print(f"\n{apart} of {known} entries are more than 25 % apart.")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subsamples", type=int, default=6)
    parser.add_argument("--all-records", action="store_true", help="the table of all test records instead")
    arguments = parser.parse_args()
    if "DP_METRICS_DATA" not in os.environ:
        sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
    if arguments.all_records:
        print_all_records()
    else:
        print_thirteen_tasks(arguments.subsamples)


if __name__ == "__main__":
    main()
