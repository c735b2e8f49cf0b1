"""With a private n, no record at all looks like one record: the form of a call tells what it releases."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import CASES, valid
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.fairness.groups import Groups, by_group
from dp_metrics.inputs.shape import Records
from dp_metrics.release.parts.count_table import CountTable
from dp_metrics.release.parts.mean_loss import MeanLoss
from dp_metrics.release.parts.nested_table import NestedTable
from dp_metrics.release.parts.order_statistic import OrderStatistic
from dp_metrics.release.parts.ranking_loss import RankingLoss
from dp_metrics.release.parts.variance import Variance

REFUSED = repr(None)
PRIVATE_N = {"neighboring": "add_or_remove_one"}
TOP_1 = partial(dp.private_top_k_accuracy_score, k=1)
VALUES = {  # of an argument, for records of several columns
    "y_true": [0, 1, 1],
    "y_pred": [1, 1, 0],
    "rows of labels": [[0, 1], [1, 1], [0, 0]],
    "probabilities": [0.25, 0.75, 0.5],
    "rows of 1": [[0.25], [0.75], [0.5]],
    "rows of 2": [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]],
    "rows of 3": [[0.25, 0.5, 0.25], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]],
}
HOLDERS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "pandas": lambda rows: pd.DataFrame(rows) if np.ndim(rows) == 2 else pd.Series(rows),
    "polars": lambda rows: pl.from_numpy(np.array(rows)) if np.ndim(rows) == 2 else pl.Series(rows),
}
OPTIONS = {  # of the metrics that take them: all that decides about columns
    "multioutput": ["raw_values", "uniform_average", [0.25, 0.75], [1.0, 1.0, 1.0]],
    "labels": [None, [0, 1], [0, 1, 2], ["a", "b"]],
    "average": [None, "macro"],
    "multi_class": ["raise", "ovr"],
    "pos_label": [None, 0],
    "normalize": [None, "all"],
}


def public_facts(query):
    """Return what decides, but for the data, by which law a query is released."""
    if isinstance(query, MeanLoss):
        return "mean", query.part.record_loss.cap, query.part.record_loss.is_count
    if isinstance(query, Variance):
        return "variance", query.part.bounds
    if isinstance(query, OrderStatistic):
        return "order", query.part.limit
    if isinstance(query, CountTable):
        return "counts", query.cells, query.is_partition
    if isinstance(query, NestedTable):
        return "scores", query.columns, np.shape(query.table)
    assert isinstance(query, RankingLoss) or type(query).__name__ == "CalibrationError"
    return (type(query).__name__,)


def outcome(function, data, options):
    """Return the public facts of all releases of a call, or that it is refused."""
    row = CASES_BY_FUNCTION[function].row
    try:
        plan, known = row.read(data, {**row.options, **options}, private_n=True)
    except (ValueError, TypeError):
        return None
    if plan.unstated is not None:
        return None
    return [public_facts(query) for query in known.parts], plan.shares


PRIVATE_CASES = {name: case for name, case in CASES.items() if "neighboring" in case.parameters}
CASES_BY_FUNCTION = {case.function: case for case in PRIVATE_CASES.values()}


def calls():
    for function, case in CASES_BY_FUNCTION.items():
        row = case.row
        names = [name for name in OPTIONS if name in row.options]
        required = {**row.required, **case.options}
        required = {name: value for name, value in required.items() if name not in names}
        for chosen in itertools.product(*(OPTIONS[name] for name in names)):
            options = {**required, **dict(zip(names, chosen, strict=True))}
            yield function, options


def prediction_forms(row):
    if row.predicts_labels:
        return ["y_pred", "rows of labels"]
    if len(row.data) == 1:
        return ["probabilities", "rows of 1", "rows of 2"]
    return ["y_pred", "probabilities", "rows of 1", "rows of 2", "rows of 3"]


@loop_over(("function", "options"), [*calls()])
def test_no_record_is_treated_as_one_record_and_two(function, options):
    """A list holds numbers or rows, and does not say which: none of them has a law that `[]` has not."""
    row = CASES_BY_FUNCTION[function].row
    for holder, hold in HOLDERS.items():
        for form in prediction_forms(row):
            rows = VALUES[form]
            true = rows if form.startswith("rows") and row.data[-1] == "y_pred" else VALUES["y_true"]
            if options.get("labels") == ["a", "b"] and true is VALUES["y_true"]:
                true = ["a", "b", "b"]
                rows = ["b", "b", "a"] if row.predicts_labels and form == "y_pred" else rows
            data = [hold(true), hold(rows)] if len(row.data) == 2 else [hold(rows)]
            none, one, two = (outcome(function, [held[:n] for held in data], options) for n in range(3))
            if hold in (list, tuple):  # where a record is refused for what it is in a list
                assert {repr(one), repr(two)} <= {repr(none), REFUSED}, (holder, form)
            else:
                assert one == two == none, (holder, form)


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (partial(dp.private_mse, multioutput="raw_values"), "arrays"),
        (dp.private_rmse, "arrays"),
        (dp.private_r2_score, "arrays"),
        (dp.private_log_loss, "labels"),
        (dp.private_brier_score_loss, "labels"),
        (dp.private_probability_report, "labels"),
        (TOP_1, "labels"),
    ],
)
@loop_over("rows", [[], [[0.25, 0.75]], [[0.25, 0.75]] * 2, [0.25], [0.25, 0.5]])
def test_a_list_of_a_private_number_of_records_does_not_state_its_columns(call, remedy, rows):
    budget = dp.PrivacyAccountant(1)
    true = rows if remedy == "arrays" else [0] * len(rows)
    if rows and np.ndim(rows) == 1 and call is TOP_1:
        return  # it takes rows only
    with pytest.raises(ValueError, match=rf"^A list does not state how many columns .*pass {remedy}"):
        call(true, rows, epsilon=1.0, accountant=budget, **PRIVATE_N)
    assert budget.spent == 0
    if np.ndim(rows) == 2 or (remedy == "arrays" and rows):
        call(np.array(true), np.array(rows), epsilon=1.0, accountant=budget, **PRIVATE_N)
        assert budget.spent == 1


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_a_brier_score_of_no_record_has_the_limit_of_one(labels):
    """The limit of three labels is 2, and an enormous noise reaches it."""
    values = [
        dp.private_brier_score_loss([], [], labels=labels, epsilon=1e-3, **PRIVATE_N) for _ in range(40)
    ]
    assert (max(values) > 1) == (len(labels) == 3)  # wrong with probability below 1e-8


@pytest.mark.parametrize("name", PRIVATE_CASES)
def test_the_value_of_no_record_is_released_where_the_form_states_the_columns(name):
    case = CASES[name]
    options = {**case.options, **PRIVATE_N}
    if options.get("multi_class") == "ovr":
        options["labels"] = [0, 1, 2]
    case.function(*(array[:0] for array in valid(case)), epsilon=1.0, **options)


def test_the_groups_of_a_list_state_no_columns_either():
    """A group says no more about its columns than all records."""
    features = ["f", "m", "f"]
    _, records = Records.of(([0] * 3, [[0.25, 0.75]] * 3, features), private_n=True)
    coded = Groups.of(["f", "m", "nobody"], 1).coded(records, private_n=True)
    for group in by_group(coded, 3):
        assert group.states_columns == (False, False)


LOG = partial(dp.LossSummary, dp.private_log_loss)
LIST, SINGLE, DOUBLE = ([0], [0.5]), ([0], np.float32([0.5])), ([0], np.float64([0.5]))
FORMS = {  # chunks, and the sizes to which these are cut
    "a list": (LOG, [LIST], [[0], [1]]),
    "a list and an array": (partial(LOG, labels=[0, 1]), [LIST, SINGLE], [[0, 0], [0, 1], [1, 0]]),
    "two types": (LOG, [DOUBLE, SINGLE], [[0, 0], [0, 1], [1, 0]]),
    "columns": (
        partial(dp.LossSummary, dp.private_brier_score_loss),
        [([0], np.array([[0.5]])), ([0], np.array([[0.25, 0.5, 0.25]]))],
        [[0, 0], [0, 1], [1, 0]],
    ),
}


@pytest.mark.parametrize("name", FORMS)
@loop_over("merged", [True, False])
@loop_over("written", [True, False])
def test_a_summary_whose_form_is_left_open_is_for_a_public_n(name, merged, written):
    """With a record in each chunk these do not fit together, or no option states the columns."""
    make, chunks, several = FORMS[name]
    for sizes in several:
        summary = make()
        for chunk, size in zip(chunks, sizes, strict=True):
            part = [held[:size] for held in chunk]
            summary = summary.merge(make().update(*part)) if merged else summary.update(*part)
        if written:
            summary = dp.LossSummary.from_bytes(summary.to_bytes())
        budget = dp.PrivacyAccountant(1)
        with pytest.raises(ValueError, match=r"^The options of the summary leave open what"):
            summary.release(1.0, accountant=budget, **PRIVATE_N)
        assert budget.spent == 0
        if sum(sizes):
            summary.release(1.0, accountant=budget)
    if len(chunks) > 1:
        with pytest.raises(ValueError, match="must have the same number"):
            make().update(*chunks[0]).update(*chunks[1])


ARRAYS = {
    "integers": np.arange(2),
    "floats": np.arange(2.0),
    "truth": np.array([False, True]),
    "text": np.array(["a", "b"]),
    "dates": np.array([0, 1], dtype="M8[D]"),
    "durations": np.array([0, 1], dtype="m8[h]"),
    "months": np.array([0, 1], dtype="m8[M]"),
}


@pytest.mark.parametrize("known", ARRAYS)
@pytest.mark.parametrize("held", ARRAYS)
def test_arrays_that_cannot_hold_a_label_are_refused_without_a_record(known, held):
    def released(n):
        y, proba = ARRAYS[held][:n], np.full((n, 2), 0.5)
        try:
            dp.private_log_loss(y, proba, labels=ARRAYS[known], epsilon=1.0, **PRIVATE_N)
        except ValueError:
            return False
        return True

    numbers = ["integers", "floats", "truth"]
    assert released(0) == released(1) == (known == held or {known, held} <= {*numbers})
