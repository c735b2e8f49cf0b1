"""No test of the experiments may reach the network."""

import pytest
import sklearn.datasets

from dp_metrics.evaluation.engine import ResultRow


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


@pytest.fixture
def make_row():
    """Return a function that makes a row of results out of what matters in a test."""

    usual = ResultRow(
        "mse", "bike", metric="mse", mechanism="hazard", epsilon=1.0, n=1000, bounded=1, draw_seed=1,
        release_seed=2, split_seed=0, true_value=2.0, release=2.5, expected_error=0.4, overshoot=1e-9,
        sampling_error=0.1, versions="numpy=2", revision="abc",
    )  # fmt: skip

    def make(**changes):
        row = usual._replace(**changes)
        return row._replace(error=abs(row.release - row.true_value))

    return make
