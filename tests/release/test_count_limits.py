"""Limits of ratios, of probabilities and of bounded means: exact enumeration of what they miss.

And what metrics hand over.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cases import RELATIONS
from helpers import clopper_pearson, first_of, loop_over, loss_query, seeded, slow_but
from hypothesis import example, given, settings, strategies as st
from scipy.special import betaincinv
from scipy.stats import binom

import dp_metrics as dp
from dp_metrics.mechanisms._laws import Staircase
from dp_metrics.quantities.base import get_mechanism
from dp_metrics.release import count_limits as module
from dp_metrics.release.count_limits import (
    NoisyRatio,
    edge_limits,
    noise_limits,
    noisy_binomial_limits,
    noisy_mean_limits,
    quick_ratio_limits,
    ratio_limits,
)

pytestmark = pytest.mark.usefixtures("own_error_state")

EACH = 0.025


def noisy(a, b, rate=Fraction(1, 2), cells=(1, 1), rest=1, n=None, rates=None):
    return NoisyRatio(a, b, cells, tuple(map(Fraction, rates or (rate, rate))), rest, n)


def exact_table(ratio):
    """Return the table of single noises, whatever blocks the module would take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FINEST_REACH", 10**6)
        return replace(ratio).table().law


def misses(size, p, rate, rest, left_out, each):
    """Return how likely p is below the lower limit, and above the upper one, and what was left out."""
    ratio = noisy(0, 0, rate, rest=rest)
    noise, reach = exact_table(ratio), ratio.reach
    # the law of (a, b): X + z_a and size - X + z_b
    law = np.zeros((2 * reach + size + 1, 2 * reach + size + 1))
    for x in range(size + 1):
        law[x : x + 2 * reach + 1, size - x : size - x + 2 * reach + 1] += binom.pmf(x, size, p) * noise
    order = np.argsort(law, axis=None)[::-1]
    kept = order[: np.searchsorted(np.cumsum(law.ravel()[order]), 1 - left_out) + 1]
    below = above = 0.0
    for a, b in zip(*np.unravel_index(kept, law.shape), strict=True):
        lower, upper = ratio_limits(noisy(int(a) - reach, int(b) - reach, rate, rest=rest), each)
        below, above = below + law[a, b] * (lower > p), above + law[a, b] * (upper < p)
    return below, above, 1 - law.ravel()[kept].sum()


# the last ones show that the order that grows is sure at a tenth of the miss
PEOPLE = [(6, 0.7, 2.0, 1, EACH), (5, 0.9, 2.0, None, EACH), (7, 0.85, 2.0, None, EACH / 10)]
MANY_PEOPLE = [
    (12, 0.7, 0.5, 1, EACH), (25, 0.9, 0.5, 1, EACH), (25, 0.5, 2.0, None, EACH), (40, 0.95, 0.5, 0, EACH),
    (1, 0.5, 0.5, 1, EACH), (18, 0.94, 1.0, 1, EACH / 10), (30, 0.6, 1.0, 7, EACH / 10),
]  # fmt: skip


@pytest.mark.parametrize("people", slow_but(PEOPLE, PEOPLE + MANY_PEOPLE))
@pytest.mark.parametrize(
    ("reach", "finest"),
    [(module._LARGEST_REACH, module._FINEST_REACH), (module._LARGEST_REACH, 6), (0, 7)],
    ids=["by table", "by blocks", "by box"],
)
def test_limits_of_people_are_missed_as_rarely_as_promised(people, reach, finest, monkeypatch):
    size, p, rate, rest, each = people
    monkeypatch.setattr(module, "_LARGEST_REACH", reach)
    monkeypatch.setattr(module, "_FINEST_REACH", finest)
    room = 0.08 * each
    below, above, left_out = misses(size, p, Fraction(rate), rest, room, each)
    assert max(below, above) + left_out <= each + room
    if reach and finest > 6 and size > 1 and each == EACH:  # limits that never miss would be of no use
        assert max(below, above) > 0.0003


