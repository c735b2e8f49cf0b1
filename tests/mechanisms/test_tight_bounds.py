"""Where to leave the default: few records at a public limit that make most of the result, by exact laws.

The docstrings of `bounds`, `mechanism` and `plan_release` say so, and the page of accuracy.
"""

import math

import numpy as np
import pytest
from helpers import slow_but

from dp_metrics import plan_release, private_log_loss, private_mean_loss, private_variance

CASES = {
    "mean": (private_mean_loss, {"max_loss": 1.0}),
    "variance": (private_variance, {"bounds": (0.0, 1.0)}),
}
SETTINGS = [(1_000, 1.0), (10_000, 0.3), (30_000, 4.0), (1_000_000, 1.0)]


def ratios(case, n, epsilon, several):
    """Return the error of the default / that of "geometric", for so many records at the bound 1."""
    metric, limit = CASES[case]
    x, found = np.random.default_rng(0).uniform(0, 0.002, n), {}
    for records in several:
        x[: round(records / epsilon)] = 1.0
        errors = [
            plan_release(metric, guess=(x,), epsilon=epsilon, mechanism=mechanism, **limit).error
            for mechanism in ("adaptive", "geometric")
        ]
        found[records] = errors[0] / errors[1]
    return found


@pytest.mark.gate
@pytest.mark.parametrize("setting", slow_but(SETTINGS[1:2], SETTINGS))
@pytest.mark.parametrize("case", CASES)
def test_between_3_and_60_over_epsilon_records_at_a_bound_geometric_is_better(case, setting):
    found = ratios(case, *setting, (1, 3, 10, 30, 45, 60, 150))
    assert found[3] > 2.5
    assert found[10] > 9
    assert found[30] > 20
    assert max(found.values()) < 110
    # with more or fewer records there hardly anything is lost
    assert found[1] < 1.5
    assert found[150] < 2.1 or setting[0] * setting[1] < 2_000


def test_ten_certain_misses_cost_a_log_loss_what_its_documentation_says():
    rng = np.random.default_rng(0)
    proba = rng.beta(8, 1.5, 1000)
    true = (rng.random(1000) < proba).astype(int)
    proba[:10] = 1.0 - true[:10]
    settings = [("adaptive", None), ("geometric", None), ("adaptive", math.log(1000))]
    found = [np.mean(np.minimum(-np.log(np.clip(np.where(true, proba, 1 - proba), 2.2e-16, 1)), 36.04))]
    found += [
        plan_release(private_log_loss, guess=(true, proba), epsilon=1.0, mechanism=by, max_loss=cap).error
        for by, cap in settings
    ]
    said = [0.75, 0.28, 0.036, 0.013]
    assert found == pytest.approx(said, rel=0.15)
    text = " ".join(private_log_loss.__doc__.split())
    assert 'the loss is {}; the default errs by {}, "geometric" by {}.'.format(*said) in text
    assert f"the default errs by {said[-1]}." in text
