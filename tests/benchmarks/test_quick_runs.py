"""The benchmarks that the gate does not run are run here, quick, and find what they must."""

import csv
import os
import re
import sys
from pathlib import Path

import pytest
from helpers import printed_by

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.slow


def printed(script, *options):
    return printed_by(sys.executable, BENCHMARKS / script, "--quick", *options)


def test_every_interval_is_measured_and_covers(tmp_path):
    """What missed once is drawn again ten times: six misses of an interval of 95 % have probability 3e-6."""
    printed("coverage.py", "--table", tmp_path / "table.inc")
    lines = (tmp_path / "table.inc").read_text(encoding="utf-8").split(":header-rows: 1")[1].splitlines()
    rows = list(csv.DictReader((line.strip() for line in lines if line), skipinitialspace=True))
    assert len(rows) >= 70
    again = [float(row["again"].split()[0]) for row in rows if row["again"]]  # once in 30 runs none
    assert min(again, default=1.0) >= 0.5
    assert sum(row["width"] != "" for row in rows) >= 60


@pytest.mark.weekly(
    reason="who changes a call does not wait for asv; its times are of no account in the gate"
)
@pytest.mark.skipif(not (BENCHMARKS.parent / ".git").exists(), reason="asv asks for a repository")
def test_every_call_that_is_timed_over_time_works(monkeypatch, tmp_path):
    def asv(*words):
        return printed_by(sys.executable, "-m", "asv", *words, cwd=BENCHMARKS / "over_time")

    monkeypatch.setenv("HOME", str(tmp_path))  # where asv describes the machine
    asv("machine", "--yes")
    here = ["--environment", "existing", "--quick", "--dry-run", "--show-stderr"]
    found = asv("run", *here, "--bench", r"\(10000, 'replace_one'\)")
    assert len(re.findall(r"·· ten\.\w+\.time_\w+ +ok$", found, re.MULTILINE)) == 10
    assert "failed" not in found


@pytest.mark.weekly(reason="models of six data sets; tests/page has a page of each task")
@pytest.mark.skipif("DP_METRICS_DATA" not in os.environ, reason="DP_METRICS_DATA names no folder of data")
def test_pages_of_all_tasks_are_off_by_less_than_one(tmp_path):
    found = printed("page.py", "--page", tmp_path / "page.inc")
    tasks = ("adult", "brfss", "cut", "digits", "diamonds", "bike")
    assert all(f"\n{task}: errors" in found for task in tasks)
    lines = (tmp_path / "page.inc").read_text(encoding="utf-8").splitlines()[3:]
    rows = list(csv.DictReader((line.strip() for line in lines), skipinitialspace=True))
    assert [row["epsilon"] for row in rows] == ["0.3", "1", "3"] * 2
    assert all(float(error) < 1 for row in rows for error in row["recall"].split(" / "))


def test_a_floor_is_lower_than_the_release_above_it():
    rows = [line.split("|")[1:-1] for line in printed("floors.py").splitlines() if line.startswith("| 1,000")]
    assert len(rows) == 3
    for *_, passes, few, release, _aim in rows:
        assert 0 < float(passes) < float(few) < float(release) * 1.5
