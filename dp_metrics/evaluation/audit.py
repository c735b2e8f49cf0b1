"""The audit of all public metrics: the worst privacy loss that the auditor finds for each."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics import auditing
from dp_metrics.classification import (
    private_accuracy_score,
    private_brier_score_loss,
    private_log_loss,
    private_zero_one_loss,
)
from dp_metrics.mechanisms import AboveThreshold, Mechanism, get_mechanism
from dp_metrics.regression import private_mae, private_mean_loss, private_mse, private_r2_score, private_rmse
from dp_metrics.regression_losses import (
    private_mean_absolute_percentage_error,
    private_mean_pinball_loss,
    private_mean_poisson_deviance,
    private_mean_squared_log_error,
)
from dp_metrics.statistics import private_mean, private_quantile, private_std, private_variance

__all__ = ["AUDITED", "Audited", "Finding", "add_audit", "run_audit", "to_table"]

Floats = NDArray[np.float64]
_COMPARATORS = ("inverse_sensitivity", "piecewise_laplace", "laplace", "geometric")
_COMPARATOR_TOLERANCE = 1e-9  # their losses are computed in float64, those of hazard in integers


@dataclass(frozen=True)
class Audited:
    """How an array of numbers in [0, 1] becomes the input of a metric.

    Parameters
    ----------
    metric : callable
        A private metric.
    records : callable
        Maps the numbers to the positional arguments of the metric, record by record.
    options : dict
        Further arguments.
    bounded : bool
        Whether the mechanisms that need a public upper limit apply.
    adds : bool
        Whether neighbours differ by a record that is there or not: the one that differs is left out.
    per_record : callable or None
        Makes public options that have an entry per record.
    """

    metric: Callable[..., Any]
    records: Callable[[Floats], Sequence[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    bounded: bool = False
    adds: bool = False
    per_record: Callable[[Floats], dict[str, Any]] | None = None

    def loss(self, epsilon: float, mechanism: Mechanism) -> Callable[[Floats, Floats], float]:
        """Return the exact privacy loss of the metric between two arrays."""

        def between(a: Floats, b: Floats) -> float:
            options = dict(self.options)
            if self.adds:
                b = a[a == b]
                options["neighboring"] = "add_or_remove_one"
            if self.per_record is not None:
                options |= self.per_record(a)
            return auditing.metric_loss(
                self.metric, self.records(a), self.records(b), epsilon=epsilon, mechanism=mechanism, **options
            )

        return between


def _two_columns(x: Floats) -> Floats:
    return np.stack([1.0 - x, x], axis=1)


def _predictions(x: Floats) -> tuple[Any, ...]:
    return np.zeros_like(x), x


def _targets(x: Floats) -> tuple[Any, ...]:
    return x, np.zeros_like(x)


def _probabilities(x: Floats) -> tuple[Any, ...]:
    return np.ones_like(x), x


def _labels(x: Floats) -> tuple[Any, ...]:
    return np.where(x > 0.5, "a", "b"), np.full(x.shape, "a")


def _column(x: Floats) -> tuple[Any, ...]:
    return (x,)


def _weights(x: Floats) -> dict[str, Any]:
    return {"sample_weight": 0.1 + np.arange(x.size) % 3}


_UNIT: dict[str, Any] = {"bounds": (0, 1)}

AUDITED: dict[str, Audited] = {
    "private_mse": Audited(private_mse, _predictions),
    "private_mse, bounds": Audited(private_mse, _predictions, _UNIT, bounded=True),
    "private_mse, weights": Audited(private_mse, _predictions, _UNIT, bounded=True, per_record=_weights),
    "private_mse, add or remove": Audited(private_mse, _predictions, _UNIT, adds=True),
    "private_rmse, bounds": Audited(private_rmse, _predictions, _UNIT, bounded=True),
    "private_r2_score, bounds": Audited(private_r2_score, _targets, _UNIT, bounded=True),
    "private_mae": Audited(private_mae, _targets),
    "private_mae, bounds": Audited(private_mae, _targets, _UNIT, bounded=True),
    "private_mean_pinball_loss": Audited(private_mean_pinball_loss, _targets, {"alpha": 0.9}),
    "private_mean_squared_log_error": Audited(private_mean_squared_log_error, _targets),
    "private_mean_poisson_deviance": Audited(
        private_mean_poisson_deviance, lambda x: (np.zeros_like(x), x + 1e-9)
    ),
    "private_mean_absolute_percentage_error": Audited(
        private_mean_absolute_percentage_error, lambda x: (np.ones_like(x), x)
    ),
    "private_log_loss": Audited(private_log_loss, _probabilities, bounded=True),
    "private_log_loss, max_loss": Audited(
        private_log_loss, lambda x: (np.ones_like(x), _two_columns(x)), {"max_loss": 10.0}, bounded=True
    ),
    "private_brier_score_loss": Audited(private_brier_score_loss, _probabilities, bounded=True),
    "private_zero_one_loss": Audited(private_zero_one_loss, _labels, bounded=True),
    "private_accuracy_score": Audited(private_accuracy_score, _labels, bounded=True),
    "private_mean_loss": Audited(private_mean_loss, _column),
    "private_mean_loss, max_loss": Audited(private_mean_loss, _column, {"max_loss": 1.0}, bounded=True),
    "private_mean": Audited(private_mean, _column, _UNIT, bounded=True),
    "private_quantile": Audited(private_quantile, lambda x: (x, 0.5), _UNIT, bounded=True),
    "private_variance": Audited(private_variance, _column),
    "private_variance, bounds": Audited(private_variance, _column, _UNIT, bounded=True),
    "private_variance, add or remove": Audited(private_variance, _column, adds=True),
    "private_std, bounds": Audited(private_std, _column, _UNIT, bounded=True),
}
"""Every public metric, with and without public bounds."""


@dataclass(frozen=True)
class Finding:
    """One line of the audit."""

    metric: str
    mechanism: str
    epsilon: float
    result: auditing.AuditResult


def run_audit(
    epsilons: Sequence[float],
    *,
    n: int = 10,
    steps: int = 100,
    progress: Callable[[Sequence[Any]], Any] = lambda plan: plan,
) -> list[Finding]:
    """Audit every public metric with every mechanism that applies.

    Parameters
    ----------
    epsilons : sequence of float
        Claims to check.
    n : int, default=10
        Records of each made-up data set.
    steps : int, default=100
        Steps of hill climbing after the adversarial pairs.
    progress : callable, default=no progress
        Wraps the list of what there is to do, as tqdm does.

    Returns
    -------
    list of Finding
        The worst pair found for each.
    """
    # a coarse beta keeps the exact comparison of all candidates quick; the mechanism is the same
    bounded_only: dict[str, Mechanism] = {
        "above_threshold": AboveThreshold(beta=1.2),
        **{name: get_mechanism(name) for name in _COMPARATORS},
    }
    plan = [
        (name, audited, label, mechanism, epsilon)
        for name, audited in AUDITED.items()
        for label, mechanism in {
            "hazard": get_mechanism("hazard"),
            **(bounded_only if audited.bounded else {}),
        }.items()
        # with a private n the ranks are as many as any n could need, which makes small claims slow to check
        for epsilon in epsilons
        if epsilon >= 1 or not audited.adds
    ]
    findings = []
    for name, audited, label, mechanism, epsilon in progress(plan):
        result = auditing.audit(
            f"{name} with {label}",
            audited.loss(epsilon, mechanism),
            epsilon=epsilon,
            n=n,
            steps=steps // 10 if audited.adds else steps,
            tolerance=0.0 if label in ("hazard", "geometric") else _COMPARATOR_TOLERANCE,
        )
        findings.append(Finding(name, label, epsilon, result))
    return findings


def to_table(findings: Sequence[Finding]) -> str:
    """Return the worst loss / epsilon over all epsilons as a Markdown table, a row per metric."""
    mechanisms = list(dict.fromkeys(finding.mechanism for finding in findings))
    lines = ["| metric | " + " | ".join(mechanisms) + " |", "|---" * (1 + len(mechanisms)) + "|"]
    for metric in dict.fromkeys(finding.metric for finding in findings):
        cells = []
        for mechanism in mechanisms:
            found = [f for f in findings if (f.metric, f.mechanism) == (metric, mechanism)]
            worst = max((f.result.worst / f.epsilon for f in found), default=math.nan)
            failed = not all(f.result.passed for f in found)
            cells.append("" if not found else f"{worst:.6f}{' FAIL' if failed else ''}")
        lines.append(f"| {metric} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def add_audit(commands: Any) -> None:
    """Add the subcommand `audit`."""
    parser = commands.add_parser(
        "audit",
        help="search for the worst privacy loss of every public metric",
        description="Search for the neighbouring data sets on which each metric loses most privacy, with "
        "exact output laws. Prints the worst loss found / epsilon (at most 1 if the claim holds) and the "
        "worst pair; exit code 1 if a claim is refuted. No real data are read.",
    )
    parser.add_argument(
        "--epsilon",
        nargs="+",
        type=float,
        default=[0.1, 1.0, 4.0],
        metavar="E",
        help="claims to check (default: 0.1 1 4)",
    )
    parser.add_argument(
        "--records", type=int, default=10, metavar="N", help="records of each data set (default: 10)"
    )
    parser.add_argument(
        "--steps", type=int, default=100, metavar="N", help="steps of hill climbing (default: 100)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    findings = run_audit(
        options.epsilon,
        n=options.records,
        steps=options.steps,
        progress=lambda plan: tqdm(plan, desc="audit", unit="claim", file=sys.stderr),
    )
    worst = max(findings, key=lambda finding: finding.result.worst / finding.epsilon)
    passed = all(finding.result.passed for finding in findings)
    if options.json:
        rows = [
            {
                "metric": finding.metric,
                "mechanism": finding.mechanism,
                "epsilon": finding.epsilon,
                "worst_loss": finding.result.worst,
                "pairs": finding.result.pairs,
                "passed": finding.result.passed,
            }
            for finding in findings
        ]
        print(json.dumps({"passed": passed, "findings": rows}, indent=2))
    else:
        claims = ", ".join(f"{epsilon:g}" for epsilon in options.epsilon)
        print(f"Worst privacy loss found / epsilon, over epsilon = {claims}:\n\n{to_table(findings)}\n")
        print(worst.result)
    if not passed:
        raise SystemExit(1)
