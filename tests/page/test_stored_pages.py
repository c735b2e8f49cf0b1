"""A page in a budget: the same page again at no cost, without a look at a record."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import later

import dp_metrics as dp
from dp_metrics.page import page_plan as plan

RNG = np.random.default_rng(3)
N = 300
Y = RNG.integers(0, 2, N)
PRED = np.where(RNG.random(N) < 0.8, Y, 1 - Y)
SCORE = np.clip(RNG.normal(0.3 + 0.4 * Y, 0.2), 0, 1)
GROUP = np.array(["a", "b"])[RNG.integers(0, 2, N)]
SCORES = {
    "y_score": SCORE, "labels": [0, 1], "baseline": 1 - SCORE, "sensitive_features": GROUP,
    "group_labels": ["a", "b"],
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.NoisyReleaseWarning")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget.sqlite")


def ask(budget, *data, **options):
    return dp.private_evaluate(*data, **{"epsilon": 4.0, "spend_name": "page", **options}, accountant=budget)


def asked_again(path, y_true, total=5, **options):
    """Return the page that an earlier session stored, for which nothing is paid."""
    budget = later(path, total)
    spent = budget.spent
    with pytest.warns(dp.exceptions.StoredReleaseWarning, match="records and predictions were not read"):
        page = ask(budget, y_true, **options)
    assert budget.spent == spent
    return page


OTHERS = [
    {"epsilon": 2.0}, {"labels": None}, {"pos_label": 0}, {"threshold": 0.4}, {"edges": [0.2, 0.5, 0.7]},
    {"membership": "public"}, {"group_labels": ["a", "b", "c"]}, {"split": {"scores": 1}}, {"n": 1000},
    {"neighboring": "add_or_remove_one"}, {"baseline": None}, {"y_pred": PRED},
    {"title": "Another"}, {"y_score": None, "y_pred": PRED},
    {"sensitive_features": None, "group_labels": None},
]  # fmt: skip


def test_another_question_under_the_name_is_refused(path):
    ask(dp.PrivacyAccountant(5, path), Y, **SCORES)
    budget = later(path, 5)
    for change in OTHERS:
        with pytest.raises(ValueError, match="was given to another question"):
            ask(budget, Y, **{**SCORES, **change})
    assert budget.spent == 4


def test_the_same_options_written_otherwise_are_the_same_question(path):
    options = {**SCORES, "split": {"scores": 1, "loss": 2}}
    page = ask(dp.PrivacyAccountant(5, path), Y, **options)
    for change in (
        {"labels": np.array([0, 1])}, {"labels": (0, 1)}, {"labels": range(2)},
        {"threshold": np.float64(0.5)},
        {"group_labels": ("a", "b")}, {"group_labels": np.array(["a", "b"])}, {"epsilon": 4},
        {"split": {"loss": 2, "scores": 1}}, {"split": {"scores": 1.0, "loss": 2.0}},
    ):  # fmt: skip
        assert repr(asked_again(path, Y, **{**options, **change})) == repr(page), change


def test_a_page_that_cannot_be_kept_is_shown(path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr("dp_metrics.accounting.ledgers.Ledger.keep", full)
    budget = dp.PrivacyAccountant(5, path)
    page = ask(budget, Y, **SCORES)
    assert all(math.isfinite(one.value) for one in page.numbers.values())
    assert "could not be stored" in page.numbers["roc auc"].note
    assert [one.value for one in budget.results()] == [None]


def test_a_dry_run_spends_and_stores_nothing(path):
    budget = dp.PrivacyAccountant(5, path)
    plan = ask(budget, Y, **SCORES, dry_run=True)
    assert budget.spent == 0
    assert budget.history == ()
    assert ask(budget, Y, **SCORES).plan == plan
    assert ask(budget, Y, **SCORES, dry_run=True) == plan  # whatever is stored


@pytest.mark.gate
def test_a_page_keeps_the_division_of_its_day(monkeypatch):
    page = dp.private_evaluate(Y, **SCORES, epsilon=3.0)
    text, portions = page.to_json(), plan.portions_of

    def otherwise(public):
        return [replace(one, weight=at + 1) for at, one in enumerate(portions(public))]

    monkeypatch.setattr(plan, "portions_of", otherwise)
    assert dp.private_evaluate(Y, **SCORES, epsilon=3.0, dry_run=True) != page.plan
    again = dp.PrivateEvaluation.from_json(text)
    assert again.plan == page.plan
    assert again.to_json() == text
