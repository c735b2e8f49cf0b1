"""Draw the picture of the README: mean relative error of one release against epsilon, on real data.

Run `DP_METRICS_DATA=FOLDER python benchmarks/error_picture.py --diffprivlib-python PATH --opendp-python PATH`
(`peers.py` tells which interpreters). A peer that can't be imported is left out of the picture.

Each line is a mean over the same 6 subsamples of 1,000 records. Errors of this package's mechanisms are
computed from their exact output laws, those of the peers are means of sampled releases. Solid lines need no
bounds, dashed ones do. An error above 10 times the true value counts as 10 times, for all: without bounds,
rare and huge overshoots would rule the mean.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from peers import Worker, add_peers, start_peers
from PIL import Image
from tqdm import tqdm

from dp_metrics.evaluation.datasets import get_dataset, load_dataset, read_column
from dp_metrics.evaluation.engine import ERROR_CAP, RIVALS
from dp_metrics.evaluation.population import Population, evaluate_model, populations_of
from dp_metrics.inputs import losses
from dp_metrics.inputs.options import own_error_state
from dp_metrics.mechanisms._laws import mean_absolute_error

EPSILONS = np.geomspace(0.1, 10.0, 13)
RECORDS = 1_000
MECHANISMS = ("adaptive", "paper", "inverse_sensitivity", "laplace")
STANDARD_ERROR = "standard error of the metric itself"
LABELS = {
    "adaptive": "adaptive, the default of dp_metrics",
    "paper": "the paper's mechanism and settings",
    "inverse_sensitivity": "inverse sensitivity (needs bounds)",
    "laplace": "Laplace (needs bounds)",
    "diffprivlib": "diffprivlib (no MSE, no log loss)",
    "opendp": "OpenDP (no MSE, no log loss)",
}
STYLES = {
    "adaptive": {
        "linewidth": 4.0,
        "zorder": 1.9,
    },  # broad and below the others, so that it hides none of them
    "paper": {"linewidth": 1.8},
    "inverse_sensitivity": {"linewidth": 1.8, "linestyle": "--"},
    "laplace": {"linewidth": 1.8, "linestyle": "--"},
    "diffprivlib": {"color": "#CC79A7", "marker": "v", "markersize": 5, "linestyle": "none"},
    "opendp": {"color": "#333333", "marker": "x", "markersize": 5, "linestyle": "none"},
}

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Panel:
    """A metric on a data set.

    Attributes
    ----------
    title, subtitle : str
        What is released, and which bounds it is given.
    population : Population
        Losses, or the column whose variance is released; subsamples are drawn from them.
    without_bounds : tuple of str
        The mechanisms that are not told the public bounds.
    """

    title: str
    subtitle: str
    population: Population
    without_bounds: tuple[str, ...] = ()

    def subsamples(self, count: int) -> Iterator[Floats]:
        """Yield subsamples, the same in every call."""
        for seed in range(count):
            yield self.population.draw(RECORDS, np.random.default_rng(seed))


def mse_of_bike_rentals() -> Panel:
    """Return the panel of a metric without bounds, which only the dashed lines get."""
    bounds = get_dataset("bike").bounds
    unbounded = replace(get_dataset("bike"), bounds=None)  # so that predictions are not clipped either
    predicted = evaluate_model(unbounded, *load_dataset("bike"))
    cap = losses.largest_error(losses.squared_error, bounds)
    values = populations_of(unbounded, *predicted)["mse"].values
    return Panel(
        "MSE of a model, bike rentals",
        "no bounds; dashed: public bounds (0, 5000)",
        Population("mse", values, (0.0, cap)),
        without_bounds=("adaptive", "paper"),
    )


def log_loss_of_incomes() -> Panel:
    """Return the panel of a classifier."""
    adult = get_dataset("adult")
    predicted = evaluate_model(adult, *load_dataset("adult"))
    return Panel(
        "Log loss of a model, adult incomes",
        "all: public cap of 10 on one loss",
        populations_of(adult, *predicted)["log_loss"],
    )


def variance_of_prices() -> Panel:
    """Return the panel of the statistic that the peers offer too."""
    return Panel(
        "Variance of diamond prices",
        "all: public bounds (0, 50000)",
        Population("variance", read_column("diamonds", "price"), get_dataset("diamonds").bounds),
    )


@own_error_state
def exact_errors(panel: Panel, name: str, subsamples: int) -> Floats:
    """Return a mechanism's expected relative error for each epsilon, the mean over the subsamples."""
    mechanism = RIVALS[name].make(panel.population.paper_unit(RECORDS))
    bounded, errors = name not in panel.without_bounds, np.zeros((subsamples, EPSILONS.size))
    for row, sample in zip(errors, panel.subsamples(subsamples), strict=True):
        for column, epsilon in enumerate(EPSILONS.tolist()):
            prepared = panel.population.prepared(sample, mechanism, epsilon, bounded=bounded)
            value = prepared.stats[0].bounds(0, False).value
            (law,) = prepared.laws(len(sample))
            row[column] = mean_absolute_error(law, value, ERROR_CAP * value) / value
    return errors.mean(axis=0)


