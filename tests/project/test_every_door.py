"""Every metric of the catalogue is behind every door of the package, or is refused there with a reason."""

import functools
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import CASES
from doors import command, score_of_file
from helpers import kind_of

import dp_metrics as dp
from dp_metrics import PrivateMetricFrame, ReleasedConfusion, ReleasedScores, distributed
from dp_metrics.analysis.audited import AUDITED
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.stored.questions import PER_RECORD
from dp_metrics.streaming import dask as collections

ROOT = Path(__file__).parents[2]


def of_package(row):
    return row.name in dp.__all__ and getattr(dp, row.name, None) is FUNCTIONS.get(row.name)


def tells(released, of_the_table, row):
    """Return whether a release has a method for the metric, with all options of what is made of the table."""
    method = getattr(released, row.name.removeprefix("private_"), None)
    options = {"self", *row.options} - of_the_table - PER_RECORD
    return method is not None and inspect.signature(method).parameters.keys() == options


def of_confusion(row):
    return kind_of(row) != "confusion" or tells(ReleasedConfusion, {"labels"}, row)


def of_scores(row):
    return kind_of(row) != "scores" or tells(ReleasedScores, {"labels", "pos_label", "edges", "bins"}, row)


def records(row):
    return row.from_unit(np.array([0.1, 0.4, 0.6, 0.9]))


def of_frame(row):
    """Return whether a frame has the metric of each group; one of a single column is refused."""
    metric = functools.partial(FUNCTIONS.get(row.name, len), **{**row.required, **(row.limit or {})})
    data = [*records(row), None][:2]
    try:
        frame = PrivateMetricFrame(
            metrics=metric,
            y_true=data[0],
            y_pred=data[1],
            sensitive_features=[0, 0, 1, 1],
            group_labels=[0, 1],
            membership="public",
            epsilon=1.0,
        )
    except TypeError as error:
        return len(row.data) == 1 and "that take y_true and y_pred" in str(error)
    return [*frame.by_group] == [0, 1]


def of_scorers(row):
    """Return whether the metric has a scorer; one that judges no model is refused."""
    name = row.name if row.greater_is_better else f"neg_{row.name}"
    is_named = name in dp.get_private_scorer_names()
    try:
        labels = {"labels": [0, 1]} if row.is_over_labels({}) else {}
        dp.make_private_scorer(FUNCTIONS.get(row.name, len), epsilon=1.0, **labels)
    except TypeError as error:
        return row.greater_is_better is None and not is_named and "must be a private metric" in str(error)
    return is_named


@functools.cache
def listed():
    return {one["name"] for one in json.loads(command("metrics", "--json"))}


def of_list(row):
    return row.name in listed()


def of_command_line(row, folder):
    printed = score_of_file(row.name, records(row), folder, row.required, "--epsilon", 1)
    return printed is not None and row.name in printed


def of_dask(row):
    """Return whether the metric takes Dask collections; the module says which do not, and why."""
    is_there = row.name in distributed.__all__ and callable(getattr(distributed, row.name, None))
    is_explained = f"`{row.name}`" in collections.__doc__
    return is_there if row.usual.merges else is_explained and not hasattr(distributed, row.name)


def of_audit(row):
    return row.name in AUDITED


def of_catalogue(row):
    return any(case.name == row.name for case in CASES.values())


def named_in(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    return lambda row: re.search(rf"`{row.name}`", text) is not None


DOORS = {
    "dp_metrics": of_package,
    "ReleasedConfusion": of_confusion,
    "ReleasedScores": of_scores,
    "PrivateMetricFrame": of_frame,
    "scorers": of_scorers,
    "dp-metrics metrics": of_list,
    "dp-metrics score": of_command_line,
    "dp_metrics.distributed": of_dask,
    "the auditor": of_audit,
    "the tests' table": of_catalogue,
    "the table of metrics": named_in("docs/metric_table.inc"),
    "CHANGELOG.md": named_in("CHANGELOG.md"),
}


@pytest.fixture
def is_behind(tmp_path):
    """Return a function that tells whether a metric is behind a door."""

    def asked(door, row):
        return DOORS[door](row, tmp_path) if door == "dp-metrics score" else DOORS[door](row)

    return asked


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.filterwarnings("ignore::dp_metrics.NoisyReleaseWarning")
def test_every_metric_is_behind_every_door(door, is_behind):
    assert [name for name, row in METRICS.items() if not is_behind(door, row)] == []


@pytest.mark.parametrize("door", DOORS)
def test_a_metric_that_is_missing_is_noticed(door, is_behind):
    of_a_table = "private_average_precision_score" if door == "ReleasedScores" else "private_recall_score"
    assert not is_behind(door, replace(METRICS[of_a_table], name="private_forgotten_score"))
