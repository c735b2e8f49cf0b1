"""Requirements of a page: stated before the spend or later, met or not as far as limits tell."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dp_metrics.fairness.frame_query import NO_RECORDS
from dp_metrics.inputs.options import check_choice, check_confidence, did_you_mean
from dp_metrics.metrics.scores.released_scores import OVER_EXPECTED
from dp_metrics.page.page_numbers import (
    IN_UNITS,
    METRICS,
    TOO_NOISY,
    Numbers,
    is_of_records,
    is_told,
    limits_of,
)
from dp_metrics.page.page_plan import EACH_ONCE, MEDIAN_LIMITS, EvaluationPlan, RequirementError
from dp_metrics.release.released import Interval, Number, finite

Asked: TypeAlias = dict[str, tuple[str, float]]
"""Of the name of a number the sign and the bound that it has to keep."""

PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot tell"

_SIGNS: dict[str, tuple[Callable[[float, float], bool], str, str]] = {
    ">=": (operator.ge, "at {:.15g} or more", "below {:.15g}"),
    ">": (operator.gt, "above {:.15g}", "at {:.15g} or less"),
    "<=": (operator.le, "at {:.15g} or less", "above {:.15g}"),
    "<": (operator.lt, "below {:.15g}", "at {:.15g} or more"),
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
        "pass" where both limits meet it, "fail" where neither does; of a number that is too noisy to be shown
        where every possible value does, or none.
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


class Verdicts(dict[str, Verdict]):
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

    def __init__(self, verdicts: Mapping[str, Verdict], about: str, confidence: float) -> None:
        super().__init__(verdicts)
        self.about, self.confidence = about, confidence

    @property
    def answer(self) -> str:
        """Return "fail" if one requirement fails, "pass" if all pass, and else "cannot tell"."""
        answers = {one.answer for one in self.values()}
        return FAIL if FAIL in answers else PASS if answers == {PASS} else CANNOT_TELL

    def __repr__(self) -> str:
        told = [f"{requirement}: {answer} ({limits})" for requirement, answer, limits in self.rows()]
        return "\n".join([*told, f"about {self.about}, all at once with confidence {self.confidence:.12g}"])

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
            for one in self.values()
        ]  # fmt: skip


EACH = " in each group"
_FORM = "requirements must be texts such as 'recall >= 0.8'."
_NO_SHARES = frozenset((*IN_UNITS, OVER_EXPECTED, "r2", "brier score"))
_TWICE = "There are two requirements of {!r}: ask for one, and check the other one later."


def spelled(requirements: Any) -> tuple[str, ...]:
    """Return requirements such as "recall >= 0.8", of one text or several."""
    if requirements is None:
        return ()
    if isinstance(requirements, str):
        requirements = [requirements]
    if not isinstance(requirements, Iterable):
        raise ValueError(_FORM)
    texts = tuple(requirements)
    parsed(texts)
    return texts


def parsed(requirements: Iterable[Any]) -> Asked:
    """Return requirements such as "recall>=0.8" by the names of numbers; refuse those that no page has."""
    asked: Asked = {}
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement) if isinstance(requirement, str) else None
        try:
            name, sign, bound = ("", "", "") if found is None else found.groups()
            value = float(bound)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(
                f"{requirement!r} is no requirement such as 'recall >= 0.8' or 'recall in each group >= 0.8'."
            )
        metric = re.split(f" of | in | difference|{EACH_ONCE}", name)[0]
        if metric not in METRICS:
            raise ValueError(f"No page has {metric!r}.{did_you_mean(metric, METRICS)}")
        if name in asked:
            raise ValueError(_TWICE.format(name))
        asked[name] = sign, value
    return asked


def expanded(numbers: Numbers, requirements: Iterable[str]) -> Asked:
    """Return requirements by the names of numbers of a page; "in each group" stands for one of each.

    Of several features these are the groups by each of them alone.

    Raises
    ------
    RequirementError
        If the page has no such number, or two requirements are of one.
    """
    found: Asked = {}
    for name, pair in parsed(requirements).items():
        names = [name]
        if name.endswith(EACH):
            metric = name.removesuffix(EACH)
            of_groups = [one for one in numbers.values() if one.metric == metric and one.group is not None]
            alone = [one for one in of_groups if one.feature is not None]
            names = [one.name for one in alone or of_groups]
        for one in names or [name]:
            if one not in numbers:
                raise RequirementError(
                    f"{one!r} is no number of this page: {', '.join(numbers) or 'there is none'}."
                    f"{did_you_mean(one, numbers)}"
                )
            if one in found:
                raise RequirementError(_TWICE.format(one))
            found[one] = pair
    return found


def checked(numbers: Numbers, requirements: tuple[str, ...], *, about: str, confidence: float) -> Verdicts:
    """Return the verdicts; the requirements share the probability with which limits may miss."""
    check_choice(about, "about", ("people", "records"))
    sure = check_confidence(confidence)
    if not requirements:
        raise ValueError(_FORM)
    whole, named = expanded(numbers, requirements), parsed(requirements)
    # "in each group" asks nothing of a group that is publicly empty
    asked = {name: pair for name, pair in whole.items() if name in named or numbers[name].note != NO_RECORDS}
    asked = asked or whole
    each = 1 - (1 - sure) / len(asked)
    verdicts = {name: _verdict(numbers[name], *pair, about, each) for name, pair in asked.items()}
    return Verdicts(verdicts, about, sure)


_OF_RECORDS = "Its range is about these records only, and tells nothing sure of all people like these."


def _verdict(number: Number, sign: str, bound: float, about: str, confidence: float) -> Verdict:
    text, (compared, met, broken) = f"{number.name} {sign} {bound:.15g}", _SIGNS[sign]
    limits = number.population_interval if about == "people" else number.noise_interval
    try:
        interval = limits(confidence)
    except (TypeError, ValueError) as error:
        is_known = about == "people" and is_of_records(number) and limits_of(number) is not None
        return Verdict(text, CANNOT_TELL, None, str(error), _OF_RECORDS if is_known else str(error))
    # about records a range may be told where one of people is too wide
    is_noise = not is_told(number if about == "people" else replace(number, _people=None))
    least, most = _VALUES.get(number.metric, (0.0, 1.0)) if is_noise else interval[:2]
    meets = {compared(least, bound), compared(most, bound)}
    answer = PASS if meets == {True} else FAIL if meets == {False} else CANNOT_TELL
    # a number that is too noisy to be shown has a verdict only if that does not depend on it
    if answer == CANNOT_TELL:
        more = f"The number is {TOO_NOISY}. More records, or a larger epsilon, make it clear."
        why = more if is_noise else _what_it_takes(number, bound, interval, about)
    else:
        side = (met if answer == PASS else broken).format(bound)
        of_noise = f"Every possible value is {side}. The number itself is {TOO_NOISY}."
        why = of_noise if is_noise else f"All of the range is {side}."
    return Verdict(text, answer, interval, interval.note, why)


_VALUES = {**dict.fromkeys((*IN_UNITS, OVER_EXPECTED), (0.0, math.inf)), "r2": (-math.inf, 1.0)}
"""The least and the largest value that there may be, of what is no share."""


_MOST_TIMES = 100
_OF_BINS = frozenset(("roc auc", "average precision", OVER_EXPECTED))
_IF_FINE = ", if the bins of the scores are fine enough"


_MORE_RECORDS = "More records, or a larger epsilon, give it one."
_HAS_NO_LIMIT = {"median absolute error": _MORE_RECORDS, OVER_EXPECTED: _MORE_RECORDS}
_OF_MEANS = "Give public bounds, closer ones if there are some, or ask for a median."


def _what_it_takes(number: Number, bound: float, interval: Interval, about: str) -> str:
    """Return what it would take to tell whether a number meets a requirement, where its range does not."""
    end = interval.lower if number.value > bound else interval.upper
    reach, distance = abs(number.value - end), abs(number.value - bound)
    if not math.isfinite(reach):
        return (
            f"There is no limit on the other side of {bound:.15g}. "
            f"{_HAS_NO_LIMIT.get(number.metric, _OF_MEANS)}"
        )
    # ranges among people shrink with the root of the number of records, and those of the noise of counts with
    # that number; of a mean with what lies between, as what few records add is clipped
    shrinks = 1 if about == "records" and number.metric not in IN_UNITS else 2
    # but for what bins leave open
    times = (reach / distance) ** shrinks if distance else math.inf
    more = f"about {max(times, 1.1):.2g}" if times <= _MOST_TIMES else f"more than {_MOST_TIMES}"
    more += f" times the records{_IF_FINE if number.metric in _OF_BINS else ''}"
    return f"{bound:.15g} lies within the range. If the number stays, it takes {more}."


def needed_releases(numbers: Numbers, requirements: Iterable[str], plan: EvaluationPlan) -> frozenset[str]:
    """Return the releases of a page with such numbers and this plan that requirements are about.

    Raises
    ------
    RequirementError
        If a requirement is of no number of this page, with what the page leaves out, and why; or of a share
        that no page can have, such as one in percent; nothing is spent yet.
    """
    try:
        asked = expanded(numbers, requirements)
    except RequirementError as error:
        left_out = " ".join(f"Not told: {one.about}. {one.why}" for one in plan.left_out)
        raise RequirementError(f"{error} {left_out}".strip()) from None
    for name, (_, bound) in asked.items():
        if numbers[name].metric not in _NO_SHARES and not 0 <= bound <= 1:
            raise RequirementError(
                f"{name!r} is from 0 to 1: a requirement of {bound:.15g} would be met always, or never. "
                "Nothing is spent."
            )
    needed = {numbers[name].release for name in asked}
    return frozenset(needed | {MEDIAN_LIMITS} if "median error" in needed else needed)
