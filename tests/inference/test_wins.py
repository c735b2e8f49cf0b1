"""Sign tests and intervals from two noisy counts, against laws that are written from the definitions."""

import math
from functools import cache

import numpy as np
import pytest
from helpers import first_of, loop_over

from dp_metrics.inference import comparison as wins
from dp_metrics.inference.comparison import LEAST_P, wins_interval, wins_p_value
from dp_metrics.mechanisms._laws import Staircase


def noise(rate, k):
    return math.tanh(rate / 2) * math.exp(-rate * abs(k))


def noise_at_least(rate, j):
    """Return P(noise >= j), summed from the definition."""
    if j <= 0:
        return 1 - noise_at_least(rate, 1 - j)
    return math.exp(-rate * j) / (1 + math.exp(-rate))


@cache
def tail(k, rate, d):
    """Return P(|2 Binomial(k, 1/2) - k + noise| >= d)."""
    total = 0.0
    for x in range(k + 1):
        s = 2 * x - k
        both = noise_at_least(rate, d - s) + noise_at_least(rate, d + s) if d > 0 else 1.0
        total += math.comb(k, x) * 0.5**k * both
    return total


@loop_over(
    ("difference", "decided", "n", "epsilon", "p", "interval"),
    [
        (20, 60, 300, 1.0, 0.030216, (0.00145, 0.13002)),
        (30, 100, 1000, 1.0, 0.008040, (0.00604, 0.05360)),
        (30, 100, 1000, 0.3, 0.054120, (-0.00124, 0.06094)),
        (-45, 150, 1000, 0.1, 0.152702, None),
        (120, 2000, 10000, 1.0, 0.008843, (0.00286, 0.02113)),
        (12, 30, 300, 3.0, 0.055230, None),
    ],
)
def test_reference_numbers(difference, decided, n, epsilon, p, interval):
    """Of noisy differences and noisy numbers of decided records; intervals at 95 %."""
    assert round(wins_p_value(difference, decided, n, epsilon / 2), 6) == p
    if interval is not None:
        found = wins_interval(difference, decided, n, epsilon / 2, 0.95)
        assert tuple(round(end, 5) for end in found) == interval


@loop_over("rate", [0.05, 0.5, 1.5, 5.0])
def test_the_p_value_is_that_of_the_definition(rate):
    n = 25
    reach = Staircase(rate).largest(LEAST_P)
    for decided in (-3, 0, 1, 6, 17, 25, 40):
        most = int(min(n, max(decided, 0) + reach))
        for difference in (-30, -7, -1, 0, 1, 2, 5, 8, 13, 60):
            # any number up to the limit may have been decided
            expected = min(1.0, LEAST_P + max(tail(k, rate, abs(difference)) for k in range(most + 1)))
            assert wins_p_value(difference, decided, n, rate) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def exact_size(n, share, epsilon, level):
    """Return P(p <= level) where A and B win on a record with probability share / 2 each, exactly."""
    rate = epsilon / 2
    far = n + 5 * Staircase(rate).largest(5e-5)

    def least_significant(decided):  # p falls in the difference
        return first_of(range(1, far), lambda difference: wins_p_value(difference, decided, n, rate) <= level)

    critical = np.array([least_significant(decided) for decided in range(n + 1)])
    total = 0.0
    for m in range(n + 1):
        of_m = math.comb(n, m) * share**m * (1 - share) ** (n - m)
        if of_m < 1e-9:
            total += of_m
            continue
        # a noisy number below 0 counts as 0, one above n as n
        shares = [noise(rate, decided - m) for decided in range(n + 1)]
        shares[0] = noise_at_least(rate, m)
        shares[n] = noise_at_least(rate, n - m)
        total += of_m * sum(w * tail(m, rate, int(d)) for w, d in zip(shares, critical, strict=True))
    return total


@loop_over("epsilon", [0.3, 1.0, 3.0])
def test_the_exact_size_is_at_most_the_level(epsilon):
    sizes = [exact_size(40, share, epsilon, 0.05) for share in (0.1, 0.3, 0.7, 1.0)]
    assert max(sizes) <= 0.05
    assert min(sizes) > 0.002  # a test that never rejects has the size 0
    assert exact_size(40, 0.5, epsilon, 0.2) <= 0.2


def law_of_steps(n, share, theta):
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, [(share - theta) / 2, 1 - share, (share + theta) / 2])
    return law


