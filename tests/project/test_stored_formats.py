"""What was stored once can be read: budget files, and since format 2 the releases in them, and pages as JSON.

The files in ``stored`` are never written again. A new version of a format gets files of its own beside them.
"""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from helpers import new_session

from dp_metrics import PrivacyAccountant, PrivacyBudgetError, PrivateEvaluation, private_mae
from dp_metrics.exceptions import StoredReleaseWarning
from dp_metrics.inputs.arrays import ArgumentShape, Shape
from dp_metrics.release.stored import read_shape

STORED = Path(__file__).parent / "stored"
MAE = 1.2205875885510002


def made_of(name, folder):
    """Return a budget file made of its SQL: the bytes of SQLite's files are no text to review."""
    new_session()  # every test has a file of the same identity
    with sqlite3.connect(folder / "budget.sqlite") as db:
        db.executescript((STORED / name).read_text(encoding="utf-8"))
    db.close()
    return folder / "budget.sqlite"


@pytest.fixture(params=["budget_0.1.0.sql", "budget_format_2.sql"])
def path(request, tmp_path):
    return made_of(request.param, tmp_path)


def test_a_budget_is_read_and_continued(path):
    budget = PrivacyAccountant(2.0, path)
    assert budget.spent == 1.25
    assert [(one.spend_name, one.epsilon, one.mechanism) for one in budget.history] == [
        ("by site", 0.5, None),
        ("error of May", 0.5, "Adaptive()"),
        ("by hand", 0.25, None),
    ]
    with pytest.raises(PrivacyBudgetError):
        budget.spend(0.8, "too much")
    budget.spend(0.75, "the rest")
    assert PrivacyAccountant(2.0, path).remaining == 0


def test_a_release_of_format_1_shows_its_value_and_says_why_no_more(tmp_path):
    budget = PrivacyAccountant(2.0, made_of("budget_0.1.0.sql", tmp_path))
    assert [one.value for one in budget.results()] == [None, 1.3208014149687042, None]
    with pytest.raises(ValueError, match="stored by another version"):
        budget["error of May"]


def test_a_stored_release_is_read_with_its_limits_and_served_to_the_same_question(tmp_path):
    budget = PrivacyAccountant(2.0, made_of("budget_format_2.sql", tmp_path))
    result = budget["error of May"]
    assert (result.value, result.epsilon, result.n, result.neighboring) == (MAE, 0.5, 200, "replace_one")
    lower, upper = result.noise_interval()
    assert lower < MAE < upper
    settings = {"epsilon": 0.5, "accountant": budget, "spend_name": "error of May"}
    with pytest.raises(ValueError, match="number of records was 200 and is 199"):
        private_mae(np.zeros(199), np.zeros(199), **settings)
    with pytest.warns(StoredReleaseWarning):
        assert private_mae(np.zeros(200), np.zeros(200), **settings) == MAE


def test_a_form_of_an_earlier_version_has_the_resolution_of_float64_and_no_fields_for_persons():
    assert read_shape({"arguments": [[2, False, None]], "n": 5}) == Shape((ArgumentShape(2, False),), 5)


def without_what_was_added(now, stored):
    """Return what is written now, without the fields that later versions have and the stored text lacks."""
    if isinstance(now, dict) and isinstance(stored, dict):
        return {name: without_what_was_added(now[name], stored[name]) for name in stored if name in now}
    if isinstance(now, list) and isinstance(stored, list) and len(now) == len(stored):
        return [without_what_was_added(*pair) for pair in zip(now, stored, strict=True)]
    return now


def test_a_page_is_read_and_says_what_it_said():
    text = (STORED / "evaluation_format_2.json").read_text(encoding="utf-8")
    stored, page = json.loads(text), PrivateEvaluation.from_json(text)
    assert (stored["schema"], stored["version"]) == ("dp_metrics.evaluation", 1)
    now = json.loads(page.to_json())
    assert now.keys() >= stored.keys()
    # what was released may tell more than pages did then; limits are computed anew, and may get better
    told = {one["name"]: one for one in now["numbers"]}
    for one in stored["numbers"]:
        again = told[one["name"]]
        assert (again["release"], again["group"]) == (one["release"], one["group"])
        assert again["value"] == pytest.approx(one["value"])
    assert without_what_was_added(now["release"], stored["release"]) == stored["release"]
    assert page.to_markdown()
