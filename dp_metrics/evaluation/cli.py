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
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from dp_metrics.analysis.audited import run_audit, to_table
from dp_metrics.evaluation.datasets import DATASETS, EMBEDDED, get_dataset, load_dataset
from dp_metrics.evaluation.results import ERROR_CAP, ResultRow, ResultsError
from dp_metrics.evaluation.sources import (
    DATA_VARIABLE,
    Dataset,
    DatasetError,
    MissingExtraError,
    import_extra,
)
from dp_metrics.evaluation.studies import Study, StudyError
from dp_metrics.mechanisms import MECHANISMS

__all__ = ["main"]

_EPSILONS = (0.1, 0.5, 1.0, 2.0)
_OUTPUT = Path("dp-metrics-output")
_METRICS = {
    "private_mse": "Mean squared error",
    "private_mae": "Mean absolute error",
    "private_variance": "Variance of the target",
    "private_log_loss": "Log loss",
}


class _CommandError(Exception):
    """What was asked for can't be done; the message is one line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _CommandError(message)


def _epsilon(text: str) -> float:
    from dp_metrics.inputs.epsilon import check_epsilon

    try:
        return check_epsilon(float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive, finite number") from None


def _writable_folder(path: Path) -> Path:
    """Make the output folder and prove that files can be made there, before time is spent on training."""
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


def _document(study: Study, rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Return an object for each metric, epsilon and mechanism, those without a release included."""
    found = {(row.metric, row.epsilon, row.mechanism): row for row in rows}
    first = {row.metric: row for row in reversed(rows)}
    return [
        {
            "dataset": task.dataset, "metric": f"private_{task.metric}", "mechanism": curve.mechanism,
            "epsilon": epsilon, "n_test": any_row.n, "bounded": bool(any_row.bounded),
            "release": None if row is None else row.release,
            "expected_error": None if row is None else row.expected_error,
            "error_cap": None if any_row.bounded else ERROR_CAP * any_row.true_value,
            "true_value_not_private": any_row.true_value,
            "sampling_error_not_private": any_row.sampling_error,
        }
        for task, epsilon in product(study.tasks, dict.fromkeys(row.epsilon for row in rows))
        for curve in study.curves
        for row, any_row in [(found.get((task.metric, epsilon, curve.mechanism)), first[task.metric])]
    ]  # fmt: skip


def _describe(dataset: Dataset, rows: Sequence[dict[str, Any]]) -> str:
    """Write the report of one data set."""
    limit = (
        "no public bounds" if dataset.task == "regression" else "loss bounded by the clipped probabilities"
    )
    if dataset.bounds is not None:
        limit = f"public bounds {dataset.bounds[0]:g} to {dataset.bounds[1]:,.0f}"
    lines = [f"== {dataset.name}: {dataset.task}, {rows[0]['n_test']:,} test records, {limit} =="]
    for metric in dict.fromkeys(row["metric"] for row in rows):
        group = [row for row in rows if row["metric"] == metric]
        truth, sampling = (group[0][f"{name}_not_private"] for name in ("true_value", "sampling_error"))
        capped = "" if group[0]["bounded"] else f", errors capped at {ERROR_CAP:g} x the true value"
        table: dict[float, dict[str, str]] = {}
        for row in group:
            cell = "needs bounds"
            if row["release"] is not None:
                cell = f"{_number(row['release'])} ({_number(row['expected_error'], 2)})"
            table.setdefault(row["epsilon"], {"epsilon": f"{row['epsilon']:g}"})[row["mechanism"]] = cell
        lines += [
            "",
            f"{_METRICS[metric]} ({metric})",
            f"  true value               {_number(truth)}  (NOT private, for study)",
            f"  sampling standard error  {_number(sampling)}  (the error it has anyway; NOT private)",
            f"  private releases, in brackets the exact expected absolute error{capped}:",
            import_extra("pandas").DataFrame(table.values()).to_string(index=False, col_space=9),
        ]
    return "\n".join(lines)


def _evaluate(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation import figures, reproduce

    datasets = [get_dataset(name) for name in dict.fromkeys(options.dataset or EMBEDDED)]
    epsilons = sorted(set(options.epsilon or _EPSILONS))
    # Everything that can be wrong is looked at before the first model is trained.
    reproduce.check_extras()
    loaded = [(dataset, load_dataset(dataset.name, options.data_dir)) for dataset in datasets]
    output = _writable_folder(options.output)
    document: dict[str, Any] = {
        "warning": "fields that end in _not_private, and expected errors: for study on public data only",
        "plots": [],
        "rows": [],
    }
    for dataset, data in loaded:
        study, rows = reproduce.evaluate(dataset, data, epsilons)
        plot = output / f"{dataset.name}.png"
        figures.draw_evaluation(study, rows, plot)
        document["plots"].append(str(plot))
        described = _document(study, rows)
        document["rows"] += described
        if not options.json:
            print(f"{_describe(dataset, described)}\n\nplot written to {plot}\n", flush=True)
    if options.json:
        print(json.dumps(document, indent=2, allow_nan=False), flush=True)


def _add_folders(parser: argparse.ArgumentParser, contents: str) -> None:
    data = f"folder of the data files (default: the variable {DATA_VARIABLE}; without a file, OpenML)"
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=data)
    output = f"folder {contents} (default: ./%(default)s)"
    parser.add_argument("--output", type=Path, default=_OUTPUT, metavar="DIR", help=output)


