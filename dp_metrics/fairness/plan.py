"""What a table of metrics by group releases, and how its entries follow."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import Entropy
from dp_metrics.fairness.groups import Groups
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.metrics import Metric, metric_of
from dp_metrics.metrics.labels.counts import (
    Confusion,
    Counts,
    Layout,
    confusion_for,
    confusion_of,
    matrix_layout,
    right_or_wrong,
    whole,
)
from dp_metrics.release.draws import Draw
from dp_metrics.release.noise import CountsNoise, noisy_shares
from dp_metrics.release.queries.count_table import CountTable, check_cells, plausible_counts
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.release.queries.nested_table import NestedTable
from dp_metrics.release.release import Plan, Release
from dp_metrics.release.released import Released
from dp_metrics.release.result import PrivateResult
from dp_metrics.sensitivity.exact import UNIT_BITS

__all__ = ["Block", "BlockResult", "FrameMetric", "Part", "frame_metrics", "plan_frame"]

NO_RECORDS = "This group has no records."
"""The note of a group that all know to be empty."""

_REFUSED = (
    "epsilon",
    "accountant",
    "random_state",
    "neighboring",
    "label",
    "return_result",
    "sample_weight",
    "groups",
)


@dataclass(frozen=True, eq=False)
class FrameMetric:
    """A metric of a frame.

    Parameters
    ----------
    name : str
        Its name in the table.
    row : Metric
        Its row of the catalogue.
    options, settings : dict
        Its public options, and its mechanism if one was chosen.
    """

    name: str
    row: Metric
    options: dict[str, Any]
    settings: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Part:
    """A release of its own on some of the records, ready to be drawn.

    Parameters
    ----------
    release : Release
        Its settings: without an accountant, because the frame pays.
    plan : Plan
        What is released.
    draws : sequence of Draw
        What is left to do after the spend.
    for_count : Fraction
        What pays for a noisy number of records.
    """

    release: Release
    plan: Plan
    draws: Sequence[Draw]
    for_count: Fraction

    @classmethod
    def of(cls, release: Release, plan: Plan) -> "Part":
        """Return a release with all checks done."""
        draws, _, for_count = release.prepare(plan)
        return cls(release, plan, draws, for_count)

    def draw(self) -> PrivateResult:
        """Draw, after the spend."""
        return self.release.draw(self.plan, self.draws, self.for_count)


@dataclass(frozen=True, eq=False)
class _Setting:
    """What all parts of a frame have in common.

    Parameters
    ----------
    public : mapping
        Source of randomness and neighbouring relation of the frame.
    membership : {"private", "public"}
        Whether the group of each record is private.
    sizes : list of int
        Records in each group: private, unless membership and the number of records are public.
    """

    public: Mapping[str, Any]
    membership: str
    sizes: list[int]

    @property
    def private_n(self) -> bool:
        """Whether the number of all records is private."""
        return bool(self.public["neighboring"] == "add_or_remove_one")

    @property
    def hides_groups(self) -> bool:
        """Whether the group of each record is private."""
        return self.membership == "private"

    @property
    def hides_sizes(self) -> bool:
        """Whether the number of records of a group is private."""
        return self.hides_groups or self.private_n

    def is_empty(self, group: int) -> bool:
        """Return whether all may know that a group has no records: nothing is drawn for it then."""
        return not (self.hides_sizes or self.sizes[group])

    def of_groups(self) -> dict[str, Any]:
        """Return the setting of a release for one group."""
        return {**self.public, "neighboring": "add_or_remove_one" if self.hides_sizes else "replace_one"}


class BlockResult(NamedTuple):
    """What the results of a block give.

    Parameters
    ----------
    values : mapping
        For each metric its value by group, and its overall value.
    notes : mapping
        For each metric what released numbers tell of these values, in the same form; see `PrivateResult`.
    sizes : list of float or None
        The number of records of each group, where the block tells it.
    """

    values: Mapping[str, tuple[list[Any], Any]]
    notes: Mapping[str, tuple[list[str | None], str | None]]
    sizes: list[float] | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Some of the releases of a frame, and the result of them together.

    Parameters
    ----------
    parts : list of Part
        The releases.
    combine : callable
        `BlockResult` of their results.
    mean_size : Fraction or None, default=None
        The public mean number of records in a group, for releases on groups whose own size is private.
    """

    parts: list[Part]
    combine: Callable[[Sequence[PrivateResult]], BlockResult]
    mean_size: Fraction | None = None

    def warn_of_noise(self) -> None:
        """Warn once, before the spend, if public numbers alone tell that a release will be mostly noise."""
        for part in self.parts:
            records = self.mean_size if part.release.private_n else None
            if part.release.warn_of_noise(part.plan, part.draws, records):
                return

    def draw(self) -> BlockResult:
        """Draw all parts, after the spend."""
        return self.combine([part.draw() for part in self.parts])


