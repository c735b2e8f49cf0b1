"""The recipes for Spark and Ray of the page on large data, run as they stand there."""

import functools
import importlib.util
import math
import os
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

from dp_metrics import LossSummary, NoisyReleaseWarning, PrivacyAccountant, PrivacyBudgetError, private_mse

PAGE = Path(__file__).parents[2] / "docs" / "large_data.rst"
HAS_RAY = importlib.util.find_spec("ray") is not None
HAS_SPARK = importlib.util.find_spec("pyspark") is not None
HAS_JAVA = bool(shutil.which("java") or os.environ.get("JAVA_HOME"))
# the engines warn of their own future, and leave sockets to the end of the process
own_warnings = pytest.mark.filterwarnings("ignore")

RECORDS = 4_001  # no multiple of the partitions
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


def run(code, data):
    """Run a recipe on a data set of an engine, as a user does, and return its variables."""
    names = {
        "LossSummary": LossSummary,
        "private_mse": private_mse,
        "functools": functools,
        "pd": pd,
        "data": data,
        "budget": PrivacyAccountant(1.0),
    }
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def records():
    """Return targets and predictions with heavy tails, so that the extremes of a summary matter."""
    rng = np.random.default_rng(0)
    y = rng.standard_t(3, size=RECORDS)
    return pd.DataFrame({"y": y, "prediction": y + rng.standard_t(3, size=RECORDS), "other": "not read"})


def assert_same_as_one_call(made, table):
    """Assert that a recipe summarised each record once, spent once, and releases what one call does."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyReleaseWarning)  # of few records, as it should
        at_once = LossSummary.from_data(private_mse, table.y, table.prediction)
        assert made["summary"].to_bytes() == at_once.to_bytes()
        for settings in ({}, {"neighboring": "add_or_remove_one"}, {"mechanism": "hazard"}):
            one_call = private_mse(table.y, table.prediction, epsilon=1.0, random_state=seeded(), **settings)
            assert made["summary"].release(1.0, random_state=seeded(), **settings) == one_call
    assert math.isfinite(made["mse"])
    assert [spend.epsilon for spend in made["budget"].history] == [1.0]
    with pytest.raises(PrivacyBudgetError):
        made["summary"].release(epsilon=1e-9, accountant=made["budget"])


@pytest.mark.parametrize("engine", ["Spark", "Ray"])
def test_the_page_has_a_recipe_that_compiles_and_names_what_a_user_has(engine):
    code = compile(recipe(engine), str(PAGE), "exec")
    assert {"data", "budget", "parts", "summary", "mse"} <= {*code.co_names}
    assert recipe(engine).count(".release(") == 1


@pytest.fixture(scope="module")
def spark():
    """Return a session of Spark on this machine: two threads, and up to three attempts at a task."""
    from pyspark.sql import SparkSession

    # the workers are processes of their own, which must be of the interpreter that has the package
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("dp_metrics")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    yield session
    session.stop()


needs_spark = pytest.mark.skipif(
    not (HAS_SPARK and HAS_JAVA), reason="needs PySpark and a Java runtime: see .ci/run engines"
)


@pytest.mark.slow
@own_warnings
@needs_spark
@pytest.mark.parametrize("partitions", [1, PARTITIONS])
def test_the_recipe_for_spark_is_one_call_to_the_bit(spark, partitions):
    table = records()
    data = spark.createDataFrame(table).repartition(partitions)
    assert data.rdd.getNumPartitions() == partitions
    assert_same_as_one_call(run(recipe("Spark"), data), table)


@pytest.mark.slow
@own_warnings
@needs_spark
def test_the_recipe_for_spark_takes_partitions_without_records(spark):
    table = records()
    data = spark.createDataFrame(table).repartition(PARTITIONS)
    limit = float(table.y.nlargest(3).iloc[-1])
    kept = data.where(data.y > limit)
    assert kept.rdd.glom().map(len).collect().count(0) >= PARTITIONS - 2
    assert_same_as_one_call(run(recipe("Spark"), kept), table[table.y > limit])


@pytest.mark.slow
@own_warnings
@needs_spark
def test_a_task_of_spark_that_is_repeated_counts_its_records_once(spark, tmp_path):
    table, flag = records(), str(tmp_path / "failed")

    def failing_once(rows):
        kept = list(rows)
        yield from kept[: len(kept) // 2]
        if not os.path.exists(flag):
            Path(flag).touch()
            os._exit(1)  # the worker dies in the middle of a partition
        yield from kept[len(kept) // 2 :]

    source = spark.createDataFrame(table).repartition(PARTITIONS)
    data = spark.createDataFrame(source.rdd.mapPartitions(failing_once), source.schema)
    made = run(recipe("Spark"), data)
    assert os.path.exists(flag)
    assert_same_as_one_call(made, table)


@pytest.fixture(scope="module")
def ray():
    """Return Ray with two workers on this machine."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False)
    yield ray
    ray.shutdown()


needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs Ray: see .ci/run engines")


@pytest.mark.slow
@own_warnings
@needs_ray
@pytest.mark.parametrize("partitions", [1, PARTITIONS])
def test_the_recipe_for_ray_is_one_call_to_the_bit(ray, partitions):
    table = records()
    data = ray.data.from_pandas(table).repartition(partitions)
    assert_same_as_one_call(run(recipe("Ray"), data), table)


@pytest.mark.slow
@own_warnings
@needs_ray
def test_the_recipe_for_ray_takes_blocks_without_records(ray):
    table = records()
    limit = float(table.y.nlargest(3).iloc[-1])
    data = ray.data.from_pandas(table).repartition(PARTITIONS).filter(lambda row: row["y"] > limit)
    assert_same_as_one_call(run(recipe("Ray"), data), table[table.y > limit])


@pytest.mark.slow
@own_warnings
@needs_ray
def test_a_task_of_ray_that_is_repeated_counts_its_records_once(ray, tmp_path):
    table, flag = records(), str(tmp_path / "failed")

    def failing_once(batch):
        if not os.path.exists(flag):
            Path(flag).touch()
            os._exit(1)  # the worker dies in the middle of a task, which Ray runs again
        return batch

    data = ray.data.from_pandas(table).repartition(PARTITIONS).map_batches(failing_once)
    made = run(recipe("Ray"), data)
    assert os.path.exists(flag)
    assert_same_as_one_call(made, table)
