"""Type checkers see what each metric returns, and what `with_result` makes of it: never Any."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dp_metrics import distributed
from dp_metrics.metrics import METRICS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 1 has other words for types"
)
OPTIONS = ("--config-file", ROOT / "pyproject.toml", "--disable-error-code", "empty-body")
ARRAY = "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]"  # an array of any shape
CALLS = {
    "dp.private_mse(y, y, epsilon=1.0)": f"float | {ARRAY}",
    "dp.private_variance(y, epsilon=1.0)": "float",
    "dp.with_result(dp.private_mse)(y, y, epsilon=1.0)": f"Result[float | {ARRAY}]",
    "dp.with_result(dp.private_mse)(y, y, epsilon=1.0).value": f"float | {ARRAY}",
    "dp.with_result(distributed.private_log_loss)(y, y, epsilon=1.0)": "Result[float]",
    "dp.with_result(dp.VarianceSummary().release)(1.0, ddof=1)": "Result[float]",
    "dp.with_result(partial(dp.private_mae, y))(y, epsilon=1.0)": f"Result[float | {ARRAY}]",
}
MISTAKES = {
    "dp.with_result(dp.private_log_loss)(y, y)": 'Missing named argument "epsilon"',
    "dp.with_result(dp.private_log_loss)(y, y, epsilon=1.0, eps=1)": 'Unexpected keyword argument "eps"',
}
START = """
from collections.abc import Callable
from functools import partial
from typing import TypeVar
import dp_metrics as dp
from dp_metrics import distributed

T = TypeVar("T")
y = [0.0, 1.0]


def returned(function: Callable[..., T]) -> T: ...


"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Return a function that tells what mypy says of each of some lines."""
    folder = tmp_path_factory.mktemp("types")

    def said(lines):
        (folder / "some.py").write_text(START + "\n".join(lines), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", folder / "cache", folder / "some.py"],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert not done.stderr
        found = re.findall(
            r"some\.py:(\d+): (?:note: Revealed type is \"|error: )(.*?)\"?$", done.stdout, re.M
        )
        first = START.count("\n") + 1
        texts = {
            int(line) - first: text.replace("dp_metrics.release.result.Private", "") for line, text in found
        }
        return [texts[place] for place in range(len(lines))]

    return said


def test_what_calls_return(said):
    lines = [f"reveal_type({call})" for call in CALLS]
    assert dict(zip(CALLS, said(lines), strict=True)) == CALLS
    for found, message in zip(said([*MISTAKES]), MISTAKES.values(), strict=True):
        assert message in found


@pytest.mark.parametrize("module", ["dp", "distributed"])
def test_what_every_metric_returns(said, module):
    names = METRICS if module == "dp" else METRICS.keys() & set(distributed.__all__)
    functions = [f"{module}.{name}" for name in names]
    values = said([f"reveal_type(returned({name}))" for name in functions])
    results = said([f"reveal_type(returned(dp.with_result({name})))" for name in functions])
    assert results == [f"Result[{value}]" for value in values]
    assert not [value for value in values if "Any" in value.replace(ARRAY, "")]
