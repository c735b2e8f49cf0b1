"""Columns that are named in another order than they are read in are refused, not read wrongly."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import assert_refused, loop_over, seeded

import dp_metrics as dp

TRUE = np.array(["no", "yes", "yes", "no", "yes"] * 40)
YES = np.tile([0.1, 0.8, 0.7, 0.3, 0.9], 40)
ANOTHER_ORDER = "named like the labels, but stand in another order"
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
OF_COLUMNS = {
    "log loss": dp.private_log_loss,
    "brier": dp.private_brier_score_loss,
    "report": dp.private_probability_report,
    "area": dp.private_roc_auc_score,
    "curve": dp.private_roc_curve,
    "calibration": dp.private_calibration_curve,
    "calibration error": dp.private_expected_calibration_error,
    "average precision": dp.private_average_precision_score,
    "top": lambda *data, **options: dp.private_top_k_accuracy_score(*data, k=1, **options),
}
OF_ONE_COLUMN = {name: metric for name, metric in OF_COLUMNS.items() if name != "top"}


def test_probabilities_by_name_are_not_read_in_the_wrong_order():
    """As met by a user: 3.30 for a log loss of 0.28."""
    frame = pd.DataFrame({"yes": YES, "no": 1 - YES})
    options = {"epsilon": 100.0, "labels": ["no", "yes"]}
    with pytest.raises(ValueError, match=r"pass y_proba\[sorted\(labels\)\]"):
        dp.private_log_loss(TRUE, frame, **options)
    assert dp.private_log_loss(TRUE, frame[sorted(options["labels"])], **options) < 0.4


@loop_over("make", FRAMES)
@loop_over("labels", [["no", "yes"], ["yes", "no"]])  # in whichever order they are listed
@pytest.mark.parametrize("name", OF_COLUMNS)
def test_columns_named_like_the_labels_in_another_order_are_refused(name, labels, make):
    metric, options = OF_COLUMNS[name], {"epsilon": 1.0, "labels": labels}
    if name == "calibration":
        options["n_bins"] = 4
    sorted_frame = FRAMES[make]({"no": 1 - YES, "yes": YES})
    other_names = FRAMES[make]({"p1": 1 - YES, "p0": YES})
    for frame in (sorted_frame, other_names):
        metric(TRUE, frame, random_state=seeded(), **options)
    assert_refused(
        metric, (TRUE, FRAMES[make]({"yes": YES, "no": 1 - YES})), ValueError, ANOTHER_ORDER, **options
    )


@loop_over(
    "hold",
    [
        lambda name: pd.Series(YES, name=name),
        lambda name: pl.Series(name, YES),
        lambda name: pd.DataFrame({name: YES}),
        lambda name: pa.table({name: YES}),
    ],
)
@pytest.mark.parametrize("name", OF_ONE_COLUMN)
def test_one_column_named_like_the_other_label_is_refused(name, hold):
    metric, options = OF_ONE_COLUMN[name], {"epsilon": 1.0, "labels": ["no", "yes"]}
    for harmless in ("yes", "p"):
        metric(TRUE, hold(harmless), random_state=seeded(), **options)
    message = "named like the negative label"
    assert_refused(metric, (TRUE, hold("no")), ValueError, message, **options)
    if name in ("brier", "curve", "average precision"):  # the column is that of pos_label
        metric(TRUE, hold("no"), random_state=seeded(), pos_label="no", **options)
        assert_refused(metric, (TRUE, hold("yes")), ValueError, message, pos_label="no", **options)


def test_names_that_are_numbers_are_compared_as_numbers_and_as_text():
    true, proba = np.arange(200) % 3, np.full((200, 3), 1 / 3)
    for columns in ([0, 1, 2], ["0", "1", "2"], [0.0, 1.0, 2.0], [1, 2, 3], ["c", "b", "a"]):
        dp.private_log_loss(true, pd.DataFrame(proba, columns=columns), epsilon=1.0)
    for columns in ([2, 1, 0], ["0", "2", "1"], [1.0, 0.0, 2.0]):
        frame = pd.DataFrame(proba, columns=columns)
        assert_refused(dp.private_log_loss, (true, frame), ValueError, ANOTHER_ORDER, epsilon=1.0)
        assert_refused(
            dp.private_log_loss, (true / 1, frame), ValueError, ANOTHER_ORDER, epsilon=1.0, labels=[0.0, 1, 2]
        )


def test_a_column_named_0_may_be_the_first_of_a_file():
    y, proba = (TRUE == "yes").astype(int), pd.DataFrame(YES)
    assert proba[0].name == 0
    assert dp.private_log_loss(y, proba[0], epsilon=100.0) < 0.4


def test_names_within_the_data_are_no_names_of_columns():
    """A pandas column may be called as the attribute that holds pyarrow's names."""
    for name in ("columns", "column_names", "name"):  # whose values are the labels, in another order
        frame = pd.DataFrame({name: [1.0, 0.0], "other": [0.0, 1.0]})
        dp.private_log_loss([0, 1], frame, epsilon=1.0)


@pytest.mark.parametrize("make", FRAMES)
def test_outputs_of_the_same_names_in_another_order_are_refused(make):
    a, b = np.arange(200.0), np.arange(200.0) % 7
    true = FRAMES[make]({"height": a, "weight": b})
    for pred in ({"height": a, "weight": b}, {"p": a, "q": b}):
        assert dp.private_mse(true, FRAMES[make](pred), epsilon=1.0) < 1
    swapped = FRAMES[make]({"weight": b, "height": a})
    for metric in (dp.private_mse, dp.private_r2_score, dp.private_regression_report):
        assert_refused(metric, (true, swapped), ValueError, "the same names in another order", epsilon=1.0)
    assert_refused(
        dp.private_compare, (true, true, swapped), ValueError, "the same names", loss="mse", epsilon=1.0
    )
    labels = [FRAMES[make]({one: b > 3, two: a > 3}) for one, two in (("x", "y"), ("y", "x"))]
    assert_refused(dp.private_accuracy_score, labels, ValueError, "the same names", epsilon=1.0)


def test_the_summary_and_the_comparison_look_at_names_too():
    frame = pd.DataFrame({"yes": YES, "no": 1 - YES})
    options = {"labels": ["no", "yes"]}
    with pytest.raises(ValueError, match=ANOTHER_ORDER):
        dp.LossSummary(dp.private_log_loss, **options).update(TRUE, frame)
    with pytest.raises(ValueError, match=ANOTHER_ORDER):
        dp.private_compare(TRUE, frame, frame, loss="log_loss", epsilon=1.0, **options)


def test_partitions_of_dask_are_looked_at_too():
    dd = pytest.importorskip("dask.dataframe")
    from dp_metrics import distributed

    true = dd.from_pandas(pd.Series(TRUE), npartitions=2)
    options = {"labels": ["no", "yes"], "epsilon": 1.0}
    for columns in ({"no": 1 - YES, "yes": YES}, {"yes": YES, "no": 1 - YES}):
        proba = dd.from_pandas(pd.DataFrame(columns), npartitions=2)
        if [*columns] == ["no", "yes"]:
            distributed.private_log_loss(true, proba, **options)
            continue
        accountant = dp.PrivacyAccountant(1.0)
        with pytest.raises(ValueError, match=ANOTHER_ORDER):
            distributed.private_log_loss(true, proba, accountant=accountant, **options)
        assert accountant.spent == 0
