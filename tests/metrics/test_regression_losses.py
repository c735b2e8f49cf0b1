"""Losses with a domain, and what the regression metrics cost."""

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics.auditing import metric_loss


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
