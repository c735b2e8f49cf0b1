"""`dp-metrics score` with files that nobody should write, and with what goes wrong after the spend."""

import errno
import io
import json
import os
import shlex
import subprocess
import sys

import pytest

from dp_metrics import PrivacyAccountant
from dp_metrics.cli import predictions, score
from dp_metrics.cli.main import main
from dp_metrics.release.release import Release

SECRET = "Zaphod987"
MAE = ("--metric", "private_mae", "--y-true", "y", "--y-pred", "p", "--epsilon", "1")
HEADER, ROW = "y,p,note\n", "1,0,x\n"


def run(capsys, path, *argv):
    """Run `score`; return its exit code and what it prints."""
    code = main(["score", str(path), *map(str, argv)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert shown.err.count("\n") <= 1
    return code, shown.out, shown.err


def budget_in(folder):
    budget = PrivacyAccountant(5, folder / "budget.sqlite")
    return budget, ("--budget", budget.path)


STRAY = {
    "in two cells": '1,0,5"\n' + ROW * 10 + '1,0,6"\n',
    "twice in a cell": '1,0,say "yes"\n',
    "before a cell ends": '1,0,"a"b\n1,0,c\n',
    "after a blank": '1,0, "a"\n',
    "before a blank": '1,0,"a" \n',
    "two in a cell that does not begin with one": '1,0,a""b\n',
    "a row swallowed": '1,0,"a\n' + ROW + '1,0,b"c\n',
}


@pytest.mark.parametrize("rows", STRAY.values(), ids=STRAY)
@pytest.mark.parametrize("block", [1, 2, 3, 7, 4096])
def test_a_stray_quotation_mark_is_refused(rows, block, tmp_path, capsys, monkeypatch):
    """Else one record's mark, moved to the front of its cell, would take the rows up to another's with it."""
    path, (budget, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 50 + rows)
    whole = predictions._Watched.read
    if block < 4096:
        monkeypatch.setattr(predictions._Watched, "read", lambda self, size=-1: whole(self, block))
    code, out, err = run(capsys, path, *MAE, *paid)
    assert (code, out, budget.history) == (1, "", ())
    assert "quotation marks within a cell" in err or "can't be read" in err


QUOTED = {
    "plain": '1,0,"x"\n',
    "doubled": '1,0,"say ""yes"""\n1,0,"""yes"" said"\n',
    "empty, doubled, alone": '1,0,""\n1,0,""""\n1,0,""""""\n',
    "separators within": '1,0,"a,b\n"\n"1","0",",\r\n"\n',
    "first and last": '"1",0,"x"\r\n"1","0","x"\n',
}


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 4096])
def test_well_formed_quotation_marks_are_read(bom, block, tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    for rows in QUOTED.values():
        path.write_bytes(bom + b'"y","p","note"\n' + (ROW * 5 + rows * 5).encode())
        file = predictions._Watched(path, lambda part: None)
        size = block if block > 3 or not bom else 4
        while file.read(size):
            pass
        assert not file.has_stray_quotes
        assert not file.has_open_quote
        file.close()


def test_a_file_with_a_byte_order_mark_and_quoted_names(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_bytes(b'\xef\xbb\xbf"y","p","note"\r\n' + b'"1","0","x"\r\n' * 200)
    code, out, _ = run(capsys, path, *MAE)
    assert code == 0
    assert "200 records" in out


def test_a_repeated_option_of_columns_adds_columns(tmp_path, capsys):
    """The last one alone would be another metric, without a word."""
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,d\n" + "0,5,1,5\n" * 5000)
    values = []
    for columns in (
        ("--y-true", "a", "b", "--y-pred", "c", "d"),
        ("--y-true", "a", "--y-true", "b", "--y-pred", "c", "--y-proba", "d"),
    ):
        code, out, _ = run(capsys, path, *MAE[:2], *MAE[-2:], *columns)
        assert code == 0
        values.append(float(out.split()[2]))
    assert all(0.4 < value < 0.6 for value in values)  # of a and c alone 1, of b and d 0


def test_a_history_is_shown_on_any_terminal(tmp_path, monkeypatch):
    PrivacyAccountant(1, tmp_path / "b.sqlite").spend(0.5, "caf\u00e9")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr("sys.stdout", out)
    assert main(["budget", str(tmp_path / "b.sqlite")]) == 0
    out.flush()
    assert b"caf\\xe9" in out.buffer.getvalue()


def test_what_nobody_expected_is_not_shown(tmp_path, capsys, monkeypatch):
    path, (_, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 50)
    for error in (KeyError(SECRET), OverflowError(SECRET), MemoryError(SECRET), AssertionError(SECRET)):

        def fail(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr(score, "release", fail)
        code, out, err = run(capsys, path, *MAE, *paid)
        assert (code, out) == (2, "")
        assert SECRET not in err
        assert "`dp-metrics budget` shows whether epsilon was spent" in err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_budget_that_goes_after_the_spend_loses_no_number(as_json, tmp_path, capsys, monkeypatch):
    path, (_, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 50)
    draw = Release.draw

    def draw_and_remove(*args):
        for file in tmp_path.glob("budget.sqlite*"):
            file.unlink()
        return draw(*args)

    monkeypatch.setattr(Release, "draw", draw_and_remove)
    code, out, _ = run(capsys, path, *MAE, *paid, *(["--json"] if as_json else []))
    assert code == 0
    if as_json:
        assert json.loads(out)["value"] >= 0
        assert json.loads(out)["budget"]["remaining"] is None
    else:
        assert out.startswith("private_mae = ")
        assert "can't be read any more" in out


SHELL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the shell and devices of Linux")


@pytest.mark.slow
@SHELL
@pytest.mark.parametrize(
    ("redirected", "spent", "message"),
    [
        (">/dev/full", 1.0, "epsilon was spent, but the result can't be written: No space left on device"),
        ("| true", 1.0, "epsilon was spent, but the result can't be written: Broken pipe"),
        (">&-", 0.0, "standard output is closed"),
    ],
)
def test_a_result_that_cannot_be_written_is_told(redirected, spent, message, tmp_path):
    path, (budget, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 500)
    command = shlex.join([sys.executable, "-m", "dp_metrics.cli.main", "score", str(path), *MAE, *paid])
    script = f"{command} {redirected}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 2  # 1 would say that nothing was spent
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert budget.spent == spent


@pytest.mark.slow
@SHELL
def test_no_standard_error_is_needed(tmp_path):
    path, (budget, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 500)
    command = shlex.join([sys.executable, "-m", "dp_metrics.cli.main", "score", str(path), *MAE, *paid])
    done = subprocess.run(["bash", "-c", f"{command} 2>&-"], capture_output=True, text=True)
    assert (done.returncode, budget.spent) == (0, 1.0)
    assert done.stdout.startswith("private_mae = ")


@pytest.mark.parametrize("is_closed", [False, True], ids=["full", "closed"])
def test_a_warning_that_cannot_be_written_loses_no_number(is_closed, tmp_path, capsys, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    path, (budget, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 40)  # so few that a release warns
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", None if is_closed else Full())
        code = main(["score", str(path), *MAE, *paid, "--json"])
        assert main(["score", str(path), *MAE, *paid, "--epsilon", "5"]) == 1  # more than is left
        assert main(["score", "nowhere.csv", *MAE]) == 2
    out = capsys.readouterr().out
    assert (code, budget.spent) == (0, 1.0)
    assert json.loads(out)["value"] >= 0  # one document, without the warning


@pytest.mark.parametrize("metric", ["private_accuracy_score", "private_brier_score_loss"])
def test_an_epsilon_too_small_for_limits_loses_no_number(metric, tmp_path, capsys):
    path, (budget, paid) = tmp_path / "data.csv", budget_in(tmp_path)
    path.write_text(HEADER + ROW * 50)
    code, out, _ = run(capsys, path, "--metric", metric, *MAE[2:-1], "5e-324", *paid)
    assert (code, len(budget.history)) == (0, 1)
    assert out.startswith(f"{metric} = ")


def test_an_option_that_is_no_literal_is_an_error_of_one_line(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text(HEADER + ROW * 50)
    code, _, err = run(capsys, path, *MAE, "--option", "bounds={[]: 1}")
    assert code == 2
    assert "neither JSON nor a Python literal" in err
