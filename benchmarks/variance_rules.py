"""Measure the error of `private_variance` on the columns of `variance_columns.py`, and compare two rules.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/variance_rules.py --output after.csv`, with the
package to be measured on PYTHONPATH. What the file already holds is not measured again. Then
`python benchmarks/variance_rules.py --compare before.csv after.csv` prints what has changed.

For each column, number of records, neighbouring relation, epsilon and mechanism there is a row: mean, median
and 95 % quantile of abs(release - variance) / variance, from output laws and not from draws; no error counts
for more than 10. A private number of records is taken to be estimated without error, but is paid for. The
sampling error is the standard error that the variance of the column has anyway, because the records are a
sample.
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
from numpy.typing import NDArray
from tqdm import tqdm
from variance_columns import COLUMNS, values_of

from dp_metrics.metrics import METRICS

EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
RELATIONS = ("replace_one", "add_or_remove_one")
SIZES = (100, 300, 1_000, 3_000, 10_000)
LARGE = 100_000  # with n public, and for these columns: a law of others takes minutes
COLUMNS_OF_LARGE = [
    name
    for name, column in COLUMNS.items()
    if column.kind in ("whole", "light", "real") and name != "adult capital gain"  # most of that are zeros
]
ERROR_CAP = 10.0
NEGLIGIBLE = 2e-5  # a comparison leaves out where some mechanism errs less: clamped at the end of the range
GROUP = ["column", "n", "relation"]
CASE = [*GROUP, "epsilon"]
STATISTICS = ["mean", "median", "q95"]
BANDS = {
    "n eps below 600": (0, 600),
    "600 to 1,000": (600, 1_000),
    "1,000 to 3,000": (1_000, 3_000),
    "3,000 to 10,000": (3_000, 10_000),
    "10,000 and more": (10_000, np.inf),
    "all": (0, np.inf),
}
MIDDLES = (np.arange(2_000) + 0.5) / 2_000

Floats = NDArray[np.float64]


def mechanisms_of(name: str, relation: str) -> list[str]:
    """Return the mechanisms that serve a column: the default first."""
    bounded = COLUMNS[name].bounds is not None
    public_n = relation == "replace_one"
    return ["adaptive", "hazard", *["geometric"] * bounded, *["laplace"] * (bounded and public_n)]


def law_of(name: str, x: Floats, relation: str, epsilon: float, mechanism: str) -> Any:
    """Return the law of a release."""
    metric, options = METRICS["private_variance"], {"bounds": COLUMNS[name].bounds}
    release = metric.settings(epsilon=epsilon, neighboring=relation, mechanism=mechanism, options=options)
    draws, _, _ = release.prepare(*metric.read((x,), options, private_n=release.private_n))
    draw: Any = draws[0]
    return draw.law(x.size) if hasattr(draw, "law") else draw.sums_law


def measured(name: str, n: int, relation: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a column with this number of records."""
    x = values_of(name, n)
    squares = np.square(x - np.mean(x))
    variance = float(np.mean(squares))
    sampling_error = float(np.std(squares)) / n**0.5 / variance
    for epsilon, mechanism in product(EPSILONS, mechanisms_of(name, relation)):
        law = law_of(name, x, relation, epsilon, mechanism)
        errors = np.minimum(np.abs(law.quantile(MIDDLES) / variance - 1), ERROR_CAP)
        yield {
            "column": name, "n": n, "relation": relation, "epsilon": epsilon, "mechanism": mechanism,
            "mean": float(law.mean_absolute_error(variance, ERROR_CAP * variance)) / variance,
            "median": float(np.quantile(errors, 0.5)), "q95": float(np.quantile(errors, 0.95)),
            "sampling_error": sampling_error,
        }  # fmt: skip


def measure(output: Path, columns: list[str], sizes: list[int] | None) -> None:
    """Append to a file what it lacks."""
    done = set()
    if output.exists():
        done = set(pd.read_csv(output)[GROUP].itertuples(index=False, name=None))
    groups = list(product(columns, sizes or SIZES, RELATIONS))
    if sizes is None:
        groups += [(name, LARGE, "replace_one") for name in columns if name in COLUMNS_OF_LARGE]
    for group in tqdm([group for group in groups if group not in done], desc="columns"):
        rows = pd.DataFrame(measured(*group))
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
    best = pd.concat([before, after]).groupby(CASE)[STATISTICS].min().add_prefix("best_")
    cases = old.join(new, how="inner").join(best).join(frames[0].sampling_error).reset_index()
    for statistic in STATISTICS:
        cases[f"ratio_{statistic}"] = cases[f"new_{statistic}"] / cases[f"old_{statistic}"]
    return cases.assign(size=(cases.n * cases.epsilon).round(6))


