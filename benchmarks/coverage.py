"""Print how often intervals for people at large cover what they are about; 95 % is meant.

Run `DP_METRICS_DATA=path/to/data python benchmarks/coverage.py [--only NAME] [--quick]`; without data the
tables of real tasks are left out.

- proportions: exact coverage of `accuracy_interval`, the least over 200 shares.
- means: coverage of `private_mean_interval` on real tasks. The population is the
  held-out part of a data set, 40 or 50 %, whose mean is known; records are drawn from it with replacement.
  The noise is Laplace noise: that of the release, but for its lattice of a million steps. Beside it the
  interval of Student's t, which is not private. Then two tasks in which hardly any record has a loss.
- free: the same means released by `mechanism="geometric"`, and their `population_interval`: coverage of the
  approximate one, and the mean widths of both over that of Student's t. Above an epsilon of 1 both are one,
  and proved: 20 runs tell their width.
- ratios, labels, areas, bands, gaps: intervals that cost nothing; see `coverage_of_counts.py`.
- quantiles: exact miss of either limit of `private_quantile_interval` over that which its proof allows, on
  data of two values; and on real tasks the miss over 400 samples, exact for each of them.

Standard errors: of a coverage of .95 in 2000 runs .005; .011 in 400, where that of a miss of .025 is .008.
"""

import argparse
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache

import coverage_of_counts
import numpy as np
from classification.tasks import scored
from scipy.stats import binom
from scipy.stats import t as student
from tqdm import tqdm

from dp_metrics.evaluation.datasets import load_dataset
from dp_metrics.inference.quantiles import _CELLS, RankSearch, _misses, rank_searches
from dp_metrics.inputs.floats import MAX_FLOAT
from dp_metrics.mechanisms._hazard_law import largest_ratio
from dp_metrics.release.noisy_binomial import binomial_law, noisy_binomial_limits
from dp_metrics.release.normal_limits import mean_half_width
from dp_metrics.release.parts.order_statistic import OrderOf, OrderStatistic

EPSILONS = ("0.1", "0.3", "1", "3")
MISS = 0.05


class Size:
    """How much is computed."""

    runs, samples, shares, widths = 2000, 400, 200, 20
    sizes, counted = (300, 1000, 3000, 10_000), (100, 300, 1000)
    epsilons, spread, sure, draws, slow = (0.1, 0.3, 1.0, 4.0), (50, 200, 1000, 10_000), 1000, 100, 15


class Quick(Size):
    """Enough to see that it works."""

    runs, samples, shares, widths = 50, 3, 20, 3
    sizes, counted = (300,), (30,)
    epsilons, spread, sure, draws, slow = (1.0,), (200,), 5, 5, 2


