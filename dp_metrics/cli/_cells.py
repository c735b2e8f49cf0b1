"""How one cell of text is read, in a file as on the command line: by itself, whatever the others hold."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["BOOLEANS", "MISSING", "label_reader"]

BOOLEANS = {
    spelled: word == "true" for word in ("true", "false") for spelled in (word, word.title(), word.upper())
}
"""Python, pandas, R and JSON write booleans so. A T, F, Y or N may be a group or a country."""

MISSING = frozenset(("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null"))
"""What stands for nothing, unless it is a given label."""

_SWAPPED = str.maketrans(",.", ".,")
_WHOLE = re.compile(r"([+-]?[0-9]{1,4000})(\.0*)?")  # digits are compared: two large ids could be one float
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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
