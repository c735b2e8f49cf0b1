"""Summaries: what a release needs to know of the records, gathered in chunks or on several machines.

A summary holds sums and the most extreme records themselves. It is private data, as sensitive as the records:
keep it where they are kept, and publish only what `release` returns.
"""

import contextlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.options import NO_WEIGHT
from dp_metrics.inputs.records import check_bounds
from dp_metrics.inputs.scalars import as_whole
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import FUNCTIONS, METRICS, Metric, metric_of
from dp_metrics.release.queries import AggregatedLoss, AggregatedVariance, MeanLoss
from dp_metrics.release.release import Plan
from dp_metrics.sensitivity.aggregates import WeightedLossAggregate
from dp_metrics.streaming._format import INCONSISTENT, MALFORMED, Aggregate, pack, unpack

__all__ = ["CAPACITY", "LossSummary", "VarianceSummary"]

CAPACITY = 2048
"""Ranks that a summary keeps unless it is told otherwise."""

_EXACT = 1 << 53
_PER_CALL = (
    "epsilon",
    "neighboring",
    "mechanism",
    "accountant",
    "random_state",
    "label",
    "return_result",
    "sample_weight",
    "groups",
)


class _Summary(ABC):
    """What both kinds of summary share: a public capacity, public settings, and a private aggregate."""

    def __init__(self, capacity: int) -> None:
        ranks = as_whole(capacity)
        if ranks is None or ranks < 1:
            raise ValueError("capacity must be a positive integer.")
        self._capacity = ranks
        self._aggregate: Any = None
        self._facts: dict[str, Any] = {}  # public, and the same for all chunks
        self._prepared: Any = None  # the query about the present aggregate, which remembers its output bounds

    @property
    def capacity(self) -> int:
        """Public number of ranks that the summary keeps."""
        return self._capacity

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
        return merged if other._aggregate is None else merged._add(other._aggregate, other._facts)

    def _add(self, aggregate: Aggregate, facts: dict[str, Any]) -> Self:
        # an empty list does not tell the number of its columns or their type: that is no reason to fail
        if self._aggregate is None or (self._aggregate.n == 0 < aggregate.n):
            self._aggregate, self._facts, self._prepared = aggregate, facts, None
            return self
        if aggregate.n == 0 < self._aggregate.n:
            return self
        return self._merged(aggregate, facts)

    def _merged(self, aggregate: Aggregate, facts: dict[str, Any]) -> Self:
        assert self._aggregate is not None
        if facts != self._facts:
            raise ValueError(
                "All records must have the same number of outputs or columns, and probabilities one type."
            )
        self._aggregate, self._prepared = self._aggregate.merge(aggregate), None
        return self

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
            # added to no records at all, whose facts the metric tells, so that the two have to fit together
            summary = cls._of_nothing(settings, aggregate)._merged(aggregate, settings["facts"])
        if summary is None or summary.to_bytes() != data:
            raise ValueError(INCONSISTENT)
        return summary

    @classmethod
    @abstractmethod
    def _of_nothing(cls, settings: dict[str, Any], aggregate: Any) -> Self:
        """Return the summary of 0 records that has these settings and is of the kind of an aggregate."""

    @abstractmethod
    def _planned(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
        """Return how the result of a release follows, and all options of it."""

    def released_as(self, metric: Metric, arguments: Mapping[str, Any]) -> Any:
        """Release a metric of the records that are known, as a call with these arguments does."""
        settings = dict(arguments)
        if self._prepared is None:
            self._prepared = self._query_of(self._known())
        query, return_result = self._prepared, settings.pop("return_result")
        own = {name: settings.pop(name) for name in metric.options if name in settings}
        plan, options = self._planned(metric, own)
        release = metric.settings(**settings, options=options)
        if not release.private_n:
            if query.n == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            if getattr(query.aggregate, "weight", None) == 0:
                raise ValueError(NO_WEIGHT)
            if not options.get("ddof", 0) < query.n:
                raise ValueError("ddof must be smaller than the number of samples.")
        result = release.run(replace(plan, queries=(query,)))
        return result if return_result else result.value

    @abstractmethod
    def _query_of(self, aggregate: Any) -> AggregatedLoss | AggregatedVariance:
        """Return the query about an aggregate."""


class LossSummary(_Summary):
    """Private data: all that a private mean of losses needs to know of its records, in little memory.

    Records come in chunks, in any order, or are summarised on different machines and merged: a release is the
    same, to the bit, as from one call of the metric with all of them.

    Parameters
    ----------
    metric : callable
        The metric to release: `private_mse` or any other metric of this package that is a mean of one loss
        per record: not `private_r2_score`, `private_variance`, `private_std` and `private_quantile`.
    capacity : int, default=2048
        Public number of ranks to keep. The default serves epsilon from 0.09 on; below that a release warns,
        stays as private, and is less accurate, soon useless: see the notes.
    **options
        Public options of the metric, such as bounds, max_loss or labels, as numbers, strings, lists or None.
        Their values are checked with the first chunk.

    Raises
    ------
    TypeError, ValueError
        If the metric cannot be summarised, or does not take an option.

    See Also
    --------
    VarianceSummary : The same for `private_variance`.

    Notes
    -----
    A summary holds the largest losses themselves: never publish one. The guarantee is that of the metric, and
    what it costs is epsilon for each release.

    Below what the capacity serves there is a cliff: from a half or a third of that epsilon down, releases are
    near 0 whatever the data. Expected error of a release relative to the value, each counted as at most 10,
    for a million squares of normal errors and of errors with heavy tails (Student's t with 3 degrees of
    freedom), from exact laws (``benchmarks/capacity.py``):

    =======  =============  ==============  =============  ==============
    epsilon  normal, 2,048  normal, enough  heavy, 2,048   heavy, enough
    =======  =============  ==============  =============  ==============
    0.1      0.00053        0.00053         0.049          0.049
    0.05     0.00083        0.00085         0.065          0.063
    0.02     0.98           0.0016          0.98           0.085
    0.01     1.00           0.0028          1.00           0.11
    =======  =============  ==============  =============  ==============

    The warning says how many ranks are needed; 4,096 serve epsilon from 0.041 on, 8,192 from 0.021. If a
    summary with too few is all there is, ``mechanism=Hazard(resolution=0.3)`` is better than nothing: 0.47
    and 0.34 instead of 0.98 at epsilon 0.02.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import LossSummary, private_mae
    >>> summary = LossSummary(private_mae)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(10):  # batches of a data loader
    ...     y = rng.normal(size=1000)
    ...     summary = summary.update(y, y + 1)
    >>> 0.9 < summary.release(epsilon=1.0) < 1.1  # exactly 1
    True
    """

    def __init__(self, metric: Any, *, capacity: int = CAPACITY, **options: Any) -> None:
        super().__init__(capacity)
        self._name = _check_metric(metric, options).name
        self._options = {name: _plain(options[name], name) for name in sorted(options)}

    @property
    def _metric(self) -> Metric:
        return METRICS[self._name]

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"LossSummary({self._name}, capacity={self._capacity}{options})"

    @classmethod
    def from_data(
        cls,
        metric: Any,
        *data: ArrayLike,
        sample_weight: ArrayLike | None = None,
        capacity: int = CAPACITY,
        **options: Any,
    ) -> Self:
        """Return the summary of one chunk of records.

        Parameters
        ----------
        metric, capacity, **options
            As for the class.
        *data, sample_weight : array-like
            As for `update`.
        """
        return cls(metric, capacity=capacity, **options).update(*data, sample_weight=sample_weight)

    def update(self, *data: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of records.

        Parameters
        ----------
        *data : array-like
            What the metric takes, such as y_true and y_pred; a chunk may be empty.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Public, non-negative weights; for all chunks or for none.

        Returns
        -------
        LossSummary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid, as in the metric; the summary is as it was before.
        """
        return self._add_query(self._query(data, sample_weight))

    def _query(self, data: Sequence[ArrayLike], sample_weight: ArrayLike | None = None) -> MeanLoss:
        # an empty chunk is nothing unusual; whether there is any record at all is asked by `release`
        options = {**self._options, "sample_weight": sample_weight}
        queries = self._metric.planned(data, options, private_n=True).queries
        if len(queries) > 1 or self._options.get("multioutput") == "raw_values":
            raise ValueError(
                "A summary releases one number: multioutput='raw_values' gives several, and a root of "
                "several outputs is a mean of several."
            )
        query: MeanLoss = queries[0]  # type: ignore[assignment]
        return query

    def _add_query(self, query: MeanLoss) -> Self:
        known = query.aggregate(self._capacity, forget=True)
        facts = {
            "cap": query.record_loss.cap,
            "is_count": known.is_count,
            "columns": [math.prod(array.shape[1:]) for array in query.records],
        }
        return self._add(known.aggregate, facts)

    def release(
        self,
        epsilon: float,
        *,
        neighboring: str = "replace_one",
        mechanism: str | Mechanism | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        label: str | None = None,
        return_result: bool = False,
    ) -> float | Any:
        """Release the metric of all records with epsilon-differential privacy.

        Parameters
        ----------
        epsilon : float
            Privacy parameter, > 0: smaller is more private and less accurate.
        neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
            What one person can change: a record's contents, the number of records being public; or whether it
            is there at all. The second costs accuracy, and takes neither weights nor groups.
        mechanism : str, mechanism object or None, default=None
            None: what the metric takes by default.
        accountant : PrivacyAccountant or None, default=None
            Budget that pays epsilon for this release, before it is drawn.
        random_state : None, int, RandomState or Generator, default=None
            None draws fresh randomness from the operating system. Anything else makes the release
            reproducible and therefore NOT private.
        label : str or None, default=None
            The name of this release in the accountant's history; None: the name of the metric.
        return_result : bool, default=False
            Whether to return a `PrivateResult`, which also holds what may be published about the release.

        Returns
        -------
        float
            The metric, as from one call of it.
            With ``return_result=True`` a `PrivateResult` with that value.

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

        Notes
        -----
        Guarantee: replacing any one record changes the probability of any result by at most a factor
        exp(epsilon), given the model, the number of records and the arguments, which are public. With
        neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number
        of records is not public.
        """
        return self.released_as(self._metric, _without_self(locals()))

    def _query_of(self, aggregate: Any) -> AggregatedLoss:
        return AggregatedLoss(aggregate, self._facts["is_count"])

    def _planned(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
        # the result follows from what is released as it does for no records at all
        no_records = [np.empty((0, columns)) for columns in self._facts["columns"]]
        plan = metric.planned(no_records, self._options, private_n=True)
        weighted = isinstance(self._aggregate, WeightedLossAggregate)
        return plan, {**self._options, "sample_weight": True if weighted else None}

    def _settings(self) -> dict[str, Any]:
        return {"metric": self._name, "options": self._options, "capacity": self._capacity}

    @classmethod
    def _of_nothing(cls, settings: dict[str, Any], aggregate: Any) -> Self:
        summary = cls(FUNCTIONS[settings["metric"]], capacity=settings["capacity"], **settings["options"])
        weights = np.empty(0) if isinstance(aggregate, WeightedLossAggregate) else None
        for dtype in (np.float64, np.float32, np.float16):  # the cap of a log loss depends on it
            data = [np.empty((0, columns), dtype) for columns in settings["facts"]["columns"]]
            query = replace(summary._query(data), sample_weight=weights)
            if query.record_loss.cap == settings["facts"]["cap"]:
                break
        return summary._add_query(query)


class VarianceSummary(_Summary):
    """Private data: all that a private variance needs to know of its records, in little memory.

    Values come in chunks, in any order, or are summarised on different machines and merged: a release is the
    same, to the bit, as from one call of `private_variance` with all of them. The root of a release is a
    private standard deviation.

    Parameters
    ----------
    bounds : tuple of float or None, default=None
        Public range (lower, upper) of the values, in their units; values are clipped into it. None:
        unbounded. Never read it from the data.
    capacity : int, default=2048
        Public number of ranks to keep, at most 4,096 of which are used. The default serves epsilon from 0.06
        on; below that a release warns, stays as private, and is less accurate, soon useless: see the notes.
        A summary of no more values than this has the adaptive mechanism in two stages, as `private_variance`
        has; a larger one releases by `Hazard`, which is better on light tails and worse on heavy ones.

    Raises
    ------
    ValueError
        If an argument is invalid.

    See Also
    --------
    LossSummary : The same for means of losses.

    Notes
    -----
    A summary holds the most extreme values themselves: never publish one. The guarantee is that of
    `private_variance`, and what it costs is epsilon for each release.

    Expected error of a release relative to the value, as in `LossSummary`, for a million normal values:
    0.00044, 0.00073 and 0.77 at epsilon 0.1, 0.05 and 0.02, where a capacity that is large enough gives
    0.0014. An error of 1 means that releases are near 0 whatever the data.

    Examples
    --------
    >>> from dp_metrics import VarianceSummary
    >>> first, second = VarianceSummary().update(range(500)), VarianceSummary().update(range(500, 1000))
    >>> 60_000 < first.merge(second).release(epsilon=2.0) < 120_000  # exactly 83,333.25
    True
    """

    def __init__(self, *, bounds: tuple[float, float] | None = None, capacity: int = CAPACITY) -> None:
        super().__init__(capacity)
        limits = check_bounds(bounds)
        # no negative zero, so that the bytes of merges agree
        self._bounds = None if limits is None else (limits[0] + 0.0, limits[1] + 0.0)

    def __repr__(self) -> str:
        return f"VarianceSummary(bounds={self._bounds}, capacity={self._capacity})"

    @classmethod
    def from_data(
        cls, x: ArrayLike, *, bounds: tuple[float, float] | None = None, capacity: int = CAPACITY
    ) -> Self:
        """Return the summary of one chunk of values.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            As for `update`.
        bounds, capacity
            As for the class.
        """
        return cls(bounds=bounds, capacity=capacity).update(x)

    def update(self, x: ArrayLike) -> Self:
        """Add a chunk of values.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            One finite number per record; a chunk may be empty.

        Returns
        -------
        VarianceSummary
            This one.

        Raises
        ------
        ValueError, TypeError
            If the chunk is invalid, as in `private_variance`; the summary is as it was before.
        """
        query = METRICS["private_variance"].planned((x,), {"bounds": self._bounds}, private_n=True).queries[0]
        return self._add(query.aggregate(self._capacity).aggregate, {})  # type: ignore[attr-defined]

    def release(
        self,
        epsilon: float,
        *,
        ddof: float = 0,
        neighboring: str = "replace_one",
        mechanism: str | Mechanism = "adaptive",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        label: str | None = None,
        return_result: bool = False,
    ) -> float | Any:
        """Release the variance of all values with epsilon-differential privacy.

        Parameters
        ----------
        epsilon : float
            Privacy parameter, > 0: smaller is more private and less accurate.
        ddof : float, default=0
            Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
            Must be below the public n.
        neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
            What one person can change: a record's contents, the number of records being public; or whether it
            is there at all. The second costs accuracy, and takes neither weights nor groups.
        mechanism : str or mechanism object, default="adaptive"
            "adaptive", which errs towards zero on heavy tails, "hazard", "above_threshold", or, for a metric
            with a public limit (give the summary `bounds`), "geometric", "inverse_sensitivity",
            "piecewise_laplace" or "laplace"; or an object such as `AboveThreshold.paper()`.
        accountant : PrivacyAccountant or None, default=None
            Budget that pays epsilon for this release, before it is drawn.
        random_state : None, int, RandomState or Generator, default=None
            None draws fresh randomness from the operating system. Anything else makes the release
            reproducible and therefore NOT private.
        label : str or None, default=None
            The name of this release in the accountant's history; None: the name of the metric.
        return_result : bool, default=False
            Whether to return a `PrivateResult`, which also holds what may be published about the release.

        Returns
        -------
        float
            The variance, as from one call of `private_variance`.
            With ``return_result=True`` a `PrivateResult` with that value.

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

        Notes
        -----
        Guarantee: replacing any one record changes the probability of any result by at most a factor
        exp(epsilon), given the model, the number of records and the arguments, which are public. With
        neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number
        of records is not public.
        """
        return self.released_as(METRICS["private_variance"], _without_self(locals()))

    def _query_of(self, aggregate: Any) -> AggregatedVariance:
        return AggregatedVariance(aggregate)

    def _planned(self, metric: Metric, options: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
        given = {**options, "bounds": self._bounds}
        return metric.planned(([],), given, private_n=True), given

    def _settings(self) -> dict[str, Any]:
        return {
            "bounds": None if self._bounds is None else list(self._bounds),
            "capacity": self._capacity,
        }

    @classmethod
    def _of_nothing(cls, settings: dict[str, Any], aggregate: Any) -> Self:
        return cls(bounds=settings["bounds"], capacity=settings["capacity"]).update([])


def _without_self(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "self"}


def _check_metric(metric: Any, options: Mapping[str, Any]) -> Metric:
    """Return the row of a metric that is a mean of losses and takes these options."""
    row = metric_of(metric)
    if row is None or not row.is_mean_loss or FUNCTIONS[row.name] is not metric:
        names = ", ".join(row.name for row in METRICS.values() if row.is_mean_loss)
        raise TypeError(f"metric must be one of {names}: a mean of one loss per record.")
    for option in options:
        if option in _PER_CALL:
            raise TypeError(
                f"{option} is no option of a summary: pass it to `update` or `release`, if at all."
            )
        if option not in row.options:
            raise TypeError(f"{row.name}() got an unexpected keyword argument {option!r}.")
    return row


def _plain(value: Any, name: str) -> Any:
    """Return a public option in types that JSON can hold."""
    if hasattr(value, "tolist"):  # arrays and their scalars, an index of pandas
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(item, name) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)  # 1 and 1.0 are equal options, so the bytes of merges must agree
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name} must be made of numbers, strings, lists and None.")
