"""Intervals for means: what they rest on, their numbers, and what a released mean is among all people."""

import contextlib
import math
import re
import sys
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import NoEntropy, known_of, loop_over, seeded
from scipy.integrate import quad
from scipy.stats import norm

import dp_metrics as dp
from dp_metrics.inference.loss_intervals import mean_interval_query, mean_query
from dp_metrics.inputs.arrays import ArgumentShape, Records, Shape, vector
from dp_metrics.inputs.options import Relation
from dp_metrics.quantities.ranks import cap_of
from dp_metrics.release.count_limits import mean_half_width, normal_laplace_tail
from dp_metrics.release.result import ReleasedNumbers
from dp_metrics.sensitivity.output_bounds import FINENESS

pytestmark = pytest.mark.usefixtures("own_error_state")

MAX = sys.float_info.max


def half_width(m, d, n, epsilon, miss):
    """Return half the width where both noises are those of `private_mean_interval`."""
    return mean_half_width(m, d, n, (1 / max(n * epsilon, 5e-324),) * 2, miss)


@loop_over(("s", "b"), [(1.0, 1.0), (1.0, 0.05), (1.0, 0.001), (0.01, 1.0), (3.0, 2.0)])
@loop_over("h", [0.1, 1.0, 4.0])
def test_the_tail_of_normal_plus_laplace(s, b, h):
    def tail(x):
        over, under = (h - s * x) / b, (h + s * x) / b
        above = 0.5 * math.exp(-over) if over > 0 else 1 - 0.5 * math.exp(over)
        below = 0.5 * math.exp(-under) if under > 0 else 1 - 0.5 * math.exp(under)
        return (above + below) * norm.pdf(x)

    turns = sorted({t for t in (h / s, -h / s) if abs(t) < 12})
    exact = quad(tail, -12, 12, points=turns, limit=500, epsabs=1e-13, epsrel=1e-11)[0]
    assert normal_laplace_tail(h, s, b) == pytest.approx(exact, rel=1e-7, abs=1e-12)


@loop_over("n", [1, 10**6])
@loop_over("epsilon", [5e-324, 1e-300, 1.0, 1e6, 1e308])
@loop_over("m", [0.0, 1e-320, 0.5, 1.0])
@loop_over("d", [-1e308, 0.0, 0.2, 1e308])
def test_half_a_width_is_finite_and_keeps_its_promise_whatever_is_drawn(n, epsilon, m, d):
    half = half_width(m, d, n, epsilon, 0.05)
    assert 0 < half < math.inf


@loop_over("noise", [(1e-3, 1e-3), (1e-12, 0.01), (0.01, 1e-12)])
def test_noises_of_two_sizes_count_by_their_root_mean_square(noise):
    s = math.sqrt((0.05 + 3.2718 * math.hypot(*noise) / math.sqrt(2)) / 10_000)
    half = mean_half_width(0.5, 0.2, 10_000, noise, 0.05)
    assert normal_laplace_tail(half, s, noise[0]) == pytest.approx(0.05, rel=1e-4)


UNREAD = partial(vector, name="x")


def known_sums(row):
    """Return the noisy sums of numbers from 0 to 1, without the noise."""
    query = mean_interval_query(UNREAD, confidence=0.5, about="")
    _, (stats,) = known_of(query, query.read(Records((np.array(row),))))
    (quantity,) = query.quantities
    return [*stats.found.ravel()], 2 / quantity.cells[0][1]


def test_rounding_both_sums_can_cost_a_step_and_the_noise_allows_for_it():
    """A search for neighbours whose whole numbers differ by FINENESS + 1: the claim is attained."""
    rng, worst = np.random.default_rng(0), 0
    for _ in range(400):
        other, small = rng.random(), rng.random() / FINENESS
        (a, sensitivity), (b, _) = known_sums((small, other)), known_sums((1.0, other))
        worst = max(worst, sum(abs(x - y) for x, y in zip(a, b, strict=True)))
    assert worst == sensitivity == FINENESS + 1


