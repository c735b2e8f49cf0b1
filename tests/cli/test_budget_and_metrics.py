"""`dp-metrics budget`, `metrics`, `plan` and `--version`."""

import json
from fractions import Fraction
from importlib.metadata import version

import pytest
from helpers import new_session

import dp_metrics
from dp_metrics import PrivacyAccountant
from dp_metrics.cli.main import main
from dp_metrics.metrics import METRICS


def shown(capsys, *argv, code=0):
    assert main([*map(str, argv)]) == code
    captured = capsys.readouterr()
    assert (captured.out if code else captured.err) == ""
    return captured.err if code else captured.out


def test_a_budget_is_shown_with_its_history(tmp_path, capsys):
    path = tmp_path / "budget.sqlite"
    budget = PrivacyAccountant(Fraction(10, 3), path)  # a total that no float is
    assert shown(capsys, "budget", path) == "total 3.3333333333333335, spent 0.0, left 3.333333333333333\n"
    budget.spend(0.1, "error\nof the \x1b[31mfirst model", mechanism="Adaptive()")
    budget.spend(2, "its number")
    lines = shown(capsys, "budget", path).splitlines()
    assert lines[0] == f"total {budget.total!r}, spent 2.1, left {budget.remaining!r}"
    columns = ["time", "(UTC)", "epsilon", "spend", "name", "value", "mechanism", "neighbours"]
    assert lines[2].split() == columns
    assert lines[3].split()[2:] == [
        "0.1",
        "error",
        "of",
        "the",
        "[31mfirst",
        "model",
        "none",
        "stored",
        "Adaptive()",
        "replace",
        "one",
    ]
    assert lines[4].split()[2:] == ["2.0", "its", "number", "none", "stored", "replace", "one"]
    assert len(lines) == 5
    document = json.loads(shown(capsys, "budget", path, "--json"))
    assert {name: document[name] for name in ("total", "spent", "remaining")} == {
        "total": budget.total,
        "spent": budget.spent,
        "remaining": budget.remaining,
    }
    assert [(one["spend_name"], one["epsilon"], one["neighboring"]) for one in document["history"]] == [
        (one.spend_name, one.epsilon, one.neighboring) for one in budget.history
    ]
    assert document["history"][0]["time"] == budget.history[0].time.isoformat()
    assert len(budget.history) == 2  # to look costs nothing


def test_what_is_no_budget_is_refused_and_not_made_one(tmp_path, capsys):
    assert "there is no budget file" in shown(capsys, "budget", tmp_path / "none.sqlite", code=2)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text").write_text("y,p\n1,2\n" * 100)
    assert "is not a budget file of dp_metrics" in shown(capsys, "budget", tmp_path / "text", code=1)
    (tmp_path / "empty").write_text("")
    assert "is empty: no total was given to it" in shown(capsys, "budget", tmp_path / "empty", code=1)
    assert (tmp_path / "empty").read_bytes() == b""


def test_every_metric_is_listed_with_its_options(capsys):
    listed = json.loads(shown(capsys, "metrics", "--json"))
    assert [one["name"] for one in listed] == [*METRICS]
    text = shown(capsys, "metrics")
    for one in listed:
        row = METRICS[one["name"]]
        assert set(one["options"]) | {"sample_weight", "groups"} >= set(row.options)
        assert one["summary"].endswith(".")
        assert one["summary"] in text
        assert all(name in text for name in (one["name"], one["exact_function"] or "", *one["options"]))
    assert "options: q (required), bounds (required)" in text


PLAN = ("plan", "--metric", "f1=0.6", "mae=2", "--n", 12000, "--positives", 0.14, "--law", "heavy")


def test_a_plan_is_two_tables_of_expected_errors(capsys):
    lines = shown(capsys, *PLAN, "--epsilon", 1, 0.1).splitlines()
    assert lines[0] == "Mean absolute error by the noise, 12,000 records"
    assert lines[1].split() == ["epsilon", "0.1", "1"]
    f1 = {"guess": 0.6, "positives": 0.14}
    mae = {"guess": 2.0, "law": "heavy"}
    for line, name, guess in ((lines[2], "f1", f1), (lines[3], "mae", mae)):
        errors = [dp_metrics.expected_error(name, n=12000, epsilon=x, **guess) for x in (0.1, 1.0)]
        assert line.split() == [f"{name}={guess['guess']:g}", *(f"{x.mean_absolute:.2g}" for x in errors)]
        assert f"  {name}={guess['guess']:g}: {errors[0].assumes}" in lines
    assert lines[5] == "Mean absolute error by the noise, epsilon 1"
    assert lines[6].split() == ["records", "3,000", "6,000", "12,000", "24,000", "48,000"]
    assert lines[7].split()[3] == lines[2].split()[2]  # one and the same cell of both tables
    assert lines[-1] == "Simulated, to within 30 %, and not computed: f1=0.6"


