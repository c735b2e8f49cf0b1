"""Public options of a metric, as they are typed."""

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dp_metrics.cli._common import BOOLEANS, CommandError, label_reader
from dp_metrics.cli.predictions import ColumnSpec, Kind
from dp_metrics.metrics import Metric

OF_RECORDS = ("sample_weight", "groups")
"""Options that are columns: a value per record."""

_LARGEST_WHOLE = 2**53
_IF_LABELS_ARE_TEXT = " (for labels that are text, pass --option labels=[...])"
_STRUCTURED = ("[", "(", "{", '"', "'")


def options_of(row: Metric, typed: Sequence[str]) -> dict[str, Any]:
    """Return the options of a metric that were typed as name=value.

    Parameters
    ----------
    row : Metric
        The metric, which says what there is.
    typed : sequence of str
        A value is JSON, or a Python literal, or else text as it stands.
    """
    known = [name for name in row.options if name not in OF_RECORDS]
    options: dict[str, Any] = {}
    words: dict[str, str] = {}
    for one in typed:
        name, separator, value = one.partition("=")
        if not separator:
            raise CommandError(f"--option takes NAME=VALUE, not {one!r}")
        if name in OF_RECORDS:
            raise CommandError(f"{name} is a column: pass --{name.replace('_', '-')} COL")
        if name not in known:
            there = f"it takes {', '.join(known)}" if known else "it takes none"
            raise CommandError(f"{row.name} takes no option {name!r}; {there}")
        if name in options:
            raise CommandError(f"--option {name} is given twice")
        options[name], words[name] = _value(value, f"--option {name}"), value
        if isinstance(row.options[name], bool) and not isinstance(options[name], bool):
            raise CommandError(f"--option {name} takes true or false, not {value!r}")
    labels = options.get("labels")
    if "pos_label" in options and isinstance(labels, list | tuple):
        found = label_reader(labels)(words["pos_label"])
        options["pos_label"] = found if found in labels else options["pos_label"]
    if missing := [name for name in row.required if name not in options]:
        needed = " ".join(f"--option {name}=VALUE" for name in missing)
        raise CommandError(f"{row.name} needs {needed}")
    return options


def group_labels(typed: Sequence[str], option: str = "--group-labels") -> list[Any]:
    """Return labels, such as those of groups: the words that were typed, or the only one if it is a list."""
    values = [_value(one, option) for one in typed]
    if len(values) == 1 and isinstance(values[0], list | tuple):
        return list(values[0])
    if any(isinstance(value, str) for value in values):
        return [value if isinstance(value, str) else text for value, text in zip(values, typed, strict=True)]
    return values


def column_of(row: Metric, argument: str, columns: Sequence[str], options: Mapping[str, Any]) -> ColumnSpec:
    """Return how the columns of an argument are read, which follows from the metric and from public labels.

    Parameters
    ----------
    row : Metric
        The metric.
    argument : str
        Which argument of it.
    columns : sequence of str
        Names of the columns.
    options : mapping
        Public options, of which `labels` tells whether labels are text.
    """
    if not (row.predicts_labels or ("labels" in row.options and argument == row.data[0])):
        return ColumnSpec(columns, Kind.NUMBER, is_named="labels" in row.options)
    if "labels" not in row.options:
        return ColumnSpec(columns, Kind.LABEL)
    return column_of_labels(columns, options.get("labels"), _IF_LABELS_ARE_TEXT)


def column_of_labels(columns: Sequence[str], labels: Any, if_text: str = "") -> ColumnSpec:
    """Return how columns of these public labels are read; None stands for whole numbers from 0."""
    known = labels if isinstance(labels, list | tuple) else ()
    if all(isinstance(label, int | float) and abs(label) < _LARGEST_WHOLE for label in known):
        return ColumnSpec(columns, Kind.NUMBER, if_text)
    return ColumnSpec(columns, Kind.LABEL, if_text, known)


def _value(text: str, name: str) -> Any:
    if text.strip() in BOOLEANS:
        return BOOLEANS[text.strip()]
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text.strip())
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    if text.strip().startswith(_STRUCTURED):
        raise CommandError(f"{name}: {text!r} is neither JSON nor a Python literal")
    return text
