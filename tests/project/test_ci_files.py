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

import pytest
import yaml
from helpers import load_script
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
@pytest.mark.weekly(reason="a minute of installs, twice; each release makes the bill")
@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands in .ci are for bash")
def test_the_bill_of_materials_is_that_of_a_plain_install_and_the_same_twice(tmp_path):
    texts = []
    for folder in ("once", "twice"):
        command = [ROOT / ".ci" / "release", "bill", tmp_path / folder]
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


def functions(script: Path) -> list[str]:
    return re.findall(r"^(\w+)\(\) \{", script.read_text("utf-8"), flags=re.MULTILINE)


def not_a_script(command: str) -> str | None:
    """Return a command of a workflow unless it calls a script of `.ci`, with steps that exist."""
    script, *steps = command.split()
    path = ROOT / script
    # to Windows each file can be run
    if path.parent != ROOT / ".ci" or not (path.is_file() and path.read_bytes().startswith(b"#!")):
        return command
    asked = {"run": steps, "release": steps[:1]}.get(path.name, [])
    return command if not {*asked} <= {*functions(path)} else None


def gate() -> list[str]:
    """Return the steps that `.ci/run` takes where none is named."""
    [named] = re.findall(r"^gate=\((.*)\)$", RUN.read_text("utf-8"), flags=re.MULTILINE)
    return named.split()


def called(name: str) -> set[str]:
    """Return what the jobs of a workflow call, `.ci/run` step by step."""
    jobs = workflows()[name]["jobs"].values()
    lines = [command.split() for job in jobs for command in commands(job)]
    return {" ".join((script, step)) for script, *steps in lines for step in steps or [""]}


def unpinned(action: str) -> bool:
    return re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40}", action) is None


def test_the_workflows_call_only_steps_of_the_gate_and_scripts_that_exist():
    asked = [command for _, job in jobs() for command in commands(job)]
    assert [command for command in asked if not_a_script(command)] == []
    assert {".ci/run tests", ".ci/run oldest", ".ci/run proofs", ".ci/release publish"} <= {*asked}
    for wrong in ("pytest", ".ci/run pytest", ".ci/missing", ".ci/constraints.txt", ".ci/release upload"):
        assert not_a_script(wrong)


def test_the_gate_takes_every_step_that_is_taken_at_each_change():
    asked = {call.removeprefix(".ci/run ") for call in called("tests.yml")}
    assert {"tests", "sample", "docs", "lint"} <= asked
    # the gate has some files of the fast suite on the oldest versions
    assert asked - {*gate()} == {"oldest"}
    assert "oldest_sample" in gate()


def test_whatever_the_gate_leaves_out_is_in_the_weekly_workflow_and_that_has_the_gate():
    helpers = ["environment", "install", "timed"]
    steps = [name for name in functions(RUN) if name not in helpers]
    assert len(gate()) == len({*gate()})
    weekly = {f".ci/run {step}" for step in steps if step not in (*gate(), "oldest")}
    assert called("weekly.yml") == {*weekly, ".ci/run ", ".ci/proofs "}
    assert {".ci/run slow", ".ci/run mutants", ".ci/run audit"} <= weekly


def test_the_folder_of_the_gate_has_few_files():
    assert len([*(ROOT / ".ci").iterdir()]) <= 10


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="the gate is written for bash")
def test_a_step_ends_at_its_first_error_the_others_go_on_and_the_gate_fails(tmp_path):
    gate = RUN.read_text("utf-8").replace("\ninstall\n", "\n")
    for name, lines in {"lint": "false", "proofs": "seq 3", "review": "false | true"}.items():
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
    assert ended("proofs") == (0, passed)
    assert ended("lint", "review", "proofs") == (1, sorted(passed + failed))


class Item:
    """A case of a test, as far as its marks go."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid, self.marks = nodeid, [*marks]

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks

    def add_marker(self, name: str) -> None:
        self.marks.append(name)


def test_the_sample_has_the_first_case_of_each_test_that_is_only_slow_and_not_weekly():
    items = [Item(f"a.py::{name}", "slow") for name in ("f[1]", "f[2]", "g", "h[1]", "h[2]")]
    items += [Item("b.py::f[2]", "slow"), Item("b.py::g", "slow", "weekly"), Item("b.py::h[1]", "slow")]
    items += [Item("b.py::h[2]"), Item("b.py::i")]
    items[3].marks.append("weekly")
    load_script(ROOT / "tests" / "conftest.py").pytest_collection_modifyitems(items)
    chosen = [item.nodeid for item in items if "sample" in item.marks]
    assert chosen == ["a.py::f[1]", "a.py::g", "a.py::h[2]", "b.py::f[2]"]


def test_every_weekly_test_says_why_the_gate_leaves_it_out():
    texts = [
        path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)
    ]
    marks = [mark for text in texts for mark in re.findall(r"@pytest\.(mark\.weekly.*)", text)]
    assert len(marks) > 3
    assert [mark for mark in marks if not re.fullmatch(r"mark\.weekly\(reason=\"[^\"]{15,}\"\)", mark)] == []


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
