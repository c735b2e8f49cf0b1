"""Where to leave the default: few records at a public limit that make most of the result, by exact laws.

The docstrings of `bounds`, `mechanism` and `expected_error` say so, and the page of accuracy.
"""

import numpy as np
import pytest
from helpers import slow_but

from dp_metrics import expected_error, private_mean_loss, private_variance

CASES = {"mean": (private_mean_loss, "max_loss"), "variance": (private_variance, "bounds")}
SETTINGS = [(1_000, 1.0), (10_000, 0.3), (30_000, 4.0), (1_000_000, 1.0)]


def ratio(case, n, epsilon, records, width=1.0):
    """Return the error of the default / that of "geometric", with so many records at the bound 1."""
    metric, option = CASES[case]
    x = np.random.default_rng(0).uniform(0, 0.002, n)
    x[: round(records / epsilon)] = 1.0
    limit = width if option == "max_loss" else (0.0, width)
    default, geometric = (
        expected_error(metric, x, epsilon=epsilon, mechanism=mechanism, **{option: limit}).mean_absolute
        for mechanism in (None, "geometric")
    )
    return default / geometric


@pytest.mark.parametrize("setting", slow_but(SETTINGS[:2], SETTINGS))
@pytest.mark.parametrize("case", CASES)
def test_between_3_and_60_over_epsilon_records_at_a_bound_geometric_is_better(case, setting):
    n, epsilon = setting
    found = {k: ratio(case, n, epsilon, k) for k in (3, 10, 30, 45, 60)}
    assert found[3] > 2.5
    assert found[10] > 9
    assert found[30] > 20
    assert max(found.values()) < 110


@pytest.mark.parametrize("setting", slow_but(SETTINGS[:2], SETTINGS))
@pytest.mark.parametrize("case", CASES)
def test_with_more_or_fewer_records_there_hardly_anything_is_lost(case, setting):
    assert ratio(case, *setting, 1.0) < 1.5
    if setting[0] * setting[1] > 2_000:
        assert ratio(case, *setting, 150.0) < 2.1


@pytest.mark.parametrize("case", CASES)
def test_with_bounds_a_hundred_times_too_wide_the_default_is_better(case):
    for records in (3.0, 10.0, 30.0):
        assert ratio(case, 10_000, 1.0, records, width=100.0) < 1
