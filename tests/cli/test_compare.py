"""`dp-metrics compare` and `interval`: the numbers of the functions, from files."""

import json
from functools import partial
from pathlib import Path

from helpers import loop_over, seeded, system_of

import dp_metrics as dp

N = 1500
MODELS = ("--y-true", "y", "--pred-a", "a", "--pred-b", "b")


@loop_over(
    ("argv", "columns", "options"),
    [
        (" ".join(MODELS), ("y", "a", "b"), {}),
        ("--y-true truth --pred-a left --pred-b right", ("truth", "left", "right"), {}),
        (
            "--y-true truth --pred-a notp p --pred-b q notq --loss brier --labels ['ill','well']",
            ("truth", ["notp", "p"], ["q", "notq"]),
            {"loss": "brier", "labels": ["ill", "well"]},
        ),
        (
            "--y-true y --pred-a p --pred-b q --loss mae --bounds [0,1] --max-difference 0.5 "
            "--confidence 0.9",
            ("y", "p", "q"),
            {"loss": "mae", "max_difference": 0.5, "bounds": (0, 1), "confidence": 0.9},
        ),
        (
            f"{' '.join(MODELS)} --groups person --max-records 2",
            ("y", "a", "b"),
            {"groups": "person", "max_records": 2},
        ),
    ],
)
def test_a_comparison_has_the_bits_of_the_function(argv, columns, options, people, same):
    if "groups" in options:
        options = {**options, "groups": people[options["groups"]]}
    data = [people[column].to_numpy() for column in columns]
    compare = partial(dp.private_compare, *data, epsilon=0.5, **options)
    shown, result = same(["compare", "data.csv", *argv.split(), "--epsilon", "0.5"], compare)
    assert shown["n"] == (N // 3 if "groups" in options else N)
    assert (shown["better"], shown["metric"], shown["budget"]) == (result.better, "private_compare", None)


@loop_over(
    ("argv", "function", "options"),
    [
        ("--max-loss 0.8 --confidence 0.8", dp.private_mean_interval, {"max_loss": 0.8, "confidence": 0.8}),
        ("--cap private", dp.private_mean_interval, {"cap": "private"}),
        ("--quantile 0.5", dp.private_quantile_interval, {"q": 0.5}),
    ],
)
def test_an_interval_has_the_bits_of_the_function(argv, function, options, people, run):
    asked = ("interval", "data.csv", "--column", "loss", *argv.split(), "--epsilon", "1", "--json")
    with system_of(seeded()):
        shown = json.loads(run(*asked).out)
    want = function(people["loss"].to_numpy(), epsilon=1.0, random_state=seeded(), **options)
    assert (shown["lower"], shown["upper"], shown["estimate"]) == (want.lower, want.upper, want.estimate)
    assert (shown["metric"], shown["about"]) == (function.__name__, want.about)


def test_what_is_printed(people, run):
    lines = run("compare", "data.csv", *MODELS, "--epsilon", "1").out.splitlines()
    assert lines[:2] == [
        "private_compare (epsilon 1, 1,500 records, replace one); no budget was charged",
        "A is a; B is b",
    ]
    assert lines[2].startswith("A is better on more records than B (1500 records, p = 0.001")
    asked = ("interval", "data.csv", "--column", "loss", "--max-loss", "1", "--epsilon", "1/3")
    first, second = run(*asked).out.splitlines()
    assert first == "private_mean_interval (epsilon 0.3333333333333333, replace one); no budget was charged"
    assert "with confidence 95 %. The mean of the loss, clipped to max_loss, among all people" in second


@loop_over("epsilon", ["5e-324", "1e300"])
def test_an_extreme_epsilon_loses_no_number(epsilon, run):
    Path("data.csv").write_text("y,a,b,loss\n" + "1,1,0,0.5\n0,0,0,0.25\n")
    for argv, lines in (
        (("compare", "data.csv", *MODELS), 3),
        (("compare", "data.csv", *MODELS, "--max-difference", "1e308"), 3),
        (("compare", "data.csv", *MODELS, "--max-difference", "5e-324"), 3),
        (("interval", "data.csv", "--column", "loss", "--max-loss", "1e308"), 2),
        (("interval", "data.csv", "--column", "loss", "--max-loss", "5e-324"), 2),
    ):
        assert run(*argv, "--epsilon", epsilon).out.count("\n") == lines