def from_released(values, n, epsilon="1", confidence=0.95, **scale):
    query = mean_interval_query(UNREAD, confidence=confidence, about="All.", **scale)
    return query.reading(ReleasedNumbers([values], n, float(n), Fraction(epsilon), Relation.REPLACE_ONE))


def test_the_interval_follows_from_both_noisy_sums():
    n, total, spread = 1000, 100 * FINENESS, 60 * FINENESS
    interval = from_released((total, spread), n)
    assert interval.estimate == 0.1
    assert f"{interval.upper - 0.1:.6f} {0.1 - interval.lower:.6f}" == "0.011644 0.011644"
    assert (interval.confidence, interval.about) == (0.95, "All.")
    assert "approximate" in interval.note
    wider = from_released((total, 30 * FINENESS), n)  # less of v (1 - v): more spread
    assert wider.upper - wider.lower > 1.2 * (interval.upper - interval.lower)
    scaled = from_released((total, spread), n, low=-3.0, high=3.0)
    assert [*scaled] == pytest.approx([6 * end - 3 for end in interval])


def test_a_noisy_mean_outside_its_range_is_clipped_and_its_interval_too():
    n = 1000
    low = from_released((-3 * FINENESS, 10**40), n)
    assert (low.lower, low.estimate) == (0.0, 0.0)
    assert low.upper == pytest.approx(half_width(0.0, 1e30, n, 1.0, 0.05))
    high = from_released((10**40, 0), n, high=7.0)
    assert (high.upper, high.estimate) == (7.0, 7.0)


@pytest.mark.gate
def test_noise_in_the_variance_is_paid_for():
    """Of 2000 runs, standard error at most .006: the intervals cover .98, but for the term .92."""
    rng, n, epsilon, low, high = np.random.default_rng(2), 300, 3.0, 0.04, 0.16
    noise = rng.laplace(scale=1 / (n * epsilon), size=(2, 2000))
    shares = rng.binomial(n, 0.5, 2000) / n  # of the higher of two losses that are as likely
    means = np.clip(low + (high - low) * shares + noise[0], 0, 1)
    spreads = low * (1 - low) * (1 - shares) + high * (1 - high) * shares + noise[1]
    halves = [half_width(m, d, n, epsilon, 0.05) for m, d in zip(means, spreads, strict=True)]
    assert np.mean(np.abs(means - (low + high) / 2) <= halves) >= 0.96


@loop_over("n", [1, 99, 100])
def test_few_records_are_said_to_make_the_normal_interval_doubtful(n):
    found = dp.private_mean_interval(np.full(n, 0.5), max_loss=1.0, epsilon=1.0)
    assert ("fewer than 100 records" in found.note) == (n < 100)


def cap_in(interval):
    """Return the cap of which an interval tells, twice."""
    first, second = re.search(r"errors above (\S+) counted as (\S+), among", interval.about).groups()
    assert first == second
    return float(first)


with_private_cap = partial(dp.private_mean_interval, cap="private")


def test_a_private_cap_is_near_the_99_percent_quantile_and_is_told():
    x = np.random.default_rng(0).exponential(3.0, 5000)
    interval = with_private_cap(x, epsilon=1e6, confidence=0.9)
    cap = cap_in(interval)
    assert 0.99 * np.quantile(x, 0.99) < cap < 1.01 * np.quantile(x, 0.99)
    assert interval.estimate == pytest.approx(np.minimum(x, cap).mean(), rel=1e-5)
    half = 1.645 * np.minimum(x, cap).std() / 5000**0.5
    assert [*interval] == pytest.approx([interval.estimate - half, interval.estimate + half], rel=1e-3)
    assert interval.confidence == 0.9


