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


def calls_of_both(place, name, work, other):
    """Return the arguments of each call of a function, with the usual data and with other ones."""
    found = []
    for x in (NORMAL, other):
        with mock.patch.object(place, name, autospec=True, side_effect=getattr(place, name)) as spied:
            work(x)
        found.append([call.args for call in spied.mock_calls])
    return found


@loop_over(("value", "place"), itertools.product(SIZES, [0, 1, -1]))
def test_sums_take_as_many_passes_whatever_the_size_of_one_record(value, place):
    def work(x):
        aggregate_of(x, capacity=RANKS)
        loss_query(np.abs(x)).stats(RANKS)

    # what is smaller is added apart
    passes = calls_of_both(BlockSums, "_smaller", work, neighbour(value, place))
    assert [[block.size for _, block, *_ in calls] for calls in passes] == [[N] * 2] * 2


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
    def work(x):
        distances_of(np.sort(x), (-np.inf, np.inf), MAX, 2, RANKS)

    quotients = calls_of_both(variance_bounds, "rounded_quotients", work, neighbour(value))
    weights, others = ([weight for _, weight in calls] for calls in quotients)
    assert weights == others != []


@loop_over("value", SIZES[4:])
def test_a_far_outlier_leaves_no_more_windows_in_question(value):
    def work(x):
        least_spreads(aggregate_of(x, capacity=RANKS), RANKS)

    compared = calls_of_both(variance_windows, "_spreads", work, neighbour(value))
    (_, first), (_, second) = ([len(starts) for _, _, starts, *_ in calls] for calls in compared)
    assert first == RANKS
    assert second <= RANKS + 2
