"""Errors of regression: options beside scikit-learn's, shares of epsilon, and how accurate they are."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import MAX, loop_over

import dp_metrics as dp
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import MECHANISMS, Hazard
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.regression import r2_from_parts
from dp_metrics.quantities.base import Totals
from dp_metrics.release.query import Terms


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
@pytest.mark.parametrize(
    "metric", [dp.private_mse, pytest.param(dp.private_r2_score, marks=pytest.mark.slow)]
)
@loop_over("mechanism", MECHANISMS)
@loop_over("is_seeded", [False, True])
def test_every_output_has_a_draw_of_its_own(metric, mechanism, is_seeded):
    """Two equal columns give one output with a probability below 0.1 (seen: up to 0.05, from 600 calls each).

    A right sampler then fails each unseeded case with a probability below 1e-11.
    """
    y, error = np.random.default_rng(0).normal(size=(2, 100))
    data = [np.column_stack([column, column]) for column in (y, y + error)]
    options = {"epsilon": 4.0, "bounds": (-4, 4), "multioutput": "raw_values", "mechanism": mechanism}
    releases = [metric(*data, random_state=seed if is_seeded else None, **options) for seed in range(50)]
    assert sum(first != second for first, second in releases) > 25


@loop_over("mechanism", MECHANISMS)
def test_bounds_so_close_that_their_square_underflows_leave_only_zero(mechanism):
    settings = {"bounds": (0, 1e-200), "epsilon": 1.0, "mechanism": mechanism}
    assert dp.private_mse([0.0, 0.0], [0.0, 1.0], **settings) == 0.0


def test_r2_is_always_finite():
    """Of releases `test_matrix.py` says so."""
    assert r2_from_parts(0.0, 0.0) == 1.0
    assert r2_from_parts(1.0, 0.0) == 0.0
    assert r2_from_parts(MAX, 5e-324) == -MAX


@loop_over(
    ("name", "columns", "options", "shares"),
    [
        ("private_mse", 3, {"multioutput": "raw_values"}, [Fraction(1, 3)] * 3),
        ("private_r2_score", 2, {"error_share": 0.7}, [Fraction(7, 20)] * 2 + [Fraction(3, 20)] * 2),
    ],
)
def test_several_numbers_have_exact_shares_of_epsilon(name, columns, options, shares):
    y = np.arange(10.0 * columns).reshape(10, columns)
    query, *_ = METRICS[name].read((y, y), options, relation=Relation.REPLACE_ONE)
    noises, _ = query.noises(
        Terms(Fraction(3, 10), Relation.REPLACE_ONE, Hazard()), [Totals.of(10)] * len(shares)
    )
    assert [noise.epsilon for noise in noises] == [Fraction(3, 10) * share for share in shares]
