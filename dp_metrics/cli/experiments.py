"""`dp-metrics reproduce` and `dp-metrics report`: the experiments of the paper."""

import argparse
import sys
from pathlib import Path
from typing import Any

from dp_metrics.cli._common import add_folders, several, writable_folder

__all__ = ["add_report", "add_reproduce"]


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 up")
    return int(text)


def _reproduce(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.reproduce import reproduce

    output = writable_folder(options.output)
    how = {"data_dir": options.data_dir, "jobs": options.jobs, "quick": options.quick}
    for path in reproduce(options.figure, options.dataset, options.mechanism, output=output, **how):
        print(path)
    print(f"for a page with tables: dp-metrics report {options.output}", file=sys.stderr)


def add_reproduce(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "reproduce",
        help="run the experiments of the paper again, and draw its figures",
        description="Run the experiments of Durfee, arXiv 2311.14681, on public data, and draw a figure of "
        "each. Every release is a line of results.csv in the output folder; a run that was stopped goes on "
        "from there. Releases are seeded, so that runs can be repeated: a study on public data, never a way "
        "to publish.",
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


def _report(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.report import write_report

    print(write_report(options.results))


def add_report(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="write one HTML page about the results of `reproduce`",
        description="Write report.html beside the results: figures, tables and settings.",
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results.csv, or its folder")
    parser.set_defaults(run=_report)
