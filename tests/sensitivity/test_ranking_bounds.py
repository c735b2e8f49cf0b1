"""The output bounds of the ranking loss, against all data sets of tiny domains and on random floats."""

import itertools
import math
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pytest
from helpers import assert_same, check_neighbours, loop_over, nearest

from dp_metrics.sensitivity.score_bounds import RankedScores, _least, ranking_bounds

BOUNDS = {
    "replace_one": partial(ranking_bounds, private_n=False),
    "add_or_remove_one": partial(ranking_bounds, private_n=True),
}
each_relation = pytest.mark.parametrize("relation", BOUNDS)


def bounds_of(records, ranks, relation="replace_one"):
    labels, scores = (np.array(column) for column in (zip(*records, strict=True) if records else ((), ())))
    scores = RankedScores.of(scores.astype(float), labels.astype(bool))
    return BOUNDS[relation](scores, ranks)


def loss(records) -> Fraction:
    """Return 1 - AUC from its definition."""
    positives = [score for label, score in records if label]
    negatives = [score for label, score in records if not label]
    if not positives or not negatives:
        return Fraction(1, 2)
    twice = sum((n > p) + (n >= p) for p in positives for n in negatives)
    return Fraction(int(twice), 2 * len(positives) * len(negatives))


class Domain:
    """All data sets of the given sizes whose scores are 0, 1, ..., `largest`."""

    def __init__(self, largest, sizes):
        self.kinds = list(itertools.product((0, 1), range(largest + 1)))
        self.sets = [
            records for size in sizes for records in itertools.combinations_with_replacement(self.kinds, size)
        ]
        self.losses = np.array([loss(records) for records in self.sets], dtype=float)
        counts = [[records.count(kind) for kind in self.kinds] for records in self.sets]
        self.counts = np.array(counts, dtype=np.int8)
        self.largest = largest

    def is_interior(self, records):
        """Return whether the domain has scores below and above all of these."""
        return all(0 < score < self.largest for _, score in records)

    def distances(self, i, relation):
        """Return how many steps lead from one data set to each."""
        common = np.minimum(self.counts, self.counts[i]).sum(axis=1)
        if relation == "replace_one":
            return len(self.sets[i]) - common
        return self.counts.sum(axis=1) + len(self.sets[i]) - 2 * common

    def bounds(self, relation, ranks):
        return [bounds_of(records, ranks, relation) for records in self.sets]


@loop_over(("largest", "n"), [(3, 2), (3, 3), (4, 4), (3, 5), (2, 7)])
def test_when_records_are_replaced_the_bounds_are_the_extremes_over_all_data_sets(largest, n):
    domain = Domain(largest, [n])
    interior = 0
    for i, (records, made) in enumerate(zip(domain.sets, domain.bounds("replace_one", n), strict=True)):
        assert made.value == domain.losses[i]
        distances = domain.distances(i, "replace_one")
        for rank in range(1, n + 1):
            within = domain.losses[distances <= rank]
            ours = made.lower[rank - 1], made.upper[rank - 1]
            if domain.is_interior(records):
                interior += 1
                assert ours == (within.min(), within.max())
            else:
                assert ours[0] <= within.min() <= within.max() <= ours[1]
    assert interior >= n


@loop_over(("largest", "n"), [(2, 0), (2, 1), (2, 2), (2, 3), (1, 4)])
def test_when_records_are_added_or_removed_no_data_set_lies_outside_the_bounds(largest, n):
    domain = Domain(largest, range(n + 4))
    for i, (records, made) in enumerate(zip(domain.sets, domain.bounds("add_or_remove_one", 3), strict=True)):
        if len(records) == n:
            distances = domain.distances(i, "add_or_remove_one")
            for rank in range(1, 4):
                within = domain.losses[distances <= rank]
                assert made.lower[rank - 1] <= within.min() <= within.max() <= made.upper[rank - 1]


def least_quotient(records, rank) -> Fraction:
    """Return the least of M(k) / D(k, rank): what removing k records leaves, over the most pairs."""

    def quotient(k):
        left = [
            [one for i, one in enumerate(records) if i not in gone]
            for gone in itertools.combinations(range(len(records)), k)
        ]
        twice = min(
            sum((n > p) + (n >= p) for yes, p in kept for no, n in kept if yes and not no) for kept in left
        )
        positives, size = sum(label for label, _ in records), len(records) - 2 * k + rank
        sizes = range(positives - k, positives + rank - k + 1)
        return Fraction(twice, max(2 * p * (size - p) for p in sizes))

    return min(map(quotient, range(rank + 1)))


def test_when_records_are_added_or_removed_the_lower_bounds_are_no_looser_than_proved():
    rng = np.random.default_rng(6)
    for _ in range(20):
        scores = rng.integers(0, 4, 7).astype(float).tolist()
        records = list(zip([1, 1, 1, 0, 0, 0, int(rng.integers(2))], scores, strict=True))
        made = bounds_of(records, 2, "add_or_remove_one")
        assert made.lower.tolist() == [float(least_quotient(records, rank)) for rank in (1, 2)]


