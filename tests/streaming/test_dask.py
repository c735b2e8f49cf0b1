"""The metrics on Dask collections: the same bits, one spend, and no word of the data."""

import inspect
import itertools
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cases import CASES, valid
from dask.distributed import Client, LocalCluster
from helpers import BAD_OPTIONS, NoEntropy, assert_refused, kind_of, loop_over, messages, new_session, seeded

import dp_metrics as dp
from dp_metrics import (
    ConfusionSummary,
    LossSummary,
    PrivacyAccountant,
    PrivacyBudgetError,
    ScoreSummary,
    SeededReleaseWarning,
    distributed,
)
from dp_metrics._random import SeededEntropy
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.streaming import _collections
from dp_metrics.streaming import dask as twins
from dp_metrics.streaming._summary import Summary

SERVED = [name for name in METRICS if name in distributed.__all__]
ROWS = {name: case for name, case in CASES.items() if case.name in SERVED}
# one summary serves many: two of labels, one of scores and a few of losses are tried each time
ALIKE = {
    name
    for name, case in ROWS.items()
    if (kind_of(case.row) == "confusion" or kind_of(case.row) == "scores")
    and name not in ("f1", "kappa", "roc curve")
} | {
    "mae",
    "mae, 2 outputs",
    "mape",
    "msle",
    "pinball",
    "poisson",
    "brier",
    "brier, 3 labels",
    "zero-one",
    "std",
}
MARKS = {name: [pytest.mark.slow] if name in ALIKE else [] for name in ROWS}
each_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=name, marks=MARKS[name]) for name, case in ROWS.items()]
)
each_name = pytest.mark.parametrize("name", SERVED)


def of(case):
    """Return the function of a case for Dask collections."""
    function = partial(getattr(distributed, case.name), **case.options)
    return function if case.pick is None else lambda *data, **settings: case.pick(function(*data, **settings))


def chunked(*rows):
    def form(position, array):
        return da.from_array(array, chunks=(rows, *array.shape[1:]))

    return form


def columns_apart(position, array):
    return da.from_array(array, chunks=(9, *[1] * (array.ndim - 1)))


def own_chunks(position, array):
    return da.from_array(array, chunks=(7 + 4 * position, *array.shape[1:]))


def parts(array, sizes=(0, 13, 0, 20, 7, 0)):
    """Return partitions of 40 records, some of them empty."""
    frame = pd.Series(array) if array.ndim == 1 else pd.DataFrame(array)
    ends = np.cumsum(sizes)
    return [frame.iloc[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def frame(position, array):
    pieces = parts(array)
    return dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=pieces[0])


def unknown_chunks(position, array):
    return frame(position, array).to_dask_array()


def mixed(position, array):
    return (chunked(0, 13, 0, 20, 7, 0) if position else frame)(position, array)


FORMS = {
    "one chunk": chunked(40),
    "many chunks": chunked(*[4] * 10),
    "single records": chunked(*[1] * 40),
    "empty chunks": chunked(0, 13, 0, 20, 7, 0),
    "columns in chunks": columns_apart,
    "chunks that differ": own_chunks,
    "data frame": frame,
    "unknown chunks": unknown_chunks,
    "array and series": mixed,
}


def collected(form, data):
    return [FORMS[form](position, array) for position, array in enumerate(data)]


EVERY_FORM = ["mse, 3 outputs", "log loss, 3 labels"]
FEW_FORMS = ["chunks that differ", "array and series"]


@pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, id=f"{name}, {form}", marks=MARKS[name])
        for name, case in ROWS.items()
        for form in (FORMS if name in EVERY_FORM else FEW_FORMS)
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_a_release_has_the_bits_of_the_metric_with_all_records_at_once(case, form, dtype):
    data = [array.astype(dtype) for array in valid(case)]
    collections = collected(form, data)
    for settings in ({}, case.bounded, {"neighboring": "add_or_remove_one"}, {"epsilon": 0.1}):
        expected = case(*data, random_state=seeded(), **settings)
        settings = {"epsilon": 1.0, **settings}
        assert of(case)(*collections, random_state=seeded(), **settings) == expected


@pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, id=f"{name}, {form}", marks=MARKS[name])
        for name, case in ROWS.items()
        if "sample_weight" in case.row.options and case.name != "private_r2_score"
        for form in (FORMS if name in EVERY_FORM else FEW_FORMS)
    ],
)
def test_weights_too(case, form):
    data = valid(case)
    weights = np.random.default_rng(2).integers(1, 8, 40) / 4
    *collections, public = collected(form, [*data, weights])
    for settings in ({}, case.bounded):
        expected = case(*data, sample_weight=weights, random_state=seeded(), **settings)
        released = of(case)(
            *collections, epsilon=1.0, sample_weight=public, random_state=seeded(), **settings
        )
        assert released == expected


def test_a_chunk_of_records_without_weight_changes_nothing():
    data, weights = valid(CASES["mse"]), np.repeat([0.0, 1.0], 20)
    expected = dp.private_mse(*data, epsilon=1.0, sample_weight=weights, random_state=seeded())
    *collections, public = collected("many chunks", [*data, weights])
    settings = {"epsilon": 1.0, "sample_weight": public, "random_state": seeded()}
    assert distributed.private_mse(*collections, **settings) == expected


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mse, 3 outputs", {"multioutput": [1, 0.5, 2]}),
        ("mse", {"mechanism": "above_threshold"}),
        ("mse", {"mechanism": dp.Hazard(resolution=0.5)}),
        ("mse", {"mechanism": "laplace", "bounds": (-4, 4)}),
        ("variance", {"ddof": 1}),
        ("std", {"ddof": 1, "bounds": (-4, 4)}),
        ("zero-one", {"normalize": False}),
        ("accuracy", {"normalize": False, "mechanism": "hazard"}),
        ("brier", {"pos_label": 0}),
        ("brier, 3 labels", {"scale_by_half": True}),
        ("log loss, 3 labels", {"labels": [0, 1, 2], "normalize": False}),
    ],
)
def test_options_mean_the_same(name, options):
    case, data = CASES[name], valid(CASES[name])
    released = of(case)(*collected("chunks that differ", data), epsilon=1.0, random_state=seeded(), **options)
    assert released == case(*data, random_state=seeded(), **options)


@pytest.mark.parametrize("form", ["many chunks", "data frame", "array and series"])
def test_labels_are_of_any_type(form):
    y = np.array(["ham", "spam", "spam", "egg"] * 10, dtype=object)
    _, proba = valid(CASES["log loss, 3 labels"])
    pairs = {"private_log_loss": (y, proba), "private_accuracy_score": (y, np.roll(y, 1))}
    for name, data in pairs.items():
        options = {"labels": ["egg", "ham", "spam"]} if data[1] is proba else {}
        expected = getattr(dp, name)(*data, epsilon=1.0, random_state=seeded(), **options)
        metric = getattr(distributed, name)
        assert metric(*collected(form, data), epsilon=1.0, random_state=seeded(), **options) == expected


def test_a_summary_of_collections_is_that_of_all_records_and_serves_any_release():
    y, p = valid(CASES["f1"])
    made = distributed.summarised(ConfusionSummary(), *collected("chunks that differ", (y, p)))
    assert made.to_bytes() == ConfusionSummary().update(y, p).to_bytes()
    scores = valid(CASES["brier"])
    made = distributed.summarised(ScoreSummary(), *collected("data frame", scores))
    assert made.to_bytes() == ScoreSummary().update(*scores).to_bytes()
    (x,) = valid(CASES["variance"])
    made = distributed.summarised(dp.VarianceSummary(), *collected("data frame", (x,)))
    assert made.to_bytes() == dp.VarianceSummary().update(x).to_bytes()
    with pytest.raises(ValueError, match="must be empty"):
        distributed.summarised(made, *collected("data frame", (x,)))
    with pytest.raises(TypeError, match="argument 2 must be a dask"):
        distributed.summarised(ConfusionSummary(), da.from_array(y), p)
    with pytest.raises(ValueError, match="not in labels"):
        distributed.summarised(ConfusionSummary(), *collected("data frame", (y + 7, p)))


