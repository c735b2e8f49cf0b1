"""Print how far areas under ROC curves by group are off: from a table of scores, and by hazard selection.

Run `python benchmarks/areas_by_group.py [--draws 40]`.

A frame can release them from one table, groups by classes by bins, with noise of rate epsilon / 2 in each
count; or one by one, as `private_roc_auc_score` does, with 0.4 epsilon each, since a replaced record may
leave one group and enter another and a fifth of epsilon is for all records. Mean absolute errors, and in
brackets the bias, for a group of n records of which m are positive, beside others of its size; scores are
binormal, with the area in the first column, or exponential. The last column is the standard
deviation of the exact area over samples.
"""

import argparse
import warnings
from fractions import Fraction

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from dp_metrics import private_roc_auc_score
from dp_metrics.mechanisms.geometric import expected_noise
from dp_metrics.metrics.scores.area_limits import hanley_mcneil
from dp_metrics.metrics.scores.curve_formulas import ScoreCounts, area_under_roc
from dp_metrics.metrics.scores.table import ScoreBins
from dp_metrics.release.parts.count_table import plausible_counts
from dp_metrics.release.parts.nested_table import columns_for

EPSILONS = (0.1, 0.3, 1.0, 4.0)
SIZES = (10, 33, 100, 300, 1000, 3000, 10_000)
MOST = 60_000  # records of a group


def scores_of(area: float, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return binormal scores with this area; exponential ones for 0."""
    if area == 0:
        return 1 - np.exp(-rng.exponential(np.where(y == 1, 2.0, 0.4)))
    apart = 2**0.5 * norm.ppf(area)
    return norm.cdf(0.7 * (rng.normal(size=y.size) + apart * (y - 0.5)))


def of_table(y: np.ndarray, scores: np.ndarray, epsilon: float, rng: np.random.Generator) -> float:
    columns = columns_for(y.size, Fraction(epsilon), by_group=True)
    edges, success = ScoreBins.of(None).merged(columns), -np.expm1(-epsilon / 2)
    table = np.array([np.histogram(scores[y == kind], edges)[0] for kind in (0, 1)])
    noisy = table + rng.geometric(success, table.shape) - rng.geometric(success, table.shape)
    cells = ((2 * columns, Fraction(1)),)
    counts = plausible_counts(noisy.ravel().tolist(), cells, None).reshape(2, columns)
    return area_under_roc(ScoreCounts(edges, *counts, noisy.astype(float), expected_noise(epsilon / 2)))


def by_hazard(y: np.ndarray, scores: np.ndarray, epsilon: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(private_roc_auc_score(y, scores, epsilon=0.4 * epsilon, neighboring="add_or_remove_one"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=40)
    draws = parser.parse_args().draws
    print("| area | positive | records | epsilon | table | hazard | sampling |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    cells = [
        (a, m, p, e) for a in (0.75, 0.87, 0.97, 0.0) for m in SIZES for p in (0.05, 0.3) for e in EPSILONS
    ]
    for area, m, share, epsilon in tqdm(cells, disable=None):
        n, errors = round(m / share), []
        if n > MOST:
            continue
        for _ in range(draws):
            y = (np.arange(n) < m).astype(int)
            scores = scores_of(area, y, rng)
            exact = roc_auc_score(y, scores)
            errors.append(
                (of_table(y, scores, epsilon, rng) - exact, by_hazard(y, scores, epsilon) - exact, exact)
            )
        table, hazard, exact = np.array(errors).T
        told = [f"{abs(error).mean():.3f} ({error.mean():+.3f})" for error in (table, hazard)]
        sampling = float(np.sqrt(hanley_mcneil(np.array(exact.mean()), m, n - m)))
        print(
            f"| {area or 'exp.'} | {m} | {n} | {epsilon} | {told[0]} | {told[1]} | {sampling:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
