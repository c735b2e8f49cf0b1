"""Several private metrics in one call, from one budget."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.losses import absolute_error, squared_error
from dp_metrics.inputs.options import check_digits
from dp_metrics.inputs.records import as_targets, check_bounds
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics._catalogue import UNIT, Metric
from dp_metrics.metrics._multioutput import error_plan, r2_from_parts
from dp_metrics.metrics.classification import LabelledProbabilities
from dp_metrics.release.queries import Query, Variance
from dp_metrics.release.release import Plan, Released

__all__ = ["private_classification_report", "private_regression_report"]

Table: TypeAlias = dict[str, dict[str, Any]]


def _regression_plan(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    private_n: bool,
    bounds: Any,
    split: Any,
    digits: Any,
    output_dict: bool,
) -> Plan:
    layout = _Layout(("mse", "mae", "variance"), split, digits, output_dict)
    limits = check_bounds(bounds)
    true, pred = as_targets(y_true, y_pred, private_n=private_n)
    if true.ndim != 1:
        raise ValueError("y_true and y_pred should be 1d arrays: make one report for each output.")
    options: dict[str, Any] = {"private_n": private_n, "bounds": limits}
    errors = [error_plan(loss, true, pred, **options).queries[0] for loss in (squared_error, absolute_error)]

    def rows(mse: float, mae: float, variance: float) -> dict[str, float]:
        r2 = r2_from_parts(mse, variance)
        return {"mse": mse, "rmse": math.sqrt(mse), "mae": mae, "r2": r2, "variance": variance}

    return layout.plan((*errors, Variance(true, limits, "y_true")), rows)


REGRESSION_REPORT = Metric(
    name="private_regression_report",
    twin="",
    plan=_regression_plan,
    options={"bounds": None, "split": None, "digits": 4, "output_dict": False},
    limit=UNIT,
    from_unit=lambda x: (x, 0 * x),  # all that is released changes with the targets
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
    label: str | None = None,
    return_result: bool = False,
) -> str | Table | Any:
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
        data.
    split : mapping of str to float or None, default=None
        Relative parts of epsilon for "mse", "mae" and "variance", all positive; None for equal ones.
    digits : int, default=4
        Significant digits in the table, from 1 to 17.
    output_dict : bool, default=False
        Whether to return a dictionary rather than the text of a table.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: a record's contents, the number of records being public; or whether it is
        there at all. The second costs accuracy, and takes neither weights nor groups.
    mechanism : str or mechanism object, default="adaptive"
        "adaptive", which errs towards zero on heavy tails, "hazard", "above_threshold", or, for a metric with
        a public limit (pass `bounds`), "geometric", "inverse_sensitivity", "piecewise_laplace" or "laplace";
        or an object such as `AboveThreshold.paper()`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    label : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric.
    return_result : bool, default=False
        Whether to return a `PrivateResult`, which also holds what may be published about the release.

    Returns
    -------
    str or dict
        A table of metrics, each with its value and what it cost; or a dictionary from the name of each metric
        to its "value" and "epsilon", with the total under "total".
        With ``return_result=True`` a `PrivateResult` with that value.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option is, or if the accountant counts releases
        under another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

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
    return REGRESSION_REPORT.release(locals())


def _classification_plan(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    private_n: bool,
    labels: ArrayLike | None,
    max_loss: Any,
    split: Any,
    digits: Any,
    output_dict: bool,
) -> Plan:
    layout = _Layout(("accuracy", "log_loss", "brier_score_loss"), split, digits, output_dict)
    records = LabelledProbabilities(y_true, y_proba, labels=labels, private_n=private_n)
    queries = (records.wrong(), records.log_loss(max_loss), records.brier_loss())

    def rows(wrong: float, log_loss: float, brier_loss: float) -> dict[str, float]:
        return {"accuracy": 1.0 - wrong, "log_loss": log_loss, "brier_score_loss": brier_loss}

    return layout.plan(queries, rows, mechanisms=("geometric", None, "geometric"))


CLASSIFICATION_REPORT = Metric(
    name="private_classification_report",
    twin="",
    plan=_classification_plan,
    data=("y_true", "y_proba"),
    options={"labels": None, "max_loss": None, "split": None, "digits": 4, "output_dict": False},
    from_unit=lambda x: (np.ones_like(x), x),
)


def private_classification_report(
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
    label: str | None = None,
    return_result: bool = False,
) -> str | Table | Any:
    """Report the usual metrics of predicted probabilities with epsilon-differential privacy for all together.

    Three releases share epsilon: accuracy, log loss and Brier score loss. Each record counts as predicted to
    have its most probable label: the first of those that tie, and the second of two if its single column
    exceeds one half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them; a single
        column holds the probability of the second label. They are used as they are: rows need not sum to 1,
        and no warning tells whether they do.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`.
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
        What one person can change: a record's contents, the number of records being public; or whether it is
        there at all. The second costs accuracy, and takes neither weights nor groups.
    mechanism : str, mechanism object or None, default=None
        None: "geometric" for accuracy and the Brier score loss, "adaptive" for log loss.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    label : str or None, default=None
        The name of this release in the accountant's history; None: the name of the metric.
    return_result : bool, default=False
        Whether to return a `PrivateResult`, which also holds what may be published about the release.

    Returns
    -------
    str or dict
        A table of metrics, each with its value and what it cost; or a dictionary from the name of each metric
        to its "value" and "epsilon", with the total under "total".
        With ``return_result=True`` a `PrivateResult` with that value.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option is, or if the accountant counts releases
        under another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

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
    >>> from dp_metrics import private_classification_report
    >>> y_true, y_proba = [0, 1, 1, 0] * 250, [0.1, 0.9, 0.8, 0.65] * 250
    >>> report = private_classification_report(y_true, y_proba, epsilon=3.0, output_dict=True)
    >>> report["accuracy"]["epsilon"], report["total"]["epsilon"]
    (1.0, 3.0)
    """
    return CLASSIFICATION_REPORT.release(locals())


class _Layout:
    """The checked options of a report, and the table that it prints.

    Parameters
    ----------
    names : tuple of str
        The metrics that are released.
    split, digits, output_dict
        As the caller got them.
    """

    def __init__(self, names: tuple[str, ...], split: Any, digits: Any, output_dict: bool) -> None:
        self._digits, self._output_dict = check_digits(digits), output_dict
        self._shares = _shares(split, names)

    def plan(
        self,
        queries: tuple[Query, ...],
        rows: Callable[..., dict[str, float]],
        mechanisms: tuple[str | None, ...] = (),
    ) -> Plan:
        """Return the plan of the queries, and of the rows that follow from what they release."""
        return Plan(queries, partial(self._result, rows=rows), tuple(self._shares.values()), mechanisms)

    def _result(self, released: Released, rows: Callable[..., dict[str, float]]) -> str | Table:
        # a metric that is computed from others costs nothing
        cost = {name: float(released.epsilon * share) for name, share in self._shares.items()}
        table: Table = {
            name: {"value": value, "epsilon": cost.get(name, 0.0)}
            for name, value in rows(*released.values).items()
        }
        total = float(released.epsilon)
        if not self._output_dict:
            return self._text(table, total)
        return {**table, "total": {"epsilon": total, "neighboring": released.neighboring}}

    def _text(self, table: Table, total: float) -> str:
        width, digits = max(map(len, table)), self._digits
        lines = [f"{'':{width}}  {'value':>12}  {'epsilon':>10}", ""]
        for name, row in table.items():
            value, cost = (f"{row[key]:.{digits}g}" for key in ("value", "epsilon"))
            lines.append(f"{name:{width}}  {value:>12}  {cost:>10}")
        return "\n".join([*lines, "", f"{'total':{width}}  {'':>12}  {total:>10.{digits}g}"]) + "\n"


def _shares(split: Mapping[str, float] | None, names: tuple[str, ...]) -> dict[str, Fraction]:
    """Return the exact share of epsilon of each release, from relative parts as people typed them."""
    if split is None:
        return dict.fromkeys(names, Fraction(1, len(names)))
    parts = dict(split) if isinstance(split, Mapping) else {}
    numbers = [float(part) for part in parts.values() if isinstance(part, int | float | np.number | Fraction)]
    if set(parts) != set(names) or not all(0 < x < math.inf for x in numbers) or len(numbers) != len(names):
        raise ValueError(f"split must give a positive, finite part of epsilon to each of {names}.")
    exact = {name: Fraction(repr(float(parts[name]))) for name in names}
    return {name: part / sum(exact.values()) for name, part in exact.items()}