def test_columns_of_one_frame_belong_together():
    table = pd.DataFrame({"y": np.arange(100.0), "p": np.arange(100.0) % 7, "keep": [True, False] * 50})
    lazy = dd.from_pandas(table, npartitions=6)
    lazy, kept = lazy[lazy.keep & (lazy.y > 30)], table[table.keep & (table.y > 30)]
    expected = dp.private_mae(kept.y, kept.p, epsilon=1.0, random_state=seeded())
    for y, p in ((lazy.y, lazy.p), (lazy.y.values, lazy.p), (lazy[["y"]], lazy[["p"]])):
        assert distributed.private_mae(y, p, epsilon=1.0, random_state=seeded()) == expected


def counting(calls, chunks=(10,) * 4):
    """Return a lazy array that counts how often one of its chunks is computed."""

    def make(block, block_info=None):
        calls.append(1)
        return block

    return da.ones(sum(chunks), chunks=(chunks,)).map_blocks(make, dtype=float, meta=np.empty(0))


def test_what_two_arguments_share_is_computed_once():
    calls = []
    x = counting(calls)
    distributed.private_mse(x, x * 2, epsilon=1.0)
    assert len(calls) == 4


def test_every_metric_that_a_summary_serves_is_there():
    # the others need all records at once: an order among them
    assert METRICS.keys() - SERVED == {
        "private_median_absolute_error",
        "private_quantile",
        "private_roc_auc_score",
    }
    functions = [FUNCTIONS[name] for name in SERVED]
    names = [name for name in dp.__all__ if getattr(dp, name) in functions]
    assert distributed.__all__ == [*names, "summarised"]
    for name in names:  # two names of a metric are two names of its twin
        assert getattr(distributed, name) is getattr(distributed, getattr(dp, name).__name__)


def test_a_function_for_collections_looks_like_the_metric_but_says_what_differs():
    for name in SERVED:
        ours, metric = getattr(distributed, name), getattr(dp, name)
        assert inspect.signature(ours) == inspect.signature(metric)
        assert (ours.__name__, ours.__qualname__, ours.__module__) == (name, name, twins.__name__)
        assert pickle.loads(pickle.dumps(ours)) is ours
        first, rest = ours.__doc__.split("\n", 1)
        assert metric.__doc__.startswith(first)
        assert f"`dp_metrics.{name}`" in rest
        assert ">>>" not in rest  # the examples of the metric are about data in memory


def test_arguments_that_are_unknown_or_missing_are_refused_as_python_does():
    x = da.ones(4, chunks=2)
    with pytest.raises(TypeError, match=r"^private_mse\(\) got an unexpected keyword argument 'capacity'$"):
        distributed.private_mse(x, x, epsilon=1.0, capacity=9)
    with pytest.raises(TypeError, match=r"^private_mse\(\) missing a required .*argument: 'epsilon'$"):
        distributed.private_mse(x, x)


def test_groups_are_refused_with_the_reason():
    x = da.ones(4, chunks=2)
    reason = "several partitions. For data in memory use dp_metrics.private_mse."
    for groups in (x, [1, 1, 2, 2]):
        assert_refused(distributed.private_mse, (x, x), ValueError, reason, epsilon=1.0, groups=groups)
    with pytest.raises(ValueError, match="takes no groups: the records of one person may lie in several"):
        distributed.private_f1_score(x, x, epsilon=1.0, groups=x)


@each_name
def test_what_is_no_collection_of_dask_is_refused_with_a_hint(name):
    n_data = len([p for p in inspect.signature(getattr(dp, name)).parameters.values() if p.kind.value == 1])
    values = [0.25, 98765.25]
    bag = dask.bag.from_sequence(values)
    every = [np.array(values), values, pd.Series(values), bag, da.ones(3, chunks=2).sum()]
    options = {"bounds": (0, 1)} if name == "private_mean" else {}
    for position, wrong in itertools.product(range(n_data), every):
        data = [da.from_array(np.array(values), chunks=1)] * n_data
        data[position] = wrong
        with pytest.raises(TypeError, match=rf"for data in memory use dp_metrics\.{name}\.") as caught:
            getattr(distributed, name)(*data, epsilon=1.0, **options)
        assert "98765" not in str(caught.value)


