"""One record of another size than the others changes no path that the arithmetic of all others takes."""

import itertools
from unittest import mock

import numpy as np
import pytest
from helpers import MAX, aggregate_of, distances_of, loop_over, loss_query

from dp_metrics.sensitivity import variance_bounds, variance_windows
from dp_metrics.sensitivity.exact import BlockSums
from dp_metrics.sensitivity.variance_windows import least_spreads

pytestmark = pytest.mark.usefixtures("own_error_state")

N, RANKS = 10_000, 74
NORMAL = np.random.default_rng(0).normal(size=N)
SIZES = [5e-324, 1e-310, 1e-200, 1e-30, 1e30, 1e200, MAX]


def neighbour(value, place=-1):
    other = NORMAL.copy()
    other[place] = value
    return other


@loop_over(("value", "place"), itertools.product(SIZES, [0, 1, -1]))
def test_sums_take_as_many_passes_whatever_the_size_of_one_record(value, place):
    counts = []
    for x in (NORMAL, neighbour(value, place)):
        # what is smaller is added apart
        with mock.patch.object(
            BlockSums, "_smaller", autospec=True, side_effect=BlockSums._smaller
        ) as passes:
            aggregate_of(x, capacity=RANKS)
            loss_query(np.abs(x)).stats(RANKS)
        counts.append([call.args[1].size for call in passes.mock_calls])
    assert counts[0] == counts[1] == [N] * 2


@loop_over("value", SIZES[:4])
def test_integers_are_as_long_whatever_bits_a_record_has(value):
    """Those that windows are compared by, and those that come out."""
    lengths = []
    for x in (NORMAL, neighbour(value)):
        aggregate = aggregate_of(x, capacity=RANKS)
        spreads = least_spreads(aggregate, RANKS)
        ends = (variance_windows._prefix_sums(end)[1:] for end in (aggregate.smallest, aggregate.largest))
        inner = [aggregate.total, aggregate.squares, *(of[1] for of in itertools.chain(*ends))]
        lengths.append([number.bit_length() for number in [*spreads, *inner]])
    assert (
        np.abs(np.subtract(*lengths)).max() < 30
    )  # a digit of Python's; sums and squares differ by what the record changes


@loop_over("value", SIZES[:4])
def test_means_of_the_middle_are_quotients_in_one_unit_whatever_bits_a_record_has(value):
    weights = []
    for x in (NORMAL, neighbour(value)):
        with mock.patch.object(
            variance_bounds, "rounded_quotients", wraps=variance_bounds.rounded_quotients
        ) as quotients:
            distances_of(np.sort(x), (-np.inf, np.inf), MAX, 2, RANKS)
        weights.append([call.args[1] for call in quotients.mock_calls])
    assert weights[0] == weights[1] != []


@loop_over("value", SIZES[4:])
def test_a_far_outlier_leaves_no_more_windows_in_question(value):
    compared = []
    for x in (NORMAL, neighbour(value)):
        with mock.patch.object(variance_windows, "_spreads", wraps=variance_windows._spreads) as spreads:
            least_spreads(aggregate_of(x, capacity=RANKS), RANKS)
        compared += [len(call.args[2]) for call in spreads.mock_calls]
    assert compared[1] == RANKS
    assert compared[3] <= RANKS + 2
