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
MODELS = ("compare", "data.csv", "--y-true", "y", "--pred-a", "a", "--pred-b", "b", "--epsilon", "1/3")


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


def test_thirds_use_a_budget_up(people, run, refused):
    for _ in range(3):
        shown = run(*MODELS, *PAID, "--total", 1).out
    assert shown.startswith("private_compare (epsilon 0.3333333333333333, 1,500 records, replace one); ")
    assert "; epsilon left 0\n" in shown
    assert "only 0.0 remains" in refused(*MODELS, *PAID)


@pytest.mark.parametrize("column", ["sample_weight", "groups"])
def test_weights_and_persons_of_a_file_belong_to_the_question(column, run, refused):
    option, numbers = f"--{column.replace('_', '-')}", [1, 2, 2, 1] * 50
    for y, known in ((0, numbers), (1, [*map(float, numbers)]), (2, numbers[1:] + numbers[:1])):
        Path("data.csv").write_text("y,a,w\n" + "".join(f"1,{y},{one}\n" for one in known))
        argv = (*MAE, option, "w", "--epsilon", 1, *PAID, "--total", 1, "--spend-name", "x")
        if y < 2:
            run(*argv)
        else:
            assert f"{column} has other values" in refused(*argv)
    paid = {"epsilon": 1.0, "accountant": later("b.sqlite", 1), "spend_name": "x"}
    with pytest.warns(dp.exceptions.StoredReleaseWarning):  # the function asks the same question
        dp.private_mae(np.ones(200), np.zeros(200), **paid, **{column: numbers})


def test_in_the_place_of_what_is_not_looked_at_stands_nothing_that_could_be_released():
    Path("data.csv").write_text("y,p,who\n" + "1,2,a\n" * 9)
    columns = files.columns_of({"y_true": ["y"], "y_pred": ["y", "p"], "groups": ["who"]})
    found = Predictions(Path("data.csv"), columns).whole(lambda part: None, {"groups"})
    assert found["groups"].tolist() == ["a"] * 9
    assert np.isnan(found["y_true"]).all()
    assert np.isnan(found["y_pred"]).all()
    assert found["y_pred"].shape == (9, 2)
