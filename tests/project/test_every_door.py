"""Every metric is behind each door that `tests/test_matrix.py` does not go through, or is refused there."""

import inspect
import re
from dataclasses import replace
from functools import partial, update_wrapper
from pathlib import Path

import pytest
from helpers import kind_of, load_script

from dp_metrics.metrics import METRICS
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.release.stored import PER_RECORD

ROOT = Path(__file__).parents[2]
TABLE = load_script(ROOT / "docs" / "metric_table.py").rst()


def tells(released, of_the_table, row):
    """Return whether a release has a method for the metric, with all options of what is made of the table."""
    method = getattr(released, row.name.removeprefix("private_"), None)
    options = {"self", *row.options} - of_the_table - PER_RECORD
    return method is not None and inspect.signature(method).parameters.keys() == options


def named_in(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    return lambda row: re.search(rf"`{row.name}`", text) is not None


DOORS = {
    "ReleasedConfusion": lambda row: kind_of(row) != "confusion" or tells(ReleasedConfusion, {"labels"}, row),
    "ReleasedScores": lambda row: (
        kind_of(row) != "scores" or tells(ReleasedScores, {"labels", "pos_label", "edges", "bins"}, row)
    ),
    "the table of metrics": lambda row: f"`{row.name}`" in TABLE,
    "CHANGELOG.md": named_in("CHANGELOG.md"),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_metric_is_behind_every_door_and_one_that_is_missing_is_noticed(door):
    assert [name for name, row in METRICS.items() if not DOORS[door](row)] == []
    of_a_table = "private_average_precision_score" if door == "ReleasedScores" else "private_recall_score"
    row = METRICS[of_a_table]
    forgotten = update_wrapper(partial(row.function), row.function)
    forgotten.__name__ = "private_forgotten_score"
    assert not DOORS[door](replace(row, function=forgotten))
