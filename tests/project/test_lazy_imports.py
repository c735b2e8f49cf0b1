"""Nothing is imported before it is needed, and nobody notices."""

import pickle
import sys

import pytest
from helpers import printed_by

import dp_metrics

HEAVY = {"sklearn", "numpy", "dp_metrics.evaluation", "dp_metrics.metrics"}
WITHOUT_OPTIONAL = """
import sys
class Missing:
    optional = "xgboost pandas matplotlib jinja2 torch dask distributed tqdm pyarrow polars".split()
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.optional:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from dp_metrics import *
assert private_mae([1.0, 2.0], [1.0, 3.0], epsilon=1.0) >= 0
"""


def loaded_by(program):
    """Return the modules that a program loads in a process of its own."""
    told = "\nprint('loaded', *__import__('sys').modules)"
    return {*printed_by(sys.executable, "-c", program + told).splitlines()[-1].split()[1:]}


@pytest.mark.gate
def test_the_package_needs_and_loads_nothing_that_scikit_learn_does_not():
    loaded_by(WITHOUT_OPTIONAL)
    # what else the package takes time for is its own code, the standard library and scikit-learn's
    extra = loaded_by("from dp_metrics import *") - loaded_by("import sklearn.metrics")
    assert {name.partition(".")[0] for name in extra} - {*sys.stdlib_module_names} <= {
        "dp_metrics",
        "lazy_loader",
        "sklearn",
    }


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_line_says_what_it_is_without_the_rest_of_the_package(option):
    program = "import contextlib\nfrom dp_metrics.cli.main import main\nwith contextlib.suppress(SystemExit):"
    assert loaded_by(f"{program}\n    main([{option!r}])").isdisjoint(HEAVY)


def test_a_public_name_is_loaded_when_it_is_used():
    assert loaded_by("import dp_metrics\ndir(dp_metrics)").isdisjoint(HEAVY)
    assert "dp_metrics.metrics" in loaded_by("from dp_metrics import private_mse")


def test_public_names_are_there_in_every_way():
    names = {}
    exec("from dp_metrics import *", names)
    for name in dp_metrics.__all__:
        thing = getattr(dp_metrics, name)
        assert names[name] is thing
        assert pickle.loads(pickle.dumps(thing)) is thing
    assert {*dp_metrics.__all__, "__version__", "exceptions", "mechanisms"} == {*dir(dp_metrics)}
    assert len(dp_metrics.__all__) <= 60
    with pytest.raises(AttributeError, match="private_nothing"):
        _ = dp_metrics.private_nothing
