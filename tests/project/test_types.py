"""Type checkers see what each metric and `with_result` return, never Any, and public from private."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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
    "dp.with_result(dp.private_log_loss)(y, y, epsilon=1.0)": "Result[float]",
    "dp.with_result(dp.Summary('mse').release)(1.0)": "Result[Any]",
    "dp.with_result(partial(dp.private_mae, y))(y, epsilon=1.0)": f"Result[float | {ARRAY}]",
}
MISTAKES = {
    "dp.with_result(dp.private_log_loss)(y, y)": 'Missing named argument "epsilon"',
    "dp.with_result(dp.private_log_loss)(y, y, epsilon=1.0, eps=1)": 'Unexpected keyword argument "eps"',
    "dp.private_mse(y, y, epsilon=1.0, neighbouring='replace_one')": 'argument "neighbouring"',
    "dp.private_recall_score(y, y, epsilon=1.0, mechanism='hazard')": 'argument "mechanism"',
    "dp.private_quantile(y, 0.5, epsilon=1.0, bounds=(0, 1), neighboring='replace_one')": '"neighboring"',
    "dp.private_mae(y, y, epsilon=1.0, mechanism=3)": 'expected "str | Mechanism"',
    "dp.private_f1_score(y, y, epsilon=1.0, sample_weight=y)": 'expected "None"',
}
START = """
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeVar
import dp_metrics as dp
from dp_metrics.inputs.arrays import Records, Shape
from dp_metrics.mechanisms import Hazard
from dp_metrics.metrics import METRICS
from dp_metrics.quantities.base import Noise, NoisyNumber, OneStage, Output, Quantity, Totals
from dp_metrics.quantities.base import noise_of, rehearse_law
from dp_metrics.quantities.mean import MeanOf, MeanStats
from dp_metrics.release.query import Query, Share, Source, Terms, Together
from dp_metrics.release.release import PreparedQuery, prepare_all
from dp_metrics.release.result import Result

from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds
rule = Hazard()
one = Fraction(1)
of_all: list[Totals]
all_stats: list[MeanStats]
all_outputs: list[Output]
noises: list[Noise]

T = TypeVar("T")
y = [0.0, 1.0]


def returned(function: Callable[..., T]) -> T: ...


"""
PUBLIC = {
    "shape": "Shape", "query": "Query", "quantity": "Quantity", "mean_of": "MeanOf", "totals": "Totals",
    "noise": "OneStage", "output": "Output", "terms": "Terms", "facts": "BoundsFacts",
}  # fmt: skip
IN_PRIVATE = {
    "records": "Records", "source": "Source", "stats": "MeanStats", "bounds": "OutputBounds",
    "prepared": "PreparedQuery",
}  # fmt: skip
CALLS_OF_TWO_KINDS = [
    # what is public, and in its place what is private
    ("METRICS['private_mse'].planned({}, dict())", "shape", "records"),
    ("prepare_all('', terms, {}, source)", "query", "source"),
    ("Query(({},), lambda records: records)", "quantity", "stats"),
    ("noise_of(rule, {}, totals, None, one)", "quantity", "stats"),
    ("noise_of(rule, quantity, {}, None, one)", "totals", "stats"),
    ("query.noises({}, of_all)", "terms", "source"),
    ("query.noises(terms, {})", "of_all", "all_stats"),
    ("rehearse_law(rule, one, {})", "facts", "bounds"),
    ("NoisyNumber(noise, {})", "output", "stats"),
    ("query.result('', terms, {}, None, noises, all_outputs)", "of_all", "all_stats"),
    ("query.result('', terms, of_all, None, noises, {})", "all_outputs", "all_stats"),
    # what is private, and in its place what is public
    ("query.read({})", "records", "shape"),
    ("quantity.totals({})", "records", "shape"),
    ("prepare_all('', terms, query, {})", "source", "query"),
    ("rule.release({}, 1.0)", "bounds", "facts"),
]


def said(lines, folder):
    """Return what mypy says of each of some lines, if anything."""
    (folder / "some.py").write_text(START + "\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", folder / "cache", folder / "some.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert not done.stderr
    told = r"some\.py:(\d+): (?:note: Revealed type is \"|error: )(.*?)\"?$"
    texts = {int(line): text for line, text in re.findall(told, done.stdout, re.MULTILINE)}
    first = START.count("\n") + 1
    return [texts.get(first + at, "").replace("dp_metrics.release.result.", "") for at in range(len(lines))]


@pytest.mark.gate
def test_what_calls_and_metrics_return_and_what_is_public(tmp_path):
    functions = [f"dp.{name}" for name in METRICS]
    metrics = [*functions, *(f"dp.with_result({name})" for name in functions)]
    lines = [f"reveal_type({call})" for call in (*CALLS, *(f"returned({name})" for name in metrics))]
    declared = [f"{name}: {kind}" for name, kind in {**PUBLIC, **IN_PRIVATE}.items()]
    right, wrong = ([call.format(pair[of]) for call, *pair in CALLS_OF_TWO_KINDS] for of in (0, 1))
    found = said([*declared, *right, *wrong, *MISTAKES, *lines], tmp_path)
    assert not any(found.pop(0) for _ in (*declared, *right))
    for call in wrong:
        assert "[arg-type]" in found.pop(0), call
    for text in MISTAKES.values():
        assert text in found.pop(0)
    assert dict(zip(CALLS, found, strict=False)) == CALLS
    values, results = np.reshape(found[len(CALLS) :], (2, -1)).tolist()
    assert results == [f"Result[{value}]" for value in values]
    assert not [value for value in values if "Any" in value.replace(ARRAY, "")]
