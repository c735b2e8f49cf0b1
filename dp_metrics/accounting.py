"""A budget of epsilon that is never overspent: in memory, or in a file that many processes share."""

import math
import numbers
import os
import pathlib
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from dp_metrics._validation import check_epsilon
from dp_metrics.exceptions import PrivacyBudgetError

__all__ = ["PrivacyAccountant", "Spend"]

_BUSY_SECONDS = 60.0
_APPLICATION_ID = 0x64706D62  # "dpmb" in the header of every budget file
_VERSION = 1
_DAMAGED = "is damaged: its records do not add up"
_FOREIGN = "is not a budget file of dp_metrics, or is damaged"
_WITHOUT_PATH = (
    "A PrivacyAccountant without a path cannot {}, because every process would spend the whole budget again; "
    "pass path= to PrivacyAccountant to share one budget between processes."
)

# One lock for all accountants, held across every fork: a child never inherits a lock that nobody will
# release, a half-written record or an open SQLite connection.
_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


@dataclass(frozen=True, slots=True)
class Spend:
    """One entry of `PrivacyAccountant.history`; `time` is in UTC, `epsilon` rounded to a float."""

    time: datetime
    label: str
    epsilon: float
    mechanism: str | None
    neighboring: str


class PrivacyAccountant:
    """A total budget of epsilon from which every release is paid before it is drawn.

    Guarantee: the epsilons of all recorded spends never add up, in exact arithmetic, to more than `epsilon`.

    Parameters
    ----------
    epsilon : float, int, Fraction or Decimal
        The total budget, finite and > 0. A float stands for the decimal that is typed: ten times 0.1 is
        exactly 1. A Fraction or a Decimal stands for itself.
    path : str or os.PathLike, default=None
        A SQLite file on a local disk that holds the budget: created if it does not exist, continued if it
        does. All threads, processes and later runs that open it spend from one budget. None keeps the budget
        in this process: such an accountant cannot be pickled and refuses to spend in a forked child.

    Raises
    ------
    ValueError
        If epsilon is not a finite number > 0, or if the file was created with another total, is damaged or
        holds something else.
    OSError
        If the file cannot be created, opened or written, or stays locked for a minute (`TimeoutError`).

    Notes
    -----
    A total of epsilon means that the probability of any outcome of all the releases together changes by at
    most a factor exp(epsilon) between neighbouring data sets. Pure epsilons simply add up (basic composition
    [1]_), also when later releases, and their epsilons, depend on earlier answers [2]_. That needs spends on
    the same records under one neighbouring relation; `history` shows which relation each release used.

    Spending is never undone, even if the release it paid for fails. Copies (`copy.copy`, `copy.deepcopy`,
    `sklearn.base.clone`) are the same object, because a copied budget could be spent twice. With `path`, a
    spend is on the disk before `spend` returns, so a process killed at any moment leaves no release
    unrecorded. In use, and after a crash, the file has companions ``-wal`` and ``-shm`` that belong to it.
    Whoever can write or replace the file can reset the budget: protect it like the data.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data Analysis",
       2006, doi:10.1007/11681878_14; Dwork and Roth, 2014, Theorem 3.16, doi:10.1561/0400000042.
    .. [2] Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters: Pay-as-you-Go Composition", 2016,
       arXiv:1605.08294.

    Examples
    --------
    >>> from dp_metrics import PrivacyAccountant
    >>> accountant = PrivacyAccountant(1.0)
    >>> accountant.spend(0.9, "error of the first model")
    >>> accountant.remaining
    0.1
    >>> accountant.spend(0.2, "error of the second model")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dp_metrics.exceptions.PrivacyBudgetError: epsilon=0.2 was asked for, but 0.9 of the total of 1.0...

    A budget that other processes and later runs share:

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PrivacyAccountant(1.0, os.path.join(folder, "budget.sqlite")).spend(0.3, "error")
    ...     PrivacyAccountant(1.0, os.path.join(folder, "budget.sqlite")).spent
    0.3
    """

    def __init__(
        self, epsilon: float | Fraction | Decimal, path: str | os.PathLike[str] | None = None
    ) -> None:
        self._total = _exact_epsilon(epsilon)
        self._ledger: _MemoryLedger | _FileLedger
        if path is None:
            self._ledger = _MemoryLedger(self._total)
        else:
            self._ledger = _FileLedger(self._total, _absolute(path))
            self._ledger.create_or_continue()

    def spend(
        self,
        epsilon: float | Fraction | Decimal,
        label: str,
        *,
        mechanism: str | None = None,
        neighboring: str = "replace_one",
    ) -> None:
        """Record a spend, durably and for good; call it before anything is drawn.

        Parameters
        ----------
        epsilon : float, int, Fraction or Decimal
            What the release costs, finite and > 0; a float stands for the decimal that is typed.
        label : str
            What is released. Public: never put data into it.
        mechanism : str, default=None
            The mechanism that will draw the release.
        neighboring : str, default="replace_one"
            The neighbouring relation under which the release is epsilon-differentially private.

        Raises
        ------
        PrivacyBudgetError
            If more is asked for than remains; nothing is recorded.
        ValueError, TypeError
            If an argument is invalid, or if the budget file was replaced or damaged.
        OSError
            If the budget file is gone, cannot be written or stays locked for a minute (`TimeoutError`).
        RuntimeError
            If an accountant without `path` is used in a forked child.
        """
        asked = _exact_epsilon(epsilon)
        for name, text in {"label": label, "mechanism": mechanism or "", "neighboring": neighboring}.items():
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a str.")
        self._ledger.add(asked, label, mechanism, neighboring)

    def require(self, epsilon: float | Fraction | Decimal) -> None:
        """Raise unless that much is left; nothing is recorded or reserved.

        Parameters
        ----------
        epsilon : float, int, Fraction or Decimal
            The cost of a plan, finite and > 0. Multiply exactly: ``3 * Fraction("0.1")``, because
            ``3 * 0.1`` is a little more than 0.3.

        Raises
        ------
        PrivacyBudgetError
            If less than epsilon remains. Other errors are those of `spend`.
        """
        asked = _exact_epsilon(epsilon)
        self._ledger.refuse_if_forked()
        _admit(asked, self._ledger.spent(), self._total)

    @property
    def total(self) -> float:
        """The whole budget."""
        return float(self._total)

    @property
    def spent(self) -> float:
        """What is spent so far, rounded to the nearest float."""
        return float(self._ledger.spent())

    @property
    def remaining(self) -> float:
        """What is left, rounded down: ``spend(remaining)`` fits unless it is zero."""
        return _rounded_down(self._total - self._ledger.spent())

    @property
    def history(self) -> tuple[Spend, ...]:
        """Every spend, oldest first: time, label, epsilon, mechanism and neighbouring relation."""
        return self._ledger.history()

    @property
    def path(self) -> str | None:
        """The absolute path of the budget file, or None."""
        return self._ledger.path

    def __copy__(self) -> "PrivacyAccountant":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivacyAccountant":
        return self

    def __sklearn_clone__(self) -> "PrivacyAccountant":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._ledger, _MemoryLedger):
            raise TypeError(_WITHOUT_PATH.format("be pickled"))
        return _unpickled, (self._total, self._ledger.path, self._ledger.identity)

    def __repr__(self) -> str:
        return f"PrivacyAccountant(epsilon={self.total!r}, path={self.path!r})"