def sampled_errors(panel: Panel, worker: Worker, subsamples: int, releases: int) -> Floats:
    """Return a peer's mean relative error for each epsilon, over some releases of each subsample."""
    errors = []
    for sample in panel.subsamples(subsamples):
        released = [
            worker.releases("variance", sample, panel.population.bounds, EPSILONS.tolist())
            for _ in range(releases)
        ]
        errors.append(np.minimum(np.abs(np.array(released) / np.var(sample) - 1.0), ERROR_CAP))
    return np.mean(errors, axis=(0, 1))


def standard_error(panel: Panel, subsamples: int) -> float:
    """Return the relative standard error that the metric has anyway, because the records are a sample."""
    truths = map(panel.population.truth, panel.subsamples(subsamples))
    return float(np.mean([sampling_error / true_value for true_value, sampling_error in truths]))


def draw_lines(axes: Any, panel: Panel, workers: Sequence[Worker], subsamples: int, releases: int) -> None:
    """Draw the errors of one panel."""
    errors = {name: exact_errors(panel, name, subsamples) for name in MECHANISMS}
    if panel.population.metric == "variance":  # the peers offer no losses
        errors |= {w.library: sampled_errors(panel, w, subsamples, releases) for w in workers}
    for name, values in errors.items():
        colour = {"color": RIVALS[name].colour} if name in MECHANISMS else {}
        axes.plot(EPSILONS, values, label=LABELS[name], **colour, **STYLES[name])
    axes.axhline(
        standard_error(panel, subsamples), color="black", linestyle=":", linewidth=1.6, label=STANDARD_ERROR
    )


def decorate(figure: Figure, panels: Sequence[Panel]) -> None:
    """Add everything but the lines."""
    for axes, panel in zip(figure.axes, panels, strict=True):
        axes.set_title(panel.title, fontsize=11, pad=20)
        axes.text(0.5, 1.025, panel.subtitle, transform=axes.transAxes, ha="center", color="0.3", fontsize=9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
        axes.set_yticks([0.01, 0.1, 1.0, 10.0], ["1 %", "10 %", "100 %", "1000 %"])
        axes.minorticks_off()
        axes.set_ylim(0.0007, 15.0)
        axes.grid(True, color="0.88", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[1].set_xlabel(f"epsilon of one release about {RECORDS:,} records")
    figure.axes[0].set_ylabel("mean error / true value")
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    legend = dict(zip(labels, handles, strict=True))
    # columns are filled from the top: those without bounds and the yardstick, those with bounds, the peers
    first = [LABELS["adaptive"], LABELS["paper"], STANDARD_ERROR]
    order = [*first, *(label for label in labels if label not in first)]
    figure.legend(
        [legend[label] for label in order],
        order,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_peers(parser)
    default = Path(__file__).parents[1] / "docs" / "_static" / "error_against_epsilon.png"
    parser.add_argument("--output", type=Path, default=default, help="the PNG file")
    parser.add_argument("--subsamples", type=int, default=6)
    parser.add_argument("--releases", type=int, default=200, help="of a peer, for each subsample and epsilon")
    arguments = parser.parse_args()
    if "DP_METRICS_DATA" not in os.environ:
        sys.exit("Set DP_METRICS_DATA to the folder of the data files.")
    panels = [mse_of_bike_rentals(), log_loss_of_incomes(), variance_of_prices()]
    figure = Figure(figsize=(9.6, 4.4), dpi=160, layout="constrained")
    figure.subplots(1, len(panels), sharey=True)
    with ExitStack() as stack:
        workers = start_peers(stack, arguments)
        for axes, panel in zip(figure.axes, tqdm(panels, desc="panels"), strict=True):
            draw_lines(axes, panel, workers, arguments.subsamples, arguments.releases)
    decorate(figure, panels)
    figure.savefig(arguments.output, bbox_inches="tight", pad_inches=0.05)
    # few colours make a third of the bytes
    Image.open(arguments.output).convert("RGB").quantize(64).save(arguments.output, optimize=True)


if __name__ == "__main__":
    main()
