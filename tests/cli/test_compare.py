"""`dp-metrics compare` and `interval`: the numbers of the functions, from files, paid for once."""

import errno
import io
import json
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import new_session

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, SeededReleaseWarning
from dp_metrics.cli import compare
from dp_metrics.cli.main import main
from dp_metrics.release.release import Release

SECRET = "Zaphod987"
MODELS = ("--y-true", "y", "--pred-a", "a", "--pred-b", "b")
N = 1500


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, N)
    a, b = (np.where(rng.random(N) < wrong, 1 - y, y) for wrong in (0.1, 0.3))
    words = np.array(["well", "ill"])
    near, far = (np.clip(y * 0.6 + 0.2 + s * rng.normal(size=N), 0.01, 0.99) for s in (0.05, 0.1))
    return pd.DataFrame(
        {"y": y, "a": a, "b": b, "truth": words[y], "left": words[a], "right": words[b], "p": near, "q": far}
        | {"notp": 1 - near, "notq": 1 - far, "loss": rng.exponential(0.2, N)}
        | {"person": [f"p{at // 3}" for at in range(N)]}
    )


@pytest.fixture
def file(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def seeded(monkeypatch):
    """Let the commands draw with a seed; a function with the same seed draws the same."""
    warnings.simplefilter("ignore", SeededReleaseWarning)
    for name in ("private_compare", "private_mean_interval", "private_quantile_interval"):
        function = partial(getattr(dp, name), random_state=7)
        function.__name__ = name
        monkeypatch.setattr(compare, name, function)


def run(capsys, *argv, code=0):
    """Run a command, which is a process of its own; return what it prints."""
    new_session()
    assert main([*map(str, argv)]) == code
    shown = capsys.readouterr()
    if code:
        assert shown.out == ""
        assert shown.err.startswith("dp-metrics: error: ")
        assert shown.err.count("\n") == 1
    return shown.err if code else shown.out


def words(text):
    return text.split()


COMPARISONS = {
    "labels": ((*MODELS,), ("y", "a", "b"), {}),
    "words": (("--y-true", "truth", "--pred-a", "left", "--pred-b", "right"), ("truth", "left", "right"), {}),
    "probabilities": (
        ("--y-true", "y", "--pred-a", "p", "--pred-b", "q", "--loss", "log_loss"),
        ("y", "p", "q"),
        {"loss": "log_loss"},
    ),
    "words and columns": (
        words("--y-true truth --pred-a p notp --pred-b q notq --loss brier --option labels=['ill','well']"),
        ("truth", ["p", "notp"], ["q", "notq"]),
        {"loss": "brier", "labels": ["ill", "well"]},
    ),
    "means": (
        words("--y-true y --pred-a p --pred-b q --loss mae --option bounds=[0,1]")
        + words("--max-difference 0.5 --confidence 0.9"),
        ("y", "p", "q"),
        {"loss": "mae", "max_difference": 0.5, "bounds": (0, 1), "confidence": 0.9},
    ),
    "people": ((*MODELS, "--groups", "person"), ("y", "a", "b"), {"groups": "person"}),
    "two records of each": (
        (*MODELS, "--groups", "person", "--max-records", "2"),
        ("y", "a", "b"),
        {"groups": "person", "max_records": 2},
    ),
}


@pytest.mark.parametrize("case", COMPARISONS)
def test_a_comparison_has_the_bits_of_the_function(case, file, people, seeded, capsys):
    argv, columns, options = COMPARISONS[case]
    shown = json.loads(run(capsys, "compare", file, *argv, "--epsilon", "0.5", "--json"))
    data = [people[column].to_numpy() for column in columns]
    if "groups" in options:
        options = {**options, "groups": people[options["groups"]]}
        assert shown["n"] == N // 3
    want = dp.private_compare(*data, epsilon=0.5, random_state=7, **options)
    assert {name: shown[name] for name in want.to_dict()} == json.loads(want.to_json())
    assert (shown["better"], shown["metric"], shown["budget"]) == (want.better, "private_compare", None)


INTERVALS = {
    "mean": (
        ("--max-loss", "0.8", "--confidence", "0.8"),
        dp.private_mean_interval,
        {"max_loss": 0.8, "confidence": 0.8},
    ),
    "private cap": (("--cap", "private"), dp.private_mean_interval, {"cap": "private"}),
    "median": (("--quantile", "0.5"), dp.private_quantile_interval, {"q": 0.5}),
}


@pytest.mark.parametrize("case", INTERVALS)
def test_an_interval_has_the_bits_of_the_function(case, file, people, seeded, capsys):
    argv, function, options = INTERVALS[case]
    shown = json.loads(run(capsys, "interval", file, "--column", "loss", *argv, "--epsilon", "1", "--json"))
    want = function(people["loss"].to_numpy(), epsilon=1.0, random_state=7, **options)
    assert (shown["lower"], shown["upper"], shown["estimate"]) == (want.lower, want.upper, want.estimate)
    assert (shown["metric"], shown["about"]) == (function.__name__, want.about)


ASKED = {
    "compare": (*MODELS, "--epsilon", "1/3"),
    "compare people": (*MODELS, "--groups", "person", "--epsilon", "1/3"),
    "interval": ("--column", "loss", "--max-loss", "1", "--epsilon", "1/3"),
    "quantile": ("--column", "loss", "--quantile", "0.5", "--epsilon", "1/3"),
}
FUNCTIONS = {
    "compare": lambda people, **paid: dp.private_compare(people.y, people.a, people.b, **paid),
    "compare people": lambda people, **paid: dp.private_compare(
        people.y, people.a, people.b, groups=people.person, **paid
    ),
    "interval": lambda people, **paid: dp.private_mean_interval(people.loss, max_loss=1, **paid),
    "quantile": lambda people, **paid: dp.private_quantile_interval(people.loss, 0.5, **paid),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_name_is_bought_once_and_then_no_private_cell_is_looked_at(case, file, people, tmp_path, capsys):
    budget = tmp_path / "b.sqlite"
    command = "compare" if "compare" in case else "interval"
    named = (command, file, *ASKED[case], "--budget", budget, "--spend-name", "week 47")
    first = run(capsys, *named, "--total", "1")
    people.assign(y=SECRET, a="", b=SECRET, loss=None).to_csv(file, index=False)
    new_session()
    assert main([*map(str, named)]) == 0
    again = capsys.readouterr()
    assert again.out == first
    assert "'week 47' was stored on" in again.err
    assert "another question" in run(capsys, *named, "--confidence", "0.9", code=1)
    assert "another question" in run(capsys, "score", file, "--metric", "mae", *MODELS[:2], "--y-pred", "a",
                                     *named[-4:], "--epsilon", "1/3", code=1)  # fmt: skip
    people[1:].to_csv(file, index=False)
    assert f"number of records was {N} and is {N - 1}" in run(capsys, *named, code=1)
    new_session()
    accountant = PrivacyAccountant(1, budget)
    assert [(one.spend_name, one.epsilon) for one in accountant.history] == [("week 47", 1 / 3)]
    with pytest.warns(dp.StoredReleaseWarning):  # the function asks the same question
        FUNCTIONS[case](people, epsilon=accountant.split(2)[0], accountant=accountant, spend_name="week 47")


def test_thirds_use_a_budget_up(file, tmp_path, capsys):
    paid = ("--budget", tmp_path / "b.sqlite", "--total", "1")
    for _ in range(3):
        shown = run(capsys, "compare", file, *MODELS, "--epsilon", "1/3", *paid)
    assert shown.startswith("private_compare (epsilon 0.3333333333333333, 1,500 records, replace one); ")
    assert "; epsilon left 0\n" in shown
    assert "only 0.0 remains" in run(capsys, "compare", file, *MODELS, "--epsilon", "1/3", *paid, code=1)


def test_what_is_printed(file, capsys):
    lines = run(capsys, "compare", file, *MODELS, "--epsilon", "1").splitlines()
    assert lines[:2] == [
        "private_compare (epsilon 1, 1,500 records, replace one); no budget was charged",
        "A is a; B is b",
    ]
    assert lines[2].startswith("A is better on more records than B (1500 records, p = 0.001")
    shown = run(capsys, "interval", file, *ASKED["interval"])
    first, second = shown.splitlines()
    assert first == ("private_mean_interval (epsilon 0.3333333333333333, replace one); no budget was charged")
    assert "with confidence 95 %. The mean of the loss, clipped to max_loss, among all people" in second


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"1,{SECRET},1", "column 'a' holds something that is no number"),
        ("1,,1", "column 'a': a value is missing"),
        ("1,nan,1", "column 'a': a value is missing"),
        ("1,1,987.5", None),
        ("1,-1,0", None),
    ],
)
def test_a_bad_row_spends_nothing_and_is_not_shown(row, message, tmp_path, capsys):
    path, budget = tmp_path / "data.csv", tmp_path / "b.sqlite"
    path.write_text("y,a,b\n" + "1,0.5,1\n" * 100 + row + "\n" + "1,0.5,1\n" * 100)
    asked = ("--loss", "log_loss", "--epsilon", "1", "--budget", budget, "--total", "1")
    shown = run(capsys, "compare", path, *MODELS, *asked, code=1)
    assert message is None or message in shown
    hidden = shown.replace(str(tmp_path), "")
    assert SECRET not in hidden
    assert "987" not in hidden
    assert "10" not in hidden  # the row
    assert PrivacyAccountant(1, budget).history == ()
    path.write_text("loss\n" + "0.5\n" * 100 + "-987\n")
    shown = run(capsys, "interval", path, *ASKED["interval"], code=1)
    assert "987" not in shown.replace(str(tmp_path), "")


