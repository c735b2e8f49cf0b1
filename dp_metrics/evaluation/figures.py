"""The figures of the study; everything but the illustrations is drawn from rows of results alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics.evaluation.extras import import_extra
from dp_metrics.evaluation.illustrations import illustration_panels
from dp_metrics.evaluation.plots import MECHANISM_NAMES, MECHANISM_STYLES
from dp_metrics.evaluation.population import Task
from dp_metrics.evaluation.results import ResultRow
from dp_metrics.evaluation.studies import BETAS, CURVES, STUDIES, Study
from dp_metrics.evaluation.summary import summarise

__all__ = ["Panel", "draw_figures", "panels_of", "save_legend", "save_panel", "scatter_points"]

# Shades of the blue of the paper preset, dark to light, each with a marker of its own.
_BETA_SHADES = ("#08306B", "#08519C", "#2171B5", "#56B4E9", "#9ECAE1", "#C2B5E0")
_BETA_MARKERS = ("o", "s", "D", "^", "v", "X")
_FONT = {"font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "legend.fontsize": 8, "svg.hashsalt": "dp"}


@dataclass(frozen=True)
class Panel:
    """One picture: its title, and a function that draws it on axes."""

    title: str
    draw: Callable[[Any], None]


def panels_of(study: Study, rows: Sequence[ResultRow]) -> list[Panel]:
    """Return the panels of a study for which there are rows.

    Parameters
    ----------
    study : Study
        What is shown; the order of its tasks is that of the panels.
    rows : sequence of ResultRow
        Results of any studies.
    """
    rows = [row for row in rows if row.figure == study.name]
    if study.kind == "illustration":
        return [Panel(title, draw) for title, draw in illustration_panels()]
    if not rows:
        return []
    if study.kind == "simulated":
        return _scatter_panels(rows)
    summary = summarise(rows)
    panels = []
    for task in study.tasks:
        lines = summary[
            (summary["dataset"] == task.dataset)
            & (summary["metric"] == task.metric)
            & (summary["column"] == task.column)
        ]
        if len(lines):
            panels.append(Panel(task.title, partial(_draw_errors, study=study, task=task, lines=lines)))
    return panels


def _curve_style(study: str, mechanism: str, setting: str) -> tuple[str, dict[str, Any]]:
    """Return the legend entry and the line style of a curve."""
    colour, marker, line = MECHANISM_STYLES[mechanism]
    style = {"color": colour, "marker": marker, "linestyle": line, "markersize": 4, "linewidth": 1.3}
    if study == "beta":
        position = [f"beta={beta:g}" for beta in BETAS].index(setting)
        style |= {"color": _BETA_SHADES[position], "marker": _BETA_MARKERS[position]}
        return setting.replace("=", " = "), style
    name = MECHANISM_NAMES[mechanism]
    if setting == "unbounded":
        style |= {"linestyle": "--", "markerfacecolor": "white"}
    return (f"{name}, {setting}" if setting else name), style


def _draw_errors(axes: Any, *, study: Study, task: Task, lines: Any) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for curve in STUDIES[study.name].curves:
        points = lines[(lines["mechanism"] == curve.mechanism) & (lines["setting"] == curve.setting)]
        points = points[points["mean"] > 0].sort_values("epsilon")
        if not len(points):
            continue
        label, style = _curve_style(study.name, curve.mechanism, curve.setting)
        axes.plot(points["epsilon"], points["mean"], label=label, **style)
        low = np.maximum(
            points["low"], points["mean"] / 10
        )  # a logarithmic axis has no place for less than 0
        axes.fill_between(
            points["epsilon"], low, points["high"], color=style["color"], alpha=0.15, linewidth=0
        )
    if (lines["sampling"] > 0).any():
        axes.axhline(
            float(lines["sampling"].mean()),
            color="black",
            linestyle=":",
            linewidth=1,
            label="sampling standard error",
        )
    ticks = sorted(set(lines["epsilon"]))
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    _readable_decades(axes)
    axes.set_xlabel("epsilon")
    axes.set_ylabel("mean |error| / true value")
    _tidy(axes)


def _readable_decades(axes: Any) -> None:
    """Label 0.01, 0.1, 1, 10 as people write them, and 2 and 5 in between if there is little to see else."""
    ticker = import_extra("matplotlib.ticker")
    low, high = axes.get_ylim()
    few = math.log10(high / low) < 1.7
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def _tidy(axes: Any) -> None:
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _scatter_panels(rows: Sequence[ResultRow]) -> list[Panel]:
    errors: dict[int, dict[str, ResultRow]] = {}
    for row in rows:
        errors.setdefault(row.repeat, {})[row.mechanism] = row
    panels = []
    for mechanism in ("paper", "hazard"):
        pairs = [
            (found["inverse_sensitivity"], found[mechanism])
            for found in errors.values()
            if "inverse_sensitivity" in found and mechanism in found
        ]
        if pairs:
            panels.append(
                Panel(
                    f"against {MECHANISM_NAMES[mechanism]}",
                    partial(_draw_scatter, pairs=pairs, mechanism=mechanism),
                )
            )
    return panels


def scatter_points(pairs: Sequence[tuple[ResultRow, ResultRow]], kind: str) -> tuple[Any, Any]:
    """Return asymmetries, and exact expected error of the first of each pair over that of the second."""
    points = [
        (float(one.setting.partition("=")[2]), one.expected_error / other.expected_error)
        for one, other in pairs
        if one.metric == kind and one.expected_error and other.expected_error
    ]
    x, y = np.array(points).reshape(-1, 2).T
    return x, y


def _draw_scatter(axes: Any, *, pairs: Sequence[tuple[ResultRow, ResultRow]], mechanism: str) -> None:
    colour = MECHANISM_STYLES[mechanism][0]
    for kind, marker, face in (("uniform", "o", colour), ("heavy-tailed", "^", "none")):
        x, y = scatter_points(pairs, kind)
        axes.scatter(x, y, s=14, marker=marker, facecolors=face, edgecolors=colour, linewidths=0.8,
                     label=f"{kind} upper bounds")  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=1, linestyle=":", label="equal errors")
    axes.set_yscale("log")
    _readable_decades(axes)
    axes.set_xlim(-0.01, 0.51)
    axes.set_xlabel("asymmetry  |P(ISM > f) - 1/2|")
    axes.set_ylabel("error ISM / error")
    axes.legend(frameon=False, loc="upper left")
    _tidy(axes)


def _entries(axes_list: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axes in axes_list:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    # the order of the table of mechanisms, whichever panel an entry comes from
    order = [MECHANISM_NAMES[name] for name in CURVES]
    return dict(
        sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    )


def _figure(width: float, height: float) -> Any:
    # A Figure of its own, without pyplot: no global state, and no window system is ever looked for.
    return import_extra("matplotlib.figure").Figure(figsize=(width, height), dpi=200, layout="constrained")


def draw_figure(study: Study, panels: Sequence[Panel]) -> Any:
    """Return a matplotlib figure of all panels, three in a row, with one legend."""
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure = _figure(7.2, 2.35 * lines)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        panel.draw(axes)
        axes.set_title(panel.title)
        if len(panels) > 1 and axes.get_subplotspec().colspan.start and study.kind == "protocol":
            axes.set_ylabel("")
    empty = grid[len(panels) :]
    for axes in empty:
        axes.set_axis_off()
    if study.kind != "simulated":
        entries = _entries(grid[: len(panels)])
        long = max(map(len, entries)) > 30 or columns == 1
        if len(empty):
            figure.set_size_inches(7.2, 2.35 * lines)
            empty[0].legend(entries.values(), entries.keys(), loc="center", frameon=False)
        else:
            rows_of_legend = -(-len(entries) // (2 if long else 3))
            figure.set_size_inches(7.2, 2.35 * lines + 0.17 * rows_of_legend + 0.2)
            figure.legend(
                entries.values(), entries.keys(), loc="outside lower center", ncols=2 if long else 3,
                frameon=False,
            )  # fmt: skip
    return figure


def save_panel(panel: Panel, stream: Any) -> dict[str, Any]:
    """Write one panel as SVG; return the entries of its legend."""
    with import_extra("matplotlib").rc_context(_FONT):
        figure = _figure(3.6, 2.7)
        axes = figure.subplots()
        panel.draw(axes)
        axes.set_title(panel.title)
        figure.savefig(stream, format="svg", metadata={"Date": None})
        return _entries([axes])


def save_legend(entries: dict[str, Any], stream: Any) -> None:
    """Write a legend alone as SVG, of the size of a panel."""
    with import_extra("matplotlib").rc_context(_FONT):
        figure = _figure(3.6, max(0.24 * len(entries) + 0.2, 0.6))
        figure.legend(entries.values(), entries.keys(), loc="center", frameon=False)
        figure.savefig(stream, format="svg", metadata={"Date": None})


def draw_figures(studies: Sequence[Study], rows: Sequence[ResultRow], output: Path) -> list[Path]:
    """Write every figure as PNG and SVG.

    Parameters
    ----------
    studies : sequence of Study
        The figures.
    rows : sequence of ResultRow
        Results.
    output : Path
        Folder.

    Returns
    -------
    list of Path
        The PNG files.
    """
    paths = []
    for study in studies:
        panels = panels_of(STUDIES[study.name], rows)
        if not panels:
            continue
        with import_extra("matplotlib").rc_context(_FONT):
            figure = draw_figure(study, panels)
            path = output / f"{study.name}.png"
            figure.savefig(path)
            figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        paths.append(path)
    return paths
