"""The line between what is public and what is private: no field of anything public reaches a record.

A query follows from options and from the public form of the records, so queries of neighbours are the same.
That results follow from what was released, whatever the records are, `tests/test_replay.py` says.
"""

import contextlib
import gc
import pickle
import warnings
from dataclasses import replace
from types import CodeType, FunctionType, ModuleType

import numpy as np
import pytest
from cases import ADD_OR_REMOVE, CALLS, REPLACE, made_for, records, variations, varied_data
from helpers import loop_over, seeded, system_of

from dp_metrics import private_evaluate
from dp_metrics.analysis.auditing import AUDITED
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.models import NamedColumns
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.mechanisms._laws import ApproximateLaw, GeometricLaw
from dp_metrics.mechanisms.comparators import LaplaceLaw
from dp_metrics.mechanisms.hazard import HazardLaw
from dp_metrics.metrics._metric import WEIGHTS
from dp_metrics.quantities.base import Stats
from dp_metrics.quantities.mean import MeanStats
from dp_metrics.quantities.ranks import CappedSumsLaw
from dp_metrics.quantities.tables import TableLaw
from dp_metrics.release.query import Source
from dp_metrics.release.release import PreparedQuery, prepared_releases
from dp_metrics.sensitivity.exact import VarianceAggregate
from dp_metrics.sensitivity.output_bounds import Extremes, OutputBounds

PRIVATE = (
    Records, NamedColumns, Source, PreparedQuery, MeanStats, Stats,
    OutputBounds, Extremes, HazardLaw, LaplaceLaw, GeometricLaw,
    ApproximateLaw, TableLaw, CappedSumsLaw, VarianceAggregate,
)  # fmt: skip
NO_METRIC = ("private_mean_interval", "private_quantile_interval", "private_compare")
N = 211  # nothing public of the tests' table has this length
each_call = loop_over("call", CALLS)


def varied(call, n=N):
    """Yield the name of each variation of a call that is served, its options, and n records."""
    for name, more in [("as it is", {}), *variations(call)]:
        options = {**call.case.row.options, **call.options, **made_for(more, n)}
        if call.relation == REPLACE or not call.case.row.disclosing(options):
            yield name, options, varied_data(call, name, n)


def planned(call, options, data):
    """Return the public form of records, the query of a call, and the records."""
    row = call.case.row
    of_records = {name: options.get(name) for name in WEIGHTS if name in row.options}
    shape, private = Records.of(data, relation=Relation(call.relation), **of_records)
    own = {name: value for name, value in options.items() if name in row.options}
    return shape, row.planned(shape, own), private


def with_extreme_record(data):
    """Return the same with another last record."""
    changed = [np.array(a) for a in data]
    for array in changed:
        array[-1] = array.dtype.type("zzzz" if array.dtype.kind == "U" else np.finfo(array.dtype).max)
    return changed


def neighbours(call, data):
    """Yield data of other contents, and where the number of records is private, of other lengths."""
    yield with_extreme_record(data)
    if call.relation == ADD_OR_REMOVE:
        yield from ([a[:n] for a in data] for n in (len(data[0]) - 1, 1, 0))
        yield [np.concatenate([a, a[:1]]) for a in with_extreme_record(data)]


def reachable(start):
    """Yield what a value holds, and what that holds: not the modules and the classes that it refers to."""
    seen, left = {}, [start]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | CodeType):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, FunctionType):
            left += [one.__closure__, one.__defaults__, one.__kwdefaults__]
        elif isinstance(one, np.ndarray):
            left += [one.base, *(one.ravel().tolist() if one.dtype == object else ())]
        else:
            left += gc.get_referents(one)


def assert_holds_no_record(public, data):
    """Check that nothing in it is as long as the records, is private, or shares memory with them."""
    for one in reachable(public):
        assert not isinstance(one, PRIVATE)
        if isinstance(one, np.ndarray):
            assert not any(np.shares_memory(one, array) for array in data)
        if isinstance(one, tuple | list) or (isinstance(one, np.ndarray) and one.ndim):
            assert len(one) < N - 1


# ---- queries -----------------------------------------------------------------------------------------------


