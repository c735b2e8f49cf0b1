"""Whatever tells of a file of the benchmarks is right: it is there, or in the commit that is named."""

import csv
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("*.md", ".ci/*", "docs/*", "docs/measured/*", "notebooks/*", "[bdt]*/**/*.py", "*/*/*.toml")
MENTIONED = re.compile(r"(?<!tests/)(benchmarks/\w[\w/.-]*\w)(?:[^`\n]*`+)?(?:\s+of\s+([0-9a-f]{7})\b)?")


def mentions():
    for path in {path for place in PLACES for path in ROOT.glob(place)}:
        if path.is_file() and path.suffix not in (".png", ".pyc"):
            for name, commit in MENTIONED.findall(path.read_text(encoding="utf-8")):
                yield path.relative_to(ROOT).as_posix(), name, commit


def test_a_file_without_a_commit_is_there():
    named = [(text, name) for text, name, commit in mentions() if not commit]
    assert len(named) > 40
    assert [pair for pair in named if not (ROOT / pair[1]).exists()] == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks the repository")
def test_a_file_with_a_commit_is_in_it():
    def is_known(thing):
        command = ["git", "cat-file", "-e", thing]
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0

    named = {(commit, name) for _, name, commit in mentions() if commit}
    assert len(named) > 5
    if not all(map(is_known, {commit for commit, _ in named})):
        pytest.skip("a shallow clone")
    assert [":".join(pair) for pair in named if not is_known(":".join(pair))] == []


def test_what_a_result_tells_without_being_asked_for_proofs_was_measured_to_hold():
    """In 93 % or more, in the worst cell drawn again; of an interval that costs a release all is told."""
    table = (ROOT / "docs" / "measured" / "coverage.inc").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader((line.strip() for line in table[3:]), skipinitialspace=True))
    told = [row for row in rows if "approximate" in row["it is of"] and "_interval" not in row["interval"]]
    assert len(told) > 20
    for row in told:
        assert float((row["again"] or row["least"]).split()[0]) >= 0.93, row