def test_weights_must_be_a_collection_too():
    x = da.ones(4, chunks=2)
    with pytest.raises(TypeError, match="sample_weight must be a dask"):
        distributed.private_mse(x, x, epsilon=1.0, sample_weight=np.ones(4))


def lazy_data(case, calls):
    """Return valid lazy arguments that count what is computed of them."""

    def make(block):
        calls.append(1)
        return block

    return [
        da.from_array(array, chunks=(9, *array.shape[1:])).map_blocks(make, dtype=array.dtype, meta=array[:0])
        for array in valid(case)
    ]


BAD = {
    **{name: values[:3] for name, values in BAD_OPTIONS.items()},
    "neighboring": ["remove"],
    "mechanism": ["gaussian", dp.Hazard],
    "accountant": [1.0],
    "random_state": ["1"],
    "multioutput": ["variance_weighted", [1.0]],
    "ddof": [math.nan],
    "groups": [[1] * 40],
    "unheard_of": [1],
}


@each_case
def test_options_are_refused_before_anything_is_computed(case):
    calls = []
    known = {*inspect.signature(of(case)).parameters, "groups", "unheard_of"}
    for parameter, values in BAD.items():
        for value in values if parameter in known else ():
            options = {"accountant": PrivacyAccountant(1.0), "epsilon": 1.0, parameter: value}
            with pytest.raises((ValueError, TypeError), match=f"{parameter}|ustom weights"):
                of(case)(*lazy_data(case, calls), **options)
            assert calls == [], parameter


@each_case
def test_what_would_be_refused_in_the_end_is_refused_in_the_beginning(case):
    calls = []
    data = lazy_data(case, calls)
    with pytest.raises(PrivacyBudgetError):
        of(case)(*data, epsilon=0.5, accountant=PrivacyAccountant(0.4), random_state=NoEntropy())
    if not case.always_bounded:
        for mechanism in ("laplace", "geometric", "inverse_sensitivity", "piecewise_laplace"):
            with pytest.raises(ValueError, match="pass bounds"):
                of(case)(*data, epsilon=0.5, mechanism=mechanism)
    if case.row.mechanism is not None:
        options = {"mechanism": "laplace", "neighboring": "add_or_remove_one", **case.bounded}
        with pytest.raises(ValueError, match="public number of records"):
            of(case)(*data, epsilon=0.5, **options)
    assert calls == []


@each_case
def test_the_spend_comes_after_the_reduction_and_before_the_draw_and_once(case):
    order = []

    class Budget(PrivacyAccountant):
        def spend(self, *arguments, **options):
            order.append("spend")
            return super().spend(*arguments, **options)

    class Words(SeededEntropy):
        def words(self, size):
            order.append("draw")
            return super().words(size)

    budgets = Budget(1.0), PrivacyAccountant(1.0)
    of(case)(*lazy_data(case, order), epsilon=0.5, accountant=budgets[0], random_state=Words(3))
    computed = order.index("spend")
    assert order[:computed] == [1] * (5 * len(valid(case)))
    assert order[computed:].count("spend") == 1
    assert set(order[computed + 1 :]) == {"draw"}
    case(*valid(case), epsilon=0.5, accountant=budgets[1])
    [ours], [twin] = (budget.history for budget in budgets)
    assert ours.spend_name == twin.spend_name == case.name
    assert (ours.epsilon, ours.mechanism, ours.neighboring) == (0.5, twin.mechanism, twin.neighboring)


@each_case
@loop_over("form", ["columns in chunks", "data frame"])
def test_an_invalid_record_raises_what_the_twin_raises_before_any_spend(case, form):
    for position in range(len(valid(case))):
        data = [array.copy() for array in valid(case)]
        for array, sentinel in zip(data, case.sentinels, strict=False):
            if sentinel is not None:
                array[1] = sentinel
        data[position][2] = math.nan
        with pytest.raises(ValueError, match=r"contains NaN: drop .*\.$") as twin:
            case(*data)
        collections = collected(form, data)
        assert_refused(of(case), collections, ValueError, re.escape(str(twin.value)), epsilon=1.0)


