"""Releases from Dask collections: partitions become summaries where they are, and one comes to the client.

Summaries are merged in a tree, and any scheduler will do. A task that is lost with its worker is run again by
Dask; the budget is spent and the release is drawn once, on the client, when all data have been read. Workers
should be of one kind: the last bit of a logarithm may differ between kinds of processors.
"""

import math
from copy import copy
from functools import reduce
from typing import Any

import numpy as np

from dp_metrics.inputs import arrays
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Relation, own_error_state
from dp_metrics.release.query import Terms
from dp_metrics.release.stored import WEIGHTS, public_totals
from dp_metrics.sensitivity.exact import exact_sum

try:
    import dask
    import dask.array as da
except ImportError as error:
    raise ImportError('Dask collections need all of Dask: pip install "dp_metrics[dask]"') from error

Collections = dict[str, Any]  # Dask collections by the names of the arguments

_FAN_IN = 8  # summaries that one task merges


def summarised(summary: Any, data: Collections, terms: Terms | None = None) -> Any:
    """Return the `Summary` of all records of Dask collections, with the settings of another one.

    Parameters
    ----------
    summary : Summary
        Which metric, with which options.
    data : dict
        The collections, with those of `WEIGHTS` if there are some.
    terms : Terms or None, default=None
        Those of a release that is to follow; where its budget is too small nothing is computed.

    Raises
    ------
    TypeError, ValueError, PrivacyBudgetError
        If something is no collection, or an option, the budget or a record does not serve.
    """
    # an option that is wrong fails here, before hours of computing
    none = [_empty(one) for name, one in data.items() if name not in WEIGHTS]
    shape, _ = Records.of(none, relation=Relation.ADD_OR_REMOVE_ONE)
    empty = summary.expecting(shape, terms)
    if terms is not None and terms.accountant is not None:
        terms.accountant.require(terms.epsilon)
    chunks = zip(*map(_chunks, _aligned(data)), strict=True)
    summarise, merge = dask.delayed(_summarise), dask.delayed(_merge)
    parts = [summarise(empty, list(data), *several) for several in chunks]
    while True:
        parts = [merge(*parts[first : first + _FAN_IN]) for first in range(0, len(parts), _FAN_IN)]
        if len(parts) == 1:
            [summary] = dask.compute(parts[0])
            return summary


def check_collections(data: Collections) -> None:
    """Raise unless all of these are collections, if one is, of one length as far as they state it."""
    for name, value in data.items():
        if (
            not arrays.is_collection(value)
            or not hasattr(type(value), "to_delayed")
            or not getattr(value, "ndim", 0)
        ):
            raise TypeError(
                f"{name} must be a dask.array or a dask.dataframe collection, as other arguments are Dask "
                "collections."
            )
    known = {name: one for name, one in data.items() if _length(one) is not None}
    # the relation is none of this function's business
    arrays.check_same_length(known, relation=Relation.ADD_OR_REMOVE_ONE)


def totals_of(first: Any, **of_each: Any) -> dict[str, Any]:
    """Return what is public of the records of collections; only lengths, weights and persons are computed."""
    if not of_each and (length := _length(first)) is not None:
        return public_totals(length)
    total = dask.delayed(_total_of)
    aligned = _aligned(of_each or {"": first})
    of_chunks = [total([*of_each], *several) for several in zip(*map(_chunks, aligned), strict=True)]
    lengths, weights, persons = zip(*dask.compute(*of_chunks), strict=True)
    return public_totals(
        sum(lengths),
        sum(weights) if "sample_weight" in of_each else None,
        len(frozenset[Any]().union(*persons)) if "groups" in of_each else None,
    )


@own_error_state
def _total_of(names: list[str], *chunks: Any) -> tuple[int, int, frozenset[Any]]:
    """Return the number of records of a chunk, their weight in units of 2**-1074, and their persons."""
    given = dict(zip(names, chunks, strict=False))
    weights = arrays.check_sample_weight(given.get("sample_weight"), relation=Relation.ADD_OR_REMOVE_ONE)
    persons = arrays.persons_of(given["groups"]) if "groups" in given else frozenset[Any]()
    return len(chunks[0]), 0 if weights is None else exact_sum(weights), persons


def _empty(collection: Any) -> Any:
    """Return what has the columns and the type of a collection, as Dask states them, and no record."""
    if not isinstance(collection, da.Array):
        return collection._meta  # Dask keeps an empty collection of the same columns and types here
    dtype = collection.dtype if isinstance(collection.dtype, np.dtype) else object
    return np.empty((0, *collection.shape[1:]), dtype)


def _chunks(collection: Any) -> list[Any]:
    """Return the delayed chunks of a collection.

    Not optimised: what two collections share would be computed twice, and two frames could get different
    partitions.
    """
    delayed = collection.to_delayed(optimize_graph=False)
    return list(getattr(delayed, "flat", delayed))  # of an array they are an array


def _aligned(data: Collections) -> list[Any]:
    """Return collections whose partitions pair up, as far as is known without reading them."""
    first = next(iter(data.values()))
    rows = first.chunks[0] if _length(first) is not None else None
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


def _summarise(empty: Any, names: list[str], *chunks: Any) -> Any:
    """Return the summary of one chunk; or what is wrong with it, as a value.

    A chunk of another type than its collection is refused, or else one record could change the type of its
    chunk, and with that the public limit of every loss. Dask writes a task that raises into its log, where a
    chunk that is part of the graph would be legible.
    """
    data = dict(zip(names, chunks, strict=True))
    of_each = {name: data.pop(name) for name in names if name in WEIGHTS}
    summary = copy(empty)  # tasks in threads share it, and an update changes it
    try:
        summary.update(*data.values(), **of_each)
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
