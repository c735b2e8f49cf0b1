"""What a page releases: several plans that one spend pays for, and how epsilon is divided among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics._html import HtmlRepr, card
from dp_metrics.fairness.frame import PrivateMetricFrame, frame_of
from dp_metrics.fairness.frame_query import FrameMetric, plan_frame
from dp_metrics.fairness.groups import Groups
from dp_metrics.inference.comparison import comparison_query, paired_losses
from dp_metrics.inference.loss_intervals import quantile_query
from dp_metrics.inputs.arrays import ArgumentShape, Records, Shape, float_block, probability_block, targets
from dp_metrics.inputs.labels import LabelColumns, LabelSet, labels_and_probabilities
from dp_metrics.inputs.losses import absolute_error
from dp_metrics.inputs.options import MAX_FLOAT, Relation, as_real, check_bounds
from dp_metrics.mechanisms.geometric import COUNT_LIMIT, expected_noise
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.metrics.labels.layouts import matrix_layout
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion, counts_of_labels
from dp_metrics.metrics.regression import absolute_errors, target_blocks
from dp_metrics.metrics.scores.curve_formulas import TwoClasses, area_under_roc, check_unit
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.metrics.scores.table import score_query
from dp_metrics.page.setting import LABELS, PROBABILITIES, SCORES, TARGETS, Setting
from dp_metrics.quantities.base import MOST_ERROR
from dp_metrics.quantities.tables import columns_for, in_words
from dp_metrics.release.query import Share, Together
from dp_metrics.release.released import POPULATION_NOTE, Interval
from dp_metrics.release.result import Result
from dp_metrics.sensitivity.exact import in_blocks

_DOUBLINGS = 200


@dataclass(frozen=True)
class Portion:
    """A release that a page may hold.

    Parameters
    ----------
    name : str
        What `split` calls the release.
    about : str
        What the release tells.
    weight : int
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
    weight: int
    error: Callable[[float, float], float]
    without: Portion | None = None
    between: Callable[[float, float], tuple[float, float]] | None = None
    instead: str = ""

    def needed(self, epsilon: float) -> float:
        """Return the number of records from which on the release is not mostly noise."""
        low, high = 0.0, 1.0
        for _ in range(_DOUBLINGS):
            if self.error(epsilon, high) <= MOST_ERROR:
                break
            low, high = high, 2 * high
        for _ in range(_DOUBLINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.error(epsilon, middle) <= MOST_ERROR else (middle, high)
        return float(math.ceil(high))


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
        Of errors without limit, as a part of them, that error with light tails and with heavy ones.
    """

    name: str
    about: str
    epsilon: Fraction
    expected_error: float | None
    expected_range: tuple[float, float] | None = None

    @property
    def in_words(self) -> str:
        """The expected error as text, or the range of it."""
        ends = self.expected_range or (self.expected_error,)
        return " to ".join(f"{end:.2g}" for end in ends if end is not None)


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
class EvaluationPlan(HtmlRepr):
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

    def _repr_html_(self) -> str:
        facts = {"epsilon": float(self.epsilon), "records": self.n}
        left = {f"left out: {one.about}": one.why for one in self.left_out}
        return card(type(self).__name__, facts | left, ["release", "epsilon", "tells", "expected error"],
                    self.rows())  # fmt: skip


def divided(
    portions: Sequence[Portion],
    epsilon: Fraction,
    n: int | None,
    split: Mapping[str, Any] | None = None,
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
    weights: Mapping[str, Fraction] = {}
    if split is not None:
        portions, weights = _chosen(portions, split)
    chosen, left = list(portions), []
    while True:
        parts = [Fraction(weights.get(one.name, one.weight)) for one in chosen]
        costs = [epsilon * part / sum(parts) for part in parts]
        of_record = [float(cost / most_records) for cost in costs]
        if not all(of_record):
            raise ValueError("epsilon is too small to be divided among the releases of this page.")
        errors = [
            None if n is None else one.error(cost, n) for one, cost in zip(chosen, of_record, strict=True)
        ]
        if split is not None or n is None:
            break
        worst = max(range(len(chosen)), key=lambda at: errors[at] or 0.0)
        if (errors[worst] or 0.0) <= MOST_ERROR:
            break
        dropped = chosen[worst]
        takes = dropped.needed(of_record[worst])
        why = (
            f"With {in_words(n)} records this part of epsilon, {float(costs[worst]):.2g}, would give mostly "
            f"noise: it takes about {in_words(takes)} records, or {takes / n:.2g} times the epsilon."
        )
        if len(chosen) == 1 and dropped.without is None:
            raise ValueError(f"Nothing could be told of these records. {dropped.about}: {why}")
        left.append(Omission(dropped.about, why + dropped.instead))
        chosen[worst : worst + 1] = [] if dropped.without is None else [dropped.without]
    rows = zip(chosen, costs, of_record, errors, strict=True)
    planned = tuple(
        PagePart(
            one.name, one.about, cost, error,
            None if n is None or one.between is None else one.between(each, n),
        )
        for one, cost, each, error in rows
    )  # fmt: skip
    return EvaluationPlan(epsilon, n, planned, tuple(left))


def _chosen(portions: Sequence[Portion], split: Any) -> tuple[list[Portion], dict[str, Fraction]]:
    names = [one.name for one in portions]
    if not isinstance(split, Mapping) or not split or not {*split} <= {*names}:
        raise ValueError(f"split must be a mapping of relative parts of epsilon to some of {names}.")
    numbers = {name: as_real(value) for name, value in split.items()}
    if not all(math.isfinite(value) and value > 0 for value in numbers.values()):
        raise ValueError("The parts in split must be positive numbers.")
    weights = {name: Fraction(value) for name, value in numbers.items()}
    return [one for one in portions if one.name in weights], weights


_PAGE = "private_evaluate"
PERSONS = "persons"
"""The release of a page in which each person counts once."""
_OTHER = "other feature"  # a column that a release by one feature does not read


def feature_of(release: str) -> int | None:
    """Return the place of the one feature by which a release is, from 0; None: by all, or by none."""
    _, _, feature = release.partition(" by feature ")
    return int(feature) - 1 if feature else None


def labels_of(released: Mapping[str, Any]) -> ReleasedConfusion | None:
    """Return the counts of labels of all records that a page released; None if there are none."""
    told = next((told for name, told in released.items() if name.partition(" by ")[0] == "labels"), None)
    return told.overall if isinstance(told, ByGroupToo) else told


_OUTSIDE = (
    "y_score has values outside [0, 1]: pass edges=[...], public edges of bins for such scores, and their "
    "threshold."
)
_OF_PERSONS = "Several records of one person are alike: private_compare with groups= compares persons."
MEDIAN_LIMITS = "median limits"
"""The release that limits the median absolute error among all people; it has no number of its own."""
_LEAST_OF_LIMITS = 50  # fewer records may have none, whatever epsilon is
_NO_PRIVATE_N = "It needs a public number of records: neighboring='replace_one'."
_OVERALL = Fraction(1, 5)  # of the epsilon of a loss by group
# weights of a release that tells several numbers, and of one: chosen by benchmarks/page.py of 308a3eb. A
# table by group tells of all records too, by sums of more noise: with up to five groups of 5,000 records at
# epsilon 1 their ranges are at most a fifth wider (benchmarks/page.py --only division)
_SEVERAL, _ONE = 4, 2
_LABELS_BY_GROUP, _SCORES_BY_GROUP = 6, 3


class PageRelease(NamedTuple):
    """All that a page is made of; public.

    Parameters
    ----------
    asked : mapping
        The options, as `Setting.asked` returns them.
    form : mapping
        The public form of the records.
    epsilon : Fraction
        What all of it cost.
    relation : Relation
        The neighbouring relation that was asked for.
    plan : EvaluationPlan
        How epsilon was divided.
    released : mapping
        By the name of the release, the object that tells what was released.
    results : sequence of Result
        What was released.
    """

    asked: Mapping[str, Any]
    form: Mapping[str, Any]
    epsilon: Fraction
    relation: Relation
    plan: EvaluationPlan
    released: Mapping[str, Any]
    results: Sequence[Result[Any]]


@dataclass(frozen=True)
class _Block:
    """Public: one release of a page, or several that make one table.

    Parameters
    ----------
    shares : tuple of Share
        The plans; their epsilons are parts of that of the block.
    reader : callable
        The `Records` of each share, of the records of the page.
    combine : callable
        What tells it all, of the results of the shares and the epsilon of the block.
    """

    shares: tuple[Share, ...]
    reader: Callable[[Records], Sequence[Records]]
    combine: Callable[[Sequence[Result[Any]], float], Any]


@dataclass(frozen=True)
class PageForm:
    """All that is public of a page before a record is read: options, form and relation."""

    setting: Setting
    shape: Shape
    relation: Relation
    sizes: tuple[int, ...] | None
    epsilon: Fraction

    @property
    def labels(self) -> LabelSet:
        """The public labels."""
        if self.setting.labels is None and PROBABILITIES in self.setting.columns:
            (at,) = self.setting.places(PROBABILITIES)
            return LabelSet.of(self._columns(at).labels)
        return LabelSet.of(self.setting.labels)

    @property
    def classes(self) -> TwoClasses:
        """The two classes of scores."""
        return TwoClasses.of(self.setting.labels, self.setting.pos_label)

    @property
    def groups(self) -> Groups:
        """The groups of people."""
        return Groups.of(self.setting.group_labels, len(self.setting.places("feature")))

    @property
    def by_feature(self) -> dict[str, PageForm]:
        """The form of what is released by group, by how that is called: by all features, or by each alone."""
        setting, found = self.setting, {}
        if setting.crossed:
            return {"group": self} if setting.has_groups and self.groups.size > 1 else {}
        places = setting.places("feature")
        sizes = [groups.size for groups in Groups.apart(setting.group_labels, len(places))]
        for at, place in enumerate(places):
            columns = tuple(
                _OTHER if column == "feature" and one != place else column
                for one, column in enumerate(setting.columns)
            )
            alone = replace(setting, columns=columns, group_labels=setting.group_labels[at], crossed=True)
            public = None
            if self.sizes is not None:
                others = tuple(one for one in range(len(sizes)) if one != at)
                public = tuple(np.reshape(self.sizes, sizes).sum(axis=others).tolist())
            found[f"feature {at + 1}"] = replace(self, setting=alone, sizes=public)
        return found

    @property
    def most_groups(self) -> int:
        """The largest number of groups of a release; without any all people are one."""
        return max([form.groups.size for form in self.by_feature.values()], default=1)

    @property
    def kind(self) -> str:
        """The kind of predictions that tells most."""
        kinds = (SCORES, PROBABILITIES, TARGETS, LABELS)
        return next(kind for kind in kinds if kind in self.setting.columns)

    def of(self, *names: str) -> Shape:
        """Return the form of y_true and the predictions in these columns."""
        arguments = tuple(self.shape.arguments[at] for at in self.setting.places(*names))
        return replace(self.shape, arguments=arguments)

    @property
    def of_labels(self) -> Shape:
        """The form of y_true and of predicted labels, which may have been made of scores."""
        return replace(self.shape, arguments=(self.shape.arguments[0], ArgumentShape()))

    def pick(self, *names: str) -> Callable[[Records], list[Records]]:
        """Return what takes y_true and the predictions in these columns of the records of the page."""
        return partial(_picked, places=tuple(self.setting.places(*names)))

    def as_labels(self, kind: str, place: int) -> Callable[[Records], NDArray[Any]]:
        """Return what takes the predicted labels of the records of the page, from predictions of a kind."""
        if kind == LABELS:
            return partial(_array, place=place)
        if kind == PROBABILITIES:
            columns = self._columns(place)
            return partial(_most_probable, place=place, columns=columns)
        of_scores = replace(self.shape, arguments=(self.shape.arguments[0], self.shape.arguments[place]))
        reader = self.classes.reader(of_scores, self._name(place, "y_score"))
        return partial(
            _above, place=place, classes=self.classes, reader=reader,
            threshold=float(self.setting.threshold), is_unit=self.setting.edges is None,
        )  # fmt: skip

    def _columns(self, place: int) -> LabelColumns:
        """Return which column of the probabilities in this place belongs to which label."""
        form = self.shape.arguments[place]
        return LabelColumns.of(self.setting.labels, form, self._name(place, "y_proba"))

    def _name(self, place: int, name: str) -> str:
        return "baseline" if self.setting.columns[place] == "baseline" else name

    @property
    def predicted(self) -> Callable[[Records], NDArray[Any]]:
        """What takes the labels that the model predicts."""
        kind = LABELS if LABELS in self.setting.columns else self.kind
        return self.as_labels(kind, self.setting.places(kind)[0])


def _picked(records: Records, *, places: tuple[int, ...]) -> list[Records]:
    return [records.of_arguments(*places)]


def _array(records: Records, *, place: int) -> NDArray[Any]:
    return records.arrays[place]


def _above(
    records: Records,
    *,
    place: int,
    classes: TwoClasses,
    reader: Callable[[Records], Records],
    threshold: float,
    is_unit: bool,
) -> NDArray[Any]:
    """Return the labels that a threshold makes of scores, which are checked first."""
    scores = reader(records.of_arguments(0, place)).arrays[1]
    parts = []
    for block in in_blocks(scores):
        numbers = float_block(block, "y_score")
        if is_unit:
            check_unit(numbers, _OUTSIDE)
        places = np.where(numbers >= threshold, classes.positive, 1 - classes.positive)
        parts.append(classes.known[places])
    return np.concatenate(parts) if parts else classes.known[:0]


def _most_probable(records: Records, *, place: int, columns: LabelColumns) -> NDArray[Any]:
    """Return the labels with the largest probabilities, the first of those that tie."""
    pair, labels = records.of_arguments(0, place), columns.labels
    proba = labels_and_probabilities(pair, columns=columns).arrays[1]
    parts = [labels[np.argmax(probability_block(block), axis=1)] for block in in_blocks(proba)]
    return np.concatenate(parts) if parts else labels[:0]


def _labelled(
    records: Records, *, predicted: Callable[[Records], NDArray[Any]], features: tuple[int, ...]
) -> Records:
    """Return y_true, the predicted labels, and the features."""
    arrays = (records.arrays[0], predicted(records), *(records.arrays[at] for at in features))
    stated = (records.states_columns[0], True, *(records.states_columns[at] for at in features))
    return replace(records, arrays=arrays, states_columns=stated)


def _judged(
    records: Records,
    *,
    place: int,
    bounds: tuple[float, float] | None,
    tolerance: float,
    features: tuple[int, ...],
) -> Records:
    """Return whether each prediction is within the tolerance, whether it is too high, and the features."""
    pair = targets(records.of_arguments(0, place), columns=1)
    empty = np.zeros(0, dtype=np.int64)
    within, high = [empty], [empty]
    for block, other in zip(*map(in_blocks, pair.arrays), strict=True):
        true, pred = target_blocks(block, other, bounds)
        within.append(1 * (absolute_error(true, pred) <= tolerance))
        high.append(1 * (pred > true))
    arrays = (np.concatenate(within), np.concatenate(high), *(records.arrays[at] for at in features))
    stated = (True, True, *(records.states_columns[at] for at in features))
    return replace(records, arrays=arrays, states_columns=stated)


def _one(records: Records, *, reader: Callable[[Records], Records]) -> list[Records]:
    return [reader(records)]


def _of_frame_reader(
    records: Records, *, take: Callable[[Records], Records], frame: Callable[[Records], Sequence[Records]]
) -> Sequence[Records]:
    return frame(take(records))


def _with_features(records: Records, *, places: tuple[int, ...]) -> Records:
    return records.of_arguments(*places)


def _value(results: Sequence[Result[Any]], epsilon: float) -> Any:
    return results[0].value


def _result(results: Sequence[Result[Any]], epsilon: float) -> Result[Any]:
    return results[0]


# the metrics by group that one table tells
BY_GROUP = {
    2: ("accuracy", "recall", "precision", "specificity", "selection_rate", "prevalence"),
    0: ("accuracy", "balanced_accuracy"),
}


def _frame(
    public: PageForm,
    metrics: Sequence[FrameMetric],
    shape: Shape,
    take: Callable[[Records], Records],
    *,
    sizes: tuple[int, ...] | None,
    overall: Fraction = Fraction(0),
) -> tuple[Together, _Block]:
    """Return the plan of metrics by group, and the release of it."""
    together = plan_frame(metrics, shape, public.groups, overall_share=overall, sizes=sizes)
    reader = partial(_of_frame_reader, take=take, frame=together.reader)
    combine = partial(
        _shown_frame, together=together, relation=public.relation, is_single=len(metrics) == 1,
        membership="private" if sizes is None else "public",
    )  # fmt: skip
    return together, _Block(together.shares, reader, combine)


def _shown_frame(
    results: Sequence[Result[Any]], epsilon: float, *, together: Together, **settings: Any
) -> PrivateMetricFrame:
    return frame_of(together.combine(results), epsilon=epsilon, **settings)


def _metric(name: str, label: str, **options: Any) -> FrameMetric:
    row = METRICS[name]
    return FrameMetric(label, row, {key: value for key, value in options.items() if key in row.options}, None)


def _labels_block(public: PageForm, *, by_group: bool) -> _Block:
    """Return the table of true and predicted labels, by group if there are groups: all metrics of labels."""
    labels = public.labels
    take = partial(_labelled, predicted=public.predicted, features=_features(public, by_group))
    options = {"labels": labels.in_order}
    if labels.size == 2:
        options["pos_label"] = public.classes.known.tolist()[public.classes.positive]
    names = BY_GROUP[2 if labels.size == 2 else 0]
    metrics = [_metric(row_of(name)[0].name, name, **options) for name in names]
    metrics[0] = _metric("private_recall_score", "accuracy", **options, average="micro")
    return _table_block(public, take, metrics, by_group=by_group)


def _table_block(
    public: PageForm, take: Callable[[Records], Records], metrics: Sequence[FrameMetric], *, by_group: bool
) -> _Block:
    """Return one table of counts of labels; by group what these metrics make of it."""
    wanted = counts_of_labels(matrix_layout(public.labels.size), public.labels)
    if not by_group:
        share = Share(wanted.query(public.shape), Fraction(1), public.relation, _PAGE)
        return _Block((share,), partial(_one, reader=take), partial(_shown, kind=ReleasedConfusion))
    # One table tells sizes and overall values as well: it is the same where membership is public.
    _, block = _frame(public, metrics, public.of_labels, take, sizes=None)
    in_all = replace(wanted, layout=wanted.layout.in_groups(public.groups.size))
    return replace(block, combine=partial(_both, frame=block.combine, in_all=in_all))


def _features(public: PageForm, by_group: bool) -> tuple[int, ...]:
    return tuple(public.setting.places("feature")) if by_group else ()


WITHIN = "share within tolerance"
SHARES = {WITHIN: "prevalence", "share too high": "selection_rate"}
"""What counts of predictions tell, by the metric of the labels "within the tolerance" and "too high"."""


def _sides_block(public: PageForm, *, by_group: bool) -> _Block:
    """Return the table of predictions within the tolerance by predictions that are too high.

    Without a tolerance, which is never read from the records, all are within it.
    """
    setting = public.setting
    take = partial(
        _judged,
        place=setting.places(TARGETS)[0],
        bounds=check_bounds(setting.bounds),
        tolerance=math.inf if setting.tolerance is None else setting.tolerance,
        features=_features(public, by_group),
    )
    options = {"labels": public.labels.in_order, "pos_label": 1}
    metrics = [_metric(row_of(metric)[0].name, name, **options) for name, metric in SHARES.items()]
    return _table_block(public, take, metrics, by_group=by_group)


def _limits_block(public: PageForm, plan: EvaluationPlan | None) -> _Block:
    """Return two order statistics of the absolute error, which limit its median among all people."""
    assert plan is not None  # the ranks that are searched for depend on epsilon
    values, largest = absolute_errors(check_bounds(public.setting.bounds))
    query = quantile_query(
        public.of("y_true", TARGETS), q=0.5, epsilon=plan[MEDIAN_LIMITS].epsilon,
        max_loss=None if largest == MAX_FLOAT else largest,
        # requirements share the probability with which limits may miss: so many ask for one at most
        confidence=1 - 0.05 / max(1, len(public.setting.requirements) * public.most_groups),
        reader=partial(targets, columns=1), values=values,
    )  # fmt: skip
    share = Share(query, Fraction(1), public.relation, "private_quantile_interval")
    return _Block((share,), public.pick("y_true", TARGETS), _limits_of_median)


def _limits_of_median(results: Sequence[Result[Any]], epsilon: float) -> Interval:
    found: Interval = results[0].value
    return replace(found, about=f"The median absolute error {POPULATION_NOTE}")


def _shown(results: Sequence[Result[Any]], epsilon: float, *, kind: Any) -> Any:
    """Return all that one table tells."""
    return kind.of(results[0])


class ByGroupToo(NamedTuple):
    """What one table tells of all records, and of each group."""

    overall: Any
    by_group: PrivateMetricFrame


def _both(
    results: Sequence[Result[Any]],
    epsilon: float,
    *,
    frame: Callable[[Sequence[Result[Any]], float], PrivateMetricFrame],
    in_all: Confusion,
) -> ByGroupToo:
    of_all = ReleasedConfusion.of(replace(results[0], reading=in_all))
    return ByGroupToo(of_all, frame(results, epsilon))


def _persons_block(public: PageForm) -> _Block:
    """Return the table of true and predicted labels in which each person counts once."""
    labels = public.labels
    wanted = counts_of_labels(matrix_layout(labels.size), labels)
    take = partial(_labelled, predicted=public.predicted, features=())
    share = Share(wanted.query(public.shape), Fraction(1), public.relation, _PAGE)
    return _Block((share,), partial(_one, reader=take), partial(_shown, kind=ReleasedConfusion))


def _scores_block(public: PageForm) -> _Block:
    """Return the table of classes by bins of scores: curves, areas and metrics at thresholds."""
    setting = public.setting
    query = score_query(
        area_under_roc, public.of("y_true", SCORES), labels=setting.labels,
        pos_label=setting.pos_label, edges=setting.edges, bins=None,
    )  # fmt: skip
    share = Share(query, Fraction(1), public.relation, _PAGE)
    return _Block((share,), public.pick("y_true", SCORES), partial(_shown, kind=ReleasedScores))


def _areas_block(public: PageForm) -> _Block:
    """Return the table of groups by classes by bins: areas and curves of each group."""
    setting = public.setting
    options = {"labels": setting.labels, "pos_label": setting.pos_label}
    metric = FrameMetric("", METRICS["private_roc_auc_score"], options, None)
    take = partial(_with_features, places=tuple(setting.places("y_true", SCORES, "feature")))
    return _frame(public, [metric], public.of("y_true", SCORES), take, sizes=public.sizes)[1]


def _plain_block(public: PageForm, name: str, *columns: str, **options: Any) -> _Block:
    """Return the release of one metric."""
    query = _metric(name, "", **options).planned(public.of(*columns))
    share = Share(query, Fraction(1), public.relation, name)
    return _Block((share,), public.pick(*columns), _result)


def _loss_block(public: PageForm) -> _Block:
    """Return the Brier score."""
    kind, setting = public.kind, public.setting
    options = {"labels": setting.labels, "pos_label": setting.pos_label}
    return _plain_block(public, "private_brier_score_loss", "y_true", kind, **options)


def _error_block(public: PageForm, *, by_group: bool) -> _Block:
    """Return the mean absolute error, by group if there are groups."""
    options = {"bounds": public.setting.bounds}
    if not by_group:
        return _plain_block(public, "private_mae", "y_true", TARGETS, **options)
    take = partial(_with_features, places=tuple(public.setting.places("y_true", TARGETS, "feature")))
    metric = _metric("private_mae", "", **options)
    shape = public.of("y_true", TARGETS)
    return _frame(public, [metric], shape, take, sizes=public.sizes, overall=_OVERALL)[1]


def _compared_block(public: PageForm) -> _Block:
    """Return the comparison with the other model: on how many records either is better."""
    setting = public.setting
    assert setting.baseline is not None
    (at,) = setting.places("baseline")
    if setting.is_regression:
        shape = public.of("y_true", TARGETS, "baseline")
        losses = paired_losses("mae", shape, {"bounds": setting.bounds})
        reader = public.pick("y_true", TARGETS, "baseline")
    else:
        shape = replace(public.of_labels, arguments=(*public.of_labels.arguments, ArgumentShape()))
        losses = paired_losses("zero_one", shape, {})
        reader = partial(
            _two_models, predicted=public.predicted, other=public.as_labels(setting.baseline, at)
        )
    query = comparison_query(losses, public.shape.n)
    return _Block((Share(query, Fraction(1), Relation.REPLACE_ONE, "private_compare"),), reader, _value)


def _two_models(
    records: Records,
    *,
    predicted: Callable[[Records], NDArray[Any]],
    other: Callable[[Records], NDArray[Any]],
) -> list[Records]:
    arrays = (records.arrays[0], predicted(records), other(records))
    return [replace(records, arrays=arrays, states_columns=(records.states_columns[0], True, True))]


def _of_counts(public: PageForm, cells: int) -> Callable[[float, float], float]:
    """Return the expected error of a share of the records in two average cells of a table."""
    return partial(_error_of_counts, cells=cells, changed=1 if public.relation.private_n else 2)


def _error_of_counts(epsilon: float, n: float, *, cells: float, changed: int) -> float:
    return expected_noise(epsilon / changed) / (2 * n / cells)


def _error_of_persons(epsilon: float, n: float, *, cells: float, most: int) -> float:
    """Return the expected error where each person counts once, at most: of as few persons as may be.

    Epsilon is that of one record of up to `most`, and that of all of them is spent.
    """
    return _error_of_counts(epsilon * most, n / most, cells=cells, changed=2)


def _of_area(public: PageForm, groups: int = 1) -> Callable[[float, float], float]:
    return partial(_error_of_area, groups=groups, changed=1 if public.relation.private_n else 2)


def _error_of_area(epsilon: float, n: float, *, groups: int, changed: int) -> float:
    """Return the expected error of an area under the ROC curve, of classes of equal size."""
    size, by_group = math.ceil(min(n / groups, 1e12)), groups > 1
    bins = columns_for(size, Fraction(epsilon), by_group=by_group)
    return expected_noise(epsilon / changed) * math.sqrt(bins / 6) / (n / groups / 2)


def _error_of_mean(epsilon: float, n: float, *, most: float) -> float:
    return most * expected_noise(epsilon) / n


def _error_of_wins(epsilon: float, n: float) -> float:
    return expected_noise(epsilon / 2) / n


def _error_of_loss(epsilon: float, n: float, *, numbers: float) -> float:
    """Return the expected error of losses without limit, as a part of them.

    Medians of ``benchmarks/page.py`` of 308a3eb, times n * epsilon: a mean or median absolute error is off by
    8 to 17. The root of a mean squared one, which counts as four numbers, is off by 14 where errors are
    normal, 110 on two real tasks and 240 where tails are those of Student's law with 3 degrees of freedom.
    Limits of a median, which count as three, are useless where n * epsilon is below 300.
    """
    return 10.0 * numbers / (n * epsilon)


_Laws: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
_MEAN: _Laws = ((0.0085, 0.85), (0.02, 0.65))  # of an absolute error
_ROOT: _Laws = ((0.0085, 0.75), (0.09, 0.3))  # of a squared error, whose root is off by half as much


def _between(epsilon: float, n: float, *, laws: _Laws, numbers: float = 1) -> tuple[float, float]:
    """Return the expected error with light tails (normal errors) and with heavy ones, as a part of a metric.

    Heavy tails are those of Student's law with 3 degrees of freedom. Each error falls as a power of
    n * epsilon from what ``benchmarks/error_table.py`` prints at 1,000; a result near 0 is off by 1.
    """
    light, heavy = (min(at * (1000 * numbers / (n * epsilon)) ** fall, 1.0) for at, fall in laws)
    return min(light, heavy), max(light, heavy)


def _portions(
    public: PageForm, plan: EvaluationPlan | None = None
) -> tuple[list[Portion], dict[str, Callable[[], _Block]], list[Omission]]:
    """Return what a page could release, how, given how it divides epsilon, and what it cannot."""
    setting, of_persons = public.setting, public
    public = replace(public, shape=replace(public.shape, units=1))  # of which all else counts records
    by_feature = public.by_feature
    instead = _ALONE if setting.crossed and len(setting.places("feature")) > 1 else ""
    blocks: dict[str, Callable[[], _Block]] = {}
    portions: list[Portion] = []
    left: list[Omission] = []

    def add_by_groups(
        name: str,
        about: str,
        weight: int,
        block: Callable[[PageForm], _Block],
        error: Callable[[PageForm], Callable[[float, float], float]],
        plain: Portion | None = None,
        between: Callable[[PageForm], Callable[[float, float], tuple[float, float]]] | None = None,
    ) -> None:
        """Add what is released by group, or without groups; the first of several tells all records too."""
        for at, (by, form) in enumerate(by_feature.items()):
            blocks[f"{name} by {by}"] = partial(block, form)
            portions.append(
                Portion(f"{name} by {by}", f"{about} by {by}", weight, error(form), None if at else plain,
                        between and between(form), instead)
            )  # fmt: skip
        if plain is not None and not by_feature:
            portions.append(plain)

    if setting.is_regression:
        bounded = partial(_plain_block, public, bounds=setting.bounds)
        if public.relation.private_n:
            left.append(Omission("The median absolute error", _NO_PRIVATE_N))
        else:
            portions.append(Portion("median error", "median absolute error", _ONE,
                                    partial(_error_of_loss, numbers=1)))  # fmt: skip
            blocks["median error"] = partial(bounded, "private_median_absolute_error", "y_true", TARGETS)
            if public.shape.most_records == 1 and (public.shape.n or 0) >= _LEAST_OF_LIMITS:
                portions.append(Portion(MEDIAN_LIMITS, "limits of the median absolute error", _ONE,
                                        partial(_error_of_loss, numbers=3)))  # fmt: skip
                blocks[MEDIAN_LIMITS] = partial(_limits_block, public, plan)
        within = "within the tolerance and " if setting.tolerance else ""
        about, cells = f"counts of predictions that are {within}too high", matrix_layout(2).good.size
        sides = Portion("sides", about, _ONE, _of_counts(public, cells))
        blocks["sides"] = partial(_sides_block, public, by_group=False)
        add_by_groups("sides", f"{about},", _ONE, partial(_sides_block, by_group=True),
                      lambda form: _of_counts(public, form.groups.size * cells), sides)  # fmt: skip
        plain = Portion("absolute error", "mean absolute error", _ONE, partial(_error_of_loss, numbers=1),
                        between=partial(_between, laws=_MEAN))  # fmt: skip
        blocks["absolute error"] = partial(_error_block, public, by_group=False)
        add_by_groups(
            "absolute error", "mean absolute error, and", _SEVERAL, partial(_error_block, by_group=True),
            lambda form: partial(_error_of_loss, numbers=_numbers_by_group(form)), plain,
            lambda form: partial(_between, laws=_MEAN, numbers=_numbers_by_group(form)),
        )  # fmt: skip
        portions.append(Portion("errors", "mean squared error, its root and R2", _SEVERAL,
                                partial(_error_of_loss, numbers=4),
                                between=partial(_between, laws=_ROOT, numbers=2)))  # fmt: skip
        blocks["errors"] = partial(bounded, "private_r2_score", "y_true", TARGETS)
    else:
        size, cells = public.labels.size, matrix_layout(public.labels.size).good.size
        plain = Portion("labels", "counts of true and predicted labels", _SEVERAL, _of_counts(public, cells))
        blocks["labels"] = partial(_labels_block, public, by_group=False)
        add_by_groups("labels", f"{plain.about},", _LABELS_BY_GROUP, partial(_labels_block, by_group=True),
                      lambda form: _of_counts(public, form.groups.size * cells), plain)  # fmt: skip
        if cells < size**2:
            why = "It would make recall and precision noisier: release it apart by private_confusion_matrix."
            left.append(Omission(f"The confusion matrix of {size} labels", why))
        if public.kind == SCORES:
            portions.append(Portion("scores", "counts of scores of either class: curves, areas", _SEVERAL,
                                    _of_area(public)))  # fmt: skip
            blocks["scores"] = partial(_scores_block, public)
            if setting.edges is None:
                about = "counts of scores of either class,"
                add_by_groups("scores", about, _SCORES_BY_GROUP, _areas_block,
                              lambda form: _of_area(public, form.groups.size))  # fmt: skip
        if public.kind in (SCORES, PROBABILITIES) and setting.edges is None:
            most = 1 if public.kind == SCORES else 2
            portions.append(Portion("loss", "Brier score", _ONE, partial(_error_of_mean, most=most)))
            blocks["loss"] = partial(_loss_block, public)
        if of_persons.shape.units > 1:
            about = "counts of true and predicted labels, each person once"
            error = partial(_error_of_persons, cells=cells, most=public.shape.most_records)
            portions.append(Portion(PERSONS, about, _ONE, error))
            blocks[PERSONS] = partial(_persons_block, of_persons)
    if setting.baseline is not None:
        if public.relation.private_n:
            left.append(Omission("Which model is better", _NO_PRIVATE_N))
        elif public.shape.most_records > 1:
            left.append(Omission("Which model is better", _OF_PERSONS))
        else:
            portions.append(Portion("comparison", "on how many records either model is better", _ONE,
                                    _error_of_wins))  # fmt: skip
            blocks["comparison"] = partial(_compared_block, public)
    return portions, blocks, left


_ALONE = " Groups by each feature alone are larger: crossed=False."


def _numbers_by_group(form: PageForm) -> float:
    """Return as how many numbers those of all groups count, where each has its part of epsilon."""
    times = form.groups.size * (1 if form.sizes is not None or form.relation.private_n else 2)
    return times / (1 - float(_OVERALL))


_FAVOUR = 2  # so many times as much of epsilon has a release that requirements need


def planned(public: PageForm, favoured: Collection[str] = ()) -> EvaluationPlan:
    """Return how a page divides epsilon; these releases have a larger part of it, where it is not stated."""
    portions, _, left = _portions(public)
    portions = [
        replace(one, weight=_FAVOUR * one.weight) if one.name in favoured else one for one in portions
    ]
    n = public.setting.n if public.shape.n is None else public.shape.n
    if n == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    plan = divided(portions, public.epsilon, n, public.setting.split, public.shape.most_records)
    return replace(plan, left_out=(*plan.left_out, *left))


def times_as_wide(evaluated: PageRelease) -> float | None:
    """Return about how many times as wide groups make the range of a share of half of all records.

    That is made of the counts of right labels; without groups these have the usual part of epsilon. None
    without a table of labels by group, and where ranges among all people there are none.
    """
    shape, n = evaluated.form["shape"], evaluated.plan.n
    first = next((one for one in evaluated.plan.parts if one.name.startswith("labels by ")), None)
    if first is None or n is None or shape.most_records > 1:
        return None
    setting = Setting.of(evaluated.asked)
    public = PageForm(setting, shape, evaluated.relation, evaluated.form["sizes"], evaluated.epsilon)
    portions, _, _ = _portions(public)
    alone = {one.name: one.weight for one in portions if " by " not in one.name} | {"labels": _SEVERAL}
    without = evaluated.epsilon * Fraction(alone["labels"], sum(alone.values()))
    changed = 1 if public.relation.private_n else 2

    def variance(part: Fraction, tables: int) -> float:
        noise = min(expected_noise(float(part) / changed), COUNT_LIMIT)  # of one count
        return 1 / (4 * n) + tables * public.labels.size * 2 * noise**2 / n**2

    groups = next(iter(public.by_feature.values())).groups.size
    return math.sqrt(variance(first.epsilon, groups) / variance(without, 1))


def plan_of_page(public: PageForm, plan: EvaluationPlan) -> Together:
    """Return what a page releases of records of a public form, given how it divides epsilon.

    That is stored with a page, for a later version may divide otherwise. Where a person has up to k records,
    each release has its epsilon / k for one of them; see `Query`. Where each person counts once the units of
    all records of one are what `TableOf` pays for.
    """
    makers = _portions(public, plan)[1]
    blocks = {part.name: makers[part.name]() for part in plan.parts}
    shares = tuple(
        replace(
            share,
            epsilon=share.epsilon * plan[name].epsilon / public.epsilon,
            query=replace(share.query, most_records=1 if name == PERSONS else public.shape.most_records),
        )
        for name, block in blocks.items()
        for share in block.shares
    )
    made = tuple((name, len(block.shares), block.combine) for name, block in blocks.items())
    reader = partial(_pieces, readers={name: block.reader for name, block in blocks.items()})
    kept = replace(public, shape=public.shape.of_any_records())
    combine = partial(_evaluated, public=kept, plan=plan, made=made)
    # a page that knows the sizes of groups shows and stores them, whatever it releases by group
    return Together(shares, reader, combine, None if public.sizes is None else Relation.WITHIN_GROUPS)


def _pieces(
    records: Records, *, readers: Mapping[str, Callable[[Records], Sequence[Records]]]
) -> list[Records]:
    plain = replace(records, units=None)
    return [
        piece for name, reader in readers.items() for piece in reader(records if name == PERSONS else plain)
    ]


def _evaluated(
    results: Sequence[Result[Any]],
    *,
    public: PageForm,
    plan: EvaluationPlan,
    made: Sequence[tuple[str, int, Callable[[Sequence[Result[Any]], float], Any]]],
) -> PageRelease:
    left, released = list(results), {}
    for name, size, combine in made:
        these, left = left[:size], left[size:]
        released[name] = combine(these, float(plan[name].epsilon))
    form = {"shape": public.shape, "sizes": public.sizes, "plan": plan}
    return PageRelease(public.setting.asked(), form, public.epsilon, public.relation, plan, released, results)
