"""The command line `dp-metrics`: its commands, its errors and its exit codes."""

import errno
import inspect
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dp_metrics._packages import __version__
from dp_metrics.cli import CommandError, Parser, Refusal, tell

_COMMANDS = {
    "score": ("commands", "release a private metric of your own predictions, from a CSV or Parquet file"),
    "evaluate": (
        "commands",
        "release one page about a model; without a file, a demonstration on public data",
    ),
    "compare": ("commands", "tell which of two models is better on the records of a file"),
    "interval": ("commands", "release an interval for the mean or a quantile of a loss among all people"),
    "budget": ("show", "show what is spent of a budget, and what is left"),
    "metrics": ("lists", "list the metrics that `score` can release"),
    "plan": ("lists", "print what errors to expect of a metric, from a rough guess and without data"),
    "audit": ("lists", "search for the worst privacy loss of every public metric"),
    "reproduce": ("demonstration", "run the experiments of the paper again, and draw its figures"),
}
"""Of each command, the module of its `add_...`, whose docstring is its help, and `run_...`; what it does."""


def _parser(chosen: str | None, words: Sequence[str] = ()) -> Parser:
    """Return the parser of one command, or that which lists them: nothing of the others is imported."""
    if chosen is None:
        parser = Parser(
            prog="dp-metrics", description="Differentially private metrics of machine-learning models."
        )
        parser.add_argument("--version", action="version", version=f"dp_metrics {__version__}")
        commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
        for name, (_, what) in _COMMANDS.items():
            commands.add_parser(name, help=what)
        return parser
    module = import_module(f"dp_metrics.cli.{_COMMANDS[chosen][0]}")
    add = getattr(module, f"add_{chosen}")
    description = (inspect.getdoc(add) or "").partition("\n\nOptions\n")[0]
    parser = Parser(words, prog=f"dp-metrics {chosen}", description=description)
    parser.set_defaults(run=getattr(module, f"run_{chosen}"))
    add(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process.

    Returns the exit code. 0: fine. 1: a requirement is not met, or a claim refuted. 2: it can't be done as it
    was asked for, or an extra or a file is missing. 3: nothing can tell whether a requirement is met. 4: the
    data or the budget refuse it; nothing was spent. 130: interrupted. One line on standard error says why.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a spend name that the terminal can't show must not lose a number that is paid for, nor a history
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        words = sys.argv[1:] if argv is None else argv
        chosen = words[0] if words and words[0] in _COMMANDS else None
        options = _parser(chosen, words).parse_args(words[1:] if chosen else words)
        code = options.run(options)
    except (CommandError, ImportError, OSError, ValueError, TypeError) as error:
        if not _is_closed_pipe(error):
            tell("error", error)
            return 4 if isinstance(error, Refusal) else 2
        # The reader went away (`| head`); without this, flushing at exit would complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        return 130
    return code or 0


def _is_closed_pipe(error: Exception, system: str = os.name) -> bool:
    """Return whether whoever read the output went away, which Windows calls an invalid argument too."""
    if isinstance(error, BrokenPipeError):
        return True
    invalid = isinstance(error, OSError) and error.errno == errno.EINVAL and error.filename is None
    return system == "nt" and invalid


if __name__ == "__main__":
    sys.exit(main())
