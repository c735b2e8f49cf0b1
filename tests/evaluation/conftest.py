"""No test of the experiments may reach the network."""

import pytest
import sklearn.datasets

from dp_metrics.evaluation.engine import STUDIES, ResultRow


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


@pytest.fixture
def study_rows(make_row):
    """Return a function that makes rows of every panel and rival of a study."""

    def rows(name, tasks=None):
        study = STUDIES[name]
        if study.kind == "illustration":
            return []
        if study.kind == "simulated":
            return [
                make_row(figure=name, metric=("uniform", "heavy-tailed")[i % 2], mechanism=rival.mechanism,
                         setting=f"asymmetry={i / 40:.3f}", repeat=i, expected_error=(1.0 + i) ** -k)
                for i in range(20)
                for k, rival in enumerate(study.rivals)
            ]  # fmt: skip
        return [
            make_row(
                figure=name, dataset=dataset, metric=metric, column=column, epsilon=epsilon,
                mechanism=rival.mechanism, setting=rival.setting, repeat=repeat,
                bounded=int(rival.setting != "unbounded"),
                release=2.0 + 10.0 ** (k / 3) / epsilon + 0.1 * repeat,
            )
            for dataset, column, metric in study.tasks[:tasks]
            for k, rival in enumerate(study.rivals)
            for epsilon in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
            for repeat in range(2)
        ]  # fmt: skip

    return rows
