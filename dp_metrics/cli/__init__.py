"""The command line `dp-metrics`: the errors that it tells in one line, and how it tells them."""

import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn


class CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class Refusal(CommandError):
    """What was asked for is clear, but the data or the budget don't allow it; nothing was spent."""


class Parser(ArgumentParser):
    """The parser of a command, which knows all that was typed: on that depends which options there are."""

    def __init__(self, words: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.words = words
        self._negative_number_matcher = re.compile(r"-\.?\d")  # of Python 3.14: -1e6 is no option

    def error(self, message: str) -> NoReturn:
        """Raise for what was typed in a wrong way."""
        raise CommandError(f"{message} (see {self.prog} --help)")


def tell(kind: str, message: object) -> None:
    """Write one line on standard error, if it can be written: no result that is paid for depends on it."""
    if sys.stderr is None:  # standard error is closed, and `print` would write on standard output instead
        return
    with suppress(OSError):  # a full disk, or a reader that went away
        print(f"dp-metrics: {kind}:", " ".join(str(message).split()), file=sys.stderr, flush=True)
