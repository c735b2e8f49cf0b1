"""Sums that tell a metric of a private number of records: how far a record moves them."""

import numpy as np
import pytest
from helpers import aggregate_of, loop_over, loss_query

from dp_metrics.sensitivity.output_bounds import FINENESS
from dp_metrics.sensitivity.score_bounds import calibration_sums
from dp_metrics.sensitivity.variance_bounds import variance_sums


def sums_of(x, width=1.0):
    return variance_sums(aggregate_of(np.array(x), capacity=1, bounds=(0.0, width)))


def test_a_record_moves_the_three_sums_by_their_sensitivity_at_most_and_attains_it():
    rng, moved = np.random.default_rng(0), []
    for _ in range(500):
        # the last sum is just below a whole step, and a record near the other end takes it there: two of the
        # sums are rounded so that the third pays for both
        x = [rng.random() * 2e-7, np.sqrt((rng.integers(1, 10**6) - rng.random() * 1e-9) / FINENESS)]
        more, less = sums_of(x), sums_of(x[1:])
        moved.append(sum(abs(a - b) for a, b in zip(more.values, less.values, strict=True)))
    assert max(moved) == more.sensitivity == FINENESS + 2


def test_all_sums_together_tell_the_number_of_records():
    for n in range(4):
        mean = loss_query(np.ones(n), 1.0)
        made = [mean.quantity.sums(mean.stats()), sums_of([0.3] * n), calibration_sums(n << 1073, n)]
        assert [sum(one.values) for one in made] == [n * one.fineness for one in made]


@loop_over("width", [1.0, 3.0, 1e150])
def test_noisy_sums_tell_no_more_variance_than_their_mean_allows(width):
    # one record at 0, minus one in the middle, three at the upper end: the mean is 5/6
    sums = (np.array([part * float(FINENESS)]) for part in (1, -1, 3))
    found = sums_of([0.0, width], width).combine(*sums)
    assert found[0] == pytest.approx(5 / 36 * width**2)
