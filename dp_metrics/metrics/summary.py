"""A summary: what a metric has to know of records that come in pieces, in little memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs import arrays
from dp_metrics.inputs.arrays import ArgumentShape, Records, Shape
from dp_metrics.inputs.options import NEIGHBORING, ByName, Relation, check_count, own_error_state
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import METRICS, Metric, row_of
from dp_metrics.metrics._settings import shares_docstring
from dp_metrics.quantities.base import Totals
from dp_metrics.release.query import Query, Source, Terms
from dp_metrics.release.result import AnyResult, Result, set_result
from dp_metrics.release.stored import SETTINGS, WEIGHTS, as_plain, public_totals

CAPACITY = 2048
"""Ranks that a summary keeps unless it is told otherwise."""

_OPEN = (
    "The options of the summary leave open what its records are like, or some chunk was empty and of another "
    "type or number of columns than the others. With neighboring='add_or_remove_one' a release must not "
    "depend on whether there are records: pass labels=[...], and arrays of one type; for probabilities that "
    "are not float64 also a small max_loss. What is released of each of several outputs only a call tells."
)
_UNGROUPED = "its release is about records, not persons"
_UNLIKE_COLLECTION = (
    "Each chunk must have as many columns as its collection states, and probabilities the "
    "same type: tell Dask the type by meta= or dtype=, or convert them with astype."
)
_UNLIKE = "All records must have the same number of outputs or columns, and probabilities one type."


@own_error_state
class Summary:
    """Private data: all that a metric has to know of its records, in little memory.

    Records come in chunks, in any order, or are summarised on different machines and merged: a release is the
    same, to the bit, as from one call of the metric with all of them.

    Parameters
    ----------
    metric : callable or str
        The metric to release: `private_mse`, or its name such as "mse", or any other of this package but
        `private_quantile`, `private_median_absolute_error` and `private_roc_auc_score`, which compare records
        with each other.
    epsilon : float or None, default=None
        The smallest epsilon of a release, from which the capacity follows. None: the usual capacity, which
        serves epsilon from 0.09 on for a mean of losses, and from 0.06 on for a variance.
    capacity : int or None, default=None
        Public number of ranks to keep, in the place of `epsilon`. None: 2,048, or what `epsilon` needs.
    **options
        Public options of the metric, such as bounds, max_loss or labels, or max_records. A release with
        neighboring="add_or_remove_one" needs `labels`, if the metric takes them, and equal_groups=True needs
        `max_records`, for a chunk does not tell what others hold.

    Raises
    ------
    TypeError, ValueError
        If the metric cannot be summarised, or an option is invalid.

    See Also
    --------
    ReleasedConfusion.of : All metrics of labels, of one release of a confusion matrix.
    ReleasedScores.of : All curves and areas, of one release of a table of scores.

    Notes
    -----
    A summary holds the largest losses, or the most extreme values, themselves. It is as sensitive as the
    records, pickled too: keep it where they are kept, and publish only what `release` returns. The guarantee
    is that of the metric, and what it costs is epsilon for each release.

    Below what the capacity serves a release warns, and stays as private; but there is a cliff: from a half or
    a third of that epsilon down, releases are near 0 whatever the data. The warning says how many ranks are
    needed. A variance of more records than the capacity, or of a private number of them, is released by
    `Hazard` where the metric in memory takes two stages: ``mechanism="hazard"`` gives both the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import Summary, private_mae
    >>> summary = Summary(private_mae)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(10):  # batches of a data loader
    ...     y = rng.normal(size=1000)
    ...     summary = summary.update(y, y + 1)
    >>> 0.9 < summary.release(epsilon=1.0) < 1.1  # exactly 1
    True
    >>> first, second = Summary("variance").update(range(500)), Summary("variance").update(range(500, 1000))
    >>> 60_000 < first.merge(second).release(epsilon=2.0) < 120_000  # exactly 83,333.25
    True
    """

    def __init__(
        self, metric: Any, *, epsilon: float | None = None, capacity: int | None = None, **options: Any
    ) -> None:
        row, fixed = row_of(metric)
        if not row.usual.merges:
            raise TypeError(
                f"{row.name} has no summary, as it compares each record with the others: pass all records "
                "to the metric, in memory."
            )
        options = {**fixed, **options}
        for name in options:
            if name in SETTINGS | {*WEIGHTS}:
                raise TypeError(
                    f"{name} is no option of a summary: pass it to `update` or `release`, if they take it."
                )
            if name not in row.options:
                raise TypeError(f"{row.name}() got an unexpected keyword argument {name!r}.")
        self._name, self._options = row.name, options
        self._capacity = CAPACITY if capacity is None else check_count(capacity, "capacity")
        self._expected: Query | None = None  # of a form that was stated before there were chunks
        self._query: Query | None = None  # of the form that chunks have stated
        self._stats: list[Any] = []  # of the records of all chunks; none before the first chunk
        self._form: tuple[int, float] | None = None  # columns and resolution, as the first chunk stated them
        self._is_open = False  # true: a chunk without records has another form than the others
        self._is_weighted = False  # true: a chunk had weights, were they all 1
        self._persons: frozenset[Any] | None = None  # whose the records are; None: nobody told
        arrays.asked_of_persons({**options, "groups": True})
        if options.get("equal_groups") and options.get("max_records") is None:
            raise ValueError("equal_groups=True of a summary needs max_records, the same for all chunks.")
        usual = self._before_chunks()  # raises for what is wrong with an option
        if epsilon is not None and capacity is not None:
            raise ValueError("Pass epsilon, from which the capacity follows, or capacity, and not both.")
        for relation in NEIGHBORING if epsilon is not None else ():
            self._serve(usual, Terms.of(epsilon=epsilon, neighboring=relation))

    def __repr__(self) -> str:
        options = "".join(f", {name}={as_plain(value)!r}" for name, value in self._options.items())
        return f"Summary({self._name}, capacity={self._capacity}{options})"

    @property
    def capacity(self) -> int:
        """Public number of ranks that the summary keeps."""
        return self._capacity

    @property
    def _metric(self) -> Metric:
        return METRICS[self._name]

    @property
    def _totals(self) -> Totals:
        return self._stats[0].totals if self._stats else Totals.of(0)

    def expecting(self, shape: Shape, terms: Terms | None = None) -> Self:
        """Return an empty summary of records of this form, which keeps the ranks that terms may use."""
        empty = type(self)(self._name, capacity=self._capacity, **self._options)
        empty._expected, empty._form = replace(self._planned(shape), unstated=None), _form_of(shape)
        if terms is not None:
            empty._serve(empty._expected, terms)
        return empty

    def _serve(self, query: Query, terms: Terms) -> None:
        """Keep as many ranks as a release on these terms uses at most."""
        self._capacity = max(self._capacity, query.most_ranks(terms, CAPACITY))

    def _planned(self, shape: Shape) -> Query:
        """Return the query of records of a form, or raise if an option is invalid."""
        return self._metric.planned(shape, self._options)

    def update(
        self, *data: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Add a chunk of records, or all chunks of Dask collections.

        Parameters
        ----------
        *data : array-like
            What the metric takes, such as y_true and y_pred; a chunk may be empty.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Public, non-negative weights. Records of chunks without them have the weight 1.
        groups : array-like of shape (n_samples,) or None, default=None
            Public label of the person of each record; for all chunks or for none. All records of a person
            have to be in one chunk: the summary keeps the labels, and refuses them in another one.

        Returns
        -------
        Summary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid, as in the metric; the summary is as it was before.
        """
        names = self._metric.data
        if len(data) != len(names):
            raise TypeError(f"Pass {' and '.join(names)} for each chunk, as {self._name} takes them.")
        named = dict(zip(names, data, strict=True))
        of_each = {"sample_weight": sample_weight, "groups": groups}
        named |= {name: value for name, value in of_each.items() if value is not None}
        for name in sorted(named.keys() - {*names, *self._metric.options}):
            raise ValueError(f"{self._name} takes no {name}: {self._metric.refused.get(name, _UNGROUPED)}.")
        if any(map(arrays.is_collection, named.values())):
            from dp_metrics.metrics.dask_collections import check_collections, summarised

            check_collections(named)
            self.__dict__.update(vars(self.merge(summarised(self, named))))
            return self
        shape, records = self._metric.records(
            data, {**self._options, **of_each}, Relation.ADD_OR_REMOVE_ONE, is_all=False
        )
        query = self._planned(shape)
        stats = self._stats_of(query, records)
        if self._expected is not None and not query.merges_with(self._expected):
            raise ValueError(_UNLIKE_COLLECTION)
        chunk = copy(self)
        chunk._query, chunk._stats, chunk._is_open = replace(query, unstated=None), stats, False
        chunk._form = _form_of(shape) if shape.states_columns or chunk._totals.n > 0 else None
        chunk._is_weighted = sample_weight is not None
        # valid labels, as the stats have been made of them
        chunk._persons = None if groups is None else arrays.persons_of(groups)
        self.__dict__.update(vars(self._with(chunk)))
        return self

    def _persons_with(self, other: Self) -> frozenset[Any] | None:
        """Return the persons of this summary and of another one.

        Raises
        ------
        ValueError
            If a person is in both, or only one of them tells whose its records are.
        """
        here, there = self._persons, other._persons
        if not self._totals.n:
            return there
        if not other._totals.n:
            return here
        if (here is None) != (there is None):
            raise ValueError("Pass groups for all chunks, or for none.")
        if here is None or there is None:
            return None
        if not there.isdisjoint(here):
            raise ValueError(
                "Some person has records in two chunks, and would count as two: sort the records by person, "
                "and keep all of one in one chunk."
            )
        arrays.check_sort_of_ids(there | here)
        return there | here

    def _stats_of(self, query: Query, records: Records) -> list[Any]:
        """Return what has to be known of records that will not be looked at again."""
        checked = query.checked(records)
        return [
            one.stats(checked, one.totals(checked), self._capacity, forget=True) for one in query.quantities
        ]

    def _with(self, other: Self) -> Self:
        """Return the summary of the records of both; one without records is no reason to fail.

        What is known never changes, so that a summary stays as it is where another one does not fit.
        """
        merged = copy(self)
        merged._is_weighted |= other._is_weighted
        if other._query is None:
            return merged
        merged._persons = self._persons_with(other)
        had, new, n = self._query, other._query, other._totals.n
        is_stated = None not in (self._form, other._form)
        is_other = is_stated and had is not None and not new.merges_with(had)
        if had is not None and self._totals.n and n:
            if is_other:
                raise ValueError(_UNLIKE)
            merged._stats = [one.merge(more) for one, more in zip(self._stats, other._stats, strict=True)]
            merged._query = replace(had, most_records=max(had.most_records, new.most_records))
        elif had is None or n or self._form is None:
            merged._query, merged._stats, merged._form = new, other._stats, other._form or self._form
        merged._is_open |= other._is_open or is_other
        return merged

    def merge(self, other: Any) -> Self:
        """Return the summary of the records of both, which must be different ones.

        Any order and nesting of merges gives the same bits.

        Parameters
        ----------
        other : Summary
            Of the same metric, options and capacity.

        Returns
        -------
        Summary
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
        here, there = self._settings(), other._settings() if isinstance(other, Summary) else {}
        for name in {**here, **there}:
            mine, theirs = (one.get(name, "not given") for one in (here, there))
            if repr(mine) != repr(theirs):  # 0 is not False, and NaN is no other option than NaN
                raise ValueError(
                    "Summaries merge only with the same metric, options and capacity: "
                    f"{name} is {mine} here and {theirs} there."
                )
        return self._with(other)

    def _settings(self) -> dict[str, Any]:
        """Return what must be the same in summaries that merge."""
        options = {name: as_plain(value) for name, value in sorted(self._options.items())}
        return {"metric": self._name, "capacity": self._capacity, **options}

    @shares_docstring(limit="give the summary `bounds`, for example")
    def release(
        self,
        epsilon: float,
        *,
        neighboring: str = "replace_one",
        mechanism: str | Mechanism | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        spend_name: str | None = None,
    ) -> Any:
        """Release the metric of all records with epsilon-differential privacy.

        Parameters
        ----------
        mechanism : str, mechanism object or None, default=None
            None: what the metric takes by default.

        Returns
        -------
        float, ndarray, dict, tuple or str
            The metric, as from one call of it.

        Raises
        ------
        ValueError, TypeError
            If an option is invalid, or if the accountant counts releases under another neighbouring relation.
        PrivacyBudgetError
            If the accountant has less than epsilon left; nothing is drawn.

        Warns
        -----
        SeededReleaseWarning
            If `random_state` is given.
        UserWarning
            If the capacity is too small for the accuracy that is possible at this epsilon.
        """
        return self._release(
            epsilon=epsilon,
            neighboring=neighboring,
            mechanism=mechanism,
            accountant=accountant,
            random_state=random_state,
            spend_name=spend_name,
        ).value

    def _release(self, mechanism: Any = None, **settings: Any) -> AnyResult:
        if mechanism is not None and self._metric.mechanism is None:
            raise TypeError(f"{self._name} takes no mechanism: it has noise of its own.")
        return self.released(Terms.of(mechanism=mechanism or self._metric.mechanism, **settings))

    def released(self, terms: Terms, of_records: Callable[[], ByName] | None = None) -> Result[Any]:
        """Release the metric of the records that are known on these terms.

        Chunks have no order, so that the totals of the records are public; or what `of_records` returns.
        """
        metric, known = self._metric, self._totals
        weight = known.weight if self._is_weighted else None
        # of weights and persons the settings need to know that there are some
        given = {**self._options, "sample_weight": self._is_weighted or None}
        given["groups"] = None if self._persons is None else True
        arrays.asked_of_persons(given)
        persons = None if self._persons is None else len(self._persons)
        totals = partial(public_totals, known.n, weight, persons)
        release = metric.release_on(terms, given, of_records=of_records or totals)

        def checked() -> tuple[Query, Source, Any]:
            query, stats = self._records()
            source, form = Source.of_stats(stats, self._capacity), {"shape": self._stated(query)}
            if release.terms.relation.private_n:
                return replace(query, unstated=self._left_open()), source, form
            if source.n == 0:
                raise ValueError(
                    "Found array with 0 sample(s) while a minimum of 1 is required: there is no record yet."
                )
            if weight == 0:
                raise ValueError(arrays.NO_WEIGHT)
            if not self._options.get("ddof", 0) < source.n:
                raise ValueError("ddof must be smaller than the number of samples.")
            return query, source, form

        return release.answer(checked, lambda result: result)

    def _records(self) -> tuple[Query, list[Any]]:
        """Return the query and the stats of all records; without one, the query is that of no chunk."""
        if self._query is not None and self._totals.n:
            return self._query, self._stats
        query = self._before_chunks()
        _, no_records = Records.of([[]] * len(self._metric.data), relation=Relation.ADD_OR_REMOVE_ONE)
        return query, self._stats_of(query, no_records)

    def _before_chunks(self) -> Query:
        """Return the query that follows from what is stated before there are chunks, as far as it does.

        Whether there is a chunk may follow from whether there is a record, so that where the number of
        records is private all are released by the ranges of this query.
        """
        if self._expected is not None:
            return self._expected
        query = self._planned(Shape((ArgumentShape(None, states_columns=False),) * len(self._metric.data)))
        # one output is the same query as no chunk, and several outputs have other ranges
        return replace(query, unstated=None) if "multioutput" in self._metric.options else query

    def _left_open(self) -> str | None:
        """Return why a private number of records cannot be released, or None where it can."""
        before = self._before_chunks()
        is_stated = before.unstated is None and before.ranges == (self._query or before).ranges
        return None if is_stated and not self._is_open else _OPEN

    def _stated(self, query: Query) -> Shape:
        """Return the public form of the records, as far as the query depends on it.

        No more: lists state no form if they are empty, and whether there are records may be private; and any
        order of the chunks gives one form.
        """
        public: Any = {"most_records": query.most_records, "units": query.quantities[0].units}
        known: tuple[Any, ...] = self._form or ()
        *fewer, all_known = (replace(self._metric.form(*form), **public) for form in ((), known[:1], known))

        def is_enough(shape: Shape) -> bool:
            other = self._planned(shape)
            return replace(other, reader=query.reader, unstated=query.unstated) == query

        return next(filter(is_enough, fewer), all_known)


set_result(Summary.release, Summary._release)


@own_error_state
def released_from_collections(metric: Metric, data: ByName, options: ByName, terms: Terms) -> AnyResult:
    """Release a metric of Dask collections: what a call of its function does with some.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or records cannot be released from collections.
    """
    from dp_metrics.metrics.dask_collections import check_collections, summarised, totals_of

    public = {name: value for name, value in options.items() if name not in WEIGHTS}
    of_each = {name: options[name] for name in WEIGHTS if options.get(name) is not None}
    collections = {**data, **of_each}
    summary = Summary(metric.function, **public)
    check_collections(collections)
    totals = cache(partial(totals_of, data[metric.data[0]], **of_each))
    release = metric.release_on(terms, options, of_records=totals)
    if (stored := release.stored()) is not None:
        return stored
    # of all records, also of those that max_records leaves out of the summary
    return summarised(summary, collections, terms).released(terms, totals)


def _form_of(shape: Shape) -> tuple[int, float]:
    """Return the columns and the resolution that a shape states."""
    return shape.columns(), shape.arguments[-1].resolution
