"""Where the spends of a budget are kept: in this process, or in a file that many processes share.

A ledger records a spend in one step with a check of its caller: nobody else can spend in between. What is
checked is the caller's business.
"""

import os
import pathlib
import secrets
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from dp_metrics.accounting.sessions import BudgetState, Session, joined, session_of
from dp_metrics.accounting.spends import Check, Claim, Ledger, LedgerEntry, Spend, are_made, name_used

_BUSY_SECONDS = 60.0
_APPLICATION_ID = 0x64706D62  # "dpmb" in the header of every budget file
_VERSION = 1
_DAMAGED = "is damaged: its records do not add up"
_GONE = "is gone, and with it the record of what was spent"
_ROLLED_BACK = (
    "was rolled back or edited, or is a copy: it does not record all that this process has seen of it; put "
    "back its latest copy, and its -wal if there was one"
)
_FOREIGN = "is not a budget file of dp_metrics, or is damaged"
# A file that is looked at while it is read-only gets companions that stay read-only when it no longer is.
_READ_ONLY = (
    "cannot be written: it, its folder or its companion -wal or -shm is read-only; make all that exist "
    "writable, and delete none"
)
_FULL = "has no room: its disk is full, or a limit is reached; free some space and repeat the call"
_LARGEST_NUMBER = (1 << 63) - 1
_NOTHING = ("0x0/0x1", Fraction(0))  # a sum as a budget file spells it, and as a number
_WITHOUT_PATH = (
    "A PrivacyAccountant without a path cannot {}, because every process would spend the whole budget again; "
    "pass path= to PrivacyAccountant to share one budget between processes."
)

