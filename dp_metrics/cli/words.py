"""How words are read, of the command line and of files; and options, made of the signatures of functions.

A cell of text, in a file as on the command line, is read by itself, whatever the others hold.
"""

import ast
import inspect
import json
import math
import re
from argparse import SUPPRESS, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from dp_metrics.cli import CommandError, Parser
from dp_metrics.inputs.options import ByName, Function
from dp_metrics.metrics import Metric, row_of
from dp_metrics.release.stored import RECORDS, WEIGHTS

BOOLEANS = {
    spelled: word == "true" for word in ("true", "false") for spelled in (word, word.title(), word.upper())
}
"""Python, pandas, R and JSON write booleans so. A T, F, Y or N may be a group or a country."""

MISSING = frozenset(("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null"))
"""What stands for nothing, unless it is a given label."""

_SWAPPED = str.maketrans(",.", ".,")
_WHOLE = re.compile(r"([+-]?[0-9]{1,4000})(\.0*)?")  # digits are compared: two large ids could be one float
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_STRUCTURED = ("[", "(", "{", '"', "'")
_LISTS = frozenset(
    ("labels", "group_labels", "bounds", "edges", "target_names", "epsilons", "mechanisms", "unit_name")
)
COLUMNS = RECORDS | {*WEIGHTS}
"""Parameters that hold a value of each record: their options name columns of a file."""
_NEVER = frozenset(
    ("group_labels", "accountant", "random_state", "dry_run", "epsilon", "spend_name", "progress")
)


# Options


def epsilon(text: str) -> float | Fraction:
    """Return a positive, finite number that was typed, or a fraction such as 1/3, which no float is."""
    with suppress(ValueError, ArithmeticError):
        exact = Fraction(text) if "/" in text else float(text)
        if 0 < float(exact) < math.inf:
            return exact
    raise ArgumentTypeError(f"{text!r} is not a positive, finite number")


SEVERAL: ByName = {"nargs": "+", "action": "extend"}
"""Settings of an option that takes several values and may be repeated."""


def flag(name: str) -> str:
    """Return what is typed for a parameter."""
    return f"--{name.replace('_', '-')}"


def _told(function: Function, name: str) -> str:
    """Return the first sentence of a docstring about a parameter, or about an option of a command."""
    documented = inspect.getdoc(function) or ""  # there is none under `python -OO`
    entry = re.search(rf"^{name}(?: : .*)?\n((?: +.*(?:\n|$))+)", documented, re.MULTILINE)
    text = " ".join(entry[1].split()) if entry else ""
    first = re.split(r"(?<=\.) (?=[A-Z(])|; None: ", text)[0].rstrip(".")
    return first.replace("`", "").replace("%", "%%")


def add_option(parser: ArgumentParser, function: Function, name: str, *flags: str, **more: Any) -> None:
    """Add an option that a docstring describes: a parameter of a public function, or one of a command.

    One that holds a value of each record names columns of a file, see `columns_typed`. What has no default
    has to be typed; what must be None can be, and the function says why it must.

    Parameters
    ----------
    parser : Parser
        The parser of a command.
    function : callable
        A function with a numpydoc docstring; of a command, the one that adds its options.
    name : str
        The parameter or the option.
    *flags : str
        What is typed, where it is not the name.
    **more : Any
        Whatever else, or other than the signature, argparse is to know.
    """
    known: dict[str, Any] = {"help": _told(function, name)}
    if parameter := inspect.signature(function).parameters.get(name):
        default, kind = parameter.default, str(parameter.annotation)
        many = name in _LISTS or any(word in kind for word in ("Sequence", "MultiOutput"))
        known |= {
            "default": SUPPRESS,
            "required": default is parameter.empty,
            "nargs": "+" if many else 1,
            "metavar": "VALUE",
        }
        if isinstance(default, bool):  # the option alone says yes
            known |= {"nargs": "?", "const": ["true"], "type": lambda word: [word], "metavar": "true|false"}
        if default not in (None, (), parameter.empty):
            known["help"] += f" (default: {default})"
        if kind == "None":
            known["help"] = SUPPRESS
    if name in COLUMNS:
        known |= {**SEVERAL, "metavar": "COL", "default": SUPPRESS}
    flags = flags or (flag(name),)
    if flags != (name,):  # a word by its place is called what it is
        known["dest"] = name
    parser.add_argument(*flags, **known | more)


