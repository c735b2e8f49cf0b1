"""The file of results: nothing that is whole is ever lost, and what is not is named by its line."""

import statistics
import subprocess

import pytest

from dp_metrics.evaluation import results
from dp_metrics.evaluation.results import ResultsError, ResultsFile, git_revision, summarise


def written(path, rows):
    stored = ResultsFile(path)
    stored.prepare()
    stored.append(rows)
    return stored.path


def test_round_trip(tmp_path, make_row):
    rows = [
        make_row(repeat=i, release=x, expected_error=None, overshoot=None)
        for i, x in enumerate((0.1 + 0.2, 1e-300, 1.7976931348623157e308))
    ]
    path = written(tmp_path, rows)
    assert path == tmp_path / "results.csv"
    for place in (tmp_path, path):
        again = ResultsFile(place)
        assert again.rows == rows
        assert again.problems == []


def test_ends_of_lines_of_windows_damage_nothing(tmp_path, make_row):
    path = written(tmp_path, [make_row(), make_row(repeat=1)])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    stored = ResultsFile(path)
    stored.append([make_row(repeat=2)])
    again = ResultsFile(path)
    assert (again.rows, again.problems) == ([make_row(), make_row(repeat=1), make_row(repeat=2)], [])


def test_no_file_is_an_empty_one(tmp_path):
    assert ResultsFile(tmp_path / "none.csv").rows == []


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_half_written_last_line(tmp_path, make_row, cut):
    rows = [make_row(repeat=i) for i in range(3)]
    path = written(tmp_path, rows)
    path.write_bytes(path.read_bytes()[:-cut])
    stored = ResultsFile(path)
    assert stored.rows == rows[:2]
    assert stored.problems == [f"{path}: line 4 is incomplete and was dropped"]
    stored.prepare()
    stored.append(rows[2:])
    again = ResultsFile(path)
    assert again.rows == rows
    assert again.problems == []


@pytest.mark.parametrize("damage", ["x", "mse,bike\n", "\x00\n", "\n"])
def test_damaged_line_in_the_middle(tmp_path, make_row, damage):
    rows = [make_row(repeat=i) for i in range(3)]
    path = written(tmp_path, rows)
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = damage if damage.endswith("\n") else lines[2].replace("2.5", "2.5x")
    path.write_text("".join(lines), newline="\n")
    stored = ResultsFile(path)
    assert stored.rows == [rows[0], rows[2]]
    assert stored.problems == [f"{path}: line 3 is damaged and was dropped"]


def test_repeated_lines_count_once(tmp_path, make_row):
    path = written(tmp_path, [make_row(), make_row(release=3.0)])
    assert ResultsFile(path).rows == [make_row()]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\x89PNG\r\n", b"{}", b"figure,data"])
def test_something_else(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ResultsError, match="line 1 is not the header"):
        ResultsFile(path)


def test_unreadable(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(results.Path, "read_bytes", refuse)
    with pytest.raises(ResultsError, match=r"can't read the results .*: Permission denied"):
        ResultsFile(tmp_path / "results.csv")


def test_a_field_that_would_break_the_format(tmp_path, make_row):
    with pytest.raises(ValueError, match="can't be a line"):
        written(tmp_path, [make_row(setting="a,b")])


def test_git_revision(monkeypatch):
    assert git_revision() == "unknown" or len(git_revision()) >= 7
    for failure in (FileNotFoundError(), subprocess.TimeoutExpired("git", 10)):

        def run(*args, failure=failure, **options):
            raise failure

        monkeypatch.setattr(results.subprocess, "run", run)
        assert git_revision() == "unknown"


def test_summary_by_hand(make_row):
    releases = (2.0, 3.0, 2.5, 0.1, 50.0)
    (line,) = summarise([make_row(repeat=i, release=x) for i, x in enumerate(releases)]).itertuples()
    assert (line.repeats, line.n, line.bounded) == (5, 1000, 1)
    assert line.mean == line.raw_mean == pytest.approx((0 + 1 + 0.5 + 1.9 + 48) / 5 / 2)
    assert line.median == pytest.approx(0.5)
    assert line.bias == pytest.approx((0 + 1 + 0.5 - 1.9 + 48) / 5 / 2)
    deviation = statistics.stdev([0, 1, 0.5, 1.9, 48]) / 2
    assert line.high - line.mean == pytest.approx(1.6449 * deviation / 5**0.5, rel=1e-4)
    assert line.high - line.mean == pytest.approx(line.mean - line.low)
    assert (line.stopped, line.overshot) == (0.2, 0.2)
    assert line.exact == pytest.approx(0.2)
    assert line.sampling == pytest.approx(0.05)
    assert line.overshoot_chance == pytest.approx(1e-9)


def test_errors_without_bounds_are_capped(make_row):
    rows = [make_row(bounded=0, repeat=i, release=x) for i, x in enumerate((3.0, 1e300))]
    (line,) = summarise(rows).itertuples()
    assert line.mean == line.bias == pytest.approx((0.5 + 10) / 2)
    assert line.raw_mean > 1e299
