"""The Laplace mechanism against scipy's law, and where a sensitivity is next to nothing."""

from itertools import product

import numpy as np
import pytest
from helpers import assert_follows, draw_many, loss_bounds, var_bounds
from scipy import stats

from dp_metrics import Laplace

EXAMPLES = {
    "mean": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0),
    "zero": loss_bounds([0.0, 0.0, 0.0], cap=2.0),
    "variance": var_bounds([0.0, 0.3, 0.7, 1.1], bounds=(0.0, 2.0)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_law_is_laplace_with_scale_sensitivity_over_epsilon_clamped_to_the_range(name):
    bounds = EXAMPLES[name]
    limit = bounds.output_range[1]
    sensitivity = limit / bounds.n if bounds.monotonic else 4 * limit * (bounds.n - 1) / bounds.n**2
    for epsilon in (0.1, 3.0):
        law = Laplace().output_distribution(bounds, epsilon)
        whole = stats.laplace(bounds.value, sensitivity / epsilon)
        t = np.linspace(0, limit, 50)[:-1]
        np.testing.assert_allclose(law.cdf(t), whole.cdf(t), rtol=1e-12)
        assert law.cdf(limit) == 1
        assert law.cdf(-1e-300) == 0
        p = np.linspace(0.001, 0.999, 50)
        np.testing.assert_allclose(law.quantile(p), np.clip(whole.ppf(p), 0, limit), rtol=1e-9, atol=1e-15)
        assert law.quantile([0.0, 1.0]).tolist() == [0, limit]


def test_no_size_of_the_data_is_too_small_for_noise():
    for cap, epsilon in product((1e-318, 1e-310, 1e-302, 1e-295, 1.0, 1e300), (0.5, 4.0)):
        a, b = (loss_bounds(x, cap=cap) for x in ([0.0] * 3, [cap, 0.0, 0.0]))
        laws = [Laplace().output_distribution(bounds, epsilon) for bounds in (a, b)]
        masses = [np.diff(law.cdf(np.linspace(0, cap, 9)), prepend=0.0) for law in laws]
        assert min(masses[0].min(), masses[1].min()) > 0
        assert np.abs(np.log(masses[0] / masses[1])).max() <= epsilon + 1e-3  # subnormal floats are coarse
        samples = draw_many(Laplace(), b, epsilon, 300, seed=1)
        assert_follows(samples, laws[1])
        assert np.unique(samples).size > 50


def test_a_sensitivity_that_underflows_is_not_taken_for_none():
    a, b = (loss_bounds([cap, *[0.0] * 9], cap=5e-324) for cap in (0.0, 5e-324))
    assert a.sensitivity > 0
    assert b.sensitivity > 0
    assert Laplace().output_distribution(b, 10.0).scale > 0
    bounds = var_bounds([0.0, 5e-162, *[0.0] * 9], bounds=(0.0, 5e-162))
    assert bounds.sensitivity > 0
    assert var_bounds([0.3], bounds=(0.0, 2.0)).sensitivity == 0  # but one record never has a variance


def test_only_the_metric_is_read_and_no_rank():
    assert Laplace().count_ranks(1.0, n=1000, monotonic=True, output_range=(0.0, 1.0)) == 1
