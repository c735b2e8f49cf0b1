"""All that is no record, on each way by which records enter; test_common tries a little on every metric."""

import math
from functools import partial

import numpy as np
import pytest
from cases import BAD_RECORDS, CASES, LEGAL_LABELS, with_sentinel
from helpers import NoEntropy, loop_over, messages

import dp_metrics as dp

SPOILT = {
    "NaN": (dp.private_mse, [0.0] * 6, math.nan),
    "infinity": (dp.private_mse, [0.0] * 6, math.inf),
    "an unknown number": (dp.private_f1_score, [0, 1] * 3, 7),
    "an unknown word": (partial(dp.private_f1_score, labels=["a", "b"], pos_label="b"), ["a", "b"] * 3, "c"),
    "half a label": (dp.private_accuracy_score, [0.0, 1.0] * 3, 0.5),
    "no probability": (lambda p, y, **settings: dp.private_log_loss(y, p, **settings), [0.0, 1.0] * 3, 2.0),
    "a negative loss": (lambda x, _, **settings: dp.private_mean_loss(x, **settings), [1.0] * 6, -1.0),
}


@pytest.mark.parametrize(("function", "good", "bad"), SPOILT.values(), ids=SPOILT)
def test_a_refusal_does_not_tell_how_many_records_are_bad(function, good, bad):
    said = set()
    for count in (1, 3):
        with pytest.raises(ValueError, match=r"\w") as caught:
            function([bad] * count + good[count:], good, epsilon=1.0, random_state=NoEntropy())
        said.add(str(caught.value))
    assert len(said) == 1


def test_of_several_labels_each_decides_whether_a_record_is_right():
    y = np.zeros((100, 3), dtype=int)
    for column in range(3):
        pred = y.copy()
        pred[:, column] = 1
        assert dp.private_accuracy_score(y, pred, epsilon=1000.0) == 0.0  # but for a probability of exp(-500)


@loop_over("kind", sorted(LEGAL_LABELS))
def test_labels_are_of_any_kind_that_can_be_compared(kind):
    data = with_sentinel(CASES["zero-one"], 0)
    spoil, _, _ = BAD_RECORDS[kind]
    same = spoil(data[0].tolist())
    with pytest.raises(NoEntropy.Drawn):
        CASES["zero-one"](same, same, random_state=NoEntropy())


def _tells(*names):
    def fail(self, *_, **__):
        raise RuntimeError("987654.25")

    return object.__new__(type("Tells", (), dict.fromkeys(names, fail)))


_ASKED = [
    "getattribute",
    "getattr",
    "eq",
    "ne",
    "lt",
    "gt",
    "hash",
    "bool",
    "float",
    "int",
    "index",
    "complex",
    "str",
    "repr",
    "format",
    "len",
    "iter",
    "getitem",
    "contains",
    "array",
]
_DUNDERS = [f"__{name}__" for name in _ASKED]
TELLING = {
    **{name: _tells(name) for name in _DUNDERS},
    "all": _tells(*_DUNDERS),
    "__class__": type("Tells", (), {"__class__": property(lambda self: int("987654.25"))})(),
}
LABELS = {"labels": ["a", "b"], "pos_label": "b"}
DOORS = {
    "numbers": lambda y, **how: dp.private_mean_squared_error(y, [1.0] * 3, **how),
    "0 and 1": lambda y, **how: dp.private_recall_score(y, [0, 1, 1], **how),
    "labels": lambda y, **how: dp.private_accuracy_score(y, ["a", "b", "a"], **how),
    "known labels": lambda y, **how: dp.private_recall_score(["a", "b", "b"], y, **LABELS, **how),
    "probabilities": lambda y, **how: dp.private_log_loss(["a", "b", "b"], y, labels=["a", "b"], **how),
    "dates": lambda y, **how: dp.private_confusion_matrix(
        y, y, labels=np.array(["2000-01-01", "2000-01-02"], dtype="M8[D]"), **how
    ),
    "weights": lambda y, **how: dp.private_accuracy_score([0, 1, 1], [0, 1, 1], sample_weight=y, **how),
    "persons": lambda y, **how: dp.private_accuracy_score([0, 1, 1], [0, 1, 1], groups=y, **how),
    "page": lambda y, **how: dp.private_evaluate(y, ["a", "b", "b"], labels=["a", "b"], **how),
    "frame": lambda y, **how: dp.PrivateMetricFrame(
        metrics="accuracy", y_true=[0, 1, 1], y_pred=[0, 1, 1], sensitive_features=y,
        group_labels=["a", "b"], **how,
    ),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@loop_over("name", TELLING)
def test_no_object_says_a_word_of_its_own(door, name):
    of_numbers = door in ("numbers", "0 and 1", "probabilities", "weights")
    y = np.array([0, 1, None] if of_numbers else ["a", "b", None], dtype=object)
    y[2] = TELLING[name]
    for records in (y, y.tolist()):
        budget, refused = dp.PrivacyAccountant(2.0), None
        try:
            DOORS[door](records, epsilon=1.0, accountant=budget)
        except Exception as error:
            refused = error
        if refused is None:  # what is equal to nothing but itself is a label, and an id
            assert door in ("labels", "persons")
            continue
        assert isinstance(refused, ValueError | TypeError)
        assert not any("987654" in said for said in messages(refused))
        assert budget.spent == 0
