"""Records are read a block at a time: in little memory, and to the last one before anything is spent."""

import importlib
import math
import pkgutil
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import CASES, KINDS, valid
from helpers import assert_refused, loop_over

import dp_metrics as dp
from dp_metrics import Summary
from dp_metrics.inputs.arrays import BLOCK

MANY = 2_000_000
A_FEW_BLOCKS = 8 * 8 * BLOCK
"""Of the arguments, their losses on the way, and what exact sums need: half a megabyte each."""
IN_ORDER = 5.1 * 8 * MANY
"""A variance may need its values in order, and two sums for each: five arrays of their size at most."""


@pytest.fixture(scope="module")
def integers():
    """Return whole numbers that every metric below takes: 0 and 1."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, MANY), rng.integers(0, 2, MANY)


NAMES = ["mse", "mae", "rmse", "mean_pinball_loss", "log_loss", "brier_score_loss", "zero_one_loss"]
FORMS = [np.float64, np.float32, np.int64, partial(pd.Series, dtype=np.float64)]


def peak_of(call):
    """Return the most memory that was in use at once during a call beyond that before it, in bytes."""
    call()  # what is imported or cached by the first call is not of this one
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_the_measurement_sees_an_array_of_the_size_of_the_input():
    assert peak_of(lambda: np.ones(MANY)) >= 8 * MANY


@pytest.mark.gate
@pytest.mark.parametrize("name", [*NAMES, "mean_loss", "variance"])
@loop_over("form", FORMS)
def test_peak_memory_beyond_the_inputs_does_not_grow_with_them(name, form, integers):
    data = [form(array) for array in integers[: 2 if name in NAMES else 1]]
    peak = peak_of(partial(getattr(dp, f"private_{name}"), *data, epsilon=1.0))
    assert peak <= (IN_ORDER if name == "variance" else A_FEW_BLOCKS)


def test_peak_memory_of_an_update_does_not_grow_with_the_chunk(integers):
    y, p = (a.astype(np.float32) for a in integers)
    for capacity in (1, 1024):
        of_losses = partial(Summary(dp.private_mse, capacity=capacity).update, y, p)
        assert peak_of(of_losses) <= A_FEW_BLOCKS
        assert peak_of(partial(Summary("variance", capacity=capacity).update, p)) <= A_FEW_BLOCKS


@pytest.mark.gate
@loop_over("ends", [(0, 1), (1, 0), (1, 1)])
def test_peak_memory_does_not_depend_on_the_order_of_the_records(ends):
    x = np.linspace(*ends, MANY)
    assert peak_of(lambda: dp.private_mean_loss(x, epsilon=1.0, max_loss=2.0)) <= A_FEW_BLOCKS
    assert peak_of(lambda: dp.private_variance(x, epsilon=1.0)) <= IN_ORDER


def test_all_caches_are_bounded():
    """And turned over by other settings: a million releases keep as much as some thousands."""
    found = []
    for module in pkgutil.walk_packages(dp.__path__, "dp_metrics."):
        if ".cli" not in module.name and ".evaluation" not in module.name:  # whose caches no release fills
            parts = vars(importlib.import_module(module.name)).values()
            own = [part for part in parts if hasattr(part, "cache_info") and part.__module__ == module.name]
            found += [part.cache_info().maxsize for part in own]
    files = [path for path in Path(dp.__path__[0]).rglob("*.py") if path.parent.name != "evaluation"]
    assert len(found) == sum(path.read_text(encoding="utf-8").count("\n@lru_cache(") for path in files) > 0
    assert max(found) <= 1024


@loop_over("n", [BLOCK, BLOCK + 1])
@loop_over("key", KINDS)
def test_an_invalid_last_record_is_found_before_the_spend(key, n):
    case, wrong = CASES[key], [(math.nan, "contains NaN")]
    if key in ("log loss", "mean loss"):
        wrong.append((-0.5, r"values in \[0, 1\]|Negative values"))
    for value, words in wrong:
        data = valid(case, n)
        data[-1][-1] = value
        assert_refused(case, data, match=words, **case.bounded)
