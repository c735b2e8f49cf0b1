"""Each command has the bits of the function that it calls, buys a name once, and tells what it must."""

from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from helpers import later, loop_over

import dp_metrics as dp

N, EXTREME = 1500, ("5e-324", "1e300")
ACCURACY = "score data --metric accuracy --y-true y --y-pred a"
RECALL = "score data --metric recall --y-true y --y-pred a"
MODELS = "compare data --y-true y --pred-a a --pred-b b"
LOSS = "interval data --column loss"
PAGE = "evaluate data --y-true y --y-pred a --labels 0 1"
FEATURES = "--sensitive sex ward old --group-labels m f --group-labels 1 2 --group-labels 0 1"
accuracy, recall = map(dp.with_result, (dp.private_accuracy_score, dp.private_recall_score))


def of_pair(function, y="y", p="a", **columns):
    return lambda d: partial(function, d[y], d[p], **{name: d[column] for name, column in columns.items()})


def framed(d, features="sex", labels=("m", "f"), **more):
    by = {"sensitive_features": d.astype({"old": int})[features], "group_labels": labels}
    return partial(dp.PrivateMetricFrame, metrics="recall", y_true=d.y, y_pred=d.a, **by, **more)


def compared(*columns, **options):
    return lambda d: partial(dp.private_compare, *(d[column].to_numpy() for column in columns), **options)


# A command, and the function that asks the same question.
ASKED = {
    "score": (ACCURACY, of_pair(accuracy)),
    "truth values": (ACCURACY.replace("-true y", "-true flag"), of_pair(accuracy, "flag")),
    "weights": (f"{ACCURACY} --sample-weight w", of_pair(accuracy, sample_weight="w")),
    "persons": (f"{ACCURACY} --groups person", of_pair(accuracy, groups="person")),
    "weights of persons": (
        f"{ACCURACY} --sample-weight w --groups sex", of_pair(accuracy, sample_weight="w", groups="sex"),
    ),
    "by sex": (f"{RECALL} --sensitive sex --group-labels m f --confidence 0.9", framed),
    "by three features": (
        f"{RECALL} {FEATURES}",
        partial(framed, features=["sex", "ward", "old"], labels=[["m", "f"], [1, 2], [0, 1]]),
    ),
    "persons by sex": (
        f"{RECALL} --sensitive sex --group-labels m f --groups person --max-records 2",
        lambda d: partial(framed(d), groups=d.person, max_records=2),
    ),
    "compare": (MODELS, compared("y", "a", "b")),
    "compare words": (
        "compare data --y-true truth --pred-a left --pred-b right", compared("truth", "left", "right"),
    ),
    "compare brier": (
        "compare data --y-true truth --pred-a notp p --pred-b q notq --loss brier --labels ['ill','well']",
        compared("truth", ["notp", "p"], ["q", "notq"], loss="brier", labels=["ill", "well"]),
    ),
    "compare means": (
        "compare data --y-true y --pred-a p --pred-b q --loss mae --bounds [0,1] --max-difference 0.5 "
        "--confidence 0.9",
        compared("y", "p", "q", loss="mae", max_difference=0.5, bounds=(0, 1), confidence=0.9),
    ),
    "compare persons": (
        f"{MODELS} --groups person --max-records 2",
        lambda d: partial(compared("y", "a", "b")(d), groups=d.person, max_records=2),
    ),
    "interval": (
        f"{LOSS} --max-loss 0.8 --confidence 0.8",
        lambda d: partial(dp.private_mean_interval, d.loss, max_loss=0.8, confidence=0.8),
    ),
    "cap": (f"{LOSS} --cap private", lambda d: partial(dp.private_mean_interval, d.loss, cap="private")),
    "quantile": (f"{LOSS} --quantile 0.5", lambda d: partial(dp.private_quantile_interval, d.loss, 0.5)),
    **{
        suffix: (
            f"{PAGE} --output page.{suffix}",
            lambda d: partial(dp.private_evaluate, d.y, d.a, labels=[0, 1]),
        )
        for suffix in ("html", "md", "json")
    },
}  # fmt: skip
PAGES = ("html", "md", "json")


