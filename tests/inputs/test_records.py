from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from helpers import MAX, loop_over

import dp_metrics as dp
from dp_metrics.inputs.containers import array_of
from dp_metrics.inputs.epsilon import check_epsilon
from dp_metrics.inputs.labels import as_labels, check_labels, encoded_block, public_labels
from dp_metrics.inputs.options import check_bounds, check_max_loss
from dp_metrics.inputs.readers import LabelColumns, labels_and_scores, targets
from dp_metrics.inputs.records import (
    as_numbers,
    as_probabilities,
    as_scores,
    check_vector,
    float_block,
    loss_block,
    probability_block,
)
from dp_metrics.inputs.shape import ArgumentShape, Records


def encode_labels(y, labels):
    return encoded_block(as_labels(y, labels), labels)


def check_probabilities(y_proba):
    array = array_of(y_proba)
    return probability_block(as_probabilities(array)), ArgumentShape.of(y_proba, array).resolution


@pytest.mark.parametrize(
    ("epsilon", "value"),
    [
        (1, 1.0), (0.5, 0.5), (np.float64(0.1), 0.1), (np.float32(0.5), 0.5), (np.int64(3), 3.0),
        (Fraction(1, 4), 0.25), (5e-324, 5e-324), (MAX, MAX),
    ],
)  # fmt: skip
def test_an_epsilon_is_any_positive_finite_real_number(epsilon, value):
    assert check_epsilon(epsilon) == value
    assert isinstance(check_epsilon(epsilon), float)


@loop_over("bounds", [(0, 1), [0, 1], np.array([0, 1]), (np.float32(0), np.int8(1))])
def test_bounds_are_any_increasing_pair_of_finite_numbers(bounds):
    assert check_bounds(bounds) == (0.0, 1.0)
    assert all(type(bound) is float for bound in check_bounds(bounds))


def test_no_bounds_and_no_cap_are_kept_as_none():
    assert check_bounds(None) is None
    assert check_max_loss(None) is None


@loop_over("cap", [3, 3.0, np.float32(3), np.int64(3)])
def test_a_cap_is_any_positive_finite_number(cap):
    assert check_max_loss(cap) == 3.0
    assert type(check_max_loss(cap)) is float


@pytest.mark.parametrize(
    ("labels", "columns", "expected"),
    [
        (None, 1, [0, 1]), (None, 2, [0, 1]), (None, 4, [0, 1, 2, 3]), (["b", "a"], 1, ["a", "b"]),
        ((3, 1, 2), 3, [1, 2, 3]), (np.array([True, False]), 2, [False, True]),
        (pd.Series(["x", "y"]), 2, ["x", "y"]), (pd.Index([2.5, 0.5]), 1, [0.5, 2.5]),
        (["a", "a", "b"], 1, ["a", "b"]),
    ],
)  # fmt: skip
def test_labels_are_sorted_and_default_to_the_columns(labels, columns, expected):
    assert check_labels(public_labels(labels), columns).tolist() == expected


@pytest.mark.parametrize(
    ("y", "labels", "codes"),
    [
        ([0, 1, 1], [0, 1], [0, 1, 1]),
        ([1.0, 0.0], [0, 1], [1, 0]),
        ([True, False], [0, 1], [1, 0]),
        (np.array([[2], [0]]), [0, 1, 2], [2, 0]),
        (["spam", "ham"], ["ham", "spam"], [1, 0]),
        (np.array(["spam", "ham"]), ["ham", "spam"], [1, 0]),
        (pd.Series(["spam", "ham"], dtype="category"), ["ham", "spam"], [1, 0]),
        ([["spam"], ["ham"]], ["ham", "spam"], [1, 0]),
        ([0.5, 2.5], [0.5, 2.5], [0, 1]),
    ],
)
def test_labels_are_encoded_by_their_position(y, labels, codes):
    assert encode_labels(y, np.array(labels)).tolist() == codes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("wrap", [np.asarray, pd.Series, lambda a: pd.DataFrame({"p": a})])
