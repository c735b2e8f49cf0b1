"""The metrics on Dask collections, for data that do not fit into memory; needs the extra `dask`.

Each partition becomes a summary where it is, summaries are merged in a tree, and the client releases from the
one that is left. Any scheduler will do, and the result is, to the bit, that of the metric of the same name
with all records at once, however they are partitioned. A task that is lost with its worker is run again by
Dask; the budget is spent and the release is drawn once, on the client, when all data have been read. Workers
should be of one kind: the last bit of a logarithm may differ between kinds of processors.

There are no `groups`, because the records of one person may lie in several partitions, and no
`multioutput="raw_values"`; `private_rmse` takes one output. `private_quantile` is missing because a summary
of bounded size does not know a quantile, and `private_r2_score` and the reports because they release several
numbers from one budget: release the parts instead, each at its share of epsilon.
"""

import inspect
import math
import re
from collections.abc import Callable
from copy import copy
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_metrics import classification, regression, regression_losses, statistics
from dp_metrics._docs import documented
from dp_metrics._options import check_ddof, symmetric_mechanism
from dp_metrics._random import check_entropy
from dp_metrics._release import Release
from dp_metrics._validation import MAX_FLOAT, as_vector, check_same_length
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.summaries import CAPACITY, LOSS_METRICS, LossSummary, VarianceSummary

try:
    import dask
    import dask.array as da
except ImportError as error:
    raise ImportError('dp_metrics.distributed needs Dask: pip install "dp_metrics[dask]"') from error

__all__ = [
    "private_accuracy_score",
    "private_brier_score_loss",
    "private_log_loss",
    "private_mae",
    "private_mean",
    "private_mean_absolute_percentage_error",
    "private_mean_loss",
    "private_mean_pinball_loss",
    "private_mean_poisson_deviance",
    "private_mean_squared_log_error",
    "private_mse",
    "private_rmse",
    "private_std",
    "private_variance",
    "private_zero_one_loss",
]

Summary = TypeVar("Summary", LossSummary, VarianceSummary)
Collections = dict[str, Any]  # Dask collections by the names of the arguments

_FAN_IN = 8  # summaries that one task merges


def _mean_loss(
    twin: Callable[..., Any],
    data: Collections,
    *,
    epsilon: Any,
    sample_weight: Any = None,
    capacity: Any,
    neighboring: Any,
    mechanism: Any,
    accountant: Any,
    random_state: Any,
    **options: Any,
) -> float:
    """Release a mean of losses, or what follows from it."""
    name = twin.__name__
    if inspect.signature(twin).parameters["mechanism"].default is None:
        mechanism = symmetric_mechanism(mechanism, neighboring)
    revealing = {
        "sample_weight": sample_weight,
        "normalize=False": None if options.get("normalize", True) else True,
    }
    release = Release(name, epsilon, mechanism, accountant, None, neighboring, **revealing)
    entropy = check_entropy(random_state)
    empty = LossSummary(twin, capacity=capacity, **options)
    # what is wrong with an option shows without any record, before hours of computing
    query = LOSS_METRICS[name].query(
        *map(_no_records, data.values()), private_n=True, sample_weight=None, groups=None, **options
    )
    _check_release(release, accountant, query.cap, monotonic=not release.private_n)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    summary = _reduced(empty, {**data, **weights})
    return summary.release(
        epsilon,
        neighboring=neighboring,
        mechanism=release.mechanism,
        accountant=accountant,
        random_state=entropy,
    )


def _variance(
    twin: Callable[..., Any],
    data: Collections,
    *,
    epsilon: Any,
    bounds: Any,
    ddof: Any,
    capacity: Any,
    neighboring: Any,
    mechanism: Any,
    accountant: Any,
    random_state: Any,
) -> float:
    """Release a variance."""
    revealing = statistics.revealing_freedom(check_ddof(ddof))
    release = Release(twin.__name__, epsilon, mechanism, accountant, None, neighboring, **revealing)
    entropy = check_entropy(random_state)
    empty = VarianceSummary(bounds=bounds, capacity=capacity)
    for name, collection in data.items():
        as_vector(_no_records(collection), name, private_n=True)
    # a range is a range here, whatever its width
    _check_release(release, accountant, None if bounds is None else 1.0, monotonic=False)
    return _reduced(empty, data).release(
        epsilon,
        ddof=ddof,
        neighboring=neighboring,
        mechanism=release.mechanism,
        accountant=accountant,
        random_state=entropy,
    )


