"""Where a budget is kept: nothing is lost in a crash, shared by accident, or read from a damaged file."""

import contextlib
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
from decimal import Decimal
from fractions import Fraction

import joblib
import pytest
from helpers import new_session

import dp_metrics
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting import ledgers as _ledgers
from dp_metrics.exceptions import PrivacyBudgetError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_permissions = pytest.mark.skipif(os.name != "posix", reason="file permissions of POSIX")


def run_script(script, *args):
    """Run a script in a fresh interpreter: it is free of threads, which a forking process should be."""
    root = str(pathlib.Path(dp_metrics.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, args)],
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


# Other processes, without a path


def spend_a_tenth(accountant):
    accountant.spend(0.1, f"process {os.getpid()}")
    return os.getpid()


def test_without_path_joblib_says_to_pass_one():
    with pytest.raises(pickle.PicklingError) as refusal:
        joblib.Parallel(n_jobs=2)(joblib.delayed(spend_a_tenth)(PrivacyAccountant(1.0)) for _ in range(2))
    first = str(refusal.value.__cause__).strip('\n"').splitlines()[0]
    assert first.startswith("TypeError: A PrivacyAccountant without a path cannot be pickled, because")
    assert first.endswith("pass path= to PrivacyAccountant to share one budget between processes.")


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_without_path_multiprocessing_says_to_pass_one(method):
    script = """
        import multiprocessing, sys
        from dp_metrics.accounting import PrivacyAccountant

        if __name__ == "__main__":
            with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
                try:
                    pool.apply(print, (PrivacyAccountant(1.0),))
                except TypeError as error:
                    print(error)
    """
    assert "pass path= to PrivacyAccountant" in run_script(script, method)


@needs_fork
def test_without_path_a_forked_child_refuses():
    script = """
        import multiprocessing
        from dp_metrics.accounting import PrivacyAccountant

        accountant = PrivacyAccountant(1.0)
        accountant.spend(0.5, "parent")

        def attempt(name):
            try:
                getattr(accountant, name)(*{"spend": (0.1, "child"), "require": (0.1,)}[name])
            except RuntimeError as error:
                return str(error)

        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(*pool.map(attempt, ["spend", "require"]), sep="\\n")
        accountant.spend(0.5, "parent")
        assert accountant.remaining == 0.0
    """
    lines = run_script(script).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("A PrivacyAccountant without a path cannot be used in a forked process")
        assert "pass path= to PrivacyAccountant" in line


# The file


def test_reopening_continues(path):
    PrivacyAccountant(1.0, path).spend(0.3, "first")
    again = PrivacyAccountant(Decimal("1.0"), pathlib.Path(path))
    again.spend(0.7, "second")
    assert again.remaining == 0.0
    history = PrivacyAccountant(1, os.fsencode(path)).history
    assert [entry.spend_name for entry in history] == ["first", "second"]
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_the_file_has_a_write_ahead_log_and_a_version(path):
    PrivacyAccountant(1.0, path)
    assert sql(path, "PRAGMA journal_mode", "PRAGMA user_version") == [[("wal",)], [(1,)]]


def test_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accountant = PrivacyAccountant(1.0, "budget")
    monkeypatch.chdir("/")
    accountant.spend(0.5, "elsewhere")
    assert accountant.path == str(tmp_path / "budget")
    assert PrivacyAccountant(1.0, tmp_path / "budget").spent == 0.5


def test_pickle_with_path_is_the_same_budget(path):
    accountant = PrivacyAccountant(Fraction(1, 3), path)
    twin = pickle.loads(pickle.dumps(accountant))
    twin.spend(Fraction(1, 6), "twin")
    accountant.spend(Fraction(1, 6), "original")
    assert accountant.remaining == twin.remaining == 0.0
    assert twin.history == accountant.history
    assert repr(twin) == repr(accountant)


@pytest.mark.slow
def test_joblib_workers_share_a_file(path):
    accountant = PrivacyAccountant(1.0, path)
    joblib.Parallel(n_jobs=2)(joblib.delayed(spend_a_tenth)(accountant) for _ in range(10))
    assert accountant.remaining == 0.0
    with pytest.raises(PrivacyBudgetError, match=r"epsilon=0\.1 was asked for"):
        joblib.Parallel(n_jobs=2)(joblib.delayed(spend_a_tenth)(accountant) for _ in range(2))


def test_a_spend_does_not_add_up_the_history(path):
    accountant = PrivacyAccountant(1.0, path)
    for name in ("first", "second"):
        accountant.spend(0.1, name)
    sql(path, "UPDATE history SET epsilon = 'unreadable' WHERE id = 1")
    accountant.spend(0.1, "third")


