"""The clipped mean: where it clips, and its noise; the laws of both are those of `test_privacy.py`."""

import numpy as np
import pytest

from dp_metrics._random import SeededEntropy
from dp_metrics.evaluation.engine import clipped_mean, private_threshold
from dp_metrics.evaluation.population import Population
from dp_metrics.mechanisms.comparators import LaplaceLaw

VALUES = np.random.default_rng(0).gamma(2.0, 3.0, size=1000)


def test_its_threshold_lies_near_the_top_of_the_records():
    tops = [private_threshold(VALUES, SeededEntropy(i), epsilon=1.0, limit=1e3) for i in range(50)]
    assert 0.9 < np.mean([(top >= VALUES).mean() for top in tops]) <= 1.0


def test_noise_is_added_to_what_is_clipped_at_the_threshold():
    """By hand, in floats: a quarter of epsilon for the threshold; one record moves a mean by that over n."""
    for metric, sensitivity in (
        ("mse", lambda top, n: top / n),
        ("variance", lambda t, n: t * t * (n - 1) / n**2),
    ):
        population, entropy = Population(metric, VALUES, (0.0, 100.0)), SeededEntropy(3)
        top = private_threshold(VALUES, entropy, epsilon=0.5, limit=100.0)
        kept = np.clip(VALUES, 0.0, top)
        value = kept.var() if metric == "variance" else kept.mean()
        law = LaplaceLaw(float(value), sensitivity(top, VALUES.size) / 1.5, (0.0, 1e3))
        release = clipped_mean(population, VALUES, SeededEntropy(3), epsilon=2.0)
        assert release == pytest.approx(law.release(entropy), rel=1e-12)


def test_a_threshold_of_0_leaves_0():
    population = Population("variance", np.zeros(5), (0.0, 100.0))
    tops = [
        private_threshold(population.values, SeededEntropy(i), epsilon=2.5, limit=100.0) for i in range(9)
    ]
    assert 0.0 in tops
    assert clipped_mean(population, population.values, SeededEntropy(tops.index(0.0)), epsilon=10.0) == 0.0
