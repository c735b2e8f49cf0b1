"""One record, whatever it is, changes nothing about how the others are read."""

import datetime
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import CASES, valid
from helpers import kind_of, loop_over

import dp_metrics as dp
from dp_metrics import auditing
from dp_metrics.fairness.groups import Groups, by_group
from dp_metrics.inference.paired_losses import paired_losses
from dp_metrics.inputs.containers import array_of
from dp_metrics.inputs.labels import as_label_pairs, as_labels
from dp_metrics.inputs.records import as_numbers, as_probabilities, as_scores
from dp_metrics.inputs.shape import Records

REFUSED = (ValueError, TypeError)
BIG = 2**60 + 1  # no float64: rounded by whoever makes floats of all integers


class Floating:
    """A number of somebody else's."""

    def __float__(self):
        return 0.25


class Failing:
    """Whatever is asked of it fails, with the data in its message."""

    def _fail(self, *_):
        raise RuntimeError("987654.25")

    __float__ = __eq__ = __ne__ = __hash__ = __index__ = _fail


class Array:
    def __init__(self, *shape):
        self.shape_of = shape

    def __array__(self, dtype=None, copy=None):
        return np.full(self.shape_of, 0.25, dtype=dtype)


ODD = {
    "text": "a",
    "digits": "5",
    "bytes": b"5",
    "NumPy's text": np.str_("5"),
    "None": None,
    "NaN": math.nan,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "big": BIG,
    "beyond int64": 2**64,
    "beyond float64": 10**400,
    "float": 0.25,
    "whole float": 5.0,
    "float32": np.float32(0.1),
    "long double": np.longdouble("0.1"),
    "truth": True,
    "decimal": Decimal("0.1"),
    "signaling": Decimal("sNaN"),
    "fraction": Fraction(1, 3),
    "complex": 1j,
    "date": datetime.date(1987, 6, 5),
    "NumPy's time span": np.timedelta64(5, "s"),
    "no dimension": np.array(0.25),
    "one element": np.array([0.25]),
    "row": [0.25, 0.75],
    "row of text": ["a", 0.0],
    "long row": (0.25, 0.5, 0.25),
    "empty row": [],
    "dictionary": {"income": 0.25},
    "set": {0.25},
    "slice": slice(None),
    "floating": Floating(),
    "failing": Failing(),
    "array without a dimension": Array(),
    "array of two": Array(2),
}
OBJECTS = {  # containers that hold whatever they are given
    "list": list,
    "tuple": tuple,
    "objects": lambda records: as_objects(records),
    "pandas": lambda records: pd.Series(as_objects(records), dtype=object),
}
READERS = {
    "numbers": partial(as_numbers, name="y", allow_2d=True, private_n=False),
    "probabilities": as_probabilities,
    "scores": as_scores,
    "labels that are numbers": partial(as_labels, labels=np.array([0, 1])),
    "labels that are text": partial(as_labels, labels=np.array(["a", "b"])),
    "labels of any type": lambda data: as_label_pairs(data, data)[0],
}


def as_objects(records):
    """Return records as an array of objects, none of which NumPy takes apart."""
    array = np.empty(len(records), dtype=object)
    for place, record in enumerate(records):
        array[place] = record
    return array


def read(reader, hold, records):
    """Return what is made of records, or None if they are refused."""
    try:
        return READERS[reader](OBJECTS[hold](records))
    except REFUSED as error:
        said = f"{error} {error.__cause__} {error.__context__}"
    assert "987654" not in said
    return None


def form(hold, record):
    """Return the public form that one record has: the shape of its row."""
    try:
        return array_of(OBJECTS[hold]([record])).shape[1:]
    except REFUSED:
        return None


@pytest.mark.parametrize("hold", OBJECTS)
@pytest.mark.parametrize("reader", READERS)
def test_each_record_is_read_or_refused_by_itself(reader, hold):
    """Of all pairs of odd and ordinary records: both are accepted if each is alone, and made the same of."""
    records = [*ODD.values(), 0.5, 1, 0, "b", BIG - 1, [0.5, 0.5], [1, BIG]]
    alone = [read(reader, hold, [record]) for record in records]
    forms = [form(hold, record) for record in records]
    assert sum(one is not None for one in alone) >= 2  # so that there are pairs to accept
    for i, j in itertools.product(range(len(records)), repeat=2):
        found = read(reader, hold, [records[i], records[j]])
        if alone[i] is None or alone[j] is None or forms[i] != forms[j]:
            assert found is None, (records[i], records[j])
        else:
            assert found.dtype == alone[i].dtype == alone[j].dtype
            np.testing.assert_array_equal(found, np.concatenate([alone[i], alone[j]]), strict=True)


