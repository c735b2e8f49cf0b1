"""The numbers of a page, each with how sure it is, and how it is shown.

A number has no more digits than its range supports, or is too noisy to tell.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from dp_metrics.fairness.frame import GAP, PrivateMetricFrame, group_in_words
from dp_metrics.fairness.groups import Groups
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion, number_of
from dp_metrics.metrics.scores.released_scores import OVER_EXPECTED, ReleasedScores
from dp_metrics.page import page_plan
from dp_metrics.page.page_plan import Released
from dp_metrics.page.setting import LABELS, Setting
from dp_metrics.release.released import CONFIDENCE, Interval, Number
from dp_metrics.release.result import AnyResult, Monotone, ReleasedNumbers, Result, only
from dp_metrics.release.stored import NOT_STORED

Numbers: TypeAlias = dict[str, Number]
"""Numbers of a page by their names."""

TOO_NOISY = "too noisy to tell"

IN_UNITS = ("median absolute error", "mae", "rmse", "mse")
"""Metrics in the unit of the targets, or its square; all others are shares, or differ by 1 at most."""
_ON_A_SCALE = IN_UNITS[:3]
WIDEST_RANGE = 0.5
"""A share whose range, noise and chance together, is wider is too noisy to tell."""
_MOST_DIGITS = 300  # of the smallest floats
_LEAST = 1e-12  # half of a range, of its ends, that floats can tell


def limits_of(number: Number) -> Interval | None:
    """Return the range of a number: among all people, or else of its noise; None where there is none."""
    people = known_limits(number.population_interval, number)
    return known_limits(number.noise_interval, number) if people is None else people


def is_of_records(number: Number) -> bool:
    """Return whether the range of a number, if there is one, is about these records only."""
    return known_limits(number.population_interval, number) is None


def known_limits(limits: Callable[[float], Interval], number: Number) -> Interval | None:
    """Return these limits of a number; None where there are none."""
    try:
        return limits(number.confidence)
    except Exception:  # the number is paid for all the same
        return None


def is_told(number: Number) -> bool:
    """Return whether a number is shown: not where a note calls it mostly noise, or its range is too wide."""
    limits = limits_of(number)
    # what limits say too, as of bins that are coarse, is no noise: they allow for it
    noted = number.note not in (None, NOT_STORED) and (limits is None or number.note not in limits.note)
    if noted or math.isnan(number.value):
        return False
    if limits is None:
        return True
    if number.metric in IN_UNITS:  # none is below 0, nor a difference of two, so that 0 is no limit
        return limits.lower > 0 or math.isfinite(limits.upper)
    return bool(limits.upper - limits.lower <= WIDEST_RANGE)


def shown_limits(number: Number) -> Interval | None:
    """Return the range of a number that is shown with one; None of any other."""
    return limits_of(number) if is_told(number) else None


def written(
    value: float,
    limits: Interval | None,
    *,
    is_share: bool = True,
    least: float = 0.0,
    times: int = 1,
    apart_from: float = math.nan,
) -> tuple[str, str]:
    """Return a number and its range as text: the range rounded outwards, to a power of ten.

    That is the largest one that is at most half the width; of a range that ends on one side the distance from
    the number, and of a share .01, or .001 where the range is narrower. The number has one digit at least.

    Parameters
    ----------
    value : float
        The number.
    limits : Interval or None
        Its range.
    is_share : bool, default=True
        Whether it is a share, or the like.
    least : float, default=0
        Half of the range that counts, even if it is narrower: 1 of counts, which are whole.
    times : int, default=1
        What both are multiplied by: a share times 100 is of a hundred.
    apart_from : float, default=NaN
        A bound: if it lies outside of the range, it does so as that is written, with more digits if need be.
    """
    if limits is None:
        return f"{value * times:.2g}", ""
    value, low, high = (float(one) * times for one in (value, limits.lower, limits.upper))
    ends = [end for end in (low, high) if math.isfinite(end)]
    half = (high - low) / 2 if len(ends) == 2 else max((abs(value - end) for end in ends), default=0)
    half = max(half or least or abs(value), least, _LEAST * max(map(abs, (value, *ends))))
    finest = math.floor(math.log10(least)) if least else -_MOST_DIGITS
    exponent = max(math.floor(math.log10(half)), finest) if half > 0 else -3
    if is_share:
        exponent = round(math.log10(times)) - (2 if half >= 0.01 * times else 3)
    down, up = _outwards(low, high, exponent)
    while not low <= apart_from <= high and down <= apart_from * 10.0**-exponent <= up:
        exponent -= 1
        down, up = _outwards(low, high, exponent)
    told = replace(limits, lower=down, upper=up).in_words(
        lambda end: "" if math.isinf(end) else _text(int(end), exponent)
    )
    if not is_share and value:  # one digit stays: a number that is not 0 does not become 0, but a count may
        exponent = min(exponent, max(math.floor(math.log10(abs(value))), finest))
    return _text(round(value * 10.0**-exponent), exponent), told


def text_of(number: Number, limits: Interval | None = None, **how: Any) -> tuple[str, str]:
    """Return a number and its range, or other limits, as text; see `written`. A sure gap is apart from 0."""
    how = {
        "is_share": number.metric not in IN_UNITS,
        "apart_from": 0.0 if is_gap(number) else math.nan,
        **how,
    }
    return written(number.value, limits or limits_of(number), **how)


def _outwards(low: float, high: float, exponent: int) -> tuple[float, float]:
    """Return the ends of a range in whole powers of ten."""
    return _down(low * 10.0**-exponent), -_down(-high * 10.0**-exponent)


def _down(number: float) -> float:
    """Return the whole number below, but for what rounding of floats moves."""
    return number if math.isinf(number) else float(math.floor(number + max(1e-9, abs(number) * 1e-12)))


def _text(whole: int, exponent: int) -> str:
    """Return so many times a power of ten, without zeros that nobody counts."""
    if -9 <= exponent <= 9:
        return f"{whole * 10**exponent:,}" if exponent >= 0 else f"{whole / 10**-exponent:,.{-exponent}f}"
    return f"{whole * 10.0**exponent:.{len(str(abs(whole))) - 1}e}"


def scale_of(numbers: Iterable[Number]) -> float:
    """Return the end of the scale of those of these numbers that are in the unit of the targets."""
    ends = [0.0]
    for one in numbers:
        limits = shown_limits(one)
        if one.metric in _ON_A_SCALE and limits is not None:
            ends += [end for end in (one.value, limits.upper) if math.isfinite(end)]
    return 1.1 * max(ends)


def dots_of(number: Number, scale: float) -> dict[str, float | None] | None:
    """Return where a number and its range lie on a scale from 0 to 1, or to this end if it is in a unit.

    Returns
    -------
    dict or None
        "lower", "upper" and "value" in hundredths of the scale: all of it, and no value, of what is too noisy
        to tell; and "is_open" where there is no upper limit. None of what has no picture.
    """
    limits = limits_of(number)
    end = 1.0 if number.metric not in IN_UNITS else scale if number.metric in _ON_A_SCALE else 0.0
    if limits is None or not end > 0 or number.metric == OVER_EXPECTED:
        return None
    if not is_told(number):
        return {"lower": 0.0, "upper": 100.0, "value": None, "is_open": False}
    places = {"lower": limits.lower, "upper": limits.upper, "value": number.value}
    dots = {name: round(100 * min(max(float(one) / end, 0.0), 1.0), 1) for name, one in places.items()}
    return {**dots, "is_open": math.isinf(limits.upper)}


HOW_GOOD, FOR_WHOM = "How good", "For whom"

_ONCE = ("accuracy", "balanced accuracy", "recall", "precision", "specificity", "f1", "f1 (macro)")
_ONE = {"loss": "brier score", "absolute error": "mae", "median error": "median absolute error"}

METRICS = {
    "accuracy": "of all {units}, the share that is judged rightly",
    "balanced accuracy": "the mean, over all labels, of the share that is judged rightly",
    "recall": "of {units} {with_label}, the share that is found",
    "precision": "of {units} that are given the label, the share that has it",
    "specificity": "of {units} without the positive label, the share that is not given it",
    "f1": "recall and precision in one number, their harmonic mean",
    "f1 (macro)": "the mean of the F1 scores of all labels",
    "roc auc": "of two {units}, one positive: how often this has the higher score; by chance 0.5",
    "average precision": "the mean precision over all thresholds, weighted by the recall that each adds",
    OVER_EXPECTED: "positive {units}, for each one that the scores expect; 1 is as expected",
    "selection rate": "of all {units}, the share that is given the positive label",
    "prevalence": "of all {units}, the share that has the positive label",
    "brier score": "the mean squared distance of a probability and what happened; 0 is best",
    "median absolute error": "half of the predictions are off by less",
    "mae": "how far predictions are off on average",
    "rmse": "how far predictions are off where large errors count more: the root of their mean square",
    "mse": "the mean of the squares of errors",
    "r2": "1 where predictions are exact, 0 where the mean of all targets is as good",
    page_plan.WITHIN: "of all predictions, the share that is off by no more than the tolerance",
    "share too high": "of all predictions, the share that is above the truth",
}
"""The metrics of pages and what they mean.