def test_a_later_run_keeps_to_the_relation_of_the_file(path):
    PrivacyAccountant(1.0, path).spend(0.25, "first", neighboring="add_or_remove_one")
    for again in (PrivacyAccountant(1.0, path), pickle.loads(pickle.dumps(PrivacyAccountant(1.0, path)))):
        with pytest.raises(ValueError, match="kept under neighboring='add_or_remove_one', and"):
            again.spend(0.25, "second")
    assert PrivacyAccountant(1.0, path).spent == 0.25


def write_as_before_relations_were_compared(path, relations):
    """Write a budget file of version 1 as earlier code left it: a total of 1, an eighth for each relation."""
    new_session()  # the identity is that of the file of another test
    entries = [
        "INSERT INTO history (time, label, epsilon, mechanism, neighboring)"
        f" VALUES ('2025-01-02T03:04:05+00:00', 'old', '1/8', NULL, '{relation}')"
        for relation in relations
    ]
    sql(
        path,
        "PRAGMA journal_mode=WAL",
        f"PRAGMA application_id={0x64706D62}",
        "PRAGMA user_version=1",
        "CREATE TABLE budget (identity TEXT, total TEXT, spent TEXT)",
        "CREATE TABLE history (id INTEGER PRIMARY KEY,"
        " time TEXT, label TEXT, epsilon TEXT, mechanism TEXT, neighboring TEXT)",
        f"INSERT INTO budget VALUES ('0123456789abcdef', '1', '{len(relations)}/8')",
        *entries,
    )


def test_an_existing_file_of_one_relation_is_continued(path):
    write_as_before_relations_were_compared(path, ["add_or_remove_one"] * 2)
    accountant = PrivacyAccountant(1.0, path)
    assert [entry.spend_name for entry in accountant.history] == ["old", "old"]
    accountant.spend(0.25, "new", neighboring="add_or_remove_one")
    with pytest.raises(ValueError, match="neighbouring relations"):
        accountant.spend(0.25, "new", neighboring="replace_one")
    assert accountant.spent == 0.5


@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_an_existing_file_of_two_relations_can_be_read_but_takes_no_more_spends(path, neighboring):
    write_as_before_relations_were_compared(path, ["replace_one", "add_or_remove_one", "replace_one"])
    accountant = PrivacyAccountant(1.0, path)
    with pytest.raises(
        ValueError, match="kept under neighboring='add_or_remove_one' and 'replace_one', and epsilons"
    ):
        accountant.spend(0.25, "new", neighboring=neighboring)
    assert accountant.spent == 0.375
    assert len(accountant.history) == 3


def test_path_of_another_type_is_refused():
    with pytest.raises(TypeError):
        PrivacyAccountant(1.0, 3)


@pytest.mark.parametrize("total", [2.0, 0.5, Fraction(1, 3)])
def test_another_total_is_refused(path, total):
    PrivacyAccountant(1.0, path).spend(0.25, "x")
    sentence = rf"was created with a total of 1\.0, not {float(total)}; pass the same total"
    with pytest.raises(ValueError, match=sentence):
        PrivacyAccountant(total, path)
    assert PrivacyAccountant(1.0, path).spent == 0.25


def test_totals_that_differ_by_less_than_a_float_are_told_apart(path):
    PrivacyAccountant(Fraction(1, 3), path)
    with pytest.raises(ValueError, match=r"equals 0\.3333333333333333 only as a float; pass the same"):
        PrivacyAccountant(1 / 3, path)


def test_foreign_database_is_refused_and_left_alone(path):
    sql(path, "CREATE TABLE theirs (x)")
    before = pathlib.Path(path).read_bytes()
    with pytest.raises(ValueError, match="is not a budget file of dp_metrics"):
        PrivacyAccountant(1.0, path)
    assert pathlib.Path(path).read_bytes() == before


@pytest.mark.parametrize("pragma", ["application_id = 7", "user_version = 2"])
def test_foreign_marks_are_refused(path, pragma):
    PrivacyAccountant(1.0, path)
    sql(path, f"PRAGMA {pragma}")
    with pytest.raises(ValueError, match="is not a budget file of dp_metrics"):
        PrivacyAccountant(1.0, path)


@pytest.mark.parametrize(
    "content", [b"hello", b"some,csv,file\n" * 1000, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_not_a_database_is_refused_and_left_alone(path, content):
    pathlib.Path(path).write_bytes(content)
    with pytest.raises(ValueError, match="is not a budget file of dp_metrics, or is damaged"):
        PrivacyAccountant(1.0, path)
    assert pathlib.Path(path).read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM budget",
        "INSERT INTO budget SELECT * FROM budget",
        "UPDATE budget SET spent = '0'",
        "UPDATE budget SET spent = '-1'",
        "UPDATE budget SET spent = '2'",
        "UPDATE budget SET spent = 'many'",
        "UPDATE budget SET total = NULL",
        "UPDATE budget SET total = x'00'",
        "DELETE FROM history",
        "UPDATE history SET epsilon = '1/0'",
        "UPDATE history SET epsilon = '-1/2'",
        "DROP TABLE budget",
        "DROP TABLE history",
    ],
)
def test_damaged_records_are_refused(path, damage):
    PrivacyAccountant(1.0, path).spend(0.5, "x")
    sql(path, damage)
    with pytest.raises(ValueError, match=r"damaged.*; nothing was released"):
        PrivacyAccountant(1.0, path)


