"""Where the spends of a budget are kept: in this process, or in a file that many processes share.

A name is used once in a session: it buys, or is served what an earlier session stored. Otherwise two folds,
or two rounds of a loop, would have one number. A session is no matter of a clock or of the number of a
process: it begins after the last spend that the ledger then had, and goes with pickled copies and forks.

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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from dp_metrics.accounting.spends import Check, Claim, Ledger, LedgerEntry, Spend, name_used


class BudgetState(NamedTuple):
    """What was last seen of the budget.

    Parameters
    ----------
    spent : Fraction
        The sum of the spends.
    number : int
        The number of the last spend; 0 if there was none.
    entry : tuple
        What the ledger records of it.
    """

    spent: Fraction = Fraction(0)
    number: int = 0
    entry: tuple[Any, ...] | None = None


@dataclass
class Session:
    """The time from when a process first opened a budget file.

    Parameters
    ----------
    start : int
        The number of the last spend when it began.
    served : set of str
        The names of stored answers that were served since.
    seen : BudgetState, default=nothing
        What was seen since.
    """

    start: int
    served: set[str] = field(default_factory=set)
    seen: BudgetState = field(default_factory=BudgetState)

    def join(self, other: "Session") -> None:
        """Take over what a copy knows: together they are one session, from the first beginning on."""
        self.start = min(self.start, other.start)
        self.served |= other.served
        self.seen = max(other.seen, self.seen, key=_latest)

    def __reduce__(self) -> tuple[Any, ...]:
        # a Fraction would be pickled as a decimal, and Python refuses to convert long ones
        spent, *rest = self.seen
        return _unpickled, (self.start, set(self.served), (spent.as_integer_ratio(), *rest))


def _latest(one: BudgetState) -> tuple[int, Fraction]:
    return one.number, one.spent


def _unpickled(start: int, served: set[str], seen: tuple[Any, ...]) -> Session:
    spent, *rest = seen
    return Session(start, served, BudgetState(Fraction(*spent), *rest))


# Those of this process, by the identity of the file: its path may be spelled in several ways.
_SESSIONS: dict[str, Session] = {}


def session_of(identity: str) -> Session | None:
    """Return the session of a file in this process, if it has begun."""
    return _SESSIONS.get(identity)


def joined(identity: str, session: Session) -> Session:
    """Return the one session of a file in this process, which begins or knows what this one knows."""
    known = _SESSIONS.setdefault(identity, session)
    if known is not session:
        known.join(session)
    return known


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
    """

    path = None

    def __init__(self, total: Fraction) -> None:
        self.total = total
        # The only record: one append is a whole spend, so that an interrupt leaves all of it or nothing.
        self._entries: list[tuple[Fraction, LedgerEntry]] = []
        # These follow from the first entries, and change in one step: how many, exact sum, relations.
        self._known: tuple[int, Fraction, frozenset[str]] = (0, Fraction(0), frozenset())
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
                taken = {kept.spend.spend_name for _, kept in self._entries if kept.is_named is not False}
                name = _free_name(spend_name, claim, taken, self)
            check(*self._sum())
            spend = Spend(datetime.now(UTC), name, float(epsilon), mechanism, neighboring)
            self._entries.append((epsilon, LedgerEntry(spend, None if claim is None else claim.is_named)))
            return len(self._entries) - 1

    def keep(self, number: int, answer: str | None, summary: str) -> None:
        """Do nothing: without a path nothing is stored."""

    def serve(self, spend_name: str) -> bool:
        """Return False: what nobody stored is never served."""
        return False

    def kept(self, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        """Return all entries, or those of a name, oldest first, with what is kept of each."""
        with _LOCK:
            return tuple(kept for _, kept in self._entries if spend_name in (None, kept.spend.spend_name))

    def spent(self) -> Fraction:
        """Return the exact sum of the recorded epsilons."""
        with _LOCK:
            return self._sum()[0]

    def history(self) -> tuple[Spend, ...]:
        """Return all entries, oldest first."""
        with _LOCK:
            return tuple(kept.spend for _, kept in self._entries)

    def _sum(self) -> tuple[Fraction, frozenset[str]]:
        known, spent, relations = self._known
        for epsilon, kept in self._entries[known:]:
            known, spent, relations = known + 1, spent + epsilon, relations | {kept.spend.neighboring}
        self._known = known, spent, relations
        return spent, relations

    def __reduce__(self) -> tuple[Any, ...]:
        reason = _WITHOUT_PATH.format("be pickled")
        # a tool with several processes adds its own error behind, and Python shows the first cause first
        raise TypeError(reason) from TypeError(reason)


_COLUMNS = "time, label, epsilon, mechanism, neighboring"
# What spends have bought: a table of its own, so that a file with spends made by hand has no row there.
_TABLE_OF_RELEASES = (
    "CREATE TABLE IF NOT EXISTS releases (spend INTEGER PRIMARY KEY, is_named INTEGER, question TEXT,"
    " answer TEXT, summary TEXT, stored TEXT)"
)
_WITH_RELEASES = "FROM history LEFT JOIN releases ON spend = id WHERE"


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
            if claim is not None and claim.is_named:
                names = f"SELECT label {_WITH_RELEASES} is_named IS NOT 0"
                taken = {name for (name,) in db.execute(names)}
                name = _free_name(spend_name, claim, taken, self)
            number = self._record(db, epsilon, name, mechanism, neighboring, check)
            if claim is not None:
                row = (number, claim.is_named, claim.question)
                db.execute("INSERT INTO releases (spend, is_named, question) VALUES (?, ?, ?)", row)
            seen = self._last_entry(db, self._known[1])
            db.execute("COMMIT")
            self._saw(seen)
        return number

    def keep(self, number: int, answer: str | None, summary: str) -> None:
        """Add to a spend with a claim what was released, on the disk."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            self._budget(db)
            row = (answer, summary, datetime.now(UTC).isoformat(), number)
            change = "SET answer = ?, summary = ?, stored = ? WHERE spend = ? AND stored IS NULL"
            db.execute(f"UPDATE releases {change}", row)
            db.execute("COMMIT")

    def serve(self, spend_name: str) -> bool:
        """Return whether a stored answer may be served: once in a session, as a name is used once."""
        assert self._session is not None
        with _LOCK:
            is_first = spend_name not in self._session.served
            self._session.served.add(spend_name)
            return is_first

    def kept(self, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        """Return all entries, or those of a name, oldest first, with what is kept of each."""
        with self._connection() as db:
            self._budget(db)
            return self._kept(db, spend_name)

    def _kept(self, db: sqlite3.Connection, spend_name: str | None = None) -> tuple[LedgerEntry, ...]:
        wanted = f"SELECT id, {_COLUMNS}, is_named, question, answer, summary, stored {_WITH_RELEASES}"
        rows = db.execute(f"{wanted} ? IS NULL OR label = ? ORDER BY id", (spend_name, spend_name))
        session = self._session
        assert session is not None
        with self._parsing():
            return tuple(
                LedgerEntry(
                    _spend(row[:5]),
                    None if named is None else bool(named),
                    *texts,
                    None if stored is None else datetime.fromisoformat(stored),
                    number <= session.start,
                )
                for number, *row, named, question, answer, summary, stored in rows
                for texts in [(question, answer, summary)]
            )

    def spent(self) -> Fraction:
        """Return the exact sum of the recorded epsilons."""
        with self._connection() as db:
            return self._budget(db)[1]

    def history(self) -> tuple[Spend, ...]:
        """Return all entries, oldest first."""
        with self._connection() as db:
            self._budget(db)
            rows = db.execute(f"SELECT {_COLUMNS} FROM history ORDER BY id")
            with self._parsing():
                return tuple(map(_spend, rows))

    def __getstate__(self) -> dict[str, Any]:
        # a Fraction would be pickled as a decimal
        return {**self.__dict__, "total": _spelled(self.total), "_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with _LOCK:
            session = joined(state["_identity"], state["_session"])
        self.__dict__.update(state, total=_number(state["total"]), _known=_NOTHING, _session=session)

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
        check(spent, {relation for (relation,) in db.execute("SELECT DISTINCT neighboring FROM history")})
        entry = (datetime.now(UTC).isoformat(), spend_name, _spelled(epsilon), mechanism, neighboring)
        number = db.execute(f"INSERT INTO history ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", entry).lastrowid
        spent += epsilon
        self._known = _spelled(spent), spent
        db.execute("UPDATE budget SET spent = ?", (self._known[0],))
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
            start = self._last_spend(db, spent)
            db.execute("COMMIT")
            self._identity, self._session = identity, joined(identity, Session(start))

    def _last_spend(self, db: sqlite3.Connection, spent: Fraction) -> int:
        """Return the number of the last spend, if all records add up.

        Spends are numbered from 1 on without a gap, and each costs something.
        """
        rows = db.execute("SELECT id, epsilon FROM history ORDER BY id").fetchall()
        with self._parsing():
            costs = [_number(epsilon) for _, epsilon in rows]
        are_counted = [number for number, _ in rows] == [*range(1, len(rows) + 1)]
        if not (sum(costs) == spent and all(cost > 0 for cost in costs) and are_counted):
            self._fail(ValueError, _DAMAGED)
        return len(rows)

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
            [(identity, total_text, spent_text)] = db.execute("SELECT identity, total, spent FROM budget")
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
            before = session.seen
            if spent < before.spent or self._entry(db, before.number) != before.entry:
                self._fail(ValueError, _ROLLED_BACK)
            session.seen = self._last_entry(db, spent)
        return identity, spent

    def _last_entry(self, db: sqlite3.Connection, spent: Fraction) -> BudgetState:
        """Return what there is to be seen: the sum of the spends, and the last of them."""
        entry = self._entry(db, _LARGEST_NUMBER)
        return BudgetState(spent, entry[0] if entry else 0, entry)

    def _entry(self, db: sqlite3.Connection, number: int) -> tuple[Any, ...] | None:
        """Return what is recorded of the last spend up to a number; None if there is none."""
        last = f"SELECT id, {_COLUMNS} FROM history WHERE id <= ? ORDER BY id DESC LIMIT 1"
        found = db.execute(last, (number,)).fetchone()
        return None if found is None else tuple(found)

    def _saw(self, seen: BudgetState) -> None:
        assert self._session is not None
        self._session.seen = seen

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
