"""The metrics on Dask collections, for data that do not fit into memory; needs the extra `dask`.

Each partition becomes a summary where it is, summaries are merged in a tree, and the client releases from the
one that is left. Any scheduler will do, and the result is, to the bit, that of the metric of the same name
with all records at once, however they are partitioned. A task that is lost with its worker is run again by
Dask; the budget is spent and the release is drawn once, on the client, when all data have been read. Workers
should be of one kind: the last bit of a logarithm may differ between kinds of processors.

`groups` are refused, because the records of one person may lie in several partitions. `private_quantile` and
`private_median_absolute_error` are missing because a summary of bounded size does not know a quantile, and
`private_roc_auc_score` because it compares every record with every other. `summarised` gives a summary, from
which one release tells all metrics of labels, or all curves.

A summary keeps as many of the most extreme records as a release at this epsilon can use, and at least 2,048.
With more records than that, or a private number of them, a variance, and so R^2, is released by `Hazard`
where the metric in memory takes two stages: give both ``mechanism="hazard"`` to get the same bits.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dp_metrics.metrics import METRICS, classification, other_losses, regression_errors, reports, statistics
from dp_metrics.metrics.labels import confusion, precision_recall
from dp_metrics.metrics.scores import calibration, curves, top_k
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.with_result import arguments_of, set_result
from dp_metrics.streaming._collections import released, summarised

__all__ = [
    "private_accuracy_score",
    "private_average_precision_score",
    "private_balanced_accuracy_score",
    "private_brier_score_loss",
    "private_calibration_curve",
    "private_classification_report",
    "private_cohen_kappa_score",
    "private_confusion_matrix",
    "private_expected_calibration_error",
    "private_f1_score",
    "private_jaccard_score",
    "private_log_loss",
    "private_mae",
    "private_matthews_corrcoef",
    "private_mean",
    "private_mean_absolute_error",
    "private_mean_absolute_percentage_error",
    "private_mean_loss",
    "private_mean_pinball_loss",
    "private_mean_poisson_deviance",
    "private_mean_squared_error",
    "private_mean_squared_log_error",
    "private_mse",
    "private_precision_recall_curve",
    "private_precision_score",
    "private_r2_score",
    "private_recall_score",
    "private_rmse",
    "private_roc_curve",
    "private_root_mean_squared_error",
    "private_specificity_score",
    "private_std",
    "private_top_k_accuracy_score",
    "private_variance",
    "private_zero_one_loss",
    "summarised",
]

P = ParamSpec("P")
R = TypeVar("R")

_DIFFERENCE = """{summary}

As `dp_metrics.{name}`, whose help describes the parameters, with its guarantee and its results, for
Dask collections. What differs:

- The records, and weights where there are any, are arrays, series or data frames of Dask that have the same
  partitions.
- Private data stay where they are: each partition becomes a summary on its worker. Only one summary of all
  records, which is private too, comes to the client, where the budget is spent and the result drawn, once.
- Groups are refused, because the records of one person may lie in several partitions: a person with several
  records is protected record by record only.
"""


def _on_dask(metric: Callable[P, R]) -> Callable[P, R]:
    """Return the function for Dask collections that takes the arguments of a metric."""
    name = metric.__name__
    release = functools.partial(released, METRICS[name])

    @functools.wraps(metric)
    def of_collections(*args: P.args, **kwargs: P.kwargs) -> R:
        result: PrivateResult[R] = release(**arguments_of(metric, args, kwargs))
        return result.value

    set_result(of_collections, release)
    of_collections.__module__ = __name__
    of_collections.__doc__ = _DIFFERENCE.format(summary=(metric.__doc__ or "").split("\n")[0], name=name)
    return of_collections


private_mse = _on_dask(regression_errors.private_mse)
private_rmse = _on_dask(regression_errors.private_rmse)
private_mae = _on_dask(regression_errors.private_mae)
private_r2_score = _on_dask(regression_errors.private_r2_score)
private_mean_loss = _on_dask(statistics.private_mean_loss)
private_mean_absolute_percentage_error = _on_dask(other_losses.private_mean_absolute_percentage_error)
private_mean_squared_log_error = _on_dask(other_losses.private_mean_squared_log_error)
private_mean_pinball_loss = _on_dask(other_losses.private_mean_pinball_loss)
private_mean_poisson_deviance = _on_dask(other_losses.private_mean_poisson_deviance)
private_log_loss = _on_dask(classification.private_log_loss)
private_brier_score_loss = _on_dask(classification.private_brier_score_loss)
private_zero_one_loss = _on_dask(classification.private_zero_one_loss)
private_accuracy_score = _on_dask(classification.private_accuracy_score)
private_precision_score = _on_dask(precision_recall.private_precision_score)
private_recall_score = _on_dask(precision_recall.private_recall_score)
private_f1_score = _on_dask(precision_recall.private_f1_score)
private_jaccard_score = _on_dask(precision_recall.private_jaccard_score)
private_specificity_score = _on_dask(precision_recall.private_specificity_score)
private_confusion_matrix = _on_dask(confusion.private_confusion_matrix)
private_balanced_accuracy_score = _on_dask(confusion.private_balanced_accuracy_score)
private_matthews_corrcoef = _on_dask(confusion.private_matthews_corrcoef)
private_cohen_kappa_score = _on_dask(confusion.private_cohen_kappa_score)
private_roc_curve = _on_dask(curves.private_roc_curve)
private_precision_recall_curve = _on_dask(curves.private_precision_recall_curve)
private_average_precision_score = _on_dask(curves.private_average_precision_score)
private_calibration_curve = _on_dask(calibration.private_calibration_curve)
private_expected_calibration_error = _on_dask(calibration.private_expected_calibration_error)
private_top_k_accuracy_score = _on_dask(top_k.private_top_k_accuracy_score)
private_variance = _on_dask(statistics.private_variance)
private_std = _on_dask(statistics.private_std)
private_mean = _on_dask(statistics.private_mean)
private_classification_report = _on_dask(reports.private_classification_report)

private_mean_squared_error = private_mse
private_root_mean_squared_error = private_rmse
private_mean_absolute_error = private_mae
