"""The benchmarks that the gate does not run are run here, quick, and find what they must."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.slow


def printed(script, *options):
    command = [sys.executable, BENCHMARKS / script, "--quick", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_interval_is_measured_and_covers(tmp_path):
    """What missed once is drawn again ten times: six misses of an interval of 95 % have probability 3e-6."""
    printed("coverage.py", "--table", tmp_path / "table.inc")
    lines = (tmp_path / "table.inc").read_text(encoding="utf-8").split(":header-rows: 1")[1].splitlines()
    rows = list(csv.DictReader((line.strip() for line in lines if line), skipinitialspace=True))
    assert len(rows) >= 70
    assert min(float(row["again"].split()[0]) for row in rows if row["again"]) >= 0.5
    assert sum(row["width"] != "" for row in rows) >= 60


@pytest.mark.skipif(not (BENCHMARKS.parent / ".git").exists(), reason="asv asks for a repository")
def test_every_call_that_is_timed_over_time_works(monkeypatch, tmp_path):
    def asv(*words):
        command, folder = [sys.executable, "-m", "asv", *words], BENCHMARKS / "over_time"
        done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    monkeypatch.setenv("HOME", str(tmp_path))  # where asv describes the machine
    asv("machine", "--yes")
    here = ["--environment", "existing", "--quick", "--dry-run", "--show-stderr"]
    found = asv("run", *here, "--bench", r"\(10000, 'replace_one'\)")
    assert len(re.findall(r"·· ten\.\w+\.time_\w+ +ok$", found, re.MULTILINE)) == 10
    assert "failed" not in found


@pytest.mark.skipif("DP_METRICS_DATA" not in os.environ, reason="DP_METRICS_DATA names no folder of data")
def test_comparisons_have_every_table():
    found = printed("comparison.py")
    titles = ("Exact size", "Power at 0.05", "Wins and mean", "Power at 0.05 of the mean", "Coverage of")
    assert all(f"\n{title}" in found for title in titles)


@pytest.mark.skipif("DP_METRICS_DATA" not in os.environ, reason="DP_METRICS_DATA names no folder of data")
def test_choices_have_both_tables_and_beat_chance():
    found = printed("best.py")
    assert "\nFive models on Adult" in found
    rows = re.findall(r"^\| (?:accuracy|MAE) \| 1000 \|(.*)\|$", found, re.MULTILINE)
    shares = [[int(cell.split(",")[0]) for cell in row.split("|")[2:]] for row in rows]
    assert len(rows) == 18
    assert sum(row[0] for row in shares) > 2 * sum(row[-1] for row in shares)