def _add_evaluate(commands: Any) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="train a model on public data and compare its private metrics with the true ones",
        description="Train xgboost on 80 % of a public data set, and release metrics of the rest privately "
        "with every mechanism, beside the exact expected error. Without options: embedded data, no download.",
    )
    several: dict[str, Any] = {"nargs": "+", "action": "extend"}
    names = f"data sets, of {', '.join(DATASETS)} (default: {' '.join(EMBEDDED)})"
    parser.add_argument("--dataset", **several, metavar="NAME", help=names)
    epsilons = f"privacy parameters (default: {' '.join(f'{e:g}' for e in _EPSILONS)})"
    parser.add_argument("--epsilon", **several, type=_epsilon, metavar="E", help=epsilons)
    _add_folders(parser, "for the plots, one per data set")
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(run=_evaluate)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 up")
    return int(text)


def _reproduce(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.reproduce import reproduce

    output = _writable_folder(options.output)
    how = {"data_dir": options.data_dir, "jobs": options.jobs, "quick": options.quick}
    for path in reproduce(options.figure, options.dataset, options.mechanism, output=output, **how):
        print(path)
    print(f"for a page with tables: dp-metrics report {options.output}", file=sys.stderr)


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="run the experiments of the paper again, and draw its figures",
        description="Run the experiments of Durfee, arXiv 2311.14681, on public data, and draw a figure of "
        "each. Every release is a line of results.csv in the output folder; a run that was stopped goes on "
        "from there. Releases are seeded, so that runs can be repeated: a study on public data, never a way "
        "to publish.",
    )
    several: dict[str, Any] = {"nargs": "+", "action": "extend", "metavar": "NAME", "default": []}
    parser.add_argument("--figure", **several, help="figures (default: all; a wrong name lists them)")
    images = "data sets (default: the paper's; CIFAR-10 only if torch is installed)"
    parser.add_argument("--dataset", **several, help=images)
    parser.add_argument("--mechanism", **several, help="mechanisms (default: all)")
    _add_folders(parser, "of results")
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
        description="Write report.html beside the results: figures, tables and settings.",
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results.csv, or its folder")
    parser.set_defaults(run=_report)


def _audit(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    bar = partial(tqdm, desc="audit", unit="claim", file=sys.stderr)
    if unknown := [name for name in options.mechanism if name not in MECHANISMS]:
        raise _CommandError(f"unknown mechanism {unknown[0]!r}; there are: {', '.join(MECHANISMS)}")
    sizes = {"n": options.records, "steps": options.steps}
    findings = run_audit(options.epsilon, **sizes, mechanisms=options.mechanism, progress=bar)
    passed = all(finding.result.passed for finding in findings)
    if options.json:
        rows = [
            {
                "metric": f.metric, "mechanism": f.mechanism, "epsilon": f.epsilon,
                "worst_loss": f.result.worst, "pairs": f.result.pairs, "passed": f.result.passed,
            }
            for f in findings
        ]  # fmt: skip
        print(json.dumps({"passed": passed, "findings": rows}, indent=2))
    else:
        claims = ", ".join(f"{epsilon:g}" for epsilon in options.epsilon)
        print(f"Worst privacy loss found / epsilon, over epsilon = {claims}:\n\n{to_table(findings)}\n")
        print(max(findings, key=lambda finding: finding.result.worst / finding.epsilon).result)
    if not passed:
        raise SystemExit(1)


def _add_audit(commands: Any) -> None:
    parser = commands.add_parser(
        "audit",
        help="search for the worst privacy loss of every public metric",
        description="Search for the neighbouring data sets on which each metric loses most privacy, with "
        "exact output laws. Prints the worst loss found / epsilon (at most 1 if the claim holds) and the "
        "worst pair; exit code 1 if a claim is refuted. No real data are read.",
    )
    claims = {"default": [0.1, 1.0, 4.0], "metavar": "E", "help": "claims to check (default: 0.1 1 4)"}
    parser.add_argument("--epsilon", nargs="+", type=float, **claims)
    several: dict[str, Any] = {"nargs": "+", "action": "extend", "metavar": "NAME", "default": []}
    parser.add_argument("--mechanism", **several, help="mechanisms (default: all)")
    for option, default, text in (
        ("--records", 10, "records of each data set"),
        ("--steps", 100, "steps of hill climbing"),
    ):
        parser.add_argument(
            option, type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(run=_audit)


# One function per subcommand: it adds a parser whose default `run` takes the parsed options.
_COMMANDS = (_add_evaluate, _add_reproduce, _add_report, _add_audit)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dp-metrics", description="Differentially private metrics of machine-learning models."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process.

    Returns the exit code: 0, or 2 after one line on standard error, or 130 if interrupted.
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
