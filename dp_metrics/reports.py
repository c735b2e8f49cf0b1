"""Several private metrics in one call, from one budget."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics import classification, regression
from dp_metrics._docs import documented
from dp_metrics._queries import Query, Variance
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._targets import r2_from_parts
from dp_metrics._validation import as_targets, check_bounds, check_labels, encoded_block, probability_block
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.losses import zero_one_loss
from dp_metrics.mechanisms import Mechanism

__all__ = ["private_classification_report", "private_regression_report"]

Table = dict[str, dict[str, Any]]


@documented
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
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
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
    {epsilon}
    {bounds}
    split : mapping of str to float or None, default=None
        Relative parts of epsilon for "mse", "mae" and "variance", all positive; None for equal ones.
    digits : int, default=4
        Significant digits in the table.
    output_dict : bool, default=False
        Whether to return a dictionary rather than the text of a table.
    {neighboring}
    {mechanism: pass `bounds`}
    {accountant}
    {random_state}

    Returns
    -------
    str or dict
        A table of metrics, each with its value and what it cost; or a dictionary from the name of each metric
        to its "value" and "epsilon", with the total under "total".

    {raises}

    Notes
    -----
    {guarantee_no_groups}

    References
    ----------
    {paper: Sections 4 and 5.2}

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_regression_report
    >>> y_true = np.linspace(0, 10, 1000)
    >>> report = private_regression_report(y_true, y_true + 1, epsilon=3.0, output_dict=True)
    >>> report["mse"]["epsilon"], report["rmse"]["epsilon"], report["total"]["epsilon"]
    (1.0, 0.0, 3.0)
    """
    release = Release("private_regression_report", epsilon, mechanism, accountant, random_state, neighboring)
    shares = _shares(split, ("mse", "mae", "variance"))
    limits = check_bounds(bounds)
    true, pred = as_targets(y_true, y_pred, private_n=release.private_n)
    if true.ndim != 1:
        raise ValueError("y_true and y_pred should be 1d arrays: make one report for each output.")
    options = _no_weights(release) | {"bounds": limits}
    queries: dict[str, Query] = {
        "mse": regression.LOSS_METRICS["private_mse"].query(true, pred, **options),
        "mae": regression.LOSS_METRICS["private_mae"].query(true, pred, **options),
        "variance": Variance(true, limits, "y_true"),
    }
    values = _draw(release, queries, shares)
    mse, variance = values["mse"].value, values["variance"].value
    rows = {
        "mse": values["mse"],
        "rmse": _Row(math.sqrt(mse)),
        "mae": values["mae"],
        "r2": _Row(r2_from_parts(mse, variance)),
        "variance": values["variance"],
    }
    return _finish(rows, release, digits, output_dict)


@documented
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
) -> str | Table:
    """Report the usual metrics of predicted probabilities with epsilon-differential privacy for all together.

    Three releases share epsilon: accuracy, log loss and Brier score loss. Each record counts as predicted to
    have its most probable label: the first of those that tie, and the second of two if its single column
    exceeds one half.

    Parameters
    ----------
    {labels_true}
    {y_proba}
    {epsilon}
    {labels}
    max_loss : float or None, default=None
        Public cap of one record's log loss, in nats. None: what scikit-learn's clipping of probabilities
        implies.
    split : mapping of str to float or None, default=None
        Relative parts of epsilon for "accuracy", "log_loss" and "brier_score_loss", all positive; None for
        equal ones.
    digits : int, default=4
        Significant digits in the table.
    output_dict : bool, default=False
        Whether to return a dictionary rather than the text of a table.
    {neighboring}
    mechanism : str, mechanism object or None, default=None
        None: "geometric" for accuracy where the number of records is public, and "hazard" for the rest.
    {accountant}
    {random_state}

    Returns
    -------
    str or dict
        A table of metrics, each with its value and what it cost; or a dictionary from the name of each metric
        to its "value" and "epsilon", with the total under "total".

    {raises}

    Notes
    -----
    {guarantee_no_groups}

    References
    ----------
    {paper: Section 5.1}

    Examples
    --------
    >>> from dp_metrics import private_classification_report
    >>> y_true, y_proba = [0, 1, 1, 0] * 250, [0.1, 0.9, 0.8, 0.65] * 250
    >>> report = private_classification_report(y_true, y_proba, epsilon=3.0, output_dict=True)
    >>> report["accuracy"]["epsilon"], report["total"]["epsilon"]
    (1.0, 3.0)
    """
    release = Release(
        "private_classification_report",
        epsilon,
        "hazard" if mechanism is None else mechanism,
        accountant,
        random_state,
        neighboring,
    )
    shares = _shares(split, ("accuracy", "log_loss", "brier_score_loss"))
    options = _no_weights(release) | {"labels": labels}
    metrics = classification.LOSS_METRICS
    log_loss = metrics["private_log_loss"].query(y_true, y_proba, max_loss=max_loss, **options)
    queries: dict[str, Query] = {
        "accuracy": replace(
            log_loss,
            kernel=partial(_wrong, labels=check_labels(labels, log_loss.records[1].shape[1])),
            cap=1.0,
            paper_sum=False,
            counts=True,
        ),
        "log_loss": log_loss,
        "brier_score_loss": metrics["private_brier_score_loss"].query(*log_loss.records, **options),
    }
    own = {"accuracy": "geometric"} if mechanism is None and not release.private_n else {}
    rows = _draw(release, queries, shares, own)
    rows["accuracy"] = _Row(1.0 - rows["accuracy"].value, rows["accuracy"].epsilon)
    return _finish(rows, release, digits, output_dict)


def _wrong(true: NDArray[Any], probabilities: NDArray[Any], *, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the loss of predicting the most probable label."""
    codes, proba = encoded_block(true, labels), probability_block(probabilities)
    predicted = proba[:, 0] > 0.5 if proba.shape[1] == 1 else np.argmax(proba, axis=1)
    return zero_one_loss(predicted != codes)


def _no_weights(release: Release) -> dict[str, Any]:
    return {"private_n": release.private_n, "sample_weight": None, "groups": None}


@dataclass(frozen=True)
class _Row:
    """One metric of a report; one that is computed from others costs nothing."""

    value: float
    epsilon: Fraction = Fraction(0)


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


def _draw(
    release: Release,
    queries: Mapping[str, Query],
    shares: Mapping[str, Fraction],
    mechanisms: Mapping[str, str] | None = None,
) -> dict[str, _Row]:
    names = list(queries)
    values = release.draw_all(
        [queries[name] for name in names],
        [shares[name] for name in names],
        [(mechanisms or {}).get(name) for name in names],
    )
    return {
        name: _Row(value, release.epsilon * shares[name]) for name, value in zip(names, values, strict=True)
    }


def _finish(rows: Mapping[str, _Row], release: Release, digits: int, output_dict: bool) -> str | Table:
    if output_dict:
        table: Table = {
            name: {"value": row.value, "epsilon": float(row.epsilon)} for name, row in rows.items()
        }
        table["total"] = {"epsilon": float(release.epsilon), "neighboring": release.neighboring}
        return table
    lines = [
        (name, f"{row.value:.{digits}g}", f"{float(row.epsilon):.{digits}g}") for name, row in rows.items()
    ]
    width = max(len(name) for name in rows)
    text = [f"{'':{width}}  {'value':>12}  {'epsilon':>10}", ""]
    text += [f"{name:{width}}  {value:>12}  {cost:>10}" for name, value, cost in lines]
    text += ["", f"{'total':{width}}  {'':>12}  {float(release.epsilon):>10.{digits}g}"]
    return "\n".join(text) + "\n"
