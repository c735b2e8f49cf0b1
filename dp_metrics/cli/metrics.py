"""`dp-metrics metrics`: what can be asked for."""

import argparse
import inspect
import json
from collections.abc import Callable
from typing import Any

from dp_metrics.cli._common import add_json
from dp_metrics.metrics import FUNCTIONS, METRICS, Metric

__all__ = ["OF_RECORDS", "add_metrics", "parameters"]

OF_RECORDS = ("sample_weight", "groups")
"""Options that are columns: a value per record."""


def parameters(row: Metric) -> set[str]:
    """Return the arguments that the function of a metric takes."""
    function: Callable[..., Any] = FUNCTIONS[row.name]
    return set(inspect.signature(function).parameters)


def _described(row: Metric) -> dict[str, Any]:
    public = {name: value for name, value in row.options.items() if name not in OF_RECORDS}
    return {
        "name": row.name,
        "exact_function": row.exact_function or None,
        "summary": (inspect.getdoc(FUNCTIONS[row.name]) or "").partition("\n")[0],
        "data": list(row.data),
        "options": public,
        "required": list(row.required),
    }


def _metrics(options: argparse.Namespace) -> None:
    described = [_described(row) for row in METRICS.values()]
    if options.json:
        print(json.dumps(described, indent=2))
        return
    for one in described:
        exact = f", for {one['exact_function']}" if one["exact_function"] else ""
        print(f"{one['name']}{exact}\n    {one['summary']}")
        named = [
            f"{name} (required)" if name in one["required"] else f"{name}={default!r}"
            for name, default in one["options"].items()
        ]
        if named:
            print(f"    options: {', '.join(named)}")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "List every metric: its name, the function that it stands for, and its public options."
    )
    add_json(parser)
    parser.set_defaults(run=_metrics)
