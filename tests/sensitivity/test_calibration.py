"""The expected calibration error: its sum, how far a record moves it, and its output bounds."""

import itertools
from fractions import Fraction

import numpy as np
from helpers import multisets

from dp_metrics.inputs.arrays import BLOCK
from dp_metrics.quantities.ranks import total_gap
from dp_metrics.sensitivity.exact import UNIT_BITS
from dp_metrics.sensitivity.score_bounds import calibration_bounds, calibration_excess

HALF = np.array([0.5])
RECORDS = list(itertools.product((0, 1), (0.0, 0.2, 0.5, 0.7, 1.0)))


def total(records, edges=HALF):
    y, scores = np.array(records, dtype=float).reshape(-1, 2).T
    return total_gap(calibration_excess([(y == 1, scores)], edges))


def by_definition(records, edges=HALF):
    sums = [Fraction(0)] * (len(edges) + 1)
    for y, score in records:
        sums[sum(score > edge for edge in edges)] += y - Fraction(score)
    return sum(map(abs, sums))


def neighbours(records):
    """Yield every set of records that differs in one, and whether it is as large."""
    for place in range(len(records)):
        rest = (*records[:place], *records[place + 1 :])
        yield rest, False
        for other in RECORDS:
            yield (*rest, other), True


def test_the_sum_is_exact_whatever_the_blocks():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.random(BLOCK + 1), [0.0, 1.0, 5e-324, 1e-300]])
    y = rng.integers(0, 2, scores.size)
    edges = np.linspace(0, 1, 11)[1:-1]
    exact = by_definition(list(zip(y.tolist(), scores.tolist(), strict=True)), edges)
    for cuts in ([1, BLOCK], [100, BLOCK], [5, 6, BLOCK + 1]):
        blocks = zip(np.split(y == 1, cuts), np.split(scores, cuts), strict=True)
        assert total_gap(calibration_excess(blocks, edges)) == exact * 2**UNIT_BITS


def test_a_record_moves_the_sum_by_at_most_2_and_by_1_if_it_comes_or_goes_and_both_are_attained():
    most = {True: Fraction(0), False: Fraction(0)}
    for records in multisets(RECORDS, 3):
        here = total(records)
        assert here == by_definition(records) * 2**UNIT_BITS
        for others, is_replaced in neighbours(records):
            most[is_replaced] = max(most[is_replaced], Fraction(abs(total(others) - here), 2**UNIT_BITS))
    assert most == {True: 2, False: 1}


def test_output_bounds_in_exact_arithmetic():
    third, n = 3 << UNIT_BITS, 10  # T = 3
    bounds = calibration_bounds(third, n, 50, False)
    assert (bounds.value, bounds.ranks, bounds.sensitivity) == (0.3, n, 0.2)
    assert bounds.lower.tolist() == [0.1] + [0.0] * 9
    assert bounds.upper.tolist() == [0.5, 0.7, 0.9] + [1.0] * 7
    private = calibration_bounds(third, n, 12, True)
    assert not private.monotonic  # a record that comes may lower the error, or raise it
    assert private.lower.tolist() == [2 / 11, 1 / 12] + [0.0] * 10
    assert private.upper.tolist() == [4 / 9, 5 / 8, 6 / 7] + [1.0] * 9
    assert (private.n, private.sensitivity) == (None, None)
    none = calibration_bounds(0, 0, 3, True)
    assert (none.value, *none.lower, *none.upper) == (0, 0, 0, 0, 1, 1, 1)