# what is put into one argument of a metric: each has changed how NumPy reads the others
DANGEROUS = [
    "text",
    "digits",
    "NaN",
    "None",
    "big",
    "float",
    "whole float",
    "float32",
    "decimal",
    "row",
    "row of text",
]


def with_row(values, odd):
    """Replace the third of some records by an odd one, whose columns are repeated where there are several."""
    row = values[2]
    several = isinstance(row, list) and not isinstance(odd, list)
    return [*values[:2], [odd] * len(row) if several else odd, *values[3:]]


def loss_or_none(function, data, other, **options):
    """Return the exact privacy loss, or None if the changed data are refused."""
    try:
        function(*other, epsilon=1.0, random_state=0, **options)
    except REFUSED:
        return None
    return auditing.metric_loss(function, data, other, epsilon=1.0, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "neighboring", ["replace_one", pytest.param("add_or_remove_one", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if kind_of(case.row) != "joint"])
def test_no_record_costs_more_than_epsilon_in_a_list(name, neighboring):
    case = CASES[name]
    data = [array.tolist() for array in valid(case, 6)]
    if not case.row.predicts_labels:  # large integers, which floats beside them would round
        data = [[*values[:-1], with_row(values, BIG)[2]] for values in data]
    options = {**case.options, "neighboring": neighboring}
    try:
        case.function(*data, epsilon=1.0, random_state=0, **options)
    except REFUSED:
        data = [array.tolist() for array in valid(case, 6)]
    for place, kind in itertools.product(range(len(data)), DANGEROUS):
        other = [*data]
        other[place] = with_row(data[place], ODD[kind])
        loss = loss_or_none(case.function, data, other, **options)
        factor = 2 if neighboring == "add_or_remove_one" else 1  # a replaced record is one less and one more
        assert loss is None or loss <= factor * (1 + 1e-9), (place, kind)


SEX = ["f", "m"] * 3
FRAMES = {
    "labels of several outputs": (dp.private_accuracy_score, [[1.0, 0.0]] * 6, [[1, 0]] * 6, ["a", 0.0]),
    "large integers": (dp.private_accuracy_score, [[BIG, 0]] * 6, [[BIG, 0]] * 6, [5.0, 0]),
    "float32": (dp.private_log_loss, [0] * 6, [np.float32([0, 1])] * 6, np.float64([0, 1])),
    "targets": (partial(dp.private_mse, bounds=(0, 1)), [[1, 0]] * 6, [[1, 0]] * 6, ["a", 0]),
}


@pytest.mark.parametrize("name", FRAMES)
@loop_over("neighboring", ["replace_one", "add_or_remove_one"])
@loop_over("places", [[0], [1], [0, 1]])
def test_a_row_in_a_list_changes_no_other_row_of_a_frame(name, neighboring, places):
    metric, true, pred, odd = FRAMES[name]
    if name == "float32" and neighboring == "add_or_remove_one":
        metric = partial(metric, labels=[0, 1])  # which tell the columns
    other = [[*true], [*pred]]
    for place in places:
        other[place][2] = odd
    options = {"group_labels": ["f", "m"], "epsilon": 1.0, "neighboring": neighboring}
    try:
        dp.PrivateMetricFrame(
            metrics=metric, y_true=other[0], y_pred=other[1], sensitive_features=SEX, **options
        )
    except REFUSED:
        assert name != "large integers"  # which each metric of labels takes
        return
    loss = auditing.frame_loss(metric, (true, pred, SEX), (*other, SEX), **options)
    assert loss <= (1 if neighboring == "replace_one" else 2) * (1 + 1e-9)


def test_the_limit_of_a_log_loss_is_that_of_float64_in_every_list():
    """Rows of float32 too: one row of float64 among them would change the limit of all."""
    rows = [np.float32([0.0, 1.0])] * 2000
    frame = dp.PrivateMetricFrame(
        metrics=dp.private_log_loss, y_true=[0] * 2000, y_pred=rows, epsilon=100.0, membership="public",
        sensitive_features=["f", "m"] * 1000, group_labels=["f", "m"],
    )  # fmt: skip
    assert min(frame.by_group.values()) > 30
    assert dp.private_log_loss([0] * 2000, rows, epsilon=100.0) > 30


def groups_of(data, by):
    """Return what two groups hold of the same data twice."""
    _, records = Records.of((data, data, by), private_n=False)
    return [group.arrays[0] for group in by_group(Groups.of([0, 1], 1).coded(records, private_n=False), 2)]


@pytest.mark.parametrize("hold", [list, tuple, as_objects])
def test_groups_hold_the_rows_as_they_came(hold):
    first, second = groups_of(hold([[1.0, "a"], [BIG, None], [0, 1]]), [0, 1, 0])
    assert [list(row) for row in first] == [[1.0, "a"], [0, 1]]
    assert [list(row) for row in second] == [[BIG, None]]


def test_a_group_without_records_has_the_columns_of_the_others():
    for data in ([[1, 2], [3, 4]], np.ones((2, 2)), pl.DataFrame({"a": [1, 2], "b": [3, 4]})):
        _, empty = groups_of(data, [0, 0])
        assert empty.shape == (0, 2)


class Fickle:
    """A label that is equal to "a" for some time, and then fails with the data in its message."""

    def __init__(self, patience):
        self.patience = patience

    def __eq__(self, other):
        self.patience -= 1
        if self.patience < 0:
            raise RuntimeError("987654.25")
        return isinstance(other, str) and other == "a"

    def __ne__(self, other):
        return other is not self and not self == other

    def __hash__(self):
        return hash("a")


@loop_over("patience", range(1, 6))
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (dp.private_accuracy_score, {"mechanism": "adaptive"}),
        (dp.private_zero_one_loss, {"mechanism": "hazard"}),
        (dp.private_log_loss, {"labels": ["a", "b"]}),
        (partial(dp.private_top_k_accuracy_score, k=1), {"labels": ["a", "b"], "mechanism": "adaptive"}),
        (dp.private_confusion_matrix, {"labels": ["a", "b"]}),
    ],
)
def test_an_object_is_looked_at_before_the_spend_only(metric, options, patience):
    true = [Fickle(patience), *["a", "b"] * 1000]
    probabilities = metric is not dp.private_confusion_matrix and "labels" in options
    pred = [[0.5, 0.5] if probabilities else "a"] * len(true)
    budget, said = dp.PrivacyAccountant(1), ""
    try:
        metric(true, pred, epsilon=1.0, accountant=budget, **options)
    except REFUSED as error:
        said = str(error)
    assert "987654" not in said
    assert budget.spent == (0 if said else 1)


