"""Several private metrics in one call, from one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_digits, check_zero_division
from dp_metrics.inputs.shape import Shape
from dp_metrics.metrics.labels.count_formulas import ratio, sizes_of_labels
from dp_metrics.metrics.labels.counts import Confusion, confusion_row
from dp_metrics.metrics.labels.layouts import Counts, matrix_layout
from dp_metrics.release.plan import Plan
from dp_metrics.release.result import PrivateResult

LabelTable: TypeAlias = dict[str, dict[str, float] | float]


def _labels_plan(
    shape: Shape,
    *,
    private_n: bool,
    labels: Any,
    target_names: Any,
    digits: Any,
    output_dict: bool,
    zero_division: Any,
) -> Plan:
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
    return confusion.plan(private_n=private_n)


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


CLASSIFICATION_REPORT = confusion_row(
    "private_classification_report",
    _labels_plan,
    {"target_names": None, "digits": 2, "output_dict": False, "zero_division": 0.0},
)


def private_classification_report(
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
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> str | LabelTable:
    """Report precision, recall, F1 and support of each label with epsilon-differential privacy for all.

    One table of counts is released; all of the report follows from it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_pred : array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.
    target_names : sequence of str or None, default=None
        Names to show, in the order of `labels`; None: the labels themselves.
    sample_weight : None, default=None
        Must be None: a weighted record would count more than once, and need more noise to match.
    digits : int, default=2
        Decimals in the text, from 1 to 17.
    output_dict : bool, default=False
        Whether to return a dictionary rather than a text.
    zero_division : float or "warn", default=0.0
        What 0/0 is, by the noisy counts: 0 or 1. "warn" is 0 without a warning, which would tell of the data.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Returns
    -------
    str or dict
        The table, in the layout of scikit-learn; or a dictionary with "precision", "recall", "f1-score" and
        "support" of each label, "accuracy", "macro avg" and "weighted avg". Supports are noisy too: fractions
        in the dictionary, rounded in the text.
        `with_result` gives the `PrivateResult`, which holds all that may be published.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_f1_score : One number, more accurate than its place in a report.
    ConfusionSummary : The same release from pieces.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given the model, the number of records and the
    arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record is
    added or removed, and the number of records is not public.

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
    result: PrivateResult[str | LabelTable] = CLASSIFICATION_REPORT.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, labels=labels, target_names=target_names,
        sample_weight=sample_weight, digits=digits, output_dict=output_dict, zero_division=zero_division,
        groups=groups, max_records=max_records, neighboring=neighboring, accountant=accountant,
        random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value