@pytest.mark.parametrize("spent", ["-1", "2", "many", "1/0"])
def test_records_damaged_while_in_use_are_refused(path, spent):
    accountant = PrivacyAccountant(1.0, path)
    sql(path, f"UPDATE budget SET spent = '{spent}'")
    with pytest.raises(ValueError, match="is damaged: its records do not add up; nothing was released"):
        accountant.spend(0.5, "x")


def test_unreadable_history_is_one_sentence(path):
    accountant = PrivacyAccountant(1.0, path)
    for name in ("x", "y"):
        accountant.spend(0.25, name)
    sql(path, "UPDATE history SET time = 'yesterday' WHERE id = 1")
    with pytest.raises(ValueError, match="is damaged"):
        _ = accountant.history


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_truncated_file_is_refused_while_in_use(path, size):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.5, "x")
    os.truncate(path, size)
    with pytest.raises(ValueError, match="is not a budget file of dp_metrics, or is damaged"):
        accountant.spend(0.5, "y")
    if size > 1:  # SQLite takes a byte for an empty file
        with pytest.raises(ValueError, match="is not a budget file of dp_metrics, or is damaged"):
            PrivacyAccountant(1.0, path)


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


# One name: SQLite's log of recent spends goes by it

SECOND_NAME = r"has 2 names \(hard links\), .*; nothing was released"


def uses(accountant):
    """All that reads or writes the file."""
    return [
        lambda: accountant.spend(0.25, "x"),
        lambda: accountant.require(0.25),
        lambda: accountant.spent,
        lambda: accountant.remaining,
        lambda: accountant.history,
    ]


def test_a_file_of_two_hard_links_is_not_opened_and_left_alone(path):
    PrivacyAccountant(1.0, path).spend(0.25, "x")
    before = pathlib.Path(path).read_bytes()
    os.link(path, path + "2")
    for name in (path, path + "2"):
        with pytest.raises(ValueError, match=SECOND_NAME):
            PrivacyAccountant(1.0, name)
    assert pathlib.Path(path).read_bytes() == before


def test_an_empty_file_of_two_hard_links_is_not_filled(path):
    pathlib.Path(path).touch()
    os.link(path, path + "2")
    with pytest.raises(ValueError, match=SECOND_NAME):
        PrivacyAccountant(1.0, path)
    assert os.path.getsize(path) == 0


def test_a_hard_link_made_after_opening_stops_the_next_use_until_it_is_removed(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.25, "before")
    os.link(path, path + "2")
    for survivor in (accountant, pickle.loads(pickle.dumps(accountant))):
        for use in uses(survivor):
            with pytest.raises(ValueError, match=SECOND_NAME):
                use()
    os.remove(path + "2")
    assert accountant.spent == 0.25
    accountant.spend(0.75, "after")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda path: os.link(path, path + "2"), ValueError, SECOND_NAME),
        pytest.param(
            os.remove,
            FileNotFoundError,
            "is gone, and with it the record of what was spent",
            marks=pytest.mark.skipif(os.name == "nt", reason="Windows removes no file that is open"),
        ),
    ],
    ids=["linked", "removed"],
)
def test_a_file_that_is_linked_or_removed_while_a_spend_waits_takes_no_spend(path, change, error, message):
    accountant, refusals, spends = PrivacyAccountant(1.0, path), [], []

    def spend():
        try:
            accountant.spend(0.5, "x")
            spends.append(0.5)
        except error as refusal:
            refusals.append(str(refusal))

    thread = threading.Thread(target=spend)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        thread.start()
        time.sleep(0.3)  # the spend has opened the file, and waits for the lock
        change(path)
        db.execute("COMMIT")
        thread.join()
    assert spends == []
    assert re.search(message, *refusals)


