"""Many processes on one budget file, and spenders that are killed."""

import json
import os
import random
import signal
import sqlite3
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from dp_metrics import PrivacyAccountant, PrivacyBudgetError, private_accuracy_score
from faults.findings import Finding, Size, held, processes

__all__ = ["Audit", "Grant", "audited", "eight", "kill"]

TOTAL = Fraction(10)
PART = Fraction(1, 100_000)
GRAIN = 10**9  # spends from the whole are so many parts of 1, so that it can be used up exactly
SPENDERS = 8
DRAINED = 0.9  # of the time, after which all ask for what is left

LABELS, GUESSES = [0, 1] * 50, [0, 0, 1, 1] * 25


@dataclass
class Tally:
    """What one spender saw."""

    waits: list[float] = field(default_factory=list)
    openings: list[float] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    last_sum: str = ""


class Grant(NamedTuple):
    """A spend that its process was told of; the name of its part is empty for the whole."""

    label: str
    part: str
    epsilon: Fraction


def written(log: int, grant: Grant) -> None:
    """Write down a grant before it is used."""
    os.write(log, f"{grant.label}\t{grant.part}\t{grant.epsilon}\n".encode())


def _read(folder: Path) -> list[Grant]:
    lines = [line for path in sorted(folder.glob("log *")) for line in path.read_text().splitlines()]
    return [Grant(a, b, Fraction(c)) for a, b, c in (line.split("\t") for line in lines)]


def _opened(folder: Path, number: int) -> int:
    return os.open(folder / f"log {number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _fraction(text: str) -> Fraction:
    """Return a number as the file spells it; the package's own reader is not asked."""
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))


class Audit(NamedTuple):
    """What a budget file holds, read without the package, beside what processes were granted."""

    integrity: str
    granted: int
    is_each_recorded_once: bool
    is_added_up: bool
    is_within: bool
    without_grant: int
    spent: Fraction
    divisions: int
    is_each_paid_once: bool
    parts_used_up: int

    @property
    def findings(self) -> list[Finding]:
        """Return what was promised."""
        return [
            Finding("SQLite's integrity check", self.integrity, self.integrity == "ok"),
            Finding("spends granted", f"{self.granted:,}"),
            held("each grant recorded once, with its epsilon and part", self.is_each_recorded_once),
            held("records add up to what is spent, exactly", self.is_added_up),
            held("no total exceeded, of the whole or of a part", self.is_within),
            Finding(
                "divisions into two parts, each paid once", f"{self.divisions:,}", self.is_each_paid_once
            ),
            Finding("parts used up exactly", f"{self.parts_used_up:,}"),
        ]


def audited(path: Path, total: Fraction, grants: list[Grant]) -> Audit:
    """Compare a budget file with the grants."""
    with closing(sqlite3.connect(path)) as db:
        integrity = db.execute("PRAGMA integrity_check").fetchone()[0]
        [(total_text, spent_text)] = db.execute("SELECT total, spent FROM budget")
        whole = [Grant(a, "", _fraction(b)) for a, b in db.execute("SELECT label, epsilon FROM history")]
        rows = db.execute("SELECT id, name, total, spent FROM parts")
        parts = {part: (name, _fraction(each), _fraction(used)) for part, name, each, used in rows}
        rows = db.execute("SELECT part, label, epsilon FROM part_history")
        of_parts = [Grant(label, parts[part][0], _fraction(epsilon)) for part, label, epsilon in rows]
    recorded, granted = Counter(whole + of_parts), Counter(grants)
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for grant in of_parts:
        sums[grant.part] += grant.epsilon
    divisions = [grant for grant in whole if grant.label.startswith("parallel: ")]
    spent = sum((grant.epsilon for grant in whole), Fraction(0))
    return Audit(
        integrity=integrity,
        granted=len(grants),
        is_each_recorded_once=all(recorded[grant] == count == 1 for grant, count in granted.items()),
        is_added_up=spent == _fraction(spent_text)
        and all(sums[name] == used for name, _, used in parts.values()),
        is_within=spent <= _fraction(total_text) == total
        and all(used <= each for _, each, used in parts.values()),
        without_grant=len(whole + of_parts) - len(divisions) - len(grants),
        spent=spent,
        divisions=len(divisions),
        is_each_paid_once=len({grant.label for grant in divisions}) == len(divisions) == len(parts) / 2,
        parts_used_up=sum(used == each for _, each, used in parts.values()),
    )


