"""Releases from Dask collections: partitions become summaries where they are, and one comes to the client."""

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np

from dp_metrics.inputs.arrays import ArgumentShape, Shape, array_of, check_one_number, check_same_length
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.readers import check_sample_weight
from dp_metrics.metrics import Metric
from dp_metrics.release.result import Result
from dp_metrics.release.stored_questions import PER_RECORD, public_totals
from dp_metrics.release.terms import Terms
from dp_metrics.sensitivity.exact import exact_sum
from dp_metrics.streaming._summary import Summary

try:
    import dask
    import dask.array as da
except ImportError as error:
    raise ImportError('dp_metrics.distributed needs Dask: pip install "dp_metrics[dask]"') from error

AnySummary = TypeVar("AnySummary", bound=Summary)
Collections = dict[str, Any]  # Dask collections by the names of the arguments

_FAN_IN = 8  # summaries that one task merges
_UNLIKE = (
    "Each chunk must have as many columns as its collection states, and probabilities the "
    "same type: tell Dask the type by meta= or dtype=, or convert them with astype."
)


def released(metric: Metric, **arguments: Any) -> Result[Any]:
    """Release a metric of Dask collections.

    Parameters
    ----------
    metric : Metric
        One that summaries of bounded size tell.
    **arguments
        All arguments of the public function.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or records cannot be released from collections.
    """
    data, options, settings = metric.sorted_arguments(arguments)
    if options.pop("groups", None) is not None:
        raise ValueError(
            f"{metric.name} of Dask collections takes no groups: the records of one person may lie in "
            f"several partitions. For data in memory use dp_metrics.{metric.name}."
        )
    weights = {
        name: value for name, value in options.items() if name == "sample_weight" and value is not None
    }
    for name, value in {**data, **weights}.items():
        if not _is_collection(value):
            raise TypeError(
                f"{name} must be a dask.array or a dask.dataframe collection; for data in memory use "
                f"dp_metrics.{metric.name}."
            )
    terms = Terms.of(**settings)
    of_records = {name: value for name, value in options.items() if name not in PER_RECORD}
    totals = partial(_totals, data[metric.data[0]], **weights)
    call = replace(metric.call(of_records, {}), of_records=totals)
    release = metric.release_on(terms, options, call=call)
    if (stored := release.stored()) is not None:
        found: Result[Any] = stored
        return found
    # an option that is wrong fails here, before hours of computing
    empty = Summary.for_release(metric, of_records, _form(data.values()), release)
    if terms.accountant is not None:
        terms.accountant.require(terms.epsilon)
    return _reduced(empty, {**data, **weights}).released_as(metric, terms, options)


def summarised(summary: AnySummary, *data: Any) -> AnySummary:
    """Return the summary of all records of Dask collections, from which to release as often as one likes.

    Parameters
    ----------
    summary : ConfusionSummary, ScoreSummary, LossSummary or VarianceSummary
        An empty one, which says what to gather; it stays empty.
    *data : dask.array or dask.dataframe collections
        What its `update` takes, such as y_true and y_pred.

    Returns
    -------
    summary
        Of the same type: private data, which nothing has been released from.

    Raises
    ------
    TypeError, ValueError
        If a collection or a record is invalid, or the summary is not empty.

    Examples
    --------
    >>> import dask.array as da
    >>> from dp_metrics import ConfusionSummary
    >>> from dp_metrics.distributed import summarised
    >>> y_true, y_pred = (da.from_array([0] * 90 + [1] * 10, chunks=20) for _ in range(2))
    >>> released = summarised(ConfusionSummary(), y_true, y_pred).release(epsilon=2.0)
    >>> 0.8 < released.accuracy_score() <= 1
    True
    """
    if not summary.is_empty:
        raise ValueError("summary must be empty: merge what there is with the result.")
    collections = {f"argument {number}": array for number, array in enumerate(data, start=1)}
    for name, value in collections.items():
        if not _is_collection(value):
            raise TypeError(f"{name} must be a dask.array or a dask.dataframe collection.")
    # an option that is wrong fails here, before hours of work
    return _reduced(summary.expecting(_form(data)), collections)


def _totals(first: Any, *, sample_weight: Any = None) -> dict[str, Any]:
    """Return what is public of the records of collections; nothing but lengths and weights is computed."""
    if sample_weight is None and (length := _length(first)) is not None:
        return public_totals(length)
    [counted] = _aligned({"": first if sample_weight is None else sample_weight})
    total = dask.delayed(_length_of if sample_weight is None else _weight_of)
    lengths, weights = zip(*dask.compute(*map(total, _chunks(counted))), strict=True)
    return public_totals(sum(lengths), None if sample_weight is None else sum(weights))


