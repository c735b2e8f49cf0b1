"""`dp-metrics budget`, and budgets that pay for commands: once for a name."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers import later

import dp_metrics as dp
from dp_metrics.cli import files
from dp_metrics.cli.files import Predictions

PAID = ("--budget", "b.sqlite")
MAE = ("score", "data.csv", "--metric", "mae", "--y-true", "y", "--y-pred", "a")


def test_a_budget_is_shown_with_its_history(run):
    budget = dp.PrivacyAccountant(Fraction(10, 3), "b.sqlite")  # a total that no float is
    assert run("budget", "b.sqlite").out == "total 3.3333333333333335, spent 0.0, left 3.333333333333333\n"
    budget.spend(0.1, "error\nof the \x1b[31mfirst model", mechanism="Adaptive()")
    budget.spend(2, "its number")
    lines = run("budget", "b.sqlite").out.splitlines()
    assert lines[0] == f"total {budget.total!r}, spent 2.1, left {budget.remaining!r}"
    shown = [" ".join(line.split()[at:]) for line, at in zip(lines[2:], (0, 1, 1), strict=True)]
    assert shown == [
        "time (UTC) epsilon spend_name value mechanism neighboring",
        "0.1 error of the [31mfirst model none Adaptive() replace_one",
        "2.0 its number none none replace_one",
    ]
    document = json.loads(run("budget", "b.sqlite", "--json").out)
    of_budget = {"total": budget.total, "spent": budget.spent, "remaining": budget.remaining}
    assert document == {**document, **of_budget}
    assert [(one["spend_name"], one["epsilon"], one["neighboring"]) for one in document["history"]] == [
        (one.spend_name, one.epsilon, one.neighboring) for one in budget.history
    ]
    assert document["history"][0]["time"] == budget.history[0].time.isoformat()
    assert len(budget.history) == 2  # to look costs nothing


def test_what_is_no_budget_is_refused_and_not_made_one(people, refused):
    assert "there is no budget file" in refused("budget", "none.sqlite", code=2)
    of_new = ("--budget", "none.sqlite", "--total", "0.5")
    assert "was asked for" in refused(*MAE, "--epsilon", 1, *of_new)  # a budget that can't pay leaves no file
    assert not Path("none.sqlite").exists()
    Path("text").write_text("y,p\n1,2\n" * 100)
    Path("empty").write_text("")
    for argv in (("budget", "text"), (*MAE, "--epsilon", 1, "--budget", "text")):
        assert "is not a budget file of dp_metrics" in refused(*argv)
    assert "is empty: no total was given to it" in refused("budget", "empty")
    assert Path("empty").read_bytes() == b""


def test_a_budget_pays_for_what_it_can(people, run, refused, monkeypatch):
    one = (*MAE, *PAID, "--epsilon", 1)
    assert "epsilon=4.0 was asked for" in refused(*MAE, *PAID, "--epsilon", 4, "--total", 3)
    assert not Path("b.sqlite").exists()  # no budget is made that can't pay
    shown = run(*one, "--total", 2.5, "--spend-name", "first")
    assert "(epsilon 1, 1,500 records, replace one); epsilon left 1.5\n" in shown.out
    assert "was created with a total of 2.5, not 3.0" in refused(*one, "--total", 3)
    state = json.loads(run(*one, "--json").out)["budget"]
    assert state == {"path": str(Path("b.sqlite").absolute()), "total": 2.5, "spent": 2.0, "remaining": 0.5}
    other = (*MAE, *PAID, "--epsilon", 0.1, "--neighboring", "add_or_remove_one")
    assert "kept under neighboring='replace_one'" in refused(*other)
    monkeypatch.setattr(Predictions, "chunks", lambda *args: pytest.fail("the file was read"))
    assert "only 0.5 remains" in refused(*one)
    assert [spend.spend_name for spend in later("b.sqlite", 2.5).history] == ["first", "private_mae"]


def test_in_the_place_of_what_is_not_looked_at_stands_nothing_that_could_be_released():
    Path("data.csv").write_text("y,p,who\n" + "1,2,a\n" * 9)
    columns = files.columns_of({"y_true": ["y"], "y_pred": ["y", "p"], "groups": ["who"]})
    found = Predictions(Path("data.csv"), columns).whole({"groups"})
    assert found["groups"].data.tolist() == ["a"] * 9
    assert np.isnan(found["y_true"].data).all()
    assert np.isnan(found["y_pred"].data).all()
    assert found["y_pred"].data.shape == (9, 2)
