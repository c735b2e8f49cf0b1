"""Whether requirements are met, as far as released numbers tell."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dp_metrics._html import HtmlRepr, card
from dp_metrics.inputs.options import as_real, check_choice, check_confidence, did_you_mean
from dp_metrics.page.numbers import METRICS, Number
from dp_metrics.release.interval import Interval

PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot tell"

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
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
        Why there are none, or what else has to be known.
    """

    requirement: str
    answer: str
    interval: Interval | None
    note: str = ""


@dataclass(frozen=True, repr=False)
class Verdicts(Mapping[str, Verdict], HtmlRepr):
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

    def rows(self) -> list[list[str]]:
        """Return each requirement, its answer and the limits, as text."""
        return [
            [one.requirement, one.answer,
             one.note if one.interval is None else one.interval.in_words("{:.4g}".format)]
            for one in self.verdicts.values()
        ]  # fmt: skip

    def _repr_html_(self) -> str:
        whom = "all people like these" if self.about == "people" else "these records"
        facts = {"about": whom, "confidence": f"{self.confidence:.12g}", "all": self.answer}
        return card("Requirements", facts, ["requirement", "answer", "limits"], self.rows())


def parsed(requirements: Iterable[str]) -> dict[str, tuple[str, float]]:
    """Return requirements such as "recall>=0.8" by the names of numbers; refuse those that no page has."""
    asked: dict[str, tuple[str, float]] = {}
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement)
        try:
            name, sign, bound = ("", "", "") if found is None else found.groups()
            pair = sign, float(bound)
        except ValueError:
            raise ValueError(f"{requirement!r} is no requirement such as 'recall>=0.8'.") from None
        metric = re.split(" of | in | difference", name)[0]
        if metric not in METRICS:
            raise ValueError(f"No page has {metric!r}.{did_you_mean(metric, METRICS)}")
        if name in asked:
            raise ValueError(
                f"There are two requirements of {name!r}: ask for one, and check the other one later."
            )
        asked[name] = pair
    return asked


def checked(numbers: Mapping[str, Number], requirements: Any, *, about: str, confidence: float) -> Verdicts:
    """Return the verdicts; the requirements share the probability with which limits may miss."""
    check_choice(about, "about", ("people", "records"))
    sure = check_confidence(confidence)
    if not isinstance(requirements, Mapping) or not requirements:
        raise ValueError("requirements must be a mapping such as {'recall': ('>=', 0.8)}.")
    each = 1 - (1 - sure) / len(requirements)
    verdicts = {name: _verdict(numbers, name, asked, about, each) for name, asked in requirements.items()}
    return Verdicts(verdicts, about, sure)


def _verdict(numbers: Mapping[str, Number], name: str, asked: Any, about: str, confidence: float) -> Verdict:
    if name not in numbers:
        raise ValueError(f"{name!r} is no number of this page: {', '.join(numbers)}.")
    try:
        sign, value = asked
        compared, bound = _COMPARED[sign], as_real(value)
    except (TypeError, ValueError, KeyError):
        compared, bound, sign = operator.ge, float("nan"), ""
    if bound != bound:
        raise ValueError(f"The requirement of {name!r} must be a pair such as ('>=', 0.8).")
    text, number = f"{name} {sign} {bound:g}", numbers[name]
    limits = number.population_interval if about == "people" else number.noise_interval
    try:
        interval = limits(confidence)
    except (TypeError, ValueError) as error:
        return Verdict(text, CANNOT_TELL, None, str(error))
    meets = {compared(interval.lower, bound), compared(interval.upper, bound)}
    answer = PASS if meets == {True} else FAIL if meets == {False} else CANNOT_TELL
    return Verdict(text, answer, interval, interval.note)
