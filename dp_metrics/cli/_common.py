"""What several commands share: their errors, and the options that they have in common."""

import argparse
import sys
from contextlib import suppress
from typing import Any

__all__ = [
    "CommandError",
    "Refused",
    "add_json",
    "epsilon",
    "several",
    "tell",
]


class CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class Refused(Exception):
    """What was asked for is clear, but the data or the budget don't allow it; nothing was spent."""


def epsilon(text: str) -> float:
    """Return a positive, finite number that was typed."""
    from dp_metrics.inputs.epsilon import check_epsilon  # NumPy would make up most of the time of --help

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


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks for output for programs."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