def test_limits_of_all_records_are_those_of_a_binomial_count_and_narrower_than_of_a_private_number():
    in_two = ratio_limits(noisy(872, 128, rest=0), EACH)
    lower, upper = noisy_binomial_limits(872, 1000, 1.0, EACH)
    assert in_two[0] < lower < upper < in_two[1]  # which knows how many there are
    of_all = noisy(872, 128, rest=0, n=1000)
    assert ratio_limits(of_all, EACH) == (lower, upper)
    away = Staircase(1.0).largest(EACH)
    assert noise_limits(of_all, EACH) == ((872 - away) / 1000, (872 + away) / 1000)
    beyond = noise_limits(noisy(1001, -1, rest=0, n=1000), EACH)
    assert beyond == ((1001 - away) / 1000, 1.0)


def test_a_number_of_records_is_at_most_the_public_one_and_has_the_limits_of_the_share_times_it():
    accuracy = dp.with_result(dp.private_accuracy_score)
    for seed in range(20):
        right, share = (
            accuracy(TRUE[:30], PREDICTED[:30], normalize=how, epsilon=0.2, random_state=seeded(seed))
            for how in (False, True)
        )
        assert right.value == pytest.approx(30 * share.value)
        assert right.value <= 30
        assert [*right.noise_interval()] == pytest.approx([30 * end for end in share.noise_interval()])
        assert [*right.population_interval()] == [*share.population_interval()]


