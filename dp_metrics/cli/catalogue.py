"""Commands that read no predictions: `dp-metrics metrics`, `plan`, `audit` and `reproduce`.

xgboost, pandas and matplotlib are imported only once they are needed, so that ``--help`` works, and a missing
extra is one clear line, where they are not installed.
"""

import argparse
import inspect
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.analysis.auditing import run_audit, to_table
from dp_metrics.analysis.expected_error import expected_error
from dp_metrics.analysis.guesses import hints_of
from dp_metrics.cli._common import (
    CommandError,
    add_json,
    add_option,
    epsilon,
    keywords,
    mistakes,
    several,
    told_as,
)
from dp_metrics.cli.predictions import OF_RECORDS, options_of
from dp_metrics.evaluation.datasets import (
    DATA_VARIABLE,
    DATASETS,
    EMBEDDED,
    Dataset,
    DatasetError,
    get_dataset,
    load_dataset,
)
from dp_metrics.evaluation.engine import ERROR_CAP, ResultRow, ResultsError, Study, StudyError
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import FUNCTIONS, METRICS, Metric, row_of

_WIDTH = 18
_EPSILONS = (1.0, 0.1, 0.3, 3.0, 10.0)
_MOST = 1_000_000


def parameters(row: Metric) -> Mapping[str, inspect.Parameter]:
    """Return the arguments that the function of a metric takes."""
    function: Callable[..., Any] = FUNCTIONS[row.name]
    return inspect.signature(function).parameters


def _described(row: Metric) -> dict[str, Any]:
    public = {name: value for name, value in row.options.items() if name not in OF_RECORDS}
    return {
        "name": row.name,
        "exact_function": row.exact_function or None,
        "summary": (inspect.getdoc(FUNCTIONS[row.name]) or "").partition("\n")[0],
        "data": list(row.data),
        "options": public,
        "required": list(row.required),
    }


def _metrics(options: argparse.Namespace) -> None:
    described = [_described(row) for row in METRICS.values()]
    if options.json:
        print(json.dumps(described, indent=2))
        return
    for one in described:
        exact = f", for {one['exact_function']}" if one["exact_function"] else ""
        print(f"{one['name']}{exact}\n    {one['summary']}")
        named = [
            f"{name} (required)" if name in one["required"] else f"{name}={default!r}"
            for name, default in one["options"].items()
        ]
        if named:
            print(f"    options: {', '.join(named)}")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "List every metric: its name, the function that it stands for, and its public options."
    )
    add_json(parser)
    parser.set_defaults(run=_metrics)


def _planned(options: argparse.Namespace) -> dict[str, Callable[..., Any]]:
    """Return, of each metric as it was typed, its expected error given n and epsilon."""
    planned, taken = dict[str, Callable[..., Any]](), set[str]()
    hints = keywords(options, "positives", "predicted_positives", "classes", "law")
    for typed in options.metric:
        name, _, guess = typed.partition("=")
        row, fixed = row_of(name)
        try:
            value = float(guess)
        except ValueError:
            raise CommandError(f"--metric takes NAME=GUESS, such as roc_auc=0.8, not {typed!r}") from None
        own = [one for one in options.option if one.partition("=")[0] in row.options]
        hinted = {hint: hints[hint] for hint in hints_of(row)}
        taken |= {*own, *hinted}
        public = {**fixed, **options_of(row, own), **hinted}
        planned[typed] = partial(expected_error, name, guess=value, **public)
    given = {*options.option, *(name for name, hint in hints.items() if hint is not None)}
    if unused := sorted(given - taken):
        raise CommandError(f"none of these metrics takes {' or '.join(unused)}")
    return planned


