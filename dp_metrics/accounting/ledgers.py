"""What the spends of a budget buy, and where both are kept: in SQLite, of one process or a file of many.

A name is used once in a session: it buys, or is served what an earlier session stored. Otherwise two folds,
or two rounds of a loop, would have one number. A session is no matter of a clock or of the number of a
process: it begins after the last spend that the ledger then had, and goes with pickled copies and forks.

A ledger checks and records a spend in one step: nobody else can spend in between.
"""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from importlib import import_module
from itertools import count
from typing import Any, NoReturn
from urllib.parse import urlsplit

from dp_metrics._packages import import_extra
from dp_metrics.exceptions import budget_error
from dp_metrics.inputs.options import ByName, Relation, rounded_down


@dataclass(frozen=True, slots=True)
class Spend:
    """One entry of `PrivacyAccountant.history`; `time` is in UTC, `epsilon` rounded to a float."""

    time: datetime
    spend_name: str
    epsilon: float
    mechanism: str | None
    neighboring: str


@dataclass
class Claim:
    """What a release says of itself when it is paid for.

    Parameters
    ----------
    question : str or None
        What was asked for, as JSON of public things; None: it cannot be written down.
    is_named : bool
        Whether the name was given, so that no other spend may have it.
    number : int or None, default=None
        The number of the spend in its ledger, as soon as it is paid.
    """

    question: str | None
    is_named: bool
    number: int | None = None


@dataclass(frozen=True)
class StoredResult(Spend):
    """A spend of a budget, with what it has bought.

    Parameters
    ----------
    time, spend_name, epsilon, mechanism, neighboring
        As in the history.
    is_named : bool
        Whether the name was given to the release, so that ``budget[spend_name]`` returns it.
    value : float, str or None
        The released number, or a short form of what is no number. None: nothing was stored. The spend counts
        all the same.
    question, answer : str or None
        JSON: what was asked for, and all of the release.
    stored : datetime or None
        When the answer was stored, in UTC; None: it never was.
    may_be_served : bool
        Whether the spend is of an earlier session than that of this process, which was not served its answer.
    """

    is_named: bool
    value: float | str | None
    question: str | None = field(repr=False)
    answer: str | None = field(repr=False)
    stored: datetime | None = field(repr=False)
    may_be_served: bool = field(repr=False)

    @property
    def result(self) -> Any:
        """All of the release, of the type that it had; raises ValueError if it was not stored."""
        if self.answer is None:
            raise ValueError(self.no_value)
        # layers above know how each kind of release is made again; this one is loaded when somebody asks
        return import_module("dp_metrics.release.stored").restored(self.question, self.answer)

    @property
    def no_value(self) -> str:
        """Why there is no release."""
        name, when = self.spend_name, f"{self.time:%Y-%m-%d %H:%M} UTC"
        if self.stored is not None:
            return f"Of the release named {name!r} of {when} only a short form is stored: see results()."
        return (
            f"The spend named {name!r} of {when} has no stored value: the budget has no path, or it was "
            "recorded by hand or by an earlier version, or its process ended, or the file was full, before "
            "the value was stored. What it cost is not given back. For a new release choose another "
            "spend_name."
        )


class StoredResults(tuple[StoredResult, ...]):
    """All that a budget has bought, oldest first: a tuple, with ``to_frame()``."""

    __slots__ = ()

    def to_frame(self) -> Any:
        """Return a data frame with a row for each spend; this imports pandas.

        Returns
        -------
        pandas.DataFrame
            The columns "spend_name", "time", "epsilon", "value", "mechanism" and "neighboring".
        """
        pandas = import_extra("pandas", "report")
        columns = ["spend_name", "time", "epsilon", "value", "mechanism", "neighboring"]
        return pandas.DataFrame([*self], columns=columns)


_NO_ENTRY = (0,)
_NOTHING = ("0x0/0x1", Fraction(0))


