"""The benchmark of load and faults runs, keeps its promises, and sees those that are broken."""

import mmap
import os
import random
import sqlite3
import sys
from contextlib import closing
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from helpers import load_script

import dp_metrics as dp
from dp_metrics import LossSummary, PrivacyAccountant

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def beside_the_benchmarks():
    """Import scripts beside the modules that they need, also in child processes."""
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def benchmark():
    return load_script(BENCHMARKS / "load.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eight", "kill", "disk", "read-only", "clock", "forged", "leak", "dask"])
def test_a_short_run_keeps_every_promise(benchmark, name, capsys, monkeypatch):
    monkeypatch.delenv("DP_METRICS_DATA", raising=False)
    assert benchmark.main(["--quick", "--only", name]) == 0
    printed = capsys.readouterr().out
    assert "BROKEN" not in printed
    assert " kept |" in printed or "skipped" in printed


def test_a_broken_promise_ends_with_1(benchmark, capsys, monkeypatch):
    finding = import_module("faults.findings").Finding
    for kept, status in ((True, 0), (None, 0), (False, 1)):
        monkeypatch.setitem(benchmark.FAULTS, "clock", lambda size, kept=kept: [finding("x", 1, kept)])
        assert benchmark.main(["--only", "clock"]) == status
    assert capsys.readouterr().out.count("**BROKEN**") == 1


# What an audit of a budget file sees


@pytest.fixture
def spent(tmp_path):
    """Return a budget file and what its processes were granted."""
    spending = import_module("faults.spending")
    path, tenth = tmp_path / "budget.sqlite", Fraction(1, 10)
    budget = PrivacyAccountant(1, path)
    budget.parallel(tenth, ["a", "b"])["a"].spend(tenth, "of a part")
    budget.spend(tenth, "of the whole")
    return path, [
        spending.Grant("of a part", "a", tenth),
        spending.Grant("of the whole", "", tenth),
    ]


def audit_of(path, grants, total=1):
    return import_module("faults.spending").audited(path, Fraction(total), grants)


def test_an_audit_finds_what_was_granted(spent):
    audit = audit_of(*spent)
    assert all(finding.is_kept in (True, None) for finding in audit.findings)
    assert (audit.granted, audit.divisions, audit.parts_used_up, audit.without_grant) == (2, 1, 1, 0)
    assert audit.spent == Fraction(1, 5)


@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        ("DELETE FROM history WHERE label = 'of the whole'", {"is_each_recorded_once", "is_added_up"}),
        ("DELETE FROM part_history", {"is_each_recorded_once", "is_added_up"}),
        ("INSERT INTO history SELECT id + 9, time, label, epsilon, mechanism, neighboring FROM history "
         "WHERE id = 2", {"is_each_recorded_once", "is_added_up"}),
        ("UPDATE budget SET spent = '0x1/0xa'", {"is_added_up"}),
        ("UPDATE part_history SET epsilon = '0x1/0x7'", {"is_each_recorded_once", "is_added_up"}),
        ("UPDATE budget SET total = '0x1/0x8'", {"is_within"}),
        ("UPDATE parts SET total = '0x1/0xb'", {"is_within"}),
        ("UPDATE history SET label = 'parallel: a, b'", {"is_each_recorded_once", "is_each_paid_once"}),
    ],
)  # fmt: skip
def test_an_audit_sees_what_is_wrong(spent, damage, broken):
    path, grants = spent
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(damage)
    audit = audit_of(path, grants)
    promises = {"is_each_recorded_once", "is_added_up", "is_within", "is_each_paid_once"}
    assert {name for name in promises if not getattr(audit, name)} == broken


def test_an_audit_counts_records_without_a_grant(spent):
    path, grants = spent
    assert audit_of(path, grants[:1]).without_grant == 1
    assert not audit_of(path, [*grants, grants[0]]).is_each_recorded_once


# Forgeries


def test_every_forger_changes_something_and_a_genuine_summary_is_taken_apart_and_joined():
    forging = import_module("faults.forging")
    rng = random.Random(1)
    for summary in forging.genuine():
        assert forging.Parts.of(summary.to_bytes()).joined() == summary.to_bytes()
    for forger in forging.FORGERS.values():
        originals = [rng.choice(forging.genuine()).to_bytes() for _ in range(20)]
        assert sum(forger(rng, data) != data for data in originals) > 10


def test_the_judge_sees_what_raises_after_the_spend(monkeypatch):
    forging = import_module("faults.forging")
    summary = LossSummary.from_data(dp.private_mae, np.ones(300), np.zeros(300))

    def broken(read, wanted, at_release):
        class Broken:
            @staticmethod
            def from_bytes(data):
                if wanted is not None:
                    raise wanted
                return read

        monkeypatch.setattr(LossSummary, "release", at_release)
        return forging.judged(Broken, summary.to_bytes(), random.Random(0), summary).is_broken

    def works(self, epsilon, **options):
        return 1.0

    def fails(error, is_paid):
        def release(self, epsilon, *, accountant, **options):
            if is_paid:
                accountant.spend(epsilon, "x")
            raise error

        return release

    public = ValueError("mechanism='laplace' needs a metric with a public upper limit")
    assert not broken(summary, None, works)
    assert not broken(summary, None, fails(public, False))
    assert broken(summary, None, fails(public, True))
    assert broken(summary, None, fails(ValueError("min() arg is an empty sequence"), False))
    assert broken(summary, None, fails(RuntimeWarning("invalid value"), False))
    assert broken(summary, None, lambda self, epsilon, **options: float("nan"))
    assert not broken(None, ValueError("These bytes are not a summary of dp_metrics."), works)
    assert broken(None, ValueError("min() arg is an empty sequence"), works)
    assert broken(None, KeyError("x"), works)


# Leaks


def test_all_caches_are_found_and_bounded():
    import_module("dp_metrics.release.release")
    found = import_module("faults.leaks").caches()
    sources = [
        path.read_text() for path in Path(dp.__path__[0]).rglob("*.py") if path.parent.name != "evaluation"
    ]
    assert len(found) == sum(source.count("@lru_cache(") for source in sources)
    assert {limit for _, limit in found.values()} == {256}


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="this system has no /proc")
def test_resident_memory_grows_with_what_is_kept():
    resident = import_module("faults.leaks").resident
    before = resident()
    with mmap.mmap(-1, 32_000_000) as kept:  # new pages, which an array need not have
        kept[:: mmap.PAGESIZE] = b"1" * len(range(0, len(kept), mmap.PAGESIZE))
        assert 30e6 < resident() - before < 40e6
