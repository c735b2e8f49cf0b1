"""What a table of metrics by group releases, and how its entries follow."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dp_metrics._random import Entropy
from dp_metrics.fairness.groups import Groups
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.metrics import Metric, metric_of
from dp_metrics.metrics._confusion import Confusion, Layout, confusion_of, matrix_layout, whole
from dp_metrics.release.draws import Draw
from dp_metrics.release.release import Plan, Release
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.tables import CountTable, plausible_counts

__all__ = ["Asked", "FramePlan", "Part", "asked_metrics", "plan_frame"]

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
class Asked:
    """A metric that is asked for.

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
        release.warn_of_noise(plan, draws)
        return cls(release, plan, draws, for_count)

    def draw(self) -> PrivateResult:
        """Draw, after the spend."""
        return self.release.draw(self.plan, self.draws, self.for_count)


Entries = Callable[[Sequence[PrivateResult]], Mapping[str, tuple[list[Any], Any]]]
"""From the results of some parts, for each metric its value by group and its overall value."""


@dataclass(eq=False)
class FramePlan:
    """All that a frame releases.

    Parameters
    ----------
    parts : list of Part
        Releases that cost epsilon together.
    entries : list of (int, Entries)
        How many parts in a row make which entries of the table.
    sizes : callable or None
        The number of records of each group, from all results, where something tells it.
    """

    parts: list[Part] = field(default_factory=list)
    entries: list[tuple[int, Entries]] = field(default_factory=list)
    sizes: Callable[[Sequence[PrivateResult]], list[float]] | None = None

    def add(self, parts: Sequence[Part], entries: Entries) -> None:
        """Add parts, and what is made of them."""
        self.parts += parts
        self.entries.append((len(parts), entries))


def asked_metrics(metrics: Any) -> list[Asked]:
    """Return the metrics that a caller named: functions of this package, or partials of them."""
    several = metrics if isinstance(metrics, Mapping) else {"": metrics}
    if not several:
        raise ValueError("metrics must be a private metric or a dict of several.")
    return [_asked(str(name), metric) for name, metric in several.items()]


def _asked(name: str, metric: Any) -> Asked:
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
            raise ValueError(f"{refused} is no option of a metric here: it is one of the frame, if at all.")
    settings = {key: keywords.pop(key) for key in ("mechanism",) if key in keywords and row.mechanism}
    if unknown := sorted(keywords.keys() - row.options.keys()):
        raise TypeError(f"{row.name}() got an unexpected keyword argument {unknown[0]!r}.")
    return Asked(name, row, keywords, settings)


def plan_frame(
    asked: Sequence[Asked],
    data: tuple[Any, Any],
    groups: Groups,
    *,
    epsilon: Fraction,
    membership: str,
    neighboring: str,
    overall_share: Fraction,
    entropy: Entropy,
) -> FramePlan:
    """Return what a frame releases at epsilon together, with all checks done.

    Each metric has an equal part of epsilon; metrics of labels that have one label set put theirs together
    for one table of counts.
    """
    public = {"random_state": entropy, "neighboring": neighboring}
    frame, share = FramePlan(), epsilon / len(asked)
    tables: dict[str, list[tuple[Asked, Confusion]]] = {}
    for one in asked:
        if one.row.is_confusion:
            confusion = _confusion(one)
            tables.setdefault(repr(confusion.labels.in_order.tolist()), []).append((one, confusion))
    for members in tables.values():
        _add_table(frame, members, data, groups, share * len(members), membership, public)
    for one in asked:
        if not one.row.is_confusion:
            _add_releases(frame, one, data, groups, share, membership, public, overall_share)
    return frame


def _confusion(asked: Asked) -> Confusion:
    confusion = asked.row.planned(([], []), asked.options, private_n=True).postprocess
    assert isinstance(confusion, Confusion)
    return confusion


