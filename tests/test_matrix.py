"""Properties of all metrics, each tried on every case of `cases.py` through the doors of `doors.py`.

A property is one function. It is tried on one case of each kind in every run, and on all others with the slow
tests. What is peculiar to one metric, mechanism or door is tried in the folder of that.
"""

import contextlib
import dataclasses
import inspect
import itertools
import math
import re
import warnings
from fractions import Fraction
from importlib import import_module

import doors
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import (
    ADD_OR_REMOVE,
    BAD_RECORDS,
    CASES,
    KINDS,
    PUBLIC_METRICS,
    RELATIONS,
    REPLACE,
    Call,
    cases_where,
    each_case,
    each_kind,
    made_for,
    persons,
    valid,
    variations,
    varied_data,
)
from helpers import MAX, REFUSED, NoEntropy, assert_same, bits, seeded

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, PrivacyBudgetError
from dp_metrics.inputs.arrays import BLOCK
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics import METRICS

SURE = 1e11  # an epsilon at which there is no noise to speak of

CONTAINERS = {
    "list": lambda a: a.tolist(),
    "float32": lambda a: a.astype(np.float32),
    "reversed strides": lambda a: a[::-1].copy()[::-1],
    "tuple": lambda a: (*map(tuple, a),) if a.ndim == 2 else (*a,),
    # whatever writes into the data raises here
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "every second one": lambda a: np.asfortranarray(np.repeat(a, 2, axis=0))[::2],
    "big endian": lambda a: a.astype(">f8"),
    "not aligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(float).reshape(a.shape),
    "long double": lambda a: a.astype(np.longdouble),
    "objects": lambda a: a.astype(object),
    "one column": lambda a: a[:, np.newaxis] if a.ndim == 1 else a,
    "pandas": lambda a: (pd.Series if a.ndim == 1 else pd.DataFrame)(a, index=range(len(a), 0, -1)),
    "nullable": lambda a: (pd.Series if a.ndim == 1 else pd.DataFrame)(a).convert_dtypes(),
    "polars": lambda a: pl.Series(a) if a.ndim == 1 else pl.DataFrame(a),
    "pyarrow": lambda a: (
        pa.array(a) if a.ndim == 1 else pa.table({str(i): a[:, i] for i in range(a.shape[1])})
    ),
}
EXACT = ("private_r2_score",)  # of one record R^2 is 0/0


def refusal(function, *data, **settings):
    """Return the error that a call raises, or None."""
    try:
        function(*data, **settings)
    except REFUSED as error:
        return error
    return None


def test_every_metric_is_public_and_has_a_case():
    assert {case.name for case in CASES.values()} == METRICS.keys()
    public = {getattr(dp, name) for name in PUBLIC_METRICS}
    assert public == {getattr(dp, name) for name in METRICS} == {row.function for row in METRICS.values()}


# ---- numbers -----------------------------------------------------------------------------------------------


@each_case
def test_without_noise_it_is_the_metric_of_scikit_learn_or_numpy(case):
    for n in (2, 300) if case.name in EXACT else (1, 2, 300):
        data = valid(case, n)
        exact = case.exact_function(*data)
        for settings in ({}, case.bounded):
            released = doors.call(case, data, epsilon=SURE, random_state=seeded(), **settings)
            assert released == pytest.approx(exact, rel=1e-6, abs=case.tolerance)


@cases_where(lambda case: case.row.mechanism is not None)
def test_without_noise_every_mechanism_tells_the_metric_under_both_relations(case):
    """All that are exact as executed; the comparators are drawn as floats."""
    data = valid(case, 60)
    exact = case.exact_function(*data)
    for relation, mechanism in itertools.product(RELATIONS, ("adaptive", "hazard", "geometric")):
        settings = case.under(relation)
        is_area = case.name == "private_roc_auc_score"
        if settings is None or (is_area and (relation, mechanism) == (ADD_OR_REMOVE, "geometric")):
            continue
        settings |= {"mechanism": mechanism, **case.bounded}
        released = doors.call(case, data, epsilon=SURE, random_state=seeded(), **settings)
        # an area and a quantile are values on a grid
        near = {"rel": 1e-5, "abs": max(case.tolerance, 1e-5)}
        assert released == pytest.approx(exact, **near), (relation, mechanism)


