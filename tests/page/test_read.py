"""How a page reads its arguments: by types and public options; refused before the spend, and never after."""

import itertools
import math
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import BAD_RECORDS, LEGAL_LABELS
from helpers import assert_refused, loop_over
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_metrics as dp
from dp_metrics.page import evaluate
from dp_metrics.page.setting import LABELS, PROBABILITIES, SCORES, TARGETS
from dp_metrics.page.setting import given as given_of
from dp_metrics.release.release import Release
from dp_metrics.release.stored.answers import answer_json

RNG = np.random.default_rng(5)
N = 60
Y = RNG.integers(0, 2, N)
PRED = RNG.integers(0, 2, N)
SCORE = RNG.random(N)
THREE = RNG.dirichlet([1, 1, 1], N)
Y3 = RNG.integers(0, 3, N)
GROUP = np.array(["a", "b"])[RNG.integers(0, 2, N)]
TWO, BY_GROUP = {"labels": [0, 1]}, {"sensitive_features": GROUP, "group_labels": ["a", "b"]}


def kinds(
    *data, labels=None, pos_label=None, task=None, baseline=None, features=(), y_pred=None, y_proba=None,
    y_score=None,
):  # fmt: skip
    """Return what the arguments are, and of what kind the baseline is."""
    named = {"y_pred": y_pred, "y_proba": y_proba, "y_score": y_score}
    found = given_of(
        data, named, labels=labels, pos_label=pos_label, task=task, features=features, baseline=baseline
    )  # fmt: skip
    return found.columns, found.baseline


@pytest.fixture(autouse=True)
def no_word_of_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
        yield


# ---- what is recognised ------------------------------------------------------------------------------------

WORDS = np.array(["no", "yes"])[PRED]
COLUMNS = [
    SCORE, SCORE.astype(np.float32), pd.Series(SCORE), pl.Series(SCORE), pd.Series(SCORE, dtype="Float64"),
    pd.DataFrame({"p": SCORE}), pa.array(SCORE), SCORE.reshape(-1, 1), SCORE.tolist(), [], PRED,
    PRED.astype(bool), pd.Series(PRED, dtype="Int64"), pd.Series(PRED > 0, dtype="boolean"), pl.Series(PRED),
    PRED.tolist(), WORDS, pd.Series(WORDS).astype("category"), WORDS.tolist(), SCORE.astype(object),
]  # fmt: skip
SAYS_LABELS = [{"labels": [0, 1]}, {"task": "classification"}]
REGRESSION = {"task": "regression"}


@loop_over("values", COLUMNS)
def test_keywords_say_what_a_column_is_and_values_and_types_do_not(values):
    """As met by users: a page of targets, R2 and all, for integers with their predicted probabilities."""
    for options in SAYS_LABELS:
        found = kinds(Y, y_pred=values, baseline=values, **options)
        assert (
            found == kinds(Y, values, baseline=values, **options) == (("y_true", LABELS, "baseline"), LABELS)
        )
    found = kinds(Y, y_pred=values, baseline=values, **REGRESSION)
    assert found == kinds(Y, values, baseline=values, **REGRESSION)
    assert found == (("y_true", TARGETS, "baseline"), TARGETS)
    for options in ({}, *SAYS_LABELS):
        assert kinds(Y, y_score=values, **options) == (("y_true", SCORES), None)
        assert kinds(Y, y_proba=values, **options) == (("y_true", SCORES), None)
    with pytest.raises(ValueError, match="alone does not tell"):
        kinds(Y, y_pred=values)


@loop_over("values", [THREE, pd.DataFrame(THREE), pl.DataFrame(THREE), THREE.astype(np.float32)])
def test_more_than_two_columns(values):
    found = ("y_true", PROBABILITIES), None
    assert kinds(Y3, y_proba=values) == kinds(Y3, y_proba=values, labels=range(3)) == found
    assert kinds(Y3, y_proba=THREE.tolist(), labels=range(3)) == found
    page = dp.private_evaluate(Y3, y_proba=values, epsilon=1e5)  # of the labels 0, 1 and 2
    assert page["recall of 2"].value > 0


