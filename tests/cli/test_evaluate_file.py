"""`dp-metrics evaluate FILE`: the page of the function, paid for once; requirements as exit codes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import new_session

import dp_metrics as dp
from dp_metrics.cli.evaluate import PrivateEvaluation as Page
from dp_metrics.cli.main import main

SECRET = "Zaphod987"
N = 2000
SCORES = ("--y-true", "truth", "--y-score", "p", "--labels", "well", "ill", "--pos-label", "ill")
GROUPS = ("--sensitive", "sex", "ward", "--group-labels", "f", "m", "--group-labels", "1", "2")


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    y, words = rng.integers(0, 2, N), np.array(["well", "ill"])
    p = np.clip(y * 0.4 + 0.3 + 0.2 * rng.normal(size=N), 0.01, 0.99)
    dose = rng.lognormal(3, 0.5, N)
    return pd.DataFrame(
        {"truth": words[y], "p": p, "q": rng.random(N), "said": words[(p > 0.5).astype(int)], "y": y,
         "pred": (p > 0.5).astype(int), "other": rng.integers(0, 2, N), "notp": 1 - p,
         "sex": np.array(["f", "m"])[rng.integers(0, 2, N)], "ward": rng.integers(1, 3, N),
         "dose": dose, "guess": dose * rng.lognormal(0, 0.2, N), "rough": dose * rng.lognormal(0, 0.4, N)}
    )  # fmt: skip


@pytest.fixture
def file(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people.to_csv("people.csv", index=False)
    return "people.csv"


def run(capsys, *argv, code=0):
    """Run the command; JSON is made without pictures, which take their time."""
    new_session()  # as a process has
    argv = argv if "--output" in argv else (*argv, "--output", "page.json")
    assert main([*map(str, ("evaluate", *argv))]) == code
    return capsys.readouterr()


KINDS = {
    "scores": (
        (*SCORES, *GROUPS, "--baseline", "q"),
        {"labels by group", "scores", "scores by group", "loss", "comparison"},
    ),
    "labels": (
        ("--y-true", "y", "--y-pred", "pred", "--labels", 0, 1, "--baseline", "other"),
        {"labels", "comparison"},
    ),
    "probabilities": (
        ("--y-true", "y", "--y-proba", "notp", "p", "--labels", 0, 1),
        {"labels", "scores", "loss"},
    ),
    "targets": (
        ("--y-true", "dose", "--y-pred", "guess", "--baseline", "rough", "--task", "regression"),
        {"errors", "absolute error", "median error", "comparison"},
    ),
}


@pytest.mark.parametrize(("columns", "releases"), KINDS.values(), ids=KINDS)
def test_a_page_is_written_and_its_numbers_are_printed(file, capsys, columns, releases):
    shown = run(capsys, file, *columns, "--epsilon", 8, "--output", "page.json")
    page = Page.from_json(Path("page.json").read_text(encoding="utf-8"))
    assert {*page.released} == releases
    assert page.epsilon == 8
    for number in page.values():
        assert f"  {number.name} " in shown.out
    assert "page written to page.json" in shown.out


def test_numbers_are_those_of_the_function(people, file, capsys):
    run(capsys, file, *SCORES, "--epsilon", 1e6, "--output", "page.json")
    page = Page.from_json(Path("page.json").read_text(encoding="utf-8"))
    exact = dp.private_evaluate(
        people.truth.to_numpy(), y_score=people.p.to_numpy(), labels=["well", "ill"], pos_label="ill",
        epsilon=1e6, split=dict.fromkeys(page.released, 1),
    )  # fmt: skip
    assert {name: one.value for name, one in page.items()} == pytest.approx(
        {name: one.value for name, one in exact.items()}
    )


def test_a_question_of_the_command_is_that_of_the_function(people, file, capsys):
    columns = ("--y-true", "y", "--y-proba", "notp", "p", "--baseline", "notp", "p")
    run(capsys, file, *columns, "--epsilon", 2, "--budget", "b.sqlite", "--total", 3, "--spend-name", "one")
    new_session()
    budget = dp.PrivacyAccountant(3, "b.sqlite")
    proba = people[["notp", "p"]].to_numpy()
    with pytest.warns(dp.StoredReleaseWarning):
        dp.private_evaluate(
            people.y, y_proba=proba, baseline=proba, epsilon=2, accountant=budget, spend_name="one"
        )
    assert budget.spent == 2


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_a_page_is_bought_once(file, people, capsys, suffix):
    asked = (
        file,
        *SCORES,
        "--epsilon",
        "3/2",
        "--budget",
        "b.sqlite",
        "--total",
        3,
        "--spend-name",
        "week 1",
    )
    first = run(capsys, *asked, "--output", f"one.{suffix}").out
    people.assign(truth="", p="nothing that could be read").to_csv(file, index=False)
    again = run(capsys, *asked, "--output", f"two.{suffix}")
    assert again.out.replace("two", "one") == first
    assert Path(f"one.{suffix}").read_text() == Path(f"two.{suffix}").read_text()
    assert "that release is returned, at no cost" in again.err
    assert "epsilon left 1.5" in first
    assert run(capsys, file, *SCORES, "--epsilon", 1, *asked[-4:], "--budget", "b.sqlite", code=1).out == ""


@pytest.mark.parametrize(("required", "code"), [(["accuracy>=0.5"], 0), (["accuracy >= 0.99"], 1), ([], 0)])
def test_requirements_are_exit_codes(file, capsys, required, code):
    argv = [word for one in required for word in ("--require", one)]
    shown = run(capsys, file, *SCORES, "--epsilon", 2, *argv, code=code).out
    assert ("all requirements:" in shown) == bool(required)


def test_what_cannot_be_told_exits_with_2(file, capsys):
    argv = ("--require", "average precision>=0.9", "accuracy>=0.5", "--about", "records")
    shown = run(capsys, file, *SCORES, "--epsilon", 2, *argv, code=2).out
    assert "all requirements: cannot tell" in shown


def test_json_is_all_of_it(file, capsys):
    shown = run(capsys, file, *SCORES, "--epsilon", 2, "--json", "--output", "page.md").out
    assert json.loads(shown)["schema"] == "dp_metrics.evaluation"
    assert Path("page.md").read_text().startswith("# Private evaluation")


def test_without_a_file_there_is_the_demonstration_only(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "needs a file of predictions" in run(capsys, "--y-true", "y", code=2).err


@pytest.mark.parametrize("column", ["truth", "p", "sex"])
def test_a_record_that_is_refused_costs_nothing_and_is_not_shown(people, file, capsys, column):
    people[column] = people[column].astype(object)
    people.loc[17, column] = SECRET
    people.to_csv(file, index=False)
    asked = (*SCORES, *GROUPS, "--epsilon", 1, "--budget", "b.sqlite", "--total", 3)
    shown = run(capsys, file, *asked, code=1)
    assert SECRET not in shown.err + shown.out
    assert not Path("b.sqlite").exists() or dp.PrivacyAccountant(3, "b.sqlite").spent == 0