def _check_release(
    release: Release, accountant: PrivacyAccountant | None, limit: float | None, *, monotonic: bool
) -> None:
    """Raise if the release is bound to be refused: computing for it would be in vain."""
    release.mechanism.count_ranks(
        release.epsilon,
        n=None if release.private_n else 1,
        monotonic=monotonic,
        output_range=(0.0, MAX_FLOAT if limit is None else limit),
    )
    if accountant is not None:
        accountant.require(release.epsilon)


def _no_records(collection: Any) -> NDArray[Any]:
    """Return an array like the chunks of a collection, without any record."""
    columns: tuple[int, ...] = ()
    if collection.ndim > 1:
        is_array = isinstance(collection, da.Array)
        columns = collection.shape[1:] if is_array else (len(collection.columns),)
    dtype = getattr(collection, "dtype", np.dtype(np.float64))  # a data frame has several
    return np.empty((0, *columns), dtype if isinstance(dtype, np.dtype) else object)


def _reduced(empty: Summary, data: Collections) -> Summary:
    """Return the summary of all records of collections that belong together."""
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
    if len({_length(collection) for collection in data.values()} - {None}) > 1:
        raise ValueError("Found input variables with inconsistent numbers of samples.")
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


def _summarise(empty: Summary, names: list[str], *chunks: Any) -> Summary | Exception:
    """Return the summary of one chunk; or what is wrong with it, as a value.

    Dask writes a task that raises into its log, where a chunk that is part of the graph would be legible.
    """
    data = dict(zip(names, chunks, strict=True))
    weights = {name: data.pop(name) for name in names if name == "sample_weight"}
    summary = copy(empty)  # tasks in threads share it, and `update` changes it
    try:
        check_same_length(*chunks, private_n=True)
        summary.update(*data.values(), **weights)
    except Exception as error:
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)  # whose frames hold the chunk
    return summary


def _merge(*parts: Any) -> Any:
    """Return the summary of the records of all parts; this is where a chunk's error is raised."""
    for part in parts:
        if isinstance(part, Exception):
            raise part
    return reduce(lambda summary, other: summary.merge(other), parts)


_OWN_ENTRIES = {
    "capacity": """
capacity : int, default=1024
    Public number of ranks that the summary of a partition keeps. The default serves epsilon from 0.12 on for
    a billion records; below that a release warns, stays as private, and is less accurate.""",
    "multioutput": """
multioutput : "uniform_average" or array-like of shape (n_outputs,), default="uniform_average"
    How several outputs make one number: their mean, or a mean with these public, non-negative weights.""",
}

_DOCSTRING = """{summary}

The twin of `dp_metrics.{name}` for Dask collections, on whatever scheduler is active.
Partitions are summarised where they are, and nothing larger than a summary comes to the client.

Parameters
----------
{parameters}

Returns
-------
float
    What `dp_metrics.{name}` returns for all records at once.

{{raises}}
UserWarning
    If the capacity is too small for the accuracy that is possible at this epsilon.

See Also
--------
dp_metrics.{name} : The same for data in memory.

Notes
-----
{{guarantee_no_groups}}

A person whose records lie in several places is protected record by record only.

Examples
--------
>>> import dask.array as da
>>> from dp_metrics.distributed import {name}
>>> x = da.arange(10_000, chunks=1_000)
>>> {low:.3g} < {name}({example}) < {high:.3g}  # exactly {exact:.3g}
True
"""


def _docstring(twin: Callable[..., Any], signature: inspect.Signature, example: str, exact: float) -> str:
    """Return the docstring of the twin, as far as it fits, in numpydoc."""
    text = inspect.getdoc(twin) or ""
    section = text.split("Parameters\n----------\n")[1].split("\n\nReturns\n")[0]
    entries = {entry.split(" : ")[0]: entry for entry in re.split(r"\n(?=\w+ : )", section)}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD or name == "sample_weight":
            entries[name] = entries[name].replace("array-like", "dask collection", 1)
    entries |= {name: entry.strip("\n") for name, entry in _OWN_ENTRIES.items()}
    return _DOCSTRING.format(
        summary=text.split("\n")[0],
        name=twin.__name__,
        parameters="\n".join(entries[name] for name in signature.parameters),
        example=f"{example}, epsilon=1.0",
        low=0.9 * exact,
        high=1.1 * exact,
        exact=exact,
    )


