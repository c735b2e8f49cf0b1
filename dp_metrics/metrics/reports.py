"""Several private metrics in one call, from one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, Unpack

from numpy.typing import ArrayLike

from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_digits, check_zero_division
from dp_metrics.metrics._metric import ReportSettings, asks, private
from dp_metrics.metrics.labels.count_formulas import ratio, sizes_of_labels
from dp_metrics.metrics.labels.counts import OF_COUNTS, Confusion
from dp_metrics.metrics.labels.layouts import Counts, matrix_layout

LabelTable: TypeAlias = dict[str, dict[str, float] | float]


def _label_result(
    counts: Counts, names: Sequence[str], undefined: float, digits: int | None
) -> dict[str, Any] | str:
    table = _label_table(counts, names, undefined)
    return table if digits is None else _label_text(table, names, digits)


_MEANS = ("accuracy", "macro avg", "weighted avg")
_COLUMNS = ("precision", "recall", "f1-score", "support")


def _label_table(counts: Counts, names: Sequence[str], undefined: float) -> dict[str, Any]:
    """Return the rows of scikit-learn's report, by name."""

    def scores(average: str | None) -> list[Any]:
        return [
            ratio(counts, kind=kind, average=average, undefined=undefined)
            for kind in ("precision", "recall", "f1")
        ]

    rows = zip(*(column.tolist() for column in [*scores(None), counts.true]), strict=True)
    table: dict[str, Any] = {
        name: dict(zip(_COLUMNS, row, strict=True)) for name, row in zip(names, rows, strict=True)
    }
    table["accuracy"] = ratio(counts, kind="recall", average="weighted", undefined=undefined)
    for average in ("macro", "weighted"):
        table[f"{average} avg"] = dict(zip(_COLUMNS, [*scores(average), counts.n], strict=True))
    return table


def _label_text(table: dict[str, Any], names: Sequence[str], digits: int) -> str:
    """Return the rows laid out as scikit-learn's report; supports are rounded to whole records."""
    width = max(len("weighted avg"), digits, *map(len, names))
    lines = [f"{'':>{width}} " + "".join(f" {column:>9}" for column in _COLUMNS), ""]
    for name in [*names, "", *_MEANS]:
        row = table.get(name)
        if name == "accuracy":
            support = table["macro avg"]["support"]
            lines.append(f"{name:>{width}} " + " " * 20 + f" {row:>9.{digits}f} {support:>9.0f}")
        elif row is not None:
            numbers = "".join(f" {row[column]:>9.{digits}f}" for column in _COLUMNS[:3])
            lines.append(f"{name:>{width}} {numbers} {row['support']:>9.0f}")
        else:
            lines.append("")
    return "\n".join(lines) + "\n"


@private("sklearn.metrics.classification_report", **OF_COUNTS)
def private_classification_report(  # noqa: PLR0913 - those of scikit-learn's function
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    target_names: Sequence[str] | None = None,
    sample_weight: None = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0.0,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    **settings: Unpack[ReportSettings],
) -> str | LabelTable:
    """Report precision, recall, F1 and support of each label with epsilon-differential privacy for all.

    One table of counts is released; all of the report follows from it.

    Parameters
    ----------
    target_names : sequence of str or None, default=None
        Names to show, in the order of `labels`; None: the labels themselves.
    digits : int, default=2
        Decimals in the text, from 1 to 17.
    output_dict : bool, default=False
        Whether to return a dictionary rather than a text.
    zero_division : float or "warn", default=0.0
        What 0/0 is, by the noisy counts: 0 or 1. "warn" is 0 without a warning, which would tell of the data.

    Returns
    -------
    str or dict
        The table, in the layout of scikit-learn; or a dictionary with "precision", "recall", "f1-score" and
        "support" of each label, "accuracy", "macro avg" and "weighted avg". Supports are noisy too: fractions
        in the dictionary, rounded in the text.

    See Also
    --------
    private_f1_score : One number, more accurate than its place in a report.
    ConfusionSummary : The same release from pieces.

    Notes
    -----
    Released are the four or nine cells of the confusion matrix of two or three labels, else three counts for
    each label. The recall of a label with m records has an error of about 2 / (epsilon m): with epsilon m
    below 40 do not read it.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_classification_report
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> labels = ["ham", "spam"]
    >>> report = private_classification_report(y_true, y_pred, epsilon=1.0, labels=labels, output_dict=True)
    >>> 0.6 < report["spam"]["recall"] < 1  # exactly 0.8
    True
    """
    known = LabelSet.of(labels)
    names = [str(name) for name in (known.in_order if target_names is None else target_names)]
    if len(names) != known.size:
        raise ValueError(
            f"Number of classes, {known.size}, does not match size of target_names, {len(names)}."
        )
    if len({*names, *_MEANS}) < known.size + len(_MEANS):
        raise ValueError("The names of the labels must be different, and none that of another row.")
    decimals = check_digits(digits)
    undefined = check_zero_division(zero_division, is_mean=True)
    if math.isnan(undefined):
        raise ValueError("zero_division must be 0, 1 or 'warn' in a report.")

    result = partial(
        _label_result, names=names, undefined=undefined, digits=None if output_dict else decimals
    )
    confusion = Confusion(matrix_layout(known.size), result, known, sizes_of_labels, is_monotone=False)
    return asks(confusion.plan)
