"""`dp-metrics reproduce --report`: the results as tables, all on one HTML page that needs nothing else."""

import base64
import html
import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.evaluation.compared import RIVALS
from dp_metrics.evaluation.datasets import get_dataset
from dp_metrics.evaluation.engine import EXACT_REPEATS, SAMPLE_SIZE
from dp_metrics.evaluation.figures import draw_figure, panels_of, scatter_points
from dp_metrics.evaluation.population import Task
from dp_metrics.evaluation.results_file import ERROR_CAP, ResultRow, ResultsError, ResultsFile, summarise
from dp_metrics.evaluation.studies import STUDIES, Study

_COMPARED = ("variance", "cross-entropy", "mse", "mae")
_DEFAULT = "adaptive"
_RIVALS = ("hazard", "above_threshold", "paper", "inverse_sensitivity", "laplace", "clipped_mean")
_SEARCHES = ("paper", "above_threshold", "hazard", _DEFAULT)
_PANEL = ["dataset", "metric", "column"]
_ASYMMETRIES = {
    "0 to 0.1": (0.0, 0.1),
    "0.1 to 0.3": (0.1, 0.3),
    "0.3 to 0.45": (0.3, 0.45),
    "above": (0.45, 1),
}
_STYLE = """
body { margin: 0 auto; max-width: 72rem; padding: 0 1rem 3rem; font: 1rem/1.5 system-ui, Arial, sans-serif; }
h1, h2, h3 { line-height: 1.2; margin: 2rem 0 0.4rem; }
h2 { border-top: 1px solid #d8d8d8; padding-top: 1.2rem; }
p { max-width: 46rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
img { display: block; width: 100%; min-width: 42rem; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.5rem; border-bottom: 1px solid #d8d8d8; text-align: right; }
tbody th { text-align: left; font-weight: normal; min-width: 7rem; }
.note { background: #f5f6f8; border-left: 4px solid #00558c; padding: 0.5rem 0.9rem; }
nav a, summary { display: inline-block; margin: 0 0.9rem 0.3rem 0; color: #00558c; }
"""


def _number(value: float) -> str:
    return f"{value:,.0f}" if 100 <= abs(value) < 1e5 else f"{value:.2g}"


def _geometric_mean(values: Any) -> float:
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(values).mean())) if values.size else math.nan


def _frame(rows: Any, index: str) -> Any:
    return import_extra("pandas").DataFrame.from_dict(rows, orient="index").rename_axis(columns=index)


def _pivot(lines: Any, value: str, columns: str = "mechanism") -> Any:
    """Return one line per panel and epsilon, with a column for each mechanism (or setting)."""
    return lines.pivot_table(index=[*_PANEL, "epsilon"], columns=columns, values=value, sort=False)


def _by_panel(values: Any) -> Any:
    """Return a table of panels and epsilons, with the geometric means of its columns."""
    wide = values.dropna().unstack("epsilon", sort=False)
    wide = wide[sorted(wide.columns)]
    wide.index = [Task(*panel).title for panel in wide.index]
    wide.loc["geometric mean"] = wide.agg(_geometric_mean)
    return wide


def tables_of(study: Study, rows: Sequence[ResultRow]) -> dict[str, Any]:
    """Return the tables of one study, for which there are rows: DataFrames by title."""
    rows = [row for row in rows if row.figure == study.name]
    if study.kind == "illustration" or not rows:
        return {}
    if study.kind == "simulated":
        title = "Expected error of inverse sensitivity / that of a mechanism, medians by asymmetry"
        return {title: _asymmetries(rows)}
    lines = summarise(rows)
    if "unbounded" in set(lines["setting"]):
        return {"With and without bounds": _without_bounds(lines)}
    wide = _pivot(lines, "mean", "setting" if study.name == "beta" else "mechanism")
    if "beta=1.005" in wide.columns:
        ratios = wide.div(wide["beta=1.005"], axis=0).groupby(level="epsilon").agg(_geometric_mean)
        return {"Mean error / mean error with beta = 1.005, geometric means over panels": ratios.T}
    if {"inverse_sensitivity", "paper"} <= set(wide.columns):
        title = "Mean error of inverse sensitivity / mean error of the paper preset"
        return {title: _by_panel(wide["inverse_sensitivity"] / wide["paper"])}
    return {}


