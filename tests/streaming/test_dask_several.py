"""Dask collections of metrics that release several numbers, or sums by bin, from one epsilon."""

import itertools
import pickle
import re
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from helpers import NoEntropy, assert_same, loop_over, seeded

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, distributed
from dp_metrics._random import SeededEntropy
from dp_metrics.inputs.options import NO_WEIGHT
from dp_metrics.metrics import METRICS
from dp_metrics.streaming._summary import Summary
from dp_metrics.streaming.summaries import CAPACITY

N = 1_500


def heavy(outputs=1, n=N):
    """Return targets and predictions with heavy tails: all mechanisms reach beyond the first ranks."""
    rng = np.random.default_rng(1)
    y = rng.standard_t(3, size=(n, outputs))
    p = y + 0.5 * rng.standard_t(3, size=(n, outputs))
    return (y[:, 0], p[:, 0]) if outputs == 1 else (y, p)


def two_classes():
    rng = np.random.default_rng(2)
    p = rng.beta(0.4, 0.6, size=N)
    return (rng.random(N) < p**1.3).astype(int), p


def three_classes():
    rng = np.random.default_rng(3)
    return np.array(["ham", "spam", "egg"])[rng.integers(0, 3, N)], rng.dirichlet([1, 1, 1], N)


def lazy(data):
    """Return the data in chunks, in others for each argument."""
    return [
        da.from_array(array, chunks=(rows, *array.shape[1:]))
        for array, rows in zip(data, (200, 170, 90), strict=False)
    ]


RANGE = {"bounds": (-4, 4)}
CALLS = {
    "r2": ("private_r2_score", heavy(), {}),
    "r2, shares": ("private_r2_score", heavy(), {"error_share": 0.2}),
    "r2, bounds": ("private_r2_score", heavy(), {**RANGE, "mechanism": "geometric"}),
    "r2, hazard": ("private_r2_score", heavy(), {"mechanism": "hazard"}),
    "r2, 2 outputs": ("private_r2_score", heavy(2), {"error_share": 0.7}),
    "r2, weighted outputs": ("private_r2_score", heavy(2), {"multioutput": [1, 2.5]}),
    "r2, raw": ("private_r2_score", heavy(2), {"multioutput": "raw_values"}),
    "mse, raw": ("private_mse", heavy(2), {"multioutput": "raw_values"}),
    "mse, raw, 1 output": ("private_mse", heavy(), {"multioutput": "raw_values"}),
    "rmse, 3 outputs": ("private_rmse", heavy(3), {}),
    "regression report": (
        "private_regression_report",
        heavy(),
        {"split": {"mse": 3, "mae": 1, "variance": 1}},
    ),
    "regression report, text": ("private_regression_report", heavy(), {"digits": 3}),
    "probability report": ("private_probability_report", two_classes(), {"output_dict": True}),
    "probability report, 3": (
        "private_probability_report",
        three_classes(),
        {"labels": ["egg", "ham", "spam"], "max_loss": 5.0},
    ),
    "calibration curve": ("private_calibration_curve", two_classes(), {"n_bins": 3}),
    "calibration error": ("private_expected_calibration_error", two_classes(), {"n_bins": 7}),
    "calibration error, 0": ("private_expected_calibration_error", two_classes(), {"pos_label": 0}),
    "calibration error, hazard": (
        "private_expected_calibration_error",
        two_classes(),
        {"mechanism": "hazard"},
    ),
}
each_call = pytest.mark.parametrize(("name", "data", "options"), CALLS.values(), ids=CALLS)


@each_call
@loop_over(
    ("relation", "epsilon"),
    # with 10 the default takes two stages for each part, and with .2 for no variance
    [("replace_one", 10.0), ("add_or_remove_one", 0.2)],
)
def test_all_that_is_published_is_the_same_to_the_bit(name, data, options, relation, epsilon):
    settings = {"epsilon": epsilon, "neighboring": relation, **options}
    in_memory = dp.with_result(getattr(dp, name))(*data, random_state=seeded(), **settings)
    ours = dp.with_result(getattr(distributed, name))(*lazy(data), random_state=seeded(), **settings)
    # value, relation, mechanisms, what was drawn
    assert_same(ours.to_dict(), in_memory.to_dict())
    assert pickle.dumps(ours.value) == pickle.dumps(in_memory.value)


def test_weights_of_several_outputs():
    data, weights = heavy(2), np.random.default_rng(4).integers(0, 8, N) / 4
    *collections, public = lazy([*data, weights])
    for name, options in (("private_mse", {"multioutput": "raw_values"}), ("private_rmse", {})):
        settings = {"epsilon": 1.0, **options}
        in_memory = getattr(dp, name)(*data, sample_weight=weights, random_state=seeded(), **settings)
        twin = partial(getattr(distributed, name), random_state=seeded(), **settings)
        assert np.array_equal(twin(*collections, sample_weight=public), in_memory)
        with pytest.raises(ValueError, match=re.escape(NO_WEIGHT)):
            twin(*collections, sample_weight=public * 0)


