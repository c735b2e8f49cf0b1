"""Seeded releases, made through the public interface only, whose bits must not move with the code.

`GROUPS` holds every case by its group and its name. A case makes its data, its seed and its settings anew, so
the order of the cases is of no account. Numbers are written as `float.hex`.
``python tests/test_frozen_releases.py --freeze`` writes the table.
"""

import hashlib
import itertools
import json
import math
import os
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_score

import dp_metrics as dp
from dp_metrics import AboveThreshold, Hazard, LossSummary, PrivacyAccountant, VarianceSummary, auditing
from dp_metrics.metrics import METRICS

__all__ = ["GROUPS", "TABLE", "arithmetic", "evaluate", "read_table", "write_table"]

TABLE = Path(__file__).with_suffix(".json")

Case = Callable[[int], Any]  # takes its seed
Options = dict[str, Any]
Extras = Mapping[str, tuple[str | None, Options]]

BOTH = REPLACE, ADD_OR_REMOVE = "replace_one", "add_or_remove_one"


# ---- what the coming changes of the interface touch: one place for each ------------------------------------


def paper_on_log_loss(total_weight: float) -> AboveThreshold:
    """Return the paper's settings for the mean of log losses, whose unit is that of their sum."""
    return AboveThreshold.paper(unit=1.0 / total_weight)


def planned_error(metric: Any, data: NDArray[Any], epsilon: float, **options: Any) -> float:
    return dp.expected_error(metric, *planned(metric, data), epsilon=epsilon, **options).mean_absolute


def planned_epsilon(metric: Any, data: NDArray[Any], error: float, **options: Any) -> float:
    return dp.epsilon_for_error(metric, *planned(metric, data), error=error, **options)