def overall_tables(rows: Sequence[ResultRow]) -> dict[str, Any]:
    """Return the tables over all panels of variance, cross-entropy, MSE and MAE: DataFrames by title."""
    lines = summarise([row for row in rows if row.figure in _COMPARED])
    if _DEFAULT not in set(lines["mechanism"]):
        return {}
    wide = _pivot(lines, "mean")
    ratios = wide[[name for name in _RIVALS if name in wide.columns]].div(wide[_DEFAULT], axis=0)
    ratios = ratios.rename(columns={name: rival.title for name, rival in RIVALS.items()})
    groups = ratios.groupby(level="epsilon")
    lines = lines.set_index([*_PANEL, "epsilon"])
    own = lines[(lines["mechanism"] == _DEFAULT) & (lines["sampling"] > 0)]
    smallest = lines.index.get_level_values("epsilon").min()
    stopped = _pivot(lines[lines.index.get_level_values("epsilon") == smallest].reset_index(), "stopped")
    stopped = stopped[[name for name in _SEARCHES if name in stopped.columns]]
    stopped.index = [Task(*panel[:3]).title for panel in stopped.index]
    return {
        f"Mean error / mean error of {_DEFAULT}, geometric means over panels": groups.agg(_geometric_mean).T,
        "Share of panels in which this is above 1": groups.agg(lambda part: (part.dropna() > 1).mean()).T,
        f"Mean error of {_DEFAULT} / sampling standard error": _by_panel(own["mean"] / own["sampling"]),
        f"Share of releases below a tenth of the true value, at epsilon {smallest:g}": stopped,
    }


def _without_bounds(lines: Any) -> Any:
    table = {}
    for name in _SEARCHES:
        part = lines[lines["mechanism"] == name]
        if set(part["setting"]) == {"bounded", "unbounded"}:
            median, mean = (_pivot(part, value, "setting") for value in ("median", "mean"))
            free, ratio = part[part["setting"] == "unbounded"], mean["unbounded"] / mean["bounded"]
            table[RIVALS[name].title] = {
                "medians, without / with": _geometric_mean(median["unbounded"] / median["bounded"]),
                f"means, capped at {ERROR_CAP:g} x truth, without / with": _geometric_mean(ratio),
                "the largest of these": ratio.max(),
                "without: releases above 10 x truth": (free["overshot"] * free["repeats"]).sum(),
                "of": free["repeats"].sum(),
                "their exact chance": free["overshoot_chance"].mean(),
                "largest mean / truth, not capped": free["raw_mean"].max(),
            }
    return _frame(table, "mechanism")


def _asymmetries(rows: Sequence[ResultRow]) -> Any:
    table = {}
    for name in ("paper", "hazard"):
        x, y = scatter_points(rows, name)
        if len(x) > 1:
            inside = {label: y[(x >= low) & (x < high)] for label, (low, high) in _ASYMMETRIES.items()}
            medians = {label: np.median(part) if len(part) else math.nan for label, part in inside.items()}
            ranks = np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1]
            table[RIVALS[name].title] = medians | {"rank correlation": ranks, "simulations": len(x)}
    return _frame(table, "mechanism")


def _html(frame: Any, **options: Any) -> str:
    text = frame.to_html(float_format=_number, na_rep="", border=0, **options)
    return f'<div class="scroll">{text}</div>'


def _picture(study: Study, rows: Sequence[ResultRow]) -> str:
    stream = io.BytesIO()
    draw_figure(study, panels_of(study, rows), stream)
    data = base64.b64encode(stream.getvalue()).decode()
    image = f'<img alt="{html.escape(study.title)}" src="data:image/svg+xml;base64,{data}">'
    return f'<div class="scroll">{image}</div>'


