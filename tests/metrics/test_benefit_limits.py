"""Limits of a net benefit: those of the noise are enumerated, those of people simulated on new tasks."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics._random import made_up
from dp_metrics.metrics.labels.person_limits import benefit_limits, benefit_noise_limits
from dp_metrics.quantities.counts_noise import CountsNoise
from dp_metrics.release import count_limits as module
from dp_metrics.release.count_limits import NoisyRatio

EACH = 0.025


def counts(a, b, rate=0.5, cells=(1, 1), rest=1):
    return NoisyRatio(a, b, cells, (Fraction(rate),) * 2, rest, None)


def test_limits_are_those_of_the_reference():
    seen = counts(60, 40)
    assert benefit_noise_limits(seen, 1000, 0.25, EACH) == pytest.approx((0.04575, 0.05425), abs=1e-5)
    assert benefit_limits(seen, 1000, 0.25, EACH) == pytest.approx((0.03367, 0.06595), abs=2e-5)


@loop_over("rest", [None, 0, 1, 6])
@loop_over(("weight", "cells"), [(0.05, (1, 1)), (0.25, (2, 1)), (1.0, (1, 3)), (7 / 3, (1, 1))])
@loop_over("finest", [module._FINEST_REACH, 6])
def test_limits_of_the_noise_miss_as_rarely_as_promised(weight, cells, rest, finest):
    """Over all noise but for 1e-7; the law is enumerated, so that there are no false alarms."""
    zero = counts(0, 0, 0.7, cells, rest)
    law, reach = zero.table(), zero.reach
    places = np.arange(-reach, reach + 1)
    error = places[:, np.newaxis] - weight * places
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FINEST_REACH", finest)
        ends = benefit_noise_limits(counts(0, 0, 0.7, cells, rest), 1000, weight, EACH)
    lower, upper = (end * 1000 for end in ends)
    missed = law[error > upper + 1e-9].sum() if upper < 1000 else 0.0
    assert missed <= EACH
    assert upper >= -lower - 1e-9 or lower == -1000 * weight
    if finest > 6:  # and no farther than need be
        assert law[error >= upper - 1e-9].sum() > EACH - 1e-6


# not those that the rule was chosen on: number, share of true and of false positives, threshold, epsilon
TASKS = {
    "screening": (6000, 0.02, 0.08, 0.1, 1.0),
    "referral": (900, 0.25, 0.05, 0.3, 2.0),
    "treatment": (2500, 0.1, 0.1, 0.5, 0.5),
}


@loop_over("task", TASKS)
def test_limits_of_people_cover(task):
    """28 of 300 misses and more come up with probability .0015 at a miss of .05; the seed is fixed."""
    n, of_a, of_b, threshold, epsilon = TASKS[task]
    weight, rng, missed, widths = threshold / (1 - threshold), np.random.default_rng(7), 0, []
    noise = CountsNoise((0,) * 3, ((3, Fraction(epsilon) / 2),), True).simulated(made_up(), 300)
    drawn = rng.multinomial(n, [of_a, of_b, 1 - of_a - of_b], 300)
    for a, b, _ in (drawn + noise).astype(int):
        lower, upper = benefit_limits(counts(int(a), int(b), epsilon / 2), n, weight, EACH)
        missed += not lower <= of_a - weight * of_b <= upper
        widths.append(upper - lower)
    assert missed < 28
    wald = 2 * 1.96 * np.sqrt((of_a + weight**2 * of_b - (of_a - weight * of_b) ** 2) / n)
    assert 1.0 < np.mean(widths) / wald < 1.5  # as without privacy, or a little wider


@loop_over(("a", "b"), [(-40, -3), (0, 0), (0, 900), (1000, 0), (10**30, -(10**30))])
@loop_over("rate", [1e-9, 0.01, 5.0])
def test_limits_are_within_the_range(a, b, rate):
    for limits in (benefit_limits, benefit_noise_limits):
        lower, upper = limits(counts(a, b, rate), 1000, 0.25, EACH)
        assert -0.25 <= lower <= 1.0
        assert -0.25 <= upper <= 1.0
