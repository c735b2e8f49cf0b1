"""The tables of mutants fit the code, and the runner tells what a mutant does to the tests."""

import csv
import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.random_mutants import Row, score

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mutants():
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    yield import_module("mutants")
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def rows(mutants):
    return mutants.all_mutants()


def test_each_mutant_changes_one_place_of_the_code_that_is_there(rows):
    texts = {row.file: (ROOT / row.file).read_text(encoding="utf-8") for row in rows}
    for row in rows:
        row.applied(texts[row.file])


def test_each_mutant_is_there_once_with_a_known_kind_and_with_tests_that_exist(mutants, rows):
    assert len({row.key for row in rows}) == len({(row.file, row.fear) for row in rows}) == len(rows) >= 100
    assert {row.kind for row in rows} == mutants.KINDS.keys()
    tests = {test for row in rows for test in (*row.first, *row.wider)}
    assert [test for test in tests if not (ROOT / test.partition("::")[0]).exists()] == []
    for file, name in (test.split("::") for test in tests if "::" in test):
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_a_mutant_must_fit(mutants):
    row = mutants.Mutant("f.py", "rank", "", "k", "k + 1", ("t",), ("t",))
    assert row.applied("x = k") == "x = k + 1"
    for text in ("x = 1", "x = k + k"):
        with pytest.raises(ValueError, match="must stand there once"):
            row.applied(text)
    with pytest.raises(SyntaxError):
        mutants.Mutant("f.py", "rank", "", "k", "k +", ("t",), ("t",)).applied("x = k")


@pytest.fixture
def project(tmp_path):
    """Return a project of one function, with a test that notices half of what may happen to it."""
    (tmp_path / "code.py").write_text("def last(n):\n    return n - 1\n")
    (tmp_path / "test_first.py").write_text("def test_nothing():\n    pass\n")
    (tmp_path / "test_wider.py").write_text(
        "import sys\nsys.path.insert(0, '.')\n\n"
        "def test_last():\n    from code import last\n    assert last(2) < 2\n"
    )
    return tmp_path


@pytest.mark.slow
@pytest.mark.weekly(reason="the gate's step `mutants_sample` tries mutants of the package")
def test_a_mutant_is_noticed_or_survives_and_is_taken_out_again(mutants, project):
    before = (project / "code.py").read_text()
    for becomes, fate in (("n - 0", "killed"), ("n - 2", "survived")):
        row = mutants.Mutant("code.py", "rank", "", "n - 1", becomes, ("test_first.py",), ("test_wider.py",))
        verdict = mutants.judged(project, row)
        assert verdict.fate == fate
        if fate == "killed":
            assert (verdict.by, verdict.stage) == ("test_wider.py::test_last", "wider")
        assert (project / "code.py").read_text() == before
    (project / "code.py").write_text("def last(n):\n    return n\n")
    row = mutants.Mutant("code.py", "rank", "", "n", "n", ("test_wider.py",), ())
    with pytest.raises(RuntimeError, match=r"test_wider\.py::test_last is killed"):
        mutants.refuse_if_red(project, [row])


def test_the_score_and_the_page(mutants, tmp_path):
    rows = [
        mutants.Mutant("dp_metrics/a/b.py", "rank", f"fear {i}", "x", str(i), ("t",), ("t",), equivalent=why)
        for i, why in enumerate(["", "", "because", ""])
    ]
    fates, path = ("killed", "timed out", "survived", "survived"), tmp_path / "verdicts.jsonl"
    lines = [
        json.dumps({"key": row.key, "fate": fate, "stage": "first"})
        for row, last in zip(rows, fates, strict=True)
        for fate in ("survived", last)  # the last verdict counts
    ]
    path.write_text("\n".join(lines) + "\n")
    verdicts = mutants.read_verdicts(path)
    score = mutants.score(rows, verdicts)
    assert "2 of 4 mutants are noticed (50.0%), 1 of them by the time limit" in score
    assert "1 are equivalent, and of the other 3 66.7% are noticed" in score
    page = mutants.page(rows, verdicts)
    assert "fear 2. Equivalent: because" in page
    assert "fear 3. **Not noticed.**" in page


def test_the_page_tells_the_score_of_the_random_mutants():
    with (ROOT / "benchmarks" / "mutants" / "random_2026-11-22.csv").open(encoding="utf-8") as file:
        rows = [Row(**row) for row in csv.DictReader(file)]
    survivors = [row for row in rows if row.verdict not in ("killed", "timed out")]
    assert all(row.note.startswith(("Equivalent: ", "Gap: ")) for row in survivors)
    page = " ".join((ROOT / "docs" / "audit.rst").read_text(encoding="utf-8").split())
    assert score(rows) in page
