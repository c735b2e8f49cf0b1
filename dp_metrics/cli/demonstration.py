"""Experiments on public data: `dp-metrics evaluate` without a file, and `dp-metrics reproduce`.

xgboost, pandas and matplotlib are imported only where they are needed, so that ``--help`` works, and a
missing extra is one clear line, where they are not installed.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from dp_metrics.cli import CommandError, Parser
from dp_metrics.cli.show import say, table
from dp_metrics.cli.words import SEVERAL, add_option
from dp_metrics.evaluation import population, reproduce
from dp_metrics.evaluation.datasets import EMBEDDED, Dataset, get_dataset, load_dataset
from dp_metrics.evaluation.engine import ERROR_CAP, ResultRow, Study
from dp_metrics.inputs.options import Floats
from dp_metrics.page.page import private_evaluate

OUTPUT = Path("dp-metrics-output")
_MOST_JOBS = 61 if os.name == "nt" else 1024  # Windows waits for no more processes at once


def writable(path: Path, *, is_folder: bool = False) -> Path:
    """Prove that a file, or a file in a folder, can be written before anything is paid or worked for it."""
    probe = path / ".dp-metrics" if is_folder else path
    try:
        if is_folder:
            path.mkdir(parents=True, exist_ok=True)
        is_new = not probe.exists()
        probe.open("a", encoding="utf-8").close()
        if is_new:  # nothing stays where the page is refused
            probe.unlink()
    except OSError as error:
        what = "the output folder " * is_folder + str(path)
        raise CommandError(f"can't write to {what}: {error.strerror or error}") from error
    return path


def add_data(parser: Parser) -> None:
    """Add the options that name public data.

    Options
    -------
    dataset
        data sets (default: synthetic digits; of `reproduce` the paper's, CIFAR-10 only if torch is
        installed; a wrong name lists them)
    data_dir
        folder of the data files (default: the variable DP_METRICS_DATA; without a file, OpenML)
    """
    add_option(parser, add_data, "dataset", **SEVERAL, metavar="NAME", default=[])
    add_option(parser, add_data, "data_dir", type=Path, metavar="DIR")


_STUDIED = (0.1, 0.5, 1.0, 2.0)
_PAGE_EPSILON = 2.0


def _describe(dataset: Dataset, study: Study, rows: Sequence[ResultRow]) -> str:
    """Write the report of one data set."""
    limit = (
        "no public bounds" if dataset.task == "regression" else "loss bounded by the clipped probabilities"
    )
    if dataset.bounds is not None:
        limit = f"public bounds {dataset.bounds[0]:g} to {dataset.bounds[1]:,.0f}"
    lines = [f"== {dataset.name}: {dataset.task}, {rows[0].n:,} test records, {limit} =="]
    names = [rival.mechanism for rival in study.rivals]
    for metric, some in groupby(rows, attrgetter("metric")):
        released = {(row.epsilon, row.mechanism): row for row in some}
        first = next(iter(released.values()))
        truth, sampling = f"{first.true_value:.6g}", f"{first.sampling_error:.6g}"
        capped = "" if first.bounded else f", errors capped at {ERROR_CAP:g} x the true value"
        cells = [
            (f"{epsilon:g}", *(_released(released.get((epsilon, name))) for name in names))
            for epsilon in dict.fromkeys(epsilon for epsilon, _ in released)
        ]
        lines += [
            f"\nprivate_{metric}",
            f"  true value               {truth}  (NOT private, for study)",
            f"  sampling standard error  {sampling}  (the error it has anyway; NOT private)",
            f"  private releases, in brackets the exact expected absolute error{capped}:",
            table([("epsilon", *names), *cells], indent="  "),
        ]
    return "\n".join(lines)


def _released(row: ResultRow | None) -> str:
    return "needs bounds" if row is None else f"{row.release:.6g} ({row.expected_error:.2g})"


def demonstrate(options: Namespace) -> None:
    """Train models of public data, and show what is released of them beside what is true."""
    datasets = [get_dataset(name) for name in dict.fromkeys(options.dataset or EMBEDDED)]
    epsilons = sorted({float(one) for one in options.epsilon or _STUDIED})
    # Everything that can be wrong is looked at before the first model is trained.
    reproduce.check_extras()
    loaded = [(dataset, load_dataset(dataset.name, options.data_dir)) for dataset in datasets]
    output = writable(options.output or OUTPUT, is_folder=True)
    document: dict[str, Any] = {
        "warning": "not private, for study on public data: true_value, sampling_error, errors and overshoot",
        "plots": [],
        "pages": [],
        "rows": [],
    }
    for dataset, data in loaded:
        target, prediction = population.evaluate_model(dataset, *data)
        study, rows = reproduce.evaluate(dataset, target, prediction, epsilons)
        plot, page = output / f"{dataset.name}.png", output / f"{dataset.name}.html"
        reproduce.draw_evaluation(study, rows, plot)
        private_evaluate(target, **_options_of_page(dataset, prediction), epsilon=_PAGE_EPSILON).to_html(page)
        document["plots"].append(str(plot))
        document["pages"].append(str(page))
        document["rows"] += (row._asdict() for row in rows)
        if not options.json:
            print(f"{_describe(dataset, study, rows)}\n\nplot written to {plot}", flush=True)
            print(f"page of all of it at epsilon {_PAGE_EPSILON:g} written to {page}\n", flush=True)
    say(options, lambda: document, [])


def _options_of_page(dataset: Dataset, prediction: Floats) -> dict[str, Any]:
    """Return what a page is told of a model's predictions besides the targets."""
    if dataset.task == "regression":
        return {"y_pred": prediction, "bounds": dataset.bounds, "task": "regression"}
    name, classes = ("y_score", 2) if prediction.ndim == 1 else ("y_proba", prediction.shape[1])
    return {name: prediction, "labels": range(classes)}


def add_reproduce(parser: Parser) -> None:
    """Run the experiments of Durfee, arXiv 2311.14681, on public data, and draw a figure of each.

    Every release is a line of results.csv in the output folder; a run that was stopped goes on from there.
    Releases are seeded, so that runs can be repeated: a study on public data, never a way to publish.

    Options
    -------
    figure
        figures (default: all; a wrong name lists them)
    mechanism
        mechanisms (default: all)
    output
        folder of results (default: ./dp-metrics-output)
    jobs
        processes (default: 1)
    quick
        10 repeats, 3 epsilons, the five tables
    report
        run nothing: write report.html beside these results, results.csv or its folder
    """
    own = partial(add_option, parser, add_reproduce)
    for name in ("figure", "mechanism"):
        own(name, **SEVERAL, metavar="NAME", default=[])
    add_data(parser)
    own("output", type=Path, default=OUTPUT, metavar="DIR")
    own("jobs", type=int, default=1, metavar="N")
    own("quick", action="store_true")
    own("report", type=Path, metavar="RESULTS")


def run_reproduce(typed: Namespace) -> None:
    """Run experiments and draw figures, or write a page about them."""
    if typed.report is not None:
        print(reproduce.write_report(typed.report))
        return
    if not 1 <= typed.jobs <= _MOST_JOBS:
        raise CommandError(f"--jobs {typed.jobs} is not a whole number from 1 to {_MOST_JOBS:,}")
    output = writable(typed.output, is_folder=True)
    how = {"data_dir": typed.data_dir, "jobs": typed.jobs, "quick": typed.quick}
    for path in reproduce.reproduce(typed.figure, typed.dataset, typed.mechanism, output=output, **how):
        print(path)
    print(f"for a page with tables: dp-metrics reproduce --report {typed.output}", file=sys.stderr)
