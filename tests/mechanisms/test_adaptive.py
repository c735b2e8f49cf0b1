"""The adaptive mechanism: exact losses of both stages together, planted defects, laws and settings."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers import assert_follows, slow_but

from dp_metrics import (
    LossSummary,
    NoisyReleaseWarning,
    PrivacyAccountant,
    SeededReleaseWarning,
    auditing,
    expected_error,
    private_log_loss,
    private_mae,
    private_mean_loss,
    private_mse,
    private_quantile,
    private_r2_score,
    private_regression_report,
    private_std,
    private_variance,
    with_result,
)
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis._law_comparison import joint_losses
from dp_metrics.analysis.simulation import loss_draw, variance_draw
from dp_metrics.mechanisms import Adaptive, adaptive
from dp_metrics.mechanisms.adaptive import AdaptiveDraw
from dp_metrics.release.parts import mean_loss
from dp_metrics.sensitivity.extremes import Extremes

ALWAYS = Adaptive(threshold=1e-9)  # two stages however few the records
TOLERANCE = 1e-9  # probabilities of the drawn scale are computed in floats
EPSILONS = (pytest.param(0.5, marks=pytest.mark.slow), 3.0, pytest.param(8.0, marks=pytest.mark.slow))


def replaced(domain, n):
    """Yield all neighbours of n records from a domain that differ in the last one."""
    for rest in itertools.combinations_with_replacement(domain, n - 1):
        for a, b in itertools.combinations(domain, 2):
            yield np.array([*rest, a]), np.array([*rest, b])


def added(domain, n):
    """Yield all neighbours of which one has a record more, and less than n."""
    for size in range(n - 1):
        for rest in itertools.combinations_with_replacement(domain, size):
            for more in domain:
                yield np.array(rest), np.array([*rest, more])


def worst_loss(metric, pairs, epsilon, mechanism=ALWAYS, **options):
    losses = [
        auditing.metric_loss(metric, [a], [b], epsilon=epsilon, mechanism=mechanism, **options)
        for a, b in pairs
    ]
    assert len(losses) > 5
    return max(losses) / epsilon


CAPPED, FREE, SPREAD = [0.0, 0.3, 1.0], [0.0, 0.3, 1.0, 50.0], [-2.0, 0.3, 1.0, 7.0]
ADD = {"neighboring": "add_or_remove_one"}
CASES = {
    "capped mean": (private_mean_loss, replaced, CAPPED, 4, {"max_loss": 1.0}),
    "mean": (private_mean_loss, replaced, FREE, 3, {}),
    "weighted mean": (
        private_mean_loss, replaced, CAPPED, 3, {"max_loss": 1.0, "sample_weight": [1.0, 2.0, 5.0]},
    ),
    "mean of groups": (private_mean_loss, replaced, CAPPED, 3, {"max_loss": 1.0, "groups": [0, 0, 1]}),
    "variance in bounds": (private_variance, replaced, CAPPED, 4, {"bounds": (0, 1)}),
    "variance": (private_variance, replaced, SPREAD, 3, {}),
    "capped mean, private n": (private_mean_loss, added, CAPPED, 5, {"max_loss": 1.0, **ADD}),
    "mean, private n": (private_mean_loss, added, FREE, 4, ADD),
    "variance in bounds, private n": (private_variance, added, CAPPED, 5, {"bounds": (0, 1), **ADD}),
    "variance, private n": (private_variance, added, SPREAD, 4, ADD),
}  # fmt: skip


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "case", slow_but(CASES.keys() - {"variance, private n", "variance in bounds"}, CASES)
)
def test_scale_and_release_together_cost_epsilon_and_no_more(case, epsilon):
    metric, neighbours, domain, n, options = CASES[case]
    worst = worst_loss(metric, neighbours(domain, n), epsilon, **options)
    assert 0.99 < worst <= 1 + TOLERANCE


@pytest.mark.parametrize("share", [pytest.param(0.01, marks=pytest.mark.slow), 0.9])
def test_any_share_of_the_first_stage_is_private(share):
    mechanism = Adaptive(threshold=1e-9, share=share)
    for metric, domain in ((private_mean_loss, FREE), (private_variance, SPREAD)):
        assert 0.99 < worst_loss(metric, replaced(domain, 3), 2.0, mechanism) <= 1 + TOLERANCE


@pytest.mark.parametrize(
    ("make", "a", "b"),
    [
        pytest.param(loss_draw, [0.3, 0.3, 0.3, 0.0], [0.3, 0.3, 0.3, 0.3], marks=pytest.mark.slow),
        (loss_draw, [0.0, 0.1, 0.3, 0.0], [0.0, 0.1, 0.3, 1.0]),
        pytest.param(variance_draw, [0.0, 0.0, 0.3, 0.0], [0.0, 0.0, 0.3, 0.3], marks=pytest.mark.slow),
        (variance_draw, [0.0, 0.9, 0.3, 1.0], [0.0, 0.9, 0.3, 0.5]),
    ],
)
def test_every_scale_that_can_be_drawn_keeps_the_claim(make, a, b):
    limits = {"max_loss": 1.0} if make is loss_draw else {"bounds": (0.0, 1.0)}
    first, second = (make(np.array(x), mechanism=ALWAYS, epsilon=3.0, **limits).law(None) for x in (a, b))
    numbers = np.arange(first.first.grid.first, first.first.grid.last + 1, 13)
    assert numbers.size > 500
    assert max(joint_losses(first, second, numbers)) <= 3.0 * (1 + TOLERANCE)


# Defects that the exact loss must find


def test_a_rank_that_is_read_from_the_data_is_found(monkeypatch):
    true = Extremes.bounds

    def planted(extremes, k, ranks):
        return true(extremes, 1 if true(extremes, 1, 1).value < 1.0 else 4, ranks)

    monkeypatch.setattr(Extremes, "bounds", planted)
    assert worst_loss(private_mean_loss, replaced(CAPPED, 4), 3.0, max_loss=1.0) > 1.01


@pytest.mark.parametrize("case", ["mean", "variance"])
def test_an_upper_bound_that_stays_at_the_largest_record_is_found(monkeypatch, case):
    true = Extremes.bounds

    def planted(extremes, k, ranks):
        bounds = true(extremes, k, ranks)
        bounds.upper[max(k - 1, 0) :] = true(extremes, 1, 1).value
        return bounds

    monkeypatch.setattr(Extremes, "bounds", planted)
    metric, neighbours, domain, n, options = CASES[case]
    assert worst_loss(metric, neighbours(domain, n), 3.0, **options) > 1.01


def test_the_cap_of_one_loss_as_limit_of_weighted_terms_is_found(monkeypatch):
    true = mean_loss.loss_extremes

    def planted(aggregate, *others, **options):
        # all terms are taken to be at most the cap: their clipped sum there is their sum
        found = true(aggregate, *others, **options)
        whole = found.clipped(1e9)

        def clipped(y):
            return found.clipped(y) if y < 3.0 else whole._replace(most=int(3 / whole.unit))

        def at_ranks(k, ranks):
            value, lower, upper = found.at_ranks(k, ranks)
            return min(value, 3.0), np.minimum(lower, 3.0), np.minimum(upper, 3.0)

        return replace(found, limit=3.0, at_ranks=at_ranks, clipped=clipped)

    weights = {"max_loss": 3.0, "sample_weight": [1.0, 2.0, 5.0]}
    pairs = list(replaced([0.0, 1.0, 3.0], 3))
    assert worst_loss(private_mean_loss, pairs, 3.0, **weights) <= 1 + TOLERANCE
    monkeypatch.setattr(mean_loss, "loss_extremes", planted)
    assert worst_loss(private_mean_loss, pairs, 3.0, **weights) > 1.01


def test_a_clipped_sum_that_forgets_records_that_are_not_kept_is_found(monkeypatch):
    def loss(a, b):
        summaries = [LossSummary(private_mean_loss, capacity=1).update(x) for x in (a, b)]
        laws = []
        for summary in summaries:
            (query,) = summary._known.parts
            extremes = query.extremes(1, 1, False)
            laws.append(AdaptiveDraw(query, ALWAYS, Fraction(3), False, extremes, 1, math.inf).law(None))
        return max(joint_losses(*laws, np.arange(0, laws[0].first.grid.last, 20_000)))

    pairs = list(replaced(FREE, 4))
    assert max(loss(a, b) for a, b in pairs) <= 3.0 * (1 + TOLERANCE)
    # all that is not kept is taken to lie below every level
    monkeypatch.setattr(mean_loss, "sums_below_level", lambda aggregate, number: (aggregate.total, 0))
    assert max(loss(a, b) for a, b in pairs) > 3.03


def test_shares_that_add_up_to_more_than_epsilon_are_found(monkeypatch):
    true = adaptive.SecondStage
    monkeypatch.setattr(adaptive, "SecondStage", lambda *a: true(*a[:-1], a[-1] * Fraction(11, 10)))
    assert worst_loss(private_mean_loss, replaced(FREE, 3), 3.0) > 1.01


# Laws, settings and results


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (private_mean_loss, {}),
        pytest.param(private_mean_loss, ADD, marks=pytest.mark.slow),
        pytest.param(private_variance, {}, marks=pytest.mark.slow),
        (private_variance, ADD),
    ],
)
def test_releases_follow_the_law(metric, options):
    x = np.random.default_rng(1).exponential(size=400)
    plan = expected_error(metric, x, epsilon=10.0, mechanism=Adaptive(threshold=1.0), **options)
    with pytest.warns(SeededReleaseWarning):
        releases = [
            metric(x, epsilon=10.0, mechanism=Adaptive(threshold=1.0), random_state=seed, **options)
            for seed in range(400)
        ]
    truth = x.mean() if metric is private_mean_loss else x.var()
    errors = np.array(releases) - truth
    # a share of 400 releases has a standard error of at most 2.5 %
    for probability, error in plan.quantiles.items():
        assert abs(np.mean(errors <= error) - probability) < 0.1


@pytest.mark.parametrize("make", [loss_draw, variance_draw])
def test_draws_follow_the_law_given_the_scale(make):
    x = np.random.default_rng(2).exponential(size=400)
    law = make(x, mechanism=ALWAYS, epsilon=2.0).law(None).given(3.0)
    entropy = SeededEntropy(0)
    draws = np.array([law.release(entropy) for _ in range(4000)])
    assert_follows(draws, law)


def test_one_stage_below_a_third_of_the_threshold_and_two_from_the_threshold_on():
    x = np.arange(600.0)
    for metric, epsilon in ((private_mean_loss, 0.5), (private_variance, 1.5), (private_std, 1.5)):
        for _ in range(5):
            below = with_result(metric)(x, epsilon=0.33 * epsilon)
            assert "scale" not in below.drawn
            at = with_result(metric)(x, epsilon=epsilon)
            assert at.drawn["scale"] > 0
            assert "scale" in at.to_json()
    assert "scale" not in with_result(private_quantile)(x, 0.5, epsilon=5.0, bounds=(0, None)).drawn


def test_parts_of_a_result_tell_their_scales():
    y = np.arange(4000.0)
    report = with_result(private_regression_report)(y, y + 1, epsilon=6.0, output_dict=True)
    assert len(report.drawn["scale"]) == 3
    r2 = with_result(private_r2_score)(y, y + 1, epsilon=0.15)
    assert r2.drawn["scale"][0] > 0
    assert r2.drawn["scale"][1] is None  # n * epsilon of the variance is 300


@pytest.mark.parametrize("options", [{}, ADD])
def test_between_a_public_coin_decides_with_its_stated_probability(options):
    """Of 200 releases; a false alarm once in a million."""
    x = np.random.default_rng(0).normal(size=3000)
    for metric, epsilon in ((private_mean_loss, 0.06), (private_variance, 0.2)):
        x = abs(x) if metric is private_mean_loss else x
        with pytest.warns(SeededReleaseWarning):
            results = [
                with_result(metric)(x, epsilon=epsilon, random_state=seed, **options) for seed in range(200)
            ]
        two = sum("scale" in result.drawn for result in results)
        # n * epsilon is .6 of the threshold, or 2/3 of it; a part of epsilon pays for a noisy count
        share = (0.95 if options else 1.0) * (0.6 if metric is private_mean_loss else 2 / 3)
        assert abs(two - 200 * (1.5 * share - 0.5)) < 5 * math.sqrt(50)
        assert all(result.noise_interval().lower <= result.value for result in results[:20])


# The rank of the first stage


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(20)])
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


def test_a_rank_that_follows_a_private_number_of_records_is_found(monkeypatch):
    true = AdaptiveDraw._stages

    def planted(draw, count):
        first, second = true(draw, count)
        return first._replace(rank=1 + 3 * (draw.known.size % 2)), second

    def loss():
        fewer, more = np.array([0.0, 0.0, 0.3, 1.0]), np.array([0.0, 0.0, 0.0, 0.3, 1.0])
        return auditing.metric_loss(private_mean_loss, [fewer], [more], epsilon=3.0, mechanism=ALWAYS, **ADD)

    assert loss() <= 3.0 * (1 + TOLERANCE)
    monkeypatch.setattr(AdaptiveDraw, "_stages", planted)
    assert loss() > 3.03


@pytest.mark.parametrize("width", [1.0, 50.0])
def test_a_variance_is_clipped_at_a_tenth_more_than_the_square_but_never_above_the_public_limit(width):
    x = np.random.default_rng(0).random(1000)
    law = variance_draw(x, mechanism=ALWAYS, epsilon=1.0, bounds=(0.0, width)).law(None)
    assert law.scale(0.5) == pytest.approx(1.1 * 0.5**2, rel=1e-12)
    assert law.scale(width) == width**2
    free = variance_draw(x, mechanism=ALWAYS, epsilon=1.0).law(None)
    assert free.scale(50.0) == pytest.approx(1.1 * 50.0**2, rel=1e-12)


def test_a_coin_that_reads_the_data_is_found(monkeypatch):
    mechanism = Adaptive(threshold=20.0)
    pairs = list(replaced(FREE, 4))
    assert 0.9 < worst_loss(private_mean_loss, pairs, 3.0, mechanism) <= 1 + TOLERANCE
    true = AdaptiveDraw._stages

    def planted(draw, count):
        first, second = true(draw, count)
        chance = first.probability / 2 if draw.extremes.bounds(1, 1).value > 1.0 else first.probability
        return first._replace(probability=chance), second

    monkeypatch.setattr(AdaptiveDraw, "_stages", planted)
    assert worst_loss(private_mean_loss, pairs, 3.0, mechanism) == math.inf


def test_below_the_threshold_the_release_is_that_of_hazard():
    x = np.random.default_rng(0).exponential(size=100)
    for metric in (private_mean_loss, private_variance):
        with pytest.warns(SeededReleaseWarning):
            one, two = (metric(x, epsilon=1.0, mechanism=m, random_state=5) for m in ("hazard", "adaptive"))
        assert one == two


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-300, 1e300, 1.7e308])
def test_extreme_records_give_finite_releases(value):
    x = np.full(1000, value)
    for options in ({}, ADD):
        for metric in (private_mean_loss, private_variance):
            assert np.isfinite(metric(x, epsilon=4.0, mechanism=ALWAYS, **options))
        mixed = np.append(x, [0.0, 1.0, 1e308])
        assert np.isfinite(private_mean_loss(mixed, epsilon=4.0, mechanism=ALWAYS, **options))
        assert np.isfinite(private_variance(mixed, epsilon=4.0, mechanism=ALWAYS, **options))


def test_no_records_at_all_where_their_number_is_private():
    for metric in (private_mean_loss, private_variance):
        assert metric([], epsilon=1.0, mechanism=ALWAYS, **ADD) >= 0.0


def test_the_default_beats_hazard_and_laplace_noise_where_these_fail():
    heavy = np.minimum(np.random.default_rng(0).pareto(1.5, 20_000), 1e4)
    errors = {
        mechanism: expected_error(
            private_mean_loss, heavy, epsilon=1.0, max_loss=1e4, mechanism=mechanism
        ).mean_absolute
        for mechanism in ("adaptive", "hazard", "geometric")
    }
    assert errors["adaptive"] < 0.8 * min(errors["hazard"], errors["geometric"])


# The warning about releases that are mostly noise


def test_few_records_at_a_small_epsilon_warn_before_the_spend():
    budget = PrivacyAccountant(10.0)
    with pytest.warns(NoisyReleaseWarning, match="n \\* epsilon is 30"):
        private_mse(np.zeros(30), np.ones(30), epsilon=1.0, accountant=budget)
    with pytest.warns(NoisyReleaseWarning, match="is 40"):  # epsilon is halved
        private_mse(
            np.zeros((80, 2)), np.ones((80, 2)), epsilon=1.0, multioutput="raw_values", accountant=budget
        )
    with pytest.warns(NoisyReleaseWarning, match="is 20"):  # 20 people
        private_mae(np.zeros(80), np.ones(80), epsilon=1.0, groups=np.arange(80) // 4, accountant=budget)
    with pytest.warns(NoisyReleaseWarning, match="is 80.*Below 100"):
        private_variance(np.arange(80.0), epsilon=1.0, accountant=budget)
    assert budget.spent == 4.0


@pytest.mark.filterwarnings("error")
def test_the_warning_as_an_error_spends_nothing_and_many_records_do_not_warn():
    budget = PrivacyAccountant(10.0)
    with pytest.raises(NoisyReleaseWarning):
        private_mse(np.zeros(30), np.ones(30), epsilon=1.0, accountant=budget)
    assert budget.spent == 0.0
    private_mse(np.zeros(50), np.ones(50), epsilon=1.0)
    private_variance(np.arange(100.0), epsilon=1.0)
    private_mse(np.zeros(3), np.ones(3), epsilon=1.0, **ADD)  # n is private
    private_mse(np.zeros(11), np.ones(11), epsilon=1.0, bounds=(0, 1), mechanism="geometric")
    with pytest.raises(NoisyReleaseWarning, match="of its public range"):
        private_mse(np.zeros(10), np.ones(10), epsilon=1.0, bounds=(0, 1), mechanism="geometric")
    private_log_loss([0, 1] * 30, [0.5] * 60, epsilon=1.0)


def test_a_clipped_sum_is_rounded_to_the_lattice_once():
    tie, more = 2.0**-31, 2.0**-70  # half a step, and what tells on which side; no float holds the sum
    laws = []
    for last in (0.0, more):
        losses = np.array([1.0] * 999 + [tie, last])
        draw = loss_draw(losses, max_loss=None, mechanism=Adaptive(), epsilon=1.0)
        laws.append(draw.law(None).given(1.0))
    steps = 1 << 30
    rest = 1 - Fraction(1, 4) - Fraction(300, 6 * 1001)  # of epsilon, for the second stage
    offset = math.floor(steps / (4 * rest))
    assert [law.centre - offset for law in laws] == [999 * steps + 1, 999 * steps + 1]