@pytest.mark.parametrize(
    ("a", "b", "cells", "rest", "rate"),
    [
        (0, 0, (1, 1), 1, 1.0),  # 0 / 0: any value is covered
        (0, 4, (1, 1), 1, 1.0),
        (3, 0, (1, 2), None, 1.0),
        (9, 2, (1, 1), None, 0.8),
        (2, 11, (2, 1), 4, 1.5),
        (14, 14, (1, 3), 0, 1.5),
        (1, 0, (1, 1), 1, 4.0),  # here the noise is 0 with a probability above .95
        pytest.param(40, 3, (1, 1), 7, 0.5, marks=pytest.mark.slow),
        pytest.param(25, 90, (1, 1), None, 0.3, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("way", ["by table", "by blocks", "by corners"])
def test_limits_of_the_noise_are_missed_as_rarely_as_promised(a, b, cells, rest, rate, way, monkeypatch):
    """Over all noise but for the least likely 1e-3. There are no false alarms: the noise is enumerated."""
    zero = noisy(0, 0, Fraction(rate), cells=cells, rest=rest)
    law, reach = exact_table(zero), zero.reach
    if way != "by table":
        monkeypatch.setattr(module, *(("_FINEST_REACH", 5) if way == "by blocks" else ("_LARGEST_TABLE", 0)))
    order = np.argsort(law, axis=None)[::-1]
    kept = order[: np.searchsorted(np.cumsum(law.ravel()[order]), 0.999) + 1]
    truths = [a / (a + b)] if a or b else [0.0, 0.5, 1.0]
    missed = {truth: [0.0, 0.0] for truth in truths}
    is_clear = law[reach, reach] >= 1 - 2 * EACH
    for z_a, z_b in zip(*np.unravel_index(kept, law.shape), strict=True):
        seen = noisy(a + int(z_a) - reach, b + int(z_b) - reach, Fraction(rate), cells=cells, rest=rest)
        lower, upper = noise_limits(seen, EACH)
        assert 0.0 <= lower <= upper <= 1.0
        assert is_clear or lower < upper - 1e-9  # no point, as if all were known
        for truth, ends in missed.items():
            ends[0] += law[z_a, z_b] * (lower > truth + 1e-12)
            ends[1] += law[z_a, z_b] * (upper < truth - 1e-12)
    assert np.max([*missed.values()]) <= EACH
    if way == "by table" and not is_clear and a + b > 10:
        assert np.max([*missed.values()]) > 0.01  # limits that never miss would be of no use


@settings(max_examples=40)
@given(
    st.integers(-30, 200),
    st.integers(-30, 200),
    st.sampled_from([0.4, 1.0, 5.0]),
    st.sampled_from([0.2, EACH, 2.5e-4, 1e-10]),
    st.sampled_from([None, 0, 3]),
)
def test_what_is_shown_of_people_holds_the_limits_of_the_noise(a, b, rate, miss, rest):
    of_f1 = noise_limits(replace(noisy(a, b, Fraction(20)), weights=(2.0, 1.0)), miss)
    assert of_f1[0] <= of_f1[1]  # mostly one point, which rounding must not turn around
    ratio = noisy(a, b, Fraction(rate), rest=rest)
    (low, high), (least, most) = noise_limits(ratio, miss), ratio_limits(ratio, miss)
    assert 0.0 <= least <= low <= high <= most <= 1.0
    for limits, (lower, upper) in ((noise_limits, (low, high)), (ratio_limits, (least, most))):
        mirrored = limits(ratio.swapped, miss)
        assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-12)
    lower, upper = edge_limits(ratio, miss)
    assert 0.0 <= lower <= upper <= 1.0


def test_limits_of_the_noise_are_ratios_of_counts_to_the_last_bit():
    assert noise_limits(noisy(8, 2, Fraction(50)), EACH) == (0.8, 0.8)
    lower, upper = noise_limits(noisy(900, 100, Fraction(2)), EACH)
    assert lower in {(900 - away) / (1000 - away + back) for away in range(9) for back in range(9)}
    assert upper in {1 - (100 - away) / (1000 - away + back) for away in range(9) for back in range(9)}


def test_rare_noise_makes_no_point_of_what_is_shown_of_people():
    """Limits of people alone are 1 or near it: counts so far off are so rare that nothing need be true."""
    far_off = noisy(60, -12, Fraction(1, 20), rest=None, n=30), noisy(20, -60, rest=None)
    for ratio, miss in ((far_off[0], 0.2), (far_off[1], 0.2), (noisy(8, -60, Fraction(2), n=200), EACH)):
        lower, upper = ratio_limits(ratio, miss)
        assert lower == noise_limits(ratio, miss)[0] < 0.95
        assert upper == 1.0


@given(
    st.floats(0.05, 0.95),
    st.floats(0.02, 0.98),
    st.integers(0, 12),
    st.integers(0, 30),
    st.sampled_from([None, 1]),
)
@example(0.05, 0.02, 12, 0, None)
def test_what_blocks_tell_of_an_order_is_never_too_little(p, rho, s, size, rest):
    """Of 30 or fewer records, with noises in blocks of 5, for each number of records of a block."""
    ratio = noisy(0, 0, rest=rest)
    single = exact_table(ratio)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FINEST_REACH", 15)
        blocks = ratio.table()
    width = blocks.width
    assert width == 5
    (told,) = module._chance(blocks, rho, s)(np.array([size]), p)
    z = np.arange(-ratio.reach, ratio.reach + 1)
    combination = (1 - rho) * z[:, np.newaxis] - rho * z
    for records in range(size, size + width):
        x = np.arange(records + 1)
        tails = [single[combination >= s + rho * records - one].sum() for one in x]
        assert binom.pmf(x, records, p) @ tails <= told + 1e-6  # the table leaves out less


def test_a_public_number_of_records_helps():
    known, unknown = (ratio_limits(noisy(30, 20, n=n), EACH) for n in (40, None))
    assert unknown[0] < known[0] < known[1] < unknown[1]


@loop_over(("variance", "miss"), product([1e-250, 1.0, 1e20], [1e-6, 0.499]))
def test_of_no_records_any_share_is_likely(variance, miss):
    for noise in ((variance, variance, 2 * variance), (variance, 0.0, 0.0)):
        limits = quick_ratio_limits(np.array([0.0, -3.0, -3.0]), np.array([0.0, -5.0, -3.0]), noise, miss)
        np.testing.assert_array_equal(limits, [[0.0] * 3, [1.0] * 3])


@loop_over(("rate", "cells"), product([0.05, 0.5, 3.0], [1, 3]))
def test_the_table_has_the_variance_of_the_noise(rate, cells):
    alone = noisy(0, 0, Fraction(rate), cells=(cells, 1), rest=None)
    places = np.arange(-alone.reach, alone.reach + 1)
    each = 0.5 / np.sinh(rate / 2) ** 2
    for place, number in enumerate((cells, 1)):
        law = alone.table().law.sum(axis=1 - place)
        assert law @ places**2 == pytest.approx(number * each, rel=1e-4)
        j = alone.largest_noise(place, 0.01)
        assert law[places > j].sum() <= 0.01
        if rate < 1:  # and no more than about twice as far as need be
            assert law[places > j / 2].sum() > 0.01


@loop_over("rate", [0.01, 0.5, 4.0])
def test_the_box_holds_the_counts_as_rarely_left_as_promised(rate):
    j, miss = Staircase(rate).largest(EACH / 10), 0.8 * EACH
    for a, b in ((3000, 200), (800, 5000)):
        assert module._box_limit(noisy(a, b, Fraction(rate)), EACH) <= betaincinv(a - j, b + j + 1, miss)


def test_without_noise_they_are_clopper_and_pearsons_and_with_more_they_end():
    for a, b in ((5, 2), (0, 24), (24, 0), (300, 40), (40_000, 100)):
        low, high = clopper_pearson(a, b)
        lower, upper = ratio_limits(noisy(a, b, Fraction(60)), EACH)
        assert lower <= low
        assert upper >= high
        assert upper - lower == pytest.approx(high - low, rel=0.05 if a < 10 else 0.02)
    rates = Fraction(1, 10**4), Fraction(1, 10**30), Fraction(1, 10**400), Fraction(3000)
    counts = (10**9, 10**8), (10**60, 10**60), (-(10**400), 10**400), (50, 0)
    for limits, rate, (a, b) in product((ratio_limits, noise_limits), rates, counts):
        lower, upper = limits(noisy(a, b, rate), EACH)
        assert 0.0 <= lower <= upper <= 1.0


# ---- a probability, and a bounded mean ---------------------------------------------------------------------


def test_hardly_anything_of_a_binomial_law_is_left_out():
    for n, p in ((1, 0.5), (30, 1e-9), (1000, 0.2), (10**6, 0.37), (10**6, 1e-6)):
        x, probabilities = module.binomial_law(n, p)
        assert binom.cdf(x[0] - 1, n, p) + binom.sf(x[-1], n, p) <= 2 * math.exp(-40)
        np.testing.assert_allclose(probabilities, binom.pmf(x, n, p), rtol=1e-7, atol=1e-25)
    assert module.at_most(0.3) >= 0.3 * (1 + 1e-9)


def coverage(n, rate, shares):
    """Return the exact probability with which the interval of a clamped noisy count covers each share."""
    ends = np.array([noisy_binomial_limits(count, n, rate, EACH) for count in range(n + 1)])
    q, found = math.exp(-rate), []
    for p in shares:
        x = np.arange(n + 1)
        pmf = binom.pmf(x, n, p)
        away = x[:, np.newaxis] - x
        law = pmf @ (np.tanh(rate / 2) * np.exp(-rate * np.abs(away)))
        law[0], law[-1] = pmf @ q**x / (1 + q), pmf @ q ** (n - x) / (1 + q)
        found.append(law[(ends[:, 0] <= p) & (p <= ends[:, 1])].sum())
    return np.array(found)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("n", "rate"),
    [
        (100, 0.1),
        (100, 1.0),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in ((100, 0.3), (100, 3.0), (1000, 0.1), (1000, 3.0))
        ),
    ],
)
def test_coverage_is_exact(n, rate):
    found = coverage(n, rate, np.linspace(0.2 / n, 1 - 0.2 / n, 200))
    assert 0.95 <= found.min() < 0.957


