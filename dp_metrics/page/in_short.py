"""What is public of a page, and what it says first: five sentences for readers who know no statistics."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from dp_metrics.fairness.frame import GAP
from dp_metrics.inputs.options import ByName, Relation, own_error_state
from dp_metrics.metrics.scores.released_scores import OVER_EXPECTED
from dp_metrics.page import page_numbers
from dp_metrics.page.page_plan import COMPARISON, EACH_ONCE, WITHIN, EvaluationPlan, PageForm, Released
from dp_metrics.page.requirements import CANNOT_TELL, EACH, FAIL, PASS, Verdicts, checked, expanded
from dp_metrics.page.setting import LABELS, SCORES
from dp_metrics.release.released import CONFIDENCE, Number
from dp_metrics.release.result import AnyResult

SEEDED = "These numbers were drawn from a seed: they are NOT private, and nothing is promised."
"""What a page says in the place of what it promises, if the noise can be drawn again."""

QUESTIONS = ("How good?", "For whom?", "How sure?", "Which is better?", "Cost and promise?")
"""What the five sentences answer."""

_USUAL = {
    "title": "Private evaluation",
    "model_name": "the model",
    "data_description": "",
    "baseline_name": "the other model",
    "score_name": "score",
    "positive_meaning": "",
    "unit_name": ("record", "records"),
    "person_name": "person",
    "target_unit": "",
}
"""The words of a page, where the caller has none."""

_LONGEST = 600


def check_words(given: ByName) -> dict[str, Any]:
    """Return the words that were given, of those that a page may have.

    Raises
    ------
    ValueError
        If some are no text of one line, or too long.
    """
    words = {name: word for name, word in given.items() if word is not None}
    for name, word in words.items():
        several = list(word) if name == "unit_name" and isinstance(word, tuple | list) else [word]
        if not 1 <= len(several) <= 2 or not all(isinstance(one, str) and one.strip() for one in several):
            also = ', or a pair such as ("stay", "stays")' if name == "unit_name" else ""
            raise ValueError(f"{name} must be text{also}.")
        if any(len(one) > _LONGEST or not one.isprintable() for one in several):
            raise ValueError(f"{name} must be one line of at most {_LONGEST} printable characters.")
        if name == "unit_name":
            words[name] = (several[0], several[1] if len(several) == 2 else _plural(several[0]))
    return words


def _plural(noun: str) -> str:
    """Return the plural that the ending of an English noun tells; callers state any other."""
    if noun.endswith("sis"):
        return f"{noun[:-2]}es"
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


@own_error_state
@dataclass(eq=False, repr=False)
class PageFacts:
    """All that a page is made of, and what is public about it.

    Parameters
    ----------
    public : PageForm
        The options, the form of the records, and what all of it cost.
    plan : EvaluationPlan
        How epsilon was divided, and what was left out.
    released : mapping
        What was released, by the names of the plan.
    results : sequence of Result
        The same as it was drawn.
    released_at : datetime or None, default=None
        When it was released, in UTC; None of a page that was stored by an earlier version.
    budget : dict or None, default=None
        What was "spent" and "remaining" of the budget when the page was made or read again.
    is_returned : bool, default=False
        Whether a budget returned the page, which had been released before.
    """

    public: PageForm
    plan: EvaluationPlan
    released: Released
    results: Sequence[AnyResult]
    released_at: datetime | None = None
    budget: dict[str, float] | None = field(default=None, init=False)
    is_returned: bool = field(default=False, init=False)

    @property
    def epsilon(self) -> float:
        """What all of it cost."""
        return float(self.public.epsilon)

    @property
    def relation(self) -> str:
        """The neighbouring relation of the promise: within groups, where the sizes of these are public."""
        return (self.public.shape.relation if self.public.sizes is None else Relation.WITHIN_GROUPS).value

    @property
    def n(self) -> int | None:
        """The number of records, where it is public."""
        return self.public.shape.n

    @property
    def most_records(self) -> int:
        """How many records one person has at most, who is protected with all of them."""
        return self.public.shape.most_records

    @property
    def is_seeded(self) -> bool:
        """Whether the noise can be drawn again, so that nothing is private."""
        return all(result.deployment is None for result in self.results)

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """Whether the requirements that were stated before the spend are met; None where there are none."""
        asked = self.public.setting.requirements
        return checked(self.numbers, asked, about="people", confidence=CONFIDENCE) if asked else None

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """The numbers by name."""
        return page_numbers.numbers_of(self.public.setting, self.released)

    @property
    def header(self) -> dict[str, str]:
        """About what the page is, by name."""
        words, setting = words_of(self), self.public.setting
        facts = {"Model": words.model_name} if words.model_name != _USUAL["model_name"] else {}
        if (positive := _positive(self)) is not None:
            if SCORES in setting.columns and LABELS not in setting.columns:
                facts["Decision"] = f"positive if the {words.score_name} is {setting.threshold:.15g} or more"
            meaning = f": {words.units} {words.with_label}" if words.positive_meaning else ""
            facts["Positive label"] = f"{positive}{meaning}"
        if setting.tolerance is not None:
            facts["Tolerance"] = f"{setting.tolerance:.15g}{words.of_target}"
        facts[capital(words.units)] = "a private number" if self.n is None else f"{self.n:,}"
        facts["Protected"] = f"each {words.unit}"
        if self.most_records > 1:
            facts["Protected"] = (
                f"each {words.person_name}, with all {words.units}: {self.most_records} at most"
            )
        facts["Privacy"] = f"epsilon {in_digits(self.public.epsilon)} for this whole page"
        if self.is_seeded:
            facts |= {"Protected": "nobody", "Privacy": "none: the numbers were drawn from a seed"}
        if self.released_at is not None:
            returned = "; returned since by the budget, at no cost" if self.is_returned else ""
            facts["Released"] = f"{self.released_at:%Y-%m-%d, %H:%M} UTC{returned}"
        return facts

    @property
    def summary(self) -> list[str]:
        """Return the five sentences: how good, for whom, how sure, which is better, cost and promise."""
        return [_how_good(self), _for_whom(self), _how_sure(self), _which_is_better(self), _cost(self)]


def in_digits(epsilon: Fraction) -> str:
    """Return what a page cost as text, rounded up: no less is promised than was spent."""
    up = Context(prec=6, rounding=ROUND_CEILING)
    return f"{float(up.divide(*map(Decimal, epsilon.as_integer_ratio()))):g}"


def words_of(page: PageFacts) -> SimpleNamespace:
    """Return what a page calls things: the words of the call, or the usual ones, and what is made of them."""
    words = SimpleNamespace(**{**_USUAL, **page.public.setting.words})
    words.unit, words.units = words.unit_name
    words.with_label = f"that {words.positive_meaning}" if words.positive_meaning else "with the label"
    words.of_target = f" {words.target_unit}" if words.target_unit else ""
    # whom models are compared on: where some persons have several records, each person counts once
    words.compared = words.units if page.public.persons is None else "people"
    return words


def of_all(page: PageFacts) -> list[Number]:
    """Return the numbers of all records and of no one label."""
    return [
        one for one in page.numbers.values() if one.section == page_numbers.HOW_GOOD and one.label is None
    ]


def of_groups(page: PageFacts) -> list[Number]:
    """Return the numbers of groups, and the largest differences of these."""
    return [one for one in page.numbers.values() if one.section == page_numbers.FOR_WHOM]


def _positive(page: PageFacts) -> Any:
    """Return the positive one of two labels; None where there are targets, or more labels."""
    return page.public.positive if "recall" in page.numbers else None


def _how_good(page: PageFacts) -> str:
    words = words_of(page)
    if (positive := _positive(page)) is not None:
        meaning = words.positive_meaning or f"have the label {positive}"
        found, right = (_if_shown(page, name, times=100) for name in ("recall", "precision"))
        if found is not None and right is not None:
            return (
                f"Of 100 {words.units} that {meaning}, {words.model_name} flags {found}; of 100 that it "
                f"flags, {right} {meaning}."
            )
    if (right := _if_shown(page, "accuracy", times=100)) is not None:
        return f"Of 100 {words.units}, {words.model_name} reads {right} rightly."
    told = []
    if (median := _if_shown(page, "median absolute error", words.of_target)) is not None:
        told.append(f"half of the predictions are off by less than {median}")
    tolerance = f"within {page.public.setting.tolerance or 0:.15g}{words.of_target}"
    for name, said in ((WITHIN, tolerance), ("share too high", "too high")):
        if (share := _if_shown(page, name, times=100)) is not None:
            told.append(f"of 100 predictions {share} are {said}")
    # a mean has no limit on one side as a rule
    if not told and (mean := _if_shown(page, "mae", words.of_target)) is not None:
        told.append(f"on average predictions are off by {mean}")
    return f"{capital('; '.join(told))}." if told else _some_number(page)


def _some_number(page: PageFacts) -> str:
    """Return the first number of all records that is told, where it is none of those that lead."""
    known = [one for one in of_all(page) if one.metric not in ("selection rate", "prevalence")]
    for one in known:
        if page_numbers.shown_limits(one) is not None:
            return f"The {one.name} is {_about(one)}."
    if known:
        return "All is too noisy to tell how good the model is."
    return "Nothing was released that tells how good the model is."


def _for_whom(page: PageFacts) -> str:
    if not of_groups(page):
        if page.public.setting.has_groups:
            return "Groups of people were given, but nothing was released about them."
        return "No groups of people were given."
    rules = [one for one in page.public.setting.requirements if EACH in one]
    if rules:
        return " ".join(_kept_or_broken(page, rule) for rule in rules)
    # how many are positive tells nothing of the model
    gaps = [one for one in of_groups(page) if one.group is None and one.metric != "prevalence"]
    # the limits of all gaps hold at once
    limits = [(page_numbers.shown_limits(one), one) for one in gaps]
    sure = [(shown.lower, one) for shown, one in limits if shown is not None and shown.lower > 0]
    if not sure:
        return "No sure difference between groups; that is no proof that they are alike."
    # what is no share leads where no share differs
    _, number = max(sure, key=lambda one: (one[1].metric != OVER_EXPECTED, float(one[0])))
    of_others = {"mae": (words_of(page).of_target, 1), OVER_EXPECTED: ("", 1)}
    unit, times = of_others.get(number.metric, (" points of 100", 100))
    by = number.name.partition(GAP)[2]  # the feature, where there are several
    gap = _about(number, unit, times=times)
    return f"Groups surely differ: the largest gap in {number.metric}{by} is {gap}."


def _kept_or_broken(page: PageFacts, rule: str) -> str:
    """Return in which groups a rule about each of them is broken, kept, or neither can be told."""
    verdicts = page.verdicts
    assert verdicts is not None
    answers: dict[str, list[str]] = {FAIL: [], PASS: [], CANNOT_TELL: []}
    for name, (_, bound) in expanded(page.numbers, [rule]).items():
        if name not in verdicts:  # nothing is asked of a group that is publicly empty
            continue
        limits, range_ = verdicts[name].interval, ""
        if limits is not None:
            range_ = f" ({_about(page.numbers[name], limits=limits, apart_from=bound)})"
        answers[verdicts[name].answer].append(f"{name.partition(' in ')[2]}{range_}")
    broken, kept, unclear = answers.values()
    if not broken and not kept:
        return f'In {_groups(len(unclear))} we cannot tell whether the rule "{rule.strip()}" is kept.'
    told = [f"is broken in {', '.join(broken)}"] if broken else []
    told += [f"is kept in {_groups(len(kept))}"] if kept else []
    told += [f"in {_groups(len(unclear))} we cannot tell"] if unclear else []
    return f'The rule "{rule.strip()}" {" and ".join(told)}.'


def _groups(number: int) -> str:
    return "1 group" if number == 1 else f"{number} groups"


def _how_sure(page: PageFacts) -> str:
    words, told = words_of(page), [one for one in page.numbers.values() if page_numbers.is_told(one)]
    noisy = len(page.numbers) - len(told)
    whom, with_what = f"all {words.units} like these", "noise and chance included"
    if page.most_records > 1:
        whom, with_what = f"these {words.units} only", "noise included"
    said = (
        f"Each range is about {whom}, {with_what}, with 95 % confidence for itself: of 20 ranges about 1 may "
        "be wrong"
    )
    is_once = any(EACH_ONCE in one.name for one in told)
    if page.most_records > 1 and (is_once or COMPARISON in page.released):
        said += f"; those in which each {words.person_name} counts once are about all like these"
    elif page.most_records == 1 and (
        only := dict.fromkeys(
            _PLAIN.get(one.metric, one.metric) for one in told if page_numbers.is_of_records(one)
        )
    ):
        said += f"; but those of {' and '.join(only)} are about these {words.units} only"
    if any(one.bias for one in told):
        limit = "" if page.public.setting.bounds is not None else " may have no upper limit, and"
        said += f"; means{limit} come out too low if a few {words.units} make up much of them"
    if noisy:
        said += f"; {noisy} of {len(page.numbers)} numbers {'is' if noisy == 1 else 'are'} too noisy to tell"
    return f"{said}."


_PLAIN = {
    "median absolute error": "the median error",
    **dict.fromkeys(("mae", "mse", "rmse"), "mean errors"),
    "brier score": "the Brier score",
}
"""What the metrics are called of which ranges may be about these records only."""


def _which_is_better(page: PageFacts) -> str:
    words, found = words_of(page), page.released.get(COMPARISON)
    if found is None:
        if page.public.setting.baseline is None:
            return "No other model was given, so nothing is compared."
        return f"{capital(words.baseline_name)} was given, but nothing was released that compares the two."
    value, limits = found.estimate, found.interval
    verb, for_more, for_less = "beats", "better", "worse"
    if found.better == "B":
        verb, for_more, for_less = "loses to", "worse", "better"
        value, limits = -value, replace(limits, lower=-limits.upper, upper=-limits.lower)
    more = "about {} ({})".format(*page_numbers.written(value, limits, times=100, apart_from=0.0))
    does = f"does {for_more} for {more} more than it does {for_less} for"
    if found.better is None:
        return (
            f"Cannot tell whether {words.model_name} or {words.baseline_name} is better: no difference is "
            f"sure. Of 100 {words.compared}, {words.model_name} {does}."
        )
    model = capital(words.model_name)
    return f"{model} {verb} {words.baseline_name}: of 100 {words.compared}, it {does}."


def capital(text: str) -> str:
    """Return a text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def _cost(page: PageFacts) -> str:
    if page.budget is None:
        return promise(page)
    spent, remaining = page.budget["spent"], page.budget["remaining"]
    return promise(page, f" ({remaining:g} of {spent + remaining:g} are left)")