def test_a_plan_as_json_has_the_same_numbers(capsys):
    argv = ("plan", "--metric", "mean=40", "--n", 500, 300, "--option", "bounds=[0,120]", "--json")
    document = json.loads(shown(capsys, *argv))
    assert document["epsilons"] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert (document["n"], document["epsilon"], document["sizes"]) == (500, 1.0, [300, 500])
    assert document["errors_by_epsilon"]["mean=40"][2] == document["errors_by_size"]["mean=40"][1]
    assert document["assumes"]["mean=40"].startswith("500 records; normal numbers")
    assert document["simulated"] == []


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"dp_metrics {version('dp_metrics')}\n"
    assert dp_metrics.__version__ == version("dp_metrics")


WEEKS = ("week 1", "week 2")
SCORE = ("--metric", "private_mae", "--y-true", "y", "--y-pred", "p", "--epsilon", "0.25")


@pytest.fixture
def weeks(tmp_path):
    """Return a file of records, a budget with a part for each week, and the words that name it."""
    (tmp_path / "data.csv").write_text("y,p,a,loss\n" + "1,0,1,0.5\n" * 3000)
    budget = PrivacyAccountant(2, tmp_path / "b.sqlite")
    sites = budget.parallel(0.5, WEEKS)["week 1"].parallel(0.25, ["north", "south"])
    assert [*sites] == ["north", "south"]
    return tmp_path / "data.csv", budget, ("--budget", budget.path)


def test_a_part_pays(weeks, capsys):
    path, budget, paid = weeks
    part = (*paid, "--part", "week 2")
    asked = ("score", path, *SCORE, *part)
    assert "; epsilon left 0.25\n" in shown(capsys, *asked, "--spend-name", "error")
    new_session()
    main([*map(str, asked), "--spend-name", "error"])  # the same question is free
    assert "'error' was stored on" in capsys.readouterr().err
    models = ("--y-true", "y", "--pred-a", "p", "--pred-b", "a")
    assert "; epsilon left 0\n" in shown(capsys, "compare", path, *models, "--epsilon", "1/4", *part)
    assert "only 0.0 remains" in shown(capsys, *asked, code=1)
    north = ("--part", "week 1", "north")
    cap = ("interval", path, "--column", "loss", "--max-loss", "1", "--epsilon", "1/4", *paid)
    assert "; epsilon left 0\n" in shown(capsys, *cap, *north)
    assert "only 0.0 remains" in shown(capsys, *cap, *north, code=1)
    assert (budget.spent, len(budget.history)) == (0.5, 1)  # for all parts together
    made = budget.parallel(0.5, WEEKS)
    assert [made[week].spent for week in WEEKS] == [0.25, 0.5]


def test_a_part_is_shown(weeks, capsys):
    path, budget, paid = weeks
    shown(capsys, "score", path, *SCORE, *paid, "--part", "week 2", "--spend-name", "error")
    lines = shown(capsys, "budget", budget.path, "--part", "week 2").splitlines()
    assert lines[0] == "total 0.5, spent 0.25, left 0.25"
    assert "error" in lines[-1]
    document = json.loads(shown(capsys, "budget", budget.path, "--json", "--part", "week 1", "south"))
    assert (document["total"], document["spent"], document["history"]) == (0.25, 0.0, [])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--part", "week 9"), "the budget has no part 'week 9'; it has 'week 1', 'week 2'. Did you mean"),
        (("--part", "week 2", "north"), "the budget has no part 'north'; it has none"),
        (("--part", "week 1", "north", "--total", "3"), "was created with a total of 2.0, not 3.0"),
    ],
)
def test_a_part_that_is_not_there_is_refused_before_the_file_is_read(argv, message, weeks, capsys):
    path, budget, paid = weeks
    path.unlink()
    assert message in shown(capsys, "score", path, *SCORE, *paid, *argv, code=1 if "--total" in argv else 2)
    if "--total" not in argv:
        assert message in shown(capsys, "budget", budget.path, *argv, code=2)
    assert budget.spent == 0.5


def test_no_part_makes_a_budget(weeks, tmp_path, capsys):
    path, *_ = weeks
    new = tmp_path / "new.sqlite"
    of_new = ("--budget", new, "--total", "3", "--part", "week 1")
    assert "there is no budget file" in shown(capsys, "score", path, *SCORE, *of_new, code=2)
    assert not new.exists()
    assert "--part needs --budget" in shown(capsys, "score", path, *SCORE, "--part", "week 1", code=2)
    assert "there is no budget file" in shown(capsys, "budget", new, "--part", "week 1", code=2)
