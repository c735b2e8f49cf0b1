"""How much accuracy a summary loses at an epsilon that its capacity does not serve.

First the ranks that a release asks for, and the smallest epsilon that the default capacity serves. Then
it prints the expected absolute error of one release relative to the true value, each error counted as at most
ten times the value, for data made here: normal errors and errors with heavy tails (Student's t with 3 degrees
of freedom), their squares for the mean of losses. The laws of the releases are exact; nothing is sampled but
the data. Run with `python benchmarks/capacity.py`; it takes seconds.
"""

import argparse
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dp_metrics import Hazard
from dp_metrics.inputs.epsilon import exact_epsilon
from dp_metrics.mechanisms import Adaptive
from dp_metrics.metrics import METRICS
from dp_metrics.release.parts.variance import Variance
from dp_metrics.streaming.summaries import CAPACITY

EPSILONS = (0.1, 0.05, 0.02, 0.01)
AT_MOST = 10.0  # times the value, for one error
COARSE = 0.3  # a public resolution for a release that has too few ranks
ENOUGH = 1 << 16  # ranks: more than any of these epsilons asks for


def errors(n, seed=0):
    rng = np.random.default_rng(seed)
    return {"normal": rng.normal(size=n), "heavy tails": rng.standard_t(3, size=n)}


def ranks(epsilon, n, metric):
    """Return how many ranks the default asks a summary of more records than its capacity for."""
    if metric == "variance":  # of which such a summary releases in one stage
        return Adaptive().count_ranks(epsilon, n=n, monotonic=False, output_range=(0.0, 1.0))
    (part,) = METRICS["private_mean_loss"].usual.parts
    return Adaptive().capacity(part, epsilon, n)


def print_served():
    """Print the smallest epsilon, in steps of 0.001, that capacities serve."""
    print("Smallest epsilon that a capacity serves\n")
    for capacity in (CAPACITY, 4096, 8192):
        for n in (10**6, 10**9, None):
            served = {}
            for metric in ("losses", "variance"):
                steps = range(1, 1000)
                served[metric] = next(
                    k / 1000 for k in steps if ranks(Fraction(k, 1000), n, metric) <= capacity
                )
            records = "private" if n is None else f"{n:,}"
            print(f"capacity {capacity:,}, n {records:>13}: {served}")


def as_summary(query, capacity):
    """Return what a summary of this capacity knows."""
    if isinstance(query, Variance):
        return replace(query.aggregate(capacity), values=None)
    return query.aggregate(capacity, forget=True)


def relative_error(query, capacity, epsilon, mechanism):
    """Return the expected error of a release from a summary of this capacity, relative to the value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the capacity is small is the point
        summary = query if capacity is None else as_summary(query, capacity)
        draw = mechanism.prepare(summary, exact_epsilon(epsilon), private_n=False)
    value = draw.output_bounds.value
    return draw.law(None).mean_absolute_error(value, cap=AT_MOST * value) / value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=1_000_000, help="number of records")
    n = parser.parse_args().n
    cases = {
        f"capacity {CAPACITY:,}": (CAPACITY, Adaptive()),
        "large enough": (ENOUGH, Adaptive()),
        "records in memory": (None, Adaptive()),
        f"{CAPACITY:,}, resolution {COARSE}": (CAPACITY, Hazard(resolution=COARSE)),
    }
    print_served()
    print(f"\nn = {n:,}; expected |error| / value")
    print(f"{'':34}  {'epsilon':>7}", *(f"{name:>24}" for name in cases))
    for metric, row in (
        ("mean of squared errors", METRICS["private_mean_loss"]),
        ("variance", METRICS["private_variance"]),
    ):
        for tails, error in errors(n).items():
            data = error if metric == "variance" else error**2
            (query,) = row.read((data,), {}, private_n=False)[1].parts
            for epsilon in EPSILONS:
                found = (relative_error(query, capacity, epsilon, rule) for capacity, rule in cases.values())
                name = f"{metric}, {tails}"
                print(f"{name:34}  {epsilon:7}", *(f"{error:24.2g}" for error in found), flush=True)


if __name__ == "__main__":
    main()
