"""groups and max_records: all records of one person, by brute force and by the exact laws of releases."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers import NoEntropy, loop_over, slow_but

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis._law_comparison import draw_loss
from dp_metrics.auditing import frame_loss, metric_loss
from dp_metrics.inference.comparison import comparison_plan
from dp_metrics.inference.paired_losses import paired_losses
from dp_metrics.inputs.options import first_of_each
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.stored.codec import decoded, encoded

SEVERAL = [name for name, row in METRICS.items() if "max_records" in row.options]
TABLES = [name for name in SEVERAL if METRICS[name].mechanism is None]
PERSONS = [0, 1, 0, 2, 1, 2, 1]  # person 0 has the records at 0 and 2, person 1 has three
OTHERS = {1: (0, 0.1), 3: (1, 0.9), 4: (1, 0.3), 5: (0, 0.6), 6: (1, 0.8)}
KINDS = [(0, 0.05), (0, 0.95), (1, 0.05), (1, 0.95)]
Y = np.tile([1, 1, 0, 1, 0, 0], 60)
P = np.where(np.arange(Y.size) % 5 == 0, 1 - Y, Y)
OF_THREE = np.arange(Y.size) // 3


def data_of(name, first, second):
    """Return the data where person 0 has these two records."""
    records = {**OTHERS, 0: first, 2: second}
    true, score = (np.array(column) for column in zip(*(records[at] for at in range(7)), strict=True))
    return true, (score > 0.5).astype(int) if METRICS[name].predicts_labels else score


def pairs_of_contents(some):
    """Return pairs of what person 0 may have."""
    contents = list(itertools.product(KINDS, repeat=2))
    return list(itertools.combinations(contents, 2))[:: 7 if some else 1]


@pytest.mark.parametrize("name", slow_but(SEVERAL[:3], SEVERAL))
def test_over_all_that_one_person_can_change_the_exact_loss_is_epsilon_at_most(name):
    public = {"epsilon": 0.5, "groups": PERSONS, "max_records": 2}
    if (mechanism := METRICS[name].mechanism) is not None:
        public["mechanism"] = mechanism
    found = []
    for a, b in pairs_of_contents(name not in TABLES):
        data = data_of(name, *a), data_of(name, *b)
        found.append((metric_loss(name, *data, **public), data))
    worst, data = max(found, key=lambda one: one[0])
    assert worst <= 0.5 * (1 + 1e-9)
    if name in TABLES:
        # tight: without the persons, or as if each had one record, the same neighbours cost twice as much
        assert worst >= 0.5 * (1 - 1e-9)
        del public["groups"], public["max_records"]
        assert metric_loss(name, *data, **public) >= 2 * 0.5 * (1 - 1e-9)