@loop_over(("n", "rate"), product([1, 7, 1000], [1e-300, 0.1, 40.0, 1e6]))
def test_limits_are_ordered_symmetric_and_reach_the_ends(n, rate):
    middle = range(0, n + 1, max(n // 20, 1))
    ends = [noisy_binomial_limits(count, n, rate, EACH) for count in (-2, -1, *middle, n + 1, n + 2)]
    lower, upper = np.array(ends).T
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert lower[:3].tolist() == [0.0] * 3
    assert upper[-3:].tolist() == [1.0] * 3
    np.testing.assert_allclose(lower, 1 - upper[::-1], atol=1e-15)
    assert (lower <= upper).all()


@loop_over("count", [0, 1, 372_000, 999_999])
def test_a_million_records_without_noise_are_clopper_and_pearson(count):
    n = 10**6
    lower, upper = noisy_binomial_limits(count, n, 60.0, EACH)
    assert binom.cdf(count, n, upper) == pytest.approx(EACH, rel=1e-6)
    assert lower == 0 or binom.sf(count - 1, n, lower) == pytest.approx(EACH, rel=1e-6)


LAWS = {
    "0 or 1": ((0, 1), (0.9, 0.1)),
    "hardly any": ((0, 1), (0.98, 0.02)),
    "one value": ((0.3,), (1.0,)),
    "three values": ((0, 0.5, 1), (0.5, 0.3, 0.2)),
    "near the end": ((0.5, 1), (0.1, 0.9)),
}


def noisy_law(n, epsilon):
    mean = loss_query(np.zeros(n), 1.0)
    facts = mean.quantity.facts(mean.totals, 1)
    return get_mechanism("geometric").output_distribution(facts.widest(), epsilon)


def first_place(law, n, mean, side):
    """Return the first place, counted from one end, whose limit on that side misses the mean."""

    def misses(place):
        number = place if side == 0 else law.grid.last - place
        end = noisy_mean_limits(law, law.grid.point(number), n, EACH)[side]
        return end > mean if side == 0 else end < mean

    return first_of(range(law.grid.last + 1), misses)


@pytest.mark.gate
@loop_over("epsilon", [0.3, 3.0])
@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("0 or 1", 20),
        ("three values", 8),
        *(pytest.param(name, 30, marks=pytest.mark.slow) for name in LAWS if name != "0 or 1"),
    ],
)
def test_limits_of_a_bounded_mean_miss_no_more_than_stated(name, n, epsilon):
    """By the exact law of the sum and of the noise."""
    values, shares = LAWS[name]
    mean, law = float(np.dot(values, shares)), noisy_law(n, epsilon)
    sums = np.array([1.0])
    of_one = np.zeros(11)
    of_one[np.rint(np.array(values) * 10).astype(int)] = shares
    for _ in range(n):
        sums = np.convolve(sums, of_one)
    places = np.rint(np.arange(sums.size) / (10 * n) * law.grid.last)
    for side in (0, 1):
        first = first_place(law, n, mean, side)
        # noise is at least so much, counted from either end
        needed = first - (places if side == 0 else law.grid.last - places)
        miss = float(sums @ law.added.cdf(-needed)) if first <= law.grid.last else 0.0
        assert miss <= EACH


