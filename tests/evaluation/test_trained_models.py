"""Models of the data sets: the split, the clipping to public bounds."""

import dataclasses

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from dp_metrics.evaluation import population as models
from dp_metrics.evaluation.datasets import DATASETS
from dp_metrics.evaluation.population import evaluate_model, largest_log_loss, populations_of


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(0).normal(size=(300, 3))


def test_regression_split_and_prediction_and_progress_on_standard_error(features, capsys):
    target = 3.0 * features[:, 0]
    y_test, prediction = evaluate_model(DATASETS["synthetic"], features, target)
    shown = capsys.readouterr()
    assert shown.err == "training on synthetic\n"
    assert shown.out == ""
    assert y_test.tolist() == train_test_split(target, test_size=0.2, random_state=0)[1].tolist()
    assert (prediction.shape, prediction.dtype) == ((60,), np.float64)
    assert np.corrcoef(prediction, y_test)[0, 1] > 0.9


def test_classifiers_give_the_probability_of_one_class_or_of_each(features):
    for name, target, classes in (
        ("adult", (features[:, 0] > 0).astype(int), 2),
        ("digits", np.digitize(features[:, 0], [-0.5, 0.5]), 3),
    ):
        y_test, proba = evaluate_model(DATASETS[name], features, target)
        proba = np.column_stack([1 - proba, proba]) if classes == 2 else proba
        assert proba.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert np.mean(proba.argmax(axis=1) == y_test) > 0.8


def cap_of(dataset, y_test, prediction):
    """Return the largest log loss that a record may have."""
    return populations_of(dataset, y_test, prediction)["log_loss"].bounds[1]


def test_predictions_margins_and_logits_are_clipped_to_public_limits(monkeypatch, features):
    import xgboost

    dataset = dataclasses.replace(DATASETS["synthetic"], bounds=(-1.0, 2.0))
    _, prediction = evaluate_model(dataset, features, 3.0 * features[:, 0])
    assert (prediction.min(), prediction.max()) == (-1.0, 2.0)
    margins = np.linspace(-30, 30, 60)
    monkeypatch.setattr(xgboost.XGBClassifier, "predict", lambda self, x, output_margin: margins)
    target = (features[:, 0] > 0).astype(int)
    y_test, prediction = evaluate_model(DATASETS["adult"], features, target)
    ends = prediction.min(), prediction.max()
    assert ends == pytest.approx((1 / (1 + np.exp(10)), 1 / (1 + np.exp(-10))))
    assert cap_of(DATASETS["adult"], y_test, prediction) == pytest.approx(np.log(1 + np.exp(10)))
    logits = np.array([[-100.0, 100.0, 0.0]] * 4)
    monkeypatch.setattr(models, "_mlp_logits", lambda *args, **options: logits)
    dataset = dataclasses.replace(DATASETS["mnist"], rows=5, train_rows=1)
    y_test, prediction = evaluate_model(dataset, np.zeros((5, 2, 2)), np.zeros(5, int))
    assert -np.log(prediction[:, 0]) == pytest.approx(50.0)
    assert (-np.log(prediction) <= cap_of(dataset, y_test, prediction)).all()
    assert largest_log_loss(10, 50.0) == pytest.approx(np.log(1 + 9 * np.exp(50)))


def test_multilayer_perceptron(monkeypatch):
    fitted, fit, rng = [], MLPClassifier.fit, np.random.default_rng(0)
    monkeypatch.setattr(MLPClassifier, "fit", lambda self, x, y: fitted.append(fit(self, x, y)) or self)
    labels = rng.integers(0, 3, size=260)
    images = rng.integers(0, 60, size=(260, 4, 4)).astype(np.uint8)
    dataset = dataclasses.replace(DATASETS["mnist"], rows=260, train_rows=200, shape=(4, 4))
    # a warning would be an error
    (y_test, prediction), (_, again) = (evaluate_model(dataset, images, labels) for _ in range(2))
    assert y_test.tolist() == labels[200:].tolist()
    expected = fitted[0].predict_proba(images[200:].reshape(60, -1) / 255.0)
    assert prediction == pytest.approx(expected, abs=1e-5)
    assert np.array_equal(prediction, again)
    assert (fitted[0].hidden_layer_sizes, fitted[0].activation, fitted[0].max_iter) == ((128,), "relu", 5)
    assert cap_of(dataset, y_test, prediction) == pytest.approx(np.log(1 + 2 * np.exp(50)))


def test_convolutional_network():
    pytest.importorskip("torch", reason="needs the vision extra")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=96)
    images = (rng.integers(0, 50, size=(96, 32, 32, 3)) + 150 * labels[:, None, None, None]).astype(np.uint8)
    dataset = dataclasses.replace(DATASETS["cifar10"], rows=96, train_rows=80)
    (y_test, prediction), (_, again) = (evaluate_model(dataset, images, labels) for _ in range(2))
    assert prediction.shape == (16, 2)
    assert np.mean(prediction.argmax(axis=1) == y_test) > 0.9
    assert np.array_equal(prediction, again)
