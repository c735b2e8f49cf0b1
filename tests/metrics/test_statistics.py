"""Statistics of one column: shifted ones, huge ones, and releases within their bounds."""

from functools import partial

import numpy as np
import pytest
from helpers import BOTH_RELATIONS, MAX, loop_over, seeded, variance_query

import dp_metrics as dp
from dp_metrics.quantities.ranks import CalibrationOf, RankingOf
from dp_metrics.quantities.variance import VarianceOf


def test_shifting_the_data_and_their_bounds_shifts_nothing_in_the_release():
    x = np.round(np.random.default_rng(0).gamma(2.0, size=400) * 64) / 64
    several = (x, (0.0, 8.0)), (x + 1024, (1024.0, 1032.0)), (1024 - x, (1016.0, 1024.0))
    released = {
        dp.private_variance(shifted, bounds=bounds, epsilon=1.0, random_state=seeded())
        for shifted, bounds in several
    }
    assert len(released) == 1


RELEASES = {
    "quantile": partial(dp.private_quantile, q=0.5),
    "mean": dp.private_mean,
    "mean, hazard": partial(dp.private_mean, mechanism="hazard"),
    "mean, summary": lambda x, bounds, **options: (
        dp.Summary(dp.private_mean, bounds=bounds).update(x).release(**options)
    ),
}


@loop_over("name", RELEASES)
@loop_over("bounds", [(-1, 0.1), (0.3, 0.9), (-6, 0.2)])
def test_no_rounding_puts_a_release_above_its_upper_bound(name, bounds):
    low, high = bounds
    assert low + (high - low) > high  # the release and its lower bound may add up to more
    for epsilon in (1e-3, 1.0, 1e9):
        for seed in range(5):
            settings = {"bounds": bounds, "epsilon": epsilon, "random_state": seeded(seed)}
            assert low <= RELEASES[name]([high] * 20, **settings) <= high


def test_a_mean_lies_within_the_widest_and_the_closest_bounds():
    x = np.random.default_rng(0).normal(5, 2, 500)
    for bounds in ((-MAX / 4, MAX / 4), (-1e-300, 1e-300)):
        for mechanism in (None, "hazard"):
            released = dp.private_mean(x, epsilon=1e-9, bounds=bounds, mechanism=mechanism)
            assert bounds[0] <= released <= bounds[1]
    assert dp.private_quantile([1.0], 0.5, epsilon=1e9, bounds=(-MAX, MAX)) <= MAX


@loop_over("relation", BOTH_RELATIONS)
def test_a_variance_has_bounds_at_no_more_ranks_than_there_is_time_for(relation):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VarianceOf, "most_ranks", 20)
        query = variance_query(np.arange(200.0) ** 2)
        seen = query.output_bounds(dp.mechanisms.Hazard(resolution=0.1), 0.1, relation=relation)
    assert seen.lower.size == seen.upper.size == 20
    assert {kind.most_ranks for kind in (VarianceOf, RankingOf, CalibrationOf)} == {4096}  # docs/theory.rst


def test_a_few_huge_values_among_tiny_ones_are_no_reason_to_fail():
    """Their squares, in squared widths of the tiny ones, are integers that no float is as large as."""
    rng = np.random.default_rng(0)
    for tiny, huge in ((1e-130, 1e108), (1e-300, 1e300), (1e-200, 1.0)):
        x = tiny * rng.normal(size=5000)
        x[:25] = huge * rng.choice([-1, 1], 25)
        for epsilon in (1.0, 20.0):
            assert dp.private_variance(x, epsilon=epsilon) >= 0
