"""Commands run in a folder of their own, and none may reach the network."""

import json

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from helpers import new_session, seeded, system_of

import dp_metrics as dp
from dp_metrics.cli.main import main
from dp_metrics.release.released import Interval


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


def told(released, confidence=0.95):
    """Return what JSON has to tell of what a function released."""
    if isinstance(released, dp.PrivateMetricFrame):
        rows = json.loads(json.dumps([one.row(confidence) for one in released.numbers().values()]))
        return {"membership": released.membership, "numbers": rows}
    if isinstance(released, Interval):
        return {name: getattr(released, name) for name in ("lower", "upper", "estimate", "about")}
    return json.loads(released.to_json())


@pytest.fixture
def same(run):
    """Return what checks that a command tells as JSON what a function gives with the same noise."""

    def same(argv, function, **settings):
        with system_of(seeded()):
            shown = json.loads(run(*argv, "--json").out)
        with system_of(seeded()):
            result = function()
        wanted = told(result, **settings)
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
    """Return 1,500 records of several models, of labels, scores, targets and losses, which a file holds."""
    rng, n, words = np.random.default_rng(1), 1500, np.array(["well", "ill"])
    y = rng.integers(0, 2, n)
    a, b = (np.where(rng.random(n) < wrong, 1 - y, y) for wrong in (0.1, 0.3))
    p, q, s = (
        np.clip(y * gap + 0.5 - gap / 2 + noise * rng.normal(size=n), 0.01, 0.99)
        for gap, noise in ((0.6, 0.05), (0.6, 0.1), (0.4, 0.2))
    )
    dose, person = rng.lognormal(3, 0.5, n), np.arange(n) // 3
    made = pd.DataFrame(
        {"y": y, "a": a, "b": b, "p": p, "q": q, "s": s, "notp": 1 - p, "notq": 1 - q, "flag": y == 1,
         "truth": words[y], "left": words[a], "right": words[b], "sex": rng.choice(["f", "m"], n),
         "ward": rng.integers(1, 3, n), "old": rng.integers(0, 2, n) == 1,
         "person": [f"p{at}" for at in person], "w": rng.uniform(0.5, 2, n), "loss": rng.exponential(0.2, n),
         "dose": dose, "guess": dose * rng.lognormal(0, 0.2, n), "rough": dose * rng.lognormal(0, 0.4, n)}
    )  # fmt: skip
    write("data.csv", made)
    write("data.parquet", made)
    return made
