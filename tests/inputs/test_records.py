"""Options and records in all the types that they may have; what may not be is in the rows of refusals."""

from fractions import Fraction

import numpy as np
import pandas as pd
from helpers import MAX, loop_over

import dp_metrics as dp
from dp_metrics.inputs.arrays import ArgumentShape, as_numbers, float_block
from dp_metrics.inputs.labels import LabelColumns
from dp_metrics.inputs.options import check_bounds, check_epsilon, check_max_loss

ONE_HALF = [0.5, np.float32(0.5), Fraction(1, 2)]


@loop_over("value", [*ONE_HALF, 1, np.int64(3), np.float64(0.1), 5e-324, MAX])
def test_an_epsilon_and_a_cap_are_any_positive_finite_real_number(value):
    for check in (check_epsilon, check_max_loss):
        assert check(value) == value
        assert type(check(value)) is float
    assert check_max_loss(None) is None


@loop_over("bounds", [(0, 1), [0, 1], np.array([0, 1]), (np.float32(0), np.int8(1))])
def test_bounds_are_any_increasing_pair_of_finite_numbers(bounds):
    assert check_bounds(bounds) == (0.0, 1.0)
    assert all(type(bound) is float for bound in check_bounds(bounds))
    assert check_bounds(None) is None


@loop_over(
    ("labels", "columns", "expected"),
    [
        (None, 1, [0, 1]),
        (None, 2, [0, 1]),
        (None, 4, [0, 1, 2, 3]),
        (["b", "a"], 1, ["a", "b"]),
        ((3, 1, 2), 3, [1, 2, 3]),
        (np.array([True, False]), 2, [False, True]),
        (pd.Series(["x", "y"]), 2, ["x", "y"]),
        (pd.Index([2.5, 0.5]), 1, [0.5, 2.5]),
    ],
)
def test_labels_are_sorted_and_default_to_the_columns(labels, columns, expected):
    assert LabelColumns.of(labels, ArgumentShape(columns), "y_proba").labels.known.tolist() == expected


@loop_over("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, bool])
@loop_over("hold", [np.asarray, pd.Series])
def test_arrays_of_numbers_are_never_copied_as_a_whole(dtype, hold):
    data = hold(np.zeros(10, dtype=dtype))
    read = as_numbers(data, "x")
    assert np.shares_memory(read, np.asarray(data))
    assert np.shares_memory(float_block(read, "x"), read) == (dtype is np.float64)
    assert float_block(read[::2], "x").flags.c_contiguous


def test_a_scorer_takes_an_array_of_output_weights():
    dp.make_private_scorer(dp.private_mse, epsilon=1.0, multioutput=np.array([0.5, 0.5]))
