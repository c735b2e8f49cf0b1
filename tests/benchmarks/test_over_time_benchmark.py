"""The benchmark of two commits divides the right times, and times the package that it says."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def over_time(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module("over_time")


def test_processes_take_turns_and_ratios_are_of_one_pair(over_time, monkeypatch):
    now, asked = 0, []

    def slower_and_slower(folder, sizes):
        nonlocal now
        now += 1
        asked.append(folder)
        seconds = (2.0 if folder == "after" else 1.0) * now
        return {"mse|10|replace_one": seconds, "new|10|replace_one": None if folder == "before" else seconds}

    monkeypatch.setattr(over_time, "times_of", slower_and_slower)
    first, second = over_time.compare("before", "after", 3, [10])
    assert asked == ["before", "after", "after", "before", "before", "after"]
    # 2 * 2/1, 2 * 3/4 and 2 * 6/5
    assert first == ("mse", "10", "replace_one", "2.40", "1.50", "4.00")
    assert second == ("new", "10", "replace_one", "not in both", "", "")


def test_the_package_of_the_folder_is_timed_and_calls_that_it_lacks_are_told(over_time, tmp_path):
    (tmp_path / "dp_metrics").mkdir()
    package = tmp_path / "dp_metrics" / "__init__.py"
    package.write_text("def private_mse(*data, epsilon, neighboring): pass\n", encoding="utf-8")
    times = over_time.times_of(tmp_path, [10])
    assert len(times) == 19  # ten, and nine without private_compare
    assert {what for what, seconds in times.items() if seconds is not None} == {
        "private_mse|10|replace_one",
        "private_mse|10|add_or_remove_one",
    }
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "dp_metrics").rename(tmp_path / "elsewhere" / "dp_metrics")
    with pytest.raises((RuntimeError, FileNotFoundError)):
        over_time.times_of(tmp_path, [10])


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no commit to unpack")
def test_a_commit_is_unpacked(over_time, tmp_path):
    folder = over_time.unpack("HEAD", tmp_path)
    assert (folder / "dp_metrics" / "__init__.py").is_file()
    assert [path.name for path in folder.iterdir()] == ["dp_metrics"]