@pytest.mark.parametrize(
    "name", ["zero-one", "accuracy", "log loss", "brier", "top-k", "mse", "mean loss", "variance"]
)
def test_no_object_is_kept_to_be_looked_at_again(name):
    """The default may add up the records again when the scale is known, which is after the spend."""
    case = CASES[name]
    data, options = valid(case), {**case.options}
    known = np.unique(data[0])
    if case.row.data[0] == "y_true" and "labels" in case.row.options:
        data = (data[0].astype(str), *data[1:])
        options["labels"] = known.astype(str)
    data = [array.tolist() for array in data]
    _, known = case.row.read(data, options, private_n=False)
    for query in known.parts:
        held = getattr(query, "records", None) or (query.x,)
        assert all(array.dtype.kind in "biufU" for array in held)


@loop_over("kind", DANGEROUS)
@pytest.mark.parametrize("loss", ["zero_one", "mae", "mse", "log_loss", "brier_score_loss"])
@loop_over("place", range(3))
def test_a_record_changes_no_other_loss_of_a_comparison(loss, kind, place):
    number = BIG if loss in ("zero_one", "mae", "mse") else 0
    data = [[number, 1, 0, 1, 0, 1], [number, 0, 0, 1, 1, 1], [number, 1, 1, 0, 0, 1]]
    other = [*data]
    other[place] = with_row(data[place], ODD[kind])
    try:
        after = losses_of(loss, other)
    except REFUSED:
        return
    np.testing.assert_array_equal(np.delete(after, 2, axis=1), np.delete(losses_of(loss, data), 2, axis=1))


def losses_of(loss, data):
    """Return the losses of either model in a comparison, a row each."""
    blocks = paired_losses(loss, *data, {}).blocks()
    return np.concatenate([np.stack(both) for both in blocks], axis=1)
