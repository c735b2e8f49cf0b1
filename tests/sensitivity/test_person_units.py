"""What products of the units of a person may change by: what is released beside a table of units."""

import itertools
import math

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics.sensitivity.noisy_sums import product_rate


def persons(units):
    return [(x, y, units - x - y) for x in range(units + 1) for y in range(units + 1 - x)]


def products(one):
    x, y, z = one
    return x * y, x * z, y * z


@loop_over("units", [1, 2, 3, 4])
def test_the_loss_of_all_pairs_of_persons_is_epsilon(units):
    """Noise of the sum 0 has the law of independent noises, up to a factor that the counts do not change."""
    epsilon, worst = 1.3, 0.0
    rate, of_products = epsilon / (2.25 * units), product_rate(epsilon, units)
    for here, there in itertools.permutations(persons(units), 2):
        loss = rate * np.abs(np.subtract(here, there)).sum()
        loss += of_products * np.abs(np.subtract(products(here), products(there))).sum()
        worst = max(worst, loss)
    assert worst <= epsilon + 1e-12
    if units % 2 == 0:  # of an odd number no half is a whole number of units
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
