"""Where to leave the default: few records at a public limit that make most of the result, by exact laws.

The docstrings of `bounds`, `mechanism` and `expected_error` say so, and the page of accuracy.
"""

import math

import numpy as np
import pytest
from helpers import slow_but

from dp_metrics import expected_error, private_log_loss, private_mean_loss, private_variance

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


def test_ten_certain_misses_cost_a_log_loss_what_its_documentation_says():
    rng = np.random.default_rng(0)
    proba = rng.beta(8, 1.5, 1000)
    true = (rng.random(1000) < proba).astype(int)
    proba[:10] = 1.0 - true[:10]
    capped = math.log(1000)

    def error(mechanism, max_loss=None):
        return expected_error(
            private_log_loss, true, proba, epsilon=1.0, mechanism=mechanism, max_loss=max_loss
        ).mean_absolute

    found = [np.mean(np.minimum(-np.log(np.clip(np.where(true, proba, 1 - proba), 2.2e-16, 1)), 36.04))]
    found += [error("adaptive"), error("geometric"), error("adaptive", capped)]
    said = [0.75, 0.28, 0.036, 0.013]
    assert found == pytest.approx(said, rel=0.15)
    text = " ".join(private_log_loss.__doc__.split())
    assert 'the loss is {}; the default errs by {}, "geometric" by {}.'.format(*said) in text
    assert f"the default errs by {said[-1]}." in text
