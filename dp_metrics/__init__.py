"""Differentially private drop-in replacements for `sklearn.metrics`; errors and losses need no bounds."""

from typing import Any

import lazy_loader

# A name is imported when it is first used, from where `__init__.pyi` says.
_imported, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name not in ("__version__", "exceptions", "mechanisms")]

# Names that were here before 0.1.0, and what to write instead; it goes with that release.
_OLD_NAMES = {
    "noise_interval": "with_result(metric)(...).noise_interval()",
    "population_interval": "with_result(metric)(...).population_interval()",
    "accuracy_interval": "with_result(private_accuracy_score)(...).population_interval()",
    "roc_band": "with_result(private_roc_curve)(...).band()",
    "calibration_band": "with_result(private_calibration_curve)(...).band()",
    "private_regression_report": 'private_evaluate(..., task="regression")',
    "private_probability_report": "private_evaluate(..., y_proba=...)",
    "get_private_scorer": "make_private_scorer(name, ...)",
    "get_private_scorer_names": "make_private_scorer, whose error for an unknown name lists all",
    "auditing": "dp_metrics.analysis.auditing",
    "Comparison": "dp_metrics.inference.comparison.Comparison",
    "Choice": "dp_metrics.model_selection.best.Choice",
    "EvaluationPlan": "dp_metrics.page.page_plan.EvaluationPlan",
    "expected_error": "plan_release(metric, guess=..., n=..., epsilon=...).error",
    "epsilon_for_error": "plan_release(metric, guess=..., n=..., error=...).epsilon",
    "records_needed": "plan_release(metric, guess=..., epsilon=..., width=...).n",
    "ExpectedError": "dp_metrics.analysis.planning.ReleasePlan",
    "Interval": "dp_metrics.release.released.Interval",
    "PrivateResult": "dp_metrics.release.result.Result",
    "LossSummary": "Summary(metric, ...)",
    "VarianceSummary": 'Summary("variance", ...)',
    "ConfusionSummary": 'Summary("confusion_matrix", ...), and ReleasedConfusion.of',
    "ScoreSummary": 'Summary("roc_curve", ...), and ReleasedScores.of',
    "distributed": "private_mse, for example: metrics take Dask collections",
    "PrivateScorer": "dp_metrics.model_selection.scorers.PrivateScorer",
    "AboveThreshold": "dp_metrics.mechanisms.AboveThreshold",
    "Adaptive": "dp_metrics.mechanisms.Adaptive",
    "Geometric": "dp_metrics.mechanisms.Geometric",
    "Hazard": "dp_metrics.mechanisms.Hazard",
    "InverseSensitivity": "dp_metrics.mechanisms.InverseSensitivity",
    "Laplace": "dp_metrics.mechanisms.Laplace",
    "PiecewiseLaplace": "dp_metrics.mechanisms.PiecewiseLaplace",
    "LargeEpsilonWarning": "dp_metrics.exceptions.LargeEpsilonWarning",
    "NoisyReleaseWarning": "dp_metrics.exceptions.NoisyReleaseWarning",
    "SeededReleaseWarning": "dp_metrics.exceptions.SeededReleaseWarning",
    "StoredReleaseWarning": "dp_metrics.exceptions.StoredReleaseWarning",
    "TrainingFoldsWarning": "dp_metrics.exceptions.TrainingFoldsWarning",
}


def __getattr__(name: str) -> Any:
    if name in _OLD_NAMES:
        raise AttributeError(f"dp_metrics has no {name!r} any more: use {_OLD_NAMES[name]}")
    return _imported(name)
