"""What the results show: the paper's claims, and what the paper does not say."""

import math
from collections.abc import Sequence
from typing import Any

from dp_metrics.evaluation.claims import (
    Finding,
    Table,
    against_inverse_sensitivity,
    geometric_mean,
    listed,
    number,
    of_asymmetry,
    of_beta,
    of_bounds,
    pivot,
    title,
)
from dp_metrics.evaluation.plots import MECHANISM_NAMES
from dp_metrics.evaluation.population import Task
from dp_metrics.evaluation.results import ResultRow
from dp_metrics.evaluation.summary import summarise

__all__ = ["find"]

_COMPARED = ("variance", "cross-entropy", "mse", "mae")
_RIVALS = ("above_threshold", "paper", "inverse_sensitivity", "clipped_mean", "laplace")
_SEARCHES = ("paper", "above_threshold", "hazard")


def find(rows: Sequence[ResultRow]) -> list[Finding]:
    """Return what the rows show; figures without rows are passed over.

    Parameters
    ----------
    rows : sequence of ResultRow
        Results of a run, complete or not.
    """
    summary = summarise([row for row in rows if row.figure != "asymmetry"])
    found: list[Finding | None] = [
        *(against_inverse_sensitivity(name, _of(summary, name)) for name in _COMPARED),
        *(of_bounds(name, _of(summary, name)) for name in ("unbounded", "unbounded-losses")),
        of_beta(_of(summary, "beta")),
        of_asymmetry([row for row in rows if row.figure == "asymmetry"]),
        _early_stops(summary[summary["figure"].isin(_COMPARED)]),
        _overshoots(summary[summary["bounded"] == 0]),
        _hazard_gain(summary[summary["figure"].isin(_COMPARED)]),
        _sampling(summary[summary["figure"].isin(_COMPARED)]),
    ]
    return [finding for finding in found if finding is not None]


def _of(summary: Any, figure: str) -> Any:
    return summary[summary["figure"] == figure]


def _early_stops(lines: Any) -> Finding | None:
    epsilon = lines["epsilon"].min() if len(lines) else math.nan
    lines = lines[(lines["epsilon"] == epsilon) & lines["mechanism"].isin(_SEARCHES)]
    if "paper" not in set(lines["mechanism"]):
        return None
    table = pivot(lines, "stopped")
    present = [name for name in _SEARCHES if name in table.columns]
    rows = tuple(
        (title(line), *(f"{100 * getattr(line, name):.0f} %" for name in present))
        for line in table.itertuples()
    )

    def percent(values: Any) -> str:
        return f"{100 * values.min():.0f} to {100 * values.max():.0f} %"

    variances = table[table["metric"] == "variance"]["paper"]
    of_variance = f" ({percent(variances)} for variances)" if len(variances) else ""
    means = [f"{100 * table[name].mean():.0f} % for {MECHANISM_NAMES[name]}" for name in present]
    return Finding(
        "",
        f"100 ranks are too few at epsilon {epsilon:g}",
        "differs from the paper",
        (
            f"With its fixed c = 100, the paper preset releases less than a tenth of the true value in "
            f"{percent(table['paper'])} of the runs{of_variance}: beyond 100 ranks it knows no bound, and "
            f"halts near 0. On average over the panels: {', '.join(means)}.",
        ),
        Table(("releases below a tenth of the truth", *(MECHANISM_NAMES[n] for n in present)), rows),
    )


def _overshoots(lines: Any) -> Finding | None:
    lines = lines[lines["setting"] == "unbounded"]
    rows, chances = [], {}
    for metrics, kind in ((("mse", "mae"), "MSE, MAE"), (("variance",), "variance")):
        for mechanism in _SEARCHES:
            part = lines[(lines["mechanism"] == mechanism) & lines["metric"].isin(metrics)]
            if not len(part):
                continue
            count = round(float((part["overshot"] * part["repeats"]).sum()))
            chances[kind, mechanism] = float(part["overshoot_chance"].mean())
            rows.append(
                (
                    f"{kind}: {MECHANISM_NAMES[mechanism]}",
                    f"{count} of {int(part['repeats'].sum()):,}",
                    f"{chances[kind, mechanism]:.1e}",
                    number(float(part["raw_mean"].max())),
                    number(float(part["mean"].max())),
                    number(float(part["median"].max())),
                )
            )
    losses = {name: chances.get(("MSE, MAE", name), math.nan) for name in _SEARCHES}
    if math.isnan(losses["paper"]):
        return None
    others = [
        f"{losses[name]:.1e} for {MECHANISM_NAMES[name]}"
        for name in _SEARCHES[1:]
        if not math.isnan(losses[name])
    ]
    return Finding(
        "unbounded-losses",
        "Equal shares of the budget overshoot on unbounded data",
        "differs from the paper",
        (
            "Without bounds the paper preset, which gives half of epsilon each to threshold and scores of a "
            "monotonic metric, releases more than ten times the true value with a chance of "
            f"{losses['paper']:.1e} on average over panels and epsilons (from the exact laws); "
            f"{', '.join(others)}.",
            "The candidates grow exponentially, so one such release rules the plain mean error, which then "
            "says nothing: the figures show errors capped at 10 times the true value. For variances, which "
            "are not monotonic, the preset's threshold has twice the share of a score, and overshoots are "
            "rarer.",
        ),
        Table(
            (
                "error / truth, without bounds", "above 10 x truth", "its exact chance", "largest plain mean",
                "largest capped mean", "largest median",
            ),
            tuple(rows),
        ),
    )  # fmt: skip