def _sizes(typed: Sequence[int]) -> list[int]:
    """Return the numbers of records of a table: those that were typed, or of one some about it."""
    if len(typed) > 1:
        return sorted({*typed})
    return [
        n for n in (typed[0] // 4, typed[0] // 2, typed[0], 2 * typed[0], 4 * typed[0]) if 2 <= n <= _MOST
    ]


def _between(told: Any) -> str:
    """Return an expected error, or the range of it."""
    ends = told.mean_absolute_range or (told.mean_absolute,)
    return " to ".join(f"{end:.2g}" for end in ends)


def _show(title: str, corner: str, heads: Sequence[str], rows: Mapping[str, Sequence[Any]]) -> None:
    """Print a table of errors."""
    first = max(map(len, (corner, *rows)))
    print(title)
    for name, cells in {
        corner: heads,
        **{name: [_between(told) for told in row] for name, row in rows.items()},
    }.items():
        print(f"  {name.ljust(first)}  " + "  ".join(cell.rjust(_WIDTH) for cell in cells))
    print()


def _means(rows: Mapping[str, Sequence[Any]]) -> dict[str, list[float]]:
    return {name: [told.mean_absolute for told in row] for name, row in rows.items()}


def _ranges(rows: Mapping[str, Sequence[Any]]) -> dict[str, list[list[float]]]:
    """Return the ranges of errors of the metrics that have some."""
    ranges = {name: [told.mean_absolute_range for told in row] for name, row in rows.items()}
    return {name: [list(one) for one in row] for name, row in ranges.items() if None not in row}


def _plan(options: argparse.Namespace) -> None:
    n, at = options.n[0], (options.epsilon or _EPSILONS)[0]
    epsilons, sizes = sorted({*(options.epsilon or _EPSILONS)}), _sizes(options.n)
    by_epsilon, by_n = dict[str, list[Any]](), dict[str, list[Any]]()
    with mistakes():
        for typed, expected in _planned(options).items():
            by_epsilon[typed] = [expected(n=n, epsilon=epsilon) for epsilon in epsilons]
            by_n[typed] = [expected(n=size, epsilon=at) for size in sizes]
    assumes = {typed: row[0].assumes for typed, row in by_epsilon.items()}
    simulated = [typed for typed, row in by_epsilon.items() if row[0].simulated]
    if options.json:
        print(
            json.dumps(
                {
                    "n": n,
                    "epsilons": epsilons,
                    "errors_by_epsilon": _means(by_epsilon),
                    "ranges_by_epsilon": _ranges(by_epsilon),
                    "epsilon": at,
                    "sizes": sizes,
                    "errors_by_size": _means(by_n),
                    "ranges_by_size": _ranges(by_n),
                    "assumes": assumes,
                    "simulated": simulated,
                },
                indent=2,
            )
        )
        return
    _show(
        f"Mean absolute error by the noise, {n:,} records",
        "epsilon",
        [f"{x:g}" for x in epsilons],
        by_epsilon,
    )
    _show(f"Mean absolute error by the noise, epsilon {at:g}", "records", [f"{x:,}" for x in sizes], by_n)
    print("Assumed; no data were read:")
    for typed, assumed in assumes.items():
        print(f"  {typed}: {assumed}")
    if any(row[0].mean_absolute_range for row in by_epsilon.values()):
        print("\nRanges are from light tails (normal errors) to heavy ones: plan for the larger error.")
    if simulated:
        print(f"\nSimulated, to within 30 %, and not computed: {', '.join(simulated)}")


def _records(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records from 2 to {_MOST:,}")
    return int(text)


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Print what error to expect of private metrics, from rough public guesses and without any data: by "
        "epsilon, and by number of records. The guesses must not come from the private data."
    )
    metric = "a metric and a guess of its value; may be repeated"
    parser.add_argument("--metric", **several(metavar="NAME=GUESS", required=True, help=metric))
    sizes = "numbers of records; the first is that of the table by epsilon"
    parser.add_argument("--n", **several(type=_records, metavar="N", required=True, help=sizes))
    epsilons = "epsilons; the first is that of the table by number of records"
    parser.add_argument("--epsilon", **several(type=epsilon, metavar="E", help=epsilons))
    for name in ("positives", "predicted_positives", "classes"):
        add_option(parser, expected_error, name)
    add_option(parser, expected_error, "law", choices=("normal", "heavy"))
    option = "a public option of the metrics that take it, such as bounds=[0,120]"
    parser.add_argument("--option", **several(metavar="NAME=VALUE", default=[], help=option))
    add_json(parser)
    parser.set_defaults(run=_plan)


def _audit(options: argparse.Namespace) -> None:
    bar = partial(import_extra("tqdm", "cli").tqdm, desc="audit", unit="claim", file=sys.stderr)
    if unknown := [name for name in options.mechanisms if name not in MECHANISMS]:
        raise CommandError(f"unknown mechanism {unknown[0]!r}; there are: {', '.join(MECHANISMS)}")
    findings = run_audit(**keywords(options, "epsilons", "n", "steps", "mechanisms"), progress=bar)
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
        claims = ", ".join(f"{epsilon:g}" for epsilon in options.epsilons)
        print(f"Worst privacy loss found / epsilon, over epsilon = {claims}:\n\n{to_table(findings)}\n")
        print(max(findings, key=lambda finding: finding.result.worst / finding.epsilon).result)
    if not passed:
        raise SystemExit(1)


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Search for the neighbouring data sets on which each metric loses most privacy, with "
        "exact output laws. Prints the worst loss found / epsilon (at most 1 if the claim holds) and the "
        "worst pair; exit code 1 if a claim is refuted. No real data are read."
    )
    claims = {"nargs": "+", "type": epsilon, "required": False, "default": [0.1, 1.0, 4.0]}
    add_option(parser, run_audit, "epsilons", "--epsilon", **claims)
    add_option(parser, run_audit, "mechanisms", "--mechanism", **several(default=[]))
    add_option(parser, run_audit, "n", "--records")
    add_option(parser, run_audit, "steps")
    add_json(parser)
    parser.set_defaults(run=_audit)


