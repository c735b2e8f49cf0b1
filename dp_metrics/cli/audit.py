"""`dp-metrics audit`: a search for the worst privacy loss of every public metric."""

import argparse
import json
import sys
from functools import partial
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.analysis.audited import run_audit, to_table
from dp_metrics.cli._common import CommandError, add_json, several
from dp_metrics.mechanisms import MECHANISMS


def _audit(options: argparse.Namespace) -> None:
    bar = partial(import_extra("tqdm", "cli").tqdm, desc="audit", unit="claim", file=sys.stderr)
    if unknown := [name for name in options.mechanism if name not in MECHANISMS]:
        raise CommandError(f"unknown mechanism {unknown[0]!r}; there are: {', '.join(MECHANISMS)}")
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


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Search for the neighbouring data sets on which each metric loses most privacy, with "
        "exact output laws. Prints the worst loss found / epsilon (at most 1 if the claim holds) and the "
        "worst pair; exit code 1 if a claim is refuted. No real data are read."
    )
    claims: dict[str, Any] = {
        "default": [0.1, 1.0, 4.0],
        "metavar": "E",
        "help": "claims to check (default: 0.1 1 4)",
    }
    parser.add_argument("--epsilon", nargs="+", type=float, **claims)
    names = several(metavar="NAME", default=[])
    parser.add_argument("--mechanism", **names, help="mechanisms (default: all)")
    for option, default, text in (
        ("--records", 10, "records of each data set"),
        ("--steps", 100, "steps of hill climbing"),
    ):
        parser.add_argument(
            option, type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    add_json(parser)
    parser.set_defaults(run=_audit)