def test_labels_may_come_with_scores_and_features_at_the_end():
    found = ("y_true", LABELS, SCORES, "baseline", "feature", "feature"), LABELS
    for data, options in (((Y,), {"y_pred": PRED}), ((Y, PRED), {})):
        options |= {"y_score": SCORE, "baseline": PRED, "features": (GROUP, PRED)}
        assert kinds(*data, **options) == found
    assert kinds(Y3, y_pred=Y3, y_proba=THREE, baseline=Y3) == (
        ("y_true", LABELS, PROBABILITIES, "baseline"),
        LABELS,
    )
    assert kinds(Y3, y_proba=THREE, baseline=THREE)[1] == PROBABILITIES


# ---- estimators --------------------------------------------------------------------------------------------

X = np.column_stack([SCORE + Y, RNG.random(N)])


class Forbidden:
    """A model whose predictions nobody may ask for."""

    def __init__(self, model):
        self.__dict__.update(model.__dict__)
        self._model = model

    def __sklearn_tags__(self):
        return self._model.__sklearn_tags__()

    def predict(self, x):
        raise AssertionError("predictions were made")

    predict_proba = predict


def test_estimators_are_recognised_before_they_predict():
    two = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    three = LogisticRegression().fit(X, Y3)
    for model, y, kind in (
        (Forbidden(LogisticRegression().fit(X, Y)), Y, SCORES),
        (two, Y, SCORES),
        (three, Y3, PROBABILITIES),
        (LinearSVC().fit(X, Y), Y, LABELS),
        (LinearRegression().fit(X, SCORE), SCORE, TARGETS),
    ):
        assert kinds(model, X, y, baseline=model) == (("y_true", kind, "baseline"), kind)
    assert kinds(two, X, Y, baseline=LinearSVC().fit(X, Y))[1] == LABELS


@loop_over("pos_label", [None, "no"])
def test_an_estimator_is_evaluated_as_its_predictions_are(pos_label):
    y = np.array(["no", "yes"])[Y]
    model, other = (
        LogisticRegression().fit(X, y),
        DummyClassifier(strategy="stratified", random_state=0).fit(X, y),
    )
    column = 0 if pos_label == "no" else 1
    options = {"epsilon": 1e6, "pos_label": pos_label}
    page = dp.private_evaluate(model, X, y, baseline=other, **options)
    arrays = (one.predict_proba(X)[:, column] for one in (model, other))
    options["labels"] = ["no", "yes"]
    same = dp.private_evaluate(y, y_score=next(arrays), baseline=next(arrays), **options)
    assert page.plan == same.plan
    found, wanted = ({name: one.value for name, one in made.numbers.items()} for made in (page, same))
    assert found == pytest.approx(wanted, abs=1e-4)


class Own(BaseEstimator):
    """A model of somebody's own, which does not say what it predicts."""

    def predict(self, x):
        return PRED


def test_a_model_that_does_not_say_what_it_predicts_is_asked_about():
    with pytest.raises(ValueError, match="A model alone does not tell") as caught:
        dp.private_evaluate(Own(), X, Y, epsilon=1)
    assert 'private_evaluate(model, X, y, task="regression"' in str(caught.value)
    assert kinds(Own(), X, Y, labels=[0, 1]) == (("y_true", LABELS), None)
    assert kinds(Own(), X, Y, task="classification") == (("y_true", LABELS), None)
    assert kinds(Own(), X, Y, task="regression") == (("y_true", TARGETS), None)


# ---- records that are refused before the spend -------------------------------------------------------------


