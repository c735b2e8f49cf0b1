"""How a page reads its arguments: by types and public options; refused before the spend, and never after.

What neighbouring records change of a page is audited in `test_audit.py`.
"""

import contextlib
import itertools
import math
import warnings
from functools import partial

import cases
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import BAD_RECORDS
from helpers import assert_refused, loop_over
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_metrics as dp
from dp_metrics.page.setting import LABELS, PROBABILITIES, SCORES, TARGETS, given as given_of

RNG = np.random.default_rng(5)
N = 60
Y = RNG.integers(0, 2, N)
PRED = RNG.integers(0, 2, N)
SCORE = RNG.random(N)
THREE = RNG.dirichlet([1, 1, 1], N)
Y3 = RNG.integers(0, 3, N)
GROUP = np.array(["a", "b"])[RNG.integers(0, 2, N)]
TWO, BY_GROUP = {"labels": [0, 1]}, {"sensitive_features": GROUP, "group_labels": ["a", "b"]}
pytestmark = pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.NoisyReleaseWarning")


def kinds(
    *data, labels=None, pos_label=None, task=None, baseline=None, features=(), y_pred=None, y_proba=None,
    y_score=None,
):  # fmt: skip
    """Return what the arguments are, and of what kind the baseline is."""
    named = {"y_pred": y_pred, "y_proba": y_proba, "y_score": y_score}
    found, _, _ = given_of(
        data, named, labels=labels, pos_label=pos_label, task=task, features=features, baseline=baseline
    )  # fmt: skip
    return found["columns"], found["baseline"]


# ---- what is recognised ------------------------------------------------------------------------------------

WORDS = np.array(["no", "yes"])[PRED]
COLUMNS = [
    SCORE, pd.Series(SCORE), pl.Series(SCORE), pd.DataFrame({"p": SCORE}), pa.array(SCORE), SCORE[:, None],
    SCORE.tolist(), [], PRED, PRED > 0, pd.Series(PRED, dtype="Int64"), PRED.tolist(), WORDS,
    pd.Series(WORDS).astype("category"), SCORE.astype(object),
]  # fmt: skip
SAYS_LABELS = [{"labels": [0, 1]}, {"task": "classification"}]
REGRESSION = {"task": "regression"}


@loop_over("values", COLUMNS)
def test_keywords_say_what_a_column_is_and_values_and_types_do_not(values):
    """As met by users: a page of targets, R2 and all, for integers with their predicted probabilities."""
    for options in SAYS_LABELS:
        found = kinds(Y, y_pred=values, baseline=values, **options)
        assert found == kinds(Y, values, baseline=values, **options)
        assert found == (("y_true", LABELS, "baseline"), LABELS)
    found = kinds(Y, y_pred=values, baseline=values, **REGRESSION)
    assert found == kinds(Y, values, baseline=values, **REGRESSION)
    assert found == (("y_true", TARGETS, "baseline"), TARGETS)
    for options in ({}, *SAYS_LABELS):
        assert kinds(Y, y_score=values, **options) == (("y_true", SCORES), None)
        assert kinds(Y, y_proba=values, **options) == (("y_true", SCORES), None)
    with pytest.raises(ValueError, match="alone does not tell"):
        kinds(Y, y_pred=values)


def test_labels_may_come_with_scores_and_features_at_the_end():
    found = ("y_true", LABELS, SCORES, "baseline", "feature", "feature"), LABELS
    for data, options in (((Y,), {"y_pred": PRED}), ((Y, PRED), {})):
        options |= {"y_score": SCORE, "baseline": PRED, "features": (GROUP, PRED)}
        assert kinds(*data, **options) == found
    found = ("y_true", LABELS, PROBABILITIES, "baseline"), LABELS
    assert kinds(Y3, y_pred=Y3, y_proba=THREE, baseline=Y3) == found
    of_three = ("y_true", PROBABILITIES, "baseline"), PROBABILITIES
    for values in (THREE, pd.DataFrame(THREE), pl.DataFrame(THREE)):
        assert kinds(Y3, y_proba=values, baseline=values) == of_three
    assert kinds(Y3, y_proba=THREE.tolist(), baseline=THREE, labels=range(3)) == of_three


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


