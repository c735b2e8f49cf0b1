import inspect
import sys
from functools import partial

import numpy as np
import pytest
from helpers import MAX, hostile_values, loop_over
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from dp_metrics.inputs import losses
from dp_metrics.inputs.losses import (
    absolute_error,
    clamp,
    largest_error,
    log_loss,
    log_loss_cap,
    mean_over_outputs,
    squared_error,
)
from dp_metrics.inputs.records import float_block

RESOLUTION = sys.float_info.epsilon


def loss_of(function, cap=None):
    def loss(*records):
        with np.errstate(all="ignore"):
            return clamp(mean_over_outputs(function(*records)), cap)

    return loss


def spread(rng, shape):
    """Return floats of many magnitudes, some of them equal."""
    return rng.choice([-1.0, 1.0], shape) * np.exp(rng.uniform(-30, 30, shape)).round(12)


def probabilities(rng, n, columns):
    p = rng.dirichlet(np.full(max(columns, 2), 0.3), n)[:, :columns]
    p[:: max(n // 7, 1)] = rng.choice([0.0, 1.0, 5e-324, 1 - 2**-53], p[:: max(n // 7, 1)].shape)
    return p


CASES = {
    "squared": (loss_of(squared_error), lambda rng, n: (spread(rng, n), spread(rng, n))),
    "absolute": (loss_of(absolute_error), lambda rng, n: (spread(rng, n), spread(rng, n))),
    "squared, 3 outputs": (loss_of(squared_error), lambda rng, n: (spread(rng, (n, 3)), spread(rng, (n, 3)))),
    "absolute, 19 outputs": (
        loss_of(absolute_error, 1e13),
        lambda rng, n: (spread(rng, (n, 19)), spread(rng, (n, 19))),
    ),
    "log loss, 1 column": (
        loss_of(lambda codes, p: log_loss(codes, p, RESOLUTION)),
        lambda rng, n: (rng.integers(0, 2, n), probabilities(rng, n, 1)),
    ),
    "log loss, 5 columns": (
        loss_of(lambda codes, p: log_loss(codes, p, RESOLUTION)),
        lambda rng, n: (rng.integers(0, 5, n), probabilities(rng, n, 5)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_record_has_the_same_loss_alone_and_in_a_batch_of_any_size(name):
    loss, make = CASES[name]
    n = 1037
    records = make(np.random.default_rng(5), n)
    whole = loss(*records)
    assert whole.shape == (n,)
    alone = np.concatenate([loss(*(a[i : i + 1] for a in records)) for i in range(n)])
    np.testing.assert_array_equal(alone.view(np.int64), whole.view(np.int64))
    for size in (2, 3, 5, 8, 13, 64, 500):
        for start in (0, 1, 7, 30):
            part = loss(*(a[start : start + size] for a in records))
            np.testing.assert_array_equal(part.view(np.int64), whole[start : start + size].view(np.int64))
    order = np.random.default_rng(6).permutation(n)
    np.testing.assert_array_equal(loss(*(a[order] for a in records)), whole[order])
    np.testing.assert_array_equal(loss(*(np.asfortranarray(a)[::-2] for a in records)), whole[::-2])


@given(
    st.lists(st.tuples(hostile_values, hostile_values), min_size=1, max_size=9), st.sampled_from([1, 3, None])
)
def test_losses_are_finite_and_within_their_cap_whatever_the_data(pairs, cap):
    y, p = np.array(pairs).T
    for kernel in (squared_error, absolute_error):
        losses = loss_of(kernel, cap)(y, p)
        assert (losses >= 0).all()
        assert (losses <= (MAX if cap is None else cap)).all()
        both = loss_of(kernel, cap)(np.array(pairs), np.array(pairs)[:, ::-1])
        assert (both >= 0).all()
        assert (both <= (MAX if cap is None else cap)).all()


@given(hostile_values, hostile_values, st.lists(st.tuples(hostile_values, hostile_values), min_size=1))
def test_no_loss_within_the_bounds_exceeds_the_largest_error(low, high, pairs):
    low, high = min(low, high), max(low, high)
    y, p = np.clip(np.array(pairs), low, high).T
    for kernel in (squared_error, absolute_error):
        assert (loss_of(kernel)(y, p) <= largest_error(kernel, (low, high))).all()


@pytest.mark.parametrize(
    ("kernel", "bounds", "expected"),
    [
        (squared_error, (-0.5, 2.5), 9.0),
        (absolute_error, (-0.5, 2.5), 3.0),
        (squared_error, (-1e308, 1e308), MAX),
        (absolute_error, (-1e308, 1e308), MAX),
        (squared_error, (0.0, 1e200), MAX),
    ],
)
def test_the_largest_error_is_the_width_or_its_square(kernel, bounds, expected):
    assert largest_error(kernel, bounds) == expected


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_log_losses_are_those_of_scikit_learn(columns):
    rng = np.random.default_rng(columns)
    codes = rng.integers(0, max(columns, 2), 50)
    p = rng.dirichlet(np.ones(max(columns, 2)), 50)
    ours = log_loss(codes, p[:, 1:] if columns == 1 else p, RESOLUTION)
    theirs = [
        metrics.log_loss([code], row[np.newaxis], labels=range(max(columns, 2)))
        for code, row in zip(codes, p, strict=True)
    ]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_cap_of_a_log_loss_is_the_loss_at_the_clipped_probability(dtype):
    resolution = float(np.finfo(dtype).eps)
    cap = log_loss_cap(resolution, None)
    assert cap == -np.log(resolution)
    codes, p = np.array([0, 1, 0, 1]), np.array([[1.0], [0.0], [0.0], [1.0]])
    losses = log_loss(codes, p, resolution)
    assert losses[:2].tolist() == [cap, cap]
    assert (losses[2:] <= resolution * 1.01).all()
    assert (losses >= 0).all()
    assert log_loss_cap(resolution, 3.5) == 3.5
    assert log_loss_cap(resolution, 1000.0) == cap


def test_outputs_are_averaged_uniformly():
    losses = np.array([[1.0, 2.0, 6.0], [0.0, 0.0, 0.75]])
    np.testing.assert_array_equal(mean_over_outputs(losses), [3.0, 0.25])
    np.testing.assert_array_equal(losses, [[1.0, 2.0, 6.0], [0.0, 0.0, 0.75]])


def test_clamping_leaves_no_overflow():
    np.testing.assert_array_equal(clamp(np.array([0.0, 2.0, np.inf]), None), [0.0, 2.0, MAX])
    np.testing.assert_array_equal(clamp(np.array([0.0, 2.0, np.inf]), 1.5), [0.0, 1.5, 1.5])


@loop_over("y", [0.0, 5e-324, 1e-300, 1.0, 1e300, MAX])
@loop_over("p", [5e-324, 1e-300, 1.0, 1e300, MAX])
def test_losses_are_never_nan(y, p):
    with np.errstate(all="ignore"):
        for loss in (losses.poisson_deviance, losses.squared_log_error, losses.absolute_percentage_error):
            assert not np.isnan(losses.clamp(loss(np.array([y]), np.array([p])), None)).any()
        deviance = losses.clamp(losses.poisson_deviance(np.array([y]), np.array([p])), None)[0]
    if y < p / 1e20 and p < MAX:
        assert deviance == pytest.approx(2 * p, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_pinball_loss_of_differences_that_overflow_is_no_nan(alpha):
    with np.errstate(all="ignore"):
        found = losses.pinball_loss(np.array([MAX, -MAX]), np.array([-MAX, MAX]), alpha=alpha)
    assert found.tolist() == [alpha * MAX, (1.0 - alpha) * MAX]


@pytest.mark.parametrize(("alpha", "cap"), [(0.25, 6.0), (0.5, 4.0), (0.75, 6.0)])
def test_the_largest_error_of_an_asymmetric_loss_is_that_of_its_steeper_side(alpha, cap):
    assert largest_error(partial(losses.pinball_loss, alpha=alpha), (-3.0, 5.0)) == cap


def record_loss(loss, **options):
    read = partial(float_block, name="y")
    return losses.RecordLoss(loss, reads=(read, read), **options)


def of_targets(name):
    return list(inspect.signature(getattr(losses, name)).parameters)[:2] == ["y_true", "y_pred"]


PAIRS = {
    **{name: getattr(losses, name) for name in losses.__all__ if name.islower() and of_targets(name)},
    "pinball_loss": partial(losses.pinball_loss, alpha=0.3),
    "RecordLoss, bounds": record_loss(losses.squared_error, bounds=(0.1, 2.5)),
    "RecordLoss": record_loss(losses.squared_error),
}
WIDE = {  # with their arguments' rows of several columns
    "RecordLoss, weights": record_loss(losses.absolute_error, output_weights=np.array([0.1, 0.2, 0.7])),
    "mean_over_outputs": lambda y, p: losses.mean_over_outputs(losses.squared_error(y, p)),
}
CODED = {
    "log_loss": partial(losses.log_loss, resolution=2.0**-52),
    "brier_loss": partial(losses.brier_loss, half=False),
    "brier_loss, half": partial(losses.brier_loss, half=True),
}
OTHERS = {
    "identity": lambda y, p: losses.identity(p),
    "zero_one_loss": lambda y, p: losses.zero_one_loss(y > p),
    "clamp": lambda y, p: losses.clamp(p, 1.5),
}
NO_LOSSES = {"FINITE_FOR_FINITE_ONLY", "brier_loss_cap", "largest_error", "log_loss_cap"}


def test_every_loss_is_tried():
    tried = {name.split(",")[0] for table in (PAIRS, WIDE, CODED, OTHERS) for name in table}
    assert tried == set(losses.__all__) - NO_LOSSES


def assert_no_place_matters(loss, *arrays):
    """Compare the losses of all blocks of 1 to 70 records, from any offset, with those of records alone."""
    alone = np.concatenate([loss(*(a[i : i + 1].copy() for a in arrays)) for i in range(len(arrays[0]))])
    for length in range(1, 71):
        for offset in range(9):
            part = slice(offset, offset + length)
            for block in ([a[part] for a in arrays], [a[part].copy() for a in arrays]):
                assert loss(*block).tobytes() == alone[part].tobytes()


def numbers(shape):
    rng = np.random.default_rng(7)
    wild = 2.0 ** rng.uniform(-60, 60, shape)
    return np.where(rng.random(shape) < 0.2, wild, rng.gamma(1.0, 1.0, shape))


@pytest.mark.parametrize("name", [*PAIRS, *OTHERS])
def test_a_loss_does_not_depend_on_the_place_of_its_record_in_a_block(name):
    both = numbers((2, 80))
    assert_no_place_matters((PAIRS | OTHERS)[name], *both)


@pytest.mark.parametrize("name", WIDE)
def test_a_loss_of_several_outputs_does_not_depend_on_the_place_of_its_record(name):
    assert_no_place_matters(WIDE[name], *numbers((2, 80, 3)))


@loop_over("columns", [1, 2, 5])
@pytest.mark.parametrize("name", CODED)
def test_a_loss_of_probabilities_does_not_depend_on_the_place_of_its_record(name, columns):
    rng = np.random.default_rng(0)
    p = rng.random((80, columns)) ** rng.integers(1, 40, (80, 1))
    assert_no_place_matters(CODED[name], rng.integers(0, max(columns, 2), 80), p)