def _names(number: int) -> list[str]:
    return [f"{number} a", f"{number} b"]


class Spender:
    """One process of many: it spends from the whole and from parts, asks for too much, and opens anew."""

    def __init__(self, path: Path, number: int, seconds: float) -> None:
        self._path, self._number, self._seconds = path, number, seconds
        self._rng, self._log, self.tally = random.Random(), _opened(path.parent, number), Tally()
        self._budget = self._open()
        self._start = self._last = time.monotonic()

    def run(self) -> None:
        """Spend until the time is over."""
        for turn in range(10**9):
            if self._elapsed() >= self._seconds:
                break
            self._turn(f"{self._number} {turn} {os.getpid()}")

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _open(self) -> PrivacyAccountant:
        start = time.monotonic()
        budget = PrivacyAccountant(TOTAL, self._path)
        self.tally.openings.append(time.monotonic() - start)
        return budget

    def _turn(self, label: str) -> None:
        chance = self._rng.random()
        try:
            if chance < 0.001:
                self._budget = self._open()
            elif chance < 0.4:
                self._spend_from_a_part(label)
            elif chance < 0.41:
                self._budget.spend(TOTAL + 1, "too much")
            else:
                self._spend_from_the_whole(label)
        except (PrivacyBudgetError, OSError) as error:
            name = type(error).__name__
            self.tally.errors[name] = self.tally.errors.get(name, 0) + 1

    def _spend_from_a_part(self, label: str) -> None:
        number = int(600 * self._elapsed() / self._seconds)
        # all race to make these parts, and to use them up
        parts = self._budget.parallel(PART, _names(number))
        name, part = self._rng.choice([*parts.items()])
        epsilon = Fraction(self._rng.randint(1, 100), 3 * 10**7)
        self._timed(Grant(label, name, epsilon), part)

    def _spend_from_the_whole(self, label: str) -> None:
        now = time.monotonic()
        share = (now - self._last) / (DRAINED * self._seconds) / SPENDERS
        grains = int(float(TOTAL) * share * self._rng.uniform(0.5, 1.5) * GRAIN)
        if self._elapsed() > DRAINED * self._seconds:
            grains = self._rng.randint(1, int(self._budget.remaining * GRAIN) + 1)
        self._last = now
        self._timed(Grant(label, "", Fraction(max(grains, 1), GRAIN)), self._budget)

    def _timed(self, grant: Grant, budget: PrivacyAccountant) -> None:
        start = time.monotonic()
        try:
            if self._rng.random() < 0.1:
                private_accuracy_score(
                    LABELS, GUESSES, epsilon=grant.epsilon, accountant=budget, label=grant.label
                )
            else:
                budget.spend(grant.epsilon, grant.label)
        finally:
            self.tally.waits.append(time.monotonic() - start)
        written(self._log, grant)


def _spend(path: Path, number: int, seconds: float) -> None:
    warnings.simplefilter("ignore")  # of noise, which these tiny epsilons make
    spender = Spender(path, number, seconds)
    spender.run()
    (path.parent / f"tally {number}").write_text(json.dumps(asdict(spender.tally)))


def _watch(path: Path, seconds: float) -> None:
    """Read the balance all the time, and the history now and then: neither ever shrinks."""
    budget, start, spent, entries, reads = PrivacyAccountant(TOTAL, path), time.monotonic(), 0.0, 0, 0
    next_history = 0.0
    while (elapsed := time.monotonic() - start) < seconds:
        now = budget.spent
        assert spent <= now <= TOTAL
        spent, reads = now, reads + 1
        if elapsed > next_history:
            history = budget.history
            assert len(history) >= entries
            entries, next_history = len(history), elapsed + seconds / 20
        time.sleep(0.01)
    (path.parent / "reads").write_text(str(reads))


def _waited(children: list[Any], seconds: float, name: str) -> None:
    with tqdm(total=round(seconds), desc=name, unit="s") as bar:
        for _ in range(round(seconds)):
            time.sleep(1)
            bar.update()
    for child in children:
        child.join()


