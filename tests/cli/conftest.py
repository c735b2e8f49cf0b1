"""Commands run in a folder of their own, and none may reach the network."""

import json

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from helpers import new_session, seeded, system_of

from dp_metrics.cli.main import main


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    """Return what runs a command, as a process of its own, and returns what it prints."""

    def run(*argv, code=0):
        new_session()
        found = main([*map(str, argv)])
        shown = capsys.readouterr()
        assert found == code, shown.err
        assert "Traceback" not in shown.err
        return shown

    return run


@pytest.fixture
def refused(run):
    """Return what runs a command that fails, and returns its one line, which tells no secret."""

    def refused(*argv, code=4):
        shown = run(*argv, code=code)
        assert shown.out == ""
        assert shown.err.startswith("dp-metrics: error: ")
        assert shown.err.count("\n") == 1
        assert "987" not in shown.err
        return shown.err

    return refused


@pytest.fixture
def same(run):
    """Return what checks that a command tells as JSON what a function gives with the same noise."""

    def same(argv, function):
        with system_of(seeded()):
            shown = json.loads(run(*argv, "--json").out)
        with system_of(seeded()):
            result = function()
        wanted = json.loads(result.to_json())
        assert {name: shown[name] for name in wanted} == wanted
        return shown, result

    return same


@pytest.fixture
def write():
    """Return what writes columns to a file of a kind."""

    def write(path, columns):
        frame = pd.DataFrame(columns)
        frame.to_csv(path, index=False) if path.endswith(".csv") else frame.to_parquet(path)
        return path

    return write


@pytest.fixture
def people(write):
    """Return 1,500 records of two models, of labels, probabilities and losses, which a file holds."""
    rng, n, words = np.random.default_rng(1), 1500, np.array(["well", "ill"])
    y = rng.integers(0, 2, n)
    a, b = (np.where(rng.random(n) < wrong, 1 - y, y) for wrong in (0.1, 0.3))
    p, q = (np.clip(y * 0.6 + 0.2 + spread * rng.normal(size=n), 0.01, 0.99) for spread in (0.05, 0.1))
    of_words = {"truth": words[y], "left": words[a], "right": words[b]}
    groups = {"sex": rng.choice(["f", "m"], n), "ward": rng.integers(1, 3, n)}
    groups |= {"person": [f"p{at // 3}" for at in range(n)]}
    numbers = {"y": y, "a": a, "b": b, "p": p, "q": q, "notp": 1 - p, "notq": 1 - q}
    made = pd.DataFrame({**numbers, **of_words, **groups, "loss": rng.exponential(0.2, n)})
    write("data.csv", made)
    return made
