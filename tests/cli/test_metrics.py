"""`dp-metrics metrics` and `plan`: what may be asked, and what error to expect of it."""

import json
import re

import pytest

import dp_metrics as dp
from dp_metrics.metrics import METRICS


def test_every_metric_is_listed(run):
    listed, text = json.loads(run("metrics", "--json").out), run("metrics").out
    assert [one["name"] for one in listed] == [*METRICS]
    for one in listed:
        assert one["summary"].endswith(".")
        assert all(told in text for told in (one["name"], one["exact_function"] or "", one["summary"]))


@pytest.mark.gate
def test_a_plan_is_a_table_of_expected_errors(run):
    plan = ("plan", "--metric", "mae=2", "--n", 12000, 3000, "--epsilon", 1, 0.1)
    lines = run(*plan, "--law", "heavy").out.splitlines()
    assert lines[0].startswith("mae=2: mean absolute error by the noise")
    assert lines[1].split() == ["records", "epsilon", "error", "width"]
    asked = [(n, epsilon) for n in (12000, 3000) for epsilon in (1.0, 0.1)]
    plans = [dp.plan_release("mae", guess=2.0, law="heavy", n=n, epsilon=x) for n, x in asked]
    assert [line.split() for line in lines[2:6]] == [
        [f"{one.n:,}", f"{one.epsilon:g}", f"{one.error:.2g}"] for one in plans
    ]
    assert plans[0].assumes in lines[6]
    assert re.match(r"Errors are simulated, off by [1-9]\d* % at most", lines[7])
    (row,) = (line.split() for line in run(*plan[:3], "--n", 2000, "--epsilon", 0.1).out.splitlines()[2:-3])
    least, most = dp.plan_release("mae", guess=2.0, n=2000, epsilon=0.1).error_range
    assert row[2:] == [f"{least:.2g}", "to", f"{most:.2g}"]  # of a guess without a law


def test_a_plan_as_json_has_the_same_numbers(run):
    argv = ("plan", "--metric", "mean=40", "--n", 500, 300, "--bounds", "[0,120]", "--epsilon", 1, "--json")
    first, second = json.loads(run(*argv).out)["plans"]
    assert [(one["metric"], one["n"], one["epsilon"]) for one in (first, second)] == [
        ("mean=40", n, 1.0) for n in (500, 300)
    ]
    assert first["error"] == dp.plan_release("mean", guess=40.0, n=500, epsilon=1.0, bounds=(0, 120)).error
    assert first["assumes"].startswith("500 records; normal numbers")


@pytest.mark.gate
def test_a_plan_finds_the_epsilon_or_the_number_of_records(run):
    plan = ("plan", "--metric", "recall=0.9", "--positives", 0.3)
    lines = run(*plan, "--epsilon", 1, "--width", 0.1).out.splitlines()
    found = dp.plan_release("recall", guess=0.9, positives=0.3, epsilon=1.0, width=0.1)
    assert lines[2].split() == [str(found.n), "1", f"{found.error:.2g}", f"{found.width:.2g}"]
    document = json.loads(run(*plan, "--n", 600, "--error", 0.001, "--json").out)
    found = dp.plan_release("recall", guess=0.9, positives=0.3, n=600, error=0.001)
    (told,) = document["plans"]
    assert (told["metric"], told["epsilon"], told["width"]) == ("recall=0.9", found.epsilon, found.width)


def test_an_audit_of_no_known_mechanism_is_refused(refused):
    assert "Did you mean 'laplace'?" in refused("audit", "--mechanism", "hazard", "laplac", code=2)
