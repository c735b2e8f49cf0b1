"""How the cells of a file are read: each by itself, in each command and kind of file alike."""

import contextlib
import decimal
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.cli.main import main

OF_PAIRS = ("--metric", "accuracy", "--y-true", "y", "--y-pred", "p", "--epsilon", "1e6", "--json")
MACRO = ("--metric", "f1", "--option", "average=macro", *OF_PAIRS[2:])
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null", " NA "]
SECRET = "Zaphod987"


def run(*argv):
    """Run a command; return its exit code and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, argv)])
    return code, out.getvalue(), err.getvalue()


def written(folder, kind, **columns):
    """Write columns of text."""
    path = folder / f"data.{kind}"
    frame = pd.DataFrame(columns)
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


def value(*argv):
    code, out, err = run(*argv)
    assert code == 0, err
    return json.loads(out)["value"]


EQUAL = [
    ("TRUE", "true"), ("True", "1"), ("FALSE", "0.0"), (" 1", "1.0"), ("1e0", "+1"), ("false ", "-0"),
    ("F", "F"), ("n", "n"), ("None", "None"), ("Na", "Na"), ("0.5x", "0.5x"), ("-", "-"),
    ("12345678901234567891", "12345678901234567891.0"),
]  # fmt: skip
DIFFERENT = [
    ("T", "true"), ("t", "1"), ("F", "false"), ("f", "0"), ("N", "no"), ("no", "false"), ("yes", "1"),
    ("Y", "true"), ("tRUE", "TRUE"), ("12345678901234567890", "12345678901234567891"), ("1_0", "10"),
    ("0x10", "16"), ("1.0.0", "1"), ("١", "1"), ("inf", "1e999"),
]  # fmt: skip


@loop_over(("pair", "are_equal"), [*((pair, True) for pair in EQUAL), *((pair, False) for pair in DIFFERENT)])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_cells_are_equal_as_booleans_as_numbers_or_as_text(kind, pair, are_equal, tmp_path):
    path = written(tmp_path, kind, y=[pair[0]] * 200, p=[pair[1]] * 200)
    for true, pred in ("yp", "py"):
        of_both = ("--y-true", true, "--y-pred", pred, *OF_PAIRS[-3:])
        found = value("score", path, *OF_PAIRS[:2], *of_both)
        assert found == pytest.approx(float(are_equal), abs=1e-3)


@loop_over("cell", MISSING)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_is_missing_is_refused_in_each_column_of_each_command(kind, cell, tmp_path):
    rows = ["1", "0"] * 100
    spoiled = [*rows[:-1], cell]
    path = written(tmp_path, kind, good=rows, bad=spoiled)
    of = ("--y-true", "good", "--y-pred", "good", "--epsilon", 1)
    calls = [
        ("score", path, "--metric", "accuracy", "--y-true", "bad", "--y-pred", "bad", "--epsilon", 1),
        ("score", path, "--metric", "accuracy", *of, "--groups", "bad"),
        ("score", path, "--metric", "accuracy", *of, "--sensitive", "bad", "--group-labels", "1", "0", "x"),
        ("compare", path, "--y-true", "bad", "--pred-a", "good", "--pred-b", "good", "--epsilon", 1),
        ("evaluate", path, "--y-true", "bad", "--y-pred", "good", "--labels", "1", "0", "x", "--epsilon", 1,
         "--output", tmp_path / "page.json"),
    ]  # fmt: skip
    if kind == "csv":  # in Parquet numbers are numbers
        calls += [
            ("score", path, "--metric", "mae", "--y-true", "good", "--y-pred", "bad", "--epsilon", 1),
            ("score", path, "--metric", "f1", "--y-true", "good", "--y-pred", "bad", "--epsilon", 1),
            ("score", path, "--metric", "mae", *of, "--sample-weight", "bad"),
            ("interval", path, "--column", "bad", "--max-loss", 1, "--epsilon", 1),
        ]
    for call in calls:
        code, out, err = run(*call)
        assert (code, out) == (1, ""), call
        assert "column 'bad': a value is missing; nothing was spent" in err


GIVEN = [  # labels as they are typed, cells that are these labels, and cells that are none of them
    ('["true","false"]', ["true", "false"], ["True", "1", "t"]),
    ('["F","M"]', ["F", "M"], ["f", "false", "FALSE"]),
    ('["NA","EU"]', ["NA", " EU"], ["na", "eu", "1"]),
    ('["TRUE","n/a"]', ["TRUE", "n/a"], ["true", "1"]),
    ('["1","2"]', ["1", "2"], ["1.0", "true", "01"]),
    ('["1.0","b"]', ["1.0", "b"], ["1", "1.00"]),
    ("[true,false]", ["TRUE", "false"], ["2", "t"]),
    ("[true,false]", ["1", "False"], ["0.5"]),
    ("[1,2]", ["1.0", " +2e0"], ["3", "x", "false"]),
    ("[0,1]", ["false", "TRUE"], ["2", "no"]),
    ("[9007199254740993,9007199254740992]", ["9007199254740993", "9007199254740992.0"], ["9007199254740994"]),
]  # fmt: skip


_WORDS = ('["F","M"]', '["NA","EU"]', '["TRUE","n/a"]')


@loop_over(("typed", "cells", "others"), GIVEN)
def test_a_cell_that_equals_a_given_label_is_that_label(typed, cells, others, tmp_path):
    labels, rows = ("--option", f"labels={typed}"), cells * 100
    path = written(tmp_path, "csv", y=rows, p=rows, good=["1", "0"] * 100)
    assert value("score", path, *MACRO, *labels) == pytest.approx(1, abs=1e-3)
    names = [*map(str, json.loads(typed))]
    grouped = ("--y-true", "good", "--y-pred", "good", "--sensitive", "y", "--group-labels", typed)
    code, out, err = run("score", path, "--metric", "accuracy", *grouped, *OF_PAIRS[-3:])
    assert code == 0, err
    found = json.loads(out)["by_group"]
    if typed in _WORDS:  # the same typed as words
        code, again, err = run("score", path, "--metric", "accuracy", *grouped[:-1], *names, *OF_PAIRS[-3:])
        assert code == 0, err
        assert [one["group"] for one in json.loads(again)["by_group"]] == names
    assert [str(one["group"]) for one in found] == names
    assert [one["size"] for one in found] == pytest.approx([100, 100], abs=1)
    page = tmp_path / "page.json"
    asked = ("--y-true", "y", "--y-pred", "p", "--labels", typed, "--epsilon", "1e6", "--output", page)
    for label in names:
        code, _, err = run("evaluate", path, *asked, "--pos-label", label)
        assert code == 0, err
    for other in others:
        path = written(tmp_path, "csv", y=rows, p=[*rows[:-1], other], good=["1", "0"] * 100)
        code, out, err = run("score", path, *MACRO, *labels)
        assert (code, out) == (1, "")
        assert "not in labels" in err or "no number" in err


def test_a_label_of_an_option_is_read_as_a_cell_is(tmp_path):
    rows = [("true", "true"), ("true", "false"), ("false", "false"), ("false", "false")] * 100
    path = written(tmp_path, "csv", y=[y for y, _ in rows], p=[p for _, p in rows])
    asked = ("--metric", "recall", *OF_PAIRS[2:])
    for labels, spelled in (
        ('["true","false"]', ["true", '"true"']),
        ("[true,false]", ["true", "True", "TRUE", "1", "1.0"]),
        ("[0,1]", ["true", "1"]),
    ):
        for positive in spelled:
            options = ("--option", f"labels={labels}", "--option", f"pos_label={positive}")
            assert value("score", path, *asked, *options) == pytest.approx(0.5, abs=1e-3)
    for words in (["true", "false"], ["TRUE", "FALSE"], ["1", "0"]):
        groups = ("--sensitive", "y", "--group-labels", *words)
        code, out, err = run("score", path, "--metric", "accuracy", *OF_PAIRS[2:], *groups)
        assert code == 0, err
        assert [one["value"] for one in json.loads(out)["by_group"]] == pytest.approx([0.5, 1], abs=1e-2)


def test_decimals_of_parquet_are_numbers(tmp_path):
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 500), rng.random(500).round(4)
    exact = [decimal.Decimal(f"{one:.4f}") for one in score]
    large = [decimal.Decimal(10**30 + int(one)) for one in y]  # as floats these would be one
    path = tmp_path / "data.parquet"
    wide = pa.array([decimal.Decimal(int(one)) for one in y], pa.decimal256(60, 4))
    pq.write_table(pa.table({"y": y, "s": exact, "wide": wide, "id": large, "float": score}), path)
    area = ("--metric", "roc_auc", "--y-pred")
    expected = value("score", path, *area, "float", "--y-true", "y", *OF_PAIRS[-3:])
    assert value("score", path, *area, "s", "--y-true", "wide", *OF_PAIRS[-3:]) == pytest.approx(
        expected, abs=1e-3
    )
    for column in ("y", "wide"):
        of_labels = (*OF_PAIRS[:2], "--y-true", column, "--y-pred", "y", *OF_PAIRS[-3:])
        assert value("score", path, *of_labels) == pytest.approx(1, abs=1e-3)
    of_people = (*OF_PAIRS[:2], "--y-true", "y", "--y-pred", "y", *OF_PAIRS[-3:], "--groups", "id")
    code, out, err = run("score", path, *of_people)
    assert code == 0, err
    assert json.loads(out)["n"] == 500


def test_a_last_line_without_a_line_break_is_a_record(tmp_path):
    path, budget = tmp_path / "data.csv", dp.PrivacyAccountant(5, tmp_path / "budget.sqlite")
    for end in ("", "\n", "\r\n"):
        path.write_bytes(b"y,p\n" + b"1,1\n" * 99 + b"1,0" + end.encode())
        code, out, err = run("score", path, *OF_PAIRS)
        assert code == 0, err
        assert json.loads(out)["n"] == 100
        assert json.loads(out)["value"] == pytest.approx(0.99, abs=1e-3)
    path.write_text("y,p\n" + "1,1\n" * 99 + f'1,"{SECRET}')
    code, out, err = run("score", path, *OF_PAIRS[:-3], "--epsilon", 1, "--budget", budget.path)
    assert (code, out, budget.spent) == (1, "", 0)
    assert SECRET not in err
