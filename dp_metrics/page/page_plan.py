"""What a page releases: several plans that one spend pays for, and how epsilon is divided among them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.fairness.frame import PrivateMetricFrame, frame_of
from dp_metrics.fairness.frame_query import FrameMetric, query_of_frame, without_empty
from dp_metrics.fairness.groups import Groups
from dp_metrics.inference.comparison import comparison_query
from dp_metrics.inference.loss_intervals import quantile_query
from dp_metrics.inputs.arrays import (
    ArgumentShape,
    Records,
    Shape,
    float_block,
    probability_block,
    targets,
)
from dp_metrics.inputs.labels import LabelColumns, LabelSet, labels_and_columns, labels_and_scores
from dp_metrics.inputs.losses import absolute_error
from dp_metrics.inputs.options import MAX_FLOAT, Array, ByName, Function, Range, Relation, as_real
from dp_metrics.mechanisms._laws import COUNT_LIMIT, Staircase
from dp_metrics.metrics import row_of
from dp_metrics.metrics.labels.layouts import matrix_layout
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion, counts_of_labels
from dp_metrics.metrics.regression import quantile_rank, record_loss
from dp_metrics.metrics.scores.curve_formulas import area_under_roc, two_classes
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.metrics.scores.table import score_query
from dp_metrics.page.setting import LABELS, PROBABILITIES, SCORES, TARGETS, Setting
from dp_metrics.quantities.base import MOST_ERROR
from dp_metrics.quantities.tables import columns_for, in_words
from dp_metrics.release.query import Query, Share, Together
from dp_metrics.release.result import AnyResult

Error: TypeAlias = Callable[..., float]
"""Of an epsilon and a number of records, an expected error; with `times`, of a release by group too."""

Released: TypeAlias = ByName
"""What a page released, by the names of its plan."""


@dataclass(frozen=True)
class PagePart:
    """A release of a page.

    Parameters
    ----------
    name, about : str
        What `split` calls the release, and what it tells.
    epsilon : Fraction
        What it costs.
    expected_error : float or None
        The expected error of a typical share that it tells; None without a number of records.
    expected_range : tuple of float or None, default=None
        Of errors without limit, as a part of them, that error with light tails and with heavy ones; of a mean
        squared error that of its root.
    """

    name: str
    about: str
    epsilon: Fraction
    expected_error: float | None
    expected_range: Range | None = None

    @property
    def ends(self) -> list[float]:
        """The range of the expected error, or the error alone; empty where it is not known."""
        return [end for end in self.expected_range or (self.expected_error,) if end is not None]

    @property
    def in_words(self) -> str:
        """The expected error as text, or the range of it."""
        return " to ".join(f"{end:.2g}" for end in self.ends)


@dataclass(frozen=True)
class Portion:
    """A release that a page may hold.

    Parameters
    ----------
    name : str
        What `split` calls the release.
    about : str
        What the release tells.
    weight : int or Fraction
        Its part of epsilon, relative to the parts of the others.
    error : callable
        Of its epsilon and a number of records, the expected error of a typical share that it tells, with
        classes and groups of equal sizes; a tenth is mostly noise.
    between : callable or None, default=None
        Of the same, that error with light tails and with heavy ones; None: it does not depend on tails.
    without : Portion or None, default=None
        What to release where there are too few records for this.
    instead : str, default=""
        What else there is where this is left out.
    """

    name: str
    about: str
    weight: int | Fraction
    error: Error
    without: Portion | None = None
    between: Callable[..., Range] | None = None
    instead: str = ""

    def part(self, epsilon: Fraction, n: int | None, most_records: int) -> PagePart:
        """Return the release at this epsilon, of n records of which one person has so many at most."""
        of_record = float(epsilon / most_records)
        if not of_record:
            raise ValueError("epsilon is too small to be divided among the releases of this page.")
        error = ends = None
        if n is not None:
            error = self.error(of_record, n)
            ends = self.between and self.between(of_record, n)
        return PagePart(self.name, self.about, epsilon, error, ends)


@dataclass(frozen=True)
class Omission:
    """What a page does not hold.

    Parameters
    ----------
    about : str
        What is not told.
    why : str
        The reason, and what it would take.
    """

    about: str
    why: str


@dataclass(frozen=True)
class EvaluationPlan:
    """What a page releases, before anything is spent: public, for it follows from public numbers alone.

    Parameters
    ----------
    epsilon : Fraction
        What all of it costs.
    n : int or None
        The number of records that the plan was made for: the public one, or a guess.
    parts : tuple of PagePart
        The releases.
    left_out : tuple of Omission
        What is not released.
    """

    epsilon: Fraction
    n: int | None
    parts: tuple[PagePart, ...]
    left_out: tuple[Omission, ...] = ()

    def __getitem__(self, name: str) -> PagePart:
        return next(part for part in self.parts if part.name == name)

    def __contains__(self, name: object) -> bool:
        return any(part.name == name for part in self.parts)

    def __repr__(self) -> str:
        lines = [f"EvaluationPlan(epsilon={float(self.epsilon):g}, n={self.n})"]
        lines += [f"  {' | '.join(row)}" for row in self.rows()]
        lines += [f"  left out: {one.about}. {one.why}" for one in self.left_out]
        return "\n".join(lines)

    def rows(self) -> list[list[str]]:
        """Return what each release is called, costs and tells, and its expected error, as text."""
        return [[part.name, f"{float(part.epsilon):.4g}", part.about, part.in_words] for part in self.parts]


class RequirementError(ValueError):
    """A requirement or a split is of nothing that a page has: it was misspelled, whatever the records are."""


def divided(
    portions: Sequence[Portion],
    epsilon: Fraction,
    n: int | None,
    split: ByName | None = None,
    most_records: int = 1,
) -> EvaluationPlan:
    """Return which of these releases a page holds, and what each costs.

    Parameters
    ----------
    portions : sequence of Portion
        What the page could hold.
    epsilon : Fraction
        What all of it costs.
    n : int or None
        Number of records, where it is public or somebody guessed it. None: nothing is left out.
    split : mapping or None, default=None
        Relative parts of epsilon by name: these releases and no others, whatever n is.
    most_records : int, default=1
        How many records one person has at most: one record has that part of what a release costs.

    Raises
    ------
    ValueError
        If the split is invalid, or no release would be more than noise.
    """
    left: list[Omission] = []
    chosen = [*portions] if split is None else _chosen(portions, split)
    while True:
        total = sum(one.weight for one in chosen)
        parts = [one.part(epsilon * one.weight / total, n, most_records) for one in chosen]
        errors = [part.expected_error or 0.0 for part in parts]
        worst = errors.index(max(errors))
        if split is not None or n is None or errors[worst] <= MOST_ERROR:
            return EvaluationPlan(epsilon, n, tuple(parts), tuple(left))
        dropped = chosen[worst]
        takes = np.ceil(n * errors[worst] / MOST_ERROR)  # expected errors fall as 1 / n, with as many bins
        how_many = "nobody can say how much it takes."
        if math.isfinite(takes):
            how_many = f"it takes about {in_words(takes)} records, or {takes / n:.2g} times the epsilon."
        why = (
            f"With {in_words(n)} record{'s' * (n != 1)} this part of epsilon, "
            f"{float(parts[worst].epsilon):.2g}, would give mostly noise: {how_many}"
        )
        if len(chosen) == 1 and dropped.without is None:
            raise ValueError(f"Nothing could be told of these records. {dropped.about}: {why}")
        left.append(Omission(dropped.about, why + dropped.instead))
        chosen[worst : worst + 1] = [] if dropped.without is None else [dropped.without]


def _chosen(portions: Sequence[Portion], split: Any) -> list[Portion]:
    """Return the releases that a split names, with its weights."""
    names = [one.name for one in portions]
    if not isinstance(split, Mapping) or not split or not {*split} <= {*names}:
        raise RequirementError(f"split must be a mapping of relative parts of epsilon to some of {names}.")
    numbers = {name: as_real(value) for name, value in split.items()}
    if not all(math.isfinite(value) and value > 0 for value in numbers.values()):
        raise RequirementError("The parts in split must be positive numbers.")
    return [replace(one, weight=Fraction(numbers[one.name])) for one in portions if one.name in numbers]


PAGE = "private_evaluate"
"""The name of the call: of spends, stored answers and shares."""
PERSONS, COMPARISON = "persons", "comparison"
"""The releases of a page in which each person counts once, whatever the number of records."""
EACH_ONCE = ", each person once"
"""What the names of numbers of the first of these say behind the metric."""


def feature_of(release: str) -> int | None:
    """Return the place of the one feature by which a release is, from 0; None: by all, or by none."""
    _, _, feature = release.partition(" by feature ")
    return int(feature) - 1 if feature else None


def matrix_of(released: Released) -> ReleasedConfusion | None:
    """Return the confusion matrix of all records that a page released; None if there is none."""
    told = next((told for name, told in released.items() if name.partition(" by ")[0] == LABELS), None)
    labels = told.released_labels() if isinstance(told, PrivateMetricFrame) else told
    return None if labels is None or labels.counts.matrix is None else labels


MEDIAN_LIMITS = "median limits"
"""The release that limits the median absolute error; it has no number of its own."""
_LEAST_OF_LIMITS = 50  # fewer records may have none, whatever epsilon is
_NO_PRIVATE_N = "It needs a public number of records: neighboring='replace_one'."
_OVERALL = Fraction(1, 5)  # of the epsilon of a loss by group
# weights of a release that tells several numbers, and of one: chosen by benchmarks/page.py of 308a3eb. A
# table by group tells of all records too, by sums of more noise: with up to five groups of 5,000 records at
# epsilon 1 their ranges are at most a fifth wider (benchmarks/page.py --only division)
_SEVERAL, _ONE = 4, 2
_LABELS_BY_GROUP, _SCORES_BY_GROUP, _ONCE_BY_GROUP = 6, 3, 3


@dataclass(frozen=True)
class PageForm:
    """All that is public of a page before a record is read: its options, and the form of the records.

    `persons` is how many have the records, where some have several; None: each record is a person's own.
    """

    setting: Setting
    shape: Shape
    sizes: tuple[int, ...] | None
    epsilon: Fraction
    persons: int | None = None

    @property
    def labels(self) -> LabelSet:
        """The public labels."""
        if self.setting.labels is None and PROBABILITIES in self.setting.columns:
            return self._columns(PROBABILITIES, *self.setting.places(PROBABILITIES)).labels
        return LabelSet.of(self.setting.labels)

    @property
    def positive(self) -> Any:
        """The positive one of two labels."""
        classes = two_classes(self.setting.labels, self.setting.pos_label, ArgumentShape(), "y_score")
        return classes.labels.known.tolist()[classes.positive]

    @property
    def by(self) -> dict[str, Groups]:
        """The groups of what is released by group: by all features together, or by each alone.

        They are named as the columns that tell the group of a record: "group", or "feature 1" and so on.
        """
        features, labels = len(self.setting.places("feature")), self.setting.group_labels
        if not features:
            return {}
        if self.setting.crossed:
            return {"group": replace(Groups.of(labels, features), sizes=self.sizes)}
        apart = Groups.apart(labels, features, self.sizes)
        return {f"feature {at}": groups for at, groups in enumerate(apart, 1)}

    @property
    def kind(self) -> str:
        """The kind of predictions that tells most."""
        return next(kind for kind in (SCORES, PROBABILITIES, TARGETS, LABELS) if kind in self.setting.columns)

    @property
    def made(self) -> dict[str, tuple[str, int, LabelColumns]]:
        """The labels that no column holds, by name: the kind and the place of the predictions that make them.

        Last comes which labels these can tell, and by which columns.
        """
        setting, of = self.setting, {}
        if not setting.is_regression and LABELS not in setting.columns:
            of[LABELS] = self.kind, setting.places(self.kind)[0]
        if setting.baseline not in (None, LABELS, TARGETS):
            of["baseline"] = setting.baseline, setting.places("baseline")[0]
        return {name: (kind, place, self._columns(kind, place)) for name, (kind, place) in of.items()}

    def places(self, columns: Sequence[str]) -> tuple[int, ...]:
        """Return the places of columns, by their kinds or the groups that they tell, and of what is made."""
        made = SHARES if self.setting.is_regression else self.made
        features = self.setting.places("feature")
        # a baseline that is made stands behind what it is made of
        found = {name: [at] for at, name in enumerate((*self.setting.columns, *made))}
        found |= {"group": features} | {f"feature {at}": [one] for at, one in enumerate(features, 1)}
        return tuple(at for name in columns for at in found[name])

    def completed(self, records: Records) -> Records:
        """Return records with what is made of their columns behind these: labels, or how targets err."""
        made = [self._labels_of(records, *of) for of in self.made.values()]
        if self.setting.is_regression:
            made = self._judged(records)
        return replace(records, arrays=(*records.arrays, *made))

    def _columns(self, kind: str, place: int) -> LabelColumns:
        """Return which labels the predictions in this place can tell, and by which columns."""
        setting, form, name = self.setting, self.shape.arguments[place], self.setting.names[place]
        if kind == PROBABILITIES:
            return LabelColumns.of(setting.labels, form, name)
        return two_classes(setting.labels, setting.pos_label, form, name)

    def _labels_of(self, records: Records, kind: str, place: int, columns: LabelColumns) -> Array:
        """Return the labels that a threshold makes of scores, or that are most probable, the first of ties.

        The predictions are checked first.
        """
        setting, name = self.setting, self.setting.names[place]
        pair = records.of_arguments(0, place)
        if kind == PROBABILITIES:
            proba = labels_and_columns(pair, columns=columns, name=name).arrays[1]
            places = np.argmax(probability_block(proba, name), axis=1)
        else:
            scores = labels_and_scores(pair, columns=columns, name=name).arrays[1]
            outside = (
                f"{name} has values outside [0, 1]: pass edges=[...], public edges of bins for such scores, "
                "and their threshold."
            )
            of_unit = partial(probability_block, outside=outside)
            scores = (of_unit if setting.edges is None else float_block)(scores, name)
            places = np.where(scores >= float(setting.threshold), columns.positive, 1 - columns.positive)
        labels: Array = columns.labels.known[places]
        return labels

    def _judged(self, records: Records) -> list[Array]:
        """Return whether each prediction is within the tolerance, and whether it is too high.

        Without a tolerance, which is never read from the records, all are within it.
        """
        setting = self.setting
        tolerance = math.inf if setting.tolerance is None else setting.tolerance
        pair = targets(records.of_arguments(0, *setting.places(TARGETS)), columns=1)
        true, pred = record_loss(absolute_error, setting.bounds).read(*pair.arrays)
        return [1 * (absolute_error(true, pred) <= tolerance), 1 * (pred > true)]


# Releases

# the metrics by group that one table tells, besides the accuracy
_ONCE_OF_TWO = ["recall", "precision", "specificity"]
_OF_TWO_LABELS = [*_ONCE_OF_TWO, "selection_rate", "prevalence"]
SIDES = "sides"
WITHIN = "share within tolerance"
SHARES = {WITHIN: "prevalence", "share too high": "selection_rate"}
"""What counts of predictions tell, by the metric of the labels "within the tolerance" and "too high"."""


def _alone(public: PageForm, query: Query, metric: str = PAGE) -> Together:
    """Return the release of one query."""
    return Together((Share(query, Fraction(1), public.shape.relation, metric),), _listed, query.combine)


def _listed(records: Records) -> list[Records]:
    return [records]


def _metric(name: str, label: str, **options: Any) -> FrameMetric:
    row = row_of(name)[0]
    return FrameMetric(label, row.name, {key: value for key, value in options.items() if key in row.options})


def _frame(
    public: PageForm, shape: Shape, metrics: Sequence[FrameMetric], by: str, *, one_table: bool
) -> Together:
    """Return the frame of metrics by group.

    One table of all groups tells overall values as well, and is as noisy where their sizes are public.
    """
    groups = public.by[by]
    asked = replace(groups, sizes=None) if one_table else groups
    query = query_of_frame(metrics, shape, asked, overall_share=_OVERALL)
    query = replace(query, shares=tuple([replace(one, metric=PAGE) for one in query.shares]))
    if one_table and groups.sizes is not None:
        query = query.then(partial(without_empty, groups=groups))
    return query.then(partial(frame_of, epsilon=float(public.epsilon)))


def _counts(public: PageForm, shape: Shape, metrics: Sequence[FrameMetric], by: str) -> Together:
    """Return one table of counts of labels; by group what these metrics make of it."""
    if by:
        return _frame(public, shape, metrics, by, one_table=True)
    query = counts_of_labels(matrix_layout(public.labels.size), public.labels).query(public.shape)
    positive = public.positive if public.labels.size == 2 else None
    plan = _alone(public, query).then(ReleasedConfusion.of)
    return plan.then(partial(replace, positive=positive))


def _labels(public: PageForm, shape: Shape, by: str, *, once: str = "") -> Together:
    """Return the table of true and predicted labels: all metrics of labels, and by group some of them."""
    names, options = ["balanced_accuracy"], {"labels": public.labels.in_order}
    if public.labels.size == 2:
        names, options["pos_label"] = _ONCE_OF_TWO if once else _OF_TWO_LABELS, public.positive
    metrics = [_metric("recall", f"accuracy{once}", **options, average="micro")]
    metrics += [_metric(name, f"{name}{once}", **options) for name in names]
    return _counts(public, shape, metrics, by)


def _sides(public: PageForm, shape: Shape, by: str) -> Together:
    """Return the table of predictions within the tolerance by predictions that are too high."""
    options = {"labels": public.labels.in_order, "pos_label": 1}
    metrics = [_metric(row, name, **options) for name, row in SHARES.items()]
    return _counts(public, shape, metrics, by)


def _limits_of_median(public: PageForm, shape: Shape, _: str) -> Together:
    """Return two order statistics of the absolute error, which limit its median among all people.

    Of persons with several records, which are no independent draws, they limit the median of these records.
    """
    errors = record_loss(absolute_error, public.setting.bounds)
    n, most = shape.n, shape.most_records
    rank = quantile_rank(n) if n is not None and most > 1 else None
    groups = sum(by.size for by in public.by.values()) or 1  # without any all people are one
    query = quantile_query(
        shape, q=0.5,
        epsilon=public.epsilon / most,  # of one record: the ranks that are searched for depend on it
        max_loss=None if errors.cap == MAX_FLOAT else errors.cap,
        # requirements share the probability with which limits may miss: so many ask for one at most
        confidence=1 - 0.05 / max(1, len(public.setting.requirements) * groups),
        reads=(partial(targets, columns=1), errors), name="The median absolute error", rank=rank,
    )  # fmt: skip
    return _alone(public, query, "private_quantile_interval").then(_value)


def _scores(public: PageForm, shape: Shape, by: str) -> Together:
    """Return the table of classes by bins of scores: curves, areas and metrics at thresholds."""
    if by:
        return _of_metric(public, shape, by, "roc_auc")
    setting = public.setting
    query = score_query(
        area_under_roc, shape, labels=setting.labels, pos_label=setting.pos_label, edges=setting.edges,
        bins=None,
    )  # fmt: skip
    return _alone(public, query).then(ReleasedScores.of)


def _compared(public: PageForm, shape: Shape, _: str) -> Together:
    """Return the comparison with the other model: on how many records, or for how many persons, it is better.

    Of a person with several records the means of both losses are compared.
    """
    of_errors = "mae", {"bounds": public.setting.bounds}
    loss, options = of_errors if public.setting.is_regression else ("zero_one", {})
    query = comparison_query(loss, shape, options, persons=public.persons)
    return _alone(public, query, "private_compare").then(_value)


def _value(result: AnyResult) -> Any:
    return result.value


def _of_metric(public: PageForm, shape: Shape, by: str, name: str) -> Together:
    """Return the release of one metric that no table of counts tells."""
    setting = public.setting
    options = {"labels": setting.labels, "pos_label": setting.pos_label}
    options = {"bounds": setting.bounds} if setting.is_regression else options
    metric = FrameMetric("", row_of(name)[0].name, options)
    if by:
        return _frame(public, shape, [metric], by, one_table=False)
    return _alone(public, metric.planned(shape), metric.metric)


_RELEASES: Mapping[str, Callable[[PageForm, Shape, str], Together]] = {
    LABELS: _labels,
    PERSONS: partial(_labels, once=EACH_ONCE),
    SIDES: _sides,
    MEDIAN_LIMITS: _limits_of_median,
    COMPARISON: _compared,
    SCORES: _scores,
    "median error": partial(_of_metric, name="median_absolute_error"),
    "absolute error": partial(_of_metric, name="mae"),
    "errors": partial(_of_metric, name="r2"),
    "loss": partial(_of_metric, name="brier_score_loss"),
}
"""What plans each release, of the form of the page and of its columns, and by which groups, "" for none."""
_OF_PERSONS = {PERSONS: "units", COMPARISON: "groups"}
"""The releases in which each person counts once, and what they read besides columns: all else has no use."""


def _release_of(part: PagePart, public: PageForm) -> Together:
    """Return a release of a page, as its name says; its reader has the records with all columns."""
    about, _, by = part.name.partition(" by ")
    public = replace(public, epsilon=part.epsilon)
    if about != PERSONS:  # all else counts records
        public = replace(public, shape=replace(public.shape, units=1))
    # a comparison is of labels where there are any
    are_labels = about in (LABELS, *_OF_PERSONS) and not public.setting.is_regression
    columns = tuple(SHARES) if about == SIDES else ("y_true", LABELS if are_labels else public.kind)
    columns += ("baseline",) * (about == COMPARISON)
    places, forms = public.places(columns), (*public.shape.arguments, *[ArgumentShape()] * 2)
    shape = replace(public.shape, arguments=tuple(forms[at] for at in places))
    plan = _RELEASES[about](public, shape, by)
    if by:
        places += public.places([by])
    no_use = {name: None for name in _OF_PERSONS.values() if name != _OF_PERSONS.get(about)}
    return replace(plan, reader=partial(_read, reader=plan.reader, places=places, no_use=no_use))


def _read(
    records: Records, *, reader: Callable[[Records], Any], places: tuple[int, ...], no_use: dict[str, Any]
) -> Any:
    return reader(replace(records.of_arguments(*places), **no_use))


# Which releases there are


def _of_counts(relation: Relation, cells: int) -> Error:
    """Return the expected error of a share of the records in two average cells of a table."""
    return lambda epsilon, n, times=1: _noise(relation, epsilon) / (2 * n / (cells * times))


def _noise(relation: Relation, epsilon: float) -> float:
    """Return the expected noise of one count: a record that is replaced changes two of them."""
    return Staircase(epsilon if relation.private_n else epsilon / 2).expected


def _of_area(relation: Relation) -> Error:
    """Return the expected error of an area under the ROC curve, of classes of equal size."""

    def error(epsilon: float, n: float, times: int = 1) -> float:
        bins = columns_for(math.ceil(min(n / times, 1e12)), Fraction(epsilon), by_group=times > 1)
        return _noise(relation, epsilon) * math.sqrt(bins / 6) / (n / times / 2)

    return error


def _of_loss(numbers: int) -> Error:
    """Return the expected error of losses without limit, as a part of them.

    Medians of ``benchmarks/page.py`` of 308a3eb, times n * epsilon: a mean or median absolute error is off by
    8 to 17. The root of a mean squared one, which counts as four numbers, is off by 14 where errors are
    normal, 110 on two real tasks and 240 where tails are those of Student's law with 3 degrees of freedom.
    Limits of a median, which count as three, are useless where n * epsilon is below 300.
    """
    return lambda epsilon, n, times=1: 10.0 * numbers * times / (n * epsilon)


_MEAN = ((0.0085, 0.85), (0.02, 0.65))  # of an absolute error
_ROOT = ((0.0085, 0.75), (0.09, 0.3))  # of the root of a squared error, which is off by twice as much


def _between(laws: tuple[Range, Range], numbers: int = 1) -> Callable[..., Range]:
    """Return the expected error with light tails (normal errors) and with heavy ones, as a part of a metric.

    Heavy tails are those of Student's law with 3 degrees of freedom. Each error falls as a power of
    n * epsilon from what ``benchmarks/error_table.py`` prints at 1,000; a result near 0 is off by 1.
    """

    def ends(epsilon: float, n: float, times: float = 1) -> Range:
        part = 1000 * numbers * times / (n * epsilon)
        light, heavy = (min(at * part**fall, 1.0) for at, fall in laws)
        return min(light, heavy), max(light, heavy)

    return ends


def offered(public: PageForm) -> Iterator[Portion | Omission]:
    """Yield what a page could release, and what no page of this form can."""
    relation, most, size = public.shape.relation, public.shape.most_records, public.shape.n or 1
    of_record = (public.persons or size) / size

    def each_once(cells: int) -> Error:
        # epsilon is that of one record, but each person counts once
        counts = _of_counts(relation, cells)
        return lambda epsilon, n, times=1: counts(epsilon * most, n * of_record, times)

    cells = matrix_layout(public.labels.size).good.size
    counts = _of_counts(relation, cells)
    yield from (_of_targets if public.setting.is_regression else _of_labels)(public, counts)
    if public.shape.units > 1:
        about = f"counts of true and predicted labels{EACH_ONCE}"
        yield from _by_groups(public, Portion(PERSONS, about, _ONE, each_once(cells)), _ONCE_BY_GROUP)
    if public.setting.baseline is None:
        return
    if relation.private_n:
        yield Omission("Which model is better", _NO_PRIVATE_N)
        return
    about = f"{'on how many records' if most == 1 else 'for how many persons'} either model is better"
    yield Portion(COMPARISON, about, _ONE, each_once(2))


def _by_groups(
    public: PageForm,
    plain: Portion,
    weight: int,
    times: Callable[[Groups], float] = attrgetter("size"),
    joint: str = ",",
) -> Iterator[Portion]:
    """Yield what is released by group, or without groups; the first of several tells all records too.

    By group it has this weight, and tells so many times as much.
    """
    instead = ""
    if public.setting.crossed and len(public.setting.places("feature")) > 1:
        instead = " Groups by each feature alone are larger: crossed=False."
    for at, (by, groups) in enumerate(public.by.items()):
        more = {"times": times(groups)}
        yield replace(
            plain, name=f"{plain.name} by {by}", about=f"{plain.about}{joint} by {by}", weight=weight,
            error=partial(plain.error, **more), between=plain.between and partial(plain.between, **more),
            without=None if at else plain, instead=instead,
        )  # fmt: skip
    if not public.by:
        yield plain


def _of_targets(public: PageForm, counts: Error) -> Iterator[Portion | Omission]:
    """Yield what is released of targets."""
    relation = public.shape.relation
    if relation.private_n:
        yield Omission("The median absolute error", _NO_PRIVATE_N)
    else:
        yield Portion("median error", "median absolute error", _ONE, _of_loss(1))
        if (public.shape.n or 0) >= _LEAST_OF_LIMITS:
            yield Portion(MEDIAN_LIMITS, "limits of the median absolute error", _ONE, _of_loss(3))
    within = "within the tolerance and " if public.setting.tolerance else ""
    sides = Portion(SIDES, f"counts of predictions that are {within}too high", _ONE, counts)
    yield from _by_groups(public, sides, _ONE)

    def numbers(groups: Groups) -> float:
        # each group has its part of epsilon, of which a record that changes groups costs two
        times = groups.size * (1 if groups.sizes is not None or relation.private_n else 2)
        return times / (1 - float(_OVERALL))

    mean = Portion("absolute error", "mean absolute error", _ONE, _of_loss(1), between=_between(_MEAN))
    yield from _by_groups(public, mean, _SEVERAL, numbers, ", and")
    about = "mean squared error, its root and R2"
    yield Portion("errors", about, _SEVERAL, _of_loss(4), between=_between(_ROOT, 2))


def _of_labels(public: PageForm, counts: Error) -> Iterator[Portion | Omission]:
    """Yield what is released of labels, scores and probabilities."""
    kind, size = public.kind, public.labels.size
    if matrix_layout(size).good.size < size**2:
        why = "It would make recall and precision noisier: release it apart by private_confusion_matrix."
        yield Omission(f"The confusion matrix of {size} labels", why)
    labels = Portion(LABELS, "counts of true and predicted labels", _SEVERAL, counts)
    yield from _by_groups(public, labels, _LABELS_BY_GROUP)
    scores = Portion(SCORES, "counts of scores of either class", _SEVERAL, _of_area(public.shape.relation))
    if kind == SCORES:
        yield replace(scores, about=f"{scores.about}: curves, areas")
    if kind == LABELS or public.setting.edges is not None:
        return
    if kind == SCORES and public.by:
        for one in _by_groups(public, scores, _SCORES_BY_GROUP):
            yield replace(one, without=None)
    most = 1 if kind == SCORES else 2
    yield Portion("loss", "Brier score", _ONE, lambda epsilon, n: most * Staircase(epsilon).expected / n)


_FAVOUR = 2  # so many times as much of epsilon has a release that requirements need


def planned(public: PageForm, favoured: Collection[str] = ()) -> EvaluationPlan:
    """Return how a page divides epsilon; these releases have a larger part of it, where it is not stated."""
    offers = [*offered(public)]
    portions = [
        replace(one, weight=one.weight * (_FAVOUR if one.name in favoured else 1))
        for one in offers
        if isinstance(one, Portion)
    ]
    # without a record, which is refused, nothing is left out: wrong options are refused first
    n = public.setting.n if public.shape.n is None else public.shape.n or sys.maxsize
    plan = divided(portions, public.epsilon, n, public.setting.split, public.shape.most_records)
    return replace(plan, left_out=(*plan.left_out, *[one for one in offers if isinstance(one, Omission)]))


def times_as_wide(public: PageForm, plan: EvaluationPlan) -> float | None:
    """Return about how many times as wide groups make the range of a share of half of all records.

    That is made of the counts of right labels; without groups these have the usual part of epsilon. None
    without a table of labels by group, and where ranges among all people there are none.
    """
    n = plan.n
    first = next((one for one in plan.parts if one.name.startswith("labels by ")), None)
    if first is None or n is None or public.shape.most_records > 1:
        return None
    others = sum(one.weight for one in offered(public) if isinstance(one, Portion) and " by " not in one.name)
    without = public.epsilon * Fraction(_SEVERAL, _SEVERAL + others)

    def variance(part: Fraction, tables: int) -> float:
        noise = min(_noise(public.shape.relation, float(part)), COUNT_LIMIT)
        return 1 / (4 * n) + tables * public.labels.size * 2 * noise**2 / n**2

    return math.sqrt(variance(first.epsilon, next(iter(public.by.values())).size) / variance(without, 1))


def query_of_page(public: PageForm, plan: EvaluationPlan) -> Together:
    """Return what a page releases of records of a public form, given how it divides epsilon.

    That is stored with a page, for a later version may divide otherwise. Where a person has up to k records,
    each release has its epsilon / k for one of them; see `Query`. Where each person counts once the units of
    all records of one are what `TableOf` pays for, and of a comparison one person moves the two counts as one
    record does. It combines to what `PageFacts` are made of.
    """
    public, blocks = replace(public, shape=public.shape.of_any_records()), []
    for part in plan.parts:
        most = 1 if part.name.partition(" by ")[0] in _OF_PERSONS else public.shape.most_records
        blocks.append(_release_of(part, public).at(part.epsilon / public.epsilon, most))
    # a page that knows the sizes of groups shows and stores them, whatever it releases by group
    relation = None if public.sizes is None else Relation.WITHIN_GROUPS
    whole = Together.of(blocks, public.completed, relation)
    return replace(whole, combine=partial(_evaluated, combine=whole.combine, public=public, plan=plan))


def _evaluated(
    results: Sequence[AnyResult], *, combine: Function, public: PageForm, plan: EvaluationPlan
) -> dict[str, Any]:
    released = zip([part.name for part in plan.parts], combine(results), strict=True)
    return {"public": public, "plan": plan, "released": dict(released), "results": results}
