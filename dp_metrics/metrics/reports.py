"""Several private metrics in one call, from one budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.losses import absolute_error, squared_error
from dp_metrics.inputs.options import check_bounds, check_digits, check_zero_division
from dp_metrics.inputs.shape import Shape, check_same_columns
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import UNIT, Metric
from dp_metrics.metrics._multioutput import error_plan, r2_from_parts
from dp_metrics.metrics._probabilities import LabelledProbabilities
from dp_metrics.metrics.labels.count_formulas import ratio, sizes_of_labels
from dp_metrics.metrics.labels.counts import Confusion, confusion_row
from dp_metrics.metrics.labels.layouts import Counts, matrix_layout
from dp_metrics.release.bias import biases_in_words, usual_bias
from dp_metrics.release.parts.variance import VarianceOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import ReleasedNumbers
from dp_metrics.release.result import PrivateResult

Table: TypeAlias = dict[str, dict[str, float | str]]
LabelTable: TypeAlias = dict[str, dict[str, float] | float]


def _regression_plan(shape: Shape, *, bounds: Any, split: Any, digits: Any, output_dict: bool) -> Plan:
    table = _Table.of(("mse", "mae", "variance"), split, digits, output_dict)
    limits = check_bounds(bounds)
    check_same_columns(*(one.names for one in shape.arguments))
    if shape.is_wide:
        raise ValueError("y_true and y_pred should be 1d arrays: make one report for each output.")
    errors = [error_plan(loss, shape, bounds=limits) for loss in (squared_error, absolute_error)]
    parts = (*(plan.parts[0] for plan in errors), VarianceOf(limits, "y_true"))
    table = replace(table, rows=_regression_rows, made_of=_REGRESSION)
    return Plan(parts, errors[0].reader, table, table.shares)


_REGRESSION = {"mse": (0, True), "rmse": (0, True), "r2": (0, False), "variance": (2, True)}


def _regression_rows(mse: float, mae: float, variance: float) -> dict[str, float]:
    r2 = r2_from_parts(mse, variance)
    return {"mse": mse, "rmse": math.sqrt(mse), "mae": mae, "r2": r2, "variance": variance}


REGRESSION_REPORT = Metric(
    name="private_regression_report",
    exact_function="",
    plan=_regression_plan,
    options={"bounds": None, "split": None, "digits": 4, "output_dict": False},
    limit=UNIT,
    from_unit=lambda x: (x, 0 * x),  # each number of the report changes with the targets
)


def private_regression_report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    split: Mapping[str, float] | None = None,
    digits: int = 4,
    output_dict: bool = False,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> str | Table:
    """Report the usual regression metrics with epsilon-differential privacy for all of them together.

    Three releases share epsilon: the mean squared error, the mean absolute error and the variance of the
    targets. RMSE and R^2 are computed from them at no further cost.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True targets, finite.
    y_pred : array-like of shape (n_samples,)
        Predictions of a model that was not trained on these records.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from the
        data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors are
        as large as it allows, and make most of the result, see `mechanism`.
    split : mapping of str to float or None, default=None
        Relative parts of epsilon for "mse", "mae" and "variance", all positive; None for equal ones.
    digits : int, default=4
        Significant digits in the table, from 1 to 17.
    output_dict : bool, default=False
        Whether to return a dictionary rather than the text of a table.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str or mechanism object, default="adaptive"
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit (pass `bounds`) also "geometric", "inverse_sensitivity", "piecewise_laplace",
        "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you know beforehand that
        about 3 / epsilon to 60 / epsilon records reach the limit and make most of the result: the default may
        miss them, and err up to 100 times as much.
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
        A table of metrics, each with its value and what it cost; or a dictionary from the name of each metric
        to its "value" and "epsilon", with the total under "total", and "bias" where it usually errs one way.
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

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Sections 4 and 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_regression_report
    >>> y_true = np.linspace(0, 10, 1000)
    >>> report = private_regression_report(y_true, y_true + 1, epsilon=3.0, output_dict=True)
    >>> report["mse"]["epsilon"], report["rmse"]["epsilon"], report["total"]["epsilon"]
    (1.0, 0.0, 3.0)
    """
    result: PrivateResult[str | Table] = REGRESSION_REPORT.release(
        y_true=y_true, y_pred=y_pred, epsilon=epsilon, bounds=bounds, split=split, digits=digits,
        output_dict=output_dict, neighboring=neighboring, mechanism=mechanism, accountant=accountant,
        random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _probability_plan(
    shape: Shape,
    *,
    labels: ArrayLike | None,
    max_loss: Any,
    split: Any,
    digits: Any,
    output_dict: bool,
) -> Plan:
    table = _Table.of(("accuracy", "log_loss", "brier_score_loss"), split, digits, output_dict)
    records = LabelledProbabilities.of(shape, labels=labels)
    return Plan(
        (records.wrong(), records.log_loss(max_loss), records.brier_loss()),
        records.reader,
        replace(table, rows=_probability_rows, made_of={"log_loss": (1, True)}),
        table.shares,
        ("geometric", None, "geometric"),
        records.unstated,
    )


def _probability_rows(wrong: float, log_loss: float, brier_loss: float) -> dict[str, float]:
    return {"accuracy": 1.0 - wrong, "log_loss": log_loss, "brier_score_loss": brier_loss}


PROBABILITY_REPORT = Metric(
    name="private_probability_report",
    exact_function="",
    plan=_probability_plan,
    data=("y_true", "y_proba"),
    responses=("predict_proba",),
    options={"labels": None, "max_loss": None, "split": None, "digits": 4, "output_dict": False},
    from_unit=lambda x: (np.ones_like(x), x),
)


def private_probability_report(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    max_loss: float | None = None,
    split: Mapping[str, float] | None = None,
    digits: int = 4,
    output_dict: bool = False,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> str | Table:
    """Report the usual metrics of predicted probabilities with epsilon-differential privacy for all together.

    Three releases share epsilon: accuracy, log loss and Brier score loss. Each record counts as predicted to
    have its most probable label: the first of those that tie, and the second of two if its single column
    exceeds one half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them, or named
        by the labels in any order; a single column holds the probability of the second label. They are used
        as they are: rows need not sum to 1, and no warning tells whether they do.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`. Members of an `enum.Enum` without an order of their own are sorted as it defines them.
    max_loss : float or None, default=None
        Public cap of one record's log loss, in nats. None: what scikit-learn's clipping of probabilities
        implies.
    split : mapping of str to float or None, default=None
        Relative parts of epsilon for "accuracy", "log_loss" and "brier_score_loss", all positive; None for
        equal ones.
    digits : int, default=4
        Significant digits in the table, from 1 to 17.
    output_dict : bool, default=False
        Whether to return a dictionary rather than the text of a table.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    mechanism : str, mechanism object or None, default=None
        None: "geometric" for accuracy and the Brier score loss, "adaptive" for log loss.
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
        A table of metrics, each with its value and what it cost; or a dictionary from the name of each metric
        to its "value" and "epsilon", with the total under "total", and "bias" where it usually errs one way.
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

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
    Section 5.1.

    Examples
    --------
    >>> from dp_metrics import private_probability_report
    >>> y_true, y_proba = [0, 1, 1, 0] * 250, [0.1, 0.9, 0.8, 0.65] * 250
    >>> report = private_probability_report(y_true, y_proba, epsilon=3.0, output_dict=True)
    >>> report["accuracy"]["epsilon"], report["total"]["epsilon"]
    (1.0, 3.0)
    """
    result: PrivateResult[str | Table] = PROBABILITY_REPORT.release(
        y_true=y_true, y_proba=y_proba, epsilon=epsilon, labels=labels, max_loss=max_loss, split=split,
        digits=digits, output_dict=output_dict, neighboring=neighboring, mechanism=mechanism,
        accountant=accountant, random_state=random_state, spend_name=spend_name,
    )  # fmt: skip
    return result.value


def _labels_plan(
    shape: Shape,
    *,
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
    return confusion.plan()


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
    private_probability_report : Accuracy, log loss and Brier score loss of predicted probabilities.
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


@dataclass(frozen=True)
class _Table:
    """The checked options of a report, and the table that it prints; a `Plan` calls it to make the report.

    Parameters
    ----------
    names : tuple of str
        The metrics that are released.
    shares : tuple of Fraction
        The part of epsilon of each.
    digits : int
        Significant digits.
    output_dict : bool
        Whether to return a dictionary.
    rows : callable
        The rows, of what is released.
    made_of : mapping
        Of a row, which released number it rests on, and whether it rises with that.
    """

    names: tuple[str, ...]
    shares: tuple[Fraction, ...]
    digits: int
    output_dict: bool
    rows: Callable[..., dict[str, float]] = dict
    made_of: Mapping[str, tuple[int, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, names: tuple[str, ...], split: Any, digits: Any, output_dict: bool) -> Self:
        """Return the table with the options as the caller gave them, or raise."""
        decimals = check_digits(digits)
        return cls(names, tuple(_shares(split, names).values()), decimals, output_dict)

    def __call__(self, released: ReleasedNumbers) -> str | Table:
        """Return the report."""
        # a metric that is computed from others costs nothing
        cost = {
            name: float(released.epsilon * share) for name, share in zip(self.names, self.shares, strict=True)
        }
        table: Table = {
            name: {"value": value, "epsilon": cost.get(name, 0.0)}
            for name, value in self.rows(*released.values).items()
        }
        total, biases = float(released.epsilon), self._biases(released)
        if not self.output_dict:
            return self._text(table, total) + "".join(f"\n{one}\n" for one in biases_in_words(biases))
        for name, bias in biases.items():
            table[name]["bias"] = bias
        return {**table, "total": {"epsilon": total, "neighboring": released.neighboring.value}}

    def bias(self, released: ReleasedNumbers) -> str | None:
        """Return which way rows usually err."""
        return " ".join(biases_in_words(self._biases(released))) or None

    def _biases(self, released: ReleasedNumbers) -> dict[str, str]:
        """Return which way each row usually errs, where it does."""
        clipped = released.clipped or (0.0,) * len(released.values)
        told = {name: usual_bias(clipped[at], rises=rises) for name, (at, rises) in self.made_of.items()}
        return {name: bias for name, bias in told.items() if bias is not None}

    def _text(self, table: Table, total: float) -> str:
        width, digits = max(map(len, table)), self.digits
        lines = [f"{'':{width}}  {'value':>12}  {'epsilon':>10}", ""]
        for name, row in table.items():
            value, cost = (f"{row[key]:.{digits}g}" for key in ("value", "epsilon"))
            lines.append(f"{name:{width}}  {value:>12}  {cost:>10}")
        return "\n".join([*lines, "", f"{'total':{width}}  {'':>12}  {total:>10.{digits}g}"]) + "\n"


def _shares(split: Any, names: tuple[str, ...]) -> dict[str, Fraction]:
    """Return the exact share of epsilon of each release, from relative parts as people typed them."""
    if split is None:
        return dict.fromkeys(names, Fraction(1, len(names)))
    parts = dict(split) if isinstance(split, Mapping) else {}
    numbers = [float(part) for part in parts.values() if isinstance(part, int | float | np.number | Fraction)]
    if set(parts) != set(names) or not all(0 < x < math.inf for x in numbers) or len(numbers) != len(names):
        raise ValueError(f"split must give a positive, finite part of epsilon to each of {names}.")
    exact = {name: Fraction(repr(float(parts[name]))) for name in names}
    return {name: part / sum(exact.values()) for name, part in exact.items()}
