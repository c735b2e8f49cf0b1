"""Where a budget is kept: nothing is lost in a crash, shared by accident, or read from a damaged file."""

import contextlib
import gc
import os
import pathlib
import pickle
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import pytest
from helpers import later, new_session

import dp_metrics
from dp_metrics.accounting import PrivacyAccountant, ledgers as _ledgers
from dp_metrics.exceptions import PrivacyBudgetError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_permissions = pytest.mark.skipif(os.name != "posix", reason="file permissions of POSIX")
FOREIGN = "is not a budget file of dp_metrics"
DAMAGED = r"damaged.*; nothing was released"
SECOND_NAME = r"has 2 names \(hard links\), .*; nothing was released"
GONE = "is gone, and with it the record of what was spent"


BEGINNING = '''
import os, random, select, signal, sys, threading, time, traceback, warnings
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.exceptions import PrivacyBudgetError

generator = random.Random(0)

def together(processes, work):
    """Call work(i) in forked processes, all at once; one that fails fails the script."""
    children, start = [], time.monotonic() + 0.02
    for i in range(processes):
        if pid := os.fork():
            children.append(pid)
            continue
        try:
            while time.monotonic() < start:
                pass
            work(i)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * processes

def killed(work, patience, waits):
    """Call work(pipe) in a forked process, kill it at any moment, and return the lines that it wrote."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        work(send)
    os.close(send)
    if waits:
        select.select([receive], [], [], 60)  # for the first line, however slow the machine is
    select.select([], [], [], generator.random() * patience)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with os.fdopen(receive) as pipe:
        return pipe.read().splitlines()

'''