# One lock for all ledgers, held across every fork: a child never inherits a lock that nobody will release, a
# half-written record or an open SQLite connection.
_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class MemoryLedger:
    """A ledger in this process: it cannot be pickled, stores no answer, and is of no use in a forked child.

    Parameters
    ----------
    total : Fraction
        The total of the budget.
    part, relation : str or None, default=None
        Name and neighbouring relation of a part of another ledger.
    """

    path = None

    def __init__(self, total: Fraction, part: str | None = None, relation: str | None = None) -> None:
        self.total, self.part = total, part
        # The only record: one append is a whole spend, with the parts that it paid for, so that an interrupt
        # leaves all of it or nothing.
        self._entries: list[tuple[Fraction, LedgerEntry, dict[str, MemoryLedger]]] = []
        # These follow from the first entries, and change in one step: how many, exact sum, relations.
        self._known = (0, Fraction(0), frozenset(() if relation is None else (relation,)))
        self._pid = os.getpid()

    def refuse_if_forked(self) -> None:
        """Raise RuntimeError in a forked child, which has a copy of the ledger."""
        if os.getpid() != self._pid:
            raise RuntimeError(_WITHOUT_PATH.format("be used in a forked process"))

    def record(
        self,
        epsilon: Fraction,
        spend_name: str,
        mechanism: str | None,
        neighboring: str,
        check: Check,
        claim: Claim | None = None,
    ) -> int:
        """Record a spend, unless the check raises or its name is taken; return its number."""
        self.refuse_if_forked()
        with _LOCK:
            name = spend_name
            if claim is not None and claim.is_named:
                taken = {kept.spend.spend_name for _, kept, _ in self._entries if kept.is_named is not False}
                name = _free_name(spend_name, claim, taken, self)
            check(*self._sum())
            spend = Spend(datetime.now(UTC), name, float(epsilon), mechanism, neighboring)
            self._entries.append((epsilon, LedgerEntry(spend, None if claim is None else claim.is_named), {}))
            return len(self._entries) - 1

    def keep(self, number: int, answer: str | None, summary: str) -> None:
        """Do nothing: without a path nothing is stored."""

    def serve(self, spend_name: str) -> bool:
        """Return False: what nobody stored is never served."""
        return False

    def kept(self, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        """Return all entries, or those of a name, oldest first, with what is kept of each."""
        with _LOCK:
            return tuple(kept for _, kept, _ in self._entries if spend_name in (None, kept.spend.spend_name))

    def divide(
        self, names: Sequence[str], epsilon: Fraction, spend_name: str, neighboring: str, check: Check
    ) -> dict[str, Ledger]:
        """Record one spend and make the parts, or return them if they exist."""
        self.refuse_if_forked()
        with _LOCK:
            made = [
                (number, name, part.total, kept.spend.neighboring)
                for number, (_, kept, parts) in enumerate(self._entries)
                for name, part in parts.items()
            ]
            if not are_made(names, epsilon, neighboring, made):
                check(*self._sum())
                spend = Spend(datetime.now(UTC), spend_name, float(epsilon), None, neighboring)
                new = {name: MemoryLedger(epsilon, _part_of(self, name), neighboring) for name in names}
                self._entries.append((epsilon, LedgerEntry(spend, is_named=False), new))
        there = self.parts()
        return {name: there[name] for name in names}

    def parts(self) -> dict[str, Ledger]:
        """Return all parts that were made of this ledger."""
        with _LOCK:
            return {name: part for *_, parts in self._entries for name, part in parts.items()}

    def spent(self) -> Fraction:
        """Return the exact sum of the recorded epsilons."""
        with _LOCK:
            return self._sum()[0]

    def history(self) -> tuple[Spend, ...]:
        """Return all entries, oldest first."""
        with _LOCK:
            return tuple(kept.spend for _, kept, _ in self._entries)

    def _sum(self) -> tuple[Fraction, frozenset[str]]:
        known, spent, relations = self._known
        for epsilon, kept, _ in self._entries[known:]:
            known, spent, relations = known + 1, spent + epsilon, relations | {kept.spend.neighboring}
        self._known = known, spent, relations
        return spent, relations

    def __reduce__(self) -> tuple[Any, ...]:
        reason = _WITHOUT_PATH.format("be pickled")
        # a tool with several processes adds its own error behind, and Python shows the first cause first
        raise TypeError(reason) from TypeError(reason)


class _Statements(NamedTuple):
    """What is asked of the file about a budget, or about one of its parts."""

    balance: str
    update: str
    insert: str
    entry: str
    relations: str
    entries: str
    kept: str
    names: str


_COLUMNS = "time, label, epsilon, mechanism, neighboring"
_ENTRY = f"SELECT id, {_COLUMNS} FROM {{table}} WHERE {{where}} AND id <= :number ORDER BY id DESC LIMIT 1"
_KEPT = (
    "SELECT {} FROM {table} LEFT JOIN releases ON releases.part = :part AND spend = {table}.id WHERE {where}"
    " AND {} ORDER BY {table}.id"
)
_ALL = f"id, {_COLUMNS}, is_named, question, answer, summary, stored", "(:label IS NULL OR label = :label)"
_NAMES = "label", "is_named IS NOT 0"
_OF_WHOLE = {"table": "history", "where": "true"}
_OF_PART = {"table": "part_history", "where": "part_history.part = :part"}
_WHOLE = _Statements(
    "SELECT identity, total, spent FROM budget",
    "UPDATE budget SET spent = :spent",
    f"INSERT INTO history ({_COLUMNS}) VALUES (:time, :label, :epsilon, :mechanism, :neighboring)",
    _ENTRY.format(**_OF_WHOLE),
    "SELECT DISTINCT neighboring FROM history",
    f"SELECT {_COLUMNS} FROM history ORDER BY id",
    _KEPT.format(*_ALL, **_OF_WHOLE),
    _KEPT.format(*_NAMES, **_OF_WHOLE),
)
_PART = _Statements(
    "SELECT identity, parts.total, parts.spent FROM budget, parts WHERE id = :part",
    "UPDATE parts SET spent = :spent WHERE id = :part",
    f"INSERT INTO part_history (part, {_COLUMNS})"
    " VALUES (:part, :time, :label, :epsilon, :mechanism, :neighboring)",
    _ENTRY.format(**_OF_PART),
    "SELECT neighboring FROM parts WHERE id = :part"
    " UNION SELECT neighboring FROM part_history WHERE part = :part",
    f"SELECT {_COLUMNS} FROM part_history WHERE part = :part ORDER BY id",
    _KEPT.format(*_ALL, **_OF_PART),
    _KEPT.format(*_NAMES, **_OF_PART),
)
# The first division makes these tables, so that a file without parts stays as it was. A part has the number
# of the spend that paid for it, in the history of the budget (parent 0) or of the part that was divided.
_TABLES_OF_PARTS = (
    "CREATE TABLE IF NOT EXISTS parts (id INTEGER PRIMARY KEY, parent INTEGER, paid_by INTEGER, name TEXT,"
    " total TEXT, spent TEXT, neighboring TEXT, UNIQUE (parent, name))",
    "CREATE TABLE IF NOT EXISTS part_history (id INTEGER PRIMARY KEY, part INTEGER,"
    " time TEXT, label TEXT, epsilon TEXT, mechanism TEXT, neighboring TEXT)",
)
# What spends have bought, those of the budget as of part 0. A file of an earlier version gets this table when
# it is opened, and stays legible to that version, whose spends have no row here.
_TABLE_OF_RELEASES = (
    "CREATE TABLE IF NOT EXISTS releases (part INTEGER, spend INTEGER, is_named INTEGER, question TEXT,"
    " answer TEXT, summary TEXT, stored TEXT, PRIMARY KEY (part, spend))"
)


class FileLedger:
    """A ledger in a SQLite file, whose random identity tells it from a file put in its place.

    The file is created if it does not exist, and else continued. Unpickling does neither: where the file has
    gone, a new one would be a second budget.

    Parameters
    ----------
    total : Fraction
        The total of the budget, which the file must have been created with.
    path : str or os.PathLike
        The file.
    """

    part: str | None = None
    _row = 0  # the number of a part in its table
    _statements = _WHOLE
    _session: Session | None = None  # it begins when the file has been opened

    def __init__(self, total: Fraction, path: str | os.PathLike[str]) -> None:
        self.total = total
        self.path = _resolved(path)
        self._identity: str | None = None  # unknown until the file has been opened
        self._known = _NOTHING
        self._create_or_continue()

    @classmethod
    def total_of(cls, path: str | os.PathLike[str]) -> Fraction:
        """Return the total that an existing file was created with; what else it holds is not yet checked."""
        ledger = cls.__new__(cls)
        ledger.path, ledger._identity, ledger._known = _resolved(path), None, _NOTHING
        with ledger._connection() as db:
            if ledger._is_empty(db):
                ledger._fail(ValueError, "is empty: no total was given to it")
            with ledger._parsing():
                [(total,)] = db.execute("SELECT total FROM budget")
                return _number(total)

    def refuse_if_forked(self) -> None:
        """Do nothing: with a connection per spend, any process may spend."""

    def record(
        self,
        epsilon: Fraction,
        spend_name: str,
        mechanism: str | None,
        neighboring: str,
        check: Check,
        claim: Claim | None = None,
    ) -> int:
        """Record a spend on the disk, unless the check raises or its name is taken, in one transaction."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            name = spend_name
            if claim is not None:
                db.execute(_TABLE_OF_RELEASES)  # the file may have been opened by an earlier version
            if claim is not None and claim.is_named:
                taken = {name for (name,) in db.execute(self._statements.names, self._key)}
                name = _free_name(spend_name, claim, taken, self)
            number = self._record(db, epsilon, name, mechanism, neighboring, check)
            if claim is not None:
                row = (self._row, number, claim.is_named, claim.question)
                db.execute("INSERT INTO releases (part, spend, is_named, question) VALUES (?, ?, ?, ?)", row)
            seen = self._last_entry(db, self._known[1])
            db.execute("COMMIT")
            self._saw(seen)
        return number

    def keep(self, number: int, answer: str | None, summary: str) -> None:
        """Add to a spend with a claim what was released, on the disk."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            self._budget(db)
            row = (answer, summary, datetime.now(UTC).isoformat(), self._row, number)
            change = "SET answer = ?, summary = ?, stored = ? WHERE part = ? AND spend = ? AND stored IS NULL"
            db.execute(f"UPDATE releases {change}", row)
            db.execute("COMMIT")

    def serve(self, spend_name: str) -> bool:
        """Return whether a stored answer may be served: once in a session, as a name is used once."""
        assert self._session is not None
        with _LOCK:
            used = (self._row, spend_name)
            is_first = used not in self._session.served
            self._session.served.add(used)
            return is_first

    def kept(self, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        """Return all entries, or those of a name, oldest first, with what is kept of each."""
        with self._connection() as db:
            db.execute(_TABLE_OF_RELEASES)
            self._budget(db)
            return self._kept(db, spend_name)

    def _kept(self, db: sqlite3.Connection, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        rows = db.execute(self._statements.kept, {**self._key, "label": spend_name})
        session = self._session
        assert session is not None
        with self._parsing():
            return tuple(
                LedgerEntry(
                    _spend(row[:5]),
                    None if named is None else bool(named),
                    *texts,
                    None if stored is None else datetime.fromisoformat(stored),
                    session.is_earlier(self._row, number),
                )
                for number, *row, named, question, answer, summary, stored in rows
                for texts in [(question, answer, summary)]
            )

    def divide(
        self, names: Sequence[str], epsilon: Fraction, spend_name: str, neighboring: str, check: Check
    ) -> dict[str, Ledger]:
        """Record one spend and make the parts, in one transaction, or return them if they exist."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            self._budget(db)
            for statement in _TABLES_OF_PARTS:
                db.execute(statement)
            parts = "SELECT paid_by, name, total, neighboring FROM parts WHERE parent = ?"
            rows = db.execute(parts, (self._row,))
            with self._parsing():
                made = [(paid_by, name, _number(total), rest) for paid_by, name, total, rest in rows]
            if not are_made(names, epsilon, neighboring, made):
                paid_by = self._record(db, epsilon, spend_name, None, neighboring, check)
                db.executemany(
                    "INSERT INTO parts (parent, paid_by, name, total, spent, neighboring)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (self._row, paid_by, name, _spelled(epsilon), _NOTHING[0], neighboring)
                        for name in names
                    ],
                )
            there, seen = self._parts(db), self._last_entry(db, self._known[1])
            db.execute("COMMIT")
            self._saw(seen)
        return {name: there[name] for name in names}

    def parts(self) -> dict[str, Ledger]:
        """Return all parts that were made of this ledger."""
        with self._connection() as db:
            for statement in _TABLES_OF_PARTS:
                db.execute(statement)
            self._budget(db)
            return self._parts(db)

    def _parts(self, db: sqlite3.Connection) -> dict[str, Ledger]:
        rows = db.execute("SELECT id, name, total FROM parts WHERE parent = ?", (self._row,))
        with self._parsing():
            return {
                name: _FilePart(self, number, _part_of(self, name), _number(total))
                for number, name, total in rows
            }

    def spent(self) -> Fraction:
        """Return the exact sum of the recorded epsilons."""
        with self._connection() as db:
            return self._budget(db)[1]

    def history(self) -> tuple[Spend, ...]:
        """Return all entries, oldest first."""
        with self._connection() as db:
            self._budget(db)
            rows = db.execute(self._statements.entries, self._key)
            with self._parsing():
                return tuple(map(_spend, rows))

    def __getstate__(self) -> dict[str, Any]:
        # a Fraction would be pickled as a decimal
        return {**self.__dict__, "total": _spelled(self.total), "_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with _LOCK:
            session = joined(state["_identity"], state["_session"])
        self.__dict__.update(state, total=_number(state["total"]), _known=_NOTHING, _session=session)

    @property
    def _key(self) -> dict[str, Any]:
        return {"part": self._row}

    def _record(
        self,
        db: sqlite3.Connection,
        epsilon: Fraction,
        spend_name: str,
        mechanism: str | None,
        neighboring: str,
        check: Check,
    ) -> int:
        """Record a spend in a transaction of the caller; return its number in the history."""
        spent = self._budget(db)[1]
        check(spent, {relation for (relation,) in db.execute(self._statements.relations, self._key)})
        entry = {
            **self._key,
            "time": datetime.now(UTC).isoformat(),
            "label": spend_name,
            "epsilon": _spelled(epsilon),
            "mechanism": mechanism,
            "neighboring": neighboring,
        }
        number = db.execute(self._statements.insert, entry).lastrowid
        spent += epsilon
        self._known = _spelled(spent), spent
        db.execute(self._statements.update, {**self._key, "spent": self._known[0]})
        assert number is not None
        return number

    def _create_or_continue(self) -> None:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                return self._open()
            except TimeoutError:
                # SQLite fails at once where waiting could deadlock (two processes change the journal mode).
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)

    def _open(self) -> None:
        with self._connection("rwc") as db:
            db.execute("BEGIN")
            self._is_empty(db)  # somebody else's file is refused before it is changed
            self._refuse_second_name()
            db.execute("COMMIT")
            if db.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
                self._fail(OSError, "cannot have a write-ahead log; put it on a local disk")
            db.execute("BEGIN IMMEDIATE")
            if self._is_empty(db):
                # One transaction: a process killed inside it leaves an empty file, which the next one fills.
                db.execute(f"PRAGMA application_id={_APPLICATION_ID}")
                db.execute(f"PRAGMA user_version={_VERSION}")
                db.execute("CREATE TABLE budget (identity TEXT, total TEXT, spent TEXT)")
                db.execute(
                    "CREATE TABLE history (id INTEGER PRIMARY KEY,"
                    " time TEXT, label TEXT, epsilon TEXT, mechanism TEXT, neighboring TEXT)"
                )
                first = (secrets.token_hex(16), _spelled(self.total), _NOTHING[0])
                db.execute("INSERT INTO budget VALUES (?, ?, ?)", first)
            db.execute(_TABLE_OF_RELEASES)
            db.execute("UPDATE budget SET spent = spent")  # a read-only file fails now, not when spending
            identity, spent = self._budget(db)
            start = self._last_spends(db, spent)
            db.execute("COMMIT")
            self._identity, self._session = identity, joined(identity, Session(start))

    def _last_spends(self, db: sqlite3.Connection, spent: Fraction) -> tuple[int, int]:
        """Return the numbers of the last spends, of the budget and of its parts, if all records add up.

        Spends are numbered from 1 on without a gap, and each costs something. A part has the total that was
        paid for it, and the sum of its own spends.
        """
        has_parts = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'parts'").fetchone() == (1,)
        whole = db.execute("SELECT id, 0, epsilon FROM history ORDER BY id").fetchall()
        of_parts, parts = [], []
        if has_parts:
            of_parts = db.execute("SELECT id, part, epsilon FROM part_history ORDER BY id").fetchall()
            parts = db.execute("SELECT id, parent, paid_by, total, spent FROM parts").fetchall()
        paid = {(part, number): epsilon for number, part, epsilon in (*whole, *of_parts)}
        sums: dict[int, Fraction] = {}
        with self._parsing():
            are_positive = True
            for _, part, epsilon in (*whole, *of_parts):
                are_positive = are_positive and _number(epsilon) > 0
                sums[part] = sums.get(part, Fraction(0)) + _number(epsilon)
            add_up = sums.pop(0, Fraction(0)) == spent and all(
                paid.get((parent, paid_by)) == total
                and sums.get(number, Fraction(0)) == _number(spent_of_part) <= _number(total)
                for number, parent, paid_by, total, spent_of_part in parts
            )
        are_counted = all(
            number == place for rows in (whole, of_parts) for place, (number, *_) in enumerate(rows, start=1)
        )
        if not (add_up and are_positive and are_counted and sums.keys() <= {number for number, *_ in parts}):
            self._fail(ValueError, _DAMAGED)
        return len(whole), len(of_parts)

    @contextmanager
    def _connection(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        place = pathlib.Path(self.path).as_uri()
        if urlsplit(place).netloc:  # a path of Windows, which SQLite would call a malformed one
            self._fail(OSError, "is on another machine or a device; put it on a local disk")
        uri = f"{place}?mode={mode}"
        try:
            with (
                _LOCK,
                closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as db,
            ):
                db.execute("PRAGMA synchronous=FULL")
                db.execute("PRAGMA fullfsync=ON")  # the plain fsync of macOS stops at the cache of the disk
                yield db  # closing takes back what is not committed
        except sqlite3.Error as error:
            self._explain(error)

    @contextmanager
    def _parsing(self) -> Iterator[None]:
        try:
            yield
        except (TypeError, ValueError, ZeroDivisionError):
            self._fail(ValueError, _DAMAGED)

    def _is_empty(self, db: sqlite3.Connection) -> bool:
        mark = tuple(db.execute(f"PRAGMA {x}").fetchone()[0] for x in ("application_id", "user_version"))
        if mark == (0, 0) and db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return True
        if mark != (_APPLICATION_ID, _VERSION):
            self._fail(ValueError, _FOREIGN)
        return False

    def _budget(self, db: sqlite3.Connection) -> tuple[str, Fraction]:
        self._refuse_second_name()
        with self._parsing():
            [(identity, total_text, spent_text)] = db.execute(self._statements.balance, self._key)
            total = _number(total_text)
            known_text, spent = self._known  # a long sum parses slowly, and most often nobody else has spent
            if spent_text != known_text:
                spent = _number(spent_text)
        if self._identity not in (None, identity):
            self._fail(ValueError, "was replaced: it is not the file that this accountant opened")
        if total != self.total:
            was, now = float(total), float(self.total)
            differs = f"of {was}, not {now}" if was != now else f"that equals {now} only as a float"
            self._fail(ValueError, f"was created with a total {differs}; pass the same total")
        if not 0 <= spent <= total:
            self._fail(ValueError, _DAMAGED)
        session = self._session or session_of(identity)
        if session is not None:
            before = session.seen.get(self._row, BudgetState())
            if spent < before.spent or self._entry(db, before.number) != before.entry:
                self._fail(ValueError, _ROLLED_BACK)
            session.seen[self._row] = self._last_entry(db, spent)
        return identity, spent

    def _last_entry(self, db: sqlite3.Connection, spent: Fraction) -> BudgetState:
        """Return what there is to be seen: the sum of the spends, and the last of them."""
        entry = self._entry(db, _LARGEST_NUMBER)
        return BudgetState(spent, entry[0] if entry else 0, entry)

    def _entry(self, db: sqlite3.Connection, number: int) -> tuple[Any, ...] | None:
        """Return what is recorded of the last spend up to a number; None if there is none."""
        found = db.execute(self._statements.entry, {**self._key, "number": number}).fetchone()
        return None if found is None else tuple(found)

    def _saw(self, seen: BudgetState) -> None:
        assert self._session is not None
        self._session.seen[self._row] = seen

    def _refuse_second_name(self) -> None:
        # SQLite's log of recent spends goes by the name: under a second name they are invisible. The path is
        # asked, because closing a descriptor of the file would drop the locks that SQLite holds on it.
        try:
            links = os.stat(self.path).st_nlink
        except FileNotFoundError as error:
            self._fail(FileNotFoundError, _GONE, error)
        if links != 1:
            self._fail(
                ValueError,
                f"has {links} names (hard links), each of which could spend the whole budget; "
                "remove all but the one that it was created under",
            )

    def _explain(self, error: sqlite3.Error) -> NoReturn:
        exact = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        code = exact & 0xFF  # the upper bits hold the extension
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
            self._fail(TimeoutError, "stays locked by another process", error)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            self._fail(ValueError, _FOREIGN, error)
        if os.path.isdir(self.path):
            self._fail(IsADirectoryError, "is a folder", error)
        if not os.path.isdir(os.path.dirname(self.path)):
            self._fail(FileNotFoundError, "is in a folder that does not exist", error)
        if self._identity is not None and not os.path.exists(self.path):
            self._fail(FileNotFoundError, _GONE, error)
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            self._fail(PermissionError, _READ_ONLY, error)
        # a companion of the file may be the one that finds no room
        if code == sqlite3.SQLITE_FULL or exact == sqlite3.SQLITE_IOERR_SHMSIZE:
            self._fail(OSError, _FULL, error)
        self._fail(OSError, f"cannot be used ({error})", error)

    def _fail(self, kind: type[Exception], what: str, cause: Exception | None = None) -> NoReturn:
        raise kind(f"The budget file {self.path!r} {what}; nothing was released.") from cause


class _FilePart(FileLedger):
    """A part of the budget in a file: a row of its own there, and otherwise the same."""

    _statements = _PART

    def __init__(self, whole: FileLedger, number: int, name: str, total: Fraction) -> None:
        self.total, self.path, self.part = total, whole.path, name
        self._identity, self._known, self._row = whole._identity, _NOTHING, number
        self._session = whole._session


def _free_name(name: str, claim: Claim, taken: Collection[str], ledger: Ledger) -> str:
    """Return the name of a claim, or its first number that is free; raise if the name is taken."""
    if claim.is_numbered:
        return next(one for number in count(1) if (one := f"{name} #{number}") not in taken)
    if name in taken:
        raise name_used(name, ledger)
    return name


def _spend(row: Sequence[Any]) -> Spend:
    when, spend_name, epsilon, *rest = row
    return Spend(datetime.fromisoformat(when), spend_name, float(_number(epsilon)), *rest)


def _part_of(ledger: Ledger, name: str) -> str:
    """Return the name of a part for messages; a part of a part names both."""
    return name if ledger.part is None else f"{ledger.part} / {name}"


def _resolved(path: str | os.PathLike[str]) -> str:
    name = os.fsdecode(path)
    if name in ("", ":memory:") or "\0" in name:
        raise ValueError("path must name a file; leave it out to keep the budget in memory.")
    return os.path.realpath(name)  # a symbolic link and its target are one name, with one log beside it


def _spelled(number: Fraction) -> str:
    # Hexadecimal: Python refuses to convert long decimals, and a sum of fractions can need any length.
    return f"{number.numerator:#x}/{number.denominator:#x}"


def _number(text: str) -> Fraction:
    return Fraction(*(int(part, 0) for part in str.split(text, "/")))  # base 0: decimals are read too
