"""Differentially private drop-in replacements for `sklearn.metrics`, with no bounds on the data needed."""

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.classification import private_log_loss
from dp_metrics.exceptions import PrivacyBudgetError, SeededReleaseWarning
from dp_metrics.mechanisms import AboveThreshold, Hazard, InverseSensitivity, Laplace, PiecewiseLaplace
from dp_metrics.regression import private_mae, private_mean_loss, private_mse
from dp_metrics.statistics import private_variance

__all__ = [
    "AboveThreshold",
    "Hazard",
    "InverseSensitivity",
    "Laplace",
    "PiecewiseLaplace",
    "PrivacyAccountant",
    "PrivacyBudgetError",
    "SeededReleaseWarning",
    "private_log_loss",
    "private_mae",
    "private_mean_loss",
    "private_mse",
    "private_variance",
]
