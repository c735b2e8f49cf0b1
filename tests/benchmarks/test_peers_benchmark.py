import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "peers.py"
SMALL = ("--sizes", "50", "--accuracy-sizes", "50", "--repeats", "2", "--timings", "1")
FAKE = """
import numpy as np
def var(x, *, epsilon, bounds):
    return 3 * np.var(x)
def mean(x, *, epsilon, bounds):
    assert bounds == (0, 50_000)
    return (1 + epsilon) * np.mean(x)
"""

pytestmark = pytest.mark.slow  # each run starts interpreters of its own


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


def test_each_library_stands_in_its_tables(comparison):
    out, rows = comparison
    for name, tables in (
        ("`private_variance`", 3),
        ("`private_mean`", 3),
        ("`private_variance`, add or remove", 2),
        ("`private_mean`, add or remove", 2),
        ("diffprivlib `tools.var`", 2),
        ("diffprivlib `tools.mean`", 2),
    ):
        assert out.count(f"| {name} |") == tables
    assert "diffprivlib 7.8.9" in out
    libraries = ["dp_metrics"] * 4 + ["dp_metrics, add or remove"] * 4 + ["diffprivlib"] * 4
    assert [row["library"] for row in rows] == libraries * 2


def test_the_last_table_divides_by_the_error_of_the_best_peer(comparison):
    out, rows = comparison
    error = {
        row["library"]: float(row["mean_relative_error"])
        for row in rows
        if row["statistic"] == "variance" and row["epsilon"] == "1.0"
    }
    last = out.split("Error / error of the best peer:")[1]
    line = next(line for line in last.splitlines() if line.startswith("| `private_variance` |"))
    assert float(line.split("|")[5]) == pytest.approx(error["dp_metrics"] / error["diffprivlib"], rel=0.06)


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
    assert "best peer:" not in out
