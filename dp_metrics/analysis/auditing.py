"""The auditor: how private is a mechanism really, on the worst neighbours it can find.

Three tools, from the strongest to the most general. `privacy_loss` computes the exact loss of a known
mechanism on one pair. `audit` searches for the worst pair of records for a metric, from the metric's own
validation to its output law. `loss_lower_bound` needs nothing but samples of a black box. An audit never
touches real records: it makes its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from dp_metrics.analysis._law_comparison import finite_loss, law_loss
from dp_metrics.fairness.frame_query import FrameOptions, read_frame
from dp_metrics.inference.comparison import comparison_query, paired_losses
from dp_metrics.inference.loss_intervals import mean_query, quantile_query
from dp_metrics.inputs.arrays import Records, Shape
from dp_metrics.inputs.options import (
    Epsilon,
    Floats,
    Relation,
    check_confidence,
    check_epsilon,
    exact_epsilon,
    own_error_state,
)
from dp_metrics.mechanisms import AboveThreshold, Adaptive, Mechanism, get_mechanism
from dp_metrics.metrics import FUNCTIONS, METRICS, Metric, metric_named, metric_of, row_of
from dp_metrics.quantities.noises import Observed
from dp_metrics.release.query import Query, Together
from dp_metrics.release.release import PreparedQuery, Release
from dp_metrics.release.terms import Terms
from dp_metrics.sensitivity.output_bounds import OutputBounds

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
        Maps the numbers to the data, record by record; None for what the metric says.
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
        row = METRICS[self.metric]
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
            return metric_loss(row.function, *data, epsilon=epsilon, **options)

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
class AuditedQuery:
    """What a function releases that is no metric, on numbers from 0 to 1.

    Parameters
    ----------
    query : callable
        Returns the `Query` of (shape, epsilon).
    column : str, default="noisy counts"
        What draws, as the table of the audit calls it.
    records : callable, default=the numbers
        The arguments that hold a value per record, of the numbers.
    """

    query: Callable[[Shape, Fraction], Query]
    column: str = "noisy counts"
    records: Callable[[Floats], tuple[Any, ...]] = lambda x: (x,)

    adds, bounded, sums, has_own_noise = False, False, False, True

    def loss(self, epsilon: float, mechanism: str | Mechanism) -> Callable[[Floats, Floats], float]:
        """Return the exact privacy loss of the query between two arrays."""
        exact = exact_epsilon(epsilon)

        def between(a: Floats, b: Floats) -> float:
            return query_loss(
                lambda shape: self.query(shape, exact), self.records(a), self.records(b), epsilon=epsilon
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
    """Return every public metric: as it is, and with a public limit."""
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


def _mean_interval(shape: Shape, epsilon: Fraction, **options: Any) -> Query:
    return mean_query(**options)


def _quantile_interval(shape: Shape, epsilon: Fraction, *, max_loss: float | None = None) -> Query:
    # a confidence as low as this lets few records have both limits
    return quantile_query(shape, q=0.5, epsilon=epsilon, max_loss=max_loss, confidence=0.3)


def _over_the_grid(x: Floats) -> tuple[Any, ...]:
    """Return losses that cover the whole grid."""
    return (np.sinh(700 * x),)


def _compared(shape: Shape, epsilon: Fraction, *, loss: str, max_difference: float | None) -> Query:
    return comparison_query(paired_losses(loss, shape, {}), shape.n, max_difference=max_difference)


def _both_wrong(x: Floats) -> tuple[Any, ...]:
    """Return two models: both are wrong about the lowest third of the numbers, each about another one."""
    third = np.minimum(np.floor(x * 3), 2)
    return np.ones_like(x), third, third - 1


def _opposites(x: Floats) -> tuple[Any, ...]:
    return np.zeros_like(x), x, 1 - x


QUERIES: dict[str, AuditedQuery] = {
    "private_mean_interval": AuditedQuery(partial(_mean_interval, max_loss=1.0)),
    "private_mean_interval, private cap": AuditedQuery(
        partial(_mean_interval, cap="private"), records=_over_the_grid
    ),
    "private_compare": AuditedQuery(
        partial(_compared, loss="zero_one", max_difference=None), records=_both_wrong
    ),
    "private_compare, max_difference": AuditedQuery(
        partial(_compared, loss="mae", max_difference=1.0), records=_opposites
    ),
    "private_quantile_interval": AuditedQuery(_quantile_interval, "hazard", _over_the_grid),
    "private_quantile_interval, max_loss": AuditedQuery(partial(_quantile_interval, max_loss=1.0), "hazard"),
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
    everything: dict[str, AuditCase | AuditedFrame | AuditedQuery] = {**AUDITED, **FRAMES, **QUERIES}
    not_asked = get_mechanism("geometric")
    work = [
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
    for name, audited, label, mechanism, epsilon in progress(work):
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


__all__ = [
    "AuditResult",
    "audit",
    "finite_loss",
    "frame_loss",
    "loss_lower_bound",
    "metric_loss",
    "privacy_loss",
    "query_loss",
    "seed_pairs",
]

Pair = tuple[Floats, Floats]


@own_error_state
def privacy_loss(
    mechanism: str | Mechanism,
    output_bounds_a: OutputBounds,
    output_bounds_b: OutputBounds,
    *,
    epsilon: Epsilon,
) -> float:
    """Return the exact privacy loss of a release between two data sets: the largest log ratio of its laws.

    Parameters
    ----------
    mechanism : str or mechanism object
        The mechanism; of "adaptive" the one stage that it has where output bounds are all that is known.
    output_bounds_a, output_bounds_b : OutputBounds
        What the mechanism sees of two data sets, usually neighbours.
    epsilon : float
        Privacy parameter at which the mechanism is run.

    Returns
    -------
    float
        max over outputs of abs(log(P_a / P_b)), infinite if an output is possible under one of them only.
        For a mechanism that is epsilon-differentially private it is at most epsilon for neighbours.

    Raises
    ------
    TypeError
        If the law of the mechanism is of a kind that cannot be compared exactly.

    Notes
    -----
    Hazard selection is computed in integers, for the point at which the cumulative hazard crosses its random
    level: the grid point released is a function of that. Between the breakpoints of the two laws, and the
    places where either cumulative hazard passes z0, their ratio is monotone, so the ends decide.
    AboveThreshold is a polynomial in exp(-eps2 * threshold) between the scores, which Gauss-Legendre
    quadrature with enough nodes integrates exactly. The other mechanisms have closed forms.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics.analysis import auditing
    >>> from dp_metrics.sensitivity.output_bounds import OutputBounds
    >>> down, up = np.linspace(0.9, 0.0, 10), np.linspace(1.1, 2.0, 10)
    >>> a = OutputBounds(1.0, down, up, output_range=(0.0, 2.0), monotonic=True, n=10)
    >>> lower, higher = np.append(down[1:], 0.0), np.append(1.0, up[:-1])
    >>> b = OutputBounds(0.9, lower, higher, output_range=(0.0, 2.0), monotonic=True, n=10)
    >>> auditing.privacy_loss("hazard", a, b, epsilon=1.0) <= 1.0
    True
    """
    mechanism = get_mechanism(mechanism)
    a = mechanism.output_distribution(output_bounds_a, epsilon)
    b = mechanism.output_distribution(output_bounds_b, epsilon)
    return law_loss(a, b)


@own_error_state
def metric_loss(
    metric: Callable[..., Any] | str,
    records_a: Sequence[ArrayLike],
    records_b: Sequence[ArrayLike],
    *,
    epsilon: float,
    mechanism: str | Mechanism = "hazard",
    **options: Any,
) -> float:
    """Return the exact privacy loss of a public metric on two data sets, summed over its releases.

    Parameters
    ----------
    metric : callable or str
        A private metric that takes `epsilon` and `mechanism`, or the name of one.
    records_a, records_b : sequence of array-like
        The positional arguments of the metric for either data set.
    epsilon : float
        What the metric is asked to cost.
    mechanism : str or mechanism object, default="hazard"
        The mechanism.
    **options
        Further arguments of the metric.

    Returns
    -------
    float
        The loss of its releases together: at most epsilon for neighbours if the metric keeps its promise.
        With neighboring="add_or_remove_one" it includes what the noisy count costs.
    """
    function = metric_named(metric)
    if metric_of(function) is not None:
        row, fixed = row_of(function)
        return _planned_loss(row, records_a, records_b, epsilon, {"mechanism": mechanism, **fixed, **options})
    seen = []
    for records in (records_a, records_b):
        observed = Observed(get_mechanism(mechanism))
        function(*records, epsilon=epsilon, mechanism=observed, **options)
        seen.append(observed.seen)
    spent = [one.epsilon for one in seen[0]]
    if spent != [one.epsilon for one in seen[1]]:
        return math.inf
    total = 0.0
    if Relation.told_by(options).private_n:
        # the rest of epsilon pays for the noisy count, which is the same for both of a pair of laws
        total = float(exact_epsilon(epsilon) - sum(spent))
    counts = [max(one.n, 1) for one in seen[0]]
    pairs = zip(counts, *seen, strict=True)
    return total + math.fsum(law_loss(a.law(count), b.law(count)) for count, a, b in pairs)


@own_error_state
def frame_loss(  # noqa: PLR0913 - those of a frame
    metrics: Any,
    records_a: Sequence[ArrayLike],
    records_b: Sequence[ArrayLike],
    *,
    group_labels: Any,
    epsilon: float,
    membership: str = "private",
    overall_share: float = 0.2,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
) -> float:
    """Return the exact privacy loss of a `PrivateMetricFrame` on two data sets, summed over its releases.

    Parameters
    ----------
    metrics, group_labels, epsilon, membership, overall_share, groups, max_records, neighboring
        As in `PrivateMetricFrame`.
    records_a, records_b : sequence of array-like
        y_true, y_pred and sensitive_features of either data set.

    Returns
    -------
    float
        The loss of its releases together: at most epsilon for neighbours if the frame keeps its promise.

    Examples
    --------
    >>> from dp_metrics import private_recall_score
    >>> from dp_metrics.analysis import auditing
    >>> a = [1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 0, 0]
    >>> b = [1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]  # one person is of another group
    >>> auditing.frame_loss(private_recall_score, a, b, group_labels=[0, 1], epsilon=1.0)
    1.0
    """
    release = Release("", Terms.of(epsilon=epsilon, neighboring=neighboring))
    asked = FrameOptions(metrics, group_labels, membership, overall_share, groups, max_records)
    relation = release.terms.relation
    sides = (read_frame(asked, *data, relation=relation)[:2] for data in (records_a, records_b))
    return _loss_of_queries(release, *sides)


def _planned_loss(
    row: Metric,
    records_a: Sequence[ArrayLike],
    records_b: Sequence[ArrayLike],
    epsilon: float,
    arguments: Mapping[str, Any],
) -> float:
    """Return the loss of what a metric releases, a noisy count included."""
    options = {name: value for name, value in arguments.items() if name in row.options}
    settings = {name: value for name, value in arguments.items() if name not in row.options}
    sides = []
    for records in (records_a, records_b):
        release = row.release_on(Terms.of(epsilon=epsilon, **settings), options)
        sides.append(row.read(records, options, relation=release.terms.relation))
    return _loss_of_queries(release, *sides)


@own_error_state
def query_loss(
    make_query: Callable[[Shape], Query | Together],
    records_a: Sequence[ArrayLike],
    records_b: Sequence[ArrayLike],
    *,
    epsilon: float,
) -> float:
    """Return the exact privacy loss of what a query releases on two data sets, the number of records public.

    Parameters
    ----------
    make_query : callable
        Returns the `Query` of records of a `Shape`, or several of them `Together`.
    records_a, records_b : sequence of array-like
        The arguments that hold a value per record, for either data set.
    epsilon : float
        What the release is asked to cost.

    Returns
    -------
    float
        The loss of its releases together: at most epsilon for neighbours if the query keeps its promise.
    """
    sides = []
    for data in (records_a, records_b):
        shape, records = Records.of(data, relation=Relation.REPLACE_ONE)
        query = make_query(shape)
        sides.append((query, query.read(records)))
    return _loss_of_queries(Release("", Terms.of(epsilon=epsilon)), *sides)


def _loss_of_queries(release: Release, a: tuple[Any, Any], b: tuple[Any, Any]) -> float:
    """Return the loss of all that a query, or several together, release of what is known of two data sets."""
    sides = [release.prepare_all(*side) for side in (a, b)]
    if a[0] != b[0]:
        return math.inf  # a public thing that differs
    return math.fsum(_loss_of_prepared(*pair) for pair in zip(*sides, strict=True))


def _loss_of_prepared(a: PreparedQuery, b: PreparedQuery) -> float:
    """Return the loss of what one query releases of two data sets, a noisy count included."""
    n, other = a.source.n, b.source.n
    if n != other and not a.terms.relation.private_n:
        return math.inf  # a public number that differs
    # both draw with one noisy count, whose loss is what it cost for each record that one of them has more
    for_count, count = float(a.for_count) * abs(n - other), max(n, 1)
    pairs = zip(a.laws(count), b.laws(count), strict=True)
    return for_count + math.fsum(law_loss(*pair) for pair in pairs)


@dataclass(frozen=True)
class AuditResult:
    """What an audit found; print it for a one-page report.

    Parameters
    ----------
    name : str
        What was audited.
    claimed : float
        The epsilon it claims.
    worst : float
        Largest loss found.
    pair : tuple of ndarray
        The neighbouring inputs that show it. They were made by the audit.
    pairs : int
        Number of pairs tried.
    tolerance : float, default=0.0
        Relative error allowed to the computation of the loss.
    """

    name: str
    claimed: float
    worst: float
    pair: Pair
    pairs: int
    tolerance: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether no pair exceeds the claim."""
        return self.worst <= self.claimed * (1.0 + self.tolerance)

    def __str__(self) -> str:
        changed = np.flatnonzero(self.pair[0] != self.pair[1])
        place = int(changed[0]) if changed.size else 0
        lines = [
            f"Audit of {self.name}: {'PASS' if self.passed else 'FAIL'}",
            f"  claimed epsilon    {self.claimed:.12g}",
            f"  worst loss found   {self.worst:.12g}   ({self.worst / self.claimed:.6f} of the claim)",
            f"  pairs tried        {self.pairs}",
            f"  the worst pair     {np.array2string(self.pair[0], threshold=12, precision=6)}",
            f"  with record {place} replaced by {self.pair[1][place]:.9g}",
        ]
        return "\n".join(lines)


