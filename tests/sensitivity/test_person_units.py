"""Units of persons of whom each counts once, and the exact privacy loss of what is released of them."""

import itertools
import math

import numpy as np
import pytest
from helpers import loop_over
from hypothesis import given, strategies as st

from dp_metrics.sensitivity.noisy_sums import person_units, product_rate, unit_rate


def test_records_of_a_person_weigh_the_same_up_to_a_public_sum():
    total, units = person_units((1, 2, 3))
    assert total == 6
    assert [one.tolist() for one in units] == [[6], [3, 3], [2, 2, 2]]
    total, units = person_units([*range(1, 30), 5])
    assert total == 1 << 20
    assert all(one.max() - one.min() <= 1 for one in units)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_every_person_has_all_units_and_each_record_some(sizes):
    total, units = person_units(iter(sizes))
    assert [one.size for one in units] == sizes
    assert all(one.sum() == total and one.min() >= 1 for one in units)


def persons(units):
    return [(x, y, units - x - y) for x in range(units + 1) for y in range(units + 1 - x)]


def products(one):
    x, y, z = one
    return x * y, x * z, y * z


@loop_over(("units", "with_products"), itertools.product([1, 2, 3, 4], [False, True]))
def test_the_loss_of_all_pairs_of_persons_is_epsilon(units, with_products):
    """Noise of the sum 0 has the law of independent noises, up to a factor that the counts do not change."""
    epsilon, worst = 1.3, 0.0
    rate, of_products = unit_rate(epsilon, units, with_products=with_products), product_rate(epsilon, units)
    for here, there in itertools.permutations(persons(units), 2):
        loss = rate * np.abs(np.subtract(here, there)).sum()
        if with_products:
            loss += of_products * np.abs(np.subtract(products(here), products(there))).sum()
        worst = max(worst, loss)
    assert worst <= epsilon + 1e-12
    if not with_products or units % 2 == 0:  # of an odd number no half is a whole number of units
        assert worst == pytest.approx(epsilon, abs=1e-12)


def test_no_more_than_the_stated_change_is_possible():
    """Over 12 units, where all halves and thirds are whole; and in real numbers, by a random search."""
    points = np.array(persons(12)) / 12
    more = np.random.default_rng(0).dirichlet([0.3] * 3, 300)
    for found in (points, more):
        both = np.hstack([found, np.array([products(one) for one in found])])
        change = np.abs(both[:, np.newaxis] - both).sum(axis=2).max()
        assert change <= 2.25 + 1e-12
    assert math.isclose(np.abs(np.subtract((1, 0, 0, 0, 0, 0), (0, 0.5, 0.5, 0, 0, 0.25))).sum(), 2.25)
