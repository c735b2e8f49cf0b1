"""Summaries: pieces in any order and nesting give the bits of one call, and tell nothing else."""

import copy
import inspect
import itertools
import math
import pickle
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases import CASES, PRIVATE_N, RELATIONS
from helpers import (
    REFUSED,
    NoEntropy,
    all_of_labels,
    assert_same,
    bits_of,
    hostile_losses,
    hostile_values,
    kind_of,
    loop_over,
    seeded,
)
from hypothesis import given, settings, strategies as st
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, Summary
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.summary import CAPACITY


@dataclass(frozen=True)
class Way:
    """A metric with public options: one way through what summaries know of records."""

    name: str  # of a case
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    dtype: type = np.float64
    hostile: Any = None  # a strategy of values that are hard to add up

    @property
    def case(self):
        return CASES[self.name]

    @property
    def says_too_little(self):
        """Whether the options leave open what decides about a release of a private number of records."""
        row, given = self.case.row, self.options
        is_open = "labels" in row.options and "labels" not in given
        is_narrow = self.dtype is np.float32 and "max_loss" not in given
        return kind_of(row) == "mean" and (is_open or is_narrow or given.get("normalize") is False)

    def data(self, n, seed=0):
        """Return n records, the last array being the weights, if there are any."""
        rng = np.random.default_rng(seed)
        data = [array.astype(self.dtype) for array in self.case.data(rng, n)]
        return [*data, rng.integers(1, 9, n) / 8] if self.weighted else data

    def empty(self, capacity=CAPACITY):
        return Summary(self.case.function, capacity=capacity, **self.options)

    def update(self, summary, data):
        return summary.update(*data[:-1], sample_weight=data[-1]) if self.weighted else summary.update(*data)

    def whole(self, data, capacity=CAPACITY):
        return self.update(self.empty(capacity), data)

    def pieces(self, data, cuts, capacity=CAPACITY):
        ends = [0, *cuts, len(data[0])]
        return [self.whole([a[i:j] for a in data], capacity) for i, j in itertools.pairwise(ends)]

    def call(self, data, **options):
        if self.weighted:
            *data, options["sample_weight"] = data
        return self.case.function(*data, **self.options, **options)