def frame_metrics(metrics: Any) -> list[FrameMetric]:
    """Return the metrics that a caller named: functions of this package, or partials of them."""
    several = metrics if isinstance(metrics, Mapping) else {"": metrics}
    if not several:
        raise ValueError("metrics must be a private metric or a dict of several.")
    return [_frame_metric(str(name), metric) for name, metric in several.items()]


def _frame_metric(name: str, metric: Any) -> FrameMetric:
    row = metric_of(metric) if callable(metric) else None
    if row is None or len(row.data) != 2:
        raise TypeError(
            "metrics must be private metrics of this package that take y_true and y_pred, such as "
            "private_recall_score, or functools.partial of them."
        )
    keywords = dict(metric.keywords) if isinstance(metric, functools.partial) else {}
    if isinstance(metric, functools.partial) and metric.args:
        raise TypeError("A partial of a metric must fix keywords only.")
    for refused in _REFUSED:
        if refused in keywords:
            raise ValueError(
                f"{refused} is no option of a metric in a frame: pass it to the frame, if it takes it."
            )
    settings = {key: keywords.pop(key) for key in ("mechanism",) if key in keywords and row.mechanism}
    if unknown := sorted(keywords.keys() - row.options.keys()):
        raise TypeError(f"{row.name}() got an unexpected keyword argument {unknown[0]!r}.")
    return FrameMetric(name, row, keywords, settings)


def plan_frame(
    metrics: Sequence[FrameMetric],
    data: tuple[Any, Any],
    groups: Groups,
    *,
    epsilon: Fraction,
    membership: str,
    neighboring: str,
    overall_share: Fraction,
    entropy: Entropy,
) -> list[Block]:
    """Return what a frame releases at epsilon together, with all checks done.

    Each metric has an equal part of epsilon; metrics of labels that have one label set put theirs together
    for one table of counts.
    """
    sizes = np.bincount(groups.codes, minlength=groups.size).tolist()
    setting = _Setting({"random_state": entropy, "neighboring": neighboring}, membership, sizes)
    share, blocks = epsilon / len(metrics), []
    records = list(groups.parts(*data, private_n=setting.private_n))
    tables: dict[str, list[tuple[FrameMetric, Confusion]]] = {}
    for one in metrics:
        if one.row.is_confusion:
            confusion = confusion_for(one.row, one.options)
            tables.setdefault(repr(confusion.labels.in_order.tolist()), []).append((one, confusion))
    for members in tables.values():
        blocks.append(_labels(members, records, share * len(members), setting))
    for one in metrics:
        if not one.row.is_confusion:
            blocks.append(_other(one, data, records, share, setting, overall_share))
    return blocks


def _shared_layout(confusions: Sequence[Confusion], labels: LabelSet) -> Layout:
    """Return the fewest counts that determine all of these metrics."""
    if len(confusions) == 1:
        return confusions[0].layout
    return whole(labels.size) if any(c.needs_matrix for c in confusions) else matrix_layout(labels.size)


def _labels(
    members: Sequence[tuple[FrameMetric, Confusion]],
    records: Sequence[Sequence[Any]],
    epsilon: Fraction,
    setting: _Setting,
) -> Block:
    """Return the release of metrics of one set of labels."""
    labels = members[0][1].labels
    layout = _shared_layout([confusion for _, confusion in members], labels)
    check_cells(
        len(records) * layout.good.size,
        f"The table of {len(records):,} groups and {labels.size:,} labels",
        "private_accuracy_score needs 2 cells for each group, private_recall_score with average='binary' 3.",
    )
    # an empty group may be read as if its size were private: with public membership all know that it is empty
    counts = [
        layout.of(confusion_of(y_true, y_pred, labels, private_n=setting.hides_sizes or not size))
        for (y_true, y_pred), size in zip(records, setting.sizes, strict=True)
    ]
    formulas = {metric.name: (confusion.formula, confusion.rests_on) for metric, confusion in members}
    return _table(formulas, counts, layout, epsilon, setting)


def _other(
    metric: FrameMetric,
    data: tuple[Any, Any],
    records: Sequence[Sequence[Any]],
    epsilon: Fraction,
    setting: _Setting,
    overall_share: Fraction,
) -> Block:
    """Return the releases of any other metric: one table if it is a share of the records."""
    row, options = metric.row, {**metric.row.options, **metric.options}
    each = epsilon * (1 - overall_share)
    if setting.hides_groups and not setting.private_n:
        # a record that is replaced may leave one group and enter another: two with a record more or less
        each /= 2

    def released(epsilon: Fraction, public: Mapping[str, Any]) -> Release:
        return row.settings(**{**public, **metric.settings}, epsilon=epsilon, options=options)

    # the options must suit the sizes of the groups, even where these are private
    release = released(each, setting.of_groups())
    plans = [
        None if setting.is_empty(group) else row.planned(part, options, private_n=setting.hides_sizes)
        for group, part in enumerate(records)
    ]
    known = [plan for plan in plans if plan is not None]
    if not metric.settings and _is_share(known[0]):
        return _share(metric, plans, epsilon, setting)
    parts = [Part.of(release, plan) for plan in known]
    # the smallest group has at most as many records as the mean one, which is public
    mean = Fraction(sum(setting.sizes), len(records)) if not setting.private_n else None
    if overall_share:
        whole_plan = row.planned(data, options, private_n=setting.private_n)
        parts.insert(0, Part.of(released(epsilon * overall_share, setting.public), whole_plan))

    def combine(results: Sequence[PrivateResult]) -> BlockResult:
        values = [(result.value, result.note) for result in results]
        overall = values.pop(0) if overall_share else (None, None)
        each, nothing = iter(values), (_undefined(known[0], release), NO_RECORDS)
        by_group = [nothing if plan is None else next(each) for plan in plans]
        of_values, of_notes = (([pair[i] for pair in by_group], overall[i]) for i in (0, 1))
        return BlockResult({metric.name: of_values}, {metric.name: of_notes})

    return Block(parts, combine, mean)


