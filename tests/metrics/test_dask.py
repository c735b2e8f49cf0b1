"""The metrics on Dask collections: the same bits, one spend, and no word of the data."""

import inspect
import itertools
import math
import os
import pickle
import re
import signal
import sys
import threading
import time
import traceback
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cases import CASES, PRIVATE_N, RELATIONS, valid
from dask.distributed import Client, LocalCluster
from helpers import assert_refused, bits_of, later, loop_over, messages, new_session, seeded

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, Summary, metrics
from dp_metrics._random import SeededEntropy
from dp_metrics.metrics import dask_collections
from dp_metrics.metrics.summary import CAPACITY

# one of each kind of summary
SOME = [CASES[name] for name in (
    "mse, 3 outputs", "log loss, 3 labels", "variance", "r2", "f1", "roc curve", "calibration error", "mean",
)]  # fmt: skip
each_kind = loop_over("case", SOME)


# The same bits


def chunked(*rows):
    return lambda position, array: da.from_array(array, chunks=(rows, *array.shape[1:]))


SIZES = (0, 13, 0, 20, 7, 0)


def frame(position, array, hold=pd.Series):
    """Return partitions of 40 records, some of them empty."""
    pieces = np.split(array, np.cumsum(SIZES[:-1]))
    tables = [hold(piece) if array.ndim == 1 else pd.DataFrame(piece) for piece in pieces]
    return dd.from_delayed([dask.delayed(table) for table in tables], meta=tables[0])


FORMS = {
    "one chunk": chunked(40),
    "single records": chunked(*[1] * 40),
    "empty chunks": chunked(*SIZES),
    "columns in chunks": lambda position, array: da.from_array(array, chunks=(9, *[1] * (array.ndim - 1))),
    "chunks that differ": lambda position, array: da.from_array(array, chunks=7 + 4 * position),
    "series": frame,
    "data frames": partial(frame, hold=pd.DataFrame),
    "unknown chunks": lambda position, array: frame(position, array).to_dask_array(),
    "array and series": lambda position, array: (chunked(*SIZES) if position else frame)(position, array),
}


def collected(form, data):
    return [FORMS[form](position, array) for position, array in enumerate(data)]


@pytest.mark.gate
@loop_over("case", SOME[:2])
@loop_over("dtype", [np.float64, np.float32])
def test_collections_of_any_form_have_the_bits_of_all_records_at_once(case, dtype):
    data, weights = [array.astype(dtype) for array in valid(case)], np.arange(40) // 20 / 4
    for form in FORMS:
        *collections, public = collected(form, [*data, weights])
        for options in ({}, case.bounded, {"epsilon": 0.1, **PRIVATE_N}):
            options = {"epsilon": 1.0, **options}
            expected = case(*data, random_state=seeded(), **options)
            assert case(*collections, random_state=seeded(), **options) == expected, form
        expected = case(*data, sample_weight=weights, random_state=seeded())
        assert expected == case(*collections, epsilon=1.0, sample_weight=public, random_state=seeded())


def heavy(n):
    """Return targets and predictions with heavy tails: all mechanisms reach beyond the first ranks."""
    y, error = np.random.default_rng(1).standard_t(3, size=(2, n))
    return y, y + 0.5 * error


def lazy(data):
    """Return the data in chunks, in others for each argument."""
    several = zip(data, (200, 170, 90), strict=False)
    return [da.from_array(array, chunks=(rows, *array.shape[1:])) for array, rows in several]


@pytest.mark.parametrize(
    ("name", "mechanisms"),
    [
        ("private_mse", ("adaptive", "hazard", "above_threshold")),
        pytest.param("private_r2_score", ("hazard", "above_threshold"), marks=pytest.mark.slow),
    ],
)
def test_epsilon_decides_how_many_ranks_are_kept(name, mechanisms):
    """With fewer ranks than a release can use it would have other bits, and warn."""
    data = np.random.default_rng(0).standard_normal((2, 7000)) ** 2
    chunks = [da.from_array(column, chunks=900) for column in data]
    for mechanism, bounds, relation in itertools.product(mechanisms, (None, (0.0, 5.0)), RELATIONS):
        settings = {"epsilon": 0.01, "mechanism": mechanism, "bounds": bounds, "neighboring": relation}
        expected = getattr(dp, name)(*data, random_state=seeded(), **settings)
        assert getattr(dp, name)(*chunks, random_state=seeded(), **settings) == expected


