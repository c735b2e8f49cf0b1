"""Answers of releases, as JSON.

An answer is all that was released. What else a release offers follows from it and from the question, so it is
computed again and not stored: no function is written.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any

import numpy as np

from dp_metrics.accounting.accountant import PrivacyAccountant, keep
from dp_metrics.accounting.spends import Claim
from dp_metrics.exceptions import warn_caller
from dp_metrics.inputs.arrays import ArgumentShape, Shape
from dp_metrics.inputs.options import Relation
from dp_metrics.quantities.base import Output, Totals
from dp_metrics.release.query import Query, Terms, Together, each_query
from dp_metrics.release.result import Result
from dp_metrics.release.stored_questions import (
    DAMAGED,
    MALFORMED,
    OTHER_VERSION,
    content_of,
    decoded,
    encoded,
    written_json,
)

NOT_STORED = (
    "This release could not be stored in the budget, which shows its spend without a value: keep the result."
)
"""The note of a result that is paid for and was not stored."""

_LONGEST_SUMMARY = 100
_SHOWN_DIGITS = 6
_READERS = {
    "metric": "dp_metrics.metrics:restored_metric",
    "frame": "dp_metrics.fairness.frame:restored_frame",
    "page": "dp_metrics.page.page:restored_page",
    "search": f"{__name__}:Answer.form_alone",
    "value": f"{__name__}:Answer.form_alone",
}
"""What makes each kind of release again, of an `Answer`; imported when it is asked for."""


@dataclass(frozen=True)
class Answer:
    """What is read of a stored release.

    Parameters
    ----------
    question : mapping or None
        What was asked for, if it could be written down.
    form : object
        The public form of the records, and what else the results are made with.
    drawn : sequence of mapping
        What was drawn of each release; see `results`.
    """

    question: Mapping[str, Any] | None
    form: Any
    drawn: Sequence[Mapping[str, Any]]

    @property
    def asked(self) -> Mapping[str, Any]:
        """The question; raises ValueError where it could not be written down."""
        if self.question is None:
            raise ValueError(DAMAGED)
        return self.question

    def form_alone(self) -> Any:
        """Return the form, of a release that is nothing but its value, such as an interval."""
        return self.form

    def results(self, query: Query | Together) -> list[Result[Any]]:
        """Return the result of a query, or of each of several, that is made again of what was drawn."""
        asked = self.asked
        terms = Terms(asked["epsilon"], Relation(asked["neighboring"]), asked["mechanism"])
        queries = each_query(asked["metric"], terms, query)
        return [_result(*one[:3], drawn) for one, drawn in zip(queries, self.drawn, strict=True)]


def answer_json(kind: str, form: Any, results: Sequence[Result[Any]]) -> str | None:
    """Return what was released as JSON; None if it cannot be written."""
    try:
        content = {"kind": kind, "form": encoded(_plain_form(form)), "results": [*map(_written, results)]}
    except TypeError:
        return None
    return written_json("answer", content)


def is_kept(budget: PrivacyAccountant, claim: Claim, written: Callable[[], tuple[str | None, str]]) -> bool:
    """Store an answer and its short form, and return whether that could be done: it never raises.

    Nothing may lose a number that is paid for, neither a full disk nor a warning that somebody made an error.
    """
    try:
        keep(budget, claim, *written())
    except Exception:
        with suppress(Warning):
            warn_caller(NOT_STORED, UserWarning)
        return False
    return True


def search_json(best_score: float, best_params: Mapping[str, Any]) -> str | None:
    """Return what a search has found as JSON; of a parameter that cannot be written its repr."""
    params = {name: value if _can_be_written(value) else repr(value) for name, value in best_params.items()}
    return answer_json("search", {"best_score_": best_score, "best_params_": params}, [])


def _can_be_written(value: Any) -> bool:
    try:
        encoded(value)
    except TypeError:
        return False
    return True


def summary_json(value: Any) -> str:
    """Return the short form of a release that a list of them shows: its number, or a line."""
    if isinstance(value, bool | int | float):
        number = float(value)
        return json.dumps(number if np.isfinite(number) else repr(number))
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=_SHOWN_DIGITS, threshold=8)
    else:
        text = value if isinstance(value, str) else repr(value)
    line = " ".join(text.split())
    return json.dumps(line if len(line) <= _LONGEST_SUMMARY else f"{line[: _LONGEST_SUMMARY - 3]}...")


def _plain_form(form: Any) -> Any:
    """Return a form in which shapes are dictionaries."""
    if isinstance(form, Shape):
        # A list does not state its columns, and may be empty: with a private number of records nothing that
        # is released depends on them, and so does nothing that is stored.
        arguments = [
            (None if form.n is None and not one.states_columns else one.columns, one.states_columns)
            + ((one.resolution,) if form.n is not None or one.states_columns else (None,))
            for one in form.arguments
        ]
        several = {
            name: number
            for name, number in (("most_records", form.most_records), ("units", form.units))
            if number > 1
        }
        return {"arguments": [list(one) for one in arguments], "n": form.n, **several}
    if isinstance(form, Mapping):
        return {name: _plain_form(one) for name, one in form.items()}
    return form


def read_shape(written: Mapping[str, Any]) -> Shape:
    """Return the shape that a form holds."""
    usual = ArgumentShape()
    arguments = [
        ArgumentShape(columns, states, usual.resolution if resolution is None else resolution)
        for columns, states, resolution in written["arguments"]
    ]
    return Shape(tuple(arguments), written["n"], written.get("most_records", 1), written.get("units", 1))


def _written(result: Result[Any]) -> dict[str, Any]:
    """Return what was drawn, and the public totals of the records; weights and groups are not kept."""
    totals = None if result.totals is None else list(result.totals)
    return {
        "totals": encoded(totals),
        "capacity": result.capacity,
        "outputs": encoded(list(result.outputs)),
        "spend_name": result.spend_name,
        "is_repeatable": result.is_repeatable,
    }


def _result(metric: str, terms: Terms, query: Query, drawn: Mapping[str, Any]) -> Result[Any]:
    """Return a result that was written: its noises follow from the query and the totals."""
    totals, outputs, capacity = decoded(drawn["totals"]), decoded(drawn["outputs"]), drawn["capacity"]
    known = [Totals.of(1)] * len(query.quantities) if totals is None else totals
    if (totals is None) != terms.relation.private_n or not isinstance(drawn["spend_name"], str | None):
        raise ValueError(DAMAGED)
    is_sound = [isinstance(one, Output) and isinstance(one.value, float | int | tuple) for one in outputs]
    if not all(isinstance(one, Totals) for one in known) or not all(is_sound):
        raise ValueError(DAMAGED)
    noises, _ = query.noises(terms, known, capacity)
    made = query.result(metric, terms, totals, capacity, noises, outputs)
    made = replace(made, spend_name=drawn["spend_name"], is_repeatable=drawn["is_repeatable"] is True)
    _ = made.value, made.note  # whatever does not fit fails here
    return made


def restored(question: str | None, answer: str) -> Any:
    """Return a stored release, of the type that it had.

    Raises
    ------
    ValueError
        If what is stored is damaged, or of another version; nothing of it is executed.
    """
    found, reason = None, DAMAGED
    try:
        content = content_of(answer, "answer")
        asked = None if question is None else decoded(content_of(question, "question"))
        kind = content["kind"]
        if asked is not None and asked["kind"] != kind:
            raise ValueError(DAMAGED)
        reader = resolve_name(_READERS[kind])
        with np.errstate(all="ignore"):
            found = reader(Answer(asked, decoded(content["form"]), content["results"]))
    except MALFORMED as error:
        if str(error) == OTHER_VERSION:
            reason = OTHER_VERSION
    if found is None:
        raise ValueError(reason)
    return found
