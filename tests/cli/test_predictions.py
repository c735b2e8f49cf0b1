"""How files are read: each cell by itself, in each command and kind of file alike; or nothing is spent."""

import contextlib
import csv
import decimal
import gzip
import itertools
import json
import locale
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.cli import Refusal, files
from dp_metrics.cli.main import main

SECRET = "Zaphod987"
PAIR = ("--y-true", "y", "--y-pred", "p")
MAE = ("score", "data.csv", "--metric", "mae", *PAIR, "--epsilon", "1")
SURE = ("score", "data.csv", "--metric", "accuracy", *PAIR, "--epsilon", "1e6", "--json")  # hardly any noise
EUROPEAN = ("--delimiter", ";", "--decimal", ",")
BUDGET = ("--budget", "b.sqlite")


@pytest.fixture
def budget():
    return dp.PrivacyAccountant(99, "b.sqlite")


@pytest.fixture
def value(run):
    return lambda *argv: json.loads(run(*argv).out)["value"]


# ---- cells -------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ids_are_text_that_looks_like_fractions_too(kind, write, run):
    y = [0, 1] * 50
    path = write(f"data.{kind}", {"y": y, "p": y, "id": ["1.5", "A1", "1.50", "7"] * 25})
    argv = ("score", path, "--metric", "recall", *PAIR, "--groups", "id", "--max-records", 2, "--epsilon", 1)
    assert json.loads(run(*argv, "--json").out)["n"] == 6  # the first two records of each of three persons


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_cells_are_equal_as_booleans_as_numbers_or_as_text(kind, write, value):
    """A type guessed from a column would read 1 and 1.0 as texts, which differ, once it holds a word."""
    share = len(EQUAL) / len(EQUAL + DIFFERENT)
    for are_equal, pairs in ((1, EQUAL), (0, DIFFERENT), (share, EQUAL + DIFFERENT)):
        y, p = zip(*[*pairs, *(pair[::-1] for pair in pairs)] * 20, strict=True)
        path = write(f"data.{kind}", {"y": y, "p": p})
        assert value("score", path, *SURE[2:]) == pytest.approx(are_equal, abs=1e-4)


