"""With a private n, no record at all looks like one record: the form of a call tells what it releases."""

import itertools
import pickle
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import CASES, PRIVATE_N
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.inputs.options import Relation

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
FACTS = ("cap", "bounds", "limit", "cells", "is_partition", "columns")
ROWS = {case.row: case for case in CASES.values() if "neighboring" in case.parameters}


def law_of(quantity):
    """Return what decides, but for the data, by which law a quantity is released."""
    holders = (getattr(quantity, "record_loss", quantity), quantity)
    return [type(quantity).__name__, *(getattr(one, fact, None) for one in holders for fact in FACTS)]


def laws(row, data, options):
    """Return the laws of all releases of a call, or None if it is refused."""
    try:
        query, *_ = row.read(data, {**row.options, **options}, relation=Relation.ADD_OR_REMOVE_ONE)
    except (ValueError, TypeError):
        return None
    return None if query.unstated is not None else repr(([*map(law_of, query.quantities)], query.shares))


def calls():
    for row, case in ROWS.items():
        names = [name for name in OPTIONS if name in row.options]
        required = {**row.required, **case.options}
        for chosen in itertools.product(*(OPTIONS[name] for name in names)):
            yield row, {**required, **dict(zip(names, chosen, strict=True))}


def forms(row):
    if row.predicts_labels:
        return ["y_pred", "rows of labels"]
    several = ["probabilities", "rows of 1", "rows of 2"]
    return several if len(row.data) == 1 else ["y_pred", *several, "rows of 3"]


@pytest.mark.gate
@loop_over(("row", "options"), [*calls()])
def test_no_record_is_treated_as_one_record_and_two(row, options):
    """A list holds numbers or rows, and does not say which: none of them has a law that `[]` has not."""
    for (holder, hold), form in itertools.product(HOLDERS.items(), forms(row)):
        rows = VALUES[form]
        true = rows if form.startswith("rows") and row.data[-1] == "y_pred" else VALUES["y_true"]
        if options.get("labels") == ["a", "b"] and true is VALUES["y_true"]:
            true = ["a", "b", "b"]
            rows = ["b", "b", "a"] if row.predicts_labels and form == "y_pred" else rows
        data = [hold(true), hold(rows)] if len(row.data) == 2 else [hold(rows)]
        none, one, two = (laws(row, [held[:n] for held in data], options) for n in range(3))
        if hold in (list, tuple):  # where a record is refused for what it is in a list
            assert {one, two} <= {none, None}, (holder, form)
        else:
            assert one == two == none, (holder, form)


LOG, BRIER = (partial(dp.Summary, loss) for loss in (dp.private_log_loss, dp.private_brier_score_loss))
LIST, SINGLE, DOUBLE = ([0], [0.5]), ([0], np.float32([0.5])), ([0], np.float64([0.5]))
ONE, THREE = ([0], np.array([[0.5]])), ([0], np.array([[0.25, 0.5, 0.25]]))
OPEN = {  # chunks, and the sizes to which these are cut
    "a list": (LOG, [LIST], [[0], [1]]),
    "a list and an array": (partial(LOG, labels=[0, 1]), [LIST, SINGLE], [[0, 0], [0, 1], [1, 0]]),
    "two types": (LOG, [DOUBLE, SINGLE], [[0, 0], [0, 1], [1, 0]]),
    "columns": (BRIER, [ONE, THREE], [[0, 0], [0, 1], [1, 0]]),
}


@loop_over("name", OPEN)
@loop_over("merged", [True, False])
@loop_over("written", [True, False])
def test_a_summary_whose_form_is_left_open_is_for_a_public_n(name, merged, written):
    """With a record in each chunk these do not fit together, or no option states the columns."""
    make, chunks, several = OPEN[name]
    for sizes in several:
        summary = make()
        for chunk, size in zip(chunks, sizes, strict=True):
            part = [held[:size] for held in chunk]
            summary = summary.merge(make().update(*part)) if merged else summary.update(*part)
        if written:
            summary = pickle.loads(pickle.dumps(summary))
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


@loop_over(("known", "held"), itertools.product(ARRAYS, ARRAYS))
def test_arrays_that_cannot_hold_a_label_are_refused_without_a_record(known, held):
    fits = known == held or {known, held} <= {"integers", "floats", "truth"}
    for n in (0, 1):
        data = ARRAYS[held][:n], np.full((n, 2), 0.5)
        with nullcontext() if fits else pytest.raises(ValueError, match="labels"):
            dp.private_log_loss(*data, labels=ARRAYS[known], epsilon=1.0, **PRIVATE_N)
