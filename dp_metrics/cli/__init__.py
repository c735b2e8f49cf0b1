"""The command line `dp-metrics`: the errors that it tells in one line, and how it tells them."""

import sys
from contextlib import suppress


class CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class Refusal(CommandError):
    """What was asked for is clear, but the data or the budget don't allow it; nothing was spent."""


def tell(kind: str, message: object) -> None:
    """Write one line on standard error, if it can be written: no result that is paid for depends on it."""
    if sys.stderr is None:  # standard error is closed, and `print` would write on standard output instead
        return
    with suppress(OSError):  # a full disk, or a reader that went away
        print(f"dp-metrics: {kind}:", " ".join(str(message).split()), file=sys.stderr, flush=True)