def test_the_parts_share_one_epsilon_that_is_spent_once():
    budget = PrivacyAccountant(1.0)
    report = distributed.private_regression_report(
        *lazy(heavy()),
        epsilon=1.0,
        split={"mse": 2, "mae": 1, "variance": 1},
        output_dict=True,
        accountant=budget,
    )
    assert [row["epsilon"] for row in report.values()] == [0.5, 0.0, 0.25, 0.0, 0.25, 1.0]
    assert [spend.epsilon for spend in budget.history] == [1.0]


def counting(calls):
    """Return a lazy column that counts how often one of its four chunks is computed."""

    def make(block):
        calls.append(1)
        return block

    return da.arange(40.0, chunks=10).map_blocks(make, dtype=float, meta=np.empty(0))


@pytest.mark.parametrize("name", ["private_r2_score", "private_regression_report"])
def test_one_pass_over_the_data_serves_all_parts(name):
    calls = []
    x = counting(calls)
    getattr(distributed, name)(x, x * 0.5, epsilon=10.0)
    assert len(calls) == 4


def test_what_comes_to_the_client_does_not_grow_with_the_data(monkeypatch):
    sizes, compute = [], dask.compute

    def recorded(*arguments, **options):
        answer = compute(*arguments, **options)
        sizes.append(len(pickle.dumps(answer)))
        return answer

    monkeypatch.setattr(dask, "compute", recorded)
    x = da.random.default_rng(0).random(200_000, chunks=10_000)
    distributed.private_r2_score(x, x**2, epsilon=1.0)
    distributed.private_calibration_curve((x > 0.5).astype(int), x, epsilon=1.0)
    distributed.private_expected_calibration_error((x > 0.5).astype(int), x, epsilon=1.0)
    assert len(sizes) == 3
    # 8 bytes for each rank of the losses, and of the values at both ends; the data are 3 MB
    assert sizes[0] < 3 * 8 * 2048 + 20_000
    assert max(sizes[1:]) < 6_000


def test_a_variance_of_more_records_than_a_summary_keeps_or_of_a_private_number_has_one_stage():
    def r2(module, n, **options):
        data = heavy(n=n) if module is dp else lazy(heavy(n=n))
        return module.private_r2_score(*data, epsilon=10.0, random_state=seeded(), **options)

    private_n = {"neighboring": "add_or_remove_one"}
    assert r2(distributed, CAPACITY) == r2(dp, CAPACITY)
    # in memory there are two stages; what the page on large data says
    assert r2(distributed, CAPACITY + 1) != r2(dp, CAPACITY + 1)
    assert r2(distributed, CAPACITY, **private_n) != r2(dp, CAPACITY, **private_n)
    for options in ({}, private_n):
        by_hazard = {"mechanism": "hazard", **options}
        assert r2(distributed, CAPACITY + 1, **by_hazard) == r2(dp, CAPACITY + 1, **by_hazard)


def untouchable():
    """Return a lazy column that must not be computed."""

    def fail(block):
        raise AssertionError("computed")

    return da.ones(40, chunks=10).map_blocks(fail, dtype=float, meta=np.empty(0))


def test_what_cannot_be_released_is_refused_before_anything_is_computed():
    x = untouchable()
    r2 = partial(distributed.private_r2_score, x, x, random_state=NoEntropy())
    with pytest.raises(ValueError, match="takes no sample_weight"):
        r2(epsilon=1.0, sample_weight=x)
    with pytest.raises(ValueError, match="too small to be divided"):
        r2(epsilon=5e-324, error_share=0.1)
    with pytest.raises(ValueError, match="error_share"):
        r2(epsilon=1.0, error_share=1.0)
    for mechanism in ("geometric", "laplace"):  # the losses would do, the variance does not
        with pytest.raises(ValueError, match="pass bounds"):
            r2(epsilon=1.0, mechanism=mechanism)
    with pytest.raises(ValueError, match="public number of records"):
        distributed.private_expected_calibration_error(
            x, x, epsilon=1.0, mechanism="laplace", neighboring="add_or_remove_one"
        )
    with pytest.raises(ValueError, match="split"):
        distributed.private_regression_report(x, x, epsilon=1.0, split={"mse": 1})


