"""One record, whatever it is, changes nothing about how the others are read, and says nothing of itself."""

import datetime
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from cases import CASES, KINDS, valid
from helpers import REFUSED, NoEntropy, frame_loss, kind_of, loop_over, messages, objects, telling

import dp_metrics as dp
from dp_metrics.analysis import auditing
from dp_metrics.inference.comparison import losses_of_each, paired_losses
from dp_metrics.inputs.arrays import Records, array_of, as_numbers
from dp_metrics.inputs.labels import (
    LabelColumns,
    LabelSet,
    differing_labels,
    labels_and_columns,
    labels_and_scores,
    labels_of_any_type,
)
from dp_metrics.inputs.options import Relation

BIG = 2**60 + 1  # no float64: rounded by whoever makes floats of all integers


class Floating:
    """A number of somebody else's."""

    def __float__(self):
        return 0.25


class Array:
    def __init__(self, *shape):
        self.shape_of = shape

    def __array__(self, dtype=None, copy=None):
        return np.full(self.shape_of, 0.25, dtype=dtype)


ODD = {
    "text": "a", "digits": "5", "bytes": b"5", "NumPy's text": np.str_("5"), "None": None, "NaN": math.nan,
    "NA": pd.NA, "NaT": pd.NaT, "big": BIG, "beyond int64": 2**64, "beyond float64": 10**400, "float": 0.25,
    "whole float": 5.0, "float32": np.float32(0.1), "long double": np.longdouble("0.1"), "truth": True,
    "decimal": Decimal("0.1"), "signaling": Decimal("sNaN"), "fraction": Fraction(1, 3), "complex": 1j,
    "date": datetime.date(1987, 6, 5), "time span": np.timedelta64(5, "s"), "no dimension": np.array(0.25),
    "one element": np.array([0.25]), "row": [0.25, 0.75], "row of text": ["a", 0.0],
    "long row": (0.25, 0.5, 0.25), "empty row": [], "dictionary": {"income": 0.25}, "set": {0.25},
    "slice": slice(None), "floating": Floating(), "an array": Array(), "an array of two": Array(2),
    "failing": telling("float", "eq", "ne", "hash", "index"),
}  # fmt: skip


OBJECTS = {  # containers that hold whatever they are given
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "pandas": lambda records: pd.Series(objects(records), dtype=object),
}


def of_labels(reader, data):
    """Return what is read of probabilities or scores of two labels."""
    _, records = Records.of(([0] * len(data), data), relation=Relation.REPLACE_ONE)
    return reader(records, columns=LabelColumns(LabelSet.of(None), 1, None)).arrays[1]


def of_equal_labels(data):
    _, records = Records.of((data, data), relation=Relation.REPLACE_ONE)
    return differing_labels(*labels_of_any_type(records, columns=1).arrays)


READERS = {
    "numbers": partial(as_numbers, name="y"),
    "probabilities": partial(of_labels, partial(labels_and_columns, name="y_proba")),
    "scores": partial(of_labels, labels_and_scores),
    "labels that are numbers": LabelSet.of([0, 1]).array,
    "labels that are text": LabelSet.of(["a", "b"]).array,
    "labels of any type": of_equal_labels,
}


def unless_refused(read, data):
    """Return what is made of data, or None if they are refused."""
    try:
        return read(data)
    except REFUSED as error:
        refused = error
    assert not any("987654" in said for said in messages(refused))
    return None


@pytest.mark.gate
@pytest.mark.parametrize("reader", READERS)
@loop_over("hold", OBJECTS)
def test_each_record_is_read_or_refused_by_itself(reader, hold):
    """Of all pairs of odd and ordinary records: both are accepted if each is alone, and made the same of."""
    read, held = READERS[reader], OBJECTS[hold]
    records = [*ODD.values(), 0.5, 1, 0, "b", BIG - 1, [0.5, 0.5], [1, BIG]]
    alone = [unless_refused(read, held([record])) for record in records]
    forms = [unless_refused(lambda data: array_of(data).shape[1:], held([record])) for record in records]
    assert sum(one is not None for one in alone) >= 2  # so that there are pairs to accept
    for i, j in itertools.product(range(len(records)), repeat=2):
        found = unless_refused(read, held([records[i], records[j]]))
        if alone[i] is None or alone[j] is None or forms[i] != forms[j]:
            assert found is None, (records[i], records[j])
        else:
            assert found.dtype == alone[i].dtype == alone[j].dtype
            np.testing.assert_array_equal(found, np.concatenate([alone[i], alone[j]]), strict=True)


# what is put into one argument of a metric: each has changed how NumPy reads the others
DANGEROUS = (
    "text", "digits", "NaN", "None", "big", "float", "whole float", "float32", "decimal", "row",
    "row of text",
)  # fmt: skip


def with_row(values, odd):
    """Replace the third of some records by an odd one, whose columns are repeated where there are several."""
    row = values[2]
    several = isinstance(row, list) and not isinstance(odd, list)
    return [*values[:2], [odd] * len(row) if several else odd, *values[3:]]


