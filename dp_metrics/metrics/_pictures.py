"""Pictures of what has been released, in scikit-learn's displays; matplotlib is imported when one is drawn.

Colours are those of Okabe and Ito, which the colour-blind tell apart, and each differs from the others in
lightness, for print. What is mostly noise is grey in every picture.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics._packages import import_extra
from dp_metrics.inputs.options import ByName, Floats
from dp_metrics.metrics.scores.bands import CalibrationBand, PrecisionRecallBand, RocBand
from dp_metrics.metrics.scores.curve_formulas import NetBenefitCurve, PrecisionRecallCurve, RocCurve
from dp_metrics.release.released import Interval

COLOURS: Mapping[str, str] = {
    "value": "#0072B2",
    "bar": "#56B4E9",
    "limits": "#E69F00",
    "chance": "0.35",
    "noise": "0.65",
}
"""Of all pictures: released lines, released bars, limits, what chance would give, what is mostly noise."""

_NOISE = "mostly noise"
_RELEASED: ByName = {"color": COLOURS["value"], "linewidth": 1.8}
_BY_CHANCE: ByName = {"color": COLOURS["chance"], "linestyle": ":", "linewidth": 1}
_MOST_LIMITS = 3  # labels, up to which the limits of a cell fit below its number
_CHARACTERS = 33  # that fit side by side into a matrix of 400 pixels
_WIDEST = 15  # characters of a line of a label
_LONGEST = 28  # characters of a label
_NARROW = 6  # characters of a label that fits below a cell
_BAR = 0.4  # inches for a group


def draw_roc(curve: RocCurve, area: float, band: RocBand | None, ax: Any) -> Any:
    """Return the display of a ROC curve with its area, and with a band if there is one."""
    from sklearn.metrics import RocCurveDisplay  # slow to import

    display = RocCurveDisplay(fpr=curve.fpr, tpr=curve.tpr, roc_auc=area).plot(ax=_axes(ax))
    display.line_.set(label=f"released (area {area:.3f})", zorder=3, **_RELEASED)
    _shade(display.ax_, band)
    display.ax_.plot([0, 1], [0, 1], label="chance", **_BY_CHANCE)
    _finish(display.ax_, "false positive rate", "true positive rate", "lower right")
    return display


def draw_precision_recall(
    curve: PrecisionRecallCurve,
    average: float,
    share: float,
    is_noise: NDArray[np.bool_],
    band: PrecisionRecallBand | None,
    ax: Any,
) -> Any:
    """Return the display of a precision-recall curve, grey where a threshold leaves hardly any record.

    Parameters
    ----------
    curve : PrecisionRecallCurve
        By rising threshold.
    average : float
        The average precision.
    share : float
        Of the positive class: the precision by chance.
    is_noise : ndarray of shape (n_thresholds,)
        Where the precision is mostly noise.
    band : PrecisionRecallBand or None
        The band; None draws none.
    ax : matplotlib Axes or None
        Where to draw.
    """
    from sklearn.metrics import PrecisionRecallDisplay  # slow to import

    display = PrecisionRecallDisplay(curve.precision, curve.recall, average_precision=average)
    display.plot(ax=_axes(ax))
    display.line_.set(label=f"released (average {average:.3f})", zorder=3, **_RELEASED)
    if is_noise.any():
        is_grey = np.append(is_noise, is_noise[-1])  # the last point has no threshold of its own
        x, y = (np.where(is_grey, one, np.nan) for one in (curve.recall, curve.precision))
        style = {"drawstyle": "steps-post", "linewidth": 2.2, "zorder": 4}
        display.ax_.plot(x, y, color=COLOURS["noise"], label=_NOISE, **style)
    _shade(display.ax_, band)
    display.ax_.axhline(share, label="chance", **_BY_CHANCE)
    _finish(display.ax_, "recall", "precision", "lower left" if share < 0.3 else "best")
    return display


def draw_calibration(display: Any, band: CalibrationBand | None, is_noise: NDArray[np.bool_], ax: Any) -> Any:
    """Return a display of a calibration curve, with limits of each bin, grey where a bin is nearly empty."""
    axes, share, score = _axes(ax), display.prob_true, display.prob_pred
    display.plot(ax=axes, name="released", ref_line=False)
    display.line_.set(color=COLOURS["value"], marker="o", markersize=5, zorder=3)
    _shade(axes, band, "limits")
    if is_noise.any():
        style = {"markerfacecolor": "white", "markeredgecolor": COLOURS["noise"], "markersize": 6}
        axes.plot(score[is_noise], share[is_noise], "o", **style, label=_NOISE, zorder=4)
    axes.plot([0, 1], [0, 1], label="perfect", **_BY_CHANCE)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    _finish(axes, "score", "share of positives")
    return display


def draw_net_benefit(curve: NetBenefitCurve, ax: Any) -> Any:
    """Return axes with the net benefit by threshold, beside that of treating all, and none."""
    axes = _axes(ax)
    axes.plot(curve.thresholds, curve.net_benefit, label="released", **_RELEASED)
    axes.plot(curve.thresholds, curve.treat_all, color=COLOURS["chance"], linestyle=":", label="treat all")
    axes.axhline(0.0, color=COLOURS["chance"], linewidth=1, label="treat none")
    most = float(curve.treat_all.max(initial=0.01))
    axes.set(xlim=(0, 1), ylim=(-0.3 * most, 1.1 * most))
    _finish(axes, "threshold", "net benefit")
    return axes


def draw_confusion(matrix: Floats, labels: Sequence[Any], limits: Interval, ax: Any, *, is_told: bool) -> Any:
    """Return the display of a confusion matrix, grey where a cell may be empty.

    Parameters
    ----------
    matrix : ndarray of shape (n_labels, n_labels)
        Counts or shares.
    labels : sequence
        Of rows and columns.
    limits : Interval
        Of each cell.
    ax : matplotlib Axes or None
        Where to draw.
    is_told : bool
        Whether to write the limits below the numbers of a small matrix.
    """
    from sklearn.metrics import ConfusionMatrixDisplay  # slow to import

    spec = ".2f" if matrix.max(initial=0.0) <= 1 else ",.0f"
    names = [_shown(label) for label in labels]
    display = ConfusionMatrixDisplay(matrix, display_labels=names)
    display.plot(ax=_axes(ax), cmap="Blues", values_format=spec, colorbar=False)
    for place, text in np.ndenumerate(display.text_):
        low, high = (float(end[place]) for end in limits)
        if is_told and len(names) <= _MOST_LIMITS:
            ends = "–".join(format(end, spec) for end in (low, high))
            if len(ends) > _CHARACTERS // len(names):
                ends = ends.replace("–", "–\n")
            size = "medium" if len(names) < _MOST_LIMITS else "small"
            text.set(text=f"{text.get_text()}\n{ends}", linespacing=1.5, size=size)
        if low <= 0:
            text.set_style("italic")
        if low <= 0 and matrix[place] < matrix.max() / 2:  # on a dark cell grey could not be read
            text.set_color("0.4")
    if max(map(len, names)) > _NARROW:
        display.ax_.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    display.ax_.set(xlabel="predicted label", ylabel="true label")
    return display


def draw_groups(
    groups: Sequence[Any],
    values: Sequence[float],
    limits: Sequence[Interval | None],
    is_noise: Sequence[bool],
    overall: float | None,
    metric: str,
    ax: Any,
) -> Any:
    """Return axes with a bar for each group, its limits, and the overall value.

    Parameters
    ----------
    groups, values : sequence
        Names and released values; no bar is drawn of NaN.
    limits : sequence of Interval or None
        Of each, if there are any. Limits that are endless leave the picture.
    is_noise : sequence of bool
        Which values are mostly noise.
    overall : float or None
        The value of all records.
    metric : str
        What the values are.
    ax : matplotlib Axes or None
        Where to draw.
    """
    axes = _axes(ax, height=1.3 + _BAR * len(groups))
    at, widths, grey = np.arange(len(groups)), np.array(values, dtype=np.float64), np.array(is_noise)
    ends = np.array([(math.nan, math.nan) if one is None else one[:] for one in limits])
    span = _range(np.append(ends, [*values, math.nan if overall is None else overall]))
    confidences = [one.confidence for one in limits if one is not None]
    is_known = ~np.isnan(widths)
    for here, colour, hatch, label in (
        (is_known & ~grey, COLOURS["bar"], "", ""),
        (is_known & grey, COLOURS["noise"], "///", _NOISE),
    ):
        if here.any():
            style = {"height": 0.62, "edgecolor": "white", "hatch": hatch, "label": label}
            axes.barh(at[here], widths[here], color=colour, **style)
    if confidences:
        left, right = span
        low, high = np.clip(ends.T, 2 * left - right, 2 * right - left)  # endless ones leave the picture
        whisker = {"fmt": "none", "ecolor": "black", "elinewidth": 1.4, "capsize": 3}
        label = f"{_percent(confidences[0])} noise limits"
        axes.errorbar((low + high) / 2, at, xerr=(high - low) / 2, label=label, **whisker)
    if overall is not None:
        axes.axvline(overall, color=COLOURS["limits"], linestyle="--", linewidth=2, label="overall")
    axes.set_yticks(at, [_shown(group) for group in groups])
    axes.set(xlabel=metric.replace("$", r"\$"), xlim=span, ylim=(len(groups) - 0.4, -0.6))
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 3, "frameon": False}
        axes.legend(**place, fontsize="small", handlelength=1.4, columnspacing=1.0)
    return _tidied(axes)


def _range(values: Floats) -> tuple[float, float]:
    """Return the range of an axis that shows bars from 0 and all limits that end."""
    every = np.append(values[np.isfinite(values)], 0.0)
    least, most = float(every.min()), float(every.max())
    room = 0.04 * (most - least) or 1.0
    if least >= 0 and 0.5 < most <= 1:
        return 0.0, 1.0 + room
    return (least - room if least < 0 else 0.0), most + room


def _axes(ax: Any, height: float = 3.6) -> Any:
    """Return the axes that were given, or new ones."""
    pyplot = import_extra("matplotlib.pyplot", "report")
    return pyplot.subplots(figsize=(5.0, height), layout="constrained")[1] if ax is None else ax


def _finish(axes: Any, across: str, up: str, place: str = "best") -> None:
    _tidied(axes).set(xlabel=across, ylabel=up)
    axes.legend(loc=place, fontsize="small", framealpha=0.85, edgecolor="none")


def _tidied(axes: Any) -> Any:
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _shade(
    axes: Any, band: RocBand | PrecisionRecallBand | CalibrationBand | None, what: str = "band"
) -> None:
    """Shade what limits a curve among all people, if there is something."""
    if band is not None:
        label = f"{_percent(band.confidence)} {what}, all people"
        band.shade(axes, color=COLOURS["limits"], alpha=0.4, label=label)


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


def _shown(name: Any) -> str:
    """Return what a label of a user looks like: of bounded length, and never read as a formula."""
    text = ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return "\n".join(textwrap.wrap(text, _WIDEST)).replace("$", r"\$")
