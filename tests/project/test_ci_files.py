"""Exact versions and the bill of materials fit what is asked for; workflows run the steps of the gate."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from helpers import load_script, printed_by
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
RUN = ROOT / ".ci" / "run"


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


def test_the_constraints_are_exact_public_versions_and_have_every_direct_dependency_in_its_range():
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines()[1:]:
        # no host, no path, no local version such as 2.0+cpu, no marker and no range
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9]+(\.[0-9]+)*(\.?(post|rc|a|b)[0-9]+)?", line), line
    exact, asked = constraints(), direct_dependencies()
    assert {"numpy", "hatchling", "pyarrow", "pytest", "xgboost"} <= {one.name for one in asked}
    for one in asked:
        name = canonicalize_name(one.name)
        assert name in exact, f"{name} is missing: run .ci/lock"
        assert one.specifier.contains(exact[name]), f"{name} {exact[name]} is outside {one}: run .ci/lock"


@pytest.mark.slow
@pytest.mark.weekly(reason="a minute of installs, twice; each release makes the bill")
@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands in .ci are for bash")
def test_the_bill_of_materials_is_that_of_a_plain_install_and_the_same_twice(tmp_path):
    texts = []
    for folder in ("once", "twice"):
        printed_by(ROOT / ".ci" / "release", "bill", tmp_path / folder, umask=len(texts) * 0o077)
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


def called(name: str) -> set[str]:
    """Return what the jobs of a workflow call, with the words of their matrix in place of its name."""
    jobs = yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))["jobs"].values()
    words = [
        (line, job.get("strategy", {}).get("matrix", {}).get("check", []))
        for job in jobs
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]
    lines = [one.split() for line, checks in words for one in (checks if line == "$CHECK" else [line])]
    return {" ".join((script, step)) for script, *steps in lines for step in steps or [""]}


def test_what_the_gate_leaves_out_is_weekly_and_the_workflows_call_only_steps_that_exist():
    text = RUN.read_text("utf-8")
    [gate] = (named.split() for named in re.findall(r"^gate=\((.*)\)$", text, flags=re.MULTILINE))
    helpers = {"environment", "fill", "has_browser", "on_oldest", "timed", "install"}
    steps = {*re.findall(r"^(\w+)\(\) \{", text, flags=re.MULTILINE)} - helpers
    whole = {"oldest"}  # of which the gate takes `oldest_sample`
    weekly = {f".ci/run {step}" for step in steps - {*gate, *whole}}
    assert called("weekly.yml") == {*weekly, ".ci/run ", ".ci/proofs "}
    at_each_change = {call.removeprefix(".ci/run ") for call in called("tests.yml")}
    assert at_each_change - {*gate} == whole
    assert {*gate} <= steps >= at_each_change
    release = {call.split()[0] for call in called("release.yml")}
    assert all((ROOT / script).read_bytes().startswith(b"#!") for script in release)


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="the gate is written for bash")
def test_a_step_ends_at_its_first_error_the_others_go_on_and_the_gate_fails(tmp_path):
    gate = RUN.read_text("utf-8").replace("\ninstall\n", "\n")
    for name, lines in {
        "lint": "false",
        "proofs": "seq 3",
        "review": "false | true",
        "oldest_sample": "true",
    }.items():
        gate = re.sub(
            rf"^{name}\(\) \{{[^}}]*\}}$", f"{name}() {{\n  {lines}\n  echo on\n}}", gate, flags=re.M
        )
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(gate, encoding="utf-8")

    def ended(*steps):
        done = subprocess.run(["bash", tmp_path / ".ci" / "run", *steps], capture_output=True, text=True)
        assert done.stderr == ""
        *lines, last = [re.sub(r"^\d+ s", "N s", line) for line in done.stdout.splitlines()]
        assert last == "N s: all"
        return done.returncode, sorted(lines)

    passed = ["N s: install", "N s: proofs passed", *(f"proofs: {word}" for word in (1, 2, 3, "on"))]
    failed = [f"N s: {step} FAILED" for step in ("lint", "review")]
    early = ["N s: oldest_sample passed", "oldest_sample: on"]
    assert ended("proofs") == (0, passed)
    assert ended("lint", "review", "proofs", "oldest_sample") == (1, sorted(passed + failed + early))


def case_of(nodeid, *marks):
    """Return a case of a test, as far as its marks go."""
    given = [*marks]
    methods = {"get_closest_marker": given.__contains__, "add_marker": given.append}
    return SimpleNamespace(nodeid=nodeid, marks=given, **methods)


def test_the_sample_has_the_first_case_of_each_test_that_is_only_slow_and_not_weekly():
    items = [case_of(name, "slow", "weekly") for name in ("b.py::g", "a.py::h[1]")]
    items += [case_of(f"a.py::{name}", "slow") for name in ("f[1]", "f[2]", "g", "h[2]")]
    items += [case_of(f"b.py::{name}", "slow") for name in ("f[2]", "h[1]")]
    items += [case_of("b.py::h[2]"), case_of("b.py::i")]
    load_script(ROOT / "tests" / "conftest.py").pytest_collection_modifyitems(items)
    chosen = [item.nodeid for item in items if "sample" in item.marks]
    assert chosen == ["a.py::f[1]", "a.py::g", "a.py::h[2]", "b.py::f[2]"]


def test_the_oldest_versions_are_the_lower_bounds_and_the_window_is_that_of_spec_0():
    support = load_script(ROOT / ".ci" / "support.py")
    bounds = dict(line.removesuffix(".*").split("==") for line in support.pins(support.project()))
    assert bounds == support.oldest(support.project())
    jobs = yaml.safe_load((WORKFLOWS / "tests.yml").read_text("utf-8"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == [*support.PYTHON]
    days = {"1.9": "2023-01-01", "1.10": "2024-11-24", "1.11": "2025-06-01"}
    for years, today, oldest in (
        (2, date(2026, 11, 24), "1.10"),
        (2, date(2026, 11, 25), "1.11"),
        (3, date(2025, 6, 1), "1.9"),
        (2, date(2030, 1, 1), "1.11"),
    ):
        assert support.in_window(days, years, today) == oldest