def random_records(rng, n):
    """Return records with many ties, few positives now and then, and scores a rounding apart."""
    few = [-1.5, -0.0, 0.0, 5e-324, 0.1, 1 / 3, math.nextafter(1 / 3, 1), 1e300]
    scores = rng.choice(few, n) if rng.random() < 0.5 else rng.random(n).round(int(rng.integers(1, 4)))
    return list(zip(rng.random(n) < rng.choice([0.05, 0.3, 0.5]), scores, strict=True))


@pytest.mark.gate
@each_relation
def test_neighbours_have_interleaved_bounds(relation):
    for largest, n in ((1, 5), (2, 4), (3, 2)):
        domain = Domain(largest, [n] if relation == "replace_one" else [n, n + 1])
        made = domain.bounds(relation, n + 2)
        for i, one in enumerate(made):
            for j in np.flatnonzero(domain.distances(i, relation)[:i] == 1).tolist():
                check_neighbours(one, made[j])
    rng = np.random.default_rng(1)
    for _ in range(600):
        n = int(rng.integers(1, 40))
        a = random_records(rng, n + 1)
        b = a[1:] if relation == "replace_one" else a
        check_neighbours(*(bounds_of(x, n + 1, relation) for x in (a[:-1], b)))


@each_relation
def test_the_order_of_the_records_and_the_sign_of_zero_do_not_matter(relation):
    rng = np.random.default_rng(2)
    records = random_records(rng, 60)
    made = bounds_of(records, 30, relation)
    shuffled = [records[i] for i in rng.permutation(60)]
    signs = [(label, -score if score == 0 else score) for label, score in records]
    for other in (shuffled, signs):
        assert_same(vars(bounds_of(other, 30, relation)), vars(made))


@each_relation
@pytest.mark.filterwarnings("error")
def test_without_a_pair_the_loss_is_a_half_and_one_record_can_make_it_anything(relation):
    none = [[]] if relation == "add_or_remove_one" else []
    for records in (*none, [(1, 0.5)], [(0, 0.5)] * 3, [(1, 0.5)] * 3):
        made = bounds_of(records, max(len(records), 1), relation)
        assert (made.lower[0], made.value, made.upper[0]) == (0.0, 0.5, 1.0)


@each_relation
def test_of_a_small_class_few_ranks_are_not_trivial_and_of_many_ranks_few_are_computed(relation):
    made = BOUNDS[relation](RankedScores.of(np.random.default_rng(4).random(3000), np.arange(3000) < 3), 100)
    assert made.ranks == 100
    assert made.lower[1] > 0
    assert made.upper[1] < 1
    assert not made.lower[2:].any()
    assert (made.upper[2:] == 1).all()
    assert not made.monotonic
    assert made.sensitivity in (1.0, None)


@each_relation
def test_so_many_records_that_floats_would_not_do_get_the_same_bounds(relation, monkeypatch):
    rng = np.random.default_rng(5)
    several = [random_records(rng, 50) for _ in range(30)]
    expected = [bounds_of(records, 20, relation) for records in several]
    monkeypatch.setattr("dp_metrics.sensitivity.score_bounds._MOST_FOR_FLOATS", 1)
    for records, made in zip(several, expected, strict=True):
        assert_same(vars(bounds_of(records, 20, relation)), vars(made))


def test_pairs_of_more_records_than_floats_can_count_are_pythons_integers():
    negatives = np.zeros(1)
    for positives, whole in ((1, np.int64), (2**26 - 1, np.int64), (2**26, object)):
        assert RankedScores(np.broadcast_to(0.0, positives), negatives).whole is whole
    assert 2**26 * 2**26 // 2 < 2**53  # twice the number of pairs of so many records


@loop_over("from_one", [False, True])
def test_a_quotient_of_integers_that_floats_do_not_hold_is_rounded_once(from_one):
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(200):
        pairs = int(rng.integers(2**60, 2**61))
        loss = int(rng.integers(2**59, 2**60))
        quotient = nearest(Fraction(pairs - loss if from_one else loss, pairs))
        row = 0, np.array([loss] * 2, dtype=object), np.array([pairs] * 2, dtype=object)
        assert _least(mock.Mock(return_value=[row]), None, 1, from_one=from_one) == [quotient]
        wrong += quotient != float(pairs - loss if from_one else loss) / float(pairs)
    assert wrong


@each_relation
def test_output_bounds_move_as_those_of_a_mean_of_the_smaller_class(relation):
    rng = np.random.default_rng(0)
    for n in [*range(2, 40), 200] * 3:
        labels = rng.random(n) < rng.choice([0.1, 0.3, 0.5])
        scores = np.round(rng.normal(size=n) + labels * rng.choice([-1, 0, 2]), rng.integers(0, 3))
        made = bounds_of(list(zip(labels, scores, strict=True)), n, relation)
        m, f, rank = max(min(labels.sum(), n - labels.sum()), 1), made.value, np.arange(1, n + 1)
        least = rank / m if relation == "replace_one" else 0 * rank
        for loss_, bounds in ((f, made.lower), (1 - f, 1 - made.upper)):
            assert (bounds >= np.maximum(loss_ - rank / m, 0) - 1e-12).all()
            assert (bounds <= loss_ * np.maximum(1 - least, 0) + 1e-12).all()
