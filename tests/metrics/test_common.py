"""Every property is tried on each row of the table of metrics, or on one row of each kind.

What the metrics share is tried to the full on a few of them, in the folder where it lives: bad records and
options in tests/inputs, layouts of arrays in test_layouts. The slow tests try every row.
"""

import dataclasses
import inspect
import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import (
    CASES,
    KINDS,
    PUBLIC_METRICS,
    cases_where,
    each_case,
    each_kind,
    valid,
    with_sentinel,
)
from helpers import MAX, NoEntropy, assert_refused, seeded

import dp_metrics as dp
from dp_metrics.metrics import FUNCTIONS, METRICS

# what every metric takes besides its data and its options
SETTINGS = (
    "epsilon",
    "neighboring",
    "mechanism",
    "accountant",
    "random_state",
    "spend_name",
)
each_kind_with_a_mechanism = cases_where(lambda case: case.row.mechanism is not None, KINDS)
NEED_A_LIMIT = ["inverse_sensitivity", "piecewise_laplace", "laplace", "geometric"]


def test_every_metric_is_public_and_in_the_table():
    assert {case.name for case in CASES.values()} == METRICS.keys() == FUNCTIONS.keys()
    public = {getattr(dp, name) for name in PUBLIC_METRICS}
    assert public == {getattr(dp, name) for name in METRICS} == set(FUNCTIONS.values())
    for name in dp.__all__:
        assert hasattr(dp, name)


@each_case
def test_the_row_of_the_catalogue_says_what_the_function_takes(case):
    parameters = inspect.signature(case.function).parameters
    own = {name: p.default for name, p in parameters.items() if name not in {*case.row.data, *SETTINGS}}
    required = dict.fromkeys(case.row.required, inspect.Parameter.empty)
    assert own == {**case.row.options, **required, **dict.fromkeys(case.row.refused)}
    assert case.bounded.keys() == (case.row.limit or {}).keys()
    assert len(valid(case)) == len(case.row.data) == len(case.row.from_unit(np.array([0.0, 1.0])))


SAME_VALUES = {
    "list": lambda a: a.tolist(),
    "Series or DataFrame": lambda a: (pd.Series if a.ndim == 1 else pd.DataFrame)(
        a, index=range(len(a), 0, -1)
    ),
    "float32": lambda a: a.astype(np.float32),
    "reversed strides": lambda a: a[::-1].copy()[::-1],
}


@each_kind
def test_the_data_are_left_alone(case):
    data = valid(case)
    copies = [a.copy() for a in data]
    case(*data, random_state=seeded(), **case.bounded)
    for array, copy in zip(data, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@cases_where(lambda case: case.zero is not None)
def test_zero_is_about_zero(case):
    data = [np.zeros_like(a) for a in valid(case, 200)]
    if case.always_bounded and data[-1].ndim == 2:
        data[1][:, 0] = 1.0  # all probability on label 0
    for settings in ({}, case.bounded):
        released = case(*data, epsilon=1.0, random_state=seeded(), **settings)
        # of 200 records, and added noise counts for a few of them
        added = case.row.mechanism == "geometric"
        assert abs(released - case.zero) < (0.05 if added else 0.02 if case.rooted else 1e-3)


MEANS = ("mse", "mse, 3 outputs", "mae", "mae, 2 outputs", "variance", "mean loss")


@pytest.mark.parametrize("name", MEANS)
def test_losses_that_overflow_saturate(name):
    case = CASES[name]
    for huge, mechanism in itertools.product((1e200, 1e308, MAX), ("hazard", "above_threshold")):
        data = [np.full_like(a, huge) for a in valid(case, 4)]
        exact = huge
        if name != "mean loss":
            data[0][::2] *= -1  # every second error, or deviation from the mean, is huge
            exact = MAX if name.startswith(("mse", "variance")) else min(huge, MAX / 2)
        released = case(*data, epsilon=1e6, mechanism=mechanism, random_state=seeded())
        assert released == MAX or released == pytest.approx(exact, rel=0.05), (huge, mechanism)


@cases_where(lambda case: {"bounds", "max_loss"} & case.parameters)
def test_values_outside_the_bounds_are_clipped_to_them(case):
    if case.name == "private_mean":
        case = dataclasses.replace(case, bounded=case.options)
    if "bounds" not in case.bounded:
        data = valid(case)
        low = case(*data, epsilon=1e11, max_loss=0.5, random_state=seeded())
        assert low <= 0.5
        return
    data = [a * 3 for a in valid(case)]
    expected = case.exact_function(*(np.clip(a, *case.bounded["bounds"]) for a in data))
    released = case(*data, epsilon=1e11, random_state=seeded(), **case.bounded)
    assert released == pytest.approx(expected, rel=1e-6, abs=case.tolerance)


@each_case
def test_only_the_data_are_positional_and_epsilon_has_no_default(case):
    parameters = inspect.signature(case.function).parameters
    keyword_only = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    positional = [name for name in parameters if name not in keyword_only]
    assert positional == [*case.row.data, *(name for name in case.row.required if name not in keyword_only)]
    assert {"epsilon", "random_state", "accountant"} <= keyword_only
    assert parameters["epsilon"].default is inspect.Parameter.empty
    if case.row.mechanism is None:
        assert "mechanism" not in parameters
    else:
        assert parameters["mechanism"].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters["mechanism"].default in (None, case.row.mechanism)
    assert parameters["random_state"].default is None


@each_kind_with_a_mechanism
def test_no_mechanism_is_the_default_mechanism(case):
    data = valid(case)
    expected = case(*data, random_state=seeded())
    assert case(*data, mechanism=None, random_state=seeded()) == expected
    if case.pick is None:
        assert case(*data, mechanism=case.row.mechanism, random_state=seeded()) == expected


@each_kind_with_a_mechanism
def test_a_mechanism_that_needs_a_limit_says_which_argument_to_pass(case):
    for mechanism in NEED_A_LIMIT:
        if case.always_bounded:
            assert case(*valid(case), mechanism=mechanism, random_state=seeded()) <= case.limit
            continue
        (argument,) = case.bounded
        assert_refused(case, with_sentinel(case, 0), ValueError, argument, mechanism=mechanism)
        with pytest.raises(NoEntropy.Drawn):
            case(*valid(case), mechanism=mechanism, random_state=NoEntropy(), **case.bounded)


@pytest.mark.parametrize("multioutput", ["raw_values", "uniform_average"])
@each_kind
def test_the_parts_of_epsilon_of_a_call_are_positive_and_add_up_to_it_exactly(case, multioutput):
    options = {name: value for name, value in case.options.items() if name in case.row.options}
    if "multioutput" in case.row.options:
        options["multioutput"] = multioutput
    plan, _ = case.row.read(valid(case), options, private_n=False)
    parts = plan.epsilons(Fraction(3, 10))
    assert len(parts) == len(plan.parts)
    assert min(parts) > 0
    assert sum(parts) == Fraction(3, 10)