def refuses(data, **more):
    """Check that a page of these arguments is refused with nothing spent, and without a word of the data."""
    budget = dp.PrivacyAccountant(1e5)
    call = partial(dp.private_evaluate, **{name: value for name, value in data.items() if name != "y_true"})
    # nothing is left out with such an epsilon
    assert_refused(call, (data["y_true"],), epsilon=1e4, accountant=budget, **more)
    assert budget.spent == 0


FORMS = {
    "scores": ({"y_score": SCORE, "baseline": SCORE, "labels": [0, 1], **BY_GROUP}, Y),
    "labels": ({"y_pred": PRED, "baseline": PRED, "labels": [0, 1], **BY_GROUP}, Y),
    "probabilities": ({"y_proba": THREE, "labels": [0, 1, 2], **BY_GROUP}, Y3),
    "targets": ({"y_pred": SCORE, "baseline": SCORE, **REGRESSION, **BY_GROUP}, SCORE),
}
WAYS = [{}, {"membership": "public"}, {"neighboring": "add_or_remove_one"}]
NAMED = ("y_true", "y_pred", "y_score", "y_proba", "baseline")
ODD = [98765, "98765 Main Street", math.nan, math.inf, None, 98765 * 10**400]


@pytest.mark.parametrize("form", FORMS)
def test_an_odd_record_is_refused_before_the_spend(form):
    options, y_true = FORMS[form]
    data = {"y_true": y_true, **options}
    columns = [name for name in (*NAMED, "sensitive_features") if name in data]
    for way, name, odd in itertools.product(WAYS, columns, ODD):
        if name == "baseline" and ("neighboring" in way or (form == "labels" and isinstance(odd, int))):
            continue  # a label that is never right
        if form == "targets" and odd == 98765 and name != "sensitive_features":
            continue  # a target like others
        values = data[name].tolist()
        values[3] = [odd, *values[3][1:]] if isinstance(values[3], list) else odd
        refuses({**data, **way, name: values})


@pytest.mark.parametrize(("form", "name"), [("scores", "y_score"), ("targets", "y_pred")])
def test_bad_containers_are_refused_before_the_spend(form, name):
    options, y_true = FORMS[form]
    for kind in BAD_RECORDS.keys() - LEGAL_LABELS - {"numeric strings"}:
        spoil = BAD_RECORDS[kind][0]
        if kind != "None":  # which is no argument at all
            refuses({"y_true": y_true, **options, "baseline": None, name: spoil((SCORE * 0.5).tolist())})
        if kind != "records":  # of integers, as labels may be
            refuses({"y_true": spoil(y_true.tolist()), **options})


@pytest.mark.parametrize("form", FORMS)
def test_lengths_must_agree_and_there_must_be_a_record(form):
    options, y_true = FORMS[form]
    data = {"y_true": y_true, **options}
    columns = {name: value for name, value in data.items() if isinstance(value, np.ndarray)}
    for way, name in itertools.product(WAYS, columns):
        if name != "baseline" or "neighboring" not in way:
            other = next(iter(options)) if name == "y_true" else name
            refuses({**data, **way, name: data[name][1:]}, match=f"samples: .*y_true .*{other}")
    none = {**data, **{name: value[:0] for name, value in columns.items()}}
    alone = {"absolute error" if form == "targets" else "labels": 1}
    for way, split in itertools.product(WAYS[:2], (None, alone)):
        refuses({**none, **way, "split": split}, match=r"0 sample\(s\)")


def test_what_needs_more_records_gives_way_to_less():
    plan = dp.private_evaluate(Y, y_pred=PRED, **TWO, **BY_GROUP, epsilon=1.0, dry_run=True)
    assert [part.name for part in plan.parts] == ["labels"]
    assert [one.about for one in plan.left_out] == ["counts of true and predicted labels, by group"]
    assert "it takes about" in plan.left_out[0].why
    budget = dp.PrivacyAccountant(1)
    found = dp.private_evaluate(Y, y_pred=PRED, **TWO, **BY_GROUP, epsilon=1.0, accountant=budget)
    assert found.plan == plan
    assert not any("in 'a'" in name for name in found.numbers)
    refuses({"y_true": Y, "y_pred": PRED, **TWO, **BY_GROUP, "split": {"labels": 1}}, match="split must be")


