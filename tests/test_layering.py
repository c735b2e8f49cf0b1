"""Imports go strictly downward, and randomness comes from one module only."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dp_metrics

PACKAGE = Path(dp_metrics.__file__).parent

# Lowest first; modules of one layer know nothing of each other.
LAYERS = [
    {"exceptions"},
    {"_random"},
    {"_exact"},
    {"_validation", "_docs"},
    {"_options"},
    {"losses"},
    {"_aggregates"},
    {"_windows"},
    {"bounds"},
    {"mechanisms"},
    {"_ledgers"},
    {"accounting"},
    {"_queries", "_typing"},
    {"_release"},
    {"_targets", "error_planning"},
    {"regression", "regression_losses", "classification", "statistics"},
    {"_summary_format"},
    {"reports", "summaries"},
    {"_metric_facts"},
    {"scorers"},
    {"_trials"},
    {"selection"},
    {"planning"},
    {"distributed"},
    {"_audit_laws"},
    {"auditing"},
    {"evaluation"},
    {"__init__"},
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
OPTIONAL = {"xgboost", "pandas", "matplotlib", "torch", "dask", "distributed", "tqdm"}
MAY_IMPORT_OPTIONAL = {"evaluation", "distributed"}
RANDOM = ("random", "secrets", "numpy.random", "np.random", "os.urandom", "uuid")
MAY_BE_RANDOM = {("_random", name) for name in RANDOM}
# None of these draws a release: _ledgers names its files, auditing looks for pairs of data sets to try,
# evaluation makes public data sets.
MAY_BE_RANDOM |= {("_ledgers", "secrets"), ("auditing", "np.random")}
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
    is_module = second in LEVEL or (PACKAGE / second).is_dir() or (PACKAGE / f"{second}.py").is_file()
    return second if is_module else "__init__"


def faults(module: str, source: str) -> list[str]:
    """Return what a module, such as `dp_metrics.mechanisms.hazard`, must not contain."""
    tree = ast.parse(source)
    own = module.split(".")[1]
    if own not in LEVEL:
        return [f"{own} has no place among the layers"]
    found = []
    for name in sorted(imported_names(tree, module)):
        top = name.split(".")[0]
        if top == "dp_metrics":
            target = layer_of(name)
            if target not in LEVEL:
                found.append(f"{target} has no place among the layers")
            elif target != own and LEVEL[target] >= LEVEL[own]:
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


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_go_downward_and_randomness_has_one_source(path):
    module = ".".join(["dp_metrics", *path.relative_to(PACKAGE).with_suffix("").parts])
    assert faults(module, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dp_metrics.bounds", "import dp_metrics.mechanisms"),
        ("dp_metrics.bounds", "from dp_metrics.mechanisms.hazard import Hazard"),
        ("dp_metrics.bounds", "from dp_metrics import regression"),
        ("dp_metrics.bounds", "from . import mechanisms"),
        ("dp_metrics.mechanisms.hazard", "from .. import _release"),
        ("dp_metrics.mechanisms.__init__", "from ..scorers import PrivateScorer"),
        ("dp_metrics.regression", "from dp_metrics.classification import private_log_loss"),
        ("dp_metrics.regression", "from dp_metrics import private_log_loss"),
        ("dp_metrics.auditing", "def f():\n    from dp_metrics.evaluation import experiment"),
        ("dp_metrics.unheard_of", "import numpy"),
        ("dp_metrics.losses", "from sklearn.utils._param_validation import validate_params"),
        ("dp_metrics.losses", "from sklearn.metrics import _regression"),
        ("dp_metrics.losses", "import sklearn.utils._tags"),
        ("dp_metrics.losses", "import pandas as pd"),
        ("dp_metrics.scorers", "from dask import array"),
        ("dp_metrics.mechanisms.hazard", "import numpy as np\nnp.random.default_rng().random()"),
        ("dp_metrics.mechanisms.hazard", "import numpy\nnumpy.random.default_rng()"),
        ("dp_metrics.mechanisms.hazard", "from numpy.random import default_rng"),
        ("dp_metrics.mechanisms.hazard", "from numpy import random"),
        ("dp_metrics.selection", "import random"),
        ("dp_metrics.selection", "import secrets"),
        ("dp_metrics.selection", "import os\nos.urandom(8)"),
        ("dp_metrics.selection", "from os import urandom"),
    ],
)
def test_each_fault_is_found(module, source):
    assert faults(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dp_metrics.mechanisms.hazard", "from dp_metrics.mechanisms._grid import Runs"),
        ("dp_metrics.mechanisms.hazard", "from ._grid import Runs"),
        ("dp_metrics.regression", "from dp_metrics import losses"),
        (
            "dp_metrics.evaluation.plots",
            "import matplotlib.pyplot\nimport numpy as np\nnp.random.default_rng(0)",
        ),
        ("dp_metrics.losses", "from sklearn.utils import check_array"),
        ("dp_metrics.__init__", "from dp_metrics.regression import private_mse"),
    ],
)
def test_what_is_allowed_is_not_a_fault(module, source):
    assert faults(module, source) == []


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_loads_no_optional_package():
    # scikit-learn loads some of them itself if they are installed
    added = run_python(
        "import sys, numpy, sklearn.utils; before = set(sys.modules); import dp_metrics;"
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
