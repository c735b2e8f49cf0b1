"""Requirements of a page: stated before the spend or later, met or not as far as limits tell."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics._html import card
from dp_metrics._random import SeededEntropy
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import as_real, check_choice, check_confidence, did_you_mean
from dp_metrics.metrics.scores.released_scores import OVER_EXPECTED
from dp_metrics.page.page_numbers import (
    EACH_ONCE,
    IN_UNITS,
    METRICS,
    is_of_records,
    limits_of,
    numbers_of,
)
from dp_metrics.page.page_plan import (
    MEDIAN_LIMITS,
    PAGE,
    EvaluationPlan,
    PageForm,
    RequirementError,
    plan_of_page,
)
from dp_metrics.page.setting import PROBABILITIES, SCORES
from dp_metrics.release.query import Terms
from dp_metrics.release.release import Release
from dp_metrics.release.released import Interval, Number, finite

PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot tell"

_SIGNS: dict[str, tuple[Callable[[float, float], bool], str, str]] = {
    ">=": (operator.ge, "at {} or more", "below {}"),
    ">": (operator.gt, "above {}", "at {} or less"),
    "<=": (operator.le, "at {} or less", "above {}"),
    "<": (operator.lt, "below {}", "at {} or more"),
}
"""What a sign asks of a number and a bound, and where a range lies that meets it, or does not."""
_REQUIREMENT = re.compile(r"\s*(.+\S)\s*(>=|<=|>|<)\s*([^<>=]+?)\s*")


@dataclass(frozen=True)
class Verdict:
    """Whether one requirement is met.

    Parameters
    ----------
    requirement : str
        The requirement, as people write it.
    answer : {"pass", "fail", "cannot tell"}
        "pass" where both limits meet it, "fail" where neither does.
    interval : Interval or None
        The limits that tell; None where there are none.
    note : str
        What else has to be known of the limits.
    why : str
        The reason, in one sentence or two.
    """

    requirement: str
    answer: str
    interval: Interval | None
    note: str = ""
    why: str = ""


@dataclass(frozen=True, repr=False)
class Verdicts(Mapping[str, Verdict]):
    """The verdict of each requirement: all of them are right at once with the confidence.

    Parameters
    ----------
    verdicts : mapping of str to Verdict
        By the name of the number.
    about : {"people", "records"}
        Of whom the verdicts speak.
    confidence : float
        Of all of them together.
    """

    verdicts: Mapping[str, Verdict]
    about: str
    confidence: float

    @property
    def answer(self) -> str:
        """Return "fail" if one requirement fails, "pass" if all pass, and else "cannot tell"."""
        answers = {one.answer for one in self.verdicts.values()}
        return FAIL if FAIL in answers else PASS if answers == {PASS} else CANNOT_TELL

    def __getitem__(self, name: str) -> Verdict:
        return self.verdicts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __repr__(self) -> str:
        return "\n".join(f"{requirement}: {answer} ({limits})" for requirement, answer, limits in self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts as lists, mappings, numbers and text."""
        rows = [
            {
                "name": name, "requirement": one.requirement, "answer": one.answer, "why": one.why,
                "limits": None if one.interval is None else [*map(finite, one.interval)],
            }
            for name, one in self.items()
        ]  # fmt: skip
        return {"answer": self.answer, "about": self.about, "confidence": self.confidence, "verdicts": rows}

    def rows(self) -> list[list[str]]:
        """Return each requirement, its answer and the limits, as text."""
        return [
            [one.requirement, one.answer,
             one.why if one.interval is None else one.interval.in_words("{:.4g}".format)]
            for one in self.verdicts.values()
        ]  # fmt: skip

    def _repr_html_(self) -> str:
        whom = "all people like these" if self.about == "people" else "these records"
        facts = {"about": whom, "confidence": f"{self.confidence:.12g}", "all": self.answer}
        return card("Requirements", facts, ["requirement", "answer", "limits"], self.rows())


EACH = " in each group"
_FORM = "requirements must be texts such as 'recall >= 0.8', or {'recall': ('>=', 0.8)}."
_PERCENT = "{!r} is from 0 to 1: a requirement of {} would be met always, or never. Nothing is spent."
_NO_SHARES = frozenset((*IN_UNITS, OVER_EXPECTED, "r2", "brier score"))
_TWICE = "There are two requirements of {!r}: ask for one, and check the other one later."