A number is named by one of them, with " of " a label, " in " a group, or " difference".
"""


def numbers_of(setting: Setting, released: Released) -> Numbers:
    """Return the numbers that a page shows, by name and in their order."""
    numbers = [
        replace(_without_bounds(one, setting), release=release, section=one.section or HOW_GOOD)
        for release in released
        for one in _numbers_of(release, released, setting)
    ]
    if setting.tolerance is None:
        numbers = [one for one in numbers if one.metric != page_plan.WITHIN]
    gaps = sum(is_gap(one) for one in numbers)
    numbers = [
        replace(one, confidence=1 - (1 - CONFIDENCE) / gaps) if is_gap(one) else one for one in numbers
    ]
    return {one.name: one for one in sorted(numbers, key=lambda one: one.section != HOW_GOOD)}


def _without_bounds(number: Number, setting: Setting) -> Number:
    """Return a number with no upper limit where that is all that the public bounds of the targets tell."""
    if number.metric not in IN_UNITS or setting.bounds is None:
        return number
    lower, upper = setting.bounds
    width = upper - lower
    most = width * width if number.metric == "mse" else width  # a power would raise where it overflows
    noise, people = (
        partial(_below, limits=one, most=most) for one in (number.noise_interval, number.population_interval)
    )
    return replace(number, _noise=noise, _people=people)


def _below(confidence: float, *, limits: Callable[[float], Interval], most: float) -> Interval:
    found = limits(confidence)
    return replace(found, upper=math.inf) if found.upper >= most * (1 - _ROUNDING) else found


def _numbers_of(release: str, released: Released, setting: Setting) -> Iterator[Number]:
    """Return the numbers of what was released by this name."""
    told = released[release]
    if isinstance(told, ReleasedConfusion):
        yield from _of_labels(release, told)
    elif isinstance(told, ReleasedScores):
        for one in told.numbers().values():
            if setting.edges is None or one.metric != OVER_EXPECTED:
                yield one
    elif isinstance(told, PrivateMetricFrame):
        feature = page_plan.feature_of(release)
        is_of_counts = release.startswith((LABELS, page_plan.SIDES, page_plan.PERSONS))
        if is_of_counts and not feature:  # of all records the table by the first feature tells
            yield from _of_labels(release, told.released_labels())
        elif release.startswith("absolute error") and not feature:
            yield told.numbers()["mae"]
        group = next(iter(told.by_group))
        for place in range(len(group) if is_of_counts and isinstance(group, tuple) else 0):
            # sums over the other features tell each feature alone
            yield from _of_frame(told.margin(place), place, setting)
        yield from _of_frame(told, feature, setting)
    elif isinstance(told, Result):
        yield from _of_result(release, told, released.get(page_plan.MEDIAN_LIMITS))


def is_gap(number: Number) -> bool:
    """Return whether that is a largest difference of groups."""
    return number.section == FOR_WHOM and number.group is None


def _of_labels(release: str, told: ReleasedConfusion) -> Iterator[Number]:
    if release.startswith(page_plan.SIDES):
        for name, metric in page_plan.SHARES.items():
            yield number_of(told, metric, {"pos_label": 1}, called=name)
        return
    for one in told.numbers().values():
        if not release.startswith(page_plan.PERSONS):
            yield one
        elif one.label is None and one.metric in _ONCE:
            yield replace(one, name=f"{one.name}{page_plan.EACH_ONCE}")


def _of_result(release: str, told: AnyResult, of_median: Interval | None) -> Iterator[Number]:
    if release in _ONE:
        number = _plain(_ONE[release], told)
        if release == "median error" and of_median is not None:
            whose = "_people" if told.released.most_records == 1 else "_noise"
            limits: Any = {whose: partial(_released_limits, of_median, number.value)}
            number = replace(number, **limits)
        yield number
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


def _plain(name: str, told: AnyResult) -> Number:
    return Number(
        name, float(told.value), name, told.note, told.bias,
        _noise=told.noise_interval, _people=told.population_interval,
    )  # fmt: skip


def _of_frame(frame: PrivateMetricFrame, feature: int | None, setting: Setting) -> Iterator[Number]:
    """Return the numbers of groups, by one of several features perhaps, and the largest differences."""
    by, is_clear = "", True
    if feature is not None:  # which is named where others have one of its labels too
        by, asked = setting.called(feature), setting.group_labels
        labels = [{*map(repr, groups.labels)} for groups in Groups.apart(asked, len(asked))]
        is_clear = not any(labels[feature] & other for at, other in enumerate(labels) if at != feature)
    for one in frame.numbers().values():
        if one.group is not None:
            group = group_in_words(one.group)
            name = f"{one.metric} in {group if is_clear else f'{by} {group}'}"
            yield replace(one, name=name, section=FOR_WHOM, feature=feature)
        elif one.name.endswith(GAP):
            yield replace(one, name=f"{one.name}{by and f' by {by}'}", section=FOR_WHOM, feature=feature)
