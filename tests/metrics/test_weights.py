"""Public weights: exact output bounds, exact privacy, and agreement with scikit-learn."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from helpers import (
    MAX,
    check_neighbours,
    hostile_losses,
    loop_over,
    nearest,
    slow_but,
    weighted_bounds,
)
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.auditing import metric_loss
from dp_metrics.sensitivity.aggregates import WeightedLossAggregate
from dp_metrics.sensitivity.exact import BLOCK
from dp_metrics.sensitivity.output_bounds import weighted_loss_bounds


def products(weights, values):
    with np.errstate(over="ignore"):
        return [Fraction(float(p)) for p in np.minimum(np.multiply(weights, values), MAX)]


WEIGHTS = [
    (1, 1, 1, 1),
    (0.1, 0.2, 0.3, 3.3),
    (0, 1, 0, 1e16),
    (5e-324, 1, 1e308, MAX),
    (0.1, 0.1, 1e-200, 0.7),
]


@pytest.mark.parametrize("weights", slow_but(WEIGHTS[1:4], WEIGHTS))
@loop_over("cap", [0.7, 1e308])
def test_bounds_are_the_extremes_over_all_subsets_rounded_once(weights, cap):
    total = sum(map(Fraction, weights))
    limits = products(weights, [cap] * 4)
    for losses in itertools.product((0.0, 0.1, 0.7, cap), repeat=4):
        terms = products(weights, np.clip(losses, 0, cap))
        bounded, unbounded = (
            weighted_bounds(losses, weights, cap),
            weighted_bounds(np.clip(losses, 0, cap), weights),
        )
        assert bounded.value == unbounded.value == nearest(sum(terms) / total)
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        assert bounded.output_range == (0.0, nearest(sum(limits) / total))
        for rank in range(1, 5):
            changed = [set(c) for c in itertools.combinations(range(4), rank)]
            low = min(sum(t for i, t in enumerate(terms) if i not in c) for c in changed)
            high = max(sum(limits[i] if i in c else t for i, t in enumerate(terms)) for c in changed)
            assert bounded.lower[rank - 1] == nearest(low / total)
            assert bounded.upper[rank - 1] == nearest(high / total)


@given(
    losses=st.lists(hostile_losses, min_size=1, max_size=8),
    weights=st.lists(hostile_losses, min_size=8, max_size=8).filter(lambda w: w[0] > 0),
    record=hostile_losses,
    position=st.integers(0, 7),
    cap=st.sampled_from([None, 0.1, 3.0, 1e308, MAX]),
    capacity=st.sampled_from([2, 100]),
)
def test_hostile_floats(losses, weights, record, position, cap, capacity):
    weights = weights[: len(losses)]
    other = list(losses)
    other[position % len(losses)] = record
    check_neighbours(
        weighted_bounds(losses, weights, cap, capacity=capacity),
        weighted_bounds(other, weights, cap, capacity=capacity),
    )


def test_the_room_above_a_loss_is_exact():
    # fl(w (B - v)) instead of the exact m - p puts neighbours two ranks apart in about 1 % of such tiny cases
    rng = np.random.default_rng(0)
    for _ in range(300):
        weights, losses = rng.random(3), np.round(rng.random(3) * 3, 1)
        other = losses.copy()
        other[rng.integers(3)] = 3.0
        check_neighbours(weighted_bounds(losses, weights, 3.0), weighted_bounds(other, weights, 3.0))


def test_ties_of_the_rounded_room_are_broken_by_the_rest():
    # both differences round to 1, but only one of them is more than 1
    limits, terms = np.array([1 + 2**-52, 1.0]), np.array([2**-53, 0.0])
    summary = WeightedLossAggregate.from_blocks([(terms, limits)], weight=2 << 1074, bounded=True, capacity=1)
    headroom = [Fraction(float(m)) - Fraction(float(p)) for m, p in zip(limits, terms, strict=True)]
    assert Fraction(float(summary.headroom[0])) + Fraction(float(summary.headroom_rest[0])) == max(headroom)


@loop_over("capacity", [1, 2, 5])
@loop_over("size", [1, 2, 7])
def test_ties_of_the_rounded_room_survive_blocks_and_merges(size, capacity):
    # the first three differences round to 1 and are not equal
    pairs = [(1 + 2**-52, 2**-53), (1.0, 0.0), (1.0, 2**-55), (0.5, 0.25), (3.0, 2.0)]
    for seed in range(10):
        limits, terms = np.array(pairs * 3)[np.random.default_rng(seed).permutation(15)].T
        blocks = [(terms[i : i + size], limits[i : i + size]) for i in range(0, 15, size)]
        options = {"weight": 1, "bounded": True, "capacity": capacity}
        whole = WeightedLossAggregate.from_blocks(blocks, **options)
        merged, *others = (WeightedLossAggregate.from_blocks([block], **options) for block in blocks)
        for other in others:
            merged = merged.merge(other)
        headrooms = [Fraction(float(m)) - Fraction(float(p)) for m, p in zip(limits, terms, strict=True)]
        for summary in (whole, merged):
            sums = zip(summary.headroom, summary.headroom_rest, strict=True)
            kept = [Fraction(float(headroom)) + Fraction(float(rest)) for headroom, rest in sums]
            assert kept == sorted(headrooms, reverse=True)[:capacity]


@pytest.mark.parametrize("heavy", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 9])
def test_the_sensitivity_is_that_of_the_heaviest_record_wherever_it_stands(heavy):
    n = 2 * BLOCK + 10  # a block begins at each multiple of BLOCK
    weights = np.ones(n)
    weights[heavy] = 1e4
    sensitivity = 1e4 * 0.5 / (n - 1 + 1e4)
    assert weighted_bounds(np.zeros(n), weights, 0.5, capacity=3).sensitivity == pytest.approx(sensitivity)
    parts = [
        WeightedLossAggregate.from_blocks(
            [(np.zeros(part.size), part / 2)], weight=int(part.sum()) << 1074, bounded=True, capacity=3
        )
        for part in np.array_split(weights, 3)
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert weighted_loss_bounds(merged).sensitivity == pytest.approx(sensitivity)


def test_a_sensitivity_too_small_for_a_float_is_not_rounded_to_none():
    for cap in (5e-324, 1e-323):
        sensitivity = weighted_bounds(np.zeros(1000), np.ones(1000), cap).sensitivity
        assert Fraction(sensitivity) >= Fraction(cap) / 1000


def test_permutations_and_chunks_change_no_bit():
    rng = np.random.default_rng(0)
    losses, weights = rng.lognormal(0, 3, 40_000), rng.lognormal(0, 3, 40_000)
    losses = np.minimum(losses, 50.0)
    expected = weighted_bounds(losses, weights, 50.0, capacity=500)
    order = rng.permutation(losses.size)
    shuffled = weighted_bounds(losses[order], weights[order], 50.0, capacity=500)
    with np.errstate(over="ignore"):
        terms, limits = weights * losses, weights * 50.0
    summaries = []
    for part in np.array_split(np.arange(losses.size), 7):
        weight = sum((Fraction(float(w)) for w in weights[part]), Fraction(0)) * 2**1074
        summaries.append(
            WeightedLossAggregate.from_blocks(
                [(terms[part], limits[part])], weight=int(weight), bounded=True, capacity=500
            )
        )
    merged = summaries[0]
    for summary in summaries[1:]:
        merged = summary.merge(merged)
    for other in (shuffled, weighted_loss_bounds(merged)):
        assert other.value == expected.value
        np.testing.assert_array_equal(other.lower, expected.lower)
        np.testing.assert_array_equal(other.upper, expected.upper)
        assert other.output_range == expected.output_range
    with pytest.raises(ValueError, match="limits"):
        merged.merge(
            WeightedLossAggregate.from_blocks([(terms[:9], None)], weight=1, bounded=False, capacity=500)
        )


def test_equal_weights_are_no_weights():
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=(2, 200))
    for options in ({}, {"bounds": (-2, 2)}):
        plain = dp.private_mse(y, p, epsilon=1.0, random_state=SeededEntropy(0), **options)
        ones = np.ones(200)
        assert (
            dp.private_mse(y, p, epsilon=1.0, sample_weight=ones, random_state=SeededEntropy(0), **options)
            == plain
        )


@pytest.mark.parametrize(
    "mechanism", [dp.Hazard(), dp.AboveThreshold(beta=3.0), "inverse_sensitivity", "laplace"]
)
def test_the_exact_privacy_loss_is_at_most_epsilon(mechanism):
    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (1, 2, 5, 20):
        weights = rng.lognormal(0, 1, n)
        for _ in range(6):
            x = np.minimum(rng.lognormal(0, 1, n), 10.0)
            y = x.copy()
            y[rng.integers(n)] = rng.choice([0.0, 10.0])
            options = {"sample_weight": weights, "max_loss": 10.0, "mechanism": mechanism}
            worst = max(worst, metric_loss(dp.private_mean_loss, [x], [y], epsilon=1.0, **options))
    assert 0.5 < worst <= 1 + 1e-9


WEIGHTED = {
    "mse": (dp.private_mse, sk.mean_squared_error, {}),
    "rmse": (dp.private_rmse, sk.root_mean_squared_error, {}),
    "mae": (dp.private_mae, sk.mean_absolute_error, {}),
    "mape": (dp.private_mean_absolute_percentage_error, sk.mean_absolute_percentage_error, {}),
    "pinball": (dp.private_mean_pinball_loss, sk.mean_pinball_loss, {"alpha": 0.2}),
    "msle": (dp.private_mean_squared_log_error, sk.mean_squared_log_error, {}),
    "poisson": (dp.private_mean_poisson_deviance, sk.mean_poisson_deviance, {}),
}


@pytest.mark.parametrize("name", WEIGHTED)
@loop_over("multioutput", ["uniform_average", "raw_values", [0.2, 0, 0.8]])
def test_weighted_metrics_agree_with_scikit_learn_at_a_huge_epsilon(name, multioutput):
    private, twin, options = WEIGHTED[name]
    rng = np.random.default_rng(0)
    y, p = rng.gamma(2, 1, (2, 300, 3))
    weights = rng.random(300)
    if name == "poisson":
        y, p = y[:, 0], p[:, 0]
    else:
        options = {**options, "multioutput": multioutput}
    for sample_weight in (None, weights, weights * 1e-300, np.arange(300) % 2):
        expected = twin(y, p, sample_weight=sample_weight, **options)
        released = private(
            y, p, epsilon=1e9, sample_weight=sample_weight, random_state=SeededEntropy(0), **options
        )
        np.testing.assert_allclose(released, expected, rtol=1e-5)
        assert type(released) is (np.ndarray if name != "poisson" and multioutput == "raw_values" else float)


def test_raw_values_split_epsilon_exactly_and_pay_once():
    seen = []

    class Spy(dp.Hazard):
        def release(self, output_bounds, epsilon, rng=None):
            seen.append(epsilon)
            return super().release(output_bounds, epsilon, rng)

    y = np.arange(30.0).reshape(10, 3)
    accountant = dp.PrivacyAccountant(1)
    dp.private_mse(y, y, epsilon=0.1, multioutput="raw_values", mechanism=Spy(), accountant=accountant)
    assert seen == [Fraction(1, 30)] * 3
    assert [spend.epsilon for spend in accountant.history] == [0.1]


def test_sums_and_degrees_of_freedom_are_public_factors():
    rng = np.random.default_rng(0)
    y, p, w = rng.integers(0, 2, 100), rng.random(100), rng.random(100)
    for options in ({}, {"sample_weight": w}):
        mean = dp.private_log_loss(y, p, epsilon=1.0, random_state=SeededEntropy(1), **options)
        total = dp.private_log_loss(
            y, p, epsilon=1.0, normalize=False, random_state=SeededEntropy(1), **options
        )
        assert total == pytest.approx(mean * (w.sum() if options else 100))
    population = dp.private_variance(p, epsilon=1.0, random_state=SeededEntropy(1))
    sample = dp.private_variance(p, epsilon=1.0, ddof=1, random_state=SeededEntropy(1))
    assert sample == pytest.approx(population * 100 / 99)


def test_a_column_of_weights_counts_as_a_vector():
    data = np.linspace(0, 1, 20), np.linspace(1, 3, 20)
    flat, column = (
        dp.private_mse(*data, epsilon=1.0, sample_weight=weights, random_state=SeededEntropy(0))
        for weights in (np.arange(20.0), np.arange(20.0)[:, np.newaxis])
    )
    assert flat == column


@pytest.mark.parametrize("public", [{"sample_weight": [1.0, 2.0] * 250}, {"groups": np.arange(500) // 2}])
def test_weighted_losses_and_sums_over_people_are_clipped_to_the_cap(public):
    release = dp.private_mean_loss([10.0] * 500, max_loss=1.0, epsilon=1000.0, **public)
    assert release == pytest.approx(1.0, abs=0.05)
