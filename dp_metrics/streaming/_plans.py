"""Summaries of whatever a metric releases, of one number or several: what Dask makes of a partition."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.metrics import METRICS, Metric
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.release.release import Plan
from dp_metrics.streaming._summary import Summary
from dp_metrics.streaming.summaries import check_capacity

__all__ = ["PlanSummary"]


class Mergeable(Protocol):
    """A query about records of which only a summary is known."""

    @property
    def n(self) -> int:
        """Number of records."""
        ...

    def merge(self, other: Any) -> Any:
        """Return the query about the records of both."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class _Known:
    """What the queries of one plan need to know of the same records."""

    queries: tuple[Mergeable, ...]

    @property
    def n(self) -> int:
        """Number of records."""
        return self.queries[0].n

    @property
    def weight(self) -> int | None:
        """Public total weight of the records, if there is one."""
        weight: int | None = getattr(getattr(self.queries[0], "aggregate", None), "weight", None)
        return weight

    def merge(self, other: Self) -> Self:
        """Return what is known of the records of both."""
        return type(self)(tuple(a.merge(b) for a, b in zip(self.queries, other.queries, strict=True)))


class PlanSummary(Summary):
    """Private data: what every query of a metric needs to know of the records, in little memory.

    Those that merge are copies of one empty summary. They are not written as bytes: what is to be kept is a
    `LossSummary`, or another one for a single query.

    Parameters
    ----------
    metric : Metric
        Its queries have a `summary`: means of losses, variances, counts and sums by bin.
    capacity : int
        Public number of ranks to keep for each mean and variance.
    options : mapping
        Public options of the metric.
    """

    def __init__(self, metric: Metric, capacity: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._name, self._capacity = metric.name, check_capacity(capacity)
        self._options = dict(options)

    def update(self, *data: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of records, which may be empty."""
        options = (
            self._options if sample_weight is None else {**self._options, "sample_weight": sample_weight}
        )
        plan = METRICS[self._name].planned(data, options, private_n=True)
        queries: Any = plan.queries
        facts = {
            "columns": [np.shape(array)[1:] for array in data],
            # the cap of a log loss depends on the type of the probabilities
            "caps": [query.record_loss.cap for query in queries if isinstance(query, MeanLoss)],
        }
        known = _Known(tuple(query.summary(self._capacity) for query in queries))
        return self._add(known, facts, is_open=plan.unstated is not None)

    def _planned(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
        # results follow from what is released as they do for no records at all
        no_records = [np.empty((0, *columns)) for columns in self._facts["columns"]]
        plan = metric.planned(no_records, self._options, private_n=True)
        return replace(plan, queries=self._known().queries), dict(options)

    def _settings(self) -> dict[str, Any]:
        return {"metric": self._name, "capacity": self._capacity}
