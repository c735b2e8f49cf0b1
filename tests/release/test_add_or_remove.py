"""neighboring="add_or_remove_one": brute-force bounds, exact privacy, and a private number of records."""

import math
import re
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import (
    MAX,
    NoEntropy,
    critical_points,
    hostile_losses,
    hostile_values,
    loss_query,
    multisets,
    nearest,
    scores,
    slow_but,
    variance_query,
)
from hypothesis import given
from hypothesis import strategies as st

import dp_metrics as dp
from dp_metrics._random import OSEntropy, SeededEntropy
from dp_metrics.auditing import metric_loss
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics import METRICS
from dp_metrics.release import release as _release
from dp_metrics.sensitivity.aggregates import LossAggregate, VarianceAggregate
from dp_metrics.sensitivity.noisy_sums import FINENESS, ratio_sums
from dp_metrics.sensitivity.output_bounds import mean_loss_bounds_private_n, variance_bounds_private_n

RELATION = {"neighboring": "add_or_remove_one"}
CAPACITY = 6


def loss_bounds(x, cap=None, capacity=CAPACITY):
    return mean_loss_bounds_private_n(
        LossAggregate.from_data(np.array(x, dtype=float), capacity=capacity, cap=cap)
    )


def var_bounds(x, bounds=None, capacity=CAPACITY):
    return variance_bounds_private_n(
        VarianceAggregate.from_data(np.array(x, dtype=float), capacity=capacity, bounds=bounds)
    )


def mean(values):
    return sum(map(Fraction, values)) / len(values) if values else Fraction(0)


def variance(values):
    centre = mean(values)
    return mean([(Fraction(v) - centre) ** 2 for v in values])


def data_sets(domain, up_to):
    return [x for n in range(up_to + 1) for x in multisets(domain, n)]


def distance(a, b):
    a, b = Counter(a), Counter(b)
    return sum(((a - b) + (b - a)).values())


def check_neighbours(a, b):
    for one, other in ((a, b), (b, a)):
        assert other.lower[0] <= one.value <= other.upper[0]
        assert (one.upper[:-1] <= other.upper[1:]).all()
        assert (one.lower[:-1] >= other.lower[1:]).all()
    t = critical_points(a, b)
    assert np.abs(scores(b, t) - scores(a, t)).max() <= 1


@pytest.mark.parametrize(("domain", "cap"), [((0, 1, 3), 3), ((0.0, 0.1, 0.7), 0.7), ((0.0, 0.3, 3.0), 3.0)])
def test_mean_bounds_are_the_extremes_over_all_data_sets_within_reach(domain, cap):
    reachable = {y: mean(y) for y in data_sets(domain, 8)}
    for x in data_sets(domain, 4):
        bounded, unbounded = loss_bounds(x, cap, capacity=4), loss_bounds(x, capacity=4)
        assert bounded.value == unbounded.value == nearest(mean(x))
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        assert (unbounded.upper == MAX).all()
        for rank in range(1, 5):
            reach = [nearest(value) for y, value in reachable.items() if distance(x, y) <= rank]
            assert bounded.lower[rank - 1] == min(reach)
            assert bounded.upper[rank - 1] == max(reach)
        assert bounded.n is None
        assert not bounded.monotonic


@pytest.mark.parametrize("domain", [(0, 1, 3, 7), (-0.3, 0.1, 3.3)])
def test_variance_bounds_contain_all_data_sets_within_reach(domain):
    limits = (float(min(domain)), float(max(domain)))
    reachable = {y: variance(y) for y in data_sets(domain, 6)}
    for x in data_sets(domain, 4):
        bounded, unbounded = var_bounds(x, limits, capacity=3), var_bounds(x, capacity=3)
        assert bounded.value == unbounded.value == nearest(variance(x))
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        assert (unbounded.upper == MAX).all()
        for rank in range(1, 4):
            reach = [nearest(value) for y, value in reachable.items() if distance(x, y) <= rank]
            assert bounded.lower[rank - 1] <= min(reach)
            assert max(reach) <= bounded.upper[rank - 1] <= bounded.output_range[1]
            assert bounded.lower[rank - 1] == nearest(least_variance(x, rank))


def least_variance(x, rank):
    """Remove every subset and add copies of the mean of what is left, in exact arithmetic."""
    best = []
    for removed in range(min(rank, len(x)) + 1):
        for kept in {y for y in data_sets(sorted(set(x)), len(x) - removed) if not Counter(y) - Counter(x)}:
            if len(kept) == len(x) - removed:
                added = [mean(kept)] * (rank - removed)
                best.append(variance([*map(Fraction, kept), *added]))
    return min(best)


