"""Limits of a net benefit: those of the noise are enumerated, those of people tried by a benchmark."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import loop_over, seeded
from scipy.stats import binom

import dp_metrics as dp
from dp_metrics._random import made_up
from dp_metrics.metrics.scores.bands import benefit_limits, benefit_noise_limits, over_expected_limits
from dp_metrics.quantities.tables import NoisyCounts
from dp_metrics.release import count_limits as module
from dp_metrics.release.count_limits import NoisyRatio

pytestmark = pytest.mark.usefixtures("own_error_state")

EACH = 0.025


def counts(a, b, rate=0.5, cells=(1, 1), rest=1):
    return NoisyRatio(a, b, cells, (Fraction(rate),) * 2, rest, None)


def test_limits_are_those_of_the_reference():
    seen = counts(60, 40)
    assert benefit_noise_limits(seen, 1000, 0.25, EACH) == pytest.approx((0.04575, 0.05425), abs=1e-5)
    assert benefit_limits(seen, 1000, 0.25, EACH) == pytest.approx((0.03331, 0.06782), abs=2e-5)


@loop_over("rest", [None, 0, 1, 6])
@loop_over(("weight", "cells"), [(0.05, (1, 1)), (0.25, (2, 1)), (1.0, (1, 3)), (7 / 3, (1, 1))])
@loop_over("finest", [module._FINEST_REACH, 6])
def test_limits_of_the_noise_miss_as_rarely_as_promised(weight, cells, rest, finest):
    """Over all noise but for 1e-7; the law is enumerated, so that there are no false alarms."""
    zero = counts(0, 0, 0.7, cells, rest)
    law, reach = zero.table().law, zero.reach
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


@loop_over(("a", "b"), [(-40, -3), (0, 0), (0, 900), (1000, 0), (10**30, -(10**30))])
@loop_over("rate", [1e-9, 0.01, 5.0])
def test_limits_are_within_the_range(a, b, rate):
    for limits in (benefit_limits, benefit_noise_limits):
        lower, upper = limits(counts(a, b, rate), 1000, 0.25, EACH)
        assert -0.25 <= lower <= 1.0
        assert -0.25 <= upper <= 1.0


@loop_over("expected", [2, 4, 5.5, 7, 10])
def test_limits_among_people_cover_where_few_are_positive(expected):
    """Exactly, without noise: all of 100 people are treated, most of them for nothing."""
    weight, law, covered = 0.02 / 0.98, binom(100, expected / 100), 0.0
    benefit = (expected - weight * (100 - expected)) / 100
    for positive in range(60):
        lower, upper = benefit_limits(counts(positive, 100 - positive, 60), 100, weight, EACH)
        covered += law.pmf(positive) * (lower <= benefit <= upper)
    assert covered > 0.95


# Of one released table of scores

LABELS = np.repeat([0, 1], [1500, 500])
SCORES = np.concatenate([np.linspace(0.01, 0.7, 1500), np.linspace(0.2, 0.99, 500)])


def released_scores(epsilon=1.0, scores=SCORES, **options):
    result = dp.with_result(dp.private_roc_curve)(LABELS, scores, epsilon=epsilon, **options)
    return dp.ReleasedScores.of(result)


def exact_benefit(threshold):
    said = threshold <= SCORES
    return ((said & (LABELS == 1)).sum() - threshold / (1 - threshold) * (said & (LABELS == 0)).sum()) / 2000


def check_limits(limits, exact):
    """Check that limits hold an exact number, and are wider at a higher confidence; return those at 95 %."""
    found, wider = limits(), limits(confidence=0.99)
    assert wider.lower < found.lower < exact < found.upper < wider.upper
    assert found.lower <= found.estimate <= found.upper
    return found


@loop_over("of", ["people", "records"])
@loop_over("wanted", [0.1, 0.25, 0.5, 0.8])
def test_the_net_benefit_at_an_edge_is_within_its_limits(wanted, of):
    released = released_scores(random_state=seeded(3))
    edge = min(released.counts.edges[1:-1], key=lambda edge: abs(edge - wanted))
    found = check_limits(partial(released.net_benefit, wanted, of=of), exact_benefit(edge))
    assert f"threshold {edge:g} " in found.about
    assert ("among all people" in found.about) == (of == "people")


def test_the_curve_is_the_net_benefit_at_every_edge_beside_that_of_treating_all():
    released = released_scores(300.0)  # without noise
    curve = released.net_benefit_curve()
    assert curve.net_benefit == pytest.approx([exact_benefit(edge) for edge in curve.thresholds])
    odds = curve.thresholds / (1 - curve.thresholds)
    assert curve.treat_all == pytest.approx(np.maximum(0.25 - 0.75 * odds, -odds))
    for edge, benefit in zip(curve.thresholds[::9], curve.net_benefit[::9], strict=True):
        assert released.net_benefit(edge).estimate == pytest.approx(benefit)


def test_a_private_number_of_records_persons_and_other_scores_have_none():
    with pytest.raises(ValueError, match="number is private"):
        released_scores(neighboring="add_or_remove_one").net_benefit(0.3)
    people = released_scores(groups=np.arange(2000) // 2, random_state=seeded())
    with pytest.raises(ValueError, match="2 records"):
        people.net_benefit(0.3)
    alone = released_scores(random_state=seeded()).net_benefit(0.3, of="records")
    wider = people.net_benefit(0.3, of="records")
    assert wider.upper - wider.lower > 1.5 * (alone.upper - alone.lower)
    with pytest.raises(ValueError, match="need probabilities"):
        released_scores(scores=9 * SCORES, edges=[0, 3, 6, 9]).net_benefit(0.3)
    with pytest.raises(ValueError, match="of must be"):
        released_scores().net_benefit(0.3, of="all")


def test_a_threshold_that_is_no_probability_has_no_net_benefit():
    """The odds at which a treatment is worth its harm are those of a probability; at its ends an edge is."""
    released = released_scores()
    for threshold in (1.5, -0.1, np.nextafter(1.0, 2.0), float("nan"), float("inf"), "0.5"):
        with pytest.raises(ValueError, match=r"threshold must be a probability, a number in \[0, 1\]"):
            released.net_benefit(threshold)
    edges = released.counts.edges
    for threshold, edge in ((0, edges[1]), (1, edges[-2]), (edges[3], edges[3])):
        assert f"threshold {edge:g} " in released.net_benefit(threshold).about


def test_the_net_benefit_is_drawn_beside_treating_all_and_none():
    axes = released_scores().plot("net_benefit")
    assert [line.get_label() for line in axes.lines] == ["released", "treat all", "treat none"]


# ---- observed over expected


@loop_over("of", ["people", "records"])
def test_observed_over_expected_is_within_its_limits(of):
    exact = LABELS.sum() / SCORES.sum()
    found = check_limits(
        partial(released_scores(random_state=seeded(3)).observed_over_expected, of=of), exact
    )
    assert found.estimate == pytest.approx(exact, rel=0.1)
    assert ("among all people" in found.about) == (of == "people")


@loop_over("of", ["people", "records"])
def test_scores_beyond_the_edges_are_expected_where_they_are(of):
    """They are counted in the end bins: risks of .01 and of .99, beside edges from .3 to .7."""
    for share in (0.01, 0.99):
        scores = np.full(5000, share)
        curve = dp.with_result(dp.private_roc_curve)(
            (np.arange(5000) < 5000 * share).astype(int), scores, edges=[0.3, 0.5, 0.7], epsilon=1e6
        )
        found = dp.ReleasedScores.of(curve).observed_over_expected(of=of)
        assert found.lower <= 1.0 <= found.upper
        assert found.lower <= found.estimate <= found.upper


def test_limits_of_observed_over_expected_cover():
    """A calibrated model, and one that tells half of the risk; 300 draws each.

    28 of 300 misses and more come up with probability .0015 at a miss of .05; the seed is fixed.
    """
    generator, edges = made_up(), np.linspace(0, 1, 33)
    noise = NoisyCounts((0,) * 64, ((64, Fraction(1, 2)),))
    for factor in (1.0, 2.0):
        truth, missed = np.minimum(factor * generator.beta(1, 9, 10**6), 1).mean() / 0.1, 0
        for _ in range(300):
            score = generator.beta(1, 9, 1500)
            positive = generator.random(1500) < np.minimum(factor * score, 1)
            counts = [np.histogram(score[positive == kind], edges)[0] for kind in (False, True)]
            noisy = np.concatenate(counts) + noise.simulated(generator, 1)[0]
            seen = replace(noise, noisy=tuple(map(int, noisy)))
            lower, upper = over_expected_limits(seen, edges, 0.025, of_people=True)
            missed += not lower <= truth <= upper
        assert missed < 28


@loop_over("expected", [1.5, 3, 6, 12])
def test_limits_of_observed_over_expected_cover_where_few_are_positive(expected):
    """Exactly, without noise: all 300 are told a risk of 1 %, and are positive half as often, or twice."""
    edges, law = np.array([0.0, 0.00999, 0.01001, 1.0]), binom(300, expected / 300)
    covered = 0.0
    for positive in range(60):
        counts = (0, 300 - positive, 0, 0, positive, 0)
        seen = NoisyCounts(counts, ((6, Fraction(60)),))
        lower, upper = over_expected_limits(seen, edges, 0.025, of_people=True)
        covered += law.pmf(positive) * (lower <= expected / 3 <= upper)
    assert covered > 0.95


@loop_over(
    ("counts", "rate"),
    [
        ((1, 0, 0, 0, 0, 0, 0, 1), Fraction(1, 100)),
        ((-15, 0, 0, 0, 12, 0, 0, 0), Fraction(1, 2)),  # fewer than no records
        ((10, 5, 5, 5, -12, 0, 0, 0), Fraction(1, 2)),  # fewer than no positives
    ],
)
def test_counts_that_are_all_noise_have_no_limits_of_a_ratio(counts, rate):
    noise = NoisyCounts(counts, ((8, rate),))
    for of_people in (True, False):
        limits = over_expected_limits(noise, np.linspace(0, 1, 5), 0.025, of_people=of_people)
        assert limits == (0.0, np.inf)


def test_fewer_than_no_positives_count_as_none():
    noise = NoisyCounts((50, 30, 30, 30, -12, 0, 0, 0), ((8, Fraction(1, 2)),))
    lower, upper = over_expected_limits(noise, np.linspace(0, 1, 5), 0.025, of_people=False)
    assert lower == 0
    assert 0.05 < upper < 0.5


def test_observed_over_expected_lies_within_its_own_limits():
    generator = np.random.default_rng(0)
    score = generator.beta(2, 6, 12)
    positive = (generator.random(12) < score).astype(int)
    for seed in (3, 212, 293):  # limits of the noisy counts would leave that of plausible counts out
        curve = dp.with_result(dp.private_roc_curve)(positive, score, epsilon=2.0, random_state=seeded(seed))
        found = dp.ReleasedScores.of(curve).observed_over_expected()
        assert found.lower <= found.estimate <= found.upper
