"""Limits of a ratio among people of whom each counts once: simulated on tasks that no rule was chosen on."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics._random import made_up
from dp_metrics.inputs.arrays import units_of_persons
from dp_metrics.quantities.tables import CountsNoise
from dp_metrics.release.count_limits import NoisyRatio, person_limits

# persons, the most records of one, how alike a person's records are (Beta), share that counts, epsilon
TASKS = {
    "patients": (700, 4, (4.0, 1.0), 0.5, 2.0),
    "drivers": (3000, 3, (1.0, 1.0), 0.3, 1.0),
    "pupils": (1500, 6, (20.0, 10.0), 0.8, 1.0),
}
DRAWS = 120


def drawn(task, rng):
    """Return the units of each person in a, in b and in neither, and how many there are."""
    persons, most, (alike, unlike), counts, _ = TASKS[task]
    sizes = rng.integers(1, most + 1, persons)
    owner = np.repeat(np.arange(persons), sizes)
    total, units = units_of_persons(owner, most)
    share = rng.beta(alike, unlike, persons)[owner]
    place = np.where(rng.random(owner.size) < counts, np.where(rng.random(owner.size) < share, 0, 1), 2)
    found = np.zeros((persons, 3), dtype=np.int64)
    np.add.at(found, (owner, place), units)
    return found, total


@pytest.mark.gate
@loop_over("task", TASKS)
def test_limits_of_persons_cover(task):
    """15 of 120 misses and more come up with probability 9e-4 at a miss of .05; the seed is fixed."""
    alike, unlike = TASKS[task][2]
    epsilon, truth, rng = TASKS[task][4], alike / (alike + unlike), np.random.default_rng(11)
    missed = 0
    for _ in range(DRAWS):
        found, total = drawn(task, rng)
        rate = Fraction(epsilon / (2 * total))
        of = CountsNoise((0,) * 3, ((3, rate),), True).simulated(made_up(int(rng.integers(2**31))), 8)[0]
        a, b, _ = (found.sum(axis=0) + of).astype(int).tolist()
        lower, upper = person_limits(total, NoisyRatio(a, b, (1, 1), (rate,) * 2, 1, None), 0.025)
        missed += not lower <= truth <= upper
    assert missed < 15


def test_exchange_mirrors_and_what_tells_nothing_leaves_the_range():
    def ratio(a, b):
        return NoisyRatio(a, b, (1, 1), (Fraction(1, 12),) * 2, 1, None)

    lower, upper = person_limits(6, ratio(4000, 1200), 0.025)
    assert person_limits(6, ratio(1200, 4000), 0.025) == pytest.approx((1 - upper, 1 - lower))
    assert 0 < lower < 4000 / 5200 < upper < 1
    assert person_limits(6, ratio(-30, -2), 0.025) == (0.0, 1.0)
