"""A metric is one decorated function: what is public about it, and how a call of it is carried out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dp_metrics.inputs import arrays
from dp_metrics.inputs.arrays import ArgumentShape, Records, Shape
from dp_metrics.inputs.options import ByName, Floats, Function, Relation
from dp_metrics.metrics._settings import completed_signature, shares_docstring
from dp_metrics.release.query import Query, Source, Terms
from dp_metrics.release.release import Release
from dp_metrics.release.result import AnyResult, Result, arguments_of, set_result
from dp_metrics.release.stored import DAMAGED, PER_RECORD, SETTINGS, WEIGHTS, Call, Results, read_shape

P = ParamSpec("P")
R = TypeVar("R")

UNIT: ByName = {"bounds": (0, 1)}
"""The limit of a metric that takes bounds, for values from 0 to 1."""

UNWEIGHTED = "a weighted record would count more than once, and need more noise to match"
"""Why a metric made of counts takes no weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric:
    """All that is public about a metric.

    Parameters
    ----------
    function : callable
        The public function. The one that was decorated, which it wraps, gets None in the place of data, and
        its options; it returns what makes a `Query` of a form, or raises for invalid options.
    exact_function : str
        The function without privacy, of scikit-learn or NumPy; "" if they have none.
    data : tuple of str
        The arguments that hold a value per record.
    options : mapping
        The public options that the function takes, with their defaults; None for those of `required`.
    refused : mapping of str to str
        ByName of scikit-learn's function or of other metrics that must be None, each with the reason.
    required : mapping
        The options without a default, for values from 0 to 1.
    greater_is_better : bool or None
        Whether the metric is a score (true) or a loss; None: it does not judge a model, or is no one number.
    mechanism : str or None
        Name of the default mechanism; None: the metric has noise of its own, and the function takes no
        mechanism. "geometric" where a result near one end of the range is as likely as
        near the other, "hazard" where there is no order statistic to draw the scale from.
    discloses_n : mapping
        ByName that would disclose a private number of records, each with the truth value that does not.
    limit : mapping or None
        ByName that give the metric a public upper limit, for values from 0 to 1; None: it has one anyway.
    from_unit : callable
        Valid data made from numbers from 0 to 1, a record each: what audits are made of. Unless the metric
        says otherwise they are the last argument, and all others are 0.
    responses : tuple of str
        Methods of an estimator whose response the metric judges, the best first.
    lowest_prediction : float
        The least prediction in the domain of the metric.
    predicts_labels : bool
        Whether the predictions are labels.
    """

    function: Function
    exact_function: str
    data: tuple[str, ...]
    options: ByName
    refused: Mapping[str, str]
    mechanism: str | None
    required: ByName = field(default_factory=dict)
    greater_is_better: bool | None = None
    discloses_n: Mapping[str, bool] = field(default_factory=dict)
    limit: ByName | None = None
    from_unit: Callable[[Floats], tuple[Any, ...]]
    responses: tuple[str, ...] = ("predict",)
    lowest_prediction: float = -np.inf
    predicts_labels: bool = False

    @property
    def name(self) -> str:
        """Name of the public function."""
        return self.function.__name__

    @cached_property
    def usual(self) -> Query:
        """The query of the usual form, one record public: what kinds of parts the metric has."""
        return self.planned(self.form(n=1), {**self.required, **(self.limit or {})})

    def is_over_labels(self, options: ByName) -> bool:
        """Return whether a metric with these options counts over all labels, and not over one of two.

        Then a label set with one label more or less is another metric.
        """
        given = {**self.options, **options}
        if self.predicts_labels and "labels" in self.options:
            return bool(given.get("average") != "binary")
        return bool(given.get("multi_class", "raise") != "raise")

    def disclosing(self, options: ByName) -> list[str]:
        """Return the options that would give a private number of records away, as they were typed."""
        found = [name for name in WEIGHTS if options.get(name) is not None]
        return found + [
            f"{name}={options[name]!r}"
            for name, harmless in self.discloses_n.items()
            if name in options and bool(options[name]) != harmless
        ]

    def release_on(
        self,
        terms: Terms,
        options: ByName,
        data: ByName | None = None,
        of_records: Callable[[], ByName] | None = None,
    ) -> Release:
        """Return the release of a call with these terms and options; the data are not looked at.

        What is public of the records follows from them, or from `of_records` where they come in chunks.
        """

        def call() -> Call:
            given = {name: options.get(name, default) for name, default in self.options.items()}
            made = Call.of("metric", {**(data or {}), **given})
            if of_records is None:
                return made
            return replace(made, of_records=lambda: {**of_records(), **arrays.asked_of_persons(given)})

        return Release(self.name, terms, disclosing=self.disclosing(options), call=call)

    def release(self, **arguments: Any) -> AnyResult:
        """Check, spend and draw: what a call of the public function with these arguments does.

        Parameters
        ----------
        **arguments
            All arguments of the function.

        Returns
        -------
        Result
            Its value is what the function returns.

        Raises
        ------
        ValueError
            If an option that must be None is not, or another argument is invalid.
        """
        settings = dict(arguments)
        data = {name: settings.pop(name) for name in self.data}
        for name, reason in self.refused.items():
            if settings.pop(name) is not None:
                raise ValueError(f"{self.name} takes no {name}: {reason}.")
        options = {name: settings.pop(name) for name in self.options}
        if any(map(arrays.is_collection, [*data.values(), *map(options.get, WEIGHTS)])):
            from dp_metrics.metrics.summary import released_from_collections  # which needs the metrics

            return released_from_collections(self, data, options, Terms.of(**settings))
        terms = Terms.of(**settings)
        read = partial(self.read, [*data.values()], options, terms.relation)
        return self.release_on(terms, options, data).answer(read, lambda result: result)

    def read(
        self, data: Sequence[Any], options: ByName, relation: Relation
    ) -> tuple[Query, Source, dict[str, Shape]]:
        """Return the query of a call, the source of its stats, and the public form of its records.

        Raises
        ------
        TypeError, ValueError
            If the options or the records are invalid.
        """
        shape, records = self.records(data, options, relation)
        query = self.planned(shape, options)
        return query, query.read(records), {"shape": shape}

    def records(
        self, data: Sequence[Any], options: ByName, relation: Relation, *, is_all: bool = True
    ) -> tuple[Shape, Records]:
        """Return the public form of records, which may be a chunk of all, and the records: not looked at."""
        public = {name: options.get(name, self.options[name]) for name in PER_RECORD if name in self.options}
        if "max_records" not in self.options:
            return Records.of(data, relation=relation, **public)
        return arrays.first_records(data, names=self.data, relation=relation, is_all=is_all, **public)[:2]

    def form(
        self, columns: int | None = None, resolution: float = ArgumentShape.resolution, n: int | None = None
    ) -> Shape:
        """Return a form of records of which the last argument alone tells its columns.

        Parameters
        ----------
        columns : int or None, default=None
            Columns of the last argument; None: as many as the labels say, or one.
        resolution : float, default=that of float64
            Machine epsilon of its type.
        n : int or None, default=None
            Public number of records.
        """
        last = ArgumentShape(columns, True, resolution)
        return Shape((*(ArgumentShape(None) for _ in self.data[1:]), last), n)

    def planned(self, shape: Shape, options: ByName) -> Query:
        """Return the query of records of a public form, or raise if the options or the form are invalid."""
        arrays.check_same_columns(shape)
        given = {name: value for name, value in {**self.options, **options}.items() if name not in PER_RECORD}
        with np.errstate(all="ignore"):
            asked = inspect.unwrap(self.function)(*(None for _ in self.data), **given)
            query: Query = asked(shape)
        return replace(query, most_records=shape.most_records, default=self.mechanism or query.default)

    def planned_each(self, shape: Shape, options: ByName) -> tuple[list[Query], Callable[[Records], Records]]:
        """Return the query of each of several predictions of one truth, and what reads records for all."""
        true, *predictions = shape.arguments
        queries = [self.planned(Shape((true, one), shape.n), options) for one in predictions]
        return queries, partial(arrays.read_each, readers=tuple([query.reader for query in queries]))


