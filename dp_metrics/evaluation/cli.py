"""The command line `dp-metrics`.

xgboost, pandas, matplotlib and tqdm are imported only once they are needed, so that ``--help`` works, and a
missing extra is one clear line, where they are not installed.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from dp_metrics.evaluation.audit import add_audit
from dp_metrics.evaluation.datasets import (
    DATA_VARIABLE,
    DATASETS,
    EMBEDDED,
    Dataset,
    DatasetError,
    MissingExtraError,
    get_dataset,
    import_extra,
    load_dataset,
)
from dp_metrics.evaluation.experiment import ERROR_CAP, MECHANISM_LABELS, Row, run_experiment
from dp_metrics.evaluation.models import evaluate_model
from dp_metrics.evaluation.plots import METRIC_TITLES, plot_experiment
from dp_metrics.evaluation.results import ResultsError
from dp_metrics.evaluation.studies import StudyError

__all__ = ["main"]

_EXTRA = ("pandas", "xgboost", "tqdm", "matplotlib")
_EPSILONS = (0.1, 0.5, 1.0, 2.0)
_OUTPUT = Path("dp-metrics-output")


class _CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _CommandError(message)


def _epsilon(text: str) -> float:
    from dp_metrics._validation import check_epsilon

    try:
        return check_epsilon(float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive, finite number") from None


def _writable_folder(path: Path) -> Path:
    """Make the output folder and prove that files can be made there, before any time is spent on training."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise _CommandError(f"can't write to the output folder {path}: {error.strerror or error}") from error
    return path


def _number(value: float, digits: int = 5) -> str:
    """Round to some significant digits; powers of ten only for the very large and the very small."""
    rounded = float(f"{value:.{digits - 1}e}")
    return f"{rounded:,.0f}" if 10.0 ** (digits - 1) <= abs(rounded) < 1e10 else f"{rounded:.{digits}g}"


def _cell(row: Row) -> str:
    if row.release is None or row.expected_error is None:
        return "needs bounds"
    return f"{_number(row.release)} ({_number(row.expected_error, 2)})"


def _table(rows: Sequence[Row]) -> list[str]:
    """Align epsilons in rows, mechanisms in columns."""
    cells = {(row.epsilon, row.mechanism): _cell(row) for row in rows}
    epsilons = list(dict.fromkeys(row.epsilon for row in rows))
    lines = [["epsilon", *MECHANISM_LABELS]]
    lines += [[f"{e:g}", *(cells[e, mechanism] for mechanism in MECHANISM_LABELS)] for e in epsilons]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def _describe(dataset: Dataset, rows: Sequence[Row]) -> str:
    """Write the report of one data set."""
    if dataset.task != "regression":
        limit = "loss bounded by the clipped probabilities"
    elif dataset.bounds is None:
        limit = "no public bounds"
    else:
        limit = f"public bounds {dataset.bounds[0]:g} to {dataset.bounds[1]:,.0f}"
    lines = [f"== {dataset.name}: {dataset.task}, {rows[0].n_test:,} test records, {limit} =="]
    for metric in dict.fromkeys(row.metric for row in rows):
        group = [row for row in rows if row.metric == metric]
        first = group[0]
        capped = f", errors capped at {ERROR_CAP:g} x the true value" if first.error_cap is not None else ""
        lines += [
            "",
            f"{METRIC_TITLES[metric]} ({metric})",
            f"  true value               {_number(first.true_value_not_private)}  (NOT private, for study)",
            f"  sampling standard error  {_number(first.sampling_error_not_private)}"
            "  (the error it has anyway; NOT private)",
            f"  private releases, in brackets the exact expected absolute error{capped}:",
            *(f"  {line}" for line in _table(group)),
        ]
    return "\n".join(lines)