def test_an_invalid_target_in_one_chunk_is_refused_before_the_spend():
    budget = PrivacyAccountant(1.0)
    y, p = heavy()
    y = y.copy()
    y[700] = np.inf
    for name in ("private_r2_score", "private_regression_report"):
        with pytest.raises(ValueError, match=r"^Input y_true contains infinity"):
            getattr(distributed, name)(
                *lazy((y, p)), epsilon=1.0, accountant=budget, random_state=NoEntropy()
            )
    labels, scores = two_classes()
    for wrong in (np.where(np.arange(N) == 700, 2, labels), np.where(np.arange(N) == 700, 1.5, scores)):
        data = (wrong, scores) if wrong.dtype == labels.dtype else (labels, wrong)
        for name in ("private_calibration_curve", "private_expected_calibration_error"):
            with pytest.raises(ValueError, match=r"labels|\[0, 1\]") as caught:
                getattr(distributed, name)(*lazy(data), epsilon=1.0, accountant=budget)
            assert not re.search(r"700|1\.5", str(caught.value))
    assert budget.spent == 0


def test_summaries_of_probabilities_of_two_types_do_not_merge():
    y, p = two_classes()
    empty = Summary(METRICS["private_probability_report"], {}, 100)
    double, single = (pickle.loads(pickle.dumps(empty)).update(y, p.astype(t)) for t in ("f8", "f4"))
    assert double.merge(empty) is not double
    with pytest.raises(ValueError, match="probabilities one type"):
        double.merge(single)
    with pytest.raises(ValueError, match="the same type, metric"):
        double.merge(Summary(METRICS["private_probability_report"], {}, 99))


@pytest.mark.parametrize("name", ["private_r2_score", "private_expected_calibration_error"])
def test_no_order_or_nesting_of_merges_changes_a_bit(name):
    y, p = two_classes()
    rng, released = np.random.default_rng(5), set()
    for _ in range(4):
        parts = np.array_split(rng.permutation(N), 9)
        made = [Summary(METRICS[name], {}, 2048).update(y[part], p[part]) for part in parts]
        while len(made) > 1:
            other = made.pop(int(rng.integers(len(made))))
            place = int(rng.integers(len(made)))
            made[place] = made[place].merge(other)
        settings = {"epsilon": 1.0, "random_state": SeededEntropy(7)}
        released.add(made[0].released_as(METRICS[name], **settings).value)
    assert released == {getattr(dp, name)(y, p, epsilon=1.0, random_state=SeededEntropy(7))}


def told_as(told, kind, size):
    """Return labels and probabilities in one chunk of so many records, and tell Dask a type of it."""
    chunk = np.full((size, 2), 0.5, kind)
    told_shape = {"shape": chunk.shape, "dtype": told, "meta": np.empty((0, 0), told)}
    return da.zeros(size), da.from_delayed(dask.delayed(chunk), **told_shape)


@loop_over("neighboring", ["replace_one", "add_or_remove_one"])
@loop_over(("told", "kind"), [*itertools.product(("f4", "f8"), repeat=2)])
def test_the_type_of_a_chunk_never_decides_the_limit_of_a_loss(told, kind, neighboring):
    """A record that made its chunk float64 would raise the cap of the log loss from 16 to 36 for all."""
    budget = PrivacyAccountant(10.0)
    for size in (0, 1, 40) if neighboring == "add_or_remove_one" else (1, 40):
        for name in ("private_log_loss", "private_probability_report"):
            release, data = getattr(distributed, name), told_as(told, kind, size)
            settings = {"epsilon": 1.0, "accountant": budget, "neighboring": neighboring}
            if told == kind:
                release(*data, **settings)
                continue
            with pytest.raises(ValueError, match="Each chunk must have as many columns"):
                release(*data, **settings)
    assert (budget.spent > 0) == (told == kind)


def test_the_type_of_a_column_decides_the_limit_of_a_loss():
    whole = pd.DataFrame(
        {"y": 0.0, "p": pd.array([0.0] * 40, "Float32"), "q": np.zeros(40, "f4"), "r": np.zeros(40, "f4")}
    )
    frames = dd.from_pandas(whole, npartitions=3)
    exact = partial(distributed.private_log_loss, epsilon=1e6, mechanism="hazard")
    assert exact(frames.y + 1, frames.p) == pytest.approx(15.94, abs=0.01)
    assert exact(frames.y + 1, frames.p.astype("Float64")) == pytest.approx(36.04, abs=0.01)
    assert exact(frames.y + 1, frames[["q", "r"]]) == pytest.approx(15.94, abs=0.01)
    wrong = frames.map_partitions(lambda part: part.astype({"p": "Float64"}), meta=whole.iloc[:0])
    with pytest.raises(ValueError, match="Each chunk must have as many columns"):
        exact(wrong.y, wrong.p)
