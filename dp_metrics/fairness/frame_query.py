"""What a table of metrics by group releases, and how its entries follow."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.fairness.groups import Groups, by_group
from dp_metrics.inputs.arrays import Records, Shape
from dp_metrics.inputs.losses import identity
from dp_metrics.inputs.options import Floats, Relation, check_choice, check_share
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import METRICS, Metric, row_of
from dp_metrics.metrics.labels.confusion import Confusion, confusion_for
from dp_metrics.metrics.labels.layouts import Counts, matrix_layout, right_or_wrong, whole
from dp_metrics.metrics.scores.curve_formulas import ScoreCounts, area_under_roc
from dp_metrics.metrics.scores.table import ScoreTable, score_query
from dp_metrics.quantities.base import get_mechanism
from dp_metrics.quantities.tables import (
    NoisyCounts,
    TableNoise,
    TableOf,
    check_cells,
    plausible_counts,
    saturated_counts,
)
from dp_metrics.release.query import Query, Share, Together
from dp_metrics.release.result import AnyResult
from dp_metrics.release.stored import PER_RECORD, SETTINGS

NO_RECORDS = "This group has no records."
"""The note of a group that all know to be empty."""

_FRAME = "PrivateMetricFrame"

_OF_FRAMES = (SETTINGS | PER_RECORD) - {"mechanism", "dry_run"}
"""What a frame has, and its metrics cannot have by themselves."""


@dataclass(frozen=True, eq=False)
class FrameMetric:
    """A metric of a frame.

    Parameters
    ----------
    name : str
        Its name in the table.
    metric : str
        The name of the public metric.
    options : dict
        Its public options.
    mechanism : Mechanism or None, default=None
        Its mechanism, if one was chosen.
    """

    name: str
    metric: str
    options: dict[str, Any]
    mechanism: Mechanism | None = None

    @property
    def row(self) -> Metric:
        """The public metric."""
        return METRICS[self.metric]

    def planned(self, shape: Shape) -> Query:
        """Return the query of records of a public form, with the mechanism that was chosen."""
        query = self.row.planned(shape, self.options)
        if self.mechanism is None:
            return query
        return replace(query, mechanisms=(self.mechanism,) * len(query.quantities))


class FrameCell(NamedTuple):
    """A value of a frame, of one group or of all records.

    Parameters
    ----------
    value : object
        The value; None where there is none of all records.
    note, bias : str or None, default=None
        What released numbers tell of it, and which way it usually errs; see `Result`.
    rests_on : int or None, default=None
        How many records count for it, at least 0; None where nothing tells.
    result : Result, ReleasedScores or None, default=None
        What has its limits; None of a group that all know to be empty, and where there are none.
    """

    value: Any
    note: str | None = None
    bias: str | None = None
    rests_on: int | None = None
    result: Any = None


class Entry(NamedTuple):
    """A metric of a frame: the name of its function, its cells by group, and that of all records."""

    metric: str
    groups: Mapping[Hashable, FrameCell]
    overall: FrameCell

    @property
    def cells(self) -> list[FrameCell]:
        """All cells, that of all records first."""
        return [self.overall, *self.groups.values()]

    @property
    def known(self) -> dict[Hashable, FrameCell]:
        """The cells of the groups that are not publicly empty."""
        return {group: cell for group, cell in self.groups.items() if cell.result is not None}

    @property
    def is_number(self) -> bool:
        """Whether the metric is one number, so that groups can be compared."""
        return all(isinstance(cell.value, Real) for cell in self.groups.values())

    @property
    def numbers(self) -> list[float]:
        """The values that tell of groups, neither NaN nor of nobody; TypeError if they are no numbers."""
        if not self.is_number:
            raise TypeError("Groups can be compared by a metric that is one number: see by_group.")
        return [cell.value for cell in self.known.values() if not math.isnan(cell.value)]

    def difference(self, method: str = "between_groups") -> float:
        """Return the largest difference; see `PrivateMetricFrame.difference`."""
        return max((larger - smaller for smaller, larger in self._compared(method)), default=math.nan)

    def ratio(self, method: str = "between_groups") -> float:
        """Return the smallest ratio; see `PrivateMetricFrame.ratio`."""
        compared = self._compared(method)
        return min((smaller / larger if larger else 1.0 for smaller, larger in compared), default=math.nan)

    def less(self, a: Hashable, b: Hashable) -> float:
        """Return the value of a group less that of another one; NaN if one of them is NaN, or of nobody."""
        are_known = bool(self.numbers) and {a, b} <= {*self.known}
        return float(self.groups[a].value - self.groups[b].value) if are_known else math.nan

    def _compared(self, method: str) -> list[list[float]]:
        """Return the smallest and the largest value of a group, or each value and that of all, in order."""
        values = self.numbers
        if method == "between_groups":
            return [[min(values), max(values)]] if values else []
        if self.overall.value is None:
            raise ValueError("There is no overall value: pass overall_share.")
        return [sorted((value, self.overall.value)) for value in values]


Sizes: TypeAlias = Mapping[Hashable, Any] | None
"""The number of records of each group, where something tells it."""

Told: TypeAlias = tuple[Mapping[str, Entry], Sizes]
"""The entries of some metrics, by name, and the sizes of groups that these tell."""

FrameResult: TypeAlias = tuple[Mapping[str, Entry], Sizes, Relation]
"""What a frame holds of a release: its entries, with the name "" where there is one metric only, the sizes of
groups, and the relation that the accountant counts, which tells whether the group of each record is public.
"""

Members: TypeAlias = Sequence[tuple[FrameMetric, Any]]
"""Public: the metrics of one table, each with what makes it of the counts, or the query of that."""


def frame_metrics(metrics: Any) -> list[FrameMetric]:
    """Return the metrics that a caller named: functions of this package, or partials of them."""
    several = metrics if isinstance(metrics, Mapping) else {"": metrics}
    if not several or isinstance(metrics, list | tuple):
        raise ValueError("metrics must be a private metric or a dict of several, by what you call them.")
    return [_frame_metric(str(name), metric) for name, metric in several.items()]


def _frame_metric(name: str, metric: Any) -> FrameMetric:
    row, keywords = row_of(metric, "each of metrics")
    if len(row.data) != 2:
        raise TypeError(f"A frame has metrics that take y_true and y_pred, but {row.name} takes one column.")
    if refused := sorted(keywords.keys() & _OF_FRAMES):
        raise ValueError(
            f"{refused[0]} is no option of a metric in a frame: pass it to the frame, if it takes it."
        )
    mechanism = keywords.pop("mechanism", None) if row.mechanism else None
    if unknown := sorted(keywords.keys() - row.options.keys()):
        raise TypeError(f"{row.name}() got an unexpected keyword argument {unknown[0]!r}.")
    return FrameMetric(name, row.name, keywords, None if mechanism is None else get_mechanism(mechanism))


def check_frame(
    membership: Any, overall_share: Any, *, relation: Relation, equal_groups: bool = False
) -> Fraction:
    """Return the share of epsilon of the overall values, or raise for a setting that is invalid."""
    check_choice(membership, "membership", ("private", "public"))
    if membership == "public" and equal_groups:
        raise ValueError("membership='public' counts records, but equal_groups=True counts persons: no group "
                         "has a whole number of these.")  # fmt: skip
    if membership == "public" and relation.private_n:
        raise ValueError("membership='public' tells the number of records: use neighboring='replace_one'.")
    return Fraction(0) if overall_share == 0 else check_share(overall_share, "overall_share, unless 0,")


def query_of_frame(
    metrics: Sequence[FrameMetric], shape: Shape, groups: Groups, *, overall_share: Fraction
) -> Together:
    """Return what a frame releases of records of a public form: y_true, y_pred and features.

    Each metric has an equal part of epsilon; metrics of labels that have one label set put theirs together
    for one table of counts, and so do metrics of scores that have the same bins. Where membership is public,
    so are the sizes of the groups. A person may have records in several groups: with k records at most each
    query has epsilon / k, and k records that are replaced one by one cost epsilon, wherever they lie; see
    `Query`.
    """
    arguments = shape.arguments[:2]
    if shape.n is not None:  # a group without records has the columns that all records have
        arguments = tuple(replace(one, states_columns=True) for one in arguments)
    shape = replace(shape, arguments=arguments)
    tables: defaultdict[str, list[Any]] = defaultdict(list)
    scored: defaultdict[Any, list[Any]] = defaultdict(list)
    others: list[FrameMetric] = []
    for one in metrics:
        if isinstance(one.row.usual.reading, Confusion):
            confusion = confusion_for(one.row, one.options)
            tables[repr(confusion.labels.in_order.tolist())].append((one, confusion))
        elif (query := _of_scores(one, replace(shape, n=None) if groups.sizes is None else shape)) is None:
            others.append(one)
        else:
            scored[_bins_of(query)].append((one, query))
    releases = [(len(members), _labels(members, shape, groups)) for members in tables.values()]
    releases += [(len(members), _scores(members, shape, groups)) for members in scored.values()]
    releases += [(1, _each_alone(one, shape, groups, overall_share)) for one in others]
    blocks = [one.at(Fraction(size, len(metrics)), shape.most_records) for size, one in releases]
    names = [one.name for one in metrics]
    relation = None if groups.sizes is None else Relation.WITHIN_GROUPS
    whole = Together.of(blocks, partial(_prepared, groups=groups), relation)
    return whole.then(partial(_of_frame, names=names, groups=groups, relation=relation or shape.relation))


Prepared: TypeAlias = tuple[Records, Callable[[], list[Records]]]
"""Private: all records with their groups, and what returns those of each group, which is asked if need be."""


def _prepared(records: Records, *, groups: Groups) -> Prepared:
    coded = groups.coded(records)
    return coded, cache(partial(by_group, coded, groups))


def _coded(prepared: Prepared) -> list[Records]:
    return [prepared[0]]


def _by_group(prepared: Prepared, *, with_all: bool = False) -> list[Records]:
    """Return the records of the groups that are not publicly empty, after those of all."""
    coded, each = prepared
    first = [coded.of_arguments(0, 1)] if with_all else []
    return first + each()


def _of_frame(
    made: Sequence[Told], *, names: Sequence[str], groups: Groups, relation: Relation
) -> FrameResult:
    """Return the entries of all metrics, in their order."""
    entries = {name: entry for of_block, _ in made for name, entry in of_block.items()}
    # tables come first, which tell the sizes best
    told = next((known for _, known in made if known is not None), None)
    sizes = told if groups.sizes is None else groups.each
    return {name: entries[name] for name in names}, sizes, relation


def _labels(members: Members, shape: Shape, groups: Groups) -> Together:
    """Return the release of metrics of one set of labels: the fewest counts that determine all of them."""
    first: Confusion = members[0][1]
    labels, layout = first.labels, first.layout
    if len(members) > 1:
        needs_matrix = any(confusion.needs_matrix for _, confusion in members)
        layout = whole(labels.size) if needs_matrix else matrix_layout(labels.size)
    check_cells(
        groups.size * layout.good.size,
        f"The table of {groups.size:,} groups and {labels.size:,} labels",
        "private_accuracy_score needs 2 cells for each group, private_recall_score with average='binary' 3.",
    )
    made = [(metric, replace(confusion, layout=layout)) for metric, confusion in members]
    return _table(made[0][1].query(shape), made, shape, groups)


def _counts_told(made: Confusion | ScoreTable, row: Floats, noisy: Floats, noise: float) -> Any:
    """Return what plausible counts of a group tell; of these, of the noisy ones, and of their noise."""
    if isinstance(made, Confusion):
        return made.layout.agreed(row)
    negative, positive = row.reshape(2, -1)
    return ScoreCounts(made.merged(negative.size), negative, positive, noisy.reshape(2, -1), noise)


def _bins_of(query: Query) -> tuple[Any, ...]:
    """Return what metrics of scores must have in common to be read from one table."""
    table: Any = query.reading
    part: Any = query.quantities[0]
    classes = table.classes
    return repr(classes.labels.known.tolist()), classes.positive, part.columns, table.edges.tobytes()


def _of_scores(metric: FrameMetric, shape: Shape) -> Query | None:
    """Return the query of a metric that a table of scores tells; None for any other.

    An area under a ROC curve by group is read from such a table as well, unless a mechanism is chosen. Other
    releases of areas are biased towards 1 in small groups, do not tell the area of all records, and have no
    limits there. For a group with m records of the smaller class the table's error is that of the sample
    from m * epsilon of about 2,000 on. From 300 on it is up to 3 times that of the other releases, and below
    it may be either way (``benchmarks/areas_by_group.py`` of 308a3eb): its bins are those of narrow limits.
    """
    if isinstance(metric.row.usual.reading, ScoreTable):
        return metric.planned(shape)
    if metric.metric != "private_roc_auc_score" or metric.mechanism is not None:
        return None
    # the function takes no pos_label, but a page has scores of either class: the table says which it reads
    options = dict(metric.options)
    pos_label = options.pop("pos_label", None)
    true, score = shape.arguments
    of_any_names = replace(shape, arguments=(true, replace(score, names=None)))
    area = replace(metric, options=options).planned(of_any_names)
    if len(area.quantities) > 1:  # not of two labels
        return None
    labels = options.get("labels")
    return score_query(area_under_roc, shape, labels=labels, pos_label=pos_label, edges=None, bins=None)


def _scores(members: Members, shape: Shape, groups: Groups) -> Together:
    """Return the release of metrics of scores that have the same classes and bins."""
    query = members[0][1]
    part: Any = query.quantities[0]
    check_cells(
        part.cells[0][0] * groups.size,
        f"The table of {groups.size:,} groups and {part.finest:,} bins of scores",
        "Pass fewer groups or edges.",
    )
    return _table(query, [(metric, one.reading) for metric, one in members], shape, groups)


def _each_alone(metric: FrameMetric, shape: Shape, groups: Groups, overall_share: Fraction) -> Together:
    """Return the releases of any other metric: one table if it is a share of the records."""
    hidden = groups.sizes is None
    # the options must suit the sizes of the groups, even where these are private
    disclosing = metric.row.disclosing(metric.options)
    if hidden and disclosing and shape.n is not None:
        raise ValueError(
            f"{' and '.join(disclosing)} cannot be used with membership='private': the number of records of "
            "a group, which is private then, would be given away. Leave it out, or pass membership='public'."
        )
    groups.relation.refuse(disclosing)
    here = [*groups.here.values()]
    queries = {size: metric.planned(replace(shape, n=size)) for size in {*here}}
    usual = queries[here[0]]
    part, *more = usual.quantities
    if metric.mechanism is None and part.is_share and not more:
        return _share_of_records(metric, usual, shape, groups)
    each = 1 - overall_share
    if hidden and shape.n is not None:
        # a record that is replaced may leave one group and enter another: two with a record more or less
        each /= 2
    # the smallest group has at most as many records as the mean one, which is public
    mean = None if shape.n is None else Fraction(shape.n, groups.size)
    shares = [Share(queries[size], each, groups.relation, metric.metric, mean) for size in here]
    if overall_share:
        shares.insert(0, Share(metric.planned(shape), overall_share, shape.relation, metric.metric))
    reader = partial(_by_group, with_all=bool(overall_share))
    combine = partial(_of_each, name=metric.name, metric=metric.metric, query=usual, groups=groups)
    return Together(tuple(shares), reader, combine)


def _of_each(results: Sequence[AnyResult], *, name: str, metric: str, query: Query, groups: Groups) -> Told:
    """Return the entry of a metric that is released for each group, and perhaps for all records first."""
    of_all, each = results[: -len(groups.here)], results[-len(groups.here) :]
    told = [_records_told(one, size) for one, size in zip(each, groups.here.values(), strict=True)]
    cells = map(_cell_of_result, each, [counting for _, counting in told])
    overall = _cell_of_result(of_all[0]) if of_all else FrameCell(None)
    entry = Entry(metric, _of_groups(cells, groups, _undefined(query, each[0])), overall)
    sizes = {group: float(n) for group, (n, _) in zip(groups.here, told, strict=True) if n is not None}
    return {name: entry}, sizes if len(sizes) == len(each) else None


def _cell_of_result(result: AnyResult, rests_on: int | None = None) -> FrameCell:
    return FrameCell(result.value, result.note, result.bias, rests_on, result)


def _records_told(result: AnyResult, size: int | None) -> tuple[int | None, int | None]:
    """Return the number of records of a group, and how many count: of areas those of the smallest class.

    That is the public number, or the noisy one if the release tells it.
    """
    told = result.records if size is None else size
    drawn = [one.drawn for one in result.outputs if "positives" in one.drawn]  # of each area
    classes = [(one["positives"], one.get("negatives", (size or 0) - one["positives"])) for one in drawn]
    if told is None and classes:
        told = sum(classes[0])
    records = None if told is None else max(round(told), 0)
    return records, max(min(map(min, classes)), 0) if classes else records


def _undefined(query: Query, result: AnyResult) -> Any:
    """Return what a metric is of no record: NaN in the place of each number of its result.

    The result of any other group tells what else is public.
    """
    if any(part.is_table for part in query.quantities):
        return math.nan
    return query.reading(result.released.of([math.nan] * len(query.quantities)))


def _share_of_records(metric: FrameMetric, query: Query, shape: Shape, groups: Groups) -> Together:
    """Return the release of a share of the records: how many count, and how many do not."""
    result: Any = query.reading
    confusion = result.counts
    if not result.is_share:
        confusion = replace(confusion, formula=_number, parts_of=None, no_limits=_NO_SHARE)
    if groups.sizes is not None:
        confusion = replace(confusion, formula=partial(_unless_empty, formula=confusion.formula))
    place = int(np.argmin(confusion.layout.good))  # stored frames count the others first
    layout = right_or_wrong(place)
    count = partial(_last_first, part=query.quantities[0])
    table = Query((TableOf(layout.cells, True, count, shape.units),), query.reader)
    return _table(table, [(metric, replace(confusion, layout=layout))], shape, groups)


_NO_SHARE = "A number of records has no limits by group: release the share of them, with normalize=True."


def _unless_empty(counts: Counts, *, formula: Callable[[Counts], float]) -> float:
    """Return a share of records, or their number; NaN where all know that there are none."""
    return formula(counts) if counts.n > 0 else math.nan


def _number(counts: Counts) -> float:
    return float(counts.right[0])


def _last_first(records: Records, *, part: Any) -> NDArray[np.int64]:
    counted = replace(records, sample_weight=records.units, units=None)
    counts: NDArray[np.int64] = part.stats(counted, part.totals(counted), 0).found
    return counts[::-1]


def _table(query: Query, members: Members, shape: Shape, groups: Groups) -> Together:
    """Return one table of counts for all groups, or with public membership a table for each.

    The query counts the records of a group. Of each metric comes what makes it of the counts.
    """
    part: Any = query.quantities[0]
    of_group = Query((replace(part, groups=1),), query.reader)
    # names alone: audits compare plans, and options may be of any type
    metrics = {metric.name: (metric.metric, made) for metric, made in members}
    combine = partial(_of_table, metrics=metrics, groups=groups)
    if groups.sizes is not None:
        shares = (Share(of_group, Fraction(1), groups.relation, _FRAME),) * len(groups.here)
        return Together(shares, _by_group, combine)
    count, cells = partial(_counts_by_group, query=of_group, groups=groups), part.cells * groups.size
    if part.finest is not None:  # whose columns are merged: in one run
        ((size, weight),) = part.cells
        cells = ((size * groups.size, weight),)
    table = replace(part, cells=cells, find=count, groups=groups.size)
    # records with their groups, of which the query of a group reads the rest
    of_all = Query((table,), identity)
    return Together((Share(of_all, Fraction(1), shape.relation, _FRAME),), _coded, combine)


def _counts_by_group(coded: Records, *, query: Query, groups: Groups) -> NDArray[np.int64]:
    """Return the table of each group, one below the other, as the query of one group counts it."""
    part: Any = query.quantities[0]
    return np.concatenate([part.find(query.reader(piece)) for piece in by_group(coded, groups)])


def _of_table(
    results: Sequence[AnyResult], *, metrics: Mapping[str, tuple[str, Any]], groups: Groups
) -> Told:
    """Return the entries of metrics that are read from counts by group.

    Of each its name, that of its function, and what makes it of the counts.
    """
    first = next(made for _, made in metrics.values())  # whose counts are those of all
    noise = results[0].parts[0]  # as large as that of any other group
    n = results[0].n if groups.sizes is None else sum(groups.sizes)
    released = _result_of_each(results, groups)
    tables = len(released) // len(results)
    rows = [row for one in results for row in _plausible(one).reshape(tables, -1)]
    noisy = [saturated_counts(one.value) for one in released]
    of_groups = [_counts_told(first, *pair, noise.expected) for pair in zip(rows, noisy, strict=True)]
    entries = {}
    for name, (metric, made) in metrics.items():
        each = [replace(one, metric=metric, reading=made) for one in released]
        cells = map(partial(_cell_of_counts, made), of_groups, each)
        if isinstance(made, ScoreTable):
            overall, of_nobody = _of_all_scores(made, noisy, noise, n), math.nan
        else:
            overall = _cell_of_groups(each, made, n)
            of_nobody = made.formula(made.layout.agreed(np.zeros(made.layout.good.size)))
        entries[name] = Entry(metric, _of_groups(cells, groups, of_nobody), overall)
    return entries, {group: one.n for group, one in zip(groups.here, of_groups, strict=True)}


def _plausible(result: AnyResult) -> Floats:
    """Return the plausible counts of a table, of the noisy ones."""
    table: Any = result.noises[0]
    return plausible_counts(result.value, table.cells, result.n)


def without_empty(result: FrameResult, groups: Groups) -> FrameResult:
    """Return what one table tells where the sizes of groups are public: nothing of those without records."""
    known = {
        name: one._replace(groups=_of_groups([one.groups[group] for group in groups.here], groups))
        for name, one in result[0].items()
    }
    return known, groups.each, Relation.WITHIN_GROUPS


def _of_groups(
    cells: Iterable[FrameCell], groups: Groups, of_nobody: Any = math.nan
) -> dict[Hashable, FrameCell]:
    """Return the cells of all groups, of which those that all know to be empty have this value."""
    nothing = FrameCell(of_nobody, NO_RECORDS, rests_on=0)
    return {**dict.fromkeys(groups.labels, nothing), **dict(zip(groups.here, cells, strict=True))}


def _cell_of_counts(made: Any, counts: Any, result: AnyResult) -> FrameCell:
    """Return the cell that plausible counts tell."""
    records = made.rests_on(counts)
    rests_on = round(float(records.min()) if records.size else counts.n)
    reading: Any = result.reading  # that of several groups together reads their counts one after the other
    note = reading.note_of(result.parts[0], counts) if isinstance(made, ScoreTable) else reading.note(result)
    return FrameCell(made.formula(counts), note, None, rests_on, result)


def _of_all_scores(made: ScoreTable, each: Sequence[Floats], noise: NoisyCounts, n: int | None) -> FrameCell:
    """Return the cell of all records, of the sums of the noisy scores of each group: without limits."""
    fewest = min(row.size for row in each)  # groups of other sizes may have tables of more columns
    # counts of groups are added up as they were drawn: each made 0 or more makes the sums too large
    noisy = np.sum([row.reshape(2, fewest // 2, -1).sum(axis=2).ravel() for row in each], axis=0)
    added = math.sqrt(sum(row.size for row in each) / fewest)  # numbers in one of the total
    plausible = plausible_counts(noisy, ((fewest, Fraction(1)),), n)
    counts = _counts_told(made, plausible, noisy, noise.expected * added)
    # noise of as large a variance as that of the sums
    rate = float(min(rate for _, rate in noise.rates))
    wider = 2 * math.asinh(math.sinh(min(rate, 600.0) / 2) / added)
    sums = tuple(np.rint(noisy * noise.units).astype(np.int64).tolist())
    of_sums = NoisyCounts(sums, ((fewest, Fraction(wider)),), units=noise.units)
    return FrameCell(made.formula(counts), made.note_of(of_sums, counts))


def _cell_of_groups(known: Sequence[AnyResult], made: Confusion, n: int | None) -> FrameCell:
    """Return the cell of several groups together, of n records where that is public."""
    table: Any = known[0].noises[0]
    groups, drawn = len(known), tuple(number for one in known for number in one.outputs[0].value)
    joined = _with_counts(known[0], table.joined(groups), drawn, n)
    in_groups: Confusion = replace(made, layout=made.layout.in_groups(groups))
    # counts are added up as they were drawn: each made 0 or more makes the sums too large
    noisy = np.reshape(joined.released.values[0], (groups, -1)).sum(axis=0)
    return _cell_of_counts(made, made.layout.counts(noisy, n), replace(joined, reading=in_groups))


def _with_counts(result: AnyResult, noise: TableNoise, noisy: tuple[int, ...], n: int | None) -> AnyResult:
    """Return a result of other counts, drawn with this noise, of n records where that is public."""
    output = result.outputs[0]._replace(value=noisy)
    released = replace(result.released, values=(noise.number(output),), public_n=n)
    return replace(result, noises=(noise,), outputs=(output,), released=released)


def margin_of(result: FrameResult, feature: int) -> FrameResult:
    """Return the entries of groups by one of several features: sums of the counts that were released.

    Raises
    ------
    ValueError
        If a metric is not read from counts of labels.
    """
    (entries, sizes, relation), together = result, defaultdict[Hashable, list[Any]](list)
    groups: Any = next(iter(entries.values())).groups
    for group in groups:
        together[group[feature]].append(group)
    if sizes is not None:
        sizes = {label: sum(map(sizes.__getitem__, some)) for label, some in together.items()}
    margins = {
        name: entry._replace(groups={label: _margin(entry, some) for label, some in together.items()})
        for name, entry in entries.items()
    }
    return margins, sizes, relation


def _margin(entry: Entry, groups: Sequence[Hashable]) -> FrameCell:
    """Return the cell of several groups together."""
    cells = [entry.groups[group] for group in groups]
    known = [one.result for one in cells if one.result is not None]
    if not all(isinstance(one.reading, Confusion) for one in known):
        raise ValueError(
            f"{entry.metric} of several groups together is not told: that is for metrics of labels. Ask for "
            "a frame with one of the features."
        )
    if not known:
        return cells[0]
    n = None if known[0].n is None else sum(one.n for one in known)
    return _cell_of_groups(known, known[0].reading, n)


def _result_of_each(results: Sequence[AnyResult], groups: Groups) -> Sequence[AnyResult]:
    """Return the noisy counts of each group, as if they were those of a release of their own.

    Where membership is private, the number of records of a group is, even if that of all records is public.
    """
    if groups.sizes is not None:
        return results
    (result,) = results
    table: Any = result.noises[0]
    noise, hidden, noisy = table.part(groups.size), replace(result, totals=None), result.outputs[0].value
    starts = range(0, table.size, noise.size)
    return [_with_counts(hidden, noise, noisy[at : at + noise.size], None) for at in starts]
