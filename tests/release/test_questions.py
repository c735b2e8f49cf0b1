"""What is public of a call belongs to its question, and what is private does not: at every door."""

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases import KINDS, cases_where, valid
from helpers import messages, new_session
from sklearn.dummy import DummyClassifier

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, StoredReleaseWarning, with_result
from dp_metrics.release.stored.questions import PER_RECORD, RECORDS, SETTINGS

N = 60
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, N)
PRED = np.where(RNG.random(N) < 0.8, Y, 1 - Y)
SCORE = RNG.integers(0, 65, N) / 64
GROUP = RNG.choice(["a", "b"], N)
WEIGHTS = RNG.integers(1, 5, N) / 4 + 987654.0
PERSONS = np.repeat(np.arange(N // 3) + 123456, 3)


class Counted:
    """Records of which nothing is public but their number."""

    def __init__(self, n: int) -> None:
        self.n, self.shape, self.ndim = n, (n,), 1

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Any:
        raise AssertionError("the records were read")

    __array__ = __getitem__ = __iter__


@dataclass
class Door:
    """A function that releases, what it is asked, and what of that is public for each record.

    `same` are the public values again, equal as numbers but otherwise held; `other` are others.
    """

    ask: Callable[..., Any]
    records: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    public: dict[str, Any] = field(default_factory=dict)
    same: dict[str, Any] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)

    def fewer(self) -> dict[str, Any]:
        """Return the records but one, with what is public of them."""
        return {name: value[1:] for name, value in {**self.records, **self.public}.items()}


PUBLIC = {"sample_weight": WEIGHTS, "groups": PERSONS}
RENAMED = [f"person {person}" for person in PERSONS.tolist()]
SAME = {"sample_weight": pd.Series(WEIGHTS, dtype=np.float32), "groups": RENAMED}
OTHER = {"sample_weight": WEIGHTS[::-1].copy(), "groups": np.roll(PERSONS, 1)}


def door(ask, records, *public, **options):
    """Return a door with some of the usual things that are public per record."""
    three = [{name: each[name] for name in public} for each in (PUBLIC, SAME, OTHER)]
    return Door(ask, records, options, *three)


LABELS = {"y_true": Y, "y_pred": PRED}
GROUPED = {**LABELS, "sensitive_features": GROUP}
FRAME = {"metrics": "recall", "group_labels": ["a", "b"]}
FEATURES = [{"sensitive_features": one} for one in (GROUP, pd.Series(GROUP, dtype="category"), GROUP[::-1])]
PAGE = {"labels": [0, 1], "group_labels": ["a", "b"]}
SCORED = {"y_true": Y, "y_score": SCORE}


def page(y_true, **arguments):
    return dp.private_evaluate(y_true, **arguments)


def best(y_true, a, b, **arguments):
    return dp.private_best(y_true, [a, b], metric="accuracy", **arguments)


DOORS = {
    "frame": door(dp.PrivateMetricFrame, GROUPED, "groups", **FRAME, max_records=2),
    "public frame": Door(
        dp.PrivateMetricFrame, LABELS, {**FRAME, "metrics": {"recall": "recall", "mae": "mae"},
                                        "membership": "public"}, *FEATURES
    ),
    "page": Door(page, {**SCORED, "sensitive_features": GROUP}, PAGE),
    "public page": Door(page, SCORED, {**PAGE, "membership": "public"}, *FEATURES),
    "compare": door(
        dp.private_compare, {"y_true": Y, "pred_a": PRED, "pred_b": 1 - PRED}, "groups", max_records=2
    ),
    "mean interval": door(dp.private_mean_interval, {"losses": SCORE}, max_loss=1.0),
    "capped mean interval": door(dp.private_mean_interval, {"losses": SCORE}, cap="private"),
    "quantile interval": door(dp.private_quantile_interval, {"losses": SCORE}, q=0.5),
    "best": door(best, {"y_true": Y, "a": PRED, "b": 1 - PRED}),
}  # fmt: skip


def metric_door(case):
    public = [name for name in PUBLIC if name in case.row.options]
    records = dict(zip(case.row.data, valid(case, N), strict=True))
    return door(with_result(case.function), records, *public, **case.options)


def check(one, path, **settings):
    """Buy once; then each public thing is another question, and nothing else is."""
    asked = {"epsilon": 1.0, "spend_name": "x", **one.options, **settings}
    given = {**one.records, **one.public}
    first = one.ask(**given, **asked, accountant=PrivacyAccountant(9, path))
    new_session()
    budget = PrivacyAccountant(9, path)
    differing = [
        (one.fewer(), f"number of records was {N} and is {N - 1}"),
        ({"epsilon": 2.0}, "epsilon was"),
    ]
    differing += [({name: value}, f"{name} has other values") for name, value in one.other.items()]
    if "sensitive_features" not in one.public:
        differing += [({name: None}, f"{name} was given and is None") for name in one.public
                      if "max_records" not in one.options]  # fmt: skip
    for change, said in differing:
        with pytest.raises(
            ValueError, match=f"another question.*{re.escape(said)}.*Nothing is spent"
        ) as error:
            one.ask(**{**given, **asked, **change}, accountant=budget)
        assert not re.search("987654|123456|sha256", str(error.value))
    unread = {name: Counted(N) for name in one.records}
    with pytest.warns(StoredReleaseWarning, match="records and predictions were not read"):
        again = one.ask(**{**asked, **unread, **one.same}, accountant=budget)
    assert repr(again) == repr(first)
    assert budget.spent == 1


@cases_where(lambda case: True, KINDS)
def test_a_metric_asks_by_all_that_is_public_and_by_nothing_else(case, path):
    check(metric_door(case), path)


@pytest.mark.parametrize("name", DOORS)
def test_a_door_asks_by_all_that_is_public_and_by_nothing_else(name, path):
    check(DOORS[name], path)


@pytest.fixture
def path(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
        yield str(tmp_path / "budget.sqlite")


@pytest.mark.parametrize("wrong", [WEIGHTS[1:], -WEIGHTS, np.zeros(N), np.full(N, np.nan), ["x"] * N])
def test_wrong_weights_are_refused_before_an_answer_is_served_as_before_a_release(wrong, path):
    ask = partial(dp.private_mae, Y, SCORE, epsilon=1, spend_name="x", bounds=(0, 1))
    ask(sample_weight=WEIGHTS, accountant=PrivacyAccountant(1, path))
    with pytest.raises((ValueError, TypeError)) as wanted:
        dp.private_mae(Y, SCORE, epsilon=1, sample_weight=wrong)
    new_session()
    with pytest.raises(wanted.type, match=f"^{re.escape(str(wanted.value))}$"):
        ask(sample_weight=wrong, accountant=PrivacyAccountant(1, path))


def test_lengths_that_differ_are_refused_before_an_answer_is_served(path):
    frame = partial(dp.PrivateMetricFrame, **FRAME, membership="public", epsilon=1.0)
    asked = {
        "metric": (partial(dp.private_mae, epsilon=1.0), {"y_true": Y, "y_pred": SCORE}),
        "compare": (partial(dp.private_compare, epsilon=1.0), {"y_true": Y, "pred_a": Y, "pred_b": PRED}),
        "frame": (frame, GROUPED),
        "page": (
            partial(page, epsilon=1.0, labels=[0, 1], group_labels=["a", "b"], membership="public"),
            {"y_true": Y, "y_score": SCORE, "sensitive_features": GROUP},
        ),
    }
    for name, (ask, records) in asked.items():
        ask(**records, spend_name=name, accountant=PrivacyAccountant(9, f"{path} {name}"))
        new_session()
        budget = PrivacyAccountant(9, f"{path} {name}")
        for one in records:
            shorter = {**records, one: records[one][1:]}
            with pytest.raises(ValueError, match="inconsistent numbers of samples"):
                ask(**shorter, spend_name=name, accountant=budget)
            with pytest.raises(ValueError, match="inconsistent numbers of samples"):
                ask(**shorter)


class Alone:
    """An object that quotes what it holds, whatever it is asked."""

    def __array__(self, *arguments, **options):
        raise ValueError("987654.25")


def test_what_has_no_length_is_not_quoted(path):
    ask = partial(dp.private_mae, y_pred=SCORE, epsilon=1.0, spend_name="x")
    ask(Y, accountant=PrivacyAccountant(1, path))
    new_session()
    for wrong in (np.array(987654.25), np.float64(987654.25), 987654.25, Alone()):
        with pytest.raises(TypeError, match=r"^Expected sequences or array-likes") as error:
            ask(wrong, accountant=PrivacyAccountant(1, path))
        assert not any("987654" in text for text in messages(error.value))


def test_equal_numbers_are_one_question_and_others_are_not(path):
    """The digest is of float64: of 0.1 in float32, another number, it is another one."""
    held = [0.5, 2.0, 0.0] * 20
    ask = partial(dp.private_mae, Y, SCORE, epsilon=1, spend_name="x")
    ask(sample_weight=held, accountant=PrivacyAccountant(1, path))
    negative_zeros = [-0.0 if one == 0 else one for one in held]
    for same in (np.array(held, np.float32), pd.Series(held), np.array(held, ">f8"), negative_zeros,
                 np.array(held)[:, np.newaxis]):  # fmt: skip
        new_session()
        with pytest.warns(StoredReleaseWarning):
            ask(sample_weight=same, accountant=PrivacyAccountant(1, path))
    tenths = partial(ask, spend_name="y", accountant=PrivacyAccountant(2, f"{path} of tenths"))
    tenths(sample_weight=np.full(N, 0.1))
    new_session()
    with pytest.raises(ValueError, match="sample_weight has other values"):
        ask(sample_weight=np.full(N, 0.1, np.float32), spend_name="y",
            accountant=PrivacyAccountant(2, f"{path} of tenths"))  # fmt: skip


def test_of_a_private_number_of_records_nothing_belongs_to_the_question(path):
    settings = {"epsilon": 1.0, "neighboring": "add_or_remove_one"}
    asked = {
        "metric": lambda n, **x: dp.private_mae(Y[:n], SCORE[:n], bounds=(0, 1), **x),
        "frame": lambda n, **x: dp.PrivateMetricFrame(
            **FRAME, y_true=Y[:n], y_pred=PRED[:n], sensitive_features=GROUP[:n], **x
        ),
        "best": lambda n, **x: best(Y[:n], PRED[:n], 1 - PRED[:n], **x),
        "page": lambda n, **x: page(Y[:n], y_score=SCORE[:n], labels=[0, 1], **x),
        "summary": lambda n, **x: dp.ConfusionSummary().update(Y[:n], PRED[:n]).release(**x),
    }
    for name, ask in asked.items():
        found = []
        for n in (N, 7, 0):
            new_session()
            budget = PrivacyAccountant(9, path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StoredReleaseWarning)
                found.append(repr(ask(n, **settings, accountant=budget, spend_name=name)))
        assert len({*found}) == 1
    assert budget.spent == len(asked)
    assert all(set(re.findall('"records"|sha256|number of', kept.question)) == set()
               for kept in budget._ledger.kept())  # fmt: skip


def test_no_id_and_no_digest_of_ids_is_in_the_file(path):
    """Who has the file can test guesses of a digest: so it is of numbers in the order of first appearance."""
    questions = []
    for number, persons in enumerate((PERSONS, RENAMED, -PERSONS)):
        budget = PrivacyAccountant(1, f"{path}{number}")
        dp.private_recall_score(Y, PRED, groups=persons, epsilon=1, accountant=budget, spend_name="x")
        questions.append(budget._ledger.kept()[0].question)
    assert len({*questions}) == 1
    assert "sha256:" in questions[0]


def releasing():
    """Yield all public functions that a budget pays for, with their arguments."""
    for name in dp.__all__:
        thing = getattr(dp, name)
        is_error = isinstance(thing, type) and issubclass(thing, Exception)
        for one in (thing, getattr(thing, "release", None)):
            if callable(one) and not is_error and thing is not dp.PrivateResult:
                arguments = inspect.signature(one).parameters
                if "spend_name" in arguments:
                    yield name, arguments


def test_what_an_argument_is_follows_from_signatures_as_far_as_they_tell():
    """An array that must be given holds records; one that may be is public per record, or a known option."""
    options_that_are_arrays = {"labels", "edges"}
    seen = set()
    for name, arguments in releasing():
        for one in arguments.values():
            seen.add(one.name)
            is_array = "ArrayLike" in str(one.annotation)
            is_needed = one.default is one.empty
            if is_array and is_needed:
                assert one.name in RECORDS, (name, one.name)
            elif is_array:
                assert one.name in PER_RECORD | options_that_are_arrays, (name, one.name)
            elif one.name in PER_RECORD:
                assert one.default is None, (name, one.name)
        assert {*arguments} >= {"epsilon", "accountant", "spend_name", "random_state"}
    assert seen >= (RECORDS | PER_RECORD | SETTINGS)  # no name that no function has
    assert not RECORDS & PER_RECORD
    assert not (RECORDS | PER_RECORD) & SETTINGS


class Hostile:
    """A container that quotes what it holds, whatever is asked of it but its length."""

    def __len__(self):
        return N

    def __getattr__(self, name):
        raise KeyError("987654.25")


@pytest.mark.parametrize("name", [*DOORS, "metric"])
def test_a_container_that_raises_what_it_likes_is_not_quoted(name, path):
    one = {**DOORS, "metric": door(dp.private_mae, {"y_true": Y, "y_pred": SCORE})}[name]
    ask = partial(one.ask, **one.options, epsilon=1.0)
    given = {**one.records, **one.public}
    ask(**given, spend_name="x", accountant=PrivacyAccountant(1, path))
    for argument in given:
        wrong = {**given, argument: Hostile()}
        for asked in ({}, {"spend_name": "x", "accountant": PrivacyAccountant(1, path)}):
            if asked and argument in ("a", "b"):
                continue  # a stored choice is returned without a look at the candidates
            new_session()
            with pytest.raises((TypeError, ValueError)) as error:
                ask(**wrong, **asked)
            assert not any("987654" in text for text in messages(error.value))


def test_the_predictions_of_two_models_have_the_stored_answer_without_being_asked(path):
    model = DummyClassifier().fit(SCORE[:, np.newaxis], Y)
    ask = partial(dp.private_evaluate, epsilon=1.0, spend_name="x")
    ask(model, SCORE[:, np.newaxis], Y, baseline=model, accountant=PrivacyAccountant(1, path))
    new_session()
    with pytest.warns(StoredReleaseWarning):
        ask(model, Counted(N), Counted(N), baseline=model, accountant=PrivacyAccountant(1, path))
