"""Not a bit of any release moves while the code is rearranged.

``python tests/test_frozen_releases.py --freeze`` writes what the code gives now, and prints what moved: do
that only where a change of results is meant, and say so in the changelog.
"""

import sys
from typing import Any

import pytest
from frozen_releases import GROUPS, TABLE, arithmetic, evaluate, read_table, write_table


def attempt(group: str, name: str) -> Any:
    """Return what a case gives now, or the error that it raises, for the list of what moved."""
    try:
        return evaluate(group, name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def moved(frozen: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return a line for each case whose value is not the frozen one."""
    absent = "no such case"
    return [
        f"{name}: frozen {frozen.get(name, absent)}, now {now.get(name, absent)}"
        for name in dict.fromkeys([*frozen, *now])
        if frozen.get(name, absent) != now.get(name, absent)
    ]


@pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=pytest.mark.slow) if group == "planning" else group for group in GROUPS],
)
def test_no_release_has_moved(group: str) -> None:
    table = read_table()
    if table["arithmetic"] != arithmetic():
        pytest.skip("frozen on a machine that rounds otherwise: freeze before your change, compare after it")
    # backwards: nothing depends on the cases that went before
    now = {name: attempt(group, name) for name in reversed(GROUPS[group])}
    lines = moved(table["releases"][group], now)
    assert not lines, f"{len(lines)} of {len(now)} {group} moved:\n" + "\n".join(lines)


def test_the_table_is_large() -> None:
    releases = read_table()["releases"]
    assert list(releases) == list(GROUPS)
    assert sum(map(len, releases.values())) > 1500


def freeze() -> None:
    before = read_table()["releases"] if TABLE.exists() else {}
    now = {group: {name: evaluate(group, name) for name in cases} for group, cases in GROUPS.items()}
    for group in dict.fromkeys([*before, *now]):
        for line in moved(before.get(group, {}), now.get(group, {})):
            print(f"{group}: {line}")
    write_table(now)
    print(f"{sum(map(len, now.values()))} cases are frozen in {TABLE.name}.")


if __name__ == "__main__":
    if sys.argv[1:] != ["--freeze"]:
        sys.exit("usage: python tests/test_frozen_releases.py --freeze")
    freeze()
