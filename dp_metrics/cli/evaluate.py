"""`dp-metrics evaluate`: a model trained on public data, and its private metrics beside the true ones.

xgboost, pandas and matplotlib are imported only once they are needed, so that ``--help`` works, and a missing
extra is one clear line, where they are not installed.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import product
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.cli._common import add_json, epsilon, several
from dp_metrics.cli.experiments import add_folders, clear_errors, writable_folder
from dp_metrics.evaluation.datasets import DATASETS, EMBEDDED, get_dataset, load_dataset
from dp_metrics.evaluation.results import ERROR_CAP, ResultRow
from dp_metrics.evaluation.sources import Dataset
from dp_metrics.evaluation.studies import Study

__all__ = ["add_evaluate"]

_EPSILONS = (0.1, 0.5, 1.0, 2.0)
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
def _evaluate(options: argparse.Namespace) -> None:
    from dp_metrics.evaluation import figures, reproduce

    datasets = [get_dataset(name) for name in dict.fromkeys(options.dataset or EMBEDDED)]
    epsilons = sorted(set(options.epsilon or _EPSILONS))
    # Everything that can be wrong is looked at before the first model is trained.
    reproduce.check_extras()
    loaded = [(dataset, load_dataset(dataset.name, options.data_dir)) for dataset in datasets]
    output = writable_folder(options.output)
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


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Train xgboost on 80 % of a public data set, and release metrics of the rest privately "
        "with every mechanism, beside the exact expected error. Without options: embedded data, no download."
    )
    names = f"data sets, of {', '.join(DATASETS)} (default: {' '.join(EMBEDDED)})"
    parser.add_argument("--dataset", **several(), metavar="NAME", help=names)
    epsilons = f"privacy parameters (default: {' '.join(f'{e:g}' for e in _EPSILONS)})"
    parser.add_argument("--epsilon", **several(), type=epsilon, metavar="E", help=epsilons)
    add_folders(parser, "for the plots, one per data set")
    add_json(parser)
    parser.set_defaults(run=_evaluate)