@pytest.mark.parametrize("capacity", slow_but([2], [2, 5]))
def test_scores_of_all_neighbours_differ_by_at_most_one(capacity):
    domain = (0.0, 0.1, 0.3, 3.3)
    for x in data_sets(domain, 5):
        for added in domain:
            y = (*x, added)
            for make in (
                partial(loss_bounds, cap=None),
                partial(loss_bounds, cap=3.3),
                partial(var_bounds, bounds=None),
                partial(var_bounds, bounds=(0.0, 3.3)),
            ):
                check_neighbours(make(x, capacity=capacity), make(y, capacity=capacity))


@given(
    x=st.lists(hostile_losses, max_size=12),
    record=hostile_losses,
    cap=st.sampled_from([None, 3.0, 1e308, MAX]),
)
def test_hostile_losses(x, record, cap):
    limit = MAX if cap is None else cap
    x, record = np.minimum(x, limit).tolist(), min(record, limit)
    check_neighbours(loss_bounds(x, cap), loss_bounds([*x, record], cap))


@given(x=st.lists(hostile_values, max_size=12), record=hostile_values)
def test_hostile_values(x, record):
    check_neighbours(var_bounds(x), var_bounds([*x, record]))


def test_numbers_of_drops_that_rounding_cannot_tell_apart_are_compared_exactly():
    """Dropping the outlier breaks even with keeping it: floats near there order the two quotients wrongly."""

    def quotient(x, drop):  # at rank 1, for values above 2^-8, which are whole multiples of 2^-60
        units, size = [int(math.ldexp(value, 60)) for value in x], len(x) - drop
        windows = [units[j : j + size] for j in range(drop + 1)]
        spread = min(size * sum(u * u for u in window) - sum(window) ** 2 for window in windows)
        return Fraction(spread, size * (len(x) + 1 - 2 * drop)) / 2**120

    for seed in range(60):
        others = np.random.default_rng(seed).uniform(0.9, 1.1, 10) * (-1) ** np.arange(10)
        others = sorted(others.tolist())
        low, high = others[-1], 10.0
        assert quotient([*others, low], 0) < quotient([*others, low], 1)
        while low < (middle := (low + high) / 2) < high:
            if quotient([*others, middle], 0) < quotient([*others, middle], 1):
                low = middle
            else:
                high = middle
        for outlier in low + np.arange(-4, 4) * math.ulp(low):
            x = [*others, float(outlier)]
            assert var_bounds(x, capacity=1).lower[0] == nearest(min(quotient(x, 0), quotient(x, 1)))


def test_a_mean_is_rounded_to_the_nearest_step_as_its_limits_assume():
    for total in range(4):
        steps, rest = ratio_sums(total, 3, 1, 1.0, 1.0).values
        assert abs(Fraction(total * FINENESS, 3) - steps) <= Fraction(1, 2)
        assert steps + rest == FINENESS


def pair_logs(wrong, right, epsilon, reach=9):
    """Return the logarithms of the law of the two noisy numbers of a share, on all pairs near 0."""
    query = loss_query(np.repeat([1.0, 0.0], [wrong, right]), 1.0, is_count=True)
    law = query.prepare(Geometric(), Fraction(epsilon), private_n=True).sums_law
    places = np.arange(-reach, reach + 1)
    norm = math.log(math.tanh(law.rate / 2))
    first, second = (norm - float(law.rate) * abs(places - value) for value in law.sums.values)
    return np.add.outer(first, second)


@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
def test_two_noisy_counts_lose_epsilon_between_neighbours_and_no_more(epsilon):
    """Enumerated: up to 4 wrong and up to 4 right records, and one record more of either kind."""
    for wrong, right in np.ndindex(5, 5):
        logs = pair_logs(wrong, right, epsilon)
        assert np.unravel_index(logs.argmax(), logs.shape) == (9 + wrong, 9 + right)
        for other in (pair_logs(wrong + 1, right, epsilon), pair_logs(wrong, right + 1, epsilon)):
            assert np.abs(logs - other).max() == pytest.approx(epsilon, rel=1e-12)


