"""Not a bit of any release moves while the code is rearranged, nor what a result says of itself.

``python tests/test_frozen_releases.py --freeze`` writes what the code gives now, and prints what moved: do
that only where a change of results is meant, and say so in the changelog.
"""

import sys

import pytest
from cases import CASES
from frozen_releases import (
    CALLS,
    GROUPS,
    LIMITS,
    TABLE,
    arithmetic,
    evaluate,
    read_table,
    variations,
    write_table,
)
from helpers import kind_of

from dp_metrics import distributed
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import METRICS

SLOW = {"limits of average precision", "planning", "guesses"}


def attempt(group, name):
    """Return what a release gives now, or the error that it raises, for the list of what moved."""
    try:
        return evaluate(group, name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def moved(frozen, now):
    """Return a line for each release that is not the frozen one."""
    absent = "no such release"
    return [
        f"{name}: frozen {frozen.get(name, absent)}, now {now.get(name, absent)}"
        for name in dict.fromkeys([*frozen, *now])
        if frozen.get(name, absent) != now.get(name, absent)
    ]


@pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=pytest.mark.slow) if group in SLOW else group for group in GROUPS],
)
def test_no_release_has_moved(group):
    table = read_table()
    if table["arithmetic"] != arithmetic():
        pytest.skip("frozen on a machine that rounds otherwise: freeze before your change, compare after it")
    # backwards: nothing depends on the releases that went before
    now = {name: attempt(group, name) for name in reversed(GROUPS[group])}
    lines = moved(table["releases"][group], now)
    assert not lines, f"{len(lines)} of {len(now)} {group} moved:\n" + "\n".join(lines)


def test_the_table_has_every_release():
    releases = read_table()["releases"]
    assert {group: [*frozen] for group, frozen in releases.items()} == {
        group: [*made] for group, made in GROUPS.items()
    }
    assert sum(map(len, releases.values())) > 2000


def metrics_in(group):
    return {CASES[name.split("/")[0]].name for name in GROUPS[group]}


def test_every_metric_is_frozen():
    for group in ("metrics", "options", "spends", "guesses"):
        assert metrics_in(group) == METRICS.keys()
    assert {CASES[name.split("/")[0]].name for name in LIMITS} == METRICS.keys()
    for group in ("scorers", "frames", "planning"):
        judging = {name for name, row in METRICS.items() if row.greater_is_better is not None}
        assert metrics_in(group) >= judging
    summarised = {
        name for name, row in METRICS.items() if kind_of(row) == "mean" or kind_of(row) == "variance"
    }
    assert metrics_in("summaries") >= summarised
    assert metrics_in("dask") == METRICS.keys() & set(distributed.__all__)
    assert GROUPS["audits"].keys() >= METRICS.keys()


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_frozen_with_every_mechanism_and_option(name):
    row, calls = METRICS[name], [call for call in CALLS if call.case.name == name]
    served = {mechanism for mechanism in MECHANISMS for call in calls if call.is_served(mechanism)}
    assert served == (set() if row.mechanism is None else MECHANISMS.keys())
    tried = {option for call in calls for _, more in variations(call) for option in [*more, *call.options]}
    # each of these two takes one value only, which is the default
    fixed = {"private_r2_score": {"sample_weight"}, "private_calibration_curve": {"strategy"}}
    assert tried == {*row.options, *row.required} - fixed.get(name, set())


def freeze():
    before = read_table()["releases"] if TABLE.exists() else {}
    now = {group: {name: evaluate(group, name) for name in releases} for group, releases in GROUPS.items()}
    for group in dict.fromkeys([*before, *now]):
        for line in moved(before.get(group, {}), now.get(group, {})):
            print(f"{group}: {line}")
    write_table(now)
    print(f"{sum(map(len, now.values()))} releases are frozen in {TABLE.name}.")


if __name__ == "__main__":
    if sys.argv[1:] != ["--freeze"]:
        sys.exit("usage: python tests/test_frozen_releases.py --freeze")
    freeze()
