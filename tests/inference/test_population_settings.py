"""What the functions share that spend for an interval about all people."""

import inspect

import numpy as np
import pandas as pd
import pytest
from helpers import NoEntropy, loop_over

import dp_metrics as dp

CALLS = {
    "mean": (dp.private_mean_interval, {"max_loss": 2.0}),
    "mean, private cap": (dp.private_mean_interval, {"cap": "private"}),
    "quantile": (dp.private_quantile_interval, {"q": 0.5}),
}
LOSSES = [0.5 + place / 300 for place in range(300)]
each_call = loop_over(("function", "options"), CALLS.values())


@each_call
def test_what_is_spent_is_recorded_before_anything_is_drawn(function, options):
    accountant = dp.PrivacyAccountant(1)
    with pytest.raises(NoEntropy.Drawn):
        function(LOSSES, epsilon=1.0, accountant=accountant, random_state=NoEntropy(), **options)
    assert [spend.spend_name for spend in accountant.history] == [function.__name__]
    assert accountant.remaining == 0
    with pytest.raises(dp.PrivacyBudgetError):
        function(LOSSES, epsilon=1.0, accountant=accountant, random_state=NoEntropy(), **options)


@each_call
def test_a_seed_warns_and_reproduces(function, options):
    with pytest.warns(dp.SeededReleaseWarning):
        first = function(LOSSES, epsilon=2.0, random_state=4, **options)
    with pytest.warns(dp.SeededReleaseWarning):
        assert function(LOSSES, epsilon=2.0, random_state=4, **options) == first
    assert len({function(LOSSES, epsilon=2.0, **options).lower for _ in range(8)}) > 1


@each_call
def test_losses_come_in_any_form_and_stay_as_they_are(function, options):
    array = np.array(LOSSES, dtype=np.float32)
    array.setflags(write=False)
    for losses in (array, pd.Series(array), array[:, np.newaxis], tuple(LOSSES)):
        interval = function(losses, epsilon=2.0, **options)
        assert 0 <= interval.lower <= interval.upper
        assert interval.confidence == 0.95
        assert interval.about.endswith("from whom the records were drawn independently.")
    np.testing.assert_array_equal(array, np.array(LOSSES, dtype=np.float32))


@loop_over("function", [dp.private_mean_interval, dp.private_quantile_interval])
def test_both_take_the_same_settings(function):
    tail = ["sample_weight", "groups", "neighboring", "accountant", "random_state", "spend_name"]
    assert list(inspect.signature(function).parameters)[-6:] == tail
