"""The guide for contributors follows an argument through the package: a call goes the way that it shows."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import dp_metrics
from dp_metrics import PrivacyAccountant, private_mse

PACKAGE = Path(dp_metrics.__file__).parent
GUIDE = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


def shown(argument):
    """Return the files and the functions that the guide names for an argument."""
    block = re.search(rf"```text\n{argument}\n(.*?)```", GUIDE, re.DOTALL)[1]
    return [tuple(line.split()[:2]) for line in block.splitlines()]


@pytest.fixture(scope="module")
def calls():
    """Return what one call of a metric in two stages calls in the package, in order."""
    found = []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            found.append((path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))

    y, prediction = np.random.default_rng(0).normal(size=(2, 5000))
    budget, before = PrivacyAccountant(1.0), sys.getprofile()
    sys.setprofile(note)
    try:
        private_mse(y, prediction, epsilon=1.0, accountant=budget)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("argument", ["y_true", "epsilon"])
def test_a_call_goes_the_way_that_the_guide_shows(calls, argument):
    way, at = shown(argument), 0
    assert 10 < len(way) <= 20
    for step in way:
        assert step in calls[at:], step
        at = calls.index(step, at)


def test_the_guide_the_page_of_the_guarantee_and_the_invitation_to_audits_name_the_same_few_files(calls):
    page = (PACKAGE.parent / "docs" / "guarantee.rst").read_text(encoding="utf-8")
    audit = (PACKAGE.parent / "SECURITY.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"\w+ files hold the promise(.*?)\n\n", page, re.DOTALL)
    files = re.findall(r"^dp_metrics/(\S+\.py) ", GUIDE, re.MULTILINE)
    assert 7 <= len(files) == len({*files}) <= 10
    rooms = ("quantities", "sensitivity", "mechanisms", "_random.py")
    core = {file for file, _ in calls if file.split("/")[0] in rooms}
    tools = {*re.findall(r"\(`(\S+\.py)`\)", GUIDE[GUIDE.index("They use tools") :])}
    assert core <= {*files} | tools
    assert re.findall(r"``([\w/]+\.py)``", listed) == files
    assert re.findall(r"^\| `dp_metrics/([\w/]+\.py)` \|", audit, re.MULTILINE) == files
    lines = [(PACKAGE / name).read_text(encoding="utf-8").splitlines() for name in files]
    assert "under 3,000 lines" in listed
    assert sum(bool(line.strip()) for of_file in lines for line in of_file) < 3000
