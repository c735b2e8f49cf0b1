"""Which column belongs to which label: by name, or in the order of the sorted labels; else it is refused."""

import itertools
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import assert_refused, loop_over, seeded

import dp_metrics as dp
from dp_metrics.metrics import METRICS

N = 200
RNG = np.random.default_rng(3)
PROBA = RNG.dirichlet([1, 1, 1], N)
OF_THREE = np.array(["a", "b", "c"])[[RNG.choice(3, p=row) for row in PROBA]]
TRUE, YES = np.array(["no", "yes", "yes", "no", "yes"] * 40), np.tile([0.1, 0.8, 0.7, 0.3, 0.9], 40)
TWO = TRUE, {"no": 1 - YES, "yes": YES}
THREE = OF_THREE, dict(zip("abc", PROBA.T, strict=True))
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
OPEN = "is not sorted.*labels=sorted\\(labels\\).*pd.DataFrame\\("
OPTIONS = {
    "private_top_k_accuracy_score": {"k": 1},
    "private_roc_auc_score": {"multi_class": "ovr"},
}
OF_COLUMNS = {
    name: partial(METRICS[name].function, **OPTIONS.get(name, {}))
    for name, row in METRICS.items()
    if "labels" in row.options and not row.predicts_labels
}
WITH_POSITIVE = [name for name in OF_COLUMNS if "pos_label" in METRICS[name].options]


def of_frame(y, columns, *, labels, **paid):
    made = dp.PrivateMetricFrame(
        metrics=partial(dp.private_log_loss, labels=labels), y_true=y, y_pred=columns,
        sensitive_features=np.arange(N) % 2, group_labels=[0, 1], **paid,
    )  # fmt: skip
    return [*made.by_group.values()]


def of_chunk(metric, y, columns, *, labels, **paid):
    return dp.Summary(metric, labels=labels).update(y, columns).release(**paid)


def of_dask(y, columns, **options):
    if isinstance(columns, pd.DataFrame):
        held = (dd.from_pandas(one, npartitions=2) for one in (pd.Series(y), columns))
    else:
        held = (da.from_array(one, chunks=(100, *one.shape[1:])) for one in (y.astype(object), columns))
    return dp.private_log_loss(*held, **options)


def of_choice(y, columns, *, epsilon, **options):
    uniform = columns * 0 + 1 / columns.shape[1]
    return dp.private_best(y, [columns, uniform], metric="log_loss", epsilon=1e6, **options).index


def of_comparison(y, columns, **options):
    return dp.private_compare(y, columns, columns[::-1], loss="log_loss", **options)


def of_page(y, columns, *, epsilon, **options):
    """Return almost exact numbers: a page draws noise for its labels in the order of the caller."""
    page = dp.private_evaluate(y, y_proba=columns, split={"labels": 1, "loss": 1}, epsilon=1e9, **options)
    return sorted((name, round(one.value, 5)) for name, one in page.items())


DOORS = {
    **{
        name: (call, TWO if name in WITH_POSITIVE and "brier" not in name else THREE)
        for name, call in OF_COLUMNS.items()
    },
    "frame": (of_frame, THREE),
    "losses in chunks": (partial(of_chunk, "log_loss"), THREE),
    "scores in chunks": (partial(of_chunk, "average_precision"), TWO),
    "dask": (of_dask, THREE),
    "choice": (of_choice, THREE),
    "comparison": (of_comparison, THREE),
    "page of two labels": (of_page, TWO),
}


@pytest.mark.filterwarnings("ignore")
@loop_over("door", DOORS)
def test_columns_are_matched_by_name_wherever_they_stand_or_refused(door):
    """As met by users: accuracy 0 for columns and labels in the order low, mid, high."""
    release, (y, columns) = DOORS[door]
    labels, array = [*columns], np.column_stack([*columns.values()])
    of = {"epsilon": 1.0, "random_state": 5}
    expected = repr(release(y, array, labels=labels, **of))
    for make, listed, order in itertools.product(FRAMES.values(), (1, -1), (1, -1)):
        if make is pd.DataFrame or door in OF_COLUMNS:
            frame = make({name: columns[name] for name in labels[::order]})
            assert repr(release(y, frame, labels=labels[::listed], **of)) == expected
    unnamed = [array, pd.DataFrame(array), pd.DataFrame(array, columns=[f"p{one}" for one in labels])]
    for held in unnamed[:1] if door == "dask" else unnamed:
        assert_refused(release, (y, held), ValueError, OPEN, labels=labels[::-1], epsilon=1.0)