def print_table(title: str, header: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    lines = [header, ["---"] * len(header), *rows]
    print(f"\n{title}\n", *("| " + " | ".join(map(str, line)) + " |" for line in lines), sep="\n", flush=True)


def proportions(size: type[Size]) -> None:
    """Print the least exact coverage of an accuracy's interval."""

    def least(n: int, epsilon: float) -> float:
        ends = [
            noisy_binomial_limits(count, n, epsilon, miss_low=MISS / 2, miss_high=MISS / 2)
            for count in range(n + 1)
        ]
        lower, upper = np.array(ends).T
        x, q = np.arange(n + 1), math.exp(-epsilon)
        noise = math.tanh(epsilon / 2) * q ** np.abs(x[:, np.newaxis] - x)
        noise[:, 0], noise[:, -1] = q**x / (1 + q), q ** (n - x) / (1 + q)  # clamped
        shares = np.linspace(0, 1, size.shares + 2)[1:-1]
        return min(float((binom.pmf(x, n, p) @ noise)[(lower <= p) & (p <= upper)].sum()) for p in shares)

    rows = [
        [n, *(f"{least(n, float(e)):.4f}" for e in EPSILONS)] for n in tqdm(size.counted, desc="proportions")
    ]
    print_table("Exact coverage of accuracy_interval, least over shares", ["n", *EPSILONS], rows)


@cache
def held_out(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets of the second part of a data set, and what a model of the first says of them."""
    from sklearn.model_selection import train_test_split
    from xgboost import XGBRegressor

    if name in CLASSIFIED:
        return scored(name)
    features, target = load_dataset(name)
    x, x_test, y, y_test = train_test_split(features, target, test_size=0.5, random_state=0)
    return y_test, XGBRegressor(n_estimators=100, n_jobs=2).fit(x, y).predict(x_test).astype(np.float64)


CLASSIFIED = ("adult", "diabetes", "brfss")


def brier(name: str) -> np.ndarray:
    y, proba = held_out(name)
    return np.square(proba - y)


def log_loss(name: str) -> np.ndarray:
    y, proba = held_out(name)
    return -np.log(np.where(y == 1, proba, 1 - proba).clip(1e-16, 1))


def absolute_error(name: str) -> np.ndarray:
    y, predicted = held_out(name)
    return np.abs(y - predicted)


MEANS: dict[str, tuple[Callable[[str], np.ndarray], str, float]] = {
    "Brier, adult": (brier, "adult", 1.0),
    "Brier, diabetes": (brier, "diabetes", 1.0),
    "Brier, brfss": (brier, "brfss", 1.0),
    "log loss, adult": (log_loss, "adult", 10.0),
    "log loss, diabetes": (log_loss, "diabetes", 10.0),
    "absolute error, diamonds": (absolute_error, "diamonds", 50_000.0),
    "absolute error, diamonds, tighter": (absolute_error, "diamonds", 10_000.0),
    "absolute error, abalone": (absolute_error, "abalone", 50.0),
    "absolute error, bike": (absolute_error, "bike", 5_000.0),
    "absolute error, bike, tighter": (absolute_error, "bike", 1_000.0),
}
"""Losses of real tasks and their public caps."""

FEW_LOSSES = ((1000, 3.0), (300, 10.0))
"""Cells of losses of which 0.2 % are at the cap and the others 0, where the normal method fails."""


def sums_of(population: np.ndarray, n: int, runs: int) -> Iterator[tuple[float, float]]:
    """Yield the means of v and of v (1 - v) over samples with replacement."""
    rng = np.random.default_rng(n)
    for _ in range(runs):
        v = population[rng.integers(population.size, size=n)]
        yield float(v.mean()), float((v * (1 - v)).mean())


def normal_coverage(sums: np.ndarray, mean: float, n: int, epsilon: float) -> tuple[float, float]:
    """Return the coverage of the normal method, and its mean width over that of Student's t."""
    rng = np.random.default_rng([n, int(1000 * epsilon)])
    noisy = sums + rng.laplace(scale=1 / (n * epsilon), size=sums.shape)
    middle = np.clip(noisy[:, 0], 0, 1)
    half = np.array(
        [
            mean_half_width(m, d, n, (1 / (n * epsilon),) * 2, MISS)
            for m, d in zip(middle, noisy[:, 1], strict=True)
        ]
    )
    lower, upper = np.maximum(middle - half, 0), np.minimum(middle + half, 1)
    return float(np.mean((lower <= mean) & (mean <= upper))), float(
        (upper - lower).mean() / (2 * t_half(sums, n).mean())
    )


def t_half(sums: np.ndarray, n: int) -> np.ndarray:
    m, d = sums.T
    half: np.ndarray = student.ppf(1 - MISS / 2, n - 1) * np.sqrt(np.maximum(m * (1 - m) - d, 0) / (n - 1))
    return half


def means(size: type[Size]) -> None:
    """Print the coverage of the normal method."""
    if "DP_METRICS_DATA" in os.environ:
        rows, covered, plain = [], [], []
        for name, (loss, data, cap) in tqdm(MEANS.items(), desc="means"):
            population = np.minimum(loss(data), cap) / cap
            mean = float(population.mean())
            for n in size.sizes:
                sums = np.array(list(sums_of(population, n, size.runs)))
                found = [normal_coverage(sums, mean, n, float(epsilon)) for epsilon in EPSILONS]
                plain.append(float(np.mean(np.abs(sums[:, 0] - mean) <= t_half(sums, n))))
                covered += [share for share, _ in found]
                rows.append(
                    [name, n, *(f"{one:.3f} ({width:.2f})" for one, width in found), f"{plain[-1]:.3f}"]
                )
        title = f"Coverage of the normal method (width / that of Student's t), {size.runs} runs"
        print_table(title, ["loss", "n", *EPSILONS, "Student's t"], rows)
        print(f"\nLeast and mean: {min(covered):.3f}, {np.mean(covered):.3f}; of Student's t ", end="")
        print(f"{min(plain):.3f}, {np.mean(plain):.3f}. Cells: {len(covered)}.", flush=True)
    rows = []
    for n, epsilon in FEW_LOSSES:
        shares = np.random.default_rng(n).binomial(n, 0.002, size.runs) / n
        sums = np.stack([shares, np.zeros(size.runs)], axis=1)
        simple = float(np.mean(np.abs(shares - 0.002) <= t_half(sums, n)))
        rows.append([n, epsilon, f"{normal_coverage(sums, 0.002, n, epsilon)[0]:.3f}", f"{simple:.3f}"])
    title = "Coverage of the normal method where 0.2 % of the losses are at the cap and the others 0"
    print_table(title, ["n", "epsilon", "normal", "Student's t"], rows)


def free(size: type[Size]) -> None:
    """Print the coverage and the widths of the intervals that a released mean has."""
    from dp_metrics import private_mean_loss, with_result

    if "DP_METRICS_DATA" not in os.environ:
        return
    rows, covered = [], []
    for name, (loss, data, cap) in tqdm(MEANS.items(), desc="free"):
        population = np.minimum(loss(data), cap)
        mean, rng = float(population.mean()), np.random.default_rng(0)
        for n in size.sizes:
            cells = []
            for epsilon in EPSILONS:
                found = []
                for run in range(size.samples if float(epsilon) <= 1 else size.widths):
                    x = population[rng.integers(population.size, size=n)]
                    result = with_result(private_mean_loss)(
                        x, max_loss=cap, epsilon=float(epsilon), mechanism="geometric"
                    )
                    plain = 2 * student.ppf(1 - MISS / 2, n - 1) * x.std(ddof=1) / math.sqrt(n)
                    low, high = result.population_interval(method="approximate")
                    wide = np.nan
                    if run < size.widths:
                        wide = np.subtract(*result.population_interval()[::-1]) / plain
                    found.append((low <= mean <= high, (high - low) / plain, wide))
                share, narrow, wide = np.nanmean(found, axis=0)
                if float(epsilon) <= 1:
                    covered.append(share)
                cells.append(f"{share:.3f} ({narrow:.3g}, {wide:.3g})")
            rows.append([name, n, *cells])
    title = f"Coverage of a released mean (width of approximate and sure / Student's t), {size.samples} runs"
    print_table(title, ["loss", "n", *EPSILONS], rows)
    print(f"\nLeast and mean: {min(covered):.3f}, {np.mean(covered):.3f}. Cells: {len(covered)}.", flush=True)


def _order(x: np.ndarray, rank: int) -> OrderStatistic:
    return OrderStatistic(OrderOf(np.asarray, lambda n: rank, MAX_FLOAT), x)


def limit_miss(x: np.ndarray, quantile: float, search: RankSearch, epsilon: Fraction) -> float:
    """Return the exact probability that a limit from these records misses a quantile."""
    bounds = _order(x, search.rank).output_bounds(search.mechanism, epsilon, private_n=False)
    law, grid = search.mechanism.output_distribution(bounds, epsilon), search.mechanism.grid(MAX_FLOAT)
    if search.mechanism.downward:
        last = int(grid.index_at_least(np.array([quantile]))[0]) - 1
        return float(law.cdf(grid.points(np.array([last - _CELLS])))[0])
    first = int(grid.index_above(np.array([quantile]))[0])
    return 1.0 - float(law.cdf(grid.points(np.array([first + _CELLS - 1])))[0])


def miss_over_bound(n: int, epsilon: Fraction, low: float, high: float) -> list[tuple[float, float]]:
    """Return the exact miss over its bound, and the bound, of either limit on data of two values."""
    found, half = [], epsilon / 2
    below, probabilities = binomial_law(n, 0.5)
    for search in rank_searches(n, 0.5, epsilon, miss=MISS, limit=MAX_FLOAT):
        # of all medians the worst is the one value for a lower limit, the other for an upper one
        downward = search.mechanism.downward
        ranks = search.mechanism.count_ranks(half, n=n, monotonic=True, output_range=(0.0, MAX_FLOAT))
        rank, rest = (n + 1 - search.rank, n - below) if downward else (search.rank, below)
        bound = float(probabilities @ _misses(rank, rest, largest_ratio(half / 4), ranks))
        miss = sum(
            p * limit_miss(np.repeat([low, high], [r, n - r]), high if downward else low, search, half)
            for r, p in zip(below.astype(int), probabilities, strict=True)
            if p > 1e-12
        )
        found.append((miss / bound, bound))
    return found


QUANTILES: dict[str, tuple[Callable[[str], np.ndarray], str]] = {
    "absolute error, bike": (absolute_error, "bike"),
    "absolute error, diamonds": (absolute_error, "diamonds"),
    "absolute error, abalone": (absolute_error, "abalone"),
    "log loss, adult": (log_loss, "adult"),
}


def quantiles(size: type[Size]) -> None:
    """Print the misses of intervals for a median."""
    rows = []
    for low, high in ((0.0, 1e12), (1e-5, 1.0)):
        for n in tqdm(size.sizes, desc=f"two values, {low:g} and {high:g}"):
            found = [miss_over_bound(n, Fraction(epsilon), low, high) for epsilon in EPSILONS]
            cells = [" ".join(f"{ratio:.4f}" for ratio, _ in pair) for pair in found]
            rows.append(
                [f"{low:g} and {high:g}", n, *cells, f"{max(b for pair in found for _, b in pair):.5f}"]
            )
    header = ["values", "n", *EPSILONS, "largest bound"]
    print_table("Exact miss / bound of the lower and of the upper limit of a median", header, rows)
    if "DP_METRICS_DATA" not in os.environ:
        return
    rows = []
    for name, (loss, data) in tqdm(QUANTILES.items(), desc="medians"):
        population = np.sort(loss(data))
        median = float(np.quantile(population, 0.5, method="inverted_cdf"))
        for n in size.sizes:
            cells = [
                median_misses(population, median, n, Fraction(epsilon), size.samples) for epsilon in EPSILONS
            ]
            rows.append([name, n, *cells])
    title = f"Miss of either limit of a median, and medians of limit / truth, {size.samples} samples"
    print_table(title, ["loss", "n", *EPSILONS], rows)


def median_misses(population: np.ndarray, median: float, n: int, epsilon: Fraction, samples: int) -> str:
    """Return the miss of both limits and their medians over the median of the population."""
    rng, searches = np.random.default_rng(n), rank_searches(n, 0.5, epsilon, miss=MISS, limit=MAX_FLOAT)
    misses, ends = [], []
    for _ in range(samples):
        x = population[rng.integers(population.size, size=n)]
        misses.append([limit_miss(x, median, search, epsilon / 2) for search in searches])
        ends.append([typical_limit(x, search, epsilon / 2) / median for search in searches])
    low, high = np.median(ends, axis=0)
    return f"{' '.join(f'{miss:.3f}' for miss in np.mean(misses, axis=0))} ({low:.2f} {high:.3g})"


def typical_limit(x: np.ndarray, search: RankSearch, epsilon: Fraction) -> float:
    """Return the median of a limit from these records."""
    bounds = _order(x, search.rank).output_bounds(search.mechanism, epsilon, private_n=False)
    grid = search.mechanism.grid(MAX_FLOAT)
    middle = search.mechanism.output_distribution(bounds, epsilon).median()
    number = int(grid.index_at_least(np.array([middle]))[0]) + (
        _CELLS if search.mechanism.downward else -_CELLS
    )
    return float(grid.points(np.array([max(number, 0)]))[0])


TABLES: dict[str, Callable[[type[Size]], None]] = {
    "proportions": proportions,
    "means": means,
    "free": free,
    "quantiles": quantiles,
    "ratios": coverage_of_counts.ratios,
    "labels": coverage_of_counts.labels,
    "areas": coverage_of_counts.areas,
    "bands": coverage_of_counts.bands,
    "gaps": coverage_of_counts.gaps,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=TABLES, help="print the tables of one name")
    parser.add_argument("--quick", action="store_true", help="few records, runs and shares")
    options = parser.parse_args(arguments)
    for name in [options.only] if options.only else TABLES:
        TABLES[name](Quick if options.quick else Size)


if __name__ == "__main__":
    main()
