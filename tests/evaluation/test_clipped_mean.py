"""The clipped mean is close with much epsilon; the laws of its two parts are those of `test_privacy.py`."""

import numpy as np
import pytest

from dp_metrics._random import SeededEntropy
from dp_metrics.evaluation.engine import clipped_mean, private_threshold

VALUES = np.random.default_rng(0).gamma(2.0, 3.0, size=1000)


def test_it_is_right_with_much_epsilon_and_its_threshold_lies_near_the_top_of_the_records():
    for variance, truth in ((False, VALUES.mean()), (True, VALUES.var())):
        release = clipped_mean(VALUES, SeededEntropy(0), epsilon=1e3, limit=100.0, variance=variance)
        assert release == pytest.approx(truth, rel=1e-2)
    tops = [private_threshold(VALUES, SeededEntropy(i), epsilon=1.0, limit=1e3) for i in range(50)]
    assert 0.9 < np.mean([(top >= VALUES).mean() for top in tops]) <= 1.0