_metrics: dict[str, Metric] = {}

METRICS: Mapping[str, Metric] = MappingProxyType(_metrics)
"""Every public metric by the name of its function, in the order of the documentation."""


def restored_metric(asked: ByName, form: ByName, results: Results) -> AnyResult:
    """Return a stored release of a metric again; raises if it is none."""
    metric, options = METRICS[asked["metric"]], asked["options"]
    if {*options} != {*metric.options} - PER_RECORD:
        raise ValueError(DAMAGED)
    (result,) = results(metric.planned(read_shape(form["shape"]), options))
    return result


asks: Any = partial
"""Say in the body of a metric what it releases: the query that a function makes with these arguments.

For a type checker it is what the metric returns, whatever that is.
"""


def private(
    exact_function: str = "", *, mechanism: str = "adaptive", refused: str = UNWEIGHTED, **facts: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a public metric of a function that says what to release.

    Its signature tells what the metric takes. Arguments that are annotated with `ArrayLike` and may be given
    without their names are data, all others are options; what is annotated with None must be None. The
    keywords that `**settings` stand for are shown one by one.

    Parameters
    ----------
    exact_function, mechanism, **facts
        Of the `Metric`: what a signature does not tell.
    refused : str, default=UNWEIGHTED
        Why options must be None that must.
    """

    def decorate(body: Callable[P, R]) -> Callable[P, R]:
        signature = completed_signature(body, mechanism)
        shown = signature.parameters
        data = tuple(
            name
            for name, one in shown.items()
            if one.kind is one.POSITIONAL_OR_KEYWORD and one.annotation == "ArrayLike"
        )
        refusing = {name: refused for name, one in shown.items() if one.annotation == "None"}
        options = {
            name: None if one.default is one.empty else one.default
            for name, one in shown.items()
            if name not in {*data, *refusing, *SETTINGS}
        }

        @functools.wraps(body)
        def release(*args: P.args, **kwargs: P.kwargs) -> R:
            result: Result[R] = metric.release(**arguments_of(release, args, kwargs))
            return result.value

        metric = Metric(
            function=release,
            exact_function=exact_function,
            data=data,
            options=options,
            refused=refusing,
            mechanism=mechanism if "mechanism" in shown else None,
            **{"from_unit": lambda x: (*(np.zeros_like(x) for _ in data[1:]), x), **facts},
        )
        release.__signature__ = signature  # type: ignore[attr-defined]
        set_result(release, metric.release)
        words = mechanism, "refused" * bool(refusing), "of labels" * metric.predicts_labels
        limit = f"pass `{next(iter(metric.limit))}`" if metric.limit else "this metric always has one"
        shares_docstring(*words, limit=limit, refused=refused)(release)
        _metrics[metric.name] = metric
        return release

    return decorate
