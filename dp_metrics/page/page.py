"""The page: what was released of an evaluation, and what it says. Nothing here can reach a record."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.page.division import EvaluationPlan
from dp_metrics.page.numbers import Number, numbers_of
from dp_metrics.page.plan import Evaluated

__all__ = ["PrivateEvaluation"]


@own_error_state
class PrivateEvaluation:
    """The evaluation of a model: public, and made by `private_evaluate`."""

    def __init__(self, evaluated: Evaluated) -> None:
        self._evaluated, self._budget = evaluated, None

    def with_budget(self, accountant: PrivacyAccountant | None) -> Self:
        if accountant is not None:
            self._budget = {"spent": accountant.spent, "remaining": accountant.remaining}
        return self

    @property
    def plan(self) -> EvaluationPlan:
        """How epsilon was divided, and what was left out."""
        return self._evaluated.plan

    @cached_property
    def numbers(self) -> dict[str, Number]:
        return {one.name: one for one in numbers_of(self._evaluated)}

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]