_OUTPUT = Path("dp-metrics-output")
_MOST_JOBS = 61 if os.name == "nt" else 1024  # Windows waits for no more processes at once


clear_errors = partial(told_as, CommandError, DatasetError, ResultsError, StudyError)
"""Makes one clear line of what is wrong with data, results or a study."""


def writable_folder(path: Path) -> Path:
    """Make the output folder and prove that files can be made there, before time is spent on training."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise CommandError(f"can't write to the output folder {path}: {error.strerror or error}") from error
    return path


def _add_data_folder(parser: argparse.ArgumentParser) -> None:
    data = f"folder of the data files (default: the variable {DATA_VARIABLE}; without a file, OpenML)"
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=data)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the data of the demonstration."""
    names = f"data sets of the demonstration, of {', '.join(DATASETS)} (default: {' '.join(EMBEDDED)})"
    parser.add_argument("--dataset", **several(), metavar="NAME", help=names)
    _add_data_folder(parser)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 to {_MOST_JOBS}")
    return int(text)


@clear_errors()
def _reproduce(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation.reproduce import reproduce

    if options.report is not None:
        from dp_metrics.evaluation.reproduce import write_report

        print(write_report(options.report))
        return
    output = writable_folder(options.output)
    how = keywords(options, "data_dir", "jobs", "quick")
    for path in reproduce(options.figure, options.dataset, options.mechanism, output=output, **how):
        print(path)
    print(f"for a page with tables: dp-metrics reproduce --report {options.output}", file=sys.stderr)


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
    _add_data_folder(parser)
    output = "folder of results (default: ./%(default)s)"
    parser.add_argument("--output", type=Path, default=_OUTPUT, metavar="DIR", help=output)
    parser.add_argument("--jobs", type=_jobs, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--quick", action="store_true", help="10 repeats, 3 epsilons, the five tables")
    page = "run nothing: write report.html beside these results, results.csv or its folder"
    parser.add_argument("--report", type=Path, metavar="RESULTS", help=page)
    parser.set_defaults(run=_reproduce)


_STUDIED = (0.1, 0.5, 1.0, 2.0)
_PAGE_EPSILON, _NO_NOISE = 2.0, 1e6
_METRICS = {
    "private_mse": "Mean squared error",
    "private_mae": "Mean absolute error",
    "private_variance": "Variance of the target",
    "private_log_loss": "Log loss",
}


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
            "dataset": task.dataset, "metric": f"private_{task.metric}", "mechanism": rival.mechanism,
            "epsilon": epsilon, "n_test": any_row.n, "bounded": bool(any_row.bounded),
            "release": None if row is None else row.release,
            "expected_error": None if row is None else row.expected_error,
            "error_cap": None if any_row.bounded else ERROR_CAP * any_row.true_value,
            "true_value_not_private": any_row.true_value,
            "sampling_error_not_private": any_row.sampling_error,
        }
        for task, epsilon in product(study.tasks, dict.fromkeys(row.epsilon for row in rows))
        for rival in study.rivals
        for row, any_row in [(found.get((task.metric, epsilon, rival.mechanism)), first[task.metric])]
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


@clear_errors()
def demonstrate(options: argparse.Namespace) -> None:
    """Train models of public data, and show what is released of them beside what is true."""
    from dp_metrics.evaluation import reproduce

    datasets = [get_dataset(name) for name in dict.fromkeys(options.dataset or EMBEDDED)]
    epsilons = sorted({float(one) for one in options.epsilon or _STUDIED})
    # Everything that can be wrong is looked at before the first model is trained.
    reproduce.check_extras()
    loaded = [(dataset, load_dataset(dataset.name, options.data_dir)) for dataset in datasets]
    output = writable_folder(options.output or _OUTPUT)
    document: dict[str, Any] = {
        "warning": "fields that end in _not_private, and expected errors: for study on public data only",
        "plots": [],
        "pages": [],
        "rows": [],
    }
    for dataset, data in loaded:
        study, rows, evaluation = reproduce.evaluate(dataset, data, epsilons)
        plot, page = output / f"{dataset.name}.png", output / f"{dataset.name}.html"
        reproduce.draw_evaluation(study, rows, plot)
        page.write_text(_page_beside_the_truth(evaluation), encoding="utf-8")
        document["plots"].append(str(plot))
        document["pages"].append(str(page))
        described = _document(study, rows)
        document["rows"] += described
        if not options.json:
            print(f"{_describe(dataset, described)}\n\nplot written to {plot}", flush=True)
            print(f"page of all of it at epsilon {_PAGE_EPSILON:g} written to {page}\n", flush=True)
    if options.json:
        print(json.dumps(document, indent=2, allow_nan=False), flush=True)


def _page_beside_the_truth(evaluation: Any) -> str:
    """Return a page about a model of public data, with the exact numbers: for study."""
    from dp_metrics.page.contents import sections_of
    from dp_metrics.page.page import document, private_evaluate

    predicted = evaluation.prediction
    options: dict[str, Any] = {"y_pred": predicted, "bounds": evaluation.dataset.bounds, "task": "regression"}
    if evaluation.dataset.task != "regression":
        name, classes = ("y_score", 2) if predicted.ndim == 1 else ("y_proba", predicted.shape[1])
        options = {name: predicted, "labels": range(classes)}
    page = private_evaluate(evaluation.y_test, **options, epsilon=_PAGE_EPSILON)
    split = {part.name: 1 for part in page.plan.parts}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so much epsilon is no privacy: that is the point here
        exact = private_evaluate(evaluation.y_test, **options, epsilon=_NO_NOISE, split=split)
    beside = {name: number.value for name, number in exact.items()}
    return document(page, sections_of(page, beside))