def run_script(script, *args):
    """Run a script in an interpreter of its own: it is free of threads, as a forking process should be."""
    root = str(pathlib.Path(dp_metrics.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    with subprocess.Popen(
        [sys.executable, "-c", BEGINNING + textwrap.dedent(script), *map(str, args)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with its children, which would hold the pipes
            raise
    assert process.returncode == 0, errors
    return output


def sql(path, *statements):
    """Change the file behind the accountant's back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        return [db.execute(statement).fetchall() for statement in statements]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / ("budget #%.sqlite" if os.name == "nt" else "budget ?#%.sqlite"))


def uses(accountant):
    """All that reads or writes the ledger."""
    return [
        lambda: accountant.spend(0.25, "x"),
        lambda: accountant.require(0.25),
        lambda: accountant.spent,
        lambda: accountant.remaining,
        lambda: accountant.history,
        lambda: accountant.results(),
    ]


def assert_no_use(accountant, error, match):
    for use in uses(accountant):
        with pytest.raises(error, match=match):
            use()


# Other processes, without a path


def test_without_path_a_forked_child_refuses(monkeypatch):
    accountant = PrivacyAccountant(1.0)
    words = "^A PrivacyAccountant without a path cannot be used in a forked process.*pass path= to PrivacyAcc"
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)  # all that the ledger can know of a fork
        for use in (lambda: accountant.spend(0.1, "child"), lambda: accountant.require(0.1)):
            with pytest.raises(RuntimeError, match=words):
                use()
    accountant.spend(1.0, "parent")
    assert accountant.remaining == 0.0


# The file


def test_a_file_is_one_budget_however_it_is_opened(path, tmp_path, monkeypatch):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.1, "first")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    relative = PrivacyAccountant(1.0, os.path.basename(path))
    monkeypatch.chdir("/")
    several = [
        relative,
        PrivacyAccountant(Decimal("1.0"), pathlib.Path(path)),
        PrivacyAccountant(1, os.fsencode(path)),
        PrivacyAccountant(1.0, tmp_path / "folder" / "link"),
        pickle.loads(pickle.dumps(accountant)),
    ]
    for one in several:
        one.spend(0.1, "again")
        assert (one.path, repr(one)) == (path, repr(accountant))
        assert one.history == accountant.history
    assert accountant.spent == 0.6
    assert [entry.spend_name for entry in accountant.history] == ["first"] + ["again"] * 5
    assert set(os.listdir(tmp_path)) == {os.path.basename(path), "link", "folder"}
    assert sql(path, "PRAGMA journal_mode", "PRAGMA user_version") == [[("wal",)], [(1,)]]
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    assert sql(path, tables) == [[("budget",), ("history",), ("releases",)]]


def test_a_file_is_continued_under_its_relation(path):
    other = {"neighboring": "add_or_remove_one"}
    PrivacyAccountant(1.0, path).spend(0.25, "first", **other)
    PrivacyAccountant(1.0, path).spend(0.25, "by hand", **other)
    sql(path, "DROP TABLE releases")  # as earlier code left a file
    for again in (PrivacyAccountant(1.0, path), pickle.loads(pickle.dumps(PrivacyAccountant(1.0, path)))):
        with pytest.raises(ValueError, match="kept under neighboring='add_or_remove_one', and"):
            again.spend(0.25, "second")
        assert [one.value for one in again.results()] == [None, None]
    assert again.spent == 0.5
    sql(path, "UPDATE history SET neighboring = 'replace_one' WHERE id = 1")  # which earlier code allowed
    for neighboring in ("replace_one", "add_or_remove_one"):
        with pytest.raises(ValueError, match="'add_or_remove_one' and 'replace_one', and epsilons"):
            again.spend(0.25, "second", neighboring=neighboring)
    assert (again.spent, len(again.history)) == (0.5, 2)


def test_another_total_is_refused(path):
    total = Fraction(10**5000 + 1, 10**5000)  # more digits than Python converts
    PrivacyAccountant(total, path).spend(1.0, "x")
    for other, words in (
        (2.0, r"was created with a total of 1\.0, not 2\.0; pass the same total"),
        (Fraction(1, 3), r"was created with a total of 1\.0, not 0\.3333333333333333; pass the same"),
        (1.0, r"a total that equals 1\.0 only as a float; pass the same total"),
    ):
        with pytest.raises(ValueError, match=words):
            PrivacyAccountant(other, path)
    for again in (PrivacyAccountant(total, path), pickle.loads(pickle.dumps(PrivacyAccountant(total, path)))):
        with pytest.raises(PrivacyBudgetError, match=r"1\.0 of the total of 1\.0 is spent and only 0\.0 rem"):
            again.spend(1e-300, "a little")
        assert (again.total, again.spent, again.remaining) == (1.0, 1.0, 0.0)


def test_the_only_spender_does_not_parse_its_own_sum_nor_the_history(path, monkeypatch):
    """Parsing takes the square of the length, which grows with every new denominator."""
    accountant, parsed, number = PrivacyAccountant(2.0, path), [], _ledgers._number
    monkeypatch.setattr(_ledgers, "_number", lambda text: parsed.append(text) or number(text))
    for denominator in (3, 5, 7):
        accountant.spend(Fraction(1, denominator), "x")
    assert accountant.spent == float(Fraction(71, 105))
    assert set(parsed) == {"0x2/0x1"}  # the total
    PrivacyAccountant(2.0, path).spend(1.0, "another")
    assert accountant.spent == float(Fraction(176, 105))


# What is no budget file, or no longer


def test_what_is_no_budget_file_is_refused_and_left_alone(path):
    sql(path + "sql", "CREATE TABLE theirs (x)")
    contents = [b"hello", b"some,csv,file\n" * 1000, b"SQLite format 3\0" + b"\xff" * 5000]
    for content in (*contents, pathlib.Path(path + "sql").read_bytes()):
        pathlib.Path(path).write_bytes(content)
        with pytest.raises(ValueError, match=FOREIGN):
            PrivacyAccountant(1.0, path)
        assert pathlib.Path(path).read_bytes() == content
    for number, pragma in enumerate(("application_id = 7", "user_version = 2")):
        PrivacyAccountant(1.0, f"{path}{number}")
        sql(f"{path}{number}", f"PRAGMA {pragma}")
        with pytest.raises(ValueError, match=FOREIGN):
            PrivacyAccountant(1.0, f"{path}{number}")


TIME = "UPDATE history SET time = 'yesterday' WHERE id = 1"  # which no sum needs
# what is said of spends in use is believed until the file is opened again
DAMAGE = [
    "UPDATE budget SET spent = '0'",
    "UPDATE budget SET total = NULL",
    "UPDATE budget SET total = x'00'",
    "DELETE FROM history",
    "UPDATE history SET id = 7 WHERE id = 2",
    "UPDATE history SET epsilon = '1/0'",
    "UPDATE history SET epsilon = '-1/2'",
    "DROP TABLE history",
    # what adds up, where no ledger can be so: a gap, and spends that are not positive
    "DELETE FROM history WHERE id = 1; UPDATE budget SET spent = '0x1/0x2'",
    *(
        f"INSERT INTO history SELECT 3, time, label, '{more}', mechanism, neighboring FROM history LIMIT 1; "
        f"UPDATE budget SET spent = '{spent}'"
        for more, spent in (("-0x1/0x4", "0x1/0x2"), ("0x0/0x1", "0x3/0x4"))
    ),
]
DAMAGE_OF_BALANCES = [
    *(f"UPDATE budget SET spent = '{spent}'" for spent in ("-1", "2", "many")),
    "UPDATE budget SET spent = '1/0'",
    "INSERT INTO budget SELECT * FROM budget",
    "DELETE FROM budget",
    "DROP TABLE budget",
]


def test_damaged_records_are_refused(path):
    for number, damage in enumerate([TIME, *DAMAGE, *DAMAGE_OF_BALANCES]):
        budget = PrivacyAccountant(1.0, place := f"{path}{number}")
        for epsilon in (0.25, 0.5):
            budget.spend(epsilon, "x")
        sql(place, *damage.split("; "))
        if damage in DAMAGE_OF_BALANCES:
            assert_no_use(budget, ValueError, DAMAGED)
        if damage == TIME:
            with pytest.raises(ValueError, match=DAMAGED):
                _ = budget.history
            continue
        new_session()
        with pytest.raises(ValueError, match=DAMAGED):
            pytest.fail(f"After {damage} {PrivacyAccountant(1.0, place)} is opened.")


def test_a_truncated_file_is_refused_while_in_use(path):
    for size in (0, 1, 100, 5000):
        place = f"{path}{size}"
        accountant = PrivacyAccountant(1.0, place)
        accountant.spend(0.5, "x")
        os.truncate(place, size)
        with pytest.raises(ValueError, match=f"{FOREIGN}, or is damaged"):
            accountant.spend(0.5, "y")
        if size > 1:  # SQLite takes a byte for an empty file
            with pytest.raises(ValueError, match=f"{FOREIGN}, or is damaged"):
                PrivacyAccountant(1.0, place)


def test_overwritten_pages_never_admit_too_much(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.5, "x")
    whole = pathlib.Path(path).read_bytes()
    generator = random.Random(0)
    for _ in range(60):
        start = generator.randrange(0, len(whole), 256)
        pathlib.Path(path).write_bytes(whole[:start] + generator.randbytes(256) + whole[start + 256 :])
        with pytest.raises((ValueError, OSError)):  # PrivacyBudgetError, if it is still readable
            PrivacyAccountant(1.0, path).spend(0.75, "y")


def test_an_older_copy_in_its_place_is_refused_until_the_process_ends(path):
    """An older file, a longer one that forgets the last spend, and one whose sum alone was put back."""
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.25, "first")
    older = pathlib.Path(path).read_bytes()
    accountant.spend(0.25, "second")
    latest = pathlib.Path(path).read_bytes()
    twin = pickle.loads(pickle.dumps(accountant))
    pathlib.Path(path).write_bytes(older)
    for survivor in (accountant, twin):
        assert_no_use(survivor, ValueError, "was rolled back or edited, or is a copy.*; nothing was released")
    with pytest.raises(ValueError, match="was rolled back"):
        PrivacyAccountant(1.0, path)
    sql(path, "INSERT INTO history SELECT 2, time, 'other', epsilon, mechanism, neighboring FROM history")
    sql(path, "UPDATE budget SET spent = '0x1/0x2'")
    assert_no_use(accountant, ValueError, "was rolled back or edited")
    pathlib.Path(path).write_bytes(latest)
    assert [entry.spend_name for entry in accountant.history] == ["first", "second"]
    pathlib.Path(path).write_bytes(older)
    assert later(path, 1.0).spent == 0.25


# One name: SQLite's log of recent spends goes by it


def test_a_file_of_two_hard_links_is_refused_and_left_alone(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.25, "before")
    before = pathlib.Path(path).read_bytes()
    os.link(path, path + "2")
    for name in (path, path + "2"):
        with pytest.raises(ValueError, match=SECOND_NAME):
            PrivacyAccountant(1.0, name)
    for survivor in (accountant, pickle.loads(pickle.dumps(accountant))):
        assert_no_use(survivor, ValueError, SECOND_NAME)
    assert pathlib.Path(path).read_bytes() == before
    os.remove(path + "2")
    accountant.spend(0.75, "after")
    pathlib.Path(path + "3").touch()
    os.link(path + "3", path + "4")
    with pytest.raises(ValueError, match=SECOND_NAME):
        PrivacyAccountant(1.0, path + "3")
    assert os.path.getsize(path + "3") == 0  # an empty file is not filled


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no file that is open")
@pytest.mark.parametrize("change", ["linked", "removed"])
def test_a_file_that_is_linked_or_removed_while_a_spend_waits_takes_no_spend(path, change):
    accountant = PrivacyAccountant(1.0, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db, ThreadPoolExecutor() as pool:
        db.execute("BEGIN IMMEDIATE")
        spending = pool.submit(accountant.spend, 0.5, "x")
        time.sleep(0.3)  # the spend has opened the file, and waits for the lock
        os.link(path, path + "2") if change == "linked" else os.remove(path)
        db.execute("COMMIT")
        refusal = spending.exception()
    assert re.search(SECOND_NAME if change == "linked" else GONE, str(refusal))


# No file, and no room


def test_what_cannot_hold_a_file_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "new")
    PrivacyAccountant(1.0, tmp_path / "link").spend(0.25, "x")
    assert PrivacyAccountant(1.0, tmp_path / "new").spent == 0.25
    with pytest.raises(FileNotFoundError, match="is in a folder that does not exist"):
        PrivacyAccountant(1.0, tmp_path / "no" / "budget")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        PrivacyAccountant(1.0, tmp_path)
    with pytest.raises(TypeError):
        PrivacyAccountant(1.0, 3)
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match=r"The budget file '/dev/full' .*; nothing was released"):
            PrivacyAccountant(1.0, "/dev/full")


def test_a_vanished_file_is_not_created_again_nor_one_in_its_place_taken_for_it(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.9, "a")
    pickled = pickle.dumps(accountant)
    os.remove(path)
    for survivor in (accountant, pickle.loads(pickled)):
        assert_no_use(survivor, FileNotFoundError, GONE)
    assert not os.path.exists(path)
    PrivacyAccountant(1.0, path).spend(0.9, "a")
    for survivor in (accountant, pickle.loads(pickled)):
        assert_no_use(survivor, ValueError, "was replaced: it is not the file that this accountant opened")
    assert PrivacyAccountant(1.0, path).spent == 0.9


@pytest.fixture
def unprivileged_folder():
    """A folder of an ordinary user, as whom the test runs: nothing is read-only for root."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            yield pathlib.Path(folder)
        else:
            os.chown(folder, 65534, 65534)
            gc.collect()  # what joblib has dropped belongs to root, and only root may take it away
            os.seteuid(65534)
            try:
                yield pathlib.Path(folder)
            finally:
                os.seteuid(0)


READ_ONLY = r"cannot be written: it, its folder or its companion -wal or -shm is read-only; make .* none"


@needs_permissions
def test_what_is_read_only_is_refused(unprivileged_folder):
    path, new = unprivileged_folder / "budget", unprivileged_folder / "new"
    accountant = PrivacyAccountant(1.0, path)
    for place, closed, opened, other in ((path, 0o444, 0o644, path), (path.parent, 0o555, 0o755, new)):
        place.chmod(closed)
        for use in (lambda: accountant.spend(0.5, "x"), lambda other=other: PrivacyAccountant(1.0, other)):
            with pytest.raises(PermissionError, match=READ_ONLY):
                use()
        place.chmod(opened)
        assert accountant.spent == 0.0
    assert not new.exists()
    path.chmod(0o444)
    assert accountant.spent == 0.0  # which leaves companions as read-only as the file
    path.chmod(0o644)
    with pytest.raises(PermissionError, match=READ_ONLY):
        accountant.spend(0.5, "x")
    for file in unprivileged_folder.iterdir():
        file.chmod(0o644)
    accountant.spend(0.5, "x")
    assert accountant.spent == 0.5


NO_ROOM = r"has no room: its disk is full, or a limit is reached; free some space.*; nothing was released"


def with_connections(monkeypatch, kind):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=kind, **options))


def test_a_full_disk_is_told_in_a_sentence(path, monkeypatch):
    accountant = PrivacyAccountant(1.0, path)

    class Full(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.execute("PRAGMA max_page_count=1")  # no more pages than there are

    with_connections(monkeypatch, Full)
    with pytest.raises(OSError, match=NO_ROOM) as refusal:
        accountant.spend(0.5, "x" * 50_000)
    assert refusal.value.__cause__.sqlite_errorcode == sqlite3.SQLITE_FULL
    monkeypatch.undo()
    assert (accountant.spent, accountant.history) == (0.0, ())


@needs_permissions
def test_a_limit_of_the_size_of_files_is_told_in_a_sentence(path):
    import resource

    accountant = PrivacyAccountant(1.0, path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # less than a companion takes
    try:
        with pytest.raises(OSError, match=NO_ROOM):
            accountant.spend(0.5, "x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (accountant.spent, accountant.history) == (0.0, ())


def test_failed_writes_spend_nothing(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.25, "a")
    for event in ("UPDATE ON budget", "INSERT ON history"):
        sql(path, f"CREATE TRIGGER full BEFORE {event} BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        with pytest.raises(OSError, match=r"cannot be used \(disk full\)"):
            accountant.spend(0.5, "x")
        assert (accountant.spent, len(accountant.history)) == (0.25, 1)
        sql(path, "DROP TRIGGER full")
    accountant.spend(0.5, "x")
    assert accountant.spent == 0.75


def test_a_locked_file_is_waited_for_and_refused_after_the_timeout(path, monkeypatch):
    accountant = PrivacyAccountant(1.0, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, db.execute, ["COMMIT"])
        timer.start()
        accountant.spend(0.5, "x")
        timer.join()
        monkeypatch.setattr(_ledgers, "_BUSY_SECONDS", 0.2)
        db.execute("BEGIN IMMEDIATE")
        for use in (lambda: accountant.spend(0.5, "y"), lambda: PrivacyAccountant(1.0, path)):
            start = time.monotonic()
            with pytest.raises(TimeoutError, match="stays locked by another process; nothing was released"):
                use()
            assert time.monotonic() - start < 5
        assert accountant.spent == 0.5  # readers do not wait
    accountant.spend(0.5, "y")


def test_a_spend_is_flushed_to_the_disk_before_it_returns(path, monkeypatch):
    accountant, statements, in_force = PrivacyAccountant(1.0, path), [], {}

    class Traced(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.set_trace_callback(statements.append)

        def execute(self, statement, *args):
            if statement in ("BEGIN IMMEDIATE", "COMMIT"):
                names = ("synchronous", "fullfsync", "journal_mode")
                ask = super().execute
                in_force[statement] = [ask(f"PRAGMA {name}").fetchone()[0] for name in names]
            return super().execute(statement, *args)

    with_connections(monkeypatch, Traced)
    accountant.spend(0.5, "x")
    monkeypatch.undo()
    full = 2
    assert in_force == {name: [full, 1, "wal"] for name in ("BEGIN IMMEDIATE", "COMMIT")}
    words = [statement.split()[0] for statement in statements]
    changes = [word for word in words if word not in ("PRAGMA", "SELECT")]
    assert changes == ["BEGIN", "INSERT", "UPDATE", "COMMIT"]
    assert words[-1] == "COMMIT"


# Many processes and crashes


@needs_fork
@pytest.mark.parametrize(
    ("processes", "spends"), [(4, 20), pytest.param(8, 200, marks=pytest.mark.slow)], ids=["fast", "slow"]
)
@pytest.mark.parametrize(
    "share", [pytest.param(1.0, marks=pytest.mark.slow), 0.75], ids=["all fit", "a quarter does not"]
)
def test_processes_neither_exceed_the_budget_nor_lose_a_spend(path, processes, spends, share):
    script = """
        def work(i):
            accountant = PrivacyAccountant(float(sys.argv[4]), sys.argv[1])  # all race to create it
            for j in range(int(sys.argv[3])):
                try:
                    accountant.spend(0.001, f"{i} {j}")
                except PrivacyBudgetError:
                    continue
                os.write(1, f"{i} {j}\\n".encode())

        together(int(sys.argv[2]), work)
    """
    fitting = round(share * processes * spends)
    admitted = run_script(script, path, processes, spends, fitting / 1000).splitlines()
    accountant = PrivacyAccountant(fitting / 1000, path)
    assert len(admitted) == fitting
    assert sorted(admitted) == sorted(entry.spend_name for entry in accountant.history)
    assert accountant.remaining == 0.0


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("rounds", [2, 100])
def test_processes_that_race_to_create_a_file_agree(path, rounds):
    """On one file, and on one relation."""
    script = """
        def choose(i):
            relation = ["replace_one", "add_or_remove_one"][i % 2]
            try:
                PrivacyAccountant(1.0, path).spend(0.01, relation, neighboring=relation)
            except ValueError as error:
                assert "different neighbouring relations" in str(error)
                os.write(1, f"{relation}\\n".encode())

        for round in range(int(sys.argv[2])):
            path = f"{sys.argv[1]} {round}"
            together(6, choose)
            kept = [entry.neighboring for entry in PrivacyAccountant(1.0, path).history]
            assert len(kept) == 3 and len({*kept}) == 1, kept
    """
    refused = run_script(script, path, rounds).splitlines()
    assert len(refused) == 3 * rounds


@needs_fork
@pytest.mark.parametrize("rounds", [6, pytest.param(400, marks=pytest.mark.slow)])
def test_kill_at_any_moment_leaves_no_release_unrecorded(path, rounds):
    script = """
        released, creations = {}, 0
        for round in range(int(sys.argv[2])):
            # Every other round creates a file and is killed in the middle of that, or soon after.
            path, patience = (sys.argv[1], 0.1) if round % 2 else (f"{sys.argv[1]}{round}", 0.01)

            def work(send):
                budget = PrivacyAccountant(1000, path)
                for i in range(10**9):
                    budget.spend(0.0001, f"{round} {i}")
                    os.write(send, f"{round} {i}\\n".encode())

            lines = killed(work, patience, waits=round % 4 == 3)
            released.setdefault(path, []).extend(lines)
            creations += os.path.exists(path)
            budget = PrivacyAccountant(1000, path)  # adds up all spends
            recorded = [spend.spend_name for spend in budget.history]
            assert {*released[path]} <= {*recorded}, "not recorded"
            assert len(recorded) <= len(released[path]) + round + 1
            assert budget.spent == len(recorded) / 10_000
        print(creations, sum(map(len, released.values())))
    """
    creations, releases = map(int, run_script(script, path, rounds).split())
    assert creations > rounds / 2
    assert releases > 0


@pytest.mark.slow
@needs_fork
def test_fork_while_threads_spend(path):
    """A child forked in the middle of another thread's spend inherits neither its lock nor its connection."""
    script = """
        warnings.simplefilter("ignore", DeprecationWarning)
        accountant, memory = PrivacyAccountant(1000, sys.argv[1]), PrivacyAccountant(1000)
        stop = threading.Event()

        def work():
            while not stop.is_set():
                accountant.spend(0.001, "thread")
                memory.spend(0.001, "thread")

        def child(i):
            memory.spent
            accountant.spend(0.001, "child")

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(20):
            together(1, child)
        stop.set()
        for thread in threads:
            thread.join()
        assert [spend.spend_name for spend in accountant.history].count("child") == 20
    """
    run_script(script, path)