def _length_of(chunk: Any) -> tuple[int, int]:
    return len(chunk), 0


def _weight_of(chunk: Any) -> tuple[int, int]:
    """Return how many public weights there are, and their sum in units of 2**-1074."""
    weights = check_sample_weight(chunk, relation=Relation.ADD_OR_REMOVE_ONE)
    assert weights is not None
    return weights.size, exact_sum(weights)


def _form(data: Iterable[Any]) -> Shape:
    """Return the public form of collections: their columns and types, as Dask states them."""
    stated = []
    for collection in data:
        if isinstance(collection, da.Array):
            dtype = collection.dtype if isinstance(collection.dtype, np.dtype) else object
            empty = np.empty((0, *collection.shape[1:]), dtype)
        else:
            empty = collection._meta  # Dask keeps an empty collection of the same columns and types here
        stated.append(ArgumentShape.of(empty, array_of(empty)))
    return Shape(tuple(stated))


def _reduced(empty: AnySummary, data: Collections) -> AnySummary:
    """Return the summary of all records of collections that belong together.

    Parameters
    ----------
    empty : summary
        One that expects a form, which each chunk must have.
    data : dict
        The collections.
    """
    chunks = zip(*map(_chunks, _aligned(data)), strict=True)
    summarise, merge = dask.delayed(_summarise), dask.delayed(_merge)
    parts = [summarise(empty, list(data), *several) for several in chunks]
    while True:
        parts = [merge(*parts[first : first + _FAN_IN]) for first in range(0, len(parts), _FAN_IN)]
        if len(parts) == 1:
            [summary] = dask.compute(parts[0])
            return summary  # type: ignore[no-any-return]


def _chunks(collection: Any) -> list[Any]:
    """Return the delayed chunks of a collection.

    Not optimised: what two collections share would be computed twice, and two frames could get different
    partitions.
    """
    delayed = collection.to_delayed(optimize_graph=False)
    return list(delayed.flat) if isinstance(delayed, np.ndarray) else list(delayed)


def _aligned(data: Collections) -> list[Any]:
    """Return collections whose partitions pair up, as far as is known without reading them."""
    first = next(iter(data.values()))
    rows = first.chunks[0] if _length(first) is not None else None
    lengths = {name: n for name, one in data.items() if (n := _length(one)) is not None}
    # the relation is none of this function's business
    check_one_number(lengths, relation=Relation.ADD_OR_REMOVE_ONE)
    aligned = []
    for collection in data.values():
        if isinstance(collection, da.Array) and collection.ndim > 1:
            collection = collection.rechunk({1: -1})
        if rows is not None and _length(collection) is not None:
            collection = collection.rechunk({0: rows})
        aligned.append(collection)
    partitions = [c.numblocks[0] if isinstance(c, da.Array) else c.npartitions for c in aligned]
    if len(set(partitions)) > 1:
        raise ValueError(
            f"{' and '.join(data)} must have the same partitions: derive them from one collection, or "
            "repartition one like the other."
        )
    return aligned


def _length(collection: Any) -> int | None:
    """Return the number of records of an array, if it is known without computing."""
    known = isinstance(collection, da.Array) and not math.isnan(collection.shape[0])
    return collection.shape[0] if known else None


def _summarise(empty: AnySummary, names: list[str], *chunks: Any) -> AnySummary | Exception:
    """Return the summary of one chunk; or what is wrong with it, as a value.

    A chunk of another type than its collection is refused, or else one record could change the type of its
    chunk, and with that the public limit of every loss. Dask writes a task that raises into its log, where a
    chunk that is part of the graph would be legible.
    """
    data = dict(zip(names, chunks, strict=True))
    weights = {name: data.pop(name) for name in names if name == "sample_weight"}
    summary = copy(empty)  # tasks in threads share it, and an update changes it
    try:
        check_same_length({**data, **weights}, relation=Relation.ADD_OR_REMOVE_ONE)
        summary.update(*data.values(), **weights)
        if not summary.is_like(empty):
            raise ValueError(_UNLIKE)
    except Exception as error:
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)  # the frames of a traceback hold the chunk
    return summary


def _merge(*parts: Any) -> Any:
    """Return the summary of the records of all parts; this is where a chunk's error is raised."""
    for part in parts:
        if isinstance(part, Exception):
            raise part
    return reduce(lambda summary, other: summary.merge(other), parts)


def _is_collection(value: Any) -> bool:
    """Return whether this is an array, a series or a data frame of Dask."""
    has_partitions = dask.is_dask_collection(value) and hasattr(value, "to_delayed")
    return has_partitions and getattr(value, "ndim", 0) > 0
