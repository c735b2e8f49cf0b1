"""Losses with a domain, and what the regression metrics cost."""

import math

import numpy as np
import pytest
from helpers import NoEntropy

import dp_metrics as dp
from dp_metrics.auditing import metric_loss


def test_losses_with_a_domain_refuse_what_lies_outside_without_values():
    cases = [
        (dp.private_mean_poisson_deviance, [-987.5, 1.0], [1.0, 1.0]),
        (dp.private_mean_poisson_deviance, [1.0, 1.0], [1.0, 0.0]),
        (dp.private_mean_squared_log_error, [-987.5, 1.0], [1.0, 1.0]),
        (dp.private_mean_squared_log_error, [1.0, 1.0], [1.0, -1.0]),
    ]
    for metric, y, p in cases:
        with pytest.raises(ValueError, match="used") as caught:
            metric(y, p, epsilon=1.0, random_state=NoEntropy())
        assert "987" not in str(caught.value)
    with pytest.raises(ValueError, match="bounds"):
        dp.private_mean_squared_log_error([1.0], [1.0], epsilon=1.0, bounds=(-1, 1), random_state=NoEntropy())
    with pytest.raises(ValueError, match="1d"):
        dp.private_mean_poisson_deviance(
            np.ones((2, 2)), np.ones((2, 2)), epsilon=1.0, random_state=NoEntropy()
        )
    for alpha in (-0.1, 1.1, math.nan, "a", None, True):
        with pytest.raises(ValueError, match="alpha"):
            dp.private_mean_pinball_loss([1.0], [1.0], epsilon=1.0, alpha=alpha, random_state=NoEntropy())


@pytest.mark.parametrize(
    ("metric", "options", "mechanism"),
    [
        (dp.private_mean_squared_log_error, {"bounds": (0, 9)}, dp.Hazard()),
        (dp.private_mean_squared_log_error, {"bounds": (0, 9)}, "piecewise_laplace"),
        (dp.private_mean_pinball_loss, {"bounds": (0, 9), "alpha": 0.1}, dp.Hazard()),
        (dp.private_mean_pinball_loss, {"bounds": (0, 9), "alpha": 0.1}, "piecewise_laplace"),
        (dp.private_mean_pinball_loss, {"bounds": (0, 9), "alpha": 0.9}, dp.Hazard()),
        (dp.private_mean_pinball_loss, {"bounds": (0, 9), "alpha": 0.9}, "piecewise_laplace"),
        (dp.private_mean_absolute_percentage_error, {"max_loss": 2}, dp.Hazard()),
        (dp.private_mean_absolute_percentage_error, {"max_loss": 2}, "piecewise_laplace"),
        (dp.private_mean_poisson_deviance, {"max_loss": 20}, dp.Hazard()),
        (dp.private_mean_poisson_deviance, {"max_loss": 20}, "piecewise_laplace"),
        (dp.private_rmse, {"bounds": (0, 9)}, dp.Hazard()),
        (dp.private_rmse, {"bounds": (0, 9)}, "piecewise_laplace"),
        (dp.private_r2_score, {"bounds": (0, 9)}, dp.Hazard()),
        (dp.private_r2_score, {"bounds": (0, 9)}, "piecewise_laplace"),
        (dp.private_r2_score, {}, dp.Hazard()),
    ],
)
def test_the_exact_privacy_loss_is_at_most_epsilon(metric, options, mechanism):
    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (1, 2, 10):
        for _ in range(6):
            y, p = rng.uniform(0.1, 9, (2, n))
            y2, p2 = y.copy(), p.copy()
            y2[0], p2[0] = rng.choice([0.1, 9.0], 2)
            worst = max(
                worst, metric_loss(metric, [y, p], [y2, p2], epsilon=1.0, mechanism=mechanism, **options)
            )
    assert 0.3 < worst <= 1 + 1e-9