ALONE = [name for name, case in CASES.items() if kind_of(case.row) != "joint"]


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "neighboring"),
    [
        *((name, "replace_one") for name in ALONE),
        *(pytest.param(name, "add_or_remove_one", marks=pytest.mark.slow) for name in ALONE if name in KINDS),
    ],
)
def test_no_record_costs_more_than_epsilon_in_a_list(name, neighboring):
    case = CASES[name]
    options = {**case.options, "neighboring": neighboring}
    release = partial(case.function, epsilon=1.0, random_state=0, **options)
    data = [array.tolist() for array in valid(case, 6)]
    large = [[*values[:-1], with_row(values, BIG)[2]] for values in data]  # floats beside these round them
    if not case.row.predicts_labels and unless_refused(lambda data: release(*data), large) is not None:
        data = large
    for place, kind in itertools.product(range(len(data)), DANGEROUS):
        other = [*data]
        other[place] = with_row(data[place], ODD[kind])
        if unless_refused(lambda data: release(*data), other) is None:
            continue
        loss = auditing.release_loss(case.function, data, other, epsilon=1.0, **options)
        factor = 2 if neighboring == "add_or_remove_one" else 1  # a replaced record is one less and one more
        assert loss <= factor * (1 + 1e-9), (place, kind)


FRAMES = {
    "labels of several outputs": (dp.private_accuracy_score, [[1.0, 0.0]] * 6, [[1, 0]] * 6, ["a", 0.0]),
    "large integers": (dp.private_accuracy_score, [[BIG, 0]] * 6, [[BIG, 0]] * 6, [5.0, 0]),
    "targets": (partial(dp.private_mse, bounds=(0, 1)), [[1, 0]] * 6, [[1, 0]] * 6, ["a", 0]),
}


@pytest.mark.parametrize("name", FRAMES)
@loop_over(("neighboring", "most"), [("replace_one", 1), ("add_or_remove_one", 2)])
@loop_over("places", [[0], [1], [0, 1]])
def test_a_row_in_a_list_changes_no_other_row_of_a_frame(name, neighboring, most, places):
    metric, true, pred, odd = FRAMES[name]
    other = [[*true], [*pred]]
    for place in places:
        other[place][2] = odd
    sex = ["f", "m"] * 3
    options = {"group_labels": ["f", "m"], "epsilon": 1.0, "neighboring": neighboring}
    try:
        dp.PrivateMetricFrame(
            metrics=metric, y_true=other[0], y_pred=other[1], sensitive_features=sex, **options
        )
    except REFUSED:
        assert name != "large integers"  # which each metric of labels takes
        return
    assert frame_loss(metric, (true, pred, sex), (*other, sex), **options) <= most * (1 + 1e-9)


@loop_over("kind", DANGEROUS)
@loop_over("loss", ["zero_one", "mae", "mse", "log_loss", "brier_score_loss"])
@loop_over("place", range(3))
def test_a_record_changes_no_other_loss_of_a_comparison(loss, kind, place):
    number = BIG if loss in ("zero_one", "mae", "mse") else 0
    data = [[number, 1, 0, 1, 0, 1], [number, 0, 0, 1, 1, 1], [number, 1, 1, 0, 0, 1]]
    other = [*data]
    other[place] = with_row(data[place], ODD[kind])

    def losses_of(data):
        shape, records = Records.of(data, relation=Relation.REPLACE_ONE)
        _, losses, reader = paired_losses(loss, shape, {})
        return np.stack(losses_of_each(reader(records), losses))

    if (after := unless_refused(losses_of, other)) is not None:
        np.testing.assert_array_equal(np.delete(after, 2, axis=1), np.delete(losses_of(data), 2, axis=1))


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


OF_TEXT = {"labels": ["a", "b"]}


@pytest.mark.parametrize(
    ("metric", "pred"),
    [
        (partial(dp.private_accuracy_score, mechanism="adaptive"), "a"),
        (partial(dp.private_zero_one_loss, mechanism="hazard"), "a"),
        (partial(dp.private_confusion_matrix, **OF_TEXT), "a"),
        (partial(dp.private_log_loss, **OF_TEXT), [0.5, 0.5]),
        (partial(dp.private_top_k_accuracy_score, k=1, mechanism="adaptive", **OF_TEXT), [0.5, 0.5]),
    ],
)
@loop_over("patience", range(1, 6))
def test_an_object_is_looked_at_before_the_spend_only(metric, pred, patience):
    """The default may add up the records again when the scale is known, which is after the spend."""
    true, budget = [Fickle(patience), *["a", "b"] * 1000], dp.PrivacyAccountant(1)
    made = unless_refused(lambda y: metric(y, [pred] * len(y), epsilon=1.0, accountant=budget), true)
    assert budget.spent == (made is not None)


SPOILT = {
    "NaN": (dp.private_mse, [0.0] * 6, math.nan),
    "infinity": (dp.private_mse, [0.0] * 6, math.inf),
    "an unknown number": (dp.private_f1_score, [0, 1] * 3, 7),
    "an unknown word": (partial(dp.private_f1_score, pos_label="b", **OF_TEXT), ["a", "b"] * 3, "c"),
    "half a label": (dp.private_accuracy_score, [0.0, 1.0] * 3, 0.5),
    "no probability": (lambda p, y, **how: dp.private_log_loss(y, p, **how), [0.0, 1.0] * 3, 2.0),
    "a negative loss": (lambda x, _, **how: dp.private_mean_loss(x, **how), [1.0] * 6, -1.0),
}


@loop_over("name", SPOILT)
def test_a_refusal_does_not_tell_how_many_records_are_bad(name):
    function, good, bad = SPOILT[name]
    said = set()
    for count in (1, 3):
        with pytest.raises(ValueError, match=r"\w") as caught:
            function([bad] * count + good[count:], good, epsilon=1.0, random_state=NoEntropy())
        said.add(str(caught.value))
    assert len(said) == 1
