r"""Random mutants: changes of the syntax that nobody chose, and the tests that notice them.

The mutants of `mutants.py` are what an expert fears, and who wrote them knew the code. These are drawn at
random from all that cosmic-ray makes of the code between a metric and its noise: each place has the same
chance, and so has each mutant of a place. Places in annotations, which no test can notice, are left out
before the draw, and so are mutants that do not compile. cosmic-ray lists all mutants with their places and
puts one into a text without running anything, so that a few can be drawn and tests chosen for each. mutmut
leaves out what stands outside of functions and decorated functions, and chooses the tests itself.

    pip install cosmic-ray==8.7.0 coverage==7.17.3; mkdir reach
    python -m coverage run --data-file reach/lines --include "dp_metrics/*" \
        -m pytest -n 0 -m "not slow or sample" -p benchmarks.random_mutants --passed reach/passed.json
    python -m benchmarks.random_mutants reach verdicts.csv --count 200 --seed 0 --jobs 2

The first run writes which test reaches which line, and how long it takes. The second puts each mutant into a
copy of the project and runs tests that reach its statement, until one fails: those of its own folder, then
the frozen releases, then the others, of each the fast ones first and as many as take 10 seconds. A statement
that runs at import has the tests that reach its function, its class or its module. After 60 seconds a mutant
is "timed out", a class of its own. A run goes on where it was interrupted; with `--patient`, survivors and
mutants that timed out meet all tests that reach them, for 15 minutes at most.
"""

import argparse
import ast
import csv
import difflib
import json
import math
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from benchmarks.mutants import ROOT, copied, run_tests, write

FILES = ("sensitivity/**/*.py", "mechanisms/**/*.py", "release/**/*.py", "accounting/**/*.py", "_random.py")
SECONDS, SECONDS_OF_GROUP, PATIENCE = 60, 10, 900


@dataclass(frozen=True)
class Row:
    """One mutant, and what became of it: "killed", "timed out" or "survived"."""

    file: str
    line: int
    operator: str
    occurrence: int
    was: str = ""
    becomes: str = ""
    verdict: str = ""
    by: str = ""
    note: str = ""

    def applied(self, text: str) -> str:
        """Return the text of the file with this mutant in it."""
        from cosmic_ray.mutating import MutationVisitor
        from cosmic_ray.plugins import get_operator

        return MutationVisitor.mutate_code(text, get_operator(self.operator)(), int(self.occurrence))


def drawn(count: int, seed: int, root: Path = ROOT) -> list[Row]:
    """Draw places at random, and for each place one of its mutants that compile."""
    rng = random.Random(seed)
    places = sorted(_places(root).items())
    rng.shuffle(places)
    rows = (_some_mutant(rng, root, *place, mutants) for place, mutants in places)
    return [row for row, _ in zip(filter(None, rows), range(count), strict=False)]


def _places(root: Path) -> dict[Any, list[tuple[str, int]]]:
    """Return each place in the code, with the operators that change it and how often each came before."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import WorkDB

    paths = [path for pattern in FILES for path in (root / "dp_metrics").glob(pattern)]
    annotations = {path: list(_annotations(path)) for path in paths}
    init(paths, session := WorkDB(":memory:", WorkDB.Mode.create), {})
    places = defaultdict(list)
    for mutation in (item.mutations[0] for item in session.work_items):
        path, start = mutation.module_path, tuple(mutation.start_pos)
        if not any(first <= start < last for first, last in annotations[path]):
            place = path.relative_to(root).as_posix(), start, tuple(mutation.end_pos)
            places[place].append((mutation.operator_name, mutation.occurrence))
    return {place: sorted(mutants) for place, mutants in places.items()}


def _annotations(path: Path) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for found in filter(None, (getattr(node, "annotation", None), getattr(node, "returns", None))):
            yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def _some_mutant(
    rng: random.Random, root: Path, file: str, start: tuple, end: tuple, mutants: list[tuple[str, int]]
) -> Row | None:
    text = (root / file).read_text(encoding="utf-8")
    for operator, occurrence in rng.sample(mutants, len(mutants)):
        row = Row(file, start[0], operator, occurrence)
        try:
            compile(after := row.applied(text), file, "exec")
        except SyntaxError:
            continue
        changed = list(difflib.ndiff(text.splitlines(), after.splitlines()))
        was, becomes = (" ".join(x[2:].strip() for x in changed if x[0] == sign) for sign in "-+")
        return replace(row, was=was, becomes=becomes) if was != becomes else None
    return None


class Reach:
    """Which test reaches which line, and how long it takes."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(folder / "lines"))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((folder / "passed.json").read_text(encoding="utf-8"))

    @cache  # noqa: B019  # there is one object
    def _lines(self, file: str) -> dict[int, set[str]]:
        name = next(name for name in self._data.measured_files() if name.endswith(f"/{file}"))
        lines = self._data.contexts_by_lineno(name)
        return {line: self._seconds.keys() & tests for line, tests in lines.items()}

    def tests(self, row: Row, everything: bool) -> list[list[str]]:
        """Return groups of tests that reach a mutant: all, or as many of each as there is time for."""
        lines, chosen = self._lines(row.file), []
        for first, last in around(ast.parse((ROOT / row.file).read_text(encoding="utf-8")), int(row.line)):
            if left := set().union(*(lines.get(line, ()) for line in range(first, last + 1))):
                break
        folder = Path(row.file).parts[1].removesuffix(".py")
        for group in (f"tests/(test)?{folder}[/.]", "tests/test_frozen_releases", ""):
            tests = sorted((test for test in left if re.match(group, test)), key=self._seconds.__getitem__)
            left = left.difference(tests)
            total, cases = 0.0, Counter[str]()
            ranks = {}
            for test in tests:  # the fastest case of each function, then the second ones
                cases[function := test.partition("[")[0]] += 1
                ranks[test] = cases[function], self._seconds[test], test
            chosen.append([])
            for test in sorted(tests, key=ranks.__getitem__):
                total += self._seconds[test]
                if everything or total < SECONDS_OF_GROUP:
                    chosen[-1].append(test)
        return [group for group in chosen if group]


