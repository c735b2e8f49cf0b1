"""`dp-metrics evaluate FILE`: the page of the function, paid for once; requirements as exit codes."""

import json
from pathlib import Path

import pytest
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.page.page_numbers import is_told

PAGE, SCORES = "evaluate data.csv", "--y-true truth --y-score s --labels well ill --pos-label ill"
GROUPS = "--sensitive sex ward --group-labels f m --group-labels 1 2"
OF_SCORES = f"{PAGE} {SCORES}".split()
AS_JSON = ("--output", "page.json")  # without pictures, which take their time


pytestmark = pytest.mark.usefixtures("people")


def written():
    return dp.PrivateEvaluation.from_json(Path("page.json").read_text(encoding="utf-8"))


@loop_over(("crossed", "by"), [("true", "by group"), ("false", "by feature 1")])
def test_several_features_are_called_as_their_columns(crossed, by, run):
    words = f"{PAGE} --y-true y --y-pred a --labels 0 1 {GROUPS} --crossed {crossed} --epsilon 8"
    shown = run(*words.split(), *AS_JSON).out
    assert {"recall difference by sex", "recall difference by ward", "recall in 'f'"} <= {*written()}
    assert ("recall in 'f' and 1" in written()) == (crossed == "true")
    assert f"labels {by}" in written().released
    assert "  recall difference by ward " in shown


@pytest.mark.gate
@loop_over(
    ("argv", "releases"),
    [
        (f"{SCORES} {GROUPS} --baseline q", "labels by group, scores, scores by group, loss, comparison"),
        ("--y-true y --y-pred a --labels 0 1 --baseline b", "labels, comparison"),
        ("--y-true y --y-proba notp p --labels 0 1 --groups person --max-records 2", "labels, scores, loss"),
        (
            "--y-true dose --y-pred guess --baseline rough --task regression",
            "median error, median limits, sides, absolute error, errors, comparison",
        ),
    ],
)
def test_a_page_is_written_and_its_numbers_are_printed(argv, releases, run):
    shown = run(*f"{PAGE} {argv} --epsilon 8".split(), *AS_JSON).out
    page = written()
    assert (", ".join(page.released), page.epsilon) == (releases, 8)
    assert (page.n, page.most_records) == ((1000, 2) if "--groups" in argv else (1500, 1))
    assert all(f"  {number.name} " in shown for number in page.values())
    assert "page written to page.json" in shown


@loop_over("most", [(), ("--max-records", 2)])
def test_a_page_of_persons_is_asked_for_groups_of_them(most, run):
    by_sex = ["--sensitive", "sex", "--group-labels", "f", "m", "--groups", "person", "--equal-groups"]
    rule = "recall, each person once in each group >= 0.1"
    shown = run(*OF_SCORES, *by_sex, *most, "--epsilon", 20, *AS_JSON, "--require", rule).out
    assert "recall, each person once in 'f' >= 0.1: pass" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("  recall, each person once in 'f'"))
    assert line.endswith(" persons")


def test_what_the_page_is_too_noisy_to_tell_is_marked_among_printed_numbers(run):
    shown = run(*OF_SCORES, "--epsilon", 0.3, *AS_JSON).out.splitlines()
    page = written()
    marked = {line.strip().partition("  ")[0] for line in shown if line.endswith("(too noisy to tell)")}
    assert marked == {name for name, one in page.items() if not is_told(one)} != set()


@loop_over(
    ("words", "counted"), [(["stay", "stays"], "Stays"), (['["stay", "stays"]'], "Stays"), (["bed"], "Beds")]
)
def test_what_a_record_is_called_is_one_word_or_two(words, counted, run):
    run(*OF_SCORES, "--epsilon", 2, *AS_JSON, "--unit-name", *words)
    assert written().header[counted] == "1,500"