# ---- nothing depends on what is private --------------------------------------------------------------------


class Held(Exception):
    """What a call is about to release."""


def public_facts(monkeypatch, y_true, **options):
    """Return all that is public of a call: its question, the plan, and the form that is stored."""

    def held(release, read, make):
        raise Held(release._question(), *read())

    monkeypatch.setattr(Release, "answer", held)
    with pytest.raises(Held) as caught:
        dp.private_evaluate(y_true, **{"epsilon": 2.0, **options})
    question, plan, _, form = caught.value.args
    return question, plan, answer_json("page", form, [])


@pytest.mark.parametrize("form", FORMS)
@loop_over("holder", [np.array, list])
def test_with_a_private_n_nothing_depends_on_the_number_of_records(form, holder, monkeypatch):
    options, y_true = FORMS[form]
    options = {**options, "neighboring": "add_or_remove_one", "baseline": None}
    for guess in (None, 50_000):
        facts = []
        for rows in (slice(None), slice(30, None), slice(1), slice(0)):
            cut = {name: holder(one[rows]) for name, one in options.items() if isinstance(one, np.ndarray)}
            some = {**options, **cut}
            if form == "targets" and holder is list:
                some["y_pred"] = options["y_pred"][rows]  # lists alone do not state their columns
            facts.append(public_facts(monkeypatch, holder(y_true[rows]), **some, n=guess))
            plan = dp.private_evaluate(holder(y_true[rows]), **some, n=guess, epsilon=2.0, dry_run=True)
            facts[-1] += (repr(plan), plan.n)
        assert all(one == facts[0] for one in facts)
        assert facts[0][-1] == guess


@pytest.mark.parametrize("form", FORMS)
@loop_over("way", WAYS)
def test_what_is_public_does_not_depend_on_what_records_hold(form, way, monkeypatch):
    options, y_true = FORMS[form]
    if "neighboring" in way:
        options = {**options, "baseline": None}
    other = {
        name: np.resize(value[7:8], value.shape) if name in NAMED and value is not None else value
        for name, value in options.items()
    }
    if "membership" not in way:
        other["sensitive_features"] = np.full(N, "b")
    epsilon = {"epsilon": 200.0}  # all parts are there
    one = public_facts(monkeypatch, y_true, **options, **way, **epsilon)
    assert one == public_facts(monkeypatch, np.resize(y_true[:1], N), **other, **way, **epsilon)


def test_one_record_does_not_change_how_others_are_read(monkeypatch):
    """Neighbours give neighbouring counts: the pieces that the shares read differ in the record that does."""
    seen = []
    reader = evaluate.plan_of_page

    def recorded(form, division):
        plan = reader(form, division)
        monkeypatch.setattr(type(plan), "read", lambda plan, records: seen.append(plan.reader(records)) or ())
        return plan

    monkeypatch.setattr(evaluate, "plan_of_page", recorded)
    base = {"y_true": Y, "y_score": SCORE, "baseline": SCORE[::-1].copy(), "sensitive_features": GROUP}
    for name, value in {
        "y_true": 1 - Y[3], "y_score": 1.0, "baseline": 0.0, "sensitive_features": "ab".strip(GROUP[3])
    }.items():  # fmt: skip
        changed = {key: values.copy() for key, values in base.items()}
        changed[name][3] = value
        seen.clear()
        for data in (base, changed):
            public_facts(monkeypatch, **data, labels=[0, 1], group_labels=["a", "b"], epsilon=200.0)
        first, second = seen
        for one, two in zip(first, second, strict=True):
            for a, b in zip(one.arrays, two.arrays, strict=True):
                assert (a != b).sum() <= 1
                assert a[3] == a[3]
                assert np.array_equal(np.delete(a, 3), np.delete(b, 3))