@pytest.mark.parametrize("case", ["compare", "interval"])
def test_what_nobody_expected_is_not_shown(case, file, capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise KeyError(SECRET)

    monkeypatch.setattr(Release, "draw", fail)
    shown = run(capsys, case, file, *ASKED[case], code=2)
    assert SECRET not in shown
    assert "shows whether epsilon was spent" in shown


@pytest.mark.parametrize("case", ["compare", "interval"])
def test_a_result_that_cannot_be_written_is_told(case, file, tmp_path, capsys, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    budget = PrivacyAccountant(1, tmp_path / "b.sqlite")
    monkeypatch.setattr("sys.stdout", Full())
    code = main([case, str(file), *ASKED[case], "--budget", budget.path])
    monkeypatch.undo()
    assert (code, budget.spent) == (2, 1 / 3)
    assert "epsilon was spent, but the result can't be written: No space left" in capsys.readouterr().err


@pytest.mark.parametrize("epsilon", ["5e-324", "1e300"])
def test_an_extreme_epsilon_loses_no_number(epsilon, tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text("y,a,b,loss\n" + "1,1,0,0.5\n0,0,0,0.25\n")
    for more in ((), ("--max-difference", "1e308"), ("--max-difference", "5e-324")):
        assert run(capsys, "compare", path, *MODELS, "--epsilon", epsilon, *more).count("\n") == 3
    for more in (("--max-loss", "1e308"), ("--max-loss", "5e-324")):
        asked = ("--column", "loss", "--epsilon", epsilon, *more)
        assert run(capsys, "interval", path, *asked).count("\n") == 2
