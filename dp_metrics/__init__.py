"""Differentially private drop-in replacements for `sklearn.metrics`; errors and losses need no bounds."""

from dp_metrics._packages import __version__ as __version__
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.analysis.expected_error import ExpectedError, epsilon_for_error, expected_error
from dp_metrics.exceptions import NoisyReleaseWarning, PrivacyBudgetError, SeededReleaseWarning
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inference.comparison import Comparison, private_compare
from dp_metrics.inference.means import private_mean_interval
from dp_metrics.inference.noise_interval import noise_interval
from dp_metrics.inference.proportions import accuracy_interval
from dp_metrics.inference.quantiles import private_quantile_interval
from dp_metrics.mechanisms import (
    AboveThreshold,
    Adaptive,
    Geometric,
    Hazard,
    InverseSensitivity,
    Laplace,
    PiecewiseLaplace,
)
from dp_metrics.metrics.classification import (
    private_accuracy_score,
    private_brier_score_loss,
    private_log_loss,
    private_zero_one_loss,
)
from dp_metrics.metrics.labels.confusion import (
    private_balanced_accuracy_score,
    private_cohen_kappa_score,
    private_confusion_matrix,
    private_matthews_corrcoef,
)
from dp_metrics.metrics.labels.precision_recall import (
    private_f1_score,
    private_jaccard_score,
    private_precision_score,
    private_recall_score,
)
from dp_metrics.metrics.other_losses import (
    private_mean_absolute_percentage_error,
    private_mean_pinball_loss,
    private_mean_poisson_deviance,
    private_mean_squared_log_error,
    private_median_absolute_error,
)
from dp_metrics.metrics.regression_errors import (
    private_mae,
    private_mean_absolute_error,
    private_mean_squared_error,
    private_mse,
    private_r2_score,
    private_rmse,
    private_root_mean_squared_error,
)
from dp_metrics.metrics.reports import (
    private_classification_report,
    private_probability_report,
    private_regression_report,
)
from dp_metrics.metrics.scores.calibration import (
    private_calibration_curve,
    private_expected_calibration_error,
)
from dp_metrics.metrics.scores.curves import (
    private_average_precision_score,
    private_precision_recall_curve,
    private_roc_curve,
)
from dp_metrics.metrics.scores.roc_auc import private_roc_auc_score
from dp_metrics.metrics.scores.top_k import private_top_k_accuracy_score
from dp_metrics.metrics.statistics import (
    private_mean,
    private_mean_loss,
    private_quantile,
    private_std,
    private_variance,
)
from dp_metrics.model_selection.release_count import count_releases
from dp_metrics.model_selection.scorers import (
    PrivateScorer,
    get_private_scorer,
    get_private_scorer_names,
    make_private_scorer,
)
from dp_metrics.model_selection.search import PrivateRandomizedSearch
from dp_metrics.release.interval import Interval
from dp_metrics.release.result import PrivateResult
from dp_metrics.streaming.confusion_summary import ConfusionSummary, ReleasedConfusion
from dp_metrics.streaming.scores import ReleasedScores, ScoreSummary
from dp_metrics.streaming.summaries import LossSummary, VarianceSummary

__all__ = [
    "AboveThreshold",
    "Adaptive",
    "Comparison",
    "ConfusionSummary",
    "ExpectedError",
    "Geometric",
    "Hazard",
    "Interval",
    "InverseSensitivity",
    "Laplace",
    "LossSummary",
    "NoisyReleaseWarning",
    "PiecewiseLaplace",
    "PrivacyAccountant",
    "PrivacyBudgetError",
    "PrivateMetricFrame",
    "PrivateRandomizedSearch",
    "PrivateResult",
    "PrivateScorer",
    "ReleasedConfusion",
    "ReleasedScores",
    "ScoreSummary",
    "SeededReleaseWarning",
    "VarianceSummary",
    "accuracy_interval",
    "count_releases",
    "epsilon_for_error",
    "expected_error",
    "get_private_scorer",
    "get_private_scorer_names",
    "make_private_scorer",
    "noise_interval",
    "private_accuracy_score",
    "private_average_precision_score",
    "private_balanced_accuracy_score",
    "private_brier_score_loss",
    "private_calibration_curve",
    "private_classification_report",
    "private_cohen_kappa_score",
    "private_compare",
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
    "private_mean_interval",
    "private_mean_loss",
    "private_mean_pinball_loss",
    "private_mean_poisson_deviance",
    "private_mean_squared_error",
    "private_mean_squared_log_error",
    "private_median_absolute_error",
    "private_mse",
    "private_precision_recall_curve",
    "private_precision_score",
    "private_probability_report",
    "private_quantile",
    "private_quantile_interval",
    "private_r2_score",
    "private_recall_score",
    "private_regression_report",
    "private_rmse",
    "private_roc_auc_score",
    "private_roc_curve",
    "private_root_mean_squared_error",
    "private_std",
    "private_top_k_accuracy_score",
    "private_variance",
    "private_zero_one_loss",
]