MISSING = ["", " ", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null", " NA "]


@loop_over("cell", MISSING)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_is_missing_is_refused_in_each_column_of_each_command(kind, cell, write, refused):
    rows = ["1", "0"] * 100
    path = write(f"data.{kind}", {"good": rows, "bad": [*rows[:-1], cell]})
    good, bad = ("--y-true good --y-pred good --epsilon 1", "--y-true good --y-pred bad --epsilon 1")
    commands = [
        f"score --metric accuracy {bad}",
        f"score --metric accuracy {good} --groups bad",
        f"score --metric accuracy {good} --sensitive bad --group-labels 1 0 x",
        "compare --y-true bad --pred-a good --pred-b good --epsilon 1",
        f"evaluate {bad} --labels 1 0 x --output page.json",
    ]
    if kind == "csv":  # in Parquet numbers are numbers
        commands += [
            f"score --metric mae {bad}",
            f"score --metric mae {good} --sample-weight bad",
            "interval --column bad --max-loss 1 --epsilon 1",
        ]
    for command in commands:
        name, *words = command.split()
        assert "column 'bad': a value is missing; nothing was spent" in refused(name, path, *words)


GIVEN = [  # labels as they are typed, cells that are these labels, and cells that are none of them
    ('["true","false"]', ["true", "false"], ["True", "1", "t"]),
    ('["F","M"]', ["F", "M"], ["f", "false", "FALSE"]),
    ('["NA","EU"]', ["NA", " EU"], ["na", "eu", "1"]),
    ('["1","2"]', ["1", "2"], ["1.0", "true", "01"]),
    ('["1.0","b"]', ["1.0", "b"], ["1", "1.00"]),
    ("[true,false]", ["TRUE", "false"], ["2", "t"]),
    ("[1,2]", ["1.0", " +2e0"], ["3", "x", "false"]),
    ("[0,1]", ["false", "TRUE"], ["2", "no"]),
    ("[9007199254740993,9007199254740992]", ["9007199254740993", "9007199254740992.0"], ["9007199254740994"]),
]  # fmt: skip
_WORDS = ('["F","M"]', '["NA","EU"]')


@pytest.mark.gate
@loop_over(("typed", "cells", "others"), GIVEN)
def test_a_cell_that_equals_a_given_label_is_that_label(typed, cells, others, write, run, value, refused):
    options = ("--average", "macro", "--labels", f"{typed}")
    macro = ("score", "data.csv", "--metric", "f1", *options)
    rows, names = cells * 100, [*map(str, json.loads(typed))]
    write("data.csv", {"y": rows, "p": rows, "good": ["1", "0"] * 100})
    assert value(*macro, *SURE[4:]) == pytest.approx(1, abs=1e-3)
    of_good = ("--y-true", "good", "--y-pred", "good", "--sensitive", "y", *SURE[-3:])
    for labels in ([typed], names) if typed in _WORDS else ([typed],):
        found = json.loads(run(*SURE[:4], *of_good, "--group-labels", *labels).out)["numbers"]
        found = [one for one in found if one["group"] is not None]
        assert [str(one["group"]) for one in found] == names
        assert [one["rests_on"] for one in found] == pytest.approx([100, 100], abs=1)
    first, second = cells[:2]
    write("data.csv", {"y": [first, first, second, second] * 100, "p": [first, *[second] * 3] * 100})
    recall = ("score", "data.csv", "--metric", "recall", *SURE[4:], "--labels", typed)
    # a label of an option is read as a cell is, or as JSON
    spelled = (*cells[:2], *names, *map(json.dumps, json.loads(typed)))
    for positive, found in zip(spelled, (0.5, 1.0) * 3, strict=True):
        assert value(*recall, "--pos-label", positive) == pytest.approx(found, abs=1e-3)
    for other in others:
        write("data.csv", {"y": rows, "p": [*rows[:-1], other]})
        assert re.search("not in labels|no number", refused(*macro, *SURE[4:]))


def test_decimals_and_categories_of_parquet(write, value, run, refused):
    y = np.random.default_rng(0).integers(0, 2, 500)
    exact = [decimal.Decimal(f"{one:.4f}") for one in y]
    wide = pa.array([decimal.Decimal(int(one)) for one in y], pa.decimal256(60, 4))
    large = [decimal.Decimal(10**30 + int(one)) for one in y]  # as floats these would be one
    pq.write_table(pa.table({"y": exact, "p": wide, "id": large}), "data.parquet")
    for metric in ("accuracy", "roc_auc"):
        of_file = ("score", "data.parquet", "--metric", metric, *SURE[4:])
        assert value(*of_file) == pytest.approx(1, abs=1e-3)
    assert json.loads(run("score", "data.parquet", *SURE[2:], "--groups", "id").out)["n"] == 500
    write("data.parquet", {"y": pd.array([1, None, 0], dtype="Int64"), "p": [1, 1, 1]})
    assert "column 'y': a value is missing" in refused("score", "data.parquet", *SURE[2:])
    write("data.parquet", {"y": pd.Categorical(["a", "b", "a"]), "p": ["a", "b", "b"]})
    assert value("score", "data.parquet", *SURE[2:]) == pytest.approx(2 / 3, abs=1e-3)


# ---- rows --------------------------------------------------------------------------------------------------

GOOD = b"y,p,other\n" + b"1,0,x\n" * 3000
LABELS = ("score", "data.csv", "--metric", "f1", *PAIR, "--epsilon", "1")
OF_WORDS = (*LABELS[:4], "--y-true", "other", "--y-pred", "other", "--labels", '["x","y"]',
            "--pos-label", "y", "--epsilon", "1")  # fmt: skip
ACCURACY = ("score", "data.csv", "--metric", "accuracy", *PAIR, "--epsilon", "1")
COMPARED = ("compare", "data.csv", "--y-true", "y", "--pred-a", "p", "--pred-b", "p", "--epsilon", "1")
LOG_LOSS = (*COMPARED, "--loss", "log_loss")
INTERVAL = ("interval", "data.csv", "--column", "p", "--max-loss", "1", "--epsilon", "1")
GROUPED = (*ACCURACY, "--sensitive", "other", "--group-labels", "x", "z")
PAGE = ("evaluate", "data.csv", "--y-true", "y", "--y-score", "p", "--labels", "0", "1", "--epsilon", "1",
        "--output", "page.json")  # fmt: skip
NO_NUMBER, NOT_IN = "holds something that is no number", "a label that is not in"
BAD_ROWS = [
    (MAE, f"1,{SECRET},x\n", f"column 'p' {NO_NUMBER}"),
    (MAE, f"-nan,1,{SECRET}\n", "column 'y': a value is missing"),
    (MAE, f"1e999,1,{SECRET}\n", "contains infinity or a value too large"),
    (MAE, "\n", "column 'y': a value is missing"),
    (MAE, f"1,1,x,{SECRET}\n", "as many cells"),
    (MAE, b"1,\xff" + SECRET.encode() + b",x\n", "can't be read"),
    (MAE, f'1,1,"{SECRET}\n', "odd number of quotation marks"),
    (MAE, f'1,1,"said ""{SECRET}"""\n1,2,"two\n', "odd number of quotation marks"),
    (MAE, "987,1", "as many cells"),
    (LABELS, f"987,1,{SECRET}\n", NOT_IN),
    (LABELS, f"{SECRET},1,x\n", "for labels that are text, pass --labels"),
    (OF_WORDS, f"1,1,{SECRET}\n", NOT_IN),
    (GROUPED, f"1,1,{SECRET}\n", NOT_IN),
    (LOG_LOSS, f"1,{SECRET},x\n", f"column 'p' {NO_NUMBER}"),
    (LOG_LOSS, "1,-987,x\n", "values in [0, 1]"),
    (INTERVAL, "1,-987,x\n", "Negative values"),
    (PAGE, f"{SECRET},1,x\n", f"column 'y' {NO_NUMBER}"),
    (PAGE, f"1,{SECRET},x\n", f"column 'p' {NO_NUMBER}"),
]


@loop_over(("argv", "row", "message"), BAD_ROWS)
@pytest.mark.parametrize("dialect", ["usual", "European"])
def test_a_bad_row_spends_nothing_and_is_not_shown(dialect, argv, row, message, refused, budget):
    row = row if isinstance(row, bytes) else row.encode()
    content = GOOD + row + (b"" if row == b"987,1" else GOOD.partition(b"\n")[2])
    more = EUROPEAN if dialect == "European" else ()
    if more:
        content = content.replace(b",", b";").replace(b".", b",")
    Path("data.csv").write_bytes(content)
    shown = refused(*argv, *more, *BUDGET)
    assert message in shown
    assert "300" not in shown  # the row
    assert budget.history == ()


def test_the_reader_reads_no_file_of_python(monkeypatch):
    """A thread that still reads a file of Python's when that ends aborts it: the exit code is another one."""
    opened, open_csv = [], pyarrow.csv.open_csv
    monkeypatch.setattr(
        "pyarrow.csv.open_csv", lambda file, **more: opened.append(file) or open_csv(file, **more)
    )
    path = Path("data.csv")
    path.write_text("y,p\n1,0.5\n0,0.2\n", encoding="utf-8")
    files.Predictions(path, {"y_true": [files.Column("y")]}).whole()
    assert [type(one) for one in opened] == [pyarrow.OSFile]


@loop_over("end", ["", "\n", "\r\n"])
def test_a_last_line_without_a_line_break_is_a_record(end, run):
    Path("data.csv").write_bytes(b"y,p\n" + b"1,1\n" * 99 + b"1,0" + end.encode())
    shown = json.loads(run(*SURE).out)
    assert (shown["n"], shown["value"]) == (100, pytest.approx(0.99, abs=1e-3))


# rows of two numbers, of which nobody can see that something is missing
WHOLE = re.compile(r'"y",p\n((\d|"\d"),\d+\.?\d*(e-?\d+)?(\r?\n|\r?$))+')


def test_no_file_that_was_cut_off_within_a_row_is_read(budget):
    """Within a number, or after the end of a row, nobody can tell: the last line break may be left out."""
    whole = '"y",p\n' + '1,0.25\n"2",1e-1\r\n' * 2
    for end in range(len(whole)):
        Path("data.csv").write_text(whole[:end], newline="")
        spent = budget.spent
        code = main([*MAE, *BUDGET])
        assert (code == 0) == bool(WHOLE.fullmatch(whole[:end])) == budget.spent - spent


def test_no_parquet_file_that_was_cut_off_or_damaged_is_read(write, refused, budget):
    y = np.arange(500.0)
    content = Path(write("whole.parquet", {"y": y, "p": y + 1})).read_bytes()
    for end in [*range(0, len(content), 501), len(content) - 1]:
        Path("cut.parquet").write_bytes(content[:end])
        assert "can't be read" in refused("score", "cut.parquet", *MAE[2:], *BUDGET)
    assert budget.history == ()


def test_numbers_that_are_text_are_read_alike_in_every_kind_of_file(write, run, refused):
    for kind in ("csv", "parquet"):
        path = write(f"data.{kind}", {"y": ["1", "true"] * 50, "p": ["0.5", " 1.5 "] * 50})
        assert "private_mae = 0.5 " in run("score", path, *MAE[2:-1], "1e6", "--bounds", "[0,2]").out
        write(path, {"y": ["1", SECRET] * 50, "p": ["0.5", "1.5"] * 50})
        shown = refused("score", path, *MAE[2:])
        assert "column 'y' holds something that is no number" in shown
        assert ("--decimal" in shown) == (kind == "csv")  # which only these take


def test_columns_and_their_types_are_looked_at_first(write, refused):
    day = pd.date_range("2020-01-01", periods=50)
    write("data.parquet", {"y": np.arange(50.0), "p": [SECRET] * 50, "day": day})
    write("wide.parquet", {f"column {i}": [1.0] for i in range(5000)})
    for name, p, message in (
        ("data", "day", "column 'day' holds timestamp"),
        ("data", "dya", "'day'. Did you mean 'day'?"),
        ("wide", "p", "has no column 'y'; it has 'column 0', "),
    ):
        shown = refused("score", f"{name}.parquet", *MAE[2:7], p, *MAE[8:], code=2)
        assert message in shown
        assert len(shown) < 700
    assert "takes no --delimiter and no" in refused("score", "data.parquet", *MAE[2:], *EUROPEAN, code=2)
    Path("data.xlsx").write_text("")
    shown = refused("score", "data.xlsx", *MAE[2:], code=2)
    assert "save it as one that ends in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .pq" in shown
    Path("data.csv").write_text("y,p\n")
    shown = refused(*MAE)
    assert "Found array with 0 sample(s)" in shown
    assert "summary" not in shown  # which nobody has who typed a command


@pytest.mark.parametrize("package", ["pyarrow", "tqdm"])
def test_a_missing_package_is_named_with_its_extra(package, refused, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    shown = refused(*MAE, code=2)
    assert f"{package} is needed" in shown
    assert 'pip install "dp_metrics[cli]"' in shown


# ---- quotation marks ---------------------------------------------------------------------------------------

HEADER, ROW = "y,p,note\n", "1,0,x\n"
STRAY = (
    '1,0,5"\n' + ROW * 10 + '1,0,6"\n',
    '1,0,say "yes"\n',
    '1,0,"a"b\n1,0,c\n',
    '1,0, "a"\n',
    '1,0,"a" \n',
    '1,0,a""b\n',
    '1,0,"a\n' + ROW + '1,0,b"c\n',
)
WELL_FORMED = (
    '1,0,"x"\n',
    '1,0,"say ""yes"""\n1,0,"""yes"" said"\n',
    '1,0,""\n1,0,""""\n1,0,""""""\n',
    '1,0,"a,b\n"\n"1","0",",\r\n"\n',
    '"1",0,"x"\r\n"1","0","x"\n',
)


@loop_over("begin", ["", "\ufeff"])
def test_quotation_marks_stand_at_the_ends_of_a_cell_or_are_doubled(begin, run, refused, budget, monkeypatch):
    """Else one record's mark, moved to the front of its cell, would take the rows up to another's with it."""
    for rows in (*WELL_FORMED, *STRAY):
        text = begin + HEADER.replace("y", '"y"') + ROW * 5 + rows
        Path("data.csv").write_text(text, newline="", encoding="utf-8")
        for block in (1, 2, 3, 7, 4096):
            wrong = (
                pytest.raises(Refusal, match="quotation marks") if rows in STRAY else contextlib.nullcontext()
            )
            with monkeypatch.context() as patch, wrong:
                patch.setattr(files, "_CSV_BLOCK", block)
                list(files._checked_blocks(Path("data.csv"), ","))
        if rows in STRAY:
            assert re.search("quotation marks within a cell|can't be read", refused(*MAE, *BUDGET)), rows
        else:
            assert "private_mae = 1 " in run(*MAE[:-1], "1e6", "--bounds", "[0,2]").out
    assert budget.history == ()


@loop_over("cell", ["{}", '"{}"', '"\n{}"'])
def test_whether_a_row_is_too_long_depends_on_no_other_row(cell, run, refused, monkeypatch, budget):
    """The reader alone takes a longer one or not by where its blocks end, which rows before it decide."""

    def write(before, length):
        rows = ["y,p,note", f"1,0,{'x' * before}", "1,0," + cell.format("x" * (length - len(cell) - 2))]
        Path("data.csv").write_text("\n".join([*rows, "1,0,x\n"]), newline="")

    for before in (10, 400_000, 700_000, 1_000_000):
        write(before, 1 << 20)
        assert "private_mae = " in run(*MAE[:-1], "1e6", "--bounds", "[0,2]").out
        write(before, (1 << 20) + 2)
        assert "has more than 1,048,576 bytes" in refused(*MAE, *BUDGET)
    assert budget.history == ()
    for block, before in itertools.product((1, 2, 7, 49, 4096), (1, 20, 43)):
        with monkeypatch.context() as patch:
            patch.setattr(files, "_LONGEST_ROW", 50)
            patch.setattr(files, "_CSV_BLOCK", block)
            write(before, 50)
            list(files._checked_blocks(Path("data.csv"), ","))
            write(before, 51)
            with pytest.raises(csv.Error):
                list(files._checked_blocks(Path("data.csv"), ","))


# ---- other marks -------------------------------------------------------------------------------------------


@loop_over("mark", [",", ";", "|", "tab", "\t"])
@loop_over("point", [".", ","])
def test_all_marks_read_the_same_numbers(mark, point, value):
    rng = np.random.default_rng(0)
    y = rng.normal(size=3000)
    p = y + np.where(rng.random(3000) < 0.25, 1e-3, -2.5e1)
    frame = pd.DataFrame({"y": y, "note": "a,b;c|d\te", "p": p})
    frame.to_csv("data.csv", index=False, sep="\t" if mark == "tab" else mark, decimal=point)
    marks = ("--sep", mark, "--decimal", point)
    found = value(*MAE[:-1], "1e6", "--bounds", "[-30,30]", "--json", *marks)
    assert found == pytest.approx(np.abs(y - p).mean(), rel=1e-3)


def test_a_point_is_no_decimal_comma(refused, run, budget):
    """1.234 may be one thousand two hundred thirty-four: nobody should have to guess."""
    good, asked = "y;p\n" + "1,5;2\n" * 50, (*MAE, "--delimiter", ";", *BUDGET)
    for cell in ("1.234", "1.234,5", "1,2,3", "1 234,5", "0x10", "?5"):
        Path("data.csv").write_text(f"{good}{cell};2\n")
        assert "'y' holds something that is no number" in refused(*asked, "--decimal", ",")
    Path("data.csv").write_text(good)
    shown = refused(*asked)  # a comma is no decimal point
    assert "'y' holds something that is no number (for decimal commas, pass --decimal ,)" in shown
    assert budget.history == ()
    run(*asked, "--decimal", ",")


PACKED = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".TSV.GZ": "\t"}


@loop_over("kind", PACKED)
def test_tabs_and_packed_files_are_known_by_their_names(kind, run, refused, monkeypatch, budget):
    """Whatever is wrong with what was packed is refused as it is where it was not."""
    monkeypatch.setattr(files, "_CSV_BLOCK", 1 << 10)
    rows = "".join(f"1,{at % 2},x\n" for at in range(2000))
    pack = gzip.compress if kind.lower().endswith(".gz") else bytes
    asked = ("score", f"a.b{kind}", *MAE[2:])

    def write(text):
        packed = pack(text.replace(",", PACKED[kind]).encode())
        Path(asked[1]).write_bytes(packed)
        return packed

    packed = write(f"\ufeffy,p,note\n{rows}")
    assert (
        "private_mae = 0.5 (epsilon 1000000, 2,000"
        in run(*asked, "--epsilon", "1e6", "--bounds", "[0,2]").out
    )
    for text in (
        f'y,p,note\n{rows}1,0,5"\n',
        f"y,p,note\n{rows}1,0",
        f"y,p,note\n{rows}1,,x\n",
        "y,p,note\n1\0,",
    ):
        write(text)
        refused(*asked, *BUDGET)
    if pack is gzip.compress:
        Path(asked[1]).write_bytes(packed + pack(rows.replace(",", PACKED[kind]).encode()))
        assert "4,000 records" in run(*asked).out  # of two packed files, one after the other
        middle = len(packed) // 2
        wrong_sum = packed[:-8] + bytes(4) + packed[-4:]
        for spoilt in (packed[:-9], packed[:-1], packed[:middle], wrong_sum, b"no gzip"):
            Path(asked[1]).write_bytes(spoilt)
            assert "can't be read" in refused(*asked, *BUDGET)
    assert budget.history == ()


def test_quotation_marks_stand_beside_the_mark_that_was_given(run, refused):
    Path("data.csv").write_text('y;"p";note\n' + '"1,5";"2";"a;b,""c""\nd"\n' * 99)
    assert "99 records" in run(*MAE[:-1], "1e6", *EUROPEAN, "--bounds", "[0,3]").out
    Path("data.csv").write_text("y;p;note\n" + "1;2;x\n" * 50 + '1;2;b,"c"\n')  # here a comma begins no cell
    assert "quotation marks within a cell" in refused(*MAE, *EUROPEAN)


def test_a_first_line_that_may_be_a_record_is_not_shown(refused):
    for first in (f"y;0,7;{SECRET}", f"y; -1.234,5 ;{SECRET}", f"y;7e-5;{SECRET}"):
        Path("data.csv").write_text(f"{first}\n1;2;x\n")
        refused(*MAE, *EUROPEAN, code=2)


@pytest.fixture
def decimal_commas(german_locale, monkeypatch):
    """Let C write numbers with decimal commas, as a program may have asked it to."""
    kept = locale.setlocale(locale.LC_ALL)
    monkeypatch.setenv("LOCPATH", german_locale)
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    yield
    locale.setlocale(locale.LC_ALL, kept)


@pytest.mark.usefixtures("decimal_commas")
def test_a_locale_with_decimal_commas_changes_nothing(run, value):
    Path("data.csv").write_text("y,p\n" + "1.5,1.25\n" * 999)
    asked = (*MAE[:-1], "1e6", "--bounds", "[0.5,2.5]")
    assert "private_mae = 0.25 (epsilon 1000000, 999 records" in run(*asked).out
    assert value(*asked, "--json") == pytest.approx(0.25, abs=1e-3)
    Path("data.csv").write_text("y,p\n" + "1,0.75\n0,0.25\n" * 500)
    run(*PAGE[:-1], "page.md")
    assert "0,0" not in Path("page.md").read_text(encoding="utf-8")