def test_numbers_are_those_of_the_function(people, run):
    run(*OF_SCORES, "--epsilon", 1e6, *AS_JSON)
    page = written()
    exact = dp.private_evaluate(
        people.truth.to_numpy(), y_score=people.s.to_numpy(), labels=["well", "ill"], pos_label="ill",
        epsilon=1e6, split=dict.fromkeys(page.released, 1),
    )  # fmt: skip
    expected = {name: one.value for name, one in exact.items()}
    assert {name: one.value for name, one in page.items()} == pytest.approx(expected)


@pytest.mark.gate
@loop_over(
    ("required", "code", "told"),
    [
        (["accuracy>=0.5"], 0, "all requirements: pass"),
        (["accuracy >= 0.99"], 1, "all requirements: fail"),
        (
            ["average precision>=0.9", "accuracy>=0.5", "--about", "records"],
            3,
            "all requirements: cannot tell",
        ),
    ],
)
def test_requirements_are_exit_codes(required, code, told, run):
    assert told in run(*OF_SCORES, "--epsilon", 2, *AS_JSON, "--require", *required, code=code).out


def test_a_page_of_public_groups_promises_less_and_says_so_and_is_stored_too(run):
    words = f"{PAGE} --y-true y --y-pred a --labels 0 1 --sensitive sex --group-labels f m x --epsilon 8"
    for membership, promised in (("private", "replace one"), ("public", "replace one within groups")):
        paid = ("--spend-name", "page", "--budget", f"{membership}.sqlite", "--total", 9)
        asked = (*words.split(), *AS_JSON, "--membership", membership, *paid)
        shown = run(*asked).out
        assert shown.startswith(f"private_evaluate (epsilon 8, 1,500 records, {promised}); ")
        first = written()
        assert first.relation == promised.replace(" ", "_")
        assert shown.count("(This group has no records.)") == (6 if membership == "public" else 0)
        assert run(*asked).out == shown
        again = written()
        assert again.is_returned
        assert repr([one.value for one in again.values()]) == repr([one.value for one in first.values()])


@loop_over(
    ("asked", "told"),
    [
        (["--require", "recall in 'f' >= 0.5"], """Did you mean "recall of 'ill'"?"""),
        (["--require", "recall in each group >= 0.5"], "'recall in each group' is no number of this page"),
        (["--require", "recal >= 0.5"], "Did you mean 'recall'?"),
        (["--require", "recall >= 50"], "from 0 to 1: a requirement of 50 would be met always, or never"),
        (["--requirements", "recall >= 0.5", "recall >= 0.6"], "two requirements of 'recall'"),
        *(
            (["--split", one], "split")
            for one in ("[1]", '{"label": 1}', '{"labels": 0}', '{"labels": "x"}', "{}")
        ),
    ],
)
def test_what_is_asked_of_no_part_of_the_page_is_a_wrong_option_and_costs_nothing(asked, told, refused):
    paid = ("--epsilon", 2, "--budget", "budget.sqlite", "--total", 2)
    assert told in refused(*OF_SCORES, *paid, *AS_JSON, *asked, code=2)
    assert not Path("page.json").exists()
    assert not Path("budget.sqlite").exists() or dp.PrivacyAccountant(2.0, "budget.sqlite").spent == 0


def test_json_is_all_of_it(run, refused):
    shown = run(*OF_SCORES, "--epsilon", 2, "--json", "--output", "page.md").out
    assert json.loads(shown)["schema"] == "dp_metrics.evaluation"
    assert Path("page.md").read_text().startswith("# Private evaluation")
    for words in (("--y-true", "y"), ("--labels", 0, 1), ("--group-labels", "a"), ("--delimiter", ";")):
        assert f"{words[0]} needs a file of predictions" in refused("evaluate", *words, code=2)


def test_a_refused_page_leaves_no_file_and_harms_none(refused):
    words = *f"{PAGE} --y-true truth --y-pred a --labels 0 1 --epsilon 1".split(), "--output"
    before = {path.name for path in Path().iterdir()}
    refused(*words, "refused.json")
    assert {path.name for path in Path().iterdir()} == before
    Path("kept.json").write_text("{}", encoding="utf-8")
    refused(*words, "kept.json")
    assert Path("kept.json").read_text(encoding="utf-8") == "{}"
