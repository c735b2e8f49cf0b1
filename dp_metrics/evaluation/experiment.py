"""Private metrics of a trained model beside the exact error that their output laws promise.

The true values in the result are NOT private: this is a study on public data.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics import losses
from dp_metrics._release import loss_output_bounds, variance_output_bounds
from dp_metrics.classification import private_log_loss
from dp_metrics.evaluation.models import Evaluation
from dp_metrics.mechanisms import AboveThreshold, get_mechanism
from dp_metrics.regression import private_mae, private_mse
from dp_metrics.statistics import private_variance

__all__ = ["ERROR_CAP", "MECHANISM_LABELS", "Row", "run_experiment"]

ERROR_CAP = 10.0
"""Without public bounds, errors are capped at this multiple of the true value: rare huge overshoots would
otherwise rule the mean, which then says nothing."""

_MECHANISMS: dict[str, Callable[[], Any]] = {
    "hazard": lambda: get_mechanism("hazard"),
    "above_threshold": lambda: get_mechanism("above_threshold"),
    "paper": AboveThreshold.paper,
    "inverse_sensitivity": lambda: get_mechanism("inverse_sensitivity"),
    "piecewise_laplace": lambda: get_mechanism("piecewise_laplace"),
    "laplace": lambda: get_mechanism("laplace"),
}
_NEED_BOUNDS = ("inverse_sensitivity", "piecewise_laplace", "laplace")

MECHANISM_LABELS: tuple[str, ...] = tuple(_MECHANISMS)
"""The mechanisms that are compared, in the order of tables and plots."""


@dataclass(frozen=True)
class Row:
    """One private release of one metric, and what can be said about it on public data.

    Attributes
    ----------
    dataset, metric, mechanism : str
        What was released, and how; metric is the name of the public function.
    epsilon : float
        Privacy parameter of this release alone.
    n_test : int
        Number of records in the test split.
    bounded : bool
        Whether the metric has a public range.
    release : float or None
        One private release, in units of the metric; None if the mechanism needs public bounds and there
        are none.
    expected_error : float or None
        Exact expected absolute error of such a release, from its law; not private.
    error_cap : float or None
        Single errors above this count as this much in `expected_error`; None: not capped.
    true_value_not_private : float
        The metric itself. NOT private.
    sampling_error_not_private : float
        Standard error that the metric has anyway, because the test split is a sample. NOT private.
    """

    dataset: str
    metric: str
    mechanism: str
    epsilon: float
    n_test: int
    bounded: bool
    release: float | None
    expected_error: float | None
    error_cap: float | None
    true_value_not_private: float
    sampling_error_not_private: float


@dataclass(frozen=True, eq=False)
class _Metric:
    """A metric bound to a test split: its terms, whose mean it is, its release and its output bounds."""

    name: str
    bounded: bool
    terms: NDArray[np.float64]
    release: Callable[..., float]
    output_bounds: Callable[..., Any]


def _regression_metrics(evaluation: Evaluation) -> list[_Metric]:
    y, prediction, bounds = evaluation.y_test, evaluation.prediction, evaluation.dataset.bounds
    if bounds is not None:
        y = np.clip(y, *bounds)  # as the metrics themselves do

    def mean_loss(metric: Callable[..., float], kernel: Callable[..., Any]) -> _Metric:
        cap = None if bounds is None else float(kernel(np.float64(bounds[0]), np.float64(bounds[1])))
        values = losses.clamp(kernel(y, prediction), cap)
        return _Metric(
            metric.__name__,
            bounds is not None,
            values,
            lambda **options: metric(y, prediction, bounds=bounds, **options),
            lambda **options: loss_output_bounds(values, max_loss=cap, **options),
        )

    variance = _Metric(
        private_variance.__name__,
        bounds is not None,
        np.square(y - np.mean(y)),
        lambda **options: private_variance(y, bounds=bounds, **options),
        lambda **options: variance_output_bounds(y, bounds=bounds, **options),
    )
    return [
        mean_loss(private_mse, losses.squared_error),
        mean_loss(private_mae, losses.absolute_error),
        variance,
    ]


def _classification_metrics(evaluation: Evaluation) -> list[_Metric]:
    y, proba, max_loss = evaluation.y_test, evaluation.prediction, evaluation.max_loss
    resolution = float(np.finfo(np.float64).eps)
    columns = proba if proba.ndim == 2 else proba[:, np.newaxis]
    cap = losses.log_loss_cap(resolution, max_loss)
    values = losses.clamp(losses.log_loss(y, columns, resolution), cap)
    return [
        _Metric(
            private_log_loss.__name__,
            True,
            values,
            lambda **options: private_log_loss(y, proba, max_loss=max_loss, **options),
            lambda **options: loss_output_bounds(values, max_loss=cap, paper_scale=1.0 / len(y), **options),
        )
    ]


def run_experiment(evaluation: Evaluation, epsilons: Sequence[float]) -> list[Row]:
    """Release every metric of a trained model with every mechanism, and compute the exact expected errors.

    Parameters
    ----------
    evaluation : Evaluation
        A trained model's predictions for its test split.
    epsilons : sequence of float
        Privacy parameters; each release costs its own.

    Returns
    -------
    list of Row
        One row for each metric, epsilon and mechanism, in that order. Releases are drawn from the operating
        system's entropy and differ from call to call; everything else is computed.

    Notes
    -----
    Without public bounds, expected errors are of errors capped at 10 times the true value.
    """
    regression = evaluation.dataset.task == "regression"
    metrics = _regression_metrics(evaluation) if regression else _classification_metrics(evaluation)
    rows = []
    for metric in metrics:
        n_test = len(metric.terms)
        true_value = math.fsum(metric.terms) / n_test
        template = Row(
            dataset=evaluation.dataset.name,
            metric=metric.name,
            mechanism="",
            epsilon=0.0,
            n_test=n_test,
            bounded=metric.bounded,
            release=None,
            expected_error=None,
            error_cap=None if metric.bounded else ERROR_CAP * true_value,
            true_value_not_private=true_value,
            sampling_error_not_private=float(np.std(metric.terms)) / math.sqrt(n_test),
        )
        for epsilon in epsilons:
            for label, make in _MECHANISMS.items():
                row = replace(template, mechanism=label, epsilon=epsilon)
                if metric.bounded or label not in _NEED_BOUNDS:
                    row = _released(row, metric, make())
                rows.append(row)
    return rows


def _released(row: Row, metric: _Metric, mechanism: Any) -> Row:
    output_bounds = metric.output_bounds(mechanism=mechanism, epsilon=row.epsilon)
    law = mechanism.output_distribution(output_bounds, row.epsilon)
    cap = math.inf if row.error_cap is None else row.error_cap
    return replace(
        row,
        release=metric.release(mechanism=mechanism, epsilon=row.epsilon),
        expected_error=float(law.mean_absolute_error(row.true_value_not_private, cap=cap)),
    )
