import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "peers.py"
SMALL = ("--sizes", "50", "--accuracy-sizes", "50", "--repeats", "2", "--timings", "1")
FAKE = """
import numpy as np
def var(x, *, epsilon, bounds):
    return 3 * np.var(x)
def mean(x, *, epsilon, bounds):
    assert bounds == (0, 50_000)
    return (1 + epsilon) * np.mean(x)
"""


def run(folder: Path, *options: object) -> str:
    """Return what the script prints where the modules in a folder can be imported too."""
    command = [sys.executable, str(SCRIPT), *SMALL, *map(str, options)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def package(folder: Path, name: str, **modules: str) -> None:
    (folder / name).mkdir()
    for module, source in {"__init__": "", **modules}.items():
        (folder / name / f"{module}.py").write_text(source)
    information = folder / f"{name}-7.8.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: {name}\nVersion: 7.8.9\n")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Return the output and the rows of a run with a fake peer and a broken one."""
    folder = tmp_path_factory.mktemp("peers")
    package(folder, "diffprivlib", tools=FAKE)
    package(folder, "opendp", prelude="raise ImportError('broken on purpose')")
    out = run(folder, "--output", folder / "results")
    with (folder / "results" / "peers.csv").open(newline="", encoding="utf-8") as file:
        return out, list(csv.DictReader(file))


def test_errors_are_those_of_the_peers_releases(comparison):
    for row in comparison[1]:
        if row["library"] == "diffprivlib":
            expected = 2.0 if row["statistic"] == "variance" else float(row["epsilon"])
            assert float(row["mean_relative_error"]) == pytest.approx(expected)


def test_each_library_stands_in_both_tables(comparison):
    out, rows = comparison
    for name in (
        "`private_variance`",
        "`private_mean`",
        "diffprivlib `tools.var`",
        "diffprivlib `tools.mean`",
    ):
        assert out.count(f"| {name} |") == 2
    assert "diffprivlib 7.8.9" in out
    assert [row["library"] for row in rows] == (["dp_metrics"] * 4 + ["diffprivlib"] * 4) * 2


def test_what_cannot_be_imported_is_left_out_and_said_so(comparison):
    out, rows = comparison
    assert "Left out: opendp (ImportError: broken on purpose). To get it, pip install opendp" in out
    assert "| OpenDP" not in out
    assert "opendp" not in {row["library"] for row in rows}


def test_a_path_that_is_no_interpreter_is_left_out(tmp_path):
    out = run(tmp_path, "--diffprivlib-python", tmp_path / "python", "--opendp-python", tmp_path / "python")
    assert out.count("is no interpreter: No such file or directory") == 2
    assert "--diffprivlib-python" in out
    assert out.count("| `private_variance` |") == 2
