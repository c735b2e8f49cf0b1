"""The metrics on Dask collections, for data that do not fit into memory; needs the extra `dask`.

Each partition becomes a summary where it is, summaries are merged in a tree, and the client releases from the
one that is left. Any scheduler will do, and the result is, to the bit, that of the metric of the same name
with all records at once, however they are partitioned. A task that is lost with its worker is run again by
Dask; the budget is spent and the release is drawn once, on the client, when all data have been read. Workers
should be of one kind: the last bit of a logarithm may differ between kinds of processors.

There are no `groups`, because the records of one person may lie in several partitions. `private_quantile` and
`private_median_absolute_error` are missing because a summary of bounded size does not know a quantile, and
`private_roc_auc_score` because it compares every record with every other. `summarised` gives a summary, from
which one release tells all metrics of labels, or all curves.

With more records than `capacity`, or a private number of them, a variance, and so R^2 and
`private_regression_report`, is released by `Hazard` where the metric in memory takes two stages: give both
``mechanism="hazard"`` to get the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import MultiOutput
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.reports import Table
from dp_metrics.metrics.scores.formulas import CalibrationCurve, PrecisionRecallCurve, RocCurve
from dp_metrics.streaming._collections import released, summarised
from dp_metrics.streaming.summaries import CAPACITY

# from here on written by docs/sources.py from the metrics for data in memory
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
    "private_probability_report",
    "private_r2_score",
    "private_recall_score",
    "private_regression_report",
    "private_rmse",
    "private_roc_curve",
    "private_root_mean_squared_error",
    "private_std",
    "private_top_k_accuracy_score",
    "private_variance",
    "private_zero_one_loss",
    "summarised",
]


def private_mse(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: Any = None,
    multioutput: MultiOutput = "uniform_average",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean squared error with epsilon-differential privacy for the test records.

    As `dp_metrics.private_mse`, with its guarantee, for Dask collections. `capacity` is the public number of
    ranks that a summary of records keeps. A person with several records is protected record by record only.
    """
    return released(METRICS["private_mse"], locals())


