"""Mutants: defects that an expert would fear, put into the code one by one, and the tests that notice them.

Maintained tools (mutmut, cosmic-ray) make mutants of the syntax: most of theirs are uninteresting here, many are equivalent,
and none of them spends after the draw, reuses a draw or puts a value into a message. So the mutants are written by hand, in
`benchmarks/mutants/*.toml`: a text that stands exactly once in a file, what it becomes, and what that would break.

Each one is put into a copy of the package, where first the tests named for it or for its file run, and if they pass, wider
ones. Hypothesis takes the same examples in every run; tests of the operating system's noise may differ, with probability
below 1e-6. A mutant that hangs until the time limit counts as noticed, and is told apart.

    python benchmarks/mutants.py --output results --page docs/mutant_table.inc
    python benchmarks/mutants.py --only accounting --output results
    python benchmarks/mutants.py --sample 8 --seed 0
"""

import argparse
import ast
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

from tqdm import tqdm

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "benchmarks" / "mutants"
_NEEDED = ("dp_metrics", "tests", "benchmarks", "docs", "conftest.py", "pyproject.toml", "README.md")
_SECONDS = {"first": 200, "wider": 600}  # time limits of the tests
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?: - .*)?$", re.MULTILINE)
KINDS = {
    "rank": "a rank off by one",
    "share": "a wrong share of epsilon, or a wrong sensitivity",
    "rounding": "rounded the wrong way, or not exactly",
    "block": "a block, a cell or a merge forgotten",
    "spend": "spent after the draw, not at all, or twice",
    "state": "state kept from call to call",
    "draw": "a draw reused, or of the wrong law",
    "inferred": "a public setting inferred from the data",
    "message": "a value or a data-dependent event in a message",
    "clipping": "a limit of a record, or of a result, forgotten",
    "limits": "limits that are missed too often",
}