def seed_pairs(n: int, cap: float, ties: Sequence[float] = ()) -> Iterator[Pair]:
    """Yield neighbouring pairs of n numbers in [0, cap] that are hard for mechanisms.

    Equal values, one giant, values at the cap, all zeros, a ramp, two clusters, and values that tie with
    given points, such as points of the grid; in each the largest, the smallest or a middle value is
    replaced by either end.
    """
    rng = np.random.default_rng(0)  # the study needs a seed; no release is drawn here
    starts = [
        np.zeros(n),
        np.full(n, cap),
        np.full(n, cap / 10),
        np.r_[np.full(n - 1, cap / 1000), cap],
        np.r_[np.zeros(n // 2), np.full(n - n // 2, cap)],
        np.linspace(0.0, cap, n),
        np.minimum(rng.exponential(cap / 20, n), cap),
        np.minimum(rng.lognormal(math.log(cap / 100), 2.0, n), cap),
        *(np.full(n, tie) for tie in ties),
        *(np.r_[tie * n, np.zeros(n - 1)] for tie in ties if tie * n <= cap),
    ]
    for start in starts:
        order = np.argsort(start)
        for place in {int(order[0]), int(order[-1]), int(order[n // 2])}:
            for replacement in (0.0, cap, float(start[order[n // 2]])):
                other = start.copy()
                other[place] = replacement
                if other[place] != start[place]:
                    yield start, other


@own_error_state
def audit(  # noqa: PLR0913 - what to search, and how
    name: str,
    loss: Callable[[Floats, Floats], float],
    *,
    epsilon: float,
    n: int = 12,
    cap: float = 1.0,
    ties: Sequence[float] = (),
    steps: int = 100,
    tolerance: float = 0.0,
    seed: int = 0,
) -> AuditResult:
    """Search for the neighbouring pair with the largest privacy loss.

    Parameters
    ----------
    name : str
        What is audited, for the report.
    loss : callable
        loss(a, b) is the privacy loss between two arrays of n numbers in [0, cap], such as `metric_loss` of
        a metric.
    epsilon : float
        The claim.
    n : int, default=12
        Number of records.
    cap : float, default=1.0
        Largest value of a record.
    ties : sequence of float, default=()
        Values to try as ties with the mechanism's outputs.
    steps : int, default=100
        Steps of hill climbing from the worst adversarial pair.
    tolerance : float, default=0.0
        Relative error allowed to the computation of the loss.
    seed : int, default=0
        Seed of the hill climbing. The audit handles no real data.

    Returns
    -------
    AuditResult
        The worst pair found, and whether it keeps the claim.

    Examples
    --------
    >>> from dp_metrics import private_mean_loss
    >>> from dp_metrics.analysis import auditing
    >>> def loss(a, b):
    ...     return auditing.metric_loss(private_mean_loss, [a], [b], epsilon=1.0, max_loss=1.0)
    >>> auditing.audit("private_mean_loss", loss, epsilon=1.0, n=5, steps=5).passed
    True
    """
    claimed = check_epsilon(epsilon)
    rng = np.random.default_rng(seed)
    pairs = list(seed_pairs(n, cap, ties))
    worst, pair = max(((loss(a, b), (a, b)) for a, b in pairs), key=lambda found: found[0])
    for _ in range(steps):
        if math.isinf(worst):
            break
        candidate = _mutate(pair, cap, rng)
        found = loss(*candidate)
        if found >= worst:
            worst, pair = found, candidate
    return AuditResult(name, claimed, worst, pair, len(pairs) + steps, tolerance)


def _mutate(pair: Pair, cap: float, rng: np.random.Generator) -> Pair:
    """Move one or two of the common records, or the replaced one, or its replacement."""
    a, b = pair[0].copy(), pair[1].copy()
    place = int(np.flatnonzero(a != b)[0])
    for _ in range(int(rng.integers(1, 3))):
        move = int(rng.integers(a.size))
        value = float(rng.choice([0.0, cap, cap * rng.random(), a[int(rng.integers(a.size))]]))
        if move != place:
            a[move] = b[move] = value
        elif rng.random() < 0.5 and value != b[place]:
            a[place] = value
        elif value != a[place]:
            b[place] = value
    return a, b


@own_error_state
def loss_lower_bound(sample_a: ArrayLike, sample_b: ArrayLike, *, confidence: float = 0.999) -> float:
    """Return a statistical lower bound on the privacy loss, from outputs alone.

    Parameters
    ----------
    sample_a, sample_b : array-like of shape (n_releases,)
        Independent outputs of a black box on two neighbouring data sets.
    confidence : float, default=0.999
        Probability that the bound is at most the true loss.

    Returns
    -------
    float
        If it exceeds the claimed epsilon, the claim is refuted at this confidence. A small bound proves
        nothing.

    Notes
    -----
    Half of each sample chooses an event, a half-line or one value, and which of the two data sets makes it
    more likely; the other half estimates the two probabilities with Clopper-Pearson bounds.

    References
    ----------
    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> from dp_metrics.analysis import auditing
    >>> auditing.loss_lower_bound([0.0] * 1000, [1.0] * 1000) > 3  # the output tells all
    True
    """
    a, b = (np.asarray(sample, dtype=np.float64).ravel() for sample in (sample_a, sample_b))
    if min(a.size, b.size) < 4:
        raise ValueError("Each sample needs at least 4 outputs.")
    confidence = check_confidence(confidence)
    points = np.unique(np.concatenate([a[::2], b[::2]]))
    if points.size > 2000:
        points = np.quantile(points, np.linspace(0.0, 1.0, 2000))
    scores = []
    for sample_1, sample_2, sign in ((a, b, 1.0), (b, a, -1.0)):
        train_1, train_2 = np.sort(sample_1[::2]), np.sort(sample_2[::2])
        for side in ("left", "right"):
            below_1 = np.searchsorted(train_1, points, side=side) / train_1.size
            below_2 = np.searchsorted(train_2, points, side=side) / train_2.size
            scores.append((sign, side, "below", _gain(below_1, below_2, train_2.size)))
            scores.append((sign, side, "above", _gain(1 - below_1, 1 - below_2, train_2.size)))
        at_1 = np.searchsorted(train_1, points, "right") - np.searchsorted(train_1, points, "left")
        at_2 = np.searchsorted(train_2, points, "right") - np.searchsorted(train_2, points, "left")
        scores.append((sign, "left", "at", _gain(at_1 / train_1.size, at_2 / train_2.size, train_2.size)))
    sign, side, kind, gain = max(scores, key=lambda score: float(score[3].max()))
    threshold = points[int(gain.argmax())]

    def count(sample: Floats) -> int:
        if kind == "at":
            return int(np.sum(sample == threshold))
        below = sample < threshold if side == "left" else sample <= threshold
        return int(np.sum(below if kind == "below" else ~below))

    first, second = (a[1::2], b[1::2]) if sign > 0 else (b[1::2], a[1::2])
    level = (1.0 - confidence) / 2.0
    hits, misses = count(first), count(second)
    lower = float(betaincinv(hits, first.size - hits + 1, level)) if hits else 0.0
    upper = float(betaincinv(misses + 1, second.size - misses, 1.0 - level)) if misses < second.size else 1.0
    return max(0.0, math.log(lower / upper)) if lower > 0 else 0.0


def _gain(p: Floats, q: Floats, size: int) -> Floats:
    """Return the log ratio that an event promises, discounted by its sampling error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low = p - 3.3 * np.sqrt(p * (1 - p) / size) - 5.0 / size
        high = q + 3.3 * np.sqrt(q * (1 - q) / size) + 5.0 / size
        return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)
