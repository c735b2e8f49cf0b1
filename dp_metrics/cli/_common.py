"""What several commands share: their errors, the options that they have in common, and how text is read.

A cell of text, in a file as on the command line, is read by itself, whatever the others hold.
"""

import argparse
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
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


@contextmanager
def told_as(kind: type[Exception], *errors: type[Exception]) -> Iterator[None]:
    """Turn these errors into one clear line of a kind."""
    try:
        yield
    except errors as error:
        raise kind(str(error)) from None


mistakes = partial(told_as, CommandError, ValueError, TypeError)
"""Makes one clear line of what the package says of options."""

refusals = partial(told_as, Refusal, ValueError, TypeError, RuntimeError)
"""Makes one clear line of what the package says of data or a budget; such an error comes before the spend."""


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


_NUMBERS: dict[str, Callable[[str], Any]] = {"int": int, "float": float}
_CHECKED: dict[str, Callable[[str], Any]] = {
    "epsilon": exact_epsilon,
    "confidence": share,
    "q": share,
    "max_loss": epsilon,
    "max_difference": epsilon,
}
"""How parameters are read that are checked as they are typed."""


def tell(kind: str, message: object) -> None:
    """Write one line on standard error, if it can be written: no result that is paid for depends on it."""
    if sys.stderr is None:  # standard error is closed, and `print` would write on standard output instead
        return
    with suppress(OSError):  # a full disk, or a reader that went away
        print(f"dp-metrics: {kind}:", " ".join(str(message).split()), file=sys.stderr, flush=True)


def several(**more: Any) -> dict[str, Any]:
    """Return the settings of an option that takes several values and may be repeated."""
    return {"nargs": "+", "action": "extend", **more}


def add_option(
    parser: argparse.ArgumentParser, function: Callable[..., Any], name: str, *flags: str, **more: Any
) -> None:
    """Add the option of a parameter of a public function: its name, type, default and first sentence.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command.
    function : callable
        A function with a numpydoc docstring.
    name : str
        The parameter.
    *flags : str
        What is typed, where it is not the name of the parameter.
    **more : Any
        Whatever else, or other than the signature, argparse is to know.
    """
    parameter = inspect.signature(function).parameters[name]
    is_required = parameter.default is parameter.empty
    default = None if is_required else parameter.default
    told = more.get("default") or default
    number = re.search(r"\b(int|float)\b", str(parameter.annotation))
    known: dict[str, Any] = {
        "dest": name,
        "type": _CHECKED.get(name) or _NUMBERS.get(number[0] if number else "", str),
        "required": is_required,
        "default": default,
        "help": _first_sentence(function, name) + (f" (default: {told})" if told else ""),
    }
    parser.add_argument(*(flags or [f"--{name.replace('_', '-')}"]), **known | more)


def _first_sentence(function: Callable[..., Any], name: str) -> str:
    """Return what a docstring says first of a parameter, but for None; nothing under `python -OO`."""
    entry = re.search(rf"^{name} : .*\n((?: +.*\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    text = " ".join(entry[1].split()) if entry else ""
    return re.split(r"(?<=\.) (?=[A-Z(])|; None: ", text)[0].rstrip(".").replace("`", "").replace("%", "%%")


def keywords(typed: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return what was typed for these parameters, as a function takes it."""
    return {name: getattr(typed, name) for name in names}


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
