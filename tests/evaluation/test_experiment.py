"""The experiment: its true values are scikit-learn's, its laws are those of the releases that it makes."""

import dataclasses
import math

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error

from dp_metrics import SeededReleaseWarning
from dp_metrics.evaluation import experiment
from dp_metrics.evaluation.datasets import DATASETS
from dp_metrics.evaluation.experiment import MECHANISM_LABELS, run_experiment
from dp_metrics.evaluation.models import Evaluation
from dp_metrics.mechanisms import MECHANISMS

BOUNDED = dataclasses.replace(DATASETS["synthetic"], bounds=(0.0, 10.0))
RNG = np.random.default_rng(0)
Y = RNG.uniform(0.0, 10.0, size=200)
PREDICTION = np.clip(Y + RNG.normal(size=200), 0.0, 10.0)
LABELS = RNG.integers(0, 2, size=200)
PROBA = 1.0 / (1.0 + np.exp(-np.clip(RNG.normal(4.0 * LABELS - 2.0, 2.0), -10.0, 10.0)))
CLASSES = RNG.integers(0, 3, size=200)
PROBAS = RNG.dirichlet([1.0, 1.0, 1.0], size=200)
PROBAS[0] = [1.0, 0.0, 0.0]

EVALUATIONS = {
    "unbounded": Evaluation(DATASETS["synthetic"], Y, PREDICTION, 800),
    "bounded": Evaluation(BOUNDED, Y, PREDICTION, 800),
    "binary": Evaluation(DATASETS["adult"], LABELS, PROBA, 800, max_loss=math.log1p(math.exp(10.0))),
    "multiclass": Evaluation(DATASETS["digits"], CLASSES, PROBAS, 800),
}


def metrics_of(evaluation):
    regression = evaluation.dataset.task == "regression"
    return (experiment._regression_metrics if regression else experiment._classification_metrics)(evaluation)


CASES = [
    pytest.param(metric, label, id=f"{name}-{metric.name}-{label}")
    for name, evaluation in EVALUATIONS.items()
    for metric in metrics_of(evaluation)
    for label in MECHANISM_LABELS
    if metric.bounded or label not in experiment._NEED_BOUNDS
]


def test_all_mechanisms_of_the_package_are_compared():
    # for these metrics the geometric mechanism is Laplace's without its floats: the same curve
    assert set(MECHANISM_LABELS) == {*MECHANISMS, "paper"} - {"geometric"}


@pytest.mark.parametrize("name", ["unbounded", "bounded"])
def test_regression_rows(name):
    rows = run_experiment(EVALUATIONS[name], [0.5, 2.0])
    assert [(r.metric, r.epsilon, r.mechanism) for r in rows] == [
        (metric, epsilon, mechanism)
        for metric in ("private_mse", "private_mae", "private_variance")
        for epsilon in (0.5, 2.0)
        for mechanism in MECHANISM_LABELS
    ]
    expected = {
        "private_mse": (mean_squared_error(Y, PREDICTION), np.std((Y - PREDICTION) ** 2)),
        "private_mae": (mean_absolute_error(Y, PREDICTION), np.std(np.abs(Y - PREDICTION))),
        "private_variance": (np.var(Y), np.std((Y - Y.mean()) ** 2)),
    }
    for row in rows:
        true_value, deviation = expected[row.metric]
        assert row.n_test == 200
        assert row.true_value_not_private == pytest.approx(true_value, rel=1e-12)
        assert row.sampling_error_not_private == pytest.approx(deviation / math.sqrt(200), rel=1e-12)


@pytest.mark.parametrize(("name", "y", "proba"), [("binary", LABELS, PROBA), ("multiclass", CLASSES, PROBAS)])
def test_classification_rows(name, y, proba):
    rows = run_experiment(EVALUATIONS[name], [1.0])
    assert [row.mechanism for row in rows] == list(MECHANISM_LABELS)
    for row in rows:
        assert row.metric == "private_log_loss"
        assert row.true_value_not_private == pytest.approx(log_loss(y, proba), rel=1e-12)
        assert row.bounded
        assert row.release is not None


@pytest.mark.parametrize("name", EVALUATIONS)
def test_only_mechanisms_that_need_bounds_are_left_out(name):
    for row in run_experiment(EVALUATIONS[name], [1.0]):
        left_out = name == "unbounded" and row.mechanism in (
            "inverse_sensitivity",
            "piecewise_laplace",
            "laplace",
        )
        assert row.bounded == (name != "unbounded")
        assert (row.release is None) == (row.expected_error is None) == left_out
        if row.bounded:
            assert row.error_cap is None
        else:
            assert row.error_cap == pytest.approx(10 * row.true_value_not_private)
        if not left_out:
            assert type(row.release) is float
            assert math.isfinite(row.release)
            assert row.expected_error > 0
            assert row.error_cap is None or row.expected_error <= row.error_cap


@pytest.mark.parametrize(("metric", "label"), CASES)
def test_the_law_is_that_of_the_public_metric(metric, label):
    """The metric and its law reach the mechanism by two paths, which must not differ in a bit."""
    mechanism = experiment._MECHANISMS[label]()
    output_bounds = metric.output_bounds(mechanism=mechanism, epsilon=1.0)
    for seed in range(20):
        with pytest.warns(SeededReleaseWarning):
            release = metric.release(mechanism=mechanism, epsilon=1.0, random_state=seed)
        with pytest.warns(SeededReleaseWarning):
            assert release == mechanism.release(output_bounds, 1.0, seed)
    assert output_bounds.value == pytest.approx(math.fsum(metric.terms) / len(metric.terms), rel=1e-12)


@pytest.mark.parametrize(("metric", "label"), CASES)
def test_expected_error_is_the_mean_error_of_releases(metric, label):
    mechanism = experiment._MECHANISMS[label]()
    output_bounds = metric.output_bounds(mechanism=mechanism, epsilon=1.0)
    true_value = output_bounds.value
    cap = math.inf if metric.bounded else 10 * true_value
    expected = mechanism.output_distribution(output_bounds, 1.0).mean_absolute_error(true_value, cap=cap)
    rng = np.random.default_rng(5)
    with pytest.warns(SeededReleaseWarning):
        releases = np.array([mechanism.release(output_bounds, 1.0, rng) for _ in range(500)])
    errors = np.minimum(np.abs(releases - true_value), cap)
    # the seed is fixed; for another one, 5 standard errors are left with a chance of about 1e-6
    assert abs(errors.mean() - expected) < 5 * errors.std() / math.sqrt(errors.size) + 1e-4 * expected


def test_targets_outside_the_public_bounds_are_clipped():
    outside = Evaluation(BOUNDED, np.append(Y, 1e6), np.append(PREDICTION, 10.0), 800)
    inside = Evaluation(BOUNDED, np.append(Y, 10.0), np.append(PREDICTION, 10.0), 800)
    truth = [
        [row.true_value_not_private for row in run_experiment(evaluation, [1.0])]
        for evaluation in (outside, inside)
    ]
    assert truth[0] == truth[1]


def test_much_epsilon_gives_the_true_value():
    for row in run_experiment(EVALUATIONS["bounded"], [1e3]):
        if row.mechanism == "hazard":
            assert row.release == pytest.approx(row.true_value_not_private, rel=1e-3)
