"""Units of persons of whom each counts once, and the exact privacy loss of what is released of them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_metrics.sensitivity.person_units import person_units, product_rate, unit_rate


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


def loss_of_table(here, there, rate, reach=3):
    """Return the largest log ratio of laws of noise of the sum 0, over all outcomes near these counts.

    The probability is that of independent noises, up to a factor which does not depend on the counts.
    """
    low = [min(pair) - reach for pair in zip(here, there, strict=True)]
    high = [max(pair) + reach for pair in zip(here, there, strict=True)]
    found = 0.0
    for x, y in itertools.product(*(range(a, b + 1) for a, b in zip(low[:2], high[:2], strict=True))):
        outcome = x, y, sum(here) - x - y
        away = [sum(abs(o - c) for o, c in zip(outcome, of, strict=True)) for of in (here, there)]
        found = max(found, rate * (away[1] - away[0]))
    return found


@pytest.mark.parametrize("units", [1, 2, 3, 4])
@pytest.mark.parametrize("with_products", [False, True])
def test_the_exact_loss_of_the_joint_law_is_epsilon(units, with_products):
    """Of all pairs of persons. Sums of products have independent noise, whose losses add up."""
    epsilon, worst = 1.3, 0.0
    rate, of_products = unit_rate(epsilon, units, with_products=with_products), product_rate(epsilon, units)
    for here, there in itertools.permutations(persons(units), 2):
        loss = loss_of_table(here, there, rate)
        if with_products:
            pairs = zip(products(here), products(there), strict=True)
            loss += of_products * sum(abs(a - b) for a, b in pairs)
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