@loop_over("drawn", [0.0, 5e-324, 1.23456, 1.797e308, MAX])
def test_whatever_is_drawn_is_a_cap(drawn):
    """The draw of the cap is replaced: so an output at either end of the grid is tried, however rare."""
    query = mean_query(Shape((ArgumentShape(),), 1), max_loss=None, cap="private", confidence=0.95)
    (noise,), (stats,) = known_of(query, query.read(Records((np.array([0.0, 5e-324, 1.0, MAX]),))))
    sums = noise.law(stats, None).given(drawn)
    cap = cap_of(drawn)
    assert 0 < cap <= MAX
    assert abs(cap - drawn) <= max(0.005 * drawn, 5e-324)
    released = ReleasedNumbers([(cap, *sums.values)], 4, 4.0, Fraction(1), Relation.REPLACE_ONE)
    interval = query.reading(released)
    assert cap_in(interval) == cap
    assert 0 <= interval.lower <= interval.estimate <= interval.upper <= cap
    exact = sum(Fraction(min(x, cap)) for x in (0.0, 5e-324, 1.0, MAX)) / 4
    assert interval.estimate == pytest.approx(float(exact), rel=1e-5)


def test_two_thirds_of_epsilon_are_for_the_mean_of_what_is_clipped_to_a_private_cap():
    query = mean_query(Shape((ArgumentShape(),), 1000), max_loss=None, cap="private", confidence=0.95)
    sums = 100 * FINENESS, 60 * FINENESS
    numbers = ReleasedNumbers([(3.0, *sums)], 1000, 1000.0, Fraction(3, 2), Relation.REPLACE_ONE)
    assert [*query.reading(numbers)] == pytest.approx([3 * end for end in from_released(sums, 1000)])


def test_a_cap_next_to_zero_is_said_to_tell_nothing():
    """Of losses that are hardly ever above 0; the cap is next to 0 in all of 200 draws."""
    interval = with_private_cap([0.0] * 400 + [1.0], epsilon=1.0, random_state=seeded(1))
    assert "Do not conclude that the loss is small" in interval.note
    interval = with_private_cap(np.ones(1000), epsilon=1.0)
    assert "next to 0" not in interval.note


def test_few_records_for_a_private_cap_are_warned_of_before_the_spend():
    accountant = dp.PrivacyAccountant(1)
    with pytest.warns(dp.exceptions.NoisyReleaseWarning, match="private cap"), pytest.raises(NoEntropy.Drawn):
        with_private_cap(np.ones(99), epsilon=1.0, accountant=accountant, random_state=NoEntropy())
    with warnings.catch_warnings():
        warnings.simplefilter("error", dp.exceptions.NoisyReleaseWarning)
        with_private_cap(np.ones(100), epsilon=1.0)


INTERVALS = [
    with_private_cap,
    *(partial(dp.private_mean_interval, max_loss=cap) for cap in (5e-324, 0.3, 2, 1e308)),
    *(partial(dp.private_quantile_interval, q=0.5, max_loss=cap) for cap in (None, 5e-324, 1, 1e308)),
]


@pytest.mark.filterwarnings(
    "ignore::dp_metrics.exceptions.NoisyReleaseWarning", "ignore::dp_metrics.exceptions.LargeEpsilonWarning"
)
@loop_over("interval", INTERVALS)
@loop_over("epsilon", [2e-323, 1e-5, 1.0, 1e308])
@loop_over("losses", [[0.0], [0.0] * 200, [MAX] * 200, [5e-324, 1.0] * 100, [1e308, 5e-324, 0.0], range(200)])
def test_nothing_fails_after_the_spend(interval, epsilon, losses):
    accountant = dp.PrivacyAccountant(1e308)
    with contextlib.suppress(ValueError):  # of too few records for any limit of a quantile
        found = interval(losses, epsilon=epsilon, accountant=accountant)
    if not accountant.history:
        assert interval.func is dp.private_quantile_interval
        assert epsilon < 1 or len(losses) < 100
        return
    inside = found.lower if found.estimate is None else found.estimate
    most = cap_in(found) if interval is with_private_cap else interval.keywords["max_loss"] or math.inf
    assert 0 <= found.lower <= inside <= found.upper <= most
    assert [spend.epsilon for spend in accountant.history] == [epsilon]


