"""What is public of a page, and what follows from what was released."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from dp_metrics.inputs.options import Relation
from dp_metrics.page.page_numbers import numbers_of
from dp_metrics.page.page_plan import EvaluationPlan, PageRelease
from dp_metrics.page.requirements import Verdicts, checked
from dp_metrics.release.released import CONFIDENCE, Number


class PageFacts:
    """The released numbers of an evaluation, and what is public about them.

    Parameters
    ----------
    evaluated : PageRelease
        What was released.
    """

    def __init__(self, evaluated: PageRelease) -> None:
        self.evaluated = evaluated
        self.budget: dict[str, float] | None = None

    @property
    def plan(self) -> EvaluationPlan:
        """How epsilon was divided, and what was left out."""
        return self.evaluated.plan

    @property
    def released(self) -> Mapping[str, Any]:
        """What was released, by the names of the plan."""
        return self.evaluated.released

    @property
    def epsilon(self) -> float:
        """What all of it cost."""
        return float(self.evaluated.public.epsilon)

    @property
    def relation(self) -> str:
        """The neighbouring relation of the promise: within groups, where the sizes of these are public."""
        public = self.evaluated.public
        return (public.relation if public.sizes is None else Relation.WITHIN_GROUPS).value

    @property
    def n(self) -> int | None:
        """The number of records, where it is public."""
        return self.evaluated.public.shape.n

    @property
    def most_records(self) -> int:
        """How many records one person has at most, who is protected with all of them."""
        return self.evaluated.public.shape.most_records

    @property
    def is_seeded(self) -> bool:
        """Whether the noise can be drawn again, so that nothing is private."""
        return all(result.deployment is None for result in self.evaluated.results)

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """Whether the requirements that were stated before the spend are met; None where there are none."""
        asked = self.evaluated.setting.requirements
        return checked(self.numbers, asked, about="people", confidence=CONFIDENCE) if asked else None

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """The numbers by name."""
        return {one.name: one for one in numbers_of(self.evaluated)}