def test_a_variance_of_more_records_than_a_summary_keeps_or_of_a_private_number_has_one_stage():
    def r2(held, n, **options):
        return dp.private_r2_score(*held(heavy(n)), epsilon=10.0, random_state=seeded(), **options)

    assert r2(lazy, CAPACITY) == r2(tuple, CAPACITY)
    # in memory there are two stages; what the page on large data says
    assert r2(lazy, CAPACITY + 1) != r2(tuple, CAPACITY + 1)
    assert r2(lazy, CAPACITY, **PRIVATE_N) != r2(tuple, CAPACITY, **PRIVATE_N)
    for options in ({}, PRIVATE_N):
        by_hazard = {"mechanism": "hazard", **options}
        assert r2(lazy, CAPACITY + 1, **by_hazard) == r2(tuple, CAPACITY + 1, **by_hazard)


def test_a_summary_takes_collections_beside_chunks():
    y, p = valid(CASES["f1"])
    for name, data in (("confusion_matrix", (y, p)), ("brier", valid(CASES["brier"])), ("variance", [y])):
        made = Summary(name).update(*collected("series", data))
        assert bits_of(made._stats) == bits_of(Summary(name).update(*data)._stats)
        both = made.update(*data).update(*collected("one chunk", data))
        thrice = [np.tile(one, 3) for one in data]
        assert bits_of(both._stats) == bits_of(Summary(name).update(*thrice)._stats)
    with pytest.raises(TypeError, match="y_pred must be a dask"):
        Summary("f1").update(da.from_array(y), p)
    with pytest.raises(ValueError, match="not in labels"):
        Summary("f1").update(*collected("series", (y + 7, p)))


def test_without_dask_the_error_names_the_extra(monkeypatch):
    x = da.ones(3)
    monkeypatch.setitem(sys.modules, "dask.array", None)
    monkeypatch.delitem(sys.modules, dask_collections.__name__)
    monkeypatch.delattr(metrics, "dask_collections")
    with pytest.raises(ImportError, match=r'pip install "dp_metrics\[dask\]"'):
        dp.private_mse(x, x, epsilon=1.0)


# What is computed, and when


def counted(calls, data):
    """Return lazy arguments of four chunks of 10 that count what is computed of them."""

    def lazy_of(array):
        whole = chunked(10, 10, 10, 10)(0, array)
        return whole.map_blocks(lambda block: calls.append(1) or block, dtype=array.dtype, meta=array[:0])

    return [lazy_of(array) for array in data]


@each_kind
def test_the_spend_comes_after_one_pass_over_the_data_and_before_the_draw_and_once(case):
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
    case(*counted(order, valid(case)), epsilon=0.5, accountant=budgets[0], random_state=Words(3))
    computed = order.index("spend")
    assert order[:computed] == [1] * (4 * len(valid(case)))
    assert order[computed:].count("spend") == 1
    assert set(order[computed + 1 :]) == {"draw"}
    case(*valid(case), epsilon=0.5, accountant=budgets[1])
    [ours], [twin] = (budget.history for budget in budgets)
    assert ours.spend_name == twin.spend_name == case.name
    assert (ours.epsilon, ours.mechanism, ours.neighboring) == (0.5, twin.mechanism, twin.neighboring)


def test_what_two_arguments_share_is_computed_once_and_one_summary_comes_to_the_client(monkeypatch):
    calls, merges, answers = [], [], []
    merge, compute = dask_collections._merge, dask.compute

    def recorded_merge(*summaries):
        merges.append(len(summaries))
        return merge(*summaries)

    def recorded_compute(*arguments, **options):
        answer = compute(*arguments, **options)
        answers.append((type(answer[0]), len(pickle.dumps(answer))))
        return answer

    monkeypatch.setattr(dask_collections, "_merge", recorded_merge)
    monkeypatch.setattr(dask, "compute", recorded_compute)
    x = da.random.default_rng(0).random(200_000, chunks=1_000)
    x = x.map_blocks(lambda block: calls.append(1) or block, dtype=float, meta=np.empty(0))
    dp.private_mse(x, x**2, epsilon=1.0)
    assert sorted(merges) == [1, 4] + [8] * 28  # 200 -> 25 -> 4 -> 1
    assert len(calls) == 200
    dp.private_calibration_curve((x > 0.5).astype(int), x, epsilon=1.0)
    assert {kind for kind, _ in answers} == {Summary}
    # 8 bytes for each rank, and a few numbers by level; the data are 3 MB
    (_, of_losses), (_, of_scores) = answers
    assert of_losses < 8 * 2048 + 20_000
    assert of_scores < 6000


# What is refused in the end


