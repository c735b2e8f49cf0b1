"""What is public of a call belongs to its question, and what is private does not; whoever asks it again has
all of the stored answer. At every door.
"""

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from cases import CASES, KINDS, PRIVATE_N, valid
from helpers import later, loop_over, messages, telling
from sklearn.dummy import DummyClassifier

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, with_result
from dp_metrics.exceptions import NoisyReleaseWarning, StoredReleaseWarning
from dp_metrics.inputs.losses import identity
from dp_metrics.mechanisms import Hazard
from dp_metrics.quantities.tables import TableOf
from dp_metrics.release.query import Query
from dp_metrics.release.result import Result
from dp_metrics.release.stored import PER_RECORD, RECORDS, SETTINGS

N = 120
RNG = np.random.default_rng(31)
Y = RNG.integers(0, 2, N)
PRED = np.where(RNG.random(N) < 0.8, Y, 1 - Y)
SCORE = np.clip(RNG.integers(0, 49, N) + 16 * Y, 0, 64) / 64
GROUP = RNG.choice(["a", "b"], N)
Y3, THREE = RNG.integers(0, 3, N), RNG.dirichlet([1, 1, 1], N)
NAMES = np.array(["no", "yes"])
WEIGHTS = RNG.integers(1, 5, N) / 4 + 987654.0
PERSONS = np.repeat(np.arange(N // 3) + 123456, 3)
RENAMED = [f"person {person}" for person in PERSONS.tolist()]
# what is public of each record, the same held otherwise, and other values
PUBLIC = {
    "sample_weight": (WEIGHTS, pd.Series(WEIGHTS, dtype=np.float32), WEIGHTS[::-1].copy()),
    "groups": (PERSONS, RENAMED, np.roll(PERSONS, 1)),
    "sensitive_features": (GROUP, pd.Series(GROUP, dtype="category"), GROUP[::-1]),
}
PEOPLE, BOTH = ("replace_one",), ("replace_one", "add_or_remove_one")


class Untouchable:
    """Records that nobody may look at, not even at their type or length: their number is private."""

    def __getattribute__(self, name):
        raise AssertionError(f"{name} of the records was looked at")

    def __len__(self):
        raise AssertionError("the records were counted or read")

    __iter__ = __array__ = __getitem__ = __len__


class Counted:
    """Records of which nothing is public but their number, and their form as an array."""

    def __init__(self, records):
        held = np.asarray(records)
        self.dtype, self.shape, self.ndim = held.dtype, held.shape, held.ndim

    def __len__(self):
        return N

    def __getitem__(self, rows):
        if rows == slice(0):
            return np.empty((0, *self.shape[1:]), self.dtype)
        raise AssertionError("a record was looked at")

    def __iter__(self):
        raise AssertionError("the records were read")

    __array__ = __iter__


@dataclass
class Door:
    """A function that releases, what it is asked, and what of that is public for each record."""

    ask: Callable[..., Any]
    records: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    public: tuple[str, ...] = ()
    relations: tuple[str, ...] = PEOPLE
    reads_before: bool = False  # as a summary does

    def asked(self, which: int = 0) -> dict[str, Any]:
        return {**self.options, **{name: PUBLIC[name][which] for name in self.public}}


def confusion(y_true, y_pred, **settings):
    summary = dp.Summary("confusion_matrix", labels=NAMES).update(NAMES[y_true], NAMES[y_pred])
    return with_result(summary.release)(**settings)


def losses(y_true, y_pred, **settings):
    summary = dp.Summary(dp.private_mae, bounds=(0, 1)).update(y_true.astype(float), y_pred)
    return with_result(summary.release)(**settings)


def log_losses(y_true, y_score, **asked):
    thirds = np.column_stack([1 - y_score, y_score / 2, y_score / 2]).astype(np.float32)
    summary = dp.Summary(dp.private_log_loss, **{name: asked.pop(name) for name in OF_THREE})
    return with_result(summary.update(y_true, thirds).release)(**asked)


def best(y_true, a, b, **arguments):
    return dp.private_best(y_true, [a, b], metric="brier", **arguments)


def page(y_true, **arguments):
    return dp.private_evaluate(y_true, **arguments)


frame = dp.PrivateMetricFrame
LABELS, SCORED = {"y_true": Y, "y_pred": PRED}, {"y_true": Y, "y_score": SCORE}
GROUPED = {"sensitive_features": GROUP}
MAE = {"y_true": Y, "y_pred": SCORE}
MODELS = {"y_true": Y, "pred_a": SCORE, "pred_b": 1 - SCORE}
IN_GROUPS = {"group_labels": ["a", "b"]}
OF_LABELS = {**IN_GROUPS, "metrics": {"accuracy": dp.private_accuracy_score, "recall": "recall"}}
OF_SCORES = {
    **IN_GROUPS,
    "metrics": {"auc": dp.private_roc_auc_score, "mae": partial(dp.private_mae, bounds=(0, 1))},
}
OF_THREE = {"labels": [0, 1, 2], "max_loss": 5.0}
IN_TWO, KEPT = ("sensitive_features",), {"max_records": 2}
TARGETS = {"y_true": SCORE, "y_pred": SCORE[::-1], "baseline": np.zeros(N)}
REGRESSION = {"task": "regression"}
OF_THREE_LABELS = {
    "y_true": Y3, "y_proba": THREE, "baseline": THREE[::-1],
    "sensitive_features": pd.DataFrame({"g": GROUP, "h": Y3}),  # whose columns are taken apart unread
}  # fmt: skip

DOORS = {
    "report": Door(dp.private_classification_report, LABELS, {}, (), BOTH),
    "confusion summary": Door(confusion, LABELS, {}, (), BOTH, True),
    "loss summary": Door(losses, MAE, {}, (), BOTH, True),
    "wide summary of labels": Door(log_losses, SCORED, OF_THREE, (), BOTH, True),
    "mean interval": Door(dp.private_mean_interval, {"losses": SCORE}, {"max_loss": 1.0}),
    "capped mean interval": Door(dp.private_mean_interval, {"losses": SCORE}, {"cap": "private"}),
    "quantile interval": Door(dp.private_quantile_interval, {"losses": SCORE}, {"q": 0.5}),
    "wins": Door(dp.private_compare, MODELS, {"loss": dp.private_mae, **KEPT}, ("groups",)),
    "difference": Door(dp.private_compare, MODELS, {"loss": "mae", "max_difference": 1}),
    "choice": Door(best, {"y_true": Y, "a": SCORE, "b": 1 - SCORE}, {}, (), BOTH),
    "frame of labels": Door(frame, {**LABELS, **GROUPED}, OF_LABELS, (), BOTH),
    "frame of scores": Door(frame, {**MAE, **GROUPED}, OF_SCORES, (), BOTH),
    "frame of one": Door(
        frame, {**LABELS, **GROUPED}, {**IN_GROUPS, "metrics": "recall", **KEPT}, ("groups",)
    ),
    "public frame": Door(frame, MAE, {**OF_SCORES, "membership": "public"}, IN_TWO),
    "persons who count once": Door(
        with_result(dp.private_recall_score), LABELS, {"equal_groups": True, **KEPT}, ("groups",)
    ),
    "page of persons": Door(page, SCORED, {"labels": [0, 1], **KEPT}, ("groups",)),
    "public page": Door(page, SCORED, {"labels": [0, 1], **IN_GROUPS, "membership": "public"}, IN_TWO),
    "page": Door(
        page, {**SCORED, "baseline": 1 - SCORE, **GROUPED}, {"labels": [0, 1], **IN_GROUPS}, (), BOTH
    ),
    "page, words": Door(page, SCORED, {"threshold": 0.3, "title": "Stays <of>", "unit_name": ("a", "b")}),
    "page of labels": Door(
        page, {"y_true": NAMES[Y], "y_pred": NAMES[PRED], **GROUPED},
        {"labels": ["no", "yes"], "pos_label": "no", **IN_GROUPS},
    ),
    "page of edges": Door(
        page, {"y_true": Y, "y_score": 10 * SCORE}, {"edges": [2, 4, 8], "threshold": 4, "labels": [0, 1]}
    ),
    "page of probabilities": Door(
        page, OF_THREE_LABELS, {"labels": range(3), "group_labels": [["a", "b"], [0, 1, 2]]}
    ),
    "page of targets": Door(page, {**TARGETS, **GROUPED}, {**REGRESSION, **IN_GROUPS}, (), BOTH),
    "public page of targets": Door(
        page, TARGETS,
        {**REGRESSION, **IN_GROUPS, "membership": "public", "bounds": (0, 1), "split": {"errors": 1}}, IN_TWO,
    ),
}  # fmt: skip


def metric_door(case):
    public = tuple(name for name in ("sample_weight", "groups") if name in case.row.options)
    records = dict(zip(case.row.data, valid(case, N), strict=True))
    relations = BOTH if "neighboring" in case.parameters and not case.options.get("multi_class") else PEOPLE
    return Door(with_result(case.function), records, case.options, public, relations)


DOORS |= {f"metric: {name}": metric_door(CASES[name]) for name in sorted(KINDS)}


@pytest.fixture
def path(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyReleaseWarning)
        yield str(tmp_path / "budget.sqlite")


def free_answers(release):
    """Return all that a release tells without arguments, but for pictures, and lists in place of tuples."""
    found = {"itself": repr(release)}
    for name in () if isinstance(release, str) else dir(release):
        if not name.startswith("_") and name not in ("plot", "public", "results"):
            try:
                one = getattr(release, name)
                found[name] = re.sub(" at 0x[0-9a-f]+", "", repr(one() if callable(one) else one))
            except (TypeError, ValueError) as error:
                found[name] = repr(error)
    return found


def told(page):
    """Return all that a page tells, but for the budget, which is that of the day."""
    of_today = {"budget": None, "summary": page.summary[:-1]}
    return page.to_dict() | of_today, {name: one.value for name, one in page.items()}, page.plan


@pytest.mark.gate
@pytest.mark.parametrize("name", DOORS)
def test_a_question_is_all_that_is_public_and_its_answer_says_all_again(name, path):
    one = DOORS[name]
    for relation in one.relations:
        settings = {"epsilon": 1.0, "spend_name": relation, "neighboring": relation}
        if one.relations == PEOPLE:
            del settings["neighboring"]
        is_public, budget = relation == "replace_one", f"{path} {relation}"
        public = one.asked() if is_public else one.options
        first = one.ask(**one.records, **public, **settings, accountant=PrivacyAccountant(9, budget))
        if isinstance(first, dp.PrivateEvaluation):
            first.is_returned = True  # as a page says that was stored
        wanted = free_answers(first)
        second = later(budget)
        differing = [({"epsilon": 2.0}, "epsilon was")]
        if is_public:
            fewer = {**one.records, **{name: PUBLIC[name][0] for name in one.public}}
            fewer = {name: value[1:] for name, value in fewer.items()}
            differing += [(fewer, f"number of records was {N} and is {N - 1}")]
            differing += [({other: PUBLIC[other][2]}, f"{other} has other values") for other in one.public]
            if "equal_groups" in one.options:
                differing += [({"equal_groups": False}, "equal_groups")]
        if one.public and one.public[0] == "sample_weight":
            differing += [({other: None}, f"{other} was given and is None") for other in one.public]
        for change, said in differing if is_public else differing[:1]:
            with pytest.raises(
                ValueError, match=f"another question.*{re.escape(said)}.*Nothing is spent"
            ) as error:
                one.ask(**{**one.records, **public, **settings, **change}, accountant=second)
            assert not re.search("987654|123456|sha256", str(error.value))
        unread = one.records
        if not one.reads_before:
            # what a page tells follows from the form of arrays, whatever is public
            hold = Counted if is_public or one.ask is page else lambda records: Untouchable()
            held = {name: hold(a) for name, a in one.records.items() if isinstance(a, np.ndarray)}
            unread = {**one.records, **held}
        public = one.asked(1) if is_public else one.options
        with pytest.warns(StoredReleaseWarning, match="records and predictions were not read") as caught:
            again = one.ask(**unread, **public, **settings, accountant=second)
        assert caught[0].filename == __file__
        assert second.spent == 1
        assert type(again) is type(first)
        assert free_answers(again) == wanted
        looked_up = second[relation]
        if isinstance(first, dp.PrivateEvaluation):
            assert told(looked_up) == told(first)
        else:
            assert isinstance(first, str) or free_answers(looked_up) == wanted


def test_another_metric_option_or_form_under_a_name_is_refused(path):
    usual = {"epsilon": 1, "bounds": (0, 1), "spend_name": "x"}
    dp.private_mae(**MAE, **usual, accountant=PrivacyAccountant(9, path))
    budget = later(path)
    for change in (
        {"epsilon": Fraction(1) + Fraction(1, 10**30)}, {"bounds": (0, 2)}, {"bounds": None},
        {"mechanism": "hazard"}, {"mechanism": Hazard(resolution=0.5)}, {"multioutput": "raw_values"},
        PRIVATE_N,
    ):  # fmt: skip
        (name,) = change
        with pytest.raises(ValueError, match=rf"another question.* {name} was .* and is .*Nothing is spent"):
            dp.private_mae(**MAE, **{**usual, **change}, accountant=budget)
    settings = {"epsilon": 1, "accountant": budget, "spend_name": "x"}
    for other in (
        lambda: dp.private_mse(**MAE, bounds=(0, 1), **settings),
        lambda: frame(**MAE, **GROUPED, **IN_GROUPS, metrics="mae", **settings),
        lambda: confusion(Y, PRED, **settings),
        lambda: dp.private_mean_interval(SCORE, max_loss=1.0, **settings),
    ):
        with pytest.raises(ValueError, match="another question"):
            other()
    same = {"bounds": np.array([0.0, 1.0]), "epsilon": Fraction(1), "mechanism": "adaptive"}
    with pytest.warns(StoredReleaseWarning):
        dp.private_mae(**MAE, **{**usual, **same}, accountant=budget)
    assert budget.spent == 1


def test_a_loss_to_compare_by_is_the_same_by_each_of_its_names_with_its_keywords(path):
    ask = partial(dp.private_compare, **MODELS, epsilon=1, spend_name="x")
    first = ask(loss=partial(dp.private_mae, bounds=(0, 1)), accountant=PrivacyAccountant(9, path))
    for name in ("private_mae", "neg_mean_absolute_error"):
        with pytest.warns(StoredReleaseWarning):
            assert ask(loss=name, bounds=[0, 1], accountant=later(path)) == first
    for other in ({"loss": "mae"}, {"loss": partial(dp.private_mae, bounds=(0, 2))}, {"loss": "mse"}):
        with pytest.raises(ValueError, match="another question"):
            ask(**other, accountant=later(path))


def test_how_persons_count_is_asked_of_records_in_chunks_too(path):
    persons, most = np.arange(N) // 3, {"labels": [0, 1], "max_records": 2}  # of whom one record is left out

    def summarised(change, **settings):
        summary = dp.Summary("recall", **{**most, **change}).update(Y, PRED, groups=persons)
        return summary.release(**settings)

    def in_partitions(change, **settings):
        chunks = [da.from_array(one, chunks=N // 2) for one in (Y, PRED, persons)]
        return dp.private_recall_score(*chunks[:2], groups=chunks[2], **{**most, **change}, **settings)

    for ask in (summarised, in_partitions):
        ask, budget = partial(ask, epsilon=1.0, spend_name="x"), f"{path} {ask.__name__}"
        first = ask({}, accountant=PrivacyAccountant(9, budget))
        for change in ({"max_records": 3}, {"max_records": None}, {"equal_groups": True}):
            with pytest.raises(ValueError, match=f"another question.*{min(change)} was "):
                ask(change, accountant=later(budget))
        with pytest.warns(StoredReleaseWarning):
            assert ask({"equal_groups": False}, accountant=later(budget)) == first


def test_equal_numbers_are_one_question_and_others_are_not(path):
    """The digest is of float64: of 0.1 in float32, another number, it is another one."""
    held = [0.5, 2.0, 0.0] * (N // 3)
    ask = partial(dp.private_mae, **MAE, epsilon=1)
    ask(sample_weight=held, spend_name="x", accountant=PrivacyAccountant(9, path))
    ask(sample_weight=np.full(N, 0.1), spend_name="y", accountant=PrivacyAccountant(9, path))
    negative_zeros = [-0.0 if one == 0 else one for one in held]
    for same in (np.array(held, np.float32), pd.Series(held), np.array(held, ">f8"), negative_zeros,
                 np.array(held)[:, np.newaxis]):  # fmt: skip
        with pytest.warns(StoredReleaseWarning):
            ask(sample_weight=same, spend_name="x", accountant=later(path))
    with pytest.raises(ValueError, match="sample_weight has other values"):
        ask(sample_weight=np.full(N, 0.1, np.float32), spend_name="y", accountant=later(path))


# ---- what is private --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_a_private_number_of_records_is_in_no_question_and_no_form_not_even_whether_it_is_0(make, path):
    asked = {
        "metric": lambda y, p, g, **x: dp.private_mae(y, p, bounds=(0, 1), **x),
        "frame": lambda y, p, g, **x: frame(
            metrics="mae", y_true=y, y_pred=p, sensitive_features=g, **IN_GROUPS, **x
        ),
        "choice": lambda y, p, g, **x: best(y, p, p, **x),
        "page": lambda y, p, g, **x: page(y, y_score=p, labels=[0, 1], **x),
        "summary": lambda y, p, g, **x: dp.Summary(dp.private_mae).update(y, p).release(**x),
    }
    for name in asked if make is np.array else ("metric", "summary"):
        kept = set()
        for n in (0, 1, 37):
            budget = PrivacyAccountant(1, f"{path}{name}{n}")
            data = [make(column[:n]) for column in (Y.astype(float), SCORE, GROUP)]
            asked[name](*data, epsilon=1.0, accountant=budget, spend_name="x", **PRIVATE_N)
            (one,) = budget._ledger.kept()
            form = re.search('"form": (.*), "results"', one.answer)[1]
            form = re.sub(r'"index": \d|"datetime": "[^"]*"', "", form)  # which is the choice, and the time
            kept.add((one.question, form))
        assert len(kept) == 1, name
        assert not re.search('"records"|sha256|number of|37', one.question + form)


def test_no_weight_and_no_id_nor_a_digest_of_ids_is_in_the_file(path):
    """Who has the file can test guesses of a digest: so it is of numbers in the order of first appearance."""
    questions, weights = [], 1 + RNG.random(N)
    for number, persons in enumerate((PERSONS, RENAMED, -PERSONS)):
        budget = PrivacyAccountant(2, f"{path}{number}")
        dp.private_recall_score(Y, PRED, groups=persons, epsilon=1, accountant=budget, spend_name="x")
        dp.private_mae(Y, SCORE, sample_weight=weights, groups=persons, epsilon=1, accountant=budget)
        written = "".join(kept.question + kept.answer for kept in budget._ledger.kept())
        assert not [one for one in (*weights.tolist(), *PERSONS.tolist()) if str(one) in written]
        questions.append(budget._ledger.kept()[0].question)
    assert len({*questions}) == 1
    assert "sha256:" in questions[0]


# ---- what is wrong ----------------------------------------------------------------------------------------


def test_wrong_weights_and_lengths_are_refused_before_an_answer_is_served_as_before_a_release(path):
    weighted = {**MAE, "sample_weight": WEIGHTS}
    collections = {name: da.from_array(one, chunks=N) for name, one in weighted.items()}
    asked = {
        "lengths that collections state": Door(dp.private_mae, collections, {"bounds": (0, 1)}),
        "metric": Door(dp.private_mae, MAE, {"bounds": (0, 1)}, ("sample_weight",)),
        "compare": Door(dp.private_compare, MODELS, {"loss": "mae"}),
        "frame": Door(frame, {**LABELS, **GROUPED}, {**OF_LABELS, "membership": "public"}),
        "page": Door(page, {**SCORED, **GROUPED}, {"labels": [0, 1], **IN_GROUPS, "membership": "public"}),
    }
    for name, one in asked.items():
        budget = f"{path} {name}"
        one.ask(**one.records, **one.asked(), epsilon=1, spend_name=name, accountant=later(budget))
        wrong = [{record: one.records[record][1:]} for record in one.records]
        if one.public:
            wrong += [{"sample_weight": bad} for bad in (
                WEIGHTS[1:], -WEIGHTS, np.zeros(N), np.full(N, np.nan), ["x"] * N,
            )]  # fmt: skip
        for bad in wrong:
            given = {**one.records, **one.asked(), **bad}
            with pytest.raises((ValueError, TypeError)) as wanted:
                one.ask(**given, epsilon=1)
            with pytest.raises(wanted.type) as found:
                one.ask(**given, epsilon=1, spend_name=name, accountant=later(budget))
            texts = [str(each.value) for each in (wanted, found)]
            assert texts[0] == texts[1] or all("inconsistent numbers of samples" in text for text in texts)


class Hostile:
    """A container that quotes what it holds, whatever is asked of it but its length."""

    def __len__(self):
        return N

    def __getattr__(self, name):
        raise KeyError("987654.25")


def test_no_container_is_quoted(path):
    for name in ("frame of one", "public frame", "page", "wins", "mean interval", "choice", "metric: mse"):
        one = DOORS[name]
        given = {**one.records, **one.asked()}
        budget = f"{path} {name}"
        one.ask(**given, epsilon=1, spend_name=name, accountant=PrivacyAccountant(9, budget))
        for argument in [*one.records, *one.public]:
            for asked in ({}, {"spend_name": name, "accountant": later(budget)}):
                if asked and argument in ("a", "b"):
                    continue  # a stored choice is returned without a look at the candidates
                with pytest.raises((TypeError, ValueError)) as error:
                    one.ask(**{**given, argument: Hostile()}, epsilon=1, **asked)
                assert not any("987654" in text for text in messages(error.value))
    for wrong in (np.array(987654.25), np.float64(987654.25), 987654.25, telling("array")):
        with pytest.raises(TypeError, match=r"^Expected sequences or array-likes") as error:
            DOORS["metric: mse"].ask(
                wrong, SCORE, epsilon=1, spend_name="metric: mse", accountant=later(budget)
            )
        assert not any("987654" in text for text in messages(error.value))


def releasing():
    """Yield all public functions that a budget pays for, with their arguments."""
    for name in dp.__all__:
        thing = getattr(dp, name)
        is_error = isinstance(thing, type) and issubclass(thing, Exception)
        for one in (thing, getattr(thing, "release", None)):
            if callable(one) and not is_error and thing is not Result:
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
                assert one.default in (None, False), (name, one.name)
        assert {*arguments} >= {"epsilon", "accountant", "spend_name", "random_state"}
    assert seen >= (RECORDS | PER_RECORD | SETTINGS)  # no name that no function has
    assert not RECORDS & PER_RECORD
    assert not (RECORDS | PER_RECORD) & SETTINGS


def test_two_models_have_the_stored_answer_without_being_asked(path):
    model = DummyClassifier().fit(SCORE[:, np.newaxis], Y)
    ask = partial(dp.private_evaluate, epsilon=1.0, spend_name="x")
    ask(model, SCORE[:, np.newaxis], Y, baseline=model, accountant=PrivacyAccountant(9, path))
    with pytest.warns(StoredReleaseWarning):
        ask(model, Counted(SCORE[:, np.newaxis]), Counted(Y), baseline=model, accountant=later(path))


@dataclass(frozen=True)
class Counts:
    """Count records in a manner that an array tells."""

    weights: np.ndarray

    def find(self, records):
        return self.weights


@pytest.mark.parametrize("of", [lambda counts: counts.find, lambda counts: partial(counts.find)])
def test_queries_are_equal_if_what_they_count_by_is_a_method_of_equal_objects(of):
    one, same, other = (
        Query((TableOf(((2, Fraction(1)),), True, of(Counts(np.array([1, last])))),), identity)
        for last in (2, 2, 3)
    )
    assert one == same != other
    assert hash(one) == hash(same)


@loop_over("shares", [(1, 1), (Fraction(1, 2),), (0, 1), (Fraction(3, 2), Fraction(-1, 2))])
def test_parts_of_epsilon_are_positive_and_add_up_to_it(shares):
    with pytest.raises(ValueError, match="positive parts of epsilon with sum 1"):
        Query((), identity, shares=shares)
