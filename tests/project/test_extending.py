"""The worked examples of the guide for contributors: a metric in a copy of the project, and a mechanism."""

import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import printed_by

from dp_metrics import PrivacyAccountant, private_mae
from dp_metrics.mechanisms import OutputLaw

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)

# --- a metric --------------------------------------------------------------------------------

COPIED = ("dp_metrics", "tests", "docs", "proofs", "benchmarks", "pyproject.toml", "conftest.py")
COPIED += ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PLACES = {
    "CHANGELOG.md",
    "dp_metrics/__init__.pyi",
    "dp_metrics/metrics/regression.py",
    "tests/cases.py",
}


def block_of(file):
    """Return the code of the guide for a file, without the comment that names the file."""
    (block,) = [block for block in BLOCKS if f" {file}" in block.split("\n")[0]]
    return block.split("\n", 1)[1]


METRIC = block_of("dp_metrics/metrics/regression.py")
CASE = block_of("tests/cases.py")


def insert(path, after, text):
    """Insert text behind the one place where a file says this."""
    source = path.read_text(encoding="utf-8")
    assert source.count(after) == 1
    path.write_text(source.replace(after, after + text), encoding="utf-8")


def add_huber_loss(folder):
    """Add the metric of the guide to a copy of the project, at the places that the guide names."""
    metrics, names = (folder / "dp_metrics" / name for name in ("metrics/regression.py", "__init__.pyi"))
    metrics.write_text(f"{metrics.read_text('utf-8')}\n\n{METRIC.strip()}\n", encoding="utf-8")
    insert(
        names,
        "from .metrics.regression import (\n",
        "    private_huber_loss as private_huber_loss,\n",
    )
    insert(folder / "tests" / "cases.py", "CASES = {\n", CASE)
    insert(
        folder / "CHANGELOG.md",
        "errors and losses need no bounds on the data.\n\n",
        "- `private_huber_loss`.\n",
    )


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.mark.slow
def test_a_new_loss_touches_two_places_and_two_lists(tmp_path):
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    before = contents(tmp_path)
    add_huber_loss(tmp_path)

    def changed():
        return {path for path, content in contents(tmp_path).items() if content != before.get(path)}

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return printed_by(sys.executable, "-B", *arguments, cwd=tmp_path, env=environment)

    assert changed() == PLACES
    run("-m", "ruff", "check", "dp_metrics", "tests")
    run("-m", "ruff", "format", "--check", "dp_metrics", "tests")
    pytest_of = partial(run, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-m", "")
    # the benchmarks are not copied, and that of timing has a table of its own
    passed = pytest_of("-k", "huber or (every_metric and not in_one_table)")
    passed = int(re.search(r"^(\d+) passed", passed, re.MULTILINE)[1])
    # as often as another one that takes the same options, but for what only scikit-learn's can tell
    both = "(huber or pinball) and not (each_of_its_options or scikit_learn_refuses)"
    found = [
        line
        for line in pytest_of("--collect-only", "tests/test_matrix.py", "-k", both).splitlines()
        if "::" in line
    ]
    of_new, of_other = (sum(name in line for line in found) for name in ("huber", "pinball"))
    assert passed > of_new == of_other > 0
    pytest_of("--doctest-modules", "-k", "huber", "dp_metrics/metrics")


# --- a mechanism -----------------------------------------------------------------------------

START = """
import math
from dataclasses import dataclass
import numpy as np
from helpers import loss_bounds, neighbour_pairs
from dp_metrics.analysis import auditing
from dp_metrics.mechanisms._base import Mechanism, ceil_ranks, require_bounded
"""


@dataclass(frozen=True)
class FiniteLaw(OutputLaw):
    """The law on finitely many increasing outputs."""

    outputs: np.ndarray
    probabilities: np.ndarray

    def cdf(self, t):
        """Return P(release <= t)."""
        below = np.append(0.0, np.cumsum(self.probabilities))
        return below[np.searchsorted(self.outputs, t, side="right")]

    def quantile(self, p):
        """Return the smallest t with P(release <= t) >= p."""
        found = np.searchsorted(np.cumsum(self.probabilities), p)
        return self.outputs[np.minimum(found, self.outputs.size - 1)]


MECHANISM, PROOF = (block for block in BLOCKS if "EvenlySpaced" in block)
GUIDE = {"__name__": __name__, "FiniteLaw": FiniteLaw}
exec(START + MECHANISM + PROOF, GUIDE)
EvenlySpaced, losses_of_all_neighbours = GUIDE["EvenlySpaced"], GUIDE["losses_of_all_neighbours"]
test_evenly_spaced_outputs_are_private = GUIDE["test_evenly_spaced_outputs_are_private"]


def test_metrics_take_the_new_mechanism():
    accountant = PrivacyAccountant(1.0)
    released = private_mae(
        [3.0, 1.0], [2.0, 1.0], epsilon=1.0, bounds=(0, 4), mechanism=EvenlySpaced(), accountant=accountant
    )
    assert released in np.linspace(0, 4, 201)
    assert accountant.remaining == 0
    with pytest.raises(ValueError, match="evenly_spaced"):
        private_mae([3.0], [2.0], epsilon=1.0, mechanism=EvenlySpaced())


def test_a_mechanism_that_forgets_the_sum_of_the_weights_is_caught():
    class Forgetful(EvenlySpaced):
        def output_distribution(self, output_bounds, epsilon):
            return super().output_distribution(output_bounds, 2 * epsilon)

    assert max(losses_of_all_neighbours(Forgetful(), 1.0)) > 1.0


def test_what_else_is_python_in_the_guide_stands_in_the_package():
    quoted = [block.split("\n", 1) for block in BLOCKS if block not in (MECHANISM, PROOF)]
    quoted = [(head, code) for head, code in quoted if code not in (METRIC, CASE)]
    assert len(quoted) == 1
    for head, code in quoted:
        assert code.strip() in (ROOT / re.search(r"dp_metrics/[\w/]+\.py", head)[0]).read_text("utf-8")
