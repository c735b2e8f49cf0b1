"""Plots of an experiment; they read nothing but its rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_metrics.evaluation.datasets import import_extra
from dp_metrics.evaluation.experiment import ERROR_CAP, Row

__all__ = ["MECHANISM_NAMES", "MECHANISM_STYLES", "METRIC_TITLES", "plot_experiment"]

MECHANISM_STYLES: dict[str, tuple[str, str, str]] = {
    "hazard": ("#D55E00", "o", "-"),
    "above_threshold": ("#0072B2", "s", "-"),
    "paper": ("#56B4E9", "D", "-"),
    "inverse_sensitivity": ("#009E73", "^", "-"),
    "piecewise_laplace": ("#CC79A7", "v", ":"),
    "laplace": ("#E69F00", "X", "-"),
    "clipped_mean": ("#7A7A7A", "P", "-"),
}
"""Colour (Okabe and Ito's palette and a grey, safe for the colour-blind), marker and line of a mechanism, in
every plot.

The dotted line lets inverse_sensitivity, almost the same on most data, show through."""

MECHANISM_NAMES = {
    "hazard": "hazard (our default)",
    "above_threshold": "AboveThreshold (our settings)",
    "paper": "AboveThreshold (paper preset)",
    "inverse_sensitivity": "inverse sensitivity",
    "piecewise_laplace": "piecewise Laplace",
    "laplace": "Laplace",
    "clipped_mean": "clipped mean",
}
"""Mechanisms in plain words, for legends."""

METRIC_TITLES = {
    "private_mse": "Mean squared error",
    "private_mae": "Mean absolute error",
    "private_variance": "Variance of the target",
    "private_log_loss": "Log loss",
}

_READABLE_TICKS = 8


def _draw_panel(axes: Any, rows: Sequence[Row]) -> None:
    true_value = rows[0].true_value_not_private
    epsilons = sorted({row.epsilon for row in rows})
    for mechanism, (colour, marker, line) in MECHANISM_STYLES.items():
        points = sorted(
            (row.epsilon, row.expected_error / true_value)
            for row in rows
            # a logarithmic axis has no place for 0
            if row.mechanism == mechanism and row.expected_error and true_value > 0
        )
        if points:
            axes.plot(
                *zip(*points, strict=True), color=colour, marker=marker, linestyle=line, label=mechanism
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    if true_value > 0 and rows[0].sampling_error_not_private > 0:
        axes.axhline(
            rows[0].sampling_error_not_private / true_value,
            color="black",
            linestyle="--",
            linewidth=1.2,
            label="sampling standard error",
        )
    if len(epsilons) <= _READABLE_TICKS:
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_xticks([], minor=True)
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(METRIC_TITLES.get(rows[0].metric, rows[0].metric))
    axes.set_xlabel("epsilon")
    capped = "" if rows[0].bounded else f"\n(errors capped at {ERROR_CAP:g} x the true value)"
    axes.set_ylabel("expected error / true value" + capped)


def plot_experiment(rows: Sequence[Row], path: Path) -> None:
    """Plot the expected relative error against epsilon, one panel per metric and one line per mechanism.

    Parameters
    ----------
    rows : sequence of Row
        Rows of one data set, as `run_experiment` returns them; at least one.
    path : Path
        The PNG file to write.

    Raises
    ------
    MissingExtraError
        If matplotlib is missing.
    OSError
        If the file can't be written.
    """
    figure_module = import_extra("matplotlib.figure")
    metrics = list(dict.fromkeys(row.metric for row in rows))
    # A Figure of its own, without pyplot: no global state, and no window system is ever looked for.
    figure = figure_module.Figure(figsize=(max(5.2 * len(metrics), 7.5), 5.2), dpi=150, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        _draw_panel(axes, [row for row in rows if row.metric == metric])
    # One legend for all panels, outside them, so that it hides no line.
    entries = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = len(entries) if len(metrics) > 1 else 3
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False)
    title = f"{rows[0].dataset}: error that privacy adds, {rows[0].n_test:,} test records"
    left_out = dict.fromkeys(row.mechanism for row in rows if row.expected_error is None)
    if left_out:
        title += f"\nleft out, since they need public bounds: {', '.join(left_out)}"
    figure.suptitle(title)
    figure.savefig(path)
