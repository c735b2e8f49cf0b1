"""A page in a budget: the same page again at no cost, without a look at a record."""

import math

import numpy as np
import pytest
from helpers import later
from pages import LABELS, page

import dp_metrics as dp

PRED = np.arange(300) % 2

pytestmark = pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.NoisyReleaseWarning")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget.sqlite")


def ask(budget, **options):
    return page("scores", 300, **{"epsilon": 4.0, "spend_name": "page", **options}, accountant=budget)


OTHERS = [
    {"epsilon": 2.0}, {"labels": None}, {"pos_label": 0}, {"threshold": 0.4}, {"edges": [0.2, 0.5, 0.7]},
    {"membership": "public"}, {"group_labels": [*LABELS, "c"]}, {"split": {"scores": 1}}, {"n": 1000},
    {"neighboring": "add_or_remove_one"}, {"baseline": None}, {"y_pred": PRED},
    {"title": "Another"}, {"y_score": None, "y_pred": PRED},
    {"sensitive_features": None, "group_labels": None},
]  # fmt: skip


SAME = [
    {"labels": np.array([0, 1])}, {"labels": (0, 1)}, {"labels": range(2)}, {"threshold": np.float64(0.5)},
    {"group_labels": tuple(LABELS)}, {"group_labels": np.array(LABELS)}, {"epsilon": 4},
    {"split": {"loss": 2, "scores": 1}}, {"split": {"scores": 1.0, "loss": 2.0}},
]  # fmt: skip


def test_another_question_under_a_name_is_refused_and_the_same_written_otherwise_is_answered(path):
    options = {"labels": [0, 1], "split": {"scores": 1, "loss": 2}}
    first = ask(dp.PrivacyAccountant(5, path), **options)
    for change in OTHERS:
        with pytest.raises(ValueError, match="was given to another question"):
            ask(later(path, 5), **{**options, "split": None, **change})
    for change in SAME:
        with pytest.warns(dp.exceptions.StoredReleaseWarning, match="records and predictions were not read"):
            assert repr(ask(later(path, 5), **{**options, **change})) == repr(first), change
    assert later(path, 5).spent == 4


def test_a_page_that_cannot_be_kept_is_shown(path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr("dp_metrics.accounting.ledgers.Ledger.keep", full)
    budget = dp.PrivacyAccountant(5, path)
    shown = ask(budget)
    assert all(math.isfinite(one.value) for one in shown.numbers.values())
    assert "could not be stored" in shown.numbers["roc auc"].note
    assert [one.value for one in budget.results()] == [None]


def test_a_dry_run_spends_and_stores_nothing(path):
    budget = dp.PrivacyAccountant(5, path)
    plan = ask(budget, dry_run=True)
    assert budget.spent == 0
    assert budget.history == ()
    assert ask(budget).plan == plan
    assert ask(budget, dry_run=True) == plan  # whatever is stored