def _hazard_gain(lines: Any) -> Finding | None:
    table = pivot(lines, "mean") if len(lines) else None
    if table is None or "hazard" not in table.columns:
        return None
    rivals = [name for name in _RIVALS if name in table.columns]
    epsilons = sorted(set(table["epsilon"]))
    rows = tuple(
        (
            f"{epsilon:g}",
            *(
                number(geometric_mean((table[name] / table["hazard"])[table["epsilon"] == epsilon]))
                for name in rivals
            ),
        )
        for epsilon in epsilons
    )
    beaten: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for line in table.to_dict("records"):
        best = min((name for name in rivals if line[name] > 0), key=lambda name: line[name], default="")
        if best and line[best] < 0.9 * line["hazard"]:
            panel = Task(line["dataset"], line["metric"], line["column"]).title
            beaten.setdefault((panel, best), []).append((line["epsilon"], line["hazard"] / line[best]))
    cases = sum(map(len, beaten.values()))
    sentences = [
        f"Hazard has the smallest mean error, or one within 10 % of it, in {len(table) - cases} of "
        f"{len(table)} cases."
    ]
    if beaten:
        names = [
            f"{panel} at epsilon {', '.join(f'{e:g}' for e, _ in found)}: {MECHANISM_NAMES[best]} is up to "
            f"{number(max(ratio for _, ratio in found))} times better"
            for (panel, best), found in beaten.items()
        ]
        sentences.append(f"Where it does not: {listed(names, 12)}.")
    overall = ", ".join(
        f"{number(geometric_mean(table[name] / table['hazard']))} ({MECHANISM_NAMES[name]})"
        for name in rivals
    )
    sentences.append(f"Error of a rival / error of hazard, geometric mean over all cases: {overall}.")
    return Finding(
        "", "What hazard gains, and where it does not", "", tuple(sentences),
        Table(("epsilon (error / error of hazard)", *(MECHANISM_NAMES[name] for name in rivals)), rows),
    )  # fmt: skip


def _sampling(lines: Any) -> Finding | None:
    lines = lines[(lines["mechanism"] == "hazard") & (lines["sampling"] > 0)]
    if not len(lines):
        return None
    lines = lines.assign(ratio=lines["mean"] / lines["sampling"])
    epsilons = sorted(set(lines["epsilon"]))
    rows = []
    for (dataset, metric, column), part in lines.groupby(["dataset", "metric", "column"], sort=False):
        by_epsilon = dict(zip(part["epsilon"], part["ratio"], strict=True))
        cells = [number(by_epsilon[e]) if e in by_epsilon else "" for e in epsilons]
        rows.append((Task(dataset, metric, column).title, *cells))
    shown = [e for e in epsilons if e in (0.1, 0.5, 1.0, 2.0, 4.0)] or epsilons
    counts = []
    for epsilon in shown:
        values = lines["ratio"][lines["epsilon"] == epsilon]
        counts.append(f"{int((values < 1).sum())} of {len(values)} tasks at epsilon {epsilon:g}")
    return Finding(
        "",
        "Does privacy cost anything? Its error against the error of sampling",
        "",
        (
            "A metric of 1,000 records has a standard error anyway, because they are a sample. The mean "
            f"error that privacy adds with hazard is below it in {', '.join(counts)}.",
        ),
        Table(("privacy error / sampling error, by epsilon", *(f"{e:g}" for e in epsilons)), tuple(rows)),
    )
