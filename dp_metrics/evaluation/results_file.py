"""Results: tidy rows in a file that an interrupted run resumes from, and what they are on average."""

import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics._packages import import_extra

FILE_NAME = "results.csv"

# Errors of releases without public bounds are capped at this multiple of the true value: rare huge overshoots
# would otherwise rule the mean, which then says nothing.
ERROR_CAP = 10.0

Key = tuple[str, str, str, str, str, str, float, int]


class ResultsError(Exception):
    """A file of results can't be used at all."""


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One release in one repeat; a line of the file."""

    figure: str
    dataset: str
    column: str = ""
    metric: str
    setting: str = ""  # tells apart settings of one mechanism, such as "beta=1.01"
    mechanism: str = ""
    epsilon: float
    repeat: int  # counted from 0
    n: int  # records drawn
    bounded: int  # 1 if the mechanism knew a public range of the values
    draw_seed: int = -1  # seeds the draw of records; -1: all records were taken
    release_seed: int = -1  # -1: none, the operating system's entropy
    split_seed: int = -1  # -1: no split
    true_value: float  # the exact metric of the records drawn: NOT private
    release: float = math.nan
    error: float = math.nan  # their distance
    expected_error: float | None = None  # exact, capped at ERROR_CAP times the true value if not bounded
    overshoot: float | None = None  # exact chance of a release above ERROR_CAP times the true value
    sampling_error: float = 0.0  # standard error that the metric of so many records has anyway
    versions: str = ""
    revision: str = ""


_FIELDS = fields(ResultRow)
_HEADER = ",".join(field.name for field in _FIELDS)


def key_of(row: ResultRow) -> Key:
    """Return what tells a row from every other."""
    return (
        row.figure, row.dataset, row.column, row.metric, row.setting, row.mechanism, row.epsilon, row.repeat,
    )  # fmt: skip


def _parse(line: str) -> ResultRow | None:
    """Read one line; None: it is not whole."""
    cells = line.split(",")
    if len(cells) != len(_FIELDS):
        return None
    values: dict[str, Any] = {}
    try:
        for field, cell in zip(_FIELDS, cells, strict=True):
            if cell or field.type in (str, int, float):  # an empty cell: None, where there may be none
                kind = field.type if field.type in (str, int) else float
                values[field.name] = kind(cell)
    except ValueError:
        return None
    finite = all(math.isfinite(value) for value in values.values() if isinstance(value, float))
    return ResultRow(**values) if finite else None


class ResultsFile:
    """A CSV file of results, or the one in a folder; every complete line is kept whatever happens.

    `rows` is what the file holds, without repetitions; `problems` has one sentence, with its number, for each
    line that could not be read. A `ResultsError` says that the file is not one of results, or can't be read.
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
        header, *lines = text.replace("\r\n", "\n").split("\n")  # as editors on Windows write it
        if header != _HEADER:
            raise ResultsError(f"{self.path}: line 1 is not the header of a results file of this version")
        seen = set()
        for number, line in enumerate(lines, start=2):
            last = number == len(lines) + 1
            if last and not line:
                break
            # a last line without its end may hold a number cut short, even where it can be read
            row = None if last else _parse(line)
            if row is None:
                kind = "incomplete" if last else "damaged"
                self.problems.append(f"{self.path}: line {number} is {kind} and was dropped")
            elif key_of(row) not in seen:
                seen.add(key_of(row))
                self.rows.append(row)
        self._whole = not self.problems

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


def _line(row: ResultRow) -> str:
    values = (getattr(row, field.name) for field in _FIELDS)
    cells = ["" if v is None else repr(v) if isinstance(v, float) else str(v) for v in values]
    if any(set(cell) & set(',\n"') for cell in cells):
        raise ValueError(f"{cells} can't be a line of a results file.")
    return ",".join(cells) + "\n"


def git_revision() -> str:
    """Return the git revision of the program, with a mark if it was changed since; "unknown" elsewhere."""
    here = Path(__file__).resolve()

    def git(*words: str) -> str:
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 10, "check": True}
        return str(subprocess.run(["git", *words], cwd=here.parent, **options).stdout.strip())

    try:
        git("ls-files", "--error-unmatch", here.name)  # an installed copy may lie in another repository
        return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


# the normal quantile of (1 + 0.9) / 2, for an interval of confidence 0.9
_NORMAL_QUANTILE = 1.6448536269514722
_KEYS = ["figure", "dataset", "column", "metric", "setting", "mechanism", "epsilon"]
_NUMBERS = [
    "epsilon", "repeat", "n", "bounded", "true_value", "release", "error", "expected_error", "overshoot",
    "sampling_error",
]  # fmt: skip


def summarise(rows: Sequence[ResultRow]) -> Any:
    """Average the repeats, of any studies but the simulated one: a DataFrame.

    It has a line for each curve of each panel and epsilon. In units of the mean true value: `mean`, and `low`
    and `high`, the ends of its 0.9 confidence interval (errors of releases without bounds are capped at 10
    times the true value); `raw_mean`, not capped; `median` and `q95` of the error; `bias`, capped likewise;
    `exact`, the mean exact expected error; `sampling`, the mean sampling standard error. Then `stopped`, the
    share of releases below a tenth of the true value; `overshot`, of those above ten times it, and
    `overshoot_chance`, the mean exact probability of that.
    """
    names = list(dict.fromkeys(_KEYS + _NUMBERS))
    frame = import_extra("pandas").DataFrame(
        [[getattr(row, name) for name in names] for row in rows], columns=names
    )
    frame[_NUMBERS] = frame[_NUMBERS].astype(float)  # float makes nan of None, and numbers of an empty column
    cap = np.where(frame["bounded"] == 1, np.inf, ERROR_CAP * frame["true_value"])
    frame["capped"] = np.minimum(frame["error"], cap)
    frame["signed"] = np.clip(frame["release"] - frame["true_value"], -cap, cap)
    frame["stopped"] = (frame["release"] < 0.1 * frame["true_value"]).astype(float)
    frame["overshot"] = (frame["release"] > ERROR_CAP * frame["true_value"]).astype(float)
    groups = frame.groupby(_KEYS, sort=False)
    truth, mean = groups["true_value"].mean(), groups["capped"].mean()
    half = _NORMAL_QUANTILE * groups["capped"].std(ddof=1).fillna(0.0) / np.sqrt(groups.size())
    errors = groups["error"]
    relative = {
        "mean": mean, "low": mean - half, "high": mean + half, "raw_mean": errors.mean(),
        "median": errors.median(), "q95": errors.quantile(0.95), "bias": groups["signed"].mean(),
        "exact": groups["expected_error"].mean(), "sampling": groups["sampling_error"].mean(),
    }  # fmt: skip
    summary = import_extra("pandas").DataFrame(
        {
            "repeats": groups.size(),
            "n": groups["n"].max().astype(int),
            "bounded": groups["bounded"].max().astype(int),
            **{name: value / truth.where(truth > 0, np.nan) for name, value in relative.items()},
            "stopped": groups["stopped"].mean(),
            "overshot": groups["overshot"].mean(),
            "overshoot_chance": groups["overshoot"].mean(),
        }
    )
    return summary.reset_index()