def test_the_resolution_of_probabilities_is_that_of_their_type(dtype, wrap):
    array, resolution = check_probabilities(wrap(np.array([0.25, 0.5], dtype=dtype)))
    assert resolution == float(np.finfo(dtype).eps)
    assert array.dtype == np.float64
    assert array.tolist() == [[0.25], [0.5]]


@pytest.mark.parametrize("given", [[0.25, 1.0], [0, 1], np.array([0, 1]), np.array([False, True])])
def test_the_resolution_of_other_probabilities_is_that_of_float64(given):
    assert check_probabilities(given)[1] == np.finfo(np.float64).eps


@pytest.mark.parametrize(
    "data", [[1, 2.5], (1, 2.5), np.array([[1.0], [2.5]]), pd.Series([1, 2.5]), [Decimal("1"), 2.5]]
)
def test_a_vector_is_anything_of_one_number_per_record(data):
    vector = check_vector(data, "x")
    assert vector.dtype == np.float64
    assert vector.tolist() == [1.0, 2.5]


def test_one_record_does_not_change_how_another_is_read():
    big = 2**53 + 1  # not a float64: must be rounded alike beside an int, a float, a bool or a huge int
    for other in (1, 1.5, True, 2**63, 2**70, -1, np.float32(0.1), Fraction(1, 3)):
        assert check_vector([big, other], "x")[0] == float(big)
        assert check_vector([0.1, other], "x")[0] == 0.1


def test_losses_are_not_negative():
    assert loss_block(np.array([0.0, -0.0, 1.5])).tolist() == [0.0, 0.0, 1.5]


def read_targets(y_true, y_pred):
    shape, records = Records.of((y_true, y_pred), private_n=False)
    return targets(records, columns=shape.columns(), private_n=False).arrays


def test_targets_agree_in_shape():
    y, p = read_targets([[1.0], [2.0]], [1.0, 2.0])
    assert y.shape == p.shape == (2,)
    y, p = read_targets([[1.0, 2.0]], [[1.0, 2.0]])
    assert y.shape == p.shape == (1, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, bool])
@pytest.mark.parametrize("wrap", [np.asarray, pd.Series])
def test_arrays_of_numbers_are_never_copied_as_a_whole(dtype, wrap):
    data = wrap(np.zeros(10, dtype=dtype))
    assert np.shares_memory(as_numbers(data, "x", allow_2d=False, private_n=False), np.asarray(data))


def test_blocks_of_float64_are_not_copied():
    block = np.zeros(10)
    assert float_block(block, "x") is block
    assert float_block(block[::2], "x").flags.c_contiguous


PRIVATE_N = {"epsilon": 1.0, "neighboring": "add_or_remove_one"}


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2], ["a", "b"], ["a", "b", "c"]])
def test_labels_tell_the_columns_of_an_empty_list(labels):
    for metric in (dp.private_log_loss, dp.private_brier_score_loss):
        assert 0 <= metric([], [], labels=labels, **PRIVATE_N) <= 37
    dp.private_probability_report([], [], labels=labels, **PRIVATE_N)


@pytest.mark.parametrize("metric", [dp.private_mse, dp.private_rmse, dp.private_r2_score, dp.private_mae])
def test_weights_or_the_other_argument_tell_the_outputs_of_an_empty_list(metric):
    assert isinstance(metric([], [], multioutput=[0.5, 0.5], **PRIVATE_N), float)
    for data in (([], np.empty((0, 2))), (np.empty((0, 2)), [])):
        assert metric(*data, multioutput="raw_values", **PRIVATE_N).shape == (2,)
    assert metric(np.empty(0), np.empty(0), multioutput="raw_values", **PRIVATE_N).shape == (1,)
    assert 0 <= dp.private_accuracy_score([], np.empty((0, 2)), **PRIVATE_N) <= 1


