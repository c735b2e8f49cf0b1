"""`dp-metrics reproduce` and `report`, from the command line to the pictures, on small data."""

import dataclasses
import sys

import numpy as np
import pytest

from dp_metrics.cli.main import main
from dp_metrics.evaluation import engine, population, reproduce
from dp_metrics.evaluation.datasets import DATA_VARIABLE, DATASETS
from dp_metrics.evaluation.engine import RIVALS, read_results


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Make `synthetic` small, the model quick, and the protocol short."""
    rng = np.random.default_rng(0)

    def load(dataset, data_dir):
        x = rng.normal(size=(300, 3))
        return x, 50.0 + 10.0 * x[:, 0]

    def evaluate(dataset, features, target):
        return target[:200], np.full(200, 50.0)

    bounded = dataclasses.replace(DATASETS["synthetic"], loader=load, bounds=(0.0, 100.0))
    monkeypatch.setitem(DATASETS, "synthetic", bounded)
    monkeypatch.setattr(population, "evaluate_model", evaluate)
    monkeypatch.setattr(engine, "QUICK", ((1.0, 4.0), 2))
    monkeypatch.setattr(engine, "git_revision", lambda: "abc")  # whoever commits meanwhile
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*argv):
    return main(["reproduce", "--quick", "--dataset", "synthetic", "--output", "out", *argv])


def failure(capsys, *argv):
    assert run(*argv) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(small, capsys, monkeypatch):
    assert run("--figure", "mse") == 0
    shown = capsys.readouterr()
    assert shown.out == "out/mse.png\n"
    assert "dp-metrics reproduce --report out" in shown.err
    path = small / "out" / "results.csv"
    whole = path.read_text()
    assert len(read_results(path)) == len(RIVALS) * 2 * 2
    assert "numpy=" in whole

    def refuse(*args, **kwargs):
        pytest.fail("a model was trained again")

    monkeypatch.setattr(population, "evaluate_model", refuse)
    for kept in (len(whole) - 7, 300):
        path.write_text(whole[:kept])
        capsys.readouterr()
        assert run("--figure", "mse") == 0
        assert "is incomplete and was dropped" in capsys.readouterr().err
        assert sorted(path.read_text().splitlines()) == sorted(whole.splitlines())
    assert run("--figure", "mse") == 0
    assert "0 are left to do" in capsys.readouterr().err
    assert run("--figure", "mae", "--mechanism", "laplace") == 0
    assert len(read_results(path)) == len(whole.splitlines()) - 1 + 4
    assert main(["reproduce", "--report", "out"]) == 0
    assert capsys.readouterr().out.endswith("out/report.html\n")


@pytest.mark.slow
def test_rows_of_another_revision_are_kept_and_said(small, capsys, monkeypatch):
    run("--figure", "mse", "--jobs", "2", "--mechanism", "laplace", "hazard")
    monkeypatch.setattr(engine, "git_revision", lambda: "another")
    run("--figure", "mae", "--mechanism", "laplace")
    assert "holds rows of other versions" in capsys.readouterr().err
    rows = list(read_results(small / "out" / "results.csv").itertuples())
    assert [[row.revision for row in rows].count(one) for one in ("abc", "another")] == [8, 4]


def test_what_is_typed_is_refused_in_a_line(small, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for argv, message in (
        (("--figure", "fig1"), "unknown figure 'fig1'; there are: variance, cross-entropy"),
        (("--mechanism", "gauss"), "unknown mechanism 'gauss'; there are: adaptive, hazard"),
        (("--dataset", "iris"), "unknown data set 'iris'; there are: synthetic, digits, diamonds, "),
        (("--figure", "cross-entropy"), "none of these figures"),
        (("--dataset", "cifar10"), 'pip install "dp_metrics[vision]"'),
        *((("--jobs", jobs), "is not a whole number from 1") for jobs in ("0", "1000000")),
        *((("--jobs", jobs), f"--jobs: invalid int value: '{jobs}'") for jobs in ("two", "1.5")),
    ):
        assert message in failure(capsys, *argv)


def test_output_is_looked_at_before_training(small, capsys, monkeypatch):
    monkeypatch.setattr(population, "evaluate_model", lambda *a, **k: pytest.fail("trained"))
    (small / "out").write_text("")
    assert "can't write to the output folder out" in failure(capsys)
    (small / "out").unlink()
    (small / "out").mkdir()
    (small / "out" / "results.csv").write_text("something else\n")
    assert "line 1 is not the header" in failure(capsys)
    assert main(["reproduce", "--report", "."]) == 2
    said = capsys.readouterr().err
    assert "there are no results in results.csv; make some with: dp-metrics reproduce" in said


def test_the_default_data_sets_are_those_of_the_paper_without_cifar_where_torch_is_not(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    names = reproduce.default_datasets(quick=False)
    assert names == ["diamonds", "abalone", "bike", "adult", "diabetes", "mnist"]
    assert reproduce.default_datasets(quick=True) == names[:-1]
    monkeypatch.setattr(reproduce, "default_datasets", lambda quick: ["synthetic"])
    assert main(["reproduce", "--quick", "--figure", "mse", "--output", "out"]) == 0
    assert {row.dataset for row in read_results(small / "out" / "results.csv").itertuples()} == {"synthetic"}
