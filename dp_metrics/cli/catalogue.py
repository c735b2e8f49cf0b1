"""`dp-metrics metrics` and `dp-metrics plan`: what can be asked for, and what error to expect of it."""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dp_metrics.cli._common import CommandError, add_json, epsilon, several
from dp_metrics.cli._typed_options import OF_RECORDS, options_of
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


@dataclass(frozen=True)
class _PlannedMetric:
    """A metric as it was typed, with all that is passed to the planner but n and epsilon."""

    typed: str
    name: str
    options: dict[str, Any]

    def expected(self, n: int, epsilon: float) -> Any:
        """Return the expected error of a release."""
        from dp_metrics.analysis.expected_error import expected_error

        return expected_error(self.name, n=n, epsilon=epsilon, **self.options)


def _planned(options: argparse.Namespace) -> list[_PlannedMetric]:
    """Return the metrics to plan for, each with what it takes of what is guessed."""
    from dp_metrics.analysis.guesses import hints_of

    planned, taken = [], set[str]()
    hints = {"positives": options.positives, "classes": options.classes, "law": options.law}
    hints["predicted_positives"] = options.predicted_positives
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
        planned.append(
            _PlannedMetric(typed, name, {**fixed, **options_of(row, own), **hinted, "guess": value})
        )
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
    by_epsilon, by_n, assumes = dict[str, list[Any]](), dict[str, list[Any]](), dict[str, str]()
    simulated = []
    try:
        for one in _planned(options):
            told = [one.expected(n, epsilon) for epsilon in epsilons]
            by_epsilon[one.typed] = told
            by_n[one.typed] = [one.expected(size, at) for size in sizes]
            assumes[one.typed] = told[0].assumes
            simulated += [one.typed] if told[0].simulated else []
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from None
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
    parser.add_argument(
        "--positives", type=float, metavar="SHARE", help="share of label 1 (default: all alike)"
    )
    predicted = "share predicted to have label 1 (default: as many as have it)"
    parser.add_argument("--predicted-positives", type=float, metavar="SHARE", help=predicted)
    parser.add_argument("--classes", type=int, metavar="K", help="number of labels (default: 2)")
    parser.add_argument("--law", choices=("normal", "heavy"), help="law of errors (default: both)")
    option = "a public option of the metrics that take it, such as bounds=[0,120]"
    parser.add_argument("--option", **several(metavar="NAME=VALUE", default=[], help=option))
    add_json(parser)
    parser.set_defaults(run=_plan)
