"""What all summaries share: chunks are added, summaries merged, written and read, and released."""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dp_metrics.inputs.error_state import own_error_state
from dp_metrics.inputs.options import NO_WEIGHT
from dp_metrics.mechanisms._base import Limits
from dp_metrics.metrics import Metric
from dp_metrics.release.noise import Noise
from dp_metrics.release.queries.query import Query
from dp_metrics.release.release import Plan
from dp_metrics.release.released import Released
from dp_metrics.release.result import PrivateResult
from dp_metrics.streaming._format import INCONSISTENT, MALFORMED, pack, unpack

__all__ = ["Summary", "TableSummary", "WrittenSummary", "plain", "unchanged"]

_EXACT = 1 << 53
_OPEN = (
    "Some chunk was a list, which does not state its number of columns, or was empty and of "
    "another type or number of columns than the others. With neighboring='add_or_remove_one' "
    "a release must not depend on whether there are records: pass labels=[...], and arrays "
    "of one type."
)


@own_error_state
class Summary(ABC):
    """What all kinds of summary share: public settings, and a private aggregate."""

    def __init_subclass__(cls) -> None:
        own_error_state(cls)

    def __init__(self) -> None:
        self._aggregate: Any = None
        self._facts: dict[str, Any] = {}  # public, and the same for all chunks that state them
        self._is_open = False  # true: the public form of a chunk leaves open what a record would be
        self._prepared: Any = None  # the query about the present aggregate, which remembers its output bounds

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been added yet, not even an empty chunk."""
        return self._aggregate is None

    def like(self) -> Self:
        """Return an empty summary with the same settings."""
        other = copy(self)
        other._aggregate, other._facts, other._prepared = None, {}, None
        other._is_open = False
        return other

    def is_like(self, other: Self) -> bool:
        """Return whether the records of both have the same public columns and types."""
        return self._facts == other._facts

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what must be the same in summaries that merge, in types of JSON."""

    def _known(self) -> Any:
        if self._aggregate is None:
            raise ValueError("The summary is empty: update it with data first.")
        return self._aggregate

    def merge(self, other: Self) -> Self:
        """Return the summary of the records of both, which must be different ones.

        Any order and nesting of merges gives the same bits.

        Parameters
        ----------
        other : summary
            Of the same type, metric, options and capacity.

        Returns
        -------
        summary
            A new one.

        Raises
        ------
        ValueError
            If the two do not fit together.
        """
        if other is self:
            raise ValueError("A summary cannot be merged with itself: each record would count twice.")
        if type(other) is not type(self) or json.dumps(other._settings()) != json.dumps(self._settings()):
            raise ValueError("Summaries merge only with the same type, metric, options and capacity.")
        merged = copy(self)  # aggregates never change
        if other._aggregate is None:
            return merged
        return merged._add(other._aggregate, other._facts, is_open=other._is_open)

    def _add(self, aggregate: Any, facts: dict[str, Any], *, is_open: bool = False) -> Self:
        """Add the aggregate of a chunk; where the chunk has no records, other facts are no reason to fail."""
        known = self._aggregate
        stated = facts.keys() & self._facts.keys()
        agrees = all(facts[name] == self._facts[name] for name in stated)
        if known is not None and known.n and aggregate.n:
            self._merged(aggregate, facts)
        elif known is None or aggregate.n:
            self._aggregate, self._facts, self._prepared = aggregate, self._facts | facts, None
        else:
            self._facts = facts | self._facts
        self._is_open |= is_open or not agrees
        return self

    def _merged(self, aggregate: Any, facts: dict[str, Any]) -> Self:
        assert self._aggregate is not None
        if any(value != self._facts.get(name, value) for name, value in facts.items()):
            raise ValueError(
                "All records must have the same number of outputs or columns, and probabilities one type."
            )
        self._aggregate, self._prepared = self._aggregate.merge(aggregate), None
        return self

    @abstractmethod
    def _planned(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
        """Return the plan of a release of the records that are known, and all options of it."""

    def released_as(self, metric: Metric, arguments: Mapping[str, Any]) -> Any:
        """Release a metric of the records that are known, as a call with these arguments does."""
        settings = dict(arguments)
        return_result = settings.pop("return_result")
        own = {name: settings.pop(name) for name in metric.options if name in settings}
        plan, options = self._planned(metric, own)
        result = self.run(metric, plan, options, **settings)
        return result if return_result else result.value

    def run(self, metric: Metric, plan: Plan, options: Mapping[str, Any], **settings: Any) -> PrivateResult:
        """Release what is planned, with the settings of a call of the metric."""
        release, query = metric.settings(**settings, options=options), plan.queries[0]
        if not release.private_n:
            if query.n == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            if getattr(self._aggregate, "weight", None) == 0:
                raise ValueError(NO_WEIGHT)
            if not options.get("ddof", 0) < query.n:
                raise ValueError("ddof must be smaller than the number of samples.")
        return release.run(replace(plan, unstated=_OPEN) if self._is_open else plan)


class WrittenSummary(Summary):
    """A summary that can be written as bytes, with public settings of JSON types, and read again."""

    def to_bytes(self) -> bytes:
        """Return the summary in a versioned format that `from_bytes` reads; the bytes are private data too.

        Returns
        -------
        bytes
            Numbers only: about 16 bytes for each rank of the capacity, or 24 with weights.

        Notes
        -----
        The format is documented on the page on large data. Reading it runs no code.
        """
        settings = {"summary": type(self).__name__, **self._settings(), "facts": self._facts}
        if self._is_open:
            settings["is_open"] = True
        return pack(settings, self._known())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the summary that was turned into these bytes.

        Parameters
        ----------
        data : bytes
            From `to_bytes`.

        Raises
        ------
        TypeError, ValueError
            If the bytes are damaged, are no summary or one of another type, or are of an unknown version.
        """
        settings, aggregate = unpack(data)
        if settings.get("summary") != cls.__name__:
            raise ValueError(f"These bytes are not a {cls.__name__}.")
        summary = None
        with contextlib.suppress(*MALFORMED):
            # Merge into an empty summary of the metric: `_merged` refuses an aggregate of another schema.
            read = cls._of_nothing(settings, aggregate)._merged(aggregate, settings["facts"])
            read._is_open = settings.get("is_open", False)
            summary = read if read.to_bytes() == data else None
        if summary is None:
            raise ValueError(INCONSISTENT)
        return summary

    @classmethod
    @abstractmethod
    def _of_nothing(cls, settings: dict[str, Any], aggregate: Any) -> Self:
        """Return the summary of 0 records that has these settings and is of the kind of an aggregate."""


class TableSummary(WrittenSummary):
    """A summary that holds one table of counts."""

    def run_table(
        self,
        metric: Metric,
        query: Query,
        reading: Callable[[Released], Any],
        shape: tuple[int, ...] | None = None,
        **settings: Any,
    ) -> tuple[PrivateResult, Any]:
        """Release the table as a call of the metric would: return its noisy counts, and a reading of them.

        With a shape the counts are the metric, in this form.
        """
        result = self.run(metric, Plan((query,), _Kept(reading, shape)), {}, **settings)
        noisy, read = result.value
        return replace(result, value=noisy), read


@dataclass(frozen=True)
class _Kept:
    """A result that is all noisy counts, whole as they are, and a reading of them.

    Parameters
    ----------
    reading : callable
        What is made of them; of public things only, as all of this is kept with a result.
    shape : tuple of int or None
        The form of their limits, where they are the metric that is released.
    """

    reading: Callable[[Released], Any]
    shape: tuple[int, ...] | None

    @property
    def about(self) -> str | None:
        """What the limits are limits of, if not of the metric."""
        return "counts" if self.shape is None else None

    def __call__(self, released: Released) -> tuple[list[int], Any]:
        """Return the counts, and what is made of them."""
        return list(released.values[0]), self.reading(released)

    def limits(self, parts: Sequence[Noise], released: Released, miss: float) -> Limits:
        """Return limits of each count, which is at most the number of records, where that is public."""
        (noise,) = parts
        lower, upper, note = noise.limits(miss)
        most = np.inf if released.public_n is None else released.public_n
        low, high = (np.minimum(end, most).reshape(self.shape or -1) for end in (lower, upper))
        return Limits(low, high, note)


def unchanged(counts: Any) -> Any:
    """Return counts as they are, for a release that keeps them all."""
    return counts


def plain(value: Any, name: str) -> Any:
    """Return a public option in types that JSON can hold."""
    if hasattr(value, "tolist"):  # arrays and their scalars, an index of pandas
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(item, name) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)  # 1 and 1.0 are equal options, so the bytes of merges must agree
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name} must be made of numbers, strings, lists and None.")
