"""Commands that read nothing: `dp-metrics metrics`, `plan` and `audit`."""

import inspect
import math
import sys
from argparse import Namespace
from functools import partial
from itertools import product

from dp_metrics._packages import import_extra
from dp_metrics.analysis import auditing
from dp_metrics.analysis.planning import plan_release
from dp_metrics.cli import CommandError, Parser
from dp_metrics.cli.show import add_json, say, table
from dp_metrics.cli.words import SEVERAL, add_option, add_options, epsilon, given, metrics_typed
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.release.stored import WEIGHTS

_GOAL_AND_HINTS = ("error", "width", "positives", "predicted_positives", "classes", "law")


def add_metrics(parser: Parser) -> None:
    """List every metric and what it stands for; `score --metric NAME --help` has the options."""
    add_json(parser)


def run_metrics(typed: Namespace) -> None:
    """Print the metrics."""
    described = [
        {
            "name": row.name,
            "exact_function": row.exact_function or None,
            "summary": (inspect.getdoc(row.function) or "").partition("\n")[0],
        }
        for row in METRICS.values()
    ]
    lines = [
        f"{', for '.join(filter(None, (one['name'], one['exact_function'])))}\n    {one['summary']}"
        for one in described
    ]
    say(typed, lambda: described, lines)


# plan


def add_plan(parser: Parser) -> None:
    """Print what error to expect of a private metric, from a rough public guess and without any data.

    For each number of records and each epsilon; with --error or --width, the one of the two that is left out.
    The guess must not come from the private data.

    Options
    -------
    metric
        a metric and a guess of its value
    n
        numbers of records
    epsilon
        epsilons
    """
    own = partial(add_option, parser, add_plan)
    own("metric", metavar="NAME=GUESS", required=True, action="append")
    own("n", **SEVERAL, type=int, metavar="N", default=[])
    own("epsilon", **SEVERAL, type=epsilon, metavar="E", default=[])
    add_options(parser, plan_release, _GOAL_AND_HINTS)
    add_json(parser)
    for row in metrics_typed(parser, "--metric"):
        add_options(parser, row.function, row.options.keys() - {*WEIGHTS} | {"neighboring", "mechanism"})


def run_plan(typed: Namespace) -> None:
    """Print what errors to expect, or what an error or a width takes."""
    if len(typed.metric) > 1:
        raise CommandError("pass one --metric: a plan is of one metric")
    (metric,) = typed.metric
    name, _, guess = metric.partition("=")
    known = {**given(typed, row_of(name)[0].function), **given(typed, plan_release)}
    try:
        known |= {"metric": name, "guess": float(guess)}
    except ValueError:
        raise CommandError(
            f"--metric takes a name and a number, such as {name}=0.8, not {metric!r}"
        ) from None
    asked = product(typed.n or [None], typed.epsilon or [None])
    plans = [plan_release(**known | {"n": n, "epsilon": one}) for n, one in asked]
    rows = [("records", "epsilon", "error", "width")]
    for plan in plans:
        error = " to ".join(f"{end:.2g}" for end in plan.error_range or (plan.error,))
        width = "" if plan.width is None else f"{plan.width:.2g}"
        rows.append((f"{plan.n:,}", f"{plan.epsilon:g}", error, width))
    off_by = math.ceil(100 * max(plan.off_by / plan.error for plan in plans))
    lines = [
        f"{metric}: mean absolute error by the noise, and width of limits among all people",
        table(rows, "  "),
        f"Assumed in the first line, no data were read: {plans[0].assumes}.",
        f"Errors are simulated, off by {off_by} % at most.",
    ]
    if any(plan.error_range for plan in plans):
        lines.append("A range is from light tails (normal errors) to heavy ones: plan for the larger error.")
    say(typed, lambda: {"plans": [{"metric": metric, **vars(plan)} for plan in plans]}, lines)


# audit


def add_audit(parser: Parser) -> None:
    """Search for the neighbouring data sets on which each metric loses most privacy, with exact output laws.

    Prints the worst loss found / epsilon (at most 1 if the claim holds) and the worst pair; exit code 1 if a
    claim is refuted. No real data are read.
    """
    audit, claims = auditing.run_audit, "Claims to check (default: 0.1 1 4)"
    default = {"required": False, "default": [0.1, 1.0, 4.0]}
    add_option(parser, audit, "epsilons", "--epsilon", type=epsilon, help=claims, **default)
    add_options(parser, audit, ("n", "steps", "mechanisms"), mechanisms=["--mechanism"], n=["--records"])
    add_json(parser)


def run_audit(typed: Namespace) -> int:
    """Print what the audit finds; return whether it refutes a claim."""
    bar = partial(import_extra("tqdm", "cli").tqdm, desc="audit", unit="claim", file=sys.stderr, disable=None)
    findings = auditing.run_audit(**given(typed, auditing.run_audit), progress=bar)
    passed = all(result.passed for result in findings.values())
    rows = [
        {
            "metric": metric, "mechanism": mechanism, "epsilon": epsilon,
            "worst_loss": found.worst, "pairs": found.pairs, "passed": found.passed,
        }
        for (metric, mechanism, epsilon), found in findings.items()
    ]  # fmt: skip
    claims = ", ".join(f"{float(one):g}" for one in typed.epsilons)
    lines = [
        f"Worst privacy loss found / epsilon, over epsilon = {claims}:",
        f"\n{auditing.to_table(findings)}\n",
        str(max(findings.values(), key=lambda found: found.share)),
    ]
    say(typed, lambda: {"passed": passed, "findings": rows}, lines)
    return 0 if passed else 1