def add_options(
    parser: Parser, function: Function, names: Collection[str] | None = None, **flags: Sequence[str]
) -> None:
    """Add the options of a function that are there for no other one yet.

    Parameters
    ----------
    parser, function
        As for `add_option`.
    names : collection of str or None, default=None
        Which of its parameters; None: all but what each release has.
    **flags : sequence of str
        What is typed for some of them, where it is not the name.
    """
    for name, one in inspect.signature(function).parameters.items():
        is_wanted = name not in _NEVER and (names is None or name in names)
        if is_wanted and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            with suppress(ArgumentError):  # there is such an option
                add_option(parser, function, name, *flags.get(name, ()))


def given(typed: Namespace, function: Function) -> dict[str, Any]:
    """Return the options of a function that were typed, as it takes them; columns are none of them.

    A value is JSON, or a Python literal, or else text as it stands. The words of labels may be a list.
    """
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        words = getattr(typed, name, None)
        if words is None or name in _NEVER | COLUMNS:
            continue
        kind = str(parameter.annotation)
        if kind.startswith(("str", "'str")) and "Array" not in kind and name not in _LISTS:
            found[name] = None if words in (["null"], ["None"]) else words[0]
            continue
        found[name] = value_of(words, name)
        if isinstance(parameter.default, bool) and not isinstance(found[name], bool):
            raise CommandError(f"{flag(name)} takes true or false, not {' '.join(words)!r}")
    if (word := getattr(typed, "pos_label", None)) is not None and "pos_label" in found:
        known = found.get("labels") or [0, 1]
        positive = label_reader(known)(word[0])
        found["pos_label"] = positive if positive in known else found["pos_label"]
    return found


def value_of(words: Sequence[str], name: str) -> Any:
    """Return the value of an option: one word, a list of several, or the one word that is a list."""
    values = [_value(word, name) for word in words]
    if len(values) == 1 and (name not in _LISTS or isinstance(values[0], list | tuple)):
        return values[0]
    if any(isinstance(value, str) for value in values):
        return [value if isinstance(value, str) else word for value, word in zip(values, words, strict=True)]
    return values


def _value(text: Any, name: str) -> Any:
    if not isinstance(text, str):  # what was checked as it was typed
        return text
    for read in (BOOLEANS.__getitem__, json.loads, ast.literal_eval):
        with suppress(LookupError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return read(text.strip())
    if text.strip().startswith(_STRUCTURED):
        raise CommandError(f"{flag(name)}: {text!r} is neither JSON nor a Python literal")
    return text


def metrics_typed(parser: Parser, flag: str, usual: str = "") -> list[Metric]:
    """Return the metrics that were typed for an option: on these depends which other options there are."""
    first = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument(flag, dest="found", **SEVERAL, default=[])
    found = []
    with suppress(ArgumentError):
        found = first.parse_known_args(parser.words)[0].found
    return [row_of(word.partition("=")[0])[0] for word in found or [usual] if word]


# Cells


def label_reader(labels: Sequence[Any] = (), decimal: str | None = None) -> Callable[[str], Any]:
    """Return what makes a label or an id of a cell, and None of one that is missing.

    A cell that equals a given label as text is that label. What is neither that nor missing is a boolean, a
    number or text: 1, 1.0 and true are equal. Where labels are given it is the one of this number, or else
    text that is no label.

    Parameters
    ----------
    labels : sequence, default=()
        The given labels.
    decimal : {".", ","} or None, default=None
        The decimal mark of numbers, "." for None; different cells stay different.
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
