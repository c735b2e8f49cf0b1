"""The benchmark of comparisons: its sizes are exact, its noise is that of releases, and it runs."""

import math
import os
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def benchmark():
    """Return the benchmark as a module."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    yield import_module("comparison")
    sys.path.remove(folder)


def test_exact_sizes_are_at_most_the_level(benchmark):
    no_ties = [benchmark.exact_size(100, epsilon, (1.0,))[0] for epsilon in (1.0, 3.0)]
    assert round(no_ties[0], 3) == 0.048
    ties = benchmark.exact_size(100, 1.0, (0.05, 0.3, 0.7))
    assert 0 < min(ties) < max(*ties, *no_ties) <= 0.05


def test_the_noise_has_the_law_of_releases(benchmark):
    drawn = benchmark.noise(np.random.default_rng(0), 1.0, 200_000)
    q = math.exp(-0.5)
    for k in range(-4, 5):
        expected = (1 - q) / (1 + q) * q ** abs(k)
        # five standard errors: false alarms below 6e-7 each
        assert abs(np.mean(drawn == k) - expected) < 5 * math.sqrt(expected / 200_000)


@pytest.mark.skipif("DP_METRICS_DATA" not in os.environ, reason="DP_METRICS_DATA names no folder of data")
def test_the_benchmark_runs(benchmark, capsys):
    benchmark.main(["--quick"])
    printed = capsys.readouterr().out
    titles = ("Exact size", "Power at 0.05", "Wins and mean", "Power at 0.05 of the mean", "Coverage of")
    assert all(f"\n{title}" in printed for title in titles)
    assert "| MAE abalone x-l | 0.4" in printed