@dataclass
class Session:
    """The time from when a process first opened a ledger.

    Parameters
    ----------
    start : int
        The number of the last spend when it began.
    served : set of str
        The names of stored answers that were served since.
    spent : tuple of str and Fraction, default=nothing
        The sum of the spends that was last seen, as a ledger spells it, and as a number: a long one parses
        slowly, and most often nobody else has spent.
    entry : tuple
        What the ledger records of the last of them, from its number on; the number 0 if there was none.
    """

    start: int
    served: set[str] = field(default_factory=set)
    spent: tuple[str, Fraction] = _NOTHING
    entry: tuple[Any, ...] = _NO_ENTRY


# Those of this process, by the identity of the file: its path may be spelled in several ways.
_SESSIONS: dict[str, Session] = {}


def joined(identity: str, session: Session) -> Session:
    """Return the one session of a file in this process, which begins or takes over what a copy knows.

    Together they are one session, from the first beginning on.
    """
    known = _SESSIONS.setdefault(identity, session)
    known.start = min(known.start, session.start)
    known.served |= session.served
    latest = max(session, known, key=lambda one: (one.entry[0], one.spent[1]))
    known.spent, known.entry = latest.spent, latest.entry
    return known


_BUSY_SECONDS = 60.0
_APPLICATION_ID = 0x64706D62  # "dpmb" in the header of every budget file
_VERSION = 1
_DAMAGED = "is damaged: its records do not add up"
_GONE = "is gone, and with it the record of what was spent"
_FOREIGN = "is not a budget file of dp_metrics, or is damaged"
# A file that is looked at while it is read-only gets companions that stay read-only when it no longer is.
_READ_ONLY = (
    "cannot be written: it, its folder or its companion -wal or -shm is read-only; make all that exist "
    "writable, and delete none"
)
_WITHOUT_PATH = (
    "A PrivacyAccountant without a path cannot {}, because every process would spend the whole budget again; "
    "pass path= to PrivacyAccountant to share one budget between processes."
)
_NO_BUDGET = " The best_estimator_ of a fitted search holds no budget, and can be pickled alone."
_COLUMNS = "time, label, epsilon, mechanism, neighboring"
_TABLES = (
    "CREATE TABLE budget (identity TEXT, total TEXT, spent TEXT)",
    "CREATE TABLE history (id INTEGER PRIMARY KEY,"
    " time TEXT, label TEXT, epsilon TEXT, mechanism TEXT, neighboring TEXT)",
)
# What spends have bought: a table of its own, so that a file with spends made by hand has no row there.
_TABLE_OF_RELEASES = (
    "CREATE TABLE IF NOT EXISTS releases (spend INTEGER PRIMARY KEY, is_named INTEGER, question TEXT,"
    " answer TEXT, summary TEXT, stored TEXT)"
)
_WITH_RELEASES = "FROM history LEFT JOIN releases ON spend = id WHERE"

