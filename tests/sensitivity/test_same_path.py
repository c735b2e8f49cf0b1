"""One record of another size than the others changes no path that the arithmetic of all others takes."""

import numpy as np
import pytest

from dp_metrics.sensitivity.aggregates import LossAggregate, VarianceAggregate
from dp_metrics.sensitivity.exact import BlockSums
from dp_metrics.sensitivity.trimmed_variance import _Windows, least_spreads

N, RANKS = 10_000, 74
NORMAL = np.random.default_rng(0).normal(size=N)
SIZES = [5e-324, 1e-310, 1e-200, 1e-30, 1e30, 1e200, np.finfo(np.float64).max]


def neighbour(value, place=-1):
    other = NORMAL.copy()
    other[place] = value
    return other


@pytest.fixture
def passes(monkeypatch):
    """Sizes of the arrays that slices are taken of, one for each slice."""
    seen = []
    add_sigma = BlockSums._add_sigma

    def counted(self, values, exponent, out):
        seen.append(values.size)
        return add_sigma(self, values, exponent, out)

    monkeypatch.setattr(BlockSums, "_add_sigma", counted)
    return seen


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("value", SIZES)
def test_sums_take_as_many_passes_whatever_the_size_of_one_record(value, place, passes):
    counts = []
    for x in (NORMAL, neighbour(value, place)):
        passes.clear()
        VarianceAggregate.from_data(x, capacity=RANKS)
        LossAggregate.from_data(np.abs(x), capacity=RANKS)
        counts.append(list(passes))
    assert counts[0] == counts[1] == [N] * 3


@pytest.mark.parametrize("value", [value for value in SIZES if value < 1])
def test_integers_are_as_long_whatever_bits_a_record_has(value, monkeypatch):
    """Those that windows are compared by, and those that come out."""
    lengths = []
    for x in (NORMAL, neighbour(value)):
        aggregate = VarianceAggregate.from_data(x, capacity=RANKS)
        unit, spreads = least_spreads(aggregate, RANKS)
        windows = _Windows(aggregate, RANKS)
        inner = [windows.total, windows.squares, *windows.low_squares[1:], *windows.high_squares[1:]]
        lengths.append([unit.bit_length(), *(number.bit_length() for number in [*spreads, *inner])])
    difference = np.abs(np.subtract(*lengths))
    assert difference[0] == 0
    assert difference.max() < 30  # a digit of Python's; sums and squares differ by what the record changes


@pytest.mark.parametrize("value", [value for value in SIZES if value > 1])
def test_a_far_outlier_leaves_no_more_windows_in_question(value, monkeypatch):
    compared = []
    spreads = _Windows.spreads

    def counted(self, ranks, drops):
        compared.append(len(ranks))
        return spreads(self, ranks, drops)

    monkeypatch.setattr(_Windows, "spreads", counted)
    for x in (NORMAL, neighbour(value)):
        least_spreads(VarianceAggregate.from_data(x, capacity=RANKS), RANKS)
    assert compared[1] == RANKS
    assert compared[3] <= RANKS + 2