def _unpickled(total: Fraction, path: str, identity: str) -> PrivacyAccountant:
    # Does not touch the file: it must not be created anew, which would be a second budget.
    accountant = object.__new__(PrivacyAccountant)
    accountant._total = total
    accountant._ledger = _FileLedger(total, path, identity)
    return accountant


def _exact_epsilon(epsilon: Any) -> Fraction:
    if isinstance(epsilon, Decimal):
        check_epsilon(float(epsilon) if epsilon.is_finite() else math.nan)
        return Fraction(epsilon)
    value = check_epsilon(epsilon)
    if isinstance(epsilon, numbers.Rational):
        return Fraction(int(epsilon.numerator), int(epsilon.denominator))
    return Fraction(repr(value))


def _rounded_down(exact: Fraction) -> float:
    value = float(exact)
    while Fraction(repr(value)) > exact:
        value = math.nextafter(value, 0.0)
    return value


def _admit(asked: Fraction, spent: Fraction, total: Fraction) -> None:
    if spent + asked > total:
        raise PrivacyBudgetError(
            f"epsilon={float(asked)!r} was asked for, but {float(spent)!r} of the total of {float(total)!r} "
            f"is spent and only {_rounded_down(total - spent)!r} remains."
        )


def _absolute(path: str | os.PathLike[str]) -> str:
    name = os.fsdecode(path)
    if name in ("", ":memory:") or "\0" in name:
        raise ValueError("path must name a file; leave it out to keep the budget in memory.")
    return os.path.abspath(name)


