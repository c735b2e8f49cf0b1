"""What `with_result` takes, and that it calls what the metric calls."""

import functools
import inspect
import pickle

import numpy as np
import pytest
from helpers import NoEntropy, assert_same, seeded

import dp_metrics as dp
from dp_metrics import distributed
from dp_metrics.metrics import FUNCTIONS, METRICS

X = np.linspace(0.0, 1.0, 40)


@pytest.mark.parametrize("name", METRICS)
def test_positions_defaults_and_errors_are_those_of_the_metric(name):
    function, row = FUNCTIONS[name], METRICS[name]
    full = dp.with_result(function)
    data, options = row.from_unit(X), {**row.required, **(row.limit or {})}
    called = {"epsilon": 1.0, **options}
    result = full(*data, **called, random_state=seeded())
    named = full(**dict(zip(row.data, data, strict=True)), **called, random_state=seeded())
    assert_same(named.to_dict(), result.to_dict())
    assert_same(function(*data, **called, random_state=seeded()), result.value)
    with pytest.raises(TypeError, match=rf"{name}\(\) missing a required .*argument: 'epsilon'"):
        full(*data, **options)
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'return_result'"):
        full(*data, **called, return_result=True)


def test_epsilon_is_spent_once():
    accountant = dp.PrivacyAccountant(1.0)
    result = dp.with_result(dp.private_mae)(X, X, epsilon=0.25, accountant=accountant, spend_name="once")
    assert [(spend.epsilon, spend.spend_name) for spend in accountant.history] == [(0.25, "once")]
    assert (result.epsilon, result.spend_name) == (0.25, "once")
    with pytest.raises(dp.PrivacyBudgetError):
        dp.with_result(dp.private_mae)(X, X, epsilon=1.0, accountant=accountant, random_state=NoEntropy())


def test_methods_and_partials_and_pickles():
    summaries = dp.LossSummary(dp.private_mae).update(X, 0 * X), dp.VarianceSummary().update(X)
    for summary in summaries:
        result = dp.with_result(summary.release)(1.0, random_state=seeded())
        assert result.value == summary.release(1.0, random_state=seeded())
        assert result.noise_interval()[0] <= result.value
    bounded = functools.partial(functools.partial(dp.private_mse, bounds=(0, 1)), X, epsilon=1.0)
    for made in (dp.with_result(bounded), pickle.loads(pickle.dumps(dp.with_result(bounded)))):
        assert made(0 * X, random_state=seeded()).value == bounded(0 * X, random_state=seeded())


def test_every_function_that_is_public_and_releases_a_metric_is_served():
    for module in (dp, distributed):
        names = {name.removeprefix("private_") for name in METRICS} & {
            name.removeprefix("private_") for name in module.__all__
        }
        assert len(names) > 30
        for name in names:
            assert inspect.isroutine(getattr(module, f"private_{name}"))
            dp.with_result(getattr(module, f"private_{name}"))