def promise(page: PageFacts, left: str = "") -> str:
    """Return what a page cost and promises, and what is left of the budget today."""
    words, epsilon = words_of(page), page.epsilon
    one, several = words.unit_name
    if one == words.person_name:  # who may have several records, whatever a record is called
        one, several = _USUAL["unit_name"]
    if page.is_seeded:
        return SEEDED
    rest = f"Who has k {several} among these has k times the epsilon."
    is_within = page.relation == Relation.WITHIN_GROUPS
    whose = f"your {one} or another one{' of its group' if is_within else ''} was used"
    if page.relation == Relation.ADD_OR_REMOVE_ONE:
        whose = f"your {one} was among the {several}"
    if page.most_records > 1:
        whose = f"your {several} or other ones{' of their groups' if is_within else ''} were used"
        rest = f"It holds for all {several} of one {words.person_name} together."
    right = min(math.floor(100 / (1 + math.exp(-epsilon))) + 1, 100)  # rounded up
    for_one = "" if page.most_records > 1 else f", for one {one},"
    return (
        f"The page cost epsilon {in_digits(page.public.epsilon)}{left}, and promises each "
        f"{words.person_name}{for_one} epsilon-differential privacy: who guesses from it whether {whose} is "
        f"right at most {right} of 100 times (a coin: 50). {rest}"
    )


def _if_shown(page: PageFacts, name: str, unit: str = "", **how: Any) -> str | None:
    """Return a number of a page with its range; None if it is too noisy to be told, or there is none."""
    number = page.numbers.get(name)
    if number is None or page_numbers.shown_limits(number) is None:
        return None
    return _about(number, unit, **how)


def _about(number: Number, unit: str = "", **how: Any) -> str:
    """Return a number with its range, as a page writes them."""
    told, ends = page_numbers.text_of(number, **how)
    return f"about {told}{unit} ({ends})"