@loop_over(
    ("n", "epsilon", "m"),
    [(1000, 1.0, 0.1), (1000, 0.1, 0.1), (10_000, 4.0, 0.5), (100, 100.0, 0.5), (10, 0.1, 0.5)],
)
def test_limits_of_a_bounded_mean_are_symmetric_and_little_wider_than_those_of_a_share(n, epsilon, m):
    law = noisy_law(n, epsilon)
    lower, upper, *mirrored = (
        end
        for share in (m, 1 - m)
        for end in noisy_mean_limits(law, law.grid.point(round(share * law.grid.last)), n, EACH)
    )
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-9)
    low, high = noisy_binomial_limits(round(m * n), n, epsilon, EACH)  # whose law is known
    assert high - low <= upper - lower <= 1.36 * (high - low)


def test_limits_at_the_ends_of_the_range():
    law = noisy_law(50, 1.0)
    assert noisy_mean_limits(law, 0.0, 50, EACH)[0] == 0.0
    assert noisy_mean_limits(law, 1.0, 50, EACH)[1] == 1.0
    assert noisy_mean_limits(noisy_law(1, 1e-300), 0.5, 1, EACH) == (0.0, 1.0)


# ---- what the metrics hand over ----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 5, 1000)
PREDICTED = np.where(RNG.random(1000) < 0.7, TRUE, RNG.integers(0, 5, 1000))


