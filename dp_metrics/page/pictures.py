"""The pictures of a page, drawn from released objects, as figures and as images within HTML."""

from __future__ import annotations

import base64
import io
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.page.contents import CONFIDENCE
from dp_metrics.page.page_plan import ByGroupToo, PageRelease

_SIZE = (4.4, 3.6)  # inches: letters of 9 points stay readable at 400 pixels
_MOST_WITH_BAND = 30_000
_OF_SCORES = {"roc": "roc", "precision recall": "precision_recall", "calibration": "calibration"}
_STYLE = {
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "dp_metrics",
    "text.parse_math": False,  # names of labels may hold dollar signs
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def drawn(evaluated: PageRelease, name: str, ax: Any = None) -> Any:
    """Return the display of a picture that the page has."""
    released = evaluated.released
    if name in _OF_SCORES:
        scores = released["scores"]
        # the band of very many records takes long, and is too narrow to be seen
        sure = CONFIDENCE if scores.counts.total.sum() <= _MOST_WITH_BAND else None
        return scores.plot(_OF_SCORES[name], ax=ax, confidence=sure)
    labels = released.get("labels by group", released.get("labels"))
    if name == "confusion matrix":
        return (labels.overall if isinstance(labels, ByGroupToo) else labels).plot(ax=ax)
    metric = name.removesuffix(" by group")
    if metric == "roc auc":
        return released["scores by group"].plot(ax=ax)
    if metric == "mae":
        return released["absolute error by group"].plot(ax=ax)
    return labels.by_group.plot(metric, ax=ax)


def as_data(evaluated: PageRelease, name: str) -> str:
    """Return a picture as an address that holds the image: nothing within it is executed."""
    mpl, figures = (import_extra(name, "report") for name in ("matplotlib", "matplotlib.figure"))
    with mpl.rc_context(_STYLE), io.BytesIO() as file:
        figure = figures.Figure(figsize=_SIZE, layout="constrained")
        drawn(evaluated, name, figure.subplots())
        figure.savefig(file, format="svg", metadata={"Date": None})
        return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"
