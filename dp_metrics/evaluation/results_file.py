"""Results: tidy rows in a file that an interrupted run resumes from, and what they are on average."""

import io
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dp_metrics._packages import import_extra

FILE_NAME = "results.csv"

# Errors of releases without public bounds are capped at this multiple of the true value: rare huge overshoots
# would otherwise rule the mean, which then says nothing.
ERROR_CAP = 10.0

CURVE = ["figure", "dataset", "column", "metric", "setting", "mechanism", "epsilon"]
"""Columns that tell a point of a curve from every other."""


class ResultsError(Exception):
    """A file of results can't be used at all."""


class ResultRow(NamedTuple):
    """One release in one repeat; a line of the file."""

    figure: str
    dataset: str
    column: str = ""
    metric: str = ""
    setting: str = ""  # tells apart settings of one mechanism, such as "beta=1.01"
    mechanism: str = ""
    epsilon: float = math.nan
    repeat: int = 0  # counted from 0
    n: int = 0  # records drawn
    bounded: int = 0  # 1 if the mechanism knew a public range of the values
    draw_seed: int = -1  # seeds the draw of records; -1: all records were taken
    release_seed: int = -1  # -1: none, the operating system's entropy
    split_seed: int = -1  # -1: no split
    true_value: float = math.nan  # the exact metric of the records drawn: NOT private
    release: float = math.nan
    error: float = math.nan  # their distance
    expected_error: float = math.nan  # exact, capped at ERROR_CAP times the true value if not bounded
    overshoot: float = math.nan  # exact chance of a release above ERROR_CAP times the true value
    sampling_error: float = 0.0  # standard error that the metric of so many records has anyway
    versions: str = ""
    revision: str = ""


_HEADER = ",".join(ResultRow._fields) + "\n"


def frame_of(rows: Sequence[ResultRow]) -> Any:
    """Return rows as a DataFrame with a dtype for each column."""
    frame = import_extra("pandas").DataFrame(rows, columns=ResultRow._fields)
    return frame.astype(ResultRow.__annotations__)


def keys_of(frame: Any) -> set[tuple[Any, ...]]:
    """Return what tells each row from every other: the point of a curve, and the number of the repeat."""
    return set(frame[[*CURVE, "repeat"]].itertuples(index=False, name=None))


def read_results(path: Path, *, mend: bool = False) -> Any:
    """Return the rows of a file of results, each release once: a DataFrame, empty if there is no file.

    The last line of a run that was stopped may be incomplete. It is left out, with a warning; `mend` takes it
    out of the file too, so that rows can be appended. A `ResultsError` says that this is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    except OSError as error:
        raise ResultsError(f"can't read the results {path}: {error.strerror or error}") from error
    if text and not text.startswith(_HEADER):
        raise ResultsError(f"{path}: line 1 is not the header of a results file of this version")
    whole = text[: text.rfind("\n") + 1] or _HEADER
    if text and whole != text:
        print(
            f"warning: {path}: line {whole.count(chr(10)) + 1} is incomplete and was dropped", file=sys.stderr
        )
    if mend and whole != text:
        part = path.with_suffix(".part")
        part.write_text(whole, encoding="utf-8", newline="\n")
        part.replace(path)
    empty = {"expected_error": [""], "overshoot": [""]}  # the only cells that may be
    options = {"dtype": ResultRow.__annotations__, "keep_default_na": False, "na_values": empty}
    try:
        frame = import_extra("pandas").read_csv(io.StringIO(whole), skip_blank_lines=False, **options)
    except ValueError as error:
        raise ResultsError(f"{path} is damaged: {str(error).strip()}") from error
    return frame.drop_duplicates([*CURVE, "repeat"], ignore_index=True)


def append_results(path: Path, rows: Sequence[ResultRow], **stamp: str) -> None:
    """Add rows at the end: all of them or, if stopped in the middle, one incomplete line at most.

    `stamp` has columns that are the same in all of them: versions and revision.
    """
    text = frame_of(rows).assign(**stamp).to_csv(header=False, index=False, lineterminator="\n")
    with path.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def git_revision() -> str:
    """Return the git revision of the program, with a mark if it was changed since; "unknown" elsewhere."""
    here = Path(__file__).resolve()
    options: dict[str, Any] = {"cwd": here.parent, "text": True, "timeout": 10, "stderr": subprocess.DEVNULL}
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        # an installed copy may lie in another repository
        subprocess.check_output(["git", "ls-files", "--error-unmatch", here.name], **options)
        return str(subprocess.check_output(describe, **options).strip())
    except (OSError, subprocess.SubprocessError):
        return "unknown"


# the normal quantile of (1 + 0.9) / 2, for an interval of confidence 0.9
_NORMAL_QUANTILE = 1.6448536269514722


def summarise(rows: Any) -> Any:
    """Average the repeats of a DataFrame of rows, of any studies but the simulated one: a DataFrame.

    It has a line for each curve of each panel and epsilon. In units of the mean true value: `mean`, and `low`
    and `high`, the ends of its 0.9 confidence interval (errors of releases without bounds are capped at 10
    times the true value); `raw_mean`, not capped; `median` and `q95` of the error; `bias`, capped likewise;
    `exact`, the mean exact expected error; `sampling`, the mean sampling standard error. Then `stopped`, the
    share of releases below a tenth of the true value; `overshot`, of those above ten times it, and
    `overshoot_chance`, the mean exact probability of that.
    """
    frame = rows.copy()
    cap = np.where(frame["bounded"] == 1, np.inf, ERROR_CAP * frame["true_value"])
    frame["capped"] = np.minimum(frame["error"], cap)
    frame["signed"] = np.clip(frame["release"] - frame["true_value"], -cap, cap)
    frame["stopped"] = frame["release"] < 0.1 * frame["true_value"]
    frame["overshot"] = frame["release"] > ERROR_CAP * frame["true_value"]
    groups = frame.groupby(CURVE, sort=False)
    absolute = groups.agg(
        mean=("capped", "mean"), half=("capped", "std"), raw_mean=("error", "mean"),
        median=("error", "median"), bias=("signed", "mean"), exact=("expected_error", "mean"),
        sampling=("sampling_error", "mean"),
    )  # fmt: skip
    absolute["q95"] = groups["error"].quantile(0.95)
    truth = groups["true_value"].mean()
    relative = absolute.div(truth.where(truth > 0), axis=0)
    half = _NORMAL_QUANTILE * relative.pop("half").fillna(0.0) / np.sqrt(groups.size())
    relative = relative.assign(low=relative["mean"] - half, high=relative["mean"] + half)
    others = groups.agg(
        repeats=("n", "size"), n=("n", "max"), bounded=("bounded", "max"), stopped=("stopped", "mean"),
        overshot=("overshot", "mean"), overshoot_chance=("overshoot", "mean"),
    )  # fmt: skip
    return others.join(relative).reset_index()
