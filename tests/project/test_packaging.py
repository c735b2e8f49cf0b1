"""What is published builds, installs into an empty environment, runs, and is typed for its users."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CONSUMER = """
import numpy as np
from numpy.typing import NDArray
from typing import assert_type

from dp_metrics import Hazard, PrivacyAccountant, PrivateResult, private_accuracy_score, private_mae
from dp_metrics import private_mse, with_result

Floats = float | NDArray[np.float64]

budget = PrivacyAccountant(1.0)
y = np.linspace(0.0, 1.0, 10)
assert_type(private_mse(y, y, epsilon=0.1, bounds=(0, 1), accountant=budget), Floats)
assert_type(private_mae([1.0], [2.0], epsilon=0.1, mechanism=Hazard(resolution=0.1)), Floats)
assert_type(private_mse(y, y, epsilon=0.1, multioutput="raw_values"), Floats)
assert_type(private_accuracy_score(["a"], ["b"], epsilon=0.5), float)
assert_type(with_result(private_accuracy_score)(["a"], ["b"], epsilon=0.5), PrivateResult[float])
assert_type(budget.remaining, float)
"""

MISTAKES = """
from dp_metrics import private_mse

private_mse([1.0], [1.0])
private_mse([1.0], [1.0], epsilon="1")
private_mse([1.0], [1.0], epsilon=1.0, bound=(0, 1))
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def loaded_by(statement):
    program = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(run(sys.executable, "-c", program).split())


@pytest.mark.slow  # tests/project/test_layering.py asks nearly the same
def test_importing_the_package_loads_nothing_that_scikit_learn_does_not():
    # what else the package takes time for is its own code, the standard library and scikit-learn's
    extra = loaded_by("from dp_metrics import *") - loaded_by("import sklearn.metrics")
    assert extra - sys.stdlib_module_names <= {"dp_metrics"}


@pytest.mark.slow
def test_the_benchmark_of_the_import_runs():
    out = run(sys.executable, ROOT / "benchmarks" / "import_time.py", "--repeats", "1")
    assert "ratio" in out


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Build the source package, and the wheel from that."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_another_copy_at_another_time_gives_the_same_packages(packages, tmp_path):
    """Byte for byte, with other permissions and times of files, and with the documentation built in place."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".*_cache", "dist", ".venv"))
    for leftover in ("docs/_build/page.html", "docs/api/page.rst", "docs/notebooks/page.ipynb"):
        (copy / leftover).parent.mkdir(parents=True, exist_ok=True)
        (copy / leftover).write_text("left over", encoding="utf-8")
    for path in copy.rglob("*"):
        os.utime(path, (10**9, 10**9))
        path.chmod(path.stat().st_mode & 0o700)
    surroundings = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "5"}
    run(sys.executable, "-m", "build", "--outdir", tmp_path, copy, env=surroundings, umask=0o077)
    for path in packages:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_the_index_would_accept_the_packages(packages):
    out = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *packages)
    assert out.count("PASSED") == 2


@pytest.mark.slow
def test_the_packages_hold_what_they_should(packages):
    wheel, sdist = packages
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "dp_metrics").rglob("*")
        if path.suffix in {".py", ".html", ".json"} or path.name == "py.typed"
    }
    assert "dp_metrics/py.typed" in installed
    assert installed == modules
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "tests/cases.py",
        "notebooks/01_quickstart.ipynb",
    ):
        assert name in sources
    assert modules <= sources


@pytest.fixture(scope="module")
def python(packages, tmp_path_factory):
    """Return the interpreter of an empty environment with nothing but the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    interpreter = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(interpreter, "-m", "pip", "install", "--quiet", packages[0])
    return interpreter


@pytest.mark.slow
@pytest.mark.weekly(reason="the gate's step `packages` installs and uses the wheel")
def test_the_packages_work_in_empty_environments(packages):
    out = run(ROOT / ".ci" / "smoke", packages[0].parent)
    assert out.count("private_recall_score = ") == 2


@pytest.mark.slow
def test_users_of_the_wheel_get_its_types(python, tmp_path):
    settings = ["--strict", "--python-executable", python, "--no-incremental", "--no-error-summary"]
    (tmp_path / "consumer.py").write_text(CONSUMER, encoding="utf-8")
    run(sys.executable, "-m", "mypy", *settings, "consumer.py", cwd=tmp_path)
    (tmp_path / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, settings), "mistakes.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    for line in (4, 5, 6):
        assert f"mistakes.py:{line}: error" in done.stdout
