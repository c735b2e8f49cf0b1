"""A full disk, files that cannot be written, and a clock that jumps."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tqdm import tqdm

from dp_metrics import PrivacyAccountant, private_accuracy_score
from faults.findings import Finding, Size, Skipped, Watched, held, processes

__all__ = ["clock", "disk", "read_only"]

TOTAL = 1000
COST = 0.5
PAGE = 4096
_NOBODY = 65534
_LABELS = [0, 1] * 1000


class Uses:
    """What became of uses of budgets."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self.drawn_without_a_spend = 0

    def tried(self, name: str, use: Callable[[], object]) -> bool:
        """Return whether a use worked; note what was raised."""
        try:
            use()
        except Exception as error:
            *_, sentence = str(error).split("'", 2)  # without the name of the file
            self.seen[name, f"{type(error).__name__}: The budget file ...{sentence}"] += 1
            return False
        self.seen[name, "works"] += 1
        return True

    def released(self, budget: PrivacyAccountant) -> bool:
        """Return whether a release was made."""
        entropy = Watched(0)
        is_made = self.tried(
            "release",
            lambda: private_accuracy_score(
                _LABELS, _LABELS, epsilon=COST, accountant=budget, random_state=entropy
            ),
        )
        self.drawn_without_a_spend += entropy.was_asked and not is_made
        return is_made

    def findings(self) -> list[Finding]:
        """Return a line for each outcome."""
        unpaid = self.drawn_without_a_spend
        lines = [Finding(f"{name}: {outcome}", count) for (name, outcome), count in sorted(self.seen.items())]
        return [Finding("draws without a spend", unpaid, unpaid == 0), *lines]


