"""The file of results: nothing that is whole is ever lost, and what is not is named by its line."""

import math
import statistics
import subprocess
from unittest import mock

import pandas as pd
import pytest

from dp_metrics.evaluation import engine


@pytest.fixture
def path(tmp_path, make_row):
    """A file with three rows."""
    path = tmp_path / "results.csv"
    assert engine.read_results(path, mend=True).empty
    engine.append_results(path, [make_row(repeat=i, release=2.5 + i) for i in range(3)])
    return path


def test_round_trip(path, make_row):
    rows = [
        make_row(repeat=3 + i, release=x, draw_seed=2**56 - 1, expected_error=math.nan, setting=setting)
        for i, (x, setting) in enumerate(((0.1 + 0.2, "nan"), (1e-300, "a,b"), (1.7976931348623157e308, "")))
    ]
    whole = pd.concat([engine.read_results(path), engine.frame_of(rows)], ignore_index=True)
    engine.append_results(path, rows[:1])
    engine.append_results(path, rows[1:])
    pd.testing.assert_frame_equal(engine.read_results(path), whole)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as by an editor on Windows
    engine.append_results(path, [make_row(repeat=1, release=3.0)])  # which counts once
    pd.testing.assert_frame_equal(engine.read_results(path), whole)


def test_half_written_last_line(path, capsys):
    whole = path.read_bytes()
    rows = engine.read_results(path)
    for missing in (1, 2, 20, 60):
        path.write_bytes(whole[:-missing])
        pd.testing.assert_frame_equal(engine.read_results(path), rows[:2])
        assert capsys.readouterr().err == f"warning: {path}: line 4 is incomplete and was dropped\n"
        assert path.read_bytes() == whole[:-missing]
        engine.read_results(path, mend=True)
        assert "line 4" in capsys.readouterr().err
        assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:3])


def test_what_is_no_file_of_results_is_refused(path, monkeypatch):
    lines = path.read_text().splitlines(keepends=True)
    for damaged in (lines[2].replace("3.5", "3.5x"), "mse,bike\n", "\x00\n", "\n", 25 * "1," + "\n"):
        path.write_text("".join([*lines[:2], damaged, *lines[3:]]))
        with pytest.raises(ValueError, match=r"results.csv is damaged: [^\n]+$"):
            engine.read_results(path)
    for content in (b"a,b\n1,2\n", b"\x89PNG\r\n", b"{}", b"figure,data"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="line 1 is not the header"):
            engine.read_results(path)

    def refuse(self, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(engine.Path, "read_text", refuse)
    with pytest.raises(ValueError, match=r"can't read the results .*: Permission denied"):
        engine.read_results(path)


def test_a_revision_that_git_does_not_tell_is_unknown(monkeypatch):
    assert engine.git_revision() == "unknown" or len(engine.git_revision()) >= 7
    failures = FileNotFoundError(), subprocess.TimeoutExpired("git", 10)
    monkeypatch.setattr(engine.subprocess, "run", mock.Mock(side_effect=failures))
    assert [engine.git_revision() for _ in failures] == ["unknown", "unknown"]


def test_summary_by_hand(make_row):
    releases = (2.0, 3.0, 2.5, 0.1, 50.0)
    (line,) = engine.summarise(
        engine.frame_of([make_row(repeat=i, release=x) for i, x in enumerate(releases)])
    ).itertuples()
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
    (line,) = engine.summarise(engine.frame_of(capped)).itertuples()
    assert line.mean == line.bias == pytest.approx((0.5 + 10) / 2)
    assert line.raw_mean > 1e299