def locals_of(error):
    """Return representations of whatever is alive in the frames of a traceback, here and in the package."""
    found, frames = [], error.__traceback__
    while frames is not None:
        if frames.tb_frame.f_code.co_filename in (_collections.__file__, twins.__file__):
            found += map(repr, frames.tb_frame.f_locals.values())
        frames = frames.tb_next
    return " ".join(found)


def test_neither_keys_nor_summaries_nor_frames_show_a_value():
    x = da.from_array(np.array([1.0, 2.0, math.nan, 987654.25]), chunks=2).persist(scheduler="threads")
    with pytest.raises(ValueError, match="NaN") as caught:
        distributed.private_mean_loss(x, epsilon=1.0)
    assert "987654" not in " ".join(messages(caught.value))
    assert "987654" not in locals_of(caught.value)


@loop_over("known", [True, False])
@loop_over("relation", ["replace_one", "add_or_remove_one"])
def test_lengths_that_differ_are_refused_without_numbers(known, relation):
    data = np.ones(40), np.ones(40)
    if known:
        collections = [chunked(20, 20)(0, data[0]), chunked(20, 19)(1, data[1][:39])]
    else:
        collections = [frame(0, data[0]), chunked(1, 12, 0, 20, 7, 0)(1, data[1])]
    message = r"^Found input variables with inconsistent numbers of samples: y_true and {}\.$"
    assert_refused(
        distributed.private_mse,
        collections,
        ValueError,
        message.format("y_pred"),
        epsilon=1.0,
        neighboring=relation,
    )
    if relation == "replace_one":
        short = frame(0, data[0]), frame(0, data[0])
        settings = {"epsilon": 1.0, "sample_weight": chunked(1, 12, 0, 20, 7, 0)(2, data[1])}
        match = message.format("sample_weight")
        assert_refused(distributed.private_mse, short, ValueError, match, **settings)


def test_numbers_of_partitions_that_differ_are_refused():
    x = frame(0, np.ones(40))
    with pytest.raises(ValueError, match="y_true and y_pred must have the same partitions"):
        distributed.private_mse(x, chunked(20, 20)(0, np.ones(40)), epsilon=1.0)
    with pytest.raises(ValueError, match="y_true and y_pred and sample_weight must have the same partitions"):
        distributed.private_mse(x, x, epsilon=1.0, sample_weight=x.repartition(npartitions=2))


@each_case
def test_no_record_at_all(case):
    data = [array[:0] for array in valid(case)]
    for pieces in ([0], [0, 0, 0]):
        collections = [chunked(*pieces)(position, array) for position, array in enumerate(data)]
        budget = PrivacyAccountant(1.0)
        with pytest.raises(ValueError, match=r"^Found array with 0 sample"):
            of(case)(*collections, epsilon=1.0, accountant=budget)
        assert budget.spent == 0
        settings = {"neighboring": "add_or_remove_one", "epsilon": 1.0}
        released = of(case)(*collections, random_state=seeded(), **settings)
        assert released == case(*data, random_state=seeded(), **settings)


def test_a_seed_warns_once_at_the_line_of_the_caller():
    x = da.arange(100, chunks=10)
    for call in (distributed.private_variance, distributed.private_mean_loss, distributed.private_std):
        with pytest.warns(SeededReleaseWarning) as caught:
            call(x, epsilon=1.0, random_state=3)
        assert [warning.filename for warning in caught] == [__file__]
        assert caught[0].lineno == inspect.currentframe().f_lineno - 2


def test_without_a_seed_releases_are_fresh():
    x = da.arange(100, chunks=10)
    assert len({distributed.private_variance(x, epsilon=1.0) for _ in range(6)}) > 1


