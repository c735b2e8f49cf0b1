"""A refusal of labels says what they are, and what to pass; of the data it tells one record's alone."""

import numpy as np
import pytest

import dp_metrics as dp

FIT, RNG = [0, 1, 1, 0], np.random.default_rng(0)


def refusal(function, *data, **options):
    budget = dp.PrivacyAccountant(1.0)
    with pytest.raises(ValueError, match=r"Input|label") as caught:
        function(*data, epsilon=1.0, accountant=budget, **options)
    assert budget.spent == 0
    return str(caught.value)


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        (
            2,
            "[0, 1], which is the default. Pass labels=[1, 2] (and pos_label=2) if they are 1 and 2,",
        ),
        (-1.0, "labels=[0, 1], which is the default. Pass labels=[1, 2]"),
        (
            0.7,
            "labels=[0, 1]: it is no whole number. Pass labels, such as predict gives, and not probabilities",
        ),
        (np.nan, "Input y_true contains NaN: drop such records, or fill them in, before you split the data."),
    ],
)
@pytest.mark.parametrize("function", [dp.private_f1_score, dp.private_confusion_matrix, dp.private_log_loss])
def test_each_wrong_label_has_its_own_hint_which_no_other_record_changes(function, label, hint):
    said = {
        refusal(function, [*before, label, *after], [0.0] * (len(before) + 1 + len(after)))
        for before in ([], [0], [1, 0, 1])
        for after in ([], [1], [0, 1, 1])
    }
    assert len(said) == 1
    assert hint in said.pop()
    # the first of several in one block counts, and NaN before all
    assert hint in refusal(function, [0, label, 3], [0.0] * 3)


def test_other_label_sets_are_named_and_many_are_cut_off():
    said = refusal(dp.private_f1_score, ["a", "c"], ["a", "b"], labels=["a", "b"], pos_label="b")
    assert (
        said == "y_true contains a label that is not in labels=['a', 'b']: pass all labels that there may be."
    )
    said = refusal(dp.private_log_loss, [0, 3], np.full((2, 3), 1 / 3))
    assert said.endswith("labels=[0, 1, 2], which is the default. Pass labels=[...], one for each column.")
    said = refusal(dp.private_confusion_matrix, [-1], [0], labels=range(0, 2000, 2))
    assert "labels=[0, 2, 4, 6, 8, 10, ...]: pass all" in said
    settings = {"sensitive_features": [0, 7], "group_labels": [0, 1]}
    said = refusal(dp.PrivateMetricFrame, metrics="accuracy", y_true=[0, 1], y_pred=[0, 1], **settings)
    assert said == "sensitive_features contains a label that is not in group_labels=[0, 1]."
    said = refusal(dp.private_f1_score, ["a", None], ["a", "b"], labels=["a", "b"], pos_label="b")
    assert "contains NaN: drop such records" in said


def test_probabilities_are_no_labels_where_any_label_will_do():
    assert "Pass labels, such as predict gives" in refusal(
        dp.private_accuracy_score, FIT, [0.1, 0.9, 0.8, 0.3]
    )
