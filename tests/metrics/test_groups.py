"""groups: one person with many records is protected as a whole."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from helpers import MAX, check_neighbours, hostile_losses, nearest, weighted_bounds
from hypothesis import given
from hypothesis import strategies as st

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.auditing import metric_loss
from dp_metrics.inputs.options import check_groups


def exact_group_sums(values, groups):
    return [
        math.fsum(v for v, g in zip(values, groups, strict=True) if g == group)
        for group in sorted(set(groups))
    ]


@pytest.mark.parametrize("groups", [(0, 1, 0, 1, 1), (0, 0, 0, 0, 0), (0, 1, 2, 3, 4), (0, 0, 1, 2, 2)])
def test_bounds_are_the_extremes_over_all_sets_of_groups_rounded_once(groups):
    cap = 0.7
    for losses in itertools.product((0.0, 0.1, 0.7), repeat=5):
        terms = [Fraction(s) for s in exact_group_sums(losses, groups)]
        limits = [Fraction(s) for s in exact_group_sums([cap] * 5, groups)]
        bounds = weighted_bounds(losses, None, cap, groups)
        assert bounds.n == len(terms) == bounds.ranks
        assert bounds.value == nearest(sum(terms) / 5)
        for rank in range(1, len(terms) + 1):
            changed = [set(c) for c in itertools.combinations(range(len(terms)), rank)]
            low = min(sum(t for i, t in enumerate(terms) if i not in c) for c in changed)
            high = max(sum(limits[i] if i in c else t for i, t in enumerate(terms)) for c in changed)
            assert bounds.lower[rank - 1] == nearest(low / 5)
            assert bounds.upper[rank - 1] == nearest(high / 5)


@given(
    losses=st.lists(hostile_losses, min_size=2, max_size=9),
    others=st.lists(hostile_losses, min_size=9, max_size=9),
    weights=st.none() | st.lists(hostile_losses, min_size=9, max_size=9).filter(lambda w: w[0] > 0),
    cap=st.sampled_from([None, 0.1, 3.0, 1e308, MAX]),
    persons=st.integers(1, 4),
)
def test_neighbours_that_differ_in_all_records_of_one_group(losses, others, weights, cap, persons):
    n = len(losses)
    groups = (np.arange(n) * 7 % persons).tolist()
    changed = [other if g == 0 else loss for loss, other, g in zip(losses, others, groups, strict=False)]
    weights = None if weights is None else weights[:n]
    check_neighbours(
        weighted_bounds(losses, weights, cap, groups), weighted_bounds(changed, weights, cap, groups)
    )


def test_without_groups_the_same_change_costs_more():
    rng = np.random.default_rng(0)
    x = rng.random(30)
    y = x.copy()
    y[:10] = 1.0
    groups = np.repeat([0, 1, 2], 10)
    options = {"epsilon": 1.0, "max_loss": 1.0}
    assert metric_loss(dp.private_mean_loss, [x], [y], **options) > 1.5
    assert metric_loss(dp.private_mean_loss, [x], [y], groups=groups, **options) <= 1 + 1e-9


@pytest.mark.parametrize(
    "mechanism", [dp.Hazard(), dp.AboveThreshold(beta=3.0), "piecewise_laplace", "laplace"]
)
def test_the_exact_privacy_loss_is_at_most_epsilon(mechanism):
    rng = np.random.default_rng(0)
    worst = 0.0
    for persons in (1, 2, 5):
        groups = np.concatenate([np.arange(persons), rng.integers(0, persons, 12)])
        for _ in range(8):
            x = np.minimum(rng.lognormal(0, 1, groups.size), 10.0)
            y = np.where(groups == 0, rng.choice([0.0, 10.0]), x)
            options = {"groups": groups, "max_loss": 10.0, "mechanism": mechanism}
            worst = max(worst, metric_loss(dp.private_mean_loss, [x], [y], epsilon=1.0, **options))
    assert 0.5 < worst <= 1 + 1e-9


def test_a_groups_sum_depends_on_its_own_records_only_and_not_on_their_order():
    rng = np.random.default_rng(0)
    losses = rng.lognormal(0, 5, 3000)
    groups = rng.integers(0, 400, 3000)
    expected = weighted_bounds(losses, None, None, groups)
    order = rng.permutation(3000)
    shuffled = weighted_bounds(losses[order], None, None, groups[order])
    assert shuffled.value == expected.value
    np.testing.assert_array_equal(shuffled.lower, expected.lower)


@pytest.mark.parametrize(
    "labels",
    [
        [3, 3, 1, 2],
        ["b", "b", "a", "c"],
        np.array(["b", "b", "a", "c"], dtype=object),
        [3.5, 3.5, 1.0, 2.0],
        [("x", 1), ("x", 1), ("y", 1), ("x", 2)],
        pd.Series(["b", "b", "a", "c"], dtype="category"),
        pd.Series(pd.to_datetime([9, 9, 1, 5])),
        np.array([[3], [3], [1], [2]]),
    ],
    ids=str,
)
def test_labels_of_any_kind(labels):
    if isinstance(labels, list) and isinstance(labels[0], tuple):
        array = np.empty(4, dtype=object)
        array[:] = labels
        labels = array
    released = dp.private_mean_loss([1.0, 2, 3, 4], epsilon=1.0, groups=labels, random_state=SeededEntropy(0))
    expected = dp.private_mean_loss(
        [1.0, 2, 3, 4], epsilon=1.0, groups=[0, 0, 1, 2], random_state=SeededEntropy(0)
    )
    assert released == expected
    assert len(set(check_groups(labels).tolist())) == 3


def test_one_group_of_all_records():
    released = dp.private_mae([1.0] * 500, [2.0] * 500, epsilon=1e9, groups=["one"] * 500)
    assert released == pytest.approx(1.0, rel=1e-3)


def test_many_records_of_many_persons():
    rng = np.random.default_rng(0)
    n = 200_000
    losses, groups = rng.exponential(size=n), rng.integers(0, n // 5, n)
    released = dp.private_mean_loss(losses, epsilon=1.0, groups=groups)
    assert released == pytest.approx(losses.mean(), rel=0.2)
