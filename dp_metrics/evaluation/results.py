"""The file of results: tidy rows that a run appends to, and an interrupted run resumes from."""

import math
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

__all__ = ["FILE_NAME", "Key", "ResultRow", "ResultsError", "ResultsFile", "git_revision", "key_of"]

FILE_NAME = "results.csv"

Key = tuple[str, str, str, str, str, str, float, int]


class ResultsError(Exception):
    """A file of results can't be used at all."""


@dataclass(frozen=True)
class ResultRow:
    """One release in one repeat; a line of the file.

    Attributes
    ----------
    figure, dataset, column, metric, setting, mechanism : str
        What was released, and how; `setting` tells apart curves of one mechanism, such as "beta=1.01".
    epsilon : float
        Privacy parameter of the release.
    repeat : int
        Number of the repeat, from 0.
    n : int
        Number of records drawn.
    bounded : int
        1 if the mechanism knew a public range of the values.
    draw_seed, release_seed, split_seed : int
        Seeds of the draw of records, the release and the split (-1: none).
    true_value, release, error : float
        The metric of the drawn records (NOT private), its release, and their distance.
    expected_error : float or None
        Exact expectation of the error on these records, capped at `ERROR_CAP` times the true value if
        not bounded; only some repeats have one.
    overshoot : float or None
        Exact chance of a release above `ERROR_CAP` times the true value; in the same repeats.
    sampling_error : float
        Standard error that the metric of so many records has anyway.
    versions, revision : str
        Packages, and the git revision of the program.
    """

    figure: str
    dataset: str
    column: str
    metric: str
    setting: str
    mechanism: str
    epsilon: float
    repeat: int
    n: int
    bounded: int
    draw_seed: int
    release_seed: int
    split_seed: int
    true_value: float
    release: float
    error: float
    expected_error: float | None
    overshoot: float | None
    sampling_error: float
    versions: str
    revision: str


_FIELDS = fields(ResultRow)
_HEADER = ",".join(field.name for field in _FIELDS)


def key_of(row: ResultRow) -> Key:
    """Return what tells a row from every other."""
    return (
        row.figure, row.dataset, row.column, row.metric, row.setting, row.mechanism, row.epsilon, row.repeat,
    )  # fmt: skip


def _text(value: Any) -> str:
    text = "" if value is None else repr(value) if isinstance(value, float) else str(value)
    if "," in text or "\n" in text or '"' in text:
        raise ValueError(f"{text!r} can't be a field of a results file.")
    return text


def _parse(line: str) -> ResultRow:
    """Read one line; a ValueError says that it is not whole."""
    cells = line.split(",")
    if len(cells) != len(_FIELDS):
        raise ValueError("wrong number of fields")
    values: list[Any] = []
    for field, cell in zip(_FIELDS, cells, strict=True):
        if field.type is str:
            values.append(cell)
        elif field.type is int:
            values.append(int(cell))
        elif cell == "" and field.type is not float:
            values.append(None)
        else:
            values.append(float(cell))
            if not math.isfinite(values[-1]):
                raise ValueError("not finite")
    return ResultRow(*values)


class ResultsFile:
    """A CSV file of results; every complete line of it is kept whatever happens.

    Parameters
    ----------
    path : Path
        The file, or a folder that holds a ``results.csv``; it need not exist.

    Attributes
    ----------
    rows : list of ResultRow
        What the file holds, without repetitions.
    problems : list of str
        One sentence for each line that could not be read, with its number.

    Raises
    ------
    ResultsError
        If the file exists and is not one of results, or can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path / FILE_NAME if path.is_dir() else path
        self.rows: list[ResultRow] = []
        self.problems: list[str] = []
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            raw = b""
        except OSError as error:
            raise ResultsError(f"can't read the results {self.path}: {error.strerror or error}") from error
        self._whole = True
        if raw:
            self._read(raw.decode("utf-8", errors="replace"))

    def _read(self, text: str) -> None:
        header, *lines = text.split("\n")
        if header != _HEADER:
            if not lines and _HEADER.startswith(header):  # stopped while it was being created
                self.problems.append(f"{self.path}: line 1 is incomplete and was dropped")
                self._whole = False
                return
            raise ResultsError(f"{self.path}: line 1 is not the header of a results file of this version")
        ended = lines and lines[-1] == ""
        seen = set()
        for number, line in enumerate(lines[:-1] if ended else lines, start=2):
            last = number == len(lines) + 1 and not ended
            try:
                row = _parse(line)
            except ValueError:
                row = None
            if row is None or last:
                # a last line without its end may be a number cut short, even where it can be read
                kind = "incomplete" if last else "damaged"
                self.problems.append(f"{self.path}: line {number} is {kind} and was dropped")
                self._whole = False
            elif key_of(row) not in seen:
                seen.add(key_of(row))
                self.rows.append(row)

    def prepare(self) -> None:
        """Make the file ready to append to: create it, or write it again without its damaged lines."""
        if self.path.exists() and self._whole and self.path.stat().st_size:
            return
        part = self.path.with_suffix(".part")
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(_HEADER + "\n")
            stream.writelines(_line(row) for row in self.rows)
        part.replace(self.path)
        self._whole = True

    def append(self, rows: Sequence[ResultRow]) -> None:
        """Add rows at the end, all of them or, if stopped in the middle, one incomplete line at most."""
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write("".join(map(_line, rows)))
        self.rows.extend(rows)

    def keys(self) -> set[Key]:
        """Return the keys of all rows."""
        return {key_of(row) for row in self.rows}


def _line(row: ResultRow) -> str:
    return ",".join(_text(getattr(row, field.name)) for field in _FIELDS) + "\n"


def git_revision() -> str:
    """Return the git revision of the program, with a mark if it was changed since; "unknown" elsewhere."""
    here = Path(__file__).resolve()
    commands: Iterable[list[str]] = (
        ["git", "ls-files", "--error-unmatch", here.name],  # an installed copy may lie in another repository
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
    )
    answer = ""
    for command in commands:
        try:
            shown = subprocess.run(command, cwd=here.parent, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            return "unknown"
        if shown.returncode:
            return "unknown"
        answer = shown.stdout.strip()
    return answer
