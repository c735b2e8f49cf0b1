"""The expected calibration error: its sum, how far a record moves it, and its output bounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import AllRanks, check_neighbours, multisets, nearest

from dp_metrics.release.parts.calibration_error import CalibrationError, CalibrationOf
from dp_metrics.sensitivity.calibration_bounds import (
    calibration_bounds,
    calibration_bounds_private_n,
    calibration_excess,
    calibration_sums,
)
from dp_metrics.sensitivity.exact import BLOCK, UNIT_BITS
from dp_metrics.sensitivity.noisy_sums import FINENESS

HALF = np.array([0.5])
RECORDS = list(itertools.product((0, 1), (0.0, 0.2, 0.5, 0.7, 1.0)))


def total(records, edges=HALF):
    y, scores = np.array(records, dtype=float).reshape(-1, 2).T
    excess, n = calibration_excess([(y == 1, scores)], edges)
    query = CalibrationError(CalibrationOf(None), excess, n)
    assert query.n == len(records)
    return query.total


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


def test_the_sum_is_exact_in_every_block():
    rng = np.random.default_rng(0)
    n = BLOCK + 5
    scores = np.concatenate([rng.random(n - 4), [0.0, 1.0, 5e-324, 1e-300]])
    records = list(zip(rng.integers(0, 2, n).tolist(), scores.tolist(), strict=True))
    edges = np.linspace(0, 1, 11)[1:-1]
    exact = by_definition(records, edges)
    y = np.array([label == 1 for label, _ in records])
    for at in (1, 100, BLOCK):
        blocks = [(y[:at], scores[:at]), (y[at:], scores[at:])]
        blocks = [
            part
            for y, s in blocks
            for part in zip([y[:BLOCK], y[BLOCK:]], [s[:BLOCK], s[BLOCK:]], strict=True)
        ]
        query = CalibrationError(CalibrationOf(None), *calibration_excess(blocks, edges))
        assert (query.total, query.n) == (exact * 2**UNIT_BITS, n)


def test_a_record_moves_the_sum_by_at_most_2_and_by_1_if_it_comes_or_goes_and_both_are_attained():
    most = {True: Fraction(0), False: Fraction(0)}
    for records in multisets(RECORDS, 3):
        here = total(records)
        assert here == by_definition(records) * 2**UNIT_BITS
        for others, is_replaced in neighbours(records):
            most[is_replaced] = max(most[is_replaced], Fraction(abs(total(others) - here), 2**UNIT_BITS))
    assert most == {True: 2, False: 1}


def test_the_pair_of_three_records_that_differs_by_2():
    a = [(0, 0.5), (0, 0.5), (0, 1.0)]
    b = [(0, 0.5), (0, 0.5), (1, 0.0)]
    assert total(a) - total(b) == 2 << UNIT_BITS


def test_output_bounds_of_neighbours_interleave_and_enclose_what_can_be_reached():
    for records in multisets(RECORDS[::2], 3):
        for others, is_replaced in neighbours(records):
            if is_replaced:
                check_neighbours(*(calibration_bounds(total(x), 3, 3) for x in (records, others)))
            else:
                pair = [calibration_bounds_private_n(total(x), len(x), 6) for x in (records, others)]
                for one, other in (pair, pair[::-1]):
                    assert other.lower[0] <= one.value <= other.upper[0]
                    assert (one.upper[:-1] <= other.upper[1:]).all()
                    assert (one.lower[:-1] >= other.lower[1:]).all()


def test_output_bounds_in_exact_arithmetic():
    third, n = 3 << UNIT_BITS, 10  # T = 3
    bounds = calibration_bounds(third, n, 50)
    assert (bounds.value, bounds.ranks, bounds.sensitivity) == (0.3, n, 0.2)
    assert bounds.lower.tolist() == [0.1] + [0.0] * 9
    assert bounds.upper.tolist() == [0.5, 0.7, 0.9] + [1.0] * 7
    private = calibration_bounds_private_n(third, n, 12)
    assert not private.monotonic  # a record that comes may lower the error, or raise it
    assert private.lower.tolist() == [2 / 11, 1 / 12] + [0.0] * 10
    assert private.upper.tolist() == [4 / 9, 5 / 8, 6 / 7] + [1.0] * 9
    assert (private.n, private.sensitivity) == (None, None)
    none = calibration_bounds_private_n(0, 0, 3)
    assert (none.value, *none.lower, *none.upper) == (0, 0, 0, 0, 1, 1, 1)


def test_the_noisy_sums_move_by_their_sensitivity_at_most_and_tell_the_error():
    most = 0
    for records in multisets(RECORDS, 2):
        sums = calibration_sums(total(records), 2)
        told = sums.combine(*map(np.float64, sums.values))
        assert told == pytest.approx(by_definition(records) / 2, abs=2 / FINENESS)
        assert sums.value == nearest(by_definition(records) / 2)
        for others, is_replaced in neighbours(records):
            if not is_replaced:
                after = calibration_sums(total(others), len(others)).values
                moved = sum(abs(a - b) for a, b in zip(sums.values, after, strict=True))
                assert moved <= sums.sensitivity
                most = max(most, moved)
    assert most == sums.sensitivity == 2 * FINENESS


def test_the_query_asks_for_as_many_ranks_as_it_needs():
    query = CalibrationError(CalibrationOf(None), (3 << UNIT_BITS,), 10)
    assert query.output_bounds(AllRanks(4), 1.0, private_n=False).ranks == 4
    assert math.isclose(query.sums().value, 0.3)