def test_a_share_is_told_by_whole_counts():
    true, guess = np.zeros(500, int), np.arange(500) % 5 == 0
    seen = {"mechanism": "geometric", "epsilon": 2.0, "random_state": SeededEntropy(3), **RELATION}
    rng_of_scores = np.random.default_rng(0)
    calls = {
        "accuracy": (dp.private_accuracy_score, guess, 100),
        "zero-one": (dp.private_zero_one_loss, guess, 100),
        "top-k": (
            partial(dp.private_top_k_accuracy_score, k=1, labels=[0, 1, 2]),
            np.eye(3)[guess.astype(int)] + rng_of_scores.random((500, 3)) / 2,
            100,
        ),
    }
    for metric, pred, wrong in calls.values():
        result = dp.with_result(metric)(true, pred, **seen)
        sums = result.drawn["sums"]
        assert np.abs(np.array(sums) - [wrong, 500 - wrong]).max() < 15
        share = sums[0] / sum(sums)
        assert result.value in (share, 1 - share)


def test_the_noise_of_two_counts_is_that_of_epsilon():
    """A seeded sample of both noises together: the exact law to within 5 standard deviations."""
    epsilon, size, query = 1.0, 6000, loss_query(np.repeat([1.0, 0.0], [7, 30]), 1.0, is_count=True)
    draw, entropy = query.prepare(Geometric(), Fraction(1), private_n=True), SeededEntropy(11)
    drawn = Counter(tuple(draw(entropy, None)[1]["sums"]) for _ in range(size))
    mass = {k: math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k)) for k in range(-3, 4)}
    for i, j in np.ndindex(7, 7):
        p = mass[i - 3] * mass[j - 3]
        assert abs(drawn[i + 4, j + 27] - size * p) < 5 * math.sqrt(size * p * (1 - p)) + 1


def test_neither_metric_is_monotonic():
    for make, x, y in (
        (loss_bounds, (0, 0, 0, 10), (0, 0, 0, 10, 1)),
        (var_bounds, (0, 0, 0, 10, 10, 10), (0, 0, 0, 10, 10, 10, 6)),
    ):
        a, b = make(x), make(y)
        change = scores(b, t := critical_points(a, b)) - scores(a, t)
        assert (change > 0).any()
        assert (change < 0).any()


def test_the_count_costs_a_twentieth_and_sets_only_the_resolution(monkeypatch):
    seen = []
    original = dp.Hazard.release

    def record(self, output_bounds, epsilon, rng=None):
        seen.append((output_bounds, epsilon))
        return original(self, output_bounds, epsilon, rng)

    drawn = []
    draw = _release.discrete_laplace

    def count(entropy, rate):
        drawn.append(rate)
        return draw(entropy, rate)

    monkeypatch.setattr(dp.Hazard, "release", record)
    monkeypatch.setattr(_release, "discrete_laplace", count)
    x = np.linspace(0, 1, 500)
    accountant = dp.PrivacyAccountant(1)
    options = {"random_state": SeededEntropy(1), "mechanism": "hazard", **RELATION}
    dp.private_mean_loss(x, epsilon=0.3, accountant=accountant, **options)
    assert drawn == [Fraction(3, 200)]
    ((output_bounds, epsilon),) = seen
    assert epsilon + drawn[0] == Fraction(3, 10)
    assert output_bounds.n != 500
    assert abs(output_bounds.n - 500) < 2000
    (spend,) = accountant.history
    assert spend.epsilon == 0.3
    assert spend.neighboring == "add_or_remove_one"
    # one count for all releases of a call, and none where the resolution is given
    seen.clear(), drawn.clear()
    y = np.column_stack([x, x, x])
    dp.private_mse(y, y / 2, epsilon=0.3, multioutput="raw_values", **options)
    assert len(drawn) == 1
    assert sum(epsilon for _, epsilon in seen) + drawn[0] == Fraction(3, 10)
    drawn.clear()
    dp.private_mae(x, x, epsilon=0.3, **(options | {"mechanism": dp.Hazard(resolution=0.1)}))
    assert drawn == []


@pytest.mark.parametrize("noise", slow_but([-1, 10**400], [-(10**400), -1, 0, 10**400]))
def test_whatever_the_count_nothing_raises_after_the_spend(monkeypatch, noise):
    monkeypatch.setattr(_release, "discrete_laplace", lambda entropy, rate: noise)
    for metric, data in CALLS.values():
        for epsilon in (1e-300, 1.0, 1e300):
            for records in (data, [a[:0] for a in data]):
                result = metric(*records, epsilon=epsilon, random_state=SeededEntropy(0), **RELATION)
                assert math.isfinite(result)


