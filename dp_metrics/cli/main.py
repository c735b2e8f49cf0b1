"""The command line `dp-metrics`: its commands, its errors and its exit codes."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import dp_metrics
from dp_metrics._packages import MissingExtraError
from dp_metrics.cli._common import CommandError, Refused, tell
from dp_metrics.cli.audit import add_audit
from dp_metrics.cli.budget import add_budget
from dp_metrics.cli.evaluate import add_evaluate
from dp_metrics.cli.experiments import add_report, add_reproduce
from dp_metrics.cli.metrics import add_metrics
from dp_metrics.cli.score import add_score
from dp_metrics.evaluation.results import ResultsError
from dp_metrics.evaluation.sources import DatasetError
from dp_metrics.evaluation.studies import StudyError

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see {self.prog} --help)")


# One function per subcommand: it adds a parser whose default `run` takes the parsed options.
_COMMANDS = (
    add_score, add_budget, add_metrics, add_evaluate, add_reproduce, add_report, add_audit,
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dp-metrics", description="Differentially private metrics of machine-learning models."
    )
    parser.add_argument("--version", action="version", version=f"dp_metrics {dp_metrics.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process.

    Returns the exit code: 0; or, after one line on standard error, 2 for what can't be done as it was asked
    for, 1 if the data or the budget refuse it; or 130 if interrupted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a label that the terminal can't show must not lose a number that is paid for, nor a history
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = _parser().parse_args(argv)
        options.run(options)
    except BrokenPipeError:
        # The reader went away (`| head`); without this, flushing at exit would complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Refused as error:
        return _failed(error, 1)
    except (CommandError, DatasetError, MissingExtraError, ResultsError, StudyError, OSError) as error:
        return _failed(error, 2)
    except KeyboardInterrupt:
        return 130
    return 0


def _failed(error: Exception, code: int) -> int:
    tell("error", error)
    return code


if __name__ == "__main__":
    sys.exit(main())