# ---- what a released mean is among all people --------------------------------------------------------------

N = 2000
Y, GUESS = np.random.default_rng(0).normal(size=(2, N)) / 3
PUBLIC = {"bounds": (-2.0, 2.0), "mechanism": "geometric"}


def released_mean(function=dp.private_mse, data=(Y, GUESS), **options):
    return dp.with_result(function)(*data, **{"epsilon": 1.0, **PUBLIC, **options})


@loop_over("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_approximate_interval_follows_from_the_mean_and_its_spread(epsilon):
    result = released_mean(epsilon=epsilon, random_state=seeded())
    interval = result.population_interval(0.9)
    mean, spread, noise = result.value / 16, result.drawn["spread"], 1 / (N * epsilon)
    larger = max(mean, mean - math.log(0.05) / N - 3.2718 * noise)
    above, below = (16 * mean_half_width(m, spread, N, (noise,) * 2, 0.1) for m in (larger, mean))
    assert interval.upper == pytest.approx(min(result.value + above, 16.0), rel=1e-5)
    assert interval.lower == pytest.approx(max(result.value - below, 0.0), rel=1e-5)
    assert (interval.estimate, interval.confidence) == (result.value, 0.9)
    assert "approximate" in interval.note
    assert interval.about.startswith("The mse among all people")
    sure = result.population_interval(0.9, sure=True)
    assert sure.note == ""
    assert sure.lower <= interval.lower < interval.upper < sure.upper


def test_whoever_pays_more_has_no_wider_interval():
    """But just above an epsilon of 2. A mean of 40 widths has a standard error of 2 % at most."""
    entropy, widths = seeded(), []
    for epsilon in (0.5, 1.0, 1.01, 2.0, 2.01, 4.0, 8.0):
        several = [released_mean(epsilon=epsilon, random_state=entropy) for _ in range(40)]
        widths.append(np.mean([np.ptp([*one.population_interval()]) for one in several]))
    allowed = [1.07, 1.07, 1.07, 1.2, 1.07, 1.07]
    assert np.all(np.array(widths[1:]) < allowed * np.array(widths[:-1]))
    without_noise = 2 * 1.96 * np.square(Y - GUESS).std() / N**0.5
    # of errors that are a seventieth of their cap, which a few people who were not drawn may reach
    assert widths[-1] < 2 * without_noise


def test_approximate_limits_cover_where_few_people_have_large_losses():
    """One in 90 is at the cap. Of 200 draws more than 22 miss with 2e-4 at 5 %."""
    rng, entropy, missed = np.random.default_rng(0), seeded(), 0
    for _ in range(200):
        losses, options = 1.0 * (rng.random(300) < 1 / 90), {"max_loss": 1.0, "mechanism": "geometric"}
        result = dp.with_result(dp.private_mean_loss)(losses, epsilon=10.0, random_state=entropy, **options)
        lower, upper = result.population_interval()
        missed += not lower <= 1 / 90 <= upper
    assert missed <= 22


def test_a_function_of_a_mean_has_the_function_of_its_limits():
    results = [
        released_mean(f, random_state=seeded(3), epsilon=0.5) for f in (dp.private_mse, dp.private_rmse)
    ]
    mse, rmse = (result.population_interval() for result in results)
    assert [*rmse] == pytest.approx(np.sqrt([*mse]).tolist())
    assert rmse.estimate == results[1].value
    columns = [np.stack([a, a / 2], axis=1) for a in (Y, GUESS)]
    several = released_mean(data=columns, multioutput="raw_values").population_interval()
    assert several.lower.shape == several.upper.shape == (2,)
    assert (several.lower < several.upper).all()
    shifted = released_mean(dp.private_mean, (Y,)).population_interval()
    assert -2 < shifted.lower < shifted.estimate < shifted.upper < 2