@pytest.mark.gate
@loop_over("rate", [0.15, 1.5, 5.0, 15.0])
@pytest.mark.parametrize("n", [3, 10, pytest.param(30, marks=pytest.mark.slow)])
def test_no_smaller_share_of_decided_records_has_a_larger_tail(n, rate):
    """Tails grow with the share, but for the last few records: there the largest is taken."""
    shares = np.unique(np.append(np.linspace(0, 1, 21), np.clip(1 - np.linspace(0, 6, 41) / n, 0, 1)))
    checked, alone = 0, 0.0
    for theta in (0.0, 0.05, 0.5, 0.9):
        used = shares[shares >= theta]
        laws = np.array([law_of_steps(n, share, theta) for share in used])
        for d in range(math.floor(n * theta), n + 3 + int(2 / rate)):
            tails = laws @ [noise_at_least(rate, d - s) for s in range(-n, n + 1)]
            allowed = np.array([wins._upper_tail(theta, d, n, rate, share) for share in used])
            relevant = allowed <= 0.2
            so_far = np.maximum.accumulate(tails)
            assert (so_far <= allowed)[relevant].all()
            checked += relevant.sum()
            far_off = (so_far / np.maximum(tails, 1e-300))[relevant & (tails > 1e-6)]
            alone = max(alone, far_off.max(initial=0.0))
    assert checked > 100
    if rate >= 5:
        assert alone > 1.05  # the tail at the limit alone would not do


def exact_coverage(n, epsilon, confidence, cases):
    """Return the probability that the interval holds theta, for each (share, theta), exactly."""
    rate = epsilon / 2
    # an interval depends on both counts only as clamped
    lower, upper = np.empty((2, 2 * n + 1, n + 1))
    for d in range(n + 1):
        for m in range(n + 1):
            ends = wins_interval(d, m, n, rate, confidence)
            lower[n + d, m], upper[n + d, m] = ends
            lower[n - d, m], upper[n - d, m] = -ends[1], -ends[0]

    def clamped(values, low, high):
        rows = [[noise(rate, to - at) for to in range(low, high + 1)] for at in values]
        for row, at in zip(rows, values, strict=True):
            row[0], row[-1] = noise_at_least(rate, at - low), noise_at_least(rate, high - at)
        return np.array(rows)

    of_difference, of_decided = clamped(range(-n, n + 1), -n, n), clamped(range(n + 1), 0, n)
    for share, theta in cases:
        joint = np.zeros((2 * n + 1, n + 1))  # of D and m
        for m in range(n + 1):
            for won in range(m + 1):
                up, down = (share + theta) / 2, max((share - theta) / 2, 0.0)
                ways = math.comb(n, m) * math.comb(m, won)
                joint[n + 2 * won - m, m] += ways * up**won * down ** (m - won) * (1 - share) ** (n - m)
        seen = of_difference.T @ joint @ of_decided
        yield seen[(lower <= theta) & (theta <= upper)].sum()


SHARES, THETAS = (0.05, 0.3, 0.6, 0.9, 0.97, 1.0), (0, 0.04, 0.3, 0.6, 0.9, 1)
CASES = [(share, theta) for share in SHARES for theta in THETAS if theta <= share]
WEEKLY = pytest.mark.slow, pytest.mark.weekly(reason="of 9 records the fast suite asks the same")


@pytest.mark.parametrize(
    ("n", "confidences"), [(9, [0.95]), pytest.param(30, [0.5, 0.9, 0.95], marks=WEEKLY)]
)
@loop_over("epsilon", [1.0, 3.0, 20.0])
def test_the_interval_covers_exactly(n, confidences, epsilon):
    for confidence in confidences:
        coverage = list(exact_coverage(n, epsilon, confidence, CASES))
        assert confidence <= min(coverage) < 0.995  # an interval from -1 to 1 covers always


@loop_over("rate", [math.ulp(0.0), 1e-300, 1e-9, 0.5, 40.0, 1e300])
@loop_over("n", [1, 2, 1000])
def test_whatever_is_drawn_gives_a_result(n, rate):
    with np.errstate(all="raise", under="ignore"):
        for difference in (-(10**400), -n, -1, 0, 1, n, 10**30):
            for decided in (-(10**400), 0, n, 10**400):
                assert LEAST_P <= wins_p_value(difference, decided, n, rate) <= 1.0
        for difference, decided in [(-(10**400), 10**400), (0, -(10**400)), (n, n), (10**30, 0)]:
            for confidence in (0.001, 0.95, 1 - 2**-53):
                lower, upper = wins_interval(difference, decided, n, rate, confidence)
                assert -1 <= lower <= upper <= 1
                assert all(isinstance(end, float) for end in (lower, upper))


def test_noise_beyond_all_records_leaves_no_empty_interval_and_b_has_that_of_a_upside_down():
    assert wins_interval(-(10**9), 10**9, 1000, 1e-9, 0.95) == (-1.0, 1.0)
    lower, upper = wins_interval(1100, 1000, 1000, 0.05, 0.95)
    assert 0.8 < lower < 1.0 == upper
    lower, upper = wins_interval(30, 100, 1000, 0.5, 0.95)
    assert wins_interval(-30, 100, 1000, 0.5, 0.95) == (-upper, -lower)
    assert wins_p_value(-30, 100, 1000, 0.5) == wins_p_value(30, 100, 1000, 0.5)