def around(tree: ast.Module, line: int) -> list[tuple[int, int]]:
    """Return the first and last line of the statement at a line; at import, of what is defined around it."""
    kinds = (ast.stmt, ast.ExceptHandler)
    inside = [n for n in ast.walk(tree) if isinstance(n, kinds) and _first(n) <= line <= n.end_lineno]
    node = inside[-1]
    if any(isinstance(outer, ast.FunctionDef) for outer in inside[:-1]):
        body = getattr(node, "body", None)
        return [(_first(node), max(node.lineno, body[0].lineno - 1) if body else node.end_lineno)]
    defined = [n for n in reversed(inside) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return [*((n.lineno, n.end_lineno) for n in defined), (1, tree.body[-1].end_lineno)]


def _first(node: Any) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def judged(copy: Path, row: Row, groups: list[list[str]], seconds: float) -> Row:
    """Put a mutant into a copy, run groups of tests until one test fails, and take it out again."""
    if not groups:
        return replace(row, verdict="survived", note="No test reaches it.")
    path, chosen, end = copy / row.file, copy / "chosen.txt", time.monotonic() + seconds
    options = ["-p", "benchmarks.random_mutants", "--chosen", str(chosen)]
    text = path.read_text(encoding="utf-8")
    try:
        write(path, row.applied(text))
        for tests in groups:
            chosen.write_text("\n".join(tests), encoding="utf-8")
            files = dict.fromkeys(test.partition("::")[0] for test in tests)
            left = max(end - time.monotonic(), 0.0)
            verdict, by = run_tests(copy, [*options, *files], seconds=left, slow=False)
            if verdict != "survived":
                break
    except RuntimeError:
        verdict, by = "killed", "the import of the package or of a test"
    finally:
        write(path, text)
    return replace(row, verdict=verdict, by=by)


def judge(rows: list[Row], reach: Reach, path: Path, jobs: int, patient: bool) -> None:
    """Judge the rows without a verdict, or with patience those that passed, and write each at once."""
    judging = {"survived", "timed out"} if patient else {""}
    todo = [i for i, row in enumerate(rows) if row.verdict in judging]
    tests = {i: reach.tests(rows[i], everything=patient) for i in todo}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copied(Path(folder) / str(number)))

        def one(i: int) -> tuple[int, Row]:
            copy = copies.get()
            try:
                return i, judged(copy, rows[i], tests[i], PATIENCE if patient else SECONDS)
            finally:
                copies.put(copy)

        for i, rows[i] in pool.map(one, todo):
            row = rows[i]
            print(row.verdict, f"{row.file}:{row.line}", row.becomes, row.by, sep="  ", flush=True)
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
                writer.writeheader()
                writer.writerows(map(asdict, rows))


def score(rows: list[Row]) -> str:
    """Return the share of mutants that are noticed, with Wilson's 95 % interval."""
    fates = Counter(row.verdict for row in rows)
    n, late, z = len(rows), fates["timed out"], 1.959964
    noticed = fates["killed"] + late
    middle, half = noticed + z * z / 2, z * math.sqrt(noticed * (n - noticed) / n + z * z / 4)
    low, high = (middle - half) / (n + z * z), (middle + half) / (n + z * z)
    share = f"{noticed / n:.1%}, {low:.1%} to {high:.1%}"
    return f"{noticed} of {n} mutants are noticed ({share}), {late} of them by the time limit"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reach", type=Path, help="the folder of the first run")
    parser.add_argument("verdicts", type=Path, help="a CSV file; a run goes on with one that exists")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--patient", action="store_true", help="show survivors all tests that reach them")
    options = parser.parse_args()
    if options.verdicts.exists():
        with options.verdicts.open(encoding="utf-8", newline="") as file:
            rows = [Row(**row) for row in csv.DictReader(file)]
    else:
        rows = drawn(options.count, options.seed)
    judge(rows, Reach(options.reach), options.verdicts, options.jobs, options.patient)
    print(score(rows))


# The rest is a plugin of pytest, which both runs load.
_SECONDS: Counter[str] = Counter()
_FAILED: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chosen", type=Path, help="a file with the tests to run, in this order")
    parser.addoption("--passed", type=Path, help="a file for the seconds of each test that passes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if path := config.getoption("--chosen"):
        known = {item.nodeid: item for item in items}
        items[:] = [known[name] for name in path.read_text(encoding="utf-8").split("\n")]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.config.getoption("--passed"):
        from coverage import Coverage

        Coverage.current().switch_context(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _SECONDS[report.nodeid] += report.duration
    if not report.passed:
        _FAILED.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if path := session.config.getoption("--passed"):
        path.write_text(json.dumps({test: s for test, s in _SECONDS.items() if test not in _FAILED}))


if __name__ == "__main__":
    main()
