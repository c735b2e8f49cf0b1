"""Imports go strictly downward, and randomness comes from one module only."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from helpers import loop_over

import dp_metrics

PACKAGE = Path(dp_metrics.__file__).parent

BASE = {
    "exceptions",
    "_html",
    "_packages",
    "_random",
    "inputs",
    "sensitivity",
    "mechanisms",
    "accounting",
    "release",
}
# What each folder, or module beside the folders, may import besides itself.
ALLOWED = {
    "exceptions": set(),
    "_html": set(),
    "_packages": set(),
    "_random": {"exceptions"},
    "inputs": {"exceptions"},
    "sensitivity": {"inputs"},
    "mechanisms": {"_random", "inputs", "sensitivity"},
    "accounting": {"exceptions", "_html", "_packages", "inputs"},
    "release": BASE,
    "metrics": BASE,
    "inference": {*BASE, "metrics"},
    "streaming": {*BASE, "metrics"},
    "model_selection": {*BASE, "metrics"},
    "analysis": {
        *BASE,
        "metrics",
        "fairness",
        "inference",
    },  # exact laws: nothing that people call on private data imports them
    "auditing": {"analysis"},
    "fairness": {*BASE, "metrics"},
    "distributed": {"streaming"},
    "page": {*BASE, "metrics", "fairness", "inference", "streaming"},
    "evaluation": {*BASE, "metrics", "streaming", "model_selection", "analysis", "auditing", "__init__"},
    "cli": {
        *BASE,
        "metrics",
        "fairness",
        "inference",
        "streaming",
        "model_selection",
        "analysis",
        "evaluation",
        "page",
        "__init__",
    },  # and nothing imports it
    "__init__": {
        *BASE,
        "metrics",
        "fairness",
        "inference",
        "streaming",
        "model_selection",
        "analysis",
        "page",
    },
}
OPTIONAL = {"xgboost", "pandas", "matplotlib", "jinja2", "torch", "dask", "distributed", "tqdm", "pyarrow"}
MAY_IMPORT_OPTIONAL = {"evaluation", "streaming", "fairness", "page", "cli"}
RANDOM = ("random", "secrets", "numpy.random", "np.random", "os.urandom", "uuid")
MAY_BE_RANDOM = {("_random", name) for name in RANDOM}
# None of these draws a release: accounting names its files, the auditor looks for pairs of data sets to try,
# evaluation makes public data sets.
MAY_BE_RANDOM |= {("accounting", "secrets"), ("analysis", "np.random")}
MAY_BE_RANDOM |= {("evaluation", name) for name in RANDOM}


def imported_names(tree: ast.AST, module: str) -> set[str]:
    """Return the dotted names that a module imports, each as far down as it is spelled."""
    package = module if module.endswith(".__init__") else module.rpartition(".")[0]
    package = package.removesuffix(".__init__")
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, [base, node.module]))
            names |= {f"{source}.{alias.name}" for alias in node.names}
    return names


def layer_of(name: str) -> str:
    """Return the layer of `dp_metrics...`; a public name belongs to the package itself."""
    second = name.split(".")[1] if "." in name else "__init__"
    is_module = second in ALLOWED or (PACKAGE / second).is_dir() or (PACKAGE / f"{second}.py").is_file()
    return second if is_module else "__init__"


def faults(module: str, source: str) -> list[str]:
    """Return what a module, such as `dp_metrics.mechanisms.hazard`, must not contain."""
    tree = ast.parse(source)
    own = module.split(".")[1]
    if own not in ALLOWED:
        return [f"{own} has no place among the layers"]
    found = []
    for name in sorted(imported_names(tree, module)):
        top = name.split(".")[0]
        if top == "dp_metrics":
            target = layer_of(name)
            if target not in ALLOWED:
                found.append(f"{target} has no place among the layers")
            elif target != own and target not in ALLOWED[own]:
                found.append(f"{module} imports {name}, which is not below it")
        if top == "sklearn" and any(part.startswith("_") for part in name.split(".")):
            found.append(f"{module} imports the private {name}")
        if top in OPTIONAL and own not in MAY_IMPORT_OPTIONAL:
            found.append(f"{module} imports the optional {name}")
    spelled = imported_names(tree, module) | {
        ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    for source_of_chance in RANDOM:
        uses = any(f"{name}.".startswith(f"{source_of_chance}.") for name in spelled)
        if uses and (own, source_of_chance) not in MAY_BE_RANDOM:
            found.append(f"{module} uses {source_of_chance}")
    return found


@loop_over("path", sorted(PACKAGE.rglob("*.py")))
def test_imports_go_downward_and_randomness_has_one_source(path):
    module = ".".join(["dp_metrics", *path.relative_to(PACKAGE).with_suffix("").parts])
    assert faults(module, path.read_text(encoding="utf-8")) == []


def modules_imported(path: Path) -> set[Path]:
    """Return the files of the package that a file imports, those of `__init__` left out."""
    module = ".".join(["dp_metrics", *path.relative_to(PACKAGE).with_suffix("").parts])
    found = set()
    for name in imported_names(ast.parse(path.read_text(encoding="utf-8")), module):
        parts = name.split(".")
        for end in (len(parts), len(parts) - 1):
            target = PACKAGE.parent.joinpath(*parts[:end]).with_suffix(".py")
            if parts[0] == "dp_metrics" and target.is_file():
                found.add(target)
    return found


def test_no_file_imports_itself_by_way_of_others():
    graph = {path: modules_imported(path) for path in PACKAGE.rglob("*.py")}
    TopologicalSorter(graph).prepare()  # raises CycleError
    circle = {Path("a"): {Path("b")}, Path("b"): {Path("a")}}
    with pytest.raises(CycleError):
        TopologicalSorter(circle).prepare()


def test_folders_stay_small():
    assert len(list(PACKAGE.glob("*.py"))) <= 7
    assert sum(path.is_file() for path in TESTS.iterdir()) <= 12
    for folder in {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE, PACKAGE / "evaluation"}:
        assert len(list(folder.glob("*.py"))) <= 14


TESTS = Path(__file__).parents[1]


def test_tests_lie_in_the_folders_of_the_package_under_names_of_their_own():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert {path.parent.as_posix() for path in files} == {".", *folders, "benchmarks", "model", "project"}
    assert len({path.name for path in files}) == len(files)  # pytest imports them by these names


def imported_tests(source: str) -> set[str]:
    """Return what a test imports from other tests; `cases` and `helpers` hold what they share."""
    return {name for name in imported_names(ast.parse(source), "test_x") if name.startswith("test_")}


def test_no_test_imports_another_test():
    found = {path.name: imported_tests(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}
    assert imported_tests("import test_common") == {"test_common"}
    assert imported_tests("def f():\n    from test_common import valid") == {"test_common.valid"}


def test_the_guide_for_contributors_shows_every_folder():
    guide = (TESTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^  (\w+)/ ", guide, flags=re.MULTILINE)
    assert sorted(shown) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    for place, name in enumerate(shown):
        assert ALLOWED[name] & {*shown} <= {*shown[: place + 1]}


@loop_over(
    ("module", "source"),
    [
        ("dp_metrics.sensitivity.output_bounds", "import dp_metrics.mechanisms"),
        ("dp_metrics.sensitivity.output_bounds", "from dp_metrics.mechanisms.hazard import Hazard"),
        ("dp_metrics.sensitivity.output_bounds", "from dp_metrics import private_mse"),
        ("dp_metrics.sensitivity.output_bounds", "from .. import mechanisms"),
        ("dp_metrics.mechanisms.hazard", "from ..release import release"),
        ("dp_metrics.mechanisms.__init__", "from ..model_selection.scorers import PrivateScorer"),
        ("dp_metrics.accounting.accountant", "from dp_metrics.mechanisms import Hazard"),
        ("dp_metrics.metrics.regression_errors", "from dp_metrics import private_log_loss"),
        ("dp_metrics.metrics.regression_errors", "from dp_metrics.analysis import auditing"),
        ("dp_metrics.streaming.summaries", "from dp_metrics.analysis.auditing import metric_loss"),
        ("dp_metrics.model_selection.search", "from dp_metrics import auditing"),
        ("dp_metrics.streaming.dask", "from dp_metrics.model_selection.scorers import PrivateScorer"),
        ("dp_metrics.analysis.auditing", "def f():\n    from dp_metrics.evaluation import experiment"),
        ("dp_metrics.evaluation.engine", "from dp_metrics.cli.main import main"),
        ("dp_metrics.metrics.regression_errors", "import dp_metrics.cli"),
        ("dp_metrics.inputs.losses", "import pyarrow"),
        ("dp_metrics.unheard_of", "import numpy"),
        ("dp_metrics.inputs.losses", "from sklearn.utils._param_validation import validate_params"),
        ("dp_metrics.inputs.losses", "from sklearn.metrics import _regression"),
        ("dp_metrics.inputs.losses", "import sklearn.utils._tags"),
        ("dp_metrics.inputs.losses", "import pandas as pd"),
        ("dp_metrics.model_selection.scorers", "from dask import array"),
        ("dp_metrics.mechanisms.hazard", "import numpy as np\nnp.random.default_rng().random()"),
        ("dp_metrics.mechanisms.hazard", "import numpy\nnumpy.random.default_rng()"),
        ("dp_metrics.mechanisms.hazard", "from numpy.random import default_rng"),
        ("dp_metrics.mechanisms.hazard", "from numpy import random"),
        ("dp_metrics.model_selection.search", "import random"),
        ("dp_metrics.model_selection.search", "import secrets"),
        ("dp_metrics.model_selection.search", "import os\nos.urandom(8)"),
        ("dp_metrics.model_selection.search", "from os import urandom"),
    ],
)
def test_each_fault_is_found(module, source):
    assert faults(module, source)


@loop_over(
    ("module", "source"),
    [
        ("dp_metrics.mechanisms.hazard", "from dp_metrics.mechanisms._grid import Runs"),
        ("dp_metrics.mechanisms.hazard", "from ._grid import Runs"),
        ("dp_metrics.metrics.regression_errors", "from dp_metrics.inputs import losses"),
        (
            "dp_metrics.evaluation.plots",
            "import matplotlib.pyplot\nimport numpy as np\nnp.random.default_rng(0)",
        ),
        ("dp_metrics.inputs.losses", "from sklearn.utils import check_array"),
        ("dp_metrics.__init__", "from dp_metrics.metrics.regression_errors import private_mse"),
    ],
)
def test_what_is_allowed_is_not_a_fault(module, source):
    assert faults(module, source) == []


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_loads_no_optional_package():
    # scikit-learn loads some of them itself if they are installed
    added = run_python(
        "import sys, numpy, sklearn.utils; before = set(sys.modules); from dp_metrics import *;"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    ).split()
    assert "dp_metrics" in added
    assert not OPTIONAL & set(added)


def test_the_package_works_without_the_optional_packages():
    program = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(OPTIONAL)}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from dp_metrics import private_mae
print(private_mae([1.0, 2.0], [1.0, 3.0], epsilon=1.0) >= 0)
"""
    assert run_python(program).strip() == "True"