@pytest.mark.gate
@each_call
def test_plans_hold_no_record_and_those_of_neighbours_are_the_same(call):
    for name, options, data in varied(call):
        public = {**options, "sample_weight": None, "groups": None}
        shape, query, private = planned(call, public, data)
        query.read(private)
        assert_holds_no_record((shape, query), data)
        shape, query, _ = planned(call, options, data)
        assert pickle.loads(pickle.dumps(query)) == query, name
        for other in neighbours(call, data):
            of_other, its_plan, _ = planned(call, options, other)
            assert (of_other, its_plan) == (shape, query), name
            assert (hash(of_other), hash(its_plan)) == (hash(shape), hash(query)), name
            assert pickle.dumps((of_other, its_plan)) == pickle.dumps((shape, query)), name


@each_call
def test_lists_tell_no_more_of_a_private_number_of_records(call):
    if call.relation == REPLACE:
        return
    for name, options, data in varied(call):
        queries = [planned(call, options, [a[:n].tolist() for a in data])[1] for n in (0, 1, N)]
        assert queries[1] == queries[2], name
        # an empty list does not tell the number of columns: that may decide how it is read, and no more
        released = [replace(query, reader=queries[1].reader) for query in queries]
        assert released[0] == released[1] or all(query.unstated is not None for query in queries), name


def test_other_options_are_another_plan():
    (call,) = (call for call in CALLS if str(call) == "mse/replace_one/plain")
    queries = [planned(call, options, data)[1] for _, options, data in varied(call)]
    assert 3 < len({*queries}) <= len(queries)
    assert all((a == b) == (hash(a) == hash(b)) for a in queries for b in queries)


@loop_over("name", [name for name in AUDITED if name.startswith(NO_METRIC)])
def test_plans_of_intervals_and_comparisons_are_public(name):
    (released, records_of, _), queries = AUDITED[name], []
    data = [np.asarray(a, dtype=float) for a in records_of(np.linspace(0.001, 0.999, N))]
    for x in (data, with_extreme_record(data)):
        with prepared_releases() as prepared:
            released(*x, epsilon=1)
        queries.append(prepared[0][0])
    query, same = queries
    assert query == same == pickle.loads(pickle.dumps(query))
    assert hash(query) == hash(same)
    assert pickle.dumps(query) == pickle.dumps(same)
    assert_holds_no_record(query, data)


# ---- results -----------------------------------------------------------------------------------------------


@pytest.mark.gate
@each_call
def test_a_result_leads_to_no_record(call):
    """Nor do the noises in it: that neighbours have the same of both, `tests/test_replay.py` says."""
    data = records(call.name, N)
    held = recognisable(data)
    for mechanism in filter(call.is_served, ("default", *MECHANISMS)):
        with warnings.catch_warnings(), system_of(seeded()):
            warnings.simplefilter("ignore", UserWarning)
            result = call.release(data, mechanism, epsilon=1)
        written = pickle.dumps(result)
        assert not [value for value in held if value in written], mechanism
        assert result.deployment is not None
        with contextlib.suppress(ValueError):  # some have none
            assert_holds_no_record(result.noise_interval(), data)
        for one in (result, pickle.loads(written)):
            assert_holds_no_record(one, data)


def recognisable(data):
    """Return the bytes of all values that occur by chance nowhere else, in both orders of bytes."""
    values = np.concatenate([np.ravel(a) for a in data])
    rare = np.unique(values[np.ldexp(values, 30) != np.rint(np.ldexp(values, 30))])
    return [value.tobytes() for value in [*rare.astype("<f8"), *rare.astype(">f8")]]


@pytest.mark.gate
def test_no_record_can_be_reached_from_a_page():
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, (2, N))
    for public, true, *predicted in (
        ({"labels": [0, 1]}, y, *rng.random((2, N))),
        ({"labels": range(3)}, y, *rng.dirichlet(np.ones(3), (2, N))),
        ({"task": "regression"}, *rng.random((3, N))),
    ):
        name = "y_pred" if "task" in public else "y_score" if predicted[0].ndim == 1 else "y_proba"
        page = private_evaluate(
            true, **{name: predicted[0]}, **public, baseline=predicted[1], sensitive_features=group,
            group_labels=[0, 1], epsilon=9.0,
        )  # fmt: skip
        page.to_html()
        page.to_json()
        assert_holds_no_record(page, (true, *predicted, group))
        assert len(page.released) > 2


def test_records_that_are_held_are_found():
    data = records("mse", N)
    assert len(recognisable(data)) > N
    assert recognisable(data)[0] in pickle.dumps(data)
    for held in (data, [data[0].tolist()], {"x": lambda: data}, Records(data)):
        with pytest.raises(AssertionError):
            assert_holds_no_record(held, data)
