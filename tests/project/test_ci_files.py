"""Exact versions and the bill of materials fit what is asked for; workflows run the steps of the gate."""

import json
import re
import shutil
import subprocess
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from helpers import load_script
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
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


def workflows() -> dict[str, dict]:
    return {path.name: yaml.safe_load(path.read_text("utf-8")) for path in WORKFLOWS.glob("*.yml")}


def jobs() -> list[tuple[str, dict]]:
    return [(f"{name}: {key}", job) for name, one in workflows().items() for key, job in one["jobs"].items()]


def commands(job: dict) -> list[str]:
    """Return what a job runs, with the words of its matrix in place of their name."""
    matrix = job.get("strategy", {}).get("matrix", {})
    written = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
    return [one for line in written for one in (matrix["check"] if line == "$CHECK" else [line])]


def not_a_script(command: str) -> str | None:
    """Return a command of a workflow unless it calls a script of `.ci`, with steps that exist."""
    script, *steps = command.split()
    path = ROOT / script
    # to Windows each file can be run
    if path.parent != ROOT / ".ci" or not (path.is_file() and path.read_bytes().startswith(b"#!")):
        return command
    known = re.findall(r"^(\w+)\(\) \{$", path.read_text("utf-8"), flags=re.MULTILINE)
    return command if path.name == "run" and not {*steps} <= {*known} else None


def unpinned(action: str) -> bool:
    return re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40}", action) is None


def test_the_workflows_call_only_steps_of_the_gate_and_scripts_that_exist():
    called = [command for _, job in jobs() for command in commands(job)]
    assert [command for command in called if not_a_script(command)] == []
    assert {".ci/run tests", ".ci/oldest", ".ci/nightly", ".ci/proofs", ".ci/publish"} <= {*called}
    for wrong in ("pytest", ".ci/run pytest", ".ci/missing", ".ci/constraints.txt", "python -m build"):
        assert not_a_script(wrong)


def test_the_gate_takes_every_step_that_the_workflows_take_at_each_change():
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    gate = text.partition("\n  exit\nfi\n")[2]
    asked = {
        step
        for _, job in jobs()
        for one in commands(job)
        if one.startswith(".ci/run")
        for step in one.split()[1:]
    }
    # these are longer than a gate may be, or ask the index
    assert asked - {"slow", "audit", "support"} <= {*gate.split()}


def test_every_action_is_pinned_by_the_hash_of_a_commit_and_named_with_its_version():
    for path in WORKFLOWS.glob("*.yml"):
        for line in re.findall(r"uses: (.*)", path.read_text("utf-8")):
            action, _, version = line.partition(" # ")
            assert not unpinned(action), line
            assert re.fullmatch(r"v\d+\.\d+\.\d+", version), line
    assert unpinned("actions/checkout@v7")
    assert unpinned("actions/checkout@3d3c42e")


def test_no_job_may_do_more_than_it_must():
    """Nothing but reading by default; only the release signs, and no secret is read anywhere."""
    for name, workflow in workflows().items():
        assert workflow["permissions"] == {}, name
        assert "concurrency" in workflow, name
        assert "secrets." not in (WORKFLOWS / name).read_text("utf-8"), name
    signing = {name for name, job in jobs() if "id-token" in job["permissions"]}
    assert signing == {"release.yml: provenance", "release.yml: publish"}
    for name, job in jobs():
        assert "timeout-minutes" in job, name
        for step in job["steps"]:
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name


def test_the_tests_run_on_every_version_of_python_that_is_supported():
    support = load_script(ROOT / ".ci" / "support.py")
    matrix = workflows()["tests.yml"]["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == list(support.PYTHON)
    assert matrix["python"][0] == support.project()["requires-python"].removeprefix(">=")


def test_the_oldest_versions_are_the_lower_bounds_and_the_window_is_that_of_spec_0():
    support = load_script(ROOT / ".ci" / "support.py")
    bounds = dict(line.removesuffix(".*").split("==") for line in support.pins(support.project()))
    assert bounds == support.oldest(support.project())
    assert {"numpy", "scikit-learn", "polars"} <= bounds.keys()
    days = {"1.9": "2023-01-01", "1.10": "2024-11-24", "1.11": "2025-06-01"}
    assert support.in_window(days, 2, date(2026, 11, 23)) == "1.10"
    assert support.in_window(days, 2, date(2026, 11, 24)) == "1.10"
    assert support.in_window(days, 2, date(2026, 11, 25)) == "1.11"
    assert support.in_window(days, 3, date(2025, 6, 1)) == "1.9"
    assert support.in_window(days, 2, date(2030, 1, 1)) == "1.11"
    # Python 3.13 was the oldest in its window when the versions were last looked at
    assert support.in_window(support.PYTHON, 3, date(2026, 11, 23)) == "3.13"


def test_the_folder_of_the_templates_has_both_and_they_send_privacy_elsewhere():
    forms = {
        path.stem: yaml.safe_load(path.read_text("utf-8"))
        for path in (ROOT / ".github/ISSUE_TEMPLATE").iterdir()
    }
    assert {"new_metric", "failing_claim"} <= forms.keys()
    assert "SECURITY.md" in str(forms["failing_claim"])
    assert forms["failing_claim"]["body"][0]["attributes"]["options"][0]["required"]


def test_every_check_of_the_repository_that_is_ignored_has_a_reason():
    with open(ROOT / "pyproject.toml", "rb") as file:
        ignored = tomllib.load(file)["tool"]["repo-review"]["ignore"]
    assert all(len(reason.split()) > 3 for reason in ignored.values())
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    local = [
        reason.removesuffix(" is a local hook")
        for reason in ignored.values()
        if reason.endswith("local hook")
    ]
    assert local
    assert [tool for tool in local if f"name: {tool}" not in hooks] == []
