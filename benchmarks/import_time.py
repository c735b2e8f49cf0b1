"""Print how long `import dp_metrics` takes, over `import sklearn.metrics`: at most 1.3 is the aim.

Run `python benchmarks/import_time.py`. Each import is timed inside a fresh interpreter, whose start does not
count; the two take turns, and the ratio is that of the medians.
"""

import argparse
import statistics
import subprocess
import sys

MODULES = ("sklearn.metrics", "dp_metrics")
LIMIT = 1.3


def seconds(module: str) -> float:
    """Return the time of one import in a fresh interpreter."""
    program = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    for module in MODULES:
        seconds(module)  # writes the compiled files
    times = [[seconds(module) for module in MODULES] for _ in range(arguments.repeats)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    for module, median in zip(MODULES, medians, strict=True):
        print(f"import {module:<16} {1000 * median:6.0f} ms")
    print(f"ratio {medians[1] / medians[0]:.2f} (aim: at most {LIMIT})")


if __name__ == "__main__":
    main()
