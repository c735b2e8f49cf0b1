"""What is public of a page, and what follows from what was released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from dp_metrics.inputs.options import Relation
from dp_metrics.page.page_numbers import numbers_of
from dp_metrics.page.page_plan import EvaluationPlan, PageForm
from dp_metrics.page.requirements import Verdicts, checked
from dp_metrics.release.released import CONFIDENCE, Number
from dp_metrics.release.result import Result


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
    """

    public: PageForm
    plan: EvaluationPlan
    released: Mapping[str, Any]
    results: Sequence[Result[Any]]
    released_at: datetime | None = None
    budget: dict[str, float] | None = field(default=None, init=False)

    @property
    def epsilon(self) -> float:
        """What all of it cost."""
        return float(self.public.epsilon)

    @property
    def relation(self) -> str:
        """The neighbouring relation of the promise: within groups, where the sizes of these are public."""
        relation = self.public.relation if self.public.sizes is None else Relation.WITHIN_GROUPS
        return relation.value

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
        return {one.name: one for one in numbers_of(self.public.setting, self.released)}