def _evaluate(options: argparse.Namespace) -> None:
    datasets = [get_dataset(name) for name in dict.fromkeys(options.dataset or EMBEDDED)]
    epsilons = sorted(set(options.epsilon or _EPSILONS))
    # Everything that can be wrong is looked at before the first model is trained.
    for package in _EXTRA:
        import_extra(package)
    loaded = [(dataset, *load_dataset(dataset.name, options.data_dir)) for dataset in datasets]
    output = _writable_folder(options.output)
    document: dict[str, Any] = {
        "warning": "fields that end in _not_private, and expected errors: for study on public data only",
        "plots": [],
        "rows": [],
    }
    for dataset, features, target in loaded:
        rows = run_experiment(evaluate_model(dataset, features, target), epsilons)
        plot = output / f"{dataset.name}.png"
        plot_experiment(rows, plot)
        document["plots"].append(str(plot))
        document["rows"] += map(asdict, rows)
        if not options.json:
            print(f"{_describe(dataset, rows)}\n\nplot written to {plot}\n", flush=True)
    if options.json:
        print(json.dumps(document, indent=2, allow_nan=False), flush=True)


def _add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help=f"folder of the data files (default: the environment variable {DATA_VARIABLE}; without a file, "
        "OpenML)",
    )


def _add_evaluate(commands: Any) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="train a model on public data and compare its private metrics with the true ones",
        description="Train xgboost on 80 % of a public data set, and release metrics of the rest privately "
        "with every mechanism, beside the exact expected error. Without options: embedded data, no download.",
    )
    parser.add_argument(
        "--dataset",
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"data sets, of {', '.join(DATASETS)} (default: {' '.join(EMBEDDED)})",
    )
    _add_data_dir(parser)
    parser.add_argument(
        "--epsilon",
        nargs="+",
        action="extend",
        type=_epsilon,
        metavar="E",
        help=f"privacy parameters (default: {' '.join(f'{e:g}' for e in _EPSILONS)})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=_OUTPUT,
        metavar="DIR",
        help="folder for the plots, one per data set (default: ./%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(run=_evaluate)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 up")
    return int(text)


def _reproduce(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.reproduce import reproduce

    pictures = reproduce(
        options.figure,
        options.dataset,
        options.mechanism,
        data_dir=options.data_dir,
        output=_writable_folder(options.output),
        jobs=options.jobs,
        quick=options.quick,
    )
    for path in pictures:
        print(path)
    print(f"for a page with findings: dp-metrics report {options.output}", file=sys.stderr)


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="run the experiments of the paper again, and draw its figures",
        description="Run the experiments of Durfee, arXiv 2311.14681, on public data, and draw a figure of "
        "each. Every release is a line of results.csv in the output folder; a run that was stopped goes on "
        "from there. Releases are seeded, so that runs can be repeated: a study on public data, never a way "
        "to publish.",
    )
    for option, text in (
        ("--figure", "figures (default: all; a wrong name lists them)"),
        ("--dataset", "data sets (default: the paper's; CIFAR-10 only if torch is installed)"),
        ("--mechanism", "mechanisms (default: all)"),
    ):
        parser.add_argument(option, nargs="+", action="extend", metavar="NAME", default=[], help=text)
    _add_data_dir(parser)
    parser.add_argument(
        "--output",
        type=Path,
        default=_OUTPUT,
        metavar="DIR",
        help="folder of results (default: ./%(default)s)",
    )
    parser.add_argument("--jobs", type=_jobs, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--quick", action="store_true", help="10 repeats, 3 epsilons, the five tables")
    parser.set_defaults(run=_reproduce)


def _report(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.report import write_report

    print(write_report(options.results))


def _add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="write one HTML page about the results of `reproduce`",
        description="Write report.html beside the results: figures, tables, settings, and what was found.",
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results.csv, or its folder")
    parser.set_defaults(run=_report)


# One function per subcommand: it adds a parser whose default `run` takes the parsed options.
_COMMANDS = (_add_evaluate, _add_reproduce, _add_report, add_audit)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dp-metrics", description="Differentially private metrics of machine-learning models."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments; None: those of the process.

    Returns
    -------
    int
        Exit code: 0, or 2 after one line on standard error, or 130 if interrupted.
    """
    try:
        options = _parser().parse_args(argv)
        options.run(options)
    except BrokenPipeError:
        # The reader went away (`| head`); without this, flushing at exit would complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (_CommandError, DatasetError, MissingExtraError, ResultsError, StudyError, OSError) as error:
        print("dp-metrics: error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