W = {"weighted": True}
OF_VALUES, OF_LOSSES = {"hostile": hostile_values}, {"hostile": hostile_losses}
WAYS = {
    "mse": Way("mse", **OF_VALUES),
    "mse, weights, bounds": Way("mse", {"bounds": (-1e308, 3.3)}, **W, **OF_VALUES),
    "mse, 3 outputs": Way("mse, 3 outputs", {"bounds": [-3, 3], "multioutput": np.array([0.2, 0.3, 0.5])}),
    "rmse, weights": Way("rmse", **W, **OF_VALUES),
    "mean loss, cap": Way("mean loss", {"max_loss": np.float64(3.1)}, **OF_LOSSES),
    "mean loss, weights": Way("mean loss", **W, **OF_LOSSES),
    "mean loss, weights, cap": Way("mean loss", {"max_loss": 3}, **W, **OF_LOSSES),
    "log loss": Way("log loss"),
    "log loss, float32": Way("log loss", {"labels": [0, 1]}, dtype=np.float32),
    "log loss, 3 labels": Way("log loss, 3 labels", {"labels": (0, 1, 2), "max_loss": 5}, dtype=np.float32),
    "accuracy": Way("accuracy"),
    "zero-one, sum": Way("zero-one", {"normalize": False}),
    "mean": Way("mean", {"bounds": (-3, 3.5)}),
    "variance": Way("variance", **OF_VALUES),
    "variance, bounds": Way("variance", {"bounds": (-0.0, 3.3)}, **OF_VALUES),
    "std": Way("std"),
    "r2": Way("r2"),
    "matrix": Way("confusion matrix"),
    "f1": Way("f1"),
    "curve": Way("roc curve"),
    "calibration": Way("calibration error"),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def outcome(function, *data, **options):
    """Return a number, or what the exception is and says."""
    try:
        return function(*data, **options)
    except REFUSED as error:
        return type(error), str(error)


def variance(x, **options):
    return Summary("variance", **options).update(x)


def mean_loss(x=(1.0,), sample_weight=None, **options):
    return Summary(dp.private_mean_loss, **options).update(list(x), sample_weight=sample_weight)


# The same bits


@pytest.mark.filterwarnings("ignore")
def test_chunks_without_weights_weigh_1_beside_others():
    def released(of_others):
        summary = mean_loss([1.0, 4.0], [3.0, 0.5]).update([2.0, 6.0], sample_weight=of_others)
        merged = mean_loss([1.0, 4.0], [3.0, 0.5]).merge(mean_loss([2.0, 6.0], of_others))
        return [one.release(1.0, random_state=0) for one in (summary, merged)]

    assert released(None) == released([1.0, 1.0])


@pytest.mark.gate
@each_way
@settings(max_examples=25)
@given(data=st.data())
def test_records_in_any_order_and_any_nesting_of_merges_give_the_same_bytes(way, data):
    n, capacity = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([1, 2, 5, 1024]))
    records = way.data(n, seed=data.draw(st.integers(0, 99)))
    if way.hostile is not None:
        for place, array in enumerate(records[: len(records) - way.weighted]):
            drawn = data.draw(st.lists(way.hostile | st.just(-0.0), min_size=n, max_size=n))
            records[place] = np.reshape(drawn, array.shape)
    if way.weighted:
        zeros = data.draw(st.lists(st.sampled_from([0.0, -0.0, 5e-324, 0.1, 1e308]), min_size=n - 1))
        records[-1] = np.array([0.5, *zeros])[:n]
    order = data.draw(st.permutations(range(n)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    summaries = way.pieces([array[order] for array in records], cuts, capacity)
    while len(summaries) > 1:
        other = summaries.pop(data.draw(st.integers(0, len(summaries) - 1)))
        summaries.append(summaries.pop(data.draw(st.integers(0, len(summaries) - 1))).merge(other))
    expected = bits_of(way.whole(records, capacity))
    assert bits_of(summaries[0]) == expected
    assert bits_of(pickle.loads(expected)) == expected
    if way.hostile is not None:
        released = way.whole(records).release(epsilon=0.5, random_state=seeded())
        assert released == way.call(records, epsilon=0.5, random_state=seeded())


@pytest.mark.gate
@each_way
def test_a_release_is_that_of_one_call_or_refused_alike(way):
    data, default = way.data(60), way.case.mechanisms[:1]
    first, second = way.pieces(data, [9], capacity=4000)

    def check(summary, records, mechanisms):
        for mechanism, epsilon, relation in itertools.product(mechanisms, (0.1, 5.0), RELATIONS):
            options = {"epsilon": epsilon, "neighboring": relation, **way.case.by(mechanism)}
            found = outcome(summary.release, **options, random_state=seeded())
            if relation == RELATIONS[1] and way.says_too_little:
                assert isinstance(found, tuple)
            else:
                assert_same(found, outcome(way.call, records, **options, random_state=seeded()))

    check(first, [array[:9] for array in data], default)
    merged = second.merge(first)
    check(pickle.loads(bits_of(merged)), data, way.case.mechanisms)
    # what is remembered of a release is forgotten with another relation, and with new records
    check(merged, data, default)
    check(way.update(first, [array[9:] for array in data]), data, default)


def test_options_in_other_containers_are_the_same_and_equal_numbers_are_not_truth():
    y, half = np.ones((3, 2)), np.array([0.5], "f4")
    labels = (range(3), [0, 1, 2], pd.Index([0, 1, 2]), np.arange(3), (0, 1, 2))
    for metric, data, several in (
        ("mse", (y, y / 4), [{"bounds": known} for known in ((0.0, 1.0), np.array([0.0, 1.0]))]),
        ("mse", (y, y / 2), [{"multioutput": known} for known in ([1.0, 0.5], np.array([1.0, 0.5]))]),
        ("log_loss", ([1], [[0.2, 0.5, 0.3]]), [{"labels": known} for known in labels]),
        ("log_loss", ([0], half), [{"labels": [0, 1], "max_loss": 2}, {"max_loss": 2, "labels": [0, 1]}]),
    ):
        same = [Summary(metric, **options).update(*data) for options in several]
        if "max_loss" in several[0]:  # below the limits of both types
            same.append(Summary(metric, **several[0]).update([0], half.astype(float)))
        released = {
            one.merge(other).release(1.0, random_state=seeded())
            for one, other in itertools.permutations(same, 2)
        }
        assert len(released) == 1
    with pytest.raises(ValueError, match=r"labels is \[0, 1\] here and \[False, True\] there"):
        Summary("log_loss", labels=[0, 1]).merge(Summary("log_loss", labels=[False, True]))


def test_labels_of_any_type_survive_pickling():
    for labels in ([0, 1], [2.0, 1.0], [True, False], ["b", "a"], np.array([3, 5])):
        made = all_of_labels(labels).update(list(labels), list(labels))
        assert bits_of(pickle.loads(bits_of(made))) == bits_of(made)
        assert made.release(1e6).accuracy_score() == 1


# What is refused leaves a summary as it was


def spoiled(way):
    """Yield chunks that the metric refuses."""
    data = way.data(5)
    for place, array in enumerate(data):
        wrong = [array[..., np.newaxis, np.newaxis], np.array([{}] * 5, dtype=object)]
        wrong += [array[:-1]] if len(data) > 1 else []
        wrong += [np.append(array[:-1], np.full_like(array[:1], bad), axis=0) for bad in (math.nan, math.inf)]
        yield from ([*data[:place], bad, *data[place + 1 :]] for bad in wrong)
    if way.weighted:
        yield [*data[:-1], -data[-1]]


@each_way
def test_an_invalid_chunk_raises_what_the_metric_raises(way):
    for start in (way.empty(), way.whole(way.data(6))):
        before = bits_of(start)
        for chunk in spoiled(way):
            expected = outcome(way.call, chunk, epsilon=1.0, random_state=NoEntropy())
            got = outcome(way.update, start, chunk)
            assert got[0] is expected[0]
            # the metric may name public numbers of records; a summary cannot know whether they are public
            unnumbered = re.sub(r"\[.*\]: (\w+) has \d+, (\w+) has \d+", r"\1 and \2", expected[1])
            assert unnumbered.startswith(got[1].rstrip("."))
            assert bits_of(start) == before


def test_merging_and_copying_leave_the_originals_alone():
    for way in WAYS.values():
        a, b, empty = way.whole(way.data(5, seed=1)), way.whole(way.data(7, seed=2)), way.empty()
        before = bits_of(a), bits_of(b)
        for other in (a.merge(b), copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
            way.update(other, way.data(3, seed=3))
        with pytest.raises(ValueError, match="merged with itself"):
            a.merge(way.update(a, way.data(0)))
        chunk = way.data(6)
        made = way.whole(chunk)
        expected = bits_of(made)
        for array in chunk:
            array[:] = array[0]
        assert bits_of(made) == expected  # it holds no view of a chunk
        assert (bits_of(a), bits_of(b)) == before
        assert bits_of(a.merge(empty)) == bits_of(empty.merge(a)) == before[0]
        assert bits_of(empty.merge(way.empty())) == bits_of(empty) != before[0]
        assert bits_of(pickle.loads(pickle.dumps(a))) == bits_of(copy.copy(a)) == before[0]


@each_way
def test_no_record_is_the_empty_set_however_it_is_said_and_refused_where_n_is_public(way):
    budget, none = PrivacyAccountant(1), [array[:0] for array in way.data(3)]
    chunk = way.whole(none, 2000)
    of_none = [way.empty(2000), copy.copy(way.empty(2000)), way.empty(2000).merge(way.empty(2000))]
    of_none += [chunk, chunk.merge(way.empty(2000)), way.update(way.empty(2000).merge(chunk), none)]
    of_none += [pickle.loads(bits_of(one)) for one in of_none]
    paid = {"epsilon": 1.0, "accountant": budget, "random_state": NoEntropy()}
    for summary in of_none:
        with pytest.raises(ValueError, match=r"^Found array with 0 sample\(s\) while a minimum of 1 is req"):
            summary.release(**paid)
    if way.says_too_little:
        one = way.whole(way.data(1), 2000)
        for summary in (one, *(of_none if way.dtype is np.float64 else ())):
            with pytest.raises(ValueError, match=r"cannot be used|pass labels=\[...\]"):
                summary.release(**paid | PRIVATE_N)
    assert budget.spent == 0
    if not (way.says_too_little or way.weighted):
        expected = way.call(none, epsilon=1.0, random_state=seeded(), **PRIVATE_N)
        for summary in of_none:
            assert_same(summary.release(epsilon=1.0, random_state=seeded(), **PRIVATE_N), expected)


def test_chunks_that_do_not_fit_are_for_a_public_n_also_after_a_merge():
    """With a record a chunk of other columns is refused: it would tell that it has none if n is private."""
    y, of_two = np.zeros(50), np.zeros((0, 2))
    both = Summary("mse").update(of_two, of_two).update(y, y)
    for summary in (both, Summary("mse").merge(both), both.merge(Summary("mse"))):
        assert math.isfinite(summary.release(1.0))
        with pytest.raises(ValueError, match="another type or number of columns"):
            summary.release(1.0, **PRIVATE_N)


@loop_over("empty", [[], np.empty((0, 2)), pd.DataFrame(np.empty((0, 2)))])
def test_a_chunk_without_records_that_could_have_some_is_taken_where_n_is_private(empty):
    y = np.zeros((50, 2))
    for order in ((empty, y), (y, empty), (empty, [], y)):
        summary = Summary(dp.private_mse)
        for chunk in order:
            summary.update(chunk, chunk)
        assert math.isfinite(summary.release(1.0, **PRIVATE_N))


# Spends, and what is told


def test_a_release_is_paid_once_as_one_call_and_changes_nothing():
    for way in WAYS.values():
        data, budgets = way.data(9), (PrivacyAccountant(1), PrivacyAccountant(1))
        summary = way.whole(data)
        before = bits_of(summary)
        way.call(data, epsilon=0.75, accountant=budgets[0])
        summary.release(epsilon=0.75, accountant=budgets[1])
        of_call, ours = ([(s.epsilon, s.spend_name, s.mechanism) for s in b.history] for b in budgets)
        assert ours == of_call
        with pytest.raises(dp.PrivacyBudgetError):
            summary.release(0.5, accountant=budgets[1], random_state=NoEntropy())
        with pytest.raises(NoEntropy.Drawn):
            summary.release(0.25, accountant=budgets[1], random_state=NoEntropy(), spend_name="again")
        assert [spend.spend_name for spend in budgets[1].history[1:]] == ["again"]
        assert budgets[1].remaining == 0
        assert bits_of(summary) == before


def test_what_prints_a_summary_shows_public_settings_only():
    x = [987654.25, 1.0, 3.0]
    for summary in (
        mean_loss(x, max_loss=5e6, sample_weight=[1.0, 2.0, 3.0], capacity=2),
        Summary("variance", bounds=(0, 2e6)).update(x),
        Summary(dp.private_mse).update(x, x),
    ):
        for text in (repr(summary), str(summary), f"{summary}"):
            assert "987654" not in text
            assert str(summary.capacity) in text
        assert repr(pickle.loads(bits_of(summary))) == repr(summary)
        assert not hasattr(summary, "__len__")
        assert summary != copy.copy(summary)  # nor are the data compared
        assert len({summary, copy.copy(summary), summary}) == 2
        with pytest.raises(AttributeError):
            summary.capacity = 8
    for summary, text in (
        (Summary("mse", bounds=(0, 1.5)), "private_mse, capacity=2048, bounds=[0, 1.5]"),
        (Summary("variance", capacity=np.int8(3)), "private_variance, capacity=3"),
        (
            Summary("f1_macro", labels=["b", "a"]),
            "private_f1_score, capacity=2048, average='macro', labels=['b', 'a']",
        ),
    ):
        assert repr(summary) == f"Summary({text})"
    assert inspect.getdoc(Summary).startswith("Private data:")


# The capacity

APART = np.arange(2000.0) ** 2  # of equal values, and of close ones, a variance takes its time


def of_a_billion(summary):
    """Return the summary of 500,000 times the records of another, put together by hand."""
    for _ in range(19):
        summary = summary.merge(copy.copy(summary))
    return summary


@pytest.mark.parametrize(
    ("make", "least", "mechanisms"),
    [
        (mean_loss, 0.09, ("adaptive", "hazard", "above_threshold")),
        (variance, 0.06, ["hazard"]),
    ],
    ids=["loss", "variance"],
)
def test_the_default_capacity_serves_the_epsilons_that_the_docstrings_say(make, least, mechanisms):
    """Which depends on the number of records."""
    summary = of_a_billion(make(APART))
    for mechanism, relation in itertools.product(mechanisms, RELATIONS):
        summary.release(least, mechanism=mechanism, neighboring=relation)  # a warning is an error
    for relation in RELATIONS:
        with pytest.warns(UserWarning, match=r"ranks, but the summary keeps 2048\. .*as private.*capacity"):
            summary.release(least - 0.015, neighboring=relation)


def test_the_capacity_follows_from_epsilon():
    for metric, data in (("mae", [APART] * 2), ("variance", [APART])):
        summary = of_a_billion(Summary(metric, epsilon=0.05).update(*data))
        for relation in RELATIONS:
            summary.release(0.05, neighboring=relation)  # a warning is an error
        assert Summary(metric, epsilon=1.0).capacity == CAPACITY < summary.capacity
    with pytest.warns(UserWarning, match="but the summary keeps"):
        Summary("mae", epsilon=0.1).update([1.0] * 9000, [0.0] * 9000).release(0.01)


def test_the_warning_of_a_small_capacity_comes_before_the_spend_and_names_public_numbers_only():
    budget = PrivacyAccountant(1)
    with pytest.raises(UserWarning, match=r"^A release .* uses 30 ranks, but the summary keeps 3"):
        mean_loss([987654.25] * 30, capacity=3).release(0.5, accountant=budget, random_state=NoEntropy())
    assert budget.spent == 0
    for make in (mean_loss, variance):
        told = set()
        for n in (0, 1, 2, 50, 3000):
            with pytest.warns(UserWarning, match="ranks") as caught:
                make(np.arange(n), capacity=8).release(0.1, **PRIVATE_N)
            told |= {str(warning.message) for warning in caught}
        assert len(told) == 1


# Tables of labels and of scores: one release tells everything at one price

LABELS = ["egg", "ham", "spam", "tea"]
RNG = np.random.default_rng(0)
Y = np.array(LABELS)[RNG.integers(0, 4, 300)]
P = np.where(RNG.random(300) < 0.8, Y, "tea")
TRIED = [
    {}, {"normalize": "true"}, {"weights": "linear"}, {"adjusted": True}, {"output_dict": True},
    {"pos_label": "tea"}, *({"average": average} for average in ("macro", "weighted", "micro", None)),
]  # fmt: skip


def of_labels():
    """Yield metrics of labels, with each of the options above that they take."""
    for (name, row), options in itertools.product(METRICS.items(), TRIED):
        if kind_of(row) == "confusion" and options.keys() <= row.options.keys():
            yield name.removeprefix("private_"), row, options


@loop_over("relation", RELATIONS)
def test_one_release_of_labels_tells_all_metrics(relation):
    whole, few = (
        all_of_labels(LABELS, metric).update(Y, P).release(1e7, neighboring=relation)
        for metric in ("confusion_matrix", "classification_report")
    )
    for name, row, options in of_labels():
        needed = ("average" in row.options and {"average"}) or {"pos_label"} & row.options.keys()
        if not needed <= options.keys():
            continue
        expected = row.function(Y, P, epsilon=1e7, labels=LABELS, **options)
        assert getattr(whole, name)(**options) == near(expected), (name, options)
        if "matrix" in name or {"weights", "pos_label"} & options.keys():
            with pytest.raises(ValueError, match="a confusion matrix"):
                getattr(few, name)(**options)
        else:
            assert getattr(few, name)(**options) == near(expected), (name, options)
    exact = sk.confusion_matrix(Y, P, labels=LABELS)
    right, of_true, of_predicted = np.diag(exact), exact.sum(axis=1), exact.sum(axis=0)
    counts = [*right, *(of_true - right), *(of_predicted - right)]
    for told in (few.result.value, *few.result.noise_interval()):
        np.testing.assert_equal(told, counts)
    for released in (whole, few):
        assert released.accuracy_score() == pytest.approx(np.mean(Y == P))
    with pytest.raises(TypeError, match="unexpected keyword argument 'labels'"):
        few.f1_score(average="macro", labels=LABELS)
    shown = f"epsilon=10000000.0, neighboring={relation!r}"
    assert repr(few) == f"ReleasedConfusion(labels={LABELS}, {shown})"


def test_a_result_that_does_not_tell_of_each_label_is_refused():
    """Counts of all labels together, or of one, are no recall and no precision of each."""
    recall, precision = (
        one(Y, P, labels=LABELS, average=None) for one in (sk.recall_score, sk.precision_score)
    )
    taken = set()
    for name, row, options in of_labels():
        needed = {"average": None, "pos_label": "tea"}
        known = {option: value for option, value in needed.items() if option in row.options} | options
        result = dp.with_result(row.function)(Y, P, epsilon=1e7, labels=LABELS, **known)
        try:
            released = dp.ReleasedConfusion.of(result)
        except TypeError:
            continue
        taken.add(name)
        assert released.recall_score(average=None) == near(recall)
        assert released.precision_score(average=None) == near(precision)
    assert {"confusion_matrix", "classification_report", "matthews_corrcoef"} <= taken
    assert not taken & {"selection_rate", "prevalence", "balanced_accuracy_score"}


def near(expected):
    """Return what is equal to a number, an array a text or the rows of a report, but for rounding."""
    if isinstance(expected, dict):
        return {name: near(one) for name, one in expected.items()}
    return expected if isinstance(expected, str) else pytest.approx(expected)
