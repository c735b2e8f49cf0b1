"""CSV files with other marks between cells and other decimal marks, only where that is asked for."""

import contextlib
import json
import locale

import numpy as np
import pandas as pd
import pytest

from dp_metrics import PrivacyAccountant
from dp_metrics.cli import predictions
from dp_metrics.cli.main import main

SECRET = "Zaphod987"
MAE = ("--metric", "private_mae", "--y-true", "y", "--y-pred", "p", "--epsilon", "1")
EUROPEAN = ("--delimiter", ";", "--decimal", ",")
SURE = ("--epsilon", "1e6")  # hardly any noise


def run(capsys, path, *argv, code=0):
    """Run `score`; return what it prints."""
    assert main(["score", *map(str, (path, *argv))]) == code
    shown = capsys.readouterr()
    assert shown.err.count("\n") == (1 if code else 0)
    return shown.err.replace(str(path), "") if code else shown.out


@pytest.mark.parametrize("mark", [",", ";", "|", "tab", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_all_marks_read_the_same_numbers(mark, decimal, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(predictions, "_CSV_BLOCK", 1 << 12)
    rng = np.random.default_rng(0)
    y = rng.normal(size=3000)
    p = y + np.where(rng.random(3000) < 0.25, 1e-3, -2.5e1)
    frame = pd.DataFrame({"y": y, "note": "a,b;c|d\te", "p": p})
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False, sep="\t" if mark == "tab" else mark, decimal=decimal)
    asked = (*MAE, *SURE, "--option", "bounds=[-30,30]", "--json")
    shown = json.loads(run(capsys, path, *asked, "--sep", mark, "--decimal", decimal))
    assert shown["n"] == 3000
    assert shown["value"] == pytest.approx(np.abs(y - p).mean(), rel=1e-3)


def test_a_point_is_no_decimal_comma(tmp_path, capsys):
    """1.234 may be one thousand two hundred thirty-four: nobody should have to guess."""
    path, budget = tmp_path / "data.csv", PrivacyAccountant(9, tmp_path / "b.sqlite")
    paid = ("--budget", budget.path)
    for cell in ("1.234", "1.234,5", "1,2,3", "1 234,5", "0x10", "?5"):
        path.write_text("y;p\n" + "1,5;2\n" * 50 + f"{cell};2\n")
        assert "'y' holds something that is no number" in run(capsys, path, *MAE, *EUROPEAN, *paid, code=1)
    path.write_text("y;p\n" + "1,5;2\n" * 50)
    refused = run(capsys, path, *MAE, "--delimiter", ";", *paid, code=1)  # a comma is no decimal point
    assert "'y' holds something that is no number" in refused
    assert budget.history == ()
    run(capsys, path, *MAE, *EUROPEAN, *paid)


def test_labels_are_equal_as_numbers_with_decimal_commas(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text(
        "y;p\n" + "1;1,0\n0,0;0\nTrue;1\nyes;yes\n1.0;1.0\na.b;a.b\n" * 50 + "1.0;1\na,b;a.b\n" * 150
    )
    asked = ("--metric", "accuracy", *MAE[2:-2], *SURE, "--json")
    shown = json.loads(run(capsys, path, *asked, *EUROPEAN))
    assert round(shown["value"] * 600) == 300  # a point makes a text, which equals no number


def test_quotation_marks_stand_beside_the_mark_that_was_given(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text('y;"p";note\n' + '"1,5";"2";"a;b,""c""\nd"\n' * 99)
    assert "99 records" in run(capsys, path, *MAE[:-2], *SURE, *EUROPEAN, "--option", "bounds=[0,3]")
    path.write_text("y;p;note\n" + "1;2;x\n" * 50 + '1;2;b,"c"\n')  # a comma does not begin a cell here
    assert "quotation marks within a cell" in run(capsys, path, *MAE, *EUROPEAN, code=1)


def test_other_marks_are_asked_for_and_never_guessed(tmp_path, capsys):
    path, new = tmp_path / "data.csv", tmp_path / "new.sqlite"
    path.write_text(f"y;p;note\n1;2;{SECRET}\n")
    paid = ("--budget", new, "--total", "1")
    for first in (f"y;0,7;{SECRET}", f"y; -1.234,5 ;{SECRET}", f"y;7e-5;{SECRET}"):  # may be a record
        path.write_text(f"{first}\n1;2;x\n")
        assert SECRET not in run(capsys, path, *MAE, *paid, *EUROPEAN, code=2)
    pd.DataFrame({"y": [1.0], "p": [2.0]}).to_parquet(tmp_path / "data.parquet")
    for more in (("--sep", ","), ("--decimal", ".")):
        assert "takes no --delimiter and no" in run(
            capsys, tmp_path / "data.parquet", *MAE, *paid, *more, code=2
        )
    assert not new.exists()


@pytest.mark.parametrize("row", [f"1,5;{SECRET}", "1,5;", f"1,5;2;{SECRET}", "987,5", "nan;987", "\n"])
def test_a_bad_row_spends_nothing_and_is_not_shown(row, tmp_path, capsys):
    path, budget = tmp_path / "data.csv", PrivacyAccountant(9, tmp_path / "b.sqlite")
    path.write_text("y;p\n" + "1,5;2\n" * 3000 + row + "\n" + "1,5;2\n" * 3000)
    shown = run(capsys, path, *MAE, *EUROPEAN, "--budget", budget.path, code=1)
    assert SECRET not in shown
    assert "987" not in shown.replace(str(tmp_path), "")
    assert "300" not in shown.replace(str(tmp_path), "")  # the row
    assert budget.history == ()


@pytest.fixture
def decimal_commas():
    """Let C write numbers with decimal commas, as a program may have asked it to."""
    kept = locale.setlocale(locale.LC_ALL)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "de_DE"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            break
    else:
        pytest.skip("no locale with decimal commas is installed")
    assert locale.localeconv()["decimal_point"] == ","
    yield
    locale.setlocale(locale.LC_ALL, kept)


def test_a_locale_with_decimal_commas_changes_nothing(tmp_path, capsys, decimal_commas):
    path, page = tmp_path / "data.csv", tmp_path / "page"
    path.write_text("y,p\n" + "1.5,1.25\n" * 999)
    asked = (*MAE[:-2], *SURE, "--option", "bounds=[0.5,2.5]")
    assert "private_mae = 0.25 (epsilon 1000000, 999 records" in run(capsys, path, *asked)
    assert json.loads(run(capsys, path, *asked, "--json"))["value"] == pytest.approx(0.25, abs=1e-3)
    path.write_text("y,p\n" + "1,0.75\n0,0.25\n" * 500)
    for suffix in (".md", ".html", ".json"):
        of_page = (
            "--y-true",
            "y",
            "--y-score",
            "p",
            "--labels",
            "0",
            "1",
            "--output",
            page.with_suffix(suffix),
        )
        assert main(["evaluate", *map(str, (path, *of_page, *SURE))]) == 0
        written = page.with_suffix(suffix).read_text(encoding="utf-8")
        assert "0.06" in written  # the Brier score
        assert "0,06" not in written or suffix == ".html"  # which has coordinates
    capsys.readouterr()