def private_rmse(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: Any = None,
    multioutput: MultiOutput = "uniform_average",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Root mean squared error with epsilon-differential privacy for the test records.

    As `dp_metrics.private_rmse`, with its guarantee, for Dask collections. `capacity` is the public number of
    ranks that a summary of records keeps. A person with several records is protected record by record only.
    """
    return released(METRICS["private_rmse"], locals())


def private_mae(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: Any = None,
    multioutput: MultiOutput = "uniform_average",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean absolute error with epsilon-differential privacy for the test records.

    As `dp_metrics.private_mae`, with its guarantee, for Dask collections. `capacity` is the public number of
    ranks that a summary of records keeps. A person with several records is protected record by record only.
    """
    return released(METRICS["private_mae"], locals())


def private_r2_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: None = None,
    multioutput: MultiOutput = "uniform_average",
    error_share: float = 0.5,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """R^2, the coefficient of determination, with epsilon-differential privacy for the test records.

    As `dp_metrics.private_r2_score`, with its guarantee, for Dask collections. `capacity` is the public
    number of ranks that a summary of records keeps. A person with several records is protected record by
    record only.
    """
    return released(METRICS["private_r2_score"], locals())


def private_mean_loss(
    losses: Any,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: Any = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean of any non-negative per-record loss with epsilon-differential privacy.

    As `dp_metrics.private_mean_loss`, with its guarantee, for Dask collections. `capacity` is the public
    number of ranks that a summary of records keeps. A person with several records is protected record by
    record only.
    """
    return released(METRICS["private_mean_loss"], locals())


def private_mean_absolute_percentage_error(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: Any = None,
    multioutput: MultiOutput = "uniform_average",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean absolute percentage error (MAPE) with epsilon-differential privacy for the test records.

    As `dp_metrics.private_mean_absolute_percentage_error`, with its guarantee, for Dask collections.
    `capacity` is the public number of ranks that a summary of records keeps. A person with several records is
    protected record by record only.
    """
    return released(METRICS["private_mean_absolute_percentage_error"], locals())


def private_mean_squared_log_error(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    sample_weight: Any = None,
    multioutput: MultiOutput = "uniform_average",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean squared logarithmic error with epsilon-differential privacy for the test records.

    As `dp_metrics.private_mean_squared_log_error`, with its guarantee, for Dask collections. `capacity` is
    the public number of ranks that a summary of records keeps. A person with several records is protected
    record by record only.
    """
    return released(METRICS["private_mean_squared_log_error"], locals())


def private_mean_pinball_loss(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    alpha: float = 0.5,
    sample_weight: Any = None,
    multioutput: MultiOutput = "uniform_average",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Pinball (quantile) loss with epsilon-differential privacy for the test records.

    As `dp_metrics.private_mean_pinball_loss`, with its guarantee, for Dask collections. `capacity` is the
    public number of ranks that a summary of records keeps. A person with several records is protected record
    by record only.
    """
    return released(METRICS["private_mean_pinball_loss"], locals())


def private_mean_poisson_deviance(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    max_loss: float | None = None,
    sample_weight: Any = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean Poisson deviance with epsilon-differential privacy for the test records.

    As `dp_metrics.private_mean_poisson_deviance`, with its guarantee, for Dask collections. `capacity` is the
    public number of ranks that a summary of records keeps. A person with several records is protected record
    by record only.
    """
    return released(METRICS["private_mean_poisson_deviance"], locals())


def private_log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    max_loss: float | None = None,
    normalize: bool = True,
    sample_weight: Any = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Log loss (cross-entropy) with epsilon-differential privacy for the test records.

    As `dp_metrics.private_log_loss`, with its guarantee, for Dask collections. `capacity` is the public
    number of ranks that a summary of records keeps. A person with several records is protected record by
    record only.
    """
    return released(METRICS["private_log_loss"], locals())


def private_brier_score_loss(
    y_true: Any,
    y_proba: Any,
    *,
    epsilon: float,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    scale_by_half: bool | str = "auto",
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Brier score loss with epsilon-differential privacy for the test records.

    As `dp_metrics.private_brier_score_loss`, with its guarantee, for Dask collections. `capacity` is the
    public number of ranks that a summary of records keeps. A person with several records is protected record
    by record only.
    """
    return released(METRICS["private_brier_score_loss"], locals())


def private_zero_one_loss(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: Any = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Zero-one classification loss (share of wrong labels) with epsilon-differential privacy.

    As `dp_metrics.private_zero_one_loss`, with its guarantee, for Dask collections. `capacity` is the public
    number of ranks that a summary of records keeps. A person with several records is protected record by
    record only.
    """
    return released(METRICS["private_zero_one_loss"], locals())


def private_accuracy_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    normalize: bool = True,
    sample_weight: Any = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Accuracy (share of right labels) with epsilon-differential privacy for the test records.

    As `dp_metrics.private_accuracy_score`, with its guarantee, for Dask collections. `capacity` is the public
    number of ranks that a summary of records keeps. A person with several records is protected record by
    record only.
    """
    return released(METRICS["private_accuracy_score"], locals())


def private_precision_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Precision (share of right ones among those predicted positive) with epsilon-differential privacy.

    As `dp_metrics.private_precision_score`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_precision_score"], locals())


def private_recall_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Recall (share of the positive ones that are found) with epsilon-differential privacy.

    As `dp_metrics.private_recall_score`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_recall_score"], locals())


def private_f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """F1 score (harmonic mean of precision and recall) with epsilon-differential privacy.

    As `dp_metrics.private_f1_score`, with its guarantee, for Dask collections. A person with several records
    is protected record by record only.
    """
    return released(METRICS["private_f1_score"], locals())


def private_jaccard_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    zero_division: float | str = 0.0,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Jaccard score (share of right ones among those that are or were predicted positive), privately.

    As `dp_metrics.private_jaccard_score`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_jaccard_score"], locals())


def private_confusion_matrix(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    normalize: str | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> Floats | Any:
    """Confusion matrix with epsilon-differential privacy for the test records.

    As `dp_metrics.private_confusion_matrix`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_confusion_matrix"], locals())


def private_balanced_accuracy_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    adjusted: bool = False,
    zero_division: float | str = 0.0,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Balanced accuracy (the mean recall of all labels) with epsilon-differential privacy.

    As `dp_metrics.private_balanced_accuracy_score`, with its guarantee, for Dask collections. A person with
    several records is protected record by record only.
    """
    return released(METRICS["private_balanced_accuracy_score"], locals())


def private_matthews_corrcoef(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Matthews correlation coefficient with epsilon-differential privacy for the test records.

    As `dp_metrics.private_matthews_corrcoef`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_matthews_corrcoef"], locals())


def private_cohen_kappa_score(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    weights: str | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Cohen's kappa (agreement beyond chance) with epsilon-differential privacy for the test records.

    As `dp_metrics.private_cohen_kappa_score`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_cohen_kappa_score"], locals())


def private_roc_curve(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> RocCurve | Any:
    """ROC curve (true against false positive rate) with epsilon-differential privacy for the test records.

    As `dp_metrics.private_roc_curve`, with its guarantee, for Dask collections. A person with several records
    is protected record by record only.
    """
    return released(METRICS["private_roc_curve"], locals())


def private_precision_recall_curve(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> PrecisionRecallCurve | Any:
    """Precision-recall curve with epsilon-differential privacy for the test records.

    As `dp_metrics.private_precision_recall_curve`, with its guarantee, for Dask collections. A person with
    several records is protected record by record only.
    """
    return released(METRICS["private_precision_recall_curve"], locals())


def private_average_precision_score(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Average precision (area under precision and recall) with epsilon-differential privacy.

    As `dp_metrics.private_average_precision_score`, with its guarantee, for Dask collections. A person with
    several records is protected record by record only.
    """
    return released(METRICS["private_average_precision_score"], locals())


def private_calibration_curve(
    y_true: Any,
    y_prob: Any,
    *,
    epsilon: float,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    labels: ArrayLike | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> CalibrationCurve | Any:
    """Calibration curve (share of positives by probability) with epsilon-differential privacy.

    As `dp_metrics.private_calibration_curve`, with its guarantee, for Dask collections. A person with several
    records is protected record by record only.
    """
    return released(METRICS["private_calibration_curve"], locals())


def private_expected_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    epsilon: float,
    pos_label: Any = None,
    n_bins: int = 10,
    labels: ArrayLike | None = None,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Calibration error (expected over bins) with epsilon-differential privacy for the test records.

    As `dp_metrics.private_expected_calibration_error`, with its guarantee, for Dask collections. A person
    with several records is protected record by record only.
    """
    return released(METRICS["private_expected_calibration_error"], locals())


def private_top_k_accuracy_score(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float,
    k: int = 2,
    normalize: bool = True,
    sample_weight: Any = None,
    labels: ArrayLike | None = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Top-k accuracy with epsilon-differential privacy for the test records.

    As `dp_metrics.private_top_k_accuracy_score`, with its guarantee, for Dask collections. `capacity` is the
    public number of ranks that a summary of records keeps. A person with several records is protected record
    by record only.
    """
    return released(METRICS["private_top_k_accuracy_score"], locals())


def private_variance(
    x: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Variance with epsilon-differential privacy.

    As `dp_metrics.private_variance`, with its guarantee, for Dask collections. `capacity` is the public
    number of ranks that a summary of records keeps. A person with several records is protected record by
    record only.
    """
    return released(METRICS["private_variance"], locals())


def private_std(
    x: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    ddof: float = 0,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Return the standard deviation with epsilon-differential privacy: the root of a private variance.

    As `dp_metrics.private_std`, with its guarantee, for Dask collections. `capacity` is the public number of
    ranks that a summary of records keeps. A person with several records is protected record by record only.
    """
    return released(METRICS["private_std"], locals())


def private_mean(
    x: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    sample_weight: Any = None,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "geometric",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> float | Any:
    """Mean of numbers with public bounds, with epsilon-differential privacy.

    As `dp_metrics.private_mean`, with its guarantee, for Dask collections. `capacity` is the public number of
    ranks that a summary of records keeps. A person with several records is protected record by record only.
    """
    return released(METRICS["private_mean"], locals())


def private_regression_report(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    split: Mapping[str, float] | None = None,
    digits: int = 4,
    output_dict: bool = False,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism = "adaptive",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> str | Table | Any:
    """Report the usual regression metrics with epsilon-differential privacy for all of them together.

    As `dp_metrics.private_regression_report`, with its guarantee, for Dask collections. `capacity` is the
    public number of ranks that a summary of records keeps. A person with several records is protected record
    by record only.
    """
    return released(METRICS["private_regression_report"], locals())


def private_probability_report(
    y_true: Any,
    y_proba: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    max_loss: float | None = None,
    split: Mapping[str, float] | None = None,
    digits: int = 4,
    output_dict: bool = False,
    capacity: int = CAPACITY,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> str | Table | Any:
    """Report the usual metrics of predicted probabilities with epsilon-differential privacy for all together.

    As `dp_metrics.private_probability_report`, with its guarantee, for Dask collections. `capacity` is the
    public number of ranks that a summary of records keeps. A person with several records is protected record
    by record only.
    """
    return released(METRICS["private_probability_report"], locals())


def private_classification_report(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    target_names: Sequence[str] | None = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0.0,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    label: str | None = None,
    return_result: bool = False,
) -> str | dict[str, Any] | Any:
    """Report precision, recall, F1 and support of each label with epsilon-differential privacy for all.

    As `dp_metrics.private_classification_report`, with its guarantee, for Dask collections. A person with
    several records is protected record by record only.
    """
    return released(METRICS["private_classification_report"], locals())


private_mean_squared_error = private_mse
private_root_mean_squared_error = private_rmse
private_mean_absolute_error = private_mae
