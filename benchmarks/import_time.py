"""Print how long `import dp_metrics` and a first call take, over scikit-learn: at most 1.3 is the aim.

Run `python benchmarks/import_time.py`. Each program is timed inside a fresh interpreter, whose start does not
count; the two take turns, and the ratio is that of the medians. Last, the command line, with its interpreter.
"""

import argparse
import statistics
import subprocess
import sys
from time import perf_counter

PAIRS = {
    "import": ("import sklearn.metrics", "import dp_metrics"),
    "import and first call": (
        "from sklearn.metrics import mean_squared_error; mean_squared_error([0.0, 1.0], [1.0, 1.0])",
        "from dp_metrics import private_mse; private_mse([0.0, 1.0], [1.0, 1.0], epsilon=1.0)",
    ),
}
LIMIT = 1.3
COMMANDS = ("--version", "--help")
SECONDS = 0.3


def seconds(code: str) -> float:
    """Return the time that code takes in a fresh interpreter."""
    program = f"from time import perf_counter as now; start = now(); {code}; print(now() - start)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, check=True)
    return float(done.stdout)


def answer(option: str) -> float:
    """Return how long the command line takes to answer."""
    start = perf_counter()
    subprocess.run([sys.executable, "-m", "dp_metrics.cli.main", option], capture_output=True, check=True)
    return perf_counter() - start


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = range(parser.parse_args().repeats)
    for name, pair in PAIRS.items():
        for code in pair:
            seconds(code)  # writes the compiled files
        times = [[seconds(code) for code in pair] for _ in repeats]
        theirs, ours = (1000 * statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name}: scikit-learn {theirs:.0f} ms, dp_metrics {ours:.0f} ms, ", end="")
        print(f"ratio {ours / theirs:.2f} (aim: at most {LIMIT})")
    for option in COMMANDS:
        median = statistics.median(answer(option) for _ in repeats)
        print(f"dp-metrics {option}: {median:.2f} s (aim: at most {SECONDS})")


if __name__ == "__main__":
    main()
