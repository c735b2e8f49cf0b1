"""Populations: losses are cached, and a cache that does not fit is not used."""

import dataclasses
import math

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics.evaluation import population
from dp_metrics.evaluation.datasets import DATASETS
from dp_metrics.evaluation.population import (
    Population,
    load_population,
    package_versions,
    populations_of,
)

VALUES = np.random.default_rng(0).gamma(2.0, 3.0, size=500)
MSE = ("synthetic", "", "mse")


@pytest.fixture
def trained(monkeypatch):
    """Count trainings, without doing any."""
    calls = []

    def evaluate(dataset, features, target):
        calls.append(dataset.name)
        if dataset.task == "regression":
            return np.array([1.0, 2.0, 70.0]), np.array([1.5, 2.0, 0.0])
        proba = np.array([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]])
        return np.array([0, 1, 0]), proba

    monkeypatch.setattr(population, "evaluate_model", evaluate)
    return calls


def test_losses_are_cached(tmp_path, trained):
    first = load_population(MSE, None, tmp_path)
    assert first.values.tolist() == [0.25, 0.0, 4900.0]
    assert first.bounds is None
    assert load_population(("synthetic", "", "mae"), None, tmp_path).values.tolist() == [0.5, 0.0, 70.0]
    assert trained == ["synthetic"]
    assert {"dp_metrics", "numpy", "scikit-learn", "xgboost"} <= {*package_versions()}


def cut_off(bytes_left):
    def cut(patch, folder):
        (path,) = folder.rglob("output.pkl")
        path.write_bytes(path.read_bytes()[:bytes_left])

    return cut


STALE = {
    "version": lambda patch, path: patch.setattr(population, "version", lambda name: "0.0"),
    "seed": lambda patch, path: patch.setattr(population, "SPLIT_SEED", 1),
    "model seed": lambda patch, path: patch.setattr(population, "MODEL_SEED", 1),
    "format": lambda patch, path: patch.setattr(population, "_FORMAT", 0),
    "bounds": lambda patch, path: patch.setitem(
        DATASETS, "synthetic", dataclasses.replace(DATASETS["synthetic"], bounds=(0.0, 10.0))
    ),
    "damage": cut_off(100),
    "empty": cut_off(0),
}


@pytest.mark.filterwarnings("ignore:Exception while loading results")
@pytest.mark.parametrize("change", STALE)
def test_a_cache_that_does_not_fit_is_made_again(tmp_path, trained, monkeypatch, change):
    load_population(MSE, None, tmp_path)
    STALE[change](monkeypatch, tmp_path)
    for _ in range(2):
        found = load_population(MSE, None, tmp_path)
    assert len(trained) == 2
    assert (found.values.max(), found.bounds) == (
        (100.0, (0.0, 100.0)) if change == "bounds" else (4900.0, None)
    )


def test_data_that_changed_are_noticed(tmp_path, trained, monkeypatch):
    monkeypatch.setitem(
        DATASETS, "diamonds", dataclasses.replace(DATASETS["diamonds"], loader=lambda dataset, folder: (0, 0))
    )
    path = tmp_path / "diamonds.csv.gz"
    for content in (b"a", b"a", b"b"):
        path.write_bytes(content)
        load_population(("diamonds", "", "mse"), tmp_path, tmp_path / "cache")
    assert len(trained) == 2


def test_log_loss_has_the_cap_of_its_logits(tmp_path, trained):
    found = load_population(("digits", "", "log_loss"), None, tmp_path)
    assert found.values == pytest.approx([0.0, -math.log(0.75), math.log(2)], abs=1e-12)
    assert found.bounds == (0.0, pytest.approx(36.04, abs=0.01))  # scikit-learn's clipping of probabilities
    tiny = np.array([[1.0, 1e-22] + [0.0] * 8])
    found = populations_of(DATASETS["mnist"], np.array([1]), tiny)["log_loss"]
    assert found.values == pytest.approx([22 * math.log(10)])
    assert found.bounds == (0.0, pytest.approx(math.log(1 + 9 * math.exp(50))))


def test_draw_is_without_replacement_and_of_all_if_there_are_few():
    source = Population("mse", np.arange(500.0), None)
    rng = np.random.default_rng(0)
    assert len(set(source.draw(100, rng))) == 100
    assert sorted(source.draw(1000, rng)) == source.values.tolist()


@loop_over("metric", ["variance", "mse", "log_loss"])
def test_the_truth_is_that_of_the_records(metric):
    true_value, sampling_error = Population(metric, VALUES, None).truth(VALUES)
    terms = (VALUES - VALUES.mean()) ** 2 if metric == "variance" else VALUES
    assert true_value == pytest.approx(terms.mean(), rel=1e-12)
    assert sampling_error == pytest.approx(terms.std() / np.sqrt(500))