@dataclass(frozen=True)
class Mutant:
    """One row of a table, with the tests that run first and those that a survivor meets."""

    file: str
    kind: str
    fear: str
    was: str
    becomes: str
    first: tuple[str, ...]
    wider: tuple[str, ...]
    slow: bool = False  # whether slow ones are among the first tests
    equivalent: str = ""

    @property
    def folder(self) -> str:
        """The folder of the package, or the file beside the folders."""
        return Path(self.file).parts[1].removesuffix(".py")

    def applied(self, text: str) -> str:
        """Return the text of the file with this mutant in it."""
        if text.count(self.was) != 1:
            raise ValueError(f"{self.file}: this text must stand there once: {self.was!r}")
        mutated = text.replace(self.was, self.becomes)
        if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(text)):
            raise ValueError(f"{self.file}: this changes nothing: {self.was!r}")
        return mutated


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `fate` is killed, timed out or survived."""

    file: str
    kind: str
    fear: str
    fate: str
    by: str = ""
    stage: str = ""
    equivalent: str = ""

    def __str__(self) -> str:
        return f"{self.fate:9} {self.file}: {self.fear} [{self.by or self.equivalent}]"


def read_table(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of one table."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    first, wider = table["first"], tuple(table["wider"])
    for row in table["mutant"]:
        tests = row.pop("tests", first.get(Path(row["file"]).name, first.get("*")))
        yield Mutant(**row, first=tuple(tests), wider=wider)


def all_mutants() -> list[Mutant]:
    """Return the mutants of all tables."""
    return [mutant for path in sorted(TABLES.glob("*.toml")) for mutant in read_table(path)]


@contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """Put a mutant into a copy of the project, and take it out again."""
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    try:
        _write(path, mutant.applied(text))
        yield
    finally:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    # bytecode is dated to the second, and two versions of a file may have one length
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)


def run_tests(copy: Path, tests: Iterable[str], *, stage: str, slow: bool = False) -> tuple[str, str]:
    """Run tests in a copy; return "survived", "killed" or "timed out", and the test that failed."""
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--tb=no"]
    command = [sys.executable, "-m", "pytest", *options, *(["-m", ""] if slow else []), *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "DP_METRICS_FAST": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=_SECONDS[stage]
        )
    except subprocess.TimeoutExpired:
        return "timed out", ""
    if done.returncode == 0:
        return "survived", ""
    failed = _FAILED.findall(done.stdout)
    if done.returncode not in (1, 2) or not failed:
        raise RuntimeError(f"pytest did not run:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return "killed", failed[0]


def judged(copy: Path, mutant: Mutant) -> Verdict:
    """Run the tests of a mutant: the first ones, and the wider ones if they pass."""
    with mutated(copy, mutant):
        stage = "first"
        fate, by = run_tests(copy, mutant.first, stage=stage, slow=mutant.slow)
        if fate == "survived":
            stage = "wider"
            fate, by = run_tests(copy, mutant.wider, stage=stage)
    public = {name: getattr(mutant, name) for name in ("file", "kind", "fear", "equivalent")}
    verdict = Verdict(**public, fate=fate, by=by, stage="" if fate == "survived" else stage)
    tqdm.write(str(verdict))
    return verdict


def judge(mutants: Sequence[Mutant], jobs: int) -> list[Verdict]:
    """Run all mutants, in as many copies of the project as there are jobs."""
    for mutant in mutants:
        mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(_copied(Path(folder) / str(number)))

        def one(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return judged(copy, mutant)
            finally:
                copies.put(copy)

        refuse_if_red(copies.queue[0], mutants)
        with ThreadPoolExecutor(jobs) as pool:
            return list(tqdm(pool.map(one, mutants), total=len(mutants), desc="mutants"))


def _copied(to: Path) -> Path:
    to.mkdir()
    for name in _NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, to / name)
    return to


def refuse_if_red(copy: Path, mutants: Sequence[Mutant]) -> None:
    """Raise unless the first tests of all mutants pass without a mutant."""
    tests = dict.fromkeys((test, mutant.slow) for mutant in mutants for test in mutant.first)
    for test, slow in tqdm(tests, desc="without mutants"):
        fate, by = run_tests(copy, [test], stage="first", slow=slow)
        if fate != "survived":
            raise RuntimeError(f"Without a mutant {by or test} {fate}.")


def score(verdicts: Sequence[Verdict]) -> str:
    """Return how many mutants are noticed, of all and of those that are no equivalents."""
    found = sum(verdict.fate != "survived" for verdict in verdicts)
    real = sum(not verdict.equivalent for verdict in verdicts)
    late = sum(verdict.fate == "timed out" for verdict in verdicts)
    return (
        f"{found} of {len(verdicts)} noticed ({found / len(verdicts):.1%}), {late} of them by the time limit; "
        f"{len(verdicts) - real} are equivalent: {found / max(real, 1):.1%} of the other {real}"
    )


def page(verdicts: Sequence[Verdict]) -> str:
    """Return tables for the documentation: by kind, by folder, and who survived."""
    lines = [score(verdicts) + ".", ""]
    names = {kind: f"{kind}: {text}" for kind, text in KINDS.items()}
    lines += _counted("Kind", [(names[verdict.kind], verdict) for verdict in verdicts])
    lines += _counted("Folder", [(Path(verdict.file).parts[1], verdict) for verdict in verdicts])
    for verdict in verdicts:
        if verdict.fate == "survived":
            why = f"Equivalent: {verdict.equivalent}" if verdict.equivalent else "**Not noticed.**"
            lines.append(f"- ``{verdict.file}``: {verdict.fear}. {why}")
    return "\n".join(lines) + "\n"


def _counted(title: str, named: Iterable[tuple[str, Verdict]]) -> list[str]:
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for name, verdict in named:
        groups[name].append(verdict)
    columns = ("mutants", "noticed", "by the first tests", "equivalent")
    lines = [".. list-table::", "   :header-rows: 1", "", f"   * - {title}", *(f"     - {c}" for c in columns)]
    for name, group in sorted(groups.items()):
        fates = Counter(verdict.fate for verdict in group)
        first = sum(verdict.stage == "first" for verdict in group)
        equivalent = sum(bool(verdict.equivalent) for verdict in group)
        cells = (len(group), len(group) - fates["survived"], first, equivalent)
        lines += [f"   * - {name}", *(f"     - {cell}" for cell in cells)]
    return [*lines, ""]


def write(verdicts: Sequence[Verdict], folder: Path) -> None:
    """Write the verdicts, a file for each folder of the package."""
    folder.mkdir(parents=True, exist_ok=True)
    by_folder: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_folder[Path(verdict.file).parts[1].removesuffix(".py")].append(verdict)
    for name, group in by_folder.items():
        rows = [asdict(verdict) for verdict in group]
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def read(folder: Path) -> list[Verdict]:
    """Return the verdicts on all mutants, or raise if some are missing or of other mutants."""
    rows = [row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text("utf-8"))]
    verdicts = [Verdict(**row) for row in rows]
    if {(v.file, v.fear) for v in verdicts} != {(m.file, m.fear) for m in all_mutants()}:
        raise ValueError("These are not the verdicts on all mutants: run those that are missing.")
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="FOLDER", help="mutants of this folder or file of the package")
    parser.add_argument("--sample", type=int, metavar="K", help="so many mutants, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="DIR", help="for the verdicts, as JSON by folder")
    parser.add_argument("--page", type=Path, metavar="FILE", help="tables of all verdicts in the output")
    options = parser.parse_args()
    mutants = [m for m in all_mutants() if options.only in (None, m.folder, m.file)]
    if options.sample is not None:
        real = [mutant for mutant in mutants if not mutant.equivalent]
        mutants = random.Random(options.seed).sample(real, options.sample)
    verdicts = judge(mutants, options.jobs)
    print(score(verdicts))
    if options.output:
        write(verdicts, options.output)
    if options.page:
        options.page.write_text(page(read(options.output)), encoding="utf-8")
    if any(verdict.fate == "survived" and not verdict.equivalent for verdict in verdicts):
        sys.exit("Some mutants survived.")


if __name__ == "__main__":
    main()