def of_package(error):
    """Return representations of whatever is alive in the frames of a traceback within the package."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if frame.f_code.co_filename == dask_collections.__file__]
    return " ".join(repr(value) for frame in own for value in frame.f_locals.values())


@each_kind
def test_an_invalid_record_raises_what_the_twin_raises_before_any_spend(case):
    for position, form in itertools.product(range(len(valid(case))), ("columns in chunks", "series")):
        data = [array.copy() for array in valid(case)]
        for array, sentinel in zip(data, case.sentinels, strict=False):
            if sentinel is not None:
                array[1] = sentinel
        data[position][2] = math.nan
        with pytest.raises(ValueError, match=r"contains NaN: drop .*\.$") as twin:
            case(*data)
        assert_refused(case, collected(form, data), ValueError, re.escape(str(twin.value)), epsilon=1.0)


def test_neither_keys_nor_summaries_nor_frames_show_a_value():
    x = da.from_array(np.array([1.0, 2.0, math.nan, 987654.25]), chunks=2).persist(scheduler="threads")
    with pytest.raises(ValueError, match="NaN") as caught:
        dp.private_mean_loss(x, epsilon=1.0)
    assert "987654" not in " ".join(messages(caught.value)) + of_package(caught.value)


class Quoting(Summary):
    """A summary that refuses a chunk while an error that quotes it is handled."""

    def update(self, *data, sample_weight=None):
        try:
            float(data[0][0])
        except ValueError:
            raise ValueError("refused")  # noqa: B904  # chained, as an oversight would be


def test_what_is_wrong_with_a_chunk_is_not_chained_to_an_error_that_quotes_it():
    empty = Quoting(dp.private_mean_loss)
    wrong = dask_collections._summarise(empty, ["losses"], np.array(["a secret"], dtype=object))
    assert isinstance(wrong, Exception)
    assert str(wrong) == "refused"
    assert (wrong.__cause__, wrong.__context__, wrong.__traceback__) == (None, None, None)


def test_lengths_and_partitions_that_differ_are_refused_without_numbers():
    y = np.ones(40)
    x, shorter = frame(0, y), chunked(1, 12, 0, 20, 7, 0)(1, y)
    wrong = "^Found input variables with inconsistent numbers of samples: y_true and {}\\.$"
    mse = partial(assert_refused, dp.private_mse, expected=ValueError, epsilon=1.0)
    for relation, lengths in itertools.product(
        RELATIONS, ([chunked(20, 20)(0, y), chunked(20, 19)(1, y[:39])], [x, shorter])
    ):
        mse(lengths, match=wrong.format("y_pred"), neighboring=relation)
    mse((x, x), match=wrong.format("sample_weight"), sample_weight=shorter)
    mse((x, chunked(20, 20)(0, y)), match="y_true and y_pred must have the same partitions")
    two = x.repartition(npartitions=2)
    mse((x, x), match="y_true and y_pred and sample_weight must have the same part", sample_weight=two)
    mse((x, x), match="Sample weights must contain at least one non-zero", sample_weight=x * 0)


@each_kind
def test_no_record_at_all(case):
    data = [array[:0] for array in valid(case)]
    for pieces in ([0], [0, 0, 0]):
        collections = [chunked(*pieces)(position, array) for position, array in enumerate(data)]
        assert_refused(case, collections, ValueError, r"^Found array with 0 sample", epsilon=1.0)
        released = case(*collections, random_state=seeded(), epsilon=1.0, **PRIVATE_N)
        assert released == case(*data, random_state=seeded(), epsilon=1.0, **PRIVATE_N)


def told_as(told, kind, size):
    """Return labels and probabilities in one chunk of so many records, and tell Dask a type of it."""
    chunk = np.full((size, 2), 0.5, kind)
    told_shape = {"shape": chunk.shape, "dtype": told, "meta": np.empty((0, 0), told)}
    return da.zeros(size), da.from_delayed(dask.delayed(chunk), **told_shape)


@loop_over("neighboring", RELATIONS)
@loop_over(("told", "kind"), [*itertools.product(("f4", "f8"), repeat=2)])
def test_the_type_of_a_chunk_never_decides_the_limit_of_a_loss(told, kind, neighboring):
    """A record that made its chunk float64 would raise the cap of the log loss from 16 to 36 for all."""
    settings = {"epsilon": 1.0, "neighboring": neighboring}
    for size in (0, 1, 40) if neighboring == "add_or_remove_one" else (1, 40):
        data = told_as(told, kind, size)
        if told == kind:
            assert math.isfinite(dp.private_log_loss(*data, **settings))
        else:
            words = "Each chunk must have as many columns"
            assert_refused(dp.private_log_loss, data, ValueError, words, **settings)


def test_the_type_of_a_column_decides_the_limit_of_a_loss():
    whole = pd.DataFrame({"y": 0.0, "p": pd.array([0.0] * 40, "Float32"), "q": np.zeros(40, "f4")})
    frames = dd.from_pandas(whole.assign(r=whole.q), npartitions=3)
    exact = partial(dp.private_log_loss, epsilon=1e6, mechanism="hazard")
    assert exact(frames.y + 1, frames.p) == pytest.approx(15.94, abs=0.01)
    assert exact(frames.y + 1, frames.p.astype("Float64")) == pytest.approx(36.04, abs=0.01)
    assert exact(frames.y + 1, frames[["q", "r"]]) == pytest.approx(15.94, abs=0.01)


# Seeds and stored answers


def test_a_seed_warns_once_at_the_line_of_the_caller_and_without_one_releases_are_fresh():
    x = da.arange(100, chunks=10)
    for call in (dp.private_variance, dp.private_mean_loss, dp.private_std):
        with pytest.warns(dp.exceptions.SeededReleaseWarning) as caught:
            call(x, epsilon=1.0, random_state=3)
        assert [warning.filename for warning in caught] == [__file__]
        assert caught[0].lineno == inspect.currentframe().f_lineno - 2
    assert len({dp.private_variance(x, epsilon=1.0) for _ in range(6)}) > 1


def test_a_stored_release_computes_nothing(tmp_path):
    path, calls = tmp_path / "budget.sqlite", []
    ask = partial(dp.private_mae, epsilon=1.0, spend_name="mae, week 47")
    arrays = counted(calls, [np.arange(40.0)] * 2)
    number = ask(*arrays, accountant=PrivacyAccountant(1.0, path))
    calls.clear()
    budget = later(path, 1.0)
    with pytest.warns(dp.exceptions.StoredReleaseWarning, match="records and predictions were not read"):
        assert ask(*arrays, accountant=budget) == number
    assert (calls, budget.spent) == ([], 1.0)
    assert budget["mae, week 47"].noise_interval()


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.StoredReleaseWarning")
@loop_over("is_known", [True, False])
def test_collections_ask_by_their_totals(is_known, tmp_path):
    """Chunks have no order: weights in another order are one question, other weights or fewer records not."""
    path, y, weights = tmp_path / f"budget {is_known}", np.arange(60.0), np.arange(60.0) / 7

    def ask(rows, sample_weight, chunks):
        new_session()
        arrays = [da.from_array(one, chunks=chunks) for one in (y[rows], y[rows] / 2, sample_weight)]
        if not is_known:
            arrays = [one[one >= 0] for one in arrays]  # whose length is known when it is computed
        budget = PrivacyAccountant(1.0, path)
        settings = {"epsilon": 1.0, "accountant": budget, "spend_name": "x"}
        return dp.private_mae(*arrays[:2], sample_weight=arrays[2], **settings), budget.spent

    first = ask(slice(None), weights, 20)
    assert ask(slice(None), weights[::-1].copy(), 17) == first
    with pytest.raises(ValueError, match=r"total weight was .* and is"):
        ask(slice(None), weights + 1, 20)
    with pytest.raises(ValueError, match="number of records was 60 and is 59"):
        ask(slice(1, None), weights[1:], 20)


# Worker processes


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
        for form in ("chunks that differ", "series"):
            settings = {"epsilon": 0.25, "accountant": budget, "random_state": seeded()}
            expected = case(*data, epsilon=0.25, random_state=seeded())
            assert case(*collected(form, data), **settings) == expected
    assert len(budget.history) == 6
    # the chunks stand in the graph, and one of them is invalid
    x = np.array([987654.25, 2.0, math.nan, 987654.25])
    for lazy_x in (da.from_array(x, chunks=2), dd.from_pandas(pd.Series(x), npartitions=2)):
        assert_refused(dp.private_mean_loss, [lazy_x], ValueError, "contains NaN", epsilon=1.0)
    logs = f"{client.get_worker_logs()} {client.get_scheduler_logs()} {capfd.readouterr()}"
    assert "_merge" in logs  # something was logged, but
    assert "987654" not in logs


def slowly(block):
    time.sleep(0.2)
    return block


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_loses_nothing_and_costs_nothing(client):
    whole = np.random.default_rng(0).random(40_000)
    x = da.from_array(whole, chunks=1_000).map_blocks(slowly, dtype=float, meta=np.empty(0))
    before, killed = {*client.run(os.getpid).values()}, []

    def kill():
        os.kill(min(before), signal.SIGKILL)
        killed.append(time.monotonic())

    budget = PrivacyAccountant(1.0)
    timer = threading.Timer(2.0, kill)  # of at least 4 seconds
    timer.start()
    released = dp.private_mse(x, x**2, epsilon=0.5, accountant=budget, random_state=seeded())
    ended = time.monotonic()
    timer.join()
    assert killed[0] < ended - 0.5
    assert released == dp.private_mse(whole, whole**2, epsilon=0.5, random_state=seeded())
    assert [spend.epsilon for spend in budget.history] == [0.5]
    client.wait_for_workers(2)
    assert {*client.run(os.getpid).values()} != before
