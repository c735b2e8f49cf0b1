"""Commands that read nothing: `dp-metrics metrics`, `plan` and `audit`."""

import argparse
import inspect
import json
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from dp_metrics._packages import import_extra
from dp_metrics.analysis import auditing
from dp_metrics.analysis.guesses import MOST_RECORDS, hints_of
from dp_metrics.analysis.planning import ReleasePlan, plan_release
from dp_metrics.cli.show import table
from dp_metrics.cli.words import (
    SEVERAL,
    CommandError,
    add_json,
    add_metric,
    add_option,
    add_options,
    epsilon,
    given,
    mistakes,
    options_of,
    typed_after,
    whole,
)
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.release.stored_questions import WEIGHTS

_GOALS = ("error", "width")
_EPSILONS = (1.0, 0.1, 0.3, 3.0, 10.0)
_HINTS = ("positives", "predicted_positives", "classes", "law")
_Plans: TypeAlias = list[tuple[str, ReleasePlan]]  # with the metric as it was typed
_Tables: TypeAlias = Sequence[tuple[str, Sequence[Sequence[str]]]]  # with their titles


def add_metrics(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """List every metric: its name, the function that it stands for, and its public options."""
    add_json(parser)


def run_metrics(typed: argparse.Namespace) -> None:
    """Print the metrics."""
    described: list[dict[str, Any]] = [
        {
            "name": row.name,
            "exact_function": row.exact_function or None,
            "summary": (inspect.getdoc(row.function) or "").partition("\n")[0],
            "data": list(row.data),
            "options": {name: value for name, value in row.options.items() if name not in WEIGHTS},
            "required": list(row.required),
        }
        for row in METRICS.values()
    ]
    if typed.json:
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


# plan


def add_plan(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Print what error to expect of private metrics, from rough public guesses and without any data.

    By epsilon, and by number of records. With --error or --width, the epsilon or the number of records that
    it takes. The guesses must not come from the private data.

    Options
    -------
    metric
        a metric and a guess of its value; may be repeated
    n
        numbers of records; the first is that of the table by epsilon
    epsilon
        epsilons; the first is that of the table by number of records
    """
    own = partial(add_option, parser, add_plan)
    own("metric", **SEVERAL, metavar="NAME=GUESS", required=True)
    own("n", **SEVERAL, type=partial(whole, least=2, most=MOST_RECORDS), metavar="N")
    own("epsilon", **SEVERAL, type=epsilon, metavar="E")
    add_options(parser, plan_release, (*_GOALS, *_HINTS))
    add_json(parser)
    add_metric(parser, [word.partition("=")[0] for word in typed_after(words, "--metric")])


def run_plan(typed: argparse.Namespace) -> None:
    """Print two tables of errors, or what an error or a width takes."""
    goal = {name: value for name, value in given(typed, plan_release).items() if name in _GOALS}
    with mistakes():
        plans, tables = (_plans_for if goal else _tables_of_errors)(typed, **goal)
    if typed.json:
        print(json.dumps({"plans": [{"metric": word, **vars(plan)} for word, plan in plans]}, indent=2))
        return
    for title, rows in tables:
        print(f"{title}\n{table(rows, '  ')}\n")
    print("Assumed; no data were read:")
    for word in dict(plans):
        print(f"  {word}: {next(plan.assumes for name, plan in plans if name == word)}")
    if any(plan.error_range for _, plan in plans):
        print("\nRanges are from light tails (normal errors) to heavy ones: plan for the larger error.")
    off_by = max(plan.off_by / plan.error for _, plan in plans)
    print(f"\nErrors are simulated: they may be off by {math.ceil(100 * off_by)} % at most.")


def _planned(typed: argparse.Namespace) -> dict[str, Callable[..., ReleasePlan]]:
    """Return, of each metric as it was typed, its plan given all but one of n, epsilon and error or width."""
    planned = dict[str, Callable[..., ReleasePlan]]()
    hints = {name: value for name, value in given(typed, plan_release).items() if name in _HINTS}
    unused = {*hints}
    for word in typed.metric:
        name, _, guess = word.partition("=")
        row, fixed = row_of(name)
        try:
            value = float(guess)
        except ValueError:
            raise CommandError(f"--metric takes NAME=GUESS, such as roc_auc=0.8, not {word!r}") from None
        hinted = {hint: hints[hint] for hint in hints_of(row) if hint in hints}
        unused -= {*hinted}
        options = options_of(typed, row)
        planned[word] = partial(plan_release, name, guess=value, **fixed, **options, **hinted)
    if unused:
        raise CommandError(f"none of these metrics takes {' or '.join(sorted(unused))}")
    return planned


def _plans_for(typed: argparse.Namespace, **goal: float) -> tuple[_Plans, _Tables]:
    """Return the plan of each metric for an error or a width, and a table of them."""
    fixed = {name: getattr(typed, name) for name in ("n", "epsilon")}
    if any(len(values or ()) > 1 for values in fixed.values()):
        raise CommandError("with --error or --width pass one --n or one --epsilon")
    known = {name: values[0] for name, values in fixed.items() if values}
    plans = [(word, of(**known, **goal)) for word, of in _planned(typed).items()]
    rows = [("metric", "records", "epsilon", "error", "width")]
    for word, plan in plans:
        width = "" if plan.width is None else f"{plan.width:.2g}"
        rows.append((word, f"{plan.n:,}", f"{plan.epsilon:g}", _between(plan), width))
    ((what, most),) = goal.items()
    title = f"What an {what if what == 'error' else 'interval with a width'} of at most {most:g} takes"
    return plans, [(title, rows)]


def _tables_of_errors(typed: argparse.Namespace) -> tuple[_Plans, _Tables]:
    """Return the plans of each metric by epsilon and by number of records, and a table of each."""
    if not typed.n:
        raise CommandError("pass --n, a number of records, or --error or --width to get one")
    n, at = typed.n[0], float((typed.epsilon or _EPSILONS)[0])
    epsilons = sorted({*map(float, typed.epsilon or _EPSILONS)})
    about = [n // 4, n // 2, n, 2 * n, 4 * n] if len(typed.n) == 1 else sorted({*typed.n})
    sizes = [size for size in about if 2 <= size <= MOST_RECORDS]
    planned, plans, tables = _planned(typed), [], []
    for title, corner, cells in (
        (f"{n:,} records", "epsilon", {f"{one:g}": {"n": n, "epsilon": one} for one in epsilons}),
        (f"epsilon {at:g}", "records", {f"{size:,}": {"n": size, "epsilon": at} for size in sizes}),
    ):
        rows = [(corner, *cells)]
        for word, of in planned.items():
            row = [of(**cell) for cell in cells.values()]
            plans += [(word, plan) for plan in row]
            rows.append((word, *map(_between, row)))
        tables.append((f"Mean absolute error by the noise, {title}", rows))
    return plans, tables


def _between(plan: ReleasePlan) -> str:
    """Return an expected error, or the range of it."""
    return " to ".join(f"{end:.2g}" for end in plan.error_range or (plan.error,))


# audit


def add_audit(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """Search for the neighbouring data sets on which each metric loses most privacy, with exact output laws.

    Prints the worst loss found / epsilon (at most 1 if the claim holds) and the worst pair; exit code 1 if a
    claim is refuted. No real data are read.
    """
    audit, claims = auditing.run_audit, "Claims to check (default: 0.1 1 4)"
    add_option(parser, audit, "epsilons", "--epsilon", type=epsilon, help=claims)
    add_options(parser, audit, ("n", "steps", "mechanisms"), mechanisms="--mechanism", n="--records")
    add_json(parser)


def run_audit(typed: argparse.Namespace) -> int:
    """Print what the audit finds; return whether it refutes a claim."""
    bar = partial(import_extra("tqdm", "cli").tqdm, desc="audit", unit="claim", file=sys.stderr, disable=None)
    asked = {"epsilons": [0.1, 1.0, 4.0], **given(typed, auditing.run_audit)}
    with mistakes():
        findings = auditing.run_audit(**asked, progress=bar)
    passed = all(result.passed for result in findings.values())
    if typed.json:
        rows = [
            {
                "metric": metric, "mechanism": mechanism, "epsilon": epsilon,
                "worst_loss": found.worst, "pairs": found.pairs, "passed": found.passed,
            }
            for (metric, mechanism, epsilon), found in findings.items()
        ]  # fmt: skip
        print(json.dumps({"passed": passed, "findings": rows}, indent=2))
    else:
        claims = ", ".join(f"{float(one):g}" for one in asked["epsilons"])
        print(f"Worst privacy loss found / epsilon, over epsilon = {claims}:\n")
        print(f"{auditing.to_table(findings)}\n")
        print(max(findings.values(), key=lambda found: found.share))
    return 0 if passed else 1