def geometric_mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values)))) if len(values) else np.nan


def print_table(title: str, table: pd.DataFrame, *, index: bool = True) -> None:
    """Print a table below its title."""
    print(f"\n{title}\n\n{table.to_string(index=index, float_format=lambda x: f'{x:.3g}')}")


def by_band(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric means of new / old."""
    rows = {}
    for band, (low, high) in BANDS.items():
        some = cases[(cases["size"] >= low) & (cases["size"] < high)]
        rows[band] = {one: geometric_mean(some[f"ratio_{one}"]) for one in STATISTICS} | {"cases": len(some)}
    return pd.DataFrame(rows).T.astype({"cases": int})


def worst_columns(cases: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the columns whose mean error has grown most, where n * epsilon is at least 600."""
    ratios = cases[cases["size"] >= 600].groupby("column").ratio_mean
    table = pd.DataFrame({"geometric mean": ratios.agg(geometric_mean), "largest": ratios.max()})
    return table.sort_values("geometric mean", ascending=False).head(count)


def far_from_best(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of cases with more than 1.5 times the least error of any mechanism, old or new."""
    rows = {}
    for band, low in (("n eps from 1,000", 1_000), ("all", 0)):
        some = cases[cases["size"] >= low]
        for rule in ("old", "new"):
            far = {one: (some[f"{rule}_{one}"] > 1.5 * some[f"best_{one}"]).mean() for one in STATISTICS}
            rows[f"{band}, {rule}"] = far
    return pd.DataFrame(rows).T


def rises(cases: pd.DataFrame) -> pd.DataFrame:
    """Return in how many (column, n, relation) an error is 10 % above one at a smaller epsilon."""
    groups = [group.sort_values("epsilon") for _, group in cases.groupby(GROUP)]
    rows = {}
    for rule in ("old", "new"):
        errors = [group[[f"{rule}_{one}" for one in STATISTICS]] for group in groups]
        rows[rule] = sum((one > 1.1 * one.cummin()).any().to_numpy().astype(int) for one in errors)
    return pd.DataFrame(rows, index=STATISTICS).T.assign(of=len(groups))


def compare(before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Print what has changed."""
    cases = paired(before, after)
    is_clamped = cases.best_mean <= NEGLIGIBLE
    clamped, cases = cases[is_clamped], cases[~is_clamped]
    print(
        f"{len(clamped)} cases where a mechanism errs by {NEGLIGIBLE} or less are left out; "
        f"the default by {clamped.old_mean.max():.2g} at most, now by {clamped.new_mean.max():.2g}."
    )
    print_table("Geometric mean of new / old:", by_band(cases))
    print_table("Worst columns, mean error, n eps from 600:", worst_columns(cases, 12))
    shown = [*CASE, "old_mean", "new_mean", "ratio_mean", "sampling_error"]
    worst = cases.sort_values("ratio_mean", ascending=False)
    print_table("Worst cases:", worst[shown].head(12), index=False)
    doubled = worst[(worst.ratio_mean > 2) & (worst.old_mean < worst.sampling_error)]
    title = f"Mean error doubled from below the sampling error, in {len(doubled)} of {len(cases)} cases:"
    print_table(title, doubled[shown], index=False)
    print_table("Share of cases with more than 1.5 times the best known:", far_from_best(cases))
    print_table("Column, n and relation where an error rises with epsilon by more than 10 %:", rises(cases))


def main() -> None:
    """Measure or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="the CSV file that is written or completed")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of records, for both relations")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    arguments = parser.parse_args()
    if arguments.compare:
        compare(*map(read, arguments.compare))
        return
    if arguments.output is None:
        parser.error("give --output or --compare")
    if "DP_METRICS_DATA" not in os.environ:
        sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
    measure(arguments.output, arguments.columns, arguments.sizes)


if __name__ == "__main__":
    main()