# One lock for all ledgers, held across every fork: a child never inherits a lock that nobody will release, a
# half-written record or a connection to a file.
_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class Ledger:
    """A record of spends that only grows: a SQLite database, in memory or in a file.

    One in memory cannot be pickled, and a forked child may only read its copy. A file is created if it does
    not exist, and else continued; its random identity tells it from a file put in its place. Unpickling does
    neither: where the file has gone, a new one would be a second budget. With a connection per use, any
    process may spend.

    Parameters
    ----------
    total : Fraction
        What may be spent altogether, which a file must have been created with.
    path : str, os.PathLike or None, default=None
        The file; None: in memory.
    """

    path: str | None = None
    _memory: sqlite3.Connection | None = None  # the only connection of a ledger that is in no file
    _identity: str | None = None  # unknown until the ledger has been opened
    _session: Session  # it begins then

    def __init__(self, total: Fraction, path: str | os.PathLike[str] | None = None) -> None:
        self.total = total
        if path is not None:
            self.path = _resolved(path)
            self._create_or_continue()
            return
        self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._pid, self._session = os.getpid(), Session(0)
        self._fill(self._memory)

    def __del__(self) -> None:
        if self._memory is not None:
            self._memory.close()  # Python 3.13 warns of one that is left to the collector

    def refuse_if_forked(self) -> None:
        """Raise RuntimeError in a forked child that has a copy of a ledger in memory."""
        if self._memory is not None and os.getpid() != self._pid:
            raise RuntimeError(_WITHOUT_PATH.format("be used in a forked process"))

    def record(
        self,
        epsilon: Fraction,
        spend_name: str,
        mechanism: str | None,
        neighboring: str,
        claim: Claim | None = None,
        *,
        is_numbering: bool = False,
    ) -> None:
        """Record a spend for good, if it fits; to all who share the ledger this is one step.

        A claim is told the number; its name gets the next number behind it if the budget is numbering. Raise
        ValueError if the claim's name is taken, or if the spends are under another relation, and
        `PrivacyBudgetError` if too little is left.
        """
        self.refuse_if_forked()
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            if claim is not None and claim.is_named:
                like = f"SELECT label {_WITH_RELEASES} instr(label, ?) = 1 AND is_named IS NOT 0"
                taken = {name for (name,) in db.execute(like, (spend_name,))}
                if is_numbering:
                    spend_name = next(one for i in count(1) if (one := f"{spend_name} #{i}") not in taken)
                elif spend_name in taken:
                    raise name_used(spend_name, self)
            spent = self._budget(db)[1]
            kept = {name for (name,) in db.execute("SELECT DISTINCT neighboring FROM history")}
            _refuse_another_relation(neighboring, kept)
            _refuse_too_much(epsilon, spent, self.total)
            entry = (datetime.now(UTC).isoformat(), spend_name, _spelled(epsilon), mechanism, neighboring)
            number = db.execute(f"INSERT INTO history ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", entry).lastrowid
            if claim is not None:
                row = (number, claim.is_named, claim.question)
                db.execute("INSERT INTO releases (spend, is_named, question) VALUES (?, ?, ?)", row)
            spent += epsilon
            text = _spelled(spent)
            db.execute("UPDATE budget SET spent = ?", (text,))
            last = self._entry(db)
            db.execute("COMMIT")
            self._session.spent, self._session.entry = (text, spent), last
        if claim is not None:
            claim.number = number

    def require(self, epsilon: Fraction) -> None:
        """Raise unless that much is left."""
        self.refuse_if_forked()
        _refuse_too_much(epsilon, self.spent(), self.total)

    def keep(self, number: int, answer: str | None, summary: str) -> None:
        """Add to a spend with a claim what was released, once and for all."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            self._budget(db)
            row = (answer, summary, datetime.now(UTC).isoformat(), number)
            change = "SET answer = ?, summary = ?, stored = ? WHERE spend = ? AND stored IS NULL"
            db.execute(f"UPDATE releases {change}", row)
            db.execute("COMMIT")

    def serve(self, spend_name: str) -> None:
        """Note that a stored answer is served; raise ValueError if it was before in this session."""
        with _LOCK:
            if spend_name in self._session.served:
                raise name_used(spend_name, self)
            self._session.served.add(spend_name)

    def kept(self, spend_name: str | None = None) -> StoredResults:
        """Return all entries, oldest first, with what is kept of each; or those that may be given a name.

        Nobody tells where `spend` was called by hand, or by a version that did not store whether one was.
        """
        with self._connection() as db:
            self._budget(db)
            wanted = f"SELECT id, {_COLUMNS}, is_named, question, answer, summary, stored {_WITH_RELEASES}"
            those = "? IS NULL OR (label = ? AND is_named IS NOT 0) ORDER BY id"
            rows = db.execute(f"{wanted} {those}", (spend_name, spend_name))
            with self._parsing():
                return StoredResults(_kept(row, self._session) for row in rows)

    def found(self, spend_name: str) -> StoredResult | None:
        """Return what is kept of the only release that was given a name; None if there is none.

        Raises
        ------
        ValueError
            If there are several.
        """
        known = self.kept(spend_name)
        if len(known) > 1:
            raise ValueError(
                f"The budget has {len(known)} spends named {spend_name!r}, made by hand or by an earlier "
                "version: none of them is the answer. Look for them in results(), and choose another "
                "spend_name for a new release."
            )
        return known[0] if known else None

    def spent(self) -> Fraction:
        """Return the exact sum of the recorded epsilons."""
        with self._connection() as db:
            return self._budget(db)[1]

    def _fill(self, db: sqlite3.Connection) -> None:
        """Make the tables, in one transaction: a process killed inside it leaves an empty file."""
        db.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={_VERSION}")
        for table in (*_TABLES, _TABLE_OF_RELEASES):
            db.execute(table)
        first = (secrets.token_hex(16), _spelled(self.total), _NOTHING[0])
        db.execute("INSERT INTO budget VALUES (?, ?, ?)", first)

    def _budget(self, db: sqlite3.Connection) -> tuple[str, Fraction]:
        """Return the identity and the sum, if they agree with all that was seen before."""
        self._check_place()
        with self._parsing():
            [(identity, total_text, text)] = db.execute("SELECT identity, total, spent FROM budget")
            total = _number(total_text)
            session = getattr(self, "_session", None) or _SESSIONS.get(identity) or Session(0)
            spent = session.spent[1] if text == session.spent[0] else _number(text)
        if self._identity not in (None, identity):
            self._fail(ValueError, "was replaced: it is not the file that this accountant opened")
        if total != self.total:
            was, now = float(total), float(self.total)
            differs = f"of {was}, not {now}" if was != now else f"that equals {now} only as a float"
            self._fail(ValueError, f"was created with a total {differs}; pass the same total")
        if not 0 <= spent <= total:
            self._fail(ValueError, _DAMAGED)
        last = self._entry(db)
        is_there = session.entry == last or session.entry == self._entry(db, session.entry[0])
        if spent < session.spent[1] or not is_there:
            self._fail(
                ValueError,
                "was rolled back or edited, or is a copy: it does not record all that this process has seen "
                "of it; put back its latest copy, and its -wal if there was one",
            )
        session.spent, session.entry = (text, spent), last
        return identity, spent

    def _entry(self, db: sqlite3.Connection, number: int = (1 << 63) - 1) -> tuple[Any, ...]:
        """Return what is recorded of the last spend up to a number."""
        last = f"SELECT id, {_COLUMNS} FROM history WHERE id <= ? ORDER BY id DESC LIMIT 1"
        return db.execute(last, (number,)).fetchone() or _NO_ENTRY

    @contextmanager
    def _parsing(self) -> Iterator[None]:
        try:
            yield
        except (TypeError, ValueError, ZeroDivisionError):
            self._fail(ValueError, _DAMAGED)

    def _fail(self, kind: type[Exception], what: str, cause: Exception | None = None) -> NoReturn:
        raise kind(f"The budget file {self.path!r} {what}; nothing was released.") from cause

    @classmethod
    def total_of(cls, path: str | os.PathLike[str]) -> Fraction:
        """Return the total that an existing file was created with; what else it holds is not yet checked."""
        ledger = cls.__new__(cls)
        ledger.path = _resolved(path)
        with ledger._connection() as db:
            if ledger._is_empty(db):
                ledger._fail(ValueError, "is empty: no total was given to it")
            with ledger._parsing():
                [(total,)] = db.execute("SELECT total FROM budget")
                return _number(total)

    def __getstate__(self) -> ByName:
        if self.path is None:
            reason = _WITHOUT_PATH.format("be pickled") + _NO_BUDGET
            # a tool with several processes adds its own error behind, and Python shows the first cause first
            raise TypeError(reason) from TypeError(reason)
        one = self._session
        # a Fraction would be pickled as a decimal, and Python refuses to convert long ones
        session, total = (one.start, set(one.served), one.spent[0], one.entry), _spelled(self.total)
        return {"total": total, "path": self.path, "_identity": self._identity, "_session": session}

    def __setstate__(self, state: ByName) -> None:
        start, served, spent, entry = state["_session"]
        with _LOCK:
            session = joined(state["_identity"], Session(start, served, (spent, _number(spent)), entry))
        self.__dict__.update(state, total=_number(state["total"]), _session=session)

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
            self._check_place()
            db.execute("COMMIT")
            if db.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
                self._fail(OSError, "cannot have a write-ahead log; put it on a local disk")
            db.execute("BEGIN IMMEDIATE")
            if self._is_empty(db):
                self._fill(db)
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
        """Open a connection under the lock; what is not committed is taken back."""
        if self.path is None:
            assert self._memory is not None
            with _LOCK:
                self._memory.rollback()  # of what an error or an interrupt cut short
                yield self._memory
            return
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

    def _is_empty(self, db: sqlite3.Connection) -> bool:
        mark = tuple(db.execute(f"PRAGMA {x}").fetchone()[0] for x in ("application_id", "user_version"))
        if mark == (0, 0) and db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return True
        if mark != (_APPLICATION_ID, _VERSION):
            self._fail(ValueError, _FOREIGN)
        return False

    def _check_place(self) -> None:
        """Raise unless the file is still where it was, under one name."""
        if self.path is None:
            return
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
        assert self.path is not None
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
            what = "has no room: its disk is full, or a limit is reached; free some space and repeat the call"
            self._fail(OSError, what, error)
        self._fail(OSError, f"cannot be used ({error})", error)


def _refuse_too_much(asked: Fraction, spent: Fraction, total: Fraction) -> None:
    left = total - spent
    if asked > left:
        remedy = "Pass a smaller epsilon, or ask for fewer numbers."
        if not left:
            remedy = (
                "What has been released may be used again, and costs nothing: results() lists it. A further "
                "number about these records does."
            )
        raise budget_error(
            f"epsilon={float(asked)!r} was asked for, but {float(spent)!r} of the total of {float(total)!r} "
            f"is spent and only {rounded_down(left)!r} remains. Nothing was released. {remedy}"
        )


def _refuse_another_relation(asked: str, kept: Set[str]) -> None:
    if Relation.WITHIN_GROUPS in kept:  # the weaker promise was there first, and "replace_one" keeps it too
        kept, allowed = kept - {"replace_one"}, {"replace_one", Relation.WITHIN_GROUPS}
    else:
        allowed = {asked}
    if kept <= allowed and asked in allowed:
        return
    also = ""
    if asked == Relation.WITHIN_GROUPS and kept == {"replace_one"}:
        also = ", or begin a new one with this spend: it then takes spends under 'replace_one' too"
    raise ValueError(
        f"neighboring={asked!r} was asked for, but this budget is kept under "
        f"neighboring={' and '.join(sorted(map(repr, kept)))}, and epsilons under different neighbouring "
        f"relations don't add up; use another PrivacyAccountant for it{also}."
    )


def name_used(spend_name: str, ledger: Ledger) -> ValueError:
    """Return the refusal of a name that this session has used, to be raised before anything is spent."""
    stored = "This budget has no path, so that nothing is stored."
    if ledger.path is not None:
        stored = f"budget[{spend_name!r}] returns what it bought."
    return ValueError(
        f"spend_name={spend_name!r} was used since this session began, and a name is used once in a session: "
        f"nothing is spent. {stored} For a new release choose another spend_name; scorers made by "
        "make_private_scorer number their names."
    )


def _kept(row: Sequence[Any], session: Session) -> StoredResult:
    number, when, spend_name, epsilon, mechanism, neighboring, named, question, answer, summary, stored = row
    value = None if summary is None else json.loads(summary)
    if not isinstance(value, float | str | None):
        raise ValueError
    return StoredResult(
        time=datetime.fromisoformat(when),
        spend_name=spend_name,
        epsilon=float(_number(epsilon)),
        mechanism=mechanism,
        neighboring=neighboring,
        is_named=bool(named),
        value=value,
        question=question,
        answer=answer,
        stored=None if stored is None else datetime.fromisoformat(stored),
        may_be_served=number <= session.start and spend_name not in session.served,
    )


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
