"""The numbers of a page, each with how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.page.page_plan import ByGroupToo, PageRelease
from dp_metrics.quantities.counts_noise import far_apart
from dp_metrics.release.released import Interval, Monotone, ReleasedNumbers, only
from dp_metrics.release.result import Result
from dp_metrics.release.stored_answers import NOT_STORED

CONFIDENCE = 0.95
"""Of the limits that a page shows."""
HOW_GOOD, FOR_WHOM = "How good", "For whom"

_MOST_LABELS = 20  # whose recall, precision and F1 are shown
_OF_LABELS = ("recall", "precision", "f1")
_ONE = {"loss": "brier score", "absolute error": "mae", "median error": "median absolute error"}

METRICS = frozenset({
    "accuracy", "balanced accuracy", "recall", "precision", "specificity", "f1", "f1 (macro)", "roc auc",
    "average precision", "selection rate", "prevalence", "mse", "rmse", "r2", *_ONE.values(),
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
    _noise: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)
    _people: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the exact number of these records; ValueError if there are none."""
        return _asked(self._noise, confidence)

    def population_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits among all people like these; ValueError if there are none."""
        return _asked(self._people, confidence)


def _asked(limits: Callable[[float], Interval] | None, confidence: float) -> Interval:
    if limits is None:
        raise ValueError("There are no such limits of this number.")
    return limits(confidence)


def numbers_of(evaluated: PageRelease) -> list[Number]:
    """Return the numbers that a page shows, in their order."""
    numbers: list[Number] = []
    for release, told in evaluated.released.items():
        if isinstance(told, ByGroupToo):
            numbers += _of_labels(release, told.overall, evaluated)
            numbers += _of_groups(release, told.by_group, "")
        elif isinstance(told, ReleasedConfusion):
            numbers += _of_labels(release, told, evaluated)
        elif isinstance(told, ReleasedScores):
            numbers += _of_scores(release, told)
        elif isinstance(told, PrivateMetricFrame):
            numbers += _of_groups(release, told, "roc auc" if release == "scores by group" else "mae")
        elif isinstance(told, Result):
            numbers += _of_result(release, told)
    return sorted(numbers, key=lambda one: one.section != HOW_GOOD)


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
    notes = {name: _notes_of_labels(told, name, each) for name in _OF_LABELS}
    for at, label in enumerate(labels):
        for name in _OF_LABELS:
            yield _of_confusion(release, told, name, each, label, at, notes[name][at])


def _notes_of_labels(told: ReleasedConfusion, metric: str, each: dict[str, Any]) -> list[str | None]:
    """Return what is said of a metric of each label, by the limits that the page shows."""
    if told.note(metric, **each) is None:
        return [None] * len(told.labels)
    found = told.noise_interval(metric, **each)
    return [far_apart(*ends) for ends in zip(found.lower.tolist(), found.upper.tolist(), strict=True)]


def _of_confusion(
    release: str,
    told: ReleasedConfusion,
    metric: str,
    options: dict[str, Any],
    label: Any = None,
    at: int | None = None,
    note: str | None = None,
) -> Number:
    """Return a metric of labels; of an array the number in this place, with its note."""
    note = told.note(metric, **options) if at is None else note
    is_stored = told.result.note is None or NOT_STORED not in told.result.note
    said = " ".join(filter(None, (note, None if is_stored else NOT_STORED))) or None
    method = getattr(told, metric, None) or getattr(told, f"{metric}_score")
    interval = {
        kind: partial(_one_of, getattr(told, kind), metric, options, at)
        for kind in ("noise_interval", "population_interval")
    }
    name = metric.replace("_", " ") + (" (macro)" if options.get("average") == "macro" else "")
    return Number(
        name if label is None else f"{name} of {label!r}", float(_pick(method(**options), at)), HOW_GOOD,
        name, release, said, label=label,
        _noise=interval["noise_interval"], _people=interval["population_interval"],
    )  # fmt: skip


def _one_of(
    limits: Callable[..., Interval],
    metric: str,
    options: dict[str, Any],
    at: int | None,
    confidence: float,
) -> Interval:
    found = limits(metric, confidence=confidence, **options)
    lower, upper, estimate = (_pick(one, at) for one in (found.lower, found.upper, found.estimate))
    return Interval(lower, upper, found.confidence, found.about, found.note, estimate)


def _pick(value: Any, at: int | None) -> Any:
    """Return the number in this place of an array; a number as it is."""
    return value if at is None or value is None else float(value[at])


def _of_scores(release: str, told: ReleasedScores) -> Iterator[Number]:
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


def _of_result(release: str, told: Result[Any]) -> Iterator[Number]:
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


def _root(released: ReleasedNumbers) -> float:
    return math.sqrt(released.values[0])


def _plain(name: str, release: str, told: Result[Any]) -> Number:
    return Number(
        name, float(told.value), HOW_GOOD, name, release, told.note, told.bias,
        _noise=told.noise_interval, _people=told.population_interval,
    )  # fmt: skip


def _of_groups(release: str, frame: PrivateMetricFrame, only_metric: str) -> Iterator[Number]:
    if only_metric == "mae":
        yield Number(
            "mae", _number(frame.overall), HOW_GOOD, "mae", release, frame.overall_note, frame.overall_bias
        )
    features = list(zip(*(one for one in frame._groups if isinstance(one, tuple)), strict=True))
    if not only_metric:  # of counts the sums over the other features tell each feature alone
        for place, labels in enumerate(features):
            others = {repr(label) for at, one in enumerate(features) for label in one if at != place}
            is_clear = others.isdisjoint(map(repr, labels))
            yield from _of_frame(release, frame.margin(place), "", place, is_clear=is_clear)
    yield from _of_frame(release, frame, only_metric)


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
        for at, group in enumerate(frame._groups):
            called = _group(group) if is_clear else f"{by} {_group(group)}"
            yield Number(
                f"{name} in {called}", _number(entry.values[at]), FOR_WHOM, name, release,
                entry.notes[at], entry.biases[at], group=group, rests_on=entry.rests_on[at], feature=feature,
                _noise=partial(_in_group, frame.noise_interval, key, group),
                _people=partial(_in_group, frame.population_interval, key, group),
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


def _in_group(limits: Callable[..., Any], key: str, group: Hashable, confidence: float) -> Interval:
    found = limits(key or None, confidence=confidence)
    if group not in found:
        raise ValueError("This group has no records.")
    interval: Interval = found[group]
    return interval


def _gap(limits: Callable[..., Any], key: str, confidence: float) -> Interval:
    interval: Interval = limits(key or None, of="difference", confidence=confidence)
    return interval
