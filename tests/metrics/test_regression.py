import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import MAX
from sklearn import metrics

import dp_metrics as dp
from dp_metrics import (
    AboveThreshold,
    Hazard,
    InverseSensitivity,
    private_mae,
    private_mean_loss,
    private_mse,
    private_r2_score,
)
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis.simulation import loss_output_bounds
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics._multioutput import r2_from_parts

EXACT = {"epsilon": 1e11}

PAIRS = [(private_mse, metrics.mean_squared_error), (private_mae, metrics.mean_absolute_error)]


def errors(n=500, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y, y + rng.normal(size=n)


@pytest.mark.parametrize(("private", "public"), PAIRS)
@pytest.mark.parametrize("outputs", [1, 2, 7])
def test_outputs_are_averaged_uniformly(private, public, outputs):
    rng = np.random.default_rng(outputs)
    y, p = rng.normal(size=(2, 50, outputs)) * np.arange(1, outputs + 1)
    released = private(y, p, random_state=SeededEntropy(0), **EXACT)
    assert released == pytest.approx(public(y, p, multioutput="uniform_average"), rel=1e-6)


@pytest.mark.parametrize(("private", "public"), PAIRS)
def test_targets_and_predictions_are_both_clipped_into_the_bounds(private, public):
    y, p = errors()
    low, high = -0.5, 0.75
    released = private(y, p, bounds=(low, high), random_state=SeededEntropy(0), **EXACT)
    assert released == pytest.approx(public(np.clip(y, low, high), np.clip(p, low, high)), rel=1e-6)


@pytest.mark.parametrize(("private", "width"), [(private_mse, 1.25**2), (private_mae, 1.25)])
def test_the_public_limit_is_the_largest_possible_error(private, width):
    y, p = np.full(200, -10.0), np.full(200, 10.0)
    for epsilon in (1e-9, 1e11):
        released = [
            private(y, p, bounds=(-0.5, 0.75), epsilon=epsilon, random_state=SeededEntropy(i))
            for i in range(20)
        ]
        assert max(released) <= width
    assert released == pytest.approx([width] * 20)


@pytest.mark.parametrize(("private", "public"), PAIRS)
def test_adding_a_constant_to_both_changes_no_loss_by_more_than_rounding(private, public):
    y, p = errors(100)
    assert private(y + 1e6, p + 1e6, random_state=SeededEntropy(0), **EXACT) == pytest.approx(
        public(y, p), rel=1e-6
    )


@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(e, marks=pytest.mark.slow) for e in (0.1, 0.5, 2.0))]
)
def test_the_default_is_the_most_accurate_on_skewed_losses(epsilon):
    """Section 6 of the theory, from the exact laws; the sizes average out where candidates happen to lie."""
    losses = np.minimum(np.exp(np.random.default_rng(0).normal(size=1000)), 20.0)
    mechanisms = [Hazard(), AboveThreshold(), AboveThreshold.paper(), InverseSensitivity()]
    errors_of = np.zeros(len(mechanisms))
    for size in 1000 * np.geomspace(1, 1.03, 4):
        for i, mechanism in enumerate(mechanisms):
            bounds = loss_output_bounds(
                size * losses, max_loss=20 * size, mechanism=mechanism, epsilon=epsilon
            )
            law = mechanism.output_distribution(bounds, epsilon)
            errors_of[i] += law.mean_absolute_error(bounds.value) / bounds.value / 4
    assert (errors_of[0] < errors_of[1:] / 1.2).all()
    if epsilon >= 0.5:
        assert errors_of[0] < losses.std() / losses.mean() / math.sqrt(1000)  # the sampling error


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bounds_so_close_that_their_square_underflows_leave_only_zero(mechanism):
    released = private_mse([0.0, 0.0], [0.0, 1.0], bounds=(0, 1e-200), epsilon=1.0, mechanism=mechanism)
    assert released == 0.0


def test_a_mean_loss_is_what_the_other_metrics_are_made_of():
    y, p = errors(300)
    for loss, private in (((p - y) ** 2, private_mse), (np.abs(p - y), private_mae)):
        for mechanism in (Hazard(resolution=0.01), "above_threshold"):
            a = private_mean_loss(loss, epsilon=1.0, mechanism=mechanism, random_state=SeededEntropy(1))
            b = private(y, p, epsilon=1.0, mechanism=mechanism, random_state=SeededEntropy(1))
            assert a == b


def test_losses_are_clipped_to_their_public_cap():
    loss = np.random.default_rng(0).exponential(size=400)
    released = private_mean_loss(loss, max_loss=0.8, random_state=SeededEntropy(0), **EXACT)
    assert released == pytest.approx(np.minimum(loss, 0.8).mean(), rel=1e-6)


def test_one_huge_record_cannot_move_a_capped_mean_far():
    loss = np.append(np.ones(999), MAX)
    released = private_mean_loss(loss, max_loss=2.0, random_state=SeededEntropy(0), **EXACT)
    assert released == pytest.approx(1.001, rel=1e-6)


def test_many_records_are_handled_in_blocks_without_a_trace():
    y, p = errors(40_000)
    whole = private_mse(y, p, random_state=SeededEntropy(2), epsilon=1.0)
    assert private_mse(y[::-1], p[::-1], random_state=SeededEntropy(2), epsilon=1.0) == whole
    assert whole == pytest.approx(metrics.mean_squared_error(y, p), rel=0.01)


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
@pytest.mark.parametrize("metric", [private_mse, pytest.param(private_r2_score, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("seeded", [False, True])
def test_every_output_has_a_draw_of_its_own(metric, mechanism, seeded):
    """Two equal columns give one output with a probability below 0.1 (seen: up to 0.05, from 600 calls each).

    A right sampler then fails each unseeded case with a probability below 1e-11.
    """
    y, p = (np.column_stack([column, column]) for column in errors(100))
    releases = [
        metric(
            y,
            p,
            epsilon=4.0,
            bounds=(-4, 4),
            multioutput="raw_values",
            mechanism=mechanism,
            random_state=seed if seeded else None,
        )
        for seed in range(50)
    ]
    assert sum(first != second for first, second in releases) > 25


def test_r2_is_always_finite():
    assert r2_from_parts(0.0, 0.0) == 1.0
    assert r2_from_parts(1.0, 0.0) == 0.0
    assert r2_from_parts(MAX, 5e-324) == -MAX
    rng = np.random.default_rng(0)
    for n in (1, 2, 50):
        for y in (np.zeros(n), np.full(n, 1e308), rng.normal(size=n)):
            for multioutput in ("uniform_average", "raw_values"):
                pair = np.column_stack([y, -y])
                r2 = dp.private_r2_score(pair, pair[::-1], epsilon=1e-3, multioutput=multioutput)
                assert np.isfinite(r2).all()
                assert np.max(r2) <= 1


def test_r2_splits_epsilon_as_it_is_told():
    seen = []

    class Spy(dp.Hazard):
        def release(self, output_bounds, epsilon, rng=None):
            seen.append(epsilon)
            return super().release(output_bounds, epsilon, rng)

    y = np.arange(20.0).reshape(10, 2)
    dp.private_r2_score(y, y, epsilon=0.3, error_share=0.7, mechanism=Spy())
    assert seen == [Fraction(21, 200)] * 2 + [Fraction(9, 200)] * 2
    assert sum(seen) == Fraction(3, 10)
