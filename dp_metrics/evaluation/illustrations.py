"""The pictures of sections 4.1 and 4.2 of the paper: made-up output bounds, and exact output laws on them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dp_metrics.bounds import OutputBounds
from dp_metrics.evaluation.plots import MECHANISM_NAMES, MECHANISM_STYLES
from dp_metrics.mechanisms import AboveThreshold, Hazard, InverseSensitivity
from dp_metrics.mechanisms._laws import GridLaw

__all__ = ["illustration_bounds", "illustration_panels"]

_VALUE, _RANKS, _RECORDS, _EPSILON = 100.0, 80, 1000, 1.0


def illustration_bounds(step_down: float, step_up: float) -> OutputBounds:
    """Return output bounds with equal steps on each side of 100."""
    ranks = np.arange(1.0, _RANKS + 1)
    upper = _VALUE + step_up * ranks
    lower = np.maximum(_VALUE - step_down * ranks, 0.0)
    return OutputBounds(_VALUE, lower, upper, (0.0, float(upper[-1]) + step_up), monotonic=True, n=_RECORDS)


def illustration_panels() -> list[tuple[str, Callable[[Any], None]]]:
    """Return the title and the drawing function of each picture."""
    return [
        ("distances of an output", _draw_distances),
        ("symmetric sensitivities", partial(_draw_laws, step_down=1.0, step_up=1.0, window=(84.0, 116.0))),
        ("asymmetric sensitivities", partial(_draw_laws, step_down=0.2, step_up=3.0, window=(90.0, 130.0))),
    ]


def _draw_distances(axes: Any) -> None:
    # one rank per unit: an output at t is ceil(|t - f|) records away
    t = np.linspace(-4.0, 4.0, 801)
    length = np.ceil(np.abs(t))
    reflective = np.where(t >= 0, np.maximum(length, 1.0) - 0.5, 0.5 - length)
    blue, green = MECHANISM_STYLES["paper"][0], MECHANISM_STYLES["inverse_sensitivity"][0]
    axes.step(
        t, length, where="mid", color=green, linewidth=1.5, label=MECHANISM_NAMES["inverse_sensitivity"]
    )
    axes.step(
        t,
        reflective,
        where="mid",
        color=blue,
        linewidth=1.5,
        label="reflective inverse sensitivity (first picture)",
    )
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xticks(range(-4, 5), ["L4", "L3", "L2", "L1", "f", "U1", "U2", "U3", "U4"])
    axes.set_xlabel("output")
    axes.set_ylabel("distance in records")
    axes.set_ylim(-4.0, 4.4)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_laws(axes: Any, *, step_down: float, step_up: float, window: tuple[float, float]) -> None:
    output_bounds = illustration_bounds(step_down, step_up)
    for name, mechanism, stride in (
        ("inverse_sensitivity", InverseSensitivity(), 1),
        ("paper", AboveThreshold(beta=1.005, split=0.5, scale=1.0, first=1), 1),
        ("hazard", Hazard(), 24),
    ):
        law: Any = mechanism.output_distribution(output_bounds, _EPSILON)
        if isinstance(law, GridLaw):
            # the probability of each output (of each few, where they are dense) spread over the gap below it
            first, last = law.grid.index_at_least(np.array(window))
            numbers = np.arange(first, last, stride)
            edges, cdf = law.grid.points(numbers), law.index_cdf(numbers)
        else:
            edges = np.linspace(*window, 321)
            cdf = law.cdf(edges)
        style = {"color": MECHANISM_STYLES[name][0], "linewidth": 1.3, "label": MECHANISM_NAMES[name]}
        axes.stairs(np.diff(cdf) / np.diff(edges), edges, baseline=None, **style)
    axes.axvline(_VALUE, color="0.6", linewidth=0.8)
    visible = [(f"L{i}" if step_down > 0.5 else "", _VALUE - step_down * i) for i in (4, 8, 12)]
    visible += [("f", _VALUE), *((f"U{i}", _VALUE + step_up * i) for i in (4, 8, 12))]
    axes.set_xticks([at for _, at in visible], [name for name, _ in visible])
    axes.set_xlim(*window)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(f"output, epsilon = {_EPSILON:g}")
    axes.set_ylabel("density")
    axes.spines[["top", "right"]].set_visible(False)
