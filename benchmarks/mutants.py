"""Mutants: defects that an expert would fear, put into the code one by one, and the tests that notice them.

Maintained tools (mutmut, cosmic-ray) make mutants of the syntax: most of theirs are uninteresting here, many
are equivalent, and none of them spends after the draw, reuses a draw or puts a value into a message. So the
mutants are written by hand, in `benchmarks/mutants/*.toml`: a text that stands exactly once in a file, what
it becomes, and what that would break. These rows are a living sample, with one at least for each module and
for each kind of defect in each folder; `judged_2026-11-22.csv` of 308a3eb has the verdicts on 436.

Each one is put into a copy of the project, where first the tests named for it or for its file run, and if
they pass, wider ones. Hypothesis takes the same examples in every run; tests of the operating system's noise
may differ, with probability below 1e-6. A mutant that hangs until the time limit counts as noticed, and is
told apart.

    python benchmarks/mutants.py --output verdicts.jsonl --page docs/mutant_table.inc
    python benchmarks/mutants.py --only accounting
    python benchmarks/mutants.py --sample 8 --seed 0

A run with an output that exists goes on: what was noticed there is not run again.
"""

import argparse
import hashlib
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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

from tqdm import tqdm

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "benchmarks" / "mutants"
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__")
_SECONDS = {"first": 240, "wider": 900}  # time limits of the tests
# what holds for every folder, and meets each mutant that is not noticed before
_NETS = (
    "tests/test_frozen_releases.py",
    "tests/test_refusals.py",
    "tests/test_privacy.py",
    "tests/test_matrix.py",
    "tests/model",
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
KINDS = {
    "rank": "a rank off by one, or of the other side",
    "share": "a wrong share of epsilon, or a wrong sensitivity",
    "rounding": "rounded the wrong way, or not exactly",
    "block": "a block, a cell, a merge or a check forgotten",
    "spend": "spent after the draw, not at all, or twice",
    "state": "state kept from call to call",
    "draw": "a draw reused, or of another law",
    "inferred": "a public setting inferred from the data, or a private number taken for a public one",
    "message": "a value, or an event that depends on the data, where people can see it",
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
    slow: bool = False  # whether slow tests run too
    equivalent: str = ""

    @property
    def key(self) -> str:
        """Name of the change, in the output."""
        return hashlib.sha256("\0".join((self.file, self.was, self.becomes)).encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """The folder of the package, or the file beside the folders."""
        return Path(self.file).parts[1].removesuffix(".py")

    def applied(self, text: str) -> str:
        """Return the text of the file with this mutant in it."""
        if text.count(self.was) != 1:
            raise ValueError(f"{self.file}: this text must stand there once: {self.was!r}")
        mutated = text.replace(self.was, self.becomes)
        compile(mutated, self.file, "exec")
        return mutated


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `fate` is "killed", "timed out" or "survived"."""

    key: str
    fate: str
    by: str = ""
    stage: str = ""


def read_table(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of one table."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    first, wider = table["first"], (*_NETS, *table["wider"])
    for row in table["mutant"]:
        tests = row.pop("tests", None) or first.get(Path(row["file"]).name) or first["*"]
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
        write(path, mutant.applied(text))
        yield
    finally:
        write(path, text)


def write(path: Path, text: str) -> None:
    """Write a file of code, and forget its bytecode."""
    path.write_text(text, encoding="utf-8")
    # bytecode is dated to the second, and two versions of a file may have one length
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)


def run_tests(copy: Path, tests: Iterable[str], *, seconds: float | None, slow: bool) -> tuple[str, str]:
    """Run tests in a copy as the gate does; return "survived", "killed" or "timed out", and what failed."""
    chosen = "" if slow else "not slow or sample"
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--tb=no", "-m", chosen]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return "timed out", ""
    if done.returncode == 0:
        return "survived", ""
    failed = _FAILED.findall(done.stdout)
    if not failed or "::" not in failed[0]:
        raise RuntimeError(f"The tests did not run:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return "killed", failed[0]


def judged(copy: Path, mutant: Mutant) -> Verdict:
    """Run the tests of a mutant: the first ones, and the wider ones if they pass."""
    with mutated(copy, mutant):
        for stage, tests in {"first": mutant.first, "wider": mutant.wider}.items():
            fate, by = run_tests(copy, tests, seconds=_SECONDS[stage], slow=mutant.slow)
            if fate != "survived":
                return Verdict(mutant.key, fate, by, stage)
    return Verdict(mutant.key, "survived")


def judge(mutants: Sequence[Mutant], jobs: int, keep: Callable[[Verdict], object]) -> None:
    """Run mutants, in as many copies of the project as there are jobs."""
    for mutant in mutants:  # all of them fit, before the first one runs
        mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copied(Path(folder) / str(number)))

        def one(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return judged(copy, mutant)
            finally:
                copies.put(copy)

        refuse_if_red(copies.queue[0], mutants)
        with ThreadPoolExecutor(jobs) as pool:
            bar = tqdm(pool.map(one, mutants), total=len(mutants), desc="mutants")
            for mutant, verdict in zip(mutants, bar, strict=True):
                tqdm.write(
                    f"{verdict.fate:9} {mutant.file}: {mutant.fear} [{verdict.by or mutant.equivalent}]"
                )
                keep(verdict)


def copied(to: Path) -> Path:
    """Copy the project, where a mutant can be put into it."""
    return shutil.copytree(ROOT, to, ignore=_NOT_COPIED)


def refuse_if_red(copy: Path, mutants: Sequence[Mutant]) -> None:
    """Raise unless the first tests of all mutants pass without a mutant."""
    for slow in (False, True):
        tests = {test: None for mutant in mutants for test in mutant.first if mutant.slow == slow}
        fate, by = run_tests(copy, tests, seconds=None, slow=slow) if tests else ("survived", "")
        if fate != "survived":
            raise RuntimeError(f"Without a mutant {by} is {fate}.")


def score(mutants: Sequence[Mutant], verdicts: Mapping[str, Verdict]) -> str:
    """Return how many mutants are noticed, of all and of those that are no equivalents."""
    fates = [verdicts[mutant.key].fate for mutant in mutants]
    n, found, late = len(fates), len(fates) - fates.count("survived"), fates.count("timed out")
    real = sum(not mutant.equivalent for mutant in mutants)
    return (
        f"{found} of {n} mutants are noticed ({found / n:.1%}), {late} of them by the time limit; "
        f"{n - real} are equivalent, and of the other {real} {found / max(real, 1):.1%} are noticed."
    )


def page(mutants: Sequence[Mutant], verdicts: Mapping[str, Verdict]) -> str:
    """Return tables for the documentation: by kind, by folder, and who survived."""
    lines = [score(mutants, verdicts), ""]
    lines += _counted("Kind", lambda mutant: f"{mutant.kind}: {KINDS[mutant.kind]}", mutants, verdicts)
    lines += _counted("Folder or file", lambda mutant: f"``{mutant.folder}``", mutants, verdicts)
    for mutant in mutants:
        if verdicts[mutant.key].fate == "survived":
            why = f"Equivalent: {mutant.equivalent}" if mutant.equivalent else "**Not noticed.**"
            lines.append(f"- ``{mutant.file}``: {mutant.fear}. {why}")
    return "\n".join(lines) + "\n"


def _counted(
    title: str,
    name: Callable[[Mutant], str],
    mutants: Sequence[Mutant],
    verdicts: Mapping[str, Verdict],
) -> list[str]:
    groups: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        groups[name(mutant)].append(mutant)
    columns = ("mutants", "noticed", "by the first tests", "equivalent")
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        "",
        f"   * - {title}",
        *(f"     - {c}" for c in columns),
    ]
    for title, group in sorted(groups.items()):
        of_group = [verdicts[mutant.key] for mutant in group]
        cells = (
            len(group),
            sum(verdict.fate != "survived" for verdict in of_group),
            sum(verdict.stage == "first" for verdict in of_group),
            sum(bool(mutant.equivalent) for mutant in group),
        )
        lines += [f"   * - {title}", *(f"     - {cell}" for cell in cells)]
    return [*lines, ""]


def read_verdicts(path: Path | None) -> dict[str, Verdict]:
    """Return the last verdict on each change in a file, by its key."""
    if path is None or not path.exists():
        return {}
    verdicts = [Verdict(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {verdict.key: verdict for verdict in verdicts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="FOLDER", help="mutants of this folder or file of the package")
    parser.add_argument("--sample", type=int, metavar="K", help="so many mutants that are no equivalents")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="for the verdicts, one line of JSON each")
    parser.add_argument("--page", type=Path, metavar="FILE", help="tables for the documentation")
    options = parser.parse_args()
    mutants = [m for m in all_mutants() if options.only in (None, m.folder, m.file)]
    if not mutants:
        parser.error(
            f"no mutant is of {options.only}: pass a folder of the package, or a file from dp_metrics/ on"
        )
    if options.sample is not None:
        real = [mutant for mutant in mutants if not mutant.equivalent]
        mutants = random.Random(options.seed).sample(real, options.sample)
    verdicts = read_verdicts(options.output)

    def keep(verdict: Verdict) -> None:
        verdicts[verdict.key] = verdict
        if options.output:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")

    known = {key for key, verdict in verdicts.items() if verdict.fate != "survived"}
    judge([mutant for mutant in mutants if mutant.key not in known], options.jobs, keep)
    print(score(mutants, verdicts))
    if options.page:
        options.page.write_text(page(mutants, verdicts), encoding="utf-8")
    if any(verdicts[m.key].fate == "survived" and not m.equivalent for m in mutants):
        sys.exit("Some mutants survived.")


if __name__ == "__main__":
    main()
