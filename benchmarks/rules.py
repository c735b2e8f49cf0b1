"""Measure the error of `private_variance` and `private_mean_loss` on many columns, and compare two rules.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/rules.py --output after.csv`, with the package to
be measured on PYTHONPATH. What the file already holds is not measured again. Then
`python benchmarks/rules.py --compare before.csv after.csv` prints what has changed.

The columns are those of `columns.py`, those of `hard_columns.py`, and the values or losses of the 13 tasks of
`accuracy.py`, drawn with replacement. The losses of a column are the absolute values.

For each column, metric, number of records, neighbouring relation, epsilon and mechanism there is a row: mean,
median and 99 % quantile of abs(release - truth) / truth, from output laws and not from draws; no error counts
for more than 10. A private number of records is taken to be estimated without error, but is paid for. The
sampling error is the standard error that the metric has anyway, because the records are a sample.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy import tasks
from columns import COLUMNS, Column
from hard_columns import HARD_COLUMNS
from numpy.typing import NDArray
from tqdm import tqdm

from dp_metrics.evaluation.population import Population
from dp_metrics.metrics import METRICS

EPSILONS = (0.1, 0.3, 1.0, 4.0)
RELATIONS = ("replace_one", "add_or_remove_one")
LARGE = 100_000  # above only with n public
SLOW_IF_LARGE = [  # the law of their variance takes minutes
    name
    for name, column in COLUMNS.items()
    if column.kind not in ("whole", "light", "real") or name == "adult capital gain"
]
VARIANCE, LOSSES = "private_variance", "private_mean_loss"
ERROR_CAP = 10.0
NEGLIGIBLE = 2e-5  # a comparison leaves out where some mechanism errs less: clamped at the end of the range
GROUP = ["set", "column", "metric", "n", "relation"]
CASE = [*GROUP, "epsilon"]
STATISTICS = ["mean", "median", "q99"]
BANDS = {
    "below 600": (0, 600),
    "600 to 1,000": (600, 1_000),
    "1,000 to 3,000": (1_000, 3_000),
    "3,000 to 10,000": (3_000, 10_000),
    "10,000 to 30,000": (10_000, 30_000),
    "30,000 to 100,000": (30_000, 100_000),
    "100,000 and more": (100_000, np.inf),
}
MIDDLES = (np.arange(4_000) + 0.5) / 4_000

Floats = NDArray[np.float64]


def task_columns() -> Iterator[tuple[str, Column, tuple[str, ...]]]:
    """Yield the 13 tasks as columns, each with the one metric that is asked of it."""

    def resampled(population: Population) -> Column:
        values = population.values
        return Column(
            "task", lambda n, rng: rng.choice(values, n), population.bounds, (1_000, 10_000, 100_000)
        )

    for title, population in tasks():
        metric = VARIANCE if title.endswith("variance") else LOSSES
        yield title, resampled(population), (metric,)


def groups_of(sets: list[str]) -> Iterator[tuple[str, str, Column, str, int, str]]:
    """Yield set, name, column, metric, number of records and relation of all that is measured."""
    both = (VARIANCE, LOSSES)
    columns = {
        "columns": lambda: [(name, column, both) for name, column in COLUMNS.items()],
        "hard": lambda: [(name, column, both) for name, column in HARD_COLUMNS.items()],
        "tasks": task_columns,
    }
    for kind in sets:
        for name, column, metrics in columns[kind]():
            for metric, n, relation in product(metrics, column.sizes, RELATIONS):
                is_slow = metric == VARIANCE and name in SLOW_IF_LARGE
                if n < LARGE or (not is_slow and (n == LARGE or relation == "replace_one")):
                    yield kind, name, column, metric, n, relation


def law_of(metric: str, x: Floats, column: Column, relation: str, epsilon: float, mechanism: str) -> Any:
    """Return the law of a release."""
    row = METRICS[metric]
    options: dict[str, Any] = {}
    if column.bounds is not None:
        highest = max(map(abs, column.bounds))
        options = {"bounds": column.bounds} if metric == VARIANCE else {"max_loss": highest}
    release = row.settings(epsilon=epsilon, neighboring=relation, mechanism=mechanism, options=options)
    draws, _, _ = release.prepare(*row.read((x,), options, private_n=release.private_n))
    draw: Any = draws[0]
    return draw.law(x.size) if hasattr(draw, "law") else draw.sums_law


def measured(
    kind: str, name: str, column: Column, metric: str, n: int, relation: str, *, only_default: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a column with this number of records."""
    x = column.values(name, n)
    terms = np.square(x - np.mean(x)) if metric == VARIANCE else np.abs(x)
    value = float(np.mean(terms))
    sampling_error = float(np.std(terms)) / n**0.5 / value
    bounded, public_n = column.bounds is not None, relation == "replace_one"
    others = ["hazard", *["geometric"] * bounded, *["laplace"] * (bounded and public_n)]
    for epsilon, mechanism in product(EPSILONS, ["adaptive", *([] if only_default else others)]):
        law = law_of(metric, x if metric == VARIANCE else terms, column, relation, epsilon, mechanism)
        errors = np.minimum(np.abs(law.quantile(MIDDLES) / value - 1), ERROR_CAP)
        yield {
            "set": kind, "column": name, "metric": metric, "n": n, "relation": relation, "epsilon": epsilon,
            "mechanism": mechanism,
            "mean": float(law.mean_absolute_error(value, ERROR_CAP * value)) / value,
            "median": float(np.quantile(errors, 0.5)), "q99": float(np.quantile(errors, 0.99)),
            "sampling_error": sampling_error,
        }  # fmt: skip


