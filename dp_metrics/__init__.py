"""Differentially private drop-in replacements for `sklearn.metrics`; errors and losses need no bounds."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dp_metrics._packages import __version__ as __version__

if TYPE_CHECKING:
    from dp_metrics.accounting import PrivacyAccountant as PrivacyAccountant
    from dp_metrics.analysis.expected_error import (
        ExpectedError as ExpectedError,
        epsilon_for_error as epsilon_for_error,
        expected_error as expected_error,
    )
    from dp_metrics.exceptions import (
        LargeEpsilonWarning as LargeEpsilonWarning,
        NoisyReleaseWarning as NoisyReleaseWarning,
        PrivacyBudgetError as PrivacyBudgetError,
        SeededReleaseWarning as SeededReleaseWarning,
        StoredReleaseWarning as StoredReleaseWarning,
        TrainingFoldsWarning as TrainingFoldsWarning,
    )
    from dp_metrics.fairness.frame import PrivateMetricFrame as PrivateMetricFrame
    from dp_metrics.inference.comparison import Comparison as Comparison, private_compare as private_compare
    from dp_metrics.inference.means import private_mean_interval as private_mean_interval
    from dp_metrics.inference.noise_interval import noise_interval as noise_interval
    from dp_metrics.inference.population_interval import calibration_band as calibration_band
    from dp_metrics.inference.population_interval import roc_band as roc_band
    from dp_metrics.inference.population_interval import population_interval as population_interval
    from dp_metrics.inference.proportions import accuracy_interval as accuracy_interval
    from dp_metrics.inference.records_needed import records_needed as records_needed
    from dp_metrics.inference.quantiles import private_quantile_interval as private_quantile_interval
    from dp_metrics.mechanisms import (
        AboveThreshold as AboveThreshold,
        Adaptive as Adaptive,
        Geometric as Geometric,
        Hazard as Hazard,
        InverseSensitivity as InverseSensitivity,
        Laplace as Laplace,
        PiecewiseLaplace as PiecewiseLaplace,
    )
    from dp_metrics.metrics.classification import (
        private_accuracy_score as private_accuracy_score,
        private_brier_score_loss as private_brier_score_loss,
        private_log_loss as private_log_loss,
        private_zero_one_loss as private_zero_one_loss,
    )
    from dp_metrics.metrics.labels.confusion import (
        private_balanced_accuracy_score as private_balanced_accuracy_score,
        private_cohen_kappa_score as private_cohen_kappa_score,
        private_confusion_matrix as private_confusion_matrix,
        private_matthews_corrcoef as private_matthews_corrcoef,
    )
    from dp_metrics.metrics.labels.precision_recall import (
        private_f1_score as private_f1_score,
        private_jaccard_score as private_jaccard_score,
        private_precision_score as private_precision_score,
        private_recall_score as private_recall_score,
        private_specificity_score as private_specificity_score,
    )
    from dp_metrics.metrics.other_losses import (
        private_mean_absolute_percentage_error as private_mean_absolute_percentage_error,
        private_mean_pinball_loss as private_mean_pinball_loss,
        private_mean_poisson_deviance as private_mean_poisson_deviance,
        private_mean_squared_log_error as private_mean_squared_log_error,
        private_median_absolute_error as private_median_absolute_error,
    )
    from dp_metrics.metrics.regression_errors import (
        private_mae as private_mae,
        private_mean_absolute_error as private_mean_absolute_error,
        private_mean_squared_error as private_mean_squared_error,
        private_mse as private_mse,
        private_r2_score as private_r2_score,
        private_rmse as private_rmse,
        private_root_mean_squared_error as private_root_mean_squared_error,
    )
    from dp_metrics.metrics.reports import (
        private_classification_report as private_classification_report,
        private_probability_report as private_probability_report,
        private_regression_report as private_regression_report,
    )
    from dp_metrics.metrics.scores.calibration import (
        private_calibration_curve as private_calibration_curve,
        private_expected_calibration_error as private_expected_calibration_error,
    )
    from dp_metrics.metrics.scores.curves import (
        private_average_precision_score as private_average_precision_score,
        private_precision_recall_curve as private_precision_recall_curve,
        private_roc_curve as private_roc_curve,
    )
    from dp_metrics.metrics.scores.roc_auc import private_roc_auc_score as private_roc_auc_score
    from dp_metrics.metrics.scores.top_k import private_top_k_accuracy_score as private_top_k_accuracy_score
    from dp_metrics.metrics.statistics import (
        private_mean as private_mean,
        private_mean_loss as private_mean_loss,
        private_quantile as private_quantile,
        private_std as private_std,
        private_variance as private_variance,
    )
    from dp_metrics.model_selection.best import Choice as Choice, private_best as private_best
    from dp_metrics.model_selection.release_count import count_releases as count_releases
    from dp_metrics.model_selection.scorers import (
        PrivateScorer as PrivateScorer,
        get_private_scorer as get_private_scorer,
        get_private_scorer_names as get_private_scorer_names,
        make_private_scorer as make_private_scorer,
    )
    from dp_metrics.model_selection.search import PrivateRandomizedSearch as PrivateRandomizedSearch
    from dp_metrics.page.division import EvaluationPlan as EvaluationPlan
    from dp_metrics.page.evaluate import private_evaluate as private_evaluate
    from dp_metrics.page.page import PrivateEvaluation as PrivateEvaluation
    from dp_metrics.release.interval import Interval as Interval
    from dp_metrics.release.result import PrivateResult as PrivateResult
    from dp_metrics.release.with_result import with_result as with_result
    from dp_metrics.streaming.confusion_summary import ConfusionSummary as ConfusionSummary
    from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion as ReleasedConfusion
    from dp_metrics.metrics.scores.released_scores import ReleasedScores as ReleasedScores
    from dp_metrics.streaming.scores import ScoreSummary as ScoreSummary
    from dp_metrics.streaming.summaries import LossSummary as LossSummary, VarianceSummary as VarianceSummary
else:
    # A name is imported when it is first used. `docs/sources.py --write` makes the table of these imports.
    _HOMES = {
        "AboveThreshold": "mechanisms",
        "Adaptive": "mechanisms",
        "Choice": "model_selection.best",
        "Comparison": "inference.comparison",
        "ConfusionSummary": "streaming.confusion_summary",
        "EvaluationPlan": "page.division",
        "ExpectedError": "analysis.expected_error",
        "Geometric": "mechanisms",
        "Hazard": "mechanisms",
        "Interval": "release.interval",
        "InverseSensitivity": "mechanisms",
        "Laplace": "mechanisms",
        "LargeEpsilonWarning": "exceptions",
        "LossSummary": "streaming.summaries",
        "NoisyReleaseWarning": "exceptions",
        "PiecewiseLaplace": "mechanisms",
        "PrivacyAccountant": "accounting",
        "PrivacyBudgetError": "exceptions",
        "PrivateEvaluation": "page.page",
        "PrivateMetricFrame": "fairness.frame",
        "PrivateRandomizedSearch": "model_selection.search",
        "PrivateResult": "release.result",
        "PrivateScorer": "model_selection.scorers",
        "ReleasedConfusion": "metrics.labels.released_confusion",
        "ReleasedScores": "metrics.scores.released_scores",
        "ScoreSummary": "streaming.scores",
        "SeededReleaseWarning": "exceptions",
        "StoredReleaseWarning": "exceptions",
        "TrainingFoldsWarning": "exceptions",
        "VarianceSummary": "streaming.summaries",
        "accuracy_interval": "inference.proportions",
        "calibration_band": "inference.population_interval",
        "count_releases": "model_selection.release_count",
        "epsilon_for_error": "analysis.expected_error",
        "expected_error": "analysis.expected_error",
        "get_private_scorer": "model_selection.scorers",
        "get_private_scorer_names": "model_selection.scorers",
        "make_private_scorer": "model_selection.scorers",
        "noise_interval": "inference.noise_interval",
        "population_interval": "inference.population_interval",
        "private_accuracy_score": "metrics.classification",
        "private_average_precision_score": "metrics.scores.curves",
        "private_balanced_accuracy_score": "metrics.labels.confusion",
        "private_best": "model_selection.best",
        "private_brier_score_loss": "metrics.classification",
        "private_calibration_curve": "metrics.scores.calibration",
        "private_classification_report": "metrics.reports",
        "private_cohen_kappa_score": "metrics.labels.confusion",
        "private_compare": "inference.comparison",
        "private_confusion_matrix": "metrics.labels.confusion",
        "private_evaluate": "page.evaluate",
        "private_expected_calibration_error": "metrics.scores.calibration",
        "private_f1_score": "metrics.labels.precision_recall",
        "private_jaccard_score": "metrics.labels.precision_recall",
        "private_log_loss": "metrics.classification",
        "private_mae": "metrics.regression_errors",
        "private_matthews_corrcoef": "metrics.labels.confusion",
        "private_mean": "metrics.statistics",
        "private_mean_absolute_error": "metrics.regression_errors",
        "private_mean_absolute_percentage_error": "metrics.other_losses",
        "private_mean_interval": "inference.means",
        "private_mean_loss": "metrics.statistics",
        "private_mean_pinball_loss": "metrics.other_losses",
        "private_mean_poisson_deviance": "metrics.other_losses",
        "private_mean_squared_error": "metrics.regression_errors",
        "private_mean_squared_log_error": "metrics.other_losses",
        "private_median_absolute_error": "metrics.other_losses",
        "private_mse": "metrics.regression_errors",
        "private_precision_recall_curve": "metrics.scores.curves",
        "private_precision_score": "metrics.labels.precision_recall",
        "private_probability_report": "metrics.reports",
        "private_quantile": "metrics.statistics",
        "private_quantile_interval": "inference.quantiles",
        "private_r2_score": "metrics.regression_errors",
        "private_recall_score": "metrics.labels.precision_recall",
        "private_regression_report": "metrics.reports",
        "private_rmse": "metrics.regression_errors",
        "private_roc_auc_score": "metrics.scores.roc_auc",
        "private_roc_curve": "metrics.scores.curves",
        "private_root_mean_squared_error": "metrics.regression_errors",
        "private_specificity_score": "metrics.labels.precision_recall",
        "private_std": "metrics.statistics",
        "private_top_k_accuracy_score": "metrics.scores.top_k",
        "private_variance": "metrics.statistics",
        "private_zero_one_loss": "metrics.classification",
        "records_needed": "inference.records_needed",
        "roc_band": "inference.population_interval",
        "with_result": "release.with_result",
    }

    __all__ = [*_HOMES]

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            globals()[name] = thing = getattr(import_module(f"dp_metrics.{_HOMES[name]}"), name)
            return thing
        if not name.startswith("__") and find_spec(f"dp_metrics.{name}"):
            return import_module(f"dp_metrics.{name}")
        raise AttributeError(f"module 'dp_metrics' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
