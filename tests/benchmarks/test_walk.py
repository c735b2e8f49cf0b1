"""What a call walks through is counted, and nothing else."""

from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import load_script

import dp_metrics as dp
from dp_metrics._random import SeededEntropy, discrete_laplace, discrete_laplaces
from dp_metrics.inputs.options import as_whole, exact_epsilon

walk = load_script(Path(__file__).parents[2] / "benchmarks" / "walk.py")


def test_calls_functions_modules_and_depth_of_a_call_are_counted():
    def twice():
        return [as_whole(1), as_whole(2), sorted([3, 1])]

    assert walk.walk_of(twice) == (2, 1, ["inputs/options.py"], 1)
    assert walk.walk_of(lambda: exact_epsilon(0.25)).modules == ["inputs/options.py"]
    assert walk.walk_of(lambda: exact_epsilon(0.25)).depth > 1
    one = walk.walk_of(lambda: discrete_laplace(SeededEntropy(0), Fraction(1)))
    in_a_list = walk.walk_of(lambda: discrete_laplaces(SeededEntropy(0), Fraction(1), 1))
    assert in_a_list.depth == one.depth + 1  # in every version of Python
    assert "release/release.py" in walk.walk_of(lambda: dp.private_mae([1.0], [2.0], epsilon=1.0)).modules


@pytest.mark.parametrize("metric", ["private_mse", "private_accuracy_score"])
def test_one_call_can_be_followed_through_sixteen_modules(metric):
    truth = np.arange(1000) % 2
    call = partial(getattr(dp, metric), truth, truth[::-1].copy(), epsilon=1.0)
    call()
    for _ in range(20):  # a few draws take one step more
        found = walk.walk_of(call)
        assert len(found.modules) <= 16
        assert found.depth <= 13
