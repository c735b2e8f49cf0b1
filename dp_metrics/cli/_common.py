"""What several commands share: their errors, and the options that they have in common."""

import argparse
import sys
from contextlib import suppress
from fractions import Fraction
from typing import Any

__all__ = [
    "CommandError",
    "Refused",
    "add_json",
    "epsilon",
    "exact_epsilon",
    "several",
    "share",
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


def exact_epsilon(text: str) -> "float | Fraction":
    """Return a positive, finite number that was typed, or a fraction such as 1/3, which no float is."""
    if "/" not in text:
        return epsilon(text)
    try:
        exact = Fraction(text)
        epsilon(repr(float(exact)))
    except (ValueError, ArithmeticError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive, finite number") from None
    return exact


def share(text: str) -> float:
    """Return a number strictly between 0 and 1 that was typed."""
    with suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number strictly between 0 and 1")


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
