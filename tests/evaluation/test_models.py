"""Models: the split, the clipping to public bounds, the progress bar."""

import dataclasses
import sys

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from dp_metrics.evaluation.datasets import DATASETS, MissingExtraError
from dp_metrics.evaluation.models import evaluate_model


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(0).normal(size=(300, 3))


def test_regression_split_and_prediction(features):
    target = 3.0 * features[:, 0]
    result = evaluate_model(DATASETS["synthetic"], features, target, progress=False)
    assert result.n_train == 240
    assert result.y_test.tolist() == train_test_split(target, test_size=0.2, random_state=0)[1].tolist()
    assert result.prediction.shape == (60,)
    assert result.prediction.dtype == np.float64
    assert result.max_loss is None
    assert np.corrcoef(result.prediction, result.y_test)[0, 1] > 0.9
    other = evaluate_model(DATASETS["synthetic"], features, target, split_seed=1, progress=False)
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
