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
def test_a_plan_is_two_tables_of_expected_errors(run):
    plan = ("plan", "--metric", "f1=0.6", "mae=2", "--n", 12000, "--positives", 0.14, "--law", "heavy")
    lines = run(*plan, "--epsilon", 1, 0.1).out.splitlines()
    assert lines[0].startswith("Mean absolute error by the noise")
    assert lines[1].split() == ["metric", "records", "epsilon", "error", "width"]
    asked = [("12,000", "0.1"), *((n, "1") for n in ("12,000", "3,000", "6,000", "24,000", "48,000"))]
    shown = [line.split() for line in lines[2:14]]
    assert [tuple(row[:3]) for row in shown] == [
        (word, *one) for word in ("f1=0.6", "mae=2") for one in asked
    ]
    f1, mae = {"guess": 0.6, "positives": 0.14}, {"guess": 2.0, "law": "heavy"}
    for rows, name, guess in ((shown[:2], "f1", f1), (shown[6:8], "mae", mae)):
        plans = [dp.plan_release(name, n=12000, epsilon=x, **guess) for x in (0.1, 1.0)]
        assert [row[3] for row in rows] == [f"{one.error:.2g}" for one in plans]
        assert f"  {rows[0][0]}: {plans[0].assumes}" in lines
    assert re.fullmatch(r"Errors are simulated: they may be off by [1-9]\d* % at most.", lines[-1])


def test_a_plan_as_json_has_the_same_numbers(run):
    argv = ("plan", "--metric", "mean=40", "--n", 500, 300, "--bounds", "[0,120]", "--json")
    document = json.loads(run(*argv).out)
    by_epsilon, by_size = document["plans"][:5], document["plans"][5:]
    assert [(one["n"], one["epsilon"]) for one in by_epsilon] == [(500, x) for x in (0.1, 0.3, 1, 3, 10)]
    assert [(one["n"], one["epsilon"]) for one in by_size] == [(300, 1.0), (500, 1.0)]
    assert by_epsilon[2] == by_size[1]  # one and the same cell of both tables
    assert by_size[1]["metric"] == "mean=40"
    assert (
        by_size[1]["error"] == dp.plan_release("mean", guess=40.0, n=500, epsilon=1.0, bounds=(0, 120)).error
    )
    assert by_size[1]["assumes"].startswith("500 records; normal numbers")


@pytest.mark.gate
def test_a_plan_finds_the_epsilon_or_the_number_of_records(run):
    plan = ("plan", "--metric", "recall=0.9", "--positives", 0.3)
    lines = run(*plan, "--epsilon", 1, "--width", 0.1).out.splitlines()
    assert lines[1].split() == ["metric", "records", "epsilon", "error", "width"]
    found = dp.plan_release("recall", guess=0.9, positives=0.3, epsilon=1.0, width=0.1)
    assert lines[2].split() == ["recall=0.9", str(found.n), "1", f"{found.error:.2g}", f"{found.width:.2g}"]
    document = json.loads(run(*plan, "--n", 600, "--error", 0.001, "--json").out)
    found = dp.plan_release("recall", guess=0.9, positives=0.3, n=600, error=0.001)
    (told,) = document["plans"]
    assert (told["metric"], told["epsilon"], told["width"]) == ("recall=0.9", found.epsilon, found.width)


def test_an_audit_of_no_known_mechanism_is_refused(refused):
    assert "Did you mean 'laplace'?" in refused("audit", "--mechanism", "hazard", "laplac", code=2)
