"""Losses of single records: finite, within their cap, and the same bits wherever a record stands."""

import itertools
from functools import partial

import numpy as np
import pytest
from helpers import HOSTILE, MAX, loop_over
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics.inputs import losses
from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.losses import RecordLoss, absolute_error, clamp, largest_error, log_loss, squared_error

RNG = np.random.default_rng(7)
PINBALL = partial(losses.pinball_loss, alpha=0.3)
OF_POSITIVE = losses.poisson_deviance, losses.squared_log_error, losses.absolute_percentage_error
ALL = np.array([*HOSTILE, *(-value for value in HOSTILE)])
PAIRS = np.array([*itertools.product(ALL, repeat=2)]).T


@loop_over("loss", [squared_error, absolute_error, PINBALL, *OF_POSITIVE])
@loop_over("cap", [1, 3, None])
def test_losses_are_finite_and_within_their_cap_whatever_the_data(loss, cap):
    pairs = PAIRS[:, (PAIRS[0] >= 0) & (PAIRS[1] > 0)] if loss in OF_POSITIVE else PAIRS
    with np.errstate(all="ignore"):
        found = clamp(loss(*pairs), cap)
        several = clamp(losses.mean_over_outputs(np.column_stack([loss(*pairs)] * 3)), cap)
    for each in (found, several):
        assert (each >= 0).all()
        assert (each <= (MAX if cap is None else cap)).all()


@loop_over(("low", "high"), itertools.combinations(sorted({*ALL.tolist()}), 2))
def test_the_largest_error_is_that_of_some_pair_within_the_bounds(low, high):
    clipped = np.clip(PAIRS, low, high)
    for loss in (squared_error, absolute_error, PINBALL):
        with np.errstate(all="ignore"):
            assert clamp(loss(*clipped), None).max() == largest_error(loss, (low, high))


@loop_over("dtype", [np.float16, np.float32, np.float64])
def test_the_cap_of_a_log_loss_is_the_loss_at_the_clipped_probability_as_scikit_learns(dtype):
    resolution = float(np.finfo(dtype).eps)
    cap = losses.log_loss_cap(resolution, None)
    assert cap == losses.log_loss_cap(resolution, 1000.0) == -np.log(resolution)
    assert losses.log_loss_cap(resolution, 3.5) == 3.5
    found = log_loss(np.array([0, 1, 0, 1]), np.array([[1.0], [0.0], [0.0], [1.0]]), resolution)
    assert found[:2].tolist() == [cap, cap]
    assert ((found[2:] >= 0) & (found[2:] <= resolution * 1.01)).all()
    y, p = np.array([0, 1, 0, 1] * 50), np.array([1.0, 0.0, 0.25, 0.75] * 50, dtype=dtype)
    near = {"rel": 1e-3 if dtype == np.float16 else 1e-6}
    assert dp.private_log_loss(y, p, epsilon=1e11) == pytest.approx(sk.log_loss(y, p), **near)


def test_only_the_probability_of_the_true_label_matters_and_rows_need_not_sum_to_one():
    y, p = RNG.integers(0, 3, 300), RNG.dirichlet(np.ones(3), 300) / 2
    of_true = p[np.arange(300), y]
    other = RNG.random(p.shape)
    other[np.arange(300), y] = of_true
    for proba in (p, other):
        assert dp.private_log_loss(y, proba, epsilon=1e11) == pytest.approx(-np.log(of_true).mean())


def test_losses_whose_parts_overflow_are_those_of_their_limits():
    with np.errstate(all="ignore"):
        pinball = PINBALL(np.array([MAX, -MAX]), np.array([-MAX, MAX]))
        deviances = losses.poisson_deviance(np.array([0.0, 5e-324, 1e-300]), np.array([1e-200, 1.0, 1e300]))
    assert pinball.tolist() == [0.3 * MAX, 0.7 * MAX]
    assert deviances == pytest.approx([2e-200, 2.0, 2e300], rel=1e-9)


def record_loss(loss, **options):
    read = partial(float_block, name="y")
    return RecordLoss(loss, reads=(read, read), **options)


def numbers(*shape):
    wild = 2.0 ** RNG.uniform(-60, 60, shape)
    return np.where(RNG.random(shape) < 0.2, wild, RNG.gamma(1.0, 1.0, shape))


def coded(columns):
    p = RNG.random((80, columns)) ** RNG.integers(1, 40, (80, 1))
    return RNG.integers(0, max(columns, 2), 80), p


ONE, THREE = numbers(2, 80), numbers(2, 80, 3)
LOSSES = {
    "squared_error": (squared_error, ONE),
    "absolute_error": (absolute_error, ONE),
    "pinball_loss": (PINBALL, ONE),
    **{loss.__name__: (loss, ONE) for loss in OF_POSITIVE},
    "identity": (losses.identity, ONE[:1]),
    "zero_one_loss": (lambda y, p: losses.zero_one_loss(y > p), ONE),
    "clamp": (lambda p: clamp(p, 1.5), ONE[:1]),
    "RecordLoss": (record_loss(squared_error), ONE),
    "RecordLoss, bounds": (record_loss(squared_error, bounds=(0.1, 2.5)), ONE),
    "RecordLoss, weights": (record_loss(absolute_error, output_weights=np.array([0.1, 0.2, 0.7])), THREE),
    "mean_over_outputs": (lambda y, p: losses.mean_over_outputs(squared_error(y, p)), THREE),
    **{
        f"{name}, {columns}": (loss, coded(columns))
        for columns in (1, 2, 5)
        for name, loss in {
            "log_loss": partial(log_loss, resolution=2.0**-52),
            "brier_loss": partial(losses.brier_loss, half=False),
            "brier_loss, half": partial(losses.brier_loss, half=True),
        }.items()
    },
}


def test_every_loss_is_tried():
    own = {name for name, one in vars(losses).items() if getattr(one, "__module__", "") == losses.__name__}
    public = {name for name in own if name[0] != "_"}
    others = {"largest_error", "log_loss_cap", "with_largest"}
    assert {name.split(",")[0] for name in LOSSES} == public - others


@loop_over("name", LOSSES)
def test_a_loss_does_not_depend_on_the_place_of_its_record_in_a_block(name):
    """Of all blocks of 1 to 70 records, from any offset: as of records alone."""
    loss, arrays = LOSSES[name]
    alone = np.concatenate([loss(*(a[i : i + 1].copy() for a in arrays)) for i in range(80)])
    for length, offset in itertools.product(range(1, 71), range(9)):
        part = slice(offset, offset + length)
        for block in ([a[part] for a in arrays], [a[part].copy() for a in arrays]):
            assert loss(*block).tobytes() == alone[part].tobytes()
