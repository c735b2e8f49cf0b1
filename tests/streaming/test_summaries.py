"""Summaries: chunks in any order and nesting give the bits of the one-shot call, and tell nothing else."""

import copy
import inspect
import itertools
import math
import multiprocessing
import pickle
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cases
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from helpers import MAX, NoEntropy, hostile_losses, hostile_values, kind_of, loop_over, multisets, slow_but
from hypothesis import given, settings
from hypothesis import strategies as st

import dp_metrics as dp
from dp_metrics import LossSummary, PrivacyAccountant, PrivacyBudgetError, VarianceSummary
from dp_metrics._random import SeededEntropy
from dp_metrics.auditing import metric_loss
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import METRICS
from dp_metrics.streaming.summaries import CAPACITY

RELATIONS = ("replace_one", "add_or_remove_one")
PRIVATE_N = {"neighboring": "add_or_remove_one"}
PER_CALL = {
    "epsilon",
    "neighboring",
    "mechanism",
    "accountant",
    "random_state",
    "sample_weight",
    "groups",
    "spend_name",
}


def quarters(rng, shape):
    return rng.integers(-16, 17, shape) / 4


def targets(*outputs):
    return lambda rng, n: (quarters(rng, (n, *outputs)), quarters(rng, (n, *outputs)))


def positive(*outputs):
    return lambda rng, n: tuple(rng.integers(1, 17, (n, *outputs)) / 4 for _ in range(2))


def amounts(rng, n):
    return (rng.integers(0, 40, n) / 4,)


def probabilities(columns, dtype=np.float64, labels=None):
    def make(rng, n):
        y = rng.integers(0, max(columns, 2), n)
        p = rng.integers(0, 129, (n, columns)) / 128
        return y if labels is None else np.array(labels)[y], (p if columns > 1 else p[:, 0]).astype(dtype)

    return make


def top_k(rng, n):
    return rng.integers(0, 3, n), quarters(rng, (n, 3))


def classes(values, *outputs):
    return lambda rng, n: tuple(np.array(values)[rng.integers(0, len(values), (n, *outputs))] for _ in "tp")


@dataclass(frozen=True)
class Case:
    """A metric that a summary serves, with public options, and how to make valid records."""

    function: Callable[..., float]
    make: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False

    def data(self, n, seed=0):
        """Return n records, the last array being the weights, if there are any."""
        rng = np.random.default_rng(seed)
        data = self.make(rng, n)
        return (*data, rng.integers(1, 9, n) / 8) if self.weighted else data

    def empty(self, capacity=CAPACITY):
        return LossSummary(self.function, capacity=capacity, **self.options)

    def update(self, summary, data):
        return summary.update(*data[:-1], sample_weight=data[-1]) if self.weighted else summary.update(*data)

    @property
    def is_open(self):
        """Whether the options leave open of how many columns the records are."""
        return "labels" in inspect.signature(self.function).parameters and "labels" not in self.options

    @property
    def is_narrow(self):
        """Whether the records are of a type that limits their loss to less than options and lists do."""
        last = self.make(np.random.default_rng(0), 1)[-1]
        return last.dtype in (np.float16, np.float32) and "max_loss" not in self.options

    def one_shot(self, data, **settings):
        if self.weighted:
            *data, settings["sample_weight"] = data
        return self.function(*data, **self.options, **settings)


class VarianceCase(Case):
    def empty(self, capacity=CAPACITY):
        return VarianceSummary(**self.options, capacity=capacity)


