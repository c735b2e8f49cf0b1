"""A page in a budget: the same page again at no cost, without a look at a record."""

import math

import numpy as np
import pytest
from helpers import later

import dp_metrics as dp

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


OTHERS = [
    {"epsilon": 2.0}, {"labels": None}, {"pos_label": 0}, {"threshold": 0.4}, {"edges": [0.2, 0.5, 0.7]},
    {"membership": "public"}, {"group_labels": ["a", "b", "c"]}, {"split": {"scores": 1}}, {"n": 1000},
    {"neighboring": "add_or_remove_one"}, {"baseline": None}, {"y_pred": PRED},
    {"title": "Another"}, {"y_score": None, "y_pred": PRED},
    {"sensitive_features": None, "group_labels": None},
]  # fmt: skip


SAME = [
    {"labels": np.array([0, 1])}, {"labels": (0, 1)}, {"labels": range(2)}, {"threshold": np.float64(0.5)},
    {"group_labels": ("a", "b")}, {"group_labels": np.array(["a", "b"])}, {"epsilon": 4},
    {"split": {"loss": 2, "scores": 1}}, {"split": {"scores": 1.0, "loss": 2.0}},
]  # fmt: skip


def test_another_question_under_a_name_is_refused_and_the_same_written_otherwise_is_answered(path):
    options = {**SCORES, "split": {"scores": 1, "loss": 2}}
    page = ask(dp.PrivacyAccountant(5, path), Y, **options)
    for change in OTHERS:
        with pytest.raises(ValueError, match="was given to another question"):
            ask(later(path, 5), Y, **{**options, "split": None, **change})
    for change in SAME:
        with pytest.warns(dp.exceptions.StoredReleaseWarning, match="records and predictions were not read"):
            assert repr(ask(later(path, 5), Y, **{**options, **change})) == repr(page), change
    assert later(path, 5).spent == 4


def test_a_page_says_when_it_was_released_and_that_a_budget_returned_it(path):
    first = ask(dp.PrivacyAccountant(5, path), Y, **SCORES)
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        again = ask(later(path, 5), Y, **SCORES)
    released = first.header["Released"]
    assert released.endswith("UTC")
    for page in (again, dp.PrivateEvaluation.from_json(again.to_json()), later(path, 5)["page"]):
        assert page.header["Released"] == f"{released}; returned since by the budget, at no cost"
        assert page.header["Released"] in page.to_html()
        assert page.is_returned
    assert dp.PrivateEvaluation.from_json(first.to_json()).header == first.header


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
