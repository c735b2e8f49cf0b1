"""What several commands share: their errors, the options that they have in common, and how text is read.

A cell of text, in a file as on the command line, is read by itself, whatever the others hold.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

BOOLEANS = {
    spelled: word == "true" for word in ("true", "false") for spelled in (word, word.title(), word.upper())
}
"""Python, pandas, R and JSON write booleans so. A T, F, Y or N may be a group or a country."""

MISSING = frozenset(("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null"))
"""What stands for nothing, unless it is a given label."""

_SWAPPED = str.maketrans(",.", ".,")
_WHOLE = re.compile(r"([+-]?[0-9]{1,4000})(\.0*)?")  # digits are compared: two large ids could be one float
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class Refusal(Exception):
    """What was asked for is clear, but the data or the budget don't allow it; nothing was spent."""


def epsilon(text: str) -> float:
    """Return a positive, finite number that was typed."""
    from dp_metrics.inputs.options import check_epsilon

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


def label_reader(labels: Sequence[Any] = (), decimal: str = ".") -> Callable[[str], Any]:
    """Return what makes a label or an id of a cell, and None of one that is missing.

    A cell that equals a given label as text is that label. What is neither that nor missing is a boolean, a
    number or text: 1, 1.0 and true are equal. Where labels are given it is the one of this number, or else
    text that is no label.

    Parameters
    ----------
    labels : sequence, default=()
        The given labels.
    decimal : {".", ","}, default="."
        The decimal mark of numbers; different cells stay different.
    """
    by_text = {str(label): label for label in labels}
    by_name = {_name(str(label)): label for label in labels if not isinstance(label, str)}

    def read(cell: str) -> Any:
        text = cell.strip()
        if by_text and (cell in by_text or text in by_text):
            return by_text.get(cell, by_text.get(text))
        if text in MISSING:
            return None
        name = _name(text.translate(_SWAPPED) if decimal == "," else text)
        return by_name.get(name, text) if labels else name

    return read


def _name(text: str) -> Any:
    """Return text so that what is equal as a number is equal; a fraction becomes a number."""
    if text in BOOLEANS:
        return str(int(BOOLEANS[text]))
    if whole := _WHOLE.fullmatch(text):
        return str(int(whole[1]))
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(number):
        return text
    return str(int(number)) if number.is_integer() else number
