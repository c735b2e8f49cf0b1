"""Limits of the area under a ROC curve of scores whose places within their bins are not released."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers import all_of_scores, counts_without_noise, loop_over, normal_scores, seeded, slow_but
from hypothesis import given, settings, strategies as st
from scipy.stats import beta, binom
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

import dp_metrics as dp
from dp_metrics.metrics.scores import bands
from dp_metrics.metrics.scores.bands import ANY_ORDER, area_limits, precision_limits, precision_slopes
from dp_metrics.metrics.scores.curve_formulas import roc
from dp_metrics.quantities.tables import NoisyCounts

pytestmark = pytest.mark.usefixtures("own_error_state")

WAYS = (True, False)  # whether limits have to be proved


def within(n, away, seed=0):
    """Return scores near 1/2 with the area .92, as boosted trees of few rounds have them."""
    y, scores = normal_scores(n, apart=2.0, seed=seed)
    return y, 0.5 + away * (2 * scores - 1)


def released(y, scores, epsilon, entropy, **options):
    return all_of_scores(**options).update(y, scores).release(epsilon, random_state=entropy)


# labels and scores of a few records
few_records = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=2, max_size=60).map(
    lambda records: tuple(map(np.array, zip(*records, strict=True)))
)


@settings(max_examples=40)
@given(few_records.filter(lambda records: np.ptp(records[0]) > 0), st.integers(2, 9))
def test_without_noise_the_limits_are_the_pairs_surely_won_and_those_not_surely_lost(records, bins):
    (y, scores), edges = records, np.linspace(0, 1, bins + 1)
    table = [np.histogram(scores[y == kind], edges)[0] for kind in (0, 1)]
    pairs, above = y.sum() * (1 - y).sum(), np.cumsum(table[1][::-1])[::-1]
    won, tied = table[0][:-1] @ above[1:] / pairs, table[0] @ table[1] / pairs
    told = released(y, scores, 1e6, seeded(), edges=edges)
    lower, upper = told.noise_interval(sure=True)
    assert (lower, upper) == pytest.approx((won, won + tied), abs=1e-9)
    assert lower - 1e-9 <= roc_auc_score(y, scores) <= upper + 1e-9
    for sure in WAYS:
        ordered = told.noise_interval(sure=sure, ties="ordered")
        assert tuple(ordered) == pytest.approx((won + tied / 2, won + tied), abs=1e-3)
        assert "do not rank below" in ordered.note


@pytest.mark.gate
def test_ordered_ties_raise_the_lower_limit_only_and_approximate_limits_lie_within_the_sure_ones():
    for epsilon in (0.5, 1.0, 4.0):
        told = released(*normal_scores(3000), epsilon, seeded())
        proved, quick = (told.noise_interval(sure=sure) for sure in WAYS)
        assert proved.lower < quick.lower < told.roc_auc_score() < quick.upper < proved.upper
        people = told.population_interval()
        assert people.lower < quick.lower < quick.upper < people.upper
        for limits, sure in itertools.product((told.noise_interval, told.population_interval), WAYS):
            free, ordered = limits(sure=sure), limits(sure=sure, ties="ordered")
            assert free.lower < ordered.lower < told.roc_auc_score() < ordered.upper == free.upper
            assert ("chance may break that" in ordered.note) == (limits == told.noise_interval)
            assert "too coarse" not in free.note
            assert "public bins" not in free.about
            assert ("Approximate" in free.note) == (not sure)


@pytest.mark.gate
def test_a_gap_allows_for_ties_of_both_groups_at_once():
    """One bin holds all scores, so that either area may be anything from 0 to 1, and the gap from -1 to 1."""
    y, scores = within(1000, 1e-4)
    frame = dp.PrivateMetricFrame(
        metrics=dp.private_roc_auc_score, y_true=y, y_pred=scores + 0.1, group_labels=["a", "b"],
        sensitive_features=np.repeat(["a", "b"], 500), epsilon=4.0, random_state=seeded(),
    )  # fmt: skip
    for sure in WAYS:
        gap = frame.population_interval(of=("a", "b"), sure=sure)
        assert tuple(gap) == pytest.approx((-1.0, 1.0), abs=0.1)
        assert frame.population_interval(of="difference", sure=sure).upper > 0.9
    assert all("Bins too coarse" in note for note in frame.note.values())
    assert "Bins too coarse" in frame.overall_note


def test_the_area_of_a_rare_class_is_not_drawn_towards_chance():
    """Plausible counts of 6 % positives in 64 bins have areas that are .035 too low on average.

    Of one release the standard deviation is .028, so that a mean of 60 is off by .016 with probability 1e-5.
    """
    y, scores = normal_scores(5000, share=0.06, apart=2.0)
    exact, summary = roc_auc_score(y, scores), all_of_scores(bins=64).update(y, scores)
    entropy = seeded()
    found = [summary.release(1.0, random_state=entropy).roc_auc_score() for _ in range(60)]
    assert abs(np.mean(found) - exact) < 0.016


def test_the_noise_of_a_small_class_is_divided_by_its_own_noisy_size():
    """Counts below 0 make the plausible ones of a class add up to more, if the other class pays for that.

    Beside a huge class the area is the mean, over the noisy positives, of the share F of negatives below. So
    the noise in it is that of the counts, times F less the area, over their sum.
    """
    positive = np.array([-30, 40, -25, 30, -20, 35, 60, 10])
    noise = NoisyCounts((*[10**6] * 8, *positive.tolist()), ((16, Fraction(1, 2)),))
    lower, upper = area_limits(noise, 0.025, ties=(0.5, 0.5), among_people=False)
    below, variance = (np.arange(8) + 0.5) / 8, 0.5 / np.sinh(0.25) ** 2
    area = positive @ below / positive.sum()
    for end in (lower, upper):
        scale = np.sqrt(variance * ((below - end) ** 2).sum() / 2) / positive.sum()
        assert abs(end - area) == pytest.approx(scale * np.log(0.5 / 0.025), rel=1e-3)


FINE = 4096  # parts of the scores of a law, which is even within each
LAWS = {
    "negatives that are rare and spread wide": (0.96, [(1, 1, 1.0)], [(9, 2, 1.0)]),
    "positives of two kinds": (0.08, [(1.5, 6, 1.0)], [(6, 2, 0.7), (2, 3, 0.3)]),
    "positives that are rare and spread wide": (0.04, [(2, 12, 1.0)], [(0.6, 0.6, 1.0)]),
    "positives that are rare and far away": (0.03, [(1, 9, 1.0)], [(12, 3, 1.0)]),
    "close together": (0.4, [(300, 330, 1.0)], [(330, 300, 1.0)]),
}


def law_of(name):
    """Return the share of positives, and the law of the scores of either class on fine parts of [0, 1]."""
    share, *classes = LAWS[name]
    edges = np.linspace(0, 1, FINE + 1)
    return share, [sum(w * np.diff(beta.cdf(edges, a, b)) for a, b, w in one) for one in classes]


def precision_of(share, negative, positive):
    """Return the average precision of laws on parts so fine that the order within them tells little."""
    found, above = (
        np.cumsum(weight * law[::-1]) for weight, law in ((share, positive), (1 - share, negative))
    )
    return float(positive[::-1] @ (found / np.maximum(found + above, 1e-300)))


def area_of(negative, positive):
    return float(negative @ (np.append(np.cumsum(positive[::-1])[::-1], 0.0)[1:] + positive / 2))


OF_THE_GATE = ("negatives that are rare and spread wide", "positives that are rare and far away")


@pytest.mark.gate
@pytest.mark.parametrize("name", slow_but(OF_THE_GATE, LAWS))
def test_approximate_limits_cover_laws_that_they_were_not_chosen_on(name):
    """Of the area, of that of the bins with ties that count half, which shows the variance alone, and more.

    That is the average precision. Of pooled counts 31 of its lower limits miss the first law, and of counts
    that are not pooled 131 of its upper limits the fourth.

    Of each 300 draws 5 % may miss. More than 29 have probability 4e-4 then; with the variance of Hanley and
    McNeil 50 of the first law and 36 of the third do.
    """
    draws, bins, n, rng = 300, 128, 20_000, np.random.default_rng(11)
    share, laws = law_of(name)
    of_bins = [law.reshape(bins, -1).sum(axis=1) for law in laws]
    truths = {ANY_ORDER: area_of(*laws), (0.5, 0.5): area_of(*of_bins), None: precision_of(share, *laws)}
    together = np.concatenate([(1 - share) * of_bins[0], share * of_bins[1]])
    tables = rng.multinomial(n, together, size=draws)
    law = NoisyCounts((0,) * (2 * bins), ((2 * bins, Fraction(1, 2)),), 2 * bins)
    missed = dict.fromkeys(truths, 0)
    for noisy in tables + law.simulated(rng, draws).astype(int):
        noise = NoisyCounts(tuple(noisy.tolist()), law.rates, law.in_sum)
        for ties, truth in truths.items():
            found = area_limits(noise, 0.025, ties=ties) if ties else precision_limits(noise, 0.025)
            lower, upper = found or (0.0, 1.0)
            missed[ties] += not lower <= truth <= upper
    assert binom.sf(29, draws, 0.05) < 4e-4
    assert all(times <= 29 for times in missed.values()), missed


@settings(max_examples=40)
@given(few_records.filter(lambda records: records[0].any()), st.integers(2, 9))
def test_without_noise_an_average_precision_lies_between_those_of_any_order_within_bins(records, bins):
    """The upper limit is that of positives at one place in front, the lower one of many behind negatives."""
    (y, scores), edges = records, np.linspace(0, 1, bins + 1)
    told = released(y, scores, 1e6, seeded(), edges=edges)
    lower, upper = told.noise_interval(metric="average_precision", sure=True)
    places = np.clip(np.searchsorted(edges, scores, side="right"), 1, bins)
    apart = 1e-3 * np.arange(y.size)
    worst = average_precision_score(y, places + 0.5 * (1 - y) + apart)
    best = average_precision_score(y, places + 0.5 * y)
    assert lower <= worst + 1e-9
    assert average_precision_score(y, scores) <= best + 1e-9
    assert upper == pytest.approx(best)
    many = released(np.repeat(y, 100), np.repeat(scores, 100), 1e6, seeded(), edges=edges)
    assert many.noise_interval(metric="average_precision", sure=True).lower == pytest.approx(lower)
    if not y.all():
        quick = told.noise_interval(metric="average_precision")
        assert tuple(quick) == pytest.approx((lower, upper), abs=1e-3)


@given(st.integers(2, 9), st.integers(0, 2**31))
def test_a_band_of_precisions_holds_the_curve_wherever_scores_lie_in_their_bins(bins, seed):
    edges, rng = np.linspace(0, 1, bins + 1), np.random.default_rng(seed)
    y = np.append(rng.random(60) < 0.4, True)
    scores = rng.beta(2 + 2 * y, 3)
    counts = [np.histogram(scores[y == label], edges)[0].astype(float) for label in (0, 1)]
    curve, share = roc(counts_without_noise(edges, *counts)), y.mean()
    away = rng.choice([0.0, 0.5], (4, 1)) * rng.random((4, bins + 1))
    away[:, [0, -1]] = 0.0
    (fpr_low, tpr_low), (fpr_high, tpr_high) = (
        np.maximum.accumulate(np.clip([curve.fpr + sign * a, curve.tpr + sign * b], 0, 1), axis=1)
        for sign, a, b in ((-1, *away[:2]), (1, *away[2:]))
    )
    lines = curve._replace(fpr=fpr_high, tpr=tpr_low), curve._replace(fpr=fpr_low, tpr=tpr_high)
    more, less = rng.choice([0.0, 0.3], 2)
    limits = share * (1 - less), share + (1 - share) * more
    recall, lower, upper = bands.precisions_between(*lines, limits)
    assert (recall[0], recall[-1]) == (0, 1)
    assert not any(each.any() for each in bands.precisions_between(*lines, (0.0, 0.0))[1:])  # of nobody
    precisions, recalls, _ = precision_recall_curve(y, scores)
    for reached in np.unique(recalls[recalls > 0]):
        first = precisions[:-1][recalls[:-1] == reached].max()  # that of the highest threshold
        step = np.searchsorted(recall, reached - 1e-12) - 1
        assert lower[step] - 1e-9 <= first <= upper[step] + 1e-9


@pytest.mark.gate
@loop_over(("n", "epsilon"), [(300, 0.5), (1000, 0.5), (3000, 0.5), (3000, 4.0)])
def test_limits_of_an_average_precision_are_hardly_wider_than_the_proved_ones(n, epsilon):
    """Of small classes the slopes alone were up to a quarter wider."""
    told = released(*normal_scores(n, share=0.4, apart=0.5), epsilon, seeded())
    for limits in (told.noise_interval, told.population_interval):
        quick, proved = (limits(metric="average_precision", sure=sure) for sure in (False, True))
        assert quick.upper - quick.lower <= 1.1 * (proved.upper - proved.lower)


@loop_over("is_upper", [False, True])
def test_empty_bins_have_slopes_and_nobody_is_found_where_nobody_is_positive(is_upper):
    """A positive in a bin of its own above all others is right, and a negative there is below everything."""
    value, slopes = precision_slopes(np.array([[3.0, 1.0], [0.0, 0.0]]), is_upper=is_upper)
    assert value == 0.0
    assert np.isfinite(slopes).all()
    _, slopes = precision_slopes(np.array([[30.0, 10.0, 0.0], [10.0, 20.0, 0.0]]), is_upper=is_upper)
    assert np.isfinite(slopes).all()
    assert slopes[0].max() <= 0
    assert slopes[1, 2] == max(slopes[1]) > 0


@pytest.mark.gate
def test_limits_of_an_average_precision_are_told_and_say_where_bins_are_too_coarse():
    y, scores = normal_scores(600, share=0.2, apart=2.2, seed=3)
    told = released(y, scores, 1.0, seeded(), bins=8)
    lower, upper = told.noise_interval(metric="average_precision")
    found = told.population_interval(metric="average_precision")
    assert found.lower <= lower < found.estimate < upper <= found.upper
    assert "The average precision of the unbinned scores" in found.about
    near = released(*within(4000, 0.03), 1.0, seeded())
    assert "may move the average precision" in near.noise_interval(metric="average_precision").note


@pytest.mark.gate
@pytest.mark.parametrize("among_people", [True, False])
def test_limits_of_an_average_precision_are_as_far_away_as_samples_and_noise_move_it(among_people):
    """All bins are full, so that it is nearly linear in the counts, and nothing is pooled.

    Of 2,000 draws the quantile of 2.5 % is off by 4 % of its distance, as a standard deviation.
    """
    counts, draws, rng = np.array([9e3, 6e3, 4e3, 2e3, 1e3, 2e3, 4e3, 5e3]), 2_000, np.random.default_rng(7)
    law = NoisyCounts((0,) * 8, ((8, Fraction(1, 40)),), 8)
    noise = replace(law, noisy=tuple(counts.astype(int).tolist()))
    moved = law.simulated(rng, draws)
    moved = moved + (rng.multinomial(counts.sum(), counts / counts.sum(), draws) if among_people else counts)
    limits = precision_limits(noise, 0.025, among_people=among_people)
    for end, is_upper in zip(limits, (False, True), strict=True):
        value, *found = (
            precision_slopes(one.reshape(2, 4), is_upper=is_upper)[0] for one in (counts, *moved)
        )
        expected = np.quantile(found, 0.975 if is_upper else 0.025) - value
        assert 0.9 < (end - value) / expected < 1.25  # noise is taken to have the tails of one number's