HALVES, THREE = (0.5, 0.5), [0.2, 0.3, 0.5]
W = {"weighted": True}
LOSSES = {
    "mse": Case(dp.private_mse, targets()),
    "mse, bounds": Case(dp.private_mse, targets(), {"bounds": (-3.0, 2.5)}),
    "mse, 3 outputs": Case(dp.private_mse, targets(3), {"bounds": (-3, 3)}),
    "mse, weights of outputs": Case(dp.private_mse, targets(3), {"multioutput": np.array(THREE)}),
    "mse, weights": Case(dp.private_mse, targets(), **W),
    "mse, weights, bounds": Case(dp.private_mse, targets(2), {"bounds": (-3, 3)}, **W),
    "mae": Case(dp.private_mae, targets()),
    "mae, bounds": Case(dp.private_mae, targets(2), {"bounds": [-3, 3], "multioutput": HALVES}),
    "mae, weights": Case(dp.private_mae, targets(), {"bounds": (-3, 3)}, **W),
    "rmse": Case(dp.private_rmse, targets(), {"multioutput": "uniform_average"}),
    "rmse, bounds": Case(dp.private_rmse, targets(), {"bounds": (-3, 3)}),
    "rmse, weights": Case(dp.private_rmse, targets(), **W),
    "mean loss": Case(dp.private_mean_loss, amounts),
    "mean loss, cap": Case(dp.private_mean_loss, amounts, {"max_loss": 7}),
    "mean loss, weights": Case(dp.private_mean_loss, amounts, **W),
    "mean loss, weights, cap": Case(dp.private_mean_loss, amounts, {"max_loss": np.float64(7.1)}, **W),
    "mape": Case(dp.private_mean_absolute_percentage_error, positive()),
    "mape, cap": Case(
        dp.private_mean_absolute_percentage_error, positive(2), {"max_loss": 0.7, "multioutput": [3, 1]}
    ),
    "mape, weights": Case(dp.private_mean_absolute_percentage_error, positive(), {"max_loss": 2.0}, **W),
    "msle": Case(dp.private_mean_squared_log_error, positive()),
    "msle, bounds": Case(
        dp.private_mean_squared_log_error, positive(3), {"bounds": (0, 3.5), "multioutput": THREE}
    ),
    "msle, weights": Case(dp.private_mean_squared_log_error, positive(), {"bounds": (0, 3)}, **W),
    "pinball": Case(dp.private_mean_pinball_loss, targets(), {"alpha": 0.1}),
    "pinball, bounds": Case(
        dp.private_mean_pinball_loss,
        targets(3),
        {"alpha": 0.9, "bounds": (-2, 3), "multioutput": THREE},
    ),
    "pinball, weights": Case(dp.private_mean_pinball_loss, targets(), {"alpha": 0.3}, **W),
    "poisson": Case(dp.private_mean_poisson_deviance, positive()),
    "poisson, cap": Case(dp.private_mean_poisson_deviance, positive(), {"max_loss": 1.5}),
    "poisson, weights": Case(dp.private_mean_poisson_deviance, positive(), {"max_loss": 1.5}, **W),
    "log loss": Case(dp.private_log_loss, probabilities(1)),
    "log loss, labels": Case(dp.private_log_loss, probabilities(1), {"labels": [0, 1]}),
    "log loss, float32": Case(dp.private_log_loss, probabilities(1, np.float32)),
    "log loss, 3 labels": Case(dp.private_log_loss, probabilities(3), {"max_loss": 5}),
    "log loss, text": Case(
        dp.private_log_loss, probabilities(3, np.float16, ["a", "b", "c"]), {"labels": ["a", "b", "c"]}
    ),
    "log loss, sum": Case(dp.private_log_loss, probabilities(2), {"normalize": False}),
    "log loss, weights": Case(dp.private_log_loss, probabilities(1), {"normalize": False}, **W),
    "brier": Case(dp.private_brier_score_loss, probabilities(1), {"pos_label": 0}),
    "brier, text": Case(
        dp.private_brier_score_loss,
        probabilities(1, np.float64, ["no", "yes"]),
        {"labels": np.array(["yes", "no"]), "pos_label": "yes"},
    ),
    "brier, 3 labels": Case(dp.private_brier_score_loss, probabilities(3), {"scale_by_half": True}),
    "brier, whole": Case(dp.private_brier_score_loss, probabilities(2), {"scale_by_half": False}),
    "brier, weights": Case(dp.private_brier_score_loss, probabilities(1), {"scale_by_half": "auto"}, **W),
    "zero-one": Case(dp.private_zero_one_loss, classes(["a", "b"])),
    "zero-one, 2 outputs": Case(dp.private_zero_one_loss, classes([1, 2, 3], 2), {"normalize": True}),
    "zero-one, sum": Case(dp.private_zero_one_loss, classes([True, False]), {"normalize": False}),
    "zero-one, weights": Case(dp.private_zero_one_loss, classes([1, 2]), {"normalize": False}, **W),
    "accuracy": Case(dp.private_accuracy_score, classes([1.0, 2.0, 5.0])),
    "accuracy, sum": Case(dp.private_accuracy_score, classes([1, 2, 5]), {"normalize": False}),
    "accuracy, weights": Case(dp.private_accuracy_score, classes(["x", "y"]), **W),
    "top-k": Case(dp.private_top_k_accuracy_score, top_k, {"k": 1, "labels": [0, 1, 2]}),
    "top-k, sum": Case(dp.private_top_k_accuracy_score, top_k, {"normalize": False}),
    "top-k, weights": Case(dp.private_top_k_accuracy_score, top_k, **W),
    "mean": Case(dp.private_mean, lambda rng, n: (quarters(rng, n),), {"bounds": (-3, 3.5)}),
    "mean, weights": Case(dp.private_mean, lambda rng, n: (quarters(rng, n),), {"bounds": (-3, 3)}, **W),
}
BY_HAND = {case.function for case in LOSSES.values()}
for name, general in cases.CASES.items():  # of metrics without cases of their own here
    if kind_of(general.row) == "mean" and general.function not in BY_HAND:
        outputs = {"multioutput": "uniform_average"} if "multioutput" in general.row.options else {}
        LOSSES |= {
            name: Case(general.function, general.data, general.options | outputs),
            f"{name}, limit": Case(general.function, general.data, general.options | general.bounded),
            f"{name}, weights": Case(general.function, general.data, general.options, **W),
        }
CASES = LOSSES | {
    "variance": VarianceCase(dp.private_variance, lambda rng, n: (quarters(rng, n),)),
    "variance, bounds": VarianceCase(
        dp.private_variance, lambda rng, n: (quarters(rng, n),), {"bounds": (-3, 3.5)}
    ),
}
# one for each way through the aggregates; every other case takes the same ways, and runs with the slow tests
REPRESENTATIVE = {
    "mse",
    "mse, weights, bounds",
    "mean loss, cap",
    "log loss, float32",
    "log loss, labels",
    "accuracy",
    "variance, bounds",
}
each_way = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=() if name in REPRESENTATIVE else pytest.mark.slow)
        for name, case in CASES.items()
    ],
)
each_kind = pytest.mark.parametrize("name", ["mse", "mse, weights, bounds", "log loss", "variance, bounds"])


def whole(case, data, capacity=CAPACITY):
    return case.update(case.empty(capacity), data)


