"""Print the table of the page on groups: the gap that is released where there is none.

Run `python docs/gap_table.py > docs/gap_table.inc`. A quarter of each group is selected, so that the exact
gap of selection rates is 0. A cell is the mean of the largest difference between groups over simulated
releases, which is their mean absolute error too.
"""

import warnings

import numpy as np
from error_table import print_table

from dp_metrics import PrivateMetricFrame, private_recall_score

GROUPS = {
    "two equal": (0.5, 0.5),
    "two, the smaller 33 %": (0.668, 0.332),
    "five, the smallest 0.8 %": (0.86, 0.096, 0.024, 0.012, 0.008),
}
"""Shares of the groups, in thousandths that 4 divides, by the name of a row."""

RECORDS = (1_000, 10_000)
SETTINGS = [(0.3, "private"), (1.0, "private"), (3.0, "private"), (1.0, "public")]


def mean_gap(
    shares: tuple[float, ...], n: int, epsilon: float, membership: str, releases: int = 400
) -> float:
    """Return the mean released gap of selection rates that are all 1/4."""
    sizes = [round(share * n) for share in shares]
    group = np.repeat(np.arange(len(sizes)), sizes)
    selected = np.concatenate([(np.arange(size) < size // 4) * 1 for size in sizes])
    gaps = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeds, for people who do not exist
        for seed in range(releases):
            frame = PrivateMetricFrame(
                metrics=private_recall_score,
                y_true=np.ones(n, dtype=int),
                y_pred=selected,
                sensitive_features=group,
                group_labels=list(range(len(sizes))),
                epsilon=epsilon,
                membership=membership,
                random_state=seed,
            )
            gaps.append(frame.difference())
    return float(np.mean(gaps))


def main() -> None:
    """Print the table in reStructuredText."""
    names = [f"epsilon {epsilon:g}" + ", public" * (kind == "public") for epsilon, kind in SETTINGS]
    rows = [["groups", "n", *names]]
    for name, shares in GROUPS.items():
        for n in RECORDS:
            rows.append([name, f"{n:,}", *(f"{mean_gap(shares, n, *setting):.2g}" for setting in SETTINGS)])
    print_table(rows)


if __name__ == "__main__":
    main()
