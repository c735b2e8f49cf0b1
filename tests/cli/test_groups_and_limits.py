"""`dp-metrics score` by several columns of groups, and the free limits beside a score."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import new_session

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, PrivateMetricFrame, SeededReleaseWarning
from dp_metrics.cli import _output, score
from dp_metrics.cli.main import main

N = 2000
ACCURACY = ("--metric", "accuracy", "--y-true", "y", "--y-pred", "p", "--epsilon", "1")
BY_TWO = ("--sensitive", "sex", "ward", "--group-labels", "m", "f", "--group-labels", "1", "2")
BY_SEX = ("--sensitive", "sex", "--group-labels", "m", "f")


@pytest.fixture
def people():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, N)
    wrong = rng.random(N) < 0.1
    groups = {"sex": rng.choice(["f", "m"], N), "ward": rng.integers(1, 3, N), "old": rng.random(N) < 0.5}
    return pd.DataFrame({"y": y, "p": np.where(wrong, 1 - y, y), "x": rng.random(N), **groups})


@pytest.fixture(params=["csv", "parquet"])
def file(request, people, tmp_path):
    path = tmp_path / f"people.{request.param}"
    people.to_csv(path, index=False) if request.param == "csv" else people.to_parquet(path)
    return path


def run(capsys, *argv, code=0):
    """Run `score`, a process of its own; return what it prints on standard output and on standard error."""
    new_session()
    assert main(["score", *map(str, argv)]) == code
    return capsys.readouterr()


@pytest.fixture
def seeded(monkeypatch):
    """Let the command draw with a seed."""
    release = score.release
    monkeypatch.setattr(score, "release", lambda *args: release(*args, random_state=7))
    warnings.simplefilter("ignore", SeededReleaseWarning)


@pytest.mark.parametrize(
    ("argv", "columns", "labels"),
    [
        (BY_TWO, ["sex", "ward"], [["m", "f"], [1, 2]]),
        (("--sensitive", "ward", *BY_TWO[:2], "--group-labels", "(1, 2)", "--group-labels", '["m", "f"]'),
         ["ward", "sex"], [[1, 2], ["m", "f"]]),
        (("--sensitive", "ward", "old", *BY_TWO[-3:], "--group-labels", "0", "1"), ["ward", "old"],
         [[1, 2], [0, 1]]),
        (("--sensitive", "sex", "ward", "old", *BY_TWO[3:], "--group-labels", "0", "1"),
         ["sex", "ward", "old"], [["m", "f"], [1, 2], [0, 1]]),
    ],
)  # fmt: skip
def test_groups_of_several_columns_have_the_bits_of_the_frame(
    argv, columns, labels, file, people, seeded, capsys
):
    shown = json.loads(run(capsys, file, *ACCURACY, *argv, "--json").out)
    people["old"] = people["old"].astype(int)
    want = PrivateMetricFrame(
        metrics="accuracy", y_true=people.y, y_pred=people.p, sensitive_features=people[columns],
        group_labels=labels, epsilon=1.0, random_state=7,
    )  # fmt: skip
    assert [(tuple(one["group"]), one["value"], one["size"]) for one in shown["by_group"]] == [
        (group, want.by_group[group], want.group_sizes[group]) for group in want.by_group
    ]
    assert shown["overall"] == want.overall


def test_the_frame_of_two_columns_is_bought_once_by_command_or_function(file, people, tmp_path, capsys):
    paid = ("--budget", tmp_path / "b.sqlite", "--total", "1", "--spend-name", "by two")
    first = run(capsys, file, *ACCURACY, *BY_TWO, *paid).out
    assert [line.split("  ")[1] for line in first.splitlines()[1:]] == [
        "overall",
        "m, 1",
        "m, 2",
        "f, 1",
        "f, 2",
    ]
    kept = people.assign(y=-1, p=7, sex="x", ward=0)
    kept.to_csv(file, index=False) if file.suffix == ".csv" else kept.to_parquet(file)
    again = run(capsys, file, *ACCURACY, *BY_TWO, *paid)
    assert again.out == first
    assert "was stored on" in again.err
    new_session()
    with pytest.warns(dp.StoredReleaseWarning):
        PrivateMetricFrame(
            metrics="accuracy", y_true=people.y, y_pred=people.p, sensitive_features=people[["sex", "ward"]],
            group_labels=[["m", "f"], [1, 2]], epsilon=1, spend_name="by two",
            accountant=PrivacyAccountant(1, tmp_path / "b.sqlite"),
        )  # fmt: skip


@pytest.mark.parametrize("bad", ["Zaphod987", "", "3.5"])
def test_a_group_that_is_not_listed_spends_nothing_and_is_not_shown(bad, people, tmp_path, capsys):
    budget = PrivacyAccountant(1, tmp_path / "b.sqlite")
    people = people.astype({"ward": str})
    people.loc[987, "ward"] = bad
    people.to_csv(tmp_path / "data.csv", index=False)
    shown = run(capsys, tmp_path / "data.csv", *ACCURACY, *BY_TWO, "--budget", budget.path, code=1)
    assert "987" not in shown.err.replace(str(tmp_path), "")
    assert "3.5" not in shown.err
    assert budget.history == ()


def test_limits_are_those_of_the_result_and_cost_nothing(file, people, seeded, capsys):
    want = dp.with_result(dp.private_accuracy_score)(people.y, people.p, epsilon=1, random_state=7)
    asked = (file, *ACCURACY, "--interval", "people", "noise", "approximate", "--confidence", "0.8")
    shown = json.loads(run(capsys, *asked, "--json").out)
    for name, interval in (
        ("noise_interval", want.noise_interval(0.8)),
        ("population_interval", want.population_interval(0.8)),
        ("approximate_population_interval", want.population_interval(0.8, "approximate")),
    ):
        assert (shown[name]["lower"], shown[name]["upper"]) == tuple(interval)
        assert shown[name]["confidence"] == 0.8
    lines = run(capsys, *asked).out.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == [
        "limits among all people like these, with confidence 80 %",
        "limits of its noise, with probability 80 %",
        "limits among all people like these, with confidence 80 %",
    ]
    low, high = (float(end) for end in lines[1].partition(": ")[2].split(" to "))
    lower, upper = want.population_interval(0.8)
    assert lower - 1e-5 < low <= lower < upper <= high < upper + 1e-5


def test_limits_of_groups_and_of_the_gap(file, people, seeded, capsys):
    asked = (file, *ACCURACY, *BY_SEX, "--interval", "people", "--confidence", "0.9")
    shown = json.loads(run(capsys, *asked, "--json").out)
    frame = PrivateMetricFrame(
        metrics="accuracy", y_true=people.y, y_pred=people.p, sensitive_features=people.sex,
        group_labels=["m", "f"], epsilon=1.0, random_state=7,
    )  # fmt: skip
    want = frame.population_interval(confidence=0.9)
    for one in shown["by_group"]:
        found = one["population_interval"]
        assert (found["lower"], found["upper"]) == tuple(want[one["group"]])
    gap = frame.population_interval(of="difference", confidence=0.9)
    found = shown["difference"]
    assert (found["value"], found["population_interval"]["upper"]) == (frame.difference(), gap.upper)
    lines = run(capsys, *asked).out.splitlines()
    assert lines[4] == "limits among all people like these, with confidence 90 %:"
    assert lines[-1].startswith("  largest gap ")
    assert len(run(capsys, *asked[:-4]).out.splitlines()) == 4  # none that nobody asked for


def test_limits_that_there_are_none_of_are_told_beside_the_number(file, tmp_path, capsys):
    paid = ("--budget", tmp_path / "b.sqlite", "--total", "1", "--spend-name", "mse")
    mse = (file, "--metric", "mse", "--y-true", "y", "--y-pred", "x", "--epsilon", "1", *paid)
    shown = run(capsys, *mse, "--interval", "people")
    assert shown.out.startswith("private_mse = ")
    assert shown.err.startswith("dp-metrics: warning: no limits of the kind 'people': private_mse tells no")
    assert shown.err.count("\n") == 1
    shown = run(capsys, *mse, "--interval", "noise", "people", "--json")  # bought before
    document = json.loads(shown.out)
    assert document["population_interval"] is None
    assert document["noise_interval"]["lower"] <= document["value"]
    assert document["budget"]["spent"] == 1.0


@pytest.mark.parametrize("more", [(), BY_SEX])
def test_limits_that_fail_lose_no_number(more, file, tmp_path, capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise KeyError("unexpected")

    monkeypatch.setattr(_output, "_told", fail)
    shown = run(capsys, file, *ACCURACY, *more, "--interval", "people")
    assert shown.out.startswith("private_accuracy_score ")
    assert "no limits of the kind 'people'" in shown.err


def test_limits_of_arrays_are_shown_if_they_are_asked_for(file, capsys):
    recall = ("--metric", "recall", *ACCURACY[2:], "--option", "average=null")
    assert "limits" not in run(capsys, file, *recall).out
    assert "%: [" in run(capsys, file, *recall, "--interval", "people").out
