"""What `dp-metrics evaluate` shows without a file: experiments on public data."""

import dataclasses
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dp_metrics.cli import demonstration
from dp_metrics.evaluation import population, reproduce
from dp_metrics.evaluation.datasets import DATA_VARIABLE, DATASETS
from dp_metrics.evaluation.engine import MECHANISM_RIVALS

MECHANISMS = [rival.mechanism for rival in MECHANISM_RIVALS]
WITHOUT_BOUNDS = [rival.mechanism for rival in MECHANISM_RIVALS if not rival.needs_bounds]
SMALL = ("evaluate", "--dataset", "synthetic", "--epsilon", "1")


def small_data(dataset, data_dir):
    x = np.random.default_rng(0).normal(size=(250, 3))
    return x, 10.0 + x[:, 0]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setitem(DATASETS, "synthetic", dataclasses.replace(DATASETS["synthetic"], loader=small_data))


@pytest.mark.slow
def test_prints_a_table_and_writes_a_plot(run, monkeypatch):
    shown = run(*SMALL, "0.5", "1")
    lines = shown.out.splitlines()
    assert "synthetic: regression, 50 test records, no public bounds" in shown.out
    told = ("(NOT private, for study)", "sampling standard error", "errors capped at 10 x the true value")
    assert [shown.out.count(one) for one in told] == [3, 3, 3]
    headers = [i for i, line in enumerate(lines) if line.split() == ["epsilon", *MECHANISMS]]
    assert len(headers) == 3
    for i in headers:
        assert [line.split()[0] for line in lines[i + 1 : i + 3]] == ["0.5", "1"]
        assert lines[i + 1].count("needs bounds") == 3
        places = {line.index("needs bounds") for line in lines[i + 1 : i + 3]}
        assert places == {lines[i].index("inverse_sensitivity")}
    plot = demonstration.OUTPUT / "synthetic.png"
    assert f"plot written to {plot}" in shown.out
    assert plot.stat().st_size > 10_000
    assert "training on synthetic" in shown.err
    bounded = dataclasses.replace(DATASETS["synthetic"], bounds=(0.0, 20_000.0))
    monkeypatch.setitem(DATASETS, "synthetic", bounded)
    out = run(*SMALL, "--output", "deep/er").out
    assert "public bounds 0 to 20,000" in out
    assert "needs bounds" not in out
    assert Path("deep", "er", "synthetic.png").exists()


@pytest.mark.gate
def test_json(run):
    document, again = (json.loads(run(*SMALL, "--json").out) for _ in range(2))
    assert set(document) == {"warning", "plots", "pages", "rows"}
    assert [one["mechanism"] for one in document["rows"]] == WITHOUT_BOUNDS * 3
    row = document["rows"][0]
    wanted = {"dataset": "synthetic", "metric": "mse", "mechanism": "adaptive", "epsilon": 1.0, "n": 50}
    assert row["true_value"] > 0
    assert "true_value" in document["warning"]
    assert row == {**row, **wanted}
    assert [one["release"] for one in document["rows"]] != [one["release"] for one in again["rows"]]


@pytest.fixture
def failure(run, monkeypatch):
    """Return what runs a command that fails before it trains, and returns its one line."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setattr(
        population, "evaluate_model", lambda *args, **kwargs: pytest.fail("a model was trained")
    )

    def failure(*argv):
        shown = run("evaluate", *argv, code=2)
        (line,) = (line for line in shown.err.splitlines() if "asking OpenML" not in line)
        assert (shown.out, line[:19]) == ("", "dp-metrics: error: ")
        return line

    return failure


def test_whatever_is_wrong_is_found_before_a_model_is_trained(failure):
    Path("abalone.csv.gz").write_bytes(gzip.compress(b"Sex,Rings\nM,1\n" * 100)[:-9])
    Path("taken").write_text("")
    Path("empty").mkdir()
    for line, message in (
        ("--dataset synthetic iris", "unknown data set 'iris'; there are: synthetic, digits, diamonds"),
        ("--epsilon 1e-400", "argument --epsilon: '1e-400' is not a positive, finite number"),
        ("--dataset diamonds", "--data-dir"),
        ("--dataset synthetic abalone --data-dir empty", "'abalone': can't be fetched from OpenML"),
        ("--dataset abalone --data-dir .", "damaged"),
        ("--output taken", "can't write to the output folder taken:"),
        ("--output taken/inside", "can't write to the output folder"),
    ):
        assert message in failure(*line.split())


@pytest.mark.parametrize("package", ["xgboost", "pandas", "matplotlib", "tqdm"])
def test_missing_extra(package, failure, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    line = failure()
    assert line.startswith(f"dp-metrics: error: {package} ")
    assert 'pip install "dp_metrics[evaluation]"' in line


def test_a_plot_that_cannot_be_written(run, monkeypatch):
    def disk_full(study, rows, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(reproduce, "draw_evaluation", disk_full)
    assert "No space left on device" in run(*SMALL, code=2).err