@contextmanager
def mounted(folder: str, size: str) -> Iterator[None]:
    """Make a file system of this size at a folder."""
    if sys.platform != "linux" or os.geteuid():
        raise Skipped("it needs root on Linux, to mount a small file system")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    if problem := subprocess.run(command, capture_output=True, text=True).stderr:
        raise Skipped(f"no file system can be mounted here: {problem.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def disk(size: Size) -> list[Finding]:
    """Use budgets on a disk with 0, 1, 2, ... free pages, and let it become full in a transaction."""
    with tempfile.TemporaryDirectory() as name, mounted(name, "16m"):
        folder, uses = Path(name), Uses()
        wrong = _full_disk(folder, size.free_pages, uses)
        wrong += _full_in_the_middle(folder, max(size.free_pages // 10, 1), uses)
    return [
        Finding("times that a file, with room again, did not hold what was granted", wrong, wrong == 0),
        *uses.findings(),
    ]


def _filled(folder: Path, left: int) -> Path:
    """Leave so many bytes free, and return what to remove to have room again."""
    fill = folder / "fill"
    free = os.statvfs(folder).f_bavail * PAGE
    fill.write_bytes(bytes(free - left))
    return fill


def _full_disk(folder: Path, pages: int, uses: Uses) -> int:
    path, new = folder / "budget.sqlite", folder / "new.sqlite"
    budget, wrong, granted = PrivacyAccountant(TOTAL, path), 0, 1.0
    part = budget.parallel(1, ["a", "b"])["a"]
    for number in tqdm(range(pages), desc="disk"):
        fill = _filled(folder, number * PAGE)
        granted += COST * uses.released(budget)
        uses.tried("spend of a part", lambda: part.spend(1e-6, "x"))
        uses.tried("balance", lambda: budget.spent)
        uses.tried("open", lambda: PrivacyAccountant(TOTAL, path))
        uses.tried("create", lambda: PrivacyAccountant(TOTAL, new))
        fill.unlink()
        wrong += PrivacyAccountant(TOTAL, path).spent != granted
        wrong += len(part.history) != uses.seen["spend of a part", "works"]
        wrong += PrivacyAccountant(TOTAL, new).spent != 0  # also if only half of it could be created
        new.unlink()
    return wrong


def _full_in_the_middle(folder: Path, times: int, uses: Uses) -> int:
    """Divide a budget among so many parts that the log grows before the transaction ends."""
    wrong, names = 0, [f"{'x' * 200} {part}" for part in range(20_000)]
    for number in tqdm(range(times), desc="disk, in a transaction"):
        path = folder / f"{number}.sqlite"
        budget = PrivacyAccountant(TOTAL, path)
        fill = _filled(folder, (1 + number) << 20)
        is_made = uses.tried("division into 20,000 parts", partial(budget.parallel, 1, names))
        fill.unlink()
        wrong += PrivacyAccountant(TOTAL, path).spent != is_made
        wrong += len(budget.history) != is_made
        path.unlink()
    return wrong


def read_only(size: Size) -> list[Finding]:
    """Use budgets that cannot be written, as a user who may not change that."""
    del size  # there is nothing to repeat
    findings = []
    for what, (lock, unlock) in {
        "file": (lambda path: path.chmod(0o444), _with_companions_writable),
        "companion": (_with_read_only_companion, _with_companions_writable),
        "folder": (lambda path: path.parent.chmod(0o555), lambda path: path.parent.chmod(0o755)),
    }.items():
        with tempfile.TemporaryDirectory() as name:
            findings += _unwritable(what, Path(name), lock, unlock)
    try:
        with tempfile.TemporaryDirectory() as name, mounted(name, "1m"):
            findings += _unwritable(
                "file system", Path(name), partial(_remount, "ro"), partial(_remount, "rw")
            )
    except Skipped as reason:
        findings.append(Finding("read-only file system: skipped", reason))
    return findings


def _with_companions_writable(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.chmod(0o644)


def _with_read_only_companion(path: Path) -> None:
    """Leave what a look at a read-only file leaves when the file itself is writable again."""
    companion = path.with_name(f"{path.name}-shm")
    companion.touch(0o444)
    shutil.chown(companion, path.owner(), path.group())


def _remount(mode: str, path: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(path.parent)], check=True)


def _unwritable(
    what: str, folder: Path, lock: Callable[[Path], object], unlock: Callable[[Path], object]
) -> list[Finding]:
    path = folder / "budget.sqlite"
    with ProcessPoolExecutor(1, mp_context=processes(), initializer=_become_nobody) as user:
        if not os.geteuid():
            os.chown(folder, _NOBODY, _NOBODY)
        budget = user.submit(PrivacyAccountant, TOTAL, path).result()
        lock(path)
        uses = user.submit(_used, budget).result()
        unlock(path)
        after = user.submit(_used, budget).result()
        spent = user.submit(_spent, budget).result()
    made = uses.seen["release", "works"], after.seen["release", "works"]
    is_right = made == (0, 1) and spent == COST and not uses.drawn_without_a_spend
    return [
        held(f"read-only {what}: no release, and one as soon as it can be written", is_right),
        *(Finding(f"read-only {what}, {line.what}", line.found) for line in uses.findings()[1:]),
    ]


def _become_nobody() -> None:
    if not os.geteuid():  # nothing is read-only for root
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _used(budget: PrivacyAccountant) -> Uses:
    uses = Uses()
    uses.released(budget)
    uses.tried("balance", lambda: budget.spent)
    uses.tried("history", lambda: budget.history)
    uses.tried("open", lambda: PrivacyAccountant(TOTAL, str(budget.path)))
    return uses


def _spent(budget: PrivacyAccountant) -> float:
    return budget.spent


JUMPING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) { /* up to ten years, either way */
    static unsigned long long state = 1;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (long)(state >> 33) % 630720000L - 315360000L;
}
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += jump();
    return status;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    int status = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
    return status;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""

JUMPED = """
import json, sqlite3, sys, threading
from itertools import pairwise
from dp_metrics import PrivacyAccountant, PrivacyBudgetError

spends, path = int(sys.argv[1]), sys.argv[2]
for budget in (PrivacyAccountant(spends, path), PrivacyAccountant(spends)):
    for number in range(spends):
        budget.spend(1, str(number))
    try:
        budget.spend(1e-9, "too much")
        is_refused = False
    except PrivacyBudgetError:
        is_refused = True
    history = budget.history
    times = [spend.time for spend in history]
    print(json.dumps({
        "in order": [spend.label for spend in history] == [*map(str, range(spends))],
        "refused": is_refused and budget.remaining == 0.0,
        "backwards": sum(a > b for a, b in pairwise(times)),
        "years": (max(times) - min(times)).days / 365.25,
    }))
waiting = PrivacyAccountant(1, path + "2")
with sqlite3.connect(path + "2", isolation_level=None, check_same_thread=False) as db:
    db.execute("BEGIN IMMEDIATE")
    threading.Timer(0.5, db.execute, ["COMMIT"]).start()
    waiting.spend(1, "after the lock")
"""


def clock(size: Size) -> list[Finding]:
    """Let the clock of a whole process, SQLite included, jump at each look."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        raise Skipped("it needs Linux and a C compiler, to put another clock into a process")
    with tempfile.TemporaryDirectory() as name:
        library = f"{name}/jumping.so"
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"]
        subprocess.run(command, input=JUMPING, text=True, check=True)
        done = subprocess.run(
            [sys.executable, "-c", JUMPED, str(size.jumps), f"{name}/budget.sqlite"],
            env={**os.environ, "LD_PRELOAD": library},
            capture_output=True,
            text=True,
        )
    ledgers = [json.loads(line) for line in done.stdout.splitlines()]
    jumped = all(ledger["backwards"] > size.jumps / 4 for ledger in ledgers)
    findings = [held("the process ended well, a wait for a lock included", not done.returncode)]
    findings += [held("the clock did jump", jumped)]
    for kind, ledger in zip(("file", "memory"), ledgers, strict=True):
        years = f"{ledger['backwards']:,} times backwards, over {ledger['years']:.0f} years"
        findings += [
            Finding(f"{kind}: times of {size.jumps:,} spends go", years),
            held(f"{kind}: history in the order of the spends", ledger["in order"]),
            held(f"{kind}: the spend that does not fit is refused", ledger["refused"]),
        ]
    return findings
