"""Errors of regression: options beside scikit-learn's, shares of epsilon, and how accurate they are."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import MAX, loop_over, seeded
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics.analysis.simulation import loss_output_bounds
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics._multioutput import r2_from_parts


def errors(n=500, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y, y + rng.normal(size=n)


WEIGHTED = {
    dp.private_mse: sk.mean_squared_error,
    dp.private_rmse: sk.root_mean_squared_error,
    dp.private_mae: sk.mean_absolute_error,
    dp.private_mean_absolute_percentage_error: sk.mean_absolute_percentage_error,
    partial(dp.private_mean_pinball_loss, alpha=0.2): partial(sk.mean_pinball_loss, alpha=0.2),
    dp.private_mean_squared_log_error: sk.mean_squared_log_error,
    dp.private_mean_poisson_deviance: sk.mean_poisson_deviance,
}


@loop_over("metric", WEIGHTED)
@loop_over("multioutput", ["uniform_average", "raw_values", [0.2, 0, 0.8]])
def test_weights_of_records_and_of_outputs_are_those_of_scikit_learn(metric, multioutput):
    rng = np.random.default_rng(0)
    (y, p), weights, options = rng.gamma(2, 1, (2, 300, 3)), rng.random(300), {"multioutput": multioutput}
    if metric is dp.private_mean_poisson_deviance:
        y, p, options = y[:, 0], p[:, 0], {}
    for given in (None, weights, weights[:, np.newaxis]):  # a column of weights counts as a vector
        expected = WEIGHTED[metric](y, p, sample_weight=None if given is None else weights, **options)
        released = metric(y, p, epsilon=1e9, sample_weight=given, random_state=seeded(), **options)
        np.testing.assert_allclose(released, expected, rtol=1e-5)
        assert type(released) is (np.ndarray if options.get("multioutput") == "raw_values" else float)


class Spy(dp.Hazard):
    """Keeps the epsilon of each draw."""

    def release(self, output_bounds, epsilon, rng=None):
        self.seen.append(epsilon)
        return super().release(output_bounds, epsilon, rng)


def epsilons_of(metric, *data, **options):
    Spy.seen = []
    metric(*data, mechanism=Spy(), **options)
    return Spy.seen


def test_several_numbers_split_epsilon_exactly_and_pay_once():
    y, accountant = np.arange(30.0).reshape(10, 3), dp.PrivacyAccountant(1)
    of = partial(epsilons_of, dp.private_mse, y, y, multioutput="raw_values")
    assert of(epsilon=0.1, accountant=accountant) == [Fraction(1, 30)] * 3
    assert [spend.epsilon for spend in accountant.history] == [0.1]
    of_parts = epsilons_of(dp.private_r2_score, y[:, :2], y[:, :2], epsilon=0.3, error_share=0.7)
    assert of_parts == [Fraction(21, 200)] * 2 + [Fraction(9, 200)] * 2


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
@pytest.mark.parametrize(
    "metric", [dp.private_mse, pytest.param(dp.private_r2_score, marks=pytest.mark.slow)]
)
@loop_over("mechanism", MECHANISMS)
@loop_over("is_seeded", [False, True])
def test_every_output_has_a_draw_of_its_own(metric, mechanism, is_seeded):
    """Two equal columns give one output with a probability below 0.1 (seen: up to 0.05, from 600 calls each).

    A right sampler then fails each unseeded case with a probability below 1e-11.
    """
    data = [np.column_stack([column, column]) for column in errors(100)]
    options = {"epsilon": 4.0, "bounds": (-4, 4), "multioutput": "raw_values", "mechanism": mechanism}
    releases = [metric(*data, random_state=seed if is_seeded else None, **options) for seed in range(50)]
    assert sum(first != second for first, second in releases) > 25


def test_the_default_is_the_most_accurate_on_skewed_losses():
    """Section 6 of the theory, from the exact laws; the sizes average out where candidates happen to lie."""
    losses = np.minimum(np.exp(np.random.default_rng(0).normal(size=1000)), 20.0)
    mechanisms = [dp.Hazard(), dp.AboveThreshold(), dp.AboveThreshold.paper(), dp.InverseSensitivity()]
    errors_of = np.zeros(len(mechanisms))
    for size in 1000 * np.geomspace(1, 1.03, 4):
        for i, mechanism in enumerate(mechanisms):
            bounds = loss_output_bounds(size * losses, max_loss=20 * size, mechanism=mechanism, epsilon=1.0)
            law = mechanism.output_distribution(bounds, 1.0)
            errors_of[i] += law.mean_absolute_error(bounds.value) / bounds.value / 4
    assert (errors_of[0] < errors_of[1:] / 1.2).all()
    assert errors_of[0] < losses.std() / losses.mean() / math.sqrt(1000)  # the sampling error


@loop_over("mechanism", MECHANISMS)
def test_bounds_so_close_that_their_square_underflows_leave_only_zero(mechanism):
    settings = {"bounds": (0, 1e-200), "epsilon": 1.0, "mechanism": mechanism}
    assert dp.private_mse([0.0, 0.0], [0.0, 1.0], **settings) == 0.0


def test_a_mean_loss_is_what_the_other_metrics_are_made_of():
    y, p = errors(300)
    for loss, metric in (((p - y) ** 2, dp.private_mse), (np.abs(p - y), dp.private_mae)):
        for mechanism in (dp.Hazard(resolution=0.01), "above_threshold"):
            released = metric(y, p, epsilon=1.0, mechanism=mechanism, random_state=seeded())
            settings = {"epsilon": 1.0, "mechanism": mechanism, "random_state": seeded()}
            assert dp.private_mean_loss(loss, **settings) == released


def test_r2_is_always_finite():
    assert r2_from_parts(0.0, 0.0) == 1.0
    assert r2_from_parts(1.0, 0.0) == 0.0
    assert r2_from_parts(MAX, 5e-324) == -MAX
    rng = np.random.default_rng(0)
    for n in (1, 2, 50):
        for y in (np.zeros(n), np.full(n, 1e308), rng.normal(size=n)):
            pair = np.column_stack([y, -y])
            for multioutput in ("uniform_average", "raw_values"):
                r2 = dp.private_r2_score(pair, pair[::-1], epsilon=1e-3, multioutput=multioutput)
                assert np.isfinite(r2).all()
                assert np.max(r2) <= 1
