"""What `help` shows first, and the long names beside the short ones."""

import importlib
import inspect
import pydoc

import pytest
from helpers import loop_over
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics import distributed

PUBLIC = {f"{module.__name__}.{name}": getattr(module, name) for module in (dp, distributed)
          for name in module.__all__}  # fmt: skip
LONG = {
    "private_mse": "private_mean_squared_error",
    "private_rmse": "private_root_mean_squared_error",
    "private_mae": "private_mean_absolute_error",
}


@loop_over("name", PUBLIC)
def test_a_signature_names_types_as_they_are_written(name):
    shown = PUBLIC[name]
    try:
        signature = str(inspect.signature(shown))
    except ValueError:  # an exception's own
        return
    for noise in ("numpy._typing", "Union[", "np.random", "_array_like", "Optional[", "collections.abc"):
        assert noise not in signature
    first = pydoc.render_doc(shown, renderer=pydoc.plaintext).split("\n")[2]
    assert len(first) < 900, first


def test_help_of_an_error_is_readable():
    shown = pydoc.render_doc(dp.private_mse, renderer=pydoc.plaintext)
    # on one line with types in quotes; later versions of Python have a line for each parameter, and no quotes
    first = " ".join(shown[shown.index("private_mse(") : shown.index("Mean squared error")].split())
    first = first.replace("( ", "(").replace("'", "")
    assert first.startswith("private_mse(y_true: ArrayLike, y_pred: ArrayLike, *, epsilon: float, ")
    assert first.endswith(" -> float | Floats")


@pytest.mark.parametrize("module", [dp, distributed], ids=["", "distributed"])
def test_long_names_are_the_same_functions(module):
    for short, long in LONG.items():
        assert getattr(module, long) is getattr(module, short)
        assert {short, long} <= {*module.__all__}


def test_every_metric_has_the_name_of_its_exact_function():
    """The function that stands in for one of scikit-learn goes by its name, after private_."""
    missing = []
    for row in importlib.import_module("dp_metrics.metrics").METRICS.values():
        package, _, name = row.exact_function.rpartition(".")
        if package.startswith("sklearn") and not hasattr(dp, f"private_{name}"):
            missing.append(row.name)
        if package == "sklearn.metrics":
            assert hasattr(sklearn_metrics, name)
    assert missing == []


@pytest.mark.parametrize("long", LONG.values())
def test_a_long_name_serves_wherever_a_metric_is_named(long):
    metric = getattr(dp, long)
    options = {"epsilon": 1.0, "n": 1000, "bounds": (0, 1), "mechanism": "hazard"}
    assert dp.noise_interval(0.25, metric=long, **options) == dp.noise_interval(
        0.25, metric=metric, **options
    )
    dp.make_private_scorer(metric, epsilon=1.0)