def eight(size: Size) -> list[Finding]:
    """Let 8 processes spend from one file, and a ninth read it."""
    context = processes()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "budget.sqlite"
        PrivacyAccountant(TOTAL, path).parallel(PART, _names(0))  # before it promises more than parts keep
        children = [
            context.Process(target=_spend, args=(path, number, size.seconds)) for number in range(SPENDERS)
        ]
        children.append(context.Process(target=_watch, args=(path, size.seconds)))
        for child in children:
            child.start()
        _waited(children, size.seconds, "eight")
        audit = audited(path, TOTAL, _read(Path(name)))
        failed = [child.exitcode for child in children if child.exitcode]
        findings = [Finding("processes that failed", len(failed), not failed), *audit.findings]
        if failed:
            return findings
        tallies = [Tally(**json.loads(file.read_text())) for file in Path(name).glob("tally *")]
        reads, bytes_used = int((Path(name) / "reads").read_text()), path.stat().st_size
        start = time.monotonic()
        budget = PrivacyAccountant(TOTAL, path)
        opening, is_used_up = time.monotonic() - start, budget.remaining == 0.0
    errors = sum((Counter(tally.errors) for tally in tallies), Counter())
    waits = np.concatenate([tally.waits for tally in tallies])
    openings = max(max(tally.openings) for tally in tallies)
    return [
        *findings,
        Finding("records without a grant", audit.without_grant, audit.without_grant == 0),
        Finding("the whole is used up exactly, by all at once", is_used_up),
        Finding("grants a second", f"{audit.granted / size.seconds:.0f}"),
        Finding("refusals, as there was too little left", f"{errors.pop('PrivacyBudgetError', 0):,}"),
        Finding("other errors", dict(errors) or "none"),
        Finding(
            "wait for a spend: median, 99 %, longest",
            " ".join(f"{1000 * wait:.0f} ms" for wait in np.quantile(waits, [0.5, 0.99, 1.0])),
        ),
        Finding("longest opening under load; alone at the end", f"{openings:.2f} s, {opening:.2f} s"),
        Finding("reads of the balance by the ninth, never less than before", f"{reads:,}"),
        Finding("bytes of the file for a spend", f"{bytes_used / audit.granted:.0f}"),
    ]


def _spend_for_ever(path: Path, number: int) -> None:
    log, rng = _opened(path.parent, number), random.Random()
    budget = PrivacyAccountant(TOTAL, path)
    for turn in range(10**9):
        label, epsilon = f"{number} {turn}", Fraction(rng.randint(1, 100), 10**8)
        if turn % 3:
            budget.spend(epsilon, label)
            written(log, Grant(label, "", epsilon))
        else:
            name, part = rng.choice([*budget.parallel(Fraction(1, 100), _names(number)).items()])
            part.spend(epsilon, label)
            written(log, Grant(label, name, epsilon))


def _killed(size: Size, context: Any, path: Path) -> Iterator[None]:
    """Kill spenders, of which there are always four, and yield after each death."""
    rng, running = random.Random(), []
    for number in range(size.kills):
        while len(running) < 4:
            running.append(context.Process(target=_spend_for_ever, args=(path, number * 4 + len(running))))
            running[-1].start()
        time.sleep(rng.uniform(0.0, 0.4))
        victim = running.pop(rng.randrange(4))
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        yield
    for child in running:
        child.kill()
        child.join()


def kill(size: Size) -> list[Finding]:
    """Kill spenders at random moments."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "budget.sqlite"
        PrivacyAccountant(TOTAL, path).parallel(Fraction(1, 100), _names(-1))
        for _ in tqdm(_killed(size, processes(), path), total=size.kills, desc="kill"):
            PrivacyAccountant(TOTAL, path)  # adds everything up
        audit = audited(path, TOTAL, _read(Path(name)))
    deaths = size.kills + 3
    few = 0 <= audit.without_grant <= deaths
    return [
        Finding("spenders killed", deaths),
        *audit.findings,
        Finding("records without a grant, at most one for each death", audit.without_grant, few),
    ]
