"""Whoever types a wrong name is told the one that was meant."""

import pytest

import dp_metrics as dp
from dp_metrics.inputs.names import did_you_mean

Y = [0.0, 1.0] * 100


def test_the_closest_name_is_offered_and_no_far_one():
    known = ["hazard", "laplace", "geometric"]
    assert did_you_mean("Laplase", known) == " Did you mean 'laplace'?"
    assert did_you_mean("hazard_", known) == " Did you mean 'hazard'?"
    for far in ("gauss", "", 3, None, ["hazard"]):
        assert did_you_mean(far, known) == ""
    assert did_you_mean("hazard", []) == ""


@pytest.mark.parametrize("name", ["", "_", "xyzzy"])
def test_what_is_like_no_name_is_refused_without_a_guess(name):
    with pytest.raises(ValueError, match=r"There is no metric .*`dp-metrics metrics` lists all") as caught:
        dp.get_private_scorer(name, epsilon=1.0)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: dp.get_private_scorer("neg_private_r2_score", epsilon=1.0), "private_r2_score"),
        (lambda: dp.make_private_scorer("f1_marco", epsilon=1.0), "f1_macro"),
        (lambda: dp.noise_interval(0.5, metric="acuracy", epsilon=1.0, n=9), "accuracy"),
        (lambda: dp.noise_interval(0.5, metric="private_acuracy_score", epsilon=1.0, n=9), "private_acc"),
        (
            lambda: dp.noise_interval(0.5, metric="mean_sqared_error", epsilon=1.0, n=100),
            "mean_squared_error",
        ),
        (lambda: dp.private_compare(Y, Y, Y, loss="zero-one", epsilon=1.0), "zero_one"),
        (lambda: dp.private_compare(Y, Y, Y, loss="logloss", epsilon=1.0), "log_loss"),
        (lambda: dp.private_compare(Y, Y, Y, loss="mean_sqared_error", epsilon=1.0), "mean_squared_error"),
        (lambda: dp.expected_error("private_msee", Y, Y, epsilon=1.0), "private_mse"),
        (lambda: dp.private_mse(Y, Y, epsilon=1.0, mechanism="adaptiv"), "adaptive"),
        (lambda: dp.private_mse(Y, Y, epsilon=1.0, mechanism="inverse-sensitivity"), "inverse_sensitivity"),
        (lambda: dp.private_mse(Y, Y, epsilon=1.0, neighboring="replace-one"), "replace_one"),
        (lambda: dp.private_mse(Y, Y, epsilon=1.0, neighboring="add_remove_one"), "add_or_remove_one"),
    ],
)
def test_a_wrong_name_of_a_metric_or_an_option(call, meant):
    with pytest.raises((TypeError, ValueError), match=f"Did you mean '{meant}"):
        call()
