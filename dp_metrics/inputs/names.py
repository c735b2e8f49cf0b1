"""Names that people type: a wrong one is answered with the name they may have meant."""

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a question that offers the known name closest to a wrong one, or nothing if none is close.

    Parameters
    ----------
    name : object
        What was typed; a public option. What is no string is close to nothing.
    known : iterable of str
        The names that would have been right.

    Returns
    -------
    str
        Such as " Did you mean 'hazard'?", to follow a sentence; or "".
    """
    if not isinstance(name, str):
        return ""
    names = {one.lower(): one for one in known}
    closest = difflib.get_close_matches(name.lower(), names, n=1)
    return f" Did you mean {names[closest[0]]!r}?" if closest else ""
