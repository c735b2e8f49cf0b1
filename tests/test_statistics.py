import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from helpers import MAX, NoEntropy

from dp_metrics import private_variance
from dp_metrics._random import SeededEntropy

EXACT = {"epsilon": 1e11}
X = np.random.default_rng(0).gamma(2.0, size=400)


def release(x, **settings):
    return private_variance(x, **{"random_state": SeededEntropy(0), **settings})


@pytest.mark.parametrize("offset", [0.0, -3.0, 1e6])
def test_it_is_the_population_variance_also_far_from_zero(offset):
    assert release(X + offset, **EXACT) == pytest.approx(np.var(X + offset), rel=1e-6)


@pytest.mark.parametrize("offset", [1e12, -1e15])
def test_it_does_not_cancel(offset):
    x = np.arange(100) % 7 + offset
    assert release(x, **EXACT) == pytest.approx(np.var(np.arange(100) % 7), rel=1e-6)


@pytest.mark.parametrize("ddof", [0, 1, 1.5, -2, np.float64(1.0), np.int64(1), Fraction(1, 2)])
def test_degrees_of_freedom_rescale_the_release(ddof):
    factor = X.size / (X.size - float(ddof))
    assert release(X, ddof=ddof, epsilon=1.0) == pytest.approx(factor * release(X, epsilon=1.0), rel=1e-12)
    assert release(X, ddof=ddof, **EXACT) == pytest.approx(np.var(X) * factor, rel=1e-6)
    assert type(release(X, ddof=ddof, epsilon=1.0)) is float


@pytest.mark.parametrize(
    "ddof",
    [
        400,
        401,
        400.0,
        math.nan,
        math.inf,
        -math.inf,
        "1",
        None,
        True,
        [1],
        1j,
        10**400,
        -(10**400),
        Decimal(1),
    ],
)
def test_other_degrees_of_freedom_are_refused_before_anything_is_drawn(ddof):
    with pytest.raises(ValueError, match="ddof"):
        release(X, ddof=ddof, epsilon=1.0, random_state=NoEntropy())


def test_values_are_clipped_into_the_bounds_and_the_release_stays_within_their_variance():
    low, high = 0.5, 2.5
    assert release(X, bounds=(low, high), **EXACT) == pytest.approx(np.var(np.clip(X, low, high)), rel=1e-6)
    assert (
        max(release(X, bounds=(low, high), epsilon=1e-6, random_state=SeededEntropy(i)) for i in range(30))
        <= 1.0
    )


def test_shifting_the_data_and_their_bounds_shifts_nothing_in_the_release():
    x = np.round(X * 64) / 64
    a = release(x, bounds=(0.0, 8.0), epsilon=1.0)
    assert release(x + 1024, bounds=(1024.0, 1032.0), epsilon=1.0) == a
    assert release(1024 - x, bounds=(1016.0, 1024.0), epsilon=1.0) == a


@pytest.mark.parametrize(
    "mechanism", ["hazard", "above_threshold", "inverse_sensitivity", "piecewise_laplace", "laplace"]
)
def test_one_record_has_no_variance_and_constants_have_little(mechanism):
    for x in ([3.0], [3.0] * 500):
        released = release(x, bounds=(0.0, 10.0), epsilon=5.0, mechanism=mechanism)
        assert 0 <= released <= 25
        if mechanism in ("hazard", "above_threshold"):
            assert release(x, epsilon=5.0, mechanism=mechanism) < 1e-2


def test_values_whose_squares_overflow_saturate():
    assert release([MAX, -MAX] * 10, epsilon=1e6) == MAX
    assert release([MAX, -MAX] * 10, epsilon=1e6, ddof=1) == MAX


def test_many_ranks_are_limited_to_those_that_can_be_computed():
    x = np.random.default_rng(1).normal(size=9000)
    released = [release(x, epsilon=0.01, random_state=SeededEntropy(i)) for i in range(3)]
    assert all(0 <= r <= MAX for r in released)
