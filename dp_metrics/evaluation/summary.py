"""From rows of results to the numbers that figures, tables and findings show."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dp_metrics.evaluation.experiment import ERROR_CAP
from dp_metrics.evaluation.extras import import_extra
from dp_metrics.evaluation.results import ResultRow

__all__ = ["CONFIDENCE", "summarise"]

CONFIDENCE = 0.9
"""Confidence of the interval around a mean error."""

_NORMAL_QUANTILE = 1.6448536269514722  # of (1 + CONFIDENCE) / 2
_KEYS = ["figure", "dataset", "column", "metric", "setting", "mechanism", "epsilon"]
_NAMES = [
    *_KEYS, "repeat", "n", "bounded", "true_value", "release", "error", "expected_error", "overshoot",
    "sampling_error",
]  # fmt: skip


def summarise(rows: Sequence[ResultRow]) -> Any:
    """Average the repeats.

    Parameters
    ----------
    rows : sequence of ResultRow
        Of any figures but the simulated one.

    Returns
    -------
    pandas.DataFrame
        One line for each curve of each panel and epsilon. `repeats`, `n` and `bounded`; then, in units of
        the mean true value: `mean`, and `low` and `high`, the ends of its 0.9 confidence interval (errors of
        releases without bounds are capped at 10 times the true value); `raw_mean`, not capped; `median`
        and `q95` of the error; `bias`, the mean of release minus truth, capped likewise; `exact`, the mean of
        the exact expected errors (nan: none); `sampling`, the mean sampling standard error; and `stopped`,
        the share of releases below a tenth of the true value; `overshot`, of those above ten times it, and
        `overshoot_chance`, the mean exact probability of that.
    """
    pandas = import_extra("pandas")
    frame = pandas.DataFrame([[getattr(row, name) for name in _NAMES] for row in rows], columns=_NAMES)
    numeric = [name for name in _NAMES if name == "epsilon" or name not in _KEYS]
    frame[numeric] = frame[numeric].astype(float)  # None becomes nan, and no rows are numbers too
    cap = np.where(frame["bounded"] == 1, np.inf, ERROR_CAP * frame["true_value"])
    frame["capped"] = np.minimum(frame["error"], cap)
    frame["signed"] = np.clip(frame["release"] - frame["true_value"], -cap, cap)
    frame["stopped"] = (frame["release"] < 0.1 * frame["true_value"]).astype(float)
    frame["overshot"] = (frame["release"] > ERROR_CAP * frame["true_value"]).astype(float)
    groups = frame.groupby(_KEYS, sort=False)
    truth = groups["true_value"].mean()
    scale = truth.where(truth > 0, np.nan)
    count = groups.size()
    mean = groups["capped"].mean()
    half = _NORMAL_QUANTILE * groups["capped"].std(ddof=1).fillna(0.0) / np.sqrt(count)
    summary = pandas.DataFrame(
        {
            "repeats": count,
            "n": groups["n"].max().astype(int),
            "bounded": groups["bounded"].max().astype(int),
            "mean": mean / scale,
            "low": (mean - half) / scale,
            "high": (mean + half) / scale,
            "raw_mean": groups["error"].mean() / scale,
            "median": groups["error"].median() / scale,
            "q95": groups["error"].quantile(0.95) / scale,
            "bias": groups["signed"].mean() / scale,
            "exact": groups["expected_error"].mean() / scale,
            "sampling": groups["sampling_error"].mean() / scale,
            "stopped": groups["stopped"].mean(),
            "overshot": groups["overshot"].mean(),
            "overshoot_chance": groups["overshoot"].mean(),
        }
    )
    return summary.reset_index()