def spelled(requirements: Any) -> tuple[str, ...]:
    """Return requirements as text, such as "recall >= 0.8", of text or of a mapping of names to pairs."""
    if requirements is None:
        return ()
    if isinstance(requirements, Mapping):
        requirements = [_as_text(name, pair) for name, pair in requirements.items()]
    if isinstance(requirements, str):
        requirements = [requirements]
    if not isinstance(requirements, Iterable):
        raise ValueError(_FORM)
    texts = tuple(requirements)
    parsed(texts)
    return texts


def parsed(requirements: Iterable[Any]) -> dict[str, tuple[str, float]]:
    """Return requirements such as "recall>=0.8" by the names of numbers; refuse those that no page has."""
    asked: dict[str, tuple[str, float]] = {}
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement) if isinstance(requirement, str) else None
        try:
            name, sign, bound = ("", "", "") if found is None else found.groups()
            value = float(bound)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"{requirement!r} is no requirement such as 'recall>=0.8'.")
        metric = re.split(f" of | in | difference|{EACH_ONCE}", name)[0]
        if metric not in METRICS:
            raise ValueError(f"No page has {metric!r}.{did_you_mean(metric, METRICS)}")
        if name in asked:
            raise ValueError(_TWICE.format(name))
        asked[name] = sign, value
    return asked


def _as_text(name: str, pair: Any) -> str:
    """Return the requirement of a number as text, or raise."""
    try:
        sign, bound = pair
    except (TypeError, ValueError):
        sign, bound = "", ""
    if math.isnan(value := as_real(bound)):
        raise ValueError(f"The requirement of {name!r} must be a pair such as ('>=', 0.8).")
    return f"{name} {sign} {value!r}"


def expanded(numbers: Mapping[str, Number], requirements: Any) -> dict[str, tuple[str, float]]:
    """Return requirements by the names of numbers of a page; "in each group" stands for one of each.

    Of several features these are the groups by each of them alone.

    Raises
    ------
    RequirementError
        If the page has no such number, or two requirements are of one.
    """
    found: dict[str, tuple[str, float]] = {}
    for name, pair in parsed(spelled(requirements)).items():
        names = [name]
        if name.endswith(EACH):
            metric = name.removesuffix(EACH)
            of_groups = [one for one in numbers.values() if one.metric == metric and one.group is not None]
            alone = [one for one in of_groups if one.feature is not None]
            names = [one.name for one in alone or of_groups]
        for one in names or [name]:
            if one not in numbers:
                known = ", ".join(numbers) or "there is none"
                raise RequirementError(
                    f"{one!r} is no number of this page: {known}.{did_you_mean(one, numbers)}"
                )
            if one in found:
                raise RequirementError(_TWICE.format(one))
            found[one] = pair
    return found


def checked(numbers: Mapping[str, Number], requirements: Any, *, about: str, confidence: float) -> Verdicts:
    """Return the verdicts; the requirements share the probability with which limits may miss."""
    check_choice(about, "about", ("people", "records"))
    sure = check_confidence(confidence)
    if not requirements:
        raise ValueError(_FORM)
    asked = expanded(numbers, requirements)
    each = 1 - (1 - sure) / len(asked)
    verdicts = {name: _verdict(numbers[name], *pair, about, each) for name, pair in asked.items()}
    return Verdicts(verdicts, about, sure)


_OF_RECORDS = "Its range is about these records only, and tells nothing sure of all people like these."


def _verdict(number: Number, sign: str, bound: float, about: str, confidence: float) -> Verdict:
    text, compared = f"{number.name} {sign} {_whole(bound)}", _SIGNS[sign][0]
    limits = number.population_interval if about == "people" else number.noise_interval
    try:
        interval = limits(confidence)
    except (TypeError, ValueError) as error:
        is_known = about == "people" and is_of_records(number) and limits_of(number) is not None
        return Verdict(text, CANNOT_TELL, None, str(error), _OF_RECORDS if is_known else str(error))
    meets = {compared(interval.lower, bound), compared(interval.upper, bound)}
    answer = PASS if meets == {True} else FAIL if meets == {False} else CANNOT_TELL
    return Verdict(text, answer, interval, interval.note, _why(number.value, sign, bound, interval, answer))