DAYS = np.array(["2031-05-01", "2031-05-02", "2031-05-03"], dtype="M8[D]")
SOME, UNSORTED = "must be those of all labels", "is not sorted"


@loop_over(
    ("names", "labels", "places"),
    [
        ([2, 0, 1], [2, 1, 0], [2, 0, 1]),
        (["2", "0", "1"], [2, 1, 0], [2, 0, 1]),
        ([2.0, 0.0, 1.0], [0, 1, 2], [2, 0, 1]),
        (["c", "a", "b"], ["c", "b", "a"], [2, 0, 1]),
        (pd.to_datetime(DAYS[[2, 0, 1]]), DAYS, [2, 0, 1]),
        (["x", "y", "z"], [0, 1, 2], [0, 1, 2]),
        (["x", "y", "z"], [2, 1, 0], UNSORTED),
        (range(3), [1, 2, 3], [0, 1, 2]),  # of a table that nobody gave names
        (range(3), [2, 1, 0], UNSORTED),
        ([1, 2, 3], [0, 1, 2], SOME),
        (["1", "2", "p"], [1, 2, 3], SOME),
        (["a", "a", "b"], ["a", "b", "c"], SOME),
    ],
)
def test_names_are_those_of_all_labels_or_of_none(names, labels, places):
    """Each true label has the probability 1, if its column is read; a refusal says what is wrong."""
    codes = np.arange(N) % 3
    y = np.sort(labels)[codes]
    if isinstance(places, str):
        data = y, pd.DataFrame(np.eye(3)[codes], columns=names)
        assert_refused(dp.private_log_loss, data, ValueError, places, epsilon=1.0, labels=labels)
    else:
        frame = pd.DataFrame(np.eye(3)[codes][:, places], columns=names)
        assert dp.private_log_loss(y, frame, epsilon=50.0, labels=labels) < 1


HOLD_ONE = [
    lambda name: pd.Series(YES, name=name),
    lambda name: pl.Series(name, YES),
    lambda name: pd.DataFrame({name: YES}),
    lambda name: pa.table({name: YES}),
]


@pytest.mark.filterwarnings("ignore")
@loop_over("name", [name for name in OF_COLUMNS if "top_k" not in name])
def test_one_column_is_that_of_the_positive_label_and_may_not_be_named_like_the_other(name):
    metric, seed = partial(METRICS[name].function, epsilon=1.0), {"random_state": 5}
    expected = repr(metric(TRUE, YES, labels=["no", "yes"], **seed))
    assert_refused(metric, (TRUE, YES), ValueError, "the one column", labels=["yes", "no"])
    if name in WITH_POSITIVE:
        assert repr(metric(TRUE, YES, labels=["yes", "no"], pos_label="yes", **seed)) == expected
    for hold in HOLD_ONE:
        for harmless in ("yes", "p"):
            assert repr(metric(TRUE, hold(harmless), labels=["no", "yes"], **seed)) == expected
        refused = partial(assert_refused, metric, expected=ValueError, match="named like the negative label")
        refused(data=(TRUE, hold("no")), labels=["no", "yes"])
        if name in WITH_POSITIVE:  # the column is that of pos_label
            metric(TRUE, hold("no"), labels=["no", "yes"], pos_label="no", random_state=seeded())
            refused(data=(TRUE, hold("yes")), labels=["no", "yes"], pos_label="no")


def test_names_that_nobody_gave_and_names_within_the_data_are_no_names_of_columns():
    first_of_a_file = pd.DataFrame(YES)[0]
    assert first_of_a_file.name == 0
    assert dp.private_log_loss((TRUE == "yes").astype(int), first_of_a_file, epsilon=100.0) < 0.4
    for name in ("columns", "column_names", "name"):  # whose values are the labels, in another order
        dp.private_log_loss([0, 1], pd.DataFrame({name: [1.0, 0.0], "other": [0.0, 1.0]}), epsilon=1.0)


def test_outputs_of_the_same_names_or_of_others_belong_together_as_they_stand():
    true = pd.DataFrame({"height": np.arange(200.0), "weight": np.arange(200.0) % 7})
    for pred in (true, true.set_axis(["p", "q"], axis=1)):
        assert dp.private_mse(true, pred, epsilon=1.0) < 1
