"""Make the faults that budgets, summaries and workers meet, and print what became of the promises.

Run `python benchmarks/load.py [--only NAME] [--quick]`; it exits with 1 if a promise was broken. As root on
Linux nothing is skipped.

- eight: 8 processes spend from one budget file for 10 minutes, a ninth reads.
- kill: 300 spenders are killed at random moments.
- disk: a file system with no space left, and a limit of the size of files.
- read-only: a file, a folder, a file system that cannot be written.
- clock: the clock jumps by years at each look.
- forged: 100,000 forged summaries are read, merged and released.
- leak: 1,000,000 releases in one process.
- dask: workers are killed in the middle of a release.

What is measured, and what must not be concluded, is on the page docs/audit.rst.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from faults.findings import QUICK, Fault, Size, Skipped, print_findings
from faults.forging import forged
from faults.leaks import leak
from faults.spending import eight, kill
from faults.storage import clock, disk, read_only
from faults.workers import workers

FAULTS: dict[str, Fault] = {
    "eight": eight,
    "kill": kill,
    "disk": disk,
    "read-only": read_only,
    "clock": clock,
    "forged": forged,
    "leak": leak,
    "dask": workers,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the faults and return how many promises were broken, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=FAULTS, help="make one fault")
    parser.add_argument("--quick", action="store_true", help="a few seconds for each")
    options = parser.parse_args(arguments)
    is_broken = False
    for name in [options.only] if options.only else FAULTS:
        start = time.monotonic()
        try:
            findings = FAULTS[name](QUICK if options.quick else Size())
        except Skipped as reason:
            print(f"\n{name}: skipped, {reason}", flush=True)
            continue
        print_findings(f"{name} ({time.monotonic() - start:.0f} s)", findings)
        is_broken |= any(finding.is_kept is False for finding in findings)
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