def argv_of(case, kind="csv", epsilon="1/3"):
    return [*ASKED[case][0].replace(" data ", f" data.{kind} ").split(), "--epsilon", epsilon]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@loop_over("case", [case for case in ASKED if case not in PAGES])
def test_a_command_has_the_bits_of_the_function(case, kind, people, same):
    sure = {"confidence": 0.9} if case == "by sex" else {}
    shown, result = same(argv_of(case, kind), partial(ASKED[case][1](people), epsilon=Fraction(1, 3)), **sure)
    assert (shown["epsilon"], shown["budget"]) == (1 / 3, None)
    assert shown.get("better") == getattr(result, "better", None)
    if case.startswith("compare"):
        assert shown["n"] == (N // 3 if "persons" in case else N)


def as_released(text):
    """Return what a page said when it was released, of what it says when a budget returned it."""
    said = text.replace("; returned since by the budget, at no cost", "")
    return said.replace('"is_returned": true', '"is_returned": false')


@pytest.mark.gate
@pytest.mark.parametrize("case", ASKED)
def test_a_name_is_bought_once_and_then_no_private_cell_is_looked_at(case, people, write, run, refused):
    argv, page = argv_of(case), Path(f"page.{case}")
    paid = ("--budget", "b.sqlite", "--total", 1, "--spend-name", "week 47")
    first = run(*argv, *paid).out
    written = page.read_text("utf-8") if case in PAGES else None
    spoilt = people.assign(**dict.fromkeys(("y", "flag", "truth"), "Zaphod987"), a="", b="Zaphod987", p=None)
    spoilt = spoilt.assign(loss=None, ward=0, old="x")
    spoilt = spoilt if case.endswith("of persons") else spoilt.assign(sex="x")
    write("data.csv", spoilt)
    again = run(*argv, *paid)
    assert as_released(again.out) == first
    assert written is None or as_released(page.read_text("utf-8")) == written != page.read_text("utf-8")
    assert "'week 47' was stored on" in again.err
    assert "records and predictions were not read" in again.err or written is not None
    other = ("score", "data.csv", "--metric", "mse", "--y-true", "y", "--y-pred", "a", "--epsilon", "1/3")
    assert "another question" in refused(*other, *paid)
    write("data.csv", spoilt[1:])
    assert "was" in refused(*argv, *paid)  # the number of records, or of what is public of each
    budget = later("b.sqlite", 1)
    assert [(one.spend_name, one.epsilon) for one in budget.history] == [("week 47", 1 / 3)]
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        ASKED[case][1](people)(epsilon=Fraction(1, 3), accountant=budget, spend_name="week 47")
    assert budget.spent == 1 / 3


def test_what_is_printed(people, run):
    lines = run(*argv_of("compare")).out.splitlines()
    assert lines[:2] == [
        "private_compare (epsilon 0.3333333333333333, 1,500 records, replace one); no budget was charged",
        "A is a; B is b",
    ]
    assert lines[2].startswith("A is better on more records than B (1500 records, p = 0.")
    assert "0.3333333333333333, 500 persons, replace one)" in run(*argv_of("compare persons")).out
    first, second = run(*argv_of("interval")).out.splitlines()
    assert first == "private_mean_interval (epsilon 0.3333333333333333, replace one); no budget was charged"
    assert "with confidence 80 %. The mean of the loss, clipped to max_loss, among all people" in second


SIZES = [f"{one} {size}" for one in (f"{MODELS} --max-difference", f"{LOSS} --max-loss") for size in EXTREME]


@loop_over("epsilon", EXTREME)
@loop_over("line", [MODELS, *SIZES])
def test_an_extreme_epsilon_loses_no_number(epsilon, line, run):
    Path("data.csv").write_text("y,a,b,loss\n" + "1,1,0,0.5\n0,0,0,0.25\n")
    words = line.replace(" data ", " data.csv ").split()
    assert run(*words, "--epsilon", epsilon).out.count("\n") == 2 + line.startswith("compare")