# ---- after the spend ---------------------------------------------------------------------------------------

HOSTILE = [0.0, 1e-300, 0.5, 1.0, -1.0, 1e16, 1e308, -1e308]


@st.composite
def calls(draw):
    """Return arguments of a page about few records, of one class or of several, with empty groups."""
    kind = draw(st.sampled_from(["scores", "labels", "both", "edges", "probabilities", "five", "targets"]))
    way = draw(st.sampled_from(WAYS))
    n = draw(st.integers(0 if "neighboring" in way else 1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    options = {**way, "epsilon": draw(st.sampled_from([1e-9, 1e-3, 0.5, 3.0, 40.0, 1e9, 1e100]))}
    labels = {"probabilities": 3, "five": 5}.get(kind, 2)
    some = rng.permutation(labels)[: draw(st.integers(1, labels))]  # of the labels
    names = np.array(list("abcde"))[:labels]
    y_true = names[rng.choice(some, n)]
    unit = partial(rng.choice, [0.0, 0.25, 0.5, 1.0]) if draw(st.booleans()) else rng.random
    options |= REGRESSION if kind == "targets" else {"labels": names.tolist()}
    if kind in ("scores", "both"):
        options["y_score"] = unit(size=n)
    if kind == "edges":
        options |= {"y_score": rng.choice(HOSTILE, n), "edges": [-1, 0, 0.3, 1e300], "threshold": 0.2}
    if kind in ("labels", "both", "five"):
        options["y_pred"] = names[rng.choice(draw(st.sampled_from([some, np.arange(labels)])), n)]
    if kind == "probabilities":
        options["y_proba"] = (
            np.eye(3)[rng.integers(0, 3, n)] if draw(st.booleans()) else rng.dirichlet([1] * 3, n)
        )
    if kind == "targets":
        y_true, options["y_pred"] = rng.choice(HOSTILE, n), rng.choice(HOSTILE[: draw(st.integers(1, 8))], n)
        options["bounds"] = draw(st.sampled_from([None, (-1, 1), (0, 1e308)]))
    if "membership" in way or draw(st.booleans()):
        options |= {
            "sensitive_features": rng.integers(0, draw(st.integers(1, 3)), n),
            "group_labels": [0, 1, 2],
        }
    if "neighboring" not in way and draw(st.booleans()):
        other = {
            "scores": rng.random(n),
            "targets": rng.random(n),
            "probabilities": rng.dirichlet([1] * 3, n),
        }
        options["baseline"] = other.get(kind, options.get("y_score" if kind == "edges" else "y_pred"))
    return y_true, options


def limits(ask):
    """Return limits, or none where there is a reason why there are none."""
    try:
        return ask(0.9)
    except ValueError as error:
        reason = str(error)
    assert reason
    return 0.0, 0.0


def check_call(y_true, options):
    """Check that a page is refused before the spend or made, and has numbers whose limits are in order."""
    split = [
        part.name for part in dp.private_evaluate(y_true, **{**options, "epsilon": 1e60}, dry_run=True).parts
    ]
    budget = dp.PrivacyAccountant(1e101)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page = dp.private_evaluate(y_true, **options, accountant=budget, split=dict.fromkeys(split, 1))
        assert budget.spent == options["epsilon"]
        for number in page.numbers.values():
            assert isinstance(number.value, float)
            for ask in (number.noise_interval, number.population_interval):
                lower, upper = limits(ask)
                assert lower <= upper, number.name


@settings(max_examples=10)
@given(calls())
def test_nothing_raises_after_the_spend(call):
    check_call(*call)


@pytest.mark.slow
@pytest.mark.weekly(reason="a thousand pages take ten minutes")
@settings(max_examples=1000)
@given(calls())
def test_nothing_raises_after_the_spend_of_many(call):
    check_call(*call)