@pytest.mark.parametrize("metric", [dp.private_mean_loss, dp.private_variance])
def test_an_enormous_count_needs_no_enormous_memory(monkeypatch, metric):
    """At a tiny epsilon the rank of the order statistic would be as large as the noisy count."""
    monkeypatch.setattr(_release, "discrete_laplace", lambda entropy, rate: 10**400)
    for mechanism in ("adaptive", dp.Adaptive(threshold=1e-9)):
        result = metric(
            [1.0, 2.0, 5.0], epsilon=1e-12, mechanism=mechanism, random_state=SeededEntropy(0), **RELATION
        )
        assert math.isfinite(result)


def test_a_limit_that_underflows_is_the_same_for_no_records():
    pair = [[1e-200], [0.0]], [[], []]
    options = {"bounds": (0, 1e-200), "mechanism": dp.Adaptive(threshold=1e-9), **RELATION}
    assert metric_loss(dp.private_mse, *pair, epsilon=1.0, **options) <= 1 + 1e-9


rng = np.random.default_rng(0)
Y, P = rng.normal(size=(2, 37)) * 3
CALLS = {
    "mse": (dp.private_mse, [Y, P]),
    "rmse": (dp.private_rmse, [Y, P]),
    "mae": (dp.private_mae, [Y, P]),
    "r2": (dp.private_r2_score, [Y, P]),
    "mape": (dp.private_mean_absolute_percentage_error, [Y, P]),
    "pinball": (dp.private_mean_pinball_loss, [Y, P]),
    "msle": (dp.private_mean_squared_log_error, [abs(Y), abs(P)]),
    "poisson": (dp.private_mean_poisson_deviance, [abs(Y), abs(P)]),
    "log loss": (dp.private_log_loss, [Y > 0, abs(P) / 10]),
    "brier": (dp.private_brier_score_loss, [Y > 0, abs(P) / 10]),
    "zero-one": (dp.private_zero_one_loss, [Y > 0, P > 0]),
    "accuracy": (dp.private_accuracy_score, [Y > 0, P > 0]),
    "mean loss": (dp.private_mean_loss, [abs(Y)]),
    "mean": (partial(dp.private_mean, bounds=(-10, 10)), [Y]),
    "variance": (dp.private_variance, [Y]),
    "std": (dp.private_std, [Y]),
}
each_call = pytest.mark.parametrize(("metric", "data"), CALLS.values(), ids=CALLS)


@each_call
def test_the_empty_set_is_a_legal_input(metric, data):
    empty = [a[:0] for a in data]
    assert math.isfinite(metric(*empty, epsilon=1.0, **RELATION))
    with pytest.raises(ValueError, match="0 sample"):
        metric(*empty, epsilon=1.0, random_state=NoEntropy())


def test_the_value_of_the_empty_set_is_zero():
    assert dp.private_mse([], [], epsilon=1e6, **RELATION) < 1e-3
    assert dp.private_variance([], epsilon=1e6, **RELATION) < 1e-3
    assert dp.private_mean([], epsilon=1e6, bounds=(-3, 5), **RELATION) == pytest.approx(-3, abs=1e-3)


@each_call
def test_what_would_give_the_number_of_records_away_is_refused(metric, data):
    function = getattr(metric, "func", metric)
    parameters = function.__kwdefaults__
    revealing = {"sample_weight": np.ones(37), "groups": np.arange(37), "normalize": False, "ddof": 1}
    for name in revealing.keys() & parameters.keys():
        with pytest.raises(ValueError, match=name):
            metric(*data, epsilon=1.0, random_state=NoEntropy(), **{name: revealing[name]}, **RELATION)


@each_call
def test_no_message_tells_the_number_of_records(metric, data):
    broken = [
        [np.append(data[0], 0), *data[1:]] if len(data) > 1 else None,
        [np.zeros((37, 2, 3, 4)), *data[1:]],
        [np.zeros((37, 0)), *data[1:]],
        [np.zeros((37, 2)), *[np.zeros((37, 3)) for _ in data[1:]]] if len(data) > 1 else None,
        [np.zeros((37, 2, 2)), *[np.zeros((37, 2, 2)) for _ in data[1:]]],
        [np.append(data[0][:-1], np.nan), *data[1:]],
        [[*data[0][:-1], [1, 2]], *data[1:]],
        [[*data[0][:-1], "37x"], *data[1:]],
    ]
    for records in filter(None, broken):
        with pytest.raises((ValueError, TypeError, NoEntropy.Drawn)) as caught:
            metric(*records, epsilon=1.0, random_state=NoEntropy(), **RELATION)
        assert not {"36", "37", "38"} & set(re.findall(r"\d+", str(caught.value)))


