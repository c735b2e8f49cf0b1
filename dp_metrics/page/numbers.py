"""The numbers of a page, each with how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.fairness.groups import Groups
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.page.page_plan import (
    MEDIAN_LIMITS,
    PERSONS,
    SHARES,
    WITHIN,
    ByGroupToo,
    PageRelease,
    feature_of,
)
from dp_metrics.quantities.counts_noise import far_apart
from dp_metrics.release.released import Interval, Monotone, ReleasedNumbers, only
from dp_metrics.release.result import Result
from dp_metrics.release.stored_answers import NOT_STORED

CONFIDENCE = 0.95
"""Of the limits that a page shows."""
HOW_GOOD, FOR_WHOM = "How good", "For whom"

_MOST_LABELS = 20  # whose recall, precision and F1 are shown
_OF_LABELS = ("recall", "precision", "f1")
EACH_ONCE = ", each person once"
"""The end of the name of a number in which each person counts once."""
_ONCE = ("accuracy", "balanced accuracy", "recall", "precision", "specificity", "f1", "f1 (macro)")
_ONE = {"loss": "brier score", "absolute error": "mae", "median error": "median absolute error"}

OVER_EXPECTED = "observed over expected"
"""The metric that is no share: how many are positive over how many scores expect."""
METRICS = frozenset({
    "accuracy", "balanced accuracy", "recall", "precision", "specificity", "f1", "f1 (macro)", "roc auc",
    "average precision", OVER_EXPECTED, "selection rate", "prevalence", "mse", "rmse", "r2", *SHARES,
    *_ONE.values(),
})  # fmt: skip
"""The metrics of pages: a number is named by one, with " of " a label, " in " a group, or " difference"."""


@dataclass(frozen=True)
class Number:
    """A number of a page.

    Parameters
    ----------
    name : str
        What it is called: "recall", "recall of 'spam'", "recall in 'female'", "recall difference".
    value : float
        The released number; NaN where there is none.
    section : str
        Where the page shows it.
    metric : str
        The metric: "recall".
    release : str
        The release that it was made of, as the plan calls it.
    note : str or None, default=None
        What must not be concluded from it.
    bias : str or None, default=None
        Which way it usually errs.
    label, group : object, default=None
        Of which label, and in which group.
    rests_on : float or None, default=None
        About how many records it rests on, where that is known.
    feature : int or None, default=None
        The place, from 0, of the one feature of several by which the groups are; None: they are by all.
    confidence : float, default=0.95
        Of the range that the page shows; largest differences share what may miss.
    """

    name: str
    value: float
    section: str
    metric: str
    release: str
    note: str | None = None
    bias: str | None = None
    label: Any = None
    group: Any = None
    rests_on: float | None = None
    feature: int | None = None
    confidence: float = CONFIDENCE
    _noise: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)
    _people: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)
    _known: dict[Any, Interval] = field(default_factory=dict, init=False, repr=False, compare=False)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the exact number of these records; ValueError if there are none."""
        return self._asked(self._noise, confidence)

    def population_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits among all people like these; ValueError if there are none."""
        return self._asked(self._people, confidence)

    def _asked(self, limits: Callable[[float], Interval] | None, confidence: float) -> Interval:
        if limits is None:
            raise ValueError("There are no such limits of this number.")
        asked = limits is self._people, confidence
        if asked not in self._known:  # a page shows them in several places
            self._known[asked] = limits(confidence)
        return self._known[asked]


@dataclass(frozen=True)
class _Told:
    """Limits of all labels or groups, which are found together: once with each confidence."""

    limits: Callable[..., Any]
    known: dict[float, Any] = field(default_factory=dict)

    def __call__(self, confidence: float) -> Any:
        if confidence not in self.known:
            self.known[confidence] = self.limits(confidence=confidence)
        return self.known[confidence]


def numbers_of(evaluated: PageRelease) -> list[Number]:
    """Return the numbers that a page shows, in their order."""
    numbers: list[Number] = []
    for release, told in evaluated.released.items():
        of_labels = _of_sides if release.startswith("sides") else _of_labels
        if release == PERSONS:
            of_labels = _of_persons
        if isinstance(told, ByGroupToo):
            if not feature_of(release):  # of all records the table by the first feature tells
                numbers += of_labels(release, told.overall, evaluated)
            numbers += _of_groups(release, told.by_group, "", evaluated)
        elif isinstance(told, ReleasedConfusion):
            numbers += of_labels(release, told, evaluated)
        elif isinstance(told, ReleasedScores):
            numbers += _of_scores(release, told, is_unit=evaluated.asked["edges"] is None)
        elif isinstance(told, PrivateMetricFrame):
            of_scores = release.startswith("scores")
            numbers += _of_groups(release, told, "roc auc" if of_scores else "mae", evaluated)
            if of_scores:
                each, by = told.released_scores().items(), _by_what(release, told._groups, evaluated)
                numbers += [_over_expected(release, one, FOR_WHOM, group, by) for group, one in each]
        elif isinstance(told, Result):
            numbers += _of_result(release, told, evaluated.released.get(MEDIAN_LIMITS))
    if evaluated.asked.get("tolerance") is None:
        numbers = [one for one in numbers if one.metric != WITHIN]
    gaps = sum(_is_gap(one) for one in numbers)
    numbers = [
        replace(one, confidence=1 - (1 - CONFIDENCE) / gaps) if _is_gap(one) else one for one in numbers
    ]
    return sorted(numbers, key=lambda one: one.section != HOW_GOOD)


def _is_gap(number: Number) -> bool:
    return number.section == FOR_WHOM and number.group is None


def _of_sides(release: str, told: ReleasedConfusion, evaluated: PageRelease) -> Iterator[Number]:
    for name, metric in SHARES.items():
        yield _of_confusion(release, told, metric, {"pos_label": 1}, called=name)


def _of_labels(release: str, told: ReleasedConfusion, evaluated: PageRelease) -> Iterator[Number]:
    labels = told.labels.tolist()
    if len(labels) == 2:
        positive = evaluated.asked["pos_label"]
        one = {"pos_label": LabelSet.of(labels).known[1] if positive is None else positive}
        asked: list[tuple[str, dict[str, Any]]] = [("accuracy", {}), ("balanced_accuracy", {})]
        names = ("recall", "precision", "specificity", "f1", "selection_rate", "prevalence")
        asked += [(name, one) for name in names]
    else:
        asked = [("accuracy", {}), ("balanced_accuracy", {}), ("f1", {"average": "macro"})]
    for name, options in asked:
        yield _of_confusion(release, told, name, options)
    if len(labels) > _MOST_LABELS:
        return
    if len(labels) == 2:
        for label in labels:
            for name in _OF_LABELS:
                yield _of_confusion(release, told, name, {"pos_label": label, "average": "binary"}, label)
        return
    each: dict[str, Any] = {"average": None}
    limits = {name: _limits_of(told, name, each) for name in _OF_LABELS}
    notes = {name: _notes_of_labels(told, name, limits[name][0]) for name in _OF_LABELS}
    for at, label in enumerate(labels):
        for name in _OF_LABELS:
            found = [partial(_of_label, one, at) for one in limits[name]]
            value = float(getattr(told, f"{name}_score")(**each)[at])
            yield _of_counts(release, told, name, value, notes[name][at], found, label)


def _of_persons(release: str, told: ReleasedConfusion, evaluated: PageRelease) -> Iterator[Number]:
    for one in _of_labels(release, told, evaluated):
        if one.label is None and one.metric in _ONCE:
            yield replace(one, name=f"{one.name}{EACH_ONCE}")


def _limits_of(told: ReleasedConfusion, metric: str, options: dict[str, Any]) -> list[_Told]:
    """Return the limits of the noise and among all people, of one number or of several."""
    return [_Told(partial(of, metric, **options)) for of in (told.noise_interval, told.population_interval)]


def _notes_of_labels(told: ReleasedConfusion, metric: str, noise: _Told) -> list[str | None]:
    """Return what is said of a metric of each label, by the limits that the page shows."""
    if told.note(metric, average=None) is None:
        return [None] * len(told.labels)
    found = noise(CONFIDENCE)
    return [far_apart(*ends) for ends in zip(found.lower.tolist(), found.upper.tolist(), strict=True)]


def _of_confusion(
    release: str,
    told: ReleasedConfusion,
    metric: str,
    options: dict[str, Any],
    label: Any = None,
    called: str | None = None,
) -> Number:
    """Return a metric of labels."""
    name = called or metric.replace("_", " ") + (" (macro)" if options.get("average") == "macro" else "")
    method = getattr(told, metric, None) or getattr(told, f"{metric}_score")
    note, limits = told.note(metric, **options), _limits_of(told, metric, options)
    return _of_counts(release, told, name, float(method(**options)), note, limits, label)


def _of_counts(
    release: str,
    told: ReleasedConfusion,
    name: str,
    value: float,
    note: str | None,
    limits: Sequence[Callable[[float], Interval]],
    label: Any,
) -> Number:
    is_stored = told.result.note is None or NOT_STORED not in told.result.note
    said = " ".join(filter(None, (note, None if is_stored else NOT_STORED))) or None
    called = name if label is None else f"{name} of {label!r}"
    return Number(
        called, value, HOW_GOOD, name, release, said, label=label, _noise=limits[0], _people=limits[1]
    )


def _of_label(limits: _Told, at: int, confidence: float) -> Interval:
    """Return the limits of the label in this place."""
    found: Interval = limits(confidence)
    estimate = None if found.estimate is None else float(found.estimate[at])
    return replace(found, lower=float(found.lower[at]), upper=float(found.upper[at]), estimate=estimate)


def _of_scores(release: str, told: ReleasedScores, *, is_unit: bool) -> Iterator[Number]:
    note = told.result.note
    yield Number(
        "roc auc", told.roc_auc_score(), HOW_GOOD, "roc auc", release, note,
        _noise=told.noise_interval, _people=told.population_interval,
    )  # fmt: skip
    yield Number(
        "average precision", told.average_precision_score(), HOW_GOOD, "average precision", release, note,
        _noise=partial(told.noise_interval, metric="average_precision"),
        _people=partial(told.population_interval, metric="average_precision"),
    )  # fmt: skip
    if is_unit:
        yield _over_expected(release, told, HOW_GOOD)


def _over_expected(
    release: str, told: ReleasedScores, section: str, group: Any = None, by: str = ""
) -> Number:
    """Return how many are positive over how many scores expect, of all records or of a group."""
    limits = [partial(told.observed_over_expected, of=of) for of in ("records", "people")]
    value, (noise, people) = told.observed_over_expected(of="records").estimate, limits
    name = OVER_EXPECTED if section == HOW_GOOD else f"{OVER_EXPECTED} in {by}{_group(group)}"
    return Number(
        name, _number(value), section, OVER_EXPECTED, release, group=group, feature=feature_of(release),
        _noise=noise, _people=people,
    )  # fmt: skip


def _of_result(release: str, told: Result[Any], of_median: Interval | None) -> Iterator[Number]:
    if release == "median error" and of_median is not None:
        people = partial(_released_limits, of_median, float(told.value))
        yield replace(_plain(_ONE[release], release, told), _people=people)
        return
    if release != "errors":
        yield _plain(_ONE[release], release, told)
        return
    # one release tells both numbers that R2 is made of
    first = replace(
        told,
        noises=told.noises[:1],
        outputs=told.outputs[:1],
        released=told.released.of(told.released.values[:1]),
    )
    for name, made in (("mse", Monotone(only)), ("rmse", Monotone(_root))):
        one = replace(first, metric=name, reading=made)
        yield Number(
            name, float(one.value), HOW_GOOD, name, release, told.note, one.bias,
            _noise=one.noise_interval, _people=one.population_interval,
        )  # fmt: skip
    yield _plain("r2", release, told)


def _released_limits(limits: Interval, estimate: float, confidence: float) -> Interval:
    """Return limits that were released with one confidence; raise where more is asked for."""
    if confidence > limits.confidence + _ROUNDING:
        raise ValueError(
            f"These limits were released with {100 * limits.confidence:.3g} % confidence, and no more."
        )
    return replace(limits, estimate=estimate)


_ROUNDING = 1e-12


def _root(released: ReleasedNumbers) -> float:
    return math.sqrt(released.values[0])


def _plain(name: str, release: str, told: Result[Any]) -> Number:
    return Number(
        name, float(told.value), HOW_GOOD, name, release, told.note, told.bias,
        _noise=told.noise_interval, _people=told.population_interval,
    )  # fmt: skip


def _by_what(release: str, labels: Sequence[Hashable], evaluated: PageRelease) -> str:
    """Return what names the feature of a release by one of several, where others have its labels too."""
    feature = feature_of(release)
    if feature is None:
        return ""
    asked = evaluated.asked["group_labels"]
    several = [groups.labels for groups in Groups.apart(asked, len(asked))]
    others = {repr(label) for at, one in enumerate(several) for label in one if at != feature}
    return "" if others.isdisjoint(map(repr, labels)) else f"feature {feature + 1} "


def _of_groups(
    release: str, frame: PrivateMetricFrame, only_metric: str, evaluated: PageRelease
) -> Iterator[Number]:
    if only_metric == "mae" and not feature_of(release):
        yield Number(
            "mae", _number(frame.overall), HOW_GOOD, "mae", release, frame.overall_note, frame.overall_bias
        )
    features = list(zip(*(one for one in frame._groups if isinstance(one, tuple)), strict=True))
    if not only_metric:  # of counts the sums over the other features tell each feature alone
        for place, labels in enumerate(features):
            others = {repr(label) for at, one in enumerate(features) for label in one if at != place}
            is_clear = others.isdisjoint(map(repr, labels))
            yield from _of_frame(release, frame.margin(place), "", place, is_clear=is_clear)
    is_clear = not _by_what(release, frame._groups, evaluated)
    yield from _of_frame(release, frame, only_metric, feature_of(release), is_clear=is_clear)


def _of_frame(
    release: str,
    frame: PrivateMetricFrame,
    only_metric: str,
    feature: int | None = None,
    *,
    is_clear: bool = True,
) -> Iterator[Number]:
    """Return the numbers of groups, by one of several features perhaps, and the largest differences."""
    by = "" if feature is None else f"feature {feature + 1}"
    for key, entry in frame._entries.items():
        name = (key or only_metric).replace("_", " ")
        limits = [
            _Told(partial(found, key or None)) for found in (frame.noise_interval, frame.population_interval)
        ]
        for at, group in enumerate(frame._groups):
            called = _group(group) if is_clear else f"{by} {_group(group)}"
            yield Number(
                f"{name} in {called}", _number(entry.values[at]), FOR_WHOM, name, release,
                entry.notes[at], entry.biases[at], group=group, rests_on=entry.rests_on[at], feature=feature,
                _noise=partial(_in_group, limits[0], group), _people=partial(_in_group, limits[1], group),
            )  # fmt: skip
        gap = frame.difference() if frame._is_single else frame.difference()[key]
        yield Number(
            f"{name} difference{by and f' by {by}'}", gap, FOR_WHOM, name, release, _gap_note(entry.notes),
            feature=feature,
            _noise=partial(_gap, frame.noise_interval, key),
            _people=partial(_gap, frame.population_interval, key),
        )  # fmt: skip


def _gap_note(notes: Sequence[str | None]) -> str | None:
    return next((note for note in notes if note), None)


def _group(group: Hashable) -> str:
    return " and ".join(map(repr, group)) if isinstance(group, tuple) else repr(group)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _in_group(limits: _Told, group: Hashable, confidence: float) -> Interval:
    found = limits(confidence)
    if group not in found:
        raise ValueError("This group has no records.")
    interval: Interval = found[group]
    return interval


def _gap(limits: Callable[..., Any], key: str, confidence: float) -> Interval:
    interval: Interval = limits(key or None, of="difference", confidence=confidence)
    return interval