def _numbers(study: Study, rows: Sequence[ResultRow]) -> str:
    lines = summarise([row for row in rows if row.figure == study.name])
    panels = [Task(*panel).title for panel in lines[_PANEL].itertuples(index=False)]
    names = [
        "mechanism",
        "setting",
        "epsilon",
        "repeats",
        "mean",
        "low",
        "high",
        "exact",
        "median",
        "q95",
        "bias",
    ]
    return (
        "<details><summary>All numbers of this figure</summary><p>Errors divided by the true value. Means "
        f"and bias of releases without bounds: errors capped at {ERROR_CAP:g} times the true value. Low to "
        "high: 0.9 confidence interval of the mean. Exact: the expected error from the output law, in the "
        f"first {EXACT_REPEATS} repeats. q95: 0.95 quantile.</p>"
        f"{_html(lines[names].set_axis(panels))}</details>"
    )


def _settings(rows: Sequence[ResultRow]) -> str:
    drawn = [row for row in rows if row.dataset != "simulated"]
    settings = {
        "epsilons": {f"{row.epsilon:g}" for row in drawn},
        "repeats": {str(max((row.repeat + 1 for row in drawn), default=0))},
        "records per repeat": {f"{SAMPLE_SIZE} without replacement (all of them if there are fewer)"},
        "seeds of splits": {str(row.split_seed) for row in rows if row.split_seed >= 0},
        "versions": {row.versions.replace(";", "; ") for row in rows},
        "git revision": {row.revision for row in rows},
    }
    data = [get_dataset(name) for name in dict.fromkeys(row.dataset for row in drawn)]
    about = {d.name: {"rows": f"{d.rows:,}", "source": d.source, "licence": d.licence} for d in data}
    values = {name: {"value": ", ".join(sorted(value))} for name, value in settings.items()}
    with import_extra("pandas").option_context("display.max_colwidth", None):
        return _html(_frame(values, "setting")) + _html(_frame(about, "data set"))


def report_page(rows: Sequence[ResultRow]) -> str:
    """Return the HTML page about some results."""
    parts = [
        "<h1>Private metrics: the experiments of the paper</h1>",
        "<p>D. Durfee, “Instance-Specific Asymmetric Sensitivity in Differential Privacy”, "
        '<a href="https://arxiv.org/abs/2311.14681">arXiv 2311.14681</a>, with the mechanisms of '
        "dp_metrics.</p>",
        '<p class="note">A study on public data. Its releases are seeded, so that they can be repeated, and '
        "true values stand beside them: nothing on this page is private, or has to be.</p>",
    ]
    shown = [study for study in STUDIES.values() if panels_of(study, rows)]
    links = "".join(f'<a href="#{study.name}">{study.name}</a>' for study in shown)
    parts.append(f'<nav>{links}<a href="#overall">all panels</a><a href="#settings">settings</a></nav>')
    for study in shown:
        parts.append(f'<h2 id="{study.name}">{html.escape(study.title)}</h2>{_picture(study, rows)}')
        parts += [f"<h3>{title}</h3>{_html(table)}" for title, table in tables_of(study, rows).items()]
        if study.kind == "drawn":
            parts.append(_numbers(study, rows))
    parts.append('<h2 id="overall">Over all panels of variance, cross-entropy, MSE and MAE</h2>')
    parts += [f"<h3>{title}</h3>{_html(table)}" for title, table in overall_tables(rows).items()]
    parts.append(f'<h2 id="settings">Settings</h2>{_settings(rows)}')
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Private metrics: the paper's experiments</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def write_report(results: Path) -> Path:
    """Write ``report.html`` beside a file of results, or into their folder; return its path."""
    stored = ResultsFile(results)
    for problem in stored.problems:
        print(f"warning: {problem}", file=sys.stderr)
    if not stored.rows:
        raise ResultsError(f"there are no results in {stored.path}; make some with: dp-metrics reproduce")
    path = stored.path.with_name("report.html")
    path.write_text(report_page(stored.rows), encoding="utf-8")
    return path