@pytest.mark.slow
def test_two_processes_cannot_spend_under_two_names(path):
    PrivacyAccountant(1.0, path)
    os.link(path, path + "2")
    script = """
        import os, sys
        from dp_metrics.accounting import PrivacyAccountant

        acknowledged = 0
        for attempt in range(10):
            try:
                PrivacyAccountant(1.0, sys.argv[1]).spend(0.1, "x")
                acknowledged += 1
            except ValueError as error:
                assert "hard links" in str(error), error
        print(acknowledged)
    """
    answers = []
    threads = [
        threading.Thread(target=lambda name=name: answers.append(run_script(script, name)))
        for name in (path, path + "2")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["0\n", "0\n"]


@pytest.mark.slow
def test_a_symbolic_link_is_the_same_name_with_the_same_log(tmp_path, path):
    accountant = PrivacyAccountant(1.0, path)
    file_link, folder_link = tmp_path / "link", tmp_path / "folder"
    file_link.symlink_to(path)
    folder_link.symlink_to(tmp_path, target_is_directory=True)
    names = [str(file_link), str(folder_link / os.path.basename(path)), str(folder_link / "link")]
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("SELECT * FROM budget").fetchall()  # while the file is open its log is kept
        script = """
            import sys
            from dp_metrics.accounting import PrivacyAccountant

            for name in sys.argv[1:]:
                PrivacyAccountant(1.0, name).spend(0.25, "x")
        """
        run_script(script, *names)
        assert {PrivacyAccountant(1.0, name).path for name in names} == {accountant.path} == {path}
        accountant.spend(0.25, "last")
        with pytest.raises(PrivacyBudgetError):
            PrivacyAccountant(1.0, names[0]).spend(0.25, "too much")
        base = os.path.basename(path)
        assert set(os.listdir(tmp_path)) == {base, f"{base}-wal", f"{base}-shm", "link", "folder"}


def test_a_symbolic_link_to_a_file_that_does_not_exist_creates_it(tmp_path, path):
    (tmp_path / "link").symlink_to(path)
    PrivacyAccountant(1.0, tmp_path / "link").spend(0.25, "x")
    assert PrivacyAccountant(1.0, path).spent == 0.25


# Numbers of any length


def test_the_only_spender_does_not_parse_its_own_sum(path, monkeypatch):
    """Parsing takes the square of the length, which grows with every new denominator."""
    accountant, parsed, number = PrivacyAccountant(2.0, path), [], _ledgers._number
    monkeypatch.setattr(_ledgers, "_number", lambda text: parsed.append(text) or number(text))
    for denominator in (3, 5, 7):
        accountant.spend(Fraction(1, denominator), "x")
    assert accountant.spent == float(Fraction(71, 105))
    assert set(parsed) == {"0x2/0x1"}  # the total
    PrivacyAccountant(2.0, path).spend(1.0, "another")
    assert accountant.spent == float(Fraction(176, 105))


def test_long_totals_are_kept_pickled_and_told_apart(path):
    total = Fraction(10**5000 + 1, 10**5000)  # more digits than Python converts
    accountant = PrivacyAccountant(total, path)
    accountant.spend(1.0, "one")
    twin = pickle.loads(pickle.dumps(accountant))
    with pytest.raises(PrivacyBudgetError, match=r"1\.0 of the total of 1\.0 is spent and only 0\.0 remains"):
        twin.spend(1e-300, "a little")
    assert (twin.total, twin.spent, twin.remaining) == (1.0, 1.0, 0.0)
    assert PrivacyAccountant(total, path).spent == 1.0
    with pytest.raises(ValueError, match=r"a total that equals 1\.0 only as a float; pass the same total"):
        PrivacyAccountant(1.0, path)


def test_missing_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is in a folder that does not exist"):
        PrivacyAccountant(1.0, tmp_path / "no" / "budget")


def test_folder_instead_of_a_file_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        PrivacyAccountant(1.0, tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_device_is_refused():
    with pytest.raises(OSError, match=r"The budget file '/dev/full' .*; nothing was released"):
        PrivacyAccountant(1.0, "/dev/full")


def test_vanished_file_is_not_created_again(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.5, "x")
    pickled = pickle.dumps(accountant)
    os.remove(path)
    for survivor in (accountant, pickle.loads(pickled)):
        for use in (
            lambda a: a.spend(0.5, "y"),
            lambda a: a.require(0.5),
            lambda a: a.spent,
            lambda a: a.history,
        ):
            with pytest.raises(FileNotFoundError, match="is gone, and with it the record of what was spent"):
                use(survivor)
    assert not os.path.exists(path)


def test_replaced_file_is_refused(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.9, "x")
    os.remove(path)
    PrivacyAccountant(1.0, path)
    with pytest.raises(ValueError, match="was replaced: it is not the file that this accountant opened"):
        accountant.spend(0.9, "y")
    assert PrivacyAccountant(1.0, path).spent == 0.0


@pytest.fixture
def unprivileged_folder():
    """A folder of an ordinary user, as whom the test runs: nothing is read-only for root."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            yield pathlib.Path(folder)
        else:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
            try:
                yield pathlib.Path(folder)
            finally:
                os.seteuid(0)


READ_ONLY = r"cannot be written: it, its folder or its companion -wal or -shm is read-only; make .* none"


@needs_permissions
def test_read_only_file_is_refused(unprivileged_folder):
    path = unprivileged_folder / "budget"
    accountant = PrivacyAccountant(1.0, path)
    path.chmod(0o444)
    for use in (lambda: accountant.spend(0.5, "x"), lambda: PrivacyAccountant(1.0, path)):
        with pytest.raises(PermissionError, match=READ_ONLY):
            use()
    path.chmod(0o644)
    assert accountant.spent == 0.0


@needs_permissions
def test_read_only_folder_is_refused(unprivileged_folder):
    path = unprivileged_folder / "budget"
    accountant = PrivacyAccountant(1.0, path)
    unprivileged_folder.chmod(0o555)
    new = unprivileged_folder / "new"
    for use in (lambda: accountant.spend(0.5, "x"), lambda: PrivacyAccountant(1.0, new)):
        with pytest.raises(PermissionError, match=READ_ONLY):
            use()
    unprivileged_folder.chmod(0o755)
    assert accountant.spent == 0.0
    assert not new.exists()


@needs_permissions
def test_a_file_that_was_read_only_says_that_its_companions_still_are(unprivileged_folder):
    path = unprivileged_folder / "budget"
    accountant = PrivacyAccountant(1.0, path)
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


def test_a_full_disk_is_told_in_a_sentence(path, monkeypatch):
    accountant, connect = PrivacyAccountant(1.0, path), sqlite3.connect

    class Full(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.execute("PRAGMA max_page_count=1")  # no more pages than there are

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Full, **options))
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


def test_locked_file_is_refused_after_the_timeout(path, monkeypatch):
    monkeypatch.setattr(_ledgers, "_BUSY_SECONDS", 0.2)
    accountant = PrivacyAccountant(1.0, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        for use in (lambda: accountant.spend(0.5, "x"), lambda: PrivacyAccountant(1.0, path)):
            start = time.monotonic()
            with pytest.raises(TimeoutError, match="stays locked by another process; nothing was released"):
                use()
            assert time.monotonic() - start < 5
        assert accountant.spent == 0.0  # readers do not wait
    accountant.spend(0.5, "x")


def test_spend_waits_for_a_lock(path):
    accountant = PrivacyAccountant(1.0, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, db.execute, ["COMMIT"])
        timer.start()
        accountant.spend(0.5, "x")
        timer.join()
    assert accountant.spent == 0.5


def test_failed_write_spends_nothing(path):
    accountant = PrivacyAccountant(1.0, path)
    sql(path, "CREATE TRIGGER full BEFORE UPDATE ON budget BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(OSError, match=r"cannot be used \(disk full\)"):
        accountant.spend(0.5, "x")
    assert (accountant.spent, accountant.history) == (0.0, ())


def test_a_spend_is_flushed_to_the_disk_before_it_returns(path, monkeypatch):
    accountant, statements, in_force, connect = PrivacyAccountant(1.0, path), [], {}, sqlite3.connect

    class Traced(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.set_trace_callback(statements.append)

        def execute(self, statement, *args):
            if statement in ("BEGIN IMMEDIATE", "COMMIT"):
                in_force[statement] = [
                    super(Traced, self).execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("synchronous", "fullfsync", "journal_mode")
                ]
            return super().execute(statement, *args)

    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Traced, **options)
    )
    accountant.spend(0.5, "x")
    monkeypatch.undo()
    full = 2
    assert in_force == {name: [full, 1, "wal"] for name in ("BEGIN IMMEDIATE", "COMMIT")}
    words = [statement.split()[0] for statement in statements]
    assert [word for word in words if word not in ("PRAGMA", "SELECT")] == [
        "BEGIN",
        "INSERT",
        "UPDATE",
        "COMMIT",
    ]
    assert words[-1] == "COMMIT"


# Many processes and crashes. The scripts fork from an interpreter that has no other threads.

STRESS = """
    import os, random, sys, traceback
    from dp_metrics.accounting import PrivacyAccountant
    from dp_metrics.exceptions import PrivacyBudgetError

    path, processes, spends, total = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

    def work(i):
        accountant = PrivacyAccountant(float(total), path)  # all race to create it
        for j in range(spends):
            try:
                accountant.spend(0.001, f"{i} {j}")
            except PrivacyBudgetError:
                continue
            os.write(1, f"{i} {j}\\n".encode())

    children = []
    for i in range(processes):
        if pid := os.fork():
            children.append(pid)
        else:
            try:
                work(i)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
    sys.exit(max(os.waitpid(pid, 0)[1] for pid in children) != 0)
"""


@needs_fork
@pytest.mark.parametrize(
    ("processes", "spends"), [(4, 20), pytest.param(8, 200, marks=pytest.mark.slow)], ids=["fast", "slow"]
)
@pytest.mark.parametrize(
    "share", [pytest.param(1.0, marks=pytest.mark.slow), 0.75], ids=["all fit", "a quarter does not"]
)
def test_processes_neither_exceed_the_budget_nor_lose_a_spend(path, processes, spends, share):
    fitting = round(share * processes * spends)
    admitted = run_script(STRESS, path, processes, spends, fitting / 1000).splitlines()
    accountant = PrivacyAccountant(fitting / 1000, path)
    assert len(admitted) == fitting
    assert sorted(admitted) == sorted(entry.spend_name for entry in accountant.history)
    assert accountant.remaining == 0.0


RACE_OF_RELATIONS = """
    import os, sys, time, traceback
    from dp_metrics.accounting import PrivacyAccountant

    path, start = sys.argv[1], time.monotonic() + 0.05
    for i in range(4):
        if os.fork() == 0:
            try:
                relation = ["replace_one", "add_or_remove_one"][i % 2]
                accountant = PrivacyAccountant(1.0, path)
                while time.monotonic() < start:
                    pass
                try:
                    accountant.spend(0.01, relation, neighboring=relation)
                except ValueError as error:
                    assert "different neighbouring relations" in str(error)
                    os.write(1, f"{relation}\\n".encode())
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
    sys.exit(max(os.wait()[1] for i in range(4)) != 0)
"""


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 100])
def test_processes_that_race_for_the_first_spend_agree_on_one_relation(path, rounds):
    for attempt in range(rounds):
        refused = run_script(RACE_OF_RELATIONS, f"{path}{attempt}").splitlines()
        history = PrivacyAccountant(1.0, f"{path}{attempt}").history
        assert len(history) == len(refused) == 2
        assert len({entry.neighboring for entry in history}) == 1
        assert {entry.neighboring for entry in history}.isdisjoint(refused)


@pytest.mark.slow
def test_two_processes_of_two_relations_cannot_share_a_budget(path):
    accountant = PrivacyAccountant(1.0, path)
    accountant.spend(0.25, "here")
    script = """
        import sys
        from dp_metrics.accounting import PrivacyAccountant

        try:
            PrivacyAccountant(1.0, sys.argv[1]).spend(0.25, "there", neighboring="add_or_remove_one")
        except ValueError as error:
            print(error)
    """
    assert "kept under neighboring='replace_one'" in run_script(script, path)
    assert [entry.spend_name for entry in accountant.history] == ["here"]


CREATION = """
    import os, sys, time, traceback
    from dp_metrics.accounting import PrivacyAccountant

    for round in range(int(sys.argv[2])):
        path, children, start = f"{sys.argv[1]}{round}", [], time.monotonic() + 0.02
        for i in range(6):
            if pid := os.fork():
                children.append(pid)
                continue
            try:
                while time.monotonic() < start:
                    pass
                PrivacyAccountant(1.0, path).spend(0.1, str(i))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
        assert PrivacyAccountant(1.0, path).spent == 0.6
"""


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("rounds", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_processes_that_create_together_share_one_file(path, rounds):
    run_script(CREATION, path, rounds)


CRASH = """
    import os, random, select, signal, sys
    from dp_metrics.accounting import PrivacyAccountant

    generator, released, creations = random.Random(0), {}, 0
    for round in range(int(sys.argv[2])):
        # Every other round creates a file and is killed in the middle of that, or soon after.
        path, patience = (sys.argv[1], 0.1) if round % 2 else (f"{sys.argv[1]}{round}", 0.01)
        receive, send = os.pipe()
        pid = os.fork()
        if pid == 0:
            accountant = PrivacyAccountant(1000, path)
            for i in range(10**9):
                accountant.spend(0.001, f"{round} {i}")
                os.write(send, f"{round} {i}\\n".encode())
        os.close(send)
        if round % 4 == 3:
            select.select([receive], [], [], 60)  # however slow the machine is, every fourth run releases
        select.select([], [], [], generator.random() * patience)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(receive) as pipe:
            released.setdefault(path, []).extend(pipe.read().splitlines())
        creations += os.path.exists(path)
        accountant = PrivacyAccountant(1000, path)
        recorded = [spend.spend_name for spend in accountant.history]
        assert set(released[path]) <= set(recorded), "released but not recorded"
        assert len(recorded) == len(set(recorded)) <= len(released[path]) + round + 1
        assert accountant.spent == len(recorded) / 1000
    print(creations, sum(map(len, released.values())))
"""


@needs_fork
@pytest.mark.parametrize("rounds", [5, pytest.param(400, marks=pytest.mark.slow)])
def test_kill_at_any_moment_leaves_no_release_unrecorded(path, rounds):
    creations, releases = map(int, run_script(CRASH, path, rounds).split())
    assert creations > rounds / 2
    assert releases > 0


@pytest.mark.slow
@needs_fork
def test_fork_while_threads_spend(path):
    """A child forked in the middle of another thread's spend inherits neither its lock nor its connection."""
    script = """
        import os, sys, threading, traceback, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from dp_metrics.accounting import PrivacyAccountant

        accountant, memory = PrivacyAccountant(1000, sys.argv[1]), PrivacyAccountant(1000)
        stop = threading.Event()

        def work():
            while not stop.is_set():
                accountant.spend(0.001, "thread")
                memory.spend(0.001, "thread")

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(20):
            pid = os.fork()
            if pid == 0:
                try:
                    memory.spent
                    accountant.spend(0.001, "child")
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert [spend.spend_name for spend in accountant.history].count("child") == 20
    """
    run_script(script, path)


# Parts of a budget: rows of the same file


def divided(path):
    """A budget of two parts, a quarter of the first of which is spent, and that has parts of its own."""
    budget = PrivacyAccountant(1.0, path)
    part = budget.parallel(0.5, ["a", "b"])["a"]
    part.spend(0.25, "x")
    part.parallel(0.125, ["c"])["c"].spend(0.125, "y")
    return budget


def test_parts_are_in_the_file_of_the_budget_and_an_undivided_file_has_no_tables_for_them(path):
    PrivacyAccountant(1.0, path).spend(0.5, "x")
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    assert sql(path, tables) == [[("budget",), ("history",), ("releases",)]]
    PrivacyAccountant(1.0, path + "2").parallel(0.5, ["a"])
    divided_too = [("budget",), ("history",), ("part_history",), ("parts",), ("releases",)]
    assert sql(path + "2", tables) == [divided_too]
    assert sql(path + "2", "PRAGMA user_version") == [[(1,)]]


def test_an_existing_file_can_be_divided(path):
    write_as_before_relations_were_compared(path, ["add_or_remove_one"] * 2)
    budget = PrivacyAccountant(1.0, path)
    budget.parallel(0.5, ["a"], neighboring="add_or_remove_one")["a"].spend(
        0.5, "new", neighboring="add_or_remove_one"
    )
    assert PrivacyAccountant(1.0, path).spent == 0.75


def test_the_path_of_a_part_opens_the_whole_budget(path):
    part = divided(path).parallel(0.5, ["a", "b"])["b"]
    assert PrivacyAccountant(1.0, part.path).history[0].spend_name == "parallel: a, b"
    with pytest.raises(ValueError, match=r"was created with a total of 1\.0, not 0\.5"):
        PrivacyAccountant(0.5, part.path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE parts SET total = '3/4' WHERE name = 'a'",
        "UPDATE parts SET total = '1/4' WHERE name = 'c'",
        "UPDATE parts SET total = 'many'",
        "UPDATE parts SET spent = '0' WHERE name = 'a'",
        "UPDATE parts SET spent = '0x1/0x2' WHERE name = 'a'",
        "UPDATE parts SET spent = NULL WHERE name = 'b'",
        "UPDATE parts SET paid_by = 7 WHERE name = 'b'",
        "UPDATE parts SET parent = 2 WHERE name = 'b'",
        "UPDATE part_history SET epsilon = '1/0'",
        "UPDATE part_history SET epsilon = '-1/4'",
        "DELETE FROM part_history WHERE label = 'x'",
        "DELETE FROM parts WHERE name = 'c'",
        "DELETE FROM history",
        "DROP TABLE part_history",
    ],
)
def test_damaged_parts_are_refused(path, damage):
    divided(path)
    assert PrivacyAccountant(1.0, path).spent == 0.5
    sql(path, damage)
    with pytest.raises(ValueError, match=r"damaged.*; nothing was released"):
        PrivacyAccountant(1.0, path)


@pytest.mark.parametrize(
    "damage",
    [
        *("DELETE FROM parts", "DROP TABLE parts", "UPDATE parts SET spent = '2'"),
        "UPDATE parts SET total = '1/0'",
        "DELETE FROM budget",
    ],
)
def test_parts_damaged_while_in_use_are_refused(path, damage):
    part = divided(path).parallel(0.5, ["a", "b"])["a"]
    sql(path, damage)
    for use in uses(part):
        with pytest.raises(ValueError, match=r"damaged.*; nothing was released"):
            use()


def test_a_part_of_a_file_that_is_gone_replaced_or_linked_takes_no_spend(path):
    part = divided(path).parallel(0.5, ["a", "b"])["b"]
    os.link(path, path + "2")
    for use in (*uses(part), lambda: part.parallel(0.1, ["z"])):
        with pytest.raises(ValueError, match=SECOND_NAME):
            use()
    os.remove(path + "2")
    os.remove(path)
    for use in (*uses(part), lambda: part.parallel(0.1, ["z"])):
        with pytest.raises(FileNotFoundError, match="is gone, and with it the record of what was spent"):
            use()
    divided(path)
    for use in (*uses(part), lambda: part.parallel(0.1, ["z"])):
        with pytest.raises(ValueError, match="was replaced"):
            use()


def test_a_failed_division_spends_nothing_and_makes_no_part(path):
    budget = divided(path)
    sql(path, "CREATE TRIGGER full BEFORE INSERT ON parts BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(OSError, match=r"cannot be used \(disk full\)"):
        budget.parallel(0.25, ["d", "e"])
    assert (budget.spent, len(budget.history)) == (0.5, 1)
    sql(path, "DROP TRIGGER full")
    assert budget.parallel(0.25, ["d", "e"])["e"].total == 0.25
    assert budget.spent == 0.75


@pytest.mark.slow
def test_joblib_workers_share_a_part(path):
    budget = PrivacyAccountant(1.0, path)
    parts = budget.parallel(0.5, ["a", "b"])
    joblib.Parallel(n_jobs=2)(
        joblib.delayed(spend_a_tenth)(part) for part in parts.values() for _ in range(5)
    )
    assert [part.remaining for part in parts.values()] == [0.0, 0.0]
    with pytest.raises(PrivacyBudgetError, match="of the part 'b' is spent"):
        joblib.Parallel(n_jobs=2)(joblib.delayed(spend_a_tenth)(parts["b"]) for _ in range(2))
    assert budget.spent == 0.5


@pytest.mark.slow
@needs_fork
def test_without_path_a_part_refuses_in_a_forked_child():
    script = """
        import os
        from dp_metrics.accounting import PrivacyAccountant

        budget = PrivacyAccountant(1.0)
        part = budget.parallel(0.5, ["a"])["a"]
        if os.fork() == 0:
            for call in (
                lambda: part.spend(0.1, "x"),
                lambda: part.require(0.1),
                lambda: part.split(2),
                lambda: part.parallel(0.1, ["b"]),
                lambda: budget.parallel(0.5, ["a"]),
                lambda: budget.split(2),
            ):
                try:
                    call()
                    print("spent", flush=True)
                except RuntimeError as error:
                    print("cannot be used in a forked process" in str(error), flush=True)
            os._exit(0)
        os.wait()
        part.spend(0.5, "x")
    """
    assert run_script(script).splitlines() == ["True"] * 6


DIVISION = """
    import os, sys, time, traceback
    from dp_metrics.accounting import PrivacyAccountant
    from dp_metrics.exceptions import PrivacyBudgetError

    for round in range(int(sys.argv[2])):
        path, start = f"{sys.argv[1]}{round}", time.monotonic() + 0.05
        for i in range(4):
            if os.fork() == 0:
                try:
                    while time.monotonic() < start:
                        pass
                    # all race to create the file, to divide it and to spend from the parts
                    for name, part in PrivacyAccountant(1.0, path).parallel(0.1, ["a", "b"]).items():
                        for j in range(4):
                            try:
                                part.spend(0.01, f"{i} {j}")
                                os.write(1, b"spent ")
                            except PrivacyBudgetError:
                                os.write(1, b"refused ")
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
        assert [os.wait()[1] for i in range(4)] == [0] * 4
        budget = PrivacyAccountant(1.0, path)
        assert (budget.spent, len(budget.history)) == (0.1, 1)
        assert [len(part.history) for part in budget.parallel(0.1, ["a", "b"]).values()] == [10, 10]
"""


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("rounds", [2, 100])
def test_processes_that_divide_together_share_the_parts(path, rounds):
    words = run_script(DIVISION, path, rounds).split()
    assert (words.count("spent"), words.count("refused")) == (20 * rounds, 12 * rounds)


CRASH_OF_PARTS = """
    import os, random, select, signal, sys
    from dp_metrics.accounting import PrivacyAccountant

    generator, released, path = random.Random(0), set(), sys.argv[1]
    for round in range(int(sys.argv[2])):
        names = [f"{round // 3} {i}" for i in range(3)]  # the same call in three runs
        receive, send = os.pipe()
        pid = os.fork()
        if pid == 0:
            parts = PrivacyAccountant(1000, path).parallel(1, names)
            for i in range(10**9):
                name = names[i % 3]
                parts[name].spend(0.0001, f"{round} {i}")
                os.write(send, f"{name}/{round} {i}\\n".encode())
        os.close(send)
        if round % 3 == 2:
            select.select([receive], [], [], 60)  # however slow the machine is, every third run releases
        select.select([], [], [], generator.random() * 0.05)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(receive) as pipe:
            released |= {tuple(line.split("/")) for line in pipe.read().splitlines()}
        budget = PrivacyAccountant(1000, path)  # adds up all parts
        divisions = len(budget.history)
        assert budget.spent == divisions <= round // 3 + 1
        if budget.history and budget.history[-1].spend_name == f"parallel: {', '.join(names)}":
            for name, part in budget.parallel(1, names).items():
                recorded = [spend.spend_name for spend in part.history]
                assert {label for where, label in released if where == name} <= set(recorded)
                assert part.spent == len(recorded) / 10_000
    print(divisions, len(released))
"""


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("rounds", [6, 300])
def test_kill_at_any_moment_divides_once_and_leaves_no_release_unrecorded(path, rounds):
    divisions, releases = map(int, run_script(CRASH_OF_PARTS, path, rounds).split())
    assert divisions == rounds // 3
    assert releases >= divisions