@each_call
def test_mechanisms_that_need_a_public_number_say_so_before_the_spend(metric, data):
    accountant = dp.PrivacyAccountant(1)
    options = {"accountant": accountant, "random_state": NoEntropy(), **RELATION}
    refused = {"laplace", "geometric"}
    # noisy sums need no public number, but a limit of what a record adds
    if METRICS[getattr(metric, "func", metric).__name__].limit is None:
        refused -= {"geometric"}
    for mechanism in refused:
        with pytest.raises(ValueError, match=r"public (upper limit|number)"):
            metric(*data, epsilon=1.0, mechanism=mechanism, **options)
    assert accountant.spent == 0


@pytest.mark.parametrize(
    "mechanism",
    ["adaptive", "hazard", "geometric", "above_threshold", "inverse_sensitivity", "piecewise_laplace"],
)
def test_mechanisms_that_work_with_a_private_number(mechanism):
    options = {"mechanism": mechanism, "random_state": SeededEntropy(0), **RELATION}
    for epsilon in (1e-12, 1.0, 100.0):
        assert 0 <= dp.private_mse(Y, P, epsilon=epsilon, bounds=(-9, 9), **options) <= 324
        assert 0 <= dp.private_log_loss(Y > 0, abs(P) / 10, epsilon=epsilon, **options) <= 37
        assert 0 <= dp.private_variance(Y, epsilon=epsilon, bounds=(-9, 9), **options) <= 324


def test_ranks_do_not_depend_on_the_number_of_records(monkeypatch):
    ranks = []
    original = dp.Hazard.release
    monkeypatch.setattr(
        dp.Hazard, "release", lambda self, b, e, rng=None: ranks.append(b.ranks) or original(self, b, e, rng)
    )
    for n in (0, 1, 10, 5000):
        dp.private_mean_loss(np.ones(n), epsilon=1.0, mechanism="hazard", **RELATION)
    assert len(set(ranks)) == 1


@pytest.mark.parametrize("epsilon", slow_but([0.1], [0.1, 1.0, 10.0]))
@pytest.mark.parametrize(
    "query",
    [
        lambda x: loss_query(x),
        lambda x: loss_query(x, 9.0),
        variance_query,
        lambda x: variance_query(x, (0.0, 9.0)),
    ],
    ids=["loss", "loss, cap", "variance", "variance, bounds"],
)
def test_output_bounds_have_as_many_ranks_whatever_the_number_of_records(query, epsilon):
    ranks = {
        query(np.arange(float(n))).output_bounds(dp.Hazard(), epsilon, private_n=True).ranks
        for n in (0, 1, 2, 50, 3000)
    }
    assert len(ranks) == 1


def test_the_default_is_close_on_many_records():
    x = np.random.default_rng(1).exponential(size=20_000)
    releases = [
        dp.private_mean_loss(x, epsilon=1.0, random_state=SeededEntropy(i), **RELATION) for i in range(20)
    ]
    assert np.median(np.abs(np.array(releases) / x.mean() - 1)) < 0.02


def test_entropy_of_the_count_comes_after_the_spend(monkeypatch):
    def refuse(self, size):
        raise NoEntropy.Drawn

    monkeypatch.setattr(OSEntropy, "words", refuse)
    accountant = dp.PrivacyAccountant(1)
    with pytest.raises(NoEntropy.Drawn):
        dp.private_mse(Y, P, epsilon=0.5, accountant=accountant, **RELATION)
    assert accountant.spent == 0.5


def test_the_sums_that_are_shown_are_noisy():
    options = {"epsilon": 1.0, "bounds": (0, 1), "mechanism": "geometric", "neighboring": "add_or_remove_one"}
    shown = [tuple(dp.with_result(dp.private_mean)([0.5] * 100, **options).drawn["sums"]) for _ in range(4)]
    assert len(set(shown)) > 1  # but for a probability of about 1e-36: each has noise of a million steps


@pytest.mark.parametrize("private_n", [False, True])
def test_a_calibration_error_tells_a_mechanism_the_number_of_records_only_where_that_is_public(private_n):
    told = []

    class Told:
        def count_ranks(self, epsilon, *, n, monotonic, output_range):
            told.append((n, monotonic))
            return 3

    row = METRICS["private_expected_calibration_error"]
    data = np.array([0, 1] * 20), np.full(40, 0.3)
    _, known = row.read(data, {}, private_n=private_n)
    (query,) = known.parts
    query.output_bounds(Told(), Fraction(1), private_n=private_n)
    assert told == [(None, False) if private_n else (40, True)]