def _undefined(plan: Plan, release: Release) -> Any:
    """Return what a metric is of no record: NaN in the place of each number of its result.

    Parameters
    ----------
    plan : Plan
        The plan of any other group, which tells the form of the result.
    release : Release
        Its settings.
    """
    if any(isinstance(query, CountTable | NestedTable) for query in plan.queries):
        return math.nan
    return release.result(plan, [math.nan] * len(plan.queries))


def _is_share(plan: Plan) -> bool:
    """Return whether what is released is one share of the records."""
    (query, *others) = plan.queries
    return not others and isinstance(query, MeanLoss) and query.record_loss.is_count


def _share(metric: FrameMetric, plans: Sequence[Plan | None], epsilon: Fraction, setting: _Setting) -> Block:
    """Return the release of a share of the records: how many count, and how many do not."""
    result = next(plan for plan in plans if plan is not None).postprocess
    of_nothing = 0.0 if setting.hides_groups else math.nan

    def formula(counts: Counts) -> Any:
        wrong = float(counts.false_negatives[0] / counts.n) if counts.n > 0 else of_nothing
        return result(Released([wrong], None, counts.n, epsilon, "replace_one"))

    counts = []
    for plan in plans:
        if plan is None:
            counts.append(np.zeros(2, dtype=np.int64))
            continue
        query: Any = plan.queries[0]
        wrong = query.aggregate(0).aggregate.total >> UNIT_BITS
        counts.append(np.array([query.n - wrong, wrong]))
    formulas = {metric.name: (formula, lambda counts: np.array([counts.n]))}
    return _table(formulas, counts, right_or_wrong(), epsilon, setting)


def _noise_of(result: PrivateResult) -> float:
    """Return the expected size of the noise of one count of a released table."""
    assert result.noise is not None
    (noise,) = result.noise.parts
    assert isinstance(noise, CountsNoise)
    return noise.expected


def _table(
    formulas: Mapping[str, tuple[Callable[[Counts], Any], Callable[[Counts], Floats]]],
    counts: Sequence[NDArray[np.int64]],
    layout: Layout,
    epsilon: Fraction,
    setting: _Setting,
) -> Block:
    """Return one table of counts for all groups, or with public membership a table for each.

    Of each metric `formulas` has the formula, and the numbers of records that it divides by.
    """
    release = Release(
        "PrivateMetricFrame", epsilon=epsilon, mechanism=None, default=None, accountant=None, **setting.public
    )
    if setting.hides_groups:
        cells = layout.cells * len(counts)
        tables = [CountTable(np.concatenate(counts), sum(setting.sizes), cells, layout.is_partition)]
    else:
        tables = [
            CountTable(part, size, layout.cells, layout.is_partition)
            for part, size in zip(counts, setting.sizes, strict=True)
            if size
        ]

    def plausible(results: Sequence[PrivateResult]) -> Any:
        noisy = [result.value for result in results]
        if setting.hides_groups:
            n = None if setting.private_n else sum(setting.sizes)
            return plausible_counts(noisy[0], cells, n).reshape(len(counts), -1)
        each, none = iter(noisy), np.zeros(len(counts[0]))
        return np.stack(
            [plausible_counts(next(each), layout.cells, size) if size else none for size in setting.sizes]
        )

    def combine(results: Sequence[PrivateResult]) -> BlockResult:
        table = plausible(results)
        by_group, overall = [layout.read(row) for row in table], layout.read(table.sum(axis=0))
        noise = max(_noise_of(result) for result in results)
        in_all = noise * math.sqrt(len(by_group))  # the noise of the groups is independent

        def note(group: int, shares: Callable[[Counts], Floats]) -> str | None:
            return NO_RECORDS if setting.is_empty(group) else noisy_shares(noise, shares(by_group[group]))

        values, notes = {}, {}
        for name, (formula, shares) in formulas.items():
            values[name] = [formula(counts) for counts in by_group], formula(overall)
            each = [note(group, shares) for group in range(len(by_group))]
            notes[name] = each, noisy_shares(in_all, shares(overall))
        return BlockResult(values, notes, [counts.n for counts in by_group])

    return Block([Part.of(release, Plan((table,))) for table in tables], combine)
