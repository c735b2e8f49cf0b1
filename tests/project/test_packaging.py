"""What is published builds, each time to the same bytes, installs into an empty environment and runs."""

import json
import os
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from helpers import printed_by

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Build the source package, and the wheel from that."""
    folder = tmp_path_factory.mktemp("dist")
    printed_by(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_what_archives_and_conda_are_told_is_what_the_package_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    about, build = project["project"], project["build-system"]
    recipe = yaml.safe_load((ROOT / ".ci" / "recipe.yaml").read_text(encoding="utf-8"))
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert recipe["package"] == {"name": about["name"], "version": about["version"]}
    python = f"python {about['requires-python']}"
    plain = {name.replace(" ", "") for name in recipe["requirements"]["run"]}
    assert plain == {name.replace(" ", "") for name in [python, *about["dependencies"]]}
    host = {name.replace(" ", "") for name in recipe["requirements"]["host"]}
    assert host == {name.replace(" ", "") for name in [python, "pip", *build["requires"]]}
    (command,) = recipe["build"]["python"]["entry_points"]
    assert dict([command.split(" = ")]) == about["scripts"]
    (test,) = recipe["tests"]
    assert all((ROOT / name).is_file() for name in test["files"]["source"])
    assert cited["version"] == about["version"]
    assert cited["license"] == archived["license"] == recipe["about"]["license"] == about["license"]
    (paper,) = cited["references"]
    (related,) = archived["related_identifiers"]
    assert paper["identifiers"][0]["value"] == related["identifier"]


@pytest.mark.slow
@pytest.mark.weekly(reason="builds twice; the gate's step `packages` builds and uses the wheel")
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
    printed_by(sys.executable, "-m", "build", "--outdir", tmp_path, copy, env=surroundings, umask=0o077)
    for path in packages:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
@pytest.mark.weekly(reason="the gate's step `packages` builds, checks and uses them")
def test_the_packages_hold_what_they_should(packages):
    wheel, sdist = packages
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "dp_metrics").rglob("*")
        if path.suffix in {".py", ".pyi", ".html", ".json", ".toml"} or path.name == "py.typed"
    }
    assert "dp_metrics/py.typed" in installed
    assert installed == modules
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    assert modules | {"README.md", "LICENSE", "CITATION.cff", "tests/cases.py"} <= sources