SMALL_EPSILON = {  # the mechanisms that each metric is released by
    "private_mse": ("adaptive", "hazard", "above_threshold"),
    "private_variance": ("hazard", "above_threshold"),
    "private_r2_score": ("hazard", "above_threshold"),
    "private_regression_report": ("hazard",),
}


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize(
    "name",
    [name if name == "private_mse" else pytest.param(name, marks=pytest.mark.slow) for name in SMALL_EPSILON],
)
def test_epsilon_decides_how_many_ranks_are_kept(name, relation):
    """With fewer ranks than a release can use it would have other bits, and warn."""
    data = np.random.default_rng(0).standard_normal((2, 7000))[: len(METRICS[name].data)] ** 2
    chunks = [da.from_array(column, chunks=900) for column in data]
    for mechanism, bounds in itertools.product(SMALL_EPSILON[name], (None, (0.0, 5.0))):
        settings = {"epsilon": 0.01, "mechanism": mechanism, "bounds": bounds, "neighboring": relation}
        expected = getattr(dp, name)(*data, random_state=seeded(), **settings)
        assert getattr(distributed, name)(*chunks, random_state=seeded(), **settings) == expected


def test_summaries_are_merged_in_a_tree_and_one_of_them_comes_to_the_client(monkeypatch):
    merges, answers = [], []
    merge, compute = _collections._merge, dask.compute

    def recorded_merge(*summaries):
        merges.append(len(summaries))
        return merge(*summaries)

    def recorded_compute(*arguments, **options):
        answer = compute(*arguments, **options)
        answers.append((type(answer[0]), len(pickle.dumps(answer))))
        return answer

    monkeypatch.setattr(_collections, "_merge", recorded_merge)
    monkeypatch.setattr(dask, "compute", recorded_compute)
    x = da.random.default_rng(0).random(200_000, chunks=1_000)
    distributed.private_mse(x, x**2, epsilon=1.0)
    assert sorted(merges) == [1, 4] + [8] * 28  # 200 -> 25 -> 4 -> 1
    [(kind, size)] = answers
    assert kind is Summary
    assert size < 2048 * 8 + 20_000  # the ranks, and a few numbers by level; the data are 3 MB


@pytest.mark.slow
@pytest.mark.parametrize("module", [pytest.param("dask", marks=pytest.mark.slow), "dask.array"])
def test_without_dask_the_error_names_the_extra(module):
    program = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import dp_metrics
try:
    import dp_metrics.distributed
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'pip install "dp_metrics[dask]"' in done.stdout


@pytest.fixture(scope="module")
def client():
    """Return a client of two worker processes."""
    # any free port: with None it is 8787, and a second run of the tests on one machine would warn, hence fail
    settings = {"processes": True, "memory_limit": "600MB", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **settings) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.slow
def test_worker_processes_give_the_same_bits_and_tell_nothing(client, capfd):
    budget = PrivacyAccountant(2.0)
    for name in ("mse", "log loss, 3 labels", "variance"):
        case, data = CASES[name], valid(CASES[name])
        for form in ("chunks that differ", "data frame"):
            settings = {"epsilon": 0.25, "accountant": budget, "random_state": seeded()}
            expected = case(*data, epsilon=0.25, random_state=seeded())
            assert of(case)(*collected(form, data), **settings) == expected
    assert len(budget.history) == 6
    # the chunks stand in the graph, and one of them is invalid
    x = np.array([987654.25, 2.0, math.nan, 987654.25])
    for form in (lambda a: da.from_array(a, chunks=2), lambda a: dd.from_pandas(pd.Series(a), npartitions=2)):
        assert_refused(distributed.private_mean_loss, [form(x)], ValueError, "contains NaN", epsilon=1.0)
    logs = f"{client.get_worker_logs()} {client.get_scheduler_logs()} {capfd.readouterr()}"
    assert "_merge" in logs  # something was logged, but
    assert "987654" not in logs


def ramp(block_id, rows):
    """Return a chunk of data that can be made again."""
    return np.modf(np.arange(block_id * rows, (block_id + 1) * rows) * 0.6180339887498949)[0]


def generated(chunks, rows, make=ramp):
    def block(block_info=None):
        return make(block_info[None]["chunk-location"][0], rows)

    return da.map_blocks(block, chunks=((rows,) * chunks,), dtype=float, meta=np.empty(0))


def summarised(chunks, rows):
    summary = LossSummary(dp.private_mse)
    for number in range(chunks):
        x = ramp(number, rows)
        summary.update(x, x**2)
    return summary


