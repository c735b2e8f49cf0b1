"""The audited set: every metric of the catalogue, with and without public limits, on all that is public."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dp_metrics.analysis.auditing import AuditResult, audit, frame_loss, metric_loss, plan_loss
from dp_metrics.inference.comparison import comparison_plan
from dp_metrics.inference.means import mean_plan
from dp_metrics.inference.paired_losses import paired_losses
from dp_metrics.inference.quantiles import quantile_plan
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import exact_epsilon
from dp_metrics.inputs.shape import Shape
from dp_metrics.mechanisms import AboveThreshold, Adaptive, Mechanism, get_mechanism
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.plan import Plan

_COMPARATORS = ("inverse_sensitivity", "piecewise_laplace", "laplace", "geometric")
_TOLERANCE = 1e-9  # the exact loss of some laws is computed in float64: of drawn scales and of comparators


@dataclass(frozen=True)
class AuditCase:
    """A metric with options, on data made of numbers from 0 to 1.

    Parameters
    ----------
    metric : str
        Name of the metric.
    options : mapping, default={}
        Options of the metric.
    bounded : bool, default=False
        Whether the mechanisms that need a public upper limit apply.
    adds : bool, default=False
        Whether neighbours differ by a record that is there or not: the record that differs is left out.
    sums : bool, default=False
        Whether noisy sums serve the metric where the number of records is private.
    per_record : callable or None, default=None
        Makes public options that have an entry per record.
    records : callable or None, default=None
        Maps the numbers to the data, record by record; None for what the catalogue says.
    """

    metric: str
    options: Mapping[str, Any] = field(default_factory=dict)
    bounded: bool = False
    adds: bool = False
    sums: bool = False
    per_record: Callable[[Floats], dict[str, Any]] | None = None
    records: Callable[[Floats], Sequence[Any]] | None = None

    def loss(self, epsilon: float, mechanism: str | Mechanism) -> Callable[[Floats, Floats], float]:
        """Return the exact privacy loss of the metric between two arrays."""
        row, metric = METRICS[self.metric], FUNCTIONS[self.metric]
        records = self.records or row.from_unit

        def between(a: Floats, b: Floats) -> float:
            options = {**row.required, **self.options}
            if self.adds:
                b = a[a == b]
                options["neighboring"] = "add_or_remove_one"
            if self.per_record is not None:
                options |= self.per_record(a)
            data = records(a), records(b)
            if row.mechanism is not None:
                options["mechanism"] = mechanism
            return metric_loss(metric, *data, epsilon=epsilon, **options)

        return between

    @property
    def has_own_noise(self) -> bool:
        """Whether the metric takes no mechanism."""
        return METRICS[self.metric].mechanism is None

    column = "noisy counts"


@dataclass(frozen=True)
class AuditedFrame:
    """A table of metrics by group, on numbers from 0 to 1 whose halves are two groups.

    Parameters
    ----------
    metrics : callable or mapping
        As in `PrivateMetricFrame`.
    settings : mapping, default={}
        Its other settings.
    adds : bool, default=False
        As in `AuditCase`.
    """

    metrics: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    adds: bool = False

    bounded, sums, has_own_noise, column = False, False, True, "noisy counts"

    def loss(self, epsilon: float, mechanism: str | Mechanism) -> Callable[[Floats, Floats], float]:
        """Return the exact privacy loss of the table between two arrays."""
        neighboring = "add_or_remove_one" if self.adds else "replace_one"

        def between(a: Floats, b: Floats) -> float:
            if self.adds:
                b = a[a == b]
            public = {"group_labels": [0, 1], "neighboring": neighboring, **self.settings}
            return frame_loss(self.metrics, _by_half(a), _by_half(b), epsilon=epsilon, **public)

        return between


@dataclass(frozen=True)
class AuditedPlan:
    """What a function releases that is no metric, on numbers from 0 to 1.

    Parameters
    ----------
    plan : callable
        Returns the `Plan` of (shape, epsilon).
    column : str, default="noisy counts"
        What draws, as the table of the audit calls it.
    records : callable, default=the numbers
        The arguments that hold a value per record, of the numbers.
    """

    plan: Callable[[Shape, Fraction], Plan]
    column: str = "noisy counts"
    records: Callable[[Floats], tuple[Any, ...]] = lambda x: (x,)

    adds, bounded, sums, has_own_noise = False, False, False, True

    def loss(self, epsilon: float, mechanism: str | Mechanism) -> Callable[[Floats, Floats], float]:
        """Return the exact privacy loss of the plan between two arrays."""
        exact = exact_epsilon(epsilon)

        def between(a: Floats, b: Floats) -> float:
            return plan_loss(
                lambda shape: self.plan(shape, exact), self.records(a), self.records(b), epsilon=epsilon
            )

        return between


def _by_half(x: Floats) -> tuple[Any, ...]:
    """Return labels, predictions and groups: all eight triples of 0 and 1 as x grows."""
    eighth = np.minimum(np.floor(x * 8), 7).astype(np.int64)
    return eighth // 2 % 2, eighth % 2, eighth // 4


def _weights(x: Floats) -> dict[str, Any]:
    return {"sample_weight": 0.1 + np.arange(x.size) % 3}


def _two_columns(x: Floats) -> tuple[Any, ...]:
    return np.ones_like(x), np.stack([1.0 - x, x], axis=1)


def _rows() -> dict[str, AuditCase]:
    """Return every metric of the catalogue: as it is, and with a public limit."""
    found = {}
    for name, row in METRICS.items():
        found[name] = AuditCase(name, bounded=row.limit is None)
        if row.limit is not None:
            found[f"{name}, {', '.join(row.limit)}"] = AuditCase(name, row.limit, bounded=True)
    return found


_FRAMED = {"recall": FUNCTIONS["private_recall_score"], "precision": FUNCTIONS["private_precision_score"]}
_ACCURACY = partial(FUNCTIONS["private_accuracy_score"], mechanism="geometric")

AUDITED: dict[str, AuditCase] = {
    **_rows(),
    "private_mse, weights": AuditCase("private_mse", {"bounds": (0, 1)}, bounded=True, per_record=_weights),
    "private_mse, add or remove": AuditCase("private_mse", {"bounds": (0, 1)}, adds=True, sums=True),
    "private_variance, add or remove": AuditCase(
        "private_variance", {"bounds": (0, 1)}, adds=True, sums=True
    ),
    "private_mean, add or remove": AuditCase("private_mean", adds=True, sums=True),
    "private_roc_auc_score, add or remove": AuditCase("private_roc_auc_score", adds=True),
    "private_roc_curve, add or remove": AuditCase("private_roc_curve", adds=True),
    "private_calibration_curve, add or remove": AuditCase("private_calibration_curve", adds=True),
    "private_expected_calibration_error, add or remove": AuditCase(
        "private_expected_calibration_error", adds=True, sums=True
    ),
    "private_f1_score, add or remove": AuditCase("private_f1_score", adds=True),
    "private_f1_score, macro": AuditCase("private_f1_score", {"average": "macro", "labels": [0, 1, 2, 3]}),
    "private_mean_pinball_loss, alpha": AuditCase("private_mean_pinball_loss", {"alpha": 0.9}),
    "private_log_loss, two columns": AuditCase(
        "private_log_loss", {"max_loss": 10.0}, bounded=True, records=_two_columns
    ),
}
"""Every public metric, with and without public limits, and options that change what one person can do."""

FRAMES: dict[str, AuditedFrame] = {
    "PrivateMetricFrame, one table": AuditedFrame(_FRAMED),
    "PrivateMetricFrame, releases": AuditedFrame(_ACCURACY, {"overall_share": 0}),
    "PrivateMetricFrame, add or remove": AuditedFrame({**_FRAMED, "accuracy": _ACCURACY}, adds=True),
}
"""Metrics by group."""


def _mean_interval(shape: Shape, epsilon: Fraction, **options: Any) -> Plan:
    return mean_plan(**options)


def _quantile_interval(shape: Shape, epsilon: Fraction, *, max_loss: float | None = None) -> Plan:
    # a confidence as low as this lets few records have both limits
    return quantile_plan(shape, q=0.5, epsilon=epsilon, max_loss=max_loss, confidence=0.3)


def _over_the_grid(x: Floats) -> tuple[Any, ...]:
    """Return losses that cover the whole grid."""
    return (np.sinh(700 * x),)


def _compared(shape: Shape, epsilon: Fraction, *, loss: str, max_difference: float | None) -> Plan:
    return comparison_plan(paired_losses(loss, shape, {}), shape.n, max_difference=max_difference)


def _both_wrong(x: Floats) -> tuple[Any, ...]:
    """Return two models: both are wrong about the lowest third of the numbers, each about another one."""
    third = np.minimum(np.floor(x * 3), 2)
    return np.ones_like(x), third, third - 1


def _opposites(x: Floats) -> tuple[Any, ...]:
    return np.zeros_like(x), x, 1 - x


PLANS: dict[str, AuditedPlan] = {
    "private_mean_interval": AuditedPlan(partial(_mean_interval, max_loss=1.0)),
    "private_mean_interval, private cap": AuditedPlan(
        partial(_mean_interval, cap="private"), records=_over_the_grid
    ),
    "private_compare": AuditedPlan(
        partial(_compared, loss="zero_one", max_difference=None), records=_both_wrong
    ),
    "private_compare, max_difference": AuditedPlan(
        partial(_compared, loss="mae", max_difference=1.0), records=_opposites
    ),
    "private_quantile_interval": AuditedPlan(_quantile_interval, "hazard", _over_the_grid),
    "private_quantile_interval, max_loss": AuditedPlan(partial(_quantile_interval, max_loss=1.0), "hazard"),
}
"""Intervals for people at large, and comparisons of two models."""


@dataclass(frozen=True)
class Finding:
    """One line of the audit."""

    metric: str
    mechanism: str
    epsilon: float
    result: AuditResult


def run_audit(
    epsilons: Sequence[float],
    *,
    n: int = 10,
    steps: int = 100,
    mechanisms: Sequence[str] = (),
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
    mechanisms : sequence of str, default=()
        Names of the mechanisms to audit; none: all.
    progress : callable, default=no progress
        Wraps the list of what there is to do, as tqdm does.

    Returns
    -------
    list of Finding
        The worst pair found for each.
    """
    # a threshold as small as this lets few records go through both stages
    always: dict[str, Mechanism] = {"adaptive": Adaptive(threshold=1e-9), "hazard": get_mechanism("hazard")}
    # a coarse beta keeps the exact comparison of all candidates quick; the mechanism is the same
    bounded_only: dict[str, Mechanism] = {
        "above_threshold": AboveThreshold(beta=1.2),
        **{name: get_mechanism(name) for name in _COMPARATORS},
    }
    sums_only = {"geometric": bounded_only["geometric"]}
    everything: dict[str, AuditCase | AuditedFrame | AuditedPlan] = {**AUDITED, **FRAMES, **PLANS}
    not_asked = get_mechanism("geometric")
    plan = [
        (name, audited, label, mechanism, epsilon)
        for name, audited in everything.items()
        for label, mechanism in (
            {audited.column: not_asked}
            if audited.has_own_noise
            else {**always, **(bounded_only if audited.bounded else sums_only if audited.sums else {})}
        ).items()
        # a private n needs as many ranks as any n could use, and small claims are slow to check
        for epsilon in epsilons
        if (epsilon >= 1 or not audited.adds) and (not mechanisms or label in mechanisms)
    ]
    findings = []
    for name, audited, label, mechanism, epsilon in progress(plan):
        result = audit(
            f"{name} with {label}",
            audited.loss(epsilon, mechanism),
            epsilon=epsilon,
            n=min(n, 5) if audited.adds else n,
            # most of the search goes to the adversarial pairs where a comparison takes long
            steps=steps // 10 if audited.adds else steps // 4 if label == "adaptive" else steps,
            tolerance=0.0 if label in ("hazard", "geometric", "noisy counts") else _TOLERANCE,
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
