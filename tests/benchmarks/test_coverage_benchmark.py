"""The benchmark of intervals runs, and finds what it must."""

import re
import sys
from pathlib import Path

import pytest
from helpers import load_script

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark():
    """Return the script, imported beside the modules that it needs."""
    sys.path.insert(0, str(BENCHMARKS))
    yield load_script(BENCHMARKS / "coverage.py")
    sys.path.remove(str(BENCHMARKS))


def test_a_short_run_prints_every_table_that_needs_no_data(benchmark, capsys, monkeypatch):
    monkeypatch.delenv("DP_METRICS_DATA", raising=False)
    benchmark.main(["--quick"])
    printed = capsys.readouterr().out
    assert len(re.findall(r"^\| ---", printed, flags=re.MULTILINE)) == 4
    tables = dict(zip(benchmark.TABLES, re.split(r"\n\n(?=[A-Z])", printed.strip()), strict=True))
    shares = [float(cell) for cell in re.findall(r" ([01]\.\d{4})(?= )", tables["proportions"])]
    assert len(shares) == 4
    assert min(shares) >= 0.95
    ratios = [float(cell) for cell in re.findall(r"\d\.\d{4}(?!\d)", tables["quantiles"])]
    assert len(ratios) == 16
    assert max(ratios) <= 1.0


def test_the_normal_method_covers_what_it_should(benchmark):
    """In 2000 runs, standard error .005: of losses with many different values about 96 %."""
    import numpy as np

    population = np.linspace(0, 0.5, 500)
    sums = np.array(list(benchmark.sums_of(population, 300, 2000)))
    covered, width = benchmark.normal_coverage(sums, 0.25, 300, 1.0)
    assert covered >= 0.94
    assert 1.0 < width < 2.0