def planned(metric: Any, data: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return what the metric takes: labels that are wrong where the data are 1, for the zero-one loss."""
    return (np.zeros_like(data), data) if metric is dp.private_zero_one_loss else (data,)


# ---- data: few operations on integers, each rounded once, so that every machine makes the same ones


@cache
def records(kind: str, n: int) -> tuple[NDArray[Any], ...]:
    """Return the positional arguments of a metric; read-only, because cases share them."""
    name, _, outputs = kind.partition(" x ")
    shape = (n, int(outputs)) if outputs else (n,)
    rng = np.random.default_rng([zlib.crc32(kind.encode()), n])
    arrays = tuple(_MAKERS[name](rng, shape))
    for array in arrays:
        array.setflags(write=False)
    return arrays


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return powers of two from 1 to 32, most of them 1."""
    powers: NDArray[Any] = np.ldexp(1.0, rng.integers(0, 6, shape) * (rng.integers(0, 4, shape) == 0))
    return powers


def _targets(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    y = rng.integers(-800, 801, shape) / 100
    yield y
    yield y + rng.integers(-100, 101, shape) / 100 * _heavy(rng, shape)


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    y = rng.integers(15, 480, shape) / 30
    yield y
    yield np.maximum(y + rng.integers(-30, 31, shape) / 30 * _heavy(rng, shape), 0.25)


def _counts(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    yield rng.integers(0, 9, shape)
    yield rng.integers(4, 57, shape) / 7


def _losses(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    yield rng.integers(0, 101, shape) / 100 * _heavy(rng, shape)


def _column(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    yield rng.integers(-100, 101, shape) / 100 * _heavy(rng, shape)


def _classes(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    y = rng.integers(0, 3, shape)
    yield y
    yield np.where(rng.integers(0, 10, shape) < 7, y, 1)


def _words(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    for codes in _classes(rng, shape):
        yield np.array(["ham", "spam", "eggs"])[codes]


def _binary(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    y = rng.integers(0, 2, shape)
    yield y
    # right for most, and sure of that
    yield (np.where(rng.integers(0, 5, shape) > 0, y, 1 - y) * 103 + rng.integers(1, 27, shape)) / 130


def _binary_words(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    y, p = _binary(rng, shape)
    yield np.array(["ham", "spam"])[y]
    yield p


def _binary_single(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    y, p = _binary(rng, shape)
    yield y
    yield p.astype(np.float32)


def _multiclass(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    yield rng.integers(0, 3, shape)
    p = rng.integers(1, 60, (*shape, 3)).astype(float)
    p[..., 0] = 130 - p[..., 1:].sum(axis=-1)
    yield p / 130


_MAKERS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Iterator[NDArray[Any]]]] = {
    "targets": _targets,
    "positive": _positive,
    "counts": _counts,
    "losses": _losses,
    "column": _column,
    "classes": _classes,
    "words": _words,
    "binary": _binary,
    "binary words": _binary_words,
    "binary float32": _binary_single,
    "multiclass": _multiclass,
}


def weights(n: int) -> NDArray[Any]:
    """Return public weights, the first of which is positive and some of which are 0."""
    made = np.random.default_rng([1, n]).integers(0, 9, n) / 4
    made[:1] = 1.0
    return made


def groups(n: int) -> NDArray[Any]:
    """Return public groups of about three records."""
    return np.random.default_rng([2, n]).integers(0, max(n // 3, 1), n)


# ---- metrics -----------------------------------------------------------------------------------------------

MECHANISMS: dict[str, Any] = {
    "hazard": "hazard",
    "above_threshold": "above_threshold",
    "inverse_sensitivity": "inverse_sensitivity",
    "piecewise_laplace": "piecewise_laplace",
    "laplace": "laplace",
    "geometric": "geometric",
    "Hazard(resolution=0.1)": Hazard(resolution=0.1),
    "AboveThreshold(beta=1.1,split=0.3)": AboveThreshold(beta=1.1, split=0.3),
    "AboveThreshold(grid)": AboveThreshold(first=5, scale=0.25, max_candidates=300, ranks=20),
    "AboveThreshold(even)": AboveThreshold(spacing="even", max_candidates=500),
    "AboveThreshold.paper": AboveThreshold.paper(),
}
NEED_A_COUNT = {"laplace", "geometric"}
NEED_A_LIMIT = {"inverse_sensitivity", "piecewise_laplace", "laplace", "geometric", "AboveThreshold(even)"}
OF_LOG_LOSS = {"private_log_loss", "private_probability_report"}


@dataclass(frozen=True)
class Call:
    """One call of a metric. Options that are functions make public arrays for n records."""

    name: str
    form: str
    kind: str
    options: Options
    mechanism: str = "hazard"
    relation: str = REPLACE
    n: int = 300
    epsilon: float = 1

    def __str__(self) -> str:
        where = f"{self.mechanism}/{self.relation}/n={self.n}/eps={self.epsilon}"
        return f"{self.name}/{self.form}/{where}"

    def __call__(self, seed: int) -> Any:
        return getattr(dp, self.name)(*records(self.kind, self.n), **self.settings(seed))

    @property
    def paper_on_log_loss(self) -> bool:
        """Whether the unit of the paper is that of a sum; it is 1 where the number of records is private."""
        paper = self.mechanism == "AboveThreshold.paper"
        return paper and self.name in OF_LOG_LOSS and self.relation == REPLACE

    @property
    def rule(self) -> Any:
        if self.paper_on_log_loss:
            weighted = "sample_weight" in self.options
            return paper_on_log_loss(float(weights(self.n).sum()) if weighted else self.n)
        return MECHANISMS[self.mechanism]

    def public(self) -> Options:
        return {key: value(self.n) if callable(value) else value for key, value in self.options.items()}

    def settings(self, seed: int) -> Options:
        relation = {} if self.name == "private_quantile" else {"neighboring": self.relation}
        rule = {"mechanism": self.rule, "epsilon": self.epsilon, "random_state": seed}
        return {**self.public(), **relation, **rule}


def serves(mechanism: str, limited: bool, relation: str) -> bool:
    """Tell whether a mechanism can release a metric with, or without, a public limit."""
    if mechanism in NEED_A_COUNT and relation == ADD_OR_REMOVE:
        return False
    return limited or mechanism not in NEED_A_LIMIT


@dataclass(frozen=True)
class Row:
    """How one metric is called.

    `plain` and `limited` are its options without and with a public limit; None where it has no such form.
    `extras` are further options by name, with a kind of data of their own or None for the usual one.
    """

    kind: str
    plain: Options | None
    limited: Options | None
    extras: Extras = field(default_factory=dict)
    relations: tuple[str, ...] = BOTH

    def calls(self, name: str, **settings: Any) -> Iterator[tuple[bool, Call]]:
        """Yield whether a form has a public limit, and its call."""
        for form, options in (("plain", self.plain), ("limited", self.limited)):
            if options is not None:
                yield form == "limited", Call(name, form, self.kind, options, **settings)

    @property
    def usual(self) -> Options:
        """The options that are always needed."""
        return self.limited or {} if self.plain is None else self.plain


WEIGHTED: Extras = {
    "weights": (None, {"sample_weight": weights}),
    "groups": (None, {"groups": groups}),
    "weights,groups": (None, {"sample_weight": weights, "groups": groups}),
}
UNNORMALIZED: Extras = {
    "normalize=False": (None, {"normalize": False}),
    "normalize=False,weights": (None, {"normalize": False, "sample_weight": weights}),
}


def several_outputs(kind: str) -> Extras:
    return {
        "3 outputs": (f"{kind} x 3", {}),
        "2 outputs,raw_values": (f"{kind} x 2", {"multioutput": "raw_values"}),
        "3 outputs,averaged": (f"{kind} x 3", {"multioutput": [0.2, 1.1, 0.7]}),
    }


def errors(kind: str) -> Extras:
    both = {"sample_weight": weights, "groups": groups}
    return {
        **WEIGHTED,
        **several_outputs(kind),
        "3 outputs,weights,groups": (f"{kind} x 3", both),
        "2 outputs,raw_values,weights,groups": (f"{kind} x 2", {"multioutput": "raw_values", **both}),
    }


RANGE: Options = {"bounds": (-4.0, 6.0)}
WORDS: Options = {"labels": ["ham", "spam"]}
COUNTS: Extras = {
    **WEIGHTED,
    **UNNORMALIZED,
    "words": ("words", {}),
    "2 labels a record": ("classes x 2", {}),
}
LOG_LOSS: Extras = {
    **WEIGHTED,
    **UNNORMALIZED,
    "3 labels": ("multiclass", {}),
    "labels": ("binary words", WORDS),
    "float32": ("binary float32", {}),
}
BRIER: Extras = {
    **WEIGHTED,
    "3 labels": ("multiclass", {}),
    "3 labels,scale_by_half": ("multiclass", {"scale_by_half": True}),
    "scale_by_half=False": (None, {"scale_by_half": False}),
    "labels": ("binary words", WORDS),
    "pos_label": ("binary words", {"pos_label": "ham", **WORDS}),
    "float32": ("binary float32", {}),
}
R2: Extras = {**several_outputs("targets"), "error_share=0.3": (None, {"error_share": 0.3})}
PINBALL: Extras = {**errors("targets"), "alpha=1": (None, {"alpha": 1.0})}
COLUMN: Extras = {"ddof=1": (None, {"ddof": 1}), "ddof=-0.5": (None, {"ddof": -0.5})}
QUANTILES: Extras = {f"q={q}": (None, {"q": q}) for q in (0, 0.25, 0.9, 1)}
REVEALING = {"sample_weight", "groups", "normalize", "ddof"}  # a private number of records

ROWS = {
    "private_mse": Row("targets", {}, RANGE, errors("targets")),
    "private_mae": Row("targets", {}, RANGE, errors("targets")),
    "private_rmse": Row("targets", {}, RANGE, errors("targets")),
    "private_r2_score": Row("targets", {}, RANGE, R2),
    "private_mean_pinball_loss": Row("targets", {"alpha": 0.3}, {"alpha": 0.3, **RANGE}, PINBALL),
    "private_mean_squared_log_error": Row("positive", {}, {"bounds": (0.0, 12.0)}, errors("positive")),
    "private_mean_absolute_percentage_error": Row("positive", {}, {"max_loss": 1.5}, errors("positive")),
    "private_mean_poisson_deviance": Row("counts", {}, {"max_loss": 6.0}, WEIGHTED),
    "private_mean_loss": Row("losses", {}, {"max_loss": 8.0}, WEIGHTED),
    "private_log_loss": Row("binary", {}, {"max_loss": 4.0}, LOG_LOSS),
    "private_brier_score_loss": Row("binary", None, {}, BRIER),
    "private_zero_one_loss": Row("classes", None, {}, COUNTS),
    "private_accuracy_score": Row("classes", None, {}, COUNTS),
    "private_mean": Row("column", None, RANGE, WEIGHTED),
    "private_variance": Row("column", {}, RANGE, COLUMN),
    "private_std": Row("column", {}, RANGE, COLUMN),
    "private_quantile": Row(
        "column", {"q": 0.5, "bounds": (-4.0, None)}, {"q": 0.5, **RANGE}, QUANTILES, (REPLACE,)
    ),
}
SUMMARISED = [
    name
    for name in ROWS
    if name not in ("private_r2_score", "private_variance", "private_std", "private_quantile")
]


def every_mechanism() -> Iterator[Call]:
    for name, row in ROWS.items():
        for relation, mechanism in itertools.product(row.relations, MECHANISMS):
            for limited, call in row.calls(name, mechanism=mechanism, relation=relation):
                if serves(mechanism, limited, relation):
                    yield call


def every_size() -> Iterator[Call]:
    for name, row in ROWS.items():
        for relation, epsilon in itertools.product(row.relations, (0.05, 1, 5)):
            sizes = [1 if relation == REPLACE else 0, 7]
            if epsilon == 1 or name == "private_mse":
                sizes.append(20_000)
            for n, mechanism in itertools.product(sizes, ("hazard", "geometric")):
                settings = {"mechanism": mechanism, "relation": relation, "n": n, "epsilon": epsilon}
                for limited, call in row.calls(name, **settings):
                    if serves(mechanism, limited, relation):
                        yield call
        for epsilon in (0.05, 5):
            for _, call in row.calls(name, mechanism="above_threshold", epsilon=epsilon):
                yield call


def every_option() -> Iterator[Call]:
    yield from with_extras(["hazard", "above_threshold", "geometric"])
    # of few records and with little noise: the last bit of one loss shows
    for n in (7, 30):
        yield from with_extras(["laplace"], n=n, epsilon=50)


def with_extras(mechanisms: Iterable[str], **settings: Any) -> Iterator[Call]:
    for name, row in ROWS.items():
        for relation, mechanism in itertools.product(row.relations, mechanisms):
            for limited, call in row.calls(name, mechanism=mechanism, relation=relation, **settings):
                for extra, (kind, more) in row.extras.items():
                    if relation == ADD_OR_REMOVE and REVEALING & more.keys():
                        continue
                    if serves(mechanism, limited, relation):
                        form, options = f"{call.form},{extra}", {**call.options, **more}
                        yield replace(call, form=form, kind=kind or call.kind, options=options)


# ---- defaults: who draws if no mechanism is named ----------------------------------------------------------


def defaults() -> Iterator[tuple[str, Case]]:
    for name, row in ROWS.items():
        for relation in row.relations:
            for _, call in row.calls(name, relation=relation):
                yield f"{name}/{call.form}/{relation}", partial(_default, partial(_default_metric, call))
    for relation in BOTH:
        for name in REPORTS:
            call = Call(name, "plain", REPORTS[name].kind, {"output_dict": True}, relation=relation)
            yield f"{name}/{relation}", partial(_default, partial(_default_metric, call))
        for name in ("private_mse", "private_accuracy_score", "private_mean"):
            call = Call(name, "plain", ROWS[name].kind, ROWS[name].usual, relation=relation)
            yield f"LossSummary/{name}/{relation}", partial(_default, partial(_default_loss_summary, call))
            yield f"dask/{name}/{relation}", partial(_default, partial(_default_dask, call))
        call = Call("private_variance", "plain", "column", {}, relation=relation)
        yield f"dask/private_variance/{relation}", partial(_default, partial(_default_dask, call))
        yield f"VarianceSummary/{relation}", partial(_default, partial(_default_variance_summary, call))
    yield "scorer", partial(_default, _default_scorer)
    yield "expected_error", lambda seed: planned_error(dp.private_mean_loss, records("losses", 300)[0], 1.0)
    call = Call("private_mean_loss", "plain", "losses", {})
    yield "metric_loss", lambda seed: audited(call, _unnamed(call, seed))


def _default(release: Callable[..., Any], seed: int) -> Any:
    """Return what a release is, and what the accountant says that drew it."""
    accountant = PrivacyAccountant(1)
    value = release(seed, accountant=accountant)
    return {"mechanism": accountant.history[0].mechanism, "value": value}


def _unnamed(call: Call, seed: int) -> Options:
    return {name: value for name, value in call.settings(seed).items() if name != "mechanism"}


def _default_metric(call: Call, seed: int, **paid: Any) -> Any:
    return getattr(dp, call.name)(*records(call.kind, call.n), **_unnamed(call, seed), **paid)


def _default_loss_summary(call: Call, seed: int, **paid: Any) -> Any:
    return streamed(call).release(1, neighboring=call.relation, random_state=seed, **paid)


def _default_variance_summary(call: Call, seed: int, **paid: Any) -> Any:
    summary = VarianceSummary.from_data(*records("column", 300))
    return summary.release(1, neighboring=call.relation, random_state=seed, **paid)


def _default_dask(call: Call, seed: int, **paid: Any) -> Any:
    return in_dask(call, {**_unnamed(call, seed), **paid})


def _default_scorer(seed: int, **paid: Any) -> Any:
    with seeded_urandom(seed):
        return dp.make_private_scorer(dp.private_mse, epsilon=1.0, **paid)(
            FirstColumn(), *features("targets")
        )


# ---- AboveThreshold.paper() on log loss --------------------------------------------------------------------


def paper_log_loss() -> Iterator[tuple[str, Case]]:
    paper = "AboveThreshold.paper"
    for call in itertools.chain(every_mechanism(), with_extras([paper])):
        if call.paper_on_log_loss:
            yield str(call), call
    for n, epsilon in itertools.product((1, 7, 20_000), (0.05, 1, 5)):
        call = Call("private_log_loss", "plain", "binary", {}, paper, n=n, epsilon=epsilon)
        yield str(call), call
    call = Call("private_log_loss", "plain", "binary", {}, paper)
    for chunk, capacity in ((300, 1024), (64, 1024), (64, 100)):
        yield f"LossSummary/chunk={chunk}/capacity={capacity}", partial(_streamed, call, chunk, capacity)
    for form, options in (("plain", {}), ("weights", {"sample_weight": weights})):
        yield f"dask/{form}", partial(_dask, replace(call, form=form, options=options))
    for epsilon in (1, 5):
        report = Call("private_probability_report", "plain", "binary", {}, paper, epsilon=epsilon)
        yield str(report), partial(_paper_report, report)
    yield "scorer", partial(_paper_scorer, call)


def _paper_report(call: Call, seed: int) -> Any:
    # Each release of the report draws from the start of one stream: the log loss does not depend on how the
    # unit, which is meant for it alone, changes what the accuracy draws.
    with seeded_urandom(seed, restart=True):
        settings = {**call.settings(seed), "random_state": None, "output_dict": True}
        report: Any = dp.private_probability_report(*records(call.kind, call.n), **settings)
    return report["log_loss"]


def _paper_scorer(call: Call, seed: int) -> Any:
    with seeded_urandom(seed):
        scorer = dp.make_private_scorer(dp.private_log_loss, epsilon=1.0, mechanism=call.rule)
        return scorer(FirstColumnClassifier().fit(*features("binary")), *features("binary"))


# ---- summaries ---------------------------------------------------------------------------------------------


def chunks(call: Call, rows: int) -> Iterator[tuple[list[NDArray[Any]], Options]]:
    """Yield the data and the weights of each chunk."""
    per_record = {"sample_weight": weights(call.n)} if "sample_weight" in call.options else {}
    for start in range(0, call.n, rows):
        own = slice(start, start + rows)
        data = [array[own] for array in records(call.kind, call.n)]
        yield data, {name: array[own] for name, array in per_record.items()}


def settings_of_summary(call: Call) -> Options:
    return {name: value for name, value in call.options.items() if name != "sample_weight"}


def streamed(call: Call, rows: int = 64, capacity: int = 1024) -> LossSummary:
    """Return the summary of records that came in chunks."""
    summary = LossSummary(getattr(dp, call.name), capacity=capacity, **settings_of_summary(call))
    for data, weight in chunks(call, rows):
        summary.update(*data, **weight)
    return summary


def _streamed(call: Call, rows: int, capacity: int, seed: int) -> Any:
    summary = streamed(call, rows, capacity)
    return summary.release(call.epsilon, neighboring=call.relation, mechanism=call.rule, random_state=seed)


def _merged(call: Call, seed: int) -> Any:
    """Return a release of chunks of which each was summarised, sent and merged, and a digest of its bytes."""
    metric, options = getattr(dp, call.name), settings_of_summary(call)
    parts = []
    for data, weight in chunks(call, 70):
        part = LossSummary.from_data(metric, *data, **weight, capacity=200, **options)
        parts.append(LossSummary.from_bytes(part.to_bytes()))
    while len(parts) > 1:
        parts = [*parts[2:], parts[0].merge(parts[1])]
    value = parts[0].release(call.epsilon, neighboring=call.relation, mechanism=call.rule, random_state=seed)
    return {"bytes": digest(parts[0].to_bytes()), "value": value}


def summaries() -> Iterator[tuple[str, Case]]:
    for name in SUMMARISED:
        row = ROWS[name]
        for relation, mechanism in ((REPLACE, "geometric"), (REPLACE, "hazard"), (ADD_OR_REMOVE, "hazard")):
            for limited, call in row.calls(name, relation=relation, mechanism=mechanism):
                if serves(mechanism, limited, relation):
                    yield f"streamed/{call}", partial(_streamed, call, 64, 1024)
                    yield f"merged/{call}", partial(_merged, call)
        for extra, (kind, more) in row.extras.items():
            single = name == "private_rmse" and "outputs" in extra  # refused, as are several numbers
            if not single and extra != "2 outputs,raw_values" and "groups" not in more:
                call = Call(name, extra, kind or row.kind, {**row.usual, **more})
                yield f"merged/{call}", partial(_merged, call)
    for capacity, mechanism in itertools.product((5, 50, 100), ("hazard", "above_threshold")):
        call = Call("private_mae", "plain", "targets", {}, mechanism)
        yield f"streamed/capacity={capacity}/{call}", partial(_streamed, call, 64, capacity)
    yield "several releases of one summary", _several_releases
    for relation in BOTH:
        for _, call in ROWS["private_variance"].calls("private_variance", relation=relation):
            for ddof, capacity in itertools.product((0, 1) if relation == REPLACE else (0,), (40, 1024)):
                name = f"VarianceSummary/ddof={ddof}/capacity={capacity}/{call}"
                yield name, partial(_variance, call, ddof, capacity)


def _several_releases(seed: int) -> Any:
    summary = streamed(Call("private_mae", "limited", "targets", RANGE))
    mechanisms = ("hazard", "geometric", "inverse_sensitivity", "piecewise_laplace")
    return [
        summary.release(epsilon, mechanism=mechanism, random_state=seed)
        for epsilon, mechanism in itertools.product((0.05, 1, 5), mechanisms)
    ]


def _variance(call: Call, ddof: int, capacity: int, seed: int) -> Any:
    parts = [VarianceSummary(capacity=capacity, **call.options) for _ in range(2)]
    for number, (data, _) in enumerate(chunks(call, 64)):
        parts[number % 2].update(*data)
    sent = VarianceSummary.from_bytes(parts[0].merge(parts[1]).to_bytes())
    value = sent.release(
        call.epsilon, ddof=ddof, neighboring=call.relation, mechanism=call.rule, random_state=seed
    )
    return {"bytes": digest(sent.to_bytes()), "value": value}


# ---- Dask --------------------------------------------------------------------------------------------------


def in_dask(call: Call, settings: Options, *, frames: bool = False) -> Any:
    """Return a release of Dask collections, computed in this thread."""
    import dask
    import dask.array as da
    import dask.dataframe as dd

    from dp_metrics import distributed

    data = [da.from_array(array, chunks=(80, *array.shape[1:])) for array in records(call.kind, call.n)]
    if frames:
        data = [dd.from_dask_array(collection) for collection in data]
    if "sample_weight" in settings:
        settings = {**settings, "sample_weight": da.from_array(settings["sample_weight"], chunks=80)}
    with dask.config.set(scheduler="synchronous"):
        return getattr(distributed, call.name)(*data, **settings)


def _dask(call: Call, seed: int, **how: Any) -> Any:
    return in_dask(call, call.settings(seed), **how)


def dask_metrics() -> Iterator[tuple[str, Case]]:
    for name in (*SUMMARISED, "private_variance", "private_std"):
        row = ROWS[name]
        limited = {} if row.limited is None else row.limited
        calls = [
            Call(name, "limited", row.kind, limited, "geometric"),
            Call(name, "limited", row.kind, limited, "hazard", ADD_OR_REMOVE),
        ]
        if "weights" in row.extras:
            calls.append(Call(name, "weights", row.kind, {**row.usual, "sample_weight": weights}))
        for call in calls:
            yield str(call), partial(_dask, call)
    for name, form, kind, options in (
        ("private_mae", "3 outputs", "targets x 3", {}),
        ("private_mse", "3 outputs,averaged", "targets x 3", {"multioutput": [0.2, 1.1, 0.7]}),
        ("private_log_loss", "3 labels,max_loss", "multiclass", {"max_loss": 4.0}),
        ("private_brier_score_loss", "labels,pos_label", "binary words", {"pos_label": "ham", **WORDS}),
        ("private_accuracy_score", "normalize=False", "classes", {"normalize": False}),
        ("private_variance", "ddof=1", "column", {"ddof": 1}),
    ):
        call = Call(name, form, kind, options, "above_threshold")
        yield str(call), partial(_dask, call)
    call = Call("private_mse", "data frames", "targets", {})
    yield str(call), partial(_dask, call, frames=True)


# ---- reports -----------------------------------------------------------------------------------------------

REPORTS = {
    "private_regression_report": Row(
        "targets", {}, RANGE, {"split": (None, {"split": {"mse": 2, "mae": 1, "variance": 0.5}})}
    ),
    "private_probability_report": Row(
        "binary",
        None,
        {},
        {
            "max_loss": (None, {"max_loss": 4.0}),
            "split": (None, {"split": {"accuracy": 1, "log_loss": 3, "brier_score_loss": 0.1}}),
            "3 labels": ("multiclass", {}),
            "labels": ("binary words", WORDS),
        },
    ),
}


def _report(call: Call, seed: int) -> Any:
    return getattr(dp, call.name)(*records(call.kind, call.n), output_dict=True, **call.settings(seed))


def reports() -> Iterator[tuple[str, Case]]:
    for name, row in REPORTS.items():
        calls = []
        for relation, mechanism in itertools.product(BOTH, MECHANISMS):
            for limited, call in row.calls(name, relation=relation, mechanism=mechanism, epsilon=3):
                if serves(mechanism, limited, relation):
                    calls.append(call)
        for extra, (kind, more) in row.extras.items():
            for relation in BOTH:
                calls.append(Call(name, extra, kind or row.kind, more, relation=relation, epsilon=3))
        for n, epsilon in ((1, 0.05), (1, 5), (7, 0.05), (7, 5), (20_000, 5)):
            calls.append(Call(name, "plain", row.kind, {}, n=n, epsilon=epsilon))
        for call in calls:
            if not call.paper_on_log_loss:
                yield str(call), partial(_report, call)
        yield f"{name}/text", Call(name, "text", row.kind, {"digits": 3}, epsilon=3)


# ---- scorers, searches -------------------------------------------------------------------------------------


@contextmanager
def seeded_urandom(seed: int, *, restart: bool = False) -> Iterator[None]:
    """Give dp_metrics a seeded stream for the operating system's; no matter in which module it asks for it.

    Whoever else asks, such as joblib for a name, gets the real one. With `restart`, each draw begins anew.
    """
    stream, real = np.random.default_rng(seed), os.urandom

    def urandom(size: int) -> bytes:
        if not sys._getframe(1).f_globals["__name__"].startswith("dp_metrics"):
            return real(size)
        source = np.random.default_rng(seed) if restart else stream
        return source.integers(0, 2**64, size=-(-size // 8), dtype=np.uint64).tobytes()[:size]

    with mock.patch.object(os, "urandom", urandom):
        yield


class FirstColumn(RegressorMixin, BaseEstimator):
    """Predicts the first column, plus a number: nothing that is fitted can depend on the machine."""

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, X: Any, y: Any) -> "FirstColumn":
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Any) -> Any:
        return X[:, 0] + self.shift


class FirstColumnClassifier(ClassifierMixin, BaseEstimator):
    """Takes the first column for the probability of the second class."""

    def __init__(self, flip: bool = False) -> None:
        self.flip = flip

    def fit(self, X: Any, y: Any) -> "FirstColumnClassifier":
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X: Any) -> Any:
        p = 1 - X[:, 0] if self.flip else X[:, 0]
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


def features(kind: str, n: int = 300) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return X, whose first column is a prediction, and y."""
    y, p = records(kind, n)
    return np.column_stack([p, np.arange(n) / 4]), y


def model_for(name: str) -> tuple[str, BaseEstimator]:
    kind = ROWS[name].kind
    if kind in ("classes", "binary"):
        return "binary", FirstColumnClassifier()
    return kind, FirstColumn()


SCORED = [name for name, row in ROWS.items() if row.kind not in ("losses", "column")]


def scorers() -> Iterator[tuple[str, Case]]:
    of_these = [name for name in dp.get_private_scorer_names() if name.removeprefix("neg_") in SCORED]
    yield "names", lambda seed: of_these
    for name in SCORED:
        for relation in BOTH:
            yield f"{name}/hazard/{relation}", partial(_score, name, relation)
        yield f"{name}/cross_val_score", partial(_cross_validated, name)
    for name in ("private_mse", "private_accuracy_score"):
        yield f"{name}/GridSearchCV", partial(_grid_search, name)
    yield "private_mae/ready-made,bounds,weights", _weighted_score
    yield "a metric of one's own", _own_metric


def _score(name: str, relation: str, seed: int) -> Any:
    kind, model = model_for(name)
    accountant = PrivacyAccountant(1)
    with seeded_urandom(seed):
        scorer = dp.make_private_scorer(
            getattr(dp, name),
            epsilon=1.0,
            accountant=accountant,
            mechanism="hazard",
            neighboring=relation,
        )
        score = scorer(model.fit(*features(kind)), *features(kind))
    return {"score": score, "history": history(accountant)}


def _cross_validated(name: str, seed: int) -> Any:
    kind, model = model_for(name)
    with seeded_urandom(seed):
        scorer = dp.make_private_scorer(getattr(dp, name), epsilon=0.5, mechanism="hazard")
        return cross_val_score(model, *features(kind), cv=KFold(3), scoring=scorer, error_score="raise")


def _grid_search(name: str, seed: int) -> Any:
    kind, model = model_for(name)
    settings = {"flip": [False, True]} if kind == "binary" else {"shift": [0.0, 2.0]}
    with seeded_urandom(seed):
        scorer = dp.make_private_scorer(getattr(dp, name), epsilon=1.0, mechanism="hazard")
        search = GridSearchCV(model, settings, scoring=scorer, cv=KFold(3), error_score="raise")
        search.fit(*features(kind))
    return {
        "best": search.best_params_,
        "scores": [search.cv_results_[f"split{fold}_test_score"] for fold in range(3)],
    }


def _weighted_score(seed: int) -> Any:
    with seeded_urandom(seed):
        scorer = dp.get_private_scorer("neg_private_mae", epsilon=1.0, mechanism="geometric", **RANGE)
        return scorer(FirstColumn(0.5), *features("targets"), sample_weight=weights(300))


def own_metric(y_true: Any, y_pred: Any, *, epsilon: Any, accountant: Any = None) -> float:
    squares = np.square(y_true - y_pred)
    return dp.private_mean_loss(
        np.sqrt(1.0 + squares) - 1.0, epsilon=epsilon, accountant=accountant, mechanism="hazard"
    )


def _own_metric(seed: int) -> Any:
    accountant = PrivacyAccountant(1)
    with seeded_urandom(seed):
        scorer = dp.make_private_scorer(
            own_metric, epsilon=0.5, accountant=accountant, greater_is_better=False
        )
        score = scorer(FirstColumn(), *features("targets"))
    return {"score": score, "history": history(accountant)}


def searches() -> Iterator[tuple[str, Case]]:
    for name, relation in itertools.product(
        ("private_mse", "private_mae", "private_log_loss", "private_accuracy_score"), BOTH
    ):
        yield f"{name}/hazard/{relation}/expected_iter=4", partial(_search, name, relation, 4, 3.0)
    for expected_iter, epsilon in itertools.product((1, 6, 2.5), (0.3, 3.0)):
        yield (
            f"private_mse/hazard/replace_one/expected_iter={expected_iter}/eps={epsilon}",
            partial(_search, "private_mse", REPLACE, expected_iter, epsilon),
        )


def _search(name: str, relation: str, expected_iter: float, epsilon: float, seed: int) -> Any:
    kind, model = model_for(name)
    settings = {"flip": [False, True]} if kind == "binary" else {"shift": [0.0, 0.5, 1.0, -8.0]}
    X, y = features(kind)
    accountant = PrivacyAccountant(3)
    with seeded_urandom(seed):
        search = dp.PrivateRandomizedSearch(
            model,
            settings,
            metric=getattr(dp, name),
            epsilon=epsilon,
            expected_iter=expected_iter,
            accountant=accountant,
            metric_params={"mechanism": "hazard", "neighboring": relation},
        ).fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    return {
        "best_params_": {key: _plain(value) for key, value in search.best_params_.items()},
        "best_score_": search.best_score_,
        "predict": search.predict(X[150:153]),
        "history": history(accountant),
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# ---- budgets and plans -------------------------------------------------------------------------------------


def history(accountant: PrivacyAccountant) -> list[Any]:
    return [[s.label, s.mechanism, s.epsilon, s.neighboring] for s in accountant.history]


def ledger(accountant: PrivacyAccountant) -> Any:
    return {
        "history": history(accountant),
        "total": accountant.total,
        "spent": accountant.spent,
        "remaining": accountant.remaining,
    }


def accountants() -> Iterator[tuple[str, Case]]:
    for name, row in ROWS.items():
        for relation in row.relations:
            yield f"{name}/{relation}", partial(_paid_release, name, relation)
    for name, relation in itertools.product(REPORTS, BOTH):
        yield f"{name}/{relation}", partial(_paid_report, name, relation)
    for kept in ("memory", "file"):
        yield f"several metrics/{kept}", partial(_several_spends, kept)
    yield "summaries", _paid_summaries
    yield "dask", _paid_dask
    yield "exact sums", _exact_sums


def _paid_release(name: str, relation: str, seed: int) -> Any:
    accountant, row = PrivacyAccountant(10), ROWS[name]
    for mechanism in MECHANISMS:
        # the settings of AboveThreshold may get other names
        if serves(mechanism, True, relation) and not mechanism.startswith("AboveThreshold"):
            options = {**(row.limited or row.usual), "accountant": accountant}
            Call(name, "paid", row.kind, options, mechanism, relation, 7, 0.3)(seed)
    return ledger(accountant)


def _paid_report(name: str, relation: str, seed: int) -> Any:
    accountant, row = PrivacyAccountant(1), REPORTS[name]
    for mechanism in ("hazard", "inverse_sensitivity"):
        options = {**(row.limited or {}), "accountant": accountant}
        Call(name, "paid", row.kind, options, mechanism, relation, 7, 0.3)(seed)
    return ledger(accountant)


def _several_spends(kept: str, seed: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "budget.sqlite") if kept == "file" else None
        accountant = PrivacyAccountant(Fraction(7, 3), path)
        accountant.spend(0.1, "by hand", mechanism="of one's own")
        values = [
            dp.private_mse(
                *records("targets", 7),
                epsilon=epsilon,
                mechanism="hazard",
                accountant=accountant,
                random_state=seed,
            )
            for epsilon in (0.1, 0.2, 1)
        ]
        return {"values": values, **ledger(accountant)}


def _paid_summaries(seed: int) -> Any:
    accountant = PrivacyAccountant(2)
    paid: Options = {"mechanism": "hazard", "accountant": accountant, "random_state": seed}
    for name in ("private_mse", "private_rmse", "private_accuracy_score", "private_log_loss"):
        streamed(Call(name, "paid", ROWS[name].kind, {}, n=7)).release(0.25, **paid)
    VarianceSummary.from_data(*records("column", 7)).release(0.25, **paid)
    return ledger(accountant)


def _paid_dask(seed: int) -> Any:
    accountant = PrivacyAccountant(3)
    for name in ("private_rmse", "private_accuracy_score", "private_std"):
        _dask(Call(name, "paid", ROWS[name].kind, {"accountant": accountant}), seed)
    return ledger(accountant)


def _exact_sums(seed: int) -> Any:
    accountant = PrivacyAccountant(1)
    for epsilon in (0.1, 0.2, Fraction(1, 3), 0.05):
        accountant.spend(epsilon, "a share")
    sevenths = [PrivacyAccountant(Fraction(parts, 7)).remaining for parts in range(1, 15)]
    return {"sevenths": sevenths, **ledger(accountant)}


def planning() -> Iterator[tuple[str, Case]]:
    scorer = dp.get_private_scorer("neg_private_mse", epsilon=1.0)
    grid: Options = {"shift": [0.0, 1.0, 2.0]}
    counts: dict[str, Callable[[], Any]] = {
        "cv=5": lambda: dp.count_releases(5, scoring=scorer),
        "cv=None": lambda: dp.count_releases(None),
        "KFold(3),train scores,2 scorers": lambda: dp.count_releases(
            KFold(3), scoring={"a": scorer, "b": scorer}, return_train_score=True
        ),
        "learning curve": lambda: dp.count_releases(
            4, *features("targets"), scoring=scorer, train_sizes=[0.1, 0.5, 1.0]
        ),
        "permutation importance": lambda: dp.count_releases(
            None, *features("targets"), scoring=scorer, n_repeats=7
        ),
        "GridSearchCV": lambda: dp.count_releases(GridSearchCV(FirstColumn(), grid, scoring=scorer, cv=4)),
        "RandomizedSearchCV": lambda: dp.count_releases(
            RandomizedSearchCV(FirstColumn(), grid, n_iter=2, scoring=scorer, cv=4)
        ),
        "nested": lambda: dp.count_releases(
            3,
            *features("targets"),
            estimator=GridSearchCV(FirstColumn(), grid, scoring=scorer, cv=4),
            scoring=scorer,
        ),
        "PrivateRandomizedSearch": lambda: dp.count_releases(
            dp.PrivateRandomizedSearch(FirstColumn(), grid, metric=dp.private_mse, epsilon=1.0)
        ),
    }
    for name, count in counts.items():
        yield f"count_releases/{name}", partial(_unseeded, count)
    named = [name for name, mechanism in MECHANISMS.items() if isinstance(mechanism, str)]
    metrics: dict[Any, tuple[NDArray[Any], Options]] = {
        dp.private_mean_loss: (records("losses", 300)[0], {"max_loss": 40.0}),
        dp.private_variance: (records("column", 300)[0], {"bounds": (-40.0, 40.0)}),
        dp.private_zero_one_loss: ((records("losses", 300)[0] > 0.75).astype(float), {}),
    }
    for metric, (data, limit) in metrics.items():
        name = metric.__name__
        plain: Options = {"mechanism": "hazard"}
        plans = {
            "plain": plain,
            "n=2000": {**plain, "n": 2000},
            "error_cap=0.5": {**plain, "error_cap": 0.5},
            "resolution": {"mechanism": Hazard(resolution=0.1)},
        }
        for mechanism, relation in itertools.product(named, BOTH):
            if serves(mechanism, True, relation):
                plans[f"{mechanism}/{relation}"] = {"mechanism": mechanism, "neighboring": relation, **limit}
        for plan, options in plans.items():
            for epsilon in (1,) if options["mechanism"] == "above_threshold" else (0.05, 1, 5):
                make = partial(planned_error, metric, data, epsilon, **options)
                yield f"expected_error/{name}/{plan}/n=300/eps={epsilon}", partial(_unseeded, make)
        for error in (0.05, 0.5):
            make = partial(planned_epsilon, metric, data, error, **plain, **limit)
            yield f"epsilon_for_error/{name}/error={error}", partial(_unseeded, make)


def _unseeded(make: Callable[[], Any], seed: int) -> Any:
    return make()


# ---- audits ------------------------------------------------------------------------------------------------


def audited(call: Call, settings: Options) -> float:
    """Return the privacy loss of a metric on twelve records, of which the last is replaced or removed."""
    a = records(call.kind, 12)
    remove = call.relation == ADD_OR_REMOVE
    b = [array[:-1] if remove else np.append(array[:-1], array[:1]) for array in a]
    return auditing.metric_loss(getattr(dp, call.name), a, b, **{**settings, "epsilon": 0.75})


def _audited(call: Call, seed: int) -> float:
    return audited(call, call.settings(seed))


def audits() -> Iterator[tuple[str, Case]]:
    mechanisms = ("hazard", "above_threshold", "laplace", "geometric", "piecewise_laplace")
    for name in (
        "private_mse",
        "private_log_loss",
        "private_accuracy_score",
        "private_variance",
        "private_quantile",
        "private_r2_score",
    ):
        for relation, mechanism in itertools.product(ROWS[name].relations, mechanisms):
            if relation == ADD_OR_REMOVE and name != "private_mse":
                continue
            for limited, call in ROWS[name].calls(name, relation=relation, mechanism=mechanism):
                if limited and serves(mechanism, limited, relation):
                    yield f"metric_loss/{name}/{mechanism}/{relation}", partial(_audited, call)
    for mechanism in ("hazard", "geometric"):
        yield f"audit/private_mean_loss/{mechanism}", partial(_worst_pair, mechanism)
    yield "finite_loss", lambda seed: auditing.finite_loss([0.25, 0.25, 0.5], [0.125, 0.5, 0.375])
    yield "loss_lower_bound", _lower_bound


def _lower_bound(seed: int) -> float:
    [losses] = records("losses", 300)
    # its last bits are those of scipy's special functions
    return round(auditing.loss_lower_bound(losses, losses + 0.5), 6)


def _worst_pair(mechanism: str, seed: int) -> Any:
    def loss(a: NDArray[Any], b: NDArray[Any]) -> float:
        return auditing.metric_loss(
            dp.private_mean_loss, [a], [b], epsilon=0.75, mechanism=mechanism, max_loss=1.0
        )

    result = auditing.audit("private_mean_loss", loss, epsilon=0.75, n=4, steps=10)
    return {"worst": result.worst, "pair": list(result.pair), "pairs": result.pairs}


# ---- the table ---------------------------------------------------------------------------------------------


def _metric_cases(calls: Iterable[Call]) -> Iterator[tuple[str, Case]]:
    return ((str(call), call) for call in calls if not call.paper_on_log_loss)


def _named(cases: Iterator[tuple[str, Case]]) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, case in cases:
        if name in found:
            raise ValueError(f"Two cases are named {name}.")
        found[name] = case
    return found


# ---- classifiers: whatever judges labels or scores, from the catalogue, and by group


def classifiers() -> Iterator[tuple[str, Case]]:
    rng = np.random.default_rng(16)
    y, p, g = rng.integers(0, 2, (3, 200))
    scores = rng.integers(0, 65, 200) / 64
    several = rng.integers(0, 5, (2, 200))
    for name, row in METRICS.items():
        if row.mechanism is None or name in ("private_roc_auc_score", "private_top_k_accuracy_score"):
            second = np.stack([1 - scores, scores], axis=1) if "top_k" in name else scores
            data = (y, p if row.predicts_labels else second)
            for relation, epsilon in itertools.product(BOTH, (0.3, 4)):
                settings = {"epsilon": epsilon, "neighboring": relation}
                if name == "private_classification_report":
                    settings["output_dict"] = True
                yield f"{name}/{relation}/eps={epsilon}", partial(_classifier, name, data, settings)
        if "average" in row.options and row.is_confusion:
            for average in ("macro", "weighted", "micro", None):
                settings = {"epsilon": 2, "average": average, "labels": range(5)}
                yield f"{name}/{average}", partial(_classifier, name, several, settings)
    for membership, name in itertools.product(("private", "public"), ("f1", "accuracy", "brier")):
        metric, second = {
            "f1": (dp.private_f1_score, p),
            "accuracy": (dp.private_accuracy_score, p),
            "brier": (dp.private_brier_score_loss, scores),
        }[name]
        yield f"frame/{membership}/{name}", partial(_frame, metric, y, second, g, membership)


def _classifier(name: str, data: Any, settings: Options, seed: int) -> Any:
    return getattr(dp, name)(*data, random_state=seed, **settings)


def _frame(metric: Any, y: Any, p: Any, g: Any, membership: str, seed: int) -> Any:
    frame = dp.PrivateMetricFrame(
        metrics=metric,
        y_true=y,
        y_pred=p,
        sensitive_features=g,
        group_labels=[0, 1],
        epsilon=2,
        membership=membership,
        random_state=seed,
    )
    return [frame.overall, *frame.by_group.values()]


# ---- inference: what is drawn for intervals and comparisons ------------------------------------------------


def inference() -> Iterator[tuple[str, Case]]:
    rng = np.random.default_rng(17)
    y, a, b = rng.integers(0, 2, (3, 900))
    losses = rng.integers(0, 1 << 20, 900) / (1 << 18)
    for epsilon in (0.5, 3):
        for method in ("normal", "exact"):
            settings = {"max_loss": 4.0, "epsilon": epsilon, "method": method}
            yield f"private_mean_interval/{method}/eps={epsilon}", partial(_estimate, losses, settings)
        for max_loss in (None, 4.0):
            settings = {"q": 0.5, "epsilon": epsilon, "max_loss": max_loss}
            yield f"private_quantile_interval/{max_loss}/eps={epsilon}", partial(_limits, losses, settings)
        yield f"private_compare/eps={epsilon}", partial(_wins, (y, a, b), {"epsilon": epsilon})


def _estimate(losses: Any, settings: Options, seed: int) -> Any:
    return dp.private_mean_interval(losses, random_state=seed, **settings).estimate


def _limits(losses: Any, settings: Options, seed: int) -> Any:
    return [*dp.private_quantile_interval(losses, random_state=seed, **settings)]


def _wins(data: Any, settings: Options, seed: int) -> Any:
    found = dp.private_compare(*data, random_state=seed, **settings)
    return [found.noisy_difference, found.noisy_decided]


GROUPS: dict[str, dict[str, Case]] = {
    "mechanisms": _named(_metric_cases(every_mechanism())),
    "sizes": _named(_metric_cases(every_size())),
    "options": _named(_metric_cases(every_option())),
    "defaults": _named(defaults()),
    "paper_log_loss": _named(paper_log_loss()),
    "summaries": _named(summaries()),
    "dask": _named(dask_metrics()),
    "reports": _named(reports()),
    "scorers": _named(scorers()),
    "searches": _named(searches()),
    "accountants": _named(accountants()),
    "planning": _named(planning()),
    "audits": _named(audits()),
    "classifiers": _named(classifiers()),
    "inference": _named(inference()),
}
"""Every case, by its group and its name."""


def evaluate(group: str, name: str) -> Any:
    """Return what a case gives now, in types of JSON."""
    seed = zlib.crc32(f"{group}: {name}".encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # seeds, and summaries of little capacity
        return _encoded(GROUPS[group][name](seed))


def _encoded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _encoded(value.tolist())
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if type(value) is float:
        return value.hex()
    if value is None or type(value) in (str, int, bool):
        return value
    raise AssertionError(f"A case gives a {type(value).__name__}.")


def arithmetic() -> str:
    """Return a digest of how this machine rounds, and of the streams of NumPy's generators.

    The last bit of a logarithm may differ between kinds of processors and versions of NumPy, and then a few
    releases do too.
    """
    x = np.random.default_rng(0).integers(1, 1 << 20, 4096) / 4096
    parts = [x, np.log(x), np.log1p(x), np.exp(-x), np.expm1(-x / 64), np.sqrt(x), x**1.02]
    parts += [np.array([f(-v) for v in x.tolist() for f in (math.exp, math.expm1)])]
    parts += [np.array([f(v) for v in x.tolist() for f in (math.log, math.log1p, math.sqrt)])]
    parts += [x @ np.exp(-x), x.reshape(64, 64) @ np.log(x).reshape(64, 64)]
    parts += [np.random.RandomState(0).randint(0, 1 << 30, 64).astype(float)]
    return digest(b"".join(np.asarray(part).tobytes() for part in parts))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def read_table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


def write_table(releases: Mapping[str, Mapping[str, Any]]) -> None:
    """Write one line a case, so that a diff shows what moved."""
    groups = (
        f"{json.dumps(group)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in cases.items())
        + "\n}"
        for group, cases in releases.items()
    )
    text = f'{{\n"arithmetic": "{arithmetic()}",\n"releases": {{\n' + ",\n".join(groups) + "\n}\n}\n"
    TABLE.write_text(text)