def measure(output: Path, sets: list[str], *, only_default: bool) -> None:
    """Append to a file what it lacks."""
    done = set()
    if output.exists():
        done = set(pd.read_csv(output)[GROUP].itertuples(index=False, name=None))
    groups = [group for group in groups_of(sets) if (*group[:2], *group[3:]) not in done]
    for group in tqdm(groups, desc="columns"):
        rows = pd.DataFrame(measured(*group, only_default=only_default))
        rows.to_csv(output, mode="a", header=not output.exists(), index=False, float_format="%.4g")


def read(path: Path) -> pd.DataFrame:
    """Return what was measured."""
    found = pd.read_csv(path)
    found[STATISTICS] = found[STATISTICS].clip(lower=NEGLIGIBLE)
    return found


def paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return the cases that both have: errors of the default as old and new, and the best that is known."""
    frames = [found[found.mechanism == "adaptive"].set_index(CASE) for found in (before, after)]
    old, new = (f[STATISTICS].add_prefix(rule) for f, rule in zip(frames, ("old_", "new_"), strict=True))
    everything = pd.concat([before, after])
    best = everything.groupby(CASE)[STATISTICS].min().add_prefix("best_")
    hazard = before[before.mechanism == "hazard"].set_index(CASE)["mean"].rename("hazard_mean")
    cases = old.join(new, how="inner").join([best, hazard, frames[0].sampling_error]).reset_index()
    for statistic in STATISTICS:
        cases[f"ratio_{statistic}"] = cases[f"new_{statistic}"] / cases[f"old_{statistic}"]
    return cases.assign(size=(cases.n * cases.epsilon).round(6))


def geometric_mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values)))) if len(values) else np.nan


def print_table(title: str, table: pd.DataFrame, *, index: bool = True) -> None:
    """Print a table below its title."""
    print(f"\n{title}\n\n{table.to_string(index=index, float_format=lambda x: f'{x:.3g}')}")


def by_band(cases: pd.DataFrame) -> pd.DataFrame:
    """Return for each band of n * epsilon the geometric means of new / old, and what is worst."""
    rows = {}
    for band, (low, high) in BANDS.items():
        some = cases[(cases["size"] >= low) & (cases["size"] < high)]
        if len(some):
            rows[band] = {
                **{one: geometric_mean(some[f"ratio_{one}"]) for one in STATISTICS},
                **{f"worst {one}": some[f"ratio_{one}"].max() for one in STATISTICS},
                "old/hazard": (some.old_mean / some.hazard_mean).max(),
                "new/hazard": (some.new_mean / some.hazard_mean).max(),
                "old/best": (some.old_mean / some.best_mean).max(),
                "new/best": (some.new_mean / some.best_mean).max(),
                "cases": len(some),
            }
    return pd.DataFrame(rows).T.astype({"cases": int})


def compare(before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Print what has changed."""
    cases = paired(before, after)
    is_clamped = cases.best_mean <= NEGLIGIBLE
    clamped, cases = cases[is_clamped], cases[~is_clamped]
    print(
        f"{len(clamped)} cases where a mechanism errs by {NEGLIGIBLE} or less are left out; "
        f"the default by {clamped.old_mean.max():.2g} at most, now by {clamped.new_mean.max():.2g}."
    )
    for (kind, metric), some in cases.groupby(["set", "metric"]):
        print_table(f"{kind}, {metric}: new / old by n * epsilon:", by_band(some))
    for metric, some in cases.groupby("metric"):
        shown = [*CASE, "old_mean", "new_mean", "ratio_mean", "ratio_median", "ratio_q99", "sampling_error"]
        worst = some.sort_values("ratio_mean", ascending=False)
        print_table(f"{metric}, worst cases:", worst[shown].head(20), index=False)
        from_hazard = some.assign(to_hazard=some.new_mean / some.hazard_mean)
        worst = from_hazard.sort_values("to_hazard", ascending=False)
        print_table("Furthest above hazard:", worst[[*shown, "to_hazard"]].head(12), index=False)


def main() -> None:
    """Measure or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="the CSV file that is written or completed")
    parser.add_argument(
        "--sets", nargs="+", choices=("columns", "hard", "tasks"), default=["hard", "columns", "tasks"]
    )
    parser.add_argument("--only-default", action="store_true", help="leave out the other mechanisms")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    arguments = parser.parse_args()
    if arguments.compare:
        compare(*map(read, arguments.compare))
        return
    if arguments.output is None:
        parser.error("give --output or --compare")
    if "DP_METRICS_DATA" not in os.environ:
        sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
    measure(arguments.output, arguments.sets, only_default=arguments.only_default)


if __name__ == "__main__":
    main()
