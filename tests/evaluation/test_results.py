"""The file of results: nothing that is whole is ever lost, and what is not is named by its line."""

import statistics
import subprocess
from unittest import mock

import pytest

from dp_metrics.evaluation import results_file as results
from dp_metrics.evaluation.results_file import ResultsError, ResultsFile, git_revision, summarise


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
        assert (ResultsFile(place).rows, ResultsFile(place).problems) == (rows, [])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as by an editor on Windows
    ResultsFile(path).append([make_row(repeat=5), make_row(repeat=5, release=3.0)])  # which count once
    again = ResultsFile(path)
    assert (again.rows, again.problems) == ([*rows, make_row(repeat=5)], [])
    assert ResultsFile(tmp_path / "none.csv").rows == []


def test_half_written_last_line(tmp_path, make_row):
    rows = [make_row(repeat=i) for i in range(3)]
    path = written(tmp_path, rows)
    whole = path.read_bytes()
    for missing in (1, 2, 20, 60):
        path.write_bytes(whole[:-missing])
        stored = ResultsFile(path)
        assert stored.rows == rows[:2]
        assert stored.problems == [f"{path}: line 4 is incomplete and was dropped"]
        stored.prepare()
        stored.append(rows[2:])
        assert (ResultsFile(path).rows, ResultsFile(path).problems) == (rows, [])


def test_damaged_line_in_the_middle(tmp_path, make_row):
    rows = [make_row(repeat=i) for i in range(3)]
    path = written(tmp_path, rows)
    lines = path.read_text().splitlines(keepends=True)
    for damaged in (lines[2].replace("2.5", "2.5x"), "mse,bike\n", "\x00\n", "\n"):
        path.write_text("".join([*lines[:2], damaged, *lines[3:]]), newline="\n")
        stored = ResultsFile(path)
        assert stored.rows == [rows[0], rows[2]]
        assert stored.problems == [f"{path}: line 3 is damaged and was dropped"]


def test_what_is_no_file_of_results_is_refused(tmp_path, make_row, monkeypatch):
    path = tmp_path / "other"
    for content in (b"a,b\n1,2\n", b"\x89PNG\r\n", b"{}", b"figure,data"):
        path.write_bytes(content)
        with pytest.raises(ResultsError, match="line 1 is not the header"):
            ResultsFile(path)
    with pytest.raises(ValueError, match="can't be a line"):
        written(tmp_path, [make_row(setting="a,b")])

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(results.Path, "read_bytes", refuse)
    with pytest.raises(ResultsError, match=r"can't read the results .*: Permission denied"):
        ResultsFile(path)


def test_a_revision_that_git_does_not_tell_is_unknown(monkeypatch):
    assert git_revision() == "unknown" or len(git_revision()) >= 7
    failures = FileNotFoundError(), subprocess.TimeoutExpired("git", 10)
    monkeypatch.setattr(results.subprocess, "run", mock.Mock(side_effect=failures))
    assert [git_revision() for _ in failures] == ["unknown", "unknown"]


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
    capped = [make_row(bounded=0, repeat=i, release=x) for i, x in enumerate((3.0, 1e300))]
    (line,) = summarise(capped).itertuples()
    assert line.mean == line.bias == pytest.approx((0.5 + 10) / 2)
    assert line.raw_mean > 1e299
