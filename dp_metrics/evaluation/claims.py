"""What the figures say about the paper's claims, in sentences made from the measured numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_metrics.evaluation.figures import scatter_points
from dp_metrics.evaluation.plots import MECHANISM_NAMES
from dp_metrics.evaluation.population import Task
from dp_metrics.evaluation.results import ResultRow
from dp_metrics.evaluation.studies import STUDIES

__all__ = [
    "Finding",
    "Table",
    "against_inverse_sensitivity",
    "geometric_mean",
    "listed",
    "number",
    "of_asymmetry",
    "of_beta",
    "of_bounds",
    "pivot",
    "title",
]


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Finding:
    """One thing that the results show.

    Attributes
    ----------
    figure : str
        The figure it is about; empty: all of them.
    heading : str
        What it is about.
    verdict : str
        "agrees with the paper", "agrees in part", "differs from the paper", or empty where the paper says
        nothing.
    sentences : tuple of str
        The finding.
    table : Table or None
        Its numbers.
    """

    figure: str
    heading: str
    verdict: str
    sentences: tuple[str, ...]
    table: Table | None = None


def title(line: Any) -> str:
    """Return the heading of the panel that a line is about."""
    return Task(line.dataset, line.metric, line.column).title


def pivot(lines: Any, value: str, columns: str = "mechanism") -> Any:
    """Return one line per panel and epsilon, with one column per mechanism (or setting)."""
    index = ["dataset", "metric", "column", "epsilon"]
    return lines.pivot_table(index=index, columns=columns, values=value, sort=False).reset_index()


def number(value: float) -> str:
    """Write a number for people."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e5 else f"{value:.2g}"


