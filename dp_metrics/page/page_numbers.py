"""The numbers of a page, each with how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dp_metrics.fairness.frame import GAP, PrivateMetricFrame, group_in_words
from dp_metrics.fairness.groups import Groups
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion, number_of
from dp_metrics.metrics.numbers import CONFIDENCE, Number
from dp_metrics.metrics.scores.released_scores import OVER_EXPECTED, ReleasedScores
from dp_metrics.page.page_plan import (
    MEDIAN_LIMITS,
    PERSONS,
    SHARES,
    SIDES,
    WITHIN,
    PageRelease,
    feature_of,
)
from dp_metrics.page.setting import LABELS
from dp_metrics.release.released import Interval
from dp_metrics.release.result import Monotone, ReleasedNumbers, Result, only

HOW_GOOD, FOR_WHOM = "How good", "For whom"

EACH_ONCE = ", each person once"
"""The end of the name of a number in which each person counts once."""
_ONCE = ("accuracy", "balanced accuracy", "recall", "precision", "specificity", "f1", "f1 (macro)")
_ONE = {"loss": "brier score", "absolute error": "mae", "median error": "median absolute error"}

METRICS = frozenset({
    "accuracy", "balanced accuracy", "recall", "precision", "specificity", "f1", "f1 (macro)", "roc auc",
    "average precision", OVER_EXPECTED, "selection rate", "prevalence", "mse", "rmse", "r2", *SHARES,
    *_ONE.values(),
})  # fmt: skip
"""The metrics of pages: a number is named by one, with " of " a label, " in " a group, or " difference"."""


def numbers_of(evaluated: PageRelease) -> list[Number]:
    """Return the numbers that a page shows, in their order."""
    numbers = [
        replace(one, release=release, section=one.section or HOW_GOOD)
        for release, told in evaluated.released.items()
        for one in _numbers_of(release, told, evaluated)
    ]
    if evaluated.setting.tolerance is None:
        numbers = [one for one in numbers if one.metric != WITHIN]
    gaps = sum(_is_gap(one) for one in numbers)
    numbers = [
        replace(one, confidence=1 - (1 - CONFIDENCE) / gaps) if _is_gap(one) else one for one in numbers
    ]
    return sorted(numbers, key=lambda one: one.section != HOW_GOOD)


def _numbers_of(release: str, told: Any, evaluated: PageRelease) -> Iterator[Number]:
    """Return the numbers of what was released by this name."""
    if isinstance(told, ReleasedConfusion):
        yield from _of_labels(release, told, evaluated)
    elif isinstance(told, ReleasedScores):
        is_unit = evaluated.setting.edges is None
        yield from (one for one in told.numbers().values() if is_unit or one.metric != OVER_EXPECTED)
    elif isinstance(told, PrivateMetricFrame):
        feature, is_of_counts = feature_of(release), release.startswith((LABELS, SIDES))
        if is_of_counts and not feature:  # of all records the table by the first feature tells
            yield from _of_labels(release, told.released_labels(), evaluated)
        elif release.startswith("absolute error") and not feature:
            yield told.numbers()["mae"]
        group = next(iter(told.by_group))
        for place in range(len(group) if is_of_counts and isinstance(group, tuple) else 0):
            # sums over the other features tell each feature alone
            yield from _of_frame(told.margin(place), place, evaluated)
        yield from _of_frame(told, feature, evaluated)
    elif isinstance(told, Result):
        yield from _of_result(release, told, evaluated.released.get(MEDIAN_LIMITS))


def _is_gap(number: Number) -> bool:
    return number.section == FOR_WHOM and number.group is None


def _of_labels(release: str, told: ReleasedConfusion, evaluated: PageRelease) -> Iterator[Number]:
    if release.startswith(SIDES):
        for name, metric in SHARES.items():
            yield number_of(told, metric, {"pos_label": 1}, called=name)
        return
    for one in told.numbers(pos_label=evaluated.setting.pos_label).values():
        if release != PERSONS:
            yield one
        elif one.label is None and one.metric in _ONCE:
            yield replace(one, name=f"{one.name}{EACH_ONCE}")


def _of_result(release: str, told: Result[Any], of_median: Interval | None) -> Iterator[Number]:
    if release == "median error" and of_median is not None:
        people = partial(_released_limits, of_median, float(told.value))
        yield replace(_plain(_ONE[release], told), _people=people)
        return
    if release != "errors":
        yield _plain(_ONE[release], told)
        return
    # one release tells both numbers that R2 is made of
    first = replace(
        told,
        noises=told.noises[:1],
        outputs=told.outputs[:1],
        released=told.released.of(told.released.values[:1]),
    )
    for name, made in (("mse", Monotone(only)), ("rmse", Monotone(_root))):
        yield replace(_plain(name, replace(first, metric=name, reading=made)), note=told.note)
    yield _plain("r2", told)


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


def _plain(name: str, told: Result[Any]) -> Number:
    return Number(
        name, float(told.value), name, told.note, told.bias,
        _noise=told.noise_interval, _people=told.population_interval,
    )  # fmt: skip


def _of_frame(frame: PrivateMetricFrame, feature: int | None, evaluated: PageRelease) -> Iterator[Number]:
    """Return the numbers of groups, by one of several features perhaps, and the largest differences."""
    by, is_clear = "", True
    if feature is not None:  # which is named where others have one of its labels too
        by, asked = evaluated.setting.called(feature), evaluated.setting.group_labels
        labels = [{*map(repr, groups.labels)} for groups in Groups.apart(asked, len(asked))]
        is_clear = not any(labels[feature] & other for at, other in enumerate(labels) if at != feature)
    for one in frame.numbers().values():
        if one.group is not None:
            group = group_in_words(one.group)
            name = f"{one.metric} in {group if is_clear else f'{by} {group}'}"
            yield replace(one, name=name, section=FOR_WHOM, feature=feature)
        elif one.name.endswith(GAP):
            yield replace(one, name=f"{one.name}{by and f' by {by}'}", section=FOR_WHOM, feature=feature)