# scores are counted in bins, and a quantile is a value on a grid
OF_ITS_OWN = {"roc curve", "precision-recall curve", "average precision", "quantile"}


@cases_where(lambda case: "." in case.row.exact_function)
def test_with_each_of_its_options_it_is_the_metric_of_scikit_learn_or_numpy(case):
    call = Call(case.key, REPLACE, "plain")
    module, _, name = case.row.exact_function.rpartition(".")
    exact_function = getattr(import_module(module), name)
    taken = {*inspect.signature(exact_function).parameters}
    for variation, more in [("as it is", {}), *variations(call)]:
        # without noise each record counts, whoever it is of
        if case.key in OF_ITS_OWN or not taken | {"groups"} >= more.keys():
            continue
        if case.key == "brier, 3 labels" and "scale_by_half" not in taken:  # scikit-learn before 1.7
            continue
        data, options = varied_data(call, variation, 300), {**case.options, **made_for(more, 300)}
        released = case.function(*data, epsilon=SURE, random_state=seeded(), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what an average ignores
            exact = exact_function(*data, **{option: options[option] for option in taken & options.keys()})
        assert flat(released) == pytest.approx(flat(exact), rel=1e-5, abs=1e-5), variation


def flat(found):
    """Return the numbers of a result, in the order in which they stand there."""
    if isinstance(found, dict):
        return [number for part in found.values() for number in flat(part)]
    if isinstance(found, str):
        return [float(number) for number in re.findall(r"\b\d+\.\d{2,}|\b\d{2,}", found)]
    return np.ravel(np.asarray(found, dtype=float)).tolist()


@each_kind
def test_the_same_values_give_the_same_bits_in_every_container_and_order(case):
    for n, settings in itertools.product((40, BLOCK + 3000), ({}, case.bounded)):
        data = valid(case, n)
        expected = doors.call(case, data, random_state=seeded(), **settings)
        order = np.random.default_rng(1).permutation(n)
        assert doors.call(case, [a[order] for a in data], random_state=seeded(), **settings) == expected
        for container, hold in CONTAINERS.items() if n == 40 else ():
            held = [hold(array) for array in data]
            assert doors.call(case, held, random_state=seeded(), **settings) == expected, container


@each_kind
def test_integers_and_booleans_are_numbers(case):
    for dtype in (int, np.int8, np.uint64, bool):
        data = [np.maximum(np.abs(np.round(a)), case.zero is None).astype(dtype) for a in valid(case)]
        expected = doors.call(case, [a.astype(float) for a in data], random_state=seeded())
        assert doors.call(case, data, random_state=seeded()) == expected, dtype


@each_case
def test_a_release_is_a_float_within_the_public_range(case):
    data = valid(case)
    for epsilon, mechanism in itertools.product([1e-300, 0.1, 1e300], case.mechanisms):
        settings = {"epsilon": epsilon, "random_state": seeded(), **case.by(mechanism)}
        released = doors.call(case, data, **settings, **case.bounded)
        assert type(released) is float, (epsilon, mechanism)
        assert case.lowest <= released <= case.limit, (epsilon, mechanism)


@cases_where(lambda case: {"bounds", "max_loss"} & case.parameters)
def test_values_outside_the_bounds_are_clipped_to_them(case):
    if case.name == "private_mean":
        case = dataclasses.replace(case, bounded=case.options)
    takes_weights = "sample_weight" in case.parameters - case.row.refused.keys()
    for weight in (np.ones(40, int), np.arange(40) % 3) if takes_weights else (np.ones(40, int),):
        weights = {"sample_weight": weight} if takes_weights else {}
        if "bounds" not in case.bounded:  # a mean of losses, each of which a record alone has
            data = valid(case)
            losses = [case.exact_function(*(a[i : i + 1] for a in data)) for i in range(40)]
            cap = float(np.median(losses))
            released = case(*data, epsilon=SURE, max_loss=cap, random_state=seeded(), **weights)
            assert released == pytest.approx(np.average(np.minimum(losses, cap), weights=weight), rel=1e-6)
            continue
        data = [a * 3 for a in valid(case)]
        repeated = (np.repeat(np.clip(a, *case.bounded["bounds"]), weight, axis=0) for a in data)
        released = case(*data, epsilon=SURE, random_state=seeded(), **case.bounded, **weights)
        assert released == pytest.approx(case.exact_function(*repeated), rel=1e-6, abs=case.tolerance)


@cases_where(lambda case: case.row.mechanism is not None, KINDS)
def test_no_mechanism_is_the_default_mechanism(case):
    data = valid(case)
    expected = case(*data, random_state=seeded())
    assert case(*data, mechanism=None, random_state=seeded()) == expected
    if case.pick is None:
        assert case(*data, mechanism=case.row.mechanism, random_state=seeded()) == expected


@pytest.mark.parametrize("multioutput", ["raw_values", "uniform_average"])
@each_kind
def test_the_parts_of_epsilon_of_a_call_are_positive_and_add_up_to_it_exactly(case, multioutput):
    options = {name: value for name, value in case.options.items() if name in case.row.options}
    if "multioutput" in case.row.options:
        options["multioutput"] = multioutput
    query, *_ = case.row.read(valid(case), options, relation=Relation.REPLACE_ONE)
    shares = query.shares or (Fraction(1, len(query.quantities)),) * len(query.quantities)
    assert len(shares) == len(query.quantities)
    assert min(shares) > 0
    assert sum(shares) == 1


@cases_where(lambda case: {"groups", "sample_weight"} & {*case.parameters}, KINDS)
def test_weights_of_1_and_persons_of_one_record_say_nothing(case):
    """A release has the same bits, and so the noise, as if nothing had been said."""
    data = valid(case, 200)
    groups = {"groups": np.arange(200)[::-1]}
    expected = doors.call(case, data, epsilon=3.0, random_state=seeded())
    for said in ({"sample_weight": np.ones(200)}, groups, {**groups, "equal_groups": True}):
        if said.keys() <= case.parameters - case.row.refused.keys():
            assert_same(doors.call(case, data, epsilon=3.0, random_state=seeded(), **said), expected)


@cases_where(lambda case: case.row.usual.merges)
def test_chunks_and_dask_collections_give_the_bits_of_the_call_with_each_option(case):
    case, call = dataclasses.replace(case, pick=None), Call(case.key, REPLACE, "plain")
    for variation, more in [("as it is", {}), ("limited", case.bounded), *variations(call)]:
        if "groups" in more:  # of persons all records have to be in one chunk
            continue
        data = varied_data(call, variation, 300)
        settings = {"epsilon": 1.0, **made_for(more, 300)}
        expected = doors.call(case, data, random_state=seeded(), **settings)
        for door in (doors.chunks, doors.dask):
            assert_same(door(case, data, random_state=seeded(), **settings), expected)


@each_case
def test_files_and_scorers_give_the_bits_of_the_call(case, tmp_path):
    data = valid(case, 300)
    expected = doors.call(case, data, epsilon=1.0, random_state=seeded())
    assert doors.scorer(case, data, epsilon=1.0, random_state=seeded()) in (None, expected)
    assert doors.file(case, data, tmp_path, epsilon=1.0, random_state=seeded()) in (None, expected)


ON_PAGES = {
    "selection rate", "prevalence",
    "mse", "rmse", "r2", "mae", "median error", "accuracy", "precision", "recall", "specificity", "f1",
    "macro f1", "balanced accuracy", "roc auc", "average precision", "brier",
}  # fmt: skip


@each_case
def test_a_group_of_a_frame_and_a_page_tell_the_metric_of_their_records(case):
    data = valid(case, 300)
    of = {"case": case, "data": data, "epsilon": SURE}
    expected = doors.call(**of, random_state=seeded())
    on_page = doors.number_of_page(**of, random_state=seeded())
    assert (on_page is None) == (case.key not in ON_PAGES)
    # the grid of an AUC follows from the number of records; a page counts scores in bins
    for found, near_areas in ((doors.frame(**of, random_state=seeded()), 2e-3), (on_page, 0.01)):
        near = near_areas if case.name == "private_roc_auc_score" else 1e-5
        assert found is None or found == pytest.approx(expected, rel=near, abs=max(case.tolerance, 1e-6))


@each_case
def test_what_is_stored_is_what_was_released(case, tmp_path):
    data = valid(case, 60)
    first, again = doors.stored(case, data, tmp_path / "budget", epsilon=1.0)
    assert bits(again) == bits(first)


@pytest.mark.parametrize("name", [*sorted(KINDS), *sorted(doors.RELEASES.keys() - doors.UNSEEDED)])
def test_a_seed_fixes_a_release_and_without_one_it_is_fresh(name):
    release = doors.release_of(name)
    for make in (lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        with pytest.warns(dp.exceptions.SeededReleaseWarning, match="not private") as caught:
            first, second = (repr(release(epsilon=1.0, random_state=make())) for _ in range(2))
        assert {warning.filename for warning in caught} in ({__file__}, {doors.__file__})
        assert second == first
    # so many equal ones have probability below 1e-6: one value of a few noisy counts may be as likely as 0.6
    epsilon, times = (1e-9 if name == "choice" else 1.0), (60 if name in {*KINDS, "choice"} else 4)
    assert len({repr(release(epsilon=epsilon)) for _ in range(times)}) > 1


# ---- privacy -----------------------------------------------------------------------------------------------


@each_case
def test_epsilon_is_spent_once_before_the_draw_and_after_the_checks(case):
    data = valid(case)
    for relation in RELATIONS:
        settings, accountant = case.under(relation), PrivacyAccountant(1.0)
        if settings is None:
            continue
        paid = {**settings, "accountant": accountant}
        with pytest.raises(NoEntropy.Drawn):
            doors.call(case, data, epsilon=0.25, random_state=NoEntropy(), **paid)
        assert [spend.epsilon for spend in accountant.history] == [0.25]
        with pytest.raises(ValueError, match="NaN"):
            doors.call(case, [a * math.nan for a in data], epsilon=0.25, **paid)
        doors.call(case, data, epsilon=0.5, **paid)
        assert [spend.epsilon for spend in accountant.history] == [0.25, 0.5]
        with pytest.raises(PrivacyBudgetError):
            doors.call(case, data, epsilon=0.5, random_state=NoEntropy(), **paid)
        assert accountant.spent == 0.75


EXTREMES = (0.0, 5e-324, 1e-200, 1e16, 1e200, 1e308, MAX)


@pytest.mark.gate
@each_kind
@pytest.mark.parametrize("relation", RELATIONS)
def test_nothing_raises_after_the_spend(case, relation):
    """With warnings and NumPy's complaints as errors: a refusal comes before, or there is a number."""
    settings = case.under(relation)
    if settings is None:
        return
    several = [valid(case, n) for n in ((1, 2) if relation == REPLACE else (0, 1))]
    # with a private number of records bounds for all ranks take long
    for extreme in EXTREMES if relation == REPLACE else (0.0, 5e-324, 1e200, MAX):
        data = [array.copy() for array in valid(case, 5)]
        data[-1][2] = extreme
        several.append(data)
    for data, epsilon, mechanism in itertools.product(several, (5e-324, 1.0, MAX), case.mechanisms):
        accountant = PrivacyAccountant(MAX)
        options = {**settings, **case.by(mechanism), "epsilon": epsilon, "accountant": accountant}
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)  # which comes before the spend
            warnings.simplefilter("ignore", dp.exceptions.LargeEpsilonWarning)
            error = refusal(doors.call, case, data, **options)
        assert len(accountant.history) == (error is None), (error, epsilon, mechanism)


@each_kind
@pytest.mark.filterwarnings("ignore")
def test_a_result_has_numbers_and_limits_or_a_reason_whatever_epsilon_and_bounds_are(case):
    """Noise may be beyond all floats, and bounds so close that a loss is none; limits are in order."""
    close = {"bounds": (0.0, 1e-300), "max_loss": 1e-300}
    close = {name: close[name] for name in case.bounded}
    mechanisms = dict.fromkeys((None, "geometric" if case.row.mechanism else None))
    once = {"groups": persons(150), "equal_groups": True} if "equal_groups" in case.parameters else {}
    ways = [*map(case.under, RELATIONS), once]
    bounded = (case.bounded, close) if close else ({},)
    several = itertools.product(ways, (5e-324, 1e-300, 1.0), mechanisms, bounded, range(3))
    for settings, epsilon, mechanism, limited, seed in several:
        if settings is None:
            continue
        options = {**settings, **limited, **case.by(mechanism), "epsilon": epsilon}
        try:
            result = doors.result(case, valid(case, 150), **options, random_state=seeded(seed))
        except REFUSED:  # an epsilon whose parts are no floats
            continue
        assert np.isfinite(doors.picked(case, result.value)).all(), options
        for limits in (result.noise_interval, result.population_interval):
            with contextlib.suppress(ValueError):  # some have none, and say why
                lower, upper = limits()
                assert np.less_equal(lower, upper).all(), options


# ---- bad input ---------------------------------------------------------------------------------------------


WRONG_VALUES = (
    "NaN", "NaN in float32", "infinity", "minus infinity", "None among records", "string", "string object",
    "3-D", "scalar", "empty", "one number as text",
)  # fmt: skip


@cases_where(lambda case: case.reference is None and "sklearn" in case.row.exact_function, KINDS)
def test_what_scikit_learn_refuses_is_refused_with_its_type(case):
    for place, kind in itertools.product(range(len(case.row.data)), WRONG_VALUES):
        data = [*valid(case, 6)]
        data[place] = BAD_RECORDS[kind][0](data[place].tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = refusal(case.exact_function, *data)
        budget = PrivacyAccountant(1.0)
        ours = refusal(doors.call, case, data, accountant=budget, random_state=seeded())
        assert budget.spent == (ours is None)
        # a TypeError is often none of its checks: NumPy compares or converts what it cannot
        same = isinstance(ours, ValueError if isinstance(theirs, ValueError) else REFUSED)
        assert theirs is None or same, (place, kind, ours, theirs)


# ---- what is said of a release -----------------------------------------------------------------------------


# which need not rise with any count
WITHOUT_LIMITS = ("private_cohen_kappa_score", "private_matthews_corrcoef")


@cases_where(lambda case: case.pick is None, KINDS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_limits_of_the_noise_hold_the_metric_of_the_records(case, relation):
    """At 99 %, of 25 releases: more than 4 misses come less than once in 10^6 runs."""
    settings = case.under(relation)
    if settings is None or (relation == ADD_OR_REMOVE and case.row.disclosing(case.options)):
        return
    data, missed = valid(case, 400), 0
    exact, settings = case.exact_function(*data), {**settings, **case.bounded}
    for seed in range(25):
        released = doors.result(case, data, epsilon=1.0, random_state=seeded(seed), **settings)
        if refusal(doors.limits, released) is not None:
            assert case.name in WITHOUT_LIMITS
            return
        lower, upper = doors.limits(released, confidence=0.99)
        missed += not lower - case.tolerance <= exact <= upper + case.tolerance
    assert missed <= 4


@cases_where(lambda case: case.pick is None, KINDS)
def test_planned_errors_are_those_of_releases(case):
    """Of 60 releases: a mean of theirs is off by more than a half of that in less than one run of 10^4."""
    data = valid(case, 400)
    planned = doors.plan(case, data, epsilon=1.0, **case.bounded).error
    exact = case.exact_function(*data)
    errors = [
        abs(doors.call(case, data, epsilon=1.0, random_state=seeded(seed), **case.bounded) - exact)
        for seed in range(60)
    ]
    assert 0.5 < np.mean(errors) / planned < 1.7
