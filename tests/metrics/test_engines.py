"""The recipes for Spark and Ray of the page on large data, run as they stand there."""

import functools
import importlib.util
import math
import os
import pickle
import re
import shutil
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import seeded

from dp_metrics import PrivacyAccountant, PrivacyBudgetError, Summary, private_mse
from dp_metrics.exceptions import NoisyReleaseWarning

# the engines warn of their own future, and leave sockets to the end of the process
pytestmark = pytest.mark.filterwarnings("ignore")
PAGE = Path(__file__).parents[2] / "docs" / "large_data.rst"
HAS = {
    "Spark": importlib.util.find_spec("pyspark") and (shutil.which("java") or os.environ.get("JAVA_HOME")),
    "Ray": importlib.util.find_spec("ray"),
}
PARTITIONS = 7


def recipe(engine):
    """Return the code block of the page that follows the line naming a data set of this engine."""
    block = re.search(
        rf"^On a {engine} .*:\n\n\.\. code-block:: python\n\n((?:   .*\n|\n)+)",
        PAGE.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert block, f"The page has no recipe for {engine}."
    return textwrap.dedent(block[1])


@pytest.mark.parametrize("engine", HAS)
def test_the_page_has_a_recipe_that_compiles_and_names_what_a_user_has(engine):
    code = compile(recipe(engine), str(PAGE), "exec")
    assert {"data", "budget", "parts", "summary", "mse"} <= {*code.co_names}
    assert recipe(engine).count(".release(") == 1


def records():
    """Return targets and predictions with heavy tails, so that the extremes of a summary matter."""
    rng = np.random.default_rng(0)
    y = rng.standard_t(3, size=4_001)  # no multiple of the partitions
    return pd.DataFrame({"y": y, "prediction": y + rng.standard_t(3, size=y.size), "other": "not read"})


def assert_same_as_one_call(engine, data, table):
    """Assert that a recipe summarises each record once, spends once, and releases what one call does."""
    made = {"Summary": Summary, "private_mse": private_mse, "pickle": pickle}
    made |= {"functools": functools, "pd": pd}
    made |= {"data": data, "budget": PrivacyAccountant(1.0)}
    exec(compile(recipe(engine), str(PAGE), "exec"), made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyReleaseWarning)  # of few records, as it should
        for settings in ({}, {"neighboring": "add_or_remove_one"}, {"mechanism": "hazard"}):
            one_call = private_mse(table.y, table.prediction, epsilon=1.0, random_state=seeded(), **settings)
            assert made["summary"].release(1.0, random_state=seeded(), **settings) == one_call
    assert math.isfinite(made["mse"])
    assert [spend.epsilon for spend in made["budget"].history] == [1.0]
    with pytest.raises(PrivacyBudgetError):
        made["summary"].release(epsilon=1e-9, accountant=made["budget"])


@pytest.fixture(scope="module")
def spark():
    """Return a session of Spark on this machine: two threads, and up to three attempts at a task."""
    from pyspark.sql import SparkSession

    # the workers are processes of their own, which must be of the interpreter that has the package
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2,3]").appName("dp_metrics")
    session = session.config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    session = session.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
    session = session.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def ray():
    """Return Ray with two workers on this machine."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.skipif(not has, reason="see .ci/run engines"))
        for name, has in HAS.items()
    ]
)
def engine(request):
    """Return the name of an engine, and how to cut a table, keep large targets and run over partitions."""
    if request.param == "Spark":
        session = request.getfixturevalue("spark")

        def run(data, function):
            return session.createDataFrame(data.rdd.mapPartitions(function), data.schema)

        def cut(table, partitions):
            return session.createDataFrame(table).repartition(partitions)

        return "Spark", cut, lambda data, limit: data.where(data.y > limit), run
    of_ray = request.getfixturevalue("ray").data
    return (
        "Ray",
        lambda table, partitions: of_ray.from_pandas(table).repartition(partitions),
        lambda data, limit: data.filter(lambda row: row["y"] > limit),
        lambda data, function: data.map_batches(function),
    )


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, PARTITIONS])
def test_a_recipe_is_one_call_to_the_bit(engine, partitions):
    name, cut, *_ = engine
    table = records()
    assert_same_as_one_call(name, cut(table, partitions), table)


@pytest.mark.slow
def test_a_recipe_takes_partitions_without_records(engine):
    name, cut, keep, _ = engine
    table = records()
    limit = float(table.y.nlargest(3).iloc[-1])
    assert_same_as_one_call(name, keep(cut(table, PARTITIONS), limit), table[table.y > limit])


@pytest.mark.slow
def test_a_task_that_is_repeated_counts_its_records_once(engine, tmp_path):
    name, cut, _, run = engine
    table, flag = records(), str(tmp_path / "failed")

    def failing_once(rows):
        if not os.path.exists(flag):
            next(iter(rows))
            Path(flag).touch()
            os._exit(1)  # the worker dies in the middle of a partition, which the engine reads again
        return rows

    assert_same_as_one_call(name, run(cut(table, PARTITIONS), failing_once), table)
    assert os.path.exists(flag)
