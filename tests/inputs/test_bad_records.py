"""All that is no record, on each way by which records enter; test_common tries a little on every metric."""

import math
from functools import partial

import numpy as np
import pytest
from cases import BAD_RECORDS, CASES, LEGAL_LABELS, assert_bad_record_refused, valid, with_sentinel
from helpers import BAD_OPTIONS, NoEntropy, assert_refused, loop_over, messages

import dp_metrics as dp

# one metric for each reader of records, and which of its arguments
ROUTES = [
    ("mse", 0),
    ("mse", 1),
    ("variance", 0),
    ("quantile", 0),
    ("log loss", 0),
    ("log loss", 1),
    ("zero-one", 0),
    ("zero-one", 1),
    ("mean loss", 0),
]
BAD_ON_ROUTES = [
    (name, position, kind)
    for name, position in ROUTES
    for kind in BAD_RECORDS
    if not (CASES[name].row.predicts_labels and kind in LEGAL_LABELS)
]


@loop_over(("name", "position", "kind"), BAD_ON_ROUTES)
def test_bad_records_are_refused_without_a_word_of_the_data(name, position, kind):
    assert_bad_record_refused(CASES[name], position, kind)


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


class Odd:
    """A label that is no other one, and says what it is when it is compared with another."""

    def __ne__(self, other):
        if other is not self:
            raise TypeError("12345.5")
        return False

    __hash__ = None


@pytest.mark.parametrize(
    ("label", "kind"),
    [(12345.5, np.float64), (12345.5, object), (Odd(), object)],
    ids=["float", "object", "odd"],
)
def test_a_refusal_does_not_quote_a_label(label, kind):
    y = np.array([label, 1.0, 0.0], dtype=kind)
    with pytest.raises(ValueError, match=r"whole|compared") as caught:
        dp.private_accuracy_score(
            y, np.array([0.0, 1.0, 0.0], dtype=kind), epsilon=1.0, random_state=NoEntropy()
        )
    assert "12345" not in str(caught.value)


def test_of_several_labels_each_decides_whether_a_record_is_right():
    y = np.zeros((100, 3), dtype=int)
    for column in range(3):
        pred = y.copy()
        pred[:, column] = 1
        assert dp.private_accuracy_score(y, pred, epsilon=1000.0) == 0.0  # but for a probability of exp(-500)


@loop_over("kind", [kind for kind in BAD_RECORDS if kind != "None"])
def test_bad_weights_are_refused_without_a_word_of_them(kind):
    spoil, expected, _ = BAD_RECORDS[kind]
    weights = spoil([1.0, 98765.25, 0.5, 2.0, 1.0, 1.0])
    assert_refused(CASES["mse"], valid(CASES["mse"], 6), expected, sample_weight=weights)


@loop_over("parameter", ["sample_weight", "groups"])
@loop_over("size", [1, 5, 7])
def test_weights_and_groups_of_another_length_are_refused(parameter, size):
    message = f"^Found input variables with .* of samples: .*: y_true has 6, {parameter} has {size}.$"
    data = valid(CASES["mse"], 6)
    assert_refused(CASES["mse"], data, ValueError, message, **{parameter: np.ones(size)})


@loop_over("kind", sorted(LEGAL_LABELS))
def test_labels_are_of_any_kind_that_can_be_compared(kind):
    data = with_sentinel(CASES["zero-one"], 0)
    spoil, _, _ = BAD_RECORDS[kind]
    same = spoil(data[0].tolist())
    with pytest.raises(NoEntropy.Drawn):
        CASES["zero-one"](same, same, random_state=NoEntropy())


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("mse", "epsilon"),
        ("mse", "bounds"),
        ("variance", "bounds"),
        ("mean", "bounds"),
        ("mean loss", "max_loss"),
        ("mape", "max_loss"),
        ("log loss", "max_loss"),
        ("log loss", "labels"),
        ("brier, 3 labels", "labels"),
    ],
)
def test_every_bad_option_is_refused_by_name(name, parameter):
    for value in BAD_OPTIONS[parameter]:
        assert_refused(
            CASES[name], with_sentinel(CASES[name], 0), ValueError, parameter, **{parameter: value}
        )


@pytest.mark.parametrize("name", ["log loss", "log loss, 3 labels"])
@loop_over("value", [-1e-9, 1.0000001, 98765.25, -98765.25])
def test_probabilities_outside_the_unit_interval_are_refused(name, value):
    y, p = valid(CASES[name])
    p[(2,) * p.ndim] = value
    assert_refused(CASES[name], (y, p), ValueError, "y_proba")


@pytest.mark.parametrize("name", ["log loss", "log loss, 3 labels"])
@loop_over("value", [-1, 3, 0.5, 98765.25])
def test_labels_outside_the_public_set_are_refused(name, value):
    y, p = valid(CASES[name])
    y[2] = value
    assert_refused(CASES[name], (y, p), ValueError, "label")


@loop_over("label", ["987654.25", 987654.25, None, math.nan, ("98765",), ["98765"], b"98765", 98765j])
def test_labels_outside_a_public_set_of_strings_are_refused(label):
    y = np.array(["no", "yes", None, "yes"], dtype=object)
    y[2] = label
    for labels in (y, y.tolist()):
        assert_refused(CASES["log loss"], (labels, [0.1, 0.9, 0.8, 0.5]), labels=["no", "yes"])


def test_negative_losses_are_refused():
    assert_refused(CASES["mean loss"], ([1.0, -987654.25],), ValueError, "^Negative values in data")


def test_a_container_that_turns_out_to_be_complex_is_refused_without_a_word_of_it():
    class Tensor:
        dtype = "a type that NumPy does not know"
        shape = (2,)

        def __len__(self):
            return 2

        def __array__(self, dtype=None, copy=None):
            return np.array([98765.25 + 1j, 2.0], dtype=dtype)

        def __repr__(self):
            return "98765.25"

    with pytest.raises(ValueError, match="Complex data not supported") as caught:
        dp.private_mse(Tensor(), [1.0, 2.0], epsilon=1.0, random_state=NoEntropy())
    assert not any("98765" in message for message in messages(caught.value))


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
