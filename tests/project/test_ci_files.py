"""The exact versions that tests and builds use, and the bill of materials, fit what the project asks for."""

import json
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"


def constraints() -> dict[str, Version]:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {name: Version(version) for name, version in pairs}


def direct_dependencies() -> list[Requirement]:
    """Return what the package, its development extra with all that this names, and its build ask for."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)
    project = settings["project"]
    found, waiting = [], [*project["dependencies"], *settings["build-system"]["requires"], "dp_metrics[dev]"]
    while waiting:
        asked = Requirement(waiting.pop())
        if asked.name == project["name"]:
            waiting += [one for extra in asked.extras for one in project["optional-dependencies"][extra]]
        else:
            found.append(asked)
    return found


def test_every_constraint_is_one_exact_public_version():
    first, *lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    assert ".ci/lock" in first
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted(set(names))
    for line in lines:
        # no host, no path, no local version such as 2.0+cpu, no marker and no range
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9]+(\.[0-9]+)*(\.?(post|rc|a|b)[0-9]+)?", line), line


def test_the_constraints_have_every_direct_dependency_in_its_range():
    exact = constraints()
    asked = direct_dependencies()
    assert {"numpy", "hatchling", "pyarrow", "pytest", "xgboost"} <= {one.name for one in asked}
    for one in asked:
        name = canonicalize_name(one.name)
        assert name in exact, f"{name} is missing: run .ci/lock"
        assert one.specifier.contains(exact[name]), f"{name} {exact[name]} is outside {one}: run .ci/lock"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands in .ci are for bash")
def test_the_bill_of_materials_is_that_of_a_plain_install_and_the_same_twice(tmp_path):
    texts = []
    for folder in ("once", "twice"):
        command = [ROOT / ".ci" / "sbom", tmp_path / folder]
        done = subprocess.run(command, capture_output=True, text=True, umask=len(texts) * 0o077)
        assert done.returncode == 0, done.stdout + done.stderr
        [path] = (tmp_path / folder).iterdir()
        assert path.name == f"dp_metrics-{version('dp_metrics')}.cdx.json"
        texts.append(path.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert not re.search(r"file:|localhost", texts[0])
    assert str(ROOT) not in texts[0]
    bill = json.loads(texts[0])
    assert bill["metadata"]["component"]["name"] == "dp_metrics"
    listed = {canonicalize_name(one["name"]): Version(one["version"]) for one in bill["components"]}
    assert {"numpy", "scikit-learn", "scipy"} <= listed.keys()
    assert not {"pip", "setuptools", "cyclonedx-bom", "pandas"} & listed.keys()
    assert listed.items() <= constraints().items()
