"""Print the table of all metrics, which `conf.py` writes for the documentation."""

import inspect
import re

import dp_metrics
from dp_metrics.metrics import METRICS, Metric

HEADER = ["call", "instead of", "public limit", "mechanism", "relations", "summary, Dask", "scorer"]

NOISY_COUNTS = "noisy counts"


def public_names(name: str) -> list[str]:
    """Return all names of the function of a metric, its own first."""
    function = METRICS[name].function
    return [name, *(n for n in dp_metrics.__all__ if n != name and getattr(dp_metrics, n) is function)]


def without_privacy(row: Metric) -> str:
    """Return the function that a metric stands for, as it is usually called."""
    return re.sub(r"^sklearn\.\w+\.", "", row.exact_function)


def limit(row: Metric) -> str:
    """Return the options that give a metric a public upper limit."""
    options = row.limit or row.required
    return ", ".join(f"``{name}``" + ", required" * (name in row.required) for name in options) or "always"


def default_mechanism(row: Metric) -> str:
    """Return the default mechanism, or that of each part."""
    names = (part or row.mechanism or NOISY_COUNTS for part in row.usual.mechanisms or (None,))
    return ", ".join(dict.fromkeys(names))


def cells(row: Metric) -> list[str]:
    """Return the facts about one metric."""
    both = "neighboring" in inspect.signature(METRICS[row.name].function).parameters
    return [
        ", ".join(f"`{name}`" for name in public_names(row.name)),
        f"``{without_privacy(row)}``" if row.exact_function else "none",
        limit(row),
        default_mechanism(row),
        "both" if both else "replace one",
        "yes" if row.usual.merges else "no",
        "no" if row.greater_is_better is None else "yes",
    ]


def rst() -> str:
    """Return a row for each metric, in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :class: wide", ""]
    for row in [HEADER, *map(cells, METRICS.values())]:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(rst(), end="")
