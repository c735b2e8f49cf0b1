"""The adaptive mechanism: its coin and its two stages."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from cases import PRIVATE_N
from helpers import assert_follows, loop_over, loss_query, seeded, variance_query

import dp_metrics as dp
from dp_metrics.analysis.auditing import joint_losses
from dp_metrics.mechanisms import Adaptive, adaptive

ALWAYS = Adaptive(threshold=1e-9)  # two stages however few the records
TOLERANCE = 1e-9  # probabilities of the drawn scale are computed in floats


@pytest.mark.parametrize(
    ("make", "limit", "a", "b"),
    [
        (loss_query, 1.0, [0.0, 0.1, 0.3, 0.0], [0.0, 0.1, 0.3, 1.0]),
        (variance_query, (0.0, 1.0), [0.0, 0.9, 0.3, 1.0], [0.0, 0.9, 0.3, 0.5]),
    ],
)
def test_every_scale_that_can_be_drawn_keeps_the_claim(make, limit, a, b):
    """The auditor tries those beside the ends of runs."""
    first, second = (make(x, limit).prepare(ALWAYS, 3.0).law() for x in (a, b))
    numbers = np.arange(first.first.grid.first, first.first.grid.last + 1, 13)
    assert numbers.size > 500
    assert max(joint_losses(first, second, numbers)) <= 3.0 * (1 + TOLERANCE)


@pytest.mark.parametrize("make", [loss_query, variance_query])
def test_scales_are_drawn_and_releases_follow_the_law_given_the_scale(make):
    x = np.random.default_rng(2).exponential(size=400)
    mixture, entropy = make(x).prepare(ALWAYS, 2.0).law(), seeded()
    law = mixture.given(3.0)
    assert_follows(np.array([law.release(entropy) for _ in range(4000)]), law)
    # a share of 300 has a standard error of at most 3 %
    scales = np.array([mixture.release(entropy)[1]["scale"] for _ in range(300)])
    for drawn in mixture.first.quantile([0.1, 0.5, 0.9]).tolist():
        scale = float(mixture.clipped(drawn)[1])
        expected = mixture.first.cdf(scale if make is loss_query else drawn)
        assert abs(np.mean(scales <= scale) - expected) < 0.15


def test_one_stage_below_a_third_of_the_threshold_and_two_from_the_threshold_on():
    x = np.arange(600.0)
    for metric, epsilon in ((dp.private_mean_loss, 0.5), (dp.private_variance, 1.5), (dp.private_std, 1.5)):
        for _ in range(5):
            below = dp.with_result(metric)(x, epsilon=0.33 * epsilon)
            assert "scale" not in below.drawn
            at = dp.with_result(metric)(x, epsilon=epsilon)
            assert at.drawn["scale"] > 0
            assert "scale" in at.to_json()
    assert "scale" not in dp.with_result(dp.private_quantile)(x, 0.5, epsilon=5.0, bounds=(0, None)).drawn
    for metric in (dp.private_mean_loss, dp.private_variance):
        few = partial(metric, x[:100], epsilon=1.0)
        assert few(random_state=seeded()) == few(mechanism="hazard", random_state=seeded())


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, PRIVATE_N])
def test_between_a_public_coin_decides_with_its_stated_probability(options):
    """Of 200 releases; a false alarm once in a million."""
    x = np.random.default_rng(0).normal(size=3000)
    for metric, epsilon in ((dp.private_mean_loss, 0.06), (dp.private_variance, 0.2)):
        x = abs(x) if metric is dp.private_mean_loss else x
        results = [
            dp.with_result(metric)(x, epsilon=epsilon, random_state=seeded(seed), **options)
            for seed in range(200)
        ]
        two = sum("scale" in result.drawn for result in results)
        # n * epsilon is .6 of the threshold, or 2/3 of it; a part of epsilon pays for a noisy count
        share = (0.95 if options else 1.0) * (0.6 if metric is dp.private_mean_loss else 2 / 3)
        assert abs(two - 200 * (1.5 * share - 0.5)) < 5 * math.sqrt(50)
        assert all(result.noise_interval().lower <= result.value for result in results[:20])


@loop_over("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(20)])
def test_the_rank_grows_with_public_numbers_up_to_what_a_private_n_prepares(epsilon):
    def rank(times):
        return adaptive._rank(math.ceil(times / epsilon), epsilon)

    assert rank(500) == rank(999) == math.ceil(2 / epsilon)
    assert rank(10**4) == math.ceil(2 * 10**0.35 / epsilon)
    assert rank(10**5) == math.ceil(2 * 100**0.35 / epsilon)
    ranks = [rank(10 ** (k / 4)) for k in range(4, 40)]
    assert ranks == sorted(ranks)
    assert ranks[-1] == adaptive._rank(10**400, epsilon) == math.ceil(12 / epsilon)
    assert adaptive._rank(None, epsilon) == math.ceil(12 / epsilon)
    assert [adaptive._rank(n, Fraction(1, 100)) for n in (0, 1, 2, 5, 300)] == [1, 1, 1, 2, 150]


@loop_over("width", [1.0, 50.0])
def test_a_variance_is_clipped_at_a_tenth_more_than_the_square_but_never_above_the_public_limit(width):
    x = np.random.default_rng(0).random(1000)
    law = variance_query(x, (0.0, width)).prepare(ALWAYS).law()
    assert float(law.clipped(0.5)[1]) == pytest.approx(1.1 * 0.5**2, rel=1e-12)
    assert float(law.clipped(width)[1]) == width**2
    free = variance_query(x).prepare(ALWAYS).law()
    assert float(free.clipped(50.0)[1]) == pytest.approx(1.1 * 50.0**2, rel=1e-12)


def test_a_clipped_sum_is_rounded_to_the_lattice_once():
    tie, more = 2.0**-31, 2.0**-70  # half a step, and what tells on which side; no float holds the sum
    laws = []
    for last in (0.0, more):
        losses = np.array([1.0] * 999 + [tie, last])
        laws.append(loss_query(losses).prepare(Adaptive()).law().given(1.0))
    steps = 1 << 30
    rest = 1 - Fraction(1, 4) - Fraction(300, 6 * 1001)  # of epsilon, for the second stage
    offset = math.floor(steps / (4 * rest))
    assert [law.centre - offset for law in laws] == [999 * steps + 1, 999 * steps + 1]