def geometric_mean(values: Any) -> float:
    """Return the geometric mean of what is positive and finite."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(values).mean())) if values.size else math.nan


def verdict(share: float) -> str:
    if share >= 0.95:
        return "agrees with the paper"
    return "agrees in part" if share >= 0.5 else "differs from the paper"


def listed(items: Sequence[str], most: int = 8) -> str:
    """Return the first of some items as a list in words."""
    shown = "; ".join(items[:most])
    return shown + (f"; and {len(items) - most} more" if len(items) > most else "")


def against_inverse_sensitivity(figure: str, lines: Any) -> Finding | None:
    """Return how often, and by how much, the asymmetric mechanisms have less error."""
    table = pivot(lines, "mean") if len(lines) else None
    if table is None or not {"inverse_sensitivity", "paper"} <= set(table.columns):
        return None
    table = table[table["inverse_sensitivity"].notna()]
    if not len(table):
        return None
    sentences, share = [], 0.0
    for mechanism in ("paper", "above_threshold", "hazard"):
        if mechanism not in table.columns:
            continue
        ratio = table["inverse_sensitivity"] / table[mechanism]
        wins = ratio > 1
        share = float(wins.mean()) if mechanism == "paper" else share
        sentences.append(
            f"{MECHANISM_NAMES[mechanism]} has a smaller mean error than inverse sensitivity in "
            f"{int(wins.sum())} of {len(table)} cases (a case is a panel at one epsilon); the error of "
            f"inverse sensitivity is {number(geometric_mean(ratio))} times as large (geometric mean)."
        )
        losses = [
            f"{title(line)} at epsilon {line.epsilon:g} ({number(r)} times)"
            for line, r in zip(table[~wins].itertuples(), ratio[~wins], strict=True)
        ]
        if losses:
            sentences.append(f"It does not win for: {listed(losses)}.")
    epsilons = sorted(set(table["epsilon"]))
    rows = []
    for (dataset, metric, column), part in table.groupby(["dataset", "metric", "column"], sort=False):
        values = (part["inverse_sensitivity"] / part["paper"]).tolist()
        by_epsilon = dict(zip(part["epsilon"], values, strict=True))
        cells = [number(by_epsilon[e]) if e in by_epsilon else "" for e in epsilons]
        rows.append((Task(dataset, metric, column).title, *cells))
    header = ("error of ISM / error of paper preset, by epsilon", *(f"{e:g}" for e in epsilons))
    return Finding(
        figure,
        f"{STUDIES[figure].title}: asymmetric mechanism against inverse sensitivity",
        verdict(share),
        tuple(sentences),
        Table(header, tuple(rows)),
    )


def of_bounds(figure: str, lines: Any) -> Finding | None:
    """Return what going without public bounds costs."""
    sentences, shares = [], []
    for mechanism in ("paper", "above_threshold", "hazard"):
        part = lines[lines["mechanism"] == mechanism]
        if set(part["setting"]) != {"bounded", "unbounded"}:
            continue
        medians, means = pivot(part, "median", "setting"), pivot(part, "mean", "setting")
        ratio = number(geometric_mean(medians["unbounded"] / medians["bounded"]))
        ratios = means["unbounded"] / means["bounded"]
        worst = means.loc[ratios.idxmax()]
        sentences.append(
            f"{MECHANISM_NAMES[mechanism]}: without bounds the median error is {ratio} times, and the mean "
            f"error (each capped at 10 times the true value) {number(geometric_mean(ratios))} times that "
            f"with bounds (geometric means); at worst, {title(worst)} at epsilon {worst.epsilon:g}, the "
            f"capped mean is {number(float(ratios.max()))} times as large."
        )
        shares.append(float((ratios < 1.25).mean()))
    if not sentences:
        return None
    heading = "Variance" if figure == "unbounded" else "MSE and MAE"
    return Finding(figure, f"{heading} without public bounds", verdict(shares[0]), tuple(sentences))


def of_beta(lines: Any) -> Finding | None:
    """Return what the ratio of consecutive candidates does to the error."""
    if not len(lines):
        return None
    table = pivot(lines, "mean", "setting")
    settings = [name for name in table.columns if name.startswith("beta=")]
    if not {"beta=1.005", "beta=1.01"} <= set(settings):
        return None
    usable = table[table["epsilon"] >= 0.5]
    usable = usable if len(usable) else table
    relative = {name: geometric_mean(usable[name] / usable["beta=1.005"]) for name in settings}
    best = min(relative, key=lambda name: relative[name])
    spread = max(relative.values()) / min(relative.values())
    rows = tuple((name.partition("=")[2], number(value)) for name, value in relative.items())
    return Finding(
        "beta",
        "Choice of beta",
        verdict(
            1.0 if spread < 1.5 and relative["beta=1.01"] < 1 else 0.6 if relative["beta=1.01"] < 1 else 0.0
        ),
        (
            f"beta = 1.01 instead of 1.005 multiplies the error by {number(relative['beta=1.01'])} "
            "(geometric mean over panels and epsilons from 0.5).",
            f"Over all betas tried the geometric mean differs by a factor of {number(spread)}, the best "
            f"being {best.partition('=')[2]}: a walk with fewer candidates halts early less often, until "
            "the gaps between candidates show.",
        ),
        Table(("beta", "error / error at 1.005"), rows),
    )


def of_asymmetry(rows: Sequence[ResultRow]) -> Finding | None:
    """Return how the advantage grows with the asymmetry."""
    errors: dict[int, dict[str, ResultRow]] = {}
    for row in rows:
        errors.setdefault(row.repeat, {})[row.mechanism] = row
    sentences, share = [], 0.0
    for mechanism in ("paper", "hazard"):
        pairs = [
            (found["inverse_sensitivity"], found[mechanism])
            for found in errors.values()
            if "inverse_sensitivity" in found and mechanism in found
        ]
        points = [scatter_points(pairs, kind) for kind in ("uniform", "heavy-tailed")]
        x, y = (np.concatenate(part) for part in zip(*points, strict=True))
        if x.size < 10:
            continue
        ranks = np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1]
        share = float(ranks) + 0.35 if mechanism == "paper" else share
        parts = [
            f"{number(float(np.median(y[(x >= low) & (x < high)])))} for asymmetries from {low:g} to {high:g}"
            for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.45), (0.45, 0.5001))
            if ((x >= low) & (x < high)).sum() >= 3
        ]
        sentences.append(
            f"Error of inverse sensitivity / error of {MECHANISM_NAMES[mechanism]}, medians: "
            f"{', '.join(parts)}; the rank correlation with the asymmetry is {ranks:.2f} over {x.size} "
            "simulations (exact errors)."
        )
    if not sentences:
        return None
    return Finding("asymmetry", "What asymmetry is worth", verdict(share), tuple(sentences))