def _shared_layout(confusions: Sequence[Confusion], labels: LabelSet) -> Layout:
    """Return the fewest counts that determine all of these metrics."""
    if len(confusions) == 1:
        return confusions[0].layout
    return whole(labels.size) if any(c.needs_matrix for c in confusions) else matrix_layout(labels.size)


def _add_table(
    frame: FramePlan,
    members: Sequence[tuple[Asked, Confusion]],
    data: tuple[Any, Any],
    groups: Groups,
    epsilon: Fraction,
    membership: str,
    public: Mapping[str, Any],
) -> None:
    """Add one table of counts for all groups, or with public membership a table for each."""
    labels = members[0][1].labels
    layout = _shared_layout([confusion for _, confusion in members], labels)
    release = Release(
        "PrivateMetricFrame", epsilon=epsilon, mechanism=None, default=None, accountant=None, **public
    )
    private_n = release.private_n
    matrices = [
        confusion_of(y_true, y_pred, labels, private_n=private_n or membership == "private")
        for y_true, y_pred in groups.parts(*data, private_n=private_n)
    ]
    n = None if private_n else len(groups.codes)
    if membership == "private":
        counts = np.concatenate([layout.of(matrix) for matrix in matrices])
        cells = layout.cells * groups.size
        tables = [CountTable(counts, len(groups.codes), cells, layout.is_partition)]
    else:
        tables = [
            CountTable(layout.of(matrix), int(matrix.sum()), layout.cells, layout.is_partition)
            for matrix in matrices
        ]

    def plausible(results: Sequence[PrivateResult]) -> Any:
        noisy = [result.value for result in results]
        if membership == "private":
            return plausible_counts(noisy[0], cells, n).reshape(groups.size, -1)
        sizes = [int(matrix.sum()) for matrix in matrices]  # public, as the membership is
        return np.stack([plausible_counts(x, layout.cells, m) for x, m in zip(noisy, sizes, strict=True)])

    def entries(results: Sequence[PrivateResult]) -> dict[str, tuple[list[Any], Any]]:
        table = plausible(results)
        by_group, overall = [layout.read(row) for row in table], layout.read(table.sum(axis=0))
        return {
            asked.name: ([confusion.formula(counts) for counts in by_group], confusion.formula(overall))
            for asked, confusion in members
        }

    start = len(frame.parts)
    parts = [Part.of(release, Plan((table,))) for table in tables]
    frame.add(parts, entries)
    if frame.sizes is None:
        frame.sizes = lambda results: [
            layout.read(row).n for row in plausible(results[start : start + len(parts)])
        ]


def _add_releases(
    frame: FramePlan,
    asked: Asked,
    data: tuple[Any, Any],
    groups: Groups,
    epsilon: Fraction,
    membership: str,
    public: Mapping[str, Any],
    overall_share: Fraction,
) -> None:
    """Add a release for each group, and one for all records."""
    row, options = asked.row, {**asked.row.options, **asked.options}
    adds = public["neighboring"] == "add_or_remove_one"
    for_groups = epsilon * (1 - overall_share)
    # a record that is replaced may leave one group and enter another: two groups with a record more or less
    by_group = {
        "epsilon": for_groups if adds or membership == "public" else for_groups / 2,
        "neighboring": "replace_one" if membership == "public" else "add_or_remove_one",
    }

    def part(records: Sequence[Any], **changed: Any) -> Part:
        release = row.settings(**{**public, **asked.settings, **changed}, options=options)
        return Part.of(release, row.planned(records, options, private_n=release.private_n))

    parts = [part(data, epsilon=epsilon * overall_share)] if overall_share else []
    parts += [part(records, **by_group) for records in groups.parts(*data, private_n=adds)]

    def entries(results: Sequence[PrivateResult]) -> dict[str, tuple[list[Any], Any]]:
        values = [result.value for result in results]
        overall = values.pop(0) if overall_share else None
        return {asked.name: (values, overall)}

    frame.add(parts, entries)
