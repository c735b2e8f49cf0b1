"""Every property is tried on each row of the table of metrics, or on one row of each kind.

What the metrics share is tried to the full on a few of them, in the folder where it lives: bad records and
options in tests/inputs, layouts of arrays in test_layouts. The slow tests try every row.
"""

import dataclasses
import inspect
import itertools
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import (
    CASES,
    KINDS,
    PUBLIC_METRICS,
    assert_bad_record_refused,
    cases_where,
    each_case,
    each_kind,
    valid,
    with_sentinel,
)
from helpers import BAD_OPTIONS, MAX, NoEntropy, assert_refused, kind_of, seeded

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
    for name, reason in case.row.refused.items():
        assert_refused(case, valid(case), ValueError, f"takes no {name}: {reason}", **{name: [1.0] * 40})
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
    with pytest.raises(TypeError, match="epsilon"):
        case.function(*valid(case), random_state=NoEntropy(), **case.options)
    with pytest.raises(TypeError):
        case.function(*valid(case), *case.row.required.values(), 1.0, random_state=NoEntropy())


@each_kind
def test_a_parameter_that_a_metric_does_not_have_is_not_ignored(case):
    others = {"sample_weight", "multioutput", "groups", "neighboring", "max_loss", "bounds", "labels"}
    for parameter in sorted({*others, "epsilom"} - case.parameters):
        with pytest.raises(TypeError, match=parameter):
            case(*valid(case), random_state=NoEntropy(), **{parameter: None})


def of_kind(name):
    return () if name in KINDS else pytest.mark.slow


ARGUMENTS = [
    pytest.param(case, position, id=f"{name}, argument {position}", marks=of_kind(name))
    for name, case in CASES.items()
    for position in range(len(case.row.data))
]
each_argument = pytest.mark.parametrize(("case", "position"), ARGUMENTS)
each_argument_of_two = pytest.mark.parametrize(
    ("case", "position"), [argument for argument in ARGUMENTS if len(argument.values[0].row.data) == 2]
)


@each_argument
def test_invalid_data_are_refused_without_a_word_of_the_data(case, position):
    for kind in ("NaN", "infinity", "string"):
        assert_bad_record_refused(case, position, kind)


@each_kind
def test_no_record_at_all_is_refused(case):
    data = [a[:0] for a in valid(case, 3)]
    assert_refused(case, data, ValueError, r"^Found array with 0 sample")


@each_argument_of_two
def test_lengths_that_differ_are_refused(case, position):
    data = with_sentinel(case, position)
    data[position] = data[position][:-1]
    names, sizes = case.row.data, [len(column) for column in data]
    found = f"{sizes}: {names[0]} has {sizes[0]}, {names[1]} has {sizes[1]}."
    match = re.escape(f"Found input variables with inconsistent numbers of samples: {found}")
    assert_refused(case, data, ValueError, f"^{match}$")
    if "neighboring" in case.parameters:
        match = re.escape(f"inconsistent numbers of samples: {names[0]} and {names[1]}.")
        private_n = {"neighboring": "add_or_remove_one"}
        assert_refused(case, [*map(np.array, data)], ValueError, match, **private_n)


@each_argument
def test_more_columns_than_agree_are_refused(case, position):
    data = with_sentinel(case, position)
    columns = np.reshape(data[position], (len(data[position]), -1))
    data[position] = np.column_stack([columns, columns, columns])
    if kind_of(case.row) == "confusion":
        assert_refused(case, data, ValueError, f"^{case.row.data[position]} should be a 1d array")
    elif case.row.predicts_labels:
        assert_refused(case, data, ValueError, "^Classification metrics can't handle a mix")
    elif case.always_bounded and position == 1:
        labels = range(data[1].shape[1] // 3 + 1)
        assert_refused(case, data, ValueError, "^The number of classes in labels is different", labels=labels)
    elif len(data) == 2 and not case.always_bounded:
        assert_refused(case, data, ValueError, "^y_true and y_pred have different number of output")
    else:
        assert_refused(case, data, ValueError, "should be a 1d array")


@pytest.mark.parametrize(
    ("case", "parameter"),
    [
        pytest.param(case, parameter, id=f"{name}, {parameter}", marks=of_kind(name))
        for name, case in CASES.items()
        for parameter in sorted(BAD_OPTIONS.keys() & case.parameters)
    ],
)
def test_public_parameters_that_are_invalid_are_refused_by_name(case, parameter):
    for value in BAD_OPTIONS[parameter][:3]:
        assert_refused(case, with_sentinel(case, 0), ValueError, parameter, **{parameter: value})


@each_kind_with_a_mechanism
def test_no_mechanism_is_the_default_mechanism(case):
    data = valid(case)
    expected = case(*data, random_state=seeded())
    assert case(*data, mechanism=None, random_state=seeded()) == expected
    if case.pick is None:
        assert case(*data, mechanism=case.row.mechanism, random_state=seeded()) == expected


@each_kind_with_a_mechanism
def test_an_unknown_mechanism_is_refused(case):
    data = with_sentinel(case, 0)
    assert_refused(case, data, ValueError, "mechanism must be one of", mechanism="gaussian")
    for wrong in (3, dp.Hazard, object()):
        assert_refused(case, data, TypeError, "mechanism", mechanism=wrong)


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


@each_kind
def test_what_is_no_random_state_is_refused(case):
    for seed in ("1", 1.5, [1], object()):
        assert_refused(case, with_sentinel(case, 0), TypeError, "random_state", random_state=seed)


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
