"""What several commands share: their errors, and the options that they have in common."""

import argparse
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from dp_metrics.evaluation.sources import DATA_VARIABLE
from dp_metrics.inputs.epsilon import check_epsilon

__all__ = [
    "CommandError",
    "Refused",
    "add_folders",
    "add_json",
    "epsilon",
    "several",
    "tell",
    "writable_folder",
]

_OUTPUT = Path("dp-metrics-output")


class CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class Refused(Exception):
    """What was asked for is clear, but the data or the budget don't allow it; nothing was spent."""


def epsilon(text: str) -> float:
    """Return a positive, finite number that was typed."""
    try:
        return check_epsilon(float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive, finite number") from None


def tell(kind: str, message: object) -> None:
    """Write one line on standard error, if it can be written: no result that is paid for depends on it."""
    if sys.stderr is None:  # standard error is closed, and `print` would write on standard output instead
        return
    with suppress(OSError):  # a full disk, or a reader that went away
        print(f"dp-metrics: {kind}:", " ".join(str(message).split()), file=sys.stderr, flush=True)


def several(**more: Any) -> dict[str, Any]:
    """Return the settings of an option that takes several values and may be repeated."""
    return {"nargs": "+", "action": "extend", **more}


def writable_folder(path: Path) -> Path:
    """Make the output folder and prove that files can be made there, before time is spent on training."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise CommandError(f"can't write to the output folder {path}: {error.strerror or error}") from error
    return path


def add_folders(parser: argparse.ArgumentParser, contents: str) -> None:
    """Add the options that name the folder of the data and that of what is written."""
    data = f"folder of the data files (default: the variable {DATA_VARIABLE}; without a file, OpenML)"
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=data)
    output = f"folder {contents} (default: ./%(default)s)"
    parser.add_argument("--output", type=Path, default=_OUTPUT, metavar="DIR", help=output)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks for output for programs."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
