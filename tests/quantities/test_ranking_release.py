"""The release of a ranking loss: its privacy, exactly, on every pair of tiny data sets; its law; its grid."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import OfWhole, assert_follows, facts_of, ranking_query, seeded

import dp_metrics as dp
from dp_metrics.analysis import auditing
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms._laws import Staircase
from dp_metrics.quantities.base import Totals
from dp_metrics.quantities.ranks import RankingLaw, RankingNoise, RankingOf

EPSILON = Fraction(1)
BOTH = ("replace_one", "add_or_remove_one")


def query(records):
    labels, scores = np.array(records, dtype=float).reshape(-1, 2).T
    return ranking_query(labels == 1, scores)


def law_of(records, epsilon=EPSILON, *, relation=Relation.REPLACE_ONE) -> RankingLaw:
    noise, stats = query(records).prepared(dp.mechanisms.Hazard(), epsilon, relation=relation)
    return noise.law(stats)


def test_where_n_is_private_sizes_have_noise_of_their_own_and_no_rule_follows_from_n():
    several = [law_of([(1, 0), (0, 1)] * pairs, relation=Relation.ADD_OR_REMOVE_ONE) for pairs in (5, 6)]
    assert several[0].rule == several[1].rule
    drawn = [several[0].release(seeded(seed))[1] for seed in range(20)]
    assert len({sizes["positives"] - sizes["negatives"] for sizes in drawn}) > 5


def test_the_loss_is_that_of_all_sizes_and_outputs_one_by_one():
    for pair in (((0, 1), (1, 0), (1, 2)), ((0, 1), (1, 0), (0, 0))), (((1, 0), (1, 1)), ((1, 0), (0, 1))):
        a, b = map(law_of, pair)
        worst = 0.0
        for noisy in range(-3, len(pair[0]) + 4):
            logs = [-float(a.rule.rate) * abs(noisy - draw.sizes[0]) for draw in (a, b)]
            laws = [draw.given(a.rule.smaller((noisy,))) for draw in (a, b)]
            numbers = np.arange(laws[0].grid.first, laws[0].grid.last + 1)
            p, q = (np.diff(law.index_cdf(numbers), prepend=0.0) for law in laws)
            worst = max(worst, np.abs(logs[0] - logs[1] + np.log(p / q)).max())
        data = [np.array(records, dtype=float).reshape(-1, 2).T for records in pair]
        told = auditing.release_loss(dp.private_roc_auc_score, *data, epsilon=1.0)
        assert worst - 1e-6 <= told <= worst + 0.03  # a cell of the grid has the mean density of its points


def some_records(n=200, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) < share * n).astype(int)
    return labels, rng.normal(labels * 1.5).round(2)


@pytest.mark.parametrize("relation", BOTH)
def test_releases_follow_the_law_and_the_sizes_are_noisy(relation):
    labels, scores = some_records()
    noise, stats = ranking_query(labels == 1, scores).prepared(
        dp.mechanisms.Hazard(), Fraction(1, 2), relation=Relation(relation)
    )
    draw, entropy = noise.prepare(stats), seeded()
    values, drawn, _ = zip(*(draw(entropy, None) for _ in range(1500)), strict=True)
    assert_follows(np.array(values), noise.law(stats))
    names = ["positives"] if relation == "replace_one" else ["positives", "negatives"]
    assert all([*sizes] == names for sizes in drawn)
    for name, size in zip(names, (40, 160), strict=False):
        noise = np.array([sizes[name] for sizes in drawn], dtype=float) - size
        assert_follows(noise, OfWhole(Staircase(1 / 40).cdf))  # of rate epsilon / 20


@pytest.mark.parametrize("relation", BOTH)
def test_the_grid_follows_from_public_facts_and_noisy_sizes_alone(relation):
    laws = [
        law_of(np.stack([labels, scores], axis=1), relation=Relation(relation))
        for labels, scores in (some_records(), some_records(share=0.5, seed=1), some_records(share=0.0))
    ]
    assert laws[0].rule == laws[1].rule == laws[2].rule
    bounds = [law._bounds for law in laws]
    assert len({one.ranks for one in bounds}) == 1
    assert facts_of(bounds[0]) == facts_of(bounds[2])
    result = dp.with_result(dp.private_roc_auc_score)(
        *some_records(), epsilon=1.0, neighboring=relation, random_state=seeded()
    )
    rule = laws[0].rule
    mechanism = rule.given(rule.smaller(tuple(result.drawn.values())))
    grid = mechanism.output_distribution(bounds[0], rule.hazard_epsilon).grid
    outputs = 1.0 - grid.points(np.arange(grid.first, grid.last + 1))
    assert result.value in outputs.tolist()


def test_of_the_sizes_the_smaller_within_its_limits_counts():
    noise = partial(RankingNoise, RankingOf(1), 0.01, epsilon=EPSILON)
    public, private = noise(Totals.of(101)), noise(None)
    assert [public.smaller((size,)) for size in (-(10**400), 0, 7, 60, 95, 10**400)] == [1, 1, 7, 41, 6, 1]
    assert [private.smaller(sizes) for sizes in ((-4, 9), (7, 3), (10**400, 10**400))] == [1, 3, 10**9]
    assert public.given(30).resolution == pytest.approx(1 / (30 / 30 + 2.5))
    assert noise(Totals.of(1)).most == 1
