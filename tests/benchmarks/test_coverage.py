"""Every interval covers what it is about, on tasks that no rule was chosen on: those of the benchmark."""

from pathlib import Path

import pytest
from helpers import load_script, seeded, system_of
from scipy.stats import binom

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOWER = "private_mean_interval, one loss in 150 at the cap"  # as its docstring says


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["functions", "means", "labels", "scores"])
def test_intervals_cover(family, monkeypatch):
    """So many misses of 5 %, or more, have probability 1e-5 for an interval; there are seventy."""
    monkeypatch.syspath_prepend(BENCHMARKS)  # where it finds its tasks
    coverage = load_script(BENCHMARKS / "coverage.py", "coverage_of_intervals")  # `coverage` is a package
    size = coverage.Size({"fast": 24, "usual": 24, "slow": 8}, (300,), None)
    with system_of(seeded()):
        rows = coverage.measured(coverage.FAMILIES[family](), size, family)
    for (name, way), cells in rows.items():
        draws = sum(cell.draws for cell in cells)
        missed = draws - sum(cell.hits for cell in cells)
        assert name == LOWER or binom.sf(missed - 1, draws, 0.05) > 1e-5, (name, way, missed, draws)
