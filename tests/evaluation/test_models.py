"""Models: the split, the clipping to public bounds, the progress bar."""

import dataclasses
import sys

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from dp_metrics._packages import MissingExtraError
from dp_metrics.evaluation import models
from dp_metrics.evaluation.datasets import DATASETS
from dp_metrics.evaluation.models import evaluate_model, largest_log_loss


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(0).normal(size=(300, 3))


def test_regression_split_and_prediction(features, monkeypatch):
    target = 3.0 * features[:, 0]
    result = evaluate_model(DATASETS["synthetic"], features, target, progress=False)
    assert result.y_test.tolist() == train_test_split(target, test_size=0.2, random_state=0)[1].tolist()
    assert result.prediction.shape == (60,)
    assert result.prediction.dtype == np.float64
    assert result.max_loss is None
    assert np.corrcoef(result.prediction, result.y_test)[0, 1] > 0.9
    monkeypatch.setattr(models, "SPLIT_SEED", 1)
    other = evaluate_model(DATASETS["synthetic"], features, target, progress=False)
    assert other.y_test.tolist() != result.y_test.tolist()


def test_predictions_are_clipped_to_public_bounds(features):
    dataset = dataclasses.replace(DATASETS["synthetic"], bounds=(-1.0, 2.0))
    prediction = evaluate_model(dataset, features, 3.0 * features[:, 0], progress=False).prediction
    assert prediction.min() == -1.0
    assert prediction.max() == 2.0


def test_margins_of_a_binary_model_are_clipped(monkeypatch, features):
    import xgboost

    margins = np.linspace(-30, 30, 60)
    monkeypatch.setattr(xgboost.XGBClassifier, "predict", lambda self, x, output_margin: margins)
    target = (features[:, 0] > 0).astype(int)
    result = evaluate_model(DATASETS["adult"], features, target, progress=False)
    assert result.prediction.min() == pytest.approx(1 / (1 + np.exp(10)))
    assert result.prediction.max() == pytest.approx(1 / (1 + np.exp(-10)))
    assert result.max_loss == pytest.approx(np.log(1 + np.exp(10)))
    assert (-np.log(np.minimum(result.prediction, 1 - result.prediction)) <= result.max_loss + 1e-9).all()


def test_binary_model(features):
    target = (features[:, 0] > 0).astype(int)
    result = evaluate_model(DATASETS["adult"], features, target, progress=False)
    assert result.prediction.shape == (60,)
    assert np.mean((result.prediction > 0.5) == result.y_test) > 0.9


def test_multiclass_model(features):
    target = np.digitize(features[:, 0], [-0.5, 0.5])
    result = evaluate_model(DATASETS["digits"], features, target, progress=False)
    assert result.prediction.shape == (60, 3)
    assert result.prediction.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert np.mean(result.prediction.argmax(axis=1) == result.y_test) > 0.8


def test_progress_goes_to_standard_error(features, capsys):
    evaluate_model(DATASETS["synthetic"], features, features[:, 0])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "training on synthetic: 100%" in shown.err
    evaluate_model(DATASETS["synthetic"], features, features[:, 0], progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("package", ["xgboost", "tqdm"])
def test_missing_extra(package, features, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'{package} .* pip install "dp_metrics\[evaluation\]"'):
        evaluate_model(DATASETS["synthetic"], features, features[:, 0])


def test_multilayer_perceptron(monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=260)
    images = rng.integers(0, 60, size=(260, 4, 4)).astype(np.uint8)
    images[np.arange(260), labels] += 150
    dataset = dataclasses.replace(DATASETS["mnist"], rows=260, train_rows=200, shape=(4, 4))
    result = evaluate_model(dataset, images, labels, progress=False)  # a warning would be an error
    assert result.y_test.tolist() == labels[200:].tolist()
    assert result.prediction.shape == (60, 3)
    assert result.max_loss == pytest.approx(np.log(1 + 2 * np.exp(50)))
    again = evaluate_model(dataset, images, labels, progress=False)
    assert np.array_equal(result.prediction, again.prediction)


def test_logits_of_the_perceptron_are_those_of_its_probabilities(monkeypatch):
    from sklearn.neural_network import MLPClassifier

    fitted = []

    class Kept(MLPClassifier):
        def fit(self, x, y):
            fitted.append(self)
            return super().fit(x, y)

    monkeypatch.setattr("sklearn.neural_network.MLPClassifier", Kept)
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, size=(250, 2, 3)).astype(np.uint8)
    labels = images[:, 0, 0].astype(int) // 64
    logits = models._mlp_logits(images[:200], labels[:200], images[200:], progress=False)
    expected = fitted[0].predict_proba(images[200:].reshape(50, -1) / 255.0)
    assert models._softmax(logits) == pytest.approx(expected, abs=1e-5)
    assert (fitted[0].hidden_layer_sizes, fitted[0].activation, fitted[0].max_iter) == ((128,), "relu", 5)


def test_logits_of_images_are_clipped(monkeypatch):
    logits = np.array([[-100.0, 100.0, 0.0]] * 4)
    monkeypatch.setattr(models, "_mlp_logits", lambda *args, **options: logits)
    dataset = dataclasses.replace(DATASETS["mnist"], rows=5, train_rows=1)
    result = evaluate_model(dataset, np.zeros((5, 2, 2)), np.zeros(5, int), progress=False)
    assert -np.log(result.prediction[:, 0]) == pytest.approx(50.0)
    assert (-np.log(result.prediction) <= result.max_loss).all()


def test_caps_of_the_paper():
    assert largest_log_loss(2, 10.0) == pytest.approx(np.log(1 + np.exp(10)))
    assert largest_log_loss(10, 25.0) == pytest.approx(np.log(1 + 9 * np.exp(50)))


def test_cifar_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    dataset = dataclasses.replace(DATASETS["cifar10"], rows=5, train_rows=4)
    with pytest.raises(MissingExtraError, match=r'torch .* pip install "dp_metrics\[vision\]"'):
        evaluate_model(dataset, np.zeros((5, 32, 32, 3), np.uint8), np.zeros(5, int), progress=False)


def test_convolutional_network():
    pytest.importorskip("torch", reason="needs the vision extra")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=96)
    images = (rng.integers(0, 50, size=(96, 32, 32, 3)) + 150 * labels[:, None, None, None]).astype(np.uint8)
    dataset = dataclasses.replace(DATASETS["cifar10"], rows=96, train_rows=80)
    result = evaluate_model(dataset, images, labels, progress=False)
    assert result.prediction.shape == (16, 2)
    assert np.mean(result.prediction.argmax(axis=1) == result.y_test) > 0.9
    again = evaluate_model(dataset, images, labels, progress=False)
    assert np.array_equal(result.prediction, again.prediction)