def outcome(call):
    """Return a number, or the exception and what it says."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        return type(error), str(error)
    except NoEntropy.Drawn:
        return "accepted"


def test_every_metric_that_is_a_mean_of_losses_is_in_the_table_with_all_its_options():
    tried = {}
    for case in LOSSES.values():
        tried.setdefault(case.function, set()).update(case.options)
    assert {function.__name__ for function in tried} == {
        n for n, row in METRICS.items() if kind_of(row) == "mean"
    }
    for function, options in tried.items():
        parameters = inspect.signature(function).parameters.values()
        public = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - PER_CALL
        assert options == public, function.__name__
        assert any(case.weighted for case in LOSSES.values() if case.function is function)


# --- the same bits ---------------------------------------------------------------------------


@st.composite
def pieces(draw, n, *, empty=True):
    """Return the numbers of n records in any order, cut anywhere."""
    order = draw(st.permutations(range(n)))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=5)))
    if draw(st.booleans()):
        cuts = range(1, n)  # chunks of one
    parts = [order[a:b] for a, b in itertools.pairwise([0, *cuts, n])]
    return [part for part in parts if part or empty]


def gathered(draw, case, data, parts, capacity):
    """Return the summary of chunks, each added to one of several summaries that merge as any tree."""
    summaries = [case.empty(capacity) for _ in range(draw(st.integers(1, 4)))]
    for part in parts:
        chunk = tuple(array[part] for array in data)
        case.update(summaries[draw(st.integers(0, len(summaries) - 1))], chunk)
    while len(summaries) > 1:
        other = summaries.pop(draw(st.integers(0, len(summaries) - 1)))
        summaries.append(summaries.pop(draw(st.integers(0, len(summaries) - 1))).merge(other))
    return summaries[0]


@each_way
@settings(max_examples=12)
@given(st.data())
def test_chunks_in_any_order_and_any_nesting_of_merges_give_the_same_bytes(case, data):
    n = data.draw(st.integers(1, 14))
    capacity = data.draw(st.sampled_from([1, 2, 5, 13, 1024]))
    records = case.data(n, seed=data.draw(st.integers(0, 99)))
    parts = data.draw(pieces(n, empty=not case.weighted))
    summary = gathered(data.draw, case, records, parts, capacity)
    expected = whole(case, records, capacity).to_bytes()
    assert summary.to_bytes() == expected
    assert type(summary).from_bytes(expected).to_bytes() == expected


@each_way
@loop_over("neighboring", RELATIONS)
def test_a_release_is_that_of_the_one_shot_call_or_refused_alike(case, neighboring):
    data = case.data(60)
    parts = [tuple(array[part] for array in data) for part in (slice(7), slice(7, 8), slice(8, None))]
    first, second, third = (whole(case, part, capacity=2000) for part in parts)
    summary = third.merge(first.merge(second))
    summary = type(summary).from_bytes(summary.to_bytes())
    default = inspect.signature(case.function).parameters["mechanism"].default
    numbers = 0
    for mechanism in (default, *MECHANISMS, dp.AboveThreshold.paper(), dp.Hazard(resolution=0.05)):
        # of a private number of values a summary may not know whether it keeps them all: no two stages
        for epsilon in (0.1, 1, 5.0 if neighboring == RELATIONS[1] else 20.0):
            options = {"epsilon": epsilon, "neighboring": neighboring, "mechanism": mechanism}
            expected = outcome(lambda o=options: case.one_shot(data, random_state=SeededEntropy(3), **o))
            released = outcome(lambda o=options: summary.release(random_state=SeededEntropy(3), **o))
            if neighboring == RELATIONS[1] and (case.is_open or case.is_narrow):
                assert not isinstance(released, float)
                continue
            assert released == expected
            numbers += isinstance(released, float)
    refused = case.weighted or case.is_open or case.is_narrow or "normalize" in case.options
    assert numbers or (neighboring == RELATIONS[1] and refused)


@pytest.mark.parametrize("name", ["variance", "variance, bounds"])
@loop_over("ddof", [1, 0.5, -2, 59.5])
def test_a_variance_with_ddof_is_that_of_the_one_shot_call(name, ddof):
    case = CASES[name]
    data = case.data(60)
    summary = whole(case, data)
    for epsilon in (0.5, 5):
        released = summary.release(epsilon, ddof=ddof, random_state=SeededEntropy(1))
        assert released == case.one_shot(data, epsilon=epsilon, ddof=ddof, random_state=SeededEntropy(1))


def test_many_records_in_batches_give_the_bits_of_the_one_shot_call():
    rng = np.random.default_rng(0)
    y, p, w = rng.normal(size=50_001), rng.standard_t(3, size=50_001), rng.random(50_001)
    for weights in (None, w):
        summary = LossSummary(dp.private_mse)
        for batch in np.array_split(rng.permutation(y.size), 23):
            summary.update(y[batch], p[batch], sample_weight=None if weights is None else weights[batch])
        for epsilon in (0.1, 1.0):
            released = summary.release(epsilon, random_state=SeededEntropy(2))
            assert released == dp.private_mse(
                y, p, epsilon=epsilon, sample_weight=weights, random_state=SeededEntropy(2)
            )


@pytest.mark.parametrize("weight", slow_but((None, 0.1, MAX), [None, 1.0, 0.1, 5e-324, MAX]))
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (dp.private_mean_loss, {}),
        (dp.private_mean_loss, {"max_loss": 3.0}),
        (dp.private_mean_loss, {"max_loss": MAX}),
        (dp.private_mse, {}),
        (dp.private_mae, {"bounds": (-1e308, 3.3)}),
    ],
)
@settings(max_examples=12)
@given(st.data())
def test_hostile_floats_give_the_same_bits(function, options, weight, data):
    n = data.draw(st.integers(1, 9))
    values = hostile_losses if function is dp.private_mean_loss else hostile_values
    arrays = [np.array(data.draw(st.lists(values, min_size=n, max_size=n)))]
    if function is not dp.private_mean_loss:
        arrays.append(np.array(data.draw(st.lists(values, min_size=n, max_size=n))))
    arrays = [np.where((a == 0) & (np.arange(n) % 2 == 1), -0.0, a) for a in arrays]
    case = Case(function, lambda rng, n: (), options, weighted=weight is not None)
    if case.weighted:
        arrays.append(np.where(np.arange(n) % 3 == 0, 0.7, weight))
    summary = gathered(
        data.draw, case, arrays, data.draw(pieces(n, empty=False)), data.draw(st.integers(1, 5))
    )
    expected = whole(case, arrays, summary.capacity)
    assert summary.to_bytes() == expected.to_bytes()
    enough = whole(case, arrays, 100)
    assert enough.release(0.5, random_state=SeededEntropy(1)) == case.one_shot(
        arrays, epsilon=0.5, random_state=SeededEntropy(1)
    )


@pytest.mark.parametrize("bounds", [None, (-0.0, 3.3), (-1e308, 1e308), (-MAX, MAX)])
@settings(max_examples=40)
@given(st.data())
def test_hostile_values_give_the_same_bits(bounds, data):
    n = data.draw(st.integers(1, 9))
    x = np.array(data.draw(st.lists(hostile_values | st.just(-0.0), min_size=n, max_size=n)))
    case = VarianceCase(dp.private_variance, lambda rng, n: (), {"bounds": bounds})
    summary = gathered(data.draw, case, [x], data.draw(pieces(n)), data.draw(st.integers(1, 5)))
    expected = whole(case, [x], summary.capacity).to_bytes()
    assert summary.to_bytes() == expected
    assert VarianceSummary.from_bytes(expected).to_bytes() == expected
    assert whole(case, [x]).release(0.5, random_state=SeededEntropy(1)) == case.one_shot(
        [x], epsilon=0.5, random_state=SeededEntropy(1)
    )


@settings(max_examples=100)
@given(
    records=st.lists(
        st.tuples(hostile_losses | st.just(-0.0), st.sampled_from([0.0, -0.0, 5e-324, 0.1, 1.0, 1e308])),
        min_size=1,
        max_size=9,
    ),
    capped=st.booleans(),
    capacity=st.integers(1, 5),
    random=st.randoms(),
)
def test_zeros_of_either_sign_as_weights_change_no_bit_in_any_order(records, capped, capacity, random):
    records.append((0.3, 0.5))
    options = {"max_loss": 3.0} if capped else {}
    made = []
    for _ in range(2):
        losses, weights = np.array(records).T
        made.append(
            LossSummary.from_data(
                dp.private_mean_loss, losses, sample_weight=weights, capacity=capacity, **options
            )
        )
        random.shuffle(records)
    assert made[0].to_bytes() == made[1].to_bytes()


def test_a_summary_is_never_merged_with_itself():
    summary = LossSummary.from_data(dp.private_mae, [1.0], [2.0])
    with pytest.raises(ValueError, match="itself"):
        summary.merge(summary.update([3.0], [4.0]))


def test_the_order_of_options_does_not_matter_and_their_types_do():
    a = LossSummary(dp.private_log_loss, labels=[0, 1], max_loss=2).update([0], [0.5])
    b = LossSummary(dp.private_log_loss, max_loss=2, labels=[0, 1]).update([1], [0.5])
    assert a.merge(b).to_bytes() == b.merge(a).to_bytes()
    with pytest.raises(ValueError, match="options"):
        a.merge(LossSummary(dp.private_log_loss, max_loss=2, labels=[False, True]).update([1], [0.5]))


def test_chunks_without_records_or_without_weight_change_nothing_with_weights():
    weights = np.array([0, 0.5, 0, 0, 2, 0])
    for case in LOSSES.values():
        if case.weighted:
            *data, _ = case.data(6)
            summary = case.empty()
            for part in (slice(0), slice(1), slice(1, 2), slice(2, 2), slice(2, 4), slice(4, None)):
                case.update(summary, tuple(array[part] for array in (*data, weights)))
            assert summary.to_bytes() == whole(case, (*data, weights)).to_bytes()


def test_weights_that_are_all_zero_are_refused_by_the_release():
    budget = PrivacyAccountant(1)
    summary = LossSummary.from_data(dp.private_mse, [1.0], [2.0], sample_weight=[0.0])
    with pytest.raises(ValueError, match=r"^Sample weights must contain at least one non-zero number"):
        summary.release(1.0, accountant=budget, random_state=NoEntropy())
    assert budget.spent == 0


def test_equal_options_of_other_types_merge_to_the_same_bytes():
    for a, b in (
        ({"bounds": (0, 1)}, {"bounds": np.array([-0.0, 1.0])}),
        ({"multioutput": [1, 0.5]}, {"multioutput": np.array([1.0, 0.5])}),
    ):
        columns = 2 if "multioutput" in a else 1
        y = np.ones((3, columns))
        first = LossSummary.from_data(dp.private_mse, y, y / 4, **a)
        second = LossSummary.from_data(dp.private_mse, y, y / 2, **b)
        assert first.merge(second).to_bytes() == second.merge(first).to_bytes()
    low, high = (VarianceSummary.from_data([0.1], bounds=(zero, 1)) for zero in (-0.0, 0))
    assert low.merge(high).to_bytes() == high.merge(low).to_bytes()
    p = [[0.2, 0.5, 0.3]]
    kinds = (range(3), [0, 1, 2], pd.Index([0, 1, 2]), np.arange(3.0), (0.0, 1, 2))
    made = [LossSummary.from_data(dp.private_log_loss, [1], p, labels=labels) for labels in kinds]
    assert len({summary.to_bytes() for summary in made}) == 1


# --- what is refused -------------------------------------------------------------------------


def spoiled(case):
    """Yield chunks that the metric refuses."""
    data = case.data(5)
    for i, array in enumerate(data):
        yield (*data[:i], array[:-1], *data[i + 1 :])
        if array.dtype.kind == "f":
            for bad in (math.nan, math.inf):
                bad_array = array.copy()
                bad_array[-1] = bad
                yield (*data[:i], bad_array, *data[i + 1 :])
        yield (*data[:i], array[..., np.newaxis, np.newaxis], *data[i + 1 :])
        yield (*data[:i], np.array([{}] * 5, dtype=object), *data[i + 1 :])
    if case.weighted:
        yield (*data[:-1], -data[-1])
    elif len(data) == 1:
        return
    yield (np.array([[0.5] * 7] * 5), *data[1:])


@each_way
def test_an_invalid_chunk_raises_what_the_metric_raises_and_leaves_the_summary_as_it_was(case):
    before = whole(case, case.data(6)).to_bytes()
    refused = 0
    for chunk in spoiled(case):
        expected = outcome(lambda c=chunk: case.one_shot(c, epsilon=1.0, random_state=NoEntropy()))
        summary = whole(case, case.data(6))
        got = outcome(lambda c=chunk, s=summary: case.update(s, c))
        assert isinstance(got, tuple) == isinstance(expected, tuple)
        if isinstance(got, tuple):
            refused += 1
            assert got[0] is expected[0]
            # the metric may name public numbers of records; a summary cannot know whether they are public
            unnumbered = re.sub(r"\[.*\]: (\w+) has \d+, (\w+) has \d+", r"\1 and \2", expected[1])
            assert unnumbered.startswith(got[1].rstrip("."))
            assert summary.to_bytes() == before
    assert refused >= 2


@each_way
def test_an_invalid_first_chunk_leaves_the_summary_empty(case):
    summary = case.empty()
    with pytest.raises((ValueError, TypeError)):
        case.update(summary, next(spoiled(case)) if len(case.data(1)) > 1 else (np.array([math.nan]),))
    assert summary.is_empty
    assert summary.to_bytes() == case.empty().to_bytes()
    case.update(summary, case.data(3))


def mean_loss(x=(1.0,), **options):
    return LossSummary.from_data(dp.private_mean_loss, list(x), **options)


def log_loss(dtype=np.float64, columns=2, **options):
    return LossSummary.from_data(
        dp.private_log_loss, [0], np.full((1, columns), 1 / columns, dtype), **options
    )


def mse(outputs=1, **options):
    return LossSummary.from_data(dp.private_mse, *np.ones((2, 1, outputs)), **options)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (mse(), LossSummary.from_data(dp.private_mae, [1.0], [1.0])),
        (mse(), LossSummary.from_data(dp.private_rmse, [1.0], [1.0])),
        (mse(), mse(bounds=(0, 1))),
        (mse(bounds=(0, 2)), mse(bounds=(0, 1))),
        (mse(2), mse(3)),
        (mse(2), mse(2, multioutput=[0.5, 0.5])),
        (mse(), mse(capacity=7)),
        (LossSummary(dp.private_mse), LossSummary(dp.private_mse, capacity=7)),
        (LossSummary(dp.private_mse), LossSummary(dp.private_mae)),
        (mean_loss(), mean_loss(max_loss=2)),
        (mean_loss(), mean_loss(sample_weight=[1.0])),
        (mean_loss(max_loss=2), mean_loss(max_loss=2, sample_weight=[1.0])),
        (log_loss(np.float32), log_loss(np.float64)),
        (log_loss(np.float32), log_loss(np.float16)),
        (log_loss(np.float32, sample_weight=[1.0]), log_loss(np.float64, sample_weight=[1.0])),
        (log_loss(), log_loss(columns=1)),
        (log_loss(), log_loss(columns=3)),
        (log_loss(), log_loss(labels=[0, 1])),
        (log_loss(), log_loss(normalize=False)),
        (VarianceSummary.from_data([1.0]), VarianceSummary.from_data([1.0], bounds=(0, 1))),
        (VarianceSummary.from_data([1.0]), VarianceSummary.from_data([1.0], capacity=3)),
        (VarianceSummary.from_data([1.0]), mean_loss()),
        (VarianceSummary(), LossSummary(dp.private_mse)),
    ],
)
def test_summaries_that_differ_in_public_settings_refuse_to_merge(a, b):
    for one, other in ((a, b), (b, a)):
        before = [summary._known for summary in (a, b)]
        with pytest.raises(ValueError, match=r"merge only|same number of outputs"):
            one.merge(other)
        assert [summary._known for summary in (a, b)] == before


@loop_over(
    ("a", "b", "difference"),
    [
        (
            VarianceSummary(),
            LossSummary(dp.private_mse),
            "type is VarianceSummary here and LossSummary there",
        ),
        (LossSummary("mse"), LossSummary("mae"), 'metric is "private_mse" here and "private_mae" there'),
        (VarianceSummary(), VarianceSummary(capacity=9), "capacity is 2048 here and 9 there"),
        (VarianceSummary(bounds=(0, 1)), VarianceSummary(), "bounds is [0.0, 1.0] here and null there"),
        (LossSummary("mse"), LossSummary("mse", bounds=(0, 1)), "bounds is not given here and [0, 1] there"),
        (
            dp.ConfusionSummary(["a", "b"]),
            dp.ConfusionSummary(["b", "a"]),
            'labels is ["a", "b"] here and ["b", "a"] there',
        ),
    ],
)
def test_a_refusal_to_merge_says_what_differs(a, b, difference):
    with pytest.raises(ValueError, match=re.escape(f"options and capacity: {difference}.")):
        a.merge(b)


def test_what_is_no_summary_does_not_merge():
    for other in (None, 3, [1.0], b"", VarianceSummary):
        with pytest.raises((ValueError, TypeError)):
            mse().merge(other)


@pytest.mark.parametrize("columns", [3, 1])
def test_float_types_of_one_cap_merge_with_max_loss_below_all_of_them(columns):
    a, b = (log_loss(dtype, columns, max_loss=5.0) for dtype in (np.float32, np.float64))
    assert a.merge(b).to_bytes() == b.merge(a).to_bytes()


def test_merging_and_copying_leave_the_originals_alone():
    for name in ("mse, bounds", "mse, weights, bounds", "variance"):
        case = CASES[name]
        a, b = whole(case, case.data(5, seed=1)), whole(case, case.data(7, seed=2))
        before = a.to_bytes(), b.to_bytes()
        merged, copied, deep = a.merge(b), copy.copy(a), copy.deepcopy(a)
        for other in (merged, copied, deep):
            case.update(other, case.data(3, seed=3))
        assert copied.to_bytes() == deep.to_bytes()
        assert (a.to_bytes(), b.to_bytes()) == before
        empty = case.empty()
        assert a.merge(empty).to_bytes() == empty.merge(a).to_bytes() == before[0]
        assert empty.merge(case.empty()).to_bytes() == empty.to_bytes() != before[0]


@each_way
def test_the_data_of_a_chunk_may_change_after_the_update(case):
    data = tuple(array.copy() for array in case.data(6))
    summary = whole(case, data)
    before = summary.to_bytes()
    for array in data:
        array[:] = array[0]
    assert summary.to_bytes() == before


@each_way
def test_a_summary_that_was_never_updated_is_that_of_no_record(case):
    budget, empty = PrivacyAccountant(1), case.empty(2000)
    with pytest.raises(ValueError, match=r"^Found array with 0 sample\(s\) while a minimum of 1 is required"):
        empty.release(1.0, accountant=budget, random_state=NoEntropy())
    is_refused = case.is_open or not case.options.get("normalize", True)
    of_none = [
        empty,
        copy.copy(empty),
        empty.merge(case.empty(2000)),
        type(empty).from_bytes(empty.to_bytes()),
    ]
    of_some = [whole(case, case.data(size)) for size in (1, 9)] if is_refused or case.is_narrow else []
    for summary in [*of_some, *(of_none if is_refused else [])]:
        with pytest.raises(ValueError, match=r"cannot be used|pass labels=\[...\]"):
            summary.release(1.0, accountant=budget, random_state=NoEntropy(), **PRIVATE_N)
    assert budget.spent == 0
    if not is_refused:
        # an array of numbers cannot hold labels that are text, and is refused
        data = [
            array[:0] if array.dtype.kind == "U" else np.empty((0, *array.shape[1:]))
            for array in case.make(np.random.default_rng(0), 1)
        ]
        settings = {"epsilon": 1.0, **PRIVATE_N}
        expected = case.function(*data, **case.options, random_state=SeededEntropy(4), **settings)
        for summary in of_none:
            assert summary.release(random_state=SeededEntropy(4), **settings) == expected


@each_way
def test_no_record_at_all_is_refused_or_the_value_of_the_empty_set(case):
    if case.weighted:
        return  # see the test of chunks without records
    data = tuple(array[:0] for array in case.data(3))
    summary = whole(case, data, capacity=2000)
    summary = type(summary).from_bytes(summary.to_bytes())
    budget = PrivacyAccountant(1)
    with pytest.raises(ValueError, match=r"^Found array with 0 sample\(s\) while a minimum of 1 is required"):
        summary.release(1.0, accountant=budget, random_state=NoEntropy())
    assert budget.spent == 0
    if case.options.get("normalize", True) and not (case.is_open or case.is_narrow):
        released = summary.release(1.0, accountant=budget, random_state=SeededEntropy(4), **PRIVATE_N)
        assert released == case.one_shot(data, epsilon=1.0, random_state=SeededEntropy(4), **PRIVATE_N)
        assert budget.spent == 1


def test_the_value_of_the_empty_set_is_zero():
    nothing = mean_loss([], capacity=2000, max_loss=1.0)
    released = [nothing.release(50.0, random_state=SeededEntropy(seed), **PRIVATE_N) for seed in range(20)]
    assert np.median(released) < 1e-3


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("mse, weights", PRIVATE_N, "^sample_weight cannot be used with neighboring"),
        ("log loss, sum", PRIVATE_N, "^normalize=False cannot be used with neighboring"),
        ("log loss, weights", PRIVATE_N, "^sample_weight and normalize=False cannot be used"),
        ("variance", {**PRIVATE_N, "ddof": 1}, "^ddof=1 cannot be used"),
        ("variance", {"ddof": 9}, "^ddof must be smaller"),
        ("variance", {"ddof": math.nan}, "^ddof must be"),
        ("mse", {"epsilon": 0}, "^epsilon must be"),
        ("mse", {"neighboring": "other"}, "^neighboring must be one of"),
        ("accuracy", {"neighboring": None}, "^neighboring must be one of"),
        ("mse", {"mechanism": "gaussian"}, "^mechanism must be one of"),
        ("mse", {"mechanism": ""}, "^mechanism must be one of"),
        ("accuracy", {"mechanism": ""}, "^mechanism must be one of"),
        ("variance", {"mechanism": "laplace"}, "bounds"),
        ("mse", {"mechanism": "laplace"}, "bounds"),
        ("mse", {"mechanism": 3}, "^mechanism must be one of"),
        ("mse", {"accountant": 3}, "^accountant must be"),
        ("mse", {"random_state": "x"}, "random_state"),
    ],
)
def test_a_refused_release_draws_and_spends_nothing(name, options, match):
    case = CASES[name]
    budget = PrivacyAccountant(1)
    options = {"epsilon": 0.5, "accountant": budget, "random_state": NoEntropy(), **options}
    with pytest.raises((ValueError, TypeError), match=match):
        whole(case, case.data(9)).release(**options)
    assert budget.spent == 0


@each_kind
def test_a_release_spends_once_under_the_name_of_the_metric(name):
    case = CASES[name]
    budget = PrivacyAccountant(1)
    summary = whole(case, case.data(9))
    before = summary.to_bytes()
    summary.release(0.75, accountant=budget)
    (spend,) = budget.history
    assert (spend.epsilon, spend.spend_name) == (0.75, case.function.__name__)
    assert spend.neighboring == "replace_one"
    with pytest.raises(PrivacyBudgetError):
        summary.release(0.5, accountant=budget, random_state=NoEntropy())
    assert budget.spent == 0.75
    assert summary.to_bytes() == before
    assert summary.release(0.25, accountant=budget) >= 0
    assert budget.remaining == 0


def test_the_record_of_a_release_is_that_of_the_one_shot_call():
    for case in CASES.values():
        data = case.data(9)
        first, second = PrivacyAccountant(1), PrivacyAccountant(1)
        case.one_shot(data, epsilon=0.5, accountant=first)
        whole(case, data).release(0.5, accountant=second)
        assert [(s.epsilon, s.spend_name, s.mechanism) for s in first.history] == [
            (s.epsilon, s.spend_name, s.mechanism) for s in second.history
        ]


def test_a_seeded_release_warns():
    with pytest.warns(dp.SeededReleaseWarning):
        mse().release(1.0, random_state=3)


@loop_over("capacity", [0, -1, 1.5, 4.0, True, np.True_, None, "7", math.nan])
def test_a_capacity_that_is_no_positive_whole_number_is_refused(capacity):
    for make in (
        lambda: LossSummary(dp.private_mse, capacity=capacity),
        lambda: VarianceSummary(capacity=capacity),
        lambda: LossSummary.from_data(dp.private_mse, [1], [2], capacity=capacity),
        lambda: VarianceSummary.from_data([1], capacity=capacity),
    ):
        with pytest.raises(ValueError, match=r"^capacity must be a positive integer"):
            make()


def test_the_capacity_is_public():
    assert LossSummary(dp.private_mse).capacity == VarianceSummary().capacity == CAPACITY == 2048
    for made in (LossSummary(dp.private_mse, capacity=np.int8(7)), VarianceSummary(capacity=np.int64(7))):
        assert type(made.capacity) is int
        assert made.capacity == 7
        with pytest.raises(AttributeError):
            made.capacity = 8


@pytest.mark.parametrize(
    "metric",
    [
        dp.private_r2_score,
        dp.private_variance,
        dp.private_std,
        dp.private_quantile,
        dp.private_regression_report,
        sklearn.metrics.mean_squared_error,
        lambda y, p, epsilon: 0.0,
        partial(dp.private_mse, [0.0]),
        "private_r2_score",
        None,
        3,
        LossSummary,
    ],
)
def test_what_is_no_mean_of_losses_is_refused_with_the_names_of_those_that_are(metric):
    with pytest.raises(TypeError, match=r"^metric must be (one of .*mean of one loss|a private metric of)"):
        LossSummary(metric)


def test_a_function_with_the_name_of_a_metric_is_refused():
    def private_mse(y_true, y_pred, *, epsilon):
        return 0.0

    with pytest.raises(TypeError, match=r"^metric must be a private metric"):
        LossSummary(private_mse)


@loop_over("option", sorted(PER_CALL))
def test_what_belongs_to_a_call_is_no_option_and_the_message_says_where_it_goes(option):
    with pytest.raises(TypeError, match=f"^{option} is no option of a summary.*update.*release"):
        LossSummary(dp.private_mse, **{option: None})


@loop_over("option", ["max_loss", "labels", "y_true", "y_pred", "ddof", "nonsense"])
def test_options_that_the_metric_does_not_take_are_refused_by_name(option):
    with pytest.raises(TypeError, match=f"^private_mse.. got an unexpected keyword argument '{option}'"):
        LossSummary(dp.private_mse, **{option: None})


@loop_over("value", [object(), {1, 2}, {"a": 1}, b"x", 1j, [object()], [[b"x"]]])
def test_options_that_the_bytes_cannot_hold_are_refused_by_name(value):
    with pytest.raises(TypeError, match=r"^labels must be made of"):
        LossSummary(dp.private_log_loss, labels=value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mse", {"bounds": (1, 0)}),
        ("mse", {"bounds": (0, math.inf)}),
        ("mse, 3 outputs", {"multioutput": "raw_values"}),
        ("mse, 3 outputs", {"multioutput": "other"}),
        ("mean loss", {"max_loss": -1}),
        ("mean loss", {"max_loss": math.nan}),
        ("pinball", {"alpha": 2}),
        ("log loss", {"labels": [0, 1, 2]}),
        ("brier", {"pos_label": 7}),
        ("mean", {"bounds": None}),
    ],
)
def test_options_with_an_invalid_value_are_refused_by_the_first_chunk(name, options):
    case = LOSSES[name]
    with pytest.raises(ValueError, match=next(iter(options))):
        LossSummary.from_data(case.function, *case.data(3), **options)


def test_a_root_of_several_outputs_is_refused():
    with pytest.raises(ValueError, match="root of several outputs"):
        LossSummary.from_data(dp.private_rmse, np.ones((3, 2)), np.ones((3, 2)))


# --- the capacity ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "options", "least"),
    [
        ("loss", {}, 0.086),
        ("loss", PRIVATE_N, 0.09),
        pytest.param("variance", {}, 0.06, marks=pytest.mark.slow),
        pytest.param("variance", PRIVATE_N, 0.06, marks=pytest.mark.slow),
    ],
)
def test_the_default_capacity_serves_the_epsilons_that_the_docstrings_say(metric, options, least):
    """Which depends on n, so a billion records are put into the summaries by hand."""
    summary = mean_loss([0.5] * 2000) if metric == "loss" else VarianceSummary.from_data([1.0, 2.0] * 1000)
    for _ in range(19):  # 2000 * 2^19 is more than a billion
        summary = summary.merge(copy.copy(summary))
    assert summary._known.n > 1e9
    for mechanism in ("adaptive", "hazard", "above_threshold"):
        summary.release(least, mechanism=mechanism, **options)  # a warning is an error
    with pytest.warns(UserWarning, match=r"ranks, but the summary keeps 2048\. .*as private.*capacity"):
        summary.release(least - 0.01, **options)


def test_the_warning_of_a_small_capacity_comes_before_the_spend_and_names_public_numbers_only():
    summary = mean_loss([987654.25] * 30, capacity=3)
    budget = PrivacyAccountant(1)
    with pytest.raises(UserWarning, match=r"^A release .* uses 30 ranks, but the summary keeps 3"):
        summary.release(0.5, accountant=budget, random_state=NoEntropy())
    assert budget.spent == 0
    with pytest.warns(UserWarning, match="ranks") as caught:
        summary.release(0.5, accountant=budget)
    assert "987654" not in str(caught[0].message)
    assert budget.spent == 0.5


@pytest.mark.parametrize("make", [mean_loss, VarianceSummary.from_data], ids=["loss", "variance"])
def test_the_warning_of_a_small_capacity_does_not_depend_on_a_private_number_of_records(make):
    told = set()
    for n in (0, 1, 2, 50, 3000):
        with pytest.warns(UserWarning, match="ranks") as caught:
            make(np.arange(n), capacity=8).release(0.1, **PRIVATE_N)
        told |= {str(warning.message) for warning in caught}
    assert len(told) == 1


@pytest.mark.filterwarnings("ignore:A release at this epsilon uses:UserWarning")
@loop_over("change", ["update", "merge"])
@loop_over("relations", [RELATIONS, RELATIONS[::-1]])
@pytest.mark.parametrize("name", ["mse, bounds", "mse", "log loss, labels", "variance", "variance, bounds"])
def test_what_a_summary_remembers_is_forgotten_with_a_new_relation_or_new_records(name, relations, change):
    """A release at one epsilon asks for fewer ranks than the 8 that are kept, at the other for more."""
    case = CASES[name]
    first, second = case.data(200, seed=1), case.data(300, seed=2)

    def releases(*chunks, summary=None):
        """Release from the summary that is given, or each time from a fresh one of the chunks."""
        return [
            (summary or whole_of(chunks)).release(
                epsilon, neighboring=relation, random_state=SeededEntropy(seed)
            )
            for epsilon in (50.0, 2.0)
            for relation in relations
            for seed in range(3)
        ]

    def whole_of(chunks):
        summary = case.empty(8)
        for chunk in chunks:
            case.update(summary, chunk)
        return summary

    summary = whole_of([first])
    assert releases(summary=summary) == releases(first)
    if change == "update":
        case.update(summary, second)
    else:
        summary = summary.merge(whole_of([second]))
    assert releases(summary=summary) == releases(first, second) != releases(first)


def released_by(case):
    """Return the metric as a summary of some capacity gives it, a function like the one-shot one."""

    def metric(*records, epsilon, mechanism, capacity, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return whole(case, records, capacity).release(epsilon, mechanism=mechanism, **options)

    return metric


TINY = (0.0, 0.1, 0.3, 3.0)
SMALL_MECHANISMS = [
    dp.Adaptive(threshold=1e-9),
    dp.Hazard(resolution=1.0),
    dp.AboveThreshold(beta=4.0),
    dp.InverseSensitivity(),
    dp.PiecewiseLaplace(),
    dp.Laplace(),
]


def neighbours(n, relation):
    """Yield all pairs of neighbouring data sets of at most n values of a tiny domain."""
    for x in multisets(TINY, n):
        for i, value in itertools.product(range(n), TINY):
            if relation == "add_or_remove_one":
                yield x, x[:i] + x[i + 1 :]
            elif value > x[i]:
                yield x, (*x[:i], value, *x[i + 1 :])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("capacity", [2, *(pytest.param(c, marks=pytest.mark.slow) for c in (1, 3))])
@pytest.mark.parametrize(
    "mechanism", slow_but(SMALL_MECHANISMS[:2], SMALL_MECHANISMS), ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize(
    "case",
    [
        Case(dp.private_mean_loss, amounts, {"max_loss": 3.0}),
        Case(dp.private_mean_loss, amounts),
        VarianceCase(dp.private_variance, amounts, {"bounds": (0.0, 3.0)}),
        VarianceCase(dp.private_variance, amounts),
    ],
    ids=["loss, cap", "loss", "variance, bounds", "variance"],
)
def test_a_capacity_that_is_too_small_stays_private(case, mechanism, capacity, relation):
    """The exact loss of every pair of neighbours, by brute force."""
    epsilon, n = 1.0, 4
    limitless = isinstance(mechanism, dp.Adaptive | dp.Hazard | dp.AboveThreshold)
    if not limitless and (not case.options or relation == "add_or_remove_one"):
        return  # refused
    if isinstance(mechanism, dp.AboveThreshold) and not case.options:
        return  # has too many candidates to compare
    exact = partial(metric_loss, released_by(case), epsilon=epsilon, mechanism=mechanism)
    pairs = sorted(set(neighbours(n, relation)))
    if isinstance(mechanism, dp.Adaptive):
        pairs = pairs[::3]  # each takes the laws given hundreds of drawn scales
    worst = max(exact([a], [b], capacity=capacity, neighboring=relation) for a, b in pairs)
    assert 0.3 * epsilon < worst <= epsilon * (1 + (0 if isinstance(mechanism, dp.Hazard) else 1e-9))


@pytest.mark.parametrize("capacity", [2, *(pytest.param(c, marks=pytest.mark.slow) for c in (1, 3))])
@pytest.mark.parametrize("options", slow_but(({},), [{}, {"max_loss": 3.0}]))
def test_a_capacity_that_is_too_small_stays_private_with_weights(options, capacity):
    case = Case(dp.private_mean_loss, amounts, options, weighted=True)
    weights = (1.0, 0.5, 2.0, 0.1)
    worst = 0.0
    domain = TINY[::3] + TINY[2:3]
    for x in itertools.product(domain, repeat=4):
        for i, value in itertools.product(range(4), domain):
            if value > x[i]:
                y = (*x[:i], value, *x[i + 1 :])
                loss = metric_loss(
                    released_by(case),
                    [x, weights],
                    [y, weights],
                    epsilon=1.0,
                    mechanism=dp.Hazard(resolution=1.0),
                    capacity=capacity,
                )
                worst = max(worst, loss)
    assert 0.3 < worst <= 1.0


# --- private data ----------------------------------------------------------------------------


def sentinel_summaries():
    x = [987654.25, 1.0, 3.0]
    return [
        mean_loss(x),
        mean_loss(x, max_loss=5e6, sample_weight=[1.0, 2.0, 3.0], capacity=2),
        VarianceSummary.from_data(x),
        VarianceSummary.from_data(x, bounds=(0, 2e6)),
        LossSummary.from_data(dp.private_mse, x, x, bounds=(0.0, 2e6)),
    ]


def test_what_prints_a_summary_shows_public_settings_only():
    for summary in sentinel_summaries():
        for text in (repr(summary), str(summary), f"{summary}", f"{summary:}", summary._repr_html_()):
            assert "987654" not in text
            assert str(summary.capacity) in text
        assert not hasattr(summary, "__len__")
    assert repr(LossSummary(dp.private_mse, bounds=(0, 1.5))) == (
        "LossSummary(private_mse, capacity=2048, bounds=[0, 1.5])"
    )
    assert repr(VarianceSummary(capacity=3)) == "VarianceSummary(bounds=None, capacity=3)"
    for full in sentinel_summaries():
        assert repr(type(full).from_bytes(full.to_bytes())) == repr(full)


def test_comparing_and_hashing_summaries_neither_raises_nor_looks_at_the_data():
    a, b = mean_loss([1.0, 2.0]), mean_loss([1.0, 2.0])
    assert a == a
    assert (a == b) is False
    assert (a == 3) is False
    assert len({a, b, a}) == 2


def test_summaries_survive_pickle_and_copy():
    for summary in sentinel_summaries():
        for other in (pickle.loads(pickle.dumps(summary)), copy.copy(summary), copy.deepcopy(summary)):
            assert type(other) is type(summary)
            assert other.to_bytes() == summary.to_bytes()
            assert repr(other) == repr(summary)


def test_the_docstrings_say_that_a_summary_is_private_data():
    for kind in (LossSummary, VarianceSummary):
        assert inspect.getdoc(kind).startswith("Private data:")
        assert "never publish" in inspect.getdoc(kind)
        assert "private data" in kind.to_bytes.__doc__


def summarised(records):
    return LossSummary.from_data(dp.private_mae, *records, bounds=(-3, 3)).to_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_summaries_made_in_other_processes_merge_from_their_bytes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has no such processes")
    case = LOSSES["mae"]
    y, p = case.data(40)
    parts = [(y[part], p[part]) for part in (slice(11), slice(11, 30), slice(30, None))]
    with multiprocessing.get_context(method).Pool(1) as pool:
        made = [LossSummary.from_bytes(data) for data in pool.map(summarised, parts)]
    merged = made[2].merge(made[0]).merge(made[1])
    assert merged.to_bytes() == summarised((y, p))
    released = merged.release(1.0, random_state=SeededEntropy(5))
    assert released == dp.private_mae(y, p, epsilon=1.0, bounds=(-3, 3), random_state=SeededEntropy(5))


def test_a_summary_that_was_released_under_one_relation_is_released_under_the_other_as_if_it_had_not():
    x = np.random.default_rng(0).normal(size=300)
    for order in itertools.permutations(["replace_one", "add_or_remove_one"]):
        summary = LossSummary(dp.private_mean_loss, max_loss=3.0).update(abs(x))
        for relation in order:
            # as many ranks under either relation
            mechanism = dp.AboveThreshold(ranks=3)
            options = {"epsilon": 1.0, "neighboring": relation, "mechanism": mechanism, "random_state": 0}
            with pytest.warns(dp.SeededReleaseWarning):
                again = summary.release(**options)
            with pytest.warns(dp.SeededReleaseWarning):
                alone = dp.private_mean_loss(abs(x), max_loss=3.0, **options)
            assert again == alone


@loop_over("merges", [False, True])
@loop_over("size", [0, 1])
def test_whether_chunks_fit_is_not_decided_by_records_where_n_is_private(size, merges):
    """A chunk of another type, or of other columns, is refused with a record, so it is without one."""
    cases = [
        (
            dp.private_log_loss,
            np.zeros(size),
            np.full((size, 2), 0.5, "f4"),
            np.zeros(50),
            np.full((50, 2), 0.5),
        ),
        (dp.private_mse, np.zeros((size, 2)), np.zeros((size, 2)), np.zeros(50), np.zeros(50)),
    ]
    for metric, *chunk, y, p in cases:
        for turned in (False, True):
            parts = [LossSummary.from_data(metric, *chunk), LossSummary.from_data(metric, y, p)]
            first, second = parts[::-1] if turned else parts
            if size:
                with pytest.raises(ValueError, match="All records must have the same"):
                    first.merge(second)
                continue
            both = first.merge(second) if merges else first.update(*(chunk if turned else (y, p)))
            for summary in (both, LossSummary.from_bytes(both.to_bytes()), LossSummary(metric).merge(both)):
                assert math.isfinite(summary.release(1.0))
                with pytest.raises(ValueError, match="another type or number of columns"):
                    summary.release(1.0, neighboring="add_or_remove_one")


@pytest.mark.parametrize("empty", [[], np.empty((0, 2)), pd.DataFrame(np.empty((0, 2)))], ids=type)
def test_a_chunk_without_records_that_could_have_some_is_taken_where_n_is_private(empty):
    y = np.zeros((50, 2))
    for order in ((empty, y), (y, empty), (empty, [], y)):
        summary = LossSummary(dp.private_mse)
        for chunk in order:
            summary = summary.update(chunk, chunk)
        assert math.isfinite(summary.release(1.0, neighboring="add_or_remove_one"))