class _MemoryLedger:
    path = None

    def __init__(self, total: Fraction) -> None:
        self._total = total
        self._spent = Fraction(0)
        self._history: list[Spend] = []
        self._pid = os.getpid()

    def refuse_if_forked(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(_WITHOUT_PATH.format("be used in a forked process"))

    def add(self, asked: Fraction, label: str, mechanism: str | None, neighboring: str) -> None:
        self.refuse_if_forked()
        with _LOCK:
            _admit(asked, self._spent, self._total)
            self._spent += asked
            self._history.append(Spend(datetime.now(UTC), label, float(asked), mechanism, neighboring))

    def spent(self) -> Fraction:
        with _LOCK:
            return self._spent

    def history(self) -> tuple[Spend, ...]:
        with _LOCK:
            return tuple(self._history)


class _FileLedger:
    """A budget in a SQLite file, whose random identity tells it from a file put in its place."""

    def __init__(self, total: Fraction, path: str, identity: str | None = None) -> None:
        self._total = total
        self.path = path
        self.identity = identity

    def refuse_if_forked(self) -> None:
        """Do nothing: with a connection per spend, any process may spend."""

    def create_or_continue(self) -> None:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                return self._create_or_continue()
            except TimeoutError:
                # Where waiting could deadlock (two processes change the journal mode) SQLite fails at once.
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)

    def _create_or_continue(self) -> None:
        with self._connection("rwc") as db:
            db.execute("BEGIN")
            self._is_empty(db)  # refuses somebody else's file before it is changed
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
                db.execute("INSERT INTO budget VALUES (?, ?, '0')", (secrets.token_hex(16), str(self._total)))
            db.execute("UPDATE budget SET spent = spent")  # a read-only file fails now, not when spending
            identity, spent = self._budget(db)
            with self._parsing():
                recorded = sum(Fraction(text) for (text,) in db.execute("SELECT epsilon FROM history"))
            if recorded != spent:
                self._fail(ValueError, _DAMAGED)
            db.execute("COMMIT")
        self.identity = identity

    def add(self, asked: Fraction, label: str, mechanism: str | None, neighboring: str) -> None:
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            spent = self._budget(db)[1]
            _admit(asked, spent, self._total)
            db.execute(
                "INSERT INTO history (time, label, epsilon, mechanism, neighboring) VALUES (?, ?, ?, ?, ?)",
                (datetime.now(UTC).isoformat(), label, str(asked), mechanism, neighboring),
            )
            db.execute("UPDATE budget SET spent = ?", (str(spent + asked),))
            db.execute("COMMIT")

    def spent(self) -> Fraction:
        with self._connection() as db:
            return self._budget(db)[1]

    def history(self) -> tuple[Spend, ...]:
        with self._connection() as db:
            self._budget(db)
            rows = db.execute("SELECT time, label, epsilon, mechanism, neighboring FROM history ORDER BY id")
            with self._parsing():
                return tuple(
                    Spend(datetime.fromisoformat(when), label, float(Fraction(epsilon)), *rest)
                    for when, label, epsilon, *rest in rows
                )

    @contextmanager
    def _connection(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        uri = f"{pathlib.Path(self.path).as_uri()}?mode={mode}"
        try:
            with (
                _LOCK,
                closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as db,
            ):
                db.execute("PRAGMA synchronous=FULL")
                db.execute("PRAGMA fullfsync=ON")  # for macOS, whose fsync stops at the cache of the disk
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
        with self._parsing():
            [(identity, total_text, spent_text)] = db.execute("SELECT identity, total, spent FROM budget")
            total, spent = Fraction(total_text), Fraction(spent_text)
        if self.identity not in (None, identity):
            self._fail(ValueError, "was replaced: it is not the file that this accountant opened")
        if total != self._total:
            same = float(total) == float(self._total)  # then only the fractions tell them apart
            was, now = (exact if same else float(exact) for exact in (total, self._total))
            self._fail(ValueError, f"was created with a total of {was}, not {now}; pass the same total")
        if not 0 <= spent <= total:
            self._fail(ValueError, _DAMAGED)
        return identity, spent

    def _explain(self, error: sqlite3.Error) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # drops the extension
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
            self._fail(TimeoutError, "stays locked by another process", error)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            self._fail(ValueError, _FOREIGN, error)
        if os.path.isdir(self.path):
            self._fail(IsADirectoryError, "is a folder", error)
        if not os.path.isdir(os.path.dirname(self.path)):
            self._fail(FileNotFoundError, "is in a folder that does not exist", error)
        if self.identity is not None and not os.path.exists(self.path):
            self._fail(FileNotFoundError, "is gone, and with it the record of what was spent", error)
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            self._fail(PermissionError, "cannot be written: it or its folder is read-only", error)
        self._fail(OSError, f"cannot be used ({error})", error)

    def _fail(self, kind: type[Exception], what: str, cause: Exception | None = None) -> NoReturn:
        raise kind(f"The budget file {self.path!r} {what}; nothing was released.") from cause