def _distributed(
    twin: Callable[..., Any],
    example: str,
    exact: float,
    release: Callable[..., float] = _mean_loss,
    finish: Callable[[float], float] = float,
) -> Callable[..., float]:
    r"""Return the metric of the same name and options for Dask collections.

    Parameters
    ----------
    twin : callable
        The metric for data in memory.
    example, exact : str, float
        Arguments for the example of the docstring, and the result without privacy.
    release : callable, default=_mean_loss
        Release of (twin, data, \*\*options).
    finish : callable, default=float
        The metric from what is released.
    """
    of_twin = inspect.signature(twin)
    capacity = inspect.Parameter("capacity", inspect.Parameter.KEYWORD_ONLY, default=CAPACITY, annotation=int)
    data = [name for name, p in of_twin.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    parameters = [
        p.replace(annotation=Any) if p.name in (*data, "sample_weight") else p
        for p in of_twin.parameters.values()
        if p.name != "groups"
    ]
    parameters.insert([p.name for p in parameters].index("neighboring"), capacity)
    signature = of_twin.replace(parameters=parameters, return_annotation=float)

    def metric(*args: Any, **kwargs: Any) -> float:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        options = bound.arguments
        collections = {name: options.pop(name) for name in data}
        for name, value in {**collections, "sample_weight": options.get("sample_weight")}.items():
            if not (_is_collection(value) or (value is None and name == "sample_weight")):
                raise TypeError(
                    f"{name} must be a dask.array or a dask.dataframe collection; for data in memory use "
                    f"dp_metrics.{twin.__name__}."
                )
        return finish(release(twin, collections, **options))

    metric.__name__ = metric.__qualname__ = twin.__name__
    metric.__doc__ = _docstring(twin, signature, example, exact)
    metric.__dict__["__signature__"] = signature  # `inspect`, editors and Sphinx read it
    return documented(metric)


def _is_collection(value: Any) -> bool:
    """Return whether this is an array, a series or a data frame of Dask."""
    has_partitions = dask.is_dask_collection(value) and hasattr(value, "to_delayed")
    return has_partitions and getattr(value, "ndim", 0) > 0


private_mse = _distributed(regression.private_mse, "x, x + 2", 4)
private_rmse = _distributed(regression.private_rmse, "x, x + 2", 2)
private_mae = _distributed(regression.private_mae, "x, x + 2", 2)
private_mean_loss = _distributed(regression.private_mean_loss, "x % 5", 2)
private_mean_absolute_percentage_error = _distributed(
    regression_losses.private_mean_absolute_percentage_error, "x + 1, 2 * x + 2", 1
)
private_mean_pinball_loss = _distributed(regression_losses.private_mean_pinball_loss, "x, x + 2", 1)
private_mean_poisson_deviance = _distributed(
    regression_losses.private_mean_poisson_deviance, "x * 0 + 1, x * 0 + 2", 2 - 2 * math.log(2)
)
private_mean_squared_log_error = _distributed(
    regression_losses.private_mean_squared_log_error, "x % 2, 1 - x % 2", math.log(2) ** 2
)
private_log_loss = _distributed(
    classification.private_log_loss, "x % 2, 0.25 + 0.5 * (x % 2)", -math.log(0.75)
)
private_brier_score_loss = _distributed(
    classification.private_brier_score_loss, "x % 2, 0.25 + 0.5 * (x % 2)", 0.0625
)
private_zero_one_loss = _distributed(classification.private_zero_one_loss, "x % 4, x % 2", 0.5)
private_accuracy_score = _distributed(classification.private_accuracy_score, "x % 4, x % 2", 0.5)
private_mean = _distributed(statistics.private_mean, "x % 5, bounds=(0, 10)", 2)
private_variance = _distributed(statistics.private_variance, "x % 5", 2, _variance)
private_std = _distributed(statistics.private_std, "x % 5", math.sqrt(2), _variance, math.sqrt)