RATIOS = {
    "recall": dp.private_recall_score,
    "precision": dp.private_precision_score,
    "f1": dp.private_f1_score,
    "jaccard": dp.private_jaccard_score,
}


def f1_of(jaccard):
    return 2 * jaccard / (1 + jaccard)


def unchanged(ratio):
    return ratio


@loop_over(
    ("kind", "labels", "options", "a", "b", "ratio"),
    [
        ("recall", 2, {}, [0], [1], {"rest": 1, "n": 1000}),
        ("f1", 3, {"average": None}, [0], [1, 2, 3, 6], {"cells": (1, 4), "rest": 4, "n": 1000}),
        ("recall", 5, {"average": None}, [0], [5], {"rest": 8, "n": 1000}),
        ("jaccard", 5, {"average": None}, [0], [5], {"rest": None, "n": 1000, "rates": (0.5, 0.25)}),
        ("precision", 2, {"neighboring": "add_or_remove_one"}, [0], [1], {"rest": None, "rates": (1, 1)}),
        ("f1", 5, {"average": "micro"}, [0], [1], {"rest": 0, "n": 1000}),
    ],
)
def test_the_noise_is_that_of_the_release(kind, labels, options, a, b, ratio):
    """And not of the projected counts: those of the first label, as they were drawn."""
    true, predicted = np.minimum(TRUE, labels - 1), np.minimum(PREDICTED, labels - 1)
    names = {"labels": list(range(labels))} if labels > 2 else {}
    result = dp.with_result(RATIOS[kind])(true, predicted, epsilon=1.0, **names, **options)
    counts, each = result.drawn["counts"], EACH / (labels if options.get("average", 0) is None else 1)
    by_hand = noisy(sum(counts[i] for i in a), sum(counts[i] for i in b), **ratio)
    of = f1_of if (kind, options.get("average")) == ("f1", None) else unchanged
    found = [np.ravel(end)[0] for end in result.population_interval()]
    assert found == pytest.approx([of(end) for end in ratio_limits(by_hand, each)], abs=1e-10)


@loop_over("neighboring", RELATIONS)
def test_shares_of_all_records_and_the_recall_of_the_other_label(neighboring):
    right = int((TRUE == PREDICTED).sum())
    low, high = clopper_pearson(right, 1000 - right)
    options = {"neighboring": neighboring, "epsilon": 500.0}
    labels = {"labels": list(range(5)), **options}
    two = np.array([TRUE > 2, PREDICTED > 2])
    negatives = clopper_pearson(*((~two[0] & (two[1] == said)).sum() for said in (False, True)))
    for metric, data, more, wanted in (
        (dp.private_accuracy_score, (TRUE, PREDICTED), options, (low, high)),
        (dp.private_top_k_accuracy_score, (TRUE, np.eye(5)[PREDICTED]), {"k": 1, **labels}, (low, high)),
        (dp.private_f1_score, (TRUE, PREDICTED), {"average": "micro", **labels}, (low, high)),
        (dp.private_recall_score, (TRUE, PREDICTED), {"average": "weighted", **labels}, (low, high)),
        (dp.private_zero_one_loss, (TRUE, PREDICTED), options, (1 - high, 1 - low)),
        (
            dp.private_jaccard_score, (TRUE, PREDICTED), {"average": "micro", **labels},
            (low / (2 - low), high / (2 - high)),
        ),
        (dp.private_specificity_score, two, {"labels": [False, True], **options}, negatives),
    ):  # fmt: skip
        interval = dp.with_result(metric)(*data, **more).population_interval()
        assert interval == pytest.approx(wanted, abs=0.003), metric