def _whole(bound: float) -> str:
    """Return a bound as it was given, with all of its digits."""
    return f"{bound:.15g}"


_MOST_TIMES = 100


def _why(value: float, sign: str, bound: float, interval: Interval, answer: str) -> str:
    """Return why a verdict is what it is; where nothing can be told, what would take to tell it."""
    if answer != CANNOT_TELL:
        _, met, broken = _SIGNS[sign]
        side = met if answer == PASS else broken
        return f"All of the range is {side.format(_whole(bound))}."
    end = interval.lower if value > bound else interval.upper
    reach, distance = abs(value - end), abs(value - bound)
    if not math.isfinite(reach):
        there = f"There is no limit on the other side of {_whole(bound)}."
        return f"{there} Give public bounds, or ask for a median."
    # ranges shrink with the root of the number of records at most
    times = (reach / distance) ** 2 if distance else math.inf
    more = f"about {max(times, 1.1):.2g}" if times <= _MOST_TIMES else f"more than {_MOST_TIMES}"
    return f"{_whole(bound)} lies within the range. If the number stays, it takes {more} times the records."


def needed_releases(public: PageForm, plan: EvaluationPlan) -> frozenset[str]:
    """Return the releases of a page that requirements of the call are about.

    Raises
    ------
    RequirementError
        If a requirement is of no number of this page, with what the page leaves out, and why; or of a share
        that no page can have, such as one in percent; nothing is spent yet.
    """
    numbers = {one.name: one for one in numbers_of(public.setting, rehearsed(public, plan))}
    try:
        asked = expanded(numbers, public.setting.requirements)
    except RequirementError as error:
        left_out = " ".join(f"Not told: {one.about}. {one.why}" for one in plan.left_out)
        raise RequirementError(f"{error} {left_out}".strip()) from None
    for name, (_, bound) in asked.items():
        if numbers[name].metric not in _NO_SHARES and not 0 <= bound <= 1:
            raise RequirementError(_PERCENT.format(name, _whole(bound)))
    needed = {numbers[name].release for name in asked}
    return frozenset(needed | {MEDIAN_LIMITS} if "median error" in needed else needed)


def rehearsed(public: PageForm, plan: EvaluationPlan) -> Mapping[str, Any]:
    """Return what a page of this plan releases about made-up records, one of each group.

    It tells which numbers there are. No record is read for it, and what is drawn is thrown away: names
    must be known before the spend.
    """
    setting, groups = public.setting, list[Any]([()])
    sizes = None if public.sizes is None else tuple(min(size, 1) for size in public.sizes)
    if setting.has_groups:
        groups = [public.groups.labels[place] for place in public.groups.places]
    features = zip(*(one if isinstance(one, tuple) else (one,) for one in groups), strict=True)
    kinds = [
        setting.baseline if kind == "baseline" else kind for kind in setting.columns if kind != "feature"
    ]
    columns = [_made_up(public, kind, len(groups)) for kind in kinds]
    _, records = Records.of((*columns, *map(list, features)), relation=public.shape.relation)
    n = None if public.shape.n is None else len(groups)
    # so few records have no limits of a median, which are no number of their own
    plan = replace(plan, parts=tuple(part for part in plan.parts if part.name != MEDIAN_LIMITS))
    together = plan_of_page(replace(public, shape=replace(public.shape, n=n), sizes=sizes), plan)
    terms = Terms(public.epsilon, public.shape.relation, entropy=SeededEntropy(0))
    with np.errstate(all="ignore"):
        prepared = Release(PAGE, terms).prepare_all(together, together.read(records))
        told: dict[str, Any] = together.combine([one.draw() for one in prepared])
    released: Mapping[str, Any] = told["released"]
    return released


def _made_up(public: PageForm, kind: str | None, n: int) -> NDArray[Any]:
    """Return so many valid values of a column of this kind, all alike."""
    setting = public.setting
    if setting.is_regression:
        return np.full(n, 0.0 if setting.bounds is None else setting.bounds[0])
    if kind == SCORES:
        return np.full(n, 0.5 if setting.edges is None else setting.edges[0])
    if kind == PROBABILITIES:
        return np.full((n, public.labels.size), 1 / public.labels.size)
    return np.repeat(public.labels.in_order[:1], n)
