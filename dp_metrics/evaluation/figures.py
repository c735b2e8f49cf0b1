"""The figures of the studies; everything but the illustrations is drawn from rows of results alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.evaluation.compared import RIVALS
from dp_metrics.evaluation.results_file import ERROR_CAP, ResultRow, summarise
from dp_metrics.evaluation.studies import STUDIES, Study
from dp_metrics.mechanisms._laws import GridLaw
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

_FONT = {"font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "legend.fontsize": 8, "svg.hashsalt": "dp"}


@dataclass(frozen=True)
class Panel:
    """One picture: its title, and a function that draws it on axes."""

    title: str
    draw: Callable[[Any], None]


def panels_of(study: Study, rows: Sequence[ResultRow]) -> list[Panel]:
    """Return the panels of a study for which there are rows, in the order of its tasks."""
    rows = [row for row in rows if row.figure == study.name]
    if study.kind == "illustration":
        return [
            Panel("distances of an output", _draw_distances),
            Panel("symmetric sensitivities", partial(_draw_laws, step=(1.0, 1.0), window=(84.0, 116.0))),
            Panel("asymmetric sensitivities", partial(_draw_laws, step=(0.2, 3.0), window=(90.0, 130.0))),
        ]
    if not rows:
        return []
    if study.kind == "simulated":
        return [
            Panel(f"against {RIVALS[name].title}", partial(_draw_scatter, rows=rows, mechanism=name))
            for name in ("paper", "hazard")
            if any(scatter_points(rows, name, kind)[0].size for kind in ("uniform", "heavy-tailed"))
        ]
    summary, panels = summarise(rows), []
    for task in study.tasks:
        where = zip(("dataset", "metric", "column"), (task.dataset, task.metric, task.column), strict=True)
        lines = summary[np.all([summary[name] == value for name, value in where], axis=0)]
        if len(lines):
            panels.append(Panel(task.title, partial(_draw_errors, study=study, lines=lines)))
    return panels


def _draw_errors(axes: Any, *, study: Study, lines: Any) -> None:
    value = "exact" if study.kind == "whole" else "mean"
    axes.set_xscale("log")
    axes.set_yscale("log")
    for rival in study.rivals:
        points = lines[(lines["mechanism"] == rival.mechanism) & (lines["setting"] == rival.setting)]
        points = points[points[value] > 0].sort_values("epsilon")  # a logarithmic axis has no place for 0
        if not len(points):
            continue
        x, y = points["epsilon"], points[value]
        face = {"markerfacecolor": rival.face} if rival.face else {}
        axes.plot(
            x, y, label=rival.title, color=rival.colour, marker=rival.marker, linestyle=rival.line,
            markersize=4, linewidth=1.3, **face,
        )  # fmt: skip
        if value == "mean":
            low = np.maximum(points["low"], y / 10)
            axes.fill_between(x, low, points["high"], color=rival.colour, alpha=0.15, linewidth=0)
    if (lines["sampling"] > 0).any():
        style = {"color": "0.35", "linestyle": "-.", "linewidth": 1}
        axes.axhline(float(lines["sampling"].mean()), label="sampling standard error", **style)
    ticks = sorted(set(lines["epsilon"]))
    if len(ticks) <= 8:  # more labels would overlap
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
    _readable_decades(axes)
    axes.set_xlabel("epsilon")
    axes.set_ylabel("mean |error| / true value" if value == "mean" else "expected |error| / true value")
    _tidy(axes)


def _readable_decades(axes: Any) -> None:
    """Label 0.01, 0.1, 1, 10 as people write them, and 2 and 5 in between if there is little to see else."""
    ticker = import_extra("matplotlib.ticker")
    low, high = axes.get_ylim()
    few = math.log10(high / low) < 1.7
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def _tidy(axes: Any, *, grid: bool = True) -> None:
    if grid:
        axes.grid(True, which="major", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def scatter_points(rows: Sequence[ResultRow], mechanism: str, kind: str = "") -> tuple[Any, Any]:
    """Return the asymmetries of simulations, and expected errors of inverse sensitivity / of a mechanism."""
    errors = {(row.repeat, row.mechanism): row.expected_error for row in rows}
    points = [
        (float(row.setting.partition("=")[2]), row.expected_error / other)
        for row in rows
        if row.mechanism == "inverse_sensitivity" and kind in ("", row.metric) and row.expected_error
        and (other := errors.get((row.repeat, mechanism)))
    ]  # fmt: skip
    x, y = np.array(points).reshape(-1, 2).T
    return x, y


def _draw_scatter(axes: Any, *, rows: Sequence[ResultRow], mechanism: str) -> None:
    colour = RIVALS[mechanism].colour
    for kind, marker, face in (("uniform", "o", colour), ("heavy-tailed", "^", "none")):
        x, y = scatter_points(rows, mechanism, kind)
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


_VALUE, _RANKS, _RECORDS, _EPSILON = 100.0, 80, 1000, 1.0  # the illustrations show these made-up numbers


def illustration_bounds(step_down: float, step_up: float) -> OutputBounds:
    """Return output bounds with equal steps on each side of 100."""
    ranks = np.arange(1.0, _RANKS + 1)
    upper = _VALUE + step_up * ranks
    lower = np.maximum(_VALUE - step_down * ranks, 0.0)
    public = BoundsFacts(output_range=(0.0, float(upper[-1]) + step_up), monotonic=True, n=_RECORDS)
    return public.bounds(_VALUE, lower, upper)


def _draw_distances(axes: Any) -> None:
    # one rank per unit: an output at t is ceil(|t - f|) records away
    t = np.linspace(-4.0, 4.0, 801)
    length = np.ceil(np.abs(t))
    reflective = np.where(t >= 0, np.maximum(length, 1.0) - 0.5, 0.5 - length)
    for name, label, distance in (
        ("inverse_sensitivity", RIVALS["inverse_sensitivity"].title, length),
        ("paper", "reflective inverse sensitivity (first picture)", reflective),
    ):
        axes.step(t, distance, where="mid", color=RIVALS[name].colour, linewidth=1.5, label=label)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xticks(range(-4, 5), ["L4", "L3", "L2", "L1", "f", "U1", "U2", "U3", "U4"])
    axes.set_xlabel("output")
    axes.set_ylabel("distance in records")
    axes.set_ylim(-4.0, 4.4)
    _tidy(axes, grid=False)


def _draw_laws(axes: Any, *, step: tuple[float, float], window: tuple[float, float]) -> None:
    step_down, step_up = step
    output_bounds = illustration_bounds(step_down, step_up)
    for name, stride in (("inverse_sensitivity", 1), ("paper", 1), ("hazard", 24)):
        make, style = RIVALS[name].make, {"color": RIVALS[name].colour, "label": RIVALS[name].title}
        assert make is not None
        law: Any = make(1.0).output_distribution(output_bounds, _EPSILON)
        if isinstance(law, GridLaw):
            # the probability of each output (of each few, where they are dense) spread over the gap below it
            first, last = law.grid.index_at_least(np.array(window))
            numbers = np.arange(first, last, stride)
            edges, cdf = law.grid.points(numbers), law.index_cdf(numbers)
        else:
            edges = np.linspace(*window, 321)
            cdf = law.cdf(edges)
        axes.stairs(np.diff(cdf) / np.diff(edges), edges, baseline=None, linewidth=1.3, **style)
    axes.axvline(_VALUE, color="0.6", linewidth=0.8)
    visible = [(f"L{i}" if step_down > 0.5 else "", _VALUE - step_down * i) for i in (4, 8, 12)]
    visible += [("f", _VALUE), *((f"U{i}", _VALUE + step_up * i) for i in (4, 8, 12))]
    axes.set_xticks([at for _, at in visible], [name for name, _ in visible])
    axes.set_xlim(*window)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(f"output, epsilon = {_EPSILON:g}")
    axes.set_ylabel("density")
    _tidy(axes, grid=False)


def _entries(axes_list: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axes in axes_list:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    # the order of the table of mechanisms, whichever panel an entry comes from
    order = [rival.title for rival in RIVALS.values()]
    return dict(
        sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    )


def draw_figure(study: Study, panels: Sequence[Panel], *streams: Any, title: str = "") -> None:
    """Write all panels, three in a row, with one legend: as PNG to a path, as SVG to a path or stream."""
    with import_extra("matplotlib").rc_context(_FONT):
        figure = _laid_out(study, panels, title)
        for stream in streams:
            png = str(stream).endswith(".png")
            figure.savefig(stream, **({} if png else {"format": "svg", "metadata": {"Date": None}}))


def _laid_out(study: Study, panels: Sequence[Panel], title: str) -> Any:
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    height = 2.35 * lines + (0.17 * (1 + title.count("\n")) + 0.05 if title else 0.0)
    # The Figure needs no pyplot: no global state, and no window system is ever looked for.
    figure = import_extra("matplotlib.figure").Figure((7.2, height), dpi=200, layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        panel.draw(axes)
        axes.set_title(panel.title)
        if study.kind in ("drawn", "whole") and axes.get_subplotspec().colspan.start:
            axes.set_ylabel("")
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    if title:
        figure.suptitle(title, fontsize=9)
    if study.kind == "simulated":
        return figure  # the panels have their own legends
    entries = _entries(grid[: len(panels)])
    if len(panels) < len(grid):
        grid[len(panels)].legend(entries.values(), entries.keys(), loc="center", frameon=False)
        return figure
    per_line = 2 if max(map(len, entries), default=0) > 30 or columns == 1 else 3
    figure.set_size_inches(7.2, height + 0.17 * -(-len(entries) // per_line) + 0.2)
    place = {"loc": "outside lower center", "ncols": per_line, "frameon": False}
    figure.legend(entries.values(), entries.keys(), **place)
    return figure


def draw_figures(studies: Sequence[Study], rows: Sequence[ResultRow], output: Path) -> list[Path]:
    """Write every figure for which there are rows as PNG and SVG; return the PNG files."""
    paths = []
    for study in (STUDIES[study.name] for study in studies):  # the study is whole, whatever part was run
        if panels := panels_of(study, rows):
            paths.append(output / f"{study.name}.png")
            draw_figure(study, panels, paths[-1], paths[-1].with_suffix(".svg"))
    return paths


def draw_evaluation(study: Study, rows: Sequence[ResultRow], path: Path) -> None:
    """Write the plot of `dp-metrics evaluate`: the expected error of every metric of one data set."""
    title = f"{study.title}: error that privacy adds, {rows[0].n:,} test records"
    if not all(row.bounded for row in rows):
        present = {row.mechanism for row in rows}
        absent = ", ".join(rival.mechanism for rival in study.rivals if rival.mechanism not in present)
        title += f"; errors capped at {ERROR_CAP:g} x the true value"
        title += f"\nleft out, since they need public bounds: {absent}" if absent else ""
    draw_figure(study, panels_of(study, rows), path, title=title)
