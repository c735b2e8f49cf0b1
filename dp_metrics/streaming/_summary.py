"""A summary: what a query has to know of records that come in pieces, in little memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._html import HtmlRepr
from dp_metrics.inputs.arrays import ArgumentShape, Records, Shape
from dp_metrics.inputs.floats import own_error_state
from dp_metrics.inputs.options import Relation, as_whole
from dp_metrics.inputs.readers import NO_WEIGHT
from dp_metrics.metrics import METRICS, Metric
from dp_metrics.quantities.base import Totals
from dp_metrics.release.query import Query, Source
from dp_metrics.release.release import Release
from dp_metrics.release.result import Result
from dp_metrics.release.stored_questions import Call, as_plain, public_totals
from dp_metrics.release.terms import Terms

R = TypeVar("R")

CAPACITY = 2048
"""Ranks that a summary keeps unless it is told otherwise."""

_EXACT = 1 << 53
_MANY_RECORDS = 1 << 40  # no summary will have more
_OPEN = (
    "The options of the summary leave open what its records are like, or some chunk was empty and of another "
    "type or number of columns than the others. With neighboring='add_or_remove_one' a release must not "
    "depend on whether there are records: pass labels=[...], and arrays of one type; for probabilities that "
    "are not float64 also a small max_loss."
)
_UNLIKE = "All records must have the same number of outputs or columns, and probabilities one type."


@own_error_state
class Summary(HtmlRepr):
    """Private data: what the query of a metric has to know of its records, in little memory.

    Parameters
    ----------
    metric : Metric
        Its query has parts that merge: means of losses, variances, counts and sums by bin.
    options : mapping
        Its public options.
    capacity : int
        Public number of ranks to keep of each part.

    Raises
    ------
    ValueError
        If the capacity is no positive integer.
    """

    def __init_subclass__(cls) -> None:
        own_error_state(cls)

    def __init__(self, metric: Metric, options: Mapping[str, Any], capacity: int = CAPACITY) -> None:
        ranks = as_whole(capacity)
        if ranks is None or ranks < 1:
            raise ValueError("capacity must be a positive integer.")
        self._name, self._options, self._capacity = metric.name, dict(options), ranks
        self._expected: Query | None = (
            None  # of the form that was stated before there were chunks, if one was
        )
        self._query: Query | None = None  # of the form that chunks have stated
        self._stats: list[Any] | None = None
        self._form: tuple[int, float] | None = None  # columns and resolution, as the first chunk stated them
        self._is_open = False  # true: a chunk without records has another form than the others
        self._is_weighted = False  # true: a chunk had weights, were they all 1

    @classmethod
    def for_release(cls, metric: Metric, options: Mapping[str, Any], shape: Shape, release: Release) -> Self:
        """Return an empty summary of records of a form that keeps the ranks which a release uses at most.

        Raises
        ------
        ValueError
            If an option is invalid, or the release is bound to be refused: reading would be in vain.
        """
        query = metric.planned(shape, options)
        many = [part.plain(_MANY_RECORDS) for part in query.quantities]
        noises, _ = replace(query, unstated=None).noises(release.terms, many, CAPACITY)
        return cls(metric, options, max([CAPACITY, *(noise.ranks for noise in noises)])).expecting(shape)

    @property
    def capacity(self) -> int:
        """Public number of ranks that the summary keeps."""
        return self._capacity

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been added yet, not even an empty chunk."""
        return self._stats is None

    @property
    def _metric(self) -> Metric:
        return METRICS[self._name]

    def expecting(self, shape: Shape) -> Self:
        """Return an empty summary of the same settings, to which only records of this form may be added."""
        empty = copy(self)
        empty._expected, empty._form = replace(empty._planned(shape), unstated=None), _form_of(shape)
        empty._query = empty._stats = None
        return empty

    def is_like(self, expected: Self) -> bool:
        """Return whether the records have the form that the other one expects."""
        mine, other = self._query, expected._expected
        return mine is not None and other is not None and mine.merges_with(other)

    def _planned(self, shape: Shape) -> Query:
        """Return the query of records of a form, or raise if an option is invalid."""
        return self._metric.planned(shape, self._options)

    def update(self, *data: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of records; if it is invalid, the summary is as it was before."""
        shape, records = Records.of(data, relation=Relation.ADD_OR_REMOVE_ONE, sample_weight=sample_weight)
        query = self._planned(shape)
        stats = self._stats_of(query, records)
        form = _form_of(shape) if shape.states_columns or stats[0].totals.n > 0 else None
        added = self._add(replace(query, unstated=None), stats, form, is_open=False)
        self._is_weighted |= sample_weight is not None
        return added

    def _stats_of(self, query: Query, records: Records) -> list[Any]:
        """Return what has to be known of records that will not be looked at again."""
        with np.errstate(all="ignore"):
            checked = query.reader(records)
            return [
                one.stats(checked, one.totals(checked), self._capacity, forget=True)
                for one in query.quantities
            ]

    def _add(self, query: Query, stats: list[Any], form: tuple[int, float] | None, *, is_open: bool) -> Self:
        """Add what is known of a chunk; one without records is no reason to fail, whatever its form."""
        had, are_stated, n = self._stats, None not in (form, self._form), stats[0].totals.n
        is_other = are_stated and self._query is not None and not query.merges_with(self._query)
        if had is not None and had[0].totals.n and n:
            if is_other:
                raise ValueError(_UNLIKE)
            self._stats = [mine.merge(other) for mine, other in zip(had, stats, strict=True)]
        elif had is None or n or self._form is None:
            self._query, self._stats, self._form = query, stats, form or self._form
        self._is_open |= is_open or is_other
        return self

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
            If the two do not fit together; it says what differs.
        """
        if other is self:
            raise ValueError(
                "A summary cannot be merged with itself: each record would count twice. Merge another one."
            )
        here = {"type": type(self).__name__, **self._settings()}
        there = {"type": type(other).__name__, **(other._settings() if type(other) is type(self) else {})}
        for name in {**here, **there}:
            if here.get(name) != there.get(name):
                raise ValueError(
                    "Summaries merge only with the same type, metric, options and capacity: "
                    f"{name} is {here.get(name, 'not given')} here and {there.get(name, 'not given')} there."
                )
        merged = copy(self)  # what is known never changes
        merged._is_weighted |= other._is_weighted
        if other._query is None or other._stats is None:
            return merged
        return merged._add(other._query, other._stats, other._form, is_open=other._is_open)

    def _settings(self) -> dict[str, str]:
        """Return what must be the same in summaries that merge, as it is written."""
        public = {"metric": self._name, "capacity": self._capacity, **self._options}
        return {name: json.dumps(value, default=partial(plain, name=name)) for name, value in public.items()}

    def _records(self) -> tuple[Query, list[Any]]:
        """Return the query and the stats of all records; without one, the query is that of no chunk."""
        if self._query is not None and self._stats is not None and self._stats[0].totals.n:
            return self._query, self._stats
        query = self._before_chunks()
        return query, self._stats_of(query, Records.none(len(self._metric.data)))

    def _before_chunks(self) -> Query:
        """Return the query that follows from what is stated before there are chunks, as far as it does.

        Whether there is a chunk may follow from whether there is a record, so that where the number of
        records is private all are released by the ranges of this query.
        """
        if self._expected is not None:
            return self._expected
        return self._planned(Shape((ArgumentShape(None, states_columns=False),) * len(self._metric.data)))

    def released_as(
        self,
        metric: Metric,
        terms: Terms,
        options: Mapping[str, Any],
        of_records: Callable[[], Mapping[str, Any]] | None = None,
    ) -> Result[Any]:
        """Release a metric of the records that are known, as a call on these terms with these options does.

        Chunks have no order, so that the totals of the records are public; or what `of_records` returns.
        """

        def read() -> tuple[Query, Sequence[Any], Any]:
            query, stats = self._of_metric(metric, options)
            return query, stats, metric.stored_form(self._stated())

        return self._run(terms, metric, read, lambda result: result, options, of_records=of_records)

    def _release(self, **arguments: Any) -> Result[Any]:
        options = {name: arguments.pop(name) for name in self._metric.options if name in arguments}
        return self.released_as(self._metric, Terms.of(**arguments), options)

    def _of_metric(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Query, Sequence[Any]]:
        """Return the query of a metric with these options, and its stats."""
        return self._records()

    def _stated(self) -> Shape:
        """Return the public form of the records, as far as the query depends on it.

        No more: lists state no form if they are empty, and whether there are records may be private.
        """
        query, _ = self._records()

        def is_enough(other: Query) -> bool:
            return replace(other, reader=query.reader, unstated=query.unstated) == query

        return self._metric.form(*(self._least_form(is_enough) or []))

    def _run(
        self,
        terms: Terms,
        metric: Metric,
        read: Callable[[], tuple[Query, Sequence[Any], Any]],
        make: Callable[[Result[Any]], R],
        options: Mapping[str, Any],
        call: Call | None = None,
        of_records: Callable[[], Mapping[str, Any]] | None = None,
    ) -> R:
        """Release what is read, as a call of the metric on these terms, and return what is made of it."""
        known, weight = Totals.of(0) if self._stats is None else self._stats[0].totals, None
        if self._is_weighted:
            weight = known.weight
        # of weights the settings need to know that there are some
        given = {**self._options, **options, "sample_weight": None if weight is None else True}
        totals = partial(public_totals, known.n, weight)
        call = replace(call or metric.call(given, {}), of_records=of_records or totals)
        release = metric.release_on(terms, given, call=call)

        def checked() -> tuple[Query, Source, Any]:
            query, stats, form = read()
            source = Source.of_stats(stats, self._capacity)
            if release.terms.relation.private_n:
                return replace(query, unstated=self._left_open()), source, form
            if source.n == 0:
                raise ValueError(
                    "Found array with 0 sample(s) while a minimum of 1 is required: update the summary first."
                )
            if weight == 0:
                raise ValueError(NO_WEIGHT)
            if not given.get("ddof", 0) < source.n:
                raise ValueError("ddof must be smaller than the number of samples.")
            return query, source, form

        return release.answer(checked, make)

    def _left_open(self) -> str | None:
        """Return why a private number of records cannot be released, or None where it can."""
        before = self._before_chunks()
        is_stated = before.unstated is None and before.ranges == (self._query or before).ranges
        return None if is_stated and not self._is_open else _OPEN

    def _least_form(self, is_enough: Callable[[Query], bool]) -> list[Any] | None:
        """Return columns and resolution as far as the query depends on them: any order gives one form."""
        if self._form is None:
            return None
        columns, resolution = self._form
        for form in ([], [columns]):
            if is_enough(self._planned(self._metric.form(*form))):
                return form
        return [columns, resolution]


def _form_of(shape: Shape) -> tuple[int, float]:
    """Return the columns and the resolution that a shape states."""
    return shape.columns(), shape.arguments[-1].resolution


def unchanged(counts: Any) -> Any:
    """Return counts as they are, for a release that keeps them all."""
    return counts


def plain(value: Any, name: str) -> Any:
    """Return a public option in types that JSON can hold."""
    value = as_plain(value)
    if isinstance(value, list):
        return [plain(item, name) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)  # 1 and 1.0 are equal options, so the bytes of merges must agree
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name} must be made of numbers, strings, lists and None.")
