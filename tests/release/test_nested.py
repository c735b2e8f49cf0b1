"""Tables whose columns nest."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_metrics.release.parts.count_table import noisy_total
from dp_metrics.release.parts.nested_table import NestedTable, columns_for, merged_columns


@pytest.mark.parametrize("size", [1, 30, 100, 300, 1000, 3000, 10_000, 30_000, 10**5, 10**6, 10**9])
@pytest.mark.parametrize("by_group", [False, True])
def test_the_columns_are_the_power_of_two_that_is_nearest_to_the_rule(size, by_group):
    rule = 0.9 * size**0.5 if by_group or size >= 10_000 else 1.5 * size ** (1 / 3)
    nearest = 2 ** round(math.log2(rule))
    assert columns_for(size, Fraction(1), by_group=by_group) == min(max(nearest, 8), 128)
    tenth = columns_for(10 * size, Fraction(1, 10), by_group=by_group)
    assert tenth == columns_for(size, Fraction(1), by_group=by_group)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**300), Fraction(10**300)])
def test_the_columns_at_extreme_epsilons(epsilon):
    assert columns_for(1000, epsilon) == (8 if epsilon < 1 else 128)
    assert columns_for(None, epsilon) == 32


def test_neighbouring_columns_are_added_up():
    table = np.arange(16).reshape(2, 8)
    assert merged_columns(table, 2).tolist() == [[6, 22], [38, 54]]
    assert merged_columns(table, 8).tolist() == table.tolist()


@pytest.mark.parametrize(("private_n", "rate"), [(False, Fraction(1, 4)), (True, Fraction(1, 2))])
def test_a_record_counts_once_whatever_the_columns(private_n, rate):
    query = NestedTable(np.ones((2, 128), dtype=np.int64))
    assert (query.n, query.size) == (256, 256)
    draw = query.prepare(None, Fraction(1, 2), private_n=private_n)
    columns = 32 if private_n else 8
    assert draw.rates == ((2 * columns, rate),)
    assert draw.values == (128 // columns,) * (2 * columns)
    assert draw.zero_sum is not private_n
    assert len(NestedTable(query.table, 64).prepare(None, Fraction(1), private_n=private_n).values) == 128


def test_the_total_that_noisy_counts_tell():
    cells = ((3, Fraction(1, 2)),)
    assert noisy_total([5, -2, 4], cells) == 4  # 3.5, rounded to even
    assert noisy_total([-5, -2, 4], cells) == 0
    assert noisy_total([10**400, 0, 0], cells) == 2**50
