from . import exceptions as exceptions, mechanisms as mechanisms
from ._packages import __version__ as __version__
from .accounting import PrivacyAccountant as PrivacyAccountant
from .analysis.planning import plan_release as plan_release
from .exceptions import (
    PrivacyBudgetError as PrivacyBudgetError,
)
from .fairness.frame import PrivateMetricFrame as PrivateMetricFrame
from .inference.comparison import private_compare as private_compare
from .inference.loss_intervals import (
    private_mean_interval as private_mean_interval,
    private_quantile_interval as private_quantile_interval,
)
from .metrics.classification import (
    private_accuracy_score as private_accuracy_score,
    private_brier_score_loss as private_brier_score_loss,
    private_log_loss as private_log_loss,
    private_top_k_accuracy_score as private_top_k_accuracy_score,
    private_zero_one_loss as private_zero_one_loss,
)
from .metrics.labels.metrics import (
    private_balanced_accuracy_score as private_balanced_accuracy_score,
    private_classification_report as private_classification_report,
    private_cohen_kappa_score as private_cohen_kappa_score,
    private_confusion_matrix as private_confusion_matrix,
    private_f1_score as private_f1_score,
    private_jaccard_score as private_jaccard_score,
    private_matthews_corrcoef as private_matthews_corrcoef,
    private_precision_score as private_precision_score,
    private_prevalence as private_prevalence,
    private_recall_score as private_recall_score,
    private_selection_rate as private_selection_rate,
    private_specificity_score as private_specificity_score,
)
from .metrics.labels.released_confusion import ReleasedConfusion as ReleasedConfusion
from .metrics.regression import (
    private_mae as private_mae,
    private_mean_absolute_error as private_mean_absolute_error,
    private_mean_absolute_percentage_error as private_mean_absolute_percentage_error,
    private_mean_pinball_loss as private_mean_pinball_loss,
    private_mean_poisson_deviance as private_mean_poisson_deviance,
    private_mean_squared_error as private_mean_squared_error,
    private_mean_squared_log_error as private_mean_squared_log_error,
    private_median_absolute_error as private_median_absolute_error,
    private_mse as private_mse,
    private_r2_score as private_r2_score,
    private_rmse as private_rmse,
    private_root_mean_squared_error as private_root_mean_squared_error,
)
from .metrics.scores.curves import (
    private_average_precision_score as private_average_precision_score,
    private_calibration_curve as private_calibration_curve,
    private_expected_calibration_error as private_expected_calibration_error,
    private_precision_recall_curve as private_precision_recall_curve,
    private_roc_auc_score as private_roc_auc_score,
    private_roc_curve as private_roc_curve,
)
from .metrics.scores.released_scores import ReleasedScores as ReleasedScores
from .metrics.statistics import (
    private_mean as private_mean,
    private_mean_loss as private_mean_loss,
    private_quantile as private_quantile,
    private_std as private_std,
    private_variance as private_variance,
)
from .metrics.summary import Summary as Summary
from .model_selection.best import private_best as private_best
from .model_selection.scorers import (
    make_private_scorer as make_private_scorer,
)
from .model_selection.search import (
    PrivateRandomizedSearch as PrivateRandomizedSearch,
    count_releases as count_releases,
)
from .page.page import PrivateEvaluation as PrivateEvaluation, private_evaluate as private_evaluate
from .release.result import with_result as with_result
