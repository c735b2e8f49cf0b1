"""What docs/guarantee.rst says of files, tracebacks and summaries, tried; also what we cannot prevent."""

import csv
import os
import pickle
import re
import shutil
import sqlite3
import stat
import textwrap
import traceback
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest
from helpers import later, load_script, new_session

import dp_metrics as dp
from dp_metrics.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantee.rst").read_text(encoding="utf-8")
TIMES = (ROOT / "docs" / "measured" / "timing_pairs.inc").read_text(encoding="utf-8")
SECRET = 123456.75


@pytest.fixture
def budget(tmp_path):
    """Return an open accountant with a file of which half is spent."""
    accountant = dp.PrivacyAccountant(1.0, tmp_path / "budget.sqlite")
    accountant.spend(0.5, "first")
    return accountant


def test_a_file_whose_wal_was_deleted_stops_whose_process_has_seen_it_and_is_short_for_others(tmp_path):
    path = tmp_path / "budget.sqlite"
    accountant = dp.PrivacyAccountant(1.0, path)
    with closing(sqlite3.connect(path)) as reader:  # somebody has it open, so that spends stay in the log
        reader.execute("SELECT * FROM budget").fetchall()
        accountant.spend(0.5, "in the log")
        shutil.copy(path, tmp_path / "without the log")
    for companion in ("-wal", "-shm"):
        Path(f"{path}{companion}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "without the log", path)
    for use in (lambda: accountant.spend(0.1, "x"), lambda: dp.PrivacyAccountant(1.0, path)):
        with pytest.raises(ValueError, match="rolled back"):
            use()
    assert later(path, 1.0).spent == 0


@pytest.mark.parametrize("within_a_process", [True, False])
def test_a_copy_is_a_second_budget_and_none_within_a_process(budget, tmp_path, within_a_process):
    shutil.copy(budget.path, tmp_path / "copy.sqlite")
    if not within_a_process:
        new_session()
    dp.PrivacyAccountant(1.0, tmp_path / "copy.sqlite").spend(0.5, "in the copy")
    with pytest.raises(ValueError, match="is a copy") if within_a_process else nullcontext():
        budget.spend(0.5, "in the original")


@pytest.mark.skipif(os.name == "nt", reason="permissions as on POSIX")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_file_has_the_permissions_that_the_umask_gives(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        path = dp.PrivacyAccountant(1.0, tmp_path / "budget.sqlite").path
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == mode


def test_a_traceback_holds_the_records_and_its_text_does_not_and_a_summary_the_largest_losses():
    y = np.full(5, SECRET)
    with pytest.raises(ValueError, match="NaN") as caught:
        dp.private_mae(y, [1, 2, np.nan, 4, 5], epsilon=1.0)
    frames = [frame for frame, _ in traceback.walk_tb(caught.tb)]
    assert any(value is y for frame in frames for value in frame.f_locals.values())
    assert str(SECRET)[:6] not in "".join(traceback.format_exception(caught.value))
    assert y[:1].tobytes() in pickle.dumps(dp.Summary(dp.private_mae).update([1.0, SECRET], [0.0, 0.0]))


def test_the_pages_have_a_row_for_each_mechanism_and_for_each_line_of_the_benchmark():
    first_cells = re.findall(r'^   "([^"]*)"', PAGE, flags=re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert {type(make()).__name__ for make in MECHANISMS.values()} <= named
    lines = TIMES.split('"first / second", ms, ratio, limits\n')[1].split("\n\n")[0]
    told = [row[0] for row in csv.reader(lines.splitlines(), skipinitialspace=True)]
    assert told == list(load_script(ROOT / "benchmarks" / "timing.py").pairs(20))


def test_the_example_of_a_report_runs_and_what_the_policy_names_exists(capsys):
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```python\n(.*?)```", policy, flags=re.DOTALL)
    exec(compile(textwrap.dedent(example), "SECURITY.md", "exec"), {})
    assert 0 < float(capsys.readouterr().out) <= 1
    paths = re.findall(r"`(?:python )?([\w.]+/[\w./]+)`", policy)
    assert {".ci/release", ".ci/lock", "docs/guarantee.rst"} <= set(paths)
    assert [path for path in paths if not (ROOT / path).exists()] == []