@pytest.mark.parametrize("first", [True, False])
def test_an_empty_list_is_a_chunk_like_any_other(first):
    chunks = [
        (dp.LossSummary(dp.private_log_loss, labels=[0, 1, 2]), ([0], np.array([[0.25, 0.25, 0.5]]))),
        (dp.LossSummary(dp.private_mse), (np.ones((3, 2)), np.zeros((3, 2)))),
        (dp.LossSummary(dp.private_mse, multioutput=[1, 2]), (np.ones((3, 2)), np.zeros((3, 2)))),
    ]
    for summary, chunk in chunks:
        alone = type(summary)(
            {"private_mse": dp.private_mse}.get(summary._name, dp.private_log_loss), **summary._options
        )
        for data in [([], []), chunk] if first else [chunk, ([], [])]:
            summary.update(*data)
        assert summary.to_bytes() == alone.update(*chunk).to_bytes()


# 1e-4000, which is 0 where long doubles are doubles
SMALL = np.array([np.ldexp(np.longdouble(1), -13288), 1, 1])


@pytest.mark.skipif(SMALL[0] == 0.0, reason="long doubles are no longer than doubles here")
def test_long_doubles_raise_nothing_whatever_numpy_is_told():
    with np.errstate(all="raise"):
        dp.private_mae(SMALL, SMALL, epsilon=1.0)
        dp.private_mae([1, 2, 3], [1, 2, 3], epsilon=1.0, sample_weight=SMALL)
        dp.private_mse(np.ones((2, 3)), np.ones((2, 3)), epsilon=1.0, multioutput=SMALL)
        dp.private_log_loss([0, 1, 1], SMALL, epsilon=1.0)
        dp.private_variance(SMALL, epsilon=1.0)
        with pytest.raises(ValueError, match="too large"):
            dp.private_variance(1 / SMALL, epsilon=1.0)


@pytest.mark.parametrize("bounds", [(0, 5e-324), (0, 1e-200), (1e-310, 1e-309)])
def test_tiny_bounds_raise_nothing_whatever_numpy_is_told(bounds):
    y, options = [0.0, 1e-310, 2.0], {"bounds": bounds, "epsilon": 1.0}
    with np.errstate(all="raise"):
        for metric in (dp.private_mse, dp.private_r2_score, dp.private_mean_pinball_loss):
            metric(y, y, **options)
        for metric in (dp.private_mean, dp.private_variance):
            metric(y, **options)
        dp.private_quantile(y, 0.5, **options)


def test_large_integer_labels_are_told_apart():
    first, second = 2**53, 2**53 + 1
    losses = [
        dp.private_log_loss([label] * 500, [1.0] * 500, labels=[first, second], epsilon=10.0)
        for label in (first, second)
    ]
    assert losses[0] > 20
    assert losses[1] < 1
    for true, pred in ((np.array([second] * 500), np.full(500, 2.0**53)), ([second] * 500, [first] * 500)):
        assert dp.private_accuracy_score(true, pred, epsilon=10.0) < 0.1
        assert dp.private_accuracy_score(pred, true, epsilon=10.0) < 0.1


def test_a_scorer_takes_an_array_of_output_weights():
    dp.make_private_scorer(dp.private_mse, epsilon=1.0, multioutput=np.array([0.5, 0.5]))


@pytest.mark.parametrize(
    ("y_score", "expected"),
    [
        ([1, -2, 3], [1, -2, 3]),
        ([[1], [-2], [3]], [1, -2, 3]),
        ([[0.75, 0.25], [0.5, 0.5]], [0.25, 0.5]),
        ([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]]),
    ],
)
def test_of_two_columns_of_scores_the_second_counts(y_score, expected):
    for data in (y_score, np.array(y_score, dtype=np.float32)):
        np.testing.assert_array_equal(as_scores(data), expected)


def test_no_score_at_all_is_legal_where_n_is_private():
    for columns in (1, 3):
        records = Records.none(2)
        paired = LabelColumns.of(None, ArgumentShape(columns), "y_score")
        read = labels_and_scores(records, columns=paired, private_n=True)
        assert read.arrays[1].shape == ((0,) if columns == 1 else (0, 3))