class Own:
    """A model of somebody's own, which does not say what it predicts."""

    def predict(self, x):
        return PRED


def test_a_model_that_does_not_say_what_it_predicts_is_asked_about():
    with pytest.raises(ValueError, match=r'A model alone does not tell[^"]*\(model, X, y, task="regression"'):
        dp.private_evaluate(Own(), X, Y, epsilon=1)
    for model in (Own(), type("OwnEstimator", (Own, BaseEstimator), {})()):
        assert kinds(model, X, Y, labels=[0, 1]) == (("y_true", LABELS), None)
        assert kinds(model, X, Y, task="classification") == (("y_true", LABELS), None)
        assert kinds(model, X, Y, task="regression") == (("y_true", TARGETS), None)
    says = type("SaysItself", (Own,), {"_estimator_type": "regressor"})()
    assert kinds(says, X, Y) == (("y_true", TARGETS), None)


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
WAYS = [*cases.WAYS.values()]
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
    for name, kind in itertools.product(columns[:2], ("ragged", "sparse", "3-D", "scalar", "generator")):
        refuses({**data, name: BAD_RECORDS[kind][0](data[name].tolist())})


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
    alone = {"absolute error by group" if form == "targets" else "labels by group": 1}
    for way, split in itertools.product(WAYS[:2], (None, alone)):
        refuses({**none, **way, "split": split}, match=r"0 sample\(s\)")


# ---- after the spend ---------------------------------------------------------------------------------------

HOSTILE = RNG.choice([0.0, 1e-300, 0.5, 1.0, -1.0, 1e16, 1e308, -1e308], (2, N))
EXTREME = {
    "edges": ({"y_score": HOSTILE[0], "edges": [-1, 0, 0.3, 1e300], "threshold": 0.2, **TWO, **BY_GROUP}, Y),
    "both": ({"y_score": PRED / 2, "y_pred": PRED, "baseline": 1 - PRED, **TWO}, Y),
    "five": ({"y_pred": (N * SCORE) % 5 // 1, "labels": range(5), **BY_GROUP}, 1.0 * Y3),
    "hostile targets": ({"y_pred": HOSTILE[0], **REGRESSION, **BY_GROUP}, HOSTILE[1]),
    "bounded targets": ({"y_pred": HOSTILE[0], "bounds": (0, 1e308), **REGRESSION}, HOSTILE[1]),
}


def some_call(form, rng):
    """Return arguments of a page about few records, often all alike, with empty groups."""
    options, y_true = (FORMS | EXTREME)[form]
    way = WAYS[rng.integers(3 if "group_labels" in options else 1)]
    n = rng.integers(0 if "neighboring" in way else 1, 30)
    rows = rng.integers(0, N, n) if rng.random() < 0.6 else np.full(n, rng.integers(N))
    cut = {name: one[rows] for name, one in options.items() if isinstance(one, np.ndarray)}
    epsilon = float(rng.choice([1e-9, 1e-3, 0.5, 3.0, 40.0, 1e9, 1e100]))
    options = {**options, **cut, **way, "epsilon": epsilon}
    return y_true[rows], {**options, "baseline": None} if "neighboring" in way else options


@pytest.mark.gate
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 12), marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", FORMS | EXTREME)
def test_nothing_raises_after_the_spend(form, seeds):
    """A page is made, and has numbers whose limits are in order, or no limits for a reason."""
    for seed in seeds:
        y_true, options = some_call(form, np.random.default_rng(seed))
        every = dp.private_evaluate(y_true, **{**options, "epsilon": 1e60}, dry_run=True).parts
        split, budget = dict.fromkeys([part.name for part in every], 1), dp.PrivacyAccountant(1e101)
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            page = dp.private_evaluate(y_true, **options, accountant=budget, split=split)
            assert budget.spent == options["epsilon"]
            assert all(isinstance(number.value, float) for number in page.numbers.values())
            released = (*page.numbers.values(), *page.results)
            of_noise = [one.noise_interval for one in released]
            of_people = [one.population_interval for one in released]
            for ask in of_noise + of_people:
                with contextlib.suppress(ValueError):  # there are none, for a reason
                    lower, upper = ask(confidence=0.9)
                    assert np.less_equal(lower, upper).all(), seed
