"""Commands that read nothing: `dp-metrics metrics`, `plan` and `audit`."""

import argparse
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.analysis import auditing
from dp_metrics.analysis.guesses import MOST_RECORDS, hints_of
from dp_metrics.analysis.planning import ReleasePlan, plan_release
from dp_metrics.cli import CommandError
from dp_metrics.cli.show import add_json, say, table
from dp_metrics.cli.words import SEVERAL, add_option, add_options, epsilon, given, metrics_typed
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.release.stored import WEIGHTS

_GOALS = ("error", "width")
_EPSILONS = (1.0, 0.1, 0.3, 3.0, 10.0)
_HINTS = ("positives", "predicted_positives", "classes", "law")


def add_metrics(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """List every metric and what it stands for; `score --metric NAME --help` has the options."""
    add_json(parser)


def run_metrics(typed: argparse.Namespace) -> None:
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
    own("n", **SEVERAL, type=int, metavar="N")
    own("epsilon", **SEVERAL, type=epsilon, metavar="E")
    add_options(parser, plan_release, (*_GOALS, *_HINTS))
    add_json(parser)
    for row in metrics_typed(words, "--metric"):
        add_options(parser, row.function, row.options.keys() - {*WEIGHTS} | {"neighboring", "mechanism"})


def run_plan(typed: argparse.Namespace) -> None:
    """Print what errors to expect, or what an error or a width takes."""
    known = given(typed, plan_release)
    goal = {name: known[name] for name in _GOALS if name in known}
    planned = _planned(typed, {name: known[name] for name in _HINTS if name in known})
    cells = _asked(typed, goal)
    plans = [(word, of(**one, **goal)) for word, of in planned.items() for one in cells]
    rows = {("metric", "records", "epsilon", "error", "width"): None}  # the two tables have one cell both
    for word, plan in plans:
        error = " to ".join(f"{end:.2g}" for end in plan.error_range or (plan.error,))
        width = "" if plan.width is None else f"{plan.width:.2g}"
        rows[word, f"{plan.n:,}", f"{plan.epsilon:g}", error, width] = None
    wanted = "".join(f", for {name} at most {most:g}" for name, most in goal.items())
    lines = [f"Mean absolute error by the noise, and width of limits among all people{wanted}"]
    lines += [table([*rows], "  "), "", "Assumed; no data were read:"]
    for word in planned:
        lines.append(f"  {word}: {next(plan.assumes for name, plan in plans if name == word)}")
    if any(plan.error_range for _, plan in plans):
        lines += ["", "Ranges are from light tails (normal errors) to heavy ones: plan for the larger error."]
    off_by = max(plan.off_by / plan.error for _, plan in plans)
    lines += ["", f"Errors are simulated: they may be off by {math.ceil(100 * off_by)} % at most."]
    say(typed, lambda: {"plans": [{"metric": word, **vars(plan)} for word, plan in plans]}, lines)


def _asked(typed: argparse.Namespace, goal: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return for which records and epsilons to plan: by epsilon, and then by number of records."""
    if goal:
        if max(len(typed.n or ()), len(typed.epsilon or ())) > 1:
            raise CommandError("with --error or --width pass one --n or one --epsilon")
        return [{name: vars(typed)[name][0] for name in ("n", "epsilon") if vars(typed)[name]}]
    if not typed.n:
        raise CommandError("pass --n, a number of records, or --error or --width to get one")
    n, epsilons = typed.n[0], typed.epsilon or _EPSILONS
    about = [size for size in (n // 4, n // 2, n, 2 * n, 4 * n) if 2 <= size <= MOST_RECORDS]
    by_epsilon = [{"n": n, "epsilon": one} for one in sorted({*map(float, epsilons)})]
    sizes = about if len(typed.n) == 1 else sorted({*typed.n})
    return [*by_epsilon, *({"n": size, "epsilon": float(epsilons[0])} for size in sizes)]


def _planned(typed: argparse.Namespace, hints: Mapping[str, Any]) -> dict[str, Callable[..., ReleasePlan]]:
    """Return, of each metric as it was typed, its plan given all but one of n, epsilon and error or width."""
    planned = dict[str, Callable[..., ReleasePlan]]()
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
        options = {**fixed, **given(typed, row.function), **hinted}
        planned[word] = partial(plan_release, name, guess=value, **options)
    if unused:
        raise CommandError(f"none of these metrics takes {' or '.join(sorted(unused))}")
    return planned


# audit


def add_audit(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """Search for the neighbouring data sets on which each metric loses most privacy, with exact output laws.

    Prints the worst loss found / epsilon (at most 1 if the claim holds) and the worst pair; exit code 1 if a
    claim is refuted. No real data are read.
    """
    audit, claims = auditing.run_audit, "Claims to check (default: 0.1 1 4)"
    default: dict[str, Any] = {"required": False, "default": [0.1, 1.0, 4.0]}
    add_option(parser, audit, "epsilons", "--epsilon", type=epsilon, help=claims, **default)
    add_options(parser, audit, ("n", "steps", "mechanisms"), mechanisms=["--mechanism"], n=["--records"])
    add_json(parser)


def run_audit(typed: argparse.Namespace) -> int:
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
