"""`dp-metrics reproduce` and `dp-metrics report`: the experiments of the paper."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dp_metrics.cli._common import CommandError, several
from dp_metrics.evaluation.results import ResultsError
from dp_metrics.evaluation.sources import DATA_VARIABLE, DatasetError
from dp_metrics.evaluation.studies import StudyError

__all__ = ["add_folders", "add_report", "add_reproduce", "clear_errors", "writable_folder"]

_OUTPUT = Path("dp-metrics-output")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what is wrong with data, results or a study into one clear line."""
    try:
        yield
    except (DatasetError, ResultsError, StudyError) as error:
        raise CommandError(str(error)) from error


def writable_folder(path: Path) -> Path:
    """Make the output folder and prove that files can be made there, before time is spent on training."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise CommandError(f"can't write to the output folder {path}: {error.strerror or error}") from error
    return path


def add_folders(parser: argparse.ArgumentParser, contents: str) -> None:
    """Add the options that name the folder of the data and that of what is written."""
    data = f"folder of the data files (default: the variable {DATA_VARIABLE}; without a file, OpenML)"
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=data)
    output = f"folder {contents} (default: ./%(default)s)"
    parser.add_argument("--output", type=Path, default=_OUTPUT, metavar="DIR", help=output)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 up")
    return int(text)


@clear_errors()
def _reproduce(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.reproduce import reproduce

    output = writable_folder(options.output)
    how = {"data_dir": options.data_dir, "jobs": options.jobs, "quick": options.quick}
    for path in reproduce(options.figure, options.dataset, options.mechanism, output=output, **how):
        print(path)
    print(f"for a page with tables: dp-metrics report {options.output}", file=sys.stderr)


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Run the experiments of Durfee, arXiv 2311.14681, on public data, and draw a figure of "
        "each. Every release is a line of results.csv in the output folder; a run that was stopped goes on "
        "from there. Releases are seeded, so that runs can be repeated: a study on public data, never a way "
        "to publish."
    )
    names = several(metavar="NAME", default=[])
    parser.add_argument("--figure", **names, help="figures (default: all; a wrong name lists them)")
    images = "data sets (default: the paper's; CIFAR-10 only if torch is installed)"
    parser.add_argument("--dataset", **names, help=images)
    parser.add_argument("--mechanism", **names, help="mechanisms (default: all)")
    add_folders(parser, "of results")
    parser.add_argument("--jobs", type=_jobs, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--quick", action="store_true", help="10 repeats, 3 epsilons, the five tables")
    parser.set_defaults(run=_reproduce)


@clear_errors()
def _report(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.report import write_report

    print(write_report(options.results))


def add_report(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = "Write report.html beside the results: figures, tables and settings."
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results.csv, or its folder")
    parser.set_defaults(run=_report)