def largest_memory():
    """Return the most memory that a process has had; `getrusage` counts what had started it, too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) * 1024


@pytest.mark.slow
def test_data_larger_than_the_memory_of_a_worker(client):
    chunks, rows = 120, 2_000_000  # 16 bytes a record: 3.8 GB, more than both workers together
    x = generated(chunks, rows)
    released = distributed.private_mse(x, x**2, epsilon=1.0, random_state=seeded())
    assert released == summarised(chunks, rows).release(1.0, random_state=seeded())
    if sys.platform == "linux":
        assert max(client.run(largest_memory).values()) < 600e6


def slow_ramp(number, rows):
    time.sleep(0.2)
    return ramp(number, rows)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_loses_nothing_and_costs_nothing(client):
    chunks, rows = 40, 1_000
    x = generated(chunks, rows, slow_ramp)
    before = client.run(os.getpid)
    killed = []

    def kill():
        os.kill(next(iter(before.values())), signal.SIGKILL)
        killed.append(time.monotonic())

    budget = PrivacyAccountant(1.0)
    timer = threading.Timer(2.0, kill)  # of at least 4 seconds
    timer.start()
    released = distributed.private_mse(x, x**2, epsilon=0.5, accountant=budget, random_state=seeded())
    ended = time.monotonic()
    timer.join()
    assert killed[0] < ended - 0.5
    assert released == summarised(chunks, rows).release(0.5, random_state=seeded())
    assert [spend.epsilon for spend in budget.history] == [0.5]
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(before.values())


class Quoting(dp.LossSummary):
    """A summary that refuses a chunk while an error that quotes it is handled."""

    def update(self, *data, sample_weight=None):
        try:
            float(data[0][0])
        except ValueError:
            raise ValueError("refused")  # noqa: B904  # chained, as an oversight would be


def test_what_is_wrong_with_a_chunk_is_not_chained_to_an_error_that_quotes_it():
    empty = Quoting(dp.private_mean_loss)
    wrong = _collections._summarise(empty, ["losses"], np.array(["a secret"], dtype=object))
    assert isinstance(wrong, Exception)
    assert str(wrong) == "refused"
    assert (wrong.__cause__, wrong.__context__, wrong.__traceback__) == (None, None, None)


def test_a_stored_release_computes_nothing(tmp_path):
    path, y = tmp_path / "budget.sqlite", np.arange(100.0)
    ask = partial(distributed.private_mae, epsilon=1.0, spend_name="mae, week 47")
    calls = []
    arrays = [da.from_array(y, chunks=20).map_blocks(lambda a: calls.append(1) or a, dtype=float)] * 2
    number = ask(*arrays, accountant=PrivacyAccountant(1.0, path))
    done = len(calls)
    new_session()
    budget = PrivacyAccountant(1.0, path)
    with pytest.warns(dp.StoredReleaseWarning, match="records and predictions were not read"):
        assert ask(*arrays, accountant=budget) == number
    assert len(calls) == done
    assert budget.spent == 1.0
    assert budget["mae, week 47"].noise_interval()


@pytest.mark.parametrize("is_known", [True, False])
def test_collections_ask_by_their_totals(is_known, tmp_path):
    """Chunks have no order: weights in another order are one question, other weights or fewer records not."""
    path, y, weights = tmp_path / "budget.sqlite", np.arange(60.0), np.arange(60.0) / 7

    def ask(rows, sample_weight, chunks):
        new_session()
        arrays = [da.from_array(one, chunks=chunks) for one in (y[rows], y[rows] / 2, sample_weight)]
        if not is_known:
            arrays = [one[one >= 0] for one in arrays]  # whose length is known when it is computed
        budget = PrivacyAccountant(1.0, path)
        settings = {"epsilon": 1.0, "accountant": budget, "spend_name": "x"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dp.StoredReleaseWarning)
            return distributed.private_mae(*arrays[:2], sample_weight=arrays[2], **settings), budget.spent

    first = ask(slice(None), weights, 20)
    assert ask(slice(None), weights[::-1].copy(), 17) == first
    with pytest.raises(ValueError, match=r"total weight was .* and is"):
        ask(slice(None), weights + 1, 20)
    with pytest.raises(ValueError, match="number of records was 60 and is 59"):
        ask(slice(1, None), weights[1:], 20)
