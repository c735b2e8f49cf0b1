"""Imports go strictly downward, randomness comes from one module, and one place chooses by type."""

import ast
import re
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from helpers import loop_over

import dp_metrics
from dp_metrics.mechanisms import Mechanism
from dp_metrics.quantities.base import Noise, Quantity

PACKAGE = Path(dp_metrics.__file__).parent

BASE = ("exceptions", "_packages", "_random", "inputs", "sensitivity", "mechanisms", "accounting")
BASE = {*BASE, "quantities", "release"}
ABOVE = {*BASE, "metrics"}
# What each folder, or module beside the folders, may import besides itself.
ALLOWED = {
    "exceptions": set(),
    "_packages": set(),
    "_random": {"exceptions"},
    "inputs": {"exceptions"},
    "sensitivity": {"inputs"},
    "mechanisms": {"_random", "inputs", "sensitivity"},
    "accounting": {"exceptions", "_packages", "inputs"},
    "quantities": {"_random", "inputs", "sensitivity", "mechanisms"},
    "release": BASE,
    "metrics": BASE,
    "inference": ABOVE,
    "model_selection": ABOVE,
    # exact laws: nothing that people call on private data imports them
    "analysis": {*ABOVE, "fairness", "inference"},
    "fairness": ABOVE,
    "page": {*ABOVE, "fairness", "inference"},
    "evaluation": {*ABOVE, "model_selection", "analysis", "__init__"},
}
ALLOWED["__init__"] = {*ABOVE, "fairness", "inference", "model_selection", "analysis", "page"}
ALLOWED["cli"] = {*ALLOWED["__init__"], "evaluation", "__init__"}  # and nothing imports it
OPTIONAL = {"xgboost", "pandas", "matplotlib", "jinja2", "torch", "dask", "distributed", "tqdm", "pyarrow"}
MAY_IMPORT_OPTIONAL = {"evaluation", "metrics", "fairness", "page", "cli"}
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


@pytest.mark.gate
@loop_over("path", sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]))
def test_imports_go_downward_and_randomness_has_one_source(path):
    module = ".".join(["dp_metrics", *path.relative_to(PACKAGE).with_suffix("").parts])
    assert faults(module, path.read_text(encoding="utf-8")) == []


def below(kind: type) -> set[str]:
    """Return the names of a class and of all that are derived from it."""
    return {kind.__name__}.union(*map(below, kind.__subclasses__()))


def test_only_noise_of_and_quantities_choose_by_type():
    import_module("dp_metrics.analysis.auditing")  # with all that is released
    kinds = below(Quantity) | below(Noise) | below(Mechanism) | {"NoisyNumber", "NoisyCounts"}
    assert {"TableOf", "MeanOf", "TwoStages", "Hazard"} <= kinds
    asked = [
        (path.name, ast.unparse(node))
        for room in ("release", "metrics", "fairness", "page")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        if kinds.intersection(re.findall(r"\w+", ast.unparse(node.args[1])))
    ]
    assert asked == []


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


def test_the_guide_for_contributors_shows_every_folder():
    guide = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^  (\w+)/ ", guide, flags=re.MULTILINE)
    assert sorted(shown) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    for place, name in enumerate(shown):
        assert ALLOWED[name] & {*shown} <= {*shown[: place + 1]}


OUTPUT_BOUNDS, HAZARD = "dp_metrics.sensitivity.output_bounds", "dp_metrics.mechanisms.hazard"
LOSSES, SEARCH = "dp_metrics.inputs.losses", "dp_metrics.model_selection.search"
FAULTS = [
    (OUTPUT_BOUNDS, "import dp_metrics.mechanisms"),
    (OUTPUT_BOUNDS, "from dp_metrics import private_mse"),
    (OUTPUT_BOUNDS, "from .. import mechanisms"),
    ("dp_metrics.mechanisms.__init__", "from ..model_selection.scorers import PrivateScorer"),
    ("dp_metrics.analysis.auditing", "def f():\n    from dp_metrics.evaluation import experiment"),
    ("dp_metrics.unheard_of", "import numpy"),
    (LOSSES, "from sklearn.metrics import _regression"),
    (LOSSES, "import pandas as pd"),
    (HAZARD, "import numpy as np\nnp.random.default_rng().random()"),
    (HAZARD, "from numpy import random"),
    (SEARCH, "import secrets"),
    (SEARCH, "from os import urandom"),
]
NO_FAULTS = [
    (HAZARD, "from ._grid import Grid"),
    (LOSSES, "from sklearn.utils import check_array"),
    ("dp_metrics.evaluation.plots", "import matplotlib.pyplot, numpy as np\nnp.random.default_rng(0)"),
    ("dp_metrics.__init__", "from dp_metrics.metrics.regression import private_mse"),
]


def test_each_fault_is_found_and_nothing_else():
    assert [pair for pair in FAULTS if not faults(*pair)] == []
    assert [pair for pair in NO_FAULTS if faults(*pair)] == []
