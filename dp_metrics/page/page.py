"""The page: what was released of an evaluation, and what it says. Nothing here can reach a record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from dp_metrics._html import card
from dp_metrics._packages import import_extra
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.floats import own_error_state
from dp_metrics.page.contents import Section, pictures_of, sections_of
from dp_metrics.page.numbers import Number, PageFacts
from dp_metrics.page.requirements import Verdicts, checked
from dp_metrics.release.stored.answers import answer_json, restored
from dp_metrics.release.stored.questions import Call, question_json

_SCHEMA = "dp_metrics.evaluation"
_NAME = "private_evaluate"
_COLUMNS = (
    *("name", "value", "section", "metric", "label", "group", "release", "rests_on", "note"),
    *("noise_note", "people_note", "noise_lower", "noise_upper", "people_lower", "people_upper"),
)


@own_error_state
class PrivateEvaluation(PageFacts, Mapping[str, Number]):
    """The evaluation of a model with epsilon-differential privacy: a mapping of names to numbers, and a page.

    Made by `private_evaluate`; all of it may be published. In a notebook it shows itself.

    Parameters
    ----------
    evaluated : PageRelease
        What was released.

    Attributes
    ----------
    numbers : dict of Number
        By name, such as "recall", "recall of 'spam'", "recall in 'female'" and "recall difference". A number
        has a `value`, a `note` where it is mostly noise, ``noise_interval()`` and ``population_interval()``.
    plan : EvaluationPlan
        How epsilon was divided, and what was left out.
    released : dict
        What was released, by the names of the plan: `ReleasedConfusion`, `ReleasedScores`,
        `PrivateMetricFrame`, `PrivateResult` and `Comparison`, with all that these offer for nothing.
    epsilon : float
        What all of it cost.
    budget : dict or None
        What was "spent" and "remaining" of the budget when the page was made or read again.
    """

    def with_budget(self, accountant: PrivacyAccountant | None) -> Self:
        """Note what the budget has, and return the page."""
        with suppress(OSError, ValueError):  # the file may have gone since: the page is paid for all the same
            if accountant is not None:
                self.budget = {"spent": accountant.spent, "remaining": accountant.remaining}
        return self

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        from dp_metrics.page.record import rows_of

        return rows_of(self)

    @cached_property
    def sections(self) -> list[Section]:
        """What the page says."""
        return sections_of(self)

    def __getitem__(self, name: str) -> Number:
        """Return a number by its name."""
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        shown = ", ".join(f"{one.name}={one.value:.4g}" for one in self.numbers.values())
        return f"PrivateEvaluation({shown}, epsilon={self.epsilon:g})"

    def _repr_html_(self) -> str:
        """Return the page for notebooks; without jinja2 a card of its numbers."""
        try:
            from dp_metrics.page.html import fragment

            return fragment(self, self.sections)  # an extra may be missing
        except ImportError:
            rows = [[one.name, one.value, one.note] for one in self.numbers.values()]
            return card("PrivateEvaluation", {"epsilon": self.epsilon}, ["", "released", "note"], rows)

    def check(
        self, requirements: Mapping[str, Any], *, about: str = "people", confidence: float = 0.95
    ) -> Verdicts:
        """Return whether requirements are met: pass, fail or cannot tell, from limits; it costs nothing.

        Parameters
        ----------
        requirements : mapping of str to (str, float)
            By the name of a number: ``{"recall": (">=", 0.8), "recall difference": ("<=", 0.1)}``.
        about : {"people", "records"}, default="people"
            Whether the requirement is about all people like these, or these records.
        confidence : float, default=0.95
            Least probability with which all verdicts but "cannot tell" are right; they share the rest.

        Returns
        -------
        Verdicts
            A mapping of the names to `Verdict`; its `answer` is that of all together.

        Raises
        ------
        ValueError
            If a name or a requirement is not known.
        """
        return checked(self.numbers, requirements, about=about, confidence=confidence)

    def frame(self) -> Any:
        """Return the numbers with their limits as a data frame, a row each; this imports pandas.

        Returns
        -------
        pandas.DataFrame
            The columns of ``to_json()``'s numbers, of which "name" is the index.
        """
        pd = import_extra("pandas", "report")

        rows = [
            {**row, **{f"{kind}_{end}": None if row[kind] is None else row[kind][at]
                       for kind in ("noise", "people") for at, end in enumerate(("lower", "upper"))}}
            for row in self.to_dict()["numbers"]
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=[*_COLUMNS]).set_index("name")

    def plot(self, name: str | None = None, *, ax: Any = None) -> Any:
        """Draw a picture of the page; this imports matplotlib.

        Parameters
        ----------
        name : str or None, default=None
            One of "confusion matrix", "roc", "precision recall", "calibration" and "recall by group" or the
            like; None: the first that the page has.
        ax : matplotlib Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display
            scikit-learn's display of the curve or matrix, or the Axes of bars.

        Raises
        ------
        ValueError
            If the page has no such picture.
        """
        from dp_metrics.page.pictures import drawn

        names = [one.name for one in pictures_of(self.evaluated)]
        if not names or name not in (None, *names):
            raise ValueError(f"This page has the pictures {', '.join(map(repr, names)) or 'none'}.")
        return drawn(self.evaluated, name or names[0], ax)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the page as one HTML file without network and scripts, and write it if there is a path.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write the file.

        Returns
        -------
        str
            The file.
        """
        from dp_metrics.page.html import document

        return _written(document(self, self.sections), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the page as Markdown, without pictures, and write it if there is a path."""
        from dp_metrics.page.markdown import markdown

        return _written(markdown(self.sections), path)

    def to_dict(self) -> dict[str, Any]:
        """Return all that the page says as lists, mappings, numbers and text; NaN and infinity are None."""
        from dp_metrics.page.record import as_dict

        return {"schema": _SCHEMA, "version": 1, **as_dict(self, [dict(row) for row in self._rows])}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return all that the page says as JSON, and write it if there is a path.

        `from_json` makes the page of it again. The form is that of ``evaluation.schema.json`` in the package.
        """
        evaluated = self.evaluated
        question = question_json(
            Call("page", {"page": evaluated.asked}), metric=_NAME, epsilon=evaluated.epsilon,
            neighboring=evaluated.relation.value, mechanism=None,
        )  # fmt: skip
        answer = answer_json("page", evaluated.form, evaluated.results)
        release = None if question is None or answer is None else [json.loads(question), json.loads(answer)]
        return _written(json.dumps({**self.to_dict(), "release": release}, allow_nan=False, indent=1), path)

    @classmethod
    def from_json(cls, text: str) -> PrivateEvaluation:
        """Return the page that was written as JSON.

        Raises
        ------
        ValueError
            If the text is no such page, or was damaged.
        """
        try:
            content = json.loads(text)
            question, answer = content["release"]
            budget = content["budget"]
        except (TypeError, LookupError, ValueError):
            raise ValueError(
                "This is no page that to_json wrote, or not all of it: pass its whole text."
            ) from None
        page: PrivateEvaluation = restored(json.dumps(question), json.dumps(answer))
        page.budget = budget
        return page

    @property
    def deployment(self) -> dict[str, Any] | None:
        """What the OpenDP deployment registry asks for; None where nothing can be promised."""
        from dp_metrics.page.record import deployment_of

        return deployment_of(self)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
