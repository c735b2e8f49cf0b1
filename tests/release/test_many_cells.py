"""Tables with too many cells are refused before anything large is made, and before the spend."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics import ConfusionSummary, PrivacyAccountant, PrivateMetricFrame, ScoreSummary
from dp_metrics.release.parts import count_table

MANY = range(20_000)  # 4e8 cells, 3 GB
RECORDS = np.arange(200) % 7
MATRIX = (
    r"confusion matrix of 20,000 labels.* 400,000,000 cells; the limit is 10,000,000\. private_accuracy_score"
)
EDGES = np.arange(6_000_001)
FRAME = partial(PrivateMetricFrame, y_true=RECORDS, y_pred=RECORDS)

CALLS = {
    "matrix": (MATRIX, partial(dp.private_confusion_matrix, RECORDS, RECORDS, labels=MANY)),
    "mean recall": (MATRIX, partial(dp.private_recall_score, RECORDS, RECORDS, labels=MANY, average="macro")),
    "micro F1": (MATRIX, partial(dp.private_f1_score, RECORDS, RECORDS, labels=MANY, average="micro")),
    "report": (MATRIX, partial(dp.private_classification_report, RECORDS, RECORDS, labels=MANY)),
    "kappa": (
        MATRIX,
        partial(dp.private_cohen_kappa_score, RECORDS, RECORDS, labels=MANY, weights="linear"),
    ),
    "frame of labels": (
        MATRIX,
        partial(
            FRAME,
            metrics=partial(dp.private_recall_score, labels=MANY, average="macro"),
            sensitive_features=RECORDS,
            group_labels=range(7),
        ),
    ),
    "frame of groups": (
        r"table of 2,000 groups and 100 labels has 20,000,000 cells; the limit is 10,000,000",
        partial(
            FRAME,
            metrics=partial(dp.private_confusion_matrix, labels=range(100)),
            sensitive_features=RECORDS,
            group_labels=range(2000),
        ),
    ),
    "combinations of groups": (
        r"combinations of group_labels has 1,000,000,000,000 cells; the limit is 10,000,000",
        partial(
            FRAME,
            metrics=dp.private_accuracy_score,
            sensitive_features=np.stack([RECORDS] * 12, axis=1),
            group_labels=[range(10)] * 12,
        ),
    ),
    "edges": (
        r"these edges has 12,000,000 cells; the limit is 10,000,000\. Pass fewer edges",
        partial(dp.private_roc_curve, RECORDS % 2, RECORDS, edges=EDGES),
    ),
}


@pytest.mark.parametrize(
    "relation", ["replace_one", pytest.param("add_or_remove_one", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("call", CALLS)
def test_too_many_cells_are_refused_before_they_are_made_and_paid_for(call, relation):
    message, release = CALLS[call]
    accountant = PrivacyAccountant(1.0)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            release(epsilon=0.5, neighboring=relation, accountant=accountant)
        assert tracemalloc.get_traced_memory()[1] < 150e6  # of which 6,000,001 edges are checked
    finally:
        tracemalloc.stop()
    assert accountant.spent == 0


def test_summaries_refuse_them_before_the_first_record():
    with pytest.raises(ValueError, match=MATRIX):
        ConfusionSummary(labels=MANY)
    with pytest.raises(ValueError, match="12,000,000 cells"):
        ScoreSummary(edges=EDGES)


def test_so_do_collections_before_anything_is_computed():
    da = pytest.importorskip("dask.array")
    from dp_metrics import distributed

    def fail(block):
        raise AssertionError("computed")

    records = da.from_array(RECORDS, chunks=50).map_blocks(fail, dtype=int, meta=np.array((), dtype=int))
    with pytest.raises(ValueError, match=MATRIX):
        distributed.private_recall_score(records, records, epsilon=1.0, labels=MANY, average="macro")


def test_what_the_message_names_needs_fewer():
    labels, label = np.arange(20_000), 3
    assert 0 <= dp.private_accuracy_score(labels, labels, epsilon=1.0) <= 1
    assert 0 <= dp.private_recall_score(labels == label, labels == label, epsilon=1.0) <= 1
    frame = PrivateMetricFrame(
        metrics=dp.private_accuracy_score,
        y_true=RECORDS,
        y_pred=RECORDS,
        sensitive_features=RECORDS,
        group_labels=range(7),
        epsilon=1.0,
    )
    assert len(frame.by_group) == 7


def test_a_table_of_as_many_cells_as_the_limit_is_counted(monkeypatch):
    monkeypatch.setattr(count_table, "MOST_CELLS", 49)
    assert dp.private_confusion_matrix(RECORDS, RECORDS, epsilon=1.0, labels=range(7)).shape == (7, 7)
    monkeypatch.setattr(count_table, "MOST_CELLS", 48)
    with pytest.raises(ValueError, match="49 cells; the limit is 48"):
        dp.private_confusion_matrix(RECORDS, RECORDS, epsilon=1.0, labels=range(7))
